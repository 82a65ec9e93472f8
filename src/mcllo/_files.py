"""Assess or fit what a file holds: in memory while it is small, in blocks where it is not.

Blocks give the same fit and the same statistic; the docstring of `_block_assess` says what else
differs. What needs all rows at once (groups, survey weights, a baseline chosen by the data, Firth's
penalty, a gate, a report) is read into memory whatever the size of the file; of a directory, whose
files are read in blocks only, it is refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ._assess import Assessment
from ._assess_rows import assess
from ._block_assess import assess_blocks
from ._block_assessment import BlockAssessment
from ._block_files import blocks_of_files
from ._block_fit import fit_blocks
from ._io import read_predictions
from ._source import StrPath
from .calibrators import MCLLOCalibrator
from .exceptions import InputError

LARGE_FILE = 50_000_000
"""Bytes from which a file is read in blocks."""


def is_large(path: StrPath) -> bool:
    """Whether `path` is a directory, or a file too large to be read at once."""
    if str(path) == "-":
        return False
    place = Path(path)
    return place.is_dir() or (place.is_file() and place.stat().st_size > LARGE_FILE)


def assess_file(
    path: StrPath,
    reading: dict[str, Any],
    *,
    rule: str = "",
    whole: bool = False,
    workers: int | None = None,
    **options: Any,
) -> Assessment | BlockAssessment:
    """Assess a file; `reading` is for `read_predictions`, `options` are those of `assess`.

    `whole` asks for an `Assessment` with all rows in memory, as a report needs it.
    """
    needs = {
        "groups=": reading.get("groups") is not None,
        "weight_kind='survey'": reading.get("weight_kind") == "survey",
        f"baseline={rule!r}": bool(rule),
        "a report": whole,
    }
    if _reads_whole(path, needs):
        return assess(read_predictions(path, **reading), baseline=rule or None, **options)
    return assess_blocks(_blocks(path, reading, workers), **options)


def fit_file(
    path: StrPath,
    reading: dict[str, Any],
    params: dict[str, Any],
    *,
    rule: str = "",
    workers: int | None = None,
) -> MCLLOCalibrator:
    """Return an `MCLLOCalibrator` with these parameters, fitted to a file."""
    needs = {
        "penalty='firth'": params["penalty"] == "firth",
        f"center={params['center']!r}": params["center"] != "identity",
        f"gate={params['gate']!r}": params["gate"] is not None,
        f"baseline={rule!r}": bool(rule),
    }
    if _reads_whole(path, needs):
        predictions = read_predictions(path, **reading)
        return MCLLOCalibrator(baseline=rule or predictions.baseline, **params).fit(predictions)
    blocks = _blocks(path, reading, workers)
    fit = fit_blocks(blocks, penalty=params["penalty"])
    return MCLLOCalibrator(baseline=fit.baseline, **params)._fitted_already(fit)


def _reads_whole(path: StrPath, needs: dict[str, bool]) -> bool:
    """Whether all rows are read into memory: of a small file, or where something needs them."""
    why = next((words for words, given in needs.items() if given), None)
    if why is not None and str(path) != "-" and Path(path).is_dir():
        raise InputError(
            f"{why} needs all rows in memory, and the files of a directory are read in blocks. "
            "Join the files, or some of their rows, into one file, or do without."
        )
    return why is not None or not is_large(path)


def _blocks(path: StrPath, reading: dict[str, Any], workers: int | None) -> Any:
    own = {name: value for name, value in reading.items() if name not in ("groups", "weight_kind")}
    return blocks_of_files(path, n_jobs=workers, **own)
