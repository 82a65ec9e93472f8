"""The verdict, decided once: text, JSON, report, gate and exit code all ask `decide`.

With the main test's p-value p at level alpha, and `high`, the upper end of the interval of the mean
change (`_inference/size`: probability that stands on the wrong classes):

============  ==================================================================================
cannot_tell   there is no p-value, none as small as alpha is possible (few groups, few draws), its
              level is not kept (few effective rows); or p > alpha and a departure of `LARGE` would
              be found with a chance below `LEAST_POWER`
matters       p <= alpha, and high >= tolerance (or unknown)
little        p <= alpha, and high < tolerance
none_found    p > alpha; never called calibrated
============  ==================================================================================

*Practically calibrated* is a statement of its own: high < tolerance. It is an equivalence test of
nominal level 2.5 % (0 to 5 % in simulations, see ``docs/explanation/size.md``), whatever the main
test says, and so it goes with "little" and with "none_found" alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from .._ground.results import Result
from .._ground.text import format_count
from .._inference.budget import EXCEEDANCES_LARGE
from .._inference.likelihood_tests import CalibrationTest
from .._inference.size import LARGE, Size
from ..exceptions import InputError
from . import TOLERANCE as TOLERANCE

Kind = Literal["matters", "little", "none_found", "cannot_tell"]
LEAST_POWER = 0.5
"""Chance of finding a departure of `LARGE` below which not finding one says nothing."""


@dataclass(frozen=True)
class Verdict(Result):
    """What an assessment comes to.

    Attributes
    ----------
    kind : {"matters", "little", "none_found", "cannot_tell"}
        Miscalibrated and it matters; miscalibrated, but by little; no miscalibration found; these
        rows cannot tell.
    pvalue, alpha : float
        Of the main test, and its level.
    high, tolerance : float
        Upper end of the interval of the mean change, and what is worth no repair.
    practically : bool
        Practically calibrated: `high` is below the tolerance.
    reason : str
        Why the rows cannot tell, in a sentence; else empty.
    other : tuple of str
        Omnibus tests that reject where the main test does not.
    """

    kind: Kind
    pvalue: float
    alpha: float
    high: float
    tolerance: float
    practically: bool
    reason: str = ""
    other: tuple[str, ...] = ()

    @property
    def rejected(self) -> bool:
        """Whether miscalibration was found."""
        return self.kind in ("matters", "little")

    def fails(self, *, strict: bool = False) -> bool:
        """Whether a gate closes: on "matters", when `strict` also on "little"."""
        return self.kind == "matters" or (strict and self.kind == "little")


def decide(
    test: CalibrationTest,
    size: Size,
    *,
    alpha: float = 0.05,
    tolerance: float = TOLERANCE,
    cannot: str = "",
    other: tuple[str, ...] = (),
) -> Verdict:
    """Return the verdict.

    Parameters
    ----------
    test : CalibrationTest
        The main test.
    size : Size
        How large the departure is.
    alpha, tolerance : float
        Level of the test, and the mean change that is worth no repair.
    cannot : str
        Why the test cannot reject at this level, or does not keep it; empty when it can.
    other : tuple of str
        Omnibus tests that reject.
    """
    if not 0.0 < tolerance < 1.0:
        raise InputError(
            "tolerance must lie in (0, 1), a mean change of probability; "
            f"got tolerance={tolerance}. Pass 0.01 for one percentage point."
        )
    rejected = test.rejects(alpha)
    practically = size.within(tolerance)
    reason = f"{cannot[:1].upper()}{cannot[1:]}." if cannot else _without_answer(test, alpha)
    if not (reason or rejected or practically) and math.isnan(size.power):
        reason = "How large a departure they could hide cannot be computed from these rows."
    elif not (reason or rejected or practically) and size.power < LEAST_POWER:
        reason = (
            f"These rows are too few: an average error of {100 * LARGE:.0f} percentage points "
            f"would be found with a chance of only {100 * size.power:.0f} %."
        )
    kind: Kind = "cannot_tell" if reason else "none_found"
    if rejected and not reason:
        kind = "little" if practically else "matters"
    return Verdict(
        kind=kind,
        pvalue=test.pvalue,
        alpha=alpha,
        high=size.high,
        tolerance=tolerance,
        practically=practically,
        reason=reason,
        other=() if rejected else other,
    )


def _without_answer(test: CalibrationTest, alpha: float) -> str:
    """Return why no p-value, or none as small as `alpha`, is possible; empty when one is."""
    if math.isnan(test.pvalue):
        return "The statistic does not exist for these rows."
    least = 1.0 / (test.n_resamples + 1)
    stopped = test.sequential and test.pvalue * test.n_resamples >= EXCEEDANCES_LARGE
    if test.n_resamples and not stopped and least > alpha:
        return (
            f"{format_count(test.n_resamples)} draws give no p-value below {least:.2g}: allow "
            f"more of them for level {alpha:g}."
        )
    return ""
