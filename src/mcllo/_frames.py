"""Any table or column -> NumPy, with the column names where there are any.

Frames (pandas, polars, pyarrow and whatever else narwhals knows) are recognised by narwhals, which
is imported only when the input is neither an array nor a list.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .exceptions import InputError

Array = NDArray[Any]


def as_matrix(
    table: Any, name: str, columns: Sequence[Hashable] | None = None
) -> tuple[Array, list[str] | None]:
    """Return the values of `table` and its column names (None for an array).

    With `columns`, a frame gives those columns in that order; an array is returned whole.
    """
    frame = _as_frame(table)
    if frame is None:
        return _numeric(_to_array(table, name), name), None
    names = [str(column) for column in frame.columns]
    duplicate = _first_duplicate(names)
    if duplicate is not None:
        raise InputError(f"column names must be distinct; {name} has {duplicate!r} twice. Rename one.")
    if columns is not None:
        names = _choose(names, columns, name)
        frame = frame.select([frame.columns[i] for i in _positions(frame.columns, names)])
    for column, dtype in frame.schema.items():
        if not dtype.is_numeric():
            raise InputError(
                f"{name} must hold numbers only; column {str(column)!r} is {dtype}. "
                "Choose the probability columns with classes=."
            )
    return np.asarray(frame.to_numpy()), names


def as_column(values: Any, name: str) -> Array:
    """Return labels or weights as an array: one-dimensional, or two-dimensional for one-hot."""
    frame = _as_frame(values)
    if frame is not None:
        return np.asarray(frame.to_numpy())
    series = _as_series(values)
    if series is not None:
        return np.asarray(series.to_list() if _is_nominal(series) else series.to_numpy())
    return _to_array(values, name)


def _as_frame(values: Any) -> Any:
    """Return a narwhals DataFrame, or None when `values` is not a frame."""
    if isinstance(values, (np.ndarray, list, tuple)):
        return None
    import narwhals as nw

    frame = nw.from_native(values, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def _as_series(values: Any) -> Any:
    """Return a narwhals Series, or None when `values` is not one."""
    if isinstance(values, (np.ndarray, list, tuple)):
        return None
    import narwhals as nw

    series = nw.from_native(values, series_only=True, pass_through=True)
    return series if isinstance(series, nw.Series) else None


def _is_nominal(series: Any) -> bool:
    """Whether a series holds words: those go through Python so that nulls stay None."""
    return not (series.dtype.is_numeric() or str(series.dtype) == "Boolean")


def _to_array(values: Any, name: str) -> Array:
    try:
        return np.asarray(values)
    except (ValueError, TypeError):
        raise InputError(f"{name} must be a rectangular table; its rows differ in length.") from None


def _numeric(array: Array, name: str) -> Array:
    if array.dtype.kind in "fiub":
        return array
    try:
        return array.astype(np.float64)
    except (ValueError, TypeError):
        raise InputError(
            f"{name} must hold numbers; got values such as {_first_word(array)!r}. "
            "If probs and y are swapped, call with (probs, y)."
        ) from None


def _first_word(array: Array) -> str:
    for value in array.ravel()[:1000]:
        try:
            float(value)
        except (ValueError, TypeError):
            return str(value)
    return str(array.dtype)


def _choose(names: list[str], wanted: Sequence[Hashable], name: str) -> list[str]:
    chosen = [str(column) for column in wanted]
    for column in chosen:
        if column not in names:
            raise InputError(
                f"{name} has no column {column!r}; {did_you_mean(column, names)}"
            )
    return chosen


def _positions(columns: Sequence[Any], names: list[str]) -> list[int]:
    where = {str(column): i for i, column in enumerate(columns)}
    return [where[name] for name in names]


def _first_duplicate(names: Sequence[Hashable]) -> Hashable | None:
    seen: set[Hashable] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def did_you_mean(word: object, known: Sequence[object]) -> str:
    """Return ``did you mean 'truck'?``, or the list of what is known."""
    import difflib

    close = difflib.get_close_matches(str(word), [str(k) for k in known], n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"it has {shorten(known)}."


def shorten(items: Sequence[object], most: int = 12) -> str:
    """Return a list as text, its middle left out when it is long."""
    words = [repr(item) for item in items]
    if len(words) > most:
        words = [*words[: most - 2], "...", words[-1]]
    return "[" + ", ".join(words) + "]"
