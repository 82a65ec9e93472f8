"""The member `mcllo`: penalised MCLLO fits for all baselines, and the geometric mean of their maps.

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

from ..._model.batched import BatchedProblems, build_log_partitions
from ..._model.likelihood import identity_theta
from ..._utils.linalg import solve_each
from ..._utils.results import Codes, Floats
from .temperature_with_lapse import ScoredRows, last_decrement

MAX_LOG_ODDS_AT_ONCE = (
    2**21
)  # of the baselines that are fitted at once: bounds the memory


@dataclass(frozen=True, eq=False)
class BaselineMaps:
    """(tau, gamma) of each baseline, shape (c, 2c - 2), and the Hessians there."""

    theta: Floats
    hessian: Floats

    def without(self, rows: ScoredRows) -> BaselineMaps:
        """Return the maps, about, had these rows not been there: one Newton step."""
        theta = self.theta.copy()
        hessian = self.hessian.copy()
        for part, log_odds, statistics in _baseline_batches(rows, MAX_LOG_ODDS_AT_ONCE):
            partitions = build_log_partitions(log_odds, rows.weight, log_odds.shape[1])
            terms = [at(own) for at, own in zip(partitions, theta[part], strict=True)]
            expected = np.array([term.gradient for term in terms])
            lost = np.array([term.hessian for term in terms])
            # The gradient of the rows left out is `expected - statistics`, and that of all rows is
            # 0: the rows that are kept have the same with the other sign.
            hessian[part] -= lost
            theta[part] += solve_each(hessian[part], expected - statistics)
        return BaselineMaps(theta, hessian)


def fit_baselines(
    rows: ScoredRows,
    ridge: float,
    tol: float,
    near: BaselineMaps | None = None,
    max_log_odds: int = MAX_LOG_ODDS_AT_ONCE,
) -> BaselineMaps:
    """Return the best map of each baseline.

    Parameters
    ----------
    rows : ScoredRows
        The rows.
    ridge : float
        r.
    tol : float
        Decrement, in nats, that may be left.
    near : BaselineMaps, optional
        Where to begin; by default at a fit to some of the rows where there are many, else at the
        identity.
    max_log_odds : int
        Log odds of baselines that are fitted together.
    """
    c = len(rows.scores)
    identity = identity_theta(c - 1)
    if near is None:
        some_rows = rows.first()
        if some_rows is not None:
            near = fit_baselines(some_rows, ridge, tol)
    theta = np.tile(identity, (c, 1)) if near is None else near.theta.copy()

    hessian = np.empty((c, len(identity), len(identity)))
    for part, log_odds, statistics in _baseline_batches(rows, max_log_odds):
        problems = BatchedProblems(
            statistics,
            theta[part],
            penalty=ridge,
            centre=identity,
            tol=last_decrement(tol),
        )
        minima = problems.minimize_all(log_odds, rows.weight)
        theta[part] = minima.theta
        hessian[part] = minima.hessian
    return BaselineMaps(theta, hessian)


def _baseline_batches(
    rows: ScoredRows, max_log_odds: int
) -> Iterator[tuple[slice, Floats, Floats]]:
    """Yield baselines, their log odds (c - 1, B, n) and their sufficient statistics (B, 2c - 2)."""
    c, n_rows = rows.scores.shape
    label_sums = (
        rows.loss.statistic
    )  # of label j: at (j, k) the sum of x_k, last their number
    n_at_once = max(1, max_log_odds // (c * n_rows))
    for first in range(0, c, n_at_once):
        part = slice(first, first + n_at_once)
        baselines = np.arange(c)[part]
        others = _other_classes(c)[part]
        log_odds = rows.scores[others.T]
        log_odds -= rows.scores[baselines]
        counts = label_sums[others, -1]
        sums = label_sums[others, others] - label_sums[others, baselines[:, None]]
        yield part, log_odds, np.concatenate([counts, sums], axis=1)


def _other_classes(c: int) -> Codes:
    """Return the classes that are not the baseline, for each baseline: shape (c, c - 1)."""
    place = np.arange(c - 1)
    is_after_baseline = place >= np.arange(c)[:, None]
    return place + is_after_baseline


def map_parameters(baseline_theta: Floats) -> Floats:
    """Return theta of every map, shape (c, c, c + 1), from (tau, gamma)."""
    c = len(baseline_theta)
    tau = baseline_theta[:, : c - 1]
    gamma = baseline_theta[:, c - 1 :]
    b = np.arange(c)[:, None]
    j = _other_classes(c)
    theta = np.zeros((c, c, c + 1))
    theta[b, j, -1] = tau
    theta[b, j, j] = gamma
    theta[b, j, b] = -gamma
    return theta
