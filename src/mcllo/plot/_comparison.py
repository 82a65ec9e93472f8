"""Methods beside each other.

====================  ==========================================================================
`comparison`          a reliability diagram before and after each method
`comparison_dots`     p-value, calibration error and log loss as dots, one row per method; what is
                      clearly worse than the best is what `Comparison.recommendation` tells from it
====================  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from .._comparison.comparison import Comparison, ComparisonRow
from .._comparison.recommend import UNCALIBRATED
from .._utils.formatting import PValueText, format_number, pvalue_text
from .._utils.results import Floats
from ..exceptions import InputError
from ..metrics._bins import Binning, NBins
from ._layout import (
    Places,
    label_outer,
    shared_panels,
    side_by_side,
    write_footer,
    write_title,
)
from ._reliability_curves import MIN_ROWS
from ._reliability_diagram import Curve, ReliabilityPanel, check_curve_kind
from ._style import (
    BAND,
    BLUE,
    MUTED,
    VERMILION,
    Estimates,
    draw_forest,
    draw_row_lines,
    draw_row_markers,
    legend_marker,
    set_round_ticks,
    style_axes,
    styled_figure,
    write_row_texts,
)
from ._words import caption as caption_of


@styled_figure
def comparison(
    comparison: Comparison,
    *,
    ax: Places = None,
    names: Mapping[str, str] | None = None,
    curve: Curve = "smooth",
    n_bins: NBins = 10,
    binning: Binning = "width",
    min_rows: float = MIN_ROWS,
    columns: int | None = None,
    caption: bool = False,
) -> list[Axes]:
    """Draw the reliability diagram of the most probable class before and after each method.

    Parameters
    ----------
    comparison : Comparison
        What `mcllo.compare` returned.
    ax : array of Axes, Figure or SubFigure, optional
        Where to draw: axes for all of them, or a part of a figure; a new figure when not given.
    names : mapping of str to str, optional
        Which methods to show, in this order, and what to call each; all of them, by log loss, when
        not given.
    curve : {"smooth", "isotonic", "bins"}
        A smooth curve with a band, an isotonic curve over the band of calibrated predictions, or
        bins with boxes.
    n_bins : int or "sqrt"
        Number of bins; "sqrt" is ``ceil(sqrt(n))``.
    binning : {"width", "mass"}
        Bins of equal width on [0, 1], or holding equally many rows.
    min_rows : float
        No line runs through bins of fewer rows.
    columns : int, optional
        Panels beside each other.
    caption : bool
        Write under the figure how to read it.

    Returns
    -------
    list of Axes
        The uncalibrated rows first, then the methods by log loss; or in the order of `names`.

    See Also
    --------
    comparison_dots : P-value, ECE and log loss of each method.
    reliability : All methods as lines on one diagram.
    mcllo.compare : Makes what is drawn.

    Examples
    --------
    >>> import mcllo
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> probs = rng.dirichlet([1, 1, 1], size=120)
    >>> y = [0, 1, 2] * 40
    >>> c = mcllo.compare((probs[:60], y[:60]), (probs[60:], y[60:]), methods=["temperature"],
    ...                   n_resamples=19, seed=0)
    >>> [panel.get_title(loc="left") for panel in comparison(c)]
    ['uncalibrated', 'temperature']
    """
    check_curve_kind(curve)
    rows = select_rows(comparison, names)
    titles = names or {row.method: method_label(row.method) for row in rows}
    below = {}
    for row in rows:
        below[row.method] = f"ECE {format_number(row.ece)}, p {pvalue_label(row)}"
    axes, key = draw_diagrams(
        comparison,
        titles,
        below,
        curve=curve,
        n_bins=n_bins,
        binning=binning,
        min_rows=min_rows,
        place=ax,
        columns=columns,
    )
    words = [caption_of("comparison", comparison, curve=curve)] if caption else []
    write_footer(axes, words, key, ax)
    return axes


def draw_diagrams(
    comparison: Comparison,
    titles: Mapping[str, str],
    below: Mapping[str, str],
    *,
    curve: Curve,
    n_bins: NBins = 10,
    binning: Binning = "width",
    min_rows: float = MIN_ROWS,
    place: Places = None,
    columns: int | None = None,
) -> tuple[list[Axes], list[Artist]]:
    """Draw a reliability diagram for each method, and return them with their key.

    `titles` says which methods, in this order; `below` what stands under each title.
    """
    axes = shared_panels(len(titles), columns, place)
    for panel, (method, title) in zip(axes, titles.items(), strict=True):
        drawing = ReliabilityPanel.of_rows(
            comparison.recalibrated[method],
            curve,
            n_bins=n_bins,
            binning=binning,
            min_rows=min_rows,
            seed=comparison.seed,
        )
        drawing.draw(panel, strip=True, quiet=True)
        write_title(panel, title, below[method])
    label_outer(axes, "Predicted probability", "Observed frequency")
    return axes, drawing.legend_entries


def order_rows(comparison: Comparison) -> list[ComparisonRow]:
    """Return the judged rows: the uncalibrated one first, then by log loss."""
    return sorted(comparison.ranked, key=lambda row: row.method != UNCALIBRATED)


def select_rows(
    comparison: Comparison, names: Mapping[str, str] | None
) -> list[ComparisonRow]:
    """Return the rows that `names` ask for, in their order; all of them when there are none."""
    if names is None:
        return order_rows(comparison)
    known = {row.method: row for row in comparison.judged}
    missing = [name for name in names if name not in known]
    if missing or not names:
        raise InputError(
            "{argument} must name methods of this comparison; got {value}.",
            argument="names",
            value=missing[0] if missing else "none",
            remedy="It holds {known}.",
            values={"known": ", ".join(known)},
        )
    return [known[name] for name in names]


def method_label(method: str) -> str:
    """Return a method's name as words."""
    return method.replace("_", " ")


