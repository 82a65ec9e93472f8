"""What studies and benchmarks write: tables as CSV, numbers as words, pages, and data files.

======================  ==========================================================================
`write`, `read`         rows as CSV with a few digits, so that the last bits of another processor
                        do not change a file; no times and no dates
`fill`                  a page: a template in which each ``{name}`` becomes a fact, and says how
`grid`                  a Markdown table that is not on the page, since its columns depend on rows
`between`               a page with something else between its markers
`ship`                  arrays for `mcllo.datasets`, with their checksum
======================  ==========================================================================
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import Formatter
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "src" / "mcllo" / "datasets" / "data"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"

Row = dict[str, Any]
Rows = list[Row]
Tables = dict[str, Rows]


def number(value: Any, digits: int = 6) -> str:
    """Return a value as it stands in a CSV file.

    >>> [number(value) for value in (1.0, 2 / 3, 1e-25, 7, True, None, float("nan"))]
    ['1', '0.666667', '1e-25', '7', 'yes', '', '']
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    return (
        f"{value:.{digits}g}" if isinstance(value, (float, np.floating)) else str(value)
    )


def parsed(text: str) -> int | float | str | None:
    """Return what a cell of a CSV file says.

    >>> [parsed(text) for text in ("12", "0.5", "yes", "")]
    [12, 0.5, 'yes', None]
    """
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text or None


