"""A lapse: some labels follow no prediction, and sure predictions fail at a constant rate.

============  ==================================================================================
lapse         ``g = (1 - e) x + e r``, r uniform or the mean prediction
with slope    the same around ``softmax(u log x)``: a lapse beside one temperature, where that is
              better by `MIN_SCORE_LEAD`
leaves        hits in groups of rows by confidence, against chi-square; Rao's score test of a
              share e that changes with confidence
============  ==================================================================================

Labels that are wrong at random are a lapse, and so is a model that is sure of what nobody can know.
One temperature pays for the few rows in which it fails with the sharpness of all others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._inference.goodness_of_fit import equal_parts
from .._inference.likelihood_tests import chi2_sf
from .._utils.results import Floats
from .mixtures import (
    MIN_SCORE_LEAD,
    TINY,
    Z95,
    Fitted,
    Mixture,
    MixtureRows,
    best_share,
    share_interval,
)

MIN_LAPSES = 5.0
"""Rows that must be lapses, by expectation, for one to be named: one odd row is no rate."""
MAX_DOUBT_PER_LAPSE_RATE = 0.5
"""A row is sure whose 1 - confidence is below this part of the rate of lapses."""
LOG_SLOPE_RANGE = (math.log(0.2), math.log(5.0))
"""Where the slope beside a lapse is sought."""
SLOPE_TOL = 2e-3
"""Of log u: the log likelihood is flat there."""
N_CONFIDENCE_GROUPS = 10
MIN_DOUBT = 1e-6
"""Least 1 - confidence: how far beyond that a prediction is sure says nothing of a trend."""


class _Steep(NamedTuple):
    """A lapse beside a slope, with the interval of its share."""

    slope: float
    share: float
    ends: tuple[float, float]
    log_likelihood: float


def fit_lapse(rows: MixtureRows) -> Fitted | None:
    """Return the better lapse, alone or beside a slope; None where it is next to nothing."""
    p = rows.predictions
    # Not the shares of the labels: these fit a constant prediction to any labels.
    mean_prediction = np.average(rows.probs, axis=0, weights=rows.weight)
    targets = [np.full(p.n_classes, 1.0 / p.n_classes), mean_prediction]
    fits = [best_share(r[rows.codes] / rows.own - 1.0, rows.weight) for r in targets]
    k = int(np.argmax([gain for _, gain in fits]))
    share, gain = fits[k]
    chosen = 2.0 * math.log(len(targets))
    score = 2.0 * gain - rows.log_total - chosen
    if score <= 0.0 or share * rows.total < MIN_LAPSES:
        return None
    steep = _lapse_with_slope(rows, targets[k])
    steep_score = 2.0 * (steep.log_likelihood - rows.log_likelihood) - 2.0 * rows.log_total - chosen
    if steep_score > score + MIN_SCORE_LEAD:
        return _fitted_lapse(rows, targets[k], steep.slope, steep.share, steep.ends, steep_score)
    ends = share_interval(targets[k][rows.codes] / rows.own - 1.0, rows.weight, share)
    return _fitted_lapse(rows, targets[k], 1.0, share, ends, score)


def _lapse_with_slope(rows: MixtureRows, target: Floats) -> _Steep:
    """Return the best slope, with the best lapse at it."""

    def at(log_slope: float, share: float | None = None) -> tuple[float, float]:
        """Return the log likelihood at a slope, and its best share unless one is given."""
        own = np.maximum(rows.of_labels(rows.multiplied(math.exp(log_slope))), TINY)
        log_likelihood = float(rows.weight @ np.log(own))
        d = target[rows.codes] / own - 1.0
        if share is None:
            share, gain = best_share(d, rows.weight)
        else:
            gain = float(rows.weight @ np.log1p(share * d))
        return log_likelihood + gain, share

    log_slope = _golden_section(lambda v: at(v)[0], *LOG_SLOPE_RANGE)
    value, share = at(log_slope)
    # Curvature by differences: a hundredth of the slope and a tenth of the share are far above
    # rounding and far below what the log likelihood bends over.
    step = np.array([0.01, 0.1 * min(share, 1.0 - share)])
    place = np.array([log_slope, share])
    curvature = np.empty((2, 2))
    around = {s: at(*(place + step * s))[0] for s in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1))}
    curvature[0, 0] = 2.0 * value - around[1, 0] - around[-1, 0]
    curvature[1, 1] = 2.0 * value - around[0, 1] - around[0, -1]
    curvature[0, 1] = curvature[1, 0] = around[1, 0] + around[0, 1] - value - around[1, 1]
    variance = float(np.linalg.pinv(curvature)[1, 1])
    half = Z95 * step[1] * math.sqrt(max(variance, 0.0))
    ends = (max(0.0, share - half), min(1.0, share + half))
    return _Steep(math.exp(log_slope), share, ends, value)


def _golden_section(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function with one peak has it, to `SLOPE_TOL`."""
    part = (math.sqrt(5.0) - 1.0) / 2.0
    left = high - part * (high - low)
    right = low + part * (high - low)
    f_left, f_right = function(left), function(right)
    while high - low > SLOPE_TOL:
        if f_left > f_right:
            high, right, f_right = right, left, f_left
            left = high - part * (high - low)
            f_left = function(left)
        else:
            low, left, f_left = left, right, f_right
            right = low + part * (high - low)
            f_right = function(right)
    return 0.5 * (low + high)


