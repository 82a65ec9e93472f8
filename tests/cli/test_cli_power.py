import json

import numpy as np
import pytest
from typer.testing import CliRunner

from mcllo import simulate
from mcllo._cli.app import app
from mcllo._cli.power import parsed_effect

RUN = CliRunner().invoke


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 1, 1], size=80).round(6)
    lines = [f"{i},{a},{b},{1 - a - b:.6f},cat" for i, (a, b, _) in enumerate(probs.tolist())]
    path = tmp_path / "p.csv"
    path.write_text("\n".join(["id,cat,dog,emu,y", *lines]) + "\n")
    return str(path)


def test_the_papers_design_as_json():
    flags = ["--n", "60", "--n", "90", "--delta1", "1.0", "--delta1", "1.4", "--n-classes", "3"]
    done = RUN(app, ["power", *flags, "--reps", "20", "--seed", "5", "--json"])
    rows = json.loads(done.stdout)["rows"]
    study = simulate.power(n_samples=(60, 90), delta_1=(1.0, 1.4), n_classes=3, reps=20, seed=5)
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


def test_one_class_only(table):
    flags = ["--delta", "dog=3", "--n", "50", "--reps", "10", "--baseline", "cat", "--json"]
    done = RUN(app, ["power", table, "--classes", "cat,dog,emu", *flags])
    effect = json.loads(done.stdout)["effect"]
    assert effect["baseline"] == "cat"
    np.testing.assert_allclose(np.exp(effect["tau"]), [3.0, 1.0])


def test_effects_are_parsed():
    assert parsed_effect(["0.8"], "--gamma") == 0.8
    assert parsed_effect(["a=b=2"], "--gamma") == {"a=b": 2.0}


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--gamma", "0.8"], "it needs a FILE"),
        (["p.csv", "--n", "5", "--gamma", "much"], "must be a number such as 0.8"),
        (["p.csv", "--n", "5", "--gamma", "1", "--gamma", "cat=2"], "one number for all classes"),
        (["p.csv", "--n", "5"], "say how wrong the predictions are"),
    ],
)
def test_refusals(table, flags, words, monkeypatch):
    given = [table if flag == "p.csv" else flag for flag in flags]
    if table in given:
        given += ["--classes", "cat,dog,emu"]
    done = RUN(app, ["power", *given])
    assert done.exit_code == 2
    assert words in " ".join(done.output.replace("│", " ").split())


def test_bad_values_are_placed_in_the_file(table, tmp_path):
    from mcllo._files.read import read_probs
    from mcllo.exceptions import InputError

    path = tmp_path / "bad.csv"
    path.write_text("cat,dog\n0.5,0.5\n0.9,0.3\n")
    with pytest.raises(InputError, match=r"line 3 of .*bad.csv"):
        read_probs(path)
