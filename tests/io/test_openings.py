"""How often a file is opened: once for all that its beginning shows, and once for its rows."""

import gzip
import os
import sys

import pyarrow as pa
import pytest
from inputs import CLASSES, csv_text, predictions
from pyarrow import feather, parquet

from mcllo.__main__ import run_command_line

COUNTED = {"path": None, "times": 0}


def count_opening(event, args):
    """Count what Python opens, as `sys.addaudithook` says it."""
    if event == "open" and isinstance(args[0], (str, bytes)):
        COUNTED["times"] += os.fsdecode(args[0]) == COUNTED["path"]


sys.addaudithook(count_opening)


@pytest.fixture
def openings(monkeypatch):
    """Count also what pyarrow opens by itself, which Python does not hear of."""
    opened_by_arrow = pa.OSFile

    def counted(name, *mode):
        count_opening("open", [name])
        return opened_by_arrow(name, *mode)

    def of_command(verb, path, *options):
        COUNTED.update(path=str(path), times=0)
        assert run_command_line([verb, str(path), "--label", "y", *options]) == 0
        return COUNTED["times"]

    monkeypatch.setattr(pa, "OSFile", counted)
    yield of_command
    COUNTED["path"] = None


def table(n):
    probs, y = predictions(n)
    return pa.table({**dict(zip(CLASSES, probs.T, strict=True)), "y": y})


WRITTEN = {
    "f.csv": lambda path: path.write_text(csv_text(n=1500)),
    "f.csv.gz": lambda path: path.write_bytes(gzip.compress(csv_text(n=1500).encode())),
    "utf16.csv": lambda path: path.write_bytes(csv_text(n=1500).encode("utf-16")),
    "f.parquet": lambda path: parquet.write_table(
        table(1500), path, row_group_size=400
    ),
    "f.feather": lambda path: feather.write_feather(table(1500), path),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_file_is_opened_at_most_twice(name, tmp_path, openings, capsys):
    WRITTEN[name](tmp_path / name)
    assert openings("assess", tmp_path / name, "--seed", "1") == 2
    model = str(tmp_path / "model.json")
    assert openings("fit", tmp_path / name, "-o", model) == 2
    COUNTED["times"] = 0
    assert (
        run_command_line(
            ["apply", model, str(tmp_path / name), "-o", str(tmp_path / "out.csv")]
        )
        == 0
    )
    assert COUNTED["times"] == 2
    capsys.readouterr()


def test_one_column_for_two_classes_too(tmp_path, openings, capsys):
    path = tmp_path / "f.csv"
    path.write_text("chance,y\n" + "0.7,yes\n0.2,no\n0.6,no\n0.4,yes\n" * 50)
    assert openings("assess", path, "--positive", "yes", "--seed", "1") == 2
    capsys.readouterr()


def test_a_workbook_is_opened_once(tmp_path, openings, capsys):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for line in csv_text(n=300).splitlines():
        cells = line.split(",")
        book.active.append([float(c) if c[:1].isdigit() else c for c in cells])
    book.save(tmp_path / "f.xlsx")
    assert openings("assess", tmp_path / "f.xlsx", "--seed", "1") == 1
    capsys.readouterr()
