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
from inputs import columns_of, refusal

from mcllo import MCLLOCalibrator, Predictions
from mcllo._input.frames import (
    as_column,
    as_matrix,
    as_numbers,
    column_names,
    did_you_mean,
    first_word,
    n_columns,
    shorten,
)
from mcllo._input.labels import plain_label
from mcllo.calibrators import HistogramBinning
from mcllo.exceptions import InputError
from mcllo.metrics import log_loss

P = np.array([[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]])
COLUMNS = {"a": P[:, 0], "b": P[:, 1]}
DECIMALS = {"a": [Decimal("0.7"), Decimal("0.2"), Decimal("0.5")], "b": [Decimal("0.3")] * 3}

FRAMES = {
    "pandas": pd.DataFrame(COLUMNS),
    "pandas, other index": pd.DataFrame(COLUMNS, index=[7, 7, "x"]),
    "pandas nullable": pd.DataFrame(COLUMNS).astype("Float64"),
    "pandas arrow": pd.DataFrame(COLUMNS).astype("float64[pyarrow]"),
    "polars": pl.DataFrame(COLUMNS),
    "pyarrow": pa.table(COLUMNS),
    "pyarrow, chunked": pa.concat_tables([pa.table(COLUMNS)[:1], pa.table(COLUMNS)[1:]]),
}


class Gradient:
    """An array of another library that refuses to become NumPy's, in its own words."""

    shape = (3, 2)

    def __array__(self, *args, **options):
        raise RuntimeError("Can't call numpy() on a tensor that requires grad.")


# ---- tables -------------------------------------------------------------------------------------


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_frames_give_values_and_names(frame):
    values, names = as_matrix(frame, "probs")
    np.testing.assert_array_equal(values, P)
    assert values.dtype == np.float64
    assert names == ["a", "b"] == column_names(frame)
    # columns are chosen and ordered by name
    values, names = as_matrix(frame, "probs", ["b", "a"])
    np.testing.assert_array_equal(values, P[:, ::-1])
    assert names == ["b", "a"]


@pytest.mark.parametrize(
    "table",
    [
        P,
        P.tolist(),
        tuple(map(tuple, P)),
        list(P),
        P.astype(object),
        P.view(np.matrix),
        P.astype(">f8"),
    ],
    ids=["array", "lists", "tuples", "list of arrays", "objects", "matrix", "big-endian"],
)
def test_arrays_and_lists_have_no_names(table):
    values, names = as_matrix(table, "probs", ["ignored", "for arrays"])
    np.testing.assert_array_equal(values, P)
    assert names is None
    assert column_names(table) is None
    assert as_matrix(P, "probs")[0] is P  # no copy


@pytest.mark.parametrize("precision", ["float32", "float16"])
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pd", "pl", "pa"])
def test_frames_keep_their_precision(make, precision):
    # the tolerance of row sums depends on it
    frame = make({name: column.astype(precision) for name, column in COLUMNS.items()})
    assert as_matrix(frame, "probs")[0].dtype == precision


def test_column_names_that_are_not_text():
    frame = pd.DataFrame(np.column_stack([P, [9, 9, 9]]), columns=[1, 0, ("x", "y")])
    values, names = as_matrix(frame, "probs", [0, 1])
    np.testing.assert_array_equal(values, P[:, ::-1])
    assert names == ["0", "1"]


@pytest.mark.parametrize("written", ["true", "True", "TRUE"])
def test_truth_values_find_their_columns_in_any_case(written):
    frame = pd.DataFrame({"False": P[:, 0], written: P[:, 1]})
    np.testing.assert_array_equal(as_matrix(frame, "probs", [True, False])[0], P[:, ::-1])


@pytest.mark.parametrize("make", [pl.DataFrame, pa.table], ids=["polars", "pyarrow"])
def test_decimal_columns_are_numbers(make):
    values, _ = as_matrix(make(DECIMALS), "probs")
    np.testing.assert_array_equal(values, [[0.7, 0.3], [0.2, 0.3], [0.5, 0.3]])


def test_nulls_in_numbers_become_nan():
    gap = [0.7, None, 0.5]
    for frame in (
        pd.DataFrame({"a": pd.array(gap, dtype="Float64"), "b": 0.5}),
        pl.DataFrame({"a": gap, "b": [0.5] * 3}),
        pa.table({"a": gap, "b": [0.5] * 3}),
        [[v, 0.5] for v in gap],
        np.ma.array(P, mask=[[0, 0], [1, 0], [0, 0]]),
    ):
        assert np.argwhere(np.isnan(as_matrix(frame, "probs")[0])).tolist() == [[1, 0]]


# ---- columns ------------------------------------------------------------------------------------

