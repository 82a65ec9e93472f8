"""Fuzz mcllo: ``python -m fuzz [TARGET ...] [--seconds 60] [--seed 0]``.

====================================  ============================================================
``python -m fuzz csv model``          these targets; all of them where none is named
``python -m fuzz --replay FILE``      one saved input again, with its traceback; FILE.bytes
``python -m fuzz --seeds``            make ``fuzz/corpus`` anew
====================================  ============================================================

Each target runs in a process of its own, ``--workers 2`` at a time, for so many seconds. Lines come
in the order of the targets, whoever ends first; the last line names those that failed, and the exit
code is then 1. The failing inputs are in ``fuzz/found``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fuzz.engine import TARGETS, has_atheris, keep, run, target

ROOT = Path(__file__).resolve().parents[1]
FOUND = Path(__file__).with_name("found")
STUCK = 600.0
"""Seconds without news after which a process is ended: it sleeps, or the machine is very busy."""


def watched(name: str, given: argparse.Namespace, engine: str) -> dict[str, Any]:
    """Run a target in a process and return its counts; see that it ends."""
    with tempfile.TemporaryDirectory(prefix="mcllo-fuzz-") as place:
        folder = Path(place)
        words = ["--one", name, "--folder", place, "--seconds", str(given.seconds)]
        words += ["--seed", str(given.seed), "--attempts", str(given.attempts)]
        start = time.monotonic()
        with (folder / "said").open("w+b") as said:
            process = subprocess.Popen(
                [sys.executable, "-m", "fuzz", *words, "--engine", engine],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
            )
            stuck = _wait(process, folder, given.seconds)
            said.seek(0)
            last = said.read()[-4000:].decode("utf-8", "replace")
        counts = {
            "attempts": 0,
            "accepted": 0,
            "compared": 0,
            "failed": 0,
            "failures": {},
        }
        if (folder / "counts.json").exists():
            counts = json.loads((folder / "counts.json").read_text())
        if stuck or process.returncode:
            why = (
                "it did not end"
                if stuck
                else f"the process ended with {process.returncode}"
            )
            current = folder / "current"
            content = current.read_bytes() if current.exists() else b""
            keep(folder, f"{name}-last", content, {}, f"{why}\n{last}")
            counts["failed"] += 1
            counts["failures"][why] = f"{name}-last"
        for saved in counts["failures"].values():
            FOUND.mkdir(exist_ok=True)
            for file in folder.glob(f"{saved}.*"):
                shutil.copy(file, FOUND / file.name)
        return counts | {"seconds": time.monotonic() - start}


def _wait(process: subprocess.Popen[bytes], folder: Path, seconds: float) -> bool:
    """Wait for a process; end it, and return True, where it has been silent for too long."""
    end = time.monotonic() + seconds + 2 * STUCK
    while process.poll() is None:
        time.sleep(0.1)
        current = folder / "current"
        silent = time.time() - current.stat().st_mtime if current.exists() else 0.0
        if silent > STUCK or time.monotonic() > end:
            process.kill()
            process.wait()
            return True
    return False


def everything(names: list[str], given: argparse.Namespace) -> int:
    """Run targets, print a line for each, and return the exit code."""
    engine = given.engine
    if engine == "auto":
        engine = "atheris" if has_atheris() and given.attempts == 0 else "random"
    workers = f"{given.workers} at a time"
    print(f"{given.seconds:g} s each, {workers}, seed {given.seed}, inputs by {engine}")
    heads = (
        f"{'attempts':>9} {'accepted':>9} {'compared':>9} {'failed':>7} {'slowest':>8}"
    )
    print(f"{'target':9} {heads} {'peak':>8}")
    failed = []
    with ThreadPoolExecutor(given.workers) as pool:
        counts = pool.map(lambda name: watched(name, given, engine), names)
        for name, c in zip(names, counts, strict=True):
            slow, peak = f"{c.get('slowest', 0.0):.2f} s", f"{c.get('peak_mb', 0)} MB"
            numbers = f"{c['attempts']:9,} {c['accepted']:9,} {c['compared']:9,} {c['failed']:7,}"
            print(f"{name:9} {numbers} {slow:>8} {peak:>8}", flush=True)
            empty = c["attempts"] == 0
            if c["failed"] or empty:
                failed.append(name)
            if empty:
                print(f"  {name} made no attempt")
            for where, saved in c["failures"].items():
                print(
                    f"  {where}\n  again: python -m fuzz --replay fuzz/found/{saved}.bytes"
                )
    print(
        f"FAILED: {', '.join(failed)}"
        if failed
        else f"{len(names)} targets, none failed"
    )
    return 1 if failed else 0


def replay(path: Path) -> int:
    """Make one attempt again; its exception is what is asked for."""
    name = path.name.split("-")[0]
    target(name)(path.read_bytes())
    print(f"{path.name}: nothing fails")
    return 0


def main() -> int:
    """Read the arguments."""
    parser = argparse.ArgumentParser(
        prog="python -m fuzz", description=__doc__.split("\n")[0]
    )
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=float, default=60.0, help="for each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--attempts", type=int, default=0, help="at most; 0: as many as fit"
    )
    parser.add_argument("--workers", type=int, default=2, help="targets at a time")
    parser.add_argument(
        "--engine", choices=["auto", "atheris", "random"], default="auto"
    )
    parser.add_argument("--replay", type=Path)
    parser.add_argument("--seeds", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.seeds:
        from fuzz import seeds

        seeds.write()
        return 0
    if given.replay is not None:
        return replay(given.replay)
    if given.one is not None:
        run(
            given.one,
            given.folder,
            given.seconds,
            given.seed,
            given.attempts,
            given.engine,
        )
        return 0
    if unknown := [name for name in given.targets if name not in TARGETS]:
        parser.error(f"targets are {', '.join(TARGETS)}; got {', '.join(unknown)}")
    return everything(given.targets or list(TARGETS), given)


if __name__ == "__main__":
    sys.exit(main())
