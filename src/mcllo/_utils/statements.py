"""What is said, before it is printed, and what is left unsaid because a result says it itself.

A result builds statements; text, JSON, Markdown and HTML pick them by `kind` and print `text`.
Whatever decides (an exit code, a colour, a second sentence) reads `kind`, `level` or `numbers`,
never `text`: nobody parses a sentence.

===================  ===============================================================================
`warn`               the one way to warn: at the line of whoever called this package, however deep
                     we are
`catch_warnings`     warnings inside a ``with`` block go into a list instead
`suppress_warnings`  they are left out: of what serves something else
`warn_once`          one of each kind is issued, at the end of the block
a search             of scikit-learn that fits us many times counts as one call: the same is said
                     once
===================  ===============================================================================

Who listens is a matter of the thread (a context variable); Python's own filters, which belong to
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
from weakref import WeakKeyDictionary

from ..exceptions import ConvergenceWarning, MclloWarning, Phrase, SeparationWarning, Words

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

Ear = tuple[tuple[type[Warning], ...], list[MclloWarning]]
_ears: ContextVar[tuple[Ear, ...]] = ContextVar("mcllo_ears", default=())
_said: WeakKeyDictionary[Any, set[Any]] = WeakKeyDictionary()


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
    phrase : Phrase, optional
        The same text where an argument is called otherwise on the command line.

    See Also
    --------
    Assessment : Has some as `statements`.
    Verdict : Has numbers instead of words.
    Report : Made of them.

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
    phrase: Phrase | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        return self.text

    def in_words(self, words: Words) -> Statement:
        """Return the same with arguments called as in these words."""
        return self if self.phrase is None else replace(self, text=self.phrase.text(words))


def pick(statements: Iterable[Statement], *kinds: str) -> list[Statement]:
    """Return the statements of these kinds, in their order; ``note`` stands for all ``note.*``."""
    return [said for said in statements if {said.kind, said.kind.split(".")[0]} & set(kinds)]


def without_repeats(said: Iterable[Statement]) -> tuple[Statement, ...]:
    """Return the statements without those that repeat another."""
    return tuple({(note.kind, note.text): note for note in said}.values())


def warn(warning: MclloWarning) -> None:
    """Issue a warning at the caller's line, or hand it to who listens (the innermost first)."""
    for categories, found in reversed(_ears.get()):
        if isinstance(warning, categories):
            found.append(warning)
            return
    frame, between = _callers_frame()
    if _said_already(warning, frame, between):
        return
    warnings.warn_explicit(
        warning,
        category=type(warning),
        filename=frame.f_code.co_filename,
        lineno=frame.f_lineno,
        module=frame.f_globals.get("__name__", "<unknown>"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )


def _callers_frame() -> tuple[FrameType, FrameType | None]:
    """Return the innermost frame that is neither ours nor of who calls us, and whom it called."""
    frame, between = sys._getframe(2), None
    while frame.f_back is not None and _root(frame) in INTERMEDIATE_PACKAGES:
        frame, between = frame.f_back, frame
    return frame, between


def _root(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).split(".")[0]


def _said_already(warning: MclloWarning, frame: FrameType, between: FrameType | None) -> bool:
    """Whether the same was said of the same search: it resets Python's filters for each fit."""
    if between is None or _root(between) != "sklearn":
        return False
    found = between.f_locals
    model = found.get("self", found.get("estimator"))
    try:
        said = _said.setdefault(model, set())
    except TypeError:  # nothing that a weak reference can hold
        return False
    what = type(warning), str(warning), frame.f_code.co_filename, frame.f_lineno
    if what in said:
        return True
    said.add(what)
    return False


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
    with listening((*_ears.get(), (categories or (Warning,), found))):
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


def listeners() -> tuple[Ear, ...]:
    """Return who listens here, for a thread that works for this one."""
    return _ears.get()


@contextmanager
def listening(ears: tuple[Ear, ...]) -> Iterator[None]:
    """Let others listen inside a ``with`` block."""
    token = _ears.set(ears)
    try:
        yield
    finally:
        _ears.reset(token)
