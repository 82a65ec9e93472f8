"""What a file is, told from its first bytes and never from its name.

==============  ===================================================================================
kind            csv, parquet, arrow (Feather or an Arrow stream), sheet (.xlsx), array (.npy, .npz);
                anything else is refused by what it looks like
compression     gzip or zstd, of CSV
encoding        of text: UTF-8; UTF-16 by its mark, or by where its zeros stand; Windows-1252 or
                Latin-1 where the first 16 MB are no UTF-8
==============  ===================================================================================

An encoding other than UTF-8 is a guess, and said.
"""

from __future__ import annotations

import codecs
import os
import zipfile
from pathlib import Path
from typing import IO

from ..._utils.atomic_files import StrPath
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
