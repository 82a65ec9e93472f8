"""`By`: a subgroup for each row, from an array or from a column of a frame."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from mcllo import Predictions
from mcllo._validation.arguments import clean_by
from mcllo.exceptions import InputError

PROBS = [[0.7, 0.3], [0.2, 0.8], [0.6, 0.4], [0.4, 0.6]]
LABELS = ["cat", "dog", "cat", "dog"]


def test_names_stand_in_their_natural_order():
    for given, names in (
        ([10, 2, 10, 9], (2, 9, 10)),
        (
            ["station 10", "station 2", "station 2", "hut"],
            ("hut", "station 2", "station 10"),
        ),
        ([True, False, True, False], (False, True)),
        (["x", 3, "x", 3], (3, "x")),
        (["", "a", "a", "a"], ("", "a")),
    ):
        by = clean_by(given, 4)
        assert by.names == names
        assert [by.names[code] for code in by.codes] == given
    by = clean_by(["b", "a", "b", "c"], 4)
    assert [part.tolist() for part in by.parts] == [[1], [0, 2], [3]]


def test_taking_rows_forgets_empty_subgroups():
    p = Predictions.from_arrays(PROBS, LABELS, by=["a", "b", "c", "a"])
    some = p.take([0, 2])
    assert some.by.names == ("a", "c")
    assert some.by.codes.tolist() == [0, 1]
    assert p.with_baseline("cat").by is p.by


def test_counted_labels_keep_their_subgroup():
    p = Predictions.from_arrays(
        PROBS, [[2, 1], [0, 3], [1, 0], [1, 1]], by=["a", "b", "b", "a"]
    )
    assert [p.by.names[code] for code in p.by.codes] == ["a", "a", "b", "b", "a", "a"]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_column_of_the_frame_is_no_class(make):
    columns = {
        "cat": [0.7, 0.2, 0.6, 0.4],
        "dog": [0.3, 0.8, 0.4, 0.6],
        "where": list("abab"),
    }
    p = Predictions.from_arrays(make(columns), LABELS, by="where")
    assert p.classes == ("cat", "dog")
    assert (p.by.column, p.by.names) == ("where", ("a", "b"))


def test_a_column_beside_logits():
    frame = pd.DataFrame(
        {"cat": [1.0, -1.0, 0.4, 0.0], "dog": 0.0, "where": list("abab")}
    )
    p = Predictions.from_arrays(y=LABELS, logits=frame, by="where")
    assert p.classes == ("cat", "dog")
    assert p.by.names == ("a", "b")


def test_a_series_brings_its_name():
    assert clean_by(pd.Series([1, 2, 1, 2], name="ward"), 4).column == "ward"
    assert clean_by([1, 2, 1, 2], 4).column == "group"


def test_predictions_that_are_given_can_be_divided():
    p = Predictions.from_arrays(PROBS, LABELS).with_by([1, 2, 1, 2])
    assert p.by.names == (1, 2)
    assert p.with_by(p.by).by is p.by


@pytest.mark.parametrize(
    ("by", "n", "message"),
    [
        (["a", "b", "a"], 4, r"by must hold one name per row \(4\); got shape \(3,\)"),
        (["a", None, "b", "a"], 4, r"every row needs a subgroup; by\[1\] is missing"),
        (["a"] * 4, 4, "by must name at least two subgroups; all rows are in one"),
        (np.arange(201), 201, r"at most 200 subgroups; got 201\. Join them into"),
    ],
)
def test_bad_subgroups_are_refused(by, n, message):
    with pytest.raises(InputError, match=message):
        clean_by(by, n)


def test_a_column_that_is_not_there():
    frame = pd.DataFrame(
        {"cat": [0.7, 0.2, 0.6, 0.4], "dog": [0.3, 0.8, 0.4, 0.6], "station": 1}
    )
    with pytest.raises(InputError, match="got 'statoin'; did you mean 'station'"):
        Predictions.from_arrays(frame, LABELS, by="statoin")
    with pytest.raises(InputError, match="Pass the name of each row"):
        Predictions.from_arrays(PROBS, LABELS, by="station")


def test_rows_in_another_order_are_refused():
    frame = pd.DataFrame({"cat": [0.7, 0.2, 0.6, 0.4], "dog": [0.3, 0.8, 0.4, 0.6]})
    where = pd.Series(list("abab"), index=[1, 0, 2, 3])
    with pytest.raises(InputError, match="by must have the index of probs"):
        Predictions.from_arrays(frame, LABELS, by=where)
