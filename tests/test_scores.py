"""Accuracy, log loss, Brier score, label change."""

import numpy as np
import pytest
from sklearn import metrics as sk
from toy import TOY_X, TOY_Y

from mcllo.exceptions import InputError
from mcllo.metrics import accuracy, brier_score, label_change, log_loss


def test_certain_and_right():
    sure = np.eye(3)[TOY_Y]
    assert accuracy(TOY_Y, sure) == 1.0
    assert log_loss(TOY_Y, sure) == 0.0
    assert str(log_loss(TOY_Y, sure)) == "0.0"
    assert brier_score(TOY_Y, sure) == 0.0
    assert label_change(sure, sure) == 0.0


def test_by_hand():
    y, probs = [0, 1], [[0.5, 0.5], [0.2, 0.8]]
    assert accuracy(y, probs) == 1.0  # of the tie the first class
    assert log_loss(y, probs) == pytest.approx((np.log(2) - np.log(0.8)) / 2)
    # (.25 + .25 + .04 + .04) / 2
    assert brier_score(y, probs) == pytest.approx(0.29)
    assert label_change(probs, [[0.4, 0.6], [0.1, 0.9]]) == 0.5


def test_reference_values():
    # methods.md 4, TOY
    assert accuracy(TOY_Y, TOY_X) == 0.5
    assert log_loss(TOY_Y, TOY_X) == pytest.approx(0.78771135, abs=5e-9)
    assert brier_score(TOY_Y, TOY_X) == pytest.approx(0.4615625, abs=1e-12)


def test_scikit_learn_agrees():
    rng = np.random.default_rng(1)
    probs, y = rng.dirichlet(np.ones(4), 200), rng.integers(0, 4, 200)
    w = rng.random(200)
    assert log_loss(y, probs, sample_weight=w) == pytest.approx(
        sk.log_loss(y, probs, sample_weight=w)
    )
    assert accuracy(y, probs, sample_weight=w) == pytest.approx(
        sk.accuracy_score(y, probs.argmax(axis=1), sample_weight=w)
    )


def test_a_true_class_of_probability_zero_is_infinite_unless_it_has_no_weight():
    y, probs = [1, 1], [[1.0, 0.0], [0.5, 0.5]]
    assert log_loss(y, probs) == np.inf
    assert log_loss(y, probs, sample_weight=[0, 1]) == pytest.approx(np.log(2))


def test_label_change_matches_frames_by_name():
    pd = pytest.importorskip("pandas")
    before = pd.DataFrame({"a": [0.6, 0.2], "b": [0.4, 0.8]})
    assert label_change(before, before[["b", "a"]]) == 0.0
    assert label_change(before, before.to_numpy()[:, ::-1]) == 1.0


def test_label_change_is_weighted():
    before, after = [[0.6, 0.4], [0.2, 0.8]], [[0.4, 0.6], [0.3, 0.7]]
    assert label_change(before, after, sample_weight=[3, 1]) == 0.75


def test_label_change_needs_the_same_shape():
    with pytest.raises(InputError, match=r"got shapes \(1, 2\) and \(2, 2\)"):
        label_change([[0.6, 0.4]], [[0.6, 0.4], [0.5, 0.5]])
