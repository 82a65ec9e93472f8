"""`pvalue_corrected` of MCLLO: how often is a map rejected that is the same in both samples?

Labels of training rows and holdout follow the same map of the predictions, a slope. Nominal 5 %;
`errors` are the expected errors of the training rows for each parameter.
"""

from __future__ import annotations

import warnings

import numpy as np

from mcllo import Predictions, compare
from studies.claims import Rows, draw, rows_like, scaled, share
from studies.pages import grid

PAGE = "how-to/compare-methods.md"
N_RESAMPLES = 199
DESIGNS: dict[str, tuple[str, int, float, int, int]] = {
    "sharp, calibrated, 1000 / 200": ("sharp", 10, 1.0, 1000, 200),
    "sharp, calibrated, 4000 / 1000": ("sharp", 10, 1.0, 4000, 1000),
    "sharp, slope 0.5, 800 / 200": ("sharp", 10, 0.5, 800, 200),
    "a network's classes, calibrated, 1000 / 200": ("network", 10, 1.0, 1000, 200),
    "3 uneven classes, slope 0.6, 60 / 200": ("dirichlet:0.3", 3, 0.6, 60, 200),
    "rare events, calibrated, 600 / 200": ("rare", 2, 1.0, 600, 200),
    "3 even classes, slope 0.6, 100 / 100": ("dirichlet:1", 3, 0.6, 100, 100),
    "7 uneven classes, slope 0.6, 396 / 132": ("dirichlet:0.3", 7, 0.6, 396, 132),
}
"""Rows, classes, slope, rows for training and holdout."""


def one(
    kind: str, c: int, slope: float, n_train: int, n_judged: int, seed: int
) -> dict[str, float]:
    """Return the plain and the corrected p-value of one data set, how, and the errors."""
    rng = np.random.default_rng([seed, 15])
    probs = rows_like(kind, n_train + n_judged, c, rng)
    honest = scaled(probs, slope)
    y = draw(honest, rng)
    parts = (slice(0, n_train), slice(n_train, None))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = [
            Predictions.from_arrays(probs[p], y[p], classes=range(c)) for p in parts
        ]
        row = compare(*rows, methods=["mcllo"], n_resamples=N_RESAMPLES, seed=seed)[
            "mcllo"
        ]
    corrected = np.nan if row.pvalue_corrected is None else row.pvalue_corrected
    errors = float((1.0 - honest[:n_train].max(axis=1)).sum()) / (2.0 * (c - 1))
    drawn = getattr(row, "corrected_method", "") == "bootstrap"
    return {
        "plain": row.pvalue,
        "corrected": corrected,
        "drawn": drawn,
        "errors": errors,
    }


def run(
    reps: int,
    seed: int = 0,
    designs: dict[str, tuple[str, int, float, int, int]] = DESIGNS,
) -> Rows:
    """Return one row for each design; a p-value that is withheld rejects nothing."""
    rows = []
    for name, design in designs.items():
        found = [one(*design, seed * 100_000 + k) for k in range(reps)]
        column = {
            key: np.array([row[key] for row in found], dtype=float) for key in found[0]
        }
        rate, error = share(column["corrected"] <= 0.05)
        rows.append(
            {
                "design": name,
                "reps": reps,
                "errors": column["errors"].mean(),
                "drawn": column["drawn"].mean(),
                "withheld": np.isnan(column["corrected"]).mean(),
                "plain": (column["plain"] <= 0.05).mean(),
                "corrected": rate,
                "corrected_se": error,
            }
        )
    return rows


def table(rows: Rows) -> str:
    """Return the table of the page."""
    return grid(
        [
            {
                "rows, for training / judged": row["design"],
                "training errors per parameter": f"{row['errors']:.1f}",
                "labels drawn anew in": f"{100 * row['drawn']:.0f} %",
                "plain test rejects": f"{100 * row['plain']:.0f} %",
                "corrected test rejects (se)": (
                    f"{100 * row['corrected']:.1f} % ({100 * row['corrected_se']:.1f})"
                ),
            }
            for row in rows
        ]
    )
