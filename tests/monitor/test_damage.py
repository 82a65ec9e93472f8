"""A damaged file is bad input, and a full disk fails no batch that is in."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import corrupted
import killed
import numpy as np
import pytest

import mcllo
from mcllo._monitor.store import pack_arrays, unpack_arrays
from mcllo.exceptions import FileFormatError, InputError

HERE = Path(__file__).parent
CLASSES = list(range(killed.N_CLASSES))


@pytest.fixture
def path(tmp_path):
    """Return a monitor of three batches."""
    with mcllo.Monitor.start(tmp_path / "m.db", classes=CLASSES) as monitor:
        for number in range(3):
            monitor.add(*killed.batch(number), batch=str(number))
    return tmp_path / "m.db"


def write(path, statement, *values):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement, values)


def read_state(path):
    with closing(sqlite3.connect(path)) as connection:
        (data,) = connection.execute("SELECT numbers FROM state").fetchone()
    return unpack_arrays(data)


@pytest.mark.parametrize(
    "times", [30, pytest.param(500, marks=pytest.mark.slow)], ids=["some", "500"]
)
def test_a_damaged_file_gives_the_right_answer_or_is_refused(tmp_path, times):
    counts = corrupted.count_answers(tmp_path, times, seed=times)
    assert counts["bad"] == []
    # the damage is real: without a check most answers would be those of a damaged file
    assert counts["show"]["2"] > times / 4
    assert counts["show"]["0"] > times / 10


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("counts", np.nan, "'counts' has no number"),
        ("counts", -1e308, "'counts' is below 0"),
        ("predicted", np.nan, "'predicted' has no number"),
        ("mean", np.nan, "'mean' has no number"),
        ("detected", np.nan, "'detected' has no number"),
        ("started", np.inf, "'started' has no number"),
        ("precision", 0.0, "'precision' is no precision"),
        ("since", 4.0, "'since' names no batch"),
        ("baseline", 4.0, "'baseline' is out of range"),
        ("alarm", 9.0, "'alarm' names no batch"),
        ("n_batches", 2.5, "'n_batches' is out of range"),
    ],
)
def test_a_state_that_no_monitor_would_have_is_refused(path, name, value, found):
    state = {key: array.copy() for key, array in read_state(path).items()}
    state[name].flat[0] = value
    write(path, "UPDATE state SET numbers = ?", pack_arrays(state))
    with pytest.raises(FileFormatError) as caught:
        mcllo.Monitor.open(path)
    assert f"is damaged: its state cannot be read: {found}." in str(caught.value)
    assert "Go on with its last copy" in str(caught.value)


def test_a_state_of_other_lengths_or_without_a_number_is_refused(path):
    state = read_state(path)
    for changed in (
        state | {"cusum": state["cusum"][:-1]},
        {name: array for name, array in state.items() if name != "most"},
    ):
        write(path, "UPDATE state SET numbers = ?", pack_arrays(changed))
        with pytest.raises(FileFormatError, match=r"another length|is missing"):
            mcllo.Monitor.open(path)


def test_one_changed_number_is_seen_by_the_checksum(path):
    with closing(sqlite3.connect(path)) as connection:
        (data,) = connection.execute("SELECT numbers FROM state").fetchone()
    counts = read_state(path)["counts"].tobytes()
    other = (read_state(path)["counts"] + 1.0).tobytes()
    write(path, "UPDATE state SET numbers = ?", data.replace(counts, other))
    with pytest.raises(FileFormatError, match="its checksum is of other numbers"):
        mcllo.Monitor.open(path)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE meta SET value = 'abc' WHERE name = 'format_version'",
        "UPDATE meta SET value = '0' WHERE name = 'format_version'",
        "UPDATE meta SET value = '-1' WHERE name = 'format_version'",
        "UPDATE meta SET value = '1' WHERE name = 'format_version'",
        "DELETE FROM meta WHERE name = 'format_version'",
        "DELETE FROM meta WHERE name = 'settings'",
        "DELETE FROM meta WHERE name = 'checksum'",
        "UPDATE meta SET value = replace(value, 'change', 'chance')",
        "UPDATE meta SET value = replace(value, '0.05', 'NaN')",
        "UPDATE meta SET value = '[1' WHERE name = 'settings'",
        "DELETE FROM state",
        "DELETE FROM batches WHERE number = 2",
        "UPDATE batches SET number = 7 WHERE number = 3",
        "UPDATE state SET numbers = 'text'",
        "DROP TABLE batches",
    ],
)
def test_what_is_missing_or_other_than_it_was_is_refused(path, statement):
    write(path, statement)
    with pytest.raises(FileFormatError, match="is damaged: "):
        mcllo.Monitor.open(path)


@pytest.mark.parametrize("column", ["id", "time", "added", "checksum"])
def test_a_batch_of_another_name_is_refused_where_it_is_read(path, column):
    write(path, f"UPDATE batches SET {column} = 'x' WHERE number = 2")
    with (
        mcllo.Monitor.open(path) as monitor,
        pytest.raises(FileFormatError, match="batch 2 cannot be read"),
    ):
        monitor.history()


def test_what_is_left_of_a_damaged_file_is_printed(path):
    code, out, err = corrupted.answer(["monitor", "show", path, "--raw"])
    whole = json.loads(out)
    assert (code, err, whole["damage"]) == (0, [], [])
    write(path, "UPDATE state SET numbers = x'00'")
    write(path, "UPDATE batches SET id = 'x' WHERE number = 2")
    code, out, err = corrupted.answer(["monitor", "show", path, "--raw"])
    found = json.loads(out)
    assert code == 2
    assert err[0].startswith(f"mcllo: {path} is damaged; what is left of it is printed")
    assert found["batches"][0] == whole["batches"][0]
    assert found["batches"][1]["id"] == "x"
    assert [batch["intact"] for batch in found["batches"]] == [True, False, True]
    assert found["batches"][1]["numbers"] == whole["batches"][1]["numbers"]
    assert not found["state"]["intact"]
    code, _, err = corrupted.answer(["monitor", "show", path])
    assert code == 2
    assert "mcllo monitor show" in err[0]


def test_half_a_letter_is_no_name(path):
    with mcllo.Monitor.open(path) as monitor:
        for names in ({"batch": "\udcff"}, {"batch": "x", "time": "a\0"}):
            with pytest.raises(InputError, match="can be written as UTF-8"):
                monitor.add(*killed.batch(5), **names)


FULL = """
import resource, signal, sys, warnings
sys.path.insert(0, {here!r})
import killed, mcllo
monitor = mcllo.Monitor.open({path!r})
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, resource.RLIM_INFINITY))
for number in range(3, 40):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            status = monitor.add(*killed.batch(number), batch=str(number))
        except mcllo.exceptions.MclloError as error:
            print("refused", number, error)
            break
    print("added", number, *[warning.message.text() for warning in caught])
"""


@pytest.mark.parametrize("room", [4096, 30_000])
def test_on_a_full_disk_a_batch_is_in_or_refused(path, room):
    """The file may not grow, its log may: what is committed cannot be written back."""
    limit = path.stat().st_size + room
    code = FULL.format(here=str(HERE), path=str(path), limit=limit)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    *said, last = run.stdout.splitlines()
    added = [line.split()[1] for line in said]
    assert last.startswith("refused ")
    assert "what was added before is as it was" in last
    assert "cannot be written back" in said[-1]
    with mcllo.Monitor.open(path) as monitor:
        assert [record.id for record in monitor.records()] == ["0", "1", "2", *added]
        assert monitor.add(*killed.batch(50), batch="room again").n_batches == 4 + len(
            added
        )
