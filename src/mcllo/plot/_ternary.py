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
from ._layout import Place, one_axes, write_footer, write_title
from ._style import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    MUTED,
    PAPER,
    VERMILION,
    legend_marker,
    styled_figure,
    write_small_text,
)
from ._words import caption as caption_of
from ._words import fit_labels

MARKER_STYLES = (("o", BLUE), ("D", VERMILION), ("s", GREEN))
"""Marker and colour of each class."""
TRIANGLE_HEIGHT = 0.5 * 3.0**0.5
# arrows start where all probabilities are positive multiples of one over this
N_ARROW_STEPS = 10
N_ARROW_STEPS_LONG = 7  # or over this, where arrows are long and would cross


@styled_figure
def ternary(
    result: Assessment | MCLLOMap,
    *,
    ax: Place = None,
    recalibration: Any = None,
    arrows: bool = True,
    max_points: int = 1000,
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
    rows = None
    own_map: Any = result
    if isinstance(result, Assessment):
        rows = result.predictions
        own_map = result.fit
    if recalibration is None:
        recalibration = own_map
    # The columns of a given recalibration may stand in another order: its arrows would be wrong.
    classes = tuple(recalibration.classes if rows is None else rows.classes)
    _check_three_classes(classes, recalibration)
    place = ax
    ax = one_axes(place, 5.4, 5.1)
    names = fit_labels(classes)
    _draw_triangle(ax, names)
    key: list[Artist] = []
    words = []
    if rows is not None:
        n_shown = _draw_rows(ax, rows, max_points)
        for (marker, colour), name in zip(MARKER_STYLES, names, strict=True):
            key.append(legend_marker(marker, colour, name))
        if n_shown < rows.n_samples:
            words.append(
                f"{format_count(n_shown)} of {format_count(rows.n_samples)} rows are shown."
            )
    if arrows:
        start, end = _coordinates_before_and_after(recalibration, arrow_starts())
        mean_length = np.linalg.norm(end - start, axis=1).mean()
        if mean_length > 0.1:  # of a side: about the distance between two of them
            start, end = _coordinates_before_and_after(
                recalibration, arrow_starts(N_ARROW_STEPS_LONG)
            )
        _draw_arrows(ax, start, end)
        key.append(
            Line2D(
                [],
                [],
                color=INK,
                lw=1.1,
                marker=">",
                markersize=5.0,
                markevery=[1],
                label="recalibration",
            )
        )
    if rows is None:
        write_title(ax, "The recalibration")
    else:
        title = "Predictions and their recalibration" if arrows else "Predictions"
        write_title(ax, title, "marks: the class that came true")
    if caption:
        words.append(caption_of("ternary", result))
    write_footer(ax, words, key, place)
    return ax


def arrow_starts(steps: int = N_ARROW_STEPS) -> Floats:
    """Return the predictions at which arrows start, inside the triangle."""
    first, second = np.indices((steps, steps)).reshape(2, -1)
    counts = np.column_stack([first, second, steps - first - second])
    return counts[(counts > 0).all(axis=1)] / steps


def triangle_coordinates(probs: Floats) -> Floats:
    """Return where predictions lie, one row each: left, right and top are the classes.

    Examples
    --------
    >>> triangle_coordinates(np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])).round(3).tolist()
    [[0.0, 0.0], [0.75, 0.433]]
    """
    x = probs[:, 1] + 0.5 * probs[:, 2]
    y = TRIANGLE_HEIGHT * probs[:, 2]
    return np.column_stack([x, y])


def _check_three_classes(classes: Sequence[Any], recalibration: Any) -> None:
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


def _coordinates_before_and_after(
    recalibration: Any, probs: Floats
) -> tuple[Floats, Floats]:
    """Return where predictions lie before and after a map or a calibrator."""
    apply = getattr(recalibration, "recalibrate", None) or recalibration.predict_proba
    return triangle_coordinates(probs), triangle_coordinates(np.asarray(apply(probs)))


def _draw_triangle(ax: Axes, names: list[str]) -> None:
    """Draw the triangle, lines of equal probability with their words, and the names."""
    ax.set_axis_off()
    ax.set_facecolor(PAPER)
    ax.set_aspect("equal")
    ax.set_xlim(-0.09, 1.09)
    ax.set_ylim(-0.13, TRIANGLE_HEIGHT + 0.09)
    for k in range(3):
        for share in (0.25, 0.5, 0.75):
            # from the side on which the third class is impossible to that of the second
            ends = np.zeros((2, 3))
            ends[:, k] = share
            ends[0, (k + 1) % 3] = 1.0 - share
            ends[1, (k + 2) % 3] = 1.0 - share
            x, y = triangle_coordinates(ends).T
            ax.plot(x, y, color=FAINT, lw=0.7, zorder=1, label="_grid")
            _write_share(ax, k, share, (x[0], y[0]))
    x, y = triangle_coordinates(np.eye(3)[[0, 1, 2, 0]]).T
    ax.plot(x, y, color=MUTED, lw=1.0, zorder=1, label="_frame")
    look: dict[str, Any] = {"color": INK, "fontweight": "bold"}
    write_small_text(
        ax, names[0], (x[0], y[0]), (-4, -19), "data", ha="left", va="top", **look
    )
    write_small_text(
        ax, names[1], (x[1], y[1]), (4, -19), "data", ha="right", va="top", **look
    )
    write_small_text(
        ax, names[2], (x[2], y[2]), (0, 5), "data", ha="center", va="bottom", **look
    )


def _write_share(ax: Axes, k: int, share: float, at: tuple[float, float]) -> None:
    """Write a share of class k at the end of its line: under, right or left of the triangle."""
    offsets = ((0, -4), (5, 0), (-5, 0))
    ha = ("center", "left", "right")[k]
    va = ("top", "center", "center")[k]
    write_small_text(
        ax, f"{share:g}", at, offsets[k], "data", ha=ha, va=va, color=MUTED
    )


def _draw_rows(ax: Axes, rows: Predictions, most: int) -> int:
    """Draw rows by the class that came true, equally spaced ones of many; return how many."""
    n = rows.n_samples
    n_shown = min(n, max(1, most))
    shown = np.unique(np.linspace(0, n - 1, n_shown).astype(np.intp))
    at = triangle_coordinates(rows.probs[shown])
    codes = rows.codes[shown]
    for k, (marker, colour) in enumerate(MARKER_STYLES):
        x, y = at[codes == k].T
        if len(x) == 0:
            continue  # an empty line that is not clipped would reach to the figure's corner
        ax.plot(
            x,
            y,
            ls="none",
            marker=marker,
            color=colour,
            alpha=0.55,
            markersize=4.0,
            markeredgewidth=0.0,
            clip_on=False,
            zorder=2,
            label=f"_rows{k}",
        )
    return len(shown)


def _draw_arrows(ax: Axes, start: Floats, end: Floats) -> None:
    """Draw an arrow for each prediction, a dot where nothing changes that could be seen."""
    move = end - start
    is_arrow = np.linalg.norm(move, axis=1) >= 0.004  # of a side: about two points
    if is_arrow.any():
        ax.quiver(
            start[is_arrow, 0],
            start[is_arrow, 1],
            move[is_arrow, 0],
            move[is_arrow, 1],
            angles="xy",
            scale_units="xy",
            scale=1.0,
            units="width",
            width=0.0042,
            headwidth=4.0,
            headlength=4.5,
            headaxislength=4.0,
            minlength=0.0,
            minshaft=1.0,
            color=INK,
            zorder=3,
            label="_arrows",
        )
    if not is_arrow.all():
        x, y = start[~is_arrow].T
        ax.plot(
            x,
            y,
            ls="none",
            marker=".",
            markersize=3.0,
            color=INK,
            zorder=3,
            label="_still",
        )
