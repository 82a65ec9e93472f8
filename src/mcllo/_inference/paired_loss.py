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

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .._model.kernel import softmax_in_place
from .._model.temperature import central_moments_in_place
from .._utils.results import Codes, Floats
from ..metrics._scores import standard_error_of_mean

TINY = 1e-300
MAX_ENTRIES = 400_000
"""Probabilities that show the family's shape; of more, evenly spaced rows, 500 at least."""
LOG_PROB_TOL = 1e-9
"""Log probabilities that differ by less are equal: what clipping and renormalizing leave."""
MIN_SPREAD_SHARE = 1e-12
"""Squared difference of two methods, as a share of the largest squared loss, beyond rounding."""
MAX_ABS_T = 1e6
"""Standard deviations of a row's difference beyond which t has reached the end of its family."""
MIN_LABEL_ERROR_SHARE = 1e-6
"""Part of the error below which labels add nothing to it: they are certain."""


class _FamilyPoint(NamedTuple):
    """The family at one t: A and its first three derivatives, each row's mean and variance."""

    t: float
    value: float
    slope: float
    curvature: float
    third_derivative: float
    means: Floats
    variances: Floats


def thinning_stride(n_samples: int, n_classes: int, most: int = MAX_ENTRIES) -> int:
    """Return k where every k-th row shows the family's shape, in about `most` probabilities.

    >>> thinning_stride(2000, 10), thinning_stride(200_000, 10), thinning_stride(4000, 1000)
    (1, 5, 8)
    """
    stride_for_entries = math.ceil(n_samples * n_classes / most)
    stride_for_rows = n_samples // 500  # so many rows however many classes there are
    return max(1, min(stride_for_entries, stride_for_rows))


