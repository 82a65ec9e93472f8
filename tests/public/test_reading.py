"""What `Predictions` takes, changes and refuses."""

import contextlib
import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from inputs import case, refusal
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo.exceptions import InputError, ZeroProbabilityWarning
from mcllo.metrics import log_loss

read = Predictions.from_arrays

NAMES = ("cat", "dog", "bird")
WORDS = np.array(NAMES)[TOY_Y]
FRAME = pd.DataFrame(TOY_X, columns=NAMES)
ZEROS = [[1.0, 0.0], [0.3, 0.7], [0.0, 1.0]]


@pytest.fixture
def toy():
    return read(FRAME, WORDS, sample_weight=np.arange(1.0, 17.0))


def test_clean_input_passes_unchanged():
    p = read(TOY_X, TOY_Y)
    np.testing.assert_array_equal(p.probs, TOY_X)
    np.testing.assert_array_equal(p.codes, TOY_Y)
    assert (p.classes, p.baseline, p.baseline_index) == ((0, 1, 2), 2, 2)
    assert (p.n_samples, p.n_classes) == (16, 3)
    assert (p.logits, p.sample_weight, p.clip) == (None, None, None)
    assert (p.n_zeros, p.n_clipped, p.n_clipped_true, p.n_renormalized) == (0, 0, 0, 0)
    assert p.zero_note == ""
    assert p.absent == ()
    # methods.md 0.3: counts 6, 5, 5
    assert p.class_weight.tolist() == [6.0, 5.0, 5.0]
    assert repr(p) == "Predictions(n_samples=16, classes=(0, 1, 2), baseline=2)"
    rows = np.asfortranarray(TOY_X)
    rows.setflags(write=False)
    np.testing.assert_array_equal(read(rows, TOY_Y).probs, p.probs)
    np.testing.assert_array_equal(read(rows, TOY_Y).log_odds, p.log_odds)


def test_log_odds_by_hand():
    # log(0.2 / 0.8) = -log 4 and log(0.5 / 0.5) = 0
    p = read([[0.2, 0.8], [0.5, 0.5]], [0, 1])
    np.testing.assert_allclose(p.log_odds, [[-math.log(4.0), 0.0]], atol=1e-15)
    # log(1e300) = 690.7755278982137
    p = read([[1.0, 1e-300], [5e-324, 1.0]], [0, 1])
    assert p.log_odds[0, 0] == pytest.approx(690.7755278982137, rel=1e-15)
    assert np.isfinite(p.log_odds).all()


@pytest.mark.parametrize("baseline", range(3))
@pytest.mark.parametrize("given", ["probs", "logits"])
def test_log_odds_and_codes_against_the_formula(baseline, given):
    p = (
        read(TOY_X, TOY_Y, baseline=baseline)
        if given == "probs"
        else read(None, TOY_Y, logits=np.log(TOY_X) + 5.0, baseline=baseline)
    )
    others = [j for j in range(3) if j != baseline]
    assert p.compared == tuple(others)
    expected = [[math.log(row[j] / row[baseline]) for row in TOY_X] for j in others]
    np.testing.assert_allclose(p.log_odds, expected, rtol=1e-13, atol=1e-14)
    moved = [2 if label == baseline else others.index(label) for label in TOY_Y]
    assert p.model_codes.tolist() == moved


def test_frames_name_the_classes():
    kinds = {
        "pandas": FRAME,
        "pandas, other index": FRAME.set_axis(range(16, 0, -1)),
        "polars": pl.DataFrame(FRAME),
        "pyarrow": pa.Table.from_pandas(FRAME),
    }
    for kind, frame in kinds.items():
        with case(kind):
            p = read(frame, WORDS)
            assert p.classes == NAMES
            np.testing.assert_array_equal(p.codes, TOY_Y)
            np.testing.assert_array_equal(p.probs, TOY_X)


def test_classes_choose_and_order_the_columns_of_a_frame():
    order = ["bird", "cat", "dog"]
    p = read(FRAME.assign(id=WORDS), WORDS, classes=order)
    np.testing.assert_array_equal(p.probs, FRAME[order])
    assert [p.classes[code] for code in p.codes] == WORDS.tolist()


