"""The null hypothesis of a map that was fitted: off by its estimation error, and by no more.

A map learned from 300 rows is off, and 15,000 later rows show it, though nothing has changed. So
the probabilities x of a fitted map are not taken for exact. They are off by an MCLLO map of unknown
theta (shifts and slopes, `_model/likelihood`), the same in all batches:

==========  =====================================================================================
before      ``theta ~ N(identity, P^-1)``, P the information of the rows that the map was learned
            from: their number times the mean information of a row at x, which is known from the
            predictions of the first batch, without its labels
batch       ``q = int prod_i p_theta(y_i | x_i) dN(theta; m, P^-1)`` by Laplace's approximation:
            with t the mode and H the Hessian of the negative log likelihood there,
            ``log q = log L(t) - 1/2 (t - m)' P (t - m) - 1/2 log det(P + H) + 1/2 log det P``
after it    ``m = t``, ``P = P + H``: nothing fades, for theta is the same in all batches
dispersion  mean over the batches so far of ``s' P^-1 s`` over its expectation, s the score at m;
            at least 1. Where no MCLLO map is right (labels that are wrong at random), scores vary
            more than the model says, and log factors are divided by it
==========  =====================================================================================

Probabilities g of a batch that were fixed before it have ``E_q[g / q] = 1``, so that evidence and
detector keep their promise on average over what the map's rows leave open; a power of at most 1 of
a factor has an expectation of at most 1 (Jensen). The alternatives g change the probabilities at
the mean m: what the labels so far say of the map is no departure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._model.kernel import Derivatives, LogPartition
from .._model.likelihood import Likelihood, identity_theta, sufficient_statistic
from .._model.newton import minimize
from .._utils.results import Floats
from .._validation.predictions import Predictions
from .learned import GAMMA_PRECISION, MAX_CLASSES_TO_LEARN, TAU_PRECISION

MAX_CLASSES_FITTED_NULL = MAX_CLASSES_TO_LEARN
"""With more classes the Hessian would cost more than the evidence, as for the learned maps."""
N_PSEUDO_ROWS = 50.0
"""Rows without information beside those of the first batch: from few rows little is known of it."""
PRIOR_RIDGE = 0.25
"""Of the learned maps' prior: it counts only where the first batch says nothing of theta."""
N_PSEUDO_BATCHES = 10.0
"""Batches with the expected variation of scores beside those that were seen."""
SMALLEST_PROBABILITY = np.finfo(np.float64).tiny


@dataclass(frozen=True, eq=False)
class FittedNull:
    """What is believed of theta after some batches: about ``N(mean, precision^-1)``.

    Attributes
    ----------
    mean, precision : ndarray
        Of theta, shifts before slopes.
    baseline : int
        Column that the log odds are against.
    n_batches : int
        Batches so far.
    score_ratios : float
        Sum over them of the variation of scores over its expectation.
    """

    mean: Floats
    precision: Floats
    baseline: int
    n_batches: int = 0
    score_ratios: float = 0.0

    @classmethod
    def new(cls, n_rows_learned: int, first: Predictions, baseline: int) -> FittedNull:
        """Return the belief before the first batch, from its predictions alone.

        Parameters
        ----------
        n_rows_learned : int
            Rows that the map was learned from.
        first : Predictions
            The first batch, as the map made it; its labels are not used.
        baseline : int
            Column that the log odds are against.
        """
        n_compared = first.n_classes - 1
        identity = identity_theta(n_compared)
        information = _likelihood(first, baseline)(identity).hessian
        mean_information = information / (_row_weight(first).sum() + N_PSEUDO_ROWS)
        ridge = PRIOR_RIDGE * np.repeat([TAU_PRECISION, GAMMA_PRECISION], n_compared)
        return cls(identity, n_rows_learned * mean_information + np.diag(ridge), baseline)

    @property
    def dispersion(self) -> float:
        """How much more scores have varied than the model says, at least 1."""
        mean = (N_PSEUDO_BATCHES + self.score_ratios) / (N_PSEUDO_BATCHES + self.n_batches)
        return max(1.0, mean)

    def expected(self, rows: Predictions) -> Predictions:
        """Return the probabilities at the mean: what the batches so far make of the map."""
        log_odds = _against(rows, self.baseline).log_odds
        n_compared = len(log_odds)
        tau = self.mean[:n_compared, None]
        gamma = self.mean[n_compared:, None]
        eta = np.zeros((rows.n_samples, rows.n_classes))
        others = np.arange(rows.n_classes) != self.baseline
        eta[:, others] = (tau + gamma * log_odds).T
        probs = np.exp(eta - eta.max(axis=1, keepdims=True))
        probs /= probs.sum(axis=1, keepdims=True)
        return replace(rows, probs=np.maximum(probs, SMALLEST_PROBABILITY), logits=None)

    def after(self, rows: Predictions) -> tuple[FittedNull, float]:
        """Return the belief after a batch, and ``log q`` less the log likelihood at the mean."""
        likelihood = _likelihood(rows, self.baseline)

        def negative_log_posterior(theta: Floats) -> Derivatives:
            away = theta - self.mean
            force = self.precision @ away
            return likelihood(theta) + Derivatives(0.5 * float(away @ force), force, self.precision)

        mode = minimize(negative_log_posterior, self.mean, tol=1e-6).x
        at_mode = negative_log_posterior(mode)
        log_q = -at_mode.value
        log_q -= 0.5 * (_log_det(at_mode.hessian) - _log_det(self.precision))
        at_mean = likelihood(self.mean)
        gain = log_q + at_mean.value
        if rows.groups is not None:
            # Rows of a group that do not repeat each other vary less than one row for each group
            # says, and log q pays for a variation that is not there: factors would be too large.
            gain = max(0.0, gain)
        after = FittedNull(
            mode,
            at_mode.hessian,
            self.baseline,
            self.n_batches + 1,
            self.score_ratios + self._score_ratio(at_mean),
        )
        return after, float(gain)

    def _score_ratio(self, at_mean: Derivatives) -> float:
        """Return ``s' P^-1 s`` over its expectation, in which theta varies about the mean too."""
        leverage = np.linalg.solve(self.precision, at_mean.hessian)
        expectation = np.trace(leverage) + np.trace(leverage @ leverage)
        seen = at_mean.gradient @ np.linalg.solve(self.precision, at_mean.gradient)
        return float(seen / expectation) if expectation > 0.0 else 1.0


def _against(rows: Predictions, baseline: int) -> Predictions:
    return rows.with_baseline(rows.classes[baseline])


def _row_weight(rows: Predictions) -> Floats:
    """Return what each row counts: a group counts as one row, a label predicted as 0 nothing."""
    weight = np.ones(rows.n_samples)
    if rows.groups is not None:
        weight /= np.bincount(rows.groups)[rows.groups]
    if rows.raised is not None:
        weight[rows.raised[np.arange(rows.n_samples), rows.codes]] = 0.0
    return weight


def _likelihood(rows: Predictions, baseline: int) -> Likelihood:
    """Return the negative log likelihood of theta, and its derivatives."""
    against = _against(rows, baseline)
    log_odds = np.ascontiguousarray(against.log_odds)
    weight = _row_weight(rows)
    statistic = sufficient_statistic(log_odds, against.model_codes, weight)
    return Likelihood(LogPartition(log_odds, weight), statistic)


def _log_det(matrix: Floats) -> float:
    return float(np.linalg.slogdet(matrix)[1])
