"""What a pool promises for new rows, given that it was made because it seemed to pay.

Rows left out, of total weight W; x their predictions and p what pools that have not seen them made
of these:

====================  ==========================================================================
gain G                mean of ``log p - log x`` at the labels
cost C                mean of ``sum_y x_y log(x_y / p_y)``: what the repair would cost if the
                      predictions were right as they are; needs no labels
chance q              ``5 exp(-W G / f)``, f the dispersion of the gains (`_inference/paired_loss`)
promise               ``G - q (G + C)``
its standard error    ``sqrt(e^2 + q^2 (G + C)^2)``, e by `_inference/paired_loss`
====================  ==========================================================================

A repair is made only where G is positive, which flatters G: on calibrated predictions, where every
repair does harm, the repairs that are made promise a gain all the same. There ``W G`` follows about
an exponential distribution of mean 1, whatever the rows are, while the truth is about ``-C``; so a
q of this form makes the promise right on average, and 5 is what it takes (2.8 to 5.1 in three
designs). Single promises that rest on little evidence may be lower than any truth; where ``W G`` is
5 or more, next to nothing is taken off. `docs/explanation/auto.md` has what was measured.
"""

from __future__ import annotations

import numpy as np

from ..._ground.results import Codes, Floats
from ..._inference.paired_loss import PairedLoss

CHANCE = 5.0
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
    taken = CHANCE * float(np.exp(-max(evidence, 0.0))) * (pair.mean + cost)
    return pair.mean - taken, float(np.hypot(pair.error, taken))
