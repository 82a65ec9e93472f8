"""`read_predictions`: the columns of a file, or of several -> `Predictions`.

In CSV files and workbooks spaces around column names do not count, and labels are read as they are
meant (`_apps/io/csv_text`). A column without a name, such as the index that pandas writes, is not a
class unless `classes` says so. `_apps/io/table_rows` has what the columns then hold; what was
assumed on the way comes along as `Predictions.notes`.

How much memory the rows take is counted before they are read, by what a file unpacks to
(`check_rows_fit_memory`):

===========  ======================================================================================
rows         Parquet: its footer says. Text: its size over the mean line of its beginning; packed
             text is unpacked and counted, until there are too many. Arrow: its batches.
             Workbooks have a limit of their own
a row        8 bytes for each class and the label, and 64 for a label that is text
need         `MEMORY_FACTOR_OF_TABLE` of all rows, which is what reading and fitting take
limit        the memory that there is (`_utils/parallel`)
===========  ======================================================================================

`mcllo assess` and `mcllo fit` read large files in blocks and need no such room; everything else
reads them at once.
"""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack, get_type_hints

import numpy as np

from ..._utils.atomic_files import StrPath
from ..._utils.formatting import format_count
from ..._utils.parallel import available_memory, check_memory
from ..._validation.arguments import clean_by
from ..._validation.frames import (
    column_of_label,
    has_affixes,
    label_of_column,
    shorten,
)
from ..._validation.labels import as_class_list
from ..._validation.predictions import Predictions
from ..._validation.probabilities import clean_probs
from ..._validation.weights import WeightKind
from ...exceptions import FileFormatError, Hint, InputError, MclloError
from .csv_text import is_pandas_index
from .read_options import CellOptions, ColumnRoles, Missing, ReadOptions
from .source import Source, iterate_arrow_batches
from .table_rows import (
    SelectedRows,
    TableRows,
    find_complete_rows,
    locate_error_in_file,
    no_rows_error,
    read_distinct_labels,
    strip_prefix,
)

MEMORY_FACTOR_OF_TABLE = 4.0
"""Room that reading and fitting take, in sizes of the table: a round number."""
REMEDY = "Use fewer rows; `mcllo assess` and `mcllo fit --method mcllo` read files in blocks."
MAX_COMPRESSION_RATIOS = {"gzip": 1032.0, "zstd": float("inf"), "arrow": 255.0}
"""Most bytes that one packed byte stands for: DEFLATE has 1032, the LZ4 of Arrow 255."""
N_REMEDY_ROWS = 1000
"""Rows whose labels a remedy is found by: a round number."""


