"""Newton's method and L-BFGS for smooth convex functions, and a root search in one dimension.

The two minimisers take an objective ``x -> Derivatives`` and return a `Solution`. Their unit is the
Newton decrement ``g' H^-1 g``: twice the decrease that a full step promises. No rescaling of the
parameters changes it, and for a log likelihood its root is the distance to the maximum in standard
errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._utils.linalg import solve_damped
from .._utils.results import Floats
from . import compiled
from .kernel import Derivatives

ROUNDING_DECREMENT_SHARE = 1e-24
"""Decrement, as a part of the value, that is rounding: where rows weigh millions none is smaller.
The square of a gradient's relative rounding, with a margin."""
MAX_LBFGS_PAIRS = 20
"""Steps that L-BFGS remembers: the most that the textbook recommends."""

Objective = Callable[[Floats], Derivatives]
Product = Callable[[Floats], Floats]
"""Multiplies by a matrix."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Where a search stopped."""

    x: Floats
    start: Derivatives
    """At the first point."""
    derivatives: Derivatives
    """At the last point that was evaluated: `x` less its last step when converged."""
    decrement: float
    """There, too."""
    n_iter: int
    """Directions used; for Newton's method also the number of Hessians."""
    converged: bool

    @property
    def gradient_norm(self) -> float:
        """Largest absolute component of the gradient at the last evaluated point."""
        return float(np.abs(self.derivatives.gradient).max())

    @property
    def value(self) -> float:
        """The objective at `x`, the last step included to second order."""
        if self.converged:
            return self.derivatives.value - 0.5 * self.decrement
        return self.derivatives.value


Callback = Callable[[Solution], bool]
"""Is asked before each step; True ends the search there, which then counts as not converged."""


def minimize(
    objective: Objective,
    x0: Floats,
    *,
    tol: float = 1e-11,
    max_iter: int = 100,
    find_direction: Callable[[Derivatives], Floats] | None = None,
    callback: Callback | None = None,
) -> Solution:
    """Minimise a smooth convex function by damped Newton steps.

    Parameters
    ----------
    objective : callable
        ``objective(x) -> Derivatives``: value, gradient and Hessian.
    x0 : ndarray of shape (n_parameters,)
        Where the search begins.
    tol : float
        Newton decrement at which it ends. For the value 1e-9 is enough. The Hessian is that of the
        last evaluation, one step from `x`: with 1e-11 that is 3e-6 standard errors. With 1e-10 the
        standard errors of ten rows were off by 1e-6 of themselves.
    max_iter : int
        Most steps.
    find_direction : callable, optional
        ``solve(terms) -> direction``, by default `newton_direction`.
    callback : callable, optional
        ``callback(solution) -> bool``, asked before each step; True ends the search there.

    Returns
    -------
    Solution
        When converged, `x` is one step ahead of the last evaluation.

    Notes
    -----
    1. Direction ``d = -H^-1 g``; H is damped while it is not numerically positive definite.
    2. Where the Newton decrement ``-g' d`` is at most `tol`, take the step and stop: the next
       decrement would be of the order ``tol ** 2``.
    3. Otherwise halve the step until the value falls enough (Armijo), and go on.

    References
    ----------
    .. [1] S. Boyd, L. Vandenberghe (2004). Convex Optimization, section 9.5.
    """
    find_direction = find_direction or newton_direction
    x = np.array(x0, dtype=np.float64)
    start = derivatives = objective(x)
    tol = max(tol, ROUNDING_DECREMENT_SHARE * abs(start.value))
    solution = Solution(x, start, derivatives, 0.0, 0, False)
    # a trial step may land where the function overflows: that is no error, it is not lower
    with np.errstate(over="ignore", invalid="ignore"):
        for n_iter in range(1, max_iter + 1):
            # 1. Direction.
            direction = find_direction(derivatives)
            decrement = max(0.0, -float(derivatives.gradient @ direction))
            solution = Solution(x, start, derivatives, decrement, n_iter, False)
            # 2. The last step.
            if decrement <= tol:
                return replace(solution, x=x + direction, converged=True)
            if callback is not None and callback(solution):
                return solution
            # 3. Line search.
            found = armijo_line_search(objective, x, derivatives, direction)
            if found is None:
                return solution
            x, derivatives, _ = found
    return replace(solution, x=x, derivatives=derivatives)


def newton_direction(derivatives: Derivatives) -> Floats:
    """Return ``-H^-1 g``, with the least multiple of the diagonal that makes H definite."""
    found = compiled.newton_direction(derivatives.hessian, derivatives.gradient)
    if found is None:
        with np.errstate(over="ignore", invalid="ignore"):
            found = -solve_damped(derivatives.hessian, derivatives.gradient)
    return found


