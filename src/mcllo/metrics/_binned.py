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
from functools import cached_property
from typing import Any, Literal

import numpy as np

from .._utils.results import Codes, Floats
from .._validation.predictions import Predictions, predictions_for_scoring
from ..exceptions import InputError
from ._bins import (
    Binning,
    NBins,
    assign_bins,
    bin_index,
    equal_width_bin_index,
    equal_width_edges,
    midpoint_edges,
    resolve_n_bins,
    top_label,
    total_weight,
    weight_and_sums_by_block,
)

Classes = Sequence[Hashable] | None
Target = Literal["top-label", "marginal"]


class HitWeightByCell:
    """Counts of hits per cell: label k of row i hits ``table[i, k]``; the last cell is dropped."""

    def __init__(self, table: Codes, n_cells: int, weight: Floats | None) -> None:
        self.n_cells = n_cells
        self.weight = weight
        n_rows, n_classes = table.shape
        self._flat = table.ravel()
        self._start = np.arange(n_rows) * n_classes

    def __call__(self, labels: Codes) -> Floats:
        """Return the weight of hits, shape (n_draws, n_cells), of labels (n_draws, n_samples)."""
        n_draws = len(labels)
        n_kept_and_dropped = self.n_cells + 1
        # One count over all draws: the cells of draw t follow those of draw t - 1.
        cell = self._flat[labels + self._start]
        cell += np.arange(n_draws)[:, None] * n_kept_and_dropped
        weight = None
        if self.weight is not None:
            weight = np.broadcast_to(self.weight, cell.shape).ravel()
        counts = np.bincount(cell.ravel(), weight, n_draws * n_kept_and_dropped)
        kept = counts.reshape(n_draws, n_kept_and_dropped)[:, : self.n_cells]
        return kept.astype(np.float64)


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
        weight = predictions.sample_weight
        top, confidence = top_label(predictions.probs)
        index, edges = assign_bins(confidence, n_bins, binning, weight)
        self.norm = norm
        self._top = top
        self._index = index
        self._row_weight = weight
        self.weight, self.predicted = weight_and_sum_by_cell(
            index, confidence, len(edges) + 1, weight
        )

    def of_labels(self, labels: Codes) -> Floats:
        """Return the expected calibration error of each row of `labels`, (n_draws, n_samples)."""
        share = self.weight / self.weight.sum()
        powers = self.confidence_accuracy_gaps(labels) ** self.norm
        return (powers @ share) ** (1.0 / self.norm)

    def hit_weight_by_bin(self, labels: Codes) -> Floats:
        """Return the weight of hits, shape (n_draws, n_bins)."""
        n_bins = len(self.weight)
        counts = np.empty((len(labels), n_bins))
        for draw, drawn in enumerate(labels):
            hit = np.flatnonzero(drawn == self._top)
            weight = None if self._row_weight is None else self._row_weight[hit]
            counts[draw] = np.bincount(self._index[hit], weight, n_bins)
        return counts

    def confidence_accuracy_gaps(self, labels: Codes) -> Floats:
        """Return ``|conf_m - acc_m|``, shape (n_draws, n_bins); 0 in empty bins."""
        away = np.abs(self.predicted - self.hit_weight_by_bin(labels))
        return np.divide(
            away, self.weight, out=np.zeros_like(away), where=self.weight > 0.0
        )


