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


class DisplayUnit(NamedTuple):
    """How a number is printed: times `factor`, before `name`.

    It has so many decimals that `steps` of the last one are at most the width of its interval, and
    no more than `decimals`; below `least` (after the factor) it is not printed.
    """

    factor: float
    name: str
    steps: int
    decimals: int
    least: float


POINTS = DisplayUnit(100.0, " percentage points", 10, 1, 0.1)
PERCENT = DisplayUnit(100.0, " %", 2, 2, 0.0)
NATS = DisplayUnit(1.0, "", 4, 5, 0.0001)


def size_statements(
    effect_size: EffectSize, *, fits: bool = True, bounded: bool = True
) -> list[Statement]:
    """Return what the sizes say, in the order above; nothing of what is not known.

    `fits`: more than chance was not found to be left after the map. `bounded`: nor was any error
    that is no shift or slope.
    """
    statements = _model_free_statements(effect_size)
    statements += (
        _map_size_statements(effect_size, bounded)
        if fits
        else _map_misfit_statement(effect_size)
    )
    for level in effect_size.levels:
        says, right, ends = level_texts(level)
        interval = f" ({ends})" if ends else ""
        words = f"When it says {says}, it is right about {right}{interval}."
        statements.append(
            Statement("effect_size.level", words, numbers=level.to_dict())
        )
    if fits and bounded:
        statements += _map_level_statements(effect_size)
    if effect_size.reason:
        words = f"Sizes are rough: {effect_size.reason}."
        statements.append(
            Statement(
                "effect_size.reason", words, "doubt", {"method": effect_size.method}
            )
        )
    return statements


def _model_free_statements(effect_size: EffectSize) -> list[Statement]:
    """Return the lower limit that holds whatever the shape of the error."""
    if not POINTS.factor * effect_size.at_least >= POINTS.least:
        return []
    one_sided = 50.0 * (1.0 + effect_size.confidence)
    at_least = f"{percentage_points(effect_size.at_least)}{POINTS.name}"
    words = (
        f"At least {at_least} of probability stand on the wrong classes "
        f"on average, whatever the kind of error ({one_sided:g} % confidence)."
    )
    return [
        Statement(
            "effect_size.at_least", words, numbers={"at_least": effect_size.at_least}
        )
    ]


def _map_size_statements(effect_size: EffectSize, bounded: bool) -> list[Statement]:
    """Return the sizes of a map against which nothing speaks, as those of shifts and slopes."""
    average = f"{MAP_CONDITION}, {{}} of probability stand on the wrong classes on average{{}}."
    names = ("mean_change", "low", "high")
    statements = _size_statement(
        effect_size, "effect_size", average, POINTS, names, bounded
    )
    if effect_size.low > 0.0 and POINTS.factor * effect_size.p95_change >= POINTS.least:
        p95 = f"{percentage_points(effect_size.p95_change)}{POINTS.name}"
        words = f"In one row of twenty it is then more than {p95}."
        numbers = {"p95_change": effect_size.p95_change}
        statements.append(Statement("effect_size.p95", words, numbers=numbers))
    top = "The most probable class of a row is off by {} on average{}."
    names = ("top_mean_change", "top_low", "top_high")
    statements += _size_statement(
        effect_size, "effect_size.top", top, POINTS, names, bounded
    )
    gain = (
        "A recalibration by shifts and slopes would lower the log loss by {} per row{}."
    )
    names = ("gain", "gain_low", "gain_high")
    statements += _size_statement(
        effect_size, "effect_size.gain", gain, NATS, names, bounded
    )
    return statements


def _size_statement(
    effect_size: EffectSize,
    kind: str,
    words: str,
    unit: DisplayUnit,
    names: tuple[str, str, str],
    bounded: bool,
) -> list[Statement]:
    """Return the statement of one size, whose estimate, low and high have these names.

    None where it is not known, and where only its upper end says something and nothing may be said
    of that (`bounded`).
    """
    known = effect_size.to_dict()
    value, low, high = (float(getattr(effect_size, name)) for name in names)
    if math.isnan(value):
        return []
    if low <= 0.0 and not bounded:
        return []
    number, interval = amount_and_interval(
        value, low, high, unit, effect_size.confidence
    )
    sentence = words.format(number, interval)
    numbers = {name: known[name] for name in (*names, "confidence")}
    return [Statement(kind, sentence, numbers=numbers)]


