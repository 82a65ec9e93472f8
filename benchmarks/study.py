"""The paper's power study: `mcllo.simulate.power` against a serial loop around scipy's BFGS.

Each repetition draws a table, fits, tests, recalibrates and measures ECE twice. The loop is what a
careful user writes in NumPy, with the analytic gradient. A part of the grid is run and the whole
(30 settings, 1000 repetitions each) extrapolated by the cost of each n. One process is timed by its
processor time, which other work on the machine hardly changes; the gain of several by the clock.
"""

import os
import time

import numpy as np
from scipy.optimize import minimize
from scipy.special import chdtrc

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
    c = x.shape[1]
    padded = np.log(x / x[:, -1:])
    odds, hot = padded[:, :-1], np.eye(c)[y][:, :-1]
    s = np.concatenate([hot.sum(axis=0), (hot * odds).sum(axis=0)])

    def softmax(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        eta = np.append(theta[: c - 1], 0.0) + np.append(theta[c - 1 :], 0.0) * padded
        top = eta.max(axis=1, keepdims=True)
        g = np.exp(eta - top)
        total = g.sum(axis=1, keepdims=True)
        return g / total, top + np.log(total)

    def value(theta: np.ndarray) -> tuple[float, np.ndarray]:
        g, log_total = softmax(theta)
        inner = g[:, :-1]
        gradient = np.concatenate([inner.sum(axis=0), np.einsum("ij,ij->j", inner, odds)]) - s
        return float(log_total.sum() - theta @ s), gradient

    start = np.concatenate([np.zeros(c - 1), np.ones(c - 1)])
    found = minimize(value, start, jac=True, method="BFGS")
    statistic = 2.0 * (value(start)[0] - found.fun)
    return float(chdtrc(2 * (c - 1), statistic)), ece(x, y), ece(softmax(found.x)[0], y)


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


def main(rounds: int = 3, rows: int = 40_000) -> None:
    """Print seconds for the whole grid, from interleaved runs of about `rows` rows each."""
    print(f"\n{machine()}\nthe paper's study, milliseconds a repetition (median of {rounds})")
    study_seconds(400, 50)
    whole = np.zeros(2)
    for n in SIZES:
        reps = rows // n
        times = [
            (study_seconds(n, reps), loop_seconds(n, max(2, reps // 5))) for _ in range(rounds)
        ]
        ours, loop = np.median(times, axis=0)
        whole += np.array([ours, loop]) * len(SHIFTS) * REPS
        milli = f"mcllo {1e3 * ours:7.2f}   BFGS {1e3 * loop:7.2f}"
        print(f"  n = {n:5d}   {milli}   {loop / ours:5.1f} x")
    report("one process", *whole)
    count = os.cpu_count() or 1
    one, many = (clock_seconds(4032, jobs) - clock_seconds(1008, jobs) for jobs in (1, count))
    report(f"{count} processes ({one / many:.2f} times as fast)", whole[0] * many / one, whole[1])


def report(title: str, ours: float, loop: float) -> None:
    print(f"  all 30,000, {title}: {ours:.0f} s, BFGS {loop:.0f} s, {loop / ours:.1f} x")


if __name__ == "__main__":
    main()
