"""Linear restrictions of MCLLO and of the full map: ``theta = start + basis beta``.

In the full map every class's odds may depend on those of all others: the multinomial logit of the
labels on all log odds, the same for every baseline (the full framework of Van Hoorde et al. 2014).

====================  ======================================================================  ======
log likelihood        ``theta . s - A(theta)``, MCLLO's as in `_model/likelihood`
full map: features    ``x_i = (1, l_1i, ..., l_Ki)``, l the log odds                          (c, n)
parameters            ``theta_j = (tau_j, W_j1 .. W_jK)``, row after row                      (K c,)
eta                   ``eta_ji = theta_j . x_i``; the baseline's is 0
identity              ``tau = 0``, ``W`` the identity matrix
MCLLO                 W diagonal: ``W_jj = gamma_j``
log partition         ``A(theta) = sum_i w_i log(1 + sum_j exp eta_ji)``
sufficient statistic  ``s_j = sum_i w_i 1[y_i = j] x_i``
Hessian, block (j,k)  ``sum_i w_i g_ji (1[j = k] - g_ki) x_i x_i'``
restricted fit        ``min_beta A(theta) - theta . s``: gradient ``B' g``, Hessian ``B' H
                      B``
gain of labels        ``sup_beta``, less the log likelihood at `start`; many labels at once
====================  ======================================================================  ======

Whether the identity holds is a simple hypothesis, so labels drawn from the predictions give exact
p-values for any larger model. Whether a model with parameters is large enough is a composite one:
labels are drawn from the fitted smaller model (parametric bootstrap), which is not exact, but does
not lean on chi-square either.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._fit.fit import MCLLOFit
from .._fit.objective import free_parameters
from .._inference.monte_carlo import StatisticDraws, draw_labels
from .._model.batched_fits import BatchedMinima, BatchedProblems
from .._model.batched_labels import LikelihoodRatio
from .._model.kernel import (
    CHUNK_ELEMENTS,
    DIAGONAL_ROUNDING_FACTOR,
    Derivatives,
    LogPartition,
    predicted_probabilities,
)
from .._model.likelihood import (
    Likelihood,
    RestrictedObjective,
    identity_theta,
    sufficient_statistic,
)
from .._model.newton import minimize
from .._utils.linalg import exceeds, unit_diagonal
from .._utils.results import Codes, Floats
from .._validation.predictions import Predictions

MIN_EIGENVALUE = 1e-10
"""Eigenvalue of a correlation matrix below which a direction counts as not identified."""
MIN_INFORMATION_SHARE = 1e-3
"""Part of the identity's information below which Newton does not start at an estimate."""


def design_matrix(log_odds: Floats) -> Floats:
    """Return the log odds below a row of ones, shape (c, n)."""
    return np.vstack([np.ones(log_odds.shape[1]), log_odds])


def full_identity(n_compared: int) -> Floats:
    """Return theta of the full map that changes nothing."""
    return np.hstack([np.zeros((n_compared, 1)), np.eye(n_compared)]).ravel()


def mcllo_places(n_compared: int) -> Codes:
    """Return where MCLLO's ``(tau, gamma)`` stand in theta of the full map."""
    first = (n_compared + 1) * np.arange(n_compared)
    return np.concatenate([first, first + 1 + np.arange(n_compared)])


def full_statistic(features: Floats, codes: Codes, weight: Floats | None) -> Floats:
    """Return s: the features' sums over the rows of each class other than the baseline."""
    scaled = features if weight is None else features * weight
    sums = [scaled[:, codes == j].sum(axis=1) for j in range(len(features) - 1)]
    return np.concatenate(sums)


