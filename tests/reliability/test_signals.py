"""A signal ends the command line within two seconds, with 130 or 143, and leaves nothing behind."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import signals

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")

DATA = "a,b,y\n" + 20 * "0.6,0.4,a\n0.3,0.7,b\n0.2,0.8,a\n"

STUCK = """
import sys, time
import mcllo._apps.streaming.fit_file as streaming
from mcllo._utils.atomic_files import replace_atomically

def stuck(*args, **options):
    with replace_atomically({out!r}) as temporary:
        temporary.write_text("half")
        print("ready", flush=True)
{body}

streaming.fit_method = stuck
from mcllo.__main__ import main
main()
"""
SWALLOWED = """
        while True:
            try:
                time.sleep(60)
            except BaseException:  # once: somebody's mistake, as in a module that is imported
                time.sleep(60)
"""
CLEANING = """
        try:
            time.sleep(60)
        finally:
            time.sleep(60)  # as who waits for a thread
"""
ALWAYS_SWALLOWED = """
        while True:
            try:
                time.sleep(60)
            except BaseException:
                pass
"""
IN_A_CALLBACK = """
        class Object:
            def __del__(self):
                time.sleep(0.5)  # what is raised here is lost
        while True:
            Object()
"""
BODIES = {
    "swallowed": SWALLOWED,
    "cleaning": CLEANING,
    "always swallowed": ALWAYS_SWALLOWED,
    "in a callback": IN_A_CALLBACK,
}


@pytest.mark.parametrize(
    ("body", "number"),
    [
        ("swallowed", signal.SIGINT),
        pytest.param("swallowed", signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param("cleaning", signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param("always swallowed", signal.SIGINT, marks=pytest.mark.slow),
        pytest.param("in a callback", signal.SIGINT, marks=pytest.mark.slow),
    ],
)
def test_a_signal_that_somebody_swallows_comes_again(tmp_path, body, number):
    data, out = tmp_path / "data.csv", tmp_path / "out.json"
    data.write_text(DATA)
    code = STUCK.format(out=str(out), body=BODIES[body])
    words = ["fit", str(data), "--label", "y", "-o", str(out)]
    command = [sys.executable, "-c", code, *words]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.1)
        process.send_signal(number)
        try:
            err = process.communicate(timeout=20)[1].decode()
        finally:
            process.kill()
    assert process.returncode == (130 if number == signal.SIGINT else 143), err
    assert "Traceback" not in err
    assert "ignored" not in err
    assert {path.name for path in tmp_path.iterdir()} == {"data.csv"}


@pytest.mark.slow
@pytest.mark.threads
def test_signals_at_random_moments_of_all_verbs(tmp_path):
    """Three a verb, for the time it takes; `signals.py` has sent 200 and more by hand."""
    program = [sys.executable, signals.__file__, str(tmp_path), "3", "1"]
    run = subprocess.run(program, capture_output=True, text=True, check=True)
    lines = [line for line in run.stdout.splitlines() if line.startswith('{"verb"')]
    found = [json.loads(line) for line in lines]
    assert len(found) == 11
    assert sum(counts["sent"] for counts in found) >= 20
    for counts in found:
        assert counts["lost"] == counts["rude"] == counts["left"] == [], counts
