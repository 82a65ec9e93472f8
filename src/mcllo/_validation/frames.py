"""Any table or column -> NumPy, with the column names where there are any.

Frames (pandas, polars, pyarrow and whatever else narwhals knows) are recognised by narwhals, which
is imported only when the input is neither an array nor a list. What NumPy would read wrongly in
silence is caught here: masked entries become missing ones, text is never parsed as numbers, a NaN
among words stays a NaN, and containers that are not arrays are refused by name. A tensor of PyTorch
leaves its graph and its device.

Rows belong together by position. pandas keeps an index, which may say otherwise
(`check_row_indexes`):

==============================  ==============================================================
both indexes are equal          taken
the same rows, another order    refused: one of the two was sorted or shuffled by itself
other rows, one is 0 .. n-1     taken: an index that only counts says nothing, as of a frame made
                                from ``predict_proba`` beside labels that were split off
other rows, both say which      refused
==============================  ==============================================================
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._utils.formatting import ellipsis
from ..exceptions import LONGEST, Hint, InputError, show

Array = NDArray[Any]

MAX_DISTINCT_LABELS = 1000
"""Distinct labels above which they are hardly labels: a round number."""


def is_dask(value: Any) -> bool:
    """Whether `value` is a Dask collection; dask is not imported to find out."""
    if not hasattr(value, "__dask_graph__"):
        return False
    packages = {kind.__module__.partition(".")[0] for kind in type(value).__mro__}
    return not packages.isdisjoint(("dask", "dask_expr"))


def as_matrix(
    table: Any, name: str, columns: Sequence[Hashable] | None = None
) -> tuple[Array, list[str] | None]:
    """Return the values of `table` and its column names (None for an array).

    With `columns`, a frame gives those columns in that order; an array is returned whole.
    """
    frame = _as_frame(table, name)
    if frame is None:
        return as_numbers(_to_array(table, name), name), None
    names = [str(column) for column in frame.columns]
    duplicate = first_duplicate(names)
    if duplicate is not None:
        raise _repeated_column_error(duplicate, name)
    if columns is not None:
        chosen = _select_columns(names, columns, name)
        frame = frame[:, [names.index(column) for column in chosen]]
        names = chosen
    # column by column, so that the error can name it
    for column, dtype in frame.schema.items():
        if not dtype.is_numeric():
            raise InputError(
                "{argument} must hold numbers only; column {column} is {dtype}.",
                argument=name,
                column=column,
                remedy="Choose the probability columns with {classes}, or convert that one to "
                "numbers.",
                values={"column": show(column), "dtype": dtype},
            )
    return as_numbers(_frame_values(frame, name), name), names


def column_names(table: Any, name: str = "the frame") -> list[str] | None:
    """Return a frame's column names, or None for anything else."""
    frame = _as_frame(table, name)
    return None if frame is None else [str(column) for column in frame.columns]


def row_names(table: Any) -> list[Hashable] | None:
    """Return the index of a pandas-like frame as names of its rows; None where it only counts."""
    index = _pandas_index(table)
    if index is None or _is_default_index(index):
        return None
    return list(index.tolist())


def column_cells(table: Any, name: str = "the frame") -> dict[str, list[Any]]:
    """Return the columns of a frame as lists."""
    frame = _as_frame(table, name)
    assert frame is not None
    # by place: pandas' columns may be numbers, which would be taken for rows
    return {str(name): frame[:, k].to_list() for k, name in enumerate(frame.columns)}


def split_prefix(prefix: str) -> tuple[str, str]:
    """Return what stands before and after a class: of ``P(*)`` both, else all stands before.

    Examples
    --------
    >>> split_prefix("p_"), split_prefix("P(*)"), split_prefix("*_prob")
    (('p_', ''), ('P(', ')'), ('', '_prob'))
    """
    before, _, after = prefix.partition("*")
    return before, after


def column_of_label(prefix: str, label: object) -> str:
    """Return the name of a class's column."""
    before, after = split_prefix(prefix)
    return f"{before}{label}{after}"


