"""Calibration errors without bins: of kernels, and of the smoothed top label.

The squared kernel error (Widmann 2019) looks at all classes at once: with residual
``e_i = onehot(y_i) - x_i`` and ``h_ij = k(x_i, x_j) e_i . e_j``,

===============  ==========================================================================
kernel           ``k(p, q) = exp(-d(p, q) / bandwidth)``; d Euclidean, or total variation
                 ``1/2 sum_k |p_k - q_k|``
biased           mean of h_ij over all pairs, i = j included; never negative
unbiased         mean of h_ij over i < j; has mean 0 under calibration
linear           mean of h over the disjoint pairs (0, 1), (2, 3), ...
median           bandwidth: median of d over i < j
===============  ==========================================================================

Pairs are summed in blocks of rows, so memory does not grow with the square of the rows. The smooth
error (Blasiok and Nakkiran 2023) has no bandwidth to choose:

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

from typing import Any, Literal

import numpy as np

from .._utils.results import Codes, Floats
from .._validation.predictions import Predictions, predictions_for_scoring
from ..exceptions import InputError
from ._binned import Classes
from ._bins import top_label, total_weight, weighted_quantile

Estimator = Literal["biased", "unbiased", "linear"]
Distance = Literal["euclidean", "tv"]
Bandwidth = float | Literal["median"]

MAX_KERNEL_VALUES_AT_ONCE = 1_000_000
"""Kernel values held at once: 8 MB."""
MAX_ROWS_FOR_MEDIAN = 1_500
"""Rows from which the median distance is taken, evenly spaced, when there are more; a round
number."""
N_GRID_POINTS = 16_384
"""Cells of the grid of the smooth error: a power of 2, for the transform, so many that none is
wider than a ten thousandth."""


def kernel_calibration_error(
    y_true: Any,
    y_prob: Any,
    *,
    estimator: Estimator = "unbiased",
    distance: Distance = "tv",
    bandwidth: Bandwidth = "median",
    sample_weight: Any = None,
    classes: Classes = None,
) -> float:
    """Return the squared kernel calibration error with a Laplacian kernel.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels that came true.
    y_prob : array-like or frame of shape (n_samples, n_classes)
        Predicted probabilities.
    estimator : {"unbiased", "biased", "linear"}
        Over all pairs of different rows (may be negative), over all pairs, or over disjoint pairs
        of neighbouring rows (fast, and noisier).
    distance : {"tv", "euclidean"}
        Between two rows of probabilities: total variation, or Euclidean.
    bandwidth : float or "median"
        The distance at which the kernel has fallen to 1/e; "median" is the median distance of two
        rows (of 1,500 evenly spaced rows when there are more; the mean where the median is 0).
    sample_weight : array-like of shape (n_samples,), optional
        Row i counts as ``sample_weight[i]`` rows; whole numbers for "linear".
    classes : sequence, optional
        The label of each column. Default: the frame's column names, else the sorted distinct
        labels.

    Returns
    -------
    float
        Its mean is 0 for calibrated predictions, of the unbiased and the linear estimator.

    See Also
    --------
    mcllo.omnibus_test : A test by this statistic.
    smooth_calibration_error : Another error without bins.
    debiased_squared_calibration_error : A squared error with bins.

    Notes
    -----
    The estimators are those of [1]_, with the kernel ``exp(-distance / bandwidth)`` times the
    identity over classes. The error is 0 in the limit only for predictions that are calibrated in
    all classes at once.

    References
    ----------
    .. [1] D. Widmann, F. Lindsten, D. Zachariah (2019). Calibration tests in multi-class
           classification: a unifying framework. arXiv:1910.11385.

    Examples
    --------
    >>> y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]
    >>> round(kernel_calibration_error([0, 0, 1, 0], y_prob, estimator="biased"), 4)
    0.0692
    """
    if estimator not in ("biased", "unbiased", "linear"):
        raise InputError(
            f"estimator must be 'biased', 'unbiased' or 'linear'; got estimator={estimator!r}."
        )
    p = predictions_for_scoring(
        y_true, y_prob, sample_weight=sample_weight, classes=classes
    )
    width = resolve_bandwidth(p, bandwidth, distance)
    total = total_weight(p.probs, p.sample_weight)
    if estimator != "biased" and not total > 1.0:
        raise InputError(
            f"estimator={estimator!r} must have two rows at least; got {total:g}."
        )
    if estimator == "linear":
        return _mean_kernel_of_disjoint_pairs(p, width, distance)
    weight = p.row_weight
    residual = label_residuals(p.probs, p.codes)
    pairs = _sum_kernel_over_pairs(p.probs, residual * weight[:, None], width, distance)
    if estimator == "biased":
        return pairs / total**2
    pairs_of_a_row_with_itself = float(
        weight @ np.einsum("ik,ik->i", residual, residual)
    )
    return (pairs - pairs_of_a_row_with_itself) / (total * (total - 1.0))


class KernelError:
    """Squared kernel errors of fixed predictions, for any number of label vectors.

    Holds the kernel of all pairs: for up to a few thousand rows. Rows have no weights here.
    """

    def __init__(
        self,
        predictions: Predictions,
        estimator: Literal["biased", "unbiased"] = "biased",
        distance: Distance = "tv",
        bandwidth: Bandwidth = "median",
    ) -> None:
        if predictions.sample_weight is not None:
            raise InputError(
                "KernelError must have rows without weights. Write them out first."
            )
        probs = predictions.probs
        kernel = pairwise_distances(probs, probs, distance)
        kernel /= -resolve_bandwidth(predictions, bandwidth, distance, kernel)
        np.exp(kernel, out=kernel)
        self.kernel = kernel
        self.probs = probs
        self.estimator = estimator
        self._cross = kernel @ probs
        self._constant = float(np.vdot(self._cross, probs))

    def of_labels(self, labels: Codes) -> Floats:
        """Return the error of each row of `labels`, (n_draws, n_samples).

        ``e_i . e_j = 1{y_i = y_j} - x_i[y_j] - x_j[y_i] + x_i . x_j``; only the first part needs
        the pairs of each draw, of rows that some draw gives the class.
        """
        n, n_classes = self.probs.shape
        each_row = np.arange(n)
        pairs = self._constant - 2.0 * self._cross[each_row, labels].sum(axis=1)
        for k in range(n_classes):
            has_class = labels == k
            rows: Any = np.flatnonzero(has_class.any(axis=0))
            if 2 * len(rows) > n:
                rows = slice(
                    None
                )  # hardly a row goes without the class: no copy of the kernel
            indicator = has_class[:, rows].astype(np.float64)
            kernel = self.kernel[rows][:, rows]
            pairs += np.einsum("bi,bi->b", indicator @ kernel, indicator)
        if self.estimator == "biased":
            return pairs / n**2
        squared_norms = np.einsum("ik,ik->", self.probs, self.probs)
        prob_of_label = self.probs[each_row, labels].sum(axis=1)
        pairs -= n - 2.0 * prob_of_label + squared_norms  # pairs of a row with itself
        return pairs / (n * (n - 1.0))


def label_residuals(probs: Floats, codes: Codes) -> Floats:
    """Return ``onehot(y) - x``."""
    residual = -probs
    residual[np.arange(len(codes)), codes] += 1.0
    return residual


def pairwise_distances(first: Floats, second: Floats, distance: Distance) -> Floats:
    """Return the distance of every row of `first` to every row of `second`."""
    if distance not in ("euclidean", "tv"):
        raise InputError(
            f"distance must be 'euclidean' or 'tv'; got distance={distance!r}."
        )
    found = np.zeros((len(first), len(second)))
    columns = np.ascontiguousarray(second.T)
    # So few that they stay in the cache while classes are added up: 800 kB.
    n_rows = max(1, 100_000 // len(second))
    for start in range(0, len(first), n_rows):
        rows = slice(start, start + n_rows)
        for own, others in zip(first[rows].T, columns, strict=True):
            difference = own[:, None] - others
            if distance == "tv":
                found[rows] += np.abs(difference, out=difference)
            else:
                found[rows] += np.square(difference, out=difference)
    if distance == "tv":
        return np.multiply(found, 0.5, out=found)
    return np.sqrt(found, out=found)


def resolve_bandwidth(
    p: Predictions,
    bandwidth: Bandwidth,
    distance: Distance,
    apart: Floats | None = None,
) -> float:
    """Return the bandwidth as a number: the mean distance where the median is 0.

    `apart` are the distances of all pairs of rows, where they are known.
    """
    if not isinstance(bandwidth, str):
        if not (np.isfinite(bandwidth) and bandwidth > 0.0):
            raise InputError(
                f"bandwidth must be positive or 'median'; got bandwidth={bandwidth}."
            )
        return float(bandwidth)
    if bandwidth != "median":
        raise InputError(f"bandwidth must be positive or 'median'; got {bandwidth!r}.")
    if p.n_samples > MAX_ROWS_FOR_MEDIAN:
        some = (
            np.linspace(0, p.n_samples - 1, MAX_ROWS_FOR_MEDIAN).round().astype(np.intp)
        )
        p = p.take(some)
        if apart is not None:
            apart = apart[np.ix_(some, some)]
    if apart is None:
        apart = pairwise_distances(p.probs, p.probs, distance)
    is_pair = ~np.tri(p.n_samples, dtype=bool)
    found = apart[is_pair]
    weight = None
    if p.sample_weight is not None:
        # A row that counts w times has w (w - 1) / 2 pairs of distance 0 with its copies.
        own = p.sample_weight
        pairs_of_copies = np.maximum(own * (own - 1.0) / 2.0, 0.0)
        found = np.append(found, np.zeros(p.n_samples))
        weight = np.append(np.outer(own, own)[is_pair], pairs_of_copies)
    if len(found) == 0 or not found.any():
        return 1.0
    median = float(weighted_quantile(found, 0.5, weight))
    if median > 0.0:
        return median
    return float(np.average(found, weights=weight))


def _sum_kernel_over_pairs(
    probs: Floats, residual: Floats, width: float, distance: Distance
) -> float:
    """Return the sum of ``k(x_i, x_j) e_i . e_j`` over all pairs, each block of rows once."""
    n = len(probs)
    n_rows = max(1, MAX_KERNEL_VALUES_AT_ONCE // n)
    total = 0.0
    for start in range(0, n, n_rows):
        stop = min(start + n_rows, n)
        apart = pairwise_distances(probs[start:stop], probs[start:], distance)
        kernel = np.exp(apart / -width)
        products = residual[start:stop] @ residual[start:].T
        products *= kernel
        within_block = float(products[:, : stop - start].sum())
        with_later_rows = float(products[:, stop - start :].sum())
        total += within_block + 2.0 * with_later_rows
    return total


def _mean_kernel_of_disjoint_pairs(
    p: Predictions, width: float, distance: Distance
) -> float:
    """Return the mean over the disjoint pairs (0, 1), (2, 3), ..."""
    if p.sample_weight is not None:
        if not p.has_whole_weights:
            raise InputError(
                "sample_weight must hold whole numbers for estimator='linear', which pairs rows. "
                "Use estimator='unbiased'."
            )
        p = p.expand_weights()
    n_paired = p.n_samples // 2 * 2
    residual = label_residuals(p.probs, p.codes)[:n_paired]
    difference = p.probs[0:n_paired:2] - p.probs[1:n_paired:2]
    if distance == "tv":
        apart = np.abs(difference).sum(axis=1) * 0.5
    else:
        apart = np.sqrt((difference**2).sum(axis=1))
    kernel = np.exp(-apart / width)
    products = np.einsum("ik,ik->i", residual[0::2], residual[1::2])
    return float((kernel * products).mean())


def smooth_calibration_error(
    y_true: Any,
    y_prob: Any,
    *,
    bandwidth: float | None = None,
    sample_weight: Any = None,
    classes: Classes = None,
) -> float:
    """Return the smooth calibration error of the top label.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels that came true.
    y_prob : array-like or frame of shape (n_samples, n_classes)
        Predicted probabilities.
    bandwidth : float, optional
        Standard deviation of the kernel. Default: the one that equals the error it gives.
    sample_weight : array-like of shape (n_samples,), optional
        Row i counts as ``sample_weight[i]`` rows.
    classes : sequence, optional
        The label of each column. Default: the frame's column names, else the sorted distinct
        labels.

    Returns
    -------
    float
        Between 0 and 1.

    See Also
    --------
    expected_calibration_error : In bins.
    kernel_calibration_error : Of all classes at once.
    integrated_calibration_index : Of a spline.

    Notes
    -----
    The smooth error of [1]_ with a reflected Gaussian kernel; its bandwidth is the one that equals
    the error.

    References
    ----------
    .. [1] J. Błasiok, P. Nakkiran (2023). Smooth ECE: principled reliability diagrams via kernel
           smoothing. arXiv:2309.12236.

    Examples
    --------
    >>> y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]
    >>> round(smooth_calibration_error([0, 0, 1, 0], y_prob), 3)
    0.132
    """
    from scipy.fft import dct, idct

    if bandwidth is not None and not (np.isfinite(bandwidth) and bandwidth > 0.0):
        raise InputError(
            f"bandwidth must be positive or None; got bandwidth={bandwidth}."
        )
    p = predictions_for_scoring(
        y_true, y_prob, sample_weight=sample_weight, classes=classes
    )
    top, confidence = top_label(p.probs)
    residual = (top == p.codes) - confidence
    spectrum = dct(_split_residuals_on_grid(confidence, residual, p.sample_weight))
    frequency = np.pi * np.arange(N_GRID_POINTS)

    def error_at(bandwidth: float) -> float:
        heat = np.exp(-0.5 * (frequency * bandwidth) ** 2)
        return float(np.abs(idct(spectrum * heat)).sum())

    if bandwidth is not None:
        return error_at(bandwidth)
    # By bisection, to 1e-9: error_at(s) - s falls from >= 0 to <= 0.
    low = 0.0
    high = 1.0
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        if error_at(middle) > middle:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high) if low > 0.0 else 0.0


def _split_residuals_on_grid(
    values: Floats, residuals: Floats, weight: Floats | None
) -> Floats:
    """Return the mean residual's share of each cell, split linearly between cell centres."""
    if weight is None:
        weight = np.ones(len(values))
    shares = residuals * weight / weight.sum()
    position = values * N_GRID_POINTS - 0.5  # in cells, from the centre of the first
    lower = np.floor(position)
    part_of_upper = position - lower
    cells = np.concatenate([lower, lower + 1.0])
    cells = np.clip(cells, 0, N_GRID_POINTS - 1).astype(np.intp)
    split = np.concatenate([shares * (1.0 - part_of_upper), shares * part_of_upper])
    return np.bincount(cells, split, N_GRID_POINTS).astype(np.float64)
