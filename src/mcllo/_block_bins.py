"""Bins of rows in blocks: calibration errors, reliability curves and Hosmer-Lemeshow as sums.

The number of bins depends on the number of rows, so these sums need a pass of their own. In bin m,
w the weights:

======================  ===================================================================
expected errors         ``sum w``, ``sum w x`` and the weight of hits; top label, each class
reliability curves      the same in 10 bins, and ``sum w x (1 - x)``, whose root is the standard
                        deviation of the hits under calibration
Hosmer-Lemeshow         observed less expected counts, and their covariance, in groups of rows
                        by the baseline's probability
======================  ===================================================================

The bins are those of `_binning`. The groups of the Hosmer-Lemeshow test are cut at given values, so
they add; any cut that does not look at the labels gives a valid test.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._binning import width_edges
from ._block_rows import Block
from ._block_sums import top_label
from ._calibration_test import chi2_sf
from ._labels import Classes
from ._omnibus import OmnibusTest
from ._poisson_binomial import central_range
from ._predictions import Predictions
from ._reliability import ReliabilityCurve, _ratio, _wilson

Floats = NDArray[np.float64]
Index = NDArray[np.intp]

N_CURVE_BINS = 10
FEW_ROWS = 2000
"""Rows of a bin up to which its band is that of a binomial count."""


@dataclass(frozen=True, eq=False)
class BinSums:
    """Sums over bins; those of blocks add.

    Attributes
    ----------
    top : ndarray of shape (3, n_bins)
        Weight, sum of predictions and weight of hits of the most probable class.
    gaps : ndarray of shape (n_classes, n_bins)
        Sum of predictions less weight of hits, class by class.
    curves : ndarray of shape (4, n_classes + 1, N_CURVE_BINS)
        Weight, predictions, hits and variance; the first curve is the most probable class's.
    excess : ndarray of shape (n_groups, n_classes)
        Observed less expected counts of Hosmer-Lemeshow groups.
    spread : ndarray of shape (n_groups, n_classes, n_classes)
        Their covariance.
    """

    top: Floats
    gaps: Floats
    curves: Floats
    excess: Floats
    spread: Floats

    def __add__(self, other: BinSums) -> BinSums:
        return BinSums(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def top_label_error(self) -> float:
        """Return the expected calibration error of the most probable class."""
        weight, predicted, hits = self.top
        return float(np.abs(predicted - hits).sum() / weight.sum())

    def classwise_error(self) -> float:
        """Return the mean over classes of their expected calibration errors."""
        return float(np.abs(self.gaps).sum(axis=1).mean() / self.top[0].sum())

    def hosmer_lemeshow(self) -> OmnibusTest:
        """Return the quadratic form of `_omnibus` with its chi-square p-value."""
        used = np.flatnonzero(np.trace(self.spread, axis1=1, axis2=2) > 0.0)
        value = 0.0
        for group in used:
            inverse = np.linalg.pinv(self.spread[group, :-1, :-1], rcond=1e-13, hermitian=True)
            away = self.excess[group, :-1]
            value += float(away @ inverse @ away)
        df = len(used) * (self.excess.shape[1] - 1)
        return OmnibusTest("hosmer_lemeshow", value, float(df), chi2_sf(value, df), 0, None)

    def reliability(self, classes: Classes, level: float = 0.95) -> list[ReliabilityCurve]:
        """Return the curve of the most probable class, then those of the classes."""
        return [_curve(label, self.curves[:, j], level) for j, label in enumerate((None, *classes))]


def bin_sums(block: Block, n_bins: int, cuts: Floats) -> BinSums:
    """Return the sums of a block; `cuts` are those of the Hosmer-Lemeshow groups."""
    rows = block.rows
    excess, spread = _groups(rows, cuts)
    top, most = top_label(rows.probs)
    hits = top == rows.codes
    weight = np.ones(rows.n_samples) if rows.sample_weight is None else rows.sample_weight
    index = width_index(most, n_bins)
    ece = [_binned(index, value, n_bins) for value in (weight, weight * most, weight * hits)]
    curves = np.concatenate(
        [
            _curve_sums(most[None], hits[None], weight),
            _curve_sums(rows.probs.T, rows.codes == np.arange(rows.n_classes)[:, None], weight),
        ],
        axis=1,
    )
    return BinSums(np.array(ece), _class_gaps(rows, weight, n_bins), curves, excess, spread)


def width_index(values: Floats, n_bins: int) -> Index:
    """Return ``bin_index(values, width_edges(n_bins))`` without a search.

    The product tells the bin but for rounding; the edges, as quotients, settle it.

    Examples
    --------
    >>> width_index(np.array([0.0, 0.1, 0.7, 0.71, 1.0]), 10)
    array([0, 0, 6, 7, 9])
    """
    edges = np.concatenate([[-np.inf], width_edges(n_bins), [np.inf]])
    index: Index = (values * n_bins).astype(np.intp)
    np.minimum(index, n_bins - 1, out=index)
    index -= values <= edges[index]
    index += values > edges[index + 1]
    return index


def _class_gaps(rows: Predictions, weight: Floats, n_bins: int) -> Floats:
    """Return predictions less hits in the bins of each class."""
    probs, c = rows.probs.T, rows.n_classes
    index = width_index(probs, n_bins)
    hit = index[rows.codes, np.arange(rows.n_samples)] + rows.codes * n_bins
    index += n_bins * np.arange(c)[:, None]
    predicted = _binned(index.ravel(), (probs * weight).ravel(), c * n_bins)
    return (predicted - _binned(hit, weight, c * n_bins)).reshape(c, n_bins)


def _curve_sums(values: Floats, hits: NDArray[np.bool_], weight: Floats) -> Floats:
    """Return weight, predictions, hits and variance in bins, shape (4, n_curves, n_bins)."""
    k, size = len(values), len(values) * N_CURVE_BINS
    index = width_index(values, N_CURVE_BINS)
    index += N_CURVE_BINS * np.arange(k)[:, None]
    flat, predicted = index.ravel(), values * weight
    sums = [
        _binned(flat, np.broadcast_to(weight, values.shape).ravel(), size),
        _binned(flat, predicted.ravel(), size),
        _binned(index[hits], np.broadcast_to(weight, values.shape)[hits], size),
        _binned(flat, (predicted * (1.0 - values)).ravel(), size),
    ]
    return np.array(sums).reshape(4, k, N_CURVE_BINS)


def _groups(rows: Predictions, cuts: Floats) -> tuple[Floats, Floats]:
    """Return observed less expected counts of each group, and their covariance."""
    group = np.searchsorted(cuts, 1.0 - rows.probs[:, rows.baseline_index])
    g, c = len(cuts) + 1, rows.n_classes
    excess: Floats = np.zeros((g, c))
    spread: Floats = np.zeros((g, c, c))
    if rows.sample_weight is not None:
        return excess, spread
    for k in range(g):
        inside = group == k
        probs = rows.probs[inside]
        expected: Floats = probs.sum(axis=0)
        excess[k] = np.bincount(rows.codes[inside], minlength=c) - expected
        spread[k] = np.diag(expected) - probs.T @ probs
    return excess, spread


def _binned(index: Any, values: Any, n_cells: int) -> Floats:
    sums: Floats = np.bincount(index, values, n_cells)
    return sums


def _curve(label: Any, sums: Floats, level: float) -> ReliabilityCurve:
    counts, predicted, hits, variance = sums
    observed, mean = _ratio(hits, counts), _ratio(predicted, counts)
    low, high = _wilson(observed, counts, level)
    band_low, band_high = _bands(counts, mean, variance, level)
    return ReliabilityCurve(
        label=label,
        edges=np.concatenate([[0.0], width_edges(N_CURVE_BINS), [1.0]]),
        counts=counts,
        mean_predicted=mean,
        observed=observed,
        low=low,
        high=high,
        band_low=band_low,
        band_high=band_high,
        level=level,
        binning="width",
    )


def _bands(counts: Floats, mean: Floats, variance: Floats, level: float) -> tuple[Floats, Floats]:
    """Return where the observed frequency should lie: normal, or binomial where rows are few.

    A binomial count varies at least as much as one of unequal chances with the same mean.
    """
    from scipy.special import ndtri

    reach = float(ndtri(0.5 + level / 2.0)) * _ratio(np.sqrt(variance), counts)
    low, high = np.maximum(mean - reach, 0.0), np.minimum(mean + reach, 1.0)
    whole = bool((counts == np.floor(counts)).all())
    for m in np.flatnonzero((counts > 0.0) & (counts <= FEW_ROWS)):
        if whole:
            few = central_range(np.full(int(counts[m]), mean[m]), level)
            low[m], high[m] = np.array(few) / counts[m]
    return low, high