def write(path: Path, rows: Sequence[Row], digits: int = 6) -> None:
    """Write rows as CSV, gzipped where the name says so; the first row names the columns."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(rows[0])
    writer.writerows([number(row[name], digits) for name in rows[0]] for row in rows)
    content = text.getvalue().encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        gzip.compress(content, mtime=0) if path.suffix == ".gz" else content
    )


def read(path: Path) -> Rows:
    """Return the rows of a CSV file, None where it has nothing."""
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    rows = csv.DictReader(io.StringIO(text, newline=""))
    return [{name: parsed(text) for name, text in row.items()} for row in rows]


def rounded(rows: Sequence[Row]) -> Rows:
    """Return rows as `read` would find them after `write`."""
    return [
        {name: parsed(number(value)) for name, value in row.items()} for row in rows
    ]


def column(rows: Iterable[Row], name: str) -> np.ndarray:
    """Return a column of numbers, NaN where the table has nothing."""
    return np.array(
        [np.nan if row[name] is None else row[name] for row in rows], dtype=float
    )


def p_word(p: float | None, method: str = "") -> str:
    """Return a p-value as a reader wants it, "≤" before a guaranteed bound.

    >>> [p_word(p) for p in (0.25, 0.00052, 3e-5, 0.0, None)], p_word(1e-9, "bound")
    (['0.250', '0.0005', '3.0e-05', '< 1e-300', '–'], '≤ 1.0e-09')
    """
    if p is None or p < 1e-299:
        return "–" if p is None else "< 1e-300"
    sign = "≤ " if method == "bound" else ""
    return sign + (
        f"{p:.1e}" if p < 0.0001 else f"{p:.4f}" if p < 0.001 else f"{p:.3f}"
    )


def percent(value: float, places: str = "") -> str:
    """Return a share in percent, by default with a decimal where it is small.

    >>> percent(0.713), percent(0.0312), percent(0.0), percent(0.713, "2")
    ('71 %', '3.1 %', '0 %', '71.30 %')
    """
    return f"{100 * value:.{places or int(0.0 < value < 0.0995)}f} %"


def digits(value: float, significant: int | str = 2) -> str:
    """Return a number with so many digits that mean something, and no exponent.

    >>> [digits(v) for v in (0.0123, 0.5, 3.14159, 42.4, 133.3, 12345.6, 0)]
    ['0.012', '0.50', '3.1', '42', '133', '12,346', '0']
    """
    size = int(f"{value:.{int(significant) - 1}e}".partition("e")[2])
    return f"{value:,.{max(0, int(significant) - 1 - size)}f}" if value else "0"


def time_word(seconds: float, _: str = "") -> str:
    """Return a time in milliseconds or seconds.

    >>> time_word(0.00061), time_word(0.9), time_word(3.52), time_word(133.0)
    ('0.61 ms', '900 ms', '3.5 s', '133 s')
    """
    return f"{digits(seconds)} s" if seconds >= 1.0 else f"{digits(1e3 * seconds)} ms"


def count(n: int, _: str = "") -> str:
    """Return a number of rows.

    >>> count(8000), count(100_000), count(10_000_000)
    ('8000', '100k', '10M')
    """
    step, letter = (1_000_000, "M") if n % 1_000_000 == 0 else (1000, "k")
    return f"{n // step}{letter}" if n >= 10_000 and n % step == 0 else str(n)


def signed(value: float, _: str = "") -> str:
    """Return a difference with its sign, and few digits after a 0.

    >>> signed(-0.03214), signed(0.00042), signed(1.234), signed(0.0)
    ('-0.0321', '+0.0004', '+1.23', '0')
    """
    if abs(value) < 5e-5:
        return "0"
    return f"{value:+.4f}" if abs(value) < 0.1 else f"{value:+.2f}"


FORMATS = {
    "%": percent,
    "p": p_word,
    "~": digits,
    "t": time_word,
    "k": count,
    "±": signed,
}


class Words(Formatter):
    """`str.format` for readers: with `FORMATS`, ``z`` for a true minus, and a word for None.

    >>> Words().format("{:%1}, p = {:p}, {:z.2f}, {:,}, {:.3f}", 0.125, 3e-5, -0.5, 1200, None)
    '12.5 %, p = 3.0e-05, −0.50, 1,200, –'
    >>> Words().format("{:~3} in {:t}, {:k} rows: {:±}", 2.5, 0.01, 100_000, -0.02)
    '2.50 in 10 ms, 100k rows: -0.0200'
    """

    def __init__(self, none: str = "–") -> None:
        self.none = none

    def format_field(self, value: Any, format_spec: str) -> str:
        """Return one value."""
        if value is None:
            return self.none
        if word := FORMATS.get(format_spec[:1]):
            return word(value, *filter(None, [format_spec[1:]]))
        text = format(value, format_spec)
        return text.replace("-", "−") if format_spec.startswith("z") else text


def say(words: str, row: Mapping[str, object], none: str = "–") -> str:
    """Return words with the values of a row, as `Words` has them."""
    return Words(none).vformat(words, (), row)


def grid(rows: Sequence[Mapping[str, object]]) -> str:
    """Return a Markdown table with the names of the columns, which depend on the rows.

    >>> print(grid([{"a": "1", "b": "2"}]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = [rows[0], ["---"] * len(rows[0]), *(row.values() for row in rows)]
    text = ["| " + " | ".join(map(str, line)) + " |" for line in lines]
    return "\n".join([text[0], text[1].replace(" ", ""), *text[2:]])


EACH = re.compile(r"(?m)^\{\*(\w+)\} (.*)$")
"""A line for each row of a fact."""


def names(template: str) -> set[str]:
    """Return the facts that a template asks for."""
    parts = Formatter().parse(EACH.sub(r"{\1}", template))
    return {
        re.split(r"[.\[]", field)[0] for _, field, _, _ in parts if field is not None
    }


def fill(
    template: str, facts: Mapping[str, Any], gaps: bool = False, none: str = "–"
) -> str:
    r"""Return the template with its facts, one for each ``{name}``; nothing may be left over.

    Names and formats are those of `Words`: ``{name:.3f}``, ``{name[mcllo][ece]:.3f}``. A line that
    begins with ``{*name}`` stands there for each row of that fact. With `gaps` a line with a fact
    that is None is left out; where it is a heading or nothing else, so is its section.

    >>> fill("It rejects {rate:%0} of {n:,}, {rate:%1}.", {"rate": 0.05, "n": 4000})
    'It rejects 5 % of 4,000, 5.0 %.'
    >>> rows = [{"set": "cat", "ece": 0.5}, {"set": "dog", "ece": None}]
    >>> print(fill("{*sets} | {set} | {ece:.2f} |", {"sets": rows}))
    | cat | 0.50 |
    | dog | – |
    >>> fill("It rejects {rate} of {n}.", {"rate": 0.05, "size": 1})
    Traceback (most recent call last):
    ValueError: the page asks for facts that are missing: n; and never uses: size.
    >>> text = "- {a}\n- No {b}.\n\n### Times\n\nAll:\n\n{times}\n"
    >>> fill(text, {"a": 1, "b": None, "times": None}, gaps=True)
    '- 1'
    """
    asked = names(template)
    if asked != set(facts):
        missing, unused = sorted(asked - set(facts)), sorted(set(facts) - asked)
        raise ValueError(
            f"the page asks for facts that are missing: {', '.join(missing) or 'none'}; "
            f"and never uses: {', '.join(unused) or 'none'}."
        )
    kept: list[str] = []
    for part in re.split(r"(?m)^(?=### )", template):
        lines = part.split("\n")
        empty = [
            line
            for line in lines
            if gaps and any(facts[n] is None for n in names(line))
        ]
        gone = any(re.match(r"### |\{\*|\{[^{}]*}$", line) for line in empty)
        if not (gone and part.startswith("### ")):
            kept += [line for line in lines if line not in empty]
    filled = []
    for line in kept:
        if row := EACH.match(line):
            filled += [say(row[2], each, none) for each in facts[row[1]]]
        else:
            filled.append(say(line, facts, none))
    text = "\n".join(filled)
    return re.sub(r"\n{3,}", "\n\n", text).strip() if gaps else text


def between(page: str, text: str, mark: str = "measured") -> str:
    r"""Return the page with `text` between its markers; a page of several tables has as many marks.

    >>> page = f"above {BEGIN} old {END} below"
    >>> between(page, "new") == f"above {BEGIN}\n\nnew\n\n{END} below"
    True
    """
    first, last = (words.replace("measured", mark) for words in (BEGIN, END))
    before, begin, rest = page.partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise ValueError(f"the page must hold {first} and {last}, in this order.")
    return f"{before}{first}\n\n{text}\n\n{last}{after}"


def ship(name: str, folder: Path = DATA, **arrays: Any) -> Path:
    """Write arrays for `mcllo.datasets`, the same bytes for the same numbers, and the checksum."""
    path, sums = folder / f"{name}.npz", folder / "SHA256SUMS"
    np.savez_compressed(path, **arrays)  # numpy gives every member the date 1980-01-01
    lines = sums.read_text().splitlines() if sums.exists() else []
    known = dict(reversed(line.split()) for line in lines)
    known[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    sums.write_text("".join(f"{known[file]}  {file}\n" for file in sorted(known)))
    return path