def test_integer_columns_and_text_labels_and_the_reverse():
    numbered = pd.DataFrame(TOY_X[:, ::-1], columns=[2, 1, 0])
    for y, classes in ((TOY_Y, (2, 1, 0)), (TOY_Y.astype(str), ("2", "1", "0"))):
        p = read(numbered, y)
        assert p.classes == classes
        np.testing.assert_array_equal(p.codes, 2 - TOY_Y)


def test_truth_values_against_named_columns():
    for columns in (("True", "False"), ("true", "false")):
        p = read(pd.DataFrame([[0.7, 0.3], [0.4, 0.6]], columns=columns), [False, True])
        assert p.classes == (True, False), columns
        assert p.codes.tolist() == [1, 0], columns


def test_a_class_without_rows_or_weight_is_reported_not_refused():
    seen = TOY_Y != 1
    assert read(TOY_X[seen], TOY_Y[seen]).absent == (1,)
    assert read(FRAME[seen], WORDS[seen]).absent == ("dog",)
    # words alone do not say which column has no rows
    assert "unclear" in str(refusal(read, TOY_X[seen], WORDS[seen]))
    p = read(TOY_X, TOY_Y, sample_weight=(TOY_Y != 0).astype(int))
    assert p.absent == (0,)
    assert p.class_weight.tolist() == [0.0, 5.0, 5.0]


def test_one_hot_frames_are_matched_by_name():
    hot = pd.get_dummies(pd.Series(WORDS))  # columns bird, cat, dog
    assert list(hot.columns) != list(NAMES)
    np.testing.assert_array_equal(read(FRAME, hot).codes, TOY_Y)
    np.testing.assert_array_equal(read(TOY_X, np.eye(3)[TOY_Y]).codes, TOY_Y)


@settings(deadline=None, max_examples=50)
@given(st.permutations(range(3)), st.sampled_from(NAMES), st.booleans())
def test_permuting_columns_with_their_names_permutes_the_probabilities(
    order, baseline, framed
):
    names = [NAMES[j] for j in order]
    if framed:
        q = read(FRAME[names], WORDS, baseline=baseline)
    else:
        q = read(TOY_X[:, order], WORDS, classes=names, baseline=baseline)
    p = read(FRAME, WORDS, baseline=baseline)
    np.testing.assert_array_equal(q.probs, p.probs[:, order])
    assert [q.classes[c] for c in q.codes] == [p.classes[c] for c in p.codes]
    np.testing.assert_array_equal(
        q.log_odds, p.log_odds[[p.compared.index(name) for name in q.compared]]
    )


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 15), min_size=1, max_size=20))
def test_reading_some_rows_is_taking_them(rows):
    options = {"classes": range(3), "baseline": 2}
    p = read(TOY_X, TOY_Y, sample_weight=np.arange(16) + 1.0, **options).take(rows)
    q = read(TOY_X[rows], TOY_Y[rows], sample_weight=np.array(rows) + 1.0, **options)
    for name in (
        "probs",
        "codes",
        "sample_weight",
        "log_odds",
        "model_codes",
        "class_weight",
    ):
        np.testing.assert_array_equal(getattr(p, name), getattr(q, name))


def test_zeros_are_raised_counted_and_announced():
    with pytest.warns(ZeroProbabilityWarning) as caught:
        p = read(ZEROS, [0, 1, 0])
    # row 2 puts 0 on the class that came true
    assert (p.n_zeros, p.n_clipped, p.n_clipped_true, p.clip) == (2, 2, 1, 1e-6)
    np.testing.assert_allclose(p.probs[2], [1e-6 / 1.000001, 1 / 1.000001], rtol=1e-15)
    message = (
        "2 of 6 probabilities were 0; 2 were clipped to 1e-06, 1 of them of the class"
    )
    warning = caught[0].message
    assert warning.text().startswith(message)
    assert "p-value" not in warning.text()  # nobody asked for one yet
    assert str(warning).startswith("probabilities of 0 were clipped to 1e-06")
    counts = {
        "n_zeros": 2,
        "n_clipped": 2,
        "n_clipped_true": 1,
        "n_entries": 6,
        "clip": 1e-6,
    }
    assert warning.numbers == counts
    assert p.zero_note.startswith(message)
    assert "p-value depend on this bound" in p.zero_note
    assert caught[0].filename == __file__  # points at the caller's line


