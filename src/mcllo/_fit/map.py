"""Recalibration maps, and intervals for the probabilities that they give.

====================  ====================================================================
`MCLLOMap`            one baseline b, Eq. (3)-(4): ``eta_j = tau_j + gamma_j (z_j - z_b)``,
                      ``eta_b = 0``, z the log probabilities
composition           ``(tau_a, gamma_a)`` and then ``(tau_b, gamma_b)`` is
                      ``(tau_b + gamma_b tau_a, gamma_a gamma_b)``
inverse               ``(-tau / gamma, 1 / gamma)``
as a matrix           ``eta = W_b z + a_b``: ``W_b[j, j] = gamma_j``, ``W_b[j, b] = -gamma_j``,
                      ``a_b[j] = tau_j``, else 0
`AllBaselinesMap`     the geometric mean over baselines, ``g ~ prod_b g_b^(1/c)``
                      ``= softmax(mean_b W_b z + mean_b a_b)``
====================  ====================================================================

Permuting classes permutes the columns of the mean and changes no number. For c = 2 all maps are
one, and so is their mean. A softmax ignores what all rows of W share, so W and a are stored with
columns that sum to 0; then equal maps have equal numbers.

A recalibrated probability is a function of the estimate, ``g_j = softmax(eta, 0)_j`` with
``eta_k = tau_k + gamma_k l_k``, and inherits its uncertainty (delta method); with the 2K features
z_k of class k, 0 for the baseline:

====================  ====================================================================
variance of g         ``J Cov J'``, ``J = (diag g - g g') Z``, ``Z = [I, diag l]``
logit                 ``logit g_j = eta_j - log sum_{k != j} exp eta_k``
its derivative        ``a_j = z_j - sum_{k != j} q_jk z_k``, ``q_jk = g_k / (1 - g_j)``
its standard error    ``sqrt(a_j' Cov a_j)``: the sum of ``(a_j . f)^2`` over f, ``Cov = F F'``
interval              ``expit(logit g_j -/+ z se)``; it stays inside (0, 1)
====================  ====================================================================

Near ``g_j = 1`` the weights q_jk would be a ratio of rounding errors, so the class on top has its
own softmax over the others.

An interval (`RecalibratedProbabilities`) is about the map, at one row and one class: where the
probability would lie had the map been fitted to all rows there are. It is not about the label, it
does not hold for all rows at once, and it takes the model as true. Rows of `low` and of `high` do
not sum to 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._model.kernel import row_chunks, softmax_in_place
from .._model.likelihood import log_odds_from_log_probs, recalibrate_rows
from .._utils.formatting import Table
from .._utils.linalg import scale_to_unit_diagonal
from .._utils.notebook import NotebookResult
from .._utils.results import Floats, to_plain_python
from .._validation.labels import Classes, find_class
from .._validation.probabilities import Simplex, clean_logits, clean_probs
from ..exceptions import InputError

if TYPE_CHECKING:
    from .fit import MCLLOFit


class RecalibrationMap(ABC):
    """What turns the probabilities of all classes into others."""

    classes: Classes

    @abstractmethod
    def apply(self, simplex: Simplex) -> Floats:
        """Return the map of already validated probabilities."""

    def recalibrate(
        self,
        probs: Any = None,
        *,
        logits: Any = None,
        normalize: bool = False,
        clip: float | None = None,
    ) -> Floats:
        """Return recalibrated probabilities.

        Parameters
        ----------
        probs : array-like or frame of shape (n_samples, n_classes)
            Predictions; a frame's columns are found by class name, in any order.
        logits : array-like or frame, optional
            Scores before the softmax, instead of `probs`.
        normalize : bool
            Accept rows that do not sum to 1 (rounded files) and divide them by their sum.
        clip : float, optional
            Smaller probabilities are clipped to this. Default: 1e-6, only in rows that hold a 0.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes`; rows sum to 1.
        """
        return self.apply(
            validate_rows_to_recalibrate(self.classes, probs, logits, normalize, clip)
        )


@dataclass(frozen=True, eq=False)
class MCLLOMap(RecalibrationMap, NotebookResult):
    """A multicategory linear log odds map.

    Attributes
    ----------
    tau, gamma : ndarray of shape (n_classes - 1,)
        Shift (``log delta``) and scale of each class's log odds against the baseline, for the
        classes other than the baseline in column order.
    classes : tuple
        All classes, in column order.
    baseline : label
        The reference class.

    See Also
    --------
    MCLLOFit : A map with standard errors.
    MCLLOCalibrator : Fits one.
    mcllo.simulate.draw : Draws labels that follow one.
    mcllo.plot.calibration_map : Draws it.

    Notes
    -----
    The map of [1]_: ``log(g_j / g_b) = tau_j + gamma_j log(x_j / x_b)`` with baseline b. Maps with
    one baseline compose to maps, and have inverses where no gamma is 0.

    References
    ----------
    .. [1] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.

    Examples
    --------
    >>> half = MCLLOMap(np.zeros(2), np.full(2, 0.5), ("a", "b", "c"), "c")
    >>> half.recalibrate([[0.64, 0.32, 0.04]]).round(3)
    array([[0.511, 0.361, 0.128]])
    >>> half.compose(half.inverse()).gamma
    array([1., 1.])
    """

    tau: Floats
    gamma: Floats
    classes: Classes
    baseline: Hashable

    @property
    def delta(self) -> Floats:
        """Odds multipliers ``exp(tau)``."""
        return np.exp(self.tau)

    @property
    def theta(self) -> Floats:
        """``(tau_1 .. tau_K, gamma_1 .. gamma_K)``."""
        return np.concatenate([self.tau, self.gamma])

    @property
    def compared(self) -> Classes:
        """The classes other than the baseline, in column order."""
        b = self.baseline_index
        return self.classes[:b] + self.classes[b + 1 :]

    @property
    def baseline_index(self) -> int:
        """Column of the baseline."""
        return find_class(self.baseline, self.classes, "baseline")

    def apply(self, simplex: Simplex) -> Floats:
        """Return the map of already validated probabilities."""
        if simplex.logits is None:
            return recalibrate_rows(self.theta, simplex.probs, self.baseline_index)
        return recalibrate_rows(
            self.theta, simplex.logits, self.baseline_index, rows_are_logs=True
        )

    def log_odds(self, simplex: Simplex) -> Floats:
        """Return log odds against the baseline, shape (n_classes - 1, n_samples)."""
        logs = np.empty(simplex.probs.shape[::-1])
        if simplex.logits is None:
            np.log(simplex.probs.T, out=logs)
        else:
            logs[:] = simplex.logits.T
        return log_odds_from_log_probs(logs, self.baseline_index)

    def compose(self, other: MCLLOMap) -> MCLLOMap:
        """Return the map that applies this one first and `other` to its result.

        Parameters
        ----------
        other : MCLLOMap
            A map of the same classes and baseline.

        Returns
        -------
        MCLLOMap
            One map that does what both do.
        """
        if other.classes != self.classes or other.baseline != self.baseline:
            raise InputError(
                "maps to compose must share classes and baseline; "
                f"got baselines {self.baseline!r} and {other.baseline!r}."
            )
        tau = other.tau + other.gamma * self.tau
        return MCLLOMap(tau, other.gamma * self.gamma, self.classes, self.baseline)

    def inverse(self) -> MCLLOMap:
        """Return the map that undoes this one."""
        if (self.gamma == 0.0).any():
            flat = self.compared[int(np.argmax(self.gamma == 0.0))]
            raise InputError(
                f"a map with gamma = 0 has no inverse; class {flat!r} has gamma 0."
            )
        slope = 1.0 / self.gamma
        return MCLLOMap(-self.tau * slope, slope, self.classes, self.baseline)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values."""
        return {
            "classes": list(self.classes),
            "baseline": self.baseline,
            "tau": self.tau.tolist(),
            "gamma": self.gamma.tolist(),
        }


@dataclass(frozen=True, eq=False, repr=False)
class AllBaselinesMap(RecalibrationMap):
    """The geometric mean of one map for each baseline.

    Attributes
    ----------
    weights : ndarray of shape (n_classes, n_classes)
        Of the log probabilities; every row and every column sums to 0.
    intercepts : ndarray of shape (n_classes,)
        Sum to 0.
    classes : tuple
        All classes, in column order.

    Examples
    --------
    >>> half = [MCLLOMap(np.zeros(2), np.full(2, 0.5), ("a", "b", "c"), b) for b in "abc"]
    >>> AllBaselinesMap.from_maps(half).recalibrate([[0.64, 0.32, 0.04]]).round(3)
    array([[0.511, 0.361, 0.128]])
    """

    weights: Floats
    intercepts: Floats
    classes: Classes

    @classmethod
    def from_maps(cls, maps: Sequence[MCLLOMap]) -> AllBaselinesMap:
        """Return the mean of maps of the same classes, one for each baseline."""
        classes = maps[0].classes
        if {m.baseline_index for m in maps} != set(range(len(maps))) or len(
            maps
        ) != len(classes):
            raise InputError(
                f"maps must hold one map for each of the {len(classes)} classes as baseline; "
                f"got baselines {[m.baseline for m in maps]}."
            )
        c = len(classes)
        weights = np.zeros((c, c, c))  # W_b
        intercepts = np.zeros((c, c))  # a_b
        for one in maps:
            b = one.baseline_index
            others = np.delete(np.arange(c), b)
            weights[b, others, others] = one.gamma
            weights[b, others, b] = -one.gamma
            intercepts[b, others] = one.tau
        weight = weights.mean(axis=0)
        intercept = intercepts.mean(axis=0)
        return cls(weight - weight.mean(axis=0), intercept - intercept.mean(), classes)

    def apply(self, simplex: Simplex) -> Floats:
        """Return the map of already validated probabilities."""
        z = np.log(simplex.probs) if simplex.logits is None else simplex.logits
        # W ignores what a whole row shares; without it large logits stay small numbers
        centred = np.subtract(z, z.max(axis=1, keepdims=True), dtype=np.float64)
        eta = np.ascontiguousarray((centred @ self.weights.T + self.intercepts).T)
        softmax_in_place(eta)
        return np.ascontiguousarray(eta.T)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values."""
        return {
            "classes": list(self.classes),
            "baseline": "all",
            "weights": self.weights.tolist(),
            "intercepts": self.intercepts.tolist(),
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> AllBaselinesMap:
        """Return the map that `to_dict` described."""
        classes = tuple(content["classes"])
        weights = np.array(content["weights"], dtype=np.float64)
        intercepts = np.array(content["intercepts"], dtype=np.float64)
        c = len(classes)
        if weights.shape != (c, c) or intercepts.shape != (c,):
            raise ValueError(
                f"weights and intercepts must have shapes ({c}, {c}) and ({c},); "
                f"got {weights.shape} and {intercepts.shape}"
            )
        return cls(weights, intercepts, classes)

    def __repr__(self) -> str:
        return f"AllBaselinesMap(classes={self.classes!r})"


def validate_rows_to_recalibrate(
    classes: Classes,
    probs: Any,
    logits: Any = None,
    normalize: bool = False,
    clip: float | None = None,
) -> Simplex:
    """Validate rows to be recalibrated: as many columns as `classes`, frames matched by name."""
    if (probs is None) == (logits is None):
        raise InputError("give exactly one of probs and logits=.")
    if logits is not None:
        simplex = clean_logits(logits, columns=classes)
    else:
        simplex = clean_probs(probs, columns=classes, normalize=normalize, clip=clip)
    if simplex.probs.shape[1] != len(classes):
        raise InputError(
            f"probs must have a column for each of the {len(classes)} classes; "
            f"got {simplex.probs.shape[1]}."
        )
    return simplex


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
        return Table(
            {
                "row": np.repeat(np.arange(n), c).tolist(),
                "class": list(self.classes) * n,
                "prob": self.probs.ravel().tolist(),
                "low": self.low.ravel().tolist(),
                "high": self.high.ravel().tolist(),
            }
        )

    def to_frame(self) -> Any:
        """Return `table` as a pandas ``DataFrame``."""
        return self.table.to_frame()

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values."""
        names = ("classes", "level", "method", "probs", "low", "high")
        return {name: to_plain_python(getattr(self, name)) for name in names}

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
        Validated rows (`validate_rows_to_recalibrate`).
    level : float
        Of each single interval.
    covariance : array-like of shape (2 (n_classes - 1), 2 (n_classes - 1)), optional
        Covariance of ``(tau, gamma)`` to use instead of the fit's own, say a robust one.

    Raises
    ------
    InputError
        When the estimate is not determined, so that it has no covariance.
    """
    check_interval_level(level)
    from scipy.special import expit, ndtri

    factor = _covariance_factor(fit, covariance)
    probs = fit.apply(simplex)
    log_odds = fit.log_odds(simplex)
    n, c = probs.shape
    others = np.delete(np.arange(c), fit.baseline_index)
    baseline_last = np.append(others, fit.baseline_index)
    z = float(ndtri(0.5 + level / 2.0))
    low = np.empty_like(probs)
    high = np.empty_like(probs)
    for rows in row_chunks(n, c):
        logit, se = logit_and_standard_error(fit.theta, factor, log_odds[:, rows])
        low[rows, baseline_last] = expit(logit - z * se).T
        high[rows, baseline_last] = expit(logit + z * se).T
    # where nothing is uncertain the two ways to g may differ in the last digit
    np.minimum(low, probs, out=low)
    np.maximum(high, probs, out=high)
    return RecalibratedProbabilities(probs, low, high, level, "delta", fit.classes)


def logit_and_standard_error(
    theta: Floats, covariance_factor: Floats, log_odds: Floats
) -> tuple[Floats, Floats]:
    """Return ``logit g`` and its standard errors, shape (c, rows), the baseline last.

    `covariance_factor` is F, shape (2K, r), with ``F F'`` the covariance of theta; `log_odds` has
    shape (K, rows).
    """
    eta = _linear_predictor(theta, log_odds)
    # the class on top has its own softmax over the others: 1 - g would be rounding
    top = (eta.argmax(axis=0), np.arange(eta.shape[1]))
    q = eta.copy()
    q[top] = -np.inf
    log_others = softmax_in_place(q)
    log_total = np.logaddexp(eta[top], log_others)
    g = np.exp(eta - log_total)
    rest = 1.0 - g
    rest[top] = 1.0  # not used: it may be 0
    logit = eta - log_total - np.log(rest)
    logit[top] = eta[top] - log_others

    variance = np.zeros_like(eta)
    for f in covariance_factor.T:
        u = _linear_predictor(f, log_odds)  # z_k . f
        along = (u - (g * u).sum(axis=0)) / rest  # a_j . f
        along[top] = u[top] - (q * u).sum(axis=0)
        variance += along**2
    return logit, np.sqrt(variance)


def _linear_predictor(theta: Floats, log_odds: Floats) -> Floats:
    """Return ``z_k . theta`` for every class, shape (c, rows), 0 for the baseline."""
    k, m = log_odds.shape
    eta = np.zeros((k + 1, m))
    np.multiply(log_odds, theta[k:, None], out=eta[:k])
    eta[:k] += theta[:k, None]
    return eta


def _covariance_factor(fit: MCLLOFit, covariance: Any) -> Floats:
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
    given = np.array(
        fit.cov_theta if covariance is None else covariance, dtype=np.float64
    )
    if given.shape != (size, size):
        raise InputError(
            f"covariance must have shape ({size}, {size}); got {given.shape}."
        )
    known = np.flatnonzero(
        np.isnan(np.diagonal(given)) & np.isnan(np.diagonal(fit.cov_theta))
    )
    given[known] = 0.0
    given[:, known] = 0.0
    if (np.diagonal(given) < 0.0).any():
        raise InputError("covariance must have no negative variance; got one that has.")
    unit, scale = scale_to_unit_diagonal(given)
    if not np.isfinite(unit).all() or not np.allclose(
        unit, unit.T, atol=NEGATIVE_EIGENVALUE_TOL
    ):
        raise InputError(
            "covariance must be finite and symmetric; got one that is not."
        )
    values, vectors = np.linalg.eigh(unit)
    if values[0] < -NEGATIVE_EIGENVALUE_TOL * size:
        raise InputError(
            f"covariance must have no negative eigenvalue; as a correlation it has {values[0]:.3g}."
        )
    return scale[:, None] * vectors * np.sqrt(np.maximum(values, 0.0))


def check_interval_level(level: Any) -> None:
    """Refuse a level that is not a number strictly between 0 and 1."""
    number = isinstance(level, (int, float, np.integer, np.floating))
    if not number or isinstance(level, bool) or not 0.0 < level < 1.0:
        raise InputError(
            f"interval must be a level in (0, 1), say 0.95; got interval={level!r}."
        )
