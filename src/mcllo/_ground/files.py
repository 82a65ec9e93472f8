"""Write a file under a temporary name and rename it, so that a crash leaves the old file whole.

What cannot be written is refused before the work begins. A link is followed to its file; what is no
file (``/dev/null``, a named pipe) is written to directly. `progress` shows on a terminal, and is
silent in a pipe.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..exceptions import FileFormatError

StrPath = str | os.PathLike[str]


@contextmanager
def replacing(path: StrPath) -> Iterator[Path]:
    """Give a temporary path beside `path`; rename it to `path` when the block ends well."""
    check_writable(path)
    target = Path(os.path.realpath(path))
    if _is_special(target):
        yield target
        return
    try:
        handle, name = tempfile.mkstemp(
            prefix=f".{target.name[:40]}.", suffix=".tmp", dir=target.parent
        )
    except OSError as error:
        raise FileFormatError(f"{target} cannot be written: {error.strerror}.") from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        os.chmod(temporary, _mode(target))
        os.replace(temporary, target)
    except BaseException:
        with suppress(FileNotFoundError):
            temporary.unlink()
        raise


def check_writable(path: StrPath) -> None:
    """Refuse a path that cannot be written, before the work whose result it should hold."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise FileFormatError(f"{path} cannot be written: it is a directory. Name a file in it.")
    if not target.parent.is_dir():
        raise FileFormatError(
            f"{path} cannot be written: there is no directory {target.parent}. Make it first."
        )
    if not os.access(target if _is_special(target) else target.parent, os.W_OK):
        raise FileFormatError(
            f"{path} cannot be written: permission was denied. Choose another place."
        )


def write_text(path: StrPath, text: str) -> None:
    """Write `text` as UTF-8, atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _is_special(target: Path) -> bool:
    return target.exists() and not target.is_file()


def _mode(target: Path) -> int:
    """Return the old file's permissions, or those a new file would get."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


@contextmanager
def progress(
    description: str, unit: str = "rows", *, out: object = None
) -> Iterator[Callable[[int], None]]:
    """Give a function that counts work done; shown on standard error when that is a terminal.

    Nothing is shown while `out` is ``-``, standard output, and that is a terminal too.
    """
    if not sys.stderr.isatty() or (str(out) == "-" and sys.stdout.isatty()):
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
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=None)
        yield lambda amount: bar.advance(task, amount)
