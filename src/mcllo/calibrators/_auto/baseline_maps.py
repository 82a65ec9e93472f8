"""Penalised MCLLO fits for all baselines.

====================  ==========================================================================
map of baseline b     ``eta_j = tau_bj + gamma_bj (x_j - x_b)``, ``eta_b = 0``
as a full map         ``theta_b (x, 1)``: gamma_bj at (j, j), -gamma_bj at (j, b), tau_bj last
minimised             ``nll(theta_b) + r/2 (|tau_b|^2 + |gamma_b - 1|^2)`` for each b
mean                  of all ``theta_b``: the geometric mean of the maps
====================  ==========================================================================

Labels enter only through sums that all baselines share. Without some of the rows, of gradients g
and Hessians H_o at theta_b, a fit begins at ``theta_b + (H - H_o)^-1 g``, which costs a look at
these rows alone: one Newton step is left to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..._model.batched_fits import BatchedProblems, each_partition
from ..._model.likelihood import identity_theta
from ..._model.newton import last_decrement
from ..._utils.linalg import solve_each
from ..._utils.results import Codes, Floats
from .scored_rows import ScoredRows

MAX_LOG_ODDS_AT_ONCE = 2**21
"""Log odds of the baselines that are fitted at once: bounds their memory."""
MIN_ROWS_FOR_HESSIANS = 10_000
"""Rows whose Hessians will do for a search of all."""


@dataclass(frozen=True, eq=False)
class BaselineMaps:
    """(tau, gamma) of each baseline, shape (c, 2c - 2), and the Hessians there."""

    theta: Floats
    hessian: Floats

    def without(self, rows: ScoredRows) -> BaselineMaps:
        """Return the maps, about, had these rows not been there."""
        theta, hessian = self.theta.copy(), self.hessian.copy()
        for part, odds, statistics in _baseline_batches(rows, MAX_LOG_ODDS_AT_ONCE):
            at = each_partition(odds, rows.weight)
            _, slopes, lost = at(theta[part], np.arange(odds.shape[1]))
            hessian[part] -= lost
            theta[part] += solve_each(hessian[part], slopes - statistics)
        return BaselineMaps(theta, hessian)


def fit_baselines(
    rows: ScoredRows,
    ridge: float,
    tol: float,
    near: BaselineMaps | None = None,
    most_together: int = MAX_LOG_ODDS_AT_ONCE,
) -> BaselineMaps:
    """Return the best maps, found from those `near`; `tol` is what may be left.

    Without C, Hessians of many rows are only about theirs: those of maps near, or of fewer rows.
    """
    few = rows.first() if near is None else None
    if few is not None:
        near = fit_baselines(few, ridge, tol)
    c, size = len(rows.scores), 2 * len(rows.scores) - 2
    identity, about = identity_theta(c - 1), None
    theta = np.tile(identity, (c, 1)) if near is None else near.theta.copy()
    if near is not None and (few is None or len(few.codes) >= MIN_ROWS_FOR_HESSIANS):
        about = near.hessian - ridge * np.eye(size)
    hessian, last = np.empty((c, size, size)), last_decrement(tol)
    for part, odds, statistics in _baseline_batches(rows, most_together):
        problems = BatchedProblems(
            statistics, theta[part], penalty=ridge, centre=identity, tol=last
        )
        minima = problems.minima(odds, rows.weight, None if about is None else about[part])
        theta[part], hessian[part] = minima.theta, minima.hessian
    return BaselineMaps(theta, hessian)


def _baseline_batches(rows: ScoredRows, most: int) -> Iterator[tuple[slice, Floats, Floats]]:
    """Yield which baselines, their log odds (K, B, n) and labels' sums."""
    c, n = rows.scores.shape
    sums, together = rows.loss.statistic, max(1, most // (c * n))
    for first in range(0, c, together):
        part = slice(first, first + together)
        others, baselines = _others(c)[part], np.arange(c)[part]
        odds = rows.scores[others.T]
        odds -= rows.scores[baselines]
        shared = sums[others, others] - sums[others, baselines[:, None]]
        yield part, odds, np.concatenate([sums[others, -1], shared], axis=1)


def _others(c: int) -> Codes:
    """Return the classes that are not the baseline, for each baseline."""
    return np.arange(c - 1) + (np.arange(c - 1) >= np.arange(c)[:, None])


def map_parameters(baselines: Floats) -> Floats:
    """Return theta of every map, shape (c, c, c + 1), from (tau, gamma)."""
    c = len(baselines)
    b, j, theta = np.arange(c)[:, None], _others(c), np.zeros((c, c, c + 1))
    theta[b, j, -1], theta[b, j, j] = baselines[:, : c - 1], baselines[:, c - 1 :]
    theta[b, j, b] = -baselines[:, c - 1 :]
    return theta
