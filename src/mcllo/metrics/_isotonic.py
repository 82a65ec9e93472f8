"""Reliability by isotonic regression (CORP; Dimitriadis, Gneiting and Jordan 2021), without bins.

Predictions of one class, or of each row's most probable class, and whether it came true:

===============  ==========================================================================
values           distinct predictions ``x_1 < ... < x_m``, of weight ``w_u``, with frequencies
                 of hits ``f_u``: equal predictions are one
curve            ``g = argmin sum_u w_u (f_u - g_u)^2`` over ``g_1 <= ... <= g_m``, found by
                 pooling neighbours that violate the order
block            a run of values with one g: the frequency of hits among its rows
between values   straight lines
score            ``S(p) = mean (p - hit)^2`` (Brier, of this class alone), or
                 ``S(p) = -mean (hit log p + (1 - hit) log(1 - p))``
miscalibration   ``S(x) - S(g)``: what the best monotone recalibration gains
discrimination   ``S(r) - S(g)``, r the frequency of hits among all rows
uncertainty      ``S(r)``
score            ``S(x) = miscalibration - discrimination + uncertainty``
===============  ==========================================================================

g is best for every proper score at once, so neither part is negative. It is fitted to the rows it
is judged on: calibrated predictions show some miscalibration too (`_inference/consistency` says how
much, and draws the band).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .._utils.results import Floats
from .._validation.predictions import Predictions, predictions_for_scoring
from ..exceptions import InputError
from ._reliability import values_and_hits
from ._scores import Classes, ScoreDecomposition

Score = Literal["brier", "log_loss"]


@dataclass(frozen=True, eq=False)
class PooledPredictions:
    """Rows with equal predictions as one.

    Attributes
    ----------
    values : ndarray of shape (m,)
        Distinct predictions, ascending.
    weight, frequency : ndarray of shape (m,)
        Weight of the rows of each, and how often they hit.
    """

    values: Floats
    weight: Floats
    frequency: Floats

    @classmethod
    def from_values(
        cls, values: Floats, hits: Floats, weight: Floats | None = None
    ) -> PooledPredictions:
        """Pool rows; those of weight 0 are none."""
        if weight is None:
            weight = np.ones(len(values))
        counts = weight > 0.0
        if not counts.all():
            values = values[counts]
            hits = hits[counts]
            weight = weight[counts]
        distinct, index = np.unique(values, return_inverse=True)
        total = np.bincount(index, weight).astype(np.float64)
        frequency = np.bincount(index, weight * hits) / total
        return cls(distinct, total, frequency)

    def curve(self) -> Floats:
        """Return g at each value."""
        return isotonic_fit(self.frequency, self.weight)

    def decompose_score(self, score: Score = "brier") -> ScoreDecomposition:
        """Return the parts of a score."""
        overall = np.average(self.frequency, weights=self.weight)
        uninformed = np.full(len(self.values), overall)
        score_as_given = mean_score(self.values, self.frequency, self.weight, score)
        score_of_best = mean_score(self.curve(), self.frequency, self.weight, score)
        score_uninformed = mean_score(uninformed, self.frequency, self.weight, score)
        return ScoreDecomposition(
            miscalibration=score_as_given - score_of_best,
            discrimination=score_uninformed - score_of_best,
            uncertainty=score_uninformed,
            score=score_as_given,
        )


def isotonic_fit(frequency: Floats, weight: Floats) -> Floats:
    """Return the weighted least-squares fit among sequences that never fall, within [0, 1]."""
    from scipy.optimize import isotonic_regression

    # Pooled means may leave [0, 1] by rounding, and the log loss would be no number.
    return np.clip(isotonic_regression(frequency, weights=weight).x, 0.0, 1.0)


def mean_score(
    predicted: Floats, frequency: Floats, weight: Floats, score: Score
) -> float:
    """Return the mean score of predictions whose rows hit with these frequencies.

    The log loss is infinite where an event of probability 0 happened.
    """
    if score == "log_loss":
        from scipy.special import xlogy

        with np.errstate(divide="ignore"):
            rows = -xlogy(frequency, predicted) - xlogy(
                1.0 - frequency, 1.0 - predicted
            )
    elif score == "brier":
        # Of pooled rows: the second part is the variance of their hits around the frequency.
        rows = (predicted - frequency) ** 2 + frequency * (1.0 - frequency)
    else:
        raise InputError(f"score must be 'brier' or 'log_loss'; got score={score!r}.")
    return float(np.average(rows, weights=weight)) + 0.0  # -0.0 + 0.0 is 0.0


def pool_equal_predictions(
    predictions: Predictions, label: Hashable | None
) -> PooledPredictions:
    """Return the rows of one class, or of the most probable ones, pooled."""
    values, hits = values_and_hits(predictions, label)
    return PooledPredictions.from_values(values, hits, predictions.sample_weight)


def decompose_isotonic(
    y_true: Any,
    y_prob: Any,
    *,
    label: Hashable | None = None,
    score: Score = "brier",
    sample_weight: Any = None,
    classes: Classes = None,
) -> ScoreDecomposition:
    """Split a score into miscalibration, discrimination and uncertainty by isotonic regression.

    Of one class against the rest, or of the most probable class; neither part is negative.
    `decompose_brier` and `decompose_log_loss` take all classes at once and recalibrate by shifts
    and slopes instead.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels that came true.
    y_prob : array-like or frame of shape (n_samples, n_classes)
        Predicted probabilities; zeros stay zeros.
    label : label, optional
        The class. Default: the most probable class of each row (of ties, the first).
    score : {"brier", "log_loss"}
        Mean squared distance of the class's probability from 0 or 1; or mean negative log
        probability of what happened.
    sample_weight : array-like of shape (n_samples,), optional
        Row i counts as ``sample_weight[i]`` rows.
    classes : sequence, optional
        The label of each column. Default: the frame's column names, else the sorted distinct
        labels.

    Returns
    -------
    ScoreDecomposition
        `miscalibration`, `discrimination`, `uncertainty` and `score`; the first less the second
        plus the third is the score.

    See Also
    --------
    mcllo.isotonic_curve : The curve behind it, with a band.
    decompose_brier : All classes at once, by shifts and slopes.
    decompose_log_loss : The same of the log loss.

    Notes
    -----
    This is the CORP decomposition of [1]_: miscalibration is what isotonic regression on these very
    rows improves the score by.

    References
    ----------
    .. [1] T. Dimitriadis, T. Gneiting, A. I. Jordan (2021). Stable reliability diagrams for
           probabilistic classifiers. Proceedings of the National Academy of Sciences 118 (8).

    Examples
    --------
    >>> y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6], [0.6, 0.4], [0.3, 0.7]]
    >>> parts = decompose_isotonic([0, 0, 1, 0, 1, 1], y_prob, label=1)
    >>> round(parts.miscalibration, 4), round(parts.discrimination, 4), round(parts.uncertainty, 4)
    (0.075, 0.1667, 0.25)
    """
    p = predictions_for_scoring(
        y_true, y_prob, sample_weight=sample_weight, classes=classes
    )
    return pool_equal_predictions(p, label).decompose_score(score)
