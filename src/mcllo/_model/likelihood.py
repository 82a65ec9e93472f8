"""The MCLLO model: Eq. (1)-(5) of Vennos, Xing and Franck (2026), on arrays.

Conventions, stated here once: the baseline is the last of the c classes and has no parameters;
``K = c - 1``; arrays over rows are transposed, ``(K, n)``, because a reduction over a short last
axis is slow; ``theta = (tau_1 .. tau_K, gamma_1 .. gamma_K)``; the identity is ``theta0 = (0, 1)``.

====================  =================================================================  ===========
log odds              ``l_ji = log(x_ij / x_ic)``                                        (K, n)
eta                   ``eta_ji = tau_j + gamma_j l_ji``, tau = log(delta)                Eq. (1)
recalibrated          ``g_i = softmax(eta_1i, ..., eta_Ki, 0)``                          Eq. (3)-(4)
log partition         ``A(theta) = sum_i w_i log(1 + sum_j exp eta_ji)``
sufficient statistic  ``s = (sum_i w_i 1[y_i=j]; sum_i w_i 1[y_i=j] l_ji)``              (2K,)
negative log lik.     ``A(theta) - theta . s``                                           Eq. (5)
gradient of A         ``(sum_i w_i g_ji; sum_i w_i g_ji l_ji)``
Hessian of A          ``sum_i w_i Z_i' (diag g_i - g_i g_i') Z_i``, Z_i = [I, diag l_i]
====================  =================================================================  ===========

The labels enter only through s; A and its derivatives never see them. Both are sums over rows, so
`Derivatives` add. The softmax form equals Eq. (3) after dividing by ``x_ic ** gamma_j``; it needs
no powers and stays finite for any finite log odds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._utils.parallel import ordered_map, threads_for
from .._utils.results import Floats
from .compiled import fill_log_odds
from .kernel import Derivatives, probabilities_and_log_sums, row_chunks


def identity_theta(n_compared: int) -> Floats:
    """Return theta of the map that changes nothing: tau = 0, gamma = 1."""
    return np.concatenate([np.zeros(n_compared), np.ones(n_compared)])


def log_odds_from_log_probs(log_probs: Floats, baseline: int) -> Floats:
    """Return ``l_ji`` from transposed log probabilities (or logits) of shape (c, n), in place."""
    if baseline != len(log_probs) - 1:
        others = np.delete(log_probs, baseline, axis=0)
        log_probs = np.concatenate([others, log_probs[[baseline]]])
    log_probs[:-1] -= log_probs[-1]
    return log_probs[:-1]


def log_odds_from_rows(
    rows: NDArray[Any],
    baseline: int,
    *,
    rows_are_logs: bool = False,
    n_jobs: int | None = None,
) -> Floats:
    """Return ``l_ji`` of probabilities (or `rows_are_logs` of them, or logits) of shape (n, c)."""
    n, c = rows.shape
    odds = np.empty((c - 1, n))

    def fill_chunk(chunk: slice) -> None:
        if not rows_are_logs and fill_log_odds(rows[chunk], baseline, odds[:, chunk]):
            return
        logs = np.array(rows[chunk].T, dtype=np.float64, order="C")
        if not rows_are_logs:
            np.log(logs, out=logs)
        np.subtract(logs[:baseline], logs[baseline], out=odds[:baseline, chunk])
        np.subtract(logs[baseline + 1 :], logs[baseline], out=odds[baseline:, chunk])

    _run_on_row_chunks(fill_chunk, n, c - 1, n_jobs)
    return odds


def sufficient_statistic(
    log_odds: NDArray[Any], codes: NDArray[np.intp], weight: Floats | None = None
) -> Floats:
    """Return s: weighted class counts, and sums of the true class's log odds, without baseline."""
    k = len(log_odds)
    rows = np.flatnonzero(codes < k)
    labels = codes[rows]
    unit = np.ones(len(rows)) if weight is None else weight[rows]
    own_log_odds = log_odds[labels, rows]
    counts = np.bincount(labels, weights=unit, minlength=k)
    sums = np.bincount(labels, weights=unit * own_log_odds, minlength=k)
    return np.concatenate([counts, sums])


