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

from .._monitor.history import (
    bins_before_and_since,
    change_intervals_by_batch,
    sums_by_batch,
)
from .._monitor.monitor import Monitor
from .._monitor.status import MonitorStatus
from .._monitor.store import Record
from .._utils.formatting import format_count
from .._utils.results import Floats
from ..exceptions import InputError
from ._layout import Places, two_by_two, write_footer, write_title
from ._style import (
    BAND,
    BLUE,
    DASHES,
    FAINT,
    INK,
    MARKERS,
    MUTED,
    REFERENCE_DASHES,
    SERIES,
    VERMILION,
    set_unit_range,
    style_axes,
    styled_figure,
    write_small_text,
)
from ._words import caption as caption_of
from ._words import fit_labels

MAX_BATCHES_MARKED = 30
"""Batches up to which each is a mark: more run together."""


@styled_figure
def monitor(
    monitor: Monitor, *, ax: Places = None, caption: bool = False
) -> list[Axes]:
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
        style_axes(panel)
    _draw_evidence(axes[0], records, status)
    _draw_effect_size(axes[1], records, status)
    in_time = _order_by_time(records)
    came_in_order = in_time == sorted(in_time)
    _draw_class_shares(axes[2], records, status, in_time)
    _draw_reliability(axes[3], records, status)
    for panel in axes[:2]:
        _label_batch_axis(panel, records, status)
    _label_batch_axis(
        axes[2], [records[k] for k in in_time], status, onset=came_in_order, named=True
    )
    write_footer(axes, [caption_of("monitor", status)] if caption else [], (), ax)
    return axes


def _order_by_time(records: Sequence[Record]) -> list[int]:
    """Return the places of the records in the order of their times; of names alone, by arrival."""
    if all(record.time == record.id for record in records):
        return list(range(len(records)))
    return sorted(range(len(records)), key=lambda k: records[k].time)


def _draw_evidence(ax: Axes, records: Sequence[Record], status: MonitorStatus) -> None:
    """Draw detector and evidence as powers of ten, with their thresholds."""
    x = np.arange(1, len(records) + 1)
    dots: dict[str, Any] = {}
    if len(x) <= MAX_BATCHES_MARKED:
        dots = {"marker": "o", "markersize": 3.5}
    # Calibrated rows reach 1 / alpha with probability alpha at most (Ville), and take `run_length`
    # batches until the detector reaches that, on average at least.
    thresholds = (math.log10(status.run_length), -math.log10(status.alpha))
    largest = 0.0
    for name, threshold, colour, dash, label in (
        ("log_detector", thresholds[0], BLUE, "-", "detector of a change"),
        (
            "log_evidence",
            thresholds[1],
            VERMILION,
            DASHES[1],
            "evidence since the start",
        ),
    ):
        y = np.array([float(record.numbers[name]) for record in records]) / math.log(
            10.0
        )
        ax.plot(x, y, color=colour, ls=dash, label=label, **dots)
        ax.axhline(threshold, color=colour, lw=0.9, ls=(0, (1, 2)), label="_threshold")
        largest = max(largest, float(y.max()), threshold)
    # Evidence grows without end once something is wrong: the axis ends where all is decided.
    most = 3.0 * max(thresholds)
    now = f"; largest: {_format_power_of_ten(largest, None)}" if largest > most else ""
    ax.set_ylim(max(-1.5, ax.get_ylim()[0]), min(largest, most) * 1.12 + 0.2)
    ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    ax.yaxis.set_major_formatter(FuncFormatter(_format_power_of_ten))
    ax.legend(loc="upper left")
    decides = "detector" if status.rule == "change" else "evidence"
    write_title(ax, "Evidence", f"dotted: thresholds; alarm by the {decides}{now}")


def _format_power_of_ten(value: float, _: Any) -> str:
    """Return a power of ten as a person writes it."""
    power = round(value)
    if power == 0:
        return "1"
    if power == 1:
        return "10"
    raised = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{raised}"


def _draw_effect_size(ax: Axes, records: list[Record], status: MonitorStatus) -> None:
    """Draw the probability on the wrong classes with its interval, before and since the onset."""
    found = np.array(
        change_intervals_by_batch(records, status.since, status.alpha), dtype=np.float64
    )
    low, value, high = 100 * np.maximum(0.0, found.T)
    x = np.arange(1, len(records) + 1)
    has_onset = status.since > 1
    parts = [slice(status.since - 1, None)]
    if has_onset:
        parts.insert(0, slice(0, status.since - 1))
    for part in parts:
        ax.fill_between(
            x[part], low[part], high[part], color=BAND, lw=0, label="_interval"
        )
        ax.plot(x[part], value[part], color=BLUE, label="_change")
    # The first intervals reach to 100 %: the scale is that of the usual and of the last one.
    top = max(float(np.median(high)), 1.25 * high[-1], 2.0 * value.max())
    ax.set_ylim(0.0, max(1.0, min(100.0, top)))
    ax.set_ylabel("percentage points")
    since = "before and since" if has_onset else "since the first batch"
    write_title(
        ax, "Probability on the wrong classes", f"as seen, with its interval, {since}"
    )


