"""README, docs and help are read by people; these tests read them first."""

import importlib.util
import re
import runpy
import shlex
import sys
import tomllib
from datetime import date
from pathlib import Path

import pytest

from mcllo import __version__
from mcllo.__main__ import run_command_line

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", README, flags=re.DOTALL)


def test_the_python_example_prints_what_the_readme_shows(capsys):
    # as a script in a process of its own would, without loading NumPy and scikit-learn once more
    exec(blocks("python")[0], {"__name__": "__main__"})
    assert capsys.readouterr().out.strip() == blocks("text")[0].strip()


def test_the_python_example_is_the_one_in_examples():
    assert (
        blocks("python")[0].strip()
        == (ROOT / "examples" / "quickstart.py").read_text().strip()
    )
    lines = [line for line in blocks("python")[0].splitlines() if line.strip()]
    assert len(lines) <= 8


def steps(block: str) -> list[tuple[str, str]]:
    """Return (command, expected output) of a console block."""
    found: list[tuple[str, str]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        else:
            command, output = found[-1]
            found[-1] = (command, output + line + "\n")
    return found


def test_the_console_example_prints_what_the_readme_shows(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    session = next(block for block in blocks("console") if block.startswith("$"))
    for command, expected in steps(session):
        words, _, tail = command.partition(" | head -n ")
        program, *arguments = shlex.split(words)
        if program == "python":
            monkeypatch.setattr(sys, "argv", arguments)
            runpy.run_path(str(ROOT / arguments[0]), run_name="__main__")
        else:
            assert program == "mcllo"
            assert run_command_line(arguments) == 0
        output = capsys.readouterr().out
        if tail:
            output = "".join(output.splitlines(keepends=True)[: int(tail)])
        assert output == expected, command


def test_the_first_screen_says_what_it_is_and_how_to_begin():
    places = [
        "Multicategory Linear Log Odds",
        "![Reliability",
        "pip install",
        "import mcllo",
        "--html report.html",
        "docs/tutorials/data-scientist.md",
        "make demo",
        "make test",
    ]
    assert [README.index(place) for place in places] == sorted(
        README.index(place) for place in places
    )
    assert README.index("make test") < len(README) / 2
    for page in (ROOT / "docs" / "tutorials").glob("*.md"):
        assert page.stem == "index" or f"docs/tutorials/{page.name}" in README


def test_the_address_of_the_repository_is_one_line_of_the_metadata():
    text = (ROOT / "pyproject.toml").read_text()
    urls = tomllib.loads(text)["project"]["urls"]
    assert set(urls) <= {"Repository", "Paper", "Calibration slopes"}
    for name in ("README.md", "CITATION.cff"):
        known = (ROOT / name).read_text()
        assert urls.get("Repository", "") in known
        # what the citation calls it
        if name == "CITATION.cff":
            assert ("repository-code:" in known) == ("Repository" in urls)
            assert urls["Paper"].rpartition("/")[2] in known
            assert urls["Calibration slopes"].removeprefix("https://doi.org/") in known


def test_links_of_the_readme_exist():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


@pytest.fixture(scope="module")
def make_reference():
    path = ROOT / "docs" / "make_reference.py"
    spec = importlib.util.spec_from_file_location("make_reference", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "made"),
    [("reference.md", "page"), ("reference/command-line.md", "command_line")],
)
def test_the_reference_is_what_docstrings_and_help_say(make_reference, name, made):
    written = (ROOT / "docs" / name).read_text()
    assert written == getattr(make_reference, made)(), (
        "run: python docs/make_reference.py"
    )


def test_every_verb_and_option_is_on_the_page_of_the_command_line(make_reference):
    from mcllo._apps.cli.verbs import build_parser

    page = (ROOT / "docs" / "reference" / "command-line.md").read_text()
    found = dict(make_reference.verbs(build_parser()))
    assert "mcllo monitor add" in found
    for name, verb in found.items():
        own = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        options = [
            option
            for parameter in verb.params
            for option in parameter.opts
            if "-" in option
        ]
        assert all(f"`{option}`" in own for option in options if option != "--help"), (
            name
        )


def test_the_version_and_credits_are_there():
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"version: {__version__}" in citation
    released = re.search(r"^date-released: (\S+)$", citation, flags=re.MULTILINE)[1]
    assert date.fromisoformat(released).year == 2026
    # BibTeX of both, with balanced braces
    (bibtex,) = blocks("bibtex")
    assert bibtex.count("{") == bibtex.count("}")
    assert re.findall(r"^@\w+\{(\w+),$", bibtex, flags=re.MULTILINE) == [
        "vennos2026mcllo",
        "vanhoorde2014multinomial",
    ]
    for text in (README, citation):
        assert "Van Hoorde" in " ".join(text.split())


def test_the_words_do_not_overclaim():
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        text = re.sub(
            r'"[^"\n]*"', "", path.read_text()
        ).lower()  # the paper's words are quoted
        assert "well-calibrated" not in text, path
        assert "is calibrated" not in text, path
        assert not re.search(r"\bfirst (fully|method|test)\b", text), path
