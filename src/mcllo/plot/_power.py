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
from ._layout import Place, draw_side_legend, one_axes, write_footer, write_title
from ._style import (
    BLUE,
    DASHES,
    GREEN,
    INK,
    MARKERS,
    MUTED,
    REFERENCE_DASHES,
    SERIES,
    format_tick,
    log_ticks,
    set_ticks,
    style_axes,
    styled_figure,
)
from ._words import caption as caption_of


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
    place = ax
    ax = one_axes(place, 6.4, 4.4)
    style_axes(ax)
    _draw_by_setting(ax, study, rejection_rate)
    ax.axhline(study.alpha, color=MUTED, lw=1.0, ls=REFERENCE_DASHES, label="_alpha")
    ax.set_ylim(-0.02, 1.02)
    ax.set_ylabel("Rejection rate")
    write_title(
        ax, "Power of the calibration test", f"dashed: its level, {study.alpha:g}"
    )
    write_footer(ax, [caption_of("power", study)] if caption else [], place=place)
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
    place = ax
    ax = one_axes(place, 6.0, 4.2)
    style_axes(ax)
    by_delta = _varies_delta(study)
    cells = (
        _cells_with_n_rows(study, n)
        if by_delta and n is not None
        else _cells_by_line(study)[0]
    )
    before = [cell.ece_before for cell in cells]
    after = [cell.ece_after for cell in cells]
    draw_boxplots(ax, before, -0.19, BLUE, outliers=outliers)
    draw_boxplots(ax, after, 0.19, GREEN, outliers=outliers)

    def word(cell: PowerCell) -> str:
        return (
            format_count(cell.n) if cell.delta_1 is None else format_tick(cell.delta_1)
        )

    ax.set_xticks(range(len(cells)), [word(cell) for cell in cells])
    ax.set_xlim(-0.6, len(cells) - 0.4)
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel("ECE (probability)")
    below = f"{format_count(cells[0].reps)} data sets a box"
    if by_delta:
        ax.set_xlabel("delta of the first class")
        below = f"n = {format_count(cells[0].n)}; {below}"
    else:
        ax.set_xlabel("Rows in the data set (n)")
    write_title(ax, "Calibration error before and after", below)
    box: dict[str, Any] = {"alpha": 0.55, "edgecolor": INK}
    key = [
        Patch(facecolor=BLUE, label="as drawn", **box),
        Patch(facecolor=GREEN, label="after MCLLO", **box),
    ]
    write_footer(ax, [caption_of("ece_boxplot", study)] if caption else [], key, place)
    return ax


@styled_figure
def ece_difference(
    study: PowerStudy, *, ax: Place = None, caption: bool = False
) -> Axes:
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
    place = ax
    ax = one_axes(place, 6.4, 4.4)
    style_axes(ax)
    _draw_by_setting(ax, study, mean_ece_decrease)
    ax.axhline(0.0, color=MUTED, lw=1.0, ls=REFERENCE_DASHES, label="_none")

    def word(value: float, _: Any) -> str:
        return f"{value:.3f}".replace("-", "−")

    ax.yaxis.set_major_formatter(FuncFormatter(word))
    ax.set_ylabel("Mean ECE as drawn minus after MCLLO")
    write_title(
        ax,
        "By how much MCLLO lowers ECE",
        "on the rows it was fitted to; dashed: no change",
    )
    write_footer(
        ax, [caption_of("ece_difference", study)] if caption else [], place=place
    )
    return ax


def rejection_rate(cell: PowerCell) -> tuple[float, float, float]:
    """Return how often calibration was rejected, with its 95 % interval."""
    return cell.power, cell.low, cell.high


def mean_ece_decrease(cell: PowerCell) -> tuple[float, float, float]:
    """Return by how much recalibration lowers the mean ECE, with its 95 % interval."""
    gain = cell.ece_before - cell.ece_after
    mean = float(gain.mean())
    half = 0.0
    # before and after are of the same rows: their differences vary less than each of them
    if cell.reps > 1:
        half = 1.96 * float(gain.std(ddof=1)) / cell.reps**0.5
    return mean, mean - half, mean + half


def _draw_by_setting(
    ax: Axes,
    study: PowerStudy,
    value: Callable[[PowerCell], tuple[float, float, float]],
) -> None:
    """Draw a number of every setting with its interval: against delta, a line per n, or by n."""
    by_delta = _varies_delta(study)

    def position(cell: PowerCell) -> float:
        return float(cell.delta_1 or 0.0) if by_delta else float(cell.n)

    names = list[str]()
    handles = list[Artist]()
    for k, cells in enumerate(_cells_by_line(study)):
        x = [position(cell) for cell in cells]
        middle, low, high = np.array([value(cell) for cell in cells]).T
        # as many kinds of lines as colours; of more sizes, they begin again
        colour = SERIES[k % len(SERIES)]
        look: dict[str, Any] = {
            "color": colour,
            "ls": DASHES[k % len(DASHES)],
            "marker": MARKERS[k % len(MARKERS)],
        }
        ax.fill_between(x, low, high, color=colour, alpha=0.15, lw=0)
        handles += ax.plot(x, middle, markersize=5.5, label=f"_{k}", **look)
        names.append(f"n = {format_count(cells[0].n)}")
    positions = sorted({position(cell) for cell in study.rows})
    if by_delta:
        ax.set_xlabel("delta of the first class (1: the predictions are calibrated)")
        set_ticks(ax.xaxis, positions, format_tick)
        draw_side_legend(ax, handles, names)
    else:
        ax.set_xscale("log")
        ax.set_xlabel("Rows in the data set (n, log scale)")
        if len(positions) > 6:
            positions = log_ticks(positions[0], positions[-1])
        set_ticks(ax.xaxis, positions, format_count)


def draw_boxplots(
    ax: Axes,
    values: Sequence[Floats],
    side: float,
    colour: str,
    *,
    outliers: bool = True,
) -> None:
    """Draw a box for each array beside its place."""
    thin = {"color": INK, "lw": 0.8}
    ax.boxplot(
        values,
        positions=np.arange(len(values)) + side,
        widths=0.32,
        whis=1.5 if outliers else (2.5, 97.5),  # lengths of the box, or percentiles
        showfliers=outliers,
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": colour, "alpha": 0.55, "edgecolor": INK, "lw": 0.8},
        medianprops={"color": INK, "lw": 1.6},
        whiskerprops=thin,
        capprops=thin,
        flierprops={
            "marker": "o",
            "markersize": 2.2,
            "alpha": 0.6,
            "markerfacecolor": colour,
            "markeredgecolor": "none",
        },
    )


def _varies_delta(study: PowerStudy) -> bool:
    return len({cell.delta_1 for cell in study.rows}) > 1


def _cells_by_line(study: PowerStudy) -> list[list[PowerCell]]:
    """Return the cells of each line: of one n, the largest first; or all by n."""
    if not _varies_delta(study):
        return [sorted(study.rows, key=lambda cell: cell.n)]
    sizes = sorted({cell.n for cell in study.rows}, reverse=True)
    return [_cells_with_n_rows(study, n) for n in sizes]


def _cells_with_n_rows(study: PowerStudy, n: int) -> list[PowerCell]:
    cells = [cell for cell in study.rows if cell.n == n]
    if not cells:
        sizes = sorted({cell.n for cell in study.rows})
        known = ", ".join(str(size) for size in sizes)
        raise InputError(f"n must be a size of the study ({known}); got n={n}.")
    return sorted(cells, key=lambda cell: cell.delta_1 or 0.0)
