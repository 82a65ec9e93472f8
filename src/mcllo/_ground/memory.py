"""How much memory there is, and one sentence for what would take more.

=================  ===============================================================================
`memory`           the least of: the machine's, its container's (cgroup), the process's (ulimit -v)
``MCLLO_MEMORY``   gigabytes to go by instead, where that is wrong
`refuse_beyond`    refuses, before the work, what needs more
`keep_freed`       for work that makes arrays of the same sizes over and over
=================  ===============================================================================
"""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path

import numpy as np

from ..exceptions import InputError, Phrase, Text
from .text import format_number

VARIABLE = "MCLLO_MEMORY"
CONTAINERS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where Linux says how much a container may use: cgroups of version 2, and of version 1."""


def memory() -> float:
    """Return the memory that there is, in bytes; infinite where the system does not say."""
    asked = os.environ.get(VARIABLE)
    if asked is None:
        return min(_machine(), _container(), _process())
    try:
        size = float(asked)
        if size > 0.0:
            return 1e9 * size
    except ValueError:
        pass
    raise InputError(f"{VARIABLE} must be a number of gigabytes, such as 16; got {asked!r}.")


def refuse_beyond(need: float, message: Text, remedy: Text) -> None:
    """Refuse what needs more bytes than there are; `message` says what and why."""
    there = memory()
    if need > there:
        sizes = [format_number(size / 1e9) for size in (need, there)]
        says = "{} about {} GB of memory; there are {}."
        more = f"{VARIABLE}={math.ceil(need / 1e9)} says that there is more."
        raise InputError(Phrase(says, message, *sizes), remedy=Phrase("{} {}", remedy, more))


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
    for place in CONTAINERS:
        with suppress(OSError, ValueError):
            return float(Path(place).read_text())  # "max" where there is no limit
    return math.inf


def _process() -> float:
    with suppress(ImportError, OSError, ValueError):
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        return math.inf if limit == resource.RLIM_INFINITY else float(limit)
    return math.inf
