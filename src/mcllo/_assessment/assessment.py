"""Validated predictions -> `Assessment`, everything a person needs to act.

The verdict (`_assessment/verdict`) rests on one test, chosen for the rows and the baseline
(`_inference/calibration_test`), and on the size of the departure; beside it stand omnibus tests,
metrics with what they would show under calibration, each class's share, and the `Details`: whose
fault it is, which kind of miscalibration, and what the answer hangs on. `DataFacts` are all that is
kept of rows that are not in memory; everything an assessment says of its data is in them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from .._diagnosis.calibration_models import Interval
from .._diagnosis.calibration_table import CalibrationTable, Versus, calibration_table_of
from .._diagnosis.class_tests import in_the_large
from .._diagnosis.culprits import Culprits
from .._fit.fit import MCLLOFit
from .._ground.notebook import Shown, ticking
from .._ground.results import Codes, Floats, none_for_nan
from .._ground.statements import Statement
from .._ground.text import Table
from .._ground.threads import one_blas_thread
from .._inference.budget import FEWEST_NULL_DRAWS, MOST_NULLS_ENTRIES, N_RESAMPLES, NULLS_WORK
from .._inference.calibration_test import fit_and_test, needs_robust
from .._inference.draws import MetricNull, Seed, entropy_of, metric_nulls
from .._inference.likelihood_tests import CalibrationTest, Method, Statistic
from .._inference.omnibus import HosmerLemeshow, OmnibusTest, kernel_companion
from .._inference.size import Size
from .._input.labels import Classes
from .._input.predictions import Predictions
from .._input.zeros import zeros_raised
from ..exceptions import PYTHON, InputError, Phrase, Words
from ..metrics import (
    accuracy,
    brier_score,
    classwise_calibration_error,
    expected_calibration_error,
    log_loss,
)
from ..metrics._binned import ClasswiseECE, TopLabelECE
from .details import Details
from .subgroups import Subgroups, check_by
from .text import assessment_text
from .verdict import TOLERANCE, Verdict, decide
from .words import rejecting, statements_of


@dataclass(frozen=True, eq=False)
class DataFacts:
    """What is known of the rows, in memory or not; names as in `Predictions`.

    Attributes
    ----------
    sample_weight : ndarray, float or None
        The weights, or the sum of those that are not in memory; None when every row counts once.
    """

    n_samples: int
    classes: Classes
    baseline: Any
    class_weight: Floats
    sample_weight: Floats | float | None
    weight_kind: str = "frequency"
    groups: Codes | None = None
    n_zeros: int = 0
    n_clipped: int = 0
    n_clipped_true: int = 0
    clip: float | None = None
    n_renormalized: int = 0
    max_row_error: float = 0.0
    notes: tuple[Statement, ...] = ()

    @classmethod
    def of(cls, predictions: Predictions) -> DataFacts:
        """Return the facts of rows in memory."""
        return cls(**{field.name: getattr(predictions, field.name) for field in fields(cls)})

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def absent(self) -> Classes:
        """Classes that never occur in the labels."""
        pairs = zip(self.classes, self.class_weight, strict=True)
        return tuple(label for label, weight in pairs if weight == 0.0)

    @property
    def zero_phrase(self) -> Phrase:
        """What the zero rule did, in a sentence; empty when it did nothing."""
        return zeros_raised(self, self.n_samples * self.n_classes)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values."""
        weighted = self.sample_weight is not None
        return {
            "n_samples": self.n_samples,
            "n_classes": self.n_classes,
            "classes": list(self.classes),
            "baseline": self.baseline,
            "class_counts": self.class_weight.tolist(),
            "absent_classes": list(self.absent),
            "weighted": weighted,
            "weight_kind": self.weight_kind if weighted else None,
            "n_groups": None if self.groups is None else len(np.unique(self.groups)),
            "n_zeros": self.n_zeros,
            "n_clipped": self.n_clipped,
            "n_clipped_true": self.n_clipped_true,
            "clip": self.clip,
            "n_renormalized": self.n_renormalized,
            "max_row_error": self.max_row_error,
            "notes": [{"kind": note.kind, "text": note.text} for note in self.notes],
        }


