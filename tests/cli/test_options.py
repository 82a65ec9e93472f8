import shlex
import warnings

import pytest
from inputs import refusal
from toy import TOY_X, TOY_Y

from mcllo import assess
from mcllo._cli.app import command
from mcllo._cli.options import (
    FLAG_WORDS,
    FLAGS,
    as_json_text,
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


def test_a_model_may_go_to_standard_output_and_may_stand_before_its_file(tmp_path):
    check_model("-", str(tmp_path / "data.csv"))
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


def test_a_weight_is_named_without_its_row():
    error = refusal(assess, TOY_X, TOY_Y, sample_weight=[0.5] * 16, method="exact")
    assert error.text(FLAG_WORDS).endswith("; got the weight 0.5. Use --method chi2.")
