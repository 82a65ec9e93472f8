"""Smooth calibration error."""

import numpy as np
import pytest
from toy import TOY_X, TOY_Y

from mcllo.exceptions import InputError
from mcllo.metrics import smooth_calibration_error


def direct(y, probs, bandwidth, weight=None):
    """Return smECE at a bandwidth by the definition: reflected Gaussians on a grid."""
    f, hit = probs.max(axis=1), probs.argmax(axis=1) == y
    w = np.full(len(f), 1 / len(f)) if weight is None else weight / weight.sum()
    t = (np.arange(4000) + 0.5) / 4000
    images = np.concatenate([f + 2 * k for k in range(-3, 4)] + [2 * k - f for k in range(-3, 4)])
    mass = np.tile(w * (hit - f), 14)
    r = np.zeros(len(t))
    for image, m in zip(images, mass, strict=True):
        r += m * np.exp(-0.5 * ((t - image) / bandwidth) ** 2)
    return np.abs(r).mean() / (bandwidth * np.sqrt(2 * np.pi))


def test_certain_and_right_is_zero():
    assert smooth_calibration_error(TOY_Y, np.eye(3)[TOY_Y]) == 0.0


def test_one_row_has_an_error_as_large_as_its_residual():
    # K_s integrates to 1, so smECE_s = |hit - f| = .3 at every s, the fixed point included
    assert smooth_calibration_error([0], [[0.7, 0.3]]) == pytest.approx(0.3, abs=1e-8)
    assert smooth_calibration_error([0], [[0.7, 0.3]], bandwidth=0.02) == pytest.approx(0.3)


def test_reference_values():
    # methods.md 4, TOY
    at_tenth = smooth_calibration_error(TOY_Y, TOY_X, bandwidth=0.1)
    assert at_tenth == pytest.approx(0.236083, abs=1e-6)
    assert smooth_calibration_error(TOY_Y, TOY_X) == pytest.approx(0.174372, abs=1e-6)


@pytest.mark.parametrize("bandwidth", [0.005, 0.03, 0.2, 0.9])
def test_the_definition_agrees(bandwidth):
    rng = np.random.default_rng(6)
    probs, y = rng.dirichlet(np.full(4, 0.3), 150), rng.integers(0, 4, 150)
    weight = rng.random(150)
    assert smooth_calibration_error(
        y, probs, bandwidth=bandwidth, sample_weight=weight
    ) == pytest.approx(direct(y, probs, bandwidth, weight), rel=2e-5)


def test_fixed_point_of_the_definition():
    rng = np.random.default_rng(7)
    probs = rng.dirichlet(np.full(4, 0.3), 400)
    y = (rng.random((400, 1)) > probs.cumsum(axis=1)).sum(axis=1)
    error = smooth_calibration_error(y, probs)
    assert direct(y, probs, error) == pytest.approx(error, abs=1e-6)


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, np.nan])
def test_bandwidth_is_checked(bandwidth):
    with pytest.raises(InputError, match="bandwidth must be positive or None; got bandwidth="):
        smooth_calibration_error(TOY_Y, TOY_X, bandwidth=bandwidth)
