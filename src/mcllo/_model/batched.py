"""Many fits at once: minima in C where it was compiled, by steps that all take at once where not.

====================  ==================================================================
problem b             ``f_b(x) = A_b(theta) - theta . s_b + r/2 |theta - centre|^2``
parameters            ``theta = origin_b + basis x``, from x = 0
minimum               `_model/newton.minimize` of each; C goes further at once where curvature
                      falls from step to step, as it does where rows are saturated
shared                rows, weights and origins are either those of all problems, as when
                      labels are drawn again and again for the same rows, or each one's own
                      (small tables; rows left out by a weight of 0)
====================  ==================================================================

A problem's answer does not depend on its company. Only the value is waited for: it is known to
about the square of the tolerance, the estimate to its root, in standard errors.

Likelihood ratios of many label vectors of the same rows.

Labels enter through their sufficient statistic s, and all fits start from one theta0:

============  ==============================================================================
gain          ``G(s) = sup_theta (theta . s - A(theta)) - (theta0 . s - A(theta0))``
ratio         ``lambda(s) = 2 G(s)``: `LikelihoodRatio`, theta0 the identity or a fit
nested ratio  ``2 [G_large(s) - G_small(s)]``, theta0 the smaller model's estimate, where the
              labels were drawn: `NestedRatio`
============  ==============================================================================

A Monte Carlo p-value only asks whether a ratio reaches a threshold. A fit ends as soon as it does,
and none begins where a likelihood of 1 would not be enough. No multiple of the decrement, and no
sign of quadratic convergence, decides that it does not: with a few rows near even odds among sharp
ones lambda was 26 to 600 score statistics, and the decrement fell a hundredfold while all of lambda
was still to come. `tests/model/test_many_labels.py` holds such designs. So the answers are those of
full convergence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._utils.linalg import MAX_SIZE_WITHOUT_CHOLESKY, large_inverse, solve_each
from .._utils.parallel import n_threads, ordered_map
from .._utils.results import Codes, Floats
from . import compiled
from .kernel import (
    CHUNK_ELEMENTS,
    DIAGONAL_ROUNDING_FACTOR,
    Derivatives,
    LogPartition,
    softmax_with_reference,
)
from .likelihood import identity_theta

ARMIJO_SHARE, MAX_HALVINGS, MAX_ITER, RELATIVE_VALUE_TOL = 1e-4, 40, 100, 1e-13

ManyTerms = tuple[Floats, Floats, Floats]
"""Values, gradients and Hessians, with a leading axis."""
Partitions = Callable[[Floats, Codes], ManyTerms]
"""A of the problems of these numbers, at as many thetas."""

BATCHED_DECREMENT_TOL = 1e-9
MIN_STEP_LENGTH = 0.5**MAX_HALVINGS


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
    `first` are those of A at the origin, where all share rows and origin and they are known.
    """

    statistics: Floats
    origin: Floats
    basis: Floats | None = None
    penalty: float = 0.0
    centre: Floats | None = None
    f_target: Floats | None = None
    first: Derivatives | None = None
    tol: float = BATCHED_DECREMENT_TOL
    max_iter: int = MAX_ITER

    def minima(
        self, log_odds: Floats, weight: Floats | None = None, about: Floats | None = None
    ) -> BatchedMinima:
        """Return the minima for log odds (K, n) or (K, B, n), and weights (n,) or (B, n).

        `about` are Hessians of A, (B, P, P), near enough for searches of many rows without C.
        """
        if not compiled.is_for(log_odds):
            return self._minimize_jointly(each_partition(log_odds, weight, about))
        made, at = self._empty(), self.first
        first = None if at is None else np.hstack([at.value, at.gradient, at.hessian.ravel()])
        size, steps = made.hessian.shape[1], np.empty(len(made.value), dtype=np.int64)
        gradient = np.empty_like(made.theta)
        compiled.fill(
            log_odds,
            None if weight is None else np.sqrt(weight),
            self.statistics,
            self.origin,
            (self.basis, self.centre, self.f_target, first),
            (made.theta, made.start, made.value, gradient, made.hessian, steps),
            *(self.penalty, self.tol, size, self.max_iter),
        )
        np.greater(steps, 0, out=made.converged)
        return made

    def one_by_one(self, partition: Callable[[Floats], Derivatives]) -> BatchedMinima:
        """Return the minima for rows that all share, of any A."""
        return self._minimize_jointly(lambda theta, _: _stacked([partition(row) for row in theta]))

    def _empty(self) -> BatchedMinima:
        count, size = self.statistics.shape
        n_free = size if self.basis is None else self.basis.shape[1]
        theta, hessian = np.empty((count, size)), np.empty((count, n_free, n_free))
        start, value = np.empty((2, count))
        return BatchedMinima(theta, start, value, np.zeros(count, dtype=bool), hessian)

    def _minimize_jointly(self, partition: Partitions) -> BatchedMinima:
        """Return the minima without C, by steps that all problems take at once."""
        made, active = self._empty(), np.arange(len(self.statistics))
        if len(active) == 0:
            return made
        made.theta[:] = self.origin
        known = None if self.first is None else _stacked([self.first] * len(active))
        first = known or partition(made.theta, active)
        made.start[:], gradient, made.hessian[:] = self._terms(made.theta, active, first)
        made.value[:] = made.start
        step, decrement = self._steps(made.hessian, gradient)
        length = np.ones(len(active))
        for _ in range(2 * self.max_iter):
            if self.f_target is not None:
                active = active[made.value[active] > self.f_target[active]]
            done = active[decrement[active] <= self.tol]
            made.theta[done] += step[done]
            made.value[done] -= 0.5 * decrement[done]
            made.converged[done] = True
            active = active[(decrement[active] > self.tol) & (length[active] > MIN_STEP_LENGTH)]
            if len(active) == 0 or self.max_iter == 0:
                break
            own: Any = active if len(active) < len(length) else slice(None)  # no copies of all
            trial = made.theta[own] + length[own, None] * step[own]
            with np.errstate(over="ignore", invalid="ignore"):
                value, gradient, hessian = self._terms(trial, active, partition(trial, active))
            before = made.value[own]
            enough = before - ARMIJO_SHARE * length[own] * decrement[own]
            fell: Any = value <= enough + RELATIVE_VALUE_TOL * (1.0 + np.abs(before))
            length[active[~fell]] *= 0.5
            moved, fell = (own, slice(None)) if fell.all() else (active[fell], fell)
            made.theta[moved], made.value[moved], length[moved] = trial[fell], value[fell], 1.0
            made.hessian[moved] = hessian[fell]
            step[moved], decrement[moved] = self._steps(hessian[fell], gradient[fell])
        return made

    def _terms(self, theta: Floats, which: Codes, partition: ManyTerms) -> ManyTerms:
        """Return f, its gradients and Hessians in x of the problems `which`, from those of A."""
        (value, gradient, hessian), s = partition, self.statistics[which]
        value = value - np.einsum("bi,bi->b", theta, s)
        gradient = gradient - s
        if self.penalty:
            away = theta - (self.origin if self.centre is None else self.centre)
            value += 0.5 * self.penalty * np.einsum("bi,bi->b", away, away)
            gradient += self.penalty * away
            hessian = hessian + self.penalty * np.eye(theta.shape[1])
        if self.basis is None:
            return value, gradient, hessian
        return value, gradient @ self.basis, self.basis.T @ hessian @ self.basis

    def _steps(self, hessian: Floats, gradient: Floats) -> tuple[Floats, Floats]:
        """Return the Newton steps, in theta, and the decrements."""
        x = -solve_each(hessian, gradient)
        decrement = np.maximum(0.0, -np.einsum("bi,bi->b", gradient, x))
        return (x if self.basis is None else x @ self.basis.T), decrement


