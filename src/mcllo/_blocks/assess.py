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

`BlockAssessment`: what is known of rows that are never all in memory, as small objects.

They have the attributes of `Assessment`, `Details` and `Predictions` that words and tables read, so
one report serves both.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np

from .._assessment.assessment import MOST_CELLS, assess_predictions, data_facts
from .._assessment.details import PARTS, Details
from .._assessment.words import assessment_text, wrapped
from .._diagnosis.class_tests import holm, normal_tails
from .._fit.fit import MCLLOFit, fit_predictions
from .._ground.results import Floats, none_for_nan
from .._ground.text import Table, format_count
from .._inference.draws import MetricNull, Seed, check_resamples, entropy_of
from .._inference.likelihood_tests import (
    N_RESAMPLES,
    CalibrationTest,
    Method,
    Statistic,
    check_choices,
    chi2_sf,
    run_test,
    statistic_value,
    trust_chi2,
)
from .._inference.omnibus import N_GROUPS, OmnibusTest
from .._inference.posterior import CalibrationPosterior, posterior_of_fit
from .._input.labels import Classes
from .._input.predictions import Predictions
from ..exceptions import PYTHON, InputError, Option, Phrase, Words
from ..metrics._bins import n_bins_of
from ..metrics._reliability import ReliabilityCurve
from .bins import BinSums, bin_sums
from .blocks import Blocks, zero_phrase
from .fit import fit_blocks
from .sums import RowSums

TOO_LARGE = "the rows are not all in memory"


@dataclass(frozen=True, eq=False)
class BlockFacts:
    """What is known of rows that are not in memory; names as in `Predictions`.

    Attributes
    ----------
    sample_weight : float or None
        Total weight; None when every row counts once.
    """

    n_samples: int
    classes: Classes
    baseline: Any
    class_weight: Floats
    sample_weight: float | None
    n_zeros: int
    n_clipped: int
    n_clipped_true: int
    clip: float | None
    n_renormalized: int
    max_row_error: float
    zero_phrase: Phrase
    weight_kind: str = "frequency"
    groups: None = None

    @classmethod
    def of(cls, blocks: Blocks) -> BlockFacts:
        """Return the facts that the first pass found."""
        sums, layout = blocks.first, blocks.layout
        return cls(
            n_samples=sums.n_samples,
            classes=layout.classes,
            baseline=layout.baseline,
            class_weight=sums.class_weight,
            sample_weight=sums.scores.weight if sums.weighted else None,
            zero_phrase=zero_phrase(sums),
            **vars(sums.changes),
        )

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def absent(self) -> Classes:
        """Classes that never occur in the labels."""
        pairs = zip(self.classes, self.class_weight, strict=True)
        return tuple(label for label, weight in pairs if weight == 0.0)


