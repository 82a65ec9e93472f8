"""mcllo: are these class probabilities calibrated, which classes are wrong, and what is the repair?

The public names, nothing else; each loads its module when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from . import calibrators, exceptions, metrics
    from ._assess import Assessment, assess
    from ._calibration_test import CalibrationTest, calibration_test
    from ._fit import MCLLOFit
    from ._io import read_predictions
    from ._map import MCLLOMap
    from ._predictions import Predictions
    from .calibrators import CALIBRATORS, MCLLOCalibrator, load_calibrator

_HOME = {
    "Assessment": "_assess",
    "CALIBRATORS": "calibrators",
    "CalibrationTest": "_calibration_test",
    "MCLLOCalibrator": "calibrators",
    "MCLLOFit": "_fit",
    "MCLLOMap": "_map",
    "Predictions": "_predictions",
    "assess": "_assess",
    "calibration_test": "_calibration_test",
    "load_calibrator": "calibrators",
    "read_predictions": "_io",
}
_MODULES = ("calibrators", "exceptions", "metrics")

__all__ = [
    "CALIBRATORS",
    "Assessment",
    "CalibrationTest",
    "MCLLOCalibrator",
    "MCLLOFit",
    "MCLLOMap",
    "Predictions",
    "__version__",
    "assess",
    "calibration_test",
    "calibrators",
    "exceptions",
    "load_calibrator",
    "metrics",
    "read_predictions",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module 'mcllo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
