"""CSV: its separator and header, how its numbers are written, its rows, and what is wrong where.

pyarrow reads the values (`CsvTable`). It cannot say on which line of the file a row stands (quoted
cells may hold line ends, empty lines are skipped), so after something went wrong the file is read
again here, with Python's own parser. Lines count from 1, rows of data from 0.

Numbers as people write them become floats; one file has one way of writing, and it is said:

============  ===================================================================================
``0,7``       0.7, where the first number with a decimal mark has a comma; a point is then refused
``70%``       0.7, in a column where some cell of the first rows ends in a percent sign; a cell
              without one is then refused
``70``        0.7 where the reader says that numbers are percentages; ``70%`` too
``NA``, -     missing where rows with gaps are dropped, refused otherwise
empty         missing
============  ===================================================================================

Plain numbers are left to pyarrow's reader, which is faster. Spaces around labels do not count, and
a label such as ``1.0`` means the class ``1``: a column of integers that once held a gap is written
that way.
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
from ...exceptions import FileFormatError
from .container import (
    N_HEAD_BYTES,
    UNSUPPORTED_COMPRESSED_MAGIC,
    InputFile,
    detect_encoding,
    refuse_unsupported_format,
)

NUMBER = re.compile(
    r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?(nan|inf|infinity)", re.IGNORECASE
)
MISSING = (
    "na",
    "n/a",
    "#n/a",
    "<na>",
    "null",
    "none",
    "nil",
    "missing",
    "-",
    "--",
    "?",
    ".",
)
"""Words for nothing, in small letters."""
DECIMAL_POINT = "."
DECIMAL_COMMA = ","
PERCENT_SIGN_REMEDY = "Write all cells of that column with a percent sign, or none."
GAP_REMEDY = "Drop or correct that row, or pass {missing:'drop'}."
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
MAX_HEADER_CHARACTERS = 1 << 24
"""Characters of a header line, at most: a round number, far above the columns of any table."""
N_ENCODING_SAMPLE_BYTES = 1 << 24
"""Bytes of text that show its encoding: round; an umlaut further down than that is rare."""
MIN_BLOCK_BYTES = 1 << 20
"""Bytes parsed at a time, at least; pyarrow's own default."""
MIN_BLOCK_BYTES_PER_COLUMN = 512
"""Times the number of columns: bytes parsed at a time for wide files; a round number."""
PANDAS_INDEX = re.compile(r"(__index_level_\d+__)?")
WHOLE_NUMBER = re.compile(r"([+-]?\d+)\.0*")
QUOTED_CELL = re.compile(r'"(?:[^"]|"")*"')
MISSING_LABELS = {*MISSING, "nan"}
FOREIGN_BYTES = re.compile("[\udc80-\udcff]")
"""Bytes that are not UTF-8, as ``errors="surrogateescape"`` reads them."""


# ---- numbers


class NumberFormat(NamedTuple):
    """How the numbers of a file are written: the decimal mark, the columns with percent signs.

    With `percent` all numbers are percentages, with `drops_missing` words such as NA are gaps.
    """

    decimal: str = DECIMAL_POINT
    percent_columns: frozenset[str] = frozenset()
    percent: bool = False
    drops_missing: bool = False

    def is_plain(self, column: str) -> bool:
        """Whether pyarrow reads the numbers of a column by itself."""
        return not (
            column in self.percent_columns or self.percent or self.drops_missing
        )

    def statements(self) -> list[Statement]:
        """Return what was assumed of the numbers."""
        said = []
        if self.decimal == DECIMAL_COMMA:
            said.append(
                Statement("note.decimal", "Decimal commas were read: 0,7 is 0.7.")
            )
        if self.percent_columns:
            where = f"{len(self.percent_columns)} columns"
            if len(self.percent_columns) <= 6:
                where = join_words(
                    [repr(name) for name in sorted(self.percent_columns)]
                )
            text = f"Percent signs were read in {where}: 70% is 0.7."
            said.append(
                Statement(
                    "note.percent",
                    text,
                    numbers={"columns": sorted(self.percent_columns)},
                )
            )
        elif self.percent:
            text = "Numbers were read as percentages: 70 is 0.7."
            said.append(Statement("note.percent", text))
        return said


