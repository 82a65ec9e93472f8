"""Every broken input ends in exit code 2 with one helpful line; pipes and signals end cleanly."""

import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from inputs import CLASSES, csv_text, predictions, with_line
from pyarrow import parquet
from toy import TOY_X, TOY_Y

from mcllo.__main__ import run

GOOD = csv_text()
LABEL = ["--label", "y"]


@pytest.fixture(scope="module")
def model_text(tmp_path_factory):
    """Return the content of a model file fitted on GOOD."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "good.csv").write_text(GOOD)
    assert run(["fit", str(folder / "good.csv"), *LABEL, "-o", str(folder / "model.json")]) == 0
    return (folder / "model.json").read_text()


@pytest.fixture
def model(tmp_path, model_text):
    """Return a model file beside good.csv."""
    (tmp_path / "good.csv").write_text(GOOD)
    (tmp_path / "model.json").write_text(model_text)
    return tmp_path / "model.json"


def refused(capsys, arguments):
    """Return the one line that a refused command prints."""
    capsys.readouterr()
    assert run([str(word) for word in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert err.startswith("mcllo: ")
    assert "Traceback" not in err
    assert len(err) < 420
    return err


def parquet_bytes(columns):
    sink = io.BytesIO()
    parquet.write_table(pa.table(columns), sink)
    return sink.getvalue()


def parquet_columns(**changes):
    probs, y = predictions()
    return {**dict(zip(CLASSES, probs.T, strict=True)), "y": y, **changes}


ROUNDED = with_line(9, "0.33,0.33,0.33,cat")
BROKEN_FILES = {
    "empty": ("", "it is empty"),
    "short line": (with_line(5, "0.5,0.5,cat"), "line 5 has 3. Complete that line"),
    "row sum": (ROUNDED, "line 9 of FILE sums to 0.99. For rounded files pass --normalize."),
    "id column": (
        "id," + "1,".join(GOOD.splitlines(keepends=True)),
        "If 'id' is not a class, pass --classes cat,dog,truck.",
    ),
    "truncated parquet": (
        parquet_bytes(parquet_columns())[:-20],
        "the Parquet file is damaged or cut short",
    ),
    "damaged parquet": (parquet_bytes(parquet_columns()).replace(b"cat", b"\xff\xff\xff"), "FILE"),
    "gzip of garbage": (b"\x1f\x8b\x08garbage garbage", "the gzip file is damaged or cut short"),
    "truncated gzip": (
        gzip.compress(GOOD.encode(), mtime=0)[:-12],
        "the gzip file is damaged or cut short",
    ),
    "gzip of parquet": (gzip.compress(parquet_bytes(parquet_columns())), "FILE"),
}
"""Beside those of `tests/texts/errors.txt`: what other packages say is part of these lines."""


def written(folder, kind):
    """Write a broken file and return its path."""
    content = BROKEN_FILES[kind][0]
    path = folder / "f.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("kind", BROKEN_FILES)
def test_broken_files_are_refused_with_one_helpful_line(tmp_path, capsys, kind):
    file = written(tmp_path, kind)
    line = refused(capsys, ["assess", file, *LABEL]).replace(str(file), "FILE")
    assert BROKEN_FILES[kind][1] in line
    assert re.search("FILE|column|line", line)


@pytest.mark.parametrize(
    "kind", ["empty", "short line", "row sum", "truncated parquet", "id column"]
)
def test_fit_refuses_them_too_and_writes_nothing(tmp_path, capsys, kind):
    file = written(tmp_path, kind)
    line = refused(capsys, ["fit", file, *LABEL, "-o", tmp_path / "model.json"])
    assert BROKEN_FILES[kind][1] in line.replace(str(file), "FILE")
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("kind", ["empty", "row sum", "short line", "truncated gzip"])
def test_broken_standard_input_is_called_so(monkeypatch, capsys, kind):
    content = BROKEN_FILES[kind][0]
    raw = content.encode() if isinstance(content, str) else content
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
    line = refused(capsys, ["assess", "-", *LABEL])
    assert BROKEN_FILES[kind][1].replace("FILE", "standard input") in line
    assert "standard input" in line


@pytest.mark.parametrize("n_batches", [1, 4])
def test_the_line_number_of_a_later_batch_is_the_files(
    tmp_path, model, capsys, monkeypatch, n_batches
):
    # a block of 1 kB holds some 15 of the 60 lines
    monkeypatch.setattr("mcllo._files.source.BLOCK", 4096 // n_batches)
    monkeypatch.setattr("mcllo._files.source.BYTES_PER_CELL", 1)
    lines = [
        "id,cat,dog,truck",
        *(f'"{i}\n",0.5,0.25,0.25' for i in range(100)),
        "x,0.5,0.5,0.5",
        "",
    ]
    (tmp_path / "f.csv").write_text("\n".join(lines))
    out = tmp_path / "out.csv"
    line = refused(capsys, ["apply", model, tmp_path / "f.csv", "-o", out])
    # a header, then 100 rows of two lines each
    assert f"line 202 of {tmp_path / 'f.csv'} sums to 1.5." in line
    assert not out.exists()
    lines[-2] = "x,0.5,a,0.25"
    (tmp_path / "f.csv").write_text("\n".join(lines))
    line = refused(capsys, ["apply", model, tmp_path / "f.csv", "-o", out])
    assert "column 'dog' must hold numbers; line 202 has 'a'" in line


def test_the_row_of_a_later_parquet_batch_is_the_files(tmp_path, model, capsys, monkeypatch):
    monkeypatch.setattr("mcllo._files.source.BATCH_ROWS", 7)
    bad = np.array([0.5] * 40 + [0.7] + [0.5] * 19)
    columns = parquet_columns(cat=bad, dog=np.full(60, 0.25), truck=np.full(60, 0.25))
    (tmp_path / "f.parquet").write_bytes(parquet_bytes(columns))
    line = refused(capsys, ["apply", model, tmp_path / "f.parquet", "-o", tmp_path / "out.csv"])
    assert f"row 40 of {tmp_path / 'f.parquet'} sums to 1.2." in line


@pytest.mark.parametrize("option", ["--alpha", "--seed"])
def test_options_that_are_no_numbers(tmp_path, model, capsys, option):
    line = refused(capsys, ["assess", tmp_path / "good.csv", *LABEL, option, "one"])
    assert f"Invalid value for '{option}'" in line


def damaged(**changes):
    """Return a function that changes a model's content; "state.x" reaches into the state."""

    def change(content):
        for key, value in changes.items():
            target = content["state"] if key.startswith("state_") else content
            target[key.removeprefix("state_")] = value
        return json.dumps(content)

    return change


