"""`estimate_effect_size`: how far predictions are off, with intervals, in units that people use.

A p-value says whether labels contradict the predictions, which with enough rows they always do. A
size says by how much, from the fitted map g, and does not depend on how many rows there are:

=================  =================================================================================
`mean_change`      mean over rows of ``1/2 sum_j |g_j - x_j|``: the probability that stands on the
                   wrong classes; for two classes, how far a probability should move
`top_mean_change`  the same of the most probable class alone, ``|g_top - x_top|``
`gain`             mean of ``KL(g || x)``: log loss (nats a row) that the recalibration would save
`levels`           "when it says 94 %, it is right about 84 %": from the rows near 94 %, without the
                   map, and what the map says of them (`sizes/levels`)
`power`            chance that the test would have seen a change of `MEAN_CHANGE_FOR_POWER` by one
                   temperature
=================  =================================================================================

Sizes are corrected for chance and 0 where calibrated rows would show as much (`sizes/law`). An
interval of 95 % is two-sided, so that `high` alone is an upper bound of 97.5 %: `EffectSize.within`
says "equivalent at this tolerance" where it lies below, wrongly in about 2.5 % of data sets at
most. All of these assume that what is wrong is a shift or slope. `levels` and `at_least` do not
(`sizes/observed`), nor does the gain of a recalibration (`calibrators/_auto/gain`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .._fit.covariance import n_effective, robust_fit
from .._fit.fit import MCLLOFit, fit_predictions
from .._model.kernel import LogPartition
from .._model.likelihood import identity_theta
from .._utils.linalg import pseudo_inverse
from .._utils.results import Floats, Result
from .._utils.statements import ESTIMATION_WARNINGS, Statement, suppress_warnings
from .._validation.arguments import check_share
from .._validation.predictions import Predictions
from .budget import N_RESAMPLES_SIZE
from .effect_size_distribution import SIZES, MapChanges, clear_part, covariance_root, limits
from .levels import ObservedError, RightAt, map_level, observed_error, observed_levels
from .monte_carlo import Seed, check_resamples, seed_entropy

EFFECT_SIZE_COLUMNS = (
    *("mean_change", "low", "high", "top_mean_change", "top_low", "top_high"),
    *("gain", "gain_low", "gain_high"),
)
"""What estimate, low and high of each of the `SIZES` are called."""
MEAN_CHANGE_FOR_POWER = 0.10
"""Mean change that the power is about."""
TEST_LEVEL_FOR_POWER = 0.05
"""Level of the test that the power is about."""
# probabilities from which effect sizes are computed; of more, a sample of the rows
MAX_ENTRIES = 400_000
MAX_ROWS = 20_000  # the same in rows
MAX_OBSERVED_ENTRIES = 4_000_000
"""The same for what needs no map, which is one pass over the rows for each class."""
# probabilities from which a sampling distribution is computed, once for each draw
MAX_SAMPLING_ENTRIES = 5_000
MAX_SAMPLING_ROWS = 600  # the same in rows
MIN_SAMPLING_ROWS = 60  # however many classes there are
MAX_PLACE_ON_RAY = 1e3
"""Place on a ray that is as far as any."""
MIN_DEGREES_OF_FREEDOM = 3.0  # of the sampling distribution of an estimate
MAX_DEGREES_OF_FREEDOM = 1e6  # beyond, the sampling distribution is normal
MAX_LOG_TEMPERATURE = 6.0
"""Logarithm of the steepest temperature that is tried."""
RIDGE_WITHOUT_ESTIMATE = 1.0
"""Penalty of the map that stands in where there is no maximum likelihood estimate."""


@dataclass(frozen=True, eq=False)
class EffectSize(Result):
    """How far predictions are off; every number is NaN where it cannot be given.

    Attributes
    ----------
    mean_change : float
        Mean over rows of the probability that stands on the wrong classes, corrected for chance.
    low, high : float
        Its two-sided interval; `high` alone is a bound of level ``(1 + confidence) / 2``.
    p95_change : float
        95 % of the rows change by less.
    top_mean_change, top_low, top_high, top_p95_change : float
        The same for the most probable class of each row.
    gain, gain_low, gain_high : float
        Log loss a row that the recalibration would save, in nats.
    confidence : float
        Of each interval.
    power : float
        Chance that the test at level 0.05 rejects if the mean change were 0.10 by one temperature.
    at_least : float
        Probability that stands on the wrong classes at least, on average, whatever the shape of the
        error: a lower limit of level ``(1 + confidence) / 2`` that needs no model.
    in_the_large : float
        Difference of accuracy and mean confidence, without its sign. No size is below it: it is
        part of the mean change.
    levels : tuple of RightAt
        How often predictions near a few levels are right.
    method : {"ray", "ridge", "blocks"}
        "ray": the intervals of `_inference/effect_size_distribution`; "ridge": no finite
        map is best, and the sizes are those of a penalised one, less what chance adds, with upper
        ends that are rough; "blocks": there are too many parameters for intervals.
    n_resamples, seed : int
        Draws of the law of an estimate, and what they were made from.
    reason : str
        Why numbers are missing or rough; empty where they are neither.

    See Also
    --------
    Assessment : Has it as `effect_size`.
    Verdict : Compares it with a tolerance.
    calibration_test : Whether it is more than chance.

    Notes
    -----
    The mean change is a mean total variation distance: for each row the probability that would have
    to move from one class to another. All but `levels`, `at_least` and `in_the_large` assume that
    what is wrong is a shift or slope of the log odds.

    Examples
    --------
    >>> import mcllo
    >>> probs = [[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]] * 10
    >>> y = [0, 1, 1, 0, 0, 0, 1, 1] * 5
    >>> size = mcllo.assess(probs, y, seed=0, n_resamples=19).effect_size
    >>> size.low <= size.mean_change <= size.high
    True
    """

    mean_change: float
    low: float
    high: float
    p95_change: float
    top_mean_change: float
    top_low: float
    top_high: float
    top_p95_change: float
    gain: float
    gain_low: float
    gain_high: float
    confidence: float
    power: float
    at_least: float
    in_the_large: float
    levels: tuple[RightAt, ...]
    method: str
    n_resamples: int
    seed: int | None
    reason: str = ""

    def within(self, tolerance: float) -> bool:
        """Whether the mean change by shifts and slopes is below `tolerance` with confidence.

        It is an equivalence test of one-sided level ``(1 - confidence) / 2``, if nothing else is
        wrong: `Verdict.equivalent` asks for that too.

        Parameters
        ----------
        tolerance : float
            Mean change of a probability that is too little to matter.

        Returns
        -------
        bool
            True when `high` is below the tolerance.
        """
        return bool(self.high < tolerance)

    def statements(self, *, fits: bool = True, bounded: bool = True) -> list[Statement]:
        """Return what the sizes say: kinds size, size.at_least, size.top, size.gain, size.level...

        Parameters
        ----------
        fits, bounded : bool
            Whether nothing was found that the map leaves, and nothing that is no shift or slope;
            sentences that rest on that are left out or say so.
        """
        from .effect_size_text import size_statements

        return size_statements(self, fits=fits, bounded=bounded)


def estimate_effect_size(
    predictions: Predictions,
    fit: MCLLOFit,
    *,
    confidence: float = 0.95,
    seed: Seed = None,
    n_resamples: int = N_RESAMPLES_SIZE,
) -> EffectSize:
    """Return how far predictions are off by a map that was fitted to them, or to more such rows.

    Where rows depend on each other the fit needs its robust covariance (`robust_fit`).
    `n_resamples` are draws from the law of the estimate.
    """
    check_share("confidence", confidence)
    check_resamples(n_resamples)
    entropy, size, known = seed_entropy(seed), len(fit.theta), fit.cov_theta
    rows = sample_rows(predictions.with_baseline(fit.baseline), entropy)
    moved = MapChanges(rows.log_odds, rows.row_weight)
    counted, effect = EffectiveRows(predictions, fit.n_samples), 1.0
    rng = np.random.default_rng(entropy)
    draws, chances = rng.standard_normal((n_resamples, size)), rng.random(n_resamples)
    if not fit.converged:
        found = _penalised_effect_size(rows, moved, counted, draws, confidence)
    elif known.shape != (size, size):
        found = _without_intervals(moved, fit.theta)
    else:
        if counted.dependent:
            known, effect = stabilized_covariance(known, moved, fit, counted)
        draws *= counted.spread(fit.df, moved.errors(fit.theta), chances)[:, None]
        found = _limits_over_rays(moved, fit.theta, known, draws, confidence)
    many = predictions.n_samples * predictions.n_classes > MAX_OBSERVED_ENTRIES
    observed = observed_error(rows if many else predictions, confidence)
    sizes = _at_least_in_the_large(found.ends, observed, dependent=counted.dependent)
    ends = dict(zip(EFFECT_SIZE_COLUMNS, sizes.ravel().tolist(), strict=True))
    return EffectSize(
        **ends,
        p95_change=found.p95[0],
        top_p95_change=found.p95[1],
        confidence=confidence,
        power=power_at_large_effect(moved, fit.df, counted, effect),
        at_least=observed.at_least,
        in_the_large=observed.in_the_large,
        levels=_levels(predictions, moved, found, confidence),
        method=found.method,
        n_resamples=0 if found.known is None else n_resamples,
        seed=entropy,
        reason=found.reason,
    )


def _at_least_in_the_large(ends: Floats, observed: ObservedError, *, dependent: bool) -> Floats:
    """Return the sizes, none of both changes below what accuracy and mean confidence differ by.

    That difference is part of every mean change. Where it is more than chance and larger than the
    estimate, it stands for the estimate, and its upper limit for the upper end. The lower end
    stays: an interval that holds the truth still does. (Without a model there is `at_least`.)

    Of rows that depend on each other its own lower limit must be above the estimate: with 20 groups
    the difference is mostly noise, and the larger of two noisy numbers was 18 % too large.
    """
    raised = ends.copy()
    for change in raised[:2]:
        estimate, _, high = change
        if not (observed.large_low > 0.0 and observed.in_the_large > estimate):
            change[2] = np.maximum(high, observed.in_the_large)
            continue
        change[2] = np.maximum(high, observed.large_high)  # NaN where there is no interval
        if not dependent or observed.large_low > estimate:
            change[0] = observed.in_the_large
    return raised


def _levels(
    predictions: Predictions, moved: MapChanges, found: _Estimates, confidence: float
) -> tuple[RightAt, ...]:
    """Return how often rows near a few levels are right, and what the map says of these levels."""
    levels = []
    for level in observed_levels(predictions, confidence):
        by_map = map_level(moved, found.theta, found.known, level.says, confidence)
        right, low, high = by_map
        levels.append(replace(level, map_right=right, map_low=low, map_high=high))
    return tuple(levels)


class _Estimates(NamedTuple):
    """Estimate, low and high of each of the `SIZES`, shape (3, 3), and what they rest on.

    `theta` is the map with the covariance `known`, or None; `p95` the 95th percentiles over rows.
    """

    ends: Floats
    p95: list[float]
    theta: Floats
    known: Floats | None
    method: str
    reason: str = ""


def _limits_over_rays(
    moved: MapChanges, theta: Floats, known: Floats, draws: Floats, level: float
) -> _Estimates:
    """Return the wider limits of both rays, and the mean of their middles."""
    theta0 = identity_theta(len(theta) // 2)
    clear = clear_part(theta - theta0, known)
    rays = [theta - theta0] if clear is None else [theta - theta0, clear]
    noise = draws @ covariance_root(known).T
    found = limits(sampling_distribution_rows(moved), theta, rays, noise, level)
    most = np.array([1.0, 1.0, math.inf])  # of each size, where a ray does not end

    def at(v: Floats, t: float, j: int) -> float:
        return float(moved.sizes(theta0 + t * v)[j] if math.isfinite(t) else most[j]) if t else 0.0

    sizes = np.array(
        [[[at(v, t, j) for t in row] for j, row in enumerate(times)] for v, times in found]
    )
    low, middle, high = np.moveaxis(sizes, -1, 0)
    ends = np.column_stack([middle.mean(axis=0), low.min(axis=0), high.max(axis=0)])
    middles = [
        [_p95(moved, theta0 + min(row[1], MAX_PLACE_ON_RAY) * v) for row in t[:2]] for v, t in found
    ]
    p95 = np.mean([(first[0], second[1]) for first, second in middles], axis=0)
    return _Estimates(ends, p95.tolist(), theta, known, "ray")


def _penalised_effect_size(
    rows: Predictions, moved: MapChanges, counted: EffectiveRows, draws: Floats, confidence: float
) -> _Estimates:
    """Return the sizes of a penalised map, with the upper quantile of its own law for `high`."""
    with suppress_warnings(*ESTIMATION_WARNINGS):
        fit = fit_predictions(rows, penalty=RIDGE_WITHOUT_ESTIMATE)
    if fit.information == "blocks":
        return _without_intervals(moved, fit.theta)
    if counted.dependent and counted.groups > 1.0:
        fit = robust_fit(rows, fit)
    noise = draws @ covariance_root(fit.cov_theta).T
    law = sampling_distribution_rows(moved).law(fit.theta, noise)
    sizes = moved.sizes(fit.theta)
    high = np.maximum(sizes, np.quantile(law, 0.5 + 0.5 * confidence, axis=0))
    high[:2] = np.minimum(high[:2], 1.0)
    estimates = sizes
    p95 = np.array(_p95(moved, fit.theta))
    if len(fit.theta) < counted.rows:
        # The sizes of the map itself are above 0 for calibrated rows too: .037 where the truth is
        # 0. With fewer rows than parameters nothing is known, and the correction would be slow.
        corrected = _limits_over_rays(moved, fit.theta, fit.cov_theta, draws, confidence)
        estimates = np.minimum(sizes, corrected.ends[:, 0])
        p95 = np.minimum(p95, corrected.p95)
    ends = np.column_stack([estimates, np.zeros(len(SIZES)), high])
    reason = "no finite map is best for these labels, and a penalised one stands in for it"
    return _Estimates(ends, p95.tolist(), fit.theta, fit.cov_theta, "ridge", reason)


def _without_intervals(moved: MapChanges, theta: Floats) -> _Estimates:
    """Return the sizes of a map that has no covariance."""
    ends = np.full((len(SIZES), 3), np.nan)
    ends[:, 0] = moved.sizes(theta)
    reason = "the map has too many parameters to say how sure it is"
    return _Estimates(ends, _p95(moved, theta), theta, None, "blocks", reason)


def sample_rows(predictions: Predictions, seed: int) -> Predictions:
    """Return the rows, or so many of them as sizes need: drawn by weight, and equal in it.

    One row is drawn from each of so many stretches of equal weight.
    """
    most = min(MAX_ROWS, max(2_000, MAX_ENTRIES // predictions.n_classes))
    if predictions.n_samples <= most:
        return predictions
    places = (np.arange(most) + np.random.default_rng([seed, 1]).random(most)) / most
    upto = np.cumsum(predictions.row_weight)
    picked = np.searchsorted(upto, places * upto[-1], side="right")
    taken = predictions.take(np.minimum(picked, predictions.n_samples - 1))
    return replace(taken, sample_weight=None)


def sampling_distribution_rows(moved: MapChanges) -> MapChanges:
    """Return a few rows, evenly spaced by top probability, since each draw needs all of them."""
    k, n = moved.odds.shape
    most = min(MAX_SAMPLING_ROWS, max(MIN_SAMPLING_ROWS, MAX_SAMPLING_ENTRIES // (k + 1)))
    if n <= most:
        return moved
    order = np.argsort(moved.top_probs, kind="stable")
    upto = np.cumsum(moved.weight[order])
    picked = order[np.searchsorted(upto, (np.arange(most) + 0.5) / most * upto[-1])]
    return MapChanges(np.ascontiguousarray(moved.odds[:, picked]), np.ones(most))


def _p95(moved: MapChanges, theta: Floats) -> list[float]:
    """Return the 95th percentile over rows of both changes."""
    change, top = moved.by_row(theta)
    found = []
    for values in (change, np.abs(top - moved.top_probs)):
        order = np.argsort(values, kind="stable")
        place = np.searchsorted(np.cumsum(moved.weight[order]), 0.95 * moved.weight.sum() - 1e-12)
        found.append(float(values[order[min(int(place), len(order) - 1)]]))
    return found


class EffectiveRows:
    """How much the rows that were fitted count for, of which `predictions` may be a sample.

    Their `total` weight, and as many `rows` and `groups` of equal weight as would average as well
    (Kish); infinitely many groups where there are none. Where rows depend on each other, or weights
    are no counts, they are `dependent`.
    """

    def __init__(self, predictions: Predictions, n_samples: int) -> None:
        grouped, times = predictions.groups is not None, n_samples / predictions.n_samples
        self.total = times * float(predictions.row_weight.sum())
        self.rows = times * n_effective(replace(predictions, groups=None))
        self.groups = n_effective(predictions) if grouped else math.inf
        self.dependent = grouped or not predictions.counts_rows

    def units(self, errors: float = 1.0) -> float:
        """Return how many groups there are, or rows, or errors of this share of the rows."""
        return max(1.0, min(self.groups, errors * self.rows))

    def spread(self, df: int, errors: float, chances: Floats) -> Floats:
        """Return what makes normal draws those of Student's t, at these chances."""
        from scipy.special import chdtri

        freedom = max(
            MIN_DEGREES_OF_FREEDOM, min(self.groups - 1.0, errors * self.rows / max(df, 1))
        )
        if not freedom < MAX_DEGREES_OF_FREEDOM:
            return np.ones(len(chances))
        return np.asarray(np.sqrt(freedom / chdtri(freedom, chances)))


