"""mcllo: are these class probabilities calibrated, which classes are wrong, and what is the repair?

The public names, nothing else; each loads its module when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from . import calibrators, datasets, exceptions, metrics, model_selection, plot, simulate
    from ._assess import Assessment
    from ._assess_rows import assess
    from ._baseline import baseline_sensitivity
    from ._baseline_result import BaselineSensitivity
    from ._boldness import BoldRecalibration, boldness_recalibrate
    from ._calibration_test import CalibrationTest
    from ._chosen_test import calibration_test
    from ._class_tests import ClassTests, class_tests
    from ._compare import compare
    from ._comparison import Comparison
    from ._details import Details
    from ._fit import Intervals, MCLLOFit
    from ._io import read_predictions
    from ._ladder import Ladder, ladder
    from ._map import MCLLOMap
    from ._omnibus import OmnibusTest, omnibus_test
    from ._posterior import CalibrationPosterior, calibration_posterior
    from ._predictions import Predictions
    from ._profile import profile_intervals
    from ._recommend import Recommendation
    from ._refits import BootstrapFits, bootstrap_fits
    from ._reliability import ReliabilityCurve, reliability_curve
    from ._repaired import RepairedProbabilities
    from ._report import Report, report
    from ._robust import RobustTest, robust_test
    from ._zeros import ZeroSensitivity, zero_sensitivity
    from .calibrators import CALIBRATORS, AutoCalibrator, MCLLOCalibrator, load_calibrator
    from .model_selection import RecalibratedClassifierCV

_HOME = {
    "Assessment": "_assess",
    "AutoCalibrator": "calibrators",
    "BaselineSensitivity": "_baseline_result",
    "BoldRecalibration": "_boldness",
    "BootstrapFits": "_refits",
    "CALIBRATORS": "calibrators",
    "CalibrationPosterior": "_posterior",
    "CalibrationTest": "_calibration_test",
    "ClassTests": "_class_tests",
    "Comparison": "_comparison",
    "Details": "_details",
    "Intervals": "_fit",
    "Ladder": "_ladder",
    "MCLLOCalibrator": "calibrators",
    "MCLLOFit": "_fit",
    "MCLLOMap": "_map",
    "OmnibusTest": "_omnibus",
    "Predictions": "_predictions",
    "RecalibratedClassifierCV": "model_selection",
    "Recommendation": "_recommend",
    "ReliabilityCurve": "_reliability",
    "RepairedProbabilities": "_repaired",
    "Report": "_report",
    "RobustTest": "_robust",
    "ZeroSensitivity": "_zeros",
    "assess": "_assess_rows",
    "baseline_sensitivity": "_baseline",
    "boldness_recalibrate": "_boldness",
    "bootstrap_fits": "_refits",
    "calibration_posterior": "_posterior",
    "calibration_test": "_chosen_test",
    "class_tests": "_class_tests",
    "compare": "_compare",
    "ladder": "_ladder",
    "load_calibrator": "calibrators",
    "omnibus_test": "_omnibus",
    "profile_intervals": "_profile",
    "read_predictions": "_io",
    "reliability_curve": "_reliability",
    "report": "_report",
    "robust_test": "_robust",
    "zero_sensitivity": "_zeros",
}
_MODULES = (
    "calibrators",
    "datasets",
    "exceptions",
    "metrics",
    "model_selection",
    "plot",
    "simulate",
)

__all__ = [
    "CALIBRATORS",
    "Assessment",
    "AutoCalibrator",
    "BaselineSensitivity",
    "BoldRecalibration",
    "BootstrapFits",
    "CalibrationPosterior",
    "CalibrationTest",
    "ClassTests",
    "Comparison",
    "Details",
    "Intervals",
    "Ladder",
    "MCLLOCalibrator",
    "MCLLOFit",
    "MCLLOMap",
    "OmnibusTest",
    "Predictions",
    "RecalibratedClassifierCV",
    "Recommendation",
    "ReliabilityCurve",
    "RepairedProbabilities",
    "Report",
    "RobustTest",
    "ZeroSensitivity",
    "__version__",
    "assess",
    "baseline_sensitivity",
    "boldness_recalibrate",
    "bootstrap_fits",
    "calibration_posterior",
    "calibration_test",
    "calibrators",
    "class_tests",
    "compare",
    "datasets",
    "exceptions",
    "ladder",
    "load_calibrator",
    "metrics",
    "model_selection",
    "omnibus_test",
    "plot",
    "profile_intervals",
    "read_predictions",
    "reliability_curve",
    "report",
    "robust_test",
    "simulate",
    "zero_sensitivity",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module 'mcllo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
