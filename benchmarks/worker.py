"""One method in a process of its own: ``python -m benchmarks.worker METHOD``, told by lines.

============  =============================================================================
load FOLDER   read the table (`rows`) and import what the method needs
run           do it once, or for `TURN` seconds where it is short; the answer holds the median of
              its seconds, measured here
score FILE    write the log loss of each held-out row (float64) under the last fit
============  =============================================================================

Each line is answered by one line of JSON. `race` speaks to these, and to ``optim.R``, which speaks
the same way.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from benchmarks import rows
from benchmarks.machine import Record, median
from benchmarks.methods import APPLY, METHODS, warm_up

TURN, MOST_CALLS = 0.2, 25
"""Seconds and calls of a turn: a call of milliseconds, made once after the other processes had
theirs, would time how caches are filled."""
LEAST = 1e-15
"""Smallest probability whose logarithm is taken."""
ENOUGH = 20_000
"""Rows that a map which is to be applied is fitted to."""


def peak_mb() -> float | None:
    """Return the most memory this process had since the table was read; None where not known."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1024.0 for line in lines if "VmHWM" in line), None)


def row_losses(probs: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return ``-log p`` of the true class of each row, rows divided by their sum.

    >>> row_losses(np.array([[1.0, 1.0], [1.0, 0.0]]), np.array([0, 1])).round(3).tolist()
    [0.693, 34.539]
    """
    probs = np.asarray(probs, dtype=np.float64)
    own = probs[np.arange(len(y)), y] / probs.sum(axis=1)
    return -np.log(np.maximum(own, LEAST))


class Worker:
    """Answers lines; see the module."""

    def __init__(self, name: str) -> None:
        self.name = name

    def load(self, folder: str) -> Record:
        missing = warm_up([self.name])
        if missing:
            return {"missing": missing[self.name]}
        self.rows = rows.read(Path(folder))
        self.fit = METHODS[self.name].fit
        if self.name in APPLY:
            predict = self.fit(self.rows.probs[:ENOUGH], self.rows.y[:ENOUGH])
            self.fit = lambda probs, _: predict(probs)
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # a new high-water mark of memory
        return {"ready": True}

    def run(self, _: str) -> Record:
        times: list[float] = []
        float(self.rows.probs.sum())  # a system may have put aside what lay idle
        while not times or (sum(times) < TURN and len(times) < MOST_CALLS):
            start = time.perf_counter()
            self.last = self.fit(self.rows.probs, self.rows.y)
            times.append(time.perf_counter() - start)
        found = getattr(self.last, "found", {})
        return {"seconds": median(times), "peak_mb": peak_mb(), **found}

    def score(self, path: str) -> Record:
        losses = row_losses(self.last(self.rows.held_probs), self.rows.held_y)
        losses.tofile(path)
        return {"log_loss": float(losses.mean())}


def answer(worker: Worker, line: str) -> Record:
    """Return the answer to one line; what goes wrong is an answer too."""
    verb, _, rest = line.strip().partition(" ")
    try:
        return getattr(worker, verb)(rest)
    except Exception as error:  # a peer may fail in any way; the table names it
        return {"error": f"{type(error).__name__}: {error}"[:300]}


def main(name: str) -> None:
    """Answer until standard input ends; whatever packages print goes to standard error."""
    warnings.simplefilter("ignore")
    reply = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    worker = Worker(name)
    for line in sys.stdin:
        print(json.dumps(answer(worker, line)), file=reply, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
