"""`Details`: what lies behind an assessment's one p-value, computed with it.

=====================  =====================================  ======================================
effect_size            how large the departure is             of rows in blocks from a subsample
recalibration_gain     what a recalibration gains             of rows in blocks from a subsample
goodness_of_fit        is anything left after the map?        of rows in blocks from a subsample
data_checks            mistakes in the rows                   of rows in blocks from a subsample
subgroups              is it one map, and which is off?       only where rows are divided (`by`)
decision_value         what acting on the rows costs          only where there are costs
robust                 score test for dependent rows          only for groups and survey weights
miscalibrated_classes  which classes are miscalibrated        after a rejection at `alpha`; not for
                                                              dependent rows, to 200 classes
baselines              does the answer hang on the baseline?  up to 50 classes and 20 million cells
zeros                  does it depend on the clipping?        only when a probability was 0
posterior              probability of calibration, by BIC     read it beside the p-value
nested_models          which kind of miscalibration           after a rejection, or asked for; not
                                                              for dependent rows, to 200 classes
class_tests            which classes, adjusted for their      asked for; not for dependent rows, to
                       number                                 200 classes
=====================  =====================================  ======================================

Rows in groups and survey weights leave out what assumes independent rows: a p-value that is not
valid is worse than none. What is left out is said in `skipped`. Nothing here draws at random but
from the seed, so that a part which is asked for later has the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from .._diagnostics.attribution import ClassAttribution, attribute_miscalibration
from .._diagnostics.baseline_sensitivity import (
    BaselineSensitivity,
    baseline_sensitivity,
)
from .._diagnostics.class_tests import ClassTests, run_class_tests
from .._diagnostics.data_checks import check_data
from .._diagnostics.nested_models import NestedModels, fit_nested_models
from .._diagnostics.zero_sensitivity import ZeroSensitivity, compute_zero_sensitivity
from .._fit.fit import MAX_BASELINES
from .._inference.budget import (
    BRIEF_NESTED_WORK,
    MAX_BASELINE_ENTRIES,
    N_RESAMPLES_REPEATED,
)
from .._inference.calibration_test import FittedTest, needs_robust_covariance
from .._inference.effect_size import EffectSize, estimate_effect_size
from .._inference.goodness_of_fit import GoodnessOfFit, goodness_of_fit
from .._inference.posterior import CalibrationPosterior, bic_n_rows, posterior_of_fit
from .._inference.robust import RobustTest
from .._model.many_classes import has_far_fewer_rows
from .._utils.notebook import show_progress
from .._utils.parallel import one_blas_thread
from .._utils.statements import Statement, suppress_warnings
from .._validation.predictions import Predictions
from ..calibrators._auto.gain import CrossFittedGain, cross_fitted_gain
from .subgroup_results import Subgroups, assess_fitted_subgroups
from .verdict import why_test_cannot_reject

if TYPE_CHECKING:
    from .._decisions.decision_value import DecisionValue

MAX_CLASSES_OF_DETAILS = 200
"""Classes beyond which nested models and single classes are left to those who ask for them."""
INDEPENDENT = "independent rows that each count once"
"""What most parts assume."""
PARTS = ("nested_models", "class_tests", "baselines", "zeros", "posterior", "robust")
"""The parts that `Details.to_dict` holds."""
FULL_PARTS = ("nested_models", "class_tests")
"""The parts that only the full text prints: they are computed when asked for."""
Found = TypeVar("Found")


@dataclass(frozen=True, eq=False, repr=False)
class Details:
    """What lies behind the verdict; None where it does not apply or was left out.

    Attributes
    ----------
    effect_size : EffectSize
        How large the departure is.
    recalibration_gain : CrossFittedGain
        What a recalibration learned on four fifths of the rows gains on the others.
    goodness_of_fit : GoodnessOfFit
        Whether more than chance is left after the fitted map of shifts and slopes.
    data_checks : list of Statement
        What looks like a mistake in the rows.
    subgroups : Subgroups or None
        Each subgroup by itself, where rows are divided.
    robust : RobustTest or None
        The test that allows for dependent rows, when the rows are in groups or sampled.
    miscalibrated_classes : ClassAttribution or None
        Which classes are miscalibrated, where the main test rejects at level `alpha`.
    baselines : BaselineSensitivity or None
        What changes with the baseline; None for two classes, where nothing does.
    zeros : ZeroSensitivity or None
        What changes with the clipping of zeros; None where there were none.
    posterior : CalibrationPosterior or None
        Probability of calibration at even odds; None where weights count no rows.
    nested_models : NestedModels or None
        Which kind of miscalibration, where the main test rejects or where it was asked for.
    class_tests : ClassTests or None
        A test for each class, where it was asked for.
    decision_value : DecisionValue or None
        What acting on the predictions costs, where costs were given.
    cost_tolerance : float or None
        Cost of a case that is too little to matter, where the verdict goes by it.
    skipped : dict of str to str
        What was left out, and why.
    alpha : float
        Level at which `miscalibrated_classes` were looked for.
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
    Everything that the text of an assessment says is computed by `assess`. `nested_models` and
    `class_tests` belong to its full text: ``assess(..., full=True)`` stores them here, and
    ``assessment.nested_models()`` and ``assessment.class_tests()`` compute them.

    Examples
    --------
    >>> import mcllo
    >>> probs = [[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]] * 10
    >>> y = [0, 1, 1, 0, 0, 0, 1, 1] * 5
    >>> details = mcllo.assess(probs, y, seed=0, n_resamples=19).details
    >>> details.zeros is None, details.n_resamples, details.not_computed
    (True, 19, ('nested_models', 'class_tests'))
    """

    effect_size: EffectSize
    recalibration_gain: CrossFittedGain
    goodness_of_fit: GoodnessOfFit
    data_checks: list[Statement]
    alpha: float
    n_resamples: int
    seed: int
    subgroups: Subgroups | None = None
    robust: RobustTest | None = None
    miscalibrated_classes: ClassAttribution | None = None
    baselines: BaselineSensitivity | None = None
    zeros: ZeroSensitivity | None = None
    posterior: CalibrationPosterior | None = None
    nested_models: NestedModels | None = None
    class_tests: ClassTests | None = None
    skipped: dict[str, str] = field(default_factory=dict)
    decision_value: DecisionValue | None = None
    cost_tolerance: float | None = None

    @property
    def not_computed(self) -> tuple[str, ...]:
        """Parts of the full text that nobody has asked for yet."""
        absent = [name for name in FULL_PARTS if getattr(self, name) is None]
        return tuple(name for name in absent if name not in self.skipped)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values; a part that was not computed is None."""
        parts = {name: getattr(self, name) for name in PARTS}
        plain = {
            name: None if part is None else part.to_dict()
            for name, part in parts.items()
        }
        return {**plain, "skipped": dict(self.skipped)}

    def __repr__(self) -> str:
        return f"<Details: {', '.join(name for name in PARTS if name not in self.skipped)}>"


