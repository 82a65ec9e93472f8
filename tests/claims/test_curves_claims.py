"""Curves of reliability: bands hold as the page says, parts add up."""

import numpy as np
import pytest
from studies.claims import curves

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("design", curves.CALIBRATED, ids=lambda d: f"{d[0]}-{d[1]}")
def test_the_isotonic_curve_leaves_its_band_in_5_percent_at_most(design):
    row = curves.consistency(*design, reps=40, seed=1)
    assert row["rate"] < 0.05 + 3.0 * max(row["se"], 0.005)
    assert row["rejected"] < 0.05 + 3.0 * np.sqrt(0.05 * 0.95 / 40)
    assert row["gap"] < 1e-12
    assert row["least"] > -1e-12


@pytest.mark.parametrize("truth", curves.TRUTHS)
@pytest.mark.parametrize(
    "design",
    [("dirichlet:1", 300, 3, 0), ("sharp", 500, 10, None), ("groups", 1000, 3, 0)],
    ids=lambda d: d[0],
)
def test_the_smooth_band_holds_the_true_curve(design, truth):
    row = curves.coverage(*design, truth, reps=30, seed=1)
    assert row["rate"] > 0.95 - 4.0 * max(row["se"], 0.01)
    assert row["worst"] >= 0.75  # of 30 data sets, at the worst of seven points
