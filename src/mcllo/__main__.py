"""Run the command line: ``mcllo`` or ``python -m mcllo``.

====  ====================================================================
0     done
1     miscalibrated, and it matters (``--gate``; with ``--strict`` also by little)
2     bad input, one line on standard error
3     these rows cannot tell (``--gate``)
70    a mistake in mcllo itself, with its traceback
130   interrupted with Ctrl-C (143: terminated); no file is left half-written
141   the reader of standard output went away, as in ``mcllo ... | head``
====  ====================================================================
"""

from __future__ import annotations

import io
import os
import signal
import sys
import traceback
from contextlib import suppress
from typing import Any, NoReturn

from .exceptions import MclloError

BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
"""Threads work on different rows here. Those that BLAS starts by itself wait for each other on a
busy machine, so that minutes become hours; whoever sets these variables is obeyed."""
BAD_INPUT, MISTAKE, INTERRUPTED, TERMINATED, NO_READER = 2, 70, 130, 143, 141


def main() -> None:
    """Run a verb; bad input ends in exit code 2 with one line on standard error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    signal.signal(signal.SIGTERM, _terminate)
    for name in BLAS_THREADS:
        os.environ.setdefault(name, "1")
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Return the exit code of a command line."""
    from ._cli.app import Abort, UsageError, command
    from ._cli.options import FLAG_WORDS

    output = sys.stdout
    try:
        code = command()(arguments or ["--help"], prog_name="mcllo", standalone_mode=False)
        sys.stdout.flush()
    except UsageError as error:
        hint = f" See '{error.ctx.command_path} --help'." if error.ctx else ""
        message = error.format_message()
        return _fail(message + ("" if message[-1:] in ".?" else ".") + hint)
    except MclloError as error:
        return _fail(error.text(FLAG_WORDS))
    except (Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except BrokenPipeError:
        code = NO_READER
    except OSError as error:
        _silence(output)
        return _fail(f"{error.filename or ''}: {error.strerror or error}".lstrip(": "))
    except SystemExit as stop:
        if stop.code != 1:
            raise
        code = NO_READER  # typer's answer to a closed pipe
    except Exception:
        traceback.print_exc()
        return _fail("this is a mistake in mcllo, not in your input. Please report it.", MISTAKE)
    if code == INTERRUPTED:
        return _fail("interrupted", INTERRUPTED)
    if code == NO_READER:
        sys.stdout = output
        _silence(output)
    return code if isinstance(code, int) else 0


def _fail(message: str, code: int = BAD_INPUT) -> int:
    print(f"mcllo: {' '.join(message.split())}", file=sys.stderr)
    return code


def _silence(output: Any) -> None:
    """Send what is left for standard output nowhere: Python would fail on it again at its end."""
    with suppress(OSError, ValueError):
        number = output.fileno()
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)


def _terminate(*_: object) -> NoReturn:
    """Leave through the cleaning up that Ctrl-C does."""
    sys.exit(TERMINATED)


if __name__ == "__main__":
    main()
