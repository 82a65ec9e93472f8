"""`run_test`: is delta = gamma = 1? And `common_map_test`: do two samples follow one map?

Tests of the identity by likelihood ratio, score and Wald; chi-square and exact:

==================  =======================================  =======================================
likelihood ratio    ``2 [l(theta_hat) - l(theta0)]``         Eq. (6)
score               ``U' H(theta0)^-1 U``, U the score at    no fit needed
                    theta0
Wald                ``(theta_hat - theta0)' H(theta_hat)
                    (...)``
chi-square p-value  ``P(chi2_df > statistic)``, df = 2 (c -  large samples
                    1)
exact p-value       labels drawn from the predictions        any n (`_inference/monte_carlo`)
bound               ``p <= 1 / E`` by the split likelihood   any n (`split_bound`)
                    ratio
quicker bound       the same by the mean ratio of            any n
                    temperatures                             (`temperature_mixture_pvalue`)
==================  =======================================  =======================================

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

`common_map_test`: do two samples follow one map? Likelihood ratio, labels of both drawn anew.

=========  =========================================================================================
statistic  ``2 [sup l_t + sup l_h - sup (l_t + l_h)]`` over MCLLO maps: training rows t, holdout h,
           each with a map of its own, against one map for both; finite also where a sample is
           separated
draws      labels of both samples from one map, fitted to both with a ridge of 1, so that it always
           exists; all three suprema anew for each draw
p-value    as any other by drawing (`_inference/monte_carlo`), but that the map is an estimate:
           approximate
=========  =========================================================================================

Measured where training rows hold few errors for each parameter, nominal 5 %: see
`docs/how-to/compare-methods.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from .._fit.choice_fit import ChoiceFit, choice_basis
from .._fit.fit import MCLLOFit, fit_predictions
from .._fit.objective import (
    FreeParameterObjective,
    build_negative_log_likelihood,
    free_parameters,
)
from .._model.batched import RELATIVE_TIE_TOL, LikelihoodRatio
from .._model.kernel import Derivatives, LogPartition
from .._model.likelihood import (
    NegativeLogLikelihood,
    RestrictedObjective,
    identity_theta,
    recalibrate_from_log_odds,
    sufficient_statistic,
)
from .._model.many_classes import (
    MIN_CLASSES_FOR_PCG,
    LogPartitionOperator,
    PenalizedLikelihoodOperator,
    conjugate_gradients,
    has_far_fewer_rows,
    is_full_hessian_affordable,
)
from .._model.newton import minimize
from .._utils.formatting import MIN_PRINTED_PVALUE, format_number
from .._utils.parallel import row_blocks
from .._utils.results import Floats
from .._utils.statements import ESTIMATION_WARNINGS, suppress_warnings
from .._validation.predictions import Predictions
from ..exceptions import InputError
from .budget import (
    LARGE_TABLE_ENTRIES,
    N_EXCEEDANCES,
    N_EXCEEDANCES_LARGE_TABLE,
    N_RESAMPLES,
    TEST_WORK,
)
from .hypothesis_test import (
    SCORE_INSTEAD_NOTE,
    TOO_MANY_REFITS_NOTE,
    Reason,
    TestResult,
)
from .monte_carlo import (
    Seed,
    SufficientStatisticDraws,
    check_n_resamples,
    expand_weights,
    monte_carlo_pvalue,
    seed_entropy,
)

Statistic = Literal["lr", "score", "wald"]
Method = Literal["auto", "chi2", "exact", "sequential"]
METHODS = get_args(Method)
MIN_EXPECTED_ERRORS = 20.0
"""Expected errors per parameter from which chi-square is trusted; the module's text has the sizes
that were measured."""
MIN_CLASS_VARIANCE = 20.0
"""``sum_i x_ij (1 - x_ij)`` of the rarest class from which it is trusted; the same studies."""
SPLIT_RATIO_EXPONENTS = (0.25, 0.5, 0.75, 1.33, 2.0)
"""Overconfident, and underconfident: alternatives that see no labels. Round numbers."""
MIN_BOUND_FACTOR = 20.0
"""How many times smaller than any simulated p-value the bound must be to be reported: that adds a
twentieth to the size of the test at most."""
STATISTIC_NAMES = {
    "lr": "likelihood ratio",
    "score": "score",
    "wald": "Wald",
    "max_score": "largest score (over all baselines)",
    "robust_score": "robust score",
}


@dataclass(frozen=True, eq=False)
class LikelihoodHalf:
    """One half of the rows: its negative log likelihood, and the smaller model's best on it."""

    likelihood: Callable[[Floats], Derivatives]
    origin: Floats
    """The smaller model's estimate, from which the larger model is learned."""
    supremum: float
    """Largest log likelihood of the smaller model."""


