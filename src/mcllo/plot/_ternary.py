"""Three classes on a triangle: predictions, labels, and where the recalibration moves a prediction.

==========  ======================================================================================
corner      a class is certain; on the side opposite to it, it is impossible
place       ``(p_2 + p_3 / 2, p_3 sqrt(3) / 2)`` of the probabilities ``p_1, p_2, p_3``
mark        a row, at its prediction; its look says which class came true
arrow       from a prediction to what the recalibration makes of it, on a grid of predictions
==========  ======================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from .._assessment.assessment import Assessment
from .._fit.map import MCLLOMap
from .._utils.formatting import format_count
from .._utils.results import Floats
from .._validation.predictions import Predictions
from ..exceptions import InputError
from ._layout import Place, footer, heading, one_axes
from ._style import BLUE, FAINT, GREEN, INK, MUTED, PAPER, VERMILION, key_mark, note, styled_figure
from ._words import caption as caption_of
from ._words import shown_all

MARKER_STYLES = (("o", BLUE), ("D", VERMILION), ("s", GREEN))
"""Marker and colour of each class."""
TRIANGLE_HEIGHT = 0.5 * 3.0**0.5
N_ARROW_STEPS = 10  # arrows start where all probabilities are positive multiples of one over this
N_ARROW_STEPS_LONG = 7  # or over this where their mean length is more than the next
MAX_MEAN_ARROW_LENGTH = 0.1
MAX_POINTS = 1000
MIN_ARROW_LENGTH = 0.004
"""A shorter arrow is a dot."""


@styled_figure
def ternary(
    result: Assessment | MCLLOMap,
    *,
    ax: Place = None,
    recalibration: Any = None,
    arrows: bool = True,
    max_points: int = MAX_POINTS,
    caption: bool = False,
) -> Axes:
    """Draw predictions of three classes on a triangle, with arrows of what the recalibration does.

    Parameters
    ----------
    result : Assessment, MCLLOFit or MCLLOMap
        What `mcllo.assess` returned; of a fit alone the arrows are drawn.
    ax : Axes, Figure or SubFigure, optional
        Where to draw; a new figure when not given.
    recalibration : MCLLOMap or fitted calibrator, optional
        What the arrows show instead of the assessment's own fit.
    arrows : bool
        Draw the arrows.
    max_points : int
        Most rows to draw; of more, as many are taken at equal distances.
    caption : bool
        Write under the figure how to read it.

    Returns
    -------
    Axes
        Classes in the order of the columns: left, right, top.

    Raises
    ------
    InputError
        Unless there are three classes.

    See Also
    --------
    calibration_map : Any number of classes, each by itself.
    mcllo.MCLLOMap : What the arrows show.
    parameters : Its parameters, with intervals.

    Examples
    --------
    >>> import mcllo
    >>> probs = np.random.default_rng(0).dirichlet([1, 1, 1], size=30)
    >>> a = mcllo.assess(probs, [0, 1, 2] * 10, seed=0, n_resamples=19)
    >>> ternary(a).get_title(loc="left")
    'Predictions and their recalibration'
    """
    rows = result.predictions if isinstance(result, Assessment) else None
    made = recalibration
    if made is None:
        made = result.fit if isinstance(result, Assessment) else result
    classes = tuple(made.classes if rows is None else rows.classes)
    _check_three(classes, made)
    place, ax = ax, one_axes(ax, 5.4, 5.1)
    names = shown_all(classes)
    _draw_frame(ax, names)
    key: list[Artist] = []
    words = [] if rows is None else _draw_rows(ax, rows, names, max_points, key)
    if arrows:
        start, end = _recalibrated(made, grid())
        if np.hypot(*(end - start).T).mean() > MAX_MEAN_ARROW_LENGTH:
            start, end = _recalibrated(made, grid(N_ARROW_STEPS_LONG))
        _draw_arrows(ax, start, end - start)
        arrow: dict[str, Any] = {"color": INK, "lw": 1.1, "marker": ">", "markersize": 5.0}
        key.append(Line2D([], [], markevery=[1], label="recalibration", **arrow))
    what = "Predictions" if rows is not None else "The recalibration"
    below = "" if rows is None else "marks: the class that came true"
    heading(ax, f"{what} and their recalibration" if arrows and rows is not None else what, below)
    words += [caption_of("ternary", result)] if caption else []
    footer(ax, words, key, place)
    return ax


def grid(steps: int = N_ARROW_STEPS) -> Floats:
    """Return the predictions at which arrows start, inside the triangle."""
    points = [(i, j, steps - i - j) for i in range(1, steps) for j in range(1, steps - i)]
    return np.array(points, dtype=np.float64) / steps


def places(probs: Floats) -> Floats:
    """Return where predictions lie, one row each: left, right and top are the classes.

    Examples
    --------
    >>> places(np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])).round(3).tolist()
    [[0.0, 0.0], [0.75, 0.433]]
    """
    return np.column_stack([probs[:, 1] + 0.5 * probs[:, 2], TRIANGLE_HEIGHT * probs[:, 2]])


def _check_three(classes: Sequence[Any], recalibration: Any) -> None:
    own = getattr(recalibration, "classes_", getattr(recalibration, "classes", classes))
    if len(classes) != 3:
        raise InputError(
            f"a triangle must have three classes; got {len(classes)}. "
            "reliability_by_class draws any number."
        )
    if list(own) != list(classes):
        raise InputError(
            f"recalibration must have the classes {list(classes)}; got {list(own)}. "
            "Fit it to the same columns."
        )


def _recalibrated(recalibration: Any, probs: Floats) -> tuple[Floats, Floats]:
    """Return where predictions lie before and after a map or a calibrator."""
    apply = getattr(recalibration, "recalibrate", None) or recalibration.predict_proba
    return places(probs), places(np.asarray(apply(probs)))


def _draw_frame(ax: Axes, names: list[str]) -> None:
    """Draw the triangle, lines of equal probability with their words, and the names."""
    ax.set_axis_off()
    ax.set_facecolor(PAPER)
    ax.set_aspect("equal")
    ax.set_xlim(-0.09, 1.09)
    ax.set_ylim(-0.13, TRIANGLE_HEIGHT + 0.09)
    for k in range(3):
        for share in (0.25, 0.5, 0.75):
            ends = np.zeros((2, 3))
            ends[:, k] = share
            ends[0, (k + 1) % 3] = ends[1, (k + 2) % 3] = 1.0 - share
            ax.plot(*places(ends).T, color=FAINT, lw=0.7, zorder=1, label="_grid")
            _word(ax, k, share, places(ends)[0])
    corners = places(np.eye(3))
    ax.plot(*corners[[0, 1, 2, 0]].T, color=MUTED, lw=1.0, zorder=1, label="_frame")
    look: dict[str, Any] = {"color": INK, "fontweight": "bold"}
    note(ax, names[0], tuple(corners[0]), (-4, -19), "data", ha="left", va="top", **look)
    note(ax, names[1], tuple(corners[1]), (4, -19), "data", ha="right", va="top", **look)
    note(ax, names[2], tuple(corners[2]), (0, 5), "data", ha="center", va="bottom", **look)


def _word(ax: Axes, k: int, share: float, at: Floats) -> None:
    """Write a share of class k at the end of its line: under, right or left of the triangle."""
    offset, sides = {
        0: ((0, -4), ("center", "top")),
        1: ((5, 0), ("left", "center")),
        2: ((-5, 0), ("right", "center")),
    }[k]
    note(ax, f"{share:g}", (at[0], at[1]), offset, "data", ha=sides[0], va=sides[1], color=MUTED)


def _draw_rows(
    ax: Axes, rows: Predictions, names: list[str], most: int, key: list[Artist]
) -> list[str]:
    """Draw the rows by the class that came true, and add to the key; return what is left out."""
    n = rows.n_samples
    which = np.unique(np.linspace(0, n - 1, min(n, max(1, most))).astype(np.intp))
    where, codes = places(rows.probs[which]), rows.codes[which]
    for k, (marker, colour) in enumerate(MARKER_STYLES):
        own = codes == k
        look: dict[str, Any] = {"marker": marker, "color": colour, "ls": "none", "alpha": 0.55}
        look |= {"markersize": 4.0, "markeredgewidth": 0.0, "clip_on": False, "zorder": 2}
        if own.any():
            ax.plot(*where[own].T, label=f"_rows{k}", **look)
        key.append(key_mark(marker, colour, names[k]))
    if len(which) == n:
        return []
    return [f"{format_count(len(which))} of {format_count(n)} rows are shown."]


def _draw_arrows(ax: Axes, start: Floats, move: Floats) -> None:
    """Draw an arrow for each prediction, a dot where nothing changes that could be seen."""
    far = np.hypot(*move.T) >= MIN_ARROW_LENGTH
    size: dict[str, Any] = {"angles": "xy", "scale_units": "xy", "scale": 1.0, "units": "width"}
    size |= {"width": 0.0042, "headwidth": 4.0, "headlength": 4.5, "headaxislength": 4.0}
    size |= {"minlength": 0.0, "minshaft": 1.0, "color": INK, "zorder": 3, "label": "_arrows"}
    if far.any():
        ax.quiver(*start[far].T, *move[far].T, **size)
    if not far.all():
        still: dict[str, Any] = {"ls": "none", "marker": ".", "markersize": 3.0, "color": INK}
        ax.plot(*start[~far].T, zorder=3, label="_still", **still)
