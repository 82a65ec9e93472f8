"""Where tables are kept: a private folder for one run, and the files that are dropped into it.

The private folder is gone with the run, whichever way that ends:

===============  ================================================================================
made             in the system's folder for temporary files, readable by its owner alone (0700)
the end          Ctrl-C, a signal or an error: removed on the way out
a crash          a keeper, a process of a few lines, waits for the end of a pipe that only we hold,
                 and removes the folder when we are gone without having done so
power is cut     the next run sweeps: a folder whose lock nobody holds belongs to nobody
===============  ================================================================================

A file that is dropped comes in as the parts of a form:

===============  ================================================================================
bytes            Starlette's parser keeps them in a temporary file without a name, as they arrive
                 and never whole in memory; the first part that has a file name is then copied
the name         as near to the given one as any system can hold: no folders, no letters that steer
                 a terminal or the direction of text, no dot or dash in front, not too long, not a
                 name of ours
too large        no more is written; the rest is read and forgotten, so that the browser gets to
                 read the page that says so
===============  ================================================================================
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import unicodedata
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from ...exceptions import FileFormatError
from ..report.html import strip_control_characters
from .limits import ServerLimits
from .worker import MODEL, RECALIBRATED_STEM, RECALIBRATIONS, REPORT

NAME = "mcllo-serve-"
LOCK = "in-use"
MAX_SECONDS_WITHOUT_LOCK = 60.0
"""Seconds in which a folder may not have its lock yet: a round number, far more than it takes."""
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
def private_temporary_folder(parent_folder: Path | None = None) -> Iterator[Path]:
    """Give a folder that nobody else can read, and that is gone when the block or we end."""
    parent_folder = (
        Path(tempfile.gettempdir()) if parent_folder is None else parent_folder
    )
    remove_abandoned_folders(parent_folder)
    folder = Path(tempfile.mkdtemp(prefix=NAME, dir=parent_folder))
    lock = _open_locked_file(folder / LOCK)
    keeper = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", KEEPER, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=parent_folder,
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


def remove_abandoned_folders(parent_folder: Path) -> list[Path]:
    """Remove the folders of runs that ended without removing theirs; return them."""
    removed = []
    for folder in parent_folder.glob(f"{NAME}*"):
        with suppress(OSError):  # somebody else's, or gone by now
            old = time.time() - folder.stat().st_mtime > MAX_SECONDS_WITHOUT_LOCK
            if (
                old
                and _is_own(folder)
                and folder.is_dir()
                and not folder.is_symlink()
                and not is_folder_locked(folder)
            ):
                shutil.rmtree(folder, ignore_errors=True)
                removed.append(folder)
    return removed


def _is_own(folder: Path) -> bool:
    """Whether a folder belongs to who runs this; others' are theirs to remove."""
    if sys.platform == "win32":
        return True
    return folder.stat(follow_symlinks=False).st_uid == os.geteuid()


if sys.platform == "win32":

    def _open_locked_file(path: Path) -> IO[bytes]:
        return path.open("wb")  # what is open cannot be removed

    def is_folder_locked(folder: Path) -> bool:
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

    def _open_locked_file(path: Path) -> IO[bytes]:
        lock = path.open("wb")
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return lock

    def is_folder_locked(folder: Path) -> bool:
        """Whether a process holds the lock of a folder.

        Anybody may have put something in its place where all share a folder: it is opened without
        waiting for the other end of a pipe, and no link is followed.
        """
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            lock = os.open(folder / LOCK, flags)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(lock)
        return False


PARSER_ERRORS = (KeyError, ValueError)
"""What the parser says of a form without a boundary, or with one that is too long."""
FORM_BYTES = 10_000
"""What a form may add to its file, in bytes: a browser adds about 200."""


async def receive_file(
    chunks: AsyncIterator[bytes], content_type: str, folder: Path, limits: ServerLimits
) -> str:
    """Write the file of a form to `folder`; return its name."""
    stream = limit_upload_bytes(chunks, limits)
    try:
        parser = MultiPartParser(Headers({"content-type": content_type}), stream)
        form = await parser.parse()
    except FileFormatError:  # it is too large
        raise
    except (MultiPartException, *PARSER_ERRORS):
        raise no_file_error() from None
    try:
        return await run_in_threadpool(
            _save_first_file, form.multi_items(), folder, limits
        )
    finally:
        await form.close()


async def limit_upload_bytes(
    chunks: AsyncIterator[bytes], limits: ServerLimits
) -> AsyncIterator[bytes]:
    """Pass on the chunks of a form; refuse it, read to its end, when its file is too large.

    Starlette's parser bounds only the parts of a form that are no files.
    """
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size <= limits.n_bytes + FORM_BYTES:
            yield chunk
    if size > limits.n_bytes + FORM_BYTES:
        raise limits.file_too_large_error()


def _save_first_file(
    form_fields: list[tuple[str, str | UploadFile]], folder: Path, limits: ServerLimits
) -> str:
    """Copy the first file of a form to `folder`, and return its name."""
    for _, value in form_fields:
        if isinstance(value, str) or not value.filename:  # no file was chosen
            continue
        if value.size > limits.n_bytes:
            raise limits.file_too_large_error()
        name = safe_file_name(value.filename)
        with (folder / name).open("xb") as target:
            shutil.copyfileobj(value.file, target)
        return name
    raise no_file_error()


def no_file_error() -> FileFormatError:
    """Return the refusal of a form that holds no file."""
    return FileFormatError(
        "a file must be chosen; none was sent. Choose one, or drop it on the page."
    )


MAX_NAME_BYTES = 80
"""Bytes of a file's name: a round number, far below the 255 of most systems."""
FORBIDDEN_CHARS = '<>:"/\\|?*\n'
"""What some system does not have in a name."""
DEFAULT_NAME = "table"
RESULT_STEMS = {
    Path(name).stem for name in (REPORT, RECALIBRATIONS, MODEL, RECALIBRATED_STEM)
}


def safe_file_name(original_name: str) -> str:
    r"""Return a name for a file that is as near to the given one as is safe.

    Examples
    --------
    >>> names = ["C:\\data\\..\\fore casts.csv", "--html.csv", "report.csv"]
    >>> tuple(safe_file_name(name) for name in names)
    ('fore casts.csv', 'html.csv', 'my report.csv')
    """
    path = unicodedata.normalize(
        "NFC", strip_control_characters(original_name)
    ).replace("\\", "/")
    name = path.split("/")[-1]
    for char in FORBIDDEN_CHARS:
        name = name.replace(char, "_")
    name = name.strip().lstrip(".-~ ").rstrip(". ")
    stem, dot, ending = name.rpartition(".")
    is_ending = len(ending) <= 8  # a longer one is a name with a dot in it
    if not stem or not is_ending:
        stem = name
        dot = ending = ""
    # by bytes, because that is what file systems count, but never through a character
    while len(f"{stem}{dot}{ending}".encode()) > MAX_NAME_BYTES:
        stem = stem[:-1]
    stem = stem.rstrip() or DEFAULT_NAME
    if stem.split(".")[0].lower() in RESULT_STEMS:
        stem = f"my {stem}"
    return f"{stem}{dot}{ending}"
