"""The findings as they were found, by public names and the command line only.

So the same lines run on commit 8c4857c, where every test of this file fails with the finding
itself; README.md says how, and where F5, F6 and F7 are. More cases are in the other files.
"""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from calls import LABEL, program, redirected, refused, said, saved_model, shows_no_commands
from inputs import csv_text, parquet_table

from mcllo import MCLLOCalibrator, Predictions, read_predictions
from mcllo.exceptions import InputError, MclloError

posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX names, streams and signals")
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and its limits")
GATE = {0, 1, 3}
"""Codes by which `assess --gate` speaks of calibration."""


def test_F1_a_file_name_is_no_code(tmp_path):
    done = program("assess", "clip=[a b].csv", *LABEL, cwd=tmp_path)
    assert done.returncode not in GATE, done.stderr
    assert done.stderr.count(b"\n") == 1


def test_F1_a_column_name_is_no_code(tmp_path, capsys):
    path = tmp_path / "f.csv"
    path.write_text(csv_text().replace("cat", "x classes=[a b]"))
    assert said(capsys, "assess", path, *LABEL, "--seed", "1")[0] == 0


def test_exit_codes_tell_a_mistake_of_ours_from_a_verdict(tmp_path, capsys, monkeypatch):
    def fail(*args, **kwargs):
        raise ZeroDivisionError("our fault")

    (tmp_path / "f.csv").write_text(csv_text())
    monkeypatch.setattr(json, "dumps", fail)
    code, _, err = said(capsys, "assess", tmp_path / "f.csv", *LABEL, "--gate", "--json")
    assert "our fault" in err
    assert code not in GATE


PEAK = """
import sys
from mcllo.__main__ import run
code = run(sys.argv[1:])
with open("/proc/self/status") as file:
    (size,) = [line.split()[1] for line in file if line.startswith("VmHWM")]
print(code, size, file=sys.stderr)
"""
"""The peak of this program alone; `resource` would also count that of the process it came from."""


def peak(*arguments):
    """Run a verb in a process of its own; return its largest memory in MB."""
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    code, size = map(int, done.stderr.split()[-2:])
    assert code == 0, done.stderr
    return size / 1024


@linux
@pytest.mark.slow
def test_F2_apply_takes_no_more_memory_for_more_rows(tmp_path):
    # 800,000 rows of ten classes more are 79 MB of file, all of which were read ahead
    rng = np.random.default_rng(0)
    names, rows = list("abcdefghij"), rng.dirichlet(np.ones(10), 100_000)
    model, labels = tmp_path / "model.json", rng.choice(names, 2000)
    MCLLOCalibrator().fit(rows[:2000], labels).save(model)
    sizes = []
    for times in (1, 9):
        table = pa.table({name: np.tile(rows[:, j], times) for j, name in enumerate(names)})
        path = tmp_path / f"{times}.parquet"
        pq.write_table(table, path, row_group_size=20_000)
        sizes.append(peak("apply", model, path, "-o", tmp_path / "out.parquet"))
    assert sizes[1] - sizes[0] < 40.0, sizes


LIMITED = """
import resource, sys
import numpy, pyarrow.parquet, scipy.optimize
from mcllo.__main__ import run
with open("/proc/self/statm") as file:
    size = int(file.read().split()[0]) * resource.getpagesize() + (1 << 29)
resource.setrlimit(resource.RLIMIT_AS, (size, size))
sys.exit(run(sys.argv[1:]))
"""
"""A verb that may take half a GB more than its libraries."""


@linux
@pytest.mark.parametrize("kind", ["csv.gz", "parquet"])
def test_F4_a_small_file_of_very_many_rows_is_told_by_its_rows(kind, tmp_path):
    path = tmp_path / f"f.{kind}"
    if kind == "csv.gz":  # 20 million rows in 1 MB
        chunk = gzip.compress(b"0.5,0.5,a\n0.5,0.5,b\n" * 500_000, mtime=0)
        path.write_bytes(gzip.compress(b"a,b,y\n", mtime=0) + chunk * 20)
    else:
        half, y = pa.array(np.full(1_000_000, 0.5)), pa.array(["a", "b"] * 500_000)
        table = pa.table({"a": half, "b": half, "y": y.dictionary_encode()})
        with pq.ParquetWriter(path, table.schema) as writer:
            for _ in range(15):
                writer.write_table(table)
    assert path.stat().st_size < 1e7
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, "compare", path, *LABEL, "--seed", "1"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    line = done.stderr.splitlines()[-1]
    assert "rows" in line, line
    assert "damaged" not in line


