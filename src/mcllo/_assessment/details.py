"""`Details`: what lies behind an assessment's one p-value, computed when it is asked for.

===========  ========================================  ==========================================
size         how large the departure is                of rows in blocks from a subsample
culprits     whose fault it is                         not for dependent rows, to 200 classes
hints        mistakes in the rows                      of rows in blocks from a subsample
ladder       which kind of miscalibration              not for dependent rows, to 200 classes
class_tests  which classes, adjusted for their number  not for dependent rows, to 200 classes
baselines    does the answer hang on the baseline?     up to 50 classes and 20 million cells
zeros        does it hang on the floor for zeros?      only when a probability was 0
posterior    probability of calibration, by BIC        read it beside the p-value
robust       score test for dependent rows             only for groups and survey weights
subgroups    is it one map, and which is off?          only where rows are divided (`by`)
===========  ========================================  ==========================================

Rows in groups and survey weights leave out what assumes independent rows: a p-value that is not
valid is worse than none. What is left out is said in `skipped`. Nothing here draws at random but
from the seed, so asking later gives the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from .._diagnosis.baseline_sensitivity import BaselineSensitivity, baseline_sensitivity
from .._diagnosis.class_tests import ClassTests, class_tests_of
from .._diagnosis.culprits import Culprits, culprits_of
from .._diagnosis.hints import hints_of
from .._diagnosis.ladder import Ladder, ladder_of
from .._diagnosis.zero_sensitivity import ZeroSensitivity, zero_sensitivity_of
from .._fit.fit import MOST_BASELINES
from .._ground.notebook import ticking
from .._ground.statements import Statement, quiet
from .._ground.threads import one_blas_thread
from .._inference.budget import BRIEF_NESTED_WORK, MOST_BASELINE_ENTRIES, N_RESAMPLES_DETAILS
from .._inference.calibration_test import FittedTest, needs_robust
from .._inference.posterior import CalibrationPosterior, counted_rows, posterior_of_fit
from .._inference.robust import RobustTest
from .._inference.size import Size, size_of
from ..exceptions import PYTHON, Words
from .subgroups import Subgroups, subgroups_of_fit

MOST_CLASSES = 200
"""Classes beyond which nested models and single classes are left to those who ask for them."""
INDEPENDENT = "independent rows that each count once"
"""What most parts assume."""
Found = TypeVar("Found")
PARTS = ("ladder", "class_tests", "baselines", "zeros", "posterior", "robust")


@dataclass(frozen=True, eq=False, repr=False)
class Details:
    """What lies behind the verdict; None where it does not apply or was left out.

    Attributes
    ----------
    fitted : FittedTest
        The fit and the test of the verdict.
    n_resamples, seed : int
        Draws of a simulated p-value, and what they are made from.
    """

    fitted: FittedTest
    n_resamples: int
    seed: int

    @classmethod
    def without_rows(
        cls,
        size: Size,
        hints: list[Statement],
        posterior: CalibrationPosterior | None,
        skipped: dict[str, str],
    ) -> Details:
        """Return the details of rows that are not in memory: what some of them show."""
        details = cls.__new__(cls)
        known = {"size": size, "hints": hints, "posterior": posterior, "skipped": skipped}
        known |= {"subgroups": None}
        vars(details).update(dict.fromkeys(PARTS) | known)
        return details

    @cached_property
    def size(self) -> Size:
        """How large the departure is."""
        with one_blas_thread(), ticking("measuring the size"):
            return size_of(self.fitted.predictions, self.fitted.fit, seed=self.seed)

    @cached_property
    def hints(self) -> list[Statement]:
        """What looks like a mistake in the rows."""
        return self.hints_in(PYTHON)

    def hints_in(self, called: Words) -> list[Statement]:
        """Return the same in these words for arguments."""
        if "hints" in vars(self) and (called is PYTHON or "fitted" not in vars(self)):
            return self.hints
        f = self.fitted
        return hints_of(f.predictions, f.fit, f.test, called)

    def culprits_at(self, alpha: float) -> Culprits | None:
        """Return whose fault it is, at level `alpha`; None where it is left out."""
        if "culprits" in self.skipped:
            return None
        known: dict[float, Culprits | None] = vars(self).setdefault("_culprits", {})
        if alpha not in known:
            f = self.fitted
            options: dict[str, Any] = {"test": f.test, "ladder": self.ladder}
            options["alpha"] = alpha
            known[alpha] = self._part("culprits", culprits_of, f.predictions, **options)
        return known[alpha]

    @cached_property
    def ladder(self) -> Ladder | None:
        """Nested models of miscalibration: which kind is it?"""
        f = self.fitted
        options = {"test": f.test if f.test.kind == "lr" else None, "work": BRIEF_NESTED_WORK}
        return self._part("ladder", ladder_of, f.predictions, f.fit, **options)

    @cached_property
    def class_tests(self) -> ClassTests | None:
        """A test for each class."""
        f, options = self.fitted, {"work": BRIEF_NESTED_WORK}
        return self._part("class_tests", class_tests_of, f.predictions, f.fit, **options)

    @cached_property
    def baselines(self) -> BaselineSensitivity | None:
        """What changes with the baseline; None for two classes, where nothing does."""
        if self.fitted.predictions.n_classes == 2:
            return None
        return self._part("baselines", baseline_sensitivity, self.fitted.predictions)

    @cached_property
    def zeros(self) -> ZeroSensitivity | None:
        """What changes with the floor for zeros; None where there were none."""
        return self._part("zeros", zero_sensitivity_of, self.fitted.predictions)

    def _part(
        self, name: str, compute: Callable[..., Found | None], *args: Any, **options: Any
    ) -> Found | None:
        """Return a part without warnings: the fit of the verdict has said what there is to say."""
        if name in self.skipped:
            return None
        draws = min(self.n_resamples, N_RESAMPLES_DETAILS)
        with one_blas_thread(), quiet(), ticking("looking closer"):
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
        with quiet():
            return subgroups_of_fit(self.fitted, n_resamples=self.n_resamples, seed=self.seed)

    @cached_property
    def skipped(self) -> dict[str, str]:
        """What was left out, and why."""
        p = self.fitted.predictions
        if needs_robust(p):
            return dict.fromkeys(("culprits", *PARTS[:-1]), f"it assumes {INDEPENDENT}")
        left_out: dict[str, str] = {}
        if p.n_classes > MOST_CLASSES:
            why = f"{p.n_classes:,} classes are too many to fit class by class"
            left_out = dict.fromkeys(("culprits", "ladder", "class_tests"), why)
        cells = p.counted_entries * p.n_classes
        if p.n_classes > 2 and (p.n_classes > MOST_BASELINES or cells > MOST_BASELINE_ENTRIES):
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