WORDS = ["a", "b", "a"]


@pytest.mark.parametrize("column", columns_of(WORDS))
def test_columns_of_words(column):
    array = as_column(column, "y")
    assert array.shape == (3,)
    assert [plain_label(word) for word in array] == WORDS


def test_what_is_missing_stays_missing():
    # np.asarray(["a", nan]) is ["a", "nan"]
    assert as_column(["a", float("nan")], "y")[1] != "nan"
    assert as_column([["a"], [float("nan")]], "y")[1] != "nan"
    assert as_column(pd.Series(["a", None], dtype="category"), "y")[1] != "nan"
    assert np.isnan(as_column(pl.Series([1, None]), "y")[1])
    assert np.isnan(as_column(pd.Series([1, None], dtype="Int64"), "y")[1])
    assert as_column(np.ma.array([1, 2], mask=[0, 1]), "y").tolist() == [1, None]
    assert as_column(np.ma.array([1, 2], mask=[0, 0]), "y").tolist() == [1, 2]


def test_numbers_and_wide_frames_stay_what_they_are():
    assert as_column(pl.Series([1, 2]), "y").dtype == np.int64
    assert as_column(pd.DataFrame(COLUMNS), "y").shape == (3, 2)


@pytest.mark.parametrize(
    ("values", "n"),
    [
        (P, 2),
        (P[:, 0], 1),
        (P[:, :1], 1),
        (P.tolist(), 2),
        (list(P), 2),
        (WORDS, 1),
        ([[word] for word in WORDS], 1),
        ([np.array(1.0), np.array(2.0)], 1),
        (FRAMES["pyarrow"], 2),
        (pa.chunked_array([WORDS]), 1),
        (pl.Series(WORDS), 1),
        ((None, [[]]), 1),
        (([None, []], None), 2),
        ([], 0),
        (None, 0),
        ("word", 0),
        (np.zeros((2, 2, 2)), 0),
        (pd.DataFrame, 0),
    ],
)
def test_n_columns_is_seen_without_reading(values, n):
    assert n_columns(values) == n


# ---- numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "u1", "?"])
def test_numbers_pass_as_they_are(dtype):
    array = np.zeros((2, 2), dtype)
    assert as_numbers(array, "probs") is array


def test_long_doubles_and_number_objects_become_float64():
    assert as_numbers(P.astype(np.longdouble), "probs").dtype == np.float64
    objects = np.array([Fraction(1, 4), Decimal("0.25"), True, None], dtype=object)
    np.testing.assert_array_equal(as_numbers(objects, "probs"), [0.25, 0.25, 1.0, np.nan])


@pytest.mark.parametrize(
    ("array", "word"),
    [
        (np.array([["0.7", "0.3"]]), "0.7"),
        (np.array([["0.7", 0.3]], dtype=object), "0.7"),
        (np.array([[0.7, "many\nlines"]], dtype=object), "many lines"),
        (np.array([[b"0.7"]]), "b'0.7'"),
        (np.array([[0.7 + 0j]]), "0.7+0j"),
        (np.zeros((1, 1), "M8[D]"), "1970-01-01"),
        (np.zeros((1, 1), "m8[s]"), "0 seconds"),
        (np.zeros(1, "f8,f8"), "0.0, 0.0"),
        (np.array([[pd.NA, 0.3]], dtype=object), "<NA>"),
        (np.array([[10**400]], dtype=object), "1000"),
        (np.array([{"a": 1}], dtype=object), "{'a': 1}"),
    ],
)
def test_what_is_not_a_number_is_refused_and_shown(array, word):
    message = str(refusal(as_numbers, array, "weights"))
    assert message.startswith("weights must hold numbers; got values such as")
    assert word in message
    assert "swapped" not in message
    assert "swapped" in str(refusal(as_numbers, array, "probs"))


# ---- refusals -----------------------------------------------------------------------------------

NOT_TABLES = {
    "set": {0.1, 0.2},
    "dict": {"a": [0.7], "b": [0.3]},
    "generator": (row for row in P),
    "str": "0.7 0.3",
    "float": 0.7,
    "NoneType": None,
    "type": pd.DataFrame,
    "ellipsis": ...,
    "builtin_function_or_method": len,
    "csr_matrix": scipy.sparse.csr_matrix(P),
    "coo_array": scipy.sparse.coo_array(P),
    "LazyFrame": pl.LazyFrame(COLUMNS),
    "RecordBatch": pa.record_batch(COLUMNS),
    "Gradient": Gradient(),
}


@pytest.mark.parametrize("kind", NOT_TABLES)
@pytest.mark.parametrize("read", [as_matrix, as_column])
def test_what_is_no_table_is_refused_by_its_type(read, kind):
    error = refusal(read, NOT_TABLES[kind], "probs")
    assert f"got {kind}." in str(error)


