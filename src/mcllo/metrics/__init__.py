"""Metrics of predicted probabilities, each name saying what it measures.

All take ``(y_true, y_prob, *, sample_weight=None, classes=None, ...)``, the order of
`sklearn.metrics`; those that are one number are scorers in `SCORERS`, ``scoring=`` of scikit-learn.
Probabilities may be 0; row i counts as ``sample_weight[i]`` rows. `y_prob` may also be a
`Predictions`, with ``y_true=None``.

`StreamingCalibration` takes a test and metrics batch by batch; it ends in a p-value, so it is at
home in `_assessment`, and loaded from there when it is asked for.

The room imports SciPy and the rooms above it (`_utils`, `_model`, `_validation`, `_fit`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from .._assessment.streaming_calibration import (
        StreamingCalibration as StreamingCalibration,
    )
    from .._assessment.streaming_calibration import StreamingResult as StreamingResult
    from ._scorers import SCORERS as SCORERS

__all__ = [
    "SCORERS",
    "StreamingCalibration",
    "StreamingResult",
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

_LOADED_WHEN_USED = {
    "StreamingCalibration": "_assessment.streaming_calibration",
    "StreamingResult": "_assessment.streaming_calibration",
    "SCORERS": "metrics._scorers",
}
"""Names that are at home in other rooms, or need scikit-learn's scorers."""


def __getattr__(name: str) -> Any:
    if name in _LOADED_WHEN_USED:
        return getattr(import_module(f"mcllo.{_LOADED_WHEN_USED[name]}"), name)
    raise AttributeError(f"module 'mcllo.metrics' has no attribute {name!r}")
