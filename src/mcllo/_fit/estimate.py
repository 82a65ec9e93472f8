"""Which estimate: maximum likelihood, ridge or Firth; and how much information is left at it.

A maximum that does not exist shows as information that vanishes along the way to it. The smallest
eigenvalue of the Hessian, in units of the information at the identity, says when to ask the linear
program of `_fit/separation`.

Of many classes (`_model/many_classes`) those that have no maximum by themselves are left out
first (`_model/separable_classes`): the likelihood's supremum is the same without them, and the
others do not wait for their drift. Beyond `MAX_PARAMETERS_FOR_HESSIAN` only the 2 x 2 blocks of the
information are known: their smallest eigenvalue is at least that of the whole, so it can show that
information vanished, not that none did, and `converged` then rests on the decrement.

======================  =========================================================================
`estimate`              of rows in memory, whatever the penalty and however many the classes
`ridge_estimate`        maximum likelihood or ridge of any objective: also of rows in blocks
`relative_information`  ``min eig(H(theta) / unit)``, unit the Hessian's diagonal at the identity
`covariance`            ``H(theta)^-1`` among the free parameters, NaN elsewhere
======================  =========================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._model.kernel import Derivatives, LogPartition
from .._model.likelihood import Likelihood, identity_theta, sufficient_statistic
from .._model.many_classes import (
    MAX_PARAMETERS_FOR_HESSIAN,
    MIN_CLASSES_FOR_PCG,
    NO_HESSIAN,
    ClassBlocks,
    LikelihoodOperator,
    LogPartitionOperator,
    fit_by_pcg,
    has_whole_hessian,
)
from .._model.newton import (
    InverseHessian,
    Memoized,
    Solution,
    StopWhenSlow,
    minimize,
    minimize_lbfgs,
    newton_direction,
)
from .._model.separable_classes import SeparatedClasses, separate_classes
from .._utils.linalg import exceeds, inverse, least_eigenvalue, solver
from .._utils.results import Floats
from .._validation.labels import Classes
from .._validation.predictions import Predictions
from ..exceptions import InputError, Option, Phrase
from .objective import FreeLikelihood, Objective, free_parameters
from .penalty import (
    Center,
    FirthObjective,
    Penalty,
    Ridge,
    firth_solution,
    penalty_center,
    strongest_evidence,
    usable_center,
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
    likelihood: FreeLikelihood[Likelihood],
    predictions: Predictions,
    penalty: Penalty,
    center: Center,
) -> Estimate:
    """Return the estimate that `penalty` and `center` ask for."""
    size = len(likelihood.free)
    if isinstance(penalty, str) and not has_whole_hessian(size):
        raise InputError(
            Phrase(
                "{found} needs the information of all parameters at once, of which there may be "
                "{:,}; got {:,}.",
                MAX_PARAMETERS_FOR_HESSIAN,
                size,
            ),
            argument="penalty",
            value=penalty,
            remedy=Phrase("Give a number, say {}.", Option("penalty", 1.0)),
        )
    if not isinstance(penalty, str) and predictions.n_classes >= MIN_CLASSES_FOR_PCG:
        return _estimate_by_pcg(likelihood, predictions, float(penalty), center)
    if penalty == "firth":
        null = likelihood(likelihood.identity[likelihood.free])
        solution = firth_solution(likelihood, predictions)
        at = likelihood(solution.x)
        return Estimate(solution, at.hessian, at.value, null, rule="firth")
    if penalty == 0.0:
        return ridge_estimate(likelihood, 0.0, likelihood.identity[likelihood.free])
    center, gamma = usable_center(predictions, center)
    end = ridge_estimate(likelihood, penalty, penalty_center(predictions.log_odds, gamma))
    return replace(end, center=center, center_gamma=gamma)


def ridge_estimate(
    likelihood: FreeLikelihood[Any], penalty: float | Literal["auto"], centre: Floats
) -> Estimate:
    """Return the maximum likelihood estimate, or with a ridge towards `centre`."""
    if (
        penalty == 0.0
        and likelihood.warm is not None
        and likelihood.free.sum() >= MIN_PARAMETERS_FOR_LBFGS
    ):
        return _estimate_by_lbfgs(likelihood)
    identity = likelihood.identity[likelihood.free]
    objective = Memoized(likelihood)
    null = objective(identity)
    if penalty == 0.0:
        start = _start(likelihood, null)
        solution, value = _maximum_or_supremum(objective, start)
        return Estimate(solution, solution.terms.hessian, value, null)
    auto = penalty == "auto"
    rho = strongest_evidence(likelihood, centre) if auto else float(penalty)
    solution = minimize(Ridge(likelihood, rho, centre), identity)
    away = solution.x - centre
    value = solution.value - 0.5 * rho * float(away @ away)
    rule = "auto" if auto else "given"
    return Estimate(solution, solution.terms.hessian, value, null, rho, rule)


def _estimate_by_lbfgs(likelihood: FreeLikelihood[Likelihood]) -> Estimate:
    """Return the maximum likelihood estimate; the Hessian is computed where the search ends."""
    free, partition = likelihood.free, likelihood.whole.partition
    assert isinstance(partition, LogPartition)

    def without_hessian(x: Floats) -> Derivatives:
        theta = likelihood.theta(x)
        terms = likelihood.whole.from_partition(theta, partition.without_hessian(theta))
        return Derivatives(terms.value, terms.gradient[free], terms.hessian[free])

    some = LogPartition(
        partition.log_odds[:, ::7].copy(),
        None if partition.weight is None else partition.weight[::7],
    )
    scale = partition.n_samples / some.n_samples

    def subsampled_hessian(x: Floats) -> Floats:
        return scale * some(likelihood.theta(x)).hessian[np.ix_(free, free)]

    identity = likelihood.identity[free]
    objective = Memoized(without_hessian)
    null = objective(identity)
    hessian = subsampled_hessian(identity)
    start = _start(likelihood, Derivatives(null.value, null.gradient, hessian))
    if start is not identity:
        hessian = subsampled_hessian(start)
    slow = StopWhenSlow(0.5)
    near = minimize_lbfgs(objective, start, InverseHessian(solver(hessian)), callback=slow)
    if near.converged:
        solution = minimize(likelihood, near.x, tol=1e-7)
        value = solution.value
    else:
        solution, value = _maximum_or_supremum(likelihood, near.x)
    solution = replace(solution, n_iter=near.n_iter + solution.n_iter)
    known = Derivatives(null.value, null.gradient, NO_HESSIAN)
    return Estimate(solution, solution.terms.hessian, value, known, at_identity=null.hessian)


def _maximum_or_supremum(objective: Objective, start: Floats) -> tuple[Solution, float]:
    """Return where Newton's method ends and the least value, which may only be approached.

    Where the likelihood has no maximum the decrement falls by a factor e a step, and is all that is
    left to gain. That search ends before rounding decides where.
    """
    separated = StopWhenSlow(ratio=0.2, below=1e-7)
    solution = minimize(objective, start, callback=separated)
    if not separated.stopped:
        return solution, solution.value
    x = solution.x + newton_direction(solution.terms)
    infimum = solution.terms.value - solution.decrement
    return replace(solution, x=x, converged=True), infimum


def _start(likelihood: FreeLikelihood[Any], null: Derivatives) -> Floats:
    """Return where to begin: the identity, unless that is far off.

    By Newton's step in one exponent for all classes. A sharp network's best exponent is far from 1,
    and steps from 1 overshoot.
    """
    identity = likelihood.identity[likelihood.free]
    slope, curvature = identity @ null.gradient, identity @ null.hessian @ identity
    if likelihood.warm is None or abs(slope) <= MAX_FIRST_EXPONENT_STEP * curvature:
        return identity
    return likelihood.warm()[likelihood.free]


def _estimate_by_pcg(
    likelihood: FreeLikelihood[Likelihood], predictions: Predictions, penalty: float, center: Center
) -> Estimate:
    """Return the maximum likelihood or ridge estimate of many classes; see
    `_model/many_classes`.
    """
    odds, weight = predictions.log_odds, predictions.sample_weight
    if penalty == 0.0 and (peeled := separate_classes(odds, predictions.model_codes, weight)):
        return _estimate_separated(likelihood, predictions, peeled)
    free, theta0 = likelihood.free, likelihood.identity
    center, gamma = usable_center(predictions, center) if penalty else ("identity", 1.0)
    centre = theta0.copy()
    centre[free] = penalty_center(odds, gamma)
    found = fit_by_pcg(
        odds,
        likelihood.whole.statistic,
        weight,
        start=theta0,
        free=free,
        penalty=penalty,
        centre=centre,
    )
    run, whole = found.solution, found.hessian
    if whole is not None and not free.all():
        whole = whole[np.ix_(free, free)]
    away, moved = theta0 - centre, run.x - centre
    null_value = run.start.value - 0.5 * penalty * float(away @ away)
    null_gradient = run.start.gradient - penalty * away
    return Estimate(
        solution=replace(run, x=run.x[free]),
        hessian=NO_HESSIAN if whole is None else whole,
        value=run.value - 0.5 * penalty * float(moved @ moved),
        null=Derivatives(null_value, null_gradient[free], NO_HESSIAN),
        penalty=penalty,
        center=center,
        center_gamma=gamma,
        at_identity=np.concatenate([found.start_blocks.tau, found.start_blocks.gamma])[free],
        blocks=found.blocks if whole is None else None,
    )


def _estimate_separated(
    likelihood: FreeLikelihood[Likelihood], predictions: Predictions, peeled: SeparatedClasses
) -> Estimate:
    """Return the supremum, found without the classes that have no maximum by themselves."""
    odds, weight, codes = predictions.log_odds, predictions.sample_weight, predictions.model_codes
    theta, free = likelihood.identity.copy(), likelihood.free
    whole = LikelihoodOperator(LogPartitionOperator(odds, weight), likelihood.whole.statistic)
    null = whole.value_gradient(theta)
    del whole
    null = Derivatives(null.value, null.gradient[free], NO_HESSIAN)
    solution = Solution(theta, null, Derivatives(0.0, np.zeros(1), NO_HESSIAN), 0.0, 0, True)
    rows, classes = peeled.rows, peeled.classes
    if classes.any():
        left, own = odds[np.ix_(classes, rows)], None if weight is None else weight[rows]
        number = np.append(np.cumsum(classes) - 1, classes.sum())  # the baseline stays the last
        statistic = sufficient_statistic(left, number[codes[rows]], own)
        start, varies = identity_theta(len(left)), free_parameters(left)
        few = fit_by_pcg(left, statistic, own, start=start, free=varies, hessian=False)
        solution = few.solution
        theta[np.tile(classes, 2)] = solution.x
    total = float(predictions.n_samples if weight is None else weight.sum())
    x = peeled.theta(theta, odds, codes, total)[free]
    gone = {predictions.compared[j] for j in np.flatnonzero(~classes)}
    return Estimate(
        solution=replace(solution, x=x, start=null),
        hessian=NO_HESSIAN,
        value=solution.value,
        null=null,
        left_out=tuple(label for label in predictions.classes if label in gone),
    )


def build_objective(
    likelihood: FreeLikelihood[Likelihood],
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
    return Ridge(likelihood, penalty, penalty_center(predictions.log_odds, center_gamma))


def relative_information(end: Estimate, likelihood: FreeLikelihood[Any]) -> float:
    """Return the smallest information at the estimate, in units of that at the identity.

    It is 0 where it is lost in the rounding of the most that rows can have, or where classes had to
    be left out, and 1 with a penalty. Of many classes it is 1 where it is above
    `SEPARATION_CHECK_INFORMATION`.
    """
    if end.penalty or end.rule == "firth":
        return 1.0
    if end.left_out:
        return 0.0
    free = likelihood.free
    information_bound = likelihood.information_bound()[free]
    at_identity = np.diagonal(end.null.hessian) if end.at_identity is None else end.at_identity
    unit = np.maximum(at_identity, INFORMATION_ROUNDING_TOL * information_bound)
    if end.blocks is not None:
        return 1.0 if _blocks_exceed(end.blocks, unit, free, SEPARATION_CHECK_INFORMATION) else 0.0
    if end.at_identity is not None and exceeds(end.hessian, SEPARATION_CHECK_INFORMATION, unit):
        return 1.0
    if least_eigenvalue(end.hessian, information_bound) < INFORMATION_ROUNDING_TOL:
        return 0.0
    return float(least_eigenvalue(end.hessian, unit))


def _blocks_exceed(
    blocks: ClassBlocks, unit: Floats, free: NDArray[np.bool_], bound: float
) -> bool:
    """Whether the smallest eigenvalue of every 2 x 2 block in these units is above `bound`."""
    scale = np.ones(len(free))
    scale[free] = unit
    tau, gamma = np.split(scale, 2)
    a, d = blocks.tau / tau, np.where(np.split(free, 2)[1], blocks.gamma / gamma, np.inf)
    cross = np.where(np.isinf(d), 0.0, blocks.cross / np.sqrt(tau) / np.sqrt(gamma))
    enough = (a > bound) & (d > bound)
    return bool((enough & ((a - bound) * (d - bound) > cross**2)).all())


def covariance(hessian: Floats, free: NDArray[np.bool_], determined: bool) -> Floats:
    """Return the covariance of all parameters; NaN for fixed ones, or all where not determined."""
    if determined and free.all():
        return inverse(hessian)
    whole = np.full((len(free), len(free)), np.nan)
    if determined:
        whole[np.ix_(free, free)] = inverse(hessian)
    return whole
