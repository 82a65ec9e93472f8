"""Tables at work: one job for each that was dropped, in a folder of its own.

============  ====================================================================================
`Job`         a file, what was recognised in it, what the form said, what was found
`Work`        a piece of work (`_apps/serve/worker`) in a process of its own
`Jobs`        all of them; two tabs and two browsers have different ones, known by random names
cancelled     the process is killed; what was found before stays
too long      likewise, and it is said
the end       every process is killed, then the folder is removed (`_apps/serve/upload`)
============  ====================================================================================

A process for each piece of work (`multiprocessing.Process`) rather than a pool of them, because a
pool cannot kill one worker without the others; spawned, as a fork of a program with threads may
hang.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from time import monotonic
from typing import Any

from . import worker
from .column_detection import DetectedTable
from .limits import Limits

SPAWN = multiprocessing.get_context("spawn")
CANCELLED_TEXT = "Cancelled. Nothing was changed."
MISTAKE_TEXT = (
    "this is a mistake in mcllo, not in your table. Please report it, with what mcllo serve "
    "printed where it was started."
)
KILLED_TEXT = (
    "the system ended this work, most likely for want of memory. Use fewer rows."
)
FILES = {
    "assess": [worker.REPORT],
    "compare": [worker.RECALIBRATIONS],
    "recalibrate": [worker.MODEL],
}
"""What each task writes, besides the recalibrated table."""


@dataclass
class Work:
    """A piece of work that runs, or waits for its turn."""

    task: str
    doing: str = "waiting for its turn"
    started: float = field(default_factory=monotonic)
    cancelled: bool = False
    process: BaseProcess | None = None
    runs: asyncio.Task[None] | None = None

    @property
    def seconds(self) -> int:
        """For how long it runs."""
        return int(monotonic() - self.started)


@dataclass
class Job:
    """A table: `found` has the results of tasks, `fresh` says which one was the last.

    `problem` is why the last piece of work was refused, `notice` what else is to be said.
    """

    key: str
    folder: Path
    file: str
    seen: DetectedTable | None = None
    fields: dict[str, str] = field(default_factory=dict)
    reading: dict[str, Any] = field(default_factory=dict)
    found: dict[str, dict[str, Any]] = field(default_factory=dict)
    work: Work | None = None
    problem: str = ""
    notice: str = ""
    fresh: str = ""
    used: float = field(default_factory=monotonic)

    def forget(self, *tasks: str) -> None:
        """Forget what tasks found, and remove their files."""
        for task in tasks:
            found = self.found.pop(task, {})
            names = list(FILES.get(task, ()))
            if "table" in found:
                names.append(found["table"])
            for name in names:
                (self.folder / name).unlink(missing_ok=True)

    def path(self, what: str) -> Path | None:
        """Return a file that was made: the report, the recalibrations, the model or the table."""
        names = {}
        if "assess" in self.found:
            names["report"] = worker.REPORT
        if "compare" in self.found:
            names["recalibrations"] = worker.RECALIBRATIONS
        if "recalibrate" in self.found:
            names["model"] = worker.MODEL
            names["table"] = self.found["recalibrate"]["table"]
        if what not in names:
            return None
        path = self.folder / names[what]
        return path if path.is_file() else None


class Jobs:
    """All tables of one run, in a private folder."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.folder = folder
        self.limits = limits
        self._jobs: dict[str, Job] = {}
        self._turns = asyncio.Semaphore(limits.at_once)

    def get(self, key: str) -> Job | None:
        """Return a job by its name."""
        job = self._jobs.get(key)
        if job is not None:
            job.used = monotonic()
        return job

    def new_folder(self) -> tuple[str, Path]:
        """Return a new name and its folder, after making room."""
        # Work that runs is never ended to make room: somebody waits for it.
        idle = [job for job in self._jobs.values() if job.work is None]
        idle.sort(key=lambda job: job.used)
        n_too_many = len(self._jobs) + 1 - self.limits.jobs
        for job in idle[: max(0, n_too_many)]:
            self.drop(job)
        key = secrets.token_urlsafe(12)
        folder = self.folder / key
        folder.mkdir(mode=0o700)
        return key, folder

    def add(self, key: str, folder: Path, file: str) -> Job:
        """Add a table, and start to look at it."""
        job = Job(key, folder, file)
        self._jobs[key] = job
        self.look(job)
        return job

    def drop(self, job: Job) -> None:
        """Forget a table and all that was made of it."""
        self.cancel(job)
        self._jobs.pop(job.key, None)
        shutil.rmtree(job.folder, ignore_errors=True)

    def look(self, job: Job, sheet: str | None = None) -> None:
        """Look at the table, or at another sheet of it."""
        self.start(
            job, "look", {"file": job.file, "limits": self.limits, "sheet": sheet}
        )

    def start(self, job: Job, task: str, given: Mapping[str, Any]) -> bool:
        """Start a piece of work, unless one runs; return whether it was started."""
        if job.work is not None:
            return False
        job.problem = job.notice = job.fresh = ""
        job.work = Work(task)
        job.work.runs = asyncio.create_task(self._run(job, job.work, given))
        return True

    def cancel(self, job: Job) -> None:
        """End what runs."""
        work = job.work
        if work is None:
            return
        work.cancelled = True
        if work.process is not None:
            work.process.kill()
        elif work.runs is not None:  # it waits for its turn, and has no process yet
            work.runs.cancel()
            self._over(job, work, "refused", "")

    async def close(self) -> None:
        """End all work."""
        running = [
            job.work.runs for job in self._jobs.values() if job.work and job.work.runs
        ]
        for job in self._jobs.values():
            self.cancel(job)
        await asyncio.gather(*running, return_exceptions=True)

    async def _run(self, job: Job, work: Work, given: Mapping[str, Any]) -> None:
        """Let a worker do a piece of work, and take what it answers."""
        answer = ("refused", MISTAKE_TEXT)
        try:
            async with self._turns:
                answer = await self._work(job, work, given)
        finally:
            self._over(job, work, *answer)

    async def _work(
        self, job: Job, work: Work, given: Mapping[str, Any]
    ) -> tuple[str, Any]:
        """Start a worker, and return its answer; nothing of it is left afterwards."""
        work.started = monotonic()
        work.doing = "starting"
        receiver, sender = SPAWN.Pipe(duplex=False)
        # Daemonic: where the event loop is killed before `close`, the interpreter ends its workers.
        work.process = process = SPAWN.Process(
            target=worker.main, args=(sender, job.folder, work.task, given), daemon=True
        )
        process.start()
        sender.close()  # the worker holds the only other end: where it dies, messages end
        try:
            async with asyncio.timeout(self.limits.seconds):
                answer = await asyncio.to_thread(_last_message, receiver, work)
                if answer is not None:
                    return answer
                await asyncio.to_thread(process.join)
                # 9 is the signal of Linux when memory runs out
                return (
                    "refused",
                    KILLED_TEXT if process.exitcode == -9 else MISTAKE_TEXT,
                )
        except TimeoutError:
            return "refused", self.limits.too_long()
        finally:
            process.kill()
            await asyncio.to_thread(process.join)

    def _over(self, job: Job, work: Work, kind: str, content: Any) -> None:
        """Keep what a piece of work came to."""
        if job.work is not work:
            return
        job.work = None
        if work.cancelled:
            job.notice = CANCELLED_TEXT
        elif kind == "refused":
            job.problem = content
        elif work.task == "look":
            # another table, or another sheet: what was found is of the one before
            job.seen = content
            job.fields = {}
            job.forget("assess", "compare", "recalibrate")
        else:
            if work.task == "assess":
                job.forget("compare", "recalibrate")
            job.found[work.task] = content
            job.fresh = work.task


def _last_message(messages: Connection, work: Work) -> tuple[str, Any] | None:
    """Follow what a worker does, and return its answer; None where it died without one."""
    while True:
        try:
            kind, content = messages.recv()
        except (EOFError, OSError):  # killed between messages, or within one
            return None
        if kind != "doing":
            return kind, content
        work.doing = content


def recalibrated_name(seen: DetectedTable) -> str:
    """Return what the recalibrated table is called."""
    return worker.RECALIBRATED_STEM + seen.ending
