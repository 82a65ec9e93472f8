r"""Belief functions of one scalar soft-max model, from its likelihood (Denoeux 2014); pure NumPy.

=================  ==========================================================================
model              ``p_k(theta) = exp(theta s_k) / sum_j exp(theta s_j)``
log likelihood     ``l(theta) = theta S - A(theta)``, ``S = sum_i w_i sum_k t_ik s_ik``,
                   ``A = sum_i w_i log sum_k exp(theta s_ik)``: concave
plausible set      ``Gamma(u) = {theta: l(theta) >= l(theta_hat) + log u} = [a(u), b(u)]``, u uniform
cumulative         ``F_k = p_1 + .. + p_k`` in a chosen order of the classes, F_0 = 0, F_c = 1
random set         ``phi(u, z) = {k: min_Gamma F_k-1 < z <= max_Gamma F_k}``, z uniform
plausibility       ``Pl(k) = E_u[max_Gamma F_k - min_Gamma F_k-1]``
belief             ``Bel(k) = E_u[(min_Gamma F_k - max_Gamma F_k-1)_+]``
pignistic          ``BetP(k) = E_u,z[1{k in phi} / |phi|]``
=================  ==========================================================================

``E_u`` is Gauss-Legendre in ``v``, ``u = v^2``. Because max F_k and min F_k both grow with k, phi is
a run of neighbouring classes, and the run k .. k+d has, given u, the length
``(min(U_k, L_k+d) - max(U_k-1, L_k+d-1))_+`` with U = max F, L = min F: no sorting is needed.

In ascending order of the scores F_k falls as theta grows, so U = F(a) and L = F(b). In any other
order, and for single ``p_k``, extremes over the nested sets are running extremes outward from
theta_hat: over the ends of all Gamma(u), and over the stationary points between neighbouring ends,
found where the derivative changes its sign. A ``p_k`` has at most one stationary point, so this is
exact for it; a cumulative ``F_k`` could hide two between neighbouring ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._model import CHUNK_ELEMENTS, Terms
from .._newton import minimize

Floats = NDArray[np.float64]
Order = Literal["score", "index", "envelope"]

N_NODES = 64
HALVINGS = 26
"""Of the cell that holds a stationary point: the value's error is the square of 2**-26."""
VAGUE = 1e8
"""Stands for infinity as an end of Gamma(u) when the rows say nothing about theta."""


@dataclass(frozen=True, eq=False)
class Belief:
    """Lower, upper and pignistic probability of each class.

    Attributes
    ----------
    bel, pl, betp : ndarray of shape (n_samples, n_classes)
        Belief, plausibility and pignistic probability; ``bel <= betp <= pl``. The rows of `betp`
        sum to 1.
    """

    bel: Floats
    pl: Floats
    betp: Floats

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values."""
        return {"bel": self.bel.tolist(), "pl": self.pl.tolist(), "betp": self.betp.tolist()}


class ScalarLikelihood:
    """``theta -> Terms`` of ``-l(theta)`` for scores of shape (c, n)."""

    def __init__(self, scores: Floats, statistic: float, weight: Floats | None = None) -> None:
        self.statistic = statistic
        self.weight = np.ones(scores.shape[1]) if weight is None else weight
        self.top, self.bottom = scores.max(axis=0), scores.min(axis=0)
        self._below, self._above = scores - self.top, scores - self.bottom

    def __call__(self, theta: Floats) -> Terms:
        """Return value, gradient and Hessian at `theta`, an array of one number."""
        at = float(theta[0])
        extreme, shifted = (self.top, self._below) if at >= 0.0 else (self.bottom, self._above)
        p = np.exp(at * shifted)
        total = p.sum(axis=0)
        p /= total
        mean = np.einsum("kn,kn->n", p, shifted)
        p *= shifted
        spread = np.einsum("kn,kn->n", p, shifted) - mean**2
        value = self.weight @ (np.log(total) + at * extreme) - at * self.statistic
        slope = self.weight @ (mean + extreme) - self.statistic
        return Terms(float(value), np.array([slope]), np.array([[self.weight @ spread]]))

    @property
    def slopes_at_infinity(self) -> tuple[float, float]:
        """Limits of ``l'`` at minus and plus infinity; theta_hat is finite iff they are +, -."""
        return (
            float(self.statistic - self.weight @ self.bottom),
            float(self.statistic - self.weight @ self.top),
        )
