"""Many classes: inexact Newton by Hessian products, and the whole Hessian once, if at all.

With ``a_i = (g_1i, ..., g_Ki, g_1i l_1i, ..., g_Ki l_Ki)`` and D made of the 2 x 2 blocks
``sum_i w_i g_ji [[1, l_ji], [l_ji, l_ji^2]]`` on (tau_j, gamma_j):

====================  ==================================================================
Hessian               ``H = D - sum_i w_i a_i a_i'``
product               ``H v = D v - sum_i w_i a_i (a_i . v)``, no matrix
blocks                the 2 x 2 blocks of H on (tau_j, gamma_j): the preconditioner
====================  ==================================================================

A product is one pass with one exponential for each entry: the A of each row is known from the
gradient.

Each iteration, at x with gradient g:

1. Solve ``H d = -g`` by preconditioned conjugate gradients, until the residual is a part of g that
   falls with g (Eisenstat and Walker 1996, choice 2): a rough solution far from the minimum, a good
   one near.
2. Go on as in `_model/newton`, until the decrement ``-g . d`` is so small that a good solution
   leaves next to nothing.

A Newton step needs ``4 n K^2`` operations for the Hessian and ``8 K^3 / 3`` for its factorisation;
conjugate gradients need about 30 products of ``8 n K`` for a whole fit. From about
`MIN_CLASSES_FOR_PCG` classes the second is faster. The covariance needs the Hessian once, at the
estimate; beyond `MAX_PARAMETERS_FOR_HESSIAN` even one is too large, and the information is known by
class only: 2 x 2 blocks, of which the inverse is **not** a covariance.

References
----------
.. [1] S. Eisenstat, H. Walker (1996). Choosing the forcing terms in an inexact Newton method. SIAM
       Journal on Scientific Computing 17:16-32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._utils.linalg import TINY
from .._utils.parallel import ordered_map
from .._utils.results import Floats
from . import compiled
from .kernel import NO_HESSIAN as NO_HESSIAN
from .kernel import Derivatives, LogPartition, probabilities_and_log_sums, row_chunks
from .newton import Solution, minimize

MIN_CLASSES_FOR_PCG = 120
"""Classes from which whole Hessians cost more than products with them."""
MAX_PARAMETERS_FOR_HESSIAN = 5000
"""Parameters beyond which no Hessian is computed: of so many it takes 200 MB."""
MIN_PARAMETERS_OF_FEW_ROWS = 400
PARAMETERS_PER_ROW = 20
"""Of more parameters than both, nothing is asked that needs all of them at once. Round numbers: 5
rows of 2,000 classes took minutes to say of 3,998 parameters that nothing is known."""
SMALLEST_SEEN_SHARE = 1e-12
"""Share of its unit below which information is rounding, as in `_utils/linalg`."""
MAX_HESSIAN_PRODUCTS = 500
"""Products for one step. A round number."""
PCG_DECREMENT_TOL = 1e-7
"""Decrement from which a step solved to 1e-5 of the gradient leaves less than the tolerance of
`minimize_batch`."""
GRADIENT_SHARES = (1e-5, 0.1)
"""Least and largest part of the gradient that conjugate gradients leave."""


@dataclass(frozen=True, eq=False)
class ClassBlocks:
    """Symmetric 2 x 2 matrices on (tau_j, gamma_j), one for each class."""

    tau: Floats
    cross: Floats
    gamma: Floats

    def times(self, v: Floats) -> Floats:
        """Return the product with v, ordered as theta."""
        v_tau, v_gamma = np.split(v, 2)
        tau = self.tau * v_tau + self.cross * v_gamma
        gamma = self.cross * v_tau + self.gamma * v_gamma
        return np.concatenate([tau, gamma])

    def inverse(self) -> ClassBlocks:
        """Return the inverses; a block that is all but singular first loses its cross term."""
        tau = np.maximum(self.tau, 1e-290)  # its inverse is still a number
        gamma = np.maximum(self.gamma, 1e-290)
        scale = np.sqrt(tau) * np.sqrt(gamma)  # the root of the product might underflow
        correlation = self.cross / scale
        correlation = np.where(correlation**2 < 1.0 - 1e-12, correlation, 0.0)
        unexplained = 1.0 - correlation**2
        return ClassBlocks(
            tau=1.0 / (unexplained * tau),
            cross=-correlation / (unexplained * scale),
            gamma=1.0 / (unexplained * gamma),
        )


class LogPartitionOperator(LogPartition):
    """A(theta): value, gradient, diagonal blocks and Hessian products.

    `value_and_gradient` moves to a point; `hessian_times` and `blocks`, the Hessian's, are there.
    """

    def __init__(
        self,
        log_odds: NDArray[Any],
        weight: Floats | None = None,
        *,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(log_odds, weight, n_jobs=n_jobs)
        self._products_run_in_c = compiled.accepts_log_odds_of_many_classes(log_odds)
        self._logs = np.empty(self.n_samples)  # A of each row, at `_theta`

    def value_and_gradient(self, theta: Floats) -> Derivatives:
        """Move to `theta` and return A with its gradient, without Hessian."""
        self._theta = np.array(theta)

        def sums_of_slice(rows: slice) -> Floats:
            function = (
                compiled.probability_moment_sums
                if self._products_run_in_c
                else probability_moment_sums
            )
            return function(self._theta, *self._inputs_of_rows(rows), self._logs[rows])

        sums = self._sum_over_slices(sums_of_slice)
        tau, cross, gamma, tau_square, cross_square, gamma_square = np.split(
            sums[1:], 6
        )
        self._diagonal = ClassBlocks(tau, cross, gamma)
        self.blocks = ClassBlocks(
            tau - tau_square, cross - cross_square, gamma - gamma_square
        )
        return Derivatives(float(sums[0]), np.concatenate([tau, cross]), NO_HESSIAN)

    def hessian_times(self, v: Floats) -> Floats:
        """Return the Hessian times `v`."""
        v = np.ascontiguousarray(v)

        def sum_of_slice(rows: slice) -> Floats:
            function = (
                compiled.outer_product_times
                if self._products_run_in_c
                else outer_product_times
            )
            return function(
                self._theta, *self._inputs_of_rows(rows), self._logs[rows], v
            )

        return self._diagonal.times(v) - self._sum_over_slices(sum_of_slice)

    def hessian(self, theta: Floats) -> Floats:
        """Return the whole Hessian at `theta`."""
        return self(theta).hessian

    def _inputs_of_rows(self, rows: slice) -> tuple[Floats, Floats | None]:
        root = None if self.root_weight is None else self.root_weight[rows]
        return self.log_odds[:, rows], root

    def _sum_over_slices(self, function_of_slice: Callable[[slice], Floats]) -> Floats:
        """Add up over parts of the rows, in an order that no thread changes."""
        return np.sum(
            list(ordered_map(function_of_slice, self.row_slices, self.n_threads)),
            axis=0,
        )


def probability_moment_sums(
    theta: Floats, log_odds: Floats, root_weight: Floats | None, log_sums: Floats
) -> Floats:
    """Return A and the sums that D and the blocks are made of, (1 + 6 K,); fill `log_sums`.

    The sums are those of ``w g (1, l, l^2)`` and of ``w g^2 (1, l, l^2)``, in this order.
    `log_sums` becomes A of each row.
    """
    k, n = log_odds.shape
    value = 0.0
    sums = np.zeros((6, k))
    for rows in row_chunks(n, k):
        odds = log_odds[:, rows]
        weight = (
            np.ones(odds.shape[1]) if root_weight is None else root_weight[rows] ** 2
        )
        g, log_sums[rows] = probabilities_and_log_sums(theta, odds)
        value += float(log_sums[rows] @ weight)
        moment = g[:k] * weight
        square = moment * g[:k]
        for power in range(3):
            sums[power] += moment.sum(axis=1)
            sums[3 + power] += square.sum(axis=1)
            moment *= odds
            square *= odds
    return np.append(value, sums)


def outer_product_times(
    theta: Floats,
    log_odds: Floats,
    root_weight: Floats | None,
    log_sums: Floats,
    vector: Floats,
) -> Floats:
    """Return ``sum_i w_i a_i (a_i . v)``, (2 K,), given A of each row at `theta`."""
    k, n = log_odds.shape
    total = np.zeros(2 * k)
    for rows in row_chunks(n, k):
        odds = log_odds[:, rows]
        eta = theta[:k, None] + theta[k:, None] * odds
        g = np.exp(eta - log_sums[rows])
        a = np.concatenate([g, g * odds])
        along = vector @ a
        if root_weight is not None:
            along *= root_weight[rows] ** 2
        total += a @ along
    return total


class PenalizedLikelihoodOperator:
    """``A(theta) - theta . s + penalty/2 |theta - centre|^2`` over the free parameters.

    By default all are free and the centre is 0. `first_blocks` are those of A where the first value
    was asked for.
    """

    def __init__(
        self,
        partition: LogPartitionOperator,
        statistic: Floats,
        *,
        penalty: float = 0.0,
        centre: Floats | None = None,
        free: NDArray[np.bool_] | None = None,
    ) -> None:
        size = len(statistic)
        self.partition = partition
        self.statistic = statistic
        self.penalty = penalty
        self.centre = np.zeros(size) if centre is None else centre
        self.free = np.ones(size) if free is None else free.astype(np.float64)
        self.first_blocks: ClassBlocks | None = None

    def value_and_gradient(self, theta: Floats) -> Derivatives:
        """Move to `theta`; return value and gradient, 0 where a parameter is fixed."""
        derivatives = self.partition.value_and_gradient(theta)
        blocks = self.partition.blocks
        self.first_blocks = self.first_blocks or blocks
        # a fixed parameter stands alone, with curvature 1
        tau, gamma = np.split(self.free, 2)
        free_blocks = ClassBlocks(
            tau=np.where(tau > 0.0, blocks.tau + self.penalty, 1.0),
            cross=blocks.cross * tau * gamma,
            gamma=np.where(gamma > 0.0, blocks.gamma + self.penalty, 1.0),
        )
        self._inverse = free_blocks.inverse()
        away = theta - self.centre
        value = derivatives.value - float(theta @ self.statistic)
        value += 0.5 * self.penalty * float(away @ away)
        gradient = derivatives.gradient - self.statistic + self.penalty * away
        return Derivatives(value, self.free * gradient, NO_HESSIAN)

    def hessian_times(self, v: Floats) -> Floats:
        """Return the Hessian times `v`, a direction in the free parameters."""
        return self.free * (self.partition.hessian_times(v) + self.penalty * v)

    def precondition(self, v: Floats) -> Floats:
        """Return v divided by the diagonal blocks of the Hessian."""
        return self._inverse.times(v)

    def hessian(self, theta: Floats) -> Floats:
        """Return the whole Hessian at `theta`, fixed parameters and penalty included."""
        hessian = self.partition.hessian(theta)
        hessian[np.diag_indices_from(hessian)] += self.penalty
        return hessian


def minimize_pcg(
    objective: PenalizedLikelihoodOperator, x0: Floats, *, max_iter: int = 100
) -> Solution:
    """Minimise `objective` from `x0` by inexact Newton steps; the terms hold no Hessian."""
    solve = InexactNewtonDirection(objective)
    return minimize(
        objective.value_and_gradient,
        x0,
        tol=PCG_DECREMENT_TOL,
        max_iter=max_iter,
        find_direction=solve,
    )


class InexactNewtonDirection:
    """Newton's direction, solved for as finely as the last decrease warrants (step 1).

    `n_products` are those used so far.
    """

    def __init__(self, objective: PenalizedLikelihoodOperator) -> None:
        self.objective = objective
        self.size = np.inf  # of the last gradient, as the preconditioner measures it
        self.n_products = 0

    def __call__(self, derivatives: Derivatives) -> Floats:
        """Return the direction at the objective's point."""
        least, largest = GRADIENT_SHARES
        size = float(
            derivatives.gradient @ self.objective.precondition(derivatives.gradient)
        )
        share = size / self.size
        # the preconditioner's decrement may be some times too small or too large; where the step
        # may be the last one it is solved for well
        if size <= 10.0 * PCG_DECREMENT_TOL:
            share = least
        self.size = size
        direction, n_products = conjugate_gradients(
            self.objective.hessian_times,
            self.objective.precondition,
            -derivatives.gradient,
            min(largest, max(least, share)),
        )
        self.n_products += n_products
        return direction


