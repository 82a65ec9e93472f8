"""Figures that the package does not draw, in the look of those it does.

Colours, type and layout are those of `mcllo.plot`. `runs_figure` shows a number of many runs
beside the paper's; the studies draw the rest themselves, under ``@look()``, on a `Canvas`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib.style
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

import mcllo.plot
from mcllo.reproduce._result import BELOW_PRINTED, MIN_PRINTED_PVALUE

from .pages import Row, column

BLUE, VERMILION, SKY = "#0072b2", "#d55e00", "#56b4e9"
INK, MUTED, FAINT, BAND, PAPER = "#1f2328", "#59636e", "#c8ced5", "#dde2e8", "#ffffff"
SERIES = (BLUE, VERMILION, "#009e73", "#cc79a7", "#e69f00", SKY, INK)
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (2, 1.5)), (0, (7, 2, 1.5, 2)))
DASHES += ((0, (9, 3)), (0, (1, 1)), (0, (4, 1.5, 1.5, 1.5, 1.5, 1.5)))
MARKERS = "oDs^vPX"
TITLE, TEXT, SMALL = 10.5, 9.5, 8.5
FONTS = ["DejaVu Sans", "sans-serif"]
STYLE: dict[str, Any] = {
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.labelsize": TEXT,
    "axes.titlecolor": INK,
    "font.family": FONTS,
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": TEXT,
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "lines.linewidth": 1.5,
    "text.color": INK,
    "text.parse_math": False,
}
DOTS: dict[str, Any] = {"ls": "none", "marker": "o", "alpha": 0.75}
MIDDLE: dict[str, Any] = {"ls": "none", "marker": "|", "markeredgewidth": 2.2}
PRINTED: dict[str, Any] = {"ls": "none", "marker": "D", "markersize": 6.5}
PRINTED |= {"markeredgecolor": "white"}


@contextmanager
def look() -> Iterator[None]:
    """Use matplotlib's defaults with `STYLE`, as a context or a decorator."""
    with matplotlib.style.context(["default", STYLE]):
        yield


class Canvas(Figure):
    """A figure that lays itself out and that pyplot does not know."""

    def __init__(self, width: float, height: float) -> None:
        self.engine = ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.06)
        super().__init__(figsize=(width, height), layout=self.engine)

    def panels(self, rows: int = 1, columns: int = 1, **options: Any) -> list[Axes]:
        """Return plain axes, the left and lower spine only."""
        axes = list(self.subplots(rows, columns, squeeze=False, **options).flat)
        for ax in axes:
            ax.set_facecolor(PAPER)
            for name, spine in ax.spines.items():
                spine.set_visible(name in ("left", "bottom"))
                spine.set(color=MUTED, linewidth=0.8)
            ax.tick_params(
                labelsize=SMALL, color=MUTED, labelcolor=INK, labelfontfamily=FONTS
            )
        return axes

    def settle(self) -> None:
        """Fix the parts at rounded positions: the layout's last digits depend on its start."""
        with look():
            self.engine.execute(self)
        for ax in self.axes:
            ax.set_position(tuple(round(float(v), 4) for v in ax.get_position().bounds))
        self.set_layout_engine("none")

    def footer(self, text: str, key: Sequence[Artist] = ()) -> None:
        """Write a key and sentences under the figure, which grows by what they take."""
        width, height = self.get_size_inches()
        words = "\n".join(
            textwrap.wrap(text, max(24, int(width * 72 / (0.53 * SMALL))))
        )
        caption = (1.52 * SMALL * (words.count("\n") + 1) + 4) / 72 if words else 0.04
        foot = caption + (0.3 if key else 0.0)
        height += foot
        self.set_size_inches(width, height)
        self.engine.set(rect=(0.0, foot / height, 1.0, 1.0 - foot / height))
        left = 0.1 / width
        if words:
            style: dict[str, Any] = {
                "fontsize": SMALL,
                "color": MUTED,
                "linespacing": 1.3,
            }
            self.text(left, 0.07 / height, words, va="bottom", **style).set_in_layout(
                False
            )
        if key:
            place = {"loc": "lower left", "bbox_to_anchor": (left, caption / height)}
            space = {"borderaxespad": 0.0, "handletextpad": 0.5, "columnspacing": 1.6}
            legend = self.legend(handles=list(key), ncols=len(key), **place, **space)
            legend.set_in_layout(False)


def heading(ax: Axes, title: str, below: str = "") -> None:
    """Write a bold title over the axes, flush left, and a lighter line between them."""
    pad = 7 + 1.45 * SMALL * bool(below)
    ax.set_title(
        title, loc="left", fontsize=TITLE, fontweight="bold", color=INK, pad=pad
    )
    if below:
        where: dict[str, Any] = {
            "xycoords": "axes fraction",
            "textcoords": "offset points",
        }
        style: dict[str, Any] = {"fontsize": SMALL, "color": MUTED, "linespacing": 1.25}
        ax.annotate(
            below,
            (0.0, 1.0),
            xytext=(0, 5),
            va="bottom",
            annotation_clip=False,
            **where,
            **style,
        )


