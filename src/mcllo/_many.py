"""Fitting many classes: products instead of Hessians, and the whole Hessian once, if at all.

A Newton step needs ``4 n K^2`` operations for the Hessian and ``8 K^3 / 3`` for its factorisation;
conjugate gradients need about 30 products of ``8 n K`` for a whole fit. From about `MANY` classes
the second is faster. The covariance needs the Hessian once, at the estimate; beyond
`MOST_PARAMETERS` even one is too large, and the information is known by class only: 2 x 2 blocks,
of which the inverse is **not** a covariance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ._kernel import ROUGH_PAYS
from ._operator import Blocks, LikelihoodOperator, LogPartitionOperator
from ._pcg import PCGSolution, minimize_pcg

Floats = NDArray[np.float64]

MANY = 120
"""Classes from which this is faster than a Newton step with its Hessian."""
MOST_PARAMETERS = 5_000
"""Parameters up to which the whole Hessian is computed: 200 MB at that number."""


def are_many(n_classes: int) -> bool:
    """Whether so many classes are fitted by products."""
    return n_classes >= MANY


def has_whole_hessian(n_parameters: int) -> bool:
    """Whether the Hessian of so many parameters, fixed ones included, is computed at all."""
    return n_parameters <= MOST_PARAMETERS


@dataclass(frozen=True, eq=False)
class ManyFit:
    """Where the fit of many classes stopped.

    Attributes
    ----------
    solution : PCGSolution
        In all parameters; fixed ones are those of the start.
    hessian : ndarray of shape (2 K, 2 K) or None
        At the estimate, penalty included; None where it was not asked for or is too large.
    blocks, start_blocks : Blocks
        The 2 x 2 blocks on (tau_j, gamma_j) without penalty, at the last evaluation and the start.
    information : {'full', 'blocks'}
        What is known of the Hessian. From 'blocks' no standard error follows.
    """

    solution: PCGSolution
    hessian: Floats | None
    blocks: Blocks
    start_blocks: Blocks

    @property
    def information(self) -> Literal["full", "blocks"]:
        """Whether the whole Hessian was computed."""
        return "blocks" if self.hessian is None else "full"


def fit_many(
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
) -> ManyFit:
    """Minimise ``A(theta) - theta . s + penalty/2 |theta - centre|^2`` over many classes.

    Parameters
    ----------
    log_odds, weight, n_jobs
        As in `LogPartition`.
    statistic : ndarray of shape (2 K,)
        s.
    start : ndarray of shape (2 K,)
        Where to begin, and the value of parameters that are not free.
    free, penalty, centre
        As in `LikelihoodOperator`.
    hessian : bool
        Whether to compute the whole Hessian at the estimate, where it is not too large.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(size=(2, 500))
    >>> found = fit_many(log_odds, np.array([160.0, 170.0, 40.0, 50.0]), start=np.zeros(4))
    >>> found.solution.converged, found.information
    (True, 'full')
    """
    partition = LogPartitionOperator(log_odds, weight, n_jobs=n_jobs)
    objective = LikelihoodOperator(partition, statistic, penalty=penalty, centre=centre, free=free)
    with np.errstate(over="ignore", invalid="ignore"):  # on the way to a limit; never at the end
        solution = minimize_pcg(objective, start, rough=log_odds.size >= ROUGH_PAYS)
    wanted = hessian and has_whole_hessian(len(statistic))
    whole = objective.hessian(solution.x, near=solution.converged) if wanted else None
    assert objective.first_blocks is not None
    return ManyFit(solution, whole, partition.blocks(), objective.first_blocks)