class ClasswiseECE:
    """Classwise calibration errors of fixed predictions, for any number of label vectors."""

    def __init__(
        self,
        predictions: Predictions,
        n_bins: NBins = "sqrt",
        binning: Binning = "width",
    ) -> None:
        self._probs = predictions.probs
        self._row_weight = predictions.sample_weight
        self._binning = binning
        self._edges: list[Floats] = []
        weights = []
        sums = []
        n_at_once = 32
        for first in range(0, predictions.n_classes, n_at_once):
            # A single column of a table of many classes is one number of each page of memory.
            for column in self._probs[:, first : first + n_at_once].T.copy():
                index, edges = assign_bins(column, n_bins, binning, self._row_weight)
                n_cells = len(edges) + 1
                weight, predicted = weight_and_sum_by_cell(
                    index, column, n_cells, self._row_weight
                )
                self._edges.append(edges)
                weights.append(weight)
                sums.append(predicted)
        self._total = total_weight(self._probs, self._row_weight)
        n_cells_of_classes = [len(weight) for weight in weights]
        self._starts = np.concatenate([[0], np.cumsum(n_cells_of_classes)])
        self.weight = np.concatenate(weights)
        self.predicted = np.concatenate(sums)

    def of_labels(self, labels: Codes) -> Floats:
        """Return the mean over classes for each row of `labels`, (n_draws, n_samples)."""
        return self.errors_by_class(labels).mean(axis=1)

    def errors_by_class(self, labels: Codes) -> Floats:
        """Return the error of each class, shape (n_draws, n_classes)."""
        away = np.abs(self.predicted - self.hit_weight_by_bin(labels))
        return np.add.reduceat(away, self._starts[:-1], axis=1) / self._total

    def hit_weight_by_bin(self, labels: Codes) -> Floats:
        """Return the weight of hits, shape (n_draws, n_cells)."""
        if len(labels) > 1:
            return self._cell_of_row_and_class(labels)
        # Of one data set the cells of classes that are not a row's label are not asked for.
        codes = labels[0]
        cells = np.empty(len(codes), dtype=np.intp)
        rows_by_class = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes, minlength=len(self._edges)))
        for k, rows in enumerate(np.split(rows_by_class, ends[:-1])):
            cells[rows] = self._cells_of_class(k, self._probs[rows, k])
        counts = np.bincount(cells, self._row_weight, self._starts[-1])
        return counts[None].astype(np.float64)

    @cached_property
    def _cell_of_row_and_class(self) -> HitWeightByCell:
        """The cell of every row and class, for label vectors in number."""
        table = np.empty(self._probs.shape, dtype=np.intp)
        for k, column in enumerate(self._probs.T):
            table[:, k] = self._cells_of_class(k, column)
        return HitWeightByCell(table, int(self._starts[-1]), self._row_weight)

    def _cells_of_class(self, k: int, values: Floats) -> Codes:
        """Return the cells of predictions for class k."""
        edges = self._edges[k]
        if self._binning == "width":
            index = equal_width_bin_index(values, len(edges) + 1)
        else:
            index = bin_index(values, edges)
        return index + self._starts[k]