def compute_details(
    fitted: FittedTest,
    *,
    n_resamples: int,
    seed: int,
    alpha: float = 0.05,
    full: bool = False,
    left_out: str = "",
) -> Details:
    """Return what the text of an assessment says beside its test, or everything if `full`.

    `left_out` says why nothing is asked that goes beyond the size and the data checks.
    """
    predictions = fitted.predictions
    skipped = _reasons_to_skip_details(predictions)
    if left_out:
        skipped = dict.fromkeys(("miscalibrated_classes", *PARTS[:-1]), left_out)
    computing = DetailComputations(fitted, n_resamples, seed, skipped)
    with one_blas_thread(), show_progress("measuring the size"):
        effect_size = estimate_effect_size(predictions, fitted.fit, seed=seed)
    # Which classes, and which kind: asked only where the text will say it, after a rejection.
    is_rejected = (
        fitted.test.rejects(alpha)
        and why_test_cannot_reject(fitted.test, alpha) is None
    )
    nested_models = computing.nested_models() if full or is_rejected else None
    return Details(
        effect_size=effect_size,
        recalibration_gain=cross_fitted_gain(predictions, seed=seed),
        goodness_of_fit=goodness_of_fit(
            predictions,
            fitted.fit,
            n_resamples=min(n_resamples, N_RESAMPLES_REPEATED),
            seed=seed,
        ),
        data_checks=check_data(predictions, fitted.fit, fitted.test),
        alpha=alpha,
        n_resamples=n_resamples,
        seed=seed,
        subgroups=None if left_out else computing.subgroups(),
        robust=fitted.robust,
        miscalibrated_classes=(
            computing.miscalibrated_classes(nested_models, alpha)
            if is_rejected
            else None
        ),
        baselines=computing.baselines(),
        zeros=computing.zeros(),
        posterior=computing.posterior(),
        nested_models=nested_models,
        class_tests=computing.class_tests() if full else None,
        skipped=skipped,
    )


