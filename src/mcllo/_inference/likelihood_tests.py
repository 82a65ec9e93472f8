"""`run_test`: is delta = gamma = 1? Likelihood ratio, score and Wald; chi-square and exact.

===================  ==============================================  =========================
likelihood ratio     ``2 [l(theta_hat) - l(theta0)]``                Eq. (6)
score                ``U' H(theta0)^-1 U``, U the score at theta0    no fit needed
Wald                 ``(theta_hat - theta0)' H(theta_hat) (...)``
chi-square p-value   ``P(chi2_df > statistic)``, df = 2 (c - 1)      large samples
exact p-value        labels drawn from the predictions               any n (`_inference/draws`)
bound                ``p <= 1 / E`` by the split likelihood ratio    any n
(`_inference/likelihood_tests`)
===================  ==============================================  =========================

``method="auto"`` trusts chi-square when the rows hold enough information: at least 20 expected
errors ``sum_i (1 - max_j x_ij)`` per parameter, at least 20 units of ``sum_i x_ij (1 - x_ij)`` in
every class, and no zeros raised. Otherwise the p-value is exact, by sequential Monte Carlo; except
where the bound is below a twentieth of the smallest p-value that simulation could give. It is then
reported instead, which adds no more than that twentieth to the size of the test.
Measured on 35 designs (VGG and MNIST networks, Dirichlet rows; c = 2 to 20; 300 to 1500 draws
each), the chi-square test of nominal 5 % rejects 4.5 to 6.0 % above that bound, 4.2 to 7.5 %
between 2 and 20 errors per parameter, and up to 13 % below 2 (other samples of that network: 18 %).

Many classes are too much to simulate and can leave chi-square useless: with 1.3 errors for each of
1998 parameters (3000 x 1000) the likelihood ratio of 4 calibrated samples was 2162 on average and
rejected in all. A score statistic has the mean of chi-square at any n, and rejected 4.6 to 6.8 %
(c = 200 and 600; 0.7 to 10 errors per parameter; 600 to 2000 draws each).

A p-value that needs no simulation and no large sample: the split likelihood ratio.

Fit theta on one half of the rows and take its likelihood ratio to the identity on the other half,
``E = L_b(theta_a) / L_b(theta0)``. Given half a, E has mean 1 when labels follow the predictions,
so ``P(E >= 1 / p) <= p`` by Markov's inequality, at any n and for any way of fitting (Wasserman,
Ramdas and Balakrishnan 2020). The mean of both directions has mean 1 as well. The bound is weak
near 0.05, but where predictions are far off it is smaller than anything simulation could show.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._fit.fit import MCLLOFit, free_parameters
from .._ground.results import Floats
from .._ground.text import format_number, format_p
from .._input.predictions import Predictions
from .._math.likelihood import Likelihood, LogPartition, Terms, identity_theta, sufficient_statistic
from .._math.many_classes import has_whole_hessian
from .._math.many_labels import TIE, BatchedRatio
from .._math.newton import minimize
from ..exceptions import Either, InputError, Option, Phrase
from .draws import (
    EXCEEDANCES,
    EXCEEDANCES_LARGE,
    LARGE,
    MonteCarloP,
    Seed,
    StatisticDraws,
    check_resamples,
    entropy_of,
    monte_carlo_p,
)

RIDGE = 1.0
SMALLEST = 1e-300


def split_pvalue(predictions: Predictions) -> float:
    """Return ``min(1, 1 / E)``, E the mean of both directions; rows alternate between halves."""
    if predictions.n_samples < 4:
        return 1.0
    halves = [_likelihood(predictions, slice(k, None, 2)) for k in (0, 1)]
    gains = [_gain(halves[k], halves[1 - k]) for k in (0, 1)]
    log_e = float(np.logaddexp(gains[0], gains[1])) - np.log(2.0)
    return float(min(1.0, max(SMALLEST, np.exp(-log_e))))


def _likelihood(predictions: Predictions, rows: slice) -> Likelihood:
    odds, weight = predictions.log_odds[:, rows], predictions.sample_weight
    own = None if weight is None else weight[rows]
    statistic = sufficient_statistic(odds, predictions.model_codes[rows], own)
    return Likelihood(LogPartition(odds, own), statistic)


def _gain(learn: Likelihood, judge: Likelihood) -> float:
    """Return the log likelihood ratio on one half of what was fitted on the other."""
    null = identity_theta(learn.partition.n_compared)

    def penalised(theta: Floats) -> Terms:
        away = theta - null
        ridge = Terms(0.5 * RIDGE * float(away @ away), RIDGE * away, RIDGE * np.eye(len(null)))
        return learn(theta) + ridge

    theta = minimize(penalised, null).x
    return float(judge(null).value - judge(theta).value)


Statistic = Literal["lr", "score", "wald"]
Method = Literal["auto", "chi2", "exact", "sequential"]

ENOUGH_ERRORS = 20.0
ENOUGH_VARIANCE = 20.0
N_RESAMPLES = 1999
BEYOND = 20.0
"""How many times smaller than any simulated p-value the bound must be to be reported."""
MOST_WORK = 4e9
"""Work beyond which `auto` does not simulate: two to three minutes of likelihood ratios."""

SCORE_INSTEAD = "; the score test is used instead"
"""Where chi-square would reject too often and refits are too many, `auto` takes the score."""

NAMES = {
    "lr": "likelihood ratio",
    "score": "score",
    "wald": "Wald",
    "max_score": "largest score (over all baselines)",
    "robust_score": "robust score",
}
WAYS = {
    "chi2": "chi-square",
    "bound": "guaranteed bound, split likelihood ratio",
    "bonferroni": "chi-square with Bonferroni",
    "flip": "{:,} sign flips of the groups' scores",
    "f": "F",
}
STATISTICS = ("lr", "score", "wald")
METHODS = ("auto", "chi2", "exact", "sequential")


@dataclass(frozen=True, eq=False)
class CalibrationTest:
    """A test of H0: labels follow the predicted probabilities (delta = gamma = 1).

    Not rejecting H0 does not show that the probabilities are calibrated: the test looks for linear
    departures of the log odds and can miss others.

    Attributes
    ----------
    statistic : float
        Value of the test statistic.
    df : int
        Degrees of freedom of its large-sample chi-square distribution.
    pvalue : float
        By `method`.
    method : str
        How the p-value was computed: ``'chi2'``; ``'exact'``, by drawing labels from the
        predictions; ``'bound'``, a guaranteed upper bound, where it is far below what drawing can
        show; ``'bonferroni'`` over baselines; or the way of a `RobustTest`.
    kind : {'lr', 'score', 'wald', 'max_score', 'robust_score'}
        Which statistic: the last two where the baseline is chosen by the data, and where rows
        depend on each other or are survey-weighted.
    n_resamples : int
        Draws made; 0 for chi-square.
    sequential : bool
        Whether drawing stopped once enough draws were as extreme as the data.
    seed : int or None
        What the draws were made from.
    reason : str
        Why `method` was used.
    """

    statistic: float
    df: int
    pvalue: float
    method: str
    kind: str
    n_resamples: int
    sequential: bool
    seed: int | None
    reason: str

    def rejects(self, alpha: float = 0.05) -> bool:
        """Whether calibration is rejected at level `alpha`."""
        if not 0.0 < alpha < 1.0:
            raise InputError(f"alpha must lie in (0, 1); got alpha={alpha}.")
        return self.pvalue <= alpha

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values."""
        return {
            "statistic": self.statistic,
            "df": self.df,
            "pvalue": self.pvalue,
            "method": self.method,
            "kind": self.kind,
            "n_resamples": self.n_resamples,
            "sequential": self.sequential,
            "seed": self.seed,
            "reason": self.reason,
        }

    def __str__(self) -> str:
        how = WAYS.get(self.method, "exact, {:,} simulated data sets").format(self.n_resamples)
        return (
            f"{NAMES[self.kind]} statistic {format_number(self.statistic, 4)} on {self.df} df, "
            f"{self.p_text} ({how})"
        )

    @property
    def p_text(self) -> str:
        """The p-value in words: ``p = 0.03``, or ``p <= 1e-20`` for a bound."""
        text = format_p(self.pvalue)
        return f"p {text.replace('=', '<=') if self.method == 'bound' else text}"


