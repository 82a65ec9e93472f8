"""Expected, maximum, average, classwise and adaptive calibration error."""

from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from toy import TOY_X, TOY_Y

from mcllo.metrics import (
    adaptive_calibration_error,
    average_calibration_error,
    classwise_calibration_error,
    expected_calibration_error,
    log_loss,
    maximum_calibration_error,
)

ROOT = Path(__file__).resolve().parents[1]
HAND_X = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]
HAND_Y = [0, 0, 1, 0]


def five_line_ece(y, probs, n_bins):
    conf, ok, total = probs.max(axis=1), probs.argmax(axis=1) == y, 0.0
    for m in range(n_bins):
        inside = (conf > m / n_bins) & (conf <= (m + 1) / n_bins)
        total += abs(conf[inside].sum() - ok[inside].sum())
    return total / len(y)


def test_frequencies_equal_to_predictions_give_zero():
    probs, y = [[0.75, 0.25]] * 4, [0, 0, 0, 1]
    assert expected_calibration_error(y, probs, n_bins=5) == 0.0
    assert classwise_calibration_error(y, probs, n_bins=5) == 0.0
    assert adaptive_calibration_error(y, probs, n_bins=1) == 0.0


def test_by_hand():
    # top label: .9 ok, .7 ok, .8 ok, .6 wrong; each in a bin of its own: gaps .1 .3 .2 .6
    assert expected_calibration_error(HAND_Y, HAND_X, n_bins=10) == pytest.approx(0.3)
    assert expected_calibration_error(HAND_Y, HAND_X, n_bins=10, norm=2) == pytest.approx(
        np.sqrt((0.01 + 0.09 + 0.04 + 0.36) / 4)
    )
    assert maximum_calibration_error(HAND_Y, HAND_X, n_bins=10) == pytest.approx(0.6)
    # bins (.5, .75] with .7 ok, .6 wrong: gap .15; (.75, 1] with .9, .8 ok: gap .15
    assert expected_calibration_error(HAND_Y, HAND_X, n_bins=4) == pytest.approx(0.15)
    # class 0: .2 .4 | .7 .9 with hits 0 1 | 1 1: gaps |.3-.5|, |.8-1|; class 1 mirrors it
    assert adaptive_calibration_error(HAND_Y, HAND_X, n_bins=2) == pytest.approx(0.2)


def test_average_counts_bins_not_rows():
    # three rows at .9 with gap .1 - 2/3... : bin of .9: conf .9, acc 2/3; bin of .6: conf .6, acc 1
    probs = [[0.9, 0.1]] * 3 + [[0.6, 0.4]]
    assert average_calibration_error([0, 0, 1, 0], probs, n_bins=10) == pytest.approx(
        ((0.9 - 2 / 3) + 0.4) / 2
    )


@pytest.mark.parametrize(
    ("metric", "options", "value"),
    # methods.md 4, TOY
    [
        (expected_calibration_error, {"n_bins": 4}, 0.309375),
        (expected_calibration_error, {"n_bins": 10}, 0.309375),
        (expected_calibration_error, {"n_bins": 15}, 0.309375),
        (expected_calibration_error, {"n_bins": 4, "norm": 2}, 0.33824873),
        (expected_calibration_error, {"n_bins": 10, "norm": 2}, 0.34675580),
        (expected_calibration_error, {"n_bins": 4, "norm": 2, "binning": "mass"}, 0.34571140),
        (maximum_calibration_error, {"n_bins": 4}, 0.46428571),
        (maximum_calibration_error, {"n_bins": 10}, 0.49),
        (maximum_calibration_error, {"n_bins": 15}, 0.5),
        (classwise_calibration_error, {"n_bins": 4}, 0.08541667),
        (classwise_calibration_error, {"n_bins": 10}, 0.2125),
        (adaptive_calibration_error, {"n_bins": 4}, 0.1125),
    ],
)
def test_reference_values(metric, options, value):
    assert metric(TOY_Y, TOY_X, **options) == pytest.approx(value, abs=5e-9)


def test_cifar_holdout():
    # methods.md 7: rows 8000 on of default_rng(0).permutation(10000), 45 bins: ECE .0406,
    # log loss .2295
    path = ROOT.parent / "shared/data/cifar10_vgg16_keras/cifar10_vgg16_keras.npz"
    if not path.exists():
        pytest.skip("the CIFAR-10 predictions are not part of the repository")
    data = np.load(path)
    rows = np.random.default_rng(0).permutation(10_000)[8000:]
    y, probs = data["labels"][rows], data["probs"][rows]
    assert expected_calibration_error(y, probs) == pytest.approx(0.0406, abs=5e-5)
    assert log_loss(y, probs) == pytest.approx(0.2295, abs=5e-5)


def test_sqrt_is_the_default():
    assert expected_calibration_error(TOY_Y, TOY_X) == expected_calibration_error(
        TOY_Y, TOY_X, n_bins=4
    )


@pytest.mark.parametrize("n_bins", [2, 4, 5, 7, 10, 20, 25, 100])
def test_five_lines_agree_on_edges(n_bins):
    # votes of 100 trees: most confidences lie on an edge, and row sums are off by a rounding
    rng = np.random.default_rng(3)
    probs = rng.multinomial(100, rng.dirichlet(np.ones(3), 500)[0], 500) / 100
    probs = np.concatenate([probs, rng.multinomial(20, [0.2, 0.3, 0.5], 300) / 20])
    y = rng.integers(0, 3, 800)
    ours = expected_calibration_error(y, probs, n_bins=n_bins)
    assert ours == pytest.approx(five_line_ece(y, probs, n_bins), abs=1e-12)


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 30), st.integers(1, 40), st.integers(0, 10**6))
def test_five_lines_agree(n_bins, n, seed):
    rng = np.random.default_rng(seed)
    probs, y = rng.dirichlet(np.full(3, 0.3), n), rng.integers(0, 3, n)
    ours = expected_calibration_error(y, probs, n_bins=n_bins)
    assert ours == pytest.approx(five_line_ece(y, probs, n_bins), abs=1e-12)
    assert ours <= expected_calibration_error(y, probs, n_bins=n_bins, norm=2) + 1e-12
    assert ours <= maximum_calibration_error(y, probs, n_bins=n_bins) + 1e-12