def test_F8_one_huge_label_among_many():
    y = ["a", "b", "c"] * 33_334
    y[50_000] = "h" * 900_000  # as words of one length they would take 335 GiB
    with pytest.raises(InputError, match="50000") as caught:  # what is wrong, and not of its size
        Predictions.from_arrays(np.broadcast_to(1 / 3, (len(y), 3)), y, classes=["a", "b", "c"])
    assert len(str(caught.value)) < 300


def label_column(kind):
    """Return labels that are containers, or no UTF-8."""
    if kind == "list":
        return pa.array([[i % 3] for i in range(60)])
    if kind == "struct":
        return pa.array([{"a": i % 3} for i in range(60)])
    return pa.array([b"cat", b"d\xff\xfeg", *[b"dog"] * 58], pa.binary()).view(pa.string())


@pytest.mark.parametrize("kind", ["list", "struct", "no UTF-8"])
def test_F8_labels_of_parquet(kind, tmp_path, capsys):
    thirds = parquet_table().column("cat").to_pylist()
    table = parquet_table(cat=[0.9, *thirds[1:]], y=label_column(kind))  # and a row that is no 1
    pq.write_table(table, tmp_path / "f.parquet")
    refused(capsys, "assess", tmp_path / "f.parquet", *LABEL)


def test_F8_a_header_name_of_200_kB(tmp_path, capsys):
    path = tmp_path / "f.csv"
    path.write_text(csv_text().replace("cat", "c" * 200_000, 1))
    refused(capsys, "assess", path, *LABEL)


@pytest.mark.parametrize("flags", [["--n", str(10**30)], ["--n", "9", "--n-classes", str(10**30)]])
def test_F8_a_study_that_no_machine_holds(flags, capsys):
    refused(capsys, "power", *flags)


def test_F8_an_open_quote_in_a_packed_file(tmp_path):
    # 40 MB of text: the header was read to the end of the file, again and again
    path = tmp_path / "f.csv.gz"
    chunk = gzip.compress(b"0.5,0.5,a\n" * 100_000, mtime=0)
    path.write_bytes(gzip.compress(b'a,"b,y\n', mtime=0) + chunk * 40)
    done = program("assess", path, *LABEL, timeout=60)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count(b"\n") == 1


@posix
@pytest.mark.parametrize(
    ("how", "verb"),
    [
        ("<&-", ["assess", "-", *LABEL]),
        (">&-", ["apply", "model.json", "good.csv"]),
    ],
)
def test_F8_closed_streams(how, verb, tmp_path, capsys):
    saved_model(tmp_path, capsys)
    done = redirected(how, *(tmp_path / word if "." in word else word for word in verb))
    assert done.returncode == 2, done.stderr
    assert done.stderr.count(b"\n") == 1


@posix
def test_F8_a_link_that_leads_to_itself(tmp_path, capsys):
    loop = tmp_path / "loop.csv"
    loop.symlink_to(loop)
    refused(capsys, "fit", loop, *LABEL, "-o", tmp_path / "model.json")


@posix
def test_F8_a_file_cut_short_while_it_is_read(tmp_path, capsys, monkeypatch):
    (tmp_path / "rows").mkdir()
    path = tmp_path / "rows" / "f.parquet"
    pq.write_table(pa.concat_tables([parquet_table()] * 50), path, row_group_size=500)
    batches = pq.ParquetFile.iter_batches

    def cutting(file, *args, **options):
        parts = batches(file, *args, **options)
        yield next(parts)
        os.truncate(path, 1000)
        yield from parts

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", cutting)
    code, _, err = said(capsys, "assess", tmp_path / "rows", *LABEL)  # a folder: in blocks
    assert code == 2, err
    assert "Traceback" not in err


