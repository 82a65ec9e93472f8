"""Several sets of rows of one problem side by side, such as what is kept when folds are left out.

Small fits keep Python busier than the processor, so fits that differ only in their rows share every
NumPy call: arrays have a leading axis over S sets. Sets of different sizes are filled up with rows
of weight 0. Many rows are held in float32: it costs a quarter, and what is lost, some six digits of
a probability, is far below what rows can tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._ground.results import Codes, Floats

FLOAT32_PAYS = 2**14
"""Scores from which they are held in float32."""
CHUNK_BYTES = 2**19
"""Bytes of an array over some of the rows that stay in cache."""
FIRST, SPARSEST = 2000, 8
"""A first fit is made to so many rows at least, and to one of so many at least."""
ROUNDING = 8.0
"""Units in the last place by which each term of a sum over rows may be wrong."""


@dataclass(frozen=True, eq=False)
class RowSets:
    """Scores, labels and weights of S sets of rows.

    Attributes
    ----------
    scores : ndarray of shape (S, c, m)
        Logits, or features made of them; float32 where there are many.
    codes : ndarray of shape (S, m)
        The class that came true.
    weight : ndarray of shape (S, m) or None
        Row weights, in the dtype of the scores; None stands for 1.
    """

    scores: NDArray[Any]
    codes: Codes
    weight: NDArray[Any] | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes, c."""
        return int(self.scores.shape[1])

    @cached_property
    def totals(self) -> Floats:
        """Weight of each set, shape (S,)."""
        n_sets, n_rows = self.codes.shape
        if self.weight is None:
            return np.full(n_sets, float(n_rows))
        return np.asarray(self.weight.sum(axis=1, dtype=np.float64))

    @property
    def rounding(self) -> Floats:
        """How wrong a sum over the rows may be, shape (S,)."""
        return ROUNDING * float(np.finfo(self.scores.dtype).eps) * self.totals

    def chunks(self, per_row: int, chunk_bytes: int = CHUNK_BYTES) -> Iterator[slice]:
        """Return stretches of rows of which `per_row` numbers each stay in cache."""
        n_sets, n_rows = self.codes.shape
        size = max(64, chunk_bytes // (n_sets * per_row * self.scores.itemsize))
        return (slice(start, start + size) for start in range(0, n_rows, size))

    def every(self, stride: int) -> RowSets:
        """Return every `stride`-th row, its weight so many times as large."""
        few = slice(None, None, stride)
        unit = np.ones_like(self.scores[:, 0, few]) if self.weight is None else self.weight[:, few]
        scores = np.ascontiguousarray(self.scores[:, :, few])
        return RowSets(scores, self.codes[:, few], stride * unit)

    def first(self) -> RowSets | None:
        """Return some of the rows for a first fit, where there are many, else None."""
        stride = min(SPARSEST, self.codes.shape[1] // FIRST)
        return self.every(stride) if stride > 1 else None

    def label_sums(self) -> Floats:
        """Return ``sum_i w_i 1[y_i = j] scores_i``, shape (S, c, rows of the scores).

        The number of classes is then one less than the rows of the scores: the last is 1.
        """
        n_sets, d, _ = self.scores.shape
        sums = np.zeros((n_sets, d - 1, d))
        for rows in self.chunks(d):
            codes = self.codes[:, None, rows]
            hot = np.zeros((n_sets, d - 1, codes.shape[2]), dtype=self.scores.dtype)
            unit = 1.0 if self.weight is None else self.weight[:, None, rows]
            np.put_along_axis(hot, codes, unit, axis=1)
            sums += hot @ self.scores[:, :, rows].transpose(0, 2, 1)
        return sums


def all_rows(
    scores: Floats, codes: Codes, weight: Floats | None = None, kind: Any = None
) -> RowSets:
    """Return one set of all rows from scores of shape (c, n), held in `kind` where given."""
    kind = kind_of(scores.size) if kind is None else kind
    own = None if weight is None else weight[None].astype(kind, copy=False)
    return RowSets(scores[None].astype(kind, copy=False), codes[None], own)


def some_rows(scores: Floats, codes: Codes, weights: list[Floats]) -> RowSets:
    """Return a set for each of `weights`, shape (n,): of the rows whose weight is positive."""
    kept = [np.flatnonzero(weight > 0.0) for weight in weights]
    size = max(len(rows) for rows in kept)
    kind = kind_of(len(kept) * len(scores) * size)
    places = np.zeros((len(kept), size), dtype=np.intp)
    own = np.zeros((len(kept), size), dtype=kind)
    for k, rows in enumerate(kept):
        places[k, : len(rows)] = rows
        own[k, : len(rows)] = weights[k][rows]
    source = scores.astype(kind, copy=False)
    gathered = np.stack([source.take(rows, axis=1) for rows in places])
    return RowSets(gathered, codes[places], None if (own == 1.0).all() else own)


def kind_of(size: int) -> type[np.floating[Any]]:
    """Return the dtype in which so many scores are held."""
    return np.float32 if size >= FLOAT32_PAYS else np.float64
