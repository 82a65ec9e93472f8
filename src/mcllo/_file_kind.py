"""What a file is, told from its first bytes; what is neither CSV nor Parquet is refused by name."""

from __future__ import annotations

import os
from pathlib import Path

from .exceptions import FileFormatError

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
FOREIGN = {
    b"PK\x03\x04": "a spreadsheet or zip archive",
    b"\xd0\xcf\x11\xe0": "an old Excel file",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
    b"\x93NUMPY": "a NumPy array",
    b"\x80\x02": "a pickle",
    b"\x80\x03": "a pickle",
    b"\x80\x04": "a pickle",
    b"\x80\x05": "a pickle",
    b"ARROW1": "an Arrow IPC file",
    b"\x89HDF": "an HDF5 file",
    b"SQLite format 3": "an SQLite database",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ": "an xz archive",
    b"\x28\xb5\x2f\xfd": "a zstd archive",
    b"%PDF": "a PDF",
    b"{": "JSON",
    b"[": "JSON",
    b"<": "HTML or XML",
}
GZIPPED = FOREIGN | {b"PAR1": "gzipped Parquet", b"\x1f\x8b": "text that is gzipped twice"}


def refuse_foreign(head: bytes, name: str, foreign: dict[bytes, str] = FOREIGN) -> None:
    """Refuse the beginning of a file that is empty or of a kind that is not read."""
    text = head.removeprefix(BYTE_ORDER_MARK).lstrip()
    if not text:
        raise FileFormatError(
            f"{name} must hold a table with a header line; it is empty. Check what wrote it."
        )
    what = next((what for magic, what in foreign.items() if text.startswith(magic)), None)
    if what is None and b"\0" in head and not head.startswith((b"\x1f\x8b", b"PAR1")):
        what = "UTF-16 text or binary data"
    if what is not None:
        raise FileFormatError(
            f"{name} must be CSV or Parquet; it looks like {what}. "
            "Save it as CSV (UTF-8) or Parquet."
        )


def first_bytes(path: Path, size: int) -> bytes:
    """Return the beginning of a file; refuse what cannot be opened."""
    try:
        with path.open("rb") as file:
            return file.read(size)
    except FileNotFoundError:
        raise FileFormatError(f"{path} must exist; there is no such file{_near(path)}") from None
    except IsADirectoryError:
        raise FileFormatError(f"{path} must be a file; it is a directory. Name a file.") from None
    except PermissionError:
        raise FileFormatError(
            f"{path} must be readable; permission was denied. Check its permissions."
        ) from None
    except (OSError, ValueError) as error:
        raise FileFormatError(f"{path} cannot be opened: {_reason(error)}.") from None


def _near(path: Path) -> str:
    """Return a file of nearly that name, as a question."""
    import difflib

    names = sorted(os.listdir(path.parent)) if path.parent.is_dir() else []
    close = difflib.get_close_matches(path.name, names, n=1)
    return f"; did you mean {str(path.parent / close[0])!r}?" if close else ". Check the name."


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)
