"""Interleaved timing: every round runs each job once, so that a busy moment hits all alike."""

import platform
import time
from collections.abc import Callable, Mapping

import numpy as np

from benchmarks.facts import PACKAGES, cpu_model, installed

Job = Callable[[], object]


def interleaved(jobs: Mapping[str, Job], rounds: int = 7) -> dict[str, np.ndarray]:
    """Return the seconds of each job in each round, after one round that does not count."""
    seconds = {name: np.empty(rounds) for name in jobs}
    for k in range(-1, rounds):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            if k >= 0:
                seconds[name][k] = time.perf_counter() - start
    return seconds


def show(title: str, seconds: Mapping[str, np.ndarray], reference: str) -> None:
    """Print medians, spread, and how many times as long as `reference` each job took."""
    base = np.median(seconds[reference])
    print(f"\n{title}")
    for name, values in seconds.items():
        low, middle, high = np.quantile(values, [0.1, 0.5, 0.9])
        print(
            f"  {name:34s} {1e3 * middle:10.2f} ms  [{1e3 * low:.2f}, {1e3 * high:.2f}]"
            f"  {middle / base:7.2f} x"
        )


def machine() -> str:
    """Return what the numbers were measured on."""
    packages = [f"{name} {installed(name) or 'not installed'}" for name in PACKAGES]
    return f"{cpu_model()}, Python {platform.python_version()}, " + ", ".join(packages)
