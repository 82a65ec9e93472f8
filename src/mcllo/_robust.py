"""`robust_test`, `robust_fit`: inference that survives repeated measurements and survey weights.

=================  ==========================================================================
covariance         ``H^-1 M H^-1``: H the information at the estimate, a ridge included, and
                   ``M = G / (G - 1) sum_g U_g U_g'``, centred (a maximum has mean 0 itself)
test               score statistic at the identity, variance from the groups (`_score_null`)
p-value            sign flips up to 1000 groups, else F; never below that of independent rows
=================  ==========================================================================

The last rule is for few groups of sharp predictions: while no surprise has happened all scores
point one way, and no flip exceeds them. It costs power only where rows of a group avoid each
other's labels. Survey weights have no such floor: the sampling may depend on the labels.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ._calibration_test import N_RESAMPLES, chi2_sf
from ._fit import MCLLOFit, free_parameters
from ._model import LogPartition, identity_theta
from ._monte_carlo import Seed, check_resamples, entropy_of, has_whole_weights
from ._predictions import Predictions, as_predictions
from ._rows import WeightKind, clean_groups
from ._score_null import Mixture, flip_pvalue, whitening
from ._scores_by_row import ScoreSums, row_sums, score_sums, unit_scores
from ._text import format_count, format_number, format_p
from .exceptions import InputError

Floats = NDArray[np.float64]
RobustMethod = Literal["auto", "flip", "f"]

METHODS = ("auto", "flip", "f")
MOST_FLIPPED = 1000
"""Groups up to which `auto` flips signs: F is as good above, and shows smaller p-values."""


@dataclass(frozen=True, eq=False)
class RobustTest:
    """A test of H0: each row's label follows its probabilities; rows of a group may be dependent.

    Not rejecting H0 does not show that the probabilities are calibrated.

    Attributes
    ----------
    statistic : float
        Score statistic over the mean of its estimated eigenvalues; about `df` under H0.
    df : int
        Parameters that the rows can tell apart.
    pvalue : float
        By `method`.
    method : {'flip', 'f'}
        Random signs of the groups' scores, or the F distribution.
    kind : {'cluster', 'sandwich'}
        Whether groups were given, or every row is its own.
    n_groups : int
        Groups, or rows that count.
    design_effect : float
        How many times larger the groups make the variance of the score; 1 without groups.
    n_resamples, seed : int, int or None
        Flips made, and what they were made from.
    reason : str
        Why `method` was used, and what limits the p-value.
    """

    statistic: float
    df: int
    pvalue: float
    method: str
    kind: str
    n_groups: int
    design_effect: float
    n_resamples: int
    seed: int | None
    reason: str

    def rejects(self, alpha: float = 0.05) -> bool:
        """Whether calibration is rejected at level `alpha`."""
        if not 0.0 < alpha < 1.0:
            raise InputError(f"alpha must lie in (0, 1); got alpha={alpha}.")
        return self.pvalue <= alpha

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    def __str__(self) -> str:
        unit = "groups" if self.kind == "cluster" else "rows"
        flips = f"{format_count(self.n_resamples)} sign flips"
        return (
            f"robust score statistic {format_number(self.statistic, 4)} on {self.df} df, "
            f"p {format_p(self.pvalue)} ({'F' if self.method == 'f' else flips}; "
            f"{format_count(self.n_groups)} {unit}, design effect "
            f"{format_number(self.design_effect)})"
        )


def robust_test(
    probs: Any,
    y: Any = None,
    *,
    groups: Any = None,
    method: RobustMethod = "auto",
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
    baseline: Any = None,
    classes: Any = None,
    sample_weight: Any = None,
    weight_kind: WeightKind = "frequency",
    normalize: bool = False,
    clip: float | None = None,
) -> RobustTest:
    """Test calibration of rows that depend on each other, or that carry survey weights.

    Parameters
    ----------
    probs : array-like, frame or Predictions
        Predicted probabilities, shape (n_samples, n_classes).
    y : array-like of shape (n_samples,), or table of label counts
        The labels that came true; not given beside a `Predictions`.
    groups : array-like of shape (n_samples,), optional
        Group of each row (an animal, a patient). Groups must be independent of each other; rows of
        one need not be. Without groups every row is its own.
    method : {'auto', 'flip', 'f'}
        Random signs of the groups' scores; the F distribution of Rao and Scott; 'auto' flips up to
        1000 groups.
    n_resamples, seed
        Flips, and what makes them repeatable.
    baseline, classes, sample_weight, weight_kind, normalize, clip
        As in `Predictions.from_arrays`.

    Examples
    --------
    Sixty animals, each filmed five times, with labels that come five at a time:

    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> rows = rng.dirichlet([1, 1, 1], size=60)
    >>> labels = [rng.choice(3, p=row) for row in rows]
    >>> probs, y = np.repeat(rows, 5, axis=0), np.repeat(labels, 5)
    >>> test = robust_test(probs, y, groups=np.repeat(np.arange(60), 5), seed=0)
    >>> test.n_groups, test.kind, test.rejects(alpha=0.05), round(test.design_effect, 1)
    (60, 'cluster', False, 5.1)
    """
    predictions = as_predictions(
        probs,
        y,
        baseline=baseline,
        classes=classes,
        sample_weight=sample_weight,
        weight_kind=weight_kind,
        groups=groups,
        normalize=normalize,
        clip=clip,
    )
    if method not in METHODS:
        raise InputError(f"method must be 'auto', 'flip' or 'f'; got {method!r}.")
    check_resamples(n_resamples)
    return _run(predictions, method, n_resamples, seed)


def _run(predictions: Predictions, method: str, n_resamples: int, seed: Seed) -> RobustTest:
    odds, weight = predictions.log_odds, predictions.sample_weight
    theta = identity_theta(len(odds))
    sums = score_sums(predictions, theta)
    root = _root(LogPartition(odds, weight)(theta).hessian, free_parameters(odds))
    null = Mixture.of(root, sums.total, sums.gram, sums.n_units)
    chosen, reason = _choose(predictions, method, sums.n_units, n_resamples)
    pvalue, n_flips, entropy = null.f_pvalue, 0, None
    if chosen == "flip":
        entropy = entropy_of(seed)
        scores = unit_scores(predictions, theta)
        pvalue = flip_pvalue(scores, root, n_resamples=n_resamples, seed=entropy).pvalue
        n_flips = n_resamples
    independent = 0.0 if _is_survey(predictions) else chi2_sf(null.score, root.shape[1])
    if independent > pvalue:
        pvalue, reason = independent, f"{reason}; the p-value of independent rows is larger"
    grouped = predictions.groups is not None
    return RobustTest(
        statistic=null.statistic,
        df=root.shape[1],
        pvalue=pvalue,
        method=chosen,
        kind="cluster" if grouped else "sandwich",
        n_groups=round(sums.n_units),
        design_effect=_design_effect(predictions, root, sums) if grouped else 1.0,
        n_resamples=n_flips,
        seed=entropy,
        reason=reason,
    )


def _choose(
    predictions: Predictions, method: str, n_units: float, n_resamples: int
) -> tuple[str, str]:
    """Return the method to use, and why."""
    grouped = predictions.groups is not None
    countable = grouped or _is_survey(predictions) or has_whole_weights(predictions)
    if method == "flip" and not countable:
        raise InputError(
            "sign flips need whole-number weights (rows counted so many times), groups, or survey "
            "weights. Use method='f'."
        )
    found = f"{format_count(n_units)} {'groups' if grouped else 'rows'}"
    if method == "auto":
        few = n_units <= MOST_FLIPPED
        method = "flip" if few and countable else "f"
        reason = found if countable else f"{found} with fractional weights"
    else:
        reason = "as asked"
    if method == "flip" and 2.0 ** (1.0 - n_units) > 1.0 / (n_resamples + 1.0):
        reason += f"; so few can give no p-value below {2.0 ** (1.0 - n_units):.2g}"
    return method, reason


def _is_survey(predictions: Predictions) -> bool:
    return predictions.sample_weight is not None and predictions.weight_kind == "survey"


def _root(hessian: Floats, free: NDArray[np.bool_]) -> Floats:
    """Return `whitening` of the free parameters' information, 0 in the rows of the others."""
    own = whitening(hessian[np.ix_(free, free)])
    root = np.zeros((len(free), own.shape[1]))
    root[free] = own
    return root


