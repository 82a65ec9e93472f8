"""How many threads share work, and one BLAS thread inside each: the one place that decides.

===================================================  ===============================================
`n_threads`                                          how many may work at once; `limit_threads` and
                                                     `threads` set a limit
`threads_for`                                        how many pay on so many elements, or were asked
                                                     for
`ordered_map`                                        the one map: results in the order of the items,
                                                     whoever computed them
`borrow_buffer`                                      as many buffers as threads are at work
`one_blas_thread` BLAS starts no threads of its own
===================================================  ===============================================

NumPy lets go of the interpreter in its loops, so threads share work where its parts are large
enough. Work is cut in one way only, and whoever adds results adds in the order of the parts: the
number of threads changes no bit. BLAS must not start threads of its own inside a part: on a busy
machine they wait for each other, and a product of 0.2 ms was seen to take 100 ms. A program that
already runs one process for each processor says `limit_threads(1)` once in each.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..exceptions import InputError
from .statements import listeners, listening

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
        raise InputError(f"the number of threads must be a whole number >= 1; got {n!r}.")
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
MAX_DEFAULT_THREADS = 8
"""Threads that are started unasked; more gain little, because memory becomes the limit."""
MIN_PRODUCTS_FOR_BLAS_THREADS = 30_000
"""Multiplications from which BLAS may think of threads of its own."""

_lock = threading.Lock()
_limited: list[tuple[Any, int]] = []
_users = 0


def threads_for(size: int, n_jobs: int | None = None) -> int:
    """Return how many threads to use on `size` elements; ``n_jobs=-1`` is one for each CPU."""
    if n_jobs is None:
        return min(n_threads(), MAX_DEFAULT_THREADS) if size >= MIN_ELEMENTS_FOR_THREADS else 1
    return n_threads() if n_jobs == -1 else max(1, int(n_jobs))


def ordered_map(
    work: Callable[[Item], Found], items: Iterable[Item], n_workers: int = 1
) -> Generator[Found, None, None]:
    """Yield ``work(item)`` in the order of the items, computed by up to `n_workers` threads.

    A sequence is shared with the calling thread; of any other iterable at most one item more than
    there are workers is held at a time. Workers start no threads of their own, and NumPy's error
    state is the caller's. Whatever ends this early, an error or Ctrl-C, also ends the workers
    before it goes on.
    """
    n_workers = min(n_workers, len(items)) if isinstance(items, Sequence) else n_workers
    if n_workers <= 1:
        yield from map(work, items)
        return
    state, ears = np.geterr(), listeners()

    def run(item: Item) -> Found:
        with np.errstate(**state), listening(ears):
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
    run: Callable[[Item], Found], items: Sequence[Item], pool: ThreadPoolExecutor, n_helpers: int
) -> list[Found]:
    """Return all results; each worker takes item after item, which costs less than a task each."""
    found: list[Any] = [None] * len(items)
    numbers, over = itertools.count(), threading.Event()

    def take() -> None:
        try:
            while not over.is_set() and (k := next(numbers)) < len(items):
                found[k] = run(items[k])
        finally:
            over.set()

    helpers = [pool.submit(take) for _ in range(n_helpers)]
    with threads(1):
        take()
    for helper in helpers:
        helper.result()
    return found


@contextmanager
def borrow_buffer(
    spare: list[NDArray[Any]], shape: tuple[int, ...], dtype: Any
) -> Iterator[NDArray[Any]]:
    """Lend a buffer out of `spare`, or a new one; it is put there when it comes back.

    So as many are made as threads are at work, and no two threads have the same.
    """
    try:
        buffer = spare.pop()
    except IndexError:
        buffer = np.empty(shape, dtype)
    try:
        yield buffer
    finally:
        spare.append(buffer)


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
        for library in _blas_libraries() if _users == 1 else ():
            if (before := library.num_threads) != 1:
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
def _blas_libraries() -> list[Any]:
    """Return the BLAS libraries that are loaded; looking for them takes a millisecond or more."""
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)
