"""The negative log likelihood for many classes: Hessian products instead of Hessians.

With ``a_i = (g_1i, ..., g_Ki, g_1i l_1i, ..., g_Ki l_Ki)`` and D made of the 2 x 2 blocks
``sum_i w_i g_ji [[1, l_ji], [l_ji, l_ji^2]]`` on (tau_j, gamma_j):

====================  ==================================================================
Hessian               ``H = D - sum_i w_i a_i a_i'``
product               ``H v = D v - sum_i w_i a_i (a_i . v)``, no matrix
blocks                the 2 x 2 blocks of H on (tau_j, gamma_j): the preconditioner
====================  ==================================================================

Value, gradient, D and the blocks are computed in float64. The ``a_i`` are kept for the products, in
float64 while they are few and in float32 when they are many: products only steer the search. Where
a search among very many has ended, the whole Hessian is made of the blocks and of products of the
a_i that were kept: off its blocks it is good to float32's digits, relative to each element, and
where its smallest eigenvalue could feel that it is computed anew in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._ground.linalg import exceeds
from .._ground.results import Floats
from .._ground.threads import borrowed, one_blas_thread, ordered_map
from .kernel import (
    CHUNK_ELEMENTS,
    MOST_GROUPS,
    SAFE,
    SAFE_FLOAT32,
    LogPartition,
    Terms,
    softmax_against_zero,
)

KEPT_IN_FLOAT64 = 2**20
"""Numbers a_i, n times 2 K, up to which they are kept in float64."""
MOST_KEPT = 2**28
"""Numbers beyond which they are computed anew for each product."""
LARGEST_IN_FLOAT32 = 1e6
"""Log odds beyond which float32 is not used."""
NO_HESSIAN: Floats = np.empty((0, 0))
"""Stands in `Terms` where no Hessian was computed."""
DEAR_HESSIAN = 2e9
"""``n K^2`` from which the whole Hessian is made of what was kept."""
HESSIAN_GROUPS = 4
"""Parts of the whole Hessian that are kept apart and added in order."""
SURELY_DEFINITE = 1e-4
"""Smallest eigenvalue, on the scale of the diagonal, that float32 products cannot blur: they are
off by some 1e-7 on that scale."""
TINY = 1e-290


@dataclass(frozen=True, eq=False)
class Blocks:
    """Symmetric 2 x 2 matrices on (tau_j, gamma_j), one for each class."""

    tau: Floats
    cross: Floats
    gamma: Floats

    def times(self, v: Floats) -> Floats:
        """Return the product with v, ordered as theta."""
        t, g = np.split(v, 2)
        return np.concatenate([self.tau * t + self.cross * g, self.cross * t + self.gamma * g])

    def inverse(self) -> Blocks:
        """Return the inverses; a block that is all but singular first loses its cross term."""
        tau, gamma = np.maximum(self.tau, TINY), np.maximum(self.gamma, TINY)
        cross = self.cross / np.sqrt(tau) / np.sqrt(gamma)
        cross = np.where(cross**2 < 1.0 - 1e-12, cross, 0.0)
        rest = 1.0 - cross**2
        return Blocks(
            1.0 / (rest * tau), -cross / rest / np.sqrt(tau) / np.sqrt(gamma), 1.0 / (rest * gamma)
        )


class LogPartitionOperator:
    """A(theta): value, gradient, diagonal blocks and Hessian products; see `LogPartition`.

    `value_gradient` moves to a point, and the other methods answer for that point.
    """

    def __init__(
        self, log_odds: NDArray[Any], weight: Floats | None = None, *, n_jobs: int | None = None
    ) -> None:
        self.log_odds, self.weight = log_odds, weight
        self.n_compared, self.n_samples = k, n = log_odds.shape
        self.whole = LogPartition(log_odds, weight, n_jobs=n_jobs)
        self.theta: Floats = np.full(2 * k, np.nan)
        self._rows = min(n, max(256, CHUNK_ELEMENTS // k))
        self._group = self._rows * -(-n // (self._rows * MOST_GROUPS))
        self._root = np.ones(n) if weight is None else np.sqrt(weight)
        self._spare: dict[Any, list[NDArray[Any]]] = {np.float64: [], np.float32: []}
        few = 2 * k * n <= KEPT_IN_FLOAT64 or self.whole.largest > LARGEST_IN_FLOAT32
        self._dtype: Any = np.float64 if few else np.float32
        self._kept: dict[int, NDArray[Any]] | None = {} if 2 * k * n <= MOST_KEPT else None

    def value_gradient(self, theta: Floats) -> Terms:
        """Move to `theta` and return A with its gradient, without Hessian."""
        self.theta = np.array(theta, dtype=np.float64)
        self._bounded = self.whole.is_below(SAFE, theta)
        sums = self._sum(self._moments, 1 + 6 * self.n_compared, np.float64)
        tau, cross, gamma, tau2, cross2, gamma2 = np.split(sums[1:], 6)
        self._diagonal = Blocks(tau, cross, gamma)
        self._blocks = Blocks(tau - tau2, cross - cross2, gamma - gamma2)
        return Terms(float(sums[0]), np.concatenate([tau, cross]), NO_HESSIAN)

    def blocks(self) -> Blocks:
        """Return the diagonal blocks of the Hessian."""
        return self._blocks

    def product(self, v: Floats) -> Floats:
        """Return the Hessian times `v`."""
        safe = self._kept is not None or self.whole.is_below(SAFE_FLOAT32, self.theta)
        dtype = self._dtype if safe else np.float64
        scale = float(np.abs(v).max()) or 1.0
        direction = (v / scale).astype(dtype)

        def part(start: int, buffer: NDArray[Any]) -> Floats:
            a = self._fill(start, buffer)[0] if self._kept is None else self._kept[start]
            return a @ (direction @ a)

        return self._diagonal.times(v) - scale * self._sum(part, len(v), dtype)

    def hessian(self, theta: Floats, *, near: bool = False) -> Floats:
        """Return the whole Hessian at `theta`: 4 K^2 numbers, 4 n K^2 operations.

        ``near=True`` promises that the point last moved to is as good; `theta` is then not looked
        at, and the a_i kept there are used.
        """
        if near and self._kept is not None and self.n_samples * self.n_compared**2 >= DEAR_HESSIAN:
            hessian = self._kept_hessian()
            if self._dtype is np.float64 or exceeds(hessian, SURELY_DEFINITE):
                return hessian
        return self.whole(theta).hessian

    def _kept_hessian(self) -> Floats:
        """Return the Hessian at the last point out of blocks and kept a_i."""
        assert self._kept is not None
        k, kept, starts = self.n_compared, self._kept, sorted(self._kept)
        together = max(1, -(-2 * k // self._rows))
        batches = [starts[i : i + together] for i in range(0, len(starts), together)]

        def work(group: int) -> Floats:
            total = np.zeros((2 * k, 2 * k))
            for batch in batches[group::HESSIAN_GROUPS]:
                a = np.concatenate([kept[start] for start in batch], axis=1)
                total -= a @ a.T
            return total

        with one_blas_thread():
            groups = range(min(HESSIAN_GROUPS, len(batches)))
            parts = list(ordered_map(work, groups, self.whole.n_threads))
        for part in parts[1:]:
            parts[0] += part
        hessian, j = parts[0], np.arange(k)
        hessian[j, j], hessian[j + k, j + k] = self._blocks.tau, self._blocks.gamma
        hessian[j, j + k] = hessian[j + k, j] = self._blocks.cross
        return hessian

    def _sum(self, part: Callable[[int, NDArray[Any]], Floats], size: int, dtype: Any) -> Floats:
        """Add ``part(start, buffer)`` over chunks, in an order that no thread changes."""

        def work(group: int) -> Floats:
            total, first = np.zeros(size), group * self._group
            with borrowed(self._spare[dtype], (3 * self.n_compared + 1, self._rows), dtype) as own:
                for start in range(first, min(self.n_samples, first + self._group), self._rows):
                    total += part(start, own)
            return total

        with one_blas_thread():
            groups = range(-(-self.n_samples // self._group))
            parts = list(ordered_map(work, groups, self.whole.n_threads))
        return np.sum(parts, axis=0)

    def _moments(self, start: int, buffer: NDArray[Any]) -> Floats:
        """Return the value and the sums that make gradient, D and blocks; keep the a_i."""
        k, a, odds, log_total = self.n_compared, *self._fill(start, buffer)
        root = self._root[start : start + self._rows].astype(buffer.dtype, copy=False)
        g, gl = a[:k], a[k:]
        if self._kept is not None:
            kept = self._kept.setdefault(start, np.empty(0, self._dtype))
            if kept.size == 0:
                kept = self._kept[start] = np.empty(a.shape, self._dtype)
            np.copyto(kept, a, casting="same_kind")
        squares = [np.einsum("ji,ji->j", *pair) for pair in ((g, g), (g, gl), (gl, gl))]
        first = a @ root
        gl *= odds
        return np.concatenate([[log_total @ root], first, gl @ root, *squares])

    def _fill(
        self, start: int, buffer: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return ``sqrt(w_i) a_i``, the log odds and ``sqrt(w_i) log-sum-exp`` of a chunk."""
        k, odds = self.n_compared, self.log_odds[:, start : start + self._rows]
        m, theta = odds.shape[1], self.theta.astype(buffer.dtype, copy=False)
        a, total = buffer[: 2 * k, :m], buffer[3 * k, :m]
        if odds.dtype != buffer.dtype:
            np.copyto(buffer[2 * k : 3 * k, :m], odds, casting="same_kind")
            odds = buffer[2 * k : 3 * k, :m]
        softmax_against_zero(theta, odds, a[:k], total=total, bounded=self._bounded)
        if self.weight is not None:
            root = self._root[start : start + self._rows].astype(buffer.dtype, copy=False)
            a[:k] *= root
            total *= root
        np.multiply(a[:k], odds, out=a[k:])
        return a, odds, total


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
        self.first_blocks: Blocks | None = None

    def value_gradient(self, theta: Floats) -> Terms:
        """Move to `theta`; return value and gradient, 0 where a parameter is fixed."""
        terms = self.partition.value_gradient(theta)
        blocks, (tau, gamma) = self.partition.blocks(), np.split(self.free, 2)
        self.first_blocks = self.first_blocks or blocks
        self._inverse = Blocks(
            np.where(tau > 0.0, blocks.tau + self.penalty, 1.0),
            blocks.cross * tau * gamma,
            np.where(gamma > 0.0, blocks.gamma + self.penalty, 1.0),
        ).inverse()
        away = theta - self.centre
        value = terms.value - float(theta @ self.statistic)
        gradient = self.free * (terms.gradient - self.statistic + self.penalty * away)
        return Terms(value + 0.5 * self.penalty * float(away @ away), gradient, NO_HESSIAN)

    def product(self, v: Floats) -> Floats:
        """Return the Hessian times `v`, a direction in the free parameters."""
        return self.free * (self.partition.product(v) + self.penalty * v)

    def precondition(self, v: Floats) -> Floats:
        """Return v divided by the diagonal blocks of the Hessian."""
        return self._inverse.times(v)

    def hessian(self, theta: Floats, *, near: bool = False) -> Floats:
        """Return the whole Hessian at `theta` (or `near`), fixed parameters, penalty included."""
        hessian = self.partition.hessian(theta, near=near)
        hessian[np.diag_indices_from(hessian)] += self.penalty
        return hessian
