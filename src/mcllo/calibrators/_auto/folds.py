"""Folds for cross-fitting: which rows are left out together when members are judged.

Rows are dealt to folds in the order of how sure their predictions are, ``sum_j (z_j - max_k z_k)``:
place in that order, modulo the number of folds. So every fold has sure and unsure predictions
alike, and nothing is random.

=========================  =====================================================================
all weights whole numbers  a row of weight w has w places, one after the other: it is the same as w
and frequencies            equal rows
other weights              each row has one place, whatever its weight: a row of importance weight 3
                           is one observation, and must not be left out and learned from at once
groups of rows             each group has one place, in the order in which their first rows come
=========================  =====================================================================

Labels are *not* spread evenly (no stratified folds). Where they are, the left-out rows of a class
agree with the rest by construction, and cross-validation no longer sees how far a fit to class
frequencies overshoots.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._utils.results import Codes, Floats

N_FOLDS = 5


@dataclass(frozen=True, eq=False)
class Folds:
    """Parts of rows and the fold of each; a row of large weight has several parts.

    Attributes
    ----------
    rows : ndarray of shape (n_parts,)
        The row that a part belongs to.
    folds : ndarray of shape (n_parts,)
        The fold in which it is left out.
    weight : ndarray of shape (n_parts,)
        So much of the row's weight; the parts of a row add up to it.
    places : ndarray of shape (n_parts,)
        Place in the order, of the group where rows are grouped.
    n_folds : int
        0 where nothing can be left out.
    """

    rows: Codes
    folds: Codes
    weight: Floats
    places: Codes
    n_folds: int

    def take_first(self, min_parts: int) -> Folds:
        """Return the first folds that hold `min_parts` parts together, or all."""
        n_parts_so_far = np.cumsum(np.bincount(self.folds, minlength=self.n_folds))
        n_needed = int(np.searchsorted(n_parts_so_far, min_parts)) + 1
        n_folds = min(self.n_folds, n_needed)
        is_kept = self.folds < n_folds
        return Folds(
            rows=self.rows[is_kept],
            folds=self.folds[is_kept],
            weight=self.weight[is_kept],
            places=self.places[is_kept],
            n_folds=n_folds,
        )

    def cross_fitting_folds(self) -> Codes:
        """Return a number for each part: its weights in the pool come from parts of other numbers.

        That is its fold. A single fold is halved instead, every other place: in two and not in
        five, because weights in the pool are few numbers and each half has many parts.
        """
        if self.n_folds > 1:
            return self.folds
        _, rank = np.unique(self.places, return_inverse=True)
        return rank % 2

    def left_out_weight(self, fold: int, n_samples: int) -> Floats:
        """Return the weight that each row loses in a fold, shape (n_samples,)."""
        is_own = self.folds == fold
        rows = self.rows[is_own]
        lost = np.bincount(rows, self.weight[is_own], minlength=n_samples)
        return lost.astype(
            np.float64, copy=False
        )  # of no parts, bincount returns integers

    def weights_kept(self, row_weight: Floats) -> list[Floats]:
        """Return the weights of the rows that are left, for each fold."""
        n_samples = len(row_weight)
        return [
            row_weight - self.left_out_weight(fold, n_samples)
            for fold in range(self.n_folds)
        ]


def assign_folds(
    scores: Floats,
    weight: Floats | None = None,
    groups: Codes | None = None,
    *,
    weights_are_frequencies: bool = True,
) -> Folds:
    """Deal rows to folds.

    Parameters
    ----------
    scores : ndarray of shape (n_classes, n_samples)
        Logits or log probabilities.
    weight : ndarray of shape (n_samples,), optional
        How many rows each stands for; by default 1. Rows of weight 0 have no part.
    groups : ndarray of shape (n_samples,), optional
        Rows of the same group are left out together.
    weights_are_frequencies : bool, default True
        Whether a row of weight w is w observations; else it is one, of this importance.
    """
    n_samples = scores.shape[1]
    row_weight = np.ones(n_samples) if weight is None else weight
    order = _order_by_confidence(scores)
    order = order[row_weight[order] > 0.0]

    may_be_split = groups is None and weights_are_frequencies
    if may_be_split and weight is not None and _are_whole(weight):
        counts = weight[order].astype(np.intp)
        return _deal_weighted_rows(order, counts)

    places = np.arange(len(order))
    if groups is not None:
        _, first_row, group = np.unique(
            groups[order], return_index=True, return_inverse=True
        )
        order_of_groups = np.argsort(first_row)
        place_of_group = np.argsort(order_of_groups)  # the inverse of a permutation
        places = place_of_group[group]
    n_places = int(places.max(initial=-1)) + 1
    n_folds = _count_folds(n_places)
    folds = places % max(n_folds, 1)
    return Folds(order, folds, row_weight[order], places, n_folds)


def _order_by_confidence(scores: Floats) -> Codes:
    """Return the rows from the surest prediction to the least sure."""
    gaps = scores.max(axis=0) - scores
    # Sums of whole numbers do not depend on the order of the classes, sums of floats do: equal rows
    # would change places when classes are permuted. A unit is 2^-30; gaps of more than 1e5 (a
    # probability of exp(-1e5)) are cut, so that the sum of 2^16 classes stays below 2^63.
    gaps = np.minimum(gaps, 1e5, out=gaps)
    gaps *= 2.0**30
    unsureness = -gaps.astype(np.int64).sum(axis=0)
    return np.argsort(unsureness, kind="stable")


def _are_whole(weight: Floats) -> bool:
    """Whether weights are whole numbers, few enough rows to be counted exactly."""
    is_whole = np.floor(weight) == weight
    return bool(
        is_whole.all() and weight.sum() <= 2.0**53
    )  # beyond, floats skip whole numbers


def _count_folds(n_places: int) -> int:
    """Return how many folds so many places make; one place cannot be left out."""
    return min(N_FOLDS, n_places) if n_places > 1 else 0


def _deal_weighted_rows(order: Codes, counts: Codes) -> Folds:
    """Return folds of rows that take `counts` places each, in this order."""
    ends = np.cumsum(counts)
    starts = ends - counts
    n_folds = _count_folds(int(ends[-1]))
    fold = np.arange(max(n_folds, 1))

    # Of the places 0, ..., m - 1 those with place % n_folds == fold are ceil((m - fold) / n_folds).
    size = len(fold)
    before_end = -((fold - ends[:, None]) // size)
    before_start = -((fold - starts[:, None]) // size)
    n_places = before_end - before_start

    row, fold_of_part = np.nonzero(n_places)
    part_weight = n_places[row, fold_of_part].astype(np.float64)
    return Folds(order[row], fold_of_part, part_weight, row, n_folds)
