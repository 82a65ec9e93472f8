"""`assess_subgroups`: each subgroup by itself, tested, sized and summed up in one slope.

With G subgroups, each of level alpha / G or in Holm's order:

====================  ======================================================================
test                  the calibration test of its rows (`_inference/calibration_test`), exact
                      where chi-square cannot be trusted: no map is shared
adjusted              Holm's p-values over all subgroups (`_diagnostics/class_tests`)
effect_size           how far it is off, intervals of level ``1 - 0.05 / G``: all at once
power                 that of `EffectSize`, for a test of level ``0.05 / G``
slope                 the u of largest likelihood in ``softmax(u log x)``: below 1 the
                      predictions are overconfident, above 1 underconfident; no baseline
its interval          ``2 [l(u_hat) - l(u)] <= chi2_df`` of the same level, with the degrees of
                      freedom of the test: it excludes 1 only where the test rejects by
                      chi-square. An end is infinite where the likelihood falls too little
====================  ======================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._fit.fit import fit_predictions
from .._inference.budget import MIN_FIT_DRAWS, N_RESAMPLES, N_SUBGROUPS_PER_N_DRAWS
from .._inference.calibration_test import FittedTest, fit_and_test
from .._inference.effect_size import TEST_LEVEL_FOR_POWER, EffectSize, estimate_effect_size
from .._inference.goodness_of_fit import GoodnessOfFit, goodness_of_fit
from .._inference.likelihood_tests import CalibrationTest
from .._utils.results import Codes, Result
from .._utils.statements import suppress_warnings
from .._validation.labels import Classes
from .._validation.predictions import Predictions
from .class_tests import holm
from .homogeneity import HomogeneityTest, homogeneity_test
from .restricted_models import Family, restricted_fit

CONFIDENCE_LEVEL = 0.95
"""Confidence of all intervals together."""
MAX_SLOPE = 1e3
"""Slope beyond which an end of an interval counts as infinite."""


@dataclass(frozen=True)
class Slope(Result):
    """One exponent for all probabilities, with its interval; NaN where rows tell nothing."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Subgroup(Result):
    """One subgroup.

    Attributes
    ----------
    name : label
        The value that its rows share.
    n_samples : int
        Rows.
    accuracy, expected_accuracy : float
        How often the most probable class is right, and how often that is expected.
    test : CalibrationTest
        Are its rows calibrated?
    adjusted : float
        The p-value of `test` after Holm, over all subgroups.
    effect_size : EffectSize
        How far it is off; intervals and power allow for the number of subgroups.
    goodness_of_fit : GoodnessOfFit
        Whether more than chance is left after its map.
    slope : Slope
        Below 1 the predictions are overconfident, above 1 underconfident.
    absent : tuple
        Classes that no row of it is labelled.
    """

    name: Any
    n_samples: int
    accuracy: float
    expected_accuracy: float
    test: CalibrationTest
    adjusted: float
    effect_size: EffectSize
    goodness_of_fit: GoodnessOfFit
    slope: Slope
    absent: Classes


@dataclass(frozen=True, eq=False)
class Divided:
    """What was found of all subgroups, and of all rows together."""

    test: HomogeneityTest
    groups: tuple[Subgroup, ...]
    slope: Slope
    confidence: float


def assess_subgroups(
    predictions: Predictions,
    rule: str = "",
    *,
    pooled: FittedTest,
    n_resamples: int = N_RESAMPLES,
    seed: int,
    **options: Any,
) -> Divided:
    """Look at each subgroup of the rows; `options` are `statistic` and `method` of the tests.

    Parameters
    ----------
    predictions : Predictions
        All rows, with their subgroups (`by`).
    rule : str
        "auto" where every subgroup chooses its baseline.
    pooled : FittedTest
        The fit of all rows.
    n_resamples, seed : int
        Draws of the test that one map fits all, and what all draws are made from.
    """
    assert predictions.by is not None
    names, parts = predictions.by.names, predictions.by.parts
    confidence = 1.0 - (1.0 - CONFIDENCE_LEVEL) / len(parts)
    with suppress_warnings():
        fitted = own_tests(predictions, rule, n_resamples=n_resamples, seed=seed, **options)
        same_fits = [own.fit for own in fitted]
        if rule:  # every subgroup has chosen its own baseline
            same_fits = [fit_predictions(predictions.take(part)) for part in parts]
        test = homogeneity_test(
            predictions,
            pooled.fit,
            same_fits,
            parts,
            method=options.get("method", "auto"),
            n_resamples=n_resamples,
            seed=_seed(seed, len(parts)),
        )
        adjusted = holm([own.test.pvalue for own in fitted])
        groups = [
            _subgroup(names[g], fitted[g], float(adjusted[g]), confidence, _seed(seed, g))
            for g in range(len(parts))
        ]
        slope = estimate_slope(predictions, CONFIDENCE_LEVEL, pooled.fit.df)
        return Divided(test, tuple(groups), slope, confidence)


