from pathlib import Path

import pytest

from mcllo._file_kind import GZIPPED, first_bytes, refuse_foreign
from mcllo.exceptions import FileFormatError


@pytest.mark.parametrize(
    "head", [b"a,b\n", b"\xef\xbb\xbfa,b\n", b"\n\na;b\n", b"PAR1\x00\x01", b"\x1f\x8b\x08\x00"]
)
def test_what_is_read_passes(head):
    refuse_foreign(head, "f")


@pytest.mark.parametrize(
    ("head", "what"),
    [
        (b"PK\x03\x04abc", "a spreadsheet or zip archive"),
        (b"\xd0\xcf\x11\xe0abc", "an old Excel file"),
        ("a,b".encode("utf-16"), "UTF-16 text"),
        ("a,b".encode("utf-16-be"), "UTF-16 text or binary data"),
        (b"\x93NUMPY\x01\x00", "a NumPy array"),
        (b"\x80\x04\x95", "a pickle"),
        (b"ARROW1\x00\x00", "an Arrow IPC file"),
        (b"\x89HDF\r\n", "an HDF5 file"),
        (b"SQLite format 3\x00", "an SQLite database"),
        (b"BZh91AY", "a bzip2 archive"),
        (b'\n {"a": 1}', "JSON"),
        (b"\xef\xbb\xbf[1]", "JSON"),
        (b"<html>", "HTML or XML"),
        (b"a,b\n1,\x00\x01\n", "UTF-16 text or binary data"),
    ],
)
def test_what_is_not_read_is_called_by_its_name(head, what):
    with pytest.raises(FileFormatError, match="must be CSV or Parquet") as caught:
        refuse_foreign(head, "some.csv")
    assert str(caught.value).startswith("some.csv must")
    assert f"looks like {what}. Save it as CSV (UTF-8) or Parquet." in str(caught.value)


@pytest.mark.parametrize("head", [b"", b"\xef\xbb\xbf", b" \r\n\t\n"])
def test_nothing_is_refused(head):
    with pytest.raises(FileFormatError, match="it is empty"):
        refuse_foreign(head, "f")


def test_inside_gzip_parquet_and_gzip_are_refused():
    with pytest.raises(FileFormatError, match="gzipped Parquet"):
        refuse_foreign(b"PAR1", "f", GZIPPED)
    with pytest.raises(FileFormatError, match="gzipped twice"):
        refuse_foreign(b"\x1f\x8b", "f", GZIPPED)


def test_first_bytes(tmp_path):
    (tmp_path / "f").write_bytes(b"abcdef")
    assert first_bytes(tmp_path / "f", 3) == b"abc"


def test_what_cannot_be_opened(tmp_path, monkeypatch):
    (tmp_path / "holdout.csv").touch()
    with pytest.raises(FileFormatError, match=r"no such file; did you mean '.*holdout.csv'\?$"):
        first_bytes(tmp_path / "holdout.cvs", 3)
    with pytest.raises(FileFormatError, match=r"no such file\. Check the name\.$"):
        first_bytes(tmp_path / "nothing" / "x", 3)
    with pytest.raises(FileFormatError, match="it is a directory"):
        first_bytes(tmp_path, 3)
    with pytest.raises(FileFormatError, match=r"cannot be opened: .*null"):
        first_bytes(Path("a\0b"), 3)


def test_permission_denied(tmp_path, monkeypatch):
    def denied(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)  # the superuser may open anything
    with pytest.raises(FileFormatError, match="permission was denied"):
        first_bytes(tmp_path / "f", 3)
