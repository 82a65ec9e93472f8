"""Optimism correction: what the gain of a pool promises for new rows.

Rows left out, of total weight W; x their predictions and p what pools that have not seen them made
of these:

====================  ==========================================================================
gain G                mean of ``log p - log x`` at the labels
cost C                mean of ``sum_y x_y log(x_y / p_y)``: what the recalibration would cost if the
                      predictions were right as they are; needs no labels
factor q              ``min(2, 4.5 exp(-W G / f))``, f the dispersion of the gains
                      (`_inference/paired_loss`)
corrected gain        ``G - q (G + C)``
its standard error    ``sqrt(e^2 + q^2 (G + C)^2)``, e by `_inference/paired_loss`
====================  ==========================================================================

A recalibration is made only where G is positive, which flatters G (the winner's curse): on
calibrated predictions, where every recalibration does harm, the recalibrations that are made show a
gain all the same. There ``W G`` follows about an exponential distribution of mean 1, whatever the
rows are, while the truth is about ``-C``; so a q of this form makes the corrected gain right on
average.

Where predictions are off and the rows are few, ``W G`` is as small as that in some data sets,
though the truth is a gain, and a q that is right for calibrated predictions alone takes off too
much. 4.5 and 2 are a compromise: the mean bias is +.15 C over 4 calibrated
designs, and -.18 C over 9 that are off; with 5 for 4.5 and no upper end, chosen on calibrated rows
alone, these were -.40 C and -.31 C. Single corrected gains that rest on little evidence may still
be lower than any truth; where ``W G`` is 5 or more, next to nothing is taken off.
`docs/explanation/auto.md` has what was measured.
"""

from __future__ import annotations

import numpy as np

from ..._inference.paired_loss import PairedLoss
from ..._utils.linalg import TINY
from ..._utils.results import Codes, Floats

FACTOR_OF_NO_GAIN = 4.5  # q for a gain of 0, before its upper end; see above
MAX_FACTOR = 2.0  # upper end of q; see above


def correct_optimism(
    gain_per_row: Floats,
    raw: Floats,
    pooled: Floats,
    weight: Floats,
    groups: Codes | None,
    row_step: int,
) -> tuple[float, float]:
    """Return the gain that new rows may expect, and its standard error.

    Parameters
    ----------
    gain_per_row : ndarray of shape (n_rows,)
        By how much the log likelihood of each left-out row's label rises.
    raw, pooled : ndarray of shape (m, n_classes)
        Probabilities before and after, of the rows 0, `row_step`, 2 `row_step`, ...
    weight : ndarray of shape (n_rows,)
        How many rows each stands for.
    groups : ndarray of shape (n_rows,) or None
        Which rows may depend on each other.
    row_step : int
        See `raw`.
    """
    raw = np.maximum(raw, TINY)
    pooled = np.maximum(pooled, TINY)
    middle = 0.5 * (raw + pooled)
    paired = PairedLoss(gain_per_row, pooled, raw, middle, weight, groups, row_step)
    gain = paired.mean

    cost_per_row = (raw * np.log(raw / pooled)).sum(axis=1)
    cost = float(np.average(cost_per_row, weights=weight[::row_step]))

    # W G, less where rows vary more than the predictions say.
    evidence = max(paired.total * gain / paired.dispersion, 0.0)
    factor = min(MAX_FACTOR, FACTOR_OF_NO_GAIN * float(np.exp(-evidence)))
    optimism = factor * (gain + cost)
    return gain - optimism, float(np.hypot(paired.error, optimism))
