"""The file: killed at any moment, used by two processes, of another format."""

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import killed
import numpy as np
import pytest

import mcllo
from mcllo._monitor import store
from mcllo._monitor.store import Store
from mcllo.exceptions import FileFormatError

HERE = Path(__file__).parent


def monitor_with(path, n):
    monitor = mcllo.Monitor.start(path, classes=range(killed.N_CLASSES))
    for number in range(n):
        monitor.add(*killed.batch(number), batch=str(number))
    return monitor


@pytest.mark.slow
def test_killed_at_random_moments_no_batch_is_lost_and_it_goes_on(tmp_path):
    path, times = tmp_path / "m.db", 60
    mcllo.Monitor.start(path, classes=range(killed.N_CLASSES)).close()
    command = [sys.executable, str(HERE / "killed.py"), str(path), str(times), "1"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    told = json.loads(run.stdout)["told"]
    with mcllo.Monitor.open(path) as monitor:
        ids = [int(record.id) for record in monitor.records()]
        assert set(told) <= set(ids)
        assert ids == sorted(ids) == list(range(len(ids)))
        monitor.add(*killed.batch(len(ids)), batch=str(len(ids)))
        found = monitor.status()
    # the same as without any kill
    known = monitor_with(None, len(ids) + 1).status()
    assert found.log_evidence == pytest.approx(known.log_evidence, abs=1e-9)
    assert found.log_detector == pytest.approx(known.log_detector, abs=1e-9)
    assert len(told) >= times // 2


def test_numbers_come_back_as_they_were():
    rng = np.random.default_rng(0)
    given = {
        "a": rng.normal(size=(2, 3)),
        "b": np.array(-np.inf),
        "c": np.zeros((0, 2)),
    }
    found = store.unpack_arrays(store.pack_arrays(given))
    assert list(found) == list(given)
    for name in given:
        np.testing.assert_array_equal(found[name], given[name])


def test_a_copy_of_the_file_is_a_backup(tmp_path):
    monitor = monitor_with(tmp_path / "m.db", 3)
    shutil.copy(tmp_path / "m.db", tmp_path / "copy.db")  # while it is open
    monitor.backup(tmp_path / "backup.db")
    for name in ("copy.db", "backup.db"):
        with mcllo.Monitor.open(tmp_path / name) as other:
            assert other.status().to_dict() == monitor.status().to_dict()
    monitor.close()


def test_two_that_add_take_turns(tmp_path):
    first = monitor_with(tmp_path / "m.db", 2)
    with mcllo.Monitor.open(tmp_path / "m.db") as second:
        second.add(*killed.batch(2), batch="2")
        first.add(*killed.batch(3), batch="3")
        assert [r.id for r in second.records()] == ["0", "1", "2", "3"]
        known = monitor_with(None, 4).status()
        assert second.status().log_evidence == pytest.approx(
            known.log_evidence, abs=1e-9
        )


def test_one_that_waits_too_long_is_refused(tmp_path):
    monitor_with(tmp_path / "m.db", 1).close()
    holder = sqlite3.connect(tmp_path / "m.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    waiting = Store.open(tmp_path / "m.db", patience=0.05)
    with pytest.raises(FileFormatError, match="in use"), waiting.writing():
        pass
    holder.execute("ROLLBACK")
    with waiting.writing():
        pass
    holder.close()
    waiting.close()


def test_an_older_format_is_brought_up_to_date_at_once_or_not_at_all(tmp_path):
    path = tmp_path / "m.db"
    monitor_with(path, 2).close()

    def step(connection):
        connection.execute(
            "ALTER TABLE batches ADD COLUMN place TEXT NOT NULL DEFAULT 'here'"
        )

    def breaks(connection):
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError):
        Store.open(path, migrations={2: step, 3: breaks})
    assert Store.open(path).format_version == 2
    moved = Store.open(path, migrations={2: step})
    assert moved.format_version == 3
    assert moved.record_by_number(2).id == "1"
    moved.close()
    with pytest.raises(FileFormatError, match="format 2 or older; it is of format 3"):
        mcllo.Monitor.open(path)


def test_a_file_of_format_1_is_read_and_goes_on(tmp_path):
    """The dump was written by the first version; whoever changes the format adds a step."""
    path = tmp_path / "m.db"
    connection = sqlite3.connect(path)
    connection.executescript((HERE / "format_1.sql").read_text())
    connection.close()
    with mcllo.Monitor.open(path) as monitor:
        assert monitor.classes == ("cat", "dog", "eel")
        assert [record.id for record in monitor.records()] == ["a", "b"]
        before = monitor.status()
        known = mcllo.Monitor.start(classes=["cat", "dog", "eel"])
        for name, rows in zip("abc", FORMAT_1, strict=True):
            status = known.add(*rows, batch=name)
            if name == "b":
                assert before.log_evidence == pytest.approx(status.log_evidence)
        assert monitor.add(*FORMAT_1[2], batch="c").log_detector == pytest.approx(
            status.log_detector
        )


FORMAT_1 = [
    ([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4], [0.1, 0.8, 0.1]], ["cat", "eel", "dog"]),
    ([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]], ["dog", "eel"]),
    ([[0.5, 0.25, 0.25], [0.1, 0.3, 0.6]], ["cat", "cat"]),
]


def test_what_is_no_monitor_is_refused(tmp_path):
    path = tmp_path / "m.db"
    for content in (b"", b"cat,dog,y\n0.5,0.5,cat\n", b"SQLite format 3\x00junk"):
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match="must be a monitor"):
            mcllo.Monitor.open(path)
        with pytest.raises(FileFormatError, match="must be a new file"):
            mcllo.Monitor.start(path)
    with pytest.raises(FileFormatError, match="there is no such file"):
        mcllo.Monitor.open(tmp_path / "none.db")
