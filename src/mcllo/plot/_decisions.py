"""Decisions: what they cost, what abstaining gains, and net benefit by threshold.

==================  ==============================================================================
`decision_value`    realised cost of acting on the probabilities, on recalibrated ones, of the best
                    constant action and of perfect knowledge; a cross is what was promised
`abstention`        error of the answers against the share answered, before and after recalibration
`decision_curve`    net benefit by threshold, beside treating all and none
==================  ==============================================================================
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from .._assessment.assessment import Assessment
from .._utils.results import Floats
from ..exceptions import InputError
from ._layout import Place, one_axes, write_footer, write_title
from ._style import (
    BLUE,
    INK,
    MUTED,
    REFERENCE_DASHES,
    VERMILION,
    draw_row_lines,
    set_round_ticks,
    style_axes,
    styled_figure,
)
from ._words import caption as caption_of
from ._words import fit_label

if TYPE_CHECKING:  # they load scikit-learn, which other figures do not need
    from .._decisions.abstention import AbstentionCurve
    from .._decisions.decision_curve import DecisionCurve
    from .._decisions.decision_value import DecisionValue

LOOKS = {
    "these probabilities": VERMILION,
    "recalibrated": BLUE,
    "best constant action": MUTED,
    "perfect knowledge": MUTED,
}
"""Colour of each way to act."""


def get_decision_value(result: DecisionValue | Assessment) -> DecisionValue:
    """Return the value of an assessment, or the value itself."""
    if not isinstance(result, Assessment):
        return result
    if result.decision_value is None:
        raise InputError(
            "the assessment must have costs; it has none. Assess with costs=."
        )
    return result.decision_value


@styled_figure
def decision_value(
    result: DecisionValue | Assessment, *, ax: Place = None, caption: bool = False
) -> Axes:
    """Draw what acting on the probabilities costs, beside what else could be done.

    Parameters
    ----------
    result : DecisionValue or Assessment
        What `mcllo.decision_value` or ``mcllo.assess(..., costs=)`` returned.
    ax : Axes, Figure or SubFigure, optional
        Where to draw; a new figure when not given.
    caption : bool
        Write under the figure how to read it.

    Returns
    -------
    Axes
        One row for each way to act.

    See Also
    --------
    mcllo.decision_value : What is drawn.
    abstention : Error against the share answered.
    decision_curve : Net benefit by threshold.

    Examples
    --------
    >>> import mcllo
    >>> rows = mcllo.simulate.draw(200, n_classes=3, seed=1)
    >>> decision_value(mcllo.decision_value(rows, costs={"default": 1})).get_xlabel()
    'Cost of a case'
    """
    found = get_decision_value(result)
    rows = found.table.rows()
    names = [str(row["acting_on"]) for row in rows]
    place = ax
    ax = one_axes(place, 6.4, 1.3 + 0.36 * len(rows))
    style_axes(ax)
    for k, row in enumerate(rows):
        colour = LOOKS[names[k]]
        ends = [row["low"], row["high"]]
        ax.plot(ends, [k, k], color=colour, lw=1.6, label=f"_{names[k]}")
        ax.plot(row["cost"], k, "o", color=colour, ms=5.5, label="_mark")
    ax.plot(found.promised.value, 0, "x", color=INK, ms=6.5, mew=1.6, label="_promised")
    ax.set_xlim(left=0.0)
    set_round_ticks(ax, log=False)
    draw_row_lines(ax, len(rows))
    names[names.index("best constant action")] = (
        f"always {fit_label(found.constant_action)}"
    )
    ax.set_yticks(range(len(rows)), names, parse_math=False)
    ax.set_xlabel("Cost of a case")
    write_title(ax, "What decisions cost", "acting on")
    key: list[Artist] = [
        Line2D([], [], color=INK, marker="x", ls="", mew=1.6, label="promised"),
        Line2D([], [], color=INK, marker="o", lw=1.6, label="realised"),
    ]
    words = [caption_of("decision_value", found)] if caption else []
    write_footer(ax, words, key, place)
    return ax


@styled_figure
def abstention(
    result: AbstentionCurve,
    *,
    what: Literal["error", "cost"] = "error",
    ax: Place = None,
    caption: bool = False,
) -> Axes:
    """Draw error or cost of the answers against the share of the rows that is answered.

    Parameters
    ----------
    result : AbstentionCurve
        What `mcllo.abstention_curve` returned.
    what : {"error", "cost"}
        The share of wrong answers, or the mean realised cost of an answer.
    ax : Axes, Figure or SubFigure, optional
        Where to draw; a new figure when not given.
    caption : bool
        Write under the figure how to read it.

    Returns
    -------
    Axes
        A line before and one after recalibration; bands are intervals at each point.

    See Also
    --------
    mcllo.abstention_curve : What is drawn.
    mcllo.abstention_threshold : A threshold with a guarantee.
    decision_value : What decisions cost.

    Examples
    --------
    >>> import mcllo
    >>> rows = mcllo.simulate.draw(200, n_classes=3, seed=1)
    >>> abstention(mcllo.abstention_curve(rows, calibrator=None)).get_xlabel()
    'Answered'
    """
    if what not in ("error", "cost"):
        raise InputError(argument="what", rule="be 'error' or 'cost'", value=what)
    place = ax
    ax = one_axes(place, 6.0, 4.2)
    style_axes(ax)
    is_recalibrated = np.array(result.table["recalibrated"])
    x = np.array(result.table["answered"])
    value, low, high = (
        np.array(result.table[name]) for name in (what, f"{what}_low", f"{what}_high")
    )
    key: list[Artist] = []
    for after in (False, True):
        own = is_recalibrated == after
        if own.any():
            label = "recalibrated" if after else "as predicted"
            ends = (low[own], high[own])
            key.append(_draw_line(ax, x[own], value[own], ends, after, label))
    ax.set_xlim(0.0, 1.02)
    ax.set_ylim(bottom=0.0)
    ax.set_xlabel("Answered")
    ax.set_ylabel("Wrong answers" if what == "error" else "Cost of an answer")
    write_title(ax, "Answer, or leave it", "the surest rows are answered first")
    words = [caption_of("abstention", result)] if caption else []
    write_footer(ax, words, key, place)
    return ax


@styled_figure
def decision_curve(
    result: DecisionCurve, *, ax: Place = None, caption: bool = False
) -> Axes:
    """Draw net benefit by threshold, beside treating all and treating none.

    Parameters
    ----------
    result : DecisionCurve
        What `mcllo.decision_curve` returned.
    ax : Axes, Figure or SubFigure, optional
        Where to draw; a new figure when not given.
    caption : bool
        Write under the figure how to read it.

    Returns
    -------
    Axes
        Bands are intervals at each threshold.

    See Also
    --------
    mcllo.decision_curve : What is drawn.
    decision_value : What decisions cost, of any number of classes.
    abstention : Error against the share answered.

    Examples
    --------
    >>> import mcllo
    >>> rows = mcllo.simulate.draw(200, n_classes=2, seed=1)
    >>> decision_curve(mcllo.decision_curve(rows, calibrator=None)).get_xlabel()
    'Threshold of the risk'
    """
    place = ax
    ax = one_axes(place, 6.0, 4.2)
    style_axes(ax)
    table = result.table
    x = np.array(table["threshold"])
    (all_treated,) = ax.plot(
        x, table["treat_all"], color=MUTED, lw=1.2, label="treat all"
    )
    none = ax.axhline(0.0, color=INK, lw=1.0, ls=REFERENCE_DASHES, label="treat none")
    before = [np.array(table[name]) for name in ("net_benefit", "low", "high")]
    ends = (before[1], before[2])
    key: list[Artist] = [
        _draw_line(ax, x, before[0], ends, False, "as predicted"),
    ]
    highest = float(before[2].max())
    if "recalibrated" in table.columns:
        after = [
            np.array(table[name])
            for name in ("recalibrated", "recalibrated_low", "recalibrated_high")
        ]
        ends = (after[1], after[2])
        key.append(_draw_line(ax, x, after[0], ends, True, "recalibrated"))
        highest = max(highest, float(after[2].max()))
    if not math.isfinite(highest) or highest <= 0.0:
        highest = 0.1
    # far below 0 nobody would act: what is of interest lies above
    ax.set_ylim(-0.35 * highest, 1.1 * highest)
    ax.set_xlim(0.0, 1.0)
    ax.set_xlabel("Threshold of the risk")
    ax.set_ylabel("Net benefit")
    write_title(
        ax, "Decision curve", f"acting on the risk of {fit_label(result.positive)}"
    )
    words = [caption_of("decision_curve", result)] if caption else []
    write_footer(ax, words, [*key, all_treated, none], place)
    return ax


def _draw_line(
    ax: Axes,
    x: Floats,
    value: Floats,
    ends: tuple[Floats, Floats],
    after: bool,
    label: str,
) -> Artist:
    """Draw a line with its band, before or after recalibration; return it for the key."""
    colour = BLUE if after else VERMILION
    ax.fill_between(x, *ends, color=colour, alpha=0.15, lw=0, label=f"_{label} band")
    dashes = "-" if after else (0, (5, 1.5))
    (line,) = ax.plot(x, value, color=colour, lw=1.7, ls=dashes, label=label)
    return line
