import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inputs import CLASSES, csv_text, parquet_bytes, parquet_table, predictions, refusal

from mcllo import Predictions, read_predictions
from mcllo._apps.io.csv_text import clean_labels
from mcllo._apps.io.read_options import ColumnRoles
from mcllo._apps.io.table_rows import (
    extra_column_hint,
    label_mismatch_hint,
    left_out_class_hint,
    locate_in_file,
)
from mcllo._validation.frames import prefix_hint
from mcllo.exceptions import FileFormatError, InputError, ZeroProbabilityWarning

PROBS, LABELS = predictions()


@pytest.fixture
def write(tmp_path):
    def write(content):
        raw = content.encode() if isinstance(content, str) else parquet_bytes(content)
        (tmp_path / "f").write_bytes(raw)
        return tmp_path / "f"

    return write


def test_a_small_file_by_hand(write):
    p = read_predictions(write("a,b,y\n0.7,0.3,a\n0.2,0.8,b\n0.5,0.5,b\n"), label="y")
    assert p.classes == ("a", "b")
    assert p.baseline == "b"
    np.testing.assert_array_equal(p.probs, [[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]])
    np.testing.assert_array_equal(p.codes, [0, 1, 1])


@pytest.mark.parametrize(
    "content", [csv_text(), parquet_table()], ids=["csv", "parquet"]
)
def test_a_file_is_its_arrays(write, content):
    p = read_predictions(write(content), label="y", baseline="cat")
    q = Predictions.from_arrays(PROBS, LABELS, classes=CLASSES, baseline="cat")
    np.testing.assert_array_equal(p.probs, q.probs)
    np.testing.assert_array_equal(p.codes, q.codes)
    assert (p.classes, p.baseline) == (q.classes, q.baseline)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000))
def test_any_doubles_come_through_exactly(tmp_path_factory, seed):
    probs, y = predictions(5, seed)
    path = tmp_path_factory.mktemp("io") / "f.csv"
    path.write_text(csv_text(5, seed))
    p = read_predictions(path, label="y")
    q = Predictions.from_arrays(probs, y, classes=CLASSES)
    np.testing.assert_array_equal(p.probs, q.probs)


def test_classes_choose_columns_and_their_order(write):
    path = write("id,a,y,b\n1,0.7,a,0.3\n2,0.2,b,0.8\n")
    p = read_predictions(path, label="y", classes=["b", "a"])
    assert (p.classes, p.baseline) == (("b", "a"), "a")
    np.testing.assert_array_equal(p.probs, [[0.3, 0.7], [0.8, 0.2]])


def test_integer_classes(write):
    path = write("7,8,y\n0.7,0.3,7\n0.2,0.8,8\n")
    assert read_predictions(path, label="y", classes=[7, 8], baseline=7).baseline == "7"
    path = write(pa.table({"7": [0.7], "8": [0.3], "y": [8]}))
    assert read_predictions(path, label="y").classes == (7, 8)


def test_an_index_written_by_pandas_is_no_class(write):
    for header in (",a,b,y", "__index_level_0__,a,b,y"):
        path = write(f"{header}\n0,0.7,0.3,a\n1,0.2,0.8,b\n")
        assert read_predictions(path, label="y").classes == ("a", "b"), header
    # unless it is asked for
    path = write(",a,y\n0.3,0.7,a\n0.8,0.2,a\n")
    assert read_predictions(path, label="y", classes=["", "a"]).classes == ("", "a")


def test_a_prefix_chooses_columns_and_is_left_out(write):
    path = write("id,p_a,p_b,y\n5,0.7,0.3,a\n6,0.2,0.8,b\n")
    p = read_predictions(path, label="y", prefix="p_")
    assert p.classes == ("a", "b")
    q = read_predictions(path, label="y", prefix="p_", classes=["b", "a"], baseline="a")
    assert (q.classes, q.baseline) == (("b", "a"), "a")
    np.testing.assert_array_equal(p.probs[:, ::-1], q.probs)


def test_weights_logits_normalize_and_clip(write):
    p = read_predictions(
        write("a,b,y,w\n0.7,0.3,a,2\n0.2,0.8,b,0.5\n"), label="y", weight="w"
    )
    np.testing.assert_array_equal(p.sample_weight, [2.0, 0.5])
    assert p.classes == ("a", "b")
    p = read_predictions(write("a,b,y\n800,0,a\n1,3,b\n"), label="y", logits=True)
    np.testing.assert_array_equal(p.log_odds, [[800.0, -2.0]])
    path = write("a,b,y\n0.6,0.3,a\n0,1,b\n")
    p = read_predictions(path, label="y", normalize=True, clip=1e-3)
    np.testing.assert_allclose(p.probs, [[2 / 3, 1 / 3], [1e-3 / 1.001, 1 / 1.001]])
    with pytest.warns(ZeroProbabilityWarning):
        read_predictions(path, label="y", normalize=True)


# labels as people write them


def test_labels_are_read_as_they_are_meant():
    for labels, names, meant in (
        ([" cat", "dog ", "cat"], ["cat", "dog"], ["cat", "dog", "cat"]),
        (["  ", None], ["cat", "dog"], [None, None]),
        (["1.0", "2.", "1", "-3.00"], ["1", "2", "-3"], ["1", "2", "1", "-3"]),
        (["1.0", "1"], ["1.0", "1"], ["1.0", "1"]),  # both are classes
        (["1.5", "7.0"], ["1", "2"], ["1.5", "7.0"]),  # left for the validator
        ([" a", "a"], [" a", "a"], [" a", "a"]),
    ):
        assert clean_labels(labels, names) == meant, labels


