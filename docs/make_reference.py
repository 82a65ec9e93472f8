"""Write the pages of names and of the command line: ``python docs/make_reference.py``.

================================  ============================================================
docs/reference.md                 every public name with its signature and first sentence
docs/reference/command-line.md    every verb and subverb, from what ``--help`` prints
================================  ============================================================

A test compares the files with what this script would write, so the pages cannot lie.
`docs/make_site.py` takes the names from here too, and gives each a page of its own.
"""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import mcllo

PAGE = Path(__file__).with_name("reference.md")
COMMANDS = Path(__file__).parent / "reference" / "command-line.md"


class Section(NamedTuple):
    """Names of one module, under one heading."""

    title: str
    module: Any
    names: list[str]
    prefix: str


def sections() -> list[Section]:
    """Return what is public, in the order of the page; data and modules are left out."""
    public = [name for name in mcllo.__all__ if not name.startswith("__")]
    parts = [
        (
            "Functions",
            mcllo,
            [n for n in public if inspect.isroutine(getattr(mcllo, n))],
        ),
        ("Classes", mcllo, [n for n in public if inspect.isclass(getattr(mcllo, n))]),
        ("Metrics", mcllo.metrics, sorted(mcllo.metrics.__all__)),
        ("Calibrators", mcllo.calibrators, mcllo.calibrators.__all__),
        ("Figures", mcllo.plot, mcllo.plot.__all__),
        ("Data sets", mcllo.datasets, mcllo.datasets.__all__),
        ("Simulation and power", mcllo.simulate, mcllo.simulate.__all__),
        ("Export", mcllo.export, mcllo.export.__all__),
        ("The paper's tables and figures", mcllo.reproduce, mcllo.reproduce.__all__),
        ("Classifiers", mcllo.model_selection, mcllo.model_selection.__all__),
        ("Errors and warnings", mcllo.exceptions, mcllo.exceptions.__all__),
    ]
    return [
        Section(
            title, module, [n for n in names if is_named(getattr(module, n))], prefix
        )
        for title, module, names in parts
        for prefix in [f"{module.__name__}."]
    ]


def is_named(thing: object) -> bool:
    """Whether a thing is a function or a class."""
    return inspect.isroutine(thing) or inspect.isclass(thing)


def first_line(thing: object) -> str:
    """Return the first line of a docstring."""
    return (inspect.getdoc(thing) or "").splitlines()[0]


def signature(name: str, thing: object) -> str:
    """Return ``name(probs, y, *, ...)`` with defaults and without types."""
    if not callable(thing):
        return name
    parameters = []
    starred = False
    for parameter in inspect.signature(thing).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            parameters.append("*")
            starred = True
        default = (
            "" if parameter.default is parameter.empty else f"={parameter.default!r}"
        )
        parameters.append(parameter.name + default)
    return f"{name}({', '.join(parameters)})"


def shown(name: str, thing: object) -> str:
    """Return a name, with its signature where people call it."""
    return (
        name
        if inspect.isclass(thing) and not hasattr(thing, "fit")
        else signature(name, thing)
    )


def listed(section: Section) -> list[str]:
    """Return the lines of one section."""
    lines = [f"## {section.title}", ""]
    for name in section.names:
        thing = getattr(section.module, name)
        lines += [f"- `{section.prefix}{shown(name, thing)}`", f"  {first_line(thing)}"]
    return [*lines, ""]


def modules() -> list[str]:
    """Return the lines on modules and data."""
    public = [name for name in mcllo.__all__ if not name.startswith("__")]
    found = [name for name in public if inspect.ismodule(getattr(mcllo, name))]
    data = [
        name
        for name in public
        if not is_named(getattr(mcllo, name)) and name not in found
    ]
    return [
        "## Modules and data",
        "",
        *(f"- `mcllo.{name}`: {first_line(getattr(mcllo, name))}" for name in found),
        *(f"- `mcllo.{name}`: the registry of calibrators by name" for name in data),
        "- `mcllo.metrics.SCORERS`: every metric that is one number, as a scorer of scikit-learn",
    ]


