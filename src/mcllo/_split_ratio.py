"""A p-value that needs no simulation and no large sample: the split likelihood ratio.

Fit theta on one half of the rows and take its likelihood ratio to the identity on the other half,
``E = L_b(theta_a) / L_b(theta0)``. Given half a, E has mean 1 when labels follow the predictions,
so ``P(E >= 1 / p) <= p`` by Markov's inequality, at any n and for any way of fitting (Wasserman,
Ramdas and Balakrishnan 2020). The mean of both directions has mean 1 as well. The bound is weak
near 0.05, but where predictions are far off it is smaller than anything simulation could show.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._model import Likelihood, LogPartition, Terms, identity_theta, sufficient_statistic
from ._newton import minimize
from ._predictions import Predictions

Floats = NDArray[np.float64]

RIDGE = 1.0
SMALLEST = 1e-300


def split_pvalue(predictions: Predictions) -> float:
    """Return ``min(1, 1 / E)``, E the mean of both directions; rows alternate between halves."""
    if predictions.n_samples < 4:
        return 1.0
    halves = [_likelihood(predictions, slice(k, None, 2)) for k in (0, 1)]
    gains = [_gain(halves[k], halves[1 - k]) for k in (0, 1)]
    log_e = float(np.logaddexp(gains[0], gains[1])) - np.log(2.0)
    return float(min(1.0, max(SMALLEST, np.exp(-log_e))))


def _likelihood(predictions: Predictions, rows: slice) -> Likelihood:
    odds, weight = predictions.log_odds[:, rows], predictions.sample_weight
    own = None if weight is None else weight[rows]
    statistic = sufficient_statistic(odds, predictions.model_codes[rows], own)
    return Likelihood(LogPartition(odds, own), statistic)


def _gain(learn: Likelihood, judge: Likelihood) -> float:
    """Return the log likelihood ratio on one half of what was fitted on the other."""
    null = identity_theta(learn.partition.n_compared)

    def penalised(theta: Floats) -> Terms:
        away = theta - null
        ridge = Terms(0.5 * RIDGE * float(away @ away), RIDGE * away, RIDGE * np.eye(len(null)))
        return learn(theta) + ridge

    theta = minimize(penalised, null).x
    return float(judge(null).value - judge(theta).value)
