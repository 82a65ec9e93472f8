import calibrator_checks
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo.calibrators._identity import Identity
from mcllo.exceptions import InputError


def test_nothing_changes():
    np.testing.assert_allclose(Identity().fit(TOY_X, TOY_Y).predict_proba(TOY_X), TOY_X, rtol=1e-15)


def test_zeros_stay_zeros():
    X = [[1.0, 0.0], [0.3, 0.7]]
    np.testing.assert_array_equal(Identity().fit(X, [0, 1]).predict_proba(X), X)


def test_the_answer_is_the_callers_own():
    held = Predictions.from_arrays(TOY_X, TOY_Y)
    answer = Identity().fit(held, None).predict_proba(held)
    answer[0, 0] = 9.0
    assert held.probs[0, 0] == pytest.approx(0.7)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10**6), c=st.integers(2, 6))
def test_labels_are_the_most_probable_classes(seed, c):
    X = np.random.default_rng(seed).dirichlet(np.ones(c), size=30)
    fitted = Identity(classes=list(range(c))).fit(X, np.arange(30) % c)
    np.testing.assert_array_equal(fitted.predict(X), X.argmax(axis=1))


WITHOUT_EFFECT = (calibrator_checks.weight_two_is_a_row_twice,)


@pytest.mark.parametrize(
    "promise", [check for check in calibrator_checks.PROMISES if check not in WITHOUT_EFFECT]
)
def test_contract(promise):
    promise(Identity)


def test_saved_and_loaded(tmp_path, monkeypatch):
    calibrator_checks.json_round_trip_is_exact(Identity, tmp_path / "i.json", monkeypatch)


def test_rows_are_validated():
    with pytest.raises(InputError, match=r"row 0 sums to 1\.1"):
        Identity().fit([[0.6, 0.5], [0.5, 0.5]], [0, 1])
