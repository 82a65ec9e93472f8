"""Whose fault: how often a culprit, and how often an innocent class, is named.

One or two classes are off, by a shift or a slope of their log odds; all others are right among
themselves. Named as the package does (`Culprits`), and as before: every class other than the
baseline whose 95 % Wald interval for delta or gamma excludes 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mcllo import Predictions
from mcllo._diagnosis.culprits import culprits_of
from mcllo._diagnosis.ladder import ladder_of
from mcllo._ground.statements import quiet
from mcllo._inference.budget import BRIEF_NESTED_WORK
from mcllo._inference.calibration_test import fit_and_test
from studies.claims import Rows, draw, rows_like, scaled, share
from studies.pages import fill

PAGE = "explanation/whose-fault.md"


@dataclass(frozen=True)
class Design:
    """Rows, which classes are off (-1 is the last, the baseline), how, and by how much."""

    rows: str
    c: int
    n: int
    off: tuple[int, ...]
    how: str
    size: float
    part: float = 1.0
    """Of the repetitions: large tables are slow."""

    def truth(self, probs: np.ndarray) -> np.ndarray:
        """Return what labels are drawn from; two shifts are opposite unless "same" is asked for."""
        slope, shift = np.ones(self.c), np.zeros(self.c)
        for i, k in enumerate(self.off):
            if self.how == "slope":
                slope[k] = self.size
            else:
                shift[k] = self.size * (-1 if i == 1 and self.how == "shift" else 1)
        return scaled(probs, slope, shift)


FLAT, SHARP, NETWORK = "dirichlet:0.6", "sharp", "network"
DESIGNS = (
    Design(FLAT, 4, 500, (0,), "shift", 0.7),
    Design(FLAT, 4, 1500, (-1,), "shift", 0.4),
    Design(FLAT, 4, 1500, (-1,), "slope", 0.7),
    Design(FLAT, 4, 500, (0, -1), "shift", 0.5),
    Design(FLAT, 4, 1500, (0, -1), "same", 0.4),
    Design(FLAT, 10, 500, (0,), "shift", 0.9),
    Design(FLAT, 10, 1500, (-1,), "shift", 0.7),
    Design(FLAT, 10, 1500, (-1,), "slope", 0.6),
    Design(FLAT, 10, 1500, (0, -1), "shift", 0.5),
    Design(FLAT, 10, 1500, (0, -1), "slope", 0.8),
    Design(FLAT, 10, 20_000, (-1,), "shift", 0.15, 0.3),
    Design(FLAT, 30, 1500, (0,), "shift", 0.7, 0.4),
    Design(FLAT, 30, 1500, (-1,), "slope", 0.7, 0.4),
    Design(FLAT, 30, 5000, (0, -1), "shift", 0.4, 0.2),
    Design(FLAT, 30, 20_000, (-1,), "shift", 0.25, 0.05),
    Design(NETWORK, 10, 2000, (0,), "shift", 1.2, 0.4),
    Design(NETWORK, 10, 4000, (-1,), "slope", 0.6, 0.4),
    Design(NETWORK, 10, 4000, (0, -1), "shift", 0.9, 0.4),
    Design(SHARP, 4, 2000, (-1,), "shift", 0.8, 0.4),
    Design(SHARP, 10, 4000, (0, -1), "slope", 0.7, 0.4),
    Design(SHARP, 30, 20_000, (-1,), "shift", 0.8, 0.05),
)
KINDS = {FLAT: "Dirichlet(.6)", SHARP: "sharp", NETWORK: "network"}


def named_before(predictions: Predictions) -> set[int]:
    """Return the classes whose unadjusted interval against the baseline excludes 1."""
    with quiet():
        fit = fit_and_test(predictions, method="chi2").fit
    if not fit.converged:
        return set()
    interval = fit.confidence_interval(0.95)
    off = [(ends[:, 0] > 1.0) | (ends[:, 1] < 1.0) for ends in (interval.delta, interval.gamma)]
    return {int(fit.compared[j]) for j in np.flatnonzero(off[0] | off[1])}


def once(design: Design, rng: np.random.Generator) -> dict[str, bool]:
    """Return what one data set of a design shows."""
    probs = rows_like(design.rows, design.n, design.c, rng)
    y = draw(design.truth(probs), rng)
    predictions = Predictions.from_arrays(probs, y, classes=list(range(design.c)))
    culprits, seed = {k % design.c for k in design.off}, int(rng.integers(2**31))
    with quiet():
        fitted = fit_and_test(predictions, seed=seed, n_resamples=499)
    rejected = fitted.test.rejects(0.05)
    named: set[int] = set()
    one_of = False
    if rejected:
        with quiet():
            ladder = ladder_of(
                predictions,
                fitted.fit,
                test=fitted.test if fitted.test.kind == "lr" else None,
                n_resamples=199,
                seed=seed,
                work=BRIEF_NESTED_WORK,
            )
            found = culprits_of(predictions, test=fitted.test, ladder=ladder, seed=seed)
        named, one_of = set(found.labels), bool(found.one_of) and not found.labels
    before = named_before(predictions) if rejected else set()
    return {
        "rejected": rejected,
        "named": bool(named & culprits),
        "all": named >= culprits,
        "innocent": bool(named - culprits),
        "one_of": one_of,
        "before": bool(before & culprits),
        "before_innocent": bool(before - culprits),
    }


def run(reps: int, seed: int = 7, designs: Sequence[Design] = DESIGNS) -> Rows:
    """Return for each design how often each thing happened; `se` is of `innocent`."""
    rows: Rows = []
    for number, design in enumerate(designs):
        rng = np.random.default_rng([seed, number])
        times = max(2, round(reps * design.part))
        seen = [once(design, rng) for _ in range(times)]
        rates = {name: share([one[name] for one in seen])[0] for name in seen[0]}
        where = "baseline" if design.off == (-1,) else "first" if len(design.off) == 1 else "both"
        rows.append(
            {
                "rows": KINDS[design.rows],
                "c": design.c,
                "n": design.n,
                "off": where,
                "how": design.how,
                "size": design.size,
                "reps": times,
                **rates,
                "se": share([one["innocent"] for one in seen])[1],
            }
        )
    return rows


OFF = {
    "first": "one class",
    "baseline": "the baseline",
    "both": "two classes, one the baseline",
}
HOW = {"shift": "shift {:g}", "same": "shift {:g}, the same way", "slope": "slope {:g}"}
LINES = """\
| rows | classes | n | off | by | rejected | culprit named | all culprits | one of these | innocent named | before: culprit | before: innocent |
|---|---|---|---|---|---|---|---|---|---|---|---|
{*designs} | {rows} | {c} | {n:,} | {off} | {how} | {rejected:%0} | {named:%0} | {all:%0} | {one_of:%0} | {innocent:%} | {before:%0} | {before_innocent:%0} |

{n} data sets in all (10 to {most} for each line); the largest Monte Carlo error of "innocent named"
is {se:%}. Over all of them an innocent class was named in {innocent:%}, and by the old way in
{before:%}."""  # noqa: E501


def table(rows: Rows) -> str:
    """Return the page's table."""
    total = sum(row["reps"] for row in rows)
    designs = [
        row | {"off": OFF[row["off"]], "how": HOW[row["how"]].format(row["size"])} for row in rows
    ]
    facts = {
        "designs": designs,
        "n": total,
        "most": max(row["reps"] for row in rows),
        "se": max(row["se"] for row in rows),
        "innocent": sum(row["innocent"] * row["reps"] for row in rows) / total,
        "before": sum(row["before_innocent"] * row["reps"] for row in rows) / total,
    }
    return fill(LINES, facts)
