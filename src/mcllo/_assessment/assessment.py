"""Validated predictions -> `Assessment`, everything a person needs to act.

The verdict is that of one test, chosen for the rows and the baseline
(`_inference/calibration_test`); beside it stand omnibus tests, metrics with what they would show
under calibration, each class's share, and the `Details`: which kind of miscalibration, which
classes, and what the answer hangs on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._diagnosis.class_tests import in_the_large
from .._fit.fit import MCLLOFit
from .._ground.results import none_for_nan
from .._ground.text import Table
from .._ground.threads import one_blas_thread
from .._inference.calibration_test import fit_and_test, needs_robust
from .._inference.draws import MetricNull, Seed, entropy_of, metric_nulls
from .._inference.likelihood_tests import N_RESAMPLES, CalibrationTest, Method, Statistic
from .._inference.omnibus import HosmerLemeshow, OmnibusTest, kernel_companion
from .._input.predictions import Predictions
from ..exceptions import PYTHON, Words
from ..metrics import (
    accuracy,
    brier_score,
    classwise_calibration_error,
    expected_calibration_error,
    log_loss,
)
from ..metrics._binned import ClasswiseECE, TopLabelECE
from .details import Details
from .words import assessment_text

NULL_CELLS = 2e8
"""Work (rows x classes x draws) spent on what the metrics would show under calibration."""
FEWEST_DRAWS = 199
MOST_CELLS = 2e6
"""Size of the table (rows x classes) beyond which nothing is simulated for the metrics."""


@dataclass(frozen=True, eq=False, repr=False)
class Assessment:
    """What `assess` found; print it for a short report.

    Attributes
    ----------
    test : CalibrationTest
        Is delta = gamma = 1?
    fit : MCLLOFit
        Which classes depart, and how.
    metrics : dict of str to float
        ``accuracy``, ``log_loss``, ``brier``, ``ece`` (top label, ceil(sqrt(n)) bins) and
        ``classwise_ece``.
    nulls : dict of str to MetricNull
        What ``ece`` and ``classwise_ece`` would be if the predictions were calibrated, with exact
        p-values; empty where labels cannot be simulated (fractional weights) or are too many
        (tables of more than 2 million cells).
    companions : dict of str to OmnibusTest
        Tests that see departures the likelihood ratio test is blind to.
    in_the_large : Table
        For each class the mean predicted probability, the observed share, z and p-values.
    details : Details
        The kind of miscalibration, tests of single classes, what hangs on the baseline and on
        zeros, and the posterior probability of calibration.
    predictions : Predictions
        What was assessed.
    """

    test: CalibrationTest
    fit: MCLLOFit
    metrics: dict[str, float]
    nulls: dict[str, MetricNull]
    companions: dict[str, OmnibusTest]
    in_the_large: Table
    details: Details
    predictions: Predictions

    def __str__(self) -> str:
        return self.text()

    def text(self, alpha: float = 0.05, *, full: bool = False, words: Words = PYTHON) -> str:
        """Return the report, its verdict at level `alpha`; `full` adds every detail.

        `words` are what arguments are called: Python's names, or the command line's options.
        """
        return assessment_text(self, alpha, full=full, words=words)

    def __repr__(self) -> str:
        p = self.predictions
        return (
            f"<Assessment of {p.n_samples} rows, {p.n_classes} classes: statistic "
            f"{self.test.statistic:.6g}, df {self.test.df}, pvalue {self.test.pvalue:.4g}>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, ready for strict JSON."""
        return {
            "test": none_for_nan(self.test.to_dict()),
            "fit": none_for_nan(self.fit.to_dict()),
            "metrics": none_for_nan(self.metrics),
            "nulls": {name: null.to_dict() for name, null in self.nulls.items()},
            "companions": {name: test.to_dict() for name, test in self.companions.items()},
            "in_the_large": none_for_nan(self.in_the_large.rows()),
            **none_for_nan(self.details.to_dict()),
            "data": data_facts(self.predictions),
        }