def page() -> str:
    """Return the page of names."""
    lines = [
        "# The public names",
        "",
        "<!-- Written by docs/make_reference.py. -->",
        "Every public name by task; `help(mcllo.assess)` says more.",
        "",
        *(line for section in sections() for line in listed(section)),
        *modules(),
    ]
    return "\n".join(lines) + "\n"


def verbs(command: Any, path: str = "mcllo") -> Iterator[tuple[str, Any]]:
    """Yield every verb and subverb with its full name, ``mcllo monitor add``."""
    for name, verb in command.commands.items():
        yield f"{path} {name}", verb
        if hasattr(verb, "commands"):
            yield from verbs(verb, f"{path} {name}")


def is_argument(parameter: Any) -> bool:
    """Whether a parameter is told by its place, not by a name."""
    return bool(parameter.param_type_name == "argument")


def usage(name: str, command: Any) -> str:
    """Return how a verb is called."""
    words = [name]
    words += ["VERB"] if hasattr(command, "commands") else []
    for parameter in filter(is_argument, command.params):
        word = parameter.metavar or parameter.name.upper()
        words.append(word if parameter.required else f"[{word}]")
    return " ".join([*words, "[OPTIONS]"])


def typed(parameter: Any) -> str:
    """Return an argument or an option as it is typed."""
    if is_argument(parameter):
        return f"`{parameter.metavar or parameter.name.upper()}`"
    names = ", ".join(
        f"`{name}`" for name in sorted(parameter.opts, key=len, reverse=True)
    )
    return f"{names} `{parameter.metavar}`" if parameter.metavar else names


def meaning(parameter: Any) -> str:
    """Return what an argument or an option is for, and its default."""
    default = parameter.default
    known = default not in (None, False, "", (), []) and not parameter.required
    words = [parameter.help or "", "*Required.*" if parameter.required else ""]
    words.append(f"*Default: {default}.*" if known and not callable(default) else "")
    return " ".join(word for word in words if word)


def explained(name: str, command: Any) -> list[str]:
    """Return the lines on one verb."""
    lines = [f"## {name}", "", *(command.help or "").strip().splitlines(), ""]
    lines += ["```text", usage(name, command), "```", ""]
    parameters = [p for p in command.params if p.name != "help" and p.help]
    if hasattr(command, "commands"):
        rows = [
            (f"`{verb}`", sub.help.strip().splitlines()[0])
            for verb, sub in inner(command)
        ]
        lines += ["| verb | |", "|---|---|", *(f"| {a} | {b} |" for a, b in rows), ""]
    if parameters:
        lines += ["| argument or option | |", "|---|---|"]
        for parameter in sorted(parameters, key=is_argument, reverse=True):
            cells = (typed(parameter), meaning(parameter))
            lines.append(
                "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"
            )
        lines.append("")
    for part in filter(None, (command.epilog or "").split("\n\n")):
        example = part.removeprefix("Example: ")
        lines += (
            [part, ""] if example == part else ["```console", f"$ {example}", "```", ""]
        )
    return lines


def inner(command: Any) -> list[tuple[str, Any]]:
    """Return the verbs of a verb."""
    return list(command.commands.items())


def command_line() -> str:
    """Return the page of the command line."""
    from mcllo._apps.cli.verbs import build_parser

    whole = build_parser()
    lines = [
        "# The command line",
        "",
        "<!-- Written by docs/make_reference.py. -->",
        "What `mcllo VERB --help` prints, of every verb. How verbs end:",
        "[exit codes](exit-codes.md). What it reads and writes: [file formats](file-formats.md).",
        "",
        *explained("mcllo", whole),
        *(line for name, verb in verbs(whole) for line in explained(name, verb)),
    ]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    COMMANDS.write_text(command_line(), encoding="utf-8")
