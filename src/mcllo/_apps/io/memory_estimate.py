"""How much memory the rows of files take, counted before they are read: by what a file unpacks to.

===========  ======================================================================================
rows         Parquet: its footer says. Text: its size over the mean line of its beginning; packed
             text is unpacked and counted, until there are too many. Arrow: its batches.
             Workbooks have a limit of their own
a row        8 bytes for each class and the label, and `BYTES_PER_WORD` for a label that is text
need         `MEMORY_FACTOR_OF_TABLE` of all rows, which is what reading and fitting take
limit        the memory that there is (`_utils/memory`)
===========  ======================================================================================

`mcllo assess` and `mcllo fit` read large files in blocks and need no such room; everything else
reads them at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..._utils.formatting import format_count
from ..._utils.memory import memory, refuse_beyond
from ...exceptions import Phrase, Text

if TYPE_CHECKING:
    from .source import Source

MEMORY_FACTOR_OF_TABLE = 4.0
"""Room that reading and fitting take, in sizes of the table."""
BYTES_PER_WORD = 64.0
"""Bytes of a word as a Python object."""
N_SAMPLE_BYTES = 1 << 20
"""Bytes of text that show how long a line is."""
REMEDY = "Use fewer rows; `mcllo assess` and `mcllo fit --method mcllo` read files in blocks."
MAX_COMPRESSION_RATIOS = {"gzip": 1032.0, "zstd": float("inf"), "arrow": 255.0}
"""Most bytes that one packed byte stands for."""
MIN_LINE_BYTES = 4.0
"""Bytes of a line of text, at least."""


def check_room(
    sources: Sequence[Source], n_classes: int, why: Any = None, remedy: Text = REMEDY
) -> None:
    """Refuse files whose rows would not fit into memory; `why` says what needs them all."""
    there, row = memory(), 8.0 * (n_classes + 1)
    row += BYTES_PER_WORD if any(source.is_text for source in sources) else 0.0
    if MEMORY_FACTOR_OF_TABLE * row * sum(map(_most_rows, sources)) <= there:
        return
    rows = sum(n_rows(source, there / (MEMORY_FACTOR_OF_TABLE * row)) for source in sources)
    more = " or more" if any(source.compression for source in sources) else ""
    words = f"{format_count(rows)}{more} rows of {n_classes} classes"
    if why is None:
        name = sources[0].name if len(sources) == 1 else f"a folder of {len(sources)} files"
        says = Phrase("{} must be read at once, and its {} take", name, words)
    else:
        says = Phrase("{} needs all rows in memory, and {} take", why, words)
    refuse_beyond(MEMORY_FACTOR_OF_TABLE * row * rows, says, remedy)


def n_rows(source: Source, enough: float) -> float:
    """Return about how many rows a file has; of packed text, counted until they are `enough`."""
    import pyarrow as pa

    with suppress(pa.ArrowException, OSError, UnicodeError):  # whoever reads it says what is wrong
        if source.kind == "parquet":
            with source.parquet() as file:
                return float(file.metadata.num_rows)
        if source.kind == "arrow":
            with source.arrow() as file:
                count = getattr(file, "num_record_batches", None)
                found = iter(file) if count is None else map(file.get_batch, range(count))
                return float(sum(batch.num_rows for batch in found))
        if source.kind == "csv":
            limits = (math.inf, enough) if source.compression else (N_SAMPLE_BYTES, math.inf)
            size, lines = source.measure_text(*limits)
            whole = size if source.compression else max(size, source.n_packed)
            return max(0.0, lines * whole / max(size, 1.0) - 1.0)
    return 0.0 if source.arrays is None else float(source.arrays.n_rows)  # a workbook has its limit


def _most_rows(source: Source) -> float:
    """Return how many rows a file could have, without unpacking it."""
    if source.kind == "parquet":
        return n_rows(source, 0.0)
    return (
        source.n_packed
        * MAX_COMPRESSION_RATIOS.get(source.compression or source.kind, 1.0)
        / MIN_LINE_BYTES
    )
