"""A block of rows -> `Block`: validated by the same rules as a whole table, whatever the blocks.

`Predictions` looks at one row at a time, so cutting rows into blocks changes no number, but for
three things that only the whole can tell. They are settled here:

==================  ========================================================================
classes, baseline   `classes`, else the columns' names, else what the first rows show (`Layout`); a
                    label that is none of them is refused, never given another column
row numbers         an error names the row of the whole, not of the block
weights             a block may weigh nothing as long as some other does
==================  ========================================================================
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._frames import as_column, as_numbers
from ._labels import Classes, check_not_reserved
from ._predictions import Predictions, _baseline_column
from ._probabilities import Simplex, clean_logits, clean_probs
from ._rows import RowFacts, clean_rows
from .exceptions import InputError

Floats = NDArray[np.float64]

BLOCK_ROWS = 1 << 16
"""Rows of a block, at most."""
BLOCK_CELLS = 10 * BLOCK_ROWS
"""Rows times classes of a block, about: its arrays stay near the cache."""
MOST_CELLS = 1 << 22
"""Rows times classes of a block with very many classes, at most."""


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
class Reading:
    """How rows are read: arguments of `Predictions.from_arrays` that hold for all blocks."""

    classes: Sequence[Hashable] | None = None
    baseline: Hashable | None = None
    logits: bool = False
    normalize: bool = False
    clip: float | None = None

    def simplex(self, values: Any, columns: Sequence[Hashable] | None = None) -> Simplex:
        """Return clean probabilities of a block."""
        names = self.classes if columns is None else columns
        if self.logits:
            return clean_logits(values, columns=names)
        return clean_probs(values, columns=names, normalize=self.normalize, clip=self.clip)


@dataclass(frozen=True)
class Layout:
    """What all blocks have in common."""

    classes: Classes
    baseline_index: int
    reading: Reading = Reading()

    @property
    def baseline(self) -> Hashable:
        """The reference class."""
        return self.classes[self.baseline_index]

    @property
    def compared(self) -> Classes:
        """The classes other than the baseline, in column order."""
        return tuple(c for j, c in enumerate(self.classes) if j != self.baseline_index)

    @classmethod
    def of_classes(cls, reading: Reading, classes: Classes) -> Layout:
        """Return the layout of known classes."""
        check_not_reserved(classes)
        named = reading.baseline
        index = len(classes) - 1 if named is None else _baseline_column(named, classes)
        return cls(classes, index, reading)

    @classmethod
    def of_first(cls, reading: Reading, values: Any, y: Any) -> Layout:
        """Return the layout that the first rows show.

        Columns with names are the classes, whichever of them the first rows hold. Without names,
        labels 1 and 2 of three columns show the classes 0, 1, 2: a later 3 must be refused.
        """
        rows = Predictions._labelled(
            reading.simplex(values), y, reading.classes, reading.baseline, RowFacts()
        )
        return cls(rows.classes, rows.baseline_index, reading)

    def read(
        self, values: Any, y: Any, sample_weight: Any = None, *, names: Sequence[str] | None = None
    ) -> Predictions:
        """Validate a block; `names` are the columns of a frame that stand for the classes."""
        simplex = self.reading.simplex(values, names or self.classes)
        facts = _row_facts(len(simplex.probs), sample_weight)
        return Predictions._labelled(simplex, y, self.classes, self.baseline, facts)

    def coded(
        self,
        values: Any,
        codes: NDArray[np.intp],
        sample_weight: Any = None,
        *,
        names: Sequence[str] | None = None,
    ) -> Predictions:
        """Validate a block whose labels are columns already."""
        simplex = self.reading.simplex(values, names or self.classes)
        facts = _row_facts(len(simplex.probs), sample_weight)
        return Predictions._build(simplex, codes, self.classes, self.baseline_index, facts)


def block_rows(n_classes: int) -> int:
    """Return how many rows make a block: about 5 MB of probabilities.

    Examples
    --------
    >>> block_rows(2), block_rows(10), block_rows(100), block_rows(1000)
    (65536, 65536, 6553, 2000)
    """
    widest = MOST_CELLS // n_classes
    return max(1, min(BLOCK_ROWS, widest, max(BLOCK_CELLS // n_classes, 2 * n_classes)))


def in_whole(error: InputError, start: int) -> InputError:
    """Return `error` of a block with the row's number in the whole.

    Examples
    --------
    >>> print(in_whole(InputError("got probs[2, 0]=2. Drop row 2.", row=2), 1000))
    got probs[1002, 0]=2. Drop row 1002.
    """
    if error.row is None or start == 0:
        return error
    row, moved = error.row, error.row + start
    message = re.sub(rf"(?<=\[){row}(?=[,\]])", str(moved), str(error))
    message = re.sub(rf"\brow {row}\b", f"row {moved}", message)
    return InputError(message, row=moved)


def _row_facts(n_samples: int, sample_weight: Any) -> RowFacts:
    if sample_weight is None:
        return RowFacts()
    values = as_numbers(as_column(sample_weight, "sample_weight"), "sample_weight")
    if values.shape == (n_samples,) and not values.any():
        return RowFacts(np.zeros(n_samples))
    return clean_rows(n_samples, values)
