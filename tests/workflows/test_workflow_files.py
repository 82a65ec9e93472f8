"""Files: what is read whole and what in blocks, and fits of every method by its name."""

import json
from functools import partial

import data
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from inputs import CLASSES, csv_text, predictions

from mcllo import Assessment, assess, load_calibrator, read_predictions
from mcllo.__main__ import run
from mcllo._blocks.assess import BlockAssessment, assess_blocks
from mcllo._workflows import assess as _files
from mcllo._workflows import fit_file as _fit_method
from mcllo._workflows.assess import assess_file, is_large
from mcllo._workflows.fit_file import fit_file, fit_method
from mcllo.calibrators import CALIBRATORS, AutoCalibrator, TemperatureScaling
from mcllo.exceptions import InputError

READING = {"label": "y", "classes": CLASSES, "baseline": None, "weight": None}
PARAMS = {"penalty": 0.0, "center": "identity", "gate": None, "normalize": False, "clip": None}
FLAGS = ["--label", "y", "--classes", ",".join(CLASSES)]
NEED_LOGITS = ("vector", "matrix")
NOTHING = {"penalty": None, "center": None, "gate": None}
TIDY = {"prefix": "", "logits": False, "normalize": False, "clip": None}


def reading(**more):
    return {**READING, **TIDY, **more}


def write(path, table, y, size=None, **more):
    columns = {name: table[:, j] for j, name in enumerate(CLASSES)}
    pq.write_table(pa.table({**columns, "y": y, **more}), path, row_group_size=size)
    return path


