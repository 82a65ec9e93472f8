"""How far is the chi-square p-value to be trusted? Its size by design, under a true H0.

The rule of ``method="auto"`` was read off such a table (with two real networks beside these
designs): expected errors per parameter, and the smallest variance of a class, against the rejection
rate at nominal 10, 5 and 1 %.
"""

import numpy as np
from scipy.stats import chi2

from benchmarks.data import sharp_under_h0
from mcllo import Predictions
from mcllo._batch import BatchedRatio
from mcllo._monte_carlo import StatisticDraws

DIRICHLET = (
    *(
        (c, n, 1.0)
        for c, n in ((2, 20), (2, 200), (3, 20), (3, 100), (3, 500), (7, 132), (10, 400))
    ),
    *((c, n, 0.1) for c, n in ((2, 200), (2, 1000), (3, 500), (7, 132), (7, 2000), (10, 500))),
    *((20, n, 0.3) for n in (400, 2000)),
)


def designs() -> dict[str, np.ndarray]:
    """Return named tables of probabilities."""
    rng = np.random.default_rng(7)
    found = {f"sharp c=10 n={n}": sharp_under_h0(n, 10, seed=n)[0] for n in (500, 2000, 10_000)}
    for c, n, a in DIRICHLET:
        rows = np.maximum(rng.dirichlet(np.full(c, a), n), 1e-12)
        found[f"Dirichlet({a}) c={c} n={n}"] = rows / rows.sum(axis=1, keepdims=True)
    return found


def sizes(probs: np.ndarray, draws: int, seed: int = 3) -> list[float]:
    """Return how often the likelihood ratio test rejects at nominal 10, 5 and 1 %."""
    p = Predictions.from_arrays(
        probs, np.zeros(len(probs), dtype=int), classes=range(probs.shape[1])
    )
    stream, ratio = StatisticDraws(p, seed), BatchedRatio(p.log_odds)
    parts = range(0, draws, stream.batch)
    s = np.vstack([stream(start, min(stream.batch, draws - start)) for start in parts])
    levels = chi2.isf([0.1, 0.05, 0.01], 2 * (p.n_classes - 1))
    return [float(ratio.reaches(s, level).mean()) for level in levels]


def main(draws: int = 1000) -> None:
    """Print the table."""
    print(f"\nsize of the chi-square likelihood ratio test, {draws} draws a design")
    for name, probs in designs().items():
        errors = (1.0 - probs.max(axis=1)).sum() / (2 * (probs.shape[1] - 1))
        variance = (probs * (1.0 - probs)).sum(axis=0).min()
        ten, five, one = sizes(probs, draws)
        print(
            f"  {name:28s} errors/parameter {errors:7.2f}  least variance {variance:8.2f}"
            f"   {ten:.3f} {five:.3f} {one:.3f}"
        )
