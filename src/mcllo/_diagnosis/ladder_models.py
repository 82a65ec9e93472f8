"""The models of the ladder, fitted: restrictions of MCLLO and the full map.

``theta = theta0 + A beta``, where A picks columns of ``theta = (tau_1 .. tau_K, gamma_1 ..
gamma_K)``; a common slope is the sum of the columns of gamma. MCLLO itself is `fit_predictions`.

The numbers of each model of the ladder: likelihood ratios, p-values, information criteria.

============  =======================================================
statistic     ``2 [l(model) - l(identity)]`` on the model's parameters
next          against the next larger model
larger        against MCLLO (MCLLO: against the full map): enough?
AIC, BIC      ``2 df - 2 l``, ``df log n - 2 l``
============  =======================================================

Every comparison has a chi-square p-value and one by the method of `_diagnosis/nested`; pairs that
two columns share are tested once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from .._fit.fit import MCLLOFit, free_parameters
from .._ground.results import Floats, none_for_nan
from .._inference.budget import NESTED_WORK
from .._inference.likelihood_tests import CalibrationTest, chi2_sf
from .._inference.pvalue import PValue
from .._input.predictions import Predictions
from .class_tests import closed_test
from .families import Family, RestrictedFit, restricted_fit
from .nested import Plan, against_identity, against_larger, gain

MODELS = ("identity", "temperature", "shift", "scale", "common_slope", "mcllo", "full")
INSIDE: dict[str, tuple[str, ...]] = {
    "identity": (),
    "temperature": ("identity",),
    "shift": ("identity",),
    "scale": ("identity", "temperature"),
    "common_slope": ("identity", "temperature", "shift"),
    "mcllo": ("identity", "temperature", "shift", "scale", "common_slope"),
    "full": ("identity", "temperature", "shift", "scale", "common_slope", "mcllo"),
}
NEXT = {
    "identity": "temperature",
    "temperature": "common_slope",
    "shift": "common_slope",
    "scale": "mcllo",
    "common_slope": "mcllo",
    "mcllo": "full",
}
MOST_CLASSES = 30
"""Classes beyond which the full map is not fitted."""
FULL_PRICE = 200.0
"""Products of a Hessian of the full map, ``n (c (c - 1))^2``, that a cell of `work` pays for."""


class Models:
    """The fitted models of the ladder; the full map if `work` pays for it (`_diagnosis/nested`)."""

    def __init__(self, predictions: Predictions, fit: MCLLOFit, work: float = NESTED_WORK) -> None:
        self.mcllo, self.fits = Family(predictions), {}
        for name, basis in mcllo_bases(len(predictions.log_odds)).items():
            if name != "mcllo" or not fit.converged:
                self.fits[name] = restricted_fit(self.mcllo, self.mcllo.identified(basis))
        free = free_parameters(predictions.log_odds)
        theta = np.concatenate([fit.tau, fit.gamma])
        settled = fit.converged or self.fits["mcllo"].settled
        self.fits["mcllo"] = RestrictedFit(
            theta, fit.log_likelihood, np.eye(len(free))[:, free], settled
        )
        weight = predictions.sample_weight
        self.total = float(predictions.n_samples if weight is None else weight.sum())
        self.full_df, self.skipped = 0, _why_no_full(predictions, self.total, work)
        if not self.skipped:
            self.full = Family(predictions, full=True)
            basis = self.full.identified(np.eye(len(self.full.identity)))
            self.fits["full"] = restricted_fit(self.full, basis)
            self.full_df = self.fits["full"].df

    def family(self, model: str) -> Family:
        """Return the family that a model is a restriction of."""
        return self.full if model == "full" else self.mcllo


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


def _why_no_full(predictions: Predictions, total: float, work: float) -> str:
    c = predictions.n_classes
    if c > MOST_CLASSES:
        return f"the full map is left out: more than {MOST_CLASSES} classes"
    if c * (c - 1) >= total:
        return f"the full map is left out: {c * (c - 1)} parameters for {total:g} rows"
    if predictions.n_samples * float(c * (c - 1)) ** 2 > FULL_PRICE * work:
        return "the full map is left out: too much data for its many parameters"
    return ""


@dataclass(frozen=True, eq=False)
class LadderRow:
    """One model of the ladder.

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
    next_model, next_statistic, next_df, next_pvalue, next_method, next_chi2_pvalue
        This model against the next larger one; None or NaN at the top.
    larger, larger_statistic, larger_df, larger_pvalue, larger_method, larger_chi2_pvalue, ...
        Is this model enough? It against MCLLO (MCLLO against the full map); 'bootstrap' draws
        labels from the fitted smaller model and is approximate, 'score' does so without refits,
        'exact' is the identity's.
    rejected : bool
        Whether closed testing rejects that the labels follow this model.
    log_likelihood, aic, bic : float
        Of the fitted model.
    larger_too_costly : bool
        Whether `larger_pvalue` is chi-square's because simulation would have cost too much.
    """

    model: str
    df: int
    statistic: float
    pvalue: float
    method: str
    chi2_pvalue: float
    n_resamples: int
    reason: str
    next_model: str | None
    next_statistic: float
    next_df: int
    next_pvalue: float
    next_method: str | None
    next_chi2_pvalue: float
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

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values; what does not exist is None."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        del plain["larger_too_costly"]
        found: dict[str, Any] = none_for_nan(plain)
        return found


def ladder_rows(
    models: Models, plan: Plan, test: CalibrationTest, alpha: float
) -> tuple[LadderRow, ...]:
    """Return a row for each model; `test` is that of the identity against MCLLO."""
    pairs = _Pairs(models, plan, test)
    local = {name: pairs(name, _larger(models, name)).pvalue for name in models.fits}
    rejected = closed_test(local, INSIDE, alpha)
    return tuple(_row(models, pairs, name, rejected[name]) for name in models.fits)


@dataclass(frozen=True, eq=False)
class _Comparison:
    """A model against a larger one."""

    statistic: float
    df: int
    chi2_pvalue: float
    tail: PValue

    @property
    def pvalue(self) -> float:
        return self.tail.pvalue


NOTHING = _Comparison(math.nan, 0, math.nan, PValue(math.nan, ""))


class _Pairs:
    """Comparisons of two models, each made once."""

    def __init__(self, models: Models, plan: Plan, test: CalibrationTest) -> None:
        self.models, self.plan, self.test = models, plan, test
        self._found: dict[tuple[str, str], _Comparison] = {}

    def __call__(self, small: str, large: str | None) -> _Comparison:
        if large is None:
            return NOTHING
        if (small, large) not in self._found:
            self._found[small, large] = self._compare(small, large)
        return self._found[small, large]

    def _compare(self, small: str, large: str) -> _Comparison:
        below, above = self.models.fits[small], self.models.fits[large]
        value, df = gain(below, above), above.df - below.df
        return _Comparison(value, df, chi2_sf(value, df), self._tail(small, large, value))

    def _tail(self, small: str, large: str, value: float) -> PValue:
        models, test = self.models, self.test
        if small == large:
            return PValue(1.0, "exact")
        if (small, large) == ("identity", "mcllo"):
            return PValue(test.pvalue, test.method, test.n_resamples, why=test.why)
        family, above = models.family(large), models.fits[large]
        if small == "identity":
            return against_identity(self.plan, family, above.basis, value)
        return against_larger(self.plan, models.mcllo, models.fits[small], family, above)


def _larger(models: Models, name: str) -> str | None:
    larger = {"mcllo": "full", "full": None}.get(name, "mcllo")
    return larger if larger in models.fits else None


def _row(models: Models, pairs: _Pairs, name: str, rejected: bool) -> LadderRow:
    fit, larger = models.fits[name], _larger(models, name)
    following = NEXT[name] if NEXT.get(name) in models.fits else None
    null, after, above = pairs("identity", name), pairs(name, following), pairs(name, larger)
    return LadderRow(
        model=name,
        df=fit.df,
        statistic=null.statistic,
        pvalue=null.pvalue,
        method=null.tail.method,
        chi2_pvalue=null.chi2_pvalue,
        n_resamples=null.tail.n_resamples,
        reason=null.tail.reason,
        next_model=following,
        next_statistic=after.statistic,
        next_df=after.df,
        next_pvalue=after.pvalue,
        next_method=after.tail.method or None,
        next_chi2_pvalue=after.chi2_pvalue,
        larger=larger,
        larger_statistic=above.statistic,
        larger_df=above.df,
        larger_pvalue=above.pvalue,
        larger_method=above.tail.method or None,
        larger_chi2_pvalue=above.chi2_pvalue,
        larger_n_resamples=above.tail.n_resamples,
        larger_reason=above.tail.reason,
        rejected=rejected,
        log_likelihood=fit.log_likelihood,
        aic=2.0 * fit.df - 2.0 * fit.log_likelihood,
        bic=math.log(models.total) * fit.df - 2.0 * fit.log_likelihood,
        larger_too_costly=above.tail.why is not None and above.tail.why.too_costly,
    )
