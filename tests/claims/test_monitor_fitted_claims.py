"""Which rows suffice for a map that is watched: the page's table, by the code that made it."""

import math
import sys
from pathlib import Path

import pytest

sys.path.insert(
    0, str(Path(__file__).resolve().parents[2])
)  # studies are not installed
from studies.claims import monitor_fitted as study
from studies.pages import read

from mcllo._monitor.status import MIN_ROWS_PER_PARAMETER

BY_CHANCE = 3.1
"""Standard errors that a share may be above its bound, one time in a thousand."""
MOST_DETECTOR = study.LOOKS / study.RUN_LENGTH
"""The detector less the number of batches is a martingale: P(M >= A within k) <= k / A."""


SHOWN = ("exact_detector", "allowed_detector", "allowed_ever")
"""Columns of the study that are rows of the explanation page's table."""


def explanation_rows():
    """Return the lines of the explanation page's table, in the order of `SHOWN`."""
    page = Path(study.__file__).parents[2] / "docs" / "explanation" / "monitoring.md"
    begins = ("| taken for exact: d", "| allowed for: d", "| allowed for: e")
    lines = page.read_text(encoding="utf-8").splitlines()
    return [next(line for line in lines if line.startswith(begin)) for begin in begins]


def suffices(design):
    return (
        design.rows_per_parameter >= MIN_ROWS_PER_PARAMETER
        and "sharp, 5 %" not in design.name
    )


def at_most(bound, n):
    return bound + BY_CHANCE * math.sqrt(bound * (1.0 - bound) / n)


def test_the_stored_table_says_what_the_pages_say():
    rows = read(Path(study.__file__).parent / "results" / "monitor_fitted.csv")
    by_design = {(row["design"], row["n_learned"]): row for row in rows}
    assert len(by_design) == len(study.DESIGNS)
    for design in study.DESIGNS:
        row = by_design[design.name, design.n_learned]
        if suffices(design):
            assert row["allowed_detector"] <= at_most(MOST_DETECTOR, row["streams"])
            assert row["allowed_ever"] <= at_most(study.ALPHA, row["streams"])
            if row["exact_detector_delay"] is not None:
                assert row["allowed_detector_delay"] <= row["exact_detector_delay"] + 2
        if design.name == "c = 5":  # the explanation page has these too
            cells = [f"{100 * row[name]:.0f} %" for name in SHOWN]
            assert all(
                cell in line
                for cell, line in zip(cells, explanation_rows(), strict=True)
            )
    # taken for exact, maps of 300 rows raise an alarm nearly always, and of 3,000 mostly
    assert by_design["c = 5", 300]["exact_detector"] > 0.9
    assert by_design["c = 5", 3000]["exact_detector"] > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("n_learned", [300, 1000, 3000])
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_maps_of_enough_rows_keep_the_levels_and_see_a_change(n_learned, noise):
    n_streams = 40
    design = study.Design("c = 5", n_learned, noise=noise)
    calm = study.alarms(design, "allowed", False, n_streams, seed=1)
    assert (calm["detector"] <= study.LOOKS).mean() <= at_most(MOST_DETECTOR, n_streams)
    assert (calm["ever"] <= study.LOOKS).mean() <= at_most(study.ALPHA, n_streams)
    changed = study.alarms(design, "allowed", True, n_streams, seed=2)
    assert study._delay(changed["detector"]) <= 6


def test_taken_for_exact_a_map_of_300_rows_raises_an_alarm_though_nothing_changes():
    design = study.Design("c = 5", 300)
    exact = study.alarms(design, "exact", False, 8, seed=3)
    allowed = study.alarms(design, "allowed", False, 8, seed=3)
    assert (exact["detector"] <= study.LOOKS).sum() >= 7
    assert (allowed["detector"] <= study.LOOKS).sum() <= 3