def test_parquet_labels_stay_as_they_are(write):
    table = parquet_table(y=[f" {label}" for label in LABELS])
    with pytest.raises(InputError, match=r"column 'y' contains ' .*' \(row 0 of .*f\)"):
        read_predictions(write(table), label="y")


# errors, beside those of the command line in `tests/texts/errors.txt`


def test_errors_have_the_words_of_python(write):
    path = write("id,p_a,p_b,y\n1,0.7,0.3,a\n2,0.2,0.8,b\n")
    error = refusal(read_predictions, path, label="y")
    assert str(error).endswith("pass prefix='p_'.")
    assert "got 2 in column 'id', line 3 of " in str(error)
    assert error.row == 1  # of the table
    error = refusal(read_predictions, path, label="y", classes="ab")
    assert "must be a list of labels" in str(error)
    error = refusal(read_predictions, path, label="y", weight="y")
    assert "label=, weight=, groups=, by= and classes=" in str(error)


def test_errors_of_the_file_have_the_same_remedies(write):
    with pytest.raises(FileFormatError) as caught:
        read_predictions(write("name,a,b,y\nx,0.7,0.3,a\nx,0.2,0.8,b\n"), label="y")
    remedy = "If 'name' is not a class, pass classes=['a', 'b']."
    assert str(caught.value).endswith(f"line 2 has 'x'. {remedy}")
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


ROLES = ColumnRoles(["p_cat", "p_dog"], "truth", "w", "herd")
GOOD = [[0.5, 0.5], [0.25, 0.75], [0.5, 0.5]]


def in_file(error):
    return error.but(place=locate_in_file(error, "line 4 of f.csv", ROLES))


def with_row(*values):
    return np.array([[0.5, 0.5], [0.25, 0.75], values])


# of the messages of the validator that have a row, those that errors.txt does not show
@pytest.mark.parametrize(
    ("probs", "y", "options", "words"),
    [
        (
            with_row(0.5, -1e-9),
            "aab",
            {},
            "got -1e-09 in column 'p_dog', line 4 of f.csv.",
        ),
        (
            GOOD,
            [0, 1, 0.5],
            {},
            "column 'truth' must hold class labels; got 0.5 in column 'truth'",
        ),
        (
            GOOD,
            "aab",
            {"sample_weight": [1, 1, -2]},
            "got -2 in column 'w', line 4 of f.csv. Drop",
        ),
        (
            GOOD,
            "aab",
            {"groups": [1, 2, None]},
            "column 'herd' is empty in line 4 of f.csv. Drop",
        ),
        (
            None,
            "aab",
            {"logits": with_row(np.nan, 0)},
            "in column 'p_cat', line 4 of f.csv",
        ),
    ],
)
def test_rows_become_places(probs, y, options, words):
    error = refusal(Predictions.from_arrays, probs, list(y), **options)
    found = in_file(error)
    assert words in str(found)
    assert found.row == error.row == 2
    for word in ("probs", "y[", "sample_weight", "row 2"):
        assert word not in str(found)


def test_a_plain_sentence_gets_its_place_and_keeps_its_words():
    error = in_file(InputError("something is wrong with row 2.", row=2))
    assert str(error) == "line 4 of f.csv: something is wrong with row 2."
    message = "baseline='x' is not a class; classes are ['row 2', 'y[2]']."
    assert str(in_file(InputError(message))) == message


CLASS_HINT = "If 'id' is not a class, pass classes=['a', 'b']"
MANY = [str(k) for k in range(20)]


def test_data_checks():
    for hint, words in (
        (extra_column_hint(["id", "a", "b"], ["b", "a"], ["id", "a", "b"]), CLASS_HINT),
        (extra_column_hint(["id", "a", "b"], ["b", "a"], ["a"]), None),
        (extra_column_hint(["a", "b"], ["b", "a"], ["a", "b"]), None),
        (extra_column_hint(["id", "x"], ["b", "a"], ["id", "x"]), None),
        (
            extra_column_hint(["id", *MANY], MANY, ["id"]),
            "choose the columns that are with classes=",
        ),
        (left_out_class_hint(["a", "b"], ["a", "b", "y"], ["c"]), None),
        (label_mismatch_hint(["a", "b"], ["a", "c"]), None),
        (
            label_mismatch_hint(["a", "b"], ["a", "b"]),
            None,
        ),  # the wrong one is further below
        (label_mismatch_hint(["a", "b"], []), None),
        (label_mismatch_hint(["0", "1"], ["0", "1", "7"]), None),
        (prefix_hint(["p_cat", "p_dog", "p_ship"], ["cat", "dog"]), "prefix='p_'"),
        (prefix_hint(["prob a", "prob ab"], ["a", "ab"]), "prefix='prob '"),
        (
            prefix_hint(["cat_p", "dog_p"], ["cat", "dog"]),
            "'_p' after them; pass prefix='*_p'",
        ),
        (prefix_hint(["p_cat", "q_dog"], ["cat", "dog"]), None),
        (prefix_hint(["cat", "dog"], ["cat", "dog"]), None),
        (prefix_hint(["cat", "dog"], []), None),
    ):
        assert hint is None if words is None else words in str(hint), hint


def test_labels_from_1_and_columns_from_0_in_a_file():
    said = label_mismatch_hint(["0", "1", "2"], ["3", "1"]).template
    assert said.endswith("subtract 1 from each label")
    assert label_mismatch_hint(["0", "1", "2"], ["4", "1"]) is None
