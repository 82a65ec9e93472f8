"""What the package claims of itself, measured: sizes, coverages and errors by simulation.

A topic is a file of this folder. Its `run` repeats each of its designs with a fixed seed, returning
one row for each; its `PAGE`, below ``docs``, shows them between the markers of `pages`. ``python -m
studies.claims TOPIC --reps 1000`` is the long run that the page shows; tests run the same code with
few repetitions (``tests/claims``) and hold the page to the stored rows.

============  ====================================================================================
`rows_like`   tables of predictions: Dirichlet, sharp ones as networks make them, rare events
`draw`        labels that follow probabilities
`scaled`      predictions with another slope or shift, so that labels drawn before are off
`share`       a rate with its Monte Carlo standard error
============  ====================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from mcllo.datasets import load_cifar10_vgg

Rows = list[dict[str, Any]]


def rows_like(kind: str, n: int, c: int, rng: np.random.Generator) -> np.ndarray:
    """Return `n` rows of `c` classes: "dirichlet:ALPHA", "sharp" (2 to 3 % errors), "network".

    "margin" have one logit raised by 6, give or take 2.5, as those of a less accurate network;
    "network" are rows of the smaller shipped CIFAR-10 network, drawn with replacement (10 classes);
    "rare" are two classes with about 5 % events, Beta(.3, 6); of more classes the first has 94 % of
    the labels.
    """
    if kind == "network":
        probs = _network()
        return _safe(probs[rng.integers(0, len(probs), n)])
    if kind == "rare" and c > 2:
        return _safe(rng.dirichlet([3.0, *[0.02] * (c - 1)], n))
    if kind == "rare":
        event = rng.beta(0.3, 6.0, n)
        return _safe(np.column_stack([event, 1.0 - event]))
    if kind == "margin":
        logits = rng.normal(0.0, 1.0, size=(n, c))
        logits[np.arange(n), rng.integers(0, c, n)] += rng.normal(6.0, 2.5, n)
        return scaled(np.exp(logits))
    if kind == "sharp":
        logits = rng.normal(0.0, 1.0, size=(n, c))
        logits[np.arange(n), rng.integers(0, c, n)] += rng.gamma(4.0, 3.0, n)
        probs = np.exp(logits - logits.max(axis=1, keepdims=True))
        return _safe(probs / probs.sum(axis=1, keepdims=True))
    return _safe(rng.dirichlet(np.full(c, float(kind.removeprefix("dirichlet:"))), n))


@cache
def _network() -> np.ndarray:
    """Return the shipped predictions of the smaller network, read once."""
    return load_cifar10_vgg(network="small").train.probs


def _safe(probs: np.ndarray) -> np.ndarray:
    probs = np.maximum(probs, 1e-12)
    return probs / probs.sum(axis=1, keepdims=True)


def draw(probs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a label for each row, drawn from its probabilities."""
    return (rng.random((len(probs), 1)) > probs.cumsum(axis=1)[:, :-1]).sum(axis=1)


def scaled(
    probs: np.ndarray,
    slope: float | np.ndarray = 1.0,
    shift: float | Sequence[float] = 0.0,
) -> np.ndarray:
    """Return ``softmax(slope log x + shift)``; slope and shift may differ by class."""
    logits = slope * np.log(probs) + np.asarray(shift)
    found = np.exp(logits - logits.max(axis=1, keepdims=True))
    return _safe(found / found.sum(axis=1, keepdims=True))


def share(hits: Sequence[bool] | np.ndarray) -> tuple[float, float]:
    """Return a rate and its Monte Carlo standard error."""
    rate = float(np.mean(hits))
    return rate, float(np.sqrt(max(rate * (1.0 - rate), 1e-12) / len(hits)))
