"""Vector and full maps of log probabilities, held near the identity by a structured ridge.

====================  ==========================================================================
features              ``x = log p`` and 1
vector map            ``eta_j = theta_j1 x_j + theta_j2``          theta (c, 2)
full map              ``eta = theta (x, 1)``                       theta (c, c + 1)
minimised             ``nll(theta) + 1/2 sum_jk r_jk (theta_jk - identity_jk)^2``
ridge r               ``d c`` on diagonal and intercepts, ``2 c (c - 1) m`` on the rest
nll                   ``sum_i w_i log sum_j exp eta_ij - theta . sum_i w_i 1[y_i = j] (x_i, 1)``
product               ``H t = sum_i w_i (diag g_i - g_i g_i') (t x_i) x_i' + r t``
preconditioner        inverse of H where the search begins: of the whole where parameters are few,
                      of its diagonal blocks, one for each class, up to 20 classes, and beyond of
                      ``s_j S + r``, S what these blocks have in common
====================  ==========================================================================

Logarithms of probabilities know no baseline and forget what was added to all logits of a row;
permuting the classes permutes theta. The ridge grows with the number of classes because
off-diagonal weights are c (c - 1) chances to fit noise (structured matrix scaling, Berta et al.
2026). Newton's equations are solved by conjugate gradients, for several sets of rows at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._ground.results import Floats
from ..._math.kernel import softmax
from ..._math.newton import conjugate_gradients, minimize_sets
from .._linear_fit import identity_map
from .row_sets import RowSets

MOST_WHOLE = 250
"""Parameters up to which the whole Hessian is inverted; beyond, one block for each class."""
ROWS_OF_WHOLE, ROWS_OF_BLOCKS = 30, 10
"""Rows for each parameter that the whole Hessian, or the block of a class, is computed from."""
PART, PART_OF_WIDE, WIDE = 0.1, 0.5, 250
"""Part of a gradient that conjugate gradients may leave, also of more parameters than the last."""


def structured_ridge(n_classes: int, off_diagonal: float, own: float) -> Floats:
    """Return r of a full map: m = `off_diagonal`, d = `own`."""
    ridge = np.full((n_classes, n_classes + 1), 2.0 * n_classes * (n_classes - 1) * off_diagonal)
    np.fill_diagonal(ridge[:, :-1], own * n_classes)
    ridge[:, -1] = own * n_classes
    return ridge


@dataclass(frozen=True, eq=False)
class SharedInverse:
    """Inverses of ``s_j S + r``, one for each class, by the eigenvectors of S."""

    vectors: NDArray[Any]
    scale: NDArray[Any]
    """``1 / (s_j lambda_k + r)``, shape (c, c + 1)."""

    def astype(self, kind: Any) -> SharedInverse:
        """Return the same in other numbers."""
        return SharedInverse(self.vectors.astype(kind), self.scale.astype(kind))

    def times(self, v: Floats) -> Floats:
        """Return the product with v, shape (S, c (c + 1))."""
        along = v.reshape(-1, *self.scale.shape).astype(self.scale.dtype, copy=False) @ self.vectors
        along *= self.scale
        return np.asarray((along @ self.vectors.T).reshape(v.shape), dtype=np.float64)


Inverse = Floats | SharedInverse


class RidgeProblems:
    """The penalised negative log likelihoods of S sets of rows, as `_math/newton.Problems`.

    Rows have the features (x, 1), `sums` is ``rows.label_sums()``, `ridge` is r (two columns ask
    for a vector map), and `inverse` the preconditioner, of `inverse_curvature` or `shared_inverse`.
    """

    def __init__(self, rows: RowSets, sums: Floats, ridge: Floats, inverse: Inverse) -> None:
        self.rows, self.ridge, self.dtype = rows, ridge.ravel(), rows.scores.dtype
        self.inverse = inverse.astype(self.dtype)
        self.rounding = rows.rounding
        self.diagonal = ridge.shape[1] == 2
        self.shape = (len(sums), *ridge.shape)
        self.identity = identity_map(len(ridge), self.diagonal).ravel()
        self.sums = self._own(sums)
        self._g = np.empty_like(rows.scores[:, :-1])

    def value_gradient(self, x: Floats) -> tuple[Floats, Floats]:
        """Return values and gradients at `x`, and keep the probabilities there."""
        away = x - self.identity
        gradient = self.ridge * away
        value = 0.5 * np.einsum("sp,sp->s", gradient, away) - np.einsum("sp,sp->s", x, self.sums)
        gradient -= self.sums
        theta = x.reshape(self.shape).astype(self.dtype, copy=False)
        for part in self.rows.chunks(self.shape[1]):
            features = self.rows.scores[:, :, part]
            g = self._forward(theta, features)
            logs = softmax(g, -2, bounded=None)
            self._g[:, :, part] = g
            if self.rows.weight is not None:
                weight = self.rows.weight[:, part]
                logs *= weight
                g *= weight[:, None]
            value += logs.sum(axis=1, dtype=np.float64)
            gradient += self._backward(g, features)
        return value, gradient

    def direction(self, gradient: Floats) -> Floats:
        """Return the Newton directions, roughly."""
        part = PART_OF_WIDE if gradient.shape[1] > WIDE else PART
        return conjugate_gradients(self.product, self.precondition, -gradient, part)

    def product(self, v: Floats) -> Floats:
        """Return the Hessians, where `value_gradient` was last asked, times `v`."""
        image, step = self.ridge * v, v.reshape(self.shape).astype(self.dtype, copy=False)
        for part in self.rows.chunks(self.shape[1]):
            features, g = self.rows.scores[:, :, part], self._g[:, :, part]
            t = self._forward(step, features)
            t -= np.einsum("sji,sji->si", t, g)[:, None]
            t *= g
            if self.rows.weight is not None:
                t *= self.rows.weight[:, None, part]
            image += self._backward(t, features)
        return image

    def precondition(self, v: Floats) -> Floats:
        """Return approximate solutions of ``H x = v``."""
        if isinstance(self.inverse, SharedInverse):
            return self.inverse.times(v)
        if len(self.inverse) == 1:
            return np.asarray(v @ self.inverse[0], dtype=np.float64)
        parts = v.reshape(len(v), len(self.inverse), 1, -1).astype(self.dtype, copy=False)
        return np.asarray((parts @ self.inverse).reshape(v.shape), dtype=np.float64)

    def _forward(self, theta: NDArray[Any], features: NDArray[Any]) -> NDArray[Any]:
        if not self.diagonal:
            return np.asarray(theta @ features)
        eta: NDArray[Any] = theta[:, :, :1] * features[:, :-1]
        eta += theta[:, :, 1:]
        return eta

    def _backward(self, t: NDArray[Any], features: NDArray[Any]) -> NDArray[Any]:
        """Return ``sum_i t_i (x_i, 1)'`` in theta's shape, flat."""
        if not self.diagonal:
            return np.asarray(t @ features.transpose(0, 2, 1)).reshape(len(t), -1)
        own = np.einsum("sji,sji->sj", t, features[:, :-1])
        return np.stack([own, t.sum(axis=2)], axis=2).reshape(len(t), -1)

    def _own(self, full: Floats) -> Floats:
        """Return the entries of full maps that these have, flat."""
        if self.diagonal:
            j = np.arange(full.shape[1])
            full = np.stack([full[:, j, j], full[:, :, -1]], axis=2)
        return full.reshape(len(full), -1)


def fit_ridge(problems: RidgeProblems, start: Floats, tol: float, trace: float = np.inf) -> Floats:
    """Return the best theta of each set; `tol` and `trace` as in `minimize_sets`."""
    flat = start.reshape(len(start), -1)
    return minimize_sets(problems, flat, tol, trace).reshape(start.shape)


def curvature(rows: RowSets, theta: Floats, most_whole: int = MOST_WHOLE) -> Floats:
    """Return blocks of the likelihood's Hessian at theta, for the first set of rows (x, 1).

    One block of all parameters, up to `most_whole`, else one of each class; of some of the rows.
    """
    c, size = len(theta), theta.shape[1]
    whole = theta.size <= most_whole
    few = ROWS_OF_WHOLE * theta.size if whole else ROWS_OF_BLOCKS * (c + 1)
    stride = max(1, rows.codes.shape[1] // few)
    rows = rows.every(stride) if stride > 1 else rows
    x = rows.scores[0]
    diagonal = size == 2
    g = theta.astype(x.dtype) @ x if not diagonal else theta[:, :1] * x[:-1] + theta[:, 1:]
    g = g.astype(x.dtype, copy=False)
    softmax(g, -2, bounded=None)
    weight = np.ones_like(x[0]) if rows.weight is None else rows.weight[0]
    features = np.stack([x[:-1], np.ones_like(x[:-1])], axis=1) if diagonal else x[None]
    return _whole_block(g, features, weight) if whole else _class_blocks(g, features, weight)


def _class_blocks(g: NDArray[Any], features: NDArray[Any], weight: NDArray[Any]) -> Floats:
    """Return ``sum_i w_i g_ji (1 - g_ji) x_i x_i'`` for each class j."""
    spread = g * (1.0 - g) * weight
    c = len(g)
    blocks = [
        (x * s) @ x.T
        for x, s in zip(np.broadcast_to(features, (c, *features.shape[1:])), spread, strict=True)
    ]
    return np.array(blocks, dtype=np.float64)


