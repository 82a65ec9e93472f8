"""A case is a prediction set, a number of rows to learn from, and a seed.

The rows of a set are put in an order that depends on its name and the seed alone. The first n are
to learn from; the last 4000, or what is left of them, are to judge on. Every method sees the same
rows, and larger n contain the rows of smaller ones. Cases run seed by seed, so that a run that is
stopped early has treated all sets and sizes alike.

A method that fails is recorded with the reason and takes no part in the pairs of that case.
"""

import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.quality import sets
from benchmarks.quality.methods import METHODS, Method

SIZES = (100, 300, 1000, 3000, 10_000)
SEEDS = 20
MOST_JUDGED = 4000
LEAST_JUDGED = 75
BINS = 15
LEAST = 1e-15
"""Smallest probability whose logarithm is taken: a true class of 0 costs 34.5."""

Record = dict[str, Any]


@dataclass(frozen=True, order=True)
class Case:
    """Ordered by seed first."""

    seed: int
    name: str
    n: int

    @property
    def key(self) -> tuple[str, int, int]:
        """What results are stored by."""
        return self.name, self.n, self.seed


def allowed(n: int, total: int) -> bool:
    """Whether enough rows are left to judge on: 75 at least, and a quarter of n."""
    return total - n >= max(LEAST_JUDGED, n / 4)


def planned(
    totals: Mapping[str, int], sizes: Iterable[int] = SIZES, seeds: Iterable[int] = range(SEEDS)
) -> list[Case]:
    """Return all cases, seed by seed.

    Examples
    --------
    >>> [case.key for case in planned({"a": 400}, (100, 300, 1000), (0, 1))]
    [('a', 100, 0), ('a', 300, 0), ('a', 100, 1), ('a', 300, 1)]
    """
    sizes = list(sizes)
    return [
        Case(seed, name, n)
        for seed in seeds
        for name, total in totals.items()
        for n in sizes
        if allowed(n, total)
    ]


def draw(case: Case, total: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to learn from and the rows to judge on."""
    order = np.random.default_rng([zlib.crc32(case.name.encode()), case.seed]).permutation(total)
    return order[: case.n], order[max(case.n, total - MOST_JUDGED) :]


def rotated(names: Sequence[str], case: Case) -> list[str]:
    """Return the methods in an order that starts elsewhere in each case: times are paired.

    Examples
    --------
    >>> rotated(["a", "b", "c"], Case(1, "", 100))
    ['b', 'c', 'a']
    """
    start = (case.seed + case.n + zlib.crc32(case.name.encode()) - 100) % max(1, len(names))
    return [*names[start:], *names[:start]]


def scores(probs: np.ndarray, y: np.ndarray) -> Record:
    """Return log loss, Brier score, ECE and classwise ECE, and whether a true class had 0."""
    from mcllo import metrics

    known = {"classes": range(probs.shape[1])}
    own = probs[np.arange(len(y)), y]
    return {
        "ll": float(-np.log(np.maximum(own, LEAST)).mean()),
        "brier": metrics.brier_score(y, probs, **known),
        "ece": metrics.expected_calibration_error(y, probs, n_bins=BINS, **known),
        "cw": metrics.classwise_calibration_error(y, probs, n_bins=BINS, **known),
        "zero": int((own <= 0.0).any()),
    }


def proper(probs: Any, shape: tuple[int, int]) -> np.ndarray:
    """Return probabilities divided by the sum of their row, or say what is wrong with them."""
    found = np.asarray(probs, dtype=np.float64)
    if found.shape != shape:
        raise ValueError(f"returned the shape {found.shape} for {shape}")
    sums = found.sum(axis=1, keepdims=True)
    if not np.isfinite(found).all() or (found < 0.0).any() or (sums <= 0.0).any():
        raise ValueError("returned rows that are no probabilities")
    return found / sums


def attempt(
    method: Method, learn: tuple[np.ndarray, np.ndarray], judge: tuple[np.ndarray, np.ndarray]
) -> Record:
    """Fit, predict and score one method, or record why not."""
    try:
        wall, cpu = time.perf_counter(), time.process_time()
        predict = method.fit(*learn)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        rows, y = judge
        return {**scores(proper(predict(rows), rows.shape), y), "wall": wall, "cpu": cpu}
    except Exception as error:  # a peer may fail in any way; the page counts and names it
        return {"failed": f"{type(error).__name__}: {error}"[:160]}


def run(case: Case, names: Sequence[str], methods: Mapping[str, Method] = METHODS) -> Record:
    """Return the record of one case: each method's scores and times."""
    probs, y = sets.load(case.name)
    learn, judge = draw(case, len(y))
    rows = (probs[learn], y[learn]), (probs[judge], y[judge])
    done = {name: attempt(methods[name], *rows) for name in rotated(names, case)}
    absent = probs.shape[1] - len(np.unique(y[learn]))
    facts = {"set": case.name, "n": case.n, "seed": case.seed, "judged": len(judge)}
    return {**facts, "absent": absent, "methods": done}
