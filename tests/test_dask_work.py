import numpy as np
import pandas as pd
import pytest
from block_data import rows

from mcllo._block_rows import Layout, Reading, block_rows
from mcllo._block_sums import row_sums
from mcllo._dask_work import (
    PART_ROWS,
    Job,
    LabelJob,
    added,
    likeliest,
    located,
    predicted,
    predicted_frame,
    two_dimensional,
)
from mcllo.calibrators import MCLLOCalibrator
from mcllo.exceptions import InputError

LAYOUT = Layout.of_classes(Reading(), ("a", "b", "c"))


def words(n=600):
    probs, y, _ = rows(n, c=3)
    return pd.DataFrame(probs, columns=list("abc")), pd.Series(np.array(["a", "b", "c"])[y])


def test_sums_are_added_in_order_and_none_is_nothing():
    assert added([None, (1,), None, (2, 3), (4,)]) == (1, 2, 3, 4)
    assert added([None, None]) is None


def test_a_partition_is_cut_into_blocks():
    size = block_rows(3)
    probs, y, _ = rows(2 * size + 5, c=3)
    layout = Layout.of_classes(Reading(), (0, 1, 2))
    sums = Job(row_sums, layout, (0, 100))(1, probs, y)
    assert sums.sizes == ((100, size), (100 + size, size), (100 + 2 * size, 5))
    sums = Job(row_sums, layout, None)(3, probs[:7], y[:7])
    assert sums.sizes == ((3 * PART_ROWS, 7),)


@pytest.mark.parametrize("kind", ["str", "object", "category"])
def test_words_of_any_kind_are_the_same_codes(kind):
    table, y = words()
    found = Job(row_sums, LAYOUT, None)(0, table, y.astype(kind))
    plain = Job(row_sums, LAYOUT, None)(0, table.to_numpy(), y.to_numpy(dtype=object))
    np.testing.assert_array_equal(found.class_weight, plain.class_weight)
    assert found.scores.log_loss == plain.scores.log_loss


def test_no_rows_are_none():
    table, y = words()
    assert Job(row_sums, LAYOUT, None)(0, table[:0], y[:0]) is None
    assert LabelJob(3, False, None)(0, y[:0]) is None


def test_distinct_labels_add():
    job = LabelJob(3, False, None)
    seen = job(0, pd.Series(["b", "a", "b"])) + job(1, np.array([["c"], ["a"]], dtype=object))
    assert seen.labels == {"a", "b", "c"}
    assert job(0, pd.Series(["b", "a"]).astype("category")).labels == {"a", "b"}
    assert job(0, np.array([2.0, 0.0])).labels == {0, 2}


def test_predictions_keep_their_frame():
    table, y = words()
    fitted = MCLLOCalibrator().fit(table, y)
    expected = fitted.predict_proba(table)
    table.index = table.index + 5
    found = predicted_frame(table, fitted, {"number": 0})
    assert found.index.equals(table.index)
    np.testing.assert_array_equal(found.to_numpy(), expected)
    np.testing.assert_array_equal(predicted(table.to_numpy(), (fitted, None)), expected)
    assert predicted(np.empty((0, 3)), (fitted, None)).shape == (0, 3)
    assert likeliest(np.array([[0.2, 0.4, 0.4]]), fitted.classes_).tolist() == ["b"]


def test_a_series_becomes_a_column():
    table, y = words(4)
    assert two_dimensional(y).shape == (4, 1)
    np.testing.assert_array_equal(two_dimensional(table), table.to_numpy())


def test_errors_name_the_row_of_the_whole_or_the_partition():
    with (
        pytest.raises(InputError, match=r"^got probs\[107, 0\]=2\.$") as caught,
        located(1, (0, 100), 5),
    ):
        raise InputError("got probs[2, 0]=2.", row=2)
    assert caught.value.row == 107
    with (
        pytest.raises(InputError, match=r"^in partition 1: got probs\[7, 0\]=2\.$"),
        located(1, None, 5),
    ):
        raise InputError("got probs[2, 0]=2.", row=2)


def test_a_bad_partition_is_refused():
    table, y = words()
    job = Job(row_sums, LAYOUT, None)
    with pytest.raises(InputError, match=r"in partition 2: .*same number of rows; got 600 and 599"):
        job(2, table, y[1:])
    with pytest.raises(InputError, match=r"in partition 2: sample_weight"):
        job(2, table, y, np.ones(599))
    with pytest.raises(InputError, match=r"in partition 2: .*'z' \(row 1\)"):
        job(2, table[:2], pd.Series(["a", "z"]))
    with pytest.raises(
        InputError, match=r"in partition 0: .*3 columns and y has 4 distinct labels"
    ):
        LabelJob(3, False, None)(0, pd.Series(list("abcd")))
    assert len(LabelJob(3, True, None)(0, pd.Series(list("abcd"))).labels) == 4
