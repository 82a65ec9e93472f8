"""Size of the Hosmer-Lemeshow test of tables too large to simulate.

For each design one table, and labels drawn from it again and again. "filled" is the p-value that
`assess` prints of such a table; "plain" would be chi-square on all 10 (c - 1) degrees of freedom,
however little a group expects.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

from mcllo import OmnibusTest, Predictions
from mcllo._inference.omnibus import HosmerLemeshow
from studies.claims import Rows, rows_like, scaled, share
from studies.pages import fill

PAGE = "explanation/what-the-test-misses.md"
LEVELS = {"5": 0.05, "1": 0.01, "01": 0.001}


class Design(NamedTuple):
    """Rows as `rows_like` makes them, then sharpened."""

    name: str
    kind: str
    n: int
    c: int
    slope: float = 1.0


DESIGNS = (
    Design("network", "network", 210_000, 10),
    Design("sharp", "sharp", 210_000, 10),
    Design("very sharp", "sharp", 210_000, 10, 2.0),
    Design("Dirichlet(0.02)", "dirichlet:.02", 110_000, 20),
    Design("rare events", "rare", 1_050_000, 2),
    Design("Dirichlet(0.05)", "dirichlet:.05", 21_000, 100),
)
TABLE = """\
| rows | n × classes | tables | df | 5 % | 1 % | 0.1 % | without merging: 5 % | 1 % | 0.1 % |
|---|---|---|---|---|---|---|---|---|---|
{*rows} | {rows} | {n:,} × {c} | {reps} | {df} of {all_df} | {filled_5:%1} | {filled_1:%1} | \
{filled_01:%2} | {plain_5:%1} | {plain_1:%1} | {plain_01:%1} |"""


def run(
    reps: int, seed: int = 1, designs: tuple[Design, ...] = DESIGNS, part: float = 1.0
) -> Rows:
    """Return the sizes of each design; `part` of its rows only."""
    return [
        _measured(d, int(part * d.n), reps, seed + k) for k, d in enumerate(designs)
    ]


def _measured(design: Design, n: int, reps: int, seed: int) -> dict[str, object]:
    rng = np.random.default_rng(seed)
    probs = scaled(rows_like(design.kind, n, design.c, rng), design.slope)
    known = Predictions.from_arrays(probs, np.zeros(n, int), classes=range(design.c))
    groups = HosmerLemeshow(known)
    filled, plain, df, all_df = [], [], 0, groups.n_groups * (design.c - 1)
    edges = np.ascontiguousarray(probs.cumsum(axis=1)[:, :-1].T)
    for _ in range(reps):
        labels = (rng.random(n) > edges).sum(axis=0)[None]
        test = OmnibusTest.of_groups(
            groups.observed(labels)[0] - groups.expected, groups.spread
        )
        filled.append(test.pvalue)
        plain.append(float(chi2.sf(groups.of_labels(labels)[0], all_df)))
        df = test.df or 0
    row: dict[str, object] = {"rows": design.name, "n": n, "c": design.c, "reps": reps}
    row |= {"df": df, "all_df": all_df}
    for name, found in (("filled", filled), ("plain", plain)):
        for level, alpha in LEVELS.items():
            rate, error = share(np.array(found) <= alpha)
            row |= {f"{name}_{level}": rate, f"{name}_{level}_se": error}
    return row


def table(rows: Rows) -> str:
    """Return the sizes as Markdown."""
    return fill(TABLE, {"rows": rows})
