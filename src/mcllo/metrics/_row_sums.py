"""What adds over rows: all that a score test and the usual metrics need, in a few sums.

With ``w_i`` the weight of row i (1 without weights):

======================  =====================================================================
statistic, null         ``s`` and the Derivatives of A at the identity (`_model/likelihood`)
low, high               least and largest log odds of each class
hits, log_loss, brier   ``sum w 1{hit}``, ``sum -w log x_true``, ``sum w |x - onehot|^2``
errors, spread          ``sum w (1 - max x)``, ``sum w x_k (1 - x_k)``: how much rows can tell
predicted               ``sum w x_k``, beside the weight of each class (`class_weight`)
changes                 zeros found and raised, rows divided by their sum
======================  =====================================================================

Sums of parts of the rows add by ``+``. Blocks of a file (`_apps/streaming/sums`) and batches of
`StreamingCalibration` derive from them and add what else they need.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from .._fit.objective import free_parameters_from_ranges
from .._model.kernel import Derivatives, LogPartition
from .._model.likelihood import identity_theta, sufficient_statistic
from .._utils.results import Floats
from .._validation.predictions import Predictions
from ._bins import top_label

Rules = Mapping[str, Callable[[Any, Any], Any]]


def add_fields(one: Any, other: Any, rules: Rules | None = None) -> Any:
    """Return a dataclass whose fields are those of two, added, or joined by a rule of their own."""
    rules = rules or {}
    joined = {}
    for field in fields(one):
        join = rules.get(field.name, operator.add)
        joined[field.name] = join(getattr(one, field.name), getattr(other, field.name))
    return type(one)(**joined)


def first_known(one: Any, other: Any) -> Any:
    """Return the first of two that is not None."""
    return other if one is None else one


@dataclass(frozen=True, eq=False)
class CleaningCounts:
    """What the validator did to the rows; names as in `Predictions`."""

    n_zeros: int = 0
    n_clipped: int = 0
    n_clipped_true: int = 0
    n_renormalized: int = 0
    max_row_error: float = 0.0
    clip: float | None = None

    def __add__(self, other: CleaningCounts) -> CleaningCounts:
        rules: Rules = {"max_row_error": max, "clip": first_known}
        return add_fields(self, other, rules)

    @classmethod
    def from_rows(cls, rows: Predictions) -> CleaningCounts:
        """Return the counts of some rows."""
        return cls(**{field.name: getattr(rows, field.name) for field in fields(cls)})


@dataclass(frozen=True, eq=False)
class MetricSums:
    """Sums behind accuracy, log loss and Brier score, and how much the rows can tell."""

    weight: float
    correct_weight: float
    log_loss: float
    brier: float
    expected_errors: float
    predicted_weight: Floats
    spread: Floats

    def __add__(self, other: MetricSums) -> MetricSums:
        return add_fields(self, other)

    @classmethod
    def from_rows(cls, rows: Predictions) -> MetricSums:
        """Return the sums of some rows."""
        probs = rows.probs
        weight = rows.row_weight
        top, most = top_label(probs)
        true_class_probs = probs[np.arange(rows.n_samples), rows.codes]
        squares = np.einsum("ik,ik->i", probs, probs)
        return cls(
            weight=float(weight.sum()),
            correct_weight=float(weight[top == rows.codes].sum()),
            log_loss=_sum_log_loss(true_class_probs, weight),
            brier=float(weight @ (squares - 2.0 * true_class_probs + 1.0)),
            expected_errors=float(weight @ (1.0 - most)),
            predicted_weight=weight @ probs,
            spread=weight @ (probs * (1.0 - probs)),
        )


def _sum_log_loss(true_class_probs: Floats, weight: Floats) -> float:
    """Return ``sum -w log x``; infinite where a row that counts had 0 (logits can give that)."""
    zero = true_class_probs == 0.0
    if not zero.any():
        return -float(weight @ np.log(true_class_probs))
    if weight[zero].any():
        return float("inf")
    return _sum_log_loss(true_class_probs[~zero], weight[~zero])


@dataclass(frozen=True, eq=False, kw_only=True)
class RowSums:
    """Everything that one look at each row gives to a score test and to metrics."""

    class_weight: Floats
    statistic: Floats
    identity_log_partition: Derivatives
    min_log_odds: Floats
    max_log_odds: Floats
    metric_sums: MetricSums
    changes: CleaningCounts

    rules: ClassVar[Rules] = {"min_log_odds": np.minimum, "max_log_odds": np.maximum}
    """How fields are joined that are no sums."""

    def __add__(self, other: Self) -> Self:
        return add_fields(self, other, self.rules)

    @classmethod
    def from_rows(cls, rows: Predictions, **more: Any) -> Self:
        """Return the sums of some rows; `more` are fields of a class derived from this."""
        odds = rows.log_odds
        weight = rows.sample_weight
        log_partition = LogPartition(odds, weight, n_jobs=1)
        return cls(
            class_weight=rows.class_weight,
            statistic=sufficient_statistic(odds, rows.model_codes, weight),
            identity_log_partition=log_partition(identity_theta(len(odds))),
            min_log_odds=odds.min(axis=1),
            max_log_odds=odds.max(axis=1),
            metric_sums=MetricSums.from_rows(rows),
            changes=CleaningCounts.from_rows(rows),
            **more,
        )

    @property
    def free(self) -> NDArray[np.bool_]:
        """Mask over theta: gamma_j is fixed where class j's log odds never vary."""
        return free_parameters_from_ranges(self.max_log_odds - self.min_log_odds)
