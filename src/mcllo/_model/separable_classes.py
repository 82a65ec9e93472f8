"""Classes that leave the fit: with or without them the likelihood has the same supremum.

A class j other than the baseline leaves, and takes its rows with it, where its own log odds tell
them from all others:

=====================  =======================================================================
no row has it          ``tau_j -> -inf``
above all others       ``min l_j (own rows) > max l_j (others)``: ``gamma_j -> inf``
below all others       ``max l_j (own rows) < min l_j (others)``: ``gamma_j -> -inf``
=====================  =======================================================================

On the way the likelihood of its own rows grows to 1, and that of the others to what it is without
class j; it can be no more. Once these rows are gone other classes may leave, so ask again. What
remains may still have no maximum: directions that move several classes at a time are not seen here.

`SeparatedClasses.theta` stands for the limit with finite parameters. With ``B = log(K W /
MAX_LOST_LOG_LIKELIHOOD)``, W being the total weight, a class that left has eta of at most ``-B`` in
rows of others, and in its own rows eta exceeds the log of what the others sum to by B: all of them
together cost about `MAX_LOST_LOG_LIKELIHOOD`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .._utils.results import Codes, Floats
from .kernel import log_sum_exp

Mask = NDArray[np.bool_]

MAX_LOST_LOG_LIKELIHOOD = 1e-10
"""Log likelihood that finite parameters may miss of the supremum: what `minimize` leaves."""
RELATIVE_GAP_TOL = 1e-9
"""Part of the log odds by which rows must lie apart: a million times their rounding."""


@dataclass(frozen=True, eq=False)
class SeparatedClasses:
    """What is left of rows and classes, and what went."""

    counted: Mask
    """Rows of positive weight; `rows` are those of them that are left."""
    rows: Mask
    classes: Mask
    """Classes other than the baseline that are left."""
    absent: Codes
    """Classes that left because no row has them."""
    rounds: list[Codes] = field(default_factory=list)
    """The others that left, in the order in which they did."""

    def __bool__(self) -> bool:
        """Whether any class left."""
        return not bool(self.classes.all())

    def theta(
        self, theta: Floats, log_odds: Floats, codes: Codes, total_weight: float
    ) -> Floats:
        """Return `theta` with finite parameters for the classes that left, the last ones first."""
        k = len(log_odds)
        theta = theta.copy()
        bound = float(np.log(k * max(total_weight, 1.0) / MAX_LOST_LOG_LIKELIHOOD))
        rows = self.rows.copy()
        classes = self.classes.copy()
        for gone in reversed(self.rounds):
            rows |= self.counted & np.isin(codes, gone)
            for j in gone:
                own = rows & (codes == j)
                others = _log_total(theta, log_odds[:, own], classes).max()
                tau, gamma = _steep_line(log_odds[j], rows, own, bound, others + bound)
                theta[j] = tau
                theta[k + j] = gamma
            classes[gone] = True
        theta[self.absent] = -bound - log_odds[self.absent].max(axis=1)
        return theta


def separate_classes(
    log_odds: Floats, codes: Codes, weight: Floats | None = None
) -> SeparatedClasses:
    """Return what is left when all classes left that can; code K stands for the baseline."""
    k, n = log_odds.shape
    counted = np.ones(n, dtype=bool) if weight is None else weight > 0.0
    counts = np.bincount(codes[counted], minlength=k + 1)
    classes = counts[:k] > 0
    found = SeparatedClasses(counted, counted.copy(), classes, np.flatnonzero(~classes))
    while True:
        gone = _find_separated_classes(log_odds, codes, found)
        if len(gone) == 0:
            return found
        found.rounds.append(gone)
        found.classes[gone] = False
        found.rows[np.isin(codes, gone)] = False


def _find_separated_classes(
    log_odds: Floats, codes: Codes, left: SeparatedClasses
) -> Codes:
    """Return the classes whose own log odds all lie above, or all below, the others' left."""
    rows = slice(None) if left.rows.all() else np.flatnonzero(left.rows)
    gone = []
    for j in np.flatnonzero(left.classes):
        odds = log_odds[j, rows]
        own = codes[rows] == j
        # a quick look first: the row at the end must be one of its own
        above = own[odds.argmax()] and _gap(odds, own)[0] > 0.0
        below = own[odds.argmin()] and _gap(-odds, own)[0] > 0.0
        if above or below:
            gone.append(j)
    return np.array(gone, dtype=np.intp)


def _gap(odds: Floats, own: Mask) -> tuple[float, float, float]:
    """Return by how much own log odds clear the others', the lowest own and the highest other."""
    lowest_own = float(odds[own].min())
    highest_other = float(odds[~own].max(initial=-np.inf))
    rounding = RELATIVE_GAP_TOL * max(1.0, abs(lowest_own))
    return lowest_own - highest_other - rounding, lowest_own, highest_other


def _steep_line(
    odds: Floats, rows: Mask, own: Mask, bound: float, top: float
) -> tuple[float, float]:
    """Return tau and gamma: eta at least `top` in own rows and at most ``-bound`` in others."""
    is_own = own[rows]
    if is_own.all():
        return top - float(odds[own].min()), 1.0
    sign = 1.0
    gap, low, high = _gap(odds[rows], is_own)
    if gap <= 0.0:  # own rows lie below the others
        sign = -1.0
        gap, low, high = _gap(-odds[rows], is_own)
    gamma = (top + bound) / (low - high)
    return top - gamma * low, sign * gamma


def _log_total(theta: Floats, odds: Floats, classes: Mask) -> Floats:
    """Return ``log(1 + sum exp eta)`` of each row over these classes."""
    k, n = odds.shape
    eta = theta[:k, None][classes] + theta[k:, None][classes] * odds[classes]
    return log_sum_exp(np.vstack([eta, np.zeros(n)]))
