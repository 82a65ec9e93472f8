r"""A temperature with a slip: the first repair, and the scores that all further ones start from.

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
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._model import CHUNK_ELEMENTS, Terms
from .._newton import minimize
from ._inverse_temperature import inverse_temperature
from ._linear_map import softmax_columns

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

SHARPENS, SOFTENS = 4.0, 0.05
"""k(v): weight of the penalty on log u above and below 0."""
PRIOR = 0.5
"""Pseudo-counts of the slip, for and against."""
STARTS = (-4.0, 1.0)
"""Bounds of log u at the start."""
FARTHEST = 30.0
"""Bound of ``|v|`` and ``|s|``; the penalties keep well inside."""
TOL = 1e-10


@dataclass(frozen=True)
class SoftTemperature:
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
        softmax_columns(g)
        g *= 1.0 - self.slip
        g += self.slip / len(g)
        return np.log(g, out=g)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values."""
        return {"inverse_temperature": self.inverse_temperature, "slip": self.slip}


def fit_soft_temperature(
    scores: Floats,
    codes: Codes,
    weight: Floats | None = None,
    start: SoftTemperature | None = None,
) -> SoftTemperature:
    """Return the best u and slip for transposed scores, shape (c, n), and their labels."""
    gaps = scores - scores.max(axis=0)
    total = float(len(codes) if weight is None else weight.sum())
    if start is None:
        v = math.log(inverse_temperature(gaps, codes, weight).value)
        x = np.array([min(max(v, STARTS[0]), STARTS[1]), -math.log(total)])
    else:
        x = np.array([math.log(start.inverse_temperature), _logit(start.slip)])
    v, s = minimize(_Objective(gaps, codes, weight), x, tol=TOL).x
    return SoftTemperature(math.exp(v), 1.0 / (1.0 + math.exp(-s)))


def _logit(p: float) -> float:
    return math.log(p) - math.log1p(-p)


class _Objective:
    """``(v, s) -> Terms``; `gaps` are scores less the largest of their column."""

    def __init__(self, gaps: Floats, codes: Codes, weight: Floats | None) -> None:
        self.gaps, self.codes = gaps, codes
        self.weight = np.ones(len(codes)) if weight is None else weight

    def __call__(self, x: Floats) -> Terms:
        if np.abs(x).max() > FARTHEST:
            return Terms(math.inf, np.zeros(2), np.eye(2))
        v, u, e = float(x[0]), math.exp(x[0]), 1.0 / (1.0 + math.exp(-x[1]))
        q, a, variance = self._at_label(u)
        mixed = (1.0 - e) * q + e / len(self.gaps)
        r, w, k = (1.0 - e) * q / mixed, self.weight, SHARPENS if v > 0.0 else SOFTENS
        both = w * r * (1.0 - r)
        in_u, spread = -float((w * r) @ a), PRIOR * 2.0 * e * (1.0 - e)
        value = -w @ np.log(mixed) - PRIOR * (math.log(e) + math.log1p(-e)) + 0.5 * k * v * v
        in_s = -float(w @ (1.0 - r - e)) - PRIOR * (1.0 - 2.0 * e)
        uu = float((w * r) @ variance - both @ (a * a))
        us = u * float(both @ a)
        ss = spread - float(both.sum() - w.sum() * e * (1.0 - e))
        hessian = np.array([[u * u * uu + u * in_u + k, us], [us, ss]])
        return Terms(float(value), np.array([u * in_u + k * v, in_s]), _positive(hessian))

    def _at_label(self, u: float) -> tuple[Floats, Floats, Floats]:
        """Return, for each row, q at the label, a and the variance of z."""
        n_classes, n_samples = self.gaps.shape
        q, a, variance = np.empty((3, n_samples))
        size = max(256, CHUNK_ELEMENTS // n_classes)
        for start in range(0, n_samples, size):
            rows = slice(start, start + size)
            z = self.gaps[:, rows]
            own = z[self.codes[rows], np.arange(z.shape[1])]
            g = np.exp(u * z)
            total = g.sum(axis=0)
            q[rows] = np.exp(u * own) / total
            g *= z
            mean = g.sum(axis=0) / total
            g *= z
            variance[rows] = g.sum(axis=0) / total - mean * mean
            a[rows] = own - mean
        return q, a, variance


def _positive(hessian: Floats) -> Floats:
    """Return the matrix with its eigenvalues made positive."""
    values, vectors = np.linalg.eigh(hessian)
    values = np.maximum(np.abs(values), 1e-10 * max(1.0, float(np.abs(values).max())))
    positive: Floats = (vectors * values) @ vectors.T
    return positive