def armijo_line_search(
    objective: Objective, x: Floats, derivatives: Derivatives, direction: Floats
) -> tuple[Floats, Derivatives, float] | None:
    """Halve the step until the value falls by 1e-4 of what the slope promises (Armijo).

    Returns the point, its terms and the step, or None where no step helps.
    """
    cut = 1.0
    longest = 1e8  # no coordinate grows by more at once: curvature is all but 0 there
    if not float(direction @ direction) <= longest**2:
        growth = np.abs(direction) / (1.0 + np.abs(x))
        cut = min(1.0, longest / float(growth.max()))
        direction = cut * direction
    slope = max(0.0, -float(derivatives.gradient @ direction))
    step = 1.0
    rounding = 1e-13 * (1.0 + abs(derivatives.value))  # no smaller fall can be seen
    for _ in range(40):
        point = x + step * direction
        trial = objective(point)
        highest = derivatives.value - 1e-4 * step * slope + rounding
        if math.isfinite(trial.value) and trial.value <= highest:
            return point, trial, step * cut
        step *= 0.5
    return None


def minimize_lbfgs(
    objective: Objective,
    x0: Floats,
    inverse_hessian: LBFGSInverseHessian,
    *,
    tol: float = 1e-7,
    max_iter: int = 100,
    callback: Callback | None = None,
) -> Solution:
    """Minimise a smooth convex function of many parameters by limited-memory BFGS.

    Parameters
    ----------
    objective : callable
        ``objective(x) -> Derivatives``; no Hessian is used.
    x0 : ndarray of shape (n_parameters,)
        Where the search begins.
    inverse_hessian : LBFGSInverseHessian
        Rough inverse of the Hessian at `x0`; it learns on the way.
    tol, max_iter, callback
        As of `minimize_batch`; the decrement is that of the rough inverse.

    Returns
    -------
    Solution
        When converged, `x` is one step ahead of the last evaluation.

    Notes
    -----
    Algorithm 7.5 of [1]_, with Armijo's condition alone: a step along which the slope does not rise
    is not remembered, so that the rough inverse stays definite.

    1. Direction ``d = -B g`` by the two-loop recursion.
    2. Where ``-g' d`` is at most `tol`, take the step and stop.
    3. Otherwise halve the step until the value falls enough, and remember it.

    SciPy's L-BFGS-B starts from a multiple of the identity. On matrix maps of 30 to 100 classes it
    took 1.0 to 4.6 times as long, on MCLLO of 50 and 100 classes 2 and 5 times.

    References
    ----------
    .. [1] J. Nocedal, S. J. Wright (2006). Numerical Optimization, section 7.2.
    """
    x = np.array(x0, dtype=np.float64)
    start = derivatives = objective(x)
    tol = max(tol, ROUNDING_DECREMENT_SHARE * abs(start.value))
    solution = Solution(x, start, derivatives, math.inf, 0, False)
    with np.errstate(over="ignore", invalid="ignore"):
        for n_iter in range(max_iter):
            # 1. Direction.
            direction = -inverse_hessian(derivatives.gradient)
            decrement = -float(derivatives.gradient @ direction)
            solution = Solution(x, start, derivatives, decrement, n_iter, False)
            # 2. The last step.
            if 0.0 <= decrement <= tol:
                return replace(solution, x=x + direction, converged=True)
            if callback is not None and callback(solution):
                return solution
            # 3. Line search.
            found = armijo_line_search(objective, x, derivatives, direction)
            if found is None:
                return solution
            point, trial, step = found
            inverse_hessian.update(
                point - x,
                trial.gradient - derivatives.gradient,
                step_was_halved=step < 1.0,
            )
            x, derivatives = found[:2]
    return replace(solution, x=x, derivatives=derivatives, n_iter=max_iter)


@dataclass(frozen=True)
class CurvaturePair:
    """A step s, the change y of the gradient along it, and ``1 / (y' s)``."""

    s: Floats
    y: Floats
    rho: float


