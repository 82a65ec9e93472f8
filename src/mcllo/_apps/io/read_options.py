"""How a file is meant: the part each column plays, and what its reader says of the cells.

What is said beforehand is a `ReadOptions`; what was taken for granted without being said is a list
of statements (`Source.assumptions`) that every output prints as notes.

=============  ====================================================================================
``percent``    class columns hold 0 to 100
``missing``    ``"refuse"`` rows with gaps, or ``"drop"`` and count them
``positive``   the label whose probability the one class column holds
``sheet``      of a workbook; the table of an ``.npz`` file
``encoding``   of text; found out where nothing is said
=============  ====================================================================================
"""

from __future__ import annotations

import codecs
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypedDict

from ..._utils.statements import Statement
from ..._validation.missing_rows import check_missing_rule
from ...exceptions import InputError

Missing = Literal["refuse", "drop"]


class CellOptions(TypedDict, total=False):
    """Keywords of `read_predictions` that say how cells are written."""

    percent: bool
    missing: Missing
    positive: str | None
    sheet: str | None
    header: int | None
    encoding: str | None


def _is_text_encoding(name: str) -> bool:
    """Whether bytes become text by it: rot13 is of text alone, zlib packs, punycode is of names."""
    try:
        # bytes as the reader hands them out: an object that has no methods of bytes
        text, _ = codecs.lookup(name).decode(array("B", b"a-b"))
    except UnicodeError:  # it is one of text, though not of this
        return True
    except Exception:  # codecs raise what they like
        return False
    return isinstance(text, str)


@dataclass(frozen=True)
class ReadOptions:
    """What a reader says of a file; see the module.

    Examples
    --------
    >>> ReadOptions(missing="drop").drops_missing
    True
    """

    percent: bool = False
    missing: Missing = "refuse"
    positive: str | None = None
    sheet: str | None = None
    encoding: str | None = None
    header: int | None = None

    def __post_init__(self) -> None:
        check_missing_rule(self.missing)
        if self.encoding is not None and not _is_text_encoding(self.encoding):
            raise InputError(
                argument="encoding",
                rule="be the name of an encoding",
                value=self.encoding,
                remedy="Try {encoding:'latin-1'} or 'utf-16'.",
            )

    @property
    def drops_missing(self) -> bool:
        """Whether rows with gaps are left out."""
        return self.missing == "drop"


DEFAULT_READ_OPTIONS = ReadOptions()


@dataclass(frozen=True)
class ColumnRoles:
    """Which column of a file plays which part; `numbers` are those of the classes, in order.

    `names` are the classes they stand for. With `positive` there is one column for two classes:
    its own, and the other one.
    """

    numbers: Sequence[str]
    label: str | None = None
    weight: str | None = None
    groups: str | None = None
    by: str | None = None
    names: Sequence[str] = ()
    positive: bool = False

    @property
    def plain(self) -> list[str]:
        """Columns of numbers that are no probabilities."""
        return [] if self.weight is None else [self.weight]

    @property
    def text(self) -> list[str]:
        """Columns that are read as they stand."""
        named = (self.label, self.groups, self.by)
        return list(dict.fromkeys(name for name in named if name is not None))

    @property
    def columns(self) -> list[str]:
        """All columns that play a part."""
        found = [*self.numbers, *self.plain, *self.text]
        return list(dict.fromkeys(found))

    def with_changes(self, **changes: object) -> ColumnRoles:
        """Return a copy with other parts."""
        return replace(self, **changes)  # type: ignore[arg-type]


def single_column_statement(column: str, positive: str, negative: str) -> Statement:
    """Say what one column of probabilities was taken for."""
    text = (
        f"Column {column!r} was read as the probability of {positive!r}, and 1 minus it as that "
        f"of {negative!r}."
    )
    return Statement(
        "note.positive", text, numbers={"column": column, "positive": positive}
    )
