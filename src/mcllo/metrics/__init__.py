"""Metrics of predicted probabilities, each name saying what it measures.

All take ``(y_true, y_prob, *, sample_weight=None, classes=None, ...)``, the order of
`sklearn.metrics`, and work in ``make_scorer(metric, response_method="predict_proba")``.
Probabilities may be 0; row i counts as ``sample_weight[i]`` rows. `y_prob` may also be a
`Predictions`, with ``y_true=None``.

The room imports SciPy and the rooms above it (`_utils`, `_model`, `_validation`, `_fit`).
"""

from __future__ import annotations

from ._binned import (
    adaptive_calibration_error,
    average_calibration_error,
    classwise_calibration_error,
    debiased_calibration_error,
    debiased_squared_calibration_error,
    expected_calibration_error,
    maximum_calibration_error,
    tcal_squared_calibration_error,
)
from ._isotonic import decompose_isotonic
from ._scores import (
    accuracy,
    brier_score,
    decompose_brier,
    decompose_brier_by_group,
    decompose_log_loss,
    label_change,
    log_loss,
)
from ._smooth import calibration_distances, integrated_calibration_index
from ._unbinned import kernel_calibration_error, smooth_calibration_error

__all__ = [
    "accuracy",
    "adaptive_calibration_error",
    "average_calibration_error",
    "brier_score",
    "calibration_distances",
    "classwise_calibration_error",
    "debiased_calibration_error",
    "debiased_squared_calibration_error",
    "decompose_brier",
    "decompose_brier_by_group",
    "decompose_isotonic",
    "decompose_log_loss",
    "expected_calibration_error",
    "integrated_calibration_index",
    "kernel_calibration_error",
    "label_change",
    "log_loss",
    "maximum_calibration_error",
    "smooth_calibration_error",
    "tcal_squared_calibration_error",
]
