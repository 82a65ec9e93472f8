"""mcllo: are these class probabilities calibrated, which classes are wrong, and what is the repair?

The public names, nothing else; each loads its module when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from . import calibrators, datasets, exceptions, metrics, model_selection, plot, simulate
    from ._assessment.assessment import Assessment
    from ._assessment.details import Details
    from ._diagnosis.baseline_sensitivity import BaselineSensitivity, baseline_sensitivity
    from ._diagnosis.class_tests import ClassTests, class_tests
    from ._diagnosis.ladder import Ladder, ladder
    from ._diagnosis.zero_sensitivity import ZeroSensitivity, zero_sensitivity
    from ._files.read import read_predictions
    from ._fit.fit import Intervals, MCLLOFit
    from ._fit.map import MCLLOMap
    from ._fit.profile import profile_intervals
    from ._fit.repaired import RepairedProbabilities
    from ._inference.boldness import BoldRecalibration, boldness_recalibrate
    from ._inference.bootstrap import BootstrapFits, bootstrap_fits
    from ._inference.calibration_test import calibration_test
    from ._inference.likelihood_tests import CalibrationTest
    from ._inference.omnibus import OmnibusTest, omnibus_test
    from ._inference.posterior import CalibrationPosterior, calibration_posterior
    from ._inference.robust import RobustTest, robust_test
    from ._input.predictions import Predictions
    from ._report import Report, report
    from ._workflows.assess import assess
    from ._workflows.compare import compare
    from ._workflows.comparison import Comparison
    from ._workflows.recommend import Recommendation
    from .calibrators import CALIBRATORS, AutoCalibrator, MCLLOCalibrator, load_calibrator
    from .metrics._reliability import ReliabilityCurve, reliability_curve
    from .model_selection import RecalibratedClassifierCV

_HOME = {
    "Assessment": "_assessment.assessment",
    "AutoCalibrator": "calibrators",
    "BaselineSensitivity": "_diagnosis.baseline_sensitivity",
    "BoldRecalibration": "_inference.boldness",
    "BootstrapFits": "_inference.bootstrap",
    "CALIBRATORS": "calibrators",
    "CalibrationPosterior": "_inference.posterior",
    "CalibrationTest": "_inference.likelihood_tests",
    "ClassTests": "_diagnosis.class_tests",
    "Comparison": "_workflows.comparison",
    "Details": "_assessment.details",
    "Intervals": "_fit.fit",
    "Ladder": "_diagnosis.ladder",
    "MCLLOCalibrator": "calibrators",
    "MCLLOFit": "_fit.fit",
    "MCLLOMap": "_fit.map",
    "OmnibusTest": "_inference.omnibus",
    "Predictions": "_input.predictions",
    "RecalibratedClassifierCV": "model_selection",
    "Recommendation": "_workflows.recommend",
    "ReliabilityCurve": "metrics._reliability",
    "RepairedProbabilities": "_fit.repaired",
    "Report": "_report",
    "RobustTest": "_inference.robust",
    "ZeroSensitivity": "_diagnosis.zero_sensitivity",
    "assess": "_workflows.assess",
    "baseline_sensitivity": "_diagnosis.baseline_sensitivity",
    "boldness_recalibrate": "_inference.boldness",
    "bootstrap_fits": "_inference.bootstrap",
    "calibration_posterior": "_inference.posterior",
    "calibration_test": "_inference.calibration_test",
    "class_tests": "_diagnosis.class_tests",
    "compare": "_workflows.compare",
    "ladder": "_diagnosis.ladder",
    "load_calibrator": "calibrators",
    "omnibus_test": "_inference.omnibus",
    "profile_intervals": "_fit.profile",
    "read_predictions": "_files.read",
    "reliability_curve": "metrics._reliability",
    "report": "_report",
    "robust_test": "_inference.robust",
    "zero_sensitivity": "_diagnosis.zero_sensitivity",
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
