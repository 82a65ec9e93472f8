"""Numbers as people read them, the only place that rounds; and `Table`, a few named columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

SMALLEST = 1e-300


class PWords(NamedTuple):
    """A p-value in words: ``=``, ``<`` or ``<=``, and the number."""

    relation: str
    number: str

    def __str__(self) -> str:
        return f"{self.relation} {self.number}".strip()

    @property
    def bare(self) -> str:
        """The number, with its relation only where that is not ``=``."""
        return self.number if self.relation == "=" else str(self)


PStyle = Callable[..., PWords]
"""`p_words`, or it with ``typeset=True``."""


def p_words(pvalue: float, *, bound: bool = False, typeset: bool = False) -> PWords:
    """Return the relation and the number of a p-value; never ``= 0``. NaN is ``not available``.

    A `bound` is at most that large; `typeset` writes as printers do, with ``≤`` and ``× 10⁻⁷``.

    Examples
    --------
    >>> tuple(p_words(0.03412)), tuple(p_words(0.0)), str(p_words(2.134e-5, bound=True))
    (('=', '0.034'), ('<', '1e-300'), '<= 2.1e-05')
    >>> str(p_words(2.5e-7, typeset=True)), p_words(1e-20, bound=True, typeset=True).bare
    ('= 2.5 × 10⁻⁷', '≤ 10⁻²⁰')
    """
    if math.isnan(pvalue):
        return PWords("", "not available")
    tiny = pvalue < SMALLEST
    relation = "<" if tiny else "=" if not bound else "≤" if typeset else "<="
    value = max(pvalue, SMALLEST)
    if value >= 0.0001:
        return PWords(relation, f"{value:.2g}")
    if not typeset:
        return PWords(relation, f"{value:.0e}" if tiny else f"{value:.1e}")
    front, power = f"{value:.1e}".split("e-")
    raised = "10⁻" + str(int(power)).translate(_RAISED)
    return PWords(relation, raised if front == "1.0" else f"{front} × {raised}")


_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def format_p(pvalue: float) -> str:
    """Return ``= 0.034``, ``= 0.0005``, ``= 2.1e-05`` or ``< 1e-300``; never ``= 0``."""
    return str(p_words(pvalue))


def format_number(value: float, digits: int = 3) -> str:
    """Return about `digits` significant digits, two decimals near 1, an exponent only when far."""
    if math.isnan(value):
        return "-"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    size = abs(value)
    if size != 0.0 and not 1e-4 <= size < 1e7:
        return f"{value:.{digits - 1}g}"
    decimals = max(0, digits - 1 - (math.floor(math.log10(size)) if size >= 1.0 else 0))
    if 0.0 < size < 0.1:
        decimals = digits - 2 - math.floor(math.log10(size))
    return f"{value + 0.0:.{decimals}f}"  # + 0.0 turns -0.0 into 0.0


def format_interval(low: float, high: float) -> str:
    """Return ``[0.51, 0.60]``, or ``[-, -]`` when an end is not known."""
    if math.isnan(low) or math.isnan(high):
        return "[-, -]"
    return f"[{format_number(low)}, {format_number(high)}]"


def format_count(n: float) -> str:
    """Return a count with thousands separators: ``10,000``."""
    return f"{n:,.0f}"


def listed(names: Sequence[str]) -> str:
    """Return ``a, b and c``, ``a and b`` or ``a``."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def align(rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return rows of words as columns: the first `left` flush left, the others flush right."""
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            word.ljust(width) if j < left else word.rjust(width)
            for j, (word, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def ellipsis(text: object, width: int = 24) -> str:
    """Return `text` on one line, cut to `width` characters."""
    words = " ".join(str(text).split())
    return words if len(words) <= width else words[: width - 1] + "…"


class Table:
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
            name: [value.item() if isinstance(value, np.generic) else value for value in values]
            for name, values in columns.items()
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
        rows = zip(*self._columns.values(), strict=True)
        return [dict(zip(self.columns, row, strict=True)) for row in rows]

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns as lists."""
        return {name: list(values) for name, values in self._columns.items()}

    def to_arrow(self) -> Any:
        """Return a ``pyarrow.Table``."""
        import pyarrow as pa

        return pa.table({name: _one_type(values) for name, values in self._columns.items()})

    def to_frame(self) -> Any:
        """Return a pandas ``DataFrame`` (needs pandas; `to_arrow` needs nothing more)."""
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("to_frame() needs pandas; install it or use to_arrow().") from None
        return pd.DataFrame(self._columns)

    def __str__(self) -> str:
        words = [
            [format_number(v) if isinstance(v, float) else ellipsis(v) for v in row]
            for row in zip(*self._columns.values(), strict=True)
        ]
        return align([self.columns, *words])

    def __repr__(self) -> str:
        return f"<Table of {len(self)} rows: {', '.join(self.columns)}>"


def _one_type(values: list[Any]) -> list[Any]:
    """Return words and numbers in one column (class labels may be both) all as words."""
    kinds = {type(value) for value in values if value is not None}
    return [str(v) for v in values] if str in kinds and len(kinds) > 1 else values
