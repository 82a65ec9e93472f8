"""Two figures that the package does not draw: the mean change of ECE, and sharp predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MultipleLocator, NullLocator

from mcllo._plot.layout import OwnFigure, footer, heading, side_legend
from mcllo._plot.style import (
    BLUE,
    DASHES,
    INK,
    MARKERS,
    MUTED,
    SERIES,
    VERMILION,
    plain_axes,
    styled,
)

Rows = Sequence[dict[str, Any]]

DEFAULT: dict[str, Any] = {"color": BLUE, "ls": "-", "marker": "o", "markersize": 6}
CHI2: dict[str, Any] = {"color": VERMILION, "ls": DASHES[1], "marker": "D", "markersize": 5.5}
FAIR: dict[str, Any] = {"color": INK, "ls": (0, (1, 1.5)), "marker": "x", "markersize": 6.5}
LEVEL: dict[str, Any] = {"color": MUTED, "lw": 1.0, "ls": (0, (4, 3))}


@styled
def difference_figure(rows: Rows) -> Axes:
    """Draw by how much MCLLO lowers the mean ECE, a line per n, as the paper's Figure does."""
    ax = OwnFigure(6.4, 4.4).subplots()
    plain_axes(ax)
    handles, names = list[Artist](), list[str]()
    for k, n in enumerate(sorted({row["n"] for row in rows}, reverse=True)):
        line = [row for row in rows if row["n"] == n]
        x, y = [row["delta_1"] for row in line], [row["difference"] for row in line]
        reach = [1.96 * row["difference_se"] for row in line]
        ends = [[m + s * r for m, r in zip(y, reach, strict=True)] for s in (-1, 1)]
        look = {"color": SERIES[k], "ls": DASHES[k], "marker": MARKERS[k], "markersize": 5.5}
        ax.fill_between(x, *ends, color=SERIES[k], alpha=0.15, lw=0)
        handles += ax.plot(x, y, **look)
        names.append(f"n = {n:,}")
    ax.axhline(0.0, **LEVEL)
    ax.xaxis.set_major_locator(FixedLocator(sorted({row["delta_1"] for row in rows})))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_major_locator(MultipleLocator(0.005))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3f}".replace("-", "−")))
    ax.set_xlabel("delta of the first class (1: the predictions are calibrated)")
    ax.set_ylabel("Mean ECE as drawn minus after MCLLO")
    heading(ax, "By how much MCLLO lowers ECE", "on the rows it was fitted to; dashed: no change")
    side_legend(ax, handles, names)
    footer(ax, ["Bands: 95 % intervals of the simulation."])
    return ax


@styled
def sharp_figure(rows: Rows) -> list[Axes]:
    """Draw size and power of the default p-value and of chi-square's on sharp rows."""
    axes = list(OwnFigure(9.0, 3.7).subplots(1, 2))
    for ax, effect in zip(axes, ("null", "overconfident"), strict=True):
        plain_axes(ax)
        line = [row for row in rows if row["effect"] == effect]
        _rates(ax, line, ("rejected_chi2", "low_chi2", "high_chi2"), CHI2, 1.02)
        _rates(ax, line, ("rejected", "low", "high"), DEFAULT, 0.98)
        _sizes(ax, [row["n"] for row in line])
        ax.axhline(0.05, **LEVEL)
    size, power = axes
    power.plot(
        [row["n"] for row in rows if row["effect"] == "overconfident"],
        [row["chi2_fair"] for row in rows if row["effect"] == "overconfident"],
        **FAIR,
    )
    size.set_ylim(0.0, None)
    power.set_ylim(0.0, 1.02)
    size.set_ylabel("Rejection rate")
    heading(size, "Nothing is wrong", "every rejection is an error; dashed: the level, 0.05")
    heading(power, "Overconfident, gamma = 0.7", "every rejection is right; note the other scale")
    key = [
        Line2D([], [], label="default p-value", **DEFAULT),
        Line2D([], [], label="chi-square", **CHI2),
        Line2D([], [], label="chi-square at the level that holds 5 % on the left", **FAIR),
    ]
    footer(size, ["Bars: 95 % intervals of the simulation."], key)
    return axes


def _rates(
    ax: Axes, rows: Rows, names: tuple[str, str, str], look: dict[str, Any], aside: float
) -> None:
    """Draw rates with intervals, a little aside so that the bars of two tests do not meet."""
    middle, low, high = ([row[name] for row in rows] for name in names)
    n = [aside * row["n"] for row in rows]
    ax.vlines(n, low, high, color=look["color"], lw=1.2, alpha=0.6)
    ax.plot(n, middle, **look)


def _sizes(ax: Axes, sizes: Sequence[int]) -> None:
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(FixedLocator(sizes))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    ax.set_xlabel("Rows in the data set (n, log scale)")
