"""`ChoiceCalibrator`: contract for ragged rows, gate, model file and exported forms."""

import json
import shutil
import sqlite3
import subprocess
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from choice_data import simulate, vector

import mcllo
from mcllo import ChoiceCalibrator, Predictions
from mcllo.exceptions import FileFormatError, InputError

TAU = [0.0, 0.4, -0.3, 0.2]


def biased(n=1500, seed=0):
    return simulate(n, 4, 0.6, TAU, seed=seed)


def as_lists(predictions):
    pairs = zip(predictions.probs, predictions.offered, strict=True)
    return [probs[offered].tolist() for probs, offered in pairs]


def test_maximum_likelihood_of_the_vector():
    # methods specification, section 9a
    cal = ChoiceCalibrator(penalty=0.0).fit(vector())
    assert cal.gamma_ == pytest.approx(1.264001, abs=1e-6)
    expected = [0.656898, 0.192563, 0.150540, 0.0]
    assert cal.predict_proba([[0.7, 0.2, 0.1]])[0] == pytest.approx(expected, abs=1e-6)
    assert cal.predict([[0.7, 0.2, 0.1], [0.1, 0.8, 0.05, 0.05]]).tolist() == ["A", "B"]


def test_lists_arrays_and_predictions_are_the_same():
    predictions = biased(200)
    lists = as_lists(predictions)
    table = np.where(predictions.offered, predictions.probs, np.nan)
    by_lists = ChoiceCalibrator().fit(lists, predictions.codes)
    by_table = ChoiceCalibrator().fit(table, predictions.codes)
    found = by_lists.predict_proba(lists)
    assert found == pytest.approx(by_table.predict_proba(table), abs=1e-12)
    assert found == pytest.approx(by_lists.predict_proba(predictions), abs=1e-12)
    assert found.sum(axis=1) == pytest.approx(np.ones(200))
    assert np.all(found[~predictions.offered] == 0.0)


def test_log_scores_and_probabilities_are_the_same():
    predictions = biased(200)
    table = np.where(predictions.offered, predictions.probs, np.nan)
    by_probs = ChoiceCalibrator().fit(table, predictions.codes)
    by_logits = ChoiceCalibrator(kind="logits").fit(
        np.log(table) + 3.0, predictions.codes
    )
    moved = by_logits.predict_proba(np.log(table) - 7.0)
    assert moved == pytest.approx(by_probs.predict_proba(table), abs=1e-10)


def test_lowers_the_log_loss_of_other_rows():
    cal = ChoiceCalibrator().fit(biased())
    other = biased(seed=1)
    own = (np.arange(other.n_samples), other.codes)
    recalibrated = -np.log(cal.predict_proba(other)[own]).mean()
    assert recalibrated < -np.log(other.probs[own]).mean() - 0.03


def test_option_that_is_never_right_loses_its_probability():
    predictions = simulate(2000, 4, seed=3)
    learned = predictions.take(predictions.codes < 3)
    mass = ChoiceCalibrator().fit(learned).predict_proba(learned)[:, 3].sum()
    assert learned.probs[:, 3].sum() > 80
    # that of a few rows, as the ridge is 1: the size of its shift
    assert mass < 6


def test_slope_alone_takes_more_positions_than_it_saw():
    cal = ChoiceCalibrator(terms="slope", penalty=0.0).fit(biased())
    assert np.all(cal.tau_ == 0.0)
    probs = cal.predict_proba([[0.1] * 10])
    assert probs == pytest.approx(np.full((1, 10), 0.1))
    with pytest.raises(InputError, match="no more positions than were learned from, 4"):
        ChoiceCalibrator().fit(biased()).predict_proba([[0.2] * 5])


def test_positions_alone_keep_the_slope():
    cal = ChoiceCalibrator(terms="positions").fit(biased())
    assert cal.gamma_ == 1.0
    assert np.any(cal.tau_ != 0.0)


def test_gate():
    calm = ChoiceCalibrator(gate=0.05).fit(simulate(500, 4, seed=7))
    assert not calm.gate_.recalibrates
    rows = [[0.7, 0.2, 0.1]]
    assert calm.predict_proba(rows)[0] == pytest.approx([0.7, 0.2, 0.1, 0.0])
    assert calm.fit_.gamma != 1.0
    assert ChoiceCalibrator(gate=0.05).fit(biased()).gate_.recalibrates
    with pytest.raises(InputError, match="gate must lie in"):
        ChoiceCalibrator(gate=2.0).fit(biased())


@pytest.mark.parametrize("gate", [None, 0.05])
def test_model_file(tmp_path, gate):
    cal = ChoiceCalibrator(kind="logits", gate=gate).fit(
        [[1.0, 2.0], [0.0, 1.0, 3.0]] * 30, [0, 2, 1, 2, 0, 1] * 10
    )
    cal.save(tmp_path / "choices.json")
    schema = Path(mcllo.__file__).parent / "calibrators" / "model.schema.json"
    content = json.loads((tmp_path / "choices.json").read_text())
    jsonschema.validate(content, json.loads(schema.read_text()))
    loaded = mcllo.load_calibrator(tmp_path / "choices.json")
    assert isinstance(loaded, ChoiceCalibrator)
    rows = [[0.3, -2.0], [0.0, 1.0, 2.0]]
    assert np.array_equal(loaded.predict_proba(rows), cal.predict_proba(rows))
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == (
        tmp_path / "choices.json"
    ).read_text()


