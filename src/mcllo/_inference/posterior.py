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

`boldness_recalibrate`: the most spread-out predictions that keep a posterior of calibration.

===============  ============================================================================
boldness         ``sqrt(1/2 sum_j Var(g_j))``, Var over rows with n - 1; sd of g_1 for c = 2
its square       ``V(theta)``, ``dV/d eta_ki = g_ki (r_ki - sum_j r_ji g_ji) / (n - 1)`` with
                 ``r_ji = g_ji - mean_i g_ji``; then ``d eta_ki = d tau_k + l_ki d gamma_k``
problem          maximise V(theta) subject to ``P(M_c | y, g(theta)) >= t``
constraint       ``l(theta) >= l(theta_hat) - kappa``, a convex set
kappa            ``(d / 2) ln n + ln[(1 - t) / t  prior / (1 - prior)]``; none if negative
===============  ============================================================================

Maps compose to maps, so every recalibrated set has the same best log likelihood ``l(theta_hat)``,
and its likelihood ratio statistic is ``2 [l(theta_hat) - l(theta)]``: no fit inside the search.
For c = 2 this is the problem of BRcal (Guthrie and Franck 2024). V is not concave, so the search
(SLSQP) has several starts: the estimate, its gamma times 1.5, 2 and 3, and the identity. It works
in ``u``, ``theta = theta_hat + sqrt(2 kappa) F u`` with ``F F'`` the covariance: there the
constraint is about the unit ball.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Unpack

import numpy as np

from .._fit.fit import MCLLOFit, fit_each_baseline, fit_predictions
from .._fit.map import MCLLOMap
from .._fit.objective import build_negative_log_likelihood, free_parameters
from .._model.kernel import probabilities_and_log_sums
from .._model.likelihood import identity_theta
from .._utils.formatting import (
    PStyle,
    format_count,
    format_number,
    format_pvalue,
    pvalue_text,
)
from .._utils.results import Floats, Result
from .._validation.arguments import check_share
from .._validation.predictions import Predictions, predictions_for_inference
from .._validation.row_options import TableOptions, takes_row_options
from ..exceptions import InputError
from .likelihood_tests import chi2_sf

MAX_PARAMETERS_WITHOUT_NOTE = 4
"""Parameters above which the charge of BIC is always explained: those of three classes."""


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
            f"{format_number(self.statistic, 4)} on {self.df} df, p {format_pvalue(self.pvalue)} "
            f"(chi-square){note}"
        )


@takes_row_options(TableOptions)
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
    logits, classes, prefix, sample_weight, normalize, clip, missing : optional
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
    predictions = predictions_for_inference(
        probs, y, independent=True, baseline=baseline, **data
    )
    total = bic_n_rows(predictions)
    return posterior_of_fit(fit_predictions(predictions), total, prior)


def posterior_of_fit(fit: MCLLOFit, total: float, prior: float) -> CalibrationPosterior:
    """Return the posterior from a fit to rows of this total weight."""
    log_factor = log_bayes_factor(fit.statistic, fit.df, total)
    posterior = posterior_probability(log_factor, prior)
    pvalue = chi2_sf(fit.statistic, fit.df)
    return CalibrationPosterior(
        posterior=posterior,
        log_bayes_factor=log_factor,
        bic_calibrated=-2.0 * fit.log_likelihood_null,
        bic_uncalibrated=fit.df * math.log(total) - 2.0 * fit.log_likelihood,
        prior=prior,
        statistic=fit.statistic,
        df=fit.df,
        pvalue=pvalue,
        n_samples=fit.n_samples,
        total_weight=total,
        warning=bic_warning(posterior, pvalue, fit.df, total),
    )


def log_bayes_factor(statistic: float, df: int, total: float) -> float:
    """Return ``lambda / 2 - (d / 2) ln n``: the evidence against calibration."""
    return 0.5 * statistic - 0.5 * df * math.log(total)


