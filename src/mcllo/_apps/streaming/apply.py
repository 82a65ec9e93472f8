"""Apply a calibrator to a file, batch by batch: memory does not grow with the file.

Numbers are written the way they came: percentages stay percentages, decimal commas commas.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from ..._utils.atomic_files import StrPath, progress
from ..._utils.formatting import format_count
from ..._utils.statements import Statement, drop_repeated_statements, suppress_warnings
from ..._validation.frames import column_of_label, prefix_hint, shorten
from ...exceptions import FileFormatError, InputError
from ..io.read import find_positive_column
from ..io.read_options import (
    CellOptions,
    ColumnRoles,
    ReadOptions,
    single_column_statement,
)
from ..io.sheets import WorkbookUpdate
from ..io.source import Source
from ..io.table_rows import (
    add_other_class,
    find_complete_rows,
    locate_error_in_file,
    no_rows_error,
)
from ..io.write import format_like_input, is_text_format, open_writer


@dataclass(frozen=True, eq=False)
class ApplyResult:
    """How many rows `apply_file` wrote, the classes it recalibrated, and what it assumed."""

    n_samples: int
    classes: tuple[str, ...]
    notes: tuple[Statement, ...] = ()


def apply_file(
    calibrator: Any,
    path: StrPath,
    out: StrPath,
    *,
    prefix: str = "",
    logits: bool = False,
    classes: list[str] | None = None,
    **meant: Unpack[CellOptions],
) -> ApplyResult:
    """Write the rows of `path` to `out` with the class columns recalibrated.

    All other columns pass through untouched, in their order, and all rows in theirs: with
    ``missing="drop"`` those with gaps get empty class columns. A workbook keeps its other sheets,
    and what stands above and below the table.

    Parameters
    ----------
    calibrator : fitted calibrator
        Its classes, after `prefix`, are the columns to recalibrate.
    path, out : path-like
        Tables; ``-`` is standard input and output.
    prefix : str
        What stands before a class in the name of its column.
    logits : bool
        The columns hold logits; probabilities take their place.
    classes : list of str, optional
        With `positive`: the one column of probabilities.
    **meant
        How cells are written, as in `read_predictions`.
    """
    if hasattr(calibrator, "for_stream"):
        calibrator = calibrator.for_stream()
    source = Source(path, ReadOptions(**meant))
    names = [str(label) for label in calibrator.classes_.tolist()]
    roles = _find_column_roles(source, names, prefix, classes)
    places = [source.index(column) for column in roles.numbers]
    number_format = source.find_number_format(roles.numbers)
    formats = _find_excel_formats(source, number_format.percent_columns)
    as_text = is_text_format(out)
    n_done = 0
    n_dropped = 0
    first_dropped = None
    # Batch by batch into a temporary file, which takes its name when all rows were written.
    with (
        open_writer(
            out,
            source.separator,
            encoding=source.encoding,
            formats=formats,
            update=_workbook_update(source, places, formats),
        ) as writer,
        progress("recalibrating", out=out) as advance,
    ):
        for batch in source.batches(roles.numbers):
            kept = np.arange(batch.num_rows)
            if source.read_options.drops_missing:
                is_complete = find_complete_rows(batch.select(places))
                kept = np.flatnonzero(is_complete)
                n_dropped += batch.num_rows - len(kept)
                if first_dropped is None and not is_complete.all():
                    first_dropped = n_done + int(np.argmin(is_complete))
            rows = batch
            if len(kept) < batch.num_rows:
                # rows with gaps stay where they are, so that those around them keep their places
                for place in places:
                    rows = rows.set_column(
                        place, rows.schema.names[place], _empty_column(batch.num_rows)
                    )
            if len(kept):
                try:
                    recalibrated = _recalibrate(
                        calibrator, batch.select(places).take(kept), roles, logits
                    )
                except InputError as error:
                    if error.row is not None:
                        error = error.but(row=int(kept[error.row]) + n_done)
                    raise locate_error_in_file(error, source, roles) from None
                for place, name, column in zip(
                    places, roles.numbers, recalibrated, strict=True
                ):
                    has_percent_sign = name in number_format.percent_columns
                    new = format_like_input(
                        column, number_format, has_percent_sign, as_text
                    )
                    if len(kept) < batch.num_rows:
                        new = _spread_over_rows(new, kept, batch.num_rows)
                    rows = rows.set_column(place, rows.schema.names[place], new)
            writer.write(rows)
            n_done += batch.num_rows
            advance(batch.num_rows)
        source.refuse_changed()
        if n_done == n_dropped:
            raise no_rows_error(source)
    notes = list(source.assumptions)
    if roles.positive:
        notes.append(single_column_statement(roles.numbers[0], *roles.names))
    if first_dropped is not None:
        notes.append(
            _kept_rows_statement(n_dropped, n_done, source.locate_row(first_dropped))
        )
    return ApplyResult(
        n_done - n_dropped, tuple(names), drop_repeated_statements(notes)
    )


def _workbook_update(
    source: Source, places: list[int], formats: dict[str, str]
) -> Callable[[Path], WorkbookUpdate] | None:
    """Return what makes the writer of a workbook out of the one that is read, where it is one."""
    sheet = source.sheet
    if sheet is None:
        return None

    def make_writer(path: Path) -> WorkbookUpdate:
        with source.reopen() as file:
            chosen = {place: formats[source.raw_columns[place]] for place in places}
            return WorkbookUpdate(path, file, sheet, chosen)

    return make_writer


def _empty_column(n_rows: int) -> Any:
    """Return a column of no values."""
    import pyarrow as pa

    return pa.nulls(n_rows, pa.float64())


def _spread_over_rows(column: Any, kept: Any, n_rows: int) -> Any:
    """Return the values of some rows at their places among all, nothing elsewhere."""
    import pyarrow as pa

    place_of_row = np.zeros(n_rows, dtype=np.int64)
    place_of_row[kept] = np.arange(len(kept))
    has_no_value = np.ones(n_rows, dtype=bool)
    has_no_value[kept] = False
    return column.take(pa.array(place_of_row, mask=has_no_value))


def _kept_rows_statement(n_gaps: int, n_rows: int, first: str) -> Statement:
    """Say how many rows have gaps, and what became of them."""
    verb = "row has" if n_gaps == 1 else "rows have"
    text = (
        f"{format_count(n_gaps)} of {format_count(n_rows)} {verb} missing values (the first: "
        f"{first}) and stay in their places with empty class columns."
    )
    numbers = {"n_dropped": n_gaps, "n_rows": n_rows}
    return Statement("note.missing", text, "doubt", numbers)


def _find_column_roles(
    source: Source, names: list[str], prefix: str, classes: list[str] | None
) -> ColumnRoles:
    """Return the columns to recalibrate: those of the calibrator's classes, or of one of two."""
    positive = source.read_options.positive
    if positive is not None:
        if positive not in names or len(names) != 2:
            raise InputError(
                argument="positive",
                rule="be one of the two classes of the model, {known}",
                value=positive,
                values={"known": shorten(names)},
            )
        column = find_positive_column(source, classes, prefix, (), positive)
        source.require_columns([column], "class column")
        other = next(name for name in names if name != positive)
        return ColumnRoles([column], names=[positive, other], positive=True)
    if source.arrays is not None and source.arrays.nameless:
        source.name_columns(names)
    columns = [column_of_label(prefix, name) for name in names]
    known = set(source.columns)
    missing = [column for column in columns if column not in known]
    if missing and not prefix:
        hint = prefix_hint(source.columns, names)
        if hint is not None:
            error = FileFormatError(
                f"{source.name} has no class column {missing[0]!r}."
            )
            raise error.with_remedy(f"{hint.template}.", **hint.values)
    source.require_columns(columns, "class column")
    return ColumnRoles(columns, names=names)


