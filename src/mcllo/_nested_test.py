"""p-values of nested models: chi-square, exact, or by parametric bootstrap.

==============================  ===========================================================
identity against a model        exact: labels drawn from the predictions
a model against a larger one    bootstrap: labels drawn from the fitted smaller model, both
                                models fitted to each draw; approximate
either                          chi-square on the difference of the parameters; large samples
==============================  ===========================================================

``method="auto"`` simulates where `calibration_test` would, with fewer draws for large data (at
least 99), because there are many tests. The full map has ``c (c - 1)``
parameters and costs about ``c^2 / 4`` times as much as MCLLO; where that is too much its p-values
are chi-square and the reason says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._batch import TIE
from ._calibration_test import METHODS, chi2_sf, choose_method
from ._full_map import FullDraws, mcllo_places
from ._metric_null import written_out
from ._model import recalibrate
from ._monte_carlo import (
    EXCEEDANCES,
    EXCEEDANCES_LARGE,
    LARGE,
    Seed,
    StatisticDraws,
    check_resamples,
    entropy_of,
    monte_carlo_p,
)
from ._predictions import Predictions
from ._restriction import Family, RestrictedFit, RestrictedRatio, ratio_to_identity
from .exceptions import InputError

Floats = NDArray[np.float64]

MOST_CELLS, MOST_FULL_CELLS = 5e7, 1.6e7
"""Work (rows x classes x draws) that `auto` spends on all tests of a plan; and that any method
spends on one test of the full map, times ``c^2 / 4``."""
MOST_WORK = 2e8
"""Work (times ``c / 10`` for more than ten classes) beyond which `auto` does not simulate."""
FEWEST_DRAWS = 99
TOO_COSTLY = "the full map is too costly to simulate"
TOO_MANY = "so many tests of so much data are too costly to simulate"


class TailP(NamedTuple):
    """A p-value, how it was computed, from how many draws, and why so."""

    pvalue: float
    method: str
    n_resamples: int
    reason: str


@dataclass(frozen=True, eq=False)
class Plan:
    """How the p-values of one set of predictions are computed.

    Attributes
    ----------
    method : {'chi2', 'exact', 'sequential'}
        'chi2' draws nothing; 'sequential' stops early.
    reason : str
        Why.
    n_resamples, seed : int
        Most draws, and what they are made from.
    predictions : Predictions
        The data; rows counted several times are written out.
    auto : bool
        Whether the method was chosen here, so that work may be limited.
    n_tests : int
        How many tests share the work.
    fewest : int
        Draws that a test makes at least.
    """

    method: str
    reason: str
    n_resamples: int
    seed: int
    predictions: Predictions
    auto: bool
    n_tests: int
    fewest: int

    @classmethod
    def of(
        cls,
        predictions: Predictions,
        df: int,
        *,
        method: str,
        n_resamples: int,
        seed: Seed,
        n_tests: int,
        fewest: int = FEWEST_DRAWS,
    ) -> Plan:
        """Check the arguments and decide; `df` parameters are at stake."""
        if method not in METHODS:
            raise InputError(
                f"method must be 'auto', 'chi2', 'exact' or 'sequential'; got {method!r}."
            )
        check_resamples(n_resamples)
        chosen, reason = method, "as asked"
        if method == "auto":
            chosen, reason = choose_method(predictions, df, "lr", n_resamples)
            work = predictions.probs.size * max(1.0, predictions.n_classes / 10.0)
            if chosen != "chi2" and work * min(fewest, n_resamples) * n_tests > MOST_WORK:
                chosen, reason = "chi2", f"{reason}, but {TOO_MANY}"
        return cls(
            method=chosen,
            reason=reason,
            n_resamples=n_resamples,
            seed=entropy_of(seed),
            predictions=predictions if chosen == "chi2" else written_out(predictions),
            auto=method == "auto",
            n_tests=n_tests,
            fewest=fewest,
        )

    def n_draws(self, family: Family) -> int:
        """Return the most draws a test may make; 0 when it should not be simulated."""
        cells, c = float(self.predictions.probs.size), self.predictions.n_classes
        if self.method == "chi2":
            return 0
        if family.full:
            affordable = int(MOST_FULL_CELLS / (cells * c * c / 4.0))
            return min(self.n_resamples, affordable) if affordable >= FEWEST_DRAWS else 0
        if not self.auto:
            return self.n_resamples
        return min(self.n_resamples, max(self.fewest, int(MOST_CELLS / self.n_tests / cells)))

    @property
    def stop_at(self) -> int | None:
        """Exceedances at which drawing stops."""
        if self.method == "exact":
            return None
        return EXCEEDANCES if self.predictions.probs.size <= LARGE else EXCEEDANCES_LARGE

    def chi2(self, family: Family, value: float, df: int) -> TailP:
        """Return the chi-square p-value."""
        costly = self.method != "chi2" and family.full
        reason = f"{self.reason}, but {TOO_COSTLY}"
        return TailP(chi2_sf(value, df), "chi2", 0, reason if costly else self.reason)


def against_identity(plan: Plan, family: Family, basis: Floats, value: float) -> TailP:
    """Return the p-value of the identity against the model spanned by `basis`."""
    n_draws = plan.n_draws(family)
    if n_draws == 0 or basis.shape[1] == 0:
        return plan.chi2(family, value, basis.shape[1])
    draws, ratio = _draws(plan, family), ratio_to_identity(family, basis)

    def exceeds(start: int, size: int) -> NDArray[np.bool_]:
        return ratio.reaches(draws(start, size), value)

    found = monte_carlo_p(
        exceeds, n_resamples=n_draws, batch=draws.batch, seed=plan.seed, stop_at=plan.stop_at
    )
    return TailP(found.pvalue, "exact", found.n_resamples, plan.reason)


def against_larger(
    plan: Plan, mcllo: Family, small: RestrictedFit, family: Family, large: RestrictedFit
) -> TailP:
    """Return the p-value of a fitted submodel of MCLLO against a larger fitted model.

    Parameters
    ----------
    mcllo, small : Family, RestrictedFit
        The smaller model.
    family, large : Family, RestrictedFit
        The larger one: in `mcllo` itself, or in the full map.
    """
    value, df = gain(small, large), large.df - small.df
    n_draws = plan.n_draws(family)
    if n_draws == 0 or df == 0:
        return plan.chi2(family, value, df)
    draws = _draws(plan, family)
    rows = plan.predictions
    draws.probs = recalibrate(small.theta, rows.log_odds, rows.baseline_index)
    origin = small.theta if small.settled else mcllo.identity
    places = mcllo_places(len(rows.log_odds)) if family.full else np.arange(len(origin))
    lower = RestrictedRatio(mcllo, small.basis, origin)
    start = family.identity.copy()
    start[places] = origin
    upper = RestrictedRatio(family, large.basis, start)

    def exceeds(first: int, size: int) -> NDArray[np.bool_]:
        drawn = draws(first, size)
        gained = upper.statistics(drawn) - lower.statistics(drawn[:, places])
        reached: NDArray[np.bool_] = gained >= value - TIE * max(1.0, value)
        return reached

    found = monte_carlo_p(
        exceeds, n_resamples=n_draws, batch=draws.batch, seed=plan.seed, stop_at=plan.stop_at
    )
    return TailP(found.pvalue, "bootstrap", found.n_resamples, plan.reason)


def gain(small: RestrictedFit, large: RestrictedFit) -> float:
    """Return the likelihood ratio statistic of two nested fits."""
    return max(0.0, 2.0 * (large.log_likelihood - small.log_likelihood))


def _draws(plan: Plan, family: Family) -> StatisticDraws:
    return (FullDraws if family.full else StatisticDraws)(plan.predictions, plan.seed)