def posterior_probability(log_factor: float, prior: float) -> float:
    """Return ``1 / (1 + BF (1 - prior) / prior)`` without overflow."""
    log_odds_against = log_factor + math.log1p(-prior) - math.log(prior)
    # The exponential that is below 1, whatever the sign: Bayes factors overflow.
    if log_odds_against <= 0.0:
        return 1.0 / (1.0 + math.exp(log_odds_against))
    odds_for = math.exp(-log_odds_against)
    return odds_for / (1.0 + odds_for)


def bic_warning(
    posterior: float, pvalue: float, df: int, total: float, p: PStyle = pvalue_text
) -> str:
    """Return what to keep in mind; empty for few parameters on which the test agrees."""
    contradiction = posterior > 0.5 and pvalue < 0.05
    if not contradiction and df <= MAX_PARAMETERS_WITHOUT_NOTE:
        return ""
    charge = f"BIC charges d ln n = {format_number(df * math.log(total))} for d = {df} parameters"
    effect = "and can favour calibration although the test rejects it"
    if contradiction:
        effect = (
            f"and so favours calibration although the test rejects it (p {p(pvalue)})"
        )
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
        decimals = -math.floor(math.log10(rest))
        return f"{posterior:.{decimals}f}"
    return format_number(posterior)


def bic_n_rows(predictions: Predictions) -> float:
    """Return the n of BIC: the sum of the weights, which must count rows."""
    total = predictions.facts.n_observations(predictions.n_samples)
    if predictions.sample_weight is not None and total <= 1.0:
        raise InputError(
            f"sample_weight must count more than one row for BIC; got {total:.3g}. "
            "Leave rows in that count."
        )
    return total


SLOPE_FACTORS_OF_STARTS = (1.5, 2.0, 3.0)
CONSTRAINT_TOL = 1e-9
"""Part of kappa by which rounding may leave the constraint."""
STATIONARITY_TOL = 1e-3
"""Part of the gradient along the constraint's surface that counts as none: at that angle the
boldness that is left to gain is of the order of its square."""


@dataclass(frozen=True, eq=False)
class BoldRecalibration(Result):
    """The boldest map that keeps the posterior probability of calibration at `t` or above.

    Everything here refers to the rows that chose the map; other rows will tell a less rosy story.

    Attributes
    ----------
    map : MCLLOMap
        Has ``recalibrate(probs)``.
    boldness, boldness_original, boldness_mle : float
        After the map; of the predictions as they were; after the maximum likelihood map.
    posterior, posterior_original : float
        Of calibration, after the map and before; see `calibration_posterior`.
    t, prior : float
        The least posterior that was asked for, and the prior.
    statistic, df, pvalue, n_samples : float, int, float, int
        Likelihood ratio test (chi-square) of the bold predictions on these rows, and their number.
    converged : bool
        Whether the search ended at a point where boldness cannot grow along the constraint. A
        bolder one elsewhere is possible; several starts make it unlikely.
    warning : str
        What the charge of BIC does to the posterior; empty where it matters little.

    See Also
    --------
    boldness_recalibrate : Makes it.
    CalibrationPosterior : The posterior alone.
    MCLLOMap : What `map` is.

    Notes
    -----
    The method is that of [1]_, extended from two classes to any number.

    References
    ----------
    .. [1] A. P. Guthrie, C. T. Franck (2024). Boldness-recalibration for binary event predictions.
           The American Statistician, doi:10.1080/00031305.2024.2339266.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> probs = rng.dirichlet([1, 1], size=200)
    >>> bold = boldness_recalibrate(probs, (rng.random(200) < probs[:, 1]).astype(int))
    >>> bold.boldness > bold.boldness_original, bold.posterior >= 0.95 - 1e-9
    (True, True)
    """

    map: MCLLOMap
    boldness: float
    boldness_original: float
    boldness_mle: float
    posterior: float
    posterior_original: float
    t: float
    prior: float
    statistic: float
    df: int
    pvalue: float
    n_samples: int
    converged: bool
    warning: str

    def __str__(self) -> str:
        doubt = (
            ""
            if self.converged
            else "\nThe search did not converge: bolder maps may exist."
        )
        note = f"\nNote: {self.warning}" if self.warning else ""
        return (
            f"boldness {format_number(self.boldness, 4)} (original "
            f"{format_number(self.boldness_original, 4)}, maximum likelihood "
            f"{format_number(self.boldness_mle, 4)}) at posterior probability of calibration "
            f"{format_posterior(self.posterior)} (asked: {self.t:g}, prior {self.prior:g})\n"
            f"a test of the bold predictions on the same rows gives p {format_pvalue(self.pvalue)} "
            f"(statistic {format_number(self.statistic, 4)} on {self.df} df, chi-square)"
            f"{doubt}{note}"
        )


