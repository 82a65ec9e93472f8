"""Reliability as a smooth curve with a band, and the distances read from it; no bins.

Predictions x of one class, or of each row's most probable class, that it happens (hit 1) or not
(0), with weights w:

================  ==========================================================================
log odds          ``l = log(x / (1 - x))``, x within [1e-12, 1 - 1e-12]
curve             ``log odds of a hit = l + B(l) b``: a departure from "right as predicted"
B                 1, a natural cubic spline (straight lines beyond the outer knots), its columns
                  independent, of unit variance under the weights ``w x (1 - x)``; and lapses
lapses            ``log(1 + e (1 - x) / x)`` and ``log(1 + e x / (1 - x))``, e = 0.01, less what
                  the spline says of them under these weights; none where a number of knots is
                  asked for
knots             quantiles of l under the weights ``w sqrt(x (1 - x))``: where the uncertain
                  rows are; 5 of them from 5 to 95 %, with many rows to 10 from 2.5 to 97.5 %
estimate          least ``Q(b) = sum w log(1 + exp(-+ log odds)) + |b|^2 / 2``: a weak pull
                  towards the predictions keeps b finite where labels are separated;
                  ``|b|^2``, but for lapses, is the mean squared departure under these weights
band at l         lowest and highest ``l + B(l) b`` among all b with ``2 (Q(b) - Q) <= z^2``:
                  the curves that explain the labels nearly as well (profile likelihood)
dependent rows    ``z^2 c(l)`` instead, c the variance of the curve by the sandwich over groups
                  (or rows whose weights are no counts) over that of independent rows
points            evenly over probabilities and again over log odds, smallest to largest row;
                  the band is computed at 51 of them, with straight lines of log odds between
ICI               ``mean |curve(x) - x|`` over the rows (integrated calibration index)
its null          95 % of calibrated rows like these have a smaller one: the mean of
                  ``|x (1 - x) B(l) b|``, b one Newton step from 0 with hits drawn from x,
                  `N_DRAWS` times, seed 0; not for dependent rows
E50, E90, Emax    median, 90th percentile and maximum of ``|curve(x) - x|``
================  ==========================================================================

Labels of which a share is wrong at random bend the curve in its tails, where sure predictions fail
at a constant rate and knots are few. Without lapses the band held the truth at the 10 % quantile in
68 % of data sets (Beta(.5, .5), 5 % of labels wrong, n = 2000), and more knots did not help; now in
90 %, and in 95 % over nine quantiles. Where nothing is wrong they widen the outer tails alone.

Neither knots nor their number depend on the labels. The usual band, ``-/+ z`` standard errors of
the log odds, is useless where nearly all rows hit: with 200 sharp rows it reached from 0 to 1 where
this one is .02 wide, and both cover the truth.

The set of b is convex with the estimate inside, so each end is sought on its surface: a direction
(Venzon and Moolgavkar 1988), then how far it goes, by Newton on a convex function of one variable.

The band holds point by point, for curves about as smooth as the spline: narrow waves between its
knots are averaged out (the isotonic curve, `metrics/_isotonic`, has no such limit). The spline is
Harrell's (2015) restricted cubic spline, the distances are those of Austin and Steyerberg (2019);
they are above 0 for calibrated predictions too, which is why the ICI has its null beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._model.kernel import Derivatives
from .._model.newton import minimize
from .._utils.formatting import Table
from .._utils.linalg import symmetric_inverse, whitening_matrix
from .._utils.notebook import NotebookResult
from .._utils.results import Codes, Floats, Result
from .._validation.arguments import check_share
from .._validation.predictions import Predictions, predictions_for_scoring
from ..exceptions import InputError
from ._binned import Target
from ._reliability import values_and_hits
from ._scores import Classes

MIN_PROB = 1e-12
"""Smallest probability, and smallest distance from 1, that log odds are taken of."""
RIDGE = 1.0
"""Strength of the pull: a prior standard deviation of 1 log odds in each direction."""
MIN_KNOTS = 5  # enough for most curves (Harrell 2015, section 2.4.6)
N_LAPSES = 2
LAPSE_ODDS = 0.01
"""Where their columns bend. 0.02 and 0.04 held the truth as often or less; the spline makes up for
other rates, from 1 to 10 % of wrong labels."""
MAX_DISTINCT_PREDICTIONS = 2000
"""Distinct predictions beyond which those whose log odds agree to 0.01 are taken as one; round
numbers."""
BAND_END_TOL = 1e-4
"""Part of z^2 by which an end may miss it, and log odds by which a turn may still move it."""


def choose_n_knots(n_expected_events: float) -> int:
    """Return how many knots rows have that expect so many of the rarer outcome.

    Examples
    --------
    >>> [choose_n_knots(m) for m in (10, 300, 1000, 5000, 1e6)]
    [5, 5, 6, 9, 10]
    """
    max_knots = 10  # a round number; more did not help, see the module's text
    return int(np.clip(round(1.6 * n_expected_events**0.2), MIN_KNOTS, max_knots))


def log_odds(probs: Floats) -> Floats:
    """Return log odds of probabilities no closer to 0 and 1 than `MIN_PROB`."""
    p = np.clip(probs, MIN_PROB, 1.0 - MIN_PROB)
    return np.asarray(np.log(p) - np.log1p(-p))


def inverse_log_odds(x: Floats) -> Floats:
    """Return the probabilities of log odds."""
    from scipy.special import expit

    return np.asarray(expit(x))


def natural_spline_columns(x: Floats, knots: Floats) -> Floats:
    """Return x and, for K knots, K - 2 cubics that are straight lines beyond the outer knots."""
    columns = [x]
    if len(knots) > 2:
        first = knots[0]
        second_last, last = knots[-2:]
        cube_second_last = _cube_of_positive(x - second_last)
        cube_last = _cube_of_positive(x - last)
        for knot in knots[:-2]:
            # Harrell (2015), section 2.4.5: beyond the last knot squares and cubes cancel.
            bent = _cube_of_positive(x - knot)
            bent -= cube_second_last * ((last - knot) / (last - second_last))
            bent += cube_last * ((second_last - knot) / (last - second_last))
            columns.append(bent / (last - first) ** 2)
    return np.stack(columns, axis=1)


def lapse_columns(x: Floats) -> Floats:
    """Return the columns of a lapse of either outcome."""
    bend = np.log(LAPSE_ODDS)
    sure_misses_hit = np.logaddexp(0.0, bend - x)
    sure_hits_fail = np.logaddexp(0.0, bend + x)
    return np.column_stack([sure_misses_hit, sure_hits_fail])


def _cube_of_positive(x: Floats) -> Floats:
    """Return the cube of what is positive; products are many times as fast as a power."""
    positive = np.maximum(x, 0.0)
    return positive * positive * positive


@dataclass(frozen=True, eq=False)
class SplineBasis:
    """B as a function of log odds: 1 and ``(columns - centre) @ root``."""

    knots: Floats
    has_lapses: bool
    centre: Floats
    root: Floats

    @classmethod
    def from_values(
        cls, values: Floats, weight: Floats, n_knots: int | None
    ) -> SplineBasis:
        """Place the knots and make the columns independent; labels are not asked."""
        x = log_odds(values)
        p = np.clip(values, MIN_PROB, 1.0 - MIN_PROB)
        has_lapses = n_knots is None
        if n_knots is None:
            expected_hits = float(weight @ p)
            expected_misses = float(weight @ (1.0 - p))
            n_knots = choose_n_knots(min(expected_hits, expected_misses))
        knots = _distinct_weighted_quantiles(
            x, weight * np.sqrt(p * (1.0 - p)), n_knots
        )
        columns = natural_spline_columns(x, knots)
        if has_lapses:
            columns = np.column_stack([columns, lapse_columns(x)])
        information = weight * p * (1.0 - p)
        information /= information.sum()
        centre = information @ columns
        varies = (
            np.ptp(columns, axis=0) > 1e-9
        )  # what is left of a constant column is rounding
        away = (columns - centre) * varies
        covariance = away.T @ (away * information[:, None])
        return cls(
            knots, has_lapses, centre, _decorrelating_root(covariance, has_lapses)
        )

    def __call__(self, x: Floats) -> Floats:
        """Return B at log odds x, shape (len(x), size)."""
        columns = natural_spline_columns(x, self.knots)
        if self.has_lapses:
            columns = np.column_stack([columns, lapse_columns(x)])
        independent = (columns - self.centre) @ self.root
        return np.column_stack([np.ones(len(x)), independent])


def _decorrelating_root(covariance: Floats, has_lapses: bool) -> Floats:
    """Return what makes columns of this covariance independent, the spline's of unit variance.

    Lapses keep their unit, less what the spline says of them: divided by a variance next to 0,
    as they have where no prediction is sure, they would be waves.
    """
    if not has_lapses:
        return whitening_matrix(covariance)
    n_spline = len(covariance) - N_LAPSES
    spline = whitening_matrix(covariance[:n_spline, :n_spline])
    explained = spline @ (spline.T @ covariance[:n_spline, n_spline:])
    size = spline.shape[1]
    root = np.zeros((len(covariance), size + N_LAPSES))
    root[:n_spline, :size] = spline
    root[:n_spline, size:] = -explained
    root[n_spline:, size:] = np.eye(N_LAPSES)
    return root


def _distinct_weighted_quantiles(values: Floats, weight: Floats, count: int) -> Floats:
    """Return the distinct ones of evenly spaced weighted quantiles."""
    order = np.argsort(values, kind="stable")
    cumulated = np.cumsum(weight[order])
    levels = (cumulated - 0.5 * weight[order]) / cumulated[-1]
    # The first of 5 knots at 5 %, as Harrell (2015), section 2.4.6; of more of them further out.
    first = 0.25 / max(count, MIN_KNOTS)
    asked = np.linspace(first, 1.0 - first, count)
    quantiles = np.interp(asked, levels, values[order])
    return np.unique(quantiles.round(9))


class SplineLikelihood:
    """Q and its derivatives: labels enter through ``s = sum w h (l, B)`` of all rows alone.

    What remains, ``sum w log(1 + exp(log odds))``, is summed over pooled log odds `x`.
    """

    def __init__(
        self, x: Floats, weight: Floats, hits: Floats, basis: SplineBasis
    ) -> None:
        rows = basis(x)
        self.constant = float(x @ (weight * hits))
        self.statistic = rows.T @ (weight * hits)
        if len(x) > MAX_DISTINCT_PREDICTIONS:
            _, index = np.unique(np.rint(x / 0.01), return_inverse=True)
            total = np.bincount(index, weight).astype(np.float64)
            x = np.bincount(index, weight * x) / total
            weight = total
            rows = basis(x)
        self.x = x
        self.weight = weight
        self.rows = rows

    def __call__(self, beta: Floats) -> Derivatives:
        """Return Q, its gradient and Hessian at `beta`."""
        chance = inverse_log_odds(self.x + self.rows @ beta)
        value = float(self.objective_values(beta[None])[0])
        gradient = self.rows.T @ (self.weight * chance) - self.statistic + RIDGE * beta
        curvature = self.weight * chance * (1.0 - chance)
        hessian = self.rows.T @ (self.rows * curvature[:, None])
        return Derivatives(value, gradient, hessian + RIDGE * np.eye(len(beta)))

    def objective_values(self, betas: Floats) -> Floats:
        """Return Q at each row of `betas`."""
        eta = self.x[:, None] + self.rows @ betas.T
        linear = self.constant + betas @ self.statistic
        pull = 0.5 * RIDGE * np.einsum("tp,tp->t", betas, betas)
        return self.weight @ np.logaddexp(0.0, eta) - linear + pull

    def derivatives(self, betas: Floats) -> tuple[Floats, Floats]:
        """Return gradients (T, size) and Hessians (T, size, size) at each row of `betas`."""
        size = betas.shape[1]
        chance = inverse_log_odds(self.x[:, None] + self.rows @ betas.T)
        weighted = self.weight[:, None] * chance
        gradients = weighted.T @ self.rows - self.statistic + RIDGE * betas
        # All Hessians in one product: the columns of `products` are those of x x', row by row.
        products = self.rows[:, :, None] * self.rows[:, None, :]
        products = products.reshape(len(self.x), -1)
        curvature = weighted * (1.0 - chance)
        hessians = (curvature.T @ products).reshape(-1, size, size)
        return gradients, hessians + RIDGE * np.eye(size)


@dataclass(frozen=True, eq=False)
class Spline:
    """A fitted curve.

    Attributes
    ----------
    basis : SplineBasis
        Columns at any log odds.
    beta, covariance : ndarray
        Their coefficients, and the inverse Hessian of Q.
    likelihood : SplineLikelihood
        What they were fitted to.
    """

    basis: SplineBasis
    beta: Floats
    covariance: Floats
    likelihood: SplineLikelihood

    @classmethod
    def fit(
        cls, values: Floats, hits: Floats, weight: Floats, n_knots: int | None = None
    ) -> Spline:
        """Fit the curve of hits on predictions; rows of weight 0 are none."""
        counts = weight > 0.0
        weight = weight[counts]
        distinct, index = np.unique(values[counts], return_inverse=True)
        total = np.bincount(index, weight).astype(np.float64)
        frequency = np.bincount(index, weight * hits[counts]) / total
        basis = SplineBasis.from_values(distinct, total, n_knots)
        likelihood = SplineLikelihood(log_odds(distinct), total, frequency, basis)
        beta = minimize(likelihood, np.zeros(likelihood.rows.shape[1])).x
        return cls(basis, beta, symmetric_inverse(likelihood(beta).hessian), likelihood)

    def __call__(self, probs: Floats) -> Floats:
        """Return the curve at predictions."""
        x = log_odds(probs)
        return inverse_log_odds(x + self.basis(x) @ self.beta)

    def calibrated_ici(self, n_draws: int, seed: int = 0) -> Floats:
        """Return the ICI of curves fitted to hits that follow the predictions, draw by draw.

        One Newton step, and the curve linear in it, say what fits would: in probabilities, not
        in log odds, where few hits make long steps. Weights must count rows.
        """
        x = self.likelihood.x
        rows = self.likelihood.rows
        counts = self.likelihood.weight
        p = inverse_log_odds(x)
        variance = p * (1.0 - p)
        rng = np.random.default_rng(seed)
        n_trials = np.rint(counts).astype(np.int64)
        hits = rng.binomial(n_trials, p, size=(n_draws, len(p)))
        scores = (hits - counts * p) @ rows
        hessian = rows.T @ (rows * (counts * variance)[:, None])
        hessian += RIDGE * np.eye(len(hessian))
        steps = np.linalg.solve(hessian, scores.T)
        away = np.abs(variance[:, None] * (rows @ steps))
        return np.asarray(counts @ away / counts.sum())

    def band(
        self, x: Floats, z: float, sandwich: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Return the ends of the band at log odds `x`, in log odds.

        `sandwich` is the covariance of beta where rows depend on each other.
        """
        at = self.basis(x)
        middle = x + at @ self.beta
        variance = np.einsum("tp,pq,tq->t", at, self.covariance, at)
        radius = np.full(len(x), z)
        if sandwich is not None:
            robust_variance = np.einsum("tp,pq,tq->t", at, sandwich, at)
            radius *= np.sqrt(robust_variance / variance)
        # Where Q is a parabola, the end lies in this direction, `radius` of these steps away.
        steps = at @ self.covariance / np.sqrt(variance)[:, None]
        aims = np.vstack([-at, at])
        starts = np.vstack([-steps, steps])
        distance = self._maximise_linear_forms_in_region(
            aims, starts, np.tile(radius, 2)
        )
        below, above = np.split(distance, 2)
        return middle - below, middle + above

    def _maximise_linear_forms_in_region(
        self, aims: Floats, starts: Floats, radius: Floats
    ) -> Floats:
        """Return the most of ``aim . (b - beta)`` while ``2 (Q(b) - Q) <= radius^2``, aim by aim.

        1. Start on the surface of that set, in the direction `starts`.
        2. Q as a parabola around there: go to where the parabola's surface is furthest in the
           direction of the aim (Venzon and Moolgavkar 1988).
        3. Scale that to the surface of Q. The largest value is kept, so that more turns never lower
           it; stop when none rises by more than `BAND_END_TOL`. Six turns are enough.
        """
        away = self._scale_to_boundary(starts * radius[:, None], radius)
        furthest = _rowwise_dot(aims, away)
        for _ in range(6):
            gradients, hessians = self.likelihood.derivatives(self.beta + away)
            solved = np.linalg.solve(hessians, np.stack([aims, gradients], axis=2))
            aim_step = solved[:, :, 0]
            newton_step = solved[:, :, 1]
            rise = (
                self.likelihood.objective_values(self.beta + away)
                - self._minimum_of_objective
            )
            excess = rise - 0.5 * radius**2
            left = np.maximum(_rowwise_dot(gradients, newton_step) - 2.0 * excess, 0.0)
            scale = np.sqrt(left / _rowwise_dot(aims, aim_step))
            turned = self._scale_to_boundary(
                away + scale[:, None] * aim_step - newton_step, radius
            )
            reached = _rowwise_dot(aims, turned)
            gain = reached - furthest
            away = np.where((gain > 0.0)[:, None], turned, away)
            furthest = np.maximum(furthest, reached)
            if gain.max() <= BAND_END_TOL:
                break
        return furthest

    @property
    def _minimum_of_objective(self) -> float:
        """Q at the estimate."""
        return float(self.likelihood.objective_values(self.beta[None])[0])

    def _scale_to_boundary(self, directions: Floats, radius: Floats) -> Floats:
        """Scale each direction so that it ends where ``2 (Q - least) = radius^2``.

        Along ``beta + t d`` Q is a sum over rows of ``log(1 + exp(eta + t slope))``, and a
        polynomial in t of degree 2: no product with the rows is needed for another t.
        """
        likelihood = self.likelihood
        eta = likelihood.x + likelihood.rows @ self.beta
        slopes = likelihood.rows @ directions.T
        linear = directions @ (likelihood.statistic - RIDGE * self.beta)
        quadratic = RIDGE * _rowwise_dot(directions, directions)
        half_pull = 0.5 * RIDGE * self.beta
        constant = likelihood.constant + float(
            self.beta @ (likelihood.statistic - half_pull)
        )
        goal = self._minimum_of_objective + 0.5 * radius**2 + constant

        def excess(scale: Floats) -> tuple[Floats, Floats]:
            eta_at = eta[:, None] + scale * slopes
            value = likelihood.weight @ np.logaddexp(0.0, eta_at) - goal
            value += scale * (0.5 * scale * quadratic - linear)
            slope = (
                likelihood.weight @ (inverse_log_odds(eta_at) * slopes)
                - linear
                + scale * quadratic
            )
            return value, slope

        scale = _find_zero_crossings(
            excess, len(directions), 0.5 * BAND_END_TOL * radius**2
        )
        return directions * scale[:, None]


