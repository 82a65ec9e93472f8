"""What a table seems to hold: a first guess, shown in a form for a person to correct.

==========  ======================================================================================
label       the column whose values name the most other columns, a common beginning (``p_``) left
            out; else one of a usual name; else nothing is guessed
classes     the columns that its values name, and the others that make rows sum to 1 (or 100):
            classes that never came true
one column  of shares beside a label of two values: the probability of one of them
scale       shares, percentages (rows sum to about 100) or scores before the softmax (negative
            numbers)
sums        rows that miss 1 by rounding are to be divided by their sum
gaps        rows with any are to be left out, and counted
==========  ======================================================================================

The first rows decide. Nothing is assumed behind anybody's back: each guess is a field of the form,
and what the form says is what `_apps/io/read` is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..._utils.formatting import ellipsis
from ..._utils.results import Floats
from ..._validation.frames import MAX_DISTINCT_LABELS, find_common_affixes, has_affixes
from ..._validation.probabilities import MAX_ROUNDING_ROW_ERROR, ROW_SUM_TOL
from ...exceptions import FileFormatError
from ..io.csv_text import (
    DECIMAL_COMMA,
    DECIMAL_POINT,
    MISSING,
    NUMBER,
    clean_labels,
    is_pandas_index,
    strip_percent,
)
from ..io.read import N_REMEDY_ROWS
from ..io.read_options import ReadOptions
from ..io.sheets import sheet_titles
from ..io.source import Source
from ..io.table_rows import TRUE_WORDS
from ..io.write import COMPRESSION_SUFFIXES, TAB_SUFFIXES
from .limits import ServerLimits

USUAL_LABEL_NAMES = (
    "label",
    "labels",
    "y",
    "y_true",
    "target",
    "truth",
    "true",
    "outcome",
    "observed",
    "seen",
)
ENDINGS = {"csv": ".csv", "sheet": ".xlsx", "parquet": ".parquet", "arrow": ".feather"}


@dataclass(frozen=True)
class DetectedColumn:
    """A column: its name, some of its cells, and the part that it seems to play."""

    name: str
    examples: tuple[str, ...]
    role: str = ""


@dataclass(frozen=True)
class DetectedTable:
    """What a table seems to hold, as plain values.

    `guess` are the first values of the form's other fields, `labels` what the label column seems
    to hold, `ending` what the recalibrated table's name ends in.
    """

    name: str
    n_rows: int
    columns: tuple[DetectedColumn, ...]
    guess: dict[str, Any]
    labels: tuple[str, ...] = ()
    sheets: tuple[str, ...] = ()
    sheet: str = ""
    notes: tuple[str, ...] = ()
    ending: str = ".csv"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


@dataclass
class _FirstRows:
    """The first rows, each column as words and, where it holds numbers, as numbers."""

    words: dict[str, list[str]]
    numbers: dict[str, Floats]
    n_gaps: dict[str, int] = field(default_factory=dict)

    def distinct_cells(self, column: str) -> set[str]:
        """Return the distinct words of a column; none of no column."""
        return set(self.words[column]) - {""} if column else set()

    def row_sums(self, columns: Sequence[str]) -> Floats:
        """Return the sums of rows over some columns, without rows that have gaps."""
        total = np.sum([self.numbers[name] for name in columns], axis=0)
        return np.asarray(total[np.isfinite(total)])

    def rows_sum_to_about(self, columns: Sequence[str], target: float) -> bool:
        """Whether rows over some columns sum to about `target`, but for rounding."""
        if len(columns) < 2:
            return False
        sums = self.row_sums(columns)
        if len(sums) == 0:
            return False
        return float(np.abs(sums / target - 1.0).max()) <= MAX_ROUNDING_ROW_ERROR

    def lies_between_zero_and(self, column: str, upper: float) -> bool:
        """Whether a column holds numbers from 0 to `upper`."""
        numbers = self.numbers[column]
        known = numbers[np.isfinite(numbers)]
        return len(known) > 0 and bool(known.min() >= 0.0 and known.max() <= upper)


def detect_table(
    path: str, limits: ServerLimits, sheet: str | None = None
) -> DetectedTable:
    """Look at a file; refuse what is no table, or too large a one.

    Where the sheet that comes first cannot be read, the first that can be is shown: there the
    others can be chosen.
    """
    try:
        source = Source(path, ReadOptions(sheet=sheet or None))
    except FileFormatError:
        other = None if sheet else _first_readable_sheet(path)
        if other is None:
            raise
        source = Source(path, ReadOptions(sheet=other))
    if source.arrays is not None:
        raise FileFormatError(
            f"{path} must be CSV, Parquet, Arrow or .xlsx here; it is a file of NumPy.",
            remedy="Its columns have no names: use the command line, mcllo help assess.",
        )
    # Columns first: they are known already, while rows are yet to be counted.
    limits.check_table_size(path, 0, len(source.columns))
    n_rows = count_rows_up_to(source, limits.rows)
    limits.check_table_size(path, n_rows, len(source.columns))
    if n_rows == 0:
        raise FileFormatError(
            f"{path} must have at least one row; it has only a header."
        )
    table = read_first_rows(source)
    label, prefix = guess_label_and_prefix(source.columns, table)
    classes = guess_class_columns(source.columns, table, label, prefix)
    columns = []
    for name in source.columns:
        role = ""
        if name == label:
            role = "label"
        elif name in classes:
            role = "class"
        first_cells = table.words[name][:3]  # the form has room for these
        examples = tuple(shorten_cell(word) for word in first_cells)
        columns.append(DetectedColumn(name, examples, role))
    sheets: tuple[str, ...] = ()
    if source.sheet is not None:
        sheets = tuple(sheet_titles(source.path, path))
    return DetectedTable(
        name=path,
        n_rows=n_rows,
        columns=tuple(columns),
        guess=guess_form_fields(table, label, classes, prefix),
        # a longer list helps nobody
        labels=tuple(sorted(table.distinct_cells(label))[:50]),
        sheets=sheets,
        sheet="" if source.sheet is None else source.sheet.title,
        notes=tuple(
            note.text
            for note in source.assumptions
            if note.kind in ("note.encoding", "note.header")
        ),
        ending=recalibrated_file_suffix(source),
    )


def _first_readable_sheet(path: str) -> str | None:
    """Return the first sheet of a workbook that is a table; None where none is, or no workbook."""
    try:
        titles = sheet_titles(Path(path), path)
    except Exception:  # no workbook, or a damaged one: whoever asked has said so
        return None
    for title in titles:
        with suppress(FileFormatError):
            Source(path, ReadOptions(sheet=title))
            return title
    return None


def shorten_cell(cell: str) -> str:
    """Return a cell as the form shows it: a long fraction rounded, never cut, other words cut.

    Examples
    --------
    >>> cells = ["2.831699651706305e-06", "0,123456789", "31415926535"]
    >>> tuple(shorten_cell(cell) for cell in cells)
    ('2.832e-06', '0,1235', '31415926535')
    """
    text = cell.replace(DECIMAL_COMMA, DECIMAL_POINT, 1)
    is_fraction = DECIMAL_POINT in text or "e" in text.lower()
    is_short = len(cell) <= 8  # characters, in which four digits fit
    if is_short or not is_fraction or not NUMBER.fullmatch(text):
        return ellipsis(cell, 24)
    rounded = f"{float(text):.4g}"
    if DECIMAL_COMMA in cell:
        return rounded.replace(DECIMAL_POINT, DECIMAL_COMMA)
    return rounded


def count_rows_up_to(source: Source, max_rows: int) -> int:
    """Return the number of rows, counted until there are more than `max_rows`."""
    n_rows = 0
    for batch in source.parts([], source.columns[:1]):
        n_rows += batch.num_rows
        if n_rows > max_rows:
            break
    return n_rows


def read_first_rows(source: Source) -> _FirstRows:
    """Return the first rows as words and numbers."""
    table = source.first_rows(N_REMEDY_ROWS).read([], source.columns)
    words = {}
    numbers = {}
    for name in source.columns:
        cells = [
            "" if cell is None else _cell_as_text(cell)
            for cell in table.column(name).to_pylist()
        ]
        words[name] = [word or "" for word in clean_labels(cells, ())]
        found = parse_numbers(words[name])
        if found is not None:
            numbers[name] = found
    gaps = {
        name: sum(_is_missing_cell(word) for word in cells)
        for name, cells in words.items()
    }
    return _FirstRows(words, numbers, gaps)


def _cell_as_text(cell: Any) -> str:
    """Return a cell as it stands in a file of text: workbooks hold 3 as 3.0."""
    is_whole = isinstance(cell, float) and cell.is_integer()
    if is_whole and abs(cell) < 2**53:  # exact up to here
        return str(int(cell))
    return str(cell)


def _is_missing_cell(cell: str) -> bool:
    return not cell or cell.lower() in MISSING or cell.lower() == "nan"


def parse_numbers(cells: Sequence[str]) -> Floats | None:
    """Return cells as numbers, gaps as NaN and 70% as 0.7; None where one is none.

    Examples
    --------
    >>> parse_numbers(["70 %", "", "12,5%"]), parse_numbers(["1", "cat"])
    (array([0.7  ,   nan, 0.125]), None)
    """
    found = np.full(len(cells), np.nan)
    for k, cell in enumerate(cells):
        if _is_missing_cell(cell):
            continue
        text, is_percent = strip_percent(cell)
        text = text.replace(DECIMAL_COMMA, DECIMAL_POINT, 1)
        if not NUMBER.fullmatch(text):
            return None
        found[k] = float(text)
        if is_percent:
            found[k] /= 100.0
    return found if np.isfinite(found).any() else None


def guess_label_and_prefix(
    columns: Sequence[str], first_rows: _FirstRows
) -> tuple[str, str]:
    """Return the column of the labels, and what stands before a class in its column's name."""
    label = ""
    prefix = ""
    n_named = 1  # one column may have the name of a value by chance
    for name in columns:
        values = sorted(first_rows.distinct_cells(name))
        if not 1 <= len(values) <= MAX_DISTINCT_LABELS:
            continue
        others = [
            other for other in columns if other != name and other in first_rows.numbers
        ]
        n_same = len(set(values) & set(others))
        if n_same > n_named:
            label = name
            prefix = ""
            n_named = n_same
        before, after = find_common_affixes(others, values)
        if n_same == 0 and (before or after) and len(values) > n_named:
            label = name
            prefix = f"{before}*{after}" if after else before
            n_named = len(values)
    if label:
        return label, prefix
    for name in columns:
        if name.lower() in USUAL_LABEL_NAMES:
            return name, ""
    return _find_two_valued_label(columns, first_rows), ""


