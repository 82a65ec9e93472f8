"""`PValue`: a p-value with how it was computed, from how many draws, and why so.

A `Reason` is made of facts and renders itself; what is decided is asked of the facts:

============  ==================================================================================
ground        what the choice rests on: as asked, enough information, or a doubt about chi-square
limits        what kept a better method from being used: ", but the data are too large to simulate"
notes         what was done instead, and what limits the p-value: "; scores were simulated"
============  ==================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from .._utils.formatting import format_number
from .._utils.results import Result
from .._validation.arguments import check_share


class Ground(StrEnum):
    """What the choice of a method rests on."""

    ASKED = "as asked"
    WALD = "a Wald statistic has no exact form here"
    ENOUGH = "{errors} expected errors per parameter"
    FEW_ERRORS = "only {errors} expected errors per parameter"
    ZEROS = "zeros were clipped"
    RARE_CLASS = "a class is too rare for chi-square"
    BASELINE = "the baseline was chosen by these labels"
    GROUPS = "rows of a group may depend"
    SURVEY = "survey weights"
    IMPORTANCE = "importance weights"


class Limit(StrEnum):
    """Why labels were not drawn where that would have been better."""

    SIZE = "the data are too large to simulate"
    FULL_MAP = "the full map is too costly to simulate"
    TESTS = "so many tests of so much data are too costly to simulate"
    FITS = "so many fits would take too long"
    GROUPS = "rows are grouped, or weighted by no counts"
    ELSEWHERE = "the rows the map was fitted on are not at hand"


class Note(StrEnum):
    """What was done instead."""

    SCORED = "refits are too costly: scores were simulated"
    SCORE_INSTEAD = "the score test is used instead"
    TOO_MANY_REFITS = "the likelihood ratio would need too many refits"


@dataclass(frozen=True)
class Reason:
    """Why a p-value was computed as it was; ``str`` says it.

    Examples
    --------
    >>> few = Reason(Ground.FEW_ERRORS, errors=1.5)
    >>> str(few.but(Limit.SIZE)), few.wants_draws, few.but(Limit.SIZE).wants_draws
    ('only 1.50 expected errors per parameter, but the data are too large to simulate', True, False)
    """

    ground: Ground
    errors: float = float("nan")
    limits: tuple[Limit, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_chosen_by_user(self) -> bool:
        """Whether the user chose the method."""
        return self.ground is Ground.ASKED

    @property
    def in_doubt(self) -> bool:
        """Whether chi-square cannot be trusted."""
        return self.ground in (Ground.FEW_ERRORS, Ground.ZEROS, Ground.RARE_CLASS)

    @property
    def wants_draws(self) -> bool:
        """Whether chi-square is in doubt and nothing keeps labels from being drawn."""
        return self.in_doubt and not self.limits

    @property
    def too_costly(self) -> bool:
        """Whether a test of nested models was not simulated because of its price."""
        return Limit.FULL_MAP in self.limits or Limit.TESTS in self.limits

    def but(self, limit: Limit) -> Reason:
        """Return the reason with one more limit."""
        return replace(self, limits=(*self.limits, limit))

    def noting(self, *notes: str) -> Reason:
        """Return the reason with more notes."""
        return replace(self, notes=(*self.notes, *notes))

    def __str__(self) -> str:
        ground = self.ground.value.format(errors=format_number(self.errors))
        return "; ".join([", but ".join([ground, *self.limits]), *self.notes])


@dataclass(frozen=True, eq=False)
class PValue:
    """A p-value, never 0, by `method`; why so, and the draws that were made, if any, from `seed`.

    The statistic of `n_exceed` of them was at least the observed one.
    """

    pvalue: float
    method: str
    n_resamples: int = 0
    seed: int | None = None
    why: Reason | None = None
    n_exceed: int = 0

    @property
    def reason(self) -> str:
        """The reason in words; empty where there is none."""
        return "" if self.why is None else str(self.why)


class Tested(Result):
    """Base of results of a test: frozen dataclasses with a p-value."""

    pvalue: float

    def rejects(self, alpha: float = 0.05) -> bool:
        """Whether calibration is rejected at level `alpha`.

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
