"""Curves of reliability without bins, on one axes.

====================  ======================================================================
smooth curve          the line, and its band: curves that explain the labels nearly as well
                      (`SmoothCurve`); hollow points are the same in bins
isotonic curve        the steps, straight lines between them, over the grey band of calibrated
                      predictions (`IsotonicCurve`); thick where it leaves the band
outcomes              rows that hit upwards, that did not downwards: an axes of their own
strip                 rows in each bin, below 0
====================  ======================================================================

Several sets of predictions on one reliability diagram: models, or one model and its
recalibrations.

==========  ======================================================================================
line        one for each set, told by colour, dashes and marks: through the bins (the area of a mark
            is its share of the rows), smooth (with bands while these are few) or isotonic
rows        an outline of the counts for each set, in an axes of their own
key         the name of each set and its ECE, with as many bins as `mcllo.assess` takes
==========  ======================================================================================

There are no boxes of what chance allows: they would hide each other. Draw a set by itself for them.

Reliability diagrams of an assessment: of the most probable class, and class by class.

One curve on one axes: of bins (here; `comparison` uses it too), smooth or isotonic (`_curves`).

====================  ======================================================================
boxes                 where the observed frequency of a bin lies with 95 % probability if the
                      predictions are right (`ReliabilityCurve.band_low`, `band_high`)
circles, diamonds     observed frequency at the mean prediction of a bin, inside and outside its
                      box; a vertical line is Wilson's interval where there are no boxes
bars                  rows in each bin: an axes of their own, or a strip below 0
====================  ======================================================================
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import NullLocator

from .._assessment.assessment import Assessment
from .._comparison.comparison import Comparison
from .._comparison.recommend import UNCALIBRATED
from .._inference.consistency import IsotonicCurve, isotonic_curve
from .._utils.formatting import format_count, format_number
from .._utils.results import Floats
from .._validation.predictions import Predictions
from ..exceptions import InputError
from ..metrics._binned import ClasswiseECE
from ..metrics._bins import Binning, NBins
from ..metrics._isotonic import pooled_predictions
from ..metrics._reliability import ReliabilityCurve, reliability_curve
from ..metrics._smooth import SmoothCurve, calibration_distances, smooth_curve
from ._layout import (
    OwnFigure,
    Place,
    Places,
    count_axes,
    footer,
    heading,
    label_outer,
    one_axes,
    panel_room,
    panels,
    side_legend,
)
from ._style import (
    BAND,
    BLUE,
    DASHES,
    FAINT,
    INK,
    MARKERS,
    MUTED,
    PAPER,
    SERIES,
    SMALL_PT,
    TITLE_PT,
    VERMILION,
    key_mark,
    note,
    plain_axes,
    set_ticks,
    styled_figure,
    unit_axes,
)
from ._words import caption as caption_of
from ._words import format_signed, shown_all, text_width

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


MAX_SETS_WITH_BANDS = 3
"""Sets up to which smooth curves have bands."""


class Line(NamedTuple):
    """One set: its name, rows, ECE and bins."""

    name: str
    rows: Predictions
    ece: float
    bins: ReliabilityCurve

    @property
    def entry(self) -> str:
        """What the key says of it."""
        return f"{self.name}: ECE {format_number(self.ece)}"


def collect_lines(
    result: Mapping[str, Assessment] | Comparison, n_bins: NBins, binning: Binning
) -> list[Line]:
    """Return the sets to draw: assessments by name, or a comparison's rows before and after."""
    if isinstance(result, Comparison):
        ranked = sorted(result.ranked, key=lambda row: row.method != UNCALIBRATED)
        sets = [(row.method, result.recalibrated[row.method], row.ece) for row in ranked]
        sets = [(name.replace("_", " "), rows, ece) for name, rows, ece in sets[: len(SERIES)]]
    else:
        sets = [(str(name), a.predictions, a.metrics["ece"]) for name, a in result.items()]
    if not 1 <= len(sets) <= len(SERIES):
        raise InputError(
            f"assessment must hold 1 to {len(SERIES)} assessments by name; got {len(sets)}. "
            "More lines cannot be told apart: draw them in turn."
        )
    names = shown_all([name for name, _, _ in sets])
    return [
        Line(name, rows, ece, reliability_curve(rows, n_bins=n_bins, binning=binning))
        for name, (_, rows, ece) in zip(names, sets, strict=True)
    ]


