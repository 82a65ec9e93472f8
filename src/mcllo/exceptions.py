"""Errors and warnings of mcllo: each says what must hold, what was found, and the remedy.

A message is a template for `str.format`, and whoever prints it fills its fields. Data (names of
classes, columns and files, numbers) are the `values` of the error, so that no name is ever taken
for a field. Every other field is a name that differs by who prints: a mapping `Names` has them for
Python here, for the command line in `_apps/cli/options`, for the page in `_apps/serve/choices`.

===============  =========================  ==========================  ============================
field            Python                     a file                      the command line
===============  =========================  ==========================  ============================
``{clip:0}``     ``clip=0``                                             ``--clip 0``
``{clip}``       ``clip=``                                              ``--clip``
``{argument}``   ``clip``, ``probs``        ``probabilities``           ``--clip``
``{row}``        ``row 6``                  ``line 8 of b.csv``
``{found}``      ``probs[6, 0]=2``          ``2 in column 'cat', line   ``--clip 2`` without a row
                                            8 of b.csv``
``{gap}``        ``y[6] is missing``        ``column 'y' is empty in
                                            line 8 of b.csv``
``{drop_row}``   a phrase of `Names`        a phrase of its own         a phrase of its own
===============  =========================  ==========================  ============================

The value of an argument is written as a literal of Python: ``{missing:'drop'}``, or
``{classes:{known}}`` with `known` among the values.
"""

from __future__ import annotations

import copy
from ast import literal_eval
from collections.abc import Mapping
from numbers import Real
from typing import Any, NamedTuple, Self

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
    is_scalar = getattr(value, "ndim", None) == 0 and hasattr(value, "item")
    plain = value.item() if is_scalar else value  # type: ignore[attr-defined]
    words = " ".join(repr(plain).split())
    return words if len(words) <= LONGEST else words[: LONGEST - 1] + "…"


def number_or_repr(value: object) -> str:
    """Return a number with six digits at most, anything else as `show` does."""
    return f"{value:g}" if isinstance(value, Real) else show(value)


class Argument:
    """An argument as Python calls it; the command line and the page have subclasses.

    Examples
    --------
    >>> clip = Argument("clip")
    >>> f"{clip!s} must be positive; pass {clip:0.5}, or choose it with {clip}"
    'clip must be positive; pass clip=0.5, or choose it with clip='
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        """Return it as the subject of a sentence."""
        return self.name

    def __format__(self, literal: str) -> str:
        if not literal:
            return self.given()
        # what a template's nested field writes is the repr of a value: text, a number or a list
        try:
            return self.given(literal_eval(literal))
        except (
            SyntaxError,
            ValueError,
        ):  # of an object that has no literal, such as np.str_('a')
            return f"{self}={literal}"

    def given(self, value: Any = ...) -> str:
        """Return the argument with its value; without one, as in ``choose it with clip=``."""
        if value is ...:
            return f"{self.name}="
        if isinstance(value, list) and all(
            isinstance(item, (str, Real)) for item in value
        ):
            whole = repr(value)
            if len(whole) <= LONGEST_LIST:
                return f"{self.name}={whole}"
        return f"{self.name}={show(value)}"

    def cell(self, row: int, column: Any, value: Any) -> str:
        """Return a number of an array and where it stands."""
        place = row if column is None else f"{row}, {column}"
        return f"{self.name}[{place}]={number_or_repr(value)}"


class Names(dict[str, str]):
    """What messages call things: phrases by name, and every other name is an argument.

    A phrase is a template too.

    Parameters
    ----------
    phrases : mapping
        What Python, the command line and the page say in words of their own.
    argument : type
        `Argument` or a subclass.
    """

    def __init__(
        self, phrases: Mapping[str, str], argument: type[Argument] = Argument
    ) -> None:
        super().__init__(phrases)
        self.argument = argument

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def with_phrases(self, phrases: Mapping[str, str]) -> Names:
        """Return names with other phrases; arguments are called the same."""
        return Names({**self, **phrases}, self.argument)


PYTHON = Names(
    {
        "auto_calibrator": "AutoCalibrator",
        "baselines_to_try": ", or the ones to try with baselines= of baseline_sensitivity",
        "check_columns": "Check which column is which class; {classes} names them in their order.",
        "chooses_baseline": "assess, calibration_test and MCLLOCalibrator",
        "count_from_0": "If labels count the columns from 1, pass y - 1.",
        "divide_percentages": "Divide percentages by 100; for scores before the softmax pass "
        "logits= in the place of probs.",
        "drop_row": "Drop or correct that row.",
        "drop_unlabelled": "Drop those rows.",
        "lr_or_score": "statistic='lr' or 'score'",
        "mcllo_calibrator": "MCLLOCalibrator",
        "method_found": "method {method!r}",
        "name_labels_from_0": "If labels count the columns from 0, pass np.array({names})[y].",
        "name_labels_from_1": "If labels count the columns from 1, pass np.array({names})[y - 1].",
        "or_a_generator": " or a numpy Generator",
        "other_clip": "Pass clip=None or a bound such as clip=1e-6.",
        "penalty_for_blocks": "use MCLLOCalibrator with arrays, or penalty='auto'",
        "refit": "{in_python}",
        "restart": "monitor.restart(path, model='model.json')",
        "round_to_share": "For rounding errors pass np.clip(probs, 0, 1).",
        "swapped_labels": "If probs and y are swapped, call with (probs, y).",
        "use_a_penalty": "use MCLLOCalibrator(penalty=1.0)",
    }
)
"""Python's names."""


