"""Reliability diagrams: of the most probable class, class by class, and of several models.

The curve of a diagram, its bins and the counts of rows are drawn by `_reliability_curves`. The
default is a smooth curve with its band over a histogram of the rows: ten bins of equal width put
nearly all rows of a sharp classifier into one, and show chance in the others. Several sets of
predictions (models, or one model and its recalibrations) are lines on one diagram:

==========  ======================================================================================
line        one for each set, told by colour, dashes and marks: smooth (with bands while these are
            few), isotonic, or through the bins (the area of a mark is its share of the rows)
rows        an outline of the counts for each set, in an axes of their own
key         the name of each set and its ECE, with as many bins as `mcllo.assess` takes
==========  ======================================================================================

There are no boxes of what chance allows: they would hide each other. Draw a set by itself for them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from .._assessment.assessment import Assessment, calibration_in_the_large
from .._assessment.choice_assessment import ChoiceAssessment
from .._comparison.comparison import Comparison
from .._comparison.recommend import UNCALIBRATED
from .._inference.consistency import IsotonicCurve, isotonic_curve
from .._utils.formatting import format_number
from .._validation.frames import n_columns
from .._validation.predictions import Predictions, predictions_for_scoring
from ..exceptions import InputError
from ..metrics._binned import ClasswiseECE, TopLabelECE
from ..metrics._bins import Binning, NBins
from ..metrics._isotonic import pool_equal_predictions
from ..metrics._reliability import ReliabilityCurve, reliability_curve
from ..metrics._smooth import SmoothCurve, smooth_curve
from ._layout import (
    Place,
    Places,
    SelfLayoutFigure,
    count_axes,
    draw_side_legend,
    label_outer,
    one_axes,
    shared_panels,
    title_width_in_points,
    write_footer,
    write_title,
)
from ._reliability_curves import (
    MIN_ROWS,
    STRIP_HEIGHT,
    bins_legend,
    draw_binned_curve,
    draw_count_bars,
    draw_count_strip,
    draw_hits_and_misses,
    draw_hollow_points,
    draw_identity_line,
    draw_isotonic_curve,
    draw_smooth_curve,
    has_enough_rows,
    isotonic_legend,
    path_through_bins,
    point_areas,
    range_of_many_rows,
    short_count,
    smooth_legend,
)
from ._style import (
    DASHES,
    MARKERS,
    SERIES,
    SMALL_PT,
    TITLE_PT,
    set_ticks,
    set_unit_range,
    style_axes,
    styled_figure,
)
from ._words import caption as caption_of
from ._words import fit_label, fit_labels, format_signed, text_width

Curve = Literal["smooth", "isotonic", "bins"]
MAX_CLASSES = 12
"""Panels of a figure: three rows of four."""
N_OUTCOMES = 40
"""Bars of the outcomes' histogram: a round number, several for each bin."""
N_STRIP_BARS = 20
"""Bars of the strip of counts under a curve without bins."""


class PredictionSet(NamedTuple):
    """One set: its name, rows, ECE and bins."""

    name: str
    rows: Predictions
    ece: float
    bins: ReliabilityCurve

    @property
    def legend_label(self) -> str:
        """What the key says of it."""
        return f"{self.name}: ECE {format_number(self.ece)}"


def collect_prediction_sets(
    result: Mapping[str, Assessment | Predictions] | Comparison,
    n_bins: NBins,
    binning: Binning,
) -> list[PredictionSet]:
    """Return the sets to draw: assessments or predictions by name, or a comparison's rows."""
    sets: list[tuple[str, Predictions, float]] = []
    if isinstance(result, Comparison):
        ranked = sorted(result.ranked, key=lambda row: row.method != UNCALIBRATED)
        for row in ranked[: len(SERIES)]:
            rows = result.recalibrated[row.method]
            sets.append((row.method.replace("_", " "), rows, row.ece))
    else:
        for name, one in result.items():
            if isinstance(one, Predictions):
                sets.append((str(name), one, _calibration_error(one, None)))
            else:
                sets.append((str(name), one.predictions, one.metrics["ece"]))
    if not 1 <= len(sets) <= len(SERIES):
        raise InputError(
            f"assessment must hold 1 to {len(SERIES)} assessments by name; got {len(sets)}. "
            "More lines cannot be told apart: draw them in turn."
        )
    names = fit_labels([name for name, _, _ in sets])
    lines = []
    for name, (_, rows, ece) in zip(names, sets, strict=True):
        bins = reliability_curve(rows, n_bins=n_bins, binning=binning)
        lines.append(PredictionSet(name, rows, ece, bins))
    return lines


