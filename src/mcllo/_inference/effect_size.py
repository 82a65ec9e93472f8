"""`estimate_effect_size`: how far predictions are off, with intervals, in units that people use.

A p-value says whether labels contradict the predictions, which with enough rows they always do. A
size says by how much, from the fitted map g, and does not depend on how many rows there are:

=================  =================================================================================
`mean_change`      mean over rows of ``1/2 sum_j |g_j - x_j|``: the probability that stands on the
                   wrong classes; for two classes, how far a probability should move
`top_mean_change`  the same of the most probable class alone, ``|g_top - x_top|``
`gain`             mean of ``KL(g || x)``: log loss (nats a row) that the recalibration would save
`levels`           "when it says 94 %, it is right about 84 %": from the rows near 94 %, without the
                   map, and what the map says of them (`_inference/levels`)
`power`            chance that the test would have seen a change of `MEAN_CHANGE_FOR_POWER` by one
                   temperature
=================  =================================================================================

How the first three get their estimate and their interval; the numbers are those of the comments in
`estimate_effect_size`, and `_inference/effect_size_distribution` has formulas and references:

1. Take the map theta_hat that was fitted, its covariance, and the rows (of very many, a sample).
   Where rows depend on each other, few groups could make that covariance too small: it is mixed
   with that of independent rows (`stabilized_covariance`).
2. Draw errors e of the estimate: normal numbers with this covariance, scaled to Student's t with
   as many degrees of freedom as there are expected errors per parameter, or groups less one if
   these are fewer (`EffectiveRows.student_scale`); normal where they are a million.
3. The sizes of theta_hat itself are too large, since noise moves probabilities as well. Therefore
   ask of each place theta on a ray from the identity: which sizes would an estimate ``theta + e``
   of it have? The reported estimate is the place whose median size is the observed one; the ends
   of the interval are the places whose upper and lower quantile are (test inversion). The errors e
   are the same at every place: one covariance, that at theta_hat, and no refits.
   Observed sizes and their distribution are those of the same 60 to 600 rows
   (`thin_by_top_probability`), so that an odd choice of these rows cancels; the sizes at the
   places that were found are those of all rows of step 1. Two rays: the direction of theta_hat,
   and of the part of it that is more than noise; the first alone where the covariance has no
   Cholesky factor. (With two classes both are the same.) The mean of both estimates, the wider
   limits (`_estimates_over_rays`). An estimate is 0 where calibrated rows would show as much.
4. Where labels are separated there is no theta_hat: a penalised map stands in
   (`_penalised_effect_size`). With too many parameters for a covariance there is no interval.
5. Both changes (not the gain) are raised to the difference of accuracy and mean confidence, which
   needs no map: the upper end in any case, the estimate where that difference is more than chance
   (`_raise_to_error_in_the_large`).

An interval of 95 % is two-sided, so that `high` alone is an upper bound of 97.5 %:
`EffectSize.within` says "equivalent at this tolerance" where it lies below, wrongly in about 2.5 %
of data sets at most. All of these assume that what is wrong is a shift or slope. `levels` and
`at_least` do not (`_inference/levels`), nor does the gain of a recalibration
(`calibrators/_auto/gain`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .._fit.choice_fit import ChoiceFit, fit_choice_sets
from .._fit.covariance import effective_sample_size, with_robust_covariance
from .._fit.fit import MCLLOFit, fit_predictions
from .._model.kernel import LogPartition
from .._model.likelihood import identity_theta
from .._utils.formatting import SmallResult
from .._utils.linalg import pseudo_inverse
from .._utils.results import Floats, Result
from .._utils.statements import ESTIMATION_WARNINGS, Statement, suppress_warnings
from .._validation.arguments import check_share
from .._validation.predictions import Predictions
from .budget import N_RESAMPLES_SIZE
from .effect_size_distribution import (
    EFFECT_SIZES,
    MapChanges,
    covariance_root,
    part_beyond_noise,
    ray_limits,
)
from .levels import (
    ObservedError,
    RightAt,
    map_interval_at_level,
    observed_error_bounds,
    observed_levels,
)
from .monte_carlo import Seed, check_n_resamples, seed_entropy

EFFECT_SIZE_COLUMNS = (
    *("mean_change", "low", "high", "top_mean_change", "top_low", "top_high"),
    *("gain", "gain_low", "gain_high"),
)
"""What estimate, low and high of each of the `EFFECT_SIZES` are called."""
MEAN_CHANGE_FOR_POWER = 0.10  # mean change that the power is about: a round number
TEST_LEVEL_FOR_POWER = 0.05
MAX_ENTRIES = 400_000
"""Sizes are computed from so many probabilities, but from 2,000 rows at least and 20,000 at most:
20,000 rows of up to 20 classes, 2,000 rows from 200 classes on. Of more rows a sample is taken. A
mean over 20,000 rows is known to a hundredth of the rows' standard deviation."""
MAX_OBSERVED_ENTRIES = 4_000_000
"""The same for what needs no map, which is one pass over the rows for each class."""
MAX_SAMPLING_ENTRIES = 5_000
"""A sampling distribution is computed from so many probabilities, each time for all draws, but from
60 rows at least and 600 at most."""
RIDGE_WITHOUT_ESTIMATE = 1.0
"""Penalty of the map that stands in where there is no maximum likelihood estimate."""