class NegativeLogLikelihood:
    """``theta -> Derivatives`` of the negative log likelihood ``A(theta) - theta . s``."""

    def __init__(
        self, partition: Callable[[Floats], Derivatives], statistic: Floats
    ) -> None:
        self.partition = partition
        self.statistic = statistic

    def __call__(self, theta: Floats) -> Derivatives:
        """Return value, gradient and Hessian at `theta`."""
        return self.from_log_partition(theta, self.partition(theta))

    def from_log_partition(
        self, theta: Floats, partition_derivatives: Derivatives
    ) -> Derivatives:
        """Return value, gradient and Hessian from those of A at `theta`."""
        value = partition_derivatives.value - float(theta @ self.statistic)
        return Derivatives(
            value,
            partition_derivatives.gradient - self.statistic,
            partition_derivatives.hessian,
        )


class RestrictedObjective:
    """``x -> Derivatives`` of an objective at ``theta = origin + basis x``, with a ridge on theta.

    The ridge is ``penalty/2 |theta - centre|^2``; without a `basis` x is ``theta - origin``.
    """

    def __init__(
        self,
        objective: Callable[[Floats], Derivatives],
        origin: Floats,
        basis: Floats | None = None,
        penalty: float = 0.0,
        centre: Floats | None = None,
    ) -> None:
        self.objective = objective
        self.origin = origin
        self.basis = basis
        self.penalty = penalty
        self.centre = origin if centre is None else centre

    def theta(self, x: Floats) -> Floats:
        """Return theta at `x`."""
        if self.basis is None:
            return self.origin + x
        return self.origin + self.basis @ x

    def __call__(self, x: Floats) -> Derivatives:
        """Return value, gradient and Hessian at `x`."""
        theta = self.theta(x)
        derivatives = self.objective(theta)
        if self.penalty:
            away = theta - self.centre
            pull = self.penalty * away
            curvature = self.penalty * np.eye(len(theta))
            derivatives += Derivatives(0.5 * float(pull @ away), pull, curvature)
        if self.basis is None:
            return derivatives
        gradient = self.basis.T @ derivatives.gradient
        hessian = self.basis.T @ derivatives.hessian @ self.basis
        return Derivatives(derivatives.value, gradient, hessian)


def recalibrate_from_log_odds(
    theta: Floats, log_odds: NDArray[Any], baseline: int, *, n_jobs: int | None = None
) -> Floats:
    """Return g of Eq. (3)-(4), shape (n, c), the baseline back in its column."""
    n = log_odds.shape[1]

    def log_odds_of_chunk(chunk: slice) -> Floats:
        return log_odds[:, chunk]

    return _recalibrate_by_chunks(theta, log_odds_of_chunk, n, baseline, n_jobs)


def recalibrate_rows(
    theta: Floats, rows: NDArray[Any], baseline: int, *, rows_are_logs: bool = False
) -> Floats:
    """Return g for probabilities (or `rows_are_logs` of them, or logits) of shape (n, c).

    As `recalibrate_from_log_odds`, but log odds are made chunk by chunk, while the rows are in
    cache.
    """

    def log_odds_of_chunk(chunk: slice) -> Floats:
        return log_odds_from_rows(
            rows[chunk], baseline, rows_are_logs=rows_are_logs, n_jobs=1
        )

    return _recalibrate_by_chunks(theta, log_odds_of_chunk, len(rows), baseline)


def _recalibrate_by_chunks(
    theta: Floats,
    log_odds_of_chunk: Callable[[slice], Floats],
    n_samples: int,
    baseline: int,
    n_jobs: int | None = None,
) -> Floats:
    k = len(theta) // 2
    recalibrated = np.empty((n_samples, k + 1))

    def fill_chunk(chunk: slice) -> None:
        g, _ = probabilities_and_log_sums(theta, log_odds_of_chunk(chunk))
        recalibrated[chunk, :baseline] = g[:baseline].T
        recalibrated[chunk, baseline] = g[k]
        recalibrated[chunk, baseline + 1 :] = g[baseline:k].T

    _run_on_row_chunks(fill_chunk, n_samples, k, n_jobs)
    return recalibrated


def _run_on_row_chunks(
    function: Callable[[slice], None],
    n_samples: int,
    n_compared: int,
    n_jobs: int | None,
) -> None:
    """Call `function` for stretches of rows whose arrays stay in cache."""
    chunks = list(row_chunks(n_samples, n_compared))
    list(ordered_map(function, chunks, threads_for(n_samples * n_compared, n_jobs)))
