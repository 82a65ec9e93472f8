"""Write docs/reference.md from the docstrings: ``python docs/make_reference.py``.

A test compares the file with what this script would write, so the page cannot lie.
"""

import inspect
from pathlib import Path

import mcllo

PAGE = Path(__file__).with_name("reference.md")


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
        default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
        parameters.append(parameter.name + default)
    return f"{name}({', '.join(parameters)})"


def section(title: str, module: object, names: list[str], prefix: str) -> list[str]:
    """Return the lines of one section."""
    lines = [f"## {title}", ""]
    for name in names:
        thing = getattr(module, name)
        shown = name if inspect.isclass(thing) and not hasattr(thing, "fit") else None
        lines += [f"- `{prefix}{shown or signature(name, thing)}`", f"  {first_line(thing)}"]
    return [*lines, ""]


def page() -> str:
    """Return the whole page."""
    public = [name for name in mcllo.__all__ if not name.startswith("__")]
    modules = [name for name in public if inspect.ismodule(getattr(mcllo, name))]
    classes = [name for name in public if inspect.isclass(getattr(mcllo, name))]
    functions = [name for name in public if inspect.isroutine(getattr(mcllo, name))]
    data = [name for name in public if name not in {*modules, *classes, *functions}]
    lines = [
        "# The public names",
        "",
        "Written by `docs/make_reference.py` from the docstrings; `help(mcllo.assess)` says more.",
        "",
        *section("Functions", mcllo, functions, "mcllo."),
        *section("Classes", mcllo, classes, "mcllo."),
        *section("Metrics", mcllo.metrics, sorted(mcllo.metrics.__all__), "mcllo.metrics."),
        *section(
            "Calibrators",
            mcllo.calibrators,
            [
                n
                for n in mcllo.calibrators.__all__
                if inspect.isclass(getattr(mcllo.calibrators, n))
            ],
            "mcllo.calibrators.",
        ),
        *section(
            "Errors and warnings", mcllo.exceptions, mcllo.exceptions.__all__, "mcllo.exceptions."
        ),
        "## Modules and data",
        "",
        *(f"- `mcllo.{name}`: {first_line(getattr(mcllo, name))}" for name in modules),
        *(f"- `mcllo.{name}`: the registry of calibrators by name" for name in data),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