def draw_curve_of_each_set(
    ax: Axes, lines: list[PredictionSet], curve: str, min_rows: float
) -> list[Artist]:
    """Draw a line for each set; return what stands for what."""
    style_axes(ax)
    draw_identity_line(ax)
    key: list[Artist] = []
    for k, line in enumerate(lines):
        look: dict[str, Any] = {"color": SERIES[k], "ls": DASHES[k]}
        width = 2.0
        if curve == "bins":
            shown = has_enough_rows(line.bins, min_rows)
            x, y = path_through_bins(line.bins, min_rows)
            ax.scatter(
                line.bins.mean_predicted[shown],
                line.bins.observed[shown],
                point_areas(line.bins, shown, largest=50.4),
                marker=MARKERS[k],
                color=SERIES[k],
                edgecolor="white",
                linewidth=0.7,
                zorder=4,
                clip_on=False,
                label=f"_bins{k}",
            )
            width = 1.6
        elif curve == "smooth":
            smooth = smooth_curve(line.rows)
            many = range_of_many_rows(line.rows, smooth)
            x = smooth.predicted[many]
            y = smooth.observed[many]
            if len(lines) <= 3:  # more bands would hide each other
                ax.fill_between(
                    x,
                    smooth.low[many],
                    smooth.high[many],
                    color=SERIES[k],
                    alpha=0.13,
                    lw=0,
                    zorder=1,
                    label=f"_band{k}",
                )
        else:
            pooled = pool_equal_predictions(line.rows, None)
            x = pooled.values
            y = pooled.curve()
        ax.plot(x, y, lw=width, zorder=3 + 0.01 * k, label=f"_line{k}", **look)
        mark = {"marker": MARKERS[k]} if curve == "bins" else {"lw": width}
        key.append(Line2D([], [], label=line.legend_label, **look, **mark))
    set_unit_range(ax)
    return key


def draw_counts_of_each_set(ax: Axes, lines: list[PredictionSet], curve: str) -> None:
    """Draw how many rows of each set there are: in its bins, or finer, as square roots."""
    style_axes(ax)
    most = 0.0
    for k, line in enumerate(lines):
        look: dict[str, Any] = {"color": SERIES[k], "ls": DASHES[k], "lw": 1.3}
        bins = line.bins
        heights = bins.counts
        if curve != "bins":  # few rows beside many would be invisible
            bins = reliability_curve(line.rows, n_bins=N_STRIP_BARS)
            heights = np.sqrt(bins.counts)
        ax.stairs(heights, bins.edges, label=f"_rows{k}", **look)
        most = max(most, float(heights.max()))
    ax.set_ylim(0.0, 1.1 * most)
    ax.set_ylabel("Rows")
    if curve == "bins":
        set_ticks(ax.yaxis, [0.0, most], short_count)
    else:
        set_ticks(ax.yaxis, [0.0, most], lambda root: short_count(round(root**2)))


def check_curve_kind(curve: str) -> None:
    """Raise unless there is such a curve."""
    if curve not in get_args(Curve):
        raise InputError(
            f"curve must be 'smooth', 'isotonic' or 'bins'; got curve={curve!r}."
        )


