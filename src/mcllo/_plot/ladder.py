"""The ladder of nested models: how much each explains, and whether it is enough.

==========  ==================================================================================
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

from .._assess import Assessment
from .._ladder import Ladder
from .._ladder_rows import LadderRow
from .._text import format_p
from ..exceptions import InputError
from .captions import caption as caption_of
from .layout import OwnFigure, footer, heading
from .marks import beside, marks
from .plain_words import model_name
from .scales import plain_ticks
from .style import BAND, BLUE, FAINT, INK, MUTED, SMALL, VERMILION, plain_axes, styled

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
    footer(ax, words, _key(found))
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
    word = format_p(row.larger_pvalue)
    return word.replace("=", "≤") if row.larger_method == "bound" else word.removeprefix("= ")


def _key(found: Ladder) -> list[Artist]:
    look: dict[str, Any] = {"ls": "none", "markersize": 6.5}
    entries: list[Artist] = []
    if any(row.rejected for row in found.rows):
        entries.append(Line2D([], [], marker="D", color=VERMILION, label="rejected", **look))
    entries.append(Line2D([], [], marker="o", color=BLUE, label="not rejected", **look))
    entries.append(Line2D([], [], color=INK, label="the smallest", **RING))
    entries.append(Patch(facecolor=BAND, label="chance alone"))
    return entries
