"""`calibration_posterior`: the posterior probability of calibration, by BIC.

Two models, calibrated (delta = gamma = 1) and MCLLO with d parameters, n rows; d = 2 (c - 1):

====================  =====================================================================
BIC, calibrated       ``-2 l(theta0)``
BIC, uncalibrated     ``d ln n - 2 l(theta_hat)``
log Bayes factor      ``ln BF = (BIC_c - BIC_u) / 2 = lambda / 2 - (d / 2) ln n``
posterior             ``P(M_c | y) = 1 / (1 + BF (1 - prior) / prior)``
====================  =====================================================================

For c = 2 these are the numbers of BRcal (Guthrie and Franck 2024). The posterior depends on the
labels only through the likelihood ratio statistic lambda, and BIC asks of it ``d ln n`` where the
test asks for little more than d: with many classes the posterior can be near 1 although the test
rejects (Lindley's paradox). `CalibrationPosterior.warning` says so where it matters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Unpack

from .._fit.fit import MCLLOFit, fit_predictions
from .._utils.formatting import PStyle, format_count, format_number, format_p, p_words
from .._utils.results import Result
from .._validation.arguments import check_share
from .._validation.predictions import Predictions, TableOptions, judged_predictions, reads_rows
from ..exceptions import InputError
from .likelihood_tests import chi2_sf

MAX_PARAMETERS_WITHOUT_NOTE = 4
"""Parameters above which the charge of BIC is always explained."""
REJECTION_LEVEL = 0.05


@dataclass(frozen=True, eq=False)
class CalibrationPosterior(Result):
    """The posterior probability that labels follow the predictions, against MCLLO.

    Attributes
    ----------
    posterior : float
        Of calibration; the only alternative considered is MCLLO.
    log_bayes_factor : float
        Natural logarithm of the Bayes factor against calibration; negative speaks for it.
    bic_calibrated, bic_uncalibrated : float
        Of the predictions as they are, and of MCLLO.
    prior : float
        Prior probability of calibration.
    statistic, df : float, int
        Likelihood ratio statistic, and parameters of MCLLO that the rows can tell apart.
    pvalue : float
        Of the statistic, by chi-square; `calibration_test` says whether that can be trusted.
    n_samples, total_weight : int, float
        Rows, and the n of BIC: the sum of the weights, or the number of rows.
    warning : str
        What the charge of BIC does to the posterior; empty where it matters little.

    See Also
    --------
    calibration_posterior : Makes it.
    CalibrationTest : The p-value.
    BoldRecalibration : Holds this posterior.

    Notes
    -----
    The numbers are those of [1]_ for two classes.

    References
    ----------
    .. [1] A. P. Guthrie, C. T. Franck (2024). Boldness-recalibration for binary event predictions.
           The American Statistician, doi:10.1080/00031305.2024.2339266.

    Examples
    --------
    >>> import mcllo
    >>> probs = [[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]] * 10
    >>> y = [0, 1, 1, 0, 0, 0, 1, 1] * 5
    >>> found = mcllo.calibration_posterior(probs, y)
    >>> round(found.posterior, 2), found.df
    (0.78, 2)
    """

    posterior: float
    log_bayes_factor: float
    bic_calibrated: float
    bic_uncalibrated: float
    prior: float
    statistic: float
    df: int
    pvalue: float
    n_samples: int
    total_weight: float
    warning: str

    def __str__(self) -> str:
        note = f"\nNote: {self.warning}" if self.warning else ""
        return (
            f"posterior probability of calibration {format_posterior(self.posterior)} "
            f"(prior {self.prior:g}, BIC, n = {format_count(self.total_weight)}); statistic "
            f"{format_number(self.statistic, 4)} on {self.df} df, p {format_p(self.pvalue)} "
            f"(chi-square){note}"
        )


@reads_rows(TableOptions)
def calibration_posterior(
    probs: Any = None,
    y: Any = None,
    *,
    prior: float = 0.5,
    baseline: Any = None,
    **data: Unpack[TableOptions],
) -> CalibrationPosterior:
    """Return the posterior probability of calibration against MCLLO, by BIC.

    Read it beside the p-value: with many classes BIC favours calibration unless the evidence
    against it is overwhelming.

    Parameters
    ----------
    probs : array-like, frame or Predictions
        Predicted probabilities, shape (n_samples, n_classes).
    y : array-like of shape (n_samples,)
        The labels that came true; not given beside a `Predictions`.
    prior : float
        Prior probability of calibration, between 0 and 1.
    baseline : label, optional
        Reference class of the log odds. Default: the last class that occurs in `y`.
    logits, classes, prefix, sample_weight, normalize, clip : optional
        How rows are read; each is described in `Predictions.from_arrays`.

    Returns
    -------
    CalibrationPosterior
        `posterior`, `log_bayes_factor`, `warning`; ``print`` it.

    See Also
    --------
    calibration_test : The p-value.
    boldness_recalibrate : Spreads predictions as far as this posterior allows.
    CalibrationPosterior : What comes out.

    Notes
    -----
    For two classes these are the numbers of [1]_, which approximates the Bayes factor by BIC [2]_.
    The n of BIC is the sum of the weights.

    References
    ----------
    .. [1] A. P. Guthrie, C. T. Franck (2024). Boldness-recalibration for binary event predictions.
           The American Statistician, doi:10.1080/00031305.2024.2339266.
    .. [2] G. Schwarz (1978). Estimating the dimension of a model. The Annals of Statistics
           6:461-464.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> probs = rng.dirichlet([1, 1, 1], size=400)
    >>> y = [rng.choice(3, p=row) for row in probs]
    >>> print(calibration_posterior(probs, y))
    posterior probability of calibration 0.99998 (prior 0.5, BIC, n = 400); statistic 2.528 on 4
    df, p = 0.64 (chi-square)
    """
    check_share("prior", prior)
    predictions = judged_predictions(probs, y, independent=True, baseline=baseline, **data)
    total = counted_rows(predictions)
    return posterior_of_fit(fit_predictions(predictions), total, prior)


def posterior_of_fit(fit: MCLLOFit, total: float, prior: float) -> CalibrationPosterior:
    """Return the posterior from a fit to rows of this total weight."""
    statistic, df = fit.statistic, fit.df
    evidence = log_bayes_factor(statistic, df, total)
    posterior, pvalue = posterior_probability(evidence, prior), chi2_sf(statistic, df)
    bic = -2.0 * fit.log_likelihood_null, df * math.log(total) - 2.0 * fit.log_likelihood
    test = (statistic, df, pvalue, fit.n_samples)
    warning = bic_warning(posterior, pvalue, df, total)
    return CalibrationPosterior(posterior, evidence, *bic, prior, *test, total, warning)


def log_bayes_factor(statistic: float, df: int, total: float) -> float:
    """Return ``lambda / 2 - (d / 2) ln n``: the evidence against calibration."""
    return 0.5 * statistic - 0.5 * df * math.log(total)


def posterior_probability(log_factor: float, prior: float) -> float:
    """Return ``1 / (1 + BF (1 - prior) / prior)`` without overflow."""
    against = log_factor + math.log1p(-prior) - math.log(prior)
    if against <= 0.0:
        return 1.0 / (1.0 + math.exp(against))
    return math.exp(-against) / (1.0 + math.exp(-against))


def bic_warning(posterior: float, pvalue: float, df: int, total: float, p: PStyle = p_words) -> str:
    """Return what to keep in mind; empty for few parameters on which the test agrees."""
    contradiction = posterior > 0.5 and pvalue < REJECTION_LEVEL
    if not contradiction and df <= MAX_PARAMETERS_WITHOUT_NOTE:
        return ""
    charge = f"BIC charges d ln n = {format_number(df * math.log(total))} for d = {df} parameters"
    effect = "and can favour calibration although the test rejects it"
    if contradiction:
        effect = f"and so favours calibration although the test rejects it (p {p(pvalue)})"
    advice = "read the posterior beside the p-value, it is no evidence of calibration by itself"
    return f"{charge} {effect}; {advice}."


def format_posterior(posterior: float) -> str:
    """Return enough digits to tell the posterior from 1: 0.9990, or 1 - 6e-08."""
    rest = 1.0 - posterior
    if rest == 0.0:
        return "1"
    if rest < 1e-5:
        return f"1 - {rest:.0e}"
    if rest < 0.01:
        return f"{posterior:.{-math.floor(math.log10(rest))}f}"
    return format_number(posterior)


def counted_rows(predictions: Predictions) -> float:
    """Return the n of BIC: the sum of the weights, which must count rows."""
    total = predictions.facts.n_observations(predictions.n_samples)
    if predictions.sample_weight is not None and total <= 1.0:
        raise InputError(
            f"sample_weight must count more than one row for BIC; got {total:.3g}. "
            "Leave rows in that count."
        )
    return total
