"""Power studies: how often miscalibration is found, and ECE before and after the recalibration.

=================  ==============================================================================
`power`            how often calibration was rejected
`ece_boxplot`      ECE of every repetition, before and after
`ece_difference`   by how much the recalibration lowers the mean ECE
=================  ==============================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from .._utils.formatting import format_count
from .._utils.results import Floats
from ..exceptions import InputError
from ..simulate._study import PowerCell, PowerStudy
from ._layout import Place, footer, heading, one_axes, side_legend
from ._style import (
    BLUE,
    DASHES,
    GREEN,
    INK,
    MARKERS,
    MUTED,
    SERIES,
    log_ticks,
    plain_axes,
    set_ticks,
    styled_figure,
    tick_word,
)
from ._words import caption as caption_of

WHISKER_PERCENTILES = (2.5, 97.5)


@styled_figure
def power(study: PowerStudy, *, ax: Place = None, caption: bool = False) -> Axes:
    """Draw how often calibration was rejected: against delta, a line per n, or against n.

    Parameters
    ----------
    study : PowerStudy
        What `mcllo.simulate.power` or `power_for` returned.
    ax : Axes, Figure or SubFigure, optional
        Where to draw; a new figure when not given.
    caption : bool
        Write under the figure how to read it.

    Returns
    -------
    Axes
        Of the rates; bands are the 95 % intervals of the simulation.

    See Also
    --------
    ece_boxplot : The calibration error of the same repetitions.
    ece_difference : By how much recalibration lowers it.
    mcllo.simulate.power : Makes what is drawn.

    Notes
    -----
    Figure 2 of [1]_ is this figure.

    References
    ----------
    .. [1] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.

    Examples
    --------
    >>> from mcllo import simulate
    >>> study = simulate.power(n_samples=100, delta_1=(1.0, 1.4), n_classes=3, reps=10, seed=5)
    >>> power(study).get_xlabel()
    'delta of the first class (1: the predictions are calibrated)'
    """
    place, ax = ax, one_axes(ax, 6.4, 4.4)
    plain_axes(ax)
    _draw_lines(ax, study, lambda cell: (cell.power, cell.low, cell.high))
    ax.axhline(study.alpha, color=MUTED, lw=1.0, ls=(0, (4, 3)), label="_alpha")
    ax.set_ylim(-0.02, 1.02)
    ax.set_ylabel("Rejection rate")
    heading(ax, "Power of the calibration test", f"dashed: its level, {study.alpha:g}")
    footer(ax, [caption_of("power", study)] if caption else [], place=place)
    return ax


@styled_figure
def ece_boxplot(
    study: PowerStudy,
    *,
    n: int | None = None,
    outliers: bool = False,
    ax: Place = None,
    caption: bool = False,
) -> Axes:
    """Draw the expected calibration error of all repetitions before and after recalibration.

    Parameters
    ----------
    study : PowerStudy
        What `mcllo.simulate.power` or `power_for` returned.
    n : int, optional
        Number of rows to show, where delta varies; the largest when not given.
    outliers : bool
        Show single data sets beyond whiskers of at most 1.5 times the box, as R does; otherwise
        whiskers hold 95 % of the data sets.
    ax : Axes, Figure or SubFigure, optional
        Where to draw; a new figure when not given.
    caption : bool
        Write under the figure how to read it.

    Returns
    -------
    Axes
        Two boxes for each setting.

    See Also
    --------
    ece_difference : The mean instead of the distribution.
    power : How often the test rejects.
    mcllo.simulate.power : Makes what is drawn.

    Notes
    -----
    Figure 3 of [1]_ is this figure with ``outliers=True``.

    Figure 3 of [1]_ is this figure with ``outliers=True``.

    References
    ----------
    .. [1] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.

    Examples
    --------
    >>> from mcllo import simulate
    >>> study = simulate.power(n_samples=100, delta_1=(1.0, 1.4), n_classes=3, reps=10, seed=5)
    >>> ece_boxplot(study).get_ylabel()
    'ECE (probability)'
    """
    place, ax = ax, one_axes(ax, 6.0, 4.2)
    plain_axes(ax)
    by_delta = _by_delta(study)
    cells = _lines(study)[0] if n is None or not by_delta else _of_size(study, n)
    for side, colour, name in ((-0.19, BLUE, "ece_before"), (0.19, GREEN, "ece_after")):
        draw_boxes(ax, [getattr(cell, name) for cell in cells], side, colour, outliers=outliers)
    words = [tick_word(c.delta_1) if c.delta_1 is not None else format_count(c.n) for c in cells]
    ax.set_xticks(range(len(cells)), words)
    ax.set_xlim(-0.6, len(cells) - 0.4)
    ax.set_ylim(bottom=0.0)
    ax.set_xlabel("delta of the first class" if by_delta else "Rows in the data set (n)")
    ax.set_ylabel("ECE (probability)")
    shown = f"n = {format_count(cells[0].n)}; " if by_delta else ""
    reps = format_count(cells[0].reps)
    heading(ax, "Calibration error before and after", f"{shown}{reps} data sets a box")
    pair = (("as drawn", BLUE), ("after MCLLO", GREEN))
    key = [Patch(facecolor=c, alpha=0.55, edgecolor=INK, label=word) for word, c in pair]
    footer(ax, [caption_of("ece_boxplot", study)] if caption else [], key, place)
    return ax


@styled_figure
def ece_difference(study: PowerStudy, *, ax: Place = None, caption: bool = False) -> Axes:
    """Draw by how much recalibration lowers the mean calibration error: against delta, or n.

    Parameters
    ----------
    study : PowerStudy
        What `mcllo.simulate.power` or `power_for` returned.
    ax : Axes, Figure or SubFigure, optional
        Where to draw; a new figure when not given.
    caption : bool
        Write under the figure how to read it.

    Returns
    -------
    Axes
        Of the differences; bands are the 95 % intervals of the simulation.

    See Also
    --------
    ece_boxplot : The distribution instead of the mean.
    power : How often the test rejects.
    mcllo.simulate.power : Makes what is drawn.

    Notes
    -----
    Figure 4 of [1]_ is this figure.

    Figure 4 of [1]_ is this figure.

    References
    ----------
    .. [1] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.

    Examples
    --------
    >>> from mcllo import simulate
    >>> study = simulate.power(n_samples=100, delta_1=(1.0, 1.4), n_classes=3, reps=10, seed=5)
    >>> ece_difference(study).get_xlabel()
    'delta of the first class (1: the predictions are calibrated)'
    """
    place, ax = ax, one_axes(ax, 6.4, 4.4)
    plain_axes(ax)
    _draw_lines(ax, study, mean_gain)
    ax.axhline(0.0, color=MUTED, lw=1.0, ls=(0, (4, 3)), label="_none")
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3f}".replace("-", "−")))
    ax.set_ylabel("Mean ECE as drawn minus after MCLLO")
    heading(ax, "By how much MCLLO lowers ECE", "on the rows it was fitted to; dashed: no change")
    footer(ax, [caption_of("ece_difference", study)] if caption else [], place=place)
    return ax


def mean_gain(cell: PowerCell) -> tuple[float, float, float]:
    """Return by how much recalibration lowers the mean ECE, with its 95 % interval."""
    gain = cell.ece_before - cell.ece_after
    mean = float(gain.mean())
    reach = 1.96 * float(gain.std(ddof=1)) / cell.reps**0.5 if cell.reps > 1 else 0.0
    return mean, mean - reach, mean + reach


def _draw_lines(
    ax: Axes, study: PowerStudy, value: Callable[[PowerCell], tuple[float, float, float]]
) -> None:
    """Draw a number of every setting with its interval: against delta, a line per n, or by n."""
    by_delta = _by_delta(study)
    names, handles = list[str](), list[Artist]()
    for k, cells in enumerate(_lines(study)):
        x = [float(c.delta_1 or 0.0) if by_delta else float(c.n) for c in cells]
        middle, low, high = zip(*map(value, cells), strict=True)
        colour, dash = SERIES[k % len(SERIES)], DASHES[k % len(DASHES)]
        look: dict[str, Any] = {"color": colour, "ls": dash, "marker": MARKERS[k % len(MARKERS)]}
        ax.fill_between(x, low, high, color=colour, alpha=0.15, lw=0)
        handles += ax.plot(x, middle, markersize=5.5, label=f"_{k}", **look)
        names.append(f"n = {format_count(cells[0].n)}")
    if by_delta:
        ax.set_xlabel("delta of the first class (1: the predictions are calibrated)")
        set_ticks(ax.xaxis, sorted({float(c.delta_1 or 0.0) for c in study.rows}), tick_word)
        side_legend(ax, handles, names)
    else:
        sizes = sorted({float(cell.n) for cell in study.rows})
        ax.set_xscale("log")
        ax.set_xlabel("Rows in the data set (n, log scale)")
        few = sizes if len(sizes) <= 6 else log_ticks(sizes[0], sizes[-1])
        set_ticks(ax.xaxis, few, format_count)


def draw_boxes(
    ax: Axes, values: Sequence[Floats], side: float, colour: str, *, outliers: bool = True
) -> None:
    """Draw a box for each array beside its place."""
    thin = {"color": INK, "lw": 0.8}
    point = {"marker": "o", "markersize": 2.2, "alpha": 0.6}
    ax.boxplot(
        values,
        positions=np.arange(len(values)) + side,
        widths=0.32,
        whis=1.5 if outliers else WHISKER_PERCENTILES,
        showfliers=outliers,
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": colour, "alpha": 0.55, "edgecolor": INK, "lw": 0.8},
        medianprops={"color": INK, "lw": 1.6},
        whiskerprops=thin,
        capprops=thin,
        flierprops=point | {"markerfacecolor": colour, "markeredgecolor": "none"},
    )


def _by_delta(study: PowerStudy) -> bool:
    return len({cell.delta_1 for cell in study.rows}) > 1


def _lines(study: PowerStudy) -> list[list[PowerCell]]:
    """Return the cells of each line: of one n, the largest first; or all by n."""
    if not _by_delta(study):
        return [sorted(study.rows, key=lambda cell: cell.n)]
    return [_of_size(study, n) for n in sorted({cell.n for cell in study.rows}, reverse=True)]


def _of_size(study: PowerStudy, n: int) -> list[PowerCell]:
    cells = [cell for cell in study.rows if cell.n == n]
    if not cells:
        known = ", ".join(str(size) for size in sorted({cell.n for cell in study.rows}))
        raise InputError(f"n must be a size of the study ({known}); got n={n}.")
    return sorted(cells, key=lambda cell: cell.delta_1 or 0.0)
