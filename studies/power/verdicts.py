"""What the paper claims of its simulation, by the rule.

Each claim is quoted. The paper does not say where its rows come from: what depends on them is
judged under five `Readings`. Intervals are those of the simulation, 95 %, settings taken as
independent of each other. An exception to "grows" is a step down beyond that error, 95 % for all
steps at once: of 44 steps one would look like a step down by chance.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from scipy.stats import binomtest, norm

from ..pages import Row, Tables
from ..rule import (
    LEVEL_MARGIN,
    Beyond,
    Check,
    Claim,
    Evidence,
    Readings,
    Settings,
    Typo,
    Within,
)

ALPHA, Z = 0.05, 1.959964
KEPT = ALPHA + LEVEL_MARGIN
"""A test keeps its level when it rejects no more than this."""


def claims(t: Tables) -> list[Claim]:
    """Return the claims with their evidence, from the tables."""
    cells, others = t["cells"], t["others"]
    kinds = {short(kind): at(rows) for kind, rows in by_kind(others).items()}
    grid = at(cells)
    null = [row for row in cells if row["delta_1"] == 1]
    ours, *flat = kinds
    theirs = f"the {len(flat)} other kinds of rows"

    def by_rows(
        evidence: Callable[[dict[tuple[int, float], Row]], Evidence],
    ) -> Readings:
        """Return the evidence under each kind of rows."""
        return Readings({kind: evidence(found) for kind, found in kinds.items()})

    faultless = [kinds[kind][5000, 1] for kind in flat]
    return [
        Claim(
            "power",
            '"our LRT becomes more powerful as sample size and effect size grow"',
            "Section 3.1",
            Settings(
                {
                    ours: steps_up(cells, "rejected"),
                    theirs: steps_up(
                        [row for row in others if short(row["rows"]) != ours],
                        "rejected",
                    ),
                }
            ),
        ),
        Claim(
            "asymptotic",
            '"The test statistic asymptotically follows a χ² distribution with 2(c − 1) degrees of '
            'freedom"',
            "Section 2.4",
            Settings(
                {
                    f"{ours}, n = 5,000": level([grid[5000, 1]]),
                    f"{theirs}, n = 5,000": level(faultless),
                }
            ),
        ),
        Claim(
            "level",
            '"the LRT test statistic … controls the type I error rate and gains power as sample '
            'size or departure from calibration grows, as shown in the simulation study"',
            "Section 5",
            level(null),
        ),
        Claim(
            "identifies",
            'MCLLO recalibration can "identify well-calibrated data"',
            "Section 1",
            level(null),
        ),
        Claim(
            "ece_grows",
            '"the ECE of probability predictions X increases with greater effect size"',
            "Section 3.2",
            by_rows(lambda v: above(v[5000, 1.4], v[5000, 1], "ece_before")),
        ),
        Claim(
            "stable",
            '"the MCLLO recalibrated predictions X* are more stable no matter how uncalibrated the '
            'original probability predictions X are"',
            "Section 3.2",
            by_rows(lambda v: Within(*between(v[5000, 1.4], v[5000, 1], "ece_after"))),
        ),
        Claim(
            "improves",
            'ECE "improves as our MCLLO recalibration approach is applied"',
            "Section 3.2",
            by_rows(lambda v: Beyond(*around(v[5000, 1.4], "difference"))),
        ),
        Claim(
            "little_effect",
            '"MCLLO recalibration has little effect on the ECE of the uncalibrated probability '
            'predictions X when the data are not calibrated"',
            "Section 3.2",
            Typo("an evident slip: when the data *are* calibrated"),
        ),
        Claim(
            "larger_effect",
            '"As effect size grows, MCLLO recalibration increasingly lowers the ECE of the '
            'probability predictions"',
            "Section 3.2",
            by_rows(lambda v: above(v[5000, 1.4], v[5000, 1], "difference")),
        ),
        Claim(
            "any_n",
            '"Unlike the LRT analysis in the previous subsection, the effectiveness of '
            'recalibration via ECE is not a function of sample size"',
            "Section 3.2",
            Settings(
                {
                    f"400 to {n:,} rows": Within(
                        *between(grid[n, 1.4], grid[400, 1.4], "difference")
                    )
                    for n in (1000, 5000)
                }
            ),
        ),
        Claim(
            "no_threshold",
            '"ECE fluctuates as sample size and effect size vary, making articulation of '
            'meaningful ECE thresholds difficult"',
            "Section 3.2",
            by_rows(lambda v: above(v[400, 1], v[5000, 1.4], "ece_before")),
        ),
    ]


def short(kind: str) -> str:
    """Return a distribution in few letters.

    >>> short("Dirichlet(3, 0.3, ..., 0.3)"), short("Dirichlet(0.1, ..., 0.1)")
    ('Dirichlet(3, 0.3)', 'Dirichlet(0.1)')
    """
    return re.sub(r", \.\.\., .*\)", ")", kind)


def by_kind(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the settings of each kind of rows."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["rows"], []).append(row)
    return found


def at(rows: Sequence[Row]) -> dict[tuple[int, float], Row]:
    """Return the settings by n and delta_1."""
    return {(row["n"], row["delta_1"]): row for row in rows}


def around(row: Row, what: str) -> tuple[float, float]:
    """Return the 95 % interval of a mean."""
    reach = Z * row[f"{what}_se"]
    return row[what] - reach, row[what] + reach


def between(one: Row, other: Row, what: str) -> tuple[float, float]:
    """Return the 95 % interval of what is between two means."""
    reach = Z * math.hypot(one[f"{what}_se"], other[f"{what}_se"])
    return one[what] - other[what] - reach, one[what] - other[what] + reach


def above(one: Row, other: Row, what: str) -> Beyond:
    """Return whether a mean is above another."""
    return Beyond(*between(one, other, what))


def level(rows: Sequence[Row]) -> Beyond:
    """Return whether settings in which nothing is wrong are rejected no more than allowed.

    >>> level([{"reps": 1000, "rejected": 0.05}]).verdict
    'holds'
    >>> level([{"reps": 300, "rejected": 0.2}]).verdict
    'does not hold'
    """
    n = sum(row["reps"] for row in rows)
    hits = sum(round(row["rejected"] * row["reps"]) for row in rows)
    low, high = binomtest(hits, n).proportion_ci(method="wilson")
    return Beyond(low, high, KEPT, below=True)


def steps_up(rows: Sequence[Row], what: str) -> Check:
    """Return the steps to the next larger n or delta_1 in which a rate falls beyond its error."""
    known = list(steps(rows))
    z = float(norm.isf(ALPHA / 2 / len(known)))
    return Check(sum(falls(*step, what, z) for step in known), len(known))


def steps(rows: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """Yield each pair of neighbours; where nothing is wrong, n has nothing to grow."""
    for own in by_kind([{"rows": "", **row} for row in rows]).values():
        known = at(own)
        sizes, shifts = sorted({n for n, _ in known}), sorted({d for _, d in known})
        for n, more in pairwise(sizes):
            yield from ((known[n, d], known[more, d]) for d in shifts if d > 1)
        for d, larger in pairwise(shifts):
            yield from ((known[n, d], known[n, larger]) for n in sizes)


def falls(one: Row, other: Row, what: str, z: float) -> bool:
    """Return whether the second rate is below the first by more than z standard errors."""
    variance = sum(row[what] * (1 - row[what]) / row["reps"] for row in (one, other))
    return bool(other[what] < one[what] - z * math.sqrt(variance))
