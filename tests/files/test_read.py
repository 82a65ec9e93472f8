import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inputs import CLASSES, csv_text, parquet_bytes, parquet_table, predictions, refusal

from mcllo import Predictions, read_predictions
from mcllo._files.csv_text import meant_labels
from mcllo._files.manner import Roles
from mcllo._files.read import find_roles
from mcllo._files.source import Source
from mcllo._files.words import FileWords, explained, label_hint, left_out_hint, stray_hint
from mcllo._input.frames import prefix_hint
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


@pytest.mark.parametrize("content", [csv_text(), parquet_table()], ids=["csv", "parquet"])
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


@pytest.mark.parametrize("header", [",a,b,y", "__index_level_0__,a,b,y"])
def test_an_index_written_by_pandas_is_no_class(write, header):
    path = write(f"{header}\n0,0.7,0.3,a\n1,0.2,0.8,b\n")
    assert read_predictions(path, label="y").classes == ("a", "b")
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
    p = read_predictions(write("a,b,y,w\n0.7,0.3,a,2\n0.2,0.8,b,0.5\n"), label="y", weight="w")
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


@pytest.mark.parametrize(
    ("labels", "names", "meant"),
    [
        ([" cat", "dog ", "cat"], ["cat", "dog"], ["cat", "dog", "cat"]),
        (["  ", None], ["cat", "dog"], [None, None]),
        (["1.0", "2.", "1", "-3.00"], ["1", "2", "-3"], ["1", "2", "1", "-3"]),
        (["1.0", "1"], ["1.0", "1"], ["1.0", "1"]),  # both are classes
        (["1.5", "7.0"], ["1", "2"], ["1.5", "7.0"]),  # left for the validator
        ([" a", "a"], [" a", "a"], [" a", "a"]),
    ],
)
def test_labels_are_read_as_they_are_meant(labels, names, meant):
    assert meant_labels(labels, names) == meant


def test_parquet_labels_stay_as_they_are(write):
    table = parquet_table(y=[f" {label}" for label in LABELS])
    with pytest.raises(InputError, match=r"column 'y' contains ' .*' \(row 0 of .*f\)"):
        read_predictions(write(table), label="y")


# errors, beside those of the command line in `tests/texts/errors.txt`


TWO = "0.7,0.3,a\n0.2,0.8,b\n"
IDS = "1,0.7,0.3,a\n2,0.2,0.8,b\n"
CHOOSE = "is not a class, pass classes=['a', 'b']."


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (f"a,b,y\n{TWO}", {"classes": "ab"}, "must be a list of labels"),
        (f"a,b,y\n{TWO}", {"classes": []}, "got none. Leave classes= out."),
        (f"a,b,y\n{TWO}", {"weight": "y"}, "label=, weight=, groups=, by= and classes="),
        (f"id,a,b,y\n{IDS}", {}, f"If 'id' {CHOOSE}"),
        (f"p_a,p_b,y\n{TWO}", {}, "pass prefix='p_'."),
        (f"id,p_a,p_b,y\n{IDS}", {}, "pass prefix='p_'."),
        (
            "a,b,c,y\n0.6,0.3,0.1,a\n0.2,0.7,0.1,c\n",
            {"classes": ["a", "b"]},
            "Add 'c', which is a label, to classes=.",
        ),
    ],
)
def test_errors_name_the_line_the_column_and_the_remedy(write, text, options, words):
    assert words in str(refusal(read_predictions, write(text), **{"label": "y", **options}))


def test_errors_of_the_file_have_the_same_remedies(write):
    with pytest.raises(FileFormatError) as caught:
        read_predictions(write("name,a,b,y\nx,0.7,0.3,a\nx,0.2,0.8,b\n"), label="y")
    assert str(caught.value).endswith(f"line 2 has 'x'. If 'name' {CHOOSE}")
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_the_row_of_an_error_stays_a_row(write):
    path = write("a,b,y\n0.7,0.3,a\n0.7,0.2,a\n")
    assert refusal(read_predictions, path, label="y").row == 1


WORDS = FileWords("line 4 of f.csv", Roles(["p_cat", "p_dog"], "truth", "w", "herd"))
GOOD = [[0.5, 0.5], [0.25, 0.75], [0.5, 0.5]]


def with_row(*values):
    return np.array([[0.5, 0.5], [0.25, 0.75], values])