def draw_lines(ax: Axes, lines: list[Line], curve: str) -> list[Artist]:
    """Draw a line for each set; return what stands for what."""
    plain_axes(ax)
    draw_agreement(ax)
    key: list[Artist] = []
    for k, line in enumerate(lines):
        colour, dashes, marker = SERIES[k], DASHES[k], MARKERS[k]
        look: dict[str, Any] = {"color": colour, "ls": dashes, "zorder": 3 + 0.01 * k}
        if curve == "bins":
            used = line.bins.counts > 0.0
            share = np.sqrt(line.bins.counts[used] / line.bins.counts.max())
            x, y = line.bins.mean_predicted[used], line.bins.observed[used]
            area: Any = MIN_POINT_AREA + (1.4 * MAX_POINT_AREA - MIN_POINT_AREA) * share
            ax.plot(x, y, lw=1.6, label=f"_line{k}", **look)
            points: dict[str, Any] = {"marker": marker, "color": colour, "linewidth": 0.7}
            points |= {"edgecolor": "white", "zorder": 4, "clip_on": False, "label": f"_bins{k}"}
            ax.scatter(x, y, area, **points)
            key.append(Line2D([], [], color=colour, ls=dashes, marker=marker, label=line.entry))
            continue
        if curve == "smooth":
            smooth = smooth_curve(line.rows)
            x, y = smooth.predicted, smooth.observed
            if len(lines) <= MAX_SETS_WITH_BANDS:
                band: dict[str, Any] = {"color": colour, "alpha": 0.13, "lw": 0, "zorder": 1}
                ax.fill_between(x, smooth.low, smooth.high, label=f"_band{k}", **band)
        else:
            pooled = pooled_predictions(line.rows, None)
            x, y = pooled.values, pooled.curve()
        ax.plot(x, y, lw=2.0, label=f"_line{k}", **look)
        key.append(Line2D([], [], color=colour, ls=dashes, lw=2.0, label=line.entry))
    unit_axes(ax)
    return key


def draw_outlines(ax: Axes, lines: list[Line]) -> None:
    """Draw how many rows of each set there are in each bin."""
    plain_axes(ax)
    most = max(float(line.bins.counts.max()) for line in lines)
    for k, line in enumerate(lines):
        look: dict[str, Any] = {"color": SERIES[k], "ls": DASHES[k], "lw": 1.3}
        ax.stairs(line.bins.counts, line.bins.edges, label=f"_rows{k}", **look)
    ax.set_ylim(0.0, 1.1 * most)
    set_ticks(ax.yaxis, [0.0, most], short_count)
    ax.set_ylabel("Rows")


Curve = Literal["bins", "smooth", "isotonic"]
MIN_BIN_WIDTH_FOR_COUNT = 0.08
"""Width of a bin that has room for its count."""
MAX_BINS_JOINED = 20
"""Bins beyond which points are smaller and not joined: the line would show noise."""
HALF_BOX_WIDTH = 0.05
PATH_COLOR = "#8b949e"
INSIDE: dict[str, Any] = {"marker": "o", "markersize": 6.5, "color": BLUE}
OUTSIDE: dict[str, Any] = {"marker": "D", "markersize": 6.5, "color": VERMILION}