def _whole_block(g: NDArray[Any], features: NDArray[Any], weight: NDArray[Any]) -> Floats:
    """Return ``sum_i w_i (diag g_i - g_i g_i') x x_i x_i'``, shape (1, P, P)."""
    c, n = g.shape
    root = np.sqrt(weight)
    scaled = features * root
    stack = (g[:, None] * scaled).reshape(-1, n)
    size = len(stack) // c
    hessian = -np.asarray(stack @ stack.T, dtype=np.float64)
    for j in range(c):
        own = slice(j * size, (j + 1) * size)
        hessian[own, own] += stack[own] @ scaled[j if len(scaled) > 1 else 0].T
    return hessian[None]


def inverse_curvature(blocks: Floats, ridge: Floats) -> Floats:
    """Return the inverses of blocks with the ridge on their diagonals."""
    whole = blocks.copy()
    place = np.arange(blocks.shape[1])
    whole[:, place, place] += ridge.reshape(len(blocks), -1)
    return np.asarray(np.linalg.inv(whole), dtype=np.float64)


def shared_inverse(rows: RowSets, theta: Floats, ridge: float, share: float) -> SharedInverse:
    """Return the preconditioner of full maps of many classes, about theta, for a share of the rows.

    Blocks of the classes weigh the same rows ``x x'`` by ``v_ji = w_i g_ji (1 - g_ji)``. S weighs
    them by what the classes have together, and s_j is the part of class j.
    """
    x = rows.scores[0]
    g = theta.astype(x.dtype) @ x
    softmax(g, -2, bounded=None)
    g *= 1.0 - g
    if rows.weight is not None:
        g *= rows.weight[0]
    total = g.sum(axis=0)
    values, vectors = np.linalg.eigh(np.asarray((x * total) @ x.T, dtype=np.float64))
    part = share * np.asarray(g.sum(axis=1), np.float64) / max(float(total.sum()), 1e-300)
    return SharedInverse(vectors, 1.0 / (part[:, None] * np.maximum(values, 0.0) + ridge))
