"""Synthetic predictions for timings: logits N(0, 2^2), truth a little flatter than predicted."""

import numpy as np


def predictions(n: int, c: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return overconfident probabilities and labels."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0.0, 2.0, size=(n, c))
    probs = np.exp(logits)
    probs /= probs.sum(axis=1, keepdims=True)
    truth = probs**0.8
    truth /= truth.sum(axis=1, keepdims=True)
    return probs, (rng.random((n, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)


def sharp_under_h0(n: int, c: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return sharp rows (2 to 3 % expected errors) with labels drawn from them."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0.0, 1.0, size=(n, c))
    logits[np.arange(n), rng.integers(0, c, n)] += rng.gamma(4.0, 3.0, n)
    probs = np.exp(logits - logits.max(axis=1, keepdims=True))
    probs /= probs.sum(axis=1, keepdims=True)
    return probs, (rng.random((n, 1)) > probs.cumsum(axis=1)[:, :-1]).sum(axis=1)
