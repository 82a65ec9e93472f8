"""`Blocks`: rows from anywhere, through one method, ``total(work)``.

All that this package needs of many rows is a sum over rows, so whoever holds the rows has to do one
thing: give each block to a function and add what comes back, in the order of the blocks.

=================  ==========================================================================
``total(work)``    sum of ``work(block)``; the order, not the number of workers, fixes each bit
``first``          the first pass: validates, counts, and sums (`RowSums`)
``terms(theta)``   A(theta) with gradient and Hessian: one pass (`_blocks/fit` needs a few)
``take(rows)``     some rows, or all, as `Predictions`
=================  ==========================================================================

`Streamed` is the one machine: threads share blocks of arrays, of an iterator or of files
(`_blocks/sources`), and validated blocks are kept in a temporary file where reading them again
would cost more. A cluster is another subclass with its own `total`: `work` is a function of a
module, or a `functools.partial` of one, so that it can be sent; what it returns is small.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import cached_property, partial
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._ground.files import progress
from .._ground.results import Floats
from .._ground.threads import limit_threads, one_blas_thread, threads_for
from .._input.predictions import Predictions, zeros_raised
from .._input.weights import no_weight
from .._math.likelihood import Terms
from .._math.many_classes import MOST_PARAMETERS, has_whole_hessian
from ..exceptions import InputError, Phrase, ZeroProbabilityWarning
from .spill import Kept, Spill, room_for
from .sums import Layout, RowSums, block_terms, picked, row_sums

Sum = TypeVar("Sum")
Item = TypeVar("Item")
Found = TypeVar("Found")

Cost = Literal["little", "some", "much", "impossible"]
"""Of reading again: nothing is kept, log odds are, the rows are too, or must be."""
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
            warnings.warn(ZeroProbabilityWarning(zero_phrase(sums)), stacklevel=3)
        return sums

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
        return found.joined(sums.changes)  # type: ignore[no-any-return]


class Source(Protocol):
    """Where `Streamed` gets its blocks from."""

    layout: Layout
    cost: Cost
    """What reading the rows again costs, and so what of them is kept."""

    def units(self) -> Iterable[Unit]:
        """Return what workers read, in the order of the rows."""

    def n_bytes(self) -> float:
        """Return about how much room the rows take in float64, as far as is known."""


class Streamed(Blocks):
    """Blocks of a `Source` on this machine.

    Parameters
    ----------
    source : Source
        Arrays, batches or files.
    n_jobs : int, optional
        Threads, -1 for as many as CPUs; they change no bit of the result.
    spill : bool, optional
        Keep validated blocks in a temporary file. Default: where reading again costs more, and
        there is room.
    """

    def __init__(
        self, source: Source, *, n_jobs: int | None = None, spill: bool | None = None
    ) -> None:
        self.source, self.layout = source, source.layout
        self.n_workers = threads_for(1 << 62, n_jobs)
        self._once = source.cost == "impossible"
        wanted = source.cost != "little" and room_for(source.n_bytes()) if spill is None else spill
        whole = source.cost in ("much", "impossible")
        self._spill = Spill(source.layout, whole=whole) if wanted or self._once else None
        self._kept = False
        self.n_passes = 0

    def close(self) -> None:
        """Remove the temporary file."""
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

        found, parts = None, in_order(of_unit, self._units(whole), self.n_workers)
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
        if self._once:
            raise InputError(
                "batches that can be read only once must fit into the temporary directory, which "
                "is full. Pass a function that returns the batches anew, or set TMPDIR."
            )


def in_order(
    work: Callable[[Item], Found], items: Iterable[Item], n_workers: int
) -> Generator[Found, None, None]:
    """Yield ``work(item)`` in the order of the items, computed by threads.

    At most one item more than there are workers is held at a time. Workers start no threads of
    their own, and NumPy's error state is the caller's. Whatever ends this early, an error or
    Ctrl-C, also ends the workers before it goes on.

    Examples
    --------
    >>> list(in_order(lambda item: item * item, [1, 2, 3], n_workers=2))
    [1, 4, 9]
    """
    state = np.geterr()

    def run(item: Item) -> Found:
        with np.errstate(**state):
            return work(item)

    if n_workers <= 1:
        yield from map(run, items)
        return
    pool = ThreadPoolExecutor(n_workers, initializer=limit_threads, initargs=(1,))
    waiting: deque[Future[Found]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(run, item))
            if len(waiting) > n_workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def zero_phrase(sums: RowSums) -> Phrase:
    """Return what the zero rule did, in a sentence; empty when it did nothing."""
    found, cells = sums.changes, sums.n_samples * len(sums.class_weight)
    return zeros_raised(found.n_zeros, cells, found.n_clipped, found.clip, found.n_clipped_true)


def _single(block: Kept) -> Iterator[Kept]:
    yield block
