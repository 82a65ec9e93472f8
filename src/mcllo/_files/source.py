"""`Source`: a CSV or Parquet file, read with pyarrow; what cannot be read becomes one sentence.

=============  ===================================================================================
kind           told from the first bytes, not from the name; what is neither CSV nor Parquet is
               refused by what it looks like
columns        the named ones are read as numbers, all others of a CSV file as text, so that what
               passes through comes out as it went in
rows           come whole or batch by batch, so that memory need not grow with the file
``-``, a pipe  copied to a temporary file without a name, which can be read again and is gone with
               the process
=============  ===================================================================================
"""

from __future__ import annotations

import copy
import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

from .._ground.files import StrPath
from .._input.frames import did_you_mean, shorten
from ..exceptions import FileFormatError
from .csv_text import (
    first_fault,
    has_odd_quotes,
    line_of_row,
    looks_like_data,
    open_quote,
    read_header,
)

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
FOREIGN = {
    b"PK\x03\x04": "a spreadsheet or zip archive",
    b"\xd0\xcf\x11\xe0": "an old Excel file",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
    b"\x93NUMPY": "a NumPy array",
    **{bytes([0x80, protocol]): "a pickle" for protocol in (2, 3, 4, 5)},
    b"ARROW1": "an Arrow IPC file",
    b"\x89HDF": "an HDF5 file",
    b"SQLite format 3": "an SQLite database",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ": "an xz archive",
    b"\x28\xb5\x2f\xfd": "a zstd archive",
    b"%PDF": "a PDF",
    b"{": "JSON",
    b"[": "JSON",
    b"<": "HTML or XML",
}
GZIPPED = FOREIGN | {b"PAR1": "gzipped Parquet", b"\x1f\x8b": "text that is gzipped twice"}


def refuse_foreign(head: bytes, name: str, foreign: dict[bytes, str] = FOREIGN) -> None:
    """Refuse the beginning of a file that is empty or of a kind that is not read."""
    text = head.removeprefix(BYTE_ORDER_MARK).lstrip()
    if not text:
        raise FileFormatError(
            f"{name} must hold a table with a header line; it is empty. Check what wrote it."
        )
    what = next((what for magic, what in foreign.items() if text.startswith(magic)), None)
    if what is None and b"\0" in head and not head.startswith((b"\x1f\x8b", b"PAR1")):
        what = "UTF-16 text or binary data"
    if what is not None:
        raise FileFormatError(
            f"{name} must be CSV or Parquet; it looks like {what}. "
            "Save it as CSV (UTF-8) or Parquet."
        )


