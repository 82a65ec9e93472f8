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
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from ..._fit.linear_fit import PenalizedLoss, by_blocks, identity_map
from ..._model.kernel import softmax
from ..._model.linear_map import LinearMapLoss
from ..._model.newton import Product, SecantPairs, minimize_lbfgs
from ..._utils.results import Floats
from .scored_rows import VALUE_TOL, ScoredRows

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
    begins, and `tol` and `trace` are `decrement_tol` and `start_influence_tol` of `minimize_lbfgs`.
    """
    diagonal = ridge.shape[1] == 2
    objective = PenalizedLoss(_loss(rows, diagonal), identity_map(len(ridge), diagonal), ridge)
    secants = SecantPairs(inverse)
    found = minimize_lbfgs(
        objective.value_and_gradient,
        start.ravel(),
        secants,
        decrement_tol=tol,
        start_influence_tol=trace,
        f_noise=VALUE_TOL,
    )
    return found.x.reshape(ridge.shape), secants


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
