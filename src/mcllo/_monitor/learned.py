"""Maps learned from the past alone: shifts of classes by counting, MCLLO with a ridge by Newton.

A learner keeps sums, never rows. What it knows fades: after a batch of n rows the old sums count
``rho = exp(-n / memory)``, for a short memory and for a long one.

=================  ==========================================================================
shifts             ``tau_j = log((N_j + PSEUDO_LABELS_PER_CLASS) / (E_j +
                   PSEUDO_LABELS_PER_CLASS))``, N and E the faded numbers of labels of class j and
                   of labels that were predicted
MCLLO              ``m = argmin  nll(batch; theta) + 1/2 (theta - m')' P (theta - m')``,
                   then ``P + hessian``; before that P and m' fade towards the prior
                   ``N(identity, PRIOR)``: a filter with 2 K + (2 K)^2 numbers
=================  ==========================================================================
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._model.kernel import Derivatives, LogPartition
from .._model.likelihood import Likelihood, identity_theta, sufficient_statistic
from .._model.newton import minimize
from .._utils.results import Codes, Floats

MEMORY_ROWS_PER_CLASS = (100.0, 2000.0)
"""Rows a class that a learner remembers: the short memory and the long one."""
PSEUDO_LABELS_PER_CLASS = 3.0
"""Labels of each class, as many as predicted, that stand for what was known before."""
TAU_PRECISION = 4.0  # 1 / variance of the prior: shifts of 0.5 are usual
GAMMA_PRECISION = 16.0  # slopes of 0.25 are usual
MAX_CLASSES_TO_LEARN = 30
"""With more classes MCLLO is not learned: its Hessian would cost more than the evidence."""
MAX_ROWS_TO_LEARN = 20_000
"""Rows of a batch, at even distances, that MCLLO learns from."""


@dataclass(frozen=True, eq=False)
class Shifts:
    """Faded counts of the labels, and what was predicted."""

    counts: Floats
    predicted: Floats

    @classmethod
    def new(cls, n_classes: int) -> Shifts:
        """Return what is known before the first row: nothing."""
        return cls(np.zeros(n_classes), np.zeros(n_classes))

    @property
    def tau(self) -> Floats:
        """The shift of each class."""
        return np.log(
            (self.counts + PSEUDO_LABELS_PER_CLASS) / (self.predicted + PSEUDO_LABELS_PER_CLASS)
        )

    def after(self, counts: Floats, predicted: Floats, memory: float) -> Shifts:
        """Return what is known after a batch with these sums."""
        rho = np.exp(-counts.sum() / (memory * len(counts)))
        return Shifts(rho * self.counts + counts, rho * self.predicted + predicted)


@dataclass(frozen=True, eq=False)
class Filter:
    """What is believed of theta: about ``N(mean, precision^-1)``."""

    mean: Floats
    precision: Floats

    @classmethod
    def new(cls, n_classes: int) -> Filter:
        """Return the prior."""
        return cls(identity_theta(n_classes - 1), _prior(n_classes - 1))

    def after(
        self, log_odds: Floats, codes: Codes, memory: float, weight: Floats | None = None
    ) -> Filter:
        """Return what is believed after a batch; codes are rows of `log_odds`, the last beyond."""
        k, n = log_odds.shape
        total = float(n if weight is None else weight.sum())
        rho, prior = np.exp(-total / (memory * (k + 1))), _prior(k)
        precision = rho * self.precision + (1.0 - rho) * prior
        pulled = rho * self.precision @ self.mean + (1.0 - rho) * prior @ identity_theta(k)
        mean = np.linalg.solve(precision, pulled)
        step = -(-n // MAX_ROWS_TO_LEARN)
        odds, own = np.ascontiguousarray(log_odds[:, ::step]), codes[::step]
        counted = np.full(len(own), float(step))
        if weight is not None:
            counted *= weight[::step]
        likelihood = Likelihood(
            LogPartition(odds, counted), sufficient_statistic(odds, own, counted)
        )

        def objective(theta: Floats) -> Derivatives:
            away = theta - mean
            force = precision @ away
            return likelihood(theta) + Derivatives(0.5 * float(away @ force), force, precision)

        found = minimize(objective, mean, tol=1e-6)
        return Filter(found.x, precision + likelihood(found.x).hessian)


def _prior(k: int) -> Floats:
    return np.diag(np.concatenate([np.full(k, TAU_PRECISION), np.full(k, GAMMA_PRECISION)]))
