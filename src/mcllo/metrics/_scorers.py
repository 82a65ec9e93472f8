"""`SCORERS`: every metric that is one number, as scikit-learn calls it.

`sklearn.metrics.make_scorer` does not tell a metric which class is in which column. A fold that
lacks a rare class would then be refused, or worse: labels read in another order. These scorers
take the classes from the estimator. All else is scikit-learn's: names, signs, routing of
metadata, and one prediction for several scorers.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from sklearn.metrics import make_scorer

from . import _binned, _scores, _smooth, _unbinned

ERRORS: tuple[Callable[..., float], ...] = (
    _binned.adaptive_calibration_error,
    _binned.average_calibration_error,
    _scores.brier_score,
    _binned.classwise_calibration_error,
    _binned.debiased_calibration_error,
    _binned.debiased_squared_calibration_error,
    _binned.expected_calibration_error,
    _smooth.integrated_calibration_index,
    _unbinned.kernel_calibration_error,
    _scores.log_loss,
    _binned.maximum_calibration_error,
    _unbinned.smooth_calibration_error,
    _binned.tcal_squared_calibration_error,
)
"""Metrics of which less is better."""


class ProbabilityScorer(type(make_scorer(_scores.accuracy))):  # type: ignore[misc]
    """A scorer of `predict_proba` that knows the estimator's classes."""

    def _score(
        self, method_caller: Any, estimator: Any, X: Any, y_true: Any, **kwargs: Any
    ) -> float:
        classes = getattr(estimator, "classes_", None)
        if classes is not None:
            kwargs["classes"] = list(classes)
        return float(super()._score(method_caller, estimator, X, y_true, **kwargs))

    def set_score_request(self, **kwargs: Any) -> ProbabilityScorer:
        """Return a scorer that asks for metadata; that of `SCORERS` stays as it is."""
        own = copy.deepcopy(self)
        super(ProbabilityScorer, own).set_score_request(**kwargs)
        return own


def probability_scorer(
    metric: Callable[..., float], sign: int, **options: Any
) -> ProbabilityScorer:
    """Return the scorer of a metric; `options` are the metric's."""
    return ProbabilityScorer(metric, sign, options, "predict_proba")


def all_scorers() -> dict[str, ProbabilityScorer]:
    """Return the scorers by name; ``neg_`` where less is better, as in scikit-learn."""
    scorers = {"accuracy": probability_scorer(_scores.accuracy, 1)}
    for metric in ERRORS:
        scorers[f"neg_{metric.__name__}"] = probability_scorer(metric, -1)
    return scorers


SCORERS = all_scorers()
"""Scorers by name, for ``scoring=`` of scikit-learn."""
