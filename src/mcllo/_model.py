r"""The MCLLO model: Eq. (1)-(5) of Vennos, Xing and Franck (2026), in pure NumPy.

Conventions, stated here once: the baseline is the last of the c classes and has no parameters;
``K = c - 1``; arrays over rows are transposed, ``(K, n)``, because a reduction over a short last
axis is slow; ``theta = (tau_1 .. tau_K, gamma_1 .. gamma_K)``; the identity is ``theta0 = (0, 1)``.

====================  =====================================================  ==========
log odds              ``l_ji = log(x_ij / x_ic)``                            (K, n)
eta                   ``eta_ji = tau_j + gamma_j l_ji``, tau = log(delta)    Eq. (1)
recalibrated          ``g_i = softmax(eta_1i, ..., eta_Ki, 0)``              Eq. (3)-(4)
log partition         ``A(theta) = sum_i w_i log(1 + sum_j exp eta_ji)``
sufficient statistic  ``s = (sum_i w_i 1[y_i=j]; sum_i w_i 1[y_i=j] l_ji)``  (2K,)
negative log lik.     ``A(theta) - theta . s``                               Eq. (5)
gradient of A         ``(sum_i w_i g_ji; sum_i w_i g_ji l_ji)``
Hessian of A          ``sum_i w_i Z_i' (diag g_i - g_i g_i') Z_i``, Z_i = [I, diag l_i]
====================  =====================================================  ==========

The labels enter only through s; A and its derivatives never see them. Both are sums over rows, so
`Terms` add. The softmax form equals Eq. (3) after dividing by ``x_ic ** gamma_j``; it needs no
powers and stays finite for any finite log odds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CHUNK_ELEMENTS = 75_000
"""Elements of one (K, rows) buffer: small enough that the buffers of a chunk stay in cache."""
ROUNDED_UP = 1.0 + 2e-15
"""The Hessian is a positive diagonal less a gram matrix; the diagonal is enlarged by more than its
rounding, so that the difference stays positive definite where rows are saturated."""


@dataclass(frozen=True, eq=False)
class Terms:
    """Value, gradient and Hessian of a function that is a sum over rows; sums of rows add."""

    value: float
    gradient: Floats
    hessian: Floats

    def __add__(self, other: Terms) -> Terms:
        return Terms(
            self.value + other.value,
            self.gradient + other.gradient,
            self.hessian + other.hessian,
        )


def identity_theta(n_compared: int) -> Floats:
    """Return theta of the map that changes nothing: tau = 0, gamma = 1."""
    return np.concatenate([np.zeros(n_compared), np.ones(n_compared)])


def log_odds_from_logs(logs: Floats, baseline: int) -> Floats:
    """Return ``l_ji`` from transposed log probabilities (or logits) of shape (c, n), in place."""
    if baseline != len(logs) - 1:
        logs = np.concatenate([np.delete(logs, baseline, axis=0), logs[[baseline]]])
    logs[:-1] -= logs[-1]
    return logs[:-1]


def sufficient_statistic(
    log_odds: NDArray[Any], codes: NDArray[np.intp], weight: Floats | None = None
) -> Floats:
    """Return s: weighted class counts, and sums of the true class's log odds, without baseline."""
    n_compared = len(log_odds)
    inside = np.flatnonzero(codes < n_compared)
    rows = codes[inside]
    unit = np.ones(len(inside)) if weight is None else weight[inside]
    counts = np.bincount(rows, weights=unit, minlength=n_compared)
    sums = np.bincount(rows, weights=unit * log_odds[rows, inside], minlength=n_compared)
    return np.concatenate([counts, sums])


