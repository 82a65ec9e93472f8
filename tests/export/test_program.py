"""A program in NumPy is the calibrator: what every target writes is right before it is written."""

import json
import warnings
from dataclasses import replace

import models
import numpy as np
import pytest

from mcllo import load_calibrator
from mcllo.calibrators import CALIBRATORS, AutoCalibrator, XuDavoine
from mcllo.calibrators._auto.calibrator import MEMBER_NAMES
from mcllo.exceptions import FileFormatError, InputError
from mcllo.export import check, export
from mcllo.export._programs import PROGRAMS, ExportError, Program, build_program
from mcllo.export._targets import compare_with_calibrator, stress_test_rows


def test_every_method_has_a_program_and_a_model_here():
    assert set(PROGRAMS) == set(CALIBRATORS)
    assert {name.split(",")[0] for name in models.MAKERS} == set(CALIBRATORS)


def difference(name, given=None):
    """Return how far a program is from its calibrator on hard rows."""
    calibrator = models.model(name)
    program = build_program(calibrator, given)
    rows = stress_test_rows(program)
    assert given is None or rows.min() < -100.0
    found = compare_with_calibrator(
        "numpy", calibrator, program, rows, program.evaluate(rows), "float64"
    )
    assert found.n_rows == 1000
    return found.difference


def test_a_program_says_what_the_calibrator_does():
    for name in models.MAKERS:
        assert difference(name) <= 1e-13, name


def test_logits_for_a_calibrator_of_probabilities():
    for name in ("mcllo", "auto", "isotonic", "histogram", "beta", "identity"):
        assert difference(name, "logits") <= 1e-13, name


@pytest.mark.parametrize("key", CALIBRATORS)
def test_a_form_takes_what_the_calibrator_was_fitted_to(key, tmp_path):
    X, y = models.rows()
    logits = 1.7 * np.log(np.maximum(X, 1e-4)) + 0.3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        CALIBRATORS[key]().fit(y=y, logits=logits).save(tmp_path / "m.json")
    loaded = load_calibrator(tmp_path / "m.json")
    program = build_program(loaded)
    assert loaded.input_ == program.input == "logits"
    # far logits too: where softmax is 0, the map still sees how far, and nothing is clipped
    rows = np.concatenate([logits, 300.0 * logits])
    expected = loaded.predict_proba(logits=rows)
    np.testing.assert_allclose(program.evaluate(rows), expected, atol=1e-12)
    if key != "xu_davoine":
        assert check(loaded, "python").holds


def test_a_model_file_that_does_not_say_what_it_was_fitted_to(tmp_path):
    # as files were before the field `input`
    path = tmp_path / "m.json"
    for name, given in (("mcllo", "probs"), ("vector", "logits")):
        models.model(name).save(path)
        content = json.loads(path.read_text())
        assert content["input"] == given
        del content["input"], content["checksum"]
        path.write_text(json.dumps(content))
        assert build_program(load_calibrator(path)).input == given
        path.write_text(json.dumps(content | {"input": "images"}))
        with pytest.raises(FileFormatError, match="input must be probs or logits"):
            load_calibrator(path)


def test_every_member_of_the_pool_counts_in_some_model():
    weights = [
        models.model(name).weights_ for name in models.MAKERS if name.startswith("auto")
    ]
    counted = {
        member for own in weights for member, weight in own.items() if weight > 0.0
    }
    assert counted == set(MEMBER_NAMES)


def test_a_row_that_frequencies_make_0_stays_as_it_is():
    calibrator = models.model("mcllo, closed gate, two classes to come")
    rows = np.array(
        [[0.0, 0.0, 0.25, 0.75], [5e-324, 0.0, 0.0, 1.0], [0.5, 0.0, 0.5, 0.0]]
    )
    expected = calibrator.predict_proba(rows)
    assert (
        expected[:2, 3] > 0.7
    ).all()  # though nothing is to come of the last two classes
    assert expected[2].tolist() == [1.0, 0.0, 0.0, 0.0]
    np.testing.assert_allclose(
        build_program(calibrator).evaluate(rows), expected, atol=1e-15
    )
    made = {}
    exec(calibrator.export("python"), made)
    np.testing.assert_allclose(
        made["predict_proba"](rows.tolist()), expected, atol=1e-15
    )


