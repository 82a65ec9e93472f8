"""`read_predictions`: the columns of a CSV or Parquet file -> `Predictions`.

In CSV files spaces around column names and labels do not count, and a label such as ``1.0`` means
the class ``1`` (a column of integers that once held a gap is written that way). A column without a
name, such as the index that pandas writes, is not a class unless `classes` says so.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import Any

from ._file_words import (
    Roles,
    in_file_words,
    label_hint,
    left_out_hint,
    prefix_hint,
    stray_hint,
    with_hint,
)
from ._frames import shorten
from ._labels import class_names
from ._predictions import Predictions
from ._probabilities import clean_probs
from ._rows import WeightKind
from ._source import Source, StrPath
from .exceptions import FileFormatError, InputError, MclloError

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
    names = _without(prefix, roles.numbers)
    try:
        table = _read_table(source, roles)
        values = table.select(roles.numbers).rename_columns(names)
        return Predictions.from_arrays(
            None if logits else values,
            _labels(source, table, label, names),
            logits=values if logits else None,
            baseline=baseline,
            sample_weight=None if weight is None else table.column(weight),
            weight_kind=weight_kind,
            groups=None if groups is None else table.column(groups),
            normalize=normalize,
            clip=clip,
        )
    except MclloError as error:
        raise _explained(error, source, roles, prefix, classes is None) from None


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
    names = _without(prefix, columns)
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


def _without(prefix: str, columns: Sequence[str]) -> list[str]:
    """Return the classes that columns stand for."""
    return [column.removeprefix(prefix) for column in columns if column.startswith(prefix)]


def _labels(source: Source, table: Any, label: str, names: Sequence[str]) -> Any:
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


def _explained(
    error: MclloError, source: Source, roles: Roles, prefix: str, by_default: bool
) -> MclloError:
    """Return the error in the words of the file, with the remedy that its labels suggest."""
    if isinstance(error, InputError):
        place = "" if error.row is None else source.place(error.row)
        error = in_file_words(error, place, roles)
    message = str(error)
    if not re.search("sums to|in column|hold numbers|contains .* not a class", message):
        return error
    names = _without(prefix, roles.numbers)
    labels = _distinct_labels(source, roles, names)
    if by_default:
        hint = stray_hint(names, labels, message) or prefix_hint(roles.numbers, labels)
    else:
        hint = left_out_hint(names, _without(prefix, source.columns), labels)
    if "contains" in message:
        hint = hint or label_hint(names, labels)
    error.args = (with_hint(message, hint),)
    return error


def _distinct_labels(source: Source, roles: Roles, names: list[str]) -> list[str]:
    """Return the labels that occur, as text; none where they cannot be read."""
    from pyarrow import compute

    assert roles.label is not None
    try:
        labels = _labels(source, source.read([], [roles.label]), roles.label, names)
    except MclloError:
        return []
    return [str(label) for label in compute.unique(labels).to_pylist() if label is not None]
