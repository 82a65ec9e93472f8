"""What is wrong with a file, in its own words: columns and lines for arrays and rows.

What the validator refuses is said in `FileWords`, with the remedy that the labels of the file
suggest. Remedies name arguments of `read_predictions`, such as ``classes=``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..._validation.frames import MAX_DISTINCT_LABELS, prefix_hint, stray_hint
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
from .read_options import Roles
from .source import Source

MAX_LABELS_ONE_BY_ONE = 100_000
"""Labels that are looked through one by one: pyarrow's way takes a tenth of a second to load."""


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
        names = {"y": "label", "sample_weight": "weight", "groups": "groups", "by": "by"}
        return getattr(self.roles, names[name]) if name in names else None

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
        found = self.column(name) if column is None else numbers[min(column, len(numbers) - 1)]
        empty = isinstance(value, float) and math.isnan(value)
        shown = "an empty cell or NaN" if empty else show_number(value)
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
    if isinstance(error, InputError):
        error = in_file_words(error, source, roles)
        if (
            source.manner.percent
            and error.rule == SUM_RULE
            and abs(100.0 * error.value - 1.0) < MAX_ROUNDING_ROW_ERROR
        ):
            shares = Phrase("They are shares already: leave {} out.", Option("percent", True))
            return error.but(remedy=shares)
    of_label = isinstance(error, InputError) and error.argument == "y" and error.rule == CLASS_RULE
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
    left_out = (word for word in labels if word not in classes and word in known)
    says = "Add {!r}, which is a label, to {}."
    return next((Phrase(says, word, Option("classes")) for word in left_out), None)


def label_hint(classes: Sequence[str], labels: Sequence[str]) -> Phrase | None:
    """Return why labels and columns do not meet, and what to do about it.

    Where all of `labels`, perhaps those of the first rows only, are classes, nothing is known.
    """
    numbers = 0 < len(labels) <= MAX_DISTINCT_LABELS and all(label.isdigit() for label in labels)
    if numbers and not any(name.isdigit() for name in classes):
        return Phrase("The labels are numbers and the columns names; write the same in both")
    known, any_case = set(classes), {name.lower() for name in classes}
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
        labels = labels_in(source, source.read([], [roles.label]), roles.label, names)
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
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    whole = whole if whole.type == pa.string() else whole.cast(pa.string())
    drops = source.manner.drops
    if len(whole) <= MAX_LABELS_ONE_BY_ONE:
        words = [word for word in dict.fromkeys(whole.to_pylist()) if word is not None]
        if clean_labels(words, names, drops) == words:
            return whole
    encoded = whole.dictionary_encode()
    words = encoded.dictionary.to_pylist()
    meant = clean_labels(words, names, drops)
    if meant == words:
        return whole  # making an array out of a list loads pandas
    return pa.array(meant, pa.string()).take(encoded.indices)


def no_rows(source: Source) -> FileFormatError:
    """Return the error of a table that has only a header."""
    return FileFormatError(
        f"{source.name} must have at least one row; it has only a header. Check what wrote it."
    )
