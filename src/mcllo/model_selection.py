"""`RecalibratedClassifierCV`: any scikit-learn classifier followed by any calibrator.

A calibrator must not learn from predictions for rows its classifier was trained on. With folds
F_1 .. F_k of the rows:

===================  =============================================================================
``ensemble=True``    pair m is a classifier fitted on all rows but F_m, and a calibrator fitted on
                     its predictions for F_m; the answer is the mean of the pairs' probabilities
``ensemble=False``   each F_m is predicted by a classifier fitted on the other rows; one calibrator
                     is fitted on all these predictions, one classifier on all rows
`FrozenEstimator`    the classifier stays as it is; the calibrator is fitted on its predictions for
                     the rows given, which must not be those it was trained on
===================  =============================================================================

Columns are the classes of all labels. A class that a fold's classifier never saw has probability 0
there, which the calibrator treats by its zero rule; among logits it has the log of that floor.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, _safe_indexing, get_tags, indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, column_or_1d, has_fit_parameter

from ._ground.results import Floats
from ._input.probabilities import clean_probs
from ._input.weights import clean_weight
from ._input.zeros import DEFAULT_CLIP
from .calibrators import MCLLOCalibrator
from .exceptions import InputError, MclloWarning

__all__ = ["FittedPair", "RecalibratedClassifierCV"]

Array = NDArray[Any]
Fold = tuple[NDArray[np.intp], NDArray[np.intp]]


@dataclass(frozen=True, eq=False)
class FittedPair:
    """A fitted classifier and the calibrator fitted on its predictions for other rows.

    Attributes
    ----------
    estimator : classifier
        The fitted classifier.
    calibrator : calibrator
        The fitted calibrator.
    classes : ndarray
        Labels in column order.
    """

    estimator: Any
    calibrator: Any
    classes: Array

    def predict_proba(self, X: Any) -> Floats:
        """Return recalibrated probabilities, columns in the order of `classes`."""
        scores = scores_of(self.estimator, X, self.classes, _input(self.calibrator))
        return self.calibrator.predict_proba(scores)


class RecalibratedClassifierCV(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier and the recalibration of its probabilities, fitted on different rows.

    Parameters
    ----------
    estimator : classifier
        Any scikit-learn classifier with ``predict_proba``; for a calibrator that reads logits,
        ``decision_function`` is used where it has a column per class, else the log probabilities.
        A fitted classifier wrapped in `sklearn.frozen.FrozenEstimator` is not fitted again: the
        calibrator is fitted on its predictions for the rows given to `fit`, so give rows that the
        classifier was not trained on.
    calibrator : calibrator, optional
        One of `mcllo.CALIBRATORS`, not fitted; its `classes` is set to `classes_`. Default:
        ``MCLLOCalibrator()``. To search over its parameters, give it.
    cv : int, splitter or iterable of (train, test)
        The folds, as in `sklearn.model_selection`; an integer makes stratified folds.
    ensemble : bool or "auto"
        True: the mean over a pair for each fold. False: one calibrator on the predictions of all
        folds, one classifier on all rows. "auto": False for a frozen classifier, which then needs
        no folds, else True.
    n_jobs : int, optional
        How many folds to fit at once.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels in column order: those in `y`, sorted; those of a frozen classifier.
    calibrated_classifiers_ : list of FittedPair
        A classifier with its calibrator for each fold, or the only one.
    n_features_in_, feature_names_in_
        Those of the first classifier, where it has them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from mcllo.calibrators import TemperatureScaling
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = LogisticRegression(max_iter=1000)
    >>> model = RecalibratedClassifierCV(classifier, TemperatureScaling(), cv=3).fit(X, y)
    >>> len(model.calibrated_classifiers_)
    3
    >>> model.predict_proba(X).shape
    (150, 3)
    """

    def __init__(
        self,
        estimator: Any,
        calibrator: Any = None,
        *,
        cv: Any = 5,
        ensemble: bool | Literal["auto"] = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv
        self.ensemble = ensemble
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RecalibratedClassifierCV:
        """Fit classifiers and calibrators.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)
            Whatever `estimator` takes.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            Row i counts as ``sample_weight[i]`` rows, for the classifier (where its ``fit``, or
            that of the last step of a pipeline, takes weights) and for the calibrator.
        """
        if y is None:
            name = type(self).__name__
            raise InputError(f"{name} requires y to be passed, but the target y is None.")
        X, y = indexable(X, y)
        check_classification_targets(y)
        labels = column_or_1d(y, warn=True)
        rows = _Rows(X, labels, clean_weight(sample_weight, len(labels)))
        if not isinstance(self.ensemble, bool) and self.ensemble != "auto":
            raise InputError(f"ensemble must be True, False or 'auto'; got {self.ensemble!r}.")
        frozen = isinstance(self.estimator, FrozenEstimator)
        if frozen:
            check_is_fitted(self.estimator)
        classes = np.asarray(self.estimator.classes_) if frozen else np.unique(labels)
        if len(classes) < 2:
            found = classes.tolist()
            raise InputError(f"y must hold at least two classes; got {len(found)} class: {found}.")
        if rows.weight is not None and not frozen and _weight_argument(self.estimator) is None:
            name = type(self.estimator).__name__
            message = f"{name} takes no sample_weight, so only the calibrator uses the weights."
            warnings.warn(message, MclloWarning, stacklevel=2)
        recipe = _Recipe(self.estimator, _prepared(self.calibrator, classes), classes)
        if frozen and self.ensemble is not True:
            pairs = [recipe.pair(rows, rows)]
        else:
            folds = list(check_cv(self.cv, labels, classifier=True).split(X, labels))
            if self.ensemble:
                pairs = self._each_fold(recipe.pair, rows, folds)
            else:
                pairs = [self._cross_predicted(recipe, rows, folds)]
        self.classes_ = classes
        self.calibrated_classifiers_ = pairs
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(pairs[0].estimator, name):
                setattr(self, name, getattr(pairs[0].estimator, name))
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return recalibrated probabilities, columns in the order of `classes_`."""
        check_is_fitted(self)
        each = [pair.predict_proba(X) for pair in self.calibrated_classifiers_]
        return np.mean(each, axis=0)

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        if inner.classifier_tags is not None:
            tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
        return tags

    def _each_fold(self, do: Any, rows: _Rows, folds: list[Fold]) -> list[Any]:
        """Return ``do(training rows, held-out rows)`` of each fold."""
        jobs = (delayed(do)(rows.take(train), rows.take(test)) for train, test in folds)
        return list(Parallel(n_jobs=self.n_jobs)(jobs))

    def _cross_predicted(self, recipe: _Recipe, rows: _Rows, folds: list[Fold]) -> FittedPair:
        """Return a classifier of all rows and a calibrator of all out-of-fold predictions."""
        held_out = np.concatenate([test for _, test in folds])
        times = np.bincount(held_out, minlength=len(rows.y))
        if (times != 1).any():
            row = int(np.argmax(times != 1))
            raise InputError(
                "cv must hold out each row exactly once when ensemble=False; "
                f"row {row} is held out {times[row]} times. Use ensemble=True or another cv.",
                row=row,
            )
        scores = np.concatenate(self._each_fold(recipe.scores, rows, folds))
        calibrator = _fitted(recipe.calibrator, scores, rows.take(held_out))
        return FittedPair(_fitted(recipe.estimator, rows.X, rows), calibrator, recipe.classes)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Features, labels and weights, to be indexed together."""

    X: Any
    y: Array
    weight: Floats | None

    def take(self, index: NDArray[np.intp]) -> _Rows:
        weight = None if self.weight is None else self.weight[index]
        return _Rows(_safe_indexing(self.X, index), self.y[index], weight)


@dataclass(frozen=True, eq=False)
class _Recipe:
    """How to fit a pair; the classifier and the calibrator are cloned, never changed."""

    estimator: Any
    calibrator: Any
    classes: Array

    def pair(self, train: _Rows, held_out: _Rows) -> FittedPair:
        """Fit a classifier on some rows and a calibrator on its predictions for others."""
        classifier = _fitted(self.estimator, train.X, train)
        scores = scores_of(classifier, held_out.X, self.classes, _input(self.calibrator))
        return FittedPair(classifier, _fitted(self.calibrator, scores, held_out), self.classes)

    def scores(self, train: _Rows, held_out: _Rows) -> Array:
        """Return the scores of held-out rows by a classifier fitted on others."""
        classifier = _fitted(self.estimator, train.X, train)
        return scores_of(classifier, held_out.X, self.classes, _input(self.calibrator))


def scores_of(classifier: Any, X: Any, classes: Array, kind: str) -> Array:
    """Return what a calibrator reads: probabilities or logits, a column for each of `classes`."""
    if kind == "logits" and hasattr(classifier, "decision_function"):
        logits = np.asarray(classifier.decision_function(X))
        if logits.ndim == 2 and logits.shape[1] == len(getattr(classifier, "classes_", classes)):
            floor = np.logaddexp.reduce(logits, axis=1) + np.log(DEFAULT_CLIP)
            return _align(logits, classifier, classes, floor)
    if not hasattr(classifier, "predict_proba"):
        name = type(classifier).__name__
        remedy = "has none. Use another, or a calibrator that reads logits: VectorScaling()."
        if kind == "logits":
            remedy = (
                "has neither that nor a decision_function with a column per class. Use another."
            )
        raise InputError(f"estimator must be a classifier with predict_proba; {name} {remedy}")
    probs = _align(np.asarray(classifier.predict_proba(X)), classifier, classes, 0.0)
    return np.log(clean_probs(probs).probs) if kind == "logits" else probs


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


def _fitted(model: Any, X: Any, rows: _Rows) -> Any:
    """Return a clone, fitted with weights where there are any and `model` takes them."""
    name = _weight_argument(model)
    weights = {} if rows.weight is None or name is None else {name: rows.weight}
    return clone(model).fit(X, rows.y, **weights)


def _weight_argument(model: Any) -> str | None:
    """Return the name under which ``model.fit`` takes sample weights, None when it does not."""
    if has_fit_parameter(model, "sample_weight"):
        return "sample_weight"
    if isinstance(model, Pipeline) and has_fit_parameter(model.steps[-1][1], "sample_weight"):
        return f"{model.steps[-1][0]}__sample_weight"
    return None


def _input(calibrator: Any) -> str:
    """Return what a calibrator reads; one of another package reads probabilities."""
    return str(getattr(calibrator, "input", "probs"))


def _prepared(calibrator: Any, classes: Array) -> Any:
    """Return a calibrator of one's own that knows the columns' classes."""
    if calibrator is None:
        return MCLLOCalibrator(classes=classes.tolist())
    if isinstance(calibrator, type) or not hasattr(calibrator, "predict_proba"):
        raise InputError(
            f"calibrator must be a calibrator such as mcllo.MCLLOCalibrator(); got {calibrator!r}."
        )
    own = clone(calibrator)
    if "classes" in own.get_params(deep=False):
        own.set_params(classes=classes.tolist())
    return own
