"""`assess_blocks`: the assessment of rows that are never all in memory.

Small tables are gathered and assessed as `assess` does it. Of large ones everything that adds over
rows is computed exactly, as `assess` would: the fit and its statistic, metrics, calibration in the
large, reliability. What does not add is left out or done in another way, and the result says so:

==================  =========================================================================
p-value             chi-square. Where that is in doubt (zeros were raised, a class is rare) the
                    exact test of a random subsample stands beside it
Hosmer-Lemeshow     groups cut at the deciles of a random subsample
details             left out, but for the posterior
==================  =========================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np

from ..._assessment.assessment import Assessment, assess_predictions, shares_table
from ..._assessment.details import Details
from ..._assessment.verdict import TOLERANCE
from ..._diagnostics.class_tests import shares
from ..._diagnostics.data_checks import check_data
from ..._fit.fit import MCLLOFit, fit_predictions
from ..._inference.budget import MAX_NULLS_ENTRIES, N_RESAMPLES
from ..._inference.effect_size import estimate_effect_size
from ..._inference.goodness_of_fit import goodness_of_fit
from ..._inference.likelihood_tests import (
    CalibrationTest,
    Method,
    Statistic,
    check_choices,
    chi2_sf,
    run_test,
    statistic_value,
    trust_chi2,
)
from ..._inference.monte_carlo import Seed, check_resamples, seed_entropy
from ..._inference.omnibus import N_GROUPS
from ..._inference.posterior import posterior_of_fit
from ..._inference.pvalue import Ground, Limit, PValue, Reason
from ..._utils.formatting import format_count
from ..._utils.results import Floats, none_for_nan
from ..._utils.statements import Statement, suppress_warnings
from ..._validation.data_facts import DataFacts
from ..._validation.predictions import Predictions
from ..._validation.rounded import before_rounding
from ..._validation.weights import fractional_weight_error
from ...calibrators._auto.gain import cross_fitted_gain
from ...exceptions import InputError, Option, Phrase
from ...metrics._bins import resolve_n_bins
from ...metrics._reliability import ReliabilityCurve
from .bins import BinSums, bin_sums
from .blocks import Blocks
from .fit_blocks import fit_blocks
from .sums import RowSums

NOT_IN_MEMORY_REASON = "the rows are not all in memory"
MAX_SUBSAMPLE_CELLS = 2e5
"""Rows times classes of the subsample whose p-value is exact."""
MAX_SUBSAMPLE_ROWS = 20_000


@dataclass(frozen=True, eq=False, repr=False)
class BlockAssessment(Assessment):
    """What `assess_blocks` found: an `Assessment` of rows that are not in memory.

    Attributes
    ----------
    predictions : DataFacts
        What was assessed.
    subsample : CalibrationTest or None
        The exact test of a random subsample, where the chi-square p-value of `test` is in doubt;
        its `reason` says how many rows.
    reliability : list of ReliabilityCurve
        Of the most probable class, then class by class; 10 bins of equal width.
    """

    predictions: DataFacts  # type: ignore[assignment]
    subsample: CalibrationTest | None
    reliability: list[ReliabilityCurve]

    @property
    def data(self) -> DataFacts:
        """What was read, and what was changed."""
        return self.predictions

    @property
    def remarks(self) -> tuple[Statement, ...]:
        """Why chi-square is in doubt, and the test of the subsample."""
        if self.subsample is None:
            return ()
        doubt = f"Chi-square is in doubt: {self.test.reason}. {self.subsample.reason}:"
        numbers = self.subsample.to_dict()
        return (Statement("subsample", f"{doubt} {self.subsample}", "doubt", numbers),)

    def to_dict(self, alpha: float = 0.05, tolerance: float = TOLERANCE) -> dict[str, Any]:
        """Return plain Python values, ready for strict JSON."""
        own = {"subsample": self.subsample, "reliability": self.reliability}
        return {**super().to_dict(alpha, tolerance), **none_for_nan(own)}


def assess_blocks(
    blocks: Blocks,
    *,
    statistic: Statistic = "lr",
    method: Method = "auto",
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
    most_cells: float = MAX_NULLS_ENTRIES,
    subsample_rows: int = MAX_SUBSAMPLE_ROWS,
) -> BlockAssessment:
    """Assess rows in blocks; see the module for what differs from `assess`.

    Parameters
    ----------
    blocks : Blocks
        The rows.
    statistic, method, n_resamples, seed
        As in `assess`; large tables have no exact p-value.
    most_cells : float
        Rows times classes up to which a table is small.
    subsample_rows : int
        Rows of a subsample, at most.
    """
    check_choices(statistic, method)
    check_resamples(n_resamples)
    entropy = seed_entropy(seed)
    options: dict[str, Any] = {"statistic": statistic, "method": method, "n_resamples": n_resamples}
    sums, facts = blocks.first, blocks.facts
    if sums.fraction is not None:
        raise fractional_weight_error(sums.fraction)
    if facts.n_samples * facts.n_classes <= most_cells:
        chosen = blocks.layout.reading.clip is not None
        taken = before_rounding(replace(blocks.take(), clip_given=chosen))
        if taken.notes:  # zeros of rounded numbers were not raised to a floor
            facts = replace(
                facts,
                notes=(*facts.notes, *taken.notes),
                clip=taken.clip,
                n_clipped=taken.n_clipped,
                n_clipped_true=taken.n_clipped_true,
            )
        found = assess_predictions(taken, seed=entropy, **options)
        same = {field.name: getattr(found, field.name) for field in fields(found)}
        curves = _bins(blocks, np.empty(0)).reliability(facts.classes)
        return BlockAssessment(**same | {"predictions": facts}, subsample=None, reliability=curves)
    if method in ("exact", "sequential"):
        raise InputError(
            Phrase(
                "{found} draws labels for rows in memory; {:,} are too many here.",
                facts.n_samples,
            ),
            argument="method",
            value=method,
            remedy=Phrase("Use {} or 'chi2'.", Option("method", "auto")),
        )
    fit, n = fit_blocks(blocks), facts.n_samples
    size = int(min(n, subsample_rows, max(1000.0, MAX_SUBSAMPLE_CELLS // facts.n_classes)))
    # which rows depends on the seed and the number of rows alone
    rows = np.random.default_rng([entropy, n]).choice(n, size, replace=False, shuffle=False)
    some = blocks.take(np.sort(rows))
    test, check = _test_calibration(sums, fit, some, entropy, options)
    deciles = np.arange(1, N_GROUPS) / N_GROUPS
    bins = _bins(blocks, np.quantile(1.0 - some.probs[:, some.baseline_index], deciles))
    scores = sums.scores
    left_out = ["miscalibrated_classes", "nested_models", "class_tests", "baselines"] + [
        "zeros"
    ] * bool(facts.n_clipped)
    posterior = posterior_of_fit(fit, scores.weight, 0.5) if scores.weight > 1.0 else None
    columns = shares(sums.class_weight, scores.predicted, scores.spread, scores.weight)
    return BlockAssessment(
        test=test,
        fit=fit,
        metrics={
            "accuracy": scores.hits / scores.weight,
            "log_loss": scores.log_loss / scores.weight,
            "brier": scores.brier / scores.weight,
            "ece": bins.top_label_error(),
            "classwise_ece": bins.classwise_error(),
        },
        expected={
            "accuracy": 1.0 - scores.errors / scores.weight,
            "brier": float(scores.spread.sum()) / scores.weight,
        },
        null_distributions={},
        omnibus_tests={} if sums.weighted else {"hosmer_lemeshow": bins.hosmer_lemeshow()},
        in_the_large=shares_table(facts.classes, columns),
        details=Details.without_rows(
            estimate_effect_size(some, fit, seed=entropy),
            cross_fitted_gain(some, seed=entropy),
            goodness_of_fit(some, fit, seed=entropy),
            check_data(some, fit, test),
            posterior,
            dict.fromkeys(left_out, NOT_IN_MEMORY_REASON),
        ),
        predictions=facts,
        subsample=check,
        reliability=bins.reliability(facts.classes),
    )


def _bins(blocks: Blocks, cuts: Floats) -> BinSums:
    n_bins = resolve_n_bins("sqrt", blocks.first.scores.weight)
    return blocks.total(partial(bin_sums, n_bins=n_bins, cuts=cuts), "counting")


def _test_calibration(
    sums: RowSums, fit: MCLLOFit, some: Predictions, seed: int, options: dict[str, Any]
) -> tuple[CalibrationTest, CalibrationTest | None]:
    """Return the chi-square test, and that of some rows where it is in doubt.

    The latter is exact, or a bound where simulation would show less.
    """
    statistic, why = options["statistic"], Reason(Ground.ASKED)
    if options["method"] == "auto":
        why = trust_chi2(
            statistic,
            sums.scores.errors / max(fit.df, 1),
            n_clipped=sums.changes.n_clipped,
            least_variance=lambda: float(sums.scores.spread.min()),
        )
        why = why.but(Limit.SIZE) if why.wants_draws else why
    value = statistic_value(fit, statistic)
    found = PValue(chi2_sf(value, fit.df), "chi2", why=why)
    test = CalibrationTest.from_pvalue(value, fit.df, statistic, found)
    if Limit.SIZE not in why.limits:
        return test, None
    of = f"{format_count(some.n_samples)} of {format_count(fit.n_samples)}"
    with suppress_warnings():  # the fit of all rows has said what there is to say
        check = run_test(some, fit_predictions(some), seed=seed, **options)
    return test, replace(check, reason=f"On {of} rows, chosen at random with seed {seed}")
