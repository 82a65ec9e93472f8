"""Methods in processes of their own, timed in turn: interleaved rounds with a time limit.

Each method has one process (`worker`, or ``optim.R``), which measures its own calls. In a round
every method has a turn: one call, or the median of several where calls are short, so that a busy
moment hits all alike. The first turn warms up and does not count, unless it took longer than
`LONG`. A method that has used up its budget sits out later rounds; one that exceeds the limit is
ended, and the table says so. BLAS and OpenMP have one thread everywhere.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path

from benchmarks.machine import ONE_THREAD, ROOT, Record

LONG = 5.0
"""Seconds from which a first call counts: what it warms up is little beside them."""
START_LIMIT = 300.0
"""Seconds for a process to start, import its package and read the table."""
FAILURES = {"over": ("over", "limit"), "missing": ("missing", "reason"),
            "error": ("failed", "reason")}  # fmt: skip
"""What an answer may hold instead of seconds: the status of the record, and where it is kept."""


class Process:
    """One method's process: a line out, an answer back."""

    def __init__(self, name: str) -> None:
        command = [sys.executable, "-m", "benchmarks.worker", name]
        if name.startswith("r-"):
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
        for line in self.child.stdout or ():
            self.answers.put(line)
        self.answers.put("")

    def ask(self, line: str, limit: float) -> Record:
        """Return the answer to a line, or that it took longer than `limit`."""
        try:
            self.child.stdin.write(line + "\n")  # type: ignore[union-attr]
            text = self.answers.get(timeout=limit)
        except queue.Empty:
            return {"over": limit}
        except BrokenPipeError:
            text = ""
        return json.loads(text) if text.strip() else {"error": "the process ended"}


class Race:
    """Processes of methods, started when first needed and kept for later tables."""

    def __init__(self) -> None:
        self.processes: dict[str, Process] = {}

    def __enter__(self) -> Race:
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self.processes):
            self._stop(name)

    def _stop(self, name: str) -> None:
        child = self.processes.pop(name).child
        child.kill()
        child.wait()

    def ask(self, name: str, line: str, limit: float) -> Record:
        """Return a method's answer; after a failure its process is ended."""
        try:
            if name not in self.processes:
                self.processes[name] = Process(name)
        except FileNotFoundError as error:
            return {"missing": str(error)}
        reply = self.processes[name].ask(line, limit)
        if FAILURES.keys() & reply.keys():
            self._stop(name)
        return reply

    def run(
        self, folder: Path, names: Iterable[str], *, rounds: int, budget: float, limit: float
    ) -> dict[str, Record]:
        """Return a record for each method on one table: its seconds, or why there are none."""
        records: dict[str, Record] = {name: {"status": "ok", "seconds": []} for name in names}
        for k in range(-1, rounds):
            for name, record in records.items():
                timed = record["seconds"]
                if record["status"] != "ok" or len(timed) > k >= 0 or sum(timed) >= budget:
                    continue
                reply = {"ready": True}
                if k < 0:
                    reply = self.ask(name, f"load {folder}", START_LIMIT)
                if "ready" in reply:
                    reply = self.ask(name, "run", limit)
                seconds = reply.pop("seconds", None)
                if seconds is not None and (k >= 0 or seconds > LONG):
                    timed.append(seconds)
                record |= _noted(reply)
        return records


def _noted(reply: Record) -> Record:
    """Return what a call said beside its seconds, or why it failed."""
    for word, (status, where) in FAILURES.items():
        if word in reply:
            return {"status": status, where: reply[word]}
    return reply
