"""Damped Newton for smooth convex functions.

Each iteration of `minimize`, at x with gradient g and Hessian H:

1. direction ``d = -H^-1 g`` (`_ground/linalg`: damped while H is not numerically definite);
2. decrement ``g' H^-1 g``: twice the expected decrease, in units that no rescaling of x changes;
3. when the decrement is below `tol` and H has settled, take the step and stop: near a minimum the
   next decrement would be of the order ``tol ** 2``, and the step changes H, relatively, by about
   the ratio of the last two decrements. Where the objective falls towards an infimum that no
   finite x attains, the decrement falls by a factor e a step, and is all that is left to gain.
   Where that may be (`endless`), stop at `SLOW`, before rounding decides where;
4. otherwise halve the step until the value falls enough (Armijo), and go on.

A search whose value is all that is asked for need not wait for H, and may end once the value is low
enough (`reach`).

With many parameters most of the work is H. `approach` finds a place so near the minimum that
`minimize` needs one H there. It goes by directions ``-B g``, B a rough inverse of H, which each
step s with the change y of the gradient along it corrects (BFGS):
``B <- (I - s y' / y's) B (I - y s' / y's) + s s' / y's``. Once a step had to be halved, the rough
inverse P that B begins with counts ``y's / y'P y`` times: else one step after the other would be.

Where a search begins at the minimum of a similar function, and must not know of it in the end,
`trace` bounds what is left: a function whose slope at the start is that of the problem, with the
other sign, is known but for so much. With the decrements D at the start and d at the end that is
``sqrt(D d)`` at most.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .._ground.linalg import solve_damped
from .._ground.results import Floats
from . import compiled
from .kernel import Terms

TOL = 1e-10
SETTLED = 3e-7
"""Ratio of the last two decrements at which H is good to that many digits."""
SURELY_SETTLED = 1e-3
"""Part of `tol` below which H counts as settled whatever the ratio."""
SLOW, AS_BEFORE = 1e-7, 0.2
"""A decrement below the first that is more than the second times the last falls slowly."""
LOST = 1e-24
"""Part of the value below which a decrement is rounding: it counts where rows weigh so much that no
decrement can reach `tol`."""
MAX_ITER = 100
NEAR, NEARER = 1e-6, 1e-7
"""Decrement from which `approach` takes one more step and leaves the last one to `minimize`, which
takes it from the second on: H is taken some ten-thousandth of a standard error away. On seven
tables of 62 to 100 classes that changed standard errors by 1e-7 to 3e-5 of themselves."""
ENOUGH_DECREASE = 1e-4
"""Part of the decrease that the slope promises which a step must bring (Armijo)."""
REACH = 1e8
FAST, RENEWED, MEMORY = 0.5, 2, 20
"""Ratio of two decrements up to which `approach` goes on; the step before which B is made anew, but
for the last step's correction; the steps that correct it."""
MAX_HALVINGS = 40
LEFT = 0.1
"""Part of a decrement that the last step leaves, where H is not exact."""
LEFT_OF_SQUARE, LARGEST_LAST = 0.01, 0.1
"""What it leaves of a decrement's square, where H is exact and rows are not a handful: about so
much on sharp rows, less on others. The largest decrement for which that is believed."""
TINY = 1e-300
ROUNDING = 1e-13
"""Relative error of a value: no smaller fall is looked for."""

Product = Callable[[Floats], Floats]
"""Multiplies by a matrix."""
Pair = tuple[Floats, Floats, float]


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
    slow: bool = False
    """Whether it stopped on the way to an infimum that no finite x attains."""

    @property
    def gradient_norm(self) -> float:
        """Largest absolute component of the gradient at the last evaluated point."""
        return float(np.abs(self.terms.gradient).max())

    @property
    def value(self) -> float:
        """The objective at `x`, the last step included to second order; or the infimum."""
        left = 1.0 if self.slow else 0.5
        return self.terms.value - (left * self.decrement if self.converged else 0.0)


def minimize(
    objective: Callable[[Floats], Terms],
    start: Floats,
    *,
    tol: float = TOL,
    max_iter: int = MAX_ITER,
    first: Terms | None = None,
    solve: Callable[[Terms], Floats] | None = None,
    settled: bool = False,
    endless: bool = False,
    reach: float = -np.inf,
    trace: float = np.inf,
    noise: float = 0.0,
) -> Solution:
    """Minimise `objective` from `start`; see the module's steps.

    `first` are the terms there, where they are known. `solve` gives directions in another way than
    by the Hessian. `settled` where the search need not wait for the Hessian: the value is all that
    is asked for, or the start is near. `noise` is in the values, from which they need not fall.
    """
    solve = solve or newton_direction
    x = np.array(start, dtype=np.float64)
    first = terms = objective(x) if first is None else first
    decrement, n_iter = 0.0, 0
    tol = max(tol, LOST * abs(first.value))
    with np.errstate(over="ignore", invalid="ignore"):
        while n_iter < max_iter and not terms.value <= reach:
            direction, previous = solve(terms), decrement
            decrement = max(0.0, -float(terms.gradient @ direction))
            n_iter += 1
            if n_iter == 1:
                tol = min(tol, trace**2 / LEFT / max(decrement, TINY))
            sure = settled or decrement <= SETTLED * previous
            slow = endless and AS_BEFORE * previous < decrement <= SLOW
            if slow or decrement <= tol * (1.0 if sure else SURELY_SETTLED):
                slow = slow and n_iter > 1
                return Solution(x + direction, first, terms, decrement, n_iter, True, slow)
            found = line_search(objective, x, terms, direction, noise)
            if found is None:
                break
            x, terms, _ = found
    return Solution(x, first, terms, decrement, n_iter, False)