def line_look(k: int) -> dict[str, Any]:
    """Return colour, dashes and marker of the line `k`, which differ in all three."""
    return {
        "color": SERIES[k],
        "ls": DASHES[k],
        "marker": MARKERS[k],
        "markersize": 5.5,
    }


def side_legend(ax: Axes, handles: Sequence[Artist], names: Sequence[str]) -> None:
    """List the curves beside the axes."""
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.02, 1.0)}
    place |= {
        "borderaxespad": 0.0,
        "handlelength": 3.2,
        "labelcolor": INK,
        "fontsize": SMALL,
    }
    ax.legend(handles, names, **place)


def named_rows(ax: Axes, names: Sequence[str], foot: float = 0.6) -> None:
    """Give the axes a row for each name, the first above, and room under the last."""
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(names) - 1 + foot, -0.6)


def ticks(axis: Any, places: Sequence[float], word: Any = "{:g}".format) -> None:
    """Put ticks at these places and nowhere else."""
    axis.set_major_locator(FixedLocator(places))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: word(value)))


def save(axes: Axes | list[Axes], path: Path) -> None:
    """Write a figure, the same bytes on every run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = (axes[0] if isinstance(axes, list) else axes).get_figure(root=True)
    if isinstance(whole, Canvas):
        whole.settle()
    mcllo.plot.save(axes, path)


@look()
def runs_figure(
    rows: Sequence[Row],
    names: Mapping[str, str],
    panels: Sequence[tuple[str, str, str]],
    paper: Mapping[str, Row],
    *,
    height: float,
    sizes: tuple[float, float],
    ends: tuple[int, float, float],
    words: tuple[str, str],
) -> list[Axes]:
    """Draw p-value and two other numbers of every run, their median, and the paper's.

    The number ``what`` of the set ``name`` stands in the column ``what_name`` of the `rows`. Each
    panel is (what, title, line below), the first the p-value's on a log scale, with `ends`: the
    exponent of 10 of the smallest p shown, room beside it, right end. `sizes` are those of a point
    and of the median's mark, `words` what a point is and what stands under the figure.
    """
    figure = Canvas(9.6, height)
    axes = figure.panels(1, 3, sharey=True)
    lowest, room, right = ends
    dots, middle = DOTS | {"markersize": sizes[0]}, MIDDLE | {"markersize": sizes[1]}
    for ax, (what, _, _) in zip(axes, panels, strict=True):
        log = ax is axes[0]
        for place, name in enumerate(names):
            values = column(rows, f"{what}_{name}")
            values = np.log10(np.maximum(values, 10.0**lowest)) if log else values
            rank = np.argsort(np.argsort(values, kind="stable"), kind="stable")
            aside = 0.26 * (((rank * 7) % 11) / 5.0 - 1.0)  # so that equal values show
            ax.plot(values, place + aside, color=SKY, zorder=2, **dots)
            ax.plot(np.median(values), place, color=INK, zorder=3, **middle)
            printed = paper.get(name, {}).get(what.removesuffix("_chi2"))
            if printed is not None:
                below = printed == BELOW_PRINTED
                printed = MIN_PRINTED_PVALUE if below else printed
                mark = PRINTED | ({"marker": "<", "markersize": 8.5} if below else {})
                x = np.log10(printed) if log else printed
                ax.plot(x, place, color=VERMILION, zorder=4, **mark)
    p = axes[0]
    named_rows(p, list(names.values()))
    p.axvspan(lowest - room, np.log10(0.05), color=BAND, alpha=0.6, lw=0, zorder=0)
    p.set_xlim(lowest - room, right)
    marks = {t: f"1e−{-t}" for t in range(lowest, 0, 2)}
    marks |= {lowest: f"≤ 1e−{-lowest}", -2: "0.01", 0: "1"}
    ticks(p.xaxis, list(marks), lambda value: marks[round(value)])
    for ax, (what, title, under) in zip(axes, panels, strict=True):
        if what == "ece":
            ax.set_xlim(left=0.0)
        ax.tick_params(axis="y", length=0)
        heading(ax, title, under)
    key = [
        Line2D([], [], color=SKY, label=words[0], **dots),
        Line2D(
            [], [], color=INK, label="their median", **(middle | {"markersize": 11})
        ),
        Line2D([], [], color=VERMILION, label="the paper", **PRINTED),
    ]
    figure.footer(words[1], key)
    return axes
