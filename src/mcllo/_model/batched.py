"""Many fits at once, and likelihood ratios of many label vectors of the same rows.

====================  ==================================================================
problem b             ``f_b(x) = A_b(theta) - theta . s_b + r/2 |theta - centre|^2``
parameters            ``theta = origin_b + basis x``, from x = 0
gain                  ``G(s) = sup_theta (theta . s - A(theta)) - (theta0 . s - A(theta0))``
ratio                 ``lambda(s) = 2 G(s)``: `LikelihoodRatio`, theta0 the identity or a fit
nested ratio          ``2 [G_large(s) - G_small(s)]``, theta0 the smaller model's estimate, where
                      the labels were drawn: `NestedLikelihoodRatio`
====================  ==================================================================

Rows, weights and origins are either those of all problems, as when labels are drawn again and again
for the same rows, or each one's own (small tables; rows left out by a weight of 0). Labels enter
through their sufficient statistic s alone.

Where C was compiled all problems are one call, which goes further at once where curvature falls
from step to step, as it does where rows are saturated. Where not, each is a call of
`_model/newton.minimize_batch`. A problem's answer does not depend on its company. Only the value is
waited for: it is known to about the square of the tolerance, the estimate to its root, in standard
errors.

A Monte Carlo p-value only asks whether a ratio reaches a threshold. A fit ends as soon as it does,
and none begins where a likelihood of 1 would not be enough. No multiple of the decrement, and no
sign of quadratic convergence, decides that it does not: with a few rows near even odds among sharp
ones lambda was 26 to 600 score statistics, and the decrement fell a hundredfold while all of lambda
was still to come. `tests/model/test_many_labels.py` holds such designs. So the answers are those of
full convergence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._utils.linalg import MAX_SIZE_WITHOUT_CHOLESKY, inverse_if_well_conditioned
from .._utils.parallel import n_threads, ordered_map
from .._utils.results import Codes, Floats
from . import compiled
from .kernel import Derivatives, LogPartition
from .likelihood import NegativeLogLikelihood, RestrictedObjective, identity_theta
from .many_classes import QuadraticFormOfScores, has_far_fewer_rows
from .newton import Callback, MemoizedObjective, minimize

RELATIVE_TIE_TOL = 1e-6
"""Statistics closer than this (relative) to the threshold count as equal to it: draws repeat, and
where estimates drift to infinity rounding leaves seven digits."""
N_DRAWS_PER_TASK = 32
"""Draws that a thread takes at a time. A round number."""
MIN_LOG_ODDS_FOR_THREADS = 10_000
"""Log odds from which threads share draws; below, they wait for each other."""

Partition = Callable[[Floats], Derivatives]


@dataclass(frozen=True, eq=False)
class BatchedMinima:
    """Where the searches ended, of B problems.

    Estimates (B, P), the last step included where one converged; values at the origins, and minima,
    or where the search ended early a value on the way, (B,); whether a minimum was found; and
    Hessians in x at the last evaluations, (B, n_free, n_free).
    """

    theta: Floats
    start: Floats
    value: Floats
    converged: NDArray[np.bool_]
    hessian: Floats


@dataclass(frozen=True, eq=False)
class BatchedProblems:
    """What is minimised, but for the rows.

    Sufficient statistics are (B, P), the origin, where theta begins, (P,) or (B, P), and the basis
    of the directions that are free, by default all, (P, n_free). The ridge leads to the `centre`,
    by default the origin. A search may end where its value is no larger than its `f_target`, (B,).
    `origin_derivatives` are those of A at the origin, where all share rows and origin and they are
    known. `tol` is a Newton decrement.
    """

    statistics: Floats
    origin: Floats
    basis: Floats | None = None
    penalty: float = 0.0
    centre: Floats | None = None
    f_target: Floats | None = None
    origin_derivatives: Derivatives | None = None
    tol: float = 1e-9
    max_iter: int = 100

    def minimize_all(
        self, log_odds: Floats, weight: Floats | None = None
    ) -> BatchedMinima:
        """Return the minima for log odds (K, n) or (K, B, n), and weights (n,) or (B, n)."""
        if compiled.accepts_log_odds(log_odds):
            return self._minimize_in_c(log_odds, weight)
        if log_odds.ndim == 2 and (weight is None or weight.ndim == 1):
            return self.minimize_one_by_one(LogPartition(log_odds, weight))
        return self._minimize_each(
            build_log_partitions(log_odds, weight, len(self.statistics))
        )

    def minimize_one_by_one(self, partition: Partition) -> BatchedMinima:
        """Return the minima for rows that all share, of any A."""
        return self._minimize_each([partition] * len(self.statistics))

    def _minimize_in_c(self, log_odds: Floats, weight: Floats | None) -> BatchedMinima:
        first = None
        if self.origin_derivatives is not None:
            first = np.hstack(
                [
                    self.origin_derivatives.value,
                    self.origin_derivatives.gradient,
                    self.origin_derivatives.hessian.ravel(),
                ]
            )
        made = compiled.minimize_batch(
            log_odds,
            None if weight is None else np.sqrt(weight),
            self.statistics,
            self.origin,
            basis=self.basis,
            centre=self.centre,
            f_target=self.f_target,
            origin_derivatives=first,
            penalty=self.penalty,
            tol=self.tol,
            max_iter=self.max_iter,
        )
        return BatchedMinima(
            made.theta, made.start, made.value, made.steps > 0, made.hessian
        )

    def _minimize_each(self, partitions: list[Partition]) -> BatchedMinima:
        """Return the minima of problems with these A, one after the other."""
        count, size = self.statistics.shape
        n_free = size if self.basis is None else self.basis.shape[1]
        found = BatchedMinima(
            theta=np.empty((count, size)),
            start=np.empty(count),
            value=np.empty(count),
            converged=np.zeros(count, dtype=bool),
            hessian=np.empty((count, n_free, n_free)),
        )
        for b, partition in enumerate(partitions):
            objective = self._objective_of_problem(b, partition)
            solution = minimize(
                objective,
                np.zeros(n_free),
                tol=self.tol,
                max_iter=self.max_iter,
                callback=self._stop_at_target_value(b),
            )
            found.theta[b] = objective.theta(solution.x)
            found.start[b] = solution.start.value
            found.value[b] = solution.value
            found.converged[b] = solution.converged
            found.hessian[b] = solution.derivatives.hessian
        return found

    def _objective_of_problem(
        self, b: int, partition: Partition
    ) -> RestrictedObjective:
        """Return problem b as a function of x."""
        origin = self.origin if self.origin.ndim == 1 else self.origin[b]
        if self.origin_derivatives is not None:
            partition = MemoizedObjective(partition, origin, self.origin_derivatives)
        likelihood = NegativeLogLikelihood(partition, self.statistics[b])
        return RestrictedObjective(
            likelihood, origin, self.basis, self.penalty, self.centre
        )

    def _stop_at_target_value(self, b: int) -> Callback | None:
        """Return a callback that ends the search of problem b where its value is low enough."""
        if self.f_target is None:
            return None
        target = float(self.f_target[b])
        return lambda solution: solution.derivatives.value <= target


def build_log_partitions(
    log_odds: Floats, weight: Floats | None, n_problems: int
) -> list[Partition]:
    """Return A of each problem, for log odds (K, n) or (K, B, n) and weights (n,) or (B, n)."""
    partitions: list[Partition] = []
    for b in range(n_problems):
        own_odds = log_odds[:, b] if log_odds.ndim == 3 else log_odds
        own_weight = weight[b] if weight is not None and weight.ndim == 2 else weight
        partitions.append(LogPartition(own_odds, own_weight, n_jobs=1))
    return partitions


class LikelihoodRatio:
    """Twice the log likelihood gained over `origin` by ``origin + basis x``, for many labels.

    The origin is the identity unless given, and `free` says which parameters are, by default all;
    `basis` may have other directions. `offered` is the mask of choice sets (`_model/kernel`).
    """

    def __init__(
        self,
        log_odds: Floats,
        weight: Floats | None = None,
        free: NDArray[np.bool_] | None = None,
        *,
        basis: Floats | None = None,
        origin: Floats | None = None,
        offered: NDArray[np.bool_] | None = None,
    ) -> None:
        self.log_odds = log_odds
        self.weight = weight
        self.offered = offered
        self.basis = basis
        if free is not None and not free.all():
            self.basis = np.eye(len(free))[:, free]
        self.origin = identity_theta(len(log_odds)) if origin is None else origin
        if self._is_of_few_rows:  # a matrix of all parameters is not needed
            partition = LogPartition(log_odds, weight)
            self.origin_derivatives = partition.with_hessian_diagonal(self.origin)
        else:  # of the full map it is another
            self.origin_derivatives = self.partition()(self.origin)

    def partition(self) -> Partition:
        """Return A of the rows."""
        return LogPartition(self.log_odds, self.weight, offered=self.offered)

    def score_statistics(self, statistics: Floats) -> Floats:
        """Return the score statistics ``U' H(theta0)^-1 U``; no refit."""
        u = statistics - self.origin_derivatives.gradient
        if self._is_of_few_rows:
            return self._form_of_few_rows(u)
        if self.basis is not None:
            u = u @ self.basis
        return np.einsum("bi,bi->b", u @ self._inverse_hessian_at_origin, u)

    @property
    def _is_of_few_rows(self) -> bool:
        is_table = self.log_odds.ndim == 2 and len(self.origin) == 2 * len(
            self.log_odds
        )
        is_plain = self.basis is None and self.offered is None
        n_rows = self.log_odds.shape[-1]
        return is_table and is_plain and has_far_fewer_rows(n_rows, len(self.origin))

    @cached_property
    def _form_of_few_rows(self) -> QuadraticFormOfScores:
        return QuadraticFormOfScores(self.log_odds, self.weight, self.origin)

    @cached_property
    def _inverse_hessian_at_origin(self) -> Floats:
        """``H(theta0)^-1``, made once: of thousands of parameters it takes seconds."""
        hessian = self.origin_derivatives.hessian
        if self.basis is not None:
            hessian = self.basis.T @ hessian @ self.basis
        found = inverse_if_well_conditioned(hessian, 1e-15)
        if found is not None:
            return found
        large = len(hessian) > MAX_SIZE_WITHOUT_CHOLESKY
        return np.asarray(np.linalg.pinv(hessian, hermitian=large), np.float64)

    def statistics(self, statistics: Floats) -> Floats:
        """Return lambda of each row of `statistics`."""
        return 2.0 * self.map_in_parts(self.log_likelihood_gains, statistics)

    def reaches(self, statistics: Floats, threshold: float) -> NDArray[np.bool_]:
        """Return whether each lambda is at least `threshold`, ties included."""
        goal = _GainThresholds(threshold)

        def decide(part: Floats) -> NDArray[np.bool_]:
            return (
                self.log_likelihood_gains(
                    part, np.full(len(part), goal.stopping_gain), goal.tol
                )
                >= goal.counted_gain
            )

        return self.map_in_parts(decide, statistics)

    def map_in_parts(
        self, function: Callable[[Floats], NDArray[Any]], statistics: Floats
    ) -> NDArray[Any]:
        """Return ``work`` of the rows of `statistics`, cut into parts that threads share."""
        starts = range(0, max(1, len(statistics)), N_DRAWS_PER_TASK)
        parts = [statistics[start : start + N_DRAWS_PER_TASK] for start in starts]
        n_workers = n_threads() if self.log_odds.size >= MIN_LOG_ODDS_FOR_THREADS else 1
        return np.concatenate(list(ordered_map(function, parts, n_workers)))

    def log_likelihood_gains(
        self, statistics: Floats, needed_gains: Floats | None = None, tol: float = 1e-9
    ) -> Floats:
        """Return G of each row of `statistics`, or with `needed_gains` a lower bound.

        The bound lies on the same side of what is needed as G does.
        `tol` is the decrement at which a search ends.
        """
        gains = np.zeros(len(statistics))
        if self.basis is not None and self.basis.shape[1] == 0:
            return gains
        loss = self.losses_at_origin(statistics)
        able = np.ones(len(loss), dtype=bool)
        f_target = None
        if needed_gains is not None:
            able = (
                loss >= needed_gains
            )  # a likelihood is 1 at most, so no gain is larger than the loss
            f_target = (loss - needed_gains)[able]
        problems = BatchedProblems(
            statistics[able],
            self.origin,
            self.basis,
            f_target=f_target,
            origin_derivatives=self.origin_derivatives,
            tol=tol,
        )
        gains[able] = np.maximum(0.0, loss[able] - self.minimize_all(problems).value)
        return gains

    def losses_at_origin(self, statistics: Floats) -> Floats:
        """Return the negative log likelihoods at the origin: no gain is larger."""
        return self.origin_derivatives.value - statistics @ self.origin

    def minimize_all(self, problems: BatchedProblems) -> BatchedMinima:
        """Return the fits."""
        if self.offered is not None:
            return problems.minimize_one_by_one(self.partition())
        return problems.minimize_all(self.log_odds, self.weight)


