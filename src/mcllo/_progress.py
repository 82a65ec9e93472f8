"""Progress on a terminal, silence in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(
    description: str, unit: str = "rows", *, out: object = None
) -> Iterator[Callable[[int], None]]:
    """Give a function that counts work done; shown on standard error when that is a terminal.

    Nothing is shown while `out` is ``-``, standard output, and that is a terminal too.
    """
    if not sys.stderr.isatty() or (str(out) == "-" and sys.stdout.isatty()):
        yield lambda amount: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} " + unit),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=None)
        yield lambda amount: bar.advance(task, amount)
