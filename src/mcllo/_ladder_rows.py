"""The numbers of each model of the ladder: likelihood ratios, p-values, information criteria.

============  =======================================================
statistic     ``2 [l(model) - l(identity)]`` on the model's parameters
next          against the next larger model, chi-square only
larger        against MCLLO (MCLLO: against the full map): enough?
AIC, BIC      ``2 df - 2 l``, ``df log n - 2 l``
============  =======================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

from ._calibration_test import CalibrationTest, chi2_sf
from ._fit import none_for_nan
from ._ladder_models import INSIDE, NEXT, Models
from ._multiplicity import closed_test
from ._nested_test import Plan, TailP, against_identity, against_larger, gain


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
    method : {'chi2', 'exact', 'bound'}
        How `pvalue` was computed.
    n_resamples, reason : int, str
        Draws behind it, and why so.
    next_model, next_statistic, next_df, next_pvalue
        This model against the next larger one; the p-value is chi-square's. None or NaN at the top.
    larger, larger_statistic, larger_df, larger_pvalue, larger_method, ...
        Is this model enough? It against MCLLO (MCLLO against the full map); 'bootstrap' draws
        labels from the fitted smaller model and is approximate, 'exact' is the identity's.
    rejected : bool
        Whether closed testing rejects that the labels follow this model.
    log_likelihood, aic, bic : float
        Of the fitted model.
    """

    model: str
    df: int
    statistic: float
    pvalue: float
    method: str
    n_resamples: int
    reason: str
    next_model: str | None
    next_statistic: float
    next_df: int
    next_pvalue: float
    larger: str | None
    larger_statistic: float
    larger_df: int
    larger_pvalue: float
    larger_method: str | None
    larger_n_resamples: int
    larger_reason: str
    rejected: bool
    log_likelihood: float
    aic: float
    bic: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values; what does not exist is None."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        found: dict[str, Any] = none_for_nan(plain)
        return found


def ladder_rows(
    models: Models, plans: dict[bool, Plan], test: CalibrationTest, alpha: float
) -> tuple[LadderRow, ...]:
    tails = {name: _tail(models, plans, test, name) for name in models.fits}
    larger = {name: _larger_tail(models, plans, test, name) for name in models.fits}
    local = {name: tail.pvalue for name, tail in larger.items()}
    rejected = closed_test(local, INSIDE, alpha)
    return tuple(
        _row(models, name, tails[name], larger[name], rejected[name]) for name in models.fits
    )


def _tail(models: Models, plans: dict[bool, Plan], test: CalibrationTest, name: str) -> TailP:
    """Return the p-value of the identity against a model."""
    if name == "identity":
        return TailP(1.0, "exact", 0, "")
    if name == "mcllo":
        return TailP(test.pvalue, test.method, test.n_resamples, test.reason)
    family, fit = models.family(name), models.fits[name]
    value = gain(models.fits["identity"], fit)
    return against_identity(plans[name == "full"], family, fit.basis, value)


def _larger_tail(
    models: Models, plans: dict[bool, Plan], test: CalibrationTest, name: str
) -> TailP:
    """Return the p-value of a model against MCLLO, or of MCLLO against the full map."""
    if name == "identity":
        return TailP(test.pvalue, test.method, test.n_resamples, test.reason)
    larger = _larger(models, name)
    if larger is None:
        return TailP(math.nan, "", 0, "")
    fits, family = models.fits, models.family(larger)
    return against_larger(plans[larger == "full"], models.mcllo, fits[name], family, fits[larger])


def _larger(models: Models, name: str) -> str | None:
    larger = {"mcllo": "full", "full": None}.get(name, "mcllo")
    return larger if larger in models.fits else None


def _row(models: Models, name: str, tail: TailP, more: TailP, rejected: bool) -> LadderRow:
    fits, fit = models.fits, models.fits[name]
    larger, following = _larger(models, name), NEXT.get(name)
    above = None if larger is None else fits[larger]
    after = fits.get(following) if following is not None else None
    next_gain = math.nan if after is None else gain(fit, after)
    next_df = 0 if after is None else after.df - fit.df
    return LadderRow(
        model=name,
        df=fit.df,
        statistic=gain(fits["identity"], fit),
        pvalue=tail.pvalue,
        method=tail.method,
        n_resamples=tail.n_resamples,
        reason=tail.reason,
        next_model=None if after is None else following,
        next_statistic=next_gain,
        next_df=next_df,
        next_pvalue=math.nan if after is None else chi2_sf(next_gain, next_df),
        larger=larger,
        larger_statistic=math.nan if above is None else gain(fit, above),
        larger_df=0 if above is None else above.df - fit.df,
        larger_pvalue=more.pvalue,
        larger_method=more.method or None,
        larger_n_resamples=more.n_resamples,
        larger_reason=more.reason,
        rejected=rejected,
        log_likelihood=fit.log_likelihood,
        aic=2.0 * fit.df - 2.0 * fit.log_likelihood,
        bic=math.log(models.total) * fit.df - 2.0 * fit.log_likelihood,
    )
