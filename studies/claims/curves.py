"""Curves of reliability: how often their bands hold, and what calibrated predictions show.

==============  ================================================================================
consistency     calibrated rows: share of points where the isotonic curve leaves its band, and of
                data sets whose miscalibration has p <= .05
coverage        rows whose class comes true by a known smooth curve: share of points at which the
                band of the smooth curve holds it, on average and at the worst of seven quantiles
identity        of the same rows: largest ``|score - (miscalibration - discrimination +
                uncertainty)|``, and the smallest of the parts that must not be negative
==============  ================================================================================
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import mcllo
from studies.claims import Rows, rows_like, share
from studies.pages import grid, say

PAGE = "explanation/curves.md"
QUANTILES = (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98)
"""Of the rows' predictions: where the smooth band is asked for."""
N_DRAWS = 199


def logit(p: np.ndarray) -> np.ndarray:
    """Return log odds."""
    return np.log(p) - np.log1p(-p)


def expit(x: np.ndarray) -> np.ndarray:
    """Return probabilities."""
    return 1.0 / (1.0 + np.exp(-x))


TRUTHS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "as predicted": lambda p: p,
    "overconfident": lambda p: expit(0.6 * logit(p) + 0.3),
    "strongly overconfident": lambda p: expit(0.25 * logit(p) - 0.7),
    "never sure": lambda p: 0.05 + 0.8 * p,
    "5 % drawn at random": lambda p: 0.025 + 0.95 * p,
}
"""How often the class comes true, by its prediction."""

CALIBRATED = [
    ("dirichlet:1", 300, 3, 0),
    ("dirichlet:1", 3000, 3, 0),
    ("rare", 500, 2, 0),
    ("network", 1000, 10, None),
    ("votes", 400, 3, 0),
]
"""Rows, how many, classes, and which class; None is the most probable one."""

SMOOTH = [
    ("dirichlet:1", 150, 3, 0),
    ("dirichlet:1", 1000, 3, 0),
    ("dirichlet:1", 10_000, 3, 0),
    ("dirichlet:0.5", 200, 2, 0),
    ("dirichlet:0.5", 2000, 2, 0),
    ("rare", 500, 2, 0),
    ("sharp", 500, 10, None),
    ("network", 500, 10, None),
    ("network", 4000, 10, None),
    ("groups", 2000, 3, 0),
]


def rows_of(kind: str, n: int, c: int, rng: np.random.Generator) -> np.ndarray:
    """Return rows of `rows_like`; "votes" are shares of ten votes: few distinct values."""
    if kind == "votes":
        probs = rng.dirichlet(np.ones(c), n)
        return np.array([rng.multinomial(10, row) for row in probs]) / 10.0
    return rows_like("dirichlet:1" if kind == "groups" else kind, n, c, rng)


def labels(
    probs: np.ndarray, label: int | None, uniform: np.ndarray, chance: np.ndarray
) -> np.ndarray:
    """Return labels: the class (or the most probable one) with its chance, else another."""
    own = probs.argmax(axis=1) if label is None else np.full(len(probs), label)
    others = (own + 1) % probs.shape[1]
    return np.where(uniform < chance, own, others)


def run(reps: int, seed: int = 20210218) -> Rows:
    """Return a row for each design."""
    found: Rows = []
    for kind, n, c, label in CALIBRATED:
        found.append(consistency(kind, n, c, label, reps, seed))
    for kind, n, c, label in SMOOTH:
        for truth in TRUTHS:
            found.append(coverage(kind, n, c, label, truth, reps, seed))
    return found


def consistency(
    kind: str, n: int, c: int, label: int | None, reps: int, seed: int
) -> dict:
    """Return how often the isotonic curve of calibrated rows leaves its band."""
    rng = np.random.default_rng([seed, n, c])
    outside, rejected, gap, least = [], [], 0.0, np.inf
    for k in range(reps):
        probs = rows_of(kind, n, c, rng)
        own = probs.max(axis=1) if label is None else probs[:, label]
        y = labels(probs, label, rng.random(n), own)
        with np.errstate(invalid="ignore"):
            curve = mcllo.isotonic_curve(
                probs, y, label=label, classes=range(c), n_resamples=N_DRAWS, seed=k
            )
        outside.append(curve.outside.mean())
        rejected.append(curve.null.pvalue <= 0.05)
        hits = y == (probs.argmax(axis=1) if label is None else label)
        right = np.where(hits, own, 1.0 - own)
        for parts, score in (
            (curve.brier, np.mean((1.0 - right) ** 2)),
            (curve.log_loss, -np.mean(np.log(right))),
        ):
            total = parts.miscalibration - parts.discrimination + parts.uncertainty
            gap = max(gap, abs(score - total))
            least = min(least, parts.miscalibration, parts.discrimination)
    row = _row("consistency", kind, n, label, "as predicted", reps)
    rate, error = float(np.mean(outside)), float(np.std(outside) / np.sqrt(reps))
    false, false_error = share(rejected)
    row |= {"rate": rate, "se": error, "worst": None, "rejected": false}
    return row | {"rejected_se": false_error, "ici": None, "gap": gap, "least": least}


