"""Errors and warnings of mcllo: each says what must hold, what was found, and the remedy.

A message is a `Phrase`: a template, written in the source, and the parts that fill it. What has
another name elsewhere is a part of its own, and `Words` say the name; names of classes, columns and
files are parts too, so that nobody ever reads a finished sentence again.

=====================  ========================  ========================  =========================
part                   Python                    a file                    the command line
=====================  ========================  ========================  =========================
``Option("clip", 0)``  ``clip=0``                ``--clip 0``
``{argument}``         ``clip``, ``probs``       ``probabilities``         ``--clip``
``{row}``              ``row 6``                 ``line 8 of b.csv``
``{found}`` at a row   ``probs[6, 0]=2``         ``2 in column 'cat',      ``--clip 2`` without a
                                                 line 8 of b.csv``         row
``{gap}``              ``y[6] is missing``       ``column 'y' is empty in
                                                 line 8 of b.csv``
``Either(...)``        words of its own for
                       each of them
=====================  ========================  ========================  =========================

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
    """Base of every error this package raises on purpose.

    Parameters
    ----------
    message : str or Phrase
        What must hold, and what was found.
    remedy : str or Phrase, optional
        What to do; follows the message.

    See Also
    --------
    InputError : Data or an argument breaks a rule.
    FileFormatError : A file cannot be read.
    mcllo.export.ExportError : A calibrator has no such form.
    MclloWarning : Base of the warnings.

    Examples
    --------
    >>> print(MclloError("the store is locked.", remedy="Close the other monitor."))
    the store is locked. Close the other monitor.
    """

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

    Nothing was computed. It is a `ValueError` too, as scikit-learn expects.

    Parameters
    ----------
    message : str or Phrase, optional
        What must hold, and what was found. Default: a sentence made of the other arguments.
    argument, rule : str or Phrase, optional
        The name of the argument at fault, and what must hold of it.
    value : object, optional
        What was found; a `Phrase` says it in words.
    row, column : int, optional
        Zero-based place of the offending value; a column may also be a name.
    remedy : str or Phrase, optional
        What to do; follows the message.

    See Also
    --------
    FileFormatError : A file cannot be read.
    MclloError : Its base.
    mcllo.Predictions : Where rows are checked.

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
    """A file cannot be read, or is not what its use needs.

    Nothing of it was used. It is a `ValueError` too.

    Parameters
    ----------
    message : str or Phrase
        What is wrong with the file.
    column : str, optional
        The column that is missing or wrong.
    remedy : str or Phrase, optional
        What to do; follows the message.

    See Also
    --------
    mcllo.read_predictions : Raises it.
    mcllo.load_calibrator : Raises it.
    InputError : Values break a rule.
    MclloError : Its base.

    Examples
    --------
    >>> error = FileFormatError("a.csv has no column 'y'.", column="y", remedy="Name it by label=.")
    >>> print(error)
    a.csv has no column 'y'. Name it by label=.
    """

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

    See Also
    --------
    SeparationWarning : No finite estimate.
    ZeroProbabilityWarning : Zeros were clipped.
    ConvergenceWarning : Numbers are approximate.
    MclloError : Base of the errors.

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
    """Probabilities of 0 were clipped; statistics that use log odds depend on the bound.

    The message has the floor, `detail` and `numbers` how many there were. p-values and parameters
    depend on the floor, most of all where a class of probability 0 came true.

    Parameters
    ----------
    message : str or Phrase
        What Python prints: the same words for the same kind of trouble, so that its filters can
        tell a repetition.
    detail : str or Phrase, optional
        The whole sentence, with counts. Default: the message.
    numbers : mapping, optional
        The counts and names in it, as values.

    See Also
    --------
    mcllo.zero_sensitivity : The test under several floors.
    mcllo.Predictions : Takes `clip`, and counts what was clipped.
    MclloWarning : Its base.

    Examples
    --------
    >>> import warnings
    >>> import mcllo
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     p = mcllo.Predictions.from_arrays([[1.0, 0.0], [0.2, 0.8]], [0, 1])
    >>> caught[0].category.__name__, p.n_zeros, p.clip
    ('ZeroProbabilityWarning', 1, 1e-06)
    """


class SeparationWarning(MclloWarning):
    """The maximum likelihood estimate does not exist: no finite parameters are best.

    The predictions separate the labels of some classes. Estimates drift to infinity, have no
    standard errors, and give new rows probabilities near 0 and 1; a penalty gives finite estimates.

    Parameters
    ----------
    message : str or Phrase
        What Python prints: the same words for the same kind of trouble, so that its filters can
        tell a repetition.
    detail : str or Phrase, optional
        The whole sentence, with counts. Default: the message.
    numbers : mapping, optional
        The counts and names in it, as values.

    See Also
    --------
    mcllo.MCLLOCalibrator : Its `penalty` gives finite estimates.
    ConvergenceWarning : A maximum exists but was not reached.
    MclloWarning : Its base.

    Notes
    -----
    When the estimate exists is the subject of [1]_; penalties that make it exist are studied in
    [2]_.

    References
    ----------
    .. [1] A. Albert, J. A. Anderson (1984). On the existence of maximum likelihood estimates in
           logistic regression models. Biometrika 71.
    .. [2] G. Heinze, M. Schemper (2002). A solution to the problem of separation in logistic
           regression. Statistics in Medicine 21:2409-2419.

    Examples
    --------
    >>> import warnings
    >>> import mcllo
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     fit = mcllo.MCLLOCalibrator().fit([[0.9, 0.1], [0.2, 0.8]], [0, 1]).fit_
    >>> caught[0].category.__name__, fit.separated
    ('SeparationWarning', True)
    """


class ConvergenceWarning(MclloWarning):
    """The solver stopped before it reached its tolerance; the numbers are approximate.

    Estimates, standard errors and p-values of that fit are approximate; ``MCLLOFit.gradient_norm``
    says how far it is from a maximum.

    Parameters
    ----------
    message : str or Phrase
        What Python prints: the same words for the same kind of trouble, so that its filters can
        tell a repetition.
    detail : str or Phrase, optional
        The whole sentence, with counts. Default: the message.
    numbers : mapping, optional
        The counts and names in it, as values.

    See Also
    --------
    SeparationWarning : No maximum exists.
    mcllo.MCLLOFit : Has `converged` and `gradient_norm`.
    MclloWarning : Its base.

    Examples
    --------
    >>> warning = ConvergenceWarning("the solver stopped early.", numbers={"n_iter": 100})
    >>> str(warning), warning.numbers["n_iter"]
    ('the solver stopped early.', 100)
    """


class AbsentClassWarning(MclloWarning):
    """A class has no row in the labels, so nothing can be learned about it.

    The message says what the method makes of it: some methods leave such a class as predicted, of
    others its estimates do not exist. Whether its predictions are right cannot be told.

    Parameters
    ----------
    message : str or Phrase
        What Python prints: the same words for the same kind of trouble, so that its filters can
        tell a repetition.
    detail : str or Phrase, optional
        The whole sentence, with counts. Default: the message.
    numbers : mapping, optional
        The counts and names in it, as values.

    See Also
    --------
    LabelShiftWarning : Class shares differ between rows.
    SeparationWarning : Another reason why no estimate exists.
    MclloWarning : Its base.

    Examples
    --------
    >>> import warnings
    >>> from mcllo.calibrators import TemperatureScaling
    >>> rows = [[0.6, 0.3, 0.1], [0.3, 0.6, 0.1], [0.5, 0.4, 0.1]]
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     calibrator = TemperatureScaling(classes=[0, 1, 2]).fit(rows, [0, 1, 1])
    >>> caught[0].category.__name__, caught[0].message.numbers["classes"]
    ('AbsentClassWarning', (2,))
    """


class LabelShiftWarning(MclloWarning):
    """Rows to recalibrate have other class shares than those learned from, or nobody can tell.

    A recalibration with ``prior="fit"`` carries the class shares it was learned from over to rows
    where they are wrong.

    Parameters
    ----------
    message : str or Phrase
        What Python prints: the same words for the same kind of trouble, so that its filters can
        tell a repetition.
    detail : str or Phrase, optional
        The whole sentence, with counts. Default: the message.
    numbers : mapping, optional
        The counts and names in it, as values.

    See Also
    --------
    mcllo.MCLLOCalibrator : Its `prior` says which class shares to expect.
    AbsentClassWarning : A class without a row.
    MclloWarning : Its base.

    Notes
    -----
    Mean predictions of these rows are compared with those of the rows learned from.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from mcllo import MCLLOCalibrator
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.dirichlet([1, 1], size=500)
    >>> y = (rng.random(500) < rows[:, 1]).astype(int)
    >>> calibrator = MCLLOCalibrator().fit(rows, y)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     recalibrated = calibrator.predict_proba(rng.dirichlet([4, 1], size=500))
    >>> [each.category.__name__ for each in caught]
    ['LabelShiftWarning']
    """
