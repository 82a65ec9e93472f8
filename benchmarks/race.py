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
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.machine import ONE_THREAD, ROOT, Record

LONG = 5.0
"""Seconds from which a first call counts: what it warms up is little beside them."""
START_LIMIT = 300.0
"""Seconds for a process to start, import its package and read the table."""
FAILURES = {"over": ("over", "limit"), "missing": ("missing", "reason"),
            "error": ("failed", "reason")}  # fmt: skip
"""What an answer may hold instead of seconds: the status of the record, and where it is kept."""


class Race:
    """Processes of methods, started when first needed and kept for later tables."""

    def __init__(self) -> None:
        self.processes: dict[str, tuple[subprocess.Popen[str], queue.Queue[str]]] = {}

    def __enter__(self) -> Race:
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self.processes):
            self._stop(name)

    def _start(self, name: str) -> None:
        """Start a process and a thread that puts its answers, and its end, into a queue."""
        command = [sys.executable, "-m", "benchmarks.worker", name]
        if name.startswith("r-"):
            program = ROOT / "benchmarks" / "optim.R"
            command = ["Rscript", str(program), name.removeprefix("r-")]
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        pipes |= {"stderr": subprocess.DEVNULL, "bufsize": 1}
        child = subprocess.Popen(command, cwd=ROOT, env=os.environ | ONE_THREAD, **pipes)
        answers: queue.Queue[str] = queue.Queue()

        def listen() -> None:
            for line in child.stdout:
                answers.put(line)
            answers.put("")

        threading.Thread(target=listen, daemon=True).start()
        self.processes[name] = child, answers

    def _stop(self, name: str) -> None:
        child, _ = self.processes.pop(name)
        child.kill()
        child.wait()

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
                for word, (status, where) in FAILURES.items():
                    if word in reply:
                        record |= {"status": status, where: reply.pop(word)}
                record |= reply
        return records
