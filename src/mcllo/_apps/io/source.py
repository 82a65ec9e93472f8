"""`Source`: a table in a file, read with pyarrow; what cannot be read becomes one sentence.

=============  ===================================================================================
columns        of a CSV file, the named ones are read as numbers, all others as text, so that what
               passes through comes out as it went in
numbers        as people write them (`_apps/io/csv_text`); percentages become shares
rows           come whole or batch by batch, so that memory need not grow with the file; workbooks
               and ``.npz`` files are read at once (`_apps/io/sheets`, `_apps/io/arrays`)
assumptions    what was taken for granted, as statements
openings       one for all that the beginning of a file shows, one more for its rows; a Parquet
               file's footer, which has the number of rows too, is read with the former
=============  ===================================================================================

pyarrow says that something failed. Where it did, and what to do about it, is found by reading the
file again (`explain_pyarrow_error`): the first line whose cells are too many or too few, the first
cell that is no number, a quoted cell that never ends.
"""

from __future__ import annotations

import copy
import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import zip_longest
from typing import Any

from ..._utils.atomic_files import StrPath
from ..._utils.statements import Statement
from ..._validation.frames import did_you_mean, first_duplicate, shorten
from ...exceptions import FileFormatError, Hint, InputError
from .arrays import NumpyTable
from .container import ENCODING_NAMES, InputFile, changed_file_error
from .csv_text import (
    PLAIN_FORMAT,
    CsvTable,
    FileFault,
    NumberFormat,
    detect_number_format,
    find_first_fault,
    find_line_of_row,
    find_number_fault,
    header_looks_like_data,
    parse_numbers,
)
from .json_lines import JsonTable
from .read_options import DEFAULT_READ_OPTIONS, ReadOptions
from .sheets import Sheet

N_BATCH_ROWS = 1 << 16
"""Rows of a batch of a file that is not text; pyarrow's own default for Parquet."""
NO_HEADER_REMEDY = "its first line holds numbers. Add a header line with column names."


