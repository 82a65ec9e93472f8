"""Many small fits, each with rows of its own, by one Newton iteration over all of them.

A study refits thousands of small tables. One table of 400 rows keeps the processor busy for less
time than Python needs to ask for it, so tables of one shape are stacked, ``log_odds[j, b, i]`` for
class j, table b and row i, and share every NumPy call. The formulas are those of
`_math/likelihood`, the steps those of `_math/newton`, which end earlier here (a study needs a
statistic, not its last digits); a table whose full step does not lower its value, or that needs
many steps, leaves the stack and is fitted by `minimize` alone. Steps from far away only lead
somewhere: they are computed in float32; the start and the place where a table is done never are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._fit.objective import free_parameters
from .._ground.linalg import solve_each
from .._ground.results import Codes, Floats
from .._math.likelihood import (
    ROUNDED_UP,
    Likelihood,
    LogPartition,
    identity_theta,
    softmax_against_zero,
)
from .._math.newton import ENOUGH_DECREASE, minimize

TOGETHER = 12
"""Newton steps that the stack takes; where a maximum exists four or five do."""
TOL, FAST = 1e-5, 1e-3
"""A table is done, with the step that it is at, when its decrement is below TOL and a FAST part of
the last one: the statistic is then good to 1e-8, the estimate to 1e-6 standard errors."""
SLOW_TOL = 1e-13
"""The decrement that ends a slow approach, as to a maximum at infinity."""
NEAR = 0.03
"""Decrement after which a table may be done at its next place."""
ROUGH_STEPS = 4
"""Steps that may be rough: whoever needs more is on the way to a maximum at infinity."""
ROUGHNESS = 1e-5
"""Relative error that is granted to values in float32."""


@dataclass(frozen=True, eq=False)
class SmallFits:
    """Fits of B tables: theta (B, 2K), statistics against the identity (B,), free parameters (B,).

    Where no maximum exists, theta is far out on the way to the supremum.
    """

    theta: Floats
    statistic: Floats
    df: Codes


def fit_together(log_odds: Floats, codes: Codes) -> SmallFits:
    """Fit the MCLLO model to B tables: log odds (K, B, n), and codes (B, n), K the baseline's."""
    k, tables, n = log_odds.shape
    s = statistics_of(log_odds, codes)
    theta, gain, settled = _newton(log_odds, s)
    for b in np.flatnonzero(~settled):
        theta[b], gain[b] = _alone(np.ascontiguousarray(log_odds[:, b]), s[b])
    free = free_parameters(log_odds.reshape(k * tables, n)).reshape(2 * k, tables)
    return SmallFits(theta, np.maximum(0.0, 2.0 * gain), free.sum(axis=0))


def statistics_of(log_odds: Floats, codes: Codes) -> Floats:
    """Return the sufficient statistic of each table, shape (B, 2K)."""
    k, tables, n = log_odds.shape
    row, column = np.divmod(np.flatnonzero(codes < k), n)
    own = codes[row, column]
    cells, size = row * k + own, tables * k
    counts = np.bincount(cells, minlength=size).reshape(tables, k)
    sums = np.bincount(cells, weights=log_odds[own, row, column], minlength=size)
    return np.hstack([counts, sums.reshape(tables, k)])


def evaluate(theta: Floats, log_odds: NDArray[Any]) -> tuple[Floats, Floats, Floats]:
    """Return A, its gradient and its Hessian for each table: `LogPartition` with one more axis.

    Arithmetic has the type of `log_odds`.
    """
    k, tables, n = log_odds.shape
    dtype = log_odds.dtype
    stack = np.empty((2 * k, 1, tables, n), dtype)
    across = theta.T[:, :, None].astype(dtype, copy=False)
    per_row = softmax_against_zero(across, log_odds[:, None], out=stack[:k])
    np.multiply(stack[:k, 0], log_odds, out=stack[k:, 0])
    by_table = stack[:, 0].transpose(1, 0, 2)
    gradient = by_table.sum(axis=2)
    hessian = -(by_table @ by_table.transpose(0, 2, 1))
    squares = np.einsum("jbi,jbi->bj", stack[k:, 0], log_odds)
    j = np.arange(k)
    hessian[:, j, j] += ROUNDED_UP * gradient[:, :k]
    hessian[:, j + k, j + k] += ROUNDED_UP * squares
    hessian[:, j, j + k] += gradient[:, k:]
    hessian[:, j + k, j] += gradient[:, k:]
    return per_row[0].sum(axis=1), gradient, hessian


def _newton(log_odds: Floats, s: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return estimates, gains in log likelihood, and which tables are done."""
    theta = np.tile(identity_theta(len(log_odds)), (len(s), 1))
    gain, settled = np.zeros(len(s)), np.zeros(len(s), dtype=bool)
    active, last, exact = np.arange(len(s)), np.zeros(len(s)), True
    rough_odds = log_odds.astype(np.float32)
    nll, u, hessian = _at(theta, log_odds, s)
    start = nll
    for n_steps in range(TOGETHER):
        step = solve_each(hessian, u)
        decrement = np.einsum("bi,bi->b", u, step)
        done = exact & (decrement <= np.where(decrement <= FAST * last, TOL, SLOW_TOL))
        theta[active[done]] += step[done]
        gain[active[done]] = (start[active] - nll + 0.5 * decrement)[done]
        settled[active[done]] = True
        active, step, last, before = (v[~done] for v in (active, step, decrement, nll))
        if len(active) == 0:
            break
        was_exact, exact = exact, n_steps >= ROUGH_STEPS or bool(last.min() <= NEAR)
        slack = 1e-13 if exact and was_exact else ROUGHNESS
        trial, odds = theta[active] + step, log_odds if exact else rough_odds
        if len(active) < len(s):
            odds = odds[:, active]
        with np.errstate(over="ignore", invalid="ignore"):  # too far out: it does not fall
            nll, u, hessian = _at(trial, odds, s[active])
        fell = nll <= before - ENOUGH_DECREASE * last + slack * (1.0 + np.abs(before))
        active, trial, last, nll, u, hessian = (
            v[fell] for v in (active, trial, last, nll, u, hessian)
        )
        theta[active] = trial
    return theta, gain, settled


def _at(theta: Floats, log_odds: NDArray[Any], s: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the negative log likelihood, its downhill gradient, and its Hessian."""
    value, gradient, hessian = (v.astype(np.float64) for v in evaluate(theta, log_odds))
    return value - np.einsum("bi,bi->b", theta, s), s - gradient, hessian


def _alone(log_odds: Floats, s: Floats) -> tuple[Floats, float]:
    """Return estimate and gain of one table; from the flat map where the identity is saturated."""
    likelihood, null = Likelihood(LogPartition(log_odds), s), identity_theta(len(log_odds))
    found = minimize(likelihood, null)
    start = found.start.value
    if not found.converged:
        again = minimize(likelihood, np.zeros(len(null)))
        found = again if again.value < found.value else found
    return found.x, start - found.value
