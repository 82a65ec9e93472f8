"""The only definition of a bin.

=================  ==========================================================================
bin m              ``(a_m, a_m+1]``, closed on the right; the value 0 belongs to the first bin
equal width        inner edges ``m / B``, m = 1 .. B-1, as quotients: ``linspace`` puts the
                   third of ten at 0.30000000000000004; found by a product, without a search
equal mass         inner edges are the quantiles ``m / B`` of the values, equal ones merged, so
                   that equal values never part
number of bins     an integer, or "sqrt": the least B with ``B**2 >= n``
=================  ==========================================================================

Two published metrics cut in their own way; those cuts live here too, under names of their own:

=================  ==========================================================================
`rank_blocks`      Nixon's ACE: B runs of the sorted values, sizes as in ``array_split``; equal
                   values may part
`midpoint_edges`   Kumar: midway between neighbouring runs of `rank_blocks`
=================  ==========================================================================

A weight w counts as w equal rows everywhere: "sqrt" looks at the total weight, quantiles and runs
are those of the rows written out.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._utils.parallel import row_blocks
from .._utils.results import Floats
from ..exceptions import InputError

Index = NDArray[np.intp]
NBins = int | Literal["sqrt"]
Binning = Literal["width", "mass"]


def top_label(probs: Floats) -> tuple[Index, Floats]:
    """Return the most probable class of each row, of ties the first, and its probability."""
    index = np.empty(len(probs), dtype=np.intp)
    if probs.flags.c_contiguous:
        # By blocks of rows: NumPy's argmax copies what is read-only.
        for rows in row_blocks(*probs.shape):
            index[rows] = probs[rows].argmax(axis=1)
        return index, probs[np.arange(len(probs)), index]
    # Class by class in memory: an argmax over classes would copy. The first of ties is set last.
    most = probs.max(axis=1)
    for k in range(probs.shape[1] - 1, -1, -1):
        index[probs[:, k] == most] = k
    return index, most


MAX_COUNTED_ROWS = 1e10
"""Rows, or their weight, of which the root is taken: 100,000 bins are enough for any."""


def resolve_n_bins(n_bins: NBins, n_samples: float) -> int:
    """Return the number of bins for `n_samples` rows (or their total weight).

    Examples
    --------
    >>> resolve_n_bins("sqrt", 396), resolve_n_bins("sqrt", 100), resolve_n_bins(15, 100)
    (20, 10, 15)
    """
    if isinstance(n_bins, str) and n_bins == "sqrt":
        return max(1, math.ceil(math.sqrt(min(n_samples, MAX_COUNTED_ROWS))))
    if (
        isinstance(n_bins, (int, np.integer))
        and not isinstance(n_bins, bool)
        and n_bins >= 1
    ):
        return int(n_bins)
    raise InputError(
        f"n_bins must be a whole number >= 1 or 'sqrt'; got n_bins={n_bins!r}."
    )


def inner_bin_edges(
    values: Floats,
    n_bins: NBins,
    binning: Binning = "width",
    weight: Floats | None = None,
) -> Floats:
    """Return the edges between the bins of `values`, ascending: one fewer than there are bins."""
    count = resolve_n_bins(n_bins, total_weight(values, weight))
    if binning == "width":
        return equal_width_edges(count)
    if binning == "mass":
        return equal_mass_edges(values, count, weight)
    raise InputError(f"binning must be 'width' or 'mass'; got binning={binning!r}.")


def assign_bins(
    values: Floats,
    n_bins: NBins,
    binning: Binning = "width",
    weight: Floats | None = None,
) -> tuple[Index, Floats]:
    """Return the bin of each value, and the edges between the bins."""
    edges = inner_bin_edges(values, n_bins, binning, weight)
    if binning == "width":
        return equal_width_bin_index(values, len(edges) + 1), edges
    return bin_index(values, edges), edges


def equal_width_bin_index(values: Floats, n_bins: int) -> Index:
    """Return the bins of equal width of values in [0, 1] up to rounding, of any shape.

    The product ``n_bins x`` tells the bin, but where it is a whole number up to rounding; there x
    is compared with that edge. 3 to 20 times as fast as a search among the edges.

    Examples
    --------
    >>> equal_width_bin_index(np.array([0.0, 0.1, 0.7, 0.71, 1.0]), 10)
    array([0, 0, 6, 7, 9])
    """
    scaled = values * n_bins
    whole = np.rint(scaled)
    index: Index = scaled.astype(np.intp)
    scaled -= whole
    # 1e-7: far above the rounding of a product, far below the distance of different probabilities.
    near = np.nonzero(np.abs(scaled, out=scaled) < 1e-7)
    if len(near[0]):
        edge = whole[near]
        is_in_bin_below = values[near] <= edge / n_bins
        index[near] = np.maximum(edge - is_in_bin_below, 0.0)
    return np.minimum(index, n_bins - 1, out=index)


def bin_index(
    values: Any, inner_edges: Floats, closed: Literal["right", "left"] = "right"
) -> Index:
    """Return the bin of each value; bins are closed on the right, as everywhere in this package.

    Examples
    --------
    >>> bin_index([0.0, 0.1, 0.7, 0.71, 1.0], equal_width_edges(10))
    array([0, 0, 6, 7, 9])
    """
    side: Literal["left", "right"] = "left" if closed == "right" else "right"
    index: Index = np.searchsorted(inner_edges, values, side=side)
    return index


def equal_width_edges(n_bins: int) -> Floats:
    """Return the inner edges of bins of equal width."""
    return np.arange(1, n_bins) / n_bins


def equal_mass_edges(
    values: Floats, n_bins: int, weight: Floats | None = None
) -> Floats:
    """Return the inner edges of bins of equal mass; fewer than asked where values tie."""
    levels = np.arange(1, n_bins) / n_bins
    edges = np.unique(weighted_quantile(values, levels, weight))
    return edges[edges < 1.0]


def midpoint_edges(values: Floats, n_bins: int, weight: Floats | None = None) -> Floats:
    """Return Kumar's inner edges: midway between neighbouring runs of the sorted values."""
    cuts = rank_blocks(total_weight(values, weight), n_bins)[1:-1]
    last_before = cuts - 1.0
    below, above = _order_statistics(values, np.stack([last_before, cuts]), weight)
    return np.unique((below + above) / 2.0)


