"""Plain scores of predictions, as weighted means over rows.

=============  =============================================================
accuracy       ``mean 1{argmax_k x_ik = y_i}``; of tied classes the first
log loss       ``mean -log x_{i, y_i}``; infinite when a true class had 0
Brier score    ``mean sum_k (x_ik - 1{y_i = k})^2``: between 0 and 2
label change   ``mean 1{argmax before != argmax after}``
=============  =============================================================
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._predictions import Predictions
from ._probabilities import clean_probs
from ._rows import clean_weight
from ._scored import scored_predictions
from .exceptions import InputError

Floats = NDArray[np.float64]


def accuracy(
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    classes: Sequence[Hashable] | None = None,
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
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    classes: Sequence[Hashable] | None = None,
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
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    classes: Sequence[Hashable] | None = None,
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