def run_test(
    predictions: Predictions,
    fit: MCLLOFit,
    *,
    statistic: Statistic = "lr",
    method: Method = "auto",
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
    exceedances: int | None = None,
) -> CalibrationTest:
    """Test calibration of predictions that were fitted already.

    A sequential run stops at `exceedances`; the default depends on the size of the table.
    """
    check_choices(statistic, method)
    check_resamples(n_resamples)
    chosen, reason = method, "as asked"
    if method == "auto":
        chosen, reason = choose_method(predictions, fit.df, statistic, n_resamples)
        if reason.endswith(SCORE_INSTEAD):
            statistic = "score"
            chosen, reason = choose_method(predictions, fit.df, statistic, n_resamples)
            reason = f"{reason}; the likelihood ratio would need too many refits"
    value = statistic_value(fit, statistic, predictions)
    if chosen == "chi2":
        p = chi2_sf(value, fit.df)
        return CalibrationTest(value, fit.df, p, "chi2", statistic, 0, False, None, reason)
    _check_size(predictions, chosen)
    bound = split_pvalue(predictions) if method == "auto" else 1.0
    if bound * BEYOND * (n_resamples + 1) < 1.0:
        return CalibrationTest(value, fit.df, bound, "bound", statistic, 0, False, None, reason)
    result = exact_pvalue(
        predictions,
        statistic,
        value,
        chosen,
        n_resamples=n_resamples,
        seed=entropy_of(seed),
        exceedances=exceedances,
    )
    return CalibrationTest(
        statistic=value,
        df=fit.df,
        pvalue=result.pvalue,
        method="exact",
        kind=statistic,
        n_resamples=result.n_resamples,
        sequential=chosen == "sequential",
        seed=result.seed,
        reason=reason,
    )


