"""Maps that a monitor knows: those it learns from earlier batches, and the fitted one it watches.

Learned from the past alone: shifts of classes by counting, MCLLO with a ridge by Newton. A learner
keeps sums, never rows. What it knows fades: after a batch of n rows the old sums count
``rho = exp(-n / memory)``, for a short memory and for a long one.

=================  ==========================================================================
shifts             ``tau_j = log((N_j + PSEUDO_LABELS_PER_CLASS) / (E_j +
                   PSEUDO_LABELS_PER_CLASS))``, N and E the faded numbers of labels of class j and
                   of labels that were predicted
MCLLO              ``m = argmin  nll(batch; theta) + 1/2 (theta - m')' P (theta - m')``,
                   then ``P + hessian``; before that P and m' fade towards the prior
                   ``N(identity, PRIOR)``: a filter with 2 K + (2 K)^2 numbers
=================  ==========================================================================

The null hypothesis of a map that was fitted: off by its estimation error, and by no more. A map
learned from 300 rows is off, and 15,000 later rows show it, though nothing has changed. So the
probabilities x of a fitted map are not taken for exact. They are off by an MCLLO map of unknown
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

import math
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._model.kernel import Derivatives, LogPartition
from .._model.likelihood import (
    NegativeLogLikelihood,
    identity_theta,
    sufficient_statistic,
)
from .._model.newton import minimize
from .._utils.atomic_files import StrPath
from .._utils.results import Codes, Floats
from .._validation.predictions import Predictions

if TYPE_CHECKING:
    from ..calibrators._base import Calibrator

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
class ShiftLearner:
    """Faded counts of the labels, and what was predicted."""

    counts: Floats
    predicted: Floats

    @classmethod
    def new(cls, n_classes: int) -> ShiftLearner:
        """Return what is known before the first row: nothing."""
        return cls(np.zeros(n_classes), np.zeros(n_classes))

    @property
    def tau(self) -> Floats:
        """The shift of each class."""
        return np.log(
            (self.counts + PSEUDO_LABELS_PER_CLASS)
            / (self.predicted + PSEUDO_LABELS_PER_CLASS)
        )

    def after(self, counts: Floats, predicted: Floats, memory: float) -> ShiftLearner:
        """Return what is known after a batch with these sums."""
        rho = np.exp(-counts.sum() / (memory * len(counts)))
        return ShiftLearner(
            rho * self.counts + counts, rho * self.predicted + predicted
        )


@dataclass(frozen=True, eq=False)
class MapFilter:
    """What is believed of theta: about ``N(mean, precision^-1)``."""

    mean: Floats
    precision: Floats

    @classmethod
    def new(cls, n_classes: int) -> MapFilter:
        """Return the prior."""
        return cls(identity_theta(n_classes - 1), _prior_precision(n_classes - 1))

    def after(
        self,
        log_odds: Floats,
        codes: Codes,
        memory: float,
        weight: Floats | None = None,
    ) -> MapFilter:
        """Return what is believed after a batch; codes are rows of `log_odds`, the last beyond."""
        n_compared, n_rows = log_odds.shape
        total = float(n_rows if weight is None else weight.sum())
        rho = np.exp(-total / (memory * (n_compared + 1)))
        prior = _prior_precision(n_compared)
        precision = rho * self.precision + (1.0 - rho) * prior
        pulled = rho * self.precision @ self.mean + (
            1.0 - rho
        ) * prior @ identity_theta(n_compared)
        mean = np.linalg.solve(precision, pulled)
        step = math.ceil(
            n_rows / MAX_ROWS_TO_LEARN
        )  # every second row, every third, ...
        odds = np.ascontiguousarray(log_odds[:, ::step])
        counted = np.full(odds.shape[1], float(step))
        if weight is not None:
            counted *= weight[::step]
        statistic = sufficient_statistic(odds, codes[::step], counted)
        likelihood = NegativeLogLikelihood(LogPartition(odds, counted), statistic)

        def objective(theta: Floats) -> Derivatives:
            away = theta - mean
            force = precision @ away
            return likelihood(theta) + Derivatives(
                0.5 * float(away @ force), force, precision
            )

        mode = minimize(objective, mean, tol=1e-6).x
        return MapFilter(mode, precision + likelihood(mode).hessian)


def _prior_precision(n_compared: int) -> Floats:
    return np.diag(
        np.concatenate(
            [np.full(n_compared, TAU_PRECISION), np.full(n_compared, GAMMA_PRECISION)]
        )
    )


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
    def new(
        cls, n_rows_learned: int, first_batch: Predictions, baseline: int
    ) -> FittedNull:
        """Return the belief before the first batch, from its predictions alone.

        Parameters
        ----------
        n_rows_learned : int
            Rows that the map was learned from.
        first_batch : Predictions
            The first batch, as the map made it; its labels are not used.
        baseline : int
            Column that the log odds are against.
        """
        n_compared = first_batch.n_classes - 1
        identity = identity_theta(n_compared)
        information = _negative_log_likelihood(first_batch, baseline)(identity).hessian
        mean_information = information / (
            _row_weights(first_batch).sum() + N_PSEUDO_ROWS
        )
        ridge = PRIOR_RIDGE * np.repeat([TAU_PRECISION, GAMMA_PRECISION], n_compared)
        return cls(
            identity, n_rows_learned * mean_information + np.diag(ridge), baseline
        )

    @property
    def dispersion(self) -> float:
        """How much more scores have varied than the model says, at least 1."""
        mean = (N_PSEUDO_BATCHES + self.score_ratios) / (
            N_PSEUDO_BATCHES + self.n_batches
        )
        return max(1.0, mean)

    def predictions_at_mean(self, rows: Predictions) -> Predictions:
        """Return the probabilities at the mean: what the batches so far make of the map."""
        log_odds = _with_baseline(rows, self.baseline).log_odds
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
        likelihood = _negative_log_likelihood(rows, self.baseline)

        def negative_log_posterior(theta: Floats) -> Derivatives:
            away = theta - self.mean
            force = self.precision @ away
            return likelihood(theta) + Derivatives(
                0.5 * float(away @ force), force, self.precision
            )

        mode = minimize(negative_log_posterior, self.mean, tol=1e-6).x
        at_mode = negative_log_posterior(mode)
        log_q = -at_mode.value
        log_q -= 0.5 * (
            _log_determinant(at_mode.hessian) - _log_determinant(self.precision)
        )
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


def _with_baseline(rows: Predictions, baseline: int) -> Predictions:
    return rows.with_baseline(rows.classes[baseline])


def _row_weights(rows: Predictions) -> Floats:
    """Return what each row counts: a group counts as one row, a label predicted as 0 nothing."""
    weight = np.ones(rows.n_samples)
    if rows.groups is not None:
        weight /= np.bincount(rows.groups)[rows.groups]
    if rows.raised is not None:
        weight[rows.raised[np.arange(rows.n_samples), rows.codes]] = 0.0
    return weight


def _negative_log_likelihood(rows: Predictions, baseline: int) -> NegativeLogLikelihood:
    """Return the negative log likelihood of theta, and its derivatives."""
    against = _with_baseline(rows, baseline)
    log_odds = np.ascontiguousarray(against.log_odds)
    weight = _row_weights(rows)
    statistic = sufficient_statistic(log_odds, against.model_codes, weight)
    return NegativeLogLikelihood(LogPartition(log_odds, weight), statistic)


def _log_determinant(matrix: Floats) -> float:
    return float(np.linalg.slogdet(matrix)[1])


def read_recalibration(
    model: StrPath | Calibrator | None,
) -> tuple[str | None, Calibrator | None]:
    """Return a recalibration as the JSON of its file, and the recalibration."""
    if model is None:
        return None, None
    from ..calibrators import load_calibrator
    from ..calibrators._base import Calibrator, refuse_choice_calibrator

    if isinstance(model, Calibrator):
        refuse_choice_calibrator(model)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.json"
            model.save(path)
            return path.read_text(encoding="utf-8"), model
    loaded = load_calibrator(model)
    refuse_choice_calibrator(loaded)
    return Path(model).read_text(encoding="utf-8"), loaded


def n_rows_learned(model: Calibrator) -> int | None:
    """Return how many rows a model was learned from: 0 if it changes nothing, None if unknown."""
    gate = getattr(model, "gate_", None)
    if model.method == "identity" or (gate is not None and not gate.recalibrates):
        return 0
    training = getattr(model, "training_", None)
    if training is not None:
        return int(training["n_samples"])
    fit = getattr(model, "fit_", None)
    return None if fit is None else int(fit.n_samples)


def new_fitted_null(
    rows: Predictions, baseline: int, settings: dict[str, Any]
) -> FittedNull | None:
    """Return the null hypothesis that allows for a map's estimation error, where there is one."""
    n_learned = settings.get("n_rows_learned")
    if not n_learned or rows.n_classes > MAX_CLASSES_FITTED_NULL:
        return None
    return FittedNull.new(n_learned, rows, baseline)
