"""The rows that a fit is made to: all, some, or those kept when a fold is left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..._model.kernel import CHUNK_ELEMENTS
from ..._model.linear_map import LinearMapLoss
from ..._utils.results import Codes, Floats

VALUE_TOL = 1e-3
"""Of values, in nats: many rows may be of single precision. Near the end a step is not asked for
more."""
MIN_ROWS_OF_FIRST_FIT = 500  # a first fit is made to so many rows at least
MAX_STRIDE_OF_FIRST_FIT = 5  # and to one of so many at least


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Scores (c, n), logits or log probabilities; the class that came true; weights, None for 1."""

    scores: Floats
    codes: Codes
    weight: Floats | None = None

    @property
    def total(self) -> float:
        """Weight of all rows."""
        return float(len(self.codes) if self.weight is None else self.weight.sum())

    @cached_property
    def unit(self) -> Floats:
        """The weights, also where all are 1."""
        return np.ones(len(self.codes)) if self.weight is None else self.weight

    @cached_property
    def loss(self) -> LinearMapLoss:
        """That of full maps."""
        return LinearMapLoss(self.scores, self.codes, self.weight)

    def chunks(self, per_row: int) -> Iterator[slice]:
        """Return stretches of rows of which `per_row` numbers each stay in cache."""
        size = max(64, CHUNK_ELEMENTS // per_row)
        return (slice(start, start + size) for start in range(0, len(self.codes), size))

    def every(self, stride: int) -> ScoredRows:
        """Return every `stride`-th row, its weight so many times as large."""
        few = slice(None, None, stride)
        weight = stride * self.unit[few]
        return ScoredRows(np.ascontiguousarray(self.scores[:, few]), self.codes[few], weight)

    def first(self) -> ScoredRows | None:
        """Return some of the rows for a first fit, where there are many, else None."""
        stride = min(MAX_STRIDE_OF_FIRST_FIT, len(self.codes) // MIN_ROWS_OF_FIRST_FIT)
        return self.every(stride) if stride > 1 else None

    def with_weight(self, weight: Floats) -> ScoredRows:
        """Return the rows of positive `weight`, with that weight."""
        own = np.flatnonzero(weight > 0.0)
        counts = None if (weight[own] == 1.0).all() else weight[own]
        return ScoredRows(self.scores.take(own, axis=1), self.codes[own], counts)
