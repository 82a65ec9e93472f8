"""Methods in processes of their own, timed in turn: interleaved rounds with a time limit.

Each method has one process (`worker`, or ``optim.R``), which measures its own calls. In a round
every method has a turn: one call, or the median of several where calls are short, so that a busy
moment hits all alike. The first turn warms up and does not count,
unless it took longer than `LONG`. A method that has used up its budget sits out later rounds; one
that exceeds the limit is ended, and the table says so. BLAS and OpenMP have one thread everywhere.
"""

import json
import os
import queue
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.methods import ALL, FITS, Method

R_METHODS = {
    "r-analytic": "MCLLO by R optim, analytic gradient",
    "r-numeric": "MCLLO by R optim, as in the paper",
}
TITLES = {name: method.title for name, method in ALL.items()} | R_METHODS
SAME_MODEL = {name for name, method in FITS.items() if method.model == "mcllo"} | set(R_METHODS)

LONG = 5.0
"""Seconds from which a first call counts: what it warms up is little beside them."""
START_LIMIT = 300.0
"""Seconds for a process to start, import its package and read the table."""
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
ONE_THREAD = dict.fromkeys(_THREADS, "1")
ROOT = Path(__file__).resolve().parents[1]

Record = dict[str, Any]


class OverLimitError(Exception):
    """A call took longer than it may."""


class Process:
    """One method's process: a line out, an answer back."""

    def __init__(self, name: str) -> None:
        command = [sys.executable, "-m", "benchmarks.worker", name]
        if name in R_METHODS:
            program = shutil.which("Rscript")
            if program is None:
                raise FileNotFoundError("Rscript")
            command = [program, str(ROOT / "benchmarks" / "optim.R"), name.removeprefix("r-")]
        self.child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            bufsize=1,
            cwd=ROOT,
            env=os.environ | ONE_THREAD,
        )
        self.answers: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.child.stdout is not None
        for line in self.child.stdout:
            self.answers.put(line)
        self.answers.put("")

    def ask(self, line: str, limit: float) -> Record:
        """Return the answer to a line; raise OverLimitError when it takes longer than `limit`."""
        assert self.child.stdin is not None
        try:
            self.child.stdin.write(line + "\n")
            text = self.answers.get(timeout=limit)
        except queue.Empty:
            raise OverLimitError from None
        except BrokenPipeError:
            text = ""
        return json.loads(text) if text.strip() else {"error": "the process ended"}

    def stop(self) -> None:
        """End the process."""
        self.child.kill()
        self.child.wait()


class Crew:
    """Processes of the named methods, started when first needed and kept for later tables."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = list(names)
        self.processes: dict[str, Process] = {}

    def __enter__(self) -> "Crew":
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self.processes):
            self._stop(name)

    def _stop(self, name: str) -> None:
        self.processes.pop(name).stop()

    def ask(self, name: str, line: str, limit: float) -> Record:
        """Return a method's answer; after a failure its process is ended."""
        try:
            if name not in self.processes:
                self.processes[name] = Process(name)
            reply = self.processes[name].ask(line, limit)
        except FileNotFoundError as error:
            return {"missing": str(error)}
        except OverLimitError:
            reply = {"over": limit}
        if {"over", "error", "missing"} & set(reply):
            self._stop(name)
        return reply

    def measure(
        self, folder: Path, names: Iterable[str], *, rounds: int, budget: float, limit: float
    ) -> dict[str, Record]:
        """Return a record for each method on one table: its seconds, or why there are none."""
        records = {name: self._first(name, folder, limit) for name in names}
        for k in range(rounds):
            for name, record in records.items():
                timed = record["seconds"]
                if record["status"] == "ok" and len(timed) <= k and sum(timed) < budget:
                    self._again(name, record, limit)
        return records

    def _first(self, name: str, folder: Path, limit: float) -> Record:
        """Load the table and make the first call."""
        record: Record = {"status": "ok", "seconds": []}
        reply = self.ask(name, f"load {folder}", START_LIMIT)
        if "ready" in reply:
            reply = self.ask(name, "run", limit)
            if reply.get("seconds", 0.0) > LONG:
                record["seconds"].append(reply["seconds"])
        return _noted(record, reply)

    def _again(self, name: str, record: Record, limit: float) -> None:
        reply = self.ask(name, "run", limit)
        if "seconds" in reply:
            record["seconds"].append(reply["seconds"])
        _noted(record, reply)


def _noted(record: Record, reply: Record) -> Record:
    """Keep what a call said beside its seconds, or why it failed."""
    if "over" in reply:
        record |= {"status": "over", "limit": reply["over"]}
    elif "missing" in reply:
        record |= {"status": "missing", "reason": reply["missing"]}
    elif "error" in reply:
        record |= {"status": "failed", "reason": reply["error"]}
    else:
        record |= {key: value for key, value in reply.items() if key != "seconds"}
    return record


def suits(name: str, n_classes: int) -> bool:
    """Whether a method takes part with so many classes."""
    method: Method | None = ALL.get(name)
    return method is None or n_classes >= method.least_classes
