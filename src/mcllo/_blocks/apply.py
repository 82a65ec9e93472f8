"""Apply a calibrator to a file, batch by batch: memory does not grow with the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._files.read import Roles, in_file_words, prefix_hint
from .._files.source import Source
from .._files.write import writing
from .._fit.map import MCLLOMap
from .._ground.files import StrPath, progress
from .._ground.statements import quiet
from .._input.probabilities import clean_logits
from ..exceptions import FileFormatError, InputError, Phrase


@dataclass(frozen=True, eq=False)
class Applied:
    """How many rows `apply_file` wrote, and the classes whose columns it recalibrated."""

    n_samples: int
    classes: tuple[str, ...]


def apply_file(
    calibrator: Any, path: StrPath, out: StrPath, *, prefix: str = "", logits: bool = False
) -> Applied:
    """Write the rows of `path` to `out` with the class columns recalibrated.

    All other columns pass through untouched, in their order.

    Parameters
    ----------
    calibrator : fitted calibrator
        Its classes, after `prefix`, are the columns to recalibrate.
    path, out : path-like
        CSV or Parquet; ``-`` is standard input and output.
    prefix : str
        What stands before a class in the name of its column.
    logits : bool
        The columns hold logits; probabilities take their place.
    """
    source = Source(path)
    names = [str(label) for label in calibrator.classes_.tolist()]
    columns, known, done = [prefix + name for name in names], set(source.columns), 0
    missing = [column for column in columns if column not in known]
    if missing and not prefix and (hint := prefix_hint(source.columns, names)):
        missed = f"{source.name} has no class column {missing[0]!r}."
        raise FileFormatError(missed, remedy=Phrase("{}.", hint))
    source.require(columns, "class column")
    roles = Roles(columns)
    with writing(out, source.separator) as writer, progress("recalibrating", out=out) as advance:
        for batch in source.batches(roles.numbers):
            if batch.num_rows == 0:
                continue
            try:
                writer.write(_recalibrated(calibrator, batch, source, roles, names, logits))
            except InputError as error:
                raise in_file_words(error.moved(done), source, roles) from None
            done += batch.num_rows
            advance(batch.num_rows)
        if done == 0:
            raise InputError(
                f"{source.name} must have at least one row; it has only a header. "
                "Check what wrote it."
            )
    return Applied(done, tuple(names))


def _recalibrated(
    calibrator: Any, batch: Any, source: Source, roles: Roles, names: list[str], logits: bool
) -> Any:
    """Return the batch with the calibrator's probabilities in the class columns."""
    import pyarrow as pa

    places = [source.index(column) for column in roles.numbers]
    table = pa.Table.from_batches([batch]).select(places).rename_columns(names)
    for place, column in zip(places, _predict(calibrator, table, logits).T, strict=True):
        batch = batch.set_column(place, batch.schema.names[place], pa.array(column))
    return batch


def _predict(calibrator: Any, table: Any, logits: bool) -> Any:
    with quiet():
        if not logits or calibrator.input == "logits":
            return calibrator.predict_proba(table)
        fitted = getattr(calibrator, "fit_", None)
        if isinstance(fitted, MCLLOMap):
            return fitted.recalibrate(logits=table)  # no probability is rounded to 0 on the way
        return calibrator.predict_proba(clean_logits(table).probs)
