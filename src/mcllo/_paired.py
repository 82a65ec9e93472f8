"""Paired differences in log loss: how sure is it that one method beats another on these rows?

Rows are resampled with replacement, the same rows for every method, so that what the methods share
cancels. The interval is the bootstrap's central 95 %.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ._predictions import Predictions

Floats = NDArray[np.float64]

N_BOOTSTRAP = 1000
MOST_CELLS = 2e7


def paired_differences(
    sets: Mapping[str, Predictions], seed: int, level: float = 0.95
) -> dict[str, tuple[float, float, float]]:
    """Return, for each method, its log loss less that of the best one, with an interval."""
    losses = np.column_stack([row_losses(predictions) for predictions in sets.values()])
    weight = next(iter(sets.values())).sample_weight
    own = np.ones(len(losses)) if weight is None else weight
    means = own @ losses / own.sum()
    gaps = losses - losses[:, [int(np.argmin(means))]]
    draws = bootstrap_means(gaps, own, seed)
    low, high = np.quantile(draws, [0.5 - level / 2.0, 0.5 + level / 2.0], axis=0)
    centre = means - means.min()
    return {name: (float(centre[j]), float(low[j]), float(high[j])) for j, name in enumerate(sets)}


def row_losses(predictions: Predictions) -> Floats:
    """Return the negative log probability of each row's true class."""
    rows = np.arange(predictions.n_samples)
    losses: Floats = -np.log(predictions.probs[rows, predictions.codes])
    return losses


def bootstrap_means(values: Floats, weight: Floats, seed: int) -> Floats:
    """Return weighted means of resampled rows, shape (n_draws, n_columns)."""
    values, weight = values[weight > 0.0], weight[weight > 0.0]
    n = len(values)
    rng = np.random.default_rng([seed, 2])
    draws = int(max(200, min(N_BOOTSTRAP, MOST_CELLS / n)))
    means = np.empty((draws, values.shape[1]))
    for k in range(draws):
        counts = np.bincount(rng.integers(0, n, size=n), minlength=n) * weight
        means[k] = counts @ values / counts.sum()
    return means
