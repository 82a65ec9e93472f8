"""What rows show without a model: how often they are right near 94 %, and the least mean error.

`observed_levels`: how often are predictions right when they say 94 %?

At a level p, over the m rows whose top probability is nearest to p:

====================  ==========================================================================
right                 ``p + mean (1[y = top] - x_top)``: the share of right answers, moved by how
                      far the mean prediction of these rows is from p
its interval          Wilson's for the share of right answers, moved as far
m                     `n_rows_near`: an eighth of the rows while they are few (50 at least), then
                      400, and ``n^(2/3)`` of many, so that rows near a level stay alike as n
                      grows; fewer where fewer are within ``2 d(p)``. A level is shown where 30
                      rows, and 1 % of all, are within ``d(p)``, its `max_distance_at_level`
====================  ==========================================================================

Nothing is assumed of how labels depart from predictions, only that the departure hardly varies
between rows this near; ``docs/explanation/effect-size.md`` has the coverage, inside and outside the
model. Wilson's interval counts effective rows:

====================  ==========================================================================
weights               ``(sum w)^2 / sum w^2`` rows (Kish), where weights are no counts
groups                fewer by the design effect ``1 + r (pairs of a group)``, r the correlation
                      of residuals within groups, from all rows; Student's t for the normal
====================  ==========================================================================

What the fitted map says of the same level stands beside it (`map_right`). It is much narrower, and
false where the truth is no shift or slope of the log odds:

====================  ==========================================================================
map_right             ``p + mean (g_top - x_top)`` over the rows within ``d(p)``
its interval          delta method on the logit of `map_right`: ``a' Cov a``, a the mean of
                      ``g_top (z_top - sum_k g_k z_k)``, z_k the 2K features of class k
====================  ==========================================================================

`observed_error_bounds`: how much probability stands on the wrong classes at least, whatever the
shape of the error?

For any set of classes ``A_i`` chosen without looking at the label of row i,

    ``mean_i (1[y_i in A_i] - sum_{j in A_i} x_ij)``

is, on average, what the labels give ``A_i`` beyond what was predicted, and that is at most the
total variation distance of truth and prediction. So its lower confidence limit is one of the mean
error, with no model at all. The sets come from the other folds of rows (cross-fitting):

==================  ============================================================================
class by class      class j is in ``A_i`` if rows of other folds with a similar ``x_j`` came true
                    more often than predicted, by more than one standard error
top class           ``A_i`` is the top class, or all others, if rows of other folds that were as
                    sure were right more, or less, often than they said
in the large        ``A_i`` is the top class in all rows, or all others: |accuracy - confidence|
==================  ============================================================================

The bound is the largest of the three lower limits, each of a third of the error probability.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._model.kernel import probabilities_and_log_sums
from .._utils.results import Codes, Floats, Result
from .._validation.predictions import Predictions
from ..metrics._bins import top_label
from ..metrics._scores import standard_error_of_mean
from .effect_size_distribution import MapChanges
from .goodness_of_fit import equal_weight_parts

LEVELS = (
    *(
        0.01,
        0.02,
        0.05,
        0.10,
        0.15,
        0.20,
        0.25,
        0.30,
        0.35,
        0.40,
        0.45,
        0.50,
        0.55,
        0.60,
        0.65,
    ),
    *(0.70, 0.75, 0.80, 0.85, 0.90, 0.95, 0.98, 0.99, 0.999),
)
"""Levels to choose from: numbers that people say."""
TOP_PROB_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Quantiles of the top probability that levels should be near."""
MIN_ROWS_AT_LEVEL = 30  # rows near a level from which it is shown: a round number
# rows that a level is estimated from at least, if so many are near enough
MIN_ROWS_NEAR = 50
MIN_ROWS_NEAR_GROWTH = 400
"""Rows from which on their number grows as ``n^(2/3)``: from 8,000 rows in all."""
MIN_DISTANCE_FROM_CERTAINTY = 1e-9  # of what the map says: its logit must be finite


