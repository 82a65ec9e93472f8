"""A map that knows which classes look alike: five shared numbers and an intercept for each class.

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

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._model.hessian_products import NO_HESSIAN
from ..._model.kernel import Derivatives, log, softmax
from ..._model.newton import Product, SecantPairs, last_decrement, minimize, minimize_lbfgs
from ..._utils.results import Floats, Result
from .ridge_map import OfShare, of_share
from .scored_rows import VALUE_TOL, ScoredRows

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
    does nothing, and inverses become known. `tol` and `trace` are `decrement_tol` and
    `start_influence_tol` of `minimize_lbfgs`.
    """
    loss, few, known = SimilarLoss(g, rows), rows.first(), None
    if near is not None and inverse is not None:
        x = np.concatenate([near.shared, near.intercept])
    else:
        first = loss if few is None else SimilarLoss(np.exp(few.scores), few, loss.alike)
        start, last = np.zeros(len(loss.ridge)), last_decrement(tol)
        found = minimize(first, start, tol=last, skip_hessian_check=True, f_noise=VALUE_TOL)
        known = of_share(found.terms.hessian[None] - np.diag(loss.ridge), loss.ridge)
        x, inverse = found.x, known(1.0)
    if near is not None or few is not None:
        x = minimize_lbfgs(
            loss.light,
            x,
            SecantPairs(inverse),
            decrement_tol=tol,
            start_influence_tol=trace,
            f_noise=VALUE_TOL,
        ).x
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