class ReliabilityPanel:
    """One diagram: a curve or bins of one class, or of the most probable ones, and its rows.

    Attributes
    ----------
    curve : SmoothCurve, IsotonicCurve or None
        None where the bins are what is drawn.
    bins : ReliabilityCurve or None
        None of a curve that came without its rows.
    rows : Predictions or None
        None where only the curve is known.
    label : label or None
        The class; None for the most probable one of each row.
    """

    def __init__(
        self,
        curve: SmoothCurve | IsotonicCurve | None,
        bins: ReliabilityCurve | None,
        rows: Predictions | None = None,
        min_rows: float = MIN_ROWS,
    ) -> None:
        self.curve = curve
        self.bins = bins
        self.rows = rows
        self.min_rows = min_rows
        self.has_points = False
        known = curve if bins is None else bins
        self.label = None if known is None else known.label

    @classmethod
    def of_rows(
        cls,
        rows: Predictions,
        curve: Curve,
        *,
        label: Hashable | None = None,
        n_bins: NBins = 10,
        binning: Binning = "width",
        min_rows: float = MIN_ROWS,
        seed: Any = None,
    ) -> ReliabilityPanel:
        """Return the diagram of rows that are in memory."""
        check_curve_kind(curve)
        bins = reliability_curve(rows, label=label, n_bins=n_bins, binning=binning)
        found: SmoothCurve | IsotonicCurve | None = None
        if curve == "smooth":
            found = smooth_curve(rows, label=label)
        elif curve == "isotonic":
            found = isotonic_curve(rows, label=label, seed=seed)
        return cls(found, bins, rows, min_rows)

    @classmethod
    def of_curve(
        cls, curve: ReliabilityCurve | SmoothCurve | IsotonicCurve, min_rows: float
    ) -> ReliabilityPanel:
        """Return the diagram of a curve alone."""
        if isinstance(curve, ReliabilityCurve):
            return cls(None, curve, min_rows=min_rows)
        return cls(curve, None, min_rows=min_rows)

    @property
    def kind(self) -> Curve:
        """Which curve is drawn."""
        if isinstance(self.curve, SmoothCurve):
            return "smooth"
        return "isotonic" if isinstance(self.curve, IsotonicCurve) else "bins"

    def draw(self, ax: Axes, *, strip: bool, quiet: bool = False) -> None:
        """Draw it, with a strip of counts at the foot if asked; `quiet` is for a small panel."""
        if self.curve is None:
            assert self.bins is not None
            draw_binned_curve(ax, self.bins, strip=strip, min_rows=self.min_rows)
            return
        style_axes(ax)
        draw_identity_line(ax)
        if isinstance(self.curve, SmoothCurve):
            many = range_of_many_rows(self.rows, self.curve)
            draw_smooth_curve(ax, self.curve, many)
            if self.bins is not None and not quiet:
                draw_hollow_points(ax, self.bins, self.min_rows)
                self.has_points = True
        else:
            draw_isotonic_curve(ax, self.curve)
        strip = strip and self.rows is not None
        set_unit_range(ax, bottom=-STRIP_HEIGHT if strip else 0.0)
        if strip:
            draw_count_strip(ax, self._fine_bins(N_STRIP_BARS), roots=True)

    def draw_rows(self, ax: Axes) -> None:
        """Draw how many rows there are: in bins, or finer and by outcome beside a curve."""
        if self.curve is not None:
            draw_hits_and_misses(ax, self._fine_bins(N_OUTCOMES))
        elif self.bins is not None:
            draw_count_bars(ax, self.bins)

    def _fine_bins(self, n_bins: int) -> ReliabilityCurve:
        """Return the rows in narrow bins, for a histogram."""
        assert self.rows is not None
        return reliability_curve(self.rows, label=self.label, n_bins=n_bins)

    @property
    def legend_entries(self) -> list[Artist]:
        """What stands for what, for a legend."""
        if self.curve is None:
            assert self.bins is not None
            return bins_legend(self.bins, self.min_rows)
        if isinstance(self.curve, SmoothCurve):
            return smooth_legend(self.curve, points=self.has_points)
        return isotonic_legend(self.curve)


