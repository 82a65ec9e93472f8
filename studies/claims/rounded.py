"""How often rounded probabilities are called miscalibrated: calibrated before rounding, and not.

A network: one logit is raised by N(m, s), all have noise N(0, 1). Labels are drawn from the
probabilities before they are rounded; of overconfident ones, from those with slope 0.7.
"""

from __future__ import annotations

import numpy as np

import mcllo
from studies.claims import Rows, draw, scaled
from studies.pages import fill

PAGE = "explanation/zeros.md"
DESIGNS = {
    "5 classes, N(6, 3), 500 rows, 2 decimals": (500, 5, 6.0, 3.0, 2),
    "5 classes, N(6, 3), 3,000 rows, 2 decimals": (3000, 5, 6.0, 3.0, 2),
    "10 classes, N(10, 3), 3,000 rows, 2 decimals": (3000, 10, 10.0, 3.0, 2),
    "10 classes, N(10, 3), 3,000 rows, 3 decimals": (3000, 10, 10.0, 3.0, 3),
    "2 classes, N(3, 3), 3,000 rows, whole percents": (3000, 2, 3.0, 3.0, 2),
    "3 classes, N(3, 2), 1,000 rows, 1 decimal": (1000, 3, 3.0, 2.0, 1),
}
TABLE = """\
| rows | data sets | calibrated: *miscalibrated* | zeros at 1e-6 | slope 0.7: *miscalibrated* |
|---|---|---|---|---|
{*rows} | {rows} | {reps} | {now:%1} | {before:%1} | {power:%0} |"""


def network(n: int, c: int, m: float, s: float, rng: np.random.Generator) -> np.ndarray:
    """Return rows with one logit raised by N(m, s)."""
    logits = rng.normal(size=(n, c))
    logits[np.arange(n), rng.integers(0, c, n)] += rng.normal(m, s, n)
    probs = np.exp(logits - logits.max(axis=1, keepdims=True))
    return probs / probs.sum(axis=1, keepdims=True)


def run(reps: int, seed: int = 8, designs: tuple[str, ...] = tuple(DESIGNS)) -> Rows:
    """Return shares of verdicts *miscalibrated*, beside those with a floor of 1e-6."""
    found = []
    for name in designs:
        n, c, m, s, decimals = DESIGNS[name]
        rng = np.random.default_rng([seed, n, c, decimals])
        now, before, power = [], [], []
        for _ in range(reps):
            probs = network(n, c, m, s, rng)
            rounded, y = probs.round(decimals), draw(probs, rng)
            now.append(_miscalibrated(rounded, y))
            before.append(_miscalibrated(rounded, y, clip=1e-6))
            power.append(_miscalibrated(rounded, draw(scaled(probs, 0.7), rng)))
        row = {"rows": name, "reps": reps, "now": float(np.mean(now))}
        found.append(
            row | {"before": float(np.mean(before)), "power": float(np.mean(power))}
        )
    return found


def _miscalibrated(probs: np.ndarray, y: np.ndarray, clip: float | None = None) -> bool:
    options = {"classes": range(probs.shape[1]), "normalize": True, "clip": clip}
    a = mcllo.assess(probs, y, seed=1, n_resamples=199, **options)
    return a.verdict.kind == "miscalibrated"


def table(rows: Rows) -> str:
    """Return the table as Markdown."""
    return fill(TABLE, {"rows": rows})
