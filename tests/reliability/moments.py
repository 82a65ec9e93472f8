"""Stop verbs that write at random moments: ``moments.py FOLDER TIMES SEED [VERB ...]``.

=========  ========================================================================================
killed     the process is killed (SIGKILL): one half at a moment drawn from the time that the verb
           takes, the other some milliseconds after its hidden file appeared
full       files may have so many bytes and no more (RLIMIT_FSIZE), drawn from what the verb writes:
           writing fails in the middle as on a full disk
=========  ========================================================================================

After each, the file must be the old one or the new one, and a verb that failed must have said so in
one line. In the end the verb runs once to its end, and nothing may be left beside its file. It is a
program of its own, so that one import serves all children; it prints a line of JSON for each verb.
"""

import contextlib
import importlib
import io
import json
import os
import random
import resource
import signal
import sqlite3
import sys
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

OLD = b"old"


def read_bytes(path):
    return path.read_bytes()


def read_monitor(path):
    """Return the batches in a monitor; SQLite brings it back to what it was."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return [
            id for (id,) in connection.execute("SELECT id FROM batches ORDER BY number")
        ]


def commands(folder):
    """Return one verb for each way of writing: how it is called and how its file is read.

    Other forms of a verb (``.tsv``, ``.png``, ``--to sql``) write by the same lines.
    """
    data = folder / "good.csv"
    model = folder / "model.json"
    labels = ["--label", "y"]
    power = [
        "power",
        "--n",
        "50",
        "--delta1",
        "1.2",
        "--reps",
        "3",
        "--n-classes",
        "3",
    ]  # one cell
    plain = {
        "apply.csv": ["apply", model, data, "-o"],
        "apply.parquet": ["apply", model, data, "-o"],
        "fit.json": ["fit", data, *labels, "-o"],
        "assess.html": ["assess", data, *labels, "--seed", "1", "--html"],
        "export.mjs": ["export", model, "--to", "js", "-o"],
        "plot.svg": ["plot", data, *labels, "--seed", "1", "-o"],
        "power.json": [*power, "--seed", "1", "--resume"],
    }
    found = {
        name: ([*words, folder / name], read_bytes) for name, words in plain.items()
    }
    found["start.db"] = (["monitor", "start", folder / "start.db"], read_monitor)
    add = [
        "monitor",
        "add",
        folder / "add.db",
        folder / "more.csv",
        *labels,
        "--batch",
        "new",
    ]
    found["add.db"] = (add, read_monitor)
    return found


def prepare(folder, run):
    """Write what the verbs read."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), 300)
    y = (
        rng.random((300, 1))
        > (probs**2).cumsum(axis=1)[:, :-1] / (probs**2).sum(axis=1)[:, None]
    )
    lines = [
        ",".join([*map(repr, row), "abc"[k]])
        for row, k in zip(probs.tolist(), y.sum(axis=1), strict=True)
    ]
    (folder / "good.csv").write_text("\n".join(["a,b,c,y", *lines, ""]))
    (folder / "more.csv").write_text(
        "\n".join(["a,b,c,y", *lines[:150], ""])
    )  # rows count once
    data = [str(folder / "good.csv"), "--label", "y"]
    assert run(["fit", *data, "-o", str(folder / "model.json")]) == 0
    monitor = str(folder / "add.db")
    assert run(["monitor", "start", monitor]) == 0
    assert run(["monitor", "add", monitor, *data, "--batch", "first"]) in (0, 1, 3)


def child(run, words, said, limit=None):
    """Start a verb in a child that says what it says into a file; return its process."""
    pid = os.fork()
    if pid:
        return pid
    code = 99
    try:
        sys.stdout = sys.stderr = said.open("w")
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            sys.stdout = sys.stderr = io.StringIO()
        code = run([str(word) for word in words])
        if said.suffix == ".loaded":
            said.write_text("\n".join(sys.modules))
            os._exit(code)
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
            said.write_text(sys.stdout.getvalue())
        sys.stdout.flush()
    finally:
        os._exit(code)