def conjugate_gradients(
    hessian_times: Callable[[Floats], Floats],
    precondition: Callable[[Floats], Floats],
    right_hand_side: Floats,
    residual_share: float,
) -> tuple[Floats, int]:
    """Return a solution of ``H x = right`` with that share of the residual left, and the products.

    The residual is measured as the preconditioner does. Where the curvature is lost in rounding the
    search ends with what it has. Algorithm 5.3 of Nocedal and Wright (2006).
    """
    x = np.zeros_like(right_hand_side)
    residual = right_hand_side.copy()
    scaled = precondition(right_hand_side)
    size = float(residual @ scaled)
    goal = residual_share**2 * size
    direction = scaled
    for used in range(1, MAX_HESSIAN_PRODUCTS + 1):
        if size <= goal:
            return x, used - 1
        image = hessian_times(direction)
        curvature = float(direction @ image)
        if not curvature > 0.0:
            return (x if used > 1 else scaled), used
        step = size / curvature
        x += step * direction
        residual -= step * image
        scaled = precondition(residual)
        last_size = size
        size = float(residual @ scaled)
        direction = scaled + (size / last_size) * direction
    return x, MAX_HESSIAN_PRODUCTS


def is_full_hessian_affordable(n_parameters: int) -> bool:
    """Whether the Hessian of so many parameters, fixed ones included, is computed at all."""
    return n_parameters <= MAX_PARAMETERS_FOR_HESSIAN


