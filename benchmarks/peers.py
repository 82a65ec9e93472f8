"""Temperature, vector and matrix scaling beside those of other packages, where installed."""

import contextlib
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

from mcllo.calibrators import MatrixScaling, MCLLOCalibrator, TemperatureScaling, VectorScaling

Job = Callable[[], object]


class Given(ClassifierMixin, BaseEstimator):
    """A classifier whose features are its probabilities."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.n_features_in_ = X.shape[1]
        return self

    def predict_proba(self, X):
        return X

    def predict(self, X):
        return self.classes_[X.argmax(axis=1)]


def sklearn_temperature(probs: np.ndarray, y: np.ndarray) -> Job:
    """Return scikit-learn's one-parameter fit on the same rows."""
    model = FrozenEstimator(Given().fit(probs, y))
    return lambda: CalibratedClassifierCV(model, method="temperature").fit(probs, y)


def netcal_jobs(probs: np.ndarray, y: np.ndarray) -> dict[str, Job]:
    """Return netcal's fits (logistic calibration is its vector and matrix relative)."""
    with contextlib.suppress(ImportError):
        from netcal.scaling import LogisticCalibration
        from netcal.scaling import TemperatureScaling as NetcalTemperature

        return {
            "temperature: netcal": lambda: NetcalTemperature().fit(probs, y),
            "vector: netcal logistic": lambda: LogisticCalibration().fit(probs, y),
        }
    return {}


def probmetrics_jobs(probs: np.ndarray, y: np.ndarray) -> dict[str, Job]:
    """Return probmetrics' fits: temperature, structured vector and structured matrix scaling."""
    with contextlib.suppress(ImportError):
        from probmetrics.calibrators import get_calibrator

        return {
            "temperature: probmetrics": lambda: get_calibrator("ts-mix").fit(probs, y),
            "vector: probmetrics SVS": lambda: get_calibrator("svs").fit(probs, y),
            "matrix: probmetrics SMS": lambda: get_calibrator("sms").fit(probs, y),
        }
    return {}


def jobs(probs: np.ndarray, y: np.ndarray) -> dict[str, Job]:
    """Return all fits on the same rows, ours first in each family."""
    logits = np.log(probs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "MCLLO with standard errors": lambda: MCLLOCalibrator().fit(probs, y),
            "temperature: mcllo": lambda: TemperatureScaling().fit(probs, y),
            "temperature: scikit-learn": sklearn_temperature(probs, y),
            "vector: mcllo": lambda: VectorScaling().fit(logits, y),
            "matrix: mcllo": lambda: MatrixScaling().fit(logits, y),
            **netcal_jobs(probs, y),
            **probmetrics_jobs(probs, y),
        }
