"""The verdicts of data sets whose error is known; designs that were answered wrongly before."""

from functools import cache

import pytest
from studies.claims import verdicts

pytestmark = pytest.mark.slow


@cache
def measured():
    return {row["design"]: row for row in verdicts.run(16)}


@pytest.mark.parametrize(
    "name", [name for name in verdicts.DESIGNS if "calibrated" in name]
)
def test_calibrated_rows_are_rarely_accused(name):
    row = measured()[name]  # 4 of 16 or more have a chance of 0.7 % at 5 %
    assert row["miscalibrated"] + row["negligible"] <= 3 / 16


def test_an_error_is_found_and_called_large():
    assert measured()["slope .8, 1,000 rows"]["miscalibrated"] >= 14 / 16
    assert measured()["slope .6, 30 groups"]["miscalibrated"] >= 14 / 16


def test_many_rows_do_not_make_a_small_error_matter():
    row = measured()["slope .98, 300,000 rows"]
    assert row["error"] < 0.005
    assert row["negligible"] == row["equivalent"] == 1.0


def test_rows_that_cannot_reject_cannot_tell():
    assert measured()["slope .6, 3 groups"]["inconclusive"] == 1.0
    row = measured()["calibrated, 30 rows"]
    assert row["inconclusive"] + row["miscalibrated"] == 1.0
    assert row["inconclusive"] >= 13 / 16


def test_practically_calibrated_needs_many_rows():
    assert measured()["calibrated, 300 rows"]["equivalent"] == 0.0
    assert measured()["calibrated, 30,000 rows"]["equivalent"] >= 0.5
    assert measured()["slope .8, 1,000 rows"]["equivalent"] == 0.0
