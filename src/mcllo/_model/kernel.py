"""The kernel: A(theta) with gradient and Hessian, in chunks of rows that stay in cache.

The names and shapes are those of `_model/likelihood`. With ``a_i = (g_1i .. g_Ki, g_1i l_1i .. g_Ki
l_Ki)``:

====================  ==================================================================
value                 ``sum_i w_i log(1 + sum_j exp eta_ji)``
linear sums           ``sum_i w_i (g_ji, g_ji l_ji, g_ji l_ji^2)``: gradient and diagonals
gram                  ``sum_i w_i a_i a_i'``, the Hessian less its diagonals
====================  ==================================================================

`LogPartition` has them by one of two ways that agree to 1e-12: in C, where it was compiled
(`_model/compiled`, ``kernel.c``), and as here. A chunk is one buffer ``[G; GL; log-sum-exp]``,
filled in place and summed by two products. The time goes to exp (two thirds of it where the
processor has no vector exp for float64) and to the gram product, so a row's eta is not shifted
before exp unless it is large; what others have changes no digit of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._utils.parallel import borrow_buffer, one_blas_thread, ordered_map, threads_for
from .._utils.results import Floats
from . import compiled

CHUNK_ELEMENTS = 75_000
"""Elements of one (K, rows) buffer: small enough that the buffers of a chunk stay in cache."""
MAX_CHUNK_ROWS = 1000
"""Rows of a chunk of many classes: a chunk of 2 K rows would be tens of megabytes."""
MAX_CHUNK_GROUPS = 32
"""Groups of chunks whose sums are kept apart and added in order."""
MAX_GROUP_ELEMENTS = 2**22
"""Elements of the K times K sums of all groups together, about."""
MAX_GROUP_ELEMENTS_IN_C = 2**16
"""The same in C, which needs no small chunks: fewer groups."""
SUBSAMPLE_STRIDE = 7
"""A subsampled Hessian takes one of so many groups."""
MIN_ROWS_PER_PARAMETER = 5
"""Rows a parameter from which one of `SUBSAMPLE_STRIDE` groups is enough."""
WHOLE_HESSIAN = 0
"""Value of `hessian_part`: the whole Hessian is computed."""
DIAGONAL_ONLY = 1
"""Value of `hessian_part`: the Hessian's diagonal is computed, not the rest of it."""
NO_SECOND_DERIVATIVES = 2
"""Value of `hessian_part`: nothing of the Hessian is computed."""
MAX_SAFE_ETA = 600.0
"""Largest eta whose exponentials, thousands of them, can be added without overflow."""
MAX_SAFE_ETA_FLOAT32 = 80.0
"""The same in single precision."""
MAX_SAFE_ABS_ETA = 300.0
"""Largest eta of either sign where no probability comes near exp(MIN_EXPONENT)."""
MIN_EXPONENT = -708.0
"""exp of less is 0, as in C: what comes next would be numbers of fewer and fewer digits."""
DIAGONAL_ROUNDING_FACTOR = 1.0 + 2e-15
"""The Hessian is a positive diagonal less a gram matrix; the diagonal is enlarged by more than its
rounding, so that the difference stays positive definite where rows are saturated."""


@dataclass(frozen=True, eq=False)
class Derivatives:
    """Value, gradient and Hessian of a function that is a sum over rows; sums of rows add."""

    value: float
    gradient: Floats
    hessian: Floats

    def __add__(self, other: Derivatives) -> Derivatives:
        value, gradient = self.value + other.value, self.gradient + other.gradient
        return Derivatives(value, gradient, self.hessian + other.hessian)


