"""Files: what is read whole and what in blocks, and fits of every method by its name.

A small file is read whole. A folder of files is read in blocks, so the same rows come both ways.
"""

import json

import data
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from inputs import CLASSES, csv_text, predictions

from mcllo import Assessment, assess, load_calibrator, read_predictions
from mcllo.__main__ import run_command_line
from mcllo._apps.streaming.assess_file import (
    MIN_BYTES_FOR_BLOCKS,
    BlockAssessment,
    assess_file,
    is_large_file,
)
from mcllo._apps.streaming.fit_file import fit_file, fit_method
from mcllo.calibrators import CALIBRATORS, AutoCalibrator, TemperatureScaling
from mcllo.exceptions import InputError

READING = {"label": "y", "classes": CLASSES, "baseline": None, "weight": None}
PARAMS = {
    "penalty": 0.0,
    "center": "identity",
    "gate": None,
    "normalize": False,
    "clip": None,
}
FLAGS = ["--label", "y", "--classes", ",".join(CLASSES)]
NOTHING = {"penalty": None, "center": None, "gate": None}
TIDY = {"prefix": "", "logits": False, "normalize": False, "clip": None}


def reading(**more):
    return {**READING, **TIDY, **more}


def write(path, table, y, size=None, **more):
    columns = {name: table[:, j] for j, name in enumerate(CLASSES)}
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({**columns, "y": y, **more}), path, row_group_size=size)
    return path


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    """A file of 900 rows, alone in its folder."""
    more = {"g": np.arange(900) // 9, "w": np.random.default_rng(0).random(900)}
    path = tmp_path_factory.mktemp("rows") / "p.parquet"
    return write(path, *data.drawn(900, CLASSES, 0), 200, **more)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    path = tmp_path_factory.mktemp("good") / "good.csv"
    path.write_text(csv_text(120))
    return path


@pytest.fixture(scope="module")
def scores(tmp_path_factory):
    probs, y = predictions(120)
    path = tmp_path_factory.mktemp("scores") / "scores.parquet"
    return write(path, 2.0 * np.log(probs) + 1.0, y)


# ---- whole or in blocks


def test_size_decides(parquet, tmp_path):
    assert not is_large_file(parquet)
    assert not is_large_file("-")
    assert is_large_file(parquet.parent)
    with (tmp_path / "large.csv").open("wb") as file:
        file.truncate(MIN_BYTES_FOR_BLOCKS + 1)  # takes no room on a disk
    assert is_large_file(tmp_path / "large.csv")


def test_both_ways_give_one_answer(parquet):
    small = assess_file(parquet, READING, seed=1)
    large = assess_file(parquet.parent, READING, seed=1)
    assert (type(small), type(large)) == (Assessment, BlockAssessment)
    assert large.test.statistic == pytest.approx(small.test.statistic, rel=1e-10)
    assert str(large) == str(small)


@pytest.mark.parametrize(
    ("more", "options"),
    [({"groups": "g"}, {}), ({}, {"rule": "auto"}), ({}, {"whole": True})],
)
def test_what_needs_all_rows_reads_all(parquet, more, options):
    found = assess_file(parquet.parent, {**READING, **more}, seed=1, **options)
    assert isinstance(found, Assessment)


def test_fits_are_one_fit(parquet, tmp_path):
    small = fit_file(parquet, READING, PARAMS)
    large = fit_file(parquet.parent, READING, PARAMS, workers=2)
    np.testing.assert_allclose(large.fit_.theta, small.fit_.theta, rtol=1e-10)
    large.save(tmp_path / "m.json")
    rows = read_predictions(parquet, **READING).probs[:5]
    again = load_calibrator(tmp_path / "m.json").predict_proba(rows)
    np.testing.assert_allclose(again, small.predict_proba(rows))


def test_the_command_line_streams(parquet, tmp_path, capsys):
    flags = [str(parquet.parent), *FLAGS]
    assert (
        run_command_line(["assess", *flags, "--seed", "1", "--json", "--workers", "2"])
        == 0
    )
    content = json.loads(capsys.readouterr().out)
    probs = read_predictions(parquet, **READING)
    assert content["test"]["statistic"] == pytest.approx(
        assess(probs, seed=1).test.statistic
    )
    fitting = ["fit", *flags, "--method", "mcllo", "-o", str(tmp_path / "m.json")]
    assert run_command_line(fitting) == 0
    assert "map of 3 classes (baseline: truck) from 900 rows" in capsys.readouterr().out


def test_the_default_of_fit_is_auto_where_the_rows_fit_into_memory(
    parquet, tmp_path, monkeypatch, capsys
):
    model = str(tmp_path / "m.json")
    words = ["fit", str(parquet.parent), *FLAGS, "-o", model]
    assert run_command_line(words) == 0
    assert load_calibrator(model).method == "auto"
    capsys.readouterr()

    monkeypatch.setenv("MCLLO_MEMORY", "1e-6")  # a thousand bytes
    assert run_command_line(words) == 0
    fitted = load_calibrator(model)
    assert fitted.method == "mcllo"
    by_blocks = fit_file(parquet.parent, READING, PARAMS)
    np.testing.assert_allclose(fitted.fit_.theta, by_blocks.fit_.theta, rtol=1e-10)
    out, err = capsys.readouterr()
    assert out == f"{model}: mcllo map of 3 classes (baseline: truck) from 900 rows\n"
    assert err == (
        "mcllo: note: The rows do not fit into memory, which auto, the default, needs: "
        "MCLLO is fitted in blocks.\n"
    )
    # trees are those of auto alone, which then says what it needs
    assert run_command_line([*words, "--flexible"]) == 2
    assert "--method auto needs all rows in memory" in capsys.readouterr().err
    monkeypatch.setenv("MCLLO_MEMORY", "much")
    assert run_command_line(words) == 2
    assert "MCLLO_MEMORY must be a number of gigabytes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        ("assess", ["--weight", "w", "--weight-kind", "survey"]),
        ("assess", ["--baseline", "auto"]),
        ("fit", ["--center", "temperature"]),
        ("fit", ["--baseline", "all"]),
    ],
)
def test_folders_are_read_whole_where_need_be_and_there_is_room(
    parquet, tmp_path, monkeypatch, capsys, command, flags
):
    more = (
        ["--seed", "1", "--json"]
        if command == "assess"
        else ["-o", str(tmp_path / "m.json")]
    )
    line = [*FLAGS, *flags, *more]
    assert run_command_line([command, str(parquet), *line]) == 0
    small = capsys.readouterr().out
    (tmp_path / "m.json").unlink(missing_ok=True)
    assert run_command_line([command, str(parquet.parent), *line]) == 0
    assert capsys.readouterr().out == small
    (tmp_path / "m.json").unlink(missing_ok=True)
    monkeypatch.setenv("MCLLO_MEMORY", "1e-6")  # a thousand bytes
    assert run_command_line([command, str(parquet.parent), *line]) == 2
    refused = capsys.readouterr().err.strip()
    assert refused.count("\n") == 0
    assert f"{' '.join(flags[-2:])} needs all rows in memory, and" in refused
    assert "Use fewer rows. MCLLO_MEMORY=1 says that there is more." in refused