def _rowwise_dot(a: NDArray[np.floating[Any]], b: NDArray[np.floating[Any]]) -> Floats:
    """Return the product of each row of a with that of b."""
    return np.asarray(np.einsum("tp,tp->t", a, b), dtype=np.float64)


def _find_zero_crossings(
    excess: Callable[[Floats], tuple[Floats, Floats]], size: int, tolerance: Floats
) -> Floats:
    """Return where convex functions that are negative at 0 cross 0, within `tolerance` in value.

    Doubled until outside; from there Newton's steps come down from the right and never pass it.
    """
    max_evaluations = 60  # a round number, far more than are needed
    scale = np.ones(size)
    value, slope = excess(scale)
    for _ in range(max_evaluations):
        is_inside = value < -tolerance
        if not is_inside.any():
            break
        scale = np.where(is_inside, 2.0 * scale, scale)
        value, slope = excess(scale)
    for _ in range(max_evaluations):
        is_outside = value > tolerance
        if not is_outside.any():
            break
        scale = np.where(is_outside, scale - value / slope, scale)
        value, slope = excess(scale)
    return scale


def score_covariance(scores: Floats, groups: Codes | None) -> Floats:
    """Return the covariance of the sum of scores over groups, or over rows.

    ``N / (N - 1) (sum u u' - t t' / N)`` for N units with scores u, t their sum.
    """
    if groups is not None:
        scores = np.stack([np.bincount(groups, column) for column in scores.T], axis=1)
    units = scores[scores.any(axis=1)]
    n_units = max(2.0, float(len(units)))
    total = units.sum(axis=0)
    centred = units.T @ units - np.outer(total, total) / n_units
    return n_units / (n_units - 1.0) * centred


