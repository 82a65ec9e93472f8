import datetime
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from inputs import refusal

from mcllo import MCLLOCalibrator, Predictions
from mcllo._validation.frames import (
    as_matrix,
    as_numbers,
    column_names,
    column_or_table,
    did_you_mean,
    first_non_number,
    n_columns,
    shorten,
)
from mcllo.calibrators import HistogramBinning
from mcllo.exceptions import InputError
from mcllo.metrics import log_loss

P = np.array([[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]])
COLUMNS = {"a": P[:, 0], "b": P[:, 1]}
WORDS = ["a", "b", "a"]


class Gradient:
    """An array of another library that refuses to become NumPy's, in its own words."""

    shape = (3, 2)

    def __array__(self, *args, **options):
        raise RuntimeError("Can't call numpy() on a tensor that requires grad.")


# ---- tables -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(COLUMNS, index=[7, 7, "x"]),
        pd.DataFrame(COLUMNS).astype("Float64"),
        pd.DataFrame(COLUMNS).astype("float64[pyarrow]"),
        pl.DataFrame(COLUMNS),
        pa.concat_tables([pa.table(COLUMNS)[:1], pa.table(COLUMNS)[1:]]),
    ],
    ids=["pandas", "pandas nullable", "pandas arrow", "polars", "pyarrow, chunked"],
)
def test_frames_give_values_and_names(frame):
    values, names = as_matrix(frame, "probs")
    np.testing.assert_array_equal(values, P)
    assert values.dtype == np.float64
    assert names == ["a", "b"] == column_names(frame)
    # columns are chosen and ordered by name
    values, names = as_matrix(frame, "probs", ["b", "a"])
    np.testing.assert_array_equal(values, P[:, ::-1])
    assert names == ["b", "a"]


def test_arrays_and_lists_have_no_names():
    for table in (
        P,
        P.tolist(),
        list(P),
        P.astype(object),
        P.view(np.matrix),
        P.astype(">f8"),
    ):
        values, names = as_matrix(table, "probs", ["ignored", "for arrays"])
        np.testing.assert_array_equal(values, P)
        assert names is None
        assert column_names(table) is None
        assert n_columns(table) == 2  # seen without reading
    assert as_matrix(P, "probs")[0] is P  # no copy


@pytest.mark.newest
@pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pd", "pl", "pa"]
)
def test_frames_keep_their_precision_and_decimals_are_numbers(make):
    # the tolerance of row sums depends on it
    for precision in ("float32", "float16"):
        frame = make(
            {name: column.astype(precision) for name, column in COLUMNS.items()}
        )
        assert as_matrix(frame, "probs")[0].dtype == precision
    if make is not pd.DataFrame:  # pandas has no such type
        decimals = make(
            {"a": [Decimal("0.7"), Decimal("0.2")], "b": [Decimal("0.3")] * 2}
        )
        np.testing.assert_array_equal(
            as_matrix(decimals, "probs")[0], [[0.7, 0.3], [0.2, 0.3]]
        )


def test_column_names_that_are_not_text():
    frame = pd.DataFrame(np.column_stack([P, [9, 9, 9]]), columns=[1, 0, ("x", "y")])
    values, names = as_matrix(frame, "probs", [0, 1])
    np.testing.assert_array_equal(values, P[:, ::-1])
    assert names == ["0", "1"]
    # truth values find their columns in any case
    frame = pd.DataFrame({"False": P[:, 0], "TRUE": P[:, 1]})
    np.testing.assert_array_equal(
        as_matrix(frame, "probs", [True, False])[0], P[:, ::-1]
    )


def test_nulls_in_numbers_become_nan():
    gap = [0.7, None, 0.5]
    for frame in (
        pd.DataFrame({"a": pd.array(gap, dtype="Float64"), "b": 0.5}),
        pl.DataFrame({"a": gap, "b": [0.5] * 3}),
        pa.table({"a": gap, "b": [0.5] * 3}),
        [[v, 0.5] for v in gap],
        np.ma.array(P, mask=[[0, 0], [1, 0], [0, 0]]),
    ):
        found = as_matrix(frame, "probs")[0]
        assert np.argwhere(np.isnan(found)).tolist() == [[1, 0]], type(frame)


# ---- columns ------------------------------------------------------------------------------------