def has_affixes(prefix: str, column: str) -> bool:
    """Whether a column's name has what stands before and after a class."""
    before, after = split_prefix(prefix)
    is_long_enough = len(column) >= len(before) + len(after)
    return is_long_enough and column.startswith(before) and column.endswith(after)


def label_of_column(prefix: str, column: str) -> str:
    """Return the class in a column's name, which has what stands before and after it."""
    before, after = split_prefix(prefix)
    return column.removeprefix(before).removesuffix(after)


def select_by_prefix(
    table: Any, prefix: str, columns: Sequence[Hashable] | None, name: str
) -> Any:
    """Return a frame of the columns that begin with `prefix`, their names without it.

    With `columns`, those alone. Examples: ``prob_cat, prob_dog, id`` -> ``cat, dog``.
    """
    import narwhals as nw

    frame = _as_frame(table, name)
    if frame is None:
        raise InputError(
            "{found} needs a frame whose columns have names.",
            argument="prefix",
            value=prefix,
            remedy="Name the columns of an array with {classes}.",
        )
    names = [str(column) for column in frame.columns]
    if columns is None:
        chosen = [
            column
            for column in names
            if has_affixes(prefix, column) and label_of_column(prefix, column)
        ]
    else:
        chosen = _select_columns(
            names, [column_of_label(prefix, column) for column in columns], name
        )
    if len(chosen) < 2:
        rule = (
            "stand before the class in the names of at least two columns of {columns}"
        )
        values = {"columns": shorten(names)}
        raise InputError(argument="prefix", rule=rule, value=prefix, values=values)
    own = frame[:, [names.index(column) for column in chosen]]
    short = [label_of_column(prefix, column) for column in chosen]
    new_names = dict(zip(own.columns, short, strict=True))
    renamed: nw.DataFrame[Any] = own.rename(new_names)
    return renamed.to_native()


def split_labels_from_tables(probs: Any, logits: Any, y: Any) -> tuple[Any, Any, Any]:
    """Return tables and labels, where `y` may name the column of a frame that holds them."""
    refuse_file_name(logits if probs is None else probs, y)
    if not isinstance(y, str):
        return probs, logits, y
    tables = [probs, logits]
    labels = None
    known: list[str] = []
    for k, table in enumerate(tables):
        names = [] if table is None else column_names(table) or []
        known = known or names
        if y in names:
            labels, tables[k] = split_column(table, y)
    if labels is None:
        message = "{argument} must name a column of the frame, or hold a label per row; got {value}"
        message += "; {hint}" if known else "."
        values = {"hint": did_you_mean(y, known)}
        raise InputError(message, argument="y", value=y, values=values)
    return tables[0], tables[1], labels


def split_column(table: Any, column: str) -> tuple[Any, Any]:
    """Return a column of a frame, and the frame without it, both as they were made."""
    frame = _as_frame(table, "the frame")
    names = [str(name) for name in frame.columns]
    chosen = [k for k, name in enumerate(names) if name != column]
    values = frame[:, names.index(column)]
    rest = frame[:, chosen]
    return values.to_native(), rest.to_native()


def column_or_table(values: Any, name: str) -> Array:
    """Return labels or weights as an array: one-dimensional, or two-dimensional for one-hot."""
    frame = _as_frame(values, name)
    if frame is not None and len(frame.columns) != 1:
        return _frame_values(frame, name)
    series = _as_series(values) if frame is None else frame[:, 0]
    if series is None:
        array = _to_array(values, name)
        is_single_column = array.ndim == 2 and array.shape[1] == 1
        return array[:, 0] if is_single_column else array
    if series.dtype.is_numeric():
        return _frame_values(series, name)
    # as objects: `np.array` would turn a NaN among words into the word "nan"
    objects = np.empty(len(series), dtype=object)
    objects[:] = series.to_list()
    return objects