class PairedLoss:
    """The mean log loss of `other` less that of `first`, on the same labels.

    `observed` is the difference of each row, which stands for `weight` rows; `first`, `other` and
    `base` are a, b and m of the card, above 0, of rows 0, `row_step`, 2 `row_step`, ...
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
        row_step: int = 1,
    ) -> None:
        self.mean = float(weight @ observed) / float(weight.sum())
        self.standard_error, self.units = standard_error_of_mean(
            observed - self.mean, weight, groups
        )
        if (
            groups is not None
        ):  # weights that count no rows: as many as they are worth (Kish)
            weight = weight * (weight.sum() / (weight @ weight))
        self.total = float(weight.sum())
        self.weight = weight[::row_step]
        self.total_kept = float(self.weight.sum())
        self.log_base = np.log(base).T.copy()
        self.differences = (
            np.log(first).T - np.log(other).T
        )  # d_iy, of shape (classes, rows)
        # t counts standard deviations of a row's difference, so that 1 is a step of a usual size.
        self.scale = 1.0
        largest = float(np.abs(self.differences).max(initial=0.0))
        self.is_same = largest < LOG_PROB_TOL
        if not self.is_same:
            sd = float(np.sqrt(self._family_at(0.0).curvature / self.total_kept))
            # A standard deviation that is rounding is no unit to count in.
            self.scale = max(sd, 1e-4 * largest)
            self.differences /= self.scale
        self._observed_sum = (
            self.mean / self.scale * self.total_kept
        )  # S, scaled, of rows kept

    def _family_at(self, t: float) -> _FamilyPoint:
        """Return the family at t, here in units of ``1 / scale``."""
        p = self.log_base + t * self.differences
        value = float(softmax_in_place(p) @ self.weight)
        means, variances, third_moments = central_moments_in_place(p, self.differences)
        np.maximum(variances, 0.0, out=variances)
        return _FamilyPoint(
            t=t,
            value=value,
            slope=float(means @ self.weight),
            curvature=float(variances @ self.weight),
            third_derivative=float(third_moments @ self.weight),
            means=means,
            variances=variances,
        )

    def _most_likely(self, start: _FamilyPoint, events: float) -> _FamilyPoint:
        """Return the t that maximises ``t S - A(t) + events log A''(t)``, by Newton's method.

        The Hessian is that of A alone: positive, and right at large samples.

        1. Newton's step, no farther than the end of the family.
        2. Stop where it gains less than 1e-12 nats.
        3. Otherwise halve it until the function has risen by a part of what the slope says.
        """
        here = start
        for _ in range(100):
            curvature = max(here.curvature, TINY)
            slope = (
                self._observed_sum
                - here.slope
                + events * here.third_derivative / curvature
            )
            newton = here.t + slope / curvature
            step = float(np.clip(newton, -MAX_ABS_T, MAX_ABS_T)) - here.t
            gain = slope * step
            if gain <= 1e-12:
                return self._family_at(here.t + step)
            least = self._log_posterior(here, events)
            rounding = 1e-13 * (1.0 + abs(least))
            for _ in range(60):
                there = self._family_at(here.t + step)
                value = self._log_posterior(there, events)
                if (
                    math.isfinite(value)
                    and value >= least + 1e-4 * slope * step - rounding
                ):
                    break
                step *= 0.5
            else:
                return here  # no step helps: rounding decides
            here = there
        return here

    def _log_posterior(self, point: _FamilyPoint, events: float) -> float:
        """Return ``t S - A(t) + events log A''(t)``."""
        log_likelihood = point.t * self._observed_sum - point.value
        return log_likelihood + events * math.log(max(point.curvature, TINY))

    @cached_property
    def firth_estimate(self) -> _FamilyPoint:
        """Where spreads are measured: an estimate that never lies at the family's end.

        With half of ``log A''`` as a prior, Firth's (1993, Biometrika 80:27-38).
        """
        return self._most_likely(self._family_at(0.0), events=0.5)

    @cached_property
    def estimate(self) -> _FamilyPoint:
        """Where the family's mean is the observed one."""
        return self._most_likely(self.firth_estimate, events=0.0)

    def _error(self, variances: Floats) -> float:
        """Return the standard error of a mean of independent rows with these (scaled) variances."""
        mean_variance = self.weight @ variances / self.total_kept
        return self.scale * float(np.sqrt(mean_variance / self.total))

    @cached_property
    def rows_error(self) -> float:
        """The part of the standard error that is due to the rows, whatever their labels."""
        means = self.firth_estimate.means
        return self._error((means - np.average(means, weights=self.weight)) ** 2)

    @cached_property
    def labels_error(self) -> float:
        """The part that is due to the labels of given rows, under the family."""
        return self._error(self.firth_estimate.variances)

    @cached_property
    def expected_error(self) -> float:
        """The standard error under the family, of independent rows."""
        return float(np.hypot(self.labels_error, self.rows_error))

    @property
    def error(self) -> float:
        """The standard error that the interval goes by: the observed, or the family's if larger."""
        if self.is_same or self.units <= 1.0:
            return self.standard_error
        return max(self.standard_error, self.expected_error)

    @property
    def dispersion(self) -> float:
        """How much larger the squared error is than that of the family; at least 1."""
        if self.is_same or self.expected_error <= MIN_LABEL_ERROR_SHARE * self.error:
            return 1.0
        return (self.error / self.expected_error) ** 2

    def interval(self, quantile: float) -> tuple[float, float]:
        """Return the means up to `quantile` standard errors away, as the deviance measures them.

        No label can bring more than the largest difference of its row; other rows could, so that
        no end is nearer than the rows' own standard error says.
        """
        if self.is_same:
            return self.mean, self.mean
        if self.units <= 1.0:
            return -math.inf, math.inf
        if self.labels_error <= MIN_LABEL_ERROR_SHARE * self.error:
            margin = quantile * self.error
            return self.mean - margin, self.mean + margin
        low = self._mean_at_deviance(quantile, -1.0) * self.scale
        high = self._mean_at_deviance(quantile, 1.0) * self.scale
        margin_of_rows = quantile * self.rows_error
        low = min(low, self.mean - margin_of_rows)
        high = max(high, self.mean + margin_of_rows)
        return low, high

    def _mean_at_deviance(self, quantile: float, side: float) -> float:
        """Return the family's mean where the deviance reaches its goal, or at the family's end.

        By Newton's method inside a bracket: bisection, or twice as far, where it would leave that.
        Distances are from the estimate, towards `side`.
        """
        best = self.estimate
        error_of_mean_kept = quantile * self.error / self.scale * self.total_kept
        curvature = self.firth_estimate.curvature
        first_distance = error_of_mean_kept / curvature  # were the deviance a parabola
        goal = min(curvature * first_distance * first_distance, 1e200)
        inside = 0.0
        outside = MAX_ABS_T
        distance = min(first_distance, 0.5 * MAX_ABS_T)
        for _ in range(100):
            here = self._family_at(best.t + side * distance)
            deviance = 2.0 * (
                here.value - best.value - side * distance * self._observed_sum
            )
            if deviance < goal:
                inside = distance
            else:
                outside = distance
            is_reached = abs(deviance - goal) <= 1e-8 * goal
            if is_reached or outside - inside <= 1e-9 * outside:
                break
            slope = 2.0 * side * (here.slope - self._observed_sum)
            newton = distance - (deviance - goal) / slope if slope > 0.0 else math.inf
            is_inside_bracket = inside < newton < min(outside, 4.0 * distance)
            if is_inside_bracket:
                distance = newton
            elif outside == MAX_ABS_T:
                distance = min(2.0 * inside, MAX_ABS_T)
            else:
                distance = 0.5 * (inside + outside)
        return here.slope / self.total_kept


