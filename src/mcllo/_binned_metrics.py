"""Binned calibration errors: how far the mean prediction of a bin is from what came true in it.

With ``w_m`` the rows in bin m, ``conf_m`` their mean prediction, ``acc_m`` the frequency of hits:

====================  =======================================================================
expected (ECE)        ``(sum_m w_m / n |conf_m - acc_m|^q)^(1/q)``, top-label
maximum (MCE)         ``max_m |conf_m - acc_m|`` over bins that hold rows, top-label
average               mean of ``|conf_m - acc_m|`` over bins that hold rows, top-label
classwise             mean over classes of the expected error of each (Kull 2019)
adaptive (ACE)        mean over classes and runs of equal size of ``|conf - acc|`` (Nixon 2019)
====================  =======================================================================
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal

import numpy as np

from ._binning import Binning, NBins, block_totals, n_bins_of, total_weight
from ._calibration_errors import ClasswiseECE, TopLabelECE
from ._scored import scored_predictions

Classes = Sequence[Hashable] | None


def expected_calibration_error(
    y_true: Any,
    y_prob: Any,
    *,
    n_bins: NBins = "sqrt",
    binning: Binning = "width",
    norm: Literal[1, 2] = 1,
    sample_weight: Any = None,
    classes: Classes = None,
) -> float:
    """Return the top-label expected calibration error.

    A number above 0 does not say that predictions are off: a perfectly calibrated model shows one
    too, the larger the fewer rows there are per bin. `mcllo.assess` reports how large.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    y_prob : array-like or frame of shape (n_samples, n_classes)
        Predicted probabilities.
    n_bins : int or "sqrt"
        Number of bins; "sqrt" is ``ceil(sqrt(n))`` with n the rows, or their total weight.
    binning : "width" or "mass"
        Bins of equal width on [0, 1], or holding equally many rows.
    norm : 1 or 2
        Mean absolute, or root mean squared, gap.
    sample_weight : array-like of shape (n_samples,), optional
        Row i counts as ``sample_weight[i]`` rows.
    classes : sequence, optional
        The label of each column.

    Examples
    --------
    >>> y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]
    >>> round(expected_calibration_error([0, 0, 1, 0], y_prob, n_bins=2), 3)
    0.0
    >>> round(expected_calibration_error([0, 0, 1, 0], y_prob, n_bins=10), 3)
    0.3
    """
    p = scored_predictions(y_true, y_prob, sample_weight=sample_weight, classes=classes)
    return float(TopLabelECE(p, n_bins, binning, norm).of_labels(p.codes[None])[0])


def maximum_calibration_error(
    y_true: Any,
    y_prob: Any,
    *,
    n_bins: NBins = "sqrt",
    binning: Binning = "width",
    sample_weight: Any = None,
    classes: Classes = None,
) -> float:
    """Return the largest gap between confidence and accuracy over the bins that hold rows.

    Parameters as in `expected_calibration_error`.

    Examples
    --------
    >>> y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]
    >>> round(maximum_calibration_error([0, 0, 1, 0], y_prob, n_bins=10), 3)
    0.6
    """
    p = scored_predictions(y_true, y_prob, sample_weight=sample_weight, classes=classes)
    return float(TopLabelECE(p, n_bins, binning).gaps(p.codes[None]).max())


def average_calibration_error(
    y_true: Any,
    y_prob: Any,
    *,
    n_bins: NBins = "sqrt",
    binning: Binning = "width",
    sample_weight: Any = None,
    classes: Classes = None,
) -> float:
    """Return the plain mean of the top-label gaps over the bins that hold rows (netcal's "ACE").

    A bin of one row counts as much as a bin of a thousand. For Nixon's adaptive calibration error
    use `adaptive_calibration_error`. Parameters as in `expected_calibration_error`.

    Examples
    --------
    >>> y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]
    >>> round(average_calibration_error([0, 0, 1, 0], y_prob, n_bins=10), 3)
    0.3
    """
    p = scored_predictions(y_true, y_prob, sample_weight=sample_weight, classes=classes)
    bins = TopLabelECE(p, n_bins, binning)
    return float(bins.gaps(p.codes[None])[0, bins.weight > 0.0].mean())


def classwise_calibration_error(
    y_true: Any,
    y_prob: Any,
    *,
    n_bins: NBins = "sqrt",
    binning: Binning = "width",
    sample_weight: Any = None,
    classes: Classes = None,
) -> float:
    """Return the mean over classes of each class's expected calibration error (Kull 2019).

    Parameters as in `expected_calibration_error`.

    Examples
    --------
    >>> y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]
    >>> round(classwise_calibration_error([0, 0, 1, 0], y_prob, n_bins=10), 3)
    0.3
    """
    p = scored_predictions(y_true, y_prob, sample_weight=sample_weight, classes=classes)
    return float(ClasswiseECE(p, n_bins, binning).of_labels(p.codes[None])[0])


def adaptive_calibration_error(
    y_true: Any,
    y_prob: Any,
    *,
    n_bins: NBins = "sqrt",
    sample_weight: Any = None,
    classes: Classes = None,
) -> float:
    """Return Nixon's (2019) ACE: the mean gap over classes and runs of equally many rows.

    Rows of equal probability may fall into different runs, so with ties the value depends on the
    order of the rows. Parameters as in `expected_calibration_error`.

    Examples
    --------
    >>> y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]
    >>> round(adaptive_calibration_error([0, 0, 1, 0], y_prob, n_bins=2), 3)
    0.2
    """
    p = scored_predictions(y_true, y_prob, sample_weight=sample_weight, classes=classes)
    count = n_bins_of(n_bins, total_weight(p.probs, p.sample_weight))
    per_class = []
    for k, column in enumerate(p.probs.T):
        both = np.stack([column, p.codes == k])
        weight, (predicted, hits) = block_totals(column, both, count, p.sample_weight)
        per_class.append(np.mean(np.abs(predicted - hits) / weight))
    return float(np.mean(per_class))
