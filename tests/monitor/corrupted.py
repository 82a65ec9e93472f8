"""Damage a monitor's file at random, and ask what it says: ``corrupted.py FOLDER TIMES SEED``.

Each copy is damaged in one way: bytes flipped, bytes overwritten with 0, 255 or anything, a piece
moved, the end cut off; in the whole file, or in the first page, where SQLite keeps its tables. Then
`show` says what the whole file says (exit 0, 1 or 3), or refuses (2); `add` the same. Prints as
JSON how often each, and whatever else happened.
"""

import contextlib
import io
import json
import random
import shutil
import sys
from pathlib import Path

import killed

import mcllo
from mcllo.__main__ import run_command_line

N_BATCHES = 12


def csv_text(number):
    probs, y = killed.batch(number)
    lines = [",".join([*map(str, range(killed.N_CLASSES)), "y"])]
    for row, label in zip(probs.tolist(), y.tolist(), strict=True):
        lines.append(",".join([*map(repr, row), str(label)]))
    return "\n".join(lines) + "\n"


def damaged(data, rng):
    """Return the bytes of a file after one piece of bad luck."""
    found = bytearray(data)
    end = len(found) if rng.random() < 0.7 else 4096
    kind = rng.choice(["bit", "byte", "few", "zeros", "block", "moved", "cut"])
    start = rng.randrange(end)
    if kind == "bit":
        found[start] ^= 1 << rng.randrange(8)
    elif kind == "byte":
        found[start] = rng.choice([0, 255, rng.randrange(256)])
    elif kind == "few":
        for place in rng.choices(range(end), k=rng.randrange(2, 20)):
            found[place] = rng.randrange(256)
    elif kind == "zeros":
        length = rng.choice([8, 512, 4096])
        found[start : start + length] = bytes(len(found[start : start + length]))
    elif kind == "block":
        length = len(found[start : start + rng.choice([8, 64, 4096])])
        found[start : start + length] = rng.randbytes(length)
    elif kind == "moved":
        other, length = rng.randrange(end), rng.choice([8, 64, 4096])
        length = min(length, len(found) - max(start, other))
        found[start : start + length] = found[other : other + length]
    else:
        del found[start:]
    return kind, bytes(found)


def answer(arguments):
    """Return the exit code, what is printed, and the lines of standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run_command_line([str(argument) for argument in arguments])
    return code, out.getvalue(), err.getvalue().splitlines()


def count_answers(folder, times, seed):
    """Return how often each verb ended with which code, and what was neither right nor refused."""
    rng = random.Random(seed)
    whole, rows = folder / "whole.db", folder / "rows.csv"
    monitor = mcllo.Monitor.start(whole, classes=map(str, range(killed.N_CLASSES)))
    for number in range(N_BATCHES):
        probs, y = killed.batch(number)
        monitor.add(probs, y.astype(str), batch=str(number))
    monitor.close()
    rows.write_text(csv_text(N_BATCHES))
    path = folder / "damaged.db"
    add = ["monitor", "add", path, rows, "--label", "y", "--batch", "next", "--json"]
    show = ["monitor", "show", path, "--batches", "--json"]
    shutil.copy(whole, path)
    right = {"show": answer(show)[:2], "add": answer(add)[:2]}
    counts = {"show": {}, "add": {}, "raw": {}, "bad": []}
    data = whole.read_bytes()
    for number in range(times):
        kind, content = damaged(data, rng)
        for verb, words in (
            ("raw", [*show[:3], "--raw"]),
            ("show", show),
            ("add", add),
        ):
            for old in folder.glob("damaged.db*"):
                old.unlink()
            path.write_bytes(content)
            try:
                code, out, err = answer(words)
            except BaseException as error:
                code, out, err = repr(error), "", []
            counts[verb][str(code)] = counts[verb].get(str(code), 0) + 1
            good = (code, out) == right.get(verb, (code, out)) and code in (0, 1, 3)
            if not good and not (code == 2 and len(err) == 1):
                counts["bad"].append([number, kind, verb, code, err[-1:]])
    return counts


if __name__ == "__main__":
    found = count_answers(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
    print(json.dumps(found))
