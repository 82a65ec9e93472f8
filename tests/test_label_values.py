import datetime
import enum
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusal import refusal

from mcllo._label_values import is_missing, label_values, plain_label

LETTERS = st.characters(
    codec="utf-8", exclude_characters="\0"
)  # which NumPy drops from the end of a word


def objects(*values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def unfold(labels):
    """Return the plain value of each row."""
    values, place = label_values(labels)
    return (values if place is None else values[place]).tolist()


class Colour(enum.Enum):
    RED = 1


@pytest.mark.parametrize("dtype", ["i8", "u1", ">i4", "?"])
def test_integers_and_truth_values_pass_as_they_are(dtype):
    labels = np.array([1, 0, 1], dtype)
    values, place = label_values(labels)
    assert values is labels
    assert place is None


def test_words_are_gathered_in_order_of_appearance():
    values, place = label_values(np.array(["b", "a", "b", "c"]))
    assert values.tolist() == ["b", "a", "c"]
    assert place.tolist() == [0, 1, 0, 2]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (np.array([0.0, 2.0, -1.0]), [0, 2, -1]),
        (np.array([0.0, 1.0], dtype="f2"), [0, 1]),
        (objects(1, np.int64(2), True), [1, 2, 1]),
        (objects(1, 2.0, Decimal("3")), [1, 2, 3]),
        (objects(True, np.bool_(False)), [True, False]),
        (objects("a", np.str_("b"), b"c"), ["a", "b", "c"]),
        (np.array([b"cat", b"dog"]), ["cat", "dog"]),
        (objects(b"caf\xc3\xa9"), ["café"]),
        (objects(1, "a"), ["1", "a"]),
        (objects(2**62 + 1, 5), [2**62 + 1, 5]),
        (objects(10**30, 5), [str(10**30), "5"]),
        (objects(10**400, 5.0), [str(10**400), "5"]),
        (objects(datetime.date(2020, 1, 2)), ["2020-01-02"]),
        (objects(Colour.RED), ["Colour.RED"]),
        (objects("<NA>", "NaT", "nan"), ["<NA>", "NaT", "nan"]),  # words, however unwise
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


@pytest.mark.parametrize("gap", MISSING, ids=repr)
@pytest.mark.parametrize("others", ["ab", (0, 1), (True, False)], ids=str)
def test_missing_labels_are_refused_with_their_first_row(gap, others):
    error = refusal(label_values, objects(others[0], others[1], gap, others[0], gap))
    assert error.row == 2
    assert str(error) == "every row needs a label; y[2] is missing. Drop those rows."


def test_missing_labels_among_floats():
    assert refusal(label_values, np.array([0.0, np.nan, np.nan])).row == 1


@pytest.mark.parametrize("bad", [0.5, np.inf, -np.inf, 1e300, 2.0**53 + 2])
def test_floats_that_are_no_labels(bad):
    for labels in (np.array([1.0, bad]), objects(1, bad)):
        error = refusal(label_values, labels)
        assert error.row == 1
        assert f"y[1]={bad:g}" in str(error)
        assert "swapped" in str(error)


@pytest.mark.parametrize("container", [[1], {"a": 1}, {1}, np.zeros(2)], ids=repr)
def test_containers_are_no_labels(container):
    assert "plain label" in str(refusal(label_values, objects("a", container)))


@pytest.mark.parametrize("dtype", ["c16", "M8[D]", "m8[s]", "i4,i4"])
def test_kinds_that_are_no_labels(dtype):
    assert "Convert the labels to text." in str(refusal(label_values, np.zeros(2, dtype)))


@pytest.mark.parametrize("value", [*MISSING, Decimal("sNaN")], ids=repr)
def test_is_missing(value):
    assert is_missing(value)


@pytest.mark.parametrize("value", [0, "", "nan", False, 0.0, ()], ids=repr)
def test_is_not_missing(value):
    assert not is_missing(value)


class Scalar:
    """An Arrow scalar, as far as labels are concerned."""

    def as_py(self):
        return "cat"


@pytest.mark.parametrize(
    ("label", "plain"),
    [
        (np.str_("cat"), "cat"),
        (np.int32(3), 3),
        (np.bool_(True), True),
        (2.0, 2),
        (np.float32(2), 2),
        (2.5, 2.5),
        (b"cat", "cat"),
        (Scalar(), "cat"),
        (("a", 1), ("a", 1)),
        (None, None),
    ],
)
def test_plain_label(label, plain):
    assert plain_label(label) == plain
    assert type(plain_label(label)) is type(plain)
