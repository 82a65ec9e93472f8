"""What the validator says about arrays, in the words of the file they came from.

=============================  ======================================================
``probs[17, 0]=1.2``           ``1.2 in column 'cat', line 19 of holdout.csv``
``row 17 sums to 0.99``        ``line 19 of holdout.csv sums to 0.99``
``y contains 'x' (row 17)``    ``column 'label' contains 'x' (line 19 of holdout.csv)``
``y[17] is missing``           ``column 'label' is empty in line 19 of holdout.csv``
=============================  ======================================================

Remedies name arguments of `read_predictions`, such as ``classes=``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .exceptions import InputError

MOST_NAMES = 12
"""Longest list of columns that a remedy spells out."""
MOST_LABELS = 1000
"""Distinct labels above which the label column is no label column."""


@dataclass(frozen=True)
class Roles:
    """Which column of a file plays which part.

    Attributes
    ----------
    numbers : sequence of str
        Columns with probabilities or logits, in the order of the classes.
    label, weight, groups : str or None
        The other columns that are used.
    """

    numbers: Sequence[str]
    label: str | None = None
    weight: str | None = None
    groups: str | None = None


def in_file_words(error: InputError, place: str, roles: Roles) -> InputError:
    """Return `error` with columns for arrays and `place` (say, ``line 19 of f.csv``) for its row.

    Examples
    --------
    >>> error = InputError("probs must lie in [0, 1]; got probs[2, 0]=2. Drop it.", row=2)
    >>> print(in_file_words(error, "line 4 of f.csv", Roles(["cat", "dog"])))
    probabilities must lie in [0, 1]; got 2 in column 'cat', line 4 of f.csv. Drop it.
    """
    message = str(error)
    if error.row is not None:
        message = _placed(message, error.row, place, roles)
    message = re.sub(r"^probs\b|(?<=each row of )probs\b", "probabilities", message)
    for name, column in (
        ("y", roles.label),
        ("sample_weight", roles.weight),
        ("groups", roles.groups),
    ):
        if message.startswith((f"{name} must", f"{name} contains")):
            message = f"column {column!r}{message.removeprefix(name)}"
    swapped = r"[Ii]f probs and y are swapped, call with \(probs, y\)\."
    message = re.sub(swapped, "Choose the column with the labels with label=.", message)
    message = message.replace("pass np.clip(probs, 0, 1)", "write 0 or 1 there")
    return InputError(message, row=error.row)


def _placed(message: str, row: int, place: str, roles: Roles) -> str:
    """Replace every mention of the row by its place; add the place when there is no mention."""

    def cell(match: re.Match[str]) -> str:
        value = match["value"]
        found = "an empty cell or NaN" if value == "nan" else value
        return f"{found} in column {column_of(match)!r}, {place}"

    def column_of(match: re.Match[str]) -> str | None:
        if match["name"] in ("y", "groups"):
            return roles.label if match["name"] == "y" else roles.groups
        return roles.weight if match["j"] is None else roles.numbers[int(match["j"])]

    at = rf"\b(?P<name>probs|logits|y|sample_weight|groups)\[{row}(?:, (?P<j>\d+))?\]"
    placed = re.sub(at + r"=(?P<value>\S+?)(?=[.;,]?(?:\s|$))", cell, message)
    placed = re.sub(
        at + " is missing", lambda match: f"column {column_of(match)!r} is empty in {place}", placed
    )
    placed = re.sub(rf"\brow {row}\b(?! of)", lambda _: place, placed)
    return placed if placed != message else f"{message.rstrip('.')} ({place})."


def with_hint(message: str, hint: str) -> str:
    """Return the message with its remedy, the last sentence, replaced by a better one."""
    if not hint:
        return message
    rule = re.split(r"(?<=[.?]) (?=[A-Z])", message)[0]
    return f"{rule} {hint}"


def among_first(message: str, n_rows: int) -> str:
    """Return the message; a remedy that goes by the labels says how many rows they are from.

    Examples
    --------
    >>> print(among_first("got 'A'. Labels differ in case; write them alike.", 1000))
    got 'A'. Labels differ in case; write them alike (by the labels among the first 1,000 rows).
    """
    rule = re.split(r"(?<=[.?]) (?=[A-Z])", message)[0]
    if not re.search("is not a class|[Ll]abels", message.removeprefix(rule)):
        return message
    return f"{message.rstrip('.')} (by the labels among the first {n_rows:,} rows)."


def stray_hint(columns: Sequence[str], labels: Sequence[str], message: str) -> str:
    """Return how to leave out a column that no label names, when the message may be due to it."""
    known = set(labels)
    classes = [column for column in columns if column in known]
    strays = [column for column in columns if column not in known]
    if "sums to" not in message:
        strays = [column for column in strays if f"column {column!r}" in message]
    if len(classes) < 2 or not strays or len(known) > MOST_LABELS:
        return ""
    if len(classes) > MOST_NAMES:
        return f"If {strays[0]!r} is not a class, choose the columns that are with classes=."
    return f"If {strays[0]!r} is not a class, pass classes={classes!r}."


def left_out_hint(classes: Sequence[str], known: Sequence[str], labels: Sequence[str]) -> str:
    """Return which label is a column too, and yet not among the classes."""
    left_out = (label for label in labels if label not in classes and label in known)
    return next((f"Add {label!r}, which is a label, to classes=." for label in left_out), "")


def label_hint(classes: Sequence[str], labels: Sequence[str]) -> str:
    """Return why labels and columns do not meet, and what to do about it.

    Where all of `labels`, perhaps those of the first rows only, are classes, nothing is known.
    """
    numbers = 0 < len(labels) <= MOST_LABELS and all(label.isdigit() for label in labels)
    if numbers and not any(name.isdigit() for name in classes):
        return "The labels are numbers and the columns names; write the same in both."
    known, any_case = set(classes), {name.lower() for name in classes}
    others = [label for label in labels if label not in known]
    if others and all(label.lower() in any_case for label in others):
        return "Labels and columns differ in upper and lower case; write them alike."
    return "Correct that label, or add a column for it."


def prefix_hint(columns: Sequence[str], labels: Sequence[str]) -> str:
    """Return a remedy when every label is a column's name but for what stands before or after it.

    Examples
    --------
    >>> prefix_hint(["p_cat", "p_dog"], ["cat", "dog"])
    "The columns are labels with 'p_' before them; pass prefix='p_'."
    """
    if not labels or len(labels) > MOST_LABELS:
        return ""
    known, first = set(columns), labels[0]
    for column in columns:
        before, after = column.removesuffix(first), column.removeprefix(first)
        if before != column and before and all(before + label in known for label in labels):
            return f"The columns are labels with {before!r} before them; pass prefix={before!r}."
        if after != column and after and all(label + after in known for label in labels):
            return f"The columns are labels with {after!r} after them; rename them."
    return ""
