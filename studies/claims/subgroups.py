"""Subgroups: does the test that one map fits all hold its level, and the verdicts of each theirs?

"one map": all subgroups follow one map, which is the identity or a slope; how often the test says
that they differ, beside what chi-square alone would say of the likelihood ratio. "calibrated": how
often any subgroup of calibrated rows is called miscalibrated. "off": what is found where some
subgroups are off, through `mcllo.subgroups` itself.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2

from mcllo import Predictions, calibration_test, subgroups
from mcllo._diagnostics.class_tests import holm
from mcllo._diagnostics.subgroups import homogeneity_test, run_test_of_each_subgroup
from mcllo._fit.fit import fit_predictions
from mcllo._utils.statements import suppress_warnings
from studies.claims import Rows, draw, rows_like, scaled, share
from studies.pages import fill

PAGE = "how-to/subgroups.md"
TOLERANCE = 0.01


class Design(NamedTuple):
    """Subgroups whose sizes run from the least to `unequal` times as many rows.

    Predictions of the first subgroups are labels' probabilities to these `slopes`; `common` holds
    for all of them.
    """

    part: str
    name: str
    kind: str
    c: int
    groups: int
    n: int
    unequal: float = 1.0
    common: float = 1.0
    slopes: tuple[float, ...] = ()
    slower: int = 1


DESIGNS = (
    Design("one map", "Dirichlet(1)", "dirichlet:1", 3, 2, 40),
    Design("one map", "Dirichlet(1)", "dirichlet:1", 3, 10, 200, 5.0),
    Design("one map", "Dirichlet(1)", "dirichlet:1", 3, 30, 600, 1.0, 1.5),
    Design("one map", "Dirichlet(1)", "dirichlet:1", 3, 4, 4000),
    Design("one map", "Dirichlet(0.3)", "dirichlet:.3", 5, 5, 500, 5.0, 2.0),
    Design("one map", "rare events", "rare", 2, 10, 3000, 5.0),
    Design("one map", "sharp", "sharp", 3, 3, 2000, 10.0, 0.6),
    Design("one map", "sharp", "sharp", 3, 5, 500, 3.0),
    Design("one map", "network", "network", 10, 4, 4000, slower=2),
    Design("calibrated", "Dirichlet(1)", "dirichlet:1", 3, 5, 1000),
    Design("calibrated", "Dirichlet(1)", "dirichlet:1", 3, 20, 1500, 5.0, slower=2),
    Design("calibrated", "rare events", "rare", 2, 10, 3000, 5.0, slower=2),
    Design("calibrated", "network", "network", 10, 4, 4000, slower=4),
    Design(
        "off",
        "opposite slopes",
        "dirichlet:1",
        3,
        4,
        2000,
        slopes=(1.5, 0.67),
        slower=4,
    ),
    Design("off", "one of ten", "dirichlet:1", 3, 10, 3000, slopes=(2.0,), slower=8),
    Design(
        "off", "all by a point", "dirichlet:1", 3, 4, 80_000, common=1.052, slower=8
    ),
)
NAMES = (
    "found_5",
    "found_1",
    "chi2_5",
    "simulated",
    "innocent",
    "error",
    "pooled",
    "differ",
)
NAMES += ("named", "equivalent", "cannot")
TABLE = """\
**Does one map fit all?** All subgroups follow one map; how often the test says that they differ.
"Chi-square alone" is what the likelihood ratio would say everywhere; the test uses it where it can
be trusted.

| rows | classes | subgroups | rows in all | data sets | 5 % | 1 % | chi-square alone, 5 % | \
simulated |
|---|---|---|---|---|---|---|---|---|
{*same} | {design} | {c} | {groups} | {n:,} | {reps:,} | {found_5:%1} | {found_1:%1} | \
{chi2_5:%1} | {simulated:%0} |

**Calibrated rows.** How often any subgroup at all is called miscalibrated at level 5 %.

| rows | classes | subgroups | rows in all | data sets | any called miscalibrated |
|---|---|---|---|---|---|
{*calibrated} | {design} | {c} | {groups} | {n:,} | {reps:,} | {innocent:%1} |

**Some are off.** How often the test of all rows together rejects, that of one map for all, how many
of those that are off are named, how often a calibrated one is, and how often any subgroup that is
off by more than the tolerance is called equivalent to calibrated, or negligible.

