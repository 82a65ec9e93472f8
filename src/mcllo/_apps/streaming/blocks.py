"""`Blocks`: rows from anywhere, through one method, ``sum_over_blocks(work)``.

All that this package needs of many rows is a sum over rows, so whoever holds the rows has to do one
thing: give each block to a function and add what comes back, in the order of the blocks.

=========================  ========================================================================
``sum_over_blocks(work)``  sum of ``work(block)``; the order, not the number of workers, fixes bits
``first_pass``             the first pass: validates, counts, and sums (`BlockSums`)
``log_partition(theta)``   A(theta) with gradient and Hessian: one pass; a fit needs a few
``take(rows)``             some rows, or all, as `Predictions`
=========================  ========================================================================

`StreamedBlocks` is the one machine: threads share the blocks of a `BlockSource`
(`_apps/streaming/file_blocks`). A cluster is another subclass with its own
`sum_over_blocks`: `work` is a function of a module, or a `functools.partial` of one, so that it can
be sent; what it returns is small.

`Spill` keeps validated blocks in a temporary folder where reading them again would cost more. Each
array of a block is a file of its bytes: log odds, weights and, where reading would cost much,
labels and probabilities (or logits) too. What comes back is bit for bit what was put in. Files are
read, not mapped: mapped pages would count as memory of this process. The folder goes with the
`Spill`, however its use ends; that of a process that was killed outright goes with the next one's.
"""

from __future__ import annotations

import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ..._model.kernel import Derivatives
from ..._model.many_classes import (
    MAX_PARAMETERS_FOR_HESSIAN,
    is_full_hessian_affordable,
)
from ..._utils.atomic_files import ScratchFolder, progress
from ..._utils.parallel import n_threads_for_size, one_blas_thread, ordered_map
from ..._utils.results import Codes, Floats
from ..._utils.statements import Statement
from ..._validation.predictions import DataFacts, Predictions
from ..._validation.probabilities import clean_logits, warn_of_zeros
from ..._validation.weights import zero_weight_error
from ...exceptions import InputError
from .sums import (
    Block,
    BlockLayout,
    BlockSums,
    log_partition_of_block,
    pick_rows,
    sum_block_rows,
    sum_in_order,
)

Cost = Literal["some", "much"]
"""Of reading again, and so what is kept: log odds, or the rows too."""
Unit = Callable[[], Iterator[Any]]
"""What one worker reads at a time: called, it gives its blocks one after the other."""


class Blocks(ABC):
    """Rows that come in blocks; `layout` has their classes and baseline."""

    layout: BlockLayout

    @abstractmethod
    def sum_over_blocks(
        self, work: Callable[[Any], Any], name: str = "reading", *, whole: bool = True
    ) -> Any:
        """Return the sum of ``work(block)`` over the blocks, added in their order.

        `name` is shown with the progress. Unless `whole`, a block needs only `log_odds`,
        `sample_weight`, `start` and `n_samples`.
        """

    @cached_property
    def first_pass(self) -> BlockSums:
        """The sums of the first pass; made once."""
        n_parameters = 2 * (len(self.layout.classes) - 1)
        if not is_full_hessian_affordable(n_parameters):
            raise InputError(
                "rows in blocks need the information of all parameters at once, of which there "
                f"may be {MAX_PARAMETERS_FOR_HESSIAN:,}; got {n_parameters:,}. Draw some of the "
                "rows, and pass them as arrays or in a small file."
            )
        sums: BlockSums = self.sum_over_blocks(sum_block_rows, "reading")
        if sums.metric_sums.weight == 0.0:
            raise zero_weight_error()
        layout = self.layout.with_default_baseline(sums.class_weight)
        if (
            layout != self.layout
        ):  # log odds and so all sums are those of another baseline
            self._set_layout(layout)
            sums = self.sum_over_blocks(sum_block_rows, "reading")
        if self.layout.reading.clip is None:
            warn_of_zeros(sums.changes, sums.n_samples * len(sums.class_weight))
        return sums

    def _set_layout(self, layout: BlockLayout) -> None:
        """Read with this layout from now on."""
        self.layout = layout

    @property
    def facts(self) -> DataFacts:
        """What the first pass found out about the rows."""
        sums = self.first_pass
        layout = self.layout
        return DataFacts(
            n_samples=sums.n_samples,
            classes=layout.classes,
            baseline=layout.baseline,
            class_weight=sums.class_weight,
            sample_weight=sums.metric_sums.weight if sums.has_weights else None,
            **vars(sums.changes),
            notes=self.notes(sums.n_samples),
        )

    def notes(self, n_rows: int) -> tuple[Statement, ...]:
        """Return what was assumed when the rows were read; `n_rows` are left."""
        return ()

    def log_partition(self, theta: Floats) -> Derivatives:
        """Return value, gradient and Hessian of A."""
        return self.sum_over_blocks(
            partial(log_partition_of_block, theta=theta), "fitting", whole=False
        )

    def take(self, rows: Codes | None = None) -> Predictions:
        """Return the rows of these numbers (ascending), or all, in memory."""
        sums = self.first_pass
        # where a block begins among the rows that are left: some may have been dropped for gaps
        starts = {}
        n_before = 0
        for start, size in sums.block_sizes:
            starts[start] = n_before
            n_before += size
        found = self.sum_over_blocks(
            partial(pick_rows, rows=rows, starts=starts), "choosing rows"
        )
        return found.join(sums.changes)


