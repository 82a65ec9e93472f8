"""`read_predictions`: the columns of a CSV or Parquet file -> `Predictions`.

In CSV files spaces around column names and labels do not count, and a label such as ``1.0`` means
the class ``1`` (a column of integers that once held a gap is written that way). A column without a
name, such as the index that pandas writes, is not a class unless `classes` says so.

What the validator says about arrays, in the words of the file they came from.

=============================  ======================================================
``probs[17, 0]=1.2``           ``1.2 in column 'cat', line 19 of holdout.csv``
``row 17 sums to 0.99``        ``line 19 of holdout.csv sums to 0.99``
``y contains 'x' (row 17)``    ``column 'label' contains 'x' (line 19 of holdout.csv)``
``y[17] is missing``           ``column 'label' is empty in line 19 of holdout.csv``
=============================  ======================================================

Remedies name arguments of `read_predictions`, such as ``classes=``.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from .._input.frames import shorten
from .._input.labels import class_names
from .._input.predictions import Predictions
from .._input.probabilities import clean_probs
from .._input.weights import WeightKind
from ..exceptions import FileFormatError, InputError, MclloError
from .source import Source, StrPath

MOST_NAMES = 12
"""Longest list of columns that a remedy spells out."""
MOST_LABELS = 1000
"""Distinct labels above which the label column is no label column."""


@dataclass(frozen=True)
class Roles:
    """Which column of a file plays which part.

    Attributes
    ----------
    numbers : sequence of str
        Columns with probabilities or logits, in the order of the classes.
    label, weight, groups : str or None
        The other columns that are used.
    """

    numbers: Sequence[str]
    label: str | None = None
    weight: str | None = None
    groups: str | None = None


def in_file_words(error: InputError, place: str, roles: Roles) -> InputError:
    """Return `error` with columns for arrays and `place` (say, ``line 19 of f.csv``) for its row.

    Examples
    --------
    >>> error = InputError("probs must lie in [0, 1]; got probs[2, 0]=2. Drop it.", row=2)
    >>> print(in_file_words(error, "line 4 of f.csv", Roles(["cat", "dog"])))
    probabilities must lie in [0, 1]; got 2 in column 'cat', line 4 of f.csv. Drop it.
    """
    message = str(error)
    if error.row is not None:
        message = _placed(message, error.row, place, roles)
    message = re.sub(r"^probs\b|(?<=each row of )probs\b", "probabilities", message)
    for name, column in (
        ("y", roles.label),
        ("sample_weight", roles.weight),
        ("groups", roles.groups),
    ):
        if message.startswith((f"{name} must", f"{name} contains")):
            message = f"column {column!r}{message.removeprefix(name)}"
    swapped = r"[Ii]f probs and y are swapped, call with \(probs, y\)\."
    message = re.sub(swapped, "Choose the column with the labels with label=.", message)
    message = message.replace("pass np.clip(probs, 0, 1)", "write 0 or 1 there")
    return InputError(message, row=error.row)


def _placed(message: str, row: int, place: str, roles: Roles) -> str:
    """Replace every mention of the row by its place; add the place when there is no mention."""

    def cell(match: re.Match[str]) -> str:
        value = match["value"]
        found = "an empty cell or NaN" if value == "nan" else value
        return f"{found} in column {column_of(match)!r}, {place}"

    def column_of(match: re.Match[str]) -> str | None:
        if match["name"] in ("y", "groups"):
            return roles.label if match["name"] == "y" else roles.groups
        return roles.weight if match["j"] is None else roles.numbers[int(match["j"])]

    at = rf"\b(?P<name>probs|logits|y|sample_weight|groups)\[{row}(?:, (?P<j>\d+))?\]"
    placed = re.sub(at + r"=(?P<value>\S+?)(?=[.;,]?(?:\s|$))", cell, message)
    placed = re.sub(
        at + " is missing", lambda match: f"column {column_of(match)!r} is empty in {place}", placed
    )
    placed = re.sub(rf"\brow {row}\b(?! of)", lambda _: place, placed)
    return placed if placed != message else f"{message.rstrip('.')} ({place})."


def with_hint(message: str, hint: str) -> str:
    """Return the message with its remedy, the last sentence, replaced by a better one."""
    if not hint:
        return message
    rule = re.split(r"(?<=[.?]) (?=[A-Z])", message)[0]
    return f"{rule} {hint}"


def among_first(message: str, n_rows: int) -> str:
    """Return the message; a remedy that goes by the labels says how many rows they are from.

    Examples
    --------
    >>> print(among_first("got 'A'. Labels differ in case; write them alike.", 1000))
    got 'A'. Labels differ in case; write them alike (by the labels among the first 1,000 rows).
    """
    rule = re.split(r"(?<=[.?]) (?=[A-Z])", message)[0]
    if not re.search("is not a class|[Ll]abels", message.removeprefix(rule)):
        return message
    return f"{message.rstrip('.')} (by the labels among the first {n_rows:,} rows)."


def stray_hint(columns: Sequence[str], labels: Sequence[str], message: str) -> str:
    """Return how to leave out a column that no label names, when the message may be due to it."""
    known = set(labels)
    classes = [column for column in columns if column in known]
    strays = [column for column in columns if column not in known]
    if "sums to" not in message:
        strays = [column for column in strays if f"column {column!r}" in message]
    if len(classes) < 2 or not strays or len(known) > MOST_LABELS:
        return ""
    if len(classes) > MOST_NAMES:
        return f"If {strays[0]!r} is not a class, choose the columns that are with classes=."
    return f"If {strays[0]!r} is not a class, pass classes={classes!r}."


def left_out_hint(classes: Sequence[str], known: Sequence[str], labels: Sequence[str]) -> str:
    """Return which label is a column too, and yet not among the classes."""
    left_out = (label for label in labels if label not in classes and label in known)
    return next((f"Add {label!r}, which is a label, to classes=." for label in left_out), "")


def label_hint(classes: Sequence[str], labels: Sequence[str]) -> str:
    """Return why labels and columns do not meet, and what to do about it.

    Where all of `labels`, perhaps those of the first rows only, are classes, nothing is known.
    """
    numbers = 0 < len(labels) <= MOST_LABELS and all(label.isdigit() for label in labels)
    if numbers and not any(name.isdigit() for name in classes):
        return "The labels are numbers and the columns names; write the same in both."
    known, any_case = set(classes), {name.lower() for name in classes}
    others = [label for label in labels if label not in known]
    if others and all(label.lower() in any_case for label in others):
        return "Labels and columns differ in upper and lower case; write them alike."
    return "Correct that label, or add a column for it."


def prefix_hint(columns: Sequence[str], labels: Sequence[str]) -> str:
    """Return a remedy when every label is a column's name but for what stands before or after it.

    Examples
    --------
    >>> prefix_hint(["p_cat", "p_dog"], ["cat", "dog"])
    "The columns are labels with 'p_' before them; pass prefix='p_'."
    """
    if not labels or len(labels) > MOST_LABELS:
        return ""
    known, first = set(columns), labels[0]
    for column in columns:
        before, after = column.removesuffix(first), column.removeprefix(first)
        if before != column and before and all(before + label in known for label in labels):
            return f"The columns are labels with {before!r} before them; pass prefix={before!r}."
        if after != column and after and all(label + after in known for label in labels):
            return f"The columns are labels with {after!r} after them; rename them."
    return ""


PANDAS_INDEX = re.compile(r"(__index_level_\d+__)?")
WHOLE = re.compile(r"([+-]?\d+)\.0*")


def read_predictions(
    path: StrPath,
    *,
    label: str,
    classes: Sequence[Hashable] | None = None,
    baseline: Hashable | None = None,
    weight: str | None = None,
    weight_kind: WeightKind = "frequency",
    groups: str | None = None,
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
        begins with `prefix`, but `label`, `weight`, `groups` and columns without a name.
    weight : str, optional
        Column with row weights; `weight_kind` says what they mean.
    groups : str, optional
        Column with the group of each row.
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
    roles = find_roles(source, label, classes, prefix, weight=weight, groups=groups)
    names = without_prefix(prefix, roles.numbers)
    try:
        table = _read_table(source, roles)
        values = table.select(roles.numbers).rename_columns(names)
        return Predictions.from_arrays(
            None if logits else values,
            labels_in(source, table, label, names),
            logits=values if logits else None,
            baseline=baseline,
            sample_weight=None if weight is None else table.column(weight),
            weight_kind=weight_kind,
            groups=None if groups is None else table.column(groups),
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
    if classes is None:
        columns = default_columns(source, prefix, [] if label is None else [label])
    else:
        columns = [f"{prefix}{name}" for name in class_names(classes)]
    source.require(columns, "class column")
    names = without_prefix(prefix, columns)
    try:
        values = source.read(columns).rename_columns(names)
        return clean_probs(values, columns=names, normalize=normalize).probs, names
    except InputError as error:
        place = "" if error.row is None else source.place(error.row)
        raise in_file_words(error, place, Roles(columns)) from None


def find_roles(
    source: Source,
    label: str,
    classes: Sequence[Hashable] | None,
    prefix: str,
    *,
    weight: str | None = None,
    groups: str | None = None,
) -> Roles:
    """Return which columns to use; refuse when one is missing or would be used twice."""
    aside = [label]
    source.require(aside, "label column")
    for column, part in ((weight, "weight column"), (groups, "group column")):
        if column is not None:
            source.require([column], part)
            aside.append(column)
    if classes is None:
        numbers = default_columns(source, prefix, aside)
    else:
        numbers = [f"{prefix}{name}" for name in class_names(classes)]
    if not numbers:
        raise InputError("classes must name at least two columns; got none. Leave classes= out.")
    source.require(numbers, "class column")
    used = [*aside, *numbers]
    for column in aside:
        if used.count(column) > 1:
            raise InputError(
                f"a column must play one part; {column!r} is named twice among label=, weight=, "
                "groups= and classes=. Name another."
            )
    return Roles(numbers, label, weight, groups)


def default_columns(source: Source, prefix: str, aside: Sequence[str]) -> list[str]:
    """Return the class columns when none are named: all that begin with `prefix`."""
    columns = [
        column
        for column in source.columns
        if column.startswith(prefix)
        and column not in aside
        and not PANDAS_INDEX.fullmatch(column.removeprefix(prefix))
    ]
    if len(columns) < 2:
        which = f"beginning with {prefix!r} " if prefix else ""
        remedy = " For two classes add the column 1 - p of the other class." if columns else ""
        raise FileFormatError(
            f"{source.name} must have at least two class columns {which}beside the label, one for "
            f"each class; got {shorten(columns)} of {shorten(source.columns)}.{remedy}"
        )
    return columns


def clean_labels(labels: Any, names: Sequence[str]) -> Any:
    """Return text labels without spaces around them, and ``1`` for ``1.0`` where 1 is a class."""
    import pyarrow as pa

    encoded = labels.combine_chunks().dictionary_encode()
    known = set(names)
    words = [_clean(word, known) for word in encoded.dictionary.to_pylist()]
    return pa.array(words, pa.string()).take(encoded.indices)


def _clean(word: str, known: set[str]) -> str | None:
    if word in known:
        return word
    word = word.strip()
    whole = WHOLE.fullmatch(word)
    if word not in known and whole is not None and whole[1] in known:
        return whole[1]
    return word or None


def without_prefix(prefix: str, columns: Sequence[str]) -> list[str]:
    """Return the classes that columns stand for."""
    return [column.removeprefix(prefix) for column in columns if column.startswith(prefix)]


def labels_in(source: Source, table: Any, label: str, names: Sequence[str]) -> Any:
    column = table.column(label)
    return clean_labels(column, names) if source.kind == "csv" else column


def _read_table(source: Source, roles: Roles) -> Any:
    assert roles.label is not None
    weights = [] if roles.weight is None else [roles.weight]
    words = [roles.label] if roles.groups is None else [roles.label, roles.groups]
    table = source.read([*roles.numbers, *weights], words)
    if table.num_rows == 0:
        raise FileFormatError(
            f"{source.name} must have at least one row; it has only a header. Check what wrote it."
        )
    return table


def explained(
    error: MclloError, source: Source, roles: Roles, prefix: str, by_default: bool
) -> MclloError:
    """Return the error in the words of the file, with the remedy that its labels suggest."""
    if isinstance(error, InputError):
        place = "" if error.row is None else source.place(error.row)
        error = in_file_words(error, place, roles)
    message = str(error)
    if not re.search("sums to|in column|hold numbers|contains .* not a class", message):
        return error
    names = without_prefix(prefix, roles.numbers)
    labels = _distinct_labels(source, roles, names)
    if by_default:
        hint = stray_hint(names, labels, message) or prefix_hint(roles.numbers, labels)
    else:
        hint = left_out_hint(names, without_prefix(prefix, source.columns), labels)
    if "contains" in message:
        hint = hint or label_hint(names, labels)
    error.args = (with_hint(message, hint),)
    return error


def _distinct_labels(source: Source, roles: Roles, names: list[str]) -> list[str]:
    """Return the labels that occur, as text; none where they cannot be read."""
    from pyarrow import compute

    assert roles.label is not None
    try:
        labels = labels_in(source, source.read([], [roles.label]), roles.label, names)
    except MclloError:
        return []
    return [str(label) for label in compute.unique(labels).to_pylist() if label is not None]
