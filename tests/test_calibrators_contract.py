import json

import numpy as np
import pytest
from toy import TOY_X, TOY_Y

from mcllo import MCLLOCalibrator, Predictions, load_calibrator
from mcllo.calibrators._contract import FORMAT_VERSION, label_array, plain, read_rows
from mcllo.exceptions import FileFormatError, InputError


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.json"
    MCLLOCalibrator().fit(TOY_X, np.array(["a", "b", "c"])[TOY_Y]).save(path)
    return path


def test_labels_keep_their_type():
    assert label_array((1, 2)).dtype.kind == "i"
    assert label_array(("a", "b")).tolist() == ["a", "b"]
    assert label_array((True, False)).tolist() == [True, False]
    assert label_array((1, "b")).tolist() == [1, "b"]


def test_plain_values():
    found = plain({"a": np.arange(2), "b": (np.float64(1.5), "x"), "c": None})
    assert found == {"a": [0, 1], "b": [1.5, "x"], "c": None}
    assert json.dumps(found)


def test_the_file_says_what_it_is(saved):
    content = json.loads(saved.read_text())
    assert content["format"] == "mcllo calibrator"
    assert content["format_version"] == FORMAT_VERSION
    assert content["method"] == "mcllo"
    assert content["classes"] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "pickle"}, "must be a calibrator saved by mcllo"),
        ({"format_version": 99}, "must have format version 1; it has 99"),
        ({"method": "magic"}, "method 'magic', which this version does not know"),
        ({"state": {}}, "is damaged"),
        ({"params": {"nonsense": 1}}, "is damaged"),
        ({"classes": ["a"]}, "is damaged"),
    ],
)
def test_damaged_files(saved, change, message):
    saved.write_text(json.dumps(json.loads(saved.read_text()) | change))
    with pytest.raises(FileFormatError, match=message):
        load_calibrator(saved)


@pytest.mark.parametrize("text", ["", "[1, 2]", "not json", '"mcllo"'])
def test_other_files(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(FileFormatError):
        load_calibrator(path)


def test_missing_file_and_directory(tmp_path):
    with pytest.raises(FileFormatError, match="no such file"):
        load_calibrator(tmp_path / "none.json")
    with pytest.raises(FileFormatError, match="directory"):
        load_calibrator(tmp_path)


def test_rows_of_predictions_must_have_the_classes():
    fitted = MCLLOCalibrator().fit(TOY_X, TOY_Y)
    same = Predictions.from_arrays(TOY_X, TOY_Y)
    assert read_rows(fitted, same).probs is same.probs
    other = Predictions.from_arrays(TOY_X, np.array(["a", "b", "c"])[TOY_Y])
    with pytest.raises(InputError, match=r"must have the classes \[0, 1, 2\]"):
        fitted.predict_proba(other)
