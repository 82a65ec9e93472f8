r"""One scalar soft-max model and the parameters its likelihood finds plausible; pure NumPy.

=================  ==========================================================================
model              ``p_k(theta) = exp(theta s_k) / sum_j exp(theta s_j)``
log likelihood     ``l(theta) = sum_i w_i (theta t_i - log sum_k exp(theta s_ik))``, concave;
                   ``t_i`` is the score of row i's target
plausible set      ``Gamma(u) = {theta: l(theta) >= l(theta_hat) + log u} = [a(u), b(u)]``
signed root        ``r(theta) = +- sqrt(2 (l(theta_hat) - l(theta)))``: grows with theta and is
                   nearly a straight line; the ends of Gamma(u) have ``r = +- sqrt(-2 log u)``
quadrature         ``E_u[f(u)] = sum_q w_q f(u_q)``: Gauss-Legendre in v with ``u = v^2``
=================  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._model import Terms
from .._newton import Solution, minimize
from ..exceptions import InputError

Floats = NDArray[np.float64]
Objective = Callable[[Floats], Terms]

N_NODES = 64
CLOSE = 1e-5
"""Distance in r from which one more Newton step is exact to rounding."""
MAX_STEPS = 200
VAGUE = 1e8
"""Stands for infinity as an end of Gamma(u) when the rows say nothing about theta."""


@cache
def quadrature() -> tuple[Floats, Floats]:
    """Return nodes u, falling from 1 to 0 so that the sets grow, and their weights."""
    x, w = np.polynomial.legendre.leggauss(N_NODES)
    v = 0.5 * (x[::-1] + 1.0)
    nodes, weight = v**2, v * w[::-1]
    for array in (nodes, weight):
        array.setflags(write=False)
    return nodes, weight


@dataclass(frozen=True, eq=False)
class PlausibleSets:
    """theta_hat and the sets Gamma(u) of some levels u, growing outward.

    Attributes
    ----------
    theta : float
        The maximum likelihood estimate.
    low, high : ndarray of shape (n_levels,)
        Ends of Gamma(u).
    """

    theta: float
    low: Floats
    high: Floats

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values."""
        return {"theta": self.theta, "low": self.low.tolist(), "high": self.high.tolist()}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> PlausibleSets:
        """Return the sets that `to_dict` described."""
        low, high = (np.array(content[name], dtype=float) for name in ("low", "high"))
        return cls(float(content["theta"]), low, high)


class ScalarLikelihood:
    """``theta -> Terms`` of ``-l(theta)``.

    Parameters
    ----------
    scores : ndarray of shape (n_classes, n_samples)
        s, transposed.
    target : ndarray of shape (n_samples,)
        The score of each row's target.
    weight : ndarray of shape (n_samples,), optional
        Row weights.
    """

    def __init__(self, scores: Floats, target: Floats, weight: Floats | None = None) -> None:
        self.weight = np.ones(len(target)) if weight is None else weight
        self.target = target
        self.top, self.bottom = scores.max(axis=0), scores.min(axis=0)
        self._below, self._above = scores - self.top, scores - self.bottom
        self._lead = float(self.weight @ (self.top - target))
        self._lag = float(self.weight @ (target - self.bottom))

    def __call__(self, theta: Floats) -> Terms:
        """Return value, gradient and Hessian at `theta`, an array of one number."""
        at = float(theta[0])
        # Shifted so that every exponent is <= 0; measured from the target's score, not from 0.
        up = at >= 0.0
        shifted, offset = (self._below, self._lead) if up else (self._above, -self._lag)
        p = np.exp(at * shifted)
        total = p.sum(axis=0)
        p /= total
        mean = np.einsum("kn,kn->n", p, shifted)
        p *= shifted
        spread = np.einsum("kn,kn->n", p, shifted) - mean**2
        value = float(self.weight @ np.log(total)) + at * offset
        slope = float(self.weight @ mean) + offset
        return Terms(value, np.array([slope]), np.array([[self.weight @ spread]]))

    @property
    def is_flat(self) -> bool:
        """Whether every row of positive weight is uniform: l is then constant."""
        return not (self.weight * (self.top - self.bottom)).any()

    def refuse_infinite(self) -> None:
        """Raise when l grows for ever, so that theta_hat is not finite."""
        for gap, which in ((self._lead, "most"), (self._lag, "least")):
            if gap == 0.0:
                raise InputError(
                    f"theta must have a finite estimate; the {which} probable class came true in "
                    "every row, so the likelihood grows for ever. Use smooth=True."
                )


def scalar_sets(likelihood: ScalarLikelihood) -> PlausibleSets:
    """Return theta_hat and every Gamma(u); rows that say nothing make every theta plausible."""
    if likelihood.is_flat:
        far = np.full(N_NODES, VAGUE)
        return PlausibleSets(0.0, -far, far)
    likelihood.refuse_infinite()
    return plausible_sets(likelihood, quadrature()[0])


def plausible_sets(objective: Objective, levels: Floats) -> PlausibleSets:
    """Return theta_hat and both ends of Gamma(u) at falling `levels` u, for a convex ``-l``."""
    solution = minimize(objective, np.zeros(1))
    radii = np.sqrt(-2.0 * np.log(levels))
    low, high = (_outward(objective, solution, side, radii) for side in (-1.0, 1.0))
    return PlausibleSets(float(solution.x[0]), low, high)


def _outward(objective: Objective, solution: Solution, side: float, radii: Floats) -> Floats:
    """Solve ``r(theta) = radius`` on one side of theta_hat, each radius from the one before."""
    ends = np.empty(len(radii))
    theta, radius, bend = float(solution.x[0]), 0.0, 0.0
    rate = max(float(solution.terms.hessian[0, 0]), np.finfo(float).tiny) ** -0.5
    for q, goal in enumerate(radii):
        ahead, before = goal - radius, rate
        step = ahead * max(rate + 0.5 * ahead * bend, 0.5 * rate)
        theta, rate = _solve(objective, solution.value, side, theta, step, goal)
        ends[q], radius, bend = theta, goal, (rate - before) / ahead
    return ends


def _solve(
    objective: Objective, best: float, side: float, inner: float, step: float, goal: float
) -> tuple[float, float]:
    """Return theta beyond `inner` with ``|r(theta)| = goal``, and ``d theta / d r`` there.

    Newton in r, kept between what is known to be too near and too far.
    """
    near, far, at = 0.0, np.inf, step
    for _ in range(MAX_STEPS):
        terms = objective(np.array([inner + side * at]))
        r = np.sqrt(2.0 * max(terms.value - best, 0.0))
        rate = r / max(side * float(terms.gradient[0]), np.finfo(float).tiny)
        newton = at + (goal - r) * rate
        if abs(goal - r) <= CLOSE:
            return inner + side * newton, rate
        near, far = (at, far) if r < goal else (near, at)
        inside = near < newton < far
        at = newton if inside else (2.0 * near + step if np.isinf(far) else 0.5 * (near + far))
    return inner + side * at, rate