@dataclass(frozen=True, eq=False)
class EffectSize(SmallResult, Result):
    """How far predictions are off; every number is NaN where it cannot be given.

    Attributes
    ----------
    mean_change : float
        Mean over rows of the probability that stands on the wrong classes, corrected for chance
        (not where `method` is "blocks": that of a map with too many parameters for a covariance).
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
        Difference of accuracy and mean confidence, without its sign. It is part of the true mean
        change, so that `high` and `top_high` are never below it, nor `mean_change` and
        `top_mean_change` where it is more than chance (where rows depend on each other: where its
        lower limit is above them).
    levels : tuple of RightAt
        How often predictions near a few levels are right.
    method : {"ray", "ridge", "blocks"}
        "ray": the intervals of `_inference/effect_size_distribution`; "ridge": no finite
        map is best, and the sizes are those of a penalised one, less what chance adds, with upper
        ends that are rough; "blocks": there are too many parameters for intervals.
    n_resamples, seed : int
        Draws of the sampling distribution of an estimate, and what they were made from: always
        400 in an assessment, whatever its own `n_resamples`; only the seed is handed on.
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

    With `method` "ridge" numbers are rougher: of very many rows the map is fitted to the sample
    that sizes are computed from, its errors are normal, and where rows depend on each other its
    robust covariance is taken as it is. `power` then (and with "blocks") counts dependent rows as
    independent ones, and is too high.

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
    fit: MCLLOFit | ChoiceFit,
    *,
    confidence: float = 0.95,
    seed: Seed = None,
    n_resamples: int = N_RESAMPLES_SIZE,
) -> EffectSize:
    """Return how far predictions are off by a map that was fitted to them, or to more such rows.

    The steps are those of the module's text. Where rows depend on each other the fit needs its
    robust covariance (`with_robust_covariance`). `n_resamples` are draws of the error of the
    estimate.
    """
    check_share("confidence", confidence)
    check_n_resamples(n_resamples)
    entropy = seed_entropy(seed)
    # 1. The rows, and the map that was fitted to them.
    rows = sample_rows(predictions.with_baseline(fit.baseline), entropy)
    changes = MapChanges(rows.log_odds, rows.row_weight, rows.model_mask)
    effective = EffectiveRows(predictions, fit.n_samples)
    # 2. Errors of the estimate, here in units of their standard deviation.
    rng = np.random.default_rng(entropy)
    n_parameters = len(fit.theta)
    unit_errors = rng.standard_normal((n_resamples, n_parameters))
    uniforms = rng.random(n_resamples)
    # 3. and 4. Estimate and interval of each size.
    design_effect = 1.0
    if not fit.converged:
        found = _penalised_effect_size(
            rows, changes, effective, unit_errors, confidence
        )
    elif fit.cov_theta.shape != (n_parameters, n_parameters):
        found = _without_intervals(changes, fit.theta)
    else:
        covariance = fit.cov_theta
        if effective.dependent and isinstance(fit, MCLLOFit):
            covariance, design_effect = stabilized_covariance(
                covariance, changes, fit, effective
            )
        error_share = changes.expected_error_share(fit.theta)
        unit_errors *= effective.student_scale(fit.df, error_share, uniforms)[:, None]
        found = _estimates_over_rays(
            changes, fit.theta, covariance, unit_errors, confidence
        )
    # 5. What needs no map, and changes that are raised to it.
    is_large = predictions.n_samples * predictions.n_classes > MAX_OBSERVED_ENTRIES
    observed = observed_error_bounds(rows if is_large else predictions, confidence)
    ends = _raise_to_error_in_the_large(
        found.ends, observed, dependent=effective.dependent
    )
    return EffectSize(
        **dict(zip(EFFECT_SIZE_COLUMNS, ends.ravel().tolist(), strict=True)),
        p95_change=found.p95[0],
        top_p95_change=found.p95[1],
        confidence=confidence,
        power=power_at_large_effect(changes, fit.df, effective, design_effect),
        at_least=observed.at_least,
        in_the_large=observed.in_the_large,
        levels=_levels_with_map(predictions, changes, found, confidence),
        method=found.method,
        n_resamples=0 if found.covariance is None else n_resamples,
        seed=entropy,
        reason=found.reason,
    )


def _raise_to_error_in_the_large(
    ends: Floats, observed: ObservedError, *, dependent: bool
) -> Floats:
    """Return the sizes, both changes raised to what accuracy and mean confidence differ by.

    That difference is part of every true mean change. Where it is more than chance and larger than
    the estimate, it stands for the estimate, and the upper end is at least its upper limit. In
    other cases, also where it is no more than chance, the upper end is at least the difference
    itself. The lower end stays: an interval that holds the truth still does. (Without a model
    there is `at_least`.) The gain stays as it is.

    Of rows that depend on each other its own lower limit must be above the estimate: with 20 groups
    the difference is mostly noise, and the larger of two noisy numbers was 18 % too large.
    """
    raised = ends.copy()
    for change in raised[:2]:
        estimate, _, high = change
        is_above_estimate = (
            observed.large_low > 0.0 and observed.in_the_large > estimate
        )
        if not is_above_estimate:
            change[2] = np.maximum(high, observed.in_the_large)
            continue
        change[2] = np.maximum(
            high, observed.large_high
        )  # NaN where there is no interval
        if not dependent or observed.large_low > estimate:
            change[0] = observed.in_the_large
    return raised


def _levels_with_map(
    predictions: Predictions,
    changes: MapChanges,
    found: _SizeEstimates,
    confidence: float,
) -> tuple[RightAt, ...]:
    """Return how often rows near a few levels are right, and what the map says of these levels."""
    levels = []
    for level in observed_levels(predictions, confidence):
        right, low, high = map_interval_at_level(
            changes, found.theta, found.covariance, level.says, confidence
        )
        levels.append(replace(level, map_right=right, map_low=low, map_high=high))
    return tuple(levels)


class _SizeEstimates(NamedTuple):
    """Estimate, low and high of each of the `EFFECT_SIZES`, shape (3, 3), and what they rest on.

    `theta` is the map with this `covariance`, or None; `p95` the 95th percentiles over rows of both
    changes.
    """

    ends: Floats
    p95: list[float]
    theta: Floats
    covariance: Floats | None
    method: str
    reason: str = ""


def _estimates_over_rays(
    changes: MapChanges,
    theta: Floats,
    covariance: Floats,
    unit_errors: Floats,
    confidence: float,
) -> _SizeEstimates:
    """Return the mean of the estimates on both rays, and the wider limits."""
    theta0 = identity_theta(len(theta) // 2)
    rays = [theta - theta0]
    # Of choice sets all slopes are one, and the covariance has no Cholesky factor.
    clear = None
    if changes.offered is None:
        clear = part_beyond_noise(theta - theta0, covariance)
    if clear is not None:
        rays.append(clear)
    noise = unit_errors @ covariance_root(covariance).T
    found = ray_limits(thin_by_top_probability(changes), theta, rays, noise, confidence)

    # Places on a ray as sizes, of all rows: (rays, sizes, low middle high).
    sizes = np.array(
        [
            [
                [_size_on_ray(changes, ray, t, size) for t in places[size]]
                for size in range(len(EFFECT_SIZES))
            ]
            for ray, places in found
        ]
    )
    low, middle, high = np.moveaxis(sizes, -1, 0)
    estimate = middle.mean(axis=0)
    ends = np.column_stack([estimate, low.min(axis=0), high.max(axis=0)])

    p95_of_rays = []
    for ray, places in found:
        middle_of_change, middle_of_top = np.minimum(
            places[:2, 1], 1e3
        )  # as good as infinite
        change, _ = _p95_of_changes(changes, theta0 + middle_of_change * ray)
        _, top = _p95_of_changes(changes, theta0 + middle_of_top * ray)
        p95_of_rays.append((change, top))
    p95 = np.mean(p95_of_rays, axis=0)
    return _SizeEstimates(ends, p95.tolist(), theta, covariance, "ray")


def _size_on_ray(changes: MapChanges, ray: Floats, t: float, size_index: int) -> float:
    """Return one of `EFFECT_SIZES` at ``theta0 + t v``; at infinite t the largest it could be.

    An infinite t means that no place on the ray shows what was observed: nothing is excluded.
    """
    if t == 0.0:
        return 0.0
    if not math.isfinite(t):
        return math.inf if EFFECT_SIZES[size_index] == "gain" else 1.0
    theta0 = identity_theta(len(ray) // 2)
    return float(changes.sizes(theta0 + t * ray)[size_index])


def _penalised_effect_size(
    rows: Predictions,
    changes: MapChanges,
    effective: EffectiveRows,
    unit_errors: Floats,
    confidence: float,
) -> _SizeEstimates:
    """Return the sizes of a penalised map; `high` is the upper quantile of its own distribution.

    The map is fitted to `rows`, a sample of very many, so that intervals are those of the sample.
    Its errors are not scaled to Student's t, nor is its covariance mixed with another one.
    """
    fit: MCLLOFit | ChoiceFit
    if rows.offered is not None:
        fit = fit_choice_sets(rows, penalty=RIDGE_WITHOUT_ESTIMATE)
    else:
        with suppress_warnings(*ESTIMATION_WARNINGS):
            fit = fit_predictions(rows, penalty=RIDGE_WITHOUT_ESTIMATE)
    if fit.information == "blocks":
        return _without_intervals(changes, fit.theta)
    if effective.dependent and effective.groups > 1.0 and isinstance(fit, MCLLOFit):
        fit = with_robust_covariance(rows, fit)
    noise = unit_errors @ covariance_root(fit.cov_theta).T
    drawn = thin_by_top_probability(changes).sampling_distribution(fit.theta, noise)
    sizes = changes.sizes(fit.theta)
    upper_quantile = np.quantile(drawn, 0.5 + 0.5 * confidence, axis=0)
    high = np.maximum(sizes, upper_quantile)
    high[:2] = np.minimum(high[:2], 1.0)
    estimates = sizes
    p95 = np.array(_p95_of_changes(changes, fit.theta))
    if len(fit.theta) < effective.rows:
        # The sizes of the map itself are above 0 for calibrated rows too: .037 where the truth is
        # 0. With fewer rows than parameters nothing is known, and the correction would be slow.
        corrected = _estimates_over_rays(
            changes, fit.theta, fit.cov_theta, unit_errors, confidence
        )
        estimates = np.minimum(sizes, corrected.ends[:, 0])
        p95 = np.minimum(p95, corrected.p95)
    ends = np.column_stack([estimates, np.zeros(len(EFFECT_SIZES)), high])
    reason = (
        "no finite map is best for these labels, and a penalised one stands in for it"
    )
    return _SizeEstimates(ends, p95.tolist(), fit.theta, fit.cov_theta, "ridge", reason)


def _without_intervals(changes: MapChanges, theta: Floats) -> _SizeEstimates:
    """Return the sizes of a map that has no covariance."""
    ends = np.full((len(EFFECT_SIZES), 3), np.nan)
    ends[:, 0] = changes.sizes(theta)
    reason = "the map has too many parameters to say how sure it is"
    return _SizeEstimates(
        ends, _p95_of_changes(changes, theta), theta, None, "blocks", reason
    )


def sample_rows(predictions: Predictions, seed: int) -> Predictions:
    """Return the rows, or so many of them as sizes need: drawn by weight, and equal in it.

    One row is drawn from each of so many stretches of equal weight (systematic sampling with a
    random place in each stretch): rows in an order of their own are sampled from all of it.
    """
    n_rows = min(20_000, max(2_000, MAX_ENTRIES // predictions.n_classes))
    if predictions.n_samples <= n_rows:
        return predictions
    rng = np.random.default_rng([seed, 1])
    places = (np.arange(n_rows) + rng.random(n_rows)) / n_rows
    cumulative = np.cumsum(predictions.row_weight)
    total = cumulative[-1]
    picked = np.searchsorted(cumulative, places * total, side="right")
    picked = np.minimum(
        picked, predictions.n_samples - 1
    )  # rounding may point beyond the last
    sampled = predictions.take(picked)
    return replace(sampled, sample_weight=None)


def thin_by_top_probability(changes: MapChanges) -> MapChanges:
    """Return a few rows, evenly spaced by top probability, since each draw needs all of them."""
    k, n = changes.odds.shape
    most = min(600, max(60, MAX_SAMPLING_ENTRIES // (k + 1)))
    if n <= most:
        return changes
    order = np.argsort(changes.top_probs, kind="stable")
    cumulative = np.cumsum(changes.weight[order])
    places = (np.arange(most) + 0.5) / most * cumulative[-1]
    picked = order[np.searchsorted(cumulative, places)]
    odds = np.ascontiguousarray(changes.odds[:, picked])
    offered = None if changes.offered is None else changes.offered[:, picked]
    return MapChanges(odds, np.ones(most), offered)


def _p95_of_changes(changes: MapChanges, theta: Floats) -> list[float]:
    """Return the 95th percentile over rows of both changes."""
    change, recalibrated_top = changes.changes_by_row(theta)
    top_change = np.abs(recalibrated_top - changes.top_probs)
    weight = changes.weight
    percentiles = []
    for values in (change, top_change):
        order = np.argsort(values, kind="stable")
        cumulative = np.cumsum(weight[order])
        place = int(np.searchsorted(cumulative, 0.95 * weight.sum() - 1e-12))
        place = min(place, len(order) - 1)
        percentiles.append(float(values[order[place]]))
    return percentiles


class EffectiveRows:
    """How much the rows that were fitted count for, of which `predictions` may be a sample.

    Their `total` weight, and as many `rows` and `groups` of equal weight as would average as well
    (Kish 1965, Survey Sampling); infinitely many groups where there are none. Where rows depend on
    each other, or weights are no counts, they are `dependent`.
    """

    def __init__(self, predictions: Predictions, n_samples: int) -> None:
        grouped = predictions.groups is not None
        times = n_samples / predictions.n_samples
        self.total = times * float(predictions.row_weight.sum())
        self.rows = times * effective_sample_size(replace(predictions, groups=None))
        self.groups = effective_sample_size(predictions) if grouped else math.inf
        self.dependent = grouped or not predictions.counts_rows

    def n_units(self, error_share: float = 1.0) -> float:
        """Return the smaller of the number of groups and `error_share` of the rows, at least 1."""
        return max(1.0, min(self.groups, error_share * self.rows))

    def student_scale(self, df: int, error_share: float, uniforms: Floats) -> Floats:
        """Return what makes normal draws those of Student's t, at these uniform numbers.

        Its degrees of freedom are errors per parameter, or groups less one if these are fewer; at
        least 3, the smallest whole number with a finite variance: with 2 or 1 no covariance would
        describe the draws, and a few of them would decide every quantile.
        """
        from scipy.special import chdtri

        errors_per_parameter = error_share * self.rows / max(df, 1)
        freedom = max(3.0, min(self.groups - 1.0, errors_per_parameter))
        if not freedom < 1e6:  # normal to six digits
            return np.ones(len(uniforms))
        return np.asarray(np.sqrt(freedom / chdtri(freedom, uniforms)))


def stabilized_covariance(
    robust: Floats, changes: MapChanges, fit: MCLLOFit, effective: EffectiveRows
) -> tuple[Floats, float]:
    """Return a robust covariance that few groups cannot make too small, and the design effect.

    The design effect is ``trace(H R) / p``, H the information of independent rows and R the robust
    covariance of p parameters (the mean generalised design effect of Rao and Scott): so many rows
    are worth one independent row. The covariance is mixed with that of independent rows times
    the design effect, as if one more group for each parameter had shown this. Morel, Bokossa and
    Neerchal add the same term [1]_; that both are weighted to a mean is our own.

    References
    ----------
    .. [1] J. G. Morel, M. C. Bokossa, N. K. Neerchal (2003). Small sample correction for the
           variance of GEE estimators. Biometrical Journal 45:395-409.
    """
    free = np.flatnonzero(~np.isnan(np.diagonal(robust)))
    own = np.ix_(free, free)
    information = LogPartition(changes.odds, changes.weight * effective.total)(
        fit.theta
    )
    hessian = information.hessian[own]
    design_effect = float(np.einsum("ij,ji->", hessian, robust[own])) / len(free)
    units = effective.n_units(changes.expected_error_share(fit.theta))
    share = units / (units + len(free))
    independent = pseudo_inverse(hessian)
    mixed = robust.copy()
    mixed[own] = share * robust[own] + (1.0 - share) * design_effect * independent
    return mixed, design_effect


def power_at_large_effect(
    changes: MapChanges, df: int, effective: EffectiveRows, design_effect: float
) -> float:
    """Return the chance that the test would see a mean change of `MEAN_CHANGE_FOR_POWER` by one
    temperature.

    Noncentral chi-square (F, where rows depend on each other) with ``2 n KL`` over the design
    effect; the smaller of the two chances where both sharper and flatter rows change by so much.
    """
    from scipy.special import chdtri, chndtr, fdtri, ncfdtr

    gain = min(
        _gain_of_large_temperature(changes, 1.0),
        _gain_of_large_temperature(changes, -1.0),
    )
    if gain == math.inf or df < 1 or not design_effect > 0.0:
        return math.nan
    noncentrality = 2.0 * effective.total * gain / design_effect
    if not effective.dependent:
        critical = float(chdtri(df, TEST_LEVEL_FOR_POWER))
        return 1.0 - float(chndtr(critical, df, noncentrality))
    df_of_variance = df * max(effective.n_units() - 1.0, 1.0)
    critical = float(fdtri(df, df_of_variance, 1.0 - TEST_LEVEL_FOR_POWER))
    return 1.0 - float(ncfdtr(df, df_of_variance, noncentrality, critical))


def _gain_of_large_temperature(changes: MapChanges, sign: float) -> float:
    """Return the gain of the temperature that changes by `MEAN_CHANGE_FOR_POWER`.

    The slope is ``exp(sign s)``, s > 0; infinite where no s up to 4 (slopes of 1/55 and 55)
    changes so much.
    """

    def sizes_at_slope(log_slope: float) -> Floats:
        slope = np.exp(sign * log_slope)
        return changes.sizes(np.repeat([0.0, slope], len(changes.odds)))

    low = 0.0
    high = 0.125
    while sizes_at_slope(high)[0] < MEAN_CHANGE_FOR_POWER:
        low = high
        high = 2.0 * high
        if high > 4.0:
            return math.inf
    for _ in range(12):  # bisection, to a part in 4,000
        middle = 0.5 * (low + high)
        if sizes_at_slope(middle)[0] < MEAN_CHANGE_FOR_POWER:
            low = middle
        else:
            high = middle
    return float(sizes_at_slope(high)[2])
