"""What a fit minimises: the negative log likelihood, as a function of the parameters left free.

===============  ===================================================================================
objective        ``theta -> Derivatives``: value, gradient, Hessian of ``A(theta) - theta . s``
free parameters  gamma_j stays 1 where class j's log odds are the same in every row
at most          ``sum w / 4`` for tau, ``sum w l^2 / 4`` for gamma: no diagonal entry of the
                 Hessian is larger, whatever theta
===============  ===================================================================================

Rows in memory and rows in blocks differ in the objective and in nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._model.kernel import Derivatives, LogPartition
from .._model.likelihood import (
    NegativeLogLikelihood,
    identity_theta,
    sufficient_statistic,
)
from .._model.newton import Objective as Objective
from .._model.temperature import fit_inverse_temperature
from .._utils.results import Floats
from .._validation.predictions import Predictions

FullObjective = TypeVar("FullObjective", bound=Objective)

N_FIRST_GUESS_ROWS = 1_000
"""Rows, about, that the first guess of an exponent is made of. A round number."""
CONSTANT_LOG_ODDS_TOL = 1e-12
"""Range of a class's log odds up to which they count as the same in every row: some thousand times
the rounding of log odds of ordinary size."""


def build_negative_log_likelihood(predictions: Predictions) -> NegativeLogLikelihood:
    """Return the negative log likelihood of the predictions as a function of theta."""
    odds = predictions.log_odds
    weight = predictions.sample_weight
    statistic = sufficient_statistic(odds, predictions.model_codes, weight)
    partition = LogPartition(odds, weight, offered=predictions.model_mask)
    return NegativeLogLikelihood(partition, statistic)


def free_parameters(log_odds: Floats) -> NDArray[np.bool_]:
    """Return a mask over theta: gamma_j is fixed where class j's log odds never vary."""
    return free_parameters_from_ranges(np.ptp(log_odds, axis=1))


def free_parameters_from_ranges(log_odds_ranges: Floats) -> NDArray[np.bool_]:
    """Return that mask, given how far the log odds of each class range."""
    tau_is_free = np.ones(len(log_odds_ranges), dtype=bool)
    return np.concatenate([tau_is_free, log_odds_ranges > CONSTANT_LOG_ODDS_TOL])


def information_upper_bound(
    total_weight: float, squared_log_odds_sums: Floats
) -> Floats:
    """Return the bound on the Hessian's diagonal, of total weight and ``sum w l^2``."""
    tau = np.full(len(squared_log_odds_sums), total_weight)
    gamma = np.maximum(squared_log_odds_sums, 1e-300)  # others divide by it
    return 0.25 * np.concatenate([tau, gamma])  # g (1 - g) is 1/4 at most


def theta_of_common_exponent(predictions: Predictions) -> Floats:
    """Return theta of the best map ``(0, u)``, one exponent for all, by some of the rows."""
    some = slice(None, None, max(1, predictions.n_samples // N_FIRST_GUESS_ROWS))
    odds = predictions.log_odds[:, some]
    weight = predictions.sample_weight
    if weight is not None:
        weight = weight[some]
    scores = np.vstack([odds, np.zeros(odds.shape[1])])
    root = fit_inverse_temperature(scores, predictions.model_codes[some], weight)
    exponent = 1.0 if root.bound else root.value
    return exponent * identity_theta(len(odds))


class FreeParameterObjective(Generic[FullObjective]):
    """An objective as a function of the free parameters; the others stay 1.

    `full_objective` is the objective of all parameters, `free` a mask over them,
    `information_bound` returns the bound on the Hessian's diagonal (`information_upper_bound`),
    and `guess_theta`, where it pays, a theta near the estimate.
    """

    def __init__(
        self,
        full_objective: FullObjective,
        free: NDArray[np.bool_],
        information_bound: Callable[[], Floats],
        guess_theta: Callable[[], Floats] | None = None,
    ) -> None:
        self.full_objective = full_objective
        self.free = free
        self.information_bound = information_bound
        self.guess_theta = guess_theta
        self.identity = identity_theta(len(free) // 2)
        self._all_free = bool(free.all())

    @staticmethod
    def from_predictions(
        predictions: Predictions,
    ) -> FreeParameterObjective[NegativeLogLikelihood]:
        """Return the negative log likelihood of rows in memory."""
        odds = predictions.log_odds
        weight = predictions.sample_weight
        n = predictions.n_samples

        def information_bound() -> Floats:
            weighted = odds if weight is None else odds * weight
            squares = np.einsum("ji,ji->j", odds, weighted)
            total = float(n if weight is None else weight.sum())
            return information_upper_bound(total, squares)

        # a guess from some of the rows pays where a pass over all of them takes much longer
        warm = (
            partial(theta_of_common_exponent, predictions)
            if n >= 2 * N_FIRST_GUESS_ROWS
            else None
        )
        whole = build_negative_log_likelihood(predictions)
        return FreeParameterObjective(
            whole, free_parameters(odds), information_bound, warm
        )

    def theta(self, x: Floats) -> Floats:
        """Return theta with the free parameters `x`."""
        theta = self.identity.copy()
        theta[self.free] = x
        return theta

    def __call__(self, x: Floats) -> Derivatives:
        """Return value, gradient and Hessian at `x`."""
        if self._all_free:
            return self.full_objective(x)
        derivatives = self.full_objective(self.theta(x))
        hessian = derivatives.hessian[np.ix_(self.free, self.free)]
        return Derivatives(derivatives.value, derivatives.gradient[self.free], hessian)
