"""`decision_value`: what acting on probabilities costs, and what calibration would save.

With costs C, rows x of probabilities, labels y, a(x) the action of least expected cost:

=============  ===================================================================================
promised       ``sum_j C[a(x), j] x_j``
realised       ``C[a(x), y]``; its mean is that of what was promised, if x is calibrated
recalibrated   the same for rows g of a recalibration that was fitted to the other folds
price          realised on x less realised on g, row by row: the price of miscalibration
constant       the one action that is best by the frequencies of the classes in the other folds
perfect        ``min_a C[a, y]``
=============  ===================================================================================

Intervals are those of `mean_costs`. Those of what is fitted (price, recalibrated, constant) are
about the maps of these folds and more rows like these; how maps vary with the rows they are fitted
to is not in them.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal, Unpack

import numpy as np

from .._utils.formatting import (
    Table,
    align_columns,
    ellipsis,
    format_count,
    format_interval,
    format_number,
)
from .._utils.notebook import NotebookResult, show_progress
from .._utils.parallel import one_blas_thread
from .._utils.results import Codes, Floats, Result
from .._utils.statements import Level, Statement, suppress_warnings
from .._validation.predictions import Predictions, as_predictions
from .._validation.row_options import RowOptions, takes_row_options
from ..calibrators import CALIBRATORS
from ..calibrators._choice import (
    apply_calibrator,
    assign_random_folds,
    clone_and_fit,
    is_mcllo_calibrator,
    make_calibrator,
)
from ..exceptions import InputError
from .costs import Costs
from .mean_costs import (
    ROUNDING,
    CostEstimate,
    Units,
    estimate_mean_cost,
    expected_standard_error,
)

N_FOLDS = 5
MIN_UNITS = 20
"""Rows, or groups, from which a recalibration is fitted: four to a fold. A round number."""
MAX_LEARNING_ENTRIES = 400_000
"""Probabilities that the map of a fold is fitted to at most, rows at random: bounds the time."""
TOLERANCE_SHARE = 0.01
"""Part of the realised cost that is too little to matter, where no tolerance is given: round."""

ValueKind = Literal["saves", "harms", "nothing_to_gain", "cannot_tell", "not_computed"]
LEVELS: dict[ValueKind, Level] = {
    "saves": "bad",
    "harms": "good",
    "nothing_to_gain": "good",
    "cannot_tell": "doubt",
    "not_computed": "doubt",
}


@dataclass(frozen=True)
class ActionValue(Result):
    """What one action promised and cost in the rows where it was taken.

    Attributes
    ----------
    action : label
        Its name.
    share : float
        Part of the rows where it is best.
    promised, realised : CostEstimate
        Mean cost by the probabilities, and by the labels.
    shortfall : CostEstimate
        Realised less promised; 0 if the probabilities are calibrated.
    """

    action: Hashable
    share: float
    promised: CostEstimate
    realised: CostEstimate
    shortfall: CostEstimate


@dataclass(frozen=True, eq=False, repr=False)
class DecisionValue(Result, NotebookResult):
    """What acting on probabilities costs, beside what else could be done; print it.

    Attributes
    ----------
    costs : Costs
        What was decided by.
    n_samples : int
        Number of rows.
    promised, realised : CostEstimate
        Mean cost of acting on the probabilities, by themselves and by the labels.
    shortfall : CostEstimate
        Realised less promised, paired; 0 if the probabilities are calibrated.
    by_action : tuple of ActionValue
        The same for the rows of each action that is taken.
    constant : CostEstimate
        Realised cost of always taking the action that is best by the frequencies of the classes.
    constant_action : label
        That action, of most folds.
    over_constant : CostEstimate
        What acting on the probabilities saves against it, paired.
    perfect : CostEstimate
        Cost of knowing the truth.
    recalibrated : CostEstimate or None
        Realised cost of acting on recalibrated probabilities; None where that was not computed.
    price : CostEstimate or None
        The price of miscalibration: what acting on recalibrated probabilities saves, paired.
    changed : float
        Share of the rows whose action a recalibration changes.
    calibrator : str
        What they were recalibrated by.
    confidence : float
        Of each interval.
    reason : str
        Why there is no price; else empty.

    See Also
    --------
    decision_value : Makes it.
    decide : The actions alone.
    Assessment : Whether the probabilities are calibrated.
    mcllo.plot.decision_value : Draws it.

    Examples
    --------
    >>> import mcllo
    >>> rows = mcllo.simulate.draw(2000, n_classes=3, gamma=0.4, distribution="dirichlet", seed=1)
    >>> found = mcllo.decision_value(rows, costs={"miss": {1: 10}}, calibrator="temperature")
    >>> found.verdict(), found.price.low > 0
    ('saves', True)
    """

    costs: Costs
    n_samples: int
    promised: CostEstimate
    realised: CostEstimate
    shortfall: CostEstimate
    by_action: tuple[ActionValue, ...]
    constant: CostEstimate
    constant_action: Hashable
    over_constant: CostEstimate
    perfect: CostEstimate
    recalibrated: CostEstimate | None
    price: CostEstimate | None
    changed: float
    calibrator: str
    confidence: float
    reason: str = ""

    def verdict(self, tolerance: float | None = None) -> ValueKind:
        """Return what recalibration is worth, in one word.

        Parameters
        ----------
        tolerance : float, optional
            Cost of a row that is too little to matter. Default: 1 % of `realised`.

        Returns
        -------
        {"saves", "harms", "nothing_to_gain", "cannot_tell", "not_computed"}
            Whether the interval of `price` lies above 0, below 0, below the tolerance, or neither.
        """
        if self.price is None:
            return "not_computed"
        if self.price.high < 0.0:
            return "harms"
        if self.price.high <= self.tolerance(tolerance):
            return "nothing_to_gain"
        return "saves" if self.price.low > 0.0 else "cannot_tell"

    def tolerance(self, given: float | None = None) -> float:
        """Return the cost of a row that is too little to matter.

        Parameters
        ----------
        given : float, optional
            It, where somebody says so. Default: 1 % of `realised`.

        Returns
        -------
        float
            In units of cost.
        """
        return TOLERANCE_SHARE * self.realised.value if given is None else given

    @property
    def table(self) -> Table:
        """One row for each way to act: its realised cost with the interval."""
        ways: dict[str, CostEstimate | None] = {
            "these probabilities": self.realised,
            "recalibrated": self.recalibrated,
            "best constant action": self.constant,
            "perfect knowledge": self.perfect,
        }
        known = {name: found for name, found in ways.items() if found is not None}
        return Table(
            {
                "acting_on": list(known),
                "cost": [found.value for found in known.values()],
                "low": [found.low for found in known.values()],
                "high": [found.high for found in known.values()],
            }
        )

    def to_frame(self) -> Any:
        """Return the table as a pandas ``DataFrame``."""
        return self.table.to_frame()

    def statements(self, tolerance: float | None = None) -> list[Statement]:
        """Return what is found: kinds value, value.promise, value.constant.

        Parameters
        ----------
        tolerance : float, optional
            Cost of a row that is too little to matter. Default: 1 % of `realised`.

        Returns
        -------
        list of Statement
            The verdict first.
        """
        return [
            self._price_statement(tolerance),
            self._promise_statement(),
            self._constant_statement(),
        ]

    def _price_statement(self, tolerance: float | None) -> Statement:
        kind = self.verdict(tolerance)
        if self.price is None:
            words = f"What recalibration would save was not computed: {self.reason}."
            return Statement("value", words, LEVELS[kind], {"verdict": kind})
        numbers = {"verdict": kind, **self.price.to_dict()}
        price = self.price
        words = {
            "saves": f"Recalibration would save {price} a case{self._share_of_cost()}.",
            "harms": f"Recalibration would cost {price.negated()} a case: act on these "
            "probabilities as they are.",
            "nothing_to_gain": "There is nothing to gain by recalibration: it would save "
            f"{format_number(max(price.high, 0.0))} a case at most.",
            "cannot_tell": "Whether recalibration would save anything cannot be told from these "
            f"rows: {price} a case.",
        }[kind]
        if self.changed == 0.0:
            words = "There is nothing to gain by recalibration: it changes no action in these rows."
        return Statement("value", words, LEVELS[kind], numbers)

    def _share_of_cost(self) -> str:
        """Return the price as a part of the realised cost."""
        assert self.price is not None
        if not self.realised.value > 0.0:
            return ""
        percent = 100.0 * self.price.value / self.realised.value
        return f", {percent:.2g} % of what acting on these probabilities costs"

    def _promise_statement(self) -> Statement:
        promised = format_number(self.promised.value)
        realised = format_number(self.realised.value)
        lead = f"The probabilities promise a cost of {promised} a case, and it was {realised}"
        off = self.shortfall
        numbers = off.to_dict()
        if off.low > 0.0:
            words = f"{lead}: {off} more than promised."
            return Statement("value.promise", words, "bad", numbers)
        if off.high < 0.0:
            words = f"{lead}: {off.negated()} less than promised."
            return Statement("value.promise", words, "doubt", numbers)
        words = f"{lead}; the difference may be chance."
        return Statement("value.promise", words, numbers=numbers)

    def _constant_statement(self) -> Statement:
        always = f"always taking {ellipsis(self.constant_action)}"
        saved = self.over_constant
        numbers = saved.to_dict()
        if saved.low > 0.0:
            words = f"Acting on them saves {saved} a case against {always}."
            return Statement("value.constant", words, "good", numbers)
        if saved.high < 0.0:
            words = f"Acting on them costs {saved.negated()} a case more than {always}."
            return Statement("value.constant", words, "bad", numbers)
        words = (
            f"Whether acting on them costs less than {always} cannot be told from these rows: "
            f"they save {saved} a case."
        )
        return Statement("value.constant", words, "doubt", numbers)

    def to_dict(self, tolerance: float | None = None) -> dict[str, Any]:
        """Return plain Python values, the verdict and its words among them.

        Parameters
        ----------
        tolerance : float, optional
            Cost of a row that is too little to matter. Default: 1 % of `realised`.

        Returns
        -------
        dict
            Ready for strict JSON.
        """
        said = [
            {"kind": s.kind, "text": s.text, "level": s.level}
            for s in self.statements(tolerance)
        ]
        return {
            "verdict": self.verdict(tolerance),
            "tolerance": self.tolerance(tolerance),
            **super().to_dict(),
            "statements": said,
        }

    def text(self, tolerance: float | None = None) -> str:
        """Return what ``print`` shows, at another tolerance.

        Parameters
        ----------
        tolerance : float, optional
            Cost of a row that is too little to matter. Default: 1 % of `realised`.

        Returns
        -------
        str
            Verdict, costs, and each action.
        """
        heading = (
            f"Decisions by {format_count(self.n_samples)} predictions: "
            f"{len(self.costs.actions)} actions, {len(self.costs.classes)} classes"
        )
        said = [statement.text for statement in self.statements(tolerance)]
        notes = [
            f"Costs are of one case; intervals of {100.0 * self.confidence:g} %. "
            "Realised costs are of these rows, promised ones what the probabilities expect."
        ]
        if self.price is not None:
            notes.append(
                f"Recalibrated by {self.calibrator}, each row by a map fitted to other rows "
                f"({N_FOLDS} folds); it changes {100.0 * self.changed:.3g} % of the actions."
            )
        blocks = [heading, "\n".join(said), self._costs_text(), self._actions_text()]
        return "\n\n".join([*blocks, "\n".join(notes)])

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<DecisionValue of {self.n_samples} rows: {self.verdict()}>"

    def _costs_text(self) -> str:
        rows = [["acting on", "cost", "interval"]]
        for name, cost, low, high in zip(
            *(self.table[column] for column in self.table.columns), strict=True
        ):
            if name == "best constant action":
                name = f"{name}: {ellipsis(self.constant_action)}"
            rows.append([name, format_number(cost), format_interval(low, high)])
        return align_columns(rows)

    def _actions_text(self) -> str:
        rows = [["action", "share", "promised", "realised", "realised - promised"]]
        for each in self.by_action:
            off = each.shortfall
            shown = f"{format_number(off.value)} {format_interval(off.low, off.high)}"
            rows.append(
                [
                    ellipsis(each.action),
                    f"{100.0 * each.share:.1f} %",
                    format_number(each.promised.value),
                    format_number(each.realised.value),
                    shown,
                ]
            )
        return align_columns(rows)


@takes_row_options(RowOptions)
def decision_value(
    probs: Any = None,
    y: Any = None,
    costs: Any = None,
    *,
    abstain: float | None = None,
    calibrator: Any = "auto",
    confidence: float = 0.95,
    seed: int = 0,
    **data: Unpack[RowOptions],
) -> DecisionValue:
    """Ask what acting on probabilities costs, and what recalibration would save.

    Parameters
    ----------
    probs : array-like, frame or Predictions
        Predicted probabilities, shape (n_samples, n_classes).
    y : array-like of shape (n_samples,)
        The labels that came true; not given beside a `Predictions`.
    costs : array-like, frame, mapping or Costs
        What each action (row) costs where each class (column) is true, in any form of `Costs`.
    abstain : float, optional
        Cost of answering nothing: adds an action ``abstain``.
    calibrator : str, calibrator or None
        What to recalibrate by: a key of `CALIBRATORS` or a calibrator, not fitted. None leaves the
        price out.
    confidence : float
        Of each interval.
    seed : int
        What folds are drawn from.
    logits, classes, prefix, sample_weight, normalize, clip, missing, weight_kind : optional
        How rows are read; each is described in `Predictions.from_arrays`.
    groups : array-like of shape (n_samples,), optional
        Group of each row (an animal, a patient): rows of one may depend on each other. Folds leave
        out whole groups, and intervals go by groups.

    Returns
    -------
    DecisionValue
        `promised`, `realised`, `price` and what they are held against; print it.

    Raises
    ------
    InputError
        When data or costs break a rule; the message names the value and the remedy.

    See Also
    --------
    decide : The actions alone, without labels.
    DecisionClassifier : A classifier that acts.
    assess : Whether the probabilities are calibrated.
    compare : Which recalibration to take.

    Notes
    -----
    Each row is recalibrated by a map that was fitted to other rows (5 folds at random), so that the
    price is not flattered by the fit. It is a lower bound of what miscalibration costs: a richer
    recalibration, or one learned from more rows, may save more. Acting on calibrated probabilities
    costs what they promise, whatever the costs; that is decision calibration [1]_. Zeros are
    clipped as everywhere (`clip`).

    References
    ----------
    .. [1] S. Zhao, M. P. Kim, R. Sahoo, T. Ma, S. Ermon (2021). Calibrating predictions to
           decisions: a novel approach to multi-class calibration. NeurIPS 34.

    Examples
    --------
    >>> import mcllo
    >>> rows = mcllo.simulate.draw(2000, n_classes=3, gamma=0.4, distribution="dirichlet", seed=1)
    >>> found = decision_value(rows, costs={"miss": {1: 10}}, calibrator="temperature")
    >>> found.statements()[0].text[:54]
    'Recalibration would save 0.095 (0.030 to 0.16) a case,'
    """
    check_confidence(confidence)
    predictions = as_predictions(probs, y, **data)
    if costs is None:
        raise InputError(argument="costs", rule="be given", found="none")
    table = Costs.from_table(costs, predictions.classes, abstain=abstain)
    return value_decisions(
        predictions, table, calibrator, confidence=confidence, seed=seed
    )


def check_confidence(confidence: float) -> None:
    """Refuse a confidence that does not lie between 0 and 1."""
    if not 0.0 < confidence < 1.0:
        raise InputError(
            argument="confidence", rule="lie between 0 and 1", value=confidence
        )


@show_progress("pricing decisions")
@one_blas_thread()
def value_decisions(
    predictions: Predictions,
    costs: Costs,
    calibrator: Any = "auto",
    *,
    confidence: float = 0.95,
    seed: int = 0,
) -> DecisionValue:
    """Return the value of decisions by validated rows and costs."""
    units = Units.of(predictions)
    matrix = costs.matrix
    codes = predictions.codes
    least, most = _range_of(matrix)

    def of_costs(values: Floats) -> CostEstimate:
        return estimate_mean_cost(values, units, (least, most), confidence)

    def of_difference(values: Floats) -> CostEstimate:
        span = most - least
        return estimate_mean_cost(values, units, (-span, span), confidence)

    expected = costs.expected(predictions.probs)
    actions = expected.argmin(axis=1)
    promised = expected[np.arange(len(actions)), actions]
    del expected  # a number for each row and action
    realised = matrix[actions, codes]
    shortfall = realised - promised
    shortfall[np.abs(shortfall) <= ROUNDING * most] = 0.0

    folds, why_none = choose_folds(predictions, seed)
    constant = _constant_actions(predictions, costs, folds)
    constant_costs = matrix[constant, codes]
    name = calibrator_name(calibrator)
    recalibrated = None
    price = None
    changed = 0.0
    if calibrator is None:
        why_none = "no calibrator was given"
    elif folds is not None:
        after = cross_fitted_probs(predictions, calibrator, folds, seed)
        other = costs.best_actions(after)
        costs_after = matrix[other, codes]
        recalibrated = of_costs(costs_after)
        price = _price(predictions, costs, actions, other, after, units, confidence)
        changed = float(np.average(other != actions, weights=units.weight))
    chosen = np.bincount(constant, units.weight, len(costs.actions))
    of_truth = matrix.min(axis=0)
    return DecisionValue(
        costs=costs,
        n_samples=predictions.n_samples,
        promised=of_costs(promised),
        realised=of_costs(realised),
        shortfall=of_difference(shortfall),
        by_action=_value_by_action(
            predictions, costs, actions, promised, shortfall, units, confidence
        ),
        constant=estimate_mean_cost(
            constant_costs, units, _range_of(matrix[np.unique(constant)]), confidence
        ),
        constant_action=costs.actions[int(chosen.argmax())],
        over_constant=of_difference(constant_costs - realised),
        perfect=estimate_mean_cost(
            of_truth[codes],
            units,
            _range_of(of_truth),
            confidence,
        ),
        recalibrated=recalibrated,
        price=price,
        changed=changed,
        calibrator=name,
        confidence=confidence,
        reason=why_none if price is None else "",
    )


def _range_of(costs: Floats) -> tuple[float, float]:
    """Return the least and the largest of some costs."""
    return float(costs.min()), float(costs.max())


def calibrator_name(calibrator: Any) -> str:
    """Return what a calibrator is called; nothing where there is none."""
    if calibrator is None:
        return ""
    own = make_calibrator(calibrator, CALIBRATORS)
    return str(own.method if is_mcllo_calibrator(own) else type(own).__name__)


def choose_folds(predictions: Predictions, seed: int) -> tuple[Codes | None, str]:
    """Return a fold for each row, or None and why there are none."""
    what = "rows"
    n_units = predictions.n_samples
    if predictions.groups is not None:
        what = "groups"
        n_units = int(predictions.groups.max()) + 1
    if n_units < MIN_UNITS:
        return None, f"{n_units} {what} are too few to leave any out"
    groups = predictions.groups
    return assign_random_folds(predictions.n_samples, N_FOLDS, seed, groups), ""


def _constant_actions(
    predictions: Predictions, costs: Costs, folds: Codes | None
) -> Codes:
    """Return for each row the action that is best by the frequencies of the other folds."""
    total = predictions.class_weight
    if folds is None:
        best = int((costs.matrix @ total).argmin())
        return np.full(predictions.n_samples, best)
    best_of_fold = np.empty(N_FOLDS, dtype=np.intp)
    for fold in range(N_FOLDS):
        is_own = folds == fold
        own = np.bincount(
            predictions.codes[is_own],
            predictions.row_weight[is_own],
            predictions.n_classes,
        )
        best_of_fold[fold] = (costs.matrix @ (total - own)).argmin()
    actions: Codes = best_of_fold[folds]
    return actions


def cross_fitted_probs(
    predictions: Predictions, calibrator: Any, folds: Codes, seed: int
) -> Floats:
    """Return probabilities recalibrated by maps that were fitted to the other folds."""
    own = make_calibrator(calibrator, CALIBRATORS)
    max_rows = max(MAX_LEARNING_ENTRIES // predictions.n_classes, 1000)
    rng = np.random.default_rng([seed, 5])  # a stream of its own among those of a seed
    recalibrated = np.empty(predictions.probs.shape)
    with suppress_warnings():  # of maps that are fitted to judge
        for fold in range(int(folds.max()) + 1):
            learning = np.flatnonzero(folds != fold)
            if len(learning) > max_rows:
                taken = rng.choice(len(learning), max_rows, replace=False)
                learning = learning[np.sort(taken)]
            held_out = np.flatnonzero(folds == fold)
            fitted = clone_and_fit(own, predictions.take(learning))
            recalibrated[held_out] = apply_calibrator(
                fitted, predictions.take(held_out)
            )
    return recalibrated


def _price(
    predictions: Predictions,
    costs: Costs,
    actions: Codes,
    other: Codes,
    after: Floats,
    units: Units,
    confidence: float,
) -> CostEstimate:
    """Return what taking the `other` actions, those by the probabilities `after`, saves."""
    if np.array_equal(after, predictions.probs):
        return CostEstimate(0.0, 0.0, 0.0, 0.0)  # in every row there can be
    rows = np.arange(predictions.n_samples)
    by_class = costs.matrix[actions] - costs.matrix[other]
    expected = expected_standard_error(by_class, after, units)
    span = float(np.ptp(costs.matrix))
    saved = by_class[rows, predictions.codes]
    return estimate_mean_cost(saved, units, (-span, span), confidence, expected)


def _value_by_action(
    predictions: Predictions,
    costs: Costs,
    actions: Codes,
    promised: Floats,
    shortfall: Floats,
    units: Units,
    confidence: float,
) -> tuple[ActionValue, ...]:
    """Return promised and realised costs of the rows of each action that is taken.

    Of a rare action no row may have gone wrong: the spread of its shortfall is at least what the
    probabilities expect of labels.
    """
    shares = np.bincount(actions, units.weight, len(costs.actions)) / units.weight.sum()
    found = []
    for code in np.flatnonzero(shares > 0.0).tolist():
        rows = np.flatnonzero(actions == code)
        own = units.take(rows)
        least, most = _range_of(costs.matrix[code])
        said = promised[rows]
        off = shortfall[rows]
        bounds = (least, most)
        found.append(
            ActionValue(
                action=costs.actions[code],
                share=float(shares[code]),
                promised=estimate_mean_cost(said, own, bounds, confidence),
                realised=estimate_mean_cost(said + off, own, bounds, confidence),
                shortfall=estimate_mean_cost(
                    off,
                    own,
                    (least - most, most - least),
                    confidence,
                    expected_standard_error(
                        costs.matrix[code] - said[:, None], predictions.probs[rows], own
                    ),
                ),
            )
        )
    return tuple(found)
