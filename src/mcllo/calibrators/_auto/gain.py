"""`cross_fitted_gain`: by how much would a recalibration lower the log loss of rows it did not see?

The recalibration is `AutoCalibrator`'s, learned on four fifths of the rows and judged on the
others, fold after fold (`stacking.cross_fit`). Nothing is assumed of what is wrong with the
predictions, so this is the effect size that needs no family of maps. It is a lower bound of what is
wrong: a richer recalibration, or one learned from more rows, may gain more. The interval is that of
a mean of paired differences (`_inference/paired_loss`), which knows of errors that might have
happened and did not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..._inference.effect_size_text import NATS, amount_and_interval
from ..._inference.paired_loss import PairedLoss
from ..._utils.formatting import format_count
from ..._utils.linalg import TINY
from ..._utils.notebook import show_progress
from ..._utils.parallel import one_blas_thread
from ..._utils.results import Result
from ..._utils.statements import Statement, suppress_warnings
from ..._validation.predictions import Predictions
from .stacking import cross_fit, fit_members

# probabilities that the gain is computed from: bounds the time of `assess`
MAX_ENTRIES = 400_000


@dataclass(frozen=True, eq=False)
class CrossFittedGain(Result):
    """Log loss a row, in nats, that a recalibration saves on rows that it was not learned from.

    Attributes
    ----------
    gain, low, high : float
        Mean over the rows left out, with its interval; NaN where it was not computed.
    confidence : float
        Of the interval.
    n_samples : int
        Rows of which four fifths at a time were learned from.
    reason : str
        Why it was not computed; else empty.
    """

    gain: float
    low: float
    high: float
    confidence: float
    n_samples: int
    reason: str = ""

    @classmethod
    def not_computed(cls, reason: str, confidence: float = 0.95) -> CrossFittedGain:
        """Return that it was not computed, and why."""
        return cls(math.nan, math.nan, math.nan, confidence, 0, reason)

    def statement(self, n_samples: int) -> Statement:
        """Return it as a sentence, of an assessment of so many rows."""
        rows = "these rows"
        if 0 < self.n_samples < n_samples:
            rows = f"{format_count(self.n_samples)} of these rows"
        numbers = self.to_dict()
        if math.isnan(self.gain):
            words = f"What a recalibration would gain was not computed: {self.reason}."
            return Statement("effect_size.recalibration", words, "doubt", numbers)
        lead = f"A recalibration learned on four fifths of {rows}"
        if not self.low > 0.0:
            words = f"{lead} does not lower the log loss of the others beyond chance."
            return Statement("effect_size.recalibration", words, numbers=numbers)
        value, known = amount_and_interval(
            self.gain, self.low, self.high, NATS, self.confidence
        )
        words = f"{lead} lowers the log loss of the others by {value} a row{known}."
        return Statement("effect_size.recalibration", words, numbers=numbers)


@show_progress("asking what a recalibration would gain")
@one_blas_thread()
def cross_fitted_gain(
    predictions: Predictions, *, confidence: float = 0.95, seed: int = 0
) -> CrossFittedGain:
    """Return the gain of `AutoCalibrator` on rows that it was not learned from.

    Parameters
    ----------
    predictions : Predictions
        The rows, with labels; groups are left out whole.
    confidence : float
        Of the interval.
    seed : int
        What decides which rows are used of a table of more than `MAX_ENTRIES`.
    """
    from scipy.special import ndtri

    if predictions.n_classes > 200:  # maps with parameters for each class take too long
        many = f"{predictions.n_classes:,} classes are too many"
        return CrossFittedGain.not_computed(many, confidence)
    if predictions.groups is None:
        what = "rows"
        n_units = predictions.n_samples
    else:
        what = "groups"
        n_units = len(np.unique(predictions.groups))
    if n_units < 20:  # a fifth are four; a round number
        few = f"a fifth of {n_units} {what} is too few to judge on"
        return CrossFittedGain.not_computed(few, confidence)
    rows = _random_subsample(predictions, seed)
    with suppress_warnings():
        try:
            crossed = cross_fit(rows, fit_members(rows), None)
        except (
            np.linalg.LinAlgError
        ):  # one row of weight 1e20 leaves the others no digits
            return CrossFittedGain.not_computed(
                "the weights are too unequal", confidence
            )
    if crossed is None:
        return CrossFittedGain.not_computed("no rows can be left out", confidence)
    raw, pooled = crossed.pool_left_out()
    raw = np.maximum(raw, TINY)
    pooled = np.maximum(pooled, TINY)
    paired = PairedLoss(
        observed=crossed.gain_per_part,
        first=pooled,
        other=raw,
        base=0.5 * (raw + pooled),
        weight=crossed.folds.weight,
        groups=crossed.groups,
        row_step=crossed.row_step,
    )
    quantile = float(ndtri(0.5 + 0.5 * confidence))
    low, high = paired.interval(quantile)
    return CrossFittedGain(paired.mean, low, high, confidence, rows.n_samples)


def _random_subsample(predictions: Predictions, seed: int) -> Predictions:
    """Return the rows, or as many of them at random as have `MAX_ENTRIES` probabilities."""
    max_rows = MAX_ENTRIES // predictions.n_classes
    if predictions.n_samples <= max_rows:
        return predictions
    rng = np.random.default_rng([seed, 4])  # a stream of its own among those of a seed
    taken = rng.choice(predictions.n_samples, max_rows, replace=False, shuffle=False)
    rows = predictions.take(np.sort(taken))
    return rows if rows.by is None else replace(rows, by=None)
