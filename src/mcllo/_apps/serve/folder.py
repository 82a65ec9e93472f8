"""The private folder: made for one run, gone with it, whichever way it ends.

===============  ================================================================================
made             in the system's folder for temporary files, readable by its owner alone (0700)
the end          Ctrl-C, a signal or an error: removed on the way out
a crash          a keeper, a process of a few lines, waits for the end of a pipe that only we hold,
                 and removes the folder when we are gone without having done so
power is cut     the next run sweeps: a folder whose lock nobody holds belongs to nobody
===============  ================================================================================
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

NAME = "mcllo-serve-"
LOCK = "in-use"
MAX_SECONDS_WITHOUT_LOCK = 60.0
"""Seconds in which a folder may not have its lock yet."""
KEEPER = """
import shutil, sys, time
from pathlib import Path
sys.stdin.buffer.read()
for _ in range(100):
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    if not Path(sys.argv[1]).exists():
        break
    time.sleep(0.1)
"""
"""Waits for the end of the process that started it; workers may still write for a moment."""


@contextmanager
def private_folder(parent: Path | None = None) -> Iterator[Path]:
    """Give a folder that nobody else can read, and that is gone when the block or we end."""
    parent = Path(tempfile.gettempdir()) if parent is None else parent
    sweep(parent)
    folder = Path(tempfile.mkdtemp(prefix=NAME, dir=parent))
    lock = _locked(folder / LOCK)
    keeper = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", KEEPER, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=parent,
        start_new_session=True,  # Ctrl-C is for us
    )
    try:
        yield folder
    finally:
        lock.close()
        shutil.rmtree(folder, ignore_errors=True)
        assert keeper.stdin is not None
        with suppress(OSError):
            keeper.stdin.close()
        keeper.wait()


def sweep(parent: Path) -> list[Path]:
    """Remove the folders of runs that ended without removing theirs; return them."""
    gone = []
    for folder in parent.glob(f"{NAME}*"):
        with suppress(OSError):  # somebody else's, or gone by now
            old = time.time() - folder.stat().st_mtime > MAX_SECONDS_WITHOUT_LOCK
            if old and folder.is_dir() and not folder.is_symlink() and not in_use(folder):
                shutil.rmtree(folder, ignore_errors=True)
                gone.append(folder)
    return gone


if sys.platform == "win32":

    def _locked(path: Path) -> IO[bytes]:
        return path.open("wb")  # what is open cannot be removed

    def in_use(folder: Path) -> bool:
        """Whether a process holds the lock of a folder."""
        try:
            os.remove(folder / LOCK)
        except FileNotFoundError:
            return False
        except PermissionError:
            return True
        return False

else:
    import fcntl

    def _locked(path: Path) -> IO[bytes]:
        lock = path.open("wb")
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return lock

    def in_use(folder: Path) -> bool:
        """Whether a process holds the lock of a folder."""
        try:
            with (folder / LOCK).open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False
