"""Curves of the log odds of two classes: a spline held back by a ridge, and Venn-Abers.

==========  ========================================================================================
scores      ``x = log g_1 - log g_0`` of a row, g the temperature with its slip
units       ``t = (x - m) / s``, m the mean of x and ``s^2`` its variance plus `MIN_VARIANCE`
spline      ``f = x + b + a t + sum_k d_k (|t - t_k| - |t_k|)``, straight lines between the knots
            t_k
minimised   ``sum_i w_i (log(1 + exp f_i) - y_i f_i) + 1/2 (1.4 (b^2 + a^2) + 5 |d|^2)``
Venn-Abers  ``p = p1 / (1 - p0 + p1)``: p1 and p0 are what isotonic regression says at x with one
            more row there, of label 1 or 0; its log odds, joined by straight lines
==========  ========================================================================================

The ridge acts on t, not on x: a model whose log odds all lie within a tenth, such as a zero-shot
classifier's, needs a slope of ten or more, and it is the change of the predictions that is to be
small, not that of the slope. Turning the two classes round turns m, t, f and the knots round.

Isotonic regression alone says 0 or 1 at either end. The two answers of Venn-Abers (Vovk, Petej
and Fedorova 2015) are apart by as much as one row can change, and the mean of theirs that minimises
the largest regret in log loss never reaches 0 or 1. Rows are pooled first, in
`MAX_VENN_ABERS_POOLS` parts of about the same weight, in the order of x; rows of the same x stay
together. So the two regressions of all pools are the max-min formula on one small table.

Fits begin at no change, those to parts of the rows as well: they know nothing of labels left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._model.kernel import Derivatives
from ..._model.newton import last_decrement, minimize
from ..._utils.results import Codes, Floats, Result
from .scored_rows import VALUE_TOL, ScoredRows

RIDGE = 1.4  # on intercept and slope: ``0.7 c`` as of other members
BEND_RIDGE = 5.0  # on each change of the slope
KNOTS = np.array([-1.5, -0.75, 0.0, 0.75, 1.5])
"""t_k of the spline."""
RIDGE_OF_PARAMETER = np.array([RIDGE, RIDGE, *(BEND_RIDGE for _ in KNOTS)])
MIN_VARIANCE = 1e-4
"""Added to the variance of x: rows that are all but the same tell nothing of the others."""
MIN_ROWS_FOR_VENN_ABERS = 200
"""Rows below which there is no Venn-Abers: with 100 it gained .0003 on the mean of 71 sets of two
classes, and did harm in 6 % of cases where the pool without it did in 4 %."""
MAX_VENN_ABERS_POOLS = 63
"""Pools of rows of Venn-Abers; odd, so that turning the classes round cuts at the same rows."""


@dataclass(frozen=True, eq=False)
class Curve(Result):
    """Log odds of the second class, straight lines through the points ``(at, value)``.

    Outside the first and the last point they are constant.
    """

    at: Floats
    value: Floats

    def probabilities(self, logs: Floats) -> Floats:
        """Return probabilities, shape (2, n), of ``log g``."""
        odds = np.interp(logs[1] - logs[0], self.at, self.value)
        return np.stack([_logistic(-odds), _logistic(odds)])

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Curve:
        """Return the curve that `to_dict` described."""
        return cls(*(np.array(content[name], dtype=float) for name in ("at", "value")))


def fit_spline(rows: ScoredRows, furthest: float, tol: float) -> Curve:
    """Return the spline of rows ``log g``, whose log odds lie within `furthest` of 0."""
    x, weight = _log_odds(rows), rows.unit
    mean = float(np.average(x, weights=weight))
    spread = float(np.sqrt(np.average((x - mean) ** 2, weights=weight) + MIN_VARIANCE))
    loss = _SplineLoss(x, _features((x - mean) / spread), rows.codes == 1, weight)
    start, last = np.zeros(len(RIDGE_OF_PARAMETER)), last_decrement(tol)
    found = minimize(loss, start, tol=last, skip_hessian_check=True, f_noise=VALUE_TOL).x
    knots = mean + spread * KNOTS
    inside = knots[np.abs(knots) < furthest]
    at = np.concatenate([[-furthest], inside, [furthest]])
    return Curve(at, at + found @ _features((at - mean) / spread))


def fit_venn_abers(rows: ScoredRows) -> Curve:
    """Return Venn-Abers of rows ``log g``."""
    own = rows.unit > 0.0
    x, weight, codes = _log_odds(rows)[own], rows.unit[own], rows.codes[own]
    values, value_of_row = np.unique(x, return_inverse=True)
    weights = _sums(value_of_row, weight)
    pool = np.arange(len(values))
    if len(values) > MAX_VENN_ABERS_POOLS:
        middle = np.cumsum(weights) - 0.5 * weights
        part = np.floor(MAX_VENN_ABERS_POOLS * middle / weights.sum())
        _, pool = np.unique(part, return_inverse=True)
    total = _sums(pool, weights)
    at = _sums(pool, weights * values) / total
    hits = _sums(pool[value_of_row], weight * (codes == 1))
    lower, upper = _isotonic_with_one(hits, total)
    value = np.log(upper) - np.log1p(-lower)
    # of a run of equal values the ends will do
    same = np.isclose(value[1:], value[:-1], rtol=0.0, atol=1e-12)
    needed = ~(np.append(same, False) & np.insert(same, 0, False))
    return Curve(at[needed], value[needed])


def _sums(place: Codes, weight: Floats) -> Floats:
    return np.bincount(place, weights=weight).astype(np.float64, copy=False)


def _isotonic_with_one(hits: Floats, total: Floats) -> Floats:
    """Return, for each pool, isotonic regression there with one more row of label 0, or 1: (2, J).

    That is ``max over a <= j of min over b >= j`` of the mean of pools a, ..., b with that row.
    """
    ends, sums = np.cumsum(total), np.cumsum(hits)
    sizes = ends - (ends - total)[:, None] + 1.0
    own = sums - (sums - hits)[:, None]
    backward = np.tri(len(total), k=-1, dtype=bool)  # a > b
    sizes[backward] = 1.0
    means = np.stack([own / sizes, (own + 1.0) / sizes])
    means[:, backward] = np.inf
    least = np.minimum.accumulate(means[:, :, ::-1], axis=2)[:, :, ::-1]
    least[:, backward] = -np.inf
    largest: Floats = least.max(axis=1)
    return largest


def _log_odds(rows: ScoredRows) -> Floats:
    return np.asarray(rows.scores[1] - rows.scores[0], dtype=np.float64)


def _features(t: Floats) -> Floats:
    """Return 1, t and ``|t - t_k| - |t_k|``, shape (2 + K, n)."""
    features = np.empty((len(RIDGE_OF_PARAMETER), len(t)))
    features[0], features[1] = 1.0, t
    for feature, knot in zip(features[2:], KNOTS, strict=True):
        np.abs(t - knot, out=feature)
        feature -= abs(knot)
    return features


class _SplineLoss:
    """``(b, a, d) -> Derivatives`` of what is minimised."""

    def __init__(self, x: Floats, features: Floats, hit: NDArray[np.bool_], weight: Floats) -> None:
        self.x, self.features, self.weight = x, features, weight
        self.weighted_hit = weight * hit

    def __call__(self, b: Floats) -> Derivatives:
        """Return value, gradient and Hessian."""
        f = self.x + b @ self.features
        small = np.exp(-np.abs(f))
        costs = np.log1p(small) + np.maximum(f, 0.0)
        value = self.weight @ costs - self.weighted_hit @ f + 0.5 * RIDGE_OF_PARAMETER @ (b * b)
        p = np.where(f > 0.0, 1.0, small) / (1.0 + small)
        gradient = self.features @ (self.weight * p - self.weighted_hit) + RIDGE_OF_PARAMETER * b
        curved = self.features * (self.weight * small / (1.0 + small) ** 2)
        hessian = curved @ self.features.T + np.diag(RIDGE_OF_PARAMETER)
        return Derivatives(float(value), gradient, hessian)


def _logistic(f: Floats) -> Floats:
    small = np.exp(-np.abs(f))
    return np.where(f > 0.0, 1.0, small) / (1.0 + small)
