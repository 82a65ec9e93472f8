"""What auto promises is true of new rows, also of repairs that were made by mistake."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # studies are not installed
claims = import_module("studies.claims.promise")


def measured(design, reps):
    (row,) = claims.run(reps, seed=1, designs={design: claims.DESIGNS[design]})
    return row


@pytest.mark.slow
def test_on_calibrated_rows_no_gain_is_promised():
    # as cross-validated, the repairs that are made promise .009 more than is true
    row = measured("3 even classes, 200 rows, calibrated", 200)
    assert row["excess"] < 2.0 * row["excess_se"]
    assert row["cross_validated"] - row["true"] > 3.0 * row["excess_se"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("design", "reps"),
    [
        ("3 even classes, 200 rows, slope 0.7", 100),
        ("a network's 10 classes, 400 rows, slope 0.6", 40),
    ],
)
def test_where_there_is_something_to_repair_the_promise_is_kept(design, reps):
    row = measured(design, reps)
    assert abs(row["excess"]) < 3.0 * row["excess_se"]
    assert row["covered"] > 0.9 - 2.0 * row["covered_se"]
