"""Does a larger model gain more over a smaller one than it did on the data? Many draws at once.

For labels with sufficient statistic s, both models start at the smaller one's estimate, where the
labels were drawn, and climb to ``G_small(s)`` and ``G_large(s)``; the statistic is twice the
difference. Only whether it reaches a threshold is asked, so a draw leaves as soon as it is decided:

===========  =============================================================================
reached      what the larger model has gained, less an upper bound of ``G_small``, is enough
not reached  an upper bound of ``G_large``, less what the smaller one has gained, is not
===========  =============================================================================

Upper bounds come from `_bound` (one is tried when Newton's own estimate of the difference lies on
its side of the threshold and little is left to climb), from convergence, and from the fact that no
likelihood exceeds 1. The answers are those of full convergence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ._batch import MAX_ITER, RETRY, TOL, BatchedRatio, _Draws, _tie

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

PROMISING = 150.0
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
        self.ratio, self.run = ratio, _Draws(ratio, ratio.coordinates(s))
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
        left = PROMISING * climb.decrement[active]
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
