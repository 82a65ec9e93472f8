"""`Predictions` -> `MCLLOFit`: maximum likelihood (or ridge) estimates with their uncertainty.

=====================  ===========================================================
estimate               ``theta = argmin A(theta) - theta . s + penalty/2 |theta - theta0|^2``
covariance             ``H(theta)^-1``, penalty included; observed equals expected information
se(delta)              ``delta se(tau)``
interval for delta     ``exp(tau -/+ z se(tau))``; never ``delta -/+ z se(delta)``
=====================  ===========================================================

A class whose log odds are the same in every row cannot tell gamma from tau: its gamma stays 1 and
the degrees of freedom count one parameter less.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._labels import Classes
from ._map import MCLLOMap
from ._model import Likelihood, LogPartition, Terms, identity_theta, sufficient_statistic
from ._newton import Solution, minimize
from ._predictions import Predictions
from ._separation import separating_direction
from ._table import Table
from .exceptions import ConvergenceWarning, InputError, SeparationWarning

Floats = NDArray[np.float64]

COLLAPSED = 1e-5
"""Information left at the estimate, relative to the identity, below which separation is checked."""
FLAT = 1e-9
"""Information left below which the estimate is not determined even if it exists."""
INVISIBLE = 3e-13
"""Information, relative to the most that the rows can have, that is lost in rounding."""


_SCALARS = (
    "log_likelihood",
    "log_likelihood_null",
    "n_samples",
    "df",
    "penalty",
    "converged",
    "n_iter",
    "gradient_norm",
    "separated",
)


@dataclass(frozen=True, eq=False)
class Intervals:
    """Confidence intervals, one row (low, high) for each class other than the baseline."""

    level: float
    tau: Floats
    gamma: Floats
    delta: Floats


@dataclass(frozen=True, eq=False, repr=False)
class MCLLOFit(MCLLOMap):
    """Estimated map with standard errors.

    Attributes
    ----------
    tau, gamma, delta : ndarray of shape (n_classes - 1,)
        Estimates for the classes other than the baseline, in column order; ``delta = exp(tau)``.
    se_tau, se_gamma, se_delta : ndarray of shape (n_classes - 1,)
        Standard errors; NaN where the estimate does not exist or is not identified.
    cov_theta : ndarray of shape (2 (n_classes - 1), 2 (n_classes - 1))
        Covariance of ``(tau, gamma)``.
    log_likelihood, log_likelihood_null : float
        At the estimate and at the identity, without penalty.
    n_samples : int
        Rows.
    df : int
        Parameters that the rows can tell apart.
    penalty : float
        Ridge towards the identity; 0 is maximum likelihood.
    converged : bool
        Whether the solver met its tolerance at a finite maximum.
    n_iter : int
        Newton steps.
    gradient_norm : float
        Largest component of the gradient at the last evaluation.
    separated : bool
        The maximum does not exist: estimates drift to infinity and the log likelihood is its
        supremum.
    """

    cov_theta: Floats
    log_likelihood: float
    log_likelihood_null: float
    n_samples: int
    df: int
    penalty: float
    converged: bool
    n_iter: int
    gradient_norm: float
    separated: bool
    null_terms: Terms | None = field(repr=False, default=None)

    @property
    def statistic(self) -> float:
        """Twice the gain in log likelihood over the identity, Eq. (6)."""
        return max(0.0, 2.0 * (self.log_likelihood - self.log_likelihood_null))

    @property
    def _se(self) -> Floats:
        with np.errstate(invalid="ignore"):
            se: Floats = np.sqrt(np.diagonal(self.cov_theta))
        return se

    @property
    def se_tau(self) -> Floats:
        """Standard errors of tau."""
        return self._se[: len(self.tau)]

    @property
    def se_gamma(self) -> Floats:
        """Standard errors of gamma."""
        return self._se[len(self.tau) :]

    @property
    def se_delta(self) -> Floats:
        """Standard errors of delta (delta method)."""
        se: Floats = self.delta * self.se_tau
        return se

    def confidence_interval(self, level: float = 0.95) -> Intervals:
        """Return Wald intervals, on the tau scale for delta."""
        if not 0.0 < level < 1.0:
            raise InputError(f"level must lie in (0, 1); got level={level}.")
        from scipy.special import ndtri

        reach = float(ndtri(0.5 + level / 2.0)) * np.array([-1.0, 1.0])
        tau = self.tau[:, None] + self.se_tau[:, None] * reach
        gamma = self.gamma[:, None] + self.se_gamma[:, None] * reach
        return Intervals(level, tau, gamma, np.exp(tau))

    def parameters(self, level: float = 0.95) -> Table:
        """Return a table: class, delta and gamma with standard errors and intervals."""
        intervals = self.confidence_interval(level)
        return Table(
            {
                "class": self.compared,
                "delta": self.delta.tolist(),
                "se_delta": self.se_delta.tolist(),
                "delta_low": intervals.delta[:, 0].tolist(),
                "delta_high": intervals.delta[:, 1].tolist(),
                "gamma": self.gamma.tolist(),
                "se_gamma": self.se_gamma.tolist(),
                "gamma_low": intervals.gamma[:, 0].tolist(),
                "gamma_high": intervals.gamma[:, 1].tolist(),
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values; what cannot be estimated is None."""
        intervals = self.confidence_interval()
        arrays = {
            "delta": self.delta,
            "se_tau": self.se_tau,
            "se_gamma": self.se_gamma,
            "se_delta": self.se_delta,
            "delta_interval": intervals.delta,
            "gamma_interval": intervals.gamma,
            "cov_theta": self.cov_theta,
        }
        return {
            **super().to_dict(),
            **{name: none_for_nan(array.tolist()) for name, array in arrays.items()},
            "compared": list(self.compared),
            **{name: getattr(self, name) for name in _SCALARS},
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> MCLLOFit:
        """Return the fit that `to_dict` described."""
        own = {name: content[name] for name in _SCALARS}
        sizes = (len(content["tau"]) + 1, len(content["gamma"]) + 1, len(content["classes"]))
        if len(set(sizes)) != 1:
            raise ValueError(f"tau and gamma must have a value for each class but one; got {sizes}")
        covariance = np.array(content["cov_theta"], dtype=np.float64)
        return cls(
            tau=np.array(content["tau"], dtype=np.float64),
            gamma=np.array(content["gamma"], dtype=np.float64),
            classes=tuple(content["classes"]),
            baseline=content["baseline"],
            cov_theta=covariance,
            **own,
        )

    def __repr__(self) -> str:
        return (
            f"MCLLOFit(n_samples={self.n_samples}, n_classes={len(self.classes)}, "
            f"baseline={self.baseline!r}, statistic={self.statistic:.6g}, df={self.df}, "
            f"converged={self.converged}, separated={self.separated})"
        )


def none_for_nan(value: Any) -> Any:
    """Return `value` with every number that is not finite replaced by None (strict JSON)."""
    if isinstance(value, dict):
        return {key: none_for_nan(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [none_for_nan(v) for v in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def fit_predictions(predictions: Predictions, *, penalty: float = 0.0) -> MCLLOFit:
    """Fit the MCLLO model to validated predictions."""
    if not (np.isfinite(penalty) and penalty >= 0.0):
        raise InputError(f"penalty must be finite and not negative; got penalty={penalty}.")
    likelihood = likelihood_of(predictions)
    null = identity_theta(predictions.n_classes - 1)
    free = free_parameters(predictions.log_odds)
    solution = minimize(_Objective(likelihood, null, free, penalty), null[free])
    theta = null.copy()
    theta[free] = solution.x
    left = 1.0 if penalty else _information_left(solution, _most_information(predictions)[free])
    separated = bool(penalty == 0.0 and predictions.absent) or (
        left < COLLAPSED and _is_separated(predictions)
    )
    determined = not separated and left >= FLAT
    fit = MCLLOFit(
        tau=theta[: len(theta) // 2],
        gamma=theta[len(theta) // 2 :],
        classes=predictions.classes,
        baseline=predictions.baseline,
        cov_theta=_covariance(solution.terms.hessian, free, determined),
        log_likelihood=min(0.0, -_unpenalised(likelihood, solution, theta, penalty)),
        log_likelihood_null=min(0.0, -solution.start.value),
        n_samples=predictions.n_samples,
        df=int(free.sum()),
        penalty=penalty,
        converged=solution.converged and determined,
        n_iter=solution.n_iter,
        gradient_norm=solution.gradient_norm,
        separated=separated,
        null_terms=solution.start,
    )
    _warn(fit, predictions.absent)
    return fit


def likelihood_of(predictions: Predictions) -> Likelihood:
    """Return the negative log likelihood of the predictions as a function of theta."""
    odds, weight = predictions.log_odds, predictions.sample_weight
    statistic = sufficient_statistic(odds, predictions.model_codes, weight)
    return Likelihood(LogPartition(odds, weight), statistic)


class _Objective:
    """The penalised negative log likelihood as a function of the free parameters."""

    def __init__(
        self, likelihood: Likelihood, null: Floats, free: NDArray[np.bool_], penalty: float
    ) -> None:
        self.likelihood, self.null, self.free, self.penalty = likelihood, null, free, penalty

    def __call__(self, x: Floats) -> Terms:
        if self.free.all():
            terms = self.likelihood(x)
        else:
            theta = self.null.copy()
            theta[self.free] = x
            whole = self.likelihood(theta)
            hessian = whole.hessian[np.ix_(self.free, self.free)]
            terms = Terms(whole.value, whole.gradient[self.free], hessian)
        if self.penalty == 0.0:
            return terms
        away = x - self.null[self.free]
        ridge = Terms(
            0.5 * self.penalty * float(away @ away),
            self.penalty * away,
            self.penalty * np.eye(len(x)),
        )
        return terms + ridge


def free_parameters(log_odds: Floats) -> NDArray[np.bool_]:
    """Return a mask over theta: gamma_j is fixed where class j's log odds never vary."""
    varies = np.ptp(log_odds, axis=1) > 1e-12
    return np.concatenate([np.ones(len(log_odds), dtype=bool), varies])


def _information_left(solution: Solution, most: Floats) -> float:
    """Return the smallest information at the estimate, in units of that at the identity.

    It is 0 where it is lost in the rounding of `most`, the information that rows can have.
    """
    if _least(solution.terms.hessian, most) < INVISIBLE:
        return 0.0
    at_identity = np.maximum(np.diagonal(solution.start.hessian), INVISIBLE * most)
    return _least(solution.terms.hessian, at_identity)


def _least(hessian: Floats, unit: Floats) -> float:
    """Return the smallest eigenvalue of the Hessian in these units."""
    scale = np.sqrt(unit)
    return float(np.linalg.eigvalsh(hessian / np.outer(scale, scale))[0])


def _most_information(predictions: Predictions) -> Floats:
    """Return a bound on the diagonal of the Hessian at any theta: ``sum w / 4, sum w l^2 / 4``."""
    odds, weight = predictions.log_odds, predictions.sample_weight
    squares = np.einsum("ji,ji->j", odds, odds if weight is None else odds * weight)
    total = float(predictions.n_samples if weight is None else weight.sum())
    return 0.25 * np.concatenate([np.full(len(odds), total), np.maximum(squares, 1e-300)])


def _is_separated(predictions: Predictions) -> bool:
    odds, codes = predictions.log_odds, predictions.model_codes
    if predictions.sample_weight is not None:
        used = predictions.sample_weight > 0.0
        odds, codes = odds[:, used], codes[used]
    return separating_direction(odds, codes) is not None


def _covariance(hessian: Floats, free: NDArray[np.bool_], determined: bool) -> Floats:
    covariance = np.full((len(free), len(free)), np.nan)
    if determined:
        covariance[np.ix_(free, free)] = np.linalg.inv(hessian)
    return covariance


def _unpenalised(
    likelihood: Likelihood, solution: Solution, theta: Floats, penalty: float
) -> float:
    return solution.value if penalty == 0.0 else likelihood(theta).value


def _warn(fit: MCLLOFit, absent: Classes) -> None:
    if fit.converged:
        return
    remedy = "To recalibrate, use MCLLOCalibrator(penalty=1.0)."
    if fit.separated:
        cause = f"no row has class {absent[0]!r}" if absent else "the log odds separate the labels"
        message = (
            f"the maximum likelihood estimate does not exist ({cause}): estimates drift to "
            f"infinity, standard errors are NaN, the statistic is the supremum's. {remedy}"
        )
        warnings.warn(message, SeparationWarning, stacklevel=4)
    else:
        message = (
            f"the likelihood is all but flat after {fit.n_iter} steps (gradient "
            f"{fit.gradient_norm:.1e}): the statistic holds, the estimates are not determined. "
        )
        warnings.warn(message + remedy, ConvergenceWarning, stacklevel=4)