@posix
def test_F8_a_file_name_that_is_no_utf8(tmp_path, capsys):
    path = tmp_path / os.fsdecode(b"n\xff\xfe.parquet")
    table = pa.BufferOutputStream()
    pq.write_table(parquet_table(), table)
    path.write_bytes(table.getvalue())
    assert said(capsys, "assess", path, *LABEL, "--seed", "1")[0] == 0


COMMAND = "\x1b]0;mine\x07"
"""Sets the title of a terminal."""


@pytest.mark.parametrize("where", ["file", "class", "model"])
def test_F9_no_name_sends_a_command_to_the_terminal(where, tmp_path, capsys):
    good, model = saved_model(tmp_path, capsys)
    if where == "file":
        seen = said(capsys, "assess", tmp_path / f"{COMMAND}.csv", *LABEL)
    elif where == "class":
        good.write_text(csv_text().replace("cat", f"c{COMMAND}t"))
        seen = said(capsys, "assess", good, *LABEL, "--seed", "1")
    else:
        content = json.loads(model.read_text())
        content |= {"format_version": 99, "mcllo_version": f"1.0{COMMAND}"}
        model.write_text(json.dumps(content))
        seen = said(capsys, "apply", model, good, "-o", tmp_path / "out.csv")
    assert seen[0] == (0 if where == "class" else 2)
    assert "mine" in "".join(seen[1:])
    assert shows_no_commands("".join(seen[1:]))


def children(pid):
    """Return the processes that a process started, and those that they started."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as file:
                    parent = int(file.read().rsplit(")", 1)[1].split()[1])
            except (OSError, ValueError):
                continue
            if parent == pid:
                found += [int(entry), *children(int(entry))]
    return found


def running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
def test_F10_workers_end_with_a_parent_that_was_killed():
    command = [sys.executable, "-m", "mcllo", "power", "--workers", "2", "--n", "400"]
    command += ["--reps", "1000000", "--seed", "1"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as parent:
        for _ in range(600):
            started = children(parent.pid)
            if len(started) >= 3:  # two workers, and the process that tracks what they share
                break
            time.sleep(0.05)
        else:
            parent.kill()
            raise AssertionError("no workers started")
        time.sleep(0.5)
        started = children(parent.pid)
        parent.send_signal(signal.SIGKILL)
        parent.wait(30)
    for _ in range(600):
        if not any(map(running, started)):
            break
        time.sleep(0.05)
    left = [pid for pid in started if running(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left
    assert len(started) >= 3


SLOW = """
import sys, time
import mcllo
from mcllo.__main__ import run

predict = mcllo.MCLLOCalibrator.predict_proba

def slowly(calibrator, rows):
    if len(rows) < 60:  # a model is tried out when it is loaded
        return predict(calibrator, rows)
    print("ready", flush=True)
    time.sleep(60)

mcllo.MCLLOCalibrator.predict_proba = slowly
run(sys.argv[1:])
"""


@posix
def test_F10_what_a_killed_writer_left_goes_with_the_next_write(tmp_path, capsys):
    good, model = saved_model(tmp_path, capsys)
    (tmp_path / "out").mkdir()
    out = tmp_path / "out" / "out.csv"
    words = ["apply", str(model), str(good), "-o", str(out)]
    with subprocess.Popen([sys.executable, "-c", SLOW, *words], stdout=subprocess.PIPE) as killed:
        assert killed.stdout.readline() == b"ready\n"
        killed.send_signal(signal.SIGKILL)
        killed.wait(30)
    assert len(os.listdir(out.parent)) == 1
    assert said(capsys, *words)[0] == 0
    assert os.listdir(out.parent) == ["out.csv"]


def test_F12_a_flipped_byte_of_parquet_is_no_other_number(tmp_path, capsys):
    given, path = tmp_path / "given.parquet", tmp_path / "f.parquet"
    pq.write_table(parquet_table(), given)
    _, model = saved_model(tmp_path, capsys)
    assert said(capsys, "apply", model, given, "-o", path)[0] == 0
    right = read_predictions(path, label="y").probs
    whole, last = path.read_bytes(), pq.read_metadata(path).row_group(0).column(2)
    for place in range(4, last.data_page_offset, 37):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        with suppress(MclloError):
            np.testing.assert_array_equal(read_predictions(path, label="y").probs, right)
