"""Ridge penalties: towards the identity or a temperature, of a given strength or one chosen.

=====================  ==========================================================================
penalty                ``rho/2 |theta - centre|^2``: the prior ``theta ~ N(centre, I / rho)``
centre "identity"      ``tau = 0, gamma = 1``
centre "temperature"   ``tau = 0, gamma = u`` with the u of greatest likelihood (one exponent)
evidence of rho        ``l(theta_rho) - rho/2 |theta_rho - centre|^2 + d/2 log rho
                       - 1/2 log|H(theta_rho) + rho I|``
=====================  ==========================================================================

The evidence is Laplace's approximation of the log likelihood with theta integrated over its prior;
as rho grows it tends to the log likelihood at the centre. ``penalty="auto"`` takes the rho of
greatest evidence between 0.01 and 10,000: the best of half decades, from strong to weak, each fit
starting at the last, then a search between its neighbours. When little is certain it stays close to
the centre, so the centre matters: with few rows a temperature is the safer one.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ._many import are_many
from ._model import Likelihood, LogPartition, Terms, identity_theta, sufficient_statistic
from ._newton import Solution, minimize
from ._operator import LogPartitionOperator
from ._predictions import Predictions
from ._restriction import FADED, Family, restricted_fit
from .exceptions import InputError, SeparationWarning

Floats = NDArray[np.float64]
Objective = Callable[[Floats], Terms]
Penalty = float | Literal["auto", "firth"]
Center = Literal["identity", "temperature"]

CENTERS = ("identity", "temperature")
LOG_RHO = (-2.0, 4.0)
"""Powers of ten between which the strength is chosen."""
STEP = 0.5
CLOSE = 0.005
"""Powers of ten to which the strength of greatest evidence is found."""


def check_penalty(penalty: Penalty, center: str) -> None:
    """Refuse a penalty or a centre that does not exist."""
    if isinstance(penalty, str):
        if penalty not in ("auto", "firth"):
            raise InputError(
                f"penalty must be a number, 'auto' or 'firth'; got penalty={penalty!r}."
            )
    elif not (np.isfinite(penalty) and penalty >= 0.0):
        raise InputError(f"penalty must be finite and not negative; got penalty={penalty}.")
    if center not in CENTERS:
        raise InputError(f"center must be 'identity' or 'temperature'; got center={center!r}.")


def likelihood_of(predictions: Predictions) -> Likelihood:
    """Return the negative log likelihood of the predictions as a function of theta."""
    odds, weight = predictions.log_odds, predictions.sample_weight
    statistic = sufficient_statistic(odds, predictions.model_codes, weight)
    return Likelihood(LogPartition(odds, weight), statistic)


def free_parameters(log_odds: Floats) -> NDArray[np.bool_]:
    """Return a mask over theta: gamma_j is fixed where class j's log odds never vary."""
    varies = np.ptp(log_odds, axis=1) > 1e-12
    return np.concatenate([np.ones(len(log_odds), dtype=bool), varies])


class FreeLikelihood:
    """The negative log likelihood as a function of the free parameters; the others stay 1."""

    def __init__(self, predictions: Predictions) -> None:
        self.whole = likelihood_of(predictions)
        self.free = free_parameters(predictions.log_odds)
        self.identity = identity_theta(len(self.free) // 2)
        self._all = bool(self.free.all())

    def theta(self, x: Floats) -> Floats:
        """Return theta with the free parameters `x`."""
        theta = self.identity.copy()
        theta[self.free] = x
        return theta

    def __call__(self, x: Floats) -> Terms:
        """Return value, gradient and Hessian at `x`."""
        return self._of(self.whole, x)

    @property
    def rough(self) -> Objective | None:
        """The same in float32, where that pays; see `LogPartition.rough`."""
        rough = self.whole.rough
        return None if rough is None else lambda x: self._of(rough, x)

    def _of(self, objective: Objective, x: Floats) -> Terms:
        if self._all:
            return objective(x)
        terms = objective(self.theta(x))
        hessian = terms.hessian[np.ix_(self.free, self.free)]
        return Terms(terms.value, terms.gradient[self.free], hessian)


@dataclass(frozen=True, eq=False)
class Ridge:
    """``objective(x) + rho/2 |x - centre|^2``."""

    objective: Objective
    rho: float
    centre: Floats

    def __call__(self, x: Floats) -> Terms:
        """Return value, gradient and Hessian at `x`."""
        away = x - self.centre
        size = 0.5 * self.rho * float(away @ away)
        return self.objective(x) + Terms(size, self.rho * away, self.rho * np.eye(len(x)))


def temperature_exponent(predictions: Predictions) -> float | None:
    """Return the u whose map ``x^u`` is likeliest; None where no finite u is."""
    if are_many(predictions.n_classes):
        return _exponent_by_products(predictions)
    family = Family(predictions)
    k = len(predictions.log_odds)
    common = family.identified(np.repeat([0.0, 1.0], k)[:, None])
    fit = restricted_fit(family, common)
    return float(fit.theta[-1]) if fit.settled else None


def _exponent_by_products(predictions: Predictions) -> float | None:
    """Return the same for many classes: no Hessian but along the one direction."""
    odds, weight = predictions.log_odds, predictions.sample_weight
    along = np.repeat([0.0, 1.0], len(odds))
    partition = LogPartitionOperator(odds, weight)
    statistic = float(sufficient_statistic(odds, predictions.model_codes, weight) @ along)

    def objective(u: Floats) -> Terms:
        terms = partition.value_gradient(u[0] * along)
        gradient = np.array([terms.gradient @ along - statistic])
        curvature = np.array([[along @ partition.product(along)]])
        return Terms(terms.value - float(u[0]) * statistic, gradient, curvature)

    solution = minimize(objective, np.ones(1))
    first, last = float(solution.start.hessian[0, 0]), float(solution.terms.hessian[0, 0])
    if first <= 0.0:
        return 1.0  # log odds are all 0
    return float(solution.x[0]) if solution.converged and last >= FADED * first else None


def usable_center(predictions: Predictions, center: Center) -> tuple[Center, float]:
    """Return the centre and its gamma: the identity, with a warning, where no exponent is best."""
    if center == "identity":
        return center, 1.0
    exponent = temperature_exponent(predictions)
    if exponent is not None:
        return center, exponent
    message = (
        "center='temperature' needs a finite exponent; on these rows the likelihood never falls "
        "as predictions sharpen. The penalty pulls to the identity instead."
    )
    warnings.warn(message, SeparationWarning, stacklevel=5)
    return "identity", 1.0


def centre_of(log_odds: Floats, exponent: float) -> Floats:
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
    powers = np.arange(LOG_RHO[1], LOG_RHO[0] - 0.5 * STEP, -STEP)
    points, values = [centre], []
    for power in powers:
        rho = 10.0**power
        solution = minimize(Ridge(objective, rho, centre), points[-1])
        points.append(solution.x)
        values.append(evidence(rho, solution))
    best = int(np.argmax(values))
    if best in (0, len(powers) - 1):
        return float(10.0 ** powers[best])
    return _between(objective, centre, points[best + 1], float(powers[best]))


def _between(objective: Objective, centre: Floats, start: Floats, power: float) -> float:
    from scipy.optimize import minimize_scalar

    def loss(p: float) -> float:
        rho = 10.0**p
        return -evidence(rho, minimize(Ridge(objective, rho, centre), start))

    bounds = (power - STEP, power + STEP)
    found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": CLOSE})
    return float(10.0**found.x)
