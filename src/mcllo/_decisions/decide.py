"""`decide`: the action of least expected cost for each row of probabilities.

With costs ``C[a, j]`` of action a where class j is true and a row g of probabilities:

=============  ===============================================================
expected       ``e_a = sum_j C[a, j] g_j``
best action    ``argmin_a e_a``; of equal ones the first in the table of costs
promised       ``min_a e_a``: the mean cost, if g is right
=============  ===============================================================
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._utils.formatting import Table
from .._utils.results import Codes, Floats, Result
from .._validation.frames import select_by_prefix
from .._validation.labels import as_class_list
from .._validation.predictions import Predictions
from .._validation.probabilities import clean_logits, clean_probs
from ..calibrators._base import label_array
from ..exceptions import InputError
from .costs import Costs


@dataclass(frozen=True, eq=False, repr=False)
class Decisions(Result):
    """The best action of each row, and what every action is expected to cost; print it.

    Attributes
    ----------
    costs : Costs
        What was decided by.
    codes : ndarray of shape (n_samples,)
        The best action of each row, as its place in ``costs.actions``.
    expected : ndarray of shape (n_samples, n_actions)
        Expected cost of each action, if the probabilities are right.

    See Also
    --------
    decide : Makes it.
    decision_value : What acting so costs on labelled rows.
    Costs : The table of costs.

    Examples
    --------
    >>> costs = {"treat": {"ill": 1, "well": 4}, "wait": {"ill": 50, "well": 0}}
    >>> found = decide([[0.02, 0.98], [0.3, 0.7]], costs, classes=["ill", "well"])
    >>> print(found)
    action  rows  share  expected_cost
    treat      1   0.50           3.10
    wait       1   0.50           1.00
    >>> found.actions
    array(['wait', 'treat'], dtype='<U5')
    """

    costs: Costs
    codes: Codes
    expected: Floats

    @property
    def actions(self) -> NDArray[Any]:
        """The best action of each row, by name."""
        return label_array(self.costs.actions)[self.codes]

    @property
    def promised(self) -> Floats:
        """Expected cost of the best action of each row."""
        rows = np.arange(len(self.codes))
        promised: Floats = self.expected[rows, self.codes]
        return promised

    @property
    def table(self) -> Table:
        """One row for each action: how often it is best, and what it is then expected to cost."""
        n_actions = len(self.costs.actions)
        counts = np.bincount(self.codes, minlength=n_actions)
        totals = np.bincount(self.codes, self.promised, n_actions)
        means = totals / np.where(counts > 0, counts, np.nan)
        columns: dict[str, Sequence[Any]] = {
            "action": list(self.costs.actions),
            "rows": counts.tolist(),
            "share": (counts / len(self.codes)).tolist(),
            "expected_cost": means.tolist(),
        }
        return Table(columns)

    def to_frame(self) -> Any:
        """Return a pandas ``DataFrame``: action, its expected cost, and that of every action."""
        columns: dict[str, Sequence[Any]] = {
            "action": self.actions.tolist(),
            "expected_cost": self.promised.tolist(),
        }
        for action, cost in zip(self.costs.actions, self.expected.T, strict=True):
            columns[f"cost_{action}"] = cost.tolist()
        return Table(columns).to_frame()

    def __str__(self) -> str:
        return str(self.table)

    def __repr__(self) -> str:
        return f"<Decisions of {len(self.codes)} rows>"


def decide(
    probs: Any = None,
    costs: Any = None,
    *,
    abstain: float | None = None,
    logits: Any = None,
    classes: Sequence[Hashable] | None = None,
    prefix: str = "",
    normalize: bool = False,
) -> Decisions:
    """Return the action of least expected cost for each row.

    Parameters
    ----------
    probs : array-like, frame or Predictions of shape (n_samples, n_classes)
        Probabilities; no labels are needed.
    costs : array-like, frame, mapping or Costs
        What each action (row) costs where each class (column) is true: a matrix, a frame with
        names, ``{"treat": {"ill": 1, "well": 4}, ...}``, or the short form
        ``{"miss": {"cancer": 50}, "default": 1}``; see `Costs`. Actions need not be classes.
    abstain : float, optional
        Cost of answering nothing: adds an action ``abstain``.
    logits : array-like or frame, optional
        Scores before the softmax, instead of `probs`.
    classes : sequence, optional
        The label of each column; for a frame, the columns to use. Default: the names of a frame's
        columns, else 0 .. c-1.
    prefix : str
        What stands before a class in the name of a frame's column.
    normalize : bool
        Accept rows that do not sum to 1 (rounded files) and divide them by their sum.

    Returns
    -------
    Decisions
        `actions`, one for each row; `expected`, the cost of every action; `promised`.

    Raises
    ------
    InputError
        Where rows are no probabilities, or costs are incomplete, negative or not finite.

    See Also
    --------
    decision_value : What acting so costs on labelled rows, and what recalibration would save.
    DecisionClassifier : The same as a classifier of scikit-learn.
    Costs : All forms that costs may have.

    Notes
    -----
    The action is best if the probabilities are calibrated; `assess` asks whether they are. Of equal
    actions the first in the table is taken.

    Examples
    --------
    >>> found = decide([[0.7, 0.2, 0.1], [0.34, 0.33, 0.33]], [[0, 1, 5], [2, 0, 2], [4, 1, 0]])
    >>> found.actions, found.promised.round(2)
    (array([0, 1]), array([0.7 , 1.34]))
    >>> decide([[0.34, 0.33, 0.33]], {"default": 1}, abstain=0.6).actions
    array(['abstain'], dtype=object)
    """
    rows = _rows_to_decide(probs, logits, classes, prefix, normalize)
    if costs is None:
        raise InputError(argument="costs", rule="be given", found="none")
    table = Costs.from_table(costs, rows.classes, abstain=abstain)
    expected = table.expected(rows.probs)
    return Decisions(table, expected.argmin(axis=1), expected)


class _Rows(NamedTuple):
    probs: Floats
    classes: Sequence[Hashable]


def _rows_to_decide(
    probs: Any,
    logits: Any,
    classes: Sequence[Hashable] | None,
    prefix: str,
    normalize: bool,
) -> _Rows:
    """Return clean probabilities, zeros and all, with the label of each column."""
    if isinstance(probs, Predictions):
        return _Rows(probs.probs, probs.classes)
    if (probs is None) == (logits is None):
        found = "both" if logits is not None else "neither"
        raise InputError(argument="probs", rule="be given (or {logits})", found=found)
    names = None if classes is None else as_class_list(classes)
    if prefix and probs is not None:
        probs = select_by_prefix(probs, prefix, names, "probs")
    if prefix and logits is not None:
        logits = select_by_prefix(logits, prefix, names, "logits")
    if logits is not None:
        simplex = clean_logits(logits, columns=names)
    else:
        simplex = clean_probs(
            probs, columns=names, normalize=normalize, keep_zeros=True
        )
    labels: Sequence[Hashable] | None = names or simplex.names
    if labels is None:
        labels = range(simplex.probs.shape[1])
    return _Rows(simplex.probs, labels)