PLAIN_FORMAT = NumberFormat()


class NumberMarks(NamedTuple):
    """What the first rows show of numbers, by the position of the column.

    `percent_columns` have a percent sign; `decimal` is the first decimal mark of a column with the
    row that holds it.
    """

    percent_columns: frozenset[int] = frozenset()
    decimal: Mapping[int, tuple[int, str]] = {}

    def number_format(self, places: Mapping[str, int]) -> NumberFormat:
        """Return how the numbers of some columns are written; `places` are their positions."""
        percent_columns = frozenset(
            name for name, j in places.items() if j in self.percent_columns
        )
        marks = [self.decimal[j] for j in places.values() if j in self.decimal]
        # the first number of the file decides: of one row, that of the first column asked for
        _, decimal = min(marks, key=_row_of_mark, default=(0, DECIMAL_POINT))
        return NumberFormat(decimal, percent_columns)


def _row_of_mark(mark: tuple[int, str]) -> int:
    return mark[0]


def find_number_marks(
    rows: Iterable[Sequence[str]], columns: Iterable[int] | None = None
) -> NumberMarks:
    """Return how the numbers in some rows are written, of all columns or of those asked for."""
    wanted = None if columns is None else list(columns)
    percent_columns = set()
    decimal: dict[int, tuple[int, str]] = {}
    for row, cells in enumerate(rows):
        for j in range(len(cells)) if wanted is None else wanted:
            if j >= len(cells):
                continue
            text, has_sign = strip_percent(cells[j])
            if not NUMBER.fullmatch(text.replace(DECIMAL_COMMA, DECIMAL_POINT, 1)):
                continue
            if has_sign:
                percent_columns.add(j)
            if j not in decimal and DECIMAL_COMMA in text:
                decimal[j] = (row, DECIMAL_COMMA)
            elif j not in decimal and DECIMAL_POINT in text:
                decimal[j] = (row, DECIMAL_POINT)
    return NumberMarks(frozenset(percent_columns), decimal)


def detect_number_format(
    rows: Iterable[Sequence[str]], places: Mapping[str, int]
) -> NumberFormat:
    """Return how the numbers in some rows are written; `places` are the columns' positions.

    Examples
    --------
    >>> found = detect_number_format([["70,5%", "a"], ["x", "b"]], {"rain": 0})
    >>> found.decimal, list(found.percent_columns)
    (',', ['rain'])
    """
    return find_number_marks(rows, places.values()).number_format(places)


def strip_percent(cell: str) -> tuple[str, bool]:
    """Return a cell without its percent sign and the spaces around it, and whether it had one.

    Examples
    --------
    >>> strip_percent(" 70 % "), strip_percent("0.7")
    (('70', True), ('0.7', False))
    """
    text = cell.strip()
    if text.endswith("%"):
        return text[:-1].strip(), True
    return text, False


def parse_numbers(
    column: Any, number_format: NumberFormat, has_percent_sign: bool
) -> Any:
    """Return a column of text as floats; what is no number raises pyarrow's error."""
    import pyarrow as pa
    from pyarrow import compute

    text = compute.utf8_trim_whitespace(column)
    if has_percent_sign or number_format.percent:
        if not number_format.percent:
            _refuse_missing_percent_signs(text, number_format.drops_missing)
        text = compute.utf8_trim_whitespace(compute.utf8_rtrim(text, "%"))
    if number_format.drops_missing:
        text = compute.if_else(_is_missing_word(text), "", text)
    if number_format.decimal == DECIMAL_COMMA:
        if compute.any(compute.match_substring(text, DECIMAL_POINT)).as_py():
            raise pa.ArrowInvalid("a decimal point")
        text = compute.replace_substring(text, DECIMAL_COMMA, DECIMAL_POINT)
    text = compute.if_else(compute.equal(text, ""), None, text)
    return compute.cast(text, pa.float64())


def _refuse_missing_percent_signs(text: Any, drops_missing: bool) -> None:
    """Raise pyarrow's error where a number of a column with percent signs has none."""
    import pyarrow as pa
    from pyarrow import compute

    is_filled = compute.not_equal(text, "")
    if drops_missing:
        is_filled = compute.and_(is_filled, compute.invert(_is_missing_word(text)))
    bare = compute.and_not(is_filled, compute.ends_with(text, "%"))
    if compute.any(bare).as_py():
        raise pa.ArrowInvalid("a cell without a percent sign")


