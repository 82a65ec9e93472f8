"""What a file is, told from its first bytes and never from its name.

==============  ===================================================================================
kind            csv, parquet, arrow (Feather or an Arrow stream), sheet (.xlsx), array (.npy, .npz);
                anything else is refused by what it looks like
compression     gzip or zstd, of CSV
encoding        of text: UTF-8; UTF-16 by its mark, or by where its zeros stand; Windows-1252 or
                Latin-1 where the first 16 MB are no UTF-8
==============  ===================================================================================

An encoding other than UTF-8 is a guess, and said.

A file as bytes: opened again and again, also where it came through a pipe.

===============  =================================================================================
kind             what it holds, by its first bytes (`_apps/io/container`)
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
from ..._utils.optional import CLI_EXTRA, check_installed, needed
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
UNSUPPORTED_COMPRESSED_MAGIC = {magic: f"compressed {kind}" for magic, kind in FORMAT_MAGIC.items()}
UNSUPPORTED_COMPRESSED_MAGIC |= {
    ZIP: "a compressed archive",
    **dict.fromkeys(COMPRESSION_MAGIC, "compressed twice"),
}
UNSUPPORTED_COMPRESSED_MAGIC |= UNSUPPORTED_MAGIC
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


def first_bytes(path: Path, size: int) -> bytes:
    """Return the beginning of a file; refuse what cannot be opened."""
    try:
        with path.open("rb") as file:
            return file.read(size)
    except FileNotFoundError:
        import difflib

        names = sorted(os.listdir(path.parent)) if path.parent.is_dir() else []
        close = difflib.get_close_matches(path.name, names, n=1)
        hint = f"; did you mean {str(path.parent / close[0])!r}?" if close else ". Check the name."
        raise FileFormatError(f"{path} must exist; there is no such file{hint}") from None
    except IsADirectoryError:
        raise FileFormatError(f"{path} must be a file; it is a directory. Name a file.") from None
    except PermissionError:
        raise FileFormatError(
            f"{path} must be readable; permission was denied. Check its permissions."
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileFormatError(f"{path} cannot be opened: {reason}.") from None


def detect_compression(head: bytes) -> str | None:
    """Return how a file is compressed, if it is."""
    return next((name for magic, name in COMPRESSION_MAGIC.items() if head.startswith(magic)), None)


def detect_format(head: bytes, file: StrPath | IO[bytes], name: str) -> str:
    """Return what kind of table a file holds; refuse what is none."""
    if head.startswith(ZIP):
        return _kind_of_zip(file, name)
    kind = next((kind for magic, kind in FORMAT_MAGIC.items() if head.startswith(magic)), None)
    if kind is None:
        refuse_foreign(head, name)
    return kind or "csv"


def _kind_of_zip(file: StrPath | IO[bytes], name: str) -> str:
    """Return what an archive is: a workbook, or arrays."""
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError):
        raise FileFormatError(
            f"{name} cannot be read: the archive is damaged or cut short.",
            remedy="Write or download it again.",
        ) from None
    if "xl/workbook.xml" in names:
        return "sheet"
    if names and all(inside.endswith(".npy") for inside in names):
        return "array"
    raise _foreign(name, "a zip archive")


def refuse_foreign(head: bytes, name: str, foreign: dict[bytes, str] = UNSUPPORTED_MAGIC) -> None:
    """Refuse the beginning of text that is empty or of a kind that is not read."""
    text = head.removeprefix(BYTE_ORDER_MARK).lstrip()
    if not text:
        raise FileFormatError(
            f"{name} must hold a table with a header line; it is empty. Check what wrote it."
        )
    what = next((what for magic, what in foreign.items() if text.startswith(magic)), None)
    if what is None and b"\0" in head and not _utf16(head):
        what = "binary data"
    if what is not None:
        raise _foreign(name, what)


def _foreign(name: str, what: str) -> FileFormatError:
    return FileFormatError(
        f"{name} must be a table: CSV, Parquet, Arrow, .xlsx, .npy or .npz; it looks like {what}.",
        remedy="Save it as CSV or .xlsx.",
    )


def detect_encoding(sample: bytes) -> str:
    """Return the encoding of text, by its first bytes (`N_ENCODING_SAMPLE_BYTES`).

    Examples
    --------
    >>> [detect_encoding("cafés".encode(kind)) for kind in ("utf-8", "utf-16", "latin-1")]
    ['utf-8', 'utf-16', 'cp1252']
    """
    if found := _utf16(sample):
        return found
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)  # the last letter may be cut
        return "utf-8"
    except UnicodeDecodeError:
        if set(sample) & set(CONTROLS):
            return "utf-8"  # whatever it is, it is no text: refused where it stands
        return "latin-1" if set(sample) & set(UNDEFINED_BYTES) else "cp1252"


def _utf16(sample: bytes) -> str:
    """Return which UTF-16 this is: by its mark, or for its zeros at every other place."""
    for mark, name in MARKS.items():
        if sample.startswith(mark):
            return name
    head = sample[:4096]
    even, odd = head[::2].count(0), head[1::2].count(0)
    most = 0.3 * max(1, len(head) // 2)
    if odd > most and even == 0:
        return "utf-16-le"
    return "utf-16-be" if even > most and odd == 0 else ""


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
