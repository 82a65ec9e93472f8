"""How sure a mean is: rows counted by their weights, or units that may depend inside.

===========  ====================================================================================
counts       ``sqrt(sum w_i d_i^2 / (W - 1) / W)``, W the sum of the weights, ``d_i`` deviations
groups       ``sqrt(m / (m - 1) sum_g (sum_{i in g} w_i d_i)^2) / W`` for m groups of weight
===========  ====================================================================================

Survey weights count no rows: pass each row as a group of its own.
"""

from __future__ import annotations

import numpy as np

from .results import Codes, Floats


def error_of_mean(
    deviations: Floats, weight: Floats, groups: Codes | None = None
) -> tuple[float, float]:
    """Return the standard error of a weighted mean, and how many units it comes from.

    Parameters
    ----------
    deviations : ndarray of shape (n,)
        Values less their weighted mean.
    weight : ndarray of shape (n,)
        How many rows each stands for; with groups, any weights that are not negative.
    groups : ndarray of shape (n,), optional
        Which rows may depend on each other, as 0, 1, ...

    Examples
    --------
    >>> values = np.array([1.0, 2.0, 3.0, 6.0])
    >>> error, units = error_of_mean(values - 3.0, np.ones(4))
    >>> bool(np.isclose(error, values.std(ddof=1) / 2)), units
    (True, 4.0)
    >>> error_of_mean(np.array([0.0]), np.ones(1))
    (inf, 1.0)
    """
    total = float(weight.sum())
    if groups is None:
        units, squares = total, float(weight @ deviations**2)
    else:
        sums = np.bincount(groups, weights=weight * deviations)
        units = float((np.bincount(groups, weights=weight) > 0.0).sum())
        squares = float(sums @ sums)
    if units <= 1.0:
        return float("inf"), units
    return float(np.sqrt(squares * units / (units - 1.0))) / total, units
