"""Options in the words of the command line, and the verb with the most of its own."""

import json
import shlex
import warnings

import numpy as np
import pytest
from inputs import csv_text, refusal
from toy import TOY_X, TOY_Y
from typer.testing import CliRunner

from mcllo import assess, simulate
from mcllo._apps.cli.options import (
    FLAG_NAMES,
    FLAGS,
    Flag,
    as_json_text,
    check_argument_order,
    check_model_output,
    print_warnings_as_notes,
    split_names,
)
from mcllo._apps.cli.verbs import app, build_parser, parse_effect
from mcllo._apps.io.read import read_probs
from mcllo.exceptions import MclloWarning


def test_what_is_typed_and_printed():
    assert split_names(None) is None
    assert split_names("a, b") == ["a", "b"]
    assert split_names('"a,b",c') == ["a,b", "c"]
    assert parse_effect(["0.8"], "--gamma") == 0.8
    assert parse_effect(["a=b=2"], "--gamma") == {"a=b": 2.0}
    assert as_json_text({"é": 1}) == '{\n "é": 1\n}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        as_json_text({"x": float("nan")})


def test_a_model_may_go_to_standard_output_and_may_stand_before_its_file(tmp_path):
    check_model_output("-", str(tmp_path / "data.csv"))
    check_argument_order("model.json", "data.csv")


def test_warnings_become_one_line_notes(capsys):
    message, values = "two\nlines, {what}, pass {clip:0.5}.", {"what": "clip=3"}
    with print_warnings_as_notes():
        warnings.warn(MclloWarning(message, values=values), stacklevel=1)
        warnings.warn("two\nlines, pass clip=1e-6.", UserWarning, stacklevel=1)
    assert capsys.readouterr().err == (
        "mcllo: note: two lines, clip=3, pass --clip 0.5.\n"
        "mcllo: note: two lines, pass clip=1e-6.\n"
    )


def test_arguments_become_options_that_survive_the_shell():
    for name, value, typed in (
        ("normalize", True, "--normalize"),
        ("clip", ..., "--clip"),
        ("clip", -1e-6, "--clip -1e-06"),
        ("baseline", "it's", "--baseline 'it'\"'\"'s'"),
        ("baseline", 7, "--baseline 7"),
        ("classes", ["a, b", "c"], "--classes '\"a, b\",c'"),
        ("n_resamples", 0, "--draws 0"),
        ("a label of delta", "x", "a label of delta='x'"),
    ):
        assert Flag(name).given(value) == typed
    typed = shlex.split(Flag("classes").given(["a, b", "it's", 'c "d"']))
    assert typed == ["--classes", '"a, b",it\'s,"c ""d"""']


def test_every_option_exists_in_some_verb():
    verbs = list(build_parser().commands.values())
    verbs += [own for verb in verbs for own in getattr(verb, "commands", {}).values()]
    known = {
        option
        for verb in verbs
        for parameter in verb.params
        for option in parameter.opts
    }
    assert set(FLAGS.values()) <= known


def test_a_weight_is_named_without_its_row():
    error = refusal(assess, TOY_X, TOY_Y, sample_weight=[0.5] * 16)
    words = error.text(FLAG_NAMES)
    assert words.startswith(
        "--weight must hold whole numbers where weights count rows; got the "
    )
    assert (
        "the weight 0.5. If they make up for unequal chances of selection, pass "
        in words
    )
    assert "--weight-kind survey; if rows matter" in words


# mcllo power

RUN = CliRunner().invoke


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text(csv_text(80, header=("cat", "dog", "emu", "id")))
    return str(path)


def test_the_papers_design_as_json():
    flags = [
        "--n",
        "60",
        "--n",
        "90",
        "--delta1",
        "1.0",
        "--delta1",
        "1.4",
        "--n-classes",
        "3",
    ]
    done = RUN(app, ["power", *flags, "--reps", "20", "--seed", "5", "--json"])
    rows = json.loads(done.stdout)["rows"]
    study = simulate.power(
        n_samples=(60, 90), delta_1=(1.0, 1.4), n_classes=3, reps=20, seed=5
    )
    assert [(r["n"], r["delta_1"], r["power"]) for r in rows] == [
        (cell.n, cell.delta_1, cell.power) for cell in study.rows
    ]
    assert all(r["low"] <= r["power"] <= r["high"] for r in rows)


def test_planning_from_a_file(table):
    flags = ["--gamma", "0.3", "--n", "50", "--n", "400", "--reps", "20", "--seed", "1"]
    done = RUN(app, ["power", table, "--classes", "cat,dog,emu", *flags])
    assert done.exit_code == 0, done.output
    assert "Truth: gamma 0.30 (baseline emu)" in done.stdout
    assert "The smallest n above with an estimated power of 80 %: 400." in done.stdout
    # one class only
    flags = [
        "--delta",
        "dog=3",
        "--n",
        "50",
        "--reps",
        "10",
        "--baseline",
        "cat",
        "--json",
    ]
    done = RUN(app, ["power", table, "--classes", "cat,dog,emu", *flags])
    effect = json.loads(done.stdout)["effect"]
    assert effect["baseline"] == "cat"
    np.testing.assert_allclose(np.exp(effect["tau"]), [3.0, 1.0])


def test_one_number_or_one_for_each_class(table):
    flags = ["--gamma", "1", "--gamma", "cat=2", "--n", "5"]
    done = RUN(app, ["power", table, "--classes", "cat,dog,emu", *flags])
    assert done.exit_code == 2
    assert "one number for all classes" in " ".join(
        done.output.replace("│", " ").split()
    )


def test_bad_values_are_placed_in_the_file(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text("cat,dog\n0.5,0.5\n0.9,0.3\n")
    assert f"line 3 of {path}" in str(refusal(read_probs, path))


# whole percents


def whole_percents(seed):
    """Return a table of 1,000 calibrated predictions in whole percent, and labels at 0 %."""
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet([0.5, 0.5, 0.5], 1000)
    codes = (probs.cumsum(axis=1) < rng.random((1000, 1))).sum(axis=1).clip(0, 2)
    percents = np.round(100.0 * probs).astype(int)
    lines = ["a,b,c,y"]
    for row, code in zip(percents.tolist(), codes.tolist(), strict=True):
        lines.append(",".join([*map(str, row), "abc"[code]]))
    n_at_0 = int((percents[np.arange(1000), codes] == 0).sum())
    return "\n".join(lines) + "\n", n_at_0


def test_a_label_at_0_percent_does_not_refute_a_rounded_table(tmp_path):
    path, report = tmp_path / "percent.csv", tmp_path / "report.md"
    reading = ["--label", "y", "--percent", "--normalize", "--seed", "0"]
    n_with_labels_at_0 = 0
    n_rejected = 0
    for seed in range(15):
        text, n_at_0 = whole_percents(seed)
        path.write_text(text)
        done = RUN(app, ["assess", str(path), *reading, "--html", str(report)])
        assert done.exit_code == 0, done.output
        said = done.output + report.read_text()
        assert "refuted" not in said
        assert "Read this first" not in said
        n_with_labels_at_0 += n_at_0 > 0
        n_rejected += "Verdict: miscalibrated" in done.output
    assert n_with_labels_at_0 >= 5  # what makes this a test
    # calibrated: of 15 tests at 5 % five and more reject once in 1,600 (binomial)
    assert n_rejected <= 4