@styled_figure
def reliability(
    probs: Any,
    y: Any = None,
    *,
    label: Hashable | None = None,
    ax: Place = None,
    curve: Curve = "smooth",
    n_bins: NBins = 10,
    binning: Binning = "width",
    min_rows: float = MIN_ROWS,
    error: bool = True,
    caption: bool = False,
    classes: Any = None,
    sample_weight: Any = None,
    seed: Any = None,
) -> Axes:
    """Draw the reliability diagram of the most probable class, of one model or of several.

    Parameters
    ----------
    probs : array-like, frame, Predictions, Assessment, Comparison, mapping or curve
        Predicted probabilities, shape (n_samples, n_classes), beside `y`; or what `mcllo.assess` or
        `mcllo.assess_choices` returned. Several assessments or `Predictions`, by name, are lines
        on one diagram; so are the rows before and after the methods of a comparison, the best
        seven at most. A `ReliabilityCurve`, `SmoothCurve` or `IsotonicCurve` is drawn as it is.
    y : array-like of shape (n_samples,)
        The labels that came true, beside probabilities.
    label : label, optional
        One class, against all others. Default: the most probable class of each row.
    ax : Axes, Figure or SubFigure, optional
        Where to draw, counts as a strip at the foot; a new figure when not given.
    curve : {"smooth", "isotonic", "bins"}
        A smooth curve with a band (`mcllo.smooth_curve`), drawn from the tenth smallest to the
        tenth largest prediction, over the points of bins; an isotonic curve over the band of
        calibrated predictions (`mcllo.isotonic_curve`); or bins with boxes. Rows that are not in
        memory are drawn in bins.
    n_bins : int or "sqrt"
        Number of bins; "sqrt" is ``ceil(sqrt(n))``.
    binning : {"width", "mass"}
        Bins of equal width on [0, 1], or holding equally many rows.
    min_rows : float
        No line runs through bins of fewer rows, and no point stands for them beside a curve: what
        they show is chance.
    error : bool
        Write the calibration error under the title; of several, the key has it.
    caption : bool
        Write under the figure how to read it.
    classes : sequence, optional
        The label of each column; see `mcllo.Predictions.from_arrays`.
    sample_weight : array-like of shape (n_samples,), optional
        Row i counts as ``sample_weight[i]`` rows.
    seed : int or numpy Generator, optional
        Of the band of an isotonic curve; that of the assessment when there is one.

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
    calibrated. A smooth curve is shown where [2]_ shows one: between the quantiles ``10 / max(n,
    200)`` and one less that.

    References
    ----------
    .. [1] J. Bröcker, L. A. Smith (2007). Increasing the reliability of reliability diagrams.
           Weather and Forecasting 22:651-661.
    .. [2] F. E. Harrell (2015). Regression Modeling Strategies, second edition. Springer.

    Examples
    --------
    >>> import mcllo
    >>> probs, y = [[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]] * 10, [0, 0, 1, 1] * 10
    >>> reliability(probs, y).get_ylabel()
    'Observed frequency'
    >>> reliability(mcllo.assess(probs, y, seed=0), curve="bins").get_ylabel()
    'Observed frequency'
    """
    check_curve_kind(curve)
    of_rows = {"y": y, "classes": classes, "sample_weight": sample_weight}
    if isinstance(probs, Mapping | Comparison):
        refuse_beside_result(probs, label=label, **of_rows)
        return _draw_overlaid(probs, ax, curve, n_bins, binning, min_rows, caption)
    look: dict[str, Any] = {"n_bins": n_bins, "binning": binning, "min_rows": min_rows}
    assessment: Assessment | None = None
    if isinstance(probs, ChoiceAssessment):
        refuse_beside_result(probs, label=label, **of_rows)
        seed = probs.test.seed if seed is None else seed
        drawing = ReliabilityPanel.of_rows(probs.predictions, curve, seed=seed, **look)
    elif isinstance(probs, ReliabilityCurve | SmoothCurve | IsotonicCurve):
        refuse_beside_result(probs, label=label, **of_rows)
        drawing = ReliabilityPanel.of_curve(probs, min_rows)
    elif isinstance(probs, Assessment):
        refuse_beside_result(probs, **of_rows)
        assessment = probs
        rows: Any = assessment.predictions  # facts alone where rows are not in memory
        if seed is None:
            # that of the assessment: a figure drawn again shows the same band
            seed = assessment.details.seed
        if isinstance(rows, Predictions):
            drawing = ReliabilityPanel.of_rows(
                rows, curve, label=label, seed=seed, **look
            )
        else:
            drawing = ReliabilityPanel.of_curve(
                bins_of_rows_on_disk(assessment, label), min_rows
            )
    else:
        rows = rows_to_draw(probs, y, classes, sample_weight)
        drawing = ReliabilityPanel.of_rows(rows, curve, label=label, seed=seed, **look)
    has_own_counts = ax is None and drawing.bins is not None
    if has_own_counts:
        top, foot = SelfLayoutFigure(5.0, 5.9).subplots(
            2, 1, sharex=True, height_ratios=[5, 1]
        )
        drawing.draw(top, strip=False)
        drawing.draw_rows(foot)
        top.tick_params(labelbottom=False)
    else:
        top = foot = one_axes(ax, 5.0, 5.0)
        drawing.draw(top, strip=True)
    of = top_subject(drawing.rows)
    if drawing.label is not None:
        of = fit_label(drawing.label)
    title = f"Reliability of {of}"
    below = _distance_subtitle(assessment, drawing) if error else ""
    room = title_width_in_points([top])
    is_narrow = ax is not None and text_width(title, bold=True) > room
    if is_narrow:  # words of two diagrams beside each other would collide
        title = of[:1].upper() + of[1:]
        below = _short_subtitle(drawing, below) if error else ""
    _label_axes(top, foot, "" if is_narrow else f" of {of}")
    write_title(top, title, below)
    words = []
    if caption:
        words.append(
            caption_of("reliability", drawing.rows or probs, curve=drawing.kind)
        )
    write_footer(top, words, drawing.legend_entries, ax)
    return top


