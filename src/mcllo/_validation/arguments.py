"""Arguments that are no data: shares, such as levels of tests and intervals, and priors.

`By`: which subgroup each row belongs to, for those who ask whether all are alike.

==============  ==============================================================================
groups          rows of one may depend on each other: it changes the test (`_validation/weights`)
by              rows of one are looked at by themselves: it changes the question
==============  ==============================================================================

Names stand in their natural order: 2 before 10, and "station 2" before "station 10".
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from .._utils.results import Codes
from ..exceptions import InputError
from .frames import as_column, column_names, did_you_mean, split_column
from .labels import is_missing


def check_share(name: str, value: float) -> None:
    """Refuse what does not lie between 0 and 1."""
    if not 0.0 < value < 1.0:
        raise InputError(f"{name} must lie in (0, 1); got {name}={value}.")


MAX_SUBGROUPS = 200
"""Subgroups beyond which no question about each of them has an answer."""
DEFAULT_BY_NAME = "group"


@dataclass(frozen=True, eq=False)
class By:
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

    def take(self, rows: Codes) -> By:
        """Return the subgroups of the chosen rows, without those that are empty then."""
        kept, codes = np.unique(self.codes[rows], return_inverse=True)
        names = tuple(self.names[k] for k in kept)
        return By(self.column, names, codes.ravel().astype(np.intp))


def by_column(by: Any, probs: Any, logits: Any) -> tuple[Any, Any, Any]:
    """Return `by` with the tables: a column's name becomes that column, which is then no class."""
    if not isinstance(by, str):
        return by, probs, logits
    tables, found = [probs, logits], None
    for k, table in enumerate(tables):
        names = None if table is None else column_names(table)
        if names is not None and by in names:
            found, tables[k] = split_column(table, by)
    if found is None:
        known = column_names(probs if logits is None else logits) or []
        message = "{argument} must be a column of the frame, or hold one name per row; got {value}"
        message += "; {hint}" if known else "."
        values = {"hint": did_you_mean(by, known)}
        remedy = None if known else "Pass the name of each row."
        raise InputError(message, argument="by", value=by, remedy=remedy, values=values)
    return clean_by(found, len(as_column(found, "by")), by), tables[0], tables[1]


def clean_by(by: Any, n_samples: int, column: str | None = None) -> By | None:
    """Validate subgroups: a name for each row, at least two of them and not too many."""
    if by is None or isinstance(by, By):
        return by
    values = as_column(by, "by")
    if values.shape != (n_samples,):
        rule = f"hold one name per row ({n_samples})"
        raise InputError(argument="by", rule=rule, found=f"shape {values.shape}")
    seen: dict[Any, int] = {}
    for row, name in enumerate(values.tolist()):
        if is_missing(name):
            remedy = "Drop those rows, or give them a name such as 'unknown'."
            missing = "every row needs a subgroup; {gap}."
            raise InputError(missing, argument="by", row=row, remedy=remedy)
        seen.setdefault(name, len(seen))
    _check_number(len(seen))
    names = sorted(seen, key=_natural)
    place = np.argsort([seen[name] for name in names])
    codes = place[[seen[name] for name in values.tolist()]].astype(np.intp)
    own = getattr(by, "name", None)
    called = column or (own if isinstance(own, str) and own else DEFAULT_BY_NAME)
    codes.setflags(write=False)
    return By(called, tuple(names), codes)


def _check_number(n: int) -> None:
    """Refuse one subgroup, and more than can be asked about one by one."""
    if n < 2:
        raise InputError(
            "{argument} must name at least two subgroups; all rows are in one.",
            argument="by",
            remedy="Leave {by} out.",
        )
    if n > MAX_SUBGROUPS:
        message = f"{{argument}} must name at most {MAX_SUBGROUPS:,} subgroups; got {n:,}."
        remedy = "Join them into fewer, and cut numbers into a few ranges."
        raise InputError(message, argument="by", remedy=remedy)


def _natural(name: Any) -> tuple[Any, ...]:
    """Return what to sort a name by: numbers by size, then text with the numbers in it."""
    if isinstance(name, Real):
        return (0, float(name))
    parts = re.split(r"(\d+)", str(name))
    return (1, *((int(part), "") if k % 2 else (-1, part) for k, part in enumerate(parts)))
