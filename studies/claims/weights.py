"""How often calibrated rows are rejected when they are weighted or grouped.

==========  ======================================================================================
labels      rows are kept with a chance that hangs on their label, 1 to 1/20 (two classes: 1/10)
errors      where the top class came true a row is kept with chance 1/20
stratum     labels, 1 to 1/10, and one half of the rows at random five times as rarely
rows        the surer a prediction, the rarer its row is kept
gamma       nothing is left out: weights are Gamma(1) numbers, for reasons that nobody told us
groups      rows of a group share one uniform number with chance 0.6 each, else have their own;
            sizes are 1 to 40, and in "one giant" one group has 500 rows
==========  ======================================================================================

Weights are 1 over the chance. Every label follows its probabilities before rows are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mcllo import Predictions, RobustTest, robust_test
from studies.claims import Rows, draw, rows_like, scaled, share
from studies.pages import grid, percent

PAGE = "explanation/groups-and-weights.md"
KINDS = {
    "flat": ("dirichlet:1", 3),
    "network": ("network", 10),
    "rare": ("rare", 2),
    "binary": ("dirichlet:.3", 2),
    "sharp": ("sharp", 2),
}
DESIGNS = [
    *((kind, "labels", n) for n in (100, 500) for kind in KINDS),
    *(
        (kind, why, 100)
        for why in ("errors", "stratum", "rows", "gamma")
        for kind in KINDS
    ),
    *((kind, "labels", 40) for kind in KINDS),
    *((kind, "groups", g) for g in (8, 20, 60) for kind in KINDS),
    *((kind, "one giant", 20) for kind in KINDS),
]
DRAWS = 199

Rng = np.random.Generator


def chances(why: str, probs: np.ndarray, y: np.ndarray, rng: Rng) -> np.ndarray:
    """Return the chance that each row is kept."""
    c, hit = probs.shape[1], probs.argmax(axis=1) == y
    if why == "labels":
        return np.geomspace(1.0, 0.05 if c > 2 else 0.1, c)[y]
    if why == "errors":
        return np.where(hit, 0.05, 1.0)
    if why == "stratum":
        return np.geomspace(1.0, 0.1, c)[y] * np.where(
            rng.random(len(y)) < 0.5, 1.0, 0.2
        )
    return 0.1 / (1.1 - probs.max(axis=1))


def sampled(
    kind: str, why: str, n: int, rng: Rng, n_resamples: int = DRAWS, slope: float = 1.0
) -> RobustTest:
    """Test `n` weighted rows of a population whose log odds should be multiplied by `slope`."""
    family, c = KINDS[kind]
    probs = rows_like(family, n if why == "gamma" else 30 * n, c, rng)
    y = draw(probs, rng)
    if why == "gamma":
        weight = rng.gamma(1.0, 1.0, n)
    else:
        chance = chances(why, probs, y, rng)
        kept = np.flatnonzero(rng.random(len(y)) < chance)[:n]
        probs, y, weight = probs[kept], y[kept], 1.0 / chance[kept]
    probs = scaled(probs, 1.0 / slope)
    rows = Predictions.from_arrays(probs, y, sample_weight=weight, weight_kind="survey")
    return robust_test(rows, n_resamples=n_resamples, seed=int(rng.integers(2**31)))


def grouped(
    kind: str, why: str, n_groups: int, rng: Rng, n_resamples: int = DRAWS
) -> RobustTest:
    """Test calibrated rows of groups whose labels are alike."""
    sizes = rng.integers(1, 41, n_groups)
    if why == "one giant":
        sizes[0] = 500
    groups, (family, c) = np.repeat(np.arange(n_groups), sizes), KINDS[kind]
    probs, n = rows_like(family, len(groups), c, rng), len(groups)
    u = np.where(rng.random(n) < 0.6, rng.random(n_groups)[groups], rng.random(n))
    y = (u[:, None] > probs.cumsum(axis=1)[:, :-1]).sum(axis=1)
    seed = int(rng.integers(2**31))
    return robust_test(
        Predictions.from_arrays(probs, y, groups=groups),
        n_resamples=n_resamples,
        seed=seed,
    )


def one_design(
    kind: str, why: str, n: int, reps: int, seed: int, n_resamples: int = DRAWS
) -> dict[str, Any]:
    """Return how often a design is rejected, and how many effective rows or groups it had."""
    rng = np.random.default_rng([seed, n, *map(ord, kind + why)])
    test: Callable[..., RobustTest] = (
        grouped if why in ("groups", "one giant") else sampled
    )
    found = [test(kind, why, n, rng, n_resamples) for _ in range(reps)]
    row: dict[str, Any] = {"rows": kind, "why": why, "n": n, "reps": reps}
    row["n_effective"] = float(np.median([t.n_effective for t in found]))
    row["inconclusive"] = float(np.mean([bool(t.inconclusive(0.05)) for t in found]))
    for level in (0.05, 0.01):
        row[f"size_{level}"], row[f"se_{level}"] = share(
            [t.rejects(level) for t in found]
        )
    return row


def run(reps: int, seed: int = 20, designs: Any = DESIGNS) -> Rows:
    """Return one row for each design."""
    return [one_design(*design, reps, seed) for design in designs]


WORDS = {
    "labels": "by label",
    "errors": "errors kept",
    "stratum": "by label and stratum",
    "rows": "by prediction",
    "gamma": "unrelated",
    "groups": "sizes 1 to 40",
    "one giant": "one of 500",
}


def table(rows: Rows) -> str:
    """Return the tables of the page: groups, and weights."""
    in_groups = [row for row in rows if row["why"] in ("groups", "one giant")]
    weighted = [row for row in rows if row not in in_groups]
    return "\n\n".join(
        [
            _sizes(in_groups, "groups", "{n} groups, {why}"),
            _sizes(weighted, "weights", "{why}, n = {n}"),
        ]
    )


def _sizes(rows: Rows, name: str, words: str) -> str:
    """Return a line for each reason and size, a column for each kind of predictions."""
    lines: dict[tuple[str, int], dict[str, str]] = {}
    for row in rows:
        key = row["why"], row["n"]
        about = words.format(n=row["n"], why=WORDS[row["why"]])
        line = lines.setdefault(
            key, {name: about, "effective (flat)": f"{row['n_effective']:.0f}"}
        )
        line[row["rows"]] = (
            f"{percent(row['size_0.05'], '1')[:-2]} / {percent(row['size_0.01'], '1')}"
        )
    return grid(list(lines.values()))
