"""Damped Newton for smooth convex functions.

Each iteration of `minimize`, at x with gradient g and Hessian H:

1. direction ``d = -H^-1 g`` (`_utils/linalg`: damped while H is not numerically definite);
2. decrement ``g' H^-1 g``: twice the expected decrease, in units that no rescaling of x changes;
3. when the decrement is below `tol` and H has settled, take the step and stop: near a minimum the
   next decrement would be of the order ``tol ** 2``, and the step changes H, relatively, by about
   the ratio of the last two decrements. Where the objective falls towards an infimum that no
   finite x attains, the decrement falls by a factor e a step, and is all that is left to gain.
   Where that may be (`stop_when_separated`), stop at `SEPARATION_DECREMENT_TOL`, before rounding
   decides where;
4. otherwise halve the step until the value falls enough (Armijo), and go on.

A search whose value is all that is asked for need not wait for H, and may end once the value is low
enough (`f_target`).

With many parameters most of the work is H. `minimize_lbfgs` finds a place so near the minimum that
`minimize` needs one H there. It goes by directions ``-B g``, B a rough inverse of H, which each
step s with the change y of the gradient along it corrects (BFGS):
``B <- (I - s y' / y's) B (I - y s' / y's) + s s' / y's``. Once a step had to be halved, the rough
inverse P that B begins with counts ``y's / y'P y`` times: else one step after the other would be.

Where a search begins at the minimum of a similar function, and must not know of it in the end,
`start_influence_tol` bounds what is left: a function whose slope at the start is that of the
problem, with the other sign, is known but for so much. With the decrements D at the start and d at
the end that is ``sqrt(D d)`` at most.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .._utils.linalg import solve_damped
from .._utils.results import Floats
from . import compiled
from .kernel import Derivatives

DECREMENT_TOL = 1e-10
HESSIAN_DECREMENT_RATIO = 3e-7
"""Ratio of the last two decrements at which H is good to that many digits."""
STRICT_TOL_SHARE = 1e-3
"""Part of `tol` below which H counts as settled whatever the ratio."""
SEPARATION_DECREMENT_TOL = 1e-7
"""Decrement below which a search stops that falls slowly towards an infimum."""
MIN_SLOW_DECREMENT_RATIO = 0.2
"""Ratio of the last two decrements above which it falls slowly."""
ROUNDING_DECREMENT_SHARE = 1e-24
"""Part of the value below which a decrement is rounding: it counts where rows weigh so much that no
decrement can reach `tol`."""
MAX_ITER = 100
LBFGS_DECREMENT_TOL = 1e-6
"""Decrement from which `minimize_lbfgs` takes one more step and leaves the last one to `minimize`:
H is taken some ten-thousandth of a standard error away. On seven tables of 62 to 100 classes that
changed standard errors by 1e-7 to 3e-5 of themselves."""
LAST_STEP_DECREMENT_TOL = 1e-7
"""Decrement from which `minimize` takes the last step after `minimize_lbfgs`."""
ARMIJO_SHARE = 1e-4
"""Part of the decrease that the slope promises which a step must bring (Armijo)."""
MAX_STEP_GROWTH = 1e8
"""Times that one step may enlarge a coordinate."""
MAX_DECREMENT_RATIO = 0.5
"""Ratio of two decrements up to which `minimize_lbfgs` goes on."""
RENEWAL_STEP = 2
"""Step before which B is made anew, but for the last step's correction."""
MAX_LBFGS_PAIRS = 20
"""Steps that correct B."""
MAX_HALVINGS = 40
REMAINING_DECREMENT_SHARE = 0.1
"""Part of a decrement that the last step leaves, where H is not exact."""
REMAINING_SQUARE_SHARE = 0.01
"""What it leaves of a decrement's square, where H is exact and rows are not a handful: about so
much on sharp rows, less on others."""
MAX_LAST_DECREMENT = 0.1
"""Largest decrement for which that is believed."""
TINY = 1e-300
RELATIVE_VALUE_TOL = 1e-13
"""Relative error of a value: no smaller fall is looked for."""

Product = Callable[[Floats], Floats]
"""Multiplies by a matrix."""
Pair = tuple[Floats, Floats, float]


@dataclass(frozen=True, eq=False)
class Solution:
    """Where `minimize` stopped."""

    x: Floats
    start: Derivatives
    terms: Derivatives
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
    objective: Callable[[Floats], Derivatives],
    start: Floats,
    *,
    tol: float = DECREMENT_TOL,
    max_iter: int = MAX_ITER,
    first: Derivatives | None = None,
    solve: Callable[[Derivatives], Floats] | None = None,
    skip_hessian_check: bool = False,
    stop_when_separated: bool = False,
    f_target: float = -np.inf,
    start_influence_tol: float = np.inf,
    f_noise: float = 0.0,
) -> Solution:
    """Minimise `objective` from `start`; see the module's steps.

    `first` are the terms there, where they are known. `solve` gives directions in another way than
    by the Hessian. `skip_hessian_check` where the search need not wait for the Hessian: the value
    is all that is asked for, or the start is near. `f_noise` is in the values, from which they need
    not fall.
    """
    solve = solve or newton_direction
    x = np.array(start, dtype=np.float64)
    first = terms = objective(x) if first is None else first
    decrement, n_iter = 0.0, 0
    tol = max(tol, ROUNDING_DECREMENT_SHARE * abs(first.value))
    with np.errstate(over="ignore", invalid="ignore"):
        while n_iter < max_iter and not terms.value <= f_target:
            direction, previous = solve(terms), decrement
            decrement = max(0.0, -float(terms.gradient @ direction))
            n_iter += 1
            if n_iter == 1:
                tol = min(
                    tol, start_influence_tol**2 / REMAINING_DECREMENT_SHARE / max(decrement, TINY)
                )
            is_hessian_settled = (
                skip_hessian_check or decrement <= HESSIAN_DECREMENT_RATIO * previous
            )
            slow = (
                stop_when_separated
                and MIN_SLOW_DECREMENT_RATIO * previous < decrement <= SEPARATION_DECREMENT_TOL
            )
            if slow or decrement <= tol * (1.0 if is_hessian_settled else STRICT_TOL_SHARE):
                slow = slow and n_iter > 1
                return Solution(x + direction, first, terms, decrement, n_iter, True, slow)
            found = line_search(objective, x, terms, direction, f_noise)
            if found is None:
                break
            x, terms, _ = found
    return Solution(x, first, terms, decrement, n_iter, False)


