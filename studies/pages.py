"""What the studies write: tables as CSV, numbers as words, pages, and the package's data files.

======================  ==========================================================================
`write`, `read`         rows as CSV with a few digits, so that the last bits of another processor
                        do not change a file; no times and no dates
`table`                 rows as lines of a Markdown table, whose head stands on the page
`fill`                  a page: a template in which each ``{name}`` becomes a fact, and says how
`ship`                  arrays for `mcllo.datasets`, with their checksum
======================  ==========================================================================
"""

from __future__ import annotations

import csv
import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import Formatter
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "src" / "mcllo" / "datasets" / "data"

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
    return f"{value:.{digits}g}" if isinstance(value, (float, np.floating)) else str(value)


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
    """Write rows as CSV; the first row names the columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(rows[0])
        writer.writerows([number(row[name], digits) for name in rows[0]] for row in rows)


def read(path: Path) -> Rows:
    """Return the rows of a CSV file, None where it has nothing."""
    with path.open(newline="", encoding="utf-8") as file:
        return [{name: parsed(text) for name, text in row.items()} for row in csv.DictReader(file)]


def rounded(rows: Sequence[Row]) -> Rows:
    """Return rows as `read` would find them after `write`."""
    return [{name: parsed(number(value)) for name, value in row.items()} for row in rows]


def column(rows: Iterable[Row], name: str) -> np.ndarray:
    """Return a column of numbers, NaN where the table has nothing."""
    return np.array([np.nan if row[name] is None else row[name] for row in rows], dtype=float)


def p_word(p: float | None, method: str = "") -> str:
    """Return a p-value as a reader wants it, "≤" before a guaranteed bound.

    >>> [p_word(p) for p in (0.25, 0.00052, 3e-5, 0.0, None)], p_word(1e-9, "bound")
    (['0.250', '0.0005', '3.0e-05', '< 1e-300', '–'], '≤ 1.0e-09')
    """
    if p is None or p < 1e-299:
        return "–" if p is None else "< 1e-300"
    sign = "≤ " if method == "bound" else ""
    return sign + (f"{p:.1e}" if p < 0.0001 else f"{p:.4f}" if p < 0.001 else f"{p:.3f}")


class Words(Formatter):
    """`str.format` for readers: ``%1`` is percent, ``p`` a p-value, ``z`` a true minus, None –.

    >>> Words().format("{:%1}, p = {:p}, {:z.2f}, {:,}, {:.3f}", 0.125, 3e-5, -0.5, 1200, None)
    '12.5 %, p = 3.0e-05, −0.50, 1,200, –'
    """

    def format_field(self, value: Any, format_spec: str) -> str:
        """Return one value."""
        if value is None:
            return "–"
        if format_spec.startswith("%"):
            return f"{100 * value:.{format_spec[1:]}f} %"
        if format_spec == "p":
            return p_word(value)
        text = format(value, format_spec)
        return text.replace("-", "−") if format_spec.startswith("z") else text


def say(words: str, row: Row) -> str:
    """Return words with the values of a row, as `Words` has them."""
    return Words().vformat(words, (), row)


def table(rows: Iterable[Row], line: str) -> str:
    """Return the lines of a Markdown table.

    >>> print(table([{"set": "cat", "ece": 0.5}, {"set": "dog", "ece": None}], "{set} | {ece:.2f}"))
    | cat | 0.50 |
    | dog | – |
    """
    return "\n".join(say(f"| {line} |", row) for row in rows)


def fill(template: str, facts: Mapping[str, object]) -> str:
    """Return the template with its facts, one for each ``{name}``; nothing may be left over.

    Names and formats are those of `Words`: ``{name:.3f}``, ``{name[mcllo][ece]:.3f}``.

    >>> fill("It rejects {rate:%0} of {n:,}, {rate:%1}.", {"rate": 0.05, "n": 4000})
    'It rejects 5 % of 4,000, 5.0 %.'
    >>> fill("It rejects {rate} of {n}.", {"rate": 0.05, "size": 1})
    Traceback (most recent call last):
    ValueError: the page asks for facts that are missing: n; and never uses: size.
    """
    fields = [field for _, field, _, _ in Formatter().parse(template) if field is not None]
    asked = {field.partition("[")[0] for field in fields}
    if asked != set(facts):
        missing, unused = sorted(asked - set(facts)), sorted(set(facts) - asked)
        raise ValueError(
            f"the page asks for facts that are missing: {', '.join(missing) or 'none'}; "
            f"and never uses: {', '.join(unused) or 'none'}."
        )
    return say(template, facts)


def ship(name: str, folder: Path = DATA, **arrays: Any) -> Path:
    """Write arrays for `mcllo.datasets`, the same bytes for the same numbers, and the checksum."""
    path, sums = folder / f"{name}.npz", folder / "SHA256SUMS"
    np.savez_compressed(path, **arrays)  # numpy gives every member the date 1980-01-01
    lines = sums.read_text().splitlines() if sums.exists() else []
    known = dict(reversed(line.split()) for line in lines)
    known[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    sums.write_text("".join(f"{known[file]}  {file}\n" for file in sorted(known)))
    return path
