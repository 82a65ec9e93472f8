"""Curves of the log odds of two classes: a spline held back by a ridge, and Venn-Abers.

==========  ========================================================================================
scores      ``x = log g_1 - log g_0`` of a row, g the temperature with its lapse rate
units       ``t = (x - m) / s``, m the mean of x and ``s^2`` its variance plus 1e-4
spline      ``f = x + b + a t + sum_k d_k (|t - t_k| - |t_k|)``, straight lines between the knots
            t_k
minimised   ``sum_i w_i (log(1 + exp f_i) - y_i f_i) + 1/2 (1.4 (b^2 + a^2) + 5 |d|^2)``
Venn-Abers  ``p = p1 / (1 - p0 + p1)``: p1 and p0 are what isotonic regression says at x with one
            more row there, of label 1 or 0; its log odds, joined by straight lines
==========  ========================================================================================

The ridge acts on t, not on x: a model whose log odds all lie within a tenth, such as a zero-shot
classifier's, needs a slope of ten or more, and it is the change of the predictions that is to be
small, not that of the slope. Turning the two classes round turns m, t, f and the knots round.

Isotonic regression alone says 0 or 1 at either end. The two answers of Venn-Abers [1]_ are apart by
as much as one row can change, and the mean of theirs that minimises the largest regret in log loss
never reaches 0 or 1. Rows are pooled first, in `MAX_VENN_ABERS_POOLS` parts of about the same
weight, in the order of x; rows of the same x stay together. So the two regressions of all pools are
the max-min formula [2]_ on one small table.

Fits begin at no change, those to parts of the rows as well: they know nothing of labels left out.

References
----------
.. [1] Vovk, Petej, Fedorova (2015), Large-scale probabilistic predictors with and without
       guarantees of validity. NeurIPS 28.
.. [2] Robertson, Wright, Dykstra (1988), Order restricted statistical inference, section 1.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._model.kernel import Derivatives
from ..._model.newton import minimize
from ..._utils.results import Codes, Floats, Result
from .temperature_with_lapse import ScoredRows, stopping_decrement

# t_k of the spline, in standard deviations of the log odds. Round numbers: half of normal log odds
# lie within 0.67 and nine in ten within 1.64. Symmetric, so that turning the classes round works.
KNOTS = np.array([-1.5, -0.75, 0.0, 0.75, 1.5])
# Ridge on intercept and slope (0.7 for each class, as of the other members) and on each change of
# the slope (a round number).
RIDGE = np.array([1.4, 1.4, 5.0, 5.0, 5.0, 5.0, 5.0])

MIN_ROWS_FOR_VENN_ABERS = 200
"""Rows below which there is no Venn-Abers: with 100 it gained .0003 on the mean of 71 sets of two
classes, and did harm in 6 % of cases where the pool without it did in 4 %."""
MAX_VENN_ABERS_POOLS = 63
"""Pools of rows of Venn-Abers: odd, so that turning the classes round cuts at the same rows."""


@dataclass(frozen=True, eq=False)
class Curve(Result):
    """Log odds of the second class, straight lines through the points ``(at, value)``.

    Outside the first and the last point they are constant.
    """

    at: Floats
    value: Floats

    def probabilities(self, logs: Floats) -> Floats:
        """Return probabilities, shape (2, n), of ``log g``."""
        x = logs[1] - logs[0]
        log_odds = np.interp(x, self.at, self.value)
        return np.stack([_logistic(-log_odds), _logistic(log_odds)])

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Curve:
        """Return the curve that `to_dict` described."""
        at = np.array(content["at"], dtype=float)
        value = np.array(content["value"], dtype=float)
        return cls(at, value)


def fit_spline(rows: ScoredRows, max_abs_log_odds: float, tol: float) -> Curve:
    """Return the spline of rows ``log g``, whose log odds are at most `max_abs_log_odds` in size.

    Beyond the last knot the spline is a straight line without end, so that points at the largest
    log odds that g can have say all of it.
    """
    x = _log_odds(rows)
    mean = float(np.average(x, weights=rows.weight_or_ones))
    squares = (x - mean) ** 2
    variance = float(np.average(squares, weights=rows.weight_or_ones))
    scale = float(
        np.sqrt(variance + 1e-4)
    )  # rows that are all but the same tell of no others
    features = _spline_features((x - mean) / scale)
    is_second = rows.codes == 1

    loss = _SplineLoss(x, features, is_second, rows.weight_or_ones)
    solution = minimize(loss, np.zeros(len(RIDGE)), tol=stopping_decrement(tol))
    knots = mean + scale * KNOTS
    inner_knots = knots[np.abs(knots) < max_abs_log_odds]
    at = np.concatenate([[-max_abs_log_odds], inner_knots, [max_abs_log_odds]])
    features_at = _spline_features((at - mean) / scale)
    return Curve(at, at + solution.x @ features_at)


class _SplineLoss:
    """``(b, a, d) -> Derivatives`` of what is minimised."""

    def __init__(
        self, x: Floats, features: Floats, is_second: NDArray[np.bool_], weight: Floats
    ) -> None:
        self.x = x
        self.features = features
        self.weight = weight
        self.weighted_label = weight * is_second

    def __call__(self, coef: Floats) -> Derivatives:
        """Return value, gradient and Hessian."""
        f = self.x + coef @ self.features
        small = np.exp(-np.abs(f))  # never overflows
        p = np.where(f > 0.0, 1.0, small) / (1.0 + small)
        variance = small / (1.0 + small) ** 2
        log_partition = np.log1p(small) + np.maximum(f, 0.0)

        value = self.weight @ log_partition
        value -= self.weighted_label @ f
        value += 0.5 * RIDGE @ (coef * coef)
        residual = self.weight * p - self.weighted_label
        gradient = self.features @ residual + RIDGE * coef
        weighted_features = self.features * (self.weight * variance)
        hessian = weighted_features @ self.features.T + np.diag(RIDGE)
        return Derivatives(float(value), gradient, hessian)


def _spline_features(t: Floats) -> Floats:
    """Return 1, t and ``|t - t_k| - |t_k|``, shape (2 + K, n)."""
    features = np.empty((len(RIDGE), len(t)))
    features[0] = 1.0
    features[1] = t
    for feature, knot in zip(features[2:], KNOTS, strict=True):
        np.abs(t - knot, out=feature)
        feature -= abs(knot)
    return features


def fit_venn_abers(rows: ScoredRows) -> Curve:
    """Return Venn-Abers of rows ``log g``."""
    is_there = rows.weight_or_ones > 0.0
    x = _log_odds(rows)[is_there]
    weight = rows.weight_or_ones[is_there]
    is_second = rows.codes[is_there] == 1

    values, value_of_row = np.unique(x, return_inverse=True)
    weight_of_value = _sum_by_group(value_of_row, weight)
    pool_of_value = _assign_pools(weight_of_value)
    pool_of_row = pool_of_value[value_of_row]
    pool_weight = _sum_by_group(pool_of_value, weight_of_value)
    mean_of_pool = _sum_by_group(pool_of_value, weight_of_value * values) / pool_weight
    label_weight = _sum_by_group(pool_of_row, weight * is_second)

    p0, p1 = _isotonic_with_added_row(label_weight, pool_weight)
    log_odds = np.log(p1) - np.log1p(-p0)
    # Of a run of equal values, flat in between, the two ends will do.
    is_flat = np.isclose(log_odds[1:], log_odds[:-1], rtol=0.0, atol=1e-12)
    is_flat_after = np.append(is_flat, False)
    is_flat_before = np.insert(is_flat, 0, False)
    is_kept = ~(is_flat_before & is_flat_after)
    return Curve(mean_of_pool[is_kept], log_odds[is_kept])


def _assign_pools(weight: Floats) -> Codes:
    """Return the pool of each different value, in rising order."""
    if len(weight) <= MAX_VENN_ABERS_POOLS:
        return np.arange(len(weight))
    middle = np.cumsum(weight) - 0.5 * weight
    part = np.floor(MAX_VENN_ABERS_POOLS * middle / weight.sum())
    _, pool = np.unique(part, return_inverse=True)  # a heavy value leaves parts empty
    return pool


def _isotonic_with_added_row(label_weight: Floats, pool_weight: Floats) -> Floats:
    """Return, for each pool, isotonic regression there with one more row of label 0, or 1: (2, J).

    That is ``max over a <= j of min over b >= j`` of the mean of pools a, ..., b with that row.
    """
    ends = np.cumsum(pool_weight)
    label_ends = np.cumsum(label_weight)
    starts = ends - pool_weight
    label_starts = label_ends - label_weight
    # Of pools a (rows of the table), ..., b (columns), and the row that is added.
    weight = ends - starts[:, None] + 1.0
    label = label_ends - label_starts[:, None]
    is_backward = np.tri(len(pool_weight), k=-1, dtype=bool)  # a > b
    weight[is_backward] = 1.0  # anything but 0

    means = np.stack([label / weight, (label + 1.0) / weight])
    means[:, is_backward] = np.inf
    from_last = means[:, :, ::-1]
    smallest_from_b_on = np.minimum.accumulate(from_last, axis=2)[:, :, ::-1]
    smallest_from_b_on[:, is_backward] = -np.inf
    largest: Floats = smallest_from_b_on.max(axis=1)
    return largest


def _sum_by_group(place: Codes, weight: Floats) -> Floats:
    return np.bincount(place, weights=weight).astype(np.float64, copy=False)


def _log_odds(rows: ScoredRows) -> Floats:
    log_odds = rows.scores[1] - rows.scores[0]
    return np.asarray(log_odds, dtype=np.float64)


def _logistic(f: Floats) -> Floats:
    small = np.exp(-np.abs(f))
    return np.where(f > 0.0, 1.0, small) / (1.0 + small)
