"""Write a file under a temporary name and rename it, so that a crash leaves the old file whole.

===============  ================================================================================
before           what cannot be written is refused before the work begins
meanwhile        a hidden file beside the old one, locked for as long as its process lives
at the end       it is on the disk (fsync) before it takes the old one's name
a killed writer  leaves its hidden file, and no lock: the next write to that name removes it
a full disk      one sentence; the old file stays
links            are followed to their file
no files         (``/dev/null``, a named pipe) are written to directly
scratch          a temporary folder is locked too; the next one removes those of killed processes
===============  ================================================================================

`progress` shows on a terminal and in a notebook, and is silent in a pipe.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from ..exceptions import FileFormatError
from .notebook import has_progress_display, show_progress
from .optional import is_installed
from .terminal import is_terminal

StrPath = str | os.PathLike[str]

TEMPORARY_SUFFIX = ".tmp"
SCRATCH_PREFIX = "mcllo-rows-"
DISK_FULL_ERRORS = {
    getattr(errno, name)
    for name in ("ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EIO")
    if hasattr(errno, name)
}
"""What a system says when the disk takes no more."""


@contextmanager
def replace_atomically(path: StrPath) -> Iterator[Path]:
    """Give a temporary path beside `path`; rename it to `path` when the block ends well."""
    check_writable(path)
    target = Path(os.path.realpath(path))
    if _is_device_or_pipe(target):
        yield target
        return
    try:
        handle, temporary = _open_temporary(target)
    except OSError as error:
        raise FileFormatError(
            f"{target} cannot be written: {error.strerror}."
        ) from None
    _unfinished.add(temporary)
    try:
        yield temporary
        _sync_to_disk(temporary)
        os.chmod(temporary, _permissions_for(target))
        if os.name == "nt":  # where an open file cannot be renamed
            handle = _close_handle(handle)
        os.replace(temporary, target)
    except OSError as error:
        handle = _remove_temporary(handle, temporary)
        code = error.errno or 0
        if code not in DISK_FULL_ERRORS:
            raise
        raise FileFormatError(
            f"{path} cannot be written: {os.strerror(code)}.",
            remedy="Make room or choose another place; the old file, if any, is as it was.",
        ) from None
    except BaseException:
        handle = _remove_temporary(handle, temporary)
        raise
    finally:
        _unfinished.discard(temporary)
        _close_handle(handle)
    with suppress(
        OSError
    ):  # the new file is whole, whether or not its name is on the disk yet
        _sync_to_disk(target.parent)


def _open_temporary(target: Path) -> tuple[int, Path]:
    """Return a new hidden file beside `target`, open and locked; the lock ends with the process."""
    prefix = f".{target.name[:40]}.mcllo-"
    _remove_abandoned(target.parent, prefix)
    while True:
        handle, name = tempfile.mkstemp(
            prefix=prefix, suffix=TEMPORARY_SUFFIX, dir=target.parent
        )
        _try_lock(handle, wait=True)
        if os.path.exists(name):
            return handle, Path(name)
        os.close(
            handle
        )  # before it was locked, another writer took it for a dead one's


def _remove_abandoned(folder: Path, prefix: str) -> None:
    """Remove what killed writers of a name left: hidden files that nobody has locked."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(prefix) and entry.name.endswith(TEMPORARY_SUFFIX):
                with suppress(OSError), _lock_if_abandoned(entry.path) as dead:
                    if dead:
                        os.unlink(entry.path)


@contextmanager
def _lock_if_abandoned(path: str) -> Iterator[bool]:
    """Give whether nobody has locked a file; it is then locked inside the block."""
    try:
        handle = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except OSError:  # gone by now, or another user's
        yield False
        return
    try:
        yield _try_lock(handle, wait=False)
    finally:
        os.close(handle)


