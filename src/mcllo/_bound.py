"""How much can a likelihood gain still grow? Upper bounds, for many label vectors at once.

Any table q of probabilities whose moments are the sufficient statistic s bounds the supremum from
above (duality: ``sup_theta theta . s - A(theta) = min_q sum q log q``). At theta, with cells
``g = softmax(eta, 0)`` and Newton step d, take ``q = g (1 + e)``, where e is the change of eta that
d makes less its mean over the row. Its moments are s, and it bounds the rest of the gain by

    ``KL(q, g) <= sum g e^2``, the Newton decrement, provided that no ``1 + e`` is negative.

Where one is, drop cells that the step sends towards 0: without them A is smaller, so the supremum
larger, by at most ``-log(1 - dropped)`` a row; then try again with the cells that remain. So draws
without a finite maximum are bounded as well.

A multiple of the decrement would not do: where few rows are undecided and the others sharp, the
rest was seen to be 3000 decrements.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._model import ROUNDED_UP
from ._newton import NEGLIGIBLE

Floats = NDArray[np.float64]

ROUNDS, SMALL = 4, 0.05
"""Times that cells are dropped, and the size up to which they may be."""
EXACT = 1e-13
"""Relative error of the moments of q that counts as rounding."""


class RestBound:
    """Bounds of what is left of ``sup_theta theta . s - A(theta)``.

    Parameters
    ----------
    log_odds : ndarray of shape (K, n)
        Shared log odds against the baseline.
    weight : ndarray of shape (n,)
        Row weights.
    free : ndarray of bool of shape (2K,)
        Parameters that may move.
    """

    def __init__(self, log_odds: Floats, weight: Floats, free: NDArray[np.bool_]) -> None:
        self.log_odds, self.weight, self.free = log_odds, weight, free
        self._padded = np.vstack([log_odds, np.zeros(log_odds.shape[1])])
        counts = np.full(len(log_odds), weight.sum())
        self._size = np.concatenate([counts, np.abs(log_odds) @ weight])[free]

    def __call__(self, theta: Floats, s: Floats, step: Floats) -> Floats:
        """Return a bound for each draw; infinite where none was found.

        Parameters
        ----------
        theta, s : ndarray of shape (draws, 2K)
            Where each draw is, and its sufficient statistic.
        step : ndarray of shape (draws, free parameters)
            Newton steps at `theta`.
        """
        g = _softmax(self._eta(theta))
        change = self._relative_change(g, step)
        bound = self._certificate(g, change, s)
        dropped = np.zeros(g.shape, dtype=bool)
        for _ in range(ROUNDS):
            rest = np.flatnonzero(np.isinf(bound))
            if len(rest) == 0:
                break
            dropped[rest] |= (change[rest] < -0.5) & (g[rest] < SMALL)
            q, price = self._without(g[rest], dropped[rest])
            change[rest] = self._relative_change(q, self._newton_step(q, s[rest]))
            bound[rest] = price + self._certificate(q, change[rest], s[rest])
        return bound

    def _eta(self, theta: Floats) -> Floats:
        """Return eta of every cell, shape (draws, c, n); the baseline's 0 comes last."""
        k, none = len(self.log_odds), np.zeros((len(theta), 1))
        tau, gamma = np.hstack([theta[:, :k], none]), np.hstack([theta[:, k:], none])
        eta: Floats = gamma[:, :, None] * self._padded
        eta += tau[:, :, None]
        return eta

    def _relative_change(self, q: Floats, step: Floats) -> Floats:
        """Return e: the change of eta that `step` makes, less its mean over the row."""
        whole = np.zeros((len(q), len(self.free)))
        whole[:, self.free] = step
        change = self._eta(whole)
        change -= np.einsum("bji,bji->bi", q, change)[:, None]
        return change

    def _certificate(self, q: Floats, change: Floats, s: Floats) -> Floats:
        """Return ``sum q e^2`` where ``q (1 + e)`` is a table of probabilities with moments s."""
        bound = np.full(len(q), np.inf)
        able = np.flatnonzero(((change >= -1.0) | (q == 0.0)).all(axis=(1, 2)))
        q, change, s = q[able], change[able], s[able]
        increase = q * change
        moved = (q + increase)[:, :-1] * self.weight
        found = np.hstack([moved.sum(axis=2), np.einsum("bji,ji->bj", moved, self.log_odds)])
        off = np.abs(found - s)[:, self.free] > EXACT * self._size
        increase *= change
        bound[able] = np.where(off.any(axis=1), np.inf, increase.sum(axis=1) @ self.weight)
        return bound

    def _without(self, g: Floats, dropped: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """Return the cells with some dropped, and what that adds to the supremum at most."""
        lost = np.where(dropped, g, 0.0).sum(axis=1)
        lost[lost > 0.5] = 0.0
        q = np.where(dropped & (lost > 0.0)[:, None], 0.0, g)
        q /= q.sum(axis=1, keepdims=True)
        return q, -np.log1p(-lost) @ self.weight

    def _newton_step(self, q: Floats, s: Floats) -> Floats:
        inner = q[:, :-1]
        stack = np.concatenate([inner, inner * self.log_odds], axis=1)
        gradient, hessian = moments(stack, self.log_odds, self.weight)
        u = (s - gradient)[:, self.free]
        return solve(hessian[:, self.free][:, :, self.free], u)


def _softmax(eta: Floats) -> Floats:
    eta -= eta.max(axis=1, keepdims=True)
    np.exp(eta, out=eta)
    eta /= eta.sum(axis=1, keepdims=True)
    return eta


def moments(stack: Floats, odds: Floats, weight: Floats | None) -> tuple[Floats, Floats]:
    """Return the gradients and Hessians of A, from ``(g; g l)`` stacked, for each draw."""
    k = len(odds)
    scaled = stack if weight is None else stack * weight
    gradient = scaled.sum(axis=2)
    hessian = -(scaled @ stack.transpose(0, 2, 1))
    squares = np.einsum("bji,ji->bj", scaled[:, k:], odds)
    j = np.arange(k)
    hessian[:, j, j] += ROUNDED_UP * gradient[:, :k]
    hessian[:, j + k, j + k] += ROUNDED_UP * squares
    hessian[:, j, j + k] += gradient[:, k:]
    hessian[:, j + k, j] += gradient[:, k:]
    return gradient, hessian


def solve(hessians: Floats, gradients: Floats) -> Floats:
    """Return ``H^-1 u`` for each draw, on the scale of H's diagonal, damped where it must be."""
    diagonal = np.einsum("bii->bi", hessians)
    floor = np.maximum(NEGLIGIBLE * diagonal.max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    scale = np.sqrt(np.maximum(diagonal, floor))
    scaled = hessians / scale[:, :, None] / scale[:, None, :]
    rhs = gradients / scale
    step: Floats = rhs / scale
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