def _find_excel_formats(
    source: Source, has_percent_sign: frozenset[str]
) -> dict[str, str]:
    """Return Excel's formats of the columns: those of the sheet, and of columns with signs."""
    formats: dict[str, str] = {}
    if source.sheet is not None:
        formats = dict(zip(source.raw_columns, source.sheet.formats, strict=True))
    for name in has_percent_sign:
        formats[source.raw_columns[source.index(name)]] = "0.0%"
    return formats


def _recalibrate(
    calibrator: Any, batch: Any, roles: ColumnRoles, logits: bool
) -> list[Any]:
    """Return the calibrator's probabilities, a column for each of the file's."""
    import pyarrow as pa

    table = pa.Table.from_batches([batch])
    if roles.positive:
        values = add_other_class(table, logits)
        table = pa.table(dict(zip(roles.names, values.T, strict=True)))
    table = table.rename_columns(list(roles.names))
    order = [str(label) for label in calibrator.classes_.tolist()]
    found = _predict_probabilities(calibrator, table.select(order), logits)
    in_file = roles.names[
        : len(roles.numbers)
    ]  # of two classes the file may have the first alone
    return [pa.array(found[:, order.index(name)]) for name in in_file]


def _predict_probabilities(calibrator: Any, table: Any, logits: bool) -> Any:
    with suppress_warnings():
        if not logits or calibrator.input == "logits":
            return calibrator.predict_proba(table)
        # no probability is rounded to 0 on the way
        return calibrator.predict_proba(logits=table)
