"""Many fits that share X: likelihood ratio statistics of many label vectors by one batched Newton.

``lambda(s) = 2 [sup_theta (theta . s - A(theta)) - (theta0 . s - A(theta0))]`` for each sufficient
statistic s. The first step uses the Hessian at theta0, which all share. A Monte Carlo p-value only
asks whether lambda reaches a threshold, so a draw leaves the batch as soon as that is decided:

* reached: any theta gives a lower bound of lambda;
* not reached: any table q of probabilities with the moments s gives an upper bound. At theta, with
  cells ``g = softmax(eta, 0)`` and Newton step d, take ``q = g (1 + e)``, where e is the change of
  eta that d makes, less its mean over the row: its moments are s, and the rest of the gain is at
  most ``KL(q, g) <= sum g e^2``, the decrement, provided that no ``1 + e`` is negative. Where one
  is, drop cells that the step sends towards 0: without them A is smaller and the supremum larger,
  by at most ``-log(1 - dropped)`` a row; then try again with the cells that remain.

A multiple of the decrement alone would not do: draws were seen whose rest was 3000 decrements.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._model import CHUNK_ELEMENTS, ROUNDED_UP, LogPartition, identity_theta
from ._newton import NEGLIGIBLE

Floats = NDArray[np.float64]

TOL = 1e-9
MAX_ITER = 100
PROMISING = 100.0
"""The upper bound is tried when so many decrements would leave lambda below the threshold."""
ROUNDS, SMALL = 4, 0.05
"""Times that cells are dropped for an upper bound; only smaller cells are."""
EXACT = 1e-12
"""Relative error of the moments of q that counts as rounding."""
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
        self._padded = np.vstack([log_odds, np.zeros(log_odds.shape[1])])
        self._unit = np.ones(log_odds.shape[1]) if weight is None else weight
        absolute = np.abs(log_odds) @ self._unit
        self._size = np.concatenate([np.full(len(log_odds), self._unit.sum()), absolute])

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
        gain, length = np.zeros(len(s)), np.ones(len(s))
        active = np.arange(len(s))
        for _ in range(MAX_ITER):
            active = active[decrement[active] > TOL]
            if threshold is not None:
                active = active[2.0 * gain[active] < threshold - 0.5 * _tie(threshold)]
                gap = 0.5 * (threshold - _tie(threshold)) - gain
                hopeful = active[PROMISING * decrement[active] >= 2.0 * gap[active]]
                rest = np.setdiff1d(active, hopeful, assume_unique=True)
                beyond = self.rest_bound(theta[rest], s[rest], step[rest]) >= gap[rest]
                active = np.sort(np.concatenate([hopeful, rest[beyond]]))
            if len(active) == 0:
                break
            trial = theta[active]
            trial[:, self.free] += length[active, None] * step[active]
            value, gradient, hessian = self.evaluate(trial)
            new = self._gain(trial, s[active], value)
            slope = length[active] * decrement[active]
            enough = new >= gain[active] + 1e-4 * slope - 1e-11
            short = active[~enough]
            length[short] *= _shrink(slope[~enough], (new - gain[active])[~enough])
            moved = active[enough]
            theta[moved], gain[moved], length[moved] = trial[enough], new[enough], 1.0
            u = (s[moved] - gradient[enough])[:, self.free]
            step[moved] = _solve(hessian[enough][:, self.free][:, :, self.free], u)
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
        k = len(self.log_odds)
        stack = np.empty((len(theta), 2 * k, self.log_odds.shape[1]))
        g = stack[:, :k]
        np.multiply(self.log_odds, theta[:, k:, None], out=g)
        g += theta[:, :k, None]
        top = np.maximum(g.max(axis=1), 0.0)
        g -= top[:, None]
        np.exp(g, out=g)
        total = np.exp(-top) + g.sum(axis=1)
        g /= total[:, None]
        value = (top + np.log(total)) @ self._unit
        return value, *self._moments(stack)

    def _moments(self, stack: Floats) -> tuple[Floats, Floats]:
        """Return the gradients and Hessians of cells in the first K rows of `stack`."""
        odds, k = self.log_odds, len(self.log_odds)
        np.multiply(stack[:, :k], odds, out=stack[:, k:])
        scaled = stack if self.weight is None else stack * self.weight
        gradient = scaled.sum(axis=2)
        hessian = -(scaled @ stack.transpose(0, 2, 1))
        squares = np.einsum("bji,ji->bj", scaled[:, k:], odds)
        j = np.arange(k)
        hessian[:, j, j] += ROUNDED_UP * gradient[:, :k]
        hessian[:, j + k, j + k] += ROUNDED_UP * squares
        hessian[:, j, j + k] += gradient[:, k:]
        hessian[:, j + k, j] += gradient[:, k:]
        return gradient, hessian

    def rest_bound(self, theta: Floats, s: Floats, step: Floats) -> Floats:
        """Return upper bounds of what each gain can still grow by; infinite where none was found.

        `step` holds the Newton steps of the free parameters at `theta`.
        """
        bound = np.empty(len(theta))
        for first in range(0, len(theta), self._rows):
            part = slice(first, first + self._rows)
            bound[part] = self._rest_block(theta[part], s[part], step[part])
        return bound

    def _rest_block(self, theta: Floats, s: Floats, step: Floats) -> Floats:
        cells = _softmax(self._change(theta))
        change = self._centred(cells, step)
        bound = self._certificate(cells, change, s)
        dropped = np.zeros(cells.shape, dtype=bool)
        for _ in range(ROUNDS):
            rest = np.flatnonzero(np.isinf(bound))
            if len(rest) == 0:
                break
            g = cells[rest]
            dropped[rest] |= (change[rest] < -0.5) & (g < SMALL)
            lost = np.where(dropped[rest], g, 0.0).sum(axis=1)
            kept = lost <= 0.5
            q = np.where(dropped[rest] & kept[:, None], 0.0, g)
            q /= q.sum(axis=1, keepdims=True)
            price = -np.log1p(-np.where(kept, lost, 0.0)) @ self._unit
            change[rest] = self._centred(q, self._cell_step(q, s[rest]))
            bound[rest] = price + self._certificate(q, change[rest], s[rest])
        return bound

    def _change(self, theta: Floats) -> Floats:
        """Return eta of each cell, the baseline's 0 last: shape (draws, c, n)."""
        k = len(self.log_odds)
        none = np.zeros((len(theta), 1))
        tau, gamma = np.hstack([theta[:, :k], none]), np.hstack([theta[:, k:], none])
        eta: Floats = gamma[:, :, None] * self._padded
        eta += tau[:, :, None]
        return eta

    def _centred(self, q: Floats, step: Floats) -> Floats:
        """Return the relative change of the cells q that a step of the free parameters makes."""
        whole = np.zeros((len(q), len(self.null)))
        whole[:, self.free] = step
        change = self._change(whole)
        change -= np.einsum("bji,bji->bi", q, change)[:, None]
        return change

    def _cell_step(self, q: Floats, s: Floats) -> Floats:
        """Return the Newton step at the cells q."""
        stack = np.concatenate([q[:, :-1], q[:, :-1]], axis=1)
        gradient, hessian = self._moments(stack)
        u = (s - gradient)[:, self.free]
        return _solve(hessian[:, self.free][:, :, self.free], u)

    def _certificate(self, q: Floats, change: Floats, s: Floats) -> Floats:
        """Return ``sum q e^2`` where q (1 + e) is a table of probabilities with moments s."""
        bound = np.full(len(q), np.inf)
        able = np.flatnonzero(((change >= -1.0) | (q == 0.0)).all(axis=(1, 2)))
        q, change, s = q[able], change[able], s[able]
        increase = q * change
        moved = (q + increase)[:, :-1] * self._unit
        moments = np.hstack([moved.sum(axis=2), np.einsum("bji,ji->bj", moved, self.log_odds)])
        off = np.abs(moments - s)[:, self.free] > EXACT * self._size[self.free]
        increase *= change
        bound[able] = np.where(off.any(axis=1), np.inf, increase.sum(axis=1) @ self._unit)
        return bound


