"""Run jobs in processes of one thread each, until all are done or the time is up."""

import os
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.crew import ONE_THREAD

Job = tuple[Callable[..., Any], tuple[Any, ...]]


def prepared(warm: Callable[[], Any]) -> None:
    """Begin a process: quiet, and with everything imported."""
    warnings.simplefilter("ignore")
    _silence()
    warm()


def _silence() -> None:
    """Send what packages print to nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def drive(
    jobs: Iterable[Job],
    keep: Callable[[Any], None],
    *,
    warm: Callable[[], Any],
    workers: int = 2,
    minutes: float | None = None,
    pause: Path | None = None,
) -> int:
    """Run the jobs in order, give each result to `keep`, and return how many were run.

    No job is begun after `minutes`, nor while the file `pause` exists.
    """
    os.environ.update(ONE_THREAD)
    end = float("inf") if minutes is None else time.monotonic() + 60.0 * minutes
    waiting, running, done = iter(jobs), set[Future[Any]](), 0
    context = get_context("spawn")
    with ProcessPoolExecutor(workers, context, prepared, (warm,)) as pool:
        while True:
            while len(running) <= workers and time.monotonic() < end:
                while pause is not None and pause.exists() and time.monotonic() < end:
                    time.sleep(2.0)
                job = next(waiting, None)
                if job is None:
                    break
                running.add(pool.submit(job[0], *job[1]))
            if not running:
                return done
            ready, running = wait(running, return_when=FIRST_COMPLETED)
            for future in ready:
                keep(future.result())
                done += 1
