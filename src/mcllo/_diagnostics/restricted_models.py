"""Restrictions of MCLLO and of the full map, ``theta = start + basis beta``, and their p-values.

In the full map every class's odds may depend on those of all others: the multinomial logit of the
labels on all log odds, the same for every baseline (the full framework of Van Hoorde et al. 2014).

====================  ======================================================================  ======
log likelihood        ``theta . s - A(theta)``, MCLLO's as in `_model/likelihood`
full map: features    ``x_i = (1, l_1i, ..., l_Ki)``, l the log odds                          (c, n)
parameters            ``theta_j = (tau_j, W_j1 .. W_jK)``, row after row                      (K c,)
eta                   ``eta_ji = theta_j . x_i``; the baseline's is 0
identity              ``tau = 0``, ``W`` the identity matrix
MCLLO                 W diagonal: ``W_jj = gamma_j``
log partition         ``A(theta) = sum_i w_i log(1 + sum_j exp eta_ji)``
sufficient statistic  ``s_j = sum_i w_i 1[y_i = j] x_i``
Hessian, block (j,k)  ``sum_i w_i g_ji (1[j = k] - g_ki) x_i x_i'``
restricted fit        ``min_beta A(theta) - theta . s``: gradient ``B' g``, Hessian ``B' H
                      B``
gain of labels        ``sup_beta``, less the log likelihood at `start`; many labels at once
====================  ======================================================================  ======

Whether the identity holds is a simple hypothesis, so labels drawn from the predictions give exact
p-values for any larger model. Whether a model with parameters is large enough is a composite one:
labels are drawn from the fitted smaller model (parametric bootstrap), which is not exact, but does
not lean on chi-square either.

==============================  ===========================================================
identity against a model        exact: labels drawn from the predictions
a model against a larger one    bootstrap: labels drawn from the fitted smaller model, both
                                models fitted to each draw (`NestedLikelihoodRatio`); approximate
either                          score: the same draws, but of the score statistic, without a
                                refit (`ProjectedScore`); exact against the identity
either                          any n: split likelihood ratio (`split_likelihood_ratio_bound`)
either                          chi-square on the difference of the parameters; large samples
==============================  ===========================================================

``method="auto"`` trusts chi-square where `calibration_test` would, by the parameters of the larger
model. Elsewhere it takes the bound where that is far below anything simulation could show, and
simulates otherwise: at most `work` (`_inference/budget`) for all tests together, each of which
stops at its 20th exceedance (50th, where there are many draws). Where `work` does not pay for
enough refits, scores are simulated, at a fraction of the price; where it does not pay for those,
the p-value is chi-square's and the reason says so. A refit of the full map, of ``c (c - 1)``
parameters, counts ``c^2 / 4`` times.

With ``u = s - grad A(theta)`` and the information H at theta, the smaller model's estimate:

===================  ====================================================================
score of a model     ``S_B = u' B (B' H B)^+ B' u``, B its directions
statistic            ``S_large - S_small``: what is left when the smaller model's part of the
                     score is projected out; a quadratic form of s
===================  ====================================================================

On the data the smaller model's score is 0, and the statistic is Rao's. Draws are made and scored at
the same theta: what a refit of the smaller model would move is projected out instead, to first
order (Neyman's C(alpha)). Against the identity, which has no parameters, nothing is left out and
the p-value is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .._fit.fit import MCLLOFit
from .._fit.objective import free_parameters
from .._inference.budget import (
    FULL_MAP_WORK,
    FULL_MAP_WORK_DIVISOR,
    MIN_COSTLY_DRAWS,
    N_EXCEEDANCES,
    N_EXCEEDANCES_LARGE_TABLE,
    N_SCORES_PER_FULL_MAP_REFIT,
    N_SCORES_PER_REFIT,
    NESTED_WORK,
)
from .._inference.hypothesis_test import SCORED_NOTE, Reason, TestResult
from .._inference.likelihood_tests import (
    METHODS,
    MIN_BOUND_FACTOR,
    LikelihoodHalf,
    chi2_sf,
    choose_method,
    split_likelihood_ratio_pvalue,
)
from .._inference.monte_carlo import (
    Seed,
    SufficientStatisticDraws,
    check_n_resamples,
    draw_labels,
    expand_weights,
    monte_carlo_pvalue,
    seed_entropy,
)
from .._model.batched import (
    RELATIVE_TIE_TOL,
    BatchedMinima,
    BatchedProblems,
    LikelihoodRatio,
    NestedLikelihoodRatio,
)
from .._model.kernel import (
    CHUNK_ELEMENTS,
    DIAGONAL_ROUNDING_FACTOR,
    Derivatives,
    LogPartition,
    probabilities_and_log_sums,
)
from .._model.likelihood import (
    NegativeLogLikelihood,
    RestrictedObjective,
    identity_theta,
    recalibrate_from_log_odds,
    sufficient_statistic,
)
from .._model.newton import minimize
from .._utils.linalg import (
    scale_to_unit_diagonal,
    smallest_eigenvalue_exceeds,
    whitening_matrix,
)
from .._utils.results import Codes, Floats
from .._validation.predictions import Predictions
from ..exceptions import InputError

MIN_EIGENVALUE = 1e-10
"""Eigenvalue of a correlation matrix below which a direction counts as not identified: well above
rounding (1e-16 times the number of rows), far below what rows tell apart; a round number."""


def design_matrix(log_odds: Floats) -> Floats:
    """Return the log odds below a row of ones, shape (c, n)."""
    return np.vstack([np.ones(log_odds.shape[1]), log_odds])


def full_map_identity(n_compared: int) -> Floats:
    """Return theta of the full map that changes nothing."""
    tau = np.zeros((n_compared, 1))
    weights = np.eye(n_compared)
    return np.hstack([tau, weights]).ravel()


def mcllo_positions_in_full_map(n_compared: int) -> Codes:
    """Return where MCLLO's ``(tau, gamma)`` stand in theta of the full map."""
    tau = (n_compared + 1) * np.arange(n_compared)
    gamma = tau + 1 + np.arange(n_compared)
    return np.concatenate([tau, gamma])


