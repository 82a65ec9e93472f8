r"""Weights of a linear pool of predictors, from the likelihoods of rows they were not fitted to.

====================  ==========================================================================
pool                  ``p_i = sum_k w_k P_ik``, P_ik what member k gave to the label of row i
maximised             ``sum_i v_i log(sum_k w_k P_ik) + sum_k a_k log w_k``,  w on the simplex
EM                    ``w_k <- (a_k + sum_i v_i w_k P_ik / p_i) / (A + V)``;  A = sum a, V = sum v
the same w minimises  ``(V + A) sum_k w_k - sum_i v_i log p_i - sum_k a_k log w_k``  over w > 0
====================  ==========================================================================

The second form needs no constraint, because its minimum has sum 1, and is convex: a few steps of
EM, then Newton's method, where EM alone would creep. ``a_k`` are pseudo-counts: the Dirichlet prior
has parameters ``1 + a_k``, and no member is left without any weight. Several weightings v of the
same rows, as when folds are left out, share every product and start where their mean leads.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._newton_sets import minimize_sets, newton_directions

Floats = NDArray[np.float64]

EM_STEPS = 5
TOL = 1e-9
NEAREST = 0.95
"""Part of a weight that one step may take away."""


def pool_weights(logs: Floats, prior: Floats, weight: Floats | None = None) -> Floats:
    """Return w, shape (K,), or (S, K) for S weightings.

    Parameters
    ----------
    logs : ndarray of shape (n, K)
        ``log P_ik``.
    prior : ndarray of shape (K,)
        ``a_k``, positive.
    weight : ndarray of shape (n,) or (S, n), optional
        ``v_i``; by default 1.

    Examples
    --------
    >>> logs = np.log([[0.9, 0.5], [0.8, 0.5], [0.1, 0.5], [0.9, 0.5]])
    >>> pool_weights(logs, np.array([0.5, 0.5])).round(3)
    array([0.54, 0.46])
    """
    v = np.ones(len(logs)) if weight is None else weight
    w: Floats = (prior / prior.sum())[None]
    if len(logs) > 0 and len(prior) > 1:
        likelihoods = np.exp(logs - logs.max(axis=1, keepdims=True))
        first = _Barrier(likelihoods, prior, np.atleast_2d(v).mean(axis=0)[None])
        for _ in range(EM_STEPS):
            w = first.em_step(w)
        w = minimize_sets(first, w, TOL)
        if v.ndim == 2:
            w = minimize_sets(_Barrier(likelihoods, prior, v), np.tile(w, (len(v), 1)), TOL)
        w /= w.sum(axis=1, keepdims=True)
    return np.broadcast_to(w, (len(v), len(prior))) if v.ndim == 2 else w[0]


def pooled_logs(logs: Floats, weights: Floats) -> Floats:
    """Return ``log sum_k w_k P_ik``, shape (n,), with weights of shape (K,) or (n, K)."""
    top = logs.max(axis=1)
    shares = np.exp(logs - top[:, None])
    mixed: Floats = np.log((shares * weights).sum(axis=1)) + top
    return mixed


class _Barrier:
    """The form without a constraint, for each weighting, as `_newton_sets.Problems`."""

    def __init__(self, likelihoods: Floats, prior: Floats, weight: Floats) -> None:
        self.likelihoods, self.prior, self.weight = likelihoods, prior, weight
        self.total = weight.sum(axis=1, keepdims=True) + prior.sum()
        self.rounding = 1e-15 * self.total[:, 0]
        n, k = likelihoods.shape
        self.pairs = (likelihoods[:, :, None] * likelihoods[:, None, :]).reshape(n, k * k)

    def em_step(self, w: Floats) -> Floats:
        shares = (self.weight / (w @ self.likelihoods.T)) @ self.likelihoods
        step: Floats = (self.prior + w * shares) / self.total
        return step

    def value_gradient(self, x: Floats) -> tuple[Floats, Floats]:
        self.w, mixed = x, x @ self.likelihoods.T
        ratio = self.weight / mixed
        curvature = (ratio / mixed) @ self.pairs
        size = x.shape[1]
        self.hessian = curvature.reshape(-1, size, size)
        place = np.arange(size)
        self.hessian[:, place, place] += self.prior / x**2
        value = self.total[:, 0] * x.sum(axis=1) - np.log(x) @ self.prior
        value -= (self.weight * np.log(mixed)).sum(axis=1)
        return value, self.total - ratio @ self.likelihoods - self.prior / x

    def direction(self, gradient: Floats) -> Floats:
        """Return the Newton directions, none longer than weights stay positive."""
        direction = newton_directions(self.hessian, gradient)
        excess = (-direction / self.w).max(axis=1, keepdims=True) / NEAREST
        direction /= np.maximum(1.0, excess)
        return direction
