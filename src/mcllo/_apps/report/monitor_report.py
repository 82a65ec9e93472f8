"""A monitor as one page: what it says, the pictures, the classes, every batch.

Words are the status's statements; style, tables and pictures are those of every other report.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ... import plot
from ..._monitor.monitor import Monitor
from ..._monitor.status import MonitorStatus, format_exp
from ..._utils.atomic_files import StrPath, check_writable, write_text
from ..._utils.formatting import format_interval, format_number
from ..._utils.statements import Statement, select_statements
from ..._version import __version__
from ...exceptions import PYTHON, InputError, Names
from ...plot._style import without_display
from .facts import today
from .html import render_result_page
from .views import Column, Picture, TableCell, TableView

SENTENCES = ("evidence", "size", "classes", "zeros", "learned")
"""Kinds of statements that stand below the headline."""
TONES = {"alarm": "miscalibrated", "watch": "negligible"}
"""The verdict of an assessment whose colours a status takes."""


def write_monitor_report(
    monitor: Monitor,
    path: StrPath,
    *,
    title: str = "",
    date: str = "",
    names: Names = PYTHON,
) -> None:
    """Write a monitor's report, as HTML or Markdown by the ending of `path`."""
    kind = Path(path).suffix.lower()
    if kind not in (".html", ".htm", ".md"):
        raise InputError(
            f"path must end in .html or .md; got {Path(path).name!r}. Choose one of these."
        )
    check_writable(path)
    write_text(
        path,
        monitor_page(monitor, html=kind != ".md", title=title, date=date, names=names),
    )


def monitor_page(
    monitor: Monitor,
    *,
    html: bool = True,
    title: str = "",
    date: str = "",
    names: Names = PYTHON,
) -> str:
    """Return the page of a monitor, as HTML or as Markdown."""
    status = monitor.status()
    said = status.statements(names)
    name = title or (
        f"Monitor {Path(monitor.path).stem}" if monitor.path else "Monitor"
    )
    pictures = [_monitor_picture(monitor, status)] if html else []
    return render_result_page(
        {
            "title": name,
            "question": "Are the probabilities still right?",
            "pictures_title": "Over time",
            "picture_shape": "wide",
            "promise_title": "What this guarantees",
            "tone": TONES.get(status.kind, status.kind),
            "kind": status.kind,
            "headline": _statement_text(said, "monitor"),
            "sentences": [str(s) for s in select_statements(said, *SENTENCES)],
            "step": _statement_text(said, "step"),
            "promise": _statement_text(said, "promise"),
            "tables": [_class_share_table(status), _batch_table(monitor)],
            "pictures": pictures,
            "version": __version__,
            "date": date or today(),
        },
        html=html,
    )


def _statement_text(said: Sequence[Statement], kind: str) -> str:
    return str(select_statements(said, kind)[0])


def _monitor_picture(monitor: Monitor, status: MonitorStatus) -> Picture:
    alt = (
        f"Four panels over {status.n_batches} batches: evidence with its thresholds, size with its "
        "interval, classes, and reliability before the onset and since. The tables have the "
        "numbers."
    )
    with without_display():
        axes = plot.monitor(monitor)
    svg = plot.to_svg(axes, alt=alt, salt="monitor", themed=True)
    return Picture("monitor", svg, "", plot.caption("monitor", status), alt)


def _class_share_table(status: MonitorStatus) -> TableView:
    rows = []
    for share in status.classes:
        off = share.difference
        rows.append(
            (
                TableCell(str(share.label)),
                TableCell(f"{100 * share.observed:.1f} %", share.observed),
                TableCell(f"{100 * share.predicted:.1f} %", share.predicted),
                TableCell(f"{100 * off.value:+.1f}", off.value),
                TableCell(format_interval(100 * off.low, 100 * off.high), off.low),
                TableCell(
                    format_exp(share.log_evidence),
                    share.log_evidence,
                    mark="off" if share.named else "",
                    note="named by e-BH" if share.named else "",
                ),
            )
        )
    since = f"since {status.onset_time}" if status.onset_time else "in all batches"
    return TableView(
        "shares",
        f"Classes {since}, in per cent and percentage points. ◆: named by e-BH.",
        (
            Column("Class", "name"),
            Column("Came true"),
            Column("Predicted"),
            Column("Difference"),
            Column("Interval", help="holds at every batch at once"),
            Column("e-value", help="evidence against this class's probabilities alone"),
        ),
        tuple(rows),
    )


def _batch_table(monitor: Monitor) -> TableView:
    rows = [
        (
            TableCell(row["batch"]),
            TableCell(row["time"]),
            TableCell(f"{row['rows']:,}", row["rows"]),
            TableCell(f"{row['log_loss']:.4f}", row["log_loss"]),
            TableCell(format_exp(row["log_detector"]), row["log_detector"]),
            TableCell(format_exp(row["log_evidence"]), row["log_evidence"]),
            TableCell(format_number(row["exponent"]), row["exponent"]),
        )
        for row in monitor.history().rows()
    ]
    return TableView(
        "batches",
        "Every batch, in the order of arrival; exponent: the best temperature so far.",
        (
            Column("Batch", "name"),
            Column("Time", "words"),
            Column("Rows"),
            Column("Log loss"),
            Column("Detector"),
            Column("Evidence"),
            Column("Exponent"),
        ),
        tuple(rows),
    )
