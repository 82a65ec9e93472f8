"""Closed streams, files that change while they are read, and links: F8."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from calls import LABEL, redirected, refused, saved_model
from inputs import CLASSES, csv_text, predictions

import mcllo._apps.streaming.apply as applying
from mcllo import read_predictions
from mcllo._apps.io.source import Source
from mcllo._apps.streaming.file_blocks import blocks_of_files
from mcllo._model.likelihood import identity_theta
from mcllo.exceptions import FileFormatError

posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX streams")


@posix
@pytest.mark.slow
def test_F8_closed_streams_that_nobody_needs(tmp_path, capsys):
    good, model = saved_model(tmp_path, capsys)
    out = tmp_path / "out.csv"
    right = redirected("", "apply", model, good).stdout
    done = redirected("<&- >&- 2>&-", "apply", model, good, "-o", out)
    assert done.returncode == 0
    assert out.read_bytes() == right  # and nothing that was said
    done = redirected("<&-", "assess", good, *LABEL, "--seed", "1")
    assert done.returncode == 0
    assert done.stderr == b""
    done = redirected(
        ">&-", "assess", good, *LABEL, "--seed", "1", "--html", tmp_path / "r.md"
    )
    assert done.returncode == 0
    assert (tmp_path / "r.md").read_text().startswith("#")


@posix
@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "verb", "words"),
    [
        (
            "<&-",
            ["assess", "-", *LABEL],
            b"standard input is closed. Name a file instead of -.",
        ),
        (
            ">&-",
            ["apply", "model.json", "good.csv"],
            b"standard output is closed. Name a file",
        ),
        (">&-", ["fit", "good.csv", *LABEL, "-o", "-"], b"standard output is closed."),
        ("2>&-", ["assess", "missing.csv", *LABEL], b""),
    ],
)
def test_F8_closed_streams_that_are_needed(how, verb, words, tmp_path, capsys):
    saved_model(tmp_path, capsys)
    places = [str(tmp_path / word) if "." in word else word for word in verb]
    done = redirected(how, *places)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count(b"\n") == (1 if words else 0)
    assert done.stdout == b""  # not what was meant for a closed standard error


@posix
@pytest.mark.slow
def test_F8_a_full_standard_output_is_one_line(tmp_path, capsys):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    good, model = saved_model(tmp_path, capsys)
    for verb in (["assess", good, *LABEL], ["apply", model, good]):
        done = redirected("> /dev/full", *verb)
        assert done.returncode == 2
        assert done.stderr.count(b"\n") == 1
        assert b"No space left on device" in done.stderr


def table_in(folder, kind, n=2000):
    """Write rows of three classes in one of the formats; return the file and how it is read."""
    path = folder / f"f.{kind}"
    probs, y = predictions(n)
    table = pa.table({**dict(zip(CLASSES, probs.T, strict=True)), "y": y})
    if kind == "csv":
        path.write_text(csv_text(n=n))
    elif kind == "parquet":
        pq.write_table(table, path, row_group_size=500)
    elif kind == "feather":
        from pyarrow import feather

        feather.write_feather(table, path, chunksize=500, compression="uncompressed")
    else:
        np.save(path, np.asarray(probs))
        np.save(folder / "y.npy", np.array(y))
        return path, {"label": str(folder / "y.npy"), "classes": CLASSES}
    return path, {"label": "y"}


def cut(path):
    """Do to a file what a program does that writes it anew."""
    with path.open("rb+") as file:
        file.truncate(path.stat().st_size // 2)


@pytest.mark.parametrize("kind", ["csv", "parquet", "feather", "npy"])
def test_F8_a_file_cut_short_between_two_passes(kind, tmp_path):
    path, options = table_in(tmp_path, kind)
    with blocks_of_files(path, spill=False, rows=500, **options) as blocks:
        assert blocks.first_pass.n_samples == 2000
        cut(path)
        with pytest.raises(
            FileFormatError, match=r"must stay as it is while it is read"
        ):
            blocks.log_partition(identity_theta(2))


@pytest.mark.parametrize("kind", ["csv", "parquet", "feather"])
def test_F8_a_file_cut_short_while_rows_come(kind, tmp_path):
    path, _ = table_in(tmp_path, kind)
    source = Source(path)

    def read():
        for number, _ in enumerate(source.parts(CLASSES, rows=500)):
            if number == 0:
                cut(path)
        source.refuse_changed()  # CSV was read ahead: all rows came before it was cut

    with pytest.raises(FileFormatError, match="must stay as it is while it is read"):
        read()


@pytest.mark.parametrize("change", ["grown", "replaced", "removed"])
def test_F8_other_changes(change, tmp_path, monkeypatch):
    path, options = table_in(tmp_path, "csv", n=60)
    understood = Source.refuse_changed

    def changed_at_the_end(source):
        if change == "grown":
            with path.open("a") as file:
                file.write("0.2,0.3,0.5,cat\n")
        elif change == "replaced":
            other = tmp_path / "other.csv"
            other.write_text(csv_text(n=60))
            other.replace(path)
        else:
            path.unlink()
        understood(source)

    monkeypatch.setattr(Source, "refuse_changed", changed_at_the_end)
    with pytest.raises(FileFormatError, match="another program has written to it"):
        read_predictions(path, **options)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_F8_apply_writes_nothing_of_a_file_that_is_cut_meanwhile(
    kind, tmp_path, capsys, monkeypatch
):
    _, model = saved_model(tmp_path, capsys)
    path, _ = table_in(tmp_path, kind)
    out, predict = tmp_path / "out.csv", applying._predict_probabilities
    out.write_text("old")

    def cutting(*arguments):
        if path.stat().st_size > 20_000:
            cut(path)
        return predict(*arguments)

    monkeypatch.setattr(applying, "_predict_probabilities", cutting)
    line = refused(capsys, "apply", model, path, "-o", out)
    assert "must stay as it is while it is read" in line
    assert out.read_text() == "old"


@posix
def test_F8_links_that_lead_to_themselves(tmp_path, capsys):
    good, model = saved_model(tmp_path, capsys)
    loop, other = tmp_path / "loop.csv", tmp_path / "loop.json"
    for link in (loop, other):
        link.symlink_to(link)
    for verb in (
        ["assess", loop, *LABEL],
        ["fit", good, *LABEL, "-o", other],
        ["apply", model, good, "-o", loop],
        ["apply", other, good, "-o", tmp_path / "out.csv"],
        ["assess", good, *LABEL, "--html", tmp_path / "loop.json"],
        ["monitor", "start", other],
        ["monitor", "add", other, good, *LABEL, "--batch", "1"],
    ):
        assert "loop." in refused(capsys, *verb)
    assert loop.is_symlink()
    assert other.is_symlink()
