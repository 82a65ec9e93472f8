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
from .._model.likelihood import recalibrate_from_log_odds
from .._utils.parallel import row_blocks
from .._utils.results import Codes, Floats, Result
from .._validation.predictions import Predictions, predictions_for_scoring
from .._validation.probabilities import clean_probs
from .._validation.weights import clean_weight
from ..exceptions import InputError
from ._bins import top_label

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

    Returns
    -------
    float
        Between 0 and 1.

    See Also
    --------
    label_change : Rows whose most probable class differs between two predictions.
    log_loss : A score that looks at the probabilities, too.
    expected_calibration_error : Accuracy against confidence, bin by bin.

    Examples
    --------
    >>> round(accuracy([0, 1, 1], [[0.9, 0.1], [0.4, 0.6], [0.7, 0.3]]), 3)
    0.667
    """
    p = predictions_for_scoring(
        y_true,
        y_prob,
        sample_weight=sample_weight,
        classes=classes,
        choice_sets=True,
    )
    top, _ = top_label(p.probs)
    return weighted_row_mean(top == p.codes, p.sample_weight)


def log_loss(
    y_true: Any, y_prob: Any, *, sample_weight: Any = None, classes: Classes = None
) -> float:
    """Return the mean negative log probability of the class that came true.

    Infinite when a class of probability 0 came true; nothing is clipped.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels that came true.
    y_prob : array-like or frame of shape (n_samples, n_classes)
        Predicted probabilities.
    sample_weight : array-like of shape (n_samples,), optional
        Row i counts as ``sample_weight[i]`` rows.
    classes : sequence, optional
        The label of each column. Default: the frame's column names, else the sorted distinct
        labels.

    Returns
    -------
    float
        Mean over rows, in nats; smaller is better.

    See Also
    --------
    brier_score : Stays finite.
    decompose_log_loss : Miscalibration, discrimination and uncertainty.
    mcllo.compare : Log losses of methods on rows that they were not fitted to.

    Notes
    -----
    The logarithmic score of [1]_. `sklearn.metrics.log_loss` clips probabilities at the machine's
    epsilon instead.

    References
    ----------
    .. [1] I. J. Good (1952). Rational decisions. Journal of the Royal Statistical Society B
           14:107-114.

    Examples
    --------
    >>> round(log_loss([0, 1], [[0.5, 0.5], [0.2, 0.8]]), 4)
    0.4581
    >>> log_loss([1, 1], [[1.0, 0.0], [0.2, 0.8]])
    inf
    """
    p = predictions_for_scoring(
        y_true,
        y_prob,
        sample_weight=sample_weight,
        classes=classes,
        choice_sets=True,
    )
    return mean_log_loss(p.probs, p)


def brier_score(
    y_true: Any, y_prob: Any, *, sample_weight: Any = None, classes: Classes = None
) -> float:
    """Return the mean squared distance of the probabilities from the one-hot label.

    The sum runs over all classes: for two classes it is twice the one-sided score.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels that came true.
    y_prob : array-like or frame of shape (n_samples, n_classes)
        Predicted probabilities.
    sample_weight : array-like of shape (n_samples,), optional
        Row i counts as ``sample_weight[i]`` rows.
    classes : sequence, optional
        The label of each column. Default: the frame's column names, else the sorted distinct
        labels.

    Returns
    -------
    float
        Between 0 and 2; smaller is better.

    See Also
    --------
    log_loss : The other proper score.
    decompose_brier : Miscalibration, discrimination and uncertainty.
    decompose_brier_by_group : Murphy's decomposition.

    Notes
    -----
    The sum over all classes is the definition of [1]_; `sklearn.metrics.brier_score_loss` halves it
    for two classes by default.

    References
    ----------
    .. [1] G. W. Brier (1950). Verification of forecasts expressed in terms of probability. Monthly
           Weather Review 78:1-3.

    Examples
    --------
    >>> round(brier_score([0, 1], [[0.5, 0.5], [0.2, 0.8]]), 2)
    0.29
    """
    p = predictions_for_scoring(
        y_true,
        y_prob,
        sample_weight=sample_weight,
        classes=classes,
        choice_sets=True,
    )
    return mean_brier(p.probs, p)


def label_change(before: Any, after: Any, *, sample_weight: Any = None) -> float:
    """Return the fraction of rows whose most probable class differs between two predictions.

    Parameters
    ----------
    before, after : array-like or frame of shape (n_samples, n_classes)
        Probabilities of the same rows; two frames are matched by column name.
    sample_weight : array-like of shape (n_samples,), optional
        Row i counts as ``sample_weight[i]`` rows.

    Returns
    -------
    float
        Between 0 and 1.

    See Also
    --------
    accuracy : Rows whose most probable class came true.
    mcllo.compare : Shows it for each method.
    mcllo.calibrators.TemperatureScaling : A method that never changes a label.

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
    return weighted_row_mean(changed, clean_weight(sample_weight, len(changed)))