@dataclass(frozen=True)
class SpilledArray:
    """An array in a file of its bytes alone.

    Not `numpy.save`: `numpy.load` parses a header by `ast.literal_eval`, which is not safe in
    several threads of CPython 3.11 (SystemError: AST constructor recursion depth mismatch).
    """

    path: Path
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran_order: bool

    @classmethod
    def write(cls, path: Path, array: NDArray[Any]) -> SpilledArray:
        """Write the bytes in the order that they have in memory; `read` restores that order."""
        fortran_order = array.flags.fnc
        (array.T if fortran_order else array).tofile(path)
        return cls(path, array.dtype, array.shape, fortran_order)

    def read(self) -> NDArray[Any]:
        """Return the array."""
        values = np.fromfile(self.path, dtype=self.dtype)
        return values.reshape(self.shape, order="F" if self.fortran_order else "C")


@dataclass(frozen=True)
class SpilledBlock:
    """A block in a `Spill`, whose arrays are read from `files` when they are asked for."""

    start: int
    n_samples: int
    layout: BlockLayout
    files: dict[str, SpilledArray]

    @property
    def log_odds(self) -> Floats:
        """Log odds against the baseline, shape (K, n)."""
        return self.files["log_odds"].read()

    @property
    def sample_weight(self) -> Floats | None:
        """Weights of the rows."""
        return self._read_array("weight")

    @property
    def rows(self) -> Predictions:
        """The rows; only where the spill keeps them."""
        layout = self.layout
        probs = self.files["values"].read()
        logits = None
        if layout.reading.logits:
            clean = clean_logits(probs)
            probs = clean.probs
            logits = clean.logits
        return Predictions(
            probs=probs,
            codes=self.files["codes"].read().astype(np.intp),
            classes=layout.classes,
            baseline=layout.baseline,
            logits=logits,
            sample_weight=self.sample_weight,
            raised=self._read_array("raised"),
        )

    def _read_array(self, name: str) -> NDArray[Any] | None:
        return self.files[name].read() if name in self.files else None


class Spill:
    """A temporary folder of blocks, of rows if `whole`, not only of their log odds.

    Several threads may write and read at the same time.
    """

    def __init__(self, layout: BlockLayout, *, whole: bool) -> None:
        self.layout = layout
        self.whole = whole
        self.clear()
        self._scratch = ScratchFolder()
        self._folder = self._scratch.folder

    def close(self) -> None:
        """Give the space back."""
        self._scratch.close()

    def clear(self) -> None:
        """Forget all blocks; the next ones take the place of their files."""
        self.blocks: list[SpilledBlock] = []
        self.full = False
        self.n_bytes = 0

    def write(self, block: Block) -> None:
        """Keep a block, unless the disk would then have less room left than the blocks take.

        How many rows a packed file holds is not known beforehand.
        """
        if self.full:
            return
        files: dict[str, SpilledArray] = {}
        try:
            for name, part in self._arrays_to_write(block.rows).items():
                files[name] = SpilledArray.write(
                    self._folder / f"{block.start}-{name}", part
                )
                self.n_bytes += part.nbytes
            # room for as much again: other programs write to the same disk
            self.full = shutil.disk_usage(self._folder).free < self.n_bytes
        except OSError:
            self.full = True
        self.blocks.append(
            SpilledBlock(block.start, block.n_samples, self.layout, files)
        )

    def sort(self) -> None:
        """Put the blocks in the order of the rows; threads may have finished in any."""
        self.blocks.sort(key=lambda kept: kept.start)

    def _arrays_to_write(self, rows: Predictions) -> dict[str, NDArray[Any]]:
        parts: dict[str, NDArray[Any] | None] = {}
        parts["log_odds"] = rows.log_odds
        parts["weight"] = rows.sample_weight
        if self.whole:
            parts["values"] = rows.probs if rows.logits is None else rows.logits
            parts["codes"] = rows.codes.astype(np.int32)
            parts["raised"] = rows.raised
        return {name: part for name, part in parts.items() if part is not None}


