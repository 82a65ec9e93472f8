"""What the study simulates: the paper's grid, exact p-values, other rows, and sharp rows.

=============  ==================================================================================
``grid``       the paper's 30 settings, chi-square p-values, ECE before and after
``exact``      the same data sets, as many as time allows, with exact p-values
``others``     the corners of the grid with rows from three other distributions
``sharp``      rows as an image network gives them, with the default p-value: size and power
=============  ==================================================================================

Every part has the same seed, so that repetition r of a setting is the same data set in each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import mcllo.simulate
from mcllo.simulate import PowerStudy

SEED = 18573
SIZES = (400, 450, 500, 600, 1000, 5000)
DELTAS = (1.0, 1.1, 1.2, 1.3, 1.4)
EXACT_SIZES, EXACT_DELTAS = (400, 450, 500, 600, 1000), (1.0, 1.2, 1.4)
OTHER_SIZES, OTHER_DELTAS = (400, 1000, 5000), (1.0, 1.4)
OTHERS: dict[str, dict[str, Any]] = {
    "dirichlet_1": {"distribution": "dirichlet", "concentration": 1.0},
    "dirichlet_0.3": {"distribution": "dirichlet", "concentration": 0.3},
    "softmax_normal": {"distribution": "softmax_normal", "scale": 1.0},
}
SHARP_SIZES = (250, 500, 1000, 2000)
EFFECTS: dict[str, dict[str, float]] = {"null": {"delta": 1.0}, "overconfident": {"gamma": 0.7}}
REPS = {"grid": 1000, "exact": 150, "others": 300, "null": 300, "overconfident": 200}

MARGIN, MARGIN_SD, NOISE, ROWS, CLASSES = 16.0, 5.0, 3.0, 20_000, 10


def grid(**changes: Any) -> PowerStudy:
    """Simulate the paper's grid, or the part of it that `changes` ask for."""
    plain = {"n_samples": SIZES, "delta_1": DELTAS, "reps": REPS["grid"], "seed": SEED}
    return mcllo.simulate.power(**(plain | changes))


def exact(**changes: Any) -> PowerStudy:
    """Simulate with exact p-values; the chi-square ones of the same data sets stay beside them."""
    plain = {"n_samples": EXACT_SIZES, "delta_1": EXACT_DELTAS, "reps": REPS["exact"]}
    return mcllo.simulate.power(**(plain | {"exact": True, "seed": SEED} | changes))


def other(name: str, **changes: Any) -> PowerStudy:
    """Simulate the corners of the grid with rows of another distribution."""
    plain = {"n_samples": OTHER_SIZES, "delta_1": OTHER_DELTAS, "reps": REPS["others"]}
    return mcllo.simulate.power(**(plain | OTHERS[name] | {"seed": SEED} | changes))


def sharp(effect: str, **changes: Any) -> PowerStudy:
    """Simulate with sharp rows, tested as `calibration_test` does by default."""
    plain = {"n_samples": SHARP_SIZES, "reps": REPS[effect], "seed": SEED}
    return mcllo.simulate.power_for(network_rows(), **(plain | EFFECTS[effect] | changes))


def network_rows() -> np.ndarray:
    """Return rows like those of an image network: ``softmax(z)``, one class far above the rest.

    ``z_j ~ N(0, 3^2)``, and ``N(16, 5^2)`` more for one class drawn at random, raised to 1e-6 as
    the named distributions are. 2.6 % of the labels drawn from them are not the top class.
    """
    rng = np.random.default_rng(SEED)
    z = rng.normal(0.0, NOISE, (ROWS, CLASSES))
    z[np.arange(ROWS), rng.integers(CLASSES, size=ROWS)] += rng.normal(MARGIN, MARGIN_SD, ROWS)
    x = np.exp(z - z.max(axis=1, keepdims=True))
    x = np.maximum(x / x.sum(axis=1, keepdims=True), 1e-6)
    return x / x.sum(axis=1, keepdims=True)
