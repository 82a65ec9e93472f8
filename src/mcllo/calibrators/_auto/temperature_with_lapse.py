"""The member `temperature`: a temperature with a lapse rate, from whose logarithms others start.

====================  ==========================================================================
map                   ``g_i = (1 - e) softmax(u z_i) + e / c``
unknown               ``v = log u``, u = 1 / T, and ``s = logit e``, e the lapse rate (`slip`)
minimised             ``- sum_i w_i log g_{i, y_i} - 1/2 log e - 1/2 log(1 - e) + k(v)/2 v^2``
                      k = 4 for u > 1, 0.05 for u < 1
share of the softmax  ``r_i = (1 - e) q_i / g_{i, y_i}``, q_i the softmax's value at the label
slopes of log g       ``r a`` in u, ``1 - r - e`` in s;  ``a_i = z_{i, y_i} - E z`` under softmax
curvatures            ``r (1 - r) a^2 - r Var z`` in u, ``r (1 - r) - e (1 - e)`` in s
cross curvature       ``-r (1 - r) a``
====================  ==========================================================================

Even a good classifier is sometimes sure and wrong, and labels are sometimes wrong. A temperature
alone pays for the few such rows with the sharpness of all; the lapse rate takes them on itself
[1]_. It also keeps the logarithms of tiny probabilities, zeros among them, from dominating what
follows.

Overconfidence (u < 1) shows in large losses and is well determined; a sharper map (u > 1) is a gain
that a few hundred rows without an error promise without limit. So the penalty on u is one-sided.

References
----------
.. [1] Wichmann, Hill (2001), The psychometric function: I. Fitting, sampling, and goodness of fit.
       Perception & Psychophysics 63, 1293-1313: lapses.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..._model.kernel import CHUNK_ELEMENTS, Derivatives, log_in_place, softmax_in_place
from ..._model.linear_map import LinearMapLoss
from ..._model.newton import MemoizedObjective, minimize
from ..._model.temperature import fit_inverse_temperature
from ..._utils.results import Codes, Floats, Result

SHARPENING_PENALTY = 4.0  # k(v) where u > 1: weight of the penalty on (log u)^2 / 2
SOFTENING_PENALTY = 0.05  # k(v) where u < 1
# rows for a lapse, and against one: Jeffreys' prior, as a density of s
LAPSE_PSEUDO_COUNT = 0.5
TOL = 1e-10
"""Newton decrement, in nats, at which a fit ends. A handful of rows curves the objective by a tenth
or less: there 1e-8 left errors of 2e-5 in log g, this leaves 3e-7."""


def stopping_decrement(error_left: float) -> float:
    """Return the decrement from which a step with the exact Hessian leaves so much, in nats.

    Of a decrement's square it leaves about a hundredth on sharp rows, less on others; that holds up
    to decrements of 0.1.
    """
    return min(0.1, math.sqrt(error_left / 0.01))


def decrement_to_forget_start(
    first_decrement: float, start_influence_tol: float
) -> float:
    """Return the decrement at which a search knows its start but for so much, in nats.

    A search that begins at the fit to all rows must not know, in the end, of the rows left out.
    These are a function whose slope at the start is that of the problem, with the other sign. With
    the decrements D at the start and d at the end they are known but for ``sqrt(D d)`` at most; a
    last step whose Hessian is not exact leaves about a tenth of d.
    """
    return start_influence_tol**2 / 0.1 / max(first_decrement, 1e-300)


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """The rows that a member is fitted to.

    Attributes
    ----------
    scores : ndarray of shape (c, n)
        Logits or log probabilities.
    codes : ndarray of shape (n,)
        The class that came true.
    weight : ndarray of shape (n,) or None
        How many rows each stands for; None for 1.
    """

    scores: Floats
    codes: Codes
    weight: Floats | None = None

    @property
    def total(self) -> float:
        """Weight of all rows."""
        return float(self.weight_or_ones.sum())

    @cached_property
    def weight_or_ones(self) -> Floats:
        """The weights, also where all are 1."""
        return np.ones(len(self.codes)) if self.weight is None else self.weight

    @cached_property
    def full_map_loss(self) -> LinearMapLoss:
        """That of full maps."""
        return LinearMapLoss(self.scores, self.codes, self.weight)

    def chunks(self, per_row: int) -> Iterator[slice]:
        """Yield stretches of rows of which `per_row` numbers each stay in cache."""
        n_rows = max(64, CHUNK_ELEMENTS // per_row)
        for start in range(0, len(self.codes), n_rows):
            yield slice(start, start + n_rows)

    def thin(self, stride: int) -> ScoredRows:
        """Return every `stride`-th row, its weight so many times as large."""
        scores = np.ascontiguousarray(self.scores[:, ::stride])
        codes = self.codes[::stride]
        weight = stride * self.weight_or_ones[::stride]
        return ScoredRows(scores, codes, weight)

    def subsample(self) -> ScoredRows | None:
        """Return some of the rows for a first fit, where there are many, else None.

        At least 500 of them, and a fifth of all: round numbers.
        """
        stride = min(5, len(self.codes) // 500)
        return self.thin(stride) if stride > 1 else None

    def with_weight(self, weight: Floats) -> ScoredRows:
        """Return the rows of positive `weight`, with that weight."""
        own = np.flatnonzero(weight > 0.0)
        scores = self.scores.take(own, axis=1)
        codes = self.codes[own]
        own_weight = weight[own]
        if (own_weight == 1.0).all():
            return ScoredRows(scores, codes)  # which spares a product in each pass
        return ScoredRows(scores, codes, own_weight)


@dataclass(frozen=True)
class TemperatureWithLapse(Result):
    """A fitted temperature, as u = 1 / T, with its lapse rate `slip`, between 0 and 1."""

    inverse_temperature: float
    slip: float

    def probs_and_logs(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return g and ``log g``, shape (c, n), of transposed scores."""
        g = self.inverse_temperature * scores
        softmax_in_place(g)
        g *= 1.0 - self.slip
        g += self.slip / len(g)
        return g, log_in_place(g.copy())


