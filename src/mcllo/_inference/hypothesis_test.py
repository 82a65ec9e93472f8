"""`TestResult`: what every test returns; `Reason`: why its p-value was computed as it was."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, Self

from .._utils.formatting import (
    PValueText,
    SmallResult,
    format_number,
    pvalue_text,
)
from .._utils.results import Result
from .._validation.arguments import check_share

Ground = Literal[
    "asked",
    "wald",
    "enough_errors",
    "few_errors",
    "zeros",
    "rare_class",
    "baseline",
    "groups",
    "survey_weights",
    "importance_weights",
]
GROUND_TEXTS: Mapping[Ground, str] = {
    "asked": "as asked",
    "wald": "a Wald statistic has no exact form here",
    "enough_errors": "{errors} expected errors per parameter",
    "few_errors": "only {errors} expected errors per parameter",
    "zeros": "zeros were clipped",
    "rare_class": "a class is too rare for chi-square",
    "baseline": "the baseline was chosen by these labels",
    "groups": "rows of a group may depend",
    "survey_weights": "survey weights",
    "importance_weights": "importance weights",
}
"""What the choice of a method rests on."""

Limit = Literal["size", "full_map", "tests", "fits", "groups", "elsewhere", "one_pass"]
LIMIT_TEXTS: Mapping[Limit, str] = {
    "size": "the data are too large to simulate",
    "full_map": "the full map is too costly to simulate",
    "tests": "so many tests of so much data are too costly to simulate",
    "fits": "so many fits would take too long",
    "groups": "rows are grouped, or weighted by no counts",
    "elsewhere": "the rows the map was fitted on are not at hand",
    "one_pass": "only sums of the rows are kept",
}
"""What kept labels from being drawn where that would have been better."""

SCORED_NOTE = "refits are too costly: scores were simulated"
SCORE_INSTEAD_NOTE = "the score test is used instead"
TOO_MANY_REFITS_NOTE = "the likelihood ratio would need too many refits"


@dataclass(frozen=True)
class Reason:
    """Why a p-value was computed as it was: facts that code asks for; ``str`` says them.

    Attributes
    ----------
    ground : str
        What the choice of the method rests on: a key of `GROUND_TEXTS`.
    errors : float
        Expected errors per parameter; NaN where nobody counted them.
    limits : tuple of str
        What kept a better method from being used: keys of `LIMIT_TEXTS`.
    notes : tuple of str
        What was done instead, and what limits the p-value, in words.

    Examples
    --------
    >>> few = Reason("few_errors", errors=1.5)
    >>> str(few.but("size")), few.wants_draws, few.but("size").wants_draws
    ('only 1.50 expected errors per parameter, but the data are too large to simulate', True, False)
    """

    ground: Ground
    errors: float = math.nan
    limits: tuple[Limit, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_chosen_by_user(self) -> bool:
        """Whether the user chose the method."""
        return self.ground == "asked"

    @property
    def in_doubt(self) -> bool:
        """Whether chi-square cannot be trusted."""
        return self.ground in ("few_errors", "zeros", "rare_class")

    @property
    def wants_draws(self) -> bool:
        """Whether chi-square is in doubt and nothing keeps labels from being drawn."""
        return self.in_doubt and not self.limits

    @property
    def too_costly(self) -> bool:
        """Whether a test of nested models was not simulated because of its price."""
        return "full_map" in self.limits or "tests" in self.limits

    def but(self, limit: Limit) -> Reason:
        """Return the reason with one more limit."""
        return replace(self, limits=(*self.limits, limit))

    def with_notes(self, *notes: str) -> Reason:
        """Return the reason with more notes."""
        return replace(self, notes=(*self.notes, *notes))

    def __str__(self) -> str:
        ground = GROUND_TEXTS[self.ground].format(errors=format_number(self.errors))
        limits = [LIMIT_TEXTS[limit] for limit in self.limits]
        choice = ", but ".join([ground, *limits])
        return "; ".join([choice, *self.notes])


@dataclass(frozen=True, eq=False)
class TestResult(SmallResult, Result):
    """The result of a test; tests that have more to say derive from it.

    Attributes
    ----------
    statistic, df : float, int or None
        Value of the test statistic, and its degrees of freedom where it has some.
    pvalue : float
        Never 0; NaN where the data allow no test.
    method : str
        How the p-value was computed, such as ``'chi2'`` or ``'exact'``.
    n_resamples, seed : int, int or None
        Draws behind the p-value (0 where nothing was drawn), and what they were made from.
    reason, why : str, Reason or None
        Why `method` was used, in words and as facts.

    Examples
    --------
    >>> test = TestResult(9.5, 4, 0.0497, "chi2")
    >>> test.rejects(alpha=0.05), test.p_text
    (True, 'p = 0.05')
    """

    __test__ = False  # pytest would collect a class of this name
    method_texts: ClassVar[Mapping[str, str]] = {
        "chi2": "chi-square",
        "exact": "exact, {n_resamples} simulated data sets",
    }
    """How a p-value was computed, by `method`; filled with `n_resamples` and `df`."""

    statistic: float
    df: int | None
    pvalue: float
    method: str
    n_resamples: int = 0
    seed: int | None = None
    reason: str = ""
    why: Reason | None = field(default=None, repr=False)
    left_out: ClassVar[tuple[str, ...]] = ("why",)

    @classmethod
    def from_result(cls, result: TestResult, **more: Any) -> Self:
        """Return a result of this class from another, with `more` fields."""
        shared = {own.name: getattr(result, own.name) for own in fields(TestResult)}
        return cls(**shared, **more)

    def because(self, why: Reason) -> Self:
        """Return the result with the reason for its method."""
        return replace(self, why=why, reason=str(why))

    def rejects(self, alpha: float = 0.05) -> bool:
        """Whether the hypothesis is rejected at level `alpha`.

        Parameters
        ----------
        alpha : float
            Level of the test.

        Returns
        -------
        bool
            True when the p-value is at most `alpha`.
        """
        check_share("alpha", alpha)
        return self.pvalue <= alpha

    @property
    def is_too_costly(self) -> bool:
        """Whether a test of nested models was not simulated because of its price."""
        return self.why is not None and self.why.too_costly

    @property
    def p_words(self) -> PValueText:
        """The p-value as relation and number; a guaranteed bound is ``<=``."""
        return pvalue_text(self.pvalue, bound=self.method == "bound")

    @property
    def p_text(self) -> str:
        """The p-value in words: ``p = 0.03``, or ``p <= 1e-20`` for a bound."""
        return f"p {self.p_words}"

    @property
    def how(self) -> str:
        """How the p-value was computed, in words."""
        template = self.method_texts.get(self.method, self.method)
        return template.format(n_resamples=f"{self.n_resamples:,}", df=self.df)
