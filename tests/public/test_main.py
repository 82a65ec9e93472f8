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
from inputs import case, csv_text, parquet_bytes, parquet_table, predictions, with_line

from mcllo.__main__ import run_command_line

GOOD = csv_text()
LABEL = ["--label", "y"]


@pytest.fixture(scope="module")
def model_text(tmp_path_factory):
    """Return the content of a model file fitted on GOOD."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "good.csv").write_text(GOOD)
    assert (
        run_command_line(
            [
                "fit",
                str(folder / "good.csv"),
                *LABEL,
                "--method",
                "mcllo",
                "-o",
                str(folder / "model.json"),
            ]
        )
        == 0
    )
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
    assert run_command_line([str(word) for word in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert err.startswith("mcllo: ")
    assert "Traceback" not in err
    assert len(err) < 420
    return err


PARQUET = parquet_bytes(parquet_table())
ROUNDED = with_line(9, "0.33,0.33,0.33,cat")
BROKEN_FILES = {
    "row sum": (
        ROUNDED.encode(),
        "line 9 of FILE sums to 0.99. For rounded files pass",
    ),
    "truncated parquet": (PARQUET[:-20], "the Parquet file is damaged or cut short"),
    "damaged parquet": (PARQUET.replace(b"cat", b"\xff\xff\xff"), "FILE"),
    "gzip of garbage": (
        b"\x1f\x8b\x08garbage garbage",
        "the gzip file is damaged or cut short",
    ),
    "truncated gzip": (
        gzip.compress(GOOD.encode(), mtime=0)[:-12],
        "the gzip file is damaged or cut short",
    ),
    "gzip of parquet": (gzip.compress(PARQUET), "FILE"),
}
"""Beside those of `tests/texts/errors.txt`: what other packages say is part of these lines."""


def test_broken_files_are_refused_with_one_helpful_line(tmp_path, capsys, monkeypatch):
    file = tmp_path / "f.csv"
    for kind, (raw, words) in BROKEN_FILES.items():
        file.write_bytes(raw)
        with case(kind):
            for more in (["assess"], ["fit", "-o", tmp_path / "model.json"]):
                line = refused(capsys, [*more, file, *LABEL]).replace(str(file), "FILE")
                assert words in line
                assert re.search("FILE|column|line", line)
            assert list(tmp_path.iterdir()) == [file]
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
            line = refused(capsys, ["assess", "-", *LABEL])
            assert words.replace("FILE", "standard input") in line


def test_the_line_number_of_a_later_batch_is_the_files(tmp_path, model, capsys):
    # a header, then 100 rows of two lines and 20 kB each: two blocks of a megabyte
    long = "x" * 20_000
    rows = ["id,cat,dog,truck", *(f'"{long}\n",0.5,0.25,0.25' for _ in range(100))]
    file, out = tmp_path / "f.csv", tmp_path / "out.csv"
    for last, words in (
        ("x,0.5,0.5,0.5", f"line 202 of {file} sums to 1.5."),
        ("x,0.5,a,0.25", "column 'dog' must hold numbers; line 202 has 'a'"),
    ):
        file.write_text("\n".join([*rows, last, ""]))
        assert words in refused(capsys, ["apply", model, file, "-o", out])
        assert not out.exists()


def test_the_row_of_a_later_parquet_batch_is_the_files(tmp_path, model, capsys):
    # two batches of 65,536 rows, the fault in the second
    cat = np.full(70_000, 0.5)
    cat[69_000] = 0.7
    quarter = np.full(70_000, 0.25)
    file = tmp_path / "f.parquet"
    file.write_bytes(
        parquet_bytes(pa.table({"cat": cat, "dog": quarter, "truck": quarter}))
    )
    line = refused(capsys, ["apply", model, file, "-o", tmp_path / "out.csv"])
    assert f"row 69000 of {file} sums to 1.2." in line


def test_options_that_are_no_numbers(tmp_path, model, capsys):
    line = refused(capsys, ["assess", tmp_path / "good.csv", *LABEL, "--seed", "one"])
    assert "Invalid value for '--seed'" in line


def damaged(**changes):
    """Return a function that changes a model's content; "state.x" reaches into the state.

    The checksum is dropped: what was changed is what is refused.
    """

    def change(content):
        content.pop("checksum", None)
        for key, value in changes.items():
            target = content["state"] if key.startswith("state_") else content
            target[key.removeprefix("state_")] = value
        return json.dumps(content)

    return change


BROKEN_MODELS = {
    "binary": (lambda content: "\udcff\udcfe", "it is not JSON"),
    "nested without end": (lambda content: "[" * 100_000, "it is not JSON"),
    "a list": (lambda content: "[1, 2]", "must be a calibrator saved by mcllo"),
    "unknown method": (
        damaged(method="magic"),
        "holds the method 'magic', which this version",
    ),
    "method is a list": (damaged(method=["mcllo"]), "holds the method ['mcllo']"),
    "no state": (damaged(state={}), "is damaged: KeyError"),
    "state is a number": (damaged(state=3), "is damaged"),
    "unknown parameter": (damaged(params={"speed": 3}), "is damaged: TypeError"),
    "words for numbers": (damaged(state_tau=["a", "b"]), "is damaged"),
}
"""Beside those of `tests/texts/errors.txt`; tests of calibrators have numbers that do not fit."""


def test_broken_models_are_refused_with_one_helpful_line(tmp_path, model, capsys):
    whole = model.read_text()
    for kind, (change, phrase) in BROKEN_MODELS.items():
        text = change(json.loads(whole))
        model.write_bytes(text.encode("utf-8", "surrogateescape"))
        with case(kind):
            words = ["apply", model, tmp_path / "good.csv", "-o", tmp_path / "out.csv"]
            line = refused(capsys, words)
            assert phrase in line
            assert str(model) in line
            assert not (tmp_path / "out.csv").exists()


@pytest.fixture
def failing(monkeypatch):
    """Return a function that puts an error in the place of a function."""

    def failing(name, error):
        def fail(*args, **kwargs):
            raise error

        monkeypatch.setattr(name, fail)

    return failing


def test_a_mistake_of_ours_is_one_line_and_no_verdict(tmp_path, model, capsys, failing):
    failing(
        "mcllo._apps.streaming.assess_file.assess_file", ZeroDivisionError("our fault")
    )
    assert run_command_line(["assess", str(tmp_path / "good.csv"), *LABEL]) == 70
    err = capsys.readouterr().err
    assert err.startswith(
        "mcllo: ZeroDivisionError: our fault (public/test_main.py, line "
    )
    assert "Please report it" in err
    assert err.count("\n") == 1


def test_an_error_of_the_system_is_one_line(tmp_path, model, capsys, failing):
    good, out = str(tmp_path / "good.csv"), str(tmp_path / "m.json")
    failing(
        "mcllo._utils.atomic_files.os.replace",
        OSError(28, "No space left on device", out),
    )
    assert run_command_line(["fit", good, *LABEL, "-o", out]) == 2
    err = capsys.readouterr().err
    assert err.startswith(
        f"mcllo: {out} cannot be written: No space left on device. Make room"
    )
    assert err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "good.csv",
        "model.json",
    ]


def test_interrupting_ends_with_130(tmp_path, model, capsys, failing):
    failing("mcllo._apps.streaming.assess_file.assess_file", KeyboardInterrupt())
    assert run_command_line(["assess", str(tmp_path / "good.csv"), *LABEL]) == 130
    assert capsys.readouterr().err.split() == ["mcllo:", "interrupted"]


def mcllo(*arguments, **options):
    """Run the program in a process of its own."""
    command = [sys.executable, "-m", "mcllo", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, timeout=60, check=False, **options
    )


@pytest.mark.slow
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
        "assess",
        tmp_path / "f.csv",
        *LABEL,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.decode().count("\n") == 1


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error_of_ours(tmp_path, model):
    rows = GOOD.split("\n", 1)
    (tmp_path / "long.csv").write_text(
        rows[0] + "\n" + rows[1] * 200
    )  # more than a pipe holds
    command = [
        sys.executable,
        "-m",
        "mcllo",
        "apply",
        str(model),
        str(tmp_path / "long.csv"),
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"cat,dog,truck,y\n"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 141


SLOW_APPLY = """
import sys, time
import mcllo._apps.streaming.apply as streaming

