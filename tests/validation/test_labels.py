import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inputs import columns_of, objects, refusal

from mcllo._validation.labels import (
    as_class_list,
    distinct_label_values,
    encode_labels,
    find_class,
    is_missing,
    plain_label,
)

WORDS = ["b", "a", "b", "c"]
LETTERS = st.characters(
    codec="utf-8", exclude_characters="\0"
)  # NumPy drops it from a word's end


def coded(y, n_classes, names=None):
    codes, classes = encode_labels(y, n_classes, names)
    assert codes.dtype == np.intp
    return codes.tolist(), classes


# ---- which column is which ----------------------------------------------------------------------


def test_which_column_is_which():
    # integers 0 .. c-1 and truth values need not all occur; all else is sorted, or goes by names
    assert coded([2, 0, 2], 3) == ([2, 0, 2], (0, 1, 2))
    assert coded([True, True], 2) == ([1, 1], (False, True))
    assert coded([5, -1, 5], 2) == ([1, 0, 1], (-1, 5))
    assert coded([1, 2, 1], 2) == ([0, 1, 0], (1, 2))
    assert coded(WORDS, 3) == ([1, 0, 1, 2], ("a", "b", "c"))
    assert coded(WORDS, 4, ["c", "x", "b", "a"]) == ([2, 3, 2, 0], ("c", "x", "b", "a"))


def test_numbers_as_text_in_two_orders_are_refused():
    # as text "10" comes before "2": the columns would be mixed up in silence
    text = [str(k) for k in range(12)]
    message = str(refusal(encode_labels, text, 12, None))
    assert "numbers written as text" in message
    assert "classes=" in message
    assert coded(text, 12, range(12)) == (list(range(12)), tuple(range(12)))
    assert coded(text[:10], 10) == (list(range(10)), tuple(text[:10]))


@pytest.mark.parametrize("y", [["a", "b"], [True, False], [0, 3]], ids=str)
def test_too_few_or_too_large_labels_leave_it_unclear(y):
    message = str(refusal(encode_labels, y, 3, None))
    assert message.startswith(
        "which column is which class is unclear: probs has 3 columns and y "
    )
    assert "2 distinct labels" in message
    assert message.endswith("Pass classes=.")


def test_codes_are_new_memory():
    y = np.array([0, 1], np.intp)
    assert not np.shares_memory(encode_labels(y, 2, None)[0], y)


# ---- types of labels and names ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "names", "codes", "classes"),
    [
        (["0", "1"], [1, 0], [1, 0], (1, 0)),
        ([0.0, 1.0], ["1", "0"], [1, 0], (1, 0)),
        ([True, False], ["FALSE", "TRUE"], [1, 0], (False, True)),
        ([b"a", b"b"], ["b", "a"], [1, 0], ("b", "a")),
        (["1", 2], ["2", "1"], [1, 0], ("2", "1")),
        ([-1, 1], ["-1", "1"], [0, 1], (-1, 1)),
    ],
)
def test_labels_and_names_meet_as_text(y, names, codes, classes):
    found = coded(y, 2, names)
    assert found == (codes, classes)
    assert [type(c) for c in found[1]] == [type(c) for c in classes]


@pytest.mark.parametrize("names", [["²", "--1"], ["1_0", "٣"], ["01", "1.0"]])
def test_names_that_only_look_like_integers(names):
    assert refusal(encode_labels, [1, 2], 2, names).row == 0


def test_every_kind_of_column_gives_the_same_codes():
    for kind in columns_of(WORDS):
        (y,) = kind.values
        assert coded(y, 3) == ([1, 0, 1, 2], ("a", "b", "c")), kind.id
    for y in (
        pd.Series([1, 0, 1], dtype="Int64"),
        pl.Series([1, 0, 1], dtype=pl.UInt8),
        pa.chunked_array([[1, 0], [1]]),
        np.array([1, 0, 1], ">i2"),
        np.array([[1], [0], [1]]).view(np.matrix),
    ):
        assert coded(y, 2) == ([1, 0, 1], (0, 1)), type(y)


@pytest.mark.parametrize(
    "y",
    [
        ["a", float("nan"), "b"],
        np.array([0.0, np.nan, 1.0]),
        np.ma.array(["a", "b", "a"], mask=[0, 1, 0]),
        pd.Series(["a", None, "b"], dtype="category"),
        pd.Series([0, None, 1], dtype="Int64"),
        pd.DataFrame({"y": pd.array([True, None, False], dtype="boolean")}),
        pl.Series([0, None, 1]),
        pa.chunked_array([pa.array(["a", None, "b"]).dictionary_encode()]),
    ],
    ids=lambda y: f"{type(y).__name__} {getattr(y, 'dtype', '')}",
)
def test_a_missing_label_is_found_in_every_kind_of_column(y):
    for names in (None, ["a", "b"]):
        error = refusal(encode_labels, y, 2, names)
        assert error.row == 1
        assert "y[1] is missing" in str(error)


