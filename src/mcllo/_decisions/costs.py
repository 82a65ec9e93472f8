"""`Costs`: what each action costs where each class is the truth, in any form that people write.

===========================  =====================================================================
matrix (actions x classes)   columns in the order of the classes; square: action k is "say class k",
                             else the actions are 0, 1, ...
frame                        a column for each class; actions are the index, or the one other column
mapping of actions           ``{"treat": {"ill": 1, "well": 4}, "wait": {"ill": 50, "well": 0}}``; a
                             row may also be a list in the order of the classes, or one number
short form                   ``{"miss": {"ill": 50}, "false_alarm": {"ill": 2}, "default": 1}``:
                             actions are the classes, what is right costs nothing
===========================  =====================================================================

In the short form, saying a where j is true costs ``default`` (1 if left out), unless ``miss`` has a
number for j or ``false_alarm`` one for a; where both have, the larger. ``"abstain": 0.6`` adds an
action of that name at this cost, whatever is true; so does ``abstain=0.6`` beside any form.

Costs are not negative and finite. Only differences between actions decide: a gain can be written as
a cost by adding the same number to all actions of one class, which changes no decision.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from .._utils.formatting import Table, format_number
from .._utils.results import Codes, Floats, Result
from .._validation.frames import (
    column_names,
    column_or_table,
    did_you_mean,
    first_duplicate,
    row_names,
    split_column,
)
from .._validation.labels import as_class_list, is_missing
from ..exceptions import InputError, show

ABSTAIN = "abstain"
"""What the action is called that answers nothing."""
SHORT_FORM = ("miss", "false_alarm", "default", ABSTAIN)
FORMS = (
    "Pass a matrix of actions and classes, a frame with a column for each class, a mapping of "
    "actions, or a short form such as {{'miss': {{'cancer': 50}}, 'default': 1}}."
)


@dataclass(frozen=True, eq=False, repr=False)
class Costs(Result):
    """What each action costs where each class is the truth; print it for a table.

    Use `Costs.from_table`; every function that takes ``costs`` also takes one of these.

    Attributes
    ----------
    matrix : ndarray of shape (n_actions, n_classes)
        Costs, finite and not negative.
    actions : tuple
        Names of the rows.
    classes : tuple
        Labels of the columns.

    See Also
    --------
    decide : The action of least expected cost.
    decision_value : What acting on predictions costs.
    DecisionClassifier : A classifier that acts.

    Notes
    -----
    A matrix has actions as rows and classes as columns; a square one without names stands for
    saying each class. In the short form a wrong answer costs ``default``, ``miss`` where a class
    is true and not said, ``false_alarm`` where it is said and not true; the larger of the two where
    both are given. An action named ``abstain`` answers nothing: it is not counted as an answer.

    Examples
    --------
    >>> costs = Costs.from_table({"miss": {"cancer": 50}, "abstain": 3}, classes=["cancer", "none"])
    >>> print(costs)
    action   cancer  none
    cancer     0.00  1.00
    none       50.0  0.00
    abstain    3.00  3.00
    >>> costs.actions
    ('cancer', 'none', 'abstain')
    """

    matrix: Floats
    actions: tuple[Hashable, ...]
    classes: tuple[Hashable, ...]

    def __post_init__(self) -> None:
        self.matrix.setflags(write=False)

    @classmethod
    def from_table(cls, costs: Any, classes: Any, *, abstain: Any = None) -> Costs:
        """Return costs as a table of actions and classes.

        Parameters
        ----------
        costs : array-like, frame, mapping or Costs
            In any of the forms of the notes.
        classes : sequence
            The labels, in the order of the columns of probabilities.
        abstain : float, optional
            Cost of answering nothing: adds an action ``abstain``.

        Returns
        -------
        Costs
            Columns in the order of `classes`.

        Raises
        ------
        InputError
            Where a class is unknown or missing, or a cost is missing, negative or not finite.
        """
        names = as_class_list(classes)
        if isinstance(costs, Costs):
            cells = _Cells(costs.matrix.tolist(), costs.actions, costs.classes)
        elif isinstance(costs, Mapping):
            cells = _cells_of_mapping(costs, names)
        elif column_names(costs, "costs") is not None:
            cells = _cells_of_frame(costs, names)
        else:
            cells = _cells_of_array(costs, names)
        rows = _columns_in_order(cells, names)
        actions = list(cells.actions)
        if abstain is not None:
            actions.append(ABSTAIN)
            rows.append([abstain] * len(names))
        _check_actions(actions)
        matrix = np.empty((len(actions), len(names)))
        for a, action in enumerate(actions):
            for j, label in enumerate(names):
                matrix[a, j] = _checked_cost(rows[a][j], action, label)
        return cls(matrix, tuple(actions), tuple(names))

    @property
    def abstain_code(self) -> int | None:
        """Place of the action that answers nothing; None where every action is an answer."""
        # a class may have that name: saying it is then an answer
        if ABSTAIN in self.classes or ABSTAIN not in self.actions:
            return None
        return self.actions.index(ABSTAIN)

    @property
    def table(self) -> Table:
        """One row for each action, one column for each class."""
        columns: dict[str, list[Any]] = {"action": list(self.actions)}
        for label, column in zip(self.classes, self.matrix.T, strict=True):
            columns[str(label)] = column.tolist()
        return Table(columns)

    def expected(self, probs: Floats) -> Floats:
        """Return the expected cost of each action, shape (n_samples, n_actions).

        Parameters
        ----------
        probs : ndarray of shape (n_samples, n_classes)
            Probabilities, columns in the order of `classes`.

        Returns
        -------
        ndarray of shape (n_samples, n_actions)
            Mean cost if the probabilities are right.
        """
        return probs @ self.matrix.T

    def best_actions(self, probs: Floats) -> Codes:
        """Return the action of least expected cost of each row; of equal ones the first.

        Parameters
        ----------
        probs : ndarray of shape (n_samples, n_classes)
            Probabilities, columns in the order of `classes`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Places in `actions`.
        """
        return self.expected(probs).argmin(axis=1)

    def __str__(self) -> str:
        return str(self.table)

    def __repr__(self) -> str:
        return f"<Costs of {len(self.actions)} actions and {len(self.classes)} classes>"


class _Cells(NamedTuple):
    """Costs as they were written: rows of cells, their names, and those of the columns if any."""

    rows: list[list[Any]]
    actions: Sequence[Hashable]
    classes: Sequence[Hashable] | None


def _cells_of_array(costs: Any, names: Sequence[Hashable]) -> _Cells:
    array = column_or_table(costs, "costs")
    if array.ndim != 2 or array.size == 0:
        raise InputError(
            "{argument} must be a table of actions and classes; got the shape {shape}.",
            argument="costs",
            remedy=FORMS,
            values={"shape": array.shape},
        )
    n_actions = len(array)
    is_square = array.shape == (len(names), len(names))
    actions = list(names) if is_square else list(range(n_actions))
    return _Cells(array.tolist(), actions, None)


def _cells_of_frame(costs: Any, names: Sequence[Hashable]) -> _Cells:
    """Read a frame; the column that is no class holds the actions, else the index does."""
    columns = column_names(costs, "costs") or []
    known = {str(label) for label in names}
    others = [column for column in columns if column not in known]
    if len(others) > 1:
        # the first is the actions' column by habit: what is wrong is said of the next one
        raise _unknown_class_error(others[1], names)
    actions: Sequence[Hashable] | None = row_names(costs)
    if others:
        found, costs = split_column(costs, others[0])
        actions = column_or_table(found, "costs").tolist()
        columns = [column for column in columns if column != others[0]]
    rows = column_or_table(costs, "costs")
    if rows.ndim == 1:  # a frame of one column
        rows = rows[:, None]
    if actions is None:
        is_square = len(rows) == len(columns)
        actions = list(columns) if is_square else list(range(len(rows)))
    return _Cells(rows.tolist(), actions, columns)


def _cells_of_mapping(costs: Mapping[Any, Any], names: Sequence[Hashable]) -> _Cells:
    if _is_short_form(costs):
        return _cells_of_short_form(costs, names)
    rows: list[list[Any]] = []
    for action, row in costs.items():
        if isinstance(row, Mapping):
            rows.append(_values_by_class(row, names, action))
        elif isinstance(row, Real):  # the same whatever is true
            rows.append([row] * len(names))
        elif isinstance(row, Iterable) and not isinstance(row, (str, bytes)):
            rows.append(list(row))
        else:
            rows.append([row] * len(names))  # refused as a cost
    for action, row in zip(costs, rows, strict=True):
        if len(row) != len(names):
            raise InputError(
                "{argument} must hold a number for each of the {n} classes; {action} has "
                "{found}.",
                argument="costs",
                values={"n": len(names), "action": show(action), "found": len(row)},
            )
    return _Cells(rows, list(costs), None)


def _is_short_form(costs: Mapping[Any, Any]) -> bool:
    """Whether a mapping gives misses and false alarms, and not a row for each action."""
    if not all(isinstance(key, str) and key in SHORT_FORM for key in costs):
        return False
    plain = [costs[key] for key in ("default", ABSTAIN) if key in costs]
    by_class = [costs[key] for key in ("miss", "false_alarm") if key in costs]
    are_numbers = not any(isinstance(value, Mapping) for value in plain)
    are_by_class = all(isinstance(value, Mapping) for value in by_class)
    says_wrong = bool(by_class) or "default" in costs
    return are_numbers and are_by_class and says_wrong


def _cells_of_short_form(costs: Mapping[str, Any], names: Sequence[Hashable]) -> _Cells:
    default = costs.get("default", 1.0)
    miss = _values_by_class(costs.get("miss", {}), names, "miss", may_lack=True)
    alarm = _values_by_class(
        costs.get("false_alarm", {}), names, "false_alarm", may_lack=True
    )
    rows: list[list[Any]] = []
    for a, said in enumerate(names):
        row: list[Any] = []
        for j, true in enumerate(names):
            given = [
                _checked_cost(cost, said, true)
                for cost in (miss[j], alarm[a])
                if cost is not None
            ]
            wrong = max(given) if given else default
            row.append(0.0 if a == j else wrong)
        rows.append(row)
    actions = list(names)
    if ABSTAIN in costs:
        actions.append(ABSTAIN)
        rows.append([costs[ABSTAIN]] * len(names))
    return _Cells(rows, actions, None)


def _values_by_class(
    row: Mapping[Any, Any],
    names: Sequence[Hashable],
    action: Hashable,
    may_lack: bool = False,
) -> list[Any]:
    """Return the values of a mapping of classes in their order; None where there is none."""
    values: list[Any] = [None] * len(names)
    for label, value in row.items():
        values[_place_of_class(label, names)] = value
    if not may_lack and len(row) < len(names):
        missing = next(k for k, value in enumerate(values) if value is None)
        raise _missing_cost_error(action, names[missing])
    return values


def _columns_in_order(cells: _Cells, names: Sequence[Hashable]) -> list[list[Any]]:
    """Return the rows with columns in the order of the classes; each class has one."""
    if cells.classes is None:
        n_columns = len(cells.rows[0]) if cells.rows else 0
        if n_columns != len(names):
            raise InputError(
                "{argument} must have a column for each of the {n} classes; got {found}.",
                argument="costs",
                remedy="Rows are actions, columns are classes.",
                values={"n": len(names), "found": n_columns},
            )
        return [list(row) for row in cells.rows]
    column_of: dict[int, int] = {}
    for k, label in enumerate(cells.classes):
        column_of[_place_of_class(label, names)] = k
    for place, label in enumerate(names):
        if place not in column_of:
            hint = did_you_mean(label, cells.classes)
            raise InputError(
                "{argument} must have a column for each class; {label} has none: {hint}",
                argument="costs",
                values={"label": show(label), "hint": hint},
            )
    order = [column_of[place] for place in range(len(names))]
    return [[row[k] for k in order] for row in cells.rows]


def _place_of_class(label: Any, names: Sequence[Hashable]) -> int:
    """Return the place of a class, which may differ in type: "1" is 1."""
    for place, known in enumerate(names):
        if type(known) is type(label) and known == label:
            return place
    texts = [str(known) for known in names]
    if str(label) in texts:
        return texts.index(str(label))
    raise _unknown_class_error(label, names)


def _unknown_class_error(label: Any, names: Sequence[Hashable]) -> InputError:
    hint = did_you_mean(label, names, "classes are")
    return InputError(
        "{argument} names {label}, which is not a class; {hint}",
        argument="costs",
        value=label,
        values={"label": show(label), "hint": hint},
    )


def _missing_cost_error(action: Hashable, label: Hashable) -> InputError:
    return InputError(
        "{argument} must hold a number in every cell; the cost of {action} where {label} is true "
        "is missing.",
        argument="costs",
        values={"action": show(action), "label": show(label)},
    )


def _checked_cost(value: Any, action: Hashable, label: Hashable) -> float:
    """Return a cost, or refuse it in one sentence."""
    if is_missing(value):
        raise _missing_cost_error(action, label)
    is_number = isinstance(value, (Real, np.number)) and not isinstance(value, bool)
    cost = float(value) if is_number else math.nan
    if math.isfinite(cost) and cost >= 0.0:
        return cost
    remedy = None
    if cost < 0.0:
        remedy = (
            "Add the same number to all actions of that class: no decision changes."
        )
    elif math.isinf(cost):
        remedy = "Leave an action out that must never be taken."
    found = format_number(cost) if is_number else show(value)
    raise InputError(
        "{argument} must hold finite numbers that are not negative; the cost of {action} where "
        "{label} is true is {cost}.",
        argument="costs",
        value=value,
        remedy=remedy,
        values={"action": show(action), "label": show(label), "cost": found},
    )


def _check_actions(actions: Sequence[Hashable]) -> None:
    """Refuse names of actions that are missing or occur twice, and tables of one action."""
    for row, action in enumerate(actions):
        if not isinstance(action, Hashable) or is_missing(action):
            raise InputError(
                "{argument} must name each action; row {row} has no name.",
                argument="costs",
                values={"row": row},
            )
    twice = first_duplicate(map(str, actions))
    if twice is not None:
        raise InputError(
            "{argument} must name each action once; {action} occurs twice.",
            argument="costs",
            values={"action": show(twice)},
        )
    if len(actions) < 2:
        raise InputError(
            "{argument} must hold at least two actions; with one there is nothing to decide.",
            argument="costs",
        )
