"""Validated predictions -> `Assessment`, everything a person needs to act.

The verdict (`_assessment/verdict`) rests on one test, chosen for the rows and the baseline
(`_inference/calibration_test`), and on the size of the departure; beside it stand omnibus tests,
metrics with what they would show under calibration, each class's share, and the `Details`: which
classes are miscalibrated, which kind of miscalibration, and what the answer hangs on. All of it is
computed by `assess_predictions`; text, JSON and notebook only look it up. What is said of the data
comes from `DataFacts` (`_validation/predictions`), all that is kept of rows that are not in memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._diagnostics.attribution import ClassAttribution
from .._diagnostics.calibration_table import (
    CalibrationTable,
    Interval,
    Versus,
    build_calibration_table,
)
from .._diagnostics.class_tests import ClassTests, in_the_large_columns
from .._diagnostics.nested_models import NestedModels
from .._fit.fit import MCLLOFit
from .._inference.budget import (
    MAX_NULLS_ENTRIES,
    MIN_DRAWS,
    N_RESAMPLES,
    NULLS_WORK,
)
from .._inference.calibration_test import (
    FittedTest,
    fit_and_test,
    needs_robust_covariance,
)
from .._inference.effect_size import EffectSize
from .._inference.goodness_of_fit import GoodnessOfFit
from .._inference.likelihood_tests import CalibrationTest, Method, Statistic
from .._inference.monte_carlo import MetricNull, Seed, metric_nulls, seed_entropy
from .._inference.omnibus import HosmerLemeshow, OmnibusTest, kernel_omnibus_test
from .._inference.robust import RobustTest
from .._utils.formatting import Table
from .._utils.notebook import NotebookResult, show_progress
from .._utils.parallel import one_blas_thread, row_blocks
from .._utils.results import none_for_nonfinite
from .._utils.statements import Statement
from .._validation.labels import Classes
from .._validation.predictions import DataFacts, Predictions
from .._validation.rounding import undo_rounding
from ..calibrators._auto.gain import CrossFittedGain
from ..exceptions import PYTHON, InputError, Names
from ..metrics import (
    accuracy,
    brier_score,
    classwise_calibration_error,
    expected_calibration_error,
    log_loss,
)
from ..metrics._binned import ClasswiseECE, TopLabelECE
from ..metrics._reliability import ReliabilityCurve, reliability_curve
from ..metrics._vega import reliability_chart
from .details import DetailComputations, Details, compute_details
from .report_text import assessment_text
from .sentences import (
    allows_class_attribution,
    assessment_statements,
    rejecting_omnibus_tests,
)
from .subgroup_results import Subgroups, check_subgroups_testable
from .verdict import TOLERANCE, Verdict, decide_verdict

if TYPE_CHECKING:
    from .._decisions.decision_value import DecisionValue

MAX_EXPANDED_ROWS_OF_CURVE = 10_000_000
"""Rows up to which weights are written out for the bands of a curve: a round number."""


@dataclass(frozen=True, eq=False, repr=False)
class Assessment(NotebookResult):
    """What `assess` found; print it for a short report.

    It holds all that text, JSON and notebook show: printing computes nothing.

    Attributes
    ----------
    test : CalibrationTest
        Is delta = gamma = 1?
    fit : MCLLOFit
        Which classes depart, and how.
    metrics : dict of str to float
        ``accuracy``, ``log_loss``, ``brier``, ``ece`` (top label, ceil(sqrt(n)) bins) and
        ``classwise_ece``.
    expected : dict of str to float
        Accuracy, log loss and Brier score expected under calibration: what calibrated ones of
        the same values have on average.
    null_distributions : dict of str to MetricNull
        What ``ece`` and ``classwise_ece`` would be if the predictions were calibrated, with exact
        p-values; empty where labels cannot be simulated (fractional weights) or are too many
        (tables of more than 2 million cells).
    omnibus_tests : dict of str to OmnibusTest
        Tests that see departures the likelihood ratio test is blind to.
    in_the_large : Table
        For each class the mean predicted probability, the observed share, z and p-values.
    top_label_curve : ReliabilityCurve or None
        Reliability of the most probable class, 10 bins of equal width; None where rows count so
        often that its bands would need too much memory.
    details : Details
        The size of the departure, which classes and which kind of miscalibration, what hangs on
        the baseline and on zeros, and the posterior probability of calibration.
    predictions : Predictions
        What was assessed.

    See Also
    --------
    assess : Makes it.
    report : A page that can be read without statistics.
    Verdict : What it comes to.
    EffectSize : How far predictions are off.

    Examples
    --------
    >>> import mcllo
    >>> probs = [[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]] * 10
    >>> y = [0, 1, 1, 0, 0, 0, 1, 1] * 5
    >>> a = mcllo.assess(probs, y, seed=0, n_resamples=19)
    >>> a.test.df, a.verdict.kind
    (2, 'inconclusive')
    """

    test: CalibrationTest
    fit: MCLLOFit
    metrics: dict[str, float]
    expected: dict[str, float]
    null_distributions: dict[str, MetricNull]
    omnibus_tests: dict[str, OmnibusTest]
    in_the_large: Table
    top_label_curve: ReliabilityCurve | None
    details: Details
    predictions: Predictions

    def __str__(self) -> str:
        return self.text()

    @property
    def effect_size(self) -> EffectSize:
        """How large the departure is, with intervals."""
        return self.details.effect_size

    @property
    def recalibration_gain(self) -> CrossFittedGain:
        """What a recalibration learned on four fifths of the rows gains on the others."""
        return self.details.recalibration_gain

    @property
    def goodness_of_fit(self) -> GoodnessOfFit:
        """Whether more than chance is left after the fitted map of shifts and slopes."""
        return self.details.goodness_of_fit

    @property
    def verdict(self) -> Verdict:
        """What it comes to, at the level of `assess` and a tolerance of one percentage point."""
        return self.decide()

    @property
    def alpha(self) -> float:
        """Level at which it is printed, and at which miscalibrated classes were looked for."""
        return self.details.alpha

    @property
    def miscalibrated_classes(self) -> ClassAttribution | None:
        """Which classes are miscalibrated, when miscalibration was found; None where that cannot be
        asked.
        """
        return self.details.miscalibrated_classes

    @property
    def subgroups(self) -> Subgroups | None:
        """Each subgroup by itself, and whether they are alike; None where rows are not divided."""
        return self.details.subgroups

    @property
    def decision_value(self) -> DecisionValue | None:
        """What acting on the predictions costs; None where `assess` was given no costs."""
        return self.details.decision_value

    def decide(
        self,
        alpha: float | None = None,
        tolerance: float = TOLERANCE,
        cost_tolerance: float | None = None,
    ) -> Verdict:
        """Return the verdict at level `alpha` with this tolerance.

        Text, JSON, report and gate all go by it.

        Parameters
        ----------
        alpha : float, optional
            Level of the tests: the chance of finding something in calibrated predictions. That of
            `assess` when not given.
        tolerance : float
            Mean change of a probability that is too little to matter.
        cost_tolerance : float, optional
            Cost of a case that is too little to matter, in its place. That of `assess` when not
            given.

        Returns
        -------
        Verdict
            `kind`, and the numbers it rests on.
        """
        alpha = self.alpha if alpha is None else alpha
        if cost_tolerance is None:
            cost_tolerance = self.details.cost_tolerance
        value = self.decision_value
        if cost_tolerance is not None and value is None:
            raise InputError(
                "cost_tolerance needs costs; pass them to assess(..., costs=)."
            )
        return decide_verdict(
            self.test,
            self.effect_size,
            alpha=alpha,
            tolerance=tolerance,
            n_samples=self.data.n_samples,
            obstacle=_why_robust_test_cannot_reject(self.details.robust, alpha),
            other=rejecting_omnibus_tests(self, alpha),
            goodness_of_fit=self.goodness_of_fit,
            price=None if value is None else value.price,
            cost_tolerance=cost_tolerance,
        )

    def verdicts(
        self, alpha: float | None = None, tolerance: float = TOLERANCE
    ) -> list[Verdict]:
        """Return the verdict and those of the subgroups: what a gate goes by.

        Each of the two, all rows and all subgroups, has level `alpha` for itself.

        Parameters
        ----------
        alpha : float, optional
            Level of the tests: the chance of finding something in calibrated predictions. That of
            `assess` when not given.
        tolerance : float
            Mean change of a probability that is too little to matter.

        Returns
        -------
        list of Verdict
            That of all rows first, then those of the subgroups.
        """
        verdict = self.decide(alpha, tolerance)
        if self.subgroups is None:
            return [verdict]
        return [verdict, *self.subgroups.decide(verdict.alpha, tolerance)]

    def nested_models(self) -> NestedModels | None:
        """Return which kind of miscalibration it is; None where `details.skipped` says why.

        Computed here unless `assess` did so: after a rejection, or with ``full=True``.
        """
        if "nested_models" in self.details.not_computed:
            return self._detail_computations("nested_models").nested_models()
        return self.details.nested_models

    def class_tests(self) -> ClassTests | None:
        """Return a test of each class; None where `details.skipped` says why.

        Computed here unless `assess` did so, with ``full=True``.
        """
        if "class_tests" in self.details.not_computed:
            return self._detail_computations("class_tests").class_tests()
        return self.details.class_tests

    def attribute_miscalibration(
        self, alpha: float | None = None
    ) -> ClassAttribution | None:
        """Return which classes are miscalibrated at level `alpha`; None where that is left out.

        At the level of `assess` it is `miscalibrated_classes`; at another one it is computed here.
        """
        alpha = self.alpha if alpha is None else alpha
        if not allows_class_attribution(self.decide(alpha)):
            return None
        if alpha == self.alpha or "miscalibrated_classes" in self.details.skipped:
            return self.details.miscalibrated_classes
        parts = self._detail_computations("miscalibrated_classes")
        return parts.miscalibrated_classes(self.nested_models(), alpha)

    def at_level(self, alpha: float) -> Assessment:
        """Return the same assessment with its classes named at level `alpha`, to be printed there.

        Parameters
        ----------
        alpha : float
            Level of the tests: the chance of finding something in calibrated predictions.

        Returns
        -------
        Assessment
            This one where it has that level.
        """
        if alpha == self.alpha:
            return self
        nested_models = self.details.nested_models
        if allows_class_attribution(self.decide(alpha)):
            nested_models = self.nested_models()
        changes: dict[str, Any] = {
            "alpha": alpha,
            "nested_models": nested_models,
            "miscalibrated_classes": self.attribute_miscalibration(alpha),
        }
        return replace(self, details=replace(self.details, **changes))

    def with_full_details(self) -> Assessment:
        """Return the same assessment with every part of the full text, as of ``full=True``.

        Returns
        -------
        Assessment
            This one where nothing was left to compute.
        """
        if not self.details.not_computed:
            return self
        changes: dict[str, Any] = {
            "nested_models": self.nested_models(),
            "class_tests": self.class_tests(),
        }
        return replace(self, details=replace(self.details, **changes))

    def _detail_computations(self, detail_name: str) -> DetailComputations:
        """Return what computes single parts of these rows, which must be in memory."""
        if not isinstance(self.predictions, Predictions):
            raise InputError(
                f"{detail_name} needs all rows in memory; these were read in parts. "
                "Pass full=True to assess."
            )
        fitted = FittedTest(self.predictions, self.fit, self.test, self.details.robust)
        d = self.details
        return DetailComputations(fitted, d.n_resamples, d.seed, d.skipped)

    def text(
        self,
        alpha: float | None = None,
        *,
        tolerance: float = TOLERANCE,
        brief: bool = False,
        full: bool = False,
        names: Names = PYTHON,
    ) -> str:
        """Return the report, its verdict at level `alpha`; `full` adds every detail there is.

        The level is that of `assess` when not given. `brief` leaves it at what to do, without what
        lies behind it.

        `names` are what arguments are called: Python's names, or the command line's options.
        """
        verdict = self.decide(alpha, tolerance)
        return assessment_text(self, verdict, brief=brief, full=full, names=names)

    def statements(
        self,
        alpha: float | None = None,
        names: Names = PYTHON,
        *,
        tolerance: float = TOLERANCE,
    ) -> list[Statement]:
        """Return everything that is said at level `alpha`, each with `kind`, `text` and `numbers`.

        Kinds: heading, verdict, meaning, other, effect_size.*, data_check.*, attribution.*, remedy,
        test, subsample, omnibus, kind.*, by.*, baseline, zeros.*, note.* and metric.*. Text and
        report print what they pick.
        """
        return assessment_statements(self, self.decide(alpha, tolerance), names)

    def calibration_table(
        self,
        *,
        versus: Versus = "baseline",
        level: float = 0.95,
        interval: Interval = "wald",
    ) -> CalibrationTable:
        """Return calibration intercepts and slopes as clinical papers print them.

        Arguments as in `mcllo.calibration_table`; needs all rows in memory.
        """
        if not isinstance(self.predictions, Predictions):
            raise InputError(
                "calibration_table needs all rows in memory; these were read in parts."
            )
        return build_calibration_table(
            self.predictions,
            self.fit,
            versus=versus,
            level=level,
            interval=interval,
            n_resamples=self.details.n_resamples,
            seed=self.details.seed,
        )

    @property
    def data(self) -> DataFacts:
        """What was read, and what was changed."""
        return DataFacts.from_predictions(self.predictions)

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

    def to_dict(
        self, alpha: float | None = None, tolerance: float = TOLERANCE
    ) -> dict[str, Any]:
        """Return plain Python values, ready for strict JSON, with the verdict at level `alpha`.

        Parts of the full text are None where they were not computed (``full=True`` does).
        """
        verdict = self.decide(alpha, tolerance)
        miscalibrated_classes = (
            self.miscalibrated_classes if allows_class_attribution(verdict) else None
        )
        divided = self.subgroups
        return {
            "verdict": none_for_nonfinite(verdict.to_dict()),
            "effect_size": none_for_nonfinite(self.effect_size.to_dict()),
            "recalibration_gain": none_for_nonfinite(self.recalibration_gain.to_dict()),
            "goodness_of_fit": none_for_nonfinite(self.goodness_of_fit.to_dict()),
            "miscalibrated_classes": None
            if miscalibrated_classes is None
            else none_for_nonfinite(miscalibrated_classes.to_dict()),
            "subgroups": None
            if divided is None
            else divided.to_dict(verdict.alpha, tolerance),
            "decision_value": None
            if self.decision_value is None
            else self.decision_value.to_dict(),
            "data_checks": [hint.text for hint in self.details.data_checks],
            "test": none_for_nonfinite(self.test.to_dict()),
            "fit": none_for_nonfinite(self.fit.to_dict()),
            "metrics": none_for_nonfinite(self.metrics),
            "expected": none_for_nonfinite(self.expected),
            "null_distributions": {
                name: null.to_dict() for name, null in self.null_distributions.items()
            },
            "omnibus_tests": {
                name: test.to_dict() for name, test in self.omnibus_tests.items()
            },
            "in_the_large": none_for_nonfinite(self.in_the_large.rows()),
            **none_for_nonfinite(self.details.to_dict()),
            "data": self.data.to_dict(),
        }

    def to_vega(self, *, by_class: bool = False) -> dict[str, Any]:
        """Return the reliability diagram as a dictionary of Vega-Lite.

        For Weights & Biases, notebooks and web pages, without matplotlib.

        Parameters
        ----------
        by_class : bool
            A panel for each class, in their order, instead of the most probable class.

        Returns
        -------
        dict
            Plain values, ready for JSON.

        Examples
        --------
        >>> import mcllo
        >>> a = mcllo.assess([[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]], [0, 0, 1, 1], seed=0)
        >>> sorted(a.to_vega(by_class=True))
        ['$schema', 'columns', 'data', 'description', 'facet', 'spec']
        """
        return reliability_chart(self._curves_to_draw(by_class))

    def _curves_to_draw(self, by_class: bool) -> list[ReliabilityCurve]:
        if by_class:
            classes = self.predictions.classes
            return [reliability_curve(self.predictions, label=k) for k in classes]
        return [self.top_label_curve or reliability_curve(self.predictions)]


@show_progress("assessing")
@one_blas_thread()
def assess_predictions(
    predictions: Predictions,
    rule: str = "",
    *,
    statistic: Statistic = "lr",
    method: Method = "auto",
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
    alpha: float = 0.05,
    full: bool = False,
    left_out: str = "",
    costs: Any = None,
    cost_tolerance: float | None = None,
) -> Assessment:
    """Assess validated predictions; `rule` "auto" chooses their baseline.

    `left_out` says why nothing is asked that goes beyond the size and the data checks.
    """
    check_subgroups_testable(predictions)
    entropy = seed_entropy(seed)
    value = None
    if costs is not None:
        value = _decision_value(predictions, costs)
    elif cost_tolerance is not None:
        raise InputError("cost_tolerance needs costs; pass costs= too.")
    fitted = fit_and_test(
        undo_rounding(predictions),
        rule,
        statistic=statistic,
        method=method,
        n_resamples=n_resamples,
        seed=entropy,
    )
    predictions = fitted.predictions
    null_distributions, omnibus_tests = _null_distributions_and_omnibus_tests(
        predictions, n_resamples, entropy
    )
    details = compute_details(
        fitted,
        n_resamples=n_resamples,
        seed=entropy,
        alpha=alpha,
        full=full,
        left_out=left_out,
    )
    details = replace(details, decision_value=value, cost_tolerance=cost_tolerance)
    return Assessment(
        test=fitted.test,
        fit=fitted.fit,
        metrics=summary_metrics(predictions),
        expected=metrics_expected_if_calibrated(predictions),
        null_distributions=null_distributions,
        omnibus_tests=omnibus_tests,
        in_the_large=calibration_in_the_large(predictions),
        top_label_curve=_top_label_reliability_curve(predictions),
        details=details,
        predictions=predictions,
    )


def _decision_value(predictions: Predictions, costs: Any) -> DecisionValue:
    """Return what acting on the predictions costs."""
    # calibrators load scikit-learn, which an assessment without costs does not need
    from .._decisions.costs import Costs
    from .._decisions.decision_value import value_decisions

    table = Costs.from_table(costs, predictions.classes)
    return value_decisions(predictions, table)


def _why_robust_test_cannot_reject(
    robust_test: RobustTest | None, alpha: float
) -> Statement | None:
    """Return why dependent or weighted rows cannot reject at level `alpha`, where that is so."""
    if robust_test is None or robust_test.can_reject(alpha):
        return None
    why = robust_test.inconclusive(alpha)
    return Statement("obstacle.units", f"{why[:1].upper()}{why[1:]}.")


def _null_distributions_and_omnibus_tests(
    predictions: Predictions, n_resamples: int, seed: int
) -> tuple[dict[str, MetricNull], dict[str, OmnibusTest]]:
    """Return what calibrated predictions would show, and omnibus tests; none for dependent rows."""
    if needs_robust_covariance(predictions):
        return {}, {}
    null_distributions = {}
    n_entries = predictions.n_expanded_probs
    if predictions.has_whole_weights and n_entries <= MAX_NULLS_ENTRIES:
        n_draws = min(n_resamples, max(MIN_DRAWS, int(NULLS_WORK / n_entries)))
        statistics = {
            "ece": TopLabelECE,
            "classwise_ece": ClasswiseECE,
            "hosmer_lemeshow": HosmerLemeshow,
        }
        null_distributions = metric_nulls(
            predictions, statistics, n_resamples=n_draws, seed=seed
        )
    simulated = {}
    if "hosmer_lemeshow" in null_distributions:
        simulated["hosmer_lemeshow"] = null_distributions.pop("hosmer_lemeshow")
    simulated |= kernel_omnibus_test(predictions, min(n_resamples, MIN_DRAWS), seed)
    omnibus_tests = {
        kind: OmnibusTest.from_null(kind, null) for kind, null in simulated.items()
    }
    if not null_distributions and predictions.sample_weight is None:
        omnibus_tests["hosmer_lemeshow"] = OmnibusTest.large_sample(predictions)
    return null_distributions, omnibus_tests


def _top_label_reliability_curve(predictions: Predictions) -> ReliabilityCurve | None:
    """Return the curve that a notebook draws, unless its bands need too many rows written out."""
    is_expanded = (
        predictions.sample_weight is not None and predictions.has_whole_weights
    )
    if (
        is_expanded
        and float(predictions.class_weight.sum()) > MAX_EXPANDED_ROWS_OF_CURVE
    ):
        return None
    return reliability_curve(predictions)


def summary_metrics(predictions: Predictions) -> dict[str, float]:
    """Return the numbers every assessment shows; no classwise ECE of choice sets."""
    classwise_ece = math.nan
    if predictions.offered is None:
        classwise_ece = classwise_calibration_error(None, predictions)
    return {
        "accuracy": accuracy(None, predictions),
        "log_loss": log_loss(None, predictions),
        "brier": brier_score(None, predictions),
        "ece": expected_calibration_error(None, predictions),
        "classwise_ece": classwise_ece,
    }


def metrics_expected_if_calibrated(predictions: Predictions) -> dict[str, float]:
    """Return the metrics expected under calibration: of calibrated predictions of these values.

    Accuracy is then the mean confidence, log loss the mean entropy, and the Brier score the mean
    of ``1 - sum_j x_ij^2``.
    """
    probs = predictions.probs
    confidence = np.empty(len(probs))
    entropy = np.empty(len(probs))
    brier = np.empty(len(probs))
    for rows in row_blocks(*probs.shape):
        x = probs[rows]
        confidence[rows] = x.max(axis=1)
        entropy[rows] = -np.einsum("ij,ij->i", x, np.log(x))
        brier[rows] = 1.0 - np.einsum("ij,ij->i", x, x)
    means = {"accuracy": confidence, "log_loss": entropy, "brier": brier}
    weight = predictions.sample_weight
    return {
        name: float(np.average(rows, weights=weight)) for name, rows in means.items()
    }


def calibration_in_the_large(predictions: Predictions) -> Table:
    """Return predicted and observed share of each class, with z and p-values (also Holm's).

    For dependent rows and survey weights z and the p-values would not be valid: they are NaN.
    """
    columns = in_the_large_columns(predictions)
    if needs_robust_covariance(predictions):
        unknown = [np.nan] * predictions.n_classes
        columns |= dict.fromkeys(("z", "large_pvalue", "large_adjusted"), unknown)
    return table_of_class_shares(predictions.classes, columns)


def table_of_class_shares(classes: Classes, columns: dict[str, list[float]]) -> Table:
    """Return the columns of `class_tests.shares` as a table, a row for each class."""
    names = {"large_pvalue": "pvalue", "large_adjusted": "adjusted"}
    table: dict[str, Any] = {"class": classes}
    for name, column in columns.items():
        table[names.get(name, name)] = column
    return Table(table)
