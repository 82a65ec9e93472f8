"""Reliability diagrams: of the most probable class, class by class, and of several models.

The curve of a diagram, its bins and the counts of rows are drawn by `_reliability_curves`. Several
sets of predictions (models, or one model and its recalibrations) are lines on one diagram:

==========  ======================================================================================
line        one for each set, told by colour, dashes and marks: through the bins (the area of a mark
            is its share of the rows), smooth (with bands while these are few) or isotonic
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

from .._assessment.assessment import Assessment
from .._comparison.comparison import Comparison
from .._comparison.recommend import UNCALIBRATED
from .._inference.consistency import IsotonicCurve, isotonic_curve
from .._utils.formatting import format_number
from .._validation.predictions import Predictions
from ..exceptions import InputError
from ..metrics._binned import ClasswiseECE
from ..metrics._bins import Binning, NBins
from ..metrics._isotonic import pool_equal_predictions
from ..metrics._reliability import ReliabilityCurve, reliability_curve
from ..metrics._smooth import SmoothCurve, calibration_distances, smooth_curve
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
    STRIP_HEIGHT,
    bins_legend,
    draw_binned_curve,
    draw_count_bars,
    draw_count_strip,
    draw_hits_and_misses,
    draw_identity_line,
    draw_isotonic_curve,
    draw_smooth_curve,
    isotonic_legend,
    point_areas,
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
from ._words import fit_labels, format_signed, text_width

Curve = Literal["bins", "smooth", "isotonic"]
MAX_CLASSES = 12
"""Panels of a figure: three rows of four."""
N_OUTCOMES = 40
"""Bars of the outcomes' histogram: a round number, several for each bin."""


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
    result: Mapping[str, Assessment] | Comparison, n_bins: NBins, binning: Binning
) -> list[PredictionSet]:
    """Return the sets to draw: assessments by name, or a comparison's rows before and after."""
    sets: list[tuple[str, Predictions, float]] = []
    if isinstance(result, Comparison):
        ranked = sorted(result.ranked, key=lambda row: row.method != UNCALIBRATED)
        for row in ranked[: len(SERIES)]:
            rows = result.recalibrated[row.method]
            sets.append((row.method.replace("_", " "), rows, row.ece))
    else:
        for name, assessment in result.items():
            sets.append((str(name), assessment.predictions, assessment.metrics["ece"]))
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
    ax: Axes, lines: list[PredictionSet], curve: str
) -> list[Artist]:
    """Draw a line for each set; return what stands for what."""
    style_axes(ax)
    draw_identity_line(ax)
    key: list[Artist] = []
    for k, line in enumerate(lines):
        look: dict[str, Any] = {"color": SERIES[k], "ls": DASHES[k]}
        width = 2.0
        if curve == "bins":
            used = line.bins.counts > 0.0
            x = line.bins.mean_predicted[used]
            y = line.bins.observed[used]
            ax.scatter(
                x,
                y,
                point_areas(line.bins, largest=50.4),
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
            x = smooth.predicted
            y = smooth.observed
            if len(lines) <= 3:  # more bands would hide each other
                ax.fill_between(
                    x,
                    smooth.low,
                    smooth.high,
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


def draw_counts_of_each_set(ax: Axes, lines: list[PredictionSet]) -> None:
    """Draw how many rows of each set there are in each bin."""
    style_axes(ax)
    most = max(float(line.bins.counts.max()) for line in lines)
    for k, line in enumerate(lines):
        look: dict[str, Any] = {"color": SERIES[k], "ls": DASHES[k], "lw": 1.3}
        ax.stairs(line.bins.counts, line.bins.edges, label=f"_rows{k}", **look)
    ax.set_ylim(0.0, 1.1 * most)
    set_ticks(ax.yaxis, [0.0, most], short_count)
    ax.set_ylabel("Rows")


def check_curve_kind(curve: str) -> None:
    """Raise unless there is such a curve."""
    if curve not in get_args(Curve):
        raise InputError(
            f"curve must be 'bins', 'smooth' or 'isotonic'; got curve={curve!r}."
        )


class ReliabilityPanel:
    """What is drawn of one class (or of the most probable ones): bins, and a curve if asked."""

    def __init__(
        self,
        assessment: Assessment,
        curve: Curve,
        n_bins: NBins,
        binning: Binning,
        label: Hashable | None = None,
    ) -> None:
        check_curve_kind(curve)
        self.rows: Predictions = assessment.predictions
        self.label = label
        is_usual = label is None and n_bins == 10 and binning == "width"
        if is_usual and assessment.top_label_curve is not None:
            self.bins = assessment.top_label_curve
        else:
            self.bins = reliability_curve(
                self.rows, label=label, n_bins=n_bins, binning=binning
            )
        self.curve: SmoothCurve | IsotonicCurve | None = None
        if curve == "smooth":
            self.curve = smooth_curve(self.rows, label=label)
        elif curve == "isotonic":
            # the seed of the assessment: a figure drawn again shows the same band
            self.curve = isotonic_curve(
                self.rows, label=label, seed=assessment.details.seed
            )

    def draw(self, ax: Axes, *, strip: bool) -> None:
        """Draw it, with a strip of counts at the foot if asked."""
        if self.curve is None:
            draw_binned_curve(ax, self.bins, strip=strip)
            return
        style_axes(ax)
        draw_identity_line(ax)
        if isinstance(self.curve, SmoothCurve):
            draw_smooth_curve(ax, self.curve, self.bins)
        else:
            draw_isotonic_curve(ax, self.curve)
        set_unit_range(ax, bottom=-STRIP_HEIGHT if strip else 0.0)
        if strip:
            draw_count_strip(ax, self.bins)

    def draw_rows(self, ax: Axes) -> None:
        """Draw how many rows there are: in bins, or finer and by outcome beside a curve."""
        if self.curve is None:
            draw_count_bars(ax, self.bins)
        else:
            draw_hits_and_misses(
                ax, reliability_curve(self.rows, label=self.label, n_bins=N_OUTCOMES)
            )

    @property
    def legend_entries(self) -> list[Artist]:
        """What stands for what, for a legend."""
        if self.curve is None:
            return bins_legend(self.bins)
        if isinstance(self.curve, SmoothCurve):
            return smooth_legend(self.curve)
        return isotonic_legend(self.curve)


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
        return _draw_overlaid(assessment, ax, curve, n_bins, binning, caption)
    drawing = ReliabilityPanel(assessment, curve, n_bins, binning)
    if ax is None:
        top, foot = SelfLayoutFigure(5.0, 5.9).subplots(
            2, 1, sharex=True, height_ratios=[5, 1]
        )
        drawing.draw(top, strip=False)
        drawing.draw_rows(foot)
        top.tick_params(labelbottom=False)
    else:
        top = foot = one_axes(ax, 5.0, 5.0)
        drawing.draw(top, strip=True)
    subject = top_subject(assessment.predictions)
    _label_axes(top, foot, subject)
    below = _distance_subtitle(assessment, drawing) if error else ""
    write_title(top, f"Reliability of the {subject}", below)
    words = [caption_of("reliability", assessment, curve=curve)] if caption else []
    write_footer(top, words, drawing.legend_entries, ax)
    return top


def top_subject(predictions: Predictions) -> str:
    """Return what the diagram is of: rows of choice sets offer options."""
    offered = getattr(predictions, "offered", None)  # rows in blocks are of classes
    return "most probable class" if offered is None else "most probable option"


def _label_axes(top: Axes, foot: Axes, subject: str = "most probable class") -> None:
    top.set_ylabel("Observed frequency")
    foot.set_xlabel(f"Predicted probability of the {subject}")


def _draw_overlaid(
    result: Mapping[str, Assessment] | Comparison,
    ax: Place,
    curve: Curve,
    n_bins: NBins,
    binning: Binning,
    caption: bool,
) -> Axes:
    """Draw several sets on one diagram."""
    check_curve_kind(curve)
    lines = collect_prediction_sets(result, n_bins, binning)
    if ax is None:
        longest = max(text_width(line.legend_label) for line in lines)
        key_inches = longest * SMALL_PT / TITLE_PT / 72.0
        figure = SelfLayoutFigure(5.8 + key_inches, 5.4)
        top, foot = figure.subplots(2, 1, sharex=True, height_ratios=[5, 1])
        key = draw_curve_of_each_set(top, lines, curve)
        draw_counts_of_each_set(foot, lines)
        top.tick_params(labelbottom=False)
    else:
        top = foot = one_axes(ax, 5.0, 5.0)
        key = draw_curve_of_each_set(top, lines, curve)
    _label_axes(top, foot)
    title = "Reliability of the most probable class"
    write_title(top, title, f"{len(lines)} sets of predictions")
    draw_side_legend(top, key, [line.legend_label for line in lines])
    words = [caption_of("reliability", result, curve=curve)] if caption else []
    write_footer(top, words, place=ax)
    return top


def _distance_subtitle(assessment: Assessment, drawing: ReliabilityPanel) -> str:
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
    ece = f"ECE {format_number(assessment.metrics['ece'])}"
    null = assessment.null_distributions.get("ece")
    if null is not None:
        low = format_number(null.low)
        high = format_number(null.high)
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
    name, errors = class_errors_for_curve(assessment, curve)
    places = columns_worst_first(assessment, order, errors)
    n_shown = max_classes
    n_given = count_axes(ax)
    if n_given:
        n_shown = min(n_shown, n_given)
    chosen = places[: max(1, n_shown)]
    axes = shared_panels(len(chosen), columns, ax)
    names = fit_labels(predictions.classes, room=title_width_in_points(axes), bold=True)
    for panel, j in zip(axes, chosen, strict=True):
        drawing = ReliabilityPanel(
            assessment, curve, n_bins, binning, predictions.classes[j]
        )
        drawing.draw(panel, strip=True)
        below = f"{name} {format_number(errors[j])}"
        if curve == "bins":
            below += f", z {format_signed(assessment.in_the_large['z'][j])}"
        write_title(panel, names[j], below)
    label_outer(axes, "Predicted probability", "Observed frequency")
    words = []
    if len(chosen) < len(places):
        few = f"{len(chosen)} of {len(places)} classes"
        what = "calibration error" if curve == "bins" else name
        largest_left = format_number(errors[places[len(chosen)]])
        if order:
            words.append(f"{few}; the {what} of the others is at most {largest_left}.")
        else:
            most = f"The {few} with the largest {what}"
            words.append(f"{most}; that of the others is at most {largest_left}.")
    if caption:
        words.append(caption_of("reliability_by_class", assessment, curve=curve))
    write_footer(axes, words, drawing.legend_entries, ax)
    return axes


def columns_worst_first(
    assessment: Assessment,
    order: Sequence[Hashable] = (),
    errors: Sequence[float] | None = None,
) -> list[int]:
    """Return the columns of these classes, then the others by calibration error, largest first."""
    sizes = errors or class_errors(assessment)
    given = [assessment.predictions.classes.index(label) for label in order]
    rest = [j for j in range(len(sizes)) if j not in given]
    # rounded, so that classes of the same error come in the order of their columns everywhere
    rest.sort(key=lambda j: -round(sizes[j], 12))
    return [*given, *rest]


def class_errors_for_curve(
    assessment: Assessment, curve: Curve
) -> tuple[str, list[float]]:
    """Return what the distance from calibration is called for a curve, and that of each class."""
    rows = assessment.predictions
    if curve == "smooth":
        return "ICI", calibration_distances(None, rows)["ici"][1:-1]
    if curve == "isotonic":
        pooled = [pool_equal_predictions(rows, label) for label in rows.classes]
        return "MCB", [own.decompose_score().miscalibration for own in pooled]
    return "ECE", class_errors(assessment)


def class_errors(assessment: Assessment) -> list[float]:
    """Return each class's calibration error; their mean is ``metrics["classwise_ece"]``."""
    predictions = assessment.predictions
    return (
        ClasswiseECE(predictions).errors_by_class(predictions.codes[None])[0].tolist()
    )
