"""Penalised MCLLO fits for all baselines.

====================  ==========================================================================
map of baseline b     ``eta_j = tau_bj + gamma_bj (x_j - x_b)``, ``eta_b = 0``
as a full map         ``theta_b (x, 1)``: gamma_bj at (j, j), -gamma_bj at (j, b), tau_bj last
minimised             ``nll(theta_b) + r/2 (|tau_b|^2 + |gamma_b - 1|^2)`` for each b
mean                  of all ``theta_b``: the geometric mean of the maps
====================  ==========================================================================

Labels enter only through sums that all baselines share. ``gamma_bb`` and ``tau_bb`` do nothing and
stay 1 and 0.
"""

from __future__ import annotations

import numpy as np

from ..._ground.results import Floats
from ..._math.likelihood import identity_theta
from ..._math.linear_map import LinearMapLoss
from ..._math.many_fits import Problems
from .rows import Rows

MOST_TOGETHER = 2**21
"""Log odds of the baselines that are fitted at once: bounds their memory."""


def fit_baselines(
    rows: Rows,
    ridge: float,
    tol: float,
    start: Floats | None = None,
    most_together: int = MOST_TOGETHER,
) -> Floats:
    """Return (tau, gamma) of each baseline, shape (c, 2c), from those of `start`."""
    few = rows.first() if start is None else None
    if few is not None:
        start = fit_baselines(few, ridge, tol)
    c, n = rows.scores.shape
    found = np.tile(np.repeat([0.0, 1.0], c), (c, 1)) if start is None else start.copy()
    *sums, counts = LinearMapLoss(rows.scores, rows.codes, rows.weight).statistic.T
    own, together = np.diagonal(sums), max(1, most_together // (c * n))
    everyone = np.array([np.delete(np.arange(c), b) for b in range(c)])
    for first in range(0, c, together):
        part = slice(first, first + together)
        others, baselines = everyone[part], np.arange(c)[part]
        odds = rows.scores[others.T]
        odds -= rows.scores[baselines]
        shared = own[others] - np.array(sums)[baselines[:, None], others]
        places = np.hstack([others, others + c])
        problems = Problems(
            np.hstack([counts[others], shared]),
            np.take_along_axis(found[part], places, axis=1),
            penalty=ridge,
            centre=identity_theta(c - 1),
            tol=tol,
        )
        np.put_along_axis(found[part], places, problems.minima(odds, rows.weight).theta, axis=1)
    return found


def map_of(baselines: Floats) -> Floats:
    """Return theta of every map, shape (c, c, c + 1), from (tau, gamma)."""
    c = len(baselines)
    tau, gamma, j = baselines[:, :c], baselines[:, c:], np.arange(c)
    theta = np.zeros((c, c, c + 1))
    theta[:, j, j] = gamma
    theta[j, :, j] -= gamma
    theta[..., -1] = tau
    return theta