def draw_curve(ax: Axes, curve: ReliabilityCurve, *, strip: bool) -> None:
    """Draw the line of agreement, the boxes, the points and, if asked, the strip of counts."""
    plain_axes(ax)
    draw_agreement(ax)
    _draw_boxes(ax, curve)
    used = curve.counts > 0.0
    many = used.sum() > MAX_BINS_JOINED
    if not many:
        points = (curve.mean_predicted[used], curve.observed[used])
        ax.plot(*points, color=PATH_COLOR, lw=0.9, zorder=3, label="_path")
    for which, look, label in (
        (used & ~curve.outside, INSIDE, "_inside"),
        (used & curve.outside, OUTSIDE, "_outside"),
    ):
        if which.any():  # an empty line that is not clipped would reach to the figure's corner
            ax.plot(
                curve.mean_predicted[which],
                curve.observed[which],
                ls="none",
                markeredgecolor="white",
                markeredgewidth=0.7,
                zorder=4,
                clip_on=False,
                label=label,
                **look | ({"markersize": 4.5} if many else {}),
            )
    unit_axes(ax, bottom=-STRIP_HEIGHT if strip else 0.0)
    if strip:
        draw_strip(ax, curve)


def draw_counts(ax: Axes, curve: ReliabilityCurve) -> None:
    """Draw the number of rows in each bin, each bar with its number where there is room."""
    plain_axes(ax)
    widths = np.diff(curve.edges)
    ax.bar(
        curve.edges[:-1], curve.counts, widths, align="edge", color=FAINT, edgecolor=MUTED, lw=0.6
    )
    whole = bool((curve.counts == np.floor(curve.counts)).all())
    ax.set_ylabel("Rows" if whole else "Weight")
    if widths.min() < MIN_BIN_WIDTH_FOR_COUNT:
        set_ticks(ax.yaxis, [0.0, float(curve.counts.max())], short_count)
        return
    ax.set_ylim(0.0, 1.4 * curve.counts.max())
    ax.yaxis.set_major_locator(NullLocator())
    for middle, count in zip(curve.edges[:-1] + widths / 2.0, curve.counts, strict=True):
        word, look = short_count(count) if count else "", {"ha": "center", "va": "bottom"}
        note(ax, word, (middle, count), (0, 1.5), "data", color=INK, **look)


def key(curve: ReliabilityCurve) -> list[Artist]:
    """Return what stands for what, for a legend."""
    share = f"{100 * curve.level:g} %"
    if not np.isfinite(curve.band_low).any():
        return [Line2D([], [], lw=1.2, label=f"with {share} interval", **INSIDE)]
    return [
        Patch(facecolor=BAND, edgecolor=FAINT, label=f"{share} of points, if calibrated"),
        Line2D([], [], ls="none", label="inside", **INSIDE),
        Line2D([], [], ls="none", label="outside", **OUTSIDE),
    ]


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
        left = np.maximum(left, curve.mean_predicted - HALF_BOX_WIDTH)
        right = np.minimum(right, curve.mean_predicted + HALF_BOX_WIDTH)
    parts = (left, right - left, curve.band_low, curve.band_high - curve.band_low)
    look: dict[str, Any] = {"facecolor": BAND, "edgecolor": FAINT, "lw": 0.6, "label": "_boxes"}
    draw_boxes(ax, *(part[known] for part in parts), **look)


def check_curve(curve: str) -> None:
    """Raise unless there is such a curve."""
    if curve not in get_args(Curve):
        raise InputError(f"curve must be 'bins', 'smooth' or 'isotonic'; got curve={curve!r}.")


