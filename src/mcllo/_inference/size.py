"""`size_of`: how far predictions are off, with intervals, in units that people use.

A p-value says whether labels contradict the predictions, which with enough rows they always do. A
size says by how much, from the fitted map g, and does not depend on how many rows there are:

====================  ==========================================================================
`mean_change`         mean over rows of ``1/2 sum_j |g_j - x_j|``: the probability that stands on
                      the wrong classes; for two classes, how far a probability should move
`top_mean_change`     the same of the most probable class alone, ``|g_top - x_top|``
`gain`                mean of ``KL(g || x)``: log loss (nats a row) that the repair would save
`levels`              "when it says 94 %, it is right about 84 %" (`sizes/levels`)
`power`               chance that the test would have seen a change of `LARGE` by one temperature
====================  ==========================================================================

Sizes are corrected for chance and 0 where calibrated rows would show as much (`sizes/law`). An
interval of 95 % is two-sided, so that `high` alone is an upper bound of 97.5 %: `Size.within` says
"practically calibrated at this tolerance" where it lies below, wrongly in about 2.5 % of data sets
at most.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .._fit.fit import MCLLOFit, fit_predictions
from .._fit.sandwich import n_effective, robust_fit
from .._ground.linalg import pseudo_inverse
from .._ground.results import Floats, Result
from .._ground.statements import OF_ESTIMATES, Statement, quiet
from .._input.arguments import check_share
from .._input.predictions import Predictions
from .._math.kernel import LogPartition
from .._math.likelihood import identity_theta
from .budget import N_RESAMPLES_SIZE
from .draws import Seed, check_resamples, entropy_of
from .sizes.law import SIZES, Moved, clear_part, covariance_root, limits
from .sizes.levels import RightAt, levels_of

NAMES = (
    *("mean_change", "low", "high", "top_mean_change", "top_low", "top_high"),
    *("gain", "gain_low", "gain_high"),
)
"""What estimate, low and high of each of the `SIZES` are called."""
LARGE = 0.10
"""Mean change that the power is about."""
ALPHA = 0.05
"""Level of the test that the power is about."""
MOST_ENTRIES, MOST_ROWS = 400_000, 20_000
"""Probabilities, and rows, from which sizes are computed; of more rows a sample is taken."""
LAW_ENTRIES, LAW_ROWS, FEWEST_LAW_ROWS = 5_000, 600, 60
"""The same for the law of a size, which is computed for each draw."""
FAR = 1e3
"""Place on a ray that is as far as any."""
FEWEST_FREEDOM, MOST_FREEDOM = 3.0, 1e6
"""Degrees of freedom of the law of an estimate, at least; beyond the most it is normal."""
STEEPEST = 6.0
"""Logarithm of the steepest temperature that is tried."""
RIDGE = 1.0
"""Penalty of the map that stands in where there is no maximum likelihood estimate."""


@dataclass(frozen=True, eq=False)
class Size(Result):
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
        Log loss a row that the repair would save, in nats.
    confidence : float
        Of each interval.
    power : float
        Chance that the test at level 0.05 rejects if the mean change were 0.10 by one temperature.
    levels : tuple of RightAt
        How often predictions near a few levels are right.
    method : {"ray", "ridge", "blocks"}
        "ray": the intervals of `_inference/sizes/law`; "ridge": no finite map is best, and the
        sizes are those of a penalised one, with upper ends that are rough; "blocks": there are too
        many parameters for intervals.
    n_resamples, seed : int
        Draws of the law of an estimate, and what they were made from.
    reason : str
        Why numbers are missing or rough; empty where they are neither.
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
    levels: tuple[RightAt, ...]
    method: str
    n_resamples: int
    seed: int | None
    reason: str = ""

    def within(self, tolerance: float) -> bool:
        """Whether the mean change is below `tolerance` with confidence: practically calibrated.

        It is an equivalence test of one-sided level ``(1 - confidence) / 2``.
        """
        return bool(self.high < tolerance)

    def statements(self) -> list[Statement]:
        """Return what the sizes say: kinds size, size.top, size.gain and size.level."""
        from .sizes.words import size_statements

        return size_statements(self)


def size_of(
    predictions: Predictions,
    fit: MCLLOFit,
    *,
    confidence: float = 0.95,
    seed: Seed = None,
    n_resamples: int = N_RESAMPLES_SIZE,
) -> Size:
    """Return how far predictions are off by a map that was fitted to them, or to more such rows.

    Where rows depend on each other the fit needs its robust covariance (`robust_fit`).
    `n_resamples` are draws from the law of the estimate.
    """
    check_share("confidence", confidence)
    check_resamples(n_resamples)
    entropy, size, known = entropy_of(seed), len(fit.theta), fit.cov_theta
    rows = sampled(predictions.with_baseline(fit.baseline), entropy)
    moved = Moved(rows.log_odds, rows.row_weight)
    counted, effect = Counted(predictions, fit.n_samples), 1.0
    rng = np.random.default_rng(entropy)
    draws, chances = rng.standard_normal((n_resamples, size)), rng.random(n_resamples)
    if not fit.converged:
        found = _of_penalised(rows, moved, counted, draws, confidence)
    elif known.shape != (size, size):
        found = _without_intervals(moved, fit.theta)
    else:
        if counted.dependent:
            known, effect = steadied(known, moved, fit, counted)
        draws *= counted.spread(fit.df, moved.errors(fit.theta), chances)[:, None]
        found = _of_rays(moved, fit.theta, known, draws, confidence)
    ends = dict(zip(NAMES, found.ends.ravel().tolist(), strict=True))
    return Size(
        **ends,
        p95_change=found.p95[0],
        top_p95_change=found.p95[1],
        confidence=confidence,
        power=power_of(moved, fit.df, counted, effect),
        levels=levels_of(rows, moved, found.theta, found.known, confidence, fit.n_samples),
        method=found.method,
        n_resamples=0 if found.known is None else n_resamples,
        seed=entropy,
        reason=found.reason,
    )


class _Found(NamedTuple):
    """Estimate, low and high of each of the `SIZES`, shape (3, 3), and what they rest on.

    `theta` is the map with the covariance `known`, or None; `p95` the 95th percentiles over rows.
    """

    ends: Floats
    p95: list[float]
    theta: Floats
    known: Floats | None
    method: str
    reason: str = ""


def _of_rays(moved: Moved, theta: Floats, known: Floats, draws: Floats, level: float) -> _Found:
    """Return the wider limits of both rays, and the mean of their middles."""
    theta0 = identity_theta(len(theta) // 2)
    clear = clear_part(theta - theta0, known)
    rays = [theta - theta0] if clear is None else [theta - theta0, clear]
    noise = draws @ covariance_root(known).T
    found = limits(law_rows(moved), theta, rays, noise, level)
    most = np.array([1.0, 1.0, math.inf])  # of each size, where a ray does not end

    def at(v: Floats, t: float, j: int) -> float:
        return float(moved.sizes(theta0 + t * v)[j] if math.isfinite(t) else most[j]) if t else 0.0

    sizes = np.array(
        [[[at(v, t, j) for t in row] for j, row in enumerate(times)] for v, times in found]
    )
    low, middle, high = np.moveaxis(sizes, -1, 0)
    ends = np.column_stack([middle.mean(axis=0), low.min(axis=0), high.max(axis=0)])
    middles = [[_p95(moved, theta0 + min(row[1], FAR) * v) for row in t[:2]] for v, t in found]
    p95 = np.mean([(first[0], second[1]) for first, second in middles], axis=0)
    return _Found(ends, p95.tolist(), theta, known, "ray")


def _of_penalised(
    rows: Predictions, moved: Moved, counted: Counted, draws: Floats, confidence: float
) -> _Found:
    """Return the sizes of a penalised map, with the upper quantile of its own law for `high`."""
    with quiet(*OF_ESTIMATES):
        fit = fit_predictions(rows, penalty=RIDGE)
    if fit.information == "blocks":
        return _without_intervals(moved, fit.theta)
    if counted.dependent and counted.groups > 1.0:
        fit = robust_fit(rows, fit)
    noise = draws @ covariance_root(fit.cov_theta).T
    law = law_rows(moved).law(fit.theta, noise)
    sizes = moved.sizes(fit.theta)
    high = np.maximum(sizes, np.quantile(law, 0.5 + 0.5 * confidence, axis=0))
    high[:2] = np.minimum(high[:2], 1.0)
    ends = np.column_stack([sizes, np.zeros(len(SIZES)), high])
    reason = "no finite map is best for these labels, and a penalised one stands in for it"
    return _Found(ends, _p95(moved, fit.theta), fit.theta, fit.cov_theta, "ridge", reason)


def _without_intervals(moved: Moved, theta: Floats) -> _Found:
    """Return the sizes of a map that has no covariance."""
    ends = np.full((len(SIZES), 3), np.nan)
    ends[:, 0] = moved.sizes(theta)
    reason = "the map has too many parameters to say how sure it is"
    return _Found(ends, _p95(moved, theta), theta, None, "blocks", reason)


def sampled(predictions: Predictions, seed: int) -> Predictions:
    """Return the rows, or so many of them as sizes need: drawn by weight, and equal in it.

    One row is drawn from each of so many stretches of equal weight.
    """
    most = min(MOST_ROWS, max(2_000, MOST_ENTRIES // predictions.n_classes))
    if predictions.n_samples <= most:
        return predictions
    places = (np.arange(most) + np.random.default_rng([seed, 1]).random(most)) / most
    upto = np.cumsum(predictions.row_weight)
    picked = np.searchsorted(upto, places * upto[-1], side="right")
    taken = predictions.take(np.minimum(picked, predictions.n_samples - 1))
    return replace(taken, sample_weight=None)


def law_rows(moved: Moved) -> Moved:
    """Return a few rows, evenly spaced by top probability, since each draw needs all of them."""
    k, n = moved.odds.shape
    most = min(LAW_ROWS, max(FEWEST_LAW_ROWS, LAW_ENTRIES // (k + 1)))
    if n <= most:
        return moved
    order = np.argsort(moved.top_probs, kind="stable")
    upto = np.cumsum(moved.weight[order])
    picked = order[np.searchsorted(upto, (np.arange(most) + 0.5) / most * upto[-1])]
    return Moved(np.ascontiguousarray(moved.odds[:, picked]), np.ones(most))


def _p95(moved: Moved, theta: Floats) -> list[float]:
    """Return the 95th percentile over rows of both changes."""
    change, top = moved.by_row(theta)
    found = []
    for values in (change, np.abs(top - moved.top_probs)):
        order = np.argsort(values, kind="stable")
        place = np.searchsorted(np.cumsum(moved.weight[order]), 0.95 * moved.weight.sum() - 1e-12)
        found.append(float(values[order[min(int(place), len(order) - 1)]]))
    return found


class Counted:
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

        freedom = max(FEWEST_FREEDOM, min(self.groups - 1.0, errors * self.rows / max(df, 1)))
        if not freedom < MOST_FREEDOM:
            return np.ones(len(chances))
        return np.asarray(np.sqrt(freedom / chdtri(freedom, chances)))


def steadied(known: Floats, moved: Moved, fit: MCLLOFit, counted: Counted) -> tuple[Floats, float]:
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


def power_of(moved: Moved, df: int, counted: Counted, effect: float) -> float:
    """Return the chance that the test would see a mean change of `LARGE` by one temperature.

    Noncentral chi-square (F, where rows depend on each other) with ``2 n KL`` over the design
    effect; the smaller of the two chances where both sharper and flatter rows change by so much.
    """
    from scipy.special import chdtri, chndtr, fdtri, ncfdtr

    gain = min(_gain_at(moved, 1.0), _gain_at(moved, -1.0))
    if gain == math.inf or df < 1 or not effect > 0.0:
        return math.nan
    away = 2.0 * counted.total * gain / effect
    if not counted.dependent:
        return 1.0 - float(chndtr(chdtri(df, ALPHA), df, away))
    others = df * max(counted.units() - 1.0, 1.0)
    return 1.0 - float(ncfdtr(df, others, away, float(fdtri(df, others, 1.0 - ALPHA))))


def _gain_at(moved: Moved, sign: float) -> float:
    """Return the gain of the temperature that changes by `LARGE`; infinite where none does."""

    def sizes(log_slope: float) -> Floats:
        return moved.sizes(np.repeat([0.0, np.exp(sign * log_slope)], len(moved.odds)))

    low, high = 0.0, 0.125
    while sizes(high)[0] < LARGE:
        low, high = high, 2.0 * high
        if high > STEEPEST:
            return math.inf
    for _ in range(12):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if sizes(middle)[0] < LARGE else (low, middle)
    return float(sizes(high)[2])
