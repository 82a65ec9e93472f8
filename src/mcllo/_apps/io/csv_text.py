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

CSV as text: its separator and header, where a row stands, and what is wrong on which line.

pyarrow reads the values. It cannot say on which line of the file a row stands (quoted cells may
hold line ends, empty lines are skipped), so after something went wrong the file is read again here,
with Python's own parser. Lines count from 1, rows of data from 0.

Spaces around labels do not count, and a label such as ``1.0`` means the class ``1``: a column of
integers that once held a gap is written that way.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import IO, Any, NamedTuple

from ..._utils.formatting import join_words
from ..._utils.statements import Statement

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?(nan|inf|infinity)", re.IGNORECASE)
MISSING = ("na", "n/a", "#n/a", "<na>", "null", "none", "nil", "missing", "-", "--", "?", ".")
"""Words for nothing, in small letters."""
DECIMAL_POINT = "."
DECIMAL_COMMA = ","
PERCENT_SIGN_REMEDY = "Write all cells of that column with a percent sign, or none."
GAP_REMEDY = "Drop or correct that row, or pass {missing:'drop'}."


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
) -> tuple[str, str] | None:
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
    return shown, "Choose the columns that are classes with {classes}."


SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
MAX_HEADER_CHARACTERS = 1 << 24
"""Characters of a header line, at most."""
PANDAS_INDEX = re.compile(r"(__index_level_\d+__)?")
WHOLE_NUMBER = re.compile(r"([+-]?\d+)\.0*")
QUOTED_CELL = re.compile(r'"(?:[^"]|"")*"')
MISSING_LABELS = {*MISSING, "nan"}
FOREIGN_BYTES = re.compile("[\udc80-\udcff]")
"""Bytes that are not UTF-8, as ``errors="surrogateescape"`` reads them."""


def read_header(stream: IO[bytes]) -> tuple[list[str], str]:
    """Return the column names as they are written, and the separator.

    Bytes that are not UTF-8 raise `UnicodeDecodeError`.

    Examples
    --------
    >>> read_header(io.BytesIO(b'"a;b",c,y'))
    (['a;b', 'c', 'y'], ',')
    """
    text = _text(stream)
    lines, quotes, length = [""], 0, 0
    while (line := text.readline(MAX_HEADER_CHARACTERS)) and length < MAX_HEADER_CHARACTERS:
        lines.append(line)
        quotes, length = quotes + line.count('"'), length + len(line)
        if line.strip("\r\n") and quotes % 2 == 0:
            break
    if length >= MAX_HEADER_CHARACTERS:
        raise csv.Error(
            f"its header line must end within {MAX_HEADER_CHARACTERS:,} characters, and does not. "
            "A quote "
            "in it may be open"
        )
    header = "".join(lines)
    header = header.strip("\r\n").encode("utf-8", "surrogateescape").decode("utf-8")
    bare = QUOTED_CELL.sub("", header)
    separator = max(SEPARATORS, key=bare.count)
    try:
        names = next(csv.reader(io.StringIO(header, newline=""), delimiter=separator), [])
    except csv.Error:
        longest = csv.field_size_limit()
        raise csv.Error(
            f"column names must have at most {longest:,} characters, and one has more. Shorten it"
        ) from None
    return names, separator


def sample_rows(
    stream: IO[bytes], separator: str, n_bytes: int, most_cells: int
) -> list[list[str]]:
    """Return rows of the beginning of the file, where numbers may be written in a way of its own.

    That takes a percent sign, or a comma that does not part cells; else there is nothing to see.
    """
    head = stream.read(n_bytes)
    if b"%" not in head and (b"," not in head or (separator == "," and b'"' not in head)):
        return []
    found: list[list[str]] = []
    with suppress(csv.Error):
        for _, cells in records(io.BytesIO(head), separator):
            found.append(cells)
            most_cells -= len(cells)
            if most_cells < 0:
                break
    return found if len(head) < n_bytes else found[:-1]  # the last line may be cut


