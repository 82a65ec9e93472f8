"""Options that say how rows are read: one list, one default and one description for all functions.

Functions of ``(probs, y)`` take them as keywords of their own and pass them on to
`Predictions.from_arrays`, whose parameters they are.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Hashable, Sequence
from functools import wraps
from inspect import get_annotations, getdoc, signature
from typing import Any, Literal, TypedDict, TypeVar, cast

from ..exceptions import InputError
from .arguments import refuse_unknown_keywords
from .predictions import Predictions
from .weights import WeightKind

Function = TypeVar("Function", bound=Callable[..., Any])


class TableOptions(TypedDict, total=False):
    """Keywords of `Predictions.from_arrays` that every function of ``(probs, y)`` takes."""

    logits: Any
    classes: Sequence[Hashable] | None
    prefix: str
    sample_weight: Any
    normalize: bool
    clip: float | None
    missing: Literal["refuse", "drop"]


class RowOptions(TableOptions, total=False):
    """Those of functions that allow for rows which depend on each other: all but `baseline`."""

    weight_kind: WeightKind
    groups: Any


HOW_ROWS_ARE_READ = re.compile(
    r"^( *)([\w, ]+) : optional\n +How rows are read; each is described in "
    r"`Predictions\.from_arrays`\.\n",
    re.MULTILINE,
)
"""What the docstring of a function has in the place of the options that all of them take."""


def write_out_row_options(docstring: str) -> str:
    """Return a docstring in which each option of the rows is described, in the words of the door.

    `Predictions.from_arrays` describes them once; a reader of any other function, at `help` or on
    its page, finds them there.
    """
    door = getdoc(Predictions.from_arrays) or ""
    entries = re.finditer(r"^(\w+) : .*\n(?: {4}.*\n)+", door, re.MULTILINE)
    texts = {entry[1]: entry[0] for entry in entries}

    def described(place: re.Match[str]) -> str:
        names = place[2].split(", ")
        return "".join(textwrap.indent(texts[name], place[1]) for name in names)

    return HOW_ROWS_ARE_READ.sub(described, docstring)


def takes_row_options(options: type) -> Callable[[Function], Function]:
    """Show the names in `options` in the signature of a function of ``**data``; refuse others.

    So the options that say how rows are read have one list, one default each and one description:
    those of `Predictions.from_arrays`.
    """
    known = signature(Predictions.from_arrays).parameters
    of_rows = [known[name] for name in get_annotations(options)]

    def decorate(function: Function) -> Function:
        own = signature(function)
        named = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
        shown = own.replace(parameters=[*named, *of_rows])

        @wraps(function)
        def checked(*args: Any, **keywords: Any) -> Any:
            refuse_unknown_keywords(function.__name__, keywords, shown)
            try:
                return function(*args, **keywords)
            except InputError as error:
                if keywords.get("missing", "refuse") != "refuse":
                    raise
                raise _with_missing_remedy(error) from None

        checked.__signature__ = shown  # type: ignore[attr-defined]
        if function.__doc__ is not None:  # there is none under python -OO
            checked.__doc__ = write_out_row_options(function.__doc__)
        return cast(Function, checked)

    return decorate


def _with_missing_remedy(error: InputError) -> InputError:
    """Return the error of a row with a gap with the option that leaves such rows out."""
    drop = {
        "{drop_row}": "Drop or correct that row, or pass {missing:'drop'}.",
        "{drop_unlabelled}": "Drop those rows, or pass {missing:'drop'}.",
    }
    if error.remedy not in drop:
        return error
    return error.with_remedy(drop[error.remedy])
