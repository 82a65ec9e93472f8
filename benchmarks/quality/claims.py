"""What was asked of `AutoCalibrator` beside SMS, and whether the results say so."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.quality.methods import GATED, OURS
from benchmarks.quality.view import View
from benchmarks.quality.words import percent, signed
from benchmarks.words import digits, rows_words

NOT_MEASURED = "not measured"
WIN_RATE, WORSE, CHANGED, NEGLIGIBLE = 0.6, 0.03, 0.05, 0.001
"""Least win rate, most harm in cases, most changed by the gate, most mean cost of a change."""


@dataclass(frozen=True)
class Outcome:
    """Whether a demand was met (None: not measured), and the numbers in words."""

    met: bool | None
    measured: str = NOT_MEASURED

    @property
    def verdict(self) -> str:
        """The last column."""
        return NOT_MEASURED if self.met is None else ("met" if self.met else "**not met**")


@dataclass(frozen=True, eq=False)
class Claim:
    """One line: the demand, and how to read the results."""

    demand: str
    judge: Callable[[View], Outcome]


def by_size(
    number: Callable[[View, int], float | None],
    fits: Callable[[float], bool],
    words: Callable[[float], str],
) -> Callable[[View], Outcome]:
    """Return the judge of a demand that must hold at every size."""

    def judge(view: View) -> Outcome:
        found = {n: number(view, n) for n in view.sizes}
        known = {n: value for n, value in found.items() if value is not None}
        if not known:
            return Outcome(None)
        text = "; ".join(f"{words(value)} at {rows_words(n)}" for n, value in known.items())
        return Outcome(all(map(fits, known.values())), text)

    return judge


def _difference(view: View, n: int) -> float | None:
    mean = view.mean(OURS, n, "d_sms")
    return None if mean is None else mean.value


def _harm(view: View) -> Outcome:
    found = view.worse(OURS)
    if found is None:
        return Outcome(None)
    parts = {n: view.worse(OURS, n) for n in view.sizes}
    each = "; ".join(f"{percent(v)} at {rows_words(n)}" for n, v in parts.items() if v is not None)
    worst, average = view.worst(OURS), view.worse_on_average(OURS)
    assert worst is not None
    assert average is not None
    text = (
        f"{percent(found)} of cases ({each}), at most by {digits(max(worst['worst'], 0.0))}; "
        f"in the mean over seeds, {percent(average)} of sets and sizes"
    )
    return Outcome(found <= WORSE, text)


def _gate(view: View) -> Outcome:
    rows = [row for row in harmless_rows(view, GATED) if row["repetitions"]]
    if not rows:
        return Outcome(None)
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


def harmless_rows(view: View, method: str) -> list[dict[str, Any]]:
    """Return the rows of a method in the do-no-harm simulation."""
    return [row for row in view.facts.get("harmless", []) if row["method"] == method]


CLAIMS = (
    Claim(
        "lower mean log loss than SMS at every number of rows",
        by_size(_difference, lambda value: value < 0.0, signed),
    ),
    Claim(
        "beats SMS in at least 60 % of cases at every number of rows",
        by_size(lambda view, n: view.wins(OURS, n), lambda v: v >= WIN_RATE, percent),
    ),
    Claim("worse than doing nothing in at most 3 % of cases", _harm),
    Claim(
        "fit time at most that of SMS at every number of rows (median ratio)",
        by_size(
            lambda view, n: view.median(OURS, n, "ratio"),
            lambda value: value <= 1.0,
            lambda value: f"{digits(value)} times",
        ),
    ),
)
GATE_CLAIM = Claim(
    "with a gate of 0.05, changes predictions that need no repair in at most 5 % of data sets, "
    f"at a mean cost of at most {NEGLIGIBLE:g}",
    _gate,
)
"""Does not depend on the group of sets."""
