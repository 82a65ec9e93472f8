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

import numpy as np
from numpy.typing import NDArray

from .._model.kernel import Derivatives
from .._model.newton import minimize
from .._utils.results import Floats
from .._utils.statements import warn
from .._validation.predictions import Predictions
from ..exceptions import SeparationWarning
from ._base import OneVsRest, floats_from_json

MIN_PROB = 1e-12  # distance of s from 0 and 1: their logarithms must be finite
IDENTITY = np.array([1.0, 1.0, 0.0])  # a, b and m that change nothing


class BetaCalibration(OneVsRest):
    """Beta calibration of every class against the rest, rows then divided by their sum.

    Parameters
    ----------
    classes : sequence, optional
        The label of each column, when it cannot be told from the columns or the labels.
    normalize : bool
        Accept rows of probabilities that do not sum to 1 and divide them by their sum.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, 3)
        a, b and m of each class; (1, 1, 0) changes nothing.

    See Also
    --------
    IsotonicCalibration : Any rising function for each class.
    HistogramBinning : Steps for each class.
    DirichletCalibration : Beta calibration of all classes together.
    mcllo.MCLLOCalibrator : A shift and a slope for each class against the baseline.

    Notes
    -----
    The map of [1]_ for each class against the rest: ``logit q = a ln p - b ln(1 - p) + m`` with a,
    b >= 0. It contains the identity. That rows are divided by their sum is the usual extension to
    more than two classes.

    References
    ----------
    .. [1] M. Kull, T. M. Silva Filho, P. Flach (2017). Beyond sigmoids: how to obtain
           well-calibrated probabilities from binary classifiers with beta calibration. Electronic
           Journal of Statistics 11:5052-5080.

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

    method = "beta"
    _learned = (("coef", floats_from_json), ("absent", tuple))

    def _learned_words(self) -> str:
        return "a beta curve for each class"

    def _learn_each_class(self, predictions: Predictions) -> None:
        is_there = predictions.row_weight > 0.0
        probs = predictions.probs[is_there]
        codes = predictions.codes[is_there]
        weight = predictions.row_weight[is_there]
        self.coef_ = np.tile(IDENTITY, (predictions.n_classes, 1))
        steps = []
        for k in np.flatnonzero(predictions.class_weight):
            is_class = codes == k
            self.coef_[k] = fit_beta(probs[:, k], is_class, weight)
            if is_separable(probs[:, k], is_class):
                steps.append(predictions.classes[k])
        if steps:
            says = (
                "a threshold on its probability tells {which} from the rest without error, so no "
                "finite beta map is best; its recalibrated probabilities are all but 0 or 1. "
                "Give more rows, or {use_a_penalty}."
            )
            short = says.replace("{which}", "a class")
            values = {"which": f"class {', '.join(map(repr, steps))}"}
            numbers = {"classes": tuple(steps)}
            warn(SeparationWarning(short, detail=says, numbers=numbers, values=values))

    def _recalibrate_each_class(self, probs: Floats) -> Floats:
        logit = np.einsum("fnk,kf->nk", beta_features(probs), self.coef_)
        log_answer = -np.logaddexp(0.0, -logit)
        log_answer[:, list(self.absent_)] = -np.inf
        # Divided by the row's largest answer, so that not all of them can underflow to 0.
        return np.exp(log_answer - log_answer.max(axis=1, keepdims=True))


def beta_features(s: Floats) -> Floats:
    """Return ``log s``, ``-log(1 - s)`` and 1, stacked on a new first axis."""
    inside = np.clip(s, MIN_PROB, 1.0 - MIN_PROB)
    log_s = np.log(inside)
    minus_log_rest = -np.log1p(-inside)
    return np.stack([log_s, minus_log_rest, np.ones_like(inside)])


def fit_beta(
    s: Floats, is_class: NDArray[np.bool_], weight: Floats | None = None
) -> Floats:
    """Return a, b and m for one class, by the sign rule."""
    if is_class.all():
        return IDENTITY
    design = beta_features(s)
    coef = _fit_logistic_columns(design, is_class, weight, [0, 1, 2])
    if coef[0] < 0.0:
        coef = _fit_logistic_columns(design, is_class, weight, [1, 2])
    elif coef[1] < 0.0:
        coef = _fit_logistic_columns(design, is_class, weight, [0, 2])
    if coef[:2].min() < 0.0:
        coef = _fit_logistic_columns(design, is_class, weight, [2])
    return coef


def is_separable(s: Floats, is_class: NDArray[np.bool_]) -> bool:
    """Whether a threshold on s tells the class from the rest, so that no finite fit is best."""
    if is_class.all() or s.min() == s.max():
        return False
    return bool(s[~is_class].max() <= s[is_class].min())


def _fit_logistic_columns(
    design: Floats,
    is_class: NDArray[np.bool_],
    weight: Floats | None,
    columns: list[int],
) -> Floats:
    """Return the logistic regression of `is_class` on some columns, the other numbers 0."""
    x = design[columns]
    row_weight = np.ones(len(is_class)) if weight is None else weight

    def loss(coef: Floats) -> Derivatives:
        eta = coef @ x
        p = np.exp(-np.logaddexp(0.0, -eta))
        losses = np.logaddexp(0.0, eta) - is_class * eta
        residual = row_weight * (p - is_class)
        variance = row_weight * p * (1.0 - p)
        value = float(row_weight @ losses)
        return Derivatives(value, x @ residual, (x * variance) @ x.T)

    coef = np.zeros(len(design))
    coef[columns] = minimize(loss, IDENTITY[columns]).x
    return coef
