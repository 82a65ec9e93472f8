"""What the files of a job are called.

=====  =============================================================================================
given  the name that the file had, as far as any system can hold it: no folders, no letters that
       steer a terminal or the direction of text, no dot or dash in front, not too long, not a name
       of ours
made   always the same names, and `RECALIBRATED_STEM` with the ending of the table that was given
=====  =============================================================================================

Tables at work: one job for each that was dropped, in a folder of its own.

============  ====================================================================================
`Job`         a file, what was recognised in it, what the form said, what was found
`Work`        a piece of work (`_apps/serve/worker`) in a process of its own
`Jobs`        all of them; two tabs and two browsers have different ones, known by random names
cancelled     the process is killed; what was found before stays
too long      likewise, and it is said
the end       every process is killed, then the folder is removed (`_apps/serve/upload`)
============  ====================================================================================

A worker says what it does on its standard output and lives no longer than its standard input.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import shutil
import sys
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from .column_detection import ColumnSeen, DetectedTable
from .guard import Limits

REPORT = "report.html"
RECALIBRATIONS = "recalibrations.html"
MODEL = "model.json"
RECALIBRATED_STEM = "recalibrated"
MAX_NAME_BYTES = 80
"""Characters of a file's name."""
FORBIDDEN_CHARS = '<>:"/\\|?*'
"""What some system does not have in a name."""
DEFAULT_NAME = "table"
RESULT_STEMS = {Path(name).stem for name in (REPORT, RECALIBRATIONS, MODEL, RECALIBRATED_STEM)}


def safe_name(given: str) -> str:
    r"""Return a name for a file that is as near to the given one as is safe.

    Examples
    --------
    >>> safe_name("C:\\data\\..\\fore casts.csv"), safe_name("--html.csv"), safe_name("report.csv")
    ('fore casts.csv', 'html.csv', 'my report.csv')
    """
    from ..report.html import plain

    last = unicodedata.normalize("NFC", plain(given)).replace("\\", "/").split("/")[-1]
    name = "".join(
        "_" if letter in FORBIDDEN_CHARS or letter == "\n" else letter for letter in last
    )
    name = name.strip().lstrip(".-~ ").rstrip(". ")
    stem, dot, ending = name.rpartition(".")
    stem, ending = (stem, dot + ending) if stem and len(ending) <= 8 else (name, "")
    while len((stem + ending).encode("utf-8")) > MAX_NAME_BYTES:
        stem = stem[:-1]
    stem = stem.rstrip() or DEFAULT_NAME
    return f"my {stem}{ending}" if stem.split(".")[0].lower() in RESULT_STEMS else stem + ending


MAX_ANSWER_BYTES = 1 << 26
"""Bytes of a worker's answer."""
CANCELLED_TEXT = "Cancelled. Nothing was changed."
MISTAKE_TEXT = (
    "this is a mistake in mcllo, not in your table. Please report it, with what mcllo serve "
    "printed where it was started."
)
KILLED_TEXT = "the system ended this work, most likely for want of memory. Use fewer rows."
FILES = {"assess": [REPORT], "compare": [RECALIBRATIONS], "recalibrate": [MODEL]}


@dataclass
class Work:
    """A piece of work that runs, or waits for its turn."""

    task: str
    doing: str = "waiting for its turn"
    started: float = field(default_factory=monotonic)
    cancelled: bool = False
    process: asyncio.subprocess.Process | None = None
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
            for name in (*FILES.get(task, ()), found.get("table")):
                if name:
                    (self.folder / name).unlink(missing_ok=True)

    def path(self, what: str) -> Path | None:
        """Return a file that was made: the report, the recalibrations, the model or the table."""
        recalibrated = self.found.get("recalibrate", {})
        names = {"report": REPORT if "assess" in self.found else ""}
        names |= {"recalibrations": RECALIBRATIONS if "compare" in self.found else ""}
        names |= {"model": MODEL if recalibrated else "", "table": recalibrated.get("table", "")}
        place = self.folder / names[what] if names.get(what) else None
        return place if place is not None and place.is_file() else None


