"""mcllo: are these class probabilities calibrated, which classes are wrong, and what is the repair?

The public names, nothing else; each loads its module when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from . import calibrators, exceptions, metrics, model_selection, plot, simulate
    from ._assess import Assessment, assess
    from ._baseline import baseline_sensitivity
    from ._baseline_result import BaselineSensitivity
    from ._calibration_test import CalibrationTest
    from ._chosen_test import calibration_test
    from ._class_tests import ClassTests, class_tests
    from ._compare import compare
    from ._comparison import Comparison
    from ._fit import MCLLOFit
    from ._io import read_predictions
    from ._ladder import Ladder, ladder
    from ._map import MCLLOMap
    from ._omnibus import OmnibusTest, omnibus_test
    from ._predictions import Predictions
    from ._reliability import ReliabilityCurve, reliability_curve
    from ._report import Report, report
    from .calibrators import CALIBRATORS, MCLLOCalibrator, load_calibrator
    from .model_selection import RecalibratedClassifierCV

_HOME = {
    "Assessment": "_assess",
    "BaselineSensitivity": "_baseline_result",
    "CALIBRATORS": "calibrators",
    "CalibrationTest": "_calibration_test",
    "ClassTests": "_class_tests",
    "Comparison": "_comparison",
    "Ladder": "_ladder",
    "MCLLOCalibrator": "calibrators",
    "MCLLOFit": "_fit",
    "MCLLOMap": "_map",
    "OmnibusTest": "_omnibus",
    "Predictions": "_predictions",
    "RecalibratedClassifierCV": "model_selection",
    "ReliabilityCurve": "_reliability",
    "Report": "_report",
    "assess": "_assess",
    "baseline_sensitivity": "_baseline",
    "calibration_test": "_chosen_test",
    "class_tests": "_class_tests",
    "compare": "_compare",
    "ladder": "_ladder",
    "load_calibrator": "calibrators",
    "omnibus_test": "_omnibus",
    "read_predictions": "_io",
    "reliability_curve": "_reliability",
    "report": "_report",
}
_MODULES = ("calibrators", "exceptions", "metrics", "model_selection", "plot", "simulate")

__all__ = [
    "CALIBRATORS",
    "Assessment",
    "BaselineSensitivity",
    "CalibrationTest",
    "ClassTests",
    "Comparison",
    "Ladder",
    "MCLLOCalibrator",
    "MCLLOFit",
    "MCLLOMap",
    "OmnibusTest",
    "Predictions",
    "RecalibratedClassifierCV",
    "ReliabilityCurve",
    "Report",
    "__version__",
    "assess",
    "baseline_sensitivity",
    "calibration_test",
    "calibrators",
    "class_tests",
    "compare",
    "exceptions",
    "ladder",
    "load_calibrator",
    "metrics",
    "model_selection",
    "omnibus_test",
    "plot",
    "read_predictions",
    "reliability_curve",
    "report",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module 'mcllo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
