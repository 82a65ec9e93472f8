"""What is said, before it is printed, and what is left unsaid because a result says it itself.

A result builds statements; text, JSON, Markdown and HTML pick them by `kind` and print `text`.
Whatever decides (an exit code, a colour, a second sentence) reads `kind`, `level` or `numbers`,
never `text`: nobody parses a sentence. `quiet` leaves out warnings of what serves something else.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from ..exceptions import ConvergenceWarning, SeparationWarning

Level = Literal["plain", "good", "doubt", "bad"]

OF_ESTIMATES = (SeparationWarning, ConvergenceWarning)
"""Warnings in which a fit speaks of its estimates."""


@dataclass(frozen=True)
class Statement:
    """One thing that a result says.

    Attributes
    ----------
    kind : str
        What it is about, such as ``"verdict"`` or ``"zeros"``: the name it is picked by.
    text : str
        One or more whole sentences, without markup and line breaks.
    level : {"plain", "good", "doubt", "bad"}
        How a reader should take it.
    numbers : mapping
        The numbers and names in it, as values.

    Examples
    --------
    >>> said = [Statement("verdict", "No miscalibration found.", "doubt", {"pvalue": 0.4})]
    >>> str(pick(said, "verdict")[0]), pick(said, "zeros")
    ('No miscalibration found.', [])
    """

    kind: str
    text: str
    level: Level = "plain"
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.text


def pick(statements: Iterable[Statement], *kinds: str) -> list[Statement]:
    """Return the statements of these kinds, in their order; ``note`` stands for all ``note.*``."""
    return [said for said in statements if {said.kind, said.kind.split(".")[0]} & set(kinds)]


@contextmanager
def quiet(*categories: type[Warning]) -> Iterator[None]:
    """Ignore warnings of these categories, or all, inside a ``with`` block.

    Examples
    --------
    >>> with quiet(*OF_ESTIMATES):
    ...     warnings.warn("no finite parameters are best", OF_ESTIMATES[0])
    """
    with warnings.catch_warnings():
        for category in categories or (Warning,):
            warnings.simplefilter("ignore", category)
        yield
