"""Classes that leave the fit: with or without them the likelihood has the same supremum.

A class j other than the baseline leaves, with its rows, where its own log odds tell its rows from
all others:

=====================  =======================================================================
no row has it          ``tau_j -> -inf``: its probability vanishes from every row
above all others       ``min l_j (own rows) > max l_j (others)``: ``gamma_j -> inf``
below all others       ``max l_j (own rows) < min l_j (others)``: ``gamma_j -> -inf``
=====================  =======================================================================

On the way the likelihood of its own rows grows to 1, and that of the others to what it is without
class j; it can be no more. Once these rows are gone other classes may leave, so ask again. What
remains may still have no maximum: directions that move several classes at a time are not seen here.

For a class that left, `Peeled.theta` gives finite parameters that are all but at the limit:
with ``B = log(K W / LOST)``, W the total weight, its eta is at most ``-B`` in the rows of others,
and in its own at least B above the log of the sum of all others' exponentials. All classes together
then cost less than about `LOST` of log likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

LOST = 1e-10
"""Log likelihood that finite parameters may miss of the supremum."""
CLEAR = 1e-9
"""Part of the log odds by which rows must lie apart."""


@dataclass(frozen=True, eq=False)
class Peeled:
    """What is left of rows and classes, and what went.

    Attributes
    ----------
    rows : boolean ndarray of shape (n,)
        Rows that are left; those of weight 0 are not.
    classes : boolean ndarray of shape (K,)
        Classes other than the baseline that are left.
    rounds : list of ndarray
        Classes that left, in the order in which they did.
    """

    rows: Mask
    classes: Mask
    rounds: list[NDArray[np.intp]]

    @property
    def left(self) -> Mask:
        """The classes that left, as a mask."""
        return ~self.classes

    def theta(
        self, theta: Floats, log_odds: Floats, codes: NDArray[np.intp], total_weight: float
    ) -> Floats:
        """Return `theta` with finite parameters for the classes that left, last ones first."""
        k, theta = len(log_odds), theta.copy()
        reach = np.log(k * max(total_weight, 1.0) / LOST)
        rows, classes = self.rows.copy(), self.classes.copy()
        for gone in reversed(self.rounds):
            own = np.isin(codes, gone)
            for j in gone:
                mine = codes == j
                theta[[j, k + j]] = _ends(theta, log_odds, j, mine, rows, classes, reach)
            rows |= own
            classes[gone] = True
        return theta


def peel(log_odds: Floats, codes: NDArray[np.intp], weight: Floats | None = None) -> Peeled:
    """Return what is left when all classes left that can.

    Parameters
    ----------
    log_odds : ndarray of shape (K, n)
        Log odds against the baseline.
    codes : ndarray of shape (n,)
        Rows of `log_odds` that came true; K stands for the baseline.
    weight : ndarray of shape (n,), optional
        Row weights.

    Examples
    --------
    >>> log_odds = np.array([[3.0, 0.0, 1.0, 0.5], [0.0, 1.0, 2.0, 3.0]])
    >>> found = peel(log_odds, np.array([0, 1, 2, 1]))  # class 0 has the largest of its log odds
    >>> found.classes, found.rows
    (array([False,  True]), array([False,  True,  True,  True]))
    """
    k, n = log_odds.shape
    rows = np.ones(n, dtype=bool) if weight is None else weight > 0.0
    classes, rounds = np.ones(k, dtype=bool), []
    while True:
        leaving = _leaving(log_odds, codes, rows, classes)
        if len(leaving) == 0:
            return Peeled(rows, classes, rounds)
        rounds.append(leaving)
        classes[leaving] = False
        rows = rows & ~np.isin(codes, leaving)


def _leaving(log_odds: Floats, codes: NDArray[np.intp], rows: Mask, classes: Mask) -> Any:
    ...
