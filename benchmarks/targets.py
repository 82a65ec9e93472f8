"""What was asked of speed and quality, and whether the results say so.

Demands stand in the pages, as sentences with a place for the number; here are the numbers, and how
results are held against them. What is judged is MCLLO as it comes, with threads or processes where
it starts them; what it does on one thread (``mcllo-1``) stands beside it. Peers have one BLAS
thread. The bound for a pass is one thread's, and so is what is held against it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.machine import Record, median, ratio
from benchmarks.methods import GATED, OURS
from benchmarks.quality import GROUPS, View
from benchmarks.speed import APPLY_ROWS, TARGETS, bound, shape, whole_study
from benchmarks.words import digits, percent, rows_words, signed, time

NS_PER_ROW = 24.0
"""The least a pass can take at c = 10 on the machine the targets were written on (AVX-512)."""
PARQUET_ROWS = 100_000_000
WIN_RATE, WORSE, CHANGED, NEGLIGIBLE = 0.6, 0.03, 0.05, 0.001
"""Least win rate, most harm in cases, most changed by the gate, most mean cost of a change."""


@dataclass(frozen=True)
class Outcome:
    """One demand: whether it was met, what was measured, the number asked for, and if not met."""

    met: bool | None = None
    measured: str = "not measured"
    asked: str = ""
    otherwise: str = "**not met**"

    @property
    def verdict(self) -> str:
        """The last column."""
        return "not measured" if self.met is None else "met" if self.met else self.otherwise


def outcome(asked: float, margin: float | None, measured: str, at_least: bool = False) -> Outcome:
    """Return an outcome by its margin: 1 is just met, 2 is twice as good, None is not measured.

    >>> outcome(4, 0.6, "2.4 times").verdict, outcome(4, 0.6, "", at_least=True).verdict
    ('**not met**, by a factor of 1.67', 'not decided: the peer was ended at its limit')
    """
    if margin is None:
        return Outcome(asked=f"{asked:g}")
    otherwise = f"**not met**, by a factor of {digits(1.0 / margin, 3)}"
    if at_least:
        otherwise = "not decided: the peer was ended at its limit"
    return Outcome(margin >= 1.0, measured, f"{asked:g}", otherwise)


def faster(
    records: Record, times: float, peer: str, ours: str = "mcllo", rows: str = "", **beside: str
) -> Outcome:
    """At least so many times as fast as a peer; what else is compared with it stands beside.

    >>> took = {"mcllo": 0.005, "mcllo-1": 0.004, "ts": 0.012}
    >>> records = {name: {"status": "ok", "seconds": [took[name]]} for name in took}
    >>> faster(records, 2, "ts").measured, faster(records, 2, "sms").verdict
    ('2.4 times (one thread 3.0)', 'not measured')
    """
    found, least = ratio(records, ours, peer)
    if found is None:
        return outcome(times, None, "")
    words = f"{'at least ' if least else ''}{digits(found)} times"
    for name, method in (beside or {"one_thread": "mcllo-1"}).items():
        other, _ = ratio(records, method, peer)
        words += f" ({name.replace('_', ' ')} {digits(other)})" if other is not None else ""
    return outcome(times, found / times, words + rows, least)


def within(record: Record, asked: float, unit: float = 1.0) -> Outcome:
    """At most so many seconds, or milliseconds."""
    if not record["seconds"]:
        return outcome(asked, None, "")
    found, peak = median(record["seconds"]), record.get("peak_mb")
    memory = f", {digits(peak / 1000.0)} GB" if peak and peak > 1000.0 else ""
    return outcome(asked, asked * unit / found, time(found) + memory)


def near_bound(results: Record, size: str, times: float) -> Outcome:
    """Each pass on one thread within so many times the bound.

    >>> record = {"seconds": [0.06], "steps": 5}  # 0.06 s / 100,000 rows / 5 passes = 120 ns
    >>> found = near_bound({"fits": {"100000x10": {"mcllo-1": record}}}, "100000x10", 5)
    >>> found.measured, found.verdict
    ('120 ns a row and pass (5 passes)', 'met')
    """
    record = results["fits"].get(size, {}).get("mcllo-1", {"seconds": []})
    if not record["seconds"]:
        return outcome(times, None, "")
    each = 1e9 * median(record["seconds"]) / shape(size)[0] / record["steps"]
    words = f"{digits(each, 3)} ns a row and pass ({record['steps']} passes)"
    if results.get("limits"):
        own = bound(results["limits"])
        words += f"; {digits(each / own)} times this machine's {digits(own)} ns"
    return outcome(times, times * NS_PER_ROW / each, words)


def studied(part: Record | None, times: float) -> Outcome:
    """The power study so many times as fast as a loop."""
    if not part:
        return outcome(times, None, "")
    ours, loop = whole_study(part)
    one, found = digits(loop / ours), loop / ours * part["gain"]
    words = f"{digits(found)} times in {part['processes']} processes, {one} in one"
    return outcome(times, found / times, f"{words}; scaled from a part")


def from_file(part: Record | None, gigabytes: float, times: float) -> tuple[Outcome, Outcome]:
    """Memory of a fit from a file, and its time in units of passes.

    >>> part = {"rows": 10_000_000, "passes": 5, "pass": {"seconds": [2.0]}}
    >>> part["fit"] = {"seconds": [12.0], "peak_mb": 400.0}
    >>> [found.measured for found in from_file(part, 1, 1.5)]
    ['400 MB, on 10M rows', '1.2 times: 12 s, 5 passes of 2.0 s, on 10M rows']
    """
    if not part or not part["passes"] or not part["fit"]["seconds"] or not part["pass"]["seconds"]:
        return outcome(gigabytes, None, ""), outcome(times, None, "")
    on = "" if part["rows"] == PARQUET_ROWS else f", on {rows_words(part['rows'])} rows"
    peak, fit, one = part["fit"]["peak_mb"], *(median(part[k]["seconds"]) for k in ("fit", "pass"))
    found = fit / (part["passes"] * one)
    words = f"{digits(found)} times: {time(fit)}, {part['passes']} passes of {time(one)}{on}"
    memory = outcome(gigabytes, 1000 * gigabytes / peak, f"{digits(peak, 3)} MB{on}")
    return memory, outcome(times, times / found, words)


def speed_outcomes(results: Record) -> dict[str, Outcome]:
    """Return the targets of speed, by their names on the page; a quick run decides nothing."""
    sklearn, none = "sklearn-temperature", {"seconds": []}
    fits = {size: results["fits"].get(size, {}) for size in TARGETS}
    small, rows_8000, rows_100k, rows_1m, classes_100, classes_1000 = fits.values()
    apply = results.get("apply", {"records": {}, "rows": APPLY_ROWS})
    fewer = "" if apply["rows"] == APPLY_ROWS else f", on {rows_words(apply['rows'])} rows"
    memory, passes = from_file(results.get("parquet"), 1, 1.5)
    found = {
        "small": within(small.get("mcllo", none), 2, 1e-3),
        "sklearn_8000": faster(rows_8000, 4, sklearn),
        "r_gradient": faster(rows_8000, 50, "r-analytic"),
        "r_paper": faster(rows_8000, 500, "r-numeric"),
        "sklearn_100k": faster(rows_100k, 4, sklearn),
        "bound_100k": near_bound(results, "100000x10", 5),
        "sklearn_1m": faster(rows_1m, 4, sklearn),
        "bound_1m": near_bound(results, "1000000x10", 5),
        "sklearn_100": faster(classes_100, 1.5, sklearn),
        "estimate_1000": within(classes_1000.get("mcllo-estimate", none), 4),
        "fit_1000": within(classes_1000.get("mcllo", none), 8),
        "sklearn_1000": faster(classes_1000, 2, sklearn, "mcllo-estimate",
                               with_standard_errors="mcllo", one_thread="mcllo-1"),
        "applied": faster(apply["records"], 3, "apply-softmax", "apply-mcllo", fewer,
                          one_thread="apply-mcllo-1"),
        "studied": studied(results.get("study"), 10),
        "file_memory": memory,
        "file_time": passes,
    }  # fmt: skip
    if not results["quick"]:
        return found
    return {k: o if o.met is None else Outcome(False, o.measured, o.asked, "quick run")
            for k, o in found.items()}  # fmt: skip


def by_size(view: View, number: Any, words: Any, fits: Callable[[float], bool] = bool) -> Outcome:
    """A demand that must hold at every size."""
    known = {n: value for n in view.sizes if (value := number(n)) is not None}
    text = "; ".join(f"{words(value)} at {rows_words(n)}" for n, value in known.items())
    return Outcome(all(map(fits, known.values())), text) if known else Outcome()


def harm(view: View) -> Outcome:
    """Seldom worse than doing nothing."""
    found = view.worse(OURS)
    if found is None:
        return Outcome()
    each = by_size(view, lambda n: view.worse(OURS, n), percent).measured
    worst = max(row["worst"] for row in view.of(OURS, column="worst"))
    average = np.mean([row["d_ll"] > 1e-9 for row in view.of(OURS, column="d_ll")])
    by = f"at most by {digits(max(worst, 0.0))}"
    text = f"in the mean over seeds, {percent(float(average))} of sets and sizes"
    return Outcome(found <= WORSE, f"{percent(found)} of cases ({each}), {by}; {text}")


def gate(view: View) -> Outcome:
    """Seldom changes what needs no repair, and then little."""
    rows = [row for row in view.facts.get("harmless", []) if row["method"] == GATED]
    rows = [row for row in rows if row["repetitions"]]
    if not rows:
        return Outcome()
    total = sum(row["repetitions"] for row in rows)
    changed = sum(row["changed"] for row in rows) / total
    cost = sum(row["kl"] * row["repetitions"] for row in rows) / total
    top = max(rows, key=lambda row: row["changed"] / row["repetitions"])
    text = (
        f"changed {percent(changed)} of {total:,} data sets ({top['set']} with "
        f"{rows_words(top['n'])} rows most often: {percent(top['changed'] / top['repetitions'])}), "
        f"at a mean cost of {cost:.1g}, at most {max(row['kl_max'] for row in rows):.1g}"
    )
    return Outcome(changed <= CHANGED and cost <= NEGLIGIBLE, text)


def quality_outcomes(view: View) -> dict[str, Outcome]:
    """Return what was asked of `AutoCalibrator` in each group of sets, by names on the page."""
    found = {"gate": gate(view)}
    for name in GROUPS:
        part = view.group(name)
        wins, took = (partial(part.wins, OURS), partial(part.median, OURS, column="ratio"))
        means = {n: mean.value for n in part.sizes if (mean := part.mean(OURS, n, "d_sms"))}
        times = by_size(part, took, lambda v: f"{digits(v)} times", lambda v: v <= 1.0)
        found |= {f"harm_{name}": harm(part), f"time_{name}": times}
        found[f"lower_{name}"] = by_size(part, means.get, signed, lambda v: v < 0.0)
        found[f"wins_{name}"] = by_size(part, wins, percent, lambda v: v >= WIN_RATE)
    return found
