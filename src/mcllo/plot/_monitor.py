"""A monitor over time: evidence, size, shares of classes, reliability of then and now.

=================  ==============================================================================
evidence           detector and evidence after each batch, both over their thresholds
size               probability on the wrong classes, with the interval that holds at all times
shares             how often a class came less how often it was predicted, batch by batch; by time
                   where labels came out of order, while evidence is by arrival
reliability        of the most probable class, before the onset and since
=================  ==============================================================================
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from .._monitor.history import changes, single, then_and_now
from .._monitor.monitor import Monitor
from .._monitor.status import MonitorStatus
from .._monitor.store import Record
from .._utils.formatting import format_count
from .._utils.results import Floats
from ..exceptions import InputError
from ._layout import Places, footer, heading, two_by_two
from ._style import (
    BAND,
    BLUE,
    DASHES,
    FAINT,
    INK,
    MARKERS,
    MUTED,
    SERIES,
    SMALL_PT,
    VERMILION,
    plain_axes,
    styled_figure,
    unit_axes,
)
from ._words import caption as caption_of
from ._words import shown_all

MAX_SHOWN_CLASSES = 4
LOG_10 = math.log(10.0)
MAX_THRESHOLDS_SHOWN = 3.0
"""So many times the larger threshold, in logarithms, is the top of the scale."""
MIN_ROWS_IN_BIN = 20
"""Rows of a bin that is drawn."""


@styled_figure
def monitor(monitor: Monitor, *, ax: Places = None, caption: bool = False) -> list[Axes]:
    """Draw what a monitor has seen, in four panels.

    Parameters
    ----------
    monitor : Monitor
        A monitor with at least one batch.
    ax : array of Axes, Figure or SubFigure, optional
        Where to draw: four axes, or a part of a figure; a new figure when not given.
    caption : bool
        Write under the figure how to read it.

    Returns
    -------
    list of Axes
        Evidence, size, shares, reliability.

    See Also
    --------
    mcllo.Monitor : What is drawn.
    mcllo.MonitorStatus : The same in words.
    reliability : Rows instead of batches.

    Examples
    --------
    >>> import mcllo
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> watch = mcllo.Monitor.start(classes=["cat", "dog"])
    >>> for day in range(3):
    ...     probs = rng.dirichlet([1, 1], size=200)
    ...     status = watch.add(probs, ["cat", "dog"] * 100, batch=f"day {day}")
    >>> len(monitor(watch))
    4
    """
    records = monitor.records()
    if not records:
        raise InputError("monitor must have a batch to be drawn; it has none. Add one.")
    status = monitor.status()
    axes = two_by_two(ax, 9.2, 6.4)
    for panel in axes:
        plain_axes(panel)
    _draw_evidence(axes[0], records, status)
    _draw_size(axes[1], records, status)
    in_time = _in_time(records)
    ordered = in_time == sorted(in_time)
    _draw_shares(axes[2], records, status, in_time)
    _draw_reliability(axes[3], records, status)
    for panel in axes[:2]:
        _time_axis(panel, records, status)
    _time_axis(axes[2], [records[k] for k in in_time], status, onset=ordered, named=True)
    footer(axes, [caption_of("monitor", status)] if caption else [], (), ax)
    return axes


def _in_time(records: Sequence[Record]) -> list[int]:
    """Return the places of the records in the order of their times; of names alone, by arrival."""
    if all(record.time == record.id for record in records):
        return list(range(len(records)))
    return sorted(range(len(records)), key=lambda k: records[k].time)


def _draw_evidence(ax: Axes, records: Sequence[Record], status: MonitorStatus) -> None:
    x = np.arange(1, len(records) + 1)
    lines = (
        ("log_detector", BLUE, "-", "detector of a change", math.log(status.run_length)),
        ("log_evidence", VERMILION, DASHES[1], "evidence since the start", -math.log(status.alpha)),
    )
    top = 0.0
    for name, colour, dash, label, threshold in lines:
        y = np.array([float(record.numbers[name]) for record in records]) / LOG_10
        dots: dict[str, Any] = {"marker": "o", "markersize": 3.5} if len(x) <= 30 else {}
        ax.plot(x, y, color=colour, ls=dash, label=label, **dots)
        ax.axhline(threshold / LOG_10, color=colour, lw=0.9, ls=(0, (1, 2)), label="_threshold")
        top = max(top, float(y.max()), threshold / LOG_10)
    most = MAX_THRESHOLDS_SHOWN * max(math.log(status.run_length), -math.log(status.alpha)) / LOG_10
    now = f"; largest: {_power(top, None)}" if top > most else ""
    ax.set_ylim(max(-1.5, ax.get_ylim()[0]), min(top, most) * 1.12 + 0.2)
    ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    ax.yaxis.set_major_formatter(FuncFormatter(_power))
    ax.legend(loc="upper left", fontsize=SMALL_PT, labelcolor=INK)
    decides = "detector" if status.rule == "change" else "evidence"
    heading(ax, "Evidence", f"dotted: thresholds; alarm by the {decides}{now}")


def _power(value: float, _: Any) -> str:
    power = round(value)
    raised = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return {0: "1", 1: "10"}.get(power, f"10{raised}")


def _draw_size(ax: Axes, records: list[Record], status: MonitorStatus) -> None:
    found = changes(records, status.since, status.alpha)
    low, value, high = 100 * np.maximum(0.0, np.array(found, dtype=np.float64).T)
    parts = [slice(0, status.since - 1), slice(status.since - 1, None)]
    x, split = np.arange(1, len(records) + 1), status.since > 1
    for part in parts if split else parts[1:]:
        ax.fill_between(x[part], low[part], high[part], color=BAND, lw=0, label="_interval")
        ax.plot(x[part], value[part], color=BLUE, label="_change")
    shown = high[len(high) // 8 :] if len(high) > 8 else high
    ax.set_ylim(
        0.0, max(1.0, min(100.0, max(float(np.median(high)), 1.25 * shown[-1], 2.0 * value.max())))
    )
    ax.set_ylabel("percentage points")
    since = "before and since" if split else "since the first batch"
    heading(ax, "Probability on the wrong classes", f"as seen, with its interval, {since}")


def _draw_shares(
    ax: Axes, records: list[Record], status: MonitorStatus, in_time: list[int]
) -> None:
    rows = np.maximum(single(records, "n_rows"), 1.0)[:, None]
    off = 100 * (single(records, "counts") - single(records, "predicted")) / rows
    order = sorted(range(len(status.classes)), key=lambda j: -status.classes[j].log_evidence)
    names = shown_all([share.label for share in status.classes])
    x = np.arange(1, len(records) + 1)
    ax.axhline(0.0, color=MUTED, lw=0.8, label="_none")
    for k, j in enumerate(order[:MAX_SHOWN_CLASSES]):
        look: dict[str, Any] = {"color": SERIES[k], "ls": DASHES[k], "label": names[j], "lw": 1.1}
        if len(x) <= 30:
            look |= {"marker": MARKERS[k], "markersize": 3.5}
        ax.plot(x, off[in_time, j], **look)
    reach = float(np.quantile(np.abs(off[:, order[:MAX_SHOWN_CLASSES]]), 0.99)) * 1.6 + 0.5
    ax.set_ylim(-reach, reach)
    ax.legend(loc="upper left", fontsize=SMALL_PT, ncols=2, labelcolor=INK, columnspacing=1.2)
    ax.set_ylabel("percentage points")
    by = "batch by batch" if in_time == sorted(in_time) else "batches in the order of their time"
    heading(ax, "Classes: came true less predicted", f"{by}; most evidence first")


def _draw_reliability(ax: Axes, records: list[Record], status: MonitorStatus) -> None:
    parts = then_and_now(records, status.since)
    words = ("before", "since") if status.since > 1 else ("", "all batches")
    ax.plot([0.0, 1.0], [0.0, 1.0], color=FAINT, lw=1.0, label="_diagonal")
    for bins, colour, marker, word in zip(parts, (MUTED, VERMILION), "oD", words, strict=True):
        shown = bins[0] >= MIN_ROWS_IN_BIN
        if word and shown.any():
            n, sure, right = bins[:, shown]
            rows = format_count(float(bins[0].sum()))
            ax.plot(
                *(sure / n, right / n), color=colour, marker=marker, markersize=5.0,
                label=f"{word} ({rows} rows)",
            )  # fmt: skip
            error = 1.96 * np.sqrt(_variance(right / n, n))
            ax.errorbar(sure / n, right / n, error, fmt="none", ecolor=colour, lw=0.8, alpha=0.7)
    unit_axes(ax)
    ax.set(xlabel="Probability of the most probable class", ylabel="Share that came true")
    ax.legend(loc="upper left", fontsize=SMALL_PT, labelcolor=INK)
    heading(ax, "Reliability, then and now", "lines: 95 % intervals, each by itself")


def _variance(share: Floats, n: Floats) -> Floats:
    middle = (share * n + 2.0) / (n + 4.0)
    return middle * (1.0 - middle) / (n + 4.0)


def _time_axis(
    ax: Axes,
    records: Sequence[Record],
    status: MonitorStatus,
    onset: bool = True,
    named: bool = False,
) -> None:
    """Name batches under the axis, and mark where the departure seems to have begun."""
    n = len(records)
    ax.set_xlim(0.5, n + 0.5)
    ax.xaxis.set_major_locator(MaxNLocator(4, integer=True, prune="both" if n > 8 else None))

    def word(value: float, _: Any) -> str:
        return records[int(value) - 1].time[:16] if 1 <= value <= n else ""

    ax.xaxis.set_major_formatter(FuncFormatter(word))
    if status.onset_batch and onset:
        ax.axvline(status.since - 0.5, color=INK, lw=0.9, ls=(0, (4, 3)), label="_onset")
    if status.onset_batch and onset and named:
        left = status.since > 0.5 * n
        ax.annotate(
            "since about here", (status.since - 0.5, 0.02), (-4 if left else 4, 0),
            xycoords=("data", "axes fraction"), textcoords="offset points", fontsize=SMALL_PT,
            color=MUTED, ha="right" if left else "left", va="bottom", annotation_clip=False,
        )  # fmt: skip
