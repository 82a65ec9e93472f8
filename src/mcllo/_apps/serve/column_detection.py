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
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ..._utils.formatting import ellipsis
from ..._utils.results import Floats
from ..._validation.frames import MAX_DISTINCT_LABELS, find_common_affixes
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
from .limits import Limits

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
class ColumnSeen:
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
    columns: tuple[ColumnSeen, ...]
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
class _Table:
    """The first rows, each column as words and, where it holds numbers, as numbers."""

    words: dict[str, list[str]]
    numbers: dict[str, Floats]
    n_gaps: dict[str, int] = field(default_factory=dict)

    def values(self, name: str) -> set[str]:
        """Return the distinct words of a column; none of no column."""
        return set(self.words[name]) - {""} if name else set()

    def sums(self, columns: Sequence[str]) -> Floats:
        """Return the sums of rows over some columns, without rows that have gaps."""
        total = np.sum([self.numbers[name] for name in columns], axis=0)
        return np.asarray(total[np.isfinite(total)])

    def near(self, columns: Sequence[str], target: float) -> bool:
        """Whether rows over some columns sum to about `target`, but for rounding."""
        if len(columns) < 2:
            return False
        sums = self.sums(columns)
        if len(sums) == 0:
            return False
        return float(np.abs(sums / target - 1.0).max()) <= MAX_ROUNDING_ROW_ERROR

    def within(self, name: str, most: float) -> bool:
        """Whether a column holds numbers from 0 to `most`."""
        numbers = self.numbers[name]
        known = numbers[np.isfinite(numbers)]
        return len(known) > 0 and bool(known.min() >= 0.0 and known.max() <= most)


def recognise(path: str, limits: Limits, sheet: str | None = None) -> DetectedTable:
    """Look at a file; refuse what is no table, or too large a one."""
    source = Source(path, ReadOptions(sheet=sheet or None))
    if source.arrays is not None:
        raise FileFormatError(
            f"{path} must be CSV, Parquet, Arrow or .xlsx here; it is a file of NumPy.",
            remedy="Its columns have no names: use the command line, mcllo help assess.",
        )
    # Columns first: they are known already, while rows are yet to be counted.
    limits.check_table(path, 0, len(source.columns))
    n_rows = count_rows(source, limits.rows)
    limits.check_table(path, n_rows, len(source.columns))
    if n_rows == 0:
        raise FileFormatError(
            f"{path} must have at least one row; it has only a header."
        )
    table = first_rows(source)
    label, prefix = guess_label(source.columns, table)
    classes = guess_classes(source.columns, table, label, prefix)
    columns = []
    for name in source.columns:
        role = ""
        if name == label:
            role = "label"
        elif name in classes:
            role = "class"
        examples = tuple(
            example(word) for word in table.words[name][:3]
        )  # the form has room
        columns.append(ColumnSeen(name, examples, role))
    sheets: tuple[str, ...] = ()
    if source.sheet is not None:
        sheets = tuple(sheet_titles(source.path, path))
    return DetectedTable(
        name=path,
        n_rows=n_rows,
        columns=tuple(columns),
        guess=guess_reading(table, label, classes, prefix),
        labels=tuple(sorted(table.values(label))[:50]),  # a longer list helps nobody
        sheets=sheets,
        sheet="" if source.sheet is None else source.sheet.title,
        notes=tuple(
            note.text for note in source.assumptions if note.kind == "note.encoding"
        ),
        ending=file_suffix(source),
    )


def example(word: str) -> str:
    """Return a cell as the form shows it: a long fraction rounded, never cut, other words cut.

    Examples
    --------
    >>> example("2.831699651706305e-06"), example("0,123456789"), example("31415926535")
    ('2.832e-06', '0,1235', '31415926535')
    """
    text = word.replace(DECIMAL_COMMA, DECIMAL_POINT, 1)
    is_fraction = DECIMAL_POINT in text or "e" in text.lower()
    is_short = len(word) <= 8  # characters, in which four digits fit
    if is_short or not is_fraction or not NUMBER.fullmatch(text):
        return ellipsis(word, 24)
    rounded = f"{float(text):.4g}"
    if DECIMAL_COMMA in word:
        return rounded.replace(DECIMAL_POINT, DECIMAL_COMMA)
    return rounded


def count_rows(source: Source, most: int) -> int:
    """Return the number of rows, counted until there are more than `most`."""
    n_rows = 0
    for batch in source.parts([], source.columns[:1]):
        n_rows += batch.num_rows
        if n_rows > most:
            break
    return n_rows


def first_rows(source: Source) -> _Table:
    """Return the first rows as words and numbers."""
    table = source.first_rows(N_REMEDY_ROWS).read([], source.columns)
    words = {}
    numbers = {}
    for name in source.columns:
        cells = [
            "" if cell is None else _word(cell)
            for cell in table.column(name).to_pylist()
        ]
        words[name] = [word or "" for word in clean_labels(cells, ())]
        found = numbers_in(words[name])
        if found is not None:
            numbers[name] = found
    gaps = {name: sum(_is_gap(word) for word in cells) for name, cells in words.items()}
    return _Table(words, numbers, gaps)


def _word(cell: Any) -> str:
    """Return a cell as it stands in a file of text: workbooks hold 3 as 3.0."""
    if (
        isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53
    ):  # exact up to here
        return str(int(cell))
    return str(cell)


