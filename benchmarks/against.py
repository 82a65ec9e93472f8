"""``python -m benchmarks against REVISION``: without the C kernel, beside an earlier revision.

The sources of the revision are taken from git into a temporary folder. Each method has one process
there and one here with ``MCLLO_KERNEL=numpy``, on one thread, timed in turn as in `race`; all of it
is done again with new processes, because where one lies in memory alone makes a tenth or more.
Printed are medians and by how many times this revision is slower. Nothing is written.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import tarfile
from tempfile import TemporaryDirectory

from benchmarks import machine
from benchmarks.machine import ROOT, Record, comma_separated, median, ratio
from benchmarks.methods import METHODS
from benchmarks.race import WITHOUT_C, Race
from benchmarks.speed import elements, rows, size_words

FITS = ["mcllo-1", "mcllo-gate", "auto", "auto-gate", "temperature", "vector", "matrix"]
FITS += ["dirichlet", "beta", "isotonic", "xu_davoine"]
SMALL = (
    "132x7",
    "132x7-forest",
    "500x10-large",
    "1000x10",
    "2000x10-large",
    "3000x15",
    "1000x20",
)
SIZES = (
    *SMALL,
    "8000x10",
    "8000x10-large",
    "10000x3",
    "10000x20",
    "10000x50",
    "100000x10",
)
EXACT, MOST_EXACT = "exact-1", 20_000
"""Exact p-values are simulated for so many elements at most."""
APPLIED = "apply-mcllo-1"
WORDS = {EXACT: "exact p-value", APPLIED: "applying MCLLO", "mcllo-1": "MCLLO"}
WORDS |= {"mcllo-gate": "MCLLO, gate=0.05"}


def methods(size: str) -> list[str]:
    """Return what is timed on a size.

    >>> EXACT in methods("2000x10-large"), EXACT in methods("8000x10")
    (True, False)
    """
    return [*FITS, APPLIED, *([EXACT] if elements(size) <= MOST_EXACT else [])]


def sources(revision: str, folder: str) -> str:
    """Put the package of a revision into a folder; return where it can be imported from."""
    command = ["git", "archive", "--format=tar", revision, "src"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return f"{folder}/src"


def line(size: str, method: str, found: Record) -> str:
    """Return a row of the table; `found` has the records of before and now.

    >>> took = {"before": {"seconds": [0.2]}, "now": {"seconds": [0.3]}}
    >>> line("1000x10", "auto", {k: v | {"status": "ok"} for k, v in took.items()})
    '| 1000 x 10 | AutoCalibrator | 200.0 ms | 300.0 ms | 1.50 |'
    """
    title = WORDS.get(method) or METHODS[method].timed or METHODS[method].title
    times, _ = ratio(found, "before", "now")
    took = [
        median(record["seconds"]) if record["seconds"] else None
        for record in found.values()
    ]
    words = [
        "none" if seconds is None else f"{1e3 * seconds:.1f} ms" for seconds in took
    ]
    return (
        " | ".join(
            [
                "| " + size_words(size),
                title,
                *words,
                "none" if times is None else f"{times:.2f}",
            ]
        )
        + " |"
    )


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks against")
    parser.add_argument("revision", help="of git, such as 74a0314")
    parser.add_argument("--sizes", type=comma_separated, default=list(SIZES))
    parser.add_argument("--methods", type=comma_separated, default=None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--again", type=int, default=2, help="times, with new processes"
    )
    chosen = parser.parse_args(arguments)
    print(
        f"{machine.now()}, load {machine.load()}\n\n| rows | | before | now | times |"
    )
    print("|---|---|---|---|---|", flush=True)
    taken: dict[tuple[str, str], list[float]] = {}
    with TemporaryDirectory(prefix="mcllo-bench-") as folder:
        trees = {"before": sources(chosen.revision, folder), "now": WITHOUT_C}
        chosen_for = {
            size: [m for m in chosen.methods or methods(size) if m in methods(size)]
            for size in chosen.sizes
        }
        for _ in range(chosen.again):
            with Race() as race:
                for size, names in chosen_for.items():
                    pairs = [f"{m}@{tree}" for m in names for tree in trees.values()]
                    found = race.run(rows(size), pairs, chosen.rounds, 8.0, 60.0)
                    for name, record in found.items():
                        taken.setdefault((size, name), []).extend(record["seconds"])
    for size, names in chosen_for.items():
        for method in names:
            found = {
                when: {"status": "ok", "seconds": taken[size, f"{method}@{tree}"]}
                for when, tree in trees.items()
            }
            print(line(size, method, found), flush=True)
