"""Errors carry fields, and say the same in Python's words and in those of the command line."""

import copy
import inspect
import pickle

import pandas as pd
import pytest
from inputs import refusal

from mcllo import assess, exceptions, read_predictions
from mcllo.__main__ import run_command_line
from mcllo.exceptions import FileFormatError, InputError, MclloError, MclloWarning


def test_all_lists_every_exception_sorted():
    raised = [
        name
        for name, found in vars(exceptions).items()
        if inspect.isclass(found) and issubclass(found, BaseException)
    ]
    assert exceptions.__all__ == sorted(raised)


def test_each_class_has_one_of_the_two_bases():
    for name in exceptions.__all__:
        found = getattr(exceptions, name)
        base = MclloError if name.endswith("Error") else MclloWarning
        assert issubclass(found, base), name
        assert found.__doc__, name
        assert (
            str(found("one sentence with {braces}.")) == "one sentence with {braces}."
        ), name


def test_errors_of_data_are_value_errors_and_warnings_are_no_errors():
    # so that code which knows nothing of mcllo can catch them
    assert issubclass(InputError, ValueError)
    assert issubclass(FileFormatError, ValueError)
    assert issubclass(MclloWarning, UserWarning)
    assert not issubclass(MclloWarning, MclloError)


def test_a_plain_sentence_with_its_row():
    error = InputError("bad.", row=17)
    assert (str(error), error.row, InputError("bad.").row) == ("bad.", 17, None)
    with pytest.raises(TypeError):
        InputError("bad.", 3)


HALF = [[0.5, 0.5], [0.25, 0.75]]
NEGATIVE = "be finite and not negative"


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"probs": [[0.5, 0.5], [1.5, -0.5]]}, ("probs", "lie in [0, 1]", 1.5, 1, 0)),
        ({"probs": [[0.5, 0.5], [0.5, 0.25]]}, ("probs", "sum to 1", 0.75, 1, None)),
        ({"y": ["a", "row 1"]}, ("y", "be a class", "row 1", 1, None)),
        ({"baseline": "c"}, ("baseline", "be a class", "c", None, None)),
        ({"sample_weight": [1.0, -2.0]}, ("sample_weight", NEGATIVE, -2.0, 1, None)),
        ({"clip": 0.5}, ("clip", "be a number in [0, 1/2)", 0.5, None, None)),
    ],
)
def test_fields(changes, fields):
    found = refusal(
        assess, **{"probs": HALF, "y": ["a", "b"], "classes": ["a", "b"], **changes}
    )
    # worker processes send exceptions as copies
    for error in (found, copy.copy(found), pickle.loads(pickle.dumps(found))):
        assert str(error) == str(found)
        assert (
            error.argument,
            error.rule,
            error.value,
            error.row,
            error.column,
        ) == fields


@pytest.mark.parametrize(
    ("probs", "y", "words"),
    [
        ([[0.5, 0.5], [1.5, -0.5]], ["a", "b"], "got probs[101, 0]=1.5."),
        ([[0.5, 0.5], [0.5, 0.25]], ["a", "b"], "; row 101 sums to 0.75."),
        (HALF, ["a", None], "; y[101] is missing."),
        (HALF, ["a", "row 1"], "y contains 'row 1' (row 101), which"),
    ],
)
def test_the_row_of_a_block_becomes_the_row_of_the_whole(probs, y, words):
    error = refusal(assess, probs, y, classes=["a", "b"]).moved(100)
    assert words in str(error)
    assert error.row == 101


def test_a_remedy_is_a_field():
    error = refusal(assess, [[0.5, 0.5], [0.5, 0.49]], [0, 1])
    assert error.remedy == "For rounded files pass {normalize:True}."
    assert str(error).endswith(
        "; row 1 sums to 0.99. For rounded files pass normalize=True."
    )
    other = error.with_remedy("Call it {name!r}, not {clip:0.5}.", name="{row}")
    assert str(other).endswith("sums to 0.99. Call it '{row}', not clip=0.5.")
    assert other.row == error.row == 1


