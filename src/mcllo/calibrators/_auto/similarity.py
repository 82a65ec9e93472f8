"""Linear maps of log probabilities under a ridge, and the map that knows which classes look alike.

Vector and full maps, held near the identity by a structured ridge:

====================  ==========================================================================
features              ``x = log p`` and 1
vector map            ``eta_j = theta_j1 x_j + theta_j2``          theta (c, 2)
full map              ``eta = theta (x, 1)``                       theta (c, c + 1)
minimised             ``nll(theta) + 1/2 sum_jk r_jk (theta_jk - identity_jk)^2``
ridge r               ``d c`` on diagonal and intercepts, ``2 c (c - 1) m`` on the rest
search                L-BFGS (`_model/newton.minimize_lbfgs`) from the inverse of the Hessian where
                      it begins: of the whole where parameters are few, of its diagonal blocks, one
                      for each class, up to 20 classes, and beyond of ``V (x) S + r``, V what
                      classes have of it and S what features have
====================  ==========================================================================

Logarithms of probabilities know no baseline and forget what was added to all logits of a row;
permuting the classes permutes theta. The ridge grows with the number of classes because
off-diagonal weights are c (c - 1) chances to fit noise (structured matrix scaling [1]_).

The map that knows which classes look alike has five shared numbers and an intercept for each class:

====================  ==========================================================================
scores                ``x = log g`` of a row, g the temperature with its lapse rate
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

References
----------
.. [1] Berta, Holzmueller, Jordan, Bach (2026), Structured matrix scaling for multi-class
       calibration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..._fit.linear_fit import (
    PenalizedLoss,
    build_block_preconditioner,
    identity_parameters,
)
from ..._model.kernel import Derivatives, log_in_place, softmax_in_place
from ..._model.linear_map import LinearMapLoss
from ..._model.many_classes import NO_HESSIAN
from ..._model.newton import (
    LBFGSInverseHessian,
    MemoizedObjective,
    Objective,
    Product,
    minimize,
    minimize_lbfgs,
)
from ..._utils.results import Floats, Result
from .temperature_with_lapse import (
    ScoredRows,
    decrement_to_forget_start,
    last_decrement,
)

OfShare = Callable[[float], Product]
"""Products with the inverse of a Hessian, for a share of all rows."""

MAX_PARAMETERS_FOR_FULL_HESSIAN = 420
"""Parameters up to which the whole Hessian is inverted, a full map of 20 classes; beyond, one block
for each class."""


def structured_ridge(n_classes: int, off_diagonal: float, diagonal: float) -> Floats:
    """Return r of a full map: m = `off_diagonal`, d = `diagonal`."""
    between_classes = 2.0 * n_classes * (n_classes - 1) * off_diagonal
    ridge = np.full((n_classes, n_classes + 1), between_classes)
    np.fill_diagonal(ridge[:, :-1], diagonal * n_classes)
    ridge[:, -1] = diagonal * n_classes
    return ridge


def fit_ridge(
    rows: ScoredRows,
    ridge: Floats,
    start: Floats,
    inverse: Product,
    tol: float,
    start_influence_tol: float = np.inf,
) -> tuple[Floats, Product]:
    """Return the best theta, and products with an inverse of the Hessian near it.

    Parameters
    ----------
    rows : ScoredRows
        The rows.
    ridge : ndarray of shape (c, 2) or (c, c + 1)
        r; two columns ask for a vector map.
    start : ndarray
        theta where the search begins.
    inverse : callable
        Products with an inverse of the Hessian there, about.
    tol : float
        Decrement at which to end.
    start_influence_tol : float
        What may be left of `start`, in nats.
    """
    is_vector_map = ridge.shape[1] == 2
    loss = _linear_map_loss(rows, is_vector_map)
    objective = PenalizedLoss(
        loss, identity_parameters(len(ridge), is_vector_map), ridge
    )
    learned = LBFGSInverseHessian(inverse)
    x = _search(
        objective.value_and_gradient, start.ravel(), learned, tol, start_influence_tol
    )
    return x.reshape(ridge.shape), learned


def _search(
    objective: Objective,
    start: Floats,
    inverse: LBFGSInverseHessian,
    tol: float,
    start_influence_tol: float,
) -> Floats:
    """Return where L-BFGS ends that knows its start but for so much."""
    objective = MemoizedObjective(objective)
    if np.isfinite(start_influence_tol):
        gradient = objective(start).gradient
        decrement = float(gradient @ inverse(gradient))
        tol = min(tol, decrement_to_forget_start(decrement, start_influence_tol))
    return minimize_lbfgs(objective, start, inverse, tol=tol).x


def curvature(
    rows: ScoredRows,
    theta: Floats,
    max_parameters_for_full: int = MAX_PARAMETERS_FOR_FULL_HESSIAN,
) -> Floats:
    """Return blocks of the likelihood's Hessian at theta, about: one of all parameters, or one of
    each class.
    """
    is_vector_map = theta.shape[1] == 2
    if theta.size > max_parameters_for_full:
        loss = _linear_map_loss(rows, is_vector_map)
        return loss.approximate_class_blocks(theta, loss.feature_gram())
    # It only guides the search, so that some rows will do: 30 for each parameter, or as many as
    # take 4e8 products (0.1 s or so). Round numbers.
    n_needed = min(30 * theta.size, int(4e8 / theta.size**2))
    stride = max(1, len(rows.codes) // n_needed)
    some_rows = rows if stride == 1 else rows.every(stride)
    loss = _linear_map_loss(some_rows, is_vector_map)
    return loss(theta.ravel()).hessian[None]


def _linear_map_loss(rows: ScoredRows, is_vector_map: bool) -> LinearMapLoss:
    if is_vector_map:
        return LinearMapLoss(rows.scores, rows.codes, rows.weight, diagonal=True)
    return rows.loss


def of_share(blocks: Floats, ridge: Floats) -> OfShare:
    """Return inverses of blocks on the diagonal, those of all rows, and of the ridge."""

    @cache
    def inverse_of_share(share: float) -> Product:
        return build_block_preconditioner(share * blocks, ridge)

    return inverse_of_share


def by_factors(rows: ScoredRows, theta: Floats, ridge: float) -> Product:
    """Return products with the inverse for full maps whose entries are all held back alike.

    Each row's part of the Hessian is ``V_i (x) x_i x_i'``, ``V_i = w_i (diag g_i - g_i g_i')``. Of
    their sum the mean of V and that of ``x x'``, by the traces of V, are the factors (a Kronecker
    product of few numbers for a matrix of c^4): with their eigenvectors U and W and eigenvalues it
    is diagonal. Of many rows some will do.
    """
    rows = rows.first() or rows
    ones = np.ones(len(rows.codes))
    x = np.vstack([rows.scores, ones])
    g = theta @ x
    softmax_in_place(g)
    weighted_g = g if rows.weight is None else g * rows.weight
    trace_per_row = weighted_g.sum(axis=0)
    trace_per_row -= np.einsum("ji,ji->i", weighted_g, g)

    class_factor = np.diag(weighted_g.sum(axis=1))
    class_factor -= weighted_g @ g.T
    class_factor /= max(
        float(trace_per_row.sum()), 1e-300
    )  # 0 where all rows are certain
    feature_factor = (x * trace_per_row) @ x.T
    a, u = np.linalg.eigh(class_factor)
    b, w = np.linalg.eigh(feature_factor)
    a = np.maximum(a, 0.0)  # rounding may leave -1e-17
    b = np.maximum(b, 0.0)
    eigenvalues = a[:, None] * b

    def inverse(gradient: Floats) -> Floats:
        rotated = u.T @ gradient.reshape(theta.shape) @ w
        scaled = rotated / (eigenvalues + ridge)
        return (u @ scaled @ w.T).ravel()

    return inverse


N_SHARED_FEATURES = 5  # whose coefficients all classes share
IDENTITY_FEATURE = 3  # which of them is x, whose coefficient is 1 in the identity
SHARED_RIDGE = 2.0  # on the shared coefficients; a round number
INTERCEPT_RIDGE = 3.0  # on intercepts, for each root of c; a round number


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
        eta -= softmax_in_place(p)
        return p, eta

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> SimilarClasses:
        """Return the map that `to_dict` described."""
        similarity = np.array(content["similarity"], dtype=float)
        shared = np.array(content["shared"], dtype=float)
        intercept = np.array(content["intercept"], dtype=float)
        return cls(similarity, shared, intercept)


def similarity(g: Floats, weight: Floats | None = None) -> Floats:
    """Return A of the probabilities g (c, n), shape (c, c)."""
    weighted_g = g if weight is None else g * weight
    gram: Floats = weighted_g @ g.T
    np.fill_diagonal(gram, 0.0)
    gram /= gram.sum(axis=1, keepdims=True)
    return gram


def fit_similar(
    g: Floats,
    rows: ScoredRows,
    tol: float,
    near: SimilarClasses | None = None,
    inverse: Product | None = None,
    start_influence_tol: float = np.inf,
) -> tuple[SimilarClasses, Floats, OfShare | None]:
    """Return the best map of g and rows x, its log probabilities, and inverses of its Hessian.

    Parameters
    ----------
    g : ndarray of shape (c, n)
        Probabilities.
    rows : ScoredRows
        Rows of ``x = log g``.
    tol : float
        Decrement, in nats, that may be left.
    near, inverse : SimilarClasses and callable, optional
        A map to begin with and products with an inverse Hessian there. By default the map that does
        nothing; then inverses become known, and are returned.
    start_influence_tol : float
        What may be left of `near`, in nats.
    """
    loss = SimilarLoss(g, rows)
    some_rows = rows.first()
    inverse_of_share = None
    if near is not None and inverse is not None:
        x = np.concatenate([near.shared, near.intercept])
        needs_search = True
    else:
        # Newton's method, of some rows where there are many.
        newton_loss = loss
        if some_rows is not None:
            newton_loss = SimilarLoss(
                np.exp(some_rows.scores), some_rows, loss.similarity
            )
        solution = minimize(
            newton_loss,
            np.zeros(len(loss.ridge)),
            tol=last_decrement(tol),
        )
        x = solution.x
        hessian = solution.derivatives.hessian - np.diag(loss.ridge)
        inverse_of_share = of_share(hessian[None], loss.ridge)
        inverse = inverse_of_share(1.0)
        needs_search = some_rows is not None

    if needs_search:
        learned = LBFGSInverseHessian(inverse)
        x = _search(loss.value_and_gradient, x, learned, tol, start_influence_tol)
    fitted = SimilarClasses(
        loss.similarity, x[:N_SHARED_FEATURES], x[N_SHARED_FEATURES:]
    )
    return fitted, loss.log_probabilities(x), inverse_of_share


class SimilarLoss:
    """``(b, a) -> Derivatives`` of the penalised negative log likelihood of g and rows x.

    A may be that of other rows. Features take most of the time: where they are not too many they
    are kept from one evaluation to the next.
    """

    def __init__(
        self, g: Floats, rows: ScoredRows, known_similarity: Floats | None = None
    ) -> None:
        c = len(rows.scores)
        self.g = g
        self.rows = rows
        if known_similarity is None:
            self.similarity = similarity(g, rows.weight)
        else:
            self.similarity = known_similarity
        self.ridge = np.full(N_SHARED_FEATURES + c, INTERCEPT_RIDGE * np.sqrt(c))
        self.ridge[:N_SHARED_FEATURES] = SHARED_RIDGE
        self.identity = np.zeros(N_SHARED_FEATURES + c)
        self.identity[IDENTITY_FEATURE] = 1.0

        self._keeps_features = N_SHARED_FEATURES * rows.scores.size <= 2**23  # 64 MB
        self._kept_features: dict[int, Floats] = {}

        # Labels enter through the sums of what multiplies (b, a) at their class.
        self.statistic = np.zeros(N_SHARED_FEATURES + c)
        for part in self._stretches():
            codes = rows.codes[part]
            row = np.arange(len(codes))
            features_of_label = self._features(part)[:, codes, row]
            self.statistic[:N_SHARED_FEATURES] += features_of_label @ rows.unit[part]
        class_weight = np.bincount(rows.codes, rows.weight, minlength=c)
        self.statistic[N_SHARED_FEATURES:] = class_weight

    def __call__(self, x: Floats) -> Derivatives:
        """Return value, gradient and Hessian."""
        hessian = np.diag(self.ridge)
        value, gradient = self._value_and_gradient(x, hessian)
        return Derivatives(value, gradient, hessian)

    def value_and_gradient(self, x: Floats) -> Derivatives:
        """Return value and gradient alone."""
        value, gradient = self._value_and_gradient(x, None)
        return Derivatives(value, gradient, NO_HESSIAN)

    def log_probabilities(self, x: Floats) -> Floats:
        """Return what the map makes of the rows, shape (c, n)."""
        logs = np.empty_like(self.rows.scores)
        for part in self._stretches():
            eta = _eta(self._features(part), x + self.identity)
            log_partition = softmax_in_place(eta.copy())
            logs[:, part] = eta - log_partition
        return logs

    def _value_and_gradient(
        self, x: Floats, hessian: Floats | None
    ) -> tuple[float, Floats]:
        """Return both, and add to the Hessian where there is one."""
        value = 0.5 * float(self.ridge @ (x * x))
        value -= float((x + self.identity) @ self.statistic)
        gradient = self.ridge * x - self.statistic
        for part in self._stretches():
            features = self._features(part)
            p = _eta(features, x + self.identity)
            log_partition = softmax_in_place(p)  # which turns eta into probabilities
            weight = self.rows.unit[part]
            weighted_p = p if self.rows.weight is None else p * weight
            value += float(log_partition @ weight)
            flat_features = features.reshape(N_SHARED_FEATURES, -1)
            gradient[:N_SHARED_FEATURES] += flat_features @ weighted_p.ravel()
            gradient[N_SHARED_FEATURES:] += weighted_p.sum(axis=1)
            if hessian is not None:
                _add_hessian(hessian, features, p, weighted_p)
        return value, gradient

    def _stretches(self) -> Iterator[slice]:
        return self.rows.chunks((N_SHARED_FEATURES + 1) * len(self.rows.scores))

    def _features(self, part: slice) -> Floats:
        """Return the features of a stretch of rows, shape (5, c, rows)."""
        if part.start in self._kept_features:
            return self._kept_features[part.start]
        x = self.rows.scores[:, part]
        features = _features(x, self.g[:, part], self.similarity)
        if self._keeps_features:
            self._kept_features[part.start] = features
        return features


def _add_hessian(
    hessian: Floats, features: Floats, p: Floats, weighted_p: Floats
) -> None:
    """Add a stretch of rows to the Hessian of (b, a); `weighted_p` is w p."""
    k = N_SHARED_FEATURES
    weighted_features = features * weighted_p
    means = np.einsum("kji,ji->ki", features, p)
    weighted_means = np.einsum("kji->ki", weighted_features)

    bb = weighted_features.reshape(k, -1) @ features.reshape(k, -1).T
    bb -= weighted_means @ means.T
    ba = weighted_features.sum(axis=2) - means @ weighted_p.T
    aa = np.diag(weighted_p.sum(axis=1)) - weighted_p @ p.T
    hessian[:k, :k] += bb
    hessian[:k, k:] += ba
    hessian[k:, :k] += ba.T
    hessian[k:, k:] += aa


def _features(x: Floats, g: Floats, alike: Floats) -> Floats:
    """Return f, shape (5, c, n), of ``x = log g`` (c, n)."""
    features = np.empty((N_SHARED_FEATURES, *x.shape))
    np.matmul(alike, x, out=features[0])
    np.matmul(alike, g, out=features[1])
    features[2] = g
    features[IDENTITY_FEATURE] = x
    features[4] = features[1]
    log_in_place(features[4])
    return features


def _eta(features: Floats, weights: Floats) -> Floats:
    """Return eta, shape (c, n), of (b, a); x, which is a feature, counts once more in b."""
    shared = weights[:N_SHARED_FEATURES]
    intercept = weights[N_SHARED_FEATURES:]
    flat = shared @ features.reshape(N_SHARED_FEATURES, -1)
    eta: Floats = flat.reshape(features.shape[1:])
    eta += intercept[:, None]
    return eta
