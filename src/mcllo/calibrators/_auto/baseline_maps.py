"""Penalised MCLLO fits for all baselines.

====================  ==========================================================================
map of baseline b     ``eta_j = tau_bj + gamma_bj (x_j - x_b)``, ``eta_b = 0``
as a full map         ``theta_b (x, 1)``: gamma_bj at (j, j), -gamma_bj at (j, b), tau_bj last
minimised             ``nll(theta_b) + r/2 (|tau_b|^2 + |gamma_b - 1|^2)`` for each b
mean                  of all ``theta_b``: the geometric mean of the maps
====================  ==========================================================================

Labels enter only through sums that all baselines share. ``gamma_bb`` and ``tau_bb`` do nothing and
stay 1 and 0. Without some of the rows, of gradients g and Hessians H_o at theta_b, a fit begins at
``theta_b + (H - H_o)^-1 g``, which costs a look at these rows alone: one Newton step is left to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..._ground.linalg import solve_each
from ..._ground.results import Codes, Floats
from ..._math.likelihood import identity_theta
from ..._math.many_fits import Problems, each_partition
from ..._math.newton import last_decrement
from .rows import Rows

MOST_TOGETHER = 2**21
"""Log odds of the baselines that are fitted at once: bounds their memory."""


@dataclass(frozen=True, eq=False)
class BaselineMaps:
    """(tau, gamma) of each baseline, shape (c, 2c), and the Hessians there, (c, 2c - 2, 2c - 2)."""

    theta: Floats
    hessian: Floats

    def without(self, rows: Rows) -> Floats:
        """Return (tau, gamma), about, had these rows not been there."""
        found = self.theta.copy()
        for part, places, odds, statistics in _together(rows, MOST_TOGETHER):
            theta = np.take_along_axis(found[part], places, axis=1)
            _, slopes, hessians = each_partition(odds, rows.weight)(theta, np.arange(len(theta)))
            theta += solve_each(self.hessian[part] - hessians, slopes - statistics)
            np.put_along_axis(found[part], places, theta, axis=1)
        return found


def fit_baselines(
    rows: Rows,
    ridge: float,
    tol: float,
    start: Floats | None = None,
    most_together: int = MOST_TOGETHER,
) -> BaselineMaps:
    """Return the best maps, found from (tau, gamma) of `start`; `tol` is what may be left."""
    few = rows.first() if start is None else None
    if few is not None:
        start = fit_baselines(few, ridge, tol).theta
    c = len(rows.scores)
    found = np.tile(np.repeat([0.0, 1.0], c), (c, 1)) if start is None else start.copy()
    hessians = np.empty((c, 2 * c - 2, 2 * c - 2))
    for part, places, odds, statistics in _together(rows, most_together):
        problems = Problems(
            statistics,
            np.take_along_axis(found[part], places, axis=1),
            penalty=ridge,
            centre=identity_theta(c - 1),
            tol=last_decrement(tol),
        )
        minima = problems.minima(odds, rows.weight)
        np.put_along_axis(found[part], places, minima.theta, axis=1)
        hessians[part] = minima.hessian
    return BaselineMaps(found, hessians)


def _together(rows: Rows, most: int) -> Iterator[tuple[slice, Codes, Floats, Floats]]:
    """Yield which baselines, the places of their numbers, log odds (K, B, n) and labels' sums."""
    c, n = rows.scores.shape
    *sums, counts = rows.loss.statistic.T
    own, together = np.diagonal(sums), max(1, most // (c * n))
    everyone = np.arange(c - 1) + (np.arange(c - 1) >= np.arange(c)[:, None])  # but the baseline
    for first in range(0, c, together):
        part = slice(first, first + together)
        others, baselines = everyone[part], np.arange(c)[part]
        odds = rows.scores[others.T]
        odds -= rows.scores[baselines]
        shared = own[others] - np.array(sums)[baselines[:, None], others]
        yield part, np.hstack([others, others + c]), odds, np.hstack([counts[others], shared])


def map_of(baselines: Floats) -> Floats:
    """Return theta of every map, shape (c, c, c + 1), from (tau, gamma)."""
    c = len(baselines)
    tau, gamma, j = baselines[:, :c], baselines[:, c:], np.arange(c)
    theta = np.zeros((c, c, c + 1))
    theta[:, j, j] = gamma
    theta[j, :, j] -= gamma
    theta[..., -1] = tau
    return theta
