"""`assess`: its numbers and its lazy details."""

import numpy as np
import pytest
from toy import TOY_X, TOY_Y

from mcllo import Predictions, assess, baseline_sensitivity, class_tests, nested_models
from mcllo._assessment.assessment import calibration_in_the_large
from mcllo._inference.budget import BRIEF_NESTED_WORK


def test_calibration_in_the_large_by_hand():
    # two rows (.8, .2): expected 1.6 and .4, variance 2 * .16 = .32, observed 1 and 1
    p = Predictions.from_arrays([[0.8, 0.2], [0.8, 0.2]], [0, 1])
    shares = calibration_in_the_large(p)
    assert shares["predicted"] == pytest.approx([0.8, 0.2])
    assert shares["observed"] == pytest.approx([0.5, 0.5])
    assert shares["z"] == pytest.approx([-0.6 / np.sqrt(0.32), 0.6 / np.sqrt(0.32)])


def test_weights_equal_repetition():
    weight = 1 + np.arange(16) % 2
    rows = np.repeat(np.arange(16), weight)
    weighted = assess(TOY_X, TOY_Y, sample_weight=weight, seed=1)
    repeated = assess(TOY_X[rows], TOY_Y[rows], seed=1)
    assert weighted.test.statistic == pytest.approx(repeated.test.statistic)
    assert weighted.test.pvalue == repeated.test.pvalue
    assert weighted.metrics["log_loss"] == pytest.approx(repeated.metrics["log_loss"])


def test_details_are_computed_when_asked_for_and_are_those_of_their_functions():
    options = {"n_resamples": 99, "seed": 1}
    a = assess(TOY_X, TOY_Y, **options)
    assert not {"nested_models", "class_tests", "baselines"} & set(a.details.__dict__)
    brief = {**options, "work": BRIEF_NESTED_WORK}
    for found, expected in (
        (a.details.nested_models, nested_models(TOY_X, TOY_Y, **brief)),
        (a.details.class_tests, class_tests(TOY_X, TOY_Y, **brief)),
        (a.details.baselines, baseline_sensitivity(TOY_X, TOY_Y, **options)),
    ):
        assert found.to_dict() == expected.to_dict()
    assert a.details.nested_models.row("identity").larger_pvalue == a.test.pvalue  # made once