class ScratchFolder:
    """A temporary folder, removed when this object goes, or else by the next one that is made."""

    def __init__(self) -> None:
        self._remove_abandoned(Path(tempfile.gettempdir()))
        while True:
            self.folder = Path(tempfile.mkdtemp(prefix=SCRATCH_PREFIX))
            lock = self.folder / "lock"
            handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
            _try_lock(handle, wait=True)
            if lock.exists():
                break
            os.close(
                handle
            )  # before it was locked, another process took it for a dead one's
        self._finalizer = weakref.finalize(self, _remove_folder, self.folder, handle)
        _unfinished.add(self.folder)

    def close(self) -> None:
        """Give the space back."""
        self._finalizer()

    @staticmethod
    def _remove_abandoned(parent: Path) -> None:
        for lock in parent.glob(f"{SCRATCH_PREFIX}*/lock"):
            with suppress(OSError), _lock_if_abandoned(str(lock)) as dead:
                if dead:
                    shutil.rmtree(lock.parent, ignore_errors=True)


def _remove_folder(folder: Path, handle: int) -> None:
    _unfinished.discard(folder)
    os.close(handle)
    shutil.rmtree(folder, ignore_errors=True)


_unfinished: set[Path] = set()
"""Temporary files and folders of this process that are there now."""


def remove_unfinished() -> None:
    """Remove temporary files and folders, where the process ends without coming back to them."""
    for path in list(_unfinished):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()


def _try_lock(handle: int, *, wait: bool) -> bool:
    """Lock a file, and return whether it is locked; it is not where the system has no such lock."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def _sync_to_disk(path: Path) -> None:
    """Wait until a file or the names of a folder are on the disk, not only on their way to it."""
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system without it
            raise
    finally:
        os.close(handle)


def _remove_temporary(handle: int, temporary: Path) -> int:
    # Windows removes no open file; elsewhere the lock is kept until nothing is left to sweep
    if os.name == "nt":
        handle = _close_handle(handle)
    with suppress(FileNotFoundError):
        temporary.unlink()
    return handle


def _close_handle(handle: int) -> int:
    if handle >= 0:
        os.close(handle)
    return -1


def check_writable(path: StrPath) -> None:
    """Refuse a path that cannot be written, before the work whose result it should hold."""
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise FileFormatError(
            f"{path} cannot be written: it is a link that leads back to itself. Remove it."
        )
    if target.is_dir():
        raise FileFormatError(
            f"{path} cannot be written: it is a directory. Name a file in it."
        )
    if not target.parent.is_dir():
        raise FileFormatError(
            f"{path} cannot be written: there is no directory {target.parent}. Make it first."
        )
    # the new file is made beside the old one, so its folder must be writable
    written = target if _is_device_or_pipe(target) else target.parent
    if not os.access(written, os.W_OK):
        raise FileFormatError(
            f"{path} cannot be written: permission was denied. Choose another place."
        )


def write_text(path: StrPath, text: str) -> None:
    r"""Write `text` as UTF-8, atomically; what is no letter (of a file's name) as ``\udcff``."""
    with replace_atomically(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def _is_device_or_pipe(target: Path) -> bool:
    return target.exists() and not target.is_file()


def _permissions_for(target: Path) -> int:
    """Return the old file's permissions, or those a new file would get."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)  # the one way to read it is to set it
    os.umask(mask)
    return 0o666 & ~mask


@contextmanager
def progress(
    description: str, unit: str = "rows", *, out: object = None
) -> Iterator[Callable[[int], None]]:
    """Give a function that counts work done; shown on standard error when that is a terminal.

    A notebook shows it under the cell (`_utils/notebook`). Nothing is shown while `out` is ``-``,
    standard output, and that is a terminal too, nor inside other work that is shown.
    """
    if has_progress_display():
        with show_progress(description, unit) as advance:
            yield advance
        return
    hidden = str(out) == "-" and is_terminal(sys.stdout)
    if (
        _shown.get()
        or hidden
        or not is_terminal(sys.stderr)
        or not is_installed("rich")
    ):
        yield lambda amount: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} " + unit),
        TimeElapsedColumn(),
    )
    token = _shown.set(True)
    try:
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(description, total=None)
            yield lambda amount: bar.advance(task, amount)
    finally:
        _shown.reset(token)


_shown = ContextVar("shown", default=False)