def stabilized_covariance(
    known: Floats, moved: MapChanges, fit: MCLLOFit, counted: EffectiveRows
) -> tuple[Floats, float]:
    """Return a robust covariance that few groups cannot make too small, and the design effect.

    So many rows are worth one independent row. The covariance is mixed with that of independent
    rows times the design effect, the mean over parameters, as if one more group for each parameter
    had shown this.
    """
    free = np.flatnonzero(~np.isnan(np.diagonal(known)))
    own = np.ix_(free, free)
    hessian = LogPartition(moved.odds, moved.weight * counted.total)(fit.theta).hessian[own]
    effect = float(np.einsum("ij,ji->", hessian, known[own])) / len(free)
    units = counted.units(moved.errors(fit.theta))
    share = units / (units + len(free))
    mixed = known.copy()
    mixed[own] = share * known[own] + (1.0 - share) * effect * pseudo_inverse(hessian)
    return mixed, effect


def power_at_large_effect(
    moved: MapChanges, df: int, counted: EffectiveRows, effect: float
) -> float:
    """Return the chance that the test would see a mean change of `MEAN_CHANGE_FOR_POWER` by one
    temperature.

    Noncentral chi-square (F, where rows depend on each other) with ``2 n KL`` over the design
    effect; the smaller of the two chances where both sharper and flatter rows change by so much.
    """
    from scipy.special import chdtri, chndtr, fdtri, ncfdtr

    gain = min(_gain_at(moved, 1.0), _gain_at(moved, -1.0))
    if gain == math.inf or df < 1 or not effect > 0.0:
        return math.nan
    away = 2.0 * counted.total * gain / effect
    if not counted.dependent:
        return 1.0 - float(chndtr(chdtri(df, TEST_LEVEL_FOR_POWER), df, away))
    others = df * max(counted.units() - 1.0, 1.0)
    return 1.0 - float(
        ncfdtr(df, others, away, float(fdtri(df, others, 1.0 - TEST_LEVEL_FOR_POWER)))
    )


def _gain_at(moved: MapChanges, sign: float) -> float:
    """Return the gain of the temperature that changes by `MEAN_CHANGE_FOR_POWER`; infinite where
    none does.
    """

    def sizes(log_slope: float) -> Floats:
        return moved.sizes(np.repeat([0.0, np.exp(sign * log_slope)], len(moved.odds)))

    low, high = 0.0, 0.125
    while sizes(high)[0] < MEAN_CHANGE_FOR_POWER:
        low, high = high, 2.0 * high
        if high > MAX_LOG_TEMPERATURE:
            return math.inf
    for _ in range(12):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if sizes(middle)[0] < MEAN_CHANGE_FOR_POWER else (low, middle)
    return float(sizes(high)[2])
