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
problem is convex in (b, a): Newton's method with the exact Hessian, several sets of rows at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._ground.results import Floats, Result
from ..._math.kernel import softmax
from ..._math.newton import minimize_sets, newton_directions
from .row_sets import RowSets

N_SHARED = 5
SHARED, OWN = 2.0, 3.0
"""Ridge on the shared numbers, and on intercepts for each root of c."""
MOST_KEPT = 2**22
"""Features up to which a search keeps them from step to step."""


@dataclass(frozen=True, eq=False)
class SimilarClasses(Result):
    """A fitted map.

    Attributes
    ----------
    similarity : ndarray of shape (c, c)
        A; rows sum to 1, the diagonal is 0.
    shared : ndarray of shape (5,)
        b.
    intercept : ndarray of shape (c,)
        a.
    """

    similarity: Floats
    shared: Floats
    intercept: Floats

    def logs(self, x: NDArray[Any]) -> NDArray[Any]:
        """Return log probabilities, shape (c, n), of scores ``x = log g``."""
        kind = x.dtype
        eta = _eta(
            x,
            _features(x, self.similarity.astype(kind, copy=False)),
            self.shared.astype(kind, copy=False),
            self.intercept.astype(kind, copy=False),
        )
        eta -= softmax(eta.copy(), -2, bounded=None)
        return eta

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> SimilarClasses:
        """Return the map that `to_dict` described."""
        names = ("similarity", "shared", "intercept")
        return cls(*(np.array(content[name], dtype=float) for name in names))


def similarity(rows: RowSets) -> Floats:
    """Return A of each set of rows (x, 1), shape (S, c, c)."""
    n_sets, d, _ = rows.scores.shape
    grams = np.zeros((n_sets, d - 1, d - 1))
    for part in rows.chunks(d):
        g = np.exp(rows.scores[:, :-1, part])
        other = g if rows.weight is None else g * rows.weight[:, None, part]
        grams += other @ g.transpose(0, 2, 1)
    place = np.arange(d - 1)
    grams[:, place, place] = 0.0
    grams /= grams.sum(axis=2, keepdims=True)
    return grams


def fit_similar(
    rows: RowSets, starts: Floats | None, tol: float, trace: float = np.inf
) -> list[SimilarClasses]:
    """Return the best map of each set of rows (x, 1); `tol` and `trace` as in `minimize_sets`.

    `starts` is (b, a) to begin at, for all sets the same; by default the map that does nothing.
    """
    alike = similarity(rows)
    size = N_SHARED + alike.shape[1]
    x = np.zeros((len(alike), size)) if starts is None else np.tile(starts, (len(alike), 1))
    few = rows.first() if starts is None else None
    if few is not None:
        x = minimize_sets(SimilarProblems(few, alike), x, tol)
    x = minimize_sets(SimilarProblems(rows, alike), x, tol, trace)
    return [SimilarClasses(A, z[:N_SHARED], z[N_SHARED:]) for A, z in zip(alike, x, strict=True)]


def similar_features(rows: RowSets, maps: list[SimilarClasses]) -> RowSets:
    """Return (log p, 1), p what the map of each set makes of its rows (x, 1)."""
    scores = np.ones_like(rows.scores)
    for logs, x, own in zip(scores, rows.scores, maps, strict=True):
        for part in rows.chunks(rows.n_classes):
            logs[:-1, part] = own.logs(x[:-1, part])
    return replace(rows, scores=scores)


class SimilarProblems:
    """The penalised negative log likelihoods of S sets of rows (x, 1), as `_math/newton.Problems`.

    Parameters are (b, a), flat; `alike` is A of each set.
    """

    def __init__(self, rows: RowSets, alike: Floats) -> None:
        self.rows, self.rounding, self.dtype = rows, rows.rounding, rows.scores.dtype
        self.alike = alike.astype(self.dtype, copy=False)
        c = alike.shape[1]
        self._kept: dict[int, NDArray[Any]] = {}
        self._keeps = N_SHARED * rows.codes.size * c <= MOST_KEPT
        self.ridge = np.repeat([SHARED, OWN * np.sqrt(c)], [N_SHARED, c])

    def value_gradient(self, x: Floats) -> tuple[Floats, Floats]:
        """Return values and gradients; Hessians are made on the way."""
        k, (s, size) = N_SHARED, x.shape
        value = 0.5 * (x * x) @ self.ridge
        gradient, hessian = x * self.ridge, np.zeros((s, size, size))
        small = x.astype(self.dtype, copy=False)
        for part in self.rows.chunks((k + 1) * (size - k)):
            scores = self.rows.scores[:, :-1, part]
            features = self._kept.get(part.start)
            if features is None:
                features = _features(scores, self.alike)
            if self._keeps:
                self._kept[part.start] = features
            p = _eta(scores, features, small[:, :k], small[:, k:])
            codes = self.rows.codes[:, None, part]
            own = np.take_along_axis(p, codes, axis=1)[:, 0]
            logs = softmax(p, -2, bounded=None)
            logs -= own
            weight = None if self.rows.weight is None else self.rows.weight[:, None, part]
            value += (logs if weight is None else logs * weight[:, 0]).sum(axis=1, dtype=np.float64)
            weighted = p if weight is None else p * weight
            flat = features.reshape(s, k, -1)
            means = np.einsum("skji,sji->ski", features, p)
            heavy = means if weight is None else means * weight
            moved = features * weighted[:, None]
            hessian[:, :k, :k] += moved.reshape(s, k, -1) @ flat.transpose(0, 2, 1)
            hessian[:, :k, :k] -= heavy @ means.transpose(0, 2, 1)
            hessian[:, :k, k:] += moved.sum(axis=3) - means @ weighted.transpose(0, 2, 1)
            hessian[:, k:, k:] -= weighted @ p.transpose(0, 2, 1)
            total = weighted.sum(axis=2)
            place = np.arange(k, size)
            hessian[:, place, place] += total
            away = weighted.copy() if weight is None else weighted
            one = 1.0 if weight is None else weight
            np.put_along_axis(away, codes, np.take_along_axis(away, codes, axis=1) - one, axis=1)
            gradient[:, :k] += np.einsum("skji,sji->sk", features, away)
            gradient[:, k:] += away.sum(axis=2)
        hessian[:, k:, :k] = hessian[:, :k, k:].transpose(0, 2, 1)
        place = np.arange(size)
        hessian[:, place, place] += self.ridge
        self.hessian = hessian
        return value, gradient

    def direction(self, gradient: Floats) -> Floats:
        """Return the Newton directions."""
        return newton_directions(self.hessian, gradient)


def _features(x: NDArray[Any], alike: NDArray[Any]) -> NDArray[Any]:
    """Return f, shape (..., 5, c, n), of scores x (..., c, n)."""
    g = np.exp(x)
    smooth = alike @ g
    return np.stack([alike @ x, smooth, g, x, np.log(smooth)], axis=-3)


def _eta(
    x: NDArray[Any], features: NDArray[Any], shared: NDArray[Any], intercept: NDArray[Any]
) -> NDArray[Any]:
    """Return eta, shape (..., c, n)."""
    flat = features.reshape(*features.shape[:-2], -1)
    eta: NDArray[Any] = (shared[..., None, :] @ flat).reshape(x.shape)
    eta += x
    eta += intercept[..., None]
    return eta
