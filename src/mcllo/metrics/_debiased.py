"""Squared calibration errors with the part removed that chance alone produces.

With ``n_m`` rows in bin m, gap ``conf_m - acc_m`` and residual ``e_i = prediction - hit``:

===============  ==========================================================================
Kumar 2019       ``sum_m n_m / n [gap_m^2 - acc_m (1 - acc_m) / (n_m - 1)]``; bins of fewer
                 than two rows give 0; equal-mass bins cut midway between runs
T-Cal (Lee 2022) ``1/n sum_m [(sum_m e)^2 - sum_m e^2] / n_m``; bins of equal width, closed on
                 the left
===============  ==========================================================================

Both estimate a square and can be negative; an estimate below 0 says that the gaps are no larger
than chance would make them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from .._ground.results import Floats
from .._input.predictions import Predictions, scored_predictions
from ..exceptions import InputError
from ._binned import Classes, cell_totals
from ._bins import NBins, bin_index, midpoint_edges, n_bins_of, top_label, total_weight, width_edges

Target = Literal["top-label", "marginal"]


def debiased_calibration_error(
    y_true: Any,
    y_prob: Any,
    *,
    n_bins: NBins = 15,
    target: Target = "top-label",
    sample_weight: Any = None,
    classes: Classes = None,
) -> float:
    """Return Kumar's (2019) debiased root mean squared calibration error, 0 where it is negative.

    Parameters
    ----------
    n_bins : int or "sqrt"
        Number of bins of equal mass.
    target : "top-label" or "marginal"
        The most probable class of each row; or every class, as the root of the mean over classes
        of each class's squared error (an error below 0 counts as 0).
    y_true, y_prob, sample_weight, classes
        As in `accuracy`.

    See Also
    --------
    debiased_squared_calibration_error : The estimate itself, which may be negative.

    Examples
    --------
    >>> y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]
    >>> round(debiased_calibration_error([1, 1, 1, 0], y_prob, n_bins=2), 3)
    0.384
    """
    squares = _squares(y_true, y_prob, n_bins, target, sample_weight, classes)
    return float(np.sqrt(np.maximum(squares, 0.0).mean()))


def debiased_squared_calibration_error(
    y_true: Any,
    y_prob: Any,
    *,
    n_bins: NBins = 15,
    target: Target = "top-label",
    sample_weight: Any = None,
    classes: Classes = None,
) -> float:
    """Return Kumar's (2019) debiased squared calibration error, with its sign.

    For ``target="marginal"`` the mean over classes. Parameters as in `debiased_calibration_error`.

    Examples
    --------
    >>> y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]
    >>> round(debiased_squared_calibration_error([0, 0, 1, 0], y_prob, n_bins=2), 4)
    -0.1025
    """
    squares = _squares(y_true, y_prob, n_bins, target, sample_weight, classes)
    return float(squares.mean())


def tcal_squared_calibration_error(
    y_true: Any,
    y_prob: Any,
    *,
    n_bins: NBins = "sqrt",
    sample_weight: Any = None,
    classes: Classes = None,
) -> float:
    """Return T-Cal's debiased plug-in estimate (Lee 2022) of the squared top-label error.

    Parameters as in `debiased_calibration_error`; bins have equal width.

    Examples
    --------
    >>> y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]
    >>> round(tcal_squared_calibration_error([0, 0, 1, 0], y_prob, n_bins=2), 5)
    -0.03125
    """
    p = scored_predictions(y_true, y_prob, sample_weight=sample_weight, classes=classes)
    values, hits = next(_binary_problems(p, "top-label"))
    count = n_bins_of(n_bins, total_weight(values, p.sample_weight))
    index = bin_index(values, width_edges(count), closed="left")
    residual = values - hits
    size, sums = cell_totals(index, residual, count, p.sample_weight)
    squares = cell_totals(index, residual**2, count, p.sample_weight)[1]
    used = size > 0.0
    return float(((sums**2 - squares)[used] / size[used]).sum() / size.sum())


def _squares(
    y_true: Any, y_prob: Any, n_bins: NBins, target: Target, sample_weight: Any, classes: Classes
) -> Floats:
    """Return the signed square of each binary problem: one, or one per class."""
    p = scored_predictions(y_true, y_prob, sample_weight=sample_weight, classes=classes)
    n_runs = n_bins_of(n_bins, total_weight(p.probs, p.sample_weight))
    squares = []
    for values, hits in _binary_problems(p, target):
        edges = midpoint_edges(values, n_runs, p.sample_weight)
        index, count = bin_index(values, edges), len(edges) + 1
        size, predicted = cell_totals(index, values, count, p.sample_weight)
        observed = cell_totals(index, hits, count, p.sample_weight)[1]
        used, total = size >= 2.0, size.sum()
        size = size[used]
        confidence, frequency = predicted[used] / size, observed[used] / size
        chance = frequency * (1.0 - frequency) / (size - 1.0)
        squares.append((size * ((confidence - frequency) ** 2 - chance)).sum() / total)
    return np.array(squares)


def _binary_problems(p: Predictions, target: Target) -> Iterator[tuple[Floats, Floats]]:
    """Yield predictions and hits: of the top label, or of each class."""
    if target == "top-label":
        top, confidence = top_label(p.probs)
        yield confidence, (top == p.codes).astype(np.float64)
    elif target == "marginal":
        for k, column in enumerate(p.probs.T):
            yield column, (p.codes == k).astype(np.float64)
    else:
        raise InputError(f"target must be 'top-label' or 'marginal'; got target={target!r}.")
