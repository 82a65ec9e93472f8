"""Labels of any kind -> integer codes and the class labels they stand for.

``codes[i] = j`` says that row i belongs to column j of the probabilities. Which label belongs to
which column is taken, in this order, from `classes`, from the column names, from integers
``0 .. c-1``, or from the sorted distinct labels (scikit-learn's convention for ``predict_proba``).
Labels and classes are matched as text, so 1 and "1" are one class.

==================  ==========================================================================
labels of a column  become values of one plain type: all bool, all int or all str
whole floats        integers: a column of integers that once held a gap is read back as floats
bytes, a mixture    text
missing             refused: None, NaN, pandas' NA and NaT, masked entries
NUL at the end      refused, of labels and of classes: NumPy's arrays of words drop it, and two
                    classes would be one
very long words     refused: NumPy gives all words the room of the longest
==================  ==========================================================================

Words are gathered in order of appearance, without a sort, so that only the distinct ones are looked
at one by one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._utils.results import Codes
from ..exceptions import InputError, show
from .frames import (
    as_numbers,
    column_names,
    column_or_table,
    did_you_mean,
    extra_column_hint,
    first_duplicate,
    first_non_number,
    n_columns,
    prefix_hint,
    shorten,
)

Classes = tuple[Hashable, ...]

MAX_EXACT_INTEGER = 2.0**53
"""Above it a float does not say which integer it was."""
RESERVED_LABELS = ("auto", "all")
"""What ``baseline=`` may be beside a class: chosen by likelihood, or all of them."""
CLASS_RULE = "be a class"
"""The rule that a label breaks which is none of the classes."""
MAX_LABEL_LETTERS = 10_000
"""Of a label or a class: a round number, far above any name."""


def distinct_label_values(labels: NDArray[Any]) -> tuple[NDArray[Any], Codes | None]:
    """Return values of one plain type and each row's place among them (None: row i is value i)."""
    kind = labels.dtype.kind
    if kind in "biu":
        return labels, None
    if kind == "f":
        # a column of integers that once held a gap comes back as floats
        doubles = labels.astype(np.float64, copy=False)
        return _as_whole_numbers(doubles, None), None
    if kind not in "OUS":
        raise InputError(
            argument="y",
            rule="hold words, integers or truth values",
            found=str(labels.dtype),
            remedy="Convert the labels to text.",
        )
    place_of: dict[Hashable, int] = {}
    try:
        places = [
            place_of.setdefault(label, len(place_of)) for label in labels.tolist()
        ]
    except TypeError:
        rule = "hold one plain label per row"
        raise InputError(
            argument="y", rule=rule, found="lists or other containers in it"
        ) from None
    place = np.array(places, dtype=np.intp)
    return _convert_to_one_type(list(place_of), place), place


def plain_label(label: Any) -> Any:
    """Return a Python scalar for a NumPy or Arrow one, text for bytes, an int for a whole float."""
    if isinstance(label, np.generic):
        label = label.item()
    elif hasattr(label, "as_py"):
        label = label.as_py()
    if isinstance(label, bytes):
        return label.decode("utf-8", "replace")
    if isinstance(label, float) and label.is_integer():
        return int(label)
    return label


