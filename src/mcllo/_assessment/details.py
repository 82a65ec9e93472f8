"""`Details`: what lies behind an assessment's one p-value, computed when it is asked for.

=====================  =====================================  ======================================
effect_size            how large the departure is             of rows in blocks from a subsample
recalibration_gain     what a recalibration gains             of rows in blocks from a subsample
goodness_of_fit        is anything left after the map?        of rows in blocks from a subsample
miscalibrated_classes  which classes are miscalibrated        not for dependent rows, to 200 classes
data_checks            mistakes in the rows                   of rows in blocks from a subsample
nested_models          which kind of miscalibration           not for dependent rows, to 200 classes
class_tests            which classes, adjusted for their      not for dependent rows, to 200 classes
                       number
baselines              does the answer hang on the baseline?  up to 50 classes and 20 million cells
zeros                  does it depend on the clipping?        only when a probability was 0
posterior              probability of calibration, by BIC     read it beside the p-value
robust                 score test for dependent rows          only for groups and survey weights
subgroups              is it one map, and which is off?       only where rows are divided (`by`)
=====================  =====================================  ======================================

Rows in groups and survey weights leave out what assumes independent rows: a p-value that is not
valid is worse than none. What is left out is said in `skipped`. Nothing here draws at random but
from the seed, so asking later gives the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from .._diagnostics.attribution import ClassAttribution, attribute_miscalibration
from .._diagnostics.baseline_sensitivity import BaselineSensitivity, baseline_sensitivity
from .._diagnostics.class_tests import ClassTests, run_class_tests
from .._diagnostics.data_checks import check_data
from .._diagnostics.nested_models import NestedModels, fit_nested_models
from .._diagnostics.zero_sensitivity import ZeroSensitivity, compute_zero_sensitivity
from .._fit.fit import MAX_BASELINES
from .._inference.budget import (
    BRIEF_NESTED_WORK,
    MAX_BASELINE_ENTRIES,
    N_RESAMPLES_DETAILS,
    N_RESAMPLES_FIT,
)
from .._inference.calibration_test import FittedTest, needs_robust
from .._inference.effect_size import EffectSize, estimate_effect_size
from .._inference.goodness_of_fit import GoodnessOfFit, goodness_of_fit
from .._inference.posterior import CalibrationPosterior, counted_rows, posterior_of_fit
from .._inference.robust import RobustTest
from .._utils.notebook import show_progress
from .._utils.parallel import one_blas_thread
from .._utils.statements import Statement, suppress_warnings
from ..calibrators._auto.gain import CrossFittedGain, cross_fitted_gain
from .subgroup_results import Subgroups, subgroups_of_fit

MAX_CLASSES_OF_DETAILS = 200
"""Classes beyond which nested models and single classes are left to those who ask for them."""
INDEPENDENT = "independent rows that each count once"
"""What most parts assume."""
Found = TypeVar("Found")
PARTS = ("nested_models", "class_tests", "baselines", "zeros", "posterior", "robust")


@dataclass(frozen=True, eq=False, repr=False)
class Details:
    """What lies behind the verdict; None where it does not apply or was left out.

    Attributes
    ----------
    fitted : FittedTest
        The fit and the test of the verdict.
    n_resamples, seed : int
        Draws of a simulated p-value, and what they are made from.

    See Also
    --------
    Assessment : Has it as `details`.
    NestedModels : The kind of miscalibration.
    ClassTests : Tests of single classes.
    BaselineSensitivity : What hangs on the baseline.

    Notes
    -----
    Each part is computed when it is first asked for.

    Examples
    --------
    >>> import mcllo
    >>> probs = [[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]] * 10
    >>> y = [0, 1, 1, 0, 0, 0, 1, 1] * 5
    >>> details = mcllo.assess(probs, y, seed=0, n_resamples=19).details
    >>> details.zeros is None, details.n_resamples
    (True, 19)
    """

    fitted: FittedTest
    n_resamples: int
    seed: int

    @classmethod
    def without_rows(
        cls,
        size: EffectSize,
        recalibration_gain: CrossFittedGain,
        goodness_of_fit: GoodnessOfFit,
        data_checks: list[Statement],
        posterior: CalibrationPosterior | None,
        skipped: dict[str, str],
    ) -> Details:
        """Return the details of rows that are not in memory: what some of them show."""
        details = cls.__new__(cls)
        known: dict[str, Any] = {
            "effect_size": size,
            "data_checks": data_checks,
            "posterior": posterior,
        }
        known |= {"recalibration_gain": recalibration_gain}
        known |= {"goodness_of_fit": goodness_of_fit, "skipped": skipped, "subgroups": None}
        vars(details).update(dict.fromkeys(PARTS) | known)
        return details

    @cached_property
    def effect_size(self) -> EffectSize:
        """How large the departure is."""
        with one_blas_thread(), show_progress("measuring the size"):
            return estimate_effect_size(self.fitted.predictions, self.fitted.fit, seed=self.seed)

    @cached_property
    def recalibration_gain(self) -> CrossFittedGain:
        """What a recalibration learned on four fifths of the rows gains on the others."""
        return cross_fitted_gain(self.fitted.predictions, seed=self.seed)

    @cached_property
    def goodness_of_fit(self) -> GoodnessOfFit:
        """Whether more than chance is left after the fitted map of shifts and slopes."""
        f = self.fitted
        draws = min(self.n_resamples, N_RESAMPLES_FIT)
        return goodness_of_fit(f.predictions, f.fit, n_resamples=draws, seed=self.seed)

    @cached_property
    def data_checks(self) -> list[Statement]:
        """What looks like a mistake in the rows."""
        f = self.fitted
        return check_data(f.predictions, f.fit, f.test)

    def miscalibrated_classes_at(self, alpha: float) -> ClassAttribution | None:
        """Return which classes are miscalibrated, at level `alpha`; None where it is left out."""
        if "miscalibrated_classes" in self.skipped:
            return None
        known: dict[float, ClassAttribution | None] = vars(self).setdefault("_attributions", {})
        if alpha not in known:
            f = self.fitted
            options: dict[str, Any] = {"test": f.test, "nested_models": self.nested_models}
            options["alpha"] = alpha
            known[alpha] = self._part(
                "miscalibrated_classes", attribute_miscalibration, f.predictions, **options
            )
        return known[alpha]

    @cached_property
    def nested_models(self) -> NestedModels | None:
        """Nested models of miscalibration: which kind is it?"""
        f = self.fitted
        options = {"test": f.test if f.test.kind == "lr" else None, "work": BRIEF_NESTED_WORK}
        return self._part("nested_models", fit_nested_models, f.predictions, f.fit, **options)

    @cached_property
    def class_tests(self) -> ClassTests | None:
        """A test for each class."""
        f, options = self.fitted, {"work": BRIEF_NESTED_WORK}
        return self._part("class_tests", run_class_tests, f.predictions, f.fit, **options)

    @cached_property
    def baselines(self) -> BaselineSensitivity | None:
        """What changes with the baseline; None for two classes, where nothing does."""
        if self.fitted.predictions.n_classes == 2:
            return None
        return self._part("baselines", baseline_sensitivity, self.fitted.predictions)

    @cached_property
    def zeros(self) -> ZeroSensitivity | None:
        """What changes with the clipping of zeros; None where there were none."""
        return self._part("zeros", compute_zero_sensitivity, self.fitted.predictions)

    def _part(
        self, name: str, compute: Callable[..., Found | None], *args: Any, **options: Any
    ) -> Found | None:
        """Return a part without warnings: the fit of the verdict has said what there is to say."""
        if name in self.skipped:
            return None
        draws = min(self.n_resamples, N_RESAMPLES_DETAILS)
        with one_blas_thread(), suppress_warnings(), show_progress("looking closer"):
            return compute(*args, n_resamples=draws, seed=self.seed, **options)

    @cached_property
    def posterior(self) -> CalibrationPosterior | None:
        """Posterior probability of calibration at even odds; None where weights count no rows."""
        weight = self.fitted.predictions.sample_weight
        if "posterior" in self.skipped or (weight is not None and float(weight.sum()) <= 1.0):
            return None
        return posterior_of_fit(self.fitted.fit, counted_rows(self.fitted.predictions), 0.5)

    @cached_property
    def robust(self) -> RobustTest | None:
        """The test that allows for dependent rows, when the rows are in groups or sampled."""
        return self.fitted.robust

    @cached_property
    def subgroups(self) -> Subgroups | None:
        """Each subgroup by itself, where rows are divided."""
        if self.fitted.predictions.by is None:
            return None
        with suppress_warnings():
            return subgroups_of_fit(self.fitted, n_resamples=self.n_resamples, seed=self.seed)

    @cached_property
    def skipped(self) -> dict[str, str]:
        """What was left out, and why."""
        p = self.fitted.predictions
        if needs_robust(p):
            return dict.fromkeys(
                ("miscalibrated_classes", *PARTS[:-1]), f"it assumes {INDEPENDENT}"
            )
        left_out: dict[str, str] = {}
        if p.n_classes > MAX_CLASSES_OF_DETAILS:
            why = f"{p.n_classes:,} classes are too many to fit class by class"
            left_out = dict.fromkeys(("miscalibrated_classes", "nested_models", "class_tests"), why)
        cells = p.n_expanded_probs * p.n_classes
        if p.n_classes > 2 and (p.n_classes > MAX_BASELINES or cells > MAX_BASELINE_ENTRIES):
            many = "too many classes or rows to fit every baseline; try a few, one at a time"
            left_out["baselines"] = many
        return left_out

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values; computes what was not asked for yet."""
        parts = {name: getattr(self, name) for name in PARTS}
        plain = {name: None if part is None else part.to_dict() for name, part in parts.items()}
        return {**plain, "skipped": dict(self.skipped)}

    def __repr__(self) -> str:
        return f"<Details: {', '.join(name for name in PARTS if name not in self.skipped)}>"
