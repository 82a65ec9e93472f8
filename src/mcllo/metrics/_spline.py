"""A smooth curve of hits on predictions, with a band, on plain arrays.

Predictions x of something that happened (hit 1) or not (0), with weights w:

================  ==========================================================================
log odds          ``l = log(x / (1 - x))``, x within [1e-12, 1 - 1e-12]
curve             ``log odds of a hit = l + B(l) b``: a departure from "right as predicted"
B                 1 and a natural cubic spline: straight lines beyond the outer knots; columns
                  made independent, of unit variance under the weights ``w x (1 - x)``
knots             quantiles of l under the weights ``w sqrt(x (1 - x))``: where the uncertain
                  rows are; 5 of them from 5 to 95 %, with many rows to 10 from 2.5 to 97.5 %
estimate          least ``Q(b) = sum w log(1 + exp(-+ log odds)) + |b|^2 / 2``: a weak pull
                  towards the predictions keeps b finite where labels are separated;
                  ``|b|^2`` is the mean squared departure under the weights ``w x (1 - x)``
band at l         lowest and highest ``l + B(l) b`` among all b with ``2 (Q(b) - Q) <= z^2``:
                  the curves that explain the labels nearly as well (profile likelihood)
dependent rows    ``z^2 c(l)`` instead, c the variance of the curve by the sandwich over groups
                  (or rows whose weights are no counts) over that of independent rows
================  ==========================================================================

Neither knots nor their number depend on the labels. The usual band, ``-/+ z`` standard errors of
the log odds, is useless where nearly all rows hit: with 200 sharp rows it reached from 0 to 1 where
this one is .02 wide, and both cover the truth.

The set of b is convex with the estimate inside, so each end is sought on its surface: a direction
(Venzon and Moolgavkar 1988), then how far it goes, by Newton on a convex function of one variable.
Above `MOST_CELLS` distinct predictions, those whose log odds agree to 0.01 are taken as one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._ground.linalg import inverse, whitening
from .._ground.results import Codes, Floats
from .._math.kernel import Terms
from .._math.newton import minimize

FLOOR = 1e-12
"""Smallest probability, and smallest distance from 1, that log odds are taken of."""
RIDGE = 1.0
"""Strength of the pull: a prior standard deviation of 1 log odds in each direction."""
FEWEST_KNOTS, MOST_KNOTS = 5, 10
OUTER = 0.25
"""Quantile of the first knot, and of the last one from above, times the number of knots."""
MOST_CELLS, CELL = 2000, 0.01
VARIES = 1e-9
"""Range of a column up to which it counts as the same in every row."""
MOST_TURNS, MOST_STEPS = 6, 60
"""Directions tried for an end of the band, and evaluations for how far each goes."""
CLOSE = 1e-4
"""Part of z^2 by which an end may miss it, and log odds by which a turn may still move it."""


def n_knots_for(expected: float) -> int:
    """Return how many knots rows have that expect so many of the rarer outcome.

    Examples
    --------
    >>> [n_knots_for(m) for m in (10, 300, 1000, 5000, 1e6)]
    [5, 5, 6, 9, 10]
    """
    return int(np.clip(round(1.6 * expected**0.2), FEWEST_KNOTS, MOST_KNOTS))


def log_odds(probs: Floats) -> Floats:
    """Return log odds of probabilities no closer to 0 and 1 than `FLOOR`."""
    p = np.clip(probs, FLOOR, 1.0 - FLOOR)
    return np.asarray(np.log(p) - np.log1p(-p))


def chances(x: Floats) -> Floats:
    """Return the probabilities of log odds."""
    from scipy.special import expit

    return np.asarray(expit(x))


def natural_columns(x: Floats, knots: Floats) -> Floats:
    """Return x and, for K knots, K - 2 cubics that are straight lines beyond the outer knots."""
    columns = [x]
    if len(knots) > 2:
        before, last = knots[-2:]
        near_last, beyond = _cubed(x - before), _cubed(x - last)
        for knot in knots[:-2]:
            bent = _cubed(x - knot) - near_last * ((last - knot) / (last - before))
            bent += beyond * ((before - knot) / (last - before))
            columns.append(bent / (last - knots[0]) ** 2)
    return np.stack(columns, axis=1)


def _cubed(x: Floats) -> Floats:
    above = np.maximum(x, 0.0)
    return above * above * above


@dataclass(frozen=True, eq=False)
class Basis:
    """B as a function of log odds: 1 and ``(columns - centre) @ root``."""

    knots: Floats
    centre: Floats
    root: Floats

    @classmethod
    def of(cls, values: Floats, weight: Floats, n_knots: int | None) -> Basis:
        """Place the knots and make the columns independent; labels are not asked."""
        x, p = log_odds(values), np.clip(values, FLOOR, 1.0 - FLOOR)
        if n_knots is None:
            n_knots = n_knots_for(float(min(weight @ p, weight @ (1.0 - p))))
        knots = _quantiles(x, weight * np.sqrt(p * (1.0 - p)), n_knots)
        columns, information = natural_columns(x, knots), weight * p * (1.0 - p)
        information /= information.sum()
        centre = information @ columns
        away = (columns - centre) * (np.ptp(columns, axis=0) > VARIES)
        root = whitening(away.T @ (away * information[:, None]))
        return cls(knots, centre, root)

    def __call__(self, x: Floats) -> Floats:
        """Return B at log odds x, shape (len(x), size)."""
        bends = (natural_columns(x, self.knots) - self.centre) @ self.root
        return np.column_stack([np.ones(len(x)), bends])


def _quantiles(x: Floats, weight: Floats, count: int) -> Floats:
    """Return the distinct ones of evenly spaced weighted quantiles."""
    order = np.argsort(x, kind="stable")
    reach = np.cumsum(weight[order])
    places = (reach - 0.5 * weight[order]) / reach[-1]
    first = OUTER / max(count, FEWEST_KNOTS)
    found = np.interp(np.linspace(first, 1.0 - first, count), places, x[order])
    return np.unique(found.round(9))


class Hits:
    """Q and its derivatives: labels enter through ``s = sum w h (l, B)`` of all rows alone.

    What remains, ``sum w log(1 + exp(log odds))``, is summed over pooled log odds `x`.
    """

    def __init__(self, x: Floats, weight: Floats, hits: Floats, basis: Basis) -> None:
        rows = basis(x)
        self.constant, self.statistic = float(x @ (weight * hits)), rows.T @ (weight * hits)
        if len(x) > MOST_CELLS:
            _, index = np.unique(np.rint(x / CELL), return_inverse=True)
            total = np.bincount(index, weight).astype(np.float64)
            x, weight = np.bincount(index, weight * x) / total, total
            rows = basis(x)
        self.x, self.weight, self.rows = x, weight, rows

    def __call__(self, beta: Floats) -> Terms:
        """Return Q, its gradient and Hessian at `beta`."""
        chance = chances(self.x + self.rows @ beta)
        gradient = self.rows.T @ (self.weight * chance) - self.statistic + RIDGE * beta
        curvature = self.weight * chance * (1.0 - chance)
        hessian = self.rows.T @ (self.rows * curvature[:, None]) + RIDGE * np.eye(len(beta))
        return Terms(float(self.values(beta[None])[0]), gradient, hessian)

    def values(self, betas: Floats) -> Floats:
        """Return Q at each row of `betas`."""
        eta = self.x[:, None] + self.rows @ betas.T
        linear = self.constant + betas @ self.statistic
        pull = 0.5 * RIDGE * np.einsum("tp,tp->t", betas, betas)
        return self.weight @ np.logaddexp(0.0, eta) - linear + pull

    def derivatives(self, betas: Floats) -> tuple[Floats, Floats]:
        """Return gradients (T, size) and Hessians (T, size, size) at each row of `betas`."""
        size = betas.shape[1]
        chance = chances(self.x[:, None] + self.rows @ betas.T)
        gradients = (self.weight[:, None] * chance).T @ self.rows - self.statistic + RIDGE * betas
        squares = (self.rows[:, :, None] * self.rows[:, None, :]).reshape(len(self.x), -1)
        curvature = (self.weight[:, None] * chance * (1.0 - chance)).T
        hessians = (curvature @ squares).reshape(-1, size, size)
        return gradients, hessians + RIDGE * np.eye(size)


@dataclass(frozen=True, eq=False)
class Spline:
    """A fitted curve.

    Attributes
    ----------
    basis : Basis
        Columns at any log odds.
    beta, covariance : ndarray
        Their coefficients, and the inverse Hessian of Q.
    likelihood : Hits
        What they were fitted to.
    """

    basis: Basis
    beta: Floats
    covariance: Floats
    likelihood: Hits

    @classmethod
    def fit(
        cls, values: Floats, hits: Floats, weight: Floats, n_knots: int | None = None
    ) -> Spline:
        """Fit the curve of hits on predictions; rows of weight 0 are none."""
        counted = weight > 0.0
        values, hits, weight = values[counted], hits[counted], weight[counted]
        distinct, index = np.unique(values, return_inverse=True)
        total = np.bincount(index, weight).astype(np.float64)
        basis = Basis.of(distinct, total, n_knots)
        frequency = np.bincount(index, weight * hits) / total
        likelihood = Hits(log_odds(distinct), total, frequency, basis)
        beta = minimize(likelihood, np.zeros(likelihood.rows.shape[1])).x
        return cls(basis, beta, inverse(likelihood(beta).hessian), likelihood)

    def __call__(self, probs: Floats) -> Floats:
        """Return the curve at predictions."""
        x = log_odds(probs)
        return chances(x + self.basis(x) @ self.beta)

    def band(self, x: Floats, z: float, sandwich: Floats | None = None) -> tuple[Floats, Floats]:
        """Return the ends of the band at log odds `x`, in log odds.

        `sandwich` is the covariance of beta where rows depend on each other.
        """
        at = self.basis(x)
        variance = np.einsum("tp,pq,tq->t", at, self.covariance, at)
        reach = np.full(len(x), z)
        if sandwich is not None:
            reach *= np.sqrt(np.einsum("tp,pq,tq->t", at, sandwich, at) / variance)
        middle, step = x + at @ self.beta, at @ self.covariance / np.sqrt(variance)[:, None]
        aims, starts = np.vstack([-at, at]), np.vstack([-step, step])
        ends = self._furthest(aims, starts, np.tile(reach, 2))
        below, above = np.split(ends, 2)
        return middle - below, middle + above

    def _furthest(self, aims: Floats, starts: Floats, reach: Floats) -> Floats:
        """Return the most of ``aim . (b - beta)`` while ``2 (Q(b) - Q) <= reach^2``, aim by aim.

        The largest value that a turn brought is kept, so that more turns never lower it.
        """
        away = self._surface(starts * reach[:, None], reach)
        most = np.einsum("tp,tp->t", aims, away)
        for _ in range(MOST_TURNS):
            gradients, hessians = self.likelihood.derivatives(self.beta + away)
            towards = np.linalg.solve(hessians, np.stack([aims, gradients], axis=2))
            missing = 2.0 * self._excess(away, reach)
            left = np.einsum("tp,tp->t", gradients, towards[:, :, 1]) - missing
            scale = np.sqrt(np.maximum(left, 0.0) / np.einsum("tp,tp->t", aims, towards[:, :, 0]))
            turned = away + scale[:, None] * towards[:, :, 0] - towards[:, :, 1]
            turned = self._surface(turned, reach)
            found = np.einsum("tp,tp->t", aims, turned)
            better = found > most
            away = np.where(better[:, None], turned, away)
            gained = np.maximum(found - most, 0.0)
            most = np.maximum(most, found)
            if gained.max() <= CLOSE:
                break
        return most

    def _excess(self, away: Floats, reach: Floats) -> Floats:
        """Return ``Q(beta + away) - Q - reach^2 / 2`` of each row."""
        return self.likelihood.values(self.beta + away) - self._least - 0.5 * reach**2

    @property
    def _least(self) -> float:
        return float(self.likelihood.values(self.beta[None])[0])

    def _surface(self, directions: Floats, reach: Floats) -> Floats:
        """Scale each direction so that it ends where ``2 (Q - least) = reach^2``."""
        own = self.likelihood
        start, slopes = own.x + own.rows @ self.beta, own.rows @ directions.T
        linear = directions @ (own.statistic - RIDGE * self.beta)
        square = RIDGE * np.einsum("tp,tp->t", directions, directions)
        here = own.constant + float(self.beta @ (own.statistic - 0.5 * RIDGE * self.beta))
        goal = self._least + 0.5 * reach**2 + here

        def excess(scale: Floats) -> tuple[Floats, Floats]:
            eta = start[:, None] + scale * slopes
            value = own.weight @ np.logaddexp(0.0, eta) - goal
            value += scale * (0.5 * scale * square - linear)
            return value, own.weight @ (chances(eta) * slopes) - linear + scale * square

        return directions * _crossing(excess, len(directions), 0.5 * CLOSE * reach**2)[:, None]


def _crossing(
    excess: Callable[[Floats], tuple[Floats, Floats]], size: int, close: Floats
) -> Floats:
    """Return where convex functions that are negative at 0 cross 0, within `close` in value.

    Doubled until outside; from there Newton's steps come down from the right and never pass it.
    """
    scale = np.ones(size)
    value, slope = excess(scale)
    for _ in range(MOST_STEPS):
        inside = value < -close
        if not inside.any():
            break
        scale = np.where(inside, 2.0 * scale, scale)
        value, slope = excess(scale)
    for _ in range(MOST_STEPS):
        outside = value > close
        if not outside.any():
            break
        scale = np.where(outside, scale - value / slope, scale)
        value, slope = excess(scale)
    return scale


def score_covariance(scores: Floats, groups: Codes | None) -> Floats:
    """Return the covariance of the sum of scores over groups, or over rows.

    ``N / (N - 1) (sum u u' - t t' / N)`` for N units with scores u, t their sum.
    """
    if groups is not None:
        scores = np.stack([np.bincount(groups, column) for column in scores.T], axis=1)
    units = scores[scores.any(axis=1)]
    n, total = max(2.0, float(len(units))), units.sum(axis=0)
    return n / (n - 1.0) * (units.T @ units - np.outer(total, total) / n)
