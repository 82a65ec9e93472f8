"""The fitted map: a forest plot of delta and gamma, and what the map does to a probability."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D

from .._assessment.report_text import departure_sizes
from .._fit.fit import MCLLOFit
from .._fit.map import MCLLOMap
from .._utils.results import Floats
from ._layout import Place, Places, footer, given_axes, heading, one_axes, side_legend
from ._scales import Estimates, draw_forest, forest_key, plain_ticks
from ._show import styled_figure
from ._style import DASHES, FAINT, MUTED, SERIES, plain_axes, row_axes, unit_axes
from ._words import caption as caption_of
from ._words import fit_label, shown_all, text_width

MAX_CLASSES = 20
MAX_ABS_TAU = np.log(1000.0)  # beyond, an estimate is an arrow
MAX_GAMMA_DISTANCE = 10.0  # the same, from the slope 1


@styled_figure
def parameters(
    fit: MCLLOFit,
    *,
    ax: Place | Places = None,
    max_classes: int = MAX_CLASSES,
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
    rows, names = worst(fit, max_classes, order), shown_all(fit.compared)
    labels = [names[j] for j in rows]
    beside = max(text_width(label) for label in labels) / 72.0
    whole, pair = _halves(ax, 6.0 + beside, 1.4 + 0.27 * len(rows))
    interval = fit.confidence_interval()
    (low, high), (flat, steep) = interval.tau[rows].T, interval.gamma[rows].T
    shift = Estimates(fit.tau[rows], low, high, 0.0, MAX_ABS_TAU)
    slope = Estimates(fit.gamma[rows], flat, steep, 1.0, MAX_GAMMA_DISTANCE)
    left = _forest(pair[0], shift, labels, log=True)
    right = _forest(pair[1], slope, [""] * len(rows), log=False)
    left.set_xlabel("delta (log scale)")
    right.set_xlabel("gamma")
    ours = ax is None or isinstance(ax, FigureBase)
    heading(left, "Shift", "above 1: more likely than predicted" if ours else "")
    heading(right, "Slope", "below 1: over-, above: underconfident" if ours else "")
    words = [f"Each class against the baseline, {fit_label(fit.baseline)}.", _status(fit)]
    if len(rows) < len(names):
        few = f"{len(rows)} of {len(names)} classes"
        words.append(f"{few}." if order else f"The {few} farthest from 1, in standard errors.")
    words += [caption_of("parameters", fit)] if caption else []
    footer(whole, words, forest_key([shift, slope]) if ours else [], ax)
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
    names, coloured = shown_all(fit.compared), worst(fit, len(SERIES), order)
    longest, place = max(len(names[j]) for j in coloured), ax
    ax = one_axes(ax, 5.6 + 0.08 * max(longest, 8), 4.7)
    if place is None:
        ax.set_anchor("W")
    plain_axes(ax)
    unit_axes(ax)
    ax.set_box_aspect(1.0)
    ax.plot([0.0, 1.0], [0.0, 1.0], ls=(0, (4, 3)), lw=1.0, color=MUTED, zorder=2, label="_line")
    key = list[Artist]()
    others = [j for j in range(len(fit.compared)) if j not in coloured]
    for j in others:
        ax.plot(*section(fit, j), color=FAINT, lw=0.9, zorder=1, label=f"_{j}")
    for j, colour, dashes in zip(coloured, SERIES, DASHES, strict=False):
        key += ax.plot(*section(fit, j), color=colour, ls=dashes, lw=1.8, zorder=3, label=f"_{j}")
    entries = [names[j] for j in coloured]
    if others:
        key.append(Line2D([], [], color=FAINT, lw=0.9))
        entries.append(f"{len(others)} others")
    ax.set_xlabel("As predicted")
    ax.set_ylabel("After recalibration")
    base = fit_label(fit.baseline, 16)
    heading(ax, "What the recalibration does", f"share of a class among the two, it and {base}")
    side_legend(ax, key, entries)
    footer(ax, [_status(fit), caption_of("calibration_map", fit) if caption else ""], place=place)
    return ax


def _halves(ax: Place | Places, width: float, height: float) -> tuple[Axes, list[Axes]]:
    """Return what holds the words and two axes: those that were given, or halves of one."""
    if ax is not None and not isinstance(ax, Axes | FigureBase):
        pair = given_axes(ax, 2)
        return pair[0], pair
    whole = one_axes(ax, width, height)
    whole.set_axis_off()
    return whole, [whole.inset_axes((left, 0.0, 0.48, 1.0)) for left in (0.0, 0.52)]


def _forest(panel: Axes, estimates: Estimates, labels: list[str], *, log: bool) -> Axes:
    """Draw estimates on an axes."""
    plain_axes(panel)
    draw_forest(panel, estimates, log=log)
    plain_ticks(panel, log=log, also=1.0)
    row_axes(panel, len(labels))
    panel.set_yticks(range(len(labels)), labels, parse_math=False)
    return panel


def worst(fit: MCLLOFit, most: int, given: Sequence[Hashable] = ()) -> list[int]:
    """Return the first of those given, or the classes farthest from the identity by column."""
    if given:
        return [fit.compared.index(label) for label in given if label != fit.baseline][:most]
    size = departure_sizes(fit)
    order = sorted(range(len(size)), key=lambda j: -size[j])
    return sorted(order[: max(1, most)])


def section(fit: MCLLOFit, j: int) -> tuple[Floats, Floats]:
    """Return the share of class j among it and the baseline, before and after the map."""
    logistic = 1.0 / (1.0 + np.exp(-np.linspace(-7.0, 7.0, 57)))
    p = np.unique(np.concatenate([logistic, np.arange(1, 100) / 100.0]))
    pair = (fit.compared[j], fit.baseline)
    two = MCLLOMap(fit.tau[[j]], fit.gamma[[j]], pair, fit.baseline)
    return p, two.recalibrate(np.column_stack([p, 1.0 - p]))[:, 0]


def _status(fit: MCLLOFit) -> str:
    if fit.separated:
        return "The estimates do not exist (the labels are separated); positions have no meaning."
    if not fit.converged:
        return "The estimates are not determined by these rows; positions have no meaning."
    return ""
