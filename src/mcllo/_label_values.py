"""Labels as people write them -> values of one plain type: all bool, all int or all str.

Missing labels are refused: None, NaN, pandas' NA and NaT, masked entries. Whole floats are integers
(a column of integers that once held a gap is read back as floats); bytes are text; a mixture is
text. Words are gathered in order of appearance, without a sort, so that only the distinct ones are
looked at one by one.
"""

from __future__ import annotations

from collections.abc import Hashable
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .exceptions import InputError

Codes = NDArray[np.intp]

EXACT_WHOLE = 2.0**53  # above it a float does not say which integer it was


def label_values(labels: NDArray[Any]) -> tuple[NDArray[Any], Codes | None]:
    """Return values of one plain type and each row's place among them (None: row i is value i)."""
    kind = labels.dtype.kind
    if kind in "biu":
        return labels, None
    if kind == "f":
        return _whole(labels.astype(np.float64, copy=False), None), None
    if kind not in "OUS":
        raise InputError(
            f"y must hold words, integers or truth values; got {labels.dtype}. "
            "Convert the labels to text."
        )
    seen: dict[Hashable, int] = {}
    try:
        place = np.array([seen.setdefault(v, len(seen)) for v in labels.tolist()], dtype=np.intp)
    except TypeError:
        raise InputError(
            "y must hold one plain label per row; got lists or other containers in it."
        ) from None
    return _one_type(list(seen), place), place


def plain_label(label: Any) -> Any:
    """Return a Python scalar for a NumPy or Arrow one, text for bytes, an int for a whole float."""
    if isinstance(label, np.generic):
        label = label.item()
    elif hasattr(label, "as_py"):
        label = label.as_py()
    if isinstance(label, bytes):
        return label.decode("utf-8", "replace")
    return int(label) if isinstance(label, float) and label.is_integer() else label


def is_missing(value: Any) -> bool:
    """Whether `value` is None, NaN, pandas.NA or NaT (whose comparison has no truth value)."""
    return (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, (float, np.floating)) and bool(np.isnan(value)))
        or (isinstance(value, Decimal) and value.is_nan())
    )


def _one_type(values: list[Any], place: Codes) -> NDArray[Any]:
    for k, value in enumerate(values):
        if is_missing(value):
            raise _missing(_row_of(k, place))
    kinds = {type(value) for value in values}
    if all(issubclass(kind, (bool, np.bool_)) for kind in kinds):
        return np.array(values, dtype=bool)
    try:
        if all(issubclass(kind, (int, np.integer)) for kind in kinds):
            return np.array(values, dtype=np.int64)
        if all(issubclass(kind, (int, float, np.integer, np.floating, Decimal)) for kind in kinds):
            return _whole(np.array(values, dtype=np.float64), place)
    except OverflowError:
        pass  # integers beyond 64 bits are names
    return np.array([str(plain_label(value)) for value in values])


def _whole(labels: NDArray[Any], place: Codes | None) -> NDArray[np.int64]:
    missing = np.isnan(labels)
    if missing.any():
        raise _missing(_row_of(int(np.argmax(missing)), place))
    broken = (labels != np.floor(labels)) | (np.abs(labels) > EXACT_WHOLE)
    if broken.any():
        k = int(np.argmax(broken))
        row = _row_of(k, place)
        raise InputError(
            f"y must hold class labels; got y[{row}]={labels[k]:g}. "
            "If probs and y are swapped, call with (probs, y).",
            row=row,
        )
    return labels.astype(np.int64)


def _row_of(k: int, place: Codes | None) -> int:
    """Return the first row that holds value k."""
    return k if place is None else int(np.argmax(place == k))


def _missing(row: int) -> InputError:
    return InputError(f"every row needs a label; y[{row}] is missing. Drop those rows.", row=row)
