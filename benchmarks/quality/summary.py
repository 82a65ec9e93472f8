"""Single cases -> one row for each set, size and method -> the numbers of the page.

A *pair* is a case in which both methods ran. Within a set and size, differences are averaged over
the seeds; then sets are averaged, each counting once. Seeds of a set are not independent, nor are
models of the same data, so that the interval of a mean over sets s in sources g is

    mean +- t_{G-1} sqrt(G / (G - 1) sum_g (sum_{s in g} (d_s - mean))^2) / S,

which is the usual t interval over sets when each source has one set.
"""

import csv
import gzip
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality.methods import NOTHING, REFERENCE

FOLDER = Path(__file__).resolve().parent
CELLS, FACTS = FOLDER / "results.csv.gz", FOLDER / "results.json"
METRICS = ("ll", "brier", "ece", "cw")
TIE = 1e-9
"""Differences of log loss up to this are none: a map that returns its input is no worse."""

Cell = dict[str, Any]
TEXT = ("set", "method", "reason")
COUNTS = ("n", "cases", "failed", "zeros", "pairs", "wins", "ties", "paired", "worse", "faster")
NUMBERS = (
    *(*METRICS, *(f"d_{metric}" for metric in METRICS)),
    *("d_sms", "worst", "wall", "ratio"),
)
COLUMNS = (*TEXT[:1], "n", "method", *COUNTS[1:], *NUMBERS, "reason")


def cells(records: Iterable[Mapping[str, Any]]) -> list[Cell]:
    """Return one row for each set, size and method, sorted."""
    found: dict[tuple[str, int, str], list[tuple[Any, Any, Any]]] = {}
    for record in records:
        done = record["methods"]
        sms, nothing = _ran(done.get(REFERENCE)), _ran(done.get(NOTHING))
        for name, result in done.items():
            found.setdefault((record["set"], record["n"], name), []).append((result, sms, nothing))
    return [_cell(*key, found[key]) for key in sorted(found)]


def _ran(result: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return None if result is None or "failed" in result else result


def _cell(name: str, n: int, method: str, triples: list[tuple[Any, Any, Any]]) -> Cell:
    """Return the row of one set, size and method; see `COLUMNS`."""
    good = [(result, sms, nothing) for result, sms, nothing in triples if _ran(result)]
    reasons = [result["failed"] for result, _, _ in triples if "failed" in result]
    cell: Cell = dict.fromkeys(NUMBERS) | dict.fromkeys(COUNTS, 0)
    cell |= {"set": name, "n": n, "method": method, "cases": len(triples), "failed": len(reasons)}
    cell["reason"] = max(sorted(set(reasons)), key=reasons.count) if reasons else ""
    if not good:
        return cell
    results = [result for result, _, _ in good]
    cell |= {metric: _mean([result[metric] for result in results]) for metric in METRICS}
    cell["wall"] = float(np.median([result["wall"] for result in results]))
    cell["zeros"] = sum(result["zero"] for result in results)
    cell |= _against_reference([(result, sms) for result, sms, _ in good if sms])
    return cell | _against_nothing([(result, base) for result, _, base in good if base])


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _against_reference(pairs: list[tuple[Any, Any]]) -> Cell:
    if not pairs:
        return {}
    apart = np.array([result["ll"] - sms["ll"] for result, sms in pairs])
    ratio = np.array([result["wall"] / sms["wall"] for result, sms in pairs])
    return {
        "pairs": len(pairs),
        "d_sms": _mean(apart),
        "wins": int((apart < -TIE).sum()),
        "ties": int((np.abs(apart) <= TIE).sum()),
        "ratio": float(np.median(ratio)),
        "faster": int((ratio <= 1.0).sum()),
    }


def _against_nothing(pairs: list[tuple[Any, Any]]) -> Cell:
    if not pairs:
        return {}
    apart = {m: np.array([result[m] - base[m] for result, base in pairs]) for m in METRICS}
    return {
        "paired": len(pairs),
        "worse": int((apart["ll"] > TIE).sum()),
        "worst": float(apart["ll"].max()),
        **{f"d_{metric}": _mean(values) for metric, values in apart.items()},
    }


@dataclass(frozen=True)
class Mean:
    """A mean over sets with its interval; no interval from a single source."""

    value: float
    low: float | None
    high: float | None
    sets: int


def clustered(values: Sequence[float], sources: Sequence[str], level: float = 0.95) -> Mean:
    """Return the mean and its t interval, sets of one source taken together.

    Examples
    --------
    >>> found = clustered([1.0, 2.0, 3.0], ["a", "b", "c"])
    >>> round(found.low, 3), found.value, round(found.high, 3)  # 2 -+ 4.303 / sqrt(3)
    (-0.484, 2.0, 4.484)
    """
    from scipy.stats import t

    apart = np.asarray(values) - np.mean(values)
    names, group = np.unique(np.asarray(sources), return_inverse=True)
    g = len(names)
    mean = float(np.mean(values))
    if g < 2:
        return Mean(mean, None, None, len(apart))
    sums = np.bincount(group, weights=apart)
    error = np.sqrt(g / (g - 1) * (sums**2).sum()) / len(apart)
    half = float(t.ppf(0.5 + level / 2, g - 1) * error)
    return Mean(mean, mean - half, mean + half, len(apart))


def share(rows: Iterable[Cell], part: Sequence[str], whole: str) -> float | None:
    """Return the mean over sets and sizes of ``sum(part) / whole``; of ties half counts as won."""
    kept = [row for row in rows if row[whole]]
    if not kept:
        return None
    weights = {"ties": 0.5}
    return _mean([sum(weights.get(p, 1.0) * row[p] for p in part) / row[whole] for row in kept])


def write_cells(path: Path, rows: Sequence[Cell]) -> None:
    """Write rows as a gzipped CSV file whose bytes depend on the rows alone."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(COLUMNS)
    for row in rows:
        out.writerow([_word(row, column) for column in COLUMNS])
    path.write_bytes(gzip.compress(text.getvalue().encode(), 9, mtime=0))


def _word(row: Cell, column: str) -> str:
    """Return a number in few digits; scores themselves for doing nothing alone, to save room."""
    value = row[column]
    if value is None or (column in METRICS and row["method"] != NOTHING):
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def read_cells(path: Path) -> list[Cell]:
    """Return what `write_cells` wrote."""
    text = gzip.decompress(path.read_bytes()).decode()
    return [
        {key: value if key in TEXT else _number(key, value) for key, value in row.items()}
        for row in csv.DictReader(io.StringIO(text))
    ]


def _number(key: str, value: str) -> int | float | None:
    if key in COUNTS:
        return int(value)
    return float(value) if value else None
