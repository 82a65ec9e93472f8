"""How many threads share work, one BLAS thread inside each, and how much memory there is.

NumPy lets go of the interpreter in its loops, so threads share work where its parts are large
enough (`ordered_map`). Work is cut in one way only, and whoever adds results adds in the order of
the parts: the number of threads changes no bit. BLAS must not start threads of its own inside a
part (`one_blas_thread`): on a busy machine they wait for each other, and a product of 0.2 ms was
seen to take 100 ms. A program that already runs one process for each processor says
`limit_threads(1)` once in each.

`available_memory` is the least of the machine's, its container's (cgroup) and the process's (ulimit
-v), or what the variable ``MCLLO_MEMORY`` says in gigabytes; `check_memory` refuses, before the
work, what needs more.
"""

from __future__ import annotations

import itertools
import math
import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..exceptions import InputError
from .formatting import format_number
from .statements import active_collectors, collect_into

Item = TypeVar("Item")
Found = TypeVar("Found")

_limit: ContextVar[int | None] = ContextVar("mcllo_threads", default=None)


def n_threads() -> int:
    """Return how many threads may work at once: the limit, or the processors of this process."""
    limit = _limit.get()
    if limit is not None:
        return limit
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def limit_threads(n: int | None) -> None:
    """Let at most `n` threads share work from here on; None for one to each processor."""
    if n is not None and (isinstance(n, bool) or not isinstance(n, int) or n < 1):
        raise InputError(
            f"the number of threads must be a whole number >= 1; got {n!r}."
        )
    _limit.set(n)


@contextmanager
def threads(n: int | None) -> Iterator[None]:
    """Limit the threads inside a ``with`` block."""
    before = _limit.get()
    limit_threads(n)
    try:
        yield
    finally:
        _limit.set(before)


MIN_ELEMENTS_FOR_THREADS = 500_000
"""Elements (rows times classes) from which threads are used unless `n_jobs` says otherwise."""
MIN_PRODUCTS_FOR_BLAS_THREADS = 30_000
"""Multiplications from which BLAS may start threads of its own: a round number."""

_lock = threading.Lock()
_limited: list[tuple[Any, int]] = []
_users = 0


def n_threads_for_size(size: int, n_jobs: int | None = None) -> int:
    """Return how many threads to use on `size` elements; ``n_jobs=-1`` is one for each CPU."""
    if n_jobs == -1:
        return n_threads()
    if n_jobs is not None:
        return max(1, int(n_jobs))
    if size < MIN_ELEMENTS_FOR_THREADS:
        return 1
    # Unasked no more than 8, a round number: beyond, memory is the limit, and others work here too.
    return min(n_threads(), 8)


def ordered_map(
    work: Callable[[Item], Found], items: Iterable[Item], n_workers: int = 1
) -> Generator[Found, None, None]:
    """Yield ``work(item)`` in the order of the items, computed by up to `n_workers` threads.

    A sequence is shared with the calling thread; of any other iterable at most one item more than
    there are workers is held at a time. Workers start no threads of their own, and NumPy's error
    state is the caller's. Whatever ends this early, an error or Ctrl-C, also ends the workers
    before it goes on.
    """
    if isinstance(items, Sequence):
        n_workers = min(n_workers, len(items))
    if n_workers <= 1:
        yield from map(work, items)
        return
    # Both are matters of a thread, and a worker begins with those of nobody.
    error_state = np.geterr()
    collectors = active_collectors()

    def run(item: Item) -> Found:
        with np.errstate(**error_state), collect_into(collectors):
            return work(item)

    pool = ThreadPoolExecutor(n_workers, initializer=limit_threads, initargs=(1,))
    waiting: deque[Future[Found]] = deque()
    try:
        if isinstance(items, Sequence):
            yield from _map_by_shared_queue(run, items, pool, n_workers - 1)
            return
        for item in items:
            waiting.append(pool.submit(run, item))
            if len(waiting) > n_workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _map_by_shared_queue(
    run: Callable[[Item], Found],
    items: Sequence[Item],
    pool: ThreadPoolExecutor,
    n_helpers: int,
) -> list[Found]:
    """Return all results; each worker takes item after item, which costs less than a task each."""
    found: list[Any] = [None] * len(items)
    numbers = itertools.count()  # next() is atomic: no item goes to two workers
    over = threading.Event()

    def take() -> None:
        try:
            # Ask before a number is taken: whoever takes one must run its item.
            while not over.is_set():
                k = next(numbers)
                if k >= len(items):
                    break
                found[k] = run(items[k])
        finally:
            over.set()  # an error in one worker ends the others

    # The calling thread works too: it would only wait, and one thread less is to be started.
    helpers = [pool.submit(take) for _ in range(n_helpers)]
    with threads(1):
        take()
    for helper in helpers:
        helper.result()
    return found


