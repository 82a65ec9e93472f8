"""The nested models: fitted, compared with each other, and their numbers.

===========  =====================================================================================
model        ``theta = theta0 + A beta``; A picks columns of ``theta = (tau_1 .. tau_K, gamma_1 ..
             gamma_K)``, a common slope is the sum of the columns of gamma; or the full map
statistic    ``2 [l(model) - l(identity)]`` on the model's parameters
larger       the same against MCLLO (MCLLO: against the full map): enough?
AIC, BIC     ``2 df - 2 l``, ``df log n - 2 l``
===========  =====================================================================================

MCLLO itself is `fit_predictions`. Every comparison has a chi-square p-value and one by the method
of `_diagnostics/nested_pvalues`.

What is rejected is decided by closed testing. A true model m below MCLLO could be contradicted by
two tests, its own against MCLLO and MCLLO's against the full map, so both share the level:

========  =================================================================================
identity  rejected locally iff ``p <= alpha``: the main test, nothing is taken from it
between   iff ``p_m <= (1 - w) alpha`` or ``p_full <= w alpha``, w = `FULL_MAP_LEVEL_SHARE`
MCLLO     iff ``p_full <= alpha``
rejected  locally, and everything inside as well
========  =================================================================================

``p_full`` counts only where there is a full map, and where its p-value is not chi-square's in spite
of too little information; else ``w = 0``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .._fit.fit import MCLLOFit
from .._inference.budget import NESTED_WORK
from .._inference.likelihood_tests import CalibrationTest, chi2_sf
from .._inference.pvalue import PValue
from .._utils.results import Floats, Result
from .._validation.predictions import Predictions
from .class_tests import closed_test
from .nested_pvalues import PValuePlan, against_identity, against_larger, gain
from .restricted_models import Family, restricted_fit, whole_fit

INSIDE: dict[str, tuple[str, ...]] = {
    "identity": (),
    "temperature": ("identity",),
    "shift": ("identity",),
    "scale": ("identity", "temperature"),
    "common_slope": ("identity", "temperature", "shift"),
    "mcllo": ("identity", "temperature", "shift", "scale", "common_slope"),
    "full": ("identity", "temperature", "shift", "scale", "common_slope", "mcllo"),
}
NAMES = {
    "identity": "no recalibration",
    "temperature": "one temperature",
    "shift": "shifts",
    "scale": "slopes",
    "common_slope": "shifts and one slope",
    "mcllo": "shifts and slopes",
    "full": "the full map",
}
"""What the models are called in a sentence."""
FULL_MAP_LEVEL_SHARE = 0.2
"""Part of the level that a model below MCLLO leaves to MCLLO's test against the full map."""
MAX_CLASSES_OF_FULL_MAP = 30
"""Classes beyond which the full map is not fitted."""
FULL_MAP_PRODUCTS_PER_WORK = 200.0
"""Products of a Hessian of the full map, ``n (c (c - 1))^2``, that a cell of `work` pays for."""


Z95 = 1.959963984540054
TINY = 1e-300


class Models:
    """The fitted nested models; the full map if `work` pays for it
    (`_diagnostics/nested_pvalues`).
    """

    def __init__(self, predictions: Predictions, fit: MCLLOFit, work: float = NESTED_WORK) -> None:
        self.mcllo, self.fits = Family(predictions), {}
        for name, basis in mcllo_bases(len(predictions.log_odds)).items():
            if name != "mcllo" or not fit.converged:
                self.fits[name] = restricted_fit(self.mcllo, self.mcllo.identified(basis))
        settled = fit.converged or self.fits["mcllo"].settled
        self.fits["mcllo"] = replace(whole_fit(predictions, fit), settled=settled)
        weight, c = predictions.sample_weight, predictions.n_classes
        self.total = float(predictions.n_samples if weight is None else weight.sum())
        why = ""
        if c > MAX_CLASSES_OF_FULL_MAP:
            why = f"more than {MAX_CLASSES_OF_FULL_MAP} classes"
        elif c * (c - 1) >= self.total:
            why = f"{c * (c - 1)} parameters for {self.total:g} rows"
        elif predictions.n_samples * float(c * (c - 1)) ** 2 > FULL_MAP_PRODUCTS_PER_WORK * work:
            why = "too much data for its many parameters"
        self.skipped = why and f"the full map is left out: {why}"
        if not why:
            self.full = Family(predictions, full=True)
            basis = self.full.identified(np.eye(len(self.full.identity)))
            self.fits["full"] = restricted_fit(self.full, basis)

    def slope(self) -> tuple[float, float, float]:
        """Return the slope of one temperature with its 95 % interval; NaN where there is none."""
        fit = self.fits["temperature"]
        if fit.df == 0 or not fit.settled:
            return math.nan, math.nan, math.nan
        direction = mcllo_bases(len(self.mcllo.log_odds))["temperature"][:, 0]
        curvature = float(direction @ self.mcllo.partition()(fit.theta).hessian @ direction)
        value, half = float(fit.theta[-1]), Z95 / math.sqrt(max(curvature, TINY))
        return value, value - half, value + half

    def larger(self, name: str) -> str | None:
        """Return the model that says whether this one is enough."""
        larger = {"mcllo": "full", "full": None}.get(name, "mcllo")
        return larger if larger in self.fits else None


