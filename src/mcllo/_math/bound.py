"""How much can a likelihood gain still grow? Upper bounds, for many label vectors at once.

Any table q of probabilities whose moments are the sufficient statistic s bounds the supremum from
above (duality: ``sup_theta theta . s - A(theta) = min_q sum q log q``). At theta, with cells
``g = softmax(eta, 0)`` and Newton step d, take ``q = g (1 + e)``, where e is the change of eta that
d makes less its mean over the row. Its moments are s, and it bounds the rest of the gain by

    ``KL(q, g) <= sum g e^2``, the Newton decrement, provided that no ``1 + e`` is negative.

Where one is, raise it to a positive number. That moves the moments a little, so take a second step
with the same Hessian to what is missing; then e is the sum of both, less its mean. Where that fails
too, drop cells that the step sends towards 0: without them A is smaller, so the supremum larger, by
at most ``-log(1 - dropped)`` a row; then try again with the cells that remain. So draws without a
finite maximum are bounded as well.

A multiple of the decrement would not do: where few rows are undecided and the others sharp, the
rest was seen to be 3000 decrements.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._ground.results import Floats
from .cells import Cells
from .newton import NEGLIGIBLE

ROUNDS, SMALL = 2, 0.05
"""Times that cells are dropped, and the size up to which they may be."""
RAISED = 0.3
"""What ``1 + e`` is raised to where it is less."""
EXACT = 1e-13
"""Relative error of the moments of q that counts as rounding."""


class RestBound:
    """Bounds of what is left of ``sup_beta theta . s - A(theta)``, ``theta = origin + basis beta``.

    Parameters
    ----------
    cells : Cells
        The family.
    basis : ndarray of shape (n_parameters, n_free)
        Directions in which theta may move; only the moments along them must be those of s.
    """

    def __init__(self, cells: Cells, basis: Floats) -> None:
        self.cells, self.basis = cells, basis
        self._size = cells.size @ np.abs(basis)

    def __call__(self, theta: Floats, target: Floats, step: Floats, hessian: Floats) -> Floats:
        """Return a bound for each draw; infinite where none was found.

        Parameters
        ----------
        theta : ndarray of shape (draws, n_parameters)
            Where each draw is.
        target, step : ndarray of shape (draws, n_free)
            ``basis' s`` of each draw, and its Newton step at `theta` in the coordinates beta.
        hessian : ndarray of shape (draws, n_free, n_free)
            Of A in these coordinates, at `theta`.
        """
        g = _softmax(self.cells.eta(theta))
        change = self._relative_change(g, step)
        bound = self._certificate(g, self._raised(g, change, target, hessian), target)
        rest = np.flatnonzero(np.isinf(bound))
        dropped = np.zeros((len(rest), *g.shape[1:]), dtype=bool)
        for _ in range(ROUNDS):
            if len(rest) == 0:
                break
            dropped |= (change[rest] < -0.5) & (g[rest] < SMALL)
            q, price = self._without(g[rest], dropped)
            change[rest] = self._relative_change(q, self._newton_step(q, target[rest]))
            bound[rest] = price + self._certificate(q, change[rest], target[rest])
            left = np.isinf(bound[rest])
            rest, dropped = rest[left], dropped[left]
        return bound

    def _relative_change(self, q: Floats, step: Floats) -> Floats:
        """Return e: the change of eta that `step` makes, less its mean over the row."""
        change = self.cells.eta(step @ self.basis.T)
        change -= np.einsum("bji,bji->bi", q, change)[:, None]
        return change

    def _raised(self, g: Floats, change: Floats, target: Floats, hessian: Floats) -> Floats:
        """Return e with ``1 + e`` raised where it is negative, and the moments as they were."""
        if (change.min(axis=(1, 2)) >= -1.0).all():
            return change
        e = np.maximum(change, RAISED - 1.0)
        e -= np.einsum("bji,bji->bi", g, e)[:, None]
        missing = target - self.cells.sums(g + g * e) @ self.basis
        e += self._relative_change(g, solve(hessian, missing))
        return e

    def _certificate(self, q: Floats, change: Floats, target: Floats) -> Floats:
        """Return ``sum q e^2`` where ``q (1 + e)`` is a table of probabilities with the moments."""
        bound = np.full(len(q), np.inf)
        able = np.flatnonzero(np.where(q > 0.0, change, 0.0).min(axis=(1, 2)) >= -1.0)
        if len(able) == 0:
            return bound
        if len(able) < len(q):
            q, change, target = q[able], change[able], target[able]
        increase = q * change
        off = np.abs(self.cells.sums(q + increase) @ self.basis - target) > EXACT * self._size
        if self.cells.weight is not None:
            increase *= self.cells.weight
        total = np.einsum("bji,bji->b", increase, change)
        bound[able] = np.where(off.any(axis=1), np.inf, total)
        return bound

    def _without(self, g: Floats, dropped: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """Return the cells with some dropped, and what that adds to the supremum at most."""
        lost = np.where(dropped, g, 0.0).sum(axis=1)
        lost[lost > 0.5] = 0.0
        q = np.where(dropped & (lost > 0.0)[:, None], 0.0, g)
        q /= q.sum(axis=1, keepdims=True)
        price = -np.log1p(-lost)
        return q, price.sum(axis=1) if self.cells.weight is None else price @ self.cells.weight

    def _newton_step(self, q: Floats, target: Floats) -> Floats:
        gradient, hessian = self.cells.moments(q)
        return solve(self.basis.T @ hessian @ self.basis, target - gradient @ self.basis)


def _softmax(eta: Floats) -> Floats:
    eta -= eta.max(axis=1, keepdims=True)
    np.exp(eta, out=eta)
    eta /= eta.sum(axis=1, keepdims=True)
    return eta


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
