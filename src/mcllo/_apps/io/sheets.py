"""Workbooks of Excel (``.xlsx``) in and out, by openpyxl (the extra ``excel``).

=========  =======================================================================================
sheet      the one that is named, else the first, and it is said which
header     the first row that is not empty; columns and rows without anything in them do not count
cells      values, also of formulas; 70 % is stored as 0.7. A column of one kind of value keeps it,
           a mixture is text
places     rows as Excel counts them
size       a sheet is read at once: a workbook that unpacks to more than 1 GB is refused
out        one sheet; texts stay texts, also those that begin with ``=``; columns keep the format
           of the sheet they came from
=========  =======================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import datetime, time
from pathlib import Path
from typing import IO, Any

from ..._utils.statements import Statement
from ..._validation.frames import did_you_mean
from ...exceptions import FileFormatError
from .arrays import check_unpacked_size

MAX_PACKING_RATIO = 200.0
"""How many times its size a large part of a workbook unpacks to, at most: a round number; of tables
of numbers it is 3 to 10."""
MAX_SHEET_CELLS = 20_000_000
"""Cells of a sheet that are read at once, a gigabyte or two: a round number."""
MAX_SHEET_ROWS = 1_048_576
"""Rows of a sheet, with its header: Excel's own limit."""
GENERAL_FORMAT = "General"


def _import_openpyxl(name: str) -> Any:
    try:
        import openpyxl
    except ImportError:
        raise FileFormatError(
            f"{name} is a workbook, and the package openpyxl is not installed.",
            remedy="Install it with: pip install 'mcllo[excel]', or save the sheet as CSV.",
        ) from None
    return openpyxl


def sheet_titles(file: Path, name: str) -> list[str]:
    """Return the titles of the sheets of a workbook, in their order."""
    with file.open("rb") as opened:
        book = _import_openpyxl(name).load_workbook(opened, read_only=True)
        return [page.title for page in book.worksheets]


class Sheet:
    """One sheet of a workbook as a table.

    Attributes
    ----------
    title : str
        Of the sheet; `others` are the titles of the other ones.
    names : list of str
        What the header says of each column, "" where nothing.
    formats : list of str
        Excel's number format of each column.
    lines : list of int
        The number that Excel gives each row of data.
    table : pyarrow.Table
        The cells below the header.
    """

    def __init__(self, file: IO[bytes], name: str, sheet: str | None) -> None:
        openpyxl = _import_openpyxl(name)
        try:
            remedy = "Save the sheet as CSV, which is read in blocks."
            check_unpacked_size(file, name, remedy, MAX_PACKING_RATIO)
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            titles = [page.title for page in book.worksheets]
            page = (
                book.worksheets[0]
                if sheet is None
                else _find_sheet(book, titles, sheet, name)
            )
            rows = _filled_rows(page, name)
        except FileFormatError:
            raise
        except Exception as error:  # zip, XML and openpyxl raise what they like
            raise FileFormatError(
                f"{name} cannot be read: the workbook is damaged ({type(error).__name__}).",
                remedy="Open it in Excel and save it again.",
            ) from None
        if not rows:
            raise FileFormatError(
                "{file} must hold a table with a header row; sheet {title!r} is empty.",
                remedy="Choose another with {sheet}.",
                values={"file": name, "title": page.title},
            )
        self.title = page.title
        self.note = _chosen_sheet_statement(name, page.title, titles, sheet)
        self.others = [title for title in titles if title != page.title]
        self.lines = [_first_filled_cell(row).row for row in rows[1:]]
        self._parse_cells(rows[0], rows[1:])

    def _parse_cells(self, header: Any, rows: list[Any]) -> None:
        """Take names, columns and formats out of the cells; empty columns do not count."""
        import pyarrow as pa

        self.names = []
        self.formats = []
        columns = []
        for j in range(max(len(row) for row in (header, *rows))):
            name = _cell_value(header, j)
            values = [_cell_value(row, j) for row in rows]
            if name is None and all(value is None for value in values):
                continue
            self.names.append("" if name is None else _cell_as_text(name))
            self.formats.append(_find_number_format(rows, j))
            columns.append(_as_arrow_column(values))
        # by position: names may occur twice here, which is refused later with a remedy
        positions = [str(k) for k in range(len(columns))]
        self.table = pa.Table.from_arrays(columns, names=positions)

    def text_cells(self, place: int) -> list[str]:
        """Return the cells of a column of text, as they stand; of no other column any."""
        column = self.table.column(place)
        if str(column.type) != "string":
            return []
        return ["" if cell is None else cell for cell in column.to_pylist()]

    def batches(self, places: Sequence[int], names: Sequence[str]) -> Iterator[Any]:
        """Yield the columns at some places."""
        columns = self.table.select(list(places))
        yield from columns.rename_columns(list(names)).to_batches()


