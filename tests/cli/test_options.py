import shlex

import pytest
import typer
from refusal import refusal
from toy import TOY_X, TOY_Y

from mcllo import MCLLOCalibrator, Predictions, assess
from mcllo._cli.app import command
from mcllo._cli.options import (
    FLAGS,
    as_json_text,
    check_alpha,
    check_model,
    check_order,
    in_flags,
    notes,
    split_names,
)


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
    import warnings

    with notes():
        warnings.warn("two\nlines, pass clip=1e-6.", UserWarning, stacklevel=1)
    assert capsys.readouterr().err == "mcllo: note: two lines, pass --clip 1e-6.\n"


@pytest.mark.parametrize(
    ("message", "flags"),
    [
        ("For rounded files pass normalize=True.", "For rounded files pass --normalize."),
        ("choose it with clip=.", "choose it with --clip."),
        ("with classes=, or pass normalize=True.", "with --classes, or pass --normalize."),
        ("baseline='trcuk' is not a class", "--baseline trcuk is not a class"),
        ("baseline='a b' is not a class", "--baseline 'a b' is not a class"),
        ('baseline="it\'s" is not', "--baseline 'it'\"'\"'s' is not"),
        ("baseline=7 is not a class", "--baseline 7 is not a class"),
        ("pass classes=['a', 'b'].", "pass --classes a,b."),
        ("pass classes=['a, b', 'c'].", "pass --classes '\"a, b\",c'."),
        ("got alpha=1.5.", "got --alpha 1.5."),
        ("got clip=nan.", "got --clip nan."),
        ("got clip=-1e-06.", "got --clip -1e-06."),
        ("n_resamples must be at least 1; got 0.", "--draws must be at least 1; got 0."),
        ("seed must be a whole number >= 0 or a numpy Generator; got -1.",
         "--seed must be a whole number >= 0; got -1."),
        ("Use method='chi2'.", "Use --method chi2."),
        ("pass prefix='p_'.", "pass --prefix p_."),
        ("To recalibrate, use MCLLOCalibrator(penalty=1.0).",
         "To recalibrate, use mcllo fit --penalty 1."),
        ("the method must be chosen; alpha = 0.05, delta=1", "the method must be chosen; alpha = "
         "0.05, delta=1"),
    ],
)  # fmt: skip
def test_arguments_become_options(message, flags):
    assert in_flags(message) == flags


def test_a_list_of_classes_survives_the_shell():
    typed = shlex.split(in_flags("pass classes=['a, b', 'it''s', 'c \"d\"'] here"))
    assert typed == ["pass", "--classes", '"a, b",its,"c ""d"""', "here"]


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
    text = in_flags(str(refusal(call, TOY_X, TOY_Y, **options)))
    assert words in text
    assert "=" not in text.replace(">=", "")


def test_real_messages_about_rows():
    assert "pass --normalize." in in_flags(
        str(refusal(Predictions.from_arrays, [[0.5, 0.49]], ["a"], classes=["a", "b"]))
    )
    assert "pass --logits." in in_flags(
        str(refusal(Predictions.from_arrays, [[5.0, 0.5]], ["a"], classes=["a", "b"]))
    )
    error = refusal(Predictions.from_arrays, [[1.0, 0.0]], ["a"], classes=["a", "b"], clip=0)
    assert "Leave --clip out or give a floor such as --clip 1e-6." in in_flags(str(error))
    error = refusal(MCLLOCalibrator(penalty=-1).fit, TOY_X, TOY_Y)
    assert "--penalty must be finite and not negative; got --penalty -1." in in_flags(str(error))
