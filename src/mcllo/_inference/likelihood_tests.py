"""`run_test`: is delta = gamma = 1? Likelihood ratio, score and Wald; chi-square and exact.

===================  ==============================================  =========================
likelihood ratio     ``2 [l(theta_hat) - l(theta0)]``                Eq. (6)
score                ``U' H(theta0)^-1 U``, U the score at theta0    no fit needed
Wald                 ``(theta_hat - theta0)' H(theta_hat) (...)``
chi-square p-value   ``P(chi2_df > statistic)``, df = 2 (c - 1)      large samples
exact p-value        labels drawn from the predictions               any n (`_inference/draws`)
bound                ``p <= 1 / E`` by the split likelihood ratio    any n (`split_bound`)
quicker bound        the same by the mean ratio of temperatures      any n (`temperature_bound`)
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

The split likelihood ratio needs no simulation and no large sample. Fit the larger model on one half
of the rows, with a ridge, and take its likelihood on the other half over the largest that the
smaller one reaches there, ``E = L_b(theta_a) / sup_small L_b``. When the labels follow the smaller
model, E is at most ``L_b(theta_a) / L_b(truth)``, which has mean 1 given half a; so
``P(E >= 1 / p) <= p`` by Markov's inequality, for any way of fitting, and the mean of both
directions has the same property (Wasserman, Ramdas and Balakrishnan 2020). The bound is weak near
0.05, but where predictions are far off it is smaller than anything simulation could show. A ratio
of alternatives chosen beforehand has mean 1 with no rows to learn from; the mean of some
temperatures needs a pass for each, and sees what is most often wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from .._fit.fit import MCLLOFit
from .._fit.objective import FreeLikelihood, free_parameters, likelihood_of
from .._ground.results import Floats
from .._ground.text import PWords, format_number, p_words
from .._input.predictions import Predictions
from .._math.kernel import LogPartition, Terms
from .._math.likelihood import Restricted, identity_theta
from .._math.many_classes import has_whole_hessian
from .._math.many_labels import TIE, LikelihoodRatio
from .._math.newton import minimize
from ..exceptions import Either, InputError, Option, Phrase
from .budget import EXCEEDANCES, EXCEEDANCES_LARGE, LARGE_TABLE, N_RESAMPLES, TEST_WORK
from .draws import Seed, StatisticDraws, check_resamples, entropy_of, monte_carlo_p
from .pvalue import Ground, Limit, Note, PValue, Reason, Tested

RIDGE = 1.0
SMALLEST = 1e-300

Statistic = Literal["lr", "score", "wald"]
Method = Literal["auto", "chi2", "exact", "sequential"]
METHODS = get_args(Method)
ENOUGH_ERRORS = 20.0
ENOUGH_VARIANCE = 20.0
EXPONENTS = (0.25, 0.5, 0.75, 1.33, 2.0)
"""Too bold, and too cautious: alternatives that see no labels."""
BEYOND = 20.0
"""How many times smaller than any simulated p-value the bound must be to be reported."""
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
    "flip": "{:,} sign flips of the groups' scores",
    "draw": "{:,} simulated data sets",
    "f": "F",
}


@dataclass(frozen=True, eq=False)
class Half:
    """One half of the rows: its negative log likelihood, and the smaller model's best on it."""

    likelihood: Callable[[Floats], Terms]
    origin: Floats
    """The smaller model's estimate, from which the larger model is learned."""
    supremum: float
    """Largest log likelihood of the smaller model."""


def split_bound(halves: Sequence[Half], basis: Floats | None = None) -> float:
    """Return ``min(1, 1 / E)``, E the mean of both directions; `basis` spans the larger model.

    Without one all parameters are free.
    """
    gains = []
    for learn, judge in (halves, halves[::-1]):
        penalised = Restricted(learn.likelihood, learn.origin, basis, RIDGE)
        size = len(learn.origin) if basis is None else basis.shape[1]
        theta = penalised.theta(minimize(penalised, np.zeros(size)).x)
        gains.append(-judge.likelihood(theta).value - judge.supremum)
    log_e = float(np.logaddexp(gains[0], gains[1])) - np.log(2.0)
    return float(min(1.0, max(SMALLEST, np.exp(-log_e))))


def temperature_bound(predictions: Predictions) -> float:
    """Return ``min(1, 1 / E)``, E the mean of ``L(gamma = u) / L(1)`` over `EXPONENTS` u."""
    light = LogPartition(predictions.log_odds, predictions.sample_weight).light
    of, null = likelihood_of(predictions).of, identity_theta(len(predictions.log_odds))
    values = [of(u * null, light(u * null)).value for u in (1.0, *EXPONENTS)]
    log_e = float(np.logaddexp.reduce(values[0] - np.array(values[1:])))
    return float(min(1.0, max(SMALLEST, len(EXPONENTS) * np.exp(-log_e))))


