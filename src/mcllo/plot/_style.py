"""What all figures share: how they look, axes of estimates, and how they come before a reader.

Colours are those of Okabe and Ito (2008), which people with any colour vision tell apart; no figure
says by colour alone what it says: markers and line styles differ too. Nothing here touches global
settings: artists are made inside `plot_style`, which restores them.

===================  ===============================================================================
axes                 `style_axes`, `set_unit_range`, `set_unit_ticks`, `draw_row_lines`,
                     `set_ticks`, `set_round_ticks`
rows of dots         `draw_row_markers`, one for each row; `write_row_texts`, words at its end;
                     `legend_marker`, for a legend
words                `write_small_text`, so many points from a place of the axes
forests              `Estimates` with intervals, within limits that one wild interval does not ruin;
                     what lies beyond them is cut, and an arrow says so
`styled_figure`      what every function of `mcllo.plot` goes through: own settings while it draws;
                     a new figure is then offered
`hand_to_pyplot`     pyplot is handed the finished figure where it has a screen (a notebook, a
                     window) and is loaded or a notebook runs; then the end of the cell or
                     ``plt.show()`` shows it. In scripts without a screen pyplot never hears of it:
                     nothing stays open
`without_display`    figures made inside are for a page or a file, and offered to nobody
`figure_mimebundle`  as the last line of a cell, the axes are the picture, once and without a line
                     of text
===================  ===============================================================================
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from threading import current_thread, main_thread
from typing import Any, ParamSpec, TypeVar
from weakref import ReferenceType, ref

import matplotlib
import matplotlib.style
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import NDArray

from .._utils.formatting import format_number
from .._utils.notebook import notebook_shell
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
THEMED = {
    "ink": INK,
    "muted": MUTED,
    "faint": FAINT,
    "band": BAND,
    "paper": PAPER,
    "blue": BLUE,
    "vermilion": VERMILION,
}
"""Colours that change with the page in ``to_svg(themed=True)``."""

SERIES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, INK)
DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 2)),
    (0, (2, 1.5)),
    (0, (7, 2, 1.5, 2)),
    (0, (9, 3)),
    (0, (1, 1)),
    (0, (4, 1.5, 1.5, 1.5, 1.5, 1.5)),
)
REFERENCE_DASHES = (0, (4, 3))
"""Of lines where nothing changes: agreement, a level, a reference."""
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
    "legend.title_fontsize": SMALL_PT,
    "lines.linewidth": 1.5,
    "pdf.fonttype": 42,
    # Text stays text, which can be read aloud, searched and copied; ids do not depend on the run.
    "svg.fonttype": "none",
    "svg.hashsalt": "mcllo",
    "text.color": INK,
    # A class may be called $x$, or x_1.
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
def plot_style(**changes: Any) -> Iterator[None]:
    """Use the defaults of matplotlib with `STYLE` and `changes`; the caller's settings return."""
    with matplotlib.style.context(["default", STYLE | changes]):
        yield


