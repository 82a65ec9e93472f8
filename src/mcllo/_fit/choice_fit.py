"""Choice sets -> `ChoiceFit`: one slope and a shift for each position, by conditional logit.

==================  ================================================================================
map                 ``g_ij ~ delta_j p_ij^gamma`` over the options j that row i offers
parameters          ``beta = (tau_j, j not the reference; gamma)``, ``tau = log delta``
theta               ``(tau_1 .. tau_M, gamma .. gamma) = origin + basis beta``: the model of
                    `_model/likelihood` with a basis, and a mask of what is offered
estimate            ``argmin A(theta) - theta . s + penalty/2 |beta - beta0|^2``
covariance          ``(basis' H basis)^-1``, a ridge included
==================  ================================================================================

The reference, whose delta is 1, is the position that most rows offer. Where every row offers every
option this is the nested model "one slope, class shifts" (`_diagnostics/nested_models`), and with
gamma = 1 / T and no shifts temperature scaling. `terms` leaves out shifts or slope.

A position that is never right has no finite shift: the likelihood rises to that of rows which do
not offer it. Without a ridge so the others are estimated, and its own shift is set to `NEVER_TAU`,
which leaves it no probability that a double would show. Other separations (an option that is always
right where it is offered) show as information that vanishes: `converged` is then false.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from .._model.kernel import Derivatives, probabilities_and_log_sums
from .._model.likelihood import RestrictedObjective, identity_theta
from .._model.newton import minimize
from .._utils.formatting import Table
from .._utils.linalg import pseudo_inverse
from .._utils.results import Floats, none_for_nonfinite
from .._validation.arguments import check_share
from .._validation.labels import Classes
from .._validation.predictions import Predictions
from ..exceptions import InputError
from .estimate import SEPARATION_CHECK_INFORMATION
from .objective import build_negative_log_likelihood

Terms = Literal["both", "slope", "positions"]
NEVER_TAU = -40.0
"""Shift that stands for minus infinity: a probability of 1 becomes ``exp(-40)``, 4e-18."""


@dataclass(frozen=True, eq=False)
class ChoiceFit:
    """Estimated map of choice sets: ``g_ij ~ delta_j p_ij^gamma`` over what row i offers.

    Attributes
    ----------
    positions : tuple
        Names of the positions.
    reference : label
        The position whose delta is 1: the one that most rows offer.
    tau, se_tau : ndarray of shape (n_positions,)
        Shift of each position's log odds against the reference, and its standard error; 0 and NaN
        for the reference.
    gamma, se_gamma : float
        Slope of log odds: below 1 overconfident. Standard error NaN where it was not estimated.
    cov_theta : ndarray of shape (2 n_positions, 2 n_positions)
        Covariance of ``(tau, gamma .. gamma)``; NaN for what was not estimated.
    log_likelihood, log_likelihood_null : float
        At the estimate and at the identity, without penalty.
    n_samples, df : int
        Rows, and parameters that were estimated.
    penalty : float
        Strength of the ridge; 0 is maximum likelihood.
    converged : bool
        Whether the estimate is finite and determined by the rows.
    never_right : tuple
        Positions that no row has as its answer. Without a ridge or with `terms` "slope" their delta
        is 0, to the digits of a double, and has no standard error.
    null_terms : Derivatives or None
        Value, gradient and Hessian of the negative log likelihood at the identity.
    basis : ndarray of shape (2 n_positions, df) or None
        Directions of theta that were estimated.
    information : {"full"}
        The covariance is always computed.

    See Also
    --------
    ChoiceCalibrator : Has it as `fit_`.
    ChoiceAssessment : Has it as `fit`.
    MCLLOFit : The fit of predictions of classes.

    Notes
    -----
    It is the conditional logit model of [1]_ with the log probability of an option and its
    position as attributes.

    References
    ----------
    .. [1] D. McFadden (1974). Conditional logit analysis of qualitative choice behavior. In
           P. Zarembka (ed.), Frontiers in Econometrics, 105-142. Academic Press.

    Examples
    --------
    >>> import mcllo
    >>> rows = [[0.7, 0.2, 0.1], [0.6, 0.4], [0.3, 0.3, 0.4], [0.2, 0.8]] * 10
    >>> fit = mcllo.ChoiceCalibrator().fit(rows, [0, 1, 2, 1, 1, 0, 2, 0] * 5).fit_
    >>> fit.df, fit.reference, fit.converged
    (3, 'A', True)
    """

    positions: Classes
    reference: Hashable
    tau: Floats
    gamma: float
    cov_theta: Floats = field(repr=False)
    log_likelihood: float
    log_likelihood_null: float
    n_samples: int
    df: int
    penalty: float
    converged: bool
    never_right: Classes = ()
    null_terms: Derivatives | None = field(repr=False, default=None)
    basis: Floats | None = field(repr=False, default=None)
    information: str = "full"

    @property
    def baseline(self) -> Hashable:
        """The reference, by the name that fits of classes have for it."""
        return self.reference

    @property
    def theta(self) -> Floats:
        """``(tau, gamma .. gamma)``: the parameters of `_model/likelihood`."""
        return np.concatenate([self.tau, np.full(len(self.tau), self.gamma)])

    @property
    def delta(self) -> Floats:
        """``exp(tau)``: by how much the odds of each position are multiplied."""
        return np.exp(self.tau)

    @property
    def se_tau(self) -> Floats:
        """Standard errors of tau."""
        return np.sqrt(np.diagonal(self.cov_theta))[: len(self.tau)]

    @property
    def se_gamma(self) -> float:
        """Standard error of gamma."""
        return math.sqrt(self.cov_theta[-1, -1])

    @property
    def statistic(self) -> float:
        """Twice the gain in log likelihood over the identity."""
        return max(0.0, 2.0 * (self.log_likelihood - self.log_likelihood_null))

    def apply(self, log_probs: Floats, offered: NDArray[np.bool_]) -> Floats:
        """Return g for log probabilities and the mask of what is offered: (n, n_positions)."""
        g, _ = probabilities_and_log_sums(self.theta, log_probs.T, offered.T)
        return np.ascontiguousarray(g[:-1].T)

    def parameters(self, level: float = 0.95) -> Table:
        """Return a table: each position's delta with its interval, and gamma.

        Parameters
        ----------
        level : float
            Nominal coverage of each interval.

        Returns
        -------
        Table
            A row for each position, the last one for the slope.
        """
        check_share("level", level)
        from scipy.special import ndtri

        z = float(ndtri(0.5 + level / 2.0))
        low = np.exp(self.tau - z * self.se_tau)
        high = np.exp(self.tau + z * self.se_tau)
        reach = z * self.se_gamma
        return Table(
            {
                "parameter": [f"delta {name}" for name in self.positions] + ["gamma"],
                "estimate": [*self.delta.tolist(), self.gamma],
                "low": [*low.tolist(), self.gamma - reach],
                "high": [*high.tolist(), self.gamma + reach],
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values; what was not estimated is None."""
        names = (
            "positions",
            "reference",
            "tau",
            "se_tau",
            "delta",
            "gamma",
            "se_gamma",
        )
        scalars = (
            "log_likelihood",
            "log_likelihood_null",
            "n_samples",
            "df",
            "penalty",
        )
        others = ("converged", "never_right")
        content = {name: getattr(self, name) for name in (*names, *scalars, *others)}
        plain: dict[str, Any] = none_for_nonfinite(content)
        return plain


