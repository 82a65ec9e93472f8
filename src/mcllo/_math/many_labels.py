"""Many fits that share X: likelihood ratio statistics of many label vectors by one batched Newton.

``lambda(s) = 2 [sup_theta (theta . s - A(theta)) - (theta0 . s - A(theta0))]`` for each sufficient
statistic s. The first step uses the Hessian at theta0, which all share. A Monte Carlo p-value only
asks whether lambda reaches a threshold, so a draw leaves the batch as soon as that is decided:

* reached: any theta gives a lower bound of lambda;
* not reached: no likelihood exceeds 1, so lambda is at most ``-2 l(theta0)``; or an upper bound
  (`_math/bound`) lies below the threshold. That costs about as much as a Newton step, so it is
  tried once few decrements are missing, and again only at a fraction of that decrement.

No multiple of the decrement, and no sign of quadratic convergence, decides: with a few rows near
even odds among sharp ones lambda was 26 to 600 score statistics, and the decrement fell a
hundredfold while all of lambda was still to come. `tests/test_batch.py` holds such designs.

Does a larger model gain more over a smaller one than it did on the data? Many draws at once.

For labels with sufficient statistic s, both models start at the smaller one's estimate, where the
labels were drawn, and climb to ``G_small(s)`` and ``G_large(s)``; the statistic is twice the
difference. Only whether it reaches a threshold is asked, so a draw leaves as soon as it is decided:

===========  =============================================================================
reached      what the larger model has gained, less an upper bound of ``G_small``, is enough
not reached  an upper bound of ``G_large``, less what the smaller one has gained, is not
===========  =============================================================================

Upper bounds come from `_math/bound` (one is tried when Newton's own estimate of the difference lies
on its side of the threshold and little is left to climb), from convergence, and from the fact that
no likelihood exceeds 1. The answers are those of full convergence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from .._ground.results import Floats
from .._ground.threads import n_threads, ordered_map
from .bound import RestBound, solve
from .cells import MclloCells, moments
from .likelihood import CHUNK_ELEMENTS, LogPartition, identity_theta

Found = TypeVar("Found")

TOL = 1e-9
MAX_ITER = 100
PROMISING = 100.0
"""The upper bound is tried once so many decrements would leave lambda below the threshold."""
RETRY = 0.1
"""Part of the decrement at the last try at which the upper bound is tried again."""
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

    Parameters
    ----------
    log_odds : ndarray of shape (K, n)
        Shared log odds against the baseline.
    weight : ndarray of shape (n,), optional
        Row weights.
    free : ndarray of bool of shape (2K,), optional
        Parameters that may move; the others stay at the identity.
    """

    def __init__(
        self,
        log_odds: Floats,
        weight: Floats | None = None,
        free: NDArray[np.bool_] | None = None,
    ) -> None:
        self.log_odds, self.weight = log_odds, weight
        self.null = identity_theta(len(log_odds))
        self.free = np.ones(len(self.null), dtype=bool) if free is None else free
        self.start = LogPartition(log_odds, weight)(self.null)
        self._inverse = np.linalg.pinv(self.start.hessian[np.ix_(self.free, self.free)])
        self._rows = max(1, CHUNK_ELEMENTS // log_odds.size)
        self._rest = RestBound(MclloCells(log_odds, weight), np.eye(len(self.null))[:, self.free])

    def scores(self, statistics: Floats) -> Floats:
        """Return the score statistics ``U' H(theta0)^-1 U``; no refit."""
        u = (statistics - self.start.gradient)[:, self.free]
        scores: Floats = np.einsum("bi,bi->b", u @ self._inverse, u)
        return scores

    def statistics(self, statistics: Floats, threshold: float | None = None) -> Floats:
        """Return lambda of each row of `statistics`.

        With a `threshold` the values are only good for a comparison with it: each is then some
        lower bound of lambda on the right side of the threshold.
        """
        found = self.in_parts(lambda part: self._newton(part, threshold), statistics)
        return np.concatenate(found) if found else np.empty(0)

    def in_parts(self, work: Callable[[Floats], Found], statistics: Floats) -> list[Found]:
        """Return ``work`` of the rows of `statistics`, cut into parts that threads share."""
        size = min(TOGETHER, max(4, TOGETHER_CELLS // self.log_odds.size))
        parts = [statistics[k : k + size] for k in range(0, len(statistics), size)]
        pays = self.log_odds.size >= THREADS_PAY
        return list(ordered_map(work, parts, n_threads() if pays else 1))

    def reaches(self, statistics: Floats, threshold: float) -> NDArray[np.bool_]:
        """Return whether each lambda is at least `threshold`, ties included."""
        found = self.statistics(statistics, threshold)
        reached: NDArray[np.bool_] = found >= threshold - _tie(threshold)
        return reached

    def _newton(self, s: Floats, threshold: float | None) -> Floats:
        run = Draws(self, s)
        active = np.arange(len(s))
        for _ in range(MAX_ITER):
            active = active[run.decrement[active] > TOL]
            if threshold is not None:
                active = self._undecided(run, active, threshold)
            if len(active) == 0:
                break
            run.advance(active)
        return 2.0 * run.gain

    def _undecided(
        self, run: Draws, active: NDArray[np.intp], threshold: float
    ) -> NDArray[np.intp]:
        """Return the draws of which neither bound has passed the threshold."""
        tie = _tie(threshold)
        active = active[2.0 * run.gain[active] < threshold - 0.5 * tie]
        gap = 0.5 * (threshold - tie) - run.gain
        active = active[run.most[active] >= 0.5 * (threshold - tie)]
        near = PROMISING * run.decrement[active] < 2.0 * gap[active]
        tried = active[near & (run.decrement[active] < RETRY * run.tried_at[active])]
        run.tried_at[tried] = run.decrement[tried]
        short = tried[run.rest_bound(tried) < gap[tried]]
        return np.setdiff1d(active, short, assume_unique=True)

    def rest_bound(self, theta: Floats, s: Floats, step: Floats, hessian: Floats) -> Floats:
        """Return upper bounds of what each gain can still grow by; see `RestBound`."""
        bound, points, target = np.empty(len(theta)), self.points(theta), s[:, self.free]
        for first in range(0, len(theta), self._rows):
            part = slice(first, first + self._rows)
            bound[part] = self._rest(points[part], target[part], step[part], hessian[part])
        return bound

    def points(self, theta: Floats) -> Floats:
        """Return the family's parameters at these coordinates: here the same."""
        return theta

    def coordinates(self, statistics: Floats) -> Floats:
        """Return what stands for the family's sufficient statistics here: themselves."""
        return statistics

    def gain(self, theta: Floats, s: Floats, value: Floats) -> Floats:
        """Return the log likelihood ratio of `theta` to the identity, from A(theta)."""
        gain: Floats = np.einsum("bi,bi->b", theta - self.null, s) - value + self.start.value
        return gain

    def evaluate(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Return A, its gradients and its Hessians at each row of `theta`."""
        if self._rows == 1:
            single = LogPartition(self.log_odds, self.weight, n_jobs=1)  # parts share threads
            terms = [single(row) for row in theta]
            return (
                np.array([t.value for t in terms]),
                np.array([t.gradient for t in terms]),
                np.array([t.hessian for t in terms]),
            )
        parts = [
            self._block(theta[first : first + self._rows])
            for first in range(0, len(theta), self._rows)
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


class Draws:
    """Where each draw's Newton iteration stands."""

    def __init__(self, ratio: BatchedRatio, s: Floats) -> None:
        self.ratio, self.s = ratio, s
        u = (s - ratio.start.gradient)[:, ratio.free]
        self.step = u @ ratio._inverse
        self.decrement: Floats = np.einsum("bi,bi->b", u, self.step)
        self.theta: Floats = np.tile(ratio.null, (len(s), 1))
        self.gain: Floats = np.zeros(len(s))
        self.length = np.ones(len(s))
        self.most = ratio.start.value - s @ ratio.null  # to a likelihood of 1
        self.tried_at = np.full(len(s), np.inf)
        own = ratio.start.hessian[np.ix_(ratio.free, ratio.free)]
        self.hessian = np.tile(own, (len(s), 1, 1))

    def advance(self, active: NDArray[np.intp]) -> None:
        """Take the next step of these draws, or shorten it where the gain did not grow enough."""
        free, slope = self.ratio.free, self.length[active] * self.decrement[active]
        trial = self.theta[active]
        trial[:, free] += self.length[active, None] * self.step[active]
        value, gradient, hessian = self.ratio.evaluate(trial)
        gain = self.ratio.gain(trial, self.s[active], value)
        grown = gain - self.gain[active]
        enough = grown >= 1e-4 * slope - 1e-11
        self.length[active[~enough]] *= _shorter(slope[~enough], grown[~enough])
        moved = active[enough]
        self.theta[moved], self.gain[moved], self.length[moved] = trial[enough], gain[enough], 1.0
        u = (self.s[moved] - gradient[enough])[:, free]
        self.hessian[moved] = hessian[enough][:, free][:, :, free]
        self.step[moved] = solve(self.hessian[moved], u)
        self.decrement[moved] = np.einsum("bi,bi->b", u, self.step[moved])

    def rest_bound(self, draws: NDArray[np.intp]) -> Floats:
        """Return upper bounds of what these draws' gains can still grow by."""
        return self.ratio.rest_bound(
            self.theta[draws], self.s[draws], self.step[draws], self.hessian[draws]
        )


def _shorter(promised: Floats, grown: Floats) -> Floats:
    """Return the part of a step at which a parabola through its ends peaks, within [0.1, 0.5]."""
    part: Floats = np.clip(0.5 * promised / (promised - grown), 0.1, 0.5)
    return part


def _tie(threshold: float) -> float:
    return TIE * max(1.0, abs(threshold))


Places = NDArray[np.intp]

NESTED_PROMISING = 150.0
"""A bound is tried once so many decrements would leave the difference on its side."""


@dataclass(frozen=True, eq=False)
class NestedRatio:
    """Twice the log likelihood that the larger of two models gains over the smaller one.

    Attributes
    ----------
    small, large : BatchedRatio
        Both from the same origin.
    places : ndarray of int
        Where the parameters of the smaller model's family stand among those of the larger's.
    """

    small: BatchedRatio
    large: BatchedRatio
    places: Places

    def reaches(self, statistics: Floats, threshold: float) -> NDArray[np.bool_]:
        """Return for each row of `statistics` whether the ratio is at least `threshold`."""
        found = self.large.in_parts(lambda part: self._decide(part, threshold), statistics)
        return np.concatenate(found) if found else np.empty(0, dtype=bool)

    def _decide(self, s: Floats, threshold: float) -> NDArray[np.bool_]:
        need = 0.5 * (threshold - _tie(threshold))
        low, up = _Climb(self.small, s[:, self.places]), _Climb(self.large, s)
        reached, active = np.zeros(len(s), dtype=bool), np.arange(len(s))
        for _ in range(2 * MAX_ITER):
            _try_bounds(low, up, active, need)
            sure = up.gain[active] - low.top[active] >= need
            reached[active[sure]] = True
            active = active[~sure & (up.top[active] - low.gain[active] >= need)]
            if not _advance(low, up, active, need):
                break
        reached[active] = up.gain[active] - low.gain[active] >= need
        return reached


class _Climb:
    """Newton runs of one model over a part of the draws, with upper bounds of their suprema."""

    def __init__(self, ratio: BatchedRatio, s: Floats) -> None:
        self.ratio, self.run = ratio, Draws(ratio, ratio.coordinates(s))
        self.top = self.run.most.copy()
        self._settle(np.arange(len(s)))

    @property
    def gain(self) -> Floats:
        """What each draw has gained so far."""
        return self.run.gain

    @property
    def decrement(self) -> Floats:
        """About twice what is left, where little is."""
        return self.run.decrement

    def advance(self, draws: Places) -> bool:
        """Take a step of those that have not converged; whether there were any."""
        moving = draws[self.decrement[draws] > TOL]
        if len(moving):
            self.run.advance(moving)
            self._settle(moving)
        return len(moving) > 0

    def bound(self, draws: Places) -> None:
        """Look for upper bounds, unless the last try was about as far along."""
        run = self.run
        tried = draws[run.decrement[draws] < RETRY * run.tried_at[draws]]
        run.tried_at[tried] = run.decrement[tried]
        self.top[tried] = np.minimum(self.top[tried], run.gain[tried] + run.rest_bound(tried))

    def _settle(self, draws: Places) -> None:
        done = draws[self.run.decrement[draws] <= TOL]
        self.top[done] = self.run.gain[done]


def _room(low: _Climb, up: _Climb, need: float) -> tuple[Floats, Floats]:
    """Return what the difference lacks, now and by Newton's estimate of where it will end."""
    now = need - (up.gain - low.gain)
    return now, now - 0.5 * (up.decrement - low.decrement)


def _try_bounds(low: _Climb, up: _Climb, active: Places, need: float) -> None:
    """Bound the model whose supremum would decide, where little of it is left."""
    now, end = (room[active] for room in _room(low, up, need))
    for climb, side in ((up, 1.0), (low, -1.0)):
        left = NESTED_PROMISING * climb.decrement[active]
        climb.bound(active[(side * end > 0.0) & (left < 2.0 * side * now)])


def _advance(low: _Climb, up: _Climb, active: Places, need: float) -> bool:
    """Take a step of the model that must be bounded, and of the other if it has far to go."""
    _, end = _room(low, up, need)
    end = end[active]
    moves = []
    for climb, side in ((up, 1.0), (low, -1.0)):
        loose = climb.top[active] - climb.gain[active] > 0.5 * np.abs(end)
        far = climb.decrement[active] > 0.5 * np.abs(end)
        moves.append(np.where(side * end > 0.0, loose, far) & (climb.decrement[active] > TOL))
    neither = ~(moves[0] | moves[1])
    went = [climb.advance(active[m | neither]) for climb, m in zip((up, low), moves, strict=True)]
    return any(went)