def _fitted_lapse(
    rows: MixtureRows,
    target: Floats,
    slope: float,
    share: float,
    ends: tuple[float, float],
    score: float,
) -> Fitted:
    """Return the lapse with its size: how often the most probable class fails by it."""
    x = rows.probs if slope == 1.0 else rows.multiplied(slope).T
    g = (1.0 - share) * x + share * target
    # A lapse may hit the most probable class by chance: then it does not fail.
    top_target = target[rows.probs.argmax(axis=1)]
    fails = 1.0 - float(np.average(top_target, weights=rows.weight))
    nan = math.nan
    sizes = (fails * share, fails * ends[0], fails * ends[1])
    mixture = Mixture("lapse", (), *sizes, nan, nan, nan, slope, score)
    return Fitted(mixture, g, share, target)


def has_sure_rows(rows: MixtureRows, fitted: Fitted) -> bool:
    """Whether there are rows sure enough to see lapses in: else "however sure" is not known."""
    doubt = 1.0 - rows.probs.max(axis=1)
    is_sure = doubt < MAX_DOUBT_PER_LAPSE_RATE * fitted.mixture.share
    return fitted.lapse_share * float(rows.weight @ is_sure) >= MIN_LAPSES


def constant_rate(rows: MixtureRows, fitted: Fitted) -> float:
    """Return the p-value that sure predictions fail at a constant rate: that of the lapse."""
    confidence = rows.probs.max(axis=1)
    top = rows.probs.argmax(axis=1)
    expected = fitted.probs[np.arange(len(top)), top]
    residual = rows.weight * ((rows.codes == top) - expected)
    variance = rows.weight * expected * (1.0 - expected)
    group = equal_parts(confidence, rows.weight, N_CONFIDENCE_GROUPS)
    group_residual = np.bincount(group, residual)
    group_variance = np.bincount(group, variance)
    # The 1 keeps a group that expects next to no failure from deciding alone.
    groups = chi2_sf(float((group_residual**2 / (group_variance + 1.0)).sum()), group.max() + 1)
    return min(1.0, 2.0 * min(groups, _trend(rows, fitted)))


def _trend(rows: MixtureRows, fitted: Fitted) -> float:
    """Return the p-value of Rao's score test: does the share of lapses change with confidence?

    The scores of a row and each label it could have: of the share e, of e as it changes with
    ``z = log(1 - confidence)``, and of the slope u where that was fitted.
    """
    g, share, target = fitted.probs, fitted.lapse_share, fitted.target
    x = (g - share * target) / (1.0 - share)
    logs = rows.logs.T
    z = np.log(np.maximum(1.0 - rows.probs.max(axis=1), MIN_DOUBT))
    of_share = (target - x) / g
    scores = [of_share * (z - z.mean())[:, None], of_share]
    if fitted.mixture.slope != 1.0:
        scores.append((1.0 - share) * x * (logs - (x * logs).sum(axis=1, keepdims=True)) / g)
    every = np.stack(scores)
    information = np.einsum("aij,bij,ij->ab", every, every, g * rows.weight[:, None])
    own = every[:, np.arange(len(g)), rows.codes] @ rows.weight
    covariance = np.linalg.pinv(information)
    # At the estimate the other scores are 0, so that this is the whole quadratic form.
    return chi2_sf(float(own[0] ** 2 * covariance[0, 0]), 1)
