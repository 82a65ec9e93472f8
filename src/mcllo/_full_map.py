r"""The full linear map of the log odds: every class's odds may depend on those of all others.

====================  =====================================================  ==========
features              ``x_i = (1, l_1i, ..., l_Ki)``, l the log odds          (c, n)
parameters            ``theta_j = (tau_j, W_j1 .. W_jK)``, row after row      (K c,)
eta                   ``eta_ji = theta_j . x_i``; the baseline's is 0
identity              ``tau = 0``, ``W`` the identity matrix
MCLLO                 W diagonal: ``W_jj = gamma_j``
log partition         ``A(theta) = sum_i w_i log(1 + sum_j exp eta_ji)``
sufficient statistic  ``s_j = sum_i w_i 1[y_i = j] x_i``
Hessian, block (j,k)  ``sum_i w_i g_ji (1[j = k] - g_ki) x_i x_i'``
====================  =====================================================  ==========

It is the multinomial logit of the labels on all log odds, ``c (c - 1)`` parameters, and the same
for every baseline (the full framework of Van Hoorde et al. 2014).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._model import CHUNK_ELEMENTS, ROUNDED_UP, Terms, identity_theta, softmax_against_zero
from ._monte_carlo import StatisticDraws, draw_labels
from ._predictions import Predictions

Floats = NDArray[np.float64]


def features_of(log_odds: Floats) -> Floats:
    """Return the log odds below a row of ones, shape (c, n)."""
    return np.vstack([np.ones(log_odds.shape[1]), log_odds])


def full_identity(n_compared: int) -> Floats:
    """Return theta of the full map that changes nothing."""
    return np.hstack([np.zeros((n_compared, 1)), np.eye(n_compared)]).ravel()


def mcllo_places(n_compared: int) -> NDArray[np.intp]:
    """Return where MCLLO's ``(tau, gamma)`` stand in theta of the full map."""
    first = (n_compared + 1) * np.arange(n_compared)
    return np.concatenate([first, first + 1 + np.arange(n_compared)])


def full_statistic(features: Floats, codes: NDArray[np.intp], weight: Floats | None) -> Floats:
    """Return s: the features' sums over the rows of each class other than the baseline."""
    scaled = features if weight is None else features * weight
    sums = [scaled[:, codes == j].sum(axis=1) for j in range(len(features) - 1)]
    return np.concatenate(sums)


class FullPartition:
    """``theta -> Terms`` of A(theta) for fixed features.

    Parameters
    ----------
    features : ndarray of shape (c, n)
        Ones, then log odds.
    weight : ndarray of shape (n,), optional
        Row weights.
    """

    def __init__(self, features: Floats, weight: Floats | None = None) -> None:
        self.features, self.weight = features, weight
        self.n_features, self.n_samples = features.shape
        size = self.n_features * (self.n_features - 1)
        self._rows = max(256, CHUNK_ELEMENTS // size)

    def __call__(self, theta: Floats) -> Terms:
        """Return value, gradient and Hessian at `theta`."""
        d, k = self.n_features, self.n_features - 1
        value, gradient = 0.0, np.zeros(k * d)
        gram, blocks = np.zeros((k * d, k * d)), np.zeros((k * d, d))
        for start in range(0, self.n_samples, self._rows):
            x = self.features[:, start : start + self._rows]
            g = np.empty((k, x.shape[1]))
            per_row = softmax_against_zero(identity_theta(k), theta.reshape(k, d) @ x, out=g)
            stack = (g[:, None] * x).reshape(k * d, -1)
            weight = None if self.weight is None else self.weight[start : start + self._rows]
            scaled = stack if weight is None else stack * weight
            value += float(per_row.sum() if weight is None else per_row @ weight)
            gradient += scaled.sum(axis=1)
            gram += scaled @ stack.T
            blocks += scaled @ x.T
        hessian = -gram
        for j in range(k):
            block = blocks[j * d : (j + 1) * d]
            block[np.arange(d), np.arange(d)] *= ROUNDED_UP
            hessian[j * d : (j + 1) * d, j * d : (j + 1) * d] += block
        return Terms(value, gradient, hessian)


class FullDraws(StatisticDraws):
    """Sufficient statistics of the full map for labels drawn from the rows, without weights."""

    def __init__(self, predictions: Predictions, seed: int) -> None:
        super().__init__(predictions, seed)
        self._features = features_of(predictions.log_odds).T.copy()

    def __call__(self, start: int, size: int) -> Floats:
        """Return draws ``start .. start + size``, shape (size, K c)."""
        labels = draw_labels(self.probs, self.seed, start, size)
        return np.hstack([(labels == j).astype(np.float64) @ self._features for j in self.columns])
