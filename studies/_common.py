"""What the studies share: tables, figures and data files that come out the same on every run.

Numbers in tables have a few digits, so that the last bits of another processor do not change a
file; tables hold no times and no dates.
"""

from __future__ import annotations

import csv
import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs" / "studies"
DATA = ROOT / "src" / "mcllo" / "datasets" / "data"

Row = Mapping[str, Any]


def number(value: Any, digits: int = 6) -> str:
    """Return a value as it stands in a table: few digits, nothing for None and NaN."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (float, np.floating)):
        return f"{value:.{digits}g}"
    return str(value)


def write_table(path: Path, rows: Sequence[Row], digits: int = 6) -> None:
    """Write rows as CSV; the first row names the columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(rows[0])
        writer.writerows([number(row[name], digits) for name in rows[0]] for row in rows)


def read_table(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file as text."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def column(rows: Iterable[Mapping[str, str]], name: str) -> np.ndarray:
    """Return a column of numbers, NaN where the table has nothing."""
    return np.array([float(row[name]) if row[name] else np.nan for row in rows])


def differences(fresh: Path, committed: Path, rtol: float = 1e-3) -> list[str]:
    """Return the cells in which two tables differ; none when they hold the same results."""
    new, old = read_table(fresh), read_table(committed)
    if len(new) != len(old) or (new and list(new[0]) != list(old[0])):
        return [f"{committed.name}: other rows or columns"]
    return [
        f"{committed.name}, row {i}, {name}: {a[name]} and {b[name]}"
        for i, (a, b) in enumerate(zip(new, old, strict=True))
        for name in a
        if a[name] != b[name] and not _close(a[name], b[name], rtol)
    ]


def _close(a: str, b: str, rtol: float) -> bool:
    try:
        return math.isclose(float(a), float(b), rel_tol=rtol, abs_tol=1e-9)
    except ValueError:
        return False


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """Return a Markdown table; the first `left` columns are words, the others numbers."""
    marks = ["---" if i < left else "---:" for i in range(len(header))]
    lines = [header, marks, *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def percent(text: str, digits: int = 1) -> str:
    """Return a fraction of a table in percent; nothing for nothing."""
    return f"{100 * float(text):.{digits}f} %" if text else ""


def p_word(text: str, method: str = "") -> str:
    """Return a p-value of a table as a reader wants it."""
    if not text:
        return ""
    p = float(text)
    if p < 1e-299:
        return "< 1e-300"
    sign = "≤ " if method == "bound" else ""
    return sign + (f"{p:.1e}" if p < 0.0001 else f"{p:.4f}" if p < 0.001 else f"{p:.3f}")


def fill(page: Path, blocks: Mapping[str, str]) -> None:
    """Replace what stands between ``<!-- name -->`` and ``<!-- end name -->`` of a page."""
    text = page.read_text(encoding="utf-8")
    for name, block in blocks.items():
        pattern = rf"(<!-- {name} -->\n).*?(<!-- end {name} -->)"
        text, count = re.subn(
            pattern, lambda m, b=block: f"{m[1]}\n{b}\n\n{m[2]}", text, flags=re.DOTALL
        )
        if count != 1:
            raise SystemExit(f"{page.name} must hold one block {name!r}; found {count}.")
    page.write_text(text, encoding="utf-8")


def ship(name: str, folder: Path = DATA, **arrays: Any) -> Path:
    """Write arrays for `mcllo.datasets`, the same bytes for the same numbers, and the checksum."""
    path = folder / f"{name}.npz"
    np.savez_compressed(path, **arrays)  # numpy gives every member the date 1980-01-01
    sums = folder / "SHA256SUMS"
    known = dict(reversed(line.split()) for line in _lines(sums))
    known[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    sums.write_text("".join(f"{known[file]}  {file}\n" for file in sorted(known)))
    return path


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