@takes_row_options(TableOptions)
def boldness_recalibrate(
    probs: Any = None,
    y: Any = None,
    *,
    t: float = 0.95,
    prior: float = 0.5,
    baseline: Any = None,
    **data: Unpack[TableOptions],
) -> BoldRecalibration:
    """Spread predictions as far as a posterior probability of calibration of `t` allows.

    Boldness is bought with likelihood: the bold map fits the labels worse than the maximum
    likelihood map does.

    Parameters
    ----------
    probs : array-like, frame or Predictions
        Predicted probabilities, shape (n_samples, n_classes).
    y : array-like of shape (n_samples,)
        The labels that came true; not given beside a `Predictions`.
    t : float
        Least posterior probability of calibration of the bold predictions.
    prior : float
        Prior probability of calibration.
    baseline : label, optional
        Reference class of the log odds. Default: the last class that occurs in `y`.
    logits, classes, prefix, sample_weight, normalize, clip, missing : optional
        How rows are read; each is described in `Predictions.from_arrays`.

    Returns
    -------
    BoldRecalibration
        `map`, which has ``recalibrate(probs)``, and boldness and posterior before and after.

    Raises
    ------
    InputError
        When even the maximum likelihood map has a posterior of `t` or less, when it does not exist,
        or when all rows are the same.

    See Also
    --------
    BoldRecalibration : What comes out.
    calibration_posterior : The posterior that is held.
    MCLLOCalibrator : Recalibration by likelihood alone.

    Notes
    -----
    For two classes this is the boldness-recalibration of [1]_. With more, boldness is
    ``sqrt(1/2 sum_j Var(g_j))``, which is the standard deviation for two. The n of BIC and of the
    variance is the sum of the weights.

    References
    ----------
    .. [1] A. P. Guthrie, C. T. Franck (2024). Boldness-recalibration for binary event predictions.
           The American Statistician, doi:10.1080/00031305.2024.2339266.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> probs = rng.dirichlet([1, 1, 1], size=400)
    >>> y = [rng.choice(3, p=row) for row in probs]
    >>> bold = boldness_recalibrate(probs, y)
    >>> round(bold.boldness_original, 3), round(bold.boldness, 3), round(bold.posterior, 6)
    (0.285, 0.329, 0.95)
    >>> bold.map.recalibrate([[0.5, 0.3, 0.2]]).round(3)
    array([[0.576, 0.251, 0.172]])
    """
    check_share("t", t)
    check_share("prior", prior)
    predictions = predictions_for_inference(
        probs, y, independent=True, baseline=baseline, **data
    )
    total = bic_n_rows(predictions)
    fit = _fit_that_exists(predictions)
    kappa = log_likelihood_allowance(fit.df, total, t, prior)
    search = _BoldnessSearch(predictions, fit, total, kappa)
    best = search.find_boldest()
    theta = search.theta(best)
    k = len(fit.tau)
    lost_log_likelihood = search.kappa * (1.0 - search.evaluate(best).slack)
    statistic = 2.0 * lost_log_likelihood
    posterior = posterior_probability(log_bayes_factor(statistic, fit.df, total), prior)
    pvalue = chi2_sf(statistic, fit.df)
    return BoldRecalibration(
        map=MCLLOMap(theta[:k], theta[k:], predictions.classes, predictions.baseline),
        boldness=search.spread.boldness(theta),
        boldness_original=search.spread.boldness(identity_theta(k)),
        boldness_mle=search.spread.boldness(fit.theta),
        posterior=posterior,
        posterior_original=posterior_of_fit(fit, total, prior).posterior,
        t=t,
        prior=prior,
        statistic=statistic,
        df=fit.df,
        pvalue=pvalue,
        n_samples=fit.n_samples,
        converged=search.free_gradient_share(best) <= STATIONARITY_TOL,
        warning=bic_warning(posterior, pvalue, fit.df, total),
    )


