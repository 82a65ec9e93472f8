"""The process that works: ``python -P -m mcllo._apps.serve.worker``, started for one piece of work.

===============  ================================================================================
standard input   one line of JSON: the task and the folder to work in; then silence. When it ends,
                 the page is gone, and this process goes too, whatever it was doing
standard output  lines of JSON: ``{"doing": ...}`` now and then, at last ``{"done": ...}`` or
                 ``{"refused": "one sentence"}``
-P               nothing is imported from the folder: a file that is called ``numpy.py`` is a table
===============  ================================================================================
"""

from __future__ import annotations

import json
import os
import sys
from threading import Event, Thread
from typing import Any

from ..._utils.notebook import report_progress
from ...exceptions import MclloError
from .form_labels import sentence
from .tasks import TASKS

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