class LogPartition:
    """``theta -> Derivatives`` of A(theta) for fixed log odds (K, n).

    Rows are worked through in chunks that stay in cache, with buffers that are made once. Chunks
    are gathered in groups that depend on the shape alone, and groups are added in order: the number
    of threads changes no bit of the result. Several threads may call at the same time. `n_jobs` is
    the number of threads over the rows, -1 for as many as CPUs; by default as many as pay. Tables
    of one shape may share `buffers`. In another `dtype` than float64 all but the value is summed in
    it, in NumPy: the exp of single precision takes a quarter of the time.
    """

    def __init__(
        self,
        log_odds: NDArray[Any],
        weight: Floats | None = None,
        *,
        n_jobs: int | None = None,
        buffers: list[Floats] | None = None,
        dtype: Any = np.float64,
    ) -> None:
        self.log_odds, self.weight = log_odds, weight
        self.n_compared, self.n_samples = k, n = log_odds.shape
        self.n_threads = threads_for(log_odds.size, n_jobs)
        self._rows = min(n, max(256, CHUNK_ELEMENTS // k, min(2 * k, MAX_CHUNK_ROWS)))
        self._root = None if weight is None else np.sqrt(weight)
        self._in_c = compiled.is_for(log_odds)
        self._at = compiled.address(log_odds), compiled.address(self._root)
        most_groups = (MAX_GROUP_ELEMENTS_IN_C if self._in_c else MAX_GROUP_ELEMENTS) // (k * k)
        most_groups = max(
            SUBSAMPLE_STRIDE + 1 if self._in_c else 2, min(MAX_CHUNK_GROUPS, most_groups)
        )
        self._group = self._rows * -(-n // (self._rows * most_groups))
        self._groups = range(0, n, self._group)
        self._spare: list[Floats] = [] if buffers is None else buffers
        self._dtype = dtype

    def __call__(self, theta: Floats) -> Derivatives:
        """Return value, gradient and Hessian at `theta`."""
        return self._sum(theta, self._groups)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.log_odds, self.weight)  # addresses are this process's

    def without_hessian(self, theta: Floats, *, diagonal: bool = True) -> Derivatives:
        """Return value, gradient and, but for NumPy where it is not asked for, H's diagonal."""
        return self._sum(theta, self._groups, DIAGONAL_ONLY if diagonal else NO_SECOND_DERIVATIVES)

    def subsampled_hessian(self, theta: Floats) -> Floats:
        """Return the Hessian estimated from every seventh group of rows, where they are many."""
        enough = 2 * MIN_ROWS_PER_PARAMETER * self.n_compared * SUBSAMPLE_STRIDE <= self.n_samples
        few = self._groups[::SUBSAMPLE_STRIDE] if enough else self._groups
        n_rows = sum(min(self._group, self.n_samples - first) for first in few)
        return self._sum(theta, few).hessian * (self.n_samples / n_rows)

    def _sum(self, theta: Floats, groups: range, hessian_part: int = WHOLE_HESSIAN) -> Derivatives:
        """Return the sum over groups, in order."""
        if len(groups) == 1 and self._in_c:
            return self._by_c(theta, hessian_part, 0)
        work = partial(self._by_c if self._in_c else self._by_numpy, theta, hessian_part)
        with one_blas_thread(4 * self.n_compared**2 * self._rows):
            first, *others = ordered_map(work, groups, self.n_threads)
        for other in others:  # in place: of many classes a Hessian is tens of megabytes
            whole = np.add(first.hessian, other.hessian, out=first.hessian)
            first = Derivatives(first.value + other.value, first.gradient + other.gradient, whole)
        return first

    def _by_c(self, theta: Floats, hessian_part: int, first: int) -> Derivatives:
        """Return value, gradient and Hessian of the group of rows that begins at `first`, by C."""
        n, (odds, root) = min(self._group, self.n_samples - first), self._at
        root = None if root is None else root + 8 * first
        stride = self.log_odds.strides[0] // 8
        return Derivatives(
            *compiled.terms(odds + 8 * first, root, theta, n, stride, hessian_part != WHOLE_HESSIAN)
        )

    def _by_numpy(self, theta: Floats, hessian_part: int, first: int) -> Derivatives:
        """Return value, gradient and Hessian of that group of rows, by NumPy."""
        k, value, last = self.n_compared, 0.0, min(self.n_samples, first + self._group)
        linear, own, squares = np.zeros(2 * k), np.zeros(2 * k), np.zeros(k)
        gram = np.zeros((2 * k, 2 * k))
        with borrow_buffer(self._spare, (2 * k + 1, self._rows), self._dtype) as buffer:
            for start in range(first, last, self._rows):
                stack, odds, root = self._filled(theta, start, buffer)
                value += float(stack[-1] @ root.astype(np.float64))
                linear += stack[:-1] @ root
                if hessian_part == NO_SECOND_DERIVATIVES:
                    continue
                whole = odds if self._root is None else odds * root
                squares += np.einsum("ji,ji->j", stack[k:-1], whole)
                if hessian_part != WHOLE_HESSIAN:
                    own += np.einsum("ji,ji->j", stack[:-1], stack[:-1])
                else:
                    gram += stack[:-1] @ stack[:-1].T
        if hessian_part != WHOLE_HESSIAN:
            second = np.concatenate([linear[:k], squares])
            return Derivatives(value, linear, DIAGONAL_ROUNDING_FACTOR * second - own)
        hessian, j = np.negative(gram, out=gram), np.arange(k)
        hessian[j, j] += DIAGONAL_ROUNDING_FACTOR * linear[:k]
        hessian[k + j, k + j] += DIAGONAL_ROUNDING_FACTOR * squares
        hessian[j, k + j] += linear[k:]
        hessian[k + j, j] += linear[k:]
        return Derivatives(value, linear, hessian)

    def _filled(
        self, theta: Floats, start: int, buffer: Floats
    ) -> tuple[Floats, NDArray[Any], Floats]:
        """Return ``sqrt(w_i) (a_i, log-sum-exp)`` of a chunk, its log odds, and sqrt(w_i)."""
        k, odds = self.n_compared, self.log_odds[:, start : start + self._rows]
        stack, theta = buffer[:, : odds.shape[1]], theta.astype(buffer.dtype)
        g = stack[:k]
        np.multiply(odds, theta[k:, None], out=g)
        g += theta[:k, None]
        stack[-1] = softmax_with_reference(g)
        if self._root is None:
            root = np.ones(odds.shape[1], buffer.dtype)
        else:
            root = self._root[start : start + self._rows]
            stack[:k] *= root
            stack[-1] *= root
        np.multiply(stack[:k], odds, out=stack[k:-1])
        return stack, odds, root


def softmax_with_reference(eta: Floats, axis: int = 0) -> Floats:
    """Replace eta by ``softmax(eta, 0)``, less its last; return log-sum-exp."""
    top: Any = 0.0
    safe = MAX_SAFE_ETA if eta.dtype == np.float64 else MAX_SAFE_ETA_FLOAT32
    if eta.max() >= safe:
        top = eta.max(axis=axis, keepdims=True)
        top[top < safe] = 0.0
        eta -= top
    np.exp(eta, out=eta)
    total = eta.sum(axis=axis, keepdims=True)
    total += np.exp(-top)
    eta /= total
    logs = np.log(total, out=total)
    logs += top
    return logs.squeeze(axis)


def softmax(eta: Floats) -> Floats:
    """Replace `eta` by its softmax over classes, the first axis; return its ``log sum exp``."""
    found = compiled.softmax(eta)
    if found is not None:
        return found
    top: Any = 0.0
    single = eta.dtype != np.float64  # errors of exp add up over many rows; that of exp(0) is 0
    some = single or np.vdot(eta, eta) > MAX_SAFE_ABS_ETA**2  # a quick look, enough of few rows
    if some and (single or max(eta.max(), -eta.min()) > MAX_SAFE_ABS_ETA):
        top = eta.max(axis=0)
        if not single:  # what other rows have changes no digit
            top[(top <= MAX_SAFE_ABS_ETA) & (eta.min(axis=0) >= -MAX_SAFE_ABS_ETA)] = 0.0
        eta -= top
        if eta.min() < MIN_EXPONENT:
            eta[eta < MIN_EXPONENT] = -np.inf
    np.exp(eta, out=eta)
    total: Floats = np.add.reduce(eta, axis=0)
    eta /= total
    np.log(total, out=total)
    total += top
    return total


def predicted_probabilities(theta: Floats, odds: Floats) -> tuple[Floats, Floats]:
    """Return ``softmax(eta, 0)``, the baseline last, and log-sum-exp of the rows.

    Parameters (2K,) and log odds (K, n), or one set for each of B tables: (2K, B) and (K, B, n).
    """
    k, tau, gamma = len(odds), theta[: len(odds), ..., None], theta[len(odds) :, ..., None]
    eta = np.zeros((k + 1, *np.broadcast_shapes(odds.shape[1:], tau.shape[1:])))
    np.multiply(odds, gamma, out=eta[:k])
    eta[:k] += tau
    return eta, softmax(eta.reshape(k + 1, -1)).reshape(eta.shape[1:])


def log(x: Floats) -> Floats:
    """Replace `x` by its logarithms, and return it; C needs a fifth of NumPy's time."""
    return x if compiled.log(x) else np.log(x, out=x)
