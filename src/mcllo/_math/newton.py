"""Damped Newton for smooth convex functions: one problem (`minimize`), or several at once.

Each iteration of `minimize`, at x with gradient g and Hessian H:

1. direction ``d = -H^-1 g`` (`_ground/linalg`: damped while H is not numerically definite);
2. decrement ``g' H^-1 g``: twice the expected decrease, in units that no rescaling of x changes;
3. when the decrement is below `tol` and H has settled, take the step and stop: near a minimum the
   next decrement would be of the order ``tol ** 2``, and the step changes H, relatively, by about
   the ratio of the last two decrements. (Where the objective falls towards an infimum that no
   finite x attains, the decrement still vanishes, by a factor e a step, and the value is the
   infimum's.)
4. otherwise halve the step until the value falls enough (Armijo), and go on.

With a `rough` objective, cheaper and good to a few digits, steps 1-2 are first run on that, without
a search, until the next decrement should be below `tol` or lost in the noise. Where its decrements
do not fall quickly, or where it led to no lower value, its steps are forgotten. The run ends on the
exact objective either way, at once where the steps have told how little H can still change.

`minimize_sets` takes the same steps for several problems that share every evaluation, each with its
own value, step and end; directions may be rough solutions. A problem is done with its step where
its decrement is below `tol` or lost in rounding, and where decrements fall so fast that the next
one would be a tenth of `tol`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .._ground.linalg import solve_damped
from .._ground.results import Floats
from .kernel import Terms

TOL = 1e-10
SETTLED = 3e-7
"""Ratio of the last two decrements at which H is good to that many digits."""
SURELY_SETTLED = 1e-3
"""Part of `tol` below which H counts as settled whatever the ratio."""
MAX_ITER = 100
ENOUGH_DECREASE = 1e-4
"""Part of the decrease that the slope promises which a step must bring (Armijo)."""
REACH = 1e8
MAX_HALVINGS = 40
MAX_ROUGH = 12
NOISE = 1e-7
"""Decrement below which a rough objective's is not worth another look."""

MAX_ITER_MANY = 50
LEFT_OF_TOL = 0.1
"""Part of `tol` that the last step may leave, if decrements go on to fall as they did."""
NOISE_MANY = 0.01
"""Part of the rounding of values below which decrements are not worth another step."""
MAX_PRODUCTS = 200


@dataclass(frozen=True, eq=False)
class Solution:
    """Where `minimize` stopped."""

    x: Floats
    start: Terms
    terms: Terms
    """At the last evaluated point, as the decrement: `x` less its last step when converged."""
    decrement: float
    n_iter: int
    """Newton steps taken, which is also the number of Hessians used."""
    converged: bool

    @property
    def gradient_norm(self) -> float:
        """Largest absolute component of the gradient at the last evaluated point."""
        return float(np.abs(self.terms.gradient).max())

    @property
    def value(self) -> float:
        """The objective at `x`, the last step included to second order."""
        return self.terms.value - (0.5 * self.decrement if self.converged else 0.0)


def minimize(
    objective: Callable[[Floats], Terms],
    start: Floats,
    *,
    tol: float = TOL,
    max_iter: int = MAX_ITER,
    rough: Callable[[Floats], Terms] | None = None,
) -> Solution:
    """Minimise `objective` from `start`; see the module's steps."""
    x = np.array(start, dtype=np.float64)
    first = terms = objective(x)
    decrement, done, bend = 0.0, 0, np.inf
    if rough is not None:
        x, terms, bend, done = approach(objective, rough, newton_direction, x, terms, tol, max_iter)
    for n_iter in range(done + 1, max_iter + 1):
        direction, previous = newton_direction(terms), decrement
        decrement = _decrement(terms, direction)
        if decrement <= NOISE and bend * decrement <= SETTLED**2:
            return Solution(x + direction, first, terms, decrement, n_iter, True)
        if decrement <= tol * (1.0 if decrement <= SETTLED * previous else SURELY_SETTLED):
            return Solution(x + direction, first, terms, decrement, n_iter, True)
        found = line_search(objective, x, terms, direction)
        if found is None:
            break
        x, terms = found
    return Solution(x, first, terms, decrement, n_iter, False)


def _decrement(terms: Terms, direction: Floats) -> float:
    with np.errstate(over="ignore"):
        return max(0.0, -float(terms.gradient @ direction))


def approach(
    objective: Callable[[Floats], Terms],
    rough: Callable[[Floats], Terms],
    solve: Callable[[Terms], Floats],
    start: Floats,
    first: Terms,
    tol: float,
    max_iter: int,
) -> tuple[Floats, Terms, float, int]:
    """Return where rough steps led, the exact terms there, the bend and the steps taken.

    Near a minimum a decrement is about `bend` times the square of the one before, and the last step
    changes H, relatively, by about ``sqrt(bend * decrement)``.
    """
    x, terms, previous, bend = start, first, np.inf, np.inf
    for n_iter in range(1, min(MAX_ROUGH, max_iter - 1) + 1):
        with np.errstate(over="ignore", invalid="ignore"):
            direction = solve(terms)
            decrement = _decrement(terms, direction)
        if not decrement < 0.5 * previous:  # also when it is not a number
            break
        x = x + direction
        if decrement > NOISE and previous < np.inf:
            bend = decrement / previous / previous
        if decrement <= NOISE or bend * decrement * decrement <= tol:
            exact = objective(x)
            if np.isfinite(exact.value) and exact.value <= first.value:
                return x, exact, bend, n_iter
            break
        with np.errstate(over="ignore", invalid="ignore"):
            terms, previous = rough(x), decrement
        if not np.isfinite(terms.value):
            break
    return start, first, np.inf, 0


def newton_direction(terms: Terms) -> Floats:
    """Return ``-H^-1 g``, with the least multiple of the diagonal that makes H definite."""
    with np.errstate(over="ignore", invalid="ignore"):
        return -solve_damped(terms.hessian, terms.gradient)


def line_search(
    objective: Callable[[Floats], Terms], x: Floats, terms: Terms, direction: Floats
) -> tuple[Floats, Terms] | None:
    """Halve the step until the value falls by a part of what the slope promises.

    Return the point and its terms, or None where no step helps. A direction is cut where a
    coordinate would grow more than `REACH` times. A trial so far out that its value overflows is
    not an error: it is not lower, so halve on.
    """
    excess = float((np.abs(direction) / (REACH * (1.0 + np.abs(x)))).max())
    direction = direction / max(1.0, excess)
    slope = max(0.0, -float(terms.gradient @ direction))
    step, rounding = 1.0, 1e-13 * (1.0 + abs(terms.value))
    for _ in range(MAX_HALVINGS):
        with np.errstate(over="ignore", invalid="ignore"):
            point = x + step * direction
            trial = objective(point)
        highest = terms.value - ENOUGH_DECREASE * step * slope + rounding
        if np.isfinite(trial.value) and trial.value <= highest:
            return point, trial
        step *= 0.5
    return None


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
    for n_iter in range(MAX_ITER_MANY):
        direction = problems.direction(gradient)
        decrement = -np.einsum("sp,sp->s", gradient, direction)
        if n_iter == 0:
            most = trace**2 / LEFT_OF_TOL / np.maximum(decrement, 1e-300)
            enough = np.maximum(np.minimum(enough, most), NOISE_MANY * problems.rounding)
        direction[~active] = 0.0
        near = decrement * decrement <= LEFT_OF_TOL * enough * last
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
            fell = value_there <= value - ENOUGH_DECREASE * step * decrement + slack
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
