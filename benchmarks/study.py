"""The paper's power study: `mcllo.simulate.power` against a serial loop around scipy's BFGS.

Each repetition draws a table, fits, tests, recalibrates and measures ECE twice. The loop is what a
careful user writes in NumPy, with the analytic gradient. A part of the grid is run and the whole
(30 settings, 1000 repetitions each) extrapolated by the cost of each n.
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
    rng, begin = np.random.default_rng(n), time.perf_counter()
    for _ in range(reps):
        bfgs(*table(rng, n, 1.2))
    return (time.perf_counter() - begin) / reps


def study_seconds(n: int, reps: int, n_jobs: int, **options: object) -> float:
    """Return seconds a repetition of `mcllo.simulate.power`."""
    begin = time.perf_counter()
    simulate.power(n_samples=n, delta_1=1.2, reps=reps, seed=n, n_jobs=n_jobs, **options)
    return (time.perf_counter() - begin) / reps


def main(rounds: int = 3, rows: int = 60_000) -> None:
    """Print seconds for the whole grid, from interleaved runs of about `rows` rows each."""
    print(f"\n{machine()}\nthe paper's study, milliseconds a repetition (median of {rounds})")
    whole = np.zeros(2)
    study_seconds(400, 50, 1)
    for n in SIZES:
        times = [
            (study_seconds(n, rows // n, 1), loop_seconds(n, rows // n // 5)) for _ in range(rounds)
        ]
        ours, loop = np.median(times, axis=0)
        whole += np.array([ours, loop]) * len(SHIFTS) * REPS
        milli = f"mcllo {1e3 * ours:7.2f}   BFGS {1e3 * loop:7.2f}"
        print(f"  n = {n:5d}   {milli}   {loop / ours:5.1f} x")
    print(
        f"  all 30,000, one process: mcllo {whole[0]:.0f} s, BFGS {whole[1]:.0f} s, "
        f"{whole[1] / whole[0]:.1f} x"
    )
    workers(whole)


def workers(whole: np.ndarray) -> None:
    """Print the gain of one process for each processor, the time to start them left out."""
    count = os.cpu_count() or 1
    both = {
        jobs: [study_seconds(1000, reps, jobs) * reps for reps in (16, 2416)] for jobs in (1, count)
    }
    gain = np.subtract(*both[1]) / np.subtract(*both[count])
    print(
        f"  {count} processes: {gain:.2f} times as fast as one, so all 30,000 in "
        f"{whole[0] / gain:.0f} s, {whole[1] * gain / whole[0]:.1f} x"
    )


if __name__ == "__main__":
    main()
