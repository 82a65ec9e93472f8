"""mcllo: are these class probabilities calibrated, which classes are wrong, and how are they
recalibrated?

The public names, nothing else; each loads its module when first used.
"""

from __future__ import annotations

from importlib import import_module

from ._version import __version__ as __version__

_MODULES = (
    *("calibrators", "datasets", "exceptions", "export", "metrics"),
    *("model_selection", "plot", "reproduce", "simulate"),
)
_NAMES = {
    "_utils.statements": "Statement",
    "_validation.predictions": "Predictions",
    "_validation.top_logprobs": "choices_from_top_logprobs",
    "_apps.io.read": "read_predictions",
    "_apps.io.choice_files": "read_choices",
    "_fit.fit": "Intervals MCLLOFit",
    "_fit.choice_fit": "ChoiceFit",
    "_fit.profile": "profile_intervals",
    "_fit.map": "MCLLOMap RecalibratedProbabilities",
    "metrics._reliability": "ReliabilityCurve reliability_curve",
    "metrics._smooth": "SmoothCurve smooth_curve",
    "_inference.likelihood_tests": "CalibrationTest",
    "_inference.calibration_test": "calibration_test",
    "_inference.robust": "RobustTest robust_test",
    "_inference.consistency": "IsotonicCurve isotonic_curve",
    "_inference.omnibus": "OmnibusTest omnibus_test",
    "_inference.effect_size": "EffectSize",
    "_inference.posterior": "CalibrationPosterior calibration_posterior "
    "BoldRecalibration boldness_recalibrate",
    "_inference.bootstrap": "BootstrapFits bootstrap_fits",
    "_diagnostics.nested_models": "NestedModels nested_models",
    "_diagnostics.class_tests": "ClassTests class_tests",
    "_diagnostics.attribution": "ClassAttribution",
    "_diagnostics.baseline_sensitivity": "BaselineSensitivity baseline_sensitivity",
    "_diagnostics.calibration_table": "CalibrationTable calibration_table",
    "_diagnostics.zero_sensitivity": "ZeroSensitivity zero_sensitivity",
    "_decisions.costs": "Costs",
    "_decisions.decide": "Decisions decide",
    "_decisions.classifier": "DecisionClassifier",
    "_decisions.abstention": "AbstentionCurve AbstentionThreshold abstention_curve "
    "abstention_threshold",
    "_decisions.decision_curve": "DecisionCurve decision_curve",
    "_decisions.decision_value": "DecisionValue decision_value",
    "_assessment.verdict": "Verdict",
    "_assessment.assessment": "Assessment",
    "_assessment.choice_assessment": "ChoiceAssessment assess_choices",
    "_assessment.subgroup_results": "Subgroups subgroups",
    "_assessment.details": "Details",
    "calibrators": "AutoCalibrator CALIBRATORS ChoiceCalibrator MCLLOCalibrator "
    "load_calibrator",
    "_monitor.monitor": "Monitor",
    "_monitor.status": "MonitorStatus",
    "_assessment.assess": "assess",
    "_comparison.compare": "compare",
    "_comparison.comparison": "Comparison",
    "_comparison.recommend": "Recommendation",
    "model_selection": "RecalibratedClassifierCV",
    "_apps.report": "ChoiceReport Report report",
}
"""Where each public name is at home, in the order of the rooms."""
_HOME = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = sorted([*_HOME, *_MODULES, "__version__"])

TYPE_CHECKING = False
"""As in `typing`, which takes longer to import than all the rest."""

