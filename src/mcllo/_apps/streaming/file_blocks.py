"""Files as blocks: one file, a list of them, or a directory.

Of a Parquet file workers read row groups, each with its own reader, and only the columns that play
a part; one of few or very large row groups is read by Arrow's threads in the order of its rows, as
a CSV file is, and the workers validate. Which way depends on the file alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ..._utils.atomic_files import StrPath
from ..._utils.results import Codes
from ..._utils.statements import Statement
from ..._validation.labels import Classes, as_class_list
from ...exceptions import InputError, MclloError
from ..io.read import find_common_roles, open_sources
from ..io.source import Source
from ..io.table_rows import TableRows, no_rows_error
from .blocks import Cost, StreamedBlocks, Unit
from .sums import Block, BlockLayout, ValidationOptions, block_rows, encode_words

MAX_GROUP_ROWS = 1 << 22
"""Rows of a row group that one worker reads alone, at most: round, 300 MB of ten classes."""


def blocks_of_files(
    path: StrPath | Sequence[StrPath], **options: Any
) -> StreamedBlocks:
    """Return the rows of files as blocks; no file is in memory as a whole, but for packed ones.

    Parameters
    ----------
    path : path-like or sequence of path-like
        A file, files with the same columns, or a directory of them (those whose name, or whose
        folder's, begins with ``.`` or ``_`` are left out); ``-`` is standard input.
    **options
        Those of `read_predictions` that rows in blocks have, and of `blocks_of_sources`.
    """
    sources, own = open_sources(path, options)
    return blocks_of_sources(sources, **own)


def blocks_of_sources(
    sources: Sequence[Source],
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
    first_rows: int = 1000,
    data_check_rows: int = 1 << 20,
) -> StreamedBlocks:
    """Return the rows of files that were looked at as blocks.

    Parameters
    ----------
    sources : sequence of Source
        The files.
    label, classes, baseline, weight, prefix, logits, normalize, clip
        As in `read_predictions`.
    n_jobs, spill
        As in `StreamedBlocks`.
    rows : int, optional
        Rows of a block; default: `block_rows`.
    first_rows : int
        Rows that show what labels are.
    data_check_rows : int
        Rows whose labels are looked at to find the remedy of an error, at most.
    """
    reading = ValidationOptions(None, baseline, logits, normalize, clip)
    named = None if classes is None else as_class_list(classes)
    source = FileSource(
        sources,
        reading,
        label,
        named,
        weight,
        prefix,
        rows,
        first_rows,
        data_check_rows,
    )
    return StreamedBlocks(source, n_jobs=n_jobs, spill=spill)


class FileSource:
    """Rows of files with the same columns, one file after the other."""

    def __init__(
        self,
        sources: Sequence[Source],
        reading: ValidationOptions,
        label: str,
        classes: Sequence[Hashable] | None,
        weight: str | None,
        prefix: str,
        rows: int | None,
        first_rows: int,
        data_check_rows: int,
    ) -> None:
        parquet = all(source.kind == "parquet" for source in sources)
        self.cost: Cost = "some" if parquet else "much"
        self.sources = sources
        roles = find_common_roles(sources, label, classes, prefix, weight=weight)
        self.table = TableRows(
            sources,
            roles,
            prefix,
            by_default=classes is None,
            logits=reading.logits,
            data_check_rows=data_check_rows,
        )
        self.roles = self.table.roles
        self.names = self.table.names
        self.rows = rows or block_rows(len(self.names))
        self.layout = self._detect_layout(reading, first_rows)

    def notes(self, n_rows: int) -> tuple[Statement, ...]:
        """Return what was assumed, and what was dropped so that `n_rows` are left."""
        return self.table.notes(n_rows)

    def n_bytes(self) -> float:
        """Return about the size of the rows in float64; exact for Parquet."""
        total = 0.0
        for source in self.sources:
            if source.kind == "parquet":
                total += 8.0 * (len(self.names) + 1) * sum(source.row_groups)
            elif source.spool is None:
                ratio = (
                    4.0 if source.compression else 1.0
                )  # of gzip and tables of numbers, about
                total += source.n_file_bytes * ratio
        return total

    def check(self) -> None:
        """Refuse files that changed while they were read: passes would be over other rows."""
        for source in self.sources:
            source.refuse_changed()

    def units(self) -> Iterator[Unit]:
        """Return row groups, or batches that were read in the calling thread."""
        start = 0
        # `start` counts the rows of all files, `row_offset` those of one:
        # errors name the row of the file
        for source in self.sources:
            groups = _split_row_groups(source, self.rows)
            if groups is not None:
                for chosen, first_row in groups:
                    yield partial(
                        self._validate_row_groups, source, chosen, first_row, start
                    )
                start += sum(source.row_groups)
                continue
            row_offset = 0
            for table in self._read_tables(source, self.rows):
                yield partial(
                    self._validate_table, source, table, row_offset, start + row_offset
                )
                row_offset += table.num_rows
            start += row_offset

    def _detect_layout(
        self, reading: ValidationOptions, first_rows: int
    ) -> BlockLayout:
        """Return what the first rows show; every label is looked at later."""
        for source in self.sources:
            for table in self._read_tables(source, first_rows):
                found = self.table.parse_table(source, table)
                if len(found.labels) == 0:
                    continue
                try:
                    if self.roles.positive:
                        values = found.values
                        reading = replace(reading, classes=self.names)
                    else:
                        values = found.table.select(self.roles.numbers).rename_columns(
                            self.names
                        )
                    return BlockLayout.from_first_rows(reading, values, found.labels)
                except MclloError as error:
                    raise self.table.explain_error_in_rows(
                        error, source, found
                    ) from None
        raise no_rows_error(self.sources[0])

    def _validate_row_groups(
        self, source: Source, groups: list[int], row_offset: int, start: int
    ) -> Iterator[Block]:
        with (
            source.explained_pyarrow_errors(self.roles.numbers),
            source.open_parquet() as file,
        ):
            # without Arrow's threads: each worker has a reader of its own
            batches = file.iter_batches(
                batch_size=self.rows,
                row_groups=groups,
                columns=self.roles.columns,
                use_threads=False,
            )
            meant = source.convert_numbers(
                batches, self.roles.numbers, self.roles.plain
            )
            for table in _merge_batches(meant):
                yield from self._validate_table(
                    source, table, row_offset, start + row_offset
                )
                row_offset += table.num_rows

    def _validate_table(
        self, source: Source, table: Any, row_offset: int, start: int
    ) -> Iterator[Block]:
        """Validate a table from row `row_offset` of the file, row `start` of the whole."""
        found = self.table.parse_table(source, table, row_offset)
        if len(found.labels) == 0:
            return
        try:
            weight = found.column(self.roles.weight)
            codes = _encode_labels(found.labels, self.layout.classes)
            rows = self.layout.read(
                found.values, found.labels, weight, names=self.names, codes=codes
            )
        except InputError as error:
            raise self.table.explain_error_in_rows(
                error, source, found, row_offset
            ) from None
        yield Block(start, rows)

    def _read_tables(self, source: Source, rows: int) -> Iterator[Any]:
        """Yield tables of the columns that play a part, at least `rows` rows but for the last."""
        roles = self.roles
        parts = source.parts(roles.numbers, roles.text, roles.plain, rows)
        yield from _merge_batches(parts, rows, roles.columns)


def _split_row_groups(source: Source, rows: int) -> list[tuple[list[int], int]] | None:
    """Return row groups for workers, each with its first row; None to read in order.

    Small groups that follow each other go together.
    """
    sizes = source.row_groups
    if source.kind != "parquet" or source.spool is not None:
        return None
    if len(sizes) < 2 or max(sizes) > MAX_GROUP_ROWS:
        return None
    units: list[tuple[list[int], int]] = []
    n_rows_of_unit = rows
    row_offset = 0
    for group, size in enumerate(sizes):
        if n_rows_of_unit >= rows:
            units.append(([], row_offset))
            n_rows_of_unit = 0
        units[-1][0].append(group)
        n_rows_of_unit += size
        row_offset += size
    return units


def _merge_batches(
    batches: Any, rows: int = 1, columns: Sequence[str] | None = None
) -> Iterator[Any]:
    """Yield tables out of record batches, those of fewer than `rows` rows put together."""
    waiting: list[Any] = []
    n_waiting = 0
    for batch in batches:
        waiting.append(batch)
        n_waiting += batch.num_rows
        if n_waiting >= rows:
            yield _combine_batches(waiting, columns)
            waiting = []
            n_waiting = 0
    if n_waiting:
        yield _combine_batches(waiting, columns)


def _combine_batches(batches: list[Any], columns: Sequence[str] | None) -> Any:
    """Return batches as one table, its columns renamed if names are given."""
    import pyarrow as pa

    table = pa.Table.from_batches(batches)
    return table if columns is None else table.rename_columns(list(columns))


def _encode_labels(labels: Any, classes: Classes) -> Codes | None:
    """Return the column of each word; None where labels are no words, or some are no class."""
    import pyarrow as pa

    are_words = pa.types.is_string(labels.type) or pa.types.is_large_string(labels.type)
    if labels.null_count or not are_words:
        return None
    # Arrow codes words much faster than Python looks at each
    whole = labels if isinstance(labels, pa.Array) else labels.combine_chunks()
    encoded = whole.dictionary_encode()
    words = encoded.dictionary.to_pylist()
    return encode_words(encoded.indices.to_numpy(zero_copy_only=False), words, classes)
