"""Penalties: a ridge of given or chosen strength, towards the identity or a temperature; Firth's.

=====================  ==========================================================================
ridge                  ``rho/2 |theta - centre|^2``: the prior ``theta ~ N(centre, I / rho)``
centre "identity"      ``tau = 0, gamma = 1``
centre "temperature"   ``tau = 0, gamma = u`` with the u of greatest likelihood (one exponent)
evidence of rho        ``l(theta_rho) - rho/2 |theta_rho - centre|^2 + d/2 log rho
                       - 1/2 log|H(theta_rho) + rho I|``
Firth                  ``l(theta) + 1/2 log|H(theta)|``: the likelihood times Jeffreys' prior
=====================  ==========================================================================

The evidence is Laplace's approximation of the log likelihood with theta integrated over its prior;
as rho grows it tends to the log likelihood at the centre. ``penalty="auto"`` takes the rho of
greatest evidence between 0.01 and 10,000: the best of half decades, from strong to weak, each fit
starting at the last, then a search between its neighbours. When little is certain it stays close to
the centre, so the centre matters: with few rows a temperature is the safer one.

Firth's estimate is finite where maximum likelihood drifts to infinity, and its first-order bias is
0; it pulls towards gamma = 0, where rows tell most, not towards the identity. It needs third
derivatives, row by row: with ``M = H^-1``, ``q_jk = z_j' M z_k`` for the features
``z_j = (e_j, l_j e_j)`` of class j, and ``r_j`` the derivative with respect to eta_j:

===================  ==================================================================
trace                ``tr(M cov_g(z)) = sum_j g_j q_jj - g' Q g``
its slope in eta     ``r_j = g_j (a_j - sum_k g_k a_k)``, ``a_j = q_jj - 2 (Q g)_j``
slope of log|H|      ``(sum_i w_i r_ij; sum_i w_i r_ij l_ij)``
Q g                  ``(M_tt g + M_tg gl)_j + l_j (M_gt g + M_gg gl)_j``, ``gl_j = g_j l_j``
===================  ==================================================================

so the slope costs one more pass over the rows, like a Hessian. The curvature of the prior is not
computed but learned: a symmetric matrix C, corrected by a multiple of ``r r'`` with
``r = change of slope - C step`` after every step (symmetric rank one), is added to H.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from .._model.kernel import Derivatives, probabilities_and_log_sums, row_chunks
from .._model.likelihood import NegativeLogLikelihood
from .._model.newton import Objective, Solution, minimize
from .._model.temperature import fit_inverse_temperature
from .._utils.linalg import definite_inverse
from .._utils.results import Floats
from .._utils.statements import warn
from .._validation.predictions import Predictions
from ..exceptions import InputError, SeparationWarning
from .objective import FreeParameterObjective, free_parameters

Penalty = float | Literal["auto", "firth"]
Center = Literal["identity", "temperature"]

CENTERS = ("identity", "temperature")


def check_penalty_and_center(penalty: Penalty, center: str) -> None:
    """Refuse a penalty or a centre that does not exist."""
    if isinstance(penalty, str):
        if penalty not in ("auto", "firth"):
            rule = "be a number, 'auto' or 'firth'"
            raise InputError(argument="penalty", rule=rule, value=penalty)
    elif not (np.isfinite(penalty) and penalty >= 0.0):
        raise InputError(
            argument="penalty", rule="be finite and not negative", value=penalty
        )
    if center not in CENTERS:
        raise InputError(
            argument="center", rule="be 'identity' or 'temperature'", value=center
        )


@dataclass(frozen=True, eq=False)
class RidgeObjective:
    """``objective(x) + rho/2 |x - centre|^2``."""

    objective: Objective
    rho: float
    centre: Floats

    def __call__(self, x: Floats) -> Derivatives:
        """Return value, gradient and Hessian at `x`."""
        away = x - self.centre
        value = 0.5 * self.rho * float(away @ away)
        ridge = Derivatives(value, self.rho * away, self.rho * np.eye(len(x)))
        return self.objective(x) + ridge


def fit_temperature_exponent(predictions: Predictions) -> float | None:
    """Return the u > 0 whose map ``x^u`` is likeliest; None where no finite u is."""
    odds = predictions.log_odds
    if not odds.any():
        return 1.0
    scores = np.vstack([odds, np.zeros(odds.shape[1])])
    root = fit_inverse_temperature(
        scores, predictions.model_codes, predictions.sample_weight
    )
    return None if root.bound else root.value


def resolve_center_and_exponent(
    predictions: Predictions, center: Center
) -> tuple[Center, float]:
    """Return the centre and its gamma: the identity, with a warning, where no exponent is best."""
    if center == "identity":
        return center, 1.0
    exponent = fit_temperature_exponent(predictions)
    if exponent is not None:
        return center, exponent
    message = (
        "{center:{given!r}} needs a finite exponent; on these rows the likelihood never falls as "
        "predictions sharpen. The penalty pulls to the identity instead."
    )
    warn(SeparationWarning(message, values={"given": center}))
    return "identity", 1.0


def free_center_parameters(log_odds: Floats, exponent: float) -> Floats:
    """Return the centre among the free parameters: the map ``x^exponent``.

    Where gamma_j is fixed at 1, log odds that never vary, tau_j does what gamma_j would have done.
    """
    k = len(log_odds)
    free = free_parameters(log_odds)
    varies = free[k:]
    tau = np.where(varies, 0.0, (exponent - 1.0) * log_odds[:, 0])
    gamma = np.full(k, exponent)
    return np.concatenate([tau, gamma])[free]


def laplace_log_evidence(rho: float, solution: Solution) -> float:
    """Return the Laplace evidence of a ridge of strength `rho`, given its fit."""
    log_determinant = float(np.linalg.slogdet(solution.derivatives.hessian)[1])
    n_parameters = len(solution.x)
    return -solution.value + 0.5 * n_parameters * math.log(rho) - 0.5 * log_determinant


def penalty_of_greatest_evidence(objective: Objective, centre: Floats) -> float:
    """Return the rho of greatest evidence between 0.01 and 10,000.

    1. The best of half decades, from strong to weak; each fit starts at the last.
    2. A search between its neighbours, for the power of ten to 0.005.
    """
    # 1. The best half decade.
    powers = np.arange(4.0, -2.25, -0.5)
    points = [centre]
    values = []
    for power in powers:
        rho = 10.0**power
        solution = minimize(RidgeObjective(objective, rho, centre), points[-1])
        points.append(solution.x)
        values.append(laplace_log_evidence(rho, solution))
    best = int(np.argmax(values))
    if best in (0, len(powers) - 1):
        return float(10.0 ** powers[best])
    # 2. The search.
    from scipy.optimize import minimize_scalar

    near = points[best + 1]

    def loss(power: float) -> float:
        rho = 10.0**power
        return -laplace_log_evidence(
            rho, minimize(RidgeObjective(objective, rho, centre), near)
        )

    neighbours = (float(powers[best + 1]), float(powers[best - 1]))
    found = minimize_scalar(
        loss, bounds=neighbours, method="bounded", options={"xatol": 0.005}
    )
    return float(10.0**found.x)


class FirthObjective:
    """``-l(theta) - 1/2 log|H(theta)|`` of the free parameters.

    The Hessian is that of -l with what the last evaluations showed of the prior's curvature; value
    and gradient are exact.
    """

    def __init__(
        self,
        likelihood: FreeParameterObjective[NegativeLogLikelihood],
        predictions: Predictions,
    ) -> None:
        size = int(likelihood.free.sum())
        self.likelihood = likelihood
        self.log_odds = predictions.log_odds
        self.weight = predictions.sample_weight
        self._curvature = np.zeros((size, size))
        self._last_x: Floats | None = None
        self._last_slope: Floats | None = None

    def __call__(self, x: Floats) -> Derivatives:
        """Return value, gradient and approximate Hessian at `x`."""
        derivatives = self.likelihood(x)
        found = definite_inverse(derivatives.hessian)
        if found is None:
            return Derivatives(np.inf, derivatives.gradient, derivatives.hessian)
        inverse, log_determinant = found
        free = self.likelihood.free
        whole_inverse = np.zeros((len(free), len(free)))
        whole_inverse[np.ix_(free, free)] = inverse
        theta = self.likelihood.theta(x)
        slope = log_information_gradient(
            theta, self.log_odds, whole_inverse, self.weight
        )
        slope = -0.5 * slope[free]
        self._update_prior_curvature(x, slope)
        hessian = derivatives.hessian + self._curvature
        return Derivatives(
            derivatives.value - 0.5 * log_determinant,
            derivatives.gradient + slope,
            hessian,
        )

    def _update_prior_curvature(self, x: Floats, prior_gradient: Floats) -> None:
        """Correct the prior's curvature by the last step: symmetric rank one."""
        if self._last_x is not None and self._last_slope is not None:
            step = x - self._last_x
            missed = prior_gradient - self._last_slope - self._curvature @ step
            along = float(missed @ step)
            lengths = float(np.linalg.norm(missed) * np.linalg.norm(step))
            # at a smaller cosine the correction would be rounding (Nocedal and Wright 6.26)
            if abs(along) > 1e-6 * lengths:
                self._curvature = self._curvature + np.outer(missed, missed) / along
        self._last_x = x.copy()
        self._last_slope = prior_gradient


