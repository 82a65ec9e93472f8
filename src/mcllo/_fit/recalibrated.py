"""`RecalibratedProbabilities`: recalibrated probabilities with an interval for each.

A recalibrated probability is a function of the estimate, ``g_j = softmax(eta, 0)_j`` with
``eta_k = tau_k + gamma_k l_k``, and inherits its uncertainty (delta method):

====================  ====================================================================
variance of g         ``J Cov J'``, ``J = (diag g - g g') Z``, ``Z = [I, diag l]``
logit                 ``logit g_j = eta_j - log sum_{k != j} exp eta_k``
its derivative        ``a_j = z_j - sum_{k != j} q_jk z_k``, ``q_jk = g_k / (1 - g_j)``
its standard error    ``sqrt(a_j' Cov a_j)``: the sum of ``(a_j . f)^2`` over f, ``Cov = F F'``
interval              ``expit(logit g_j -/+ z se)``; it stays inside (0, 1)
====================  ====================================================================

z_k are the 2K features of class k, 0 for the baseline. Near ``g_j = 1`` the weights q_jk would be a
ratio of rounding errors, so the class on top has its own softmax over the others.

An interval is about the map, at one row and one class: where the probability would lie had the map
been fitted to all rows there are. It is not about the label, it does not hold for all rows at once,
and it takes the model as true. Rows of `low` and of `high` do not sum to 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._model.kernel import CHUNK_ELEMENTS
from .._utils.formatting import Table
from .._utils.linalg import unit_diagonal
from .._utils.results import Floats, plain
from .._validation.labels import Classes
from .._validation.probabilities import Simplex
from ..exceptions import InputError

if TYPE_CHECKING:
    from .fit import MCLLOFit


NEGATIVE_EIGENVALUE_TOL = 1e-8
"""Negative eigenvalue of a correlation matrix that is more than rounding."""


@dataclass(frozen=True, eq=False, repr=False)
class RecalibratedProbabilities:
    """Recalibrated probabilities with pointwise intervals.

    Attributes
    ----------
    probs, low, high : ndarray of shape (n_samples, n_classes)
        Recalibrated probabilities and the ends of their intervals.
    level : float
        Of each single interval.
    method : {"delta", "bootstrap"}
        Where the intervals come from.
    classes : tuple
        The classes, in column order.

    See Also
    --------
    MCLLOFit : Its ``recalibrate`` makes it with an interval level.
    BootstrapFits : Makes it from refits.
    MCLLOCalibrator : Gives the probabilities alone.

    Notes
    -----
    An interval is about the map at one row and one class, not about the label. Intervals do not
    hold for all rows at once, and rows of `low` and of `high` do not sum to 1.

    Examples
    --------
    >>> import mcllo
    >>> probs = [[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]] * 10
    >>> y = [0, 1, 1, 0, 0, 0, 1, 1] * 5
    >>> fits = mcllo.bootstrap_fits(probs, y, n_resamples=49, seed=0)
    >>> found = fits.recalibrate([[0.7, 0.3]])
    >>> bool((found.low <= found.probs).all()), found.method
    (True, 'bootstrap')
    """

    probs: Floats
    low: Floats
    high: Floats
    level: float
    method: str
    classes: Classes

    @property
    def table(self) -> Table:
        """One line for each row and class: row, class, prob, low, high."""
        n, c = self.probs.shape
        columns = {"row": np.repeat(np.arange(n), c).tolist(), "class": list(self.classes) * n}
        parts = {"prob": self.probs, "low": self.low, "high": self.high}
        return Table(columns | {name: part.ravel().tolist() for name, part in parts.items()})

    def to_frame(self) -> Any:
        """Return `table` as a pandas ``DataFrame``."""
        return self.table.to_frame()

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values."""
        names = ("classes", "level", "method", "probs", "low", "high")
        return {name: plain(getattr(self, name)) for name in names}

    def __repr__(self) -> str:
        n, c = self.probs.shape
        return (
            f"RecalibratedProbabilities(n_samples={n}, n_classes={c}, level={self.level:g}, "
            f"method={self.method!r})"
        )


