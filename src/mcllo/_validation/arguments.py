"""Arguments beside the predictions: shares, such as levels of tests, and `RowSubgroups`.

==============  ==============================================================================
groups          rows of one may depend on each other: it changes the test (`_validation/weights`)
by              rows of one are looked at by themselves: it changes the question
==============  ==============================================================================

Names of subgroups stand in their natural order: 2 before 10, and "station 2" before "station 10".
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import wraps
from inspect import Signature, signature
from numbers import Real
from typing import Any, TypeVar, cast

import numpy as np

from .._utils.results import Codes
from ..exceptions import InputError
from .frames import column_names, column_or_table, did_you_mean, split_column
from .labels import is_missing

Function = TypeVar("Function", bound=Callable[..., Any])


def check_share(name: str, value: float) -> None:
    """Refuse what does not lie between 0 and 1."""
    if not 0.0 < value < 1.0:
        raise InputError(f"{name} must lie in (0, 1); got {name}={value}.")


OTHER_NAMES = {
    "labels": "y",
    "random_state": "seed",
    "sample_weights": "sample_weight",
    "targets": "y",
    "weight": "sample_weight",
    "weights": "sample_weight",
    "y_prob": "probs",
    "y_true": "y",
}
"""What other packages call an argument, for those that spelling does not lead to."""


def refuse_unknown_keywords(
    function_name: str, keywords: Iterable[str], shown: Signature
) -> None:
    """Refuse keywords that a function does not have, with the one that may have been meant.

    It is a `TypeError`, as of any function.
    """
    known = list(shown.parameters)
    for name in keywords:
        if name in known:
            continue
        message = f"{function_name}() got an unexpected keyword argument {name!r}"
        meant = OTHER_NAMES.get(name)
        if meant not in known:
            close = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
            meant = close[0] if close else None
        if meant is not None:
            message += f"; did you mean {meant}=?"
        raise TypeError(message)


def names_unknown_keywords(function: Function) -> Function:
    """Let a function say which keyword may have been meant by one that it does not have."""
    own = signature(function)

    @wraps(function)
    def checked(*args: Any, **keywords: Any) -> Any:
        refuse_unknown_keywords(function.__name__, keywords, own)
        return function(*args, **keywords)

    return cast(Function, checked)


MAX_SUBGROUPS = 200
"""Subgroups beyond which no question about each of them has an answer: a round number."""
DEFAULT_BY_NAME = "group"


@dataclass(frozen=True, eq=False)
class RowSubgroups:
    """The subgroup of each row.

    Attributes
    ----------
    column : str
        What the rows are divided by, such as ``"station"``.
    names : tuple
        The subgroups.
    codes : ndarray of shape (n_samples,)
        The number of each row's subgroup.
    """

    column: str
    names: tuple[Hashable, ...]
    codes: Codes

    @property
    def parts(self) -> list[Codes]:
        """The rows of each subgroup."""
        return [np.flatnonzero(self.codes == g) for g in range(len(self.names))]

    def take(self, rows: Codes) -> RowSubgroups:
        """Return the subgroups of the chosen rows, without those that are empty then."""
        kept, codes = np.unique(self.codes[rows], return_inverse=True)
        names = tuple(self.names[k] for k in kept)
        codes = codes.ravel().astype(np.intp)
        return RowSubgroups(self.column, names, codes)


def extract_by_column(by: Any, probs: Any, logits: Any) -> tuple[Any, Any, Any]:
    """Return `by` with the tables: a column's name becomes that column, which is then no class."""
    if not isinstance(by, str):
        return by, probs, logits
    # a column of numbers would else be taken for the probabilities of a class
    found = None
    if _has_column(probs, by):
        found, probs = split_column(probs, by)
    if _has_column(logits, by):
        found, logits = split_column(logits, by)
    if found is None:
        known = column_names(probs if logits is None else logits) or []
        message = "{argument} must be a column of the frame, or hold one name per row; got {value}"
        message += "; {hint}" if known else "."
        values = {"hint": did_you_mean(by, known)}
        remedy = None if known else "Pass the name of each row."
        raise InputError(message, argument="by", value=by, remedy=remedy, values=values)
    n_samples = len(column_or_table(found, "by"))
    return clean_by(found, n_samples, by), probs, logits


def _has_column(table: Any, name: str) -> bool:
    """Whether a table is a frame with a column of this name."""
    names = None if table is None else column_names(table)
    return names is not None and name in names


def clean_by(by: Any, n_samples: int, column: str | None = None) -> RowSubgroups | None:
    """Validate subgroups: a name for each row, at least two of them and not too many."""
    if by is None or isinstance(by, RowSubgroups):
        return by
    values = column_or_table(by, "by")
    if values.shape != (n_samples,):
        rule = f"hold one name per row ({n_samples})"
        raise InputError(argument="by", rule=rule, found=f"shape {values.shape}")
    names_of_rows = values.tolist()
    distinct: dict[
        Any, None
    ] = {}  # in order of appearance, which decides between "2" and "02"
    for row, name in enumerate(names_of_rows):
        if is_missing(name):
            remedy = "Drop those rows, or give them a name such as 'unknown'."
            missing = "every row needs a subgroup; {gap}."
            raise InputError(missing, argument="by", row=row, remedy=remedy)
        distinct[name] = None
    _check_n_subgroups(len(distinct))
    names = sorted(distinct, key=_natural_sort_key)
    code_of = {name: code for code, name in enumerate(names)}
    codes = np.array([code_of[name] for name in names_of_rows], dtype=np.intp)
    codes.setflags(write=False)
    name_of_series = getattr(by, "name", None)
    if column is None and isinstance(name_of_series, str):
        column = name_of_series
    return RowSubgroups(column or DEFAULT_BY_NAME, tuple(names), codes)


def _check_n_subgroups(n: int) -> None:
    """Refuse one subgroup, and more than can be asked about one by one."""
    if n < 2:
        raise InputError(
            "{argument} must name at least two subgroups; all rows are in one.",
            argument="by",
            remedy="Leave {by} out.",
        )
    if n > MAX_SUBGROUPS:
        message = (
            f"{{argument}} must name at most {MAX_SUBGROUPS:,} subgroups; got {n:,}."
        )
        remedy = "Join them into fewer, and cut numbers into a few ranges."
        raise InputError(message, argument="by", remedy=remedy)


def _natural_sort_key(name: Any) -> tuple[Any, ...]:
    """Return what to sort a name by: numbers by size, then text with the numbers in it."""
    if isinstance(name, Real):
        return (0, float(name))
    parts = re.split(r"(\d+)", str(name))
    key = [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]
    return (1, *key)
