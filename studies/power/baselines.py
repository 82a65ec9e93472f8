"""Size and power of the test by baseline, where slopes differ: what the paper leaves for later.

The paper closes with it: the analysis is not invariant to the baseline, and "empirically, we have
found these effects to be very small". Labels follow a map against the last class; the test is made
with each class as the baseline. ``python -m studies.power.baselines`` writes what
`mcllo reproduce baseline` prints, in some minutes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import mcllo
from mcllo import simulate

from ..pages import ROOT, Rows, write
from ..tables import LEVEL, suppress_warnings

PATH = ROOT / "src" / "mcllo" / "reproduce" / "data" / "baseline.csv"
SIZES = (300, 1000)
REPS = 500
SLOPES = {
    "nothing is wrong": (1.0, 1.0, 1.0),
    "equal slopes": (0.85, 0.85, 0.85),
    "unequal slopes": (0.7, 1.0, 1.3),
    "one slope differs": (1.0, 1.0, 0.7),
}
"""Slopes of the first three of four classes; the shifts are 1."""


@suppress_warnings()
def rejections(n: int, slopes: tuple[float, ...], reps: int = REPS) -> np.ndarray:
    """Return in how many data sets each baseline rejects calibration."""
    n_classes = len(slopes) + 1
    rejected = np.zeros(n_classes, dtype=int)
    for rep in range(reps):
        drawn = simulate.draw(
            n,
            gamma=np.array(slopes),
            n_classes=n_classes,
            distribution="dirichlet",
            seed=np.random.default_rng([rep, n, 536]),
        )
        for b, name in enumerate(drawn.classes):
            test = mcllo.calibration_test(drawn.with_baseline(name), method="chi2")
            rejected[b] += test.pvalue <= LEVEL
    return rejected


def baseline_rows() -> Rows:
    """Return the rate of rejection of every design, by the baseline of the test."""
    rows = []
    for what, slopes in SLOPES.items():
        for n in SIZES:
            found = rejections(n, slopes)
            row = {"labels": what, "slopes": " ".join(map(str, slopes)), "n": n}
            rates = {f"baseline_{b + 1}": k / REPS for b, k in enumerate(found)}
            rows.append({**row, "reps": REPS, **rates})
    return rows


def main(path: Path = PATH) -> None:
    """Write the table into the package."""
    write(path, baseline_rows())


if __name__ == "__main__":
    main()
