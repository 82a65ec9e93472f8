"""Every broken input ends in exit code 2 with one helpful line; pipes and signals end cleanly."""

import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from files import CLASSES, csv_text, predictions, with_line
from pyarrow import parquet

from mcllo.__main__ import run

GOOD = csv_text()
LABEL = ["--label", "y"]
MODEL = {}


@pytest.fixture
def model(tmp_path):
    """Return a model file fitted on GOOD."""
    (tmp_path / "good.csv").write_text(GOOD)
    path = tmp_path / "model.json"
    assert run(["fit", str(tmp_path / "good.csv"), *LABEL, "-o", str(path)]) == 0
    return path


def refused(capsys, arguments):
    """Return the one line that a refused command prints."""
    capsys.readouterr()
    assert run([str(word) for word in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert err.startswith("mcllo: ")
    assert "Traceback" not in err
    assert len(err) < 420
    return err


def parquet_bytes(columns):
    sink = io.BytesIO()
    parquet.write_table(pa.table(columns), sink)
    return sink.getvalue()


def parquet_columns(**changes):
    probs, y = predictions()
    return {**dict(zip(CLASSES, probs.T, strict=True)), "y": y, **changes}


def zip_bytes():
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("xl/workbook.xml", "<x/>")
    return sink.getvalue()


def npy_bytes():
    sink = io.BytesIO()
    np.save(sink, np.eye(3))
    return sink.getvalue()


def with_column(name, values):
    """Return GOOD with another column in front."""
    lines = GOOD.splitlines()
    cells = [name, *(str(values(i)) for i in range(len(lines) - 1))]
    return "".join(f"{cell},{line}\n" for cell, line in zip(cells, lines, strict=True))


ROUNDED = with_line(9, "0.33,0.33,0.33,cat")
BROKEN_FILES = {
    "empty": ("", "it is empty"),
    "blank lines": ("\n\n \n", "it is empty"),
    "header only": ("cat,dog,truck,y\n", "has only a header"),
    "header without line end": ("cat,dog,truck,y", "has only a header"),
    "one column": ("y\ncat\ndog\n", "at least two columns; got ['y']. Separate columns by commas"),
    "spaces between cells": ("cat dog y\n1 0 cat\n", "Separate columns by commas, semicolons"),
    "no class column": ("cat,y\n1,cat\n", "at least two class columns beside the label"),
    "no label column": (GOOD.replace("truck,y", "truck,why"), "no label column 'y'; it has ['cat'"),
    "label nearly": (GOOD.replace("truck,y", "truck,Y"), "no label column 'y'"),
    "no header": (GOOD.split("\n", 1)[1], "first line holds numbers. Add a header line"),
    "duplicate columns": (GOOD.replace("cat,dog", "cat,cat", 1), "'cat' occurs twice. Rename one."),
    "two unnamed columns": (GOOD.replace("cat,dog", ",", 1), "two columns have no name"),
    "short line": (
        with_line(5, "0.5,0.5,cat"),
        "each line must have 4 cells, as the header has; line 5 has 3. Complete that line",
    ),
    "long line": (
        with_line(6, "0.5,0.25,0.25,cat,dog"),
        "line 6 has 5. Put quotes around cells that hold commas",
    ),
    "word for a number": (
        with_line(7, "a half,0.25,0.25,cat"),
        "column 'cat' must hold numbers; "
        "line 7 has 'a half'. Choose the columns that are classes with --classes",
    ),
    "decimal commas": (GOOD.replace(",", ";").replace(".", ","), "line 2 has '0,"),
    "percent sign": (with_line(3, "50%,25%,25%,cat"), "line 3 has '50%'. Write 0.7 for 70%."),
    "percentages": (
        with_line(3, "50,25,25,cat"),
        "got 50 in column 'cat', line 3 of FILE. Divide percentages by 100",
    ),
    "missing number": (
        with_line(8, "0.5,,0.5,cat"),
        "got an empty cell or NaN in column 'dog', line 8 of FILE. Drop or repair that row.",
    ),
    "NaN": (with_line(8, "0.5,nan,0.5,cat"), "got an empty cell or NaN in column 'dog', line 8"),
    "NA": (with_line(8, "0.5,NA,0.5,cat"), "line 8 has 'NA'. Drop or repair that row."),
    "infinity": (
        with_line(8, "0.5,inf,0.5,cat"),
        "must be finite; got inf in column 'dog', line 8",
    ),
    "missing label": (
        with_line(4, "0.5,0.25,0.25,"),
        "every row needs a label; column 'y' is empty in line 4 of FILE. Drop those rows.",
    ),
    "unknown label": (
        with_line(4, "0.5,0.25,0.25,lorry"),
        "column 'y' contains 'lorry' (line 4 of "
        "FILE), which is not a class; classes are ['cat', 'dog', 'truck']",
    ),
    "negative": (with_line(4, "-0.5,0.75,0.75,cat"), "got -0.5 in column 'cat', line 4 of FILE"),
    "a hair below zero": (with_line(4, "-1e-9,0.5,0.5,cat"), "write 0 or 1 there"),
    "above one": (with_line(4, "1.5,0,0,cat"), "lie in [0, 1]; got 1.5 in column 'cat', line 4"),
    "row sum": (
        ROUNDED,
        "must sum to 1 (tolerance 1e-06); line 9 of FILE sums to 0.99. For rounded "
        "files pass --normalize.",
    ),
    "id column": (
        with_column("id", lambda i: i),
        "If 'id' is not a class, pass --classes cat,dog,truck.",
    ),
    "word column": (
        with_column("image", lambda i: f"{i}.png"),
        "column 'image' must hold numbers; "
        "line 2 has '0.png'. If 'image' is not a class, pass --classes cat,dog,truck.",
    ),
    "prefix": (
        GOOD.replace("cat,dog,truck,y", "p_cat,p_dog,p_truck,y", 1),
        "The columns are labels with 'p_' before them; pass --prefix p_.",
    ),
    "suffix": (
        GOOD.replace("cat,dog,truck,y", "cat_p,dog_p,truck_p,y", 1),
        "The columns are labels with '_p' after them; rename them.",
    ),
    "open quote": (
        with_line(10, '0.5,0.25,0.25,"cat'),
        "quoted cell that does not end, in line 10",
    ),
    "latin-1": (
        with_line(4, "0.5,0.25,0.25,caf\xe9").encode("latin-1"),
        "line 4 must be UTF-8 text; it holds other bytes. Save it as UTF-8.",
    ),
    "latin-1 header": (
        GOOD.replace("truck,y", "trück,y").encode("latin-1"),
        "header holds other bytes. Save it as UTF-8.",
    ),
    "UTF-16": (GOOD.encode("utf-16"), "it looks like UTF-16 text. Save it as CSV (UTF-8)"),
    "UTF-16 without mark": (GOOD.encode("utf-16-le"), "looks like UTF-16 text or binary data"),
    "binary": (bytes(range(200, 256)) + bytes(range(256)), "looks like UTF-16 text or binary data"),
    "truncated parquet": (
        parquet_bytes(parquet_columns())[:-20],
        "the Parquet file is damaged or cut short",
    ),
    "damaged parquet": (parquet_bytes(parquet_columns()).replace(b"cat", b"\xff\xff\xff"), "FILE"),
    "parquet without rows": (
        parquet_bytes(
            parquet_columns(
                **{k: pa.array([], pa.float64()) for k in CLASSES}, y=pa.array([], pa.string())
            )
        ),
        "at least one row",
    ),
    "parquet text column": (
        parquet_bytes(parquet_columns(cat=["x"] * 60)),
        "column 'cat' is String",
    ),
    "parquet gap": (parquet_bytes(parquet_columns(cat=[None] * 60)), "column 'cat'"),
    "parquet label gap": (
        parquet_bytes(parquet_columns(y=[None] * 60)),
        "column 'y' is empty in row 0 of FILE",
    ),
    "parquet fractional label": (
        parquet_bytes(parquet_columns(y=[0.5] * 60)),
        "column 'y' must hold "
        "class labels; got 0.5 in column 'y', row 0 of FILE. Choose the "
        "column with the labels with --label.",
    ),
    "spreadsheet": (zip_bytes(), "looks like a spreadsheet or zip archive. Save it as CSV"),
    "json": (json.dumps([{"cat": 1}]), "looks like JSON"),
    "html": ("<!doctype html><p>Log in", "looks like HTML or XML"),
    "numpy": (npy_bytes(), "looks like a NumPy array"),
    "gzip of garbage": (b"\x1f\x8b\x08garbage garbage", "the gzip file is damaged or cut short"),
    "truncated gzip": (gzip.compress(GOOD.encode())[:-12], "the gzip file is damaged or cut short"),
    "gzip of parquet": (gzip.compress(parquet_bytes(parquet_columns())), "FILE"),
    "gzip of json": (gzip.compress(b'{"a": 1}'), "looks like JSON"),
}


@pytest.mark.parametrize("kind", BROKEN_FILES)
@pytest.mark.parametrize("verb", ["assess", "fit"])
def test_broken_files_are_refused_with_one_helpful_line(tmp_path, capsys, kind, verb):
    content, phrase = BROKEN_FILES[kind]
    file, out = tmp_path / "f.csv", tmp_path / "model.json"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    line = refused(capsys, [verb, file, *LABEL, *(["-o", out] if verb == "fit" else [])])
    assert phrase in line.replace(str(file), "FILE")
    assert re.search(r"FILE|column|line", line.replace(str(file), "FILE"))
    assert [path.name for path in tmp_path.iterdir()] == ["f.csv"]
