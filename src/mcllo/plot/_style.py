"""What all figures share: colours, sizes of type, and settings that do not leak.

Colours are those of Okabe and Ito (2008), which people with any colour vision tell apart; no figure
says by colour alone what it says: markers and line styles differ too.

Nothing here touches global settings: artists are made inside `look`, which restores them.

===============  ==========================================================================
axes             `plain_axes`, `unit_axes`, `unit_ticks`, `row_axes`, `set_ticks`
rows of dots     `marks`, one for each row; `beside`, words at its end; `key_mark`, for a legend
words            `note`, so many points from a place of the axes
===============  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import NDArray

from .._utils.results import Floats

P = ParamSpec("P")
R = TypeVar("R")
Mask = NDArray[np.bool_]

BLUE = "#0072b2"
VERMILION = "#d55e00"
GREEN = "#009e73"
PURPLE = "#cc79a7"
ORANGE = "#e69f00"
SKY = "#56b4e9"

INK = "#1f2328"
MUTED = "#59636e"
FAINT = "#c8ced5"
BAND = "#dde2e8"
PAPER = "#ffffff"
THEMED = {"ink": INK, "muted": MUTED, "faint": FAINT, "band": BAND, "paper": PAPER}
THEMED |= {"blue": BLUE, "vermilion": VERMILION}
"""Colours that change with the page in ``to_svg(themed=True)``."""

SERIES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, INK)
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (2, 1.5)), (0, (7, 2, 1.5, 2)))
DASHES += ((0, (9, 3)), (0, (1, 1)), (0, (4, 1.5, 1.5, 1.5, 1.5, 1.5)))
MARKERS = ("o", "D", "s", "^", "v", "P", "X")

TITLE_PT = 10.5  # sizes of type in points
TEXT_PT = 9.5
SMALL_PT = 8.5  # nothing is smaller

STYLE = {
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.labelsize": TEXT_PT,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlecolor": INK,
    "axes.unicode_minus": True,
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": TEXT_PT,
    "legend.fontsize": SMALL_PT,
    "legend.frameon": False,
    "lines.linewidth": 1.5,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "mcllo",
    "text.color": INK,
    "text.parse_math": False,
    "text.usetex": False,
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "xtick.labelsize": SMALL_PT,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
    "ytick.labelsize": SMALL_PT,
}


@contextmanager
def look(**changes: Any) -> Iterator[None]:
    """Use the defaults of matplotlib with `STYLE` and `changes`; the caller's settings return."""
    with matplotlib.style.context(["default", STYLE | changes]):
        yield


def use_style(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function draw inside `look`."""

    @wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        with look():
            return function(*args, **kwargs)

    return inside


def plain_axes(ax: Axes) -> None:
    """Give an axes the look even where its ticks are made later, under other settings."""
    ax.set_facecolor(PAPER)
    for name, spine in ax.spines.items():
        spine.set_visible(name in ("left", "bottom"))
        spine.set(color=MUTED, linewidth=0.8)
    ax.tick_params(
        labelsize=SMALL_PT, color=MUTED, labelcolor=INK, labelfontfamily=STYLE["font.family"]
    )


def unit_axes(ax: Axes, bottom: float = 0.0) -> None:
    """Give both axes the range of a probability, the vertical one from `bottom`."""
    ax.set_xlim(-0.01, 1.01)
    ax.set_ylim(bottom - 0.01, 1.02)
    unit_ticks(ax, 4)
    ax.spines["left"].set_bounds(0.0, 1.0)
    ax.spines["bottom"].set_bounds(0.0, 1.0)


def unit_ticks(ax: Axes, parts: int) -> None:
    """Divide both axes, the range of a probability, into so many parts."""
    for axis in (ax.xaxis, ax.yaxis):
        set_ticks(axis, [part / parts for part in range(parts + 1)], "{:g}".format)


def row_axes(ax: Axes, n_rows: int) -> None:
    """Give a dot plot, drawn already, a faint line for each row, the first on top."""
    ax.set_ylim(n_rows - 0.4, -0.6)
    ax.hlines(range(n_rows), *ax.get_xlim(), color=FAINT, lw=0.5, zorder=0, label="_rows")
    ax.tick_params(axis="y", length=0, pad=7)


def set_ticks(axis: Axis, ticks: Sequence[float], word: Callable[[float], str]) -> None:
    """Give an axis these ticks and no others, each with its word."""
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: word(value)))


def marks(
    ax: Axes,
    values: Floats,
    which: Mask,
    marker: str,
    colour: str,
    label: str,
    fill: str | None = None,
    zorder: float = 3,
) -> None:
    """Draw the marked rows at their values, hollow ones behind; row 0 is at the top."""
    if not which.any():
        return  # an empty line that is not clipped would reach to the corner of the figure
    ax.plot(
        values[which],
        np.flatnonzero(which),
        ls="none",
        marker=marker,
        markersize=6.0,
        color=colour,
        markerfacecolor=fill or colour,
        clip_on=False,
        zorder=zorder if fill is None else 2,
        label=label,
    )


def beside(ax: Axes, words: Sequence[str], right: float | None = None) -> None:
    """Write the words of all rows in a column at the right of the axes.

    They begin there, or end `right` points away.
    """
    place = (8, 0) if right is None else (right, 0)
    look = {"color": INK, "va": "center", "ha": "left" if right is None else "right"}
    for row, word in enumerate(words):
        note(ax, word, (1.0, row), place, ("axes fraction", "data"), **look)


def key_mark(
    marker: str, colour: str, label: str, fill: str | None = None, size: float = 6.0
) -> Line2D:
    """Return a mark for a legend."""
    look: dict[str, Any] = {"marker": marker, "markersize": size, "color": colour}
    return Line2D([], [], ls="none", markerfacecolor=fill or colour, label=label, **look)


def note(
    ax: Axes,
    text: str,
    at: tuple[float, float],
    offset: tuple[float, float],
    coordinates: Any = "axes fraction",
    **look: Any,
) -> None:
    """Write small text so many points from a place, outside of the axes too."""
    ax.annotate(
        text,
        at,
        xytext=offset,
        xycoords=coordinates,
        textcoords="offset points",
        fontsize=SMALL_PT,
        parse_math=False,
        annotation_clip=False,
        **look,
    )
