"""What a row carries beside its probabilities and label: weight, group, or a vector of counts.

==============  ==============================================================================
frequency       row i stands for ``w_i`` rows that looked the same; n is the sum of the weights
survey          row i was drawn with a chance proportional to ``1 / w_i``; estimates use the
                weights, standard errors and tests need the sandwich
importance      row i matters ``w_i`` times as much as a row of weight 1, say because the rows that
                count are others than those at hand; treated as survey weights are
groups          rows of one group (an animal, a patient, a video) may depend on each other
counts          row i was labelled ``k_ij`` times as class j: it becomes a row of frequency
                ``k_ij`` for each class with ``k_ij > 0``
==============  ==============================================================================

Frequencies count, so they are whole numbers wherever something is tested (`refuse_fractions`): a
weight of 0.4 says how much a row matters, not how many rows there were, and what takes it for a
count gets its variance wrong. Calibrators and metrics learn and average with any weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from .._utils.parallel import check_memory
from .._utils.results import Codes, Floats
from ..exceptions import InputError
from .arguments import RowSubgroups, clean_by
from .frames import as_numbers, column_or_table
from .labels import is_missing

WeightKind = Literal["frequency", "survey", "importance"]
WEIGHT_KINDS = get_args(WeightKind)
MAX_WEIGHT = 1e100
"""A round number: sums over the rows, and their products with log odds, stay finite."""
MIN_LARGEST_WEIGHT = 1e-100
"""A round number: sums of squares of weights stay above 0."""


@dataclass(frozen=True, eq=False)
class RowFacts:
    """Weights with their meaning, and the group of each row as 0 .. n_groups - 1."""

    weight: Floats | None = None
    weight_kind: WeightKind = "frequency"
    groups: Codes | None = None
    by: RowSubgroups | None = None

    @property
    def counts(self) -> bool:
        """Whether a weight says how many rows there were; without weights each is one."""
        return self.weight is None or self.weight_kind == "frequency"

    @property
    def first_fraction(self) -> int | None:
        """The first row that is said to count, and not a whole number of times."""
        if self.weight is None or not self.counts:
            return None
        bad = self.weight != np.floor(self.weight)
        return int(np.argmax(bad)) if bad.any() else None

    def n_observations(self, n_samples: int) -> float:
        """How many rows there were: the sum of the weights where they count rows."""
        if self.weight is None or not self.counts:
            return float(n_samples)
        return float(self.weight.sum())

    def times(self, n_columns: int) -> Codes:
        """Return how often each row counts, to write out so many columns."""
        assert self.weight is not None
        return count_row_repeats(self.weight, n_columns)

    def refuse_fractions(self) -> None:
        """Refuse to test rows that are said to count 0.4 times."""
        row = self.first_fraction
        if row is not None and self.weight is not None:
            raise fractional_weight_error(float(self.weight[row]), row)

    def refuse_dependence(self) -> None:
        """Refuse rows for a test of rows that are independent, and each count as one or more."""
        self.refuse_fractions()
        if self.counts and self.groups is None:
            return
        found = "in groups, whose rows may depend on each other"
        if not self.counts:
            found = f"under {self.weight_kind} weights, which are no counts"
        raise InputError(
            f"rows must be independent here; these are {found}.",
            remedy="Use assess, calibration_test or robust_test, which allow for that.",
        )

    def take(self, rows: Codes, times: Floats | None = None) -> RowFacts:
        """Return the facts of the chosen rows, their weight multiplied by `times`.

        Groups are numbered anew, so that their largest number counts them.
        """
        weight = None
        if self.weight is not None:
            weight = self.weight[rows]
        if times is not None:
            weight = times if weight is None else weight * times
        groups = None
        if self.groups is not None:
            _, numbers = np.unique(self.groups[rows], return_inverse=True)
            groups = numbers.ravel().astype(np.intp)
        by = None
        if self.by is not None:
            by = self.by.take(rows)
        return RowFacts(weight, self.weight_kind, groups, by)


def clean_row_facts(
    n_samples: int,
    sample_weight: Any = None,
    weight_kind: Any = "frequency",
    groups: Any = None,
    by: Any = None,
) -> RowFacts:
    """Validate weights, their kind, groups and subgroups."""
    if weight_kind not in WEIGHT_KINDS:
        rule = "be 'frequency', 'survey' or 'importance'"
        raise InputError(argument="weight_kind", rule=rule, value=weight_kind)
    return RowFacts(
        weight=clean_weight(sample_weight, n_samples),
        weight_kind=weight_kind,
        groups=clean_groups(groups, n_samples),
        by=clean_by(by, n_samples),
    )


def is_noncount_weight(weight_kind: str | None) -> bool:
    """Whether such weights say how much a row matters, not how many rows there were."""
    return weight_kind not in (None, "", "frequency")


def clean_weight(weight: Any, n_samples: int) -> Floats | None:
    """Validate weights: one finite number >= 0 for each row, not all 0."""
    if weight is None:
        return None
    values = as_numbers(
        column_or_table(weight, "sample_weight"), "sample_weight"
    ).astype(np.float64)
    if values.shape != (n_samples,):
        raise _wrong_length_error(
            "sample_weight", f"one number per row ({n_samples})", values
        )
    bad = ~(np.isfinite(values) & (values >= 0.0))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            argument="sample_weight",
            rule="be finite and not negative",
            value=float(values[row]),
            row=row,
            remedy="Drop those rows or give them the weight 0.",
        )
    if float(values.max()) > MAX_WEIGHT:
        row = int(np.argmax(values > MAX_WEIGHT))
        raise InputError(
            argument="sample_weight",
            rule=f"be at most {MAX_WEIGHT:g}",
            value=float(values[row]),
            row=row,
            remedy="Divide all weights by the largest.",
        )
    if not values.any():
        raise zero_weight_error()
    if float(values.max()) < MIN_LARGEST_WEIGHT:
        row = int(np.argmax(values))
        raise InputError(
            argument="sample_weight",
            rule=f"hold a weight of at least {MIN_LARGEST_WEIGHT:g}",
            value=float(values[row]),
            row=row,
            remedy="Divide all weights by the largest.",
        )
    return values


def count_row_repeats(weight: Floats, n_columns: int) -> Codes:
    """Return how often each row is written out; refuse more numbers than the memory holds."""
    total = float(weight.sum())
    message = f"{total:,.0f} rows written out, as often as their weight says, take"
    remedy = "Pass {weight_kind:'importance'}, or divide the counts."
    # float64, times 4: rows written out, what is made of them, and the labels drawn for them
    check_memory(4.0 * 8.0 * n_columns * total, message, remedy)
    return weight.astype(np.intp)


def zero_weight_error() -> InputError:
    """Return the error of weights that are all 0."""
    rule = "not be zero everywhere"
    return InputError(
        argument="sample_weight", rule=rule, remedy="Give some row a weight."
    )


def fractional_weight_error(weight: float, row: int | None = None) -> InputError:
    """Return the error of a weight that is said to be a count, and is none."""
    return InputError(
        argument="sample_weight",
        rule="hold whole numbers where weights count rows",
        value=weight,
        row=row,
        remedy="If they make up for unequal chances of selection, pass {weight_kind:'survey'}; if "
        "rows matter more or less for another reason, {weight_kind:'importance'}: both are tested "
        "with the robust variance.",
    )


def _wrong_length_error(name: str, rule: str, values: NDArray[Any]) -> InputError:
    return InputError(argument=name, rule=f"hold {rule}", found=f"shape {values.shape}")


def clean_groups(groups: Any, n_samples: int) -> Codes | None:
    """Return each row's group as a number 0 .. n_groups - 1; none may be missing."""
    if groups is None:
        return None
    names = column_or_table(groups, "groups")
    if names.shape != (n_samples,):
        raise _wrong_length_error("groups", f"one name per row ({n_samples})", names)
    if names.dtype.kind in "biu":
        _, codes = np.unique(names, return_inverse=True)
        codes = codes.astype(np.intp)
    else:
        # in order of appearance, as names of several types have no order
        number_of: dict[Any, int] = {}
        numbers = []
        for row, name in enumerate(names.tolist()):
            if is_missing(name):
                rule = "every row needs a group; {gap}."
                raise InputError(
                    rule, argument="groups", row=row, remedy="Drop those rows."
                )
            numbers.append(number_of.setdefault(name, len(number_of)))
        codes = np.array(numbers, dtype=np.intp)
    if codes.max() == 0:
        raise InputError(
            "{argument} must name at least two groups; all rows are in one.",
            argument="groups",
            remedy="Leave {groups} out.",
        )
    return codes


