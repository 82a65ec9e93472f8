"""What a calibrator reads of a classifier's rows: a table of probabilities or of logits.

With d for what ``decision_function`` returns:

=====================  ===========================================================================
calibrator of probs    ``predict_proba``; where there is none, ``logits=d``, and with two classes
                       ``logits = (log s(-d), log s(d))`` with ``s(d) = 1 / (1 + exp(-d))``, so that
                       MCLLO is Platt's logistic regression on d
calibrator of logits   d with a column for each class; else the logarithms of ``predict_proba``, or
                       of ``s``
=====================  ===========================================================================

Columns are the classes of all labels. A class that the classifier never saw has probability 0,
which the calibrator treats by clipping; among logits it has the log of that bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from .._utils.results import Floats
from .._utils.statements import suppress_warnings
from .._validation.clipping import DEFAULT_CLIP
from .._validation.probabilities import clean_logits, clean_probs
from ..exceptions import InputError, LabelShiftWarning
from ._choice import is_ours, reads

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class ClassifierScores:
    """What a calibrator reads of some rows: a table of "probs" or of "logits"."""

    kind: str
    table: Array

    @staticmethod
    def join(parts: list[ClassifierScores]) -> ClassifierScores:
        """Return the rows of all parts in their order."""
        return ClassifierScores(parts[0].kind, np.concatenate([part.table for part in parts]))

    def given_to(self, calibrator: Any) -> dict[str, Array]:
        """Return the arguments; a calibrator of another package gets probabilities as X."""
        if self.kind == "logits" and is_ours(calibrator):
            return {"logits": self.table}
        if self.kind == "logits" and reads(calibrator) == "probs":
            return {"X": clean_logits(self.table).probs}
        return {"X": self.table}

    def predicted(self, calibrator: Any) -> Floats:
        """Return what a fitted calibrator makes of them.

        A classifier is surer of rows it was fitted to: other shares there are no shift of labels.
        """
        with suppress_warnings(LabelShiftWarning):
            return calibrator.predict_proba(**self.given_to(calibrator))


def classifier_scores(classifier: Any, X: Any, classes: Array, calibrator: Any) -> ClassifierScores:
    """Return what a calibrator reads of these rows, a column for each of `classes`."""
    kind, known = reads(calibrator), getattr(classifier, "classes_", classes)
    probable = hasattr(classifier, "predict_proba")
    if hasattr(classifier, "decision_function") and (kind == "logits" or not probable):
        values = np.asarray(classifier.decision_function(X))
        if values.ndim == 2 and values.shape[1] == len(known) and not _of_pairs(classifier):
            floor = np.logaddexp.reduce(values, axis=1) + np.log(DEFAULT_CLIP)
            return ClassifierScores("logits", _align(values, classifier, classes, floor))
        if len(known) == 2 and values.size == len(values) and not probable:
            d = values.reshape(-1)
            logs = -np.logaddexp(0.0, np.column_stack([d, -d]))
            return ClassifierScores(
                "logits", _align(logs, classifier, classes, np.log(DEFAULT_CLIP))
            )
    if not probable:
        own = "has neither."
        if hasattr(classifier, "decision_function"):
            own = "has none. Use decision_function_shape='ovr', or another classifier."
        raise InputError(
            "estimator must be a classifier with predict_proba, or with a decision_function of a "
            f"column per class; {type(classifier).__name__} {own}"
        )
    probs = _align(np.asarray(classifier.predict_proba(X)), classifier, classes, 0.0)
    if kind == "logits":
        return ClassifierScores("logits", np.log(clean_probs(probs).probs))
    return ClassifierScores("probs", probs)


def _of_pairs(classifier: Any) -> bool:
    """Whether decisions are of pairs of classes: of three there are as many as classes."""
    while isinstance(classifier, (Pipeline, FrozenEstimator)):
        inner = isinstance(classifier, FrozenEstimator)
        classifier = classifier.estimator if inner else classifier.steps[-1][1]
    shape = getattr(classifier, "decision_function_shape", "ovr")
    return shape == "ovo" and len(classifier.classes_) > 2


def _align(scores: Array, classifier: Any, classes: Array, missing: Any) -> Array:
    """Return columns in the order of `classes`; what the classifier never saw is `missing`."""
    known = np.asarray(getattr(classifier, "classes_", classes)).tolist()
    if scores.ndim != 2 or scores.shape[1] != len(known):
        raise InputError(
            f"estimator must give a column for each of its {len(known)} classes; "
            f"{type(classifier).__name__} gives the shape {scores.shape}."
        )
    column = {label: k for k, label in enumerate(known)}
    aligned = np.empty((len(scores), len(classes)), dtype=scores.dtype)
    for k, label in enumerate(classes.tolist()):
        aligned[:, k] = scores[:, column[label]] if label in column else missing
    return aligned
