"""Likelihood ratios of many label vectors of the same rows.

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

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._utils.linalg import MAX_SIZE_WITHOUT_CHOLESKY, large_inverse
from .._utils.results import Codes, Floats
from .._utils.threads import n_threads, ordered_map
from .batched_fits import BATCHED_DECREMENT_TOL, BatchedMinima, BatchedProblems
from .kernel import Derivatives, LogPartition
from .likelihood import identity_theta

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
