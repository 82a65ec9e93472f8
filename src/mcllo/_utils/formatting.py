"""Numbers as people read them, the only place that rounds; and `Table`, a few named columns.

A `Table` prints itself, and leaves as CSV (all digits), as LaTeX (digits by column), as a frame:
pandas, polars and pyarrow take it as it is, by its rows or by Arrow's stream.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np

from .atomic_files import StrPath, write_text
from .notebook import NotebookResult
from .optional import CLI_EXTRA, import_optional

MIN_PRINTED_PVALUE = 1e-300
"""P-values below are printed as ``< 1e-300``: a round number above the least that is not 0."""
SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


class PValueText(NamedTuple):
    """A p-value in words: ``=``, ``<`` or ``<=``, and the number."""

    relation: str
    number: str

    def __str__(self) -> str:
        return f"{self.relation} {self.number}".strip()

    @property
    def without_equals(self) -> str:
        """The number, with its relation only where that is not ``=``."""
        return self.number if self.relation == "=" else str(self)


PStyle = Callable[..., PValueText]
"""`pvalue_text`, or it with ``typeset=True``."""


def pvalue_text(
    pvalue: float, *, bound: bool = False, typeset: bool = False
) -> PValueText:
    """Return the relation and the number of a p-value; never ``= 0``. NaN is ``not available``.

    A `bound` is at most that large; `typeset` writes as printers do, with ``≤`` and ``× 10⁻⁷``.

    Examples
    --------
    >>> tuple(pvalue_text(0.03412)), tuple(pvalue_text(0.0)), str(pvalue_text(2.134e-5, bound=True))
    (('=', '0.034'), ('<', '1e-300'), '<= 2.1e-05')
    >>> print(pvalue_text(2.5e-7, typeset=True))
    = 2.5 × 10⁻⁷
    >>> pvalue_text(1e-20, bound=True, typeset=True).without_equals
    '≤ 10⁻²⁰'
    """
    if math.isnan(pvalue):
        return PValueText("", "not available")
    is_tiny = pvalue < MIN_PRINTED_PVALUE
    relation = "="
    if is_tiny:
        relation = "<"
    elif bound:
        relation = "≤" if typeset else "<="
    value = max(pvalue, MIN_PRINTED_PVALUE)
    if value >= 0.0001:
        return PValueText(relation, f"{value:.2g}")
    if not typeset:
        digits = 0 if is_tiny else 1  # the bound is exact: 1e-300, and not 1.0e-300
        return PValueText(relation, f"{value:.{digits}e}")
    factor, exponent = f"{value:.1e}".split("e-")
    power = "10⁻" + str(int(exponent)).translate(SUPERSCRIPTS)
    number = power if factor == "1.0" else f"{factor} × {power}"
    return PValueText(relation, number)


def format_pvalue(pvalue: float) -> str:
    """Return ``= 0.034``, ``= 0.0005``, ``= 2.1e-05`` or ``< 1e-300``; never ``= 0``."""
    return str(pvalue_text(pvalue))


def format_number(value: float, digits: int = 3) -> str:
    """Return about `digits` significant digits, two decimals near 1, an exponent only when far."""
    if math.isnan(value):
        return "-"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    size = abs(value)
    is_far = size != 0.0 and not 1e-4 <= size < 1e7
    if is_far:
        return f"{value:.{digits - 1}g}"
    decimals = _count_decimals(size, digits)
    return f"{value + 0.0:.{decimals}f}"  # + 0.0 turns -0.0 into 0.0


def _count_decimals(size: float, digits: int) -> int:
    """Return the decimals that show about so many digits of a number of this size."""
    if 0.0 < size < 0.1:
        return digits - 2 - math.floor(math.log10(size))
    # 0.35 has as many decimals as 3.50: a column of both stands in line
    if size < 1.0:
        return digits - 1
    return max(0, digits - 1 - math.floor(math.log10(size)))


def format_interval(low: float, high: float) -> str:
    """Return ``[0.51, 0.60]``, or ``[-, -]`` when an end is not known."""
    if math.isnan(low) or math.isnan(high):
        return "[-, -]"
    return f"[{format_number(low)}, {format_number(high)}]"


def format_count(n: float) -> str:
    """Return a count with thousands separators: ``10,000``."""
    return f"{n:,.0f}"


def join_words(names: Sequence[str]) -> str:
    """Return ``a, b and c``, ``a and b`` or ``a``."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def align_columns(rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return rows of words as columns: the first `left` flush left, the others flush right."""
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = []
        for j, (word, width) in enumerate(zip(row, widths, strict=True)):
            cells.append(word.ljust(width) if j < left else word.rjust(width))
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def ellipsis(text: object, width: int = 24) -> str:
    """Return `text` on one line, cut to `width` characters."""
    words = " ".join(str(text).split())
    return words if len(words) <= width else words[: width - 1] + "…"


