"""`HistogramBinning`: one-vs-rest histogram binning with normalisation (Guo et al. 2017, 4.2).

=================  ==========================================================================
bins               those of ``metrics/_bins.py``, for each class's column of probabilities
answer of bin m    ``q_mk = (s_mk + a pi_k) / (n_mk + a)``: n rows in the bin, s of class k among
                   them, pi_k the share of class k, a = `smoothing`
empty bin          the midpoint of its edges; or 0, pi_k, or the probability itself
prediction         ``q_k = q_{m(x_k), k}``, then ``q_k / sum_j q_j``
=================  ==========================================================================
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from .._ground.results import Floats
from .._input.predictions import Predictions
from ..exceptions import InputError
from ..metrics._bins import Binning, NBins, bin_index, inner_edges
from ._base import (
    ZeroRow,
    absent_columns,
    check_choice,
    normalize_rows,
    predict_labels,
    read_rows,
    read_training,
    save_calibrator,
)
from ._linear_fit import warn_absent

EMPTY = ("midpoint", "zero", "prior", "identity")


class HistogramBinning(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Histogram binning of every class's probability, rows then divided by their sum.

    The most probable class may change, and probabilities become 0 where a bin never held the class.

    Parameters
    ----------
    n_bins : int or "sqrt"
        Bins per class; "sqrt" is ceil(sqrt(n)).
    binning : {"width", "mass"}
        Bins of equal width, or of equally many rows.
    empty : {"midpoint", "zero", "prior", "identity"}
        The answer of a bin without rows: the midpoint of its edges, 0, the class's share of the
        labels, or the probability itself.
    zero_row : {"original", "uniform"}
        The answer to a row whose bins all say 0: the row itself, or 1 / c for each class.
    smoothing : float
        Laplace smoothing: a bin with rows counts as having this many more, of which the class's
        share came true.
    classes : sequence, optional
        The label of each column, when it cannot be told from the columns or the labels.
    normalize : bool
        Accept rows that do not sum to 1 and divide them by their sum.

    Attributes
    ----------
    classes_ : ndarray
        Labels in column order.
    edges_ : list of ndarray
        Inner edges of each class's bins; bins are closed on the right.
    counts_ : list of ndarray
        Rows (their weight) in each bin of each class.
    table_ : list of ndarray
        Answer of each bin of each class; NaN where it is the probability itself.
    absent_ : tuple of int
        Columns that no label had; they keep their predicted probability.

    Examples
    --------
    >>> X = [[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.4, 0.6], [0.2, 0.8]]
    >>> binned = HistogramBinning(n_bins=2).fit(X, [0, 0, 1, 1, 1])
    >>> binned.table_[0]
    array([0.        , 0.66666667])
    >>> binned.predict_proba([[0.6, 0.4]]).round(3)
    array([[0.667, 0.333]])
    """

    method: ClassVar[str] = "histogram"
    input: ClassVar[str] = "probs"
    includes_identity: ClassVar[bool] = False
    needs_logs: ClassVar[bool] = False

    def __init__(
        self,
        *,
        n_bins: NBins = 10,
        binning: Binning = "width",
        empty: str = "midpoint",
        zero_row: ZeroRow = "original",
        smoothing: float = 0.0,
        classes: Sequence[Hashable] | None = None,
        normalize: bool = False,
    ) -> None:
        self.n_bins = n_bins
        self.binning = binning
        self.empty = empty
        self.zero_row = zero_row
        self.smoothing = smoothing
        self.classes = classes
        self.normalize = normalize

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> HistogramBinning:
        """Count how often each class came true in each bin.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_classes)
            Predicted probabilities; zeros stay zeros.
        y : array-like of shape (n_samples,)
            The labels that came true.
        sample_weight : array-like of shape (n_samples,), optional
            Row i counts as ``sample_weight[i]`` rows.
        """
        check_choice("empty", self.empty, EMPTY)
        check_choice("zero_row", self.zero_row, ("original", "uniform"))
        if not 0.0 <= self.smoothing < np.inf:
            raise InputError(f"smoothing must be finite and >= 0; got smoothing={self.smoothing}.")
        predictions = read_training(self, X, y, sample_weight)
        warn_absent(predictions, "its probability is kept, and the other classes share the rest")
        self.absent_ = absent_columns(predictions)
        columns = [self._fit_class(predictions, k) for k in range(predictions.n_classes)]
        self.edges_, self.counts_, self.table_ = (list(part) for part in zip(*columns, strict=True))
        return self

    def _fit_class(self, predictions: Predictions, k: int) -> tuple[Floats, Floats, Floats]:
        """Return inner edges, counts and answers of the bins of class k."""
        values, weight = predictions.probs[:, k], predictions.sample_weight
        edges = inner_edges(values, self.n_bins, self.binning, weight)
        index, size = bin_index(values, edges), len(edges) + 1
        own = (predictions.codes == k) * (1.0 if weight is None else weight)
        counts = np.bincount(index, weights=weight, minlength=size).astype(np.float64)
        hits = np.bincount(index, weights=own, minlength=size)
        prior = hits.sum() / counts.sum()
        with np.errstate(invalid="ignore"):
            answers = (hits + self.smoothing * prior) / (counts + self.smoothing)
        return edges, counts, np.where(counts > 0.0, answers, self._empty_answers(edges, prior))

    def _empty_answers(self, edges: Floats, prior: float) -> Floats:
        ends = np.concatenate([[0.0], edges, [1.0]])
        midpoints: Floats = 0.5 * (ends[:-1] + ends[1:])
        constant = {"zero": 0.0, "prior": prior, "identity": np.nan}
        if self.empty == "midpoint":
            return midpoints
        return np.full_like(midpoints, constant[self.empty])

    def predict_proba(self, X: Any) -> Floats:
        """Return recalibrated probabilities, columns in the order of `classes_`."""
        probs = read_rows(self, X).probs
        answers = np.empty_like(probs)
        for k, (edges, table) in enumerate(zip(self.edges_, self.table_, strict=True)):
            answers[:, k] = table[bin_index(probs[:, k], edges)]
        answers = np.where(np.isnan(answers), probs, answers)
        return normalize_rows(answers, probs, absent=self.absent_, zero_row=self.zero_row)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row."""
        return predict_labels(self, X)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted map as JSON; `mcllo.load_calibrator` reads it."""
        save_calibrator(self, path)

    def _state(self) -> dict[str, Any]:
        return {
            "edges": [edges.tolist() for edges in self.edges_],
            "counts": [counts.tolist() for counts in self.counts_],
            "table": [[None if np.isnan(q) else float(q) for q in row] for row in self.table_],
            "absent": list(self.absent_),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        for name in ("edges", "counts", "table"):
            setattr(self, f"{name}_", [np.array(row, dtype=float) for row in state[name]])
        self.absent_ = tuple(state["absent"])
