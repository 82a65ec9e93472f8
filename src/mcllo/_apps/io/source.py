"""Why a file cannot be read, in one sentence with a remedy.

pyarrow says that something failed. Where it did, and what to do about it, is found by reading the
file again: the first line whose cells are too many or too few, the first cell that is no number, a
quoted cell that never ends.

`Source`: a table in a file, read with pyarrow; what cannot be read becomes one sentence.

=============  ===================================================================================
kind           told from the first bytes, not from the name (`_apps/io/container`)
columns        of a CSV file, the named ones are read as numbers, all others as text, so that what
               passes through comes out as it went in
numbers        as people write them (`_apps/io/csv_text`); percentages become shares
rows           come whole or batch by batch, so that memory need not grow with the file; workbooks
               and ``.npz`` files are read at once (`_apps/io/sheets`, `_apps/io/arrays`)
assumed        what was taken for granted, as statements
``-``, a pipe  copied to a temporary file without a name, which can be read again and is gone with
               the process
=============  ===================================================================================
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from ...exceptions import FileFormatError, Hint
from .container import changed_meanwhile
from .csv_text import PLAIN_FORMAT, Fault, first_fault, has_odd_quotes, number_fault, open_quote

if TYPE_CHECKING:
    pass
import copy
import csv as text_csv
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any

from ..._utils.atomic_files import StrPath
from ..._utils.statements import Statement
from ..._validation.frames import did_you_mean, shorten
from .arrays import Arrays
from .container import (
    ENCODING_NAMES,
    N_HEAD_BYTES,
    UNSUPPORTED_COMPRESSED_MAGIC,
    Container,
    detect_encoding,
    refuse_foreign,
)
from .csv_text import (
    NumberFormat,
    detect_number_format,
    line_of_row,
    looks_like_data,
    parse_numbers,
    read_header,
    sample_rows,
)
from .read_options import DEFAULT_READ_OPTIONS, ReadOptions
from .sheets import Sheet


def refuse_open_quote(source: Source) -> None:
    """Refuse a CSV file with a quoted cell that never ends."""
    with source.stream() as stream:
        if not has_odd_quotes(stream):
            return
    with source.stream() as stream:
        line = open_quote(stream, source.separator)
    if line is not None:
        raise FileFormatError(
            f"{source.name} has a quoted cell that does not end, in line {line}. "
            "Close it, and write a quote inside quotes twice."
        )


def explain(
    source: Source, error: Exception, numbers: Sequence[str], plain: Sequence[str] = ()
) -> FileFormatError:
    """Return one sentence for what pyarrow says of a file."""
    first = (str(error).splitlines() or [""])[0].strip().rstrip(".")
    first = "".join(letter for letter in first if letter.isprintable())
    if source.changed:
        return changed_meanwhile(source.name)
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
    fault = _fault(source, numbers, plain)
    if fault is not None:
        rule, remedy, column = fault
        values = {"file": source.name, "rule": rule}
        message = "{file} cannot be read: {rule}"
        return FileFormatError(message, column=column, remedy=remedy, values=values)
    if "straddl" in first:
        first = f"a line is longer than {source.block:,} bytes. Use Parquet"
    return FileFormatError(f"{source.name} cannot be read: {first}.")


def _fault(source: Source, numbers: Sequence[str], plain: Sequence[str]) -> Fault | None:
    """Return what is wrong with the first broken line or row."""
    if not source.is_text:
        return None
    read = numbers if set(source.columns) >= set(numbers) else ()
    columns = [*read, *plain]
    writing = source.writing(read, plain) if columns else PLAIN_FORMAT
    if source.sheet is not None:
        for name in columns:
            fault_of = partial(number_fault, writing=writing, signed=name in writing.signed)
            for row, cell in enumerate(source.sheet.texts(source.index(name))):
                if (fault := fault_of(cell)) is not None:
                    where = f"row {source.sheet.lines[row]} has {fault[0]}"
                    rule = f"column {name!r} must hold numbers; {where}."
                    return Fault(rule, fault[1], name)
        return None
    refuse_open_quote(source)
    with source.stream() as stream:
        return first_fault(stream, source.separator, source.columns, columns, writing)


N_ENCODING_SAMPLE_BYTES = 1 << 24
"""Bytes of text that show its encoding."""
N_SAMPLE_CELLS = 20_000
"""Cells that show how numbers are written."""
MIN_BLOCK_BYTES = 1 << 20
"""Bytes of CSV parsed at a time, at least."""
MIN_BLOCK_BYTES_PER_COLUMN = 512
"""Times the number of columns: bytes parsed at a time for wide files. No line may be longer."""
N_BATCH_ROWS = 1 << 16
NO_HEADER_REMEDY = "its first line holds numbers. Add a header line with column names."


class Source(Container):
    """A table in a file or from standard input, whose rows can be read once or in batches.

    `name` is what messages call it, and `spool` the copy of a pipe. `columns` of a CSV file or a
    sheet are without the spaces around them, `raw_columns` as they are written. `read` returns at
    most `most_rows` rows after `first_rows`, and `cut` says whether it left rows out.
    """

    def __init__(self, path: StrPath, manner: ReadOptions = DEFAULT_READ_OPTIONS) -> None:
        super().__init__(path)
        self.manner = manner
        self.most_rows: int | None = None
        self.cut = False
        self.separator = ","
        self.arrays: Arrays | None = None
        self.sheet: Sheet | None = None
        self._writings: dict[tuple[str, ...], NumberFormat] = {}
        self.columns: list[str] = []
        self._named(self._read_columns())

    def _named(self, names: list[str]) -> None:
        """Keep the names of the columns; refuse too few, and names that occur twice."""
        self.raw_columns = names
        self.columns = [name.strip() if self.is_text else name for name in names]
        self._places = {name: j for j, name in enumerate(self.columns)}
        if len(self.columns) < 2:
            marks = (
                "Separate columns by commas, semicolons or tabs." if self.sheet is None else None
            )
            error = FileFormatError(
                f"{self.name} must have a header line with at least two columns; "
                f"got {shorten(self.columns)}.",
                remedy=marks,
            )
            hint = self._elsewhere("")
            raise error if hint is None else error.with_remedy(hint.template, **hint.values)
        twice = next((name for j, name in enumerate(self.columns) if self.index(name) != j), None)
        if twice is not None:
            what = f"{twice!r} occurs twice" if twice else "two columns have no name"
            what = NO_HEADER_REMEDY if self._without_header else f"{what}. Rename one."
            raise FileFormatError(f"{self.name} must have distinct column names; {what}")

    @property
    def is_text(self) -> bool:
        """Whether cells are as somebody typed them, with spaces that do not count."""
        return self.kind in ("csv", "sheet")

    @property
    def assumed(self) -> list[Statement]:
        """What was taken for granted, as far as it was read."""
        said = [part.note for part in (self.sheet, self.arrays) if part and part.note]
        if self.manner.encoding is None and self.encoding != "utf-8":
            called = ENCODING_NAMES[self.encoding]
            text = f"The text of {self.name} is no UTF-8: it was read as {called}."
            said.append(Statement("note.encoding", text, numbers={"encoding": self.encoding}))
        writings = [w for w in self._writings.values() if w.statements()]
        return [*said, *(writings[-1].statements() if writings else [])]

    def take_names(self, names: Sequence[str]) -> None:
        """Name the columns of an array that has none."""
        assert self.arrays is not None
        self.arrays.rename(names)
        self._named(list(self.arrays.columns))

    def take_labels(self, path: StrPath) -> None:
        """Add the labels in another file to the columns of an array."""
        assert self.arrays is not None
        self.arrays.attach(path)
        self._named(list(self.arrays.columns))

    def index(self, column: str) -> int:
        """Return the position of a column."""
        return self._places[column]

    def require(self, columns: Sequence[str], role: str) -> None:
        """Refuse when a column is missing."""
        for column in columns:
            if column not in self._places:
                alike = [name for name in self.columns if name.lower() == column.lower()]
                hint = f"did you mean {alike[0]!r}?" if alike else ""
                hint = hint or did_you_mean(column, self.columns)
                hint = NO_HEADER_REMEDY if self._without_header else hint
                error = FileFormatError(f"{self.name} has no {role} {column!r}; {hint}")
                remedy = self._elsewhere(role)
                raise (
                    error if remedy is None else error.with_remedy(remedy.template, **remedy.values)
                )

    def _elsewhere(self, role: str) -> Hint | None:
        """Return where else a column may stand: in another sheet, or labels in their own file."""
        if self.sheet is not None and self.sheet.others and self.manner.sheet is None:
            says = "Sheet {title!r} was read, the first; choose another with {sheet:{other!r}}."
            return Hint(says, {"title": self.sheet.title, "other": self.sheet.others[0]})
        if self.arrays is not None and role == "label column":
            return Hint("Labels in a file of their own are {label:'y.npy'}.", {})
        return None

    def read(
        self, numbers: Sequence[str], text: Sequence[str] = (), plain: Sequence[str] = ()
    ) -> Any:
        """Return the named columns as a ``pyarrow.Table``; `plain` are numbers but no shares."""
        import pyarrow as pa

        columns = list(dict.fromkeys([*numbers, *plain, *text]))
        batches = self._bounded(self.parts(numbers, text, plain))
        if batches:
            return pa.Table.from_batches(batches).rename_columns(columns)
        shares = dict.fromkeys([*numbers, *plain], pa.float64())
        return pa.schema([(name, shares.get(name, pa.string())) for name in columns]).empty_table()

    def parts(
        self,
        numbers: Sequence[str],
        text: Sequence[str] = (),
        plain: Sequence[str] = (),
        rows: int | None = None,
    ) -> Iterator[Any]:
        """Yield the named columns as record batches, numbers as they are meant."""
        columns = list(dict.fromkeys([*numbers, *plain, *text]))
        with self.sentences(numbers, plain):
            yield from self.convert_numbers(
                self._batches(numbers, plain, columns, rows), numbers, plain
            )

    def first_rows(self, most: int) -> Source:
        """Return the same file, of which `read` returns the first `most` rows only."""
        first = copy.copy(self)
        first.most_rows, first.cut = most, False
        return first

    def _bounded(self, batches: Iterator[Any]) -> list[Any]:
        """Return the batches as far as they are wanted, and note whether there were more."""
        if self.most_rows is None:
            return list(batches)
        kept: list[Any] = []
        room = self.most_rows
        for batch in batches:
            if batch.num_rows > room:
                self.cut = True
                return [*kept, batch.slice(0, room)]
            kept.append(batch)
            room -= batch.num_rows
        return kept

    def batches(self, numbers: Sequence[str]) -> Iterator[Any]:
        """Yield all columns as record batches, in order and with their raw names."""
        with self.sentences(numbers):
            yield from self.convert_numbers(self._batches(numbers, (), self.columns), numbers)

    def _batches(
        self,
        numbers: Sequence[str],
        plain: Sequence[str],
        columns: Sequence[str],
        rows: int | None = None,
    ) -> Iterator[Any]:
        """Yield columns as they stand in the file, with their raw names."""
        rows = rows or N_BATCH_ROWS
        if self.kind == "csv":
            yield from self._csv_batches(numbers, plain, columns)
        elif self.kind == "parquet":
            with self.parquet() as file:
                yield from file.iter_batches(batch_size=rows, columns=list(columns))
        elif self.kind == "arrow":
            yield from self._arrow_batches(columns, rows)
        elif self.sheet is not None:
            places = [self.index(name) for name in columns]
            yield from self.sheet.batches(places, [self.raw_columns[j] for j in places])
        else:
            assert self.arrays is not None
            yield from self.arrays.batches(columns, rows)

    def writing(self, numbers: Sequence[str], plain: Sequence[str] = ()) -> NumberFormat:
        """Return how the numbers are written: what was said, and what the first rows show."""
        known = (*numbers, "", *plain)
        if known not in self._writings:
            self._writings[known] = self._found_writing([*numbers, *plain])
        return self._writings[known]

    def _found_writing(self, columns: list[str]) -> NumberFormat:
        places = {name: self.index(name) for name in columns}
        found = NumberFormat()
        if self.kind == "csv" and columns:
            with self.stream() as stream:
                rows = sample_rows(stream, self.separator, MIN_BLOCK_BYTES, N_SAMPLE_CELLS)
            found = detect_number_format(rows, places)
        elif self.sheet is not None:
            cells = [self.sheet.texts(j) for j in places.values()]
            rows = [list(row) for row in zip_longest(*cells, fillvalue="")]
            found = detect_number_format(rows, dict(zip(places, range(len(cells)), strict=True)))
        return found._replace(percent=self.manner.percent, drops=self.manner.drops)

    def convert_numbers(
        self, batches: Iterator[Any], numbers: Sequence[str], plain: Sequence[str] = ()
    ) -> Iterator[Any]:
        """Yield batches with numbers for what stands for them, percentages as shares."""
        import pyarrow as pa

        writing = self.writing(numbers, plain)
        shares = {self.raw_columns[self.index(name)]: name for name in numbers}
        weights = {self.raw_columns[self.index(name)]: name for name in plain}
        for batch in batches:
            self._refuse_foreign_bytes(batch)
            for raw, name in (shares | weights).items():
                place = batch.schema.get_field_index(raw)
                column, share = batch.column(place), raw in shares
                signed = name in writing.signed
                if self.is_text and pa.types.is_string(column.type):
                    kept = writing if share else writing._replace(percent=False)
                    column = parse_numbers(column, kept, signed)
                whole = pa.types.is_integer(column.type)
                if whole and (self.is_text or (share and writing.percent)):
                    column = column.cast(pa.float64())
                if share and (writing.percent or signed) and pa.types.is_floating(column.type):
                    from pyarrow import compute  # a tenth of a second

                    column = compute.divide(column, pa.scalar(100.0, column.type))
                if column is not batch.column(place):
                    batch = batch.set_column(place, raw, column)
            yield batch

    def _refuse_foreign_bytes(self, batch: Any) -> None:
        """Refuse text that is none; pyarrow looks at that of CSV files only."""
        import pyarrow as pa

        if self.is_text:
            return
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            coded = pa.types.is_dictionary(column.type)
            kind = column.type.value_type if coded else column.type
            if pa.types.is_string(kind) or pa.types.is_large_string(kind):
                try:
                    (column.dictionary if coded else column).validate(full=True)
                except pa.ArrowInvalid:
                    raise FileFormatError(
                        f"{self.name} must hold UTF-8 text; column {name!r} holds other bytes.",
                        column=name,
                        remedy="Write that column again as text, or leave it out.",
                    ) from None

    def place(self, row: int) -> str:
        """Return where a row of data stands: ``line 19 of f.csv`` or ``row 17 of f.parquet``."""
        if self.sheet is not None:
            return f"row {self.sheet.lines[row]} of {self.name}"
        if self.kind != "csv":
            return f"row {row} of {self.name}"
        with self.stream() as stream:
            return f"line {line_of_row(stream, self.separator, row)} of {self.name}"

    def _csv_batches(
        self, numbers: Sequence[str], plain: Sequence[str], columns: Sequence[str]
    ) -> Iterator[Any]:
        """Yield columns of a CSV file: plain numbers as float64, all else as text."""
        import pyarrow as pa
        from pyarrow import csv

        writing = self.writing(numbers, plain)
        types = dict.fromkeys(columns, pa.string())
        types |= {name: pa.float64() for name in [*numbers, *plain] if writing.is_plain(name)}
        raw = {self.raw_columns[self.index(name)]: types[name] for name in columns}
        convert = csv.ConvertOptions(
            column_types=raw,
            include_columns=list(raw),
            null_values=[""],
            strings_can_be_null=True,
            decimal_point=writing.decimal,
        )
        parse = csv.ParseOptions(delimiter=self.separator, newlines_in_values=True)
        read = csv.ReadOptions(block_size=self.block)
        with self.stream() as stream:
            try:
                rows = csv.open_csv(
                    stream, convert_options=convert, parse_options=parse, read_options=read
                )
            except pa.ArrowInvalid as error:
                if "Empty CSV" in str(error):
                    return  # a header without a line end
                raise
            yield from rows
        refuse_open_quote(self)

    @property
    def block(self) -> int:
        """Bytes of a CSV file parsed at a time."""
        return max(MIN_BLOCK_BYTES, MIN_BLOCK_BYTES_PER_COLUMN * len(self.columns))

    def _arrow_batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        import pyarrow as pa

        with self.arrow() as file:
            count = getattr(file, "num_record_batches", None)
            found = iter(file) if count is None else map(file.get_batch, range(count))
            for whole in found:
                table = pa.Table.from_batches([whole]).select(list(columns))
                for j, column in enumerate(table.columns):
                    if pa.types.is_dictionary(column.type):
                        plain = column.cast(column.type.value_type)
                        table = table.set_column(j, table.column_names[j], plain)
                yield from table.to_batches(max_chunksize=rows)

    def _read_columns(self) -> list[str]:
        with self.sentences():
            if self.kind == "parquet":
                with self.parquet() as file:
                    return list(file.schema_arrow.names)
            if self.kind == "arrow":
                with self.arrow() as file:
                    return list(file.schema.names)
            if self.kind in ("sheet", "array"):
                with self._file() as file:
                    if self.kind == "sheet":
                        self.sheet = Sheet(file, self.name, self.manner.sheet)
                        return self.sheet.names
                    self.arrays = Arrays(file, self.name, self.manner.sheet)
                    return list(self.arrays.columns)
            with self.stream() as stream:
                sample = stream.read(N_ENCODING_SAMPLE_BYTES)
            if self.compression:
                refuse_foreign(sample[:N_HEAD_BYTES], self.name, UNSUPPORTED_COMPRESSED_MAGIC)
            self.encoding = self.manner.encoding or detect_encoding(sample)
            with self.stream() as stream:
                names, self.separator = read_header(stream)
        return names

    @property
    def _without_header(self) -> bool:
        return self.is_text and looks_like_data(self.columns)

    @contextmanager
    def sentences(self, numbers: Sequence[str] = (), plain: Sequence[str] = ()) -> Iterator[None]:
        """Turn pyarrow's errors into one sentence."""
        import pyarrow as pa

        try:
            yield
        except FileFormatError:
            raise
        except (pa.ArrowException, OSError, UnicodeError, text_csv.Error) as error:
            raise explain(self, error, numbers, plain) from None
