"""Numbers as the pages print them."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.machine import Record, median, quartiles


def digits(value: float, significant: int = 2) -> str:
    """Return a number with so many digits that mean something, and no exponent.

    >>> [digits(v) for v in (0.0123, 0.5, 3.14159, 42.4, 133.3, 12345.6, 0)]
    ['0.012', '0.50', '3.1', '42', '133', '12,346', '0']
    """
    if value == 0.0:
        return "0"
    size = int(f"{value:.{significant - 1}e}".partition("e")[2])
    return f"{value:,.{max(0, significant - 1 - size)}f}"


def spread(seconds: Sequence[float], quartered: bool = True) -> str:
    """Return median and quartiles, in the median's unit; a single time stands alone.

    >>> spread([0.0041, 0.0040, 0.0045, 0.0050, 0.0042]), spread([12.3])
    ('4.2 ms [4.1, 4.5]', '12 s (once)')
    """
    middle = median(seconds)
    factor, name = (1e3, "ms") if middle < 1.0 else (1.0, "s")
    said = f"{digits(factor * middle)} {name}"
    if not quartered:
        return said
    low, high = (digits(factor * end) for end in quartiles(seconds))
    return f"{said} [{low}, {high}]" if len(seconds) > 1 else f"{said} (once)"


def time(seconds: float) -> str:
    """Return a time in milliseconds or seconds.

    >>> time(0.00061), time(0.9), time(3.52), time(133.0)
    ('0.61 ms', '900 ms', '3.5 s', '133 s')
    """
    return spread([seconds], quartered=False)


def cell(record: Record | None) -> str:
    """Return a record as it stands in the table of times.

    >>> cell({"status": "over", "limit": 300.0, "seconds": []}), cell(None)
    ('over 300 s', '')
    >>> cell({"status": "skipped", "expected": 1500.0}), cell({"status": "missing"})
    ('not run (about 1,500 s)', 'not installed')
    """
    status = record["status"] if record else ""
    if not record or status == "ok":
        return spread(record["seconds"]) if record and record["seconds"] else ""
    if status == "over":
        return f"over {digits(record['limit'])} s"
    if status == "skipped":
        return f"not run (about {digits(record['expected'])} s)"
    return {"missing": "not installed", "failed": "failed"}[status]


def rows_words(n: int) -> str:
    """Return a number of rows.

    >>> rows_words(8000), rows_words(100_000), rows_words(10_000_000)
    ('8000', '100k', '10M')
    """
    for step, letter in ((1_000_000, "M"), (1000, "k")):
        if n >= 10_000 and n % step == 0:
            return f"{n // step}{letter}"
    return str(n)


def size_words(size: str) -> str:
    """Return a size as people write it: 100k x 10 for 100000x10."""
    n, _, c = size.partition("x")
    return f"{rows_words(int(n))} x {c}"


def percent(value: float | None) -> str:
    """Return a share in percent, with a decimal where it is small.

    >>> percent(0.713), percent(0.0312), percent(0.0), percent(None)
    ('71 %', '3.1 %', '0 %', '')
    """
    if value is None:
        return ""
    return f"{100 * value:.1f} %" if 0.0 < value < 0.0995 else f"{100 * value:.0f} %"


def signed(value: float | None) -> str:
    """Return a difference with its sign and three significant places after a 0.

    >>> signed(-0.03214), signed(0.00042), signed(1.234), signed(0.0), signed(None)
    ('-0.0321', '+0.0004', '+1.23', '0', '')
    """
    if value is None or abs(value) < 5e-5:
        return "" if value is None else "0"
    return f"{value:+.4f}" if abs(value) < 0.1 else f"{value:+.2f}"
