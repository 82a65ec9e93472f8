"""What numbers were measured on, the files they are kept in, and the numbers made of times.

``results/latest.json`` holds every single time of the last full run of ``speed``; page and figure
are made of it alone. ``results/quick.json`` is what ``--quick`` wrote: a check that all runs.
"""

from __future__ import annotations

import datetime
import json
import math
import os
import platform
import re
import shutil
import statistics
import subprocess
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
LATEST, QUICK = RESULTS / "latest.json", RESULTS / "quick.json"
_THREADS = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
BUSY = 0.25
"""Load for each processor above which something else is running."""
ONE_THREAD = dict.fromkeys(_THREADS, "1")
PACKAGES = [
    "numpy",
    "scipy",
    "scikit-learn",
    "netcal",
    "probmetrics",
    "torch",
    "numba",
    "pyarrow",
]

Record = dict[str, Any]
comma_separated = re.compile(r"[^,\s]+").findall


def lines(path: str, start: str) -> list[str]:
    """Return what a system file says after such a beginning; nothing where there is no file."""
    file = Path(path)
    text = file.read_text() if file.exists() else ""
    return [
        line.partition(":")[2].strip()
        for line in text.splitlines()
        if line.startswith(start)
    ]


def cores() -> int:
    known = hasattr(os, "sched_getaffinity")
    return len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1


def load() -> list[float] | None:
    """Return the load averages over 1, 5 and 15 minutes; None where the system does not tell."""
    return (
        [round(value, 2) for value in os.getloadavg()]
        if hasattr(os, "getloadavg")
        else None
    )


def is_busy(loads: Sequence[float] | None, n_cores: int) -> bool:
    """Whether load averages say that something else is running.

    >>> is_busy([0.6, 0.1, 0.1], 2), is_busy([0.4, 3.0, 3.0], 2), is_busy(None, 2)
    (True, False, False)
    """
    return bool(loads) and loads[0] > BUSY * n_cores


def settle(limit: float = 300.0) -> None:
    """Wait until what ran before has faded from the load average, but no longer than `limit`."""
    until = time.monotonic() + limit
    while is_busy(load(), cores()) and time.monotonic() < until:
        time.sleep(5.0)


def now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")


def say(words: str) -> None:
    print(f"{now()}  {words}", flush=True)


def kernel_name() -> str:
    """Return which kernel runs where nothing turns it off: 'NumPy', or C and its vectors."""
    from mcllo._model import compiled

    return compiled.kernel_name()


def machine(packages: Iterable[str] = PACKAGES) -> Record:
    """Return what does not change during a run; a package or R that is not there has no version."""
    import numpy as np
    from threadpoolctl import threadpool_info

    from mcllo import __version__

    versions: Record = {"mcllo": __version__, "python": platform.python_version()}
    versions |= dict.fromkeys([*packages, "R"])
    for name in packages:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    if shutil.which("Rscript") is not None:
        command = ["Rscript", "-e", "cat(R.version$major, R.version$minor, sep='.')"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        versions["R"] = done.stdout or None
    np.dot(np.ones((2, 2)), np.ones((2, 2)))
    loaded = [part for part in threadpool_info() if part["user_api"] == "blas"]
    blas = {f"{part['internal_api']} {part['version']}" for part in loaded}
    flags = " ".join(lines("/proc/cpuinfo", "flags")[:1])
    memory = None
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    vectors = [word for word in ("avx512f", "avx2") if word in flags]
    return {
        "cpu": next(iter(lines("/proc/cpuinfo", "model name")), platform.machine()),
        "vector unit": next(
            iter(vectors), "neither AVX-512 nor AVX2" if flags else "unknown"
        ),
        "cores": cores(),
        "memory_gb": memory,
        "system": f"{platform.system()} {platform.machine()}",
        "blas": ", ".join(sorted(blas)) or "unknown",
        "blas_threads": 1,
        "kernel": kernel_name(),
        "versions": versions,
    }


def read(path: Path) -> Record:
    return json.loads(path.read_text()) if path.exists() else {}


def write(path: Path, results: Record) -> None:
    """Write results under another name first, so that no half file is left behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".tmp")
    beside.write_text(json.dumps(rounded(results), indent=1, allow_nan=False) + "\n")
    beside.replace(path)


def rounded(value: Any, digits: int = 6) -> Any:
    """Return the value with floats of few digits (likelihoods keep 12), None for no number.

    >>> rounded({"nll": 12356.736982715385, "seconds": [0.123456789], "pvalue": float("nan")})
    {'nll': 12356.7369827, 'seconds': [0.123457], 'pvalue': None}
    """
    if isinstance(value, dict):
        return {
            key: rounded(v, 12 if key == "nll" else digits) for key, v in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [rounded(v, digits) for v in value]
    if isinstance(value, float):
        return float(f"{value:.{digits}g}") if math.isfinite(value) else None
    return value


def median(seconds: Sequence[float]) -> float:
    return float(statistics.median(seconds))


def quartiles(seconds: Sequence[float]) -> tuple[float, float]:
    """Return the first and the third quartile; of one time, that time twice.

    >>> quartiles([9.0, 1.0, 3.0, 2.0, 4.0]), quartiles([7.0])
    ((2.0, 4.0), (7.0, 7.0))
    """
    if len(seconds) < 2:
        return float(seconds[0]), float(seconds[0])
    low, _, high = statistics.quantiles(seconds, n=4, method="inclusive")
    return low, high


def ratio(records: Record, ours: str, peer: str) -> tuple[float | None, bool]:
    """Return how many times as long as `ours` the peer took, and whether that is a lower bound.

    A peer that was ended at its limit took at least that long. None where nothing is known.

    >>> records = {"a": {"status": "ok", "seconds": [0.5]}}
    >>> records["b"] = {"status": "ok", "seconds": [1.0, 1.5, 2.5]}
    >>> records["c"] = {"status": "over", "limit": 30.0, "seconds": []}
    >>> ratio(records, "a", "b"), ratio(records, "a", "c"), ratio(records, "a", "d")
    ((3.0, False), (60.0, True), (None, False))
    """
    own, other = (
        records.get(name, {"status": "", "seconds": []}) for name in (ours, peer)
    )
    over = other["status"] == "over"
    took = [other["limit"]] if over else other["seconds"]
    if not own["seconds"] or not took:
        return None, False
    return median(took) / median(own["seconds"]), over
