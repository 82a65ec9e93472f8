import numpy as np
import pytest
from refusal import refusal

from mcllo import Predictions
from mcllo._file_words import (
    Roles,
    among_first,
    in_file_words,
    label_hint,
    left_out_hint,
    prefix_hint,
    stray_hint,
    with_hint,
)
from mcllo.exceptions import InputError

ROLES = Roles(["p_cat", "p_dog"], "truth", "w")
PLACE = "line 4 of f.csv"
GOOD = [[0.5, 0.5], [0.25, 0.75], [0.5, 0.5]]


def with_row(*values):
    return np.array([[0.5, 0.5], [0.25, 0.75], values])


# every message of the validator that has a row, as it is raised
@pytest.mark.parametrize(
    ("probs", "y", "options", "words"),
    [
        (with_row(1.5, 0.5), "aab", {}, "got 1.5 in column 'p_cat', line 4 of f.csv. Divide"),
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
    ],
)
def test_rows_become_places(probs, y, options, words):
    if "classes" in options:
        options = {"classes": list(options["classes"])}
    error = refusal(Predictions.from_arrays, probs, list(y), **options)
    found = in_file_words(error, PLACE, ROLES)
    assert words in str(found)
    assert found.row == error.row == 2
    for word in ("probs", "y[", "sample_weight", "row 2"):
        assert word not in str(found)


def test_logits_too():
    error = refusal(Predictions.from_arrays, None, list("aab"), logits=with_row(np.nan, 0))
    assert "in column 'p_cat', line 4 of f.csv" in str(in_file_words(error, PLACE, ROLES))


def test_a_row_without_mention_gets_its_place():
    error = InputError("something is wrong.", row=2)
    assert str(in_file_words(error, PLACE, ROLES)) == f"something is wrong ({PLACE})."


def test_messages_without_a_row_keep_their_words():
    message = "baseline='x' is not a class; classes are ['row 2', 'y[2]']."
    assert str(in_file_words(InputError(message), "", ROLES)) == message


def test_names_may_hold_what_regular_expressions_mean():
    roles = Roles([r"\1", r"a\g<0>"], r"\d", None)
    error = InputError("probs must be finite; got probs[2, 1]=inf. Drop it.", row=2)
    text = str(in_file_words(error, r"line 4 of \2.csv", roles))
    assert text == (
        r"probabilities must be finite; got inf in column 'a\\g<0>', line 4 of \2.csv. Drop it."
    )


def test_a_hint_takes_the_place_of_the_remedy():
    assert with_hint("a must be b; got 0.5. Do this. Or that.", "Do better.") == (
        "a must be b; got 0.5. Do better."
    )
    assert with_hint("a must be b; got c.", "") == "a must be b; got c."


def test_strays_are_columns_that_no_label_names():
    columns, labels = ["id", "cat", "dog"], ["dog", "cat"]
    hint = "If 'id' is not a class, pass classes=['cat', 'dog']."
    assert stray_hint(columns, labels, "line 2 sums to 3") == hint
    assert stray_hint(columns, labels, "got 7 in column 'id'") == hint
    assert stray_hint(columns, labels, "got 7 in column 'cat'") == ""
    assert stray_hint(["cat", "dog"], labels, "line 2 sums to 3") == ""
    assert stray_hint(["id", "x"], labels, "line 2 sums to 3") == ""
    many = [str(k) for k in range(20)]
    assert stray_hint(["id", *many], many, "sums to 3") == (
        "If 'id' is not a class, choose the columns that are with classes=."
    )


def test_a_label_that_is_a_column_was_left_out():
    assert left_out_hint(["cat", "dog"], ["cat", "dog", "ship", "y"], ["dog", "ship"]) == (
        "Add 'ship', which is a label, to classes=."
    )
    assert left_out_hint(["cat", "dog"], ["cat", "dog", "y"], ["ship"]) == ""


@pytest.mark.parametrize(
    ("labels", "hint"),
    [
        (["0", "1"], "The labels are numbers and the columns names"),
        (["Cat", "dog"], "differ in upper and lower case"),
        (["cat", "lorry"], "Correct that label, or add a column for it."),
        (["cat", "dog"], "Correct that label, or add a column for it."),  # the wrong one is below
        ([], "Correct that label, or add a column for it."),
    ],
)
def test_labels_that_do_not_meet_their_columns(labels, hint):
    assert hint in label_hint(["cat", "dog"], labels)


def test_numbers_beside_numbered_columns_are_wrong_labels():
    assert label_hint(["0", "1"], ["0", "1", "7"]) == "Correct that label, or add a column for it."


def test_only_remedies_that_go_by_labels_say_how_many_rows():
    message = "each row must sum to 1; row 3 sums to 2. For rounded files pass normalize=True."
    assert among_first(message, 10) == message
    hinted = with_hint(message, stray_hint(["id", "a", "b"], ["a", "b"], message))
    assert among_first(hinted, 1000).endswith(
        "not a class, pass classes=['a', 'b'] (by the labels among the first 1,000 rows)."
    )


@pytest.mark.parametrize(
    ("columns", "labels", "hint"),
    [
        (["id", "p_cat", "p_dog"], ["cat", "dog"], "prefix='p_'"),
        (["p_cat", "p_dog", "p_ship"], ["cat", "dog"], "prefix='p_'"),
        (["prob a", "prob ab"], ["a", "ab"], "prefix='prob '"),
        (["cat_p", "dog_p"], ["cat", "dog"], "'_p' after them; rename them"),
        (["p_cat", "q_dog"], ["cat", "dog"], ""),
        (["cat", "dog"], ["cat", "dog"], ""),
        (["cat", "dog"], [], ""),
    ],
)
def test_prefix(columns, labels, hint):
    found = prefix_hint(columns, labels)
    assert hint in found
    assert bool(hint) == bool(found)