def _is_missing_word(text: Any) -> Any:
    """Whether each cell is a word for nothing."""
    import pyarrow as pa
    from pyarrow import compute

    missing = pa.array(MISSING, text.type)
    return compute.is_in(compute.utf8_lower(text), value_set=missing)


def find_number_fault(
    cell: str,
    number_format: NumberFormat = PLAIN_FORMAT,
    has_percent_sign: bool = False,
) -> tuple[str, str] | None:
    """Return what a cell holds instead of a number, and the remedy; None for numbers and gaps."""
    text, has_sign = strip_percent(cell)
    is_word = text.lower() in MISSING and not has_sign
    if (not text and not has_sign) or (is_word and number_format.drops_missing):
        return None
    shown = cell.strip()
    shown = repr(shown if len(shown) <= 40 else shown[:39] + "…")
    if is_word:
        return shown, GAP_REMEDY
    mixed = number_format.decimal == DECIMAL_COMMA and DECIMAL_POINT in text
    if (
        NUMBER.fullmatch(text.replace(number_format.decimal, DECIMAL_POINT, 1))
        and not mixed
    ):
        if number_format.percent or has_sign == has_percent_sign:
            return None
        return shown, PERCENT_SIGN_REMEDY
    other = DECIMAL_POINT if number_format.decimal == DECIMAL_COMMA else DECIMAL_COMMA
    if NUMBER.fullmatch(text.replace(other, DECIMAL_POINT, 1)):
        return shown, "Write all decimals alike: with a point, or all with a comma."
    return shown, "Choose the columns that are classes with {classes}."


# ---- lines


def read_header(stream: IO[bytes]) -> tuple[list[str], str]:
    """Return the column names as they are written, and the separator.

    Bytes that are not UTF-8 raise `UnicodeDecodeError`.

    Examples
    --------
    >>> read_header(io.BytesIO(b'"a;b",c,y'))
    (['a;b', 'c', 'y'], ',')
    """
    header = _read_header_lines(_decode_text(stream))
    header = header.strip("\r\n").encode("utf-8", "surrogateescape").decode("utf-8")
    bare = QUOTED_CELL.sub("", header)
    separator = max(SEPARATORS, key=bare.count)
    reader = csv.reader(io.StringIO(header, newline=""), delimiter=separator)
    try:
        names = next(reader, [])
    except csv.Error:
        longest = csv.field_size_limit()
        raise csv.Error(
            f"column names must have at most {longest:,} characters, and one has more. Shorten it"
        ) from None
    return names, separator


def _read_header_lines(text: io.TextIOWrapper) -> str:
    """Return the first line that is not empty, with those that its quoted cells go on to."""
    lines = []
    n_quotes = 0
    n_characters = 0
    while n_characters < MAX_HEADER_CHARACTERS:
        line = text.readline(MAX_HEADER_CHARACTERS)
        if not line:
            break
        lines.append(line)
        n_quotes += line.count('"')
        n_characters += len(line)
        if line.strip("\r\n") and n_quotes % 2 == 0:
            break
    if n_characters >= MAX_HEADER_CHARACTERS:
        raise csv.Error(
            f"its header line must end within {MAX_HEADER_CHARACTERS:,} characters, and does not. "
            "A quote "
            "in it may be open"
        )
    return "".join(lines)


def sample_rows(
    stream: IO[bytes], separator: str, n_bytes: int, most_cells: int = 20_000
) -> list[list[str]]:
    """Return rows of the beginning of the file, where numbers may be written in a way of its own.

    That takes a percent sign, or a comma that does not part cells; else there is nothing to see.
    To look through so many cells takes 10 ms.
    """
    head = stream.read(n_bytes)
    has_commas = b"," in head and (separator != "," or b'"' in head)
    if b"%" not in head and not has_commas:
        return []
    found: list[list[str]] = []
    n_cells = 0
    with suppress(csv.Error):
        for _, cells in iterate_records(io.BytesIO(head), separator):
            found.append(cells)
            n_cells += len(cells)
            if n_cells > most_cells:
                break
    return found if len(head) < n_bytes else found[:-1]  # the last line may be cut


