"""Sources of blocks: arrays, batches, and CSV or Parquet files.

==========================  =====================================================================
`blocks_of_arrays`          arrays in memory or mapped from a file, cut into slices
`blocks_of_batches`         ``(probs, y)`` or ``(probs, y, weight)``: a list, a function that
                            returns an iterator anew for each pass, or an iterator, read once
`blocks_of_files` (in       a file, a list of files, or a directory
`_blocks/files`)
==========================  =====================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from .._input.frames import as_matrix, column_names, n_columns
from .._input.labels import A_CLASS, class_names, encode, encode_counts
from .._input.predictions import Predictions, same_length
from .._input.probabilities import check_shape
from .._input.weights import clean_weight
from ..exceptions import InputError, Option, Phrase
from .blocks import Cost, Streamed, Unit
from .sums import Block, Layout, Reading, block_rows

Batch = tuple[Any, ...]


def blocks_of_arrays(
    probs: Any = None,
    y: Any = None,
    *,
    logits: Any = None,
    classes: Sequence[Hashable] | None = None,
    baseline: Hashable | None = None,
    sample_weight: Any = None,
    normalize: bool = False,
    clip: float | None = None,
    n_jobs: int | None = None,
) -> Streamed:
    """Return arrays, in memory or mapped from a file, as blocks; they are copied block by block.

    Parameters as in `Predictions.from_arrays`; `n_jobs` is the number of threads.

    Examples
    --------
    >>> blocks = blocks_of_arrays([[0.7, 0.3], [0.2, 0.8]], ["cat", "dog"])
    >>> blocks.layout.classes, blocks.first.n_samples
    (('cat', 'dog'), 2)
    """
    if isinstance(probs, Predictions):
        return Streamed(PredictionsSource(probs), n_jobs=n_jobs)
    named = None if classes is None else tuple(class_names(classes))
    reading = Reading(named, baseline, logits is not None, normalize, clip)
    return Streamed(
        ArraySource(probs if logits is None else logits, y, sample_weight, reading), n_jobs=n_jobs
    )


def blocks_of_batches(
    batches: Iterable[Batch] | Callable[[], Iterable[Batch]],
    *,
    logits: bool = False,
    classes: Sequence[Hashable] | None = None,
    baseline: Hashable | None = None,
    normalize: bool = False,
    clip: float | None = None,
    n_jobs: int | None = None,
    spill: bool | None = None,
) -> Streamed:
    """Return batches of rows as blocks.

    Parameters
    ----------
    batches : list, function or iterator
        Of ``(probs, y)`` or ``(probs, y, weight)``. A function is called for a fresh iterator each
        time; an iterator can be gone through once, so its rows are kept in a temporary file.
    logits : bool
        Batches hold logits instead of probabilities.
    classes, baseline, normalize, clip
        As in `Predictions.from_arrays`; without `classes` the first batch tells them.
    n_jobs, spill
        As in `Streamed`.

    Examples
    --------
    >>> batches = [([[0.7, 0.3], [0.2, 0.8]], [0, 1]), ([[0.6, 0.4]], [1])]
    >>> blocks_of_batches(batches).first.n_samples
    3
    """
    named = None if classes is None else tuple(class_names(classes))
    reading = Reading(named, baseline, logits, normalize, clip)
    return Streamed(BatchSource(batches, reading), n_jobs=n_jobs, spill=spill)


class PredictionsSource:
    """Slices of validated predictions."""

    cost: Cost = "little"

    def __init__(self, predictions: Predictions) -> None:
        if predictions.groups is not None or predictions.weight_kind == "survey":
            raise InputError(
                "groups and survey weights need all rows at once; pass arrays to mcllo.assess."
            )
        self.predictions = predictions
        reading = Reading(logits=predictions.logits is not None, clip=predictions.clip)
        self.layout = Layout(predictions.classes, predictions.baseline_index, reading)

    def n_bytes(self) -> float:
        """Return the size of the probabilities."""
        return float(self.predictions.probs.nbytes)

    def units(self) -> Iterator[Unit]:
        """Return slices."""
        rows = block_rows(self.predictions.n_classes)
        for start in range(0, self.predictions.n_samples, rows):
            yield partial(self._read, start, start + rows)

    def _read(self, start: int, end: int) -> Iterator[Block]:
        """Yield a slice; what cannot be told of a slice is counted with the first."""
        p = self.predictions
        rows = p.take(np.arange(start, min(end, p.n_samples)))
        mask = rows.raised
        own = () if mask is None else mask[np.arange(len(rows.codes)), rows.codes]
        if start:
            rows = replace(rows, n_zeros=0, n_renormalized=0, max_row_error=0.0)
        n_clipped = 0 if mask is None else int(mask.sum())
        yield Block(start, replace(rows, n_clipped=n_clipped, n_clipped_true=int(np.sum(own))))


class ArraySource:
    """Slices of arrays; labels are encoded once, probabilities validated slice by slice."""

    cost: Cost = "little"

    def __init__(self, values: Any, y: Any, sample_weight: Any, reading: Reading) -> None:
        if y is None:
            raise InputError("y must hold one label per row; got None.")
        self.values, names = as_matrix(
            values, "logits" if reading.logits else "probs", reading.classes
        )
        check_shape(self.values, "logits" if reading.logits else "probs")
        n_samples, n_classes = self.values.shape
        columns: Any = names if reading.classes is None else reading.classes
        if n_columns(y) > 1:
            self.y, classes = encode_counts(y, n_classes, columns)
        else:
            self.y, classes = encode(y, n_classes, columns)
        same_length(n_samples, len(self.y))
        self.weight = clean_weight(sample_weight, n_samples)
        self.layout = Layout.of_classes(reading, classes)

    def n_bytes(self) -> float:
        """Return the size of the probabilities in float64."""
        return 8.0 * self.values.size

    def units(self) -> Iterator[Unit]:
        """Return slices."""
        rows = block_rows(len(self.layout.classes))
        for start in range(0, len(self.values), rows):
            yield partial(self._read, start, start + rows)

    def _read(self, start: int, end: int) -> Iterator[Block]:
        weight = None if self.weight is None else self.weight[start:end]
        read = self.layout.coded if self.y.ndim == 1 else self.layout.read
        try:
            yield Block(start, read(self.values[start:end], self.y[start:end], weight))
        except InputError as error:
            raise error.moved(start) from None


class BatchSource:
    """Batches from a list, a function or an iterator; large ones are cut."""

    def __init__(
        self, batches: Iterable[Batch] | Callable[[], Iterable[Batch]], reading: Reading
    ) -> None:
        self._again = batches if callable(batches) else None
        once = self._again is None and not isinstance(batches, (list, tuple))
        self.cost: Cost = "impossible" if once else "much"
        rows = iter(batches() if callable(batches) else batches)
        first = next((batch for batch in rows if len(_checked(batch)[0])), None)
        if first is None:
            raise InputError("batches must hold at least one row; got none.")
        self._named = reading.classes is not None or column_names(first[0]) is not None
        try:
            self.layout = Layout.of_first(reading, first[0], first[1])
        except InputError as error:
            raise _of_first_batch(error) from None
        self._batches: Iterable[Batch] = chain([first], rows) if once else ()
        if not once and self._again is None:
            self._batches = batches  # type: ignore[assignment]

    def n_bytes(self) -> float:
        """Return 0: nobody knows how many there are."""
        return 0.0

    def units(self) -> Iterator[Unit]:
        """Return batches, read in the calling thread."""
        start = 0
        for batch in self._batches if self._again is None else self._again():
            size = len(_checked(batch)[0])
            if size:
                yield partial(self._read, start, batch)
            start += size

    def _read(self, start: int, batch: Batch) -> Iterator[Block]:
        for first, part in _cut(batch, block_rows(len(self.layout.classes))):
            try:
                yield Block(start + first, self.layout.read(*part))
            except InputError as error:
                moved = error.moved(start + first)
                raise (moved if self._named else _of_first_batch(moved)) from None


def _checked(batch: Any) -> Batch:
    """Refuse what is no batch."""
    if not isinstance(batch, (tuple, list)) or len(batch) not in (2, 3):
        raise InputError(
            f"each batch must be (probs, y) or (probs, y, weight); got {type(batch).__name__}"
            + (f" of {len(batch)}." if isinstance(batch, (tuple, list)) else ".")
        )
    return tuple(batch)


def _of_first_batch(error: InputError) -> InputError:
    """Return the error; where the first batch may have shown too few classes it says so."""
    if error.rule != A_CLASS and error.argument != "classes":
        return error
    told = "Classes are told by the first batch; if it lacks some, pass {}."
    return error.but(remedy=Phrase(told, Option("classes")))


def _cut(batch: Batch, rows: int) -> Iterator[tuple[int, Batch]]:
    """Cut arrays of more than `rows` rows; frames stay whole, because their columns have names."""
    arrays = all(isinstance(part, np.ndarray) for part in batch if part is not None)
    if not arrays or len(batch[0]) <= rows or len({len(p) for p in batch if p is not None}) > 1:
        yield 0, batch
        return
    for start in range(0, len(batch[0]), rows):
        yield (
            start,
            tuple(part if part is None else part[start : start + rows] for part in batch),
        )
