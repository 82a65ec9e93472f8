import gzip
import io
import os
import sys
import threading
import warnings
from pathlib import Path

import pyarrow as pa
import pytest
from inputs import parquet_bytes
from pyarrow import parquet

from mcllo._apps.io import csv_text
from mcllo._apps.io import source as _source
from mcllo._apps.io.container import (
    UNSUPPORTED_COMPRESSED_MAGIC,
    UNSUPPORTED_MAGIC,
    open_file,
    refuse_unsupported_format,
)
from mcllo._apps.io.source import Source
from mcllo.exceptions import FileFormatError

TEXT = "id, cat ,dog,y\n007,0.5,0.5,cat\n,0.25,0.75,\n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text(TEXT)
    return path


def refused(path, content, match):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(FileFormatError, match=match) as caught:
        Source(path).read(["cat"], ["y"])
    assert "\n" not in str(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_a_small_file_by_hand(file):
    source = Source(file)
    assert (source.kind, source.separator, source.name) == ("csv", ",", str(file))
    assert source.columns == ["id", "cat", "dog", "y"]
    assert source.raw_columns == ["id", " cat ", "dog", "y"]
    table = source.read(["dog", "cat"], ["y"])
    assert table.to_pydict() == {
        "dog": [0.5, 0.75],
        "cat": [0.5, 0.25],
        "y": ["cat", None],
    }
    assert source.index("dog") == 2
    assert source.read(["cat"]) == source.read(["cat"])
    # other columns stay text
    (batch,) = source.batches(["cat", "dog"])
    assert batch.to_pydict() == {
        "id": ["007", None],
        " cat ": [0.5, 0.25],
        "dog": [0.5, 0.75],
        "y": ["cat", None],
    }


def test_parquet(tmp_path):
    table = pa.table({" id": [1, 2], "cat": [0.5, 0.25], "y": ["a", None]})
    parquet.write_table(table, tmp_path / "f.csv")
    source = Source(tmp_path / "f.csv")
    assert source.kind == "parquet"
    assert source.columns == [" id", "cat", "y"]
    assert source.read(["cat"], ["y"]).to_pydict() == {
        "cat": [0.5, 0.25],
        "y": ["a", None],
    }
    assert pa.Table.from_batches(source.batches(["cat"])) == table
    assert source.locate_row(1) == f"row 1 of {tmp_path / 'f.csv'}"


def test_places_are_lines_of_the_file(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text('\nid,cat\n"a\nb",1\n\nc,1\n')
    source = Source(path)
    assert [source.locate_row(row) for row in (0, 1)] == [
        f"line 3 of {path}",
        f"line 6 of {path}",
    ]
    path.write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    assert Source(path).locate_row(1) == f"line 6 of {path}"


def test_standard_input_is_copied_and_closed(monkeypatch):
    content = gzip.compress(TEXT.encode(), mtime=0)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    source = Source("-")
    assert source.name == "standard input"
    assert source.read(["cat"]) == source.read(["cat"])
    assert source.locate_row(0) == "line 2 of standard input"
    copy = source.spool
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del source
    assert copy.closed


@pytest.mark.parametrize("way", ["read", "first rows", "stopped", "damaged"])
def test_parquet_from_a_pipe_leaves_no_file_open(monkeypatch, way):
    content = parquet_bytes(
        pa.table({"cat": [0.5, 0.25], "y": ["a", "b"]}), row_group_size=1
    )
    if way == "damaged":
        content = content[:4] + bytes(40) + content[44:]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    opened = []
    reopened = Source.reopen
    monkeypatch.setattr(
        Source, "reopen", lambda self: opened.append(reopened(self)) or opened[-1]
    )
    source = Source("-")
    if way == "read":
        assert source.read(["cat"]).num_rows == 2
    elif way == "first rows":
        assert source.first_rows(1).read(["cat"]).num_rows == 1
    elif way == "stopped":
        rows = source.batches(["cat"])
        next(rows)
        rows.close()
    elif way == "damaged":
        with pytest.raises(FileFormatError, match="standard input cannot be read"):
            source.read(["cat"])
    assert opened
    assert all(
        file.closed for file in opened
    )  # else: ResourceWarning, whenever it is collected


@pytest.mark.skipif(os.name == "nt", reason="needs named pipes")
def test_a_named_pipe_is_copied_too(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_text(TEXT))
    writer.start()
    source = Source(tmp_path / "pipe")
    writer.join(10)
    assert source.read(["cat"])["cat"].to_pylist() == [0.5, 0.25]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_first_rows_alone(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(_source, "N_BATCH_ROWS", 2)
    path = tmp_path / "f"
    if kind == "csv":
        path.write_text("cat,y\n" + "".join(f"{k},{k}\n" for k in range(5)))
    else:
        table = pa.table({"cat": [0.0, 1, 2, 3, 4], "y": list("01234")})
        parquet.write_table(table, path, row_group_size=3)
    source = Source(path)
    for most, rows, cut in ((3, 3, True), (4, 4, True), (5, 5, False), (9, 5, False)):
        first = source.first_rows(most)
        assert first.read(["cat"], ["y"]) == source.read(["cat"], ["y"]).slice(0, rows)
        assert (first.cut, source.cut) == (cut, False)
    assert source.first_rows(1).locate_row(3) == source.locate_row(3)


def test_wide_files_get_larger_blocks_and_a_line_must_fit_into_one(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(csv_text, "MIN_BLOCK_BYTES", 1000)
    names = [f"c{j}" for j in range(300)]
    (tmp_path / "f").write_text(
        f"{','.join(names)}\n{','.join(['0.0033333333'] * 300)}\n"
    )
    assert Source(tmp_path / "f").read(names).num_rows == 1
    monkeypatch.setattr(csv_text, "MIN_BLOCK_BYTES_PER_COLUMN", 1)
    refused(
        tmp_path / "f", f"cat,y\n1,{'x' * 5000}\n", "a line is longer than 1,000 bytes"
    )


def test_what_cannot_be_read(tmp_path):
    # beside tests/texts/errors.txt
    for content, match in (
        ("0.5,0.5,cat\n0.25,0.75,dog\n", "Add a header line"),
        ("cat, cat\n1,1\n", "'cat' occurs twice"),
        (b"cat,y\n1,\xff\x01\n", "line 2 must be UTF-8"),
        ('cat,y\n1,"a\n', "does not end, in line 2"),
        (
            gzip.compress(TEXT.encode(), mtime=0)[:-8],
            "gzip file is damaged or cut short",
        ),
        (b"PAR1 and no more", "Parquet file is damaged or cut short"),
        (b"PK\x03\x04 and no more", "the archive is damaged or cut short"),
    ):
        refused(tmp_path / "f", content, match)


def test_a_header_without_a_line_end_has_no_rows(tmp_path):
    (tmp_path / "f").write_text("cat,y")
    assert Source(tmp_path / "f").read(["cat"], ["y"]).num_rows == 0
    assert list(Source(tmp_path / "f").batches(["cat"])) == []


def test_what_is_not_read_is_called_by_its_name():
    for head, what in (
        (b"\xd0\xcf\x11\xe0abc", "an old Excel file"),
        (b"\x80\x04\x95", "a pickle"),
        (b"FEA1\x00\x00", "an old Feather file"),
        (b"\x89HDF\r\n", "an HDF5 file"),
        (b"SQLite format 3\x00", "an SQLite database"),
        (b"BZh91AY", "a bzip2 archive"),
        (b'\n {"a": 1}', "JSON"),
        (b"\xef\xbb\xbf[1]", "JSON"),
        (b"<html>", "HTML or XML"),
        (b"a,b\n1,\x00\x01\n", "binary data"),
    ):
        with pytest.raises(
            FileFormatError, match="must be a table: CSV, Parquet, "
        ) as caught:
            refuse_unsupported_format(head, "some.csv")
        assert str(caught.value).startswith("some.csv must")
        assert f"looks like {what}. Save it as CSV or .xlsx." in str(caught.value)
    for head, foreign, match in (
        (b"\xef\xbb\xbf \r\n\t\n", UNSUPPORTED_MAGIC, "it is empty"),
        (b"PAR1", UNSUPPORTED_COMPRESSED_MAGIC, "compressed parquet"),
        (b"\x1f\x8b", UNSUPPORTED_COMPRESSED_MAGIC, "compressed twice"),
    ):
        with pytest.raises(FileFormatError, match=match):
            refuse_unsupported_format(head, "f", foreign)


@pytest.mark.parametrize(
    ("name", "match"),
    [
        (".", "it is a directory"),
        ("a\0b", r"cannot be opened: .*null"),
    ],
)
def test_what_cannot_be_opened(tmp_path, name, match):
    (tmp_path / "holdout.csv").write_bytes(b"abcdef")
    with open_file(tmp_path / "holdout.csv") as file:
        assert file.read(3) == b"abc"
    with pytest.raises(FileFormatError, match=match):
        open_file(tmp_path / name)


def test_permission_denied(tmp_path, monkeypatch):
    def denied(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)  # the superuser may open anything
    with pytest.raises(FileFormatError, match="permission was denied"):
        open_file(tmp_path / "f")
