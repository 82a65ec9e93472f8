"""Damped Newton for several problems at once: `_newton` and `_pcg` with one more axis.

Each problem has its own value, step and end; all share every evaluation. At x with gradient g:

1. direction d, an exact or a rough solution of ``H d = -g``;
2. decrement ``-g . d``: twice the expected decrease;
3. a problem whose decrement is below `tol`, or lost in rounding, takes the step and is done, also
   where decrements fall so fast that the next one would be a tenth of `tol`;
4. the others halve their step until the value falls enough (Armijo), and go on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MAX_ITER = 50
ENOUGH = 1e-4
MAX_HALVINGS = 40
LEAVES = 0.1
"""Part of `tol` that the last step may leave, if decrements go on to fall as they did."""
NOISE = 0.01
"""Part of the rounding of values below which decrements are not worth another step."""
MAX_PRODUCTS = 200


class Problems(Protocol):
    """What is minimised: S functions of P parameters."""

    rounding: Floats
    """By how much values may be wrong, shape (S,)."""

    def value_gradient(self, x: Floats) -> tuple[Floats, Floats]:
        """Move to x, shape (S, P); return values (S,) and gradients (S, P)."""

    def direction(self, gradient: Floats) -> Floats:
        """Return solutions of ``H d = -g`` there."""


def minimize_sets(problems: Problems, start: Floats, tol: float, trace: float = np.inf) -> Floats:
    """Return where the problems are least, from `start`, shape (S, P).

    `trace` bounds what of the start may be left in the end: a function whose slope at the start is
    that of the problem, with the other sign, is known but for so much.
    """
    x = np.array(start, dtype=np.float64)
    active = np.ones(len(x), dtype=bool)
    value, gradient = problems.value_gradient(x)
    enough, last = np.full(len(x), tol), np.zeros(len(x))
    for n_iter in range(MAX_ITER):
        direction = problems.direction(gradient)
        decrement = -np.einsum("sp,sp->s", gradient, direction)
        if n_iter == 0:
            most = trace**2 / LEAVES / np.maximum(decrement, 1e-300)
            enough = np.maximum(np.minimum(enough, most), NOISE * problems.rounding)
        direction[~active] = 0.0
        near = decrement * decrement <= LEAVES * enough * last
        done = active & ((decrement <= enough) | near)
        x[done] += direction[done]
        active &= ~done
        if not active.any():
            break
        step = active.astype(np.float64)
        slack = problems.rounding + 1e-13 * np.abs(value)
        for _ in range(MAX_HALVINGS):
            trial = x + step[:, None] * direction
            with np.errstate(over="ignore", invalid="ignore"):
                value_there, gradient_there = problems.value_gradient(trial)
            fell = value_there <= value - ENOUGH * step * decrement + slack
            if (fell | ~active).all():
                break
            step[active & ~fell] *= 0.5
        active &= fell  # no step helps: as far as rounding lets it
        x[active], value, gradient, last = trial[active], value_there, gradient_there, decrement
    return x


def newton_directions(hessian: Floats, gradient: Floats) -> Floats:
    """Return ``-H^-1 g`` of each problem, for positive definite Hessians of shape (S, P, P)."""
    return -np.asarray(np.linalg.solve(hessian, gradient[..., None])[..., 0], dtype=np.float64)


def conjugate_gradients(
    product: Callable[[Floats], Floats],
    precondition: Callable[[Floats], Floats],
    right: Floats,
    part: float,
) -> Floats:
    """Return solutions of ``H x = right``, shape (S, P), with that part of each residual left.

    Residuals are measured as the preconditioner does. A problem that is done waits for the others.
    """
    x, residual = np.zeros_like(right), right.copy()
    p = scaled = precondition(right)
    size = np.einsum("sp,sp->s", residual, scaled)
    goal = part * part * size
    active = size > 0.0
    for _ in range(MAX_PRODUCTS):
        image = product(p)
        curvature = np.einsum("sp,sp->s", p, image)
        active &= curvature > 0.0
        step = np.where(active, size / np.where(active, curvature, 1.0), 0.0)[:, None]
        x += step * p
        residual -= step * image
        active &= size > goal
        scaled = precondition(residual)
        last, size = size, np.einsum("sp,sp->s", residual, scaled)
        active &= size > goal
        if not active.any():
            break
        p = scaled + np.where(active, size / np.where(last > 0.0, last, 1.0), 0.0)[:, None] * p
    return x
