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
`run_verb` gives the verb's own answer (``--json``) back; what a verb refuses is an error that the
page says in its words.

`main` is what the process does (`multiprocessing`, started by `Jobs`). It sends pairs: ``("doing",
words)`` now and then, at last ``("done", what was found)`` or ``("refused", one sentence)``.
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
from .choices import PAGE_NAMES, arguments, sentence
from .column_detection import DetectedTable, recognise
from .limits import Limits

REPORT = "report.html"
RECALIBRATIONS = "recalibrations.html"
MODEL = "model.json"
RECALIBRATED_STEM = "recalibrated"
SEED = 0
"""The same table gives the same numbers every time."""


def run_verb(words: Sequence[str], *flags: str) -> str:
    """Run a verb as if `words` had been typed, with `flags` besides; return what it prints."""
    from ..cli.verbs import UsageError, build_parser

    sys.argv = ["mcllo", *words]  # what a report shows as its command
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    aside = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with redirect_stdout(printed), redirect_stderr(aside):
        try:
            build_parser()([*words, *flags], prog_name="mcllo", standalone_mode=False)
        except UsageError as error:
            raise InputError(error.format_message()) from None
    printed.seek(0)
    return printed.read()


def look(file: str, *, limits: Limits, sheet: str | None = None) -> DetectedTable:
    """Say what a table seems to hold."""
    return recognise(file, limits, sheet)


def assess(file: str, *, reading: Mapping[str, Any]) -> dict[str, Any]:
    """Assess the table."""
    from ..._assessment.sentences import HEADLINES

    options = arguments("assess", reading)
    words = ["assess", file, *options, "--seed", str(SEED), "--html", REPORT]
    found = json.loads(run_verb(words, "--json"))
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


def compare(file: str, *, reading: Mapping[str, Any]) -> dict[str, Any]:
    """Compare recalibrations by folds of the table."""
    options = arguments("compare", reading)
    words = ["compare", file, *options, "--seed", str(SEED), "--html", RECALIBRATIONS]
    found = json.loads(run_verb(words, "--json"))["recommendation"]
    return {
        "method": found["method"],
        "improves": found["improves"],
        "ties": found["ties"],
        "simplest": found["simplest"],
        "text": found["text"],
        "command": shlex.join(["mcllo", *words]),
    }


def recalibrate(
    file: str, *, reading: Mapping[str, Any], method: str, out: str
) -> dict[str, Any]:
    """Learn a recalibration from the table, and apply it to the same rows."""
    from ..._comparison.methods import HeldOut

    fit = ["fit", file, *arguments("fit", reading), "--method", method, "-o", MODEL]
    apply = ["apply", MODEL, file, *arguments("apply", reading), "-o", out]
    fitted = json.loads(run_verb(fit, "--json"))
    run_verb(apply)
    gain = None
    if fitted["held_out"] is not None:
        statement = HeldOut(**fitted["held_out"]).statement().with_names(PAGE_NAMES)
        gain = {"text": statement.text, "level": statement.level}
    return {
        "method": method,
        "text": fitted["text"],
        "gain": gain,
        "expected": fitted.get("gain"),  # auto knows its own
        "expected_se": fitted.get("gain_se"),
        "table": out,
        "notes": [note["text"] for note in fitted["notes"]],
        "command": "\n".join(shlex.join(["mcllo", *words]) for words in (fit, apply)),
    }


TASKS: dict[str, Callable[..., Any]] = {
    "look": look,
    "assess": assess,
    "compare": compare,
    "recalibrate": recalibrate,
}


def main(
    messages: Connection, folder: Path, task: str, given: Mapping[str, Any]
) -> None:
    """Do one piece of work in `folder`, and say how it goes and how it went."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C is for the server, which ends its workers
    Thread(target=_end_with_server, daemon=True).start()
    os.umask(0o077)
    # Files have the names that the command line would give them, so that its lines can be shown.
    # Nothing is imported from here: the first places of sys.path are the server's.
    os.chdir(folder)
    with report_progress("starting") as doing:
        over = Event()
        teller = Thread(target=_tell, args=(messages, doing, over))
        teller.start()
        try:
            answer = work(task, given)
        finally:
            over.set()
            teller.join()
    messages.send(answer)


def work(task: str, given: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the answer to a task: done, or refused in one sentence."""
    try:
        return "done", TASKS[task](**given)
    except MclloError as error:
        return "refused", sentence(error)
    except MemoryError:
        return "refused", "this takes more memory than there is. Use fewer rows."


def _tell(messages: Connection, doing: Callable[[], str], over: Event) -> None:
    """Say what is being done, whenever it is something else."""
    last = ""
    while not over.wait(timeout=0.25):  # seconds; the page asks about as often
        now = doing()
        if now != last:
            messages.send(("doing", now))
            last = now


def _end_with_server() -> None:
    """End at once when the server is gone, whatever is being done."""
    server = parent_process()
    assert server is not None
    server.join()
    # not sys.exit, which would end this thread alone
    os._exit(1)
