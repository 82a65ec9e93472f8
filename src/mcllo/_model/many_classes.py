"""The negative log likelihood for many classes: Hessian products instead of Hessians.

With ``a_i = (g_1i, ..., g_Ki, g_1i l_1i, ..., g_Ki l_Ki)`` and D made of the 2 x 2 blocks
``sum_i w_i g_ji [[1, l_ji], [l_ji, l_ji^2]]`` on (tau_j, gamma_j):

====================  ==================================================================
Hessian               ``H = D - sum_i w_i a_i a_i'``
product               ``H v = D v - sum_i w_i a_i (a_i . v)``, no matrix
blocks                the 2 x 2 blocks of H on (tau_j, gamma_j): the preconditioner
====================  ==================================================================

In C, which knows A of each row from the gradient, a product is one pass with one exponential for
each entry. Without C the ``a_i`` are kept for the products, up to a gigabyte of them.

Fitting many classes: inexact Newton by products, and the whole Hessian once, if at all.

Each iteration, at x with gradient g and Hessian H, of which only products are known:

1. solve ``H d = -g`` by conjugate gradients, preconditioned, until the residual is a part `eta` of
   g (Eisenstat and Walker, 1996, choice 2): a rough solution far from the minimum, a good one near;
2. go on as in `_model/newton`, until the decrement ``-g . d`` is so small that a good solution
   leaves next to nothing.

A Newton step needs ``4 n K^2`` operations for the Hessian and ``8 K^3 / 3`` for its factorisation;
conjugate gradients need about 30 products of ``8 n K`` for a whole fit. From about
`MIN_CLASSES_FOR_PCG` classes the second is faster. The covariance needs the Hessian once, at the
estimate; beyond `MAX_PARAMETERS_FOR_HESSIAN` even one is too large, and the information is known by
class only: 2 x 2 blocks, of which the inverse is **not** a covariance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._utils.linalg import exceeds
from .._utils.parallel import borrow_buffer, one_blas_thread, ordered_map
from .._utils.results import Floats
from . import compiled
from .kernel import Derivatives, LogPartition
from .newton import Solution, minimize

MAX_ITER = 100

MAX_KEPT_ELEMENTS = 2**27
"""Numbers a_i, n times 2 K, beyond which they are computed anew for each product."""
NO_HESSIAN: Floats = np.empty((0, 0))
"""Stands in `Derivatives` where no Hessian was computed."""
TINY = 1e-290
MIN_CLASSES_FOR_SINGLE = 500
"""Classes from which the products of the whole Hessian are made in single precision. They are most
of the time of an assessment of 50,000 rows of 1,000 classes, and take half of it that way; standard
errors then differ by 5e-5 of themselves."""
MIN_EIGENVALUE_FOR_SINGLE = 1e-4
"""Least eigenvalue, in units of the diagonal, from which single precision is enough: its error was
4e-7 in these units. That of the table above was 1e-3."""


@dataclass(frozen=True, eq=False)
class ClassBlocks:
    """Symmetric 2 x 2 matrices on (tau_j, gamma_j), one for each class."""

    tau: Floats
    cross: Floats
    gamma: Floats

    def times(self, v: Floats) -> Floats:
        """Return the product with v, ordered as theta."""
        t, g = np.split(v, 2)
        return np.concatenate([self.tau * t + self.cross * g, self.cross * t + self.gamma * g])

    def inverse(self) -> ClassBlocks:
        """Return the inverses; a block that is all but singular first loses its cross term."""
        tau, gamma = np.maximum(self.tau, TINY), np.maximum(self.gamma, TINY)
        cross = self.cross / np.sqrt(tau) / np.sqrt(gamma)
        cross = np.where(cross**2 < 1.0 - 1e-12, cross, 0.0)
        rest = 1.0 - cross**2
        return ClassBlocks(
            1.0 / (rest * tau), -cross / rest / np.sqrt(tau) / np.sqrt(gamma), 1.0 / (rest * gamma)
        )


class LogPartitionOperator(LogPartition):
    """A(theta): value, gradient, diagonal blocks and Hessian products.

    `value_gradient` moves to a point; `product` and `blocks`, those of the Hessian, are there.
    """

    def __init__(
        self, log_odds: NDArray[Any], weight: Floats | None = None, *, n_jobs: int | None = None
    ) -> None:
        super().__init__(log_odds, weight, n_jobs=n_jobs)
        self._kept: dict[int, Floats] | None = (
            {} if 2 * log_odds.size <= MAX_KEPT_ELEMENTS else None
        )
        self._many_in_c = compiled.is_for_many(log_odds)
        self._logs = np.empty(self.n_samples) if self._many_in_c else None

    def value_gradient(self, theta: Floats) -> Derivatives:
        """Move to `theta` and return A with its gradient, without Hessian."""
        self._theta = np.array(theta)
        self._fill = partial(self._filled, self._theta)
        if self._many_in_c:
            sums = self._over_groups(self._moments_in_c)
        else:
            sums = self._over_chunks(self._moments, 1 + 6 * self.n_compared)
        tau, cross, gamma, tau2, cross2, gamma2 = np.split(sums[1:], 6)
        self._diagonal = ClassBlocks(tau, cross, gamma)
        self.blocks = ClassBlocks(tau - tau2, cross - cross2, gamma - gamma2)
        return Derivatives(float(sums[0]), np.concatenate([tau, cross]), NO_HESSIAN)

    def product(self, v: Floats) -> Floats:
        """Return the Hessian times `v`."""
        if self._many_in_c:
            return self._diagonal.times(v) - self._over_groups(partial(self._product_in_c, v))

        def part(start: int, buffer: Floats) -> Floats:
            a = self._fill(start, buffer)[0][:-1] if self._kept is None else self._kept[start]
            return a @ (v @ a)

        return self._diagonal.times(v) - self._over_chunks(part, len(v))

    def hessian(self, theta: Floats) -> Floats:
        """Return the whole Hessian at `theta`; see `MIN_CLASSES_FOR_SINGLE`."""
        if self.n_compared >= MIN_CLASSES_FOR_SINGLE:
            single = LogPartition(self.log_odds, self.weight, dtype=np.float32)
            found = single(theta).hessian
            if exceeds(found, MIN_EIGENVALUE_FOR_SINGLE):
                return found
        return self(theta).hessian

    def _over_groups(self, work: Callable[[int], Floats]) -> Floats:
        """Add ``work(first)`` over groups of rows, in an order that no thread changes."""
        return np.sum(list(ordered_map(work, self._groups, self.n_threads)), axis=0)

    def _place(self, first: int) -> tuple[int, int | None, Floats, int, int, Floats]:
        """Return where the group of rows from `first` is, theta, its size and A of each row."""
        assert self._logs is not None
        n, (odds, root) = min(self._group, self.n_samples - first), self._at
        stride, logs = self.log_odds.strides[0] // 8, self._logs[first : first + n]
        root = None if root is None else root + 8 * first
        return odds + 8 * first, root, self._theta, n, stride, logs

    def _moments_in_c(self, first: int) -> Floats:
        """Return what `_moments` does, of a group of rows, and note A of each."""
        return compiled.moments(*self._place(first))

    def _product_in_c(self, v: Floats, first: int) -> Floats:
        """Return ``sum a_i (a_i . v)`` of a group of rows."""
        return compiled.product(*self._place(first), np.ascontiguousarray(v))

    def _over_chunks(self, part: Callable[[int, Floats], Floats], size: int) -> Floats:
        """Add ``part(start, buffer)`` over chunks, in an order that no thread changes."""

        def work(first: int) -> Floats:
            total, last = np.zeros(size), min(self.n_samples, first + self._group)
            with borrow_buffer(
                self._spare, (2 * self.n_compared + 1, self._rows), np.float64
            ) as own:
                for start in range(first, last, self._rows):
                    total += part(start, own)
            return total

        with one_blas_thread():
            return np.sum(list(ordered_map(work, self._groups, self.n_threads)), axis=0)

    def _moments(self, start: int, buffer: Floats) -> Floats:
        """Return the value and the sums that make gradient, D and blocks; keep the a_i."""
        stack, odds, root = self._fill(start, buffer)
        a, (g, gl) = stack[:-1], np.split(stack[:-1], 2)
        if self._kept is not None:
            np.copyto(self._kept.setdefault(start, np.empty(a.shape)), a)
        squares = [np.einsum("ji,ji->j", *pair) for pair in ((g, g), (g, gl), (gl, gl))]
        first = a @ root
        gl *= odds
        return np.concatenate([[stack[-1] @ root], first, gl @ root, *squares])


class LikelihoodOperator:
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
        self.partition, self.statistic, self.penalty = partition, statistic, penalty
        self.centre = np.zeros(len(statistic)) if centre is None else centre
        self.free = np.ones(len(statistic)) if free is None else free.astype(np.float64)
        self.first_blocks: ClassBlocks | None = None

    def value_gradient(self, theta: Floats) -> Derivatives:
        """Move to `theta`; return value and gradient, 0 where a parameter is fixed."""
        terms = self.partition.value_gradient(theta)
        blocks, (tau, gamma) = self.partition.blocks, np.split(self.free, 2)
        self.first_blocks = self.first_blocks or blocks
        self._inverse = ClassBlocks(
            np.where(tau > 0.0, blocks.tau + self.penalty, 1.0),
            blocks.cross * tau * gamma,
            np.where(gamma > 0.0, blocks.gamma + self.penalty, 1.0),
        ).inverse()
        away = theta - self.centre
        value = terms.value - float(theta @ self.statistic)
        gradient = self.free * (terms.gradient - self.statistic + self.penalty * away)
        return Derivatives(value + 0.5 * self.penalty * float(away @ away), gradient, NO_HESSIAN)

    def product(self, v: Floats) -> Floats:
        """Return the Hessian times `v`, a direction in the free parameters."""
        return self.free * (self.partition.product(v) + self.penalty * v)

    def precondition(self, v: Floats) -> Floats:
        """Return v divided by the diagonal blocks of the Hessian."""
        return self._inverse.times(v)

    def hessian(self, theta: Floats) -> Floats:
        """Return the whole Hessian at `theta`, fixed parameters and penalty included."""
        hessian = self.partition.hessian(theta)
        hessian[np.diag_indices_from(hessian)] += self.penalty
        return hessian


MAX_GRADIENT_SHARE = 0.1
"""Largest part of the gradient that conjugate gradients may leave."""
MIN_GRADIENT_SHARE = 1e-5
"""Smallest part of the gradient that they are asked to leave."""
PCG_DECREMENT_TOL = 1e-7
"""Decrement from which a solution to `MIN_GRADIENT_SHARE` leaves less than the tolerance."""
MAX_FINAL_DECREMENT_RATIO = 10.0
"""How many times `PCG_DECREMENT_TOL` the preconditioner's decrement may be in what may be the last
iteration.
"""
MAX_HESSIAN_PRODUCTS = 500
"""Hessian products in one iteration."""

MIN_CLASSES_FOR_PCG = 120
"""Classes from which this is faster than a Newton step with its Hessian."""
MAX_PARAMETERS_FOR_HESSIAN = 5_000
"""Parameters up to which the whole Hessian is computed: 200 MB at that number."""


def minimize_pcg(
    objective: LikelihoodOperator, start: Floats, *, max_iter: int = MAX_ITER
) -> Solution:
    """Minimise `objective` from `start`; the terms hold no Hessian."""
    solve = Directions(objective)
    return minimize(
        objective.value_gradient,
        start,
        tol=PCG_DECREMENT_TOL,
        max_iter=max_iter,
        solve=solve,
    )


class Directions:
    """Step 1 with its memory: the last gradient's size, and the products used."""

    def __init__(self, objective: LikelihoodOperator) -> None:
        self.objective, self.size, self.used = objective, np.inf, 0

    def __call__(self, terms: Derivatives) -> Floats:
        """Return the direction, solved for as finely as the last decrease warrants."""
        size = float(terms.gradient @ self.objective.precondition(terms.gradient))
        ratio = (
            MIN_GRADIENT_SHARE
            if size <= MAX_FINAL_DECREMENT_RATIO * PCG_DECREMENT_TOL
            else size / self.size
        )
        self.size = size
        direction, n_products = conjugate_gradients(
            self.objective.product,
            self.objective.precondition,
            -terms.gradient,
            min(MAX_GRADIENT_SHARE, max(MIN_GRADIENT_SHARE, ratio)),
        )
        self.used += n_products
        return direction