@dataclass(frozen=True, eq=False)
class DetailComputations:
    """Computes single parts of the same rows, fit and test; None for those that are `skipped`.

    Without warnings: the fit of the verdict has said what there is to say.
    """

    fitted: FittedTest
    n_resamples: int
    seed: int
    skipped: Mapping[str, str]

    def nested_models(self) -> NestedModels | None:
        """Fit the nested models."""
        test = self.fitted.test
        return self._compute_unless_skipped(
            "nested_models",
            fit_nested_models,
            self.fitted.fit,
            test=test if test.kind == "lr" else None,
            work=BRIEF_NESTED_WORK,
        )

    def class_tests(self) -> ClassTests | None:
        """Test each class."""
        return self._compute_unless_skipped(
            "class_tests", run_class_tests, self.fitted.fit, work=BRIEF_NESTED_WORK
        )

    def miscalibrated_classes(
        self, nested_models: NestedModels | None, alpha: float
    ) -> ClassAttribution | None:
        """Name the miscalibrated classes at level `alpha`."""
        return self._compute_unless_skipped(
            "miscalibrated_classes",
            attribute_miscalibration,
            test=self.fitted.test,
            nested_models=nested_models,
            alpha=alpha,
        )

    def baselines(self) -> BaselineSensitivity | None:
        """Fit every baseline, where there are more than two classes."""
        if self.fitted.predictions.n_classes == 2:
            return None
        return self._compute_unless_skipped("baselines", baseline_sensitivity)

    def zeros(self) -> ZeroSensitivity | None:
        """Clip zeros to other bounds."""
        return self._compute_unless_skipped("zeros", compute_zero_sensitivity)

    def posterior(self) -> CalibrationPosterior | None:
        """Return the posterior at even odds, which needs weights that count rows."""
        predictions = self.fitted.predictions
        weight = predictions.sample_weight
        counts_too_little = weight is not None and float(weight.sum()) <= 1.0
        if "posterior" in self.skipped or counts_too_little:
            return None
        return posterior_of_fit(self.fitted.fit, bic_n_rows(predictions), 0.5)

    def subgroups(self) -> Subgroups | None:
        """Assess each subgroup, where rows are divided."""
        if self.fitted.predictions.by is None:
            return None
        with suppress_warnings():
            return assess_fitted_subgroups(
                self.fitted, n_resamples=self.n_resamples, seed=self.seed
            )

    def _compute_unless_skipped(
        self,
        detail_name: str,
        compute: Callable[..., Found | None],
        *args: Any,
        **options: Any,
    ) -> Found | None:
        if detail_name in self.skipped:
            return None
        n_resamples = min(self.n_resamples, N_RESAMPLES_REPEATED)
        with one_blas_thread(), suppress_warnings(), show_progress("looking closer"):
            return compute(
                self.fitted.predictions,
                *args,
                n_resamples=n_resamples,
                seed=self.seed,
                **options,
            )


def _reasons_to_skip_details(predictions: Predictions) -> dict[str, str]:
    """Return what these rows leave out, and why."""
    if needs_robust_covariance(predictions):
        return dict.fromkeys(
            ("miscalibrated_classes", *PARTS[:-1]), f"it assumes {INDEPENDENT}"
        )
    n_classes = predictions.n_classes
    skipped: dict[str, str] = {}
    if n_classes > MAX_CLASSES_OF_DETAILS:
        why = f"{n_classes:,} classes are too many to fit class by class"
        skipped = dict.fromkeys(
            ("miscalibrated_classes", "nested_models", "class_tests"), why
        )
    if has_far_fewer_rows(predictions.n_samples, 2 * (n_classes - 1)):
        why = f"{predictions.n_samples:,} rows are too few for {n_classes:,} classes"
        skipped["exchanged_columns"] = why
    n_entries = predictions.n_expanded_probs * n_classes  # of all baselines together
    if n_classes > 2 and (
        n_classes > MAX_BASELINES or n_entries > MAX_BASELINE_ENTRIES
    ):
        skipped["baselines"] = (
            "too many classes or rows to fit every baseline; try a few, one at a time"
        )
    return skipped
