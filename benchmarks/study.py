"""The paper's power study: `mcllo.simulate.power` against a serial loop around scipy's BFGS.

Each repetition draws a table, fits, tests, recalibrates and measures ECE twice. The loop is what a
careful user writes in NumPy, with the analytic gradient. A part of the grid is run and the whole
(30 settings, 1000 repetitions each) extrapolated by the cost of each n. One process is timed by its
processor time, which other work on the machine hardly changes; the gain of several by the clock.
"""

import time
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import chdtrc

from benchmarks.facts import cores
from benchmarks.plain import PlainMCLLO
from benchmarks.results import median
from benchmarks.timing import machine
from mcllo import simulate

SIZES, SHIFTS, REPS = (400, 450, 500, 600, 1000, 5000), (1.0, 1.1, 1.2, 1.3, 1.4), 1000


def table(rng: np.random.Generator, n: int, delta_1: float) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of the default design, and labels of the map with that delta."""
    x = np.maximum(rng.dirichlet(np.append(3.0, np.full(9, 0.3)), n), 1e-6)
    x /= x.sum(axis=1, keepdims=True)
    g = x * np.append(delta_1, np.ones(9))
    g /= g.sum(axis=1, keepdims=True)
    return x, (rng.random((n, 1)) > g.cumsum(axis=1)[:, :-1]).sum(axis=1)


def ece(g: np.ndarray, y: np.ndarray) -> float:
    """Return the top-label expected calibration error with ceil(sqrt n) bins."""
    n_bins = int(np.ceil(np.sqrt(len(y))))
    top = g.argmax(axis=1)
    confidence = g[np.arange(len(y)), top]
    index = np.searchsorted(np.arange(1, n_bins) / n_bins, confidence, side="left")
    return float(np.abs(np.bincount(index, confidence - (top == y))).sum() / len(y))


def bfgs(x: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """Return p-value, ECE and ECE after recalibration."""
    model = PlainMCLLO(x, y)
    found = minimize(model.value, model.start, jac=True, method="BFGS")
    statistic = 2.0 * (model.value(model.start)[0] - found.fun)
    g = model.softmax(found.x)[0]
    repaired = np.column_stack([g, 1.0 - g.sum(axis=1)])
    return float(chdtrc(2 * model.k, statistic)), ece(x, y), ece(repaired, y)


def loop_seconds(n: int, reps: int) -> float:
    """Return seconds a repetition of the loop."""
    rng, begin = np.random.default_rng(n), time.process_time()
    for _ in range(reps):
        bfgs(*table(rng, n, 1.2))
    return (time.process_time() - begin) / reps


def study_seconds(n: int, reps: int) -> float:
    """Return seconds a repetition of `mcllo.simulate.power` in one process."""
    begin = time.process_time()
    simulate.power(n_samples=n, delta_1=1.2, reps=reps, seed=n)
    return (time.process_time() - begin) / reps


def clock_seconds(reps: int, n_jobs: int) -> float:
    """Return how long a study takes by the clock, the start of its processes included."""
    begin = time.perf_counter()
    simulate.power(n_samples=1000, delta_1=1.2, reps=reps, seed=0, n_jobs=n_jobs)
    return time.perf_counter() - begin


def measure(rounds: int = 3, rows: int = 40_000, sizes: tuple[int, ...] = SIZES) -> dict[str, Any]:
    """Return seconds a repetition, interleaved, from about `rows` rows of each n."""
    study_seconds(400, 50)
    cells: dict[str, dict[str, list[float]]] = {}
    for n in sizes:
        cell = cells[str(n)] = {"mcllo": [], "bfgs": []}
        reps = max(2, rows // n)
        for _ in range(rounds):
            cell["mcllo"].append(study_seconds(n, reps))
            cell["bfgs"].append(loop_seconds(n, max(2, reps // 5)))
    few, many = max(64, rows // 40), max(256, rows // 10)
    count = cores()
    clock = [clock_seconds(many, jobs) - clock_seconds(few, jobs) for jobs in (1, count)]
    return {"cells": cells, "processes": count, "gain": max(0.1, clock[0] / max(clock[1], 1e-9))}


def whole(found: dict[str, Any]) -> tuple[float, float]:
    """Return the seconds of all 30,000 repetitions in one process: ours and the loop's.

    Settings of an n that was not run are taken to cost, a row, what the nearest n that was run did.
    """
    cells = {int(n): cell for n, cell in found["cells"].items()}
    totals = []
    for name in ("mcllo", "bfgs"):
        total = 0.0
        for n in SIZES:
            near = min(cells, key=lambda other: abs(other - n))
            total += median(cells[near][name]) * n / near * len(SHIFTS) * REPS
        totals.append(total)
    return totals[0], totals[1]


def main() -> None:
    """Print seconds a repetition and for the whole grid."""
    print(f"\n{machine()}\nthe paper's study, milliseconds a repetition (median of 3)")
    found = measure()
    for n, cell in found["cells"].items():
        ours, loop = median(cell["mcllo"]), median(cell["bfgs"])
        milli = f"mcllo {1e3 * ours:7.2f}   BFGS {1e3 * loop:7.2f}"
        print(f"  n = {n:>5s}   {milli}   {loop / ours:5.1f} x")
    ours, loop = whole(found)
    gain, count = found["gain"], found["processes"]
    report("one process", ours, loop)
    report(f"{count} processes ({gain:.2f} times as fast)", ours / gain, loop)


def report(title: str, ours: float, loop: float) -> None:
    print(f"  all 30,000, {title}: {ours:.0f} s, BFGS {loop:.0f} s, {loop / ours:.1f} x")


if __name__ == "__main__":
    main()
