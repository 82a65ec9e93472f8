"""How far a map moves probabilities, and how far chance alone would have moved the estimated one.

A map theta takes a row x to g. Over the rows, weights included, its three `EFFECT_SIZES`:

=================  ===============================================================================
change             mean of ``1/2 sum_j |g_j - x_j|``: probability that stands on the wrong classes
top                mean of ``|g_top - x_top|``, top the class that was the most probable one
gain               mean of ``KL(g || x)``: log loss that the map saves where g is right
=================  ===============================================================================

They are 0 at the identity theta0 and never negative, so that the sizes of an estimate are too
large: noise alone moves probabilities, those of calibrated rows too. (Change and gain are positive
at every map that moves a row; top may be 0 there, where only other classes move.) Estimate and
interval allow for that by test inversion ([1]_, [2]_):

1. The estimate of a true theta is theta + e, ``e ~ N(0, covariance)``. To first order in e a
   probability then moves to ``g_j + g_j (a_j - sum_k g_k a_k)``, ``a_j = e_tau_j + e_gamma_j l_j``
   with l the log odds, and change and top are those of rows moved so. The gain, nearly to second
   order, is ``gain(theta) + (theta - theta0)' H e + 1/2 e' H e``: third cumulants times
   ``theta - theta0`` are left out beside H in the last term, so that it is exact to second order
   at the identity alone. First order in change and top because the mean of g is then without bias,
   as it is for the estimate (the sums of g are those of the labels), whereas ``g(theta + e)`` is
   bent upwards on sharp rows (`MapChanges.sampling_distribution`). The covariance is that at the
   estimate, whatever theta is asked: one covariance and no refits, where [1]_ simulates and
   estimates anew at each place.
2. On a ray ``theta_t = theta0 + t v, t >= 0``, quantiles of this distribution rise with t, but for
   top: with three classes or more a top probability may fall first and rise through its old value
   later. Each curve is replaced by its largest value so far, and meets the size that was observed,
   that of the estimated map, at the first t that reaches it (`ray_limits`). Where top falls back
   to the observed size farther out, places there are not looked at.

   ======  ===================================================================================
   low     the t whose upper quantile is the observed size; 0 if none
   middle  the same with the median: too large as often as too small [2]_; 0 if none
   high    the same with the lower quantile, at an observed size of at least the median of
           calibrated rows: that chance made the size small rules nothing out
   ======  ===================================================================================

3. Two rays are asked, since the distribution hangs on how many rows the truth leaves alone: that of
   the estimate, whose noise moves all rows, and that of what in it is more than noise
   (`part_beyond_noise`). `_inference/effect_size` takes the mean of the middles and the wider
   limits.

.. [1] J. Carpenter (1999). Test inversion bootstrap confidence intervals. Journal of the Royal
       Statistical Society B 61:159-172.
.. [2] D. W. K. Andrews (1993). Exactly median-unbiased estimation of first order
       autoregressive/unit root models. Econometrica 61:139-165.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from .._model.kernel import probabilities_and_log_sums
from .._model.likelihood import identity_theta
from .._utils.linalg import (
    cholesky_in_place,
    scale_to_unit_diagonal,
    solve_lower_triangular,
)
from .._utils.results import Floats

EFFECT_SIZES = ("change", "top", "gain")
EFFECT_SIZE_POWERS = np.array([2.0, 2.0, 1.0])
"""Near the identity these powers are quadratic in t, and so are their quantiles."""
RAY_PLACES_OF_CHANCE = (0.35, 0.7, 1.4, 2.0)
"""Places t on the ray of an estimate that is hardly more than chance, beside 0 and 1."""
RAY_PLACES_IN_SE = (-2.4, -1.2, 1.2, 2.4)
"""Places on the ray of a clear one: standard errors away from 1. Both ends of a 95 % interval lie
between the outer two."""
MAX_RELATIVE_SE_OF_CLEAR = 0.25  # of a size; the lowest place is then 1 - 2.4 / 4 = 0.4
MIN_DRAWS_IN_TAIL = 10  # draws beyond a quantile, or it is extrapolated: a round number
TAIL_LEVEL = (
    0.025  # of a 95 % interval: quantiles up to here are always taken from the draws
)


class MapChanges:
    """What maps change in given rows: log odds (K, n) with weights that need not sum to 1.

    `offered` is the mask of choice sets (`_model/kernel`).
    """

    def __init__(
        self,
        odds: Floats,
        weight: Floats,
        offered: NDArray[np.bool_] | None = None,
    ) -> None:
        self.odds = odds
        self.offered = offered
        self.weight = weight / weight.sum()
        self.probs, log_partition = self.recalibrate(identity_theta(len(odds)))
        self._weighted_odds = odds * self.weight
        self._mean_log_partition = float(log_partition @ self.weight)
        self.top = self.probs.argmax(axis=0)
        self._top_cells = (self.top, np.arange(len(self.top)))
        self.top_probs = self.probs[self._top_cells]

    def recalibrate(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return what a map makes of the rows, and log-sum-exp."""
        return probabilities_and_log_sums(theta, self.odds, self.offered)

    def sizes(self, theta: Floats) -> Floats:
        """Return the `EFFECT_SIZES` of a map."""
        k = len(self.odds)
        g, log_partition = self.recalibrate(theta)
        from_identity = theta - identity_theta(k)
        # Both are of one exponential family with log partition A, so that KL(g || x) is
        # (theta - theta0)' E_g[features] - (A(theta) - A(theta0)).
        mean_class = g[:k] @ self.weight
        mean_odds = np.einsum("ji,ji->j", g[:k], self._weighted_odds)
        tilt = from_identity[:k] @ mean_class + from_identity[k:] @ mean_odds
        mean_log_partition = float(log_partition @ self.weight)
        gain = float(tilt) - (mean_log_partition - self._mean_log_partition)
        # In the place of g: new arrays of this size cost more time than all else here.
        distance = np.subtract(g, self.probs, out=g)
        np.abs(distance, out=distance)
        change = 0.5 * float((distance @ self.weight).sum())
        top_change = float(distance[self._top_cells] @ self.weight)
        return np.array([change, top_change, max(0.0, gain)])

    def changes_by_row(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the change of each row, and the recalibrated probability of its top class."""
        g, _ = self.recalibrate(theta)
        change = 0.5 * np.abs(g - self.probs).sum(axis=0)
        return change, g[self._top_cells]

    def expected_error_share(self, theta: Floats) -> float:
        """Return the expected share of rows whose most probable class does not come true."""
        g, _ = self.recalibrate(theta)
        return float((1.0 - g.max(axis=0)) @ self.weight)

    def sampling_distribution(self, theta: Floats, noise: Floats) -> Floats:
        """Return the effect sizes of the estimate theta + e for each e of `noise`, (draws, 3).

        Step 1 of the module's text.
        """
        g, _ = self.recalibrate(theta)
        moved_by_map = g - self.probs
        cell_weight = self.weight * g
        half_weight = np.tile(0.5 * self.weight, len(g))
        top_places = np.ravel_multi_index(self._top_cells, g.shape)
        # H is the covariance of the features, so that u' H e is the mean over rows of
        # sum_j g_j u_j e_j with the relative changes that u and e make.
        from_identity = theta - identity_theta(len(self.odds))
        [by_map] = self._relative_changes(g, from_identity[None])
        gain_slope = (cell_weight * by_map).ravel()
        gain_curvature = 0.5 * cell_weight.ravel()

        sizes = np.empty((len(noise), len(EFFECT_SIZES)))
        batch = max(
            1, 32_768 // g.size
        )  # probabilities x draws at once: 256 kB stay in cache
        for first in range(0, len(noise), batch):
            part = slice(first, first + batch)
            moved = self._relative_changes(g, noise[part])
            flat = moved.reshape(
                len(moved), -1
            )  # a view: it follows what is done to `moved`
            sizes[part, 2] = flat @ gain_slope + flat**2 @ gain_curvature
            moved *= g
            moved += moved_by_map
            np.abs(moved, out=moved)
            sizes[part, 0] = flat @ half_weight
            of_top = np.take(flat, top_places, axis=1)
            sizes[part, 1] = of_top @ self.weight
        gain = self.sizes(theta)[2]
        sizes[:, 2] = np.maximum(sizes[:, 2] + gain, 0.0)
        return sizes

    def _relative_changes(self, g: Floats, e: Floats) -> Floats:
        """Return ``a_j - sum_k g_k a_k`` of each row for each e, shape (draws, K + 1, n)."""
        k, n = self.odds.shape
        shift = e[:, :k]
        slope = e[:, k:]
        mean = shift @ g[:k] + slope @ (g[:k] * self.odds)
        changes = np.empty((len(e), k + 1, n))
        others = changes[:, :k]
        np.multiply(slope[:, :, None], self.odds, out=others)
        others += shift[:, :, None]
        others -= mean[:, None]
        np.negative(mean, out=changes[:, k])  # the baseline has a = 0
        return changes


def covariance_root(covariance: Floats) -> Floats:
    """Return F with ``F F'`` the covariance; parameters without variance count as known."""
    known = np.isnan(np.diagonal(covariance))
    if known.any():
        covariance = np.where(known[:, None] | known, 0.0, covariance)
    unit, scale = scale_to_unit_diagonal(covariance)
    try:
        factor = cholesky_in_place(unit)
    except np.linalg.LinAlgError:
        unit, scale = scale_to_unit_diagonal(
            covariance
        )  # the failed factor may stand in its place
        values, vectors = np.linalg.eigh(unit)
        factor = vectors * np.sqrt(np.maximum(values, 0.0))
    root: Floats = np.multiply(factor, scale[:, None], out=factor)
    root[known] = 0.0
    return root


def part_beyond_noise(from_identity: Floats, covariance: Floats) -> Floats | None:
    """Return what in ``theta_hat - theta0`` is more than noise; None where that cannot be told.

    1. Divide by the noise: with F F' the covariance, ``F^-1 (theta_hat - theta0)`` has unit noise.
    2. Take one direction after the other out of it (forward selection, the others being made
       orthogonal to it): one temperature, one shift of the baseline, single parameters. The
       temperature first in any case, then the largest chi-square, while it is above
       ``2 log(number of directions)``: of so many squared normal numbers the largest is about
       that [1]_.
    3. Shrink the rest by the factor of James and Stein [2]_, its positive part [3]_.

    References
    ----------
    .. [1] D. P. Foster, E. I. George (1994). The risk inflation criterion for multiple regression.
           The Annals of Statistics 22:1947-1975.
    .. [2] W. James, C. Stein (1961). Estimation with quadratic loss. Proceedings of the Fourth
           Berkeley Symposium 1:361-379.
    .. [3] A. J. Baranchik (1964). Multiple regression and estimation of the mean of a multivariate
           normal distribution. Technical Report 51, Department of Statistics, Stanford University.
    """
    k = len(from_identity) // 2
    free = np.flatnonzero(~np.isnan(np.diagonal(covariance)))
    try:
        factor = cholesky_in_place(covariance[np.ix_(free, free)])
    except np.linalg.LinAlgError:
        return None
    temperature = np.repeat([0.0, 1.0], k)
    baseline_shift = np.repeat([1.0, 0.0], k)
    directions = np.column_stack([temperature, baseline_shift])
    if (
        len(free) <= 200
    ):  # of more parameters single ones are not looked at: each is a column
        single_parameters = np.eye(2 * k)[:, free]
        directions = np.column_stack([directions, single_parameters])

    # 1. In units of the noise.
    stacked = np.column_stack([directions, from_identity])
    solved = solve_lower_triangular(factor, stacked[free])
    columns = np.ascontiguousarray(solved[:, :-1])
    norms = np.linalg.norm(columns, axis=0)
    columns /= np.maximum(norms, 1e-300)  # a direction may be fixed
    rest = solved[:, -1].copy()

    # 2. The directions that are more than noise.
    taken = np.zeros(len(free))
    n_taken = 0
    least_chi2 = 2.0 * np.log(columns.shape[1])
    while n_taken < len(free):
        squared_norms = np.einsum("ij,ij->j", columns, columns)
        is_left = squared_norms > 1e-8  # what is left of the others is rounding
        chi2 = (rest @ columns) ** 2 / np.maximum(squared_norms, 1e-8)
        chi2[~is_left] = 0.0
        # There is no temperature where every log odds is the same.
        takes_temperature = n_taken == 0 and is_left[0]
        best = 0 if takes_temperature else int(np.argmax(chi2))
        if not takes_temperature and chi2[best] < least_chi2:
            break
        unit = columns[:, best] / np.sqrt(squared_norms[best])
        along = unit @ rest
        taken += along * unit
        rest = rest - along * unit
        columns -= np.outer(unit, unit @ columns)
        n_taken += 1

    # 3. The rest, shrunk.
    dimension = max(len(free) - n_taken - 2, 0)
    squared_norm = max(float(rest @ rest), 1e-300)
    shrinkage = max(0.0, 1.0 - dimension / squared_norm)
    part = np.zeros(2 * k)
    part[free] = factor @ (taken + shrinkage * rest)
    return part


def ray_limits(
    changes: MapChanges,
    theta: Floats,
    rays: list[Floats],
    noise: Floats,
    confidence: float,
) -> list[tuple[Floats, Floats]]:
    """Return the limits on each ray of an estimate theta whose error is distributed as `noise`.

    Step 2 of the module's text: a direction v, and a row for each of `EFFECT_SIZES` with the t
    of low, middle and high, infinite where there is none.
    """
    half = 0.5 * confidence
    probabilities = np.array([0.5 - half, 0.5, 0.5 + half])
    theta0 = identity_theta(len(theta) // 2)
    observed = changes.sizes(theta) ** EFFECT_SIZE_POWERS

    def quantiles_on_ray(v: Floats, t: float) -> Floats:
        """Return the quantiles of the (powers of) sizes of an estimate of ``theta0 + t v``."""
        drawn = changes.sampling_distribution(theta0 + t * v, noise)
        return tail_quantiles(drawn, probabilities) ** EFFECT_SIZE_POWERS

    at_identity = quantiles_on_ray(
        rays[0], 0.0
    )  # at t = 0 all rays are at the identity
    median_of_powers = at_identity[1]
    median_change_by_chance = float(
        median_of_powers[0] ** (1.0 / EFFECT_SIZE_POWERS[0])
    )
    limits = []
    for ray in rays:
        v = _lengthen_direction(changes, ray, median_change_by_chance)
        places = _invert_quantiles(at_identity, partial(quantiles_on_ray, v), observed)
        limits.append((v, places))
    return limits


def tail_quantiles(drawn: Floats, probabilities: Floats) -> Floats:
    """Return quantiles of the columns; those that too few draws show, by a straight line.

    The line runs, against quantiles of the normal distribution, through those at half a standard
    deviation and at `TAIL_LEVEL`, or as far out as `MIN_DRAWS_IN_TAIL` draws show. Sizes are skewed
    to the right, and the line lies below both of their quantiles. The upper limit, which comes from
    the lower quantile, is then larger than it need be: on the safe side. The lower limit, from the
    upper quantile, is too large: not on the safe side. Intervals of 95 % or less need no line.

    Examples
    --------
    >>> normal = np.random.default_rng(0).standard_normal((400, 1))
    >>> tail_quantiles(normal, np.array([0.0005, 0.5])).round(1)[:, 0]
    array([-3.2, -0.1])
    """
    from scipy.special import ndtr, ndtri

    quantiles = np.quantile(drawn, probabilities, axis=0)
    shown_level = MIN_DRAWS_IN_TAIL / len(drawn)
    # With less than 100 draws not even 10 % are shown; the line then starts there all the same.
    last_level = min(0.1, max(TAIL_LEVEL, shown_level))
    for place, p in enumerate(probabilities):
        tail = min(p, 1.0 - p)
        if tail >= min(TAIL_LEVEL - 1e-9, shown_level):  # equal but for rounding
            continue
        side = np.copysign(1.0, p - 0.5)
        near = 0.5 * side
        far = -side * ndtri(last_level)
        inner, outer = np.quantile(drawn, [ndtr(near), ndtr(far)], axis=0)
        beyond = (ndtri(p) - far) / (far - near)
        quantiles[place] = outer + (outer - inner) * beyond
    if drawn.min() >= 0.0:  # sizes are never negative
        quantiles = np.maximum(quantiles, 0.0)
    return quantiles


def _lengthen_direction(
    changes: MapChanges, direction: Floats, least_change: float
) -> Floats:
    """Return the direction, made longer where it changes rows by less than `least_change`.

    Otherwise t would have to be very large before chance is left behind. An estimate at the
    identity has no direction of its own and gets that of the temperature.
    """
    theta0 = identity_theta(len(direction) // 2)
    change = changes.sizes(theta0 + direction)[0]
    if not change > 1e-12:
        direction = np.repeat([0.0, 1e-6], len(theta0) // 2)
        change = changes.sizes(theta0 + direction)[0]
    if not change > 0.0:
        return direction
    return direction * max(1.0, least_change / max(change, 1e-300))


def _invert_quantiles(
    at_identity: Floats, quantiles_at: Callable[[float], Floats], observed: Floats
) -> Floats:
    """Return the t at which upper quantile, median and lower quantile meet the observed size.

    Quantiles are functions of t, arrays of shape (3 quantiles, 3 sizes), `at_identity` those at 0.
    All are of sizes to the `EFFECT_SIZE_POWERS`, which are nearly linear in ``t^2``: a few places
    and straight lines between them do.
    """
    # At least what calibrated rows show in half of all cases: see "high" in the module's table.
    observed_for_high = np.maximum(observed, at_identity[1])
    curves = {0.0: at_identity, 1.0: quantiles_at(1.0)}
    lower, _, upper = curves[1.0]
    # A 95 % interval is four standard errors wide. Of another level this is rough, and only says
    # where on the ray to look.
    standard_error = (upper - lower) / 4.0
    # Of the size itself: the relative error of its p-th power is p times as large.
    relative_se = (
        standard_error / EFFECT_SIZE_POWERS / np.maximum(observed_for_high, 1e-300)
    )
    largest_se = float(relative_se.max())
    places: tuple[float, ...] = RAY_PLACES_OF_CHANCE
    if largest_se < MAX_RELATIVE_SE_OF_CLEAR:
        places = tuple(1.0 + step * largest_se for step in RAY_PLACES_IN_SE)
    for t in places:
        curves[t] = quantiles_at(t)

    # Farther out until the lower quantile has passed the observed size; 24 places reach t = 10,000,
    # and where a size is bounded it may never pass.
    farthest = max(curves)
    while len(curves) < 24:
        lower_quantiles = curves[farthest][0]
        if not (lower_quantiles <= observed_for_high).any():
            break
        farthest = 1.6 * farthest
        curves[farthest] = quantiles_at(farthest)

    ordered = sorted(curves)
    t_squared = np.array(ordered) ** 2
    # Quantiles of few draws may fall a little on the way, and those of top by more: the largest
    # value so far makes the first t that reaches a level the answer.
    along_ray = np.array([curves[t] for t in ordered])
    rising = np.maximum.accumulate(along_ray, axis=0)
    limits = np.zeros((len(EFFECT_SIZES), 3))  # 0 where a curve begins above the level
    meetings = (
        (2, observed),
        (1, observed),
        (0, observed_for_high),
    )  # low, middle, high
    for size in range(len(EFFECT_SIZES)):
        for end, (quantile, level) in enumerate(meetings):
            curve = rising[:, quantile, size]
            if not curve[0] >= level[size]:
                crossing = np.interp(level[size], curve, t_squared, right=np.inf)
                limits[size, end] = np.sqrt(crossing)
    return limits