def maximize_firth_likelihood(
    likelihood: FreeParameterObjective[NegativeLogLikelihood], predictions: Predictions
) -> Solution:
    """Maximise Firth's penalised likelihood.

    It starts at the identity, with gamma lowered where log odds would saturate every row.
    """
    largest = np.maximum(np.abs(predictions.log_odds).max(axis=1), 1.0)
    gamma = np.minimum(
        1.0, 20.0 / largest
    )  # exp(20) against 1: still a number of some digits
    start = np.concatenate([np.zeros(len(largest)), gamma])
    return minimize(FirthObjective(likelihood, predictions), start[likelihood.free])


def log_information_gradient(
    theta: Floats,
    log_odds: Floats,
    inverse_information: Floats,
    weight: Floats | None = None,
) -> Floats:
    """Return the gradient of ``log|H(theta)|``, `inverse_information` being ``H(theta)^-1``."""
    k, n = log_odds.shape
    slope = np.zeros(2 * k)
    m_tau = np.diagonal(inverse_information)[:k, None]
    m_gamma = np.diagonal(inverse_information)[k:, None]
    m_cross = np.diagonal(inverse_information[:k, k:])[:, None]
    for rows in row_chunks(n, k):
        odds = log_odds[:, rows]
        g = probabilities_and_log_sums(theta, odds)[0][:k]
        q_own = m_tau + 2.0 * m_cross * odds + m_gamma * odds**2  # q_jj
        mixed = inverse_information @ np.concatenate([g, g * odds])
        q_g = mixed[:k] + odds * mixed[k:]  # (Q g)_j
        a = q_own - 2.0 * q_g
        r = g * (a - np.einsum("ji,ji->i", g, a))
        if weight is not None:
            r *= weight[rows]
        slope[:k] += r.sum(axis=1)
        slope[k:] += np.einsum("ji,ji->j", r, odds)
    return slope
