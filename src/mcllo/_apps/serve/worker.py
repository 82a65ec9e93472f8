"""The work itself: each piece is a verb of the command line, run in a process of its own.

===========  ======================================  ============================================
look         `_apps/serve/column_detection`          what the table seems to hold
assess       ``mcllo assess FILE ... --html``        ``report.html``
compare      ``mcllo compare FILE ... --html``       ``recalibrations.html``
recalibrate  ``mcllo fit FILE ... --method M``,      ``model.json``, and the recalibrated table, of
             ``mcllo apply model.json FILE ...``     the kind given
===========  ======================================  ============================================

So every file is the one that the command line writes, to the byte, and says which command that is.
A task loads what it runs when it runs: a look at a table waits for no statistics.
`run_cli_command` gives the verb's own answer (``--json``) back; what a verb refuses is an error
that the page says in its words.

`run_worker` is what the process does (`multiprocessing`, started by `JobRegistry`). It sends pairs:
``("doing", words)`` now and then, at last ``("done", what was found)`` or ``("refused", one
sentence)``.
"""

from __future__ import annotations

import io
import json
import os
import shlex
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event, Thread
from typing import Any

from ..._utils.notebook import report_progress
from ...exceptions import InputError, MclloError
from .choices import PAGE_NAMES, command_line_options, error_sentence
from .column_detection import DetectedTable, detect_table
from .limits import ServerLimits

REPORT = "report.html"
RECALIBRATIONS = "recalibrations.html"
MODEL = "model.json"
RECALIBRATED_STEM = "recalibrated"
SEED = 0
"""The same table gives the same numbers every time."""


def run_cli_command(command_words: Sequence[str], *flags: str) -> str:
    """Run a verb as if `command_words` had been typed, with `flags`; return what it prints."""
    from ..cli.verbs import UsageError, build_parser

    sys.argv = ["mcllo", *command_words]  # what a report shows as its command
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    aside = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with redirect_stdout(printed), redirect_stderr(aside):
        try:
            build_parser()(
                [*command_words, *flags], prog_name="mcllo", standalone_mode=False
            )
        except UsageError as error:
            raise InputError(error.format_message()) from None
    printed.seek(0)
    return printed.read()


def detect_table_in_file(
    file: str, *, limits: ServerLimits, sheet: str | None = None
) -> DetectedTable:
    """Say what a table seems to hold."""
    return detect_table(file, limits, sheet)


def assess_table(file: str, *, reading_options: Mapping[str, Any]) -> dict[str, Any]:
    """Assess the table."""
    from ..._assessment.sentences import HEADLINES

    options = command_line_options("assess", reading_options)
    words = ["assess", file, *options, "--seed", str(SEED), "--html", REPORT]
    found = json.loads(run_cli_command(words, "--json"))
    kind = found["verdict"]["kind"]
    headline, level = HEADLINES[kind]
    data = found["data"]
    return {
        "kind": kind,
        "headline": headline,
        "level": level,
        "n_samples": data["n_samples"],
        "n_classes": data["n_classes"],
        "notes": [note["text"] for note in data["notes"]],
        "command": shlex.join(["mcllo", *words]),
    }


def compare_recalibrations(
    file: str, *, reading_options: Mapping[str, Any]
) -> dict[str, Any]:
    """Compare recalibrations by folds of the table."""
    options = command_line_options("compare", reading_options)
    words = ["compare", file, *options, "--seed", str(SEED), "--html", RECALIBRATIONS]
    found = json.loads(run_cli_command(words, "--json"))["recommendation"]
    return {
        "method": found["method"],
        "improves": found["improves"],
        "ties": found["ties"],
        "simplest": found["simplest"],
        "text": found["text"],
        "command": shlex.join(["mcllo", *words]),
    }


def recalibrate_table(
    file: str, *, reading_options: Mapping[str, Any], method: str, output_name: str
) -> dict[str, Any]:
    """Learn a recalibration from the table, and apply it to the same rows."""
    from ..._comparison.methods import HeldOutGain

    fit = [
        "fit",
        file,
        *command_line_options("fit", reading_options),
        "--method",
        method,
        "-o",
        MODEL,
    ]
    apply = [
        "apply",
        MODEL,
        file,
        *command_line_options("apply", reading_options),
        "-o",
        output_name,
    ]
    fitted = json.loads(run_cli_command(fit, "--json"))
    run_cli_command(apply)
    gain = None
    if fitted["held_out"] is not None:
        statement = HeldOutGain(**fitted["held_out"]).statement().with_names(PAGE_NAMES)
        gain = {"text": statement.text, "level": statement.level}
    return {
        "method": method,
        "text": fitted["text"],
        "gain": gain,
        "expected": fitted.get("gain"),  # auto knows its own
        "expected_se": fitted.get("gain_se"),
        "table": output_name,
        "notes": [note["text"] for note in fitted["notes"]],
        "command": "\n".join(shlex.join(["mcllo", *words]) for words in (fit, apply)),
    }


TASKS: dict[str, Callable[..., Any]] = {
    "look": detect_table_in_file,
    "assess": assess_table,
    "compare": compare_recalibrations,
    "recalibrate": recalibrate_table,
}


def run_worker(
    connection: Connection, folder: Path, task: str, task_arguments: Mapping[str, Any]
) -> None:
    """Do one piece of work in `folder`, and say how it goes and how it went."""
    # Ctrl-C is for the server, which ends its workers
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_exit_when_server_ends, daemon=True).start()
    os.umask(0o077)
    # Files have the names that the command line would give them, so that its lines can be shown.
    # Nothing is imported from here: the first places of sys.path are the server's.
    os.chdir(folder)
    with report_progress("starting") as current_step:
        is_finished = Event()
        sender = Thread(
            target=_send_progress, args=(connection, current_step, is_finished)
        )
        sender.start()
        try:
            answer = task_answer(task, task_arguments)
        finally:
            is_finished.set()
            sender.join()
    connection.send(answer)


def task_answer(task: str, task_arguments: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the answer to a task: done, or refused in one sentence."""
    try:
        return "done", TASKS[task](**task_arguments)
    except MclloError as error:
        return "refused", error_sentence(error)
    except MemoryError:
        return "refused", "this takes more memory than there is. Use fewer rows."


def _send_progress(
    connection: Connection, current_step: Callable[[], str], is_finished: Event
) -> None:
    """Say what is being done, whenever it is something else."""
    last = ""
    while not is_finished.wait(timeout=0.25):  # seconds; the page asks about as often
        now = current_step()
        if now != last:
            connection.send(("doing", now))
            last = now


def _exit_when_server_ends() -> None:
    """End at once when the server is gone, whatever is being done."""
    server = parent_process()
    assert server is not None
    server.join()
    # not sys.exit, which would end this thread alone
    os._exit(1)