def chi2_sf(statistic: float, df: int) -> float:
    """Return the upper tail of chi-square; 1 when nothing was estimated."""
    from scipy.special import chdtrc

    return float(chdtrc(df, statistic)) if df > 0 else 1.0


def expected_errors(predictions: Predictions) -> float:
    """Return how many top labels would be wrong if the predictions were right."""
    slack = 1.0 - predictions.probs.max(axis=1)
    weight = predictions.sample_weight
    return float(slack.sum() if weight is None else slack @ weight)


def choose_method(
    predictions: Predictions, df: int, statistic: str, n_resamples: int
) -> tuple[Method, str]:
    """Return the method 'auto' stands for, and why."""
    errors = expected_errors(predictions) / max(df, 1)
    reason, doubt = trust_chi2(
        statistic,
        errors,
        n_clipped=predictions.n_clipped,
        least_variance=lambda: _least_variance(predictions),
        whole_weights=lambda: predictions.has_whole_weights,
    )
    if reason:
        return "chi2", reason
    whole = has_whole_hessian(2 * (predictions.n_classes - 1))
    if not whole or n_resamples * _work(predictions, df, statistic) > MOST_WORK:
        return (
            "chi2",
            f"{doubt}, but the data are too large to simulate{_advice(statistic, errors, whole)}",
        )
    return "sequential", doubt


def trust_chi2(
    statistic: str,
    errors: float,
    *,
    n_clipped: int,
    least_variance: Callable[[], float],
    whole_weights: Callable[[], bool],
) -> tuple[str, str]:
    """Return why chi-square is used, or "" and what speaks against it where draws would be better.

    Takes facts of the rows, `errors` for each parameter; what costs a pass is asked when needed.

    Examples
    --------
    >>> facts = {"n_clipped": 0, "least_variance": lambda: 5.0, "whole_weights": lambda: True}
    >>> trust_chi2("lr", 30.0, **facts)
    ('', 'a class is too rare for chi-square')
    """
    found = f"{format_number(errors)} expected errors per parameter"
    if statistic == "wald":
        return "a Wald statistic has no exact form here", ""
    if n_clipped:
        doubt = "zeros were raised"
    elif errors < ENOUGH_ERRORS:
        doubt = f"only {found}"
    elif least_variance() < ENOUGH_VARIANCE:
        doubt = "a class is too rare for chi-square"
    else:
        return found, ""
    if not whole_weights():
        return f"{doubt}, but fractional weights cannot be simulated", ""
    return "", doubt


def _work(predictions: Predictions, df: int, statistic: str) -> float:
    """Return the work of one draw, in cells of a table of few classes (20 to 50 ns each).

    A refit needs Hessians, ``4 n K^2`` operations each, and factors them; a score needs neither.
    """
    cells = float(predictions.probs.size)
    if statistic == "score":
        return cells
    return cells * (1.0 + predictions.n_classes / 50.0) + df**3 / 100.0


