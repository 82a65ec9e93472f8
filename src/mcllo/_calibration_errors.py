"""Calibration errors of fixed predictions, for any number of label vectors at once.

With ``w_m`` the rows in bin m, ``conf_m`` their mean prediction, ``acc_m`` the frequency of hits:

==========================  ==================================================================
top-label, norm q           ``(sum_m w_m / n |conf_m - acc_m|^q)^(1/q)``, prediction
                            ``max_k x_ik``, hit ``argmax_k x_ik = y_i`` (of ties, the first)
classwise (Kull 2019)       mean over classes k of ``sum_m w_mk / n |conf_mk - acc_mk|``,
                            prediction ``x_ik``, hit ``y_i = k``
==========================  ==================================================================

Which bin a row is in depends on the predictions alone. Labels enter only by the counts of hits: the
cell that row i hits when its label is k is looked up in a table, for thousands of draws at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._binning import Binning, NBins, bin_index, inner_edges, total_weight
from ._predictions import Predictions
from .exceptions import InputError

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]


class _Cells:
    """Counts of hits per cell: label k of row i hits ``table[i, k]``; the last cell is dropped."""

    def __init__(self, table: Labels, n_cells: int, weight: Floats | None) -> None:
        self.n_cells, self.weight = n_cells, weight
        self._flat = table.ravel()
        self._start = np.arange(len(table)) * table.shape[1]

    def __call__(self, labels: Labels) -> Floats:
        """Return the weight of hits, shape (n_draws, n_cells), of labels (n_draws, n_samples)."""
        hit = self._flat[labels + self._start]
        hit += np.arange(len(labels))[:, None] * (self.n_cells + 1)
        weight = None if self.weight is None else np.broadcast_to(self.weight, hit.shape).ravel()
        size = len(labels) * (self.n_cells + 1)
        counts = np.bincount(hit.ravel(), weights=weight, minlength=size)
        return counts.reshape(len(labels), -1)[:, : self.n_cells].astype(np.float64)


class TopLabelECE:
    """Top-label calibration errors of fixed predictions, for any number of label vectors.

    Parameters
    ----------
    predictions : Predictions
        The probabilities, and weights where there are any.
    n_bins, binning, norm
        As in `expected_calibration_error`.

    Attributes
    ----------
    weight, predicted : ndarray of shape (n_bins,)
        Weight of the rows in each bin, and the sum of their predictions.
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
        top = probs.argmax(axis=1)
        confidence = probs[np.arange(len(probs)), top]
        edges = inner_edges(confidence, n_bins, binning, weight)
        index, count = bin_index(confidence, edges), len(edges) + 1
        table = np.full(probs.shape, count, dtype=np.intp)
        table[np.arange(len(probs)), top] = index
        self.norm = norm
        self.weight, self.predicted = cell_totals(index, confidence, count, weight)
        self.hits = _Cells(table, count, weight)

    def of_labels(self, labels: Labels) -> Floats:
        """Return the expected calibration error of each row of `labels`, (n_draws, n_samples)."""
        share = self.weight / self.weight.sum()
        power: Floats = (self.gaps(labels) ** self.norm) @ share
        return power ** (1.0 / self.norm)

    def gaps(self, labels: Labels) -> Floats:
        """Return ``|conf_m - acc_m|``, shape (n_draws, n_bins); 0 in empty bins."""
        away = np.abs(self.predicted - self.hits(labels))
        return np.divide(away, self.weight, out=np.zeros_like(away), where=self.weight > 0.0)


class ClasswiseECE:
    """Classwise calibration errors of fixed predictions, for any number of label vectors.

    Parameters
    ----------
    predictions : Predictions
        The probabilities, and weights where there are any.
    n_bins, binning
        As in `classwise_calibration_error`.
    """

    def __init__(
        self, predictions: Predictions, n_bins: NBins = "sqrt", binning: Binning = "width"
    ) -> None:
        probs, weight = predictions.probs, predictions.sample_weight
        table = np.empty(probs.shape, dtype=np.intp)
        starts = [0]
        for k, column in enumerate(probs.T):
            edges = inner_edges(column, n_bins, binning, weight)
            table[:, k] = bin_index(column, edges) + starts[-1]
            starts.append(starts[-1] + len(edges) + 1)
        rows = None if weight is None else np.repeat(weight, probs.shape[1])
        self._starts, self._total = np.array(starts[:-1]), total_weight(probs, weight)
        self.weight, self.predicted = cell_totals(table.ravel(), probs.ravel(), starts[-1], rows)
        self.hits = _Cells(table, starts[-1], weight)

    def of_labels(self, labels: Labels) -> Floats:
        """Return the mean over classes for each row of `labels`, (n_draws, n_samples)."""
        mean: Floats = self.per_class(labels).mean(axis=1)
        return mean

    def per_class(self, labels: Labels) -> Floats:
        """Return the error of each class, shape (n_draws, n_classes)."""
        away = np.abs(self.predicted - self.hits(labels))
        return np.add.reduceat(away, self._starts, axis=1) / self._total


def cell_totals(
    index: Labels, values: Floats, n_cells: int, weight: Floats | None
) -> tuple[Floats, Floats]:
    """Return weight and weighted sum of `values` in each cell."""
    own = np.ones(len(values)) if weight is None else weight
    counts: Floats = np.bincount(index, own, n_cells).astype(np.float64)
    sums: Floats = np.bincount(index, own * values, n_cells).astype(np.float64)
    return counts, sums
