"""What adds over rows: all that a fit and an assessment need, as sums of blocks.

The first pass takes the sums of `metrics/_row_sums` and, with ``w_i`` the weight of row i
(`BlockSums`):

======================  =====================================================================
squares                 ``sum w l^2`` of the log odds of each class
sizes                   where each block starts and how many rows it has, in order
weighted, fraction      whether there are weights, and the first that is no whole number
======================  =====================================================================

The number of bins depends on the number of rows, so these sums need a pass of their own
(`BinSums`). In bin m:

======================  ===================================================================
expected errors         ``sum w``, ``sum w x`` and the weight of hits; top label, each class
reliability curves      the same in 10 bins, and ``sum w x (1 - x)``, whose root is the standard
                        deviation of the hits under calibration
Hosmer-Lemeshow         observed less expected counts, and their covariance, in groups of rows
                        by the baseline's probability
======================  ===================================================================

The bins are those of `metrics/_bins`. The groups of the Hosmer-Lemeshow test are cut at given
values, so they add; any cut that does not look at the labels gives a valid test.

Sums of blocks add by ``+``, which must be done in the order of the blocks. A `Block` is validated
by the same rules as a whole table: `Predictions` looks at one row at a time, so cutting rows into
blocks changes no number, but for four things that only the whole can tell. They are settled here:

==================  ========================================================================
classes             `classes`, else the columns' names, else what the first rows show
                    (`BlockLayout`); a label that is none of them is refused
baseline            the last class until all labels were seen; if none is of that class, the sums
                    are made anew with the last class that occurs
row numbers         an error names the row of the whole, not of the block
weights             a block may weigh nothing as long as some other does
==================  ========================================================================
"""

from __future__ import annotations

import operator
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._inference.omnibus import OmnibusTest
from ..._model.kernel import Derivatives, LogPartition
from ..._utils.results import Codes, Floats
from ..._validation.frames import as_numbers, column_or_table
from ..._validation.labels import (
    Classes,
    check_not_reserved,
    default_baseline,
    find_baseline_column,
)
from ..._validation.predictions import Predictions
from ..._validation.probabilities import Simplex, clean_logits, clean_probs
from ..._validation.weights import RowFacts, clean_row_facts
from ...metrics._bins import equal_width_bin_index, equal_width_edges, top_label
from ...metrics._reliability import (
    ReliabilityCurve,
    central_range_of_hits,
    curve_from_bin_sums,
    ratio,
)
from ...metrics._row_sums import (
    CleaningCounts,
    RowSums,
    Rules,
    add_fields,
    first_known,
)


def sum_in_order(parts: Iterable[Any]) -> Any:
    """Return the sum in order; None stands for no rows."""
    total = None
    for part in parts:
        if part is not None:
            total = part if total is None else total + part
    return total


class Block(NamedTuple):
    """Some rows, and the number of the first of them."""

    start: int
    rows: Predictions

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.rows.n_samples

    @property
    def log_odds(self) -> Floats:
        """Log odds against the baseline, shape (K, n)."""
        return self.rows.log_odds

    @property
    def sample_weight(self) -> Floats | None:
        """Weights of the rows."""
        return self.rows.sample_weight


@dataclass(frozen=True)
class ValidationOptions:
    """How rows are read: arguments of `Predictions.from_arrays` that hold for all blocks."""

    classes: Sequence[Hashable] | None = None
    baseline: Hashable | None = None
    logits: bool = False
    normalize: bool = False
    clip: float | None = None

    def clean_probs_or_logits(
        self, values: Any, columns: Sequence[Hashable] | None = None
    ) -> Simplex:
        """Return clean probabilities of a block."""
        names = self.classes if columns is None else columns
        if self.logits:
            return clean_logits(values, columns=names)
        return clean_probs(
            values, columns=names, normalize=self.normalize, clip=self.clip
        )


