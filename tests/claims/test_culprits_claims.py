"""Whose fault, simulated: culprits are named, innocent classes hardly ever, baseline or not."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # studies are not installed
study = import_module("studies.claims.culprits")
pytestmark = pytest.mark.slow

REPS = {4: 60, 10: 40, 30: 12}
FLAT, NETWORK, SHARP = study.FLAT, study.NETWORK, study.SHARP
DESIGNS = [
    (study.Design(FLAT, 4, 1500, (-1,), "shift", 0.4), 0.85),
    (study.Design(FLAT, 4, 1500, (0, -1), "same", 0.4), 0.0),  # nobody can be told from nobody
    (study.Design(FLAT, 10, 1500, (-1,), "slope", 0.6), 0.85),
    (study.Design(FLAT, 10, 1500, (0, -1), "shift", 0.5), 0.85),
    (study.Design(FLAT, 30, 1500, (0,), "shift", 0.7), 0.45),
    (study.Design(NETWORK, 10, 4000, (-1,), "slope", 0.6), 0.85),
    (study.Design(SHARP, 4, 2000, (-1,), "shift", 1.0), 0.4),
]
NAMES = [f"{d.rows} {d.c} {d.n} {d.how} {d.off}" for d, _ in DESIGNS]


@pytest.mark.parametrize(("design", "least"), DESIGNS, ids=NAMES)
def test_innocent_classes_are_hardly_ever_named(design, least):
    reps = REPS[design.c] if design.rows == FLAT else 15
    (row,) = study.run(reps, seed=3, designs=[design])
    room = 3.0 * (0.07 * 0.93 / reps) ** 0.5
    assert row["innocent"] <= 0.07 + room
    assert row["named"] >= least
    # the way that this replaced does not pass: it names innocent classes, and never the baseline
    if design.n == 1500 and design.off == (-1,):
        assert row["before_innocent"] > 0.9
        assert row["before"] == 0.0
