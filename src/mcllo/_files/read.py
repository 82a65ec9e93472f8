"""`read_predictions`: the columns of a CSV or Parquet file -> `Predictions`.

In CSV files spaces around column names do not count, and labels are read as they are meant
(`_files/csv_text`). A column without a name, such as the index that pandas writes, is not a class
unless `classes` says so.

What the validator refuses is said in `FileWords`, with the remedy that the labels of the file
suggest. Remedies name arguments of `read_predictions`, such as ``classes=``.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .._ground.files import StrPath
from .._input.by import clean_by
from .._input.frames import shorten
from .._input.labels import A_CLASS, class_names
from .._input.predictions import Predictions
from .._input.probabilities import clean_probs
from .._input.weights import WeightKind
from ..exceptions import (
    PYTHON,
    FileFormatError,
    InputError,
    MclloError,
    Option,
    Phrase,
    Words,
    show_number,
)
from .csv_text import clean_labels, is_index
from .source import Source

MOST_NAMES = 12
"""Longest list of columns that a remedy spells out."""
MOST_LABELS = 1000
"""Distinct labels above which the label column is no label column."""


@dataclass(frozen=True)
class Roles:
    """Which column of a file plays which part; `numbers` are those of the classes, in order."""

    numbers: Sequence[str]
    label: str | None = None
    weight: str | None = None
    groups: str | None = None
    by: str | None = None


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
        found = self.column(name) if column is None else self.roles.numbers[column]
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


def read_predictions(
    path: StrPath,
    *,
    label: str,
    classes: Sequence[Hashable] | None = None,
    baseline: Hashable | None = None,
    weight: str | None = None,
    weight_kind: WeightKind = "frequency",
    groups: str | None = None,
    by: str | None = None,
    prefix: str = "",
    logits: bool = False,
    normalize: bool = False,
    clip: float | None = None,
) -> Predictions:
    """Read predictions and labels from a CSV or Parquet file.

    Parameters
    ----------
    path : path-like
        The file; ``-`` is standard input. Gzipped CSV is read too.
    label : str
        Column with the labels that came true.
    classes : sequence, optional
        The classes: columns with probabilities, `prefix` left out. Default: every column that
        begins with `prefix`, but `label`, `weight`, `groups`, `by` and columns without a name.
    weight : str, optional
        Column with row weights; `weight_kind` says what they mean.
    groups : str, optional
        Column with the group of each row.
    by : str, optional
        Column with the subgroup of each row, which `assess` then looks at one by one.
    prefix : str
        What stands before a class in the name of its column: ``"p_"`` for columns ``p_cat, p_dog``
        and labels ``cat, dog``.
    logits : bool
        The columns hold logits instead of probabilities.
    baseline, weight_kind, normalize, clip
        As in `Predictions.from_arrays`.

    Raises
    ------
    FileFormatError
        When the file cannot be read or lacks a column.
    InputError
        When its values break a rule; the message names the line and the column.
    """
    source = Source(path)
    roles = find_roles(source, label, classes, prefix, weight=weight, groups=groups, by=by)
    names = without_prefix(prefix, roles.numbers)
    try:
        others = [column for column in (label, groups, by) if column is not None]
        table = source.read([*roles.numbers, *([] if weight is None else [weight])], others)
        if table.num_rows == 0:
            raise FileFormatError(
                f"{source.name} must have at least one row; it has only a header. "
                "Check what wrote it."
            )
        values = table.select(roles.numbers).rename_columns(names)
        return Predictions.from_arrays(
            None if logits else values,
            labels_in(source, table, label, names),
            logits=values if logits else None,
            baseline=baseline,
            sample_weight=None if weight is None else table.column(weight),
            weight_kind=weight_kind,
            groups=None if groups is None else table.column(groups),
            by=None if by is None else clean_by(table.column(by), table.num_rows, by),
            normalize=normalize,
            clip=clip,
        )
    except MclloError as error:
        raise explained(error, source, roles, prefix, classes is None) from None


def read_probs(
    path: StrPath,
    *,
    label: str | None = None,
    classes: Sequence[Hashable] | None = None,
    prefix: str = "",
    normalize: bool = False,
) -> tuple[Any, list[str]]:
    """Read the class columns alone: clean probabilities, and the classes they stand for."""
    source = Source(path)
    columns = class_columns(source, classes, prefix, [] if label is None else [label])
    source.require(columns, "class column")
    names = without_prefix(prefix, columns)
    try:
        values = source.read(columns).rename_columns(names)
        return clean_probs(values, columns=names, normalize=normalize).probs, names
    except InputError as error:
        raise in_file_words(error, source, Roles(columns)) from None


def find_roles(
    source: Source,
    label: str,
    classes: Sequence[Hashable] | None,
    prefix: str,
    *,
    weight: str | None = None,
    groups: str | None = None,
    by: str | None = None,
) -> Roles:
    """Return which columns to use; refuse when one is missing or would be used twice."""
    aside = [label]
    source.require(aside, "label column")
    parts = ((weight, "weight column"), (groups, "group column"), (by, "subgroup column"))
    for column, part in parts:
        if column is not None:
            source.require([column], part)
            aside.append(column)
    numbers = class_columns(source, classes, prefix, aside)
    if not numbers:
        rule, remedy = "name at least two columns", Phrase("Leave {} out.", Option("classes"))
        raise InputError(argument="classes", rule=rule, value=Phrase("none"), remedy=remedy)
    source.require(numbers, "class column")
    used = [*aside, *numbers]
    for column in aside:
        if used.count(column) > 1:
            options = map(Option, ("label", "weight", "groups", "by", "classes"))
            among = Phrase("{}, {}, {}, {} and {}", *options)
            raise InputError(
                Phrase("a column must play one part; {!r} is named twice among {}.", column, among),
                column=column,
                remedy="Name another.",
            )
    return Roles(numbers, label, weight, groups, by)


def class_columns(
    source: Source, classes: Sequence[Hashable] | None, prefix: str, aside: Sequence[str]
) -> list[str]:
    """Return the columns of the classes; when none are named, all that begin with `prefix`."""
    if classes is not None:
        return [f"{prefix}{name}" for name in class_names(classes)]
    columns = [
        column
        for column in source.columns
        if column.startswith(prefix)
        and column not in aside
        and not is_index(column.removeprefix(prefix))
    ]
    if len(columns) < 2:
        which = f"beginning with {prefix!r} " if prefix else ""
        remedy = " For two classes add the column 1 - p of the other class." if columns else ""
        raise FileFormatError(
            f"{source.name} must have at least two class columns {which}beside the label, one for "
            f"each class; got {shorten(columns)} of {shorten(source.columns)}.{remedy}"
        )
    return columns


def without_prefix(prefix: str, columns: Sequence[str]) -> list[str]:
    """Return the classes that columns stand for."""
    return [column.removeprefix(prefix) for column in columns if column.startswith(prefix)]


def labels_in(source: Source, table: Any, label: str, names: Sequence[str]) -> Any:
    """Return the labels of a table; those of a CSV file as they are meant."""
    column = table.column(label)
    return clean_labels(column, names) if source.kind == "csv" else column


def explained(
    error: MclloError, source: Source, roles: Roles, prefix: str, by_default: bool
) -> MclloError:
    """Return the error in the words of the file, with the remedy that its labels suggest."""
    if isinstance(error, InputError):
        error = in_file_words(error, source, roles)
    of_label = isinstance(error, InputError) and error.argument == "y" and error.rule == A_CLASS
    names = without_prefix(prefix, roles.numbers)
    suspects = _suspects(error, roles, names)
    if not (of_label or suspects):
        return error
    labels = _distinct_labels(source, roles, names)
    hint = None
    if by_default:
        hint = stray_hint(names, labels, suspects) or prefix_hint(roles.numbers, labels)
    elif left_out := left_out_hint(names, without_prefix(prefix, source.columns), labels):
        return error.but(remedy=left_out)
    if of_label:
        hint = hint or label_hint(names, labels)
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


def stray_hint(
    columns: Sequence[str], labels: Sequence[str], suspects: Sequence[str]
) -> Phrase | None:
    """Return how to leave out a column that no label names, if one is among the suspects.

    Examples
    --------
    >>> print(stray_hint(["id", "cat", "dog"], ["dog", "cat"], ["id"]))
    If 'id' is not a class, pass classes=['cat', 'dog']
    """
    known = set(labels)
    classes = [column for column in columns if column in known]
    strays = [column for column in suspects if column not in known]
    if len(classes) < 2 or not strays or len(known) > MOST_LABELS:
        return None
    if len(classes) > MOST_NAMES:
        chosen = Phrase("choose the columns that are with {}", Option("classes"))
    else:
        chosen = Phrase("pass {}", Option("classes", classes))
    return Phrase("If {!r} is not a class, {}", strays[0], chosen)


def left_out_hint(
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
    numbers = 0 < len(labels) <= MOST_LABELS and all(label.isdigit() for label in labels)
    if numbers and not any(name.isdigit() for name in classes):
        return Phrase("The labels are numbers and the columns names; write the same in both")
    known, any_case = set(classes), {name.lower() for name in classes}
    others = [label for label in labels if label not in known]
    if others and all(label.lower() in any_case for label in others):
        return Phrase("Labels and columns differ in upper and lower case; write them alike")
    return None


def prefix_hint(columns: Sequence[str], labels: Sequence[str]) -> Phrase | None:
    """Return a remedy when every label is a column's name but for what stands before or after it.

    Examples
    --------
    >>> print(prefix_hint(["p_cat", "p_dog"], ["cat", "dog"]))
    The columns are labels with 'p_' before them; pass prefix='p_'
    """
    if not labels or len(labels) > MOST_LABELS:
        return None
    known, first = set(columns), labels[0]
    for column in columns:
        before, after = column.removesuffix(first), column.removeprefix(first)
        if before != column and before and all(before + label in known for label in labels):
            passed = Option("prefix", before)
            return Phrase("The columns are labels with {!r} before them; pass {}", before, passed)
        if after != column and after and all(label + after in known for label in labels):
            return Phrase("The columns are labels with {!r} after them; rename them", after)
    return None


def _distinct_labels(source: Source, roles: Roles, names: list[str]) -> list[str]:
    """Return the labels that occur, as text; none where they cannot be read."""
    from pyarrow import compute

    assert roles.label is not None
    try:
        labels = labels_in(source, source.read([], [roles.label]), roles.label, names)
    except MclloError:
        return []
    return [str(label) for label in compute.unique(labels).to_pylist() if label is not None]