def minimize_lbfgs(
    value_and_gradient: Callable[[Floats], Derivatives],
    start: Floats,
    secants: SecantPairs,
    *,
    first: Derivatives | None = None,
    renew_inverse: Callable[[Floats], Product] | None = None,
    decrement_tol: float = LBFGS_DECREMENT_TOL,
    max_decrement_ratio: float = np.inf,
    max_iter: int = MAX_ITER,
    start_influence_tol: float = np.inf,
    f_noise: float = 0.0,
) -> Solution:
    """Return a place near the minimum; see the module's last formula.

    `value_and_gradient` gives values and gradients, `first` those at `start`. `secants` begin with
    a rough inverse of the Hessian there, learn on the way, and are made anew of
    ``renew_inverse(x)``. The search ends where the decrement is `decrement_tol`, and leaves off
    where decrements do not fall as `max_decrement_ratio`: there Newton's own steps do better.
    """
    x, decrement = start, np.inf
    first = terms = value_and_gradient(start) if first is None else first
    decrement_tol = max(decrement_tol, ROUNDING_DECREMENT_SHARE * abs(first.value))
    with np.errstate(over="ignore", invalid="ignore"):
        for n_iter in range(max_iter):
            if n_iter == RENEWAL_STEP and renew_inverse is not None:
                secants = SecantPairs(renew_inverse(x), secants.pairs[-1:])
            direction, previous = -secants(terms.gradient), decrement
            decrement = -float(terms.gradient @ direction)
            if n_iter == 0:
                decrement_tol = min(
                    decrement_tol,
                    start_influence_tol**2 / REMAINING_DECREMENT_SHARE / max(decrement, TINY),
                )
            if 0.0 <= decrement <= decrement_tol:
                return Solution(x + direction, first, terms, decrement, n_iter, True)
            falls = decrement <= max_decrement_ratio * previous
            found = line_search(value_and_gradient, x, terms, direction, f_noise) if falls else None
            if found is None:
                return Solution(x, first, terms, decrement, n_iter, False)
            point, trial, part = found
            secants.update(point - x, trial.gradient - terms.gradient, part < 1.0)
            x, terms = point, trial
    return Solution(x, first, terms, decrement, max_iter, False)


class SecantPairs:
    """Products with the inverse of a Hessian as the last steps show it (BFGS)."""

    def __init__(self, inverse: Product, pairs: Sequence[Pair] = ()) -> None:
        self.inverse, self.scale, self.pairs = inverse, 1.0, list(pairs)

    def update(self, step: Floats, change: Floats, halved: bool = False) -> None:
        """Take in by how much the gradient changed along a step, which may have been halved."""
        curvature = float(step @ change)
        if curvature > 0.0:
            if halved or self.scale < 1.0:
                self.scale = min(1.0, curvature / max(TINY, float(change @ self.inverse(change))))
            self.pairs = [*self.pairs[1 - MAX_LBFGS_PAIRS :], (step, change, curvature)]

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
    return min(MAX_LAST_DECREMENT, math.sqrt(left / REMAINING_SQUARE_SHARE))


def newton_direction(terms: Derivatives) -> Floats:
    """Return ``-H^-1 g``, with the least multiple of the diagonal that makes H definite."""
    found = compiled.direction(terms.hessian, terms.gradient)
    if found is None:
        with np.errstate(over="ignore", invalid="ignore"):
            found = -solve_damped(terms.hessian, terms.gradient)
    return found


def line_search(
    objective: Callable[[Floats], Derivatives],
    x: Floats,
    terms: Derivatives,
    direction: Floats,
    f_noise: float = 0.0,
) -> tuple[Floats, Derivatives, float] | None:
    """Halve the step until the value falls by a part of what the slope promises.

    Return the point, its terms and how much of the direction that is, or None where no step helps.
    A direction is cut where a coordinate would grow more than `MAX_STEP_GROWTH` times. A trial so
    far out that its value overflows is no error, which callers see to: it is not lower, so halve
    on.
    """
    step = cut = 1.0
    if not float(direction @ direction) <= MAX_STEP_GROWTH**2:
        cut = max(1.0, float((np.abs(direction) / (MAX_STEP_GROWTH * (1.0 + np.abs(x)))).max()))
        direction = direction / cut
    slope = max(0.0, -float(terms.gradient @ direction))
    rounding = f_noise + RELATIVE_VALUE_TOL * (1.0 + abs(terms.value))
    for _ in range(MAX_HALVINGS):
        point = x + step * direction
        trial = objective(point)
        highest = terms.value - ARMIJO_SHARE * step * slope + rounding
        if math.isfinite(trial.value) and trial.value <= highest:
            return point, trial, step / cut
        step *= 0.5
    return None
