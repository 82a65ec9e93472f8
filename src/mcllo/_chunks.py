"""Numbered chunks of work shared by threads, with one BLAS thread inside each.

NumPy lets go of the interpreter in its loops, so threads share the work where chunks are large
enough. BLAS must not start threads of its own inside a chunk: on a busy machine they wait for each
other, and a product of 0.2 ms was seen to take 100 ms. Results are kept in the order of the chunks,
and whoever adds them adds in that order: the number of threads changes no bit.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ._threads import n_threads

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
