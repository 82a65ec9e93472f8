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

from .._model.kernel import CHUNK_ELEMENTS, Derivatives, predicted_probabilities
from .._model.likelihood import Likelihood
from .._model.newton import Solution, minimize
from .._model.temperature import inverse_temperature
from .._utils.linalg import definite_inverse
from .._utils.results import Floats
from .._utils.statements import warn
from .._validation.predictions import Predictions
from ..exceptions import InputError, SeparationWarning
from .objective import FreeLikelihood, Objective, free_parameters

Penalty = float | Literal["auto", "firth"]
Center = Literal["identity", "temperature"]

CENTERS = ("identity", "temperature")
LOG10_STRENGTH_RANGE = (-2.0, 4.0)
"""Powers of ten between which the strength is chosen."""
LOG10_STRENGTH_STEP = 0.5
LOG10_STRENGTH_TOL = 0.005
"""Powers of ten to which the strength of greatest evidence is found."""

MIN_CORRECTION_COSINE = 1e-6
"""Cosine of step and correction below which the correction would be rounding."""


def check_penalty(penalty: Penalty, center: str) -> None:
    """Refuse a penalty or a centre that does not exist."""
    if isinstance(penalty, str):
        if penalty not in ("auto", "firth"):
            rule = "be a number, 'auto' or 'firth'"
            raise InputError(argument="penalty", rule=rule, value=penalty)
    elif not (np.isfinite(penalty) and penalty >= 0.0):
        raise InputError(argument="penalty", rule="be finite and not negative", value=penalty)
    if center not in CENTERS:
        raise InputError(argument="center", rule="be 'identity' or 'temperature'", value=center)


@dataclass(frozen=True, eq=False)
class Ridge:
    """``objective(x) + rho/2 |x - centre|^2``."""

    objective: Objective
    rho: float
    centre: Floats

    def __call__(self, x: Floats) -> Derivatives:
        """Return value, gradient and Hessian at `x`."""
        away = x - self.centre
        size = 0.5 * self.rho * float(away @ away)
        return self.objective(x) + Derivatives(size, self.rho * away, self.rho * np.eye(len(x)))


def temperature_exponent(predictions: Predictions) -> float | None:
    """Return the u > 0 whose map ``x^u`` is likeliest; None where no finite u is."""
    odds = predictions.log_odds
    if not odds.any():
        return 1.0
    scores = np.vstack([odds, np.zeros(odds.shape[1])])
    root = inverse_temperature(scores, predictions.model_codes, predictions.sample_weight)
    return None if root.bound else root.value


def usable_center(predictions: Predictions, center: Center) -> tuple[Center, float]:
    """Return the centre and its gamma: the identity, with a warning, where no exponent is best."""
    if center == "identity":
        return center, 1.0
    exponent = temperature_exponent(predictions)
    if exponent is not None:
        return center, exponent
    message = (
        "{center:{given!r}} needs a finite exponent; on these rows the likelihood never falls as "
        "predictions sharpen. The penalty pulls to the identity instead."
    )
    warn(SeparationWarning(message, values={"given": center}))
    return "identity", 1.0


def penalty_center(log_odds: Floats, exponent: float) -> Floats:
    """Return the centre among the free parameters: the map ``x^exponent``.

    Where gamma_j is fixed at 1, log odds that never vary, tau_j does what gamma_j would have done.
    """
    free = free_parameters(log_odds)
    varies = free[len(log_odds) :]
    tau = np.where(varies, 0.0, (exponent - 1.0) * log_odds[:, 0])
    return np.concatenate([tau, np.full(len(log_odds), exponent)])[free]


def evidence(rho: float, solution: Solution) -> float:
    """Return the Laplace evidence of a ridge of strength `rho`, given its fit."""
    logdet = float(np.linalg.slogdet(solution.terms.hessian)[1])
    return -solution.value + 0.5 * len(solution.x) * math.log(rho) - 0.5 * logdet