def log_likelihood_allowance(df: int, total: float, t: float, prior: float) -> float:
    """Return kappa: how far the log likelihood may fall before the posterior is below `t`."""
    log_factor_of_estimate = log_bayes_factor(0.0, df, total)
    prior_odds = prior / (1.0 - prior)
    kappa = -log_factor_of_estimate + math.log((1.0 - t) / t * prior_odds)
    if kappa <= 0.0:
        most = posterior_probability(log_factor_of_estimate, prior)
        raise InputError(
            f"t must be smaller than {most:.4g}, the posterior probability of calibration of the "
            f"maximum likelihood map; got t={t}. Choose a smaller t or a larger prior."
        )
    return kappa


def _fit_that_exists(predictions: Predictions) -> MCLLOFit:
    """Return the fit; refuse rows without one, for then no finite map is the boldest."""
    if not free_parameters(predictions.log_odds)[predictions.n_classes - 1 :].any():
        raise InputError(
            "probs must have at least two different rows; all are the same, and so is every "
            "recalibration of them."
        )
    [fit] = fit_each_baseline(predictions, [predictions.baseline])
    if fit.converged:
        return fit
    absent = predictions.absent
    cause = "the likelihood is all but flat"
    if fit.separated:
        cause = (
            f"no row has class {absent[0]!r}"
            if absent
            else "the log odds separate the labels"
        )
    raise InputError(
        f"a maximum likelihood map must exist to be made bolder; {cause}, so that no finite map is "
        "the boldest. Use more rows, or MCLLOCalibrator(penalty=1.0) without boldness."
    )


class _SquaredBoldness:
    """``theta -> (V, gradient)``: the square of the boldness of the recalibrated rows."""

    def __init__(self, log_odds: Floats, weight: Floats | None, total: float) -> None:
        self.log_odds = log_odds
        self.total = total
        self.weight = np.ones(log_odds.shape[1]) if weight is None else weight

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        k = len(self.log_odds)
        g, _ = probabilities_and_log_sums(theta, self.log_odds)
        centred = g - (g @ self.weight / self.total)[:, None]
        weight = self.weight / (self.total - 1.0)
        squares = np.einsum("ji,ji->i", centred, centred)
        value = 0.5 * float(squares @ weight)
        mean_of_row = np.einsum("ji,ji->i", centred, g)
        by_eta = g[:k] * (centred[:k] - mean_of_row) * weight
        by_tau = by_eta.sum(axis=1)
        by_gamma = np.einsum("ji,ji->j", by_eta, self.log_odds)
        return value, np.concatenate([by_tau, by_gamma])

    def boldness(self, theta: Floats) -> float:
        """Return ``sqrt(V)``."""
        square, _ = self(theta)
        return math.sqrt(square)


class _BoldnessPoint(NamedTuple):
    """V over its scale and ``1 - [l_hat - l] / kappa`` at a point u, with their gradients."""

    spread: float
    spread_gradient: Floats
    slack: float
    slack_gradient: Floats