def test_a_floor_of_ones_own_is_counted_without_a_warning():
    p = read([*ZEROS, [0.99995, 0.00005]], [0, 1, 0, 1], clip=1e-4)
    assert (p.n_zeros, p.n_clipped, p.n_clipped_true, p.clip) == (2, 3, 2, 1e-4)
    assert "clipped to 0.0001" in p.zero_note


def test_no_zeros_no_warning_and_clip_0_refuses():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read([[1.0 - 1e-12, 1e-12]], [0], classes=[0, 1]).n_clipped == 0
    assert refusal(read, ZEROS, [0, 1, 0], clip=0).row == 0


def test_logits_alone_define_everything():
    logits = [[700.0, -700.0], [-700.0, 700.0], [0.0, 0.0]]
    p = read(None, [0, 1, 0], logits=logits)
    np.testing.assert_array_equal(p.log_odds, [[1400.0, -1400.0, 0.0]])
    np.testing.assert_array_equal(p.logits, logits)
    np.testing.assert_array_equal(p.probs[2], [0.5, 0.5])
    assert p.n_clipped == 0


def test_logits_beside_probabilities_must_agree():
    logits = np.log(TOY_X) * 2.0
    error = refusal(read, TOY_X, TOY_Y, logits=logits)
    assert "probs must be the softmax of logits" in str(error)
    assert error.row is not None
    p = read(TOY_X, TOY_Y, logits=np.log(TOY_X) - 3.0)
    np.testing.assert_allclose(p.log_odds, read(TOY_X, TOY_Y).log_odds, atol=1e-13)


def test_logits_in_a_frame_name_the_classes_and_are_matched_by_name():
    p = read(FRAME, WORDS, logits=np.log(FRAME)[["bird", "cat", "dog"]])
    assert p.classes == NAMES
    np.testing.assert_array_equal(p.logits, np.log(TOY_X))
    assert read(None, WORDS, logits=np.log(FRAME)).classes == NAMES
    assert read(TOY_X, WORDS, logits=np.log(FRAME)).classes == NAMES


def test_arrays_are_read_only(toy):
    logits = read(None, TOY_Y, logits=np.log(TOY_X), baseline=0)
    arrays = [toy.probs, toy.codes, toy.sample_weight, toy.log_odds, toy.class_weight]
    arrays += [
        toy.with_baseline("cat").model_codes,
        logits.logits,
        toy.take([0, 1]).probs,
    ]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array.flat[0] = 0


def test_the_callers_arrays_stay_theirs():
    x, y, w, z = TOY_X.copy(), TOY_Y.copy(), np.ones(16), np.log(TOY_X)
    p, q = read(x, y, sample_weight=w), read(None, y, logits=z)
    for array in (x, y, w, z):
        assert array.flags.writeable
        array[:] = 0
    np.testing.assert_array_equal(p.probs, TOY_X)
    np.testing.assert_array_equal(p.codes, TOY_Y)
    np.testing.assert_array_equal(p.sample_weight, np.ones(16))
    np.testing.assert_array_equal(q.logits, np.log(TOY_X))


def test_weights_of_any_kind():
    kinds = (
        [1, 2, 3],
        np.array([1, 2, 3], "u1"),
        pd.Series([1, 2, 3]),
        pa.array([1, 2, 3]),
    )
    for weight in kinds:
        with case(type(weight)):
            p = read([[0.5, 0.5]] * 3, [0, 1, 1], sample_weight=weight)
            assert p.sample_weight.tolist() == [1.0, 2.0, 3.0]
            assert p.class_weight.tolist() == [1.0, 5.0]


NO_WEIGHTS = [
    ([1, 2], "one number per row (3); got shape (2,)", None),
    ([[1, 2]] * 3, "one number per row (3); got shape (3, 2)", None),
    ([1, -1, 1], "sample_weight[1]=-1", 1),
    ([1, math.nan, 1], "sample_weight[1]=nan", 1),
    ([1, math.inf, 1], "sample_weight[1]=inf", 1),
    (pl.Series([1, None, 2]), "sample_weight[1]=nan", 1),
    (np.ma.array([1, 2, 3], mask=[0, 1, 0]), "sample_weight[1]=nan", 1),
    ([0, 0, 0], "must not be zero everywhere", None),
    (["1", "2", "3"], "must hold numbers; got values such as '1'", None),
    ([1, 2, 3j], "must hold numbers", None),
    ("balanced", "got str", None),
    (2.0, "got float", None),
    ([[1], [2, 3]], "rows differ in length", None),
]