def has_far_fewer_rows(n_rows: int, n_parameters: int) -> bool:
    """Whether rows say nothing of most of so many parameters, though a matrix of them costs much.

    Of few parameters it costs next to nothing.
    """
    few = n_parameters > MIN_PARAMETERS_OF_FEW_ROWS
    return few and PARAMETERS_PER_ROW * n_rows < n_parameters


class QuadraticFormOfScores:
    """``u' H^-1 u`` of many u, of far fewer rows than parameters: no matrix of all parameters.

    With ``H = D - sum_i w_i a_i a_i'`` (above), T the inverse roots of the blocks of D, and
    ``Q = T [sqrt(w_i) a_i]``, one column a row,

    ``H^-1 = T' (I + Q (I - Q'Q)^-1 Q') T``.

    Directions without information count nothing, as in a pseudo-inverse.
    """

    def __init__(
        self, log_odds: NDArray[Any], weight: Floats | None, theta: Floats
    ) -> None:
        everything, _ = probabilities_and_log_sums(theta, log_odds)
        g = everything[: len(log_odds)]  # without the baseline
        row_weight = np.ones(g.shape[1]) if weight is None else weight
        weighted = g * row_weight
        blocks = np.empty((len(g), 2, 2))
        blocks[:, 0, 0] = weighted.sum(axis=1)
        blocks[:, 0, 1] = (weighted * log_odds).sum(axis=1)
        blocks[:, 1, 0] = blocks[:, 0, 1]
        blocks[:, 1, 1] = (weighted * log_odds**2).sum(axis=1)
        self._roots = _inverse_roots(blocks)
        a = np.stack([g, g * log_odds], axis=1) * np.sqrt(row_weight)
        self._q = np.einsum("jst,jti->jsi", self._roots, a).reshape(2 * len(g), -1)
        values, vectors = np.linalg.eigh(self._q.T @ self._q)
        rest = 1.0 - values
        is_seen = rest > SMALLEST_SEEN_SHARE
        self._middle = (vectors[:, is_seen] / rest[is_seen]) @ vectors[:, is_seen].T

    def __call__(self, u: Floats) -> Floats:
        """Return the form of each row of `u`, shape (B, 2 K): shifts before slopes."""
        by_class = u.reshape(len(u), 2, -1)
        rotated = np.einsum("jst,btj->bjs", self._roots, by_class).reshape(len(u), -1)
        seen = rotated @ self._q
        own = np.einsum("bj,bj->b", rotated, rotated)
        return own + np.einsum("bi,ij,bj->b", seen, self._middle, seen)