def conjugate_gradients(
    product: Callable[[Floats], Floats],
    precondition: Callable[[Floats], Floats],
    right: Floats,
    part: float,
) -> tuple[Floats, int]:
    """Return a solution of ``H x = right`` with that part of the residual left, and the products.

    The residual is measured as the preconditioner does. Where the curvature is lost in rounding the
    search ends with what it has.
    """
    x = np.zeros_like(right)
    residual, scaled = right.copy(), precondition(right)
    size = goal = float(residual @ scaled)
    goal *= part * part
    p = scaled
    for used in range(1, MAX_HESSIAN_PRODUCTS + 1):
        if size <= goal:
            return x, used - 1
        image = product(p)
        curvature = float(p @ image)
        if not curvature > 0.0:
            return (x if used > 1 else scaled), used
        step = size / curvature
        x += step * p
        residual -= step * image
        scaled = precondition(residual)
        size, last = float(residual @ scaled), size
        p = scaled + (size / last) * p
    return x, MAX_HESSIAN_PRODUCTS


def has_whole_hessian(n_parameters: int) -> bool:
    """Whether the Hessian of so many parameters, fixed ones included, is computed at all."""
    return n_parameters <= MAX_PARAMETERS_FOR_HESSIAN


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
    hessian: bool = True,
    n_jobs: int | None = None,
) -> PCGFit:
    """Minimise ``A(theta) - theta . s + penalty/2 |theta - centre|^2`` over many classes.

    Parameters that are not free stay at `start`. ``hessian=True`` asks for the whole Hessian at the
    estimate, where it is not too large.
    """
    partition = LogPartitionOperator(log_odds, weight, n_jobs=n_jobs)
    objective = LikelihoodOperator(partition, statistic, penalty=penalty, centre=centre, free=free)
    solution = minimize_pcg(objective, start)
    wanted = hessian and has_whole_hessian(len(statistic))
    whole = objective.hessian(solution.x) if wanted else None
    assert objective.first_blocks is not None
    return PCGFit(solution, whole, partition.blocks, objective.first_blocks)
