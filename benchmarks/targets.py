"""What was asked of speed and quality, and whether the results say so.

Demands stand in the pages, as sentences with a place for the number; the numbers stand in
``targets.csv``, with what is measured and on which size or part. What is judged is MCLLO as it
comes, with threads or processes where it starts them; what it does on one thread (``mcllo-1``)
stands beside it. Peers have one BLAS thread. The bound for a pass is one thread's, and so is what
is held against it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from studies.pages import Row, count, digits, percent, read, say, signed, time_word

from benchmarks.machine import HERE, Record, median, ratio
from benchmarks.methods import GATED, OURS
from benchmarks.quality import GROUPS, View
from benchmarks.speed import APPLY_ROWS, bound, shape, whole_study

ASKED = read(HERE / "targets.csv")
LIMITS: dict[str, float] = {t["name"]: t["asked"] for t in ASKED if t["how"] == "quality"}
NS_PER_ROW = 24.0
"""The least a pass can take at c = 10 on the machine the targets were written on (AVX-512)."""
PARQUET_ROWS = 100_000_000
BESIDE = {"mcllo": "with standard errors", "mcllo-1": "one thread", "apply-mcllo-1": "one thread"}


@dataclass(frozen=True)
class Outcome:
    """One demand: whether it was met, what was measured, the number asked for, and if not met."""

    met: bool | None = None
    measured: str = "not measured"
    asked: float | None = None
    otherwise: str = "**not met**"

    @property
    def verdict(self) -> str:
        return "not measured" if self.met is None else "met" if self.met else self.otherwise


def outcome(asked: float, margin: float, measured: str, at_least: bool = False) -> Outcome:
    """Return an outcome by its margin: 1 is just met, 2 is twice as good.

    >>> outcome(4, 0.6, "2.4 times").verdict, outcome(4, 0.6, "", at_least=True).verdict
    ('**not met**, by a factor of 1.67', 'not decided: the peer was ended at its limit')
    """
    otherwise = f"**not met**, by a factor of {digits(1.0 / margin, 3)}"
    if at_least:
        otherwise = "not decided: the peer was ended at its limit"
    return Outcome(margin >= 1.0, measured, asked, otherwise)


def faster(results: Record, t: Row) -> Outcome:
    """At least so many times as fast as a peer; what else is compared with it stands beside.

    >>> took = {"mcllo": 0.005, "mcllo-1": 0.004, "ts": 0.012}
    >>> records = {name: {"status": "ok", "seconds": [took[name]]} for name in took}
    >>> t = {"on": "8x2", "asked": 2, "ours": "mcllo", "beside": "mcllo-1"}
    >>> found = [faster({"fits": {"8x2": records}}, t | {"peer": peer}) for peer in ("ts", "sms")]
    >>> found[0].measured, found[1].verdict
    ('2.4 times (one thread 3.0)', 'not measured')
    """
    part = {"records": results["fits"].get(t["on"], {})}
    part |= results.get("apply", {}) if t["on"] == "apply" else {}
    found, least = ratio(part["records"], t["ours"], t["peer"])
    if found is None:
        return Outcome(asked=t["asked"])
    words = f"{'at least ' if least else ''}{digits(found)} times"
    for name in t["beside"].split():
        other, _ = ratio(part["records"], name, t["peer"])
        words += f" ({BESIDE[name]} {digits(other)})" if other is not None else ""
    if part.get("rows", APPLY_ROWS) != APPLY_ROWS:
        words += f", on {count(part['rows'])} rows"
    return outcome(t["asked"], found / t["asked"], words, least)


def within(results: Record, t: Row) -> Outcome:
    """At most so many units of seconds, or each pass on one thread so many times the bound.

    >>> record = {"seconds": [0.06], "steps": 5}  # 0.06 s / 100,000 rows / 5 passes = 120 ns
    >>> t = {"how": "bound", "on": "100000x10", "asked": 5, "ours": "mcllo-1"}
    >>> found = within({"fits": {"100000x10": {"mcllo-1": record}}}, t)
    >>> found.measured, found.verdict
    ('120 ns a row and pass (5 passes)', 'met')
    """
    record = results["fits"].get(t["on"], {}).get(t["ours"])
    if not record or not record["seconds"]:
        return Outcome(asked=t["asked"])
    took, peak = median(record["seconds"]), record.get("peak_mb")
    if t["how"] == "within":
        memory = f", {digits(peak / 1000.0)} GB" if peak and peak > 1000.0 else ""
        return outcome(t["asked"], t["asked"] * t["unit"] / took, time_word(took) + memory)
    each = 1e9 * took / shape(t["on"])[0] / record["steps"]
    words = f"{digits(each, 3)} ns a row and pass ({record['steps']} passes)"
    if results.get("limits"):
        own = bound(results["limits"])
        words += f"; {digits(each / own)} times this machine's {digits(own)} ns"
    return outcome(t["asked"], t["asked"] * NS_PER_ROW / each, words)


def studied(results: Record, t: Row) -> Outcome:
    """The power study so many times as fast as a loop."""
    part = results.get("study")
    if not part:
        return Outcome(asked=t["asked"])
    took = whole_study(part)
    found = {name: took["loop"] / took[name] for name in ("one", "many")} | part
    words = "{many:~2} times in {processes} processes, {one:~2} in one; scaled from a part"
    return outcome(t["asked"], found["many"] / t["asked"], say(words, found))


def from_file(results: Record, t: Row) -> Outcome:
    """Memory of a fit from a file in GB, or its time in units of passes.

    >>> part = {"rows": 10_000_000, "passes": 5, "pass": {"seconds": [2.0]}}
    >>> part["fit"] = {"seconds": [12.0], "peak_mb": 400.0}
    >>> asked = {"how": "memory", "asked": 1}, {"how": "passes", "asked": 1.5}
    >>> [from_file({"parquet": part}, t).measured for t in asked]
    ['400 MB, on 10M rows', '1.2 times: 12 s, 5 passes of 2.0 s, on 10M rows']
    """
    part = results.get("parquet")
    if not part or not part["passes"] or not part["fit"]["seconds"] or not part["pass"]["seconds"]:
        return Outcome(asked=t["asked"])
    on = "" if part["rows"] == PARQUET_ROWS else f", on {count(part['rows'])} rows"
    if t["how"] == "memory":
        peak = part["fit"]["peak_mb"]
        return outcome(t["asked"], 1000 * t["asked"] / peak, f"{digits(peak, 3)} MB{on}")
    fit, one = (median(part[name]["seconds"]) for name in ("fit", "pass"))
    found = fit / (part["passes"] * one)
    words = f"{time_word(fit)}, {part['passes']} passes of {time_word(one)}{on}"
    return outcome(t["asked"], t["asked"] / found, f"{digits(found)} times: {words}")


HOW = {"within": within, "faster": faster, "bound": within, "study": studied}
HOW |= {"memory": from_file, "passes": from_file}


def speed_outcomes(results: Record) -> dict[str, Outcome]:
    """Return the targets of speed, by their names on the page; a quick run decides nothing."""
    found = {t["name"]: HOW[t["how"]](results, t) for t in ASKED if t["how"] in HOW}
    if not results["quick"]:
        return found
    return {k: o if o.met is None else Outcome(False, o.measured, o.asked, "quick run")
            for k, o in found.items()}  # fmt: skip


def by_size(view: View, number: Any, words: Any, fits: Callable[[float], bool] = bool) -> Outcome:
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
    return Outcome(found <= LIMITS["most_harm"], f"{text}, {percent(average)} of sets and sizes")


def gate(view: View) -> Outcome:
    """Seldom changes what needs no repair, and then little."""
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
    return Outcome(changed <= LIMITS["most_changed"] and cost <= LIMITS["most_cost"], text)


def quality_outcomes(view: View) -> dict[str, Outcome]:
    """Return what was asked of `AutoCalibrator` in each group of sets, by names on the page."""
    found = {"gate": gate(view)}
    for name in GROUPS:
        part = view.group(name)
        wins, took = partial(part.wins, OURS), partial(part.median, OURS, column="ratio")
        means = {n: mean.value for n in part.sizes if (mean := part.mean(OURS, n, "d_sms"))}
        times = by_size(part, took, lambda v: f"{digits(v)} times", lambda v: v <= 1.0)
        found |= {f"harm_{name}": harm(part), f"time_{name}": times}
        found[f"lower_{name}"] = by_size(part, means.get, signed, lambda v: v < 0.0)
        found[f"wins_{name}"] = by_size(part, wins, percent, lambda v: v >= LIMITS["win_rate"])
    return found
