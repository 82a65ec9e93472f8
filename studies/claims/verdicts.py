"""How often each verdict is given, by design: the four kinds, and statements of equivalence.

``error`` is the true mean change (the probability that stands on the wrong classes), known from how
the labels are drawn. Under calibration "miscalibrated" and "negligible" together are the size of
the test; "equivalent" is wrong where the true error reaches the tolerance, one percentage point.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import mcllo
from studies.pages import fill

from . import Rows, draw, rows_like, scaled, share

PAGE = "explanation/verdict.md"
KINDS = ("miscalibrated", "negligible", "not_detected", "inconclusive")


class Design(NamedTuple):
    """Rows, how the labels depart from them, and how many groups the rows fall into."""

    rows: str
    n: int
    c: int
    slope: float = 1.0
    groups: int = 0
    weight: float = 1.0


DESIGNS = {
    "calibrated, 30 rows": Design("dirichlet:1", 30, 4),
    "calibrated, 300 rows": Design("dirichlet:1", 300, 4),
    "calibrated, 3,000 rows": Design("dirichlet:1", 3000, 4),
    "calibrated network, 1,000 rows": Design("network", 1000, 10),
    "calibrated rare events, 1,000 rows": Design("rare", 1000, 2),
    "calibrated, 30,000 rows": Design("dirichlet:1", 30_000, 3, weight=0.25),
    "slope .8, 1,000 rows": Design("dirichlet:1", 1000, 4, 0.8),
    "slope .98, 300,000 rows": Design("dirichlet:1", 300_000, 4, 0.98, weight=0.1),
    "slope .6, 3 groups": Design("dirichlet:1", 600, 3, 0.6, 3),
    "slope .6, 30 groups": Design("dirichlet:1", 600, 3, 0.6, 30),
    "calibrated, 30 groups": Design("dirichlet:1", 600, 3, 1.0, 30),
}


def run(reps: int, seed: int = 2614) -> Rows:
    """Return how often each verdict was given; `weight` of the repetitions for costly designs."""
    found: Rows = []
    for k, (name, design) in enumerate(DESIGNS.items()):
        rng, kinds, equivalent = np.random.default_rng([seed, k]), [], []
        errors = []
        for _ in range(max(2, round(reps * design.weight))):
            x = rows_like(design.rows, design.n, design.c, rng)
            truth = scaled(x, design.slope)
            groups = np.arange(design.n) % design.groups if design.groups else None
            a = mcllo.assess(
                x,
                draw(truth, rng),
                classes=range(x.shape[1]),
                groups=groups,
                n_resamples=199,
                seed=1,
            )
            kinds.append(a.verdict.kind)
            equivalent.append(a.verdict.equivalent)
            errors.append(0.5 * np.abs(truth - x).sum(axis=1).mean())
        row = {"design": name, "reps": len(kinds), "error": float(np.mean(errors))}
        rates = {kind: share([one == kind for one in kinds]) for kind in KINDS}
        row |= {kind: rate for kind, (rate, _) in rates.items()}
        found.append(row | {"equivalent": share(equivalent)[0]})
    return found


def table(rows: Rows) -> str:
    """Return the table of the page."""
    head = (
        "| design | data sets | true error | miscalibrated | negligible | not detected | "
        "inconclusive | equivalent |\n|---|---:|---:|---:|---:|---:|---:|---:|\n"
    )
    line = (
        "{*rows} | {design} | {reps} | {error:%1} | {miscalibrated:%0} | {negligible:%0} | "
        "{not_detected:%0} | {inconclusive:%0} | {equivalent:%0} |"
    )
    return head + fill(line, {"rows": rows})
