"""`PairedLoss`: by how much one prediction's mean log loss lies above another's, with an interval.

Rows i of weight ``w_i`` (W in all), labels ``y_i``, two predictions a and b of them, and m, the
mean of all predictions that are compared:

====================  ==========================================================================
difference of a row   ``d_iy = log a_iy - log b_iy``: what a gains over b where y comes true
observed              ``S = sum_i w_i d_{i, y_i}``;  mean difference ``S / W``
family                ``p_t(y | i)`` proportional to ``m_iy exp(t d_iy)``
log partition         ``A(t) = sum_i w_i log sum_y m_iy exp(t d_iy)``;  ``A' = sum_i w_i E_t d_i``,
                      ``A'' = sum_i w_i Var_t d_i``;  S is sufficient for t
estimate              ``A'(t_hat) = S``
deviance              ``2 [t_hat S - A(t_hat)] - 2 [t S - A(t)]``
dispersion            ``f = V W^2 / A''(t_half)``, V the larger of the squared standard errors: that
                      of the observed differences, and that of draws from the family at ``t_half``,
                      rows drawn anew as well; ``t_half`` maximises ``t S - A + log(A'') / 2``, as
                      if half an event more had been seen, and so exists where nothing happened
interval              ``A'(t) / W`` for all t of deviance up to ``f q^2``
====================  ==========================================================================

A mean of observed differences with its standard error knows nothing of errors that might have
happened and did not: of 200 rows that are 97 % sure six decide, and where some are missing by
chance both the mean and its error are too small. The predictions know more, since they say how
probable every other label was. Whatever mean the labels truly have, one t gives it, and the spread
of S there tells how far an observed S may lie from it: farther to the side where errors are rare.
The base m is the mean of all predictions, so that no label is all but impossible only because a map
that won by luck says so. What the family does not know, how rows vary and depend on each other, is
in the dispersion. Nothing asks that a prediction be right; only that the spread under the family or
the observed one is about right. `docs/explanation/comparing.md` has the coverage, by simulation.

The winner of k methods is picked after looking, so that its differences may be any of
``k (k + 1) / 2``. `all_pairs_quantile` is the quantile that the largest of them all, each over its
standard error, stays below: of normal variables with the covariance of the methods' losses (max-t).
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from .._model.kernel import Derivatives, softmax
from .._model.newton import minimize
from .._model.temperature import central_moments
from .._utils.results import Codes, Floats
from ..metrics._scores import error_of_mean

MAX_CELLS = 400_000  # probabilities that show the family's shape; of more, evenly spaced rows
MIN_ROWS = 500  # however many classes there are
LOG_PROB_TOL = 1e-9
"""Log probabilities that differ by less are equal."""
MIN_SPREAD_SHARE = 1e-12
"""Squared difference of two methods, as a share of the largest squared loss, beyond rounding."""
DECREMENT_TOL = 1e-12
"""Decrement, in nats, at which the estimate is found, and the place where spreads are measured."""
DEVIANCE_TOL = 1e-8
"""Part of the goal by which the deviance at an end of an interval may miss it."""
MAX_ITER = 100
MAX_STEP_IN_SD = 1e6
"""Standard deviations of a row's difference beyond which t has reached the end of its family."""
MIN_SD_SHARE = 1e-4
"""Of the largest difference, that a standard deviation may be; below, it is no unit to count in."""
MIN_LABEL_ERROR_SHARE = 1e-6
"""Part of the error below which labels add nothing to it: they are certain."""
N_DRAWS = 10_000
QUANTILE_SEED = 20_240_601
"""What the normal variables are drawn from: the quantile is a function of the losses alone."""


class _FamilyPoint(NamedTuple):
    """The family at one t: A and its first three derivatives, each row's mean and variance."""

    t: float
    value: float
    slope: float
    curvature: float
    bend: float
    means: Floats
    variances: Floats


