"""A PostgreSQL of one's own: made in a temporary folder, without a network, gone at the end."""

import glob
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np


def program(name):
    """Return the path of a program of PostgreSQL, None where it is not installed."""
    return shutil.which(name) or max(
        glob.glob(f"/usr/lib/postgresql/*/bin/{name}"), default=None
    )


def why_not():
    """Return why no server can be started here, or nothing."""
    missing = [name for name in ("initdb", "postgres", "psql") if program(name) is None]
    if missing:
        return f"PostgreSQL is not installed: no {missing[0]}"
    if os.geteuid() == 0 and _user() is None:
        return (
            "PostgreSQL refuses to run as root, and there is no user postgres or nobody"
        )
    return ""


def _user():
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    return None


@contextmanager
def server():
    """Give a function that runs a script and returns its output."""
    user = _user() if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="pg-"))  # short: the path of a socket is
    as_user = {} if user is None else {"user": user.pw_uid, "group": user.pw_gid}
    if user is not None:
        os.chown(folder, user.pw_uid, user.pw_gid)
    quiet = {
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
        "cwd": folder,
        **as_user,
    }
    data = folder / "data"
    make = [
        program("initdb"),
        "-D",
        str(data),
        "-A",
        "trust",
        "-U",
        "mcllo",
        "--no-sync",
    ]
    process = None
    try:
        subprocess.run(make, check=True, **quiet)
        start = [
            program("postgres"),
            "-D",
            str(data),
            "-k",
            str(folder),
            "-h",
            "",
            "-F",
        ]
        process = subprocess.Popen(start, **quiet)
        client = [program("psql"), "-h", str(folder), "-U", "mcllo", "-d", "postgres"]
        client += ["-X", "-q", "-v", "ON_ERROR_STOP=1"]

        def run(script):
            done = subprocess.run(client, input=script, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(done.stderr[-500:])
            return done.stdout

        for _ in range(100):
            try:
                run("SELECT 1;")
                break
            except RuntimeError:
                time.sleep(0.1)
        yield run
    finally:
        if process is not None:
            process.terminate()
            process.wait(timeout=20)
        shutil.rmtree(folder, ignore_errors=True)


def run_postgres(run, text, rows, columns):
    """Return what a query with the key ``mcllo_key`` makes of rows, in their order."""
    quoted = [f'''"{name.replace('"', '""')}"''' for name in columns]
    kinds = ", ".join(f"{name} double precision" for name in quoted)
    lines = [
        "\t".join([*map(repr, row), str(key)]) for key, row in enumerate(rows.tolist())
    ]
    script = "\n".join(
        [
            f"CREATE TEMP TABLE predictions ({kinds}, mcllo_key integer);",
            "COPY predictions FROM stdin;",
            *lines,
            r"\.",
            f"COPY ({text}) TO STDOUT;",
        ]
    )
    found = [line.split("\t") for line in run(script).splitlines()]
    found.sort(key=lambda row: int(row[0]))
    return np.array([[float(x) for x in row[1:]] for row in found])