def slowly(*args):
    print("ready", flush=True)
    time.sleep(60)

streaming._predict_probabilities = slowly
from mcllo.__main__ import main
main()
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_a_signal_leaves_the_old_file_and_nothing_else(tmp_path, model, number, code):
    out = tmp_path / "out.csv"
    out.write_text("old")
    command = [
        sys.executable,
        "-c",
        SLOW_APPLY,
        "apply",
        model,
        tmp_path / "good.csv",
        "-o",
        out,
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"ready\n"
        assert len(list(tmp_path.glob(".out.csv.*.tmp"))) == 1
        process.send_signal(number)
        err = process.stderr.read().decode()
        assert process.wait(60) == code
    assert "Traceback" not in err
    assert out.read_text() == "old"
    assert {path.name for path in tmp_path.iterdir()} == {
        "good.csv",
        "model.json",
        "out.csv",
    }


THREADS = """
import os, sys
import mcllo.__main__
print("numpy" in sys.modules)
sys.argv = ["mcllo", "--version"]
try:
    mcllo.__main__.main()
finally:
    print(os.environ["OPENBLAS_NUM_THREADS"], os.environ["MKL_NUM_THREADS"])
"""


def test_blas_starts_no_threads_unless_told():
    # NumPy is loaded after its threads are set, or it would not obey
    given = {
        name: value for name, value in os.environ.items() if "NUM_THREADS" not in name
    }
    environment = {**given, "MKL_NUM_THREADS": "3"}
    command = [sys.executable, "-c", THREADS]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment
    )
    loaded, _, threads = done.stdout.splitlines()
    assert loaded == "False"
    assert threads == "1 3"
