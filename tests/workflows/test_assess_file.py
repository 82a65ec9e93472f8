import json
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mcllo import Assessment, assess, load_calibrator, read_predictions
from mcllo.__main__ import run
from mcllo._blocks.assess import BlockAssessment, assess_blocks
from mcllo._workflows import assess as _files
from mcllo._workflows.assess import assess_file, fit_file, is_large

READING = {"label": "y", "classes": None, "baseline": None, "weight": None}
PARAMS = {"penalty": 0.0, "center": "identity", "gate": None, "normalize": False, "clip": None}


@pytest.fixture
def parquet(tmp_path):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 1, 1], size=900)
    y = np.array(["a", "b", "c"])[(probs.cumsum(axis=1) < rng.random((900, 1))).sum(axis=1)]
    columns = {name: probs[:, j] for j, name in enumerate("abc")}
    path = tmp_path / "p.parquet"
    pq.write_table(
        pa.table({**columns, "y": y, "g": np.arange(900) // 9, "w": rng.random(900)}),
        path,
        row_group_size=200,
    )
    return path


def reading(**more):
    return {**READING, "classes": ["a", "b", "c"], **more}


def test_size_decides(parquet, monkeypatch):
    assert not is_large(parquet)
    assert not is_large("-")
    assert is_large(parquet.parent)
    monkeypatch.setattr(_files, "LARGE_FILE", 1000)
    assert is_large(parquet)


def test_both_ways_give_one_answer(parquet, monkeypatch):
    small = assess_file(parquet, reading(), seed=1)
    monkeypatch.setattr(_files, "LARGE_FILE", 1000)
    large = assess_file(parquet, reading(), seed=1)
    assert (type(small), type(large)) == (Assessment, BlockAssessment)
    assert large.test.statistic == pytest.approx(small.test.statistic, rel=1e-10)
    assert str(large) == str(small)


@pytest.mark.parametrize(
    ("more", "options"), [({"groups": "g"}, {}), ({}, {"rule": "auto"}), ({}, {"whole": True})]
)
def test_what_needs_all_rows_reads_all(parquet, monkeypatch, more, options):
    monkeypatch.setattr(_files, "LARGE_FILE", 1000)
    found = assess_file(parquet, reading(**more), seed=1, **options)
    assert isinstance(found, Assessment)


def test_fits_are_one_fit(parquet, tmp_path, monkeypatch):
    small = fit_file(parquet, reading(), PARAMS)
    monkeypatch.setattr(_files, "LARGE_FILE", 1000)
    large = fit_file(parquet, reading(), PARAMS, workers=2)
    np.testing.assert_allclose(large.fit_.theta, small.fit_.theta, rtol=1e-10)
    large.save(tmp_path / "m.json")
    rows = read_predictions(parquet, **reading()).probs[:5]
    np.testing.assert_allclose(
        load_calibrator(tmp_path / "m.json").predict_proba(rows), small.predict_proba(rows)
    )


def test_the_command_line_streams(parquet, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(_files, "LARGE_FILE", 1000)
    flags = [str(parquet), "--label", "y", "--classes", "a,b,c"]
    assert run(["assess", *flags, "--seed", "1", "--json", "--workers", "2"]) == 0
    content = json.loads(capsys.readouterr().out)
    probs = read_predictions(parquet, **reading())
    assert content["test"]["statistic"] == pytest.approx(assess(probs, seed=1).test.statistic)
    assert run(["fit", *flags, "-o", str(tmp_path / "m.json")]) == 0
    assert "map of 3 classes (baseline: c) from 900 rows" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        ("assess", ["--groups", "g"]),
        ("assess", ["--weight", "w", "--weight-kind", "survey"]),
        ("assess", ["--baseline", "auto"]),
        ("fit", ["--penalty", "firth"]),
        ("fit", ["--center", "temperature"]),
        ("fit", ["--gate", "0.05"]),
        ("fit", ["--baseline", "all"]),
    ],
)
def test_a_large_file_is_read_whole_where_need_be_and_a_directory_refused(
    parquet, tmp_path, monkeypatch, capsys, command, flags
):
    more = ["--seed", "1", "--json"] if command == "assess" else ["-o", str(tmp_path / "m.json")]
    line = [str(parquet), "--label", "y", "--classes", "a,b,c", *flags, *more]
    assert run([command, *line]) == 0
    small = capsys.readouterr().out
    monkeypatch.setattr(_files, "LARGE_FILE", 1000)
    assert run([command, *line]) == 0
    assert capsys.readouterr().out == small
    (tmp_path / "m.json").unlink(missing_ok=True)
    assert run([command, str(parquet.parent), *line[1:]]) != 0
    refused = capsys.readouterr().err.strip()
    assert refused.count("\n") == 0
    named = " ".join(flags[-2:]) if flags[0] != "--groups" else "--groups"
    assert f"{named} needs all rows in memory, and the files of a directory" in refused
    assert "into one file, or do without." in refused


def test_a_report_of_a_directory_is_refused(parquet, tmp_path, capsys):
    line = [str(parquet.parent), "--label", "y", "--classes", "a,b,c"]
    assert run(["assess", *line, "--html", str(tmp_path / "r.html")]) != 0
    assert "a report needs all rows in memory" in capsys.readouterr().err


@pytest.mark.parametrize("method", ["exact", "sequential"])
def test_exact_p_values_of_large_files_are_refused(parquet, monkeypatch, capsys, method):
    monkeypatch.setattr(_files, "LARGE_FILE", 1000)
    monkeypatch.setattr(_files, "assess_blocks", partial(assess_blocks, most_cells=1000))
    line = [str(parquet), "--label", "y", "--classes", "a,b,c", "--method", method]
    assert run(["assess", *line]) != 0
    refused = capsys.readouterr().err.strip()
    assert f"--method {method} draws labels for rows in memory; 900 are too many here" in refused
    assert "Use --method auto or" in refused


def test_a_directory_is_one_table(parquet, capsys):
    flags = [str(parquet.parent), "--label", "y", "--classes", "a,b,c"]
    assert run(["assess", *flags, "--seed", "1"]) == 0
    assert "Calibration of 900 predictions of 3 classes" in capsys.readouterr().out
