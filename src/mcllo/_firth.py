"""Firth's estimate: the likelihood times Jeffreys' prior, ``l(theta) + 1/2 log|H(theta)|``.

It is finite where maximum likelihood drifts to infinity, and its first-order bias is 0; it pulls
towards gamma = 0, where rows tell most, not towards the identity.

Third derivatives, row by row: with ``M = H^-1``, ``q_jk = z_j' M z_k`` for the features
``z_j = (e_j, l_j e_j)`` of class j, and ``r_j`` the derivative with respect to eta_j:

===================  ==================================================================
trace                ``tr(M cov_g(z)) = sum_j g_j q_jj - g' Q g``
its slope in eta     ``r_j = g_j (a_j - sum_k g_k a_k)``, ``a_j = q_jj - 2 (Q g)_j``
slope of log|H|      ``(sum_i w_i r_ij; sum_i w_i r_ij l_ij)``
Q g                  ``(M_tt g + M_tg gl)_j + l_j (M_gt g + M_gg gl)_j``, ``gl_j = g_j l_j``
===================  ==================================================================

so the slope costs one more pass over the rows, like a Hessian. The curvature of the prior is not
computed but learned: a symmetric matrix C, corrected by a multiple of ``r r'`` with
``r = change of slope - C step`` after every step (symmetric rank one), is added to H.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._model import CHUNK_ELEMENTS, Terms, softmax_against_zero
from ._newton import Solution, minimize
from ._penalty import FreeLikelihood
from ._predictions import Predictions

Floats = NDArray[np.float64]

TOO_LITTLE = 1e-6
"""Cosine of step and correction below which the correction would be rounding."""


class FirthObjective:
    """``-l(theta) - 1/2 log|H(theta)|`` of the free parameters.

    The Hessian is that of -l with what the last evaluations showed of the prior's curvature; value
    and gradient are exact.
    """

    def __init__(self, likelihood: FreeLikelihood, predictions: Predictions) -> None:
        self.likelihood = likelihood
        self.log_odds, self.weight = predictions.log_odds, predictions.sample_weight
        size = int(likelihood.free.sum())
        self._curvature = np.zeros((size, size))
        self._last: tuple[Floats, Floats] | None = None

    def __call__(self, x: Floats) -> Terms:
        """Return value, gradient and approximate Hessian at `x`."""
        terms = self.likelihood(x)
        inverse, logdet = _inverse(terms.hessian)
        if not np.isfinite(logdet):
            return Terms(np.inf, terms.gradient, terms.hessian)
        free = self.likelihood.free
        whole = np.zeros((len(free), len(free)))
        whole[np.ix_(free, free)] = inverse
        theta = self.likelihood.theta(x)
        slope = -0.5 * information_slope(theta, self.log_odds, whole, self.weight)[free]
        self._learn(x, slope)
        return Terms(
            terms.value - 0.5 * logdet, terms.gradient + slope, terms.hessian + self._curvature
        )

    def _learn(self, x: Floats, slope: Floats) -> None:
        """Correct the prior's curvature by what the step to `x` showed."""
        if self._last is not None:
            step = x - self._last[0]
            missed = slope - self._last[1] - self._curvature @ step
            along = float(missed @ step)
            if abs(along) > TOO_LITTLE * float(np.linalg.norm(missed) * np.linalg.norm(step)):
                self._curvature = self._curvature + np.outer(missed, missed) / along
        self._last = x.copy(), slope


def firth_solution(likelihood: FreeLikelihood, predictions: Predictions) -> Solution:
    """Maximise Firth's penalised likelihood."""
    objective = FirthObjective(likelihood, predictions)
    return minimize(objective, _start(likelihood, predictions.log_odds))


def information_slope(
    theta: Floats, log_odds: Floats, inverse: Floats, weight: Floats | None = None
) -> Floats:
    """Return the gradient of ``log|H(theta)|``, `inverse` being ``H(theta)^-1``."""
    k, n = log_odds.shape
    slope, rows = np.zeros(2 * k), max(256, CHUNK_ELEMENTS // k)
    own = np.diagonal(inverse)
    cross = 2.0 * np.diagonal(inverse[:k, k:])[:, None]
    stack = np.empty((2 * k, min(rows, n)))
    for start in range(0, n, rows):
        odds = log_odds[:, start : start + rows]
        both = stack[:, : odds.shape[1]]
        g = both[:k]
        softmax_against_zero(theta, odds, out=g)
        np.multiply(g, odds, out=both[k:])
        mixed = inverse @ both
        a = own[:k, None] + odds * (cross + odds * own[k:, None])
        a -= 2.0 * (mixed[:k] + odds * mixed[k:])
        a -= np.einsum("ji,ji->i", g, a)
        a *= g
        if weight is not None:
            a *= weight[start : start + rows]
        slope[:k] += a.sum(axis=1)
        slope[k:] += np.einsum("ji,ji->j", a, odds)
    return slope


def _inverse(hessian: Floats) -> tuple[Floats, float]:
    """Return the inverse and the log determinant, taken in units of the diagonal."""
    scale = np.sqrt(np.maximum(np.diagonal(hessian), np.finfo(np.float64).tiny))
    scaled = hessian / np.outer(scale, scale)
    try:
        factor = np.linalg.cholesky(scaled)
    except np.linalg.LinAlgError:
        return hessian, -np.inf
    inverse: Floats = np.linalg.inv(scaled) / np.outer(scale, scale)
    return inverse, 2.0 * float(np.log(np.diagonal(factor) * scale).sum())


def _start(likelihood: FreeLikelihood, log_odds: Floats) -> Floats:
    """Return the identity, with gamma lowered where log odds would saturate every row."""
    largest = np.maximum(np.abs(log_odds).max(axis=1), 1.0)
    gentle = np.concatenate([np.zeros(len(log_odds)), np.minimum(1.0, 20.0 / largest)])
    return gentle[likelihood.free]