class LogPartition:
    """``theta -> Terms`` of A(theta) for fixed log odds; buffers are made once and reused.

    Parameters
    ----------
    log_odds : ndarray of shape (K, n)
        float64, or float32 to halve the memory; arithmetic is float64 either way.
    weight : ndarray of shape (n,), optional
        Row weights.
    """

    def __init__(self, log_odds: NDArray[Any], weight: Floats | None = None) -> None:
        self.log_odds = log_odds
        self.weight = weight
        self.n_compared, self.n_samples = log_odds.shape
        self._rows = min(self.n_samples, max(256, CHUNK_ELEMENTS // self.n_compared))
        self._stack = np.empty((2 * self.n_compared, self._rows))
        self._scaled = None if weight is None else np.empty_like(self._stack)
        self._ones = np.ones(self._rows)

    def __call__(self, theta: Floats) -> Terms:
        """Return value, gradient and Hessian at `theta`."""
        k = self.n_compared
        value, gradient = 0.0, np.zeros(2 * k)
        gram, squares = np.zeros((2 * k, 2 * k)), np.zeros(k)
        for start in range(0, self.n_samples, self._rows):
            odds = self.log_odds[:, start : start + self._rows]
            weight = None if self.weight is None else self.weight[start : start + self._rows]
            value += self._chunk(theta, odds, weight, gradient, gram, squares)
        hessian = -gram
        diagonal = np.arange(k)
        hessian[diagonal, diagonal] += ROUNDED_UP * gradient[:k]
        hessian[diagonal + k, diagonal + k] += ROUNDED_UP * squares
        hessian[diagonal, diagonal + k] += gradient[k:]
        hessian[diagonal + k, diagonal] += gradient[k:]
        return Terms(value, gradient, hessian)

    def _chunk(
        self,
        theta: Floats,
        odds: NDArray[Any],
        weight: Floats | None,
        gradient: Floats,
        gram: Floats,
        squares: Floats,
    ) -> float:
        """Add one chunk's sums to the accumulators and return its part of A."""
        k, m = odds.shape
        stack = self._stack[:, :m]
        g, gl = stack[:k], stack[k:]
        per_row = softmax_against_zero(theta, odds, out=g)
        np.multiply(g, odds, out=gl)
        if weight is None:
            gradient += stack @ self._ones[:m]
            gram += stack @ stack.T
            squares += np.einsum("ji,ji->j", gl, odds)
            return float(per_row.sum())
        assert self._scaled is not None
        scaled = np.multiply(stack, weight, out=self._scaled[:, :m])
        gradient += scaled @ self._ones[:m]
        gram += scaled @ stack.T
        squares += np.einsum("ji,ji->j", scaled[k:], odds)
        return float(per_row @ weight)


def softmax_against_zero(theta: Floats, odds: NDArray[Any], out: Floats) -> Floats:
    """Write the non-baseline rows of ``softmax(eta, 0)`` to `out`; return ``logsumexp(eta, 0)``."""
    k = len(odds)
    np.multiply(odds, theta[k:, None], out=out)
    out += theta[:k, None]
    top = np.maximum(out.max(axis=0), 0.0)
    out -= top
    np.exp(out, out=out)
    total: Floats = np.exp(-top)
    total += out.sum(axis=0)
    out /= total
    np.log(total, out=total)
    total += top
    return total


def recalibrate(theta: Floats, log_odds: NDArray[Any], baseline: int) -> Floats:
    """Return g of Eq. (3)-(4), shape (n, c), the baseline back in its column."""
    k, n = log_odds.shape
    recalibrated = np.empty((n, k + 1))
    columns = np.delete(np.arange(k + 1), baseline)
    rows = max(256, CHUNK_ELEMENTS // k)
    buffer = np.empty((k, min(rows, n)))
    for start in range(0, n, rows):
        odds = log_odds[:, start : start + rows]
        g = buffer[:, : odds.shape[1]]
        log_total = softmax_against_zero(theta, odds, out=g)
        block = recalibrated[start : start + rows]
        block[:, columns] = g.T
        np.exp(-log_total, out=block[:, baseline])
    return recalibrated


class Likelihood:
    """``theta -> Terms`` of the negative log likelihood ``A(theta) - theta . s``."""

    def __init__(self, partition: LogPartition, statistic: Floats) -> None:
        self.partition = partition
        self.statistic = statistic

    def __call__(self, theta: Floats) -> Terms:
        """Return value, gradient and Hessian at `theta`."""
        terms = self.partition(theta)
        return Terms(
            terms.value - float(theta @ self.statistic),
            terms.gradient - self.statistic,
            terms.hessian,
        )
