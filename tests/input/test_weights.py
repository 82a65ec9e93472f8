import numpy as np
import pandas as pd
import pytest
from inputs import objects, refusal
from toy import TOY_X, TOY_Y

from mcllo import Predictions, calibration_test
from mcllo._input.weights import clean_groups, clean_rows, counted_labels, is_count_table

PROBS = np.array([[0.6, 0.4], [0.3, 0.7], [0.5, 0.5]])
COUNTS = np.array([[2, 1], [0, 3], [1, 0]])


# ---- counts ---------------------------------------------------------------------------------


def test_counts_become_weighted_rows():
    p = Predictions.from_arrays(PROBS, COUNTS)
    np.testing.assert_array_equal(p.probs, PROBS[[0, 0, 1, 2]])
    np.testing.assert_array_equal(p.codes, [0, 1, 1, 0])
    np.testing.assert_array_equal(p.sample_weight, [2.0, 1.0, 3.0, 1.0])


@pytest.mark.parametrize("method", ["chi2", "exact"])
def test_counts_test_like_the_rows_they_stand_for(method):
    rng = np.random.default_rng(3)
    probs = rng.dirichlet([1, 1, 1], size=30)
    counts = np.array([rng.multinomial(4, row) for row in probs])
    rows, columns, times = counted_labels(counts)
    plain = np.repeat(rows, times.astype(int))
    by_counts = calibration_test(probs, counts, method=method, n_resamples=199, seed=1)
    by_rows = calibration_test(
        probs[plain], np.repeat(columns, times.astype(int)), method=method, n_resamples=199, seed=1
    )
    assert by_counts.statistic == pytest.approx(by_rows.statistic, rel=1e-9)
    assert by_counts.pvalue == pytest.approx(by_rows.pvalue, abs=0.0 if method == "exact" else 1e-9)


def test_counts_in_a_frame_are_matched_by_name():
    frame = pd.DataFrame(PROBS, columns=["cat", "dog"])
    p = Predictions.from_arrays(frame, pd.DataFrame({"dog": [1, 3, 0], "cat": [2, 0, 1]}))
    np.testing.assert_array_equal(p.codes, [0, 1, 1, 0])
    assert p.classes == ("cat", "dog")


def test_counts_multiply_weights_and_repeat_groups():
    p = Predictions.from_arrays(PROBS, COUNTS, sample_weight=[1, 2, 3], groups=["a", "b", "a"])
    np.testing.assert_array_equal(p.sample_weight, [2.0, 1.0, 6.0, 3.0])
    np.testing.assert_array_equal(p.groups, [0, 0, 1, 0])


def test_a_one_hot_table_is_no_count_table():
    assert not is_count_table(np.eye(3)[TOY_Y])
    assert not is_count_table(TOY_X)
    assert is_count_table(COUNTS)


@pytest.mark.parametrize(
    ("counts", "row", "words"),
    [
        ([[2, 1], [0, 0], [1, 0]], 1, "row 1 holds none"),
        ([[2, 1, 0], [0, 3, 0], [1, 0, 0]], None, "a column per class (2); got 3 columns"),
        (COUNTS[:2], None, "same number of rows; got 3 and 2"),
    ],
)
def test_counts_refused(counts, row, words):
    error = refusal(Predictions.from_arrays, PROBS, counts)
    assert words in str(error)
    assert error.row == row


# ---- groups ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "groups",
    [["b", "a", "b"], np.array([7, 3, 7]), pd.Series(["x", "y", "x"]), objects((1, 2), 3, (1, 2))],
)
def test_groups_of_any_kind(groups):
    codes = clean_groups(groups, 3)
    assert codes[0] == codes[2] != codes[1]


def test_groups_follow_their_rows():
    p = Predictions.from_arrays(TOY_X, TOY_Y, groups=np.arange(len(TOY_Y)) // 2)
    np.testing.assert_array_equal(p.take([5, 0]).groups, [2, 0])
    np.testing.assert_array_equal(p.with_probs(TOY_X).groups, p.groups)


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        (["a", "a", "a"], "at least two groups"),
        (["a", None, "b"], "groups[1] is missing"),
        (["a", "b"], "one name per row"),
    ],
)
def test_groups_refused(groups, words):
    assert words in str(refusal(clean_groups, groups, 3))


# ---- weights --------------------------------------------------------------------------------


def test_survey_weights_are_not_repetitions():
    weight = np.full(len(TOY_Y), 2.0)
    counted = Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=weight)
    sampled = Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=weight, weight_kind="survey")
    assert counted.has_whole_weights
    assert not sampled.has_whole_weights
    message = str(refusal(clean_rows, 3, None, "freq"))
    assert "'frequency' or 'survey'; got weight_kind='freq'" in message


def test_rows_are_written_out_by_weight():
    p = Predictions.from_arrays(PROBS, COUNTS, groups=["a", "b", "a"]).written_out()
    np.testing.assert_array_equal(p.probs, PROBS[[0, 0, 0, 1, 1, 1, 2]])
    assert (p.codes.tolist(), p.groups.tolist()) == ([0, 0, 1, 1, 1, 1, 0], [0, 0, 0, 1, 1, 1, 0])
    assert p.sample_weight is None
    assert p.written_out() is p


@pytest.mark.parametrize("word", ["auto", "all"])
def test_reserved_names(word):
    message = str(refusal(Predictions.from_arrays, PROBS[:2], [word, "b"], classes=[word, "b"]))
    assert f"must not be named {word!r}, a reserved word of baseline=" in message
    message = str(refusal(Predictions.from_arrays, TOY_X, TOY_Y, baseline=word))
    assert "understood by assess" in message