def ended(pid):
    """Wait for a child; return its exit code."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def load(run, words, folder):
    """Import what a verb needs, so that its children do not; nothing is run in this process."""
    listed = folder.parent / "modules.loaded"
    code = ended(child(run, words, listed))
    assert code in (0, 1, 3), f"exit code {code}: {' '.join(map(str, words))}"
    for name in listed.read_text().splitlines():
        with contextlib.suppress(Exception):
            importlib.import_module(name)


class Verb:
    """A verb, the file that it writes, and that file before and after."""

    def __init__(self, folder, name, words, read, run):
        self.words, self.read, self.run = words, read, run
        self.path = folder / name
        self.said = folder.parent / "said.txt"
        self.before = self.path.read_bytes() if name == "add.db" else None
        if name not in ("add.db", "start.db", "power.json"):
            self.before = OLD
        self.restore()
        self.old = None if self.before is None else self.read(self.path)
        self.names = {path.name for path in folder.iterdir()}
        load(run, words, folder)
        self.restore()
        begun = time.perf_counter()
        assert ended(child(run, words, self.said)) in (0, 1, 3), self.said.read_text()
        self.seconds = time.perf_counter() - begun
        self.new = read(self.path)
        assert self.new != self.old
        self.size = max(path.stat().st_size for path in self.written(folder))
        self.names |= {path.name for path in self.written(folder)}

    def written(self, folder):
        return [self.path, *folder.glob("export.d.mts")]

    def restore(self):
        for path in self.path.parent.glob(f"{self.path.name}-*"):  # SQLite's own
            path.unlink()
        self.path.unlink(missing_ok=True)
        if self.before is not None:
            self.path.write_bytes(self.before)

    def found(self):
        """Return which file is there: ``old``, ``new`` or another one."""
        if not self.path.exists():
            return "old" if self.before is None else "none"
        content = self.read(self.path)
        return (
            "new" if content == self.new else "old" if content == self.old else "broken"
        )

    def left(self):
        """Return what is there beside the file, but for SQLite's own, which the next one takes."""
        found = {path.name for path in self.path.parent.iterdir()} - self.names
        return {name for name in found if not name.endswith(("-wal", "-shm"))}


def hidden(folder):
    return [entry.path for entry in os.scandir(folder) if ".mcllo-" in entry.name]


def writing(folder, seconds):
    """Wait until a hidden file is there, or for so long."""
    end = time.perf_counter() + seconds
    while not hidden(folder) and time.perf_counter() < end:
        time.sleep(0.0005)


def stopped(verb, times, rng):
    """Return counts of what was found, and of bad manners, after `times` of each kind."""
    counts = {"killed": {}, "full": {}, "not one line": 0}
    for kind in ("killed", "full"):
        for number in range(times):
            verb.restore()
            for path in hidden(
                verb.path.parent
            ):  # of the one before: a new one is waited for
                os.unlink(path)
            if kind == "killed":
                pid = child(verb.run, verb.words, verb.said)
                if number % 2:
                    writing(verb.path.parent, 2.0 * verb.seconds)
                    time.sleep(rng.expovariate(200.0))
                else:
                    time.sleep(rng.uniform(0.0, 1.05 * verb.seconds))
                os.kill(pid, signal.SIGKILL)
                ended(pid)
            else:
                limit = int(rng.uniform(0, 1.02 * verb.size))
                code = ended(child(verb.run, verb.words, verb.said, limit))
                lines = verb.said.read_text().splitlines()
                failed = verb.found() == "old"
                polite = (
                    code == 2 and sum(line.startswith("mcllo: ") for line in lines) >= 1
                )
                if code not in (0, 1, 2, 3) or (failed and not polite):
                    counts["not one line"] += 1
                    counts.setdefault("said", []).append([code, lines[-3:]])
                if verb.left():
                    counts.setdefault("left", []).extend(verb.left())
            found = verb.found()
            counts[kind][found] = counts[kind].get(found, 0) + 1
    verb.restore()
    pid = child(
        verb.run, verb.words, verb.said
    )  # leaves a hidden file, if it gets that far
    writing(verb.path.parent, 2.0 * verb.seconds)
    os.kill(pid, signal.SIGKILL)
    ended(pid)
    counts["hidden"] = len(hidden(verb.path.parent))
    if verb.before is None:
        verb.restore()
    assert ended(child(verb.run, verb.words, verb.said)) in (0, 1, 3)
    return counts | {"then": verb.found(), "left at the end": sorted(verb.left())}


def main(folder, times, seed, *chosen):
    from mcllo.__main__ import run_command_line as run

    folder = Path(folder) / "work"
    folder.mkdir()
    said = folder.parent / "said.txt"
    pid = os.fork()  # no thread of a first run is in the children
    if pid == 0:
        sys.stdout = sys.stderr = said.open("w")
        prepare(folder, run)
        os._exit(0)
    assert ended(pid) == 0, said.read_text()
    for name, (words, read) in commands(folder).items():
        if not chosen or name in chosen:
            verb = Verb(folder, name, words, read, run)
            counts = stopped(verb, int(times), random.Random(f"{seed} {name}"))
            print(
                json.dumps({"verb": name, "seconds": round(verb.seconds, 2), **counts})
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