def split_likelihood_ratio_pvalue(
    halves: Sequence[LikelihoodHalf], basis: Floats | None = None
) -> float:
    """Return ``min(1, 1 / E)``, E the mean of both directions; `basis` spans the larger model.

    Without one all parameters are free.
    """
    first, second = halves
    log_e_first = _split_log_ratio(first, second, basis)
    log_e_second = _split_log_ratio(second, first, basis)
    log_e = float(np.logaddexp(log_e_first, log_e_second)) - np.log(2.0)
    return float(min(1.0, max(MIN_PRINTED_PVALUE, np.exp(-log_e))))


def _split_log_ratio(
    learn: LikelihoodHalf, judge: LikelihoodHalf, basis: Floats | None
) -> float:
    """Return the log of E, the larger model fitted to one half and judged on the other."""
    size = len(learn.origin) if basis is None else basis.shape[1]
    # A ridge of 1: half of the rows may be separated where all are not.
    penalised = RestrictedObjective(learn.likelihood, learn.origin, basis, 1.0)
    estimate = minimize(penalised, np.zeros(size)).x
    terms = judge.likelihood(penalised.theta(estimate))
    return -terms.value - judge.supremum


def temperature_mixture_pvalue(predictions: Predictions) -> float:
    """Return ``min(1, 1 / E)``, E the mean of ``L(gamma = u) / L(1)``.

    Over the u of `SPLIT_RATIO_EXPONENTS`.
    """
    partition = LogPartition(
        predictions.log_odds, predictions.sample_weight
    ).with_hessian_diagonal
    likelihood = build_negative_log_likelihood(predictions).from_log_partition
    null = identity_theta(len(predictions.log_odds))

    def negative_log_likelihood_at(u: float) -> float:
        return likelihood(u * null, partition(u * null)).value

    at_null = negative_log_likelihood_at(1.0)
    values = np.array([negative_log_likelihood_at(u) for u in SPLIT_RATIO_EXPONENTS])
    log_sum = float(np.logaddexp.reduce(at_null - values))
    return float(
        min(1.0, max(MIN_PRINTED_PVALUE, len(SPLIT_RATIO_EXPONENTS) * np.exp(-log_sum)))
    )


def split_pvalue(predictions: Predictions) -> float:
    """Return the bound of the identity against MCLLO; rows alternate between the halves.

    Few rows, or far fewer than there are parameters, learn nothing that the others could confirm.
    """
    null = identity_theta(len(predictions.log_odds))
    n = predictions.n_samples
    if n < 4 or has_far_fewer_rows(n, len(null)):
        return 1.0
    halves = []
    for first in (0, 1):
        rows = np.arange(first, predictions.n_samples, 2)
        likelihood = build_negative_log_likelihood(predictions.take(rows))
        halves.append(LikelihoodHalf(likelihood, null, -likelihood(null).value))
    basis = None if predictions.offered is None else choice_basis(predictions)
    return split_likelihood_ratio_pvalue(halves, basis)


