"""The work itself: each piece is a verb of the command line, run in this process.

===========  ==========================================  ===========================================
look         `_apps/serve/column_detection`                   what the table seems to hold
assess       ``mcllo assess FILE ... --html``            ``report.html``
compare      ``mcllo compare FILE ... --html``           ``recalibrations.html``
recalibrate  ``mcllo fit FILE ... --method M`` ``mcllo   ``model.json`` the recalibrated table, of
             apply model.json FILE ...``                 the kind given
===========  ==========================================  ===========================================

So every file is the one that the command line writes, to the byte, and says which command that is.
A task loads what it runs when it runs: a look at a table waits for no statistics.
`run` gives the verb's own answer (``--json``) back; what a verb refuses is an error that the page
says in its words.

The process that works: ``python -P -m mcllo._apps.serve.worker``, started for one piece of work.

===============  ================================================================================
standard input   one line of JSON: the task and the folder to work in; then silence. When it ends,
                 the page is gone, and this process goes too, whatever it was doing
standard output  lines of JSON: ``{"doing": ...}`` now and then, at last ``{"done": ...}`` or
                 ``{"refused": "one sentence"}``
-P               nothing is imported from the folder: a file that is called ``numpy.py`` is a table
===============  ================================================================================
"""

from __future__ import annotations

import io
import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from threading import Event, Thread
from typing import Any

from ..._utils.notebook import report_progress
from ...exceptions import InputError, MclloError
from .choices import PAGE_NAMES, sentence
from .guard import Limits
from .jobs import MODEL, RECALIBRATIONS, REPORT

SEED = 0
"""The same table gives the same numbers every time."""


def run(words: Sequence[str], *, json_too: bool = True) -> dict[str, Any]:
    """Run a verb as if `words` had been typed; return what it prints as JSON."""
    from ..cli.verbs import UsageError, command

    sys.argv = ["mcllo", *words]  # what a report shows as its command
    asked = [*words, "--json"] if json_too else list(words)
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    aside = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with redirect_stdout(out), redirect_stderr(aside):
        try:
            command()(asked, prog_name="mcllo", standalone_mode=False)
        except UsageError as error:
            raise InputError(error.format_message()) from None
    out.seek(0)
    return json.loads(out.read()) if json_too else {}


def look(file: str, *, limits: Mapping[str, Any], sheet: str | None = None) -> dict[str, Any]:
    """Say what a table seems to hold."""
    from .column_detection import recognise

    return recognise(file, Limits(**limits), sheet).to_dict()


def assess(file: str, *, reading: dict[str, Any]) -> dict[str, Any]:
    """Assess the table."""
    from ..._assessment.sentences import HEADLINES
    from .choices import arguments

    words = ["assess", file, *arguments("assess", reading), "--seed", str(SEED), "--html", REPORT]
    found = run(words)
    headline, level = HEADLINES[found["verdict"]["kind"]]
    data = found["data"]
    return {
        "kind": found["verdict"]["kind"],
        "headline": headline,
        "level": level,
        "n_samples": data["n_samples"],
        "n_classes": data["n_classes"],
        "notes": [note["text"] for note in data["notes"]],
        "command": shlex.join(["mcllo", *words]),
    }


def compare(file: str, *, reading: dict[str, Any]) -> dict[str, Any]:
    """Compare recalibrations by folds of the table."""
    from .choices import arguments

    words = [
        "compare",
        file,
        *arguments("compare", reading),
        "--seed",
        str(SEED),
        "--html",
        RECALIBRATIONS,
    ]
    found = run(words)["recommendation"]
    return {
        "method": found["method"],
        "improves": found["improves"],
        "ties": found["ties"],
        "simplest": found["simplest"],
        "text": found["text"],
        "command": shlex.join(["mcllo", *words]),
    }


def recalibrate(file: str, *, reading: dict[str, Any], method: str, out: str) -> dict[str, Any]:
    """Learn a recalibration from the table, and apply it to the same rows."""
    from ..._comparison.methods import HeldOut
    from .choices import arguments

    learn = ["fit", file, *arguments("fit", reading), "--method", method, "-o", MODEL]
    fitted = run(learn)
    use = ["apply", MODEL, file, *arguments("apply", reading), "-o", out]
    run(use, json_too=False)
    gain = None
    if fitted["held_out"] is not None:
        gain = HeldOut(**fitted["held_out"]).statement().in_names(PAGE_NAMES)
    return {
        "method": method,
        "text": fitted["text"],
        "gain": None if gain is None else {"text": gain.text, "level": gain.level},
        "expected": fitted.get("gain"),  # auto knows its own
        "expected_se": fitted.get("gain_se"),
        "table": out,
        "notes": [note["text"] for note in fitted["notes"]],
        "command": "\n".join(shlex.join(["mcllo", *words]) for words in (learn, use)),
    }


TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    "look": look,
    "assess": assess,
    "compare": compare,
    "recalibrate": recalibrate,
}


PAUSE_SECONDS = 0.25
"""Seconds between two looks at what is being done."""


def main() -> None:
    """Do one piece of work, and say how it went."""
    asked = json.loads(sys.stdin.readline())
    Thread(target=_leave_with_the_page, daemon=True).start()
    os.umask(0o077)
    line = sys.stdout
    with report_progress("starting") as doing:
        over = Event()
        teller = Thread(target=_tell, args=(line, doing, over))
        teller.start()
        try:
            answer = work(asked)
        finally:
            over.set()
            teller.join()
    print(json.dumps(answer), file=line, flush=True)


def work(asked: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a task: done, or refused in one sentence."""
    os.chdir(asked["folder"])
    try:
        return {"done": TASKS[asked["task"]](**asked["given"])}
    except MclloError as error:
        return {"refused": sentence(error)}
    except MemoryError:
        return {"refused": "this takes more memory than there is. Use fewer rows."}


def _tell(line: Any, doing: Any, over: Event) -> None:
    """Say what is being done, whenever it is something else."""
    last = ""
    while not over.wait(PAUSE_SECONDS):
        if (now := doing()) != last:
            print(json.dumps({"doing": now}), file=line, flush=True)
            last = now


def _leave_with_the_page() -> None:
    """Wait for the end of standard input, and end at once."""
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    main()
