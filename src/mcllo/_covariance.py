"""The covariance of the estimates: the inverse of the Hessian among the free parameters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LARGE = 500
"""Parameters from which it pays to invert by a Cholesky factor."""


def covariance(hessian: Floats, free: NDArray[np.bool_], determined: bool) -> Floats:
    """Return the covariance of all parameters; NaN for fixed ones, or all where not determined."""
    if determined and free.all():
        return inverse(hessian)
    whole = np.full((len(free), len(free)), np.nan)
    if determined:
        whole[np.ix_(free, free)] = inverse(hessian)
    return whole


def inverse(hessian: Floats) -> Floats:
    """Return the inverse; a large one from its Cholesky factor, in two fifths of the time."""
    if len(hessian) > LARGE:
        from scipy.linalg.lapack import dpotrf, dpotri

        factor, failed = dpotrf(hessian, lower=1, clean=0)
        half, failed = (factor, failed) if failed else dpotri(factor, lower=1)
        if not failed:
            half = np.tril(half)
            half += np.tril(half, -1).T
            return np.asarray(half, dtype=np.float64)
    return np.asarray(np.linalg.inv(hessian), dtype=np.float64)