N_POINTS = 101  # every 1 %
N_DRAWS = 199  # so that the 95 % quantile is one of the draws


class Distances(NamedTuple):
    """Mean, median, 90th percentile and maximum of |curve - prediction| over the rows."""

    ici: float
    e50: float
    e90: float
    emax: float


@dataclass(frozen=True, eq=False, repr=False)
class SmoothCurve(Result, NotebookResult):
    """Observed against predicted frequency as a smooth curve.

    Attributes
    ----------
    label : label or None
        The class; None for the most probable class of each row.
    predicted, observed : ndarray of shape (m,)
        Predictions from the smallest to the largest, and the curve there.
    low, high : ndarray of shape (m,)
        Ends of the band: at each point, the interval of the frequency behind the labels.
    level : float
        Of the band.
    knots : ndarray
        Predictions between which the curve bends.
    ici, e50, e90, emax : float
        Mean, median, 90th percentile and maximum of ``|curve - prediction|`` over the rows.
    ici_null : float
        What 95 % of calibrated rows like these show at most for `ici`; NaN where `robust`.
    robust : bool
        Whether the band allows for groups, or for weights that count no rows.
    spline : Spline
        The curve as a function of the prediction.

    See Also
    --------
    smooth_curve : Makes it.
    ReliabilityCurve : In bins.
    IsotonicCurve : Rising, with nothing to choose.
    mcllo.metrics.calibration_distances : The distances of every class.

    Notes
    -----
    The distances are those of [1]_.

    References
    ----------
    .. [1] P. C. Austin, E. W. Steyerberg (2019). The Integrated Calibration Index (ICI) and related
           metrics for quantifying the calibration of logistic regression models. Statistics in
           Medicine, doi:10.1002/sim.8281.

    Examples
    --------
    >>> import mcllo
    >>> probs = [[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]] * 10
    >>> y = [0, 1, 1, 0, 0, 0, 1, 1] * 5
    >>> curve = mcllo.smooth_curve(probs, y, label=1, n_knots=2)
    >>> curve.ici <= curve.e90 <= curve.emax
    True
    """

    label: Hashable | None
    predicted: Floats
    observed: Floats
    low: Floats
    high: Floats
    level: float
    knots: Floats
    ici: float
    e50: float
    e90: float
    emax: float
    ici_null: float
    robust: bool
    spline: Spline = field(repr=False)

    left_out = ("spline",)

    def at(self, predicted: Any) -> Table:
        """Return the curve and its band at these predictions.

        Parameters
        ----------
        predicted : array-like
            Probabilities.

        Returns
        -------
        Table
            Columns ``predicted``, ``observed``, ``low`` and ``high``.
        """
        values = np.atleast_1d(np.asarray(predicted, dtype=np.float64))
        x = log_odds(values)
        known = log_odds(self.predicted)
        return Table(
            {
                "predicted": values.tolist(),
                "observed": self.spline(values).tolist(),
                "low": np.interp(x, known, self.low).tolist(),
                "high": np.interp(x, known, self.high).tolist(),
            }
        )

    def to_table(self) -> Table:
        """Return one row for each point."""
        names = ("predicted", "observed", "low", "high")
        return Table({name: getattr(self, name).tolist() for name in names})

    def __repr__(self) -> str:
        of = "most probable class" if self.label is None else repr(self.label)
        null = (
            ""
            if np.isnan(self.ici_null)
            else f" (calibrated: up to {self.ici_null:.4g})"
        )
        return (
            f"<SmoothCurve of {of}: {len(self.knots)} knots, ICI {self.ici:.4g}{null}>"
        )


