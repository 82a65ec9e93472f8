"""Do no harm: labels are drawn from the predictions, so that there is nothing to repair.

The cost of a map q is known without drawing labels to judge on: the mean over rows of

    KL = sum_k p_k log(p_k / q_k) >= 0,

by how much the expected log loss rises. A data set is *changed* when any probability of the rows
judged on moves by more than 1e-9. With a positive KL, changed is the same as worse.
"""

import time
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from benchmarks.quality import sets
from benchmarks.quality.cases import LEAST, Case, Record, draw, planned, proper, rotated
from benchmarks.quality.methods import HARMLESS

CHANGED = 1e-9
REPETITIONS = 100
SIZES = (100, 300, 1000, 3000)
SETS = {
    "cifar-vgg16": "sharp network, 10 classes",
    "soccer": "soft forecasts, 3 classes",
    "diamonds-rf": "soft forest, 5 classes",
    "mnist-5000-lr": "logistic regression, 10 classes",
    "rodents": "multinomial regression, 7 classes",
    "20news": "nearly sure, 20 classes",
}


def drawn_labels(probs: np.ndarray, seed: Any) -> np.ndarray:
    """Return a label for each row, with the row's probabilities."""
    rng = np.random.default_rng(seed)
    return (rng.random((len(probs), 1)) > probs.cumsum(axis=1)[:, :-1]).sum(axis=1)


def divergence(probs: np.ndarray, changed: np.ndarray) -> float:
    """Return the mean KL divergence of rows `changed` from rows `probs`.

    Examples
    --------
    >>> p = np.array([[0.5, 0.5]])
    >>> round(divergence(p, np.array([[0.25, 0.75]])), 6), divergence(p, p)
    (0.143841, 0.0)
    """
    logs = np.log(probs) - np.log(np.maximum(changed, LEAST))
    return float((probs * logs).sum(axis=1).mean())


def attempt(fit: Any, learn: tuple[np.ndarray, np.ndarray], judge: np.ndarray) -> Record:
    """Return what one method does to rows that need no repair."""
    try:
        start = time.perf_counter()
        predict = fit(*learn)
        wall = time.perf_counter() - start
        found = proper(predict(judge), judge.shape)
        moved = float(np.abs(found - judge).max())
        return {"kl": divergence(judge, found), "moved": moved, "wall": wall}
    except Exception as error:  # a peer may fail in any way; the page counts it
        return {"failed": f"{type(error).__name__}: {error}"[:160]}


def run(case: Case, names: list[str]) -> Record:
    """Return the record of one repetition."""
    probs, _ = sets.load(case.name)
    learn, judge = draw(case, len(probs))
    seed = [zlib.crc32(case.name.encode()), case.seed, case.n]
    rows = (probs[learn], drawn_labels(probs[learn], seed))
    done = {name: attempt(HARMLESS[name].fit, rows, probs[judge]) for name in rotated(names, case)}
    return {"set": case.name, "n": case.n, "seed": case.seed, "methods": done}


def all_cases(
    totals: Mapping[str, int], sizes: Iterable[int] = SIZES, repetitions: int = REPETITIONS
) -> list[Case]:
    """Return the repetitions, all sets and sizes once before any is repeated."""
    chosen = {name: totals[name] for name in SETS if name in totals}
    return planned(chosen, sizes, range(repetitions))


def summary(records: Iterable[Record]) -> list[Record]:
    """Return for each set, size and method: repetitions, share changed, mean and largest KL."""
    cells: dict[tuple[str, int, str], list[Record]] = {}
    for record in records:
        for name, result in record["methods"].items():
            cells.setdefault((record["set"], record["n"], name), []).append(result)
    return [_cell(*key, results) for key, results in cells.items()]


def _cell(name: str, n: int, method: str, results: list[Record]) -> Record:
    good = [result for result in results if "failed" not in result]
    changed = np.array([result["moved"] > CHANGED for result in good], dtype=bool)
    kl = np.array([result["kl"] for result in good])
    kl = np.where(changed, np.maximum(kl, 0.0), 0.0)  # without rounding of what is 0
    cell: Record = {"set": name, "n": n, "method": method}
    cell |= {"repetitions": len(good), "failed": len(results) - len(good)}
    if not good:
        return cell
    return cell | {
        "changed": int(changed.sum()),
        "kl": float(kl.mean()),
        "kl_changed": float(kl[changed].mean()) if changed.any() else 0.0,
        "kl_max": float(kl.max()),
        "wall": float(np.median([result["wall"] for result in good])),
    }