def coverage(
    kind: str, n: int, c: int, label: int | None, truth: str, reps: int, seed: int
) -> dict:
    """Return how often the band of the smooth curve holds the true one."""
    rng = np.random.default_rng([seed, n, c, len(kind)])
    held, distance = [], []
    for _ in range(reps):
        probs = rows_of(kind, n, c, rng)
        own = probs.max(axis=1) if label is None else probs[:, label]
        groups, uniform = None, rng.random(n)
        if kind == "groups":  # 60 % of the rows of a group of ten share one uniform
            groups = np.repeat(np.arange(n // 10), 10)
            shared = rng.random(n // 10)[groups]
            uniform = np.where(rng.random(n) < 0.6, shared, uniform)
        y = labels(probs, label, uniform, TRUTHS[truth](own))
        rows = mcllo.Predictions.from_arrays(probs, y, classes=range(c), groups=groups)
        curve = mcllo.smooth_curve(rows, label=label)
        points = np.quantile(own, QUANTILES).clip(1e-12, 1.0 - 1e-12)
        at, right = curve.at(points), TRUTHS[truth](points)
        held.append((np.array(at["low"]) <= right) & (right <= np.array(at["high"])))
        distance.append(curve.ici)
    cells = np.array(held)
    row = _row("coverage", kind, n, label, truth, reps)
    row |= {
        "rate": float(cells.mean()),
        "se": float(cells.mean(axis=1).std() / np.sqrt(reps)),
    }
    row |= {
        "worst": float(cells.mean(axis=0).min()),
        "rejected": None,
        "rejected_se": None,
    }
    return row | {"ici": float(np.mean(distance)), "gap": None, "least": None}


def _row(
    part: str, kind: str, n: int, label: int | None, truth: str, reps: int
) -> dict:
    of = "most probable class" if label is None else "one class"
    return {"part": part, "rows": kind, "of": of, "n": n, "truth": truth, "reps": reps}


NAMES = {
    "dirichlet:1": "three classes, evenly spread",
    "dirichlet:0.5": "two classes, rather sure",
    "rare": "rare event, about 5 %",
    "network": "image network, ten classes",
    "sharp": "sharp, 2 to 3 % errors",
    "votes": "shares of ten votes",
    "groups": "three classes, groups of ten rows",
}


def table(rows: Rows) -> str:
    """Return the page's tables."""
    first = [row for row in rows if row["part"] == "consistency"]
    second = [row for row in rows if row["part"] == "coverage"]
    bands = [
        {
            "rows": f"{NAMES[row['rows']]}; {row['of']}",
            "n": say("{n:,}", row),
            "points outside the band": say("{rate:%1} (se {se:%1})", row),
            "p ≤ .05": say("{rejected:%1} (se {rejected_se:%1})", row),
        }
        for row in first
    ]
    designs = dict.fromkeys((row["rows"], row["of"], row["n"]) for row in second)
    covered = []
    for kind, of, n in designs:
        own = {
            row["truth"]: row for row in second if (row["rows"], row["n"]) == (kind, n)
        }
        cells = {"rows": f"{NAMES[kind]}; {of}", "n": f"{n:,}"}
        for truth in TRUTHS:
            cells[truth] = say("{rate:%1} ({worst:%0})", own[truth])
        cells["ICI, as predicted"] = say("{ici:.4f}", own["as predicted"])
        covered.append(cells)
    reps, error = second[0]["reps"], max(row["se"] for row in second)
    gap, least = max(row["gap"] for row in first), min(row["least"] for row in first)
    return "\n".join(
        [
            f"Calibrated rows, {first[0]['reps']:,} data sets each, {N_DRAWS} draws of labels:",
            "",
            grid(bands),
            "",
            "In all of them miscalibration - discrimination + uncertainty is the score, taken row "
            f"by row, within {gap:.0e}; neither part is negative (smallest: {least:.1e}).",
            "",
            f"Share of points at which the band of the smooth curve holds the true curve, {reps:,} "
            f"data sets each (Monte Carlo standard error at most {100 * error:.1f} points); in "
            "brackets the worst of seven quantiles of the rows; last, the mean ICI where the "
            "predictions are right:",
            "",
            grid(covered),
        ]
    )
