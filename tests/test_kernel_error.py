"""Squared kernel calibration error."""

import numpy as np
import pytest
from toy import TOY_X, TOY_Y

from mcllo import Predictions, _kernel_error
from mcllo._kernel_error import KernelError, bandwidth_of
from mcllo._metric_null import metric_nulls
from mcllo.exceptions import InputError
from mcllo.metrics import kernel_calibration_error

TOY = Predictions.from_arrays(TOY_X, TOY_Y)


def pair(y, probs, i, j, width, distance):
    e = np.eye(probs.shape[1])[y] - probs
    gap = probs[i] - probs[j]
    d = np.abs(gap).sum() / 2 if distance == "tv" else np.sqrt((gap**2).sum())
    return np.exp(-d / width) * (e[i] @ e[j])


def test_certain_and_right_is_zero():
    for estimator in ("biased", "unbiased", "linear"):
        assert kernel_calibration_error(TOY_Y, np.eye(3)[TOY_Y], estimator=estimator) == 0.0


def test_two_rows_by_hand():
    # residuals (.4, -.4) and (.3, -.3): product .24; total variation .1; so h_01 = .24 exp(-.1)
    y, probs = [0, 0], [[0.6, 0.4], [0.7, 0.3]]
    h = 0.24 * np.exp(-0.1)
    for estimator, value in (
        ("unbiased", h),
        ("linear", h),
        ("biased", (0.32 + 0.18 + 2 * h) / 4),
    ):
        assert kernel_calibration_error(
            y, probs, estimator=estimator, bandwidth=1.0
        ) == pytest.approx(value)


@pytest.mark.parametrize("distance", ["tv", "euclidean"])
def test_double_loop_agrees(distance, monkeypatch):
    monkeypatch.setattr(_kernel_error, "BLOCK_CELLS", 7 * 40)  # several blocks, the last shorter
    rng = np.random.default_rng(8)
    probs, y = rng.dirichlet(np.ones(4), 40), rng.integers(0, 4, 40)
    h = np.array([[pair(y, probs, i, j, 0.3, distance) for j in range(40)] for i in range(40)])
    expected = {
        "biased": h.mean(),
        "unbiased": h[np.triu_indices(40, 1)].mean(),
        "linear": h[np.arange(0, 40, 2), np.arange(1, 40, 2)].mean(),
    }
    for estimator, value in expected.items():
        options = {"estimator": estimator, "distance": distance, "bandwidth": 0.3}
        assert kernel_calibration_error(y, probs, **options) == pytest.approx(value, abs=1e-12)
        if estimator != "linear":
            p = Predictions.from_arrays(probs, y)
            many = KernelError(p, **options).of_labels(np.stack([y, np.roll(y, 1)]))
            assert many[0] == pytest.approx(value, abs=1e-12)
            assert many[1] == pytest.approx(
                kernel_calibration_error(np.roll(y, 1), probs, **options), abs=1e-12
            )


@pytest.mark.parametrize(
    ("estimator", "options", "value"),
    # methods.md 4, TOY: exp(-euclid), and exp(-TV / median .4)
    [
        ("biased", {"distance": "euclidean", "bandwidth": 1.0}, 0.0081278417),
        ("unbiased", {"distance": "euclidean", "bandwidth": 1.0}, -0.0221011355),
        ("linear", {"distance": "euclidean", "bandwidth": 1.0}, 0.0116299018),
        ("biased", {"distance": "tv", "bandwidth": "median"}, 0.0109168663),
        ("unbiased", {"distance": "tv", "bandwidth": "median"}, -0.0191261760),
    ],
)
def test_reference_values(estimator, options, value):
    error = kernel_calibration_error(TOY_Y, TOY_X, estimator=estimator, **options)
    assert error == pytest.approx(value, abs=5e-11)


def test_median_distance():
    # methods.md 4, TOY: the median total variation is .4
    assert bandwidth_of(TOY, "median", "tv") == pytest.approx(0.4)
    # three of four rows equal: distances 0 0 0 .5 .5 .5 have median .25
    p = Predictions.from_arrays([[0.9, 0.1]] * 3 + [[0.4, 0.6]], [0, 0, 0, 1])
    assert bandwidth_of(p, "median", "tv") == pytest.approx(0.25)
    # four of five: six zeros and four .5; the median is 0, the mean .2
    p = Predictions.from_arrays([[0.9, 0.1]] * 4 + [[0.4, 0.6]], [0, 0, 0, 0, 1])
    assert bandwidth_of(p, "median", "tv") == pytest.approx(0.2)
    p = Predictions.from_arrays(
        [[0.9, 0.1]] * 4 + [[0.4, 0.6]], [0, 0, 0, 0, 1], sample_weight=[1, 3, 0, 0, 1]
    )
    assert bandwidth_of(p, "median", "tv") == pytest.approx(0.2)
    p = Predictions.from_arrays([[0.9, 0.1]], [0])
    assert bandwidth_of(p, "median", "tv") == 1.0


def test_median_of_many_rows_is_that_of_some(monkeypatch):
    rng = np.random.default_rng(9)
    p = Predictions.from_arrays(rng.dirichlet(np.ones(3), 301), rng.integers(0, 3, 301))
    whole = bandwidth_of(p, "median", "tv")
    monkeypatch.setattr(_kernel_error, "MEDIAN_ROWS", 101)
    some = bandwidth_of(p, "median", "tv")
    assert some == bandwidth_of(p.take(np.arange(0, 301, 3)), "median", "tv")
    assert some == pytest.approx(whole, rel=0.1)


def test_exact_p_value():
    # methods.md 5.4, TOY: SKCE_b with exp(-euclid), p = .9835 (9999 draws, seed 0)
    null = metric_nulls(
        TOY,
        {"skce": lambda p: KernelError(p, "biased", "euclidean", 1.0)},
        n_resamples=9999,
        seed=0,
    )["skce"]
    assert null.pvalue == pytest.approx(0.9835, abs=1e-12)


def test_unbiased_has_mean_zero_under_calibration():
    null = metric_nulls(TOY, {"skce": lambda p: KernelError(p, "unbiased")}, n_resamples=9999)
    assert abs(null["skce"].mean) < 4 * 0.025 / np.sqrt(9999)


def test_errors():
    with pytest.raises(InputError, match="estimator must be 'biased', 'unbiased' or 'linear'"):
        kernel_calibration_error(TOY_Y, TOY_X, estimator="quick")
    with pytest.raises(InputError, match="distance must be 'euclidean' or 'tv'; got distance='l1'"):
        kernel_calibration_error(TOY_Y, TOY_X, distance="l1")
    for bandwidth in (0.0, -1.0, "mean"):
        with pytest.raises(InputError, match="bandwidth must be positive or 'median'; got"):
            kernel_calibration_error(TOY_Y, TOY_X, bandwidth=bandwidth)
    with pytest.raises(InputError, match="must have two rows at least; got 1"):
        kernel_calibration_error([0], [[0.6, 0.4]])
    with pytest.raises(InputError, match="whole numbers for estimator='linear'"):
        kernel_calibration_error(TOY_Y, TOY_X, estimator="linear", sample_weight=np.full(16, 0.5))
    weighted = Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=np.ones(16))
    with pytest.raises(InputError, match="without weights"):
        KernelError(weighted)
