"""Applying a map to many rows: `MCLLOFit.recalibrate`, validation included, beside plain NumPy."""

from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import facts, tables
from benchmarks.crew import Crew
from benchmarks.data import predictions
from benchmarks.methods import APPLY

ROWS, FEWER, QUICK = 10_000_000, 4_000_000, 200_000
NEEDED_GB = 14.0
"""Free memory from which the 10 million rows are run as they are."""
SECONDS = {"budget": 60.0, "limit": 300.0}


def rows_that_fit() -> int:
    """Return how many rows there is memory for; times are scaled to 10 million and say so."""
    return ROWS if facts.free_gb() >= NEEDED_GB else FEWER


def measure(n: int, rounds: int = 5) -> dict[str, object]:
    """Return records on n x 10."""
    with Crew(APPLY) as crew, TemporaryDirectory(prefix="mcllo-bench-") as folder:
        tables.write(Path(folder), *predictions(n, 10))
        records = crew.measure(Path(folder), APPLY, rounds=rounds, **SECONDS)
    return {"rows": n, "records": records}