def test_what_is_missing_stays_missing():
    # np.asarray(["a", nan]) is ["a", "nan"]
    assert column_or_table(["a", float("nan")], "y")[1] != "nan"
    assert column_or_table([["a"], [float("nan")]], "y")[1] != "nan"
    assert column_or_table(pd.Series(["a", None], dtype="category"), "y")[1] != "nan"
    assert np.isnan(column_or_table(pl.Series([1, None]), "y")[1])
    assert np.isnan(column_or_table(pd.Series([1, None], dtype="Int64"), "y")[1])
    assert column_or_table(np.ma.array([1, 2], mask=[0, 1]), "y").tolist() == [1, None]
    assert column_or_table(np.ma.array([1, 2], mask=[0, 0]), "y").tolist() == [1, 2]


def test_numbers_and_wide_frames_stay_what_they_are():
    assert column_or_table(pl.Series([1, 2]), "y").dtype == np.int64
    assert column_or_table(pd.DataFrame(COLUMNS), "y").shape == (3, 2)


# ---- numbers ------------------------------------------------------------------------------------


def test_numbers_pass_as_they_are_and_others_become_float64():
    for dtype in ("f8", "f2", "u1", "?"):
        array = np.zeros((2, 2), dtype)
        assert as_numbers(array, "probs") is array
    assert as_numbers(P.astype(np.longdouble), "probs").dtype == np.float64
    objects = np.array([Fraction(1, 4), Decimal("0.25"), True, None], dtype=object)
    np.testing.assert_array_equal(
        as_numbers(objects, "probs"), [0.25, 0.25, 1.0, np.nan]
    )


@pytest.mark.parametrize(
    ("array", "word"),
    [
        (np.array([["0.7", "0.3"]]), "0.7"),
        (np.array([[0.7, "many\nlines"]], dtype=object), "many lines"),
        (np.array([[0.7 + 0j]]), "0.7+0j"),
        (np.array([[pd.NA, 0.3]], dtype=object), "<NA>"),
        (np.array([[10**400]], dtype=object), "1000"),
    ],
)
def test_what_is_not_a_number_is_refused_and_shown(array, word):
    message = str(refusal(as_numbers, array, "weights"))
    assert message.startswith("weights must hold numbers; got values such as")
    assert word in message
    assert "swapped" not in message
    assert "swapped" in str(refusal(as_numbers, array, "probs"))


# ---- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize("read", [as_matrix, column_or_table])
def test_what_is_no_table_is_refused_by_its_type(read):
    for thing, words in (
        ({0.1, 0.2}, "got set."),
        (pd.DataFrame, "got type."),
        (pa.record_batch(COLUMNS), "got RecordBatch."),
        (Gradient(), "got Gradient."),
        (scipy.sparse.csr_matrix(P), "got csr_matrix. Pass x.toarray()."),
        (pl.LazyFrame(COLUMNS), "got LazyFrame. Pass x.collect()."),
    ):
        assert words in str(refusal(read, thing, "x"))


TWICE = {
    "pandas": pd.DataFrame(P, columns=["a", "a"]),
    "pyarrow": pa.Table.from_arrays(
        [pa.array(P[:, 0]), pa.array(P[:, 1])], names=["a", "a"]
    ),
}
REPEATED = "column names must be distinct; x has 'a' twice. Rename one."
WIDE = pl.Series([2**70, 1, 1], dtype=pl.Int128)
TRUCK = pd.DataFrame(COLUMNS).rename(columns={"a": "truck"})


@pytest.mark.newest
@pytest.mark.parametrize(
    ("read", "table", "words"),
    [
        (as_matrix, [[0.7, 0.3], [1.0]], "rows differ in length"),
        (column_or_table, [["a"], ["b", "c"]], "rows differ in length"),
        (as_matrix, TWICE["pandas"], REPEATED),
        (column_or_table, TWICE["pyarrow"], REPEATED),
        (as_matrix, pd.DataFrame(P, columns=[1, "1"]), "x has '1' twice"),
        (
            as_matrix,
            pl.DataFrame({"a": WIDE, "b": WIDE}),
            "convert its columns to floats",
        ),
        (column_or_table, WIDE, "convert its columns to floats"),
        (
            partial(as_matrix, columns=["trcuk"]),
            TRUCK,
            "x has no column 'trcuk'; did you mean 'tr",
        ),
        (
            partial(as_matrix, columns=[7]),
            TRUCK,
            "x has no column '7'; it has ['truck', 'b'].",
        ),
    ],
)
def test_tables_that_are_refused(read, table, words):
    assert words in str(refusal(read, table, "x"))