@settings(deadline=None, max_examples=50)
@given(st.data())
def test_permuting_names_permutes_codes(data):
    names = data.draw(
        st.lists(st.text(LETTERS, max_size=3), min_size=2, max_size=6, unique=True)
    )
    y = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=20))
    order = data.draw(st.permutations(range(len(names))))
    codes, _ = coded(y, len(names), names)
    moved, classes = coded(y, len(names), [names[j] for j in order])
    assert [order[code] for code in moved] == codes
    assert [classes[code] for code in moved] == y


# ---- one-hot ------------------------------------------------------------------------------------

HOT = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 1, 0]])


@pytest.mark.parametrize(
    "y", [HOT, HOT.astype(bool), HOT.astype(object)], ids=["int", "bool", "object"]
)
def test_one_hot_arrays_go_by_position(y):
    assert coded(y, 3) == ([1, 0, 2, 1], (0, 1, 2))
    assert coded(y, 3, ["x", "y", "z"]) == ([1, 0, 2, 1], ("x", "y", "z"))


@pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pd", "pl", "pa"]
)
def test_one_hot_frames_go_by_name(make):
    frame = make({name: HOT[:, j] for j, name in enumerate("xyz")})
    assert coded(frame, 3, ["z", "x", "y"]) == ([2, 1, 0, 2], ("z", "x", "y"))
    assert coded(frame, 3) == ([1, 0, 2, 1], ("x", "y", "z"))
    dummies = pd.get_dummies(pd.Series([1, 0, 2, 1]))  # truth values, numbered columns
    assert coded(dummies, 3) == ([1, 0, 2, 1], (0, 1, 2))
    assert coded(dummies, 3, ["2", "1", "0"]) == ([1, 2, 0, 1], (2, 1, 0))


@pytest.mark.parametrize(
    ("row", "shown"),
    [
        ([1, 1, 0], "1.0, 1.0"),
        ([0, 0, 0], "0.0"),
        ([0.5, 0.5, 0], "0.5"),
        ([np.nan, 1, 0], "nan"),
    ],
)
def test_one_hot_rows_hold_one_1(row, shown):
    error = refusal(encode_labels, [*HOT[:2].tolist(), row], 3, None)
    assert error.row == 2
    assert shown in str(error)
    assert "swapped" in str(error)


# ---- refusals -----------------------------------------------------------------------------------

TYPES = ["car", "ship", "truck"]
# style.md: the model sentence
LORRY = "y contains 'lorry' (row 1), which is not a class; classes are ['car', 'ship', 'truck']."
OTHER_NAMES = pd.DataFrame(HOT, columns=["y_x", "y_y", "y_z"])


@pytest.mark.parametrize(
    ("y", "n_classes", "names", "row", "words"),
    [
        (["car", "lorry", "lorry"], 3, TYPES, 1, LORRY),
        ([0, 3], 3, ["0", "1", "2"], 1, "y contains 3 (row 1)"),
        (
            np.array([1, 2**63], "u8"),
            3,
            ["0", "1", "2"],
            1,
            f"y contains {2**63} (row 1)",
        ),
        ([True], 2, ["true", "True"], None, "'True' occurs twice"),
        ([], 2, None, None, "got none"),
        (np.zeros((2, 2, 2)), 2, None, None, "shape (2, 2, 2)"),
        (HOT, 4, None, None, "(4); got 3 columns"),
        (
            [["a", "b"], ["b", "a"]],
            2,
            None,
            None,
            "one-hot y must hold only 0 and 1; got 'a'",
        ),
        (
            OTHER_NAMES,
            3,
            ["x", "y", "z"],
            None,
            "['x', 'y', 'z']; got ['y_x', 'y_y', 'y_z']. Ren",
        ),
    ],
)
def test_labels_that_are_refused(y, n_classes, names, row, words):
    error = refusal(encode_labels, y, n_classes, names)
    assert error.row == row
    assert words in str(error)


# ---- classes and baseline -----------------------------------------------------------------------


def test_class_names_from_anything_in_order():
    for classes, names in (
        (["a", "A", "b", 1], ["a", "A", "b", 1]),
        ([b"a", b"b"], ["a", "b"]),
        (np.array(["a", "b"]), ["a", "b"]),
        (pd.Series(["a", "b"], index=[5, 4]), ["a", "b"]),
        (pa.array(["a", "b"]), ["a", "b"]),
        ((word for word in "ab"), ["a", "b"]),
        (np.array([1.0, 2.0]), [1, 2]),
    ):
        assert as_class_list(classes) == names, classes


