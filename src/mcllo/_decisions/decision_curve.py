"""`decision_curve`: net benefit of acting on the risk of one class, for any threshold.

With p the risk of the class that is looked for, t a threshold, of n rows:

==============  =================================================================================
net benefit     ``TP / n - FP / n * t / (1 - t)``: of acting where ``p >= t`` [1]_
treat all       ``pi - (1 - pi) t / (1 - t)``, pi the share of the class; treat none: 0
costs           a false alarm 1, a miss ``(1 - t) / t``: acting where ``p >= t`` has the least
                expected cost, and net benefit is ``pi - t / (1 - t) * cost`` of it
==============  =================================================================================

A row's share in the net benefit is ``1`` where it is a true positive, ``-t / (1 - t)`` where it is
a false one, else 0: net benefit is a mean, with the intervals of `mean_costs`.

References
----------
.. [1] A. J. Vickers, E. B. Elkin (2006). Decision curve analysis: a novel method for evaluating
       prediction models. Medical Decision Making 26:565-574.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from .._utils.formatting import Table, ellipsis, format_count
from .._utils.notebook import NotebookResult
from .._utils.results import Floats, Result
from .._validation.labels import find_class
from .._validation.predictions import as_predictions
from .._validation.row_options import RowOptions, takes_row_options
from ..exceptions import InputError
from .decision_value import (
    calibrator_name,
    check_confidence,
    choose_folds,
    cross_fitted_probs,
)
from .mean_costs import Units, estimate_mean_cost, expected_standard_error

THRESHOLDS = tuple(k / 100 for k in range(1, 100))
"""Thresholds where none are given: 1 % to 99 %."""
ROUNDING_OF_RISK = 1e-12
"""Distance up to which a risk equals a threshold: .3 is 1 less .7."""


@dataclass(frozen=True, eq=False, repr=False)
class DecisionCurve(Result, NotebookResult):
    """Net benefit by threshold, of the risks, of recalibrated ones, of all and of none; print it.

    Attributes
    ----------
    table : Table
        One row for each threshold: `threshold`, `net_benefit`, `low`, `high`; `treat_all`; and,
        after recalibration, `recalibrated`, `recalibrated_low`, `recalibrated_high`, and `gain`,
        `gain_low`, `gain_high`, what recalibration adds, paired.
    positive : label
        The class that is looked for.
    prevalence : float
        Its share.
    n_samples : int
        Number of rows.
    calibrator : str
        What they were recalibrated by; empty where they were not.
    confidence : float
        Of each interval, threshold by threshold.

    See Also
    --------
    decision_curve : Makes it.
    decision_value : The same for one table of costs, and more than two classes.
    mcllo.plot.decision_curve : Draws it.

    Examples
    --------
    >>> risks = [[0.9, 0.1], [0.7, 0.3], [0.4, 0.6], [0.8, 0.2]]
    >>> curve = decision_curve(risks, [0, 1, 1, 0], thresholds=[0.25], calibrator=None)
    >>> curve.table["net_benefit"], curve.table["treat_all"][0] == 0.5 - 0.5 / 3
    ([0.5], True)
    """

    table: Table
    positive: Hashable
    prevalence: float
    n_samples: int
    calibrator: str
    confidence: float

    def to_frame(self) -> Any:
        """Return the table as a pandas ``DataFrame``."""
        return self.table.to_frame()

    def __str__(self) -> str:
        heading = (
            f"Net benefit of acting on the risk of {ellipsis(self.positive)} "
            f"({100.0 * self.prevalence:.3g} % of {format_count(self.n_samples)} rows), intervals "
            f"of {100.0 * self.confidence:g} %, threshold by threshold"
        )
        return f"{heading}\n\n{self.table}"

    def __repr__(self) -> str:
        return f"<DecisionCurve of {self.n_samples} rows>"


@takes_row_options(RowOptions)
def decision_curve(
    probs: Any = None,
    y: Any = None,
    *,
    positive: Hashable | None = None,
    thresholds: Sequence[float] | None = None,
    calibrator: Any = "auto",
    confidence: float = 0.95,
    seed: int = 0,
    **data: Unpack[RowOptions],
) -> DecisionCurve:
    """Return the net benefit of acting where the risk of a class reaches a threshold.

    Parameters
    ----------
    probs : array-like, frame or Predictions
        Predicted probabilities, shape (n_samples, n_classes).
    y : array-like of shape (n_samples,)
        The labels that came true; not given beside a `Predictions`.
    positive : label, optional
        The class that is looked for. Default: the second of two classes; of more it must be given,
        and the others are taken together.
    thresholds : sequence of float, optional
        Risks from which on one acts, between 0 and 1. Default: 0.01, 0.02, ..., 0.99.
    calibrator : str, calibrator or None
        What to recalibrate by, each row by a map fitted to other folds. None leaves it out.
    confidence : float
        Of each interval.
    seed : int
        What folds are drawn from.
    logits, classes, prefix, sample_weight, normalize, clip, missing, weight_kind, groups : optional
        How rows are read; each is described in `Predictions.from_arrays`.

    Returns
    -------
    DecisionCurve
        `table`, one row for each threshold.

    See Also
    --------
    decision_value : The same for one table of costs, and more than two classes.
    abstention_curve : Error against the share answered.

    Notes
    -----
    Net benefit is in true positives a row: a false positive at threshold t counts as t / (1 - t) of
    a miss [1]_. A threshold says how many false alarms a hit is worth; choose its range beforehand.
    Miscalibration lowers the net benefit only where it moves risks across the threshold [2]_.

    References
    ----------
    .. [1] A. J. Vickers, E. B. Elkin (2006). Decision curve analysis: a novel method for evaluating
           prediction models. Medical Decision Making 26:565-574.
    .. [2] B. Van Calster, A. J. Vickers (2015). Calibration of risk prediction models: impact on
           decision-analytic performance. Medical Decision Making 35:162-169.

    Examples
    --------
    Acting on the two risks of .3 and more finds both cases: net benefit 2/4.

    >>> risks = [[0.9, 0.1], [0.7, 0.3], [0.4, 0.6], [0.8, 0.2]]
    >>> curve = decision_curve(risks, [0, 1, 1, 0], thresholds=[0.3, 0.5], calibrator=None)
    >>> curve.table["net_benefit"]
    [0.5, 0.25]
    """
    check_confidence(confidence)
    predictions = as_predictions(probs, y, **data)
    classes = predictions.classes
    if positive is None:
        if len(classes) > 2:
            raise InputError(
                f"{{argument}} must name the class that is looked for; there are {len(classes)}.",
                argument="positive",
            )
        positive = classes[1]
    column = find_class(positive, classes, "positive")
    cutoffs = _checked_thresholds(thresholds)
    is_case = predictions.codes == column
    units = Units.of(predictions)
    prevalence = float(np.average(is_case, weights=units.weight))
    name = ""
    after = None
    if calibrator is not None:
        folds, why_none = choose_folds(predictions, seed)
        if folds is None:
            raise InputError(
                f"{why_none}; recalibrating needs other rows.",
                remedy="Pass {calibrator:None} for the curve of these probabilities.",
                values={},
            )
        name = calibrator_name(calibrator)
        after = cross_fitted_probs(predictions, calibrator, folds, seed)[:, column]
    rows = []
    for cutoff in cutoffs:
        odds = cutoff / (1.0 - cutoff)
        acts = _acts(predictions.probs[:, column], cutoff)
        benefit = np.where(is_case, 1.0, -odds)
        before = acts * benefit
        found = estimate_mean_cost(before, units, (-odds, 1.0), confidence)
        row: dict[str, float] = {
            "threshold": cutoff,
            "net_benefit": found.value,
            "low": found.low,
            "high": found.high,
            "treat_all": prevalence - (1.0 - prevalence) * odds,
        }
        if after is not None:
            acts_after = _acts(after, cutoff)
            own = acts_after * benefit
            other = estimate_mean_cost(own, units, (-odds, 1.0), confidence)
            # as for the price of miscalibration: few rows cross the threshold
            change = (acts_after - acts)[:, None] * np.array([-odds, 1.0])
            risks = np.column_stack([1.0 - after, after])
            gain = estimate_mean_cost(
                own - before,
                units,
                (-1.0 - odds, 1.0 + odds),
                confidence,
                expected_standard_error(change, risks, units),
            )
            row |= {
                "recalibrated": other.value,
                "recalibrated_low": other.low,
                "recalibrated_high": other.high,
                "gain": gain.value,
                "gain_low": gain.low,
                "gain_high": gain.high,
            }
        rows.append(row)
    table = Table({key: [row[key] for row in rows] for key in rows[0]})
    return DecisionCurve(
        table,
        classes[column],
        prevalence,
        predictions.n_samples,
        name,
        confidence,
    )


def _acts(risks: Floats, cutoff: float) -> Floats:
    """Return 1 for each row whose risk reaches the threshold, else 0."""
    return (risks >= cutoff - ROUNDING_OF_RISK).astype(np.float64)


def _checked_thresholds(thresholds: Sequence[float] | None) -> list[float]:
    cutoffs = list(THRESHOLDS if thresholds is None else thresholds)
    if not cutoffs:
        raise InputError(argument="thresholds", rule="hold at least one", found="none")
    for cutoff in cutoffs:
        if not 0.0 < float(cutoff) < 1.0:
            raise InputError(
                argument="thresholds", rule="lie between 0 and 1", value=cutoff
            )
    return [float(cutoff) for cutoff in cutoffs]
