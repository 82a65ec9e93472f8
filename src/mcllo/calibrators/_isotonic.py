"""`IsotonicCalibration`: one-vs-rest isotonic regression (Zadrozny and Elkan 2002).

=================  ==========================================================================
answer of class k  ``q_k = f_k(x_k)``, f_k the least-squares fit of ``1{y = k}`` on ``x_k`` among
                   functions that never fall; straight lines between its knots, constant outside
prediction         ``q_k / sum_j q_j``; ``1 / c`` for each class where every q_k is 0
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
from ._base import (
    absent_columns,
    normalize_rows,
    predict_labels,
    read_rows,
    read_training,
    save_calibrator,
)
from ._linear_fit import warn_absent


class IsotonicCalibration(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Isotonic regression of every class against the rest, rows then divided by their sum.

    Parameters
    ----------
    classes : sequence, optional
        The label of each column, when it cannot be told from the columns or the labels.
    normalize : bool
        Accept rows that do not sum to 1 and divide them by their sum.

    Attributes
    ----------
    classes_ : ndarray
        Labels in column order.
    knots_ : list of ndarray of shape (2, n_knots)
        Where each class's function bends: probabilities, and its values there.
    absent_ : tuple of int
        Columns that no label had; they keep their predicted probability.

    Examples
    --------
    >>> X = [[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.4, 0.6], [0.2, 0.8]]
    >>> isotonic = IsotonicCalibration().fit(X, [0, 1, 0, 1, 1])
    >>> isotonic.predict_proba([[0.8, 0.2], [0.95, 0.05]])
    array([[0.5, 0.5],
           [1. , 0. ]])
    """

    method: ClassVar[str] = "isotonic"
    input: ClassVar[str] = "probs"
    includes_identity: ClassVar[bool] = True
    needs_logs: ClassVar[bool] = False

    def __init__(
        self, *, classes: Sequence[Hashable] | None = None, normalize: bool = False
    ) -> None:
        self.classes = classes
        self.normalize = normalize

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> IsotonicCalibration:
        """Fit one function per class.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_classes)
            Predicted probabilities; zeros stay zeros.
        y : array-like of shape (n_samples,)
            The labels that came true.
        sample_weight : array-like of shape (n_samples,), optional
            Row i counts as ``sample_weight[i]`` rows.
        """
        predictions = read_training(self, X, y, sample_weight)
        warn_absent(predictions, "its probability is kept, and the other classes share the rest")
        self.absent_ = absent_columns(predictions)
        self.knots_ = [_fit_class(predictions, k) for k in range(predictions.n_classes)]
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return recalibrated probabilities, columns in the order of `classes_`."""
        probs = read_rows(self, X).probs
        answers = np.empty_like(probs)
        for k, (at, value) in enumerate(self.knots_):
            answers[:, k] = np.interp(probs[:, k], at, value)
        return normalize_rows(answers, probs, absent=self.absent_, zero_row="uniform")

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row."""
        return predict_labels(self, X)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted map as JSON; `mcllo.load_calibrator` reads it."""
        save_calibrator(self, path)

    def _state(self) -> dict[str, Any]:
        return {"knots": [knots.tolist() for knots in self.knots_], "absent": list(self.absent_)}

    def _restore(self, state: dict[str, Any]) -> None:
        self.knots_ = [np.array(knots, dtype=float) for knots in state["knots"]]
        self.absent_ = tuple(state["absent"])


def _fit_class(predictions: Predictions, k: int) -> Floats:
    from sklearn.isotonic import IsotonicRegression

    regression = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    target = (predictions.codes == k).astype(np.float64)
    regression.fit(predictions.probs[:, k], target, sample_weight=predictions.sample_weight)
    return np.stack([regression.X_thresholds_, regression.y_thresholds_])
