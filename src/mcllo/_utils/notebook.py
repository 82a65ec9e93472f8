"""Notebooks: is there one, how a result shows itself there, and how long work says that it runs.

=================  ===============================================================================
`notebook_shell`   the shell of the running kernel, or None: a terminal, a script
`NotebookResult`   base of results that a notebook shows as a card. `_apps/report/cards` makes it,
                   and is loaded by name when a notebook asks
`show_progress`    a line under the cell after `PROGRESS_DELAY_SECONDS` seconds, and nothing once
                   the work is done
`report_progress`  the same line for somebody else who shows it: a page, which asks what is being
                   done
=================  ===============================================================================
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from html import escape
from importlib import import_module
from threading import Event, Thread
from time import monotonic
from typing import Any

from .optional import MissingPackageError, load_application

PROGRESS_DELAY_SECONDS = 2.0
"""Seconds before work says that it runs."""
PROGRESS_INTERVAL_SECONDS = 0.5
"""Seconds between two times that it says how far it is."""


def notebook_shell() -> Any:
    """Return the shell of the kernel that runs this; None in a terminal or a script."""
    known = sys.modules.get("IPython")
    shell = None if known is None else known.get_ipython()
    return shell if getattr(shell, "kernel", None) is not None else None


class NotebookResult:
    """Base of results that a notebook shows as a card; ``print`` has the words."""

    def _repr_html_(self) -> str:
        with show_progress("looking closer"):
            try:
                return str(load_application("report.cards").render_result_card(self))
            except MissingPackageError:  # matplotlib or Jinja2
                return f"<pre>{escape(str(self))}</pre>"


@contextmanager
def show_progress(description: str, unit: str = "") -> Iterator[Callable[[int], None]]:
    """Give a function that counts work done; in a notebook, long work is seen under its cell.

    Also a decorator. Work inside other work takes over its line for as long as it lasts.
    """
    part = _RunningTask(description, unit)
    line = _ProgressLine.shown
    if line is not None:
        line.parts.append(part)
        try:
            yield part.advance
        finally:
            line.parts.remove(part)
        return
    if notebook_shell() is None:
        yield part.advance
        return
    line = _ProgressLine(part)
    over = Event()
    context = copy_context()  # says which cell the line belongs to
    thread = Thread(target=context.run, args=(line.update_until, over), daemon=True)
    _ProgressLine.shown = line
    thread.start()
    try:
        yield part.advance
    finally:
        _ProgressLine.shown = None
        over.set()
        thread.join()


@contextmanager
def report_progress(description: str) -> Iterator[Callable[[], str]]:
    """Give a function that says what is being done inside a ``with`` block.

    Examples
    --------
    >>> with report_progress("starting") as doing, show_progress("counting", "rows") as advance:
    ...     advance(3)
    ...     doing()
    'counting, 3 rows'
    """
    line = _ProgressLine(_RunningTask(description, ""))
    _ProgressLine.shown = line

    def doing() -> str:
        return str(line.parts[-1])

    try:
        yield doing
    finally:
        _ProgressLine.shown = None


def has_progress_display() -> bool:
    """Whether somebody shows what is being done: a notebook, or who watches."""
    return _ProgressLine.shown is not None or notebook_shell() is not None


class _RunningTask:
    """Some work: what it is, and how much of it is done."""

    def __init__(self, description: str, unit: str) -> None:
        self.description = description
        self.unit = unit
        self.done = 0

    def advance(self, amount: int) -> None:
        self.done += amount

    def __str__(self) -> str:
        return (
            f"{self.description}, {self.done:,} {self.unit}"
            if self.done
            else self.description
        )


class _ProgressLine:
    """The line under a cell: what is done, how much of it, and for how long."""

    shown: _ProgressLine | None = None

    def __init__(self, part: _RunningTask) -> None:
        self.parts = [part]
        self.start = monotonic()
        self.over = False

    def update_until(self, over: Event) -> None:
        """Show the line once there is need, until the work is over; then take it away."""
        if over.wait(PROGRESS_DELAY_SECONDS):
            return
        handle = import_module("IPython.display").display(self, display_id=True)
        while not over.wait(PROGRESS_INTERVAL_SECONDS):
            handle.update(self)
        self.over = True
        handle.update(self)

    def __repr__(self) -> str:
        return (
            "" if self.over else f"{self.parts[-1]}, {monotonic() - self.start:.0f} s"
        )

    def _repr_html_(self) -> str:
        return (
            ""
            if self.over
            else f'<small style="opacity:0.7">{escape(repr(self))}</small>'
        )
