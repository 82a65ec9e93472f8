"""Ctrl-C and SIGTERM end the command line within two seconds, whatever it is doing.

A signal raises an exception in the main thread, which removes unfinished files on its way out. That
alone is not enough: what is raised inside the import system's callbacks, `__del__` or code that
catches everything is lost, and the verb goes on. So a clock (SIGALRM) looks again until the verb
has ended:

==================================  ==============================================================
while modules are imported          wait, at most `IMPORT_SECONDS`: an import that breaks off may
                                    be swallowed, or leave half a module behind
the exception is on its way         leave it alone: files are being removed
it is not (somebody caught it)      raise it again
`CLEANUP_SECONDS` after the signal  raise it once more, though cleaning is going on: it waits for
                                    a thread or a process
`LAST_SECONDS` after the signal     remove unfinished files here, and end the process
==================================  ==============================================================

Where there is no such clock (Windows) the exception is raised once.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from types import FrameType
from typing import Any, NoReturn

INTERRUPTED, TERMINATED = 130, 143
EXIT_CODES = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}
TICK_SECONDS = 0.05
IMPORT_SECONDS = 0.8
CLEANUP_SECONDS = 1.0
LAST_SECONDS = 1.6
HAS_CLOCK = hasattr(signal, "setitimer")


class Interruption:
    """What has come so far; `exit_code` is None before a signal."""

    def __init__(self) -> None:
        self.exit_code: int | None = None
        self._received_at = 0.0
        self._is_forced = False
        self._is_over = False

    def install(self) -> None:
        """Answer both signals from here on."""
        for number in EXIT_CODES:
            signal.signal(number, self._on_signal)
        if HAS_CLOCK:
            signal.signal(signal.SIGALRM, self._on_tick)

    def settle(self) -> None:
        """Take what has come for answered: the verb ends by itself (`serve`)."""
        self.stop_clock()
        self.exit_code = None

    def stop_clock(self) -> None:
        """Raise nothing more: the exception has arrived, or the verb is over."""
        self._is_over = True
        if HAS_CLOCK:
            signal.setitimer(signal.ITIMER_REAL, 0.0)

    def finish(self) -> None:
        """Let a signal just end the process from here on."""
        self.stop_clock()
        for number in EXIT_CODES:
            signal.signal(number, signal.SIG_DFL)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.exit_code is None:
            self.exit_code = EXIT_CODES[signal.Signals(number)]
            self._received_at = time.monotonic()
            sys.unraisablehook = self._report_unraisable
        self._on_tick(number, frame)

    def _on_tick(self, _: int, frame: FrameType | None) -> None:
        """Raise, or look again a little later."""
        if self._is_over or self.exit_code is None:
            return
        if not HAS_CLOCK:
            self._raise()
        elapsed = time.monotonic() - self._received_at
        signal.setitimer(signal.ITIMER_REAL, TICK_SECONDS)
        if elapsed >= LAST_SECONDS:
            self._end_process()
        if _is_importing(frame) and elapsed < IMPORT_SECONDS:
            return
        if _is_unwinding(sys.exception()):
            if elapsed < CLEANUP_SECONDS or self._is_forced:
                return
            self._is_forced = True
        self._raise()

    def _raise(self) -> NoReturn:
        if self.exit_code == INTERRUPTED:
            raise KeyboardInterrupt
        raise SystemExit(self.exit_code)

    def _end_process(self) -> NoReturn:
        if self.exit_code == INTERRUPTED:
            os.write(2, b"mcllo: interrupted\n")
        end_process(self.exit_code or 0)

    @staticmethod
    def _report_unraisable(unraisable: Any) -> None:
        """Say nothing of our own exception where Python could not raise it; it is raised again."""
        if not isinstance(unraisable.exc_value, (KeyboardInterrupt, SystemExit)):
            sys.__unraisablehook__(unraisable)


def end_process(exit_code: int) -> NoReturn:
    """Remove what is unfinished, and end without waiting for threads and destructors."""
    files = sys.modules.get("mcllo._utils.atomic_files")
    if files is not None:
        files.remove_unfinished()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(exit_code)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _is_unwinding(error: BaseException | None) -> bool:
    """Whether our exception is being handled: also where another was raised on its way."""
    while error is not None:
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            return True
        error = error.__context__
    return False


interruption = Interruption()
"""The one of this process; `mcllo.__main__` installs it."""
