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

from ..._ground.results import Floats, Result
from ..._math.kernel import Terms, log, softmax
from ..._math.newton import Product, Secants, approach, minimize
from ..._math.products import NO_HESSIAN
from .rows import Rows

N_SHARED = 5
SHARED, OWN = 2.0, 3.0
"""Ridge on the shared numbers, and on intercepts for each root of c."""
MOST_KEPT = 2**23
"""Features up to which a search keeps them from step to step."""


@dataclass(frozen=True, eq=False)
class SimilarClasses(Result):
    """A fitted map: A, shape (c, c), rows summing to 1, the diagonal 0; b, (5,); and a, (c,)."""

    similarity: Floats
    shared: Floats
    intercept: Floats

    def logs(self, x: Floats) -> Floats:
        """Return log probabilities, shape (c, n), of scores ``x = log g``."""
        eta = _eta(x, _features(x, self.similarity), self.shared, self.intercept)
        eta -= softmax(eta.copy())
        return eta

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> SimilarClasses:
        """Return the map that `to_dict` described."""
        names = ("similarity", "shared", "intercept")
        return cls(*(np.array(content[name], dtype=float) for name in names))


def similarity(rows: Rows) -> Floats:
    """Return A of the rows x, shape (c, c)."""
    c = len(rows.scores)
    gram = np.zeros((c, c))
    for part in rows.chunks(c):
        g = rows.scores[:, part].copy()
        softmax(g)
        gram += (g if rows.weight is None else g * rows.weight[part]) @ g.T
    np.fill_diagonal(gram, 0.0)
    gram /= gram.sum(axis=1, keepdims=True)
    return gram


def fit_similar(
    rows: Rows,
    tol: float,
    near: SimilarClasses | None = None,
    inverse: Product | None = None,
    trace: float = np.inf,
) -> tuple[SimilarClasses, Floats, Product]:
    """Return the best map of rows x, what it makes of them, and products with the inverse of its
    Hessian, about.

    `near` is a map to begin with, and `inverse` such a product there; by default it is the map that
    does nothing. `tol` and `trace` are those of `approach`.
    """
    loss, few = SimilarLoss(rows, similarity(rows)), rows.first()
    if near is not None and inverse is not None:
        x = np.concatenate([near.shared, near.intercept])
    else:
        first = loss if few is None else SimilarLoss(few, loss.alike)
        found = minimize(first, np.zeros(len(loss.ridge)), tol=tol, settled=True)
        x, inverse = found.x, np.linalg.inv(found.terms.hessian).__matmul__
    if near is not None or few is not None:
        x = approach(loss.light, x, Secants(inverse), enough=tol, trace=trace).x
    return SimilarClasses(loss.alike, x[:N_SHARED], x[N_SHARED:]), loss.logs(x), inverse


class SimilarLoss:
    """``(b, a) -> Terms`` of the penalised negative log likelihood of rows x; `alike` is A."""

    def __init__(self, rows: Rows, alike: Floats) -> None:
        self.rows, self.alike, c = rows, alike, len(alike)
        size = N_SHARED * rows.scores.size  # in one piece: the system hands large ones out faster
        self._kept, self._known = np.empty(size if size <= MOST_KEPT else 0), set[int]()
        self.ridge = np.repeat([SHARED, OWN * np.sqrt(c)], [N_SHARED, c])

    def light(self, x: Floats) -> Terms:
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
        for part in self.rows.chunks((N_SHARED + 1) * len(self.alike)):
            scores = self.rows.scores[:, part]
            room = self._kept[N_SHARED * len(scores) * part.start :][: N_SHARED * scores.size]
            features = room.reshape(N_SHARED, *scores.shape) if len(room) else None
            if features is None or part.start not in self._known:
                features = _features(scores, self.alike, features)
                self._known.add(part.start)
            yield part, features, _eta(scores, features, x[:N_SHARED], x[N_SHARED:])

    def __call__(self, x: Floats, *, whole: bool = True) -> Terms:
        """Return value, gradient and Hessian, empty unless the `whole` is asked for."""
        k, value, gradient = N_SHARED, 0.5 * float(self.ridge @ (x * x)), self.ridge * x
        hessian = np.diag(self.ridge) if whole else NO_HESSIAN
        for part, features, p in self._stretches(x):
            codes, place = self.rows.codes[part], np.arange(p.shape[1])
            logs = -p[codes, place]
            logs += softmax(p)
            weight = 1.0 if self.rows.weight is None else self.rows.weight[part]
            value += float((logs * weight).sum())
            away = p * weight
            if whole:
                self._add_hessian(hessian, features, p, away)
            away[codes, place] -= weight
            gradient[:k] += features.reshape(k, -1) @ away.ravel()
            gradient[k:] += away.sum(axis=1)
        return Terms(value, gradient, hessian)

    @staticmethod
    def _add_hessian(hessian: Floats, features: Floats, p: Floats, weighted: Floats) -> None:
        """Add a stretch of rows; `weighted` is w p."""
        k, moved = N_SHARED, features * weighted
        means = np.einsum("kji,ji->ki", features, p)
        hessian[:k, :k] += moved.reshape(k, -1) @ features.reshape(k, -1).T
        hessian[:k, :k] -= np.einsum("kji->ki", moved) @ means.T
        cross = moved.sum(axis=2) - means @ weighted.T
        hessian[:k, k:] += cross
        hessian[k:, :k] += cross.T
        hessian[k:, k:] -= weighted @ p.T
        place = np.arange(k, len(hessian))
        hessian[place, place] += weighted.sum(axis=1)


def _features(x: Floats, alike: Floats, room: Floats | None = None) -> Floats:
    """Return f, shape (5, c, n), of scores x (c, n), in that `room` where some is given."""
    features = np.empty((N_SHARED, *x.shape)) if room is None else room
    features[2:4] = x
    softmax(features[2])
    np.matmul(alike, x, out=features[0])
    np.matmul(alike, features[2], out=features[1])
    features[4] = log(features[1].copy())
    return features


def _eta(x: Floats, features: Floats, shared: Floats, intercept: Floats) -> Floats:
    """Return eta, shape (c, n)."""
    eta: Floats = (shared @ features.reshape(len(shared), -1)).reshape(x.shape)
    eta += x
    eta += intercept[:, None]
    return eta
