"""What a monitor has seen, batch by batch: a table for people, and numbers for Prometheus.

===========================  ==================================================================
`history_table`              one row a batch, in the order of arrival
`change_intervals_by_batch`  size after each batch, with its interval
`bins_before_and_since`      reliability of the most probable class before the onset and since
`prometheus_textfile`        gauges in the text format that node_exporter's collector reads
===========================  ==================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._utils.formatting import Table
from .._utils.results import Floats
from .confidence_sequences import alpha_for_start_batch, mean_confidence_sequence
from .e_values import EXPONENTS
from .status import MonitorStatus
from .store import Record

if TYPE_CHECKING:
    from .monitor import Monitor

PREFIX = "mcllo_monitor"


def sums_by_batch(records: list[Record], name: str) -> Floats:
    """Return a sum of each batch alone, one row a batch."""
    totals = np.stack([record.numbers[name] for record in records])
    return np.diff(totals, axis=0, prepend=np.zeros((1, *totals.shape[1:])))


def history_table(monitor: Monitor) -> Table:
    """Return a row for each batch."""
    records = monitor.records()
    if not records:
        return Table({"batch": [], "time": []})
    n_rows = sums_by_batch(records, "n_rows")
    n_judged = n_rows - sums_by_batch(records, "n_zero_labels")
    loss = sums_by_batch(records, "loss") / np.maximum(n_judged, 1.0)
    best_place = np.argmax([record.numbers["likelihood"] for record in records], axis=1)
    change_low, change, change_high = zip(
        *change_intervals_by_batch(records, 1, monitor.settings["alpha"]), strict=True
    )
    return Table(
        {
            "batch": [record.id for record in records],
            "time": [record.time for record in records],
            "added": [record.added for record in records],
            "rows": n_rows.astype(int).tolist(),
            "log_loss": loss.tolist(),
            "log_evidence": [
                float(record.numbers["log_evidence"]) for record in records
            ],
            "log_detector": [
                float(record.numbers["log_detector"]) for record in records
            ],
            "exponent": EXPONENTS[best_place].tolist(),
            "change": list(change),
            "change_low": list(change_low),
            "change_high": list(change_high),
        }
    )


def change_intervals_by_batch(
    records: list[Record], since_batch: int, alpha: float
) -> list[tuple[float, float, float]]:
    """Return low, value, high of the change after each batch; from `since_batch` on, since it."""
    found = []
    for record in records:
        start = since_batch if record.number >= since_batch else 1
        sums = {name: record.numbers[name] for name in ("witness", "n_units")}
        if start > 1:
            before = records[start - 2].numbers
            sums = {name: sums[name] - before[name] for name in sums}
        total, squares = sums["witness"].tolist()
        size = mean_confidence_sequence(
            total, squares, int(sums["n_units"]), alpha_for_start_batch(alpha, start)
        )
        found.append((size.low, size.value, size.high))
    return found


def bins_before_and_since(
    records: list[Record], since_batch: int
) -> tuple[Floats, Floats]:
    """Return bins (rows, sum of probabilities, right answers) before `since_batch` and from it."""
    now = records[-1].numbers["bins"]
    if since_batch <= 1:
        return np.zeros_like(now), now
    then = records[since_batch - 2].numbers["bins"]
    return then, now - then


def prometheus_textfile(status: MonitorStatus, monitor_name: str) -> str:
    """Return the status as gauges of Prometheus, with the monitor's name for a label."""
    label = monitor_name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    gauges: list[tuple[str, str, Any]] = [
        ("alarm", "1 after an alarm, else 0", int(status.kind == "alarm")),
        (
            "watch",
            "1 while the evidence is near its threshold, else 0",
            int(status.kind == "watch"),
        ),
        (
            "inconclusive",
            "1 while there are too few rows, else 0",
            int(status.kind == "inconclusive"),
        ),
        ("batches", "batches added", status.n_batches),
        ("rows", "rows added", status.n_rows),
        (
            "log_detector",
            "natural logarithm of the detector of a change",
            status.log_detector,
        ),
        ("log_run_length", "its threshold", float(np.log(status.run_length))),
        (
            "log_evidence",
            "natural logarithm of the evidence since the start",
            status.log_evidence,
        ),
        ("log_evidence_threshold", "its threshold", float(-np.log(status.alpha))),
        (
            "change_low",
            "mean probability on the wrong classes, at least",
            status.change.low,
        ),
        (
            "temperature",
            "best temperature, 1 is right, more is too sure",
            status.temperature.value,
        ),
    ]
    lines = []
    for key, words, value in gauges:
        full = f"{PREFIX}_{key}"
        lines += [f"# HELP {full} {words}", f"# TYPE {full} gauge"]
        lines.append(f'{full}{{monitor="{label}"}} {value:.10g}')
    return "\n".join(lines) + "\n"
