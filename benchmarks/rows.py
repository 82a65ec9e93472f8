"""Rows that are timed and judged on: synthetic predictions, and tables as raw files.

A folder holds ``shape.txt`` (rows, classes, held-out rows), ``probs.bin`` (float64, row after row),
``y.bin`` (int32, from 0), and the same two with ``held_`` in front, so that Python and R time the
same numbers.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
"""Predictions that are not published with the package; the README there names their sources."""
FLOOR = 1e-6


class Rows(NamedTuple):
    """Probabilities with labels, to learn from and (perhaps none) to judge on."""

    probs: np.ndarray
    y: np.ndarray
    held_probs: np.ndarray
    held_y: np.ndarray


def drawn_labels(probs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a label for each row, with the row's probabilities."""
    return (rng.random((len(probs), 1)) > probs.cumsum(axis=1)[:, :-1]).sum(axis=1)


def predictions(n: int, c: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return overconfident rows, logits N(0, 2^2), and labels of a flatter truth."""
    rng = np.random.default_rng(seed)
    probs = np.exp(rng.normal(0.0, 2.0, size=(n, c)))
    probs /= probs.sum(axis=1, keepdims=True)
    truth = probs**0.8
    return probs, drawn_labels(truth / truth.sum(axis=1, keepdims=True), rng)


def raised(probs: np.ndarray) -> np.ndarray:
    """Return rows without zeros: where there is one, `FLOOR` is the least, and the sum is 1.

    >>> raised(np.array([[0.5, 0.5], [1.0, 0.0]])).round(7).tolist()
    [[0.5, 0.5], [0.999999, 1e-06]]
    """
    probs = np.array(probs, dtype=np.float64)
    zero = (probs <= 0.0).any(axis=1)
    probs[zero] = np.maximum(probs[zero], FLOOR)
    return probs / probs.sum(axis=1, keepdims=True)


def write(folder: Path, rows: Rows) -> Path:
    """Write a table into `folder` and return it."""
    shape = (len(rows.y), rows.probs.shape[1], len(rows.held_y))
    (folder / "shape.txt").write_text(" ".join(map(str, shape)) + "\n")
    for name, values in rows._asdict().items():
        kind = np.float64 if name.endswith("probs") else np.int32
        np.ascontiguousarray(values, dtype=kind).tofile(folder / f"{name}.bin")
    return folder


def read(folder: Path) -> Rows:
    """Return the table of a folder.

    >>> from tempfile import TemporaryDirectory
    >>> probs, y = predictions(20, 3)
    >>> with TemporaryDirectory() as folder:
    ...     found = read(write(Path(folder), Rows(probs[:15], y[:15], probs[15:], y[15:])))
    >>> bool((found.held_probs == probs[15:]).all()), bool((found.y == y[:15]).all())
    (True, True)
    """
    c = int((folder / "shape.txt").read_text().split()[1])
    probs = [np.fromfile(folder / f"{name}probs.bin").reshape(-1, c) for name in ("", "held_")]
    y = [np.fromfile(folder / f"{name}y.bin", np.int32).astype(int) for name in ("", "held_")]
    return Rows(probs[0], y[0], probs[1], y[1])