def own_tests(
    predictions: Predictions,
    rule: str = "",
    *,
    n_resamples: int = N_RESAMPLES,
    seed: int,
    **options: Any,
) -> list[FittedTest]:
    """Return the test of each subgroup; the more there are, the more draws it may take."""
    assert predictions.by is not None
    parts = predictions.by.parts
    draws = n_resamples * max(1, math.ceil(len(parts) / N_SUBGROUPS_PER_N_DRAWS))
    with suppress_warnings():
        return [
            fit_and_test(
                _alone(predictions, part), rule, n_resamples=draws, seed=_seed(seed, g), **options
            )
            for g, part in enumerate(parts)
        ]


def _alone(predictions: Predictions, part: Codes) -> Predictions:
    """Return the rows of one subgroup, with their own count of zeros."""
    rows = predictions.take(part)
    raised = rows.raised
    if raised is None or not raised.any():
        return replace(rows, by=None, raised=None, n_clipped=0, n_clipped_true=0)
    true = int(raised[np.arange(len(part)), rows.codes].sum())
    return replace(rows, by=None, n_clipped=int(raised.sum()), n_clipped_true=true)


def _seed(seed: int, place: int) -> int:
    """Return a seed for what stands at a place, so that no two share their draws."""
    return int(np.random.SeedSequence([seed, place]).generate_state(1, np.uint32)[0])


def _subgroup(
    name: Any, fitted: FittedTest, adjusted: float, confidence: float, seed: int
) -> Subgroup:
    rows, many = fitted.predictions, (1.0 - CONFIDENCE_LEVEL) / (1.0 - confidence)
    size = estimate_effect_size(rows, fitted.fit, confidence=confidence, seed=seed)
    weight, top = rows.sample_weight, rows.probs.argmax(axis=1)
    return Subgroup(
        name=name,
        n_samples=rows.n_samples,
        accuracy=float(np.average(top == rows.codes, weights=weight)),
        expected_accuracy=float(np.average(rows.probs.max(axis=1), weights=weight)),
        test=fitted.test,
        adjusted=adjusted,
        effect_size=replace(
            size, power=power_at(size.power, fitted.fit.df, TEST_LEVEL_FOR_POWER / many)
        ),
        goodness_of_fit=goodness_of_fit(rows, fitted.fit, n_resamples=MIN_FIT_DRAWS, seed=seed),
        slope=estimate_slope(rows, confidence, fitted.fit.df),
        absent=rows.absent,
    )


def power_at(power: float, df: int, level: float) -> float:
    """Return the chance at `level` of what a chi-square test of level `TEST_LEVEL_FOR_POWER` finds
    with `power`.

    Examples
    --------
    >>> power_at(0.8, 4, 0.05), round(power_at(0.8, 4, 0.005), 3)
    (0.8, 0.506)
    """
    from scipy.optimize import brentq
    from scipy.stats import chi2, ncx2

    if level == TEST_LEVEL_FOR_POWER or not TEST_LEVEL_FOR_POWER < power < 1.0 or df < 1:
        return power
    critical = chi2.isf(TEST_LEVEL_FOR_POWER, df)

    def gap(shift: float) -> float:
        return float(ncx2.sf(critical, df, shift)) - power

    high = 1.0
    while gap(high) < 0.0:
        high *= 2.0
    return float(ncx2.sf(chi2.isf(level, df), df, brentq(gap, 0.0, high)))


def estimate_slope(predictions: Predictions, confidence: float, df: int = 1) -> Slope:
    """Return the exponent of largest likelihood, with its likelihood interval.

    With the `df` of a larger model it is that of any one direction among so many (Scheffe's).
    """
    from scipy.stats import chi2

    k = len(predictions.log_odds)
    family, along = Family(predictions), np.concatenate([np.zeros(k), np.ones(k)])[:, None]
    if family.identified(along).shape[1] == 0:
        return Slope(np.nan, np.nan, np.nan)
    fit, likelihood = restricted_fit(family, along), family.likelihood()

    def lost(u: float) -> float:
        return fit.log_likelihood + likelihood(u * along[:, 0]).value

    best = float(fit.theta[-1])
    error = float((along.T @ likelihood(fit.theta).hessian @ along).item())
    step = 1.0 / math.sqrt(error) if error > 0.0 else 1.0
    allowed = 0.5 * float(chi2.isf(1.0 - confidence, max(df, 1)))
    low, high = (_profile_interval_end(lost, best, sign * step, allowed) for sign in (-1.0, 1.0))
    if not fit.settled and math.isinf(high if best > 0.0 else low):
        best = math.copysign(math.inf, best)
    return Slope(best, low, high)


def _profile_interval_end(
    lost: Callable[[float], float], best: float, step: float, allowed: float
) -> float:
    """Return where the likelihood has fallen by `allowed`, going by steps that double."""
    from scipy.optimize import brentq

    inside, outside = best, best + step
    while lost(outside) < allowed:
        inside, step = outside, 2.0 * step
        outside = inside + step
        if abs(outside) > MAX_SLOPE:
            return math.copysign(math.inf, step)
    return float(brentq(lambda u: lost(u) - allowed, inside, outside, xtol=1e-6, rtol=1e-6))
