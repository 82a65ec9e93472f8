"""DataChecks: none where nothing is wrong with the rows, one where a mistake was made."""

import warnings

import pytest
from studies.claims import data_checks as topic

pytestmark = pytest.mark.slow


def test_data_checks_are_for_mistakes_in_the_rows():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small tables are separated now and then
        rows = {row["what"]: row for row in topic.run(6, seed=12, sizes=(100, 1000))}
    assert {what: row["other"] for what, row in rows.items() if row["other"]} == {}
    # 42 tables each; of 1000 rows all exchanges show, labels of other rows in the sharper half
    for what in ("recalibrated on these rows", "columns turned by one"):
        assert rows[what]["n1000"] >= 0.9, what
    assert rows["two columns exchanged"]["n1000"] >= 0.8
    assert rows["labels of other rows"]["n1000"] >= 0.4
