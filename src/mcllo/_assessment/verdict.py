"""The verdict, decided once: text, JSON, report, gate and exit code all ask `decide_verdict`.

With the main test's p-value p at level alpha, `high`, the upper end of the interval of the mean
change (`_inference/effect_size`: probability that stands on the wrong classes), and `at_least`, its
lower limit that needs no model:

=============  =================================================================================
inconclusive   there is one row; there is no p-value, none as small as alpha is possible (few
               groups, few draws), its level is not kept (few effective rows); or nothing is found
               and a departure of
               `MEAN_CHANGE_FOR_POWER` would be found with a chance below `MIN_POWER`
miscalibrated  p <= alpha, and high >= tolerance (or unknown); or an omnibus test rejects, and
               at_least > tolerance
negligible     p <= alpha, and high < tolerance; with a tolerance in units of cost: miscalibrated,
               and recalibration would save no more (`_decisions/decision_value`)
not_detected   none of these; never called calibrated
=============  =================================================================================

`high` is that of shifts and slopes of the log odds. It bounds the error only if there is no error
of another kind, so it is unknown where the rows show one (`Verdict.beyond`): an omnibus test
rejects where the main test does not, or more than chance is left after the fitted map. Where the
main test rejects, omnibus tests see the same error; the fit of the map tells others apart.

*Equivalent* to calibrated at this tolerance is a statement of its own: high < tolerance, where high
is known. It is an equivalence test of nominal level 2.5 % (``docs/explanation/effect-size.md`` has
the simulated one), whatever the main test says, and so it goes with "negligible" and with
"not_detected" alike.

At most alpha of calibrated data sets have a main test that rejects. An omnibus rejection counts
only beside an error that is shown to exceed the tolerance, which calibrated rows seldom show
(``docs/explanation/verdict.md``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from .._inference.budget import N_EXCEEDANCES_LARGE_TABLE
from .._inference.effect_size import MEAN_CHANGE_FOR_POWER, EffectSize
from .._inference.goodness_of_fit import GoodnessOfFit
from .._inference.likelihood_tests import CalibrationTest
from .._utils.formatting import SmallResult, format_count
from .._utils.results import Result
from .._utils.statements import Statement
from ..exceptions import InputError
from . import TOLERANCE as TOLERANCE

if TYPE_CHECKING:
    from .._decisions.mean_costs import CostEstimate

Kind = Literal["miscalibrated", "negligible", "not_detected", "inconclusive"]
MIN_ROWS = 2
"""Rows below which nothing is concluded: a surprise is no frequency."""
MIN_POWER = 0.5
"""Chance of finding a departure of `MEAN_CHANGE_FOR_POWER` below which not finding one says
nothing.
"""


@dataclass(frozen=True)
class Verdict(SmallResult, Result):
    """What an assessment comes to.

    Attributes
    ----------
    kind : {"miscalibrated", "negligible", "not_detected", "inconclusive"}
        Miscalibrated; miscalibrated, but by less than the tolerance; no miscalibration found; these
        rows cannot tell.
    pvalue, alpha : float
        Of the main test, and its level.
    high, tolerance : float
        Upper end of the interval of the mean change by shifts and slopes, and what is worth no
        recalibration.
    equivalent : bool
        Equivalent to calibrated: `high` is below the tolerance, and no error of another kind was
        found.
    reason : str
        Why the rows cannot tell, in a sentence; else empty.
    other : tuple of str
        Omnibus tests that reject.
    map_pvalue : float
        Of the test that nothing is left after the fitted map; NaN where there is none.
    at_least : float
        Lower limit of the mean change, whatever the shape of the error.
    cost_tolerance : float or None
        Cost of a case that is too little to matter, where the verdict goes by that.
    cost_high : float
        Upper end of the interval of what recalibration would save; NaN where nobody asked.

    See Also
    --------
    Assessment : Has it as `verdict`.
    EffectSize : What is compared with the tolerance.
    MonitorStatus : The same of a stream of batches.

    Notes
    -----
    Not rejecting is never called calibrated: with few rows nothing is found of anything.
    `equivalent` is an equivalence test of nominal level 2.5 %, whatever the main test says.

    Examples
    --------
    >>> import mcllo
    >>> probs = [[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]] * 10
    >>> y = [0, 1, 1, 0, 0, 0, 1, 1] * 5
    >>> verdict = mcllo.assess(probs, y, seed=0, n_resamples=19).verdict
    >>> verdict.kind, verdict.alpha, verdict.tolerance
    ('inconclusive', 0.05, 0.01)
    """

    kind: Kind
    pvalue: float
    alpha: float
    high: float
    tolerance: float
    equivalent: bool
    reason: str = ""
    other: tuple[str, ...] = ()
    map_pvalue: float = math.nan
    at_least: float = 0.0
    cost_tolerance: float | None = None
    cost_high: float = math.nan

    @property
    def is_cheap(self) -> bool:
        """Whether recalibration would save no more than the tolerance of costs."""
        if self.cost_tolerance is None:
            return False
        return self.cost_high <= self.cost_tolerance

    @property
    def rejected(self) -> bool:
        """Whether miscalibration was found."""
        return self.kind in ("miscalibrated", "negligible")

    @property
    def main_rejects(self) -> bool:
        """Whether the main test rejects: shifts or slopes are off."""
        return self.pvalue <= self.alpha

    @property
    def map_rejected(self) -> bool:
        """Whether more than chance is left after the fitted map."""
        return self.map_pvalue <= self.alpha

    @property
    def omnibus_alone(self) -> bool:
        """Whether an omnibus test rejects and the main test does not."""
        return bool(self.other) and not self.main_rejects

    @property
    def beyond(self) -> bool:
        """Whether something was found that is no shift or slope of the log odds."""
        return self.map_rejected or self.omnibus_alone

    def fails(self, *, strict: bool = False) -> bool:
        """Whether a gate closes: on "miscalibrated", when `strict` also on "negligible".

        Parameters
        ----------
        strict : bool
            Close the gate on "negligible" too.

        Returns
        -------
        bool
            True where the gate closes.
        """
        return self.kind == "miscalibrated" or (strict and self.kind == "negligible")


def decide_verdict(
    test: CalibrationTest,
    size: EffectSize,
    *,
    alpha: float = 0.05,
    tolerance: float = TOLERANCE,
    n_samples: int,
    obstacle: Statement | None = None,
    other: tuple[str, ...] = (),
    goodness_of_fit: GoodnessOfFit | None = None,
    price: CostEstimate | None = None,
    cost_tolerance: float | None = None,
) -> Verdict:
    """Return the verdict.

    Parameters
    ----------
    test : CalibrationTest
        The main test.
    size : EffectSize
        How large the departure is.
    alpha, tolerance : float
        Level of the test, and the mean change that is worth no recalibration.
    n_samples : int
        Number of rows.
    obstacle : Statement, optional
        Why the test cannot reject at this level, or does not keep it, where that is so.
    other : tuple of str
        Omnibus tests that reject.
    goodness_of_fit : GoodnessOfFit, optional
        The test of what is left after the fitted map.
    price : CostEstimate, optional
        What recalibration would save a case.
    cost_tolerance : float, optional
        Cost of a case that is too little to matter; takes the place of `tolerance`.
    """
    if not 0.0 < tolerance < 1.0:
        raise InputError(
            "tolerance must lie in (0, 1), a mean change of probability; "
            f"got tolerance={tolerance}. Pass 0.01 for one percentage point."
        )
    rejected = test.rejects(alpha)
    map_pvalue = math.nan if goodness_of_fit is None else goodness_of_fit.pvalue
    # Beside a main test that rejects, an omnibus test may see nothing new; the map's fit tells.
    explained = rejected and map_pvalue > alpha
    bounded = not map_pvalue <= alpha and (explained or not other)
    equivalent = bounded and size.within(tolerance)
    seen = bool(other) and size.at_least > tolerance
    if n_samples < MIN_ROWS:
        obstacle = Statement(
            "obstacle.one_row",
            "One prediction says nothing of how often such predictions come true: more rows are "
            "needed.",
        )
    if obstacle is None:
        obstacle = why_test_cannot_reject(test, alpha)
    if obstacle is None and not (rejected or seen or equivalent):
        obstacle = _why_power_is_too_low(size)
    cost_high = math.nan if price is None else price.high
    is_negligible = equivalent
    if cost_tolerance is not None:
        _check_cost_tolerance(cost_tolerance)
        is_negligible = cost_high <= cost_tolerance
    kind: Kind = "not_detected"
    if obstacle is not None:
        kind = "inconclusive"
    elif rejected or seen:
        kind = "negligible" if is_negligible else "miscalibrated"
    return Verdict(
        kind=kind,
        pvalue=test.pvalue,
        alpha=alpha,
        high=size.high,
        tolerance=tolerance,
        equivalent=equivalent,
        reason="" if obstacle is None else obstacle.text,
        other=other,
        map_pvalue=map_pvalue,
        at_least=size.at_least,
        cost_tolerance=cost_tolerance,
        cost_high=cost_high,
    )


def _check_cost_tolerance(cost_tolerance: float) -> None:
    """Refuse a tolerance that is no cost."""
    if not 0.0 <= cost_tolerance < math.inf:
        raise InputError(
            argument="cost_tolerance",
            rule="be a cost, finite and not negative",
            value=cost_tolerance,
        )


def why_test_cannot_reject(test: CalibrationTest, alpha: float) -> Statement | None:
    """Return why no p-value, or none as small as `alpha`, is possible; None where one is."""
    if math.isnan(test.pvalue):
        return Statement(
            "obstacle.statistic", "The statistic does not exist for these rows."
        )
    smallest_pvalue = 1.0 / (test.n_resamples + 1)
    n_exceedances = test.pvalue * test.n_resamples
    # A sequential run that ended early has its p-value, however few draws it made.
    is_stopped = test.sequential and n_exceedances >= N_EXCEEDANCES_LARGE_TABLE
    if test.n_resamples and not is_stopped and smallest_pvalue > alpha:
        words = (
            f"{format_count(test.n_resamples)} draws give no p-value below "
            f"{smallest_pvalue:.2g}: allow more of them for level {alpha:g}."
        )
        return Statement("obstacle.draws", words)
    return None


def _why_power_is_too_low(effect_size: EffectSize) -> Statement | None:
    """Return why not finding anything says nothing; None where it says something."""
    if math.isnan(effect_size.power):
        words = (
            "How large a departure they could hide cannot be computed from these rows."
        )
        return Statement("obstacle.size", words)
    if effect_size.power < MIN_POWER:
        words = (
            f"These rows are too few: an average error of {100 * MEAN_CHANGE_FOR_POWER:.0f} "
            "percentage points would be found with a chance of only "
            f"{100 * effect_size.power:.0f} %."
        )
        return Statement("obstacle.power", words)
    return None