def pvalue_label(row: ComparisonRow, bare: bool = False) -> str:
    """Return a method's p-value with its relation, or `bare` without ``=``; a bound says so."""
    relation, number = pvalue_text(row.pvalue, bound=row.pvalue_method == "bound")
    if bare and relation == "=":
        return number
    if relation == "<=":
        relation = "≤"
    return str(PValueText(relation, number))


TEST_LEVEL = 0.05
MIN_SHOWN_PVALUE = 1e-4
"""Smaller p-values are arrows at the edge; their size is written beside the axes."""


@styled_figure
def comparison_dots(
    comparison: Comparison, *, ax: Places = None, caption: bool = False
) -> list[Axes]:
    """Draw p-value, ECE and log loss of each method, the best log loss on top.

    Parameters
    ----------
    comparison : Comparison
        What `mcllo.compare` returned.
    ax : array of Axes, Figure or SubFigure, optional
        Where to draw: three axes, or a part of a figure; a new figure when not given.
    caption : bool
        Write under the figure how to read it.

    Returns
    -------
    list of Axes
        Of the p-values, of the ECE, and of the log loss less that of the best method.

    See Also
    --------
    comparison : Reliability diagrams of the methods.
    mcllo.compare : Makes what is drawn.
    mcllo.Recommendation : The same lead in words.

    Examples
    --------
    >>> import mcllo
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> probs = rng.dirichlet([1, 1, 1], size=120)
    >>> y = [0, 1, 2] * 40
    >>> c = mcllo.compare((probs[:60], y[:60]), (probs[60:], y[60:]), methods=["temperature"],
    ...                   n_resamples=19, seed=0)
    >>> [panel.get_xlabel() for panel in comparison_dots(c)]
    ['p-value (log scale)', 'ECE (probability)', 'Log loss above the best (nats)']
    """
    rows = comparison.ranked
    axes = side_by_side(ax, 3, 8.6, 1.4 + 0.27 * len(rows))
    _draw_pvalues(axes[0], rows)
    _draw_errors(axes[1], rows)
    _draw_losses(axes[2], comparison)
    for panel in axes:
        draw_row_lines(panel, len(rows))
    axes[0].set_yticks(range(len(rows)), [method_label(row.method) for row in rows])
    key: list[Artist] = [legend_marker("o", BLUE, "not rejected, not clearly worse")]
    key.append(legend_marker("D", VERMILION, "rejected, clearly worse"))
    if any(row.pvalue_corrected is not None for row in rows):
        key.append(legend_marker("o", BLUE, "corrected p-value", "white"))
    words = [caption_of("comparison_dots", comparison)] if caption else []
    write_footer(axes, words, key, ax)
    return axes


