"""Methods beside each other: a reliability diagram for each, and their numbers as dots."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from .._binning import Binning, NBins
from .._comparison import Comparison, ComparisonRow
from .._reliability import reliability_curve
from .._text import format_number, format_p
from .captions import caption as caption_of
from .curves import draw_curve, key
from .layout import footer, heading, label_outer, panels
from .style import styled

Floats = NDArray[np.float64]


@styled
def comparison(
    comparison: Comparison,
    *,
    n_bins: NBins = 10,
    binning: Binning = "width",
    columns: int | None = None,
    caption: bool = False,
) -> list[Axes]:
    """Draw the reliability diagram of the most probable class before and after each method.

    Parameters
    ----------
    comparison : Comparison
        What `mcllo.compare` returned.
    n_bins, binning
        As in `mcllo.reliability_curve`.
    columns : int, optional
        Panels beside each other.
    caption : bool
        Write under the figure how to read it.

    Returns
    -------
    list of Axes
        The uncalibrated rows first, then the methods by log loss.
    """
    rows = ordered(comparison)
    axes = panels(len(rows), columns)
    for ax, row in zip(axes, rows, strict=True):
        predictions = comparison.recalibrated[row.method]
        curve = reliability_curve(predictions, n_bins=n_bins, binning=binning)
        draw_curve(ax, curve, strip=True)
        heading(ax, title_of(row.method), f"ECE {format_number(row.ece)}, p {p_of(row)}")
    label_outer(axes, "Predicted probability", "Observed frequency")
    footer(axes[0], [caption_of("comparison", comparison)] if caption else [], key(curve))
    return axes


def ordered(comparison: Comparison) -> list[ComparisonRow]:
    """Return the judged rows: the uncalibrated one first, then by log loss."""
    rows = sorted(comparison.judged, key=lambda row: row.log_loss)
    return sorted(rows, key=lambda row: row.method != "uncalibrated")


def title_of(method: str) -> str:
    """Return a method's name as words."""
    return method.replace("_", " ")


def p_of(row: ComparisonRow) -> str:
    """Return a method's p-value as a word; a bound says so."""
    word = format_p(row.pvalue)
    return word.replace("=", "≤") if row.pvalue_method == "bound" else word
