"""How often are predictions right when they say 94 %? By the fitted map, and as observed.

At a level p the rows near it are those whose top probability is within h(p) of p, few enough to be
alike and at least `FEWEST_ROWS`:

====================  ==========================================================================
right                 ``p + mean (g_top - x_top)`` over the rows near p: what the map says
observed              ``p + mean (1[y = top] - x_top)``: the share of right answers, both moved by
                      how far the mean prediction near p is from p
its interval          delta method on the logit of `right`: ``a' Cov a``, a the mean of
                      ``g_top (z_top - sum_k g_k z_k)``, z_k the 2K features of class k
====================  ==========================================================================
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._ground.results import Floats, Result
from ..._input.predictions import Predictions
from ..._math.kernel import mapped
from .law import Moved, covariance_root

LEVELS = (
    *(0.01, 0.02, 0.05, 0.10, 0.15, 0.20, 0.25, 0.30, 0.35, 0.40, 0.45, 0.50, 0.55, 0.60, 0.65),
    *(0.70, 0.75, 0.80, 0.85, 0.90, 0.95, 0.98, 0.99, 0.999),
)
"""Levels to choose from."""
PLACES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Quantiles of the top probability that levels should be near."""
FEWEST_ROWS, FEWEST_SHARE = 30, 0.01
"""Rows near a level, and their share, from which it is shown."""
WIDEST = 0.03
CERTAIN = 1e-9


@dataclass(frozen=True, eq=False)
class RightAt(Result):
    """How often rows near a level are `right` by the fitted map, and how often they were.

    It `says` how probable the top class is; `low` and `high`, the interval of `right`, are NaN
    where there is none. There are `n_samples` rows.
    """

    says: float
    right: float
    low: float
    high: float
    observed: float
    n_samples: int


def width_at(level: float) -> float:
    """Return how far rows near a level may be from it."""
    return min(WIDEST, 0.3 * level, 0.4 * (1.0 - level))


def chosen_levels(top: Floats, weight: Floats, times: Floats) -> list[float]:
    """Return at most five levels that the rows support, in order.

    Rows of top probability `top` count with `weight`, and each stands for `times` rows.
    """
    from scipy.special import logit

    near = [(p, np.abs(top - p) <= width_at(p)) for p in LEVELS]
    many = [(p, weight[rows].sum()) for p, rows in near if times[rows].sum() >= FEWEST_ROWS]
    fit = [p for p, found in many if found >= FEWEST_SHARE * weight.sum()]
    if not fit:
        return []
    order = np.argsort(top, kind="stable")
    upto = np.cumsum(weight[order]) / weight.sum()
    found = top[order[np.minimum(np.searchsorted(upto, PLACES), len(top) - 1)]]
    places = logit(np.clip(found, 1e-12, 1.0 - 1e-12))
    return sorted({fit[int(np.argmin(np.abs(logit(fit) - place)))] for place in places})


def levels_of(
    rows: Predictions,
    moved: Moved,
    theta: Floats,
    covariance: Floats | None,
    confidence: float,
    n_samples: int,
) -> tuple[RightAt, ...]:
    """Return how often rows near a few levels are right, by the map `theta`.

    `rows` may be a sample of `n_samples`.
    """
    from scipy.special import expit, logit, ndtri

    times = np.full(rows.n_samples, n_samples / rows.n_samples)
    if rows.sample_weight is not None and rows.counts_rows:
        times = times * rows.sample_weight
    reach = float(ndtri(0.5 + 0.5 * confidence))
    root = None if covariance is None else covariance_root(covariance)
    hit = moved.top == rows.model_codes
    k, odds, (g, _) = len(moved.odds), moved.odds, mapped(theta, moved.odds)
    top = g[moved.top, np.arange(len(moved.top))]
    found = []
    for level in chosen_levels(moved.top_probs, moved.weight, times):
        near = np.flatnonzero(np.abs(moved.top_probs - level) <= width_at(level))
        share = moved.weight[near] / moved.weight[near].sum()
        moves = level - float(moved.top_probs[near] @ share)
        shares = [float(values[near] @ share) + moves for values in (top, hit)]
        right, observed = np.clip(shares, CERTAIN, 1.0 - CERTAIN).tolist()
        low = high = float("nan")
        if root is not None:
            own, by_class = (moved.top[near], np.arange(len(near))), -g[:, near] * top[near]
            by_class[own] += top[near]
            slope = np.concatenate([by_class[:k] @ share, (by_class[:k] * odds[:, near]) @ share])
            error = reach * float(np.linalg.norm(slope @ root)) / (right * (1.0 - right))
            low, high = (float(expit(logit(right) + step)) for step in (-error, error))
        found.append(RightAt(level, right, low, high, observed, round(float(times[near].sum()))))
    return tuple(found)
