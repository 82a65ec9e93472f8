import numpy as np
import pytest
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._paired import bootstrap_means, paired_differences, row_losses

TOY = Predictions.from_arrays(TOY_X, TOY_Y)


def test_a_method_does_not_differ_from_itself():
    found = paired_differences({"a": TOY, "b": TOY}, seed=0)
    assert found == {"a": (0.0, 0.0, 0.0), "b": (0.0, 0.0, 0.0)}


def test_difference_by_hand():
    # rows (1/2, 1/2) against (1/4, 3/4), labels 1: log 2 - log(4/3) = log(3/2) in every row
    flat = Predictions.from_arrays([[0.5, 0.5]] * 3, [1, 1, 1])
    good = Predictions.from_arrays([[0.25, 0.75]] * 3, [1, 1, 1])
    found = paired_differences({"flat": flat, "good": good}, seed=0)
    assert found["good"] == (0.0, 0.0, 0.0)
    assert found["flat"] == pytest.approx((np.log(1.5),) * 3)


def test_row_losses_average_to_the_log_loss():
    # methods specification 4: TOY log loss
    assert row_losses(TOY).mean() == pytest.approx(0.78771135, abs=1e-8)


def test_bootstrap_spread_is_the_standard_error():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2000, 2))
    means = bootstrap_means(values, np.ones(2000), seed=1)
    assert means.std(axis=0) == pytest.approx(values.std(axis=0) / np.sqrt(2000), rel=0.1)
    assert means.mean(axis=0) == pytest.approx(values.mean(axis=0), abs=0.005)


def test_weights_enter_the_mean_and_the_seed_repeats():
    weight = np.zeros(16)
    weight[:4] = 1.0
    weighted = Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=weight)
    other = weighted.with_probs(np.full((16, 3), 1 / 3))
    first = paired_differences({"a": weighted, "b": other}, seed=3)
    mean = np.log(3) - row_losses(TOY)[:4].mean()
    assert first["b" if mean > 0 else "a"][0] == pytest.approx(abs(mean))
    assert first == paired_differences({"a": weighted, "b": other}, seed=3)
