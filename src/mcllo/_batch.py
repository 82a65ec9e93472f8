"""Many fits that share X: likelihood ratio statistics of many label vectors by one batched Newton.

``lambda(s) = 2 [sup_theta (theta . s - A(theta)) - (theta0 . s - A(theta0))]`` for each sufficient
statistic s. The first step uses the Hessian at theta0, which all share. A Monte Carlo p-value only
asks whether lambda reaches a threshold, so a draw leaves the batch as soon as that is decided:

* reached: any theta gives a lower bound of lambda;
* not reached: what a Newton step still promises (the decrement) times a margin does not bridge the
  gap. At the identity the rest is about 1 to 2 decrements (2 is the Poisson limit of rare errors),
  near the supremum as well; half way, where rows saturate, up to 50 were seen. The margins are wide
  on purpose, and a test compares the decisions with full convergence.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._model import CHUNK_ELEMENTS, ROUNDED_UP, LogPartition, identity_theta
from ._newton import NEGLIGIBLE

Floats = NDArray[np.float64]

MARGIN_AT_NULL = 20.0
MARGIN = 400.0
TOL = 1e-9
MAX_ITER = 60
TIE = 1e-8
"""Statistics closer than this (relative) to the threshold count as equal to it: draws repeat."""


class BatchedRatio:
    """Likelihood ratio statistics against the identity, for many sufficient statistics at once.

    Parameters
    ----------
    log_odds : ndarray of shape (K, n)
        Shared log odds against the baseline.
    weight : ndarray of shape (n,), optional
        Row weights.
    free : ndarray of bool of shape (2K,), optional
        Parameters that may move; the others stay at the identity.
    """

    def __init__(
        self,
        log_odds: Floats,
        weight: Floats | None = None,
        free: NDArray[np.bool_] | None = None,
    ) -> None:
        self.log_odds, self.weight = log_odds, weight
        self.null = identity_theta(len(log_odds))
        self.free = np.ones(len(self.null), dtype=bool) if free is None else free
        self._single = LogPartition(log_odds, weight)
        self.start = self._single(self.null)
        self._inverse = np.linalg.pinv(self.start.hessian[np.ix_(self.free, self.free)])
        self._rows = max(1, CHUNK_ELEMENTS // log_odds.size)

    def scores(self, statistics: Floats) -> Floats:
        """Return the score statistics ``U' H(theta0)^-1 U``; no refit."""
        u = (statistics - self.start.gradient)[:, self.free]
        scores: Floats = np.einsum("bi,ij,bj->b", u, self._inverse, u)
        return scores

    def statistics(self, statistics: Floats, threshold: float | None = None) -> Floats:
        """Return lambda of each row of `statistics`.

        With a `threshold` the values are only good for a comparison with it: each is then some
        lower bound of lambda on the right side of the threshold.
        """
        out = np.empty(len(statistics))
        for first in range(0, len(statistics), 64):
            part = slice(first, first + 64)
            out[part] = self._newton(statistics[part], threshold)
        return out

    def reaches(self, statistics: Floats, threshold: float) -> NDArray[np.bool_]:
        """Return whether each lambda is at least `threshold`, ties included."""
        found = self.statistics(statistics, threshold)
        reached: NDArray[np.bool_] = found >= threshold - _tie(threshold)
        return reached

    def _newton(self, s: Floats, threshold: float | None) -> Floats:
        u = (s - self.start.gradient)[:, self.free]
        step = u @ self._inverse
        decrement = np.einsum("bi,bi->b", u, step)
        theta = np.tile(self.null, (len(s), 1))
        gain = np.zeros(len(s))
        active = np.arange(len(s))
        length = np.ones(len(s))
        margin = MARGIN_AT_NULL
        for _ in range(MAX_ITER):
            active = active[~_decided(gain[active], decrement[active], threshold, margin)]
            margin = MARGIN
            if len(active) == 0:
                break
            trial = theta[active]
            trial[:, self.free] += length[active, None] * step[active]
            value, gradient, hessian = self.evaluate(trial)
            new = self._gain(trial, s[active], value)
            enough = new >= gain[active] + 1e-4 * length[active] * decrement[active] - 1e-11
            length[active[~enough]] *= 0.5
            moved = active[enough]
            theta[moved], gain[moved], length[moved] = trial[enough], new[enough], 1.0
            u = (s[moved] - gradient[enough])[:, self.free]
            sub = hessian[enough][:, self.free][:, :, self.free]
            step[moved] = _solve(sub, u)
            decrement[moved] = np.einsum("bi,bi->b", u, step[moved])
        return 2.0 * gain

    def _gain(self, theta: Floats, s: Floats, value: Floats) -> Floats:
        gain: Floats = np.einsum("bi,bi->b", theta - self.null, s) - value + self.start.value
        return gain

    def evaluate(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Return A, its gradients and its Hessians at each row of `theta`."""
        if self._rows == 1:
            terms = [self._single(row) for row in theta]
            return (
                np.array([t.value for t in terms]),
                np.array([t.gradient for t in terms]),
                np.array([t.hessian for t in terms]),
            )
        parts = [
            self._block(theta[first : first + self._rows])
            for first in range(0, len(theta), self._rows)
        ]
        value, gradient, hessian = (np.concatenate(part) for part in zip(*parts, strict=True))
        return value, gradient, hessian

    def _block(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """The formulas of `LogPartition`, with a leading axis over draws."""
        odds, (k, n) = self.log_odds, self.log_odds.shape
        stack = np.empty((len(theta), 2 * k, n))
        g, gl = stack[:, :k], stack[:, k:]
        np.multiply(odds, theta[:, k:, None], out=g)
        g += theta[:, :k, None]
        top = np.maximum(g.max(axis=1), 0.0)
        g -= top[:, None]
        np.exp(g, out=g)
        total = np.exp(-top) + g.sum(axis=1)
        g /= total[:, None]
        np.multiply(g, odds, out=gl)
        per_row = top + np.log(total)
        scaled = stack if self.weight is None else stack * self.weight
        value = per_row.sum(axis=1) if self.weight is None else per_row @ self.weight
        gradient = scaled.sum(axis=2)
        hessian = -(scaled @ stack.transpose(0, 2, 1))
        squares = np.einsum("bji,ji->bj", scaled[:, k:], odds)
        j = np.arange(k)
        hessian[:, j, j] += ROUNDED_UP * gradient[:, :k]
        hessian[:, j + k, j + k] += ROUNDED_UP * squares
        hessian[:, j, j + k] += gradient[:, k:]
        hessian[:, j + k, j] += gradient[:, k:]
        return value, gradient, hessian


def _decided(
    gain: Floats, decrement: Floats, threshold: float | None, margin: float
) -> NDArray[np.bool_]:
    done: NDArray[np.bool_] = decrement <= TOL
    if threshold is None:
        return done
    reached = 2.0 * gain >= threshold - 0.5 * _tie(threshold)
    short = 2.0 * gain + margin * decrement < threshold - _tie(threshold)
    return done | reached | short


def _tie(threshold: float) -> float:
    return TIE * max(1.0, abs(threshold))


def _solve(hessians: Floats, gradients: Floats) -> Floats:
    """Return ``H^-1 u`` for each draw, on the scale of H's diagonal, slightly damped."""
    diagonal = np.einsum("bii->bi", hessians)
    floor = np.maximum(NEGLIGIBLE * diagonal.max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    scale = np.sqrt(np.maximum(diagonal, floor))
    scaled = hessians / scale[:, :, None] / scale[:, None, :]
    index = np.arange(hessians.shape[1])
    rhs = (gradients / scale)[:, :, None]
    for damping in (1e-13, 1e-10, 1e-7, 1e-4, 1.0):
        scaled[:, index, index] += damping
        try:
            step: Floats = np.linalg.solve(scaled, rhs)[:, :, 0] / scale
        except np.linalg.LinAlgError:
            continue
        uphill = np.einsum("bi,bi->b", step, gradients) >= 0.0
        if np.isfinite(step).all() and uphill.all():
            return step
    uphill_step: Floats = gradients / scale**2
    return uphill_step
