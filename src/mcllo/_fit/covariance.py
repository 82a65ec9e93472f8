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

from .._model.kernel import LogPartition, probabilities_and_log_sums, row_chunks
from .._utils.results import Codes, Floats
from .._validation.predictions import Predictions
from .._validation.weights import count_row_repeats
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
        total = self.total + other.total
        gram = self.gram + other.gram
        return ScoreSums(total, gram, self.n_units + other.n_units)


def sum_unit_scores(predictions: Predictions, theta: Floats) -> ScoreSums:
    """Return the sums over groups, or over rows where there are none."""
    if predictions.groups is None:
        return sum_row_scores(predictions, theta)
    scores = group_scores(predictions, theta)
    return ScoreSums(scores.sum(axis=0), scores.T @ scores, float(len(scores)))


def sum_row_scores(predictions: Predictions, theta: Floats) -> ScoreSums:
    """Return the sums over rows, as if there were no groups."""
    size = len(theta)
    weight = predictions.sample_weight
    if weight is None:
        n_units = float(predictions.n_samples)
        weight = np.ones(predictions.n_samples)
    elif predictions.counts_rows:
        n_units = float(weight.sum())
    else:
        n_units = float(np.count_nonzero(weight))
    total = np.zeros(size)
    gram = np.zeros((size, size))
    for rows, scores in _row_scores_by_chunk(predictions, theta):
        own = weight[rows]
        total += scores @ own
        gram += (scores * (own if predictions.counts_rows else own**2)) @ scores.T
    return ScoreSums(total, gram, n_units)


def unit_scores(predictions: Predictions, theta: Floats) -> Floats:
    """Return the score of every unit, shape (n_units, 2K); frequencies must be whole numbers."""
    if predictions.groups is not None:
        return group_scores(predictions, theta)
    chunks = [scores for _, scores in _row_scores_by_chunk(predictions, theta)]
    scores = np.concatenate(chunks, axis=1).T
    weight = predictions.sample_weight
    if weight is None:
        return scores
    if predictions.counts_rows:
        return np.repeat(scores, count_row_repeats(weight, scores.shape[1]), axis=0)
    used = weight > 0.0
    return scores[used] * weight[used, None]


def group_scores(predictions: Predictions, theta: Floats) -> Floats:
    """Return ``U_g`` of every group with a row that counts, shape (n_groups, 2K)."""
    assert predictions.groups is not None
    weight = predictions.sample_weight
    used = (
        np.arange(predictions.n_samples) if weight is None else np.flatnonzero(weight)
    )
    names, group_of_row = np.unique(predictions.groups[used], return_inverse=True)
    sums = np.zeros((len(names), len(theta)))
    # rows of a group one after the other, so that each chunk adds runs of rows
    by_group = np.argsort(group_of_row, kind="stable")
    group_of_row = group_of_row[by_group]
    n_done = 0
    for rows, scores in _row_scores_by_chunk(predictions, theta, used[by_group]):
        weighted = scores if weight is None else scores * weight[rows]
        groups = group_of_row[n_done : n_done + len(rows)]
        first_of_run = np.flatnonzero(np.diff(groups, prepend=-1))
        sums[groups[first_of_run]] += np.add.reduceat(weighted, first_of_run, axis=1).T
        n_done += len(rows)
    return sums


def _row_scores_by_chunk(
    predictions: Predictions, theta: Floats, row_order: Codes | None = None
) -> Iterator[tuple[Any, Floats]]:
    """Yield (rows, their scores without weights, shape (2K, rows)), in this order of rows."""
    k = len(theta) // 2
    log_odds = predictions.log_odds
    codes = predictions.model_codes
    n = predictions.n_samples if row_order is None else len(row_order)
    for chunk in row_chunks(n, k):
        rows = chunk if row_order is None else row_order[chunk]
        odds = log_odds[:, rows]
        labels = codes[rows]
        g, _ = probabilities_and_log_sums(theta, odds)
        residual = -g[:k]
        compared = np.flatnonzero(labels < k)
        residual[labels[compared], compared] += 1.0
        yield rows, np.concatenate([residual, residual * odds])


def kish_sample_size(weight: Floats) -> float:
    """Return how many equal weights would average as well: ``(sum w)^2 / sum w^2``."""
    return float(weight.sum() ** 2 / (weight @ weight))


def effective_sample_size(predictions: Predictions) -> float:
    """Return the effective number of groups, of rows with survey weights, or of counted rows."""
    weight = predictions.sample_weight
    if predictions.groups is not None:
        group_weights = np.bincount(predictions.groups, weights=weight)
        return kish_sample_size(group_weights.astype(np.float64))
    if weight is None:
        return float(predictions.n_samples)
    if predictions.counts_rows:
        return float(weight.sum())
    return kish_sample_size(weight)


def robust_covariance(predictions: Predictions, fit: MCLLOFit) -> Floats:
    """Return the sandwich covariance of ``(tau, gamma)``; NaN where the fit has NaN."""
    predictions = predictions.with_baseline(fit.baseline)
    theta = fit.theta
    partition = LogPartition(predictions.log_odds, predictions.sample_weight)
    return sandwich_covariance(
        fit,
        lambda: partition(theta).hessian,
        lambda: sum_unit_scores(predictions, theta).covariance,
    )


def sandwich_covariance(
    fit: MCLLOFit,
    compute_information: Callable[[], Floats],
    compute_score_variance: Callable[[], Floats],
) -> Floats:
    """Return ``H^-1 M H^-1`` where the fit has a covariance, NaN elsewhere.

    `compute_information` and `compute_score_variance`, both at the estimate, are called when
    needed.
    """
    free = ~np.isnan(np.diagonal(fit.cov_theta))
    covariance = np.full(fit.cov_theta.shape, np.nan)
    if not free.any():
        return covariance
    among_free = np.ix_(free, free)
    bread = compute_information()[among_free] + fit.penalty * np.eye(int(free.sum()))
    meat = compute_score_variance()[among_free]
    half = np.linalg.solve(bread, meat)
    whole = np.linalg.solve(bread, half.T)
    covariance[among_free] = 0.5 * (whole + whole.T)  # symmetric to the last digit
    return covariance


def with_robust_covariance(predictions: Predictions, fit: MCLLOFit) -> MCLLOFit:
    """Return the same estimates with robust standard errors and intervals."""
    return replace(fit, cov_theta=robust_covariance(predictions, fit))
