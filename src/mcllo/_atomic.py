"""Write a file under a temporary name and rename it, so that a crash leaves the old file whole."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path beside `path`; rename it to `path` when the block ends well."""
    target = Path(path)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
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


def _mode(target: Path) -> int:
    """Return the old file's permissions, or those a new file would get."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` as UTF-8, atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
