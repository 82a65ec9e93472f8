"""Workbooks of Excel (``.xlsx``) in and out, by openpyxl (the extra ``excel``).

=========  =======================================================================================
sheet      the one that is named, else the first that holds a table, and it is said which
header     the first row that names about as many columns as are filled; what stands above it (a
           title, a date) is left out, and it is said. Columns and rows without anything in them do
           not count
cells      values, also of formulas; 70 % is stored as 0.7. A column of one kind of value keeps it,
           a mixture is text
places     rows as Excel counts them
size       a sheet is read at once: a workbook that unpacks to more than 1 GB is refused
out        of a workbook the whole workbook, in which some columns of the sheet are others; of
           another file one sheet, in which texts stay texts, also those that begin with ``=``
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
from ...exceptions import FileFormatError, InputError
from .arrays import check_unpacked_size

MAX_PACKING_RATIO = 200.0
"""How many times its size a large part of a workbook unpacks to, at most: a round number; of tables
of numbers it is 3 to 10."""
MAX_SHEET_CELLS = 20_000_000
"""Cells of a sheet that are read at once, a gigabyte or two: a round number."""
MAX_SHEET_ROWS = 1_048_576
"""Rows of a sheet, with its header: Excel's own limit."""
GENERAL_FORMAT = "General"
N_HEADER_ROWS = 50
"""Rows among which the header is looked for: a round number, more than any letterhead."""


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
    header_line : int
        The number that Excel gives the row of the header.
    places : list of int
        The number of each column in the sheet, from 1.
    lines : list of int
        The number that Excel gives each row of data.
    table : pyarrow.Table
        The cells below the header.
    """

    def __init__(
        self, file: IO[bytes], name: str, sheet: str | None, header: int | None = None
    ) -> None:
        openpyxl = _import_openpyxl(name)
        try:
            remedy = "Save the sheet as CSV, which is read in blocks."
            check_unpacked_size(file, name, remedy, MAX_PACKING_RATIO)
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            titles = [page.title for page in book.worksheets]
            if sheet is None:
                page, rows, start = _find_table(book, name, header)
            else:
                page = _find_sheet(book, titles, sheet, name)
                rows = _filled_rows(page, name)
                start = _find_header(rows, header)
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
        if start is None:
            raise InputError(
                "{argument} must be a row of sheet {title!r} that names columns; row {given} is "
                "empty.",
                argument="header",
                value=header,
                values={"title": page.title, "given": header},
            )
        self.title = page.title
        self.notes = [
            *_chosen_sheet_statement(name, page.title, titles, sheet),
            *_header_statement(page.title, rows, start, header),
        ]
        rows = rows[start:]
        self.header_line = _first_filled_cell(rows[0]).row
        self.others = [title for title in titles if title != page.title]
        self.lines = [_first_filled_cell(row).row for row in rows[1:]]
        self._parse_cells(rows[0], rows[1:])

    def _parse_cells(self, header: Any, rows: list[Any]) -> None:
        """Take names, columns and formats out of the cells; empty columns do not count."""
        import pyarrow as pa

        self.names = []
        self.formats = []
        self.places = []
        columns = []
        for j in range(max(len(row) for row in (header, *rows))):
            name = _cell_value(header, j)
            values = [_cell_value(row, j) for row in rows]
            if name is None and all(value is None for value in values):
                continue
            self.names.append("" if name is None else _cell_as_text(name))
            self.formats.append(_find_number_format(rows, j))
            self.places.append(j + 1)
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


def _find_table(
    book: Any, name: str, header: int | None
) -> tuple[Any, list[Any], int | None]:
    """Return the first sheet that holds a table, its rows, and which of them is the header.

    Before it may stand covers: sheets without a row that names columns. Where none holds a table
    it is the first sheet, for the reader to say what is wrong with it.
    """
    first = None
    for page in book.worksheets:
        rows = _filled_rows(page, name)
        start = _find_header(rows, header)
        if first is None:
            first = (page, rows, start)
        if start is not None and _names_columns(rows[start]) and len(rows) > start + 1:
            return page, rows, start
    assert first is not None  # a workbook has a sheet
    return first


def _find_header(rows: list[Any], header: int | None) -> int | None:
    """Return which of the rows that hold something is the header; None where that row is empty.

    It names at least half as many columns as the fullest of the first rows has: titles and dates
    above it fill one or two cells. Rows of numbers are none, and then it is the first row, which
    the reader refuses if it has no names.
    """
    if header is not None:
        lines = [_first_filled_cell(row).row for row in rows]
        return lines.index(header) if header in lines else None
    filled = [_n_filled_cells(row) for row in rows[:N_HEADER_ROWS]]
    for k, n_filled in enumerate(filled):
        if n_filled >= 2 and 2 * n_filled >= max(filled):
            holds_number = any(_is_number(cell.value) for cell in rows[k])
            return 0 if holds_number else k
    return 0


def _names_columns(row: Any) -> bool:
    """Whether a row could be a header: two names or more, each once."""
    names = [str(cell.value).strip() for cell in row if cell.value is not None]
    return len(names) >= 2 and len(set(names)) == len(names)


def _n_filled_cells(row: Any) -> int:
    return sum(cell.value is not None for cell in row)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _chosen_sheet_statement(
    name: str, title: str, titles: list[str], asked: str | None
) -> list[Statement]:
    """Say which of several sheets was read, where nobody said which."""
    if asked is not None or len(titles) == 1:
        return []
    which = "the first" if title == titles[0] else "the first with a table"
    text = f"Sheet {title!r}, {which} of {len(titles)}, was read of {name}."
    numbers = {"sheet": title, "n_sheets": len(titles)}
    return [Statement("note.sheet", text, numbers=numbers)]


def _header_statement(
    title: str, rows: list[Any], start: int, asked: int | None
) -> list[Statement]:
    """Say what stands above the header and was left out, where nobody said so."""
    if asked is not None or start == 0:
        return []
    line = _first_filled_cell(rows[start]).row
    verb = "row above it was" if start == 1 else "rows above it were"
    text = f"The columns of sheet {title!r} are named in row {line}; {start} {verb} left out."
    numbers = {"header": line, "n_above": start}
    return [Statement("note.header", text, numbers=numbers)]


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


class WorkbookUpdate:
    """Writes a whole workbook again in which some columns of a sheet have other values.

    Everything else stays: other sheets, what stands above and below the table, formulas, formats.
    """

    def __init__(
        self, path: Path, file: IO[bytes], sheet: Sheet, formats: dict[int, str]
    ) -> None:
        self._path = path
        self._sheet = sheet
        self._formats = formats  # of the columns that change, by their place
        self._book = _import_openpyxl(path.name).load_workbook(file)
        self._page = self._book[sheet.title]
        self._n_rows = 0

    def write(self, batch: Any) -> None:
        """Put the next rows in their places."""
        lines = self._sheet.lines[self._n_rows : self._n_rows + batch.num_rows]
        for column, number_format in self._formats.items():
            place = self._sheet.places[column]
            values = batch.column(column).to_pylist()
            for line, value in zip(lines, values, strict=True):
                cell = self._page.cell(line, place)
                was_text = isinstance(cell.value, str)
                cell.value = value
                if was_text and value is not None:  # "70 %" becomes 0.7, shown so
                    cell.number_format = number_format
        self._n_rows += batch.num_rows

    def close(self) -> None:
        """Write the file."""
        self._book.save(self._path)


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
