"""What is said, before it is printed, and warnings.

A result builds statements; text, JSON, Markdown and HTML pick them by `kind` and print `text`.
Whatever decides (an exit code, a colour, a second sentence) reads `kind`, `level` or `numbers`,
never `text`: nobody parses a sentence.

`warn` is the one way to warn: at the line of whoever called this package, however deep we are.
Inside a ``with`` block, `catch_warnings` puts warnings into a list instead, `suppress_warnings`
drops those of work that serves something else, and `warn_once` issues one of each kind at the end.
Who catches is a matter of the thread (a context variable): Python's own filters, which belong to
the whole process, are never touched.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any, Literal

from ..exceptions import (
    ConvergenceWarning,
    MclloWarning,
    Names,
    SeparationWarning,
    fill_template,
)

Level = Literal["plain", "good", "doubt", "bad"]

ESTIMATION_WARNINGS = (SeparationWarning, ConvergenceWarning)
"""Warnings in which a fit speaks of its estimates."""
INTERMEDIATE_PACKAGES = {
    "mcllo",
    "sklearn",
    "joblib",
    "dask",
    "distributed",
    "contextlib",
    "functools",
}
"""Packages that may stand between the caller's line and a warning: ours, and those that call us."""

Collector = tuple[tuple[type[Warning], ...], list[MclloWarning]]
"""Categories of warnings, and the list that they go into."""
_collectors: ContextVar[tuple[Collector, ...]] = ContextVar(
    "mcllo_collectors", default=()
)


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
    template : str or None
        What `text` was made of, where it names arguments, which the command line calls otherwise.
    values : mapping
        Fills its fields.

    See Also
    --------
    Assessment : Has some as `statements`.
    Verdict : Has numbers instead of words.
    Report : Made of them.

    Examples
    --------
    >>> said = [Statement("verdict", "No miscalibration found.", "doubt", {"pvalue": 0.4})]
    >>> str(select_statements(said, "verdict")[0]), select_statements(said, "zeros")
    ('No miscalibration found.', [])
    """

    kind: str
    text: str
    level: Level = "plain"
    numbers: Mapping[str, Any] = field(default_factory=dict)
    template: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def filled(
        cls,
        kind: str,
        template: str,
        values: Mapping[str, Any],
        level: Level = "plain",
        numbers: Mapping[str, Any] | None = None,
    ) -> Statement:
        """Return a statement that names arguments: a template, as in an error."""
        text = fill_template(template, values)
        return cls(kind, text, level, numbers or {}, template, values)

    def with_names(self, names: Names) -> Statement:
        """Return the statement, its fields filled with these names."""
        if self.template is None:
            return self
        return replace(self, text=fill_template(self.template, self.values, names))

    def __str__(self) -> str:
        return self.text


def select_statements(statements: Iterable[Statement], *kinds: str) -> list[Statement]:
    """Return the statements of these kinds, in their order; ``note`` stands for all ``note.*``."""
    found = []
    for statement in statements:
        family = statement.kind.split(".")[0]
        if statement.kind in kinds or family in kinds:
            found.append(statement)
    return found


def drop_repeated_statements(said: Iterable[Statement]) -> tuple[Statement, ...]:
    """Return the statements without those that repeat another."""
    found = {(statement.kind, statement.text): statement for statement in said}
    return tuple(found.values())


def warn(warning: MclloWarning) -> None:
    """Issue a warning at the caller's line, or hand it to who catches it (the innermost first)."""
    for categories, found in reversed(_collectors.get()):
        if isinstance(warning, categories):
            found.append(warning)
            return
    warnings.warn(warning, stacklevel=find_stack_level())


def find_stack_level() -> int:
    """Return the stack level of the caller's line, for a `warnings.warn` in the calling function.

    It is the first frame of another package than ours and those that call us (a pipeline or a
    search of scikit-learn).
    """
    # sys._getframe and not inspect.stack: that reads the source of every frame
    frame = sys._getframe(1)
    level = 1
    while (
        frame.f_back is not None and _package_of_frame(frame) in INTERMEDIATE_PACKAGES
    ):
        frame = frame.f_back
        level += 1
    return level


def _package_of_frame(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).split(".")[0]


@contextmanager
def catch_warnings(*categories: type[Warning]) -> Iterator[list[MclloWarning]]:
    """Collect warnings of these categories, or all, inside a ``with`` block.

    Examples
    --------
    >>> with catch_warnings() as found:
    ...     warn(SeparationWarning("no finite parameters are best"))
    >>> found
    [SeparationWarning('no finite parameters are best')]
    """
    found: list[MclloWarning] = []
    collector = (categories or (Warning,), found)
    outer = _collectors.get()
    with collect_into((*outer, collector)):
        yield found


@contextmanager
def suppress_warnings(*categories: type[Warning]) -> Iterator[None]:
    """Leave out warnings of these categories, or all, inside a ``with`` block."""
    with catch_warnings(*categories):
        yield


@contextmanager
def warn_once() -> Iterator[None]:
    """Issue the first warning of each kind when the block ends; it holds the others (`also`)."""
    with catch_warnings() as found:
        yield
    issue_each_once(found)


def issue_each_once(found: Iterable[MclloWarning]) -> None:
    """Issue the first of each kind among these warnings."""
    kinds: dict[type[MclloWarning], list[MclloWarning]] = {}
    for warning in found:
        kinds.setdefault(type(warning), []).extend((warning, *warning.also))
    for first, *others in kinds.values():
        first.also = tuple(others)
        warn(first)


def active_collectors() -> tuple[Collector, ...]:
    """Return who catches warnings here, for a thread that works for this one."""
    return _collectors.get()


@contextmanager
def collect_into(collectors: tuple[Collector, ...]) -> Iterator[None]:
    """Let others catch the warnings inside a ``with`` block."""
    token = _collectors.set(collectors)
    try:
        yield
    finally:
        _collectors.reset(token)
