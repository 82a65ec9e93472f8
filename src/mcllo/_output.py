"""CSV and Parquet out: written to a temporary name and renamed, numbers in shortest exact form.

``-`` stands for standard output (CSV).
"""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ._atomic import replacing
from .exceptions import FileFormatError

StrPath = str | os.PathLike[str]


class Writer:
    """Writes record batches as CSV or Parquet (by the name's ending), atomically."""

    def __init__(self, path: Path, parquet: bool) -> None:
        self._path, self._parquet = path, parquet
        self._sink: Any = None

    def write(self, batch: Any) -> None:
        """Append a batch."""
        if self._sink is None:
            self._sink = self._open(batch.schema)
        if self._parquet:
            self._sink.write_batch(batch)
        else:
            self._sink.write(csv_lines(batch))

    def close(self) -> None:
        """Finish the file."""
        if self._sink is not None:
            self._sink.close()

    def _open(self, schema: Any) -> Any:
        if self._parquet:
            from pyarrow import parquet

            return parquet.ParquetWriter(self._path, schema)
        sink = open(self._path, "w", encoding="utf-8", newline="")  # noqa: SIM115
        sink.write(csv_header(schema.names))
        return sink


class StandardOutput:
    """Writes record batches to standard output as CSV."""

    def __init__(self) -> None:
        self._started = False

    def write(self, batch: Any) -> None:
        """Append a batch."""
        if not self._started:
            sys.stdout.write(csv_header(batch.schema.names))
            self._started = True
        sys.stdout.write(csv_lines(batch))


@contextmanager
def writing(path: StrPath) -> Iterator[Writer | StandardOutput]:
    """Give a writer for `path`; the file appears, whole, when the block ends well."""
    if str(path) == "-":
        yield StandardOutput()
        return
    target = Path(path)
    if not target.parent.is_dir():
        raise FileFormatError(f"{path} cannot be written: there is no directory {target.parent}.")
    with replacing(target) as temporary:
        writer = Writer(temporary, target.suffix.lower() in (".parquet", ".pq"))
        try:
            yield writer
        finally:
            writer.close()


def csv_header(names: Sequence[str]) -> str:
    """Return the header line, quoted where needed."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(names)
    return line.getvalue()


def csv_lines(batch: Any) -> str:
    """Return a batch as CSV text: shortest round-trip numbers, quotes only where needed."""
    import pyarrow as pa
    from pyarrow import compute

    columns = []
    for column in batch.columns:
        words = column.cast(pa.string())
        if pa.types.is_string(column.type) or pa.types.is_dictionary(column.type):
            quoted = compute.replace_substring(words, '"', '""')
            quoted = compute.binary_join_element_wise('"', quoted, '"', "")
            special = compute.match_substring_regex(words, '[",\r\n]')
            words = compute.if_else(special, quoted, words)
        columns.append(compute.fill_null(words, ""))
    lines = compute.binary_join_element_wise(*columns, ",")
    return "\n".join(lines.to_pylist()) + "\n" if len(lines) else ""