def rank_blocks(total: float, n_blocks: int) -> Floats:
    """Return where runs of sorted rows start and end: 0, ..., `total`; no run is empty.

    A whole `total` is cut as ``numpy.array_split`` does, any other into equal parts.

    Examples
    --------
    >>> rank_blocks(10, 4)
    array([ 0.,  3.,  6.,  8., 10.])
    """
    if total != math.floor(total):
        return total * np.arange(n_blocks + 1) / n_blocks
    count = min(n_blocks, int(total))
    size, longer = divmod(int(total), count)
    steps = np.arange(count + 1)
    # The first runs are longer by one row each, as many as are left over.
    ends = steps * size + np.minimum(steps, longer)
    return ends.astype(np.float64)


def weight_and_sums_by_block(
    sort_key: Floats, columns: Floats, n_blocks: int, weight: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return weight and sums of `columns` (k, n) over the runs of rows sorted by `sort_key`.

    A row that stands across a cut gives each side its part of the weight, as its copies would.
    """
    order = np.argsort(sort_key, kind="stable")
    own = np.ones(len(sort_key)) if weight is None else weight[order]
    cuts = rank_blocks(total_weight(sort_key, weight), n_blocks)
    # Cumulated sums as a function of cumulated weight: straight lines within a row give each side
    # of a cut its part.
    cumulated = np.concatenate([[0.0], np.cumsum(own)])
    sums = np.zeros((len(columns), len(cumulated)))
    np.cumsum(columns[:, order] * own, axis=1, out=sums[:, 1:])
    sums_at_cuts = np.array([np.interp(cuts, cumulated, row) for row in sums])
    return np.diff(cuts), np.diff(sums_at_cuts, axis=1)


def total_weight(values: Floats, weight: Floats | None) -> float:
    """Return the number of rows written out."""
    return float(len(values) if weight is None else weight.sum())


def weighted_quantile(
    values: Floats, levels: Any, weight: Floats | None = None
) -> Floats:
    """Return ``numpy.quantile`` of the rows written out."""
    if weight is None:
        return np.asarray(np.quantile(values, levels))
    rank = (total_weight(values, weight) - 1.0) * np.asarray(levels)
    lower = np.floor(rank)
    below, above = _order_statistics(values, np.stack([lower, lower + 1.0]), weight)
    return np.asarray(below + (above - below) * (rank - lower))


def _order_statistics(values: Floats, ranks: Floats, weight: Floats | None) -> Floats:
    """Return the sorted values at zero-based `ranks` of the rows written out."""
    order = np.argsort(values, kind="stable")
    if weight is None:
        cumulated = np.arange(1.0, len(values) + 1.0)
        last = len(values) - 1
    else:
        cumulated = np.cumsum(weight[order])
        last = int(np.flatnonzero(weight[order])[-1])
    position = np.searchsorted(cumulated, ranks, side="right")
    return values[order][np.clip(position, 0, last)]
