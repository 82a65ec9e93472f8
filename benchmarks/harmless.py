"""``python -m benchmarks harmless``: labels drawn from the predictions, nothing to repair.

The cost of a map q is known without drawing labels to judge on: the mean over rows of

    KL = sum_k p_k log(p_k / q_k) >= 0,

by how much the expected log loss rises. A data set is *changed* when any probability of the rows
judged on moves by more than 1e-9. With a positive KL, changed is the same as worse.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from benchmarks import quality, sets
from benchmarks.machine import Record
from benchmarks.methods import HARMLESS, METHODS
from benchmarks.quality import LEAST, Case
from benchmarks.rows import drawn_labels

CHANGED = 1e-9
REPETITIONS, SIZES = 100, (100, 300, 1000, 3000)
SETS = {
    "cifar-vgg16": "sharp network, 10 classes",
    "soccer": "soft forecasts, 3 classes",
    "diamonds-rf": "soft forest, 5 classes",
    "mnist-5000-lr": "logistic regression, 10 classes",
    "rodents": "multinomial regression, 7 classes",
    "20news": "nearly sure, 20 classes",
}
CASES = sets.CACHE / "harmless.jsonl"


def cost(changed: np.ndarray, probs: np.ndarray) -> Record:
    """Return the mean KL divergence of rows `changed` from rows `probs`, and the largest move.

    >>> p, q = np.array([[0.8, 0.2], [0.3, 0.7]]), np.array([[0.5, 0.5], [0.3, 0.7]])
    >>> found = cost(q, p)  # (0.8 log 1.6 + 0.2 log 0.4) / 2
    >>> round(found["kl"], 6), round(found["moved"], 6), cost(p, p)["kl"]
    (0.096372, 0.3, 0.0)
    """
    logs = np.log(probs) - np.log(np.maximum(changed, LEAST))
    kl, moved = (probs * logs).sum(axis=1).mean(), np.abs(changed - probs).max()
    return {"kl": float(kl), "moved": float(moved)}


def run(case: Case, names: Sequence[str]) -> Record:
    """Return the record of one repetition."""
    probs, _ = sets.load(case.name)
    learn, judge = quality.draw(case, len(probs))
    rng = np.random.default_rng([zlib.crc32(case.name.encode()), case.seed, case.n])
    rows, score = (probs[learn], drawn_labels(probs[learn], rng)), partial(cost, probs=probs[judge])
    done = {
        name: quality.attempt(METHODS[name].fit, rows, probs[judge], score)
        for name in quality.rotated(names, case)
    }
    return {"set": case.name, "n": case.n, "seed": case.seed, "methods": done}


def summary(records: Iterable[Record]) -> list[Record]:
    """Return for each set, size and method: repetitions, share changed, mean and largest KL.

    >>> costs = ({"kl": 0.0, "moved": 0.0, "wall": 1}, {"kl": 0.002, "moved": 0.1, "wall": 1})
    >>> done = [{"set": "a", "n": 9, "methods": {"auto": result}} for result in costs]
    >>> (found,) = summary([*done, {"set": "a", "n": 9, "methods": {"auto": {"failed": "no"}}}])
    >>> [found[key] for key in ("repetitions", "failed", "changed", "kl", "kl_max")]
    [2, 1, 1, 0.001, 0.002]
    """
    found: dict[tuple[str, int, str], list[Record]] = {}
    for record in records:
        for name, result in record["methods"].items():
            found.setdefault((record["set"], record["n"], name), []).append(result)
    rows = []
    for (name, n, method), results in found.items():
        good = [result for result in results if "failed" not in result]
        row: Record = {"set": name, "n": n, "method": method, "repetitions": len(good)}
        row["failed"] = len(results) - len(good)
        if good:
            changed = np.array([result["moved"] > CHANGED for result in good])
            kl = np.array([result["kl"] for result in good])
            kl = np.where(changed, np.maximum(kl, 0.0), 0.0)  # without rounding of what is 0
            row |= {"changed": int(changed.sum()), "kl": float(kl.mean())}
            row["kl_changed"] = float(kl[changed].mean()) if changed.any() else 0.0
            row["kl_max"] = float(kl.max())
            row["wall"] = float(np.median([result["wall"] for result in good]))
        rows.append(row)
    return rows


def main(arguments: Sequence[str]) -> None:
    """Run the repetitions that have not been run."""
    chosen = quality.options(arguments, REPETITIONS, SIZES)
    chosen.sets = [name for name in SETS if not chosen.sets or name in chosen.sets]
    quality.carry_out(chosen, CASES, run, HARMLESS)
