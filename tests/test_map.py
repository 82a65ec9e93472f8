import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import designs, maps, power_formula
from toy import TOY_X

from mcllo._map import MCLLOMap, read_simplex
from mcllo.exceptions import InputError

quick = settings(deadline=None, max_examples=50)
CLASSES = ("a", "b", "c")
TAU_A, GAMMA_A = np.array([0.2, -0.3]), np.array([0.8, 1.5])
FIRST = MCLLOMap(TAU_A, GAMMA_A, CLASSES, "c")
SECOND = MCLLOMap(np.array([-0.1, 0.4]), np.array([1.2, 0.7]), CLASSES, "c")


def random_map(data, c, baseline):
    delta, gamma = data.draw(maps(c - 1))
    return MCLLOMap(np.log(delta), gamma, tuple(range(c)), baseline)


def test_the_identity_changes_nothing():
    same = MCLLOMap(np.zeros(2), np.ones(2), CLASSES, "b")
    np.testing.assert_allclose(same.recalibrate(TOY_X), TOY_X, rtol=1e-13)


def test_by_hand():
    # gamma = 2 squares the odds against the last class: (.6, .3, .1) -> (36, 9, 1) / 46
    double = MCLLOMap(np.zeros(2), np.full(2, 2.0), CLASSES, "c")
    expected = np.array([[36.0, 9.0, 1.0]]) / 46.0
    np.testing.assert_allclose(double.recalibrate([[0.6, 0.3, 0.1]]), expected, rtol=1e-13)
    # against the first class: odds 1/2 and 1/6, squared: (36, 9, 1) / 46 again
    other = MCLLOMap(np.zeros(2), np.full(2, 2.0), CLASSES, "a")
    np.testing.assert_allclose(other.recalibrate([[0.6, 0.3, 0.1]]), expected, rtol=1e-13)


def test_names():
    middle = MCLLOMap(TAU_A, GAMMA_A, CLASSES, "b")
    assert middle.baseline_index == 1
    assert middle.compared == ("a", "c")
    np.testing.assert_allclose(middle.delta, np.exp(TAU_A))
    np.testing.assert_array_equal(middle.theta, [0.2, -0.3, 0.8, 1.5])


@pytest.mark.parametrize("baseline", [0, 1, 2])
def test_equals_the_power_formula_for_every_baseline(baseline):
    order = [j for j in range(3) if j != baseline] + [baseline]
    expected = np.empty_like(TOY_X)
    expected[:, order] = power_formula(TOY_X[:, order], np.exp(TAU_A), GAMMA_A)
    ours = MCLLOMap(TAU_A, GAMMA_A, CLASSES, CLASSES[baseline]).recalibrate(TOY_X)
    np.testing.assert_allclose(ours, expected, rtol=1e-12)


def test_toy_composition_and_inverse():
    # methods specification 0.4: theta_a then theta_b is (.14, .19, .96, 1.05); inverse of theta_a
    np.testing.assert_allclose(FIRST.compose(SECOND).theta, [0.14, 0.19, 0.96, 1.05], rtol=1e-12)
    np.testing.assert_allclose(FIRST.inverse().theta, [-0.25, 0.2, 1.25, 2 / 3], rtol=1e-12)
    np.testing.assert_allclose(
        FIRST.compose(SECOND).recalibrate(TOY_X),
        SECOND.recalibrate(FIRST.recalibrate(TOY_X)),
        rtol=1e-12,
    )


@quick
@given(designs(max_sharpness=2.0), st.data())
def test_group_laws(design, data):
    probs, _ = design
    c = probs.shape[1]
    baseline = data.draw(st.integers(0, c - 1))
    a, b, d = (random_map(data, c, baseline) for _ in range(3))
    left, right = a.compose(b).compose(d), a.compose(b.compose(d))
    np.testing.assert_allclose(left.theta, right.theta, rtol=1e-10, atol=1e-12)
    unit = np.concatenate([np.zeros(c - 1), np.ones(c - 1)])
    np.testing.assert_allclose(a.compose(a.inverse()).theta, unit, atol=1e-12)
    np.testing.assert_allclose(a.inverse().compose(a).theta, unit, atol=1e-12)
    np.testing.assert_allclose(a.inverse().inverse().theta, a.theta, rtol=1e-12, atol=1e-14)
    back = a.inverse().recalibrate(a.recalibrate(probs), clip=0.0)
    np.testing.assert_allclose(back, probs, atol=1e-8)