def strongest_evidence(objective: Objective, centre: Floats) -> float:
    """Return the rho of greatest evidence."""
    powers = np.arange(
        LOG10_STRENGTH_RANGE[1],
        LOG10_STRENGTH_RANGE[0] - 0.5 * LOG10_STRENGTH_STEP,
        -LOG10_STRENGTH_STEP,
    )
    points, values = [centre], []
    for power in powers:
        rho = 10.0**power
        solution = minimize(Ridge(objective, rho, centre), points[-1])
        points.append(solution.x)
        values.append(evidence(rho, solution))
    best = int(np.argmax(values))
    if best in (0, len(powers) - 1):
        return float(10.0 ** powers[best])
    from scipy.optimize import minimize_scalar

    def loss(power: float) -> float:
        rho = 10.0**power
        return -evidence(rho, minimize(Ridge(objective, rho, centre), points[best + 1]))

    bounds = (float(powers[best]) - LOG10_STRENGTH_STEP, float(powers[best]) + LOG10_STRENGTH_STEP)
    found = minimize_scalar(
        loss, bounds=bounds, method="bounded", options={"xatol": LOG10_STRENGTH_TOL}
    )
    return float(10.0**found.x)


class FirthObjective:
    """``-l(theta) - 1/2 log|H(theta)|`` of the free parameters.

    The Hessian is that of -l with what the last evaluations showed of the prior's curvature; value
    and gradient are exact.
    """

    def __init__(self, likelihood: FreeLikelihood[Likelihood], predictions: Predictions) -> None:
        self.likelihood = likelihood
        self.log_odds, self.weight = predictions.log_odds, predictions.sample_weight
        size = int(likelihood.free.sum())
        self._curvature = np.zeros((size, size))
        self._last: tuple[Floats, Floats] | None = None

    def __call__(self, x: Floats) -> Derivatives:
        """Return value, gradient and approximate Hessian at `x`."""
        terms = self.likelihood(x)
        found = definite_inverse(terms.hessian)
        if found is None:
            return Derivatives(np.inf, terms.gradient, terms.hessian)
        inverse, logdet = found
        free = self.likelihood.free
        whole = np.zeros((len(free), len(free)))
        whole[np.ix_(free, free)] = inverse
        theta = self.likelihood.theta(x)
        slope = -0.5 * information_slope(theta, self.log_odds, whole, self.weight)[free]
        if self._last is not None:  # what this step showed corrects the prior's curvature
            step = x - self._last[0]
            missed = slope - self._last[1] - self._curvature @ step
            along = float(missed @ step)
            if abs(along) > MIN_CORRECTION_COSINE * float(
                np.linalg.norm(missed) * np.linalg.norm(step)
            ):
                self._curvature = self._curvature + np.outer(missed, missed) / along
        self._last = x.copy(), slope
        hessian = terms.hessian + self._curvature
        return Derivatives(terms.value - 0.5 * logdet, terms.gradient + slope, hessian)


def firth_solution(likelihood: FreeLikelihood[Likelihood], predictions: Predictions) -> Solution:
    """Maximise Firth's penalised likelihood.

    It starts at the identity, with gamma lowered where log odds would saturate every row.
    """
    largest = np.maximum(np.abs(predictions.log_odds).max(axis=1), 1.0)
    gentle = np.concatenate([np.zeros(len(largest)), np.minimum(1.0, 20.0 / largest)])
    return minimize(FirthObjective(likelihood, predictions), gentle[likelihood.free])


def information_slope(
    theta: Floats, log_odds: Floats, inverse: Floats, weight: Floats | None = None
) -> Floats:
    """Return the gradient of ``log|H(theta)|``, `inverse` being ``H(theta)^-1``."""
    k, n = log_odds.shape
    slope, rows = np.zeros(2 * k), max(256, CHUNK_ELEMENTS // k)
    own = np.diagonal(inverse)
    cross = 2.0 * np.diagonal(inverse[:k, k:])[:, None]
    for start in range(0, n, rows):
        odds = log_odds[:, start : start + rows]
        g = predicted_probabilities(theta, odds)[0][:k]
        mixed = inverse @ np.concatenate([g, g * odds])
        a = own[:k, None] + odds * (cross + odds * own[k:, None])
        a -= 2.0 * (mixed[:k] + odds * mixed[k:])
        a -= np.einsum("ji,ji->i", g, a)
        a *= g
        if weight is not None:
            a *= weight[start : start + rows]
        slope[:k] += a.sum(axis=1)
        slope[k:] += np.einsum("ji,ji->j", a, odds)
    return slope