class Source(InputFile):
    """A table in a file or from standard input, whose rows can be read once or in batches.

    `name` is what messages call it, and `spool` the copy of a pipe. `columns` of a CSV file or a
    sheet are without the spaces around them, `raw_columns` as they are written. `row_groups` are
    the rows of each row group of a Parquet file. `read` returns at most `most_rows` rows after
    `first_rows`, and `cut` says whether it left rows out.
    """

    def __init__(
        self, path: StrPath, read_options: ReadOptions = DEFAULT_READ_OPTIONS
    ) -> None:
        super().__init__(path)
        self.read_options = read_options
        self.most_rows: int | None = None
        self.cut = False
        self.csv: CsvTable | None = None
        self.arrays: NumpyTable | None = None
        self.sheet: Sheet | None = None
        self.json: JsonTable | None = None
        self.row_groups: list[int] = []
        self._writings: dict[tuple[str, ...], NumberFormat] = {}
        self.columns: list[str] = []
        with self.keep_open():
            self.detect_kind()
            if read_options.header is not None and self.kind != "sheet":
                raise InputError(
                    "{found} is the row of a workbook that names its columns; {name} is none.",
                    argument="header",
                    value=read_options.header,
                    remedy="Leave it out, and delete what stands above the line with the names.",
                    values={"name": self.name},
                )
            with self.explained_pyarrow_errors():
                names = self._detect_columns()
        self._set_names(names)

    # ---- what the beginning of a file shows

    def _detect_columns(self) -> list[str]:
        """Look at the beginning of the file; return the names of its columns."""
        if self.kind == "parquet":
            with self.open_parquet() as file:
                footer = file.metadata
                self.row_groups = [
                    footer.row_group(g).num_rows for g in range(file.num_row_groups)
                ]
                return list(file.schema_arrow.names)
        if self.kind == "arrow":
            with self.open_arrow() as file:
                return list(file.schema.names)
        if self.kind == "sheet":
            with self.reopen() as file:
                self.sheet = Sheet(
                    file, self.name, self.read_options.sheet, self.read_options.header
                )
            return self.sheet.names
        if self.kind == "array":
            if self.spool is None:  # by name, as only a file of a name can be mapped
                self.arrays = NumpyTable(self.path, self.name, self.read_options.sheet)
            else:
                with self.reopen() as file:
                    self.arrays = NumpyTable(file, self.name, self.read_options.sheet)
            return list(self.arrays.columns)
        if self.kind == "json":
            self.json = JsonTable(self, self.read_options.encoding)
            return self.json.names
        self.csv = CsvTable(self, self.read_options.encoding)
        return self.csv.names

    def unpacked_size(self, enough: float) -> float:
        """Return about how many bytes the rows take; of compressed text it counts to `enough`.

        What cannot be read has the size it has: whoever reads it says why.
        """
        import pyarrow as pa

        packed = float(self.n_file_bytes)
        if self.kind == "parquet":
            return max(packed, 8.0 * sum(self.row_groups) * len(self.columns))
        if self.csv is not None and self.csv.n_unpacked is not None:
            return max(packed, self.csv.n_unpacked)
        if self.compression:
            with suppress(pa.ArrowException, OSError, UnicodeError):
                n_unpacked, _ = self.measure_text(enough)
                return max(packed, n_unpacked)
        return packed

    @property
    def separator(self) -> str:
        """What stands between the cells of a CSV file; a comma for other files."""
        return "," if self.csv is None else self.csv.separator

    # ---- columns

    def _set_names(self, names: list[str]) -> None:
        """Keep the names of the columns; refuse too few, and names that occur twice."""
        self.raw_columns = names
        self.columns = [name.strip() if self.is_text else name for name in names]
        self._places = {name: j for j, name in enumerate(self.columns)}
        if len(self.columns) < 2:
            marks = (
                "Separate columns by commas, semicolons or tabs."
                if self.sheet is None
                else None
            )
            error = FileFormatError(
                f"{self.name} must have a header line with at least two columns; "
                f"got {shorten(self.columns)}.",
                remedy=marks,
            )
            hint = self._other_place_hint("")
            raise (
                error
                if hint is None
                else error.with_remedy(hint.template, **hint.values)
            )
        twice = first_duplicate(self.columns)
        if twice is not None:
            what = f"{twice!r} occurs twice" if twice else "two columns have no name"
            what = NO_HEADER_REMEDY if self._has_no_header() else f"{what}. Rename one."
            raise FileFormatError(
                f"{self.name} must have distinct column names; {what}"
            )

    @property
    def is_text(self) -> bool:
        """Whether cells are as somebody typed them, with spaces that do not count."""
        return self.kind in ("csv", "sheet", "json")

    def _has_no_header(self) -> bool:
        has_header = self.is_text and self.json is None
        return has_header and header_looks_like_data(self.columns)

    def name_columns(self, names: Sequence[str]) -> None:
        """Name the columns of an array that has none."""
        assert self.arrays is not None
        self.arrays.name_columns(names)
        self._set_names(list(self.arrays.columns))

    def attach_labels(self, path: StrPath) -> None:
        """Add the labels in another file to the columns of an array."""
        assert self.arrays is not None
        self.arrays.attach_labels(path)
        self._set_names(list(self.arrays.columns))

    def index(self, column: str) -> int:
        """Return the position of a column."""
        return self._places[column]

    def require_columns(self, columns: Sequence[str], role: str) -> None:
        """Refuse when a column is missing."""
        for column in columns:
            if column in self._places:
                continue
            alike = [name for name in self.columns if name.lower() == column.lower()]
            if self._has_no_header():
                hint = NO_HEADER_REMEDY
            elif alike:
                hint = f"did you mean {alike[0]!r}?"
            else:
                hint = did_you_mean(column, self.columns)
            error = FileFormatError(f"{self.name} has no {role} {column!r}; {hint}")
            remedy = self._other_place_hint(role)
            if remedy is not None:
                error = error.with_remedy(remedy.template, **remedy.values)
            raise error

    def _other_place_hint(self, role: str) -> Hint | None:
        """Return where else a column may stand: in another sheet, or labels in their own file."""
        if (
            self.sheet is not None
            and self.sheet.others
            and self.read_options.sheet is None
        ):
            says = "Sheet {title!r} was read; choose another with {sheet:{other!r}}."
            return Hint(
                says, {"title": self.sheet.title, "other": self.sheet.others[0]}
            )
        if self.arrays is not None and role == "label column":
            return Hint("Labels in a file of their own are {label:'y.npy'}.", {})
        return None

    @property
    def assumptions(self) -> list[Statement]:
        """What was taken for granted, as far as it was read."""
        said = [] if self.sheet is None else list(self.sheet.notes)
        if self.arrays is not None and self.arrays.note:
            said.append(self.arrays.note)
        if self.read_options.encoding is None and self.encoding != "utf-8":
            called = ENCODING_NAMES[self.encoding]
            text = f"The text of {self.name} is no UTF-8: it was read as {called}."
            said.append(
                Statement("note.encoding", text, numbers={"encoding": self.encoding})
            )
        formats = [
            number_format.statements() for number_format in self._writings.values()
        ]
        last = next((statements for statements in reversed(formats) if statements), [])
        return [*said, *last]

    # ---- rows

    def read(
        self,
        numbers: Sequence[str],
        text: Sequence[str] = (),
        plain: Sequence[str] = (),
    ) -> Any:
        """Return the named columns as a ``pyarrow.Table``; `plain` are numbers but no shares."""
        import pyarrow as pa

        columns = list(dict.fromkeys([*numbers, *plain, *text]))
        batches, self.cut = _take_first_batches(
            self.parts(numbers, text, plain), self.most_rows
        )
        if batches:
            return pa.Table.from_batches(batches).rename_columns(columns)
        as_floats = (*numbers, *plain)
        types = [pa.float64() if name in as_floats else pa.string() for name in columns]
        return pa.schema(zip(columns, types, strict=True)).empty_table()

    def first_rows(self, most: int) -> Source:
        """Return the same file, of which `read` returns the first `most` rows only."""
        first = copy.copy(self)
        first.most_rows = most
        first.cut = False
        return first

    def parts(
        self,
        numbers: Sequence[str],
        text: Sequence[str] = (),
        plain: Sequence[str] = (),
        rows: int | None = None,
    ) -> Iterator[Any]:
        """Yield the named columns as record batches, numbers as they are meant."""
        columns = list(dict.fromkeys([*numbers, *plain, *text]))
        with self.explained_pyarrow_errors(numbers, plain):
            batches = self._raw_batches(numbers, plain, columns, rows)
            yield from self.convert_numbers(batches, numbers, plain)

    def batches(self, numbers: Sequence[str]) -> Iterator[Any]:
        """Yield all columns as record batches, in order and with their raw names."""
        with self.explained_pyarrow_errors(numbers):
            batches = self._raw_batches(numbers, (), self.columns)
            yield from self.convert_numbers(batches, numbers)

    def _raw_batches(
        self,
        numbers: Sequence[str],
        plain: Sequence[str],
        columns: Sequence[str],
        rows: int | None = None,
    ) -> Iterator[Any]:
        """Yield columns as they stand in the file, with their raw names."""
        rows = rows or N_BATCH_ROWS
        if self.csv is not None:
            number_format = self.find_number_format(numbers, plain)
            floats = [
                name for name in (*numbers, *plain) if number_format.is_plain(name)
            ]
            places = [self.index(name) for name in columns]
            as_floats = {self.index(name) for name in floats}
            yield from self.csv.batches(self, places, as_floats, number_format.decimal)
        elif self.kind == "parquet":
            with self.open_parquet() as file:
                yield from file.iter_batches(batch_size=rows, columns=list(columns))
        elif self.kind == "arrow":
            with self.open_arrow() as file:
                yield from _read_arrow_columns(file, columns, rows)
        elif self.json is not None:
            raw = [self.raw_columns[self.index(name)] for name in columns]
            as_numbers = {
                self.raw_columns[self.index(name)] for name in (*numbers, *plain)
            }
            yield from self.json.batches(self, raw, as_numbers, rows)
        elif self.sheet is not None:
            places = [self.index(name) for name in columns]
            yield from self.sheet.batches(places, [self.raw_columns[j] for j in places])
        else:
            assert self.arrays is not None
            yield from self.arrays.batches(columns, rows)

    # ---- numbers

    def find_number_format(
        self, numbers: Sequence[str], plain: Sequence[str] = ()
    ) -> NumberFormat:
        """Return how the numbers are written: what was said, and what the first rows show."""
        key = (*numbers, "", *plain)
        if key not in self._writings:
            places = {name: self.index(name) for name in (*numbers, *plain)}
            if self.csv is not None:
                found = self.csv.marks.number_format(places)
            elif self.sheet is not None:
                found = _detect_sheet_number_format(self.sheet, places)
            else:
                found = PLAIN_FORMAT
            self._writings[key] = found._replace(
                percent=self.read_options.percent,
                drops_missing=self.read_options.drops_missing,
            )
        return self._writings[key]

    def convert_numbers(
        self, batches: Iterator[Any], numbers: Sequence[str], plain: Sequence[str] = ()
    ) -> Iterator[Any]:
        """Yield batches with numbers for what stands for them, percentages as shares."""
        number_format = self.find_number_format(numbers, plain)
        for batch in batches:
            if not self.is_text:
                _refuse_invalid_text(batch, self.name)
            for name in (*numbers, *plain):
                raw = self.raw_columns[self.index(name)]
                place = batch.schema.get_field_index(raw)
                column = batch.column(place)
                has_percent_sign = name in number_format.percent_columns
                meant = _convert_column(
                    column,
                    number_format,
                    has_percent_sign,
                    name in numbers,
                    self.is_text,
                )
                if meant is not column:
                    batch = batch.set_column(place, raw, meant)
            yield batch

    # ---- what is wrong, and where

    def locate_row(self, row: int) -> str:
        """Return where a row of data stands: ``line 19 of f.csv`` or ``row 17 of f.parquet``."""
        if self.sheet is not None:
            return f"row {self.sheet.lines[row]} of {self.name}"
        if self.json is not None:
            return f"line {self.json.find_line_of_row(self, row)} of {self.name}"
        if self.csv is None:
            return f"row {row} of {self.name}"
        with self.open_text() as stream:
            return (
                f"line {find_line_of_row(stream, self.separator, row)} of {self.name}"
            )

    @contextmanager
    def explained_pyarrow_errors(
        self, numbers: Sequence[str] = (), plain: Sequence[str] = ()
    ) -> Iterator[None]:
        """Turn pyarrow's errors into one sentence."""
        import pyarrow as pa

        try:
            yield
        except FileFormatError:
            raise
        except (pa.ArrowException, OSError, UnicodeError, csv.Error) as error:
            raise explain_pyarrow_error(self, error, numbers, plain) from None