class Table(NotebookResult):
    """Named columns of equal length.

    Parameters
    ----------
    columns : mapping of str to sequence
        The columns, in order.

    Examples
    --------
    >>> t = Table({"class": ["cat", "dog"], "delta": [1.0, 0.948]})
    >>> print(t)
    class  delta
    cat     1.00
    dog     0.95
    >>> t["delta"], len(t)
    ([1.0, 0.948], 2)
    """

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        self._columns = {
            name: [_to_python_scalar(v) for v in c] for name, c in columns.items()
        }
        if len({len(values) for values in self._columns.values()}) > 1:
            raise ValueError("the columns of a Table must have one length.")

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), []))

    def __getitem__(self, name: str) -> list[Any]:
        return self._columns[name]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self._columns)

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict per row."""
        return [dict(zip(self.columns, row, strict=True)) for row in self._iter_rows()]

    def _iter_rows(self) -> Iterator[tuple[Any, ...]]:
        return zip(*self._columns.values(), strict=True)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Give the rows, each a dict: what ``pandas.DataFrame(table)`` is made of."""
        return iter(self.rows())

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns as lists."""
        return {name: list(values) for name, values in self._columns.items()}

    def to_arrow(self) -> Any:
        """Return a ``pyarrow.Table``."""
        pa = import_optional("pyarrow", CLI_EXTRA)
        return pa.table(
            {name: _strings_if_mixed(values) for name, values in self._columns.items()}
        )

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Give the columns to whoever reads Arrow: ``pl.DataFrame(table)``, ``pa.table(table)``.

        This is Arrow's PyCapsule interface; nothing is copied on the way.
        """
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any:
        """Give the columns by the dataframe interchange protocol, which plotting libraries read."""
        return self.to_arrow().__dataframe__(nan_as_null, allow_copy)

    def to_frame(self) -> Any:
        """Return a pandas ``DataFrame`` (needs pandas)."""
        return import_optional("pandas", "pandas").DataFrame(self._columns)

    def to_csv(self, path: StrPath | None = None) -> str:
        """Return the table as CSV with all digits, empty where there is no number.

        With a `path` it is written there too: whole, or not at all.

        Examples
        --------
        >>> print(Table({"class": ["cat, big"], "p": [1 / 3]}).to_csv(), end="")
        class,p
        "cat, big",0.3333333333333333
        """
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        for row in self._iter_rows():
            writer.writerow([_csv_cell(value) for value in row])
        content = text.getvalue()
        if path is not None:
            write_text(path, content)
        return content

    def to_latex(
        self,
        path: StrPath | None = None,
        *,
        caption: str = "",
        label: str = "",
        digits: int = 3,
        formats: Mapping[str, str] | None = None,
    ) -> str:
        r"""Return the table for a paper, in LaTeX with the rules of the package booktabs.

        Numbers of a column have the same decimals, as many as show about `digits` digits of a
        typical one; columns of p-values are written as such.

        Parameters
        ----------
        path : str or path, optional
            Where it is written too: whole, or not at all.
        caption, label : str
            In LaTeX, as they stand; with either the table floats (``\begin{table}``).
        digits : int
            Digits of a typical number.
        formats : mapping of column to format, optional
            Such as ``{"gamma": ".2f", "share": ".1%"}``; ``"p"`` is a p-value.

        Examples
        --------
        >>> t = Table({"class": ["R&D", "dog"], "tau": [-0.5, 0.948], "pvalue": [1e-7, 0.034]})
        >>> print(t.to_latex(), end="")
        \begin{tabular}{lrr}
        \toprule
        class & tau & pvalue \\
        \midrule
        R\&D & $-0.50$ & $1.0 \times 10^{-7}$ \\
        dog & 0.95 & 0.034 \\
        \bottomrule
        \end{tabular}
        """
        heads = [escape_latex(name.replace("_", " ")) for name in self.columns]
        sides = ""
        cells = []
        for name, values in self._columns.items():
            usual = "p" if is_pvalue_column(name) else ""
            form = usual if formats is None else formats.get(name, usual)
            cells.append(_latex_column_cells(values, form, digits))
            sides += "l" if has_non_numbers(values) else "r"
        rows = [heads, *zip(*cells, strict=True)]
        text = latex_table(rows, sides, caption=caption, label=label)
        if path is not None:
            write_text(path, text)
        return text

    def __str__(self) -> str:
        rows = [[_text_cell(value) for value in row] for row in self._iter_rows()]
        return align_columns([self.columns, *rows])

    def __repr__(self) -> str:
        return f"<Table of {len(self)} rows: {', '.join(self.columns)}>"


