"""A file as bytes: what kind of table it holds, and opening it again and again.

==============  ===================================================================================
kind            csv, parquet, arrow (Feather or an Arrow stream), sheet (.xlsx), array (.npy, .npz),
                json (an object a line), told from the first bytes and never from the name; anything
                else is refused by what it looks like
compression     gzip or zstd, of CSV
encoding        of text: UTF-8; UTF-16 by its mark, or by where its zeros stand; Windows-1252 or
                Latin-1 where the first 16 MB are no UTF-8. Other than UTF-8 it is a guess, and said
``-``, a pipe   copied to a temporary file without a name, which is gone with the process
name            any bytes, also those that are no UTF-8
changes         a file that another program writes to meanwhile is refused: what was read of it
                would be of no time
==============  ===================================================================================

A file is opened once for all that its beginning shows (`InputFile.keep_open`), and once more for
its rows. Parquet and Arrow are never mapped: a mapped file that is cut short ends the process.
"""

from __future__ import annotations

import codecs
import math
import os
import shutil
import tempfile
import weakref
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

from ..._utils.atomic_files import StrPath
from ..._utils.optional import CLI_EXTRA, check_installed
from ..._utils.terminal import standard_input
from ...exceptions import FileFormatError

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
ZIP = b"PK\x03\x04"
FORMAT_MAGIC = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",
    b"\x93NUMPY": "array",
}
"""What is read beside text, by its first bytes."""
COMPRESSION_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
UNSUPPORTED_MAGIC = {
    b"\xd0\xcf\x11\xe0": "an old Excel file",
    **{bytes([0x80, protocol]): "a pickle" for protocol in (2, 3, 4, 5)},
    b"FEA1": "an old Feather file",
    b"\x89HDF": "an HDF5 file",
    b"SQLite format 3": "an SQLite database",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ": "an xz archive",
    b"%PDF": "a PDF",
    b"{": "JSON",
    b"[": "JSON",
    b"<": "HTML or XML",
}
UNSUPPORTED_COMPRESSED_MAGIC = {
    **{magic: f"compressed {kind}" for magic, kind in FORMAT_MAGIC.items()},
    ZIP: "a compressed archive",
    **dict.fromkeys(COMPRESSION_MAGIC, "compressed twice"),
    **UNSUPPORTED_MAGIC,
}
"""What is not read out of a compressed file."""
MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r"))
UNDEFINED_BYTES = b"\x81\x8d\x8f\x90\x9d"
"""Bytes that Windows-1252 has no letter for."""
ENCODING_NAMES = {
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16 (without a mark)",
    "utf-16-be": "UTF-16 (without a mark)",
    "cp1252": "Windows-1252 (Western European, Latin-1)",
    "latin-1": "Latin-1 (Western European)",
}
"""What a guessed encoding is called."""
N_HEAD_BYTES = 4096
"""First bytes of a file that show its kind: a round number, a page of memory."""
N_BYTES_PER_READ = 1 << 20
"""Bytes of a pipe, of packed text, or of a column of Parquet, that are read at a time: round."""