def full_map_sufficient_statistic(
    features: Floats, codes: Codes, weight: Floats | None
) -> Floats:
    """Return s: the features' sums over the rows of each class other than the baseline."""
    scaled = features if weight is None else features * weight
    sums = [scaled[:, codes == j].sum(axis=1) for j in range(len(features) - 1)]
    return np.concatenate(sums)


class FullMapLogPartition:
    """``theta -> Derivatives`` of A(theta) for fixed `features` (ones, then log odds; shape (c,
    n)).
    """

    def __init__(self, features: Floats, weight: Floats | None = None) -> None:
        self.features = features
        self.weight = weight
        self.n_features, self.n_samples = features.shape
        n_parameters = self.n_features * (self.n_features - 1)
        self._rows = max(256, CHUNK_ELEMENTS // n_parameters)

    def __call__(self, theta: Floats) -> Derivatives:
        """Return value, gradient and Hessian at `theta`."""
        d = self.n_features
        k = d - 1
        weights = theta.reshape(k, d)
        identity = identity_theta(k)
        value = 0.0
        gradient = np.zeros(k * d)
        gram = np.zeros((k * d, k * d))
        blocks = np.zeros((k * d, d))
        for start in range(0, self.n_samples, self._rows):
            rows = slice(start, start + self._rows)
            x = self.features[:, rows]
            eta = weights @ x
            g, log_partition = probabilities_and_log_sums(identity, eta)
            stack = (g[:k, None] * x).reshape(k * d, -1)
            scaled = stack
            if self.weight is not None:
                scaled = stack * self.weight[rows]
                log_partition = log_partition * self.weight[rows]
            value += float(log_partition.sum())
            gradient += scaled.sum(axis=1)
            gram += scaled @ stack.T
            blocks += scaled @ x.T
        hessian = -gram
        diagonal = np.arange(d)
        for j in range(k):
            own = slice(j * d, (j + 1) * d)
            block = blocks[own]
            # Room for rounding: without it the difference of two equal sums may be indefinite.
            block[diagonal, diagonal] *= DIAGONAL_ROUNDING_FACTOR
            hessian[own, own] += block
        return Derivatives(value, gradient, hessian)


class FullMapStatisticDraws(SufficientStatisticDraws):
    """Sufficient statistics of the full map for labels drawn from the rows, without weights."""

    def __init__(self, predictions: Predictions, seed: int) -> None:
        super().__init__(predictions, seed)
        self._features = design_matrix(predictions.log_odds).T.copy()

    def __call__(self, start: int, size: int) -> Floats:
        """Return draws ``start .. start + size``, shape (size, K c)."""
        labels = draw_labels(self.probs, self.seed, start, size)
        sums = []
        for j in self.columns:
            has_label = (labels == j).astype(np.float64)
            sums.append(has_label @ self._features)
        return np.hstack(sums)


class Family:
    """MCLLO or the full map as an exponential family, with the data's sufficient statistic."""

    def __init__(self, predictions: Predictions, *, full: bool = False) -> None:
        codes = predictions.model_codes
        self.full = full
        self.log_odds = predictions.log_odds
        self.weight = predictions.sample_weight
        n_compared = len(self.log_odds)
        if full:
            self.features = design_matrix(self.log_odds)
            self.identity = full_map_identity(n_compared)
            self.statistic = full_map_sufficient_statistic(
                self.features, codes, self.weight
            )
        else:
            self.identity = identity_theta(n_compared)
            self.statistic = sufficient_statistic(self.log_odds, codes, self.weight)

    def partition(self) -> LogPartition | FullMapLogPartition:
        """Return A with buffers of its own."""
        if self.full:
            return FullMapLogPartition(self.features, self.weight)
        return LogPartition(self.log_odds, self.weight)

    def likelihood(self) -> NegativeLogLikelihood:
        """Return the negative log likelihood of the data, with buffers of its own."""
        return NegativeLogLikelihood(self.partition(), self.statistic)

    def identified_directions(self, basis: Floats) -> Floats:
        """Return `basis` without directions that the rows cannot tell from the others."""
        if basis.shape[1] == 0 or self._has_independent_log_odds():
            return basis
        hessian = basis.T @ self.partition()(self.identity).hessian @ basis
        correlation, scale = scale_to_unit_diagonal(hessian)
        values, vectors = np.linalg.eigh(correlation)
        is_identified = values > MIN_EIGENVALUE
        return (basis / scale) @ vectors[:, is_identified]

    def _has_independent_log_odds(self) -> bool:
        """Whether no combination of log odds is constant: then every model here is identified."""
        covariance = np.atleast_2d(
            np.cov(self.log_odds, aweights=self.weight, bias=True)
        )
        mean_square = (
            np.einsum("ji,ji->j", self.log_odds, self.log_odds) / self.log_odds.shape[1]
        )
        is_constant = np.diagonal(covariance) <= MIN_EIGENVALUE * mean_square
        return not is_constant.any() and smallest_eigenvalue_exceeds(
            covariance, MIN_EIGENVALUE
        )


@dataclass(frozen=True, eq=False)
class RestrictedFit:
    """The best member of a restricted family.

    Attributes
    ----------
    theta : ndarray
        Estimate.
    log_likelihood : float
        At the estimate (the supremum where none exists).
    basis : ndarray of shape (n_parameters, df)
        Directions that were free.
    settled : bool
        Whether the estimate is finite, with information left around it.
    """

    theta: Floats
    log_likelihood: float
    basis: Floats
    settled: bool

    @property
    def df(self) -> int:
        """Free parameters."""
        return int(self.basis.shape[1])


def unrestricted_fit(predictions: Predictions, fit: MCLLOFit) -> RestrictedFit:
    """Return the fit of MCLLO itself as a restriction of nothing but what rows cannot tell."""
    free = free_parameters(predictions.log_odds)
    theta = np.concatenate([fit.tau, fit.gamma])
    basis = np.eye(len(free))[:, free]
    return RestrictedFit(theta, fit.log_likelihood, basis, fit.converged)


def restricted_fit(
    family: Family, basis: Floats, start: Floats | None = None
) -> RestrictedFit:
    """Maximise the likelihood over ``start + basis beta``; `start` is the identity when not given.

    Directions of `basis` must be identified (`Family.identified_directions`).
    """
    origin = family.identity if start is None else start
    objective = RestrictedObjective(family.likelihood(), origin, basis)
    beta = np.zeros(basis.shape[1])
    if len(beta) == 0:
        log_likelihood = -objective(beta).value
        return RestrictedFit(origin, min(0.0, log_likelihood), basis, True)
    solution = minimize(objective, beta)
    first = np.diagonal(solution.start.hessian)
    last = np.diagonal(solution.derivatives.hessian)
    # Where labels are separated the solver stops far out, with next to no information left: Newton
    # and bootstrap draws must not start there. A thousandth is a round number.
    has_faded = bool((last < 1e-3 * first).any())
    return RestrictedFit(
        theta=origin + basis @ solution.x,
        log_likelihood=min(0.0, -solution.value),
        basis=basis,
        settled=solution.converged and not has_faded,
    )


class FullMapLikelihoodRatio(LikelihoodRatio):
    """The likelihood ratio of many label vectors for the full map, one after the other."""

    def __init__(self, family: Family, basis: Floats, origin: Floats) -> None:
        self._partition = family.partition()
        super().__init__(family.log_odds, family.weight, basis=basis, origin=origin)

    def partition(self) -> Callable[[Floats], Derivatives]:
        """Return A of the full map."""
        return self._partition

    def minimize_all(self, problems: BatchedProblems) -> BatchedMinima:
        """Return the fits."""
        return problems.minimize_one_by_one(self._partition)


def likelihood_ratio(family: Family, basis: Floats, origin: Floats) -> LikelihoodRatio:
    """Return the likelihood ratio of ``origin + basis beta`` to the origin."""
    if family.full:
        return FullMapLikelihoodRatio(family, basis, origin)
    return LikelihoodRatio(family.log_odds, family.weight, basis=basis, origin=origin)


def split_likelihood_ratio_bound(
    predictions: Predictions, small: Floats, large: Floats, *, full: bool
) -> float:
    """Return ``min(1, 1 / E)``; rows alternate between the halves.

    `small` and `large` are directions of the two models, from the identity, in the family of the
    larger one.
    """
    n = predictions.n_samples
    if n < 4:
        return 1.0
    halves = []
    for first_row in (0, 1):
        half = predictions.take(np.arange(first_row, n, 2))
        family = Family(half, full=full)
        fit = restricted_fit(family, small)
        origin = fit.theta if fit.settled else family.identity
        halves.append(LikelihoodHalf(family.likelihood(), origin, fit.log_likelihood))
    return split_likelihood_ratio_pvalue(halves, large)


class ProjectedScore:
    """``s -> S_large - S_small`` at `theta`, the smaller model's estimate.

    `small` and `large` are directions of the two models in the `family` of the larger one.
    """

    def __init__(
        self, family: Family, theta: Floats, small: Floats, large: Floats
    ) -> None:
        terms = family.partition()(theta)
        self.mean = terms.gradient
        self.form = _restricted_inverse(terms.hessian, large) - _restricted_inverse(
            terms.hessian, small
        )

    def __call__(self, statistics: Floats) -> Floats:
        """Return the statistic of each row of sufficient statistics."""
        u = statistics - self.mean
        return np.einsum("bi,ij,bj->b", u, self.form, u, optimize=True)

    def reaches(self, statistics: Floats, observed: Floats) -> NDArray[np.bool_]:
        """Return which rows reach the statistic of `observed`, ties included."""
        value = float(self(observed[None])[0])
        # Draws that tie with the data may differ from them by rounding, relative and around 0.
        return self(statistics) >= value * (1.0 - RELATIVE_TIE_TOL) - 1e-12


def _restricted_inverse(hessian: Floats, basis: Floats) -> Floats:
    """Return ``B (B' H B)^+ B'``."""
    roots = basis @ whitening_matrix(basis.T @ hessian @ basis)
    return roots @ roots.T


@dataclass(frozen=True)
class TestChoice:
    """How one test is computed, from how many draws at most, and why.

    `doubtful` says that the rows, and nobody's wish, speak against chi-square.
    """

    kind: Literal["chi2", "score", "refit"]
    n_draws: int
    why: Reason
    doubtful: bool = False


@dataclass(frozen=True, eq=False)
class PValuePlan:
    """How the p-values of one set of predictions are computed.

    Attributes
    ----------
    predictions : Predictions
        The data.
    method : {'auto', 'chi2', 'exact', 'sequential'}
        As asked.
    n_resamples, seed : int
        Most draws, and what they are made from.
    n_tests : int
        How many tests share the work.
    work : float
        Cells (rows x classes x draws) that `auto` may spend on all tests.
    fewest : int
        Draws below which a test is not worth simulating.
    """

    predictions: Predictions
    method: str
    n_resamples: int
    seed: int
    n_tests: int
    work: float
    fewest: int
    _chosen: dict[int, tuple[str, Reason]] = field(default_factory=dict, repr=False)

    @classmethod
    def from_predictions(
        cls,
        predictions: Predictions,
        *,
        method: str,
        n_resamples: int,
        seed: Seed,
        n_tests: int,
        work: float = NESTED_WORK,
        fewest: int = MIN_COSTLY_DRAWS,
    ) -> PValuePlan:
        """Check the arguments."""
        if method not in METHODS:
            raise InputError(
                f"method must be 'auto', 'chi2', 'exact' or 'sequential'; got {method!r}."
            )
        check_n_resamples(n_resamples)
        if not work >= 0.0:
            raise InputError(f"work must be a number of cells >= 0; got {work!r}.")
        plan = cls(
            predictions, method, n_resamples, seed_entropy(seed), n_tests, work, fewest
        )
        if method in ("exact", "sequential"):
            _ = plan.expanded_predictions  # refuses weights that cannot be drawn
        return plan

    @cached_property
    def expanded_predictions(self) -> Predictions:
        """The data with rows that count several times written out; refuses fractional weights."""
        return expand_weights(self.predictions)

    def choose_simulation(self, family: Family, df: int) -> TestChoice:
        """Decide how a model of `df` parameters is tested."""
        if self.method == "chi2":
            return TestChoice("chi2", 0, Reason("asked"))
        if self.method != "auto":
            work = FULL_MAP_WORK * FULL_MAP_WORK_DIVISOR if family.full else np.inf
            return self._choose_affordable_simulation(family, work, Reason("asked"))
        method, why = self._trusted_method(df)
        if method == "chi2":
            return TestChoice("chi2", 0, why)
        return replace(
            self._choose_affordable_simulation(family, self.work, why), doubtful=True
        )

    def _choose_affordable_simulation(
        self, family: Family, work: float, why: Reason
    ) -> TestChoice:
        """Return the best simulation that `work` pays for."""
        n_classes = self.predictions.n_classes
        if family.full:
            cost_factor = n_classes**2 / 4.0
            n_sharing = FULL_MAP_WORK_DIVISOR
            n_scores_per_refit = N_SCORES_PER_FULL_MAP_REFIT
        else:
            cost_factor = max(1.0, n_classes / 10.0)
            n_sharing = self.n_tests
            n_scores_per_refit = N_SCORES_PER_REFIT
        price = self.predictions.n_expanded_probs * cost_factor
        n_refits = work / n_sharing / price
        n_scores = n_refits * n_scores_per_refit
        fewest = min(self.fewest, self.n_resamples)
        if n_refits >= fewest:
            return TestChoice("refit", int(min(self.n_resamples, n_refits)), why)
        if n_scores >= fewest:
            n_draws = int(min(self.n_resamples, n_scores))
            return TestChoice("score", n_draws, why.with_notes(SCORED_NOTE))
        return TestChoice("chi2", 0, why.but("full_map" if family.full else "tests"))

    def reason_for_chi2(self, df: int) -> Reason:
        """Return what is known about chi-square for `df` parameters."""
        return self._trusted_method(df)[1]

    def _trusted_method(self, df: int) -> tuple[str, Reason]:
        """Return how `calibration_test` would test as many parameters, and why."""
        if df not in self._chosen:
            # One draw of a score costs nothing: what is left is whether chi-square can be trusted.
            self._chosen[df] = choose_method(self.predictions, df, "score", 1)
        return self._chosen[df]

    def max_exceedances(self, n_draws: int) -> int | None:
        """Return the exceedances at which drawing stops; fewer where there are few draws."""
        if self.method == "exact":
            return None
        return (
            N_EXCEEDANCES if n_draws > 10 * N_EXCEEDANCES else N_EXCEEDANCES_LARGE_TABLE
        )


def pvalue_of_identity(
    plan: PValuePlan, family: Family, basis: Floats, value: float
) -> TestResult:
    """Return the p-value of the identity against the model spanned by `basis`."""
    df = basis.shape[1]
    no_parameters = basis[:, :0]
    choice = plan.choose_simulation(family, df)
    chi2 = chi2_sf(value, df)
    found = _pvalue_without_simulation(plan, family, choice, no_parameters, basis, chi2)
    if found is not None:
        return found
    draws = _draw_statistics(plan, family)
    if choice.kind == "score":
        score = ProjectedScore(family, family.identity, no_parameters, basis)
        reaches = partial(score.reaches, observed=family.statistic)
        return _simulate_pvalue(plan, choice, draws, reaches)
    ratio = likelihood_ratio(family, basis, family.identity)
    reaches = partial(ratio.reaches, threshold=value)
    return _simulate_pvalue(plan, choice, draws, reaches, "exact", chi2)


def pvalue_against_larger(
    plan: PValuePlan,
    mcllo: Family,
    small: RestrictedFit,
    family: Family,
    large: RestrictedFit,
) -> TestResult:
    """Return the p-value of a fitted submodel of MCLLO against a larger model, of any family."""
    value = nested_lr_statistic(small, large)
    choice = plan.choose_simulation(family, large.df)
    chi2 = chi2_sf(value, large.df - small.df)
    # Where the parameters of the smaller model stand among those of the larger one's family.
    places = np.arange(len(mcllo.identity))
    if family.full:
        places = mcllo_positions_in_full_map(len(mcllo.log_odds))
    small_basis = np.zeros((len(family.identity), small.df))
    small_basis[places] = small.basis
    found = _pvalue_without_simulation(
        plan, family, choice, small_basis, large.basis, chi2
    )
    if found is not None:
        return found

    draws = _draw_statistics(plan, family)
    draws.probs = recalibrate_from_log_odds(
        small.theta,
        plan.expanded_predictions.log_odds,
        plan.expanded_predictions.baseline_index,
    )
    theta = family.identity.copy()
    if choice.kind == "score":
        theta[places] = small.theta
        score = ProjectedScore(family, theta, small_basis, large.basis)
        reaches = partial(score.reaches, observed=family.statistic)
        return _simulate_pvalue(plan, choice, draws, reaches)
    origin = small.theta if small.settled else mcllo.identity
    theta[places] = origin
    ratio = NestedLikelihoodRatio(
        small=likelihood_ratio(mcllo, small.basis, origin),
        large=likelihood_ratio(family, large.basis, theta),
        small_parameter_indices=places,
    )
    reaches = partial(ratio.reaches, threshold=value)
    return _simulate_pvalue(plan, choice, draws, reaches, "bootstrap", chi2)


def nested_lr_statistic(small: RestrictedFit, large: RestrictedFit) -> float:
    """Return the likelihood ratio statistic of two nested fits."""
    return max(0.0, 2.0 * (large.log_likelihood - small.log_likelihood))


def _pvalue_without_simulation(
    plan: PValuePlan,
    family: Family,
    choice: TestChoice,
    small: Floats,
    large: Floats,
    chi2: float,
) -> TestResult | None:
    """Return the p-value where nothing need be drawn: chi-square's, or a guaranteed bound.

    As of all results here, the statistic is for the caller to fill in.
    """
    if small.shape[1] == large.shape[1]:
        return TestResult(np.nan, None, 1.0, "chi2").because(choice.why)
    # The bound uses half of the rows at a time: of a chi-square p-value above a millionth nothing
    # would be left, and it costs four fits.
    if choice.doubtful and chi2 < 1e-6:
        bound = split_likelihood_ratio_bound(
            plan.predictions, small, large, full=family.full
        )
        smallest_simulated = 1.0 / (max(choice.n_draws, plan.fewest) + 1)
        if bound * MIN_BOUND_FACTOR < smallest_simulated:
            return TestResult(np.nan, None, bound, "bound").because(
                plan.reason_for_chi2(large.shape[1])
            )
    if choice.kind == "chi2":
        return TestResult(np.nan, None, chi2, "chi2").because(choice.why)
    return None


def _simulate_pvalue(
    plan: PValuePlan,
    choice: TestChoice,
    draws: SufficientStatisticDraws,
    reaches: Callable[[Floats], NDArray[np.bool_]],
    method: str = "score",
    guess: float | None = None,
) -> TestResult:
    """Return the share of draws whose statistics reach the data's."""

    def drawn_reaches(start: int, size: int) -> NDArray[np.bool_]:
        return reaches(draws(start, size))

    found = monte_carlo_pvalue(
        drawn_reaches,
        n_resamples=choice.n_draws,
        batch=draws.batch,
        seed=plan.seed,
        stop_at=plan.max_exceedances(choice.n_draws),
        guess=guess,
    )
    return replace(found, method=method).because(choice.why)


def _draw_statistics(plan: PValuePlan, family: Family) -> SufficientStatisticDraws:
    """Return draws of the family's sufficient statistic, labels from the predictions."""
    if family.full:
        return FullMapStatisticDraws(plan.expanded_predictions, plan.seed)
    return SufficientStatisticDraws(plan.expanded_predictions, plan.seed)
