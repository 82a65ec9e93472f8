"""Curves of reliability without bins, on one axes.

====================  ======================================================================
smooth curve          the line, and its band: curves that explain the labels nearly as well
                      (`SmoothCurve`); hollow points are the same in bins
isotonic curve        the steps, straight lines between them, over the grey band of calibrated
                      predictions (`IsotonicCurve`); thick where it leaves the band
outcomes              rows that hit upwards, that did not downwards: an axes of their own
strip                 rows in each bin, below 0
====================  ======================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from .._inference.consistency import IsotonicCurve
from .._utils.formatting import format_count
from .._utils.results import Floats
from ..metrics._reliability import ReliabilityCurve
from ..metrics._smooth import SmoothCurve
from ._style import (
    BAND,
    BLUE,
    FAINT,
    INK,
    MUTED,
    PAPER,
    VERMILION,
    key_mark,
    note,
    plain_axes,
    set_ticks,
)

STRIP_HEIGHT = 0.17
"""Height of the strip of counts, in units of the vertical axis."""
BAND_OPACITY = 0.2
"""How much of its colour the band of a smooth curve has."""
THICK: dict[str, Any] = {"color": VERMILION, "lw": 3.4, "solid_capstyle": "round"}
MIN_POINT_AREA = 9.0  # of the emptiest bin, in square points
MAX_POINT_AREA = 36.0  # of the fullest bin
N_OUTCOMES = 40
"""Bars of the outcomes' histogram."""


def draw_agreement(ax: Axes) -> None:
    """Draw the line on which predicted and observed agree."""
    ax.plot([0.0, 1.0], [0.0, 1.0], ls=(0, (4, 3)), lw=1.0, color=MUTED, zorder=2, label="_line")


def draw_boxes(
    ax: Axes, left: Floats, width: Floats, bottom: Floats, height: Floats, **look: Any
) -> None:
    """Draw rectangles as one artist, in a fraction of the time that as many bars take."""
    right, top = left + width, bottom + height
    corners = [(left, bottom), (right, bottom), (right, top), (left, top)]
    boxes = list(np.array(corners).transpose(2, 0, 1))
    ax.add_collection(PolyCollection(boxes, joinstyle="miter", zorder=1, **look), autolim=False)


def draw_strip(ax: Axes, bins: ReliabilityCurve) -> None:
    """Draw how many rows there are in each bin, as bars below 0."""
    used = bins.counts > 0.0
    height = 0.82 * STRIP_HEIGHT * bins.counts / bins.counts.max()
    left, width = bins.edges[:-1][used], np.diff(bins.edges)[used]
    look: dict[str, Any] = {"facecolor": FAINT, "edgecolor": MUTED, "lw": 0.5, "label": "_counts"}
    draw_boxes(ax, left, width, np.full_like(left, -STRIP_HEIGHT), height[used], **look)
    middle = 0.5 * (bins.edges[:-1] + bins.edges[1:])
    halves = (middle <= 0.5, middle > 0.5)
    tallest = [float(height[half].max(initial=0.0)) for half in halves]
    if min(tallest) < 0.45 * STRIP_HEIGHT:  # there is room for words over the low bars of one half
        first = tallest[0] <= tallest[1]
        words = f"up to {short_count(bins.counts.max())} rows"
        place: dict[str, Any] = {"ha": "left" if first else "right", "va": "top", "color": MUTED}
        note(ax, words, (0.0 if first else 1.0, 0.0), (0, -3), "data", **place)


def short_count(count: float) -> str:
    """Return a count of at most five characters: 812, 9,321, 10k, 4M, 2.5."""
    if count != int(count) and count < 100.0:
        return f"{count:.1f}"
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if count >= size:
            return f"{count / min(size, 1e3 if letter == 'k' else size):.0f}{letter}"
    return format_count(count)