def check_row_indexes(**given: Any) -> None:
    """Refuse tables and columns whose pandas indexes say that their rows do not belong together."""
    seen: dict[str, Any] = {}
    for name, values in given.items():
        index = _pandas_index(values)
        if index is None:
            continue
        for other, earlier in seen.items():
            _check_same_index(other, earlier, name, index)
        seen[name] = index


def _pandas_index(values: Any) -> Any:
    """Return the index of a pandas-like frame or series, else None."""
    if values is None or isinstance(values, (np.ndarray, list, tuple)):
        return None
    import narwhals.dependencies as known

    is_frame = known.is_pandas_like_dataframe(values)
    is_series = known.is_pandas_like_series(values)
    return values.index if is_frame or is_series else None


def _check_same_index(first: str, one: Any, second: str, two: Any) -> None:
    """Refuse two indexes of one length that name other rows, or the same in another order."""
    if len(one) != len(two) or one.equals(two):
        return
    same_levels = one.nlevels == two.nlevels
    same = same_levels and bool(one.isin(two).all() and two.isin(one).all())
    if not same and (_is_default_index(one) or _is_default_index(two)):
        return
    pairs = enumerate(zip(one, two, strict=True))
    row = next((i for i, (a, b) in pairs if a != b), None)
    if row is None:  # equal values of unlike types
        return
    by_index = f"{second}.loc[{first}.index] to go by the index, or "
    raise InputError(
        f"{{argument}} must have the index of {first}; row {row} is {{name}} in {first} and "
        f"{{other_name}} in {second}.",
        argument=second,
        values={"name": show(one[row]), "other_name": show(two[row])},
        remedy=f"Pass {by_index if same and one.is_unique else ''}{second}.to_numpy() if the rows "
        "are in the same order.",
    )


def _is_default_index(index: Any) -> bool:
    """Whether an index is 0 .. n-1."""
    values = np.asarray(index)
    return values.dtype.kind in "iu" and np.array_equal(values, np.arange(len(values)))


def n_columns(values: Any) -> int:
    """Return the number of columns as far as it shows without reading the values, else 0."""
    shape = getattr(values, "shape", None)
    if isinstance(shape, tuple):
        if len(shape) == 2:
            return int(shape[1])
        return 1 if len(shape) == 1 else 0
    if not isinstance(values, (list, tuple)) or not values:
        return (
            1 if hasattr(type(values), "__array__") else 0
        )  # an Arrow column has no shape
    first_row = values[0]
    if isinstance(first_row, np.ndarray):
        return len(first_row) if first_row.ndim else 1
    return len(first_row) if isinstance(first_row, (list, tuple)) else 1


def as_numbers(array: Array, name: str) -> Array:
    """Return `array` as float, integer or bool of at most 64 bits; refuse text and other kinds."""
    kind = array.dtype.kind
    if kind in "iub" or (kind == "f" and array.dtype.itemsize <= 8):
        return array
    try:
        # NumPy would parse words as numbers: "1e3" in an array of objects becomes 1000
        if kind not in "fO" or any(isinstance(v, (str, bytes)) for v in array.flat):
            raise TypeError
        return array.astype(np.float64)
    except (ValueError, TypeError, ArithmeticError):
        remedy = (
            "Convert them to floats; if probs and y are swapped, call with (probs, y)."
        )
        raise InputError(
            argument=name,
            rule="hold numbers",
            found=f"values such as {first_non_number(array)!r}",
            remedy=remedy if name == "probs" else "Convert them to floats.",
        ) from None


def _as_frame(values: Any, name: str) -> Any:
    """Return a narwhals DataFrame, or None when `values` is not a frame."""
    if isinstance(values, (np.ndarray, list, tuple)):
        return None
    import narwhals as nw

    try:
        frame = nw.from_native(values, eager_only=True, pass_through=True)
        if isinstance(frame, nw.DataFrame):
            frame.columns  # noqa: B018 - repeated names are found on the first look
            return frame
    except nw.exceptions.DuplicateError:
        native = getattr(values, "column_names", None) or list(
            getattr(values, "columns", [])
        )
        raise _repeated_column_error(first_duplicate(map(str, native)), name) from None
    if any(hasattr(type(values), word) for word in ("columns", "column_names")):
        raise _unreadable_error(
            values, name
        )  # read as an array it would lose its column names
    return None


