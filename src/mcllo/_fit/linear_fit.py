"""`LinearMap`, ``softmax(W z + b)``, and its fit by penalised likelihood from `Predictions`.

====================  =================================================================
scores z              logits or log probabilities; transposed, ``(c, n)``, over rows
W                     one number, a diagonal (vector map) or a matrix
minimised             ``nll(theta) + 1/2 sum_jk r_jk (theta_jk - identity_jk)^2``
penalty               ``r``: chosen by the method, plus the floor
floor                 ``1e-10 sum_i w_i x_ik^2``, x the feature that theta_jk multiplies
start                 ``u * identity``, u the best inverse temperature
solver                BFGS from the Hessian's blocks on single classes; up to 500 parameters
                      Newton's method ends the search
====================  =================================================================

Adding a number to every score of a row changes no probability iff all rows of W have the same sum:
it is so for a single number and for no other map, which therefore differ on logits and on log
probabilities.

The floor is too small to be seen in an estimate that the rows determine. It decides what they
cannot tell: weights of scores that depend on each other stay near the identity's, and separated
rows have a finite answer. When the floor moves a typical eta by more than 0.001, the rows separate
the classes or all but do, and a warning says so.

One vector added to every ``theta_j`` of a matrix map, one number to every intercept of a vector
map, changes no probability; of all such, the penalty chooses. Without one, or with the same for
all, intercepts sum to 0 and the columns of ``W - I`` too.

A class that no label has is left out of the softmax, keeps its predicted probability, and the other
classes share the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._model.kernel import NO_HESSIAN, Derivatives, row_chunks, softmax_in_place
from .._model.linear_map import LinearMapLoss
from .._model.newton import (
    Callback,
    LBFGSInverseHessian,
    Product,
    Solution,
    StopAtSlowDecrease,
    minimize,
    minimize_lbfgs,
    newton_direction,
)
from .._model.temperature import fit_inverse_temperature
from .._utils.linalg import pseudo_inverse, symmetric_inverse
from .._utils.notebook import show_progress
from .._utils.parallel import one_blas_thread
from .._utils.results import Codes, Floats, Result
from .._utils.statements import warn
from .._validation.predictions import Predictions
from .._validation.probabilities import Simplex
from ..exceptions import ConvergenceWarning, InputError, SeparationWarning

RIDGE_FLOOR_SHARE = 1e-10
"""Ridge that every parameter has, as a part of its feature's sum of squares."""
MAX_FLOOR_EFFECT = 1e-3
"""Root mean variance of what the floor does to eta above which the estimate is not determined."""
MAX_PARAMETERS_WITHOUT_LBFGS = 200
"""Parameters up to which Newton's method begins at the start."""
MAX_PARAMETERS_FOR_NEWTON = 500
"""Parameters up to which Newton's method ends the search."""


def transposed_scores(
    predictions: Predictions | Simplex, score_scale: str = "logits"
) -> Floats:
    """Return z, shape (c, n), a new array.

    On "log_probs" these are log probabilities, also where logits are held: ``z - log sum exp z``.
    On "logits" they are the logits, or log probabilities where none are held.
    """
    scores = np.empty(predictions.probs.shape[::-1])
    if predictions.logits is None:
        return np.log(predictions.probs.T, out=scores)
    scores[:] = predictions.logits.T
    if score_scale == "log_probs":
        scores -= scores.max(axis=0)
        scores -= softmax_in_place(scores.copy())
    return scores


@dataclass(frozen=True, eq=False)
class LinearMap(Result):
    """A fitted map and how its fit ended.

    Attributes
    ----------
    coef : ndarray
        W: shape () for one common weight, (c,) for a diagonal, (c, c) for a matrix.
    intercept : ndarray of shape (c,)
        b, summing to 0.
    absent : tuple of int
        Columns that no label had. They keep their predicted probability, the other columns share
        the rest; their entries of W and b are the identity's and are not used.
    n_iter : int
        Steps of the solver.
    converged : bool
        Whether the solver met its tolerance.
    separated : bool
        Whether the rows leave the best parameters without a finite value, or all but so.
    """

    coef: Floats
    intercept: Floats
    absent: tuple[int, ...] = ()
    n_iter: int = 0
    converged: bool = True
    separated: bool = False

    def apply(self, simplex: Simplex, on: str = "logits") -> Floats:
        """Return the mapped probabilities, shape (n, c); `on` as in `transposed_scores`."""
        n_samples, n_classes = simplex.probs.shape
        present = np.setdiff1d(np.arange(n_classes), self.absent)
        mapped = simplex.probs.copy()
        scores = transposed_scores(simplex, on)
        for rows in row_chunks(n_samples, n_classes):
            z = scores[:, rows]
            if self.coef.ndim == 2:
                g = self.coef[present] @ z
            else:
                g = np.broadcast_to(self.coef, n_classes)[present, None] * z[present]
            g += self.intercept[present, None]
            softmax_in_place(g)
            block = mapped[rows]
            if self.absent:
                g *= block[:, present].sum(axis=1)
                block[:, present] = g.T
            else:
                block[:] = g.T
        return mapped

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> LinearMap:
        """Return the map that `to_dict` described."""
        known = dict(content)
        known["coef"] = np.array(content["coef"], dtype=float)
        known["intercept"] = np.array(content["intercept"], dtype=float)
        known["absent"] = tuple(content["absent"])
        return cls(**known)