@dataclass(frozen=True, eq=False)
class RightAt(Result):
    """How often rows near a level are right: as observed, and by the fitted map.

    Attributes
    ----------
    says : float
        The level: how probable the top class is said to be.
    right, low, high : float
        Share of right answers among the rows near the level, with its interval; no model.
    n_samples : int
        Rows that this rests on.
    map_right, map_low, map_high : float
        What the fitted map says; NaN where there is no such number. It holds only if what is wrong
        is a shift or slope of the log odds.
    """

    says: float
    right: float
    low: float
    high: float
    n_samples: int
    map_right: float = math.nan
    map_low: float = math.nan
    map_high: float = math.nan


def max_distance_at_level(level: float) -> float:
    """Return how far rows near a level may be from it: less towards 0 and 1, where a share of right
    answers changes faster.
    """
    return min(0.03, 0.3 * level, 0.4 * (1.0 - level))


def n_rows_near(n_samples: float) -> int:
    """Return from how many rows a level is estimated.

    Examples
    --------
    >>> [n_rows_near(n) for n in (100, 2000, 8000, 1_000_000)]
    [50, 250, 400, 10000]
    """
    most = max(MIN_ROWS_NEAR_GROWTH, round(n_samples ** (2.0 / 3.0)))
    eighth = round(n_samples / 8.0)
    return max(MIN_ROWS_NEAR, min(eighth, most))


def choose_levels(top_probs: Floats, weight: Floats, times: Floats) -> list[float]:
    """Return at most five levels that the rows support, in order.

    Rows of top probability `top_probs` count with `weight`, and each stands for `times` rows.

    1. Levels with 30 rows near them, and 1 % of all.
    2. Of these, for each of `TOP_PROB_QUANTILES` of the rows the nearest one on the scale of
       logits.
    """
    from scipy.special import logit

    # 1.
    supported = []
    for level in LEVELS:
        is_near = np.abs(top_probs - level) <= max_distance_at_level(level)
        has_rows = times[is_near].sum() >= MIN_ROWS_AT_LEVEL
        has_share = weight[is_near].sum() >= 0.01 * weight.sum()
        if has_rows and has_share:
            supported.append(level)
    if not supported:
        return []
    # 2.
    order = np.argsort(top_probs, kind="stable")
    cumulative = np.cumsum(weight[order]) / weight.sum()
    places = np.searchsorted(cumulative, TOP_PROB_QUANTILES)
    places = np.minimum(places, len(top_probs) - 1)
    quantiles = np.clip(
        top_probs[order[places]], 1e-12, 1.0 - 1e-12
    )  # their logits are finite
    logits = logit(supported)
    chosen = set()
    for quantile in logit(quantiles):
        nearest = int(np.argmin(np.abs(logits - quantile)))
        chosen.add(supported[nearest])
    return sorted(chosen)


def observed_levels(predictions: Predictions, confidence: float) -> tuple[RightAt, ...]:
    """Return how often rows near a few levels are right, whatever the predictions do wrong."""
    rows = _TopRows(predictions)
    times = rows.weight if rows.counts_rows else np.ones(len(rows.top))
    levels = choose_levels(rows.top, rows.weight, times)
    return tuple(_estimate_level(rows, times, level, confidence) for level in levels)