class FullPartition:
    """``theta -> Derivatives`` of A(theta) for fixed `features` (ones, then log odds; shape (c,
    n)).
    """

    def __init__(self, features: Floats, weight: Floats | None = None) -> None:
        self.features, self.weight = features, weight
        self.n_features, self.n_samples = features.shape
        size = self.n_features * (self.n_features - 1)
        self._rows = max(256, CHUNK_ELEMENTS // size)

    def __call__(self, theta: Floats) -> Derivatives:
        """Return value, gradient and Hessian at `theta`."""
        d, k = self.n_features, self.n_features - 1
        value, gradient = 0.0, np.zeros(k * d)
        gram, blocks = np.zeros((k * d, k * d)), np.zeros((k * d, d))
        for start in range(0, self.n_samples, self._rows):
            x = self.features[:, start : start + self._rows]
            g, per_row = predicted_probabilities(identity_theta(k), theta.reshape(k, d) @ x)
            stack = (g[:k, None] * x).reshape(k * d, -1)
            weight = None if self.weight is None else self.weight[start : start + self._rows]
            scaled = stack if weight is None else stack * weight
            value += float(per_row.sum() if weight is None else per_row @ weight)
            gradient += scaled.sum(axis=1)
            gram += scaled @ stack.T
            blocks += scaled @ x.T
        hessian = -gram
        for j in range(k):
            block = blocks[j * d : (j + 1) * d]
            block[np.arange(d), np.arange(d)] *= DIAGONAL_ROUNDING_FACTOR
            hessian[j * d : (j + 1) * d, j * d : (j + 1) * d] += block
        return Derivatives(value, gradient, hessian)


class FullDraws(StatisticDraws):
    """Sufficient statistics of the full map for labels drawn from the rows, without weights."""

    def __init__(self, predictions: Predictions, seed: int) -> None:
        super().__init__(predictions, seed)
        self._features = design_matrix(predictions.log_odds).T.copy()

    def __call__(self, start: int, size: int) -> Floats:
        """Return draws ``start .. start + size``, shape (size, K c)."""
        labels = draw_labels(self.probs, self.seed, start, size)
        return np.hstack([(labels == j).astype(np.float64) @ self._features for j in self.columns])


class Family:
    """MCLLO or the full map as an exponential family, with the data's sufficient statistic."""

    def __init__(self, predictions: Predictions, *, full: bool = False) -> None:
        odds, weight = predictions.log_odds, predictions.sample_weight
        codes = predictions.model_codes
        self.full, self.log_odds, self.weight = full, odds, weight
        if full:
            self.features = design_matrix(odds)
            self.identity = full_identity(len(odds))
            self.statistic = full_statistic(self.features, codes, weight)
        else:
            self.identity = identity_theta(len(odds))
            self.statistic = sufficient_statistic(odds, codes, weight)

    def partition(self) -> LogPartition | FullPartition:
        """Return A with buffers of its own."""
        if self.full:
            return FullPartition(self.features, self.weight)
        return LogPartition(self.log_odds, self.weight)

    def likelihood(self) -> Likelihood:
        """Return the negative log likelihood of the data, with buffers of its own."""
        return Likelihood(self.partition(), self.statistic)

    def identified(self, basis: Floats) -> Floats:
        """Return `basis` without directions that the rows cannot tell from the others."""
        if basis.shape[1] == 0 or self._independent():
            return basis
        hessian = basis.T @ self.partition()(self.identity).hessian @ basis
        correlation, scale = unit_diagonal(hessian)
        values, vectors = np.linalg.eigh(correlation)
        return (basis / scale) @ vectors[:, values > MIN_EIGENVALUE]

    def _independent(self) -> bool:
        """Whether no combination of log odds is constant: then every model here is identified."""
        gram = np.atleast_2d(np.cov(self.log_odds, aweights=self.weight, bias=True))
        size = np.einsum("ji,ji->j", self.log_odds, self.log_odds) / self.log_odds.shape[1]
        constant = np.diagonal(gram) <= MIN_EIGENVALUE * size
        return not constant.any() and exceeds(gram, MIN_EIGENVALUE)


@dataclass(frozen=True, eq=False)
class RestrictedFit:
    """The best member of a restricted family.

    Attributes
    ----------
    theta : ndarray
        Estimate.
    log_likelihood : float
        At the estimate (the supremum where none exists).
    basis : ndarray of shape (n_parameters, df)
        Directions that were free.
    settled : bool
        Whether the estimate is finite, with information left around it.
    """

    theta: Floats
    log_likelihood: float
    basis: Floats
    settled: bool

    @property
    def df(self) -> int:
        """Free parameters."""
        return int(self.basis.shape[1])


def whole_fit(predictions: Predictions, fit: MCLLOFit) -> RestrictedFit:
    """Return the fit of MCLLO itself as a restriction of nothing but what rows cannot tell."""
    free = free_parameters(predictions.log_odds)
    theta = np.concatenate([fit.tau, fit.gamma])
    return RestrictedFit(theta, fit.log_likelihood, np.eye(len(free))[:, free], fit.converged)


def restricted_fit(family: Family, basis: Floats, start: Floats | None = None) -> RestrictedFit:
    """Maximise the likelihood over ``start + basis beta``; `start` is the identity when not given.

    Directions of `basis` must be identified (`Family.identified`).
    """
    origin = family.identity if start is None else start
    objective = RestrictedObjective(family.likelihood(), origin, basis)
    beta = np.zeros(basis.shape[1])
    if len(beta) == 0:
        return RestrictedFit(origin, min(0.0, -objective(beta).value), basis, True)
    solution = minimize(objective, beta)
    first, last = solution.start.hessian, solution.terms.hessian
    faded = np.diagonal(last) < MIN_INFORMATION_SHARE * np.diagonal(first)
    return RestrictedFit(
        theta=origin + basis @ solution.x,
        log_likelihood=min(0.0, -solution.value),
        basis=basis,
        settled=solution.converged and not bool(faded.any()),
    )


class FullRatio(LikelihoodRatio):
    """The likelihood ratio of many label vectors for the full map, one after the other."""

    def __init__(self, family: Family, basis: Floats, origin: Floats) -> None:
        self._partition = family.partition()
        super().__init__(family.log_odds, family.weight, basis=basis, origin=origin)

    def partition(self) -> Callable[[Floats], Derivatives]:
        """Return A of the full map."""
        return self._partition

    def minima(self, problems: BatchedProblems) -> BatchedMinima:
        """Return the fits."""
        return problems.one_by_one(self._partition)


def likelihood_ratio(family: Family, basis: Floats, origin: Floats) -> LikelihoodRatio:
    """Return the likelihood ratio of ``origin + basis beta`` to the origin."""
    if family.full:
        return FullRatio(family, basis, origin)
    return LikelihoodRatio(family.log_odds, family.weight, basis=basis, origin=origin)