def fit_temperature_with_lapse(
    rows: ScoredRows,
    near: TemperatureWithLapse | None = None,
    tol: float = TOL,
    start_influence_tol: float = np.inf,
) -> TemperatureWithLapse:
    """Return the best temperature and lapse rate.

    Parameters
    ----------
    rows : ScoredRows
        The rows.
    near : TemperatureWithLapse, optional
        Where to begin; by default at the likeliest temperature without a lapse rate, and of many
        rows at the fit to some of them.
    tol : float
        Decrement at which to end; not of many rows.
    start_influence_tol : float
        What may be left of `near`, in nats.
    """
    gaps = replace(rows, scores=rows.scores - rows.scores.max(axis=0))
    if near is not None:
        # of next to no weight the rows before may have left nothing but the lapse
        slip = min(near.slip, 1.0 - np.finfo(np.float64).eps)
        lapse_odds = slip / (1.0 - slip)
        x = np.log([near.inverse_temperature, lapse_odds])
    else:
        some_gaps = gaps.subsample()
        x = _starting_point(gaps if some_gaps is None else some_gaps)
        if some_gaps is not None:
            tol = stopping_decrement(
                1e-5
            )  # nats left: many rows need not be followed as far as `TOL`
            x = _minimize_from(some_gaps, x, tol)
    v, s = _minimize_from(gaps, x, tol, start_influence_tol)
    return TemperatureWithLapse(math.exp(v), 1.0 / (1.0 + math.exp(-s)))


def _starting_point(gaps: ScoredRows) -> Floats:
    """Return the likeliest temperature, within bounds, and a lapse in one row."""
    v = math.log(fit_inverse_temperature(gaps.scores, gaps.codes, gaps.weight).value)
    # Without an error the likeliest u is infinite, and 0 where labels are worse than chance.
    v = min(max(v, -4.0), 1.0)
    return np.array([v, -math.log(gaps.total)])


def _minimize_from(
    gaps: ScoredRows, x: Floats, tol: float, start_influence_tol: float = np.inf
) -> Floats:
    """Return (v, s) at the minimum that is found from x."""
    objective = MemoizedObjective(TemperatureWithLapseLoss(gaps))
    if math.isfinite(start_influence_tol):
        start = objective(x)
        decrement = -float(start.gradient @ _newton_direction(start))
        tol = min(tol, decrement_to_forget_start(decrement, start_influence_tol))
    return minimize(objective, x, tol=tol, find_direction=_newton_direction).x


