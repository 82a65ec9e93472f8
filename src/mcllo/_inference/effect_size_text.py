"""What a `EffectSize` says: sentences in percentage points, with no more digits than are known.

=====================  ======================================================================
effect_size.at_least   how much probability stands on the wrong classes at least; no model
effect_size            how much by the fitted map of shifts and slopes
effect_size.p95        how much in the rows that are off most, where some are off for certain
effect_size.top        how far the most probable class is off
effect_size.gain       what a recalibration by the map would save
effect_size.level      "When it says 94 %, it is right about 84 % (81 to 87)."; no model
effect_size.map_level  what the map says of the same level
effect_size.reason     why numbers are missing or rough
=====================  ======================================================================

A sentence that rests on the map says so. Where the map does not fit (`fits`) it is the nearest map
of its kind, and its interval says nothing of the truth. Where an interval begins at 0 only its
other end is said, "at most", and only where nothing was found beside shifts and slopes (`bounded`).
What rounds to nothing is "less than" the smallest number that is printed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from .._utils.statements import Statement

if TYPE_CHECKING:
    from .effect_size import EffectSize
    from .levels import RightAt

MAP_CONDITION = "If the error is one of shifts and slopes of the log odds"
"""What every size of the map assumes."""
MIN_UNINFORMATIVE_BOUND = 0.995
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


def size_statements(
    size: EffectSize, *, fits: bool = True, bounded: bool = True
) -> list[Statement]:
    """Return what the sizes say, in the order above; nothing of what is not known.

    `fits`: more than chance was not found to be left after the map. `bounded`: nor was any error
    that is no shift or slope.
    """
    found = _without_a_model(size)
    found += _by_the_map(size, bounded) if fits else _nearest_map(size)
    for level in size.levels:
        says, right, ends = shown_level(level)
        words = f"When it says {says}, it is right about {right}{f' ({ends})' if ends else ''}."
        found.append(Statement("effect_size.level", words, numbers=level.to_dict()))
    if fits and bounded:
        found += _levels_by_the_map(size)
    if size.reason:
        words = f"Sizes are rough: {size.reason}."
        found.append(Statement("effect_size.reason", words, "doubt", {"method": size.method}))
    return found


def _without_a_model(size: EffectSize) -> list[Statement]:
    """Return the lower limit that holds whatever the shape of the error."""
    if not POINTS.factor * size.at_least >= POINTS.least:
        return []
    least = _number(size.at_least, POINTS, _decimals(size.at_least, POINTS))
    words = (
        f"At least {least}{POINTS.name} of probability stand on the wrong classes on average, "
        f"whatever the kind of error ({50.0 * (1.0 + size.confidence):g} % confidence)."
    )
    return [Statement("effect_size.at_least", words, numbers={"at_least": size.at_least})]


def _by_the_map(size: EffectSize, bounded: bool) -> list[Statement]:
    """Return the sizes of a map against which nothing speaks, as those of shifts and slopes."""
    known = size.to_dict()

    def state_size(kind: str, words: str, unit: Unit, *names: str) -> list[Statement]:
        value, low, high = (float(getattr(size, name)) for name in names)
        if math.isnan(value) or (low <= 0.0 and not bounded):
            return []
        found = amount(value, low, high, unit, f"{100.0 * size.confidence:g} % confidence")
        numbers = {name: known[name] for name in (*names, "confidence")}
        return [Statement(kind, words.format(*found), numbers=numbers)]

    average = f"{MAP_CONDITION}, {{}} of probability stand on the wrong classes on average{{}}."
    found = state_size("effect_size", average, POINTS, "mean_change", "low", "high")
    if size.low > 0.0 and POINTS.factor * size.p95_change >= POINTS.least:
        most = _number(size.p95_change, POINTS, _decimals(size.p95_change, POINTS))
        words = f"In one row of twenty it is then more than {most}{POINTS.name}."
        found.append(Statement("effect_size.p95", words, numbers={"p95_change": size.p95_change}))
    top = "The most probable class of a row is off by {} on average{}."
    found += state_size("effect_size.top", top, POINTS, "top_mean_change", "top_low", "top_high")
    gain = "A recalibration by shifts and slopes would lower the log loss by {} per row{}."
    return found + state_size("effect_size.gain", gain, NATS, "gain", "gain_low", "gain_high")


def _nearest_map(size: EffectSize) -> list[Statement]:
    """Return that numbers of a map that does not describe the rows are no sizes of the error."""
    if math.isnan(size.mean_change):
        return []
    words = (
        "Shifts and slopes of the log odds do not describe these rows; sizes that assume them are "
        "left out."
    )
    return [Statement("effect_size", words, "doubt", {"mean_change": size.mean_change})]


def _levels_by_the_map(size: EffectSize) -> list[Statement]:
    """Return what the map says of each level: narrower, and true only if the map is."""
    found = []
    for level in size.levels:
        if math.isnan(level.map_low):
            continue
        by_map = (level.map_right, level.map_low, level.map_high)
        says, right, ends = shown_level(level, by_map)
        words = f"When it says {says}, the map says {right} ({ends})."
        found.append(Statement("effect_size.map_level", words, numbers=level.to_dict()))
    return found


def amount(value: float, low: float, high: float, unit: Unit, sure: str) -> tuple[str, str]:
    """Return a number in words, and what is known of it, to stand in brackets after it."""
    if not high < (MIN_UNINFORMATIVE_BOUND if unit is POINTS else math.inf):
        some = _number(value, unit, _decimals(value, unit))
        return f"about {some}{unit.name}", ", but these rows set no bounds"
    decimals = _decimals(high - low, unit)
    if unit.factor * high < unit.least:
        return f"less than {unit.least}{unit.name}", f" ({sure})"
    if low <= 0.0:
        return f"at most {_number(high, unit, decimals)}{unit.name}", f" ({sure})"
    ends = f"{_number(low, unit, decimals)} to {_number(high, unit, decimals)}"
    return f"{_number(value, unit, decimals)}{unit.name}", f" ({sure}: {ends})"


def shown_level(
    level: RightAt, share: tuple[float, float, float] | None = None
) -> tuple[str, str, str]:
    """Return what it says, how often it is right, and the ends of the interval, if there is one.

    `share` is another estimate with its interval than that of the rows.
    """
    right, low, high = share or (level.right, level.low, level.high)
    width = high - low
    decimals = _decimals(0.04 if math.isnan(width) else width, PERCENT)
    ends = (
        "" if math.isnan(width) else " to ".join(_number(p, PERCENT, decimals) for p in (low, high))
    )
    return f"{100.0 * level.says:g} %", f"{_number(right, PERCENT, decimals)} %", ends


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