def all_pairs_quantile(
    losses: Floats, weight: Floats, groups: Codes | None = None, level: float = 0.95
) -> float:
    """Return the quantile of the largest of all differences between columns of `losses`.

    Each over its standard error; between that of a single pair and Bonferroni's. From 10,000 normal
    draws with a seed of its own, so that the quantile is a function of the losses alone.
    """
    from scipy.special import ndtri

    n_columns = losses.shape[1]
    first, second = np.triu_indices(n_columns, 1)
    n_pairs = len(first)
    of_single_pair = float(ndtri(0.5 + 0.5 * level))
    if n_pairs < 2:
        return of_single_pair
    # What each unit (row, or group) adds to the covariance of the mean losses.
    mean_losses = weight @ losses / weight.sum()
    centred = weight[:, None] * (losses - mean_losses)
    if groups is None:
        centred /= np.sqrt(np.maximum(weight, TINY))[:, None]
    else:
        sums = [np.bincount(groups, weights=column) for column in centred.T]
        centred = np.stack(sums, axis=1)
    covariance = centred.T @ centred
    variances = np.diag(covariance)
    spread = variances[first] + variances[second] - 2.0 * covariance[first, second]
    # Spreads are differences of sums of squares and keep no more digits than those: a method that
    # leaves predictions as they are differs from them by rounding alone, which is no difference.
    differ = spread > MIN_SPREAD_SHARE * float(variances.max())
    if not differ.any():
        return of_single_pair
    eigenvalues, eigenvectors = np.linalg.eigh(covariance)
    root = (eigenvectors * np.sqrt(np.maximum(eigenvalues, 0.0))) @ eigenvectors.T
    rng = np.random.default_rng(20_240_601)
    drawn = rng.standard_normal((10_000, n_columns)) @ root
    differences = np.abs(drawn[:, first[differ]] - drawn[:, second[differ]])
    largest = (differences / np.sqrt(spread[differ])).max(axis=1)
    n_pairs_that_differ = int(differ.sum())
    of_bonferroni = float(ndtri(1.0 - 0.5 * (1.0 - level) / n_pairs_that_differ))
    simulated = float(np.quantile(largest, level))
    return min(max(of_single_pair, simulated), of_bonferroni)