TOP_LABEL = "the most probable class"


def refuse_beside_result(result: Any, **given: Any) -> None:
    """Raise where labels or options of rows stand beside a result, which has its own."""
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"{name} must not be given beside a {type(result).__name__}; it holds its own."
            )


def rows_to_draw(probs: Any, y: Any, classes: Any, sample_weight: Any) -> Predictions:
    """Return arrays as `Predictions`; zeros stay zeros."""
    if n_columns(probs) == 1 and n_columns(y) > 1:
        raise InputError(
            "probs must be a table and y its labels; they seem to be swapped. "
            "Call with (probs, y)."
        )
    return predictions_for_scoring(
        y, probs, classes=classes, sample_weight=sample_weight
    )


def bins_of_rows_on_disk(
    assessment: Assessment, label: Hashable | None
) -> ReliabilityCurve:
    """Return the bins that were summed while the rows were read."""
    for curve in getattr(assessment, "reliability", [assessment.top_label_curve]):
        if curve is not None and curve.label == label:
            found: ReliabilityCurve = curve
            return found
    raise InputError(f"label must be a class; got label={label!r}.")


def _label_axes(top: Axes, foot: Axes, of: str = f" of {TOP_LABEL}") -> None:
    top.set_ylabel("Observed frequency")
    foot.set_xlabel(f"Predicted probability{of}")


def _short_subtitle(drawing: ReliabilityPanel, long: str) -> str:
    """Return the distance from the line in one short line, for a small diagram."""
    found = drawing.curve
    if found is None:
        return long.split(";")[0]
    if isinstance(found, SmoothCurve):
        words = f"ICI {format_number(found.ici)}"
        chance = found.ici_null
    else:
        words = f"MCB {format_number(found.brier.miscalibration)}"
        chance = np.nan if found.null is None else found.null.high
    if not np.isnan(chance):
        words += f" (chance: {format_number(chance)})"
    return words


def top_subject(predictions: Any) -> str:
    """Return what the diagram is of: rows of choice sets offer options."""
    offered = getattr(predictions, "offered", None)  # rows in blocks are of classes
    return TOP_LABEL if offered is None else "the most probable option"