@dataclass(frozen=True)
class BlockLayout:
    """What all blocks have in common."""

    classes: Classes
    baseline_index: int
    reading: ValidationOptions = ValidationOptions()

    @property
    def baseline(self) -> Hashable:
        """The reference class."""
        return self.classes[self.baseline_index]

    @classmethod
    def from_classes(cls, reading: ValidationOptions, classes: Classes) -> BlockLayout:
        """Return the layout of known classes."""
        check_not_reserved(classes)
        named = reading.baseline
        index = (
            len(classes) - 1 if named is None else find_baseline_column(named, classes)
        )
        return cls(classes, index, reading)

    @classmethod
    def from_first_rows(
        cls, reading: ValidationOptions, values: Any, y: Any
    ) -> BlockLayout:
        """Return the layout that the first rows show.

        Columns with names are the classes, whichever of them the first rows hold. Without names,
        labels 1 and 2 of three columns show the classes 0, 1, 2: a later 3 must be refused.
        """
        simplex = reading.clean_probs_or_logits(values)
        rows = Predictions._labelled(
            simplex, y, reading.classes, reading.baseline, RowFacts()
        )
        return cls.from_classes(reading, rows.classes)

    def with_default_baseline(self, class_weight: Floats) -> BlockLayout:
        """Return the layout once all labels were seen: the default baseline must be among them."""
        if self.reading.baseline is not None:
            return self
        return replace(self, baseline_index=default_baseline(class_weight))

    def read(
        self,
        values: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        names: Sequence[str] | None = None,
        codes: Codes | None = None,
    ) -> Predictions:
        """Validate a block.

        `names` are the columns of a frame that stand for the classes; `codes` are the labels as
        columns, where they are known: `y` is not looked at then.
        """
        simplex = self.reading.clean_probs_or_logits(values, names or self.classes)
        n = len(simplex.probs)
        facts = RowFacts()
        if sample_weight is not None:
            weight = as_numbers(
                column_or_table(sample_weight, "sample_weight"), "sample_weight"
            )
            # `clean_row_facts` refuses weights that are all 0; a block of them is no mistake
            no_weight = weight.shape == (n,) and not weight.any()
            facts = RowFacts(np.zeros(n)) if no_weight else clean_row_facts(n, weight)
        if (
            codes is None or len(codes) != n
        ):  # of another length: the validator refuses it
            return Predictions._labelled(simplex, y, self.classes, self.baseline, facts)
        return Predictions._build(
            simplex, codes, self.classes, self.baseline_index, facts
        )


def block_rows(n_classes: int) -> int:
    """Return how many rows make a block: about 5 MB of probabilities, at most 32 MB."""
    in_cache = 655_360 // n_classes  # 5 MB: the arrays of a block stay near the cache
    # of very many classes more rows: to add the Hessians of blocks must not cost more than they do
    wanted = max(in_cache, 2 * n_classes)
    at_most = (1 << 22) // n_classes
    return max(1, min(65_536, at_most, wanted))


def encode_words(places: Codes, words: Iterable[Any], classes: Classes) -> Codes | None:
    """Return the column of each label, ``words[places]``; None where one is missing or no class."""
    columns = {str(label): j for j, label in enumerate(classes)}
    found = [columns.get(str(word), -1) for word in words]
    table = np.array(found, dtype=np.intp)
    if len(places) == 0 or places.min() < 0 or table.min() < 0:
        return None
    return table[places]


@dataclass(frozen=True, eq=False)
class BlockSums(RowSums):
    """The first pass: sums over rows, and what blocks of a file need beside them."""

    block_sizes: tuple[tuple[int, int], ...]
    has_weights: bool
    first_fraction: float | None
    sum_of_squares: Floats

    rules: ClassVar[Rules] = {
        **RowSums.rules,
        "has_weights": operator.or_,
        "first_fraction": first_known,
    }

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return sum(size for _, size in self.block_sizes)


def sum_block_rows(block: Block) -> BlockSums:
    """Return the sums of a block that the first pass collects."""
    rows = block.rows
    odds = rows.log_odds
    weight = rows.sample_weight
    weighted_odds = odds if weight is None else odds * weight
    fraction = None
    first_fraction = rows.facts.first_fraction
    if weight is not None and first_fraction is not None:
        fraction = float(weight[first_fraction])
    return BlockSums.from_rows(
        rows,
        block_sizes=((block.start, rows.n_samples),),
        has_weights=weight is not None,
        first_fraction=fraction,
        sum_of_squares=np.einsum("ji,ji->j", odds, weighted_odds),
    )


def log_partition_of_block(block: Any, theta: Floats) -> Derivatives:
    """Return value, gradient and Hessian of the log partition A of a block."""
    return LogPartition(block.log_odds, block.sample_weight, n_jobs=1)(theta)


# ---- sums over bins

