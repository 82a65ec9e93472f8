"""The log partition A(theta) with its derivatives: the page that `kernel.c` does in one pass.

Names and shapes are those of `_model/likelihood`. With ``a_i = (g_1i .. g_Ki, g_1i l_1i .. g_Ki
l_Ki)``:

==================  ======================================================================
value               ``A = sum_i w_i log(1 + sum_j exp eta_ji)``
gradient            ``sum_i w_i a_i``
Hessian             ``[[diag t, diag c], [diag c, diag s]] - sum_i w_i a_i a_i'``, with
                    ``(t_j, c_j, s_j) = sum_i w_i g_ji (1, l_ji, l_ji^2)``
==================  ======================================================================

`LogPartition` takes them from C where it was compiled (`_model/compiled`), else from
`log_partition_derivatives`; the two agree to 1e-12. `softmax_in_place` is the package's one
softmax, `log_sum_exp` its one log-sum-exp.

Rows of a choice set offer some of the K classes each, and their log odds are log probabilities
(`_validation/choice_sets`). `offered`, a mask (K, n), says which: the others, and the reference
class, which no row offers, have probability 0. That path is NumPy's alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._utils.parallel import n_threads_for_size, one_blas_thread, ordered_map
from .._utils.results import Floats
from . import compiled

CHUNK_ELEMENTS = 75_000
"""Elements of one (K, rows) array, 0.6 MB: it stays in cache beside the others that are made of it.
A round number."""
MAX_PARTS = 32
"""Parts of the rows that threads share. A round number: more than most machines have processors."""
MAX_HESSIAN_ELEMENTS = 2**22
"""Elements K^2 of all parts together: their Hessians, each of 4 K^2, then take 128 MB."""
DIAGONAL_ROUNDING_FACTOR = 1.0 + 2e-15
"""The Hessian is a positive diagonal less a gram matrix; the diagonal is enlarged by more than its
rounding, so that the difference stays positive definite where rows are saturated."""


NO_HESSIAN: Floats = np.empty((0, 0))
"""Stands in `Derivatives` where no Hessian was computed."""


@dataclass(frozen=True, eq=False)
class Derivatives:
    """Value, gradient and Hessian of a function that is a sum over rows; sums of rows add."""

    value: float
    gradient: Floats
    hessian: Floats

    def __add__(self, other: Derivatives) -> Derivatives:
        value = self.value + other.value
        gradient = self.gradient + other.gradient
        hessian = self.hessian + other.hessian
        return Derivatives(value, gradient, hessian)


def log_partition_derivatives(
    theta: Floats,
    log_odds: NDArray[Any],
    root_weight: Floats | None = None,
    *,
    diagonal_only: bool = False,
    offered: NDArray[np.bool_] | None = None,
) -> Derivatives:
    """Return A with gradient and Hessian, or the Hessian's diagonal, in NumPy.

    Weights enter by their roots, which scale the ``a_i``: then the gram product is symmetric.
    """
    k, n = log_odds.shape
    if root_weight is None:
        root_weight = np.ones(n)
    value = 0.0
    gradient = np.zeros(2 * k)
    squares = np.zeros(k)
    gram = np.zeros(2 * k if diagonal_only else (2 * k, 2 * k))
    # Of many classes more rows at a time, or adding up the gram matrices takes longer than they do;
    # with 350 a test of 50,000 rows of 1,000 classes takes 1.48 GB, with 1,000 it took 1.55.
    # Of few, 2 K numbers a row stay in cache: with larger arrays, which the system hands out page
    # by page, a pass over 8,000 rows of 10 classes took 2.5 times as long.
    for rows in row_chunks(n, 2 * k, min_rows=min(2 * k, 350)):
        odds = log_odds[:, rows]
        root = root_weight[rows]
        offered_in_chunk = None if offered is None else offered[:, rows]
        g, log_sums = probabilities_and_log_sums(theta, odds, offered_in_chunk)
        a = np.empty((2 * k, len(root)))
        np.multiply(g[:k], root, out=a[:k])
        np.multiply(a[:k], odds, out=a[k:])
        value += float(log_sums @ root**2)
        gradient += a @ root
        squares += (a[k:] * odds) @ root
        gram += (a * a).sum(axis=1) if diagonal_only else a @ a.T
    tau_curvature = DIAGONAL_ROUNDING_FACTOR * gradient[:k]
    gamma_curvature = DIAGONAL_ROUNDING_FACTOR * squares
    if diagonal_only:
        return Derivatives(
            value, gradient, np.append(tau_curvature, gamma_curvature) - gram
        )
    hessian = np.negative(gram, out=gram)
    tau = np.arange(k)
    gamma = k + tau
    hessian[tau, tau] += tau_curvature
    hessian[tau, gamma] += gradient[k:]
    hessian[gamma, tau] += gradient[k:]
    hessian[gamma, gamma] += gamma_curvature
    return Derivatives(value, gradient, hessian)


class LogPartition:
    """``theta -> Derivatives`` of A(theta) for fixed log odds, shape (K, n).

    `n_jobs` is the number of threads over the rows, -1 for as many as CPUs; by default as many as
    pay. Threads share parts of the rows that depend on the shape alone, and parts are added in
    order: the number of threads changes no bit of the result.
    """

    def __init__(
        self,
        log_odds: NDArray[Any],
        weight: Floats | None = None,
        *,
        n_jobs: int | None = None,
        offered: NDArray[np.bool_] | None = None,
    ) -> None:
        self.log_odds = log_odds
        self.weight = weight
        self.offered = offered
        self.root_weight = None if weight is None else np.sqrt(weight)
        self.n_compared, self.n_samples = log_odds.shape
        self.n_threads = n_threads_for_size(log_odds.size, n_jobs)
        self.runs_in_c = offered is None and compiled.accepts_log_odds(log_odds)
        self.row_slices = _row_slices_for_threads(self.n_samples, self.n_compared)

    def __call__(self, theta: Floats) -> Derivatives:
        """Return value, gradient and Hessian at `theta`."""
        return self._sum_over_rows(theta, diagonal_only=False)

    def with_hessian_diagonal(self, theta: Floats) -> Derivatives:
        """Return value, gradient and the Hessian's diagonal, which stands for it."""
        return self._sum_over_rows(theta, diagonal_only=True)

    def _sum_over_rows(self, theta: Floats, *, diagonal_only: bool) -> Derivatives:
        def derivatives_of_rows(
            odds: NDArray[Any],
            root: Floats | None,
            offered: NDArray[np.bool_] | None = None,
        ) -> Derivatives:
            if self.runs_in_c:
                return Derivatives(
                    *compiled.log_partition_derivatives(
                        theta, odds, root, diagonal_only
                    )
                )
            return log_partition_derivatives(
                theta, odds, root, diagonal_only=diagonal_only, offered=offered
            )

        def derivatives_of_slice(rows: slice) -> Derivatives:
            root = None if self.root_weight is None else self.root_weight[rows]
            offered = None if self.offered is None else self.offered[:, rows]
            return derivatives_of_rows(self.log_odds[:, rows], root, offered)

        if self.runs_in_c and len(self.row_slices) == 1:
            return derivatives_of_rows(self.log_odds, self.root_weight)
        n_multiplications = (
            4 * self.n_compared**2 * self.n_samples // len(self.row_slices)
        )
        with one_blas_thread(n_multiplications):
            return reduce(
                add, ordered_map(derivatives_of_slice, self.row_slices, self.n_threads)
            )