@pytest.mark.parametrize(
    ("classes", "words"),
    [
        ("ab", "classes must be a list of labels"),
        ({"a", "b"}, "classes must be a list of labels"),
        (3, "classes must be a list of labels"),
        (["a", None], "as a label"),
        (["a", ["a"]], "as a label"),
        (["a", "b", "a"], "occurs twice. Rename one."),
        ([1, "1"], "occurs twice. Rename one."),
        (["b", b"b"], "occurs twice. Rename one."),
    ],
)
def test_class_names_that_are_refused(classes, words):
    assert words in str(refusal(as_class_list, classes))


def test_find_class():
    for label, classes in (
        ("b", ("a", "b")),
        ("1", (0, 1)),
        (1, ("0", "1")),
        (1, ("1", 1)),  # the same type first
        (np.float64(1.0), (0, 1)),
        ("True", (False, True)),
        (True, (False, True)),
    ):
        assert find_class(label, classes, "baseline") == 1, (label, classes)


def test_find_class_suggests_a_near_one_or_lists_the_classes():
    # style.md: the model sentence
    message = "baseline='trcuk' is not a class; did you mean 'truck'?"
    assert str(refusal(find_class, "trcuk", ("car", "truck"), "baseline")) == message
    for label in (5, True, ["a"], pd.NA):
        message = str(refusal(find_class, label, ("a", "b"), "baseline"))
        assert message.endswith("is not a class; classes are ['a', 'b'].")


def unfold(labels):
    """Return the plain value of each row."""
    values, place = distinct_label_values(labels)
    return (values if place is None else values[place]).tolist()


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (np.array([0.0, 1.0], dtype="f2"), [0, 1]),
        (objects(1, np.int64(2), True), [1, 2, 1]),
        (objects(1, 2.0, Decimal("3")), [1, 2, 3]),
        (objects(True, np.bool_(False)), [True, False]),
        (objects("a", np.str_("b"), b"caf\xc3\xa9"), ["a", "b", "café"]),
        (objects(1, "a"), ["1", "a"]),
        (objects(2**62 + 1, 5), [2**62 + 1, 5]),
        (objects(10**30, 5), [str(10**30), "5"]),
        (objects(10**400, 5.0), [str(10**400), "5"]),
        (objects(datetime.date(2020, 1, 2)), ["2020-01-02"]),
        (
            objects("<NA>", "NaT", "nan"),
            ["<NA>", "NaT", "nan"],
        ),  # words, however unwise
    ],
)
def test_one_plain_type(labels, expected):
    found = unfold(labels)
    assert found == expected
    assert [type(v) for v in found] == [type(v) for v in expected]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.text(LETTERS, max_size=3), min_size=1, max_size=20))
def test_words_are_kept_row_by_row(words):
    assert unfold(objects(*words)) == words


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(-(2**53), 2**53), min_size=1, max_size=20))
def test_whole_floats_are_the_integers_they_were(numbers):
    assert unfold(np.array(numbers, dtype=np.float64)) == numbers


MISSING = [None, float("nan"), np.float32("nan"), pd.NA, pd.NaT, Decimal("nan")]


def test_missing_labels_are_refused_with_their_first_row():
    for gap in MISSING:
        error = refusal(distinct_label_values, objects("a", "b", gap, "a", gap))
        assert error.row == 2, gap
        assert (
            str(error) == "every row needs a label; y[2] is missing. Drop those rows."
        )


@pytest.mark.parametrize("bad", [0.5, -np.inf, 2.0**53 + 2])
def test_floats_that_are_no_labels(bad):
    for labels in (np.array([1.0, bad]), objects(1, bad)):
        error = refusal(distinct_label_values, labels)
        assert error.row == 1
        assert f"y[1]={bad:g}" in str(error)
        assert "swapped" in str(error)


def test_containers_and_other_dtypes_are_no_labels():
    for container in ([1], {"a": 1}, np.zeros(2)):
        assert "plain label" in str(
            refusal(distinct_label_values, objects("a", container))
        )
    for dtype in ("c16", "M8[D]"):
        assert "Convert the labels to text." in str(
            refusal(distinct_label_values, np.zeros(2, dtype))
        )


def test_is_missing():
    assert all(map(is_missing, [*MISSING, Decimal("sNaN")]))
    assert not any(map(is_missing, [0, "", "nan", False, 0.0, ()]))


def test_plain_label():
    for label, plain in (
        (np.str_("cat"), "cat"),
        (np.bool_(True), True),
        (np.float32(2), 2),
        (2.5, 2.5),
        (b"cat", "cat"),
        (pa.scalar("cat"), "cat"),
        (None, None),
    ):
        assert plain_label(label) == plain, label
        assert type(plain_label(label)) is type(plain), label