def split_pvalue(predictions: Predictions) -> float:
    """Return the bound of the identity against MCLLO; rows alternate between the halves."""
    if predictions.n_samples < 4:
        return 1.0
    null, halves = identity_theta(len(predictions.log_odds)), []
    for k in (0, 1):
        likelihood = likelihood_of(predictions.take(np.arange(k, predictions.n_samples, 2)))
        halves.append(Half(likelihood, null, -likelihood(null).value))
    return split_bound(halves)


@dataclass(frozen=True, eq=False)
class CalibrationTest(Tested):
    """A test of H0: labels follow the predicted probabilities (delta = gamma = 1).

    Not rejecting H0 does not show that the probabilities are calibrated: the test looks for linear
    departures of the log odds and can miss others.

    Attributes
    ----------
    statistic, df, pvalue : float, int, float
        Value of the test statistic, degrees of freedom of its large-sample chi-square
        distribution, and the p-value by `method`.
    method : str
        How the p-value was computed: ``'chi2'``; ``'exact'``, by drawing labels from the
        predictions; ``'bound'``, a guaranteed upper bound, where it is far below what drawing can
        show; or the way of a `RobustTest`.
    kind : {'lr', 'score', 'wald', 'max_score', 'robust_score'}
        Which statistic: the last two where the baseline is chosen by the data, and where rows
        depend on each other or are survey-weighted.
    n_resamples, sequential, seed : int, bool, int or None
        Draws made (0 for chi-square), whether drawing stopped once enough of them were as extreme
        as the data, and what they were made from.
    reason, why : str, Reason or None
        Why `method` was used, in words and as facts.
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
    why: Reason | None = field(default=None, repr=False)
    left_out = ("why",)

    @classmethod
    def of(
        cls, statistic: float, df: int, kind: str, found: PValue, *, sequential: bool = False
    ) -> CalibrationTest:
        """Return the test whose p-value is `found`."""
        how = (found.n_resamples, sequential, found.seed, found.reason, found.why)
        return cls(statistic, df, found.pvalue, found.method, kind, *how)

    def __str__(self) -> str:
        how = WAYS.get(self.method, "exact, {:,} simulated data sets").format(self.n_resamples)
        return (
            f"{NAMES[self.kind]} statistic {format_number(self.statistic, 4)} on {self.df} df, "
            f"{self.p_text} ({how})"
        )

    @property
    def p_words(self) -> PWords:
        """The p-value as relation and number; a bound is ``<=``."""
        return p_words(self.pvalue, bound=self.method == "bound")

    @property
    def p_text(self) -> str:
        """The p-value in words: ``p = 0.03``, or ``p <= 1e-20`` for a bound."""
        return f"p {self.p_words}"


def run_test(
    predictions: Predictions,
    fit: MCLLOFit,
    *,
    statistic: Statistic = "lr",
    method: Method = "auto",
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
    exceedances: int | None = None,
    quick: bool = False,
) -> CalibrationTest:
    """Test calibration of predictions that were fitted already.

    A sequential run stops at `exceedances`; the default depends on the size of the table. `quick`,
    where a decision is all that is asked for, takes the bound that needs no fit.
    """
    check_choices(statistic, method)
    check_resamples(n_resamples)
    chosen, why = method, Reason(Ground.ASKED)
    if method == "auto":
        chosen, why = choose_method(predictions, fit.df, statistic, n_resamples)
        if Note.SCORE_INSTEAD in why.notes:
            statistic = "score"
            chosen, why = choose_method(predictions, fit.df, statistic, n_resamples)
            why = why.noting(Note.TOO_MANY_REFITS)
    value, sequential = statistic_value(fit, statistic, predictions), False
    if chosen == "chi2":
        found = PValue(chi2_sf(value, fit.df), "chi2")
    else:
        size = 2 * len(predictions.log_odds)
        if not has_whole_hessian(size):
            few = "{found} needs the information of all parameters at once, and {:,} are too many; "
            message = Phrase(few + "use {}.", size, Option("method", "chi2"))
            raise InputError(message, argument="method", value=chosen)
        bound = 1.0
        if method == "auto":
            bound = temperature_bound(predictions) if quick else split_pvalue(predictions)
        found = PValue(bound, "bound")
        if bound * BEYOND * (n_resamples + 1) >= 1.0:
            entropy, sequential = entropy_of(seed), chosen == "sequential"
            how: Any = {"n_resamples": n_resamples, "seed": entropy, "exceedances": exceedances}
            found = exact_pvalue(predictions, statistic, value, chosen, **how)
    found = replace(found, why=why)
    return CalibrationTest.of(value, fit.df, statistic, found, sequential=sequential)


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
) -> tuple[Method, Reason]:
    """Return the method 'auto' stands for, and why.

    Where the likelihood ratio has too many parameters for chi-square, and too many for refits, the
    reason notes that the score test is to be used instead.
    """
    errors = expected_errors(predictions) / max(df, 1)
    least = partial(_least_variance, predictions)
    why = trust_chi2(statistic, errors, n_clipped=predictions.n_clipped, least_variance=least)
    if not why.wants_draws:
        return "chi2", why
    whole = has_whole_hessian(2 * (predictions.n_classes - 1))
    if whole and n_resamples * work_of_draw(predictions, df, statistic) <= TEST_WORK:
        return "sequential", why
    why = why.but(Limit.SIZE)
    if statistic == "lr" and errors < ENOUGH_ERRORS and whole:
        why = why.noting(Note.SCORE_INSTEAD)
    return "chi2", why


def trust_chi2(
    statistic: str, errors: float, *, n_clipped: int, least_variance: Callable[[], float]
) -> Reason:
    """Return why chi-square is used, or what speaks against it where draws would be better.

    Takes facts of the rows, `errors` for each parameter; what costs a pass is asked when needed.
    """
    if statistic == "wald":
        return Reason(Ground.WALD, errors)
    if n_clipped:
        return Reason(Ground.ZEROS, errors)
    if errors < ENOUGH_ERRORS:
        return Reason(Ground.FEW_ERRORS, errors)
    if least_variance() < ENOUGH_VARIANCE:
        return Reason(Ground.RARE_CLASS, errors)
    return Reason(Ground.ENOUGH, errors)


def work_of_draw(predictions: Predictions, df: int, statistic: str) -> float:
    """Return the work of one draw, in cells of a table of few classes (20 to 50 ns each).

    A refit needs Hessians, ``4 n K^2`` operations each, and factors them; a score needs neither.
    """
    cells = predictions.counted_entries
    if statistic == "score":
        return cells
    return cells * (1.0 + predictions.n_classes / 50.0) + df**3 / 100.0


def _least_variance(predictions: Predictions) -> float:
    """Return ``sum_i x_ij (1 - x_ij)`` of the class where it is least."""
    spread, weight = predictions.probs * (1.0 - predictions.probs), predictions.sample_weight
    return float((spread.sum(axis=0) if weight is None else weight @ spread).min())


def check_choices(statistic: str, method: str) -> None:
    """Refuse an unknown statistic or method, and a pair that does not go together."""
    if statistic not in get_args(Statistic):
        rule = Phrase("{argument} must be 'lr', 'score' or 'wald'; got {value}.")
        raise InputError(rule, argument="statistic", value=statistic)
    if method not in METHODS:
        rule = Phrase("{argument} must be 'auto', 'chi2', 'exact' or 'sequential'; got {value}.")
        raise InputError(rule, argument="method", value=method)
    if statistic == "wald" and method in ("exact", "sequential"):
        others = Either("statistic='lr' or 'score'", shell="--statistic lr or --statistic score")
        why = "a Wald statistic has no exact p-value (it fails where estimates do not exist); "
        raise InputError(Phrase(why + "use {}.", others), argument="statistic", value=statistic)


def statistic_value(fit: MCLLOFit, statistic: str, predictions: Predictions | None = None) -> float:
    """Return the statistic; `predictions` where the fit may lack the Hessian at the identity."""
    if statistic == "lr":
        return fit.statistic
    if fit.information == "blocks":
        few = "{found} needs the information of all {:,} parameters at once, and they are too many"
        message = Phrase(few + "; use {}.", 2 * len(fit.tau), Option("statistic", "lr"))
        raise InputError(message, argument="statistic", value=statistic)
    if statistic == "score":
        assert fit.null_terms is not None, "a fit read from a file has no score"
        u, hessian = fit.null_terms.gradient, fit.null_terms.hessian
        if hessian.size == 0:
            assert predictions is not None
            likelihood = FreeLikelihood.of(predictions)
            hessian = likelihood(likelihood.identity[likelihood.free]).hessian
        return float(u @ np.linalg.solve(hessian, u))
    free = ~np.isnan(np.diagonal(fit.cov_theta))
    if not free.any():
        return float("nan")
    away = np.concatenate([fit.tau, fit.gamma - 1.0])[free]
    return float(away @ np.linalg.solve(fit.cov_theta[np.ix_(free, free)], away))


def exact_pvalue(
    predictions: Predictions,
    statistic: str,
    value: float,
    method: str,
    *,
    n_resamples: int,
    seed: int,
    exceedances: int | None = None,
) -> PValue:
    """Return how often labels drawn from the predictions give at least `value`."""
    draws = StatisticDraws(predictions, seed)
    free = free_parameters(predictions.log_odds)
    ratio = LikelihoodRatio(predictions.log_odds, predictions.sample_weight, free)

    def exceeds(start: int, size: int) -> NDArray[np.bool_]:
        drawn = draws(start, size)
        if statistic == "lr":
            return ratio.reaches(drawn, value)
        return ratio.scores(drawn) >= value * (1.0 - TIE) - 1e-12

    stop_at = None
    if method == "sequential":
        usual = EXCEEDANCES if predictions.counted_entries <= LARGE_TABLE else EXCEEDANCES_LARGE
        stop_at = usual if exceedances is None else exceedances
    return monte_carlo_p(
        exceeds, n_resamples=n_resamples, batch=draws.batch, seed=seed, stop_at=stop_at
    )
