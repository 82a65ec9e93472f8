"""One reliability curve on one axes; `reliability`, `reliability_by_class` and `comparison` use it.

====================  ======================================================================
boxes                 where the observed frequency of a bin lies with 95 % probability if the
                      predictions are right (`ReliabilityCurve.band_low`, `band_high`)
circles, diamonds     observed frequency at the mean prediction of a bin, inside and outside its
                      box; a vertical line is Wilson's interval where there are no boxes
bars                  rows in each bin: an axes of their own, or a strip below 0
====================  ======================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import NDArray

from .._reliability import ReliabilityCurve
from .._text import format_count
from .style import BAND, BLUE, FAINT, INK, MUTED, SMALL, VERMILION, plain_axes, unit_axes

STRIP = 0.17
"""Height of the strip of counts, in units of the vertical axis."""
NARROWEST = 0.08
"""Width of a bin that has room for its count."""
MANY_BINS = 20
"""Bins beyond which points are smaller and not joined: the line would show noise."""
HALF_BOX = 0.05
PATH = "#8b949e"
INSIDE: dict[str, Any] = {"marker": "o", "markersize": 6.5, "color": BLUE}
OUTSIDE: dict[str, Any] = {"marker": "D", "markersize": 6.5, "color": VERMILION}


def draw_curve(ax: Axes, curve: ReliabilityCurve, *, strip: bool) -> None:
    """Draw the line of agreement, the boxes, the points and, if asked, the strip of counts."""
    plain_axes(ax)
    ax.plot([0.0, 1.0], [0.0, 1.0], ls=(0, (4, 3)), lw=1.0, color=MUTED, zorder=2, label="_line")
    _draw_boxes(ax, curve)
    used = curve.counts > 0.0
    if used.sum() <= MANY_BINS:
        points = (curve.mean_predicted[used], curve.observed[used])
        ax.plot(*points, color=PATH, lw=0.9, zorder=3, label="_path")
    _points(ax, curve, used & ~curve.outside, INSIDE, "_inside")
    _points(ax, curve, used & curve.outside, OUTSIDE, "_outside")
    unit_axes(ax, bottom=-STRIP if strip else 0.0)
    if strip:
        _draw_strip(ax, curve)


def draw_counts(ax: Axes, curve: ReliabilityCurve) -> None:
    """Draw the number of rows in each bin, each bar with its number where there is room."""
    plain_axes(ax)
    widths = np.diff(curve.edges)
    ax.bar(
        curve.edges[:-1], curve.counts, widths, align="edge", color=FAINT, edgecolor=MUTED, lw=0.6
    )
    whole = bool((curve.counts == np.floor(curve.counts)).all())
    ax.set_ylabel("Rows" if whole else "Weight")
    if widths.min() < NARROWEST:
        ax.yaxis.set_major_locator(FixedLocator([0.0, float(curve.counts.max())]))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short_count(value)))
        return
    ax.set_ylim(0.0, 1.4 * curve.counts.max())
    ax.yaxis.set_major_locator(NullLocator())
    for middle, count in zip(curve.edges[:-1] + widths / 2.0, curve.counts, strict=True):
        ax.annotate(
            short_count(count) if count else "",
            (middle, count),
            xytext=(0, 1.5),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=SMALL,
            color=INK,
        )


def key(curve: ReliabilityCurve) -> list[Artist]:
    """Return what stands for what, for a legend."""
    if not np.isfinite(curve.band_low).any():
        return [Line2D([], [], lw=1.2, label=f"with {100 * curve.level:g} % interval", **INSIDE)]
    return [
        Patch(
            facecolor=BAND,
            edgecolor=FAINT,
            label=f"{100 * curve.level:g} % of points, if calibrated",
        ),
        Line2D([], [], ls="none", label="inside", **INSIDE),
        Line2D([], [], ls="none", label="outside", **OUTSIDE),
    ]


def short_count(count: float) -> str:
    """Return a count of at most five characters.

    Examples
    --------
    >>> [short_count(n) for n in (0, 812, 9321, 10234, 4.2e6, 2.5)]
    ['0', '812', '9,321', '10k', '4M', '2.5']
    """
    if count != int(count) and count < 100.0:
        return f"{count:.1f}"
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if count >= size:
            return f"{count / min(size, 1e3 if letter == 'k' else size):.0f}{letter}"
    return format_count(count)


def _draw_boxes(ax: Axes, curve: ReliabilityCurve) -> None:
    """Draw the bands over their bins, or the intervals of the points where there are no bands."""
    known = np.isfinite(curve.band_low)
    if not known.any():
        used = curve.counts > 0.0
        whole = (curve.mean_predicted[used], curve.low[used], curve.high[used])
        ax.vlines(*whole, color=BLUE, lw=1.2, zorder=3, label="_intervals")
        return
    left, right = curve.edges[:-1], curve.edges[1:]
    if curve.binning == "mass":  # a wide bin's box would stand far from its point
        left = np.maximum(left, curve.mean_predicted - HALF_BOX)
        right = np.minimum(right, curve.mean_predicted + HALF_BOX)
    ax.bar(
        left[known],
        (curve.band_high - curve.band_low)[known],
        (right - left)[known],
        curve.band_low[known],
        align="edge",
        color=BAND,
        edgecolor=FAINT,
        lw=0.6,
        zorder=1,
        label="_boxes",
    )


def _points(
    ax: Axes, curve: ReliabilityCurve, which: NDArray[np.bool_], look: dict[str, Any], label: str
) -> None:
    if not which.any():
        return  # an empty line that is not clipped would reach to the corner of the figure
    small = {"markersize": 4.5} if (curve.counts > 0.0).sum() > MANY_BINS else {}
    ax.plot(
        curve.mean_predicted[which],
        curve.observed[which],
        ls="none",
        markeredgecolor="white",
        markeredgewidth=0.7,
        zorder=4,
        clip_on=False,
        label=label,
        **look | small,
    )


def _draw_strip(ax: Axes, curve: ReliabilityCurve) -> None:
    used = curve.counts > 0.0
    ax.bar(
        curve.edges[:-1][used],
        0.82 * STRIP * curve.counts[used] / curve.counts.max(),
        np.diff(curve.edges)[used],
        -STRIP,
        align="edge",
        color=FAINT,
        edgecolor=MUTED,
        lw=0.5,
        label="_counts",
    )
