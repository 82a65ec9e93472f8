"""What the numbers were measured on: machine, versions, threads, date and load."""

import datetime
import os
import platform
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    *("numpy", "scipy", "scikit-learn", "netcal", "probmetrics"),
    *("torch", "numba", "pyarrow"),
)


def cpu_model() -> str:
    """Return the processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.machine()


def vector_unit() -> str:
    """Return the widest vector instructions of the processor, where the system tells."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return "unknown"
    return next((word for word in ("avx512f", "avx2") if word in text), "neither AVX-512 nor AVX2")


def cores() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_gb() -> float | None:
    """Return the machine's memory; None where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    except (ValueError, OSError, AttributeError):
        return None


def free_gb() -> float:
    """Return the memory that is free for a new program, or 0 where the system does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(w.split()[1]) / 2**20 for w in lines if w.startswith("MemAvailable")), 0.0)


def load() -> list[float] | None:
    """Return the load averages over 1, 5 and 15 minutes."""
    try:
        return [round(value, 2) for value in os.getloadavg()]
    except (OSError, AttributeError):
        return None


def now() -> str:
    """Return date and time, to the minute, in UTC."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")


def installed(name: str) -> str | None:
    """Return the version of a package; None where it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def r_version() -> str | None:
    """Return the version of R; None where it is not installed."""
    program = shutil.which("Rscript")
    if program is None:
        return None
    done = subprocess.run(
        [program, "-e", "cat(R.version$major, R.version$minor, sep='.')"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or None


def blas() -> str:
    """Return the BLAS that NumPy uses."""
    import numpy as np
    from threadpoolctl import threadpool_info

    np.dot(np.ones((2, 2)), np.ones((2, 2)))
    found = [i for i in threadpool_info() if i["user_api"] == "blas"]
    return ", ".join(sorted({f"{i['internal_api']} {i['version']}" for i in found})) or "unknown"


def machine() -> dict[str, object]:
    """Return what does not change during a run."""
    from mcllo import __version__

    return {
        "cpu": cpu_model(),
        "vector unit": vector_unit(),
        "cores": cores(),
        "memory_gb": memory_gb(),
        "system": f"{platform.system()} {platform.machine()}",
        "blas": blas(),
        "blas_threads": 1,
        "versions": {
            "mcllo": __version__,
            "python": platform.python_version(),
            **{name: installed(name) for name in PACKAGES},
            "R": r_version(),
        },
    }
