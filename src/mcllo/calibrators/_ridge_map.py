r"""Vector and full maps of log probabilities, held near the identity by a structured ridge.

====================  ==========================================================================
features              ``x = log p`` and 1
vector map            ``eta_j = theta_j1 x_j + theta_j2``          theta (c, 2)
full map              ``eta = theta (x, 1)``                       theta (c, c + 1)
minimised             ``nll(theta) + 1/2 sum_jk r_jk (theta_jk - identity_jk)^2``
ridge r               ``d c`` on diagonal and intercepts, ``2 c (c - 1) m`` on the rest
product               ``H t = sum_i w_i (diag g_i - g_i g_i') (t x_i) x_i' + r t``
preconditioner        inverse of H at the identity: of the whole where parameters are few, else of
                      its diagonal blocks, one for each class
====================  ==========================================================================

Logarithms of probabilities know no baseline and forget what was added to all logits of a row;
permuting the classes permutes theta. The ridge grows with the number of classes because
off-diagonal weights are c (c - 1) chances to fit noise (structured matrix scaling, Berta et al.
2026). Newton's equations are solved by conjugate gradients; fits to parts of the rows share the
preconditioner. Products only steer the search, so for many rows they are computed in float32;
values and gradients never are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._model import CHUNK_ELEMENTS, Terms
from .._operator import NO_HESSIAN
from .._pcg import minimize_pcg
from ._linear_fit import identity_map
from ._linear_loss import LinearMapLoss
from ._linear_map import softmax_of_gaps

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

MOST_WHOLE = 250
"""Parameters up to which the whole Hessian is inverted; beyond, one block for each class."""
PRODUCTS_IN_FLOAT32 = 2**19
"""Numbers, rows times classes, from which products are computed in float32."""
ROWS_OF_BLOCKS = 20
"""Rows for each parameter of a class that its block is computed from."""


def structured_ridge(n_classes: int, off_diagonal: float, own: float) -> Floats:
    """Return r of a full map: m = `off_diagonal`, d = `own`."""
    ridge = np.full((n_classes, n_classes + 1), 2.0 * n_classes * (n_classes - 1) * off_diagonal)
    np.fill_diagonal(ridge[:, :-1], own * n_classes)
    ridge[:, -1] = own * n_classes
    return ridge


class RidgeObjective:
    """The penalised negative log likelihood as `_pcg.Objective`.

    Parameters
    ----------
    x : ndarray of shape (c, n)
        Logarithms of probabilities.
    codes : ndarray of shape (n,)
        The class that came true.
    weight : ndarray of shape (n,) or None
        Row weights.
    ridge : ndarray of shape (c, 2) or (c, c + 1)
        r; two columns ask for a vector map.
    inverse : ndarray of shape (blocks, size, size)
        The preconditioner, of `inverse_curvature`.
    """

    def __init__(
        self, x: Floats, codes: Codes, weight: Floats | None, ridge: Floats, inverse: Floats
    ) -> None:
        self.x, self.codes, self.weight = x, codes, weight
        self.ridge, self.inverse = ridge, inverse
        self.diagonal = ridge.shape[1] == 2
        self.identity = identity_map(len(ridge), self.diagonal)
        kind = np.float32 if x.size >= PRODUCTS_IN_FLOAT32 else np.float64
        self._x: NDArray[Any] = x.astype(kind, copy=False)
        self._g = np.empty(x.shape, dtype=kind)
        rows = max(256, CHUNK_ELEMENTS // len(x))
        self._chunks = [slice(i, i + rows) for i in range(0, len(codes), rows)]

    def value_gradient(self, x: Floats) -> Terms:
        """Return value and gradient at `x`, flat, and keep the probabilities there."""
        theta = x.reshape(self.ridge.shape)
        away = theta - self.identity
        pull = self.ridge * away
        value, gradient = 0.5 * float((pull * away).sum()), pull
        for rows in self._chunks:
            g = self._forward(theta, self.x[:, rows])
            g -= g.max(axis=0)
            codes, place = self.codes[rows], np.arange(g.shape[1])
            loss = -g[codes, place]
            loss += softmax_of_gaps(g)
            self._g[:, rows] = g
            g[codes, place] -= 1.0
            weight = None if self.weight is None else self.weight[rows]
            value += float(loss.sum() if weight is None else loss @ weight)
            gradient = gradient + self._backward(g, self.x[:, rows], weight)
        return Terms(value, gradient.ravel(), NO_HESSIAN)

    rough = value_gradient

    def product(self, v: Floats) -> Floats:
        """Return the Hessian, where `value_gradient` was last asked, times `v`."""
        step = v.reshape(self.ridge.shape)
        image, rough = self.ridge * step, step.astype(self._g.dtype, copy=False)
        for rows in self._chunks:
            x, g = self._x[:, rows], self._g[:, rows]
            t = self._forward(rough, x)
            t *= g
            t -= g * t.sum(axis=0)
            image += self._backward(t, x, None if self.weight is None else self.weight[rows])
        return image.ravel()

    def precondition(self, v: Floats) -> Floats:
        """Return an approximate solution of ``H x = v``."""
        parts = v.reshape(len(self.inverse), -1, 1)
        return (self.inverse @ parts).ravel()

    def _forward(self, theta: NDArray[Any], x: NDArray[Any]) -> NDArray[Any]:
        eta: NDArray[Any] = theta[:, :1] * x if self.diagonal else theta[:, :-1] @ x
        eta += theta[:, -1:]
        return eta

    def _backward(self, t: NDArray[Any], x: NDArray[Any], weight: Floats | None) -> NDArray[Any]:
        """Return ``sum_i w_i t_i x_i'`` in theta's shape; `t` is used up."""
        if weight is not None:
            t *= weight
        own = np.einsum("ji,ji->j", t, x) if self.diagonal else t @ x.T
        return np.column_stack([own, t.sum(axis=1)])


def fit_ridge(objective: RidgeObjective, start: Floats, tol: float) -> Floats:
    """Return the best theta."""
    return minimize_pcg(objective, start.ravel(), tol=tol).x.reshape(start.shape)


def curvature(x: Floats, codes: Codes, weight: Floats | None, diagonal: bool) -> Floats:
    """Return blocks of the likelihood's Hessian at the identity: one of all, or one a class."""
    identity = identity_map(len(x), diagonal)
    if identity.size <= MOST_WHOLE:
        loss = LinearMapLoss(x, codes, weight, diagonal=diagonal)
        return loss(identity.ravel()).hessian[None]
    return _class_blocks(x, weight, diagonal)


def _class_blocks(x: Floats, weight: Floats | None, diagonal: bool) -> Floats:
    """Return ``sum_i w_i g_ji (1 - g_ji) x_i x_i'`` for each class j, from some of the rows."""
    c, n = x.shape
    every = max(1, n // (ROWS_OF_BLOCKS * (c + 1)))
    x = np.vstack([x[:, ::every], np.ones((1, -(-n // every)))])
    g = x[:-1] - x[:-1].max(axis=0)
    softmax_of_gaps(g)
    g *= 1.0 - g
    g *= every if weight is None else every * weight[::every]
    if not diagonal:
        return np.array([(x * spread) @ x.T for spread in g])
    first, last = (g * x[:-1]).sum(axis=1), g.sum(axis=1)
    return np.array([[(g * x[:-1] ** 2).sum(axis=1), first], [first, last]]).transpose(2, 0, 1)


def inverse_curvature(blocks: Floats, ridge: Floats) -> Floats:
    """Return the inverses of blocks with the ridge on their diagonals."""
    whole = blocks.copy()
    place = np.arange(blocks.shape[1])
    whole[:, place, place] += ridge.reshape(len(blocks), -1)
    return np.asarray(np.linalg.inv(whole), dtype=np.float64)
