"""How many threads share simulated draws: the one place that decides.

Batches of draws are cut in one way only, so the number of threads changes no answer. A program that
already runs one process for each processor says `single_threaded()`, or `limit_threads(1)` once in
each process; then no thread is started.

Numbered chunks of work shared by threads, with one BLAS thread inside each.

NumPy lets go of the interpreter in its loops, so threads share the work where chunks are large
enough. BLAS must not start threads of its own inside a chunk: on a busy machine they wait for each
other, and a product of 0.2 ms was seen to take 100 ms. Results are kept in the order of the chunks,
and whoever adds them adds in that order: the number of threads changes no bit.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..exceptions import InputError

Work = TypeVar("Work")
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
    """Let at most `n` threads share draws from here on; None for one to each processor."""
    if n is not None and (isinstance(n, bool) or not isinstance(n, int) or n < 1):
        raise InputError(f"the number of threads must be a whole number >= 1; got {n!r}.")
    _limit.set(n)


@contextmanager
def threads(n: int | None) -> Iterator[None]:
    """Limit the threads inside a ``with`` block.

    Examples
    --------
    >>> with threads(3):
    ...     n_threads()
    3
    """
    before = _limit.get()
    limit_threads(n)
    try:
        yield
    finally:
        _limit.set(before)


@contextmanager
def single_threaded() -> Iterator[None]:
    """Start no thread inside a ``with`` block."""
    with threads(1):
        yield


def map_in_threads(
    work: Callable[[Work], Found], parts: Sequence[Work], *, pays: bool = True
) -> list[Found]:
    """Return ``work(part)`` of each part, in order; in threads where they pay.

    A thread that works on a part starts no threads of its own.
    """
    workers = min(n_threads(), len(parts)) if pays else 1
    if workers <= 1:
        return [work(part) for part in parts]
    with ThreadPoolExecutor(workers, initializer=limit_threads, initargs=(1,)) as pool:
        return list(pool.map(work, parts))


T = TypeVar("T")

THREADS_PAY = 500_000
"""Elements (rows times classes) from which threads are used unless `n_jobs` says otherwise."""
MOST_THREADS = 8
"""Threads that are started unasked; more gain little, because memory becomes the limit."""
BLAS_MAY_THREAD = 30_000
"""Multiplications from which BLAS may think of threads of its own."""

_lock = threading.Lock()
_limited: list[tuple[Any, int]] = []
_users = 0


def threads_for(size: int, n_jobs: int | None = None) -> int:
    """Return how many threads to use on `size` elements; ``n_jobs=-1`` is one for each CPU."""
    if n_jobs is None:
        return min(n_threads(), MOST_THREADS) if size >= THREADS_PAY else 1
    return n_threads() if n_jobs == -1 else max(1, int(n_jobs))


def ordered_map(work: Callable[[int], T], n_tasks: int, n_workers: int = 1) -> list[T]:
    """Return ``[work(0), ..., work(n_tasks - 1)]``, computed by up to `n_workers` threads.

    The calling thread is one of them. NumPy's error state is the caller's in all of them, and an
    exception of any is raised here.

    Examples
    --------
    >>> ordered_map(lambda task: task * task, 4, 2)
    [0, 1, 4, 9]
    """
    n_workers = min(n_workers, n_tasks)
    if n_workers <= 1:
        return [work(task) for task in range(n_tasks)]
    results: list[Any] = [None] * n_tasks
    raised: list[BaseException] = []
    tasks, state = itertools.count(), np.geterr()

    def run() -> None:
        try:
            with np.errstate(**state):
                while not raised and (task := next(tasks)) < n_tasks:
                    results[task] = work(task)
        except BaseException as error:  # raised again below, by the thread that asked
            raised.append(error)

    helpers = [threading.Thread(target=run, daemon=True) for _ in range(n_workers - 1)]
    for helper in helpers:
        helper.start()
    run()
    for helper in helpers:
        helper.join()
    if raised:
        raise raised[0]
    return results


@contextmanager
def borrowed(
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
def one_blas_thread(work: int = BLAS_MAY_THREAD) -> Iterator[None]:
    """Keep BLAS to one thread; nothing is done where `work` is too little for BLAS to want more.

    The setting belongs to the process. Several threads may be inside at a time: the first to enter
    sets it and the last to leave restores it.
    """
    if work < BLAS_MAY_THREAD:
        yield
        return
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _users
    with _lock:
        _users += 1
        if _users > 1:
            return
        for library in _blas_libraries():
            threads = library.num_threads
            if threads != 1:
                library.set_num_threads(1)
                _limited.append((library, threads))


def _leave() -> None:
    global _users
    with _lock:
        _users -= 1
        while _users == 0 and _limited:
            library, threads = _limited.pop()
            library.set_num_threads(threads)


@cache
def _blas_libraries() -> list[Any]:
    """Return the BLAS libraries that are loaded; looking for them takes a millisecond or more."""
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)