def _detect_sheet_number_format(sheet: Sheet, places: dict[str, int]) -> NumberFormat:
    """Return how the numbers of some columns are written, where they are text."""
    columns = [sheet.text_cells(j) for j in places.values()]
    rows = zip_longest(*columns, fillvalue="")
    return detect_number_format(rows, {name: k for k, name in enumerate(places)})


def _take_first_batches(
    batches: Iterator[Any], most: int | None
) -> tuple[list[Any], bool]:
    """Return the batches of the first `most` rows, and whether there were more rows."""
    if most is None:
        return list(batches), False
    kept: list[Any] = []
    room = most
    for batch in batches:
        if batch.num_rows > room:
            return [*kept, batch.slice(0, room)], True
        kept.append(batch)
        room -= batch.num_rows
    return kept, False


def _read_arrow_columns(file: Any, columns: Sequence[str], rows: int) -> Iterator[Any]:
    """Yield columns of an Arrow file or stream, words that are coded by numbers as words."""
    import pyarrow as pa

    for whole in iterate_arrow_batches(file):
        table = pa.Table.from_batches([whole]).select(list(columns))
        for j, column in enumerate(table.columns):
            if pa.types.is_dictionary(column.type):
                words = column.cast(column.type.value_type)
                table = table.set_column(j, table.column_names[j], words)
        yield from table.to_batches(max_chunksize=rows)


