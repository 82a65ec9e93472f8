"""`mcllo reproduce`: a table or figure of the paper, its numbers beside ours."""

from __future__ import annotations

from pathlib import Path

import typer

from . import options
from .echo import echo

ALL_ITEMS = "all"


def reproduce(
    name: str = options.ITEM,
    output: str | None = options.FOLDER,
    kind: str = options.FIGURE_FORMAT,
    as_json: bool = options.JSON,
) -> None:
    """Make a table or figure of the paper again, its numbers beside ours.

    Figures are written to DIR (by default the current one), tables are printed, and written too
    where a DIR is given.
    """
    from ...plot._files import FORMATS
    from ...reproduce import ITEMS
    from ...reproduce import reproduce as made

    if kind not in FORMATS:
        raise typer.BadParameter(
            f"it must be {', '.join(FORMATS)}; got {kind}.", param_hint="--format"
        )
    folder = Path(output or ".")
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for item in ITEMS if name == ALL_ITEMS else (name,):
        one = made(item)
        found.append(one.to_dict())
        files = [] if one.axes is None else [folder / f"{one.name}.{kind}"]
        files += [folder / f"{one.name}.csv"] if output is not None else []
        for path in files:
            one.save(path)
        if not as_json:
            said = [str(one), *(f"written: {path}" for path in files)]
            echo("\n".join(said) + ("\n" if name == ALL_ITEMS else ""))
    if as_json:
        echo(options.as_json_text(found if name == ALL_ITEMS else found[0]))