def mcllo_bases(n_compared: int) -> dict[str, Floats]:
    """Return the free directions of theta = (tau, gamma), for each model up to MCLLO."""
    every = np.eye(2 * n_compared)
    tau, gamma = every[:, :n_compared], every[:, n_compared:]
    common = gamma.sum(axis=1, keepdims=True)
    return {
        "identity": every[:, :0],
        "temperature": common,
        "shift": tau,
        "scale": gamma,
        "common_slope": np.hstack([tau, common]),
        "mcllo": every,
    }


@dataclass(frozen=True, eq=False)
class NestedModelRow(Result):
    """One model of the nested models.

    Attributes
    ----------
    model : str
        Its name.
    df : int
        Parameters that the rows can tell apart.
    statistic, pvalue : float
        Likelihood ratio of the identity against this model.
    method : {'chi2', 'exact', 'score', 'bound'}
        How `pvalue` was computed.
    chi2_pvalue : float
        The large-sample one.
    n_resamples, reason : int, str
        Draws behind `pvalue`, and why so.
    larger, larger_statistic, larger_df, larger_pvalue, larger_method, larger_chi2_pvalue, ...
        Is this model enough? It against MCLLO (MCLLO against the full map); 'bootstrap' draws
        labels from the fitted smaller model and is approximate, 'score' does so without refits,
        'exact' is the identity's. None or NaN at the top.
    rejected : bool
        Whether closed testing rejects that the labels follow this model.
    log_likelihood, aic, bic : float
        Of the fitted model.
    larger_too_costly : bool
        Whether `larger_pvalue` is chi-square's only because simulating it would cost too much.
    """

    model: str
    df: int
    statistic: float
    pvalue: float
    method: str
    chi2_pvalue: float
    n_resamples: int
    reason: str
    larger: str | None
    larger_statistic: float
    larger_df: int
    larger_pvalue: float
    larger_method: str | None
    larger_chi2_pvalue: float
    larger_n_resamples: int
    larger_reason: str
    rejected: bool
    log_likelihood: float
    aic: float
    bic: float
    larger_too_costly: bool = False

    left_out = ("larger_too_costly",)


class ModelComparison(NamedTuple):
    """A model against a larger one."""

    statistic: float
    df: int
    tail: PValue

    def columns(self, before: str = "") -> dict[str, Any]:
        """Return what a row holds of it, `before` in front of each name."""
        columns = {
            "statistic": self.statistic,
            "pvalue": self.tail.pvalue,
            "method": self.tail.method or None,
            "chi2_pvalue": chi2_sf(self.statistic, self.df) if self.tail.method else math.nan,
            "n_resamples": self.tail.n_resamples,
            "reason": self.tail.reason,
        }
        return {before + name: value for name, value in columns.items()}


def nested_models_rows(
    models: Models, plan: PValuePlan, test: CalibrationTest, alpha: float
) -> tuple[NestedModelRow, ...]:
    """Return a row for each model; `test` is that of the identity against MCLLO."""
    above = {name: _compare(models, plan, test, name, models.larger(name)) for name in models.fits}
    rejected = closed_test(local_pvalues(above), INSIDE, alpha)
    return tuple(
        NestedModelRow(
            model=name,
            df=fit.df,
            **_compare(models, plan, test, "identity", name).columns(),
            larger=models.larger(name),
            larger_df=above[name].df,
            **above[name].columns("larger_"),
            rejected=rejected[name],
            log_likelihood=fit.log_likelihood,
            aic=2.0 * fit.df - 2.0 * fit.log_likelihood,
            bic=math.log(models.total) * fit.df - 2.0 * fit.log_likelihood,
            larger_too_costly=(why := above[name].tail.why) is not None and why.too_costly,
        )
        for name, fit in models.fits.items()
    )


def local_pvalues(above: Mapping[str, ModelComparison]) -> dict[str, float]:
    """Return the p-values that closed testing holds against alpha; NaN where a test is not used."""
    local, full = {name: found.tail.pvalue for name, found in above.items()}, above["mcllo"]
    doubtful = full.tail.why is not None and full.tail.why.too_costly
    if full.df == 0 or (doubtful and full.tail.method == "chi2"):
        return local | {"mcllo": math.nan}
    for name in local.keys() - {"identity", "mcllo", "full"}:
        own = local[name] / (1.0 - FULL_MAP_LEVEL_SHARE)
        local[name] = min(own, full.tail.pvalue / FULL_MAP_LEVEL_SHARE)
    return local


def _compare(
    models: Models, plan: PValuePlan, test: CalibrationTest, small: str, large: str | None
) -> ModelComparison:
    """Return the likelihood ratio of two models with its p-value; nothing where there is none."""
    if large is None:
        return ModelComparison(math.nan, 0, PValue(math.nan, ""))
    below, above = models.fits[small], models.fits[large]
    family, value = models.full if large == "full" else models.mcllo, gain(below, above)
    if small == large:
        tail = PValue(1.0, "exact")
    elif (small, large) == ("identity", "mcllo"):
        tail = PValue(test.pvalue, test.method, test.n_resamples, why=test.why)
    elif small == "identity":
        tail = against_identity(plan, family, above.basis, value)
    else:
        tail = against_larger(plan, models.mcllo, below, family, above)
    return ModelComparison(value, above.df - below.df, tail)
