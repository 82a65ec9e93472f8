"""Many tests at once: Holm's adjustment, and closed testing of nested hypotheses.

============  ==============================================================================
Holm          sorted p-values ``p_(1) <= ... <= p_(m)``: ``max_{i <= k} min(1, (m - i + 1) p_(i))``
closed test   a hypothesis is rejected iff it and every hypothesis inside it are rejected locally
============  ==============================================================================

Both keep the probability of any false rejection at the level, whichever hypotheses are true and
however the tests depend on each other (Holm 1979; Marcus, Peritz and Gabriel 1976). Closed testing
needs a family that holds all its intersections.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def holm(pvalues: Sequence[float] | Floats) -> Floats:
    """Return Holm's adjusted p-values, in the order given; NaN stays NaN and does not count.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    given = np.asarray(pvalues, dtype=np.float64)
    adjusted = np.full(given.shape, np.nan)
    known = np.flatnonzero(~np.isnan(given))
    order = known[np.argsort(given[known], kind="stable")]
    steps = np.arange(len(order), 0, -1) * given[order]
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return adjusted


def closed_test(
    pvalues: Mapping[str, float], inside: Mapping[str, Sequence[str]], alpha: float
) -> dict[str, bool]:
    """Return which hypotheses are rejected.

    Parameters
    ----------
    pvalues : mapping of str to float
        Local p-values; NaN where a hypothesis cannot be tested, which is then never rejected.
    inside : mapping of str to sequence of str
        The hypotheses that imply each one, itself not listed.
    alpha : float
        Probability of any false rejection.

    Examples
    --------
    >>> closed_test({"a": 0.2, "b": 0.01}, {"a": (), "b": ("a",)}, 0.05)
    {'a': False, 'b': False}
    """
    local = {name: p <= alpha for name, p in pvalues.items()}
    return {name: local[name] and all(local[part] for part in inside[name]) for name in local}
