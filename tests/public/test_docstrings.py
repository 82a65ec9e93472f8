"""Docstrings of the public names: numpydoc's sections, and related names that exist.

`make lint` installs numpydoc, whose checks are listed in pyproject.toml. Where it is missing the
other tests still ask for every section, parameter and field.
"""

import dataclasses
import inspect
import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import mcllo

ROOT = Path(__file__).resolve().parents[2]
SECTION = re.compile(r"^([A-Z][A-Za-z ]+)\n-+\n", re.MULTILINE)
PARAMETER_CHECKS = {"PR01", "PR02", "PR03"}
MODULES = [
    mcllo,
    *(getattr(mcllo, n) for n in mcllo.__all__ if inspect.ismodule(getattr(mcllo, n))),
]


def public_names():
    """Return ``{full name: (object, module)}`` of every public function and class, each once."""
    found, seen = {}, set()
    for module in MODULES:
        for name in module.__all__:
            thing = getattr(module, name)
            if (inspect.isroutine(thing) or inspect.isclass(thing)) and id(
                thing
            ) not in seen:
                seen.add(id(thing))
                found[f"{module.__name__}.{name}"] = (thing, module)
    return found


PUBLIC = public_names()


def sections(thing):
    """Return ``{title: text}`` of a docstring; the summary is under the empty title."""
    parts = SECTION.split(inspect.getdoc(thing))
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def documented(text):
    """Return the names that a section of parameters or attributes describes."""
    heads = [line for line in text.splitlines() if line and not line.startswith(" ")]
    return [name.strip() for head in heads for name in head.split(" : ")[0].split(",")]


def is_result(thing):
    """Whether a class is made by functions, not by callers: its fields are attributes."""
    return dataclasses.is_dataclass(thing)


def parameters(thing):
    """Return the names of the parameters as a docstring writes them."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    found = inspect.signature(thing).parameters.values()
    return [stars.get(parameter.kind, "") + parameter.name for parameter in found]


def resolved(related, module):
    """Return what a related name stands for, seen from a public module."""
    place, *path = related.split(".")
    thing = import_module(place) if place == "mcllo" else getattr(module, place)
    for part in path:
        thing = getattr(thing, part)
    return thing


def test_every_room_of_public_names_is_looked_at():
    assert len(PUBLIC) > 130
    assert {"mcllo.assess", "mcllo.metrics.accuracy", "mcllo.plot.save"} <= set(PUBLIC)


def missing_sections(thing):
    """Return the sections that a docstring lacks."""
    wanted = {"Examples", "See Also"}
    if is_result(thing):
        wanted.add("Attributes")
    elif parameters(thing):
        wanted.add("Parameters")
    if (
        inspect.isroutine(thing)
        and inspect.signature(thing).return_annotation != "None"
    ):
        wanted.add("Returns")
    return wanted - set(sections(thing))


def test_sections():
    assert {
        n: missing for n, (t, _) in PUBLIC.items() if (missing := missing_sections(t))
    } == {}


def undescribed(thing):
    """Return parameters, or fields of a result, that are not described, or are not there."""
    found = sections(thing)
    if not is_result(thing):
        return set(documented(found.get("Parameters", ""))) ^ set(parameters(thing))
    fields = {field.name for field in dataclasses.fields(thing) if field.name[0] != "_"}
    return fields - set(documented(found["Attributes"]))


def test_every_parameter_and_field_is_described():
    assert {
        name: left for name, (t, _) in PUBLIC.items() if (left := undescribed(t))
    } == {}


def test_no_description_is_only_a_reference_to_another():
    only = re.compile(r"^ +As in ", re.MULTILINE)
    found = {
        name: sections(thing).get("Parameters", "")
        for name, (thing, _) in PUBLIC.items()
    }
    assert [name for name, text in found.items() if only.search(text)] == []


def related_names(thing):
    """Return the names under See Also."""
    lines = sections(thing)["See Also"].splitlines()
    return [
        line.split(" :")[0].strip()
        for line in lines
        if line and not line.startswith(" ")
    ]


def test_related_names_exist():
    for name, (thing, module) in PUBLIC.items():
        related = related_names(thing)
        assert 1 <= len(related) <= 5, name
        for each in related:
            try:
                assert resolved(each, module) is not thing, f"{name} refers to itself"
            except AttributeError:
                pytest.fail(f"{name} refers to {each}, which does not exist")


def test_every_reference_is_cited():
    for name, (thing, _) in PUBLIC.items():
        found = sections(thing)
        given = re.findall(
            r"^\.\. \[(\d+)\]", found.get("References", ""), re.MULTILINE
        )
        cited = re.findall(r"\[(\d+)\]_", " ".join(found.values()))
        assert set(given) == set(cited), name


def test_numpydoc():
    validation = pytest.importorskip("numpydoc.validate", reason="of the extra `lint`")
    get_doc_object = import_module("numpydoc.docscrape").get_doc_object
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    checks = set(settings["tool"]["numpydoc_validation"]["checks"])
    problems = {}
    for name, (thing, _) in PUBLIC.items():
        # Fields of a result are its attributes: `undescribed` has looked at those.
        asked = checks - PARAMETER_CHECKS if is_result(thing) else checks
        errors = validation.validate(get_doc_object(thing))["errors"]
        if found := [error for error in errors if error[0] in asked]:
            problems[name] = found
    assert problems == {}


def test_every_parameter_is_written_out():
    """Nobody is sent to another page for what an argument means."""
    elsewhere = re.compile(r"described in|\bAs in\b|as in `(?!sklearn)")
    for name, (thing, _) in PUBLIC.items():
        told = sections(thing).get("Parameters", "")
        assert not re.search(r"^\*\*data", told, re.MULTILINE), name
        if (
            name != "mcllo.compare"
        ):  # whose labels are those of `assess`, described there too
            assert not elsewhere.search(told), name
    # the same words everywhere: those of the door
    door = sections(mcllo.Predictions.from_arrays)["Parameters"]
    (clip,) = re.findall(r"^clip : .*\n(?: {4}.*\n)+", door, re.MULTILINE)
    for name in ("assess", "nested_models", "robust_test", "subgroups"):
        assert clip in sections(getattr(mcllo, name))["Parameters"], name