def _design_effect(predictions: Predictions, root: Floats, sums: ScoreSums) -> float:
    """Return the variance of the score by groups over that by rows, added over directions."""
    rows = row_sums(predictions, identity_theta(len(predictions.log_odds))).covariance
    by_groups, by_rows = (float(np.trace(root.T @ v @ root)) for v in (sums.covariance, rows))
    return by_groups / by_rows if by_rows > 0.0 else float("nan")


def robust_covariance(predictions: Predictions, fit: MCLLOFit, *, groups: Any = None) -> Floats:
    """Return the sandwich covariance of ``(tau, gamma)``; NaN where the fit has NaN.

    Parameters
    ----------
    predictions : Predictions
        The rows of the fit, with their groups and weights.
    fit : MCLLOFit
        Of these rows; a ridge counts as information.
    groups : array-like of shape (n_samples,), optional
        Instead of the groups of the predictions.

    Examples
    --------
    >>> from mcllo._fit import fit_predictions
    >>> p = Predictions.from_arrays([[0.7, 0.3], [0.2, 0.8], [0.6, 0.4], [0.4, 0.6]], [0, 1, 1, 0])
    >>> fit = fit_predictions(p)
    >>> np.sqrt(np.diag(robust_covariance(p, fit))).round(2)  # tau, gamma
    array([1.31, 1.13])
    """
    predictions = predictions.with_baseline(fit.baseline)
    if groups is not None:
        predictions = replace(predictions, groups=clean_groups(groups, predictions.n_samples))
    theta = np.concatenate([fit.tau, fit.gamma])
    free = ~np.isnan(np.diagonal(fit.cov_theta))
    covariance = np.full((len(theta), len(theta)), np.nan)
    if free.any():
        own = np.ix_(free, free)
        partition = LogPartition(predictions.log_odds, predictions.sample_weight)
        bread = partition(theta).hessian[own] + fit.penalty * np.eye(int(free.sum()))
        meat = score_sums(predictions, theta).covariance[own]
        half = np.linalg.solve(bread, meat)
        sandwich = np.linalg.solve(bread, half.T)
        covariance[own] = 0.5 * (sandwich + sandwich.T)
    return covariance


def robust_fit(predictions: Predictions, fit: MCLLOFit, *, groups: Any = None) -> MCLLOFit:
    """Return the same estimates with robust standard errors and intervals."""
    return replace(fit, cov_theta=robust_covariance(predictions, fit, groups=groups))
