"""Standard errors that survive repeated measurements and weights: scores of rows and groups.

====================  ======================================================================
score of a row        ``u_i = Z_i' (e_{y_i} - g_i) = (r_i; r_i l_i)``, ``r_ji = 1[y_i=j] - g_ji``
score of a group      ``U_g = sum_{i in g} w_i u_i``, whatever the weights mean
gram, groups          ``sum_g U_g U_g'``
gram, frequencies     ``sum_i w_i u_i u_i'``: row i is w_i rows of their own
gram, other weights   ``sum_i w_i^2 u_i u_i'``: row i is one row with the score ``w_i u_i``
units                 groups; ``sum_i w_i``; or rows: what is independent of each other
effective units       ``(sum w)^2 / sum w^2`` over units (Kish): as many of equal weight
covariance            ``H^-1 M H^-1``: H the information at the estimate, a ridge included, and
                      ``M = G / (G - 1) sum_g U_g U_g'``, centred (a maximum has mean 0 itself)
====================  ======================================================================

Rows of weight 0 are no rows, and groups of such rows no groups. Rows are worked through in chunks:
without groups nothing of the size of the data is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._model.kernel import CHUNK_ELEMENTS, LogPartition, predicted_probabilities
from .._utils.results import Codes, Floats
from .._validation.predictions import Predictions
from .._validation.weights import written_times
from .fit import MCLLOFit


@dataclass(frozen=True, eq=False)
class ScoreSums:
    """Sums over independent units: the score, the gram matrix of unit scores, and their number."""

    total: Floats
    gram: Floats
    n_units: float

    @property
    def covariance(self) -> Floats:
        """Of the total: ``N / (N - 1) (gram - total total' / N)`` for N units; NaN of one."""
        n = self.n_units
        if n <= 1.0:
            return np.full(self.gram.shape, np.nan)
        centred: Floats = self.gram - np.outer(self.total, self.total) / n
        return n / (n - 1.0) * centred

    def __add__(self, other: ScoreSums) -> ScoreSums:
        n_units = self.n_units + other.n_units
        return ScoreSums(self.total + other.total, self.gram + other.gram, n_units)


def score_sums(predictions: Predictions, theta: Floats) -> ScoreSums:
    """Return the sums over groups, or over rows where there are none."""
    if predictions.groups is not None:
        scores = group_scores(predictions, theta)
        return ScoreSums(scores.sum(axis=0), scores.T @ scores, float(len(scores)))
    return row_sums(predictions, theta)


def row_sums(predictions: Predictions, theta: Floats) -> ScoreSums:
    """Return the sums over rows, as if there were no groups."""
    size, weight = len(theta), predictions.sample_weight
    total, gram, n = np.zeros(size), np.zeros((size, size)), float(predictions.n_samples)
    if weight is not None:
        n = float(weight.sum() if predictions.counts_rows else np.count_nonzero(weight))
    for rows, scores in _chunks(predictions, theta):
        own = np.ones(scores.shape[1]) if weight is None else weight[rows]
        total += scores @ own
        gram += (scores * (own if predictions.counts_rows else own**2)) @ scores.T
    return ScoreSums(total, gram, n)


def unit_scores(predictions: Predictions, theta: Floats) -> Floats:
    """Return the score of every unit, shape (n_units, 2K); frequencies must be whole numbers."""
    if predictions.groups is not None:
        return group_scores(predictions, theta)
    scores = np.concatenate([part for _, part in _chunks(predictions, theta)], axis=1).T
    weight = predictions.sample_weight
    if weight is None:
        return scores
    if not predictions.counts_rows:
        used = weight > 0.0
        return scores[used] * weight[used, None]
    return np.repeat(scores, written_times(weight, scores.shape[1]), axis=0)


def group_scores(predictions: Predictions, theta: Floats) -> Floats:
    """Return ``U_g`` of every group with a row that counts, shape (n_groups, 2K)."""
    assert predictions.groups is not None
    weight = predictions.sample_weight
    used = np.arange(predictions.n_samples) if weight is None else np.flatnonzero(weight)
    names, codes = np.unique(predictions.groups[used], return_inverse=True)
    order = np.argsort(codes, kind="stable")
    codes, sums, start = codes[order], np.zeros((len(names), len(theta))), 0
    for rows, scores in _chunks(predictions, theta, used[order]):
        own = scores if weight is None else scores * weight[rows]
        here = codes[start : start + len(rows)]
        first = np.flatnonzero(np.diff(here, prepend=-1))
        sums[here[first]] += np.add.reduceat(own, first, axis=1).T
        start += len(rows)
    return sums


def _chunks(
    predictions: Predictions, theta: Floats, order: Codes | None = None
) -> Iterator[tuple[Any, Floats]]:
    """Yield (rows, their scores without weights, shape (2K, rows)), in this order of rows."""
    k, odds, codes = len(theta) // 2, predictions.log_odds, predictions.model_codes
    n = predictions.n_samples if order is None else len(order)
    step = max(256, CHUNK_ELEMENTS // k)
    for start in range(0, n, step):
        rows = slice(start, min(n, start + step)) if order is None else order[start : start + step]
        here, own = odds[:, rows], codes[rows]
        residual = -predicted_probabilities(theta, here)[0][:k]
        inside = np.flatnonzero(own < k)
        residual[own[inside], inside] += 1.0
        yield rows, np.concatenate([residual, residual * here])


def kish(weight: Floats) -> float:
    """Return how many equal weights would average as well: ``(sum w)^2 / sum w^2``."""
    return float(weight.sum() ** 2 / (weight @ weight))


def n_effective(predictions: Predictions) -> float:
    """Return the effective number of groups, of rows with survey weights, or of counted rows."""
    weight = predictions.sample_weight
    if predictions.groups is not None:
        return kish(np.bincount(predictions.groups, weights=weight).astype(np.float64))
    if weight is None:
        return float(predictions.n_samples)
    return float(weight.sum()) if predictions.counts_rows else kish(weight)


def robust_covariance(predictions: Predictions, fit: MCLLOFit) -> Floats:
    """Return the sandwich covariance of ``(tau, gamma)``; NaN where the fit has NaN."""
    predictions, theta = predictions.with_baseline(fit.baseline), fit.theta
    partition = LogPartition(predictions.log_odds, predictions.sample_weight)
    return sandwich(
        fit, lambda: partition(theta).hessian, lambda: score_sums(predictions, theta).covariance
    )


def sandwich(
    fit: MCLLOFit, information: Callable[[], Floats], variance: Callable[[], Floats]
) -> Floats:
    """Return ``H^-1 M H^-1`` where the fit has a covariance, NaN elsewhere.

    `information` and `variance` of the score, both at the estimate, are asked for when needed.
    """
    free = ~np.isnan(np.diagonal(fit.cov_theta))
    covariance = np.full(fit.cov_theta.shape, np.nan)
    if free.any():
        own = np.ix_(free, free)
        bread = information()[own] + fit.penalty * np.eye(int(free.sum()))
        half = np.linalg.solve(bread, variance()[own])
        both = np.linalg.solve(bread, half.T)
        covariance[own] = 0.5 * (both + both.T)
    return covariance


def robust_fit(predictions: Predictions, fit: MCLLOFit) -> MCLLOFit:
    """Return the same estimates with robust standard errors and intervals."""
    return replace(fit, cov_theta=robust_covariance(predictions, fit))
