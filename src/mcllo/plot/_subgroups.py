"""Subgroups beside each other: a forest plot of the slope and of the size of each.

==========  ==================================================================================
slope       one exponent for all probabilities; the dashed line is 1, where nothing changes, the
            solid one that of all rows together
off by      mean change in percentage points; up to the tolerance the ground is grey
mark        the verdict of each, allowing for their number
==========  ==================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from .._assessment.assessment import Assessment
from .._assessment.subgroup_results import ORDER, Subgroups
from .._assessment.verdict import TOLERANCE, Kind
from .._utils.formatting import format_count
from ..exceptions import InputError
from ._layout import Places, side_by_side, write_footer, write_title
from ._style import (
    BAND,
    BLUE,
    INK,
    MUTED,
    ORANGE,
    REFERENCE_DASHES,
    VERMILION,
    Estimates,
    draw_row_lines,
    draw_row_markers,
    legend_marker,
    set_round_ticks,
    style_axes,
    styled_figure,
    write_row_texts,
    write_small_text,
)
from ._words import caption as caption_of
from ._words import fit_labels, text_width

LOOKS: dict[Kind, tuple[str, str, str | None, str]] = {
    "miscalibrated": ("D", VERMILION, None, "miscalibrated"),
    "negligible": ("^", ORANGE, None, "negligible"),
    "inconclusive": ("s", MUTED, "white", "inconclusive"),
    "not_detected": ("o", BLUE, None, "not detected"),
}
"""Marker, colour, filling and words of each verdict."""


@styled_figure
def subgroups(
    result: Subgroups | Assessment,
    *,
    ax: Places = None,
    alpha: float = 0.05,
    tolerance: float = TOLERANCE,
    max_subgroups: int = 40,
    caption: bool = False,
) -> list[Axes]:
    """Draw slope and size of each subgroup with intervals that hold for all of them at once.

    Parameters
    ----------
    result : Subgroups or Assessment
        What `mcllo.subgroups` or ``mcllo.assess(..., by=)`` returned.
    ax : array of Axes, Figure or SubFigure, optional
        Where to draw: two axes, or a part of a figure; a new figure when not given.
    alpha, tolerance : float
        Level of the verdicts, and the mean change that is worth no recalibration.
    max_subgroups : int
        Most rows; of more subgroups the worst are shown.
    caption : bool
        Write under the figure how to read it.

    Returns
    -------
    list of Axes
        That of the slopes and that of the sizes.

    See Also
    --------
    mcllo.subgroups : What is drawn.
    mcllo.assess : Takes ``by=``.
    reliability : The diagram of all rows.

    Examples
    --------
    >>> import mcllo
    >>> probs = np.random.default_rng(0).dirichlet([1, 1, 1], size=60)
    >>> found = mcllo.subgroups(probs, [0, 1, 2] * 20, by=["a", "b"] * 30, seed=0, n_resamples=19)
    >>> [panel.get_xlabel() for panel in subgroups(found)]
    ['Slope', 'Mean change (percentage points)']
    """
    found = get_subgroups(result)
    rows = found.ranked(alpha, tolerance)[:max_subgroups]
    verdicts = found.decide(alpha, tolerance)
    kinds = [verdicts[k].kind for k in rows]
    groups = [found.groups[k] for k in rows]
    names = fit_labels([group.name for group in found.groups])
    labels = [names[k] for k in rows]
    label_inches = max(text_width(label) for label in labels) / 72.0
    left, right = side_by_side(ax, 2, 6.4 + label_inches, 1.5 + 0.27 * len(rows))

    # an estimate is an arrow where a slope is 4 from 1, or a mean change 60 percentage points
    slopes = [
        [group.slope.value, group.slope.low, group.slope.high] for group in groups
    ]
    value, low, high = np.array(slopes).T
    _draw_by_verdict(left, Estimates(value, low, high, reference=1.0, cap=4.0), kinds)
    left.axvline(1.0, color=MUTED, lw=1.0, ls=REFERENCE_DASHES, zorder=1, label="_one")
    left.axvline(found.slope.value, color=INK, lw=1.0, zorder=1, label="_pooled")
    left.set_xlabel("Slope")
    write_title(left, "Slope", "below 1: over-, above: underconfident")

    sizes = [group.effect_size for group in groups]
    changes = [[size.mean_change, size.low, size.high] for size in sizes]
    value, low, high = 100.0 * np.array(changes).T
    _draw_by_verdict(right, Estimates(value, low, high, reference=0.0, cap=60.0), kinds)
    right.set_xlim(left=0.0)
    right.axvspan(
        0.0, 100.0 * tolerance, color=BAND, lw=0, zorder=0, label="_tolerated"
    )
    right.set_xlabel("Mean change (percentage points)")
    write_title(
        right, "Off by", f"grey: up to {100 * tolerance:g}, worth no recalibration"
    )
    write_row_texts(right, [format_count(group.n_samples) for group in groups])
    write_small_text(right, "rows", (1.0, 1.0), (8, 5), va="bottom", color=MUTED)
    set_round_ticks(left, log=False, also=1.0)
    set_round_ticks(right, log=False)
    draw_row_lines(left, len(rows))
    draw_row_lines(right, len(rows))
    left.set_yticks(range(len(rows)), labels, parse_math=False)
    words = []
    if len(rows) < len(names):
        words.append(f"The worst {len(rows)} of {len(names)} subgroups.")
    if caption:
        words.append(caption_of("subgroups", found))
    write_footer([left, right], words, _verdict_legend(kinds), ax)
    return [left, right]


def get_subgroups(result: Subgroups | Assessment) -> Subgroups:
    """Return the subgroups of an assessment, or the subgroups themselves."""
    if isinstance(result, Subgroups):
        return result
    if result.subgroups is None:
        raise InputError(
            "the assessment must have subgroups; it has none. Assess with by=."
        )
    return result.subgroups


def _draw_by_verdict(ax: Axes, estimates: Estimates, kinds: Sequence[Kind]) -> None:
    """Draw one row for each estimate, marked by its verdict; what is cut ends in an arrow."""
    style_axes(ax)
    shown = _clip_infinite(estimates)
    left, right = shown.axis_limits
    ax.set_xlim(left, right)
    kind_of_row = np.array(kinds)
    rows = np.arange(len(kinds))
    has_interval = np.isfinite(shown.low)
    is_inside = (shown.value >= left) & (shown.value <= right)
    for kind in ORDER:
        marker, colour, fill, _ = LOOKS[kind]
        own = kind_of_row == kind
        line = own & has_interval
        low = np.clip(shown.low[line], left, right)
        high = np.clip(shown.high[line], left, right)
        ax.hlines(
            rows[line], low, high, colors=colour, lw=1.6, zorder=1, label=f"_{kind}"
        )
        draw_row_markers(
            ax, shown.value, own & is_inside, marker, colour, f"_{kind}_marks", fill
        )
    cut_left, cut_right = shown.is_cut
    draw_row_markers(
        ax, np.full(len(rows), left), cut_left, "<", MUTED, "_cut<", zorder=4
    )
    draw_row_markers(
        ax, np.full(len(rows), right), cut_right, ">", MUTED, "_cut>", zorder=4
    )


def _clip_infinite(estimates: Estimates) -> Estimates:
    """Return the estimates with infinite numbers far beyond the axis, and NaN as they are."""
    # An axis must end somewhere: limits of infinite ends are not finite.
    reach = 10.0 * estimates.cap
    lowest = estimates.reference - reach
    highest = estimates.reference + reach
    return replace(
        estimates,
        value=np.clip(estimates.value, lowest, highest),
        low=np.clip(estimates.low, lowest, highest),
        high=np.clip(estimates.high, lowest, highest),
    )


def _verdict_legend(kinds: Sequence[Kind]) -> list[Artist]:
    """Return what stands for what, of all that occurs."""
    key: list[Artist] = []
    for kind in ORDER:
        if kind in kinds:
            marker, colour, fill, words = LOOKS[kind]
            key.append(legend_marker(marker, colour, words, fill))
    key.append(Line2D([], [], color=INK, lw=1.0, label="all rows"))
    return key