def _to_python_scalar(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _text_cell(value: Any) -> str:
    return format_number(value) if isinstance(value, float) else ellipsis(value)


def _csv_cell(value: Any) -> Any:
    is_nan = isinstance(value, float) and math.isnan(value)
    return "" if value is None or is_nan else value


def _strings_if_mixed(values: list[Any]) -> list[Any]:
    """Return words and numbers in one column (class labels may be both) all as words."""
    kinds = {type(value) for value in values if value is not None}
    if str in kinds and len(kinds) > 1:
        return [str(value) for value in values]
    return values


LATEX = {
    **{letter: "\\" + letter for letter in "&%$#_{}"},
    **{
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
    },
    **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"},
    **{"−": "$-$", "≤": r"$\le$", "×": r"$\times$"},
}
"""What LaTeX would read as a command, or print as something else."""


def escape_latex(text: object) -> str:
    r"""Return words that LaTeX prints as they are, on one line.

    Examples
    --------
    >>> print(escape_latex("50 % of {a_b} & more"))
    50 \% of \{a\_b\} \& more
    """
    words = " ".join(str(text).split())
    return "".join(
        LATEX.get(letter, letter) for letter in words if letter.isprintable()
    )


def latex_pvalue(pvalue: float, name: str = "") -> str:
    r"""Return a p-value, after its `name` if given; a dash where there is none.

    Examples
    --------
    >>> print(latex_pvalue(0.0341), latex_pvalue(2.14e-5), latex_pvalue(0.0, "p"))
    0.034 $2.1 \times 10^{-5}$ $p < 10^{-300}$
    """
    if math.isnan(pvalue):
        return "--"
    if pvalue < MIN_PRINTED_PVALUE:
        relation = "<"
        number = "10^{-300}"
    elif pvalue < 0.0001:
        relation = "="
        number = _latex_scientific(pvalue, 2)
    else:
        relation = "="
        number = f"{pvalue:.2g}"
    if name:
        return f"${name} {relation} {number}$"
    if relation == "<":
        return f"${relation} {number}$"
    return number if pvalue >= 0.0001 else f"${number}$"


def _latex_scientific(value: float, digits: int) -> str:
    """Return a number as a power of ten, without the dollars of formulas."""
    factor, exponent = f"{value:.{digits - 1}e}".split("e")
    return rf"{factor} \times 10^{{{int(exponent)}}}"


def latex_table(
    rows: Sequence[Iterable[str]], sides: str, *, caption: str = "", label: str = ""
) -> str:
    """Return cells that are LaTeX already as a table, heads first; it floats with either word."""
    heads, *others = rows
    lines = [rf"\begin{{tabular}}{{{sides}}}", r"\toprule"]
    lines += [_latex_row(heads), r"\midrule"]
    lines += [_latex_row(row) for row in others]
    lines += [r"\bottomrule", r"\end{tabular}"]
    if caption or label:
        above = [r"\begin{table}", r"\centering"]
        if caption:
            above.append(rf"\caption{{{caption}}}")
        if label:
            above.append(rf"\label{{{label}}}")
        lines = [*above, *lines, r"\end{table}"]
    return "\n".join(lines) + "\n"


def _latex_row(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _latex_column_cells(values: list[Any], form: str, digits: int) -> list[str]:
    """Return the cells of a column, its numbers with the same decimals."""
    if not form:
        sizes = [
            abs(v)
            for v in values
            if isinstance(v, float) and math.isfinite(v) and v != 0.0
        ]
        typical = float(np.median(sizes)) if sizes else 1.0
        form = f".{_count_decimals(typical, digits)}f" if 1e-4 <= typical < 1e7 else "e"
    return [_latex_cell(value, form, digits) for value in values]


def _latex_cell(value: Any, form: str, digits: int) -> str:
    if value is None:
        return ""
    if not _is_number(value):
        return escape_latex(value)
    if math.isnan(value):
        return "--"
    if math.isinf(value):
        return r"$\infty$" if value > 0 else r"$-\infty$"
    if form == "p":
        return latex_pvalue(value)
    if isinstance(value, int):
        number = str(value)
    elif form == "e":
        return "0" if value == 0.0 else f"${_latex_scientific(value, digits)}$"
    else:
        number = escape_latex(format(value + 0.0, form))  # + 0.0 turns -0.0 into 0.0
    # outside of formulas LaTeX prints a hyphen, which is shorter than a minus
    return f"${number}$" if number.startswith("-") else number


def is_pvalue_column(name: str) -> bool:
    """Whether a column holds p-values, by its name."""
    return name.split("_")[-1] in ("p", "pvalue", "adjusted")


def has_non_numbers(values: list[Any]) -> bool:
    """Whether a column holds anything but numbers."""
    return any(value is not None and not _is_number(value) for value in values)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


MAX_CELL_LETTERS = 120
"""Letters of a value in the table of a small result: a line of a notebook."""


class SmallResult:
    """Base of results of a few numbers, which a notebook shows as a table of names and values."""

    def _repr_html_(self) -> str:
        content: dict[str, Any] = self.to_dict()  # type: ignore[attr-defined]
        rows = []
        for name, value in content.items():
            cells = f"<th>{escape(name)}</th><td>{escape(_cell_text(name, value))}</td>"
            rows.append(f'<tr style="text-align: left">{cells}</tr>')
        title = f"<caption>{escape(type(self).__name__)}</caption>"
        return f"<table>{title}<tbody>{''.join(rows)}</tbody></table>"


def _cell_text(name: str, value: Any) -> str:
    """Return a value as people read it: few digits, a p-value never as 0."""
    if value is None or value == "":
        return "-"
    if isinstance(value, float):
        return (
            pvalue_text(value).without_equals
            if name == "pvalue"
            else format_number(value, 4)
        )
    return ellipsis(str(value), MAX_CELL_LETTERS)