def _as_series(values: Any) -> Any:
    """Return a narwhals Series, or None when `values` is not one."""
    if isinstance(values, (np.ndarray, list, tuple)):
        return None
    import narwhals as nw

    series = nw.from_native(values, series_only=True, pass_through=True)
    return series if isinstance(series, nw.Series) else None


def _to_array(values: Any, name: str) -> Array:
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        # `np.asarray` would show what lies below the mask
        objects = np.array(values.data, dtype=object)
        objects[np.ma.getmaskarray(values)] = None
        return objects
    if hasattr(values, "detach") and hasattr(values, "cpu"):  # a tensor of PyTorch
        values = values.detach().cpu()
        if str(values.dtype) == "torch.bfloat16":  # NumPy has no such type
            values = values.float()
    is_list = isinstance(values, (list, tuple))
    if is_list and values and all(type(v) is str for v in values):
        return np.array(
            values, dtype=object
        )  # else each word takes the room of the longest
    has_array = is_list or hasattr(type(values), "__array__")
    if not has_array and hasattr(type(values), "__dlpack__"):
        return _from_dlpack(values, name)
    try:
        array = np.asarray(values)
    except Exception:  # other libraries' arrays raise what they like
        if is_list:
            rule = "{argument} must be a rectangular table; its rows differ in length or kind."
            raise InputError(rule, argument=name) from None
        raise _unreadable_error(values, name) from None
    if array.ndim == 0:
        raise _unreadable_error(values, name)
    if array.dtype.kind in "US" and is_list:
        return np.array(
            values, dtype=object
        )  # else NumPy writes a NaN or 1 among words as text
    return array


def _from_dlpack(values: Any, name: str) -> Array:
    """Return an array that speaks the exchange protocol alone, from a device if it must."""
    try:
        return np.from_dlpack(values)
    except Exception:  # on a device, or a kind of number that NumPy does not have
        try:
            return np.from_dlpack(values, device="cpu", copy=True)  # NumPy >= 2.1
        except Exception:
            raise _unreadable_error(values, name) from None


def _frame_values(data: Any, name: str) -> Array:
    try:
        return np.asarray(data.to_numpy())
    except Exception:  # say, 128-bit integers
        rule = "{argument} must hold numbers that NumPy knows; convert its columns to floats."
        raise InputError(rule, argument=name) from None


def _unreadable_error(values: Any, name: str) -> InputError:
    known = [
        verb for verb in ("toarray", "collect", "compute") if hasattr(values, verb)
    ]
    return InputError(
        argument=name,
        rule="be an array, a list or an eager frame",
        found=type(values).__name__,
        remedy=f"Pass {name}.{known[0]}()." if known else None,
    )


def first_non_number(array: Array) -> str:
    """Return the first entry that is not a number, as text on one line."""
    for value in array.flat:
        if array.dtype.kind != "O" or isinstance(value, (str, bytes)):
            return ellipsis(value, LONGEST)
        try:
            float(value)
        except (ValueError, TypeError, ArithmeticError):
            return ellipsis(value, LONGEST)
    return str(array.dtype)


def _select_columns(
    names: list[str], wanted: Sequence[Hashable], name: str
) -> list[str]:
    any_case = {column.lower(): column for column in names}
    chosen = []
    for column in wanted:
        text = str(column)
        if isinstance(column, (bool, np.bool_)) and text not in names:
            text = any_case.get(text.lower(), text)  # True also finds "true" and "TRUE"
        if text not in names:
            values = {"column": show(text), "hint": did_you_mean(text, names)}
            message = "{argument} has no column {column}; {hint}"
            raise InputError(message, argument=name, values=values)
        chosen.append(text)
    return chosen


