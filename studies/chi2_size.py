"""How far is the chi-square p-value to be trusted? Its size by design, under a true H0.

The rule of ``method="auto"`` was read off such a table (with two real networks beside these
designs): expected errors per parameter, and the smallest variance of a class, against the rejection
rate at nominal 10, 5 and 1 %. ``python studies/chi2_size.py [draws]`` prints it, in some minutes.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

from mcllo import calibration_test

DIRICHLET = {
    1.0: ((2, 20), (2, 200), (3, 20), (3, 100), (3, 500), (7, 132), (10, 400)),
    0.1: ((2, 200), (2, 1000), (3, 500), (7, 132), (7, 2000), (10, 500)),
    0.3: ((20, 400), (20, 2000)),
}
LEVELS = (0.1, 0.05, 0.01)


def sharp(n: int, c: int = 10) -> np.ndarray:
    """Return sharp rows: 2 to 3 % expected errors."""
    rng = np.random.default_rng(n)
    logits = rng.normal(0.0, 1.0, size=(n, c))
    logits[np.arange(n), rng.integers(0, c, n)] += rng.gamma(4.0, 3.0, n)
    probs = np.exp(logits - logits.max(axis=1, keepdims=True))
    return probs / probs.sum(axis=1, keepdims=True)


def designs() -> dict[str, np.ndarray]:
    """Return named tables of probabilities."""
    rng = np.random.default_rng(7)
    found = {f"sharp c=10 n={n}": sharp(n) for n in (500, 2000, 10_000)}
    for a, c, n in ((a, *shape) for a, shapes in DIRICHLET.items() for shape in shapes):
        rows = np.maximum(rng.dirichlet(np.full(c, a), n), 1e-12)
        found[f"Dirichlet({a}) c={c} n={n}"] = rows / rows.sum(axis=1, keepdims=True)
    return found


def sizes(probs: np.ndarray, draws: int, seed: int = 3) -> np.ndarray:
    """Return how often the likelihood ratio test rejects at nominal 10, 5 and 1 %."""
    rng, cumulated = np.random.default_rng(seed), probs.cumsum(axis=1)[:, :-1]
    pvalues = []
    for _ in range(draws):
        y = (rng.random((len(probs), 1)) > cumulated).sum(axis=1)
        test = calibration_test(probs, y, classes=range(probs.shape[1]), method="chi2")
        pvalues.append(test.pvalue)
    return np.mean(np.array(pvalues)[:, None] <= LEVELS, axis=0)


def main(draws: int = 1000) -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    print(f"size of the chi-square likelihood ratio test, {draws} draws a design")
    for name, probs in designs().items():
        errors = (1.0 - probs.max(axis=1)).sum() / (2 * (probs.shape[1] - 1))
        variance = (probs * (1.0 - probs)).sum(axis=0).min()
        ten, five, one = sizes(probs, draws)
        print(
            f"  {name:28s} errors/parameter {errors:7.2f}  least variance {variance:8.2f}"
            f"   {ten:.3f} {five:.3f} {one:.3f}"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
