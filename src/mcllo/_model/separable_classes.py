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

`ClassElimination.with_finite_parameters` stands for the limit with finite parameters. With ``B =
log(K W / MAX_LOST_LOG_LIKELIHOOD)``, W being the total weight, a class that left has eta of at most
``-B`` in rows of others, and in its own rows eta exceeds the log of what the others sum to by B:
all of them together cost about `MAX_LOST_LOG_LIKELIHOOD`.
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
class ClassElimination:
    """What is left of rows and classes, and what went."""

    has_weight: Mask
    """Rows of positive weight; `remaining_rows` are those of them that are left."""
    remaining_rows: Mask
    remaining_classes: Mask
    """Classes other than the baseline that are left."""
    absent_classes: Codes
    """Classes that left because no row has them."""
    removed_by_round: list[Codes] = field(default_factory=list)
    """The others that left, in the order in which they did."""

    def __bool__(self) -> bool:
        """Whether any class left."""
        return not bool(self.remaining_classes.all())

    def with_finite_parameters(
        self, theta: Floats, log_odds: Floats, codes: Codes, total_weight: float
    ) -> Floats:
        """Return `theta` with finite parameters for the classes that left, the last first."""
        k = len(log_odds)
        theta = theta.copy()
        bound = float(np.log(k * max(total_weight, 1.0) / MAX_LOST_LOG_LIKELIHOOD))
        rows = self.remaining_rows.copy()
        classes = self.remaining_classes.copy()
        for gone in reversed(self.removed_by_round):
            rows |= self.has_weight & np.isin(codes, gone)
            for j in gone:
                own = rows & (codes == j)
                others = _log_normalizer(theta, log_odds[:, own], classes).max()
                tau, gamma = _separating_tau_and_gamma(
                    log_odds[j], rows, own, bound, others + bound
                )
                theta[j] = tau
                theta[k + j] = gamma
            classes[gone] = True
        theta[self.absent_classes] = -bound - log_odds[self.absent_classes].max(axis=1)
        return theta


def eliminate_separated_classes(
    log_odds: Floats, codes: Codes, weight: Floats | None = None
) -> ClassElimination:
    """Return what is left when all classes left that can; code K stands for the baseline."""
    k, n = log_odds.shape
    counted = np.ones(n, dtype=bool) if weight is None else weight > 0.0
    counts = np.bincount(codes[counted], minlength=k + 1)
    classes = counts[:k] > 0
    found = ClassElimination(counted, counted.copy(), classes, np.flatnonzero(~classes))
    while True:
        gone = _find_classes_apart(log_odds, codes, found)
        if len(gone) == 0:
            return found
        found.removed_by_round.append(gone)
        found.remaining_classes[gone] = False
        found.remaining_rows[np.isin(codes, gone)] = False


def _find_classes_apart(
    log_odds: Floats, codes: Codes, elimination: ClassElimination
) -> Codes:
    """Return the classes whose own log odds all lie above, or all below, the others' left."""
    rows = (
        slice(None)
        if elimination.remaining_rows.all()
        else np.flatnonzero(elimination.remaining_rows)
    )
    gone = []
    for j in np.flatnonzero(elimination.remaining_classes):
        odds = log_odds[j, rows]
        own = codes[rows] == j
        # a quick look first: the row at the end must be one of its own
        above = own[odds.argmax()] and _gap_above_others(odds, own)[0] > 0.0
        below = own[odds.argmin()] and _gap_above_others(-odds, own)[0] > 0.0
        if above or below:
            gone.append(j)
    return np.array(gone, dtype=np.intp)


def _gap_above_others(log_odds: Floats, is_own_row: Mask) -> tuple[float, float, float]:
    """Return by how much own log odds clear the others', the lowest own and the highest other."""
    lowest_own = float(log_odds[is_own_row].min())
    highest_other = float(log_odds[~is_own_row].max(initial=-np.inf))
    rounding = RELATIVE_GAP_TOL * max(1.0, abs(lowest_own))
    return lowest_own - highest_other - rounding, lowest_own, highest_other


def _separating_tau_and_gamma(
    log_odds: Floats,
    rows: Mask,
    is_class_row: Mask,
    max_negative_eta: float,
    min_own_eta: float,
) -> tuple[float, float]:
    """Return tau, gamma of eta >= `min_own_eta` in own rows, <= ``-max_negative_eta`` in others."""
    is_own = is_class_row[rows]
    if is_own.all():
        return min_own_eta - float(log_odds[is_class_row].min()), 1.0
    sign = 1.0
    gap, low, high = _gap_above_others(log_odds[rows], is_own)
    if gap <= 0.0:  # own rows lie below the others
        sign = -1.0
        gap, low, high = _gap_above_others(-log_odds[rows], is_own)
    gamma = (min_own_eta + max_negative_eta) / (low - high)
    return min_own_eta - gamma * low, sign * gamma


def _log_normalizer(theta: Floats, log_odds: Floats, classes: Mask) -> Floats:
    """Return ``log(1 + sum exp eta)`` of each row over these classes."""
    k, n = log_odds.shape
    eta = theta[:k, None][classes] + theta[k:, None][classes] * log_odds[classes]
    return log_sum_exp(np.vstack([eta, np.zeros(n)]))
