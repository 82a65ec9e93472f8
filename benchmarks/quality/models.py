"""Scikit-learn models whose cross-validated predictions are recalibrated: some sharp, some soft."""

from collections.abc import Callable
from typing import Any

import numpy as np

FOLDS = 3
"""Each row is predicted by a model that was fitted to the other two thirds."""


def _scaled(model: Any) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), model)


def _logistic(C: float, steps: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return _scaled(LogisticRegression(C=C, max_iter=steps))


def _lda() -> Any:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    return LinearDiscriminantAnalysis()


def _qda() -> Any:
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

    return QuadraticDiscriminantAnalysis(reg_param=0.1)


def _bayes() -> Any:
    from sklearn.naive_bayes import GaussianNB

    return GaussianNB()


def _forest(trees: int, depth: int | None) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(trees, max_depth=depth, random_state=0)


def _boosting() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=60, random_state=0)


def _neighbours() -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    return _scaled(KNeighborsClassifier(15))


def _network() -> Any:
    from sklearn.neural_network import MLPClassifier

    return _scaled(MLPClassifier((64,), max_iter=60, random_state=0))


def _vectors() -> Any:
    """Return a support vector machine whose margins Platt scaling made into probabilities."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.svm import SVC

    return _scaled(CalibratedClassifierCV(SVC(), ensemble=False, cv=3))


MODELS: dict[str, tuple[str, Callable[[], Any]]] = {
    "lr": ("logistic regression", lambda: _logistic(1.0, 300)),
    "lrw": ("logistic regression, weak penalty", lambda: _logistic(100.0, 200)),
    "lda": ("linear discriminant analysis", _lda),
    "qda": ("quadratic discriminant analysis", _qda),
    "nb": ("naive Bayes", _bayes),
    "rf": ("forest of 100 trees", lambda: _forest(100, None)),
    "rfs": ("forest of 20 shallow trees", lambda: _forest(20, 6)),
    "hgb": ("gradient boosting", _boosting),
    "knn": ("15 nearest neighbours", _neighbours),
    "mlp": ("network with 64 hidden units", _network),
    "svc": ("support vectors with Platt scaling", _vectors),
}


def predict(model: str, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return out-of-fold probabilities, a column for each class."""
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    return cross_val_predict(MODELS[model][1](), X, y, cv=folds, method="predict_proba")
