"""Intercepts and slopes of the models behind `calibration_table`, with their uncertainty.

==================  ============================================================================
interval            estimate -/+ z se, or by profile likelihood (`_fit/profile`)
covariance          ``B (B' H B)^+ B'``: B the model's directions, H the information there; in
                    groups and under survey weights the sandwich (`_fit/sandwich`)
p-value             of one parameter, by Wald: ``2 Phi(-|estimate - right| / se)``
joint tests         likelihood ratios: intercepts (shift against nothing), slopes (mcllo against
                    shift), both; p-values by `_diagnostics/nested_pvalues`; not for dependent rows
==================  ============================================================================

`one_class_versus_rest` makes one class of many a model of two outcomes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Literal, NamedTuple

import numpy as np

from .._fit.fit import MCLLOFit
from .._fit.profile import Profile
from .._fit.sandwich import score_sums
from .._inference.calibration_test import needs_robust
from .._inference.pvalue import PValue
from .._model.kernel import Derivatives
from .._utils.linalg import inverse, whitening
from .._utils.results import Floats
from .._validation.predictions import Predictions
from .model_comparison import mcllo_bases
from .nested_pvalues import PValuePlan, against_identity, against_larger, gain
from .restricted_models import Family, RestrictedFit, restricted_fit, whole_fit

Interval = Literal["wald", "profile"]
IDENTITY_VALUES = {"intercept": 0.0, "slope": 1.0}
"""What calibrated predictions have."""
UNIDENTIFIED_SHARE_TOL = 1e-6
"""Part of a parameter outside the directions that rows can tell, above which it is not known."""


class Parameter(NamedTuple):
    """One estimate: a row of the table."""

    model: str
    label: Hashable | None
    parameter: str
    estimate: float
    se: float
    low: float
    high: float

    @property
    def pvalue(self) -> float:
        """Wald's, of the value that calibrated predictions have."""
        from scipy.special import erfc

        z = (
            abs(self.estimate - IDENTITY_VALUES[self.parameter]) / self.se
            if self.se > 0.0
            else np.nan
        )
        return float(erfc(z / np.sqrt(2.0)))


def one_class_versus_rest(predictions: Predictions, k: int) -> Predictions:
    """Return the rows as predictions of two outcomes: class k, or any other."""
    rest = np.delete(predictions.probs, k, axis=1).sum(axis=1)
    return Predictions(
        probs=np.column_stack([predictions.probs[:, k], rest]),
        codes=(predictions.codes != k).astype(np.intp),
        classes=(True, False),
        baseline=False,
        sample_weight=predictions.sample_weight,
        weight_kind=predictions.weight_kind,
        groups=predictions.groups,
    )


class CalibrationModels:
    """The fitted models with what they say of their parameters."""

    def __init__(
        self, predictions: Predictions, fit: MCLLOFit, level: float, interval: Interval
    ) -> None:
        from scipy.special import ndtri

        self.predictions, self.family, self.interval = predictions, Family(predictions), interval
        self.bases, self.reach = mcllo_bases(len(fit.tau)), float(ndtri(0.5 + level / 2.0))
        self.fits = {"mcllo": whole_fit(predictions, fit)}

    def fit(self, name: str) -> RestrictedFit:
        """Return a model's fit, made once."""
        if name not in self.fits:
            basis = self.family.identified(self.bases[name])
            self.fits[name] = restricted_fit(self.family, basis)
        return self.fits[name]

    def rows(self, name: str, label: Hashable | None) -> Iterator[Parameter]:
        """Yield the parameters of a model; `label` is the class that stands against the rest."""
        k, compared = len(self.predictions.compared), self.predictions.compared
        fit = self.fit(name)
        variance, ends = self._uncertainty(name, fit)
        for j, own in enumerate(compared if label is None else (label,)):
            if name != "temperature":
                yield _parameter(name, own, "intercept", fit.theta[j], variance[j], ends[j])
            if name == "mcllo":
                slope = fit.theta[k + j], variance[k + j], ends[k + j]
                yield _parameter(name, own, "slope", *slope)
        if name in ("common_slope", "temperature"):
            yield _parameter(name, None, "slope", fit.theta[k], variance[k], ends[k])

    def tests(self, plan: PValuePlan) -> Iterator[tuple[str, float, int, PValue]]:
        """Yield the joint tests of intercepts, of slopes, and of both: statistic, df, p-value."""
        nothing, shift, whole = (self.fit(name) for name in ("identity", "shift", "mcllo"))
        value = gain(nothing, shift)
        tail = against_identity(plan, self.family, shift.basis, value)
        yield "intercepts", value, shift.df, tail
        tail = against_larger(plan, self.family, shift, self.family, whole)
        yield "slopes", gain(shift, whole), whole.df - shift.df, tail
        tail = against_identity(plan, self.family, whole.basis, gain(nothing, whole))
        yield "intercepts and slopes", gain(nothing, whole), whole.df, tail

    def _uncertainty(self, name: str, fit: RestrictedFit) -> tuple[Floats, Floats]:
        """Return variances of theta and ends of intervals; NaN where nothing is known."""
        size = len(fit.theta)
        variance, ends = np.full(size, np.nan), np.full((size, 2), np.nan)
        if not fit.settled:
            return variance, ends
        basis = fit.basis if name == "mcllo" else self.bases[name]
        information = basis.T @ self.family.partition()(fit.theta).hessian @ basis
        root = whitening(information)
        inner = root @ root.T
        lost = np.abs(basis @ (np.eye(len(inner)) - information @ inner)).max(axis=1, initial=0.0)
        if needs_robust(self.predictions):
            meat = score_sums(self.predictions, fit.theta).covariance
            inner = inner @ (basis.T @ meat @ basis) @ inner
        known = basis.any(axis=1) & (lost < UNIDENTIFIED_SHARE_TOL)
        spread = np.einsum("ij,jk,ik->i", basis, inner, basis)
        variance[known] = spread[known]
        if self.interval == "wald" or not known.any():
            reach = self.reach * np.sqrt(variance)
            return variance, np.stack([fit.theta - reach, fit.theta + reach], axis=1)
        return variance, self._profiled(fit, basis, known)

    def _profiled(self, fit: RestrictedFit, basis: Floats, known: Any) -> Floats:
        """Return the ends of profile intervals of the parameters that are `known`."""
        used = known & basis.any(axis=1)
        columns = [int(np.flatnonzero(basis[i])[0]) for i in np.flatnonzero(used)]
        free = np.unique(columns)
        own, likelihood = basis[:, free], self.family.likelihood()
        beta = np.linalg.pinv(own) @ (fit.theta - self.family.identity)

        def objective(x: Floats) -> Derivatives:
            terms = likelihood(self.family.identity + own @ x)
            return Derivatives(terms.value, own.T @ terms.gradient, own.T @ terms.hessian @ own)

        variance = np.diagonal(inverse(objective(beta).hessian))
        profile = Profile(objective, beta, variance, self.reach)
        found = np.array([[profile.end(b, sign) for sign in (-1.0, 1.0)] for b in range(len(free))])
        ends = np.full((len(fit.theta), 2), np.nan)
        places = np.searchsorted(free, columns)
        ends[used] = self.family.identity[used][:, None] + found[places]
        return ends


def _parameter(
    model: str, label: Hashable | None, name: str, estimate: float, variance: float, ends: Floats
) -> Parameter:
    known = not np.isnan(variance)
    value = float(estimate) if known else np.nan
    return Parameter(model, label, name, value, float(np.sqrt(variance)), *map(float, ends))