def _advice(statistic: str, errors: float, whole: bool) -> str:
    """Say so where the likelihood ratio has too many parameters for chi-square.

    Under H0 at 3000 x 1000 it averaged 2162 on 1998 df; the score's chi-square rejects 4.6 to
    6.8 % of nominal 5 % in such designs.
    """
    return SCORE_INSTEAD if statistic == "lr" and errors < ENOUGH_ERRORS and whole else ""


def _least_variance(predictions: Predictions) -> float:
    spread = predictions.probs * (1.0 - predictions.probs)
    weight = predictions.sample_weight
    by_class = spread.sum(axis=0) if weight is None else weight @ spread
    return float(by_class.min())


def check_choices(statistic: str, method: str) -> None:
    if statistic not in STATISTICS:
        rule = Phrase("{argument} must be 'lr', 'score' or 'wald'; got {value}.")
        raise InputError(rule, argument="statistic", value=statistic)
    if method not in METHODS:
        rule = Phrase("{argument} must be 'auto', 'chi2', 'exact' or 'sequential'; got {value}.")
        raise InputError(rule, argument="method", value=method)
    if statistic == "wald" and method in ("exact", "sequential"):
        others = Either("statistic='lr' or 'score'", shell="--statistic lr or --statistic score")
        why = (
            "a Wald statistic has no exact p-value (it fails where estimates do not exist); use {}."
        )
        raise InputError(Phrase(why, others), argument="statistic", value=statistic)


def _check_size(predictions: Predictions, method: str) -> None:
    size = 2 * len(predictions.log_odds)
    if not has_whole_hessian(size):
        why = "{found} needs the information of all parameters at once, and {:,} are too many; "
        message = Phrase(why + "use {}.", size, Option("method", "chi2"))
        raise InputError(message, argument="method", value=method)


def statistic_value(fit: MCLLOFit, statistic: str, predictions: Predictions | None = None) -> float:
    """Return the statistic; `predictions` where the fit may lack the Hessian at the identity."""
    if statistic == "lr":
        return fit.statistic
    if fit.information == "blocks":
        message = Phrase(
            "{found} needs the information of all {:,} parameters at once, and they are too many; "
            "use {}.",
            *(2 * len(fit.tau), Option("statistic", "lr")),
        )
        raise InputError(message, argument="statistic", value=statistic)
    if statistic == "score":
        assert fit.null_terms is not None, "a fit read from a file has no score"
        u, hessian = fit.null_terms.gradient, fit.null_terms.hessian
        if hessian.size == 0:
            assert predictions is not None
            hessian = _null_hessian(predictions)
        return float(u @ np.linalg.solve(hessian, u))
    free = ~np.isnan(np.diagonal(fit.cov_theta))
    if not free.any():
        return float("nan")
    away = np.concatenate([fit.tau, fit.gamma - 1.0])[free]
    return float(away @ np.linalg.solve(fit.cov_theta[np.ix_(free, free)], away))


def _null_hessian(predictions: Predictions) -> Floats:
    """Return the information of the free parameters at the identity."""
    odds = predictions.log_odds
    terms = LogPartition(odds, predictions.sample_weight)(identity_theta(len(odds)))
    free = free_parameters(odds)
    return terms.hessian if free.all() else terms.hessian[np.ix_(free, free)]


def exact_pvalue(
    predictions: Predictions,
    statistic: str,
    value: float,
    method: str,
    *,
    n_resamples: int,
    seed: int,
    exceedances: int | None = None,
) -> MonteCarloP:
    """Return how often labels drawn from the predictions give at least `value`."""
    draws = StatisticDraws(predictions, seed)
    free = free_parameters(predictions.log_odds)
    ratio = BatchedRatio(predictions.log_odds, predictions.sample_weight, free)

    def exceeds(start: int, size: int) -> NDArray[np.bool_]:
        drawn = draws(start, size)
        if statistic == "lr":
            return ratio.reaches(drawn, value)
        reached: NDArray[np.bool_] = ratio.scores(drawn) >= value * (1.0 - TIE) - 1e-12
        return reached

    stop_at = None
    if method == "sequential":
        usual = EXCEEDANCES if predictions.probs.size <= LARGE else EXCEEDANCES_LARGE
        stop_at = usual if exceedances is None else exceedances
    return monte_carlo_p(
        exceeds, n_resamples=n_resamples, batch=draws.batch, seed=seed, stop_at=stop_at
    )