def smooth_curve(
    probs: Any,
    y: Any = None,
    *,
    label: Hashable | None = None,
    n_knots: int | None = None,
    level: float = 0.95,
    classes: Any = None,
    sample_weight: Any = None,
) -> SmoothCurve:
    """Return a smooth reliability curve of the most probable class, or of one class.

    A natural cubic spline of the log odds; the band holds all such curves that explain the labels
    nearly as well (profile likelihood).

    Parameters
    ----------
    probs : array-like, frame or Predictions
        Predicted probabilities, shape (n_samples, n_classes). Groups, survey and importance weights
        of a `Predictions` widen the band.
    y : array-like of shape (n_samples,)
        The labels that came true; not given beside a `Predictions`.
    label : label, optional
        The class. Default: the most probable class of each row (of ties, the first).
    n_knots : int, optional
        Places between which the curve bends; 2 makes a straight line of log odds (a logistic
        recalibration). Default: 5, up to 10 with many rows, and two more columns that follow labels
        of which a share is wrong at random.
    level : float
        Probability of the band, point by point.
    classes : sequence, optional
        The label of each column; see `Predictions.from_arrays`.
    sample_weight : array-like of shape (n_samples,), optional
        Row i counts as ``sample_weight[i]`` rows.

    Returns
    -------
    SmoothCurve
        The curve with its band, and the distances `ici`, `e50`, `e90`, `emax`; ``print`` it.

    See Also
    --------
    SmoothCurve : What comes out.
    mcllo.metrics.calibration_distances : The distances of every class.
    isotonic_curve : Rising, with nothing to choose.
    reliability_curve : In bins.

    Notes
    -----
    A restricted cubic spline [1]_ of the log odds, for the curve from which [2]_ compute the
    integrated calibration index.

    References
    ----------
    .. [1] F. E. Harrell (2015). Regression Modeling Strategies, second edition. Springer.
    .. [2] P. C. Austin, E. W. Steyerberg (2019). The Integrated Calibration Index (ICI) and related
           metrics for quantifying the calibration of logistic regression models. Statistics in
           Medicine, doi:10.1002/sim.8281.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(0.05, 0.95, size=2000)
    >>> y = (rng.random(2000) < 0.2 + 0.6 * x).astype(int)  # overconfident at both ends
    >>> curve = smooth_curve(np.column_stack([1 - x, x]), y, label=1)
    >>> print(curve.at([0.1, 0.5, 0.9]))
    predicted  observed   low  high
    0.10           0.29  0.24  0.34
    0.50           0.51  0.47  0.56
    0.90           0.80  0.75  0.84
    >>> round(curve.ici, 2)
    0.1
    """
    check_share("level", level)
    from scipy.special import ndtri

    predictions = predictions_for_scoring(
        y,
        probs,
        sample_weight=sample_weight,
        classes=classes,
        choice_sets=label is None,
    )
    weight = predictions.sample_weight
    values, hits = values_and_hits(predictions, label)
    spline = fit_spline(predictions, values, hits, n_knots)
    sandwich = _sandwich_covariance(spline, predictions, values, hits)
    x = log_odds(values if weight is None else values[weight > 0.0])
    points = _log_odds_of_curve_points(float(x.min()), float(x.max()))
    # The band is costly and smooth: at 51 points, with straight lines between.
    evenly_spaced = np.linspace(0, len(points) - 1, 51).round().astype(np.intp)
    band_points = points[np.unique(evenly_spaced)]
    normal_quantile = float(ndtri(0.5 + level / 2.0))
    low, high = spline.band(band_points, normal_quantile, sandwich)
    return SmoothCurve(
        label=label,
        predicted=inverse_log_odds(points),
        observed=spline(inverse_log_odds(points)),
        low=inverse_log_odds(np.interp(points, band_points, low)),
        high=inverse_log_odds(np.interp(points, band_points, high)),
        level=level,
        knots=inverse_log_odds(spline.basis.knots),
        **distances_from_curve(spline(values), values, weight)._asdict(),
        ici_null=np.nan if sandwich is not None else _ici_null_quantile(spline),
        robust=sandwich is not None,
        spline=spline,
    )


