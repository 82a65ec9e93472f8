"""What the columns of a file hold, once it is known which part each plays.

=============  ===================================================================================
values         of the classes, an array where all columns are floats
one column     with ``positive``: x, the probability of one label of two, gives (x, 1 - x); a logit
               gives (x, 0)
labels         as they are meant
gaps           a row with one, in any column that plays a part, is dropped and counted where that is
               asked for; otherwise the validator refuses it
errors         in the words of the file, `FileWords`: columns and lines for arrays and rows, with
               the remedy that the labels of the file suggest. Remedies name arguments of
               `read_predictions`, such as ``classes=``
=============  ===================================================================================

Tables may be a whole file or one block of it: rows are looked at one by one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._utils.statements import Statement, without_repeats
from ..._validation.frames import MAX_DISTINCT_LABELS, prefix_hint, shorten, stray_hint
from ..._validation.labels import CLASS_RULE
from ..._validation.probabilities import MAX_ROUNDING_ROW_ERROR, SUM_RULE
from ...exceptions import (
    PYTHON,
    FileFormatError,
    InputError,
    MclloError,
    Option,
    Phrase,
    Words,
    show_number,
)
from .csv_text import clean_labels
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
        if self.kept is None:
            return 0
        n_kept = len(self.kept)
        moved = np.flatnonzero(self.kept != np.arange(n_kept))
        return int(moved[0]) if len(moved) else n_kept

    def column(self, name: str | None) -> Any:
        """Return a column of the table."""
        return None if name is None else self.table.column(name)


class Gaps(NamedTuple):
    """How many of so many rows were dropped, and the first of them in its file."""

    n_dropped: int
    n_rows: int
    first: int


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
        self.sources = sources
        self.roles = roles
        self.prefix = prefix
        self.by_default = by_default
        self.logits = logits
        self.data_check_rows = data_check_rows
        self.names = without_prefix(prefix, roles.numbers)
        if roles.positive:
            self.names = self._two_names()
            self.roles = roles.but(names=self.names)
        self._gaps: dict[tuple[int, int], Gaps] = {}  # by file and first row of the table

    @property
    def label(self) -> str:
        """The column of the labels."""
        assert self.roles.label is not None
        return self.roles.label

    def _two_names(self) -> list[str]:
        """Return the label that the one column is the probability of, and the other one."""
        positive = self.sources[0].manner.positive or ""
        seen: dict[str, None] = {}  # in order of appearance
        for source in self.sources:
            seen |= dict.fromkeys(distinct_labels(self._first(source), self.roles, [positive]))
        words = list(seen)
        if positive not in words and self.roles.numbers[0] == f"{self.prefix}{positive}":
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
            roles = self.roles
            table = source.read(roles.numbers, roles.text, roles.plain)
        except MclloError as error:
            raise self.explained(error, source) from None
        return self.understood(source, table)

    def understood(self, source: Source, table: Any, done: int = 0) -> SelectedRows:
        """Return what a table holds whose first row is row `done` of its file."""
        n_rows = table.num_rows
        kept = None
        labels = labels_in(source, table, self.label, self.names)
        if source.manner.drops:
            # labels by themselves: words such as NA are gaps among them, which the table shows not
            aside = [name for name in self.roles.columns if name != self.label]
            is_complete = complete_rows(table.select(aside))
            is_complete &= np.asarray(labels.is_valid())
            kept = np.flatnonzero(is_complete)
            table = table.take(kept)
            labels = labels.take(kept)
        columns = self.roles.numbers
        values = values_in(table, columns, columns)
        if self.roles.positive:
            values = two_columns(values, self.logits)
        elif not isinstance(values, np.ndarray):
            values = values.rename_columns(self.names)
        found = SelectedRows(values, labels, table, kept, n_rows)
        if found.n_dropped:
            first = done + found.first_dropped
            place = (self.sources.index(source), done)
            self._gaps[place] = Gaps(found.n_dropped, n_rows, first)
        return found

    def explained(
        self, error: MclloError, source: Source, found: SelectedRows | None = None, done: int = 0
    ) -> MclloError:
        """Return an error about rows that were `found` from row `done` on in the file's words.

        Of a long file only the first labels help to find the remedy.
        """
        if isinstance(error, InputError) and error.row is not None:
            row = error.row
            if found is not None and found.kept is not None:
                row = int(found.kept[row])
            error = error.but(row=row + done)
        return explain_error(error, self._first(source), self.roles, self.prefix, self.by_default)

    def notes(self, n_rows: int | None = None) -> tuple[Statement, ...]:
        """Return what was assumed and dropped; `n_rows` are the rows that are left, if known."""
        said = [note for source in self.sources for note in source.assumed]
        if self.roles.positive:
            said.append(one_column(self.roles.numbers[0], *self.names))
        if self._gaps:
            (file, _), first_gaps = min(self._gaps.items())
            n_dropped = sum(gaps.n_dropped for gaps in self._gaps.values())
            if n_rows is None:
                total = sum(gaps.n_rows for gaps in self._gaps.values())
            else:
                total = n_rows + n_dropped  # tables without gaps were not counted
            where = self.sources[file].place(first_gaps.first)
            said.append(dropped_rows(n_dropped, total, where))
        return without_repeats(said)


def complete_rows(table: Any) -> NDArray[np.bool_]:
    """Whether nothing is missing in each row; NaN is missing too."""
    from pyarrow import compute

    is_complete = np.ones(table.num_rows, dtype=bool)
    for column in table.columns:
        is_gap = compute.is_null(column, nan_is_null=True)
        is_complete &= ~np.asarray(is_gap)
    return is_complete


def two_columns(values: Any, logits: bool) -> Any:
    """Return (x, 1 - x) of probabilities x, (x, 0) of logits; anything else as it is."""
    if not isinstance(values, np.ndarray):
        values = np.asarray(values.column(0))[:, None]
    if values.dtype.kind not in "fiu":
        return values
    x = values[:, 0].astype(np.float64)
    other = np.zeros_like(x) if logits else 1.0 - x
    return np.column_stack([x, other])


def values_in(table: Any, columns: Sequence[str], names: Sequence[str]) -> Any:
    """Return columns of one float type as an array, class by class in memory; others as a table."""
    import pyarrow as pa

    chosen = table.select(columns)
    kinds = {column.type for column in chosen.columns}
    if kinds not in ({pa.float32()}, {pa.float64()}):
        return chosen.rename_columns(names)
    dtype = kinds.pop().to_pandas_dtype()
    values = np.empty((len(columns), table.num_rows), dtype)
    for row, column in zip(values, chosen.columns, strict=True):
        start = 0
        for chunk in column.chunks:
            end = start + len(chunk)
            if chunk.null_count > 0:
                row[start:end] = chunk.to_numpy(zero_copy_only=False)
            else:
                row[start:end] = np.from_dlpack(chunk)  # pyarrow's own conversion loads pandas
            start = end
    return values.T


@dataclass(frozen=True)
class FileWords(Words):
    """Columns and lines of a file, for arrays and their rows.

    Examples
    --------
    >>> words = FileWords("line 19 of f.csv", Roles(["cat", "dog"], "y"))
    >>> words.cell("probs", 17, 0, 1.2), words.argument("y")
    ("1.2 in column 'cat', line 19 of f.csv", "column 'y'")
    """

    place: str
    roles: Roles
    others: Words = PYTHON

    @property
    def kinds(self) -> tuple[str, ...]:
        """Whose words these are."""
        return ("file", *self.others.kinds)

    def over(self, words: Words) -> Words:
        """Return these words for rows and columns, and `words` for everything else."""
        return replace(self, others=words)

    def column(self, name: str) -> str | None:
        """Return the column that an array was read from; None for probabilities."""
        role = {"y": "label", "sample_weight": "weight", "groups": "groups", "by": "by"}.get(name)
        return None if role is None else getattr(self.roles, role)

    def argument(self, name: str) -> str:
        """Return what an array is called in the file."""
        if name in ("probs", "logits"):
            return "probabilities" if name == "probs" else name
        column = self.column(name)
        return self.others.argument(name) if column is None else f"column {column!r}"

    def option(self, name: str, value: Any = ...) -> str:
        """Return an argument as the other words do."""
        return self.others.option(name, value)

    def row(self, row: int) -> str:
        """Return the place of the row."""
        return self.place

    def cell(self, name: str, row: int, column: Any, value: Any) -> str:
        """Return a number and where it stands."""
        numbers = self.roles.numbers
        found = self.column(name)
        if column is not None:  # with `positive` the one column stands for two classes
            found = numbers[min(column, len(numbers) - 1)]
        is_empty = isinstance(value, float) and math.isnan(value)
        shown = "an empty cell or NaN" if is_empty else show_number(value)
        return f"{shown} in column {found!r}, {self.place}"

    def gap(self, name: str, row: int) -> str:
        """Return that nothing stands there."""
        return f"column {self.column(name)!r} is empty in {self.place}"


def in_file_words(error: InputError, source: Source, roles: Roles) -> InputError:
    """Return `error` with columns for arrays and lines for rows."""
    place = "" if error.row is None else source.place(error.row)
    return error.but(place=FileWords(place, roles))


def explain_error(
    error: MclloError, source: Source, roles: Roles, prefix: str, by_default: bool
) -> MclloError:
    """Return the error in the words of the file, with the remedy that its labels suggest."""
    of_label = False
    if isinstance(error, InputError):
        error = in_file_words(error, source, roles)
        are_percentages = source.manner.percent and error.rule == SUM_RULE
        if are_percentages and abs(100.0 * error.value - 1.0) < MAX_ROUNDING_ROW_ERROR:
            shares = Phrase("They are shares already: leave {} out.", Option("percent", True))
            return error.but(remedy=shares)
        of_label = error.argument == "y" and error.rule == CLASS_RULE
    names = list(roles.names) or without_prefix(prefix, roles.numbers)
    suspects = _suspects(error, roles, names)
    if roles.positive or not (of_label or suspects):
        return error
    labels = distinct_labels(source, roles, names)
    hint = None
    if of_label and source.arrays is not None and source.arrays.nameless:
        hint = Phrase("Columns of arrays have no names: give them with {}", Option("classes"))
    elif by_default:
        hint = stray_hint(names, labels, suspects) or prefix_hint(roles.numbers, labels)
    elif left_out := check_left_out(names, without_prefix(prefix, source.columns), labels):
        return error.but(remedy=left_out)
    if of_label:
        hint = hint or label_hint(names, labels)
    if by_default:
        hint = hint or two_outcomes_hint(names, labels)
    if hint is not None:
        among = f" (by the labels among the first {source.most_rows:,} rows)" if source.cut else ""
        return error.but(remedy=Phrase("{}{}.", hint, among))
    return error.but(remedy="Correct that label, or add a column for it.") if of_label else error


def _suspects(error: MclloError, roles: Roles, names: Sequence[str]) -> list[str]:
    """Return the columns, `prefix` left out, that may be to blame: one, or all of a row."""
    column = getattr(error, "column", None)
    if getattr(error, "argument", None) in ("probs", "logits"):
        if column is None:
            return [] if getattr(error, "row", None) is None else list(names)
        return [names[column] if isinstance(column, int) else column]
    known = dict(zip(roles.numbers, names, strict=True))
    return [known[column]] if column in known else []


def two_outcomes_hint(columns: Sequence[str], labels: Sequence[str]) -> Phrase | None:
    """Return how to name the one column that is the probability of one label of two.

    Examples
    --------
    >>> print(two_outcomes_hint(["date", "chance"], ["yes", "no"]))
    If one column is the probability of 'yes', pass positive='yes' and name it with classes=
    """
    if len(labels) != 2 or set(labels) & set(columns):
        return None
    says = "If one column is the probability of {!r}, pass {} and name it with {}"
    return Phrase(says, labels[0], Option("positive", labels[0]), Option("classes"))


def check_left_out(
    classes: Sequence[str], known: Sequence[str], labels: Sequence[str]
) -> Phrase | None:
    """Return which label is a column too, and yet not among the classes."""
    for word in labels:
        if word not in classes and word in known:
            return Phrase("Add {!r}, which is a label, to {}.", word, Option("classes"))
    return None


def label_hint(classes: Sequence[str], labels: Sequence[str]) -> Phrase | None:
    """Return why labels and columns do not meet, and what to do about it.

    Where all of `labels`, perhaps those of the first rows only, are classes, nothing is known.
    """
    are_few = 0 < len(labels) <= MAX_DISTINCT_LABELS
    are_numbers = are_few and all(label.isdigit() for label in labels)
    if are_numbers and not any(name.isdigit() for name in classes):
        return Phrase("The labels are numbers and the columns names; write the same in both")
    known = set(classes)
    any_case = {name.lower() for name in classes}
    others = [label for label in labels if label not in known]
    if others and all(label.lower() in any_case for label in others):
        return Phrase("Labels and columns differ in upper and lower case; write them alike")
    return None


def distinct_labels(source: Source, roles: Roles, names: list[str]) -> list[str]:
    """Return the labels that occur, as text; none where they cannot be read."""
    import pyarrow as pa
    from pyarrow import compute

    assert roles.label is not None
    try:
        table = source.read([], [roles.label])
        labels = labels_in(source, table, roles.label, names)
        found = compute.unique(labels).to_pylist()
    except (MclloError, pa.ArrowException):
        return []
    return [str(label) for label in found if label is not None]


def without_prefix(prefix: str, columns: Sequence[str]) -> list[str]:
    """Return the classes that columns stand for."""
    return [column.removeprefix(prefix) for column in columns if column.startswith(prefix)]


def labels_in(source: Source, table: Any, label: str, names: Sequence[str]) -> Any:
    """Return the labels of a table, still as pyarrow's; those that people typed as they are meant.

    Where rows with gaps are dropped, a label such as NA that is no class is a gap.
    """
    import pyarrow as pa

    column = table.column(label)
    if pa.types.is_nested(column.type):
        found = Phrase("{} in column {!r} of {}", column.type, label, source.name)
        raise InputError(argument="y", rule="hold one plain label per row", value=found)
    if not source.is_text:
        return column
    whole = column
    if isinstance(column, pa.ChunkedArray):
        whole = column.combine_chunks()
    if whole.type != pa.string():
        whole = whole.cast(pa.string())
    drops = source.manner.drops
    if len(whole) <= 100_000:  # of so few Python is faster: pyarrow's way takes 0.1 s to load
        distinct = dict.fromkeys(whole.to_pylist())
        words = [word for word in distinct if word is not None]
        if clean_labels(words, names, drops) == words:
            return whole
    encoded = whole.dictionary_encode()
    words = encoded.dictionary.to_pylist()
    meant = clean_labels(words, names, drops)
    if meant == words:
        return whole  # to make an array out of a list loads pandas
    return pa.array(meant, pa.string()).take(encoded.indices)


def no_rows(source: Source) -> FileFormatError:
    """Return the error of a table that has only a header."""
    return FileFormatError(
        f"{source.name} must have at least one row; it has only a header. Check what wrote it."
    )
