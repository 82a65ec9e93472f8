"""`Blocks`: rows from anywhere, through one method, ``total(work)``.

All that this package needs of many rows is a sum over rows, so whoever holds the rows has to do one
thing: give each block to a function and add what comes back, in the order of the blocks.

=================  ==========================================================================
``total(work)``    sum of ``work(block)``; the order, not the number of workers, fixes each bit
``first``          the first pass: validates, counts, and sums (`RowSums`)
``terms(theta)``   A(theta) with gradient and Hessian: one pass (`_blocks/fit` needs a few)
``take(rows)``     some rows, or all, as `Predictions`
=================  ==========================================================================

`Streamed` is the one machine: threads share the blocks of a `Source` (`_blocks/files`), and
validated blocks are kept in a temporary folder where reading them again would cost more. A cluster
is another subclass with its own `total`: `work` is a function of a module, or a `functools.partial`
of one, so that it can be sent; what it returns is small.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import cached_property, partial
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from .._assessment.assessment import DataFacts
from .._ground.files import progress
from .._ground.results import Floats
from .._ground.threads import one_blas_thread, ordered_map, threads_for
from .._input.predictions import Predictions, zeros_raised
from .._input.weights import no_weight
from .._math.likelihood import Terms
from .._math.many_classes import MOST_PARAMETERS, has_whole_hessian
from ..exceptions import InputError, ZeroProbabilityWarning
from .spill import Kept, Spill, room_for
from .sums import Layout, RowSums, block_terms, picked, row_sums

Cost = Literal["some", "much"]
"""Of reading again, and so what is kept: log odds, or the rows too."""
Unit = Callable[[], Iterator[Any]]
"""What one worker reads at a time: called, it gives its blocks one after the other."""


class Blocks(ABC):
    """Rows that come in blocks.

    Attributes
    ----------
    layout : Layout
        Classes and baseline.
    """

    layout: Layout

    @abstractmethod
    def total(
        self, work: Callable[[Any], Any], name: str = "reading", *, whole: bool = True
    ) -> Any:
        """Return the sum of ``work(block)`` over the blocks, added in their order.

        `name` is shown with the progress. Unless `whole`, a block needs only `log_odds`,
        `sample_weight`, `start` and `n_samples`.
        """

    @cached_property
    def first(self) -> RowSums:
        """The sums of the first pass; made once."""
        self._check_size()
        sums: RowSums = self.total(row_sums, "reading")
        if sums.scores.weight == 0.0:
            raise no_weight()
        if sums.changes.n_clipped and self.layout.reading.clip is None:
            raised = zeros_raised(sums.changes, sums.n_samples * len(sums.class_weight))
            warnings.warn(ZeroProbabilityWarning(raised), stacklevel=3)
        return sums

    @property
    def facts(self) -> DataFacts:
        """What the first pass found out about the rows."""
        sums, layout = self.first, self.layout
        return DataFacts(
            n_samples=sums.n_samples,
            classes=layout.classes,
            baseline=layout.baseline,
            class_weight=sums.class_weight,
            sample_weight=sums.scores.weight if sums.weighted else None,
            **vars(sums.changes),
        )

    def _check_size(self) -> None:
        n_parameters = 2 * (len(self.layout.classes) - 1)
        if not has_whole_hessian(n_parameters):
            raise InputError(
                "rows in blocks need the information of all parameters at once, of which there "
                f"may be {MOST_PARAMETERS:,}; got {n_parameters:,}. Draw some of the rows, and "
                "pass them as arrays or in a small file."
            )

    def terms(self, theta: Floats) -> Terms:
        """Return value, gradient and Hessian of A."""
        terms: Terms = self.total(partial(block_terms, theta=theta), "fitting", whole=False)
        return terms

    def take(self, rows: NDArray[np.intp] | None = None) -> Predictions:
        """Return the rows of these numbers (ascending), or all, in memory."""
        sums, starts, reached = self.first, {}, 0
        for start, size in sums.sizes:
            starts[start], reached = reached, reached + size
        found = self.total(partial(picked, rows=rows, starts=starts), "choosing rows")
        return found.joined(sums.changes)


class Source(Protocol):
    """Where `Streamed` gets its blocks from."""

    layout: Layout
    cost: Cost

    def units(self) -> Iterable[Unit]:
        """Return what workers read, in the order of the rows."""

    def n_bytes(self) -> float:
        """Return about how much room the rows take in float64, as far as is known."""


class Streamed(Blocks):
    """Blocks of a `Source` on this machine.

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
        self, source: Source, *, n_jobs: int | None = None, spill: bool | None = None
    ) -> None:
        self.source, self.layout = source, source.layout
        self.n_workers = threads_for(1 << 62, n_jobs)
        wanted = room_for(source.n_bytes()) if spill is None else spill
        self._spill = Spill(source.layout, whole=source.cost == "much") if wanted else None
        self._kept = False
        self.n_passes = 0

    def close(self) -> None:
        """Remove the temporary folder."""
        if self._spill is not None:
            self._spill.close()

    def __enter__(self) -> Streamed:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def total(
        self, work: Callable[[Any], Any], name: str = "reading", *, whole: bool = True
    ) -> Any:
        """Return the sum of ``work(block)`` over the blocks, added in their order."""
        to = None if self._kept else self._spill
        if to is not None:
            to.clear()

        def of_unit(unit: Unit) -> tuple[Any, int]:
            found, n_rows = None, 0
            for block in unit():
                if to is not None:
                    to.write(block)
                part = work(block)
                found = part if found is None else found + part
                n_rows += block.n_samples
            return found, n_rows

        found, parts = None, ordered_map(of_unit, self._units(whole), self.n_workers)
        with one_blas_thread(), progress(name) as advance, closing(parts):
            for part, n_rows in parts:
                advance(n_rows)
                if part is not None:
                    found = part if found is None else found + part
        if found is None:
            raise InputError("there must be at least one row; got none.")
        if to is not None:
            self._finish(to)
        self.n_passes += 1
        return found

    def _units(self, whole: bool) -> Iterable[Unit]:
        spill = self._spill if self._kept else None
        if spill is None or (whole and not spill.whole):
            return self.source.units()
        return (partial(_single, kept) for kept in spill.blocks)

    def _finish(self, spill: Spill) -> None:
        """Use what was kept from now on; without it where the disk was full."""
        if not spill.full:
            spill.sort()
            self._kept = True
            return
        self.close()
        self._spill = None


def _single(block: Kept) -> Iterator[Kept]:
    yield block
