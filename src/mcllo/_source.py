"""`Source`: a CSV or Parquet file, read with pyarrow; what cannot be read becomes one sentence.

A file's kind is told from its first bytes, not from its name. Named columns are read as numbers and
all other CSV columns as text, so that what passes through comes out as it went in. Rows come whole
or batch by batch, so that memory need not grow with the file. ``-`` stands for standard input,
which is copied to a temporary file without a name: it can be read again, and is never held whole.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ._csv_text import (
    first_fault,
    has_odd_quotes,
    line_of_row,
    looks_like_data,
    open_quote,
    read_header,
)
from ._frames import did_you_mean, shorten
from .exceptions import FileFormatError

StrPath = str | os.PathLike[str]

HEAD = 4096
BLOCK = 1 << 22
"""Bytes of CSV parsed at a time: no line may be longer."""
BATCH_ROWS = 1 << 16
FOREIGN = {
    b"PK\x03\x04": "a spreadsheet or zip archive",
    b"\xd0\xcf\x11\xe0": "an old Excel file",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
    b"\x93NUMPY": "a NumPy array",
    b"\x80\x02": "a pickle",
    b"\x80\x03": "a pickle",
    b"\x80\x04": "a pickle",
    b"\x80\x05": "a pickle",
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


class Source:
    """A CSV or Parquet file, or standard input, whose rows can be read once or in batches.

    Attributes
    ----------
    name : str
        How messages call it.
    kind : {'csv', 'parquet'}
        Told from the content.
    columns : list of str
        Column names in order; those of a CSV file without the spaces around them.
    raw_columns : list of str
        Column names as they are written.
    separator : str
        What stands between the cells of a CSV file.
    """

    def __init__(self, path: StrPath) -> None:
        piped = str(path) == "-"
        self.name = "standard input" if piped else str(path)
        self._path = None if piped else Path(path)
        self._spool = _spooled(sys.stdin.buffer) if piped else None
        head = self._head()
        self._gzip = head.startswith(b"\x1f\x8b")
        self.kind = "parquet" if head.startswith(b"PAR1") else "csv"
        self.separator = ","
        self.raw_columns = self._read_columns()
        strip = self.kind == "csv"
        self.columns = [name.strip() if strip else name for name in self.raw_columns]
        self._check_columns()

    def require(self, columns: Sequence[str], role: str) -> None:
        """Refuse when a column is missing."""
        for column in columns:
            if column not in self.columns:
                hint = did_you_mean(column, self.columns)
                if self.kind == "csv" and looks_like_data(self.columns):
                    hint = "its first line holds numbers. Add a header line with column names."
                raise FileFormatError(f"{self.name} has no {role} {column!r}; {hint}")

    def read(self, numbers: Sequence[str], text: Sequence[str] = ()) -> Any:
        """Return the named columns as a ``pyarrow.Table``."""
        import pyarrow as pa

        columns = [*numbers, *(name for name in text if name not in numbers)]
        with self._sentences(numbers):
            if self.kind == "parquet":
                with self._parquet() as file:
                    return file.read(columns=columns)
            schema = self._csv_schema(numbers, columns)
            batches = list(self._csv_batches(numbers, columns))
            return pa.Table.from_batches(batches, schema=schema).rename_columns(columns)

    def batches(self, numbers: Sequence[str]) -> Iterator[Any]:
        """Yield all columns as record batches, in order and with their raw names."""
        with self._sentences(numbers):
            if self.kind == "parquet":
                with self._parquet() as file:
                    yield from file.iter_batches(batch_size=BATCH_ROWS)
            else:
                yield from self._csv_batches(numbers, self.columns)

    def place(self, row: int) -> str:
        """Return where a row of data stands: ``line 19 of f.csv`` or ``row 17 of f.parquet``."""
        if self.kind == "parquet":
            return f"row {row} of {self.name}"
        with self._stream() as stream:
            return f"line {line_of_row(stream, self.separator, row)} of {self.name}"

    def _csv_schema(self, numbers: Sequence[str], columns: Sequence[str]) -> Any:
        import pyarrow as pa

        raw = dict(zip(self.columns, self.raw_columns, strict=True))
        return pa.schema(
            [(raw[name], pa.float64() if name in numbers else pa.string()) for name in columns]
        )

    def _csv_batches(self, numbers: Sequence[str], columns: Sequence[str]) -> Iterator[Any]:
        from pyarrow import csv

        schema = self._csv_schema(numbers, columns)
        convert = csv.ConvertOptions(
            column_types=dict(zip(schema.names, schema.types, strict=True)),
            include_columns=schema.names,
            null_values=[""],
            strings_can_be_null=True,
        )
        parse = csv.ParseOptions(delimiter=self.separator, newlines_in_values=True)
        read = csv.ReadOptions(block_size=BLOCK)
        with self._stream() as stream:
            yield from csv.open_csv(
                stream, convert_options=convert, parse_options=parse, read_options=read
            )
        self._refuse_open_quote()

    def _parquet(self) -> Any:
        from pyarrow import parquet

        return parquet.ParquetFile(self._path if self._spool is None else self._reopened())

    def _stream(self) -> Any:
        import pyarrow as pa

        raw = self._reopened() if self._path is None else str(self._path)
        return pa.input_stream(raw, compression="gzip" if self._gzip else None)

    def _reopened(self) -> IO[bytes]:
        """Return standard input's copy from its beginning."""
        assert self._spool is not None
        file = os.fdopen(os.dup(self._spool.fileno()), "rb")
        file.seek(0)
        return file

    def _head(self) -> bytes:
        if self._path is None:
            with self._reopened() as file:
                head = file.read(HEAD)
        else:
            head = _first_bytes(self._path)
        self._refuse_foreign(head)
        return head

    def _refuse_foreign(self, head: bytes) -> None:
        if not head.strip(b"\xef\xbb\xbf\r\n\t "):
            raise FileFormatError(
                f"{self.name} must hold a table with a header line; it is empty. "
                "Check what wrote it."
            )
        text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        what = next((what for magic, what in FOREIGN.items() if text.startswith(magic)), None)
        if what is None and b"\0" in head and not head.startswith((b"\x1f\x8b", b"PAR1")):
            what = "UTF-16 text or binary data"
        if what is not None:
            raise FileFormatError(
                f"{self.name} must be CSV or Parquet; it looks like {what}. "
                "Save it as CSV (UTF-8) or Parquet."
            )

    def _read_columns(self) -> list[str]:
        with self._sentences():
            if self.kind == "parquet":
                with self._parquet() as file:
                    return list(file.schema_arrow.names)
            if self._gzip:
                with self._stream() as stream:
                    self._refuse_foreign(stream.read(HEAD))
            with self._stream() as stream:
                names, self.separator = read_header(stream)
        return names

    def _check_columns(self) -> None:
        if len(self.columns) < 2:
            raise FileFormatError(
                f"{self.name} must have a header line with at least two columns; "
                f"got {shorten(self.columns)}. Separate columns by commas, semicolons or tabs."
            )
        for i, column in enumerate(self.columns):
            if column in self.columns[:i]:
                what = f"{column!r} occurs twice" if column else "two columns have no name"
                raise FileFormatError(
                    f"{self.name} must have distinct column names; {what}. Rename one."
                )

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
    def _sentences(self, numbers: Sequence[str] = ()) -> Iterator[None]:
        """Turn pyarrow's errors into one sentence."""
        import pyarrow as pa

        try:
            yield
        except FileFormatError:
            raise
        except UnicodeDecodeError:
            raise FileFormatError(
                f"{self.name} must be UTF-8 text; its header holds other bytes. Save it as UTF-8."
            ) from None
        except (pa.ArrowException, OSError) as error:
            raise FileFormatError(self._explain(error, numbers)) from None

    def _explain(self, error: Exception, numbers: Sequence[str]) -> str:
        first = str(error).splitlines()[0].strip().rstrip(".")
        if self.kind == "parquet" or (self._gzip and isinstance(error, OSError)):
            kind = "Parquet" if self.kind == "parquet" else "gzip"
            return (
                f"{self.name} cannot be read: the {kind} file is damaged or cut short "
                f"({first}). Write or download it again."
            )
        self._refuse_open_quote()
        with self._stream() as stream:
            fault = first_fault(stream, self.separator, self.columns, numbers)
        if fault is None and "straddl" in first:
            fault = f"a line is longer than {BLOCK:,} bytes. Use Parquet."
        return f"{self.name} cannot be read: {fault or first + '.'}"


def _spooled(stream: IO[bytes]) -> IO[bytes]:
    """Return a copy of a stream that can be read again; it vanishes with the process."""
    copy = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as its Source
    shutil.copyfileobj(stream, copy, BLOCK)
    copy.flush()
    return copy


def _first_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(HEAD)
    except FileNotFoundError:
        raise FileFormatError(f"{path} must exist; there is no such file{_near(path)}") from None
    except IsADirectoryError:
        raise FileFormatError(f"{path} must be a file; it is a directory. Name a file.") from None
    except PermissionError:
        raise FileFormatError(
            f"{path} must be readable; permission was denied. Check its permissions."
        ) from None
    except (OSError, ValueError) as error:
        raise FileFormatError(f"{path} cannot be opened: {_reason(error)}.") from None


def _near(path: Path) -> str:
    """Return a file of nearly that name, as a question."""
    import difflib

    names = sorted(os.listdir(path.parent)) if path.parent.is_dir() else []
    close = difflib.get_close_matches(path.name, names, n=1)
    return f"; did you mean {str(path.parent / close[0])!r}?" if close else ". Check the name."


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)
