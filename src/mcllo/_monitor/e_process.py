"""Evidence that adds up over batches: an e-process for ever, an e-detector for a change.

With F_k(m) the factor of batch k under map m (`_monitor/e_values`), w_m the map's share, and one
recursion for both:

===========  ====================================================================================
evidence     ``N_k(m) = (N_{k-1}(m) + pi_k) F_k(m)``, ``E_k = sum_m w_m N_k(m) + 1 / (k + 1)`` with
             ``pi_k = 1 / (k (k + 1))``: a mixture over the maps and over the batch at which the
             departure began. ``P(ever E_k >= 1 / alpha) <= alpha`` (Ville), and ``1 / max E`` is a
             p-value at any time
detector     ``M_k(m) = (M_{k-1}(m) + 1) F_k(m)``, ``M_k = sum_m w_m M_k(m)`` (Shiryaev, Roberts):
             ``M_k - k`` is a martingale of calibrated rows, so that the mean number of batches
             until ``M_k >= A`` is at least A
onset        of the leading map, the batch after its CUSUM was last 0; told only where the batches
             before it speak against a departure that was there from the first
classes      ``E_k(j)``: the evidence of the maps of class j alone; e-BH names the classes
===========  ====================================================================================

A calm past costs the evidence ``log(k (k + 1))`` and the detector nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from .._utils.results import Codes, Floats
from .e_values import EXPONENTS, PER_CLASS, BatchFactors, log_prior_weights_of_maps


@dataclass(frozen=True, eq=False)
class Detector:
    """The state after `n_batches`, in logarithms, one number for each map.

    Attributes
    ----------
    n_batches : int
        Batches so far.
    started : ndarray
        ``log N_k(m)``.
    detected : ndarray
        ``log M_k(m)``.
    cusum, since : ndarray
        Sum of the log factors since it was last 0, and the first batch of that sum.
    total : ndarray
        Sum of the log factors of all batches; NaN in files of before that did not keep it.
    most : float
        Largest ``log E_k`` so far.
    """

    n_batches: int
    started: Floats
    detected: Floats
    cusum: Floats
    since: Codes
    total: Floats
    most: float

    @classmethod
    def new(cls, n_classes: int) -> Detector:
        """Return the state before the first batch."""
        n_maps = len(log_prior_weights_of_maps(n_classes))
        return cls(
            n_batches=0,
            started=np.full(n_maps, -np.inf),
            detected=np.full(n_maps, -np.inf),
            cusum=np.zeros(n_maps),
            since=np.ones(n_maps, dtype=np.intp),
            total=np.zeros(n_maps),
            most=0.0,
        )

    def after(
        self, factors: BatchFactors, null_gain: float = 0.0, dispersion: float = 1.0
    ) -> Detector:
        """Return the state after one more batch.

        `null_gain` is what the null hypothesis of a fitted map (`_monitor/fitted_map`) has gained
        over the predictions that the factors are against; 0 where these are taken for exact. Log
        factors are divided by `dispersion`, which is at least 1 and known before the batch.
        """
        k = self.n_batches + 1
        log_f = (factors.log_factors_by_map() - null_gain) / dispersion
        log_prior_of_start = -math.log(k) - math.log1p(k)  # pi_k = 1 / (k (k + 1))
        starts_anew = self.cusum <= 0.0
        changed = Detector(
            n_batches=k,
            started=np.logaddexp(self.started, log_prior_of_start) + log_f,
            detected=np.logaddexp(self.detected, 0.0) + log_f,
            cusum=np.where(starts_anew, 0.0, self.cusum) + log_f,
            since=np.where(starts_anew, k, self.since),
            total=self.total + log_f,
            most=self.most,
        )
        return replace(changed, most=max(self.most, changed.log_evidence))

    @property
    def n_classes(self) -> int:
        """Number of classes, from the number of maps."""
        return _n_classes_from_n_maps(len(self.started))

    @property
    def log_evidence(self) -> float:
        """``log E_k``."""
        mixed = log_sum_exp(log_prior_weights_of_maps(self.n_classes) + self.started)
        return float(np.logaddexp(mixed, -math.log1p(self.n_batches)))

    @property
    def log_detector(self) -> float:
        """``log M_k``."""
        return log_sum_exp(log_prior_weights_of_maps(self.n_classes) + self.detected)

    @property
    def pvalue(self) -> float:
        """A p-value that is valid whenever one looks."""
        return math.exp(-max(0.0, self.most))

    @property
    def log_class_evidence(self) -> Floats:
        """``log E_k(j)`` of every class."""
        first = len(EXPONENTS)
        own = self.started[first : first + PER_CLASS * self.n_classes].reshape(
            -1, PER_CLASS
        )
        mixed = np.logaddexp.reduce(own, axis=1) - math.log(PER_CLASS)
        return np.logaddexp(mixed, -math.log1p(self.n_batches))

    @property
    def leading_map(self) -> int:
        """The map that the detector trusts most; before the first batch the usual one."""
        trust = np.logaddexp(self.detected, 0.0)
        return int(np.argmax(log_prior_weights_of_maps(self.n_classes) + trust))

    def leading_map_since(self, start_batch: int) -> tuple[int, float]:
        """Return the map that gained most since batch `start_batch`, and the log loss it has saved.

        Maps are compared that were last at 0 just before it; since the first batch, all of them.
        NaN where none has saved any.
        """
        own = np.where(self.since == start_batch, self.cusum, -np.inf)
        if start_batch == 1 and self.knows_sums_of_all_batches:
            own = self.total
        place = int(np.argmax(own))
        saved = float(own[place])
        if saved > 0.0:
            return place, saved
        return self.leading_map, math.nan

    @property
    def onset_batch(self) -> int:
        """Number of the batch at which the departure seems to have begun, from 1."""
        return int(self.since[self.leading_map])

    @property
    def knows_sums_of_all_batches(self) -> bool:
        """Whether the sums of all batches are known; not in files of before."""
        return not np.isnan(self.total).any()

    def began_after_first_batch(self, alpha: float) -> bool:
        """Whether the batches before the onset speak against a departure from the first batch on.

        If labels had followed map m from the first batch on, ``exp(-total)`` of m would be a
        martingale: that it ever reaches ``1 / (w_m alpha)`` has a chance of ``w_m alpha`` at most,
        and for any m of `alpha`. So a beginning is told only where the leading map since the onset
        is ahead by ``log(1 / (w_m alpha))`` of the map that explains all batches best.
        """
        if not self.knows_sums_of_all_batches:
            return self.onset_batch > 1
        leading = self.leading_map
        since_onset = float(self.cusum[leading])
        since_first = float(self.total.max())
        log_weight = float(log_prior_weights_of_maps(self.n_classes)[leading])
        return since_onset - since_first >= -math.log(alpha) - log_weight


def _n_classes_from_n_maps(n_maps: int) -> int:
    """Return how many classes give so many maps."""
    n_others = (
        n_maps - len(EXPONENTS) - 1
    )  # without the temperatures and the map of zeros
    # two learned shifts, and two learned MCLLO maps where there are not too many classes
    for n_learned in (4, 2):
        n_classes = (n_others - n_learned) // PER_CLASS
        if len(log_prior_weights_of_maps(n_classes)) == n_maps:
            return n_classes
    raise ValueError(f"no number of classes has {n_maps} maps")


def log_sum_exp(values: Floats) -> float:
    """Return ``log sum exp``; of nothing but 0 it is ``-inf``."""
    return float(np.logaddexp.reduce(values))


def classes_rejected_by_e_bh(log_e_values: Floats, alpha: float) -> Codes:
    """Return the classes that e-BH names: false ones among them a share of `alpha` at most.

    The r largest e-values are named for the largest r with ``e_(r) >= c / (r alpha)``; e-values may
    depend on each other in any way (Wang and Ramdas, 2022).

    Examples
    --------
    >>> classes_rejected_by_e_bh(np.log([100.0, 3.0, 45.0]), 0.05).tolist()
    [0, 2]
    """
    n_classes = len(log_e_values)
    strongest_first = np.argsort(-log_e_values, kind="stable")
    rank = np.arange(1, n_classes + 1)
    bars = math.log(n_classes) - np.log(rank) - math.log(alpha)
    passed = np.flatnonzero(log_e_values[strongest_first] >= bars)
    n_named = passed[-1] + 1 if len(passed) else 0
    return np.sort(strongest_first[:n_named])
