"""The lower limit of the error that needs no model: by hand, and where truths are known."""

import numpy as np
import pytest
from scipy.stats import norm

from mcllo import Predictions
from mcllo._inference.levels import observed_error_bounds


def two_columns(p):
    return np.column_stack([p, 1.0 - p])


def test_in_the_large_by_hand():
    # 100 rows say 0.8, and 60 come true: 20 points
    y = (np.arange(100) >= 60).astype(int)
    found = observed_error_bounds(
        Predictions.from_arrays(two_columns(np.full(100, 0.8)), y), 0.95
    )
    assert found.in_the_large == pytest.approx(0.2)
    error = np.sqrt(
        0.6 * 0.4 / 99
    )  # of the observed differences, larger than sqrt(.16 / 100)
    assert found.large_low == pytest.approx(0.2 - norm.isf(0.025) * error)
    # the limit allows for three ways of looking, and for the sign
    by_sign = 0.2 - norm.isf(0.025 / 6) * error
    assert by_sign - 1e-12 <= found.at_least < 0.2


def test_errors_that_might_have_happened_count():
    # 300 sure rows without an error: their differences hardly vary, but 1.5 errors were expected
    found = observed_error_bounds(
        Predictions.from_arrays(
            two_columns(np.full(300, 0.995)), np.zeros(300, int), classes=[0, 1]
        ),
        0.95,
    )
    assert found.in_the_large == pytest.approx(0.005)
    assert found.large_low == found.at_least == 0.0


def test_calibrated_rows_seldom_show_an_error():
    shown = []
    for seed in range(80):
        rng = np.random.default_rng(seed)
        x = rng.dirichlet(np.ones(3), 300)
        y = (rng.random(300)[:, None] > x.cumsum(axis=1)).sum(axis=1)
        shown.append(
            observed_error_bounds(Predictions.from_arrays(x, y), 0.95).at_least
        )
    assert np.mean(np.array(shown) > 0.01) <= 0.05
    assert np.mean(np.array(shown) > 0.0) <= 0.12


def test_the_limit_is_below_the_truth_and_not_far():
    rng = np.random.default_rng(0)
    u = rng.uniform(0.01, 0.99, 20_000)
    truth = np.where((u > 0.25) & (u < 0.75), np.where(u < 0.5, 0.35, 0.65), u)
    y = (rng.random(20_000) > truth).astype(int)
    found = observed_error_bounds(Predictions.from_arrays(two_columns(u), y), 0.95)
    error = np.abs(truth - u).mean()
    assert 0.6 * error < found.at_least < error


def test_copies_in_groups_show_no_more_than_their_rows():
    rng = np.random.default_rng(1)
    x = rng.dirichlet(np.ones(3), 400)
    y = rng.integers(3, size=400)
    once = observed_error_bounds(Predictions.from_arrays(x, y), 0.95)
    copies = Predictions.from_arrays(
        np.repeat(x, 5, axis=0), np.repeat(y, 5), groups=np.repeat(np.arange(400), 5)
    )
    assert observed_error_bounds(copies, 0.95).large_low == pytest.approx(
        once.large_low, abs=0.005
    )
    assert observed_error_bounds(copies, 0.95).at_least <= once.at_least + 0.03
