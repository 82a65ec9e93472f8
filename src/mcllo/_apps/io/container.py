"""A file as bytes: opened again and again, also where it came through a pipe.

===============  =================================================================================
kind             what it holds, by its first bytes (`_apps/io/format_detection`)
text             of a CSV file, unpacked and as UTF-8
Parquet, Arrow   opened with pyarrow, read in blocks; never mapped, as a mapped file that is cut
                 short ends the process
``-``, a pipe    copied to a temporary file without a name, which is gone with the process
its name         any bytes, also those that are no UTF-8
changes          a file that another program writes to meanwhile is refused: what was read of it
                 would be of no time
===============  =================================================================================
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

from ..._utils.atomic_files import StrPath
from ..._utils.optional import CLI_EXTRA, check_installed, needed
from ..._utils.terminal import standard_input
from ...exceptions import FileFormatError
from .format_detection import detect_compression, detect_format, first_bytes

N_HEAD_BYTES = 4096
"""First bytes of a file that show its kind."""
N_BYTES_PER_READ = 1 << 20
"""Bytes of a pipe, of packed text, or of a column of Parquet, that are read at a time."""


class Container:
    """A file or standard input; `name` is what messages call it, `spool` the copy of a pipe."""

    def __init__(self, path: StrPath) -> None:
        check_installed(("pyarrow",), CLI_EXTRA)
        self.name = "standard input" if str(path) == "-" else str(path)
        self.path, self.encoding = Path(path), "utf-8"
        self.spool = self._spooled()
        head = self._head()
        self._seen = self._state()
        self.compression = detect_compression(head)
        with self._file() as file:
            self.kind = "csv" if self.compression else detect_format(head, file, self.name)

    @contextmanager
    def parquet(self) -> Iterator[Any]:
        """Open a Parquet file; unlike pyarrow, also close the copy of a pipe.

        Row groups are not buffered beforehand, and columns of a group a piece at a time: memory
        would grow with the file.
        """
        from pyarrow import parquet

        with self._raw() as raw:
            options = {"pre_buffer": False, "page_checksum_verification": True}
            with parquet.ParquetFile(raw, **options, buffer_size=N_BYTES_PER_READ) as file:
                yield file

    @contextmanager
    def arrow(self) -> Iterator[Any]:
        """Open an Arrow file (Feather) or stream."""
        from pyarrow import ipc

        with self._raw() as raw:
            head = raw.read(6)
            raw.seek(0)
            yield ipc.open_file(raw) if head == b"ARROW1" else ipc.open_stream(raw)

    def _file(self) -> Any:
        """Give the path, or the copy of a pipe, for as long as a ``with`` block lasts."""
        return nullcontext(self.path) if self.spool is None else self._reopened()

    def _raw(self) -> Any:
        """Return the bytes for pyarrow, which takes names as bytes too."""
        import pyarrow as pa

        return pa.OSFile(os.fsencode(self.path)) if self.spool is None else self._reopened()

    def stream(self) -> Any:
        """Return the text of a CSV file as UTF-8."""
        import pyarrow as pa

        stream = pa.input_stream(self._raw(), compression=self.compression)
        if self.encoding == "utf-8":
            return stream
        return pa.transcoding_input_stream(stream, self.encoding, "utf-8")

    @property
    def n_packed(self) -> int:
        """Bytes of the file as it is."""
        return os.fstat(self.spool.fileno()).st_size if self.spool else self.path.stat().st_size

    def measure_text(self, n_bytes: float, n_lines: float) -> tuple[float, float]:
        """Return how many bytes and line ends text holds; not much further than so many of each."""
        with self._reopened() as file:
            return measure_text(file, self.compression, n_bytes, n_lines)

    @property
    def changed(self) -> bool:
        """Whether the file is another one than when it was opened first."""
        return self._state() != self._seen

    def refuse_changed(self) -> None:
        """Refuse a file that another program wrote to while it was read."""
        if self.changed:
            raise changed_meanwhile(self.name)

    def _state(self) -> tuple[int, ...] | None:
        if self.spool is not None:
            return None
        try:
            found = self.path.stat()
        except OSError:
            return ()
        return found.st_ino, found.st_size, found.st_mtime_ns

    def _reopened(self) -> IO[bytes]:
        """Return the file, or the copy of a pipe, from its beginning."""
        if self.spool is None:
            return self.path.open("rb")
        file = os.fdopen(os.dup(self.spool.fileno()), "rb")
        file.seek(0)
        return file

    def _spooled(self) -> IO[bytes] | None:
        """Return a copy of standard input or of a named pipe; None for a file."""
        standard = self.name == "standard input"
        if not standard and (not self.path.exists() or self.path.is_file() or self.path.is_dir()):
            return None
        copy = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as this object
        weakref.finalize(self, copy.close)
        with nullcontext(standard_input().buffer) if standard else self.path.open("rb") as pipe:
            shutil.copyfileobj(pipe, copy, N_BYTES_PER_READ)
        copy.flush()
        return copy

    def _head(self) -> bytes:
        if self.spool is None:
            return first_bytes(self.path, N_HEAD_BYTES)
        with self._reopened() as file:
            return file.read(N_HEAD_BYTES)


def changed_meanwhile(name: str) -> FileFormatError:
    """Return the error of a file that did not stay as it was."""
    return FileFormatError(
        f"{name} must stay as it is while it is read; another program has written to it.",
        remedy="Run this again when it is done.",
    )


def unpacked_size(path: Path, enough: float) -> float:
    """Return about how many bytes a file holds unpacked; of compressed text it counts to `enough`.

    What cannot be read has the size it has: whoever reads it says why.
    """
    pa, parquet = needed("pyarrow", CLI_EXTRA), needed("pyarrow.parquet", CLI_EXTRA)
    packed, head = float(path.stat().st_size), first_bytes(path, N_HEAD_BYTES)
    try:
        with path.open("rb") as file:
            if head.startswith(b"PAR1"):
                facts = parquet.read_metadata(file)
                return max(packed, 8.0 * facts.num_rows * facts.num_columns)
            if compression := detect_compression(head):
                return max(packed, measure_text(file, compression, enough)[0])
    except (pa.ArrowException, OSError, UnicodeError):
        pass
    return packed


def measure_text(
    file: IO[bytes], compression: str | None, n_bytes: float, n_lines: float = math.inf
) -> tuple[float, float]:
    """Return how many bytes and line ends text holds unpacked; not further than so many of each."""
    import pyarrow as pa

    size = lines = 0.0
    with pa.input_stream(file, compression=compression) as stream:
        while size <= n_bytes and lines <= n_lines and (block := stream.read(N_BYTES_PER_READ)):
            size, lines = size + len(block), lines + block.count(b"\n")
    return size, lines
