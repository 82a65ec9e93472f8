"""`BetaCalibration`: one-vs-rest beta calibration (Kull, Silva Filho and Flach 2017).

=================  ==========================================================================
answer of class k  ``logit q_k = a log s - b log(1 - s) + m``, ``s = x_k`` kept in
                   ``[1e-12, 1 - 1e-12]``
fit                largest binary likelihood of ``1{y = k}``; a and b must not be negative, so that
                   q rises with s
sign rule          a < 0: refit without ``log s`` (a = 0); else b < 0: refit without ``log(1 - s)``
                   (b = 0); when what remains is still negative, only m is fitted
prediction         ``q_k / sum_j q_j``
=================  ==========================================================================
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from .._ground.results import Floats
from .._input.predictions import Predictions
from .._math.likelihood import Terms
from .._math.newton import minimize
from ..exceptions import USE_A_PENALTY, Phrase, SeparationWarning
from ._base import (
    absent_columns,
    normalize_rows,
    predict_labels,
    read_rows,
    read_training,
    save_calibrator,
)
from ._linear_fit import warn_absent

SMALLEST = 1e-12
IDENTITY = np.array([1.0, 1.0, 0.0])


class BetaCalibration(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Beta calibration of every class against the rest, rows then divided by their sum.

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
    coef_ : ndarray of shape (n_classes, 3)
        a, b and m of each class; (1, 1, 0) changes nothing.
    absent_ : tuple of int
        Columns that no label had; they keep their predicted probability.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(20_000)
    >>> y = rng.random(20_000) < p
    >>> sharp = p**2 / (p**2 + (1 - p) ** 2)  # logit doubled
    >>> beta = BetaCalibration().fit(np.column_stack([1 - sharp, sharp]), y)
    >>> beta.coef_[1].round(1)
    array([0.5, 0.5, 0. ])
    """

    method: ClassVar[str] = "beta"
    input: ClassVar[str] = "probs"
    includes_identity: ClassVar[bool] = True
    needs_logs: ClassVar[bool] = False

    def __init__(
        self, *, classes: Sequence[Hashable] | None = None, normalize: bool = False
    ) -> None:
        self.classes = classes
        self.normalize = normalize

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> BetaCalibration:
        """Fit three numbers per class.

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
        self.coef_ = np.tile(IDENTITY, (predictions.n_classes, 1))
        rows = _counted(predictions)
        weight = None if predictions.sample_weight is None else predictions.sample_weight[rows]
        steps = []
        for k in np.flatnonzero(predictions.class_weight):
            s, hit = predictions.probs[rows, k], predictions.codes[rows] == k
            self.coef_[k] = fit_beta(s, hit, weight)
            if is_step(s, hit):
                steps.append(predictions.classes[k])
        _warn_steps(steps)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return recalibrated probabilities, columns in the order of `classes_`."""
        probs = read_rows(self, X).probs
        logit = np.einsum("fnk,kf->nk", features(probs), self.coef_)
        log_answer = -np.logaddexp(0.0, -logit)
        log_answer[:, list(self.absent_)] = -np.inf
        # Divided by the row's largest answer, so that not all of them can underflow to 0.
        answers = np.exp(log_answer - log_answer.max(axis=1, keepdims=True))
        return normalize_rows(answers, probs, absent=self.absent_, zero_row="uniform")

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row."""
        return predict_labels(self, X)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted map as JSON; `mcllo.load_calibrator` reads it."""
        save_calibrator(self, path)

    def _state(self) -> dict[str, Any]:
        return {"coef": self.coef_.tolist(), "absent": list(self.absent_)}

    def _restore(self, state: dict[str, Any]) -> None:
        self.coef_ = np.array(state["coef"], dtype=float)
        self.absent_ = tuple(state["absent"])


def features(s: Floats) -> Floats:
    """Return ``log s``, ``-log(1 - s)`` and 1, stacked on a new first axis."""
    inside = np.clip(s, SMALLEST, 1.0 - SMALLEST)
    return np.stack([np.log(inside), -np.log1p(-inside), np.ones_like(inside)])


def fit_beta(s: Floats, hit: NDArray[np.bool_], weight: Floats | None = None) -> Floats:
    """Return a, b and m for one class, by the sign rule."""
    if hit.all():
        return IDENTITY
    design = features(s)
    coef = _fit_columns(design, hit, weight, [0, 1, 2])
    if coef[0] < 0.0:
        coef = _fit_columns(design, hit, weight, [1, 2])
    elif coef[1] < 0.0:
        coef = _fit_columns(design, hit, weight, [0, 2])
    if coef[:2].min() < 0.0:
        coef = _fit_columns(design, hit, weight, [2])
    return coef


def is_step(s: Floats, hit: NDArray[np.bool_]) -> bool:
    """Return whether a threshold on s tells hits from misses, so that no finite fit is best."""
    if hit.all() or s.min() == s.max():
        return False
    return bool(s[~hit].max() <= s[hit].min())


def _fit_columns(
    design: Floats, hit: NDArray[np.bool_], weight: Floats | None, columns: list[int]
) -> Floats:
    """Return the logistic regression of `hit` on some rows of `design`, the other numbers 0."""
    x, w = design[columns], np.ones(len(hit)) if weight is None else weight

    def loss(coef: Floats) -> Terms:
        eta = coef @ x
        p = np.exp(-np.logaddexp(0.0, -eta))
        value = float(w @ (np.logaddexp(0.0, eta) - hit * eta))
        return Terms(value, x @ (w * (p - hit)), (x * (w * p * (1.0 - p))) @ x.T)

    coef = np.zeros(len(design))
    coef[columns] = minimize(loss, IDENTITY[columns]).x
    return coef


def _counted(predictions: Predictions) -> NDArray[np.bool_]:
    """Return which rows have a positive weight."""
    weight = predictions.sample_weight
    return np.ones(predictions.n_samples, dtype=bool) if weight is None else weight > 0.0


def _warn_steps(labels: list[Hashable]) -> None:
    if labels:
        named = ", ".join(repr(label) for label in labels)
        message = Phrase(
            "a threshold on its probability tells class {} from the rest without error, so no "
            "finite beta map is best; its recalibrated probabilities are all but 0 or 1. "
            "Give more rows, or {}.",
            named,
            USE_A_PENALTY,
        )
        warnings.warn(SeparationWarning(message), stacklevel=3)