def records(stream: IO[bytes], separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line on which each row of data begins, and its cells."""
    reader = csv.reader(_text(stream), delimiter=separator)
    line, header = 1, True
    for cells in reader:
        if cells and not header:
            yield line, cells
        header = header and not cells
        line = reader.line_num + 1


def line_of_row(stream: IO[bytes], separator: str, row: int) -> int:
    r"""Return the line of the file on which a row of data begins.

    Examples
    --------
    >>> line_of_row(io.BytesIO(b'id,a,b\n"two\nlines",1,0\n\nx,0,1\n'), ",", 1)
    5
    """
    try:
        return next(islice(records(stream, separator), row, None))[0]
    except (csv.Error, StopIteration):
        return row + 2


class Fault(NamedTuple):
    """What is wrong with a line, and the remedy, a template; the column where it is one cell."""

    rule: str
    remedy: str
    column: str | None = None


def first_fault(
    stream: IO[bytes],
    separator: str,
    columns: Sequence[str],
    numbers: Sequence[str],
    writing: NumberFormat = PLAIN_FORMAT,
) -> Fault | None:
    """Return what is wrong with the first broken line."""
    place = {name: j for j, name in enumerate(columns)}
    where = [(place[name], name) for name in numbers]
    try:
        for line, cells in records(stream, separator):
            found, wanted = len(cells), len(columns)
            if found != wanted:
                quotes = f"Put quotes around cells that hold {SEPARATORS[separator]}."
                return Fault(
                    f"each line must have {wanted} cells, as the header has; line {line} has "
                    f"{found}.",
                    quotes if found > wanted else "Complete that line or drop it.",
                )
            for j, name in where:
                if (fault := number_fault(cells[j], writing, name in writing.signed)) is not None:
                    rule = f"column {name!r} must hold numbers; line {line} has {fault[0]}."
                    return Fault(rule, fault[1], name)
            if any(not cell.isascii() and FOREIGN_BYTES.search(cell) for cell in cells):
                rule = f"line {line} must be UTF-8 text, as the lines before; it holds other bytes."
                return Fault(rule, "Try {encoding:'latin-1'}.")
    except csv.Error:
        return None
    return None


def has_odd_quotes(stream: IO[bytes]) -> bool:
    """Whether the number of quotes is odd: some quoted cell may never end."""
    return sum(block.count(b'"') for block in iter(lambda: stream.read(1 << 22), b"")) % 2 == 1


def open_quote(stream: IO[bytes], separator: str) -> int | None:
    """Return the line of a quoted cell that does not end, or ends before its cell does.

    A cell that never ends would swallow the rows after it in silence.
    """
    reader = csv.reader(_text(stream), delimiter=separator, strict=True)
    line = 1
    try:
        for _ in reader:
            line = reader.line_num + 1
    except csv.Error:
        return line
    return None


def looks_like_data(names: Sequence[str]) -> bool:
    """Whether a first line holds decimal numbers, that is, no names."""
    decimal = [name for name in names if NUMBER.fullmatch(name) and not name.lstrip("+-").isdigit()]
    return len(decimal) >= 2


def is_index(name: str) -> bool:
    """Whether a column is one that pandas writes for its index: without a name of its own."""
    return PANDAS_INDEX.fullmatch(name) is not None


def clean_labels(
    words: Sequence[str | None], names: Sequence[str], drops: bool = False
) -> list[str | None]:
    """Return labels without spaces around them, and ``1`` for ``1.0`` where 1 is a class.

    Where rows with gaps are dropped, a word such as NA that is no class is a gap.
    """

    def clean(word: str) -> str | None:
        bare = word if word in known else word.strip()
        whole = None if bare in known else WHOLE_NUMBER.fullmatch(bare)
        if whole is not None and whole[1] in known:
            return whole[1]
        gap = drops and bare not in known and bare.lower() in MISSING_LABELS
        return None if gap else bare or None

    known = set(names)
    meant = {word: None if word is None else clean(word) for word in set(words)}
    return [meant[word] for word in words]


def _text(stream: IO[bytes]) -> io.TextIOWrapper:
    return io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
