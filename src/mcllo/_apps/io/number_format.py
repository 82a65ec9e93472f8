"""Numbers as people write them -> floats; one file has one way of writing, and it is said.

============  ===================================================================================
``0,7``       0.7, where the first number with a decimal mark has a comma; a point is then refused
``70%``       0.7, in a column where some cell of the first rows ends in a percent sign; a cell
              without one is then refused
``70``        0.7 where the reader says that numbers are percentages; ``70%`` too
``NA``, -     missing where rows with gaps are dropped, refused otherwise
empty         missing
============  ===================================================================================

Plain numbers are left to pyarrow's reader, which is faster.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..._utils.formatting import join_words
from ..._utils.statements import Statement
from ...exceptions import Option, Phrase

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?(nan|inf|infinity)", re.IGNORECASE)
MISSING = ("na", "n/a", "#n/a", "<na>", "null", "none", "nil", "missing", "-", "--", "?", ".")
"""Words for nothing, in small letters."""
DECIMAL_POINT = "."
DECIMAL_COMMA = ","
PERCENT_SIGN_REMEDY = "Write all cells of that column with a percent sign, or none."
GAP_REMEDY = Phrase("Drop or correct that row, or pass {}.", Option("missing", "drop"))


class NumberFormat(NamedTuple):
    """How the numbers of a file are written: the decimal mark, the columns with percent signs.

    With `percent` all numbers are percentages, with `drops` words such as NA are gaps.
    """

    decimal: str = DECIMAL_POINT
    signed: frozenset[str] = frozenset()
    percent: bool = False
    drops: bool = False

    def is_plain(self, column: str) -> bool:
        """Whether pyarrow reads the numbers of a column by itself."""
        return not (column in self.signed or self.percent or self.drops)

    def statements(self) -> list[Statement]:
        """Return what was assumed of the numbers."""
        said = []
        if self.decimal == DECIMAL_COMMA:
            said.append(Statement("note.decimal", "Decimal commas were read: 0,7 is 0.7."))
        if self.signed:
            where = join_words([repr(name) for name in sorted(self.signed)[:6]])
            where = where if len(self.signed) <= 6 else f"{len(self.signed)} columns"
            text = f"Percent signs were read in {where}: 70% is 0.7."
            said.append(Statement("note.percent", text, numbers={"columns": sorted(self.signed)}))
        elif self.percent:
            text = "Numbers were read as percentages: 70 is 0.7."
            said.append(Statement("note.percent", text))
        return said


PLAIN_FORMAT = NumberFormat()


def strip_percent(cell: str) -> tuple[str, bool]:
    """Return a cell without its percent sign and the spaces around it, and whether it had one.

    Examples
    --------
    >>> strip_percent(" 70 % "), strip_percent("0.7")
    (('70', True), ('0.7', False))
    """
    text = cell.strip()
    return (text[:-1].strip(), True) if text.endswith("%") else (text, False)


def detect_number_format(rows: Iterable[Sequence[str]], places: Mapping[str, int]) -> NumberFormat:
    """Return how the numbers in some rows are written; `places` are the columns' positions.

    Examples
    --------
    >>> detect_number_format([["70,5%", "a"], ["x", "b"]], {"rain": 0})
    NumberFormat(decimal=',', signed=frozenset({'rain'}), percent=False, drops=False)
    """
    decimal, signed = "", set()
    for cells in rows:
        for name, j in places.items():
            text, sign = strip_percent(cells[j]) if j < len(cells) else ("", False)
            if not NUMBER.fullmatch(text.replace(DECIMAL_COMMA, DECIMAL_POINT, 1)):
                continue
            if sign:
                signed.add(name)
            decimal = decimal or next(
                (mark for mark in (DECIMAL_COMMA, DECIMAL_POINT) if mark in text), ""
            )
    return NumberFormat(decimal or DECIMAL_POINT, frozenset(signed))


def parse_numbers(column: Any, writing: NumberFormat, signed: bool) -> Any:
    """Return a column of text as floats; what is no number raises pyarrow's error."""
    import pyarrow as pa
    from pyarrow import compute

    text = compute.utf8_trim_whitespace(column)
    if signed or writing.percent:
        ends = compute.ends_with(text, "%")
        filled = compute.not_equal(text, "")
        if writing.drops:
            filled = compute.and_(filled, compute.invert(_is_missing(text)))
        if not writing.percent and compute.any(compute.and_not(filled, ends)).as_py():
            raise pa.ArrowInvalid("a cell without a percent sign")
        text = compute.utf8_trim_whitespace(compute.utf8_rtrim(text, "%"))
    if writing.drops:
        text = compute.if_else(_is_missing(text), "", text)
    if writing.decimal == DECIMAL_COMMA:
        if compute.any(compute.match_substring(text, DECIMAL_POINT)).as_py():
            raise pa.ArrowInvalid("a decimal point")
        text = compute.replace_substring(text, DECIMAL_COMMA, DECIMAL_POINT)
    text = compute.if_else(compute.equal(text, ""), None, text)
    return compute.cast(text, pa.float64())


def _is_missing(text: Any) -> Any:
    """Whether each cell is a word for nothing."""
    import pyarrow as pa
    from pyarrow import compute

    return compute.is_in(compute.utf8_lower(text), value_set=pa.array(MISSING, text.type))


def number_fault(
    cell: str, writing: NumberFormat = PLAIN_FORMAT, signed: bool = False
) -> tuple[str, str | Phrase] | None:
    """Return what a cell holds instead of a number, and the remedy; None for numbers and gaps."""
    text, sign = strip_percent(cell)
    word = text.lower() in MISSING and not sign
    if (not text and not sign) or (word and writing.drops):
        return None
    shown = cell.strip()
    shown = repr(shown if len(shown) <= 40 else shown[:39] + "…")
    if word:
        return shown, GAP_REMEDY
    other = DECIMAL_POINT if writing.decimal == DECIMAL_COMMA else DECIMAL_COMMA
    is_number = NUMBER.fullmatch(text.replace(writing.decimal, DECIMAL_POINT, 1)) and (
        writing.decimal == DECIMAL_POINT or DECIMAL_POINT not in text
    )
    if is_number:
        if writing.percent or sign == signed:
            return None
        return shown, PERCENT_SIGN_REMEDY
    if NUMBER.fullmatch(text.replace(other, DECIMAL_POINT, 1)):
        return shown, "Write all decimals alike: with a point, or all with a comma."
    return shown, Phrase("Choose the columns that are classes with {}.", Option("classes"))