def _estimate_level(
    rows: _TopRows, times: Floats, level: float, confidence: float
) -> RightAt:
    """Return the estimate of one level from the rows nearest to it."""
    distance = np.abs(rows.top - level)
    near = np.flatnonzero(distance <= 2.0 * max_distance_at_level(level))
    near = near[np.argsort(distance[near], kind="stable")]
    n_wanted = n_rows_near(float(times.sum()))
    last = int(np.searchsorted(np.cumsum(times[near]), n_wanted))
    last = min(last, len(near) - 1)
    # Rows that are equally near (votes, rounded numbers) are all taken, so that order is nothing;
    # 1e-12 since distances are rounded.
    farthest = distance[near[last]]
    near = near[distance[near] <= farthest + 1e-12]
    share = rows.weight[near] / rows.weight[near].sum()
    hit_rate = float(rows.hit[near] @ share)
    shift = level - float(
        rows.top[near] @ share
    )  # from the mean prediction of these rows
    quantile = rows.interval_quantile(near, confidence)
    wilson_low, wilson_high = wilson_interval(
        hit_rate, rows.n_effective(near), quantile
    )
    right = min(max(hit_rate + shift, 0.0), 1.0)
    low = min(max(wilson_low + shift, 0.0), 1.0)
    high = min(max(wilson_high + shift, 0.0), 1.0)
    # All were right: 1, and not 0.9999 because the rows were a little surer than the level. Not by
    # hit_rate, a sum of shares, which is 1 or a rounding less, by the machine.
    if rows.hit[near][share > 0.0].all():
        right = 1.0
        high = 1.0
    n_samples = round(float(times[near].sum()))
    return RightAt(level, right, low, high, n_samples)


class _TopRows:
    """Top probability, whether it came true, weight and group of each row."""

    def __init__(self, predictions: Predictions) -> None:
        top_class, self.top = top_label(predictions.probs)
        self.hit = (top_class == predictions.codes).astype(np.float64)
        self.weight = predictions.row_weight
        self.counts_rows = predictions.counts_rows
        self.groups: Codes | None = predictions.groups
        self.correlation = (
            0.0 if self.groups is None else self._correlation_within_groups(self.groups)
        )

    def _squared_weights(self, rows: Codes) -> Floats:
        """Return what a row adds to the variance of a weighted sum, in variances of one label.

        A row that stands for w rows adds w variances, a row that is weighted by w adds ``w^2``.
        """
        weight = self.weight[rows]
        return weight if self.counts_rows else weight**2

    def _correlation_within_groups(self, groups: Codes) -> float:
        """Return the correlation of residuals within groups, at least 0.

        It is taken from all rows: those near one level are too few of each group to tell.
        """
        residual = self.hit - self.top
        residual = residual - np.average(residual, weights=self.weight)
        squared_residual = residual**2
        every_row = np.arange(len(residual))
        squared_weights = self._squared_weights(every_row)
        group_sums = np.bincount(groups, self.weight * residual)
        of_all_pairs = group_sums @ group_sums
        of_rows_with_themselves = squared_weights @ squared_residual
        products_of_pairs = float(of_all_pairs - of_rows_with_themselves)
        weight_of_pairs = _weight_of_pairs(self.weight, squared_weights, groups)
        total = float(self.weight.sum())
        variance = float(self.weight @ squared_residual) / total
        if not (weight_of_pairs > 0.0 and variance > 0.0):
            return 0.0
        correlation = products_of_pairs / weight_of_pairs / variance
        return min(1.0, max(0.0, correlation))

    def n_effective(self, rows: Codes) -> float:
        """Return how many independent rows of equal weight average as well as these."""
        weight = self.weight[rows]
        squared = self._squared_weights(rows)
        variance = float(squared.sum())
        if self.groups is not None:
            variance += self.correlation * _weight_of_pairs(
                weight, squared, self.groups[rows]
            )
        return float(weight.sum()) ** 2 / variance

    def interval_quantile(self, rows: Codes, confidence: float) -> float:
        """Return that of the normal distribution, or of Student's t where rows are in groups."""
        from scipy.special import ndtri, stdtrit

        upper = 0.5 + 0.5 * confidence
        if self.groups is None:
            return float(ndtri(upper))
        n_groups = len(np.unique(self.groups[rows]))
        return float(stdtrit(max(1, n_groups - 1), upper))


def _weight_of_pairs(weight: Floats, squared: Floats, groups: Codes) -> float:
    """Return the sum of the products of weights over all ordered pairs of rows of one group."""
    group_sums = np.bincount(groups, weight)
    return float(group_sums @ group_sums - squared.sum())


