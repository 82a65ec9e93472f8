"""Intervals of `Comparison.recommendation`: do they hold for all methods at once?

Each repetition fits the methods to training rows, and judges them on a holdout as `compare` does.
The true log losses of the fitted maps come from the known probabilities of `N_NEW` new rows.

==============  ================================================================================
joint           all differences to the picked method are inside their intervals
gain            that of the picked method over doing nothing is, where it is a recalibration
best named      the truly best method is the picked one, or cannot be told from it
false           the picked method "improves", and is truly worse than doing nothing
==============  ================================================================================
"""

from __future__ import annotations

import warnings

import numpy as np

from mcllo import CALIBRATORS, Predictions
from mcllo._comparison.recommend import UNCALIBRATED, recommend
from studies.claims import Rows, draw, rows_like, scaled, share
from studies.pages import grid

PAGE = "explanation/comparing.md"
N_NEW = 8000
SIMPLE, WITH_STEPS = ("temperature", "mcllo"), ("temperature", "mcllo", "isotonic")
ALL = (*WITH_STEPS, "histogram", "beta", "auto")

Design = tuple[str, int, float, int, int, tuple[str, ...]]
DESIGNS: dict[str, Design] = {
    "3 even classes, calibrated, 300 / 200": ("dirichlet:1", 3, 1.0, 300, 200, SIMPLE),
    "the same, with isotonic": ("dirichlet:1", 3, 1.0, 300, 200, WITH_STEPS),
    "slope 0.7, with isotonic": ("dirichlet:1", 3, 0.7, 300, 200, WITH_STEPS),
    "match forecasts, slope 0.8, 1000 / 500": (
        "forecast",
        3,
        0.8,
        1000,
        500,
        WITH_STEPS,
    ),
    "sharp, 10 classes, calibrated, 1000 / 200": ("sharp", 10, 1.0, 1000, 200, SIMPLE),
    "sharp, slope 0.6, 1000 / 200": ("sharp", 10, 0.6, 1000, 200, SIMPLE),
    "sharp, calibrated, 5000 / 1000": ("sharp", 10, 1.0, 5000, 1000, WITH_STEPS),
    "rare events, calibrated, 300 / 150": ("rare", 2, 1.0, 300, 150, SIMPLE),
    "a network's classes, slope 0.7, 1000 / 500": (
        "network",
        10,
        0.7,
        1000,
        500,
        WITH_STEPS,
    ),
    "3 even classes, calibrated, six methods": ("dirichlet:1", 3, 1.0, 300, 200, ALL),
    "a map that no method has, six methods": ("mixed", 4, 1.0, 500, 200, ALL),
}
"""Rows, classes, slope, rows for training and holdout, methods."""


def both_rows(
    kind: str, c: int, slope: float, n: int, rng: np.random.Generator
) -> np.ndarray:
    """Return predictions and the probabilities that labels follow, shape (2, n, c)."""
    if kind == "forecast":
        probs = rng.dirichlet([9.0, 5.0, 6.0], n)
    elif kind == "mixed":  # part of each class goes to the next one, by a curve
        probs = rows_like("dirichlet:0.5", n, c, rng)
        honest = 0.7 * probs + 0.3 * np.roll(probs, 1, axis=1) ** 2 + 1e-12
        return np.stack([probs, honest / honest.sum(axis=1, keepdims=True)])
    else:
        probs = rows_like(kind, n, c, rng)
    return np.stack([probs, scaled(probs, slope)])


def one(design: Design, seed: int) -> tuple[bool, bool | None, bool, bool]:
    """Return joint, gain, best named and false of one data set; gain None where none is picked."""
    kind, c, slope, n_train, n_judged, methods = design
    rng = np.random.default_rng([seed, 14])
    probs, honest = both_rows(kind, c, slope, n_train + n_judged + N_NEW, rng)
    y = draw(honest, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train = Predictions.from_arrays(probs[:n_train], y[:n_train], classes=range(c))
        rest = Predictions.from_arrays(probs[n_train:], y[n_train:], classes=range(c))
        made = {
            name: CALIBRATORS[name]().fit(train).predict_proba(rest) for name in methods
        }
        sets = {UNCALIBRATED: rest} | {
            name: rest.with_probs(table) for name, table in made.items()
        }
    later = honest[n_train + n_judged :]
    true = {
        name: float(-(later * np.log(p.probs[n_judged:])).sum(axis=1).mean())
        for name, p in sets.items()
    }
    r = recommend({name: p.take(np.arange(n_judged)) for name, p in sets.items()})
    covered = {
        d.method: d.low - 1e-6 <= true[d.method] - true[r.method] <= d.high + 1e-6
        for d in r.differences
    }
    worse = true[r.method] > true[UNCALIBRATED]
    named = min(true, key=lambda name: true[name]) in (r.method, *r.ties)
    return all(covered.values()), covered.get(UNCALIBRATED), named, r.improves and worse


def run(reps: int, seed: int = 0, designs: dict[str, Design] = DESIGNS) -> Rows:
    """Return one row for each design."""
    rows = []
    for name, design in designs.items():
        found = [one(design, seed * 100_000 + k) for k in range(reps)]
        joint, gain, named, false = zip(*found, strict=True)
        picked = [hit for hit in gain if hit is not None]
        rates = {
            "joint": joint,
            "gain": picked or [np.nan],
            "named": named,
            "false": false,
        }
        row = {"design": name, "methods": len(design[-1]), "reps": reps}
        for what, hits in rates.items():
            row[what], row[f"{what}_se"] = share(np.array(hits, dtype=float))
        rows.append(row)
    return rows


def table(rows: Rows) -> str:
    """Return the table of the page."""
    return grid(
        [
            {
                "rows, for training / judged": row["design"],
                "methods": row["methods"],
                "all intervals hold (se)": f"{row['joint']:.3f} ({row['joint_se']:.3f})",
                "that of the gain": f"{row['gain']:.3f}",
                "the truly best is named": f"{row['named']:.3f}",
                "improves, though worse": f"{row['false']:.3f}",
            }
            for row in rows
        ]
    )
