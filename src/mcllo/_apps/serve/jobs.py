"""Tables at work: one job for each that was dropped, in a folder of its own.

=============  ===================================================================================
`TableJob`     a file, what was recognised in it, what the form said, what was found
`TaskRun`      a piece of work (`_apps/serve/worker`) in a process of its own
`JobRegistry`  all jobs; two tabs and two browsers have different ones, known by random names
cancelled      the process is killed; what was found before stays
too long       likewise, and it is said
the end        every process is killed, then the folder is removed (`_apps/serve/upload`)
=============  ===================================================================================

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
from .limits import ServerLimits

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
class TaskRun:
    """A piece of work that runs, or waits for its turn."""

    task: str
    doing: str = "waiting for its turn"
    started: float = field(default_factory=monotonic)
    cancelled: bool = False
    process: BaseProcess | None = None
    waiter: asyncio.Task[None] | None = None

    @property
    def elapsed_seconds(self) -> int:
        """For how many whole seconds it has run."""
        return int(monotonic() - self.started)


@dataclass
class TableJob:
    """A table: `results` has the results of tasks, `fresh` says which one was the last.

    `problem` is why the last piece of work was refused, `notice` what else is to be said.
    """

    key: str
    folder: Path
    file: str
    detected: DetectedTable | None = None
    fields: dict[str, str] = field(default_factory=dict)
    reading: dict[str, Any] = field(default_factory=dict)
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    task_run: TaskRun | None = None
    problem: str = ""
    notice: str = ""
    fresh: str = ""
    used: float = field(default_factory=monotonic)

    def delete_results(self, *tasks: str) -> None:
        """Forget what tasks found, and remove their files."""
        for task in tasks:
            found = self.results.pop(task, {})
            names = list(FILES.get(task, ()))
            if "table" in found:
                names.append(found["table"])
            for name in names:
                (self.folder / name).unlink(missing_ok=True)

    def result_path(self, result_kind: str) -> Path | None:
        """Return a file that was made: the report, the recalibrations, the model or the table."""
        names = {}
        if "assess" in self.results:
            names["report"] = worker.REPORT
        if "compare" in self.results:
            names["recalibrations"] = worker.RECALIBRATIONS
        if "recalibrate" in self.results:
            names["model"] = worker.MODEL
            names["table"] = self.results["recalibrate"]["table"]
        if result_kind not in names:
            return None
        path = self.folder / names[result_kind]
        return path if path.is_file() else None


class JobRegistry:
    """All tables of one run, in a private folder."""

    def __init__(self, folder: Path, limits: ServerLimits) -> None:
        self.folder = folder
        self.limits = limits
        self._jobs: dict[str, TableJob] = {}
        self._turns = asyncio.Semaphore(limits.at_once)

    def find_job(self, key: str) -> TableJob | None:
        """Return a job by its name."""
        job = self._jobs.get(key)
        if job is not None:
            job.used = monotonic()
        return job

    def make_job_folder(self) -> tuple[str, Path]:
        """Return a new name and its folder, after making room."""
        # Work that runs is never ended to make room: somebody waits for it.
        idle = [job for job in self._jobs.values() if job.task_run is None]
        idle.sort(key=lambda job: job.used)
        n_too_many = len(self._jobs) + 1 - self.limits.jobs
        for job in idle[: max(0, n_too_many)]:
            self.remove_job(job)
        key = secrets.token_urlsafe(12)
        folder = self.folder / key
        folder.mkdir(mode=0o700)
        return key, folder

    def add_job(self, key: str, folder: Path, file: str) -> TableJob:
        """Add a table, and start to look at it."""
        job = TableJob(key, folder, file)
        self._jobs[key] = job
        self.start_detection(job)
        return job

    def remove_job(self, job: TableJob) -> None:
        """Forget a table and all that was made of it."""
        self.cancel_task(job)
        self._jobs.pop(job.key, None)
        shutil.rmtree(job.folder, ignore_errors=True)

    def start_detection(self, job: TableJob, sheet: str | None = None) -> None:
        """Look at the table, or at another sheet of it."""
        self.start_task(
            job, "look", {"file": job.file, "limits": self.limits, "sheet": sheet}
        )

    def start_task(
        self, job: TableJob, task: str, task_arguments: Mapping[str, Any]
    ) -> bool:
        """Start a piece of work, unless one runs; return whether it was started."""
        if job.task_run is not None:
            return False
        job.problem = job.notice = job.fresh = ""
        job.task_run = TaskRun(task)
        job.task_run.waiter = asyncio.create_task(
            self._run_task_in_turn(job, job.task_run, task_arguments)
        )
        return True

    def cancel_task(self, job: TableJob) -> None:
        """End what runs."""
        task_run = job.task_run
        if task_run is None:
            return
        task_run.cancelled = True
        if task_run.process is not None:
            task_run.process.kill()
        elif task_run.waiter is not None:
            # it waits for its turn, and has no process yet
            task_run.waiter.cancel()
            self._store_outcome(job, task_run, "refused", "")

    async def cancel_all_tasks(self) -> None:
        """End all work."""
        running = [
            job.task_run.waiter
            for job in self._jobs.values()
            if job.task_run and job.task_run.waiter
        ]
        for job in self._jobs.values():
            self.cancel_task(job)
        await asyncio.gather(*running, return_exceptions=True)

    async def _run_task_in_turn(
        self, job: TableJob, task_run: TaskRun, task_arguments: Mapping[str, Any]
    ) -> None:
        """Let a worker do a piece of work, and take what it answers."""
        answer = ("refused", MISTAKE_TEXT)
        try:
            async with self._turns:
                answer = await self._run_worker_process(job, task_run, task_arguments)
        finally:
            self._store_outcome(job, task_run, *answer)

    async def _run_worker_process(
        self, job: TableJob, task_run: TaskRun, task_arguments: Mapping[str, Any]
    ) -> tuple[str, Any]:
        """Start a worker, and return its answer; nothing of it is left afterwards."""
        task_run.started = monotonic()
        task_run.doing = "starting"
        receiver, sender = SPAWN.Pipe(duplex=False)
        # Daemonic: where the event loop is killed before `cancel_all_tasks`, the interpreter ends
        # its workers.
        task_run.process = process = SPAWN.Process(
            target=worker.run_worker,
            args=(sender, job.folder, task_run.task, task_arguments),
            daemon=True,
        )
        process.start()
        sender.close()  # the worker holds the only other end: where it dies, messages end
        try:
            async with asyncio.timeout(self.limits.seconds):
                answer = await asyncio.to_thread(_receive_answer, receiver, task_run)
                if answer is not None:
                    return answer
                await asyncio.to_thread(process.join)
                # 9 is the signal of Linux when memory runs out
                return (
                    "refused",
                    KILLED_TEXT if process.exitcode == -9 else MISTAKE_TEXT,
                )
        except TimeoutError:
            return "refused", self.limits.timeout_text()
        finally:
            process.kill()
            await asyncio.to_thread(process.join)

    def _store_outcome(
        self, job: TableJob, task_run: TaskRun, outcome: str, content: Any
    ) -> None:
        """Keep what a piece of work came to."""
        if job.task_run is not task_run:
            return
        job.task_run = None
        if task_run.cancelled:
            job.notice = CANCELLED_TEXT
        elif outcome == "refused":
            job.problem = content
        elif task_run.task == "look":
            # another table, or another sheet: what was found is of the one before
            job.detected = content
            job.fields = {}
            job.delete_results("assess", "compare", "recalibrate")
        else:
            if task_run.task == "assess":
                job.delete_results("compare", "recalibrate")
            job.results[task_run.task] = content
            job.fresh = task_run.task


def _receive_answer(
    connection: Connection, task_run: TaskRun
) -> tuple[str, Any] | None:
    """Follow what a worker does, and return its answer; None where it died without one."""
    while True:
        try:
            kind, content = connection.recv()
        except (EOFError, OSError):  # killed between messages, or within one
            return None
        if kind != "doing":
            return kind, content
        task_run.doing = content


def recalibrated_file_name(detected: DetectedTable) -> str:
    """Return what the recalibrated table is called."""
    return worker.RECALIBRATED_STEM + detected.ending
