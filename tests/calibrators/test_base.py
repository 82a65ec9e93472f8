import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy import TOY_X, TOY_Y

from mcllo import MCLLOCalibrator, Predictions
from mcllo.calibrators import Identity, IsotonicCalibration
from mcllo.calibrators._base import label_array, normalize_rows

ROW = np.array([[0.5, 0.3, 0.2]])


def test_labels_keep_their_type():
    assert label_array((1, 2)).dtype.kind == "i"
    for labels in (("a", "b"), (True, False), (1, "b")):
        assert label_array(labels).tolist() == list(labels)


def test_rows_of_predictions_are_taken_as_they_are():
    held = Predictions.from_arrays(TOY_X, TOY_Y)
    assert MCLLOCalibrator().fit(TOY_X, TOY_Y)._rows(held).probs is held.probs


def test_a_refused_fit_leaves_nothing_of_the_last_one():
    fitted = Identity().fit(TOY_X, TOY_Y)
    with pytest.raises(ValueError, match="same number of rows"):
        fitted.fit(TOY_X, TOY_Y[:-1])
    assert vars(fitted) == vars(Identity())


def test_answers_that_sum_to_one_stay():
    np.testing.assert_allclose(normalize_rows(TOY_X, TOY_X[::-1], zero_row="uniform"), TOY_X)


@pytest.mark.parametrize(
    ("zero_row", "expected"), [("original", [0.5, 0.3, 0.2]), ("uniform", [1 / 3] * 3)]
)
def test_a_row_of_zeros(zero_row, expected):
    answer = normalize_rows(np.zeros((1, 3)), ROW, zero_row=zero_row)
    np.testing.assert_allclose(answer, [expected])


def test_an_absent_class_keeps_its_share():
    # Class 1 keeps .3; the answers .6 and .2 of the others share .7 as 3 : 1.
    answer = normalize_rows(np.array([[0.6, 9.0, 0.2]]), ROW, absent=(1,), zero_row="uniform")
    np.testing.assert_allclose(answer, [[0.525, 0.3, 0.175]])
    nothing = normalize_rows(np.array([[0.0, 9.0, 0.0]]), ROW, absent=(1,), zero_row="uniform")
    np.testing.assert_allclose(nothing, [[0.35, 0.3, 0.35]])
    x = np.array([[0.0, 1.0, 0.0]])  # all on the absent class
    answer = normalize_rows(np.array([[0.1, 0.0, 0.1]]), x, absent=(1,), zero_row="original")
    np.testing.assert_array_equal(answer, x)


def test_absent_columns_look_at_the_weight():
    assert IsotonicCalibration().fit(TOY_X, TOY_Y).absent_ == ()
    with pytest.warns(match="no row has class 2"):
        fitted = IsotonicCalibration().fit(TOY_X, TOY_Y, sample_weight=TOY_Y != 2)
    assert fitted.absent_ == (2,)


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