def test_weights_that_are_none():
    for weight, words, row in NO_WEIGHTS:
        with case(weight):
            error = refusal(read, [[0.5, 0.5]] * 3, [0, 1, 1], sample_weight=weight)
            assert words in str(error)
            assert error.row == row


PROBS = np.array([[0.6, 0.4], [0.3, 0.7], [0.5, 0.5]])
COUNTS = np.array([[2, 1], [0, 3], [1, 0]])


def test_counts_become_weighted_rows():
    p = read(PROBS, COUNTS)
    np.testing.assert_array_equal(p.probs, PROBS[[0, 0, 1, 2]])
    np.testing.assert_array_equal(p.codes, [0, 1, 1, 0])
    np.testing.assert_array_equal(p.sample_weight, [2.0, 1.0, 3.0, 1.0])


def test_counts_in_a_frame_are_matched_by_name():
    frame = pd.DataFrame(PROBS, columns=["cat", "dog"])
    p = read(frame, pd.DataFrame({"dog": [1, 3, 0], "cat": [2, 0, 1]}))
    np.testing.assert_array_equal(p.codes, [0, 1, 1, 0])
    assert p.classes == ("cat", "dog")


def test_counts_multiply_weights_and_repeat_groups():
    p = read(PROBS, COUNTS, sample_weight=[1, 2, 3], groups=["a", "b", "a"])
    np.testing.assert_array_equal(p.sample_weight, [2.0, 1.0, 6.0, 3.0])
    np.testing.assert_array_equal(p.groups, [0, 0, 1, 0])


def test_counts_refused():
    for counts, row, words in (
        ([[2, 1], [0, 0], [1, 0]], 1, "row 1 holds none"),
        (
            [[2, 1, 0], [0, 3, 0], [1, 0, 0]],
            None,
            "a column per class (2); got 3 columns",
        ),
        (COUNTS[:2], None, "same number of rows; got 3 and 2"),
    ):
        with case(words):
            error = refusal(read, PROBS, counts)
            assert words in str(error)
            assert error.row == row


def test_groups_follow_their_rows():
    p = read(TOY_X, TOY_Y, groups=list("aabbccddeeffgghh"))
    assert p.take([14, 15, 2, 9]).groups.tolist() == [2, 2, 0, 1]  # numbered anew
    np.testing.assert_array_equal(p.with_probs(TOY_X).groups, p.groups)


def test_rows_are_written_out_by_weight():
    p = read(PROBS, COUNTS, groups=["a", "b", "a"]).expand_weights()
    np.testing.assert_array_equal(p.probs, PROBS[[0, 0, 0, 1, 1, 1, 2]])
    assert (p.codes.tolist(), p.groups.tolist()) == (
        [0, 0, 1, 1, 1, 1, 0],
        [0, 0, 0, 1, 1, 1, 0],
    )
    assert p.sample_weight is None
    assert p.expand_weights() is p


@pytest.mark.parametrize("word", ["auto", "all"])
def test_reserved_names(word):
    message = str(refusal(read, PROBS[:2], [word, "b"], classes=[word, "b"]))
    assert f"must not be named {word!r}, a reserved word of baseline=" in message
    message = str(refusal(read, TOY_X, TOY_Y, baseline=word))
    assert "understood by assess" in message


def test_with_baseline(toy):
    moved = toy.with_baseline("cat")
    assert moved.baseline == "cat"
    assert moved.compared == ("dog", "bird")
    assert moved.probs is toy.probs
    assert toy.with_baseline("bird") is toy
    assert "did you mean 'cat'?" in str(refusal(toy.with_baseline, "cta"))