| design | subgroups | rows in all | data sets | all rows | one map for all | named | a calibrated \
one \
named | wrongly small |
|---|---|---|---|---|---|---|---|---|
{*off} | {design} | {groups} | {n:,} | {reps:,} | {pooled:%0} | {differ:%0} | {named:%0} | \
{innocent:%1} | {equivalent:%1} |"""


def run(reps: int, seed: int = 1, designs: tuple[Design, ...] = DESIGNS) -> Rows:
    """Return one row for each design; slow ones are repeated less often."""
    return [
        _measured(d, max(1, reps // d.slower), seed + k) for k, d in enumerate(designs)
    ]


def _measured(design: Design, reps: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    each = {"one map": _same, "calibrated": _calibrated, "off": _off}[design.part]
    with suppress_warnings():
        found = [
            each(design, *made(design, rng), int(rng.integers(2**31)))
            for _ in range(reps)
        ]
    row: dict[str, Any] = {"part": design.part, "design": design.name, "c": design.c}
    row |= {
        "groups": design.groups,
        "n": design.n,
        "unequal": design.unequal,
        "reps": reps,
    }
    for name in NAMES:
        values = np.array([one.get(name, math.nan) for one in found], dtype=float)
        known = bool(np.isfinite(values).all())
        row[name], row[f"{name}_se"] = share(values) if known else (None, None)
    return row


def made(design: Design, rng: np.random.Generator) -> tuple[np.ndarray, Predictions]:
    """Return the probabilities of the labels, and predictions in subgroups."""
    part = np.linspace(1.0, design.unequal, design.groups)
    sizes = np.maximum(2, np.round(design.n * part / part.sum())).astype(int)
    by = np.repeat(np.arange(design.groups), sizes)
    honest = rows_like(design.kind, len(by), design.c, rng)
    slopes = np.full(design.groups, design.common)
    slopes[: len(design.slopes)] = design.slopes
    probs = scaled(honest, slopes[by][:, None])
    labels = draw(honest, rng)
    return honest, Predictions.from_arrays(
        probs, labels, classes=range(design.c), by=by, clip=1e-12
    )


def _same(
    design: Design, honest: np.ndarray, rows: Predictions, seed: int
) -> dict[str, float]:
    assert rows.by is not None
    fit, parts = fit_predictions(rows), rows.by.parts
    fits = [fit_predictions(rows.take(part)) for part in parts]
    test = homogeneity_test(rows, fit, fits, parts, n_resamples=499, seed=seed)
    ratio = 2.0 * (sum(own.log_likelihood for own in fits) - fit.log_likelihood)
    return {
        "found_5": test.pvalue <= 0.05,
        "found_1": test.pvalue <= 0.01,
        "chi2_5": chi2.sf(ratio, test.df) <= 0.05,
        "simulated": test.method == "bootstrap",
    }


def _calibrated(
    design: Design, honest: np.ndarray, rows: Predictions, seed: int
) -> dict[str, float]:
    adjusted = holm(
        [
            own.test.pvalue
            for own in run_test_of_each_subgroup(rows, n_resamples=999, seed=seed)
        ]
    )
    return {"innocent": bool(adjusted.min() <= 0.05)}


def _off(
    design: Design, honest: np.ndarray, rows: Predictions, seed: int
) -> dict[str, float]:
    assert rows.by is not None
    found, change = subgroups(rows, by=rows.by, seed=seed), np.abs(honest - rows.probs)
    error = np.array([0.5 * change[part].sum(axis=1).mean() for part in rows.by.parts])
    verdicts = found.decide(tolerance=TOLERANCE)
    small = np.array([v.equivalent or v.kind == "negligible" for v in verdicts])
    named, off = np.array([verdict.rejected for verdict in verdicts]), error > 1e-6
    return {
        "error": float(error.max()),
        "differ": found.test.pvalue <= 0.05,
        "pooled": calibration_test(rows, seed=seed).pvalue <= 0.05,
        "innocent": bool(named[~off].any()) if (~off).any() else math.nan,
        "named": float(named[off].mean()),
        "equivalent": bool(small[error > TOLERANCE].any()),
        "cannot": float(
            np.mean([verdict.kind == "inconclusive" for verdict in verdicts])
        ),
    }


def table(rows: Rows) -> str:
    """Return the three tables as Markdown."""
    parts = {"same": "one map", "calibrated": "calibrated", "off": "off"}
    return fill(
        TABLE,
        {
            name: [row for row in rows if row["part"] == part]
            for name, part in parts.items()
        },
    )
