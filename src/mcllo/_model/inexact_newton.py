"""Fitting many classes: inexact Newton by products, and the whole Hessian once, if at all.

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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._utils.results import Floats
from .hessian_products import ClassBlocks, LikelihoodOperator, LogPartitionOperator
from .kernel import Derivatives
from .newton import MAX_ITER, Solution, minimize

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
        skip_hessian_check=True,
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