@dataclass(frozen=True, eq=False, kw_only=True)
class CalibrationTest(TestResult):
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

    See Also
    --------
    calibration_test : Makes it.
    RobustTest : For rows that depend on each other.
    OmnibusTest : Sees departures of any shape.
    EffectSize : How large a departure is.

    Examples
    --------
    >>> import mcllo
    >>> probs = [[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]] * 10
    >>> y = [0, 1, 1, 0, 0, 0, 1, 1] * 5
    >>> test = mcllo.calibration_test(probs, y, seed=0, n_resamples=99)
    >>> test.df, test.kind, test.rejects(alpha=0.05)
    (2, 'lr', False)
    """

    df: int
    kind: str
    sequential: bool = False
    method_texts: ClassVar[Mapping[str, str]] = {
        **TestResult.method_texts,
        "bound": "guaranteed bound, split likelihood ratio",
        "flip": "{n_resamples} sign flips of the groups' scores",
        "draw": "{n_resamples} simulated data sets",
        "f": "F",
    }

    def __str__(self) -> str:
        name = STATISTIC_NAMES[self.kind]
        value = format_number(self.statistic, 4)
        return f"{name} statistic {value} on {self.df} df, {self.p_text} ({self.how})"


def run_test(
    predictions: Predictions,
    fit: MCLLOFit | ChoiceFit,
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
    check_statistic_and_method(statistic, method)
    check_n_resamples(n_resamples)
    chosen = method
    why = Reason("asked")
    if method == "auto":
        chosen, why = choose_method(predictions, fit.df, statistic, n_resamples)
        if prefers_score_test(predictions, statistic, why):
            statistic = "score"
            chosen, why = choose_method(predictions, fit.df, statistic, n_resamples)
            why = why.with_notes(TOO_MANY_REFITS_NOTE)
    value = compute_statistic(fit, statistic, predictions)
    # A bound is reported where it is far below what draws could show; it costs four fits.
    sequential = False
    if chosen == "chi2":
        found = TestResult(value, fit.df, chi2_sf(value, fit.df), "chi2")
    else:
        size = 2 * len(predictions.log_odds)
        has_score = statistic == "score" and _has_score_test(predictions)
        if not (has_score or is_full_hessian_affordable(size)):
            message = (
                "{found} needs the information of all parameters at once, and {size:,} are too "
                "many; use {method:'chi2'}."
            )
            raise InputError(
                message, argument="method", value=chosen, values={"size": size}
            )
        bound = 1.0
        if method == "auto":
            guaranteed = temperature_mixture_pvalue if quick else split_pvalue
            bound = guaranteed(predictions)
        found = TestResult(value, fit.df, bound, "bound")
        if bound * MIN_BOUND_FACTOR * (n_resamples + 1) >= 1.0:
            sequential = chosen == "sequential"
            found = simulated_pvalue(
                predictions,
                statistic,
                value,
                chosen,
                n_resamples=n_resamples,
                seed=seed_entropy(seed),
                exceedances=exceedances,
            )
            found = replace(found, df=fit.df)
    test = CalibrationTest.from_result(found, kind=statistic, sequential=sequential)
    return test.because(why)


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
    least = partial(_least_class_variance, predictions)
    why = chi2_trust_reason(
        statistic, errors, n_clipped=predictions.n_clipped, least_variance=least
    )
    if not why.wants_draws:
        return "chi2", why
    size = 2 * (predictions.n_classes - 1)
    whole = is_full_hessian_affordable(size)
    if statistic == "score":
        whole = _has_score_test(predictions)
    if whole and n_resamples * work_of_draw(predictions, df, statistic) <= TEST_WORK:
        return "sequential", why
    why = why.but("size")
    if prefers_score_test(predictions, statistic, why):
        why = why.with_notes(SCORE_INSTEAD_NOTE)
    return "chi2", why


def _has_score_test(predictions: Predictions) -> bool:
    """Whether a score statistic costs little: one matrix of all parameters, or few rows."""
    size = 2 * (predictions.n_classes - 1)
    few_rows = has_far_fewer_rows(predictions.n_samples, size)
    return few_rows or is_full_hessian_affordable(size)


def prefers_score_test(predictions: Predictions, statistic: str, why: Reason) -> bool:
    """Whether the likelihood ratio has too many parameters for chi-square and for refits alike.

    The mean of a score statistic is that of chi-square at any n, so that its p-value can be used.
    """
    refits_are_too_many = "size" in why.limits
    is_chi2_far_off = why.errors < MIN_EXPECTED_ERRORS
    has_score = _has_score_test(predictions)
    return statistic == "lr" and refits_are_too_many and is_chi2_far_off and has_score


def chi2_trust_reason(
    statistic: str,
    errors: float,
    *,
    n_clipped: int,
    least_variance: Callable[[], float],
) -> Reason:
    """Return why chi-square is used, or what speaks against it where draws would be better.

    Takes facts of the rows, `errors` for each parameter; what costs a pass is asked when needed.
    """
    if statistic == "wald":
        return Reason("wald", errors)
    if n_clipped:
        return Reason("zeros", errors)
    if errors < MIN_EXPECTED_ERRORS:
        return Reason("few_errors", errors)
    if least_variance() < MIN_CLASS_VARIANCE:
        return Reason("rare_class", errors)
    return Reason("enough_errors", errors)


def work_of_draw(predictions: Predictions, df: int, statistic: str) -> float:
    """Return the work of one draw, in cells of a table of few classes (20 to 50 ns each).

    A refit needs Hessians, ``4 n K^2`` operations each, and factors them; a score needs neither.
    """
    cells = predictions.n_expanded_probs
    if statistic == "score":
        return cells
    return cells * (1.0 + predictions.n_classes / 50.0) + df**3 / 100.0


def _least_class_variance(predictions: Predictions) -> float:
    """Return ``sum_i x_ij (1 - x_ij)`` of the class where it is least."""
    probs = predictions.probs
    weight = predictions.sample_weight
    variance = np.zeros(predictions.n_classes)
    for rows in row_blocks(*probs.shape):
        spread = probs[rows] * (1.0 - probs[rows])
        variance += spread.sum(axis=0) if weight is None else weight[rows] @ spread
    return float(variance.min())


def check_statistic_and_method(statistic: str, method: str) -> None:
    """Refuse an unknown statistic or method, and a pair that does not go together."""
    if statistic not in get_args(Statistic):
        message = "{argument} must be 'lr', 'score' or 'wald'; got {value}."
        raise InputError(message, argument="statistic", value=statistic)
    if method not in METHODS:
        message = (
            "{argument} must be 'auto', 'chi2', 'exact' or 'sequential'; got {value}."
        )
        raise InputError(message, argument="method", value=method)
    if statistic == "wald" and method in ("exact", "sequential"):
        message = (
            "a Wald statistic has no exact p-value (it fails where estimates do not exist); use "
            "{lr_or_score}."
        )
        raise InputError(message, argument="statistic", value=statistic)


def compute_statistic(
    fit: MCLLOFit | ChoiceFit, statistic: str, predictions: Predictions | None = None
) -> float:
    """Return the statistic; `predictions` where the fit may lack the Hessian at the identity."""
    if statistic == "lr":
        return fit.statistic
    size = 2 * len(fit.tau)
    few_rows = has_far_fewer_rows(fit.n_samples, size)
    has_score = few_rows or is_full_hessian_affordable(size)
    has_score = has_score and statistic == "score"
    if fit.information == "blocks" and not has_score:
        message = (
            "{found} needs the information of all {size:,} parameters at once, and they are too "
            "many; use {statistic:'lr'}."
        )
        values = {"size": size}
        raise InputError(message, argument="statistic", value=statistic, values=values)
    if statistic == "score":
        assert fit.null_terms is not None, "a fit read from a file has no score"
        score = fit.null_terms.gradient
        hessian = fit.null_terms.hessian
        if hessian.size == 0:  # many classes: the fit did not need it
            assert predictions is not None
            likelihood = FreeParameterObjective.from_predictions(predictions)
            if predictions.n_classes >= MIN_CLASSES_FOR_PCG:
                return _score_by_conjugate_gradients(likelihood, predictions, score)
            hessian = likelihood(likelihood.identity[likelihood.free]).hessian
        return float(score @ np.linalg.solve(hessian, score))
    free = ~np.isnan(np.diagonal(fit.cov_theta))
    if not free.any():
        return float("nan")
    away = np.concatenate([fit.tau, fit.gamma - 1.0])[free]
    return float(away @ np.linalg.solve(fit.cov_theta[np.ix_(free, free)], away))


def _score_by_conjugate_gradients(
    likelihood: FreeParameterObjective[NegativeLogLikelihood],
    predictions: Predictions,
    free_score: Floats,
) -> float:
    """Return ``u' H^-1 u`` by conjugate gradients: a few products with H in the place of H."""
    partition = LogPartitionOperator(predictions.log_odds, predictions.sample_weight)
    operator = PenalizedLikelihoodOperator(
        partition, likelihood.full_objective.statistic, free=likelihood.free
    )
    operator.value_and_gradient(likelihood.identity)
    score = np.zeros(len(likelihood.free))
    score[likelihood.free] = free_score
    # A residual of 1e-7 leaves about 1e-14 of the statistic, a quadratic form.
    solution, _ = conjugate_gradients(
        operator.hessian_times, operator.precondition, score, 1e-7
    )
    return float(score @ solution)


