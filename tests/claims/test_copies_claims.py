"""Copies: no finding without them, one when the whole table is repeated."""

import sys
import warnings
from importlib import import_module
from pathlib import Path

import pytest

sys.path.insert(
    0, str(Path(__file__).resolve().parents[2])
)  # studies are not installed
topic = import_module("studies.claims.copies")


@pytest.mark.slow
def test_copies_are_told_from_rows_that_are_equal_by_nature():
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # zeros are raised, small tables separated now and then
        rows = topic.run(10, seed=17)
    assert sum(row["false"] for row in rows) == 0
    for row in rows:
        if (
            row["rows"] != "0 and 1 only"
        ):  # 4 different rows: nothing tells copies there
            assert row["all"] == 1.0, row
    halves = {row["rows"]: row["half"] for row in rows if row["n"] == 2000}
    assert halves["all different, 3 classes"] == 1.0
    assert halves["all different, sharp, 10 classes"] >= 0.9
