"""p-values of nested models: chi-square, exact, by parametric bootstrap, or a guaranteed bound.

==============================  ===========================================================
identity against a model        exact: labels drawn from the predictions
a model against a larger one    bootstrap: labels drawn from the fitted smaller model, both
                                models fitted to each draw (`NestedRatio`); approximate
either                          score: the same draws, but of the score statistic, without a
                                refit (`ProjectedScore`); exact against the identity
either                          bound: split likelihood ratio at any n (`nested_bound`)
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

from .._inference.budget import (
    FULL_MAP_WORK,
    FULL_MAP_WORK_DIVISOR,
    MIN_REFITS,
    N_EXCEEDANCES,
    N_EXCEEDANCES_LARGE_TABLE,
    N_SCORES_PER_FULL_MAP_REFIT,
    N_SCORES_PER_REFIT,
    NESTED_WORK,
)
from .._inference.likelihood_tests import (
    METHODS,
    MIN_BOUND_FACTOR,
    LikelihoodHalf,
    chi2_sf,
    choose_method,
    split_ratio_bound,
)
from .._inference.monte_carlo import (
    Seed,
    StatisticDraws,
    check_resamples,
    expand_weights,
    monte_carlo_p,
    seed_entropy,
)
from .._inference.pvalue import Ground, Limit, Note, PValue, Reason
from .._model.batched_labels import RELATIVE_TIE_TOL, NestedRatio
from .._model.likelihood import recalibrate
from .._utils.linalg import whitening
from .._utils.results import Floats
from .._validation.predictions import Predictions
from ..exceptions import InputError
from .restricted_models import (
    Family,
    FullDraws,
    RestrictedFit,
    likelihood_ratio,
    mcllo_places,
    restricted_fit,
)

MAX_CHI2_PVALUE_FOR_BOUND = 1e-6
"""Chi-square p-value above which no guaranteed bound is tried: it would be too weak."""


def nested_bound(predictions: Predictions, small: Floats, large: Floats, *, full: bool) -> float:
    """Return ``min(1, 1 / E)``; rows alternate between the halves.

    `small` and `large` are directions of the two models, from the identity, in the family of the
    larger one.
    """
    n = predictions.n_samples
    if n < 4:
        return 1.0
    halves = []
    for k in (0, 1):
        family = Family(predictions.take(np.arange(k, n, 2)), full=full)
        fit = restricted_fit(family, small)
        origin = fit.theta if fit.settled else family.identity
        halves.append(LikelihoodHalf(family.likelihood(), origin, fit.log_likelihood))
    return split_ratio_bound(halves, large)


class ProjectedScore:
    """``s -> S_large - S_small`` at `theta`, the smaller model's estimate.

    `small` and `large` are directions of the two models in the `family` of the larger one.
    """

    def __init__(self, family: Family, theta: Floats, small: Floats, large: Floats) -> None:
        terms = family.partition()(theta)
        self.mean = terms.gradient
        self.form = _form(terms.hessian, large) - _form(terms.hessian, small)

    def __call__(self, statistics: Floats) -> Floats:
        """Return the statistic of each row of sufficient statistics."""
        u = statistics - self.mean
        return np.einsum("bi,ij,bj->b", u, self.form, u, optimize=True)

    def reaches(self, statistics: Floats, observed: Floats) -> NDArray[np.bool_]:
        """Return which rows reach the statistic of `observed`, ties included."""
        value = float(self(observed[None])[0])
        return self(statistics) >= value * (1.0 - RELATIVE_TIE_TOL) - 1e-12


def _form(hessian: Floats, basis: Floats) -> Floats:
    """Return ``B (B' H B)^+ B'``."""
    roots = basis @ whitening(basis.T @ hessian @ basis)
    return roots @ roots.T


@dataclass(frozen=True)
class Choice:
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
        fewest: int = MIN_REFITS,
    ) -> PValuePlan:
        """Check the arguments."""
        if method not in METHODS:
            raise InputError(
                f"method must be 'auto', 'chi2', 'exact' or 'sequential'; got {method!r}."
            )
        check_resamples(n_resamples)
        if not work >= 0.0:
            raise InputError(f"work must be a number of cells >= 0; got {work!r}.")
        plan = cls(predictions, method, n_resamples, seed_entropy(seed), n_tests, work, fewest)
        if method in ("exact", "sequential"):
            _ = plan.rows  # refuses weights that cannot be drawn
        return plan

    @cached_property
    def rows(self) -> Predictions:
        """The data with rows that count several times written out; refuses fractional weights."""
        return expand_weights(self.predictions)

    def choose(self, family: Family, df: int) -> Choice:
        """Decide how a model of `df` parameters is tested."""
        if self.method == "chi2":
            return Choice("chi2", 0, Reason(Ground.ASKED))
        if self.method != "auto":
            work = FULL_MAP_WORK * FULL_MAP_WORK_DIVISOR if family.full else np.inf
            return self._affordable(family, work, Reason(Ground.ASKED))
        method, why = self._trusted(df)
        if method == "chi2":
            return Choice("chi2", 0, why)
        return replace(self._affordable(family, self.work, why), doubtful=True)

    def _affordable(self, family: Family, work: float, why: Reason) -> Choice:
        """Return the best simulation that `work` pays for."""
        cells, c = self.predictions.n_expanded_probs, self.predictions.n_classes
        price = cells * (c * c / 4.0 if family.full else max(1.0, c / 10.0))
        refits = work / (FULL_MAP_WORK_DIVISOR if family.full else self.n_tests) / price
        scores = refits * (N_SCORES_PER_FULL_MAP_REFIT if family.full else N_SCORES_PER_REFIT)
        fewest = min(self.fewest, self.n_resamples)
        if refits >= fewest:
            return Choice("refit", int(min(self.n_resamples, refits)), why)
        if scores >= fewest:
            return Choice("score", int(min(self.n_resamples, scores)), why.noting(Note.SCORED))
        return Choice("chi2", 0, why.but(Limit.FULL_MAP if family.full else Limit.TESTS))

    def doubt(self, df: int) -> Reason:
        """Return what is known about chi-square for `df` parameters."""
        return self._trusted(df)[1]

    def _trusted(self, df: int) -> tuple[str, Reason]:
        if df not in self._chosen:
            # one draw of a score costs nothing: what is left is whether chi-square can be trusted
            self._chosen[df] = choose_method(self.predictions, df, "score", 1)
        return self._chosen[df]

    def stop_at(self, n_draws: int) -> int | None:
        """Return the exceedances at which drawing stops; fewer where there are few draws."""
        if self.method == "exact":
            return None
        return N_EXCEEDANCES if n_draws > 10 * N_EXCEEDANCES else N_EXCEEDANCES_LARGE_TABLE


def against_identity(plan: PValuePlan, family: Family, basis: Floats, value: float) -> PValue:
    """Return the p-value of the identity against the model spanned by `basis`."""
    nothing, choice = basis[:, :0], plan.choose(family, basis.shape[1])
    guess = chi2_sf(value, basis.shape[1])
    found = _pvalue_without_draws(plan, family, choice, nothing, basis, guess)
    if found is not None:
        return found
    draws = _draws(plan, family)
    if choice.kind == "score":
        score = ProjectedScore(family, family.identity, nothing, basis)
        return _simulate_pvalue(
            plan, choice, draws, partial(score.reaches, observed=family.statistic)
        )
    ratio = likelihood_ratio(family, basis, family.identity)
    return _simulate_pvalue(
        plan, choice, draws, partial(ratio.reaches, threshold=value), "exact", guess
    )


def against_larger(
    plan: PValuePlan, mcllo: Family, small: RestrictedFit, family: Family, large: RestrictedFit
) -> PValue:
    """Return the p-value of a fitted submodel of MCLLO against a larger model, of any family."""
    value, choice = gain(small, large), plan.choose(family, large.df)
    guess = chi2_sf(value, large.df - small.df)
    places = mcllo_places(len(mcllo.log_odds)) if family.full else np.arange(len(mcllo.identity))
    inside = np.zeros((len(family.identity), small.df))
    inside[places] = small.basis
    found = _pvalue_without_draws(plan, family, choice, inside, large.basis, guess)
    if found is not None:
        return found
    draws, rows = _draws(plan, family), plan.rows
    draws.probs = recalibrate(small.theta, rows.log_odds, rows.baseline_index)
    start = family.identity.copy()
    if choice.kind == "score":
        start[places] = small.theta
        score = ProjectedScore(family, start, inside, large.basis)
        return _simulate_pvalue(
            plan, choice, draws, partial(score.reaches, observed=family.statistic)
        )
    start[places] = origin = small.theta if small.settled else mcllo.identity
    ratio = NestedRatio(
        small=likelihood_ratio(mcllo, small.basis, origin),
        large=likelihood_ratio(family, large.basis, start),
        places=places,
    )
    reaches = partial(ratio.reaches, threshold=value)
    return _simulate_pvalue(plan, choice, draws, reaches, "bootstrap", guess)


def gain(small: RestrictedFit, large: RestrictedFit) -> float:
    """Return the likelihood ratio statistic of two nested fits."""
    return max(0.0, 2.0 * (large.log_likelihood - small.log_likelihood))


def _pvalue_without_draws(
    plan: PValuePlan, family: Family, choice: Choice, small: Floats, large: Floats, chi2: float
) -> PValue | None:
    """Return the p-value where nothing need be drawn: chi-square's, or a guaranteed bound."""
    if small.shape[1] == large.shape[1]:
        return PValue(1.0, "chi2", why=choice.why)
    if choice.doubtful and chi2 < MAX_CHI2_PVALUE_FOR_BOUND:
        bound = nested_bound(plan.predictions, small, large, full=family.full)
        if bound * MIN_BOUND_FACTOR * (max(choice.n_draws, plan.fewest) + 1) < 1.0:
            return PValue(bound, "bound", why=plan.doubt(large.shape[1]))
    return PValue(chi2, "chi2", why=choice.why) if choice.kind == "chi2" else None


def _simulate_pvalue(
    plan: PValuePlan,
    choice: Choice,
    draws: StatisticDraws,
    reaches: Callable[[Floats], NDArray[np.bool_]],
    method: str = "score",
    guess: float | None = None,
) -> PValue:
    found = monte_carlo_p(
        lambda start, size: reaches(draws(start, size)),
        n_resamples=choice.n_draws,
        batch=draws.batch,
        seed=plan.seed,
        stop_at=plan.stop_at(choice.n_draws),
        guess=guess,
    )
    return replace(found, method=method, why=choice.why)


def _draws(plan: PValuePlan, family: Family) -> StatisticDraws:
    return (FullDraws if family.full else StatisticDraws)(plan.rows, plan.seed)