def _find_two_valued_label(columns: Sequence[str], first_rows: _FirstRows) -> str:
    """Return the column of two words beside one of shares, where there is one of each."""
    shares = [
        name
        for name in first_rows.numbers
        if first_rows.lies_between_zero_and(name, 1.0)
    ]
    two_valued = [name for name in columns if len(first_rows.distinct_cells(name)) == 2]
    two_valued_words = [name for name in two_valued if name not in shares]
    if two_valued_words:
        two_valued = two_valued_words
    shares = [name for name in shares if name not in two_valued]
    return two_valued[0] if len(two_valued) == len(shares) == 1 else ""


def guess_class_columns(
    columns: Sequence[str], first_rows: _FirstRows, label_column: str, prefix: str
) -> list[str]:
    """Return the columns of the classes: those that labels name, and what the sums of rows ask."""
    values = first_rows.distinct_cells(label_column)
    others = [
        name for name in columns if name != label_column and not is_pandas_index(name)
    ]
    able = [name for name in others if name in first_rows.numbers]
    if prefix:
        return [name for name in able if has_affixes(prefix, name)]
    # Columns that labels name are classes in any case, also where rows do not sum to 1.
    named = [name for name in able if name in values]
    if first_rows.rows_sum_to_about(named, 1.0) or first_rows.rows_sum_to_about(
        named, 100.0
    ):
        return named
    # Some classes may never have come true: other columns that complete the rows are theirs.
    for target in (1.0, 100.0):
        shares = [
            name for name in able if first_rows.lies_between_zero_and(name, target)
        ]
        if set(named) <= set(shares) and first_rows.rows_sum_to_about(shares, target):
            return shares
    if not named and len(values) == 2:
        shares = [name for name in able if first_rows.lies_between_zero_and(name, 1.0)]
        return shares if len(shares) == 1 else []
    return named


