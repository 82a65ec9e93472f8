"""How far a map moves probabilities, and how far chance alone would have moved the estimated one.

A map theta takes a row x to g. Over the rows, weights included:

=================  ===============================================================================
`SIZES`            what is measured of a map, each a mean over rows
change             ``1/2 sum_j |g_j - x_j|``: the probability that stands on the wrong classes
top                ``|g_top - x_top|`` of the class that was the most probable one
gain               ``KL(g || x)``: log loss that the map saves where g is right
=================  ===============================================================================

All three are 0 at the identity theta0 and positive elsewhere, so that those of an estimate are too
large: for calibrated rows, too. What is known is the law of the size of an estimate when the truth
is theta_t, ``D(theta_t + e), e ~ N(0, covariance)``; on the ray ``theta_t = theta0 + t (theta_hat -
theta0), t >= 0`` its quantiles rise with t. Inverted at the observed size (`Limits`):

=================  ===============================================================================
low                ``D(theta_t)`` at the t where the upper quantile is the observed size; 0 if none
middle             the same with the median: too large as often as too small; 0 if none
high               the same with the lower quantile, at an observed size of at least the median of
                   calibrated rows (what chance makes small rules nothing out)
=================  ===============================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._ground.linalg import unit_diagonal
from .._ground.results import Floats
from .._math.likelihood import identity_theta, softmax_against_zero

SIZES = ("change", "top", "gain")
POWERS = np.array([2.0, 2.0, 1.0])
"""Near the identity these powers of the sizes are quadratic in t."""
FIRST_TIMES = (0.35, 0.7, 1.4, 2.0)
"""Places on the ray of an estimate that is hardly more than chance, beside 0 and 1."""
STEPS = (-2.4, -1.2, 1.2, 2.4)
"""Places on the ray of a clear one: standard errors away from 1."""
CLEAR = 0.25
"""Relative standard error of a size up to which it is clear."""
TAIL, NEAR, FAR = 10, 0.025, 0.1
"""Draws that must lie beyond a quantile more extreme than `NEAR`, or else it is extrapolated from
one that is less extreme than `FAR`."""
FURTHER, MOST_TIMES = 1.6, 24
"""How the ray is extended until the lower quantile is above the observed size, and how often."""


class Moved:
    """What maps change in given rows: log odds (K, n) with weights that need not sum to 1."""

    def __init__(self, odds: Floats, weight: Floats) -> None:
        k, n = odds.shape
        self.odds, self.weight = odds, weight / weight.sum()
        self._g, self._apart = np.empty((k + 1, n)), np.empty((k + 1, n))
        self.probs, total = (array.copy() for array in self.repaired(identity_theta(k)))
        self._mean_total = float(total @ self.weight)
        self.top = self.probs.argmax(axis=0)
        self._own = (self.top, np.arange(n))
        self.top_probs = self.probs[self._own]

    def repaired(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return g of shape (K + 1, n), the baseline last, and the log partition of each row.

        The next call overwrites g.
        """
        total = softmax_against_zero(theta, self.odds, out=self._g[:-1])
        np.exp(-total, out=self._g[-1])
        return self._g, total

    def sizes(self, theta: Floats) -> Floats:
        """Return the `SIZES` of a map."""
        k = len(self.odds)
        g, total = self.repaired(theta)
        np.subtract(g, self.probs, out=self._apart)
        np.abs(self._apart, out=self._apart)
        change = 0.5 * float((self._apart @ self.weight).sum())
        top = float(self._apart[self._own] @ self.weight)
        away = theta - identity_theta(k)
        np.multiply(g[:k], self.odds, out=self._apart[:k])
        tilt = away[:k] @ (g[:k] @ self.weight) + away[k:] @ (self._apart[:k] @ self.weight)
        gain = float(tilt) - (float(total @ self.weight) - self._mean_total)
        return np.array([change, top, max(0.0, gain)])

    def by_row(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the change of each row, and the repaired probability of its top class."""
        g, _ = self.repaired(theta)
        return 0.5 * np.abs(g - self.probs).sum(axis=0), g[self._own]

    def law(self, theta: Floats, noise: Floats) -> Floats:
        """Return the `SIZES` of ``theta + e`` for each e of `noise`, shape (draws, 3)."""
        return np.array([self.sizes(theta + e) for e in noise])


def covariance_root(covariance: Floats) -> Floats:
    """Return F with ``F F'`` the covariance; parameters without variance count as known."""
    known = np.isnan(np.diagonal(covariance))
    filled = np.where(known[:, None] | known, 0.0, covariance)
    unit, scale = unit_diagonal(filled)
    try:
        factor = np.linalg.cholesky(unit)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(unit)
        factor = vectors * np.sqrt(np.maximum(values, 0.0))
    root: Floats = scale[:, None] * factor
    root[known] = 0.0
    return root


@dataclass(frozen=True, eq=False)
class Limits:
    """Where on the ray the limits of each size lie: t, infinite where none was found.

    Arrays of shape (3,), one entry for each of `SIZES`; `direction` is ``theta_1 - theta0``.
    """

    direction: Floats
    low: Floats
    middle: Floats
    high: Floats


def limits(moved: Moved, theta: Floats, noise: Floats, confidence: float) -> Limits:
    """Return the limits of an estimate whose error has the law of `noise`."""
    probabilities = 0.5 + 0.5 * confidence * np.array([-1.0, 0.0, 1.0])
    theta0 = identity_theta(len(theta) // 2)

    def quantiles(place: Floats) -> Floats:
        return tail_quantiles(moved.law(place, noise), probabilities) ** POWERS

    null = quantiles(theta0)
    direction = _of_some_size(moved, theta - theta0, float(null[1, 0]) ** 0.5)
    observed = moved.sizes(theta) ** POWERS
    floor = np.maximum(observed, null[1])

    def at(t: float) -> Floats:
        return quantiles(theta0 + t * direction)

    curves = {0.0: null, 1.0: at(1.0)}
    spread = (curves[1.0][2] - curves[1.0][0]) / 4.0 / POWERS / np.maximum(floor, 1e-300)
    error = float(spread.max())
    clear = error < CLEAR
    times = [1.0 + step * error for step in STEPS] if clear else list(FIRST_TIMES)
    curves |= {t: at(t) for t in times}
    curves = _extended(curves, at, floor)
    squares = np.array(sorted(curves)) ** 2
    rising = np.maximum.accumulate(np.array([curves[t] for t in sorted(curves)]), axis=0)
    low, middle, high = (
        np.array([_crossing(rising[:, row, j], squares, level[j]) for j in range(len(SIZES))])
        for row, level in ((2, observed), (1, observed), (0, floor))
    )
    return Limits(direction, low, middle, high)


def tail_quantiles(drawn: Floats, probabilities: Floats) -> Floats:
    """Return quantiles of the columns; those that too few draws show, by a straight line.

    The line runs, against quantiles of the normal law, through those at half a standard deviation
    and at `NEAR`, or as far out as `TAIL` draws show. For skewed laws it lies below the quantiles,
    so that upper limits are larger than they need be.

    Examples
    --------
    >>> normal = np.random.default_rng(0).standard_normal((400, 1))
    >>> tail_quantiles(normal, np.array([0.0005, 0.5])).round(1)[:, 0]
    array([-3.2, -0.1])
    """
    from scipy.special import ndtr, ndtri

    found = np.quantile(drawn, probabilities, axis=0)
    last = min(FAR, max(NEAR, TAIL / len(drawn)))
    for k, p in enumerate(probabilities):
        if min(p, 1.0 - p) < min(NEAR - 1e-9, TAIL / len(drawn)):
            side = np.copysign(1.0, p - 0.5)
            near, end = 0.5 * side, -side * ndtri(last)
            inner, outer = np.quantile(drawn, [ndtr(near), ndtr(end)], axis=0)
            found[k] = outer + (outer - inner) * (ndtri(p) - end) / (end - near)
    return np.maximum(found, 0.0) if drawn.min() >= 0.0 else found


def _of_some_size(moved: Moved, direction: Floats, least: float) -> Floats:
    """Return the direction, made longer where it changes less than chance does."""
    k = len(direction) // 2
    if not direction.any():
        direction = np.concatenate([np.zeros(k), np.full(k, 1e-6)])
    size = moved.sizes(identity_theta(k) + direction)[0]
    return direction * max(1.0, least / max(size, 1e-300)) if size > 0.0 else direction


def _extended(
    curves: dict[float, Floats], at: Callable[[float], Floats], floor: Floats
) -> dict[float, Floats]:
    """Return the curves, longer where the lower quantile has not passed the observed size."""
    found = dict(curves)
    while (found[max(found)][0] <= floor).any() and len(found) < MOST_TIMES:
        t = FURTHER * max(found)
        found[t] = at(t)
    return found


def _crossing(rising: Floats, squares: Floats, level: float) -> float:
    """Return the t at which a rising curve meets the level: 0 where it begins above, else inf."""
    if rising[0] >= level:
        return 0.0
    if rising[-1] < level:
        return float("inf")
    return float(np.sqrt(np.interp(level, rising, squares)))
