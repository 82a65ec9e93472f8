"""What the columns of a file hold, once it is known which part each plays.

=============  ===================================================================================
values         of the classes, an array where all columns are floats
one column     with ``positive``: x, the probability of one label of two, gives (x, 1 - x); a logit
               gives (x, 0)
labels         as they are meant
gaps           a row with one, in any column that plays a part, is dropped and counted where that is
               asked for; otherwise the validator refuses it
errors         name columns for arrays and lines for rows (`locate_in_file`), with the remedy that
               the labels of the file suggest
=============  ===================================================================================

Tables may be a whole file or one block of it: rows are looked at one by one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._utils.statements import Statement, drop_repeated_statements
from ..._validation.frames import (
    MAX_DISTINCT_LABELS,
    column_of_label,
    extra_column_hint,
    has_affixes,
    label_of_column,
    prefix_hint,
    shorten,
)
from ..._validation.labels import CLASS_RULE
from ..._validation.missing_rows import dropped_rows_statement
from ..._validation.probabilities import (
    MAX_ROUNDING_ROW_ERROR,
    SUM_RULE,
    check_n_classes,
)
from ...exceptions import (
    DataLocation,
    FileFormatError,
    Hint,
    InputError,
    MclloError,
    number_or_repr,
)
from .csv_text import clean_labels
from .read_options import ColumnRoles, single_column_statement
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
        if self.kept is None:
            return 0
        n_kept = len(self.kept)
        moved = np.flatnonzero(self.kept != np.arange(n_kept))
        return int(moved[0]) if len(moved) else n_kept

    def column(self, name: str | None) -> Any:
        """Return a column of the table."""
        return None if name is None else self.table.column(name)


class DroppedRows(NamedTuple):
    """How many of so many rows were dropped, and the first of them in its file."""

    n_dropped: int
    n_rows: int
    first: int


class TableRows:
    """The rows of files with the same columns; `roles` as `find_column_roles` found them."""

    def __init__(
        self,
        sources: Sequence[Source],
        roles: ColumnRoles,
        prefix: str,
        *,
        by_default: bool,
        logits: bool = False,
        data_check_rows: int | None = None,
    ) -> None:
        self.sources = sources
        self.roles = roles
        self.prefix = prefix
        self.by_default = by_default
        self.logits = logits
        self.data_check_rows = data_check_rows
        self._tables: dict[int, Any] = {}  # read already, by the number of the file
        check_n_classes(len(roles.numbers))  # before so many columns are read
        self.names = strip_prefix(prefix, roles.numbers)
        if roles.positive:
            self.names = self._find_two_classes()
            self.roles = roles.with_changes(names=self.names)
        self._gaps: dict[
            tuple[int, int], DroppedRows
        ] = {}  # by file and first row of the table

    @property
    def label(self) -> str:
        """The column of the labels."""
        assert self.roles.label is not None
        return self.roles.label

    def _find_two_classes(self) -> list[str]:
        """Return the label that the one column is the probability of, and the other one."""
        positive = self.sources[0].read_options.positive or ""
        seen: dict[str, None] = {}  # in order of appearance
        for source in self.sources:
            seen |= dict.fromkeys(self._distinct_labels(source, [positive]))
        words = list(seen)
        if positive not in words and self.roles.numbers[0] == column_of_label(
            self.prefix, positive
        ):
            # the column is named after what came true, and the labels say whether it did
            yes = [word for word in words if word.lower() in TRUE_WORDS]
            if len(yes) == 1:
                positive = yes[0]
        others = [word for word in words if word != positive]
        if len(words) > 2:
            raise InputError(
                f"column {self.label!r} must hold two labels where one column holds the "
                f"probabilities; it holds {shorten(words)}.",
                remedy="Give each class a column of its own, or join labels until there are two.",
            )
        if len(others) > 1:
            raise InputError(
                argument="positive",
                rule="be a label of column {column!r}, which holds {labels}",
                value=positive,
                remedy="Say {positive:{first!r}} or {positive:{second!r}}.",
                values={
                    "column": self.label,
                    "labels": shorten(words),
                    "first": others[0],
                    "second": others[1],
                },
            )
        return [positive, others[0] if others else f"not {positive}"]

    def _distinct_labels(self, source: Source, names: list[str]) -> list[str]:
        """Return the labels of a file; where all its rows are wanted, keep them for `read`."""
        if self.data_check_rows is not None:
            return read_distinct_labels(self._first(source), self.roles, names)
        try:
            table = self._read_columns(source)
            found = extract_labels(source, table, self.label, names)
        except MclloError:
            return []  # `read` says what is wrong
        self._tables[self.sources.index(source)] = table
        return distinct_column_words(found)

    def _read_columns(self, source: Source) -> Any:
        """Return the columns of a file that play a part; what was read already is given away."""
        table = self._tables.pop(self.sources.index(source), None)
        if table is not None:
            return table
        return source.read(self.roles.numbers, self.roles.text, self.roles.plain)

    def _first(self, source: Source) -> Source:
        return (
            source
            if self.data_check_rows is None
            else source.first_rows(self.data_check_rows)
        )

    def read(self, source: Source) -> SelectedRows:
        """Return all rows of a file."""
        try:
            table = self._read_columns(source)
        except MclloError as error:
            raise self.explain_error_in_rows(error, source) from None
        return self.parse_table(source, table)

    def parse_table(
        self, source: Source, table: Any, row_offset: int = 0
    ) -> SelectedRows:
        """Return what a table holds whose first row is row `row_offset` of its file."""
        n_rows = table.num_rows
        kept = None
        labels = extract_labels(source, table, self.label, self.names)
        if source.read_options.drops_missing:
            # labels by themselves: words such as NA are gaps among them, which the table shows not
            other_columns = [name for name in self.roles.columns if name != self.label]
            is_complete = find_complete_rows(table.select(other_columns))
            is_complete &= np.asarray(labels.is_valid())
            kept = np.flatnonzero(is_complete)
            table = table.take(kept)
            labels = labels.take(kept)
        columns = self.roles.numbers
        values = extract_class_values(table, columns, columns)
        if self.roles.positive:
            values = add_other_class(values, self.logits)
        elif not isinstance(values, np.ndarray):
            values = values.rename_columns(self.names)
        found = SelectedRows(values, labels, table, kept, n_rows)
        if found.n_dropped:
            first = row_offset + found.first_dropped
            place = (self.sources.index(source), row_offset)
            self._gaps[place] = DroppedRows(found.n_dropped, n_rows, first)
        return found

    def explain_error_in_rows(
        self,
        error: MclloError,
        source: Source,
        found: SelectedRows | None = None,
        row_offset: int = 0,
    ) -> MclloError:
        """Return an error about rows from row `row_offset` on in the file's words.

        Of a long file only the first labels help to find the remedy.
        """
        if isinstance(error, InputError) and error.row is not None:
            row = error.row
            if found is not None and found.kept is not None:
                row = int(found.kept[row])
            error = error.but(row=row + row_offset)
        return explain_error(
            error, self._first(source), self.roles, self.prefix, self.by_default
        )

    def notes(self, n_rows: int | None = None) -> tuple[Statement, ...]:
        """Return what was assumed and dropped; `n_rows` are the rows that are left, if known."""
        said = [note for source in self.sources for note in source.assumptions]
        if self.roles.positive:
            said.append(single_column_statement(self.roles.numbers[0], *self.names))
        if self._gaps:
            (file, _), first_gaps = min(self._gaps.items())
            n_dropped = sum(gaps.n_dropped for gaps in self._gaps.values())
            if n_rows is None:
                total = sum(gaps.n_rows for gaps in self._gaps.values())
            else:
                total = n_rows + n_dropped  # tables without gaps were not counted
            where = self.sources[file].locate_row(first_gaps.first)
            said.append(dropped_rows_statement(n_dropped, total, where))
        return drop_repeated_statements(said)


def find_complete_rows(table: Any) -> NDArray[np.bool_]:
    """Whether nothing is missing in each row; NaN is missing too."""
    from pyarrow import compute

    is_complete = np.ones(table.num_rows, dtype=bool)
    for column in table.columns:
        is_gap = compute.is_null(column, nan_is_null=True)
        is_complete &= ~np.asarray(is_gap)
    return is_complete


def add_other_class(values: Any, logits: bool) -> Any:
    """Return (x, 1 - x) of probabilities x, (x, 0) of logits; anything else as it is."""
    if not isinstance(values, np.ndarray):
        values = np.asarray(values.column(0))[:, None]
    if values.dtype.kind not in "fiu":
        return values
    x = values[:, 0].astype(np.float64)
    other = np.zeros_like(x) if logits else 1.0 - x
    return np.column_stack([x, other])


def extract_class_values(
    table: Any, columns: Sequence[str], names: Sequence[str]
) -> Any:
    """Return columns of one float type as an array, class by class in memory; others as a table."""
    import pyarrow as pa

    chosen = table.select(columns)
    kinds = {column.type for column in chosen.columns}
    if kinds not in ({pa.float32()}, {pa.float64()}):
        return chosen.rename_columns(names)
    # not to_pandas_dtype(), for which some versions of pyarrow import pandas
    dtype = np.float32 if kinds == {pa.float32()} else np.float64
    values = np.empty((len(columns), table.num_rows), dtype)
    for row, column in zip(values, chosen.columns, strict=True):
        start = 0
        for chunk in column.chunks:
            end = start + len(chunk)
            if chunk.null_count > 0:
                row[start:end] = chunk.to_numpy(zero_copy_only=False)
            else:
                row[start:end] = np.from_dlpack(
                    chunk
                )  # pyarrow's own conversion loads pandas
            start = end
    return values.T


FILE_PHRASES = {
    "count_from_0": "If labels count the columns from 1, write them from 0.",
    "divide_percentages": "For percentages pass {percent:True}; for scores before the softmax pass "
    "{logits:True}.",
    "drop_row": "Drop or correct that row, or pass {missing:'drop'}.",
    "drop_unlabelled": "Drop those rows, or pass {missing:'drop'}.",
    "name_labels_from_0": "If labels count the columns from 0, write names of classes.",
    "name_labels_from_1": "If labels count the columns from 1, write names of classes.",
    "round_to_share": "For rounding errors write 0 or 1 there.",
    "swapped_labels": "Choose the column with the labels with {label}.",
}
"""Remedies for rows of a file, in the place of those for arrays."""
COLUMN_ROLES = {"y": "label", "sample_weight": "weight", "groups": "groups", "by": "by"}
"""The part that the column of an array plays; probabilities have one for each class."""


def locate_in_file(error: InputError, row: str, roles: ColumnRoles) -> DataLocation:
    """Return columns for arrays, and the line for the row that an error is about.

    Examples
    --------
    >>> error = InputError(argument="probs", rule="lie in [0, 1]", value=1.2, row=17, column=0)
    >>> place = locate_in_file(error, "line 19 of f.csv", ColumnRoles(["cat", "dog"], "y"))
    >>> print(error.but(place=place))
    probabilities must lie in [0, 1]; got 1.2 in column 'cat', line 19 of f.csv.
    """
    fields = {"row": row}
    argument = error.argument or ""
    column = (
        getattr(roles, COLUMN_ROLES[argument]) if argument in COLUMN_ROLES else None
    )
    if argument in ("probs", "logits"):
        fields["argument"] = "probabilities" if argument == "probs" else argument
    elif column is not None:
        fields["argument"] = f"column {column!r}"
    if error.row is not None:
        fields["gap"] = f"column {column!r} is empty in {row}"
        if error.found is None:
            fields["found"] = f"{_describe_cell(error, column, roles)}, {row}"
    return DataLocation(row, fields, FILE_PHRASES)


def _describe_cell(error: InputError, column: str | None, roles: ColumnRoles) -> str:
    """Return a number and its column."""
    if (
        error.column is not None
    ):  # with `positive` the one column stands for two classes
        assert isinstance(error.column, int)
        column = roles.numbers[min(error.column, len(roles.numbers) - 1)]
    is_empty = isinstance(error.value, float) and math.isnan(error.value)
    shown = "an empty cell or NaN" if is_empty else number_or_repr(error.value)
    return f"{shown} in column {column!r}"


def locate_error_in_file(
    error: InputError, source: Source, roles: ColumnRoles
) -> InputError:
    """Return `error` with columns for arrays and lines for rows."""
    row = "" if error.row is None else source.locate_row(error.row)
    return error.but(place=locate_in_file(error, row, roles))


def explain_error(
    error: MclloError, source: Source, roles: ColumnRoles, prefix: str, by_default: bool
) -> MclloError:
    """Return the error in the words of the file, with the remedy that its labels suggest."""
    of_label = False
    if isinstance(error, InputError):
        error = locate_error_in_file(error, source, roles)
        are_percentages = source.read_options.percent and error.rule == SUM_RULE
        if are_percentages and abs(100.0 * error.value - 1.0) < MAX_ROUNDING_ROW_ERROR:
            return error.but(
                remedy="They are shares already: leave {percent:True} out."
            )
        of_label = error.argument == "y" and error.rule == CLASS_RULE
    names = list(roles.names) or strip_prefix(prefix, roles.numbers)
    suspects = _find_suspect_columns(error, roles, names)
    if roles.positive or not (of_label or suspects):
        return error
    labels = read_distinct_labels(source, roles, names)
    hint = None
    if of_label and source.arrays is not None and source.arrays.nameless:
        hint = Hint("Columns of arrays have no names: give them with {classes}", {})
    elif by_default:
        hint = extra_column_hint(names, labels, suspects)
        if hint is None and not _is_rounding_error(error):
            hint = prefix_hint(roles.numbers, labels)
    else:
        left_out = left_out_class_hint(
            names, strip_prefix(prefix, source.columns), labels
        )
        if left_out is not None:
            return error.with_remedy(left_out.template, **left_out.values)
    # the more particular hint comes first, and one is enough
    if of_label:
        hint = hint or label_mismatch_hint(names, labels)
    if by_default:
        hint = hint or two_labels_hint(names, labels)
    if hint is not None:
        among = (
            f" (by the labels among the first {source.most_rows:,} rows)"
            if source.cut
            else ""
        )
        return error.with_remedy(f"{hint.template}{among}.", **hint.values)
    if of_label:
        return error.but(remedy="Correct that label, or add a column for it.")
    return error


def _is_rounding_error(error: MclloError) -> bool:
    """Whether a row misses the sum 1 by rounding: then its columns are the right ones."""
    if not isinstance(error, InputError) or error.rule != SUM_RULE:
        return False
    return bool(abs(error.value - 1.0) < MAX_ROUNDING_ROW_ERROR)


def _find_suspect_columns(
    error: MclloError, roles: ColumnRoles, names: Sequence[str]
) -> list[str]:
    """Return the columns, `prefix` left out, that may be to blame: one, or all of a row."""
    column = getattr(error, "column", None)
    if getattr(error, "argument", None) not in ("probs", "logits"):
        known = dict(zip(roles.numbers, names, strict=True))
        return [known[column]] if column in known else []
    if column is not None:
        return [names[column] if isinstance(column, int) else column]
    is_of_row = getattr(error, "row", None) is not None
    return list(names) if is_of_row else []


def two_labels_hint(columns: Sequence[str], labels: Sequence[str]) -> Hint | None:
    """Return how to name the one column that is the probability of one label of two.

    Examples
    --------
    >>> print(two_labels_hint(["date", "chance"], ["yes", "no"]))
    If one column is the probability of 'yes', pass positive='yes' and name it with classes=
    """
    if len(labels) != 2 or set(labels) & set(columns):
        return None
    says = (
        "If one column is the probability of {label!r}, pass {positive:{label!r}} and name it with "
        "{classes}"
    )
    return Hint(says, {"label": labels[0]})


def left_out_class_hint(
    classes: Sequence[str], known: Sequence[str], labels: Sequence[str]
) -> Hint | None:
    """Return which label is a column too, and yet not among the classes."""
    for word in labels:
        if word not in classes and word in known:
            return Hint(
                "Add {label!r}, which is a label, to {classes}.", {"label": word}
            )
    return None


def label_mismatch_hint(classes: Sequence[str], labels: Sequence[str]) -> Hint | None:
    """Return why labels and columns do not meet, and what to do about it.

    Where all of `labels`, perhaps those of the first rows only, are classes, nothing is known.
    """
    are_few = 0 < len(labels) <= MAX_DISTINCT_LABELS
    are_numbers = are_few and all(label.isdigit() for label in labels)
    if are_numbers and not any(name.isdigit() for name in classes):
        return Hint(
            "The labels are numbers and the columns names; write the same in both", {}
        )
    from_0 = {str(k) for k in range(len(classes))}
    from_1 = {str(k + 1) for k in range(len(classes))}
    if are_numbers and set(classes) == from_0 and set(labels) <= from_1:
        return Hint(
            "The labels seem to count from 1 and the columns from 0: subtract 1 from each label",
            {},
        )
    known = set(classes)
    any_case = {name.lower() for name in classes}
    others = [label for label in labels if label not in known]
    if others and all(label.lower() in any_case for label in others):
        return Hint(
            "Labels and columns differ in upper and lower case; write them alike", {}
        )
    return None


def read_distinct_labels(
    source: Source, roles: ColumnRoles, names: list[str]
) -> list[str]:
    """Return the labels that occur, as text; none where they cannot be read."""
    import pyarrow as pa

    assert roles.label is not None
    try:
        table = source.read([], [roles.label])
        return distinct_column_words(extract_labels(source, table, roles.label, names))
    except (MclloError, pa.ArrowException):
        return []


def distinct_column_words(labels: Any) -> list[str]:
    """Return the labels in a column, as text."""
    from pyarrow import compute

    return [
        str(label) for label in compute.unique(labels).to_pylist() if label is not None
    ]


def strip_prefix(prefix: str, columns: Sequence[str]) -> list[str]:
    """Return the classes that columns stand for."""
    return [
        label_of_column(prefix, column)
        for column in columns
        if has_affixes(prefix, column)
    ]


def extract_labels(source: Source, table: Any, label: str, names: Sequence[str]) -> Any:
    """Return the labels of a table, still as pyarrow's; those that people typed as they are meant.

    Where rows with gaps are dropped, a label such as NA that is no class is a gap.
    """
    import pyarrow as pa

    column = table.column(label)
    if pa.types.is_nested(column.type):
        found = f"{column.type} in column {label!r} of {source.name}"
        raise InputError(argument="y", rule="hold one plain label per row", found=found)
    if not source.is_text:
        return column
    whole = column
    if isinstance(column, pa.ChunkedArray):
        whole = column.combine_chunks()
    if whole.type != pa.string():
        whole = whole.cast(pa.string())
    drops_missing = source.read_options.drops_missing
    if (
        len(whole) <= 100_000
    ):  # of so few Python is faster: pyarrow's way takes 0.1 s to load
        distinct = dict.fromkeys(whole.to_pylist())
        words = [word for word in distinct if word is not None]
        if clean_labels(words, names, drops_missing) == words:
            return whole
    encoded = whole.dictionary_encode()
    words = encoded.dictionary.to_pylist()
    meant = clean_labels(words, names, drops_missing)
    if meant == words:
        return whole  # to make an array out of a list loads pandas
    return pa.array(meant, pa.string()).take(encoded.indices)


def no_rows_error(source: Source) -> FileFormatError:
    """Return the error of a table that has only a header."""
    return FileFormatError(
        f"{source.name} must have at least one row; it has only a header. Check what wrote it."
    )