def wilson_interval(share: float, n: float, quantile: float) -> tuple[float, float]:
    """Return Wilson's (1927) interval of a share of n rows.

    Examples
    --------
    >>> [round(end, 4) for end in wilson_interval(0.9, 100, 1.959964)]
    [0.8256, 0.9448]
    """
    square = quantile**2 / n
    denominator = 1.0 + square
    middle = (share + 0.5 * square) / denominator
    variance = share * (1.0 - share) + 0.25 * square
    half_width = math.sqrt(square * variance) / denominator
    return middle - half_width, middle + half_width


def map_interval_at_level(
    changes: MapChanges,
    theta: Floats,
    covariance: Floats | None,
    level: float,
    confidence: float,
) -> tuple[float, float, float]:
    """Return what the map `theta` says of a level, with its interval; NaN without rows there."""
    from scipy.special import expit, logit, ndtri

    distance = np.abs(changes.top_probs - level)
    near = np.flatnonzero(distance <= max_distance_at_level(level))
    if not len(near):
        return math.nan, math.nan, math.nan
    odds = changes.odds[:, near]
    offered = None if changes.offered is None else changes.offered[:, near]
    g, _ = probabilities_and_log_sums(theta, odds, offered)
    top_cells = (changes.top[near], np.arange(len(near)))
    g_top = g[top_cells]
    share = changes.weight[near] / changes.weight[near].sum()
    change = g_top - changes.top_probs[near]
    right = level + float(change @ share)
    right = min(
        max(right, MIN_DISTANCE_FROM_CERTAINTY), 1.0 - MIN_DISTANCE_FROM_CERTAINTY
    )
    if covariance is None:
        return right, math.nan, math.nan
    # Derivatives of g_top by the linear predictor of each class, then by tau and gamma.
    by_class = -g * g_top
    by_class[top_cells] += g_top
    k = len(odds)
    gradient = np.concatenate([by_class[:k] @ share, (by_class[:k] * odds) @ share])
    varies = ~np.isnan(
        np.diagonal(covariance)
    )  # a parameter that is fixed adds nothing
    if not varies.all():
        gradient = gradient[varies]
        covariance = covariance[np.ix_(varies, varies)]
    variance = float(gradient @ covariance @ gradient)
    standard_error = math.sqrt(max(0.0, variance))
    logit_error = standard_error / (right * (1.0 - right))
    margin = float(ndtri(0.5 + 0.5 * confidence)) * logit_error
    low = float(expit(logit(right) - margin))
    high = float(expit(logit(right) + margin))
    return right, low, high


N_FOLDS = 5


class ObservedError(NamedTuple):
    """What the rows show of the mean error without a model.

    `at_least` is the lower limit of the probability on the wrong classes, 0 where there is none;
    `in_the_large` the difference of accuracy and mean confidence, without its sign, with the limits
    `large_low` and `large_high`.
    """

    at_least: float
    in_the_large: float
    large_low: float
    large_high: float


def observed_error_bounds(predictions: Predictions, confidence: float) -> ObservedError:
    """Return the lower limit, of one-sided level ``(1 + confidence) / 2``."""
    from scipy.special import ndtri

    rows = _FoldedRows(predictions)
    error_probability = 1.0 - (0.5 + 0.5 * confidence)
    quantile = float(ndtri(0.5 + 0.5 * confidence))
    # Each of the three limits has a third; that in the large, of either sign, half of its third.
    quantile_of_third = float(ndtri(1.0 - error_probability / 3.0))
    quantile_of_sixth = float(ndtri(1.0 - error_probability / 3.0 / 2.0))
    large, large_error = rows.mean_and_error(rows.hit - rows.top, rows.top)
    limits = [abs(large) - quantile_of_sixth * large_error]
    for excess, prob in (rows.excess_of_classes(), rows.excess_of_top()):
        mean, error = rows.mean_and_error(excess, prob)
        limits.append(mean - quantile_of_third * error)
    return ObservedError(
        at_least=max(0.0, *limits),
        in_the_large=abs(large),
        large_low=max(0.0, abs(large) - quantile * large_error),
        large_high=abs(large) + quantile * large_error,
    )


