"""Validated blocks in a temporary folder, so that later passes need not read the source again.

Each array of a block is a ``.npy`` file: log odds, weights and, where reading the source again
would cost much, labels and probabilities (or logits) too. What comes back is bit for bit what was
put in. Files are read, not mapped: mapped pages would count as memory of this process. The folder
goes with the `Spill`, however its use ends, short of a process that is killed outright.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._ground.results import Floats
from .._input.predictions import Predictions
from .._input.probabilities import clean_logits
from .sums import Block, Layout


@dataclass(frozen=True)
class Kept:
    """A block in a `Spill`, whose arrays are read when they are asked for.

    Attributes
    ----------
    start, n_samples : int
        First row and number of rows.
    layout : Layout
        Of all blocks.
    files : dict of str to Path
        Where each array is.
    """

    start: int
    n_samples: int
    layout: Layout
    files: dict[str, Path]

    @property
    def log_odds(self) -> Floats:
        """Log odds against the baseline, shape (K, n)."""
        odds: Floats = np.load(self.files["log_odds"])
        return odds

    @property
    def sample_weight(self) -> Floats | None:
        """Weights of the rows."""
        return self._get("weight")

    @property
    def rows(self) -> Predictions:
        """The rows; only where the spill keeps them."""
        layout = self.layout
        table, logits = np.load(self.files["values"]), None
        if layout.reading.logits:
            clean = clean_logits(table)
            table, logits = clean.probs, clean.logits
        return Predictions(
            probs=table,
            codes=np.load(self.files["codes"]).astype(np.intp),
            classes=layout.classes,
            baseline=layout.baseline,
            logits=logits,
            sample_weight=self.sample_weight,
            raised=self._get("raised"),
        )

    def _get(self, name: str) -> NDArray[Any] | None:
        return np.load(self.files[name]) if name in self.files else None


class Spill:
    """A temporary folder of blocks; several threads may write and read at the same time.

    Parameters
    ----------
    layout : Layout
        Of all blocks.
    whole : bool
        Keep the rows, not only their log odds.
    """

    def __init__(self, layout: Layout, *, whole: bool) -> None:
        self.layout, self.whole = layout, whole
        self.blocks: list[Kept] = []
        self.full = False
        self._folder = Path(tempfile.mkdtemp(prefix="mcllo-"))
        self._finalizer = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)

    def close(self) -> None:
        """Give the space back."""
        self._finalizer()

    def clear(self) -> None:
        """Forget all blocks; the next ones take the place of their files."""
        self.blocks, self.full = [], False

    def write(self, block: Block) -> None:
        """Keep a block, unless the disk was or is full."""
        if self.full:
            return
        files: dict[str, Path] = {}
        try:
            for name, part in self._parts(block.rows).items():
                files[name] = self._folder / f"{block.start}-{name}.npy"
                np.save(files[name], part)
        except OSError:
            self.full = True
        self.blocks.append(Kept(block.start, block.n_samples, self.layout, files))

    def sort(self) -> None:
        """Put the blocks in the order of the rows; threads may have finished in any."""
        self.blocks.sort(key=lambda kept: kept.start)

    def _parts(self, rows: Predictions) -> dict[str, NDArray[Any]]:
        parts: dict[str, NDArray[Any] | None] = {"log_odds": rows.log_odds}
        parts["weight"] = rows.sample_weight
        if self.whole:
            parts["values"] = rows.probs if rows.logits is None else rows.logits
            parts |= {"codes": rows.codes.astype(np.int32), "raised": rows.raised}
        return {name: part for name, part in parts.items() if part is not None}


def room_for(n_bytes: float) -> bool:
    """Whether the temporary directory can hold that much and keep as much again."""
    return 2.0 * n_bytes < shutil.disk_usage(tempfile.gettempdir()).free