def check_penalty_strength(name: str, value: float) -> None:
    """Refuse a penalty that is not a number >= 0."""
    if not (np.isfinite(value) and value >= 0.0):
        raise InputError(argument=name, rule="be finite and not negative", value=value)


@show_progress("fitting")
@one_blas_thread()
def fit_linear_map(
    predictions: Predictions,
    score_scale: str,
    ridge: Floats,
    remedy: str,
    solver: Solver | None = None,
) -> LinearMap:
    """Fit a vector or matrix map of the classes that labels had, and warn where it is extreme.

    `ridge` is r, one row per class; two columns ask for a vector map, more for a matrix map.
    `remedy` is what to do when the rows separate the classes. The solver is `minimize_by_newton` or
    `minimize_by_lbfgs`, by default as the number of parameters asks.
    """
    diagonal = ridge.shape[1] == 2
    present = np.flatnonzero(predictions.class_weight > 0.0)
    theta = identity_parameters(predictions.n_classes, diagonal)
    absent = np.setdiff1d(np.arange(len(theta)), present)
    end = _LinearMapSolution(theta[present], 0, True, False)
    if len(present) > 1:
        scores = transposed_scores(predictions, score_scale)
        weight = predictions.sample_weight
        # rows of an absent class can only have weight 0; any code will do for them
        codes = np.minimum(
            np.searchsorted(present, predictions.codes), len(present) - 1
        )
        loss = LinearMapLoss(scores, codes, weight, classes=present, diagonal=diagonal)
        objective = _FlooredPenalizedLoss(loss, theta[present], ridge[present])
        start = (
            _start_inverse_temperature(scores[present], codes, weight)
            * objective.identity
        )
        if solver is None:
            few = len(start) <= MAX_PARAMETERS_FOR_NEWTON
            solver = minimize_by_newton if few else minimize_by_lbfgs
        end = _shift_to_least_penalty(solver(objective, start), objective)
    theta[present] = end.theta
    fitted = LinearMap(
        coef=theta[:, 0].copy() if diagonal else theta[:, :-1].copy(),
        intercept=theta[:, -1].copy(),
        absent=tuple(absent.tolist()),
        n_iter=end.n_iter,
        converged=end.converged,
        separated=end.separated,
    )
    if fitted.separated:
        message = (
            "the scores separate the classes, or all but do: the best parameters are infinite or "
            f"hardly determined, and the fitted probabilities extreme. {remedy}"
        )
        warn(SeparationWarning(message))
    elif not fitted.converged:
        message = f"the solver stopped short of its tolerance: the map is approximate. {remedy}"
        warn(ConvergenceWarning(message, numbers={"n_iter": fitted.n_iter}))
    return fitted


def identity_parameters(n_classes: int, diagonal: bool) -> Floats:
    """Return the theta that changes nothing: W = I (or its diagonal), b = 0."""
    if diagonal:
        theta = np.ones((n_classes, 2))
        theta[:, -1] = 0.0
        return theta
    return np.eye(n_classes, n_classes + 1)


@dataclass(frozen=True, eq=False)
class _LinearMapSolution:
    """Where a solver stopped; theta has one row per present class."""

    theta: Floats
    n_iter: int
    converged: bool
    separated: bool


Solver = Callable[["_FlooredPenalizedLoss", Floats], _LinearMapSolution]


class PenalizedLoss:
    """``theta -> Derivatives`` of the penalised negative log likelihood, theta flat."""

    def __init__(self, loss: LinearMapLoss, identity: Floats, ridge: Floats) -> None:
        self.loss = loss
        self.identity = identity.ravel()
        self.ridge = ridge.ravel()

    def __call__(self, theta: Floats) -> Derivatives:
        """Return value, gradient and Hessian."""
        away = theta - self.identity
        pull = self.ridge * away
        penalty = Derivatives(0.5 * float(pull @ away), pull, np.diag(self.ridge))
        return self.loss(theta) + penalty

    def value_and_gradient(self, theta: Floats) -> Derivatives:
        """Return value and gradient alone."""
        away = theta - self.identity
        pull = self.ridge * away
        derivatives = self.loss.value_and_gradient(theta)
        value = derivatives.value + 0.5 * float(pull @ away)
        return Derivatives(value, derivatives.gradient + pull, NO_HESSIAN)


