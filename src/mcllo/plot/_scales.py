"""Axes that hold estimates with intervals: limits that one wild interval does not ruin, few ticks.

Values are drawn where they are; what lies beyond the limits is cut, and an arrow says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from .._utils.formatting import format_number
from .._utils.results import Floats
from ._style import BLUE, MUTED, VERMILION, Mask, key_mark, marks, set_ticks

MAX_HALF_WIDTHS = 4.0
"""Half an interval may take this many times the median half before it is cut."""


@dataclass(frozen=True, eq=False)
class Estimates:
    """Estimates and intervals on the scale on which they are drawn (logs for a log axis).

    Ends are NaN where there is no interval; nothing changes at `reference`, and `cap` is the
    farthest distance from it that is drawn.
    """

    value: Floats
    low: Floats
    high: Floats
    reference: float
    cap: float

    @property
    def limits(self) -> tuple[float, float]:
        """Ends of the axis: all estimates, their intervals unless huge, and the reference."""
        half = np.maximum(self.value - self.low, self.high - self.value)
        usual = float(np.nanmedian(half)) if np.isfinite(half).any() else 0.0
        reach = np.minimum(np.nan_to_num(half), MAX_HALF_WIDTHS * usual)
        ends = np.concatenate([self.value - reach, self.value + reach, [self.reference]])
        low = max(float(ends.min()), self.reference - self.cap)
        high = min(float(ends.max()), self.reference + self.cap)
        margin = max(0.06 * (high - low), 0.01 * self.cap)
        return low - margin, high + margin

    @property
    def beyond(self) -> tuple[Mask, Mask]:
        """Rows that are cut at the left and at the right end of the axis."""
        left, right = self.limits
        known = np.isfinite(self.low)
        low, high = np.where(known, self.low, self.value), np.where(known, self.high, self.value)
        return low < left, high > right

    @property
    def excludes(self) -> Mask:
        """Where the interval excludes the reference; False where there is none."""
        return (self.low > self.reference) | (self.high < self.reference)


def draw_forest(ax: Axes, estimates: Estimates, *, log: bool) -> None:
    """Draw one row for each estimate, the first on top, and the line of the reference."""
    scale = np.exp if log else (lambda values: values)
    left, right = estimates.limits
    if log:
        ax.set_xscale("log")
    ax.set_xlim(float(scale(left)), float(scale(right)))
    ax.axvline(float(scale(estimates.reference)), color=MUTED, lw=1.0, ls=(0, (4, 3)), zorder=1)
    rows = np.arange(len(estimates.value))
    known = np.isfinite(estimates.low)
    low, high = (scale(np.clip(e, left, right)) for e in (estimates.low, estimates.high))
    colours = np.where(estimates.excludes, VERMILION, BLUE)[known].tolist()
    ax.hlines(rows[known], low[known], high[known], colors=colours, lw=1.6, label="_intervals")
    for mask, marker, colour, fill, label in (
        (known & ~estimates.excludes, "o", BLUE, BLUE, "_includes"),
        (known & estimates.excludes, "D", VERMILION, VERMILION, "_excludes"),
        (~known, "s", MUTED, "white", "_unknown"),
    ):
        inside = mask & (estimates.value > left) & (estimates.value < right)
        ax.plot(
            scale(estimates.value[inside]),
            rows[inside],
            ls="none",
            marker=marker,
            markersize=6.0,
            color=colour,
            markerfacecolor=fill,
            zorder=3,
            label=label,
        )
    for beyond, edge, marker in zip(estimates.beyond, (left, right), "<>", strict=True):
        end = np.full(len(rows), float(scale(edge)))
        marks(ax, end, beyond, marker, MUTED, f"_cut{marker}", zorder=4)
    ax.set_ylim(len(rows) - 0.4, -0.6)


def forest_key(drawn: Sequence[Estimates]) -> list[Artist]:
    """Return what stands for what, of all that occurs."""
    known = np.concatenate([np.isfinite(part.low) for part in drawn])
    outside = np.concatenate([part.excludes for part in drawn])
    cut = np.concatenate([side for part in drawn for side in part.beyond])
    entries = (
        (known & ~outside, key_mark("o", BLUE, "interval includes 1")),
        (known & outside, key_mark("D", VERMILION, "interval excludes 1")),
        (~known, key_mark("s", MUTED, "no interval", "white")),
        (cut, key_mark(">", MUTED, "beyond the axis")),
    )
    return [entry for mask, entry in entries if mask.any()]


def log_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return round numbers between two positive ones, 1 among them where it fits.

    Examples
    --------
    >>> log_ticks(0.4, 2.6), log_ticks(0.91, 1.12), log_ticks(5e-3, 5e2)
    ([0.5, 0.7, 1.0, 1.5, 2.0], [0.95, 1.0, 1.05, 1.1], [0.01, 0.1, 1.0, 10.0, 100.0])
    """
    if high / low < 3.0:
        step = _round_step((high - low) / (most - 1))
        return [round(k * step, 12) for k in range(math.ceil(low / step), int(high / step) + 1)]
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in ((1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        ticks = [digit * 10.0**k for k in decades for digit in digits]
        ticks = [round(t, 12) for t in ticks if low <= t <= high]
        if len(ticks) <= most:
            break
    return ticks[:: 1 + (len(ticks) - 1) // (most + 1)]


def _round_step(step: float) -> float:
    size = 10.0 ** math.floor(math.log10(step))
    return next(k * size for k in (1, 2, 5, 10) if k * size >= step * 0.999)


def plain_ticks(ax: Axes, *, log: bool, also: float | None = None) -> None:
    """Give the horizontal axis a few round numbers, and one more where it has room."""
    low, high = ax.get_xlim()
    if log:
        ticks = log_ticks(low, high)
    else:
        step = _round_step((high - low) / 4.5)
        ticks = [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]
        if also is not None and all(abs(also - tick) > 0.1 * (high - low) for tick in ticks):
            ticks.append(also)
    set_ticks(ax.xaxis, ticks, tick_word)


def tick_word(value: float) -> str:
    """Return a tick as a person writes it: ``0.5``, ``1``, ``−2``, ``1e-05``."""
    if value and abs(value) < 1e-4:
        return format_number(value, 1)
    return f"{round(value, 12) + 0.0:g}".replace("-", "−")
