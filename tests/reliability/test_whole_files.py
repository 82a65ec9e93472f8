"""The old file or the new one, whenever a process is killed or the disk is full; nothing beside it.

F10 (``.tmp``), and fsync before the rename. By hand: ``python tests/reliability/moments.py FOLDER
100 1`` stops every verb at 100 moments of each kind; here a few verbs at a few moments.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mcllo._monitor.store import Store
from mcllo._utils import atomic_files
from mcllo._utils.atomic_files import replace_atomically, write_text
from mcllo.exceptions import FileFormatError

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals and locks")


@pytest.mark.slow
def test_F10_verbs_stopped_at_random_moments(tmp_path):
    program = Path(__file__).with_name("moments.py")
    verbs = [
        "apply.csv",
        "apply.parquet",
        "fit.json",
        "assess.html",
        "start.db",
        "add.db",
    ]
    done = subprocess.run(
        [sys.executable, program, tmp_path, "2", "1", *verbs],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [counts["verb"] for counts in found] == verbs
    for counts in found:
        for kind in ("killed", "full"):
            assert sum(counts[kind].values()) == 2
            assert set(counts[kind]) <= {"old", "new"}, counts
        assert counts["not one line"] == 0, counts
        assert (counts["then"], counts["left at the end"]) == ("new", []), counts
        assert "left" not in counts
    assert any("old" in counts["full"] for counts in found)


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


@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
def test_F10_workers_end_with_a_parent_that_was_killed():
    command = [sys.executable, "-m", "mcllo", "power", "--workers", "2", "--n", "400"]
    command += ["--reps", "1000000", "--seed", "1"]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as parent:
        for _ in range(600):
            started = children(parent.pid)
            if (
                len(started) >= 3
            ):  # two workers, and the process that tracks what they share
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


WRITER = """
import sys, time
from mcllo._utils.atomic_files import replace_atomically
with replace_atomically(sys.argv[1]) as temporary:
    temporary.write_text("half")
    print("ready", flush=True)
    time.sleep(60)
"""


def writer(path):
    """Start a process that is in the middle of writing a file."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"ready\n"
    return process


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_F10_what_a_killed_writer_left_goes_with_the_next_write_and_a_living_one_keeps_his(
    tmp_path,
):
    path, other = tmp_path / "f", tmp_path / ".f.mine.tmp"
    path.write_text("old")
    other.write_text("somebody else's")
    with writer(path) as living, writer(path) as killed:
        killed.send_signal(signal.SIGKILL)
        killed.wait(30)
        assert path.read_text() == "old"
        assert len(names(tmp_path)) == 4
        write_text(path, "new")
        assert path.read_text() == "new"
        left = set(names(tmp_path)) - {"f", other.name}
        assert len(left) == 1
        assert (tmp_path / left.pop()).read_text() == "half"  # of the one that is alive
        living.send_signal(signal.SIGKILL)
        living.wait(30)
    write_text(tmp_path / "g", "of another name")
    assert len(names(tmp_path)) == 4
    write_text(path, "newer")
    assert names(tmp_path) == [other.name, "f", "g"]


def test_F10_what_is_taken_away_before_it_is_locked_is_made_again(
    tmp_path, monkeypatch
):
    lock, taken = atomic_files._try_lock, []

    def robbed(handle, *, wait):
        if wait and not taken:
            taken.extend(tmp_path.glob(".f.mcllo-*.tmp"))
            taken[0].unlink()
        return lock(handle, wait=wait)

    monkeypatch.setattr(atomic_files, "_try_lock", robbed)
    write_text(tmp_path / "f", "new")
    assert len(taken) == 1
    assert names(tmp_path) == ["f"]


def test_bytes_are_on_the_disk_before_the_name_changes(tmp_path, monkeypatch):
    order, sync, replace = [], os.fsync, os.replace

    def fsync(handle):
        order.append(("fsync", os.fstat(handle).st_ino))
        sync(handle)

    def renamed(source, target):
        order.append(("replace", os.stat(source).st_ino))
        replace(source, target)

    monkeypatch.setattr(atomic_files.os, "fsync", fsync)
    monkeypatch.setattr(atomic_files.os, "replace", renamed)
    write_text(tmp_path / "f", "x" * 100_000)
    own = (tmp_path / "f").stat().st_ino
    assert order == [
        ("fsync", own),
        ("replace", own),
        ("fsync", tmp_path.stat().st_ino),
    ]