class _TemplateFields(dict[str, Any]):
    """The values of a message, and behind them the names of who prints it."""

    def __init__(self, values: Mapping[str, Any], names: Names) -> None:
        super().__init__(values)
        self.names = names

    def __missing__(self, name: str) -> Any:
        phrase = self.names.get(name)
        if phrase is None:
            return self.names.argument(name)
        # a phrase is ours, so that its own fields are filled; a value is data, and stays as it is
        return phrase.format_map(self)


def fill_template(
    template: str, values: Mapping[str, Any], names: Names = PYTHON
) -> str:
    """Return a message, its fields filled with values and names.

    Examples
    --------
    >>> fill_template("{label!r} is not a class; pass {baseline:'a'}.", {"label": "{row}"})
    "'{row}' is not a class; pass baseline='a'."
    """
    return template.format_map(_TemplateFields(values, names))


class Hint(NamedTuple):
    """A sentence that may become a remedy, and the values that fill it."""

    template: str
    values: Mapping[str, Any]

    def __str__(self) -> str:
        return fill_template(self.template, self.values)


class DataLocation(NamedTuple):
    """Where the data of an error came from.

    `fields` are those of the message that it says otherwise (argument, row, found, gap), `phrases`
    take the place of those of `Names`.
    """

    row: str
    fields: Mapping[str, str]
    phrases: Mapping[str, str]


