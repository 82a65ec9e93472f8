"""One method in a process of its own: ``python -m benchmarks.worker METHOD``, told by lines.

============  =============================================================================
load FOLDER   read the table (`tables`) and prepare the method
run           do it once, or for `TURN` seconds where it is short; the answer holds the median of
              its seconds, measured here
score FILE    write the log loss of each held-out row (float64) under the last fit
============  =============================================================================

Each line is answered by one line of JSON. `crew` speaks to these, and to ``optim.R``, which speaks
the same way.
"""

import contextlib
import json
import os
import sys
import time
import warnings
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks import tables
from benchmarks.methods import ALL, Fitted

TURN, MOST_CALLS = 0.2, 25
"""Seconds and calls of a turn: a call of milliseconds, made once after the other processes had
theirs, would time how caches are filled."""
LEAST = 1e-15
"""Smallest probability whose logarithm is taken."""


def reset_peak() -> None:
    """Begin a new high-water mark of memory, where the system can."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_mb() -> float | None:
    """Return the most memory this process had since `reset_peak`; None where it is not known."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1024.0 for line in lines if "VmHWM" in line), None)


def row_losses(probs: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return ``-log p`` of the true class of each row, rows divided by their sum."""
    probs = np.asarray(probs, dtype=np.float64)
    own = probs[np.arange(len(y)), y] / probs.sum(axis=1)
    return -np.log(np.maximum(own, LEAST))


class Worker:
    """Answers lines; see the module."""

    def __init__(self, name: str) -> None:
        self.method = ALL[name]
        self.last = Fitted()

    def load(self, folder: str) -> dict[str, object]:
        self.rows = tables.read(Path(folder))
        self.job = self.method.prepare(self.rows.probs, self.rows.y)
        reset_peak()
        return {"ready": True}

    def run(self, _: str) -> dict[str, object]:
        times: list[float] = []
        float(self.rows.probs.sum())  # a system may have put aside what lay idle
        while not times or (sum(times) < TURN and len(times) < MOST_CALLS):
            start = time.perf_counter()
            self.last = self.job()
            times.append(time.perf_counter() - start)
        return {"seconds": median(times), "peak_mb": peak_mb(), **self.last.found}

    def score(self, path: str) -> dict[str, object]:
        assert self.last.predict is not None
        losses = row_losses(self.last.predict(self.rows.held_probs), self.rows.held_y)
        losses.tofile(path)
        return {"log_loss": float(losses.mean())}


def answer(worker: Worker, line: str) -> dict[str, object]:
    """Return the answer to one line; what goes wrong is an answer too."""
    verb, _, rest = line.strip().partition(" ")
    try:
        return getattr(worker, verb)(rest)
    except ImportError as error:
        return {"missing": str(error)}
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
