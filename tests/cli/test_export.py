"""`mcllo export`: what is written, and the exit code of the proof."""

import io
import re
import subprocess
import sys
from importlib import import_module

import data
import numpy as np
import pytest

import mcllo
from mcllo.__main__ import run_command_line

CLASSES = ["a", "b", "c"]


@pytest.fixture
def model(tmp_path):
    X, y = data.drawn(200, CLASSES, 3, power=2.0)
    mcllo.MCLLOCalibrator().fit(X, y).save(tmp_path / "m.json")
    return tmp_path / "m.json"


def with_package(to, name, more, package):
    """Return the case of a form whose proof needs another package."""
    return pytest.param(to, name, more, package, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("to", "name", "more", "package"),
    [
        ("python", "r.py", [], None),
        with_package(
            "onnx", "r.onnx", ["--dtype", "float32", "--input", "logits"], "onnxruntime"
        ),
        with_package(
            "sql", "r.sql", ["--dialect", "sqlite", "--keep", "id"], "sqlglot"
        ),
        with_package("sql", "r.sql", ["--dialect", "snowflake"], "sqlglot"),
        with_package("torch", "r.py", [], "torch"),
    ],
)
def test_written_and_proved(to, name, more, package, model, tmp_path, capsys):
    if package is not None:
        pytest.importorskip(package)
    out = tmp_path / name
    assert (
        run_command_line(
            ["export", str(model), "--to", to, "-o", str(out), "--check", *more]
        )
        == 0
    )
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"{out}: mcllo for 3 classes"
    found = float(re.search(r"largest difference (\S+) ", second)[1])
    assert "the same as predict_proba on 1,000 rows" in second
    assert found < (1e-6 if "float32" in more else 1e-12)
    assert out.stat().st_size > 500
    if "snowflake" in more:
        assert "sql (snowflake, run as sqlite)" in second


def test_a_difference_is_a_failure(model, monkeypatch, capsys):
    # a form that is wrong on purpose: its writer forgets the shifts
    targets = import_module("mcllo.export._targets")
    right = targets.TARGETS["python"]

    def wrong(program):
        for step in program.steps:
            if "shift" in step.parameters:
                step.parameters["shift"] = np.zeros_like(step.parameters["shift"])
        return right.write(program)

    broken = targets.ExportTarget("python", "wrong", (), wrong)
    monkeypatch.setitem(targets.TARGETS, "python", broken)
    assert run_command_line(["export", str(model), "--to", "python", "--check"]) == 1
    assert "NOT the same as predict_proba" in capsys.readouterr().out


def test_standard_output_holds_the_form_and_nothing_else(model, capsys):
    assert (
        run_command_line(["export", str(model), "--to", "python", "-o", "-", "--check"])
        == 0
    )
    out, err = capsys.readouterr()
    made = {}
    exec(out, made)
    assert made["CLASSES"] == CLASSES
    assert err.startswith("python: the same")


@pytest.mark.slow
def test_a_check_of_sql_says_nothing_else(model):
    # DuckDB lists the objects that are left when the process ends
    pytest.importorskip("duckdb")
    pytest.importorskip("sqlglot")
    command = [
        sys.executable,
        "-m",
        "mcllo",
        "export",
        str(model),
        "--to",
        "sql",
        "--check",
    ]
    done = subprocess.run(
        [*command, "--columns", "p1,p2,p3"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("sql (duckdb): the same")
    assert done.stderr == ""


def test_a_model_may_come_from_standard_input(model, tmp_path, monkeypatch):
    content = io.BytesIO(model.read_bytes())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(content))
    assert (
        run_command_line(["export", "-", "--to", "js", "-o", str(tmp_path / "r.js")])
        == 0
    )
    assert {path.name for path in tmp_path.iterdir()} == {"m.json", "r.js", "r.d.ts"}


def test_what_is_missing_is_named(model, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    assert run_command_line(["export", str(model), "--to", "sql", "-o", "-"]) == 2
    said = capsys.readouterr().err
    assert "pip install 'mcllo[sql]'" in said


@pytest.mark.parametrize("method", ["mcllo", "auto", "isotonic", "dirichlet"])
def test_a_model_of_logits_exports_a_form_of_logits(method, tmp_path, capsys):
    X, y = data.drawn(200, CLASSES, 3, power=2.0)
    logits = np.log(X) + 0.7
    table = tmp_path / "z.csv"
    lines = ["a,b,c,y"]
    for row, label in zip(logits.tolist(), y, strict=True):
        lines.append(",".join(map(repr, row)) + f",{label}")
    table.write_text("\n".join(lines) + "\n")
    saved, out = tmp_path / "z.json", tmp_path / "z.py"
    fitting = ["fit", str(table), "--label", "y", "--logits", "--method", method]
    assert run_command_line([*fitting, "-o", str(saved)]) == 0
    # no --input: the model file says what it was fitted to
    exporting = ["export", str(saved), "--to", "python", "--check"]
    assert run_command_line([*exporting, "-o", str(out)]) == 0
    assert "the same as predict_proba" in capsys.readouterr().out
    made = {}
    exec(out.read_text(), made)
    expected = mcllo.load_calibrator(saved).predict_proba(logits=logits)
    np.testing.assert_allclose(
        made["predict_proba"](logits.tolist()), expected, atol=1e-12
    )
