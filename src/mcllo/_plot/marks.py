"""One mark for each row of a dot plot, and words beside the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from .style import INK, SMALL

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


def marks(
    ax: Axes,
    values: Floats,
    which: Mask,
    marker: str,
    colour: str,
    label: str,
    fill: str | None = None,
) -> None:
    """Draw the marked rows at their values, hollow ones behind; row 0 is at the top."""
    if not which.any():
        return  # an empty line that is not clipped would reach to the corner of the figure
    ax.plot(
        values[which],
        np.flatnonzero(which),
        ls="none",
        marker=marker,
        markersize=6.0,
        color=colour,
        markerfacecolor=fill or colour,
        clip_on=False,
        zorder=3 if fill is None else 2,
        label=label,
    )


def beside(ax: Axes, words: Sequence[str], right: float | None = None) -> None:
    """Write the words of all rows in a column at the right of the axes.

    They begin there, or end `right` points away.
    """
    look: dict[str, Any] = {"fontsize": SMALL, "color": INK, "va": "center"}
    for row, word in enumerate(words):
        ax.annotate(
            word,
            (1.0, row),
            xytext=(8 if right is None else right, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            ha="left" if right is None else "right",
            annotation_clip=False,
            **look,
        )
