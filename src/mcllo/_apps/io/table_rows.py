"""What the columns of a file hold, once it is known which part each plays.

=============  ===================================================================================
values         of the classes, an array where all columns are floats
one column     with ``positive``: x, the probability of one label of two, gives (x, 1 - x); a logit
               gives (x, 0)
labels         as they are meant
gaps           a row with one, in any column that plays a part, is dropped and counted where that is
               asked for; otherwise the validator refuses it
=============  ===================================================================================

Tables may be a whole file or one block of it: rows are looked at one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._utils.statements import Statement, without_repeats
from ..._validation.frames import shorten
from ...exceptions import InputError, MclloError, Option, Phrase
from .file_errors import distinct_labels, explain_error, labels_in, without_prefix
from .read_options import Roles, dropped_rows, one_column
from .source import Source

TRUE_WORDS = ("yes", "y", "true", "t", "1", "1.0")
"""Labels that say that what a column is named after came true."""


class SelectedRows(NamedTuple):
    """Rows of a table: class values, labels, the table, and which of `n_rows` rows they are.

    `kept` is None where none was dropped.
    """

    values: Any
    labels: Any
    table: Any
    kept: NDArray[np.intp] | None
    n_rows: int

    @property
    def n_dropped(self) -> int:
        """Rows left out for their gaps."""
        return 0 if self.kept is None else self.n_rows - len(self.kept)

    @property
    def first_dropped(self) -> int:
        """The number of the first of them."""
        kept = np.zeros(0, dtype=np.intp) if self.kept is None else self.kept
        gone = np.flatnonzero(kept != np.arange(len(kept)))
        return int(gone[0]) if len(gone) else len(kept)

    def column(self, name: str | None) -> Any:
        """Return a column of the table."""
        return None if name is None else self.table.column(name)


class TableRows:
    """The rows of files with the same columns; `roles` as `find_roles` found them."""

    def __init__(
        self,
        sources: Sequence[Source],
        roles: Roles,
        prefix: str,
        *,
        by_default: bool,
        logits: bool = False,
        data_check_rows: int | None = None,
    ) -> None:
        self.sources, self.roles, self.prefix = sources, roles, prefix
        self.by_default, self.logits, self.data_check_rows = by_default, logits, data_check_rows
        self.names = without_prefix(prefix, roles.numbers)
        if roles.positive:
            self.names = self._two_names()
            self.roles = roles.but(names=self.names)
        self._gaps: dict[tuple[int, int], tuple[int, int, int]] = {}

    @property
    def label(self) -> str:
        """The column of the labels."""
        assert self.roles.label is not None
        return self.roles.label

    def _two_names(self) -> list[str]:
        """Return the label that the one column is the probability of, and the other one."""
        positive = self.sources[0].manner.positive or ""
        words = list(
            dict.fromkeys(
                word
                for source in self.sources
                for word in distinct_labels(self._first(source), self.roles, [positive])
            )
        )
        if positive not in words and self.roles.numbers[0] == f"{self.prefix}{positive}":
            yes = [word for word in words if word.lower() in TRUE_WORDS]
            positive = yes[0] if len(yes) == 1 else positive
        others = [word for word in words if word != positive]
        if len(words) > 2:
            raise InputError(
                f"column {self.label!r} must hold two labels where one column holds the "
                f"probabilities; it holds {shorten(words)}.",
                remedy="Give each class a column of its own, or join labels until there are two.",
            )
        if len(others) > 1:
            both = Phrase("{} or {}", *(Option("positive", word) for word in others))
            rule = f"be a label of column {self.label!r}, which holds {shorten(words)}"
            remedy = Phrase("Say {}.", both)
            raise InputError(argument="positive", rule=rule, value=positive, remedy=remedy)
        return [positive, others[0] if others else f"not {positive}"]

    def _first(self, source: Source) -> Source:
        return source if self.data_check_rows is None else source.first_rows(self.data_check_rows)

    def read(self, source: Source) -> SelectedRows:
        """Return all rows of a file."""
        try:
            table = source.read(self.roles.numbers, self.roles.text, self.roles.plain)
        except MclloError as error:
            raise self.explained(error, source) from None
        return self.understood(source, table)

    def understood(self, source: Source, table: Any, done: int = 0) -> SelectedRows:
        """Return what a table holds whose first row is row `done` of its file."""
        n_rows, kept = table.num_rows, None
        labels = labels_in(source, table, self.label, self.names)
        if source.manner.drops:
            kept = self._complete(table, labels)
            table, labels = table.take(kept), labels.take(kept)
        values = values_in(table, self.roles.numbers, self.roles.numbers)
        if self.roles.positive:
            values = two_columns(values, self.logits)
        elif not isinstance(values, np.ndarray):
            values = values.rename_columns(self.names)
        found = SelectedRows(values, labels, table, kept, n_rows)
        if found.n_dropped:
            place = self.sources.index(source), done
            self._gaps[place] = found.n_dropped, n_rows, done + found.first_dropped
        return found

    def _complete(self, table: Any, labels: Any) -> NDArray[np.intp]:
        """Return the numbers of the rows in which nothing is missing."""
        aside = [name for name in self.roles.columns if name != self.label]
        full = complete_rows(table.select(aside)) & np.asarray(labels.is_valid())
        return np.flatnonzero(full)

    def explained(
        self, error: MclloError, source: Source, found: SelectedRows | None = None, done: int = 0
    ) -> MclloError:
        """Return an error about rows that were `found` from row `done` on in the file's words.

        Of a long file only the first labels help to find the remedy.
        """
        if isinstance(error, InputError) and error.row is not None:
            kept = None if found is None else found.kept
            row = error.row if kept is None else int(kept[error.row])
            error = error.but(row=row + done)
        return explain_error(error, self._first(source), self.roles, self.prefix, self.by_default)

    def notes(self, n_rows: int | None = None) -> tuple[Statement, ...]:
        """Return what was assumed and dropped; `n_rows` are the rows that are left, if known."""
        said = [note for source in self.sources for note in source.assumed]
        if self.roles.positive:
            said.append(one_column(self.roles.numbers[0], *self.names))
        if self._gaps:
            place, (_, _, first) = min(self._gaps.items())
            n_dropped = sum(n for n, _, _ in self._gaps.values())
            total = sum(n for _, n, _ in self._gaps.values())
            total = total if n_rows is None else n_rows + n_dropped
            where = self.sources[place[0]].place(first)
            said.append(dropped_rows(n_dropped, total, where))
        return without_repeats(said)


def complete_rows(table: Any) -> NDArray[np.bool_]:
    """Whether nothing is missing in each row; NaN is missing too."""
    from pyarrow import compute

    full = np.ones(table.num_rows, dtype=bool)
    for column in table.columns:
        full &= ~np.asarray(compute.is_null(column, nan_is_null=True))
    return full


def two_columns(values: Any, logits: bool) -> Any:
    """Return (x, 1 - x) of probabilities x, (x, 0) of logits; anything else as it is."""
    if not isinstance(values, np.ndarray):
        values = np.asarray(values.column(0))[:, None]
    if values.dtype.kind not in "fiu":
        return values
    x = values[:, 0].astype(np.float64)
    return np.column_stack([x, np.zeros_like(x) if logits else 1.0 - x])


def values_in(table: Any, columns: Sequence[str], names: Sequence[str]) -> Any:
    """Return columns of one float type as an array, class by class in memory; others as a table.

    NumPy takes what has no gaps by itself: pyarrow's own conversion loads pandas.
    """
    import pyarrow as pa

    chosen = table.select(columns)
    kinds = {column.type for column in chosen.columns}
    if kinds not in ({pa.float32()}, {pa.float64()}):
        return chosen.rename_columns(names)
    values = np.empty((len(columns), table.num_rows), kinds.pop().to_pandas_dtype())
    for row, column in zip(values, chosen.columns, strict=True):
        start = 0
        for chunk in column.chunks:
            gaps = chunk.null_count > 0
            part = chunk.to_numpy(zero_copy_only=False) if gaps else np.from_dlpack(chunk)
            row[start : start + len(chunk)] = part
            start += len(chunk)
    return values.T