@quick
@given(designs(max_sharpness=2.0), st.data())
def test_two_maps_in_turn_equal_their_composition(design, data):
    probs, _ = design
    c = probs.shape[1]
    a, b = (random_map(data, c, c - 1) for _ in range(2))
    in_turn = b.recalibrate(a.recalibrate(probs), clip=0.0)
    np.testing.assert_allclose(a.compose(b).recalibrate(probs), in_turn, rtol=1e-7, atol=1e-12)


def test_logits_may_be_shifted_row_by_row():
    shift = np.linspace(-3.0, 3.0, len(TOY_X))[:, None]
    from_logits = FIRST.recalibrate(logits=np.log(TOY_X) + shift)
    np.testing.assert_allclose(from_logits, FIRST.recalibrate(TOY_X), rtol=1e-12)


def test_log_odds_against_the_baseline_in_column_order():
    # (.7, .2, .1) against the middle class: log 3.5 and log 0.5
    middle = MCLLOMap(TAU_A, GAMMA_A, CLASSES, "b")
    odds = middle.log_odds(read_simplex(CLASSES, TOY_X))
    assert odds.shape == (2, len(TOY_X))
    np.testing.assert_allclose(odds[:, 0], np.log([3.5, 0.5]), rtol=1e-13)


@pytest.mark.parametrize("far", [700.0, 1e5])
def test_extreme_logits_stay_on_the_simplex(far):
    rows = FIRST.recalibrate(logits=[[far, 0.0, -far], [-far, far, 0.0], [0.0, -far, far]])
    assert np.isfinite(rows).all()
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=1e-13)


def test_probabilities_of_1e_minus_300():
    half = MCLLOMap(np.zeros(1), np.array([0.5]), (0, 1), 1)
    assert half.recalibrate([[1e-300, 1.0]])[0, 0] == pytest.approx(1e-150, rel=1e-12)


def test_a_frame_is_matched_by_column_names():
    frame = pd.DataFrame(TOY_X[:, [2, 0, 1]], columns=["c", "a", "b"])
    np.testing.assert_array_equal(FIRST.recalibrate(frame), FIRST.recalibrate(TOY_X))


def test_the_input_is_not_changed():
    probs = TOY_X.copy()
    FIRST.recalibrate(probs)
    np.testing.assert_array_equal(probs, TOY_X)


def test_zeros_are_raised_first():
    # (0, .5, .5) becomes (1e-6, .5, .5) / (1 + 1e-6); the identity returns that
    same = MCLLOMap(np.zeros(2), np.ones(2), CLASSES, "c")
    rows = same.recalibrate([[0.0, 0.5, 0.5]])
    assert rows[0, 0] == pytest.approx(1e-6 / (1.0 + 1e-6), rel=1e-9)


def test_to_dict_is_plain_json():
    content = FIRST.to_dict()
    assert json.loads(json.dumps(content)) == {
        "classes": ["a", "b", "c"],
        "baseline": "c",
        "tau": [0.2, -0.3],
        "gamma": [0.8, 1.5],
    }


def test_maps_of_other_baselines_do_not_compose():
    other = MCLLOMap(TAU_A, GAMMA_A, CLASSES, "a")
    with pytest.raises(InputError, match="share classes and baseline; got baselines 'c' and 'a'"):
        FIRST.compose(other)


def test_a_gamma_of_zero_has_no_inverse():
    flat = MCLLOMap(TAU_A, np.array([1.0, 0.0]), CLASSES, "c")
    with pytest.raises(InputError, match="gamma = 0 has no inverse; class 'b'"):
        flat.inverse()


def test_refusals():
    with pytest.raises(InputError, match="a column for each of the 3 classes; got 2"):
        FIRST.recalibrate([[0.5, 0.5]])
    with pytest.raises(InputError, match="exactly one of probs and logits"):
        FIRST.recalibrate()
    with pytest.raises(InputError, match="exactly one of probs and logits"):
        FIRST.recalibrate(TOY_X, logits=np.log(TOY_X))
    with pytest.raises(InputError, match="must sum to 1"):
        FIRST.recalibrate([[0.5, 0.4, 0.0]])
    with pytest.raises(InputError, match="must be positive when clip=0"):
        FIRST.recalibrate([[0.5, 0.5, 0.0]], clip=0.0)