def iterate_arrow_batches(file: Any) -> Iterator[Any]:
    """Yield the record batches of an open Arrow file, or of a stream, which has no number of them.

    One after the other: a file that is not a stream has no iterator of its own.
    """
    count = getattr(file, "num_record_batches", None)
    return iter(file) if count is None else map(file.get_batch, range(count))


def _convert_column(
    column: Any,
    number_format: NumberFormat,
    has_percent_sign: bool,
    is_share: bool,
    is_text: bool,
) -> Any:
    """Return numbers for a column of text, shares for percentages; any other column as it is."""
    import pyarrow as pa

    if is_text and pa.types.is_string(column.type):
        own = number_format if is_share else number_format._replace(percent=False)
        column = parse_numbers(column, own, has_percent_sign)
    are_percentages = is_share and number_format.percent
    if pa.types.is_integer(column.type) and (is_text or are_percentages):
        column = column.cast(pa.float64())
    is_percentage = number_format.percent or has_percent_sign
    if is_share and is_percentage and pa.types.is_floating(column.type):
        from pyarrow import compute  # takes a tenth of a second to load

        column = compute.divide(column, pa.scalar(100.0, column.type))
    return column


def _refuse_invalid_text(batch: Any, source: str) -> None:
    """Refuse text that is none; pyarrow looks at that of CSV files only."""
    import pyarrow as pa

    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        words = column.dictionary if pa.types.is_dictionary(column.type) else column
        if words.type not in (pa.string(), pa.large_string()):
            continue
        try:
            words.validate(full=True)
        except pa.ArrowInvalid:
            raise FileFormatError(
                f"{source} must hold UTF-8 text; column {name!r} holds other bytes.",
                column=name,
                remedy="Write that column again as text, or leave it out.",
            ) from None