def _inverse_roots(blocks: Floats) -> Floats:
    """Return T with ``T' T`` the (pseudo) inverse of each 2 x 2 block, by its own units."""
    units = np.sqrt(np.maximum(np.diagonal(blocks, axis1=1, axis2=2), TINY))
    scaled = blocks / units[:, :, None] / units[:, None, :]
    values, vectors = np.linalg.eigh(scaled)
    is_seen = values > SMALLEST_SEEN_SHARE
    inverse = np.where(is_seen, 1.0 / np.sqrt(np.where(is_seen, values, 1.0)), 0.0)
    return inverse[:, :, None] * vectors.swapaxes(1, 2) / units[:, None, :]


@dataclass(frozen=True, eq=False)
class PCGFit:
    """Where the fit of many classes stopped, in all parameters; fixed ones are the start's."""

    solution: Solution
    hessian: Floats | None
    """At the estimate, penalty included; None where it was not asked for or is too large."""
    blocks: ClassBlocks
    """The 2 x 2 blocks on (tau_j, gamma_j) without penalty, at the last evaluation."""
    start_blocks: ClassBlocks


def fit_by_pcg(
    log_odds: NDArray[Any],
    statistic: Floats,
    weight: Floats | None = None,
    *,
    start: Floats,
    free: NDArray[np.bool_] | None = None,
    penalty: float = 0.0,
    centre: Floats | None = None,
    compute_hessian: bool = True,
    n_jobs: int | None = None,
) -> PCGFit:
    """Minimise ``A(theta) - theta . s + penalty/2 |theta - centre|^2`` over many classes.

    Parameters that are not free stay at `start`. ``hessian=True`` asks for the whole Hessian at the
    estimate, where it is not too large.
    """
    partition = LogPartitionOperator(log_odds, weight, n_jobs=n_jobs)
    objective = PenalizedLikelihoodOperator(
        partition, statistic, penalty=penalty, centre=centre, free=free
    )
    solution = minimize_pcg(objective, start)
    whole = None
    size = len(statistic)
    few_rows = has_far_fewer_rows(log_odds.shape[1], size)
    if compute_hessian and is_full_hessian_affordable(size) and not few_rows:
        whole = objective.hessian(solution.x)
    assert objective.first_blocks is not None
    return PCGFit(solution, whole, partition.blocks, objective.first_blocks)
