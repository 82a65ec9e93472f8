"""Rows for the tests of blocks: mildly miscalibrated, five classes, some with zeros."""

import itertools

import numpy as np

from mcllo import Predictions


def rows(n=3000, c=5, seed=0, weighted=False, zeros=False):
    """Return probabilities, labels and weights (None without)."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0.0, 2.0, (n, c))
    probs = np.exp(z)
    probs /= probs.sum(axis=1, keepdims=True)
    y = (1.1 * z + 0.2 * np.arange(c) + rng.gumbel(size=(n, c))).argmax(axis=1)
    if zeros:
        probs = np.round(probs, 2)
        probs /= probs.sum(axis=1, keepdims=True)
    weight = rng.integers(0, 4, n).astype(float) if weighted else None
    return probs, y, weight


def whole(n=3000, c=5, seed=0, weighted=False, zeros=False, **options):
    """Return those rows as `Predictions`."""
    probs, y, weight = rows(n, c, seed, weighted, zeros)
    options = {"clip": 1e-6 if zeros else None, **options}
    return Predictions.from_arrays(probs, y, sample_weight=weight, **options)


def cut(parts, at):
    """Cut arrays (None stays None) at row numbers: a list of batches."""
    ends = [0, *sorted(at), len(parts[0])]
    return [
        tuple(part if part is None else part[a:b] for part in parts)
        for a, b in itertools.pairwise(ends)
    ]
