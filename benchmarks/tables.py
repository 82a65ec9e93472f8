"""Tables of rows as raw files, so that Python and R time the same numbers.

A folder holds ``shape.txt`` (rows, classes, held-out rows), ``probs.bin`` (float64, row after row),
``y.bin`` (int32, from 0), and the same two with ``held_`` in front where rows are held out.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True, eq=False)
class Rows:
    """Probabilities with labels, to learn from and (perhaps none) to judge on."""

    probs: np.ndarray
    y: np.ndarray
    held_probs: np.ndarray
    held_y: np.ndarray


def write(
    folder: Path,
    probs: np.ndarray,
    y: np.ndarray,
    held: tuple[np.ndarray, np.ndarray] | None = None,
) -> Path:
    """Write a table into `folder` and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    held_probs, held_y = (probs[:0], y[:0]) if held is None else held
    shape = (len(y), probs.shape[1], len(held_y))
    (folder / "shape.txt").write_text(" ".join(map(str, shape)) + "\n")
    for name, rows, labels in (("", probs, y), ("held_", held_probs, held_y)):
        np.ascontiguousarray(rows, dtype=np.float64).tofile(folder / f"{name}probs.bin")
        np.asarray(labels, dtype=np.int32).tofile(folder / f"{name}y.bin")
    return folder


def read(folder: Path) -> Rows:
    """Return the table of a folder."""
    _, c, _ = map(int, (folder / "shape.txt").read_text().split())
    parts = []
    for name in ("", "held_"):
        parts.append(np.fromfile(folder / f"{name}probs.bin").reshape(-1, c))
        parts.append(np.fromfile(folder / f"{name}y.bin", dtype=np.int32).astype(np.int64))
    return Rows(*parts)
