"""How much memory there is, and one sentence for what would take more.

=================  ===============================================================================
`memory`           the least of: the machine's, its container's (cgroup), the process's (ulimit -v)
``MCLLO_MEMORY``   gigabytes to go by instead, where that is wrong
`refuse_beyond`    refuses, before the work, what needs more
`keep_freed`       for work that makes arrays of the same sizes over and over
`row_blocks`       stretches of rows: what is made of one is small beside the table
=================  ===============================================================================
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from ..exceptions import InputError, Phrase, Text
from .formatting import format_number

MEMORY_VARIABLE = "MCLLO_MEMORY"
CONTAINER_LIMIT_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where Linux says how much a container may use: cgroups of version 2, and of version 1."""


def memory() -> float:
    """Return the memory that there is, in bytes; infinite where the system does not say."""
    asked = os.environ.get(MEMORY_VARIABLE)
    if asked is None:
        return min(_machine(), _container(), _process())
    try:
        size = float(asked)
        if size > 0.0:
            return 1e9 * size
    except ValueError:
        pass
    raise InputError(f"{MEMORY_VARIABLE} must be a number of gigabytes, such as 16; got {asked!r}.")


def refuse_beyond(need: float, message: Text, remedy: Text) -> None:
    """Refuse what needs more bytes than there are; `message` says what and why."""
    there = memory()
    if need > there:
        sizes = [format_number(size / 1e9) for size in (need, there)]
        says = "{} about {} GB of memory; there are {}."
        more = f"{MEMORY_VARIABLE}={math.ceil(need / 1e9)} says that there is more."
        raise InputError(Phrase(says, message, *sizes), remedy=Phrase("{} {}", remedy, more))


MAX_BLOCK_ENTRIES = 2**22
"""Entries of a stretch of rows: what is computed of it takes 32 MB."""


def row_blocks(n_samples: int, n_classes: int) -> Iterator[slice]:
    """Return stretches of the rows of a table, for what would otherwise be a table as large.

    Examples
    --------
    >>> list(row_blocks(3_000_000, 2))
    [slice(0, 2097152, None), slice(2097152, 3000000, None)]
    """
    size = max(1, MAX_BLOCK_ENTRIES // n_classes)
    return (slice(k, min(n_samples, k + size)) for k in range(0, n_samples, size))


def keep_freed() -> None:
    """Let the C library keep up to 62 MB that were freed, instead of asking for them page by page.

    glibc takes the largest block that was ever given back for the size from which it maps blocks
    one by one, and keeps twice as much (mallopt(3), M_MMAP_THRESHOLD). An array of almost its
    most, 32 MB, which nobody touches, costs nothing; elsewhere it does nothing.
    """
    np.empty(31 * 2**20, dtype=np.uint8)


def _machine() -> float:
    with suppress(AttributeError, ValueError, OSError):
        return float(os.sysconf("SC_PHYS_PAGES")) * float(os.sysconf("SC_PAGE_SIZE"))
    return math.inf


def _container() -> float:
    for place in CONTAINER_LIMIT_FILES:
        with suppress(OSError, ValueError):
            return float(Path(place).read_text())  # "max" where there is no limit
    return math.inf


def _process() -> float:
    with suppress(ImportError, OSError, ValueError):
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        return math.inf if limit == resource.RLIM_INFINITY else float(limit)
    return math.inf