@dataclass(frozen=True, eq=False)
class BlockDetails:
    """What needs no rows of `Details`, and what was left out.

    Attributes
    ----------
    posterior : CalibrationPosterior or None
        Posterior probability of calibration at even odds.
    skipped : dict of str to str
        What was left out, and why.
    """

    posterior: CalibrationPosterior | None
    skipped: dict[str, str]
    ladder: None = None
    class_tests: None = None
    baselines: None = None
    zeros: None = None
    robust: None = None

    @classmethod
    def of(cls, sums: RowSums, fit: MCLLOFit) -> BlockDetails:
        """Return the details that the sums tell."""
        left_out = ["ladder", "class_tests", "baselines"] + ["zeros"] * bool(sums.changes.n_clipped)
        known = sums.scores.weight > 1.0
        return cls(
            posterior=posterior_of_fit(fit, sums.scores.weight, 0.5) if known else None,
            skipped=dict.fromkeys(left_out, TOO_LARGE),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values."""
        parts = {name: getattr(self, name) for name in PARTS}
        plain = {name: None if part is None else part.to_dict() for name, part in parts.items()}
        return {**plain, "skipped": dict(self.skipped)}


@dataclass(frozen=True, eq=False, repr=False)
class BlockAssessment:
    """What `assess_blocks` found; print it for the report that `Assessment` prints.

    Attributes
    ----------
    test, fit, metrics, nulls, companions, in_the_large, details
        As in `Assessment`.
    subsample : CalibrationTest or None
        The exact test of a random subsample, where the chi-square p-value of `test` is in doubt;
        its `reason` says how many rows.
    reliability : list of ReliabilityCurve
        Of the most probable class, then class by class; 10 bins of equal width.
    predictions : BlockFacts
        What was assessed.
    """

    test: CalibrationTest
    fit: MCLLOFit
    metrics: dict[str, float]
    nulls: dict[str, MetricNull]
    companions: dict[str, OmnibusTest]
    in_the_large: Table
    details: Details | BlockDetails
    subsample: CalibrationTest | None
    reliability: list[ReliabilityCurve]
    predictions: BlockFacts

    def __str__(self) -> str:
        return self.text()

    def text(self, alpha: float = 0.05, *, full: bool = False, words: Words = PYTHON) -> str:
        """Return the report, its verdict at level `alpha`; `full` adds every detail.

        `words` are what arguments are called: Python's names, or the command line's options.
        """
        text = assessment_text(cast(Any, self), alpha, full=full, words=words)
        line = f"  {self.test}\n"
        if self.subsample is None:
            return text
        doubt = f"Chi-square is in doubt: {self.test.reason}. {self.subsample.reason}:"
        note = [f"  {part}\n" for part in wrapped([f"{doubt} {self.subsample}"])]
        return text.replace(line, line + "".join(note), 1)

    def __repr__(self) -> str:
        p = self.predictions
        return (
            f"<BlockAssessment of {p.n_samples} rows, {p.n_classes} classes: statistic "
            f"{self.test.statistic:.6g}, df {self.test.df}, pvalue {self.test.pvalue:.4g}>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, ready for strict JSON."""
        return {
            "test": none_for_nan(self.test.to_dict()),
            "subsample": None if self.subsample is None else none_for_nan(self.subsample.to_dict()),
            "fit": none_for_nan(self.fit.to_dict()),
            "metrics": none_for_nan(self.metrics),
            "nulls": {name: null.to_dict() for name, null in self.nulls.items()},
            "companions": {name: test.to_dict() for name, test in self.companions.items()},
            "in_the_large": none_for_nan(self.in_the_large.rows()),
            "reliability": [curve.to_dict() for curve in self.reliability],
            **none_for_nan(self.details.to_dict()),
            "data": data_facts(cast(Any, self.predictions)),
        }


SUBSAMPLE_CELLS = 2e5
"""Rows times classes of the subsample whose p-value is exact."""
SUBSAMPLE_ROWS = 20_000


def assess_blocks(
    blocks: Blocks,
    *,
    statistic: Statistic = "lr",
    method: Method = "auto",
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
) -> BlockAssessment:
    """Assess rows in blocks; see the module for what differs from `assess`.

    Parameters
    ----------
    blocks : Blocks
        The rows.
    statistic, method, n_resamples, seed
        As in `assess`; tables of more than 2 million cells have no exact p-value.

    Examples
    --------
    >>> from mcllo._blocks.sources import blocks_of_arrays
    >>> rng = np.random.default_rng(0)
    >>> x = rng.random(4000)
    >>> blocks = blocks_of_arrays(np.column_stack([1 - x, x]), (rng.random(4000) < x).astype(int))
    >>> assess_blocks(blocks, seed=0).test.rejects(alpha=0.01)
    False
    """
    check_choices(statistic, method)
    check_resamples(n_resamples)
    entropy = entropy_of(seed)
    options: dict[str, Any] = {"statistic": statistic, "method": method, "n_resamples": n_resamples}
    if blocks.first.n_samples * len(blocks.layout.classes) <= MOST_CELLS:
        return _small(blocks, entropy, options)
    if method in ("exact", "sequential"):
        raise InputError(
            Phrase(
                "{found} draws labels for rows in memory; {:,} are too many here.",
                blocks.first.n_samples,
            ),
            argument="method",
            value=method,
            remedy=Phrase("Use {} or 'chi2'.", Option("method", "auto")),
        )
    return _large(blocks, entropy, options)


def _small(blocks: Blocks, seed: int, options: dict[str, Any]) -> BlockAssessment:
    """Gather the rows and assess them in memory."""
    found = assess_predictions(blocks.take(), seed=seed, **options)
    bins = _bins(blocks, np.empty(0))
    return BlockAssessment(
        test=found.test,
        fit=found.fit,
        metrics=found.metrics,
        nulls=found.nulls,
        companions=found.companions,
        in_the_large=found.in_the_large,
        details=found.details,
        subsample=None,
        reliability=bins.reliability(blocks.layout.classes),
        predictions=BlockFacts.of(blocks),
    )


def _large(blocks: Blocks, seed: int, options: dict[str, Any]) -> BlockAssessment:
    sums, classes = blocks.first, blocks.layout.classes
    fit = fit_blocks(blocks)
    some = _subsample(blocks, seed)
    test, check = _tested(sums, fit, some, seed, options)
    deciles = np.arange(1, N_GROUPS) / N_GROUPS
    bins = _bins(blocks, np.quantile(1.0 - some.probs[:, some.baseline_index], deciles))
    return BlockAssessment(
        test=test,
        fit=fit,
        metrics=_metrics(sums, bins),
        nulls={},
        companions={} if sums.weighted else {"hosmer_lemeshow": bins.hosmer_lemeshow()},
        in_the_large=_in_the_large(sums, classes),
        details=BlockDetails.of(sums, fit),
        subsample=check,
        reliability=bins.reliability(classes),
        predictions=BlockFacts.of(blocks),
    )


def _bins(blocks: Blocks, cuts: Floats) -> BinSums:
    n_bins = n_bins_of("sqrt", blocks.first.scores.weight)
    bins: BinSums = blocks.total(partial(bin_sums, n_bins=n_bins, cuts=cuts), "counting")
    return bins


def _subsample(blocks: Blocks, seed: int) -> Predictions:
    """Return random rows; which ones depends on the seed and the number of rows alone."""
    n = blocks.first.n_samples
    size = int(min(n, SUBSAMPLE_ROWS, max(1000.0, SUBSAMPLE_CELLS // len(blocks.layout.classes))))
    rows = np.random.default_rng([seed, n]).choice(n, size, replace=False, shuffle=False)
    return blocks.take(np.sort(rows))


def _tested(
    sums: RowSums, fit: MCLLOFit, some: Predictions, seed: int, options: dict[str, Any]
) -> tuple[CalibrationTest, CalibrationTest | None]:
    """Return the chi-square test, and the exact one of a subsample where the former is in doubt."""
    statistic = options["statistic"]
    value = statistic_value(fit, statistic)
    reason, doubt = "as asked", ""
    if options["method"] == "auto":
        reason, doubt = _trust(sums, fit.df, statistic)
    test = CalibrationTest(
        value, fit.df, chi2_sf(value, fit.df), "chi2", statistic, 0, False, None, reason
    )
    if not doubt:
        return test, None
    return test, _exact(some, fit.n_samples, seed, options)


def _trust(sums: RowSums, df: int, statistic: str) -> tuple[str, str]:
    """Return why chi-square is used, and what speaks against it."""
    reason, doubt = trust_chi2(
        statistic,
        sums.scores.errors / max(df, 1),
        n_clipped=sums.changes.n_clipped,
        least_variance=lambda: float(sums.scores.spread.min()),
        whole_weights=lambda: sums.whole,
    )
    return reason or f"{doubt}, but the data are too large to simulate", doubt


def _exact(
    some: Predictions, n_samples: int, seed: int, options: dict[str, Any]
) -> CalibrationTest:
    """Return the test of the subsample: exact, or a bound where simulation would show less."""
    reason = (
        f"On {format_count(some.n_samples)} of {format_count(n_samples)} rows, chosen at "
        f"random with seed {seed}"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit of all rows has said what there is to say
        found = run_test(some, fit_predictions(some), seed=seed, **options)
    return CalibrationTest(**{**found.to_dict(), "reason": reason})


def _metrics(sums: RowSums, bins: BinSums) -> dict[str, float]:
    scores = sums.scores
    return {
        "accuracy": scores.hits / scores.weight,
        "log_loss": scores.log_loss / scores.weight,
        "brier": scores.brier / scores.weight,
        "ece": bins.top_label_error(),
        "classwise_ece": bins.classwise_error(),
    }


def _in_the_large(sums: RowSums, classes: Classes) -> Table:
    """Return predicted and observed share of each class, with z and p-values (also Holm's)."""
    expected, observed, total = sums.scores.predicted, sums.class_weight, sums.scores.weight
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (observed - expected) / np.sqrt(sums.scores.spread)
    pvalues = normal_tails(z)
    return Table(
        {
            "class": classes,
            "predicted": (expected / total).tolist(),
            "observed": (observed / total).tolist(),
            "z": z.tolist(),
            "pvalue": pvalues.tolist(),
            "adjusted": holm(pvalues).tolist(),
        }
    )
