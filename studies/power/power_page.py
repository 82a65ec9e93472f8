"""The tables of ``docs/studies/power.md``, from the committed results."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from _common import markdown, percent, read_table

Row = dict[str, str]

VERDICTS = (
    (
        "the test is more powerful as n and the effect grow",
        "holds",
        "At delta_1 = 1.4 it rejects {power_400} of the data sets of 400 rows, {power_1000} of "
        "those of 1,000 and {power_5000} of those of 5,000, as large-sample theory says.",
    ),
    (
        "the test keeps its level, in this simulation",
        "holds",
        "Between {size_low} and {size_high} of the data sets in which nothing is wrong are "
        "rejected, {size_all} of all {null_reps}: a little too many where n is small.",
    ),
    (
        "the test keeps its level, for any predictions",
        "does not hold",
        "By chi-square it rejects {sharp_chi2} of the faultless sharp data sets of 250 rows and "
        "{sharp_chi2_500} of those of 500. The default p-value of this package does keep it.",
    ),
    (
        "the ECE as drawn grows with the effect",
        "cannot be told",
        "It does with our rows ({before_null} to {before_most} at n = 5,000), which we chose "
        "because it does. With rows that favour no class it hardly moves: {flat}.",
    ),
    (
        "after MCLLO the ECE is about the same whatever the effect",
        "holds",
        "At n = 5,000 its mean is {after_low} to {after_high}; that is the ECE of predictions with "
        "nothing wrong.",
    ),
    (
        "MCLLO lowers the ECE",
        "does not hold",
        "With our rows it does on average: in {lowered_most} of the data sets of 5,000 rows at "
        "delta_1 = 1.4, in {lowered_least} of those of 400 at 1.1. With rows that favour no class "
        "it does not, even at n = 5,000 and 1.4, where the test rejects nearly all: the mean "
        "change is {flat_gain}.",
    ),
    (
        "MCLLO has little effect on the ECE when the data are *not* calibrated",
        "does not hold",
        "The sentence must mean *when they are*, and so read it holds: the mean change at "
        "delta_1 = 1 is {null_low} to {null_high}.",
    ),
    (
        "the larger the effect, the more MCLLO lowers the ECE",
        "cannot be told",
        "It does with our rows, at every n, and not with rows that favour no class.",
    ),
    (
        "how much MCLLO lowers the ECE does not depend on n",
        "does not hold",
        "At delta_1 = 1.4 by {gain_low} to {gain_high} for n up to 1,000, by {gain_5000} at 5,000, "
        "{gain_z} standard errors more. It depends on n far less than the power does.",
    ),
    (
        "ECE moves with n and effect, so that thresholds mean little",
        "holds",
        "Faultless predictions have a mean ECE of {floor_400} at n = 400; those with delta_1 = 1.4 "
        "have {before_most} at n = 5,000.",
    ),
)


def blocks(results: Path) -> dict[str, str]:
    """Return the generated parts of the page."""
    cells = read_table(results / "cells.csv")
    return {
        "rejected": _matrix(
            cells, lambda row: f"{_three(row, 'rejected')} ({_three(row, 'theory')})"
        ),
        "ece": _matrix(
            cells, lambda row: f"{_four(row, 'ece_before')} → {_four(row, 'ece_after')}"
        ),
        "difference": _matrix(cells, _difference),
        "exact": _exact(read_table(results / "exact.csv")),
        "others": _others(read_table(results / "others.csv")),
        "sharp": _sharp(read_table(results / "sharp.csv")),
        "verdicts": _verdicts(results),
    }


def _matrix(cells: list[Row], word: Callable[[Row], str]) -> str:
    """Return a table with a line per n and a column per delta_1."""
    shifts = list(dict.fromkeys(row["delta_1"] for row in cells))
    by_size: dict[str, list[str]] = {}
    for row in cells:
        by_size.setdefault(row["n"], [_count(row["n"])]).append(word(row))
    return markdown(["n", *(f"delta_1 = {shift}" for shift in shifts)], by_size.values(), left=0)


def _rate(row: Row) -> str:
    return f"{_three(row, 'rejected')} ({_three(row, 'theory')})"


def _before_and_after(row: Row) -> str:
    return f"{_four(row, 'ece_before')} → {_four(row, 'ece_after')}"


def _difference(row: Row) -> str:
    return f"{_four(row, 'difference')} ± {_four(row, 'difference_se')}"


def _three(row: Row, name: str) -> str:
    return f"{float(row[name]):.3f}"


def _four(row: Row, name: str) -> str:
    return f"{float(row[name]):z.4f}".replace("-", "−")


def _count(text: str) -> str:
    return f"{int(text):,}"


def _interval(row: Row, low: str = "low", high: str = "high") -> str:
    return f"[{_three(row, low)}, {_three(row, high)}]"


def _exact(rows: list[Row]) -> str:
    header = ["n", "delta_1", "data sets", "exact", "interval", "chi-square", "same decision"]
    cells = [
        [
            _count(row["n"]),
            row["delta_1"],
            row["reps"],
            _three(row, "rejected_exact"),
            _interval(row),
            _three(row, "rejected_chi2"),
            percent(row["same_decision"]),
        ]
        for row in rows
    ]
    return markdown(header, cells, left=0)


def _others(rows: list[Row]) -> str:
    header = ["rows from", "n", "rejected: delta_1 = 1", "1.4", "ECE as drawn: delta_1 = 1", "1.4"]
    header += ["lowered by: delta_1 = 1", "1.4"]
    cells = []
    for null, shifted in zip(rows[::2], rows[1::2], strict=True):
        pair = (null, shifted)
        cells.append(
            [
                null["rows"],
                _count(null["n"]),
                *(_three(row, "rejected") for row in pair),
                *(_four(row, "ece_before") for row in pair),
                *(_four(row, "difference") for row in pair),
            ]
        )
    return markdown(header, cells)


def _sharp(rows: list[Row]) -> str:
    header = ["", "n", "expected errors", "data sets", "default", "interval", "chi-square"]
    header += ["interval", "chi-square, fair level"]
    words = {"null": "nothing is wrong", "overconfident": "gamma = 0.7"}
    cells = [
        [
            words[row["effect"]],
            _count(row["n"]),
            row["expected_errors"],
            row["reps"],
            _three(row, "rejected"),
            _interval(row),
            _three(row, "rejected_chi2"),
            _interval(row, "low_chi2", "high_chi2"),
            _three(row, "chi2_fair") if row["effect"] != "null" else "–",
        ]
        for row in rows
    ]
    return markdown(header, cells)


def _verdicts(results: Path) -> str:
    facts = _grid_facts(read_table(results / "cells.csv"))
    facts |= _other_facts(read_table(results / "others.csv"))
    null = [row for row in read_table(results / "sharp.csv") if row["effect"] == "null"]
    rates = {row["n"]: percent(row["rejected_chi2"], 0) for row in null}
    facts |= {"sharp_chi2": rates["250"], "sharp_chi2_500": rates["500"]}
    cells = [[claim, f"**{verdict}**", why.format(**facts)] for claim, verdict, why in VERDICTS]
    return markdown(["the paper says", "", "what we found"], cells, left=3)


def _grid_facts(cells: list[Row]) -> dict[str, str]:
    at = {(row["n"], row["delta_1"]): row for row in cells}
    null = [row for row in cells if row["delta_1"] == "1"]
    most = [row for row in cells if row["delta_1"] == "1.4" and row["n"] != "5000"]
    largest = [row for row in cells if row["n"] == "5000"]
    hits = sum(float(row["rejected"]) * int(row["reps"]) for row in null)
    trials = sum(int(row["reps"]) for row in null)
    return {
        **{f"power_{n}": percent(at[n, "1.4"]["rejected"], 0) for n in ("400", "1000", "5000")},
        **_range("size", null, "rejected", percent),
        "size_all": percent(str(hits / trials)),
        "null_reps": f"{trials:,}",
        "before_null": f"{float(at['5000', '1']['ece_before']):.3f}",
        "before_most": f"{float(at['5000', '1.4']['ece_before']):.3f}",
        **_range("after", largest, "ece_after", lambda text: f"{float(text):.3f}"),
        "lowered_most": percent(at["5000", "1.4"]["lowered"], 0),
        "lowered_least": percent(at["400", "1.1"]["lowered"], 0),
        **_range("null", null, "difference", lambda text: f"{float(text):.4f}"),
        **_range("gain", most, "difference", lambda text: f"{float(text):.3f}"),
        "gain_5000": f"{float(at['5000', '1.4']['difference']):.3f}",
        "gain_z": f"{_distance(at['1000', '1.4'], at['5000', '1.4']):.0f}",
        "floor_400": f"{float(at['400', '1']['ece_before']):.3f}",
    }


def _range(name: str, rows: list[Row], column: str, word: Callable[[str], str]) -> dict[str, str]:
    values = sorted((row[column] for row in rows), key=float)
    return {f"{name}_low": word(values[0]), f"{name}_high": word(values[-1])}


def _distance(a: Row, b: Row) -> float:
    """Return how many standard errors the mean change of ECE of two settings is apart."""
    error = math.hypot(float(a["difference_se"]), float(b["difference_se"]))
    return (float(b["difference"]) - float(a["difference"])) / error


def _other_facts(rows: list[Row]) -> dict[str, str]:
    ours = rows[0]["rows"]
    largest = [row for row in rows if row["n"] == "5000" and row["rows"] != ours]
    moves = [
        f"{_four(null, 'ece_before')} to {_four(shifted, 'ece_before')} for {null['rows']}"
        for null, shifted in zip(largest[::2], largest[1::2], strict=True)
    ]
    gains = sorted(largest[1::2], key=lambda row: float(row["difference"]))
    low, high = (_four(row, "difference") for row in (gains[0], gains[-1]))
    return {"flat": "; ".join(moves), "flat_gain": f"{low} to {high}"}
