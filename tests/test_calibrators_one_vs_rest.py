import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo.calibrators._one_vs_rest import absent_columns, normalize_rows


def test_answers_that_sum_to_one_stay():
    np.testing.assert_allclose(normalize_rows(TOY_X, TOY_X[::-1], zero_row="uniform"), TOY_X)


@pytest.mark.parametrize(
    ("zero_row", "expected"), [("original", [0.5, 0.3, 0.2]), ("uniform", [1 / 3] * 3)]
)
def test_a_row_of_zeros(zero_row, expected):
    x = np.array([[0.5, 0.3, 0.2]])
    answer = normalize_rows(np.zeros((1, 3)), x, zero_row=zero_row)
    np.testing.assert_allclose(answer, [expected])


def test_an_absent_class_keeps_its_share():
    # Class 1 keeps .3; the answers .6 and .2 of the others share .7 as 3 : 1.
    x = np.array([[0.5, 0.3, 0.2]])
    answer = normalize_rows(np.array([[0.6, 9.0, 0.2]]), x, absent=(1,), zero_row="uniform")
    np.testing.assert_allclose(answer, [[0.525, 0.3, 0.175]])
    nothing = normalize_rows(np.array([[0.0, 9.0, 0.0]]), x, absent=(1,), zero_row="uniform")
    np.testing.assert_allclose(nothing, [[0.35, 0.3, 0.35]])


def test_a_row_that_is_all_on_an_absent_class():
    x = np.array([[0.0, 1.0, 0.0]])
    answer = normalize_rows(np.array([[0.1, 0.0, 0.1]]), x, absent=(1,), zero_row="original")
    np.testing.assert_array_equal(answer, x)


def test_absent_columns_look_at_the_weight():
    weight = (TOY_Y != 2).astype(float)
    assert absent_columns(Predictions.from_arrays(TOY_X, TOY_Y)) == ()
    assert absent_columns(Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=weight)) == (2,)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["original", "uniform"]))
def test_rows_sum_to_one_and_the_input_is_untouched(seed, zero_row):
    rng = np.random.default_rng(seed)
    x = rng.dirichlet(np.ones(4), size=5)
    q = rng.random((5, 4)) * rng.integers(0, 2, size=(5, 4))
    before = x.copy(), q.copy()
    absent = tuple(np.flatnonzero(rng.integers(0, 2, size=4))[:3].tolist())
    answer = normalize_rows(q, x, absent=absent, zero_row=zero_row)
    np.testing.assert_allclose(answer.sum(axis=1), 1.0)
    np.testing.assert_array_equal(answer[:, absent], x[:, absent])
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(q, before[1])
