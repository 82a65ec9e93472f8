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
"""Change from which an upper end says nothing: it would be printed as 100 percentage points."""


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
    statements = _without_a_model(size)
    statements += _by_the_map(size, bounded) if fits else _nearest_map(size)
    for level in size.levels:
        says, right, ends = shown_level(level)
        interval = f" ({ends})" if ends else ""
        words = f"When it says {says}, it is right about {right}{interval}."
        statements.append(
            Statement("effect_size.level", words, numbers=level.to_dict())
        )
    if fits and bounded:
        statements += _levels_by_the_map(size)
    if size.reason:
        words = f"Sizes are rough: {size.reason}."
        statements.append(
            Statement("effect_size.reason", words, "doubt", {"method": size.method})
        )
    return statements


def _without_a_model(size: EffectSize) -> list[Statement]:
    """Return the lower limit that holds whatever the shape of the error."""
    if not POINTS.factor * size.at_least >= POINTS.least:
        return []
    one_sided = 50.0 * (1.0 + size.confidence)
    words = (
        f"At least {points(size.at_least)}{POINTS.name} of probability stand on the wrong classes "
        f"on average, whatever the kind of error ({one_sided:g} % confidence)."
    )
    return [
        Statement("effect_size.at_least", words, numbers={"at_least": size.at_least})
    ]


def _by_the_map(size: EffectSize, bounded: bool) -> list[Statement]:
    """Return the sizes of a map against which nothing speaks, as those of shifts and slopes."""
    average = f"{MAP_CONDITION}, {{}} of probability stand on the wrong classes on average{{}}."
    names = ("mean_change", "low", "high")
    statements = _state_size(size, "effect_size", average, POINTS, names, bounded)
    if size.low > 0.0 and POINTS.factor * size.p95_change >= POINTS.least:
        words = f"In one row of twenty it is then more than {points(size.p95_change)}{POINTS.name}."
        numbers = {"p95_change": size.p95_change}
        statements.append(Statement("effect_size.p95", words, numbers=numbers))
    top = "The most probable class of a row is off by {} on average{}."
    names = ("top_mean_change", "top_low", "top_high")
    statements += _state_size(size, "effect_size.top", top, POINTS, names, bounded)
    gain = (
        "A recalibration by shifts and slopes would lower the log loss by {} per row{}."
    )
    names = ("gain", "gain_low", "gain_high")
    statements += _state_size(size, "effect_size.gain", gain, NATS, names, bounded)
    return statements


def _state_size(
    size: EffectSize,
    kind: str,
    words: str,
    unit: Unit,
    names: tuple[str, str, str],
    bounded: bool,
) -> list[Statement]:
    """Return the statement of one size, whose estimate, low and high have these names.

    None where it is not known, and where only its upper end says something and nothing may be said
    of that (`bounded`).
    """
    known = size.to_dict()
    value, low, high = (float(getattr(size, name)) for name in names)
    if math.isnan(value):
        return []
    if low <= 0.0 and not bounded:
        return []
    confidence = f"{100.0 * size.confidence:g} % confidence"
    number, interval = amount(value, low, high, unit, confidence)
    sentence = words.format(number, interval)
    numbers = {name: known[name] for name in (*names, "confidence")}
    return [Statement(kind, sentence, numbers=numbers)]


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
    statements = []
    for level in size.levels:
        if math.isnan(level.map_low):
            continue
        by_map = (level.map_right, level.map_low, level.map_high)
        says, right, ends = shown_level(level, by_map)
        words = f"When it says {says}, the map says {right} ({ends})."
        statements.append(
            Statement("effect_size.map_level", words, numbers=level.to_dict())
        )
    return statements


def amount(
    value: float, low: float, high: float, unit: Unit, sure: str
) -> tuple[str, str]:
    """Return a number in words, and what is known of it, to stand in brackets after it."""
    informative_below = MIN_UNINFORMATIVE_BOUND if unit is POINTS else math.inf
    if not high < informative_below:
        some = _number(value, unit, _decimals(value, unit))
        return f"about {some}{unit.name}", ", but these rows set no bounds"
    decimals = _decimals(high - low, unit)
    if unit.factor * high < unit.least:
        return f"less than {unit.least}{unit.name}", f" ({sure})"
    if low <= 0.0:
        return f"at most {_number(high, unit, decimals)}{unit.name}", f" ({sure})"
    number = _number(value, unit, decimals)
    ends = f"{_number(low, unit, decimals)} to {_number(high, unit, decimals)}"
    return f"{number}{unit.name}", f" ({sure}: {ends})"


def shown_level(
    level: RightAt, share: tuple[float, float, float] | None = None
) -> tuple[str, str, str]:
    """Return what it says, how often it is right, and the ends of the interval, if there is one.

    `share` is another estimate with its interval than that of the rows.
    """
    right, low, high = share or (level.right, level.low, level.high)
    width = high - low
    has_interval = not math.isnan(width)
    decimals = _decimals(width if has_interval else 0.04, PERCENT)
    ends = ""
    if has_interval:
        ends = (
            f"{_number(low, PERCENT, decimals)} to {_number(high, PERCENT, decimals)}"
        )
    says = f"{100.0 * level.says:g} %"
    return says, f"{_number(right, PERCENT, decimals)} %", ends


def points(share: float, width: float = math.nan) -> str:
    """Return a change in percentage points, as a number; `width` is that of its interval."""
    if math.isnan(width):
        width = share
    return _number(share, POINTS, _decimals(width, POINTS))


def _decimals(width: float, unit: Unit) -> int:
    """Return the decimals of numbers whose interval has this width."""
    last_decimal = unit.factor * width / unit.steps
    if not last_decimal > 0.0:
        return 0
    decimals = max(0, -math.floor(math.log10(last_decimal)))
    return min(unit.decimals, decimals)


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
