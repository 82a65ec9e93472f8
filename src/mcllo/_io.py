"""CSV and Parquet in, with pyarrow; what cannot be read becomes one clear sentence.

A file's kind is told from its first bytes, not from its name. Class columns are read as numbers and
all other CSV columns as text, so that what passes through comes out as it went in. ``-`` stands for
standard input.
"""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ._frames import did_you_mean, shorten
from ._predictions import Predictions
from .exceptions import FileFormatError

StrPath = str | os.PathLike[str]

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}
FOREIGN = {
    b"PK\x03\x04": "a spreadsheet or zip archive",
    b"\xd0\xcf\x11\xe0": "an old Excel file",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
    b"\x93NUMPY": "a NumPy array",
    b"\x80\x04": "a pickle",
    b"\x80\x05": "a pickle",
    b"ARROW1": "an Arrow IPC file",
    b"{": "JSON",
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
        Column names in order.
    """

    def __init__(self, path: StrPath) -> None:
        self.name = "standard input" if str(path) == "-" else str(path)
        self._path = None if str(path) == "-" else Path(path)
        self._bytes = sys.stdin.buffer.read() if self._path is None else None
        head = self._head()
        self._gzip = head[:2] == b"\x1f\x8b"
        self.kind = "parquet" if head[:4] == b"PAR1" else "csv"
        self._delimiter = ","
        self.columns = self._parquet().schema_arrow.names if self._is_parquet else self._header()
        self._check_columns()

    @property
    def _is_parquet(self) -> bool:
        return self.kind == "parquet"

    def require(self, columns: Sequence[str], role: str) -> None:
        """Refuse when a column is missing."""
        for column in columns:
            if column not in self.columns:
                hint = did_you_mean(column, self.columns)
                raise FileFormatError(f"{self.name} has no {role} {column!r}; {hint}")

    def read(self, numbers: Sequence[str], text: Sequence[str] = ()) -> Any:
        """Return the named columns as a ``pyarrow.Table``."""
        import pyarrow as pa

        with self._sentences():
            if self._is_parquet:
                return self._parquet().read(columns=[*numbers, *text])
            return pa.Table.from_batches(
                list(self._csv_batches(numbers, [*numbers, *text])),
                schema=self._csv_schema(numbers, [*numbers, *text]),
            )

    def batches(self, numbers: Sequence[str]) -> Iterator[Any]:
        """Yield all columns as record batches, in order."""
        with self._sentences():
            if self._is_parquet:
                yield from self._parquet().iter_batches()
            else:
                yield from self._csv_batches(numbers, self.columns)

    def _csv_schema(self, numbers: Sequence[str], columns: Sequence[str]) -> Any:
        import pyarrow as pa

        return pa.schema(
            [(name, pa.float64() if name in numbers else pa.string()) for name in columns]
        )

    def _csv_batches(self, numbers: Sequence[str], columns: Sequence[str]) -> Iterator[Any]:
        from pyarrow import csv as arrow_csv

        schema = self._csv_schema(numbers, columns)
        convert = arrow_csv.ConvertOptions(
            column_types=dict(zip(schema.names, schema.types, strict=True)),
            include_columns=list(columns),
            null_values=[""],
            strings_can_be_null=True,
        )
        parse = arrow_csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True)
        with self._stream() as stream:
            yield from arrow_csv.open_csv(stream, convert_options=convert, parse_options=parse)

    def _parquet(self) -> Any:
        import pyarrow as pa
        from pyarrow import parquet

        with self._sentences():
            return parquet.ParquetFile(pa.BufferReader(self._bytes) if self._bytes else self._path)

    def _stream(self) -> Any:
        import pyarrow as pa

        raw = pa.BufferReader(self._bytes) if self._path is None else str(self._path)
        return pa.input_stream(raw, compression="gzip" if self._gzip else None)

    def _head(self) -> bytes:
        if self._bytes is not None:
            head = self._bytes[:8]
        else:
            assert self._path is not None
            head = _first_bytes(self._path)
        if not head:
            raise FileFormatError(f"{self.name} must hold a table; it is empty.")
        for magic, what in FOREIGN.items():
            if head.startswith(magic):
                raise FileFormatError(
                    f"{self.name} must be CSV or Parquet; it looks like {what}. "
                    "Save it as CSV (UTF-8) or Parquet."
                )
        return head

    def _header(self) -> list[str]:
        with self._sentences(), self._stream() as stream:
            text = _first_line(stream).decode("utf-8-sig")
        counts = {delimiter: text.count(delimiter) for delimiter in DELIMITERS}
        self._delimiter = max(counts, key=lambda delimiter: counts[delimiter])
        return next(csv.reader(io.StringIO(text), delimiter=self._delimiter), [])

    def _check_columns(self) -> None:
        if len(self.columns) < 2:
            raise FileFormatError(
                f"{self.name} must have a header line with at least two columns; "
                f"got {shorten(self.columns)}."
            )
        for i, column in enumerate(self.columns):
            if column in self.columns[:i]:
                raise FileFormatError(
                    f"{self.name} must have distinct column names; {column!r} occurs twice. "
                    "Rename one."
                )

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        """Turn pyarrow's errors into one sentence."""
        import pyarrow as pa

        try:
            yield
        except UnicodeDecodeError:
            raise FileFormatError(
                f"{self.name} must be UTF-8 text; it holds other bytes. Save it as UTF-8."
            ) from None
        except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
            first = str(error).splitlines()[0]
            raise FileFormatError(f"{self.name} cannot be read: {self._explain(first)}") from None

    def _explain(self, message: str) -> str:
        if message.startswith("In CSV column #") and "conversion error" in message:
            number = int(message.split("#")[1].split(":")[0])
            if "UTF8" in message:
                return "it must be UTF-8 text. Save it as UTF-8."
            value = message.rsplit("invalid value", 1)[-1].strip()
            column = self.columns[number] if number < len(self.columns) else f"#{number}"
            return (
                f"column {column!r} must hold numbers; it has {value}. Choose the probability "
                "columns with classes=."
            )
        return message.rstrip(".") + "."


def read_predictions(
    path: StrPath,
    *,
    label: str,
    classes: Sequence[Hashable] | None = None,
    baseline: Hashable | None = None,
    weight: str | None = None,
    logits: bool = False,
    normalize: bool = False,
    clip: float | None = None,
) -> Predictions:
    """Read predictions and labels from a CSV or Parquet file.

    Parameters
    ----------
    path : path-like
        The file; ``-`` is standard input. Gzipped CSV is read too.
    label : str
        Column with the labels that came true.
    classes : sequence of str, optional
        Columns with the probabilities; every column but `label` and `weight` when not given.
    weight : str, optional
        Column with row weights.
    logits : bool
        The columns hold logits instead of probabilities.
    baseline, normalize, clip
        As in `Predictions.from_arrays`.
    """
    source = Source(path)
    source.require([label], "label column")
    aside = [label] if weight is None else [label, weight]
    source.require(aside[1:], "weight column")
    if classes is None:
        classes = [column for column in source.columns if column not in aside]
    names = [str(column) for column in classes]
    source.require(names, "class column")
    numbers = names if weight is None else [*names, weight]
    table = source.read(numbers, [label])
    if table.num_rows == 0:
        raise FileFormatError(f"{source.name} must have at least one row; it has only a header.")
    values = table.select(names)
    return Predictions.from_arrays(
        None if logits else values,
        table.column(label),
        logits=values if logits else None,
        baseline=baseline,
        sample_weight=None if weight is None else table.column(weight),
        normalize=normalize,
        clip=clip,
    )


def _first_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(8)
    except FileNotFoundError:
        raise FileFormatError(f"{path} must exist; there is no such file.") from None
    except IsADirectoryError:
        raise FileFormatError(f"{path} must be a file; it is a directory.") from None
    except PermissionError:
        raise FileFormatError(f"{path} must be readable; permission was denied.") from None


def _first_line(stream: Any) -> bytes:
    head = b""
    while b"\n" not in head and len(head) < 1 << 24:
        more = stream.read(1 << 16)
        if not more:
            break
        head += more
    return head.splitlines()[0] if head.strip() else b""