def mean_log_loss(probs: Floats, p: Predictions) -> float:
    """Return the log loss of `probs` for the labels and weights of `p`."""
    own = probs[np.arange(p.n_samples), p.codes]
    is_finite = own > 0.0
    if p.sample_weight is not None:  # a row that does not count has no say
        is_finite = (own > 0.0) | (p.sample_weight == 0.0)
    if not is_finite.all():
        return float("inf")
    logs = np.log(np.where(own > 0.0, own, 1.0))
    return -weighted_row_mean(logs, p.sample_weight) + 0.0  # -0.0 + 0.0 is 0.0


def mean_brier(probs: Floats, p: Predictions) -> float:
    """Return the Brier score of `probs` for the labels and weights of `p`."""
    squares = np.empty(p.n_samples)
    for rows in row_blocks(*probs.shape):
        error = probs[rows].copy()
        error[np.arange(len(error)), p.codes[rows]] -= 1.0
        squares[rows] = np.einsum("ik,ik->i", error, error)
    return weighted_row_mean(squares, p.sample_weight)


def weighted_row_mean(values: NDArray[Any], weight: Floats | None) -> float:
    """Return the weighted mean over rows."""
    return float(np.average(values, weights=weight))


def standard_error_of_mean(
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
    >>> error, units = standard_error_of_mean(values - 3.0, np.ones(4))
    >>> bool(np.isclose(error, values.std(ddof=1) / 2)), units
    (True, 4.0)
    >>> standard_error_of_mean(np.array([0.0]), np.ones(1))
    (inf, 1.0)
    """
    total = float(weight.sum())
    if groups is None:
        n_units = total
        sum_of_squares = float(weight @ deviations**2)
    else:
        sums = np.bincount(groups, weights=weight * deviations)
        weights = np.bincount(groups, weights=weight)
        n_units = float((weights > 0.0).sum())
        sum_of_squares = float(sums @ sums)
    if n_units <= 1.0:
        return float("inf"), n_units
    variance = sum_of_squares * n_units / (n_units - 1.0)
    return float(np.sqrt(variance)) / total, n_units


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
    y_true : array-like of shape (n_samples,)
        Labels that came true.
    y_prob : array-like or frame of shape (n_samples, n_classes)
        Predicted probabilities. Zeros are raised to 1e-6, with a warning: the recalibration needs
        log odds, and `score` is then the score of the raised probabilities.
    baseline : label, optional
        Reference class of the recalibration. Default: the last class that occurs.
    sample_weight : array-like of shape (n_samples,), optional
        Row i counts as ``sample_weight[i]`` rows.
    classes : sequence, optional
        The label of each column. Default: the frame's column names, else the sorted distinct
        labels.

    Returns
    -------
    ScoreDecomposition
        `miscalibration`, `discrimination`, `uncertainty` and `score`; the first less the second
        plus the third is the score.

    See Also
    --------
    decompose_brier : The same of the Brier score.
    decompose_isotonic : Of one class, by isotonic regression.
    log_loss : The score that is split.

    Notes
    -----
    Miscalibration is the log loss less that of the MCLLO map fitted to these very rows: the
    likelihood ratio statistic of `mcllo.calibration_test` over 2n, and so never negative. The
    pieces have the meaning of [1]_, with this map in the place of isotonic regression.

    References
    ----------
    .. [1] T. Dimitriadis, T. Gneiting, A. I. Jordan (2021). Stable reliability diagrams for
           probabilistic classifiers. Proceedings of the National Academy of Sciences 118 (8).

    Examples
    --------
    >>> y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6], [0.6, 0.4], [0.3, 0.7]]
    >>> parts = decompose_log_loss([0, 0, 1, 0, 1, 1], y_prob)
    >>> round(parts.miscalibration, 4), round(parts.discrimination, 4), round(parts.uncertainty, 4)
    (0.0246, 0.2387, 0.6931)
    """
    p = predictions_for_scoring(
        y_true,
        y_prob,
        keep_zeros=False,
        sample_weight=sample_weight,
        classes=classes,
        baseline=baseline,
    )
    return _decompose_by_recalibration(p, mean_log_loss)


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

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels that came true.
    y_prob : array-like or frame of shape (n_samples, n_classes)
        Predicted probabilities. Zeros are raised to 1e-6, with a warning: the recalibration needs
        log odds, and `score` is then the score of the raised probabilities.
    baseline : label, optional
        Reference class of the recalibration. Default: the last class that occurs.
    sample_weight : array-like of shape (n_samples,), optional
        Row i counts as ``sample_weight[i]`` rows.
    classes : sequence, optional
        The label of each column. Default: the frame's column names, else the sorted distinct
        labels.

    Returns
    -------
    ScoreDecomposition
        `miscalibration`, `discrimination`, `uncertainty` and `score`; the first less the second
        plus the third is the score.

    See Also
    --------
    decompose_log_loss : The same of the log loss.
    decompose_isotonic : Of one class, by isotonic regression.
    decompose_brier_by_group : By groups of rows.

    Notes
    -----
    Miscalibration is the score of the predictions less that of the MCLLO map fitted to these very
    rows, discrimination is the score of the class shares less that of the map, uncertainty the
    score of the class shares. The pieces have the meaning of [1]_, with this map in the place of
    isotonic regression.

    References
    ----------
    .. [1] T. Dimitriadis, T. Gneiting, A. I. Jordan (2021). Stable reliability diagrams for
           probabilistic classifiers. Proceedings of the National Academy of Sciences 118 (8).

    Examples
    --------
    >>> y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6], [0.6, 0.4], [0.3, 0.7]]
    >>> parts = decompose_brier([0, 0, 1, 0, 1, 1], y_prob)
    >>> round(parts.miscalibration, 4), round(parts.discrimination, 4), round(parts.uncertainty, 4)
    (-0.0028, 0.1806, 0.5)
    """
    p = predictions_for_scoring(
        y_true,
        y_prob,
        keep_zeros=False,
        sample_weight=sample_weight,
        classes=classes,
        baseline=baseline,
    )
    return _decompose_by_recalibration(p, mean_brier)


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
    y_true : array-like of shape (n_samples,)
        Labels that came true.
    y_prob : array-like or frame of shape (n_samples, n_classes)
        Predicted probabilities.
    groups : {'argmax', 'equal'}
        Rows with the same most probable class; or rows with equal predictions, which makes the two
        within-group terms 0 and the reliability of distinct predictions pure chance.
    sample_weight : array-like of shape (n_samples,), optional
        Row i counts as ``sample_weight[i]`` rows.
    classes : sequence, optional
        The label of each column. Default: the frame's column names, else the sorted distinct
        labels.

    Returns
    -------
    GroupedBrier
        `reliability`, `resolution`, `uncertainty`, and the two terms of the spread within groups.

    See Also
    --------
    decompose_brier : By recalibration instead of groups.
    brier_score : The score that is split.
    expected_calibration_error : Gaps of groups by confidence.

    Notes
    -----
    Reliability, resolution and uncertainty are those of [1]_, which assumes that predictions are
    equal within a group; the within-group terms make the sum exact where they are not.

    References
    ----------
    .. [1] A. H. Murphy (1973). A new vector partition of the probability score. Journal of Applied
           Meteorology 12:595-600.

    Examples
    --------
    >>> y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6], [0.6, 0.4], [0.3, 0.7]]
    >>> parts = decompose_brier_by_group([0, 0, 1, 0, 1, 1], y_prob)
    >>> round(parts.reliability, 4), round(parts.resolution, 4), round(parts.uncertainty, 4)
    (0.0056, 0.0556, 0.5)
    """
    p = predictions_for_scoring(
        y_true, y_prob, sample_weight=sample_weight, classes=classes
    )
    if groups == "argmax":
        group: Codes = p.probs.argmax(axis=1)
    elif groups == "equal":
        _, group = np.unique(p.probs, axis=0, return_inverse=True)
        group = group.ravel()
    else:
        raise InputError(f"groups must be 'argmax' or 'equal'; got groups={groups!r}.")
    hits = np.eye(p.n_classes)[p.codes]
    mean_x = _group_means(p.probs, group, p.sample_weight)
    mean_y = _group_means(hits, group, p.sample_weight)
    frequency = p.class_weight / p.class_weight.sum()

    def mean_product(a: Floats, b: Floats) -> float:
        return weighted_row_mean(np.einsum("ik,ik->i", a, b), p.sample_weight)

    return GroupedBrier(
        reliability=mean_product(mean_x - mean_y, mean_x - mean_y),
        resolution=mean_product(mean_y - frequency, mean_y - frequency),
        uncertainty=1.0 - float(frequency @ frequency),
        within_variance=mean_product(p.probs - mean_x, p.probs - mean_x),
        within_covariance=2.0 * mean_product(hits - mean_y, p.probs - mean_x),
        score=mean_brier(p.probs, p),
    )


def _decompose_by_recalibration(
    p: Predictions, score: Callable[[Floats, Predictions], float]
) -> ScoreDecomposition:
    """Return the parts of a score."""
    recalibrated = recalibrate_from_log_odds(
        fit_predictions(p).theta, p.log_odds, p.baseline_index
    )
    frequency = p.class_weight / p.class_weight.sum()
    score_as_given = score(p.probs, p)
    score_recalibrated = score(recalibrated, p)
    score_uninformed = score(np.broadcast_to(frequency, p.probs.shape), p)
    return ScoreDecomposition(
        miscalibration=score_as_given - score_recalibrated,
        discrimination=score_uninformed - score_recalibrated,
        uncertainty=score_uninformed,
        score=score_as_given,
    )


def _group_means(rows: Floats, group: Codes, weight: Floats | None) -> Floats:
    """Return for every row the mean of its group; 0 for a group without weight."""
    if weight is None:
        weight = np.ones(len(rows))
    total = np.bincount(group, weight)
    sums_of_columns = [np.bincount(group, weight * column) for column in rows.T]
    sums = np.stack(sums_of_columns, axis=1)
    means = sums / np.where(total > 0.0, total, 1.0)[:, None]
    return means[group]
