"""Which estimate: maximum likelihood, ridge or Firth; and how much information is left at it.

A maximum that does not exist shows as information that vanishes along the way to it. The smallest
eigenvalue of the Hessian, in units of the information at the identity, says when to ask the linear
program of `_separation`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ._firth import FirthObjective, firth_solution
from ._model import Terms
from ._newton import Solution, minimize
from ._penalty import (
    Center,
    FreeLikelihood,
    Objective,
    Penalty,
    Ridge,
    centre_of,
    free_parameters,
    strongest_evidence,
    usable_center,
)
from ._predictions import Predictions

Floats = NDArray[np.float64]

COLLAPSED = 1e-5
"""Information left at the estimate, relative to the identity, below which separation is checked."""
FLAT = 1e-9
"""Information left below which the estimate is not determined even if it exists."""
INVISIBLE = 3e-13
"""Information, relative to the most that the rows can have, that is lost in rounding."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """Where a solver stopped.

    Attributes
    ----------
    solution : Solution
        In the free parameters.
    hessian : ndarray
        Its inverse is the covariance.
    value : float
        Negative log likelihood at the estimate, without penalty.
    null : Terms
        The negative log likelihood at the identity.
    penalty, rule, center, center_gamma
        As in `MCLLOFit`.
    """

    solution: Solution
    hessian: Floats
    value: float
    null: Terms
    penalty: float = 0.0
    rule: str = "given"
    center: str = "identity"
    center_gamma: float = 1.0


def estimate(
    likelihood: FreeLikelihood, predictions: Predictions, penalty: Penalty, center: Center
) -> Estimate:
    """Return the estimate that `penalty` and `center` ask for."""
    identity = likelihood.identity[likelihood.free]
    if penalty == 0.0:
        solution = minimize(likelihood, identity)
        return Estimate(solution, solution.terms.hessian, solution.value, solution.start)
    null = likelihood(identity)
    if penalty == "firth":
        solution = firth_solution(likelihood, predictions)
        at = likelihood(solution.x)
        return Estimate(solution, at.hessian, at.value, null, rule="firth")
    center, gamma = usable_center(predictions, center)
    centre = centre_of(predictions.log_odds, gamma)
    auto = penalty == "auto"
    rho = strongest_evidence(likelihood, centre) if auto else float(penalty)
    solution = minimize(Ridge(likelihood, rho, centre), identity)
    value = likelihood(solution.x).value
    rule = "auto" if auto else "given"
    return Estimate(solution, solution.terms.hessian, value, null, rho, rule, center, gamma)


def objective_of(
    likelihood: FreeLikelihood,
    predictions: Predictions,
    penalty: float,
    rule: str,
    center_gamma: float,
) -> Objective:
    """Return what a fit with these attributes minimises."""
    if rule == "firth":
        return FirthObjective(likelihood, predictions)
    if penalty == 0.0:
        return likelihood
    return Ridge(likelihood, penalty, centre_of(predictions.log_odds, center_gamma))


def information_left(end: Estimate, predictions: Predictions) -> float:
    """Return the smallest information at the estimate, in units of that at the identity.

    It is 0 where it is lost in the rounding of the most that rows can have, and 1 with a penalty.
    """
    if end.penalty or end.rule == "firth":
        return 1.0
    most = _most_information(predictions)[free_parameters(predictions.log_odds)]
    if _least(end.hessian, most) < INVISIBLE:
        return 0.0
    return _least(end.hessian, np.maximum(np.diagonal(end.null.hessian), INVISIBLE * most))


def _least(hessian: Floats, unit: Floats) -> float:
    """Return the smallest eigenvalue of the Hessian in these units."""
    scale = np.sqrt(unit)
    return float(np.linalg.eigvalsh(hessian / np.outer(scale, scale))[0])


def _most_information(predictions: Predictions) -> Floats:
    """Return a bound on the diagonal of the Hessian at any theta: ``sum w / 4, sum w l^2 / 4``."""
    odds, weight = predictions.log_odds, predictions.sample_weight
    squares = np.einsum("ji,ji->j", odds, odds if weight is None else odds * weight)
    total = float(predictions.n_samples if weight is None else weight.sum())
    return 0.25 * np.concatenate([np.full(len(odds), total), np.maximum(squares, 1e-300)])
