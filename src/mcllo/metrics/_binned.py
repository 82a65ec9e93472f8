"""Binned calibration errors: how far the mean prediction of a bin is from what came true in it.

With ``w_m`` the rows in bin m, ``conf_m`` their mean prediction, ``acc_m`` the frequency of hits:

====================  =======================================================================
top-label             prediction ``max_k x_ik``, hit ``argmax_k x_ik = y_i`` (of ties, the first)
expected (ECE)        ``(sum_m w_m / n |conf_m - acc_m|^q)^(1/q)``, top-label
maximum (MCE)         ``max_m |conf_m - acc_m|`` over bins that hold rows, top-label
average               mean of ``|conf_m - acc_m|`` over bins that hold rows, top-label
classwise             mean over classes k of the expected error with prediction ``x_ik``, hit
                      ``y_i = k`` (Kull 2019)
adaptive (ACE)        mean over classes and runs of equal size of ``|conf - acc|`` (Nixon 2019)
debiased (Kumar)      ``sum_m w_m / n [(conf_m - acc_m)^2 - acc_m (1 - acc_m) / (w_m - 1)]``; bins
                      of fewer than two rows give 0; equal-mass bins cut midway between runs
T-Cal (Lee 2022)      ``1/n sum_m [(sum_m e)^2 - sum_m e^2] / w_m`` with e = prediction - hit; bins
                      of equal width, closed on the left
====================  =======================================================================

The last two estimate a square less the part that chance alone produces, and can be negative: then
the gaps are no larger than chance would make them.

Which bin a row is in depends on the predictions alone. Labels enter only by the counts of hits: the
cell that row i hits when its label is k is looked up in a table, for thousands of draws at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Literal

import numpy as np

from .._ground.results import Codes, Floats
from .._input.predictions import Predictions, scored_predictions
from ..exceptions import InputError
from ._bins import (
    Binning,
    NBins,
    bin_index,
    binned,
    block_totals,
    midpoint_edges,
    n_bins_of,
    top_label,
    total_weight,
    width_edges,
)

Classes = Sequence[Hashable] | None
Target = Literal["top-label", "marginal"]


class Hits:
    """Counts of hits per cell: label k of row i hits ``table[i, k]``; the last cell is dropped."""

    def __init__(self, table: Codes, n_cells: int, weight: Floats | None) -> None:
        self.n_cells, self.weight = n_cells, weight
        self._flat = table.ravel()
        self._start = np.arange(len(table)) * table.shape[1]

    def __call__(self, labels: Codes) -> Floats:
        """Return the weight of hits, shape (n_draws, n_cells), of labels (n_draws, n_samples)."""
        hit = self._flat[labels + self._start]
        hit += np.arange(len(labels))[:, None] * (self.n_cells + 1)
        weight = None if self.weight is None else np.broadcast_to(self.weight, hit.shape).ravel()
        size = len(labels) * (self.n_cells + 1)
        counts = np.bincount(hit.ravel(), weights=weight, minlength=size)
        return counts.reshape(len(labels), -1)[:, : self.n_cells].astype(np.float64)


class TopLabelECE:
    """Top-label calibration errors of fixed predictions, for any number of label vectors.

    `weight` and `predicted` hold the weight of each bin and the sum of its predictions.
    """

    def __init__(
        self,
        predictions: Predictions,
        n_bins: NBins = "sqrt",
        binning: Binning = "width",
        norm: int = 1,
    ) -> None:
        if norm not in (1, 2):
            raise InputError(f"norm must be 1 or 2; got norm={norm!r}.")
        probs, weight = predictions.probs, predictions.sample_weight
        top, confidence = top_label(probs)
        index, edges = binned(confidence, n_bins, binning, weight)
        count = len(edges) + 1
        table = np.full(probs.shape, count, dtype=np.intp)
        table[np.arange(len(probs)), top] = index
        self.norm = norm
        self.weight, self.predicted = cell_totals(index, confidence, count, weight)
        self.hits = Hits(table, count, weight)

    def of_labels(self, labels: Codes) -> Floats:
        """Return the expected calibration error of each row of `labels`, (n_draws, n_samples)."""
        share = self.weight / self.weight.sum()
        return (self.gaps(labels) ** self.norm @ share) ** (1.0 / self.norm)

    def gaps(self, labels: Codes) -> Floats:
        """Return ``|conf_m - acc_m|``, shape (n_draws, n_bins); 0 in empty bins."""
        away = np.abs(self.predicted - self.hits(labels))
        return np.divide(away, self.weight, out=np.zeros_like(away), where=self.weight > 0.0)


class ClasswiseECE:
    """Classwise calibration errors of fixed predictions, for any number of label vectors."""

    def __init__(
        self, predictions: Predictions, n_bins: NBins = "sqrt", binning: Binning = "width"
    ) -> None:
        probs, weight = predictions.probs, predictions.sample_weight
        table = np.empty(probs.shape, dtype=np.intp)
        starts = [0]
        for k, column in enumerate(probs.T):
            index, edges = binned(column, n_bins, binning, weight)
            table[:, k] = index + starts[-1]
            starts.append(starts[-1] + len(edges) + 1)
        rows = None if weight is None else np.repeat(weight, probs.shape[1])
        self._starts, self._total = np.array(starts[:-1]), total_weight(probs, weight)
        self.weight, self.predicted = cell_totals(table.ravel(), probs.ravel(), starts[-1], rows)
        self.hits = Hits(table, starts[-1], weight)

    def of_labels(self, labels: Codes) -> Floats:
        """Return the mean over classes for each row of `labels`, (n_draws, n_samples)."""
        return self.per_class(labels).mean(axis=1)

    def per_class(self, labels: Codes) -> Floats:
        """Return the error of each class, shape (n_draws, n_classes)."""
        away = np.abs(self.predicted - self.hits(labels))
        return np.add.reduceat(away, self._starts, axis=1) / self._total


def cell_totals(
    index: Codes, values: Floats, n_cells: int, weight: Floats | None
) -> tuple[Floats, Floats]:
    """Return weight and weighted sum of `values` in each cell."""
    own = np.ones(len(values)) if weight is None else weight
    counts, sums = (np.bincount(index, w, n_cells) for w in (own, own * values))
    return counts.astype(np.float64), sums.astype(np.float64)


def expected_calibration_error(
    y_true: Any,
    y_prob: Any,
    *,
    n_bins: NBins = "sqrt",
    binning: Binning = "width",
    norm: Literal[1, 2] = 1,
    sample_weight: Any = None,
    classes: Classes = None,
) -> float:
    """Return the top-label expected calibration error.

    A number above 0 does not say that predictions are off: a perfectly calibrated model shows one
    too, the larger the fewer rows there are per bin. `mcllo.assess` reports how large.

    Parameters
    ----------
    n_bins : int or "sqrt"
        Number of bins; "sqrt" is ``ceil(sqrt(n))`` with n the rows, or their total weight.
    binning : "width" or "mass"
        Bins of equal width on [0, 1], or holding equally many rows.
    norm : 1 or 2
        Mean absolute, or root mean squared, gap.
    y_true, y_prob, sample_weight, classes
        As in `accuracy`.

    Examples
    --------
    >>> y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]
    >>> round(expected_calibration_error([0, 0, 1, 0], y_prob, n_bins=2), 3)
    0.0
    >>> round(expected_calibration_error([0, 0, 1, 0], y_prob, n_bins=10), 3)
    0.3
    """
    p = scored_predictions(y_true, y_prob, sample_weight=sample_weight, classes=classes)
    return float(TopLabelECE(p, n_bins, binning, norm).of_labels(p.codes[None])[0])


def maximum_calibration_error(
    y_true: Any,
    y_prob: Any,
    *,
    n_bins: NBins = "sqrt",
    binning: Binning = "width",
    sample_weight: Any = None,
    classes: Classes = None,
) -> float:
    """Return the largest gap between confidence and accuracy over the bins that hold rows.

    Parameters as in `expected_calibration_error`.

    Examples
    --------
    >>> y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]
    >>> round(maximum_calibration_error([0, 0, 1, 0], y_prob, n_bins=10), 3)
    0.6
    """
    p = scored_predictions(y_true, y_prob, sample_weight=sample_weight, classes=classes)
    return float(TopLabelECE(p, n_bins, binning).gaps(p.codes[None]).max())


def average_calibration_error(
    y_true: Any,
    y_prob: Any,
    *,
    n_bins: NBins = "sqrt",
    binning: Binning = "width",
    sample_weight: Any = None,
    classes: Classes = None,
) -> float:
    """Return the plain mean of the top-label gaps over the bins that hold rows (netcal's "ACE").

    A bin of one row counts as much as a bin of a thousand. For Nixon's adaptive calibration error
    use `adaptive_calibration_error`. Parameters as in `expected_calibration_error`.

    Examples
    --------
    >>> y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]
    >>> round(average_calibration_error([0, 0, 1, 0], y_prob, n_bins=10), 3)
    0.3
    """
    p = scored_predictions(y_true, y_prob, sample_weight=sample_weight, classes=classes)
    bins = TopLabelECE(p, n_bins, binning)
    return float(bins.gaps(p.codes[None])[0, bins.weight > 0.0].mean())


def classwise_calibration_error(
    y_true: Any,
    y_prob: Any,
    *,
    n_bins: NBins = "sqrt",
    binning: Binning = "width",
    sample_weight: Any = None,
    classes: Classes = None,
) -> float:
    """Return the mean over classes of each class's expected calibration error (Kull 2019).

    Parameters as in `expected_calibration_error`.

    Examples
    --------
    >>> y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]
    >>> round(classwise_calibration_error([0, 0, 1, 0], y_prob, n_bins=10), 3)
    0.3
    """
    p = scored_predictions(y_true, y_prob, sample_weight=sample_weight, classes=classes)
    return float(ClasswiseECE(p, n_bins, binning).of_labels(p.codes[None])[0])


def adaptive_calibration_error(
    y_true: Any,
    y_prob: Any,
    *,
    n_bins: NBins = "sqrt",
    sample_weight: Any = None,
    classes: Classes = None,
) -> float:
    """Return Nixon's (2019) ACE: the mean gap over classes and runs of equally many rows.

    Rows of equal probability may fall into different runs, so with ties the value depends on the
    order of the rows. Parameters as in `expected_calibration_error`.

    Examples
    --------
    >>> y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]
    >>> round(adaptive_calibration_error([0, 0, 1, 0], y_prob, n_bins=2), 3)
    0.2
    """
    p = scored_predictions(y_true, y_prob, sample_weight=sample_weight, classes=classes)
    count = n_bins_of(n_bins, total_weight(p.probs, p.sample_weight))
    per_class = []
    for k, column in enumerate(p.probs.T):
        both = np.stack([column, p.codes == k])
        weight, (predicted, hits) = block_totals(column, both, count, p.sample_weight)
        per_class.append(np.mean(np.abs(predicted - hits) / weight))
    return float(np.mean(per_class))


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