def _row_slices_for_threads(n_samples: int, n_compared: int) -> list[slice]:
    """Return the parts of the rows that threads share: each worth a thread, and not too many."""
    n_parts = min(MAX_PARTS, max(2, MAX_HESSIAN_ELEMENTS // n_compared**2))
    worth_a_thread = max(256, CHUNK_ELEMENTS // n_compared)
    size = max(worth_a_thread, -(-n_samples // n_parts))
    return [slice(start, start + size) for start in range(0, n_samples, size)]


def row_chunks(
    n_samples: int, elements_per_row: int, min_rows: int = 256
) -> Iterator[slice]:
    """Return stretches of rows, of which `elements_per_row` numbers each stay in cache."""
    size = max(256, min_rows, CHUNK_ELEMENTS // elements_per_row)
    return (
        slice(start, min(n_samples, start + size))
        for start in range(0, n_samples, size)
    )


def probabilities_and_log_sums(
    theta: Floats, log_odds: Floats, offered: NDArray[np.bool_] | None = None
) -> tuple[Floats, Floats]:
    """Return ``softmax(eta, 0)``, the baseline last, and log-sum-exp of the rows.

    Parameters (2K,) and log odds (K, n), or one set for each of B tables: (2K, B) and (K, B, n).
    With `offered` (K, n) what a row does not offer has probability 0, and so has the baseline.
    """
    k = len(log_odds)
    tau = theta[:k, ..., None]
    gamma = theta[k:, ..., None]
    eta = np.zeros((k + 1, *np.broadcast_shapes(log_odds.shape[1:], tau.shape[1:])))
    np.multiply(log_odds, gamma, out=eta[:k])
    eta[:k] += tau
    if offered is not None:
        eta[:k][~offered] = -np.inf
        eta[k] = -np.inf
    log_sums = softmax_in_place(eta.reshape(k + 1, -1))
    return eta, log_sums.reshape(eta.shape[1:])


def softmax_in_place(eta: Floats) -> Floats:
    """Replace `eta` by its softmax over classes, the first axis; return its ``log sum exp``."""
    log_sums = compiled.softmax_in_place(eta)
    if log_sums is not None:
        return log_sums
    largest = eta.max(axis=0)
    eta -= largest
    # as in C: what comes below 3e-308 are numbers of fewer and fewer digits
    eta[eta < -708.0] = -np.inf
    np.exp(eta, out=eta)
    total = eta.sum(axis=0)
    eta /= total
    return np.asarray(largest + np.log(total), eta.dtype)


def log_sum_exp(eta: Floats) -> Floats:
    """Return ``log sum exp`` over classes, the first axis; `eta` is left as it is."""
    return softmax_in_place(np.array(eta, dtype=np.float64))


def log_in_place(values: Floats) -> Floats:
    """Replace `values` by its logarithms, and return it; C needs a fifth of NumPy's time."""
    if compiled.log_in_place(values):
        return values
    return np.log(values, out=values)
