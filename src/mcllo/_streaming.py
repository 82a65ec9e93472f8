"""Apply a calibrator to a file, batch by batch: memory does not grow with the file."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from ._io import Source, StrPath
from ._output import writing
from ._progress import progress
from .exceptions import InputError


@dataclass(frozen=True, eq=False)
class Applied:
    """What `apply_file` did."""

    n_samples: int
    classes: tuple[str, ...]


def apply_file(calibrator: Any, path: StrPath, out: StrPath) -> Applied:
    """Write the rows of `path` to `out` with the class columns recalibrated.

    All other columns pass through untouched, in their order.
    """
    import pyarrow as pa

    source = Source(path)
    names = [str(label) for label in calibrator.classes_.tolist()]
    source.require(names, "class column")
    done = 0
    with writing(out) as writer, progress("recalibrating") as advance:
        for batch in source.batches(names):
            if batch.num_rows == 0:
                continue
            values = _recalibrated(calibrator, pa.Table.from_batches([batch]), names, done)
            for column, name in zip(values.T, names, strict=True):
                position = batch.schema.get_field_index(name)
                batch = batch.set_column(position, name, pa.array(column))
            writer.write(batch)
            done += batch.num_rows
            advance(batch.num_rows)
        if done == 0:
            raise InputError(f"{source.name} must have at least one row; it has only a header.")
    return Applied(done, tuple(names))


def _recalibrated(calibrator: Any, table: Any, names: list[str], done: int) -> Any:
    chosen = table.select(names)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return calibrator.predict_proba(chosen)
    except InputError as error:
        if error.row is None or done == 0:
            raise
        row = error.row
        message = str(error).replace(f"row {row} ", f"row {row + done} ")
        message = message.replace(f"[{row}, ", f"[{row + done}, ")
        raise InputError(message, row=row + done) from None
