"""`python -m fuzz`: every target runs, a failure is found, kept and made again."""

import random
import subprocess
import sys
import threading
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
from fuzz import checks, seeds
from fuzz.__main__ import everything
from fuzz.case import CASE
from fuzz.engine import TARGETS, Runner, target
from fuzz.files import CORPUS

from mcllo import Predictions

ROOT = Path(__file__).resolve().parents[1]
FEW = {"names": 2, "figures": 2, "command": 6}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TARGETS)
def test_every_target_makes_attempts_and_none_fails(name):
    once, rng, before = target(name), random.Random(1), CASE.attempts
    for _ in range(FEW.get(name, 25)):
        once(rng.randbytes(4096))
    assert CASE.attempts > before


def test_a_failure_is_counted_once_for_each_line_kept_and_named(tmp_path, monkeypatch):
    def fails(content):
        CASE.begin(made__txt="what was made")
        raise ZeroDivisionError if content == b"0" else ValueError(content)

    runner = Runner("csv", tmp_path)
    monkeypatch.setattr(runner, "once", fails)
    for content in (b"0", b"1", b"0"):
        assert runner.attempt(content) is None
    runner.tell(force=True)
    assert (runner.n_failed, len(runner.failures)) == (3, 2)
    saved = next(iter(runner.failures.values()))
    assert (tmp_path / f"{saved}.bytes").read_bytes() == b"0"
    assert (tmp_path / f"{saved}.made.txt").read_text() == "what was made"
    assert "ZeroDivisionError" in (tmp_path / f"{saved}.error.txt").read_text()
    assert '"failed": 3' in (tmp_path / "counts.json").read_text()


def test_what_does_not_end_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr("fuzz.engine.PATIENCE", 0.05)
    runner = Runner("csv", tmp_path)

    def endless(content):
        while True:
            pass

    monkeypatch.setattr(runner, "once", endless)
    runner.attempt(b"")
    assert runner.n_failed == 1
    assert (
        "TooLongError"
        in (tmp_path / f"{next(iter(runner.failures.values()))}.error.txt").read_text()
    )


@pytest.mark.slow
def test_a_seed_gives_the_same_attempts_and_a_clean_run_ends_well():
    words = [
        "csv",
        "--attempts",
        "60",
        "--seed",
        "3",
        "--engine",
        "random",
        "--workers",
        "1",
    ]

    def run():
        command = [sys.executable, "-m", "fuzz", *words]
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines()[-2].split()[:5]

    first = run()
    assert first == run()
    assert first[0] == "csv"
    assert int(first[1]) > 0


@pytest.mark.parametrize(
    ("broken", "code", "last"),
    [((), 0, "3 targets, none failed"), (("csv", "model"), 1, "FAILED: csv, model")],
)
def test_targets_run_side_by_side_and_the_last_line_names_who_failed(
    broken, code, last, monkeypatch, capsys
):
    both = threading.Barrier(2)

    def watched(name, given, engine):
        if name != "model":
            both.wait(
                30
            )  # the first two wait for each other: one at a time would not end
        failures = {"ValueError x.py:1": f"{name}-1234"} if name in broken else {}
        counts = {"attempts": 3, "accepted": 2, "compared": 1}
        return counts | {"failed": len(failures), "failures": failures}

    monkeypatch.setattr("fuzz.__main__.watched", watched)
    given = Namespace(seconds=60.0, seed=4, attempts=0, workers=2, engine="random")
    assert everything(["csv", "names", "model"], given) == code
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "60 s each, 2 at a time, seed 4, inputs by random"
    assert lines[-1] == last
    rows = [line.split()[0] for line in lines[2:-1] if not line.startswith(" ")]
    assert rows == ["csv", "names", "model"]
    again = [line for line in lines if "again:" in line]
    assert again == [
        f"  again: python -m fuzz --replay fuzz/found/{name}-1234.bytes"
        for name in broken
    ]


def test_a_target_that_makes_no_attempt_failed(monkeypatch, capsys):
    nothing = {"attempts": 0, "accepted": 0, "compared": 0, "failed": 0, "failures": {}}
    monkeypatch.setattr("fuzz.__main__.watched", lambda *_: nothing)
    given = Namespace(seconds=1.0, seed=0, attempts=0, workers=1, engine="random")
    assert everything(["csv"], given) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "FAILED: csv"


def test_the_corpus_is_what_its_script_makes():
    files = {path.stem: path.read_bytes() for path in (CORPUS / "csv").iterdir()}
    assert files == {name: text.encode() for name, text in seeds.CSV.items()}
    assert {path.stem for path in (CORPUS / "parquet").iterdir()} == set(
        seeds.parquets()
    )
    methods = {path.stem for path in (CORPUS / "model").iterdir()}
    assert methods == {*seeds.CALIBRATORS, "all"}


# --- the properties can fail


def test_wrong_numbers_rows_and_labels_are_noticed():
    content = b"a,b,y\n0.25,0.75,b\n0.5,0.5,a\n"
    right = Predictions.from_arrays([[0.25, 0.75], [0.5, 0.5]], ["b", "a"])
    assert checks.same_as_csv(right, content, ",", "y")
    assert not checks.same_as_csv(right, content, ";", "y")  # nothing to compare with
    for probs, y, words in (
        ([[0.25, 0.75], [0.75, 0.25]], ["b", "a"], "other numbers"),
        ([[0.25, 0.75], [0.5, 0.5]], ["a", "b"], "label"),
        ([[0.25, 0.75], [0.5, 0.5], [0.5, 0.5]], ["b", "a", "a"], "3 rows of 2"),
    ):
        wrong = Predictions.from_arrays(probs, y)
        with pytest.raises(checks.Broken, match=words):
            checks.same_as_csv(wrong, content, ",", "y")


def test_what_are_no_probabilities_is_noticed():
    for table, words in (
        ([[float("nan"), 1.0]], "finite"),
        ([[-0.5, 1.5]], "negative"),
        ([[0.5, 0.6]], "sum"),
        ([[0.2, 0.3, 0.5]], "shape"),
    ):
        with pytest.raises(checks.Broken, match=words):
            checks.probabilities(np.array(table), 2)


def test_elements_attributes_and_control_characters_are_noticed():
    assert checks.tags('<p class="x">&lt;zzq&gt;</p>') == {"p", "p.class"}
    assert checks.tags('<p onzz="1"><zzq>') == {"p", "p.onzz", "zzq"}
    checks.printed("two\nlines")
    with pytest.raises(checks.Broken, match="control"):
        checks.printed("a\x1b[31m")
