"""The cells of a design, for many parameter vectors at once: eta, and the moments of a table q.

Both families are linear: ``eta_ji(theta)`` is the sum of parameters times features, and the moments
of a table q of cells are the sums of q times the same features. Tables have shape (draws, c, n),
the baseline last; its eta is 0 and its cells have no moments.

=========  ===================================  =================================================
family     eta                                  moments of q
=========  ===================================  =================================================
MCLLO      ``tau_j + gamma_j l_ji``             ``(sum_i w_i q_ji; sum_i w_i q_ji l_ji)``
full map   ``theta_j . x_i``, x = (1, l)        ``sum_i w_i q_ji x_i``, class after class
=========  ===================================  =================================================
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from .._ground.results import Floats
from .likelihood import ROUNDED_UP


class Cells(Protocol):
    """What a bound needs to know about a family."""

    weight: Floats | None

    def eta(self, theta: Floats) -> Floats:
        """Return eta of every cell, (draws, c, n)."""
        ...

    def sums(self, q: Floats) -> Floats:
        """Return the moments of tables q."""
        ...

    def moments(self, q: Floats) -> tuple[Floats, Floats]:
        """Return the moments and their covariance: gradient and Hessian of A where g = q."""
        ...

    @property
    def size(self) -> Floats:
        """Largest moments there could be: what rounding is relative to."""
        ...


class MclloCells:
    """Cells of MCLLO, from log odds (K, n) and row weights."""

    def __init__(self, log_odds: Floats, weight: Floats | None) -> None:
        self.log_odds, self.weight = log_odds, weight
        self._padded = np.vstack([log_odds, np.zeros(log_odds.shape[1])])

    def eta(self, theta: Floats) -> Floats:
        """Return ``tau_j + gamma_j l_ji``."""
        k, none = len(self.log_odds), np.zeros((len(theta), 1))
        tau, gamma = np.hstack([theta[:, :k], none]), np.hstack([theta[:, k:], none])
        eta: Floats = gamma[:, :, None] * self._padded
        eta += tau[:, :, None]
        return eta

    def sums(self, q: Floats) -> Floats:
        """Return class totals and sums of log odds."""
        inner = q[:, :-1] if self.weight is None else q[:, :-1] * self.weight
        return np.hstack([inner.sum(axis=2), np.einsum("bji,ji->bj", inner, self.log_odds)])

    def moments(self, q: Floats) -> tuple[Floats, Floats]:
        """Return the gradient and the Hessian of A."""
        inner = q[:, :-1]
        stack = np.concatenate([inner, inner * self.log_odds], axis=1)
        return moments(stack, self.log_odds, self.weight)

    @property
    def size(self) -> Floats:
        """Row weights, and sums of absolute log odds."""
        weight = np.ones(self.log_odds.shape[1]) if self.weight is None else self.weight
        counts = np.full(len(self.log_odds), weight.sum())
        return np.concatenate([counts, np.abs(self.log_odds) @ weight])


class FullCells:
    """Cells of the full map, from features (c, n) and row weights."""

    def __init__(self, features: Floats, weight: Floats | None) -> None:
        self.features, self.weight = features, weight
        self._scaled = features if weight is None else features * weight

    def eta(self, theta: Floats) -> Floats:
        """Return ``theta_j . x_i``."""
        own = theta.reshape(len(theta), -1, len(self.features))
        padded = np.concatenate([own, np.zeros((len(theta), 1, len(self.features)))], axis=1)
        eta: Floats = padded @ self.features
        return eta

    def sums(self, q: Floats) -> Floats:
        """Return the sums of features, class after class."""
        return (q[:, :-1] @ self._scaled.T).reshape(len(q), -1)

    def moments(self, q: Floats) -> tuple[Floats, Floats]:
        """Return the gradient and the Hessian of A, one table after the other."""
        hessian = np.array([self._hessian(table[:-1]) for table in q])
        return self.sums(q), hessian

    def _hessian(self, g: Floats) -> Floats:
        k, d = len(g), len(self.features)
        stack = (g[:, None] * self.features).reshape(k * d, -1)
        scaled = (g[:, None] * self._scaled).reshape(k * d, -1)
        hessian: Floats = -(scaled @ stack.T)
        for j in range(k):
            part = slice(j * d, (j + 1) * d)
            own = scaled[part] @ self.features.T
            own[np.arange(d), np.arange(d)] *= ROUNDED_UP
            hessian[part, part] += own
        return hessian

    @property
    def size(self) -> Floats:
        """Sums of absolute features."""
        total = np.abs(self._scaled).sum(axis=1)
        return np.tile(total, len(self.features) - 1)


def moments(stack: Floats, odds: Floats, weight: Floats | None) -> tuple[Floats, Floats]:
    """Return the gradients and Hessians of A, from ``(g; g l)`` stacked, for each draw."""
    k = len(odds)
    scaled = stack if weight is None else stack * weight
    gradient = scaled @ np.ones(stack.shape[2])
    hessian = -(scaled @ stack.transpose(0, 2, 1))
    squares = (scaled[:, k:, None] @ odds[:, :, None])[:, :, 0, 0]
    j = np.arange(k)
    hessian[:, j, j] += ROUNDED_UP * gradient[:, :k]
    hessian[:, j + k, j + k] += ROUNDED_UP * squares
    hessian[:, j, j + k] += gradient[:, k:]
    hessian[:, j + k, j] += gradient[:, k:]
    return gradient, hessian