def _newton_direction(terms: Derivatives) -> Floats:
    """Return ``-|H|^-1 g``: the objective is not convex, so eigenvalues are made positive."""
    eigenvalues, eigenvectors = np.linalg.eigh(terms.hessian)
    curvatures = np.abs(eigenvalues)
    least_curvature = 1e-10 * max(1.0, float(curvatures.max()))
    curvatures = np.maximum(curvatures, least_curvature)
    along_axes = eigenvectors.T @ terms.gradient
    direction = -eigenvectors @ (along_axes / curvatures)

    # Where there is next to no lapse, curvature tells little of places farther off: one step moves
    # log u by 1 and the lapse's logit by 2 at most.
    longest = np.array([1.0, 2.0])
    times_too_long = float((np.abs(direction) / longest).max())
    return np.asarray(direction / max(1.0, times_too_long), np.float64)


class TemperatureWithLapseLoss:
    """``(v, s) -> Derivatives`` of what is minimised; the scores are gaps to the largest."""

    def __init__(self, gaps: ScoredRows) -> None:
        self.gaps = gaps
        self.total = gaps.total
        self.score_of_label = values_of_labels(gaps.scores, gaps.codes)

    def __call__(self, x: Floats) -> Derivatives:
        """Return value, gradient and Hessian; the value is infinite out of bounds."""
        # exp(30) is finite, and penalties keep the minimum well inside: only a trial goes beyond.
        v, s = x.clip(-30.0, 30.0).tolist()
        is_inside = [v, s] == x.tolist()
        u = math.exp(v)
        e = 1.0 / (1.0 + math.exp(-s))
        sums = np.zeros(6)
        for part in self.gaps.chunks(len(self.gaps.scores)):
            sums += self._derivative_sums(part, u, e)
        value, d_u, d_s, d_uu, d_us, d_ss = sums.tolist()

        # From u to v = log u: du / dv = u.
        k = SHARPENING_PENALTY if v > 0.0 else SOFTENING_PENALTY
        d_v = u * d_u + k * v
        d_vv = u * u * d_uu + u * d_u + k
        d_vs = u * d_us

        # The pseudo-counts; and what depends on e alone in the rows' own curvature.
        log_prior = math.log(e) + math.log1p(-e)
        value += 0.5 * k * v * v - LAPSE_PSEUDO_COUNT * log_prior
        d_s -= LAPSE_PSEUDO_COUNT * (1.0 - 2.0 * e)
        d_ss += (2.0 * LAPSE_PSEUDO_COUNT + self.total) * e * (1.0 - e)

        gradient = np.array([d_v, d_s])
        hessian = np.array([[d_vv, d_vs], [d_vs, d_ss]])
        return Derivatives(value if is_inside else math.inf, gradient, hessian)

    def _derivative_sums(self, part: slice, u: float, e: float) -> Floats:
        """Return sums over rows: value, slopes in u and s, curvatures uu, us and ss.

        Of the curvature in s all but ``e (1 - e)``, which is the same for each row.
        """
        z = self.gaps.scores[:, part]
        softmax_probs = u * z
        softmax_in_place(softmax_probs)
        softmax_share = (1.0 - e) * values_of_labels(
            softmax_probs, self.gaps.codes[part]
        )
        g = softmax_share + e / len(z)
        r = softmax_share / g

        weighted_z = np.multiply(softmax_probs, z, out=softmax_probs)
        mean = weighted_z.sum(axis=0)
        variance = np.einsum("ji,ji->i", weighted_z, z) - mean * mean
        a = self.score_of_label[part] - mean
        mixing = r * (1.0 - r)
        per_row = np.array(
            [
                -np.log(g),
                -r * a,
                r + e - 1.0,
                r * variance - mixing * a * a,
                mixing * a,
                -mixing,
            ]
        )
        return np.asarray(per_row @ self.gaps.weight_or_ones[part])


def values_of_labels(values: Floats, codes: Codes) -> Floats:
    """Return, of values of shape (c, n), that of each row's label."""
    labelled: Floats = values[codes, np.arange(len(codes))]
    return labelled