class _FoldedRows:
    """Predictions, labels and folds: what sets are made from."""

    def __init__(self, predictions: Predictions) -> None:
        self.probs = predictions.probs
        self.codes = predictions.codes
        self.weight = predictions.row_weight
        n = len(self.codes)
        # Weights that are no counts: each row is a unit of its own, whatever its weight.
        self.units: Codes | None = predictions.groups
        if self.units is None and not predictions.counts_rows:
            self.units = np.arange(n)
        self.top_class = self.probs.argmax(axis=1)
        self.top = self.probs[np.arange(n), self.top_class]
        self.hit = (self.top_class == self.codes).astype(np.float64)
        # Every fold gets sure and unsure rows alike, and groups whole.
        order = np.argsort(self.top, kind="stable")
        places = np.argsort(order, kind="stable")
        if predictions.groups is not None:
            places = np.unique(predictions.groups, return_inverse=True)[1]
        self.fold = places % N_FOLDS

    def mean_and_error(self, excess: Floats, prob: Floats) -> tuple[float, float]:
        """Return the weighted mean of the excess of sets of probability `prob`, and its error.

        The error is the observed one, or that of labels drawn from the predictions if it is larger:
        of sure rows few errors decide, and where these are missing by chance the observed error is
        too small.
        """
        mean = float(np.average(excess, weights=self.weight))
        observed, _ = standard_error_of_mean(excess - mean, self.weight, self.units)
        squares = self.weight if self.units is None else self.weight**2
        variance = squares @ (prob * (1.0 - prob))
        expected = float(np.sqrt(variance)) / float(self.weight.sum())
        return mean, max(observed, expected)

    def excess_of_top(self) -> tuple[Floats, Floats]:
        """Return the excess of the top class, or of all others, by what other folds show.

        And the predicted probability of that set; 0 where it is empty.
        """
        residual = self.hit - self.top
        sign = self._sign_of_similar_rows(self.top, residual, self.weight)
        return sign * residual, np.where(sign != 0.0, self.top, 0.0)

    def excess_of_classes(self) -> tuple[Floats, Floats]:
        """Return the excess of the classes that other folds show to be predicted too rarely."""
        excess = np.zeros(len(self.codes))
        prob_of_set = np.zeros(len(self.codes))
        for j in range(self.probs.shape[1]):
            prob = self.probs[:, j]
            residual = (self.codes == j) - prob
            variance = self.weight * prob * (1.0 - prob)
            is_in_set = self._sign_of_similar_rows(prob, residual, variance) > 0.0
            excess[is_in_set] += residual[is_in_set]
            prob_of_set[is_in_set] += prob[is_in_set]
        return excess, np.minimum(prob_of_set, 1.0)

    def _sign_of_similar_rows(
        self, values: Floats, residual: Floats, size: Floats
    ) -> Floats:
        """Return, for each row, the sign of the residuals of similar rows of other folds, or 0.

        Rows are similar if their `values` fall into the same group; groups are about equal in
        `size`, 8 at most. 0 where the sum of the residuals is within one standard error.
        """
        variance = self.weight * values * (1.0 - values)
        # A group whose count has a variance below 8 would show no more than chance.
        n_groups = int(min(8, max(1.0, variance.sum() / 8.0)))
        group = equal_weight_parts(values, size, n_groups)
        cell = self.fold * n_groups + group
        n_cells = N_FOLDS * n_groups
        shape = (N_FOLDS, n_groups)
        weighted = self.weight * residual
        residuals_of_cell = np.bincount(cell, weighted, n_cells).reshape(shape)
        variance_of_cell = np.bincount(cell, variance, n_cells).reshape(shape)
        # Of the other folds: all less the own one.
        residuals = residuals_of_cell.sum(axis=0) - residuals_of_cell
        variances = np.maximum(variance_of_cell.sum(axis=0) - variance_of_cell, 1e-12)
        is_clear = np.abs(residuals) > np.sqrt(variances)
        signs = np.where(is_clear, np.sign(residuals), 0.0)
        return np.asarray(signs[self.fold, group], np.float64)