def test_damaged_model_file(tmp_path):
    path = tmp_path / "choices.json"
    ChoiceCalibrator().fit(biased(100)).save(path)
    content = json.loads(path.read_text())
    del content["checksum"]
    content["state"]["tau"].pop()
    path.write_text(json.dumps(content))
    with pytest.raises(FileFormatError, match="tau must be a list of 4 numbers"):
        mcllo.load_calibrator(path)


def hard_rows(kind):
    rng = np.random.default_rng(5)
    rows = [rng.dirichlet(np.full(m, 0.3)).tolist() for m in rng.integers(2, 5, 200)]
    rows += [[1.0, 0.0], [0.0, 0.4, 0.6], [0.2, 0.2, 0.2], [1e-300, 1.0]]
    if kind == "probs":
        return rows
    return [[float(np.log(max(p, 1e-300))) - 5.0 for p in row] for row in rows]


@pytest.fixture(params=["probs", "logits"])
def exported(request):
    """A calibrator, hard rows, and their probabilities as lists."""
    predictions = biased(400)
    table = np.where(predictions.offered, predictions.probs, np.nan)
    scores = table if request.param == "probs" else np.log(table)
    cal = ChoiceCalibrator(kind=request.param).fit(scores, predictions.codes)
    rows = hard_rows(request.param)
    found = cal.predict_proba(rows)
    expected = [p[: len(row)].tolist() for row, p in zip(rows, found, strict=True)]
    return cal, rows, expected


def largest_difference(found, expected):
    pairs = zip(found, expected, strict=True)
    return max(np.abs(np.subtract(a, b)).max() for a, b in pairs)


def test_exported_python_says_the_same(exported, tmp_path):
    cal, rows, expected = exported
    made = {}
    exec(cal.export("python", tmp_path / "choices.py"), made)
    assert largest_difference(map(made["recalibrate"], rows), expected) < 1e-12
    assert made["recalibrate"]([rows[0][0], None, rows[0][1]])[1] == 0.0
    assert (tmp_path / "choices.py").read_text() == cal.export("python")


def test_exported_sql_says_the_same(exported):
    cal, rows, expected = exported
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE options (question, position, score)")
    for question, row in enumerate(rows):
        for place, score in enumerate(row):
            values = (question, "ABCD"[place], score)
            database.execute("INSERT INTO options VALUES (?, ?, ?)", values)
    found = [[] for _ in rows]
    query = cal.export("sql") + " ORDER BY question, position"
    for question, _, _, calibrated in database.execute(query):
        found[question].append(calibrated)
    assert largest_difference(found, expected) < 1e-12


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_exported_javascript_says_the_same(exported, tmp_path):
    cal, rows, expected = exported
    cal.export("js", tmp_path / "choices.mjs")
    script = (
        "import { recalibrate } from './choices.mjs';"
        f"console.log(JSON.stringify({json.dumps(rows)}.map(recalibrate)))"
    )
    (tmp_path / "run.mjs").write_text(script)
    run = subprocess.run(
        ["node", "run.mjs"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert largest_difference(json.loads(run.stdout), expected) < 1e-12


def test_refused():
    cal = ChoiceCalibrator().fit(biased(100))
    with pytest.raises(InputError, match="'python', 'js', 'sql' for choice sets"):
        cal.export("onnx")
    with pytest.raises(InputError, match="table must be a plain name"):
        cal.export("sql", table="a; drop")
    with pytest.raises(InputError, match="positions learned from"):
        cal.predict_proba(simulate(20, 3))
    with pytest.raises(InputError, match="no weights"):
        cal.fit([[0.5, 0.5]], [0], [1.0])
    with pytest.raises(InputError, match="choice sets"):
        cal.fit(Predictions.from_arrays([[0.5, 0.5]] * 2, [0, 1]))


def test_calibrators_of_classes_and_of_choice_sets_are_not_mixed():
    predictions = biased(100)
    cal = ChoiceCalibrator().fit(predictions)
    assert mcllo.export.export(cal, "python") == cal.export("python")
    with pytest.raises(InputError, match="of choice sets"):
        mcllo.export.check(cal, "python")
    of_classes = mcllo.MCLLOCalibrator(penalty=1.0).fit(
        np.full((8, 4), 0.25), list("ABCDABCD")
    )
    with pytest.raises(InputError, match="choice sets"):
        of_classes.predict_proba(predictions)
    again = predictions.with_probs(predictions.probs)
    np.testing.assert_array_equal(again.offered, predictions.offered)
    with pytest.raises(InputError, match="choice sets"):
        mcllo.Monitor.start().add(predictions, batch="a")
    with pytest.raises(InputError, match="of choice sets"):
        mcllo.Monitor.start(model=cal)
