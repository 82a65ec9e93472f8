"""`Table`: a few named columns of equal length, for results that people read or put in a frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ._text import align, ellipsis, format_number


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
        self._columns = {name: [_plain(v) for v in values] for name, values in columns.items()}
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
        names = self.columns
        return [
            dict(zip(names, row, strict=True)) for row in zip(*self._columns.values(), strict=True)
        ]

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
        head = [list(self.columns)]
        return align(head + [[_word(v) for v in row.values()] for row in self.rows()])

    def __repr__(self) -> str:
        return f"<Table of {len(self)} rows: {', '.join(self.columns)}>"


def _word(value: Any) -> str:
    return format_number(value) if isinstance(value, float) else ellipsis(value)


def _one_type(values: list[Any]) -> list[Any]:
    """Return words and numbers in one column (class labels may be both) all as words."""
    kinds = {type(value) for value in values if value is not None}
    return [str(v) for v in values] if str in kinds and len(kinds) > 1 else values


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
