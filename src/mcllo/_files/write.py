"""CSV and Parquet out: written to a temporary name and renamed, numbers in shortest exact form.

==========================  ======================================================
``.parquet``, ``.pq``       Parquet
``.tsv``, ``.tab``          CSV with tabs
``-``                       standard output, CSV
any other name              CSV with the separator of the file that was read
any CSV name with ``.gz``   the same, compressed
==========================  ======================================================
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from .._ground.files import StrPath, replacing
from ..exceptions import FileFormatError

PARQUET = {".parquet", ".pq"}
TABS = {".tsv", ".tab"}
SHEETS = {".xlsx", ".xls", ".ods"}
FOREIGN = SHEETS | {".json", ".jsonl", ".feather", ".arrow", ".orc", ".npy", ".npz", ".pkl", ".zip"}


class ParquetRows:
    """Writes record batches as Parquet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sink: Any = None

    def write(self, batch: Any) -> None:
        """Append a batch."""
        from pyarrow import parquet

        if self._sink is None:
            self._sink = parquet.ParquetWriter(self._path, batch.schema)
        self._sink.write_batch(batch)

    def close(self) -> None:
        """Finish the file."""
        if self._sink is not None:
            self._sink.close()


class CsvRows:
    """Writes record batches as CSV in UTF-8."""

    def __init__(self, sink: IO[bytes], separator: str = ",") -> None:
        self._sink, self._separator = sink, separator
        self._started = False

    def write(self, batch: Any) -> None:
        """Append a batch."""
        if not self._started:
            self._sink.write(csv_header(batch.schema.names, self._separator).encode())
            self._started = True
        self._sink.write(csv_lines(batch, self._separator).encode())


@contextmanager
def writing(path: StrPath, separator: str = ",") -> Iterator[CsvRows | ParquetRows]:
    """Give a writer for `path`; the file appears, whole, when the block ends well."""
    if str(path) == "-":
        sys.stdout.flush()
        yield CsvRows(sys.stdout.buffer, separator)
        return
    endings = check_ending(path)
    with replacing(path) as temporary:
        if endings[-1] in PARQUET:
            rows = ParquetRows(temporary)
            try:
                yield rows
            finally:
                rows.close()
        else:
            opened: Any = gzip.open if endings[-1] == ".gz" else open
            with opened(temporary, "wb") as sink:
                yield CsvRows(sink, "\t" if TABS & set(endings) else separator)


def check_ending(path: StrPath) -> list[str]:
    """Return the last two endings of a name; refuse those of formats that are not written."""
    endings = ["", *(ending.lower() for ending in Path(path).suffixes)][-2:]
    compressed = endings[-1] == ".gz"
    if endings[-1] in FOREIGN or (compressed and endings[0] in PARQUET | FOREIGN):
        raise FileFormatError(
            f"{path} cannot be written: only CSV and Parquet are. "
            "Choose a name that ends in .csv or .parquet."
        )
    return endings


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
