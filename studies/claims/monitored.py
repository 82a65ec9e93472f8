"""A monitor on public data: 123 days of a three-class model whose log loss jumps on 2 November.

The data are those that PyPI's nannyml carries (``pip install --no-deps nannyml`` is enough: only
its files are read). Nothing is random, so that `reps` changes nothing; each day is a batch.
"""

from __future__ import annotations

import csv
import math
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path

import numpy as np

from mcllo import Monitor
from studies.claims import Rows
from studies.pages import grid

PAGE = "how-to/monitor-example.md"
PREFIX = "y_pred_proba_"
SHOWN = (
    "2020-09-01",
    "2020-10-01",
    "2020-10-31",
    "2020-11-01",
    "2020-11-02",
    "2020-11-03",
)
SHOWN += ("2020-11-04", "2020-12-01", "2021-01-01")


def days() -> list[tuple[str, np.ndarray, list[str], list[str]]]:
    """Return date, probabilities, labels and classes of each day."""
    found = find_spec("nannyml")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError(
            "the data come with nannyml: pip install --no-deps nannyml"
        )
    folder = Path(found.submodule_search_locations[0]) / "datasets" / "data"
    with (folder / "mc_analysis_gt.csv").open(encoding="utf-8") as file:
        labels = {row["id"]: row["y_true"] for row in csv.DictReader(file)}
    with (folder / "mc_analysis.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns = [name for name in rows[0] if name.startswith(PREFIX)]
    made = []
    for day, some in groupby(rows, lambda row: row["timestamp"][:10]):
        batch = list(some)
        probs = np.array([[float(row[name]) for name in columns] for row in batch])
        names = [name.removeprefix(PREFIX) for name in columns]
        made.append((day, probs, [labels[row["id"]] for row in batch], names))
    return made


def run(reps: int = 1) -> Rows:
    """Return one row for each day: what the monitor said that evening."""
    monitor, rows = None, list[dict[str, object]]()
    for day, probs, y, classes in days():
        monitor = monitor or Monitor.start(classes=classes)
        status = monitor.add(probs, y, batch=day)
        rows.append(
            {
                "day": day,
                "rows": len(y),
                "log_loss": monitor.history()["log_loss"][-1],
                "log_detector": status.log_detector,
                "log_evidence": status.log_evidence,
                "says": status.kind,
                "onset": status.onset_time,
                "change_low": status.change.low,
                "exponent": 1.0 / status.temperature.value,
                "exponent_low": 1.0 / status.temperature.high,
                "exponent_high": 1.0 / status.temperature.low,
            }
        )
    return rows


def table(rows: Rows) -> str:
    """Return some of the days, and the facts of the page."""
    first = next(row for row in rows if row["says"] == "alarm")
    before = rows[: rows.index(first)]
    highest = max(row["log_detector"] for row in before)
    shown = [
        {
            "day": row["day"],
            "rows": row["rows"],
            "log loss": f"{row['log_loss']:.3f}",
            "detector": _large(row["log_detector"]),
            "evidence": _large(row["log_evidence"]),
            "says": str(row["says"]).replace("_", " "),
            "exponent": f"{row['exponent']:.2f} ({row['exponent_low']:.2f} to "
            f"{row['exponent_high']:.2f})",
        }
        for row in rows
        if row["day"] in SHOWN
    ]
    facts = (
        f"The alarm came on {first['day']} and put the beginning on {first['onset']}. In the "
        f"{len(before)} days before there was none; the detector stood at {_large(highest)} of "
        "1,000 at most."
    )
    return f"{grid(shown)}\n\n{facts}"


def _large(log_value: float) -> str:
    if log_value > math.log(1e6):
        return f"10^{log_value / math.log(10.0):.0f}"
    return (
        f"{math.exp(log_value):,.0f}"
        if log_value > math.log(10.0)
        else f"{math.exp(log_value):.2g}"
    )