class Drawing:
    """What is drawn of one class (or of the most probable ones): bins, and a curve if asked."""

    def __init__(
        self,
        assessment: Assessment,
        curve: Curve,
        n_bins: NBins,
        binning: Binning,
        label: Hashable | None = None,
    ) -> None:
        check_curve(curve)
        self.rows: Predictions = assessment.predictions
        self.label = label
        is_usual = label is None and n_bins == 10 and binning == "width"
        if is_usual and assessment.top_label_curve is not None:
            self.bins = assessment.top_label_curve
        else:
            self.bins = reliability_curve(self.rows, label=label, n_bins=n_bins, binning=binning)
        self.curve: SmoothCurve | IsotonicCurve | None = None
        if curve == "smooth":
            self.curve = smooth_curve(self.rows, label=label)
        elif curve == "isotonic":
            self.curve = isotonic_curve(self.rows, label=label, seed=assessment.details.seed)

    def draw(self, ax: Axes, *, strip: bool) -> None:
        """Draw it, with a strip of counts at the foot if asked."""
        if self.curve is None:
            draw_curve(ax, self.bins, strip=strip)
            return
        plain_axes(ax)
        draw_agreement(ax)
        if isinstance(self.curve, SmoothCurve):
            draw_smooth(ax, self.curve, self.bins)
        else:
            draw_isotonic(ax, self.curve)
        unit_axes(ax, bottom=-STRIP_HEIGHT if strip else 0.0)
        if strip:
            draw_strip(ax, self.bins)

    def draw_rows(self, ax: Axes) -> None:
        """Draw how many rows there are: in bins, or finer and by outcome beside a curve."""
        if self.curve is None:
            draw_counts(ax, self.bins)
        else:
            draw_outcomes(ax, reliability_curve(self.rows, label=self.label, n_bins=N_OUTCOMES))

    @property
    def key(self) -> list[Artist]:
        """What stands for what, for a legend."""
        if isinstance(self.curve, SmoothCurve):
            return smooth_key(self.curve)
        return key(self.bins) if self.curve is None else isotonic_key(self.curve)


MAX_CLASSES = 12


@styled_figure
def reliability(
    assessment: Assessment | Mapping[str, Assessment] | Comparison,
    *,
    ax: Place = None,
    curve: Curve = "bins",
    n_bins: NBins = 10,
    binning: Binning = "width",
    error: bool = True,
    caption: bool = False,
) -> Axes:
    """Draw the reliability diagram of the most probable class, of one model or of several.

    Parameters
    ----------
    assessment : Assessment, mapping of name to Assessment, or Comparison
        What `mcllo.assess` returned. Several, by name, are lines on one diagram; so are the rows
        before and after the methods of a comparison, the best seven at most.
    ax : Axes, Figure or SubFigure, optional
        Where to draw, counts as a strip at the foot; a new figure when not given.
    curve : {"bins", "smooth", "isotonic"}
        Bins with boxes; a smooth curve with a band, over the points of the bins
        (`mcllo.smooth_curve`); or an isotonic curve over the band of calibrated predictions
        (`mcllo.isotonic_curve`).
    n_bins : int or "sqrt"
        Number of bins; "sqrt" is ``ceil(sqrt(n))``.
    binning : {"width", "mass"}
        Bins of equal width on [0, 1], or holding equally many rows.
    error : bool
        Write the calibration error under the title; of several, the key has it.
    caption : bool
        Write under the figure how to read it.

    Returns
    -------
    Axes
        Of the diagram; ``.figure`` is the whole, `mcllo.plot.save` writes it.

    See Also
    --------
    reliability_by_class : A diagram for each class.
    mcllo.reliability_curve : The numbers, with other levels and bins.
    comparison : A diagram for each method.

    Notes
    -----
    Boxes are the consistency bars of [1]_: where a bin's frequency lies if the predictions are
    calibrated.

    References
    ----------
    .. [1] J. Bröcker, L. A. Smith (2007). Increasing the reliability of reliability diagrams.
           Weather and Forecasting 22:651-661.

    Examples
    --------
    >>> import mcllo
    >>> a = mcllo.assess([[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]], [0, 0, 1, 1], seed=0)
    >>> reliability(a, curve="smooth").get_ylabel()
    'Observed frequency'
    """
    if isinstance(assessment, Mapping | Comparison):
        return _overlaid(assessment, ax, curve, n_bins, binning, caption)
    drawing = Drawing(assessment, curve, n_bins, binning)
    if ax is None:
        top, foot = OwnFigure(5.0, 5.9).subplots(2, 1, sharex=True, height_ratios=[5, 1])
        drawing.draw(top, strip=False)
        drawing.draw_rows(foot)
        top.tick_params(labelbottom=False)
    else:
        top = foot = one_axes(ax, 5.0, 5.0)
        drawing.draw(top, strip=True)
    _label(top, foot)
    below = _below(assessment, drawing) if error else ""
    heading(top, TITLE_OF_TOP, below)
    words = [caption_of("reliability", assessment, curve=curve)] if caption else []
    footer(top, words, drawing.key, ax)
    return top