# every message of the validator that has a row, as it is raised
@pytest.mark.parametrize(
    ("probs", "y", "options", "words"),
    [
        (
            with_row(1.5, 0.5),
            "aab",
            {},
            "got 1.5 in column 'p_cat', line 4 of f.csv. For percentages pass",
        ),
        (with_row(0.5, -1e-9), "aab", {}, "got -1e-09 in column 'p_dog', line 4 of f.csv."),
        (with_row(0.5, np.nan), "aab", {}, "got an empty cell or NaN in column 'p_dog', line 4 of"),
        (with_row(np.inf, 0.5), "aab", {}, "got inf in column 'p_cat', line 4 of f.csv."),
        (with_row(0.5, 0.4), "aab", {}, "line 4 of f.csv sums to 0.9."),
        (with_row(1.0, 0.0), "aab", {"clip": 0}, "got 0 in column 'p_dog', line 4 of f.csv."),
        (GOOD, "abx", {"classes": "ab"}, "column 'truth' contains 'x' (line 4 of f.csv), which"),
        (GOOD, ["a", "b", None], {}, "a label; column 'truth' is empty in line 4 of f.csv. Drop"),
        (
            GOOD,
            [0, 1, 0.5],
            {},
            "column 'truth' must hold class labels; got 0.5 in column 'truth',",
        ),
        (GOOD, "aab", {"sample_weight": [1, 1, -2]}, "got -2 in column 'w', line 4 of f.csv. Drop"),
        (GOOD, "aab", {"groups": [1, 2, None]}, "column 'herd' is empty in line 4 of f.csv. Drop"),
        (None, "aab", {"logits": with_row(np.nan, 0)}, "in column 'p_cat', line 4 of f.csv"),
    ],
)
def test_rows_become_places(probs, y, options, words):
    if "classes" in options:
        options = {"classes": list(options["classes"])}
    error = refusal(Predictions.from_arrays, probs, list(y), **options)
    found = error.but(place=WORDS)
    assert words in str(found)
    assert found.row == error.row == 2
    for word in ("probs", "y[", "sample_weight", "row 2"):
        assert word not in str(found)


def test_a_plain_sentence_gets_its_place_and_keeps_its_words():
    error = InputError("something is wrong with row 2.", row=2).but(place=WORDS)
    assert str(error) == "line 4 of f.csv: something is wrong with row 2."
    message = "baseline='x' is not a class; classes are ['row 2', 'y[2]']."
    assert str(InputError(message).but(place=WORDS)) == message


CLASS_HINT = "If 'id' is not a class, pass classes=['a', 'b']"
MANY = [str(k) for k in range(20)]


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        (stray_hint(["id", "a", "b"], ["b", "a"], ["id", "a", "b"]), CLASS_HINT),
        (stray_hint(["id", "a", "b"], ["b", "a"], ["id"]), CLASS_HINT),
        (stray_hint(["id", "a", "b"], ["b", "a"], ["a"]), None),
        (stray_hint(["a", "b"], ["b", "a"], ["a", "b"]), None),
        (stray_hint(["id", "x"], ["b", "a"], ["id", "x"]), None),
        (stray_hint(["id", *MANY], MANY, ["id"]), "choose the columns that are with classes="),
        (left_out_hint(["a", "b"], ["a", "b", "c"], ["b", "c"]), "Add 'c', which is a label, to"),
        (left_out_hint(["a", "b"], ["a", "b", "y"], ["c"]), None),
        (label_hint(["a", "b"], ["0", "1"]), "labels are numbers and the columns names; write the"),
        (label_hint(["a", "b"], ["A", "b"]), "differ in upper and lower case; write them alike"),
        (label_hint(["a", "b"], ["a", "c"]), None),
        (label_hint(["a", "b"], ["a", "b"]), None),  # the wrong one is further below
        (label_hint(["a", "b"], []), None),
        (label_hint(["0", "1"], ["0", "1", "7"]), None),
        (prefix_hint(["id", "p_cat", "p_dog"], ["cat", "dog"]), "prefix='p_'"),
        (prefix_hint(["p_cat", "p_dog", "p_ship"], ["cat", "dog"]), "prefix='p_'"),
        (prefix_hint(["prob a", "prob ab"], ["a", "ab"]), "prefix='prob '"),
        (prefix_hint(["cat_p", "dog_p"], ["cat", "dog"]), "'_p' after them; rename them"),
        (prefix_hint(["p_cat", "q_dog"], ["cat", "dog"]), None),
        (prefix_hint(["cat", "dog"], ["cat", "dog"]), None),
        (prefix_hint(["cat", "dog"], []), None),
    ],
)
def test_hints(hint, words):
    assert hint is None if words is None else words in str(hint)


@pytest.mark.parametrize(
    ("text", "among"),
    [
        ("id,a,b,y\n9,0.7,0.3,a\n2,0.2,0.8,b\n3,0.2,0.8,b\n", True),
        ("a,b,y\n0.7,0.3,A\n0.2,0.8,B\n0.2,0.8,B\n", True),
        ("a,b,y\n0.7,0.3,c\n0.2,0.8,b\n0.2,0.8,b\n", False),
        ("a,b,y\n0.7,0.2,a\n0.2,0.8,b\n0.2,0.8,b\n", False),
    ],
)
def test_only_remedies_that_go_by_labels_say_how_many_rows(write, text, among):
    source = Source(write(text))
    roles = find_roles(source, "y", None, "")
    error = refusal(read_predictions, write(text), label="y")
    found = explained(error, source.first_rows(2), roles, "", True)
    assert str(found).endswith(" (by the labels among the first 2 rows).") == among
