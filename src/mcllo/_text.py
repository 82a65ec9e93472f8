"""Numbers as people read them: the only place that rounds."""

from __future__ import annotations

import math
from collections.abc import Sequence

SMALLEST = 1e-300


def format_p(pvalue: float) -> str:
    """Return ``= 0.034``, ``= 0.0005``, ``= 2.1e-05`` or ``< 1e-300``; never ``= 0``.

    Examples
    --------
    >>> format_p(0.03412), format_p(0.0005), format_p(2.134e-5), format_p(0.0), format_p(1.0)
    ('= 0.034', '= 0.0005', '= 2.1e-05', '< 1e-300', '= 1')
    """
    if math.isnan(pvalue):
        return "not available"
    if pvalue < SMALLEST:
        return f"< {SMALLEST:.0e}"
    return f"= {pvalue:.1e}" if pvalue < 0.0001 else f"= {pvalue:.2g}"


def format_number(value: float, digits: int = 3) -> str:
    """Return about `digits` significant digits, two decimals near 1, an exponent only when far.

    Examples
    --------
    >>> format_number(0.94538), format_number(1220.97), format_number(3.1e-7), format_number(1.0)
    ('0.95', '1221', '3.1e-07', '1.00')
    """
    if math.isnan(value):
        return "-"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    size = abs(value)
    if size != 0.0 and not 1e-4 <= size < 1e7:
        return f"{value:.{digits - 1}g}"
    decimals = max(0, digits - 1 - (math.floor(math.log10(size)) if size >= 1.0 else 0))
    if 0.0 < size < 0.1:
        decimals = digits - 2 - math.floor(math.log10(size))
    return f"{value + 0.0:.{decimals}f}"  # + 0.0 turns -0.0 into 0.0


def format_interval(low: float, high: float) -> str:
    """Return ``[0.51, 0.60]``, or ``[-, -]`` when an end is not known."""
    if math.isnan(low) or math.isnan(high):
        return "[-, -]"
    return f"[{format_number(low)}, {format_number(high)}]"


def format_count(n: float) -> str:
    """Return a count with thousands separators: ``10,000``."""
    return f"{n:,.0f}"


def align(rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return rows of words as columns: the first `left` flush left, the others flush right."""
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            word.ljust(width) if j < left else word.rjust(width)
            for j, (word, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def ellipsis(text: object, width: int = 24) -> str:
    """Return `text` on one line, cut to `width` characters."""
    words = " ".join(str(text).split())
    return words if len(words) <= width else words[: width - 1] + "…"