def _draw_overlaid(
    result: Mapping[str, Assessment | Predictions] | Comparison,
    ax: Place,
    curve: Curve,
    n_bins: NBins,
    binning: Binning,
    min_rows: float,
    caption: bool,
) -> Axes:
    """Draw several sets on one diagram."""
    lines = collect_prediction_sets(result, n_bins, binning)
    if ax is None:
        longest = max(text_width(line.legend_label) for line in lines)
        key_inches = longest * SMALL_PT / TITLE_PT / 72.0
        figure = SelfLayoutFigure(5.8 + key_inches, 5.4)
        top, foot = figure.subplots(2, 1, sharex=True, height_ratios=[5, 1])
        key = draw_curve_of_each_set(top, lines, curve, min_rows)
        draw_counts_of_each_set(foot, lines, curve)
        top.tick_params(labelbottom=False)
    else:
        top = foot = one_axes(ax, 5.0, 5.0)
        key = draw_curve_of_each_set(top, lines, curve, min_rows)
    _label_axes(top, foot)
    write_title(top, f"Reliability of {TOP_LABEL}", f"{len(lines)} sets of predictions")
    draw_side_legend(top, key, [line.legend_label for line in lines])
    words = [caption_of("reliability", result, curve=curve)] if caption else []
    write_footer(top, words, place=ax)
    return top


def _distance_subtitle(assessment: Assessment | None, drawing: ReliabilityPanel) -> str:
    """Return the line or two under the title: the distance from the line of agreement."""
    found = drawing.curve
    if isinstance(found, SmoothCurve):
        away = f"ICI {format_number(found.ici)}: how far the curve is from the line on average"
        most = f"9 in 10 rows are within {format_number(found.e90)} of it"
        if not np.isnan(found.ici_null):
            most = f"calibrated rows: up to {format_number(found.ici_null)}; {most}"
        return f"{away};\n{most}"
    if isinstance(found, IsotonicCurve):
        parts = found.brier
        first = f"Miscalibration {format_number(parts.miscalibration)}"
        if found.null is not None:
            low = format_number(found.null.low)
            high = format_number(found.null.high)
            first += f" (calibrated: {low} to {high}),"
        discrimination = format_number(parts.discrimination)
        uncertainty = format_number(parts.uncertainty)
        return f"{first}\ndiscrimination {discrimination}, uncertainty {uncertainty}"
    if assessment is None or drawing.label is not None:
        if drawing.rows is None:
            return ""
        return f"ECE {format_number(_calibration_error(drawing.rows, drawing.label))}"
    ece = f"ECE {format_number(assessment.metrics['ece'])}"
    null = assessment.null_distributions.get("ece")
    if null is not None:
        low = format_number(null.low)
        high = format_number(null.high)
        ece += f"; calibrated predictions like these show {low} to {high}"
    return ece


def _calibration_error(rows: Predictions, label: Hashable | None) -> float:
    """Return the ECE with as many bins as `mcllo.assess` takes."""
    if label is None:
        return float(TopLabelECE(rows).of_labels(rows.codes[None])[0])
    errors = ClasswiseECE(rows).errors_by_class(rows.codes[None])[0]
    return float(errors[rows.classes.index(label)])


