"""Smooth calibration error (Blasiok and Nakkiran 2023): no bins, and no bandwidth to choose.

===============  ==========================================================================
residual at t    ``r_s(t) = 1/n sum_i K_s(t, f_i) (hit_i - f_i)``, f the top-label confidence
kernel           Gaussian of standard deviation s, reflected at 0 and 1 as often as needed
error at s       ``smECE_s = integral_0^1 |r_s(t)| dt``, falling in s
smooth error     ``smECE_s*``, where ``smECE_s* = s*``
===============  ==========================================================================

The reflected Gaussian is the heat kernel of [0, 1]: its effect on ``cos(k pi t)`` is the factor
``exp(-(k pi s)^2 / 2)``. So the residuals are put on a grid once (each split between its two
neighbouring cells) and one cosine transform serves every s.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._scored import scored_predictions
from .exceptions import InputError

Floats = NDArray[np.float64]

GRID = 16_384
TOLERANCE = 1e-9


def smooth_calibration_error(
    y_true: Any,
    y_prob: Any,
    *,
    bandwidth: float | None = None,
    sample_weight: Any = None,
    classes: Sequence[Hashable] | None = None,
) -> float:
    """Return the smooth calibration error of the top label.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    y_prob : array-like or frame of shape (n_samples, n_classes)
        Predicted probabilities.
    bandwidth : float, optional
        Standard deviation of the kernel. Default: the one that equals the error it gives.
    sample_weight : array-like of shape (n_samples,), optional
        Row i counts as ``sample_weight[i]`` rows.
    classes : sequence, optional
        The label of each column.

    Examples
    --------
    >>> y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]
    >>> round(smooth_calibration_error([0, 0, 1, 0], y_prob), 3)
    0.132
    """
    if bandwidth is not None and not (np.isfinite(bandwidth) and bandwidth > 0.0):
        raise InputError(f"bandwidth must be positive or None; got bandwidth={bandwidth}.")
    p = scored_predictions(y_true, y_prob, sample_weight=sample_weight, classes=classes)
    top = p.probs.argmax(axis=1)
    confidence = p.probs[np.arange(p.n_samples), top]
    error_at = smoothed_error(confidence, (top == p.codes) - confidence, p.sample_weight)
    return error_at(bandwidth) if bandwidth is not None else _fixed_point(error_at)


def smoothed_error(
    values: Floats, residuals: Floats, weight: Floats | None
) -> Callable[[float], float]:
    """Return the function from bandwidth to error."""
    from scipy.fft import dct, idct

    spectrum = dct(_on_grid(values, residuals, weight))
    wave = np.pi * np.arange(GRID)

    def error_at(bandwidth: float) -> float:
        return float(np.abs(idct(spectrum * np.exp(-0.5 * (wave * bandwidth) ** 2))).sum())

    return error_at


def _on_grid(values: Floats, residuals: Floats, weight: Floats | None) -> Floats:
    """Return the mean residual's share of each cell, split linearly between cell centres."""
    own = residuals / len(values) if weight is None else residuals * weight / weight.sum()
    place = values * GRID - 0.5
    lower = np.floor(place)
    part = place - lower
    cells = np.clip(np.concatenate([lower, lower + 1.0]), 0, GRID - 1).astype(np.intp)
    shares = np.concatenate([own * (1.0 - part), own * part])
    return np.bincount(cells, shares, GRID).astype(np.float64)


def _fixed_point(error_at: Callable[[float], float]) -> float:
    """Return s with ``error_at(s) = s`` by bisection: the difference falls from >= 0 to <= 0."""
    low, high = 0.0, 1.0
    while high - low > TOLERANCE:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if error_at(middle) > middle else (low, middle)
    return 0.5 * (low + high) if low > 0.0 else 0.0