def first_duplicate(names: Iterable[str]) -> str | None:
    """Return the first name that occurs a second time."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _repeated_column_error(column: str | None, name: str) -> InputError:
    return InputError(
        f"column names must be distinct; {name} has {show(column)} twice. Rename one."
    )


def did_you_mean(
    word: object, known: Sequence[object], otherwise: str = "it has"
) -> str:
    """Return ``did you mean 'truck'?``, or, after `otherwise`, the list of what is known."""
    import difflib

    words = [str(k) for k in known]
    close = difflib.get_close_matches(str(word), words, n=1, cutoff=0.6)
    if close:
        return f"did you mean {show(close[0])}?"
    return f"{otherwise} {shorten(known)}."


def prefix_hint(columns: Sequence[str], labels: Sequence[str]) -> Hint | None:
    """Return a remedy when every label is a column's name but for what stands before or after it.

    Examples
    --------
    >>> print(prefix_hint(["p_cat", "p_dog"], ["cat", "dog"]))
    The columns are labels with 'p_' before them; pass prefix='p_'
    >>> print(prefix_hint(["P(dry)", "P(wet)"], ["dry", "wet"]))
    The columns are labels with 'P(' before and ')' after them; pass prefix='P(*)'
    """
    before, after = find_common_affixes(columns, labels)
    if before and after:
        says = "The columns are labels with {before!r} before and {after!r} after them; pass "
        says += "{prefix:{pattern!r}}"
        pattern = f"{before}*{after}"
        return Hint(says, {"before": before, "after": after, "pattern": pattern})
    if before:
        says = "The columns are labels with {before!r} before them; pass {prefix:{before!r}}"
        return Hint(says, {"before": before})
    if after:
        says = "The columns are labels with {after!r} after them; pass {prefix:{pattern!r}}"
        return Hint(says, {"after": after, "pattern": f"*{after}"})
    return None


def find_common_affixes(
    columns: Sequence[str], labels: Sequence[str]
) -> tuple[str, str]:
    """Return what stands before and after every label in the columns' names; ("", "") if none."""
    if not labels or len(labels) > MAX_DISTINCT_LABELS or not labels[0]:
        return "", ""
    known = set(columns)
    # the longest label first: a short one may occur in many names by chance
    longest = max(labels, key=len)
    for column in columns:
        before, found, after = column.partition(longest)
        if not found or not (before or after):
            continue
        if all(f"{before}{label}{after}" in known for label in labels):
            return before, after
    return "", ""


def refuse_file_name(table: Any, label: Any) -> None:
    """Refuse the name of a file in the place of its rows."""
    if isinstance(table, (str, os.PathLike)):
        named = label if isinstance(label, str) else "label"
        raise InputError(
            argument="probs",
            rule="be a table",
            found="the name of a file",
            remedy="Read it first: mcllo.read_predictions({path!r}, label={column!r}).",
            values={"path": os.fspath(table), "column": named},
        )


def extra_column_hint(
    columns: Sequence[str], labels: Sequence[str], suspects: Sequence[str]
) -> Hint | None:
    """Return how to leave out a column that no label names, if one is among the suspects.

    Examples
    --------
    >>> print(extra_column_hint(["id", "cat", "dog"], ["dog", "cat"], ["id"]))
    If 'id' is not a class, pass classes=['cat', 'dog']
    """
    known = set(labels)
    classes = [column for column in columns if column in known]
    strays = [column for column in suspects if column not in known]
    if len(classes) < 2 or not strays or len(known) > MAX_DISTINCT_LABELS:
        return None
    says = "If {stray!r} is not a class, pass {classes:{known}}"
    if len(classes) > 12:  # more would fill lines
        says = "If {stray!r} is not a class, choose the columns that are with {classes}"
    return Hint(says, {"stray": strays[0], "known": classes})


def shorten(items: Sequence[object], most: int = 12) -> str:
    """Return a list as text, its middle left out when it is long."""
    words = [show(item) for item in items]
    if len(words) > most:
        words = [*words[: most - 2], "...", words[-1]]
    return "[" + ", ".join(words) + "]"