class _GainThresholds:
    """What a search needs to know of a threshold of lambda.

    A gain of `stopping_gain` ends a search, one of `counted_gain` counts as the threshold reached,
    ties included; `tol` is the decrement at which a search ends anyway.
    """

    def __init__(self, threshold: float) -> None:
        tie = RELATIVE_TIE_TOL * max(1.0, abs(threshold))
        self.stopping_gain = 0.5 * threshold - 0.25 * tie
        self.counted_gain = 0.5 * threshold - 0.5 * tie
        # where estimates drift to infinity decrements fall by a factor e a step, and 1.6 of the
        # last one is all that is left: far less than a tie
        self.tol = 0.05 * tie


@dataclass(frozen=True, eq=False)
class NestedLikelihoodRatio:
    """Twice the log likelihood that the larger of two models gains over the smaller one.

    Both start from the same origin; `small_parameter_indices` are the places of the smaller model's
    parameters among the larger one's.
    """

    small: LikelihoodRatio
    large: LikelihoodRatio
    small_parameter_indices: Codes

    def reaches(self, statistics: Floats, threshold: float) -> NDArray[np.bool_]:
        """Return for each row of `statistics` whether the ratio is at least `threshold`."""
        goal = _GainThresholds(threshold)

        def decide(part: Floats) -> NDArray[np.bool_]:
            small_gains = np.zeros(len(part))
            able = self.large.losses_at_origin(part) >= goal.stopping_gain
            small_gains[able] = self.small.log_likelihood_gains(
                part[np.ix_(able, self.small_parameter_indices)]
            )
            large_gains = self.large.log_likelihood_gains(
                part, goal.stopping_gain + small_gains, goal.tol
            )
            return large_gains >= goal.counted_gain + small_gains

        return self.large.map_in_parts(decide, statistics)
