"""How much probability stands on the wrong classes at least, whatever the shape of the error?

For any set of classes ``A_i`` chosen without looking at the label of row i,

    ``mean_i (1[y_i in A_i] - sum_{j in A_i} x_ij)``

is, on average, what the labels give ``A_i`` beyond what was predicted, and that is at most the
total variation distance of truth and prediction. So its lower confidence limit is one of the mean
error, with no model at all. The sets come from the other folds of rows (cross-fitting):

==================  ============================================================================
class by class      class j is in ``A_i`` if rows of other folds with a similar ``x_j`` came true
                    more often than predicted, by more than one standard error
top class           ``A_i`` is the top class, or all others, if rows of other folds that were as
                    sure were right more, or less, often than they said
in the large        ``A_i`` is the top class in all rows, or all others: |accuracy - confidence|
==================  ============================================================================

The bound is the largest of the three lower limits, each of a third of the error probability.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._utils.results import Codes, Floats
from ..._validation.predictions import Predictions
from ...metrics._scores import error_of_mean
from ..goodness_of_fit import equal_parts

N_FOLDS = 5
MAX_GROUPS = 8
"""Groups of similar rows, of a class or by top probability, at most."""
MIN_GROUP_VARIANCE = 8.0
"""Variance of the count of a group; below, its neighbours are part of it."""
MIN_Z = 1.0
"""Standard errors from which other folds say that a class is predicted too rarely or too often."""
N_BOUNDS = 3


class ObservedError(NamedTuple):
    """What the rows show of the mean error without a model.

    `at_least` is the lower limit of the probability on the wrong classes, 0 where there is none;
    `in_the_large` the difference of accuracy and mean confidence, without its sign, with the limits
    `large_low` and `large_high`.
    """

    at_least: float
    in_the_large: float
    large_low: float
    large_high: float


def observed_error(predictions: Predictions, confidence: float) -> ObservedError:
    """Return the lower limit, of one-sided level ``(1 + confidence) / 2``."""
    from scipy.special import ndtri

    rows = _FoldedRows(predictions)
    upper = 0.5 + 0.5 * confidence
    quantile = float(ndtri(upper))
    shared = float(ndtri(1.0 - (1.0 - upper) / N_BOUNDS))
    large, error = rows.mean(rows.hit - rows.top, rows.top)
    by_sign = abs(large) - float(ndtri(1.0 - (1.0 - upper) / N_BOUNDS / 2.0)) * error
    limits = [by_sign]
    for excess, prob in (rows.excess_of_classes(), rows.excess_of_top()):
        mean, own_error = rows.mean(excess, prob)
        limits.append(mean - shared * own_error)
    return ObservedError(
        at_least=max(0.0, *limits),
        in_the_large=abs(large),
        large_low=max(0.0, abs(large) - quantile * error),
        large_high=abs(large) + quantile * error,
    )


class _FoldedRows:
    """Predictions, labels and folds: what sets are made from."""

    def __init__(self, predictions: Predictions) -> None:
        self.probs, self.codes = predictions.probs, predictions.codes
        self.weight = predictions.row_weight
        n = len(self.codes)
        # Weights that are no counts: each row is a unit of its own, whatever its weight.
        self.units: Codes | None = predictions.groups
        if self.units is None and not predictions.counts_rows:
            self.units = np.arange(n)
        self.top_class = self.probs.argmax(axis=1)
        self.top = self.probs[np.arange(n), self.top_class]
        self.hit = (self.top_class == self.codes).astype(np.float64)
        # Every fold gets sure and unsure rows alike, and groups whole.
        places = np.argsort(np.argsort(self.top, kind="stable"), kind="stable")
        if predictions.groups is not None:
            places = np.unique(predictions.groups, return_inverse=True)[1]
        self.fold = places % N_FOLDS

    def mean(self, excess: Floats, prob: Floats) -> tuple[float, float]:
        """Return the weighted mean of the excess of sets of probability `prob`, and its error.

        The error is the observed one, or that of labels drawn from the predictions if it is larger:
        of sure rows few errors decide, and where these are missing by chance the observed error is
        too small.
        """
        mean = float(np.average(excess, weights=self.weight))
        observed = error_of_mean(excess - mean, self.weight, self.units)[0]
        squares = self.weight if self.units is None else self.weight**2
        expected = float(np.sqrt(squares @ (prob * (1.0 - prob)))) / float(self.weight.sum())
        return mean, max(observed, expected)

    def excess_of_top(self) -> tuple[Floats, Floats]:
        """Return the excess of the top class, or of all others, by what other folds show.

        And the predicted probability of that set; 0 where it is empty.
        """
        sign = self._direction(self.top, self.hit - self.top, self.weight)
        return sign * (self.hit - self.top), np.where(sign != 0.0, self.top, 0.0)

    def excess_of_classes(self) -> tuple[Floats, Floats]:
        """Return the excess of the classes that other folds show to be predicted too rarely."""
        found = np.zeros(len(self.codes))
        mass = np.zeros(len(self.codes))
        for j in range(self.probs.shape[1]):
            prob = self.probs[:, j]
            came_true = self.codes == j
            size = self.weight * prob * (1.0 - prob)
            raised = self._direction(prob, came_true - prob, size) > 0.0
            found[raised] += came_true[raised] - prob[raised]
            mass[raised] += prob[raised]
        return found, np.minimum(mass, 1.0)

    def _direction(self, values: Floats, residual: Floats, size: Floats) -> Floats:
        """Return, for each row, the sign of the residuals of similar rows of other folds, or 0.

        Rows are similar if their `values` fall into the same group; groups are about equal in
        `size`.
        """
        variance = self.weight * values * (1.0 - values)
        n_groups = int(min(MAX_GROUPS, max(1.0, variance.sum() / MIN_GROUP_VARIANCE)))
        group = equal_parts(values, size, n_groups)
        cell = self.fold * n_groups + group
        shape = (N_FOLDS, n_groups)
        sums = np.bincount(cell, self.weight * residual, N_FOLDS * n_groups).reshape(shape)
        spread = np.bincount(cell, variance, N_FOLDS * n_groups).reshape(shape)
        others = sums.sum(axis=0) - sums
        spread_of_others = np.maximum(spread.sum(axis=0) - spread, 1e-12)
        clear = np.abs(others) > MIN_Z * np.sqrt(spread_of_others)
        return np.asarray(np.where(clear, np.sign(others), 0.0)[self.fold, group], np.float64)