def is_missing(value: Any) -> bool:
    """Whether `value` is None, NaN, pandas.NA or NaT."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True  # by name: a comparison with pandas.NA has no truth value
    if isinstance(value, (float, np.floating)):
        return bool(np.isnan(value))
    return isinstance(value, Decimal) and value.is_nan()


def _convert_to_one_type(values: list[Any], place: Codes) -> NDArray[Any]:
    """Return distinct labels as truth values, integers or words; refuse what is none of these."""
    for k, value in enumerate(values):
        if is_missing(value):
            raise _missing_label_error(k, place)
    if _all_instances_of(values, (bool, np.bool_)):
        return np.array(values, dtype=bool)
    try:
        if _all_instances_of(values, (int, np.integer)):
            return np.array(values, dtype=np.int64)
        if _all_instances_of(values, (int, float, np.integer, np.floating, Decimal)):
            doubles = np.array(values, dtype=np.float64)
            return _as_whole_numbers(doubles, place)
    except OverflowError:
        pass  # integers beyond 64 bits are names
    words = [str(plain_label(value)) for value in values]
    for k, word in enumerate(words):
        fault = _find_word_fault(word)
        if fault is not None:
            rule = f"hold labels that {fault}"
            raise InputError(
                argument="y", rule=rule, value=word, row=_first_row_of_value(k, place)
            )
    longest = max(map(len, words), default=0)
    n_bytes = 4 * len(words) * longest  # NumPy gives each word the room of the longest
    if n_bytes > 1 << 28:  # 256 MB, a round number
        found = f"{len(words)} distinct ones of up to {longest} letters"
        remedy = "{swapped_labels}"
        raise InputError(
            argument="y", rule="hold a few labels", found=found, remedy=remedy
        )
    return np.array(words)


def _all_instances_of(values: list[Any], kinds: tuple[type, ...]) -> bool:
    return all(isinstance(value, kinds) for value in values)


def _find_word_fault(word: str) -> str | None:
    """Return the rule that a word breaks, if any."""
    if word.endswith("\0"):
        return "do not end in NUL"
    if len(word) > MAX_LABEL_LETTERS:
        return f"have at most {MAX_LABEL_LETTERS:,} letters"
    return None


def _as_whole_numbers(labels: NDArray[Any], place: Codes | None) -> NDArray[np.int64]:
    """Return floats as integers; refuse those that are none."""
    missing = np.isnan(labels)
    if missing.any():
        raise _missing_label_error(int(np.argmax(missing)), place)
    broken = (labels != np.floor(labels)) | (np.abs(labels) > MAX_EXACT_INTEGER)
    if broken.any():
        k = int(np.argmax(broken))
        raise InputError(
            argument="y",
            rule="hold class labels",
            value=float(labels[k]),
            row=_first_row_of_value(k, place),
            remedy="{swapped_labels}",
        )
    return labels.astype(np.int64)


def _first_row_of_value(k: int, place: Codes | None) -> int:
    """Return the first row that holds value k."""
    return k if place is None else int(np.argmax(place == k))


def _missing_label_error(k: int, place: Codes | None) -> InputError:
    message = "every row needs a label; {gap}."
    return InputError(
        message,
        argument="y",
        row=_first_row_of_value(k, place),
        remedy="{drop_unlabelled}",
    )


def encode_labels(
    y: Any, n_classes: int, names: Sequence[Hashable] | None
) -> tuple[Codes, Classes]:
    """Return the codes of `y` and the classes in column order."""
    labels = column_or_table(y, "y")
    if labels.ndim == 2:
        # a column of a one-hot frame is found by its name, whatever the order of the classes
        codes = _decode_one_hot(labels, n_classes)
        order, classes = find_column_order(column_names(y, "y"), n_classes, names)
        return (codes if order is None else order[codes]), classes
    if labels.ndim != 1:
        found = f"an array of shape {labels.shape}"
        raise InputError(argument="y", rule="be one label per row", found=found)
    if len(labels) == 0:
        raise no_labels_error("none")
    values, place = distinct_label_values(labels)
    classes = column_classes(values, n_classes, names)
    # each distinct word is encoded once, then rows take the codes of their words
    codes = _encode_values(values, classes)
    if place is not None:
        codes = codes[place]
    if codes.min() < 0:
        row = int(np.argmin(codes))
        k = row if place is None else place[row]
        error = InputError(
            "{argument} contains {value} ({row}), which is not a class; classes are {known}.",
            argument="y",
            rule=CLASS_RULE,
            value=values[k].item(),
            row=row,
            values={"known": shorten(classes)},
        )
        words = [str(name) for name in classes]
        hint = prefix_hint(words, distinct_labels_as_text(values))
        if hint is not None:
            raise error.with_remedy(f"{hint.template}.", **hint.values)
        remedy = _remedy_for_numbered_columns(values, classes)
        raise error if remedy is None else error.with_remedy(remedy, names=words)
    return codes, classes


def _remedy_for_numbered_columns(
    values: NDArray[Any], classes: Sequence[Hashable] | None, n_classes: int = 0
) -> str | None:
    """Return what to do where labels seem to be the numbers of the columns, else None.

    Which column such a number means is not guessed: encoders of labels sort the names first.
    """
    if values.dtype.kind not in "iu":
        return None
    n_columns = n_classes if classes is None else len(classes)
    counts_from_1 = values.min() >= 1 and values.max() <= n_columns
    if classes is None or set(map(str, classes)) == set(map(str, range(n_columns))):
        return "{count_from_0}" if counts_from_1 else None
    if counts_from_1 and values.max() == n_columns:
        return "{name_labels_from_1}"
    if values.min() >= 0 and values.max() < n_columns:
        return "{name_labels_from_0}"
    return None


def distinct_labels_as_text(y: Any) -> list[str]:
    """Return the labels that occur, as text; none where they cannot be read."""
    try:
        return sorted({str(label) for label in column_or_table(y, "y").tolist()})
    except InputError:
        return []


def add_label_remedy(error: InputError, table: Any, y: Any) -> InputError:
    """Return the error of a frame with the remedy that its labels suggest: a column is no class."""
    is_of_cell = error.row is not None or error.column is not None
    if not is_of_cell or y is None or n_columns(y) > 1:
        return error
    names = column_names(table)
    if names is None:
        return error
    labels = distinct_labels_as_text(y)
    suspects = names
    if isinstance(error.column, int):
        suspects = [names[error.column]]
    elif error.column is not None:
        suspects = [error.column]
    hint = extra_column_hint(names, labels, suspects) or prefix_hint(names, labels)
    return (
        error if hint is None else error.with_remedy(f"{hint.template}.", **hint.values)
    )


def no_labels_error(found: str) -> InputError:
    """Return the error of a y that is None or empty."""
    return InputError(argument="y", rule="hold one label per row", found=found)


def as_class_list(classes: Any) -> list[Hashable]:
    """Return the argument `classes` as a list of distinct labels."""
    unordered = isinstance(classes, (str, bytes, set, frozenset, Mapping))
    if unordered or not isinstance(classes, Iterable):
        rule = (
            "{argument} must be a list of labels, one per column in order; got {value}."
        )
        raise InputError(rule, argument="classes", value=classes)
    names = [plain_label(name) for name in classes]
    for name in names:
        if not isinstance(name, Hashable) or is_missing(name):
            found = f"{show(name)} as a label"
            raise InputError(
                argument="classes", rule="be a list of labels", found=found
            )
    check_distinct(names)
    return names


def find_class(label: Hashable, classes: Sequence[Hashable], argument: str) -> int:
    """Return the position of `label` among `classes`, also when it differs only in type."""
    label = plain_label(label)
    # the type first: among the classes 1 and True, which are equal, each finds itself
    for j, known in enumerate(classes):
        if type(known) is type(label) and known == label:
            return j
    texts = [str(known) for known in classes]
    if str(label) in texts:
        return texts.index(str(label))
    hint = did_you_mean(label, classes, "classes are")
    raise InputError(
        "{found} is not a class; {hint}",
        argument=argument,
        rule=CLASS_RULE,
        value=label,
        values={"hint": hint},
    )


def find_baseline_column(baseline: Hashable, classes: Classes) -> int:
    """Return the position of the baseline; refuse the words that stand for a choice."""
    if isinstance(baseline, str) and baseline in RESERVED_LABELS:
        message = "{found} is understood by {chooses_baseline}; here {argument} must be a class."
        raise InputError(message, argument="baseline", value=baseline)
    return find_class(baseline, classes, "baseline")


def default_baseline(class_weight: NDArray[Any]) -> int:
    """Return the baseline when none is given: the last class that occurs in the labels."""
    present = np.flatnonzero(class_weight)
    return int(present[-1]) if len(present) else len(class_weight) - 1


def check_not_reserved(classes: Sequence[Hashable]) -> None:
    """Refuse classes named like the words that ``baseline=`` understands."""
    for label in classes:
        if isinstance(label, str) and label in RESERVED_LABELS:
            message = (
                "a class must not be named {value}, a reserved word of {baseline}."
            )
            remedy = f"Rename the class, say to {label.capitalize()!r}."
            raise InputError(message, argument="classes", value=label, remedy=remedy)


def check_distinct(classes: Sequence[Hashable]) -> None:
    """Refuse two classes of one name, and names that arrays of words do not keep."""
    text = first_duplicate(map(str, classes))
    if text is not None:
        message = "class names must be distinct; {value} occurs twice."
        raise InputError(message, argument="classes", value=text, remedy="Rename one.")
    for name in map(str, classes):
        fault = _find_word_fault(name)
        if fault is not None:
            message = f"class names must be words that {fault}; got {{value}}."
            raise InputError(
                message, argument="classes", value=name, remedy="Rename it."
            )


def check_n_class_names(names: Sequence[Hashable], n_classes: int) -> None:
    """Refuse a list of classes that is too short or too long for the columns."""
    if len(names) != n_classes:
        rule = f"name each of the {n_classes} columns"
        raise InputError(argument="classes", rule=rule, found=f"{len(names)} names")


def encode_counts(
    y: Any, n_classes: int, names: Sequence[Hashable] | None
) -> tuple[NDArray[Any], Classes]:
    """Return a table of label counts with its columns in the order of the classes."""
    counts = column_or_table(y, "y")
    if counts.shape[1] != n_classes:
        raise InputError(
            f"a table of label counts must have a column per class ({n_classes}); "
            f"got {counts.shape[1]} columns."
        )
    order, classes = find_column_order(column_names(y, "y"), n_classes, names)
    return (counts if order is None else counts[:, np.argsort(order)]), classes


def find_column_order(
    columns: list[str] | None, n_classes: int, names: Sequence[Hashable] | None
) -> tuple[Codes | None, Classes]:
    """Return the class of each column of a table y (None: in order), and the classes.

    A frame's columns are found by name, an array's by position.
    """
    if names is None:
        return None, _as_integers(columns) if columns else tuple(range(n_classes))
    if columns is None:
        return None, _as_integers(names)
    texts = [str(name) for name in names]
    if sorted(texts) != sorted(columns):
        raise InputError(
            f"the columns of a one-hot y must be the classes {shorten(texts)}; "
            f"got {shorten(columns)}. Rename them, or pass an array in the order of the classes."
        )
    return np.array([texts.index(column) for column in columns]), _as_integers(names)


def _decode_one_hot(labels: NDArray[Any], n_classes: int) -> Codes:
    if labels.shape[1] != n_classes:
        raise InputError(
            f"one-hot y must have a column per class ({n_classes}); got {labels.shape[1]} columns."
        )
    try:
        hot = as_numbers(labels, "y").astype(np.float64)
    except InputError:
        raise InputError(
            f"one-hot y must hold only 0 and 1; got {first_non_number(labels)!r}. "
            "Pass one label per row."
        ) from None
    ones = hot == 1.0
    only_zeros_and_ones = (ones | (hot == 0.0)).all(axis=1)
    bad = ~(only_zeros_and_ones & (ones.sum(axis=1) == 1))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            "each row of a one-hot y must hold one 1 and otherwise 0; {row} is {numbers}.",
            argument="y",
            row=row,
            remedy="{swapped_labels}",
            values={"numbers": shorten([round(v, 3) for v in hot[row].tolist()])},
        )
    return hot.argmax(axis=1)


def column_classes(
    values: NDArray[Any], n_classes: int, names: Sequence[Hashable] | None
) -> Classes:
    """Return the classes in column order; names get the type of the labels if all of them can."""
    kind = values.dtype.kind
    if names is not None:
        classes = tuple(names)
        if kind in "iu":
            classes = _as_integers(names)
        elif kind == "b":
            classes = _as_truth_values(names)
        check_distinct(classes)
        return classes
    if kind == "b" and n_classes == 2:
        return (False, True)
    # Integers below the number of columns are columns, also where some never occur.
    if kind in "iu" and values.min() >= 0 and values.max() < n_classes:
        return tuple(range(n_classes))
    distinct = np.unique(values).tolist()
    if len(distinct) != n_classes:
        remedy = _remedy_for_numbered_columns(values, None, n_classes)
        raise InputError(
            "which column is which class is unclear: probs has {n_classes} columns and y has "
            "{n_labels} distinct labels {labels}.",
            argument="classes",
            remedy=remedy or "Pass {classes}.",
            values={
                "n_classes": n_classes,
                "n_labels": len(distinct),
                "labels": shorten(distinct),
            },
        )
    # "10" sorts before "2": are columns in the order of words or of numbers? Nobody knows.
    are_numbers = kind == "U" and all(map(_is_integer_text, distinct))
    if are_numbers and distinct != sorted(distinct, key=int):
        raise InputError(
            "which column is which class is unclear: the labels are numbers written as text, "
            "which sort as {labels}.",
            argument="classes",
            remedy="Pass {classes}, or integers.",
            values={"labels": shorten(distinct, 5)},
        )
    return tuple(distinct)


def _as_integers(names: Sequence[Hashable]) -> Classes:
    """Return names as integers when all of them are integers as text."""
    if all(isinstance(name, str) and _is_integer_text(name) for name in names):
        return tuple(int(str(name)) for name in names)
    return tuple(names)


def _as_truth_values(names: Sequence[Hashable]) -> Classes:
    """Return names as truth values when all of them are, in whatever case."""
    truth = {"true": True, "false": False}
    words = [str(name).lower() for name in names]
    if not set(words) <= set(truth):
        return tuple(names)
    return tuple(truth[word] for word in words)


def _is_integer_text(text: str) -> bool:
    """Whether text is an integer as Python writes it: no sign +, no leading zeros."""
    try:
        return str(int(text)) == text
    except ValueError:
        return False


def _encode_values(values: NDArray[Any], classes: Classes) -> Codes:
    """Return the column of each value, -1 where there is none; integers 0 .. c-1 are their own."""
    n_classes = len(classes)
    if values.dtype.kind in "iu" and classes == tuple(range(n_classes)):
        # labels are columns already; `np.unique` would sort all rows
        codes = values.astype(np.intp)
        codes[(values < 0) | (values >= n_classes)] = -1
        return codes
    if values.dtype.kind == "b":
        distinct = np.array([False, True])
        inverse = values.astype(np.intp)
    else:
        distinct, inverse = np.unique(values, return_inverse=True)
    # matched as text, so that 1 and "1" are one class
    column_of = {str(label): j for j, label in enumerate(classes)}
    columns = [column_of.get(str(label), -1) for label in distinct.tolist()]
    return np.array(columns, dtype=np.intp)[inverse]
