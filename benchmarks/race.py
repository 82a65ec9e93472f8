"""Methods in processes of their own, timed in turn: interleaved rounds with a time limit.

Each method has one process (``python -m benchmarks.race METHOD``, or ``optim.R``), which measures
its own calls. In a round every method has a turn: one call, or the median of several where calls
are short, so that a busy moment hits all alike. The first turn warms up and does not count, unless
it took longer than `LONG`. A method that has used up its budget sits out later rounds; one that
exceeds the limit is ended, and the table says so. BLAS and OpenMP have one thread everywhere; what
else of ``mcllo``'s own differs between processes (threads over the rows, kernel) is in
``methods.csv``.

A process is told by lines, and answers each by one line of JSON:

============  =============================================================================
load FOLDER   read the table and import what the method needs
run           do it once, or for `TURN` seconds where it is short; the answer holds the median of
              its seconds, measured there
============  =============================================================================

A table is a folder, so that Python and R time the same numbers: ``shape.txt`` (rows, classes),
``probs.bin`` (float64, row after row), ``y.bin`` (int32, from 0).
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from benchmarks.machine import HERE, ONE_THREAD, ROOT, Record, lines, median
from benchmarks.methods import APPLY, FORMS, METHODS, PASSES, warm_up

LONG = 5.0
"""Seconds from which a first call counts: what it warms up is little beside them."""
START_LIMIT = 300.0
"""Seconds for a process to start, import its package and read the table."""
TURN, MOST_CALLS, SHORT = 0.2, 100, 1.0
"""Seconds and calls of a turn: a call of milliseconds, made once after the other processes had
theirs, would time how caches are filled. Where calls took less than `SHORT` seconds in the last
turn, one is made ahead and not counted: it brings back pages that a system put aside meanwhile."""
ENOUGH = 20_000
"""Rows that a map which is to be applied is fitted to."""
FAILURES = {"over": ("over", "limit"), "missing": ("missing", "reason"),
            "error": ("failed", "reason")}  # fmt: skip
"""What an answer may hold instead of seconds: the status of the record, and where it is kept."""
KINDS = {"probs": np.float64, "y": np.int32}
WITHOUT_C = "numpy"
"""What stands behind ``@`` in a method's name: this, or a folder whose ``mcllo`` is run instead."""


class Rows(NamedTuple):
    """Probabilities with labels.

    >>> with TemporaryDirectory() as folder:
    ...     Rows(np.array([[0.5, 0.25, 0.25]]), np.array([2])).write(folder)
    ...     found = Rows.read(folder)
    >>> found.probs.tolist(), found.y.tolist()
    ([[0.5, 0.25, 0.25]], [2])
    """

    probs: np.ndarray
    y: np.ndarray

    def write(self, folder: str | Path) -> None:
        Path(folder, "shape.txt").write_text("{} {}\n".format(*self.probs.shape))
        for name, values in self._asdict().items():
            np.ascontiguousarray(values, dtype=KINDS[name]).tofile(
                Path(folder, f"{name}.bin")
            )

    @classmethod
    def read(cls, folder: str | Path) -> Rows:
        c = int(Path(folder, "shape.txt").read_text().split()[1])
        found = [
            np.fromfile(Path(folder, f"{name}.bin"), kind)
            for name, kind in KINDS.items()
        ]
        return cls(
            *(v.reshape(-1, c) if v.dtype == float else v.astype(int) for v in found)
        )


