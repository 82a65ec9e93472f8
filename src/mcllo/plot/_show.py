"""How a figure comes before its reader: in a notebook, by ``plt.show()``, or only as a file.

===============  ===================================================================================
`styled_figure`  what every function of `mcllo.plot` goes through: own settings while it draws; a
                 new figure is then offered
`offer`          pyplot is handed the finished figure where it has a screen (a notebook, a window)
                 and is loaded or a notebook runs; then the end of the cell or ``plt.show()`` shows
                 it. In scripts without a screen pyplot never hears of it: nothing stays open
`aside`          figures made inside are for a page or a file, and offered to nobody
shown            as the last line of a cell, the axes are the picture, once and without a line of
                 text
===============  ===================================================================================
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from threading import current_thread, main_thread
from typing import Any, ParamSpec, TypeVar
from weakref import ReferenceType, ref

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .._utils.notebook import notebook
from ._style import look

P = ParamSpec("P")
R = TypeVar("R", bound=Axes | list[Axes])

FILE_BACKENDS = {"agg", "cairo", "pdf", "pgf", "ps", "svg", "template"}
"""Backends of matplotlib that show nothing."""
MAX_OPEN_FIGURES = 20
"""Windows of ours that wait for ``plt.show()``; of more, the oldest is let go."""

_aside = ContextVar("aside", default=False)
_open: list[ReferenceType[Figure]] = []


class OwnAxes(Axes):
    """Axes of a figure made here; as the last line of a cell they are its picture."""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        return picture(self.get_figure(root=True), include, exclude)


class Panels(list[Axes]):
    """The axes of a figure of several panels; as the last line of a cell they are its picture."""

    def __repr__(self) -> str:
        words = [ax.get_title(loc="left") or ax.get_xlabel() for ax in self]
        return f"<{len(self)} panels: {', '.join(words)}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        return picture(self[0].get_figure(root=True), include, exclude) if self else {}


def styled_figure(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function draw inside `look`, and offer the figure if it made one."""

    @wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        with look():
            made = function(*args, **kwargs)
        several: Any = made if isinstance(made, Axes) else Panels(made)
        if kwargs.get("ax") is None:
            offer((made if isinstance(made, Axes) else made[0]).get_figure(root=True))
        return several

    return inside


@contextmanager
def aside() -> Iterator[None]:
    """Offer no figure that is made inside a ``with`` block."""
    token = _aside.set(True)
    try:
        yield
    finally:
        _aside.reset(token)


def offer(figure: Figure | None) -> None:
    """Hand a finished figure to pyplot where that can show it."""
    if figure is None or _aside.get() or current_thread() is not main_thread():
        return
    if "matplotlib.pyplot" not in sys.modules and notebook() is None:
        return
    import matplotlib.pyplot as plt

    if matplotlib.get_backend().lower() in FILE_BACKENDS:
        return
    settings = matplotlib.rcParams
    most = settings["figure.max_open_warning"]
    # `MAX_OPEN_FIGURES` sees to that; rc_context would undo what a notebook sets at its first
    # figure
    settings["figure.max_open_warning"] = 0
    try:
        plt.figure(FigureClass=lambda **_: figure)  # type: ignore[arg-type]
    finally:
        settings["figure.max_open_warning"] = most
    if notebook() is None:  # which shows and closes what a cell has made
        _open[:] = [own for own in _open if own() is not None] + [ref(figure)]
        while len(_open) > MAX_OPEN_FIGURES:
            oldest = _open.pop(0)()
            if oldest is not None:
                plt.close(oldest)


def picture(figure: Figure | None, include: Any, exclude: Any) -> Any:
    """Return a figure as the notebook shows figures; pyplot must not show it a second time."""
    shell = notebook()
    if shell is None or figure is None:
        return {}
    data, metadata = shell.display_formatter.format(figure, include, exclude)
    if not any(kind in data for kind in ("image/png", "image/svg+xml", "image/jpeg")):
        return {}
    if (plt := sys.modules.get("matplotlib.pyplot")) is not None:
        plt.close(figure)
    data.pop("text/plain", None)
    return data, metadata
