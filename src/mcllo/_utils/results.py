"""What every result shares: plain values for JSON, and the types of arrays.

====================  ========================================================================
`to_plain_python`     arrays, NumPy scalars, tuples, tables and results as plain Python values
`none_for_nonfinite`  the same with None for every number that is not finite (strict JSON)
`Result`              a base for frozen dataclasses: `to_dict` holds their fields in order
====================  ========================================================================
"""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


class Result:
    """Base of frozen results whose dictionary is their fields, in order.

    Fields named in `left_out` stay out of the dictionary; names in `added` (properties) follow the
    fields.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Found(Result):
    ...     value: float
    ...     where: tuple[int, ...]
    ...     rows: object = None
    ...     left_out = ("rows",)
    >>> Found(float("nan"), (1, 2)).to_dict()
    {'value': None, 'where': [1, 2]}
    """

    left_out: ClassVar[tuple[str, ...]] = ()
    added: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, ready for strict JSON."""
        own = [field.name for field in fields(self)]  # type: ignore[arg-type]
        names = [name for name in own if name not in self.left_out]
        names += self.added
        return {name: none_for_nonfinite(getattr(self, name)) for name in names}


def to_plain_python(value: Any) -> Any:
    """Return plain Python values for arrays, NumPy scalars, tuples, tables and results.

    Examples
    --------
    >>> import numpy as np
    >>> to_plain_python({"a": np.arange(2), "b": (np.float64(0.5), "x")})
    {'a': [0, 1], 'b': [0.5, 'x']}
    """
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key: to_plain_python(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, range)):
        return [to_plain_python(item) for item in value]
    rows = getattr(value, "rows", None)
    if callable(rows):
        # a `Table`: a list of its rows reads better in JSON than a list for each column
        return to_plain_python(rows())
    if hasattr(value, "to_dict"):
        return value.to_dict()
    return value


def none_for_nonfinite(value: Any) -> Any:
    """Return plain values with None in place of every number that is not finite (strict JSON)."""
    value = to_plain_python(value)
    if isinstance(value, dict):
        return {key: none_for_nonfinite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [none_for_nonfinite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no NaN and no infinity
    return value
