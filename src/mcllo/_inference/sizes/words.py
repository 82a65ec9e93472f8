"""What a `Size` says: sentences in percentage points, with no more digits than are known.

====================  ==========================================================================
size                  how much probability stands on the wrong classes
size.p95              how much in the rows that are off most, where some are off for certain
size.top              how far the most probable class is off
size.gain             what a repair would save
size.level            "When it says 94 %, it is right about 84 % (81 to 87)."
size.reason           why numbers are missing or rough
====================  ==========================================================================

Where an interval begins at 0 only its other end is said, "at most". What rounds to nothing is "less
than" the smallest number that is printed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from ..._ground.statements import Statement

if TYPE_CHECKING:
    from ..size import Size
    from .levels import RightAt

NO_BOUND = 0.995
"""Change from which an upper end says nothing."""


class Unit(NamedTuple):
    """How a number is printed: times `factor`, before `name`.

    It has so many decimals that `steps` of the last one are at most the width of its interval, and
    no more than `decimals`; below `least` (after the factor) it is not printed.
    """

    factor: float
    name: str
    steps: int
    decimals: int
    least: float


POINTS = Unit(100.0, " percentage points", 10, 1, 0.1)
PERCENT = Unit(100.0, " %", 2, 2, 0.0)
NATS = Unit(1.0, "", 4, 5, 0.0001)


def size_statements(size: Size) -> list[Statement]:
    """Return what the sizes say, in the order above; nothing of what is not known."""
    known = size.to_dict()

    def said(kind: str, words: str, unit: Unit, *names: str) -> list[Statement]:
        value, low, high = (float(getattr(size, name)) for name in names)
        if math.isnan(value):
            return []
        amount = _amount(value, low, high, unit, f"{100.0 * size.confidence:g} % confidence")
        numbers = {name: known[name] for name in (*names, "confidence")}
        return [Statement(kind, words.format(*amount), numbers=numbers)]

    average = "On average {} of probability stand on the wrong classes{}."
    found = said("size", average, POINTS, "mean_change", "low", "high")
    if size.low > 0.0 and POINTS.factor * size.p95_change >= POINTS.least:
        most = _number(size.p95_change, POINTS, _decimals(size.p95_change, POINTS))
        words = f"In one row of twenty it is more than {most}{POINTS.name}."
        found.append(Statement("size.p95", words, numbers={"p95_change": size.p95_change}))
    top = "The most probable class of a row is off by {} on average{}."
    found += said("size.top", top, POINTS, "top_mean_change", "top_low", "top_high")
    gain = "A repair would lower the log loss by {} per row{}."
    found += said("size.gain", gain, NATS, "gain", "gain_low", "gain_high")
    for level in size.levels:
        says, right, ends = shown_level(level)
        words = f"When it says {says}, it is right about {right}{f' ({ends})' if ends else ''}."
        found.append(Statement("size.level", words, numbers=level.to_dict()))
    if size.reason:
        words = f"Sizes are rough: {size.reason}."
        found.append(Statement("size.reason", words, "doubt", {"method": size.method}))
    return found


def _amount(value: float, low: float, high: float, unit: Unit, sure: str) -> tuple[str, str]:
    """Return a number in words, and what is known of it, to stand in brackets after it."""
    if not high < (NO_BOUND if unit is POINTS else math.inf):
        some = _number(value, unit, _decimals(value, unit))
        return f"about {some}{unit.name}", ", but these rows set no bounds"
    decimals = _decimals(high - low, unit)
    if unit.factor * high < unit.least:
        return f"less than {unit.least}{unit.name}", f" ({sure})"
    if low <= 0.0:
        return f"at most {_number(high, unit, decimals)}{unit.name}", f" ({sure})"
    ends = f"{_number(low, unit, decimals)} to {_number(high, unit, decimals)}"
    return f"{_number(value, unit, decimals)}{unit.name}", f" ({sure}: {ends})"


def shown_level(level: RightAt) -> tuple[str, str, str]:
    """Return what it says, how often it is right, and the ends of the interval, if there is one."""
    width = level.high - level.low
    decimals = _decimals(0.04 if math.isnan(width) else width, PERCENT)
    right, low, high = (_number(p, PERCENT, decimals) for p in (level.right, level.low, level.high))
    ends = "" if math.isnan(width) else f"{low} to {high}"
    return f"{100.0 * level.says:g} %", f"{right} %", ends


def points(share: float, width: float = math.nan) -> str:
    """Return a change in percentage points, as a number; `width` is that of its interval."""
    return _number(share, POINTS, _decimals(share if math.isnan(width) else width, POINTS))


def _decimals(width: float, unit: Unit) -> int:
    """Return the decimals of numbers whose interval has this width."""
    steps = unit.factor * width / unit.steps
    return min(unit.decimals, max(0, -math.floor(math.log10(steps)))) if steps > 0.0 else 0


def _number(value: float, unit: Unit, decimals: int) -> str:
    """Return a number with so many decimals, with more where it would round to 100 %.

    Examples
    --------
    >>> [_number(p, PERCENT, 0) for p in (0.84, 0.9996, 0.999999, 1.0)]
    ['84', '99.96', 'over 99.99', '100']
    """
    if math.isnan(value):
        return "-"
    for digits in range(decimals, unit.decimals + 1):
        text = f"{unit.factor * value:.{digits}f}"
        if unit is not PERCENT or value >= 1.0 or float(text) != 100.0:
            return text
    return "over 99.99"