def read_predictions(
    path: StrPath | Sequence[StrPath],
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
    percent: bool = False,
    missing: Missing = "refuse",
    positive: str | None = None,
    sheet: str | None = None,
    header: int | None = None,
    encoding: str | None = None,
) -> Predictions:
    """Read predictions and labels from CSV, Parquet, Arrow, JSON lines, .xlsx, .npy or .npz.

    Parameters
    ----------
    path : path-like or sequence of path-like
        The file, files with the same columns, or a directory of them; ``-`` is standard input. CSV
        may be compressed (gzip, zstd). Decimal commas, percent signs, Latin-1 and UTF-16 are
        recognised, and `Predictions.notes` says so.
    label : str
        Column with the labels that came true; for an .npy file, another one with the labels.
    classes : sequence, optional
        The classes: columns with probabilities, `prefix` left out. Default: every column that
        begins with `prefix`, but `label`, `weight`, `groups`, `by` and columns without a name.
        Columns of arrays have no names: `classes` names them, in their order.
    baseline : label, optional
        Reference class of the log odds. Default: the last class that occurs in the labels.
    weight : str, optional
        Column with row weights; `weight_kind` says what they mean.
    weight_kind : {"frequency", "survey", "importance"}
        What the weights mean; see `Predictions.from_arrays`.
    groups : str, optional
        Column with the group of each row.
    by : str, optional
        Column with the subgroup of each row, which `assess` then looks at one by one.
    prefix : str
        What stands before a class in the name of its column: ``"p_"`` for columns ``p_cat, p_dog``
        and labels ``cat, dog``; what stands before and after it with a ``*``: ``"P(*)"``.
    logits : bool
        The columns hold logits instead of probabilities.
    normalize : bool
        Accept rows that do not sum to 1 (rounded files) and divide them by their sum.
    clip : float, optional
        Smaller probabilities are clipped to this. Default: 1e-6, only in rows that hold a 0.
    percent : bool
        The class columns hold percentages, 0 to 100.
    missing : {"refuse", "drop"}
        What to do with rows in which something is missing; dropped ones are counted.
    positive : str, optional
        For a yes/no outcome with one column of probabilities: the label they are of. The column is
        the one named in `classes`, or of that name, or the only one there is.
    sheet : str, optional
        Sheet of a workbook (default: the first that holds a table), or table of an .npz file.
    header : int, optional
        Row of a sheet that names the columns, as Excel counts rows; found out when not given.
    encoding : str, optional
        Of text, such as ``"latin-1"``; found out when not given.

    Returns
    -------
    Predictions
        The validated rows; ``notes`` says what was assumed, and how many rows were left out.

    Raises
    ------
    FileFormatError
        When the file cannot be read or lacks a column.
    InputError
        When its values break a rule; the message names the line and the column.

    See Also
    --------
    Predictions : The same of arrays and frames.
    assess : Takes what comes out.
    load_calibrator : Reads models.

    Notes
    -----
    Values are never guessed: rows that do not sum to 1 are refused unless `normalize` or `percent`
    says what they are.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "pets.csv"
    ...     with path.open("w") as file:
    ...         for row in ("p_cat,p_dog,truth", "0.7,0.3,cat", "0.2,0.8,dog"):
    ...             print(row, file=file)
    ...     p = read_predictions(path, label="truth", prefix="p_")
    >>> p
    Predictions(n_samples=2, classes=('cat', 'dog'), baseline='dog')
    """
    read_options = ReadOptions(percent, missing, positive, sheet, encoding, header)
    sources = [Source(name, read_options) for name in find_files(path)]
    return read_sources(
        sources,
        label=label,
        classes=classes,
        baseline=baseline,
        weight=weight,
        weight_kind=weight_kind,
        groups=groups,
        by=by,
        prefix=prefix,
        logits=logits,
        normalize=normalize,
        clip=clip,
    )


def open_sources(
    path: StrPath | Sequence[StrPath], reading: dict[str, Any]
) -> tuple[list[Source], dict[str, Any]]:
    """Return the files that `path` stands for, and the options that say which columns they have.

    `reading` are options of `read_predictions`; the others say how cells are written.
    """
    of_cells = get_type_hints(CellOptions)
    read_options = ReadOptions(
        **{name: reading[name] for name in of_cells if name in reading}
    )
    of_columns = {
        name: value for name, value in reading.items() if name not in of_cells
    }
    return [Source(name, read_options) for name in find_files(path)], of_columns


