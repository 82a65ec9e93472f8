"""Vector and full maps of log probabilities, held near the identity by a structured ridge.

====================  ==========================================================================
features              ``x = log p`` and 1
vector map            ``eta_j = theta_j1 x_j + theta_j2``          theta (c, 2)
full map              ``eta = theta (x, 1)``                       theta (c, c + 1)
minimised             ``nll(theta) + 1/2 sum_jk r_jk (theta_jk - identity_jk)^2``
ridge r               ``d c`` on diagonal and intercepts, ``2 c (c - 1) m`` on the rest
search                BFGS (`_model/newton.minimize_lbfgs`) from the inverse of the Hessian where it
                      begins: of the whole where parameters are few, of its diagonal blocks, one
                      for each class, up to 20 classes, and beyond of ``V (x) S + r``, V what
                      classes have of it and S what features have
====================  ==========================================================================

Logarithms of probabilities know no baseline and forget what was added to all logits of a row;
permuting the classes permutes theta. The ridge grows with the number of classes because
off-diagonal weights are c (c - 1) chances to fit noise (structured matrix scaling, Berta et al.
2026).

A map that knows which classes look alike: five shared numbers and an intercept for each class.

====================  ==========================================================================
scores                ``x = log g`` of a row, g the temperature with its slip
similarity A          off-diagonal of ``sum_i w_i g_i g_i'``, rows divided by their sums: given
                      class j, where the rest of the probability is; needs no labels
features f            ``A x``, ``A g``, ``g``, ``x``, ``log(A g)``, each shape (c,) for a row
map                   ``eta_j = x_j + sum_k b_k f_kj + a_j``
minimised             ``nll(b, a) + 1/2 (2 |b|^2 + 3 sqrt(c) |a|^2)``
gradient              ``sum_i w_i sum_j (p_j - 1[y_i = j]) (f_kj, e_j)`` and the ridge's
Hessian               ``bb: w (sum_j p_j f_kj f_lj - m_k m_l)``,  ``ba: w p_j (f_kj - m_k)``,
                      ``aa: w (diag p - p p')``;  ``m_k = sum_j p_j f_kj``
====================  ==========================================================================

What classes like j got in a row tells about class j: a network that hesitates between cat and dog
is wrong about either in another way than one that hesitates between cat and truck. A full map would
have to learn c (c - 1) such numbers from labels; here the predictions themselves tell who is like
whom, and labels only how much that means. A permutation of the classes permutes A, f and a. The
problem is convex in (b, a): Newton's method with the exact Hessian, which other rows then share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..._fit.linear_fit import PenalizedLoss, by_blocks, identity_map
from ..._model.kernel import Derivatives, log, softmax
from ..._model.linear_map import LinearMapLoss
from ..._model.many_classes import NO_HESSIAN
from ..._model.newton import (
    InverseHessian,
    Memoized,
    Objective,
    Product,
    Solution,
    minimize,
    minimize_lbfgs,
)
from ..._utils.results import Floats, Result
from .temperature_with_lapse import ScoredRows, decrement_to_forget_start, last_decrement

OfShare = Callable[[float], Product]
"""Products with the inverse of a Hessian, for a share of all rows."""

MAX_PARAMETERS_FOR_FULL_HESSIAN = 420
"""Parameters up to which the whole Hessian is inverted; beyond, one block for each class."""
N_ROWS_PER_PARAMETER = 30  # that the full Hessian is computed from
MAX_HESSIAN_PRODUCTS = 4e8  # rows times squared parameters that are enough


def structured_ridge(n_classes: int, off_diagonal: float, own: float) -> Floats:
    """Return r of a full map: m = `off_diagonal`, d = `own`."""
    ridge = np.full((n_classes, n_classes + 1), 2.0 * n_classes * (n_classes - 1) * off_diagonal)
    np.fill_diagonal(ridge[:, :-1], own * n_classes)
    ridge[:, -1] = own * n_classes
    return ridge


def fit_ridge(
    rows: ScoredRows,
    ridge: Floats,
    start: Floats,
    inverse: Product,
    tol: float,
    trace: float = np.inf,
) -> tuple[Floats, Product]:
    """Return the best theta, and products with an inverse of the Hessian near it.

    Two columns of the ridge ask for a vector map. `inverse` is such a product where the search
    begins, `tol` is that of `minimize_lbfgs` and `trace` that of `decrement_to_forget_start`.
    """
    diagonal = ridge.shape[1] == 2
    objective = PenalizedLoss(_loss(rows, diagonal), identity_map(len(ridge), diagonal), ridge)
    learned = InverseHessian(inverse)
    found = _search(objective.value_and_gradient, start.ravel(), learned, tol, trace)
    return found.x.reshape(ridge.shape), learned


def _search(
    objective: Objective, start: Floats, inverse: InverseHessian, tol: float, trace: float
) -> Solution:
    """Return where L-BFGS ends, and knows its start but for `trace`."""
    objective = Memoized(objective)
    if np.isfinite(trace):
        gradient = objective(start).gradient
        decrement = float(gradient @ inverse(gradient))
        tol = min(tol, decrement_to_forget_start(decrement, trace))
    return minimize_lbfgs(objective, start, inverse, tol=tol)


def curvature(
    rows: ScoredRows, theta: Floats, most_whole: int = MAX_PARAMETERS_FOR_FULL_HESSIAN
) -> Floats:
    """Return blocks of the likelihood's Hessian at theta, about: one of all parameters, or one of
    each class.
    """
    diagonal = theta.shape[1] == 2
    if theta.size > most_whole:
        loss = _loss(rows, diagonal)
        return loss.class_blocks(theta, loss.feature_gram())
    enough = min(N_ROWS_PER_PARAMETER * theta.size, int(MAX_HESSIAN_PRODUCTS / theta.size**2))
    stride = max(1, len(rows.codes) // enough)
    some = rows if stride == 1 else rows.every(stride)
    return _loss(some, diagonal)(theta.ravel()).hessian[None]


def _loss(rows: ScoredRows, diagonal: bool) -> LinearMapLoss:
    if not diagonal:
        return rows.loss
    return LinearMapLoss(rows.scores, rows.codes, rows.weight, diagonal=True)


def of_share(blocks: Floats, ridge: Floats) -> OfShare:
    """Return inverses of blocks on the diagonal, those of all rows, and of the ridge."""
    return cache(lambda share: by_blocks(share * blocks, ridge))


def by_factors(rows: ScoredRows, theta: Floats, ridge: float) -> Product:
    """Return products with the inverse for full maps whose entries are all held back alike.

    Each row's part of the Hessian is ``V_i (x) x_i x_i'``, ``V_i = w_i (diag g_i - g_i g_i')``. Of
    their sum the mean of V and that of ``x x'``, by the traces of V, are the factors: with their
    eigenvectors U and W and eigenvalues it is diagonal. Of many rows some will do.
    """
    rows = rows.first() or rows
    x = np.vstack([rows.scores, np.ones(len(rows.codes))])
    g = theta @ x
    softmax(g)
    weighted = g if rows.weight is None else g * rows.weight
    traces = weighted.sum(axis=0) - np.einsum("ji,ji->i", weighted, g)
    spread = np.diag(weighted.sum(axis=1)) - weighted @ g.T
    a, u = np.linalg.eigh(spread / max(float(traces.sum()), 1e-300))
    b, w = np.linalg.eigh((x * traces) @ x.T)
    scale = 1.0 / (np.maximum(a, 0.0)[:, None] * np.maximum(b, 0.0) + ridge)
    return lambda v: (u @ ((u.T @ v.reshape(theta.shape) @ w) * scale) @ w.T).ravel()


N_SHARED_FEATURES = 5  # whose coefficients all classes share
IDENTITY_FEATURE = 3  # which of them is x, whose coefficient is 1 in the identity
SHARED_RIDGE = 2.0  # on the shared numbers
INTERCEPT_RIDGE = 3.0  # on intercepts, for each root of c
MAX_KEPT_ELEMENTS = 2**23
"""Features up to which a search keeps them from step to step."""


@dataclass(frozen=True, eq=False)
class SimilarClasses(Result):
    """A fitted map: A, shape (c, c), rows summing to 1, the diagonal 0; b, (5,); and a, (c,)."""

    similarity: Floats
    shared: Floats
    intercept: Floats

    def both(self, g: Floats, x: Floats) -> tuple[Floats, Floats]:
        """Return probabilities and their logarithms, shape (c, n), of g and ``x = log g``."""
        weights = np.concatenate([self.shared, self.intercept])
        weights[IDENTITY_FEATURE] += 1.0
        eta = _eta(_features(x, g, self.similarity), weights)
        p = eta.copy()
        eta -= softmax(p)
        return p, eta

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> SimilarClasses:
        """Return the map that `to_dict` described."""
        names = ("similarity", "shared", "intercept")
        return cls(*(np.array(content[name], dtype=float) for name in names))


def similarity(g: Floats, weight: Floats | None = None) -> Floats:
    """Return A of the probabilities g (c, n), shape (c, c)."""
    gram: Floats = (g if weight is None else g * weight) @ g.T
    np.fill_diagonal(gram, 0.0)
    gram /= gram.sum(axis=1, keepdims=True)
    return gram


def fit_similar(
    g: Floats,
    rows: ScoredRows,
    tol: float,
    near: SimilarClasses | None = None,
    inverse: Product | None = None,
    trace: float = np.inf,
) -> tuple[SimilarClasses, Floats, OfShare | None]:
    """Return the best map of g and rows x, its log probabilities, and inverses of its Hessian.

    `near` is a map to begin with, and `inverse` such a product there; by default it is the map that
    does nothing, and inverses become known. `tol` and `trace` are those of
    `fit_ridge`.
    """
    loss, few, known = SimilarLoss(g, rows), rows.first(), None
    if near is not None and inverse is not None:
        x = np.concatenate([near.shared, near.intercept])
    else:
        first = loss if few is None else SimilarLoss(np.exp(few.scores), few, loss.alike)
        start, last = np.zeros(len(loss.ridge)), last_decrement(tol)
        found = minimize(first, start, tol=last)
        known = of_share(found.terms.hessian[None] - np.diag(loss.ridge), loss.ridge)
        x, inverse = found.x, known(1.0)
    if near is not None or few is not None:
        x = _search(loss.light, x, InverseHessian(inverse), tol, trace).x
    return (
        SimilarClasses(loss.alike, x[:N_SHARED_FEATURES], x[N_SHARED_FEATURES:]),
        loss.logs(x),
        known,
    )


class SimilarLoss:
    """``(b, a) -> Derivatives`` of the penalised negative log likelihood of g and rows x.

    A may be that of other rows. Labels enter through their features' sums, made once.
    """

    def __init__(self, g: Floats, rows: ScoredRows, alike: Floats | None = None) -> None:
        self.g, self.rows, c = g, rows, len(rows.scores)
        self.alike = similarity(g, rows.weight) if alike is None else alike
        # in one piece: the system hands large ones out faster
        size = N_SHARED_FEATURES * rows.scores.size
        self._kept = np.empty(size if size <= MAX_KEPT_ELEMENTS else 0, g.dtype)
        self._known = set[int]()
        self.ridge = np.repeat([SHARED_RIDGE, INTERCEPT_RIDGE * np.sqrt(c)], [N_SHARED_FEATURES, c])
        self.plain = np.eye(N_SHARED_FEATURES + c)[IDENTITY_FEATURE]
        self.statistic = np.zeros(N_SHARED_FEATURES + c)
        self.statistic[N_SHARED_FEATURES:] = np.bincount(
            rows.codes, weights=rows.weight, minlength=c
        )

    def light(self, x: Floats) -> Derivatives:
        """Return value and gradient alone."""
        return self(x, whole=False)

    def logs(self, x: Floats) -> Floats:
        """Return what the map makes of the rows: log probabilities, shape (c, n)."""
        logs = np.empty_like(self.rows.scores)
        for part, _, eta in self._stretches(x):
            np.subtract(eta, softmax(eta.copy()), out=logs[:, part])
        return logs

    def _stretches(self, x: Floats) -> Iterator[tuple[slice, Floats, Floats]]:
        """Return rows, features and eta, stretch by stretch."""
        weights = (x + self.plain).astype(self.g.dtype)
        for part in self.rows.chunks((N_SHARED_FEATURES + 1) * len(self.alike)):
            scores = self.rows.scores[:, part]
            room = self._kept[N_SHARED_FEATURES * len(scores) * part.start :][
                : N_SHARED_FEATURES * scores.size
            ]
            features = room.reshape(N_SHARED_FEATURES, *scores.shape) if len(room) else None
            if features is None or part.start not in self._known:
                features = _features(scores, self.g[:, part], self.alike, features)
            if part.start not in self._known:
                codes = self.rows.codes[part]
                own = features[:, codes, np.arange(len(codes))]
                self.statistic[:N_SHARED_FEATURES] += own @ self.rows.unit[part]
                self._known.add(part.start)
            yield part, features, _eta(features, weights)

    def __call__(self, x: Floats, *, whole: bool = True) -> Derivatives:
        """Return value, gradient and Hessian, empty unless the `whole` is asked for."""
        k, value, gradient = N_SHARED_FEATURES, 0.5 * float(self.ridge @ (x * x)), self.ridge * x
        hessian = np.diag(self.ridge) if whole else NO_HESSIAN
        for part, features, p in self._stretches(x):
            weight = self.rows.unit[part]
            value += float(softmax(p) @ weight)
            weighted = p if self.rows.weight is None else p * weight
            if whole:
                self._add_hessian(hessian, features, p, weighted)
            gradient[:k] += features.reshape(k, -1) @ weighted.ravel()
            gradient[k:] += weighted.sum(axis=1)
        value -= float((x + self.plain).astype(self.g.dtype) @ self.statistic)  # as in eta
        return Derivatives(value, gradient - self.statistic, hessian)

    @staticmethod
    def _add_hessian(hessian: Floats, features: Floats, p: Floats, weighted: Floats) -> None:
        """Add a stretch of rows; `weighted` is w p."""
        k, moved = N_SHARED_FEATURES, features * weighted
        means = np.einsum("kji,ji->ki", features, p)
        hessian[:k, :k] += moved.reshape(k, -1) @ features.reshape(k, -1).T
        hessian[:k, :k] -= np.einsum("kji->ki", moved) @ means.T
        cross = moved.sum(axis=2) - means @ weighted.T
        hessian[:k, k:] += cross
        hessian[k:, :k] += cross.T
        hessian[k:, k:] -= weighted @ p.T
        place = np.arange(k, len(hessian))
        hessian[place, place] += weighted.sum(axis=1)


def _features(x: Floats, g: Floats, alike: Floats, room: Floats | None = None) -> Floats:
    """Return f, shape (5, c, n), of ``x = log g`` (c, n), in that `room` where some is given."""
    features = np.empty((N_SHARED_FEATURES, *x.shape), x.dtype) if room is None else room
    alike = alike.astype(x.dtype)
    np.matmul(alike, x, out=features[0])
    np.matmul(alike, g, out=features[1])
    features[2], features[IDENTITY_FEATURE] = g, x
    features[4] = features[1]
    log(features[4])
    return features


def _eta(features: Floats, weights: Floats) -> Floats:
    """Return eta, shape (c, n), of (b, a); x, which is a feature, counts once more in b."""
    shared, intercept = weights[:N_SHARED_FEATURES], weights[N_SHARED_FEATURES:]
    eta: Floats = (shared @ features.reshape(N_SHARED_FEATURES, -1)).reshape(features.shape[1:])
    eta += intercept[:, None]
    return eta