def choice_basis(predictions: Predictions, terms: Terms = "both") -> Floats:
    """Return the directions of theta that are free, shape (2 n_positions, n_parameters).

    A shift for each position that some row offers, but the reference; and one slope, where rows do
    not give the same chance to all that they offer.
    """
    offered = predictions.offered
    assert offered is not None
    n_positions = offered.shape[1]
    columns = []
    if terms != "slope":
        has_shift: NDArray[np.bool_] = np.asarray(offered.any(axis=0))
        has_shift[predictions.baseline_index] = False
        columns += list(np.eye(2 * n_positions)[:n_positions][has_shift])
    log_probs = predictions.log_odds.T
    highest = np.where(offered, log_probs, -np.inf).max(axis=1)
    lowest = np.where(offered, log_probs, np.inf).min(axis=1)
    varies = bool((highest - lowest > 1e-12).any())
    if terms != "positions" and varies:
        columns.append(np.repeat([0.0, 1.0], n_positions))
    return np.array(columns).reshape(len(columns), 2 * n_positions).T


def fit_choice_sets(
    predictions: Predictions, *, penalty: float = 0.0, terms: Terms = "both"
) -> ChoiceFit:
    """Fit the map of choice sets.

    Parameters
    ----------
    predictions : Predictions
        Choice sets.
    penalty : float
        Strength of a ridge that pulls to the map that changes nothing; 0 is maximum likelihood.
    terms : {"both", "slope", "positions"}
        What is estimated: shifts and slope, or one of them.
    """
    if terms not in get_args(Terms):
        rule = "be 'both', 'slope' or 'positions'"
        raise InputError(argument="terms", rule=rule, value=terms)
    if not 0.0 <= penalty < math.inf:
        rule = "be a number >= 0"
        raise InputError(argument="penalty", rule=rule, value=penalty)
    n_positions = predictions.n_classes
    never_right = predictions.class_weight == 0.0
    if never_right[predictions.baseline_index]:
        predictions = predictions.with_baseline(_reference_that_is_right(predictions))
    basis = choice_basis(predictions, terms)
    identity = identity_theta(n_positions)
    whole = build_negative_log_likelihood(predictions)
    at_null = RestrictedObjective(whole, identity, basis)(np.zeros(basis.shape[1]))

    # What is never right has no finite shift, unless a ridge holds it or shifts are not asked for.
    drops_never_right = penalty == 0.0 and terms != "slope" and bool(never_right.any())
    rows = predictions
    free = basis
    if drops_never_right:
        assert predictions.offered is not None
        rows = replace(predictions, offered=predictions.offered & ~never_right)
        free = basis[:, ~basis[:n_positions][never_right].any(axis=0)]
    likelihood = build_negative_log_likelihood(rows)
    restricted = RestrictedObjective(likelihood, identity, free)
    start = np.zeros(free.shape[1])
    at_start = restricted(start)
    beta = start
    hessian = at_start.hessian
    has_ended = True
    if len(start) > 0:
        penalized = RestrictedObjective(restricted, start, None, penalty)
        solution = minimize(penalized, start)
        beta = solution.x
        hessian = solution.derivatives.hessian
        has_ended = solution.converged
    determined = _is_determined(hessian, at_start.hessian, penalty)
    theta = restricted.theta(beta)
    tau = theta[:n_positions]
    if drops_never_right:
        tau[never_right] = NEVER_TAU
    return ChoiceFit(
        positions=predictions.classes,
        reference=predictions.baseline,
        tau=tau,
        gamma=float(theta[-1]),
        cov_theta=_covariance_of_theta(free, hessian),
        log_likelihood=min(0.0, -restricted(beta).value),
        log_likelihood_null=min(0.0, -at_null.value),
        n_samples=predictions.n_samples,
        df=basis.shape[1],
        penalty=penalty,
        converged=has_ended and determined,
        never_right=predictions.absent,
        null_terms=at_null,
        basis=basis,
    )


def _reference_that_is_right(predictions: Predictions) -> Hashable:
    """Return the position that most rows offer, of those that are right in some row."""
    assert predictions.offered is not None
    is_right = predictions.class_weight > 0.0
    n_offered = np.where(is_right, predictions.offered.sum(axis=0), -1)
    return predictions.classes[int(n_offered.argmax())]


def _is_determined(hessian: Floats, at_null: Floats, penalty: float) -> bool:
    """Whether information is left at the estimate, relative to that at the identity.

    Where the estimate does not exist the search stops far out, with next to none left.
    """
    if penalty > 0.0 or len(hessian) == 0:
        return True
    scale = np.sqrt(np.maximum(np.diagonal(at_null), 1e-300))
    smallest = float(np.linalg.eigvalsh(hessian / np.outer(scale, scale))[0])
    return smallest > SEPARATION_CHECK_INFORMATION


def _covariance_of_theta(basis: Floats, hessian: Floats) -> Floats:
    """Return the covariance of theta; NaN for parameters that no direction moves."""
    covariance = basis @ pseudo_inverse(hessian) @ basis.T
    is_fixed = ~basis.any(axis=1)
    covariance[is_fixed] = np.nan
    covariance[:, is_fixed] = np.nan
    return covariance
