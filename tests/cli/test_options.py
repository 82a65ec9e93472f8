import shlex
import warnings

import pytest
import typer
from refusal import refusal
from toy import TOY_X, TOY_Y

from mcllo import MCLLOCalibrator, Predictions, assess
from mcllo._cli.app import command
from mcllo._cli.options import (
    FLAG_WORDS,
    FLAGS,
    as_json_text,
    check_alpha,
    check_model,
    check_order,
    notes,
    split_names,
)
from mcllo.exceptions import MclloWarning, Option, Phrase


def test_names_are_split_at_commas_outside_quotes():
    assert split_names(None) is None
    assert split_names("a, b") == ["a", "b"]
    assert split_names('"a,b",c') == ["a,b", "c"]


def test_json_is_strict_and_keeps_letters():
    assert as_json_text({"é": 1}) == '{\n "é": 1\n}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        as_json_text({"x": float("nan")})


@pytest.mark.parametrize("alpha", [0.0, 1.0, -1.0, 5.0])
def test_levels(alpha):
    with pytest.raises(typer.BadParameter, match="between 0 and 1"):
        check_alpha(alpha)
    check_alpha(0.05)


def test_a_model_is_never_written_over_the_data(tmp_path):
    data = tmp_path / "data.csv"
    data.write_text("x")
    with pytest.raises(typer.BadParameter, match="is the file with the data"):
        check_model(str(data), str(data))
    check_model("-", str(data))


def test_model_comes_before_file():
    with pytest.raises(typer.BadParameter, match="only one of MODEL and FILE"):
        check_order("-", "-")
    with pytest.raises(typer.BadParameter, match="mcllo apply MODEL FILE"):
        check_order("data.csv", "model.json")
    check_order("model.json", "data.csv")


def test_warnings_become_one_line_notes(capsys):
    phrase = Phrase("two\nlines, {}, pass {}.", "clip=3", Option("clip", 0.5))
    with notes():
        warnings.warn(MclloWarning(phrase), stacklevel=1)
        warnings.warn("two\nlines, pass clip=1e-6.", UserWarning, stacklevel=1)
    assert capsys.readouterr().err == (
        "mcllo: note: two lines, clip=3, pass --clip 0.5.\n"
        "mcllo: note: two lines, pass clip=1e-6.\n"
    )


@pytest.mark.parametrize(
    ("name", "value", "typed"),
    [
        ("normalize", True, "--normalize"),
        ("clip", ..., "--clip"),
        ("clip", float("nan"), "--clip nan"),
        ("clip", -1e-6, "--clip -1e-06"),
        ("baseline", "trcuk", "--baseline trcuk"),
        ("baseline", "a b", "--baseline 'a b'"),
        ("baseline", "it's", "--baseline 'it'\"'\"'s'"),
        ("baseline", 7, "--baseline 7"),
        ("classes", ["a", "b"], "--classes a,b"),
        ("classes", ["a, b", "c"], "--classes '\"a, b\",c'"),
        ("n_resamples", 0, "--draws 0"),
        ("a label of delta", "x", "a label of delta='x'"),
    ],
)
def test_arguments_become_options(name, value, typed):
    assert FLAG_WORDS.option(name, value) == typed


def test_a_list_of_classes_survives_the_shell():
    typed = shlex.split(FLAG_WORDS.option("classes", ["a, b", "it's", 'c "d"']))
    assert typed == ["--classes", '"a, b",it\'s,"c ""d"""']


def test_every_option_exists_in_some_verb():
    verbs = command().commands.values()
    known = {option for verb in verbs for parameter in verb.params for option in parameter.opts}
    assert set(FLAGS.values()) <= known


# what the library really raises
@pytest.mark.parametrize(
    ("call", "options", "words"),
    [
        (assess, {"baseline": "c"}, "--baseline c is not a class"),
        (assess, {"clip": 0.9}, "--clip must be a number in [0, 1/3); got --clip 0.9."),
        (assess, {"method": "magic"}, "--method must be"),
        (assess, {"statistic": "t"}, "--statistic must be"),
        (
            assess,
            {"statistic": "wald", "method": "exact"},
            "use --statistic lr or --statistic score",
        ),
        (assess, {"n_resamples": 0, "method": "exact"}, "--draws must be at least 1"),
        (assess, {"seed": -1, "method": "exact"}, "--seed must be a whole number >= 0; got -1."),
        (
            assess,
            {"sample_weight": [0.5] * 16, "method": "exact"},
            "the weight 0.5. Use --method chi2",
        ),
    ],
)
def test_real_messages_name_options(call, options, words):
    text = refusal(call, TOY_X, TOY_Y, **options).text(FLAG_WORDS)
    assert words in text
    assert "=" not in text.replace(">=", "")


@pytest.mark.parametrize(
    ("row", "options", "words"),
    [
        ([0.5, 0.49], {}, "pass --normalize."),
        ([5.0, 0.5], {}, "pass --logits."),
        ([1.0, 0.0], {"clip": 0}, "Leave --clip out or give a floor such as --clip 1e-6."),
    ],
)
def test_real_messages_about_rows(row, options, words):
    error = refusal(Predictions.from_arrays, [row], ["a"], classes=["a", "b"], **options)
    assert error.text(FLAG_WORDS).endswith(words)


def test_a_real_message_of_a_calibrator():
    error = refusal(MCLLOCalibrator(penalty=-1).fit, TOY_X, TOY_Y)
    words = "--penalty must be finite and not negative; got --penalty -1."
    assert error.text(FLAG_WORDS) == words
