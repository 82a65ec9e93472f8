"""Names are text: no code, no commands of a terminal. Exit codes mean what --help says.

F1, F9, file names of F8, F12.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from calls import LABEL, refused, said, saved_model, shows_no_commands
from inputs import csv_text, parquet_table

from mcllo._utils.terminal import escape_control_characters

GOOD = csv_text()
CODE = [
    "clip=[a b].csv",
    "baseline=__import__('os').getpid().csv",
    "{0} {row} {x!r} {%s %(x)d.csv",
    "\\g<0> \\1 [a-.csv",
]
"""Names that once were evaluated, or would be taken for templates or patterns."""


@pytest.mark.parametrize("name", CODE)
def test_F1_a_file_name_is_never_evaluated(name, tmp_path, capsys):
    path = tmp_path / name
    assert f"{path} must exist; there is no such file" in refused(
        capsys, "assess", path, *LABEL
    )
    path.write_text(GOOD.replace("dog", "", 1))
    assert str(path) in refused(capsys, "assess", path, *LABEL)
    path.write_text(GOOD)
    assert said(capsys, "assess", path, *LABEL, "--seed", "1")[0] == 0


@pytest.mark.parametrize("name", ["x classes=[a b]", "a{row}{", "--clip 0", "a\tb"])
def test_F1_a_column_of_any_name_is_a_column(name, tmp_path, capsys):
    path = tmp_path / "f.csv"
    text = GOOD.replace("cat", name)
    path.write_text(text)
    code, out, err = said(capsys, "assess", path, *LABEL, "--seed", "1")
    assert (code, err) == (0, "")
    assert name.split()[0] in out
    # and in errors: a row that does not sum to 1, a label that is no class, a label column
    lines = text.splitlines()
    broken = {
        "sums to": [*lines[:4], "0.9,0.9,0.9,dog", *lines[5:]],
        "not a class": [*lines[:4], lines[4].rsplit(",", 1)[0] + ",fish", *lines[5:]],
    }
    for words, changed in broken.items():
        path.write_text("\n".join(changed) + "\n")
        assert words in refused(capsys, "assess", path, *LABEL)
    assert repr(name) in refused(capsys, "assess", path, "--label", name)


@pytest.mark.parametrize("shown", [False, True])
def test_F1_an_unexpected_error_is_70_with_one_line_and_how_to_report_it(
    shown, tmp_path, capsys, monkeypatch
):
    def fail(*args, **kwargs):
        raise ZeroDivisionError("our\n\x1b[31mfault")

    if shown:
        monkeypatch.setenv("MCLLO_TRACEBACK", "1")
    monkeypatch.setattr("mcllo._apps.streaming.assess_file.assess_file", fail)
    code, out, err = said(capsys, "assess", tmp_path / "f.csv", *LABEL)
    assert (code, out) == (70, "")
    *before, line = err.splitlines()
    assert line.startswith("mcllo: ZeroDivisionError: our")
    assert (
        "This is a mistake in mcllo, not in your input. Please report it as an issue"
        in line
    )
    assert "MCLLO_TRACEBACK=1" in line
    assert ("Traceback (most recent call last):" in before) == shown
    assert shown or not before
    assert shows_no_commands(err)


def test_too_little_memory_is_bad_input(tmp_path, capsys, monkeypatch):
    def fail(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr("mcllo._apps.streaming.assess_file.assess_file", fail)
    assert "not enough memory" in refused(capsys, "assess", tmp_path / "f.csv", *LABEL)


BELL, COLOUR, TITLE = "\x07", "\x1b[31m", "\x1b]0;mine\x07"
"""Commands of a terminal: ring, write in red, change the title of the window."""


def test_what_is_shown():
    assert escape_control_characters("größe\t1\n2") == "größe\t1\n2"
    assert escape_control_characters("\x1b[0m\x9b1m\x7f\r") == r"\x1b[0m\x9b1m\x7f\r"
    assert escape_control_characters("a\u202eb\u2066\u2028") == r"a\u202eb\u2066\u2028"
    assert escape_control_characters(os.fsdecode(b"\xff")) == r"\udcff"


@pytest.mark.parametrize("mark", [TITLE, "\x9b31m", "\u202e"])
def test_F9_a_file_name_sends_no_command(mark, tmp_path, capsys):
    path = tmp_path / f"a{mark}b.csv"
    for _ in range(2):
        err = refused(capsys, "assess", path, *LABEL)
        assert shows_no_commands(err)
        assert "\u202e" not in err
        assert escape_control_characters(mark) in err
        path.write_text(GOOD.replace("dog", "", 1))
    good, model = saved_model(tmp_path, capsys)
    out = tmp_path / f"out{mark}.csv"
    code, shown, _ = said(capsys, "apply", model, good, "-o", out)
    assert code == 0
    assert escape_control_characters(out.name) in shown
    assert out.exists()


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_F9_class_names_send_no_command(flags, tmp_path, capsys):
    path = tmp_path / "f.csv"
    path.write_text(GOOD.replace("cat", f"c{BELL}{COLOUR}t").replace("dog", "d\x9bg"))
    code, out, err = said(capsys, "assess", path, *LABEL, "--seed", "1", *flags)
    assert code == 0
    assert shows_no_commands(out + err)
    assert r"\x07" in out or r"\u0007" in out
    assert r"\x9b" in out
    code, out, err = said(
        capsys, "fit", path, *LABEL, "-o", tmp_path / "m.json", *flags
    )
    assert code == 0
    assert shows_no_commands(out + err)


def test_F9_a_model_sends_no_command(tmp_path, capsys):
    good, model = saved_model(tmp_path, capsys)
    content = json.loads(model.read_text())
    content |= {"format_version": 99, "mcllo_version": f"1.0{TITLE}"}
    model.write_text(json.dumps(content))
    err = refused(capsys, "apply", model, good, "-o", tmp_path / "out.csv")
    assert "(1.0\\x1b]0;mine\\x07)" in err
    content |= {"method": f"m{BELL}"}
    content |= {"format_version": 2}
    model.write_text(json.dumps(content))
    assert shows_no_commands(
        refused(capsys, "apply", model, good, "-o", tmp_path / "out.csv")
    )


@pytest.mark.slow
def test_F9_on_a_real_terminal(tmp_path):
    # click leaves commands in where standard output is a terminal
    pty = pytest.importorskip("pty")
    path = tmp_path / f"a{TITLE}.csv"
    path.write_text(GOOD.replace("cat", f"c{TITLE}t"))
    master, slave = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "mcllo",
        "assess",
        str(path),
        *LABEL,
        "--seed",
        "1",
    ]
    with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave) as process:
        os.close(slave)
        seen = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # Linux: nobody holds the other end
                break
            if not part:
                break
            seen += part
        assert process.wait(60) == 0
    os.close(master)
    assert b"]0;mine" in seen
    assert b"\x1b]0;" not in seen
    assert b"\x07" not in seen


def test_F9_F12_bytes_of_a_damaged_parquet_file_are_not_shown_and_never_read_as_numbers(
    tmp_path, capsys
):
    table = parquet_table()
    table = table.append_column(
        "note\x07", pa.array([f"\x1b[3{i % 8}m" for i in range(60)])
    )
    path, given = tmp_path / "f.parquet", tmp_path / "given.parquet"
    pq.write_table(table, given)
    _, model = saved_model(tmp_path, capsys)
    assert (
        said(capsys, "apply", model, given, "-o", path)[0] == 0
    )  # pages get checksums
    whole = path.read_bytes()
    flags = [*LABEL, "--classes", "cat,dog,truck", "--seed", "1"]
    code, right, _ = said(capsys, "assess", path, *flags)
    assert code == 0
    rng, codes = np.random.default_rng(0), set()
    for place in rng.choice(len(whole), 60, replace=False):
        damaged = bytearray(whole)
        damaged[place] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        code, out, err = said(capsys, "assess", path, *flags)
        codes.add(code)
        assert code in (0, 2), err
        assert shows_no_commands(out + err)
        assert code == 2 or out == right, place
    assert codes == {0, 2}


ODD = os.fsdecode(b"n\xff\xfe")


@pytest.mark.skipif(os.name == "nt", reason="names are UTF-16 there")
@pytest.mark.parametrize("kind", ["csv.gz", "parquet", "feather", "xlsx", "npy"])
def test_F8_a_file_name_that_is_no_utf8_is_read_and_written(kind, tmp_path, capsys):
    good, model = saved_model(tmp_path, capsys)
    path, folder = tmp_path / f"{ODD}.{kind}", tmp_path / ODD
    folder.mkdir()
    flags = ["--classes", "cat,dog,truck"]
    if kind == "npy":
        rows = [line.split(",")[:3] for line in good.read_text().splitlines()[1:]]
        np.save(folder / f"{ODD}.npy", np.array(rows, dtype=float))
        assert said(capsys, "apply", model, folder / f"{ODD}.npy", "-o", path)[0] == 0
        assert np.load(path).shape == (60, 3)
        return
    code, _, err = said(capsys, "apply", model, good, "-o", path)
    assert code == 0, err
    code, right, _ = said(capsys, "assess", path, *LABEL, *flags, "--seed", "1")
    assert code == 0
    inside = folder / path.name
    path.rename(inside)
    assert said(capsys, "assess", inside, *LABEL, *flags, "--seed", "1")[1] == right
    assert r"n\udcff\udcfe" in refused(capsys, "assess", path, *LABEL)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="names are UTF-16 there")
def test_F8_reports_models_and_figures_of_such_a_name(tmp_path, capsys):
    good, _ = saved_model(tmp_path, capsys)
    path = tmp_path / f"{ODD}.csv"
    good.rename(path)
    base = ["assess", path, *LABEL, "--seed", "1"]
    for ending in ("html", "md", "json"):
        out = tmp_path / f"{ODD}.{ending}"
        code, _, err = said(capsys, *base, "--html", out)
        assert code == 0, err
        assert "Input" in out.read_text(encoding="utf-8")
    model = tmp_path / f"{ODD}.model.json"
    assert said(capsys, "fit", path, *LABEL, "-o", model)[0] == 0
    assert said(capsys, "apply", model, path, "-o", tmp_path / f"{ODD}.parquet")[0] == 0
    assert (
        said(
            capsys, "plot", path, *LABEL, "-o", tmp_path / f"{ODD}.svg", "--seed", "1"
        )[0]
        == 0
    )