def test_with_probs_keeps_labels_and_weights(toy):
    other = toy.with_probs(TOY_X[::-1])
    np.testing.assert_array_equal(other.probs, TOY_X[::-1])
    assert (other.classes, other.baseline) == (toy.classes, toy.baseline)
    assert other.sample_weight is toy.sample_weight
    np.testing.assert_array_equal(
        toy.with_probs(FRAME[["dog", "bird", "cat"]]).probs, TOY_X
    )
    assert (
        read(None, TOY_Y, logits=np.log(TOY_X)).with_probs(TOY_X[::-1]).logits is None
    )
    p = read([[0.6, 0.4]] * 3, [0, 1, 0]).with_probs(ZEROS)  # counts zeros in silence
    assert (p.n_clipped, p.n_clipped_true) == (2, 1)
    assert "shape (16, 3); got (15, 3)" in str(refusal(toy.with_probs, TOY_X[1:]))
    assert "no column 'bird'" in str(refusal(toy.with_probs, FRAME[["cat", "dog"]]))


def test_take(toy):
    kinds = {
        "list": [0, 3],
        "unsigned": np.array([0, 3], "u1"),
        "series": pl.Series([0, 3]),
        "negative": [-16, 3],
        "mask": np.isin(np.arange(16), [0, 3]),
    }
    for kind, rows in kinds.items():
        with case(kind):
            part = toy.take(rows)
            np.testing.assert_array_equal(part.probs, TOY_X[[0, 3]])
            assert part.codes.tolist() == [0, 1]
            assert part.sample_weight.tolist() == [1.0, 4.0]
            assert part.classes == NAMES
    p = read(None, TOY_Y, logits=np.log(TOY_X)).take([5])
    np.testing.assert_array_equal(p.logits, np.log(TOY_X[[5]]))


def test_take_nothing_or_what_is_not_there(toy):
    for rows in ([], np.array([], int), [False] * 16):
        assert (
            str(refusal(toy.take, rows))
            == "rows must choose at least one row; got none."
        )
    numbers = ([16], [-17], [0.5], [True, False], [[0, 1]], [10**30])
    for rows in (*numbers, ["a"], 3, slice(2), None, "all"):
        with case(rows):
            assert str(refusal(toy.take, rows)).startswith("rows must be")


SWAPPED = {
    "arrays": (TOY_Y, TOY_X),
    "lists": (TOY_Y.tolist(), TOY_X.tolist()),
    "words": (WORDS, TOY_X),
    "pandas": (pd.Series(WORDS), FRAME),
    "two frames": (pd.DataFrame({"y": WORDS}), FRAME),
    "polars": (pl.Series(WORDS), pl.DataFrame(FRAME)),
    "pyarrow": (pa.chunked_array([TOY_Y]), pa.Table.from_pandas(FRAME)),
    "a column": (TOY_Y[:, None], TOY_X),
    "one-hot": (np.eye(3)[TOY_Y], TOY_X),
    "words alone": (WORDS, None),
    "probabilities twice": (TOY_X, TOY_X),
}


def test_swapped_arguments_are_called_by_name():
    for kind, (probs, y) in SWAPPED.items():
        with case(kind):
            message = str(refusal(read, probs, y))
            assert "swapped" in message
            assert "(probs, y)" in message


REFUSED = [
    ({"y": WORDS[:-1]}, "got 16 and 15"),
    ({"y": ["cat"]}, "got 16 and 1"),
    ({"y": np.eye(3)[TOY_Y[:5]], "probs": TOY_X}, "got 16 and 5"),
    ({"y": None}, "y must hold one label per row; got None."),
    ({"probs": None}, "probs must be given"),
    ({"probs": None, "y": None}, "probs must be given"),
    (
        {"probs": TOY_X, "classes": range(4)},
        "classes must name each of the 3 columns; got 4 names.",
    ),
    ({"baseline": "brid"}, "baseline='brid' is not a class; did you mean 'bird'?"),
    ({"baseline": 7}, "baseline=7 is not a class; classes are ['cat', 'dog', 'bird']."),
    ({"classes": ["cat", "dog", "dog"]}, "'dog' occurs twice"),
    ({"classes": ["cat", "dog", "brd"]}, "did you mean 'bird'?"),
    ({"classes": "cat"}, "classes must be a list of labels"),
    ({"classes": set(NAMES)}, "classes must be a list of labels"),
    ({"clip": "small"}, "clip must be a number"),
    ({"logits": "no"}, "logits must be an array"),
    (
        {"probs": TOY_X, "logits": np.zeros((16, 2))},
        "probs and logits must have the same shape; got (16, 3) and (16, 2).",
    ),
]


def test_arguments_that_are_refused():
    for options, words in REFUSED:
        with case(words):
            assert words in str(
                refusal(read, **{"probs": FRAME, "y": WORDS, **options})
            )


