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
from .._model.likelihood import Likelihood, identity_theta, sufficient_statistic
from .._model.newton import Objective as Objective
from .._model.temperature import inverse_temperature
from .._utils.results import Floats
from .._validation.predictions import Predictions

Whole = TypeVar("Whole", bound=Objective)

N_FIRST_GUESS_ROWS = 1_000
"""Rows, about, that the first guess of an exponent is made of. A round number."""
CONSTANT_LOG_ODDS_TOL = 1e-12
"""Range of a class's log odds up to which they count as the same in every row: some thousand times
the rounding of log odds of ordinary size."""


def negative_log_likelihood(predictions: Predictions) -> Likelihood:
    """Return the negative log likelihood of the predictions as a function of theta."""
    odds = predictions.log_odds
    weight = predictions.sample_weight
    statistic = sufficient_statistic(odds, predictions.model_codes, weight)
    return Likelihood(LogPartition(odds, weight), statistic)


def free_parameters(log_odds: Floats) -> NDArray[np.bool_]:
    """Return a mask over theta: gamma_j is fixed where class j's log odds never vary."""
    return free_of_range(np.ptp(log_odds, axis=1))


def free_of_range(extent: Floats) -> NDArray[np.bool_]:
    """Return that mask, given how far the log odds of each class range."""
    tau_is_free = np.ones(len(extent), dtype=bool)
    return np.concatenate([tau_is_free, extent > CONSTANT_LOG_ODDS_TOL])


def most_information(total: float, squares: Floats) -> Floats:
    """Return the bound on the Hessian's diagonal, of total weight and ``sum w l^2``."""
    tau = np.full(len(squares), total)
    gamma = np.maximum(squares, 1e-300)  # others divide by it
    return 0.25 * np.concatenate([tau, gamma])  # g (1 - g) is 1/4 at most


def one_exponent(predictions: Predictions) -> Floats:
    """Return theta of the best map ``(0, u)``, one exponent for all, by some of the rows."""
    some = slice(None, None, max(1, predictions.n_samples // N_FIRST_GUESS_ROWS))
    odds = predictions.log_odds[:, some]
    weight = predictions.sample_weight
    if weight is not None:
        weight = weight[some]
    scores = np.vstack([odds, np.zeros(odds.shape[1])])
    root = inverse_temperature(scores, predictions.model_codes[some], weight)
    exponent = 1.0 if root.bound else root.value
    return exponent * identity_theta(len(odds))


class FreeLikelihood(Generic[Whole]):
    """An objective as a function of the free parameters; the others stay 1.

    `whole` is the objective of all parameters, `free` a mask over them, `information_bound` returns
    the bound on the Hessian's diagonal (`most_information`), and `warm`, where it pays, a theta
    near the estimate.
    """

    def __init__(
        self,
        whole: Whole,
        free: NDArray[np.bool_],
        information_bound: Callable[[], Floats],
        warm: Callable[[], Floats] | None = None,
    ) -> None:
        self.whole = whole
        self.free = free
        self.information_bound = information_bound
        self.warm = warm
        self.identity = identity_theta(len(free) // 2)
        self._all_free = bool(free.all())

    @staticmethod
    def from_predictions(predictions: Predictions) -> FreeLikelihood[Likelihood]:
        """Return the negative log likelihood of rows in memory."""
        odds = predictions.log_odds
        weight = predictions.sample_weight
        n = predictions.n_samples

        def information_bound() -> Floats:
            weighted = odds if weight is None else odds * weight
            squares = np.einsum("ji,ji->j", odds, weighted)
            total = float(n if weight is None else weight.sum())
            return most_information(total, squares)

        # a guess from some of the rows pays where a pass over all of them takes much longer
        warm = (
            partial(one_exponent, predictions) if n >= 2 * N_FIRST_GUESS_ROWS else None
        )
        whole = negative_log_likelihood(predictions)
        return FreeLikelihood(whole, free_parameters(odds), information_bound, warm)

    def theta(self, x: Floats) -> Floats:
        """Return theta with the free parameters `x`."""
        theta = self.identity.copy()
        theta[self.free] = x
        return theta

    def __call__(self, x: Floats) -> Derivatives:
        """Return value, gradient and Hessian at `x`."""
        if self._all_free:
            return self.whole(x)
        terms = self.whole(self.theta(x))
        hessian = terms.hessian[np.ix_(self.free, self.free)]
        return Derivatives(terms.value, terms.gradient[self.free], hessian)
