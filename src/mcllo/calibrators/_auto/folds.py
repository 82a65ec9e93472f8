"""`Folds`: which rows are left out together when members of a pool are cross-fitted.

====================  ==========================================================================
order of the rows     by ``sum_j (z_j - max_k z_k)``: how sure the prediction is
fold                  the place in that order, modulo the number of folds. A row of whole weight w
                      takes w places, so that it is w equal rows; of any other weight, one; a group
                      takes one, in the order of the first rows; copies
                      (`_diagnostics/duplicate_rows`) are a group, unless rows have groups
====================  ==========================================================================

Every fold gets sure and unsure predictions alike. Labels are *not* spread evenly: where they are,
the left-out rows of a class agree with the rest by construction, and cross-validation no longer
sees how far a fit to class frequencies overshoots. Of many rows fewer than five folds are left out,
in the end one; the others are always fitted to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._utils.results import Codes as Rows
from ..._utils.results import Floats

N_FOLDS = 5
MAX_COUNTED_ROWS = 2.0**53
"""Counted rows up to which a row may be split among folds: beyond, counts are not exact."""
MAX_SCORE_GAP = 1e5  # larger gaps between scores are cut
# gaps are counted in whole units of one over this: sums do not depend on order
SCORE_GAP_UNITS = 2.0**30


@dataclass(frozen=True, eq=False)
class Folds:
    """Which part of which row is left out when; a row of large weight is split.

    Each part has a row, a fold, so much of the row's weight (the parts of a row add up to it) and a
    place in the order, of the group where rows are grouped. No folds: nothing to leave out.
    """

    rows: Rows
    folds: Rows
    weight: Floats
    places: Rows
    n_folds: int

    def take_first(self, enough: int) -> Folds:
        """Return the first folds that hold `enough` parts."""
        sizes = np.cumsum(np.bincount(self.folds, minlength=self.n_folds))
        n_folds = min(self.n_folds, int(np.searchsorted(sizes, enough)) + 1)
        own = self.folds < n_folds
        parts = (self.rows[own], self.folds[own], self.weight[own], self.places[own])
        return Folds(*parts, n_folds)

    def cross_fitting_folds(self) -> Rows:
        """Return a number for each part: its weights in the pool come from parts of other numbers.

        That is its fold, or where there is only one, which half of it: every other place.
        """
        if self.n_folds > 1:
            return self.folds
        _, places = np.unique(self.places, return_inverse=True)
        return places % 2

    def left_out_weight(self, fold: int, n_samples: int) -> Floats:
        """Return the weight that each row loses, shape (n,)."""
        own = self.folds == fold
        lost = np.bincount(self.rows[own], weights=self.weight[own], minlength=n_samples)
        return lost.astype(np.float64, copy=False)


def assign_folds(scores: Floats, weight: Floats | None = None, groups: Rows | None = None) -> Folds:
    """Assign the columns of `scores`, shape (c, n), to folds."""
    full = np.ones(scores.shape[1]) if weight is None else weight
    gaps = scores.max(axis=0) - scores
    np.minimum(gaps, MAX_SCORE_GAP, out=gaps)
    gaps *= SCORE_GAP_UNITS
    sums = gaps.astype(np.int64).sum(axis=0)  # whole numbers: the order of the classes is nothing
    order = np.argsort(-sums, kind="stable")  # from the surest prediction to the least sure
    order = order[full[order] > 0.0]
    counts = (np.floor(full) == full).all() and full.sum() <= MAX_COUNTED_ROWS
    if groups is None and weight is not None and counts:
        return _split_rows(order, full[order].astype(np.intp))
    places = np.arange(len(order))
    if groups is not None:  # the place of each row's group, counted as they first appear
        _, first, inverse = np.unique(groups[order], return_index=True, return_inverse=True)
        places = np.argsort(np.argsort(first))[inverse]
    n_folds = _n_folds(int(places.max(initial=-1)) + 1)
    return Folds(order, places % max(n_folds, 1), full[order], places, n_folds)


def _n_folds(n_places: int) -> int:
    """Return how many folds so many places make; one place cannot be left out."""
    return min(N_FOLDS, n_places) if n_places > 1 else 0


def _split_rows(order: Rows, counts: Rows) -> Folds:
    """Return folds of rows that stand for `counts` rows each, split where they take more places."""
    ends = np.cumsum(counts)
    n_folds = _n_folds(int(ends[-1]))
    size = max(n_folds, 1)
    fold = np.arange(size)
    # places below an end that belong to the fold: ceil((end - fold) / size)
    parts = -((fold - ends[:, None]) // size) + ((fold - (ends - counts)[:, None]) // size)
    row, own = np.nonzero(parts)
    return Folds(order[row], own, parts[row, own].astype(np.float64), row, n_folds)
