"""A guaranteed p-value of a model against a larger one: the split likelihood ratio.

Fit the larger model on one half of the rows, and take its likelihood on the other half over the
largest that the smaller model reaches there, ``E = L_b(theta_a) / sup_small L_b``. When the labels
follow the smaller model, E is at most ``L_b(theta_a) / L_b(truth)``, which has mean 1 given half a;
so ``P(E >= 1 / p) <= p`` at any n, and the mean of both directions has the same property
(Wasserman, Ramdas and Balakrishnan 2020). It is weak near 0.05, but where a model is far off it is
smaller than anything that simulation could show.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._model import Terms
from ._newton import minimize
from ._predictions import Predictions
from ._restriction import Family, RestrictedFit, restricted_fit
from ._split_ratio import RIDGE, SMALLEST

Floats = NDArray[np.float64]


def nested_bound(predictions: Predictions, small: Floats, large: Floats, *, full: bool) -> float:
    """Return ``min(1, 1 / E)``; rows alternate between the halves.

    Parameters
    ----------
    predictions : Predictions
        The data.
    small, large : ndarray of shape (n_parameters, df)
        Directions of the two models, from the identity, in the family of the larger one.
    full : bool
        Whether that family is the full map.
    """
    n = predictions.n_samples
    if n < 4:
        return 1.0
    halves = [Family(predictions.take(np.arange(k, n, 2)), full=full) for k in (0, 1)]
    fits = [restricted_fit(half, small) for half in halves]
    gains = [_gain(halves[k], fits[k], large, halves[1 - k], fits[1 - k]) for k in (0, 1)]
    log_e = float(np.logaddexp(gains[0], gains[1])) - np.log(2.0)
    return float(min(1.0, max(SMALLEST, np.exp(-log_e))))


def _gain(
    learn: Family, small: RestrictedFit, basis: Floats, judge: Family, rival: RestrictedFit
) -> float:
    """Return the log likelihood of what was learned, on the other half, less its rival's."""
    origin = small.theta if small.settled else learn.identity
    partition = learn.partition()

    def penalised(beta: Floats) -> Terms:
        away = basis @ beta
        terms = partition(origin + away)
        return Terms(
            terms.value - float((origin + away) @ learn.statistic - 0.5 * RIDGE * away @ away),
            basis.T @ (terms.gradient - learn.statistic + RIDGE * away),
            basis.T @ terms.hessian @ basis + RIDGE * basis.T @ basis,
        )

    theta = origin + basis @ minimize(penalised, np.zeros(basis.shape[1])).x
    return float(theta @ judge.statistic - judge.partition()(theta).value - rival.log_likelihood)
