"""Sizes, simulated: intervals hold the true size, and "within" is said wrongly hardly ever."""

import pytest
from studies.claims import effect_size as study

pytestmark = pytest.mark.slow


REPS = 40
CALIBRATED = study.Design("flat, calibrated", "dirichlet:1", 1000, 4)
OFF = [
    study.Design("flat, slope 0.5", "dirichlet:1", 100, 3, "0.5"),
    study.Design("flat, every class shifted", "dirichlet:0.6", 500, 10, "random:0.3"),
    study.Design("network, slope 0.7", "network", 2000, 10, "0.7"),
    study.Design("sharp, slope 0.7", "sharp", 2000, 5, "0.7"),
    study.Design("20 groups, flat, slope 0.7", "dirichlet:1", 400, 3, "0.7", 20),
    study.Design("rare events, at the tolerance", "rare", 10_000, 2, "tolerance"),
]


def least(rate):
    """Return the rate less three standard errors."""
    return rate - 3.0 * (rate * (1.0 - rate) / REPS) ** 0.5


def test_calibrated_rows_do_not_look_off():
    row = study.measured(CALIBRATED, REPS, 5)
    assert row["estimate"] < 0.02
    assert row["change"] >= least(0.95)
    assert row["levels"] >= least(0.95)
    assert row["plain"] < 0.7  # the uncorrected interval hardly holds 0


@pytest.mark.parametrize("design", OFF, ids=lambda design: design.name)
def test_intervals_hold_the_true_size(design):
    row = study.measured(design, REPS, 5)
    assert min(row["change"], row["top"], row["gain"]) >= least(0.93)
    assert row["within"] <= 0.05 + 3.0 * (0.05 * 0.95 / REPS) ** 0.5
    assert row["estimate"] == pytest.approx(row["true"], rel=0.15)


def test_sizes_of_many_classes_need_the_correction():
    row = study.measured(study.Design("", "dirichlet:0.6", 500, 10, "0.8"), REPS, 5)
    assert row["change"] >= least(0.93)
    assert row["plain"] < 0.85
