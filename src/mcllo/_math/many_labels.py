"""Many fits that share X: likelihood ratios of many label vectors by one batched Newton.

Labels enter through their sufficient statistic s, and all start from one theta0:

============  ==============================================================================
gain          ``G(s) = sup_theta (theta . s - A(theta)) - (theta0 . s - A(theta0))``
ratio         ``lambda(s) = 2 G(s)``: `BatchedRatio`, theta0 the identity or a fit
nested ratio  ``2 [G_large(s) - G_small(s)]``, theta0 the smaller model's estimate, where the
              labels were drawn: `NestedRatio`
first step    by the Hessian at theta0, which all share
============  ==============================================================================

A Monte Carlo p-value only asks whether a ratio reaches a threshold, so a draw leaves the batch as
soon as that is decided. What has been gained is a lower bound of G; an upper bound is what it would
gain by a likelihood of 1, and once Newton has converged the gain itself:

============  ==============================================================================
reached       the (larger) model's lower bound, less the smaller one's upper bound, is enough
not reached   the (larger) model's upper bound, less the smaller one's lower bound, is not
============  ==============================================================================

No multiple of the decrement, and no sign of quadratic convergence, decides: with a few rows near
even odds among sharp ones lambda was 26 to 600 score statistics, and the decrement fell a
hundredfold while all of lambda was still to come. `tests/math/test_many_labels.py` holds such
designs. So the answers are those of full convergence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from .._ground.linalg import solve_each
from .._ground.results import Codes, Floats
from .._ground.threads import n_threads, ordered_map
from .likelihood import CHUNK_ELEMENTS, ROUNDED_UP, LogPartition, Terms, identity_theta

Found = TypeVar("Found")

TOL = 1e-9
MAX_ITER = 100
TIE = 1e-6
"""Statistics closer than this (relative) to the threshold count as equal to it: draws repeat, and
where estimates drift to infinity rounding leaves seven digits."""
TOGETHER, TOGETHER_CELLS = 64, 600_000
"""Draws that one batched Newton takes at most, and the log odds of all; batches share the
processors. How draws are cut changes no answer."""
THREADS_PAY = 10_000
"""Log odds from which they do; below, threads wait for each other."""


class BatchedRatio:
    """Likelihood ratio statistics against the identity, for many sufficient statistics at once.

    Parameters that are not `free` stay at the identity; `block` draws are evaluated at once.
    """

    together, threads_pay = TOGETHER, THREADS_PAY
    """Draws of one Newton run at most, and the log odds from which runs share the processors."""

    def __init__(
        self, log_odds: Floats, weight: Floats | None = None, free: NDArray[np.bool_] | None = None
    ) -> None:
        self.log_odds, self.weight = log_odds, weight
        self.null = identity_theta(len(log_odds))
        self.free = np.ones(len(self.null), dtype=bool) if free is None else free
        self.start = LogPartition(log_odds, weight)(self.null)
        self._inverse = np.linalg.pinv(self.start.hessian[np.ix_(self.free, self.free)])
        self.block = max(1, CHUNK_ELEMENTS // log_odds.size)

    def scores(self, statistics: Floats) -> Floats:
        """Return the score statistics ``U' H(theta0)^-1 U``; no refit."""
        u = (statistics - self.start.gradient)[:, self.free]
        return np.einsum("bi,bi->b", u @ self._inverse, u)

    def statistics(self, statistics: Floats, threshold: float | None = None) -> Floats:
        """Return lambda of each row of `statistics`.

        With a `threshold` the values are only good for a comparison with it: each is then some
        lower bound of lambda on the right side of the threshold.
        """
        found = self.in_parts(lambda part: self._newton(part, threshold), statistics)
        return np.concatenate(found) if found else np.empty(0)

    def in_parts(self, work: Callable[[Floats], Found], statistics: Floats) -> list[Found]:
        """Return ``work`` of the rows of `statistics`, cut into parts that threads share."""
        size = min(self.together, max(4, TOGETHER_CELLS // self.log_odds.size))
        parts = [statistics[k : k + size] for k in range(0, len(statistics), size)]
        pays = self.log_odds.size >= self.threads_pay
        return list(ordered_map(work, parts, n_threads() if pays else 1))

    def reaches(self, statistics: Floats, threshold: float) -> NDArray[np.bool_]:
        """Return whether each lambda is at least `threshold`, ties included."""
        found = self.statistics(statistics, threshold)
        return found >= threshold - _tie(threshold)

    def _newton(self, s: Floats, threshold: float | None) -> Floats:
        run, active = Draws(self, s), np.arange(len(s))
        for _ in range(MAX_ITER):
            active = active[run.decrement[active] > TOL]
            if threshold is not None:
                tie, gain = _tie(threshold), run.gain[active]
                reached = 2.0 * gain >= threshold - 0.5 * tie
                active = active[~reached & (2.0 * run.top[active] >= threshold - tie)]
            if len(active) == 0:
                break
            run.advance(active)
        return 2.0 * run.gain

    def coordinates(self, statistics: Floats) -> Floats:
        """Return what stands for the family's sufficient statistics here: themselves."""
        return statistics

    def gain(self, theta: Floats, s: Floats, value: Floats) -> Floats:
        """Return the log likelihood ratio of `theta` to the identity, from A(theta)."""
        return np.einsum("bi,bi->b", theta - self.null, s) - value + self.start.value

    def evaluate(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Return A, its gradients and its Hessians at each row of `theta`."""
        if self.block == 1:
            single = LogPartition(self.log_odds, self.weight, n_jobs=1)  # parts share threads
            return stacked([single(row) for row in theta])
        parts = [
            self._block(theta[first : first + self.block])
            for first in range(0, len(theta), self.block)
        ]
        value, gradient, hessian = (np.concatenate(part) for part in zip(*parts, strict=True))
        return value, gradient, hessian

    def _block(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """The formulas of `LogPartition`, with a leading axis over draws."""
        odds, (k, n) = self.log_odds, self.log_odds.shape
        stack = np.empty((len(theta), 2 * k, n))
        g = stack[:, :k]
        np.multiply(odds, theta[:, k:, None], out=g)
        g += theta[:, :k, None]
        top = np.maximum(g.max(axis=1), 0.0)
        g -= top[:, None]
        np.exp(g, out=g)
        total = np.exp(-top) + g.sum(axis=1)
        g /= total[:, None]
        np.multiply(g, odds, out=stack[:, k:])
        per_row = top + np.log(total)
        value = per_row.sum(axis=1) if self.weight is None else per_row @ self.weight
        return value, *moments(stack, odds, self.weight)


def stacked(terms: Sequence[Terms]) -> tuple[Floats, Floats, Floats]:
    """Return values, gradients and Hessians as arrays."""
    value, gradient, hessian = zip(*((t.value, t.gradient, t.hessian) for t in terms), strict=True)
    return np.array(value), np.array(gradient), np.array(hessian)


def moments(stack: Floats, odds: Floats, weight: Floats | None) -> tuple[Floats, Floats]:
    """Return the gradients and Hessians of A, from ``(g; g l)`` stacked, for each draw."""
    k = len(odds)
    scaled = stack if weight is None else stack * weight
    gradient = scaled @ np.ones(stack.shape[2])
    hessian = -(scaled @ stack.transpose(0, 2, 1))
    squares = (scaled[:, k:, None] @ odds[:, :, None])[:, :, 0, 0]
    j = np.arange(k)
    hessian[:, j, j] += ROUNDED_UP * gradient[:, :k]
    hessian[:, j + k, j + k] += ROUNDED_UP * squares
    hessian[:, j, j + k] += gradient[:, k:]
    hessian[:, j + k, j] += gradient[:, k:]
    return gradient, hessian


class Draws:
    """Where each draw's Newton iteration stands: what it gained, and what it can gain at most."""

    def __init__(self, ratio: BatchedRatio, s: Floats) -> None:
        self.ratio, self.s = ratio, s
        u = (s - ratio.start.gradient)[:, ratio.free]
        self.step = u @ ratio._inverse
        self.decrement: Floats = np.einsum("bi,bi->b", u, self.step)
        self.theta: Floats = np.tile(ratio.null, (len(s), 1))
        self.gain: Floats = np.zeros(len(s))
        self.length = np.ones(len(s))
        likelihood_of_1 = ratio.start.value - s @ ratio.null
        self.top: Floats = np.where(self.decrement > TOL, likelihood_of_1, 0.0)

    def advance(self, active: Codes) -> None:
        """Take the next step of these draws, or shorten it where the gain did not grow enough."""
        free, slope = self.ratio.free, self.length[active] * self.decrement[active]
        trial = self.theta[active]
        trial[:, free] += self.length[active, None] * self.step[active]
        value, gradient, hessian = self.ratio.evaluate(trial)
        gain = self.ratio.gain(trial, self.s[active], value)
        grown = gain - self.gain[active]
        enough = grown >= 1e-4 * slope - 1e-11
        promised, got = slope[~enough], grown[~enough]  # a parabola through the ends peaks at:
        self.length[active[~enough]] *= np.clip(0.5 * promised / (promised - got), 0.1, 0.5)
        moved = active[enough]
        self.theta[moved], self.gain[moved], self.length[moved] = trial[enough], gain[enough], 1.0
        u = (self.s[moved] - gradient[enough])[:, free]
        self.step[moved] = solve_each(hessian[enough][:, free][:, :, free], u)
        self.decrement[moved] = np.einsum("bi,bi->b", u, self.step[moved])
        done = moved[self.decrement[moved] <= TOL]
        self.top[done] = self.gain[done]


def _tie(threshold: float) -> float:
    return TIE * max(1.0, abs(threshold))


@dataclass(frozen=True, eq=False)
class NestedRatio:
    """Twice the log likelihood that the larger of two models gains over the smaller one.

    Both start from the same origin; `places` are those of the smaller model's parameters among the
    larger one's.
    """

    small: BatchedRatio
    large: BatchedRatio
    places: Codes

    def reaches(self, statistics: Floats, threshold: float) -> NDArray[np.bool_]:
        """Return for each row of `statistics` whether the ratio is at least `threshold`."""
        found = self.large.in_parts(lambda part: self._decide(part, threshold), statistics)
        return np.concatenate(found) if found else np.empty(0, dtype=bool)

    def _decide(self, s: Floats, threshold: float) -> NDArray[np.bool_]:
        need = 0.5 * (threshold - _tie(threshold))
        low = Draws(self.small, self.small.coordinates(s[:, self.places]))
        up = Draws(self.large, self.large.coordinates(s))
        reached, active = np.zeros(len(s), dtype=bool), np.arange(len(s))
        for _ in range(2 * MAX_ITER):
            sure = up.gain[active] - low.top[active] >= need
            reached[active[sure]] = True
            active = active[~sure & (up.top[active] - low.gain[active] >= need)]
            if not _advance(low, up, active, need):
                break
        reached[active] = up.gain[active] - low.gain[active] >= need
        return reached


def _advance(low: Draws, up: Draws, active: Codes, need: float) -> bool:
    """Take a step of the model whose supremum would decide, and of the other if it is far from it.

    Return whether any draw moved.
    """
    lacking = need - (up.gain - low.gain)[active]
    end = lacking - 0.5 * (up.decrement - low.decrement)[active]  # by Newton's own estimate
    moves = []
    for run, decides in ((up, end > 0.0), (low, end < 0.0)):
        left = np.where(decides, (run.top - run.gain)[active], run.decrement[active])
        moves.append((left > 0.5 * np.abs(end)) & (run.decrement[active] > TOL))
    neither = ~(moves[0] | moves[1])
    went = False
    for run, move in zip((up, low), moves, strict=True):
        moving = active[(move | neither) & (run.decrement[active] > TOL)]
        if len(moving):
            run.advance(moving)
            went = True
    return went
