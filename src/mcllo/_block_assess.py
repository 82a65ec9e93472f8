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

import warnings
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._assess import MOST_CELLS, assess_predictions
from ._binning import n_bins_of
from ._block_assessment import BlockAssessment, BlockDetails, BlockFacts
from ._block_bins import BinSums, bin_sums
from ._block_fit import fit_blocks
from ._block_sums import RowSums
from ._blocks import Blocks
from ._calibration_test import (
    N_RESAMPLES,
    CalibrationTest,
    Method,
    Statistic,
    _check_choices,
    _statistic_value,
    chi2_sf,
    run_test,
    trust_chi2,
)
from ._class_tests import _normal_tails
from ._fit import MCLLOFit, fit_predictions
from ._labels import Classes
from ._monte_carlo import Seed, check_resamples, entropy_of
from ._multiplicity import holm
from ._omnibus import N_GROUPS
from ._predictions import Predictions
from ._table import Table
from ._text import format_count
from .exceptions import InputError

Floats = NDArray[np.float64]

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
    >>> from mcllo._block_sources import blocks_of_arrays
    >>> rng = np.random.default_rng(0)
    >>> x = rng.random(4000)
    >>> blocks = blocks_of_arrays(np.column_stack([1 - x, x]), (rng.random(4000) < x).astype(int))
    >>> assess_blocks(blocks, seed=0).test.rejects(alpha=0.01)
    False
    """
    _check_choices(statistic, method)
    check_resamples(n_resamples)
    entropy = entropy_of(seed)
    options: dict[str, Any] = {"statistic": statistic, "method": method, "n_resamples": n_resamples}
    if blocks.first.n_samples * len(blocks.layout.classes) <= MOST_CELLS:
        return _small(blocks, entropy, options)
    if method in ("exact", "sequential"):
        raise InputError(
            f"method={method!r} draws labels for rows in memory; {blocks.first.n_samples:,} are "
            "too many here. Use method='auto' or 'chi2'."
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
    value = _statistic_value(fit, statistic)
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
    pvalues = _normal_tails(z)
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
