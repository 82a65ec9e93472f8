"""CSV and Parquet files as blocks: one file, a list of them, or a directory.

Of a Parquet file workers read row groups, each with its own reader, and only the columns that play
a part; one of few or very large row groups is read by Arrow's threads in the order of its rows, as
a CSV file is, and the workers validate. Which way depends on the file alone.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._files.read import explained, find_roles, labels_in, without_prefix
from .._files.source import Source
from .._ground.files import StrPath
from .._ground.results import Codes
from .._input.frames import shorten
from .._input.labels import Classes, class_names
from ..exceptions import FileFormatError, InputError, MclloError
from .blocks import Cost, Streamed, Unit
from .sums import Block, Layout, Reading, block_rows, coded_words

MOST_GROUP_ROWS = 1 << 22
"""Rows of a row group that one worker reads alone, at most."""
FIRST_ROWS = 1000
HINT_ROWS = 1 << 20
GZIP_RATIO = 4.0


def blocks_of_files(
    path: StrPath | Sequence[StrPath],
    *,
    label: str,
    classes: Sequence[Hashable] | None = None,
    baseline: Hashable | None = None,
    weight: str | None = None,
    prefix: str = "",
    logits: bool = False,
    normalize: bool = False,
    clip: float | None = None,
    n_jobs: int | None = None,
    spill: bool | None = None,
    rows: int | None = None,
    first_rows: int = FIRST_ROWS,
    hint_rows: int = HINT_ROWS,
) -> Streamed:
    """Return the rows of CSV or Parquet files as blocks; no file is ever in memory as a whole.

    Parameters
    ----------
    path : path-like or sequence of path-like
        A file, files with the same columns, or a directory of them (those whose name, or whose
        folder's, begins with ``.`` or ``_`` are left out); ``-`` is standard input.
    label, classes, baseline, weight, prefix, logits, normalize, clip
        As in `read_predictions`.
    n_jobs, spill
        As in `Streamed`.
    rows : int, optional
        Rows of a block; default: `block_rows`.
    first_rows : int
        Rows that show what labels are.
    hint_rows : int
        Rows whose labels are looked at to find the remedy of an error, at most.
    """
    reading = Reading(None, baseline, logits, normalize, clip)
    sources = [Source(name) for name in find_files(path)]
    named = None if classes is None else class_names(classes)
    source = FileSource(sources, reading, label, named, weight, prefix, rows, first_rows, hint_rows)
    return Streamed(source, n_jobs=n_jobs, spill=spill)


def find_files(path: StrPath | Sequence[StrPath]) -> list[StrPath]:
    """Return the files that `path` stands for, in order."""
    if not isinstance(path, (str, os.PathLike)):
        files = [name for part in path for name in find_files(part)]
        if not files:
            raise FileFormatError("at least one file must be given; got none.")
        return files
    if str(path) == "-" or not Path(path).is_dir():
        return [path]
    inside = sorted(file for file in Path(path).rglob("*") if file.is_file())
    shown: list[StrPath] = [
        file
        for file in inside
        if not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
    ]
    if not shown:
        raise FileFormatError(f"{path} must hold CSV or Parquet files; it holds none.")
    return shown


class FileSource:
    """Rows of files with the same columns, one file after the other."""

    def __init__(
        self,
        sources: Sequence[Source],
        reading: Reading,
        label: str,
        classes: Sequence[Hashable] | None,
        weight: str | None,
        prefix: str,
        rows: int | None = None,
        first_rows: int = FIRST_ROWS,
        hint_rows: int = HINT_ROWS,
    ) -> None:
        parquet = all(source.kind == "parquet" for source in sources)
        self.cost: Cost = "some" if parquet else "much"
        self.sources, self.prefix, self.by_default = sources, prefix, classes is None
        self.roles = find_roles(sources[0], label, classes, prefix, weight=weight)
        for other in sources[1:]:
            found = find_roles(other, label, classes, prefix, weight=weight)
            if set(found.numbers) != set(self.roles.numbers):
                raise FileFormatError(
                    f"all files must have the same class columns; {sources[0].name} has "
                    f"{shorten(self.roles.numbers)} and {other.name} {shorten(found.numbers)}."
                )
        self.names = without_prefix(prefix, self.roles.numbers)
        self.rows = rows or block_rows(len(self.names))
        self.hint_rows = hint_rows
        self.layout = self._layout(reading, first_rows)

    @property
    def columns(self) -> list[str]:
        """The columns that play a part."""
        aside = [self.roles.label, self.roles.weight]
        return [*self.roles.numbers, *(name for name in aside if name is not None)]

    def n_bytes(self) -> float:
        """Return about the size of the rows in float64; exact for Parquet."""
        total = 0.0
        for source in self.sources:
            if source.kind == "parquet":
                with source.parquet() as file:
                    total += 8.0 * (len(self.names) + 1) * file.metadata.num_rows
            elif source.spool is None:
                total += source.path.stat().st_size * (GZIP_RATIO if source.gzipped else 1.0)
        return total

    def units(self) -> Iterator[Unit]:
        """Return row groups, or batches that were read in the calling thread."""
        start = 0
        for source in self.sources:
            groups = _row_groups(source, self.rows)
            if groups is not None:
                for chosen, first, _ in groups:
                    yield partial(self._read_groups, source, chosen, first, start)
                start += sum(size for _, _, size in groups)
                continue
            done = 0
            for table in self._tables(source, self.rows):
                yield partial(self._read, source, table, done, start)
                done += table.num_rows
                start += table.num_rows

    def _layout(self, reading: Reading, first_rows: int) -> Layout:
        """Return what the first rows show; every label is looked at later."""
        for source in self.sources:
            for table in self._tables(source, first_rows):
                try:
                    y = labels_in(source, table, self._label, self.names)
                    values = table.select(self.roles.numbers).rename_columns(self.names)
                    return Layout.of_first(reading, values, y)
                except MclloError as error:
                    raise self._explain(error, source) from None
        raise FileFormatError(
            f"{self.sources[0].name} must have at least one row; it has only a header. "
            "Check what wrote it."
        )

    @property
    def _label(self) -> str:
        assert self.roles.label is not None
        return self.roles.label

    def _read_groups(
        self, source: Source, groups: list[int], done: int, start: int
    ) -> Iterator[Block]:
        with source.sentences(self.roles.numbers), source.parquet() as file:
            batches = file.iter_batches(
                batch_size=self.rows, row_groups=groups, columns=self.columns, use_threads=False
            )
            for table in _tables_of(batches):
                yield from self._read(source, table, done, start + done)
                done += table.num_rows

    def _read(self, source: Source, table: Any, done: int, start: int) -> Iterator[Block]:
        """Validate a table whose first row is row `done` of the file and `start` of the whole."""
        numbers, names = self.roles.numbers, self.names
        try:
            weight = None if self.roles.weight is None else table.column(self.roles.weight)
            labels = labels_in(source, table, self._label, names)
            values = _matrix(table, numbers)
            if values is None:
                values = table.select(numbers).rename_columns(names)
            codes = _codes(labels, self.layout.classes)
            rows = self.layout.read(values, labels, weight, names=names, codes=codes)
        except InputError as error:
            raise self._explain(error.moved(done), source) from None
        yield Block(start, rows)

    def _tables(self, source: Source, rows: int) -> Iterator[Any]:
        """Yield tables of the columns that play a part, at least `rows` rows but for the last."""
        numbers = [name for name in self.columns if name != self._label]
        with source.sentences(numbers):
            if source.kind == "csv":
                batches = source.csv_batches(numbers, self.columns)
                yield from _tables_of(batches, rows, self.columns)
                return
            with source.parquet() as file:
                yield from _tables_of(file.iter_batches(batch_size=rows, columns=self.columns))

    def _explain(self, error: MclloError, source: Source) -> MclloError:
        """Return the error in the words of the file; of a long one only the first labels help."""
        first = source.first_rows(self.hint_rows)
        return explained(error, first, self.roles, self.prefix, self.by_default)


def _row_groups(source: Source, rows: int) -> list[tuple[list[int], int, int]] | None:
    """Return row groups for workers: which, their first row and their rows; None to read in order.

    Small groups that follow each other go together.
    """
    if source.kind != "parquet" or source.spool is not None:
        return None
    with source.parquet() as file:
        metadata = file.metadata
        sizes = [metadata.row_group(g).num_rows for g in range(metadata.num_row_groups)]
    if len(sizes) < 2 or max(sizes) > MOST_GROUP_ROWS:
        return None
    units: list[tuple[list[int], int, int]] = []
    done = 0
    for group, size in enumerate(sizes):
        if units and units[-1][2] < rows:
            chosen, first, before = units.pop()
            units.append(([*chosen, group], first, before + size))
        else:
            units.append(([group], done, size))
        done += size
    return units


def _tables_of(batches: Any, rows: int = 1, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """Yield tables out of record batches, those of fewer than `rows` rows put together."""
    import pyarrow as pa

    def table() -> Any:
        found = pa.Table.from_batches(waiting)
        return found if columns is None else found.rename_columns(list(columns))

    waiting: list[Any] = []
    for batch in batches:
        waiting.append(batch)
        if sum(part.num_rows for part in waiting) >= rows:
            yield table()
            waiting = []
    if sum(part.num_rows for part in waiting):
        yield table()


def _matrix(table: Any, columns: Sequence[str]) -> NDArray[Any] | None:
    """Return columns of one float type as an array, class by class in memory; None for others."""
    import pyarrow as pa

    chosen = [table.column(name) for name in columns]
    kinds = {column.type for column in chosen}
    if kinds not in ({pa.float32()}, {pa.float64()}):
        return None
    values = np.empty((len(chosen), table.num_rows), kinds.pop().to_pandas_dtype())
    for row, column in zip(values, chosen, strict=True):
        start = 0
        for chunk in column.chunks:
            row[start : start + len(chunk)] = chunk.to_numpy(zero_copy_only=False)
            start += len(chunk)
    return values.T


def _codes(labels: Any, classes: Classes) -> Codes | None:
    """Return the column of each word; None where labels are no words, or some are no class."""
    import pyarrow as pa

    text = pa.types.is_string(labels.type) or pa.types.is_large_string(labels.type)
    if labels.null_count or not text:
        return None
    whole = labels if isinstance(labels, pa.Array) else labels.combine_chunks()
    encoded = whole.dictionary_encode()
    words = encoded.dictionary.to_pylist()
    return coded_words(encoded.indices.to_numpy(zero_copy_only=False), words, classes)
