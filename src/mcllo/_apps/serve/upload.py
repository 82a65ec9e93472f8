"""The private folder: made for one run, gone with it, whichever way it ends.

===============  ================================================================================
made             in the system's folder for temporary files, readable by its owner alone (0700)
the end          Ctrl-C, a signal or an error: removed on the way out
a crash          a keeper, a process of a few lines, waits for the end of a pipe that only we hold,
                 and removes the folder when we are gone without having done so
power is cut     the next run sweeps: a folder whose lock nobody holds belongs to nobody
===============  ================================================================================

A file that is dropped -> a file in the private folder, as it arrives and never whole in memory.

==========  =====================================================================================
bytes       of the first part that has a file name go straight to the disk; other parts are left
the name    as near to the given one as is safe (`_apps/serve/jobs`)
too large   no more is written; the rest is read and forgotten, so that the browser gets to read the
            page that says so
==========  =====================================================================================
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from ...exceptions import FileFormatError
from .guard import Limits
from .jobs import safe_name

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


NO_FILE = "a file must be chosen; none was sent. Choose one, or drop it on the page."


class Upload:
    """Takes the parts of a form as they come; the first file among them is written to `folder`."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.folder, self.limits = folder, limits
        self.name = ""
        self.size = 0
        self._header, self._value = b"", b""
        self._disposition = b""
        self._file: IO[bytes] | None = None

    @property
    def callbacks(self) -> dict[str, Any]:
        """What the parser of the form calls."""
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._field,
            "on_header_value": self._take,
            "on_header_end": self._end_header,
            "on_headers_finished": self._start,
            "on_part_data": self._write,
            "on_part_end": self._close,
        }

    def _begin(self) -> None:
        self._header = self._value = self._disposition = b""

    def _field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _take(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _end_header(self) -> None:
        if self._header.lower() == b"content-disposition":
            self._disposition = self._value
        self._header = self._value = b""

    def _start(self) -> None:
        from python_multipart.multipart import parse_options_header

        given = parse_options_header(self._disposition)[1].get(b"filename", b"")
        if given and not self.name:
            self.name = safe_name(given.decode("utf-8", "replace"))
            self._file = (self.folder / self.name).open("xb")

    def _write(self, data: bytes, start: int, end: int) -> None:
        if self._file is None:
            return
        self.size += end - start
        if self.size <= self.limits.n_bytes:
            self._file.write(data[start:end])

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


async def receive_file(
    chunks: AsyncIterator[bytes], content_type: str, folder: Path, limits: Limits
) -> str:
    """Write the file of a form to `folder` as it arrives; return its name."""
    from python_multipart.exceptions import FormParserError
    from python_multipart.multipart import MultipartParser, parse_options_header

    kind, options = parse_options_header(content_type)
    upload = Upload(folder, limits)
    broken = kind != b"multipart/form-data" or b"boundary" not in options
    parser = None if broken else MultipartParser(options[b"boundary"], upload.callbacks)
    try:
        async for chunk in chunks:
            if parser is not None and upload.size <= limits.n_bytes:
                parser.write(chunk)
    except FormParserError:
        raise FileFormatError(NO_FILE) from None
    finally:
        upload._close()
    if upload.size > limits.n_bytes:
        raise limits.too_large()
    if not upload.name:
        raise FileFormatError(NO_FILE)
    return upload.name
