import numpy as np
import pytest

from mcllo._ground.means import error_of_mean


def test_by_hand():
    # Groups sum to 2 and -2 in 4 rows: sqrt(2 / (2 - 1) * (4 + 4)) / 4 = 1.
    deviations, unit = np.array([1.0, 1.0, -1.0, -1.0]), np.ones(4)
    assert error_of_mean(deviations, unit, np.array([4, 4, 7, 7])) == pytest.approx((1.0, 2))
    assert error_of_mean(deviations, unit, np.zeros(4, dtype=int)) == (np.inf, 1)
    # Single rows: sqrt(4 / 3 * 4) / 4 = 1 / sqrt(3); a count of 2 is two rows.
    assert error_of_mean(deviations, unit) == pytest.approx((1.0 / np.sqrt(3.0), 4))
    twice = error_of_mean(np.array([1.0, -1.0]), np.array([2.0, 2.0]))
    assert twice == pytest.approx((1.0 / np.sqrt(3.0), 4))


def test_groups_without_weight_are_no_units():
    deviations, weight = np.array([1.0, -1.0, 9.0]), np.array([1.0, 1.0, 0.0])
    each = np.arange(3)
    assert error_of_mean(deviations, weight, each) == error_of_mean(
        deviations[:2], weight[:2], each[:2]
    )