def iterate_records(
    stream: IO[bytes], separator: str
) -> Iterator[tuple[int, list[str]]]:
    """Yield the line on which each row of data begins, and its cells."""
    reader = csv.reader(_decode_text(stream), delimiter=separator)
    line = 1
    header_is_next = True
    for cells in reader:
        if cells and not header_is_next:
            yield line, cells
        if cells:
            header_is_next = False
        line = reader.line_num + 1


def find_line_of_row(stream: IO[bytes], separator: str, row: int) -> int:
    r"""Return the line of the file on which a row of data begins.

    Examples
    --------
    >>> find_line_of_row(io.BytesIO(b'id,a,b\n"two\nlines",1,0\n\nx,0,1\n'), ",", 1)
    5
    """
    try:
        line, _ = next(islice(iterate_records(stream, separator), row, None))
    except (csv.Error, StopIteration):
        return row + 2  # as if each row had a line, after the header's
    return line


class FileFault(NamedTuple):
    """What is wrong with a line, and the remedy, a template; the column where it is one cell."""

    rule: str
    remedy: str
    column: str | None = None


def find_first_fault(
    stream: IO[bytes],
    separator: str,
    columns: Sequence[str],
    numbers: Sequence[str],
    number_format: NumberFormat = PLAIN_FORMAT,
) -> FileFault | None:
    """Return what is wrong with the first broken line."""
    places = {name: j for j, name in enumerate(columns)}
    wanted = len(columns)
    try:
        for line, cells in iterate_records(stream, separator):
            found = len(cells)
            if found != wanted:
                quotes = f"Put quotes around cells that hold {SEPARATORS[separator]}."
                return FileFault(
                    f"each line must have {wanted} cells, as the header has; line {line} has "
                    f"{found}.",
                    quotes if found > wanted else "Complete that line or drop it.",
                )
            for name in numbers:
                fault = find_number_fault(
                    cells[places[name]],
                    number_format,
                    name in number_format.percent_columns,
                )
                if fault is not None:
                    rule = f"column {name!r} must hold numbers; line {line} has {fault[0]}."
                    return FileFault(rule, fault[1], name)
            if any(not cell.isascii() and FOREIGN_BYTES.search(cell) for cell in cells):
                rule = f"line {line} must be UTF-8 text, as the lines before; it holds other bytes."
                return FileFault(rule, "Try {encoding:'latin-1'}.")
    except csv.Error:
        return None
    return None


class QuoteCounter:
    """Counts the quotes of text that flows by: where their number is odd, some cell may never end.

    pyarrow takes such a cell, and all rows after it, for one long word and says nothing.
    """

    def __init__(self) -> None:
        self.is_odd = False

    def __call__(self, block: Any) -> Any:
        """Count the quotes in a block of bytes, and return it."""
        if bytes(block).count(b'"') % 2 == 1:
            self.is_odd = not self.is_odd
        return block


def has_odd_quotes(stream: IO[bytes]) -> bool:
    """Whether the number of quotes is odd: some quoted cell may never end."""
    counter = QuoteCounter()
    while block := stream.read(1 << 22):  # 4 MB at a time, a round number
        counter(block)
    return counter.is_odd


def find_open_quote(stream: IO[bytes], separator: str) -> int | None:
    """Return the line of a quoted cell that does not end, or ends before its cell does.

    A cell that never ends would swallow the rows after it in silence.
    """
    reader = csv.reader(_decode_text(stream), delimiter=separator, strict=True)
    line = 1
    try:
        for _ in reader:
            line = reader.line_num + 1
    except csv.Error:
        return line
    return None


def _decode_text(stream: IO[bytes]) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        stream, encoding="utf-8-sig", errors="surrogateescape", newline=""
    )


# ---- names and labels


def header_looks_like_data(names: Sequence[str]) -> bool:
    """Whether a first line holds decimal numbers, that is, no names."""
    numbers = [name for name in names if NUMBER.fullmatch(name)]
    decimal = [name for name in numbers if not name.lstrip("+-").isdigit()]
    return len(decimal) >= 2  # integers are good names of classes


def is_pandas_index(name: str) -> bool:
    """Whether a column is one that pandas writes for its index: without a name of its own."""
    return PANDAS_INDEX.fullmatch(name) is not None