def use_style(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function draw inside `plot_style`."""

    @wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        with plot_style():
            return function(*args, **kwargs)

    return inside


def style_axes(ax: Axes) -> None:
    """Give an axes the look even where its ticks are made later, under other settings."""
    ax.set_facecolor(PAPER)
    for name, spine in ax.spines.items():
        spine.set_visible(name in ("left", "bottom"))
        spine.set(color=MUTED, linewidth=0.8)
    ax.tick_params(
        labelsize=SMALL_PT,
        color=MUTED,
        labelcolor=INK,
        labelfontfamily=STYLE["font.family"],
    )


def set_unit_range(ax: Axes, bottom: float = 0.0) -> None:
    """Give both axes the range of a probability, the vertical one from `bottom`."""
    # A little room, or half of a mark at 0 or 1 would be cut where artists are clipped.
    ax.set_xlim(-0.01, 1.01)
    ax.set_ylim(bottom - 0.01, 1.02)
    set_unit_ticks(ax, 4)
    ax.spines["left"].set_bounds(0.0, 1.0)
    ax.spines["bottom"].set_bounds(0.0, 1.0)


def set_unit_ticks(ax: Axes, parts: int) -> None:
    """Divide both axes, the range of a probability, into so many parts."""
    for axis in (ax.xaxis, ax.yaxis):
        set_ticks(axis, [part / parts for part in range(parts + 1)], "{:g}".format)


def draw_row_lines(ax: Axes, n_rows: int) -> None:
    """Give a dot plot, drawn already, a faint line for each row, the first on top."""
    ax.set_ylim(n_rows - 0.4, -0.6)
    ax.hlines(
        range(n_rows), *ax.get_xlim(), color=FAINT, lw=0.5, zorder=0, label="_rows"
    )
    ax.tick_params(axis="y", length=0, pad=7)


def set_ticks(
    axis: Axis, ticks: Sequence[float], formatter: Callable[[float], str]
) -> None:
    """Give an axis these ticks and no others, each with its word."""
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: formatter(value)))


def draw_row_markers(
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


def write_row_texts(ax: Axes, texts: Sequence[str], right: float | None = None) -> None:
    """Write the words of all rows in a column at the right of the axes.

    They begin there, or end `right` points away.
    """
    offset = (8.0 if right is None else right, 0.0)
    side = "left" if right is None else "right"
    for row, word in enumerate(texts):
        at = (1.0, row)
        write_small_text(
            ax,
            word,
            at,
            offset,
            ("axes fraction", "data"),
            color=INK,
            va="center",
            ha=side,
        )


def legend_marker(
    marker: str, colour: str, label: str, fill: str | None = None, size: float = 6.0
) -> Line2D:
    """Return a mark for a legend."""
    return Line2D(
        [],
        [],
        ls="none",
        marker=marker,
        markersize=size,
        color=colour,
        markerfacecolor=fill or colour,
        label=label,
    )


def write_small_text(
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
        annotation_clip=False,
        **look,
    )


@dataclass(frozen=True, eq=False)
class Estimates:
    """Estimates and intervals on the scale on which they are drawn (logs for a log axis).

    Ends are NaN where there is no interval; nothing changes at `reference`, and `cap` is the
    farthest distance from it that is drawn.
    """

    value: Floats
    low: Floats
    high: Floats
    reference: float
    cap: float

    @property
    def axis_limits(self) -> tuple[float, float]:
        """Ends of the axis: all estimates, their intervals unless huge, and the reference."""
        half = np.maximum(self.value - self.low, self.high - self.value)
        usual = float(np.nanmedian(half)) if np.isfinite(half).any() else 0.0
        # One interval of a class that hardly occurs would make points of all others: it is cut at
        # four times the median.
        reach = np.minimum(np.nan_to_num(half), 4.0 * usual)
        ends = np.concatenate(
            [self.value - reach, self.value + reach, [self.reference]]
        )
        low = max(float(ends.min()), self.reference - self.cap)
        high = min(float(ends.max()), self.reference + self.cap)
        margin = max(0.06 * (high - low), 0.01 * self.cap)
        return low - margin, high + margin

    @property
    def is_cut(self) -> tuple[Mask, Mask]:
        """Rows that are cut at the left and at the right end of the axis."""
        left, right = self.axis_limits
        known = np.isfinite(self.low)
        low = np.where(known, self.low, self.value)
        high = np.where(known, self.high, self.value)
        return low < left, high > right

    @property
    def excludes_reference(self) -> Mask:
        """Where the interval excludes the reference; False where there is none."""
        return (self.low > self.reference) | (self.high < self.reference)


def draw_forest(ax: Axes, estimates: Estimates, *, log: bool) -> None:
    """Draw one row for each estimate, the first on top, and the line of the reference."""

    def to_axis(values: Any) -> Any:
        return np.exp(values) if log else values

    left, right = estimates.axis_limits
    left_edge = float(to_axis(left))
    right_edge = float(to_axis(right))
    if log:
        ax.set_xscale("log")
    ax.set_xlim(left_edge, right_edge)
    reference = float(to_axis(estimates.reference))
    ax.axvline(reference, color=MUTED, lw=1.0, ls=REFERENCE_DASHES, zorder=1)

    rows = np.arange(len(estimates.value))
    known = np.isfinite(estimates.low)
    low = to_axis(np.clip(estimates.low, left, right))[known]
    high = to_axis(np.clip(estimates.high, left, right))[known]
    colours = np.where(estimates.excludes_reference, VERMILION, BLUE)[known].tolist()
    ax.hlines(rows[known], low, high, colors=colours, lw=1.6, label="_intervals")

    is_inside = (estimates.value > left) & (estimates.value < right)
    for kind, marker, colour, fill, label in (
        (known & ~estimates.excludes_reference, "o", BLUE, BLUE, "_includes"),
        (known & estimates.excludes_reference, "D", VERMILION, VERMILION, "_excludes"),
        (~known, "s", MUTED, "white", "_unknown"),
    ):
        shown = kind & is_inside
        ax.plot(
            to_axis(estimates.value[shown]),
            rows[shown],
            ls="none",
            marker=marker,
            markersize=6.0,
            color=colour,
            markerfacecolor=fill,
            zorder=3,
            label=label,
        )

    cut_left, cut_right = estimates.is_cut
    draw_row_markers(
        ax, np.full(len(rows), left_edge), cut_left, "<", MUTED, "_cut<", zorder=4
    )
    draw_row_markers(
        ax, np.full(len(rows), right_edge), cut_right, ">", MUTED, "_cut>", zorder=4
    )
    ax.set_ylim(len(rows) - 0.4, -0.6)


def forest_legend(drawn: Sequence[Estimates]) -> list[Artist]:
    """Return what stands for what, of all that occurs."""
    known = np.concatenate([np.isfinite(part.low) for part in drawn])
    outside = np.concatenate([part.excludes_reference for part in drawn])
    cut = np.concatenate([side for part in drawn for side in part.is_cut])
    entries = (
        (known & ~outside, legend_marker("o", BLUE, "interval includes 1")),
        (known & outside, legend_marker("D", VERMILION, "interval excludes 1")),
        (~known, legend_marker("s", MUTED, "no interval", "white")),
        (cut, legend_marker(">", MUTED, "beyond the axis")),
    )
    return [entry for mask, entry in entries if mask.any()]


def log_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return round numbers between two positive ones, 1 among them where it fits.

    Examples
    --------
    >>> log_ticks(0.4, 2.6), log_ticks(0.91, 1.12), log_ticks(5e-3, 5e2)
    ([0.5, 0.7, 1.0, 1.5, 2.0], [0.95, 1.0, 1.05, 1.1], [0.01, 0.1, 1.0, 10.0, 100.0])
    """
    if high / low < 3.0:  # over so little, a logarithmic axis is nearly a plain one
        step = round_up_step((high - low) / (most - 1))
        return multiples_between(low, high, step)
    # The finest of these digits in each decade that gives few ticks.
    for digits in ((1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        ticks = []
        for decade in range(
            math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1
        ):
            for digit in digits:
                tick = digit * 10.0**decade
                if low <= tick <= high:
                    ticks.append(round(tick, 12))
        if len(ticks) <= most:
            return ticks
    every = 1 + (len(ticks) - 1) // (most + 1)  # there are many decades: leave some out
    return ticks[::every]


def round_up_step(step: float) -> float:
    """Return the smallest of 1, 2, 5, 10, 20, ... that is at least `step`, but for rounding."""
    power = 10.0 ** math.floor(math.log10(step))
    for digit in (1, 2, 5):
        if digit * power >= 0.999 * step:
            return digit * power
    return 10 * power


def multiples_between(low: float, high: float, step: float) -> list[float]:
    """Return the multiples of a step in an interval, without the last digits of the product."""
    first = math.ceil(low / step)
    last = math.floor(high / step)
    return [round(k * step, 12) for k in range(first, last + 1)]


def set_round_ticks(ax: Axes, *, log: bool, also: float | None = None) -> None:
    """Give the horizontal axis a few round numbers, and one more where it has room."""
    low, high = ax.get_xlim()
    if log:
        ticks = log_ticks(low, high)
    else:
        ticks = multiples_between(low, high, round_up_step((high - low) / 4.5))
        gap = 0.1 * (high - low)  # below which words of two ticks would meet
        if also is not None and all(abs(also - tick) > gap for tick in ticks):
            ticks.append(also)
    set_ticks(ax.xaxis, ticks, format_tick)


def format_tick(value: float) -> str:
    """Return a tick as a person writes it: ``0.5``, ``1``, ``−2``, ``1e-05``."""
    if value and abs(value) < 1e-4:
        return format_number(value, 1)
    return f"{round(value, 12) + 0.0:g}".replace("-", "−")


MadeAxes = TypeVar("MadeAxes", bound=Axes | list[Axes])

FILE_BACKENDS = {"agg", "cairo", "pdf", "pgf", "ps", "svg", "template"}
"""Backends of matplotlib that show nothing."""
MAX_OPEN_FIGURES = 20
"""Windows of ours that wait for ``plt.show()``; of more, the oldest is let go.

The same number as matplotlib's ``figure.max_open_warning``.
"""

_aside = ContextVar("aside", default=False)
_open: list[ReferenceType[Figure]] = []


class NotebookAxes(Axes):
    """Axes of a figure made here; as the last line of a cell they are its picture."""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        return figure_mimebundle(self.get_figure(root=True), include, exclude)


class PanelList(list[Axes]):
    """The axes of a figure of several panels; as the last line of a cell they are its picture."""

    def __repr__(self) -> str:
        words = [ax.get_title(loc="left") or ax.get_xlabel() for ax in self]
        return f"<{len(self)} panels: {', '.join(words)}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        if not self:
            return {}
        return figure_mimebundle(self[0].get_figure(root=True), include, exclude)


def styled_figure(function: Callable[P, MadeAxes]) -> Callable[P, MadeAxes]:
    """Make a function draw inside `plot_style`, and offer the figure if it made one."""

    @wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> MadeAxes:
        with plot_style():
            made: Any = function(*args, **kwargs)
        if not isinstance(made, Axes):
            made = PanelList(made)
        if kwargs.get("ax") is None:
            first = made if isinstance(made, Axes) else made[0]
            hand_to_pyplot(first.get_figure(root=True))
        return made

    return inside


@contextmanager
def without_display() -> Iterator[None]:
    """Offer no figure that is made inside a ``with`` block."""
    token = _aside.set(True)
    try:
        yield
    finally:
        _aside.reset(token)


def hand_to_pyplot(figure: Figure | None) -> None:
    """Hand a finished figure to pyplot where that can show it."""
    if figure is None or _aside.get() or current_thread() is not main_thread():
        return
    # Who never imported pyplot does not expect windows, nor the time that it takes to load.
    if "matplotlib.pyplot" not in sys.modules and notebook_shell() is None:
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
    if notebook_shell() is not None:
        return  # it shows and closes what a cell has made
    _open[:] = [own for own in _open if own() is not None]
    _open.append(ref(figure))
    while len(_open) > MAX_OPEN_FIGURES:
        oldest = _open.pop(0)()
        if oldest is not None:
            plt.close(oldest)


def figure_mimebundle(figure: Figure | None, include: Any, exclude: Any) -> Any:
    """Return a figure as the notebook shows figures; pyplot must not show it a second time."""
    shell = notebook_shell()
    if shell is None or figure is None:
        return {}
    data, metadata = shell.display_formatter.format(figure, include, exclude)
    if not any(kind in data for kind in ("image/png", "image/svg+xml", "image/jpeg")):
        return {}
    plt = sys.modules.get("matplotlib.pyplot")
    if plt is not None:
        plt.close(figure)
    data.pop("text/plain", None)
    return data, metadata