class LBFGSInverseHessian:
    """Products with the inverse of a Hessian as the last steps show it (L-BFGS).

    `initial` multiplies by the matrix that it begins with, ``H_0`` of the textbook.
    """

    def __init__(
        self, initial_product: Product, pairs: Sequence[CurvaturePair] = ()
    ) -> None:
        self.initial = initial_product
        self.pairs = list(pairs)
        self.scale = 1.0

    def update(
        self, step: Floats, gradient_change: Floats, *, step_was_halved: bool = False
    ) -> None:
        """Remember the step s and the change y of the gradient; was the step halved?"""
        curvature = float(step @ gradient_change)
        if curvature <= 0.0:
            return
        # A halved step shows that H_0 is too large: gamma of Nocedal and Wright (7.20), or each
        # step after it would be halved as well.
        if step_was_halved or self.scale < 1.0:
            shown = curvature / max(
                1e-300, float(gradient_change @ self.initial(gradient_change))
            )
            self.scale = min(1.0, shown)
        self.pairs = self.pairs[1 - MAX_LBFGS_PAIRS :]
        self.pairs.append(CurvaturePair(step, gradient_change, 1.0 / curvature))

    def __call__(self, gradient: Floats) -> Floats:
        """Return ``H_k g`` by the two-loop recursion, algorithm 7.4 of Nocedal and Wright."""
        q = gradient.copy()
        alphas = []
        for pair in reversed(self.pairs):
            alpha = pair.rho * float(pair.s @ q)
            q -= alpha * pair.y
            alphas.append(alpha)
        r = self.scale * self.initial(q)
        for pair, alpha in zip(self.pairs, reversed(alphas), strict=True):
            beta = pair.rho * float(pair.y @ r)
            r = r + (alpha - beta) * pair.s
        return r


class StopAtSlowDecrease:
    """A callback: ends a search whose decrement is more than `ratio` times the last one.

    Only decrements of at most `below` are looked at. `stopped` says whether it ended the search.
    """

    def __init__(
        self, max_decrement_ratio: float, max_decrement: float = math.inf
    ) -> None:
        self.ratio = max_decrement_ratio
        self.below = max_decrement
        self.last = math.inf
        self.stopped = False

    def __call__(self, solution: Solution) -> bool:
        """Return whether the search ends."""
        falls = solution.decrement <= self.ratio * self.last
        self.stopped = solution.decrement <= self.below and not falls
        self.last = solution.decrement
        return self.stopped


class MemoizedObjective:
    """An objective that remembers its last point, where a search then begins without a pass.

    `x` and `derivatives` are a point that is known already.
    """

    def __init__(
        self,
        objective: Objective,
        x: Floats | None = None,
        derivatives: Derivatives | None = None,
    ) -> None:
        self.objective = objective
        self._x = x
        self._terms = derivatives

    def __call__(self, x: Floats) -> Derivatives:
        """Return value, gradient and Hessian at `x`."""
        if self._terms is None or not (x == self._x).all():
            self._x = x.copy()
            self._terms = self.objective(x)
        return self._terms


@dataclass(frozen=True)
class Root:
    """Where a function is 0.

    `bound` is 0 inside the bounds, 1 (-1) where the function is still negative (positive) at the
    upper (lower) one.
    """

    x: float
    bound: int
    n_iter: int


def find_root(
    function: Callable[[float], tuple[float, float]],
    x0: float,
    lower: float,
    upper: float,
    *,
    xtol: float = 0.0,
    rtol: float = 0.0,
    max_iter: int = 100,
) -> Root:
    """Find the root of an increasing function by steps inside a bracket.

    Parameters
    ----------
    function : callable
        ``function(x) -> (value, step)``: the value, and the step to the root by Newton's or a
        better rule.
    x0 : float
        Where the search begins.
    lower, upper : float
        Bounds, which may be infinite.
    xtol, rtol : float
        A step of at most ``xtol + rtol |x|`` is the last one.
    max_iter : int
        Most evaluations.

    Returns
    -------
    Root
        One step ahead of the last evaluation.

    Notes
    -----
    1. Keep the bracket: the root is above x where the value is negative.
    2. Take the step, up to the bounds; where that does not move x, the root lies beyond the bound.
    3. A short step is the last one.
    4. Where the step leaves the bracket, halve the bracket instead.

    Newton's method with bisection as in [1]_. SciPy's ``brentq`` uses no slopes, so that it needs
    more values, and here each is a pass over all rows.

    References
    ----------
    .. [1] W. Press, S. Teukolsky, W. Vetterling, B. Flannery (2007). Numerical Recipes, 3rd
           edition, section 9.4 (rtsafe).
    """
    low = -math.inf
    high = math.inf
    x = x0
    for n_iter in range(1, max_iter + 1):
        value, step = function(x)
        if value == 0.0:
            return Root(x, 0, n_iter)
        # 1. The bracket.
        if value < 0.0:
            low = x
        else:
            high = x
        # 2. The step.
        trial = min(max(x + step, lower), upper)
        if trial == x:
            return Root(x, 1 if value < 0.0 else -1, n_iter)
        # 3. The last step.
        if abs(step) <= xtol + rtol * abs(x):
            return Root(trial, 0, n_iter)
        # 4. The next place.
        x = trial
        if not low < trial < high:
            x = 0.5 * (max(low, lower) + min(high, upper))
    return Root(x, 0, max_iter)