@contextmanager
def one_blas_thread(work: int = MIN_PRODUCTS_FOR_BLAS_THREADS) -> Iterator[None]:
    """Keep BLAS to one thread; nothing is done where `work` is too little for BLAS to want more.

    The setting belongs to the process. Several threads may be inside at a time: the first to enter
    sets it and the last to leave restores it.
    """
    global _users
    if work < MIN_PRODUCTS_FOR_BLAS_THREADS:
        yield
        return
    with _lock:
        _users += 1
        if _users == 1:
            for library in _loaded_blas_libraries():
                before = library.num_threads
                if before != 1:
                    library.set_num_threads(1)
                    _limited.append((library, before))
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            while _users == 0 and _limited:
                library, before = _limited.pop()
                library.set_num_threads(before)


@cache
def _loaded_blas_libraries() -> list[Any]:
    """Return the BLAS libraries that are loaded; looking for them takes a millisecond or more."""
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


MEMORY_VARIABLE = "MCLLO_MEMORY"
CONTAINER_LIMIT_FILES = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)
"""Where Linux says how much a container may use: cgroups of version 2, and of version 1."""


def available_memory() -> float:
    """Return the memory that there is, in bytes; infinite where the system does not say."""
    asked = os.environ.get(MEMORY_VARIABLE)
    if asked is None:
        return min(_machine_memory(), _container_memory(), _process_memory_limit())
    try:
        size = float(asked)
        if size > 0.0:
            return 1e9 * size
    except ValueError:
        pass
    raise InputError(
        f"{MEMORY_VARIABLE} must be a number of gigabytes, such as 16; got {asked!r}."
    )


def check_memory(
    need: float, message: str, remedy: str, values: Mapping[str, Any] | None = None
) -> None:
    """Refuse what needs more bytes than there are; `message` says what and why.

    Message and remedy are templates, filled with `values`.
    """
    there = available_memory()
    if need > there:
        sizes = {"need": format_number(need / 1e9), "there": format_number(there / 1e9)}
        more = f"{MEMORY_VARIABLE}={math.ceil(need / 1e9)} says that there is more."
        raise InputError(
            f"{message} about {{need}} GB of memory; there are {{there}}.",
            remedy=f"{remedy} {more}",
            values={**(values or {}), **sizes},
        )


MAX_BLOCK_ENTRIES = 2**22
"""Entries of a stretch of rows: what is computed of it takes 32 MB (a round number)."""


def row_blocks(n_samples: int, n_classes: int) -> Iterator[slice]:
    """Return stretches of the rows of a table, for what would otherwise be a table as large.

    Examples
    --------
    >>> list(row_blocks(3_000_000, 2))
    [slice(0, 2097152, None), slice(2097152, 3000000, None)]
    """
    size = max(1, MAX_BLOCK_ENTRIES // n_classes)
    return (slice(k, min(n_samples, k + size)) for k in range(0, n_samples, size))


def keep_freed_memory() -> None:
    """Let the C library keep up to 62 MB that were freed, instead of asking for them page by page.

    glibc takes the largest block that was ever given back for the size from which it maps blocks
    one by one, and keeps twice as much (mallopt(3), M_MMAP_THRESHOLD). An array of almost its
    most, 32 MB, which nobody touches, costs nothing; elsewhere it does nothing.
    """
    np.empty(31 * 2**20, dtype=np.uint8)


def _machine_memory() -> float:
    with suppress(AttributeError, ValueError, OSError):
        return float(os.sysconf("SC_PHYS_PAGES")) * float(os.sysconf("SC_PAGE_SIZE"))
    return math.inf


def _container_memory() -> float:
    for place in CONTAINER_LIMIT_FILES:
        with suppress(OSError, ValueError):
            return float(Path(place).read_text())  # "max" where there is no limit
    return math.inf


def _process_memory_limit() -> float:
    with suppress(ImportError, OSError, ValueError):
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        return math.inf if limit == resource.RLIM_INFINITY else float(limit)
    return math.inf
