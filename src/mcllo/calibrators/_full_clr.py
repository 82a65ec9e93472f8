r"""The full linear map of centred log ratios, held near the temperature by a structured ridge.

====================  ==========================================================================
features              ``x = u clr(log p)`` and 1; ``clr(z)_j = z_j - mean_k z_k``
map                   ``softmax(theta x)``, theta of shape (c, c + 1); the identity is ``(I, 0)``
minimised             ``nll(theta) + 1/2 sum_jk r_jk (theta_jk - identity_jk)^2``
ridge r               ``2 c`` on diagonal and intercepts, ``2 c (c - 1) m`` on the rest
product               ``H v = sum_i w_i (diag g_i - g_i g_i') (v x_i) x_i' + r v``
preconditioner        Cholesky factor of H at an earlier theta: whole for few classes, else its
                      diagonal blocks, one of c + 1 for each class
====================  ==========================================================================

A number added to all scores of a row, or another baseline, changes no centred log ratio; permuting
the classes permutes theta. u, the best inverse temperature, takes out the overall boldness first,
so the ridge pulls towards temperature scaling. The ridge grows with the number of classes because
off-diagonal weights are c (c - 1) chances to fit noise (structured matrix scaling, Berta et al.
2026). Newton's equations are solved by conjugate gradients: with the factor from the fit to all
rows, a fit to four fifths of them needs a handful of products.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._model import Terms
from .._operator import NO_HESSIAN
from ._linear_loss import LinearMapLoss
from ._linear_map import softmax_of_gaps

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

MOST_WHOLE = 500
"""Parameters up to which the whole Hessian is factorised; beyond, one block for each class."""
ROWS_OF_BLOCKS = 40
"""Rows for each parameter of a class that the blocks are computed from."""


def structured_ridge(n_classes: int, off_diagonal: float) -> Floats:
    """Return r, shape (c, c + 1), for the multiple m = `off_diagonal`."""
    ridge = np.full((n_classes, n_classes + 1), 2.0 * n_classes * (n_classes - 1) * off_diagonal)
    np.fill_diagonal(ridge[:, :-1], 2.0 * n_classes)
    ridge[:, -1] = 2.0 * n_classes
    return ridge


def identity_theta(n_classes: int) -> Floats:
    """Return the theta that changes nothing."""
    return np.eye(n_classes, n_classes + 1)


class FullMapObjective:
    """The penalised negative log likelihood as `_pcg.Objective`: values and Hessian products.

    Parameters
    ----------
    features : ndarray of shape (c + 1, n)
        x, its last row all 1.
    codes : ndarray of shape (n,)
        The class that came true.
    weight : ndarray of shape (n,) or None
        Row weights.
    ridge : ndarray of shape (c, c + 1)
        r.
    """

    def __init__(
        self, features: Floats, codes: Codes, weight: Floats | None, ridge: Floats
    ) -> None:
        self.features, self.codes, self.weight = features, codes, weight
        self.ridge, self.identity = ridge, identity_theta(len(ridge))
        self._rows = np.arange(len(codes))
        self._g = np.empty((len(ridge), len(codes)))
        self.factor: Factor | None = None

    def value_gradient(self, x: Floats) -> Terms:
        """Return value and gradient at `x`, flat, and remember the probabilities there."""
        theta, g = x.reshape(self.ridge.shape), self._g
        np.matmul(theta, self.features, out=g)
        g -= g.max(axis=0)
        own = g[self.codes, self._rows]
        loss = softmax_of_gaps(g) - own
        away = theta - self.identity
        pull = self.ridge * away
        value = float(loss.sum() if self.weight is None else loss @ self.weight)
        return Terms(value + 0.5 * float((pull * away).sum()), self._slope(pull), NO_HESSIAN)

    def _slope(self, pull: Floats) -> Floats:
        residual = self._g.copy()
        residual[self.codes, self._rows] -= 1.0
        if self.weight is not None:
            residual *= self.weight
        gradient: Floats = residual @ self.features.T + pull
        return gradient.ravel()

    rough = value_gradient

    def product(self, v: Floats) -> Floats:
        """Return the Hessian, where `value_gradient` was last asked, times `v`."""
        step = v.reshape(self.ridge.shape)
        t = step @ self.features
        t *= self._g
        t -= self._g * t.sum(axis=0)
        if self.weight is not None:
            t *= self.weight
        image: Floats = t @ self.features.T + self.ridge * step
        return image.ravel()

    def precondition(self, v: Floats) -> Floats:
        """Return an approximate solution of ``H x = v``."""
        assert self.factor is not None
        return self.factor.solve(v)


class Factor:
    """Cholesky factors of blocks of H: one block of everything, or one for each class."""

    def __init__(self, blocks: Floats) -> None:
        from scipy.linalg import cho_factor

        self._factors = [cho_factor(block, lower=True, check_finite=False) for block in blocks]

    def solve(self, v: Floats) -> Floats:
        """Return the solution of ``H x = v``."""
        from scipy.linalg import cho_solve

        parts = v.reshape(len(self._factors), -1)
        solved = [
            cho_solve(factor, part, check_finite=False)
            for factor, part in zip(self._factors, parts, strict=True)
        ]
        return np.concatenate(solved)


def curvature(theta: Floats, features: Floats, codes: Codes, weight: Floats | None) -> Floats:
    """Return blocks of the likelihood's Hessian at `theta`: (1, c d, c d) or (c, d, d)."""
    c, d = theta.shape
    if c * d <= MOST_WHOLE:
        loss = LinearMapLoss(features[:-1], codes, weight)
        return loss(theta.ravel()).hessian[None]
    return _class_blocks(theta, features, weight)


def _class_blocks(theta: Floats, features: Floats, weight: Floats | None) -> Floats:
    """Return ``sum_i w_i g_ji (1 - g_ji) x_i x_i'`` for each class, from some of the rows."""
    c, d = theta.shape
    every = max(1, features.shape[1] // (ROWS_OF_BLOCKS * d))
    x = np.ascontiguousarray(features[:, ::every])
    g = theta @ x
    g -= g.max(axis=0)
    softmax_of_gaps(g)
    g *= 1.0 - g
    g *= every if weight is None else every * weight[::every]
    return np.array([(x * row) @ x.T for row in g])


def with_ridge(blocks: Floats, ridge: Floats) -> Floats:
    """Return blocks plus the ridge on their diagonals."""
    whole = blocks.copy()
    rows = np.arange(blocks.shape[1])
    whole[:, rows, rows] += ridge.reshape(len(blocks), -1)
    return whole