class _BoldnessSearch:
    """Maximise V where ``slack >= 0``, in the coordinates u of the free parameters."""

    def __init__(
        self, predictions: Predictions, fit: MCLLOFit, total: float, kappa: float
    ) -> None:
        self.kappa = kappa
        self.minimum = -fit.log_likelihood
        self.origin = fit.theta
        self.likelihood = build_negative_log_likelihood(predictions)
        self.spread = _SquaredBoldness(
            predictions.log_odds, predictions.sample_weight, total
        )
        # u counts standard errors along each axis: there the constraint is about the unit ball, and
        # SLSQP needs few steps whatever the units of theta.
        free = ~np.isnan(np.diagonal(fit.cov_theta))
        factor = np.linalg.cholesky(fit.cov_theta[np.ix_(free, free)])
        self.axes = np.zeros((len(free), int(free.sum())))
        self.axes[free] = math.sqrt(2.0 * kappa) * factor
        squares_at_starts = [
            self.spread(self.theta(u))[0] for u in self.starting_points()
        ]
        self.scale = max(squares_at_starts)
        self._last: tuple[bytes, _BoldnessPoint] | None = None

    def theta(self, u: Floats) -> Floats:
        """Return the parameters at u."""
        return self.origin + self.axes @ u

    def starting_points(self) -> list[Floats]:
        """Return the estimate, sharper versions of it, and the identity."""
        k = len(self.origin) // 2
        sharper = [
            np.repeat([1.0, factor], k) * self.origin
            for factor in SLOPE_FACTORS_OF_STARTS
        ]
        points = [self.origin, *sharper, identity_theta(k)]
        starts = []
        for point in points:
            u, *_ = np.linalg.lstsq(self.axes, point - self.origin, rcond=None)
            starts.append(np.asarray(u, dtype=np.float64))
        return starts

    def evaluate(self, u: Floats) -> _BoldnessPoint:
        """Evaluate at u; the last answer is kept, for a solver asks four times."""
        key = u.tobytes()
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        theta = self.theta(u)
        spread, spread_gradient = self.spread(theta)
        terms = self.likelihood(theta)
        point = _BoldnessPoint(
            spread=spread / self.scale,
            spread_gradient=self.axes.T @ spread_gradient / self.scale,
            slack=1.0 - (terms.value - self.minimum) / self.kappa,
            slack_gradient=-(self.axes.T @ terms.gradient) / self.kappa,
        )
        self._last = (key, point)
        return point

    def find_boldest(self) -> Floats:
        """Return the boldest of what the starts lead to, and of the starts themselves."""
        # V is not concave, so that a single start may end at a lower place; a start itself may be
        # the boldest where the solver fails.
        starts = self.starting_points()
        solutions = [self._draw_into_constraint(self._solve(start)) for start in starts]
        allowed = [u for u in starts[1:] if self.evaluate(u).slack >= -CONSTRAINT_TOL]
        candidates = [starts[0], *allowed, *solutions]
        return max(candidates, key=lambda u: self.evaluate(u).spread)

    def _solve(self, start: Floats) -> Floats:
        """Return where SLSQP leads to, which may lie a little outside of the constraint."""
        from scipy.optimize import minimize

        constraint: Any = {
            "type": "ineq",
            "fun": lambda u: self.evaluate(u).slack,
            "jac": lambda u: self.evaluate(u).slack_gradient,
        }
        objective: Any = {
            "fun": lambda u: -self.evaluate(u).spread,
            "jac": lambda u: -self.evaluate(u).spread_gradient,
        }
        options: Any = {"ftol": 1e-11, "maxiter": 500}
        found = minimize(
            **objective,
            x0=start,
            method="SLSQP",
            constraints=constraint,
            options=options,
        )
        solution = np.asarray(found.x)
        if not np.isfinite(solution).all():
            return np.zeros_like(start)
        return solution

    def _draw_into_constraint(self, u: Floats) -> Floats:
        """Return u, drawn towards the estimate (u = 0) until it meets the constraint."""
        if self.evaluate(u).slack >= -CONSTRAINT_TOL:
            return u
        inside = 0.0
        outside = 1.0
        while outside - inside > CONSTRAINT_TOL:
            middle = 0.5 * (inside + outside)
            if self.evaluate(middle * u).slack >= 0.0:
                inside = middle
            else:
                outside = middle
        return inside * u

    def free_gradient_share(self, u: Floats) -> float:
        """Return the part of V's gradient that does not push against the constraint."""
        point = self.evaluate(u)
        uphill = point.spread_gradient
        size = float(np.linalg.norm(uphill))
        if point.slack < 1e-6:  # the constraint holds the search back
            outwards = -point.slack_gradient / np.linalg.norm(point.slack_gradient)
            uphill = uphill - max(0.0, float(uphill @ outwards)) * outwards
        return float(np.linalg.norm(uphill)) / max(size, point.spread)