@pytest.fixture
def parquet(tmp_path):
    more = {"g": np.arange(900) // 9, "w": np.random.default_rng(0).random(900)}
    return write(tmp_path / "p.parquet", *data.drawn(900, CLASSES, 0), 200, **more)


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "good.csv"
    path.write_text(csv_text(120))
    return path


@pytest.fixture
def scores(tmp_path):
    probs, y = predictions(120)
    return write(tmp_path / "scores.parquet", 2.0 * np.log(probs) + 1.0, y)


@pytest.fixture
def in_blocks(monkeypatch):
    """Return what makes the files of these tests large ones."""
    return lambda: monkeypatch.setattr(_files, "LARGE_FILE", 1000)


# ---- whole or in blocks


def test_size_decides(parquet, in_blocks):
    assert not is_large(parquet)
    assert not is_large("-")
    assert is_large(parquet.parent)
    in_blocks()
    assert is_large(parquet)


def test_both_ways_give_one_answer(parquet, in_blocks):
    small = assess_file(parquet, READING, seed=1)
    in_blocks()
    large = assess_file(parquet, READING, seed=1)
    assert (type(small), type(large)) == (Assessment, BlockAssessment)
    assert large.test.statistic == pytest.approx(small.test.statistic, rel=1e-10)
    assert str(large) == str(small)


@pytest.mark.parametrize(
    ("more", "options"), [({"groups": "g"}, {}), ({}, {"rule": "auto"}), ({}, {"whole": True})]
)
def test_what_needs_all_rows_reads_all(parquet, in_blocks, more, options):
    in_blocks()
    found = assess_file(parquet, {**READING, **more}, seed=1, **options)
    assert isinstance(found, Assessment)


def test_fits_are_one_fit(parquet, tmp_path, in_blocks):
    small = fit_file(parquet, READING, PARAMS)
    in_blocks()
    large = fit_file(parquet, READING, PARAMS, workers=2)
    np.testing.assert_allclose(large.fit_.theta, small.fit_.theta, rtol=1e-10)
    large.save(tmp_path / "m.json")
    rows = read_predictions(parquet, **READING).probs[:5]
    again = load_calibrator(tmp_path / "m.json").predict_proba(rows)
    np.testing.assert_allclose(again, small.predict_proba(rows))


def test_the_command_line_streams(parquet, tmp_path, in_blocks, capsys):
    in_blocks()
    flags = [str(parquet), *FLAGS]
    assert run(["assess", *flags, "--seed", "1", "--json", "--workers", "2"]) == 0
    content = json.loads(capsys.readouterr().out)
    probs = read_predictions(parquet, **READING)
    assert content["test"]["statistic"] == pytest.approx(assess(probs, seed=1).test.statistic)
    assert run(["fit", *flags, "-o", str(tmp_path / "m.json")]) == 0
    assert "map of 3 classes (baseline: truck) from 900 rows" in capsys.readouterr().out


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
def test_large_files_and_directories_are_read_whole_where_need_be(
    parquet, tmp_path, in_blocks, monkeypatch, capsys, command, flags
):
    more = ["--seed", "1", "--json"] if command == "assess" else ["-o", str(tmp_path / "m.json")]
    line = [str(parquet), *FLAGS, *flags, *more]
    assert run([command, *line]) == 0
    small = capsys.readouterr().out
    in_blocks()
    assert run([command, *line]) == 0
    assert capsys.readouterr().out == small
    (tmp_path / "m.json").unlink(missing_ok=True)
    assert run([command, str(parquet.parent), *line[1:]]) == 0
    assert capsys.readouterr().out == small
    (tmp_path / "m.json").unlink(missing_ok=True)
    monkeypatch.setenv("MCLLO_MEMORY", "1e-6")  # a thousand bytes
    assert run([command, str(parquet.parent), *line[1:]]) == 2
    refused = capsys.readouterr().err.strip()
    assert refused.count("\n") == 0
    named = " ".join(flags[-2:]) if flags[0] != "--groups" else "--groups"
    assert f"{named} needs all rows in memory, and" in refused
    assert "Use fewer rows. MCLLO_MEMORY=1 says that there is more." in refused


@pytest.mark.parametrize("method", ["exact", "sequential"])
def test_exact_p_values_of_large_files_are_refused(parquet, monkeypatch, in_blocks, capsys, method):
    in_blocks()
    monkeypatch.setattr(_files, "assess_blocks", partial(assess_blocks, most_cells=1000))
    line = [str(parquet), *FLAGS, "--method", method]
    assert run(["assess", *line]) != 0
    refused = capsys.readouterr().err.strip()
    assert f"--method {method} draws labels for rows in memory; 900 are too many here" in refused
    assert "Use --method auto or" in refused


def test_a_directory_is_one_table_and_has_a_report(parquet, tmp_path, capsys):
    line = ["assess", str(parquet.parent), *FLAGS, "--seed", "1"]
    assert run(line) == 0
    assert "Calibration of 900 predictions of 3 classes" in capsys.readouterr().out
    assert run([*line, "--html", str(tmp_path / "r.html")]) == 0
    assert "Calibration of 900 predictions" in (tmp_path / "r.html").read_text()


# ---- every method by its name


@pytest.mark.parametrize("method", sorted(set(CALIBRATORS) - set(NEED_LOGITS)))
def test_a_file_gives_what_its_rows_give_and_a_saved_map_the_same(good, tmp_path, method):
    rows = read_predictions(good, label="y")
    expected = CALIBRATORS[method]().fit(rows).predict_proba(rows.probs)
    fitted = fit_method(good, reading(), method, NOTHING)
    fitted.calibrator.save(tmp_path / "m.json")
    for made in (fitted.calibrator, load_calibrator(tmp_path / "m.json")):
        np.testing.assert_array_equal(made.predict_proba(rows.probs), expected)
    assert fitted.n_samples == 120
    if method != "mcllo":
        assert str(fitted).startswith(f"{method} map of 3 classes from 120 rows")


def test_mcllo_is_what_it_was(good):
    fitted = fit_method(good, reading(), "mcllo", NOTHING)
    assert str(fitted) == "map of 3 classes (baseline: truck) from 120 rows"
    assert fitted.calibrator.get_params()["penalty"] == 0.0
    every = fit_method(good, reading(), "mcllo", {**NOTHING, "penalty": 1.0}, rule="all")
    assert every.calibrator.baseline == "all"


@pytest.mark.parametrize("method", ["auto", "temperature", *NEED_LOGITS])
def test_logits_stay_logits(scores, method):
    fitted = fit_method(scores, reading(logits=True), method, NOTHING).calibrator
    assert (fitted.on, fitted.input) == ("logits", "logits")
    rows = read_predictions(scores, label="y", logits=True)
    expected = CALIBRATORS[method](on="logits").fit(rows).predict_proba(rows.logits)
    np.testing.assert_array_equal(fitted.predict_proba(rows.logits), expected)


def test_options_reach_the_method(good, scores):
    auto = fit_method(good, reading(normalize=True), "auto", {**NOTHING, "gate": 0.05})
    assert auto.calibrator.get_params() == AutoCalibrator(gate=0.05, normalize=True).get_params()
    assert "recalibrated" in str(auto) or "left alone" in str(auto)
    ridge = fit_method(scores, reading(logits=True), "vector", {**NOTHING, "penalty": 2.0})
    assert ridge.calibrator.penalty == 2.0
    floor = fit_method(good, reading(clip=1e-4), "temperature", NOTHING).calibrator
    assert floor.get_params() == TemperatureScaling(clip=1e-4).get_params()


@pytest.mark.parametrize("method", ["auto", "mcllo", "beta"])
def test_plain_values(good, method):
    fitted = fit_method(good, reading(), method, NOTHING)
    content = json.loads(json.dumps(fitted.to_dict(), allow_nan=False))
    assert content["method"] == method
    assert content["classes"] == CLASSES
    assert content["n_samples"] == 120
    assert content["text"] == str(fitted)
    if method == "auto":
        assert sum(content["weights"].values()) == pytest.approx(1.0)
        assert content["gain"] == fitted.calibrator.expected_gain_


def test_auto_of_rows_too_few_to_leave_out_has_no_error(tmp_path):
    path = tmp_path / "two.csv"
    path.write_text("a,b,y\n0.6,0.4,a\n0.3,0.7,b\n")
    fitted = fit_method(path, reading(classes=["a", "b"]), "auto", NOTHING)
    json.dumps(fitted.to_dict(), allow_nan=False)


def test_a_large_file_is_read_whole_where_there_is_room(scores, in_blocks):
    small = fit_method(scores, reading(logits=True), "auto", NOTHING)
    in_blocks()
    large = fit_method(scores, reading(logits=True), "auto", NOTHING)
    assert str(large) == str(small)


def test_a_file_that_is_too_large_is_refused_before_it_is_read(scores, monkeypatch, in_blocks):
    in_blocks()
    # 120 rows of 3 classes and a label in float64, four copies: 15 kB
    monkeypatch.setenv("MCLLO_MEMORY", "15e-6")
    monkeypatch.setattr(_fit_method, "read_predictions", None)
    with pytest.raises(InputError, match=r"method='auto' needs all rows in memory, and 120 rows"):
        fit_method(scores, reading(logits=True), "auto", NOTHING)


@pytest.mark.parametrize("method", ["mcllo", "auto"])
def test_a_directory_is_one_file(good, method):
    assert fit_method(good.parent, reading(), method, NOTHING).n_samples == 120


@pytest.mark.parametrize(
    ("method", "given", "more", "message"),
    [
        ("tempature", {}, {}, "method='tempature' is not known; did you mean 'temperature'?"),
        ("zzz", {}, {}, "method='zzz' is not known; known are"),
        ("auto", {"penalty": 1.0}, {}, "penalty=1.0 must be left out: method='auto' has no such"),
        ("auto", {}, {"baseline": "cat"}, r"baseline='cat' must be left out.*\(mcllo has it\)"),
        ("beta", {"gate": 0.05}, {}, r"gate=0.05 must be left out.*\(mcllo and auto have it\)"),
        ("histogram", {}, {"clip": 1e-3}, "clip=0.001 must be left out: method='histogram'"),
        ("vector", {}, {}, "method='vector' needs logits. Pass logits=True"),
    ],
)
def test_errors(good, method, given, more, message):
    with pytest.raises(InputError, match=message):
        fit_method(good, reading(**more), method, {**NOTHING, **given})
