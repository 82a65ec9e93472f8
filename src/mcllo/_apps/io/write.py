"""Tables out: written to a temporary name and renamed, numbers in shortest exact form.

===========================  ======================================================================
``.parquet``, ``.pq``        Parquet, with checksums of its pages
``.feather``, ``.arrow``     Arrow
``.xlsx``                    a workbook (`_apps/io/sheets`)
``.npy``                     the numbers, where there is nothing else
``.tsv``, ``.tab``           CSV with tabs
``-``                        standard output, CSV
any other name               CSV with the separator and the encoding of the file that was read
any CSV name with ``.gz``    the same, compressed; so with ``.zst``
===========================  ======================================================================
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ..._utils.atomic_files import StrPath, check_writable, replace_atomically
from ..._utils.terminal import standard_output
from ...exceptions import FileFormatError
from .csv_text import DECIMAL_COMMA, DECIMAL_POINT, NumberFormat
from .sheets import ExcelTableWriter, WorkbookUpdate

PARQUET_SUFFIXES = {".parquet", ".pq"}
ARROW_SUFFIXES = {".feather", ".arrow"}
TAB_SUFFIXES = {".tsv", ".tab"}
COMPRESSION_SUFFIXES = {".gz", ".zst"}
BINARY_SUFFIXES = PARQUET_SUFFIXES | ARROW_SUFFIXES | {".xlsx", ".npy"}
UNSUPPORTED_SUFFIXES = {
    ".xls",
    ".ods",
    ".json",
    ".jsonl",
    ".orc",
    ".npz",
    ".pkl",
    ".zip",
    ".html",
    ".pdf",
}


class ParquetTableWriter:
    """Writes record batches as Parquet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sink_file: Any = None
        self._sink: Any = None

    def write(self, batch: Any) -> None:
        """Append a batch."""
        if self._sink is None:  # the first batch says what the columns are
            self._sink_file = _open_sink(self._path)
            self._sink = self._make_sink(batch.schema)
        self._sink.write_batch(batch)

    def _make_sink(self, schema: Any) -> Any:
        from pyarrow import parquet

        return parquet.ParquetWriter(self._sink_file, schema, write_page_checksum=True)

    def close(self) -> None:
        """Finish the file."""
        if self._sink is not None:
            self._sink.close()
            self._sink_file.close()


class ArrowTableWriter(ParquetTableWriter):
    """Writes record batches as an Arrow file."""

    def _make_sink(self, schema: Any) -> Any:
        from pyarrow import ipc

        return ipc.new_file(self._sink_file, schema)


class NumpyTableWriter:
    """Writes record batches of numbers as one array of NumPy."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._parts: list[Any] = []

    def write(self, batch: Any) -> None:
        """Append a batch."""
        import numpy as np
        import pyarrow as pa

        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            is_number = pa.types.is_floating(column.type) or pa.types.is_integer(
                column.type
            )
            if not is_number:
                raise FileFormatError(
                    f"column {name!r} holds {column.type}, and an .npy file numbers alone. "
                    "Choose a name that ends in .csv or .parquet."
                )
        columns = [np.asarray(column) for column in batch.columns]
        self._parts.append(np.column_stack(columns))

    def close(self) -> None:
        """Write the file."""
        import numpy as np

        if self._parts:
            whole = np.concatenate(self._parts)
            header = np.lib.format.header_data_from_array_1_0(whole)
            with self._path.open(
                "wb"
            ) as file:  # as np.save, which does not say why it failed
                np.lib.format.write_array_header_1_0(file, header)
                file.write(whole.data)


class CsvTableWriter:
    """Writes record batches as CSV."""

    def __init__(
        self, sink: IO[bytes], separator: str = ",", encoding: str = "utf-8"
    ) -> None:
        self._sink, self._separator = sink, separator
        self._encoder = codecs.getincrementalencoder(encoding)(errors="replace")
        self._started = False

    def write(self, batch: Any) -> None:
        """Append a batch."""
        if not self._started:
            self._write_text(csv_header(batch.schema.names, self._separator))
            self._started = True
        self._write_text(csv_lines(batch, self._separator))

    def _write_text(self, text: str) -> None:
        self._sink.write(self._encoder.encode(text))


Writer = (
    CsvTableWriter
    | ParquetTableWriter
    | ArrowTableWriter
    | NumpyTableWriter
    | ExcelTableWriter
    | WorkbookUpdate
)


@contextmanager
def open_writer(
    path: StrPath,
    separator: str = ",",
    *,
    encoding: str = "utf-8",
    formats: dict[str, str] | None = None,
    update: Callable[[Path], WorkbookUpdate] | None = None,
) -> Iterator[Writer]:
    """Give a writer for `path`; the file appears, whole, when the block ends well.

    `formats` are Excel's of the columns, for workbooks; `update` makes the writer of a workbook
    out of the one that was read.
    """
    if str(path) == "-":
        out = standard_output()
        out.flush()
        yield CsvTableWriter(out.buffer, separator)
        return
    endings = split_endings(path)
    ending = endings[-1]
    with replace_atomically(path) as temporary:
        if ending == ".xlsx" and update is not None:
            book = update(temporary)
            yield book
            book.close()
        elif ending in BINARY_SUFFIXES:
            rows = _make_binary_writer(temporary, ending, formats)
            yield rows
            rows.close()
        else:
            if TAB_SUFFIXES & set(endings):
                separator = "\t"
            with _open_compressed(temporary, ending) as sink:
                yield CsvTableWriter(sink, separator, encoding)


def _make_binary_writer(
    path: Path, ending: str, formats: dict[str, str] | None
) -> ParquetTableWriter | ArrowTableWriter | NumpyTableWriter | ExcelTableWriter:
    if ending == ".xlsx":
        return ExcelTableWriter(path, formats)
    if ending == ".npy":
        return NumpyTableWriter(path)
    return (
        ArrowTableWriter(path) if ending in ARROW_SUFFIXES else ParquetTableWriter(path)
    )


def _open_compressed(path: Path, ending: str) -> Any:
    if ending == ".zst":
        import pyarrow as pa

        return pa.output_stream(_open_sink(path), compression="zstd")
    return gzip.open(path, "wb") if ending == ".gz" else path.open("wb")


def _open_sink(path: Path) -> Any:
    """Return a file to write to for pyarrow, which takes names as bytes too."""
    import pyarrow as pa

    return pa.OSFile(os.fsencode(path), "wb")


def split_endings(path: StrPath) -> list[str]:
    """Return the last two endings of a name; refuse those of formats that are not written."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    endings = ["", *suffixes][-2:]
    last = endings[-1]
    inner = endings[0] if last in COMPRESSION_SUFFIXES else ""  # f.parquet.gz
    if last in UNSUPPORTED_SUFFIXES or inner in BINARY_SUFFIXES | UNSUPPORTED_SUFFIXES:
        raise FileFormatError(
            f"{path} cannot be written: CSV, Parquet, Arrow, .xlsx and .npy are. "
            "Choose a name that ends in .csv, .xlsx or .parquet."
        )
    return endings


