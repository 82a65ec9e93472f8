"""Kumar's and T-Cal's debiased errors."""

import numpy as np
import pytest
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._monte_carlo import draw_labels
from mcllo.exceptions import InputError
from mcllo.metrics import (
    debiased_calibration_error,
    debiased_squared_calibration_error,
    expected_calibration_error,
    tcal_squared_calibration_error,
)

HAND_X = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]


def test_by_hand():
    # top label .9 ok .7 ok .8 ok .6 wrong; runs .6 .7 | .8 .9:
    # gaps .65 - .5 and .85 - 1; chance .25 / 1 and 0: mean of .0225 - .25 and .0225
    y = [0, 0, 1, 0]
    assert debiased_squared_calibration_error(y, HAND_X, n_bins=2) == pytest.approx(-0.1025)
    assert debiased_calibration_error(y, HAND_X, n_bins=2) == 0.0
    # one bin: sum e = 0, sum e^2 = .5; -.5 / 4 / 4
    assert tcal_squared_calibration_error(y, HAND_X, n_bins=2) == pytest.approx(-0.03125)


def test_bins_of_one_row_give_nothing():
    assert debiased_squared_calibration_error([1, 1, 1, 0], HAND_X, n_bins=4) == 0.0
    assert tcal_squared_calibration_error([1, 1, 1, 0], HAND_X, n_bins=10) == pytest.approx(0.0)


def test_reference_values():
    # methods.md 4, TOY: Kumar with 4 equal-mass bins; T-Cal's m = 4, 8
    square = debiased_squared_calibration_error(TOY_Y, TOY_X, n_bins=4)
    assert square == pytest.approx(0.09868304, abs=5e-9)
    root = debiased_calibration_error(TOY_Y, TOY_X, n_bins=4)
    assert root == pytest.approx(0.31413856, abs=5e-9)
    assert debiased_calibration_error(TOY_Y, TOY_X, n_bins=4, target="marginal") == 0.0
    assert debiased_squared_calibration_error(TOY_Y, TOY_X, n_bins=4, target="marginal") < 0.0
    for n_bins, value in ((4, 0.01954167), (8, 0.05184524)):
        assert tcal_squared_calibration_error(TOY_Y, TOY_X, n_bins=n_bins) == pytest.approx(
            value, abs=5e-9
        )


def test_marginal_averages_classes():
    rng = np.random.default_rng(4)
    probs, y = rng.dirichlet(np.ones(2), 100), rng.integers(0, 2, 100)
    # two classes mirror each other, so each one's square is the mean
    squares = [
        debiased_squared_calibration_error(y == k, np.stack([1 - p, p], axis=1), target="marginal")
        for k, p in enumerate(probs.T)
    ]
    assert squares[0] == pytest.approx(squares[1])
    assert debiased_calibration_error(y, probs, target="marginal") == pytest.approx(
        np.sqrt(squares[0])
    )


def test_the_bias_is_removed():
    # under calibration both squares average 0, while the plain square does not
    rng = np.random.default_rng(5)
    p = Predictions.from_arrays(rng.dirichlet(np.ones(3), 300), rng.integers(0, 3, 300))
    labels = draw_labels(p.probs, 0, 0, 300)
    kumar = [debiased_squared_calibration_error(y, p.probs) for y in labels]
    tcal = [tcal_squared_calibration_error(y, p.probs) for y in labels]
    options = {"n_bins": 15, "binning": "mass", "norm": 2}
    plain = [expected_calibration_error(y, p.probs, **options) ** 2 for y in labels]
    for squares in (kumar, tcal):
        standard_error = np.std(squares) / np.sqrt(len(squares))
        assert abs(np.mean(squares)) < 4 * standard_error
        assert np.mean(plain) > 20 * standard_error


def test_target_is_checked():
    with pytest.raises(InputError, match="must be 'top-label' or 'marginal'; got target='a'"):
        debiased_calibration_error(TOY_Y, TOY_X, target="a")