@dataclass(frozen=True, eq=False, repr=False)
class Assessment(Shown):
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
    promised : dict of str to float
        Accuracy, log loss and Brier score that these predictions promise: what calibrated ones of
        the same values have on average.
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
    promised: dict[str, float]
    nulls: dict[str, MetricNull]
    companions: dict[str, OmnibusTest]
    in_the_large: Table
    details: Details
    predictions: Predictions

    def __str__(self) -> str:
        return self.text()

    @property
    def size(self) -> Size:
        """How large the departure is, with intervals."""
        return self.details.size

    @property
    def verdict(self) -> Verdict:
        """What it comes to, at level 0.05 and a tolerance of one percentage point."""
        return self.decide()

    @property
    def culprits(self) -> Culprits | None:
        """Whose fault it is, when miscalibration was found; None where that cannot be asked."""
        return self.details.culprits_at(0.05) if self.verdict.rejected else None

    @property
    def subgroups(self) -> Subgroups | None:
        """Each subgroup by itself, and whether they are alike; None where rows are not divided."""
        return self.details.subgroups

    def decide(self, alpha: float = 0.05, tolerance: float = TOLERANCE) -> Verdict:
        """Return the verdict at level `alpha` with this tolerance: all that text, JSON, report and
        gate go by.
        """
        robust = self.details.robust
        return decide(
            self.test,
            self.size,
            alpha=alpha,
            tolerance=tolerance,
            cannot="" if robust is None else robust.cannot_tell(alpha),
            other=rejecting(self, alpha),
        )

    def verdicts(self, alpha: float = 0.05, tolerance: float = TOLERANCE) -> list[Verdict]:
        """Return the verdict and those of the subgroups: what a gate goes by.

        Each of the two, all rows and all subgroups, has level `alpha` for itself.
        """
        divided = self.subgroups
        own = () if divided is None else divided.decide(alpha, tolerance)
        return [self.decide(alpha, tolerance), *own]

    def text(
        self,
        alpha: float = 0.05,
        *,
        tolerance: float = TOLERANCE,
        brief: bool = False,
        full: bool = False,
        words: Words = PYTHON,
    ) -> str:
        """Return the report, its verdict at level `alpha`; `full` adds every detail.

        `brief` leaves it at what to do, without what lies behind it.

        `words` are what arguments are called: Python's names, or the command line's options.
        """
        verdict = self.decide(alpha, tolerance)
        return assessment_text(self, verdict, brief=brief, full=full, called=words)

    def statements(
        self, alpha: float = 0.05, words: Words = PYTHON, *, tolerance: float = TOLERANCE
    ) -> list[Statement]:
        """Return everything that is said at level `alpha`, each with `kind`, `text` and `numbers`.

        Kinds: heading, verdict, meaning, other, size.*, hint.*, culprit.*, remedy, test, subsample,
        companion, kind.*, by.*, baseline, zeros.*, note.* and metric.*. Text and report print what
        they pick.
        """
        return statements_of(self, self.decide(alpha, tolerance), words)

    def calibration_table(
        self, *, versus: Versus = "baseline", level: float = 0.95, interval: Interval = "wald"
    ) -> CalibrationTable:
        """Return calibration intercepts and slopes as clinical papers print them.

        Arguments as in `mcllo.calibration_table`; needs all rows in memory.
        """
        if not isinstance(self.predictions, Predictions):
            raise InputError(
                "calibration_table needs all rows in memory; these were read in parts."
            )
        drawn = {"n_resamples": self.details.n_resamples, "seed": self.details.seed}
        options: dict[str, Any] = {"versus": versus, "level": level, "interval": interval, **drawn}
        return calibration_table_of(self.predictions, self.fit, **options)

    @property
    def data(self) -> DataFacts:
        """What was read, and what was changed."""
        return DataFacts.of(self.predictions)

    @property
    def remarks(self) -> tuple[Statement, ...]:
        """What a reader must know of the test, beside what it says of itself."""
        return ()

    def __repr__(self) -> str:
        p = self.predictions
        return (
            f"<{type(self).__name__} of {p.n_samples} rows, {p.n_classes} classes: statistic "
            f"{self.test.statistic:.6g}, df {self.test.df}, pvalue {self.test.pvalue:.4g}>"
        )

    def to_dict(self, alpha: float = 0.05, tolerance: float = TOLERANCE) -> dict[str, Any]:
        """Return plain Python values, ready for strict JSON, with the verdict at level `alpha`."""
        verdict = self.decide(alpha, tolerance)
        culprits = self.details.culprits_at(alpha) if verdict.rejected else None
        divided = self.subgroups
        return {
            "verdict": none_for_nan(verdict.to_dict()),
            "size": none_for_nan(self.size.to_dict()),
            "culprits": None if culprits is None else none_for_nan(culprits.to_dict()),
            "subgroups": None if divided is None else divided.to_dict(alpha, tolerance),
            "hints": [hint.text for hint in self.details.hints],
            "test": none_for_nan(self.test.to_dict()),
            "fit": none_for_nan(self.fit.to_dict()),
            "metrics": none_for_nan(self.metrics),
            "promised": none_for_nan(self.promised),
            "nulls": {name: null.to_dict() for name, null in self.nulls.items()},
            "companions": {name: test.to_dict() for name, test in self.companions.items()},
            "in_the_large": none_for_nan(self.in_the_large.rows()),
            **none_for_nan(self.details.to_dict()),
            "data": self.data.to_dict(),
        }