def _is_gap(word: str) -> bool:
    return not word or word.lower() in MISSING or word.lower() == "nan"


def numbers_in(words: Sequence[str]) -> Floats | None:
    """Return cells as numbers, gaps as NaN and 70% as 0.7; None where one is none.

    Examples
    --------
    >>> numbers_in(["70 %", "", "12,5%"]), numbers_in(["1", "cat"])
    (array([0.7  ,   nan, 0.125]), None)
    """
    found = np.full(len(words), np.nan)
    for k, word in enumerate(words):
        if _is_gap(word):
            continue
        text, is_percent = strip_percent(word)
        text = text.replace(DECIMAL_COMMA, DECIMAL_POINT, 1)
        if not NUMBER.fullmatch(text):
            return None
        found[k] = float(text)
        if is_percent:
            found[k] /= 100.0
    return found if np.isfinite(found).any() else None


def guess_label(columns: Sequence[str], table: _Table) -> tuple[str, str]:
    """Return the column of the labels, and what stands before a class in its column's name."""
    label = ""
    prefix = ""
    n_named = 1  # one column may have the name of a value by chance
    for name in columns:
        values = sorted(table.values(name))
        if not 1 <= len(values) <= MAX_DISTINCT_LABELS:
            continue
        others = [
            other for other in columns if other != name and other in table.numbers
        ]
        n_same = len(set(values) & set(others))
        if n_same > n_named:
            label = name
            prefix = ""
            n_named = n_same
        before, _ = find_common_affixes(others, values)
        if n_same == 0 and before and len(values) > n_named:
            label = name
            prefix = before
            n_named = len(values)
    if label:
        return label, prefix
    for name in columns:
        if name.lower() in USUAL_LABEL_NAMES:
            return name, ""
    return _two_valued(columns, table), ""


def _two_valued(columns: Sequence[str], table: _Table) -> str:
    """Return the column of two words beside one of shares, where there is one of each."""
    shares = [name for name in table.numbers if table.within(name, 1.0)]
    pairs = [name for name in columns if len(table.values(name)) == 2]
    pairs_of_words = [name for name in pairs if name not in shares]
    if pairs_of_words:
        pairs = pairs_of_words
    shares = [name for name in shares if name not in pairs]
    return pairs[0] if len(pairs) == len(shares) == 1 else ""


def guess_classes(
    columns: Sequence[str], table: _Table, label: str, prefix: str
) -> list[str]:
    """Return the columns of the classes: those that labels name, and what the sums of rows ask."""
    values = table.values(label)
    others = [name for name in columns if name != label and not is_pandas_index(name)]
    able = [name for name in others if name in table.numbers]
    if prefix:
        return [name for name in able if name.startswith(prefix)]
    # Columns that labels name are classes in any case, also where rows do not sum to 1.
    named = [name for name in able if name in values]
    if table.near(named, 1.0) or table.near(named, 100.0):
        return named
    # Some classes may never have come true: other columns that complete the rows are theirs.
    for target in (1.0, 100.0):
        shares = [name for name in able if table.within(name, target)]
        if set(named) <= set(shares) and table.near(shares, target):
            return shares
    if not named and len(values) == 2:
        shares = [name for name in able if table.within(name, 1.0)]
        return shares if len(shares) == 1 else []
    return named


def guess_reading(
    table: _Table, label: str, classes: Sequence[str], prefix: str
) -> dict[str, Any]:
    """Return the first values of the fields that say how numbers are written."""
    scale = guess_scale(table, classes)
    normalize = False
    if len(classes) > 1 and scale != "logits":
        target = 100.0 if scale == "percent" else 1.0
        if table.near(classes, target):
            error = np.abs(table.sums(classes) / target - 1.0)
            normalize = bool(error.max() > ROW_SUM_TOL)
    columns = [*classes, label] if label else list(classes)
    has_gaps = any(table.n_gaps[name] for name in columns)
    return {
        "scale": scale,
        "normalize": normalize,
        "missing": "drop" if has_gaps else "refuse",
        "positive": guess_positive(table, label, classes[0])
        if len(classes) == 1
        else "",
        "prefix": prefix,
    }


def guess_scale(table: _Table, classes: Sequence[str]) -> str:
    """Return what the numbers of the classes are: probabilities, percentages or logits."""
    if any(np.nanmin(table.numbers[name]) < 0.0 for name in classes):
        return "logits"
    if table.near(classes, 100.0):
        return "percent"
    if len(classes) == 1:  # there are no sums that tell
        is_probability = table.within(classes[0], 1.0)
        if not is_probability and table.within(classes[0], 100.0):
            return "percent"
    return "probs"


def guess_positive(table: _Table, label: str, column: str) -> str:
    """Return the label that a single column is the probability of."""
    values = sorted(table.values(label))
    if column in values:
        return column
    for value in values:
        if value.lower() in TRUE_WORDS:
            return value
    return ""


def file_suffix(source: Source) -> str:
    """Return the ending of a table of the same kind: tabs stay tabs, compressed text compressed."""
    suffixes = [suffix.lower() for suffix in source.path.suffixes]
    if source.kind != "csv":
        return ENDINGS[source.kind]
    packed = {"gzip": ".gz", "zstd": ".zst"}.get(source.compression or "", "")
    assert packed in {"", *COMPRESSION_SUFFIXES}
    return (".tsv" if TAB_SUFFIXES & set(suffixes) else ".csv") + packed