def first_bytes(path: Path, size: int) -> bytes:
    """Return the beginning of a file; refuse what cannot be opened."""
    try:
        with path.open("rb") as file:
            return file.read(size)
    except FileNotFoundError:
        import difflib

        names = sorted(os.listdir(path.parent)) if path.parent.is_dir() else []
        close = difflib.get_close_matches(path.name, names, n=1)
        hint = f"; did you mean {str(path.parent / close[0])!r}?" if close else ". Check the name."
        raise FileFormatError(f"{path} must exist; there is no such file{hint}") from None
    except IsADirectoryError:
        raise FileFormatError(f"{path} must be a file; it is a directory. Name a file.") from None
    except PermissionError:
        raise FileFormatError(
            f"{path} must be readable; permission was denied. Check its permissions."
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileFormatError(f"{path} cannot be opened: {reason}.") from None


HEAD = 4096
BLOCK = 1 << 20
"""Bytes of CSV parsed at a time, at least."""
BYTES_PER_CELL = 512
"""Times the number of columns: bytes parsed at a time for wide files. No line may be longer."""
BATCH_ROWS = 1 << 16
NO_HEADER = "its first line holds numbers. Add a header line with column names."


class Source:
    """A CSV or Parquet file, or standard input, whose rows can be read once or in batches.

    `name` is what messages call it, and `spool` the copy of a pipe. `columns` of a CSV file are
    without the spaces around them, `raw_columns` as they are written. `read` returns at most
    `most_rows` rows after `first_rows`, and `cut` says whether it left rows out.
    """

    def __init__(self, path: StrPath) -> None:
        self.name = "standard input" if str(path) == "-" else str(path)
        self.path = Path(path)
        self.spool = self._spooled()
        self.most_rows: int | None = None
        self.cut = False
        head = self._head()
        self.gzipped = head.startswith(b"\x1f\x8b")
        self.kind = "parquet" if head.startswith(b"PAR1") else "csv"
        self.separator = ","
        self.raw_columns = self._read_columns()
        strip = self.kind == "csv"
        self.columns = [name.strip() if strip else name for name in self.raw_columns]
        self._places = {name: j for j, name in enumerate(self.columns)}
        if len(self.columns) < 2:
            raise FileFormatError(
                f"{self.name} must have a header line with at least two columns; "
                f"got {shorten(self.columns)}. Separate columns by commas, semicolons or tabs."
            )
        twice = next((name for j, name in enumerate(self.columns) if self.index(name) != j), None)
        if twice is not None:
            what = f"{twice!r} occurs twice" if twice else "two columns have no name"
            what = NO_HEADER if self._without_header else f"{what}. Rename one."
            raise FileFormatError(f"{self.name} must have distinct column names; {what}")

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
                hint = NO_HEADER if self._without_header else hint
                raise FileFormatError(f"{self.name} has no {role} {column!r}; {hint}")

    def read(self, numbers: Sequence[str], text: Sequence[str] = ()) -> Any:
        """Return the named columns as a ``pyarrow.Table``."""
        import pyarrow as pa

        columns = [*numbers, *(name for name in text if name not in numbers)]
        with self.sentences(numbers):
            if self.kind == "parquet":
                with self.parquet() as file:
                    if self.most_rows is None:
                        return file.read(columns=columns)
                    rows = file.iter_batches(batch_size=BATCH_ROWS, columns=columns)
                    schema = pa.schema([file.schema_arrow.field(name) for name in columns])
                    return pa.Table.from_batches(self._bounded(rows), schema=schema)
            schema = self._csv_schema(numbers, columns)
            batches = self._bounded(self.csv_batches(numbers, columns))
            return pa.Table.from_batches(batches, schema=schema).rename_columns(columns)

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
            if self.kind == "parquet":
                with self.parquet() as file:
                    yield from file.iter_batches(batch_size=BATCH_ROWS)
            else:
                yield from self.csv_batches(numbers, self.columns)

    def place(self, row: int) -> str:
        """Return where a row of data stands: ``line 19 of f.csv`` or ``row 17 of f.parquet``."""
        if self.kind == "parquet":
            return f"row {row} of {self.name}"
        with self._stream() as stream:
            return f"line {line_of_row(stream, self.separator, row)} of {self.name}"

    def _csv_schema(self, numbers: Sequence[str], columns: Sequence[str]) -> Any:
        """Return the raw names with their types: numbers are float64, all others text."""
        import pyarrow as pa

        types = dict.fromkeys(columns, pa.string()) | dict.fromkeys(numbers, pa.float64())
        return pa.schema([(self.raw_columns[self.index(name)], types[name]) for name in columns])

    def csv_batches(self, numbers: Sequence[str], columns: Sequence[str]) -> Iterator[Any]:
        """Yield the named columns of a CSV file as record batches, with their raw names."""
        import pyarrow as pa
        from pyarrow import csv

        schema = self._csv_schema(numbers, columns)
        convert = csv.ConvertOptions(
            column_types=dict(zip(schema.names, schema.types, strict=True)),
            include_columns=schema.names,
            null_values=[""],
            strings_can_be_null=True,
        )
        parse = csv.ParseOptions(delimiter=self.separator, newlines_in_values=True)
        read = csv.ReadOptions(block_size=self._block)
        with self._stream() as stream:
            try:
                rows = csv.open_csv(
                    stream, convert_options=convert, parse_options=parse, read_options=read
                )
            except pa.ArrowInvalid as error:
                if "Empty CSV" in str(error):
                    return  # a header without a line end
                raise
            yield from rows
        self._refuse_open_quote()

    @property
    def _block(self) -> int:
        return max(BLOCK, BYTES_PER_CELL * len(self.columns))

    @contextmanager
    def parquet(self) -> Iterator[Any]:
        """Open a Parquet file; unlike pyarrow, also close the copy of a pipe."""
        from pyarrow import parquet

        whole = nullcontext(self.path) if self.spool is None else self._reopened()
        with whole as raw, parquet.ParquetFile(raw) as file:
            yield file

    def _stream(self) -> Any:
        import pyarrow as pa

        raw = str(self.path) if self.spool is None else self._reopened()
        return pa.input_stream(raw, compression="gzip" if self.gzipped else None)

    def _reopened(self) -> IO[bytes]:
        """Return the copy of a pipe from its beginning."""
        assert self.spool is not None
        file = os.fdopen(os.dup(self.spool.fileno()), "rb")
        file.seek(0)
        return file

    def _spooled(self) -> IO[bytes] | None:
        """Return a copy of standard input or of a named pipe; None for a file."""
        standard = self.name == "standard input"
        if not standard and (not self.path.exists() or self.path.is_file() or self.path.is_dir()):
            return None
        copy = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as this object
        weakref.finalize(self, copy.close)
        with nullcontext(sys.stdin.buffer) if standard else self.path.open("rb") as pipe:
            shutil.copyfileobj(pipe, copy, BLOCK)
        copy.flush()
        return copy

    def _head(self) -> bytes:
        if self.spool is None:
            head = first_bytes(self.path, HEAD)
        else:
            with self._reopened() as file:
                head = file.read(HEAD)
        refuse_foreign(head, self.name)
        return head

    def _read_columns(self) -> list[str]:
        with self.sentences():
            if self.kind == "parquet":
                with self.parquet() as file:
                    return list(file.schema_arrow.names)
            if self.gzipped:
                with self._stream() as stream:
                    refuse_foreign(stream.read(HEAD), self.name, GZIPPED)
            with self._stream() as stream:
                names, self.separator = read_header(stream)
        return names

    @property
    def _without_header(self) -> bool:
        return self.kind == "csv" and looks_like_data(self.columns)

    def _refuse_open_quote(self) -> None:
        with self._stream() as stream:
            if not has_odd_quotes(stream):
                return
        with self._stream() as stream:
            line = open_quote(stream, self.separator)
        if line is not None:
            raise FileFormatError(
                f"{self.name} has a quoted cell that does not end, in line {line}. "
                "Close it, and write a quote inside quotes twice."
            )

    @contextmanager
    def sentences(self, numbers: Sequence[str] = ()) -> Iterator[None]:
        """Turn pyarrow's errors into one sentence."""
        import pyarrow as pa

        try:
            yield
        except FileFormatError:
            raise
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise self._explain(error, numbers) from None

    def _explain(self, error: Exception, numbers: Sequence[str]) -> FileFormatError:
        first = str(error).splitlines()[0].strip().rstrip(".")
        if self.kind == "parquet" or (self.gzipped and isinstance(error, OSError)):
            kind = "Parquet" if self.kind == "parquet" else "gzip"
            return FileFormatError(
                f"{self.name} cannot be read: the {kind} file is damaged or cut short ({first}).",
                remedy="Write or download it again.",
            )
        if isinstance(error, UnicodeDecodeError):
            return FileFormatError(
                f"{self.name} must be UTF-8 text; its header holds other bytes.",
                remedy="Save it as UTF-8.",
            )
        self._refuse_open_quote()
        with self._stream() as stream:
            fault = first_fault(stream, self.separator, self.columns, numbers)
        if fault is not None:
            rule, remedy, column = fault
            message = f"{self.name} cannot be read: {rule}"
            return FileFormatError(message, column=column, remedy=remedy)
        if "straddl" in first:
            first = f"a line is longer than {self._block:,} bytes. Use Parquet"
        return FileFormatError(f"{self.name} cannot be read: {first}.")