N_CURVE_BINS = 10
"""Bins of a reliability curve, of equal width: a round number."""
MAX_BINOMIAL_BAND_ROWS = 2000
"""Rows of a bin up to which its band is that of a binomial count: round; one row is then 0.0005."""


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
        return add_fields(self, other)

    def top_label_error(self) -> float:
        """Return the expected calibration error of the most probable class."""
        weight, predicted, hits = self.top
        gaps = np.abs(predicted - hits)
        return float(gaps.sum() / weight.sum())

    def classwise_error(self) -> float:
        """Return the mean over classes of their expected calibration errors."""
        error_of_class = np.abs(self.gaps).sum(axis=1).mean()
        return float(error_of_class / self.top[0].sum())

    def hosmer_lemeshow(self) -> OmnibusTest:
        """Return the quadratic form of `_inference/omnibus` with its chi-square p-value."""
        return OmnibusTest.of_groups(self.excess, self.spread)

    def reliability(
        self, classes: Classes, level: float = 0.95
    ) -> list[ReliabilityCurve]:
        """Return the curve of the most probable class, then those of the classes."""
        edges = equal_width_edges(N_CURVE_BINS)
        curves = []
        sums_of_curves = self.curves.swapaxes(0, 1)  # curve by curve
        for label, sums in zip((None, *classes), sums_of_curves, strict=True):
            counts, predicted, hits, variance = sums
            mean = ratio(predicted, counts)
            bands = _consistency_bands(counts, mean, variance, level)
            curves.append(
                curve_from_bin_sums(
                    label, edges, (counts, predicted, hits), bands, level
                )
            )
        return curves


