"""Many fits at once, and likelihood ratios of many label vectors of the same rows.

====================  ==================================================================
problem b             ``f_b(x) = A_b(theta) - theta . s_b + r/2 |theta - centre|^2``
parameters            ``theta = origin_b + basis x``, from x = 0
gain                  ``G(s) = sup_theta (theta . s - A(theta)) - (theta0 . s - A(theta0))``
ratio                 ``lambda(s) = 2 G(s)``: `LikelihoodRatio`, theta0 the identity or a fit
nested ratio          ``2 [G_large(s) - G_small(s)]``, theta0 the smaller model's estimate, where
                      the labels were drawn: `NestedRatio`
====================  ==================================================================

Rows, weights and origins are either those of all problems, as when labels are drawn again and again
for the same rows, or each one's own (small tables; rows left out by a weight of 0). Labels enter
through their sufficient statistic s alone.

Where C was compiled all problems are one call, which goes further at once where curvature falls
from step to step, as it does where rows are saturated. Where not, each is a call of
`_model/newton.minimize`. A problem's answer does not depend on its company. Only the value is
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
from .likelihood import Likelihood, RestrictedObjective, identity_theta
from .newton import Callback, Memoized, minimize

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
    `first` are those of A at the origin, where all share rows and origin and they are known. `tol`
    is a Newton decrement.
    """

    statistics: Floats
    origin: Floats
    basis: Floats | None = None
    penalty: float = 0.0
    centre: Floats | None = None
    f_target: Floats | None = None
    first: Derivatives | None = None
    tol: float = 1e-9
    max_iter: int = 100

    def minima(self, log_odds: Floats, weight: Floats | None = None) -> BatchedMinima:
        """Return the minima for log odds (K, n) or (K, B, n), and weights (n,) or (B, n)."""
        if compiled.is_for(log_odds):
            return self._minima_in_c(log_odds, weight)
        if log_odds.ndim == 2 and (weight is None or weight.ndim == 1):
            return self.one_by_one(LogPartition(log_odds, weight))
        return self._loop(log_partitions(log_odds, weight, len(self.statistics)))

    def one_by_one(self, partition: Partition) -> BatchedMinima:
        """Return the minima for rows that all share, of any A."""
        return self._loop([partition] * len(self.statistics))

    def _minima_in_c(self, log_odds: Floats, weight: Floats | None) -> BatchedMinima:
        first = None
        if self.first is not None:
            first = np.hstack(
                [self.first.value, self.first.gradient, self.first.hessian.ravel()]
            )
        made = compiled.minimize(
            log_odds,
            None if weight is None else np.sqrt(weight),
            self.statistics,
            self.origin,
            basis=self.basis,
            centre=self.centre,
            f_target=self.f_target,
            first=first,
            penalty=self.penalty,
            tol=self.tol,
            max_iter=self.max_iter,
        )
        return BatchedMinima(
            made.theta, made.start, made.value, made.steps > 0, made.hessian
        )

    def _loop(self, partitions: list[Partition]) -> BatchedMinima:
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
            objective = self._objective(b, partition)
            solution = minimize(
                objective,
                np.zeros(n_free),
                tol=self.tol,
                max_iter=self.max_iter,
                callback=self._reaches_target(b),
            )
            found.theta[b] = objective.theta(solution.x)
            found.start[b] = solution.start.value
            found.value[b] = solution.value
            found.converged[b] = solution.converged
            found.hessian[b] = solution.terms.hessian
        return found

    def _objective(self, b: int, partition: Partition) -> RestrictedObjective:
        """Return problem b as a function of x."""
        origin = self.origin if self.origin.ndim == 1 else self.origin[b]
        if self.first is not None:
            partition = Memoized(partition, origin, self.first)
        likelihood = Likelihood(partition, self.statistics[b])
        return RestrictedObjective(
            likelihood, origin, self.basis, self.penalty, self.centre
        )

    def _reaches_target(self, b: int) -> Callback | None:
        """Return a callback that ends the search of problem b where its value is low enough."""
        if self.f_target is None:
            return None
        target = float(self.f_target[b])
        return lambda solution: solution.terms.value <= target


def log_partitions(
    log_odds: Floats, weight: Floats | None, count: int
) -> list[Partition]:
    """Return A of each problem, for log odds (K, n) or (K, B, n) and weights (n,) or (B, n)."""
    partitions: list[Partition] = []
    for b in range(count):
        own_odds = log_odds[:, b] if log_odds.ndim == 3 else log_odds
        own_weight = weight[b] if weight is not None and weight.ndim == 2 else weight
        partitions.append(LogPartition(own_odds, own_weight, n_jobs=1))
    return partitions


