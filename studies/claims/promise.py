"""`AutoCalibrator.expected_gain_`: is what it promises true of new rows, and its error as stated?

Each repetition fits to rows whose labels follow known probabilities, and takes the true gain from
these on `N_NEW` new rows. Only data sets in which a recalibration is made count: elsewhere nothing
is changed, and nothing gained.
"""

from __future__ import annotations

import warnings

import numpy as np

from mcllo.calibrators import AutoCalibrator
from studies.claims import Rows, draw, rows_like, scaled, share
from studies.pages import grid

PAGE = "explanation/auto.md"
N_NEW = 4000
DESIGNS = {
    "3 even classes, 200 rows, calibrated": ("dirichlet:1", 3, 200, 1.0),
    "3 even classes, 1000 rows, calibrated": ("dirichlet:1", 3, 1000, 1.0),
    "4 classes, rather sure, 100 rows, calibrated": ("dirichlet:0.5", 4, 100, 1.0),
    "rare events, 500 rows, calibrated": ("rare", 2, 500, 1.0),
    "sharp rows of 10 classes, 400 rows, calibrated": ("sharp", 10, 400, 1.0),
    "4 classes, rather sure, 100 rows, slope 0.75": ("dirichlet:0.5", 4, 100, 0.75),
    "3 even classes, 200 rows, slope 0.85": ("dirichlet:1", 3, 200, 0.85),
    "3 even classes, 200 rows, slope 0.7": ("dirichlet:1", 3, 200, 0.7),
    "a network's 10 classes, 400 rows, slope 0.6": ("network", 10, 400, 0.6),
    "sharp rows of 10 classes, 400 rows, slope 0.6": ("sharp", 10, 400, 0.6),
}


def one(
    kind: str, c: int, n: int, slope: float, seed: int
) -> tuple[float, float, float, float]:
    """Return the promise, its standard error, the cross-validated and the true gain; or nothing."""
    rng = np.random.default_rng([seed, 14])
    probs = rows_like(kind, n + N_NEW, c, rng)
    honest = scaled(probs, slope)
    y = draw(honest, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = AutoCalibrator(classes=range(c)).fit(probs[:n], y[:n])
        recalibrated = fit.predict_proba(probs[n:])
    if fit.weights_["identity"] == 1.0:
        return (np.nan,) * 4
    logs = np.log(recalibrated) - np.log(probs[n:])
    true = float((honest[n:] * logs).sum(axis=1).mean())
    return fit.expected_gain_, fit.expected_gain_se_, fit.stack_.gain, true


def run(
    reps: int, seed: int = 0, designs: dict[str, tuple[str, int, int, float]] = DESIGNS
) -> Rows:
    """Return one row for each design."""
    rows = []
    for name, design in designs.items():
        found = np.array([one(*design, seed * 100_000 + k) for k in range(reps)])
        made = ~np.isnan(found[:, 0])
        promised, error, gain, true = found[made].T
        covered, covered_se = share(np.abs(promised - true) < 1.96 * error)
        rows.append(
            {
                "design": name,
                "reps": reps,
                "recalibrated": made.mean(),
                "cross_validated": gain.mean(),
                "promised": promised.mean(),
                "true": true.mean(),
                "excess": (promised - true).mean(),
                "excess_se": (promised - true).std(ddof=1) / np.sqrt(made.sum()),
                "covered": covered,
                "covered_se": covered_se,
            }
        )
    return rows


def table(rows: Rows) -> str:
    """Return the table of the page."""
    return grid(
        [
            {
                "rows to fit": row["design"],
                "recalibrated in": f"{100 * row['recalibrated']:.0f} %",
                "cross-validated gain": f"{row['cross_validated']:.4f}",
                "expected": f"{row['promised']:.4f}",
                "true": f"{row['true']:.4f}",
                "expected less true (se)": f"{row['excess']:.4f} ({row['excess_se']:.4f})",
                "within 1.96 standard errors": f"{100 * row['covered']:.0f} %",
            }
            for row in rows
        ]
    )
