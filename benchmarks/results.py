"""Raw timings as JSON, and the numbers that are made of them.

``results/latest.json`` holds every single time of the last full run; the page and the figure are
made of it alone. ``results/quick.json`` is what ``--quick`` wrote: a check that all runs, no more.
"""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from statistics import median as _median
from statistics import quantiles
from typing import Any

FOLDER = Path(__file__).resolve().parent / "results"
LATEST, QUICK = FOLDER / "latest.json", FOLDER / "quick.json"

Results = dict[str, Any]


def read(path: Path) -> Results:
    """Return what `write` wrote, or nothing."""
    return json.loads(path.read_text()) if path.exists() else {}


def write(path: Path, results: Results) -> None:
    """Write results under another name first, so that no half file is left behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".tmp")
    beside.write_text(json.dumps(rounded(results), indent=1, allow_nan=False) + "\n")
    beside.replace(path)


def rounded(value: Any) -> Any:
    """Return the value with floats of 6 digits (likelihoods keep 12), and None for no number."""
    if isinstance(value, dict):
        return {
            key: float(f"{v:.12g}") if key == "nll" and v is not None else rounded(v)
            for key, v in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [rounded(v) for v in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


def median(seconds: Sequence[float]) -> float:
    """Return the median."""
    return float(_median(seconds))


def quartiles(seconds: Sequence[float]) -> tuple[float, float]:
    """Return the first and the third quartile; of one time, that time twice."""
    if len(seconds) < 2:
        return float(seconds[0]), float(seconds[0])
    low, _, high = quantiles(seconds, n=4, method="inclusive")
    return low, high


def ratio(records: Results, ours: str, peer: str) -> tuple[float | None, bool]:
    """Return how many times as long as `ours` the peer took, and whether that is a lower bound.

    A peer that was ended at its limit took at least that long. None where nothing is known.
    """
    own, other = records.get(ours), records.get(peer)
    if not own or not other or not own["seconds"]:
        return None, False
    base = median(own["seconds"])
    if other["status"] == "over":
        return float(other["limit"]) / base, True
    return (median(other["seconds"]) / base, False) if other["seconds"] else (None, False)
