"""Assess a file: a small one is read whole, a large one or a directory in blocks.

`fit_blocks`: the same estimates as `fit_predictions`, from rows that are never all in memory. The
objective is a sum over blocks, so Newton's method needs a pass for each step: the first reads and
validates, and is also the evaluation at the identity. Weights that are no whole numbers say how
much rows matter: one more pass then gives the variance of the score for the sandwich
(`_fit/covariance`). Whether a maximum exists is asked only where the information at the estimate
has all but vanished, and the linear program of `_fit/separation` then needs the rows in memory.
Where they are too many, the fit counts as not determined, and the warning says that separation was
not looked for.

`assess_blocks`: small tables are gathered and assessed as `assess` does it. Of large ones
everything that adds over rows is computed exactly, as `assess` would: the fit and its statistic,
metrics, calibration in the large, reliability. What does not add is left out or done in another
way, and the result says so:

==================  =========================================================================
p-value             chi-square. Where that is in doubt (zeros were raised, a class is rare) the
                    exact test of a random subsample stands beside it
Hosmer-Lemeshow     groups cut at the deciles of a random subsample
details             left out, but for the posterior
==================  =========================================================================

`OpenedFile`: what needs all rows in memory is refused before they are read, where they would take
more than the machine has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..._assessment.assess import assess
from ..._assessment.assessment import (
    Assessment,
    assess_predictions,
    table_of_class_shares,
)
from ..._assessment.details import Details
from ..._assessment.verdict import TOLERANCE
from ..._diagnostics.class_tests import share_test_columns
from ..._diagnostics.data_checks import check_data
from ..._fit.covariance import ScoreSums, sandwich_covariance, sum_row_scores
from ..._fit.estimate import likelihood_or_ridge_estimate
from ..._fit.fit import MCLLOFit, assemble_fit, fit_predictions
from ..._fit.objective import FreeParameterObjective, Objective, information_upper_bound
from ..._fit.penalty import Penalty, check_penalty_and_center
from ..._fit.separation import assess_existence, warn_of_separation
from ..._inference.budget import MAX_NULLS_ENTRIES, N_RESAMPLES
from ..._inference.effect_size import estimate_effect_size
from ..._inference.goodness_of_fit import goodness_of_fit
from ..._inference.hypothesis_test import Reason, TestResult
from ..._inference.likelihood_tests import (
    CalibrationTest,
    Method,
    Statistic,
    check_statistic_and_method,
    chi2_sf,
    chi2_trust_reason,
    compute_statistic,
    run_test,
)
from ..._inference.monte_carlo import Seed, check_n_resamples, seed_entropy
from ..._inference.omnibus import N_GROUPS
from ..._inference.posterior import posterior_of_fit
from ..._model.kernel import Derivatives
from ..._model.likelihood import identity_theta
from ..._utils.atomic_files import StrPath
from ..._utils.formatting import format_count
from ..._utils.parallel import available_memory
from ..._utils.results import Floats, none_for_nonfinite
from ..._utils.statements import Statement, suppress_warnings
from ..._validation.predictions import DataFacts, Predictions
from ..._validation.rounding import undo_rounding
from ..._validation.weights import fractional_weight_error, is_noncount_weight
from ...calibrators._auto.gain import cross_fitted_gain
from ...exceptions import InputError
from ...metrics._bins import resolve_n_bins
from ...metrics._reliability import ReliabilityCurve
from ..io.cost_table import read_costs
from ..io.read import check_rows_fit_memory, open_sources, read_sources
from ..io.source import Source
from .blocks import Blocks, StreamedBlocks
from .file_blocks import blocks_of_sources
from .sums import BinSums, Block, BlockSums, sum_block_bins


def fit_blocks(
    blocks: Blocks, *, penalty: Penalty = 0.0, most_gathered: float = 5e6
) -> MCLLOFit:
    """Fit the MCLLO model to rows in blocks, with a ridge towards the identity if any.

    ``penalty="auto"`` tries many strengths and so makes many passes. Rows are put into memory to
    look for separation where rows times classes are at most `most_gathered`, 40 MB.
    """
    check_penalty_and_center(penalty, "identity")
    if penalty == "firth":
        raise InputError(
            "{found} needs all rows in memory; {penalty_for_blocks}.",
            argument="penalty",
            value=penalty,
        )
    sums = blocks.first_pass
    facts = blocks.facts
    identity = identity_theta(len(sums.sum_of_squares))

    def objective(theta: Floats) -> Derivatives:
        # Value, gradient and Hessian at the identity came with the first pass. In float32 a step
        # would save less than the pass that makes up for it.
        terms = (
            sums.identity_log_partition
            if np.array_equal(theta, identity)
            else blocks.log_partition(theta)
        )
        value = terms.value - float(theta @ sums.statistic)
        return Derivatives(value, terms.gradient - sums.statistic, terms.hessian)

    most = information_upper_bound(sums.metric_sums.weight, sums.sum_of_squares)
    likelihood: FreeParameterObjective[Objective] = FreeParameterObjective(
        objective, sums.free, lambda: most
    )
    end = likelihood_or_ridge_estimate(
        likelihood, penalty, likelihood.identity[likelihood.free]
    )

    def rows() -> Predictions | None:
        too_many = facts.n_samples * facts.n_classes > most_gathered
        return None if too_many else blocks.take()

    found = assess_existence(end, likelihood, facts.absent, rows)
    fit = assemble_fit(likelihood, end, found, facts)
    if sums.first_fraction is not None:
        fit = replace(fit, cov_theta=_robust_covariance(blocks, fit))
    warn_of_separation(fit, facts.absent, found.undecided)
    return fit


def _robust_covariance(blocks: Blocks, fit: MCLLOFit) -> Floats:
    """Return the sandwich covariance of rows whose weights are no counts."""

    def hessian() -> Floats:
        return blocks.log_partition(fit.theta).hessian

    def variance() -> Floats:
        found: ScoreSums = blocks.sum_over_blocks(
            partial(block_scores, theta=fit.theta), "errors"
        )
        return found.covariance

    return sandwich_covariance(fit, hessian, variance)


def block_scores(block: Block, theta: Floats) -> ScoreSums:
    """Return the score and its gram matrix of a block, its weights taken for importance."""
    return sum_row_scores(replace(block.rows, weight_kind="importance"), theta)


NOT_IN_MEMORY_REASON = "the rows are not all in memory"


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

    def to_dict(
        self, alpha: float | None = None, tolerance: float = TOLERANCE
    ) -> dict[str, Any]:
        """Return plain Python values, ready for strict JSON."""
        own = {"subsample": self.subsample, "reliability": self.reliability}
        return {**super().to_dict(alpha, tolerance), **none_for_nonfinite(own)}

    def _curves_to_draw(self, by_class: bool) -> list[ReliabilityCurve]:
        return self.reliability[1:] if by_class else self.reliability[:1]


def assess_blocks(
    blocks: Blocks,
    *,
    statistic: Statistic = "lr",
    method: Method = "auto",
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
    alpha: float = 0.05,
    full: bool = False,
    most_cells: float = MAX_NULLS_ENTRIES,
    subsample_rows: int = 20_000,
) -> BlockAssessment:
    """Assess rows in blocks; see the module for what differs from `assess`.

    Parameters
    ----------
    blocks : Blocks
        The rows.
    statistic, method, n_resamples, seed, alpha, full
        As in `assess`; large tables have no exact p-value, and no details to compute.
    most_cells : float
        Rows times classes up to which a table is small.
    subsample_rows : int
        Rows of a subsample, at most.
    """
    check_statistic_and_method(statistic, method)
    check_n_resamples(n_resamples)
    entropy = seed_entropy(seed)
    options: dict[str, Any] = {
        "statistic": statistic,
        "method": method,
        "n_resamples": n_resamples,
    }
    sums = blocks.first_pass
    facts = blocks.facts
    if sums.first_fraction is not None:
        raise fractional_weight_error(sums.first_fraction)
    if facts.n_samples * facts.n_classes <= most_cells:
        gathered_options = {**options, "alpha": alpha, "full": full}
        return _assess_gathered(blocks, entropy, gathered_options)
    if method in ("exact", "sequential"):
        raise InputError(
            f"{{found}} draws labels for rows in memory; {facts.n_samples:,} are too many here.",
            argument="method",
            value=method,
            remedy="Use {method:'auto'} or 'chi2'.",
        )
    fit = fit_blocks(blocks)
    some = _draw_subsample(blocks, entropy, subsample_rows)
    test, check = _test_calibration(sums, fit, some, entropy, options)
    deciles = np.arange(1, N_GROUPS) / N_GROUPS
    risk = 1.0 - some.probs[:, some.baseline_index]
    bins = _sum_bins(blocks, np.quantile(risk, deciles))
    scores = sums.metric_sums
    left_out = ["miscalibrated_classes", "nested_models", "class_tests", "baselines"]
    if facts.n_clipped:
        left_out.append("zeros")
    posterior = (
        posterior_of_fit(fit, scores.weight, 0.5) if scores.weight > 1.0 else None
    )
    curves = bins.reliability(facts.classes)
    columns = share_test_columns(
        sums.class_weight, scores.predicted_weight, scores.spread, scores.weight
    )
    return BlockAssessment(
        test=test,
        fit=fit,
        metrics={
            "accuracy": scores.correct_weight / scores.weight,
            "log_loss": scores.log_loss / scores.weight,
            "brier": scores.brier / scores.weight,
            "ece": bins.top_label_error(),
            "classwise_ece": bins.classwise_error(),
        },
        expected={
            "accuracy": 1.0 - scores.expected_errors / scores.weight,
            "brier": float(scores.spread.sum()) / scores.weight,
        },
        null_distributions={},
        omnibus_tests={}
        if sums.has_weights
        else {"hosmer_lemeshow": bins.hosmer_lemeshow()},
        in_the_large=table_of_class_shares(facts.classes, columns),
        top_label_curve=curves[0],
        details=Details(
            effect_size=estimate_effect_size(some, fit, seed=entropy),
            recalibration_gain=cross_fitted_gain(some, seed=entropy),
            goodness_of_fit=goodness_of_fit(some, fit, seed=entropy),
            data_checks=check_data(some, fit, test),
            alpha=alpha,
            n_resamples=n_resamples,
            seed=entropy,
            posterior=posterior,
            skipped=dict.fromkeys(left_out, NOT_IN_MEMORY_REASON),
        ),
        predictions=facts,
        subsample=check,
        reliability=curves,
    )


def _assess_gathered(
    blocks: Blocks, seed: int, options: dict[str, Any]
) -> BlockAssessment:
    """Assess rows that are few enough to be in memory, as `assess` does."""
    facts = blocks.facts
    clip_given = blocks.layout.reading.clip is not None
    taken = undo_rounding(replace(blocks.take(), clip_given=clip_given))
    if taken.notes:  # zeros of rounded numbers were not raised to a floor
        facts = replace(
            facts,
            notes=(*facts.notes, *taken.notes),
            clip=taken.clip,
            n_clipped=taken.n_clipped,
            n_clipped_true=taken.n_clipped_true,
        )
    found = assess_predictions(taken, seed=seed, **options)
    same = {field.name: getattr(found, field.name) for field in fields(found)}
    curves = _sum_bins(blocks, np.empty(0)).reliability(facts.classes)
    return BlockAssessment(
        **same | {"predictions": facts}, subsample=None, reliability=curves
    )


def _draw_subsample(blocks: Blocks, seed: int, most: int) -> Predictions:
    """Return rows drawn without replacement; which ones depends on seed and number of rows."""
    facts = blocks.facts
    n = facts.n_samples
    # 200,000 probabilities, a round number, but at least 1000 rows of however many classes
    size = max(1000.0, 2e5 // facts.n_classes)
    size = int(min(n, most, size))
    rng = np.random.default_rng([seed, n])
    rows = rng.choice(n, size, replace=False, shuffle=False)
    return blocks.take(np.sort(rows))


def _sum_bins(blocks: Blocks, cuts: Floats) -> BinSums:
    """Return the sums over bins: one more pass."""
    n_bins = resolve_n_bins("sqrt", blocks.first_pass.metric_sums.weight)
    return blocks.sum_over_blocks(
        partial(sum_block_bins, n_bins=n_bins, cuts=cuts), "counting"
    )


def _test_calibration(
    sums: BlockSums,
    fit: MCLLOFit,
    some: Predictions,
    seed: int,
    options: dict[str, Any],
) -> tuple[CalibrationTest, CalibrationTest | None]:
    """Return the chi-square test, and that of some rows where it is in doubt.

    The latter is exact, or a bound where simulation would show less.
    """
    statistic = options["statistic"]
    why = Reason("asked")
    if options["method"] == "auto":
        why = chi2_trust_reason(
            statistic,
            sums.metric_sums.expected_errors / max(fit.df, 1),
            n_clipped=sums.changes.n_clipped,
            least_variance=lambda: float(sums.metric_sums.spread.min()),
        )
        why = why.but("size") if why.wants_draws else why
    value = compute_statistic(fit, statistic)
    found = TestResult(value, fit.df, chi2_sf(value, fit.df), "chi2").because(why)
    test = CalibrationTest.from_result(found, kind=statistic)
    if "size" not in why.limits:
        return test, None
    of = f"{format_count(some.n_samples)} of {format_count(fit.n_samples)}"
    with suppress_warnings():  # the fit of all rows has said what there is to say
        check = run_test(some, fit_predictions(some), seed=seed, **options)
    return test, replace(
        check, reason=f"On {of} rows, chosen at random with seed {seed}"
    )


MIN_BYTES_FOR_BLOCKS = 50_000_000
"""Bytes, unpacked, from which a file is read in blocks: a round number."""


def is_large_file(path: StrPath, sources: Sequence[Source] = ()) -> bool:
    """Whether `path` is a directory, or a file too large to be read at once.

    `sources` is the file where it was looked at already.
    """
    place = Path(path)
    if str(path) == "-" or not place.is_file():
        return str(path) != "-" and place.is_dir()
    if place.stat().st_size > MIN_BYTES_FOR_BLOCKS:
        return True
    source = sources[0] if sources else Source(path)
    return source.unpacked_size(MIN_BYTES_FOR_BLOCKS) > MIN_BYTES_FOR_BLOCKS


class OpenedFile:
    """A file, or the files of a directory, looked at once, and how its columns are meant.

    Parameters
    ----------
    path : path-like
        The file, or a directory of files.
    reading : dict
        Options of `read_predictions`.
    """

    def __init__(self, path: StrPath, reading: dict[str, Any]) -> None:
        self.sources, self.columns = open_sources(path, reading)
        self.is_large = is_large_file(path, self.sources)

    def reads_all_rows(self, needs: dict[str, bool], values: dict[str, Any]) -> bool:
        """Whether all rows go into memory: of a small file, or where something needs them.

        The keys of `needs` are templates that `values` fill.
        """
        for why, is_needed in needs.items():
            if is_needed:
                self.check_rows_fit_memory(why, values=values)
                return True
        return not self.is_large

    def check_rows_fit_memory(
        self,
        why: str,
        remedy: str = "Use fewer rows.",
        values: dict[str, Any] | None = None,
    ) -> None:
        """Refuse rows that would not fit into the memory of this machine, as `why` needs them."""
        if self.is_large:
            # any baseline: the one asked for may be found by likelihood, and is checked later
            own = {**self._block_options(), "baseline": None}
            with blocks_of_sources(self.sources, spill=False, **own) as blocks:
                source: Any = blocks.source
                check_rows_fit_memory(
                    source.sources, len(source.names), why, remedy, values
                )

    def fits_memory(self) -> bool:
        """Whether all rows fit into the memory of this machine."""
        available_memory()  # refuses what MCLLO_MEMORY cannot mean
        try:
            self.check_rows_fit_memory("auto")
        except InputError:
            # Any other mistake in the file is found again where its rows are read.
            return False
        return True

    def read(self) -> Predictions:
        """Return all rows."""
        return read_sources(self.sources, **self.columns)

    def blocks(self, workers: int | None = None) -> StreamedBlocks:
        """Return the rows in blocks."""
        return blocks_of_sources(self.sources, n_jobs=workers, **self._block_options())

    def _block_options(self) -> dict[str, Any]:
        """Return the options that rows in blocks have: no groups, subgroups or kinds of weight."""
        left_out = ("groups", "by", "weight_kind")
        return {
            name: value for name, value in self.columns.items() if name not in left_out
        }


def assess_file(
    path: StrPath,
    reading: dict[str, Any],
    *,
    rule: str = "",
    whole: bool = False,
    workers: int | None = None,
    **options: Any,
) -> Assessment:
    """Assess a file; `reading` is for `read_predictions`, `options` are those of `assess`.

    `whole` asks for an `Assessment` with all rows in memory, as a report needs it; ``costs`` is the
    file of a table.
    """
    costs = options.pop("costs", None)
    kind = reading.get("weight_kind")
    needs = {
        "{groups}": reading.get("groups") is not None,
        "{by}": reading.get("by") is not None,
        "{weight_kind:{kind!r}}": is_noncount_weight(kind)
        and reading.get("weight") is not None,
        "{baseline:{rule!r}}": bool(rule),
        "{costs}": costs is not None,
        "a report": whole,
    }
    file = OpenedFile(path, reading)
    if file.reads_all_rows(needs, {"kind": kind, "rule": rule}):
        predictions = file.read()
        if costs is not None:
            options["costs"] = read_costs(costs, predictions.classes)
        return assess(predictions, baseline=rule or None, **options)
    options.pop("cost_tolerance", None)
    return assess_blocks(file.blocks(workers), **options)
