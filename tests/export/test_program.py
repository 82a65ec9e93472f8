"""A program in NumPy is the calibrator: what every target writes is right before it is written."""

from dataclasses import replace

import models
import numpy as np
import pytest

from mcllo.calibrators import CALIBRATORS, AutoCalibrator, XuDavoine
from mcllo.calibrators._auto.calibrator import KINDS
from mcllo.exceptions import InputError
from mcllo.export import check
from mcllo.export._check import compared, hard_rows
from mcllo.export._program import RUN, ExportError, Program
from mcllo.export._programs import PROGRAMS, program_of


def test_every_method_has_a_program_and_a_model_here():
    assert set(PROGRAMS) == set(CALIBRATORS)
    assert {name.split(",")[0] for name in models.MAKERS} == set(CALIBRATORS)


@pytest.mark.parametrize("name", models.MAKERS)
def test_a_program_says_what_the_calibrator_does(name):
    calibrator = models.model(name)
    program = program_of(calibrator)
    rows = hard_rows(program)
    found = compared("numpy", calibrator, program, rows, program.run(rows), "float64")
    assert found.n_rows == 1000
    assert found.difference <= 1e-13, str(found)


@pytest.mark.parametrize("name", ["mcllo", "auto", "isotonic", "histogram", "beta", "identity"])
def test_logits_for_a_calibrator_of_probabilities(name):
    calibrator = models.model(name)
    program = program_of(calibrator, "logits")
    rows = hard_rows(program)
    assert rows.min() < -100.0
    found = compared("numpy", calibrator, program, rows, program.run(rows), "float64")
    assert found.difference <= 1e-13


def test_every_member_of_the_pool_counts_in_some_model():
    weights = [models.model(name).weights_ for name in models.MAKERS if name.startswith("auto")]
    counted = {member for own in weights for member, weight in own.items() if weight > 0.0}
    assert counted == set(KINDS)


def test_a_row_that_frequencies_make_0_stays_as_it_is():
    calibrator = models.model("mcllo, closed gate, two classes to come")
    rows = np.array([[0.0, 0.0, 0.25, 0.75], [5e-324, 0.0, 0.0, 1.0], [0.5, 0.0, 0.5, 0.0]])
    expected = calibrator.predict_proba(rows)
    assert (expected[:2, 3] > 0.7).all()  # though nothing is to come of the last two classes
    assert expected[2].tolist() == [1.0, 0.0, 0.0, 0.0]
    np.testing.assert_allclose(program_of(calibrator).run(rows), expected, atol=1e-15)
    made = {}
    exec(calibrator.export("python"), made)
    np.testing.assert_allclose(made["predict_proba"](rows.tolist()), expected, atol=1e-15)


def test_far_look_alike_classes_stay_finite():
    # log(softmax) would be -inf, and the full maps of it NaN
    calibrator = models._fit(AutoCalibrator(), power=2.5)
    similar = calibrator.stack_.members.similar
    far = replace(similar, intercept=np.array([0.0, 900.0, 0.0, -900.0]))
    members = replace(calibrator.stack_.members, similar=far)
    calibrator.stack_ = replace(calibrator.stack_, members=members)
    for form in ("python", "sql"):
        found = check(calibrator, form)
        assert found.holds, str(found)


def test_steps_that_nothing_needs_are_left_out():
    made = Program("any", ("a", "b"), "probs")
    p = made.step("input")
    made.step("log", p)  # of a 0 PostgreSQL has none, and refuses the query
    answer = made.scale(p, 2.0)
    made.step("exp", answer)
    short = made.ending(answer)
    assert [(step.op, step.of) for step in short.steps] == [("input", ()), ("scale", (0,))]
    assert short.run([[0.5, 0.25]]).tolist() == [[1.0, 0.5]]


def test_what_cannot_be_said_says_so():
    with pytest.raises(ExportError, match="fitted to logits"):
        program_of(models.model("vector"), "probs")
    with pytest.raises(InputError, match="input must be"):
        program_of(models.model("mcllo"), "images")
    other = models._fit(XuDavoine(order="index"))
    with pytest.raises(ExportError, match="order='score'"):
        program_of(other)


def test_the_hard_rows_are_hard():
    rows = hard_rows(program_of(models.model("isotonic")))
    assert ((rows == 0.0).any(axis=1)).sum() > 100
    assert (rows == 1.0).sum() >= 4
    assert ((rows > 0.0) & (rows < 1e-250)).any()
    ties = np.sort(rows, axis=1)
    assert ((ties[:, 1:] == ties[:, :-1]) & (ties[:, 1:] > 0.0)).any(axis=1).sum() > 50
    knots = np.concatenate(program_of(models.model("isotonic")).steps[-2].numbers["at"])
    assert np.isin(rows, knots).any(axis=1).sum() > 50


def test_no_step_is_there_that_no_program_uses():
    used = {step.op for name in models.MAKERS for step in program_of(models.model(name)).steps}
    assert used == set(RUN)


def test_a_program_can_be_wrong():
    # the check is worth something: another slope is found
    calibrator = models.model("temperature")
    program = program_of(calibrator)
    next(step for step in program.steps if step.op == "scale").numbers["weight"][:] *= 1.0 + 1e-9
    rows = hard_rows(program)
    assert not compared("wrong", calibrator, program, rows, program.run(rows), "float64").holds
    nothing = np.full_like(rows, np.nan)
    assert not compared("nan", calibrator, program, rows, nothing, "float64").holds


def test_a_similarity_member_takes_a_few_lines():
    # eta = W1 log g + W2 g + a, as a member of the pool that knows which classes look alike
    rng = np.random.default_rng(0)
    made = Program("auto", ("a", "b", "c"), "probs")
    A, a = rng.random((3, 3)), rng.normal(size=3)
    g = made.step("input")
    parts = made.matrix(made.step("log", g), np.eye(3) + 0.3 * A, a), made.matrix(g, 0.2 * A)
    made.step("softmax", made.step("add", *parts))
    p = rng.dirichlet(np.ones(3), size=5)
    eta = np.log(p) + 0.3 * np.log(p) @ A.T + 0.2 * p @ A.T + a
    expected = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(made.run(p), expected, rtol=1e-14)


def test_gates_are_as_their_names_say():
    assert models.model("mcllo, open gate").gate_.recalibrates
    for name in ("mcllo, closed gate", "auto, closed gate"):
        assert not models.model(name).gate_.recalibrates
        assert [step.op for step in program_of(models.model(name)).steps] == ["input", "unit"]


def test_a_member_that_nobody_described_is_refused():
    calibrator = models._fit(AutoCalibrator(), power=2.5)
    maps = calibrator.stack_.members.maps | {"mcllo": np.ones(3)}
    members = replace(calibrator.stack_.members, maps=maps)
    calibrator.stack_ = replace(calibrator.stack_, members=members)
    with pytest.raises(ExportError, match="no linear map of log g"):
        program_of(calibrator)
