"""Rows in which something is missing: left out where that is asked for, and counted.

A row has a gap where a probability or logit, its label, weight, group or subgroup is None, NaN,
pandas' NA or NaT, or masked. All columns lose the same rows, so that those which are left still
belong together.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._utils.formatting import format_count
from .._utils.statements import Statement
from ..exceptions import InputError
from .arguments import RowSubgroups
from .frames import as_matrix, column_or_table
from .labels import is_missing

Mask = NDArray[np.bool_]


def check_missing_rule(missing: object) -> None:
    """Refuse a rule for rows with gaps that is none."""
    if missing not in ("refuse", "drop"):
        rule = "be 'refuse' or 'drop'"
        raise InputError(argument="missing", rule=rule, value=missing)


def dropped_rows_statement(n_dropped: int, n_rows: int, first: str) -> Statement:
    """Say how many rows were left out for their gaps, and where the first of them stands."""
    verb = "row was" if n_dropped == 1 else "rows were"
    text = (
        f"{format_count(n_dropped)} of {format_count(n_rows)} {verb} dropped for missing values "
        f"(the first: {first})."
    )
    numbers = {"n_dropped": n_dropped, "n_rows": n_rows}
    return Statement("note.missing", text, "doubt", numbers)


def drop_rows_with_gaps(
    tables: dict[str, Any],
    columns: dict[str, Any],
    classes: Sequence[Hashable] | None,
) -> tuple[dict[str, Any], dict[str, Any], Any, tuple[Statement, ...]]:
    """Return tables, columns and classes without rows that have a gap, and what is to be said.

    Tables of the names "probs" and "logits" become arrays; the names of a frame's columns are then
    the classes. Nothing is changed where there is no gap, or where numbers of rows differ, which
    is for the validator to say.

    Examples
    --------
    >>> probs = [[0.7, 0.3], [float("nan"), 0.4], [0.2, 0.8]]
    >>> made = drop_rows_with_gaps({"probs": probs}, {"y": ["a", "b", None]}, None)
    >>> made[0]["probs"].tolist(), made[1]["y"].tolist(), str(made[3][0])
    ([[0.7, 0.3]], ['a'], '2 of 3 rows were dropped for missing values (the first: row 1).')
    """
    given = {name: table for name, table in tables.items() if table is not None}
    read = {name: as_matrix(table, name, classes) for name, table in given.items()}
    beside = {}
    for name, values in columns.items():
        if values is not None and not isinstance(values, RowSubgroups):
            beside[name] = column_or_table(values, name)
    gaps = [_rows_with_gaps(values) for values, _ in read.values()]
    gaps += [_rows_with_gaps(values) for values in beside.values()]
    n_rows = len(gaps[0])
    has_gap = np.zeros(n_rows, dtype=bool)
    for gap in gaps:
        if len(gap) != n_rows:
            return tables, columns, classes, ()
        has_gap |= gap
    n_dropped = int(has_gap.sum())
    if n_dropped == 0:
        return tables, columns, classes, ()
    kept = np.flatnonzero(~has_gap)
    if len(kept) == 0:
        message = "a row must have nothing missing; all {n_rows:,} have a gap."
        raise InputError(message, argument="probs", values={"n_rows": n_rows})

    for _, names in read.values():
        classes = names if classes is None and names is not None else classes
    kept_tables = dict(tables)
    for name, (values, _) in read.items():
        kept_tables[name] = values[kept]
    kept_columns = dict(columns)
    for name, values in beside.items():
        kept_columns[name] = values[kept]
    by = columns.get("by")
    if isinstance(by, RowSubgroups):  # the column of a frame, read already
        kept_columns["by"] = by.take(kept)
    first = f"row {int(np.argmax(has_gap))}"
    said = dropped_rows_statement(n_dropped, n_rows, first)
    return kept_tables, kept_columns, classes, (said,)


def _rows_with_gaps(values: NDArray[Any]) -> Mask:
    """Return which rows of a column or a table hold a gap."""
    if values.dtype.kind in "fc":
        is_gap = np.isnan(values)
    elif values.dtype.kind == "M":
        is_gap = np.isnat(values)
    elif values.dtype.kind == "O":
        flat = [is_missing(value) for value in values.ravel().tolist()]
        is_gap = np.array(flat, dtype=bool).reshape(values.shape)
    else:
        is_gap = np.zeros(values.shape, dtype=bool)
    rows: Mask = is_gap if is_gap.ndim == 1 else is_gap.any(axis=1)
    return rows