def row_numbers(rows: Any, n_samples: int) -> Codes:
    """Return row numbers from numbers or a mask."""
    picked = column_or_table(rows, "rows")
    if picked.dtype == bool and picked.shape == (n_samples,):
        picked = np.flatnonzero(picked)
    if picked.size == 0:
        raise InputError("rows must choose at least one row; got none.")
    plain = picked.ndim == 1 and picked.dtype.kind in "iu"
    if not plain or picked.min() < -n_samples or picked.max() >= n_samples:
        raise InputError(
            f"rows must be row numbers below {n_samples}, or a mask of {n_samples} truth values; "
            f"got {picked.dtype} of shape {picked.shape}"
            + (f" from {picked.min()} to {picked.max()}." if plain else ".")
        )
    return picked.astype(np.intp)


def is_count_table(y: Any) -> bool:
    """Whether `y` is a table of whole numbers >= 0 of which some row holds more than one label."""
    table = column_or_table(y, "y")
    if table.ndim != 2 or table.size == 0 or table.dtype.kind not in "iuf":
        return False
    with np.errstate(invalid="ignore"):  # comparisons with NaN
        is_count = (table >= 0) & (table == np.floor(table)) & np.isfinite(table)
    if not is_count.all():
        return False
    return bool((table.sum(axis=1) > 1).any())  # else it is one-hot


def expand_count_table(counts: NDArray[Any]) -> tuple[Codes, Codes, Floats]:
    """Return (row, column, count) of every positive count, row by row."""
    empty = counts.sum(axis=1) == 0
    if empty.any():
        rule = (
            "each row of label counts must hold at least one label; {row} holds none."
        )
        row = int(np.argmax(empty))
        raise InputError(rule, argument="y", row=row, remedy="Drop that row.")
    rows, columns = np.nonzero(counts)
    return rows, columns, counts[rows, columns].astype(np.float64)