def draw_smooth(ax: Axes, curve: SmoothCurve, bins: ReliabilityCurve) -> None:
    """Draw a smooth curve with its band, and the points of the bins."""
    look: dict[str, Any] = {
        "color": BLUE,
        "alpha": BAND_OPACITY,
        "lw": 0,
        "zorder": 1,
        "label": "_band",
    }
    ax.fill_between(curve.predicted, curve.low, curve.high, **look)
    used = bins.counts > 0.0
    share = np.sqrt(bins.counts[used] / bins.counts.max())
    ax.scatter(
        bins.mean_predicted[used],
        bins.observed[used],
        MIN_POINT_AREA + (MAX_POINT_AREA - MIN_POINT_AREA) * share,
        facecolor=PAPER,
        edgecolor=MUTED,
        linewidth=0.9,
        zorder=3,
        clip_on=False,
        label="_bins",
    )
    ax.plot(curve.predicted, curve.observed, color=BLUE, lw=2.0, zorder=4, label="_curve")


def draw_isotonic(ax: Axes, curve: IsotonicCurve) -> None:
    """Draw an isotonic curve over the band of calibrated predictions."""
    if np.isfinite(curve.band_low).any():
        low, high = curve.band_low, curve.band_high
        look: dict[str, Any] = {"facecolor": BAND, "edgecolor": FAINT, "lw": 0.6, "zorder": 1}
        ax.fill_between(curve.predicted, low, high, label="_band", **look)
    ends = np.ravel([*zip(curve.blocks["from"], curve.blocks["to"], strict=True)])
    levels = np.repeat(curve.blocks["observed"], 2)
    ax.plot(ends, levels, color=BLUE, lw=1.8, zorder=4, label="_curve")
    for x, y in _runs(curve):
        ax.plot(x, y, zorder=5, label="_outside", **THICK)


def _runs(curve: IsotonicCurve) -> list[tuple[Floats, Floats]]:
    """Return the parts of the curve outside its band, a little longer where one is a point."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], curve.outside, [False]])))
    runs = []
    for first, last in zip(edges[::2], edges[1::2], strict=True):
        x = curve.predicted[first:last]
        if len(x) == 1:
            x = np.clip([x[0] - 0.004, x[0] + 0.004], curve.predicted[0], curve.predicted[-1])
        runs.append((x, curve.at(x)))
    return runs


def draw_outcomes(ax: Axes, bins: ReliabilityCurve) -> None:
    """Draw rows that hit upwards and rows that did not downwards, as square roots of their number.

    Few misses beside many hits would else be invisible.
    """
    plain_axes(ax)
    hits = np.where(bins.counts > 0.0, bins.counts * bins.observed, 0.0)
    misses = bins.counts - hits
    left, width = bins.edges[:-1], np.diff(bins.edges)
    up, down = np.sqrt(hits), np.sqrt(np.maximum(misses, 0.0))
    ax.bar(left, up, width, align="edge", color=BLUE, lw=0, label="_hits")
    ax.bar(left, -down, width, align="edge", color=VERMILION, lw=0, label="_misses")
    ax.axhline(0.0, color=MUTED, lw=0.8, label="_zero")
    least = 0.3 * max(up.max(), down.max())
    ax.set_ylim(-1.08 * max(down.max(), least), 1.08 * max(up.max(), least))
    set_ticks(ax.yaxis, [], str)
    look: dict[str, Any] = {"ha": "right", "color": INK}
    for total, word, place, side in (
        (hits.sum(), "came true", 1.0, "top"),
        (misses.sum(), "did not", 0.0, "bottom"),
    ):
        words = f"{word}\n{format_count(total)}"
        note(ax, words, (0.0, place), (-7, 0), va=side, linespacing=1.15, **look)


def smooth_key(curve: SmoothCurve) -> list[Artist]:
    """Return what stands for what beside a smooth curve."""
    return [
        Line2D([], [], color=BLUE, lw=2.0, label="smooth curve"),
        Patch(facecolor=BLUE, alpha=BAND_OPACITY, label=f"{100 * curve.level:g} % band"),
        key_mark("o", MUTED, "bins", PAPER, size=4.5),
    ]


def isotonic_key(curve: IsotonicCurve) -> list[Artist]:
    """Return what stands for what beside an isotonic curve."""
    made: list[Artist] = [Line2D([], [], color=BLUE, lw=1.8, label="isotonic curve")]
    if np.isfinite(curve.band_low).any():
        share = f"{100 * curve.level:g} %"
        made.append(Patch(facecolor=BAND, edgecolor=FAINT, label=f"{share} band, if calibrated"))
        made.append(Line2D([], [], label="outside", **THICK))
    return made