def open_file(path: Path) -> IO[bytes]:
    """Open a file to read its bytes; what cannot be opened is refused in one sentence."""
    try:
        return path.open("rb")
    except FileNotFoundError:
        import difflib

        folder = path.parent
        names = sorted(os.listdir(folder)) if folder.is_dir() else []
        close = difflib.get_close_matches(path.name, names, n=1)
        hint = (
            f"; did you mean {str(folder / close[0])!r}?"
            if close
            else ". Check the name."
        )
        raise FileFormatError(
            f"{path} must exist; there is no such file{hint}"
        ) from None
    except IsADirectoryError:
        raise FileFormatError(
            f"{path} must be a file; it is a directory. Name a file."
        ) from None
    except PermissionError:
        raise FileFormatError(
            f"{path} must be readable; permission was denied. Check its permissions."
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileFormatError(f"{path} cannot be opened: {reason}.") from None


def detect_compression(head: bytes) -> str | None:
    """Return how a file is compressed, if it is."""
    return _match_first_bytes(head, COMPRESSION_MAGIC)


def _match_first_bytes(head: bytes, known: dict[bytes, str]) -> str | None:
    """Return what stands for the first bytes of a file, if they are known."""
    for magic, what in known.items():
        if head.startswith(magic):
            return what
    return None


def detect_format(head: bytes, file: IO[bytes], name: str) -> str:
    """Return what kind of table a file holds; refuse what is none."""
    if head.startswith(ZIP):
        return _detect_zip_format(file, name)
    kind = _match_first_bytes(head, FORMAT_MAGIC)
    if kind is None and _is_json_line(head):
        return "json"
    if kind is None:
        refuse_unsupported_format(head, name)
    return kind or "csv"


def _is_json_line(head: bytes) -> bool:
    """Whether the first line is a whole object, as far as it is seen; indented JSON has none."""
    line, end, _ = head.removeprefix(BYTE_ORDER_MARK).lstrip().partition(b"\n")
    is_cut = not end and len(head) == N_HEAD_BYTES
    return line.startswith(b"{") and (is_cut or line.rstrip().endswith(b"}"))


def _detect_zip_format(file: IO[bytes], name: str) -> str:
    """Return what an archive is: a workbook, or arrays."""
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
    except Exception:  # of a damaged archive zip raises what it likes
        raise FileFormatError(
            f"{name} cannot be read: the archive is damaged or cut short.",
            remedy="Write or download it again.",
        ) from None
    if "xl/workbook.xml" in names:
        return "sheet"
    if names and all(inside.endswith(".npy") for inside in names):
        return "array"
    raise _unsupported_format_error(name, "a zip archive")


def refuse_unsupported_format(
    head: bytes, name: str, foreign: dict[bytes, str] = UNSUPPORTED_MAGIC
) -> None:
    """Refuse the beginning of text that is empty or of a kind that is not read."""
    text = head.removeprefix(BYTE_ORDER_MARK).lstrip()
    if not text:
        raise FileFormatError(
            f"{name} must hold a table with a header line; it is empty. Check what wrote it."
        )
    what = _match_first_bytes(text, foreign)
    if what is None and b"\0" in head and not _detect_utf16(head):
        what = "binary data"
    if what is not None:
        raise _unsupported_format_error(name, what)


def _unsupported_format_error(name: str, what: str) -> FileFormatError:
    return FileFormatError(
        f"{name} must be a table: CSV, Parquet, Arrow, JSON lines, .xlsx, .npy or .npz; it looks "
        f"like {what}.",
        remedy="Save it as CSV or .xlsx.",
    )


def detect_encoding(sample: bytes) -> str:
    """Return the encoding of text, by its first bytes.

    Examples
    --------
    >>> [detect_encoding("cafés".encode(kind)) for kind in ("utf-8", "utf-16", "latin-1")]
    ['utf-8', 'utf-16', 'cp1252']
    """
    if found := _detect_utf16(sample):
        return found
    try:
        codecs.getincrementaldecoder("utf-8")().decode(
            sample
        )  # the last letter may be cut
        return "utf-8"
    except UnicodeDecodeError:
        used = set(sample)
    if used & set(CONTROLS):
        return "utf-8"  # whatever it is, it is no text: refused where it stands
    return "latin-1" if used & set(UNDEFINED_BYTES) else "cp1252"


def _detect_utf16(sample: bytes) -> str:
    """Return which UTF-16 this is: by its mark, or for its zeros at every other place."""
    for mark, name in MARKS.items():
        if sample.startswith(mark):
            return name
    head = sample[:N_HEAD_BYTES]
    n_even_zeros = head[::2].count(0)
    n_odd_zeros = head[1::2].count(0)
    # Latin letters have a zero in every pair, words of other scripts at least between them. 30 % is
    # a round number: UTF-8 and Latin-1 have no zeros at all.
    enough = 0.3 * max(1, len(head) // 2)
    if n_odd_zeros > enough and n_even_zeros == 0:
        return "utf-16-le"
    if n_even_zeros > enough and n_odd_zeros == 0:
        return "utf-16-be"
    return ""


class InputFile:
    """A file or standard input; `name` is what messages call it, `spool` the copy of a pipe."""

    def __init__(self, path: StrPath) -> None:
        check_installed(("pyarrow",), CLI_EXTRA)
        self.name = "standard input" if str(path) == "-" else str(path)
        self.path = Path(path)
        self.encoding = "utf-8"
        self.spool = self._spool_pipe()
        self._opened = self.spool
        self._seen: tuple[int, ...] | None = None

    @contextmanager
    def keep_open(self) -> Iterator[None]:
        """Keep the file open: whatever is read of it within the block shares this one opening."""
        if self.spool is not None:  # open for as long as this object lives
            yield
            return
        with open_file(self.path) as opened:
            self._opened = opened
            self._seen = self._file_stamp()
            try:
                yield
            finally:
                self._opened = None

    def detect_kind(self) -> None:
        """Find out what the file is, by its first bytes."""
        with self.reopen() as file:
            head = file.read(N_HEAD_BYTES)
            self.compression = detect_compression(head)
            self.kind = (
                "csv" if self.compression else detect_format(head, file, self.name)
            )

    @contextmanager
    def open_parquet(self) -> Iterator[Any]:
        """Open a Parquet file; unlike pyarrow, also close the copy of a pipe."""
        from pyarrow import parquet

        with (
            self._open_bytes() as raw,
            parquet.ParquetFile(
                raw,
                pre_buffer=False,  # memory would grow with the file: row groups ahead of their turn
                page_checksum_verification=True,  # a flipped bit would be another number
                buffer_size=N_BYTES_PER_READ,  # else whole columns of a row group
            ) as file,
        ):
            yield file

    @contextmanager
    def open_arrow(self) -> Iterator[Any]:
        """Open an Arrow file (Feather) or stream."""
        from pyarrow import ipc

        with self._open_bytes() as raw:
            is_file = raw.read(6) == b"ARROW1"
            raw.seek(0)
            yield ipc.open_file(raw) if is_file else ipc.open_stream(raw)

    def _open_bytes(self) -> Any:
        """Return the bytes for pyarrow, which takes names as bytes too."""
        import pyarrow as pa

        if self._opened is None:
            return pa.OSFile(os.fsencode(self.path))
        return self.reopen()

    def open_text(self) -> Any:
        """Return the text of a CSV file as UTF-8."""
        import pyarrow as pa

        stream = pa.input_stream(self._open_bytes(), compression=self.compression)
        if self.encoding == "utf-8":
            return stream
        return pa.transcoding_input_stream(stream, self.encoding, "utf-8")

    @property
    def n_file_bytes(self) -> int:
        """Bytes of the file as it is."""
        if self.spool is not None:
            return os.fstat(self.spool.fileno()).st_size
        return self.path.stat().st_size

    def measure_text(
        self, n_bytes: float, n_lines: float = math.inf
    ) -> tuple[float, float]:
        """Return how many bytes and line ends text holds unpacked; not further than so many."""
        import pyarrow as pa

        size = 0.0
        lines = 0.0
        with pa.input_stream(self.reopen(), compression=self.compression) as stream:
            while size <= n_bytes and lines <= n_lines:
                block = stream.read(N_BYTES_PER_READ)
                if not block:
                    break
                size += len(block)
                lines += block.count(b"\n")
        return size, lines

    @property
    def has_changed(self) -> bool:
        """Whether the file is another one than when it was opened first."""
        return self._file_stamp() != self._seen

    def refuse_changed(self) -> None:
        """Refuse a file that another program wrote to while it was read."""
        if self.has_changed:
            raise changed_file_error(self.name)

    def _file_stamp(self) -> tuple[int, ...] | None:
        """Return what changes when somebody writes to the file; None for the copy of a pipe."""
        if self.spool is not None:
            return None
        try:
            found = self.path.stat()
        except OSError:
            return ()
        return found.st_ino, found.st_size, found.st_mtime_ns

    def reopen(self) -> IO[bytes]:
        """Return the file from its beginning: opened, or another handle of what is open."""
        if self._opened is None:
            return self.path.open("rb")
        file = os.fdopen(os.dup(self._opened.fileno()), "rb")
        file.seek(
            0
        )  # handles of one opening share their place, so only one may be used at a time
        return file

    def _spool_pipe(self) -> IO[bytes] | None:
        """Return a copy of standard input or of a named pipe; None for a file."""
        standard = self.name == "standard input"
        is_pipe = (
            self.path.exists() and not self.path.is_file() and not self.path.is_dir()
        )
        if not standard and not is_pipe:
            return None
        copy = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as this object
        weakref.finalize(self, copy.close)
        with (
            nullcontext(standard_input().buffer)
            if standard
            else self.path.open("rb") as pipe
        ):
            shutil.copyfileobj(pipe, copy, N_BYTES_PER_READ)
        copy.flush()
        return copy


def changed_file_error(name: str) -> FileFormatError:
    """Return the error of a file that did not stay as it was."""
    return FileFormatError(
        f"{name} must stay as it is while it is read; another program has written to it.",
        remedy="Run this again when it is done.",
    )