class LikelihoodRatio:
    """Twice the log likelihood gained over `origin` by ``origin + basis x``, for many labels.

    The origin is the identity unless given, and `free` says which parameters are, by default all;
    `basis` may have other directions.
    """

    def __init__(
        self,
        log_odds: Floats,
        weight: Floats | None = None,
        free: NDArray[np.bool_] | None = None,
        *,
        basis: Floats | None = None,
        origin: Floats | None = None,
    ) -> None:
        self.log_odds = log_odds
        self.weight = weight
        self.basis = basis
        if free is not None and not free.all():
            self.basis = np.eye(len(free))[:, free]
        self.origin = identity_theta(len(log_odds)) if origin is None else origin
        self.first = self.partition()(self.origin)

    def partition(self) -> Partition:
        """Return A of the rows."""
        return LogPartition(self.log_odds, self.weight)

    def scores(self, statistics: Floats) -> Floats:
        """Return the score statistics ``U' H(theta0)^-1 U``; no refit."""
        u = statistics - self.first.gradient
        if self.basis is not None:
            u = u @ self.basis
        return np.einsum("bi,bi->b", u @ self._inverse, u)

    @cached_property
    def _inverse(self) -> Floats:
        """``H(theta0)^-1``, made once: of thousands of parameters it takes seconds."""
        hessian = self.first.hessian
        if self.basis is not None:
            hessian = self.basis.T @ hessian @ self.basis
        found = inverse_if_well_conditioned(hessian, 1e-15)
        if found is not None:
            return found
        large = len(hessian) > MAX_SIZE_WITHOUT_CHOLESKY
        return np.asarray(np.linalg.pinv(hessian, hermitian=large), np.float64)

    def statistics(self, statistics: Floats) -> Floats:
        """Return lambda of each row of `statistics`."""
        return 2.0 * self.in_parts(self.gains, statistics)

    def reaches(self, statistics: Floats, threshold: float) -> NDArray[np.bool_]:
        """Return whether each lambda is at least `threshold`, ties included."""
        goal = _Goal(threshold)

        def decide(part: Floats) -> NDArray[np.bool_]:
            return (
                self.gains(part, np.full(len(part), goal.end), goal.tol) >= goal.reached
            )

        return self.in_parts(decide, statistics)

    def in_parts(
        self, work: Callable[[Floats], NDArray[Any]], statistics: Floats
    ) -> NDArray[Any]:
        """Return ``work`` of the rows of `statistics`, cut into parts that threads share."""
        starts = range(0, max(1, len(statistics)), N_DRAWS_PER_TASK)
        parts = [statistics[start : start + N_DRAWS_PER_TASK] for start in starts]
        n_workers = n_threads() if self.log_odds.size >= MIN_LOG_ODDS_FOR_THREADS else 1
        return np.concatenate(list(ordered_map(work, parts, n_workers)))

    def gains(
        self, statistics: Floats, need: Floats | None = None, tol: float = 1e-9
    ) -> Floats:
        """Return G of each row of `statistics`; with `need`, a lower bound on the same side of it.

        `tol` is the decrement at which a search ends.
        """
        gains = np.zeros(len(statistics))
        if self.basis is not None and self.basis.shape[1] == 0:
            return gains
        loss = self.losses(statistics)
        able = np.ones(len(loss), dtype=bool)
        f_target = None
        if need is not None:
            able = (
                loss >= need
            )  # a likelihood is 1 at most, so no gain is larger than the loss
            f_target = (loss - need)[able]
        problems = BatchedProblems(
            statistics[able],
            self.origin,
            self.basis,
            f_target=f_target,
            first=self.first,
            tol=tol,
        )
        gains[able] = np.maximum(0.0, loss[able] - self.minima(problems).value)
        return gains

    def losses(self, statistics: Floats) -> Floats:
        """Return the negative log likelihoods at the origin: no gain is larger."""
        return self.first.value - statistics @ self.origin

    def minima(self, problems: BatchedProblems) -> BatchedMinima:
        """Return the fits."""
        return problems.minima(self.log_odds, self.weight)


class _Goal:
    """What a search needs to know of a threshold of lambda.

    A gain of `end` ends a search, one of `reached` counts as the threshold reached, ties included;
    `tol` is the decrement at which a search ends anyway.
    """

    def __init__(self, threshold: float) -> None:
        tie = RELATIVE_TIE_TOL * max(1.0, abs(threshold))
        self.end = 0.5 * threshold - 0.25 * tie
        self.reached = 0.5 * threshold - 0.5 * tie
        # where estimates drift to infinity decrements fall by a factor e a step, and 1.6 of the
        # last one is all that is left: far less than a tie
        self.tol = 0.05 * tie


@dataclass(frozen=True, eq=False)
class NestedRatio:
    """Twice the log likelihood that the larger of two models gains over the smaller one.

    Both start from the same origin; `places` are those of the smaller model's parameters among the
    larger one's.
    """

    small: LikelihoodRatio
    large: LikelihoodRatio
    places: Codes

    def reaches(self, statistics: Floats, threshold: float) -> NDArray[np.bool_]:
        """Return for each row of `statistics` whether the ratio is at least `threshold`."""
        goal = _Goal(threshold)

        def decide(part: Floats) -> NDArray[np.bool_]:
            small_gains = np.zeros(len(part))
            able = self.large.losses(part) >= goal.end
            small_gains[able] = self.small.gains(part[np.ix_(able, self.places)])
            large_gains = self.large.gains(part, goal.end + small_gains, goal.tol)
            return large_gains >= goal.reached + small_gains

        return self.large.in_parts(decide, statistics)
