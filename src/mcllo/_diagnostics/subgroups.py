"""Calibration in subgroups: is it the same map in all, and is each one calibrated by itself?

`homogeneity_test`: subgroup g has the log partition A_g and the sufficient statistic s_g
(`_model/likelihood`); without an index they are those of all rows, sums over the subgroups. theta
is the estimate of all rows:

====================  ======================================================================
likelihood ratio      ``2 [sum_g sup l_g - sup l]``, ``l_g(theta) = theta . s_g - A_g(theta)``
score                 ``sum_g U_g' H_g^+ U_g - U' H^+ U``, ``U_g = s_g - grad A_g(theta)``
degrees of freedom    ``sum_g df_g - df``: parameters that the rows of each can tell apart
chi-square            of the likelihood ratio, where every subgroup holds enough information
bootstrap             of the score elsewhere: labels drawn from the common map
====================  ======================================================================

Chi-square's error in one subgroup adds up over G of them, while the statistic spreads by the square
root of their number: expected errors per parameter, and the variance of each class, must be
``sqrt(G)`` times what one test needs (`_inference/likelihood_tests`).

In small subgroups estimates drift to infinity, and a likelihood ratio says little: scores, which
need no estimate in a subgroup, found as many differences as bootstrapped likelihood ratios or more
(power 0.45 and 0.38 with 10 subgroups of 20 rows, 0.77 and 0.67 with 30 of 20), at a fraction of
the price. That one map fits all is not a simple hypothesis: the map is estimated, and the p-value
of the bootstrap approximate. What a refit to each draw would move is projected out instead, to
first order (Neyman's C(alpha)). ``docs/how-to/subgroups.md`` has the measured sizes.

`assess_subgroups`: with G subgroups, each is tested, sized and summed up in one slope, of level
alpha / G or in Holm's order:

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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._fit.fit import MCLLOFit, fit_predictions
from .._fit.objective import free_parameters
from .._inference.budget import (
    BATCH_ENTRIES,
    MIN_COSTLY_DRAWS,
    MIN_DRAWS,
    N_EXCEEDANCES,
    N_RESAMPLES,
    SUBGROUPS_PER_N_RESAMPLES,
    SUBGROUPS_WORK,
)
from .._inference.calibration_test import FittedTest, fit_and_test
from .._inference.effect_size import (
    TEST_LEVEL_FOR_POWER,
    EffectSize,
    estimate_effect_size,
)
from .._inference.goodness_of_fit import GoodnessOfFit, goodness_of_fit
from .._inference.hypothesis_test import Reason, TestResult
from .._inference.likelihood_tests import CalibrationTest, chi2_sf, chi2_trust_reason
from .._inference.monte_carlo import (
    class_counts_and_sums,
    draw_labels,
    expand_weights,
    monte_carlo_pvalue,
)
from .._model.batched import RELATIVE_TIE_TOL
from .._model.kernel import LogPartition
from .._model.likelihood import recalibrate_from_log_odds
from .._utils.formatting import format_number
from .._utils.linalg import whitening_matrix
from .._utils.results import Codes, Floats, Result
from .._utils.statements import suppress_warnings
from .._validation.labels import Classes
from .._validation.predictions import Predictions
from .._validation.weights import count_row_repeats
from .class_tests import holm
from .restricted_models import Family, restricted_fit

SMALLEST_SUBGROUP_TEXT = "counted in the subgroup that has the fewest"
"""Whose expected errors the reason speaks of."""


@dataclass(frozen=True, eq=False, kw_only=True)
class HomogeneityTest(TestResult):
    """A test of H0: one map describes the rows of all subgroups.

    Attributes
    ----------
    statistic, df, pvalue : float
        The statistic, its degrees of freedom, and the p-value by `method`.
    kind : {'lr', 'score'}
        Likelihood ratio of separate maps to a common one, or its score statistic.
    method : {'chi2', 'bootstrap'}
        Large samples; or labels drawn from the common map, which is approximate.
    n_groups, n_resamples : int
        Subgroups, and draws made; 0 for chi-square.
    seed : int or None
        What the draws were made from.
    reason : str
        Why `method` was used.
    why : Reason or None
        The same as facts.
    """

    df: int
    kind: str
    n_groups: int
    method_texts: ClassVar[Mapping[str, str]] = {
        "chi2": "chi-square",
        "bootstrap": "{n_resamples} data sets simulated from one map",
    }

    def __str__(self) -> str:
        name = "likelihood ratio" if self.kind == "lr" else "score"
        value = format_number(self.statistic, 4)
        return f"{name} statistic {value} on {self.df} df, {self.p_text} ({self.how})"


class SubgroupScores:
    """``labels -> score statistic`` for many label vectors at once, at the estimate of all rows.

    `parts` are the rows of each subgroup; those that count several times must be written out.
    """

    def __init__(
        self, rows: Predictions, parts: Sequence[Codes], theta: Floats
    ) -> None:
        b = rows.baseline_index
        self.parts = parts
        self._columns = np.delete(np.arange(rows.n_classes), b)
        log_odds = [np.ascontiguousarray(rows.log_odds[:, part]) for part in parts]
        # With a row of zeros for the baseline, so that labels are columns of the table.
        self._values = [np.insert(own, b, 0.0, axis=0) for own in log_odds]
        terms = [LogPartition(own)(theta) for own in log_odds]
        self.means = np.array([term.gradient for term in terms])
        self.roots = []
        for term, own in zip(terms, log_odds, strict=True):
            self.roots.append(whitening_matrix(term.hessian, free_parameters(own)))
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        self.common = whitening_matrix(total.hessian, free_parameters(rows.log_odds))

    def of_labels(self, labels: NDArray[np.intp]) -> Floats:
        """Return the statistic of each row of labels, columns of the table."""
        scores = self._sufficient_statistics(labels) - self.means  # (draws, G, 2K)
        common_score = scores.sum(axis=1)
        statistics: Floats = -((common_score @ self.common) ** 2).sum(axis=1)
        for g, root in enumerate(self.roots):
            statistics += ((scores[:, g] @ root) ** 2).sum(axis=1)
        return statistics

    def _sufficient_statistics(self, labels: NDArray[np.intp]) -> Floats:
        """Return the sufficient statistics of each subgroup, shape (draws, G, 2K)."""
        statistics = []
        for part, values in zip(self.parts, self._values, strict=True):
            counts, sums = class_counts_and_sums(labels[:, part], values)
            own = [counts[:, self._columns], sums[:, self._columns]]
            statistics.append(np.concatenate(own, axis=1))
        return np.stack(statistics, axis=1)


def homogeneity_test(
    predictions: Predictions,
    fit: MCLLOFit,
    fits: Sequence[MCLLOFit],
    parts: Sequence[Codes],
    *,
    method: str = "auto",
    n_resamples: int = N_RESAMPLES,
    seed: int,
    work: float = SUBGROUPS_WORK,
) -> HomogeneityTest:
    """Test whether one map describes all subgroups.

    Parameters
    ----------
    predictions, fit
        All rows, and the map fitted to them.
    fits, parts
        The map fitted to each subgroup, with the same baseline, and its rows.
    method : {'auto', 'chi2', 'exact', 'sequential'}
        As in `calibration_test`; the last two draw labels whatever the rows.
    n_resamples, seed : int
        Most draws, and what they are made from.
    work : float
        Cells (rows x classes x draws) that may be spent on them.
    """
    df = sum(own.df for own in fits) - fit.df
    probs = recalibrate_from_log_odds(
        fit.theta, predictions.log_odds, predictions.baseline_index
    )
    why = Reason("asked")
    if method == "auto":
        why = _why_chi2_is_trusted(predictions, probs, [own.df for own in fits], parts)
    separate = math.fsum(own.log_likelihood for own in fits)
    value = max(0.0, 2.0 * (separate - fit.log_likelihood))
    kind = "lr"
    found = TestResult(value, df, chi2_sf(value, df), "chi2")
    if df > 0 and (why.wants_draws or method in ("exact", "sequential")):
        scores, rows, places = _scores_of_expanded_rows(predictions, parts, fit.theta)
        value = float(scores.of_labels(rows.codes[None])[0])
        kind = "score"
        n_draws = n_resamples
        if not why.is_chosen_by_user:
            n_draws = int(min(n_resamples, work / predictions.n_expanded_probs))
        if n_draws >= min(MIN_COSTLY_DRAWS, n_resamples):
            stop_at = None if method == "exact" else N_EXCEEDANCES
            found = _simulate_pvalue(
                scores, probs[places], value, n_draws, seed, stop_at
            )
        else:
            found = TestResult(value, df, chi2_sf(value, df), "chi2")
            why = why.but("size")
    found = replace(found, statistic=value, df=df)
    return HomogeneityTest.from_result(found, kind=kind, n_groups=len(parts)).because(
        why
    )


def _why_chi2_is_trusted(
    predictions: Predictions, probs: Floats, dfs: Sequence[int], parts: Sequence[Codes]
) -> Reason:
    """Return whether chi-square holds in each subgroup, well enough for all of them together."""
    weight = predictions.row_weight
    errors = weight * (1.0 - probs.max(axis=1))
    variance = probs * (1.0 - probs) * weight[:, None]
    # What one test needs must be there sqrt(G) times: see the module's text.
    factor = math.sqrt(len(parts))
    errors_per_parameter = []
    for part, df in zip(parts, dfs, strict=True):
        errors_per_parameter.append(float(errors[part].sum() / max(df, 1)))
    fewest = min(errors_per_parameter)

    def least_variance() -> float:
        of_parts = [float(variance[part].sum(axis=0).min()) for part in parts]
        return min(of_parts) / factor

    why = chi2_trust_reason(
        "lr",
        fewest / factor,
        n_clipped=predictions.n_clipped,
        least_variance=least_variance,
    )
    return replace(why, errors=fewest).with_notes(SMALLEST_SUBGROUP_TEXT)


def _scores_of_expanded_rows(
    predictions: Predictions, parts: Sequence[Codes], theta: Floats
) -> tuple[SubgroupScores, Predictions, Codes]:
    """Return the statistic, the rows written out, and which row each of them was."""
    places = np.arange(predictions.n_samples)
    if predictions.sample_weight is None:
        return SubgroupScores(predictions, parts, theta), predictions, places
    rows = expand_weights(predictions)
    places = np.repeat(
        places, count_row_repeats(predictions.sample_weight, rows.n_classes)
    )
    group = np.empty(predictions.n_samples, dtype=np.intp)
    for g, part in enumerate(parts):
        group[part] = g
    group_of_row = group[places]
    expanded_parts = [np.flatnonzero(group_of_row == g) for g in range(len(parts))]
    return SubgroupScores(rows, expanded_parts, theta), rows, places


def _simulate_pvalue(
    scores: SubgroupScores,
    probs: Floats,
    value: float,
    n_draws: int,
    seed: int,
    stop_at: int | None,
) -> TestResult:
    """Return how often labels of the common map give at least `value`."""
    # Draws that tie with the data may differ from them by rounding, relative and around 0.
    threshold = value * (1.0 - RELATIVE_TIE_TOL) - 1e-12

    def exceeds(start: int, size: int) -> NDArray[np.bool_]:
        labels = draw_labels(probs, seed, start, size)
        return scores.of_labels(labels) >= threshold

    n_rows, n_classes = probs.shape
    cells_per_draw = max(n_rows, len(scores.parts) * n_classes)
    batch = max(1, min(512, BATCH_ENTRIES // cells_per_draw))
    found = monte_carlo_pvalue(
        exceeds, n_resamples=n_draws, batch=batch, seed=seed, stop_at=stop_at
    )
    return replace(found, method="bootstrap")


CONFIDENCE_LEVEL = 0.95
"""Confidence of all intervals together."""


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
class SubgroupFindings:
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
) -> SubgroupFindings:
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
    names = predictions.by.names
    parts = predictions.by.parts
    n_groups = len(parts)
    confidence = 1.0 - (1.0 - CONFIDENCE_LEVEL) / n_groups
    with suppress_warnings():
        fitted = run_test_of_each_subgroup(
            predictions, rule, n_resamples=n_resamples, seed=seed, **options
        )
        fits = [own.fit for own in fitted]
        if (
            rule
        ):  # every subgroup has chosen its own baseline: one map needs the same in all
            fits = [fit_predictions(predictions.take(part)) for part in parts]
        test = homogeneity_test(
            predictions,
            pooled.fit,
            fits,
            parts,
            method=options.get("method", "auto"),
            n_resamples=n_resamples,
            seed=_derive_seed(seed, n_groups),
        )
        adjusted = holm([own.test.pvalue for own in fitted])
        groups = []
        for g in range(n_groups):
            own_seed = _derive_seed(seed, g)
            groups.append(
                _describe_subgroup(
                    names[g], fitted[g], float(adjusted[g]), confidence, own_seed
                )
            )
        slope = estimate_slope(predictions, CONFIDENCE_LEVEL, pooled.fit.df)
        return SubgroupFindings(test, tuple(groups), slope, confidence)


def run_test_of_each_subgroup(
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
    # Holm multiplies the smallest p-value by their number: it must be able to be that small.
    draws = n_resamples * max(1, math.ceil(len(parts) / SUBGROUPS_PER_N_RESAMPLES))
    tests = []
    with suppress_warnings():
        for g, part in enumerate(parts):
            rows = _take_subgroup(predictions, part)
            own_seed = _derive_seed(seed, g)
            tests.append(
                fit_and_test(rows, rule, n_resamples=draws, seed=own_seed, **options)
            )
    return tests


def _take_subgroup(predictions: Predictions, part: Codes) -> Predictions:
    """Return the rows of one subgroup, with their own count of zeros."""
    rows = predictions.take(part)
    raised = rows.raised
    if raised is None or not raised.any():
        return replace(rows, by=None, raised=None, n_clipped=0, n_clipped_true=0)
    is_raised_label = raised[np.arange(len(part)), rows.codes]
    return replace(
        rows,
        by=None,
        n_clipped=int(raised.sum()),
        n_clipped_true=int(is_raised_label.sum()),
    )


def _derive_seed(seed: int, place: int) -> int:
    """Return a seed for what stands at a place, so that no two share their draws."""
    sequence = np.random.SeedSequence([seed, place])
    return int(sequence.generate_state(1, np.uint32)[0])


def _describe_subgroup(
    name: Any, fitted: FittedTest, adjusted: float, confidence: float, seed: int
) -> Subgroup:
    """Return what is said of one subgroup, at a level that allows for their number."""
    rows = fitted.predictions
    weight = rows.sample_weight
    n_groups = (1.0 - CONFIDENCE_LEVEL) / (1.0 - confidence)
    size = estimate_effect_size(rows, fitted.fit, confidence=confidence, seed=seed)
    power = power_at_other_level(
        size.power, fitted.fit.df, TEST_LEVEL_FOR_POWER / n_groups
    )
    is_right = rows.probs.argmax(axis=1) == rows.codes
    top_probs = rows.probs.max(axis=1)
    return Subgroup(
        name=name,
        n_samples=rows.n_samples,
        accuracy=float(np.average(is_right, weights=weight)),
        expected_accuracy=float(np.average(top_probs, weights=weight)),
        test=fitted.test,
        adjusted=adjusted,
        effect_size=replace(size, power=power),
        goodness_of_fit=goodness_of_fit(
            rows, fitted.fit, n_resamples=MIN_DRAWS, seed=seed
        ),
        slope=estimate_slope(rows, confidence, fitted.fit.df),
        absent=rows.absent,
    )


def power_at_other_level(power: float, df: int, level: float) -> float:
    """Return the chance at `level` of what a chi-square test of level `TEST_LEVEL_FOR_POWER` finds
    with `power`.

    Examples
    --------
    >>> power_at_other_level(0.8, 4, 0.05), round(power_at_other_level(0.8, 4, 0.005), 3)
    (0.8, 0.506)
    """
    from scipy.optimize import brentq
    from scipy.stats import chi2, ncx2

    if (
        level == TEST_LEVEL_FOR_POWER
        or not TEST_LEVEL_FOR_POWER < power < 1.0
        or df < 1
    ):
        return power
    critical = chi2.isf(TEST_LEVEL_FOR_POWER, df)

    def gap(noncentrality: float) -> float:
        return float(ncx2.sf(critical, df, noncentrality)) - power

    high = 1.0
    while gap(high) < 0.0:
        high *= 2.0
    noncentrality = brentq(gap, 0.0, high)
    return float(ncx2.sf(chi2.isf(level, df), df, noncentrality))


def estimate_slope(predictions: Predictions, confidence: float, df: int = 1) -> Slope:
    """Return the exponent of largest likelihood, with its likelihood interval.

    With the `df` of a larger model it is that of any one direction among so many (Scheffe's).
    """
    from scipy.stats import chi2

    k = len(predictions.log_odds)
    family = Family(predictions)
    direction = np.concatenate([np.zeros(k), np.ones(k)])  # all gamma alike
    basis = direction[:, None]
    if family.identified_directions(basis).shape[1] == 0:
        return Slope(np.nan, np.nan, np.nan)
    fit = restricted_fit(family, basis)
    likelihood = family.likelihood()

    def lost(slope: float) -> float:
        return fit.log_likelihood + likelihood(slope * direction).value

    best = float(fit.theta[-1])
    information = float(direction @ likelihood(fit.theta).hessian @ direction)
    step = 1.0 / math.sqrt(information) if information > 0.0 else 1.0
    allowed = 0.5 * float(chi2.isf(1.0 - confidence, max(df, 1)))
    low = _profile_interval_end(lost, best, -step, allowed)
    high = _profile_interval_end(lost, best, step, allowed)
    # Where the labels are separated the likelihood rises without end, and the solver's last slope
    # is no estimate.
    far_end = high if best > 0.0 else low
    if not fit.settled and math.isinf(far_end):
        best = math.copysign(math.inf, best)
    return Slope(best, low, high)


def _profile_interval_end(
    lost: Callable[[float], float], best: float, step: float, allowed: float
) -> float:
    """Return where the likelihood has fallen by `allowed`, going by steps that double."""
    from scipy.optimize import brentq

    inside = best
    outside = best + step
    while lost(outside) < allowed:
        inside = outside
        step *= 2.0
        outside = inside + step
        if abs(outside) > 1e3:  # as good as infinite: all probabilities would be 0 or 1
            return math.copysign(math.inf, step)

    def gap(slope: float) -> float:
        return lost(slope) - allowed

    return float(brentq(gap, inside, outside, xtol=1e-6, rtol=1e-6))