def clean_labels(
    words: Sequence[str | None], names: Sequence[str], drops_missing: bool = False
) -> list[str | None]:
    """Return labels without spaces around them, and ``1`` for ``1.0`` where 1 is a class.

    Where rows with gaps are dropped, a word such as NA that is no class is a gap.
    """
    classes = set(names)
    # each distinct word is looked at once, however many rows have it
    meant = {word: _clean_label(word, classes, drops_missing) for word in set(words)}
    return [meant[word] for word in words]


def _clean_label(
    word: str | None, classes: set[str], drops_missing: bool
) -> str | None:
    """Return the label that a cell means; None for a gap."""
    if word is None or word in classes:
        return word or None
    bare = word.strip()
    if bare in classes:
        return bare or None
    whole = WHOLE_NUMBER.fullmatch(bare)
    if whole is not None and whole[1] in classes:
        return whole[1]
    if drops_missing and bare.lower() in MISSING_LABELS:
        return None
    return bare or None


# ---- the table


class CsvTable:
    """A CSV file: the names and separator of its columns, how its numbers are written, its rows.

    Attributes
    ----------
    names : list of str
        Of the columns, as they are written.
    separator : str
        What stands between cells.
    marks : NumberMarks
        How numbers are written in the first rows.
    n_unpacked : float or None
        Bytes of the text, where its beginning was all of it.
    """

    def __init__(self, file: InputFile, encoding: str | None) -> None:
        """Look at the beginning of a file; its `encoding` is detected where none is given.

        The file is not kept: it would keep this object, and the copy of a pipe would stay open.
        """
        with file.open_text() as stream:
            sample = stream.read(N_ENCODING_SAMPLE_BYTES)
        is_whole = len(sample) < N_ENCODING_SAMPLE_BYTES
        self.n_unpacked = float(len(sample)) if is_whole else None
        if file.compression:
            refuse_unsupported_format(
                sample[:N_HEAD_BYTES], file.name, UNSUPPORTED_COMPRESSED_MAGIC
            )
        file.encoding = encoding or detect_encoding(sample)
        with file.open_text() as stream:
            self.names, self.separator = read_header(stream)
        with file.open_text() as stream:
            rows = sample_rows(stream, self.separator, MIN_BLOCK_BYTES)
        self.marks = find_number_marks(rows)

    @property
    def n_bytes_of_block(self) -> int:
        """Bytes parsed at a time; no line may be longer."""
        return max(MIN_BLOCK_BYTES, MIN_BLOCK_BYTES_PER_COLUMN * len(self.names))

    def batches(
        self, file: InputFile, places: Sequence[int], as_floats: set[int], decimal: str
    ) -> Iterator[Any]:
        """Yield record batches of the columns at some places, text but for those `as_floats`."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        types = {
            self.names[j]: pa.float64() if j in as_floats else pa.string()
            for j in places
        }
        convert = arrow_csv.ConvertOptions(
            column_types=types,
            include_columns=list(types),
            null_values=[""],
            strings_can_be_null=True,
            decimal_point=decimal,
        )
        parse = arrow_csv.ParseOptions(
            delimiter=self.separator, newlines_in_values=True
        )
        read = arrow_csv.ReadOptions(block_size=self.n_bytes_of_block)
        quotes = QuoteCounter()
        with file.open_text() as stream:
            counted = pa.TransformInputStream(stream, quotes)
            try:
                rows = arrow_csv.open_csv(
                    counted,
                    convert_options=convert,
                    parse_options=parse,
                    read_options=read,
                )
            except pa.ArrowInvalid as error:
                if "Empty CSV" in str(error):
                    return  # a header without a line end
                raise
            yield from rows
        if quotes.is_odd:
            self.refuse_open_quote(file)

    def refuse_open_quote(self, file: InputFile) -> None:
        """Refuse a quoted cell that never ends."""
        with file.open_text() as stream:
            if not has_odd_quotes(stream):
                return
        with file.open_text() as stream:
            line = find_open_quote(stream, self.separator)
        if line is not None:
            raise FileFormatError(
                f"{file.name} has a quoted cell that does not end, in line {line}. "
                "Close it, and write a quote inside quotes twice."
            )