@styled_figure
def reliability_by_class(
    probs: Any,
    y: Any = None,
    *,
    ax: Places = None,
    curve: Curve = "smooth",
    max_classes: int = MAX_CLASSES,
    order: Sequence[Hashable] = (),
    n_bins: NBins = 10,
    binning: Binning = "width",
    min_rows: float = MIN_ROWS,
    columns: int | None = None,
    caption: bool = False,
    classes: Any = None,
    sample_weight: Any = None,
    seed: Any = None,
) -> list[Axes]:
    """Draw a reliability diagram for each class, the worst first, the rest folded into a line.

    Parameters
    ----------
    probs : array-like, frame, Predictions or Assessment
        Predicted probabilities, shape (n_samples, n_classes), beside `y`; or what `mcllo.assess`
        returned.
    y : array-like of shape (n_samples,)
        The labels that came true, beside probabilities.
    ax : array of Axes, Figure or SubFigure, optional
        Where to draw: as many classes as there are axes, or a part of a figure; a new figure when
        not given.
    curve : {"smooth", "isotonic", "bins"}
        A smooth curve with a band, an isotonic curve over the band of calibrated predictions, or
        bins with boxes.
    max_classes : int
        Most panels; classes with the largest calibration error are shown (ECE; miscalibration of
        isotonic curves).
    order : sequence of labels
        Classes to show before the others, in this order.
    n_bins : int or "sqrt"
        Number of bins; "sqrt" is ``ceil(sqrt(n))``.
    binning : {"width", "mass"}
        Bins of equal width on [0, 1], or holding equally many rows.
    min_rows : float
        No line runs through bins of fewer rows.
    columns : int, optional
        Panels beside each other.
    caption : bool
        Write under the figure how to read it.
    classes : sequence, optional
        The label of each column; see `mcllo.Predictions.from_arrays`.
    sample_weight : array-like of shape (n_samples,), optional
        Row i counts as ``sample_weight[i]`` rows.
    seed : int or numpy Generator, optional
        Of the band of isotonic curves; that of the assessment when there is one.

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
    check_curve_kind(curve)
    if isinstance(probs, Assessment):
        of_rows = {"y": y, "classes": classes, "sample_weight": sample_weight}
        refuse_beside_result(probs, **of_rows)
        predictions = probs.predictions
        shares = probs.in_the_large
        if seed is None:
            seed = probs.details.seed
    else:
        predictions = rows_to_draw(probs, y, classes, sample_weight)
        shares = calibration_in_the_large(predictions)
    name, errors = class_errors_for_curve(predictions, curve)
    places = columns_worst_first(predictions, order, errors)
    n_shown = max_classes
    n_given = count_axes(ax)
    if n_given:
        n_shown = min(n_shown, n_given)
    chosen = places[: max(1, n_shown)]
    axes = shared_panels(len(chosen), columns, ax)
    names = fit_labels(predictions.classes, room=title_width_in_points(axes), bold=True)
    for panel, j in zip(axes, chosen, strict=True):
        drawing = ReliabilityPanel.of_rows(
            predictions,
            curve,
            label=predictions.classes[j],
            n_bins=n_bins,
            binning=binning,
            min_rows=min_rows,
            seed=seed,
        )
        drawing.draw(panel, strip=True, quiet=True)
        below = f"{name} {format_number(errors[j])}"
        if curve == "bins":
            below += f", z {format_signed(shares['z'][j])}"
        elif curve == "smooth":
            below = _short_subtitle(drawing, below)
        write_title(panel, names[j], below)
    label_outer(axes, "Predicted probability", "Observed frequency")
    words = []
    if len(chosen) < len(places):
        few = f"{len(chosen)} of {len(places)} classes"
        what = "MCB" if curve == "isotonic" else "calibration error"
        largest_left = format_number(errors[places[len(chosen)]])
        if order:
            words.append(f"{few}; the {what} of the others is at most {largest_left}.")
        else:
            most = f"The {few} with the largest {what}"
            words.append(f"{most}; that of the others is at most {largest_left}.")
    if caption:
        words.append(caption_of("reliability_by_class", predictions, curve=curve))
    write_footer(axes, words, drawing.legend_entries, ax)
    return axes


def columns_worst_first(
    predictions: Predictions,
    order: Sequence[Hashable] = (),
    errors: Sequence[float] | None = None,
) -> list[int]:
    """Return the columns of these classes, then the others by calibration error, largest first."""
    sizes = errors or class_errors(predictions)
    given = [predictions.classes.index(label) for label in order]
    rest = [j for j in range(len(sizes)) if j not in given]
    # rounded, so that classes of the same error come in the order of their columns everywhere
    rest.sort(key=lambda j: -round(sizes[j], 12))
    return [*given, *rest]


def class_errors_for_curve(rows: Predictions, curve: Curve) -> tuple[str, list[float]]:
    """Return what the distance from calibration is called for a curve, and that of each class.

    Classes under smooth curves are sorted by their ECE: a thousand splines would take minutes.
    """
    if curve == "isotonic":
        pooled = [pool_equal_predictions(rows, label) for label in rows.classes]
        return "MCB", [own.decompose_score().miscalibration for own in pooled]
    return "ECE", class_errors(rows)


def class_errors(predictions: Predictions) -> list[float]:
    """Return each class's calibration error; their mean is ``metrics["classwise_ece"]``."""
    return (
        ClasswiseECE(predictions).errors_by_class(predictions.codes[None])[0].tolist()
    )