def simulated_pvalue(
    predictions: Predictions,
    statistic: str,
    value: float,
    method: str,
    *,
    n_resamples: int,
    seed: int,
    exceedances: int | None = None,
) -> TestResult:
    """Return how often labels drawn from the predictions give at least `value`."""
    draws = SufficientStatisticDraws(predictions, seed)
    if predictions.offered is None:
        free = free_parameters(predictions.log_odds)
        ratio = LikelihoodRatio(predictions.log_odds, predictions.sample_weight, free)
    else:
        ratio = LikelihoodRatio(
            predictions.log_odds,
            basis=choice_basis(predictions),
            offered=predictions.model_mask,
        )

    def exceeds(start: int, size: int) -> NDArray[np.bool_]:
        drawn = draws(start, size)
        if statistic == "lr":
            return ratio.reaches(drawn, value)
        return ratio.score_statistics(drawn) >= value * (1.0 - RELATIVE_TIE_TOL) - 1e-12

    stop_at = None
    if method == "sequential":
        is_large = predictions.n_expanded_probs > LARGE_TABLE_ENTRIES
        usual = N_EXCEEDANCES_LARGE_TABLE if is_large else N_EXCEEDANCES
        stop_at = usual if exceedances is None else exceedances
    found = monte_carlo_pvalue(
        exceeds, n_resamples=n_resamples, batch=draws.batch, seed=seed, stop_at=stop_at
    )
    return replace(found, statistic=value)


