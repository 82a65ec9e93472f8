"""Miscalibrated classes, simulated: they are named, calibrated ones hardly ever, baseline or
not.
"""

import pytest
from studies.claims import attribution as study

pytestmark = pytest.mark.slow


REPS = {4: 60, 10: 40, 30: 12}
FLAT, NETWORK, SHARP = study.FLAT, study.NETWORK, study.SHARP
DESIGNS = [
    (study.Design(FLAT, 4, 1500, (-1,), "shift", 0.4), 0.85),
    (
        study.Design(FLAT, 4, 1500, (0, -1), "same", 0.4),
        0.0,
    ),  # nobody can be told from nobody
    (study.Design(FLAT, 10, 1500, (-1,), "slope", 0.6), 0.85),
    (study.Design(FLAT, 10, 1500, (0, -1), "shift", 0.5), 0.85),
    (study.Design(FLAT, 30, 1500, (0,), "shift", 0.7), 0.45),
    (study.Design(NETWORK, 10, 4000, (-1,), "slope", 0.6), 0.85),
    (study.Design(SHARP, 4, 2000, (-1,), "shift", 1.0), 0.4),
]
NAMES = [f"{d.rows} {d.c} {d.n} {d.how} {d.off}" for d, _ in DESIGNS]


@pytest.mark.parametrize(("design", "least"), DESIGNS, ids=NAMES)
def test_calibrated_classes_are_hardly_ever_named(design, least):
    reps = REPS[design.c] if design.rows == FLAT else 15
    (row,) = study.run(reps, seed=3, designs=[design])
    room = 3.0 * (0.07 * 0.93 / reps) ** 0.5
    assert row["innocent"] <= 0.07 + room
    assert row["named"] >= least
    # the way that this replaced does not pass: it names calibrated classes, and never the baseline
    if design.n == 1500 and design.off == (-1,):
        assert row["before_innocent"] > 0.9
        assert row["before"] == 0.0


OUTSIDE = {
    f"{d.rows} {d.c} {d.n} {d.how}": d
    for d in study.OUTSIDE
    if d.how != "slopes" and d.n != 1500
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_is_no_matter_of_single_classes_is_called_so(name):
    # each of these was said in 0 of 16 to 18 data sets, or in 45 of 60, before there were rivals
    reps = 25
    (row,) = study.run(reps, seed=5, designs=[OUTSIDE[name]])
    room = 3.0 * (0.07 * 0.93 / reps) ** 0.5
    assert row["innocent"] <= 0.07 + room
    assert row["said"] >= 0.7
    if OUTSIDE[name].kind != "temperature":
        assert row["temperature"] <= 0.07 + room


def test_a_mixture_of_slopes_is_hardly_ever_called_a_lapse():
    (design,) = (d for d in study.OUTSIDE if d.how == "slopes")
    (row,) = study.run(25, seed=5, designs=[design])
    assert row["said"] >= 0.7


def test_one_of_these_is_also_off_is_hardly_ever_said_without_a_miscalibrated_class():
    rows = study.run(
        60, seed=9, designs=[study.DESIGNS[0], study.DESIGNS[5], study.DESIGNS[6]]
    )
    assert sum(row["also"] for row in rows) / len(rows) <= 0.07
