"""How often the plain test keeps a map that is exactly right, on rows that it was not fitted to.

The paper judges recalibrated holdout rows by the test for given predictions. The map was estimated,
and its noise makes that test reject right maps too. So "not rejected in 38 of 50 splits" means
nothing until one knows in how many a right map is not rejected:

=======  ======================================================================================
truth    the method's own map, fitted to all rows; labels are drawn from it
draw     new labels for all rows, a random split, the method fitted to its first part, the
         chi-square test on its second
ceiling  the share of draws that the test keeps
=======  ======================================================================================

`studies.rule.Kept` judges counts of the paper's kind against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

import mcllo

from .pages import Row, Rows
from .tables import LEVEL, suppress_warnings


@suppress_warnings()
def ceiling_rows(
    rows: mcllo.Predictions, methods: Mapping[str, int], n_train: int
) -> Rows:
    """Return the share of right maps that the test keeps, for so many draws of each method."""
    return [ceiling_row(rows, method, n, n_train) for method, n in methods.items()]


def ceiling_row(
    rows: mcllo.Predictions, method: str, n_draws: int, n_train: int
) -> Row:
    """Return the share of draws in which a right map of this method is kept."""
    truth = mcllo.CALIBRATORS[method]().fit(rows).predict_proba(rows)
    cumulative = truth.cumsum(axis=1)
    kept = 0
    for draw in range(n_draws):
        rng = np.random.default_rng([draw, 78])
        uniform = rng.random((rows.n_samples, 1)) * cumulative[:, -1:]
        codes = (cumulative < uniform).sum(axis=1)
        labelled = replace(rows, codes=codes.astype(rows.codes.dtype))
        order = rng.permutation(rows.n_samples)
        train = labelled.take(order[:n_train])
        holdout = labelled.take(order[n_train:])
        calibrator = mcllo.CALIBRATORS[method]().fit(train)
        after = holdout.with_probs(calibrator.predict_proba(holdout))
        kept += mcllo.calibration_test(after, method="chi2").pvalue > LEVEL
    return {"method": method, "kept": int(kept), "draws": n_draws}


def ceilings(rows: Rows) -> dict[str, float]:
    """Return the share that is kept, by method.

    >>> ceilings([{"method": "mcllo", "kept": 390, "draws": 500}])
    {'mcllo': 0.78}
    """
    return {row["method"]: row["kept"] / row["draws"] for row in rows}
