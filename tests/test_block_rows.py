import numpy as np
import pytest

from mcllo._block_rows import Block, Layout, Reading, block_rows, in_whole
from mcllo._predictions import Predictions
from mcllo.exceptions import InputError

LAYOUT = Layout(("a", "b", "c"), 1)


def test_a_block_reads_as_the_whole_does():
    probs, y = [[0.2, 0.3, 0.5], [0.6, 0.4, 0.0]], ["a", "c"]
    block = LAYOUT.read(np.array(probs), y)
    whole = Predictions.from_arrays(probs, y, classes=["a", "b", "c"], baseline="b", clip=1e-6)
    np.testing.assert_array_equal(block.probs, whole.probs)
    np.testing.assert_array_equal(block.log_odds, whole.log_odds)
    assert (block.classes, block.baseline, block.n_clipped) == (("a", "b", "c"), "b", 1)
    assert Block(7, block).n_samples == 2
    np.testing.assert_array_equal(Block(7, block).log_odds, whole.log_odds)


def test_the_first_rows_show_the_classes():
    layout = Layout.of_first(Reading(baseline=0), np.array([[0.2, 0.8]]), [1])
    assert (layout.classes, layout.baseline, layout.compared) == ((0, 1), 0, (1,))


def test_known_codes_need_no_labels():
    block = LAYOUT.coded(np.array([[0.2, 0.3, 0.5]]), np.array([2]), [0.5])
    assert block.codes.tolist() == [2]
    assert block.sample_weight.tolist() == [0.5]


def test_logits_are_read_as_logits():
    scores = np.array([[0.0, 1.0, 2.0]])
    layout = Layout(("a", "b", "c"), 2, Reading(logits=True))
    np.testing.assert_allclose(layout.read(scores, ["a"]).log_odds[:, 0], [-2.0, -1.0])


def test_blocks_hold_about_the_same_number_of_cells():
    assert [block_rows(c) for c in (2, 10, 100, 1000)] == [65536, 65536, 6553, 2000]
    assert block_rows(10_000) == 2**22 // 10_000  # no more than 32 MB, whatever the classes
    assert block_rows(10**9) == 1


def test_a_block_may_weigh_nothing():
    assert LAYOUT.read([[0.2, 0.3, 0.5]], ["a"], [0.0]).sample_weight.tolist() == [0.0]
    with pytest.raises(InputError, match=r"sample_weight\[0\]=-1"):
        LAYOUT.read([[0.2, 0.3, 0.5]], ["a"], [-1.0])


@pytest.mark.parametrize(
    ("message", "moved"),
    [
        ("got probs[3, 1]=2.", "got probs[103, 1]=2."),
        ("row 3 sums to 0.9", "row 103 sums to 0.9"),
        ("y[3] is missing", "y[103] is missing"),
        ("y contains 'x' (row 3), ['3', 'row 33']", "y contains 'x' (row 103), ['3', 'row 33']"),
    ],
)
def test_errors_name_the_row_of_the_whole(message, moved):
    error = in_whole(InputError(message, row=3), 100)
    assert (str(error), error.row) == (moved, 103)


def test_errors_without_a_row_stay():
    error = InputError("no row")
    assert in_whole(error, 5) is error


def test_other_labels_and_columns_are_refused():
    with pytest.raises(InputError, match=r"contains 'd' \(row 0\), which is not a class"):
        LAYOUT.read([[0.2, 0.3, 0.5]], ["d"])
    with pytest.raises(InputError, match="classes must name each of the 2 columns"):
        LAYOUT.read([[0.2, 0.8]], ["a"])
    with pytest.raises(InputError, match="reserved"):
        Layout.of_classes(Reading(), ("auto", "b"))
    with pytest.raises(InputError, match="baseline='d' is not a class"):
        Layout.of_classes(Reading(baseline="d"), ("a", "b"))