def check_table_name(path: StrPath) -> None:
    """Refuse, before any work, a name that no table can be written to."""
    if str(path) != "-":
        split_endings(path)
        check_writable(path)


def is_text_format(path: StrPath) -> bool:
    """Whether a table of this name is written as text."""
    return str(path) == "-" or Path(path).suffix.lower() not in BINARY_SUFFIXES


def format_like_input(
    column: Any, number_format: NumberFormat, has_percent_sign: bool, text: bool
) -> Any:
    """Return shares the way the numbers of a file were written: percentages, decimal commas.

    In a table that is no text, signs and commas are left out: 70% is 0.7 there, as Excel has it.
    """
    import pyarrow as pa
    from pyarrow import compute

    if number_format.percent or (has_percent_sign and text):
        column = compute.multiply(column, 100.0)
    if not text or (not has_percent_sign and number_format.decimal == DECIMAL_POINT):
        return column
    words = column.cast(pa.string())
    if number_format.decimal == DECIMAL_COMMA:
        words = compute.replace_substring(words, DECIMAL_POINT, DECIMAL_COMMA)
    return (
        compute.binary_join_element_wise(words, "%", "") if has_percent_sign else words
    )


def csv_header(names: Sequence[str], separator: str = ",") -> str:
    """Return the header line, quoted where needed."""
    line = io.StringIO()
    csv.writer(line, delimiter=separator, lineterminator="\n").writerow(names)
    return line.getvalue()


def csv_lines(batch: Any, separator: str = ",") -> str:
    """Return a batch as CSV text: shortest round-trip numbers, quotes only where needed."""
    from pyarrow import compute

    if batch.num_rows == 0:
        return ""
    named = zip(batch.schema.names, batch.columns, strict=True)
    columns = [csv_cells(column, name, separator) for name, column in named]
    lines = compute.binary_join_element_wise(*columns, separator)
    return "\n".join(lines.to_pylist()) + "\n"


def csv_cells(column: Any, name: str, separator: str = ",") -> Any:
    """Return a column as text, quoted where needed; what is missing is empty."""
    import pyarrow as pa
    from pyarrow import compute

    try:
        words = column.cast(pa.string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError):
        raise FileFormatError(
            f"column {name!r} holds {column.type}, which CSV cannot. "
            "Write Parquet: choose a name that ends in .parquet."
        ) from None
    if not pa.types.is_floating(column.type):
        quoted = compute.replace_substring(words, '"', '""')
        quoted = compute.binary_join_element_wise('"', quoted, '"', "")
        special = compute.match_substring_regex(words, f'["\r\n{separator}]')
        words = compute.if_else(special, quoted, words)
    return compute.fill_null(words, "")
