"""Which estimate: maximum likelihood, ridge or Firth; and how much information is left at it.

A maximum that does not exist shows as information that vanishes along the way to it. The smallest
eigenvalue of the Hessian, in units of the information at the identity, says when to ask the linear
program of `_separation`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ._firth import FirthObjective, firth_solution
from ._many import MANY, fit_many
from ._model import Terms
from ._newton import Solution, minimize
from ._operator import NO_HESSIAN
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
    at_identity : ndarray or None
        Diagonal of the Hessian at the identity, where `null` has no Hessian.
    """

    solution: Solution
    hessian: Floats
    value: float
    null: Terms
    penalty: float = 0.0
    rule: str = "given"
    center: str = "identity"
    center_gamma: float = 1.0
    at_identity: Floats | None = None


def estimate(
    likelihood: FreeLikelihood, predictions: Predictions, penalty: Penalty, center: Center
) -> Estimate:
    """Return the estimate that `penalty` and `center` ask for."""
    identity = likelihood.identity[likelihood.free]
    if isinstance(penalty, float) and predictions.n_classes >= MANY:
        return _estimate_many(likelihood, predictions, penalty, center)
    if penalty == 0.0:
        solution = minimize(likelihood, identity, rough=likelihood.rough)
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
    rough = None if likelihood.rough is None else Ridge(likelihood.rough, rho, centre)
    solution = minimize(Ridge(likelihood, rho, centre), identity, rough=rough)
    value = likelihood(solution.x).value
    rule = "auto" if auto else "given"
    return Estimate(solution, solution.terms.hessian, value, null, rho, rule, center, gamma)


def _estimate_many(
    likelihood: FreeLikelihood, predictions: Predictions, penalty: float, center: Center
) -> Estimate:
    """Return the maximum likelihood or ridge estimate of many classes; see `_many`."""
    free, theta0 = likelihood.free, likelihood.identity
    center, gamma = usable_center(predictions, center) if penalty else ("identity", 1.0)
    centre = theta0.copy()
    centre[free] = centre_of(predictions.log_odds, gamma)
    found = fit_many(
        predictions.log_odds,
        likelihood.whole.statistic,
        predictions.sample_weight,
        start=theta0,
        free=free,
        penalty=penalty,
        centre=centre,
    )
    run, whole = found.solution, found.hessian
    hessian = np.full((0, 0), np.nan) if whole is None else whole[np.ix_(free, free)]
    solution = replace(run, x=run.x[free])
    value = run.value if penalty == 0.0 else likelihood.whole.value(run.x)
    null_value = likelihood.whole.value(theta0) if penalty else run.start.value
    null = Terms(null_value, run.start.gradient[free], NO_HESSIAN)
    at_identity = np.concatenate([found.start_blocks.tau, found.start_blocks.gamma])[free]
    return Estimate(solution, hessian, value, null, penalty, "given", center, gamma, at_identity)


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
    if end.at_identity is not None:
        unit = np.maximum(end.at_identity, INVISIBLE * most)
        return 1.0 if _exceeds(end.hessian, unit, COLLAPSED) else 0.0
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


def _exceeds(hessian: Floats, unit: Floats, bound: float) -> bool:
    """Whether the smallest eigenvalue in these units is above `bound`: one Cholesky, not many."""
    scale = np.sqrt(unit)
    try:
        np.linalg.cholesky(hessian / np.outer(scale, scale) - bound * np.eye(len(unit)))
    except np.linalg.LinAlgError:
        return False
    return True
