"""A temperature with a slip: the first repair, and the scores that all further ones start from.

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
Several sets of rows are fitted at once. Of many rows some are fitted first, to start from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..._ground.results import Floats, Result
from ..._math.kernel import softmax
from ..._math.newton import minimize_sets
from ..._math.temperature import inverse_temperature
from .row_sets import RowSets

SHARPENS, SOFTENS = 4.0, 0.05
"""k(v): weight of the penalty on log u above and below 0."""
PRIOR = 0.5
"""Pseudo-counts of the slip, for and against."""
STARTS = (-4.0, 1.0)
"""Bounds of log u at the start."""
FARTHEST = 30.0
"""Bound of ``|v|`` and ``|s|``; the penalties keep well inside."""
LONGEST = (1.0, 2.0)
"""Longest steps in v and s: where there is next to no slip, curvature tells little of the rest."""
TOL = 1e-10
"""Newton decrement, in nats, at which a fit ends. A handful of rows curves the objective by a tenth
or less: there 1e-8 left errors of 2e-5 in log g, this leaves 3e-7."""


@dataclass(frozen=True)
class SoftTemperature(Result):
    """A fitted temperature with its slip.

    Attributes
    ----------
    inverse_temperature : float
        u = 1 / T.
    slip : float
        e, between 0 and 1.
    """

    inverse_temperature: float
    slip: float

    def logs(self, scores: Floats) -> Floats:
        """Return ``log g``, shape (c, n), of transposed scores."""
        g = self.inverse_temperature * scores
        softmax(g)
        g *= 1.0 - self.slip
        g += self.slip / len(g)
        return np.log(g, out=g)


def fit_soft_temperatures(
    rows: RowSets,
    starts: list[SoftTemperature] | None = None,
    tol: float = TOL,
    trace: float = np.inf,
) -> list[SoftTemperature]:
    """Return the best u and slip for each set of scores and labels.

    `tol` and `trace` are those of `minimize_sets`.
    """
    gaps = replace(rows, scores=rows.scores - rows.scores.max(axis=1, keepdims=True))
    if starts is not None:
        odds = [(s.inverse_temperature, s.slip / (1.0 - s.slip)) for s in starts]
        x = np.log(odds)
    else:
        few = gaps.first()
        x = _start(gaps if few is None else few)
        if few is not None:
            x = minimize_sets(_Problems(few), x, tol)
    x = minimize_sets(_Problems(gaps), x, tol, trace)
    return [SoftTemperature(math.exp(v), 1.0 / (1.0 + math.exp(-s))) for v, s in x]


def features(rows: RowSets, softs: list[SoftTemperature]) -> RowSets:
    """Return (log g, 1) of each set's scores, shape (S, c + 1, m)."""
    n_sets, c, m = rows.scores.shape
    logs = np.ones((n_sets, c + 1, m), dtype=rows.scores.dtype)
    for x, z, soft in zip(logs, rows.scores, softs, strict=True):
        x[:-1] = soft.logs(z)
    return replace(rows, scores=logs)


def _start(gaps: RowSets) -> Floats:
    """Return the likeliest temperature and a slip of one row."""
    x = np.empty((len(gaps.codes), 2))
    for k, (z, codes) in enumerate(zip(gaps.scores, gaps.codes, strict=True)):
        weight = None if gaps.weight is None else gaps.weight[k].astype(np.float64)
        v = math.log(inverse_temperature(z.astype(np.float64), codes, weight).value)
        x[k] = min(max(v, STARTS[0]), STARTS[1]), -math.log(gaps.totals[k])
    return x


class _Problems:
    """``(v, s)`` of each set, as `_math/newton.Problems`; the scores are gaps to the largest."""

    def __init__(self, gaps: RowSets) -> None:
        self.gaps, self.dtype = gaps, gaps.scores.dtype
        self.rounding = gaps.rounding
        self.own = np.take_along_axis(gaps.scores, gaps.codes[:, None], axis=1)[:, 0]

    def value_gradient(self, x: Floats) -> tuple[Floats, Floats]:
        """Return values and gradients; curvatures are made on the way."""
        inside = np.clip(x, -FARTHEST, FARTHEST)
        v, u, e = inside[:, 0], np.exp(inside[:, 0]), 1.0 / (1.0 + np.exp(-inside[:, 1]))
        sums = np.zeros((6, len(x)))
        for part in self.gaps.chunks(self.gaps.n_classes):
            sums += self._sums(part, u, e)
        value, in_u, in_s, uu, us, ss = sums
        k = np.where(v > 0.0, SHARPENS, SOFTENS)
        value = value - PRIOR * (np.log(e) + np.log1p(-e)) + 0.5 * k * v * v
        in_s = in_s - PRIOR * (1.0 - 2.0 * e)
        us, ss = u * us, ss + (PRIOR * 2.0 + self.gaps.totals) * e * (1.0 - e)
        self.hessian = np.array([[u * u * uu + u * in_u + k, us], [us, ss]]).transpose(2, 0, 1)
        value = np.where((inside == x).all(axis=1), value, np.inf)
        return value, np.column_stack([u * in_u + k * v, in_s])

    def direction(self, gradient: Floats) -> Floats:
        """Return Newton directions, curvatures made positive."""
        values, vectors = np.linalg.eigh(self.hessian)
        values = np.abs(values)
        values = np.maximum(values, 1e-10 * np.maximum(1.0, values.max(axis=1, keepdims=True)))
        along = np.einsum("sij,si->sj", vectors, gradient) / values
        direction = -np.einsum("sij,sj->si", vectors, along)
        direction /= np.maximum(1.0, np.abs(direction / LONGEST).max(axis=1, keepdims=True))
        return direction

    def _sums(self, part: slice, u: Floats, e: Floats) -> Floats:
        """Return sums over rows: value, slopes in u and s, curvatures uu, us and ss."""
        kind, c = self.dtype, self.gaps.n_classes
        u, e = u[:, None].astype(kind), e[:, None].astype(kind)
        z, own = self.gaps.scores[:, :, part], self.own[:, part]
        g = u[:, None] * z
        np.exp(g, out=g)
        total = np.reciprocal(g.sum(axis=1))
        q = np.exp(u * own)
        q *= total
        g *= z
        mean = g.sum(axis=1)
        mean *= total
        variance = np.einsum("sji,sji->si", g, z)
        variance *= total
        variance -= mean * mean
        a = own - mean
        q *= 1.0 - e
        mixed = q + e / c
        r = q / mixed
        both = r * (1.0 - r)
        w = None if self.gaps.weight is None else self.gaps.weight[:, part]
        rows = (-np.log(mixed), -r * a, r + e - 1.0, r * variance - both * a * a, both * a, -both)
        return np.array([(t if w is None else t * w).sum(axis=1, dtype=np.float64) for t in rows])
