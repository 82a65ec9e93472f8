r"""Weights of a linear pool of predictors, from the likelihoods of rows they were not fitted to.

====================  ==========================================================================
pool                  ``p_i = sum_k w_k P_ik``, P_ik what member k gave to the label of row i
maximised             ``sum_i v_i log(sum_k w_k P_ik) + sum_k a_k log w_k``,  w on the simplex
EM                    ``w_k <- (a_k + sum_i v_i w_k P_ik / p_i) / (A + V)``;  A = sum a, V = sum v
the same w minimises  ``(V + A) sum_k w_k - sum_i v_i log p_i - sum_k a_k log w_k``  over w > 0
====================  ==========================================================================

The second form needs no constraint, because its minimum has sum 1, and is convex: a few steps of
EM, then Newton's method, where EM alone would creep. ``a_k`` are pseudo-counts: the Dirichlet prior
has parameters ``1 + a_k``, and no member is left without any weight.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._model import Terms
from .._newton import minimize

Floats = NDArray[np.float64]

EM_STEPS = 20


def pool_weights(logs: Floats, prior: Floats, weight: Floats | None = None) -> Floats:
    """Return w, shape (K,).

    Parameters
    ----------
    logs : ndarray of shape (n, K)
        ``log P_ik``.
    prior : ndarray of shape (K,)
        ``a_k``, positive.
    weight : ndarray of shape (n,), optional
        ``v_i``; by default 1.

    Examples
    --------
    >>> logs = np.log([[0.9, 0.5], [0.8, 0.5], [0.1, 0.5], [0.9, 0.5]])
    >>> pool_weights(logs, np.array([0.5, 0.5])).round(3)
    array([0.54, 0.46])
    """
    v = np.ones(len(logs)) if weight is None else weight
    w: Floats = prior / prior.sum()
    if len(logs) == 0 or len(prior) == 1:
        return w
    objective = _Barrier(np.exp(logs - logs.max(axis=1, keepdims=True)), prior, v)
    for _ in range(EM_STEPS):
        w = objective.em_step(w)
    w = minimize(objective, w).x
    w /= w.sum()
    return w


def pooled_logs(logs: Floats, weights: Floats) -> Floats:
    """Return ``log sum_k w_k P_ik``, shape (n,)."""
    top = logs.max(axis=1)
    mixed: Floats = np.log(np.exp(logs - top[:, None]) @ weights) + top
    return mixed


class _Barrier:
    """``w -> Terms`` of the form without a constraint."""

    def __init__(self, likelihoods: Floats, prior: Floats, weight: Floats) -> None:
        self.likelihoods, self.prior, self.weight = likelihoods, prior, weight
        self.total = float(weight.sum() + prior.sum())

    def em_step(self, w: Floats) -> Floats:
        shares = self.likelihoods.T @ (self.weight / (self.likelihoods @ w))
        step: Floats = (self.prior + w * shares) / self.total
        return step

    def __call__(self, w: Floats) -> Terms:
        if w.min() <= 0.0:
            return Terms(np.inf, np.zeros_like(w), np.eye(len(w)))
        mixed = self.likelihoods @ w
        scaled = self.likelihoods * (np.sqrt(self.weight) / mixed)[:, None]
        value = self.total * w.sum() - self.weight @ np.log(mixed) - self.prior @ np.log(w)
        gradient = self.total - self.likelihoods.T @ (self.weight / mixed) - self.prior / w
        return Terms(float(value), gradient, scaled.T @ scaled + np.diag(self.prior / w**2))
