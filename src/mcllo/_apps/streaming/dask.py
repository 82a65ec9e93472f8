"""Dask arrays and dataframes as blocks, and what `assess` and `MCLLOCalibrator` do with them.

The rows stay where the workers are.

==================  =========================================================================
pass                one task for each chunk or partition: read, validate, cut into blocks near the
                    cache, and sum. Sums are added by neighbours, 16 at a time, on the workers
order               fixed by the partitions: neither the number of workers nor the loss of one
                    changes a bit
scheduler           the current `distributed.Client`, else threads of this process
memory              rows are read anew for each pass unless the caller has persisted them
progress            which pass, on a terminal; Dask's own dashboard counts the tasks
==================  =========================================================================

Classes are the columns of a frame, or `classes`; for an array without them the labels are gone
through once before the first pass. This is the only module that imports dask, and only when asked
to. The library looks it up by name (`_utils/optional`), so that arrays need nothing of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from ..._fit.fit import MCLLOFit
from ..._utils.atomic_files import progress
from ..._validation.frames import as_matrix, column_names, column_or_table, is_dask
from ..._validation.labels import (
    Classes,
    as_class_list,
    column_classes,
    distinct_label_values,
    find_column_order,
)
from ..._validation.weights import is_noncount_weight
from ...exceptions import InputError
from .assess_file import BlockAssessment, assess_blocks, fit_blocks
from .blocks import Blocks
from .dask_jobs import (
    DistinctLabelsJob,
    PartitionJob,
    as_2d_array,
    predict_chunk,
    predict_frame,
    predict_labels,
)
from .sums import BlockLayout, ValidationOptions, sum_in_order

N_SUMS_PER_TASK = 16
"""Neighbouring sums that a worker adds at a time: round; 4096 partitions are three steps."""


def blocks_of_dask(
    probs: Any = None,
    y: Any = None,
    *,
    logits: Any = None,
    classes: Sequence[Hashable] | None = None,
    baseline: Hashable | None = None,
    sample_weight: Any = None,
    normalize: bool = False,
    clip: float | None = None,
) -> DaskBlocks:
    """Return Dask arrays or dataframes as blocks; nothing is read but, if need be, the labels.

    Parameters as in `Predictions.from_arrays`. Labels and weights are Dask collections with the
    same rows, or plain arrays beside a Dask array of known size.
    """
    if probs is not None and logits is not None:
        raise InputError(
            "give probs or logits, not both, when they are Dask collections."
        )
    if y is None:
        raise InputError("y must hold one label per row; got None.")
    named = None if classes is None else tuple(as_class_list(classes))
    name = "probs" if logits is None else "logits"
    values, names = _select_class_columns(
        probs if logits is None else logits, name, named
    )
    rows = DaskRows.align_partitions(values, y, sample_weight, name)
    reading = ValidationOptions(named, baseline, logits is not None, normalize, clip)
    found = _find_classes(rows, values.shape[1], names or named)
    return DaskBlocks(rows, BlockLayout.from_classes(reading, found))


class DaskBlocks(Blocks):
    """Blocks that workers read and sum."""

    def __init__(self, rows: DaskRows, layout: BlockLayout) -> None:
        self.rows = rows
        self.layout = layout
        self.n_passes = 0

    def sum_over_blocks(
        self, work: Callable[[Any], Any], name: str = "reading", *, whole: bool = True
    ) -> Any:
        """Return the sum of ``work(block)`` over the blocks, added in their order."""
        with progress(name, "passes done") as advance:
            advance(self.n_passes)
            found = self.rows.sum_over_partitions(
                PartitionJob(work, self.layout, self.rows.starts)
            )
        self.n_passes += 1
        return found


@dataclass(frozen=True, eq=False)
class DaskRows:
    """Probabilities, labels and perhaps weights, whose partitions hold the same rows.

    They are all dataframes and series, or all arrays with one chunk across columns; `starts` is the
    first row of each partition, where it is known.
    """

    parts: tuple[Any, ...]
    starts: tuple[int, ...] | None

    @classmethod
    def align_partitions(cls, values: Any, y: Any, weight: Any, name: str) -> DaskRows:
        """Return them with equal partitions, or refuse."""
        beside = {"y": y}
        if weight is not None:
            beside["sample_weight"] = weight
        parts = [values, *beside.values()]
        if all(map(_is_dask_frame, parts)):
            for key, value in beside.items():
                _check_partitions(values.npartitions, value.npartitions, name, key)
            return cls(tuple(parts), None)
        table = _as_array(values, name, None)
        arrays = [table]
        for key, value in beside.items():
            column = _as_array(value, key, table)
            _check_partitions(table.numblocks[0], column.numblocks[0], name, key)
            arrays.append(column)
        return cls(tuple(arrays), _chunk_starts(table))

    def sum_over_partitions(self, job: Any) -> Any:
        """Return the sum of ``job(number, *partition)`` over the partitions, in their order."""
        import dask

        # Neighbours first, in an order that the partitions alone fix: no bit hangs on the workers.
        sums = self._make_tasks(job)
        add = dask.delayed(sum_in_order, pure=False)
        while len(sums) > 1:
            firsts = range(0, len(sums), N_SUMS_PER_TASK)
            sums = [add(sums[first : first + N_SUMS_PER_TASK]) for first in firsts]
        (found,) = dask.compute(*sums)
        if found is None:
            raise InputError("there must be at least one row; got none.")
        return found

    def _make_tasks(self, job: Any) -> list[Any]:
        """Return one lazy sum for each partition; the job is sent to each worker once."""
        import dask

        # `traverse` would look for Dask collections inside the job; there are none
        sent = dask.delayed(job, traverse=False)
        first = self.parts[0]
        if not _is_dask_frame(first):
            import dask.array as da

            meta = np.empty((0, 0), dtype=object)
            chunks = ((1,) * first.numblocks[0], (1,))
            out = da.map_blocks(
                _mcllo_chunk, sent, *self.parts, dtype=object, meta=meta, chunks=chunks
            )
            return list(out.to_delayed().ravel())
        import dask.dataframe as dd

        out = dd.map_partitions(
            _mcllo_partition,
            first,
            sent,
            *self.parts[1:],
            meta=(None, object),
            enforce_metadata=False,
            align_dataframes=False,
            clear_divisions=True,
        )
        return list(out.to_delayed())


def lazy_predict(calibrator: Any, X: Any) -> Any:
    """Return recalibrated probabilities of Dask rows, lazily.

    A Dask array gives a Dask array with the same chunks of rows; a dataframe one with the class
    columns in the order of ``classes_``, other columns left out.
    """
    import dask

    classes = tuple(calibrator.classes_.tolist())
    values, names = _select_class_columns(X, "X", classes)
    fitted = (
        calibrator.for_stream()
    )  # a copy: a later `fit` changes nothing of what was asked for
    if names is not None:
        sent = dask.delayed(fitted, traverse=False)
        meta = values._meta.astype("float64")
        return values.map_partitions(predict_frame, sent, meta=meta)
    if values.shape[1] != len(classes):
        raise InputError(
            f"X must have a column per class ({len(classes)}); got {values.shape[1]}."
        )
    sent = dask.delayed((fitted, _chunk_starts(values)), traverse=False)
    meta = np.empty((0, 0), dtype=np.float64)
    return values.map_blocks(predict_chunk, sent, dtype=np.float64, meta=meta)


def lazy_predict_labels(calibrator: Any, X: Any) -> Any:
    """Return the most probable class of each row as a Dask array, lazily."""
    classes = calibrator.classes_
    probs = lazy_predict(calibrator, X)
    if _is_dask_frame(probs):
        probs = probs.to_dask_array()
    return probs.map_blocks(predict_labels, classes, drop_axis=1, meta=classes[:0])


def _mcllo_chunk(job: Any, *parts: Any, block_id: Any = None) -> Any:
    return job(block_id[0], *parts)


def _mcllo_partition(
    first: Any, job: Any, *rest: Any, partition_info: Any = None
) -> Any:
    return job(partition_info["number"], first, *rest)


def _find_classes(
    rows: DaskRows, n_classes: int, names: Sequence[Hashable] | None
) -> Classes:
    """Return the classes as `Predictions.from_arrays` would of all rows at once."""
    y = rows.parts[1]
    if y.ndim == 2 and y.shape[1] > 1:
        columns = column_names(y._meta, "y") if _is_dask_frame(y) else None
        return find_column_order(columns, n_classes, names)[1]
    kind = _label_dtype(y)
    if names is not None and kind is not None:
        # names get the type of the labels, which needs no look at them
        return column_classes(np.empty(0, kind), n_classes, names)
    job = DistinctLabelsJob(n_classes, names is not None, rows.starts)
    with progress("finding classes", "passes done"):
        seen = DaskRows((y,), rows.starts).sum_over_partitions(job).labels
    values, _ = distinct_label_values(np.array(list(seen), dtype=object))
    return column_classes(values, n_classes, names)


def _label_dtype(y: Any) -> str | None:
    """Return the NumPy type that labels will have; None where only the labels themselves tell."""
    dtype = getattr(y, "dtype", None)
    if str(dtype) in ("string", "str"):
        return "U"
    # whole floats are classes that once had a gap among them (`_validation/labels`)
    kinds = {"b": "?", "i": "i8", "u": "i8", "f": "i8", "U": "U"}
    return kinds.get(getattr(dtype, "kind", ""))


def _select_class_columns(
    values: Any, name: str, classes: Classes | None
) -> tuple[Any, list[str] | None]:
    """Return the class columns, one chunk across, and their names (None for an array)."""
    if not is_dask(values):
        raise InputError(
            f"{name} must be a Dask array or dataframe where y or sample_weight is one; got "
            f"{type(values).__name__}. Pass dask.array.from_array({name})."
        )
    if _is_dask_frame(values) and values.ndim == 2:
        _, names = as_matrix(values._meta, name, classes)
        columns = {str(column): column for column in values.columns}
        return values[[columns[text] for text in names or ()]], names
    if (
        not _is_dask_array(values)
        or values.ndim != 2
        or _has_unknown_size(values.chunks[1])
    ):
        raise InputError(
            f"{name} must be a Dask array of shape (n, classes) or a Dask dataframe with a column "
            f"per class; got {type(values).__name__}."
        )
    return values.rechunk({1: -1}), None


def _as_array(value: Any, name: str, table: Any) -> Any:
    """Return a two-dimensional Dask array with the chunks of rows of `table`."""
    if _is_dask_frame(value):
        width = len(value.columns) if value.ndim == 2 else 1
        meta = np.empty((0, width), dtype=object)
        return value.map_partitions(as_2d_array, meta=meta, enforce_metadata=False)
    if not is_dask(value):
        if table is None or _has_unknown_size(table.chunks[0]):
            raise InputError(
                f"{name} must be a Dask collection with the partitions of the probabilities, whose "
                f"sizes are not known; got {type(value).__name__}. Take both from one dataframe."
            )
        import dask.array as da

        value = da.from_array(column_or_table(value, name), chunks=-1)
    if not _is_dask_array(value):
        raise InputError(
            f"{name} must be a Dask array or series; got {type(value).__name__}."
        )
    value = value[:, None] if value.ndim == 1 else value.rechunk({1: -1})
    if (
        table is None
        or _has_unknown_size(table.chunks[0])
        or _has_unknown_size(value.chunks[0])
    ):
        return value
    if len(value) != len(table):
        sizes = f"{len(table)} and {len(value)}"
        raise InputError(
            f"probs and {name} must have the same number of rows; got {sizes}."
        )
    return value.rechunk({0: table.chunks[0]})


def _check_partitions(expected: int, found: int, name: str, other: str) -> None:
    """Refuse two collections whose partitions differ in number."""
    if found != expected:
        raise InputError(
            f"{name} and {other} must have the same partitions; got {expected} and {found}. Take "
            "both from one dataframe, or repartition one."
        )


def _is_dask_frame(value: Any) -> bool:
    """Whether `value` is a Dask dataframe or series."""
    return is_dask(value) and hasattr(type(value), "divisions")


def _is_dask_array(value: Any) -> bool:
    return is_dask(value) and hasattr(type(value), "chunks") and value.ndim in (1, 2)


def _chunk_starts(table: Any) -> tuple[int, ...] | None:
    """Return the first row of each chunk; None where sizes are not known."""
    sizes = table.chunks[0]
    return (
        None if _has_unknown_size(sizes) else tuple(accumulate(sizes[:-1], initial=0))
    )


def _has_unknown_size(sizes: Sequence[float]) -> bool:
    return any(math.isnan(size) for size in sizes)  # as Dask says it


__all__ = ["assess_dask", "fit_dask", "lazy_predict", "lazy_predict_labels"]


def assess_dask(
    probs: Any,
    y: Any,
    rule: str,
    baseline: Any,
    by: Any,
    options: dict[str, Any],
    **data: Any,
) -> BlockAssessment:
    """Assess Dask collections; `options` are those of `assess`, `data` how rows are read."""
    if data.pop("prefix", ""):
        message = "{prefix} is for frames in memory; rename the columns of Dask's."
        raise InputError(message, argument="prefix")
    weight_kind = data.pop("weight_kind", "")
    missing = data.pop("missing", "refuse")
    needs_all_rows = {
        "baseline": bool(rule),
        "groups": data.pop("groups", None) is not None,
        "by": by is not None,
        "weight_kind": is_noncount_weight(weight_kind),
        "missing": missing != "refuse",
        "costs": options.pop("costs", None) is not None,
        "cost_tolerance": options.pop("cost_tolerance", None) is not None,
    }
    shown = {"baseline": rule, "weight_kind": weight_kind, "missing": missing}
    for argument, is_given in needs_all_rows.items():
        if is_given:
            raise InputError(
                "{found} needs all rows in memory.",
                argument=argument,
                value=shown.get(argument, ...),
                remedy="Pass probs.compute() and y.compute(), or leave it out.",
            )
    return assess_blocks(blocks_of_dask(probs, y, baseline=baseline, **data), **options)


def fit_dask(X: Any, y: Any, penalty: Any, **reading: Any) -> MCLLOFit:
    """Return the fit of rows that stay with their workers."""
    return fit_blocks(blocks_of_dask(X, y, **reading), penalty=penalty)