def _filled_rows(page: Any, name: str) -> list[Any]:
    """Return the rows that hold something; counted while they are read, as a file may lie."""
    rows = []
    n_cells = 0
    for number, row in enumerate(page.iter_rows(), start=1):
        n_cells += len(row)
        if number > MAX_SHEET_ROWS or n_cells > MAX_SHEET_CELLS:
            raise FileFormatError(
                f"{name} must have at most {MAX_SHEET_ROWS:,} rows, as Excel writes them, and "
                f"{MAX_SHEET_CELLS:,} cells; it has more.",
                remedy="Save the sheet as CSV, which is read in blocks.",
            )
        if _first_filled_cell(row) is not None:
            rows.append(row)
    return rows


def _find_sheet(book: Any, titles: list[str], sheet: str, name: str) -> Any:
    """Return the sheet of this title."""
    if sheet in titles:
        return book[sheet]
    alike = [title for title in titles if title.lower() == sheet.lower()]
    hint = f"did you mean {alike[0]!r}?" if alike else did_you_mean(sheet, titles)
    raise FileFormatError(f"{name} has no sheet {sheet!r}; {hint}")


def _chosen_sheet_statement(
    name: str, title: str, titles: list[str], asked: str | None
) -> Statement | None:
    """Say which of several sheets was read, where nobody said which."""
    if asked is not None or len(titles) == 1:
        return None
    text = f"Sheet {title!r}, the first of {len(titles)}, was read of {name}."
    return Statement(
        "note.sheet", text, numbers={"sheet": title, "n_sheets": len(titles)}
    )


def _first_filled_cell(row: Any) -> Any:
    """Return the first cell of a row that holds something; None where none does."""
    return next((cell for cell in row if cell.value is not None), None)


def _cell_value(row: Any, j: int) -> Any:
    """Return the value of a cell; None beyond the end of the row."""
    return row[j].value if j < len(row) else None


def _find_number_format(rows: list[Any], j: int) -> str:
    """Return the number format of the first cell of a column that has one."""
    for row in rows[
        :100
    ]:  # a column that is empty so far down says nothing; a round number
        if _cell_value(row, j) is not None:
            return row[j].number_format or GENERAL_FORMAT
    return GENERAL_FORMAT


def _cell_as_text(value: Any) -> str:
    """Return a cell as text: whole numbers without a point."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


def _as_arrow_column(values: list[Any]) -> Any:
    """Return values of one kind as a column of that kind, a mixture as text."""
    import pyarrow as pa

    kinds = {type(value) for value in values if value is not None}
    try:
        if kinds == {datetime}:
            return _as_date_column(values)
        if kinds == {int, float}:
            return pa.array(
                [None if v is None else float(v) for v in values], pa.float64()
            )
        if len(kinds) <= 1:
            return pa.array(values)
    except (pa.ArrowException, OverflowError):
        pass  # say, an integer of more than 64 bits: as text
    return pa.array(
        [None if v is None else _cell_as_text(v) for v in values], pa.string()
    )


def _as_date_column(values: list[Any]) -> Any:
    """Return a column of days, or of times where some are not midnight, as Excel stores days."""
    import pyarrow as pa

    if all(v is None or v.time() == time() for v in values):
        return pa.array([None if v is None else v.date() for v in values])
    return pa.array(values, pa.timestamp("s"))


class ExcelTableWriter:
    """Writes record batches as a workbook of one sheet."""

    def __init__(self, path: Path, formats: dict[str, str] | None = None) -> None:
        openpyxl = _import_openpyxl(path.name)
        self._path = path
        self._formats = formats or {}
        self._book = openpyxl.Workbook(write_only=True)
        self._page = self._book.create_sheet("Sheet1")
        self._n_rows = 0

    def write(self, batch: Any) -> None:
        """Append a batch."""
        from openpyxl.utils.exceptions import IllegalCharacterError

        names = list(batch.schema.names)
        if self._n_rows == 0:
            self._page.append([self._make_cell(name, GENERAL_FORMAT) for name in names])
            self._n_rows = 1
        self._n_rows += batch.num_rows
        if self._n_rows > MAX_SHEET_ROWS:
            raise FileFormatError(
                f"a workbook holds at most {MAX_SHEET_ROWS - 1:,} rows, and there are more. "
                "Choose a name that ends in .csv or .parquet."
            )
        formats = [self._formats.get(name, GENERAL_FORMAT) for name in names]
        columns = [column.to_pylist() for column in batch.columns]
        try:
            for row in zip(*columns, strict=True):
                cells = [
                    self._make_cell(v, f) for v, f in zip(row, formats, strict=True)
                ]
                self._page.append(cells)
        except (IllegalCharacterError, ValueError, TypeError) as error:
            raise FileFormatError(
                f"a workbook cannot hold a value ({type(error).__name__}). "
                "Choose a name that ends in .csv or .parquet."
            ) from None

    def _make_cell(self, value: Any, number_format: str) -> Any:
        from openpyxl.cell import WriteOnlyCell

        if isinstance(value, float) and not math.isfinite(value):
            value = None
        cell = WriteOnlyCell(self._page, value)
        if isinstance(value, str):
            cell.data_type = "s"  # never a formula
        elif number_format != GENERAL_FORMAT:
            cell.number_format = number_format
        return cell

    def close(self) -> None:
        """Finish the file."""
        self._book.save(self._path)