BROKEN_MODELS = {
    "empty": (lambda content: "", "it is not JSON"),
    "half a file": (lambda content: json.dumps(content)[:200], "it is not JSON"),
    "binary": (lambda content: "\udcff\udcfe", "it is not JSON"),
    "another JSON": (lambda content: '{"a": 1}', "must be a calibrator saved by mcllo"),
    "a list": (lambda content: "[1, 2]", "must be a calibrator saved by mcllo"),
    "nested without end": (lambda content: "[" * 100_000, "it is not JSON"),
    "another format": (damaged(format="other calibrator"), "must be a calibrator saved by mcllo"),
    "a later version": (damaged(format_version=99), "format version 1; it has 99. Use the version"),
    "unknown method": (damaged(method="magic"), "holds the method 'magic', which this version"),
    "method is a list": (damaged(method=["mcllo"]), "holds the method ['mcllo']"),
    "no state": (damaged(state={}), "is damaged: KeyError"),
    "state is a number": (damaged(state=3), "is damaged"),
    "unknown parameter": (damaged(params={"speed": 3}), "is damaged: TypeError"),
    "too few numbers": (damaged(state_tau=[0.1] * 5), "is damaged"),
    "words for numbers": (damaged(state_tau=["a", "b"]), "is damaged"),
    "NaN": (damaged(state_gamma=[float("nan"), 1.0]), "is damaged"),
    "another baseline": (damaged(state_baseline="ship"), "is damaged"),
    "classes missing": (damaged(classes=["cat"]), "is damaged"),
    "classes twice": (damaged(classes=["cat", "cat", "truck"]), "is damaged"),
}


@pytest.mark.parametrize("kind", BROKEN_MODELS)
def test_broken_models_are_refused_with_one_helpful_line(tmp_path, model, capsys, kind):
    change, phrase = BROKEN_MODELS[kind]
    text = change(json.loads(model.read_text()))
    model.write_bytes(text.encode("utf-8", "surrogateescape"))
    line = refused(capsys, ["apply", model, tmp_path / "good.csv", "-o", tmp_path / "out.csv"])
    assert phrase in line
    assert str(model) in line
    assert not (tmp_path / "out.csv").exists()


