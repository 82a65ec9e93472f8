"""``python -m benchmarks versus BEFORE.jsonl AFTER.jsonl``: a method in two files of cases.

The files hold single cases of two revisions (``quality --cases FILE``, each in its checkout). A
pair is a case that both files have. Differences are averaged over the seeds of a set, then over
sets, with the interval of `quality.clustered`; harm is the share of cases in which log loss is
above that of doing nothing (taken from the file before where the file after has none), each set
counting once. Printed by rows to learn from, and within these by part, by number of classes and for
cases whose rows lack a class; then the cases that lost most.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path

import numpy as np
from studies.pages import grid, percent, signed

from benchmarks import sets
from benchmarks.machine import Record
from benchmarks.methods import METHODS, NOTHING, OURS
from benchmarks.quality import PARTS, TIE, Case, clustered, part_of, read_cases

CLASSES = {
    "2": (2, 2),
    "3 to 15": (3, 15),
    "16 to 50": (16, 50),
    "51 to 100": (51, 100),
}
CLASSES |= {"more than 100": (101, 10**6)}
MOST_LOST = 10

Pair = tuple[float, bool, bool]
"""Log loss after less before; whether it is worse than doing nothing before, and after."""


def paired(
    before: Mapping[Case, Record], after: Mapping[Case, Record], method: str, other: str
) -> dict[Case, Pair]:
    """Return the pairs of cases that both files have: `method` before, `other` after.

    >>> def record(nothing, auto):
    ...     return {"methods": {"identity": {"ll": nothing}, "auto": {"ll": auto}}}
    >>> case = Case("a", 100, 0)
    >>> found = paired({case: record(1.0, 1.2)}, {case: record(1.0, 0.9)}, "auto", "auto")
    >>> [round(found[case][0], 6), *found[case][1:]]
    [-0.3, True, False]
    """
    pairs = {}
    for case in before.keys() & after.keys():
        old, new = before[case]["methods"], after[case]["methods"]
        one, two = old.get(method, {}).get("ll"), new.get(other, {}).get("ll")
        nothing = (new if NOTHING in new else old).get(NOTHING, {}).get("ll", np.nan)
        if one is not None and two is not None:
            pairs[case] = (two - one, one - nothing > TIE, two - nothing > TIE)
    return pairs


def row(
    pairs: Mapping[Case, Pair], facts: Mapping[str, Record], n: int, title: str
) -> Record:
    """Return one line: sets, cases, mean difference with its interval, and harm in both files."""
    by_set: dict[str, list[Pair]] = {}
    for case, pair in pairs.items():
        by_set.setdefault(case.name, []).append(pair)
    means = np.array([np.mean(values, axis=0) for values in by_set.values()])
    mean = clustered(means[:, 0], [facts[name]["source"] for name in by_set])
    ends = (
        "" if mean.low is None else f" [{signed(mean.low)}, {signed(mean.high or 0.0)}]"
    )
    apart = np.array([pair[0] for pair in pairs.values()])
    found = {"rows": n, "classes": title, "sets": len(by_set), "cases": len(pairs)}
    found |= {"after less before": signed(mean.value) + ends}
    found |= {"better": percent(float((apart < -TIE).mean()))}
    found |= {
        "worse": percent(float((apart > TIE).mean())),
        "at worst": signed(apart.max()),
    }
    harm = means[:, 1:].mean(axis=0)
    return found | {"harm before": percent(harm[0]), "harm after": percent(harm[1])}


def compared(
    pairs: Mapping[Case, Pair],
    facts: Mapping[str, Record],
    lacking: Container[Case] = (),
) -> list[Record]:
    """Return a line for all sets of each size, and one for each part and group of classes in it.

    `lacking` are the cases whose rows to learn from lack a class.
    """
    rows = []
    for n in sorted({case.n for case in pairs}):
        asked: dict[str, Callable[[Record], bool]] = {
            "all": lambda _: True,
            "tables of all sets": lambda found: not part_of(found),
        }
        for part in PARTS:
            asked[f"part {part}"] = lambda found, part=part: part_of(found) == part  # type: ignore[misc]
        for title, (low, high) in CLASSES.items():
            asked[title] = lambda found, low=low, high=high: low <= found["c"] <= high  # type: ignore[misc]
        for title, keep in asked.items():
            own = {
                c: pair for c, pair in pairs.items() if c.n == n and keep(facts[c.name])
            }
            if own:
                rows.append(row(own, facts, n, title))
        if own := {
            case: pair
            for case, pair in pairs.items()
            if case.n == n and case in lacking
        }:
            rows.append(row(own, facts, n, "lacking in the rows"))
    return rows


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks versus")
    parser.add_argument(
        "before", type=Path, help="file of single cases, earlier revision"
    )
    parser.add_argument("after", type=Path, help="file of single cases, later revision")
    parser.add_argument(
        "--method", default=OURS, choices=list(METHODS), help="which method"
    )
    parser.add_argument(
        "--other", choices=list(METHODS), help="which one after, if another"
    )
    chosen = parser.parse_args(arguments)
    facts, other = sets.known(), chosen.other or chosen.method
    before, after = read_cases(chosen.before), read_cases(chosen.after)
    pairs = paired(before, after, chosen.method, other)
    pairs = {case: pair for case, pair in pairs.items() if case.name in facts}
    if not pairs:
        raise SystemExit(f"no case has {chosen.method} before and {other} after")
    lacking = {case for case in pairs if after[case].get("absent")}
    print(grid(compared(pairs, facts, lacking)))
    lost = sorted(pairs.items(), key=lambda item: -item[1][0])[:MOST_LOST]
    print("\nLost most:\n")
    print(
        grid(
            [
                {"set": c.name, "rows": c.n, "seed": c.seed, "": signed(p[0])}
                for c, p in lost
            ]
        )
    )
