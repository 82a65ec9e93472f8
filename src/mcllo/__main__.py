"""Run the command line: ``mcllo`` or ``python -m mcllo``.

====  ===========================================================================================
0     done
1     miscalibrated (``--gate``; with ``--strict`` also negligibly)
2     bad input, one line on standard error
3     these rows cannot tell (``--gate``)
70    a mistake in mcllo itself: one line, how to report it (``MCLLO_TRACEBACK=1`` shows more)
130   interrupted with Ctrl-C (143: terminated); no file is left half-written
141   the reader of standard output went away, as in ``mcllo ... | head``
====  ===========================================================================================

A signal ends it within two seconds (`_apps/cli/interruption`), also while modules are imported.

A standard stream that is closed is filled with nothing, so that no file takes its number and gets
what was meant for it.
"""

from __future__ import annotations

import sys
from _signal import SIG_DFL, SIGINT  # type: ignore[import-not-found]
from _signal import signal as set_signal

# Before anything else is imported: Python's own answer to Ctrl-C is lost in the callbacks of an
# import. Until `main` has a better one, it just ends the program; there is nothing to clean up.
SCRIPT_NAMES = ("mcllo", "mcllo.exe", "mcllo-script.py")
if (
    __name__ == "__main__"
    or sys.argv[0].replace("\\", "/").split("/")[-1] in SCRIPT_NAMES
):
    set_signal(SIGINT, SIG_DFL)

import gc
import io
import os
import traceback
from contextlib import suppress
from typing import Any

from ._apps.cli.interruption import INTERRUPTED, end_process, interruption
from ._utils.optional import CLI_EXTRA, check_installed
from .exceptions import MclloError

NEEDED = ("typer", "rich", "pyarrow", "jinja2", "matplotlib")
"""The packages of the extra ``cli``: a verb is refused before it works, not half-way."""

BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
"""Threads work on different rows here. Those that BLAS starts by itself wait for each other on a
busy machine, so that minutes become hours; whoever sets these variables is obeyed."""
NEW_OBJECTS = 50_000
"""Objects after which Python looks for cycles among them: hardly any is garbage before the end."""
BAD_INPUT, MISTAKE, NO_READER = 2, 70, 141
NUMBER_RULES = {
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
}
"""What an option must be, by the parser's kind of refusal."""
TRACEBACK = "MCLLO_TRACEBACK"
"""The variable that shows where a mistake of ours was made."""


def main() -> None:
    """Run a verb; bad input ends in exit code 2 with one line on standard error."""
    interruption.install()
    try:
        code = _run_program()
        interruption.finish()
    except KeyboardInterrupt:
        interruption.finish()
        code = _print_error("interrupted", INTERRUPTED)
    except SystemExit as stop:
        interruption.finish()
        code = stop.code if isinstance(stop.code, int) else NO_READER
    if interruption.exit_code is not None:
        end_process(interruption.exit_code)
    if "duckdb" not in sys.modules:  # which counts what is left, and prints it
        gc.freeze()  # else Python looks through all that is left before the system takes it at once
    sys.exit(code)


def _run_program() -> int:
    """Set up the process, run the verb, and return its exit code."""
    _replace_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    gc.set_threshold(NEW_OBJECTS)
    for name in BLAS_THREADS:
        os.environ.setdefault(name, "1")
    return run_command_line(sys.argv[1:])


def run_command_line(arguments: list[str]) -> int:
    """Return the exit code of a command line."""
    try:
        check_installed(NEEDED, CLI_EXTRA, "the command")
    except MclloError as error:
        return _print_error(str(error))
    from ._apps.cli.options import FLAG_NAMES
    from ._apps.cli.verbs import Abort, UsageError, build_parser

    output = sys.stdout
    try:
        code = build_parser()(
            arguments or ["--help"], prog_name="mcllo", standalone_mode=False
        )
        if sys.stdout is not None:
            sys.stdout.flush()
    except UsageError as error:
        hint = f" See '{error.ctx.command_path} --help'." if error.ctx else ""
        message = _explain_unparsed_number(error)
        return _print_error(message + ("" if message[-1:] in ".?" else ".") + hint)
    except MclloError as error:
        return _print_error(error.text(FLAG_NAMES))
    except (Abort, KeyboardInterrupt):
        interruption.stop_clock()
        code = INTERRUPTED
    except BrokenPipeError:
        code = NO_READER
    except OSError as error:
        _redirect_to_devnull(output)
        return _print_error(
            f"{error.filename or ''}: {error.strerror or error}".lstrip(": ")
        )
    except SystemExit as stop:
        if stop.code != 1:
            raise
        code = NO_READER  # typer's answer to a closed pipe
    except MemoryError:
        return _print_error(
            "there is not enough memory for this. Use fewer rows or classes."
        )
    except Exception as error:
        return _print_error(_describe_internal_error(error), MISTAKE)
    if code == INTERRUPTED:
        return _print_error("interrupted", INTERRUPTED)
    if code == NO_READER:
        sys.stdout = output
        _redirect_to_devnull(output)
    return code if isinstance(code, int) else 0


def _explain_unparsed_number(error: Any) -> str:
    """Return what an option is refused for; words that are no number in ours, not the parser's."""
    message: str = error.format_message()
    parser_error = error.__context__
    if not hasattr(parser_error, "errors"):
        return message
    for found in parser_error.errors():
        must_be = NUMBER_RULES.get(found["type"])
        if must_be is not None:
            ours = f"it must be {must_be}; got {found['input']!r}"
            message = message.replace(found["msg"], ours)
    return message


def _print_error(message: str, code: int = BAD_INPUT) -> int:
    if (
        interruption.exit_code is not None
    ):  # what goes wrong after a signal is its doing
        message = "interrupted"
        code = interruption.exit_code
    _print_to_stderr(f"mcllo: {' '.join(message.split())}")
    return code


def _print_to_stderr(text: str) -> None:
    from ._utils.terminal import escape_control_characters

    if sys.stderr is not None:  # else print would choose standard output
        print(escape_control_characters(text), file=sys.stderr)


def _describe_internal_error(error: Exception) -> str:
    """Return what went wrong where, and how to report it."""
    if os.environ.get(TRACEBACK):
        _print_to_stderr(traceback.format_exc().rstrip())
    place = traceback.extract_tb(error.__traceback__)[-1]
    what = traceback.format_exception_only(error)[-1].strip()
    file = "/".join(place.filename.replace(os.sep, "/").split("/")[-2:])
    return (
        f"{what[:200].rstrip('.')} ({file}, line {place.lineno}). This is a mistake in mcllo, not "
        f"in your input. Please report it as an issue, with what you typed and what {TRACEBACK}=1 "
        "shows before this line."
    )


def _replace_closed_streams() -> None:
    """Open nothing in the place of closed standard streams; what is said is then lost."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(
                os.open(os.devnull, os.O_RDWR), True
            )  # the lowest free number
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for good


def _redirect_to_devnull(output: Any) -> None:
    """Send what is left for standard output nowhere: Python would fail on it again at its end."""
    with suppress(OSError, ValueError, AttributeError):
        number = output.fileno()
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)


if __name__ == "__main__":
    main()