TITLE_OF_TOP = "Reliability of the most probable class"


def _label(top: Axes, foot: Axes) -> None:
    top.set_ylabel("Observed frequency")
    foot.set_xlabel("Predicted probability of the most probable class")


def _overlaid(
    result: Mapping[str, Assessment] | Comparison,
    ax: Place,
    curve: Curve,
    n_bins: NBins,
    binning: Binning,
    caption: bool,
) -> Axes:
    """Draw several sets on one diagram."""
    check_curve(curve)
    lines = collect_lines(result, n_bins, binning)
    if ax is None:
        width = 5.2 + max(text_width(line.entry) for line in lines) * SMALL_PT / TITLE_PT / 72.0
        figure = OwnFigure(width + 0.6, 5.4)
        top, foot = figure.subplots(2, 1, sharex=True, height_ratios=[5, 1])
        key = draw_lines(top, lines, curve)
        draw_outlines(foot, lines)
        top.tick_params(labelbottom=False)
    else:
        top = foot = one_axes(ax, 5.0, 5.0)
        key = draw_lines(top, lines, curve)
    _label(top, foot)
    heading(top, TITLE_OF_TOP, f"{len(lines)} sets of predictions")
    side_legend(top, key, [line.entry for line in lines])
    words = [caption_of("reliability", result, curve=curve)] if caption else []
    footer(top, words, place=ax)
    return top


def _below(assessment: Assessment, drawing: Drawing) -> str:
    """Return the line or two under the title: the distance from the line of agreement."""
    found = drawing.curve
    if isinstance(found, SmoothCurve):
        away = f"ICI {format_number(found.ici)}: how far the curve is from the line on average"
        most = f"9 in 10 rows are within {format_number(found.e90)} of it"
        if not np.isnan(found.ici_null):
            most = f"calibrated rows: up to {format_number(found.ici_null)}; {most}"
        return f"{away};\n{most}"
    if isinstance(found, IsotonicCurve):
        parts, range_ = found.brier, ""
        if found.null is not None:
            low, high = format_number(found.null.low), format_number(found.null.high)
            range_ = f" (calibrated: {low} to {high}),"
        rest = format_number(parts.discrimination), format_number(parts.uncertainty)
        first = f"Miscalibration {format_number(parts.miscalibration)}{range_}"
        return f"{first}\ndiscrimination {rest[0]}, uncertainty {rest[1]}"
    ece = f"ECE {format_number(assessment.metrics['ece'])}"
    null = assessment.null_distributions.get("ece")
    if null is not None:
        low, high = format_number(null.low), format_number(null.high)
        ece += f"; calibrated predictions like these show {low} to {high}"
    return ece