class MclloError(Exception):
    """Base of every error this package raises on purpose.

    Parameters
    ----------
    message : str
        What must hold, and what was found. With `values` a template, else said as it stands.
    remedy : str, optional
        What to do; follows the message.
    values : mapping, optional
        Fills the fields of message and remedy; may be empty, where they hold names alone.

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
    >>> print(MclloError("{path!r} is locked.", remedy="Pass {path}.", values={"path": "a.db"}))
    'a.db' is locked. Pass a.db.
    """

    def __init__(
        self,
        message: str = "",
        *,
        remedy: str | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> None:
        self.message = message
        self.remedy = remedy
        self.values = values
        super().__init__(self.text())

    def text(self, names: Names = PYTHON) -> str:
        """Return the message, its fields filled with these names."""
        text = self._template()
        return text if self.values is None else fill_template(text, self.values, names)

    def _template(self) -> str:
        return self.message if self.remedy is None else f"{self.message} {self.remedy}"

    def but(self, **changes: Any) -> Self:
        """Return a copy with other attributes."""
        other = copy.copy(self)
        for name, value in changes.items():
            setattr(other, name, value)
        other.args = (other.text(),)  # what str() gives
        return other

    def with_remedy(self, remedy: str, **values: Any) -> Self:
        """Return a copy with another remedy, a template that `values` fill."""
        message = self.message
        if self.values is None:  # it was said as it stands: its braces are no fields
            message = message.replace("{", "{{").replace("}", "}}")
        return self.but(
            message=message, remedy=remedy, values={**(self.values or {}), **values}
        )


class InputError(MclloError, ValueError):
    """The data or an argument breaks a rule; the message is one sentence with the remedy.

    Nothing was computed. It is a `ValueError` too, as scikit-learn expects.

    Parameters
    ----------
    message : str, optional
        What must hold, and what was found. Default: a sentence made of the other arguments. With
        `values` or an `argument` a template, else said as it stands.
    argument, rule : str, optional
        The name of the argument at fault, and what must hold of it: a template too.
    value : object, optional
        What was found.
    found : str, optional
        The same in words. Default: the value and where it stands.
    row, column : int, optional
        Zero-based place of the offending value; a column may also be a name.
    remedy : str, optional
        What to do; follows the message.
    values : mapping, optional
        Fills the fields of message, rule and remedy.

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
        message: str | None = None,
        *,
        argument: str | None = None,
        rule: str | None = None,
        value: Any = ...,
        found: str | None = None,
        row: int | None = None,
        column: int | str | None = None,
        remedy: str | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> None:
        self.argument = argument
        self.rule = rule
        self.value = value
        self.found = found
        self.row = row
        self.column = column
        self.place: DataLocation | None = None
        if message is None:
            got = "." if value is ... and found is None else "; got {found}."
            message = f"{{argument}} must {rule}{got}"
        # a sentence about an argument names it by a field, so it is a template even without data
        if values is None and argument is not None:
            values = {}
        super().__init__(message, remedy=remedy, values=values)

    def text(self, names: Names = PYTHON) -> str:
        """Return the message, its fields filled with these names.

        Of data from a file, arrays and rows are its columns and lines.
        """
        if self.values is None:
            text = super().text(names)
            if self.row is None or self.place is None:
                return text
            return f"{self.place.row}: {text}"
        fields = self._fields(names)
        if self.place is not None:
            fields |= self.place.fields
            names = names.with_phrases(self.place.phrases)
        return fill_template(self._template(), {**fields, **self.values}, names)

    def moved(self, start: int) -> Self:
        """Return the error of a block that begins at row `start` as one of the whole."""
        return self if self.row is None else self.but(row=self.row + start)

    def _fields(self, names: Names) -> dict[str, str]:
        """Return what the fields of a message say of the argument and its place."""
        argument = names.argument(self.argument or "")
        fields = {"argument": str(argument), "value": show(self.value)}
        if self.row is not None:
            fields["row"] = f"row {self.row}"
            fields["gap"] = f"{argument.name}[{self.row}] is missing"
        if self.found is not None:
            fields["found"] = self.found
        elif self.row is not None:
            fields["found"] = argument.cell(self.row, self.column, self.value)
        else:
            fields["found"] = argument.given(self.value)
        return fields


class FileFormatError(MclloError, ValueError):
    """A file cannot be read, or is not what its use needs.

    Nothing of it was used. It is a `ValueError` too.

    Parameters
    ----------
    message : str
        What is wrong with the file. With `values` a template, else said as it stands.
    column : str, optional
        The column that is missing or wrong.
    remedy : str, optional
        What to do; follows the message.
    values : mapping, optional
        Fills the fields of message and remedy.

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
        self,
        message: str = "",
        *,
        column: str | None = None,
        remedy: str | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> None:
        self.column = column
        super().__init__(message, remedy=remedy, values=values)


class MclloWarning(UserWarning):
    """Base of every warning of this package.

    Parameters
    ----------
    message : str
        What Python prints: the same words for the same kind of trouble, so that its filters can
        tell a repetition. With `values` a template, else said as it stands.
    detail : str, optional
        The whole sentence, with counts, for those who print it once. Default: the message.
    numbers : mapping, optional
        The counts and names in it, as values.
    values : mapping, optional
        Fills the fields of message and detail, as in an error.

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
        message: str = "",
        *,
        detail: str | None = None,
        numbers: Mapping[str, Any] | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> None:
        self.message = message
        self.detail = message if detail is None else detail
        self.numbers = dict(numbers or {})
        self.values = values
        super().__init__(message if values is None else fill_template(message, values))

    def text(self, names: Names = PYTHON) -> str:
        """Return the whole sentence, its fields filled with these names."""
        return (
            self.detail
            if self.values is None
            else fill_template(self.detail, self.values, names)
        )


class ZeroProbabilityWarning(MclloWarning):
    """Probabilities of 0 were clipped; statistics that use log odds depend on the bound.

    The message has the floor, `detail` and `numbers` how many there were. p-values and parameters
    depend on the floor, most of all where a class of probability 0 came true.

    Parameters
    ----------
    message : str
        What Python prints: the same words for the same kind of trouble, so that its filters can
        tell a repetition.
    detail : str, optional
        The whole sentence, with counts. Default: the message.
    numbers : mapping, optional
        The counts and names in it, as values.
    values : mapping, optional
        Fills the fields of message and detail, as in an error.

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
    message : str
        What Python prints: the same words for the same kind of trouble, so that its filters can
        tell a repetition.
    detail : str, optional
        The whole sentence, with counts. Default: the message.
    numbers : mapping, optional
        The counts and names in it, as values.
    values : mapping, optional
        Fills the fields of message and detail, as in an error.

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
    message : str
        What Python prints: the same words for the same kind of trouble, so that its filters can
        tell a repetition.
    detail : str, optional
        The whole sentence, with counts. Default: the message.
    numbers : mapping, optional
        The counts and names in it, as values.
    values : mapping, optional
        Fills the fields of message and detail, as in an error.

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
    message : str
        What Python prints: the same words for the same kind of trouble, so that its filters can
        tell a repetition.
    detail : str, optional
        The whole sentence, with counts. Default: the message.
    numbers : mapping, optional
        The counts and names in it, as values.
    values : mapping, optional
        Fills the fields of message and detail, as in an error.

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
    message : str
        What Python prints: the same words for the same kind of trouble, so that its filters can
        tell a repetition.
    detail : str, optional
        The whole sentence, with counts. Default: the message.
    numbers : mapping, optional
        The counts and names in it, as values.
    values : mapping, optional
        Fills the fields of message and detail, as in an error.

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
