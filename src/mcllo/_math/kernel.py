"""The kernel: A(theta) with gradient and Hessian, in chunks of rows that stay in cache.

The names and shapes are those of `_math/likelihood`. With ``a_i = (g_1i .. g_Ki, g_1i l_1i .. g_Ki
l_Ki)``:

====================  ==================================================================
value                 ``sum_i w_i log(1 + sum_j exp eta_ji)``
linear sums           ``sum_i w_i (g_ji, g_ji l_ji, g_ji l_ji^2)``: gradient and diagonals
gram                  ``sum_i w_i a_i a_i'``, the Hessian less its diagonals
====================  ==================================================================

A chunk is one buffer ``[G; GL; GLL; log-sum-exp]``, filled in place and summed by two products. The
time goes to exp (two thirds of it where the processor has no vector exp for float64) and to the
gram product, so eta is not shifted before exp unless it is large, and steps that need few digits
can be asked for in float32 (`LogPartition.rough`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._ground.results import Floats
from .._ground.threads import borrowed, one_blas_thread, ordered_map, threads_for

CHUNK_ELEMENTS = 75_000
"""Elements of one (K, rows) buffer: small enough that the buffers of a chunk stay in cache."""
MOST_GROUPS = 32
"""Groups of chunks whose sums are kept apart and added in order."""
GROUP_ELEMENTS = 2**22
"""Elements of all their Hessians, about."""
ROUGH_PAYS = 50_000
"""Elements (rows times classes) from which float32 steps are faster."""
SAFE, SAFE_FLOAT32 = 600.0, 60.0
"""Largest eta whose exponentials, thousands of them, can be added without overflow."""
ROUNDED_UP = 1.0 + 2e-15
"""The Hessian is a positive diagonal less a gram matrix; the diagonal is enlarged by more than its
rounding, so that the difference stays positive definite where rows are saturated."""


@dataclass(frozen=True, eq=False)
class Terms:
    """Value, gradient and Hessian of a function that is a sum over rows; sums of rows add."""

    value: float
    gradient: Floats
    hessian: Floats

    def __add__(self, other: Terms) -> Terms:
        value, gradient = self.value + other.value, self.gradient + other.gradient
        return Terms(value, gradient, self.hessian + other.hessian)


def softmax_against_zero(
    theta: Floats,
    odds: NDArray[Any],
    out: Floats,
    *,
    total: Floats | None = None,
    bounded: bool | None = None,
) -> Floats:
    """Write the non-baseline rows of ``softmax(eta, 0)`` to `out`; return ``logsumexp(eta, 0)``.

    The latter is written to `total` where given. ``bounded=True`` promises that every eta is below
    `SAFE`; by default that is looked up.
    """
    total, top = exponentials(theta, odds, out, total, bounded)
    out /= total
    np.log(total, out=total)
    if top is not None:
        total += top
    return total


def exponentials(
    theta: Floats,
    odds: NDArray[Any],
    out: Floats,
    total: Floats | None = None,
    bounded: bool | None = None,
) -> tuple[Floats, Floats | None]:
    """Write ``exp(eta - top)`` to `out`; return ``exp(-top) + sum exp(eta - top)`` and top.

    top is the largest eta of a row where it is above `SAFE` (in float32 `SAFE_FLOAT32`), and 0
    elsewhere, so that no row's digits depend on its company; None stands for 0 everywhere.
    """
    k, safe = len(odds), SAFE if out.dtype == np.float64 else SAFE_FLOAT32
    np.multiply(odds, theta[k:, None], out=out)
    out += theta[:k, None]
    if bounded is None:
        bounded = bool(out.max() < safe)
    if bounded:
        np.exp(out, out=out)
        total = np.add.reduce(out, axis=0, out=total)
        total += 1.0
        return total, None
    top = out.max(axis=0)
    top[top < safe] = 0.0
    out -= top
    np.exp(out, out=out)
    total = np.add.reduce(out, axis=0, out=total)
    total += np.exp(-top)
    return total, top


class LogPartition:
    """``theta -> Terms`` of A(theta) for fixed log odds (K, n), in float64 or float32.

    Rows are worked through in chunks that stay in cache, with buffers that are made once. Chunks
    are gathered in groups that depend on the shape alone, and groups are added in order: the number
    of threads changes no bit of the result. Several threads may call at the same time. `n_jobs` is
    the number of threads over the rows, -1 for as many as CPUs; by default as many as pay.
    """

    def __init__(
        self, log_odds: NDArray[Any], weight: Floats | None = None, *, n_jobs: int | None = None
    ) -> None:
        self.log_odds = log_odds
        self.weight = weight
        self.n_compared, self.n_samples = k, n = log_odds.shape
        self.n_threads = threads_for(log_odds.size, n_jobs)
        self._rows = min(n, max(256, CHUNK_ELEMENTS // k, 2 * k))
        most_groups = max(2, min(MOST_GROUPS, GROUP_ELEMENTS // (k * k)))
        self._group = self._rows * -(-n // (self._rows * most_groups))
        self._root = np.ones(self._rows) if weight is None else np.sqrt(weight)
        self._range = log_odds.min(axis=1), log_odds.max(axis=1)
        self._spare: dict[Any, list[NDArray[Any]]] = {np.float64: [], np.float32: []}

    def __call__(self, theta: Floats) -> Terms:
        """Return value, gradient and Hessian at `theta`."""
        return self._terms(theta, np.float64, self.is_below(SAFE, theta))

    def value(self, theta: Floats) -> float:
        """Return the value alone, in about two thirds of the time."""
        k, bounded = self.n_compared, self.is_below(SAFE, theta)

        def work(chunk: int) -> float:
            odds = self.log_odds[:, chunk * self._rows : (chunk + 1) * self._rows]
            with borrowed(self._spare[np.float64], (3 * k + 1, self._rows), np.float64) as own:
                g, total = own[:k, : odds.shape[1]], own[3 * k, : odds.shape[1]]
                top = exponentials(theta, odds, g, total, bounded)[1]
                np.log(total, out=total)
                if top is not None:
                    total += top
                if self.weight is None:
                    return float(total.sum())
                return float(total @ self.weight[chunk * self._rows : (chunk + 1) * self._rows])

        chunks = range(-(-self.n_samples // self._rows))
        return sum(ordered_map(work, chunks, self.n_threads))

    @property
    def rough(self) -> Callable[[Floats], Terms] | None:
        """The same in float32: good to some five digits, and several times as fast.

        None where the data are too small to gain; a value of NaN where float32 could overflow.
        """
        return self._rough if self.log_odds.size >= ROUGH_PAYS else None

    def _rough(self, theta: Floats) -> Terms:
        if not self.is_below(SAFE_FLOAT32, theta):
            return Terms(np.nan, np.zeros_like(theta), np.eye(len(theta)))
        return self._terms(theta, np.float32, True)

    @property
    def largest(self) -> float:
        """The largest absolute log odds."""
        low, high = self._range
        return float(max(-low.min(), high.max()))

    def is_below(self, bound: float, theta: Floats) -> bool:
        """Whether eta is below `bound` in every row, so that ``exp(eta)`` needs no shift."""
        k, (low, high) = self.n_compared, self._range
        top = theta[:k] + np.maximum(theta[k:] * low, theta[k:] * high)
        return bool(top.max() < bound)

    def _terms(self, theta: Floats, dtype: Any, bounded: bool) -> Terms:
        """Add the groups' sums in order, whoever computed them."""

        def work(group: int) -> _Sums:
            sums, first = _Sums(self.n_compared), group * self._group
            with borrowed(self._spare[dtype], (3 * self.n_compared + 1, self._rows), dtype) as own:
                for start in range(first, min(self.n_samples, first + self._group), self._rows):
                    self._add_chunk(sums, theta, start, own, bounded)
            return sums

        with one_blas_thread(4 * self.n_compared**2 * self._rows):
            groups = range(-(-self.n_samples // self._group))
            parts = list(ordered_map(work, groups, self.n_threads))
        for part in parts[1:]:
            parts[0].add(part)
        return parts[0].terms()

    def _add_chunk(
        self, sums: _Sums, theta: Floats, start: int, buffer: NDArray[Any], bounded: bool
    ) -> None:
        """Add the sums of the rows from `start`; the buffer's dtype is that of the arithmetic."""
        k, odds = self.n_compared, self.log_odds[:, start : start + self._rows]
        m, dtype = odds.shape[1], buffer.dtype
        stack, total = buffer[: 3 * k, :m], buffer[3 * k, :m]
        g, gl, gll = stack[:k], stack[k : 2 * k], stack[2 * k :]
        if odds.dtype != dtype:
            np.copyto(gll, odds, casting="same_kind")
            odds = gll
        softmax_against_zero(theta.astype(dtype, copy=False), odds, g, total=total, bounded=bounded)
        root = self._root[:m] if self.weight is None else self._root[start : start + m]
        root = root.astype(dtype, copy=False)
        if self.weight is not None:
            g *= root
            total *= root
        np.multiply(g, odds, out=gl)
        np.multiply(gl, odds, out=gll)
        sums.value += float(total @ root)
        sums.linear += stack @ root
        sums.gram += stack[: 2 * k] @ stack[: 2 * k].T


class _Sums:
    """``sum w log-sum-exp``; ``sum w (g, g l, g l^2)``; ``sum w a a'`` with ``a = (g, g l)``."""

    def __init__(self, n_compared: int) -> None:
        self.value = 0.0
        self.linear = np.zeros(3 * n_compared)
        self.gram = np.zeros((2 * n_compared, 2 * n_compared))

    def add(self, other: _Sums) -> None:
        self.value += other.value
        self.linear += other.linear
        self.gram += other.gram

    def terms(self) -> Terms:
        """Return the Terms; the sums are used up."""
        size = len(self.gram)
        k, hessian = size // 2, np.negative(self.gram, out=self.gram)
        flat = hessian.reshape(-1)
        flat[:: size + 1][:k] += ROUNDED_UP * self.linear[:k]
        flat[:: size + 1][k:] += ROUNDED_UP * self.linear[2 * k :]
        flat[k :: size + 1][:k] += self.linear[k : 2 * k]
        flat[k * size :: size + 1] += self.linear[k : 2 * k]
        return Terms(self.value, self.linear[: 2 * k].copy(), hessian)


def softmax(eta: NDArray[Any], axis: int = 0, *, bounded: bool | None = False) -> NDArray[Any]:
    """Replace `eta` by its softmax along `axis`; return its ``log sum exp``.

    The largest entries are taken off first. ``bounded=True`` promises that this is not needed;
    None asks for it only where an entry is larger than `SAFE`, either way.
    """
    if bounded is None:
        safe = SAFE if eta.dtype == np.float64 else SAFE_FLOAT32
        bounded = bool(eta.max(initial=0.0) < safe and eta.min(initial=0.0) > -safe)
    top = None if bounded else eta.max(axis=axis, keepdims=True)
    if top is not None:
        eta -= top
    np.exp(eta, out=eta)
    total: NDArray[Any] = eta.sum(axis=axis, keepdims=True)
    eta /= total
    np.log(total, out=total)
    if top is not None:
        total += top
    return np.squeeze(total, axis=axis)