def explain_pyarrow_error(
    source: Source, error: Exception, numbers: Sequence[str], plain: Sequence[str] = ()
) -> FileFormatError:
    """Return one sentence for what pyarrow says of a file."""
    first, _, _ = str(error).partition("\n")
    first = first.strip().rstrip(".")
    # names of columns may hold what moves the cursor of a terminal
    first = "".join(letter for letter in first if letter.isprintable())
    if source.has_changed:
        return changed_file_error(source.name)
    if isinstance(error, csv.Error) and not source.columns:  # of the header
        return FileFormatError(f"{source.name} cannot be read: {first}.")
    if isinstance(error, MemoryError):
        return FileFormatError(
            f"{source.name} cannot be read: its rows do not fit into memory.",
            remedy="Cut the file into smaller ones, and name their folder.",
        )
    damaged = {"parquet": "Parquet", "arrow": "Arrow"}.get(source.kind)
    if damaged is None and source.compression and isinstance(error, OSError):
        damaged = source.compression
    if damaged is not None:
        return FileFormatError(
            f"{source.name} cannot be read: the {damaged} file is damaged or cut short ({first}).",
            remedy="Write or download it again.",
        )
    if isinstance(error, UnicodeError):
        return FileFormatError(
            "{file} cannot be read as {its_encoding} text.",
            remedy="Name its encoding with {encoding}.",
            values={"file": source.name, "its_encoding": source.encoding},
        )
    fault = _find_fault(source, numbers, plain)
    if fault is not None:
        rule, remedy, column = fault
        values = {"file": source.name, "rule": rule}
        message = "{file} cannot be read: {rule}"
        return FileFormatError(message, column=column, remedy=remedy, values=values)
    if "straddl" in first and source.csv is not None:
        first = (
            f"a line is longer than {source.csv.n_bytes_of_block:,} bytes. Use Parquet"
        )
    return FileFormatError(f"{source.name} cannot be read: {first}.")


def _find_fault(
    source: Source, numbers: Sequence[str], plain: Sequence[str]
) -> FileFault | None:
    """Return what is wrong with the first broken line or row."""
    if source.csv is None and source.sheet is None:
        return None
    if not set(numbers) <= set(source.columns):
        numbers = ()  # what is no column of the file has no cells
    columns = [*numbers, *plain]
    number_format = (
        source.find_number_format(numbers, plain) if columns else PLAIN_FORMAT
    )
    if source.sheet is not None:
        return _find_fault_in_sheet(source, source.sheet, columns, number_format)
    assert source.csv is not None
    source.csv.refuse_open_quote(source)
    with source.open_text() as stream:
        return find_first_fault(
            stream, source.separator, source.columns, columns, number_format
        )


def _find_fault_in_sheet(
    source: Source, sheet: Sheet, columns: Sequence[str], number_format: NumberFormat
) -> FileFault | None:
    """Return the first cell of the first column with one that should be a number and is none."""
    for name in columns:
        for row, cell in enumerate(sheet.text_cells(source.index(name))):
            has_percent_sign = name in number_format.percent_columns
            fault = find_number_fault(cell, number_format, has_percent_sign)
            if fault is not None:
                where = f"row {sheet.lines[row]} has {fault[0]}"
                rule = f"column {name!r} must hold numbers; {where}."
                return FileFault(rule, fault[1], name)
    return None
