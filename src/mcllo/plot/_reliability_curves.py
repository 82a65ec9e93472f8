"""What a reliability diagram draws on one axes: a curve, what belongs to it, and how many rows.

==============  ====================================================================================
bins            circles and diamonds, the observed frequency at the mean prediction of a bin, inside
                and outside its box; the box is where it lies with 95 % probability if the
                predictions are right (`ReliabilityCurve.band_low`, `band_high`), a vertical line is
                Wilson's interval where there are no boxes; the line skips bins of few rows
smooth curve    the line, and its band: curves that explain the labels nearly as well
                (`SmoothCurve`), where there are rows (`range_of_many_rows`); hollow points are the
                same in bins
isotonic curve  the steps, straight lines between them, over the grey band of calibrated predictions
                (`IsotonicCurve`); thick where it leaves the band
rows            bars of the bins, an axes of their own (`draw_count_bars`) or a strip below 0
                (`draw_count_strip`); or rows that hit upwards, that did not downwards
                (`draw_hits_and_misses`)
==============  ====================================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray

from .._inference.consistency import IsotonicCurve
from .._utils.formatting import format_count
from .._utils.results import Floats
from .._validation.predictions import Predictions
from ..metrics._bins import weighted_quantile
from ..metrics._reliability import ReliabilityCurve, values_and_hits
from ..metrics._smooth import SmoothCurve
from ._style import (
    BAND,
    BLUE,
    FAINT,
    INK,
    MUTED,
    PAPER,
    REFERENCE_DASHES,
    VERMILION,
    legend_marker,
    set_ticks,
    set_unit_range,
    style_axes,
    write_small_text,
)

STRIP_HEIGHT = 0.17
"""Height of the strip of counts, in units of the vertical axis."""
MIN_ROWS = 10
"""Bins of fewer rows show chance: a frequency of nine rows has a standard error of up to 0.17."""
BAND_OPACITY = 0.2
"""How much of its colour the band of a smooth curve has."""
INSIDE: dict[str, Any] = {"marker": "o", "markersize": 6.5, "color": BLUE}
OUTSIDE: dict[str, Any] = {"marker": "D", "markersize": 6.5, "color": VERMILION}
FEW_ROWS: dict[str, Any] = {
    "marker": "o",
    "markersize": 4.0,
    "color": MUTED,
    "markerfacecolor": PAPER,
    "markeredgecolor": MUTED,
}
WHITE_EDGE: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.7}
THICK: dict[str, Any] = {"color": VERMILION, "lw": 3.4, "solid_capstyle": "round"}


def draw_identity_line(ax: Axes) -> None:
    """Draw the line on which predicted and observed agree."""
    ends = [0.0, 1.0]
    ax.plot(
        ends, ends, ls=REFERENCE_DASHES, lw=1.0, color=MUTED, zorder=2, label="_line"
    )


def draw_rectangles(
    ax: Axes, left: Floats, right: Floats, bottom: Floats, top: Floats, **look: Any
) -> None:
    """Draw rectangles as one artist, in a fraction of the time that as many bars take."""
    corners = [(left, bottom), (right, bottom), (right, top), (left, top)]
    rectangles = list(np.array(corners).transpose(2, 0, 1))
    collection = PolyCollection(rectangles, joinstyle="miter", zorder=1, **look)
    ax.add_collection(collection, autolim=False)


def short_count(count: float) -> str:
    """Return a count of at most five characters: 812, 9,321, 10k, 4M, 2.5."""
    if count != int(count) and count < 100.0:
        return f"{count:.1f}"
    for least, unit, letter in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if count >= least:
            return f"{count / unit:.0f}{letter}"
    return format_count(count)


def point_areas(
    bins: ReliabilityCurve, shown: NDArray[np.bool_], largest: float = 36.0
) -> Any:
    """Return areas of the shown points in square points, up to `largest` for the fullest bin."""
    # by the root, or the points of most bins would be too small to see
    share = np.sqrt(bins.counts[shown] / bins.counts.max())
    smallest = 9.0
    return smallest + (largest - smallest) * share


def has_enough_rows(bins: ReliabilityCurve, min_rows: float) -> NDArray[np.bool_]:
    """Return which bins hold so many rows that a line may run through them."""
    mask: NDArray[np.bool_] = (bins.counts > 0.0) & (bins.counts >= min_rows)
    return mask


def path_through_bins(bins: ReliabilityCurve, min_rows: float) -> tuple[Floats, Floats]:
    """Return the line through the bins of enough rows; it breaks at those of fewer."""
    used = bins.counts > 0.0
    enough = has_enough_rows(bins, min_rows)[used]
    x = np.where(enough, bins.mean_predicted[used], np.nan)
    y = np.where(enough, bins.observed[used], np.nan)
    return x, y


def range_of_many_rows(rows: Predictions | None, curve: SmoothCurve) -> slice:
    """Return the part of a smooth curve that has rows on both sides.

    From the quantile ``10 / max(n, 200)`` of the predictions to one less that: the tenth smallest
    to the tenth largest, as Harrell's `rms` draws splines. Beyond, a few rows bend the curve.
    """
    whole = slice(0, len(curve.predicted))
    if rows is None:
        return whole
    values, _ = values_and_hits(rows, curve.label)
    share = 10.0 / max(float(rows.row_weight.sum()), 200.0)
    low, high = weighted_quantile(values, [share, 1.0 - share], rows.sample_weight)
    first = int(np.searchsorted(curve.predicted, low, side="right")) - 1
    last = int(np.searchsorted(curve.predicted, high, side="left")) + 1
    part = slice(max(first, 0), last)
    return part if len(curve.predicted[part]) > 2 else whole


def draw_binned_curve(
    ax: Axes, curve: ReliabilityCurve, *, strip: bool, min_rows: float = MIN_ROWS
) -> None:
    """Draw the line of agreement, the boxes, the points and, if asked, the strip of counts."""
    style_axes(ax)
    draw_identity_line(ax)
    if np.isfinite(curve.band_low).any():
        draw_consistency_boxes(ax, curve)
    else:
        draw_wilson_intervals(ax, curve)
    used = curve.counts > 0.0
    smaller: dict[str, Any] = {}
    if used.sum() > 20:  # so many are not joined: the line would show noise
        smaller["markersize"] = 4.5
    else:
        x, y = path_through_bins(curve, min_rows)
        ax.plot(x, y, color="#8b949e", lw=0.9, zorder=3, label="_path")
    enough = has_enough_rows(curve, min_rows)
    for shown, look, label in (
        (enough & ~curve.outside, INSIDE, "_inside"),
        (enough & curve.outside, OUTSIDE, "_outside"),
        (used & ~enough, FEW_ROWS, "_few"),
    ):
        if not shown.any():
            continue  # an empty line that is not clipped would reach to the figure's corner
        ax.plot(
            curve.mean_predicted[shown],
            curve.observed[shown],
            ls="none",
            zorder=4,
            clip_on=False,
            label=label,
            **(WHITE_EDGE | look | smaller),
        )
    set_unit_range(ax, bottom=-STRIP_HEIGHT if strip else 0.0)
    if strip:
        draw_count_strip(ax, curve)


def draw_consistency_boxes(ax: Axes, curve: ReliabilityCurve) -> None:
    """Draw the bands of the bins as boxes over them."""
    left = curve.edges[:-1]
    right = curve.edges[1:]
    if curve.binning == "mass":  # a wide bin's box would stand far from its point
        left = np.maximum(left, curve.mean_predicted - 0.05)
        right = np.minimum(right, curve.mean_predicted + 0.05)
    known = np.isfinite(curve.band_low)
    draw_rectangles(
        ax,
        left[known],
        right[known],
        curve.band_low[known],
        curve.band_high[known],
        facecolor=BAND,
        edgecolor=FAINT,
        lw=0.6,
        label="_boxes",
    )


def draw_wilson_intervals(ax: Axes, curve: ReliabilityCurve) -> None:
    """Draw the intervals of the points."""
    used = curve.counts > 0.0
    x = curve.mean_predicted[used]
    low = curve.low[used]
    high = curve.high[used]
    ax.vlines(x, low, high, color=BLUE, lw=1.2, zorder=3, label="_intervals")


def draw_count_strip(ax: Axes, bins: ReliabilityCurve, *, roots: bool = False) -> None:
    """Draw how many rows there are in each bin, as bars below 0.

    Of square `roots` the few beside the many can be seen; they have no numbers.
    """
    used = bins.counts > 0.0
    share = bins.counts / bins.counts.max()
    height = 0.82 * STRIP_HEIGHT * (np.sqrt(share) if roots else share)
    left = bins.edges[:-1]
    right = bins.edges[1:]
    bottom = np.full(len(height), -STRIP_HEIGHT)
    draw_rectangles(
        ax,
        left[used],
        right[used],
        bottom[used],
        (bottom + height)[used],
        facecolor=FAINT,
        edgecolor=MUTED,
        lw=0.5,
        label="_counts",
    )
    if roots:
        return
    # There is room for words over the bars of one half, where they are low.
    is_left = 0.5 * (left + right) <= 0.5
    tallest_left = float(height[is_left].max(initial=0.0))
    tallest_right = float(height[~is_left].max(initial=0.0))
    if min(tallest_left, tallest_right) >= 0.45 * STRIP_HEIGHT:
        return
    words = f"up to {short_count(bins.counts.max())} rows"
    if tallest_left <= tallest_right:
        write_small_text(
            ax, words, (0.0, 0.0), (0, -3), "data", ha="left", va="top", color=MUTED
        )
    else:
        write_small_text(
            ax, words, (1.0, 0.0), (0, -3), "data", ha="right", va="top", color=MUTED
        )


def draw_count_bars(ax: Axes, curve: ReliabilityCurve) -> None:
    """Draw the number of rows in each bin, each bar with its number where there is room."""
    style_axes(ax)
    left = curve.edges[:-1]
    width = np.diff(curve.edges)
    ax.bar(
        left, curve.counts, width, align="edge", color=FAINT, edgecolor=MUTED, lw=0.6
    )
    are_whole = bool((curve.counts == np.floor(curve.counts)).all())
    ax.set_ylabel("Rows" if are_whole else "Weight")
    most = float(curve.counts.max())
    if width.min() < 0.08:  # too narrow for its number
        set_ticks(ax.yaxis, [0.0, most], short_count)
        return
    ax.set_ylim(0.0, 1.4 * most)
    ax.yaxis.set_major_locator(NullLocator())
    for middle, count in zip(left + width / 2.0, curve.counts, strict=True):
        word = short_count(count) if count else ""
        write_small_text(
            ax,
            word,
            (middle, count),
            (0, 1.5),
            "data",
            color=INK,
            ha="center",
            va="bottom",
        )


def bins_legend(curve: ReliabilityCurve, min_rows: float = MIN_ROWS) -> list[Artist]:
    """Return what stands for what, for a legend."""
    share = f"{100 * curve.level:g} %"
    if not np.isfinite(curve.band_low).any():
        return [Line2D([], [], lw=1.2, label=f"with {share} interval", **INSIDE)]
    entries: list[Artist] = [
        Patch(
            facecolor=BAND, edgecolor=FAINT, label=f"{share} of points, if calibrated"
        ),
        Line2D([], [], ls="none", label="inside", **INSIDE),
        Line2D([], [], ls="none", label="outside", **OUTSIDE),
    ]
    has_few = (curve.counts > 0.0) & (curve.counts < min_rows)
    if has_few.any():
        words = f"< {min_rows:g} rows"
        entries.append(Line2D([], [], ls="none", label=words, **FEW_ROWS))
    return entries


def draw_smooth_curve(ax: Axes, curve: SmoothCurve, part: slice) -> None:
    """Draw a part of a smooth curve with its band."""
    ax.fill_between(
        curve.predicted[part],
        curve.low[part],
        curve.high[part],
        color=BLUE,
        alpha=BAND_OPACITY,
        lw=0,
        zorder=1,
        label="_band",
    )
    ax.plot(
        curve.predicted[part],
        curve.observed[part],
        color=BLUE,
        lw=2.0,
        zorder=4,
        solid_capstyle="butt",
        label="_curve",
    )


def draw_hollow_points(ax: Axes, bins: ReliabilityCurve, min_rows: float) -> None:
    """Draw the points of bins of enough rows, to compare with a curve."""
    shown = has_enough_rows(bins, min_rows)
    ax.scatter(
        bins.mean_predicted[shown],
        bins.observed[shown],
        point_areas(bins, shown),
        facecolor=PAPER,
        edgecolor=MUTED,
        linewidth=0.9,
        zorder=3,
        clip_on=False,
        label="_bins",
    )


def smooth_legend(curve: SmoothCurve, *, points: bool) -> list[Artist]:
    """Return what stands for what beside a smooth curve, with `points` of bins or without."""
    entries: list[Artist] = [
        Line2D([], [], color=BLUE, lw=2.0, label="smooth curve"),
        Patch(
            facecolor=BLUE, alpha=BAND_OPACITY, label=f"{100 * curve.level:g} % band"
        ),
    ]
    if points:
        entries.append(legend_marker("o", MUTED, "bins", PAPER, size=4.5))
    return entries


def draw_isotonic_curve(ax: Axes, curve: IsotonicCurve) -> None:
    """Draw an isotonic curve over the band of calibrated predictions."""
    if np.isfinite(curve.band_low).any():
        ax.fill_between(
            curve.predicted,
            curve.band_low,
            curve.band_high,
            facecolor=BAND,
            edgecolor=FAINT,
            lw=0.6,
            zorder=1,
            label="_band",
        )
    ends = np.column_stack([curve.blocks["from"], curve.blocks["to"]]).ravel()
    levels = np.repeat(curve.blocks["observed"], 2)
    ax.plot(ends, levels, color=BLUE, lw=1.8, zorder=4, label="_curve")
    for x in predictions_outside_band(curve):
        ax.plot(x, curve.at(x), zorder=5, label="_outside", **THICK)


def predictions_outside_band(curve: IsotonicCurve) -> list[Floats]:
    """Return the predictions of each part of a curve that is outside its band."""
    is_outside = np.concatenate([[False], curve.outside, [False]])
    changes = np.flatnonzero(np.diff(is_outside))  # into a part and out of it in turn
    parts = []
    for first, end in changes.reshape(-1, 2):
        x = curve.predicted[first:end]
        if len(x) == 1:  # nobody would see a line of one point
            x = np.array([x[0] - 0.004, x[0] + 0.004])
            x = np.clip(x, curve.predicted[0], curve.predicted[-1])
        parts.append(x)
    return parts


def isotonic_legend(curve: IsotonicCurve) -> list[Artist]:
    """Return what stands for what beside an isotonic curve."""
    made: list[Artist] = [Line2D([], [], color=BLUE, lw=1.8, label="isotonic curve")]
    if np.isfinite(curve.band_low).any():
        share = f"{100 * curve.level:g} %"
        made.append(
            Patch(facecolor=BAND, edgecolor=FAINT, label=f"{share} band, if calibrated")
        )
        made.append(Line2D([], [], label="outside", **THICK))
    return made


def draw_hits_and_misses(ax: Axes, bins: ReliabilityCurve) -> None:
    """Draw rows that hit upwards and rows that did not downwards, as square roots of their number.

    Few misses beside many hits would else be invisible.
    """
    style_axes(ax)
    hits = np.where(bins.counts > 0.0, bins.counts * bins.observed, 0.0)
    misses = bins.counts - hits
    up = np.sqrt(hits)
    down = np.sqrt(
        np.maximum(misses, 0.0)
    )  # rounding may leave a little less than none
    left = bins.edges[:-1]
    width = np.diff(bins.edges)
    ax.bar(left, up, width, align="edge", color=BLUE, lw=0, label="_hits")
    ax.bar(left, -down, width, align="edge", color=VERMILION, lw=0, label="_misses")
    ax.axhline(0.0, color=MUTED, lw=0.8, label="_zero")
    least = 0.3 * max(up.max(), down.max())  # the words of each side need room
    ax.set_ylim(-1.08 * max(down.max(), least), 1.08 * max(up.max(), least))
    set_ticks(ax.yaxis, [], str)
    look = {"ha": "right", "color": INK, "linespacing": 1.15}
    write_small_text(
        ax,
        f"came true\n{format_count(hits.sum())}",
        (0.0, 1.0),
        (-7, 0),
        va="top",
        **look,
    )
    write_small_text(
        ax,
        f"did not\n{format_count(misses.sum())}",
        (0.0, 0.0),
        (-7, 0),
        va="bottom",
        **look,
    )