def weight_and_sum_by_cell(
    index: Codes, values: Floats, n_cells: int, weight: Floats | None
) -> tuple[Floats, Floats]:
    """Return weight and weighted sum of `values` in each cell."""
    if weight is None:
        weight = np.ones(len(values))
    weights = np.bincount(index, weight, n_cells)
    sums = np.bincount(index, weight * values, n_cells)
    return weights.astype(np.float64), sums.astype(np.float64)


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
    y_true : array-like of shape (n_samples,)
        Labels that came true.
    y_prob : array-like or frame of shape (n_samples, n_classes)
        Predicted probabilities.
    n_bins : int or "sqrt"
        Number of bins; "sqrt" is ``ceil(sqrt(n))`` with n the rows, or their total weight.
    binning : "width" or "mass"
        Bins of equal width on [0, 1], or holding equally many rows.
    norm : {1, 2}
        Mean absolute, or root mean squared, gap.
    sample_weight : array-like of shape (n_samples,), optional
        Row i counts as ``sample_weight[i]`` rows.
    classes : sequence, optional
        The label of each column. Default: the frame's column names, else the sorted distinct
        labels.

    Returns
    -------
    float
        Between 0 and 1; 0 where every bin's mean confidence is its accuracy.

    See Also
    --------
    classwise_calibration_error : Of all classes.
    debiased_calibration_error : Less what chance adds.
    maximum_calibration_error : The largest gap.
    mcllo.reliability_curve : The bins themselves.

    Notes
    -----
    Mean over rows of the distance of confidence and accuracy in the row's bin [1]_ [2]_. Bins are
    closed on the right, 0 is in the first. The default, ``ceil(sqrt(n))`` bins, is that of [3]_.

    References
    ----------
    .. [1] M. P. Naeini, G. F. Cooper, M. Hauskrecht (2015). Obtaining well calibrated probabilities
           using Bayesian binning. Proceedings of the 29th AAAI Conference on Artificial
           Intelligence.
    .. [2] C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger (2017). On calibration of modern neural
           networks. Proceedings of the 34th International Conference on Machine Learning,
           1321-1330.
    .. [3] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.

    Examples
    --------
    >>> y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]
    >>> round(expected_calibration_error([0, 0, 1, 0], y_prob, n_bins=2), 3)
    0.0
    >>> round(expected_calibration_error([0, 0, 1, 0], y_prob, n_bins=10), 3)
    0.3
    """
    p = predictions_for_scoring(
        y_true,
        y_prob,
        sample_weight=sample_weight,
        classes=classes,
        choice_sets=True,
    )
    bins = TopLabelECE(p, n_bins, binning, norm)
    return float(bins.of_labels(p.codes[None])[0])


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

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels that came true.
    y_prob : array-like or frame of shape (n_samples, n_classes)
        Predicted probabilities.
    n_bins : int or "sqrt"
        Number of bins; "sqrt" is ``ceil(sqrt(n))`` with n the rows, or their total weight.
    binning : {"width", "mass"}
        Bins of equal width on [0, 1], or holding equally many rows.
    sample_weight : array-like of shape (n_samples,), optional
        Row i counts as ``sample_weight[i]`` rows.
    classes : sequence, optional
        The label of each column. Default: the frame's column names, else the sorted distinct
        labels.

    Returns
    -------
    float
        Between 0 and 1.

    See Also
    --------
    expected_calibration_error : The mean gap.
    average_calibration_error : The mean gap, each bin counting alike.
    mcllo.reliability_curve : Every bin, with an interval.

    Notes
    -----
    The definition is that of [1]_. A bin of a single row decides as easily as one of a thousand.

    References
    ----------
    .. [1] M. P. Naeini, G. F. Cooper, M. Hauskrecht (2015). Obtaining well calibrated probabilities
           using Bayesian binning. Proceedings of the 29th AAAI Conference on Artificial
           Intelligence.

    Examples
    --------
    >>> y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]
    >>> round(maximum_calibration_error([0, 0, 1, 0], y_prob, n_bins=10), 3)
    0.6
    """
    p = predictions_for_scoring(
        y_true, y_prob, sample_weight=sample_weight, classes=classes
    )
    bins = TopLabelECE(p, n_bins, binning)
    return float(bins.confidence_accuracy_gaps(p.codes[None]).max())


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
    use `adaptive_calibration_error`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels that came true.
    y_prob : array-like or frame of shape (n_samples, n_classes)
        Predicted probabilities.
    n_bins : int or "sqrt"
        Number of bins; "sqrt" is ``ceil(sqrt(n))`` with n the rows, or their total weight.
    binning : {"width", "mass"}
        Bins of equal width on [0, 1], or holding equally many rows.
    sample_weight : array-like of shape (n_samples,), optional
        Row i counts as ``sample_weight[i]`` rows.
    classes : sequence, optional
        The label of each column. Default: the frame's column names, else the sorted distinct
        labels.

    Returns
    -------
    float
        Between 0 and 1.

    See Also
    --------
    expected_calibration_error : The mean weighted by the rows of each bin.
    maximum_calibration_error : The largest gap.
    adaptive_calibration_error : Nixon's ACE.

    Examples
    --------
    >>> y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]
    >>> round(average_calibration_error([0, 0, 1, 0], y_prob, n_bins=10), 3)
    0.3
    """
    p = predictions_for_scoring(
        y_true, y_prob, sample_weight=sample_weight, classes=classes
    )
    bins = TopLabelECE(p, n_bins, binning)
    gaps = bins.confidence_accuracy_gaps(p.codes[None])[0]
    holds_rows = bins.weight > 0.0
    return float(gaps[holds_rows].mean())


def classwise_calibration_error(
    y_true: Any,
    y_prob: Any,
    *,
    n_bins: NBins = "sqrt",
    binning: Binning = "width",
    sample_weight: Any = None,
    classes: Classes = None,
) -> float:
    """Return the mean over classes of each class's expected calibration error.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels that came true.
    y_prob : array-like or frame of shape (n_samples, n_classes)
        Predicted probabilities.
    n_bins : int or "sqrt"
        Number of bins; "sqrt" is ``ceil(sqrt(n))`` with n the rows, or their total weight.
    binning : {"width", "mass"}
        Bins of equal width on [0, 1], or holding equally many rows.
    sample_weight : array-like of shape (n_samples,), optional
        Row i counts as ``sample_weight[i]`` rows.
    classes : sequence, optional
        The label of each column. Default: the frame's column names, else the sorted distinct
        labels.

    Returns
    -------
    float
        Between 0 and 1.

    See Also
    --------
    expected_calibration_error : Of the most probable class only.
    adaptive_calibration_error : With runs of equally many rows instead of bins.
    mcllo.metrics.calibration_distances : Class by class, of a smooth curve.

    Notes
    -----
    The definition is that of [1]_. With many classes most predictions of a class are near 0 and lie
    in the first bin, so that the number is small also where predictions are off.

    References
    ----------
    .. [1] M. Kull, M. Perello Nieto, M. Kängsepp, T. Silva Filho, H. Song, P. Flach (2019). Beyond
           temperature scaling: obtaining well-calibrated multi-class probabilities with Dirichlet
           calibration. arXiv:1910.12656.

    Examples
    --------
    >>> y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]
    >>> round(classwise_calibration_error([0, 0, 1, 0], y_prob, n_bins=10), 3)
    0.3
    """
    p = predictions_for_scoring(
        y_true, y_prob, sample_weight=sample_weight, classes=classes
    )
    bins = ClasswiseECE(p, n_bins, binning)
    return float(bins.of_labels(p.codes[None])[0])


def adaptive_calibration_error(
    y_true: Any,
    y_prob: Any,
    *,
    n_bins: NBins = "sqrt",
    sample_weight: Any = None,
    classes: Classes = None,
) -> float:
    """Return the mean gap over classes and runs of equally many rows (adaptive calibration error).

    Rows of equal probability may fall into different runs, so with ties the value depends on the
    order of the rows.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels that came true.
    y_prob : array-like or frame of shape (n_samples, n_classes)
        Predicted probabilities.
    n_bins : int or "sqrt"
        Runs per class; "sqrt" is ``ceil(sqrt(n))`` with n the rows, or their total weight.
    sample_weight : array-like of shape (n_samples,), optional
        Row i counts as ``sample_weight[i]`` rows.
    classes : sequence, optional
        The label of each column. Default: the frame's column names, else the sorted distinct
        labels.

    Returns
    -------
    float
        Between 0 and 1; 0 where every run's mean prediction is its frequency.

    See Also
    --------
    classwise_calibration_error : The same of bins with fixed edges.
    average_calibration_error : What netcal calls ACE.
    expected_calibration_error : Of the most probable class.

    Notes
    -----
    This is the adaptive calibration error of [1]_. Like every binned error it is above 0 for
    calibrated predictions, too.

    References
    ----------
    .. [1] J. Nixon, M. Dusenberry, L. Zhang, G. Jerfel, D. Tran (2019). Measuring calibration in
           deep learning. arXiv:1904.01685.

    Examples
    --------
    >>> y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]
    >>> round(adaptive_calibration_error([0, 0, 1, 0], y_prob, n_bins=2), 3)
    0.2
    """
    p = predictions_for_scoring(
        y_true, y_prob, sample_weight=sample_weight, classes=classes
    )
    n_runs = resolve_n_bins(n_bins, total_weight(p.probs, p.sample_weight))
    gaps = []
    for k, column in enumerate(p.probs.T):
        predicted_and_hit = np.stack([column, p.codes == k])
        weight, sums = weight_and_sums_by_block(
            column, predicted_and_hit, n_runs, p.sample_weight
        )
        predicted, hits = sums
        gaps.append(np.mean(np.abs(predicted - hits) / weight))
    return float(np.mean(gaps))


def debiased_calibration_error(
    y_true: Any,
    y_prob: Any,
    *,
    n_bins: NBins = 15,
    target: Target = "top-label",
    sample_weight: Any = None,
    classes: Classes = None,
) -> float:
    """Return the debiased root mean squared calibration error, 0 where its square is negative.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels that came true.
    y_prob : array-like or frame of shape (n_samples, n_classes)
        Predicted probabilities.
    n_bins : int or "sqrt"
        Number of bins of equal mass.
    target : {"top-label", "marginal"}
        The most probable class of each row; or every class, as the root of the mean over classes of
        each class's squared error (an error below 0 counts as 0).
    sample_weight : array-like of shape (n_samples,), optional
        Row i counts as ``sample_weight[i]`` rows.
    classes : sequence, optional
        The label of each column. Default: the frame's column names, else the sorted distinct
        labels.

    Returns
    -------
    float
        Between 0 and 1; 0 where the estimate of the square is negative.

    See Also
    --------
    debiased_squared_calibration_error : The estimate itself, which may be negative.
    expected_calibration_error : Not debiased.
    tcal_squared_calibration_error : Another debiased estimate.

    Notes
    -----
    The estimator is that of [1]_: the variance of each bin's frequency is subtracted from the
    squared gap. Bins have equal mass; bins of fewer than two rows count as 0.

    References
    ----------
    .. [1] A. Kumar, P. Liang, T. Ma (2019). Verified uncertainty calibration. arXiv:1909.10155.

    Examples
    --------
    >>> y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]
    >>> round(debiased_calibration_error([1, 1, 1, 0], y_prob, n_bins=2), 3)
    0.384
    """
    squares = _signed_squared_errors(
        y_true, y_prob, n_bins, target, sample_weight, classes
    )
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
    """Return the debiased squared calibration error, with its sign.

    For ``target="marginal"`` the mean over classes.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels that came true.
    y_prob : array-like or frame of shape (n_samples, n_classes)
        Predicted probabilities.
    n_bins : int or "sqrt"
        Number of bins; "sqrt" is ``ceil(sqrt(n))`` with n the rows, or their total weight.
    target : {"top-label", "marginal"}
        The most probable class of each row; or every class, as the mean over classes.
    sample_weight : array-like of shape (n_samples,), optional
        Row i counts as ``sample_weight[i]`` rows.
    classes : sequence, optional
        The label of each column. Default: the frame's column names, else the sorted distinct
        labels.

    Returns
    -------
    float
        Negative where the gaps are smaller than chance makes them on average.

    See Also
    --------
    debiased_calibration_error : Its root, as a number of the size of a probability.
    tcal_squared_calibration_error : Bins of equal width.
    kernel_calibration_error : A squared error without bins.

    Notes
    -----
    The estimator is that of [1]_. Its mean is 0 where the predictions are calibrated and equal
    within each bin.

    References
    ----------
    .. [1] A. Kumar, P. Liang, T. Ma (2019). Verified uncertainty calibration. arXiv:1909.10155.

    Examples
    --------
    >>> y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]
    >>> round(debiased_squared_calibration_error([0, 0, 1, 0], y_prob, n_bins=2), 4)
    -0.1025
    """
    squares = _signed_squared_errors(
        y_true, y_prob, n_bins, target, sample_weight, classes
    )
    return float(squares.mean())


def tcal_squared_calibration_error(
    y_true: Any,
    y_prob: Any,
    *,
    n_bins: NBins = "sqrt",
    sample_weight: Any = None,
    classes: Classes = None,
) -> float:
    """Return T-Cal's debiased plug-in estimate of the squared top-label calibration error.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels that came true.
    y_prob : array-like or frame of shape (n_samples, n_classes)
        Predicted probabilities.
    n_bins : int or "sqrt"
        Number of bins; "sqrt" is ``ceil(sqrt(n))`` with n the rows, or their total weight.
    sample_weight : array-like of shape (n_samples,), optional
        Row i counts as ``sample_weight[i]`` rows.
    classes : sequence, optional
        The label of each column. Default: the frame's column names, else the sorted distinct
        labels.

    Returns
    -------
    float
        Negative where the gaps are smaller than chance makes them on average.

    See Also
    --------
    debiased_squared_calibration_error : Bins of equal mass.
    expected_calibration_error : Not debiased.
    mcllo.omnibus_test : Tests against departures of any shape.

    Notes
    -----
    The statistic of [1]_ for one number of bins of equal width; the adaptive test over many numbers
    is not part of this package. Bins are closed on the left here, as in the authors' code.

    References
    ----------
    .. [1] D. Lee, X. Huang, H. Hassani, E. Dobriban (2022). T-Cal: an optimal test for the
           calibration of predictive models. arXiv:2203.01850.

    Examples
    --------
    >>> y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]
    >>> round(tcal_squared_calibration_error([0, 0, 1, 0], y_prob, n_bins=2), 5)
    -0.03125
    """
    p = predictions_for_scoring(
        y_true, y_prob, sample_weight=sample_weight, classes=classes
    )
    values, hits = next(_binary_predictions_and_hits(p, "top-label"))
    count = resolve_n_bins(n_bins, total_weight(values, p.sample_weight))
    index = bin_index(values, equal_width_edges(count), closed="left")
    residual = values - hits
    weight, sums = weight_and_sum_by_cell(index, residual, count, p.sample_weight)
    _, squares = weight_and_sum_by_cell(index, residual**2, count, p.sample_weight)
    is_used = weight > 0.0
    products = (sums**2 - squares)[is_used]  # over pairs of different rows of a bin
    return float((products / weight[is_used]).sum() / weight.sum())


def _signed_squared_errors(
    y_true: Any,
    y_prob: Any,
    n_bins: NBins,
    target: Target,
    sample_weight: Any,
    classes: Classes,
) -> Floats:
    """Return the signed square of each binary problem: one, or one per class."""
    p = predictions_for_scoring(
        y_true, y_prob, sample_weight=sample_weight, classes=classes
    )
    n_runs = resolve_n_bins(n_bins, total_weight(p.probs, p.sample_weight))
    squares = []
    for values, hits in _binary_predictions_and_hits(p, target):
        edges = midpoint_edges(values, n_runs, p.sample_weight)
        index = bin_index(values, edges)
        n_cells = len(edges) + 1
        weight, predicted = weight_and_sum_by_cell(
            index, values, n_cells, p.sample_weight
        )
        _, observed = weight_and_sum_by_cell(index, hits, n_cells, p.sample_weight)
        total = weight.sum()
        is_used = weight >= 2.0  # a single row has no variance
        weight = weight[is_used]
        confidence = predicted[is_used] / weight
        frequency = observed[is_used] / weight
        by_chance = frequency * (1.0 - frequency) / (weight - 1.0)
        excess = (confidence - frequency) ** 2 - by_chance
        squares.append((weight * excess).sum() / total)
    return np.array(squares)


def _binary_predictions_and_hits(
    p: Predictions, target: Target
) -> Iterator[tuple[Floats, Floats]]:
    """Yield predictions and hits: of the top label, or of each class."""
    if target == "top-label":
        top, confidence = top_label(p.probs)
        yield confidence, (top == p.codes).astype(np.float64)
    elif target == "marginal":
        for k, column in enumerate(p.probs.T):
            yield column, (p.codes == k).astype(np.float64)
    else:
        raise InputError(
            f"target must be 'top-label' or 'marginal'; got target={target!r}."
        )