def fit_spline(
    predictions: Predictions, values: Floats, hits: Floats, n_knots: int | None = None
) -> Spline:
    """Fit the curve of hits on predictions."""
    is_whole = isinstance(n_knots, (int, np.integer)) and not isinstance(n_knots, bool)
    if n_knots is not None and (not is_whole or n_knots < 2):
        raise InputError(
            f"n_knots must be a whole number >= 2; got n_knots={n_knots!r}."
        )
    return Spline.fit(values, hits, predictions.row_weight, n_knots)


def _ici_null_quantile(spline: Spline) -> float:
    """Return what 95 % of calibrated rows show at most."""
    return float(np.quantile(spline.calibrated_ici(N_DRAWS), 0.95, method="higher"))


def _sandwich_covariance(
    spline: Spline, predictions: Predictions, values: Floats, hits: Floats
) -> Floats | None:
    """Return their covariance where rows depend on each other, or weights are no counts."""
    if _are_independent_counts(predictions):
        return None
    residual = (hits - spline(values)) * predictions.row_weight
    scores = spline.basis(log_odds(values)) * residual[:, None]
    meat = score_covariance(scores, predictions.groups)
    return np.asarray(spline.covariance @ meat @ spline.covariance)


def _log_odds_of_curve_points(low: float, high: float) -> Floats:
    """Return log odds, evenly over probabilities and again over log odds."""
    lowest, highest = inverse_log_odds(np.array([low, high]))
    over_probs = log_odds(np.linspace(lowest, highest, N_POINTS)).clip(low, high)
    over_log_odds = np.linspace(low, high, N_POINTS)
    return np.unique(np.concatenate([over_probs, over_log_odds]))


