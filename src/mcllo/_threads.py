"""How many threads share simulated draws: the one place that decides.

Batches of draws are cut in one way only, so the number of threads changes no answer. A program that
already runs one process for each processor says `single_threaded()`, or `limit_threads(1)` once in
each process; then no thread is started.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from .exceptions import InputError

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