@one_blas_thread()
def assess_predictions(
    predictions: Predictions,
    rule: str = "",
    *,
    statistic: Statistic = "lr",
    method: Method = "auto",
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
) -> Assessment:
    """Assess validated predictions; `rule` "auto" chooses their baseline."""
    entropy = entropy_of(seed)
    fitted = fit_and_test(
        predictions,
        rule,
        statistic=statistic,
        method=method,
        n_resamples=n_resamples,
        seed=entropy,
    )
    predictions = fitted.predictions
    nulls = simulated_nulls(predictions, n_resamples, entropy)
    companions = _companions(predictions, nulls, n_resamples, entropy)
    return Assessment(
        test=fitted.test,
        fit=fitted.fit,
        metrics=summary_metrics(predictions),
        nulls=nulls,
        companions=companions,
        in_the_large=calibration_in_the_large(predictions),
        details=Details(fitted, n_resamples, entropy),
        predictions=predictions,
    )


def _companions(
    predictions: Predictions, nulls: dict[str, MetricNull], n_resamples: int, seed: int
) -> dict[str, OmnibusTest]:
    """Return the omnibus tests, taking theirs out of `nulls`; none for dependent rows."""
    if needs_robust(predictions):
        return {}
    simulated = {kind: nulls.pop(kind) for kind in ("hosmer_lemeshow",) if kind in nulls}
    simulated |= kernel_companion(predictions, min(n_resamples, FEWEST_DRAWS), seed)
    companions = {kind: OmnibusTest.from_null(kind, null) for kind, null in simulated.items()}
    if not nulls and predictions.sample_weight is None:
        companions["hosmer_lemeshow"] = OmnibusTest.large_sample(predictions)
    return companions


def simulated_nulls(predictions: Predictions, n_resamples: int, seed: int) -> dict[str, MetricNull]:
    """Return what calibrated predictions would show: ECE, classwise ECE and Hosmer-Lemeshow."""
    cells = float(predictions.probs.size)
    dependent = needs_robust(predictions)
    if dependent or not predictions.has_whole_weights or cells > MOST_CELLS:
        return {}
    draws = min(n_resamples, max(FEWEST_DRAWS, int(NULL_CELLS / cells)))
    statistics = {
        "ece": TopLabelECE,
        "classwise_ece": ClasswiseECE,
        "hosmer_lemeshow": HosmerLemeshow,
    }
    return metric_nulls(predictions, statistics, n_resamples=draws, seed=seed)


def summary_metrics(predictions: Predictions) -> dict[str, float]:
    """Return the numbers every assessment shows."""
    return {
        "accuracy": accuracy(None, predictions),
        "log_loss": log_loss(None, predictions),
        "brier": brier_score(None, predictions),
        "ece": expected_calibration_error(None, predictions),
        "classwise_ece": classwise_calibration_error(None, predictions),
    }


def calibration_in_the_large(predictions: Predictions) -> Table:
    """Return predicted and observed share of each class, with z and p-values (also Holm's).

    For dependent rows and survey weights z and the p-values would not be valid: they are NaN.
    """
    columns = in_the_large(predictions)
    columns["pvalue"] = columns.pop("large_pvalue")
    columns["adjusted"] = columns.pop("large_adjusted")
    if needs_robust(predictions):
        columns |= {name: [np.nan] * predictions.n_classes for name in ("z", "pvalue", "adjusted")}
    return Table({"class": predictions.classes, **columns})


def data_facts(predictions: Predictions) -> dict[str, Any]:
    """Return what was read and what was changed."""
    p = predictions
    return {
        "n_samples": p.n_samples,
        "n_classes": p.n_classes,
        "classes": list(p.classes),
        "baseline": p.baseline,
        "class_counts": p.class_weight.tolist(),
        "absent_classes": list(p.absent),
        "weighted": p.sample_weight is not None,
        "weight_kind": p.weight_kind if p.sample_weight is not None else None,
        "n_groups": None if p.groups is None else len(np.unique(p.groups)),
        "n_zeros": p.n_zeros,
        "n_clipped": p.n_clipped,
        "n_clipped_true": p.n_clipped_true,
        "clip": p.clip,
        "n_renormalized": p.n_renormalized,
        "max_row_error": p.max_row_error,
    }
