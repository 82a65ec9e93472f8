"""The rows that a fit is made to: all, some, or those kept when a fold is left out.

A temperature with a slip: the first recalibration, and the scores that all further ones start
from.

====================  ==========================================================================
map                   ``g_i = (1 - e) softmax(u z_i) + e / c``
unknown               ``v = log u``, u = 1 / T, and ``s = logit e``, e the slip
minimised             ``- sum_i w_i log g_{i, y_i} - 1/2 log e - 1/2 log(1 - e) + k(v)/2 v^2``
                      k = 4 for u > 1, 0.05 for u < 1
share of the softmax  ``r_i = (1 - e) q_i / g_{i, y_i}``, q_i the softmax's value at the label
slopes of log g       ``r a`` in u, ``1 - r - e`` in s;  ``a_i = z_{i, y_i} - E z`` under softmax
curvatures            ``r (1 - r) a^2 - r Var z`` in u, ``r (1 - r) - e (1 - e)`` in s
cross curvature       ``-r (1 - r) a``
====================  ==========================================================================

Even a good classifier is sometimes sure and wrong, and labels are sometimes wrong. A temperature
alone pays for the few such rows with the sharpness of all; the slip takes them on itself. It also
keeps the logarithms of tiny probabilities, zeros among them, from dominating what follows.

Boldness below the given one shows in large losses and is well determined; more boldness is a gain
that a few hundred rows without an error promise without limit. So the penalty on u is one-sided.
The objective is not convex: the curvature handed to the solver has its eigenvalues made positive.
Of many rows some are fitted first, to start from.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..._model.kernel import CHUNK_ELEMENTS, Derivatives, log, softmax
from ..._model.linear_map import LinearMapLoss
from ..._model.newton import Memoized, minimize
from ..._model.temperature import inverse_temperature
from ..._utils.results import Codes, Floats, Result

MIN_ROWS_OF_FIRST_FIT = 500  # a first fit is made to so many rows at least
MAX_STRIDE_OF_FIRST_FIT = 5  # and to one of so many at least


def last_decrement(left: float) -> float:
    """Return the decrement from which a step with the exact Hessian leaves so much.

    Of a decrement's square it leaves about a hundredth on sharp rows, less on others; that holds up
    to decrements of 0.1.
    """
    return min(0.1, math.sqrt(left / 0.01))


def decrement_to_forget_start(first_decrement: float, trace: float) -> float:
    """Return the decrement at which a search knows its start but for `trace`.

    A search that begins at the fit of all rows must not know, in the end, of the rows left out.
    These are a function whose slope at the start is that of the problem, with the other sign. With
    the decrements D at the start and d at the end they are known but for ``sqrt(D d)`` at most; a
    last step whose Hessian is not exact leaves about a tenth of d.
    """
    return trace**2 / 0.1 / max(first_decrement, 1e-300)


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Scores (c, n), logits or log probabilities; the class that came true; weights, None for 1."""

    scores: Floats
    codes: Codes
    weight: Floats | None = None

    @property
    def total(self) -> float:
        """Weight of all rows."""
        return float(len(self.codes) if self.weight is None else self.weight.sum())

    @cached_property
    def unit(self) -> Floats:
        """The weights, also where all are 1."""
        return np.ones(len(self.codes)) if self.weight is None else self.weight

    @cached_property
    def loss(self) -> LinearMapLoss:
        """That of full maps."""
        return LinearMapLoss(self.scores, self.codes, self.weight)

    def chunks(self, per_row: int) -> Iterator[slice]:
        """Return stretches of rows of which `per_row` numbers each stay in cache."""
        size = max(64, CHUNK_ELEMENTS // per_row)
        return (slice(start, start + size) for start in range(0, len(self.codes), size))

    def every(self, stride: int) -> ScoredRows:
        """Return every `stride`-th row, its weight so many times as large."""
        few = slice(None, None, stride)
        weight = stride * self.unit[few]
        return ScoredRows(np.ascontiguousarray(self.scores[:, few]), self.codes[few], weight)

    def first(self) -> ScoredRows | None:
        """Return some of the rows for a first fit, where there are many, else None."""
        stride = min(MAX_STRIDE_OF_FIRST_FIT, len(self.codes) // MIN_ROWS_OF_FIRST_FIT)
        return self.every(stride) if stride > 1 else None

    def with_weight(self, weight: Floats) -> ScoredRows:
        """Return the rows of positive `weight`, with that weight."""
        own = np.flatnonzero(weight > 0.0)
        counts = None if (weight[own] == 1.0).all() else weight[own]
        return ScoredRows(self.scores.take(own, axis=1), self.codes[own], counts)


SHARPENING_PENALTY = 4.0  # k(v): weight of the penalty on log u above 0
SOFTENING_PENALTY = 0.05  # the same below 0
LAPSE_PSEUDO_COUNT = 0.5
"""Pseudo-counts of the slip, for and against."""
LOG_SLOPE_START_RANGE = (-4.0, 1.0)
"""Bounds of log u at the start."""
MAX_ABS_PARAMETER = 30.0
"""Bound of ``|v|`` and ``|s|``; the penalties keep well inside."""
MAX_STEPS_OF_PARAMETERS = (1.0, 2.0)
"""Longest steps in v and s: where there is next to no slip, curvature tells little of the rest."""
TOL = 1e-10
"""Newton decrement, in nats, at which a fit ends. A handful of rows curves the objective by a tenth
or less: there 1e-8 left errors of 2e-5 in log g, this leaves 3e-7."""
MANY_ROWS_TOL = 1e-5
"""What may be left where some rows are fitted first: these are no handful."""


@dataclass(frozen=True)
class SoftTemperature(Result):
    """A fitted temperature, as u = 1 / T, with its slip e, between 0 and 1."""

    inverse_temperature: float
    slip: float

    def both(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return g and ``log g``, shape (c, n), of transposed scores."""
        g = self.inverse_temperature * scores
        softmax(g)
        g *= 1.0 - self.slip
        g += self.slip / len(g)
        return g, log(g.copy())


def fit_soft_temperature(
    rows: ScoredRows, near: SoftTemperature | None = None, tol: float = TOL, trace: float = np.inf
) -> SoftTemperature:
    """Return the best u and slip, from those of `near`; `tol` is that of `minimize`
    and `trace` that of `decrement_to_forget_start`.
    """
    gaps = replace(rows, scores=rows.scores - rows.scores.max(axis=0))
    if near is not None:
        x = np.log([near.inverse_temperature, near.slip / (1.0 - near.slip)])
    else:
        few = gaps.first()
        x = _start(few or gaps)
        if few is not None:
            tol = last_decrement(MANY_ROWS_TOL)
            x = _search(few, x, tol)
    v, s = _search(gaps, x, tol, trace)
    return SoftTemperature(math.exp(v), 1.0 / (1.0 + math.exp(-s)))


def _search(gaps: ScoredRows, x: Floats, tol: float, trace: float = np.inf) -> Floats:
    loss = Memoized(SoftLoss(gaps))
    if math.isfinite(trace):
        start = loss(x)
        decrement = -float(start.gradient @ _direction(start))
        tol = min(tol, decrement_to_forget_start(decrement, trace))
    return minimize(loss, x, tol=tol, solve=_direction).x


def _start(gaps: ScoredRows) -> Floats:
    """Return the likeliest temperature and a slip of one row."""
    v = math.log(inverse_temperature(gaps.scores, gaps.codes, gaps.weight).value)
    return np.array(
        [min(max(v, LOG_SLOPE_START_RANGE[0]), LOG_SLOPE_START_RANGE[1]), -math.log(gaps.total)]
    )


def _direction(terms: Derivatives) -> Floats:
    """Return the Newton direction, curvatures made positive: those along the two main axes."""
    (vv, vs, _, ss), (v, s) = terms.hessian.ravel().tolist(), terms.gradient.tolist()
    angle, mean, half = 0.5 * math.atan2(2.0 * vs, vv - ss), 0.5 * (vv + ss), 0.5 * (vv - ss)
    radius, x, y = math.hypot(half, vs), math.cos(angle), math.sin(angle)
    least = 1e-10 * max(1.0, abs(mean) + radius)
    one = (x * v + y * s) / max(abs(mean + radius), least)
    other = (x * s - y * v) / max(abs(mean - radius), least)
    direction = np.array([y * other - x * one, -y * one - x * other])
    return direction / max(1.0, float(np.abs(direction / MAX_STEPS_OF_PARAMETERS).max()))


class SoftLoss:
    """``(v, s) -> Derivatives`` of what is minimised; the scores are gaps to the largest."""

    def __init__(self, gaps: ScoredRows) -> None:
        self.gaps, self.total = gaps, gaps.total
        self.own = gaps.scores[gaps.codes, np.arange(len(gaps.codes))]

    def __call__(self, x: Floats) -> Derivatives:
        """Return value, gradient and Hessian; the value is infinite out of bounds."""
        v, s = (min(max(each, -MAX_ABS_PARAMETER), MAX_ABS_PARAMETER) for each in x.tolist())
        u, e = math.exp(v), 1.0 / (1.0 + math.exp(-s))
        sums = np.zeros(6)
        for part in self.gaps.chunks(len(self.gaps.scores)):
            sums += self._sums(part, u, e)
        value, in_u, in_s, uu, us, ss = sums.tolist()
        k = SHARPENING_PENALTY if v > 0.0 else SOFTENING_PENALTY
        value += 0.5 * k * v * v - LAPSE_PSEUDO_COUNT * (math.log(e) + math.log1p(-e))
        in_s -= LAPSE_PSEUDO_COUNT * (1.0 - 2.0 * e)
        us, ss = u * us, ss + (LAPSE_PSEUDO_COUNT * 2.0 + self.total) * e * (1.0 - e)
        hessian = np.array([[u * u * uu + u * in_u + k, us], [us, ss]])
        inside = [v, s] == x.tolist()
        gradient = np.array([u * in_u + k * v, in_s])
        return Derivatives(value if inside else math.inf, gradient, hessian)

    def _sums(self, part: slice, u: float, e: float) -> Floats:
        """Return sums over rows: value, slopes in u and s, curvatures uu, us and ss."""
        z = self.gaps.scores[:, part]
        g = u * z
        softmax(g)
        q = (1.0 - e) * g[self.gaps.codes[part], np.arange(g.shape[1])]
        g *= z
        mean = g.sum(axis=0)
        variance = np.einsum("ji,ji->i", g, z) - mean * mean
        a = self.own[part] - mean
        mixed = q + e / len(z)
        r = q / mixed
        both = r * (1.0 - r)
        rows = (-np.log(mixed), -r * a, r + e - 1.0, r * variance - both * a * a, both * a, -both)
        return np.asarray(np.array(rows) @ self.gaps.unit[part])