class _FlooredPenalizedLoss(PenalizedLoss):
    """The same with the floor."""

    def __init__(self, loss: LinearMapLoss, identity: Floats, ridge: Floats) -> None:
        self.gram = loss.feature_gram()
        squares = np.diagonal(self.gram, axis1=1, axis2=2)
        self.floor = RIDGE_FLOOR_SHARE * np.broadcast_to(squares, loss.shape).ravel()
        self.total_weight = float(squares[0, -1])
        super().__init__(loss, identity, ridge.ravel() + self.floor)


def _start_inverse_temperature(
    scores: Floats, codes: Codes, weight: Floats | None
) -> float:
    """Return the best inverse temperature, or a moderate one where none is best."""
    root = fit_inverse_temperature(scores, codes, weight)
    if root.bound <= 0:
        return root.value
    root_mean_square = float(np.sqrt(np.mean(scores**2)))
    return 1.0 / max(root_mean_square, 1e-300)


def minimize_by_newton(
    objective: _FlooredPenalizedLoss, start: Floats
) -> _LinearMapSolution:
    """Minimise with the exact Hessian, which also tells what the floor moves."""
    loss = objective.loss
    near = start
    if len(start) > MAX_PARAMETERS_WITHOUT_LBFGS:
        # left to Newton's method where decrements hardly fall: blocks say little of sharp rows
        near = _run_lbfgs_from_class_blocks(
            objective, start, callback=StopAtSlowDecrease(0.9)
        ).x
    # Tighter than the default: where labels are all but separated the decrements fall slowly, and
    # rows that are repeated or weighted must give the same map to 1e-7.
    solution = minimize(objective, near, tol=1e-14)
    pull = objective.floor * (solution.x - objective.identity)
    moved = newton_direction(Derivatives(0.0, pull, solution.derivatives.hessian))
    # mean variance, over the rows' probabilities at the start, of what the floor does to eta
    variance = loss.directional_curvature(start, moved) / objective.total_weight
    theta = solution.x.reshape(loss.shape)
    return _LinearMapSolution(
        theta, solution.n_iter, solution.converged, variance > MAX_FLOOR_EFFECT**2
    )


def minimize_by_lbfgs(
    objective: _FlooredPenalizedLoss, start: Floats, max_iter: int = 1000
) -> _LinearMapSolution:
    """Minimise without a Hessian."""
    solution = _run_lbfgs_from_class_blocks(objective, start, max_iter)
    theta = solution.x.reshape(objective.loss.shape)
    # 0.003 standard errors of each parameter: a search that is cut off there is good enough
    converged = solution.decrement < 1e-5 * len(start)
    return _LinearMapSolution(theta, solution.n_iter, converged, False)


def _run_lbfgs_from_class_blocks(
    objective: _FlooredPenalizedLoss,
    start: Floats,
    max_iter: int = 1000,
    callback: Callback | None = None,
) -> Solution:
    """Return where L-BFGS ends that begins with the Hessian's blocks on single classes."""
    blocks = objective.loss.approximate_class_blocks(start, objective.gram)
    return minimize_lbfgs(
        objective.value_and_gradient,
        start,
        LBFGSInverseHessian(build_block_preconditioner(blocks, objective.ridge)),
        tol=3e-10 * len(start),  # 2e-5 standard errors of each parameter
        max_iter=max_iter,
        callback=callback,
    )


def _inverse_block(block: Floats) -> Floats:
    """Return the inverse; of a class that no row leaves in doubt it is a pseudo-inverse."""
    try:
        return symmetric_inverse(block, large=60)
    except np.linalg.LinAlgError:
        return pseudo_inverse(block)


def build_block_preconditioner(blocks: Floats, ridge: Floats) -> Product:
    """Return products with the inverse of blocks on the diagonal, ridge included."""
    count, size, _ = blocks.shape
    place = np.arange(size)
    whole = blocks.copy()
    whole[:, place, place] *= 1.0 + 1e-8  # features may depend on each other
    whole[:, place, place] += ridge.reshape(count, size)
    # there are many: Cholesky factors pay for smaller ones than of a single matrix
    inverses = np.array([_inverse_block(block) for block in whole])
    return lambda v: (v.reshape(count, 1, size) @ inverses).ravel()


def _shift_to_least_penalty(
    solution: _LinearMapSolution, objective: _FlooredPenalizedLoss
) -> _LinearMapSolution:
    """Choose, exactly, among the theta of equal probabilities the one of least penalty."""
    away = solution.theta - objective.identity.reshape(solution.theta.shape)
    floor = objective.floor.reshape(away.shape)
    ridge = objective.ridge.reshape(away.shape) - floor
    has_ridge = ridge.sum(axis=0) > floor.sum(axis=0)
    ridge = np.where(has_ridge, ridge, 1.0)
    shift = (ridge * away).sum(axis=0) / ridge.sum(axis=0)
    if objective.loss.diagonal:
        shift[0] = 0.0  # of a vector map only intercepts are free to move together
    return replace(solution, theta=solution.theta - shift)
