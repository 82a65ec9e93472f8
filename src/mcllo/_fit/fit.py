"""`Predictions` -> `MCLLOFit`: maximum likelihood (or penalised) estimates with their uncertainty.

=====================  ===========================================================
estimate               ``theta = argmin A(theta) - theta . s + penalty/2 |theta - centre|^2``
                       (ridge) or ``... - 1/2 log|H(theta)|`` (Firth; `_fit/penalty`)
covariance             ``H(theta)^-1``, a ridge included; observed equals expected information
se(delta)              ``delta se(tau)``
interval for delta     ``exp(tau -/+ z se(tau))``; never ``delta -/+ z se(delta)``
=====================  ===========================================================

A class whose log odds are the same in every row cannot tell gamma from tau: its gamma stays 1 and
the degrees of freedom count one parameter less.

Of more than 5,000 parameters the covariance is not computed (`_model/many_classes`): the fit then
has no standard errors, and ``information == "blocks"`` says so.

`fit_mean_over_baselines` is the mean of the fits of all baselines (`AllBaselinesMap`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, overload

import numpy as np

from .._model.kernel import Derivatives
from .._model.many_classes import (
    NO_HESSIAN,
    has_far_fewer_rows,
    is_full_hessian_affordable,
)
from .._utils.formatting import Table
from .._utils.results import Floats, Result, none_for_nonfinite
from .._utils.statements import ESTIMATION_WARNINGS, suppress_warnings, warn
from .._validation.arguments import check_share
from .._validation.labels import Classes
from .._validation.predictions import Predictions
from ..exceptions import (
    ConvergenceWarning,
    InputError,
    MclloWarning,
    SeparationWarning,
)
from .estimate import Estimate, covariance_from_hessian, estimate
from .map import AllBaselinesMap, MCLLOMap, validate_rows_to_recalibrate
from .objective import FreeParameterObjective
from .penalty import Center, Penalty, check_penalty_and_center
from .separation import MaximumExistence, assess_existence, warn_of_separation

if TYPE_CHECKING:
    from .map import RecalibratedProbabilities

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
_LATER_SCALARS = {
    "penalty_rule": "given",
    "center": "identity",
    "center_gamma": 1.0,
    "information": "full",
}
"""Scalars that files of the first versions do not have, with what they meant."""
MAX_BASELINES = 50
"""Baselines that are fitted without being asked for one by one."""


@dataclass(frozen=True, eq=False)
class Intervals(Result):
    """Confidence intervals, one row (low, high) for each class other than the baseline.

    Attributes
    ----------
    level : float
        Nominal coverage of each interval.
    tau, gamma, delta : ndarray of shape (n_classes - 1, 2)
        Low and high ends; ``delta = exp(tau)``.
    method : {'wald', 'profile'}
        From standard errors, or from the likelihood itself.
    compared : tuple
        The class of each row.

    See Also
    --------
    profile_intervals : Makes it from the likelihood.
    MCLLOFit : Makes it from standard errors.
    bootstrap_fits : Intervals of probabilities.

    Examples
    --------
    >>> import mcllo
    >>> probs = [[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]] * 10
    >>> y = [0, 1, 1, 0, 0, 0, 1, 1] * 5
    >>> intervals = mcllo.profile_intervals(probs, y)
    >>> intervals.method, intervals.compared, intervals.gamma.shape
    ('profile', (0,), (1, 2))
    """

    level: float
    tau: Floats
    gamma: Floats
    delta: Floats
    method: str = "wald"
    compared: Classes = ()


@dataclass(frozen=True, eq=False, repr=False)
class MCLLOFit(MCLLOMap):
    """Estimated map with standard errors.

    Attributes
    ----------
    tau, gamma, delta : ndarray of shape (n_classes - 1,)
        Estimates for the classes other than the baseline, in column order; ``delta = exp(tau)``.
    classes : tuple
        All classes, in column order.
    baseline : label
        The reference class of the log odds.
    se_tau, se_gamma, se_delta : ndarray of shape (n_classes - 1,)
        Standard errors; NaN where the estimate does not exist or is not identified, or where there
        are too many parameters.
    cov_theta : ndarray of shape (2 (n_classes - 1), 2 (n_classes - 1))
        Covariance of ``(tau, gamma)``; of shape (0, 0) where `information` is 'blocks'.
    log_likelihood, log_likelihood_null : float
        At the estimate and at the identity, without penalty.
    n_samples : int
        Rows.
    df : int
        Parameters that the rows can tell apart.
    penalty : float
        Strength of the ridge; 0 is maximum likelihood or Firth's estimate.
    converged : bool
        Whether the solver met its tolerance at a finite maximum.
    n_iter : int
        Newton steps.
    gradient_norm : float
        Largest component of the gradient at the last evaluation.
    separated : bool
        The maximum does not exist: estimates drift to infinity and the log likelihood is its
        supremum.
    separated_classes : tuple
        The classes that cause it: those without rows; or, when every class has rows, those driven
        apart from all others by directions in which the likelihood never falls (`_fit/separation`;
        of many classes only those that their own log odds drive apart, `_model/separable_classes`).
    penalty_rule : {'given', 'auto', 'firth'}
        Whether `penalty` was given, was chosen by evidence, or Jeffreys' prior took its place.
    center : {'identity', 'temperature'}
        Where the ridge pulls to.
    center_gamma : float
        The gamma of all classes there; 1 for the identity.
    information : {'full', 'blocks', 'errors'}
        Whether the information of all parameters together was computed. Beyond 5,000 parameters it
        is not, so that there are no standard errors; a maximum is then taken to exist unless the
        information of a class by itself has vanished. A fit from a file that leaves the covariance
        out has standard errors only ('errors').
    null_terms : Terms or None
        Value, gradient and Hessian of the negative log likelihood at the identity, from which score
        statistics are made; None in a fit from a file.

    See Also
    --------
    MCLLOMap : The map without standard errors.
    MCLLOCalibrator : Has it as `fit_`.
    Assessment : Has it as `fit`.
    profile_intervals : Intervals from the likelihood itself.

    Notes
    -----
    The estimate maximises the log likelihood of [1]_, which is concave in ``(tau, gamma)``.
    Standard errors come from the inverse information; in an assessment of rows in groups, or with
    weights that are no counts, from the sandwich [2]_.

    References
    ----------
    .. [1] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.
    .. [2] H. White (1982). Maximum likelihood estimation of misspecified models. Econometrica
           50:1-25.

    Examples
    --------
    >>> import mcllo
    >>> probs = [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6], [0.5, 0.3, 0.2]] * 10
    >>> y = [0, 1, 2, 0, 1, 2, 0, 1] * 5
    >>> fit = mcllo.MCLLOCalibrator().fit(probs, y).fit_
    >>> fit.df, fit.converged, fit.separated
    (4, True, False)
    >>> fit.recalibrate([[0.5, 0.3, 0.2]]).shape
    (1, 3)
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
    null_terms: Derivatives | None = field(repr=False, default=None)
    separated_classes: Classes = ()
    penalty_rule: str = "given"
    center: str = "identity"
    center_gamma: float = 1.0
    information: Literal["full", "blocks", "errors"] = "full"

    @property
    def statistic(self) -> float:
        """Twice the gain in log likelihood over the identity, Eq. (6)."""
        return max(0.0, 2.0 * (self.log_likelihood - self.log_likelihood_null))

    @property
    def _standard_errors(self) -> Floats:
        if self.information == "blocks":
            return np.full(2 * len(self.tau), np.nan)
        with np.errstate(invalid="ignore"):
            return np.sqrt(np.diagonal(self.cov_theta))

    @property
    def se_tau(self) -> Floats:
        """Standard errors of tau."""
        return self._standard_errors[: len(self.tau)]

    @property
    def se_gamma(self) -> Floats:
        """Standard errors of gamma."""
        return self._standard_errors[len(self.tau) :]

    @property
    def se_delta(self) -> Floats:
        """Standard errors of delta (delta method)."""
        return self.delta * self.se_tau

    @overload
    def recalibrate(
        self,
        probs: Any = None,
        *,
        logits: Any = None,
        normalize: bool = False,
        clip: float | None = None,
        interval: None = None,
        covariance: Any = None,
    ) -> Floats: ...

    @overload
    def recalibrate(
        self,
        probs: Any = None,
        *,
        logits: Any = None,
        normalize: bool = False,
        clip: float | None = None,
        interval: float,
        covariance: Any = None,
    ) -> RecalibratedProbabilities: ...

    def recalibrate(
        self,
        probs: Any = None,
        *,
        logits: Any = None,
        normalize: bool = False,
        clip: float | None = None,
        interval: float | None = None,
        covariance: Any = None,
    ) -> Floats | RecalibratedProbabilities:
        """Return recalibrated probabilities, with an interval for each when `interval` is given.

        Parameters
        ----------
        probs : array-like, frame or Predictions, optional
            Probabilities to recalibrate, shape (n_samples, n_classes); left out when `logits` is
            given.
        logits : array-like or frame, optional
            Scores before the softmax, instead of `probs`.
        normalize : bool
            Accept rows that do not sum to 1 and divide them by their sum.
        clip : float, optional
            Smaller probabilities are clipped to this. Default: 1e-6, only in rows that hold a 0.
        interval : float, optional
            Level of the intervals, say 0.95 (delta method; see `RecalibratedProbabilities`).
        covariance : array-like, optional
            Covariance of ``(tau, gamma)`` for the intervals, instead of `cov_theta`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or RecalibratedProbabilities when `interval` is
        given
        """
        simplex = validate_rows_to_recalibrate(
            self.classes, probs, logits, normalize, clip
        )
        if interval is None:
            return self.apply(simplex)
        from .map import recalibrate_with_intervals

        return recalibrate_with_intervals(
            self, simplex, interval, covariance=covariance
        )

    def confidence_interval(self, level: float = 0.95) -> Intervals:
        """Return Wald intervals, on the tau scale for delta.

        Parameters
        ----------
        level : float
            Nominal coverage of each interval.

        Returns
        -------
        Intervals
            NaN where there are no standard errors.
        """
        check_share("level", level)
        from scipy.special import ndtri

        z = float(ndtri(0.5 + level / 2.0))
        tau_reach = z * self.se_tau
        gamma_reach = z * self.se_gamma
        tau = np.column_stack([self.tau - tau_reach, self.tau + tau_reach])
        gamma = np.column_stack([self.gamma - gamma_reach, self.gamma + gamma_reach])
        return Intervals(level, tau, gamma, np.exp(tau), "wald", self.compared)

    def parameters(self, level: float = 0.95) -> Table:
        """Return a table: class, delta and gamma with standard errors and intervals.

        Parameters
        ----------
        level : float
            Nominal coverage of each interval.

        Returns
        -------
        Table
            A row for each class other than the baseline.
        """
        intervals = self.confidence_interval(level)
        columns: dict[str, list[Any]] = {"class": list(self.compared)}
        parameters = {
            "delta": (self.delta, self.se_delta, intervals.delta),
            "gamma": (self.gamma, self.se_gamma, intervals.gamma),
        }
        for name, (value, se, ends) in parameters.items():
            columns[name] = value.tolist()
            columns[f"se_{name}"] = se.tolist()
            columns[f"{name}_low"] = ends[:, 0].tolist()
            columns[f"{name}_high"] = ends[:, 1].tolist()
        return Table(columns)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values; what cannot be estimated is None."""
        intervals = self.confidence_interval()
        estimated = {
            "delta": self.delta,
            "se_tau": self.se_tau,
            "se_gamma": self.se_gamma,
            "se_delta": self.se_delta,
            "delta_interval": intervals.delta,
            "gamma_interval": intervals.gamma,
            "cov_theta": self.cov_theta if self.information == "full" else None,
        }
        content = super().to_dict()
        content |= none_for_nonfinite(estimated)
        content["compared"] = list(self.compared)
        for name in (*_SCALARS, *_LATER_SCALARS):
            content[name] = getattr(self, name)
        content["separated_classes"] = list(self.separated_classes)
        return content

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> MCLLOFit:
        """Return the fit that `to_dict` described."""
        scalars = {name: content[name] for name in _SCALARS}
        for name, before in _LATER_SCALARS.items():
            scalars[name] = content.get(name, before)
        tau = np.array(content["tau"], dtype=np.float64)
        gamma = np.array(content["gamma"], dtype=np.float64)
        classes = tuple(content["classes"])
        sizes = (len(tau) + 1, len(gamma) + 1, len(classes))
        if len(set(sizes)) != 1:
            raise ValueError(
                f"tau and gamma must have a value for each class but one; got {sizes}"
            )
        if scalars["information"] == "blocks":
            cov_theta = NO_HESSIAN
        elif content.get("cov_theta") is None:
            scalars["information"] = "errors"
            cov_theta = _diagonal_covariance(content["se_tau"], content["se_gamma"])
        else:
            cov_theta = np.array(content["cov_theta"], dtype=np.float64)
        size = 2 * len(tau)
        if scalars["information"] != "blocks" and cov_theta.shape != (size, size):
            raise ValueError(
                f"a covariance of {size} parameters; got shape {cov_theta.shape}"
            )
        return cls(
            tau=tau,
            gamma=gamma,
            classes=classes,
            baseline=content["baseline"],
            cov_theta=cov_theta,
            separated_classes=tuple(content.get("separated_classes", ())),
            **scalars,
        )

    def __repr__(self) -> str:
        return (
            f"MCLLOFit(n_samples={self.n_samples}, n_classes={len(self.classes)}, "
            f"baseline={self.baseline!r}, statistic={self.statistic:.6g}, df={self.df}, "
            f"converged={self.converged}, separated={self.separated})"
        )


def _diagonal_covariance(se_tau: Sequence[Any], se_gamma: Sequence[Any]) -> Floats:
    """Return what standard errors tell of a covariance: its diagonal."""
    errors = np.array([*se_tau, *se_gamma], dtype=np.float64)
    covariance = np.full((len(errors), len(errors)), np.nan)
    with np.errstate(over="ignore"):
        np.fill_diagonal(covariance, errors**2)
    return covariance


def fit_predictions(
    predictions: Predictions, *, penalty: Penalty = 0.0, center: Center = "identity"
) -> MCLLOFit:
    """Fit the MCLLO model to validated predictions.

    Parameters
    ----------
    predictions : Predictions
        The data.
    penalty : float, 'auto' or 'firth'
        Strength of a ridge; 0 is maximum likelihood, 'auto' the strength of greatest evidence
        (`_fit/penalty`), 'firth' Jeffreys' prior instead of a ridge.
    center : {'identity', 'temperature'}
        Where the ridge pulls to: the map that changes nothing, or the one exponent that fits best.

    Examples
    --------
    >>> p = Predictions.from_arrays([[0.7, 0.3], [0.2, 0.8], [0.6, 0.4], [0.4, 0.6]], [0, 1, 0, 1])
    >>> fit = fit_predictions(p, penalty=1.0)  # perfect labels: without a penalty, no maximum
    >>> fit.converged, fit.gamma.round(2)
    (True, array([1.59]))
    """
    check_penalty_and_center(penalty, center)
    likelihood = FreeParameterObjective.from_predictions(predictions)
    end = estimate(likelihood, predictions, penalty, center)
    found = assess_existence(end, likelihood, predictions.absent, lambda: predictions)
    fit = assemble_fit(likelihood, end, found, predictions)
    warn_of_separation(fit, predictions.absent, found.undecided)
    return fit


class FittedRowsInfo(Protocol):
    """What a fit says of its rows."""

    @property
    def classes(self) -> Classes: ...
    @property
    def baseline(self) -> Hashable: ...
    @property
    def n_samples(self) -> int: ...


def assemble_fit(
    likelihood: FreeParameterObjective[Any],
    estimate: Estimate,
    existence: MaximumExistence,
    rows: FittedRowsInfo,
) -> MCLLOFit:
    """Return the fit of an estimate, given what is known of the maximum."""
    cov_theta = NO_HESSIAN
    information: Literal["full", "blocks"] = "blocks"
    size = len(likelihood.free)
    few_rows = has_far_fewer_rows(rows.n_samples, size)
    if is_full_hessian_affordable(size) and not few_rows:
        cov_theta = covariance_from_hessian(
            estimate.hessian, likelihood.free, existence.determined
        )
        information = "full"
    tau, gamma = np.split(likelihood.theta(estimate.solution.x), 2)
    return MCLLOFit(
        tau=tau,
        gamma=gamma,
        classes=rows.classes,
        baseline=rows.baseline,
        cov_theta=cov_theta,
        log_likelihood=min(0.0, -estimate.value),
        log_likelihood_null=min(0.0, -estimate.null.value),
        n_samples=rows.n_samples,
        df=int(likelihood.free.sum()),
        penalty=estimate.penalty,
        converged=estimate.solution.converged and existence.determined,
        n_iter=estimate.solution.n_iter,
        gradient_norm=estimate.solution.gradient_norm,
        separated=bool(existence.causes),
        null_terms=estimate.null,
        separated_classes=existence.causes,
        penalty_rule=estimate.rule,
        center=estimate.center,
        center_gamma=estimate.center_gamma,
        information=information,
    )


def fit_mean_over_baselines(
    predictions: Predictions, **options: Any
) -> AllBaselinesMap:
    """Fit MCLLO with every class as the baseline and return the geometric mean of the fits.

    `options` are those of `fit_predictions`. One warning speaks for all fits that have no finite
    estimate.
    """
    fits = fit_each_baseline(predictions, predictions.classes, **options)
    warn_of_undetermined_fits(fits)
    return AllBaselinesMap.from_maps(fits)


def fit_each_baseline(
    predictions: Predictions, baselines: Sequence[Hashable], **options: Any
) -> list[MCLLOFit]:
    """Return one fit for each baseline; their flags say what single warnings would have said."""
    if len(baselines) > MAX_BASELINES:
        raise InputError(
            f"at most {MAX_BASELINES} baselines are fitted at once; got {len(baselines)} classes.",
            remedy="Name one with {baseline}{baselines_to_try}.",
            values={},
        )
    with suppress_warnings(*ESTIMATION_WARNINGS):
        return [
            fit_predictions(predictions.with_baseline(b), **options) for b in baselines
        ]


def warn_of_undetermined_fits(fits: Sequence[MCLLOFit]) -> None:
    """Warn of the fits without a finite estimate, in one sentence."""
    bad = [f for f in fits if not f.converged]
    if not bad:
        return
    which = f"baseline {bad[0].baseline!r}"
    if len(bad) > 1:
        which += f" and {len(bad) - 1} more"
    remedy = "To recalibrate, use a penalty (1.0 is a good start)."
    kind: type[MclloWarning] = ConvergenceWarning
    cause = "the likelihood is all but flat"
    effect = "estimates are not determined."
    if any(f.separated for f in bad):
        kind = SeparationWarning
        cause = "the maximum likelihood estimate does not exist"
        effect = "estimates drift to infinity."
    short = f"{cause}: {effect} {remedy}"
    whole = f"{cause} ({which}): {effect} {remedy}"
    baselines = tuple(f.baseline for f in bad)
    warn(kind(short, detail=whole, numbers={"baselines": baselines}))