def distances_from_curve(
    observed: Floats, values: Floats, weight: Floats | None
) -> Distances:
    """Return ICI, E50, E90 and Emax of a curve at the rows' predictions."""
    if weight is None:
        weight = np.ones(len(values))
    away = np.abs(observed - values)
    order = np.argsort(away)
    cumulated = np.cumsum(weight[order])
    # Rounding of the sum must not move a quantile to the row after it.
    levels = cumulated[-1] * np.array([0.5, 0.9]) * (1.0 - 1e-12)
    e50, e90 = away[order][np.searchsorted(cumulated, levels)]
    return Distances(
        ici=float(np.average(away, weights=weight)),
        e50=float(e50),
        e90=float(e90),
        emax=float(away[weight > 0.0].max()),
    )


def integrated_calibration_index(
    y_true: Any,
    y_prob: Any,
    *,
    target: Target = "top-label",
    n_knots: int | None = None,
    sample_weight: Any = None,
    classes: Classes = None,
) -> float:
    """Return the mean distance of a smooth reliability curve from the predictions (ICI).

    The curve is the spline of `mcllo.smooth_curve`. The index is above 0 for calibrated predictions
    too, the more so the fewer rows there are: `calibration_distances` says how far.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels that came true.
    y_prob : array-like or frame of shape (n_samples, n_classes)
        Predicted probabilities.
    target : {"top-label", "marginal"}
        The most probable class of each row; or the mean over classes, each against the rest.
    n_knots : int, optional
        Places between which the curve bends; see `mcllo.smooth_curve`.
    sample_weight : array-like of shape (n_samples,), optional
        Row i counts as ``sample_weight[i]`` rows.
    classes : sequence, optional
        The label of each column. Default: the frame's column names, else the sorted distinct
        labels.

    Returns
    -------
    float
        Between 0 and 1.

    See Also
    --------
    calibration_distances : Beside E50, E90, Emax and what calibrated rows show.
    mcllo.smooth_curve : The curve.
    smooth_calibration_error : A kernel in the place of the spline.

    Notes
    -----
    The index is that of [1]_.

    References
    ----------
    .. [1] P. C. Austin, E. W. Steyerberg (2019). The Integrated Calibration Index (ICI) and related
           metrics for quantifying the calibration of logistic regression models. Statistics in
           Medicine, doi:10.1002/sim.8281.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(0.05, 0.95, size=2000)
    >>> y = (rng.random(2000) < 0.2 + 0.6 * x).astype(int)
    >>> round(integrated_calibration_index(y, np.column_stack([1 - x, x]), target="marginal"), 2)
    0.1
    """
    if target not in ("top-label", "marginal"):
        raise InputError(
            f"target must be 'top-label' or 'marginal'; got target={target!r}."
        )
    p = predictions_for_scoring(
        y_true, y_prob, sample_weight=sample_weight, classes=classes
    )
    labels: tuple[Hashable | None, ...] = (
        (None,) if target == "top-label" else p.classes
    )
    indices = [_distances_of_class(p, label, n_knots).ici for label in labels]
    return float(np.mean(indices))