def _draw_class_shares(
    ax: Axes, records: list[Record], status: MonitorStatus, in_time: list[int]
) -> None:
    """Draw how often the classes of most evidence came true, less how often it was predicted."""
    n_rows = np.maximum(sums_by_batch(records, "n_rows"), 1.0)[:, None]
    excess = (
        100
        * (sums_by_batch(records, "counts") - sums_by_batch(records, "predicted"))
        / n_rows
    )
    order = sorted(
        range(len(status.classes)), key=lambda j: -status.classes[j].log_evidence
    )
    shown = order[:4]  # more lines could not be told apart in so small a panel
    names = fit_labels([share.label for share in status.classes])
    x = np.arange(1, len(records) + 1)
    ax.axhline(0.0, color=MUTED, lw=0.8, label="_none")
    for k, j in enumerate(shown):
        look: dict[str, Any] = {
            "color": SERIES[k],
            "ls": DASHES[k],
            "label": names[j],
            "lw": 1.1,
        }
        if len(x) <= MAX_BATCHES_MARKED:
            look |= {"marker": MARKERS[k], "markersize": 3.5}
        ax.plot(x, excess[in_time, j], **look)
    usual = float(
        np.quantile(np.abs(excess[:, shown]), 0.99)
    )  # but for a tiny batch now and then
    reach = 1.6 * usual + 0.5  # the legend stands above
    ax.set_ylim(-reach, reach)
    ax.legend(loc="upper left", ncols=2, columnspacing=1.2)
    ax.set_ylabel("percentage points")
    by = (
        "batch by batch"
        if in_time == sorted(in_time)
        else "batches in the order of their time"
    )
    write_title(ax, "Classes: came true less predicted", f"{by}; most evidence first")


def _draw_reliability(ax: Axes, records: list[Record], status: MonitorStatus) -> None:
    """Draw reliability in bins, before the onset and since."""
    ax.plot([0.0, 1.0], [0.0, 1.0], color=FAINT, lw=1.0, label="_diagonal")
    before, since = bins_before_and_since(records, status.since)
    if status.since > 1:
        _draw_binned_reliability(ax, before, MUTED, "o", "before")
        _draw_binned_reliability(ax, since, VERMILION, "D", "since")
    else:
        _draw_binned_reliability(ax, since, VERMILION, "D", "all batches")
    set_unit_range(ax)
    ax.set(
        xlabel="Probability of the most probable class", ylabel="Share that came true"
    )
    ax.legend(loc="upper left")
    write_title(
        ax, "Reliability, then and now", "lines: 95 % intervals, each by itself"
    )


def _draw_binned_reliability(
    ax: Axes, bins: Floats, colour: str, marker: str, word: str
) -> None:
    """Draw the bins of some batches: rows, and the sums of predictions and of hits over them."""
    bins_with_rows = bins[
        :, bins[0] >= 20
    ]  # fewer rows make a point that means nothing
    if bins_with_rows.shape[1] == 0:
        return
    n, sum_predicted, n_hits = bins_with_rows
    x = sum_predicted / n
    y = n_hits / n
    label = f"{word} ({format_count(float(bins[0].sum()))} rows)"
    ax.plot(x, y, color=colour, marker=marker, markersize=5.0, label=label)
    # Agresti and Coull (1998): two hits and two misses more, or no interval at 0 and at 1
    middle = (y * n + 2.0) / (n + 4.0)
    half = 1.96 * np.sqrt(middle * (1.0 - middle) / (n + 4.0))
    ax.errorbar(x, y, half, fmt="none", ecolor=colour, lw=0.8, alpha=0.7)


def _label_batch_axis(
    ax: Axes,
    records: Sequence[Record],
    status: MonitorStatus,
    onset: bool = True,
    named: bool = False,
) -> None:
    """Name batches under the axis, and mark where the departure seems to have begun."""
    n = len(records)
    ax.set_xlim(0.5, n + 0.5)
    ax.xaxis.set_major_locator(
        MaxNLocator(4, integer=True, prune="both" if n > 8 else None)
    )

    def word(value: float, _: Any) -> str:
        return records[int(value) - 1].time[:16] if 1 <= value <= n else ""

    ax.xaxis.set_major_formatter(FuncFormatter(word))
    if not status.onset_batch or not onset:
        return
    begin = status.since - 0.5
    ax.axvline(begin, color=INK, lw=0.9, ls=REFERENCE_DASHES, label="_onset")
    if not named:
        return
    at = (begin, 0.02)
    look: dict[str, Any] = {"coordinates": ("data", "axes fraction"), "color": MUTED}
    if status.since > 0.5 * n:  # words stand where there is more room
        write_small_text(
            ax, "since about here", at, (-4, 0), ha="right", va="bottom", **look
        )
    else:
        write_small_text(
            ax, "since about here", at, (4, 0), ha="left", va="bottom", **look
        )
