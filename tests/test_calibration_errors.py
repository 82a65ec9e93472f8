"""Calibration errors of many label vectors at once."""

import numpy as np
import pytest
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._calibration_errors import ClasswiseECE, TopLabelECE
from mcllo.exceptions import InputError
from mcllo.metrics import classwise_calibration_error, expected_calibration_error

TOY = Predictions.from_arrays(TOY_X, TOY_Y)


def test_labels_that_match_the_predictions_give_zero():
    half = Predictions.from_arrays([[0.5, 0.5]] * 4, [0, 1, 0, 1])
    assert TopLabelECE(half, 3).of_labels(np.array([[0, 1, 0, 1], [0, 0, 0, 0]])).tolist() == [
        0.0,
        0.5,
    ]
    assert ClasswiseECE(half, 3).of_labels(np.array([[1, 1, 0, 0]])).tolist() == [0.0]


def test_each_class_by_name():
    # methods.md 4, TOY: classwise B=4 (.06875, .075, .1125)
    per_class = ClasswiseECE(TOY, 4).per_class(TOY.codes[None])
    np.testing.assert_allclose(per_class, [[0.06875, 0.075, 0.1125]], atol=1e-12)


@pytest.mark.parametrize("binning", ["width", "mass"])
@pytest.mark.parametrize("weighted", [False, True])
def test_many_draws_equal_one_at_a_time(binning, weighted):
    rng = np.random.default_rng(2)
    probs, weight = rng.dirichlet(np.ones(4), 60), rng.random(60) if weighted else None
    labels = rng.integers(0, 4, (25, 60))
    p = Predictions.from_arrays(probs, labels[0], sample_weight=weight)
    top = TopLabelECE(p, 7, binning, 2).of_labels(labels)
    each = ClasswiseECE(p, "sqrt", binning).of_labels(labels)
    for y, a, b in zip(labels, top, each, strict=True):
        options = {"binning": binning, "sample_weight": weight}
        assert a == pytest.approx(expected_calibration_error(y, probs, n_bins=7, norm=2, **options))
        assert b == pytest.approx(classwise_calibration_error(y, probs, **options))


def test_predictions_are_not_changed_and_labels_neither():
    labels = np.array([[0] * 16, [1] * 16])
    labels.setflags(write=False)
    top = TopLabelECE(TOY, 4)
    first = top.of_labels(labels)
    np.testing.assert_array_equal(first, top.of_labels(labels))


def test_norm_is_checked():
    with pytest.raises(InputError, match="norm must be 1 or 2; got norm=3"):
        TopLabelECE(TOY, norm=3)