class Race(contextlib.AbstractContextManager["Race"]):
    """Processes of methods, started when first needed and kept for later tables, and a folder."""

    def __init__(self) -> None:
        self.processes: dict[str, tuple[subprocess.Popen[str], queue.Queue[str]]] = {}
        self.folder = TemporaryDirectory(prefix="mcllo-bench-")

    def __exit__(self, *_: object) -> None:
        for name in list(self.processes):
            self._stop(name)
        self.folder.cleanup()

    def _start(self, name: str) -> None:
        """Start a process and a thread that puts its answers, and its end, into a queue."""
        method, _, tree = name.partition("@")
        command = [sys.executable, "-m", "benchmarks.race", method]
        if name.startswith("r-"):
            command = ["Rscript", str(HERE / "optim.R"), name.removeprefix("r-")]
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        pipes |= {"stderr": subprocess.DEVNULL, "bufsize": 1}
        plain = tree == WITHOUT_C or "numpy" in METHODS[method].process
        other = (
            {"MCLLO_KERNEL": "numpy"} if plain else {"PYTHONPATH": tree} if tree else {}
        )
        child = subprocess.Popen(
            command, cwd=ROOT, env=os.environ | ONE_THREAD | other, **pipes
        )
        answers: queue.Queue[str] = queue.Queue()

        def listen() -> None:
            for line in child.stdout:
                answers.put(line)
            answers.put("")

        threading.Thread(target=listen, daemon=True).start()
        self.processes[name] = child, answers

    def _stop(self, name: str) -> None:
        child, _ = self.processes.pop(name)
        with contextlib.suppress(BrokenPipeError), child:
            child.kill()

    def ask(self, name: str, line: str, limit: float) -> Record:
        """Return a method's answer to a line; after a failure its process is ended."""
        try:
            if name not in self.processes:
                self._start(name)
            child, answers = self.processes[name]
            child.stdin.write(line + "\n")
            text = answers.get(timeout=limit).strip()
            reply = json.loads(text) if text else {"error": "the process ended"}
        except FileNotFoundError as error:
            return {"missing": str(error.filename)}
        except queue.Empty:
            reply = {"over": limit}
        except BrokenPipeError:
            reply = {"error": "the process ended"}
        if FAILURES.keys() & reply.keys():
            self._stop(name)
        return reply

    def run(
        self,
        table: Rows,
        names: Iterable[str],
        rounds: int,
        budget: float,
        limit: float,
    ) -> dict[str, Record]:
        """Return a record for each method on one table: its seconds, or why there are none."""
        table.write(self.folder.name)
        records: dict[str, Record] = {
            name: {"status": "ok", "seconds": []} for name in names
        }
        for k in range(-1, rounds):
            for name, record in records.items():
                timed = record["seconds"]
                if (
                    record["status"] != "ok"
                    or len(timed) > k >= 0
                    or sum(timed) >= budget
                ):
                    continue
                reply = {"ready": True}
                if k < 0:
                    reply = self.ask(name, f"load {self.folder.name}", START_LIMIT)
                if "ready" in reply:
                    reply = self.ask(name, "run", limit)
                seconds = reply.pop("seconds", None)
                if seconds is not None and (k >= 0 or seconds > LONG):
                    timed.append(seconds)
                for word, (status, where) in FAILURES.items():
                    if word in reply:
                        record |= {"status": status, where: reply.pop(word)}
                record |= reply
        return records


@dataclass
class Worker:
    """One method in a process of its own; see the module."""

    name: str
    short: bool = False

    def load(self, folder: str) -> Record:
        from mcllo._utils.parallel import limit_threads

        missing = warm_up([self.name])
        if missing:
            return {"missing": missing[self.name]}
        self.rows, self.short = Rows.read(folder), False
        self.fit = METHODS[self.name].fit
        if self.name in APPLY | PASSES | FORMS:
            few = None if self.name in PASSES else ENOUGH
            predict = self.fit(self.rows.probs[:few], self.rows.y[:few])
            self.fit = lambda probs, _: predict(probs)
        limit_threads(None if "threads" in METHODS[self.name].process else 1)
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text(
                "5"
            )  # a new high-water mark of memory
        return {"ready": True}

    def run(self, _: str) -> Record:
        times: list[float] = []
        float(self.rows.probs.sum())  # a system may have put aside what lay idle
        if self.short:  # what the call needs beside its rows, too
            self.fit(self.rows.probs, self.rows.y)
        while not times or (sum(times) < TURN and len(times) < MOST_CALLS):
            start = time.perf_counter()
            self.last = self.fit(self.rows.probs, self.rows.y)
            times.append(time.perf_counter() - start)
        self.short = median(times) < SHORT
        peak = [
            int(line.split()[0]) / 1024.0
            for line in lines("/proc/self/status", "VmHWM")
        ]
        found = {"seconds": median(times), "peak_mb": next(iter(peak), None)}
        return found | getattr(self.last, "found", {})

    def answer(self, line: str) -> Record:
        """Return the answer to one line; what goes wrong is an answer too."""
        verb, _, rest = line.strip().partition(" ")
        try:
            return getattr(self, verb)(rest)
        except Exception as error:  # a peer may fail in any way; the table names it
            return {"error": f"{type(error).__name__}: {error}"[:300]}


def main(name: str) -> None:
    """Answer until standard input ends; whatever packages print goes to standard error."""
    warnings.simplefilter("ignore")
    reply = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    worker = Worker(name)
    for line in sys.stdin:
        print(json.dumps(worker.answer(line)), file=reply, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
