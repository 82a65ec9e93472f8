"""Send SIGINT and SIGTERM to verbs at random moments: ``signals.py FOLDER TIMES SEED [VERB ...]``.

Moments are drawn from the time that a verb takes, most of which is imports. A signal is lost when
the process does not end, or ends as if none had come: with another code than 130 or 143 (or by the
signal itself, before and after the program). Nothing may be left beside the files, no traceback be
said, and no file be half-written. Prints a line of JSON for each verb.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import moments

PROMISED_SECONDS = 2.0
END_SECONDS = 0.25  # of an interpreter that ends: a round number
PATIENCE = 30.0
CODES = {signal.SIGINT: (130, -signal.SIGINT), signal.SIGTERM: (143, -signal.SIGTERM)}


def commands(folder):
    """Return each verb as it is called."""
    data, labels = folder / "good.csv", ["--label", "y"]
    power = ["power", "--n", "200,400", "--delta1", "1.2", "--reps", "400"]
    return {
        "assess": ["assess", data, *labels, "--seed", "1", "--full"],
        "report": ["assess", data, *labels, "--seed", "1", "--html", folder / "a.html"],
        "fit": ["fit", data, *labels, "-o", folder / "fit.json"],
        "apply": ["apply", folder / "model.json", data, "-o", folder / "out.csv"],
        "parquet": ["apply", folder / "model.json", data, "-o", folder / "o.parquet"],
        "compare": ["compare", data, *labels, "--seed", "1"],
        "export": ["export", folder / "model.json", "--to", "onnx", "--check"],
        "plot": ["plot", data, *labels, "--seed", "1", "-o", folder / "plot.png"],
        "power": [*power, "--n-classes", "3", "--seed", "1", "--n-jobs", "2"],
        "monitor": ["monitor", "show", folder / "add.db", "--html", folder / "m.html"],
        "serve": ["serve", "--port", "0", "--no-browser"],
    }


def start(words, said):
    program = [sys.executable, "-m", "mcllo", *map(str, words)]
    environment = {**os.environ, "TMPDIR": str(said.parent), "PYTHONFAULTHANDLER": "1"}
    with said.open("w") as out:
        return subprocess.Popen(program, stdout=out, stderr=out, env=environment)


def stopped(words, delay, number, said):
    """Start a verb, send it a signal, and return its code and how long it took to end."""
    process = start(words, said)
    time.sleep(delay)
    if process.poll() is not None:
        return None, 0.0  # it was over before
    process.send_signal(number)
    begun = time.perf_counter()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.send_signal(
            signal.SIGABRT
        )  # the standard library's faulthandler says where it is
        process.wait()
    return process.returncode, time.perf_counter() - begun


def names_beside(folder):
    """Return what is in the folder, and in the one above, which is that of temporary files."""
    found = [*folder.iterdir(), *folder.parent.iterdir()]
    return {path.name for path in found}


def is_lost_by_python(code, said):
    """Whether the signal came before the first line of the package: site, runpy."""
    ignored = "ignored" in said and "KeyboardInterrupt" in said
    is_own = f"{os.sep}mcllo{os.sep}" in said
    return (code == 1 and "KeyboardInterrupt" in said and not is_own) or ignored


def send_signals(folder, said, name, times, seed):
    """Return counts of a verb, and each signal that was lost, slow or not polite."""
    words, rng = commands(folder)[name], random.Random(f"{seed} {name}")
    whole = 2.5  # of what goes on until it is stopped
    if name not in ("serve", "power"):
        begun = time.perf_counter()
        code = start(words, said).wait()
        whole = time.perf_counter() - begun
        assert code in (0, 1, 3), said.read_text()
    names = names_beside(folder) | {said.name}  # other packages leave some of their own
    found = {"verb": name, "seconds": round(whole, 2), "sent": 0, "slowest": 0.0}
    found |= {"in Python's own start": 0, "over": 0}
    found |= {"lost": [], "slow": [], "rude": [], "left": []}
    for k in range(times):
        number = rng.choice([signal.SIGINT, signal.SIGTERM])
        # a third of them while the first modules are imported
        delay = rng.uniform(0.0, whole if k % 3 else 0.15 * whole)
        code, seconds = stopped(words, delay, number, said)
        if code is None:
            continue
        found["sent"] += 1
        found["slowest"] = max(found["slowest"], round(seconds, 2))
        place = [round(delay, 3), int(number), code, round(seconds, 2)]
        text = said.read_text(errors="replace")
        if is_lost_by_python(code, text):
            found["in Python's own start"] += 1
            continue
        is_end_of_serve = name == "serve" and code == 0 and "ended" in text
        # Its work was done when the signal came: Python's own end answers none.
        was_over = code in (0, 1, 3) and seconds < END_SECONDS and delay > 0.7 * whole
        if was_over:
            found["over"] += 1
            continue
        if code not in CODES[number] and not is_end_of_serve:
            found["lost"].append([*place, text[:200]])
        if seconds > PROMISED_SECONDS:
            found["slow"].append(place)
        if "Traceback" in text and code not in (-signal.SIGINT, -signal.SIGTERM):
            found["rude"].append([*place, text[-300:]])
        left = names_beside(folder) - names
        if left:
            found["left"].append([*place, sorted(left)])
    return found


def main(folder, times, seed, *chosen):
    from mcllo.__main__ import run_command_line as run

    folder = Path(folder) / "work"
    folder.mkdir()
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        tempfile.tempdir = scratch
        moments.prepare(folder, run)
    said = folder.parent / "said.txt"
    for name in chosen or commands(folder):
        print(json.dumps(send_signals(folder, said, name, int(times), seed)))
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