def _map_misfit_statement(effect_size: EffectSize) -> list[Statement]:
    """Return that numbers of a map that does not describe the rows are no sizes of the error."""
    if math.isnan(effect_size.mean_change):
        return []
    words = (
        "Shifts and slopes of the log odds do not describe these rows; sizes that assume them are "
        "left out."
    )
    return [
        Statement(
            "effect_size", words, "doubt", {"mean_change": effect_size.mean_change}
        )
    ]


def _map_level_statements(effect_size: EffectSize) -> list[Statement]:
    """Return what the map says of each level: narrower, and true only if the map is."""
    statements = []
    for level in effect_size.levels:
        if math.isnan(level.map_low):
            continue
        by_map = (level.map_right, level.map_low, level.map_high)
        says, right, ends = level_texts(level, by_map)
        words = f"When it says {says}, the map says {right} ({ends})."
        statements.append(
            Statement("effect_size.map_level", words, numbers=level.to_dict())
        )
    return statements


def amount_and_interval(
    value: float, low: float, high: float, unit: DisplayUnit, confidence: float
) -> tuple[str, str]:
    """Return a number in words, and what is known of it, to stand in brackets after it.

    An upper end alone leaves out one tail of the interval, not both.
    """
    one_sided = f" ({50.0 * (1.0 + confidence):g} % confidence)"
    informative_below = MIN_UNINFORMATIVE_BOUND if unit is POINTS else math.inf
    if not high < informative_below:
        some = _format_number(value, unit, _decimals_for_width(value, unit))
        return f"about {some}{unit.name}", ", but these rows set no bounds"
    decimals = _decimals_for_width(high - low, unit)
    if unit.factor * high < unit.least:
        return f"less than {unit.least}{unit.name}", one_sided
    if low <= 0.0:
        return f"at most {_format_number(high, unit, decimals)}{unit.name}", one_sided
    number = _format_number(value, unit, decimals)
    ends = f"{_format_number(low, unit, decimals)} to {_format_number(high, unit, decimals)}"
    return f"{number}{unit.name}", f" ({100.0 * confidence:g} % confidence: {ends})"


def level_texts(
    level: RightAt, share: tuple[float, float, float] | None = None
) -> tuple[str, str, str]:
    """Return what it says, how often it is right, and the ends of the interval, if there is one.

    `share` is another estimate with its interval than that of the rows.
    """
    right, low, high = share or (level.right, level.low, level.high)
    width = high - low
    has_interval = not math.isnan(width)
    decimals = _decimals_for_width(width if has_interval else 0.04, PERCENT)
    ends = ""
    if has_interval:
        low_text = _format_number(low, PERCENT, decimals)
        high_text = _format_number(high, PERCENT, decimals)
        ends = f"{low_text} to {high_text}"
    says = f"{100.0 * level.says:g} %"
    return says, f"{_format_number(right, PERCENT, decimals)} %", ends


def percentage_points(share: float, width: float = math.nan) -> str:
    """Return a change in percentage points, as a number; `width` is that of its interval."""
    if math.isnan(width):
        width = share
    return _format_number(share, POINTS, _decimals_for_width(width, POINTS))


def _decimals_for_width(width: float, unit: DisplayUnit) -> int:
    """Return the decimals of numbers whose interval has this width."""
    last_decimal = unit.factor * width / unit.steps
    if not last_decimal > 0.0:
        return 0
    decimals = max(0, -math.floor(math.log10(last_decimal)))
    return min(unit.decimals, decimals)


def _format_number(value: float, unit: DisplayUnit, decimals: int) -> str:
    """Return a number with so many decimals, with more where it would round to 100 %.

    Examples
    --------
    >>> [_format_number(p, PERCENT, 0) for p in (0.84, 0.9996, 0.999999, 1.0)]
    ['84', '99.96', 'over 99.99', '100']
    """
    if math.isnan(value):
        return "-"
    for digits in range(decimals, unit.decimals + 1):
        text = f"{unit.factor * value:.{digits}f}"
        if unit is not PERCENT or value >= 1.0 or float(text) != 100.0:
            return text
    return "over 99.99"