def test_a_mistake_of_ours_shows_its_traceback_and_is_no_verdict(
    tmp_path, model, capsys, monkeypatch
):
    def broken(*args, **kwargs):
        raise ZeroDivisionError("our fault")

    monkeypatch.setattr("mcllo._cli.app.assess_file", broken)
    assert run(["assess", str(tmp_path / "good.csv"), *LABEL]) == 3
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert "ZeroDivisionError: our fault" in err
    assert err.endswith("mcllo: this is a mistake in mcllo, not in your input. Please report it.\n")


def test_an_error_of_the_system_is_one_line(tmp_path, model, capsys, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device", str(tmp_path / "m.json"))

    monkeypatch.setattr("mcllo._ground.files.os.replace", full)
    good, out = str(tmp_path / "good.csv"), str(tmp_path / "m.json")
    assert run(["fit", good, *LABEL, "-o", out]) == 2
    assert capsys.readouterr().err == f"mcllo: {out}: No space left on device\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["good.csv", "model.json"]


def test_interrupting_ends_with_130(tmp_path, model, capsys, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("mcllo._cli.app.assess_file", interrupted)
    assert run(["assess", str(tmp_path / "good.csv"), *LABEL]) == 130
    assert capsys.readouterr().err.split() == ["mcllo:", "interrupted"]


def mcllo(*arguments, **options):
    """Run the program in a process of its own."""
    command = [sys.executable, "-m", "mcllo", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, timeout=60, check=False, **options)


def test_a_process_reads_standard_input_and_writes_standard_output(tmp_path, model):
    done = mcllo("apply", model, "-", input=GOOD.encode())
    assert done.returncode == 0
    assert done.stderr == b""
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "cat,dog,truck,y"
    assert [line.rsplit(",", 1)[1] for line in lines[1:]] == predictions()[1]


def test_a_process_ends_with_2_and_one_line(tmp_path):
    (tmp_path / "f.csv").write_text(ROUNDED)
    done = mcllo(
        "assess", tmp_path / "f.csv", *LABEL, env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.decode().count("\n") == 1


def test_a_reader_that_goes_away_is_no_error_of_ours(tmp_path, model):
    rows = GOOD.split("\n", 1)
    (tmp_path / "long.csv").write_text(rows[0] + "\n" + rows[1] * 200)  # more than a pipe holds
    command = [sys.executable, "-m", "mcllo", "apply", str(model), str(tmp_path / "long.csv")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"cat,dog,truck,y\n"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 141


SLOW_APPLY = """
import sys, time
import mcllo._blocks.apply as streaming

def slowly(*args):
    print("ready", flush=True)
    time.sleep(60)

streaming._predict = slowly
from mcllo.__main__ import main
main()
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_the_old_file_and_nothing_else(tmp_path, model, number, code):
    out = tmp_path / "out.csv"
    out.write_text("old")
    command = [sys.executable, "-c", SLOW_APPLY, "apply", model, tmp_path / "good.csv", "-o", out]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        assert len(list(tmp_path.glob(".out.csv.*.tmp"))) == 1
        process.send_signal(number)
        err = process.stderr.read().decode()
        assert process.wait(60) == code
    assert "Traceback" not in err
    assert out.read_text() == "old"
    assert {path.name for path in tmp_path.iterdir()} == {"good.csv", "model.json", "out.csv"}


def test_blas_starts_no_threads_unless_told(monkeypatch):
    program, environment = sys.modules["mcllo.__main__"], {"MKL_NUM_THREADS": "3"}
    monkeypatch.setattr(program, "run", lambda arguments: 0)
    monkeypatch.setattr(signal, "signal", lambda *a: None)
    monkeypatch.setattr(os, "environ", environment)
    with pytest.raises(SystemExit):
        program.main()
    assert environment["OPENBLAS_NUM_THREADS"] == "1"
    assert environment["MKL_NUM_THREADS"] == "3"


def test_numpy_is_loaded_after_its_threads_are_set():
    code = "import sys, mcllo.__main__; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def write(path, n, seed):
    rng = np.random.default_rng(seed)
    honest = rng.dirichlet([1.0, 1.0, 1.0], size=n)
    y = (rng.random((n, 1)) > honest.cumsum(axis=1)[:, :-1]).sum(axis=1)
    probs = honest**2 / (honest**2).sum(axis=1, keepdims=True)
    lines = ["id,ant,bee,cat,y"]
    names = ("ant", "bee", "cat")
    for i, (row, code) in enumerate(zip(probs, y, strict=True)):
        lines.append(f"{i}," + ",".join(repr(float(v)) for v in row) + f",{names[code]}")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture
def files(tmp_path):
    return write(tmp_path / "train.csv", 300, 0), write(tmp_path / "holdout.csv", 200, 1)


OPTIONS = ["--label", "y", "--classes", "ant,bee,cat", "--seed", "0"]


def test_json_rows(files, capsys):
    assert run(["compare", *files, *OPTIONS, "--methods", "mcllo,histogram", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [row["method"] for row in content["rows"]] == [
        "uncalibrated_train",
        "uncalibrated",
        "mcllo",
        "histogram",
    ]
    keys = {"n", "pvalue", "pvalue_corrected", "ece", "accuracy", "label_change", "log_loss"}
    assert keys | {"brier"} <= set(content["rows"][2])
    assert content["skipped"] == {}


def test_all_methods_and_what_is_skipped(files, capsys):
    assert run(["compare", *files, *OPTIONS, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert set(content["skipped"]) == {"vector", "matrix"}
    assert {"auto", "temperature", "xu_davoine", "dirichlet", "isotonic", "beta"} <= {
        row["method"] for row in content["rows"]
    }


def test_text_and_cross_validation(files, capsys):
    assert run(["compare", files[0], "--cv", "4", *OPTIONS, "--methods", "temperature"]) == 0
    text = capsys.readouterr().out
    assert "cross-validated" in text
    assert "temperature" in text
    assert "* best value" in text
    assert "Recommended: temperature, which has the lowest log loss." in text
    assert "Its cross-validated log loss, 0." in " ".join(text.split())


def test_the_recommendation_is_in_the_json(files, capsys):
    assert run(["compare", *files, *OPTIONS, "--methods", "temperature,isotonic", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["recommendation"]
    assert found["method"] == "temperature"
    assert found["improves"] is True
    keys = {"method", "difference", "standard_error", "low", "high"}
    assert all(set(other) == keys for other in found["differences"])
    assert found["text"].startswith("Recommended: temperature")


@pytest.fixture
def file(tmp_path):
    lines = ["ant,bee,cat,y"]
    for row, code in zip(TOY_X, TOY_Y, strict=True):
        lines.append(",".join(map(str, row)) + f",{('ant', 'bee', 'cat')[code]}")
    path = tmp_path / "toy.csv"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.mark.parametrize("ending", ["html", "md", "json"])
def test_assess_writes_a_report(file, tmp_path, capsys, ending):
    out = tmp_path / f"report.{ending}"
    assert run(["assess", file, "--label", "y", "--seed", "0", "--html", str(out)]) == 0
    printed = capsys.readouterr()
    assert "report written" in printed.err
    assert "Calibration of 16 predictions" in printed.out
    assert "toy.csv" in out.read_text()


def test_compare_writes_a_report(file, tmp_path, capsys):
    out = tmp_path / "compare.html"
    arguments = ["compare", file, "--cv", "2", "--label", "y", "--methods", "temperature"]
    assert run([*arguments, "--seed", "0", "--html", str(out)]) == 0
    capsys.readouterr()
    assert "temperature" in out.read_text().lower()


def test_open_needs_a_report_and_opens_it(file, tmp_path, capsys, monkeypatch):
    opened = []
    monkeypatch.setattr("typer.launch", lambda path: opened.append(path))
    assert run(["assess", file, "--label", "y", "--open"]) == 2
    assert "--html OUT" in capsys.readouterr().err
    out = str(tmp_path / "r.html")
    assert run(["assess", file, "--label", "y", "--html", out, "--open"]) == 0
    assert opened == [out]


@pytest.mark.parametrize("name", ["r.pdf", "no/such/dir/r.html"])
def test_reports_that_cannot_be_written(file, tmp_path, capsys, name):
    assert run(["assess", file, "--label", "y", "--html", str(tmp_path / name)]) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_plot(file, tmp_path, capsys, ending):
    out = tmp_path / f"figure.{ending}"
    assert run(["plot", file, "--label", "y", "-o", str(out)]) == 0
    assert out.stat().st_size > 1000
    assert "reliability figure written" in capsys.readouterr().out
