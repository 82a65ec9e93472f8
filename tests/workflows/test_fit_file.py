import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from inputs import CLASSES, csv_text, predictions

from mcllo import load_calibrator, read_predictions
from mcllo._workflows import assess as _files
from mcllo._workflows import fit_file as _fit_method
from mcllo._workflows.fit_file import fit_method, memory
from mcllo.calibrators import CALIBRATORS, AutoCalibrator, TemperatureScaling
from mcllo.exceptions import InputError

NEED_LOGITS = ("vector", "matrix")
NOTHING = {"penalty": None, "center": None, "gate": None}


def reading(**more):
    return {
        "label": "y",
        "classes": CLASSES,
        "baseline": None,
        "weight": None,
        "prefix": "",
        "logits": False,
        "normalize": False,
        "clip": None,
        **more,
    }


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "good.csv"
    path.write_text(csv_text(120))
    return path


@pytest.fixture
def scores(tmp_path):
    probs, y = predictions(120)
    rows = 2.0 * np.log(probs) + 1.0
    path = tmp_path / "scores.parquet"
    columns = {name: rows[:, j] for j, name in enumerate(CLASSES)}
    pq.write_table(pa.table({**columns, "y": y}), path)
    return path


@pytest.mark.parametrize("method", sorted(set(CALIBRATORS) - {*NEED_LOGITS, "mcllo"}))
def test_a_file_gives_what_its_rows_give(good, method):
    rows = read_predictions(good, label="y")
    direct = CALIBRATORS[method]().fit(rows)
    fitted = fit_method(good, reading(), method, NOTHING)
    np.testing.assert_array_equal(
        fitted.calibrator.predict_proba(rows.probs), direct.predict_proba(rows.probs)
    )
    assert fitted.n_samples == 120
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
    direct = CALIBRATORS[method](on="logits").fit(rows)
    np.testing.assert_array_equal(
        fitted.predict_proba(rows.logits), direct.predict_proba(rows.logits)
    )


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


def test_a_large_file_is_read_whole_where_there_is_room(scores, monkeypatch):
    small = fit_method(scores, reading(logits=True), "auto", NOTHING)
    monkeypatch.setattr(_files, "LARGE_FILE", 100)
    large = fit_method(scores, reading(logits=True), "auto", NOTHING)
    assert str(large) == str(small)


def test_a_file_that_is_too_large_is_refused_before_it_is_read(scores, monkeypatch):
    monkeypatch.setattr(_files, "LARGE_FILE", 100)
    # 120 rows of 3 classes and a label in float64, four copies: 15 kB
    monkeypatch.setattr(_fit_method, "memory", lambda: 15_000.0)
    monkeypatch.setattr(_fit_method, "read_predictions", None)
    with pytest.raises(InputError, match=r"method='auto' needs all rows in memory, about 0 GB"):
        fit_method(scores, reading(logits=True), "auto", NOTHING)
    assert memory() > 1e8


def test_a_directory_is_for_mcllo(good):
    assert fit_method(good.parent, reading(), "mcllo", NOTHING).n_samples == 120
    with pytest.raises(InputError, match="method='auto' needs all rows in memory, and the files"):
        fit_method(good.parent, reading(), "auto", NOTHING)


def test_saved_and_read_again(good, tmp_path):
    probs = predictions(120)[0]
    for method in sorted(set(CALIBRATORS) - set(NEED_LOGITS)):
        made = fit_method(good, reading(), method, NOTHING).calibrator
        made.save(tmp_path / "m.json")
        again = load_calibrator(tmp_path / "m.json")
        np.testing.assert_array_equal(again.predict_proba(probs), made.predict_proba(probs))


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
