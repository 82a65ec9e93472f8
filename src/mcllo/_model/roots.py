"""The root of an increasing function of one variable."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


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