TWICE = {
    "pandas": pd.DataFrame(P, columns=["a", "a"]),
    "pyarrow": pa.Table.from_arrays([pa.array(P[:, 0]), pa.array(P[:, 1])], names=["a", "a"]),
}
REPEATED = "column names must be distinct; x has 'a' twice. Rename one."
WIDE = pl.Series([2**70, 1, 1], dtype=pl.Int128)
TRUCK = pd.DataFrame(COLUMNS).rename(columns={"a": "truck"})


@pytest.mark.parametrize(
    ("read", "table", "words"),
    [
        (as_matrix, NOT_TABLES["csr_matrix"], "Pass x.toarray()."),
        (as_matrix, NOT_TABLES["LazyFrame"], "Pass x.collect()."),
        (as_matrix, [[0.7, 0.3], [1.0]], "rows differ in length"),
        (as_column, [["a"], ["b", "c"]], "rows differ in length"),
        *((read, frame, REPEATED) for read in (as_matrix, as_column) for frame in TWICE.values()),
        (as_matrix, pd.DataFrame(P, columns=[1, "1"]), "x has '1' twice"),
        (as_matrix, pl.DataFrame({"a": WIDE, "b": WIDE}), "convert its columns to floats"),
        (as_column, WIDE, "convert its columns to floats"),
        (as_column, pl.DataFrame({"a": WIDE}), "convert its columns to floats"),
        (partial(as_matrix, columns=["trcuk"]), TRUCK, "x has no column 'trcuk'; did you mean 'tr"),
        (partial(as_matrix, columns=[7]), TRUCK, "x has no column '7'; it has ['truck', 'b']."),
    ],
)
def test_tables_that_are_refused(read, table, words):
    assert words in str(refusal(read, table, "x"))


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (["x", "y", "z"], "String"),
        ([datetime.date(2020, 1, 1)] * 3, "Date"),
        ([True, False, True], "Boolean"),
        (pl.Series(["x", "y", "x"], dtype=pl.Categorical), "Categorical"),
        ([[1], [2], [3]], "List"),
        ([None] * 3, "Unknown"),
    ],
)
def test_columns_that_are_not_numbers_are_named(column, kind):
    frame = pl.DataFrame({"a": P[:, 0], "id": column})
    message = str(refusal(as_matrix, frame, "probs"))
    assert f"column 'id' is {kind}" in message
    assert "classes=" in message
    # it does not matter when others are chosen
    assert as_matrix(frame, "probs", ["a"])[1] == ["a"]


def test_odd_pandas_columns_are_named():
    for kind in ("object", "complex", "category", "Sparse[float]"):
        frame = pd.DataFrame(COLUMNS).astype({"b": kind})
        assert "column 'b' is" in str(refusal(as_matrix, frame, "probs"))


def test_words_of_errors():
    assert did_you_mean("trcuk", ["car", "truck"]) == "did you mean 'truck'?"
    assert did_you_mean("zebra", ["car", "truck"]) == "it has ['car', 'truck']."
    assert did_you_mean(10, [1, 100]) == "did you mean '100'?"
    assert first_word(np.array(["x" * 60])) == "x" * 39 + "…"
    assert shorten([1, "a"]) == "[1, 'a']"
    assert shorten(range(100), most=4) == "[0, 1, ..., 99]"
    assert shorten(range(4), most=4) == "[0, 1, 2, 3]"


# ---- the index of pandas ------------------------------------------------------------------------

NAMED = ["r0", "r1", "r2"]
PAIRS = pd.MultiIndex.from_product([["x"], [1, 2, 3]])


def frame_and_labels(rows=None, labels=None):
    """Return probabilities and labels of three rows with these indexes."""
    return pd.DataFrame(P, columns=["a", "b"], index=rows), pd.Series(WORDS, index=labels)


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        (None, None),
        ([7, 3, 5], [7, 3, 5]),  # train_test_split gives both the same index
        (None, [7, 3, 5]),  # a frame made from predict_proba, labels that were split off
        (NAMED, None),
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
    assert Predictions.from_arrays(probs, y.loc[probs.index]).codes.tolist() == [1, 0, 0]
    assert Predictions.from_arrays(probs, y.to_numpy()).codes.tolist() == [0, 1, 0]


def test_other_rows_are_refused_where_both_say_which():
    probs, y = frame_and_labels(NAMED, ["r1", "r2", "r3"])
    with pytest.raises(InputError, match=r"row 0 is 'r0' in probs and 'r1' in y\. Pass y\.to_nu"):
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
