"""Choice sets for tests: the methods specification's vector (section 9a), and simulated ones."""

import numpy as np

from mcllo import Predictions

ROWS = [
    [0.7, 0.2, 0.1],
    [0.5, 0.3, 0.2],
    [0.25, 0.25, 0.25, 0.25],
    [0.6, 0.4],
    [0.1, 0.8, 0.05, 0.05],
    [0.3, 0.3, 0.4],
    [0.9, 0.1],
    [0.2, 0.5, 0.2, 0.1],
    [0.4, 0.35, 0.15, 0.1],
    [0.05, 0.15, 0.8],
    [0.55, 0.25, 0.1, 0.1],
    [0.45, 0.55],
]
ANSWERS = [0, 1, 3, 0, 1, 2, 1, 1, 2, 2, 0, 0]


def vector():
    """The choice sets of the specification."""
    return Predictions.from_choices(ROWS, ANSWERS, kind="probs")


def simulate(n, options, gamma=1.0, tau=None, seed=0, concentration=0.7):
    """Rows of 2 to `options` options whose answers follow ``delta_j p^gamma``."""
    rng = np.random.default_rng(seed)
    tau = np.zeros(options) if tau is None else np.asarray(tau, dtype=float)
    table = np.full((n, options), np.nan)
    offered = np.zeros((n, options), dtype=bool)
    sizes = rng.integers(2, options + 1, n)
    offered[np.arange(options) < sizes[:, None]] = True
    raw = np.where(offered, rng.gamma(concentration, size=(n, options)) + 1e-9, 0.0)
    probs = raw / raw.sum(axis=1, keepdims=True)
    table[offered] = probs[offered]
    truth = np.where(offered, np.exp(tau) * np.where(offered, probs, 1.0) ** gamma, 0.0)
    truth /= truth.sum(axis=1, keepdims=True)
    edges = truth.cumsum(axis=1)
    y = (rng.random(n)[:, None] > edges / edges[:, -1:]).sum(axis=1)
    return Predictions.from_choices(table, y, kind="probs")
