"""Why a file cannot be read, in one sentence with a remedy.

pyarrow says that something failed. Where it did, and what to do about it, is found by reading the
file again: the first line whose cells are too many or too few, the first cell that is no number, a
quoted cell that never ends.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from ...exceptions import FileFormatError, Option, Phrase
from .container import changed_meanwhile
from .csv_text import Fault, first_fault, has_odd_quotes, open_quote
from .number_format import PLAIN_FORMAT, number_fault

if TYPE_CHECKING:
    from .source import Source


def refuse_open_quote(source: Source) -> None:
    """Refuse a CSV file with a quoted cell that never ends."""
    with source.stream() as stream:
        if not has_odd_quotes(stream):
            return
    with source.stream() as stream:
        line = open_quote(stream, source.separator)
    if line is not None:
        raise FileFormatError(
            f"{source.name} has a quoted cell that does not end, in line {line}. "
            "Close it, and write a quote inside quotes twice."
        )


def explain(
    source: Source, error: Exception, numbers: Sequence[str], plain: Sequence[str] = ()
) -> FileFormatError:
    """Return one sentence for what pyarrow says of a file."""
    first = (str(error).splitlines() or [""])[0].strip().rstrip(".")
    first = "".join(letter for letter in first if letter.isprintable())
    if source.changed:
        return changed_meanwhile(source.name)
    if isinstance(error, csv.Error) and not source.columns:  # of the header
        return FileFormatError(f"{source.name} cannot be read: {first}.")
    if isinstance(error, MemoryError):
        return FileFormatError(
            f"{source.name} cannot be read: its rows do not fit into memory.",
            remedy="Cut the file into smaller ones, and name their folder.",
        )
    damaged = {"parquet": "Parquet", "arrow": "Arrow"}.get(source.kind)
    if damaged is None and source.compression and isinstance(error, OSError):
        damaged = source.compression
    if damaged is not None:
        return FileFormatError(
            f"{source.name} cannot be read: the {damaged} file is damaged or cut short ({first}).",
            remedy="Write or download it again.",
        )
    if isinstance(error, UnicodeError):
        return FileFormatError(
            f"{source.name} cannot be read as {source.encoding} text.",
            remedy=Phrase("Name its encoding with {}.", Option("encoding")),
        )
    fault = _fault(source, numbers, plain)
    if fault is not None:
        rule, remedy, column = fault
        message = f"{source.name} cannot be read: {rule}"
        return FileFormatError(message, column=column, remedy=remedy)
    if "straddl" in first:
        first = f"a line is longer than {source.block:,} bytes. Use Parquet"
    return FileFormatError(f"{source.name} cannot be read: {first}.")


def _fault(source: Source, numbers: Sequence[str], plain: Sequence[str]) -> Fault | None:
    """Return what is wrong with the first broken line or row."""
    if not source.is_text:
        return None
    read = numbers if set(source.columns) >= set(numbers) else ()
    columns = [*read, *plain]
    writing = source.writing(read, plain) if columns else PLAIN_FORMAT
    if source.sheet is not None:
        for name in columns:
            fault_of = partial(number_fault, writing=writing, signed=name in writing.signed)
            for row, cell in enumerate(source.sheet.texts(source.index(name))):
                if (fault := fault_of(cell)) is not None:
                    where = f"row {source.sheet.lines[row]} has {fault[0]}"
                    rule = f"column {name!r} must hold numbers; {where}."
                    return Fault(rule, fault[1], name)
        return None
    refuse_open_quote(source)
    with source.stream() as stream:
        return first_fault(stream, source.separator, source.columns, columns, writing)