if TYPE_CHECKING:
    from typing import Any

    from . import calibrators as calibrators
    from . import datasets as datasets
    from . import exceptions as exceptions
    from . import export as export
    from . import metrics as metrics
    from . import model_selection as model_selection
    from . import plot as plot
    from . import reproduce as reproduce
    from . import simulate as simulate
    from ._apps.io.choice_files import read_choices as read_choices
    from ._apps.io.read import read_predictions as read_predictions
    from ._apps.report import ChoiceReport as ChoiceReport
    from ._apps.report import Report as Report
    from ._apps.report import report as report
    from ._assessment.assess import assess as assess
    from ._assessment.assessment import Assessment as Assessment
    from ._assessment.choice_assessment import ChoiceAssessment as ChoiceAssessment
    from ._assessment.choice_assessment import assess_choices as assess_choices
    from ._assessment.details import Details as Details
    from ._assessment.subgroup_results import Subgroups as Subgroups
    from ._assessment.subgroup_results import subgroups as subgroups
    from ._assessment.verdict import Verdict as Verdict
    from ._comparison.compare import compare as compare
    from ._comparison.comparison import Comparison as Comparison
    from ._comparison.recommend import Recommendation as Recommendation
    from ._decisions.abstention import AbstentionCurve as AbstentionCurve
    from ._decisions.abstention import AbstentionThreshold as AbstentionThreshold
    from ._decisions.abstention import abstention_curve as abstention_curve
    from ._decisions.abstention import abstention_threshold as abstention_threshold
    from ._decisions.classifier import DecisionClassifier as DecisionClassifier
    from ._decisions.costs import Costs as Costs
    from ._decisions.decide import Decisions as Decisions
    from ._decisions.decide import decide as decide
    from ._decisions.decision_curve import DecisionCurve as DecisionCurve
    from ._decisions.decision_curve import decision_curve as decision_curve
    from ._decisions.decision_value import DecisionValue as DecisionValue
    from ._decisions.decision_value import decision_value as decision_value
    from ._diagnostics.attribution import ClassAttribution as ClassAttribution
    from ._diagnostics.baseline_sensitivity import (
        BaselineSensitivity as BaselineSensitivity,
    )
    from ._diagnostics.baseline_sensitivity import (
        baseline_sensitivity as baseline_sensitivity,
    )
    from ._diagnostics.calibration_table import CalibrationTable as CalibrationTable
    from ._diagnostics.calibration_table import calibration_table as calibration_table
    from ._diagnostics.class_tests import ClassTests as ClassTests
    from ._diagnostics.class_tests import class_tests as class_tests
    from ._diagnostics.nested_models import NestedModels as NestedModels
    from ._diagnostics.nested_models import nested_models as nested_models
    from ._diagnostics.zero_sensitivity import ZeroSensitivity as ZeroSensitivity
    from ._diagnostics.zero_sensitivity import zero_sensitivity as zero_sensitivity
    from ._fit.choice_fit import ChoiceFit as ChoiceFit
    from ._fit.fit import Intervals as Intervals
    from ._fit.fit import MCLLOFit as MCLLOFit
    from ._fit.map import MCLLOMap as MCLLOMap
    from ._fit.map import RecalibratedProbabilities as RecalibratedProbabilities
    from ._fit.profile import profile_intervals as profile_intervals
    from ._inference.bootstrap import BootstrapFits as BootstrapFits
    from ._inference.bootstrap import bootstrap_fits as bootstrap_fits
    from ._inference.calibration_test import calibration_test as calibration_test
    from ._inference.consistency import IsotonicCurve as IsotonicCurve
    from ._inference.consistency import isotonic_curve as isotonic_curve
    from ._inference.effect_size import EffectSize as EffectSize
    from ._inference.likelihood_tests import CalibrationTest as CalibrationTest
    from ._inference.omnibus import OmnibusTest as OmnibusTest
    from ._inference.omnibus import omnibus_test as omnibus_test
    from ._inference.posterior import BoldRecalibration as BoldRecalibration
    from ._inference.posterior import CalibrationPosterior as CalibrationPosterior
    from ._inference.posterior import boldness_recalibrate as boldness_recalibrate
    from ._inference.posterior import calibration_posterior as calibration_posterior
    from ._inference.robust import RobustTest as RobustTest
    from ._inference.robust import robust_test as robust_test
    from ._monitor.monitor import Monitor as Monitor
    from ._monitor.status import MonitorStatus as MonitorStatus
    from ._utils.statements import Statement as Statement
    from ._validation.predictions import Predictions as Predictions
    from ._validation.top_logprobs import (
        choices_from_top_logprobs as choices_from_top_logprobs,
    )
    from .calibrators import CALIBRATORS as CALIBRATORS
    from .calibrators import AutoCalibrator as AutoCalibrator
    from .calibrators import ChoiceCalibrator as ChoiceCalibrator
    from .calibrators import MCLLOCalibrator as MCLLOCalibrator
    from .calibrators import load_calibrator as load_calibrator
    from .metrics._reliability import ReliabilityCurve as ReliabilityCurve
    from .metrics._reliability import reliability_curve as reliability_curve
    from .metrics._smooth import SmoothCurve as SmoothCurve
    from .metrics._smooth import smooth_curve as smooth_curve
    from .model_selection import RecalibratedClassifierCV as RecalibratedClassifierCV


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module 'mcllo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