class Jobs:
    """All tables of one run, in a private folder."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.folder, self.limits = folder, limits
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
        idle = sorted((j for j in self._jobs.values() if j.work is None), key=lambda j: j.used)
        for job in idle[: max(0, len(self._jobs) + 1 - self.limits.jobs)]:
            self.drop(job)
        key = secrets.token_urlsafe(12)
        folder = self.folder / key
        folder.mkdir(mode=0o700)
        return key, folder

    def add(self, key: str, folder: Path, file: str) -> Job:
        """Add a table, and start to look at it."""
        job = self._jobs[key] = Job(key, folder, file)
        self.look(job)
        return job

    def drop(self, job: Job) -> None:
        """Forget a table and all that was made of it."""
        self.cancel(job)
        self._jobs.pop(job.key, None)
        shutil.rmtree(job.folder, ignore_errors=True)

    def look(self, job: Job, sheet: str | None = None) -> None:
        """Look at the table, or at another sheet of it."""
        given = {"file": job.file, "limits": asdict(self.limits), "sheet": sheet}
        self.start(job, "look", given)

    def start(self, job: Job, task: str, given: Mapping[str, Any]) -> bool:
        """Start a piece of work, unless one runs; return whether it was started."""
        if job.work is not None:
            return False
        job.problem = job.notice = job.fresh = ""
        job.work = Work(task)
        job.work.runs = asyncio.create_task(self._run(job, job.work, dict(given)))
        return True

    def cancel(self, job: Job) -> None:
        """End what runs."""
        work = job.work
        if work is None:
            return
        work.cancelled = True
        if work.process is not None:
            with suppress(ProcessLookupError):
                work.process.kill()
        elif work.runs is not None:
            work.runs.cancel()
            self._over(job, work, {})

    async def close(self) -> None:
        """End all work."""
        running = [job.work.runs for job in self._jobs.values() if job.work and job.work.runs]
        for job in self._jobs.values():
            self.cancel(job)
        await asyncio.gather(*running, return_exceptions=True)

    async def _run(self, job: Job, work: Work, given: dict[str, Any]) -> None:
        """Let a worker do a piece of work, and take what it answers."""
        answer: dict[str, Any] = {"refused": MISTAKE_TEXT}
        try:
            async with self._turns:
                answer = await self._worked(job, work, given) or answer
        finally:
            self._over(job, work, answer)

    async def _worked(self, job: Job, work: Work, given: dict[str, Any]) -> dict[str, Any]:
        """Start a worker, and return its answer; nothing of it is left afterwards."""
        work.started, work.doing = monotonic(), "starting"
        process = work.process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "mcllo._apps.serve.worker"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=MAX_ANSWER_BYTES,
            cwd=self.folder,
        )
        try:
            async with asyncio.timeout(self.limits.seconds):
                asked = {"task": work.task, "folder": str(job.folder), "given": given}
                return await _run_task(process, work, asked)
        except TimeoutError:
            return {"refused": self.limits.too_long()}
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            if process.stdin is not None:
                process.stdin.close()

    def _over(self, job: Job, work: Work, answer: dict[str, Any]) -> None:
        """Keep what a piece of work came to."""
        if job.work is not work:
            return
        job.work = None
        if work.cancelled:
            job.notice = CANCELLED_TEXT
        elif "done" in answer:
            self._keep(job, work.task, answer["done"])
        else:
            job.problem = str(answer.get("refused", MISTAKE_TEXT))

    def _keep(self, job: Job, task: str, found: dict[str, Any]) -> None:
        if task == "look":
            columns = tuple(
                ColumnSeen(c["name"], tuple(c["examples"]), c["role"]) for c in found["columns"]
            )
            lists = {name: tuple(found[name]) for name in ("labels", "sheets", "notes")}
            job.seen = DetectedTable(**{**found, **lists, "columns": columns})
            job.fields = {}
            job.forget("assess", "compare", "recalibrate")
            return
        if task == "assess":
            job.forget("compare", "recalibrate")
        job.found[task] = found
        job.fresh = task


async def _run_task(
    process: asyncio.subprocess.Process, work: Work, asked: dict[str, Any]
) -> dict[str, Any]:
    """Send a task to a worker, follow what it does, and return its answer."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(ConnectionError):
        process.stdin.write(json.dumps(asked).encode("utf-8") + b"\n")
        await process.stdin.drain()
    async for line in process.stdout:
        told = json.loads(line)
        if "doing" not in told:
            return dict(told)
        work.doing = told["doing"]
    code = await process.wait()
    return {"refused": KILLED_TEXT} if code == -9 else {}


def recalibrated_name(seen: DetectedTable) -> str:
    """Return what the recalibrated table is called."""
    return RECALIBRATED_STEM + seen.ending
