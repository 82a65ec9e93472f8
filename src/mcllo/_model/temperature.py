"""The inverse temperature u of largest likelihood, by a root find that cannot diverge.

====================  ====================================================================
map                   ``softmax(u z)``, u = 1 / T
likelihood equation   ``h(u) = sum_i w_i (E_{softmax(u z_i)}[z] - z_{i, y_i}) = 0``
derivatives of h      sums of the second and third central moments of z under the softmax
====================  ====================================================================

h rises in u, so there is one root at most: Halley's steps on ``v = log u`` inside a bracket that
shrinks, bisection where a step would leave it. Adding a number to all scores of a row changes
nothing; so log probabilities and logits give the same answer, and scores less their largest, which
are never positive, cannot overflow at any u.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._utils.results import Floats
from . import compiled
from .kernel import CHUNK_ELEMENTS

MAX_ABS_LOG_SCALE = 16.0
"""Largest ``|log u|``: 1 / T is sought between 1.1e-7 and 8.9e6."""
PLATEAU_SLOPE_TOL = 1e-6
"""Slope, relative to the value, below which Newton's step would leave the bounds anyway."""
LAST_LOG_STEP_TOL = 1e-3
"""Step in log u that is the last: it leaves an error of the order ``LAST_LOG_STEP_TOL ** 3``."""
MAX_ITER = 100
FIRST_GUESS_STRIDE = 8
"""The first guess comes from every 8th row, when there are enough."""
MIN_ROWS_FOR_FIRST_GUESS = 4000


@dataclass(frozen=True)
class Root:
    """Where the likelihood equation holds, u = 1 / T, and the passes over the rows."""

    value: float
    bound: int
    """0 inside; 1 (-1) where u is the largest (smallest) allowed and the likelihood still rises."""
    n_iter: int


def inverse_temperature(
    scores: Floats,
    codes: NDArray[np.intp],
    weight: Floats | None = None,
    near: float | None = None,
) -> Root:
    """Solve the likelihood equation for u, from `near` where given; `scores` are overwritten.

    They have shape (c, n).
    """
    scores -= scores.max(axis=0)
    start = 0.0
    if near is not None:
        start = math.log(near)
    elif len(codes) >= MIN_ROWS_FOR_FIRST_GUESS:
        few = slice(None, None, FIRST_GUESS_STRIDE)
        own = None if weight is None else weight[few]
        guess = _solve(np.ascontiguousarray(scores[:, few]), codes[few], own, start)
        start = 0.0 if guess.bound else math.log(guess.value)
    return _solve(scores, codes, weight, start)


def _solve(scores: Floats, codes: NDArray[np.intp], weight: Floats | None, start: float) -> Root:
    own = scores[codes, np.arange(len(codes))]
    target = float(own.sum() if weight is None else own @ weight)
    low, high, v = -math.inf, math.inf, start
    for n_iter in range(1, MAX_ITER + 1):
        u = math.exp(v)
        mean, variance, skew = _sums_of_moments(u, scores, weight)
        h, slope, bend = mean - target, u * variance, u * variance + u * u * skew
        if h == 0.0:
            break
        if target == 0.0:  # every row's largest score is that of its label
            return Root(math.exp(MAX_ABS_LOG_SCALE), 1, n_iter)
        step = _halley(float(h), float(slope), float(bend))
        trial = min(max(v + step, -MAX_ABS_LOG_SCALE), MAX_ABS_LOG_SCALE)
        if trial == v:
            return Root(u, -1 if h > 0.0 else 1, n_iter)
        if abs(step) <= LAST_LOG_STEP_TOL:
            return Root(math.exp(trial), 0, n_iter)
        low, high = (v, high) if h < 0.0 else (low, v)
        inside = low < trial < high
        v = trial if inside else 0.5 * (max(low, -MAX_ABS_LOG_SCALE) + min(high, MAX_ABS_LOG_SCALE))
    return Root(u, 0, n_iter)


def _halley(h: float, slope: float, bend: float) -> float:
    """Return Newton's step, corrected for curvature by a factor of at most 2 either way."""
    if slope <= PLATEAU_SLOPE_TOL * abs(h):  # far out on a plateau: as far as the bounds allow
        return -math.copysign(math.inf, h)
    newton = -h / slope
    bent = newton * bend / slope if newton else 0.0
    return newton / min(max(1.0 + 0.5 * bent, 0.5), 2.0)


def _sums_of_moments(u: float, scores: Floats, weight: Floats | None) -> Floats:
    """Return the sums over rows of the mean, variance and third moment under ``softmax(u z)``."""
    n_classes, n_samples = scores.shape
    rows = min(n_samples, max(256, CHUNK_ELEMENTS // n_classes))
    buffer, sums = np.empty((n_classes, rows)), np.zeros(3)
    for start in range(0, n_samples, rows):
        z = scores[:, start : start + rows]
        p = np.multiply(z, u, out=buffer[:, : z.shape[1]])
        if compiled.softmax(p) is None:
            np.exp(p, out=p)  # of no positive number
        moments = central_moments(p, z)
        own = None if weight is None else weight[start : start + rows]
        sums += np.add.reduce(moments, axis=1) if own is None else moments @ own
    return sums


def central_moments(p: Floats, z: Floats) -> Floats:
    """Return mean, variance and third moment of z under p over its sum; p is overwritten."""
    found, total = np.empty((3, z.shape[1])), np.add.reduce(p, axis=0)
    for power in found:
        p *= z
        np.add.reduce(p, axis=0, out=power)
    found /= total
    mean, variance, third = found
    third -= mean * variance
    variance -= mean * mean
    third -= 2.0 * mean * variance
    return found
