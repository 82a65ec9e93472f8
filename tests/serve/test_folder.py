"""The private folder is gone afterwards, whichever way a run ends."""

import os
import signal
import stat
import subprocess
import sys
import urllib.request
from time import monotonic, sleep

import pytest

from mcllo.__main__ import run_command_line
from mcllo._apps.serve import open_listening_socket
from mcllo._apps.serve.upload import (
    LOCK,
    MAX_SECONDS_WITHOUT_LOCK,
    NAME,
    private_temporary_folder,
    remove_abandoned_folders,
)
from mcllo.exceptions import InputError

PATIENCE = 120.0


def until(holds):
    """Wait until something holds."""
    end = monotonic() + PATIENCE
    while not holds():
        assert monotonic() < end, "it takes too long"
        sleep(0.05)


def test_nobody_else_can_read_it_and_it_is_gone_at_the_end(tmp_path):
    with private_temporary_folder(tmp_path) as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "job").mkdir()
        (folder / "job" / "table.csv").write_text("secret")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(RuntimeError, match="oops"), private_temporary_folder(tmp_path):
        raise RuntimeError("oops")
    assert list(tmp_path.iterdir()) == []


CRASH = """
import os, signal, sys
from pathlib import Path
from mcllo._apps.serve.upload import private_temporary_folder
with private_temporary_folder(Path(sys.argv[1])) as folder:
    (folder / "table.csv").write_text("secret")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_a_crash_does_not_keep_it(tmp_path):
    done = subprocess.run([sys.executable, "-c", CRASH, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    until(lambda: list(tmp_path.iterdir()) == [])


def test_what_an_earlier_run_left_is_swept(tmp_path):
    left, young, other = (
        tmp_path / name for name in (f"{NAME}left", f"{NAME}young", "mine")
    )
    for folder in (left, young, other):
        folder.mkdir()
        (folder / "table.csv").write_text("secret")
    old = os.stat(left).st_mtime - 2 * MAX_SECONDS_WITHOUT_LOCK
    with private_temporary_folder(tmp_path) as used:
        assert (used / LOCK).exists()
        for folder in (left, other, used):
            os.utime(folder, (old, old))
        assert remove_abandoned_folders(tmp_path) == [left]
        assert sorted(tmp_path.iterdir()) == sorted([used, young, other])


@pytest.fixture
def running(tmp_path):
    """Return ``mcllo serve`` as a process, whose temporary files are in `tmp_path`."""
    call = [sys.executable, "-m", "mcllo", "serve", "--no-browser"]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(call, stdout=subprocess.PIPE, text=True, env=environment)
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.slow
def test_the_verb_serves_until_it_is_killed(running, tmp_path):
    address = running.stdout.readline().split()[-1]
    assert address.startswith("http://127.0.0.1:")
    with urllib.request.urlopen(address) as answer:
        assert "Are these probabilities right?" in answer.read().decode()
    (folder,) = tmp_path.glob(f"{NAME}*")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    running.send_signal(signal.SIGKILL)
    running.wait()
    until(lambda: list(tmp_path.glob(f"{NAME}*")) == [])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)]
)
def test_the_verb_cleans_up_after_signals(running, tmp_path, number, code):
    with urllib.request.urlopen(running.stdout.readline().split()[-1]) as answer:
        assert answer.status == 200  # it serves, so that signals are uvicorn's
    assert list(tmp_path.glob(f"{NAME}*"))
    running.send_signal(number)
    assert running.wait(PATIENCE) == code
    assert list(tmp_path.glob(f"{NAME}*")) == []


KILLED_SERVER = """
import os, signal, sys
from mcllo._apps.serve.jobs import SPAWN
from mcllo._apps.serve.limits import LIMITS
from mcllo._apps.serve.worker import run_worker
receiver, sender = SPAWN.Pipe(duplex=False)
given = {"file": sys.argv[2], "limits": LIMITS}
SPAWN.Process(target=run_worker, args=(sender, sys.argv[1], "look", given), daemon=True).start()
print(receiver.recv()[0], flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_a_worker_does_not_outlive_the_page(tmp_path):
    pipe = tmp_path / "never written"
    os.mkfifo(pipe)  # whose reader waits for ever
    call = [sys.executable, "-c", KILLED_SERVER, str(tmp_path), str(pipe)]
    server = subprocess.Popen(call, stdout=subprocess.PIPE)
    said, _ = server.communicate(
        timeout=PATIENCE
    )  # until the worker, too, has let go of it
    assert said == b"doing\n"
    assert server.returncode == -signal.SIGKILL


def test_it_listens_on_this_machine_alone_and_says_when_it_cannot(capsys):
    with open_listening_socket(0) as sock:
        host, port = sock.getsockname()
        assert host == "127.0.0.1"
        with pytest.raises(
            InputError, match=rf"port={port} cannot be listened on: .* in use\. Choose"
        ):
            open_listening_socket(port)
        assert run_command_line(["serve", "--no-browser", "--port", str(port)]) == 2
        assert capsys.readouterr().err.startswith(
            f"mcllo: --port {port} cannot be listened on: "
        )
    with pytest.raises(InputError, match="port=99999 cannot be listened on"):
        open_listening_socket(99999)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such pipes")
def test_a_pipe_or_a_link_in_the_place_of_the_lock_stops_nobody(tmp_path):
    for name in ("pipe", "link"):
        folder = tmp_path / f"{NAME}{name}"
        folder.mkdir()
        if name == "pipe":
            os.mkfifo(folder / LOCK)
        else:
            (folder / LOCK).symlink_to(tmp_path / "elsewhere")
        os.utime(folder, (0, 0))
    sweep = "import sys; from pathlib import Path; "
    sweep += "from mcllo._apps.serve.upload import remove_abandoned_folders as sweep; "
    sweep += "sweep(Path(sys.argv[1]))"
    # in a process of its own, that ends by itself: what waits for the end of a pipe does not
    subprocess.run([sys.executable, "-c", sweep, str(tmp_path)], check=True, timeout=60)
    assert not (tmp_path / f"{NAME}pipe").exists()
