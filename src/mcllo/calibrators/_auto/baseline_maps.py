"""Penalised MCLLO fits for all baselines, of several sets of rows, by one Newton iteration.

====================  ==========================================================================
map of baseline b     ``eta_j = tau_bj + gamma_bj (x_j - x_b)``, ``eta_b = 0``
as a full map         ``theta_b (x, 1)``: gamma_bj at (j, j), -gamma_bj at (j, b), tau_bj last
minimised             ``nll(theta_b) + r/2 (|tau_b|^2 + |gamma_b - 1|^2)`` for each b
Hessian               of A in `_math/likelihood`: l_b = x - x_b, ``a = (g, g l)``
mean                  of all ``theta_b``: the geometric mean of the maps
====================  ==========================================================================

All maps are linear in the same features, so one matrix product gives eta of all baselines and one
their gradients; labels enter only through sums that all baselines share. ``gamma_bb`` and
``tau_bb`` do nothing and stay 1 and 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._ground.results import Floats
from ..._math.kernel import softmax
from ..._math.newton import minimize_sets, newton_directions
from .row_sets import RowSets

SLOW = 0.3
"""Ratio of two decrements from which Hessians of other rows are given up."""


def fit_baselines(rows: RowSets, ridge: float, tol: float) -> tuple[Floats, Floats]:
    """Return (tau, gamma) of each baseline for a single set, (c, 2c), and Hessians near there."""
    few = rows.first()
    problems = BaselineProblems(rows if few is None else few, ridge)
    found = minimize_sets(problems, np.tile(problems.identity, (problems.n_classes, 1)), tol)
    if few is None:
        return found, problems.hessian
    problems = BaselineProblems(rows, ridge, problems.hessian, tol)
    return minimize_sets(problems, found, tol), problems.hessian


def refit_baselines(
    rows: RowSets, ridge: float, start: Floats, hessian: Floats, tol: float, trace: float = np.inf
) -> Floats:
    """Return (tau, gamma) for each set, (S, c, 2c), from a fit to similar rows and its Hessians."""
    problems = BaselineProblems(rows, ridge, hessian, tol)
    found = minimize_sets(problems, np.tile(start, (problems.n_sets, 1)), tol, trace)
    return found.reshape(problems.n_sets, *start.shape)


def map_of(baselines: Floats) -> Floats:
    """Return theta of every map, shape (S, c, c, c + 1), from (tau, gamma)."""
    n_sets, c, _ = baselines.shape
    tau, gamma = baselines[..., :c], baselines[..., c:]
    theta = np.zeros((n_sets, c, c, c + 1))
    j = np.arange(c)
    theta[:, :, j, j] = gamma
    theta[:, j, :, j] -= gamma.transpose(1, 0, 2)
    theta[..., -1] = tau
    return theta


class BaselineProblems:
    """S times c problems of 2c parameters, as `Problems`; rows have the features (x, 1).

    Hessians of similar rows, shape (c, 2c, 2c), are used instead of those here as long as they
    serve; below the decrement `tol` it does not matter whether they do.
    """

    def __init__(
        self, rows: RowSets, ridge: float, hessian: Floats | None = None, tol: float = 0.0
    ) -> None:
        self.rows, self.ridge, self.tol = rows, ridge, tol
        self.inverse = None if hessian is None else np.linalg.inv(hessian)
        self.hessian = np.empty(0) if hessian is None else hessian
        self.last: Any = np.inf
        self.dtype = rows.scores.dtype
        self.sums = rows.label_sums()
        self.n_sets, self.n_classes, _ = self.sums.shape
        self.rounding = np.repeat(rows.rounding, self.n_classes)
        self.pinned = np.eye(self.n_classes, dtype=bool)
        self.identity = np.repeat([0.0, 1.0], self.n_classes)

    def value_gradient(self, x: Floats) -> tuple[Floats, Floats]:
        """Return values and gradients; Hessians, where they are wanted, are made on the way."""
        s, c = self.n_sets, self.n_classes
        baselines = x.reshape(s, c, 2 * c)
        theta = map_of(baselines)
        away = baselines - self.identity
        value = 0.5 * self.ridge * (away * away).sum(axis=2)
        value -= np.einsum("sbjk,sjk->sb", theta, self.sums)
        fresh = self.inverse is None
        partition, moments = np.zeros((s, c)), np.zeros((s, c, c, c + 1))
        squares, gram = np.zeros((s, c, c)), np.zeros((s, c, 2 * c, 2 * c if fresh else 0))
        flat = theta.reshape(s, c * c, c + 1).astype(self.dtype, copy=False)
        for part in self.rows.chunks(c * c):
            scores = self.rows.scores[:, :, part]
            eta = flat @ scores
            g = eta.reshape(s, c, c, -1)
            logs = softmax(g, -2, bounded=None)
            weight = None if self.rows.weight is None else self.rows.weight[:, None, part]
            if fresh:
                odds = scores[:, None, :-1] - scores[:, :-1, None]
                stack = np.concatenate([g, odds], axis=2)
                stack[:, :, c:] *= g
                if weight is not None:
                    root = np.sqrt(weight)[:, :, None]
                    stack *= root
                    odds *= root
                squares += np.einsum("sbji,sbji->sbj", stack[:, :, c:], odds)
                gram += stack @ stack.transpose(0, 1, 3, 2)
            if weight is not None:
                logs *= weight
                eta *= weight
            partition += logs.sum(axis=2, dtype=np.float64)
            moments += (eta @ scores.transpose(0, 2, 1)).reshape(moments.shape)
        value += partition
        if fresh:
            self.hessian = self._hessian(moments, squares, gram)
        gradient = self.ridge * away + self._own(moments - self.sums[:, None])
        return value.ravel(), gradient.reshape(s * c, 2 * c)

    def direction(self, gradient: Floats) -> Floats:
        """Return the Newton directions, by Hessians of similar rows as long as these do."""
        if self.inverse is None:
            return newton_directions(self.hessian, gradient)
        parts = gradient.reshape(self.n_sets, *self.inverse.shape[:2], 1)
        directions = -(self.inverse @ parts).reshape(gradient.shape)
        decrement = -np.einsum("sp,sp->s", gradient, directions)
        if (decrement > np.maximum(SLOW * self.last, self.tol)).any():
            self.inverse = None  # the next evaluation makes Hessians of its own
        self.last = decrement
        return directions

    def _own(self, full: Floats) -> Floats:
        """Return what gradients of full maps are for tau and gamma."""
        c = self.n_classes
        j = np.arange(c)
        gamma = full[:, :, j, j] - full[:, j, :, j].transpose(1, 0, 2)
        tau = np.where(self.pinned, 0.0, full[..., -1])
        return np.concatenate([tau, gamma], axis=2)

    def _hessian(self, moments: Floats, squares: Floats, gram: Floats) -> Floats:
        """Return the penalised Hessians, shape (S c, 2c, 2c), of sums over rows.

        Moments are ``w g (x, 1)'``, squares ``w g l^2``, gram ``w a a'``.
        """
        c, size = self.n_classes, 2 * self.n_classes
        j, place = np.arange(c), np.arange(size)
        hessian, own = -gram, self._own(moments)
        hessian[:, :, j, j] += own[..., :c]
        hessian[:, :, j, j + c] += own[..., c:]
        hessian[:, :, j + c, j] += own[..., c:]
        hessian[:, :, j + c, j + c] += squares
        hessian[:, j, j, :] = hessian[:, j, :, j] = 0.0
        hessian[:, :, place, place] += self.ridge
        return hessian.reshape(-1, size, size)
