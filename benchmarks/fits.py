"""Whole fits (validation, estimate, test, standard errors) beside peers, over sizes.

Sizes are those of the target table, and a few more for the figure. A method whose time on fewer
rows of as many classes foretells more than the limit is not started.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import tables
from benchmarks.crew import R_METHODS, Crew, Record, suits
from benchmarks.data import predictions
from benchmarks.methods import FITS
from benchmarks.results import median

TARGETS = ("132x7", "8000x10", "100000x10", "1000000x10", "10000x100", "50000x1000")
SWEEP = ("1000x10", "10000x3", "10000x10", "10000x30", "10000x300")
QUICK = ("132x7", "1000x10", "8000x10", "2000x3", "2000x30")

ROUNDS, BUDGET = 11, 20.0
"""Most rounds, and the seconds after which a method sits out the others."""
SWEEP_LIMIT = 30.0
HOPELESS = 1.5
"""A method is not started when its expected time is this many times the limit."""

Sizes = dict[str, dict[str, Record]]
Keep = Callable[[str, dict[str, Record]], None]


def shape(size: str) -> tuple[int, int]:
    """Return rows and classes of a size written as 8000x10."""
    n, _, c = size.partition("x")
    return int(n), int(c)


def expected(done: Sizes, name: str, size: str) -> float | None:
    """Return the seconds that a method's largest smaller table of as many classes foretells."""
    n, c = shape(size)
    smaller = [s for s in done if shape(s)[1] == c and shape(s)[0] < n]
    for other in sorted(smaller, key=shape, reverse=True):
        record = done[other].get(name)
        if record is None or record["status"] in ("missing", "failed"):
            continue
        if record["status"] == "ok":
            return median(record["seconds"]) * n / shape(other)[0]
        if record["status"] == "over":
            return float(record["limit"]) * n / shape(other)[0]
        return float(record["expected"]) * n / shape(other)[0]
    return None


def measure(
    sizes: Iterable[str],
    *,
    rounds: int = ROUNDS,
    limit: float = 300.0,
    say: Callable[[str], None] = print,
    keep: Keep = lambda size, records: None,
) -> Sizes:
    """Return the records of every size; `keep` gets each as soon as it is there."""
    done: Sizes = {}
    with Crew([*FITS, *R_METHODS]) as crew, TemporaryDirectory(prefix="mcllo-bench-") as folder:
        for size in sorted(sizes, key=lambda s: shape(s)[::-1]):
            say(f"fits, {size}")
            most = limit if size in TARGETS else min(limit, SWEEP_LIMIT)
            done[size] = _one_size(crew, Path(folder), done, size, rounds, most)
            keep(size, done[size])
    return done


def _one_size(
    crew: Crew, folder: Path, done: Sizes, size: str, rounds: int, limit: float
) -> dict[str, Record]:
    n, c = shape(size)
    hopeless = {}
    for name in crew.names:
        seconds = expected(done, name, size)
        if seconds is not None and seconds > HOPELESS * limit:
            hopeless[name] = {"status": "skipped", "expected": seconds, "seconds": []}
    names = [name for name in crew.names if suits(name, c) and name not in hopeless]
    tables.write(folder, *predictions(n, c))
    timed = crew.measure(folder, names, rounds=rounds, budget=BUDGET, limit=limit)
    return {name: (timed | hopeless)[name] for name in crew.names if name in timed | hopeless}
