"""What was asked of speed and quality, and whether the results say so.

Demands stand in the pages, as sentences with a place for the number; the numbers stand in
``targets.csv``, with what is measured, in which part of the run and on which sizes: one, all that
begin so (``500x10*``), or all up to so many elements (``<10000x100``); the worst counts. Whose time
is judged is in the table, too: MCLLO on one thread (``mcllo-1``) or as it comes, with threads or
processes where it starts them; the other stands beside it. Peers have one BLAS thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from typing import Any

import numpy as np
from studies.pages import Row, count, digits, percent, read, say, signed, time_word

from benchmarks.machine import HERE, Record, median, ratio
from benchmarks.methods import GATED, OURS
from benchmarks.quality import GROUPS, View
from benchmarks.speed import elements, shape, size_words, whole_study

ASKED = read(HERE / "targets.csv")
LIMITS: dict[str, float] = {
    t["name"]: t["asked"] for t in ASKED if t["how"] == "quality"
}
NS_PER_ROW = 24.0
"""The least a pass can take at c = 10 on the machine the targets were written on (AVX-512)."""
BESIDE = {
    "mcllo": "with standard errors",
    "mcllo-1": "one thread",
    "apply-mcllo-1": "one thread",
}
BESIDE |= {"mcllo-1-numpy": "NumPy"}
Judged = tuple[float, str, bool] | None
"""Margin, what was measured, and whether the peer was ended; None where nothing is known."""


@dataclass(frozen=True)
class Outcome:
    """One demand: whether it was met, what was measured, the number asked for, and if not met."""

    met: bool | None = None
    measured: str = "not measured"
    asked: float | None = None
    otherwise: str = "**not met**"

    @property
    def verdict(self) -> str:
        return (
            "not measured"
            if self.met is None
            else "met"
            if self.met
            else self.otherwise
        )


def outcome(
    asked: float, margin: float, measured: str, at_least: bool = False
) -> Outcome:
    """Return an outcome by its margin: 1 is just met, 2 is twice as good.

    >>> outcome(4, 0.6, "2.4 times").verdict, outcome(4, 0.6, "", at_least=True).verdict
    ('**not met**, by a factor of 1.67', 'not decided: the peer was ended at its limit')
    """
    otherwise = f"**not met**, by a factor of {digits(1.0 / margin, 3)}"
    if at_least:
        otherwise = "not decided: the peer was ended at its limit"
    return Outcome(margin >= 1.0, measured, asked, otherwise)


def faster(records: Record, _: int, t: Row) -> Judged:
    """At least so many times as fast as a peer; what else is compared with it stands beside.

    Where ours was ended at its limit, that is known to fail or not known at all.

    >>> took = {"mcllo": 0.005, "mcllo-1": 0.004, "ts": 0.012}
    >>> records = {name: {"status": "ok", "seconds": [took[name]]} for name in took}
    >>> t = {"asked": 2, "ours": "mcllo", "beside": "mcllo-1"}
    >>> faster(records, 8, t | {"peer": "ts"}), faster(records, 8, t | {"peer": "sms"})
    ((1.2, '2.4 times (one thread 3.0)', False), None)
    >>> records["mcllo"] = {"status": "over", "limit": 0.02, "seconds": []}
    >>> faster(records, 8, t | {"peer": "ts"})
    (0.3, 'less than 0.60 times', False)
    """
    found, least = ratio(records, t["ours"], t["peer"])
    if found is None:
        longer, _ = ratio(records, t["peer"], t["ours"])
        if longer is None or longer * t["asked"] <= 1.0:
            return None
        return (
            1.0 / longer / t["asked"],
            f"less than {digits(1.0 / longer)} times",
            False,
        )
    words = f"{'at least ' if least else ''}{digits(found)} times"
    for name in (t["beside"] or "").split():
        other, _ = ratio(records, name, t["peer"])
        words += f" ({BESIDE[name]} {digits(other)})" if other is not None else ""
    return found / t["asked"], words, least


def within(records: Record, n: int, t: Row) -> Judged:
    """At most so many units of seconds, so many times the bound of a pass, or so many MB.

    >>> records = {"pass": {"status": "ok", "seconds": [0.006], "peak_mb": 400.0}}  # 60 ns a row
    >>> t = {"asked": 2, "unit": 0.001, "ours": "pass"}
    >>> [within(records, 100_000, t | {"how": how}) for how in ("bound", "memory", "within")]
    ... # doctest: +NORMALIZE_WHITESPACE
    [(0.8, '60.0 ns a row, 2.5 times the bound', False), (0.005, '400 MB', False),
     (0.3333333333333333, '6.0 ms', False)]
    """
    record = records.get(t["ours"])
    if record and t["how"] == "within" and record["status"] == "over":
        margin = t["asked"] * t["unit"] / record["limit"]
        return (
            (margin, f"over {time_word(record['limit'])}", False)
            if margin < 1.0
            else None
        )
    if not record or not record["seconds"]:
        return None
    took, peak = median(record["seconds"]), record.get("peak_mb")
    if t["how"] == "memory":
        return t["asked"] / peak, f"{digits(peak, 3)} MB", False
    if t["how"] == "within":
        memory = f", {digits(peak / 1000.0)} GB" if peak and peak > 1000.0 else ""
        return t["asked"] * t["unit"] / took, time_word(took) + memory, False
    times = 1e9 * took / n / NS_PER_ROW
    words = f"{digits(times * NS_PER_ROW, 3)} ns a row, {digits(times)} times the bound"
    return t["asked"] / times, words, False


def in_passes(records: Record, _: int, t: Row) -> Judged:
    """The time of a fit from a file in units of its passes.

    >>> records = {"pass": {"seconds": [2.0]}, "fit": {"seconds": [12.0], "steps": 5}}
    >>> in_passes(records, 8, {"asked": 1.5, "ours": "fit", "peer": "pass"})
    (1.25, '1.2 times: 12 s, 5 passes of 2.0 s', False)
    """
    fit, one = records[t["ours"]], records[t["peer"]]
    if not fit["seconds"] or not one["seconds"] or not fit["steps"]:
        return None
    took, each = median(fit["seconds"]), median(one["seconds"])
    found = took / (fit["steps"] * each)
    words = f"{time_word(took)}, {fit['steps']} passes of {time_word(each)}"
    return t["asked"] / found, f"{digits(found)} times: {words}", False


HOW = {
    "within": within,
    "faster": faster,
    "bound": within,
    "memory": within,
    "passes": in_passes,
}


def matches(size: str, on: str) -> bool:
    """Whether a target is for a size.

    >>> [matches("500x10-large", on) for on in ("500x10", "500x10*", "<500x10", "<499x10")]
    [False, True, True, False]
    """
    return elements(size) <= elements(on[1:]) if on[0] == "<" else fnmatch(size, on)


def judged(results: Record, t: Row) -> Outcome:
    """Return the outcome on the size where it is worst, which is named where there are several."""
    if t["how"] == "study":
        return studied(results, t)
    part, found = results.get(t["part"], {}), []
    for size in (size for size in part if matches(size, t["on"])):
        known = HOW[t["how"]](part[size], shape(size)[0], t)
        found += [(known, size)] if known else []
    if not found:
        return Outcome(asked=t["asked"])
    (margin, words, least), size = min(found)
    words += (
        f", on {size_words(size)}" if size != t["on"] and t["part"] != "shell" else ""
    )
    return outcome(t["asked"], margin, words, least)


def studied(results: Record, t: Row) -> Outcome:
    """The power study so many times as fast as a loop."""
    part = results.get("study")
    if not part:
        return Outcome(asked=t["asked"])
    took = whole_study(part)
    found = {name: took["loop"] / took[name] for name in ("one", "many")} | part
    words = (
        "{many:~2} times in {processes} processes, {one:~2} in one; scaled from a part"
    )
    return outcome(t["asked"], found["many"] / t["asked"], say(words, found))


def speed_outcomes(results: Record) -> dict[str, Outcome]:
    """Return the targets of speed, by their names on the page; a quick run decides nothing."""
    found = {t["name"]: judged(results, t) for t in ASKED if t["part"]}
    if not results["quick"]:
        return found
    return {k: o if o.met is None else Outcome(False, o.measured, o.asked, "quick run")
            for k, o in found.items()}  # fmt: skip


def by_size(
    view: View, number: Any, words: Any, fits: Callable[[float], bool] = bool
) -> Outcome:
    """A demand that must hold at every size."""
    known = {n: value for n in view.sizes if (value := number(n)) is not None}
    text = "; ".join(f"{words(value)} at {count(n)}" for n, value in known.items())
    return Outcome(all(map(fits, known.values())), text) if known else Outcome()


def harm(view: View) -> Outcome:
    """Seldom worse than doing nothing."""
    found = view.worse(OURS)
    if found is None:
        return Outcome()
    each = by_size(view, lambda n: view.worse(OURS, n), percent).measured
    worst = max(0.0, *(row["worst"] for row in view.of(OURS, column="worst")))
    average = np.mean([row["d_ll"] > 1e-9 for row in view.of(OURS, column="d_ll")])
    text = f"{percent(found)} of cases ({each}), at most by {digits(worst)}; in the mean over seeds"
    return Outcome(
        found <= LIMITS["most_harm"], f"{text}, {percent(average)} of sets and sizes"
    )


def gate(view: View) -> Outcome:
    """Seldom changes what needs no recalibration, and then little."""
    given = view.facts.get("harmless", [])
    rows = [row for row in given if row["method"] == GATED and row["repetitions"]]
    if not rows:
        return Outcome()
    total = sum(row["repetitions"] for row in rows)
    changed = sum(row["changed"] for row in rows) / total
    cost = sum(row["kl"] * row["repetitions"] for row in rows) / total
    top = max(rows, key=lambda row: row["changed"] / row["repetitions"])
    text = (
        f"changed {percent(changed)} of {total:,} data sets ({top['set']} with "
        f"{count(top['n'])} rows most often: {percent(top['changed'] / top['repetitions'])}), "
        f"at a mean cost of {cost:.1g}, at most {max(row['kl_max'] for row in rows):.1g}"
    )
    return Outcome(
        changed <= LIMITS["most_changed"] and cost <= LIMITS["most_cost"], text
    )


def quality_outcomes(view: View) -> dict[str, Outcome]:
    """Return what was asked of `AutoCalibrator` in each group of sets, by names on the page."""
    found = {"gate": gate(view)}
    for name in GROUPS:
        part = view.group(name)
        wins, took = (
            partial(part.wins, OURS),
            partial(part.median, OURS, column="ratio"),
        )
        means = {
            n: mean.value for n in part.sizes if (mean := part.mean(OURS, n, "d_sms"))
        }
        times = by_size(part, took, lambda v: f"{digits(v)} times", lambda v: v <= 1.0)
        found |= {f"harm_{name}": harm(part), f"time_{name}": times}
        found[f"lower_{name}"] = by_size(part, means.get, signed, lambda v: v < 0.0)
        found[f"wins_{name}"] = by_size(
            part, wins, percent, lambda v: v >= LIMITS["win_rate"]
        )
    return found
