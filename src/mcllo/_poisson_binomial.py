"""The number of hits among rows with different probabilities, exactly.

The probabilities of 0, 1, ..., n hits are the coefficients of ``prod_i (1 - p_i + p_i z)``; the
factors are multiplied in pairs, pairs of pairs and so on, by Fourier transforms: O(n log^2 n).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def poisson_binomial(probs: Floats) -> Floats:
    """Return the probabilities of 0 .. n hits among n rows that hit with `probs`.

    Examples
    --------
    >>> poisson_binomial(np.array([0.5, 0.5])).round(12)
    array([0.25, 0.5 , 0.25])
    """
    from scipy.fft import irfft, next_fast_len, rfft

    n = len(probs)
    factors = np.zeros((1 << max(0, n - 1).bit_length(), 2))
    factors[:, 0] = 1.0
    factors[:n] = np.column_stack([1.0 - probs, probs])
    while len(factors) > 1:
        size = 2 * factors.shape[1] - 1
        length = next_fast_len(size, real=True)
        waves = rfft(factors, length, axis=1)
        factors = irfft(waves[0::2] * waves[1::2], length, axis=1)[:, :size]
    mass: Floats = np.maximum(factors[0, : n + 1], 0.0)
    return mass


def central_range(probs: Floats, level: float) -> tuple[int, int]:
    """Return numbers of hits (low, high) with at most ``(1 - level) / 2`` below and above."""
    below = np.cumsum(poisson_binomial(probs))
    tail = (1.0 - level) / 2.0
    low, high = np.searchsorted(below, [tail + 1e-12, 1.0 - tail - 1e-12])
    return int(low), int(min(high, len(probs)))