def robust_axis_end(values: Floats) -> float:
    """Return where an axis from 0 ends: at the largest number, unless that dwarfs the others."""
    largest = float(values.max())
    usual = 6.0 * float(np.median(values))
    end = usual if 0.0 < usual < largest / 2.0 else largest
    return max(end, 1e-6)  # an axis of no length cannot be drawn


def _draw_pvalues(ax: Axes, rows: Sequence[ComparisonRow]) -> None:
    style_axes(ax)
    ax.set_xscale("log")
    ax.set_xlim(MIN_SHOWN_PVALUE / 3.0, 1.6)
    ax.axvspan(MIN_SHOWN_PVALUE / 3.0, TEST_LEVEL, color=BAND, lw=0, zorder=0)
    pvalues = np.array([row.pvalue for row in rows])
    corrected = np.array([row.pvalue_corrected for row in rows], dtype=np.float64)
    is_shown = pvalues >= MIN_SHOWN_PVALUE
    is_kept = pvalues > TEST_LEVEL
    edge = np.full(len(rows), MIN_SHOWN_PVALUE / 2.0)
    draw_row_markers(
        ax, corrected, corrected >= MIN_SHOWN_PVALUE, "o", BLUE, "_corrected", "white"
    )
    draw_row_markers(ax, pvalues, is_shown & is_kept, "o", BLUE, "_kept")
    draw_row_markers(ax, pvalues, is_shown & ~is_kept, "D", VERMILION, "_rejected")
    draw_row_markers(ax, edge, ~is_shown, "<", VERMILION, "_beyond")
    write_row_texts(ax, [pvalue_label(row, bare=True) for row in rows])
    set_round_ticks(ax, log=True)
    ax.set_xlabel("p-value (log scale)")
    write_title(ax, "Calibration test", f"grey: rejected at level {TEST_LEVEL:g}")


def _draw_errors(ax: Axes, rows: Sequence[ComparisonRow]) -> None:
    style_axes(ax)
    errors = np.array([row.ece for row in rows])
    end = 1.08 * robust_axis_end(errors)
    ax.set_xlim(0.0, end)
    draw_row_markers(ax, errors, errors <= end, "s", MUTED, "_errors")
    draw_row_markers(ax, np.full(len(rows), end), errors > end, ">", MUTED, "_beyond")
    write_row_texts(ax, [format_number(value) for value in errors])
    set_round_ticks(ax, log=False)
    ax.set_xlabel("ECE (probability)")
    write_title(ax, "Calibration error", "of the most probable class")


def _draw_losses(ax: Axes, comparison: Comparison) -> None:
    style_axes(ax)
    best = (0.0, 0.0, 0.0)
    differences = [best]
    for other in comparison.recommendation.differences:
        # what is not told apart must not look as if it were
        low_end = other.low if other.is_clearly_worse else min(other.low, 0.0)
        differences.append((other.difference, low_end, other.high))
    value, low, high = np.array(differences).T
    low = np.where(np.isfinite(low), low, np.nan)
    high = np.where(np.isfinite(high), high, np.nan)
    losses = Estimates(
        value, low, high, reference=0.0, cap=robust_axis_end(np.fmax(value, high))
    )
    draw_forest(ax, losses, log=False)
    set_round_ticks(ax, log=False)
    write_row_texts(ax, ["best", *(format_number(v) for v in value[1:])])
    ax.set_xlabel("Log loss above the best (nats)")
    write_title(ax, "Log loss", "95 % intervals, all at once")