class BlockSource(Protocol):
    """Where `StreamedBlocks` gets its blocks from; one that reads files also has `notes` and
    `check`.
    """

    layout: BlockLayout
    cost: Cost

    def units(self) -> Iterable[Unit]:
        """Return what workers read, in the order of the rows."""

    def n_bytes(self) -> float:
        """Return about how much room the rows take in float64, as far as is known."""


class StreamedBlocks(Blocks):
    """Blocks of a `BlockSource` on this machine.

    Parameters
    ----------
    source : Source
        Where the blocks come from.
    n_jobs : int, optional
        Threads, -1 for as many as CPUs; they change no bit of the result.
    spill : bool, optional
        Keep validated blocks in a temporary folder. Default: where there is room.
    """

    def __init__(
        self,
        source: BlockSource,
        *,
        n_jobs: int | None = None,
        spill: bool | None = None,
    ) -> None:
        self.source = source
        self.layout = source.layout
        self.n_workers = n_threads_for_size(1 << 62, n_jobs)  # as for work without end
        self._spill: Spill | None = None
        if has_disk_room(source.n_bytes()) if spill is None else spill:
            self._spill = Spill(source.layout, whole=source.cost == "much")
        self._kept = False
        self.n_passes = 0

    def notes(self, n_rows: int) -> tuple[Statement, ...]:
        """Return what the source assumed, if it reads files."""
        said = getattr(self.source, "notes", None)
        return () if said is None else said(n_rows)

    def close(self) -> None:
        """Remove the temporary folder."""
        if self._spill is not None:
            self._spill.close()

    def _set_layout(self, layout: BlockLayout) -> None:
        self.layout = self.source.layout = layout
        self._kept = False  # log odds are those of another baseline
        if self._spill is not None:
            self._spill.layout = layout

    def __enter__(self) -> StreamedBlocks:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def sum_over_blocks(
        self, work: Callable[[Any], Any], name: str = "reading", *, whole: bool = True
    ) -> Any:
        """Return the sum of ``work(block)`` over the blocks, added in their order."""
        kept = self._spill if self._kept else None
        to_fill = None if self._kept else self._spill
        if to_fill is not None:
            to_fill.clear()

        def sum_of_unit(unit: Unit) -> tuple[Any, int]:
            found = None
            n_rows = 0
            for block in unit():
                if to_fill is not None:
                    to_fill.write(block)
                found = sum_in_order([found, work(block)])
                n_rows += block.n_samples
            return found, n_rows

        reads_source = kept is None or (whole and not kept.whole)
        units = self.source.units() if reads_source else self._spilled_units()
        found = None
        parts = ordered_map(sum_of_unit, units, self.n_workers)
        # one BLAS thread for each worker: more would only wait for each other
        with one_blas_thread(), progress(name) as advance, closing(parts):
            for part, n_rows in parts:
                advance(n_rows)
                found = sum_in_order([found, part])
        # rows from the folder are those of the first pass, whatever happened to the file
        check = getattr(self.source, "check", None)
        if kept is None and check is not None:
            check()
        if found is None:
            raise InputError("there must be at least one row; got none.")
        if to_fill is not None and to_fill.full:
            self.close()
            self._spill = None
        elif to_fill is not None:
            to_fill.sort()
            self._kept = True
        self.n_passes += 1
        return found

    def _spilled_units(self) -> Iterator[Unit]:
        """Yield the blocks in the temporary folder, one for each worker at a time."""
        assert self._spill is not None
        for block in self._spill.blocks:
            yield partial(iter, [block])


def has_disk_room(n_bytes: float) -> bool:
    """Whether the temporary directory can hold that much and keep as much again."""
    return 2.0 * n_bytes < shutil.disk_usage(tempfile.gettempdir()).free