def guess_form_fields(
    first_rows: _FirstRows, label_column: str, class_columns: Sequence[str], prefix: str
) -> dict[str, Any]:
    """Return the first values of the fields that say how numbers are written."""
    scale = guess_scale(first_rows, class_columns)
    normalize = False
    if len(class_columns) > 1 and scale != "logits":
        target = 100.0 if scale == "percent" else 1.0
        if first_rows.rows_sum_to_about(class_columns, target):
            error = np.abs(first_rows.row_sums(class_columns) / target - 1.0)
            normalize = bool(error.max() > ROW_SUM_TOL)
    columns = [*class_columns, label_column] if label_column else list(class_columns)
    has_gaps = any(first_rows.n_gaps[name] for name in columns)
    return {
        "scale": scale,
        "normalize": normalize,
        "missing": "drop" if has_gaps else "refuse",
        "positive": guess_positive_label(first_rows, label_column, class_columns[0])
        if len(class_columns) == 1
        else "",
        "prefix": prefix,
    }


def guess_scale(first_rows: _FirstRows, class_columns: Sequence[str]) -> str:
    """Return what the numbers of the classes are: probabilities, percentages or logits."""
    if any(np.nanmin(first_rows.numbers[name]) < 0.0 for name in class_columns):
        return "logits"
    if first_rows.rows_sum_to_about(class_columns, 100.0):
        return "percent"
    if len(class_columns) == 1:  # there are no sums that tell
        is_probability = first_rows.lies_between_zero_and(class_columns[0], 1.0)
        if not is_probability and first_rows.lies_between_zero_and(
            class_columns[0], 100.0
        ):
            return "percent"
    return "probs"


def guess_positive_label(
    first_rows: _FirstRows, label_column: str, class_column: str
) -> str:
    """Return the label that a single column is the probability of."""
    values = sorted(first_rows.distinct_cells(label_column))
    if class_column in values:
        return class_column
    for value in values:
        if value.lower() in TRUE_WORDS:
            return value
    return ""


def recalibrated_file_suffix(source: Source) -> str:
    """Return the ending of a table of the same kind: tabs stay tabs, compressed text compressed."""
    suffixes = [suffix.lower() for suffix in source.path.suffixes]
    if source.kind != "csv":
        return ENDINGS[source.kind]
    packed = {"gzip": ".gz", "zstd": ".zst"}.get(source.compression or "", "")
    assert packed in {"", *COMPRESSION_SUFFIXES}
    return (".tsv" if TAB_SUFFIXES & set(suffixes) else ".csv") + packed
