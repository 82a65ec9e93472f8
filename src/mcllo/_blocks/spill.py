"""Validated blocks in a temporary file without a name, so that later passes need not read again.

Log odds are kept, in float64, with labels and weights; and, where reading the source again would
cost much, the probabilities (or logits) too. What comes back is bit for bit what was put in. The
file is read, not mapped: mapped pages would count as memory of this process. It has no name, so it
is gone with the process, however that ends.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._ground.results import Floats
from .._input.predictions import Predictions
from .._input.probabilities import clean_logits
from .sums import Block, Layout

CODE = np.dtype(np.int32)


class Kept:
    """A block in a `Spill`, whose parts are read when they are asked for.

    Attributes
    ----------
    start, n_samples : int
        First row and number of rows.
    """

    def __init__(self, spill: Spill, block: Block) -> None:
        self.start, self.n_samples = block.start, block.n_samples
        self._spill = spill
        self._offsets: dict[str, int] = {}

    @property
    def log_odds(self) -> Floats:
        """Log odds against the baseline, shape (K, n)."""
        shape = (len(self._spill.layout.classes) - 1, self.n_samples)
        return self._part("log_odds", shape, np.float64)

    @property
    def sample_weight(self) -> Floats | None:
        """Weights of the rows."""
        if "weight" not in self._offsets:
            return None
        return self._part("weight", (self.n_samples,), np.float64)

    @property
    def rows(self) -> Predictions:
        """The rows; only where the spill keeps them."""
        layout, shape = self._spill.layout, (len(self._spill.layout.classes), self.n_samples)
        table, logits, raised = self._part("values", shape, np.float64).T, None, None
        if "raised" in self._offsets:
            raised = self._part("raised", shape, np.bool_).T
        if layout.reading.logits:
            clean = clean_logits(table)
            table, logits = clean.probs, clean.logits
        return Predictions(
            probs=table,
            codes=self._part("codes", (self.n_samples,), CODE).astype(np.intp),
            classes=layout.classes,
            baseline=layout.baseline,
            logits=logits,
            sample_weight=self.sample_weight,
            raised=raised,
        )

    def _part(self, name: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        return self._spill.get(np.empty(shape, dtype), self._offsets[name])


class Spill:
    """A temporary file of blocks; several threads may write and read at the same time.

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
        self._file: Any = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed by `close`
        self._end, self._lock = 0, threading.Lock()
        self._finalizer = weakref.finalize(self, self._file.close)

    def close(self) -> None:
        """Give the space back."""
        self._finalizer()

    def clear(self) -> None:
        """Forget all blocks."""
        self.blocks, self._end, self.full = [], 0, False

    def write(self, block: Block) -> None:
        """Keep a block, unless the disk was or is full."""
        if self.full:
            return
        parts, kept = self._parts(block.rows), Kept(self, block)
        with self._lock:
            offset, self._end = self._end, self._end + sum(part.nbytes for part in parts.values())
            self.blocks.append(kept)
        try:
            for name, part in parts.items():
                kept._offsets[name] = offset
                self._put(part, offset)
                offset += part.nbytes
        except OSError:
            self.full = True

    def sort(self) -> None:
        """Put the blocks in the order of the rows; threads may have finished in any."""
        self.blocks.sort(key=lambda kept: kept.start)

    def get(self, part: NDArray[Any], offset: int) -> NDArray[Any]:
        """Fill `part` from the file."""
        view = part.data.cast("B")
        while view:
            done = self._transfer("preadv", view, offset)
            view, offset = view[done:], offset + done
        return part

    def _parts(self, rows: Predictions) -> dict[str, NDArray[Any]]:
        parts: dict[str, NDArray[Any]] = {"log_odds": np.ascontiguousarray(rows.log_odds)}
        if rows.sample_weight is not None:
            parts["weight"] = rows.sample_weight
        if self.whole:
            values = rows.probs if rows.logits is None else rows.logits
            parts |= {"values": np.ascontiguousarray(values.T), "codes": rows.codes.astype(CODE)}
            if rows.raised is not None:
                parts["raised"] = np.ascontiguousarray(rows.raised.T)
        return parts

    def _put(self, part: NDArray[Any], offset: int) -> None:
        view = part.data.cast("B")
        while view:
            done = self._transfer("pwrite", view, offset)
            view, offset = view[done:], offset + done

    def _transfer(self, how: str, view: memoryview, offset: int) -> int:
        """Move bytes at `offset` without a shared position, or with it and one at a time."""
        if hasattr(os, how):
            handle = self._file.fileno()
            if how == "pwrite":
                return os.pwrite(handle, view, offset)
            return os.preadv(handle, [view], offset)
        with self._lock:
            self._file.seek(offset)
            done = self._file.write(view) if how == "pwrite" else self._file.readinto(view)
            return int(done)


def room_for(n_bytes: float) -> bool:
    """Whether the temporary directory can hold that much and keep as much again."""
    return 2.0 * n_bytes < shutil.disk_usage(tempfile.gettempdir()).free