def test_columns_that_are_not_numbers_are_named():
    for column, kind in (
        (["x", "y", "z"], "String"),
        ([datetime.date(2020, 1, 1)] * 3, "Date"),
        ([True, False, True], "Boolean"),
        ([[1], [2], [3]], "List"),
        ([None] * 3, "Unknown"),
    ):
        frame = pl.DataFrame({"a": P[:, 0], "id": column})
        message = str(refusal(as_matrix, frame, "probs"))
        assert f"column 'id' is {kind}" in message
        assert "classes=" in message
        # it does not matter when others are chosen
        assert as_matrix(frame, "probs", ["a"])[1] == ["a"]
    for kind in ("object", "complex", "category", "Sparse[float]"):
        frame = pd.DataFrame(COLUMNS).astype({"b": kind})
        assert "column 'b' is" in str(refusal(as_matrix, frame, "probs")), kind


def test_words_of_errors():
    assert did_you_mean("zebra", ["car", "truck"]) == "it has ['car', 'truck']."
    assert did_you_mean(10, [1, 100]) == "did you mean '100'?"
    assert first_non_number(np.array(["x" * 60])) == "x" * 39 + "…"
    assert shorten(range(100), most=4) == "[0, 1, ..., 99]"
    assert shorten(range(4), most=4) == "[0, 1, 2, 3]"


# ---- the index of pandas ------------------------------------------------------------------------

NAMED = ["r0", "r1", "r2"]
PAIRS = pd.MultiIndex.from_product([["x"], [1, 2, 3]])


def frame_and_labels(rows=None, labels=None):
    """Return probabilities and labels of three rows with these indexes."""
    return pd.DataFrame(P, columns=["a", "b"], index=rows), pd.Series(
        WORDS, index=labels
    )


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        ([7, 3, 5], [7, 3, 5]),  # train_test_split gives both the same index
        (
            None,
            [7, 3, 5],
        ),  # a frame made from predict_proba, labels that were split off
        ([1, 1, 2], [1, 1, 2]),
        ([0, 1, 2], [0.0, 1.0, 2.0]),
        (PAIRS, PAIRS.copy()),
    ],
)
def test_an_index_that_agrees_or_only_counts_is_taken_by_position(rows, labels):
    probs, y = frame_and_labels(rows, labels)
    p = Predictions.from_arrays(probs, y, sample_weight=pd.Series([1, 2, 3]))
    assert p.codes.tolist() == [0, 1, 0]


def test_the_same_rows_in_another_order_are_refused():
    probs, y = frame_and_labels(None, [2, 0, 1])
    said = (
        r"^y must have the index of probs; row 0 is 0 in probs and 2 in y\. Pass "
        r"y\.loc\[probs\.index\] to go by the index, or y\.to_numpy\(\) if the rows are in the "
        r"same order\.$"
    )
    with pytest.raises(InputError, match=said):
        Predictions.from_arrays(probs, y)
    # the remedies
    assert Predictions.from_arrays(probs, y.loc[probs.index]).codes.tolist() == [
        1,
        0,
        0,
    ]
    assert Predictions.from_arrays(probs, y.to_numpy()).codes.tolist() == [0, 1, 0]


def test_other_rows_are_refused_where_both_say_which():
    probs, y = frame_and_labels(NAMED, ["r1", "r2", "r3"])
    with pytest.raises(
        InputError, match=r"row 0 is 'r0' in probs and 'r1' in y\. Pass y\.to_nu"
    ):
        Predictions.from_arrays(probs, y)


@pytest.mark.parametrize("name", ["sample_weight", "groups"])
def test_weights_and_groups_have_an_index_too(name):
    probs, y = frame_and_labels(NAMED, NAMED)
    beside = pd.Series([1, 2, 3], index=NAMED[::-1])
    with pytest.raises(InputError, match=rf"{name} must have the index of probs"):
        Predictions.from_arrays(probs, y, **{name: beside})
    with pytest.raises(InputError, match=rf"{name} must have the index of y"):
        Predictions.from_arrays(P, y, classes=["a", "b"], **{name: beside})
    assert Predictions.from_arrays(probs, y, **{name: beside.to_numpy()}).n_samples == 3


def test_metrics_and_calibrators_look_at_the_index():
    probs, y = frame_and_labels(None, [2, 0, 1])
    with pytest.raises(InputError, match="y_true must have the index of y_prob"):
        log_loss(y, probs)
    for calibrator in (HistogramBinning(), MCLLOCalibrator()):
        with pytest.raises(InputError, match="y must have the index of"):
            calibrator.fit(probs, y)


def test_frames_without_an_index_go_by_position():
    y = pd.Series(WORDS, index=[2, 0, 1])
    for make in (pl.DataFrame, pa.table):
        assert Predictions.from_arrays(make(COLUMNS), y).codes.tolist() == [0, 1, 0]