class CommonMapDraws:
    """Both samples under the one map that their labels are drawn from."""

    def __init__(self, train: Predictions, holdout: Predictions, seed: int) -> None:
        train = expand_weights(train)
        holdout = expand_weights(holdout)
        both = join_samples(train, holdout)
        with suppress_warnings(*ESTIMATION_WARNINGS):
            fit = fit_predictions(
                both, penalty=1.0
            )  # a ridge, so that the map always exists
        both = both.with_probs(
            recalibrate_from_log_odds(fit.theta, both.log_odds, both.baseline_index)
        )
        self.train = both.take(np.arange(train.n_samples))
        self.holdout = both.take(np.arange(train.n_samples, both.n_samples))
        self.train_ratio = _likelihood_ratio(self.train)
        self.holdout_ratio = _likelihood_ratio(self.holdout)
        self.common_ratio = _likelihood_ratio(both)
        holdout_seed = int(np.random.default_rng([seed, 3]).integers(2**63))
        self.train_draws = SufficientStatisticDraws(self.train, seed)
        self.holdout_draws = SufficientStatisticDraws(self.holdout, holdout_seed)

    @property
    def batch(self) -> int:
        """Draws that fit comfortably in memory at once."""
        return min(self.train_draws.batch, self.holdout_draws.batch)

    def observed(self) -> float:
        """Return the statistic of the labels at hand."""
        train = sufficient_statistic(self.train.log_odds, self.train.model_codes)
        holdout = sufficient_statistic(self.holdout.log_odds, self.holdout.model_codes)
        return float(self._statistics(train[None], holdout[None])[0])

    def draw_statistics(self, start: int, size: int) -> Floats:
        """Return the statistics of draws ``start .. start + size``."""
        return self._statistics(
            self.train_draws(start, size), self.holdout_draws(start, size)
        )

    def _statistics(self, train: Floats, holdout: Floats) -> Floats:
        """Return the likelihood ratios of the samples' sufficient statistics."""
        separate = self.train_ratio.statistics(train) + self.holdout_ratio.statistics(
            holdout
        )
        return separate - self.common_ratio.statistics(train + holdout)


def _likelihood_ratio(rows: Predictions) -> LikelihoodRatio:
    """Return the likelihood ratio of MCLLO to the identity as a function of labels."""
    return LikelihoodRatio(rows.log_odds, None, free_parameters(rows.log_odds))


def common_map_test(
    train: Predictions,
    holdout: Predictions,
    *,
    n_resamples: int,
    seed: int,
    exceedances: int | None = None,
) -> TestResult:
    """Test whether one MCLLO map holds in both samples; weights must be whole numbers."""
    samples = CommonMapDraws(train, holdout, seed)
    value = samples.observed()
    threshold = value - RELATIVE_TIE_TOL * max(1.0, value)

    def exceeds(start: int, size: int) -> NDArray[np.bool_]:
        return np.asarray(samples.draw_statistics(start, size) >= threshold)

    found = monte_carlo_pvalue(
        exceeds,
        n_resamples=n_resamples,
        batch=samples.batch,
        seed=seed,
        stop_at=exceedances,
    )
    return replace(found, statistic=value, method="bootstrap")


def join_samples(first: Predictions, second: Predictions) -> Predictions:
    """Return the rows of both, of the same classes and baseline, each counting once."""
    logits = None
    if first.logits is not None and second.logits is not None:
        logits = np.vstack([first.logits, second.logits])
    return replace(
        first,
        probs=np.vstack([first.probs, second.probs]),
        codes=np.concatenate([first.codes, second.codes]),
        logits=logits,
        sample_weight=None,
        groups=None,
        raised=None,
    )
