"""Errors and warnings of mcllo: each says what must hold, what was found, and the remedy.

A message is a `Phrase`: a template, written in the source, and the parts that fill it. What has
another name elsewhere is a part of its own, and `Words` say the name; names of classes, columns and
files are parts too, so that nobody ever reads a finished sentence again.

==========================  ===================  ========================  =====================
part                        Python               a file                    the command line
==========================  ===================  ========================  =====================
``Option("clip", 0)``       ``clip=0``                                     ``--clip 0``
``{argument}``              ``clip``, ``probs``  ``probabilities``         ``--clip``
``{row}``                   ``row 6``            ``line 8 of b.csv``
``{found}`` at a row        ``probs[6, 0]=2``    ``2 in column 'cat',      ``--clip 2`` without
                                                 line 8 of b.csv``         a row
``{gap}``                   ``y[6] is missing``  ``column 'y' is empty
                                                 in line 8 of b.csv``
``Either(...)``             words of its own for each of them
==========================  ===================  ========================  =====================

Names in braces are the fields of the error, ``{value}`` among them; ``{}`` are the other parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, Self

__all__ = [
    "AbsentClassWarning",
    "ConvergenceWarning",
    "FileFormatError",
    "InputError",
    "LabelShiftWarning",
    "MclloError",
    "MclloWarning",
    "SeparationWarning",
    "ZeroProbabilityWarning",
]

LONGEST = 40
"""Characters of a value that a message shows."""
LONGEST_LIST = 120
"""Characters of a list of labels, which a reader may want to copy."""


def show(value: object) -> str:
    """Return ``repr(value)`` on one line, cut when it is long."""
    plain = value.item() if getattr(value, "ndim", None) == 0 and hasattr(value, "item") else value
    words = " ".join(repr(plain).split())
    return words if len(words) <= LONGEST else words[: LONGEST - 1] + "…"


def show_number(value: object) -> str:
    """Return a number with six digits at most, anything else as `show` does."""
    return f"{value:g}" if isinstance(value, Real) else show(value)


class Words:
    """What things are called: here Python's arguments and arrays.

    `reading` are the options that a file was read with, where advice should repeat them.
    """

    reading: Mapping[str, Any] = {}

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    @property
    def kinds(self) -> tuple[str, ...]:
        """Whose words these are; `Either` takes the first that it has."""
        return ("python",)

    def over(self, words: Words) -> Words:
        """Return these words for rows and columns, and `words` for everything else."""
        return words

    def argument(self, name: str) -> str:
        """Return the name of an argument as the subject of a sentence."""
        return name

    def option(self, name: str, value: Any = ...) -> str:
        """Return an argument with its value; without one, as in ``choose it with clip=``."""
        if value is ...:
            return f"{name}="
        whole = isinstance(value, list) and all(isinstance(item, (str, Real)) for item in value)
        shown = repr(value) if whole else ""
        return f"{name}={shown if 0 < len(shown) <= LONGEST_LIST else show(value)}"

    def row(self, row: int) -> str:
        """Return where a row stands."""
        return f"row {row}"

    def cell(self, name: str, row: int, column: Any, value: Any) -> str:
        """Return a number and where it stands."""
        return f"{name}[{row if column is None else f'{row}, {column}'}]={show_number(value)}"

    def gap(self, name: str, row: int) -> str:
        """Return that nothing stands there."""
        return f"{name}[{row}] is missing"


PYTHON = Words()


class Phrase:
    """A template and its parts.

    Examples
    --------
    >>> print(Phrase("{} is not a class; did you mean {!r}?", Option("baseline", "a"), "{row}"))
    baseline='a' is not a class; did you mean '{row}'?
    """

    def __init__(self, template: str, *parts: object) -> None:
        self.template, self.parts = template, parts

    def text(self, words: Words = PYTHON, /, **fields: str) -> str:
        """Return the sentence in these words."""
        return self.template.format(*(_said(part, words, fields) for part in self.parts), **fields)

    def __str__(self) -> str:
        return self.text()


class Option(Phrase):
    """An argument with its value, or without one: ``clip=0`` or ``clip=``."""

    def __init__(self, name: str, value: Any = ...) -> None:
        self.name, self.value = name, value

    def text(self, words: Words = PYTHON, /, **fields: str) -> str:
        """Return how it is given."""
        return words.option(self.name, self.value)


class Either(Phrase):
    """Words of its own for Python, for a file and for the command line (`shell`)."""

    def __init__(self, python: object, *, file: object = None, shell: object = None) -> None:
        self.python, self.file, self.shell = python, file, shell

    def text(self, words: Words = PYTHON, /, **fields: str) -> str:
        """Return the first that there is."""
        known = (getattr(self, kind) for kind in words.kinds)
        found = next(part for part in known if part is not None)
        return str(_said(found, words, fields))


Text = str | Phrase
USE_A_PENALTY = Either("use MCLLOCalibrator(penalty=1.0)", shell="use mcllo fit --penalty 1")
"""The remedy where no finite estimate is best."""


def _said(part: object, words: Words, fields: dict[str, str]) -> object:
    return part.text(words, **fields) if isinstance(part, Phrase) else part


class MclloError(Exception):
    """Base of every error this package raises on purpose."""

    def __init__(self, message: Text = "", *, remedy: Text | None = None) -> None:
        self.message, self.remedy = message, remedy
        super().__init__(self.text())

    def text(self, words: Words = PYTHON) -> str:
        """Return the message in these words."""
        fields = self._fields(words)
        parts = (self.message, self.remedy)
        return " ".join(str(_said(part, words, fields)) for part in parts if part is not None)

    def but(self, **changes: Any) -> Self:
        """Return a copy with other fields."""
        other = type(self).__new__(type(self))
        vars(other).update(vars(self) | changes)
        other.args = (other.text(),)
        return other

    def _fields(self, words: Words) -> dict[str, str]:
        return {}


class InputError(MclloError, ValueError):
    """The data or an argument breaks a rule; the message is one sentence with the remedy.

    Parameters
    ----------
    message : str or Phrase, optional
        What must hold, and what was found. Default: ``argument must rule; got value.``
    argument, rule, remedy : str or Phrase, optional
        The name of the argument at fault, what must hold of it, and what to do.
    value : object, optional
        What was found; a `Phrase` says it in words.
    row, column : int, optional
        Zero-based place of the offending value; a column may also be a name.

    Examples
    --------
    >>> error = InputError(argument="probs", rule="lie in [0, 1]", value=2.0, row=5, column=0)
    >>> print(error)
    probs must lie in [0, 1]; got probs[5, 0]=2.
    >>> print(error.moved(1000))
    probs must lie in [0, 1]; got probs[1005, 0]=2.
    """

    def __init__(
        self,
        message: Text | None = None,
        *,
        argument: str | None = None,
        rule: Text | None = None,
        value: Any = ...,
        row: int | None = None,
        column: int | str | None = None,
        remedy: Text | None = None,
    ) -> None:
        self.argument, self.rule, self.value = argument, rule, value
        self.row, self.column = row, column
        self.place: Words | None = None
        if message is None:
            got = "" if value is ... else "; got {found}"
            message = Phrase("{argument} must {}" + got + ".", rule)
        super().__init__(message, remedy=remedy)

    def text(self, words: Words = PYTHON) -> str:
        """Return the message in these words, and in those of the file that the data came from."""
        text = super().text(words if self.place is None else self.place.over(words))
        if self.row is None or self.place is None or isinstance(self.message, Phrase):
            return text
        return f"{self.place.row(self.row)}: {text}"

    def moved(self, start: int) -> Self:
        """Return the error of a block that begins at row `start` as one of the whole."""
        return self if self.row is None else self.but(row=self.row + start)

    def _fields(self, words: Words) -> dict[str, str]:
        name, value, row = self.argument or "", self.value, self.row
        found = value.text(words) if isinstance(value, Phrase) else words.option(name, value)
        fields = {"argument": words.argument(name), "value": show(value), "found": found}
        if row is not None:
            fields |= {"row": words.row(row), "gap": words.gap(name, row)}
            if not isinstance(value, Phrase):
                fields["found"] = words.cell(name, row, self.column, value)
        return fields


class FileFormatError(MclloError, ValueError):
    """A file cannot be read, or is not what its use needs."""

    def __init__(
        self, message: Text = "", *, column: str | None = None, remedy: Text | None = None
    ) -> None:
        self.column = column
        super().__init__(message, remedy=remedy)


class MclloWarning(UserWarning):
    """Base of every warning of this package.

    Parameters
    ----------
    message : str or Phrase
        What Python prints: the same words for the same kind of trouble, so that its filters can
        tell a repetition.
    detail : str or Phrase, optional
        The whole sentence, with counts, for those who print it once. Default: the message.
    numbers : mapping, optional
        The counts and names in it, as values.

    Attributes
    ----------
    also : tuple of MclloWarning
        Further warnings of the same kind in the same call, which were not issued.

    Examples
    --------
    >>> warning = ZeroProbabilityWarning("some were 0.", detail="3 were 0.", numbers={"n_zeros": 3})
    >>> str(warning), warning.text(), warning.numbers["n_zeros"]
    ('some were 0.', '3 were 0.', 3)
    """

    also: tuple[MclloWarning, ...] = ()

    def __init__(
        self,
        message: Text = "",
        *,
        detail: Text | None = None,
        numbers: Mapping[str, Any] | None = None,
    ) -> None:
        self.message, self.detail = message, message if detail is None else detail
        self.numbers = dict(numbers or {})
        super().__init__(str(message))

    def text(self, words: Words = PYTHON) -> str:
        """Return the whole sentence in these words."""
        return str(_said(self.detail, words, {}))


class ZeroProbabilityWarning(MclloWarning):
    """Probabilities of 0 were raised to a floor; statistics that use log odds depend on it."""


class SeparationWarning(MclloWarning):
    """The maximum likelihood estimate does not exist: no finite parameters are best."""


class ConvergenceWarning(MclloWarning):
    """The solver stopped before it reached its tolerance; the numbers are approximate."""


class AbsentClassWarning(MclloWarning):
    """A class has no row in the labels, so nothing can be learned about it."""


class LabelShiftWarning(MclloWarning):
    """Rows to repair have other class shares than the rows that the repair was learned from."""
