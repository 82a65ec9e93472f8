"""What lies behind a verdict: every class as the baseline, and the ladder of nested models.

==========  ==================================================================================
baselines   the statistic of each, and how far it moves repaired probabilities
mark        ``2 [l(model) - l(identity)]``, the likelihood ratio statistic, on an axis from 0
grey bar    what a model gains on average when the predictions are calibrated: its parameters
beside      the parameters, and the p-value of "this model is enough"
==========  ==================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from .._assessment.assessment import Assessment
from .._diagnosis.baseline_sensitivity import LEVEL, BaselineSensitivity
from .._diagnosis.ladder import Ladder
from .._diagnosis.ladder_models import LadderRow
from .._ground.text import format_number, p_words
from ..exceptions import InputError
from ._layout import OwnFigure, footer, heading
from ._scales import plain_ticks
from ._style import (
    BAND,
    BLUE,
    FAINT,
    INK,
    MUTED,
    SMALL,
    VERMILION,
    beside,
    marks,
    plain_axes,
    styled,
)
from ._words import SMALLEST_CHANGE, format_change, model_name, shown_all, width_of
from ._words import caption as caption_of

Mask = NDArray[np.bool_]

MAX_BASELINES = 20


@styled
def baselines(
    result: BaselineSensitivity | Assessment,
    *,
    max_baselines: int = MAX_BASELINES,
    caption: bool = False,
) -> list[Axes]:
    """Draw the statistic of each baseline, and how far it moves repaired probabilities.

    Parameters
    ----------
    result : BaselineSensitivity or Assessment
        What `mcllo.baseline_sensitivity` or `mcllo.assess` returned.
    max_baselines : int
        Most rows; of more baselines the reference and those that move most are shown.
    caption : bool
        Write under the figure how to read it.

    Returns
    -------
    list of Axes
        That of the statistics and that of the changes.

    Examples
    --------
    >>> import mcllo
    >>> probs = np.random.default_rng(0).dirichlet([1, 1, 1], size=30)
    >>> a = mcllo.assess(probs, [0, 1, 2] * 10, seed=0, n_resamples=19)
    >>> [panel.get_xlabel() for panel in baselines(a)]
    ['Likelihood ratio statistic', 'Change of a probability (log scale)']
    """
    found = baselines_in(result)
    rows = shown_rows(found, max_baselines)
    names = shown_all(found.table["baseline"])
    marked = [f"{names[j]} ◂" if _is_reference(found, j) else names[j] for j in rows]
    beside = max(width_of(name) for name in marked) / 72.0
    axes = list(OwnFigure(6.4 + beside, 1.4 + 0.27 * len(rows)).subplots(1, 2, sharey=True))
    _draw_statistics(axes[0], found, rows)
    _draw_changes(axes[1], found, rows)
    for ax in axes:
        ax.set_ylim(len(rows) - 0.4, -0.6)
        ax.hlines(range(len(rows)), *ax.get_xlim(), color=FAINT, lw=0.5, zorder=0, label="_rows")
        ax.tick_params(axis="y", length=0, pad=7)
    axes[0].set_yticks(range(len(rows)), marked, parse_math=False)
    words = [_folded(len(rows), len(names)), caption_of("baselines", found) if caption else ""]
    footer(axes[0], words, _key(found, rows))
    return axes


def baselines_in(result: BaselineSensitivity | Assessment) -> BaselineSensitivity:
    """Return the sensitivity of an assessment, or the sensitivity itself."""
    if isinstance(result, BaselineSensitivity):
        return result
    found = result.details.baselines
    if found is None:
        two = "with two classes every baseline gives the same answer"
        why = result.details.skipped.get("baselines", two)
        raise InputError(f"result must have been fitted with every baseline; it was not: {why}.")
    return found


def shown_rows(found: BaselineSensitivity, most: int) -> list[int]:
    """Return the reference and the baselines that move probabilities most, in column order."""
    moved = np.nan_to_num(np.array(found.table["mean_change"], dtype=np.float64))
    moved[[_is_reference(found, j) for j in range(len(moved))]] = np.inf
    return sorted(np.argsort(-moved, kind="stable")[: max(1, most)].tolist())


def _is_reference(found: BaselineSensitivity, j: int) -> bool:
    return bool(found.table["baseline"][j] == found.reference)


def _column(found: BaselineSensitivity, name: str, rows: Sequence[int]) -> Any:
    return np.array([found.table[name][j] for j in rows])


def _draw_statistics(ax: Axes, found: BaselineSensitivity, rows: Sequence[int]) -> None:
    plain_axes(ax)
    value = _column(found, "statistic", rows).astype(np.float64)
    off = _column(found, "pvalue", rows) <= LEVEL
    ax.set_xlim(0.0, 1.08 * max(float(np.nanmax(value)), 1.0))
    marks(ax, value, off, "D", VERMILION, "_rejected")
    marks(ax, value, ~off, "o", BLUE, "_kept")
    beside(ax, [format_number(v) for v in value])
    plain_ticks(ax, log=False)
    ax.set_xlabel("Likelihood ratio statistic")
    heading(ax, "The test", "◂ marks the reference")


def _draw_changes(ax: Axes, found: BaselineSensitivity, rows: Sequence[int]) -> None:
    plain_axes(ax)
    mean, most = (
        _column(found, name, rows).astype(np.float64) for name in ("mean_change", "largest_change")
    )
    known = _known(found, rows) & ~np.array([_is_reference(found, j) for j in rows])
    ax.set_xscale("log")
    ax.set_xlim(SMALLEST_CHANGE / 1.5, 1.3)
    near, far = (np.maximum(change, SMALLEST_CHANGE) for change in (mean, most))
    places = np.arange(len(rows))
    ax.hlines(places[known], near[known], far[known], color=MUTED, lw=1.2, label="_spans")
    marks(ax, most, known & (most >= SMALLEST_CHANGE), "s", MUTED, "_largest", "white")
    marks(ax, mean, known & (mean >= SMALLEST_CHANGE), "s", MUTED, "_mean")
    edge = np.full(len(rows), SMALLEST_CHANGE / 1.5)
    marks(ax, edge, known & (mean < SMALLEST_CHANGE), "<", MUTED, "_beyond")
    beside(ax, [_change_words(found, j) for j in rows])
    plain_ticks(ax, log=True)
    ax.set_xlabel("Change of a probability (log scale)")
    heading(ax, "The repaired probabilities", "against the reference: mean and largest")


def _known(found: BaselineSensitivity, rows: Sequence[int]) -> Mask:
    """Return where a repair exists."""
    converged, separated = (
        _column(found, name, rows).astype(bool) for name in ("converged", "separated")
    )
    known: Mask = converged & ~separated
    return known


def _change_words(found: BaselineSensitivity, j: int) -> str:
    if _is_reference(found, j):
        return "reference"
    if not _known(found, [j])[0]:
        return "no estimate"
    mean, most = found.table["mean_change"][j], found.table["largest_change"][j]
    return f"{format_change(mean)}; {format_change(most)}"


def _key(found: BaselineSensitivity, rows: Sequence[int]) -> list[Artist]:
    off = _column(found, "pvalue", rows) <= LEVEL
    look: dict[str, Any] = {"ls": "none", "markersize": 6.0}
    entries: list[Artist] = []
    if off.any():
        label = f"rejected at level {LEVEL:g}"
        entries.append(Line2D([], [], marker="D", color=VERMILION, label=label, **look))
    if not off.all():
        entries.append(Line2D([], [], marker="o", color=BLUE, label="not rejected", **look))
    entries.append(Line2D([], [], marker="s", color=MUTED, label="mean change", **look))
    hollow = Line2D([], [], marker="s", color=MUTED, markerfacecolor="white", **look)
    hollow.set_label("largest change")
    return [*entries, hollow]


def _folded(n_shown: int, total: int) -> str:
    if n_shown == total:
        return ""
    return f"The reference and those of {total} baselines that move most: {n_shown} are shown."


COLUMNS = ((62.0, "parameters"), (128.0, "enough? p"))
"""Right ends, in points from the axes, and heads of the columns beside them."""
RING: dict[str, Any] = {
    "ls": "none",
    "marker": "o",
    "markersize": 12.5,
    "markerfacecolor": "none",
    "markeredgewidth": 1.4,
}


@styled
def ladder(
    result: Ladder | Assessment,
    *,
    ax: Axes | None = None,
    numbers: bool = True,
    caption: bool = False,
) -> Axes:
    """Draw how much each nested model of miscalibration explains, and which one is enough.

    Parameters
    ----------
    result : Ladder or Assessment
        What `mcllo.ladder` or `mcllo.assess` returned.
    ax : Axes, optional
        Where to draw; a new figure when not given.
    numbers : bool
        Write parameters and p-values beside the rows; without them the figure is narrower.
    caption : bool
        Write under the figure how to read it.

    Returns
    -------
    Axes
        One row for each model, from the predictions as they are to the largest.

    Examples
    --------
    >>> import mcllo
    >>> a = mcllo.assess([[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]], [0, 0, 1, 1], seed=0)
    >>> ladder(a).get_xlabel()
    'Likelihood ratio statistic'
    """
    found = ladder_in(result)
    rows = found.rows
    if ax is None:
        ax = OwnFigure(7.2 if numbers else 4.9, 1.15 + 0.3 * len(rows)).subplots()
    plain_axes(ax)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    gain = np.array([row.statistic for row in rows], dtype=np.float64)
    chance = np.array([row.df for row in rows], dtype=np.float64)
    ax.set_xlim(0.0, 1.06 * max(float(np.nanmax(gain)), float(chance.max()), 1.0))
    _draw_rows(ax, found, gain, chance)
    plain_ticks(ax, log=False)
    ax.set_yticks(range(len(rows)), [model_name(row.model) for row in rows])
    ax.tick_params(axis="y", length=0, pad=10)  # the ring needs room
    ax.get_yticklabels()[_place(found)].set_fontweight("bold")
    if numbers:
        _columns(ax, rows)
    ax.set_xlabel("Likelihood ratio statistic")
    chosen = model_name(found.chosen)
    heading(ax, "What each model explains", f"smallest not rejected: {chosen}")
    words = [f"{found.skipped[:1].upper()}{found.skipped[1:]}." if found.skipped else ""]
    words.append(caption_of("ladder", found) if caption else "")
    footer(ax, words, _ladder_key(found))
    return ax


def ladder_in(result: Ladder | Assessment) -> Ladder:
    """Return the ladder of an assessment, or the ladder itself."""
    if isinstance(result, Ladder):
        return result
    found = result.details.ladder
    if found is None:
        why = result.details.skipped["ladder"]
        raise InputError(f"result must have a ladder; it was left out here: {why}.")
    return found


def _draw_rows(ax: Axes, found: Ladder, gain: NDArray[Any], chance: NDArray[Any]) -> None:
    places = np.arange(len(gain))
    off = np.array([row.rejected for row in found.rows], dtype=bool)
    ax.barh(places, chance, height=0.62, color=BAND, lw=0, zorder=1, label="_chance")
    ax.hlines(places, 0.0, gain, color=FAINT, lw=1.4, zorder=2, label="_gains")
    marks(ax, gain, off, "D", VERMILION, "_rejected")
    marks(ax, gain, ~off, "o", BLUE, "_kept")
    ring = [_place(found)]
    ax.plot(gain[ring], places[ring], color=INK, clip_on=False, zorder=4, label="_chosen", **RING)


def _place(found: Ladder) -> int:
    """Return the row of the chosen model."""
    return [row.model for row in found.rows].index(found.chosen)


def _columns(ax: Axes, rows: Sequence[LadderRow]) -> None:
    """Write parameters and p-values in columns at the right of the axes."""
    columns = [str(row.df) for row in rows], [enough(row) for row in rows]
    for (right, head), words in zip(COLUMNS, columns, strict=True):
        beside(ax, words, right)
        ax.annotate(
            head,
            (1.0, 1.0),
            xytext=(right, 3),
            xycoords="axes fraction",
            textcoords="offset points",
            ha="right",
            va="bottom",
            fontsize=SMALL,
            color=MUTED,
            annotation_clip=False,
        )


def enough(row: LadderRow) -> str:
    """Return the p-value of "this model is enough" as a word; a bound says so."""
    if row.larger is None:
        return "-"
    return p_words(row.larger_pvalue, bound=row.larger_method == "bound").cell


def _ladder_key(found: Ladder) -> list[Artist]:
    look: dict[str, Any] = {"ls": "none", "markersize": 6.5}
    entries: list[Artist] = []
    if any(row.rejected for row in found.rows):
        entries.append(Line2D([], [], marker="D", color=VERMILION, label="rejected", **look))
    entries.append(Line2D([], [], marker="o", color=BLUE, label="not rejected", **look))
    entries.append(Line2D([], [], color=INK, label="the smallest", **RING))
    entries.append(Patch(facecolor=BAND, label="chance alone"))
    return entries
