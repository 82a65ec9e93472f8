"""How far a map moves probabilities, and how far chance alone would have moved the estimated one.

A map theta takes a row x to g. Over the rows, weights included, its three `SIZES`:

=================  ===============================================================================
change             mean of ``1/2 sum_j |g_j - x_j|``: probability that stands on the wrong classes
top                mean of ``|g_top - x_top|``, top the class that was the most probable one
gain               mean of ``KL(g || x)``: log loss that the map saves where g is right
=================  ===============================================================================

They are 0 at the identity theta0 and positive elsewhere, so those of an estimate are too large; of
calibrated rows, too. The estimate of a truth theta is theta + e, ``e ~ N(0, covariance)``, and the
law of its sizes follows to first order in e, which is where the mean of g is without bias (the sums
of g are those of the labels, whereas ``g(theta + e)`` is bent upwards on sharp rows):

=================  ===============================================================================
a row moves to     ``g_j + g_j (a_j - sum_k g_k a_k)``, ``a_j = e_tau_j + e_gamma_j l_j``
change, top        of the rows moved so
gain               ``gain(theta) + (theta - theta0)' H e + 1/2 e' H e``: to second order
=================  ===============================================================================

On a ray ``theta_t = theta0 + t v, t >= 0``, quantiles of this law rise with t; where they meet the
observed size of the estimate (`limits`):

=================  ===============================================================================
low                the t whose upper quantile is the observed size; 0 if none
middle             the same with the median: too large as often as too small; 0 if none
high               the same with the lower quantile, at an observed size of at least the median of
                   calibrated rows: that chance made the size small rules nothing out
=================  ===============================================================================

Two rays are asked, since the law hangs on how many rows the truth leaves alone: that of the
estimate, whose noise moves all rows, and that of what in it is more than noise (`clear_part`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from .._model.kernel import predicted_probabilities
from .._model.likelihood import identity_theta
from .._utils.linalg import cholesky_of_own, solve_lower, unit_diagonal
from .._utils.results import Floats

SIZES = ("change", "top", "gain")
IDENTITY_TOL = 1e-12
"""Mean change up to which an estimate is the identity."""
POWERS = np.array([2.0, 2.0, 1.0])
"""Near the identity these powers of the sizes are quadratic in t."""
RAY_PLACES_OF_CHANCE = (0.35, 0.7, 1.4, 2.0)
"""Places on the ray of an estimate that is hardly more than chance, beside 0 and 1."""
RAY_PLACES_IN_SE = (-2.4, -1.2, 1.2, 2.4)
"""Places on the ray of a clear one: standard errors away from 1."""
MAX_RELATIVE_SE_OF_CLEAR = 0.25
"""Relative standard error of a size up to which it is clear."""
MIN_DRAWS_IN_TAIL = 10  # draws that must lie beyond a quantile
# quantiles more extreme than this are extrapolated where too few draws lie beyond
TAIL_LEVEL = 0.025
MAX_EXTRAPOLATION_LEVEL = 0.1  # extrapolated from a quantile more extreme than this
RAY_EXTENSION_FACTOR = 1.6  # until the lower quantile is above the observed size
MAX_RAY_PLACES = 24  # places on the ray at which that search ends
SAMPLING_BATCH_ENTRIES = 32_768
"""Probabilities times draws at once: few enough to stay in cache."""
MAX_SELECTED_PARAMETERS = 200
"""Parameters up to which `clear_part` looks at each of them."""


class MapChanges:
    """What maps change in given rows: log odds (K, n) with weights that need not sum to 1."""

    def __init__(self, odds: Floats, weight: Floats) -> None:
        self.odds, self.weight = odds, weight / weight.sum()
        self.probs, total = predicted_probabilities(identity_theta(len(odds)), odds)
        self._pulls, self._mean_total = odds * self.weight, float(total @ self.weight)
        self.top = self.probs.argmax(axis=0)
        self._own = (self.top, np.arange(len(self.top)))
        self.top_probs = self.probs[self._own]

    def sizes(self, theta: Floats) -> Floats:
        """Return the `SIZES` of a map."""
        k, weight = len(self.odds), self.weight
        (g, total), away = predicted_probabilities(theta, self.odds), theta - identity_theta(k)
        tilt = away[:k] @ (g[:k] @ weight) + away[k:] @ np.einsum("ji,ji->j", g[:k], self._pulls)
        gain = float(tilt) - (float(total @ weight) - self._mean_total)
        apart = np.abs(np.subtract(g, self.probs, out=g), out=g)
        change = 0.5 * float((apart @ weight).sum())
        return np.array([change, float(apart[self._own] @ weight), max(0.0, gain)])

    def by_row(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the change of each row, and the recalibrated probability of its top class."""
        g, _ = predicted_probabilities(theta, self.odds)
        top = g[self._own]
        return 0.5 * np.abs(np.subtract(g, self.probs, out=g), out=g).sum(axis=0), top

    def errors(self, theta: Floats) -> float:
        """Return the expected share of rows whose most probable class does not come true."""
        return float((1.0 - predicted_probabilities(theta, self.odds)[0].max(axis=0)) @ self.weight)

    def law(self, theta: Floats, noise: Floats) -> Floats:
        """Return the `SIZES` of the estimate theta + e for each e of `noise`, (draws, 3)."""
        g = predicted_probabilities(theta, self.odds)[0]
        own = theta - identity_theta(len(self.odds))
        share, half, moved = self.weight * g, np.tile(0.5 * self.weight, len(g)), g - self.probs
        linear, square = (share * self._centred(g, own[None])[0]).ravel(), 0.5 * share.ravel()
        place = np.ravel_multi_index(self._own, g.shape)
        found, size = np.empty((len(noise), 3)), max(1, SAMPLING_BATCH_ENTRIES // g.size)
        for first in range(0, len(noise), size):
            part = slice(first, first + size)
            a = self._centred(g, noise[part])
            flat = a.reshape(len(a), -1)
            found[part, 2] = flat @ linear + flat**2 @ square
            a *= g
            a += moved
            np.abs(a, out=a)
            found[part, 0] = flat @ half
            found[part, 1] = np.take(flat, place, axis=1) @ self.weight
        found[:, 2] = np.maximum(found[:, 2] + self.sizes(theta)[2], 0.0)
        return found

    def _centred(self, g: Floats, e: Floats) -> Floats:
        """Return ``a_j - sum_k g_k a_k`` of each row for each e, shape (draws, K + 1, n)."""
        k, n = self.odds.shape
        a, mean = np.empty((len(e), k + 1, n)), e[:, :k] @ g[:k] + e[:, k:] @ (g[:k] * self.odds)
        np.multiply(e[:, k:, None], self.odds, out=a[:, :k])
        a[:, :k] += e[:, :k, None]
        a[:, :k] -= mean[:, None]
        np.negative(mean, out=a[:, k])
        return a


def covariance_root(covariance: Floats) -> Floats:
    """Return F with ``F F'`` the covariance; parameters without variance count as known."""
    known = np.isnan(np.diagonal(covariance))
    if known.any():
        covariance = np.where(known[:, None] | known, 0.0, covariance)
    unit, scale = unit_diagonal(covariance)
    try:
        factor = cholesky_of_own(unit)
    except np.linalg.LinAlgError:
        unit, scale = unit_diagonal(covariance)
        values, vectors = np.linalg.eigh(unit)
        factor = vectors * np.sqrt(np.maximum(values, 0.0))
    root: Floats = np.multiply(factor, scale[:, None], out=factor)
    root[known] = 0.0
    return root


def clear_part(away: Floats, covariance: Floats) -> Floats | None:
    """Return what in ``theta_hat - theta0`` is more than noise; None where that cannot be told.

    One temperature, one shift of the baseline and single parameters are taken in turn, the largest
    chi-square first, while it is above ``2 log(number of them)``; the temperature in any case. The
    rest is shrunk by James and Stein's factor.
    """
    k = len(away) // 2
    free = np.flatnonzero(~np.isnan(np.diagonal(covariance)))
    try:
        factor = cholesky_of_own(covariance[np.ix_(free, free)])
    except np.linalg.LinAlgError:
        return None
    atoms = np.repeat([[0.0, 1.0], [1.0, 0.0]], k, axis=0)  # the slope, the shift
    if len(free) <= MAX_SELECTED_PARAMETERS:
        atoms = np.column_stack([atoms, np.eye(2 * k)[:, free]])
    solved = solve_lower(factor, np.column_stack([atoms[free], away[free]]))
    x, rest = np.ascontiguousarray(solved[:, :-1]), solved[:, -1].copy()
    x /= np.maximum(np.linalg.norm(x, axis=0), 1e-300)
    taken, n_taken, least = np.zeros(len(free)), 0, 2.0 * np.log(x.shape[1])
    while n_taken < len(free):
        left = np.einsum("ij,ij->j", x, x)
        found = np.where(left > 1e-8, (rest @ x) ** 2 / np.maximum(left, 1e-8), 0.0)
        first = n_taken == 0 and left[0] > 1e-8  # no slope where every log odds is the same
        j = 0 if first else int(np.argmax(found))
        if not first and found[j] < least:
            break
        step = x[:, j] / np.sqrt(left[j])
        taken += (step @ rest) * step
        rest = rest - (step @ rest) * step
        x -= np.outer(step, step @ x)
        n_taken += 1
    noise = max(len(free) - n_taken - 2, 0)
    shrunk = max(0.0, 1.0 - noise / max(float(rest @ rest), 1e-300))
    part = np.zeros(2 * k)
    part[free] = factor @ (taken + shrunk * rest)
    return part


def limits(
    moved: MapChanges, theta: Floats, rays: list[Floats], noise: Floats, confidence: float
) -> list[tuple[Floats, Floats]]:
    """Return the limits on each ray of an estimate whose error has the law of `noise`.

    A direction ``theta_1 - theta0``, and a row for each of `SIZES` with the t of low, middle and
    high, infinite where there is none.
    """
    probabilities = 0.5 + 0.5 * confidence * np.array([-1.0, 0.0, 1.0])
    theta0 = identity_theta(len(theta) // 2)

    def quantiles(v: Floats, t: float) -> Floats:
        return tail_quantiles(moved.law(theta0 + t * v, noise), probabilities) ** POWERS

    null, observed = quantiles(theta0, 0.0), moved.sizes(theta) ** POWERS
    longer = [_of_some_size(moved, ray, float(null[1, 0]) ** 0.5) for ray in rays]
    return [(v, _meet(null, partial(quantiles, v), observed)) for v in longer]


def tail_quantiles(drawn: Floats, probabilities: Floats) -> Floats:
    """Return quantiles of the columns; those that too few draws show, by a straight line.

    The line runs, against quantiles of the normal law, through those at half a standard deviation
    and at `TAIL_LEVEL`, or as far out as `MIN_DRAWS_IN_TAIL` draws show. For skewed laws it lies
    below the quantiles, so that upper limits are larger than they need be.

    Examples
    --------
    >>> normal = np.random.default_rng(0).standard_normal((400, 1))
    >>> tail_quantiles(normal, np.array([0.0005, 0.5])).round(1)[:, 0]
    array([-3.2, -0.1])
    """
    from scipy.special import ndtr, ndtri

    found = np.quantile(drawn, probabilities, axis=0)
    last = min(MAX_EXTRAPOLATION_LEVEL, max(TAIL_LEVEL, MIN_DRAWS_IN_TAIL / len(drawn)))
    for k, p in enumerate(probabilities):
        if min(p, 1.0 - p) < min(TAIL_LEVEL - 1e-9, MIN_DRAWS_IN_TAIL / len(drawn)):
            side = np.copysign(1.0, p - 0.5)
            near, end = 0.5 * side, -side * ndtri(last)
            inner, outer = np.quantile(drawn, [ndtr(near), ndtr(end)], axis=0)
            found[k] = outer + (outer - inner) * (ndtri(p) - end) / (end - near)
    return np.maximum(found, 0.0) if drawn.min() >= 0.0 else found


def _of_some_size(moved: MapChanges, direction: Floats, least: float) -> Floats:
    """Return the direction, made longer where it changes less than chance does."""
    theta0 = identity_theta(len(direction) // 2)
    size = moved.sizes(theta0 + direction)[0]
    if not size > IDENTITY_TOL:
        direction = np.repeat([0.0, 1e-6], len(theta0) // 2)
        size = moved.sizes(theta0 + direction)[0]
    return direction * max(1.0, least / max(size, 1e-300)) if size > 0.0 else direction


def _meet(null: Floats, at: Callable[[float], Floats], observed: Floats) -> Floats:
    """Return the t at which upper quantile, median and lower quantile meet the observed.

    Quantiles are functions of t, `null` at 0: arrays of shape (3 quantiles, 3 sizes).
    """
    least = np.maximum(observed, null[1])
    curves = {0.0: null, 1.0: at(1.0)}
    spread = (curves[1.0][2] - curves[1.0][0]) / 4.0 / POWERS / np.maximum(least, 1e-300)
    error = float(spread.max())
    times = (
        [1.0 + step * error for step in RAY_PLACES_IN_SE]
        if error < MAX_RELATIVE_SE_OF_CLEAR
        else list(RAY_PLACES_OF_CHANCE)
    )
    curves |= {t: at(t) for t in times}
    while (curves[max(curves)][0] <= least).any() and len(curves) < MAX_RAY_PLACES:
        t = RAY_EXTENSION_FACTOR * max(curves)
        curves[t] = at(t)
    squares = np.array(sorted(curves)) ** 2
    rising = np.maximum.accumulate(np.array([curves[t] for t in sorted(curves)]), axis=0)
    found = np.zeros((len(SIZES), 3))  # 0 where a curve begins above the level
    for j, row in np.ndindex(found.shape):
        curve, level = rising[:, 2 - row, j], (observed, observed, least)[row][j]
        if not curve[0] >= level:
            found[j, row] = np.sqrt(np.interp(level, curve, squares, right=np.inf))
    return found
