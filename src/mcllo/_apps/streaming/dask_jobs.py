"""What a worker does with a partition of a Dask collection; no dask in here.

===============  ==================================================================================
`PartitionJob`   validates a partition block by block, and sums what a function makes of the blocks
`DistinctLabelsJob`       collects the distinct labels
`predict_chunk`  recalibrates
===============  ==================================================================================

An error names the row of the whole, or, where the sizes of partitions are not known, the partition
and its row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._utils.parallel import one_blas_thread
from ..._utils.results import Floats
from ..._validation.frames import as_matrix, check_row_indexes, column_or_table
from ..._validation.labels import distinct_label_values, encode_labels
from ..._validation.predictions import Predictions
from ...exceptions import InputError
from .sums import Block, BlockLayout, block_rows, encode_words, sum_in_order

PARTITION_ROW_OFFSET = 1 << 40
"""More rows than a partition has: tells blocks apart while the sizes of partitions are unknown."""


@dataclass(frozen=True, eq=False)
class PartitionJob:
    """What a worker does with a partition: validate it block by block, and sum."""

    work: Callable[[Any], Any]
    layout: BlockLayout
    starts: tuple[int, ...] | None

    def __call__(self, number: int, values: Any, y: Any, weight: Any = None) -> Any:
        """Return the sum of ``work(block)``, None of no rows."""
        if len(values) == 0 and len(y) == 0:
            return None
        start = (
            number * PARTITION_ROW_OFFSET
            if self.starts is None
            else self.starts[number]
        )
        with one_blas_thread():
            validated = self._validate_blocks(number, values, y, weight)
            blocks = (Block(start + first, rows) for first, rows in validated)
            return sum_in_order(map(self.work, blocks))

    def _validate_blocks(
        self, number: int, values: Any, y: Any, weight: Any
    ) -> Iterator[tuple[int, Predictions]]:
        """Yield the rows of each block after the number of the first of them."""
        name = "logits" if self.layout.reading.logits else "probs"
        with locate_error(number, self.starts):
            check_row_indexes(probs=values, y=y, sample_weight=weight)
            table, _ = as_matrix(values, name)
            if weight is not None:
                weight = column_or_table(weight, "sample_weight")
        classes = self.layout.classes
        size = block_rows(len(classes))
        n_rows = len(table)
        if len(y) != n_rows or (weight is not None and len(weight) != n_rows):
            size = n_rows + 1  # one block: the validator will say which is too short
        by_position = getattr(y, "iloc", y)  # pandas slices a series by its index
        for first in range(0, n_rows, size):
            cut = slice(first, first + size)
            labels = by_position[cut]
            codes = None
            if _is_text_series(labels):
                places, words = labels.factorize()
                codes = encode_words(places, words, classes)
            weight_of_block = None if weight is None else weight[cut]
            with locate_error(number, self.starts, first):
                rows = self.layout.read(
                    table[cut], labels, weight_of_block, codes=codes
                )
            yield first, rows


@dataclass(frozen=True, eq=False)
class DistinctLabels:
    """Distinct labels; those of partitions add."""

    labels: frozenset[Any]

    def __add__(self, other: DistinctLabels) -> DistinctLabels:
        return DistinctLabels(self.labels | other.labels)


@dataclass(frozen=True, eq=False)
class DistinctLabelsJob:
    """Collect the distinct labels of a partition."""

    n_classes: int
    named: bool
    starts: tuple[int, ...] | None

    def __call__(self, number: int, y: Any) -> DistinctLabels | None:
        """Return the labels, None of no rows."""
        if len(y) == 0:
            return None
        with locate_error(number, self.starts):
            if _is_text_series(y):
                y = np.array(list(y.unique()), dtype=object)
            column = column_or_table(y, "y")
            distinct = np.unique(distinct_label_values(column)[0]).tolist()
            if len(distinct) > self.n_classes and not self.named:
                encode_labels(
                    distinct, self.n_classes, None
                )  # refuses so many, in its words
        return DistinctLabels(frozenset(distinct))


def predict_chunk(values: Any, sent: tuple[Any, Any], block_id: Any = (0, 0)) -> Any:
    """Return recalibrated rows of a chunk; `sent` is a calibrator and where chunks start."""
    calibrator, starts = sent
    if len(values) == 0:
        return np.empty(values.shape)
    with locate_error(block_id[0], starts):
        return calibrator.predict_proba(values)


def predict_frame(frame: Any, calibrator: Any, partition_info: Any = None) -> Any:
    """Return a partition with its class columns recalibrated."""
    out = frame.astype("float64")
    if len(frame):
        with locate_error(partition_info["number"], None):
            out[:] = calibrator.predict_proba(frame)
    return out


def predict_labels(probs: Floats, classes: NDArray[Any]) -> NDArray[Any]:
    """Return the most probable class of each row, of ties the first."""
    return classes[probs.argmax(axis=1)]


@contextmanager
def locate_error(
    number: int, starts: tuple[int, ...] | None, first: int = 0
) -> Iterator[None]:
    """Name the row of the whole in an error, or the partition and its row."""
    try:
        yield
    except InputError as error:
        if starts is not None and error.row is not None:
            raise error.moved(starts[number] + first) from None
        raise InputError(f"in partition {number}: {error.moved(first)}") from None


def as_2d_array(frame: Any) -> NDArray[Any]:
    """Return a series, whatever its kind, or a frame as a NumPy table."""
    if hasattr(frame, "columns"):
        return as_matrix(frame, "probs")[0]
    return column_or_table(frame, "y")[:, None]


def _is_text_series(y: Any) -> bool:
    """Whether `y` is a pandas series of words or categories."""
    return hasattr(y, "factorize") and getattr(y.dtype, "kind", "O") == "O"
