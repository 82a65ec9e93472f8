"""Labels of any kind -> integer codes and the class labels they stand for.

``codes[i] = j`` says that row i belongs to column j of the probabilities. Which label belongs to
which column is taken, in this order, from `classes`, from the column names, from integers
``0 .. c-1``, or from the sorted distinct labels (scikit-learn's convention for ``predict_proba``).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._frames import as_column, did_you_mean, shorten
from .exceptions import InputError

Codes = NDArray[np.intp]
Classes = tuple[Hashable, ...]


def encode(y: Any, n_classes: int, names: Sequence[Hashable] | None) -> tuple[Codes, Classes]:
    """Return the codes of `y` and the classes in column order."""
    labels = as_column(y, "y")
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim == 2:
        return _decode_one_hot(labels, n_classes), _default_classes(n_classes, names)
    if labels.ndim != 1:
        raise InputError(f"y must be one label per row; got an array of shape {labels.shape}.")
    labels = _tidy(labels)
    classes = _classes_of(labels, n_classes, names)
    return _codes_of(labels, classes), classes


def find_class(label: Hashable, classes: Sequence[Hashable], argument: str) -> int:
    """Return the position of `label` among `classes`, also when it differs only in type."""
    for j, known in enumerate(classes):
        if type(known) is type(label) and known == label:
            return j
    texts = [str(known) for known in classes]
    if str(label) in texts:
        return texts.index(str(label))
    hint = did_you_mean(label, classes)
    if hint.startswith("it has"):
        hint = f"classes are {shorten(classes)}."
    raise InputError(f"{argument}={label!r} is not a class; {hint}")


def check_distinct(classes: Sequence[Hashable]) -> None:
    """Refuse two classes of one name."""
    texts = [str(label) for label in classes]
    for text in texts:
        if texts.count(text) > 1:
            raise InputError(f"class names must be distinct; {text!r} occurs twice. Rename one.")


def _default_classes(n_classes: int, names: Sequence[Hashable] | None) -> Classes:
    return tuple(range(n_classes)) if names is None else tuple(_plain(name) for name in names)


def _decode_one_hot(labels: NDArray[Any], n_classes: int) -> Codes:
    if labels.shape[1] != n_classes:
        raise InputError(
            f"one-hot y must have a column per class ({n_classes}); got {labels.shape[1]} columns."
        )
    try:
        hot = labels.astype(np.float64)
    except (ValueError, TypeError):
        raise InputError("one-hot y must hold only 0 and 1; got words. Pass one label per row.") from None
    bad = ~(np.isin(hot, (0.0, 1.0)).all(axis=1) & (hot.sum(axis=1) == 1.0))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"each row of a one-hot y must hold one 1 and otherwise 0; row {row} is "
            f"{np.round(hot[row], 3).tolist()}. If probs and y are swapped, call with (probs, y).",
            row=row,
        )
    return hot.argmax(axis=1)


def _tidy(labels: NDArray[Any]) -> NDArray[Any]:
    """Refuse missing labels; turn whole floats into integers and objects into one plain type."""
    if labels.dtype.kind == "f":
        return _whole(labels)
    if labels.dtype.kind != "O":
        return labels
    for row, value in enumerate(labels):
        if value is None or value != value or str(value) in ("<NA>", "NaT"):
            raise InputError(
                f"every row needs a label; y[{row}] is missing. Drop those rows.", row=row
            )
    kinds = {type(value) for value in labels}
    if all(issubclass(kind, (bool, np.bool_)) for kind in kinds):
        return labels.astype(bool)
    if all(issubclass(kind, (int, np.integer)) for kind in kinds):
        return labels.astype(np.int64)
    if all(issubclass(kind, (int, float, np.number)) for kind in kinds):
        return _whole(labels.astype(np.float64))
    return np.array([str(value) for value in labels])


def _whole(labels: NDArray[Any]) -> NDArray[Any]:
    missing = np.isnan(labels)
    if missing.any():
        row = int(np.argmax(missing))
        raise InputError(f"every row needs a label; y[{row}] is missing. Drop those rows.", row=row)
    broken = labels != np.floor(labels)
    if broken.any() or not np.isfinite(labels).all():
        row = int(np.argmax(broken | ~np.isfinite(labels)))
        raise InputError(
            f"y must hold class labels; got y[{row}]={labels[row]:g}. "
            "If probs and y are swapped, call with (probs, y).",
            row=row,
        )
    return labels.astype(np.int64)


def _classes_of(labels: NDArray[Any], n_classes: int, names: Sequence[Hashable] | None) -> Classes:
    if names is not None:
        return _typed_like(labels, [_plain(name) for name in names])
    kind = labels.dtype.kind
    if kind == "b" and n_classes == 2:
        return (False, True)
    if kind in "iu" and labels.min() >= 0 and labels.max() < n_classes:
        return tuple(range(n_classes))
    distinct = np.unique(labels)
    if len(distinct) != n_classes:
        raise InputError(
            f"which column is which class is unclear: probs has {n_classes} columns and y has "
            f"{len(distinct)} distinct labels {shorten(distinct.tolist())}. Pass classes=."
        )
    return tuple(distinct.tolist())


def _typed_like(labels: NDArray[Any], names: list[Hashable]) -> Classes:
    """Give class names the labels' type when all of them are numbers (or truth values) as text."""
    if labels.dtype.kind in "iu" and all(isinstance(n, str) and _is_int(n) for n in names):
        return tuple(int(str(name)) for name in names)
    truth = {"true": True, "false": False}
    if labels.dtype.kind == "b" and all(str(name).lower() in truth for name in names):
        return tuple(truth[str(name).lower()] for name in names)
    return tuple(names)


def _is_int(text: str) -> bool:
    return text.lstrip("-").isdigit() and str(int(text)) == text


def _codes_of(labels: NDArray[Any], classes: Classes) -> Codes:
    if classes == tuple(range(len(classes))) and labels.dtype.kind in "iu":
        inside = (labels >= 0) & (labels < len(classes))
        if inside.all():
            return labels.astype(np.intp)
    distinct, inverse = np.unique(labels, return_inverse=True)
    where = {str(label): j for j, label in enumerate(classes)}
    table = np.array([where.get(str(label), -1) for label in distinct.tolist()], dtype=np.intp)
    codes = table[inverse]
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise InputError(
            f"y contains {labels[row].item()!r} (row {row}), which is not a class; "
            f"classes are {shorten(classes)}.",
            row=row,
        )
    return codes


def _plain(label: Hashable) -> Hashable:
    """Return a Python scalar for a NumPy one."""
    return label.item() if isinstance(label, np.generic) else label