@pytest.mark.parametrize(
    "form", ["python", pytest.param("sql", marks=pytest.mark.slow)]
)
def test_far_look_alike_classes_stay_finite(form):
    # log(softmax) would be -inf, and the full maps of it NaN
    calibrator = models._fit(AutoCalibrator(), power=2.5)
    similar = calibrator.stack_.members.similar
    far = replace(similar, intercept=np.array([0.0, 900.0, 0.0, -900.0]))
    members = replace(calibrator.stack_.members, similar=far)
    calibrator.stack_ = replace(calibrator.stack_, members=members)
    if form == "sql":
        pytest.importorskip("sqlglot")
        pytest.importorskip("duckdb")
    found = check(calibrator, form)
    assert found.holds, str(found)


def test_steps_that_nothing_needs_are_left_out():
    made = Program("any", ("a", "b"), "probs")
    p = made.add_step("input")
    made.add_step("log", p)  # of a 0 PostgreSQL has none, and refuses the query
    answer = made.scale_and_shift(p, 2.0)
    made.add_step("exp", answer)
    short = made.drop_unused_steps(answer)
    assert [(step.op, step.inputs) for step in short.steps] == [
        ("input", ()),
        ("scale", (0,)),
    ]
    assert short.evaluate([[0.5, 0.25]]).tolist() == [[1.0, 0.5]]


def test_what_cannot_be_said_says_so():
    with pytest.raises(ExportError, match="fitted to logits"):
        build_program(models.model("vector"), "probs")
    with pytest.raises(InputError, match="input must be"):
        build_program(models.model("mcllo"), "images")
    other = models._fit(XuDavoine(order="index"))
    with pytest.raises(ExportError, match="order='score'"):
        build_program(other)
    with pytest.raises(InputError, match="dialect is no option of onnx"):
        export(models.model("mcllo"), "onnx", dialect="duckdb")
    with pytest.raises(InputError, match="to must be one of 'onnx'"):
        export(models.model("mcllo"), "excel")


def test_the_hard_rows_are_hard():
    rows = stress_test_rows(build_program(models.model("isotonic")))
    assert ((rows == 0.0).any(axis=1)).sum() > 100
    assert (rows == 1.0).sum() >= 4
    assert ((rows > 0.0) & (rows < 1e-250)).any()
    ties = np.sort(rows, axis=1)
    assert ((ties[:, 1:] == ties[:, :-1]) & (ties[:, 1:] > 0.0)).any(axis=1).sum() > 50
    knots = np.concatenate(
        build_program(models.model("isotonic")).steps[-2].parameters["at"]
    )
    assert np.isin(rows, knots).any(axis=1).sum() > 50


def test_a_program_can_be_wrong():
    # the check is worth something: another slope is found
    calibrator = models.model("temperature")
    program = build_program(calibrator)
    next(step for step in program.steps if step.op == "scale").parameters["weight"][
        :
    ] *= 1.0 + 1e-9
    rows = stress_test_rows(program)
    assert not compare_with_calibrator(
        "wrong", calibrator, program, rows, program.evaluate(rows), "float64"
    ).holds
    nothing = np.full_like(rows, np.nan)
    assert not compare_with_calibrator(
        "nan", calibrator, program, rows, nothing, "float64"
    ).holds


def test_gates_are_as_their_names_say():
    assert models.model("mcllo, open gate").gate_.recalibrates
    for name in ("mcllo, closed gate", "auto, closed gate"):
        assert not models.model(name).gate_.recalibrates
        assert [step.op for step in build_program(models.model(name)).steps] == [
            "input",
            "unit",
        ]
