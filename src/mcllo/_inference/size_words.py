"""What a `Size` says: sentences in percentage points, with no more digits than are known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .._ground.statements import Statement
from .._ground.text import format_number

if TYPE_CHECKING:
    from .size import Size
    from .size_levels import RightAt


def size_statements(size: Size) -> list[Statement]:
    """Return what the sizes say, in order of importance; nothing where they are not known."""
    said = []
    if not math.isnan(size.mean_change):
        words = _sized(
            size.mean_change,
            size.low,
            size.high,
            size.confidence,
            "{} of probability {} on the wrong classes",
        )
        numbers = {"mean_change": size.mean_change, "low": size.low, "high": size.high}
        said.append(Statement("size", words, numbers=numbers))
    return said + [_level(level) for level in size.levels]


def _sized(value: float, low: float, high: float, confidence: float, about: str) -> str:
    sure = f"{100 * confidence:.0f} % confidence"
    if math.isnan(high):
        return f"On average about {about.format(points(value), 'stand')}."
    if low == 0.0:
        return f"On average at most {about.format(points(high), 'stand')} ({sure})."
    return (
        f"On average {about.format(points(value), 'stand')} ({sure}: {bare(low)} to {bare(high)})."
    )


def _level(level: RightAt) -> Statement:
    words = f"When it says {percent(level.says)}, it is right about {percent(level.right)}"
    if not math.isnan(level.low):
        words += f" ({bare(level.low)} to {bare(level.high)})"
    return Statement("size.level", f"{words}.", numbers=level.to_dict())


def bare(share: float) -> str:
    """Return a share in percent without its sign."""
    value = 100.0 * share
    return format_number(value, 2) if value < 10.0 else f"{value:.0f}"


def percent(share: float) -> str:
    """Return a share in percent."""
    return f"{bare(share)} %"


def points(share: float) -> str:
    """Return a share in percentage points."""
    return (
        "less than 0.1 percentage points" if share < 0.001 else f"{bare(share)} percentage points"
    )
