"""Numbers as they are printed in the tables."""

from collections.abc import Sequence

from benchmarks.results import Results, median, quartiles


def digits(value: float, significant: int = 2) -> str:
    """Return a number with so many digits that mean something, and no exponent.

    Examples
    --------
    >>> [digits(v) for v in (0.0123, 0.5, 3.14159, 42.4, 133.3, 12345.6)]
    ['0.012', '0.50', '3.1', '42', '133', '12,346']
    """
    if value == 0.0:
        return "0"
    size = f"{value:.{significant - 1}e}"
    places = max(0, significant - 1 - int(size.partition("e")[2]))
    return f"{value:,.{places}f}"


def unit(seconds: float) -> tuple[float, str]:
    """Return the factor and the name of the unit that suits a time."""
    return (1e3, "ms") if seconds < 1.0 else (1.0, "s")


def time(seconds: float) -> str:
    """Return a time in milliseconds or seconds.

    Examples
    --------
    >>> time(0.00061), time(0.9), time(3.52), time(133.0)
    ('0.61 ms', '900 ms', '3.5 s', '133 s')
    """
    factor, name = unit(seconds)
    return f"{digits(factor * seconds)} {name}"


def spread(seconds: Sequence[float]) -> str:
    """Return median and quartiles, in the median's unit; a single time stands alone.

    Examples
    --------
    >>> spread([0.0041, 0.0040, 0.0045, 0.0050, 0.0042]), spread([12.3])
    ('4.2 ms [4.1, 4.5]', '12 s (once)')
    """
    middle = median(seconds)
    if len(seconds) == 1:
        return f"{time(middle)} (once)"
    factor, name = unit(middle)
    low, high = (digits(factor * end) for end in quartiles(seconds))
    return f"{digits(factor * middle)} {name} [{low}, {high}]"


def cell(record: Results | None) -> str:
    """Return a record as it stands in the table of times.

    Examples
    --------
    >>> cell({"status": "over", "limit": 300.0, "seconds": []}), cell(None)
    ('over 300 s', '')
    >>> cell({"status": "skipped", "expected": 1500.0, "seconds": []})
    'not run (about 1,500 s)'
    """
    if record is None:
        return ""
    if record["status"] == "over":
        return f"over {digits(record['limit'])} s"
    if record["status"] == "skipped":
        return f"not run (about {digits(record['expected'])} s)"
    if record["status"] == "missing":
        return "not installed"
    if record["status"] == "failed":
        return "failed"
    return spread(record["seconds"]) if record["seconds"] else ""


def size_words(size: str) -> str:
    """Return a size as people write it.

    Examples
    --------
    >>> size_words("1000000x10"), size_words("100000x10"), size_words("132x7")
    ('1M x 10', '100k x 10', '132 x 7')
    """
    n, _, c = size.partition("x")
    return f"{rows_words(int(n))} x {c}"


def rows_words(n: int) -> str:
    """Return a number of rows: 8000, 100k, 10M."""
    for step, letter in ((1_000_000, "M"), (1000, "k")):
        if n >= 10_000 and n % step == 0:
            return f"{n // step}{letter}"
    return str(n)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table.

    Examples
    --------
    >>> print(table(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = [head, ["---"] * len(head), *rows]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return text.replace("| " + " | ".join(["---"] * len(head)) + " |", "|---" * len(head) + "|")