def sum_block_bins(block: Block, n_bins: int, cuts: Floats) -> BinSums:
    """Return the sums of a block; `cuts` are those of the Hosmer-Lemeshow groups."""
    rows = block.rows
    cells = BinCells.from_n_bins(n_bins)
    weight = rows.sample_weight
    top_class, top_prob = top_label(rows.probs)
    sums_of_top = cells.sums(top_prob, top_class == rows.codes, weight)
    top = [np.add.reduceat(part, cells.fine) for part in sums_of_top[:3]]
    curves = [cells.curve_sums(sums_of_top)]
    gaps = np.empty((rows.n_classes, n_bins))
    for k in range(rows.n_classes):  # one class at a time stays in cache
        sums = cells.sums(rows.probs[:, k], rows.codes == k, weight)
        curves.append(cells.curve_sums(sums))
        _, predicted, hits, _ = sums
        np.add.reduceat(predicted - hits, cells.fine, out=gaps[k])
    excess, spread = _sum_hosmer_lemeshow_groups(rows, cuts)
    return BinSums(
        top=np.stack(top),
        gaps=gaps,
        curves=np.stack(curves, axis=1),
        excess=excess,
        spread=spread,
    )


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
        # Cells lie between the edges of both: bins and bins of curves are runs of cells.
        fine_edges = equal_width_edges(n_bins)
        curve_edges = equal_width_edges(N_CURVE_BINS)
        edges = np.union1d(fine_edges, curve_edges)
        n_cells = len(edges) + 1
        above_fine_edges = 1 + np.searchsorted(edges, fine_edges)
        above_curve_edges = 1 + np.searchsorted(edges, curve_edges)
        fine = np.concatenate([[0], above_fine_edges])
        curve = np.concatenate([[0], above_curve_edges])
        has_several = np.diff(fine, append=n_cells) > 1
        cell = np.where(has_several, -1, fine)
        start = np.searchsorted(curve, fine, side="right") - 1
        return BinCells(n_bins, n_cells, fine, curve, cell, start)

    def index(self, values: Floats) -> Codes:
        """Return the cell of each value; those in a bin of several cells are looked at again."""
        bins = equal_width_bin_index(values, self.n_bins)
        index = self.cell[bins]
        # at most nine bins are cut by an edge of a curve's bin, so this second look is cheap
        ambiguous = np.flatnonzero(index < 0)
        if len(ambiguous):
            own = bins[ambiguous]
            curve_bins = equal_width_bin_index(values[ambiguous], N_CURVE_BINS)
            n_edges_passed = curve_bins - self.start[own]
            index[ambiguous] = self.fine[own] + n_edges_passed
        return index

    def sums(
        self, values: Floats, hit: NDArray[np.bool_], weight: Floats | None
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Return weight, predictions, weight of hits and variance in the cells."""
        index = self.index(values)
        hits = np.flatnonzero(
            hit
        )  # few of most classes, so their cells are looked up by row
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


def _sum_hosmer_lemeshow_groups(
    rows: Predictions, cuts: Floats
) -> tuple[Floats, Floats]:
    """Return observed less expected counts of each group, and their covariance."""
    n_groups = len(cuts) + 1
    n_classes = rows.n_classes
    excess = np.zeros((n_groups, n_classes))
    spread = np.zeros((n_groups, n_classes, n_classes))
    if rows.sample_weight is not None or n_groups == 1:
        return excess, spread
    risk = 1.0 - rows.probs[:, rows.baseline_index]
    group = np.zeros(rows.n_samples, dtype=np.uint8)
    for cut in cuts:  # of so few, faster than a search
        group += risk > cut
    order = np.argsort(group, kind="stable")
    ends = np.searchsorted(group[order], np.arange(n_groups + 1))
    probs = rows.probs.T[:, order]
    codes = rows.codes[order]
    ones = np.ones(rows.n_samples)
    for g in range(n_groups):
        own = slice(ends[g], ends[g + 1])
        inside = probs[:, own]
        expected = inside @ ones[own]
        observed = np.bincount(codes[own], minlength=n_classes)
        excess[g] = observed - expected
        # of independent rows with one label each: sum of diag(x) - x x'
        spread[g] = np.diag(expected) - inside @ inside.T
    return excess, spread


def _consistency_bands(
    counts: Floats, mean: Floats, variance: Floats, level: float
) -> tuple[Floats, Floats]:
    """Return where the observed frequency should lie: normal, or binomial where rows are few.

    A binomial count varies at least as much as one of unequal chances with the same mean.
    """
    from scipy.special import ndtri

    # under calibration hits have the variance sum w x (1 - x)
    z = float(ndtri(0.5 + level / 2.0))
    reach = z * ratio(np.sqrt(variance), counts)
    low = np.maximum(mean - reach, 0.0)
    high = np.minimum(mean + reach, 1.0)
    are_counts = bool((counts == np.floor(counts)).all())
    if (
        not are_counts
    ):  # weights that are no counts do not tell how the frequency varies
        return np.full_like(low, np.nan), np.full_like(high, np.nan)
    are_few = (counts > 0.0) & (counts <= MAX_BINOMIAL_BAND_ROWS)
    for m in np.flatnonzero(are_few):
        chances = np.full(int(counts[m]), mean[m])
        fewest, most = central_range_of_hits(chances, level)
        low[m] = fewest / counts[m]
        high[m] = most / counts[m]
    return low, high


# ---- rows by their numbers


@dataclass(frozen=True, eq=False)
class PickedRows:
    """Rows picked out of blocks, in order; picks add."""

    parts: tuple[Predictions, ...] = ()

    def __add__(self, other: PickedRows) -> PickedRows:
        return PickedRows(self.parts + other.parts)

    def join(self, changes: CleaningCounts) -> Predictions:
        """Return the rows as one `Predictions`; counts of changes are the whole's."""
        parts = self.parts
        # What only some blocks have (weights, zeros raised) the others have as nothing.
        shapes = [p.probs.shape for p in parts]
        ones = [np.ones(n) for n, _ in shapes]
        nowhere = [np.zeros(shape, bool) for shape in shapes]
        return replace(
            parts[0],
            probs=np.concatenate([p.probs for p in parts]),
            codes=np.concatenate([p.codes for p in parts]),
            logits=_concatenate_tables([p.logits for p in parts], []),
            sample_weight=_concatenate_tables([p.sample_weight for p in parts], ones),
            raised=_concatenate_tables([p.raised for p in parts], nowhere),
            **{f.name: getattr(changes, f.name) for f in fields(changes)},
        )


def pick_rows(block: Block, rows: Codes | None, starts: dict[int, int]) -> PickedRows:
    """Return the rows of a block among `rows`, numbers in the whole, ascending; None is all."""
    if rows is None:
        return PickedRows((block.rows,))
    first = starts[block.start]
    end = first + block.rows.n_samples
    low, high = np.searchsorted(rows, [first, end])
    if high == low:
        return PickedRows()
    return PickedRows((block.rows.take(rows[low:high] - first),))


def _concatenate_tables(tables: list[Any], instead: list[Any]) -> Any:
    """Return the tables as one, `instead` of None where only some are; None when all are."""
    if all(table is None for table in tables):
        return None
    filled = [instead[k] if table is None else table for k, table in enumerate(tables)]
    return np.concatenate(filled)
