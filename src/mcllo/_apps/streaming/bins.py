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

The bins are those of `metrics/_bins`. The groups of the Hosmer-Lemeshow test are cut at given
values, so they add; any cut that does not look at the labels gives a valid test.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..._inference.omnibus import OmnibusTest
from ..._utils.results import Codes, Floats
from ..._validation.labels import Classes
from ..._validation.predictions import Predictions
from ...metrics._bins import top_label, width_edges, width_index
from ...metrics._reliability import ReliabilityCurve, central_range, curve_of_sums, ratio
from .sums import Block

N_CURVE_BINS = 10
MAX_BINOMIAL_BAND_ROWS = 2000
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
        """Return the quadratic form of `_inference/omnibus` with its chi-square p-value."""
        return OmnibusTest.of_groups(self.excess, self.spread)

    def reliability(self, classes: Classes, level: float = 0.95) -> list[ReliabilityCurve]:
        """Return the curve of the most probable class, then those of the classes."""
        inner, curves = width_edges(N_CURVE_BINS), []
        for label, sums in zip((None, *classes), self.curves.swapaxes(0, 1), strict=True):
            counts, predicted, hits, variance = sums
            bands = _bands(counts, ratio(predicted, counts), variance, level)
            curves.append(curve_of_sums(label, inner, (counts, predicted, hits), bands, level))
        return curves


def bin_sums(block: Block, n_bins: int, cuts: Floats) -> BinSums:
    """Return the sums of a block; `cuts` are those of the Hosmer-Lemeshow groups."""
    rows, cells = block.rows, BinCells.from_n_bins(n_bins)
    index, most = top_label(rows.probs)
    sums = cells.sums(most, index == rows.codes, rows.sample_weight)
    top = np.stack([np.add.reduceat(part, cells.fine) for part in sums[:3]])
    curves, gaps = [cells.curve_sums(sums)], np.empty((rows.n_classes, n_bins))
    for k in range(rows.n_classes):  # one class at a time stays in cache
        sums = cells.sums(rows.probs[:, k], rows.codes == k, rows.sample_weight)
        curves.append(cells.curve_sums(sums))
        _, predicted, hits, _ = sums
        predicted -= hits
        np.add.reduceat(predicted, cells.fine, out=gaps[k])
    return BinSums(top, gaps, np.stack(curves, axis=1), *_groups(rows, cuts))


@dataclass(frozen=True, eq=False)
class BinCells:
    """Bins of the calibration errors, cut at the edges of the curves' bins too: one count for both.

    `fine` and `curve` are the first cell of each bin, and of each bin of a curve; `cell` is the one
    cell of a bin, -1 where it has several; `start` the curve's bin in which a bin begins.
    """

    n_bins: int
    n_cells: int
    fine: Codes
    curve: Codes
    cell: Codes
    start: Codes

    @staticmethod
    @lru_cache(maxsize=4)
    def from_n_bins(n_bins: int) -> BinCells:
        """Return the cells of `n_bins` bins of equal width."""
        edges = np.union1d(width_edges(n_bins), width_edges(N_CURVE_BINS))
        fine, curve = (
            np.concatenate([[0], 1 + np.searchsorted(edges, width_edges(count))])
            for count in (n_bins, N_CURVE_BINS)
        )
        several = np.diff(fine, append=len(edges) + 1) > 1
        start = np.searchsorted(curve, fine, side="right") - 1
        return BinCells(n_bins, len(edges) + 1, fine, curve, np.where(several, -1, fine), start)

    def index(self, values: Floats) -> Codes:
        """Return the cell of each value; those in a bin of several cells are looked at again."""
        bins = width_index(values, self.n_bins)
        index = self.cell[bins]
        again = np.flatnonzero(index < 0)
        if len(again):
            own = bins[again]
            passed = width_index(values[again], N_CURVE_BINS) - self.start[own]
            index[again] = self.fine[own] + passed
        return index

    def sums(
        self, values: Floats, hit: NDArray[np.bool_], weight: Floats | None
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Return weight, predictions, weight of hits and variance in the cells."""
        index, hits = self.index(values), np.flatnonzero(hit)
        predicted = values if weight is None else values * weight
        own = None if weight is None else weight[hits]
        return (
            self._total(index, weight),
            self._total(index, predicted),
            self._total(index[hits], own),
            self._total(index, predicted * (1.0 - values)),
        )

    def curve_sums(self, sums: tuple[Floats, ...]) -> Floats:
        """Return sums of cells in the bins of a curve, shape (4, N_CURVE_BINS)."""
        return np.stack([np.add.reduceat(part, self.curve) for part in sums])

    def _total(self, index: Codes, values: Floats | None) -> Floats:
        """Return the sums of `values` (the counts, for None) in cells."""
        return np.bincount(index, values, self.n_cells).astype(np.float64, copy=False)


def _groups(rows: Predictions, cuts: Floats) -> tuple[Floats, Floats]:
    """Return observed less expected counts of each group, and their covariance."""
    g, c = len(cuts) + 1, rows.n_classes
    excess, spread = np.zeros((g, c)), np.zeros((g, c, c))
    if rows.sample_weight is not None or g == 1:
        return excess, spread
    away = 1.0 - rows.probs[:, rows.baseline_index]
    group = np.zeros(rows.n_samples, dtype=np.uint8)
    for cut in cuts:  # of so few, faster than a search
        group += away > cut
    order = np.argsort(group, kind="stable")
    ends = np.searchsorted(group[order], np.arange(g + 1))
    probs, codes, ones = rows.probs.T[:, order], rows.codes[order], np.ones(rows.n_samples)
    for k in range(g):
        own = slice(ends[k], ends[k + 1])
        inside = probs[:, own]
        expected = inside @ ones[own]
        excess[k] = np.bincount(codes[own], minlength=c).astype(np.float64) - expected
        spread[k] = np.diag(expected) - inside @ inside.T
    return excess, spread


def _bands(counts: Floats, mean: Floats, variance: Floats, level: float) -> tuple[Floats, Floats]:
    """Return where the observed frequency should lie: normal, or binomial where rows are few.

    A binomial count varies at least as much as one of unequal chances with the same mean.
    """
    from scipy.special import ndtri

    reach = float(ndtri(0.5 + level / 2.0)) * ratio(np.sqrt(variance), counts)
    low, high = np.maximum(mean - reach, 0.0), np.minimum(mean + reach, 1.0)
    if not (counts == np.floor(counts)).all():
        return np.full_like(low, np.nan), np.full_like(high, np.nan)
    for m in np.flatnonzero((counts > 0.0) & (counts <= MAX_BINOMIAL_BAND_ROWS)):
        few = central_range(np.full(int(counts[m]), mean[m]), level)
        low[m], high[m] = np.array(few) / counts[m]
    return low, high