@ticking("assessing")
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
    check_by(predictions)
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
    nulls, companions = _nulls_and_companions(predictions, n_resamples, entropy)
    return Assessment(
        test=fitted.test,
        fit=fitted.fit,
        metrics=summary_metrics(predictions),
        promised=promised_metrics(predictions),
        nulls=nulls,
        companions=companions,
        in_the_large=calibration_in_the_large(predictions),
        details=Details(fitted, n_resamples, entropy),
        predictions=predictions,
    )


def _nulls_and_companions(
    predictions: Predictions, n_resamples: int, seed: int
) -> tuple[dict[str, MetricNull], dict[str, OmnibusTest]]:
    """Return what calibrated predictions would show, and omnibus tests; none for dependent rows."""
    if needs_robust(predictions):
        return {}, {}
    nulls, cells = {}, predictions.counted_entries
    if predictions.has_whole_weights and cells <= MOST_NULLS_ENTRIES:
        draws = min(n_resamples, max(FEWEST_NULL_DRAWS, int(NULLS_WORK / cells)))
        statistics = {
            "ece": TopLabelECE,
            "classwise_ece": ClasswiseECE,
            "hosmer_lemeshow": HosmerLemeshow,
        }
        nulls = metric_nulls(predictions, statistics, n_resamples=draws, seed=seed)
    simulated = {kind: nulls.pop(kind) for kind in ("hosmer_lemeshow",) if kind in nulls}
    simulated |= kernel_companion(predictions, min(n_resamples, FEWEST_NULL_DRAWS), seed)
    companions = {kind: OmnibusTest.from_null(kind, null) for kind, null in simulated.items()}
    if not nulls and predictions.sample_weight is None:
        companions["hosmer_lemeshow"] = OmnibusTest.large_sample(predictions)
    return nulls, companions


def summary_metrics(predictions: Predictions) -> dict[str, float]:
    """Return the numbers every assessment shows."""
    return {
        "accuracy": accuracy(None, predictions),
        "log_loss": log_loss(None, predictions),
        "brier": brier_score(None, predictions),
        "ece": expected_calibration_error(None, predictions),
        "classwise_ece": classwise_calibration_error(None, predictions),
    }


def promised_metrics(predictions: Predictions) -> dict[str, float]:
    """Return what predictions promise: the metrics of calibrated ones of these values, on average.

    Accuracy is then the mean confidence, log loss the mean entropy, and the Brier score the mean
    of ``1 - sum_j x_ij^2``.
    """
    x = predictions.probs
    by_row = {
        "accuracy": x.max(axis=1),
        "log_loss": -np.einsum("ij,ij->i", x, np.log(x)),
        "brier": 1.0 - np.einsum("ij,ij->i", x, x),
    }
    weight = predictions.sample_weight
    return {name: float(np.average(v, weights=weight)) for name, v in by_row.items()}


def calibration_in_the_large(predictions: Predictions) -> Table:
    """Return predicted and observed share of each class, with z and p-values (also Holm's).

    For dependent rows and survey weights z and the p-values would not be valid: they are NaN.
    """
    columns = in_the_large(predictions)
    if needs_robust(predictions):
        unknown = [np.nan] * predictions.n_classes
        columns |= dict.fromkeys(("z", "large_pvalue", "large_adjusted"), unknown)
    return shares_table(predictions.classes, columns)


def shares_table(classes: Classes, columns: dict[str, list[float]]) -> Table:
    """Return the columns of `class_tests.shares` as a table, a row for each class."""
    short = {"large_pvalue": "pvalue", "large_adjusted": "adjusted"}
    return Table({"class": classes} | {short.get(k, k): own for k, own in columns.items()})
