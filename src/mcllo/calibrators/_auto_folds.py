r"""Folds that depend on what the rows hold, not on their order, and not on their labels.

====================  ==========================================================================
order                 rows by ``sum_j (z_j - max_k z_k)``: how sure the prediction is
fold                  the place in that order, modulo the number of folds
weights               whole numbers: a row of weight w takes w places, so that it is w equal rows;
                      others: one place for each row of positive weight
groups                one place for each group, in the order of their first rows
====================  ==========================================================================

Every fold gets sure and unsure predictions alike. Labels are *not* spread evenly: where they are,
the left-out rows of a class agree with the rest by construction, and cross-validation no longer
sees how far a fit to class frequencies overshoots. Of many rows fewer than five folds are left out,
in the end one; the others are always fitted to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

N_FOLDS = 5
ENOUGH = 4_000
"""Parts left out after which further folds would tell little more."""
WIDEST, GRAIN = 1e5, 2.0**30
"""Gaps are cut at the first and counted in units of one over the second."""


@dataclass(frozen=True, eq=False)
class Folds:
    """Which part of which row is left out when; a row of large weight is split.

    Attributes
    ----------
    rows, folds : ndarray of shape (m,)
        Row and fold of each part.
    weight : ndarray of shape (m,)
        How much of the row's weight it is; the parts of a row add up to it.
    places : ndarray of shape (m,)
        Place in the order, of the group where rows are grouped.
    n_folds : int
        0 when there is nothing to leave out.
    """

    rows: Rows
    folds: Rows
    weight: Floats
    places: Rows
    n_folds: int

    def enough(self) -> Folds:
        """Return the first folds that hold `ENOUGH` parts."""
        sizes = np.cumsum(np.bincount(self.folds, minlength=self.n_folds))
        n_folds = min(self.n_folds, int(np.searchsorted(sizes, ENOUGH)) + 1)
        own = self.folds < n_folds
        parts = (self.rows[own], self.folds[own], self.weight[own], self.places[own])
        return Folds(*parts, n_folds)

    def judges(self) -> Rows:
        """Return, for each part, whom it judges: weights come from the parts of other numbers.

        That is its fold, or where there is only one, which half of it: every other place.
        """
        if self.n_folds > 1:
            return self.folds
        _, places = np.unique(self.places, return_inverse=True)
        return places % 2

    def left_out(self, fold: int, n_samples: int) -> Floats:
        """Return the weight that each row loses, shape (n,)."""
        own = self.folds == fold
        lost = np.bincount(self.rows[own], weights=self.weight[own], minlength=n_samples)
        return lost.astype(np.float64, copy=False)


def assign_folds(scores: Floats, weight: Floats | None = None, groups: Rows | None = None) -> Folds:
    """Assign the columns of `scores`, shape (c, n), to folds."""
    full = np.ones(scores.shape[1]) if weight is None else weight
    order = _order(scores)
    order = order[full[order] > 0.0]
    if groups is not None:
        return _whole_rows(order, _group_places(groups[order]), full)
    if weight is None or not (np.floor(full) == full).all():
        return _whole_rows(order, np.arange(len(order)), full)
    return _split_rows(order, full[order].astype(np.intp))


def _order(scores: Floats) -> Rows:
    gaps = scores.max(axis=0) - scores
    np.minimum(gaps, WIDEST, out=gaps)
    gaps *= GRAIN
    sums = gaps.astype(np.int64).sum(axis=0)  # whole numbers: the order of the classes is nothing
    return np.argsort(-sums, kind="stable")


def _group_places(groups: Rows) -> Rows:
    """Return the place of each row's group, groups counted as they first appear."""
    _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
    places: Rows = np.argsort(np.argsort(first))[inverse]
    return places


def _n_folds(n_places: int) -> int:
    return min(N_FOLDS, n_places) if n_places > 1 else 0


def _whole_rows(order: Rows, places: Rows, weight: Floats) -> Folds:
    n_folds = _n_folds(int(places.max(initial=-1)) + 1)
    return Folds(order, places % max(n_folds, 1), weight[order], places, n_folds)


def _split_rows(order: Rows, counts: Rows) -> Folds:
    ends = np.cumsum(counts)
    n_folds = _n_folds(int(ends[-1]))
    fold = np.arange(max(n_folds, 1))
    size = len(fold)
    # places below an end that belong to the fold: ceil((end - fold) / size)
    parts = -((fold - ends[:, None]) // size) + ((fold - (ends - counts)[:, None]) // size)
    row, own = np.nonzero(parts)
    return Folds(order[row], own, parts[row, own].astype(np.float64), row, n_folds)