def calibration_distances(
    y_true: Any,
    y_prob: Any,
    *,
    n_knots: int | None = None,
    sample_weight: Any = None,
    classes: Classes = None,
) -> Table:
    """Return ICI, E50, E90 and Emax of the most probable class, of each class, and their mean.

    Mean, median, 90th percentile and maximum of the distance of a smooth reliability curve from the
    predictions.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels that came true.
    y_prob : array-like or frame of shape (n_samples, n_classes)
        Predicted probabilities.
    n_knots : int, optional
        Places between which the curve bends; see `mcllo.smooth_curve`.
    sample_weight : array-like of shape (n_samples,), optional
        Row i counts as ``sample_weight[i]`` rows.
    classes : sequence, optional
        The label of each column. Default: the frame's column names, else the sorted distinct
        labels.

    Returns
    -------
    Table
        Columns ``of`` ("top label", "class" or "mean of classes"), ``class``, ``ici``, ``ici_null``
        (95 % of calibrated rows like these show less; NaN for the mean, and where rows depend on
        each other), ``e50``, ``e90`` and ``emax``.

    See Also
    --------
    integrated_calibration_index : The ICI alone, as a number.
    mcllo.smooth_curve : The curve that the distances are read from.
    expected_calibration_error : The distance in bins.

    Notes
    -----
    The distances are those of [1]_; the curve is that of `mcllo.smooth_curve`, a restricted cubic
    spline [2]_ of the log odds.

    References
    ----------
    .. [1] P. C. Austin, E. W. Steyerberg (2019). The Integrated Calibration Index (ICI) and related
           metrics for quantifying the calibration of logistic regression models. Statistics in
           Medicine, doi:10.1002/sim.8281.
    .. [2] F. E. Harrell (2015). Regression Modeling Strategies, second edition. Springer.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(0.05, 0.95, size=2000)
    >>> y = (rng.random(2000) < 0.2 + 0.6 * x).astype(int)
    >>> print(calibration_distances(y, np.column_stack([1 - x, x])))
    of               class   ici  ici_null   e50   e90  emax
    top label               0.10     0.028  0.10  0.15  0.15
    class                0  0.10     0.028  0.10  0.17  0.21
    class                1  0.10     0.027  0.10  0.17  0.21
    mean of classes         0.10         -  0.10  0.17  0.21
    """
    p = predictions_for_scoring(
        y_true, y_prob, sample_weight=sample_weight, classes=classes
    )
    labels: tuple[Hashable | None, ...] = (None, *p.classes)
    found = []
    nulls = []
    for label in labels:
        values, hits = values_and_hits(p, label)
        spline = fit_spline(p, values, hits, n_knots)
        found.append(distances_from_curve(spline(values), values, p.sample_weight))
        nulls.append(
            _ici_null_quantile(spline) if _are_independent_counts(p) else np.nan
        )
    mean_of_classes = np.mean(found[1:], axis=0).tolist()
    found.append(Distances(*mean_of_classes))
    nulls.append(np.nan)
    return Table(
        {
            "of": ["top label", *["class"] * p.n_classes, "mean of classes"],
            "class": ["", *p.classes, ""],
            "ici": [each.ici for each in found],
            "ici_null": nulls,
            "e50": [each.e50 for each in found],
            "e90": [each.e90 for each in found],
            "emax": [each.emax for each in found],
        }
    )


def _are_independent_counts(p: Predictions) -> bool:
    """Whether rows are independent and weights count them."""
    return p.groups is None and p.with_importance_weights().counts_rows


def _distances_of_class(
    p: Predictions, label: Hashable | None, n_knots: int | None
) -> Distances:
    """Return the distances of one class's curve, or of the most probable class's."""
    values, hits = values_and_hits(p, label)
    spline = fit_spline(p, values, hits, n_knots)
    return distances_from_curve(spline(values), values, p.sample_weight)