@pytest.mark.parametrize("number", [28, 5])
def test_a_full_disk_is_one_sentence_and_leaves_the_old_file(number, tmp_path):
    path = tmp_path / "f"
    path.write_text("old")

    def write():
        with replace_atomically(path) as temporary:
            temporary.write_text("half")
            raise OSError(number, "what a library says")

    words = rf"f cannot be written: {os.strerror(number)}\. Make"
    with pytest.raises(FileFormatError, match=words):
        write()
    assert names(tmp_path) == ["f"]
    assert path.read_text() == "old"


FULL = """
import resource, sys
from pathlib import Path
import numpy as np
from mcllo.calibrators import TemperatureScaling
from mcllo._apps.streaming.apply import apply_file
from mcllo.exceptions import FileFormatError
folder = Path(sys.argv[1])
rng = np.random.default_rng(0)
probs = rng.dirichlet(np.ones(3), 3000)
model = TemperatureScaling().fit(probs, rng.integers(0, 3, 3000))
np.save(folder / "in.npy", probs)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
for ending in sys.argv[2:]:
    try:
        apply_file(model, folder / "in.npy", folder / f"out.{ending}")
    except FileFormatError as error:
        print(error)
"""


@pytest.mark.slow
def test_a_full_disk_in_every_format(tmp_path):
    # in a process of its own, whose files may have 20,000 bytes
    endings = ["csv", "csv.gz", "csv.zst", "parquet", "feather", "xlsx", "npy"]
    for ending in endings:
        (tmp_path / f"out.{ending}").write_text("old")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FULL, tmp_path, *endings],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    lines = done.stdout.splitlines()
    for ending, line in zip(endings, lines, strict=True):
        out = tmp_path / f"out.{ending}"
        assert line.startswith(f"{out} cannot be written: File too large."), done.stderr
        assert out.read_text() == "old"
    assert names(tmp_path) == sorted(
        ["in.npy", *(f"out.{ending}" for ending in endings)]
    )


HOLDER = """
import time
from mcllo._utils.atomic_files import ScratchFolder
scratch = ScratchFolder()
(scratch.folder / "rows.npy").write_bytes(b"x" * 1000)
print(scratch.folder, flush=True)
time.sleep(60)
"""


@pytest.mark.slow
def test_the_scratch_of_a_killed_process_goes_with_the_next_one(tmp_path, monkeypatch):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", HOLDER]
    options = {"stdout": subprocess.PIPE, "text": True, "env": environment}
    monkeypatch.setattr(atomic_files.tempfile, "tempdir", str(tmp_path))
    with (
        subprocess.Popen(command, **options) as living,
        subprocess.Popen(command, **options) as one,
    ):
        kept, left = (
            Path(process.stdout.readline().strip()) for process in (living, one)
        )
        one.send_signal(signal.SIGKILL)
        one.wait(30)
        assert {path.name for path in left.iterdir()} == {"lock", "rows.npy"}
        scratch = atomic_files.ScratchFolder()
        assert not left.exists()
        assert kept.exists()
        assert scratch.folder.exists()
        scratch.close()
        living.send_signal(signal.SIGKILL)
        living.wait(30)
    del scratch
    atomic_files.ScratchFolder().close()
    assert names(tmp_path) == []


def test_a_monitor_begins_whole_or_not_at_all(tmp_path, monkeypatch):
    def fails(self, meta):
        self._connection.execute("CREATE TABLE half (x)")
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Store, "_create_tables", fails)
        with pytest.raises(KeyboardInterrupt):
            Store.create(tmp_path / "m.db", {})
    assert names(tmp_path) == []
    store = Store.create(tmp_path / "m.db", {})
    assert store._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    store.close()
    assert names(tmp_path) == ["m.db"]


def test_a_backup_is_the_old_one_or_the_new_one(tmp_path):
    settings = {"rule": "change", "run_length": 500.0, "alpha": 0.05, "clip": None}
    settings |= {"classes": ["a", "b"], "model": None, "recalibrated": ""}
    store = Store.create(tmp_path / "m.db", settings)
    for _ in range(2):
        store.backup(tmp_path / "copy.db")
        assert Store.open(tmp_path / "copy.db").settings == settings
    (tmp_path / "note.txt").write_text("no database " * 100)
    with pytest.raises(
        FileFormatError, match="must be a monitor; it is something else"
    ):
        store.backup(tmp_path / "note.txt")
    assert (tmp_path / "note.txt").read_text() == "no database " * 100
    store.close()