@styled_figure
def reliability_by_class(
    assessment: Assessment,
    *,
    ax: Places = None,
    curve: Curve = "bins",
    max_classes: int = MAX_CLASSES,
    order: Sequence[Hashable] = (),
    n_bins: NBins = 10,
    binning: Binning = "width",
    columns: int | None = None,
    caption: bool = False,
) -> list[Axes]:
    """Draw a reliability diagram for each class, the worst first, the rest folded into a line.

    Parameters
    ----------
    assessment : Assessment
        What `mcllo.assess` returned.
    ax : array of Axes, Figure or SubFigure, optional
        Where to draw: as many classes as there are axes, or a part of a figure; a new figure when
        not given.
    curve : {"bins", "smooth", "isotonic"}
        Bins with boxes, a smooth curve with a band, or an isotonic curve over the band of
        calibrated predictions.
    max_classes : int
        Most panels; classes with the largest calibration error are shown (ECE of bins, ICI of
        smooth curves, miscalibration of isotonic ones).
    order : sequence of labels
        Classes to show before the others, in this order.
    n_bins : int or "sqrt"
        Number of bins; "sqrt" is ``ceil(sqrt(n))``.
    binning : {"width", "mass"}
        Bins of equal width on [0, 1], or holding equally many rows.
    columns : int, optional
        Panels beside each other.
    caption : bool
        Write under the figure how to read it.

    Returns
    -------
    list of Axes
        One for each class shown.

    See Also
    --------
    reliability : Of the most probable class.
    mcllo.reliability_curve : The numbers, with other levels and bins.
    calibration_map : What recalibration does, class by class.

    Notes
    -----
    Boxes are the consistency bars of [1]_: where a bin's frequency lies if the predictions are
    calibrated.

    References
    ----------
    .. [1] J. Bröcker, L. A. Smith (2007). Increasing the reliability of reliability diagrams.
           Weather and Forecasting 22:651-661.

    Examples
    --------
    >>> import mcllo
    >>> a = mcllo.assess([[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]], [0, 0, 1, 1], seed=0)
    >>> [ax.get_title(loc="left") for ax in reliability_by_class(a)]
    ['0', '1']
    """
    predictions = assessment.predictions
    name, errors = class_sizes(assessment, curve)
    z = assessment.in_the_large["z"] if curve == "bins" else None
    places = worst_first(assessment, order, errors)
    chosen = places[: max(1, min(max_classes, count_axes(ax) or max_classes))]
    axes = panels(len(chosen), columns, ax)
    names = shown_all(predictions.classes, room=panel_room(axes), bold=True)
    for panel, j in zip(axes, chosen, strict=True):
        drawing = Drawing(assessment, curve, n_bins, binning, predictions.classes[j])
        drawing.draw(panel, strip=True)
        below = "" if z is None else f", z {format_signed(z[j])}"
        heading(panel, names[j], f"{name} {format_number(errors[j])}{below}")
    label_outer(axes, "Predicted probability", "Observed frequency")
    words = [caption_of("reliability_by_class", assessment, curve=curve)] if caption else []
    if len(chosen) < len(places):
        rest = format_number(errors[places[len(chosen)]])
        few = f"{len(chosen)} of {len(places)} classes"
        what = "calibration error" if curve == "bins" else name
        most = few if order else f"The {few} with the largest {what}"
        own = f"the {what}" if order else "that"
        words.insert(0, f"{most}; {own} of the others is at most {rest}.")
    footer(axes, words, drawing.key, ax)
    return axes


def worst_first(
    assessment: Assessment, order: Sequence[Hashable] = (), errors: Sequence[float] | None = None
) -> list[int]:
    """Return the columns of these classes, then the others by calibration error, largest first."""
    sizes, columns = errors or class_errors(assessment), assessment.predictions.classes
    given = [columns.index(label) for label in order]
    rest = sorted(set(range(len(sizes))) - set(given), key=lambda j: (-round(sizes[j], 12), j))
    return [*given, *rest]


def class_sizes(assessment: Assessment, curve: Curve) -> tuple[str, list[float]]:
    """Return what the distance from calibration is called for a curve, and that of each class."""
    rows = assessment.predictions
    if curve == "smooth":
        return "ICI", calibration_distances(None, rows)["ici"][1:-1]
    if curve == "isotonic":
        pooled = [pooled_predictions(rows, label) for label in rows.classes]
        return "MCB", [own.decomposed().miscalibration for own in pooled]
    return "ECE", class_errors(assessment)


def class_errors(assessment: Assessment) -> list[float]:
    """Return each class's calibration error; their mean is ``metrics["classwise_ece"]``."""
    predictions = assessment.predictions
    return ClasswiseECE(predictions).per_class(predictions.codes[None])[0].tolist()