def _stacked(terms: Sequence[Derivatives]) -> ManyTerms:
    """Return values, gradients and Hessians as arrays."""
    value, gradient, hessian = zip(*((t.value, t.gradient, t.hessian) for t in terms), strict=True)
    return np.array(value), np.array(gradient), np.array(hessian)


def each_partition(
    log_odds: Floats, weight: Floats | None, about: Floats | None = None
) -> Partitions:
    """Return A of each problem, small ones together, large ones one by one in the same buffer.

    Of large ones the Hessian is that of `about`, where it is given.
    """
    k, n = len(log_odds), log_odds.shape[-1]
    together = 1 if compiled.is_for(log_odds) else max(1, CHUNK_ELEMENTS // (k * n))
    odds, large = log_odds.reshape(k, -1, n), partial(LogPartition, n_jobs=1, buffers=[])
    counts = None if weight is None else weight.reshape(-1, n)  # each one's own, or one for all

    @cache
    def alone(b: int) -> Callable[[Floats], Derivatives]:
        own = None if counts is None else counts[b % len(counts)]
        whole = large(odds[:, b % odds.shape[1]], own, dtype=odds.dtype)
        if about is None:
            return whole
        return lambda x: replace(whole.without_hessian(x, diagonal=False), hessian=about[b])

    def block(theta: Floats, which: Codes) -> ManyTerms:
        own = odds if odds.shape[1] in (1, len(which)) else odds[:, which]
        unit = counts[which] if counts is not None and len(counts) > 1 else counts
        return _block(own.transpose(1, 0, 2), unit, theta)

    def at(theta: Floats, which: Codes) -> ManyTerms:
        if together == 1:
            parts = [_stacked([alone(b)(x) for x, b in zip(theta, which.tolist(), strict=True)])]
        else:
            starts = range(0, len(which), together)
            parts = [block(theta[i : i + together], which[i : i + together]) for i in starts]
        value, gradient, hessian = (np.concatenate(part) for part in zip(*parts, strict=True))
        if odds.dtype != np.float64:  # so far that of rounded numbers
            value += np.einsum("bi,bi->b", gradient, theta - theta.astype(odds.dtype))
        return value, gradient, hessian

    return at


def _block(odds: Floats, weight: Floats | None, theta: Floats) -> ManyTerms:
    """The formulas of `LogPartition`, with a leading axis over problems."""
    k, n = odds.shape[-2:]
    stack, theta = np.empty((len(theta), 2 * k, n), odds.dtype), theta.astype(odds.dtype)
    g = np.multiply(odds, theta[:, k:, None], out=stack[:, :k])
    g += theta[:, :k, None]
    logs = softmax_with_reference(g, axis=1)
    np.multiply(g, odds, out=stack[:, k:])
    own = np.ones((1, n), odds.dtype) if weight is None else weight.astype(odds.dtype)
    scaled = stack if weight is None else stack * own[:, None]
    gradient = (scaled @ np.ones((n, 1), odds.dtype))[..., 0].astype(np.float64)
    squares = (scaled[:, k:, None] @ odds[..., None])[..., 0, 0]
    hessian, j = -(scaled @ stack.transpose(0, 2, 1)).astype(np.float64), np.arange(k)
    hessian[:, j, j] += DIAGONAL_ROUNDING_FACTOR * gradient[:, :k]
    hessian[:, j + k, j + k] += DIAGONAL_ROUNDING_FACTOR * squares
    hessian[:, j, j + k] += gradient[:, k:]
    hessian[:, j + k, j] += gradient[:, k:]
    return (logs * own).sum(axis=1, dtype=np.float64), gradient, hessian


RELATIVE_TIE_TOL = 1e-6
"""Statistics closer than this (relative) to the threshold count as equal to it: draws repeat, and
where estimates drift to infinity rounding leaves seven digits."""
N_DRAWS_PER_TASK = 32
"""Draws that a thread takes at a time."""
MIN_LOG_ODDS_FOR_THREADS = 10_000
"""Log odds from which they do; below, threads wait for each other."""


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
        self.log_odds, self.weight, self.basis = log_odds, weight, basis
        self.origin = identity_theta(len(log_odds)) if origin is None else origin
        if free is not None and not free.all():
            self.basis = np.eye(len(free))[:, free]
        self.first = self.partition()(self.origin)

    def partition(self) -> Callable[[Floats], Derivatives]:
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
        found = large_inverse(hessian, 1e-15)
        if found is not None:
            return found
        return np.asarray(
            np.linalg.pinv(hessian, hermitian=len(hessian) > MAX_SIZE_WITHOUT_CHOLESKY), np.float64
        )

    def statistics(self, statistics: Floats) -> Floats:
        """Return lambda of each row of `statistics`."""
        return 2.0 * self.in_parts(self.gains, statistics)

    def reaches(self, statistics: Floats, threshold: float) -> NDArray[np.bool_]:
        """Return whether each lambda is at least `threshold`, ties included."""
        surely, need, tol = _needs(threshold)

        def decide(part: Floats) -> NDArray[np.bool_]:
            return self.gains(part, np.full(len(part), surely), tol) >= need

        return self.in_parts(decide, statistics)

    def in_parts(self, work: Callable[[Floats], NDArray[Any]], statistics: Floats) -> NDArray[Any]:
        """Return ``work`` of the rows of `statistics`, cut into parts that threads share."""
        starts = range(0, max(1, len(statistics)), N_DRAWS_PER_TASK)
        parts = [statistics[k : k + N_DRAWS_PER_TASK] for k in starts]
        pays = self.log_odds.size >= MIN_LOG_ODDS_FOR_THREADS
        return np.concatenate(list(ordered_map(work, parts, n_threads() if pays else 1)))

    def gains(
        self, statistics: Floats, need: Floats | None = None, tol: float = BATCHED_DECREMENT_TOL
    ) -> Floats:
        """Return G of each row of `statistics`; with `need`, a lower bound on the same side of it.

        A likelihood is 1 at most. `tol` is the decrement at which a search ends.
        """
        loss = self.losses(statistics)
        if self.basis is not None and self.basis.shape[1] == 0:
            return np.zeros(len(loss))
        able = np.ones(len(loss), dtype=bool) if need is None else loss >= need
        problems = BatchedProblems(
            statistics[able],
            self.origin,
            self.basis,
            f_target=None if need is None else (loss - need)[able],
            first=self.first,
            tol=tol,
        )
        gains = np.zeros(len(loss))
        gains[able] = np.maximum(0.0, loss[able] - self.minima(problems).value)
        return gains

    def losses(self, statistics: Floats) -> Floats:
        """Return the negative log likelihoods at the origin: no gain is larger."""
        return self.first.value - statistics @ self.origin

    def minima(self, problems: BatchedProblems) -> BatchedMinima:
        """Return the fits."""
        return problems.minima(self.log_odds, self.weight)


def _needs(threshold: float) -> tuple[float, float, float]:
    """Return the gains at which a search ends, and that count as the threshold reached; and tol.

    Where estimates drift to infinity decrements fall by a factor e a step, and 1.6 of the last one
    is all that is left: far less than a tie.
    """
    tie = RELATIVE_TIE_TOL * max(1.0, abs(threshold))
    return 0.5 * threshold - 0.25 * tie, 0.5 * threshold - 0.5 * tie, 0.05 * tie


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
        surely, need, tol = _needs(threshold)

        def decide(part: Floats) -> NDArray[np.bool_]:
            lost, able = np.zeros(len(part)), self.large.losses(part) >= surely
            lost[able] = self.small.gains(part[np.ix_(able, self.places)])
            return self.large.gains(part, surely + lost, tol) >= need + lost

        return self.large.in_parts(decide, statistics)
