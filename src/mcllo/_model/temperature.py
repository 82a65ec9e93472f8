"""The inverse temperature u of largest likelihood, by a root find that cannot diverge.

====================  ====================================================================
map                   ``softmax(u z)``, u = 1 / T
likelihood equation   ``h(u) = sum_i w_i (E_{softmax(u z_i)}[z] - z_{i, y_i}) = 0``
derivatives of h      sums of the second and third central moments of z under the softmax
====================  ====================================================================

h rises in u, so there is one root at most: Halley's steps on ``log u`` inside a bracket that
shrinks (`_model/newton`). Adding a number to all scores of a row changes
nothing; so log probabilities and logits give the same answer, and scores less their largest, which
are never positive, cannot overflow at any u.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._utils.results import Floats
from .kernel import row_chunks, softmax_in_place
from .newton import find_root

MAX_ABS_LOG_SCALE = 16.0
"""Largest ``|log u|``: 1 / T is sought between 1.1e-7 and 8.9e6. A round number."""
LAST_LOG_STEP_TOL = 1e-3
"""Step in log u that is the last: Halley's leaves an error of the order of its cube."""


@dataclass(frozen=True)
class InverseTemperature:
    """Where the likelihood equation holds, u = 1 / T, and the passes over the rows."""

    value: float
    bound: int
    """0 inside; 1 (-1) where u is the largest (smallest) allowed and the likelihood still rises."""
    n_iter: int


def fit_inverse_temperature(
    scores: Floats,
    codes: NDArray[np.intp],
    weight: Floats | None = None,
    start: float | None = None,
) -> InverseTemperature:
    """Solve the likelihood equation for u, from `start` where given; `scores` are overwritten.

    They have shape (c, n).
    """
    scores -= scores.max(axis=0)
    log_u = 0.0
    if start is not None:
        log_u = math.log(start)
    elif len(codes) >= 4000:
        # enough rows for a first guess from every eighth of them, which saves a pass over all
        some = slice(None, None, 8)
        some_weight = None if weight is None else weight[some]
        guess = _solve_likelihood_equation(
            np.ascontiguousarray(scores[:, some]), codes[some], some_weight, log_u
        )
        if guess.bound == 0:
            log_u = math.log(guess.value)
    return _solve_likelihood_equation(scores, codes, weight, log_u)


def _solve_likelihood_equation(
    scores: Floats, codes: NDArray[np.intp], weight: Floats | None, log_u: float
) -> InverseTemperature:
    """Solve the equation from `log_u`; the largest score of each row is 0."""
    own = scores[codes, np.arange(len(codes))]
    target = float(own.sum() if weight is None else own @ weight)

    def residual_and_step(log_u: float) -> tuple[float, float]:
        u = math.exp(log_u)
        mean, variance, third_moment = _sum_score_moments(u, scores, weight).tolist()
        h = mean - target
        slope = u * variance  # of h in log u
        bend = slope + u * u * third_moment
        return h, _damped_halley_step(h, slope, bend)

    if target == 0.0 and residual_and_step(log_u)[0] != 0.0:
        # the largest score of every row is that of its label: the likelihood rises for ever
        return InverseTemperature(math.exp(MAX_ABS_LOG_SCALE), 1, 1)
    root = find_root(
        residual_and_step,
        log_u,
        -MAX_ABS_LOG_SCALE,
        MAX_ABS_LOG_SCALE,
        xtol=LAST_LOG_STEP_TOL,
    )
    return InverseTemperature(math.exp(root.x), root.bound, root.n_iter)


def _damped_halley_step(residual: float, slope: float, curvature: float) -> float:
    """Return Newton's step, corrected for curvature by a factor of at most 2 either way."""
    if slope <= 1e-6 * abs(
        residual
    ):  # far out on a plateau: as far as the bounds allow
        return -math.copysign(math.inf, residual)
    newton = -residual / slope
    correction = 1.0 + 0.5 * newton * curvature / slope
    return newton / min(max(correction, 0.5), 2.0)


def _sum_score_moments(u: float, scores: Floats, weight: Floats | None) -> Floats:
    """Return the sums over rows of the mean, variance and third moment under ``softmax(u z)``."""
    n_classes, n_samples = scores.shape
    sums = np.zeros(3)
    for rows in row_chunks(n_samples, n_classes):
        z = scores[:, rows]
        p = u * z
        softmax_in_place(p)
        moments = central_moments_in_place(p, z)
        sums += moments.sum(axis=1) if weight is None else moments @ weight[rows]
    return sums


def central_moments_in_place(probabilities: Floats, values: Floats) -> Floats:
    """Return mean, variance and third moment of z under p over its sum; p is overwritten."""
    moments = np.empty((3, values.shape[1]))
    total = probabilities.sum(axis=0)
    for moment in moments:  # about 0, of the first, second and third power
        probabilities *= values
        probabilities.sum(axis=0, out=moment)
    moments /= total
    mean, variance, third = moments
    third -= mean * variance
    variance -= mean * mean
    third -= 2.0 * mean * variance
    return moments