def approach(
    light: Callable[[Floats], Terms],
    start: Floats,
    secants: Secants,
    *,
    first: Terms | None = None,
    renew: Callable[[Floats], Product] | None = None,
    enough: float = NEAR,
    fast: float = np.inf,
    max_iter: int = MAX_ITER,
    trace: float = np.inf,
    noise: float = 0.0,
) -> Solution:
    """Return a place near the minimum; see the module's last formula.

    `light` gives values and gradients, `first` those at `start`. `secants` begin with a rough
    inverse of the Hessian there, learn on the way, and are made anew of ``renew(x)``. The search
    ends where the decrement is `enough`, and leaves off where decrements do not fall as `fast`:
    there Newton's own steps do better.
    """
    x, decrement = start, np.inf
    first = terms = light(start) if first is None else first
    enough = max(enough, LOST * abs(first.value))
    with np.errstate(over="ignore", invalid="ignore"):
        for n_iter in range(max_iter):
            if n_iter == RENEWED and renew is not None:
                secants = Secants(renew(x), secants.pairs[-1:])
            direction, previous = -secants(terms.gradient), decrement
            decrement = -float(terms.gradient @ direction)
            if n_iter == 0:
                enough = min(enough, trace**2 / LEFT / max(decrement, TINY))
            if 0.0 <= decrement <= enough:
                return Solution(x + direction, first, terms, decrement, n_iter, True)
            falls = decrement <= fast * previous
            found = line_search(light, x, terms, direction, noise) if falls else None
            if found is None:
                return Solution(x, first, terms, decrement, n_iter, False)
            point, trial, part = found
            secants.learn(point - x, trial.gradient - terms.gradient, part < 1.0)
            x, terms = point, trial
    return Solution(x, first, terms, decrement, max_iter, False)


class Secants:
    """Products with the inverse of a Hessian as the last steps show it (BFGS)."""

    def __init__(self, inverse: Product, pairs: Sequence[Pair] = ()) -> None:
        self.inverse, self.scale, self.pairs = inverse, 1.0, list(pairs)

    def learn(self, step: Floats, change: Floats, halved: bool = False) -> None:
        """Take in by how much the gradient changed along a step, which may have been halved."""
        curvature = float(step @ change)
        if curvature > 0.0:
            if halved or self.scale < 1.0:
                self.scale = min(1.0, curvature / max(TINY, float(change @ self.inverse(change))))
            self.pairs = [*self.pairs[1 - MEMORY :], (step, change, curvature)]

    def __call__(self, gradient: Floats) -> Floats:
        """Return ``B g``."""
        g, parts = gradient.copy(), []
        for step, change, curvature in reversed(self.pairs):
            parts.append(float(step @ g) / curvature)
            g -= parts[-1] * change
        found = self.scale * self.inverse(g)
        for (step, change, curvature), part in zip(self.pairs, reversed(parts), strict=True):
            found = found + (part - float(change @ found) / curvature) * step
        return found


def last_decrement(left: float) -> float:
    """Return the decrement from which a step with the exact H leaves so much."""
    return min(LARGEST_LAST, math.sqrt(left / LEFT_OF_SQUARE))


def newton_direction(terms: Terms) -> Floats:
    """Return ``-H^-1 g``, with the least multiple of the diagonal that makes H definite."""
    found = compiled.direction(terms.hessian, terms.gradient)
    if found is None:
        with np.errstate(over="ignore", invalid="ignore"):
            found = -solve_damped(terms.hessian, terms.gradient)
    return found


def line_search(
    objective: Callable[[Floats], Terms],
    x: Floats,
    terms: Terms,
    direction: Floats,
    noise: float = 0.0,
) -> tuple[Floats, Terms, float] | None:
    """Halve the step until the value falls by a part of what the slope promises.

    Return the point, its terms and how much of the direction that is, or None where no step helps.
    A direction is cut where a coordinate would grow more than `REACH` times. A trial so far out
    that its value overflows is no error, which callers see to: it is not lower, so halve on.
    """
    step = cut = 1.0
    if not float(direction @ direction) <= REACH**2:
        cut = max(1.0, float((np.abs(direction) / (REACH * (1.0 + np.abs(x)))).max()))
        direction = direction / cut
    slope = max(0.0, -float(terms.gradient @ direction))
    rounding = noise + ROUNDING * (1.0 + abs(terms.value))
    for _ in range(MAX_HALVINGS):
        point = x + step * direction
        trial = objective(point)
        highest = terms.value - ENOUGH_DECREASE * step * slope + rounding
        if math.isfinite(trial.value) and trial.value <= highest:
            return point, trial, step / cut
        step *= 0.5
    return None
