import numpy as np
import pytest
from refusal import refusal
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._scored import scored_predictions

ZEROS = [[1.0, 0.0], [0.3, 0.7], [0.0, 1.0]]


def test_zeros_stay_zeros():
    p = scored_predictions([0, 1, 0], ZEROS)
    np.testing.assert_array_equal(p.probs, ZEROS)
    assert (p.n_zeros, p.n_clipped) == (2, 0)


def test_one_column_is_the_second_class():
    p = scored_predictions([0, 1], np.array([0.2, 0.7]))
    np.testing.assert_allclose(p.probs, [[0.8, 0.2], [0.3, 0.7]])


def test_the_wrong_order():
    toy = Predictions.from_arrays(TOY_X, TOY_Y)
    assert "(y_true, y_prob)" in str(refusal(scored_predictions, TOY_X, TOY_Y))
    assert scored_predictions(None, toy) is toy
    assert "y must not be given" in str(refusal(scored_predictions, TOY_Y, toy))


def test_counts_are_scored_as_repeated_rows():
    from mcllo.metrics import log_loss

    probs = [[0.6, 0.4], [0.3, 0.7]]
    # labels 0, 0, 1 on the first row and 1 on the second
    by_counts = log_loss([[2, 1], [0, 1]], probs)
    by_rows = log_loss([0, 0, 1, 1], [probs[0]] * 3 + [probs[1]])
    assert by_counts == pytest.approx(by_rows, rel=1e-14)
