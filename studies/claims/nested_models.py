"""The nested models' closed test: how often is any true model called wrong, the full map included?

Predictions are calibrated, or off by one temperature, or MCLLO with one class off. An error is any
true model that is rejected; before, "the full map fits better than MCLLO" was said outside of the
closed test, at the whole level, and counts as an error too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mcllo import Predictions
from mcllo._diagnostics.class_tests import closed_test
from mcllo._diagnostics.nested_models import INSIDE, NestedModels, fit_nested_models
from mcllo._inference.budget import BRIEF_NESTED_WORK
from mcllo._utils.statements import suppress_warnings
from studies.claims import Rows, draw, rows_like, scaled, share
from studies.pages import fill

PAGE = "explanation/nested-models.md"
ALPHA = 0.05


@dataclass(frozen=True)
class Design:
    """Rows, and the smallest true model: labels are drawn from ``slope log x + shift``."""

    rows: str
    c: int
    n: int
    true: str = "identity"
    slope: float = 1.0
    shift: tuple[float, ...] = (0.0,)


DESIGNS = (
    Design("dirichlet:1", 3, 50),
    Design("dirichlet:1", 3, 500),
    Design("dirichlet:0.3", 5, 100),
    Design("dirichlet:1", 3, 60, "temperature", 0.5),
    Design("dirichlet:1", 3, 500, "temperature", 0.6),
    Design("dirichlet:0.3", 5, 400, "temperature", 0.6),
    Design("network", 10, 500, "temperature", 0.6),
    Design("dirichlet:1", 3, 500, "shift", 1.0, (0.8, 0.0, -0.4)),
)


def errors(found: NestedModels, true: str) -> tuple[bool, bool]:
    """Return whether a true model is rejected: by the closed test, and as it was before."""
    holds = {
        row.model
        for row in found.rows
        if row.model == true or true in INSIDE[row.model]
    }
    own = {row.model: row.larger_pvalue for row in found.rows}
    before = closed_test(own, INSIDE, found.alpha)
    beyond = own["mcllo"] <= found.alpha
    return (
        any(row.rejected for row in found.rows if row.model in holds),
        beyond or any(before[model] for model in holds),
    )


def run(reps: int, seed: int = 11, designs: Sequence[Design] = DESIGNS) -> Rows:
    """Return for each design the family's error, and the one before."""
    rows: Rows = []
    for number, design in enumerate(designs):
        rng = np.random.default_rng([seed, number])
        seen = []
        for _ in range(reps):
            probs = rows_like(design.rows, design.n, design.c, rng)
            y = draw(scaled(probs, design.slope, design.shift), rng)
            p = Predictions.from_arrays(probs, y, classes=list(range(design.c)))
            with suppress_warnings():
                found = fit_nested_models(
                    p,
                    n_resamples=199,
                    seed=int(rng.integers(2**31)),
                    alpha=ALPHA,
                    work=BRIEF_NESTED_WORK,
                )
            seen.append(errors(found, design.true))
        (now, se), (before, _) = (share([pair[k] for pair in seen]) for k in (0, 1))
        rows.append(
            {
                "rows": design.rows.replace("dirichlet:", "Dirichlet "),
                "c": design.c,
                "n": design.n,
                "true": design.true,
                "reps": reps,
                "error": now,
                "se": se,
                "before": before,
            }
        )
    return rows


LINES = """\
| rows | classes | n | smallest true model | a true model rejected | before |
|---|---|---|---|---|---|
{*designs} | {rows} | {c} | {n:,} | `{true}` | {error:%} | {before:%} |

{reps} data sets a line (Monte Carlo error up to {se:%}), level 5 %; over all lines {error:%}, and
{before:%} before."""


def table(rows: Rows) -> str:
    """Return the page's table."""
    mean = {
        name: sum(row[name] for row in rows) / len(rows) for name in ("error", "before")
    }
    facts = {
        "designs": rows,
        "reps": rows[0]["reps"],
        "se": max(row["se"] for row in rows),
    }
    return fill(LINES, facts | mean)
