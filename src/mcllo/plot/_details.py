"""What lies behind a verdict: baselines, nested models, and the fitted map.

=================  =============================================================================
`baselines`        the statistic of each, and how far it moves recalibrated probabilities
`nested_models`    ``2 [l(model) - l(identity)]``, the likelihood ratio statistic of each model, on
                   an axis from 0; hollow where a model is not rejected although its p-value is
                   small, as something inside it is not rejected; grey bars are what it gains on
                   average when the predictions are calibrated: its number of parameters
`parameters`       a forest plot of delta and gamma
`calibration_map`  what the map does to a probability
=================  =============================================================================
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from .._assessment.assessment import Assessment
from .._assessment.report_text import max_abs_wald_z_by_class
from .._diagnostics.baseline_sensitivity import TEST_LEVEL, BaselineSensitivity
from .._diagnostics.nested_models import NestedModelRow, NestedModels
from .._fit.fit import MCLLOFit
from .._fit.map import MCLLOMap
from .._utils.formatting import format_number, pvalue_text
from .._utils.results import Floats
from ..exceptions import InputError
from ._layout import (
    Place,
    Places,
    draw_side_legend,
    one_axes,
    side_by_side,
    take_given_axes,
    write_footer,
    write_title,
)
from ._reliability_curves import draw_identity_line
from ._style import (
    BAND,
    BLUE,
    DASHES,
    FAINT,
    INK,
    MUTED,
    SERIES,
    VERMILION,
    Estimates,
    Mask,
    draw_forest,
    draw_row_lines,
    draw_row_markers,
    forest_legend,
    legend_marker,
    set_round_ticks,
    set_unit_range,
    style_axes,
    styled_figure,
    write_row_texts,
    write_small_text,
)
from ._words import (
    SMALLEST_CHANGE,
    fit_label,
    fit_labels,
    format_probability_change,
    nested_model_label,
    text_width,
)
from ._words import caption as caption_of


@styled_figure
def baselines(
    result: BaselineSensitivity | Assessment,
    *,
    ax: Places = None,
    max_baselines: int = 20,
    caption: bool = False,
) -> list[Axes]:
    """Draw the statistic of each baseline, and how far it moves recalibrated probabilities.

    Parameters
    ----------
    result : BaselineSensitivity or Assessment
        What `mcllo.baseline_sensitivity` or `mcllo.assess` returned.
    ax : array of Axes, Figure or SubFigure, optional
        Where to draw: two axes, or a part of a figure; a new figure when not given.
    max_baselines : int
        Most rows; of more baselines the reference and those that move most are shown.
    caption : bool
        Write under the figure how to read it.

    Returns
    -------
    list of Axes
        That of the statistics and that of the changes.

    See Also
    --------
    mcllo.baseline_sensitivity : What is drawn.
    nested_models : The nested models of one baseline.
    parameters : The fit of one baseline.

    Notes
    -----
    The scale of the second panel is logarithmic: changes differ by powers of ten.

    Examples
    --------
    >>> import mcllo
    >>> probs = np.random.default_rng(0).dirichlet([1, 1, 1], size=30)
    >>> a = mcllo.assess(probs, [0, 1, 2] * 10, seed=0, n_resamples=19)
    >>> [panel.get_xlabel() for panel in baselines(a)]
    ['Likelihood ratio statistic', 'Change of a probability (log scale)']
    """
    found = get_baseline_sensitivity(result)
    rows = select_baseline_columns(found, max_baselines)
    names = fit_labels(found.table["baseline"])
    is_reference = _is_reference(found)
    labels = [f"{names[j]} ◂" if is_reference[j] else names[j] for j in rows]
    label_inches = max(text_width(label) for label in labels) / 72.0
    # the labels stand outside of the axes; each row takes 0.27 inches
    test, change = side_by_side(ax, 2, 6.4 + label_inches, 1.4 + 0.27 * len(rows))
    is_rejected = _draw_statistic_by_baseline(test, found, rows)
    _draw_change_by_baseline(change, found, rows)
    for panel in (test, change):
        draw_row_lines(panel, len(rows))
    test.set_yticks(range(len(rows)), labels, parse_math=False)
    key: list[Artist] = []
    if is_rejected.any():
        key.append(legend_marker("D", VERMILION, f"rejected at level {TEST_LEVEL:g}"))
    if not is_rejected.all():
        key.append(legend_marker("o", BLUE, "not rejected"))
    key.append(legend_marker("s", MUTED, "mean change"))
    key.append(legend_marker("s", MUTED, "largest change", "white"))
    words = []
    if len(rows) < len(names):
        most = f"The reference and those of {len(names)} baselines that move most"
        words.append(f"{most}: {len(rows)} are shown.")
    if caption:
        words.append(caption_of("baselines", found))
    write_footer([test, change], words, key, ax)
    return [test, change]


def get_baseline_sensitivity(
    result: BaselineSensitivity | Assessment,
) -> BaselineSensitivity:
    """Return the sensitivity of an assessment, or the sensitivity itself."""
    if isinstance(result, BaselineSensitivity):
        return result
    found = result.details.baselines
    if found is None:
        of_two = "with two classes every baseline gives the same answer"
        why = result.details.skipped.get("baselines", of_two)
        raise InputError(
            f"result must have been fitted with every baseline; it was not: {why}."
        )
    return found


def select_baseline_columns(
    sensitivity: BaselineSensitivity, max_baselines: int
) -> list[int]:
    """Return the reference and the baselines that move probabilities most, in column order."""
    change = np.nan_to_num(np.array(sensitivity.table["mean_change"], dtype=np.float64))
    change[_is_reference(sensitivity)] = np.inf  # first in any case
    order = np.argsort(-change, kind="stable")
    return sorted(order[: max(1, max_baselines)].tolist())


def _is_reference(sensitivity: BaselineSensitivity) -> Mask:
    """Return a mask of the baseline that is the reference."""
    return np.array(
        [label == sensitivity.reference for label in sensitivity.table["baseline"]]
    )


def _draw_statistic_by_baseline(
    ax: Axes, sensitivity: BaselineSensitivity, shown: Sequence[int]
) -> Mask:
    """Draw the statistic of each baseline; return which of them are rejected."""
    style_axes(ax)
    statistic = np.array(sensitivity.table["statistic"], dtype=np.float64)[shown]
    is_rejected = np.array(sensitivity.table["pvalue"])[shown] <= TEST_LEVEL
    ax.set_xlim(0.0, 1.08 * max(float(np.nanmax(statistic)), 1.0))
    draw_row_markers(ax, statistic, is_rejected, "D", VERMILION, "_rejected")
    draw_row_markers(ax, statistic, ~is_rejected, "o", BLUE, "_kept")
    write_row_texts(ax, [format_number(value) for value in statistic])
    set_round_ticks(ax, log=False)
    ax.set_xlabel("Likelihood ratio statistic")
    write_title(ax, "The test", "◂ marks the reference")
    return is_rejected


def _draw_change_by_baseline(
    ax: Axes, sensitivity: BaselineSensitivity, shown: Sequence[int]
) -> None:
    """Draw how far each baseline moves recalibrated probabilities, where a recalibration exists."""
    style_axes(ax)
    left_edge = SMALLEST_CHANGE / 1.5  # where arrows stand for what is smaller
    ax.set_xscale("log")
    ax.set_xlim(left_edge, 1.3)
    mean = np.array(sensitivity.table["mean_change"], dtype=np.float64)[shown]
    largest = np.array(sensitivity.table["largest_change"], dtype=np.float64)[shown]
    converged = np.array(sensitivity.table["converged"], dtype=bool)[shown]
    separated = np.array(sensitivity.table["separated"], dtype=bool)[shown]
    has_estimate = converged & ~separated
    is_reference = _is_reference(sensitivity)[shown]

    drawn = has_estimate & ~is_reference
    places = np.arange(len(shown))
    near = np.maximum(mean, SMALLEST_CHANGE)
    far = np.maximum(largest, SMALLEST_CHANGE)
    ax.hlines(
        places[drawn], near[drawn], far[drawn], color=MUTED, lw=1.2, label="_spans"
    )
    draw_row_markers(
        ax,
        largest,
        drawn & (largest >= SMALLEST_CHANGE),
        "s",
        MUTED,
        "_largest",
        "white",
    )
    draw_row_markers(ax, mean, drawn & (mean >= SMALLEST_CHANGE), "s", MUTED, "_mean")
    edge = np.full(len(shown), left_edge)
    draw_row_markers(ax, edge, drawn & (mean < SMALLEST_CHANGE), "<", MUTED, "_beyond")
    words = []
    for place in places:
        if is_reference[place]:
            words.append("reference")
        elif not has_estimate[place]:
            words.append("no estimate")
        else:
            mean_change = format_probability_change(mean[place])
            largest_change = format_probability_change(largest[place])
            words.append(f"{mean_change}; {largest_change}")
    write_row_texts(ax, words)
    set_round_ticks(ax, log=True)
    ax.set_xlabel("Change of a probability (log scale)")
    write_title(
        ax, "The recalibrated probabilities", "against the reference: mean and largest"
    )


RING: dict[str, Any] = {
    "ls": "none",
    "marker": "o",
    "markersize": 12.5,
    "markerfacecolor": "none",
    "markeredgewidth": 1.4,
}


@styled_figure
def nested_models(
    result: NestedModels | Assessment,
    *,
    ax: Place = None,
    numbers: bool = True,
    caption: bool = False,
) -> Axes:
    """Draw how much each nested model of miscalibration explains, and which one is enough.

    Parameters
    ----------
    result : NestedModels or Assessment
        What `mcllo.nested_models` or `mcllo.assess` returned.
    ax : Axes, Figure or SubFigure, optional
        Where to draw; a new figure when not given.
    numbers : bool
        Write parameters and p-values beside the rows; without them the figure is narrower.
    caption : bool
        Write under the figure how to read it.

    Returns
    -------
    Axes
        One row for each model, from the predictions as they are to the largest.

    See Also
    --------
    mcllo.nested_models : What is drawn.
    parameters : The parameters of the MCLLO model.
    baselines : The statistic with every class as the baseline.

    Examples
    --------
    >>> import mcllo
    >>> a = mcllo.assess([[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]], [0, 0, 1, 1], seed=0)
    >>> nested_models(a).get_xlabel()
    'Likelihood ratio statistic'
    """
    found = get_nested_models(result)
    rows = found.rows
    place = ax
    ax = one_axes(place, 7.2 if numbers else 4.9, 1.15 + 0.3 * len(rows))
    style_axes(ax)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    places = np.arange(len(rows))
    statistic = np.array([row.statistic for row in rows], dtype=np.float64)
    # by Wilks's theorem a chi-square with that many degrees of freedom, whose mean they are
    chance = np.array([row.df for row in rows], dtype=np.float64)
    is_rejected = np.array([row.rejected for row in rows], dtype=bool)
    is_held = np.array(
        [is_kept_by_closed_testing(row, found.alpha) for row in rows], dtype=bool
    )
    right = max(float(np.nanmax(statistic)), float(chance.max()), 1.0)
    ax.set_xlim(0.0, 1.06 * right)
    ax.barh(places, chance, height=0.62, color=BAND, lw=0, zorder=1, label="_chance")
    ax.hlines(places, 0.0, statistic, color=FAINT, lw=1.4, zorder=2, label="_gains")
    draw_row_markers(ax, statistic, is_rejected, "D", VERMILION, "_rejected")
    draw_row_markers(ax, statistic, ~is_rejected & ~is_held, "o", BLUE, "_kept")
    draw_row_markers(ax, statistic, is_held, "o", BLUE, "_held", "white")
    chosen = [row.model for row in rows].index(found.chosen)
    ax.plot(
        statistic[chosen],
        chosen,
        color=INK,
        clip_on=False,
        zorder=4,
        label="_chosen",
        **RING,
    )
    set_round_ticks(ax, log=False)
    ax.set_yticks(places, [nested_model_label(row.model) for row in rows])
    ax.tick_params(axis="y", length=0, pad=10)  # the ring needs room
    ax.get_yticklabels()[chosen].set_fontweight("bold")
    if numbers:
        _write_column(ax, "parameters", [str(row.df) for row in rows], right=62.0)
        _write_column(
            ax,
            "enough? p",
            [format_sufficiency_pvalue(row) for row in rows],
            right=128.0,
        )
    ax.set_xlabel("Likelihood ratio statistic")
    smallest = f"smallest not rejected: {nested_model_label(found.chosen)}"
    write_title(ax, "What each model explains", smallest)
    key: list[Artist] = []
    if is_rejected.any():
        key.append(legend_marker("D", VERMILION, "rejected", size=6.5))
    key.append(legend_marker("o", BLUE, "not rejected", size=6.5))
    if is_held.any():
        key.append(
            legend_marker("o", BLUE, "nor this, though p is small", "white", size=6.5)
        )
    key.append(Line2D([], [], color=INK, label="the smallest", **RING))
    key.append(Patch(facecolor=BAND, label="chance alone"))
    words = []
    if found.skipped:
        words.append(f"{found.skipped[:1].upper()}{found.skipped[1:]}.")
    if caption:
        words.append(caption_of("nested_models", found))
    write_footer(ax, words, key, place)
    return ax


def _write_column(ax: Axes, head: str, cells: Sequence[str], right: float) -> None:
    """Write a column beside the rows that ends so many points from the axes."""
    write_row_texts(ax, cells, right)
    write_small_text(
        ax, head, (1.0, 1.0), (right, 3), ha="right", va="bottom", color=MUTED
    )


def is_kept_by_closed_testing(row: NestedModelRow, alpha: float) -> bool:
    """Whether closed testing keeps a model whose own p-value is below the level."""
    return not row.rejected and row.larger is not None and row.larger_pvalue <= alpha


def get_nested_models(result: NestedModels | Assessment) -> NestedModels:
    """Return the nested models of an assessment, or the nested models themselves."""
    if isinstance(result, NestedModels):
        return result
    found = result.nested_models()
    if found is None:
        why = result.details.skipped["nested_models"]
        raise InputError(
            f"result must have nested models; they were left out here: {why}."
        )
    return found


def format_sufficiency_pvalue(row: NestedModelRow) -> str:
    """Return the p-value of "this model is enough" as a word; a bound says so."""
    if row.larger is None:
        return "-"
    words = pvalue_text(row.larger_pvalue)
    return f"≤ {words.number}" if row.larger_method == "bound" else words.without_equals


@styled_figure
def parameters(
    fit: MCLLOFit,
    *,
    ax: Place | Places = None,
    max_classes: int = 20,
    order: Sequence[Hashable] = (),
    caption: bool = False,
) -> list[Axes]:
    """Draw delta and gamma of each class with 95 % intervals, and the line where nothing changes.

    Parameters
    ----------
    fit : MCLLOFit
        A fitted map, such as ``assessment.fit`` or ``calibrator.fit_``.
    ax : Axes, two Axes, Figure or SubFigure, optional
        Where to draw, one axes divided in two; a new figure when not given.
    max_classes : int
        Most rows; of more classes those farthest from the identity are shown, in column order.
    order : sequence of labels
        Classes to show, in this order, instead.
    caption : bool
        Write under the figure how to read it.

    Returns
    -------
    list of Axes
        That of delta and that of gamma.

    See Also
    --------
    calibration_map : What the parameters do to a probability.
    mcllo.MCLLOFit : What is drawn.
    mcllo.profile_intervals : Intervals from the likelihood itself.

    Examples
    --------
    >>> import mcllo
    >>> a = mcllo.assess([[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]], [0, 0, 1, 1], seed=0)
    >>> [panel.get_xlabel() for panel in parameters(a.fit)]
    ['delta (log scale)', 'gamma']
    """
    rows = classes_far_from_identity(fit, max_classes, order)
    names = fit_labels(fit.compared)
    labels = [names[j] for j in rows]
    label_inches = max(text_width(label) for label in labels) / 72.0
    whole, left, right = _two_axes(ax, 6.0 + label_inches, 1.4 + 0.27 * len(rows))
    intervals = fit.confidence_interval()
    low, high = intervals.tau[rows].T
    # an estimate is an arrow beyond a delta of 1000, or a slope that is 10 from 1
    shift = Estimates(fit.tau[rows], low, high, reference=0.0, cap=math.log(1000.0))
    low, high = intervals.gamma[rows].T
    slope = Estimates(fit.gamma[rows], low, high, reference=1.0, cap=10.0)
    _draw_parameter_forest(left, shift, labels, log=True)
    _draw_parameter_forest(right, slope, [""] * len(rows), log=False)
    left.set_xlabel("delta (log scale)")
    right.set_xlabel("gamma")
    # titles and a key of axes that were given belong to who gave them
    has_room = ax is None or isinstance(ax, FigureBase)
    write_title(
        left, "Shift", "above 1: more likely than predicted" if has_room else ""
    )
    write_title(
        right, "Slope", "below 1: over-, above: underconfident" if has_room else ""
    )
    words = [
        f"Each class against the baseline, {fit_label(fit.baseline)}.",
        _fit_status(fit),
    ]
    if len(rows) < len(names):
        few = f"{len(rows)} of {len(names)} classes"
        words.append(
            f"{few}." if order else f"The {few} farthest from 1, in standard errors."
        )
    if caption:
        words.append(caption_of("parameters", fit))
    write_footer(whole, words, forest_legend([shift, slope]) if has_room else [], ax)
    return [left, right]


@styled_figure
def calibration_map(
    fit: MCLLOFit,
    *,
    ax: Place = None,
    order: Sequence[Hashable] = (),
    caption: bool = False,
) -> Axes:
    """Draw what the recalibration does to a probability, class by class.

    Of many classes, those farthest from the identity are coloured and the others grey.

    Parameters
    ----------
    fit : MCLLOFit
        A fitted map, such as ``assessment.fit`` or ``calibrator.fit_``.
    ax : Axes, Figure or SubFigure, optional
        Where to draw; a new figure when not given.
    order : sequence of labels
        Classes to colour, in this order, instead; as many as there are colours.
    caption : bool
        Write under the figure how to read it.

    Returns
    -------
    Axes
        One curve for each class other than the baseline.

    See Also
    --------
    parameters : The numbers behind the curves, with intervals.
    ternary : Three classes at once.
    mcllo.MCLLOFit : What is drawn.

    Examples
    --------
    >>> import mcllo
    >>> a = mcllo.assess([[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]], [0, 0, 1, 1], seed=0)
    >>> calibration_map(a.fit).get_ylabel()
    'After recalibration'
    """
    names = fit_labels(fit.compared)
    coloured = classes_far_from_identity(fit, len(SERIES), order)
    n_letters = max(len(names[j]) for j in coloured)
    place = ax
    ax = one_axes(place, 5.6 + 0.08 * max(n_letters, 8), 4.7)
    if place is None:
        ax.set_anchor("W")
    style_axes(ax)
    set_unit_range(ax)
    ax.set_box_aspect(1.0)
    draw_identity_line(ax)
    key = list[Artist]()
    others = [j for j in range(len(fit.compared)) if j not in coloured]
    for j in others:
        before, after = class_against_baseline_curve(fit, j)
        ax.plot(before, after, color=FAINT, lw=0.9, zorder=1, label=f"_{j}")
    for k, j in enumerate(coloured):
        look: dict[str, Any] = {"color": SERIES[k], "ls": DASHES[k], "lw": 1.8}
        before, after = class_against_baseline_curve(fit, j)
        key += ax.plot(before, after, zorder=3, label=f"_{j}", **look)
    entries = [names[j] for j in coloured]
    if others:
        key.append(Line2D([], [], color=FAINT, lw=0.9))
        entries.append(f"{len(others)} others")
    ax.set_xlabel("As predicted")
    ax.set_ylabel("After recalibration")
    base = fit_label(fit.baseline, 16)
    write_title(
        ax,
        "What the recalibration does",
        f"share of a class among the two, it and {base}",
    )
    draw_side_legend(ax, key, entries)
    words = [_fit_status(fit)]
    if caption:
        words.append(caption_of("calibration_map", fit))
    write_footer(ax, words, place=place)
    return ax


def _two_axes(
    ax: Place | Places, width: float, height: float
) -> tuple[Axes, Axes, Axes]:
    """Return what holds the words and two axes: those that were given, or halves of one."""
    if ax is not None and not isinstance(ax, Axes | FigureBase):
        left, right = take_given_axes(ax, 2)
        return left, left, right
    whole = one_axes(ax, width, height)
    whole.set_axis_off()
    left = whole.inset_axes((0.0, 0.0, 0.48, 1.0))
    right = whole.inset_axes((0.52, 0.0, 0.48, 1.0))
    return whole, left, right


def _draw_parameter_forest(
    panel: Axes, estimates: Estimates, labels: list[str], *, log: bool
) -> None:
    """Draw estimates on an axes."""
    style_axes(panel)
    draw_forest(panel, estimates, log=log)
    set_round_ticks(panel, log=log, also=1.0)
    draw_row_lines(panel, len(labels))
    panel.set_yticks(range(len(labels)), labels, parse_math=False)


def classes_far_from_identity(
    fit: MCLLOFit, most: int, given: Sequence[Hashable] = ()
) -> list[int]:
    """Return the first of those given, or the classes farthest from the identity by column."""
    if given:
        places = [fit.compared.index(label) for label in given if label != fit.baseline]
        return places[:most]
    # in standard errors: a class of few rows is far from 1 by chance
    size = max_abs_wald_z_by_class(fit)
    order = sorted(range(len(size)), key=lambda j: -size[j])
    return sorted(order[: max(1, most)])


def class_against_baseline_curve(fit: MCLLOFit, j: int) -> tuple[Floats, Floats]:
    """Return the share of class j among it and the baseline, before and after the map."""
    # dense in the middle and near both ends, where curves bend
    log_odds = np.linspace(-7.0, 7.0, 57)
    near_ends = 1.0 / (1.0 + np.exp(-log_odds))
    percents = np.arange(1, 100) / 100.0
    before = np.unique(np.concatenate([near_ends, percents]))
    classes = (fit.compared[j], fit.baseline)
    two_class_map = MCLLOMap(fit.tau[[j]], fit.gamma[[j]], classes, fit.baseline)
    after = two_class_map.recalibrate(np.column_stack([before, 1.0 - before]))
    return before, after[:, 0]


def _fit_status(fit: MCLLOFit) -> str:
    if fit.separated:
        return "The estimates do not exist (the labels are separated); positions have no meaning."
    if not fit.converged:
        return (
            "The estimates are not determined by these rows; positions have no meaning."
        )
    return ""
