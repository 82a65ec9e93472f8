"""Assess a file: small ones are read whole, large ones and directories in blocks.

What needs all rows in memory is refused before anything is read, where they would take more than
the machine has.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..._assessment.assess import assess
from ..._assessment.assessment import Assessment
from ..._utils.atomic_files import StrPath
from ..._validation.weights import counts_no_rows
from ...exceptions import Option, Text
from ..io import memory_estimate
from ..io.container import unpacked_size
from ..io.read import read_predictions
from .assess_blocks import assess_blocks
from .file_blocks import blocks_of_files

MIN_BYTES_FOR_BLOCKS = 50_000_000
"""Bytes, unpacked, from which a file is read in blocks."""


def is_large(path: StrPath) -> bool:
    """Whether `path` is a directory, or a file too large to be read at once."""
    if str(path) == "-":
        return False
    place = Path(path)
    return place.is_dir() or (
        place.is_file() and unpacked_size(place, MIN_BYTES_FOR_BLOCKS) > MIN_BYTES_FOR_BLOCKS
    )


def assess_file(
    path: StrPath,
    reading: dict[str, Any],
    *,
    rule: str = "",
    whole: bool = False,
    workers: int | None = None,
    **options: Any,
) -> Assessment:
    """Assess a file; `reading` is for `read_predictions`, `options` are those of `assess`.

    `whole` asks for an `Assessment` with all rows in memory, as a report needs it.
    """
    kind = reading.get("weight_kind")
    needs = {
        Option("groups"): reading.get("groups") is not None,
        Option("by"): reading.get("by") is not None,
        Option("weight_kind", kind): counts_no_rows(kind) and reading.get("weight") is not None,
        Option("baseline", rule): bool(rule),
        "a report": whole,
    }
    if reads_whole(path, needs, reading):
        return assess(read_predictions(path, **reading), baseline=rule or None, **options)
    return assess_blocks(open_blocks(path, reading, workers), **options)


def reads_whole(path: StrPath, needs: dict[Any, bool], reading: dict[str, Any]) -> bool:
    """Whether all rows are read into memory: of a small file, or where something needs them."""
    why = next((words for words, given in needs.items() if given), None)
    if why is None:
        return not is_large(path)
    check_room(path, reading, why)
    return True


def check_room(
    path: StrPath, reading: dict[str, Any], why: Any, remedy: Text = "Use fewer rows."
) -> None:
    """Refuse files whose rows would not fit into the memory of this machine, as `why` needs it."""
    if not is_large(path):
        return
    own = {
        name: value for name, value in reading.items() if name not in (*COLUMN_OPTIONS, "baseline")
    }
    with blocks_of_files(path, spill=False, **own) as blocks:
        files: Any = blocks.source
        memory_estimate.check_room(files.sources, len(files.names), why, remedy)


COLUMN_OPTIONS = ("groups", "by", "weight_kind")
"""What rows in blocks do not have."""


def open_blocks(path: StrPath, reading: dict[str, Any], workers: int | None) -> Any:
    """Return the rows of a file or directory in blocks, as the reading options ask."""
    own = {name: value for name, value in reading.items() if name not in COLUMN_OPTIONS}
    return blocks_of_files(path, n_jobs=workers, **own)
