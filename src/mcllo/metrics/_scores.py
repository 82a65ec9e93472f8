"""Scores of predictions, as weighted means over rows, and the parts they consist of.

=================  ========================================================================
accuracy           ``mean 1{argmax_k x_ik = y_i}``; of tied classes the first
log loss           ``mean -log x_{i, y_i}``; infinite when a true class had 0
Brier score        ``mean sum_k (x_ik - 1{y_i = k})^2``: between 0 and 2
label change       ``mean 1{argmax before != argmax after}``
=================  ========================================================================

With S the log loss or the Brier score, g the MCLLO recalibration fitted to the same rows and
``ybar`` the class frequencies, predicted for every row:

=================  ========================================================================
miscalibration     ``S(x) - S(g)``: what recalibration gains; for log loss ``statistic / 2n``
discrimination     ``S(ybar) - S(g)``: what the recalibrated predictions know beyond frequencies
uncertainty        ``S(ybar)``
score              ``S(x) = miscalibration - discrimination + uncertainty``
=================  ========================================================================

By groups of rows m, of weight ``w_m`` and means ``x_m``, ``y_m`` (Murphy's terms, Brier only):

=================  ========================================================================
reliability        ``sum_m w_m / n |x_m - y_m|^2``
resolution         ``sum_m w_m / n |y_m - ybar|^2``
within variance    ``mean |x_i - x_m|^2``
within covariance  ``2 mean (Y_i - y_m) . (x_i - x_m)``
score              ``reliability - resolution + uncertainty + variance - covariance``
=================  ========================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._fit.fit import fit_predictions
from .._ground.results import Codes, Floats, Result
from .._input.predictions import Predictions, scored_predictions
from .._input.probabilities import clean_probs
from .._input.weights import clean_weight
from .._math.likelihood import recalibrate
from ..exceptions import InputError

Classes = Sequence[Hashable] | None


def accuracy(
    y_true: Any, y_prob: Any, *, sample_weight: Any = None, classes: Classes = None
) -> float:
    """Return the fraction of rows whose most probable class came true; of ties, the first class.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    y_prob : array-like or frame of shape (n_samples, n_classes)
        Predicted probabilities.
    sample_weight : array-like of shape (n_samples,), optional
        Row i counts as ``sample_weight[i]`` rows.
    classes : sequence, optional
        The label of each column.

    Examples
    --------
    >>> round(accuracy([0, 1, 1], [[0.9, 0.1], [0.4, 0.6], [0.7, 0.3]]), 3)
    0.667
    """
    p = scored_predictions(y_true, y_prob, sample_weight=sample_weight, classes=classes)
    return row_mean(p.probs.argmax(axis=1) == p.codes, p.sample_weight)


def log_loss(
    y_true: Any, y_prob: Any, *, sample_weight: Any = None, classes: Classes = None
) -> float:
    """Return the mean negative log probability of the class that came true.

    Infinite when a class of probability 0 came true; nothing is clipped. Parameters as in
    `accuracy`.

    Examples
    --------
    >>> round(log_loss([0, 1], [[0.5, 0.5], [0.2, 0.8]]), 4)
    0.4581
    >>> log_loss([1, 1], [[1.0, 0.0], [0.2, 0.8]])
    inf
    """
    p = scored_predictions(y_true, y_prob, sample_weight=sample_weight, classes=classes)
    return mean_log_loss(p.probs, p)


def brier_score(
    y_true: Any, y_prob: Any, *, sample_weight: Any = None, classes: Classes = None
) -> float:
    """Return the mean squared distance of the probabilities from the one-hot label.

    The sum runs over all classes: for two classes it is twice the one-sided score. Parameters as
    in `accuracy`.

    Examples
    --------
    >>> round(brier_score([0, 1], [[0.5, 0.5], [0.2, 0.8]]), 2)
    0.29
    """
    p = scored_predictions(y_true, y_prob, sample_weight=sample_weight, classes=classes)
    return mean_brier(p.probs, p)


def label_change(before: Any, after: Any, *, sample_weight: Any = None) -> float:
    """Return the fraction of rows whose most probable class differs between two predictions.

    Parameters
    ----------
    before, after : array-like or frame of shape (n_samples, n_classes)
        Probabilities of the same rows; two frames are matched by column name.
    sample_weight : array-like of shape (n_samples,), optional
        Row i counts as ``sample_weight[i]`` rows.

    Examples
    --------
    >>> label_change([[0.6, 0.4], [0.2, 0.8]], [[0.4, 0.6], [0.3, 0.7]])
    0.5
    """
    first = clean_probs(before, keep_zeros=True)
    second = clean_probs(after, columns=first.names, keep_zeros=True)
    if first.probs.shape != second.probs.shape:
        raise InputError(
            "before and after must have the same rows and classes; got shapes "
            f"{first.probs.shape} and {second.probs.shape}."
        )
    changed = first.probs.argmax(axis=1) != second.probs.argmax(axis=1)
    return row_mean(changed, clean_weight(sample_weight, len(changed)))


def mean_log_loss(probs: Floats, p: Predictions) -> float:
    """Return the log loss of `probs` for the labels and weights of `p`."""
    own = probs[np.arange(p.n_samples), p.codes]
    used = own > 0.0 if p.sample_weight is None else (own > 0.0) | (p.sample_weight == 0.0)
    if not used.all():
        return float("inf")
    logs = np.log(np.where(own > 0.0, own, 1.0))
    return -row_mean(logs, p.sample_weight) + 0.0


def mean_brier(probs: Floats, p: Predictions) -> float:
    """Return the Brier score of `probs` for the labels and weights of `p`."""
    error = probs.copy()
    error[np.arange(p.n_samples), p.codes] -= 1.0
    return row_mean(np.einsum("ik,ik->i", error, error), p.sample_weight)


def row_mean(values: NDArray[Any], weight: Floats | None) -> float:
    """Return the weighted mean over rows."""
    return float(np.average(values, weights=weight))


def error_of_mean(
    deviations: Floats, weight: Floats, groups: Codes | None = None
) -> tuple[float, float]:
    """Return the standard error of a weighted mean, and how many units it comes from.

    Rows counted by their weights: ``sqrt(sum w_i d_i^2 / (W - 1) / W)``, W the sum of the weights.
    In m groups: ``sqrt(m / (m - 1) sum_g (sum_{i in g} w_i d_i)^2) / W``. Survey weights count no
    rows: pass each row as a group of its own.

    Parameters
    ----------
    deviations : ndarray of shape (n,)
        Values less their weighted mean.
    weight : ndarray of shape (n,)
        How many rows each stands for; with groups, any weights that are not negative.
    groups : ndarray of shape (n,), optional
        Which rows may depend on each other, as 0, 1, ...

    Examples
    --------
    >>> values = np.array([1.0, 2.0, 3.0, 6.0])
    >>> error, units = error_of_mean(values - 3.0, np.ones(4))
    >>> bool(np.isclose(error, values.std(ddof=1) / 2)), units
    (True, 4.0)
    >>> error_of_mean(np.array([0.0]), np.ones(1))
    (inf, 1.0)
    """
    total = float(weight.sum())
    if groups is None:
        units, squares = total, float(weight @ deviations**2)
    else:
        sums = np.bincount(groups, weights=weight * deviations)
        units = float((np.bincount(groups, weights=weight) > 0.0).sum())
        squares = float(sums @ sums)
    if units <= 1.0:
        return float("inf"), units
    return float(np.sqrt(squares * units / (units - 1.0))) / total, units


@dataclass(frozen=True, eq=False)
class ScoreDecomposition(Result):
    """``score = miscalibration - discrimination + uncertainty``."""

    miscalibration: float
    discrimination: float
    uncertainty: float
    score: float


@dataclass(frozen=True, eq=False)
class GroupedBrier(Result):
    """``score = reliability - resolution + uncertainty + within_variance - within_covariance``."""

    reliability: float
    resolution: float
    uncertainty: float
    within_variance: float
    within_covariance: float
    score: float


def decompose_log_loss(
    y_true: Any,
    y_prob: Any,
    *,
    baseline: Hashable | None = None,
    sample_weight: Any = None,
    classes: Classes = None,
) -> ScoreDecomposition:
    """Split the log loss into miscalibration, discrimination and uncertainty.

    Parameters
    ----------
    y_prob : array-like or frame of shape (n_samples, n_classes)
        Predicted probabilities. Zeros are raised to 1e-6, with a warning: the recalibration needs
        log odds, and `score` is then the score of the raised probabilities.
    baseline : label, optional
        Reference class of the recalibration. Default: the last class that occurs.
    y_true, sample_weight, classes
        As in `accuracy`.

    Examples
    --------
    >>> y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6], [0.6, 0.4], [0.3, 0.7]]
    >>> parts = decompose_log_loss([0, 0, 1, 0, 1, 1], y_prob)
    >>> round(parts.miscalibration, 4), round(parts.discrimination, 4), round(parts.uncertainty, 4)
    (0.0246, 0.2387, 0.6931)
    """
    given = {"sample_weight": sample_weight, "classes": classes, "baseline": baseline}
    return _parts(scored_predictions(y_true, y_prob, keep_zeros=False, **given), mean_log_loss)


def decompose_brier(
    y_true: Any,
    y_prob: Any,
    *,
    baseline: Hashable | None = None,
    sample_weight: Any = None,
    classes: Classes = None,
) -> ScoreDecomposition:
    """Split the Brier score into miscalibration, discrimination and uncertainty.

    The recalibration is fitted by likelihood, so miscalibration can come out slightly negative.
    Parameters as in `decompose_log_loss`.

    Examples
    --------
    >>> y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6], [0.6, 0.4], [0.3, 0.7]]
    >>> parts = decompose_brier([0, 0, 1, 0, 1, 1], y_prob)
    >>> round(parts.miscalibration, 4), round(parts.discrimination, 4), round(parts.uncertainty, 4)
    (-0.0028, 0.1806, 0.5)
    """
    given = {"sample_weight": sample_weight, "classes": classes, "baseline": baseline}
    return _parts(scored_predictions(y_true, y_prob, keep_zeros=False, **given), mean_brier)


def decompose_brier_by_group(
    y_true: Any,
    y_prob: Any,
    *,
    groups: Literal["argmax", "equal"] = "argmax",
    sample_weight: Any = None,
    classes: Classes = None,
) -> GroupedBrier:
    """Split the Brier score by groups of rows, as Murphy did.

    Parameters
    ----------
    groups : "argmax" or "equal"
        Rows with the same most probable class; or rows with equal predictions, which makes the
        two within-group terms 0 and the reliability of distinct predictions pure chance.
    y_true, y_prob, sample_weight, classes
        As in `decompose_log_loss`; zeros stay zeros.

    Examples
    --------
    >>> y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6], [0.6, 0.4], [0.3, 0.7]]
    >>> parts = decompose_brier_by_group([0, 0, 1, 0, 1, 1], y_prob)
    >>> round(parts.reliability, 4), round(parts.resolution, 4), round(parts.uncertainty, 4)
    (0.0056, 0.0556, 0.5)
    """
    p = scored_predictions(y_true, y_prob, sample_weight=sample_weight, classes=classes)
    if groups == "argmax":
        group: Codes = p.probs.argmax(axis=1)
    elif groups == "equal":
        group = np.unique(p.probs, axis=0, return_inverse=True)[1].ravel()
    else:
        raise InputError(f"groups must be 'argmax' or 'equal'; got groups={groups!r}.")
    hits = np.eye(p.n_classes)[p.codes]
    mean_x = _group_means(p.probs, group, p.sample_weight)
    mean_y = _group_means(hits, group, p.sample_weight)
    frequency = p.class_weight / p.class_weight.sum()

    def mean_product(a: Floats, b: Floats) -> float:
        return row_mean(np.einsum("ik,ik->i", a, b), p.sample_weight)

    return GroupedBrier(
        reliability=mean_product(mean_x - mean_y, mean_x - mean_y),
        resolution=mean_product(mean_y - frequency, mean_y - frequency),
        uncertainty=1.0 - float(frequency @ frequency),
        within_variance=mean_product(p.probs - mean_x, p.probs - mean_x),
        within_covariance=2.0 * mean_product(hits - mean_y, p.probs - mean_x),
        score=mean_brier(p.probs, p),
    )


def _parts(p: Predictions, score: Callable[[Floats, Predictions], float]) -> ScoreDecomposition:
    """Return the parts of a score."""
    recalibrated = recalibrate(fit_predictions(p).theta, p.log_odds, p.baseline_index)
    frequency = p.class_weight / p.class_weight.sum()
    observed, best = score(p.probs, p), score(recalibrated, p)
    uninformed = score(np.broadcast_to(frequency, p.probs.shape), p)
    return ScoreDecomposition(observed - best, uninformed - best, uninformed, observed)


def _group_means(rows: Floats, group: Codes, weight: Floats | None) -> Floats:
    """Return for every row the mean of its group; 0 for a group without weight."""
    own = np.ones(len(rows)) if weight is None else weight
    size = np.bincount(group, own)
    sums = np.stack([np.bincount(group, own * column) for column in rows.T], axis=1)
    return (sums / np.where(size > 0.0, size, 1.0)[:, None])[group]
