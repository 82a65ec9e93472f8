"""Exact copies among rows: the same probabilities and the same label, more often than by chance.

Every row twice makes p-values and intervals as sure as twice the rows would. Equal probabilities
alone are no copies: leaves of a tree, votes and rounded numbers have them too. What tells copies
from these is that copies share the label as well.

==============  ==================================================================================
whole table     every different row (probabilities and label) occurs r, 2 r, 3 r, ... times, r >= 2;
                counts of independent rows are all even about once in 2^(number of different rows)
some rows       among the pairs of rows in a set of equal probabilities a share differs in the
                label; these shares sum to D over the sets, for independent rows to E on average:
                Chernoff's bound of the chance of D or less, ``exp(D - E) (E / D)^D``, is below
                `FALSE_COPIES_LEVEL`
==============  ==================================================================================

E is the sum over sets of ``1 - sum_k q_k^2``, the chance that two independent rows differ; q are
the probabilities as given or as the fitted map recalibrates them, whichever make agreement more
likely: underconfident predictions agree more often than they expect. A set counts once, however
large: many sure rows that are all cut off at the same probability are one set. Rows of one group
are known to be alike (`groups`), so copies within a group are left out.

`AutoCalibrator` asks the same, of a larger chance (`calibrators/_auto/stacking`): rows that may be
copies must be left out together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._fit.fit import MCLLOFit
from .._utils.formatting import format_count
from .._utils.results import Codes, Floats
from .._utils.statements import Statement
from .._validation.predictions import Predictions

FALSE_COPIES_LEVEL = 1e-6
"""Chance that independent rows look like copies, as of the other data checks."""
MIN_DIFFERENT_ROWS = 20
"""Different rows of a table that is repeated as a whole: all even by chance in 2^-20 = 1e-6."""
REMEDY = (
    "A copy is no new evidence: p-values and intervals are surer than they should be. Drop the "
    "copies, or name the row that each one came from with {groups}."
)


@dataclass(frozen=True, eq=False)
class Copies:
    """Rows that are copies of others.

    Attributes
    ----------
    n_copies : int
        Rows that repeat an earlier one.
    times : int or None
        How often every row is there; None where only some are repeated.
    row_and_label : ndarray of shape (n_samples,)
        A number for each row, the same where probabilities and label are equal.
    """

    n_copies: int
    times: int | None
    row_and_label: Codes

    def number_inseparable_rows(self, most: int) -> Codes:
        """Return the number of the group that each row must not be parted from.

        Equal rows of a table that is repeated r times as a whole are r copies of one, or of
        several that were equal anyway: groups of r. Where some rows are repeated, more than `most`
        equal ones are so by nature, as rows cut off at the same probability are: each is its own.
        """
        order = np.argsort(self.row_and_label, kind="stable")
        _, first, size = np.unique(
            self.row_and_label[order], return_index=True, return_counts=True
        )
        position_among_equals = np.arange(len(order)) - np.repeat(first, size)
        if self.times is not None:
            begins_group = position_among_equals % self.times == 0
        else:
            has_too_many_equals = np.repeat(size > most, size)
            begins_group = (position_among_equals == 0) | has_too_many_equals
        groups = np.empty(len(order), dtype=np.intp)
        groups[order] = np.cumsum(begins_group) - 1
        return groups


def state_copies(predictions: Predictions, fit: MCLLOFit) -> Statement | None:
    """Return what is said of copies among the rows; None where equal rows may be chance."""

    def recalibrated(rows: Predictions) -> Floats:
        if rows.logits is None:
            return fit.recalibrate(rows.probs)
        return fit.recalibrate(logits=rows.logits)

    copies = find_copies(predictions, recalibrated)
    if copies is None:
        return None
    n_rows = len(copies.row_and_label)
    if copies.times is not None:
        how_often = (
            "twice" if copies.times == 2 else f"{format_count(copies.times)} times"
        )
        found = (
            f"Every row is there {how_often}, label included: {format_count(copies.n_copies)} of "
            f"{format_count(n_rows)} rows are copies."
        )
    else:
        found = (
            f"{format_count(copies.n_copies)} of {format_count(n_rows)} rows seem to be copies: "
            "they equal an earlier row in every probability and in the label, and rows of equal "
            "probabilities hardly ever differ in the label."
        )
    numbers = {"n_copies": copies.n_copies, "times": copies.times}
    return Statement.filled(
        "data_check.copies", f"{found} {REMEDY}", {}, "bad", numbers
    )


def find_copies(
    predictions: Predictions,
    recalibrated: Callable[[Predictions], Floats],
    chance: float = FALSE_COPIES_LEVEL,
) -> Copies | None:
    """Return the copies among rows; None where equal rows may be chance.

    Parameters
    ----------
    predictions : Predictions
        The rows. Of those that are alike within a group one counts, and the answer is of these.
    recalibrated : callable
        Probabilities of rows that allow for underconfident predictions, shape (n, c).
    chance : float
        Of labels that differ so seldom, below which equal rows are copies.
    """
    set_of_row = number_equal_rows(predictions)
    if set_of_row is None:
        return None
    if predictions.groups is not None:
        # Rows that are alike within a group count once: `groups` have said so already.
        seen = np.column_stack([set_of_row, predictions.codes, predictions.groups])
        _, first = np.unique(seen, axis=0, return_index=True)
        predictions = predictions.take(first)
        set_of_row = set_of_row[first]
    n_rows = predictions.n_samples
    row_and_label = set_of_row * predictions.n_classes + predictions.codes
    different, n_times = np.unique(row_and_label, return_counts=True)
    n_copies = n_rows - len(different)
    if n_copies == 0:
        return None
    repeats = int(np.gcd.reduce(n_times))
    if repeats > 1 and len(different) >= MIN_DIFFERENT_ROWS:
        # What occurs 2 r times may be two rows that were equal by chance: one of r is the original.
        n_originals = n_rows // repeats
        return Copies(n_rows - n_originals, repeats, row_and_label)
    if labels_agree_too_often(predictions, recalibrated, set_of_row, chance):
        return Copies(n_copies, None, row_and_label)
    return None


def labels_agree_too_often(
    predictions: Predictions,
    recalibrated: Callable[[Predictions], Floats],
    set_of_row: Codes,
    chance: float = FALSE_COPIES_LEVEL,
) -> bool:
    """Whether rows of equal probabilities differ in the label less often than by chance."""
    _, first_row, set_of_row = np.unique(
        set_of_row, return_index=True, return_inverse=True
    )
    set_size = np.bincount(set_of_row)
    set_and_label, n_equal = np.unique(
        set_of_row * predictions.n_classes + predictions.codes, return_counts=True
    )
    set_of_label = set_and_label // predictions.n_classes
    n_agreeing_pairs = np.bincount(set_of_label, weights=n_equal * (n_equal - 1.0))
    n_pairs = set_size * (set_size - 1.0)

    # Shares of pairs, and not whether a set has several labels at all: in a set of two rows that
    # are there four times each, half of the pairs are copies, yet both labels may occur. A share
    # lies in [0, 1], so that Chernoff's bound holds for it as for a count.
    has_several_rows = set_size > 1
    differing_share = (
        1.0 - n_agreeing_pairs[has_several_rows] / n_pairs[has_several_rows]
    )
    n_differing = float(differing_share.sum())

    rows = predictions.take(first_row[has_several_rows])
    agreement_as_given = (rows.probs**2).sum(axis=1)
    agreement_recalibrated = (recalibrated(rows) ** 2).sum(axis=1)
    agreement = np.maximum(agreement_as_given, agreement_recalibrated)
    expected = float((1.0 - agreement).sum())
    if n_differing >= expected:
        return False
    log_bound = n_differing - expected
    if n_differing > 0:
        log_bound += n_differing * math.log(expected / n_differing)
    return log_bound < math.log(chance)


def number_equal_rows(predictions: Predictions) -> Codes | None:
    """Return a number for each row, the same for equal rows; None where all rows differ.

    Logits are compared where they were given: sure ones that differ may have equal probabilities.
    """
    table = predictions.probs if predictions.logits is None else predictions.logits
    keys = hash_rows(table)
    order = np.argsort(keys, kind="stable")
    same_key = keys[order[1:]] == keys[order[:-1]]
    if not same_key.any():
        return None
    # A key of 64 bits may be shared by chance: neighbours that share one are compared.
    later = np.flatnonzero(same_key) + 1
    equal = np.zeros(len(keys), dtype=bool)
    equal[later] = (table[order[later]] == table[order[later - 1]]).all(axis=1)
    if not equal.any():
        return None
    set_of_row = np.empty(len(keys), dtype=np.intp)
    set_of_row[order] = np.cumsum(~equal) - 1
    return set_of_row


def hash_rows(table: Floats) -> NDArray[np.uint64]:
    """Return a 64-bit key of each row, equal for equal rows.

    Each column is mixed in by a multiplication and a shift, as in MurmurHash: numbers such as 1/4
    have all but their first bits 0, which a multiplication alone would leave so.
    """
    multiplier = np.uint64(0x9E3779B97F4A7C15)
    shift = np.uint64(29)
    keys = np.zeros(len(table), dtype=np.uint64)
    # a single column of a wide table is one number of each page of memory
    n_at_once = 32
    for first in range(0, table.shape[1], n_at_once):
        columns = table[:, first : first + n_at_once].T.astype(np.float64, order="C")
        columns += 0.0  # -0.0 + 0.0 is 0.0
        for column in columns.view(np.uint64):
            keys ^= column
            keys *= multiplier
            keys ^= keys >> shift
    return keys
