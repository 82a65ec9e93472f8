"""What a pool promises for new rows, given that it was made because it seemed to pay.

Rows left out, of total weight W; x their predictions and p what pools that have not seen them made
of these:

====================  ==========================================================================
gain G                mean of ``log p - log x`` at the labels
cost C                mean of ``sum_y x_y log(x_y / p_y)``: what the recalibration would cost if the
                      predictions were right as they are; needs no labels
chance q              ``min(2, 4.5 exp(-W G / f))``, f the dispersion of the gains
                      (`_inference/paired_loss`)
promise               ``G - q (G + C)``
its standard error    ``sqrt(e^2 + q^2 (G + C)^2)``, e by `_inference/paired_loss`
====================  ==========================================================================

A recalibration is made only where G is positive, which flatters G: on calibrated predictions, where
every recalibration does harm, the recalibrations that are made promise a gain all the same. There
``W G`` follows about an exponential distribution of mean 1, whatever the rows are, while the truth
is about ``-C``; so a q of this form makes the promise right on average. Where predictions are off
and the rows are few, ``W G`` is as small as that in some data sets, though the truth is a gain, and
a q that is right for calibrated predictions alone takes off too much. 4.5 and 2 are a compromise:
over 4 designs that are calibrated and 9 that are off the bias is +.15 C and -.18 C on average; that
of 5 without an upper end, chosen on calibrated rows alone, was -.40 C and -.31 C. Single promises
that rest on little evidence may still be lower than any truth; where ``W G`` is 5 or more, next to
nothing is taken off. `docs/explanation/auto.md` has what was measured.
"""

from __future__ import annotations

import numpy as np

from ..._inference.paired_loss import PairedLoss
from ..._utils.results import Codes, Floats

CHANCE_GAIN_FACTOR = 4.5
MAX_CHANCE_GAIN = 2.0
"""No promise is below ``-(G + 2 C)``: single ones of many times C made the mean too low."""
TINY = float(np.finfo(np.float64).tiny)


def promise(
    gains: Floats, raw: Floats, pooled: Floats, weight: Floats, groups: Codes | None, every: int
) -> tuple[float, float]:
    """Return the promise and its standard error.

    `gains` are of all rows left out, `raw` and `pooled`, shape (m, c), of rows 0, `every`, ...
    """
    raw, pooled = np.maximum(raw, TINY), np.maximum(pooled, TINY)
    pair = PairedLoss(gains, pooled, raw, 0.5 * (raw + pooled), weight, groups, every)
    costs = (raw * np.log(raw / pooled)).sum(axis=1)
    cost = float(np.average(costs, weights=weight[::every]))
    evidence = pair.total * pair.mean / pair.dispersion
    chance = min(MAX_CHANCE_GAIN, CHANCE_GAIN_FACTOR * float(np.exp(-max(evidence, 0.0))))
    taken = chance * (pair.mean + cost)
    return pair.mean - taken, float(np.hypot(pair.error, taken))
