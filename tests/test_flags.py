import shlex

import pytest
from refusal import refusal
from toy import TOY_X, TOY_Y

from mcllo import MCLLOCalibrator, Predictions, assess
from mcllo._flags import FLAGS, in_flags
from mcllo.cli import command


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