def recalibrate_with_intervals(
    fit: MCLLOFit, simplex: Simplex, level: float = 0.95, *, covariance: Any = None
) -> RecalibratedProbabilities:
    """Return recalibrated probabilities with delta-method intervals.

    A gamma that the rows could not tell (its class's log odds never varied) counts as known: the
    intervals are those given gamma = 1. With a ridge the covariance is that of a normal prior
    around the ridge's centre, and so is the reading of the intervals.

    Parameters
    ----------
    fit : MCLLOFit
        The estimated map.
    simplex : Simplex
        Validated rows (`read_simplex`).
    level : float
        Of each single interval.
    covariance : array-like of shape (2 (n_classes - 1), 2 (n_classes - 1)), optional
        Covariance of ``(tau, gamma)`` to use instead of the fit's own, say a robust one.

    Raises
    ------
    InputError
        When the estimate is not determined, so that it has no covariance.
    """
    check_level(level)
    from scipy.special import expit, ndtri

    factor = _factor(fit, covariance)
    probs, odds, b = fit.apply(simplex), fit.log_odds(simplex), fit.baseline_index
    low, high = np.empty_like(probs), np.empty_like(probs)
    order = [*np.delete(np.arange(probs.shape[1]), b), b]
    reach, rows = float(ndtri(0.5 + level / 2.0)), max(256, CHUNK_ELEMENTS // len(order))
    for start in range(0, len(probs), rows):
        block = slice(start, start + rows)
        logit, se = logit_and_error(fit.theta, factor, odds[:, block])
        low[block, order] = expit(logit - reach * se).T
        high[block, order] = expit(logit + reach * se).T
    # where nothing is uncertain the two ways to g may differ in the last digit
    np.minimum(low, probs, out=low)
    np.maximum(high, probs, out=high)
    return RecalibratedProbabilities(probs, low, high, level, "delta", fit.classes)


def logit_and_error(theta: Floats, factor: Floats, odds: Floats) -> tuple[Floats, Floats]:
    """Return ``logit g`` and its standard errors, shape (c, rows), the baseline last.

    `factor` is F, shape (2K, r), with ``F F'`` the covariance of theta; `odds` has shape (K, rows).
    """
    eta = _linear(theta, odds)
    top = (eta.argmax(axis=0), np.arange(eta.shape[1]))
    others = eta.copy()
    others[top] = -np.inf
    runner_up = others.max(axis=0)
    q = np.exp(others - runner_up)
    log_others = runner_up + np.log(q.sum(axis=0))
    q /= q.sum(axis=0)
    log_total = np.logaddexp(eta[top], log_others)
    g = np.exp(eta - log_total)
    rest = 1.0 - g
    rest[top] = 1.0  # not used: it may be 0
    logit = eta - log_total - np.log(rest)
    logit[top] = eta[top] - log_others
    variance = np.zeros_like(eta)
    for column in factor.T:
        u = _linear(column, odds)
        slope = (u - (g * u).sum(axis=0)) / rest
        slope[top] = u[top] - (q * u).sum(axis=0)
        variance += slope * slope
    return logit, np.sqrt(variance)


def _linear(theta: Floats, odds: Floats) -> Floats:
    """Return ``z_k . theta`` for every class, shape (c, rows), 0 for the baseline."""
    k, m = odds.shape
    eta = np.zeros((k + 1, m))
    np.multiply(odds, theta[k:, None], out=eta[:k])
    eta[:k] += theta[:k, None]
    return eta


def _factor(fit: MCLLOFit, covariance: Any) -> Floats:
    """Return F with ``F F'`` the covariance, rows of 0 for parameters that count as known."""
    size = len(fit.theta)
    if fit.information == "blocks":
        raise InputError(
            f"intervals need the covariance of all parameters, and {size:,} are too many for one; "
            "leave out interval=."
        )
    if fit.information == "errors" and covariance is None:
        raise InputError(
            "intervals need the covariance of all parameters, and this fit comes from a file that "
            "leaves it out. Save it with save(path, covariance=True), or pass covariance=."
        )
    if np.isnan(fit.se_tau).any():
        raise InputError(
            "intervals need an estimate that the rows determine; this fit has no standard errors "
            f"(separated={fit.separated}, converged={fit.converged}). Fit with penalty=1.0."
        )
    given = np.array(fit.cov_theta if covariance is None else covariance, dtype=np.float64)
    if given.shape != (size, size):
        raise InputError(f"covariance must have shape ({size}, {size}); got {given.shape}.")
    known = np.flatnonzero(np.isnan(np.diagonal(given)) & np.isnan(np.diagonal(fit.cov_theta)))
    given[known] = 0.0
    given[:, known] = 0.0
    if (np.diagonal(given) < 0.0).any():
        raise InputError("covariance must have no negative variance; got one that has.")
    unit, scale = unit_diagonal(given)
    if not np.isfinite(unit).all() or not np.allclose(unit, unit.T, atol=NEGATIVE_EIGENVALUE_TOL):
        raise InputError("covariance must be finite and symmetric; got one that is not.")
    values, vectors = np.linalg.eigh(unit)
    if values[0] < -NEGATIVE_EIGENVALUE_TOL * size:
        raise InputError(
            f"covariance must have no negative eigenvalue; as a correlation it has {values[0]:.3g}."
        )
    return scale[:, None] * vectors * np.sqrt(np.maximum(values, 0.0))


def check_level(level: Any) -> None:
    """Refuse a level that is not a number strictly between 0 and 1."""
    number = isinstance(level, (int, float, np.integer, np.floating))
    if not number or isinstance(level, bool) or not 0.0 < level < 1.0:
        raise InputError(f"interval must be a level in (0, 1), say 0.95; got interval={level!r}.")
