"""JSON lines: an object a line, as a table whose columns are the keys of the first line.

==============  ==================================================================================
numbers         of the columns that are read as numbers; null, or no such key, is a gap
other columns   text: words as they are, anything else as JSON writes it
other lines     a key that the first line has not is refused, as it would be lost
empty lines     do not count
==============  ==================================================================================

What cannot be read says on which line it stands; lines count from 1.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from ...exceptions import FileFormatError
from .container import InputFile

Object = dict[str, Any]


def parse_lines(lines: Iterable[str], name: str) -> Iterator[tuple[int, Object]]:
    """Yield the number of each line that is not empty, and its object."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        place = f"{name} line {number}"
        try:
            content = json.loads(line, object_pairs_hook=_object_of_pairs)
        except (ValueError, RecursionError) as error:
            raise FileFormatError(f"{place} must be JSON: {error}.") from None
        if not isinstance(content, dict):
            found = type(content).__name__
            raise FileFormatError(
                f"{place} must hold a JSON object; it holds a {found}."
            )
        yield number, content


def _object_of_pairs(pairs: list[tuple[str, Any]]) -> Object:
    """Return an object; Python's own way would drop all but the last of equal keys."""
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} occurs twice")
    return content


class JsonTable:
    """The columns of a file of JSON lines; `names` are the keys of its first line."""

    def __init__(self, file: InputFile, encoding: str | None) -> None:
        # Not `file.encoding` where none was named: what is no UTF-8 is no JSON.
        file.encoding = encoding or file.encoding
        _, first = next(self._objects(file))
        self.names = list(first)

    def _objects(self, file: InputFile) -> Iterator[tuple[int, Object]]:
        encoding = "utf-8-sig" if file.encoding == "utf-8" else file.encoding
        with file.reopen() as raw, io.TextIOWrapper(raw, encoding) as lines:
            yield from parse_lines(lines, file.name)

    def find_line_of_row(self, file: InputFile, row: int) -> int:
        """Return the line on which a row of data stands."""
        number, _ = next(islice(self._objects(file), row, None))
        return number

    def batches(
        self,
        file: InputFile,
        columns: Sequence[str],
        as_floats: set[str],
        n_batch_rows: int,
    ) -> Iterator[Any]:
        """Yield record batches of some columns, text but for those `as_floats`."""
        import pyarrow as pa

        fields = [
            (name, pa.float64() if name in as_floats else pa.string())
            for name in columns
        ]
        schema = pa.schema(fields)
        known = set(self.names)
        objects = self._objects(file)
        while chunk := list(islice(objects, n_batch_rows)):
            cells: dict[str, list[Any]] = {name: [] for name in columns}
            for number, content in chunk:
                place = f"{file.name} line {number}"
                if not content.keys() <= known:
                    other = next(name for name in content if name not in known)
                    raise FileFormatError(
                        f"{place} has the key {other!r}, which the first line has not.",
                        remedy="Write all keys in the first line, with null for what is missing.",
                    )
                for name in columns:
                    read = _number if name in as_floats else _text
                    cells[name].append(read(content.get(name), name, place))
            yield pa.record_batch(
                [pa.array(cells[field.name], field.type) for field in schema],
                schema=schema,
            )


def _number(value: Any, name: str, place: str) -> float | None:
    """Return a cell as a number."""
    if value is None:
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return float("inf")  # refused as no probability, as 1e400 is
    raise FileFormatError(
        f"{place}: {name!r} must be a number; it is {json.dumps(value)[:60]}.",
        column=name,
        remedy="Write numbers without quotes.",
    )


def _text(value: Any, name: str, place: str) -> str | None:
    """Return a cell as text; `name` and `place` are those of a number."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