def _softmax(eta: Floats) -> Floats:
    eta -= eta.max(axis=1, keepdims=True)
    np.exp(eta, out=eta)
    eta /= eta.sum(axis=1, keepdims=True)
    return eta


def _shrink(promised: Floats, gained: Floats) -> Floats:
    """Return the factor of a step that was too long: where a parabola peaks, within [0.1, 0.5]."""
    factor: Floats = np.clip(0.5 * promised / (promised - gained), 0.1, 0.5)
    return factor


def _tie(threshold: float) -> float:
    return TIE * max(1.0, abs(threshold))


def _solve(hessians: Floats, gradients: Floats) -> Floats:
    """Return ``H^-1 u`` for each draw, on the scale of H's diagonal, damped where it must be."""
    diagonal = np.einsum("bii->bi", hessians)
    floor = np.maximum(NEGLIGIBLE * diagonal.max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    scale = np.sqrt(np.maximum(diagonal, floor))
    scaled = hessians / scale[:, :, None] / scale[:, None, :]
    rhs = gradients / scale
    step = rhs / scale
    left, index = np.arange(len(rhs)), np.arange(hessians.shape[1])
    for damping in (1e-13, 1e-10, 1e-7, 1e-4, 1.0):
        scaled[:, index, index] += damping
        try:
            found = np.linalg.solve(scaled[left], rhs[left, :, None])[:, :, 0]
        except np.linalg.LinAlgError:
            continue
        fine = np.isfinite(found).all(axis=1) & (np.einsum("bi,bi->b", found, rhs[left]) >= 0.0)
        step[left[fine]] = found[fine] / scale[left[fine]]
        left = left[~fine]
        if len(left) == 0:
            break
    return step