def read_sources(
    sources: Sequence[Source],
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
    """Read predictions from files that were looked at; options as in `read_predictions`."""
    roles = find_common_roles(
        sources, label, classes, prefix, weight=weight, groups=groups, by=by
    )
    check_rows_fit_memory(sources, len(roles.numbers))
    rows = TableRows(sources, roles, prefix, by_default=classes is None, logits=logits)
    parts = [rows.read(source) for source in sources]
    # rows of two states of a file would be predictions of no time
    for source in sources:
        source.refuse_changed()
    found = parts[0] if len(parts) == 1 else join_rows(parts, sources)
    if len(found.labels) == 0:
        raise (
            no_rows_error(sources[0])
            if not found.n_dropped
            else no_complete_row_error(sources, found)
        )
    y = found.labels
    if sources[0].is_text:
        y = np.array(y.to_pylist(), dtype=object)
    values = found.values
    if isinstance(values, np.ndarray):
        values = np.ascontiguousarray(values)
    try:
        predictions = Predictions.from_arrays(
            None if logits else values,
            y,
            logits=values if logits else None,
            classes=rows.names,
            baseline=baseline,
            sample_weight=found.column(weight),
            weight_kind=weight_kind,
            groups=found.column(groups),
            by=None if by is None else clean_by(found.column(by), len(y), by),
            normalize=normalize,
            clip=clip,
        )
    except MclloError as error:
        raise _locate_error(error, rows, parts) from None
    return replace(predictions, notes=rows.notes(len(y)))


def _locate_error(
    error: MclloError, rows: TableRows, parts: Sequence[SelectedRows]
) -> MclloError:
    """Return an error about rows of several files in the words of the one at fault."""
    k = 0
    row = getattr(error, "row", None)
    if isinstance(error, InputError) and row is not None:
        while row >= len(parts[k].labels):
            row -= len(parts[k].labels)
            k += 1
        error = error.but(row=row)
    return rows.explain_error_in_rows(error, rows.sources[k], parts[k])


def join_rows(parts: Sequence[SelectedRows], sources: Sequence[Source]) -> SelectedRows:
    """Return the rows of several files, one after the other."""
    import pyarrow as pa

    try:
        table = pa.concat_tables([part.table for part in parts])
        chunks = [chunk for part in parts for chunk in _arrow_chunks(part.labels)]
        labels = pa.chunked_array(chunks)
        values: Any = [part.values for part in parts]
        if all(isinstance(value, np.ndarray) for value in values):
            values = np.concatenate(values)
        else:
            values = pa.concat_tables(values)
    except (pa.ArrowException, TypeError):
        raise FileFormatError(
            f"all files must hold the same kinds of columns; {sources[0].name} and others do not.",
            remedy="Write them all in one format.",
        ) from None
    n_rows = sum(part.n_rows for part in parts)
    kept = np.arange(len(labels)) if any(part.n_dropped for part in parts) else None
    return SelectedRows(values, labels, table, kept, n_rows)


def _arrow_chunks(column: Any) -> list[Any]:
    """Return the arrays that a column of pyarrow is made of."""
    import pyarrow as pa

    return [column] if isinstance(column, pa.Array) else column.chunks


def no_complete_row_error(
    sources: Sequence[Source], found: SelectedRows
) -> FileFormatError:
    """Return the error of files in which every row has a gap."""
    return FileFormatError(
        f"{sources[0].name} must have a row in which nothing is missing; all {found.n_rows:,} "
        "have gaps. Check the columns."
    )


# ---- the room that rows take


def check_rows_fit_memory(
    sources: Sequence[Source],
    n_classes: int,
    why: str | None = None,
    remedy: str = REMEDY,
    values: Mapping[str, Any] | None = None,
) -> None:
    """Refuse files whose rows would not fit into memory; `why` says what needs them all.

    It and the remedy are templates, filled with `values`.
    """
    available = available_memory()
    bytes_per_row = 8.0 * (n_classes + 1)
    if any(source.is_text for source in sources):
        bytes_per_row += 64.0  # a word as a Python object: 49 bytes and its letters
    bytes_per_row *= MEMORY_FACTOR_OF_TABLE
    # most files are far too small, and need not be looked through to count their rows
    if bytes_per_row * sum(map(_max_n_rows, sources)) <= available:
        return
    rows = sum(estimate_n_rows(source, available / bytes_per_row) for source in sources)
    more = " or more" if any(source.compression for source in sources) else ""
    words = f"{format_count(rows)}{more} rows of {n_classes} classes"
    if why is None:
        name = (
            sources[0].name
            if len(sources) == 1
            else f"a folder of {len(sources)} files"
        )
        says = f"{{file}} must be read at once, and its {words} take"
        values = {"file": name}
    else:
        says = f"{why} needs all rows in memory, and {words} take"
    check_memory(bytes_per_row * rows, says, remedy, values)


def estimate_n_rows(source: Source, enough: float) -> float:
    """Return about how many rows a file has; of packed text, counted until they are `enough`."""
    import pyarrow as pa

    if source.kind == "parquet":
        return float(sum(source.row_groups))
    if source.arrays is not None:
        return float(source.arrays.n_rows)
    with suppress(
        pa.ArrowException, OSError, UnicodeError
    ):  # whoever reads it says what is wrong
        if source.kind == "arrow":
            with source.open_arrow() as file:
                return float(
                    sum(batch.num_rows for batch in iterate_arrow_batches(file))
                )
        if source.kind in ("csv", "json"):
            return _estimate_n_lines(source, enough) - 1.0
    return 0.0  # a workbook has a limit of its own


def _estimate_n_lines(source: Source, enough: float) -> float:
    """Return how many lines packed text has, but for `enough`; of plain text about how many."""
    if source.compression:
        _, n_lines = source.measure_text(math.inf, enough)
        return max(1.0, n_lines)
    n_sampled, n_lines = source.measure_text(
        1 << 20
    )  # the first 1 MB shows how long a line is
    n_bytes = max(n_sampled, source.n_file_bytes)
    return max(1.0, n_lines * n_bytes / max(n_sampled, 1.0))


def _max_n_rows(source: Source) -> float:
    """Return how many rows a file could have, without unpacking it."""
    if source.kind == "parquet":
        return float(sum(source.row_groups))
    ratio = MAX_COMPRESSION_RATIOS.get(source.compression or source.kind, 1.0)
    shortest_line = 4.0  # bytes: two cells, a separator and a line end
    return source.n_file_bytes * ratio / shortest_line


# ---- which columns


def read_probs(
    path: StrPath,
    *,
    label: str | None = None,
    classes: Sequence[Hashable] | None = None,
    prefix: str = "",
    normalize: bool = False,
    **meant: Unpack[CellOptions],
) -> tuple[Any, list[str]]:
    """Read the class columns alone: clean probabilities, and the classes they stand for."""
    source = Source(path, ReadOptions(**meant))
    if classes is not None and source.arrays is not None and source.arrays.nameless:
        source.name_columns([str(name) for name in as_class_list(classes)])
    columns = find_class_columns(
        source, classes, prefix, [] if label is None else [label]
    )
    source.require_columns(columns, "class column")
    names = strip_prefix(prefix, columns)
    check_rows_fit_memory([source], len(columns))
    try:
        values = source.read(columns).rename_columns(names)
        if source.read_options.drops_missing:
            values = values.take(np.flatnonzero(find_complete_rows(values)))
        return clean_probs(values, columns=names, normalize=normalize).probs, names
    except InputError as error:
        raise locate_error_in_file(error, source, ColumnRoles(columns)) from None


def find_files(path: StrPath | Sequence[StrPath]) -> list[StrPath]:
    """Return the files that `path` stands for, in order."""
    if not isinstance(path, (str, os.PathLike)):
        files = [name for part in path for name in find_files(part)]
        if not files:
            raise FileFormatError("at least one file must be given; got none.")
        return files
    if str(path) == "-" or not Path(path).is_dir():
        return [path]
    shown: list[StrPath] = []
    for file in sorted(Path(path).rglob("*")):
        if not file.is_file():
            continue
        parts = file.relative_to(path).parts
        if not any(part.startswith((".", "_")) for part in parts):
            shown.append(file)
    if not shown:
        raise FileFormatError(f"{path} must hold CSV or Parquet files; it holds none.")
    return shown


def find_common_roles(
    sources: Sequence[Source],
    label: str,
    classes: Sequence[Hashable] | None,
    prefix: str,
    **parts: str | None,
) -> ColumnRoles:
    """Return which columns to use of each file; refuse files that differ."""
    roles = find_column_roles(sources[0], label, classes, prefix, **parts)
    for other in sources[1:]:
        found = find_column_roles(other, label, classes, prefix, **parts)
        if set(found.numbers) != set(roles.numbers):
            raise FileFormatError(
                f"all files must have the same class columns; {sources[0].name} has "
                f"{shorten(roles.numbers)} and {other.name} {shorten(found.numbers)}."
            )
    return roles


def find_column_roles(
    source: Source,
    label: str,
    classes: Sequence[Hashable] | None,
    prefix: str,
    *,
    weight: str | None = None,
    groups: str | None = None,
    by: str | None = None,
) -> ColumnRoles:
    """Return which columns to use; refuse when one is missing or would be used twice."""
    if source.arrays is not None:
        classes = name_array_columns(source, label, classes)
    other_columns = [label]
    source.require_columns(other_columns, "label column")
    parts = (
        (weight, "weight column"),
        (groups, "group column"),
        (by, "subgroup column"),
    )
    for column, part in parts:
        if column is not None:
            source.require_columns([column], part)
            other_columns.append(column)
    positive = source.read_options.positive
    if positive is not None:
        numbers = [
            find_positive_column(source, classes, prefix, other_columns, positive)
        ]
    else:
        numbers = find_class_columns(source, classes, prefix, other_columns)
    if not numbers:
        rule = "name at least two columns"
        remedy = "Leave {classes} out."
        raise InputError(argument="classes", rule=rule, found="none", remedy=remedy)
    source.require_columns(numbers, "class column")
    used = [*other_columns, *numbers]
    for column in other_columns:
        if used.count(column) > 1:
            raise InputError(
                "a column must play one part; {column!r} is named twice among {label}, {weight}, "
                "{groups}, {by} and {classes}.",
                column=column,
                remedy="Name another.",
                values={"column": column},
            )
    return ColumnRoles(
        numbers, label, weight, groups, by, positive=positive is not None
    )


def name_array_columns(
    source: Source, label: str, classes: Sequence[Hashable] | None
) -> Sequence[Hashable] | None:
    """Name the columns of an array after the classes, and add labels that are a file of their own.

    Return the classes to choose columns by.
    """
    assert source.arrays is not None
    if label not in source.columns and label.endswith(".npy") and Path(label).is_file():
        source.attach_labels(label)
    if (
        classes is not None
        and source.arrays.nameless
        and source.read_options.positive is None
    ):
        source.name_columns([str(name) for name in as_class_list(classes)])
    return classes


def find_positive_column(
    source: Source,
    classes: Sequence[Hashable] | None,
    prefix: str,
    other_columns: Sequence[str],
    positive: str,
) -> str:
    """Return the one column of probabilities: named, or of the label's name, or the only one."""
    if classes is not None:
        named = [column_of_label(prefix, name) for name in classes]
        if len(named) != 1:
            rule = "name one column beside {positive:{label!r}}"
            values = {"label": positive}
            raise InputError(
                argument="classes", rule=rule, value=list(classes), values=values
            )
        return named[0]
    own = column_of_label(prefix, positive)
    if own in source.columns and own not in other_columns:
        return own
    left = [
        column
        for column in source.columns
        if has_affixes(prefix, column)
        and column not in other_columns
        and not is_pandas_index(column)
    ]
    if len(left) == 1:
        return left[0]
    raise FileFormatError(
        "{file} must have one column with the probability of {label!r}; it may be any of {left}.",
        remedy="Name it: {classes:{last}}.",
        values={
            "file": source.name,
            "label": positive,
            "left": shorten(left),
            "last": left[-1:],
        },
    )


def find_class_columns(
    source: Source,
    classes: Sequence[Hashable] | None,
    prefix: str,
    other_columns: Sequence[str],
) -> list[str]:
    """Return the columns of the classes; when none are named, all that begin with `prefix`."""
    if classes is not None and len(classes) != 1:
        return [column_of_label(prefix, name) for name in as_class_list(classes)]
    if classes:
        columns = [column_of_label(prefix, name) for name in classes]
    else:
        columns = [
            column
            for column in source.columns
            if has_affixes(prefix, column)
            and column not in other_columns
            and not is_pandas_index(label_of_column(prefix, column))
        ]
    if len(columns) < 2:
        which = f"beginning with {prefix!r} " if prefix else ""
        error = FileFormatError(
            f"{source.name} must have at least two class columns {which}beside the label, one for "
            f"each class; got {shorten(columns)} of {shorten(source.columns)}."
        )
        hint = _single_column_hint(source, columns, other_columns)
        raise error if hint is None else error.with_remedy(hint.template, **hint.values)
    return columns


def _single_column_hint(
    source: Source, columns: Sequence[str], other_columns: Sequence[str]
) -> Hint | None:
    """Return how to say that one column is the probability of one label of two."""
    if not columns or not other_columns:
        return None
    labels = read_distinct_labels(
        source.first_rows(N_REMEDY_ROWS), ColumnRoles(columns, other_columns[0]), []
    )
    ways = "{positive}"
    if len(labels) == 1:
        ways = "{positive:{labels[0]!r}}"
    elif len(labels) == 2:
        ways = "{positive:{labels[0]!r}} or {positive:{labels[1]!r}}"
    says = f"If {{column!r}} is the probability of one of two outcomes, say of which: {ways}."
    return Hint(says, {"column": columns[0], "labels": labels})