# ---- every method by its name


@pytest.mark.parametrize("method", ["auto", "beta", "mcllo"])
def test_a_file_gives_what_its_rows_give_and_a_saved_map_the_same(
    good, tmp_path, method
):
    rows = read_predictions(good, label="y")
    expected = CALIBRATORS[method]().fit(rows).predict_proba(rows.probs)
    fitted = fit_method(good, reading(), method, NOTHING)
    fitted.calibrator.save(tmp_path / "m.json")
    for made in (fitted.calibrator, load_calibrator(tmp_path / "m.json")):
        np.testing.assert_array_equal(made.predict_proba(rows.probs), expected)
    content = json.loads(json.dumps(fitted.to_dict(), allow_nan=False))
    assert content["method"] == method
    assert content["classes"] == CLASSES
    assert content["n_samples"] == fitted.n_samples == 120
    assert content["text"] == str(fitted)
    if method == "mcllo":
        assert str(fitted) == "mcllo map of 3 classes (baseline: truck) from 120 rows"
    else:
        assert str(fitted).startswith(f"{method} map of 3 classes from 120 rows")
    if method == "auto":
        assert sum(content["weights"].values()) == pytest.approx(1.0)
        assert content["gain"] == fitted.calibrator.expected_gain_


@pytest.mark.parametrize("method", ["auto", "vector"])
def test_logits_stay_logits(scores, method):
    fitted = fit_method(scores, reading(logits=True), method, NOTHING).calibrator
    assert (fitted.on, fitted.input) == ("logits", "logits")
    rows = read_predictions(scores, label="y", logits=True)
    expected = CALIBRATORS[method](on="logits").fit(rows).predict_proba(rows.logits)
    np.testing.assert_array_equal(fitted.predict_proba(rows.logits), expected)


def test_options_reach_the_method(good, scores):
    auto = fit_method(good, reading(normalize=True), "auto", {**NOTHING, "gate": 0.05})
    assert (
        auto.calibrator.get_params()
        == AutoCalibrator(gate=0.05, normalize=True).get_params()
    )
    ridge = fit_method(
        scores, reading(logits=True), "vector", {**NOTHING, "penalty": 2.0}
    )
    assert ridge.calibrator.penalty == 2.0
    floor = fit_method(good, reading(clip=1e-4), "temperature", NOTHING).calibrator
    assert floor.get_params() == TemperatureScaling(clip=1e-4).get_params()
    every = fit_method(
        good, reading(), "mcllo", {**NOTHING, "penalty": 1.0}, rule="all"
    )
    assert every.calibrator.baseline == "all"


def test_auto_of_rows_too_few_to_leave_out_has_no_error(tmp_path):
    path = tmp_path / "two.csv"
    path.write_text("a,b,y\n0.6,0.4,a\n0.3,0.7,b\n")
    fitted = fit_method(path, reading(classes=["a", "b"]), "auto", NOTHING)
    json.dumps(fitted.to_dict(), allow_nan=False)


def test_a_folder_is_one_file_where_there_is_room(scores, monkeypatch):
    small = fit_method(scores, reading(logits=True), "auto", NOTHING)
    assert str(fit_method(scores.parent, reading(logits=True), "auto", NOTHING)) == str(
        small
    )
    # 120 rows of 3 classes and a label in float64, four copies: 15 kB
    monkeypatch.setenv("MCLLO_MEMORY", "15e-6")
    with pytest.raises(
        InputError, match=r"method='auto' needs all rows in memory, and 120 rows"
    ):
        fit_method(scores.parent, reading(logits=True), "auto", NOTHING)
