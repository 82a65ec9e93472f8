"""`subgroups_of`: each subgroup by itself, tested, sized and summed up in one slope.

With G subgroups, each of level alpha / G or in Holm's order:

====================  ======================================================================
test                  the calibration test of its rows (`_inference/calibration_test`), exact
                      where chi-square cannot be trusted: no map is shared
adjusted              Holm's p-values over all subgroups (`_diagnosis/class_tests`)
size                  how far it is off, intervals of level ``1 - 0.05 / G``: all at once
power                 that of `Size`, for a test of level ``0.05 / G``
slope                 the u of largest likelihood in ``softmax(u log x)``: below 1 the
                      predictions are too extreme, above 1 too timid; no baseline
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
from .._ground.results import Codes, Result
from .._ground.statements import quiet
from .._inference.budget import N_RESAMPLES, SUBGROUPS_PER_DRAWS
from .._inference.calibration_test import FittedTest, fit_and_test
from .._inference.likelihood_tests import CalibrationTest
from .._inference.size import ALPHA, Size, size_of
from .._input.labels import Classes
from .._input.predictions import Predictions
from .class_tests import holm
from .families import Family, restricted_fit
from .homogeneity import HomogeneityTest, homogeneity_of

LEVEL = 0.95
"""Confidence of all intervals together."""
FARTHEST = 1e3
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
    accuracy, promised : float
        How often the most probable class is right, and how often the predictions promise that.
    test : CalibrationTest
        Are its rows calibrated?
    adjusted : float
        The p-value of `test` after Holm, over all subgroups.
    size : Size
        How far it is off; intervals and power allow for the number of subgroups.
    slope : Slope
        Below 1 the predictions are too extreme, above 1 too timid.
    absent : tuple
        Classes that no row of it is labelled.
    """

    name: Any
    n_samples: int
    accuracy: float
    promised: float
    test: CalibrationTest
    adjusted: float
    size: Size
    slope: Slope
    absent: Classes


@dataclass(frozen=True, eq=False)
class Divided:
    """What was found of all subgroups, and of all rows together."""

    test: HomogeneityTest
    groups: tuple[Subgroup, ...]
    slope: Slope
    confidence: float


def subgroups_of(
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
    confidence = 1.0 - (1.0 - LEVEL) / len(parts)
    with quiet():
        fitted = own_tests(predictions, rule, n_resamples=n_resamples, seed=seed, **options)
        same_fits = [own.fit for own in fitted]
        if rule:  # every subgroup has chosen its own baseline
            same_fits = [fit_predictions(predictions.take(part)) for part in parts]
        test = homogeneity_of(
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
        slope = slope_of(predictions, LEVEL, pooled.fit.df)
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
    draws = n_resamples * max(1, math.ceil(len(parts) / SUBGROUPS_PER_DRAWS))
    with quiet():
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
    rows, many = fitted.predictions, (1.0 - LEVEL) / (1.0 - confidence)
    size = size_of(rows, fitted.fit, confidence=confidence, seed=seed)
    weight, top = rows.sample_weight, rows.probs.argmax(axis=1)
    return Subgroup(
        name=name,
        n_samples=rows.n_samples,
        accuracy=float(np.average(top == rows.codes, weights=weight)),
        promised=float(np.average(rows.probs.max(axis=1), weights=weight)),
        test=fitted.test,
        adjusted=adjusted,
        size=replace(size, power=power_at(size.power, fitted.fit.df, ALPHA / many)),
        slope=slope_of(rows, confidence, fitted.fit.df),
        absent=rows.absent,
    )


def power_at(power: float, df: int, level: float) -> float:
    """Return the chance at `level` of what a chi-square test of level `ALPHA` finds with `power`.

    Examples
    --------
    >>> power_at(0.8, 4, 0.05), round(power_at(0.8, 4, 0.005), 3)
    (0.8, 0.506)
    """
    from scipy.optimize import brentq
    from scipy.stats import chi2, ncx2

    if level == ALPHA or not ALPHA < power < 1.0 or df < 1:
        return power
    critical = chi2.isf(ALPHA, df)

    def gap(shift: float) -> float:
        return float(ncx2.sf(critical, df, shift)) - power

    high = 1.0
    while gap(high) < 0.0:
        high *= 2.0
    return float(ncx2.sf(chi2.isf(level, df), df, brentq(gap, 0.0, high)))


def slope_of(predictions: Predictions, confidence: float, df: int = 1) -> Slope:
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
    low, high = (_end(lost, best, sign * step, allowed) for sign in (-1.0, 1.0))
    if not fit.settled and math.isinf(high if best > 0.0 else low):
        best = math.copysign(math.inf, best)
    return Slope(best, low, high)


def _end(lost: Callable[[float], float], best: float, step: float, allowed: float) -> float:
    """Return where the likelihood has fallen by `allowed`, going by steps that double."""
    from scipy.optimize import brentq

    inside, outside = best, best + step
    while lost(outside) < allowed:
        inside, step = outside, 2.0 * step
        outside = inside + step
        if abs(outside) > FARTHEST:
            return math.copysign(math.inf, step)
    return float(brentq(lambda u: lost(u) - allowed, inside, outside, xtol=1e-6, rtol=1e-6))