BROKEN_PROBS = {
    "set": {0.5},
    "dict": {"a": [0.7], "b": [0.3]},
    "generator": (row for row in TOY_X),
    "str": "probs.csv",
    "1-D": TOY_X[:, 0],
    "3-D": TOY_X[:, :, None],
    "empty": [],
    "no rows": TOY_X[:0],
    "one class": TOY_X[:, :1],
    "ragged": [[0.5, 0.5], [1.0]],
    "text": TOY_X.astype(str),
    "complex": TOY_X + 0j,
    "dates": np.zeros((16, 3), "M8[s]"),
    "masked": np.ma.masked_less(TOY_X, 0.1),
    "sparse": scipy.sparse.csr_array(TOY_X),
    "lazy": pl.LazyFrame(FRAME),
    "date column": FRAME.assign(when=pd.Timestamp("2020-01-01")),
    "label column": FRAME.assign(y=WORDS),
    "number column": FRAME.assign(fold=TOY_Y),
    "repeated columns": FRAME.set_axis(["cat", "cat", "bird"], axis=1),
    "several levels": pd.concat({"p": FRAME}, axis=1),
    "nulls": FRAME.astype("Float64").mask(FRAME == 0.05),
    "NaN": TOY_X * [1, 1, math.nan],
    "percent": TOY_X * 100,
    "logits": np.log(TOY_X),
    "Predictions": read(TOY_X, TOY_Y),
    "nested": [[[0.5], [0.5]]] * 16,
}


BROKEN_Y = {
    "set": set(NAMES),
    "dict": {"cat": 1},
    "generator": (word for word in WORDS),
    "str": "cat",
    "int": 3,
    "empty": [],
    "3-D": np.zeros((16, 3, 1)),
    "ragged": [["cat"], ["dog", "bird"]] * 8,
    "lists": pl.Series([["cat"]] * 16),
    "records": pl.Series([{"y": "cat"}] * 16),
    "dates": np.zeros(16, "M8[s]"),
    "complex": np.zeros(16, complex),
    "halves": np.full(16, 0.5),
    "huge": np.full(16, 1e300),
    "sparse": scipy.sparse.csr_array(np.eye(3)[TOY_Y]),
    "lazy": pl.LazyFrame({"y": WORDS}),
    "masked": np.ma.array(WORDS, mask=TOY_Y == 1),
    "unknown": np.where(TOY_Y == 1, "lorry", WORDS),
    "Predictions": read(TOY_X, TOY_Y),
}


def test_broken_arguments_never_leak_a_foreign_error():
    for kind, probs in BROKEN_PROBS.items():
        with case(f"probs: {kind}"):
            refusal(read, probs, WORDS)
    for kind, y in BROKEN_Y.items():
        with case(f"y: {kind}"):
            refusal(read, FRAME, y)


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.complex_numbers()
    | st.text(max_size=3)
    | st.binary(max_size=3)
    | st.decimals()
    | st.dates(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=2), inner, max_size=2)
        | st.lists(inner, max_size=3).map(
            lambda values: np.array([*values, None], dtype=object)[:-1]
        )
    ),
    max_leaves=8,
)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mcllo.exceptions.ZeroProbabilityWarning")
@settings(deadline=None, max_examples=200)
@given(
    JUNK,
    st.sampled_from(
        ["probs", "y", "logits", "classes", "baseline", "sample_weight", "clip"]
    ),
)
def test_anything_at_all_is_read_or_refused(junk, argument):
    options = {"probs": [[0.7, 0.3], [0.4, 0.6]], "y": ["a", "b"], argument: junk}
    p = None
    with contextlib.suppress(InputError):
        p = read(**options)
    if p is None:
        refusal(read, **options)
    else:
        assert p.probs.shape == (2, 2)
        assert np.isfinite(p.log_odds).all()


def test_counts_are_scored_as_repeated_rows():
    probs = [[0.6, 0.4], [0.3, 0.7]]
    # labels 0, 0, 1 on the first row and 1 on the second
    by_counts = log_loss([[2, 1], [0, 1]], probs)
    by_rows = log_loss([0, 0, 1, 1], [probs[0]] * 3 + [probs[1]])
    assert by_counts == pytest.approx(by_rows, rel=1e-14)
