"""Which estimate: maximum likelihood, ridge or Firth; and how much information is left at it.

A maximum that does not exist shows as information that vanishes along the way to it. The smallest
eigenvalue of the Hessian, in units of the information at the identity, says when to ask the linear
program of `_fit/separation`.

Of many classes (`_model/many_classes`) those that have no maximum by themselves are left out
first (`_model/separable_classes`): the likelihood's supremum is the same without them, and the
others do not wait for their drift. Beyond `MAX_PARAMETERS_FOR_HESSIAN` only the 2 x 2 blocks of the
information are known: their smallest eigenvalue is at least that of the whole, so it can show that
information vanished, not that none did, and `converged` then rests on the decrement.

==============================  ====================================================================
`estimate`                      of rows in memory, whatever the penalty and the number of classes
`likelihood_or_ridge_estimate`  maximum likelihood or ridge of any objective: also of rows in blocks
`relative_information`          ``min eig(H(theta) / unit)``, unit the diagonal at the identity
`covariance_from_hessian`       ``H(theta)^-1`` among the free parameters, NaN elsewhere
==============================  ====================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._model.kernel import Derivatives, LogPartition
from .._model.likelihood import (
    NegativeLogLikelihood,
    identity_theta,
    sufficient_statistic,
)
from .._model.many_classes import (
    MAX_PARAMETERS_FOR_HESSIAN,
    MIN_CLASSES_FOR_PCG,
    NO_HESSIAN,
    ClassBlocks,
    LogPartitionOperator,
    PenalizedLikelihoodOperator,
    fit_by_pcg,
    is_full_hessian_affordable,
)
from .._model.newton import (
    LBFGSInverseHessian,
    MemoizedObjective,
    Objective,
    Solution,
    StopAtSlowDecrease,
    minimize,
    minimize_lbfgs,
    newton_direction,
)
from .._model.separable_classes import ClassElimination, eliminate_separated_classes
from .._utils.linalg import (
    factorized_solver,
    smallest_eigenvalue_exceeds,
    smallest_scaled_eigenvalue,
    symmetric_inverse,
)
from .._utils.results import Floats
from .._validation.labels import Classes
from .._validation.predictions import Predictions
from ..exceptions import InputError
from .objective import FreeParameterObjective, free_parameters
from .penalty import (
    Center,
    FirthObjective,
    Penalty,
    RidgeObjective,
    free_center_parameters,
    maximize_firth_likelihood,
    penalty_of_greatest_evidence,
    resolve_center_and_exponent,
)

MIN_PARAMETERS_FOR_LBFGS = 60
"""Parameters from which the search does without Hessians until it is near."""
MAX_FIRST_EXPONENT_STEP = 0.5
"""Step in one exponent for all classes from which the search begins at a guess of it."""
SEPARATION_CHECK_INFORMATION = 1e-5
"""Information left at the estimate, relative to the identity, below which separation is checked."""
MIN_DETERMINED_INFORMATION = 1e-9
"""Information left below which the estimate is not determined even if it exists."""
INFORMATION_ROUNDING_TOL = 3e-13
"""Information, relative to the most that the rows can have, that is lost in rounding."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """Where a solver stopped.

    Attributes
    ----------
    solution : Solution
        In the free parameters.
    hessian : ndarray
        Its inverse is the covariance; of shape (0, 0) where it was not computed.
    value : float
        Negative log likelihood at the estimate, without penalty.
    null : Terms
        The negative log likelihood at the identity.
    penalty, rule, center, center_gamma
        As in `MCLLOFit`.
    at_identity : ndarray or None
        Diagonal of the Hessian at the identity, where `null` has no Hessian.
    blocks : Blocks or None
        What is known of the Hessian at the estimate where it was not computed.
    left_out : tuple
        Classes of which the fit had to do without: they keep the maximum from existing.
    """

    solution: Solution
    hessian: Floats
    value: float
    null: Derivatives
    penalty: float = 0.0
    rule: str = "given"
    center: str = "identity"
    center_gamma: float = 1.0
    at_identity: Floats | None = None
    blocks: ClassBlocks | None = None
    left_out: Classes = ()


def estimate(
    likelihood: FreeParameterObjective[NegativeLogLikelihood],
    predictions: Predictions,
    penalty: Penalty,
    center: Center,
) -> Estimate:
    """Return the estimate that `penalty` and `center` ask for."""
    size = len(likelihood.free)
    if isinstance(penalty, str) and not is_full_hessian_affordable(size):
        raise InputError(
            "{found} needs the information of all parameters at once, of which there may be "
            f"{MAX_PARAMETERS_FOR_HESSIAN:,}; got {size:,}.",
            argument="penalty",
            value=penalty,
            remedy="Give a number, say {penalty:1.0}.",
        )
    if not isinstance(penalty, str) and predictions.n_classes >= MIN_CLASSES_FOR_PCG:
        return _estimate_by_pcg(likelihood, predictions, float(penalty), center)
    if penalty == "firth":
        null = likelihood(likelihood.identity[likelihood.free])
        solution = maximize_firth_likelihood(likelihood, predictions)
        at = likelihood(solution.x)
        return Estimate(solution, at.hessian, at.value, null, rule="firth")
    if penalty == 0.0:
        return likelihood_or_ridge_estimate(
            likelihood, 0.0, likelihood.identity[likelihood.free]
        )
    center, gamma = resolve_center_and_exponent(predictions, center)
    end = likelihood_or_ridge_estimate(
        likelihood, penalty, free_center_parameters(predictions.log_odds, gamma)
    )
    return replace(end, center=center, center_gamma=gamma)


def likelihood_or_ridge_estimate(
    likelihood: FreeParameterObjective[Any],
    penalty: float | Literal["auto"],
    centre: Floats,
) -> Estimate:
    """Return the maximum likelihood estimate, or with a ridge towards `centre`."""
    n_free = int(likelihood.free.sum())
    identity = likelihood.identity[likelihood.free]
    if penalty == 0.0:
        if likelihood.guess_theta is not None and n_free >= MIN_PARAMETERS_FOR_LBFGS:
            return _estimate_by_lbfgs(likelihood)
        objective = MemoizedObjective(likelihood)
        null = objective(identity)
        solution, value = _minimize_or_approach_infimum(
            objective, _choose_start(likelihood, null)
        )
        return Estimate(solution, solution.derivatives.hessian, value, null)

    if penalty == "auto":
        rule = "auto"
        rho = penalty_of_greatest_evidence(likelihood, centre)
    else:
        rule = "given"
        rho = float(penalty)
    null = likelihood(identity)
    solution = minimize(RidgeObjective(likelihood, rho, centre), identity)
    away = solution.x - centre
    value = solution.value - 0.5 * rho * float(away @ away)
    return Estimate(solution, solution.derivatives.hessian, value, null, rho, rule)


def _estimate_by_lbfgs(
    likelihood: FreeParameterObjective[NegativeLogLikelihood],
) -> Estimate:
    """Return the maximum likelihood estimate of many parameters.

    1. Begin at the identity or at one exponent, with the Hessian of some of the rows there.
    2. L-BFGS until the next step is the last, or until decrements hardly fall: there Newton's own
       steps do better.
    3. Newton's method: where step 2 converged one step, with the Hessian that is the information.
       It is taken some ten-thousandth of a standard error away from the estimate. On seven tables
       of 62 to 100 classes that changed standard errors by 1e-7 to 3e-5 of themselves.
    """
    free = likelihood.free
    partition = likelihood.full_objective.partition
    assert isinstance(partition, LogPartition)

    def with_hessian_diagonal(x: Floats) -> Derivatives:
        theta = likelihood.theta(x)
        derivatives = likelihood.full_objective.from_log_partition(
            theta, partition.with_hessian_diagonal(theta)
        )
        return Derivatives(
            derivatives.value, derivatives.gradient[free], derivatives.hessian[free]
        )

    # 1. The start.
    identity = likelihood.identity[free]
    objective = MemoizedObjective(with_hessian_diagonal)
    null = objective(identity)
    rough_hessian = _subsampled_hessian_function(likelihood, partition)
    hessian = rough_hessian(identity)
    start = _choose_start(likelihood, Derivatives(null.value, null.gradient, hessian))
    if start is not identity:
        hessian = rough_hessian(start)
    # 2. L-BFGS.
    inverse = LBFGSInverseHessian(factorized_solver(hessian))
    near = minimize_lbfgs(objective, start, inverse, callback=StopAtSlowDecrease(0.5))
    # 3. Newton's method.
    if near.converged:
        solution = minimize(likelihood, near.x, tol=1e-7)
        value = solution.value
    else:
        solution, value = _minimize_or_approach_infimum(likelihood, near.x)
    solution = replace(solution, n_iter=near.n_iter + solution.n_iter)
    known = Derivatives(null.value, null.gradient, NO_HESSIAN)
    return Estimate(
        solution, solution.derivatives.hessian, value, known, at_identity=null.hessian
    )


def _subsampled_hessian_function(
    likelihood: FreeParameterObjective[NegativeLogLikelihood], partition: LogPartition
) -> Callable[[Floats], Floats]:
    """Return the Hessian as some of the rows have it: every seventh, or ten rows a class."""
    stride = min(7, max(1, partition.n_samples // (10 * partition.n_compared)))
    weight = None if partition.weight is None else partition.weight[::stride]
    some = LogPartition(np.ascontiguousarray(partition.log_odds[:, ::stride]), weight)
    scale = partition.n_samples / some.n_samples
    among_free = np.ix_(likelihood.free, likelihood.free)
    return lambda x: scale * some(likelihood.theta(x)).hessian[among_free]


def _minimize_or_approach_infimum(
    objective: Objective, start: Floats
) -> tuple[Solution, float]:
    """Return where Newton's method ends and the least value, which may only be approached.

    Where the likelihood has no maximum the decrement falls by a factor e a step, and is all that is
    left to gain. That search ends before rounding decides where.
    """
    separated = StopAtSlowDecrease(max_decrement_ratio=0.2, max_decrement=1e-7)
    solution = minimize(objective, start, callback=separated)
    if not separated.stopped:
        return solution, solution.value
    x = solution.x + newton_direction(solution.derivatives)
    infimum = solution.derivatives.value - solution.decrement
    return replace(solution, x=x, converged=True), infimum


def _choose_start(
    likelihood: FreeParameterObjective[Any], identity_derivatives: Derivatives
) -> Floats:
    """Return where to begin: the identity, unless that is far off.

    By Newton's step in one exponent for all classes. A sharp network's best exponent is far from 1,
    and steps from 1 overshoot.
    """
    identity = likelihood.identity[likelihood.free]
    if likelihood.guess_theta is None:
        return identity
    slope = identity @ identity_derivatives.gradient
    curvature = identity @ identity_derivatives.hessian @ identity
    if abs(slope) <= MAX_FIRST_EXPONENT_STEP * curvature:
        return identity
    return likelihood.guess_theta()[likelihood.free]


def _estimate_by_pcg(
    likelihood: FreeParameterObjective[NegativeLogLikelihood],
    predictions: Predictions,
    penalty: float,
    center: Center,
) -> Estimate:
    """Return the maximum likelihood or ridge estimate of many classes (`_model/many_classes`)."""
    odds = predictions.log_odds
    weight = predictions.sample_weight
    free = likelihood.free
    identity = likelihood.identity
    gamma = 1.0
    if penalty == 0.0:
        center = "identity"
        left = eliminate_separated_classes(odds, predictions.model_codes, weight)
        if left:
            return _estimate_without_separated_classes(likelihood, predictions, left)
    else:
        center, gamma = resolve_center_and_exponent(predictions, center)
    centre = identity.copy()
    centre[free] = free_center_parameters(odds, gamma)
    found = fit_by_pcg(
        odds,
        likelihood.full_objective.statistic,
        weight,
        start=identity,
        free=free,
        penalty=penalty,
        centre=centre,
    )
    solution = found.solution
    hessian = found.hessian
    if hessian is not None and not free.all():
        hessian = hessian[np.ix_(free, free)]

    # value and gradient without the ridge, at the estimate and at the identity
    away = solution.x - centre
    value = solution.value - 0.5 * penalty * float(away @ away)
    away = identity - centre
    null_value = solution.start.value - 0.5 * penalty * float(away @ away)
    null_gradient = solution.start.gradient - penalty * away
    start_blocks = found.start_blocks
    return Estimate(
        solution=replace(solution, x=solution.x[free]),
        hessian=NO_HESSIAN if hessian is None else hessian,
        value=value,
        null=Derivatives(null_value, null_gradient[free], NO_HESSIAN),
        penalty=penalty,
        center=center,
        center_gamma=gamma,
        at_identity=np.concatenate([start_blocks.tau, start_blocks.gamma])[free],
        blocks=found.blocks if hessian is None else None,
    )


def _estimate_without_separated_classes(
    likelihood: FreeParameterObjective[NegativeLogLikelihood],
    predictions: Predictions,
    elimination: ClassElimination,
) -> Estimate:
    """Return the supremum, found without the classes that have no maximum by themselves."""
    odds = predictions.log_odds
    weight = predictions.sample_weight
    codes = predictions.model_codes
    free = likelihood.free
    classes = elimination.remaining_classes
    theta = likelihood.identity.copy()
    null = _derivatives_at_identity(likelihood, odds, weight)
    if classes.any():
        left_odds = odds[np.ix_(classes, elimination.remaining_rows)]
        left_weight = None if weight is None else weight[elimination.remaining_rows]
        # numbers among the classes that are left; the baseline stays the last
        new_code = np.append(np.cumsum(classes) - 1, classes.sum())
        statistic = sufficient_statistic(
            left_odds, new_code[codes[elimination.remaining_rows]], left_weight
        )
        found = fit_by_pcg(
            left_odds,
            statistic,
            left_weight,
            start=identity_theta(len(left_odds)),
            free=free_parameters(left_odds),
            compute_hessian=False,
        )
        solution = found.solution
        theta[np.tile(classes, 2)] = solution.x
    else:  # every row has the likelihood 1
        certain = Derivatives(0.0, np.zeros(1), NO_HESSIAN)
        solution = Solution(theta, null, certain, 0.0, 0, True)
    total_weight = float(predictions.n_samples if weight is None else weight.sum())
    x = elimination.with_finite_parameters(theta, odds, codes, total_weight)[free]
    compared = predictions.compared
    gone = {compared[j] for j in np.flatnonzero(~classes)}
    return Estimate(
        solution=replace(solution, x=x, start=null),
        hessian=NO_HESSIAN,
        value=solution.value,
        null=null,
        left_out=tuple(label for label in predictions.classes if label in gone),
    )


def _derivatives_at_identity(
    likelihood: FreeParameterObjective[NegativeLogLikelihood],
    log_odds: Floats,
    weight: Floats | None,
) -> Derivatives:
    """Return value and gradient at the identity, of many classes."""
    operator = PenalizedLikelihoodOperator(
        LogPartitionOperator(log_odds, weight), likelihood.full_objective.statistic
    )
    null = operator.value_and_gradient(likelihood.identity)
    return Derivatives(null.value, null.gradient[likelihood.free], NO_HESSIAN)


def build_objective(
    likelihood: FreeParameterObjective[NegativeLogLikelihood],
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
    return RidgeObjective(
        likelihood, penalty, free_center_parameters(predictions.log_odds, center_gamma)
    )


def relative_information(
    estimate: Estimate, likelihood: FreeParameterObjective[Any]
) -> float:
    """Return the smallest information at the estimate, in units of that at the identity.

    It is 0 where it is lost in the rounding of the most that rows can have, or where classes had to
    be left out, and 1 with a penalty. Of many classes it is 1 where it is above
    `SEPARATION_CHECK_INFORMATION`.
    """
    if estimate.penalty or estimate.rule == "firth":
        return 1.0
    if estimate.left_out:
        return 0.0
    free = likelihood.free
    bound = likelihood.information_bound()[free]
    at_identity = estimate.at_identity
    if at_identity is None:
        at_identity = np.diagonal(estimate.null.hessian)
    unit = np.maximum(at_identity, INFORMATION_ROUNDING_TOL * bound)
    if estimate.blocks is not None:
        enough = _all_block_eigenvalues_exceed(
            estimate.blocks, unit, free, SEPARATION_CHECK_INFORMATION
        )
        return 1.0 if enough else 0.0
    # of many parameters a Cholesky factor says so sooner than eigenvalues
    if estimate.at_identity is not None and smallest_eigenvalue_exceeds(
        estimate.hessian, SEPARATION_CHECK_INFORMATION, unit
    ):
        return 1.0
    if smallest_scaled_eigenvalue(estimate.hessian, bound) < INFORMATION_ROUNDING_TOL:
        return 0.0
    return float(smallest_scaled_eigenvalue(estimate.hessian, unit))


def _all_block_eigenvalues_exceed(
    blocks: ClassBlocks, information_unit: Floats, free: NDArray[np.bool_], bound: float
) -> bool:
    """Whether the smallest eigenvalue of every 2 x 2 block in these units is above `bound`."""
    scale = np.ones(len(free))
    scale[free] = information_unit
    tau_unit, gamma_unit = np.split(scale, 2)
    _, gamma_is_free = np.split(free, 2)
    tau = blocks.tau / tau_unit
    gamma = np.where(gamma_is_free, blocks.gamma / gamma_unit, np.inf)
    cross = blocks.cross / np.sqrt(tau_unit) / np.sqrt(gamma_unit)
    cross = np.where(gamma_is_free, cross, 0.0)
    # [[tau, cross], [cross, gamma]] - bound I is positive definite
    positive = (tau > bound) & (gamma > bound)
    definite = positive & ((tau - bound) * (gamma - bound) > cross**2)
    return bool(definite.all())


def covariance_from_hessian(
    hessian: Floats, free: NDArray[np.bool_], is_determined: bool
) -> Floats:
    """Return the covariance of all parameters; NaN for fixed ones, or all where not determined."""
    if is_determined and free.all():
        return symmetric_inverse(hessian)
    whole = np.full((len(free), len(free)), np.nan)
    if is_determined:
        whole[np.ix_(free, free)] = symmetric_inverse(hessian)
    return whole