def thinning_stride(n_samples: int, n_classes: int, most: int = MAX_CELLS) -> int:
    """Return k where every k-th row shows the family's shape, in about `most` probabilities.

    >>> thinning_stride(2000, 10), thinning_stride(200_000, 10), thinning_stride(4000, 1000)
    (1, 5, 8)
    """
    return max(1, min(-(-n_samples * n_classes // most), n_samples // MIN_ROWS))


class PairedLoss:
    """The mean log loss of `other` less that of `first`, on the same labels.

    `observed` is the difference of each row, which stands for `weight` rows; `first`, `other` and
    `base` are a, b and m of the card, above 0, of rows 0, `every`, 2 `every`, ...
    (`thinning_stride`). Rows of the same `groups` (0, 1, ...) may depend on each other; for survey
    weights each row is one. `mean` and `standard_error` are those of the observed differences, of
    so many `units`.

    Examples
    --------
    Of 50 sure rows none failed, so that the bolder prediction leads in every one: the observed
    differences are all the same, without any spread.

    >>> timid, bold = np.tile([0.95, 0.05], (50, 1)), np.tile([0.99, 0.01], (50, 1))
    >>> lead = np.full(50, np.log(0.99 / 0.95))
    >>> pair = PairedLoss(lead, bold, timid, (bold + timid) / 2, np.ones(50))
    >>> round(pair.mean, 4), pair.standard_error < 1e-12
    (0.0412, True)
    >>> low, high = pair.interval(1.96)
    >>> round(low, 3), round(high, 3)
    (-0.021, 0.041)
    """

    def __init__(
        self,
        observed: Floats,
        first: Floats,
        other: Floats,
        base: Floats,
        weight: Floats,
        groups: Codes | None = None,
        every: int = 1,
    ) -> None:
        self.mean = float(weight @ observed) / float(weight.sum())
        self.standard_error, self.units = error_of_mean(observed - self.mean, weight, groups)
        if groups is not None:  # weights that count no rows: as many as they are worth (Kish)
            weight = weight * (weight.sum() / (weight @ weight))
        self.total, self.weight = float(weight.sum()), weight[::every]
        self.kept = float(self.weight.sum())
        self.base, self.scale = np.log(base).T.copy(), 1.0
        self.gains = np.log(first).T - np.log(other).T
        largest = float(np.abs(self.gains).max(initial=0.0))
        self.same = largest < LOG_PROB_TOL
        if not self.same:
            spread = float(np.sqrt(self._at(0.0).curvature / self.kept))
            self.scale = max(spread, MIN_SD_SHARE * largest)
            self.gains /= self.scale
        self._observed = self.mean / self.scale * self.kept  # S, scaled, for the rows kept

    def _at(self, t: float) -> _FamilyPoint:
        """Return the family at t, here in units of ``1 / scale``."""
        p = self.base + t * self.gains
        value = float(softmax(p) @ self.weight)
        means, variances, thirds = central_moments(p, self.gains)
        np.maximum(variances, 0.0, out=variances)
        slope, curvature, bend = (float(m @ self.weight) for m in (means, variances, thirds))
        return _FamilyPoint(t, value, slope, curvature, bend, means, variances)

    def _most_likely(self, here: _FamilyPoint, events: float) -> _FamilyPoint:
        """Return the estimate, from `here`, with ``log(A'')`` times `events` as a prior."""

        def loss(x: Floats) -> Derivatives:
            nonlocal here
            here = self._at(float(x[0]))
            curvature = max(here.curvature, 1e-300)
            value = here.value - here.t * self._observed - events * float(np.log(curvature))
            slope = here.slope - self._observed - events * here.bend / curvature
            return Derivatives(value, np.array([slope]), np.array([[curvature]]))

        def direction(terms: Derivatives) -> Floats:
            there = here.t - terms.gradient / terms.hessian[0]
            return np.asarray(np.clip(there, -MAX_STEP_IN_SD, MAX_STEP_IN_SD) - here.t, np.float64)

        found = minimize(loss, np.array([here.t]), tol=DECREMENT_TOL, solve=direction)
        return self._at(float(found.x[0]))

    @cached_property
    def typical(self) -> _FamilyPoint:
        """Where spreads are measured: an estimate that never lies at the family's end."""
        return self._most_likely(self._at(0.0), 0.5)

    @cached_property
    def estimate(self) -> _FamilyPoint:
        """Where the family's mean is the observed one."""
        return self._most_likely(self.typical, 0.0)

    def _error(self, variances: Floats) -> float:
        """Return the standard error of a mean of independent rows with these (scaled) variances."""
        return self.scale * float(np.sqrt(self.weight @ variances / self.kept / self.total))

    @cached_property
    def rows_error(self) -> float:
        """The part of the standard error that is due to the rows, whatever their labels."""
        means = self.typical.means
        return self._error((means - np.average(means, weights=self.weight)) ** 2)

    @cached_property
    def expected_error(self) -> float:
        """The standard error under the family, of independent rows."""
        return float(np.hypot(self._error(self.typical.variances), self.rows_error))

    @property
    def error(self) -> float:
        """The standard error that the interval goes by: the observed, or the family's if larger."""
        if self.same or self.units <= 1.0:
            return self.standard_error
        return max(self.standard_error, self.expected_error)

    @property
    def dispersion(self) -> float:
        """How much larger the squared error is than that of the family; at least 1."""
        certain = self.same or self.expected_error <= MIN_LABEL_ERROR_SHARE * self.error
        return 1.0 if certain else (self.error / self.expected_error) ** 2

    def interval(self, quantile: float) -> tuple[float, float]:
        """Return the means up to `quantile` standard errors away, as the deviance measures them.

        No label can bring more than the largest difference of its row; other rows could, so that
        no end is nearer than the rows' own standard error says.
        """
        if self.same:
            return self.mean, self.mean
        if self.units <= 1.0:
            return -np.inf, np.inf
        if self._error(self.typical.variances) <= MIN_LABEL_ERROR_SHARE * self.error:
            return self.mean - quantile * self.error, self.mean + quantile * self.error
        low, high = (self._limit(quantile, side) * self.scale for side in (-1.0, 1.0))
        reach = quantile * self.rows_error
        return min(low, self.mean - reach), max(high, self.mean + reach)

    def _limit(self, quantile: float, side: float) -> float:
        """Return the family's mean where the deviance reaches its goal, or at the family's end.

        By Newton's method inside a bracket: bisection, or twice as far, where it would leave that.
        """
        best = self.estimate
        reach = quantile * self.error / self.scale * self.kept / self.typical.curvature
        goal = min(self.typical.curvature * reach * reach, 1e200)
        inside, outside, away = 0.0, MAX_STEP_IN_SD, min(reach, 0.5 * MAX_STEP_IN_SD)
        for _ in range(MAX_ITER):
            here = self._at(best.t + side * away)
            lost = 2.0 * (here.value - best.value - side * away * self._observed)
            inside, outside = (away, outside) if lost < goal else (inside, away)
            if abs(lost - goal) <= DEVIANCE_TOL * goal or outside - inside <= 1e-9 * outside:
                break
            slope = 2.0 * side * (here.slope - self._observed)
            newton = away - (lost - goal) / slope if slope > 0.0 else np.inf
            farther = 2.0 * inside if outside == MAX_STEP_IN_SD else 0.5 * (inside + outside)
            most = min(outside, 4.0 * away)
            away = newton if inside < newton < most else min(farther, MAX_STEP_IN_SD)
        return here.slope / self.kept


def all_pairs_quantile(
    losses: Floats, weight: Floats, groups: Codes | None = None, level: float = 0.95
) -> float:
    """Return the quantile of the largest of all differences between columns of `losses`.

    Each over its standard error; between that of a single pair and Bonferroni's.
    """
    from scipy.special import ndtri

    n_columns = losses.shape[1]
    first, second = np.triu_indices(n_columns, 1)
    single = float(ndtri(0.5 + 0.5 * level))
    if len(first) < 2:
        return single
    away = weight[:, None] * (losses - weight @ losses / weight.sum())
    if groups is None:
        away /= np.sqrt(np.maximum(weight, 1e-300))[:, None]
    else:
        away = np.stack([np.bincount(groups, weights=column) for column in away.T], axis=1)
    covariance = away.T @ away
    squares = np.diag(covariance)
    spread = squares[first] + squares[second] - 2.0 * covariance[first, second]
    # Spreads are differences of sums of squares and keep no more digits than those: a method that
    # leaves predictions as they are differs from them by rounding alone, which is no difference.
    differ = spread > MIN_SPREAD_SHARE * float(squares.max())
    if not differ.any():
        return single
    values, vectors = np.linalg.eigh(covariance)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    drawn = np.random.default_rng(QUANTILE_SEED).standard_normal((N_DRAWS, n_columns)) @ root
    first, second, spread = first[differ], second[differ], spread[differ]
    largest = (np.abs(drawn[:, first] - drawn[:, second]) / np.sqrt(spread)).max(axis=1)
    most = float(ndtri(1.0 - 0.5 * (1.0 - level) / len(first)))
    return min(max(single, float(np.quantile(largest, level))), most)