def said(capsys, *arguments, code=2):
    """Return what a command line prints."""
    capsys.readouterr()
    assert run_command_line([str(word) for word in arguments]) == code
    out, err = capsys.readouterr()
    assert (out == "", err == "") == (code == 2, code != 2)
    return out + err


ROWS = "".join(f"0.{k},0.{10 - k},a\n" for k in range(1, 7))


# names that look like what errors say about arguments and places; more are in texts/errors.txt
@pytest.mark.parametrize(
    ("name", "label"),
    [("{row}.csv", "probs must {value}"), ("seed=1 row 6.csv", "y[6]=1")],
)
def test_files_and_labels_may_have_any_name(tmp_path, capsys, monkeypatch, name, label):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(f"a,row 6,y\n{ROWS}0.5,0.5,{label}x\n")
    assert said(capsys, "assess", name, "--label", "y") == (
        f"mcllo: column 'y' contains '{label}x' (line 8 of {name}), which is not a class; "
        "classes are ['a', 'row 6']. Correct that label, or add a column for it.\n"
    )
    (tmp_path / name).write_text(f"a,{label},y\n{ROWS}0.5,0.55,a\n")
    assert said(capsys, "assess", name, "--label", "y") == (
        f"mcllo: each row of probabilities must sum to 1 (tolerance 1e-06); line 8 of {name} sums "
        "to 1.05. For rounded files pass --normalize.\n"
    )
    message = str(refusal(read_predictions, name, label="y"))
    assert f"line 8 of {name} sums to 1.05. For rounded files pass normalize" in message


@pytest.mark.parametrize(
    "name", ["{", "}", "{}", "{0}", "{row}", "{clip:0}", "{found.value}"]
)
@pytest.mark.parametrize(
    "changes",
    [
        {"y": ["{name}", "b"], "classes": ["a", "b"]},
        {"classes": ["{name}", "b"]},
        {"classes": ["{name}", "{name}"]},
        {"baseline": "{name}"},
        {"probs": {"p_{name}": [0.5, 0.5], "p_b": [0.5, 0.5]}, "y": ["{name}", "b"]},
        {"probs": {"{name}": ["x", "y"], "b": [0.5, 0.5]}},
        {"probs": {"{name}": [7.0, 7.0], "a": [0.5, 0.5], "b": [0.5, 0.5]}},
        {"probs": {"a": [0.5, 0.5], "b": [0.5, 0.5]}, "y": "{name}"},
        {"by": ["{name}", "{name}"]},
        {"weight_kind": "{name}", "sample_weight": [1.0, 2.0]},
    ],
)
def test_names_in_braces_are_data(name, changes):
    def named(value):
        if isinstance(value, str):
            return value.replace("{name}", name)
        if isinstance(value, list):
            return [named(item) for item in value]
        return value

    changes = {key: named(value) for key, value in changes.items()}
    if isinstance(changes.get("probs"), dict):
        columns = {named(key): named(value) for key, value in changes["probs"].items()}
        changes["probs"] = pd.DataFrame(columns)
    error = refusal(assess, **{"probs": HALF, "y": ["a", "b"], **changes})
    assert "{argument}" not in str(error)
    assert error.argument == "by" or name in str(error)


def test_a_note_about_zeros_names_the_option(tmp_path, capsys):
    # groups leave out the sensitivity to zeros, so that the plain note is shown
    lines = [f"{k % 2},{1 - k % 2},a,g{k}" for k in range(4)] + [
        "0.40123,0.59877,clip=,h"
    ] * 4
    (tmp_path / "f.csv").write_text("\n".join(["a,clip=,y,g", *lines]) + "\n")
    options = ["--label", "y", "--groups", "g", "--seed", "0"]
    printed = said(capsys, "assess", tmp_path / "f.csv", *options, code=0)
    assert "Log odds against 'clip='" in printed
    assert "depend on this bound; choose it with --clip." in printed
