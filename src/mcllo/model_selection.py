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

Metadata (weights, groups, other parameters of ``fit``) go where scikit-learn's routing sends them
when it is enabled. When it is not: ``groups`` to the folds, ``sample_weight`` to the classifier
(to a pipeline's last step) and to the calibrator, all else to the classifier.

What a calibrator reads of a classifier's rows is a table of probabilities or of logits. With d for
what ``decision_function`` returns:

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

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC
from sklearn.utils import Tags, _safe_indexing, get_tags, indexable
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import (
    _check_method_params,
    check_is_fitted,
    column_or_1d,
    has_fit_parameter,
)

from ._utils.results import Floats
from ._utils.statements import (
    catch_warnings,
    issue_each_once,
    suppress_warnings,
    warn,
    warn_once,
)
from ._validation.probabilities import DEFAULT_CLIP, clean_logits, clean_probs
from ._validation.weights import clean_weight
from .calibrators import CALIBRATORS
from .calibrators._choice import (
    Fold,
    check_folds,
    input_kind,
    is_mcllo_calibrator,
    make_calibrator,
)
from .exceptions import InputError, LabelShiftWarning, MclloWarning

__all__ = ["FittedPair", "RecalibratedClassifierCV"]

Array = NDArray[Any]
NO_PREFIT = (
    "cv must be folds; got 'prefit'. Wrap the fitted classifier instead: "
    "RecalibratedClassifierCV(FrozenEstimator(classifier)), from sklearn.frozen."
)


@dataclass(frozen=True, eq=False)
class ClassifierScores:
    """What a calibrator reads of some rows: a table of "probs" or of "logits"."""

    kind: str
    table: Array

    @staticmethod
    def join(parts: list[ClassifierScores]) -> ClassifierScores:
        """Return the rows of all parts in their order."""
        table = np.concatenate([part.table for part in parts])
        return ClassifierScores(parts[0].kind, table)

    def calibrator_arguments(self, calibrator: Any) -> dict[str, Array]:
        """Return the arguments; a calibrator of another package gets probabilities as X."""
        if self.kind == "probs":
            return {"X": self.table}
        if is_mcllo_calibrator(calibrator):
            return {"logits": self.table}
        if input_kind(calibrator) == "probs":
            return {"X": clean_logits(self.table).probs}
        return {"X": self.table}

    def predict_with(self, calibrator: Any) -> Floats:
        """Return what a fitted calibrator makes of them.

        A classifier is surer of rows it was fitted to: other shares there are no shift of labels.
        """
        with suppress_warnings(LabelShiftWarning):
            return calibrator.predict_proba(**self.calibrator_arguments(calibrator))


def classifier_scores(
    classifier: Any, X: Any, classes: Array, calibrator: Any
) -> ClassifierScores:
    """Return what a calibrator reads of these rows, a column for each of `classes`."""
    kind = input_kind(calibrator)
    has_probs = hasattr(classifier, "predict_proba")
    has_decisions = hasattr(classifier, "decision_function")
    if has_decisions and (kind == "logits" or not has_probs):
        logits = _decision_logits(classifier, X, classes, is_only_source=not has_probs)
        if logits is not None:
            return ClassifierScores("logits", logits)
    if not has_probs:
        own = "has neither."
        if has_decisions:
            own = "has none. Use decision_function_shape='ovr', or another classifier."
        raise InputError(
            "estimator must be a classifier with predict_proba, or with a decision_function of a "
            f"column per class; {type(classifier).__name__} {own}"
        )
    probs = np.asarray(classifier.predict_proba(X))
    probs = _align_columns(probs, classifier, classes, missing=0.0)
    if kind == "logits":
        return ClassifierScores("logits", np.log(clean_probs(probs).probs))
    return ClassifierScores("probs", probs)


def _decision_logits(
    classifier: Any, X: Any, classes: Array, is_only_source: bool
) -> Array | None:
    """Return logits by ``decision_function``; None where it has no column for each class.

    Of two classes it has one column, which is taken where there are no probabilities.
    """
    n_known = len(getattr(classifier, "classes_", classes))
    values = np.asarray(classifier.decision_function(X))
    has_columns = values.ndim == 2 and values.shape[1] == n_known
    if has_columns and not _is_one_vs_one(classifier):
        # A class that the classifier never saw has the least probability that clipping leaves.
        log_sum = np.logaddexp.reduce(values, axis=1)
        return _align_columns(
            values, classifier, classes, missing=log_sum + np.log(DEFAULT_CLIP)
        )
    if n_known == 2 and values.size == len(values) and is_only_source:
        d = values.reshape(-1)
        log_probs = -np.logaddexp(0.0, np.column_stack([d, -d]))
        return _align_columns(
            log_probs, classifier, classes, missing=np.log(DEFAULT_CLIP)
        )
    return None


def _is_one_vs_one(classifier: Any) -> bool:
    """Whether decisions are of pairs of classes: of three there are as many as classes."""
    while isinstance(classifier, (Pipeline, FrozenEstimator)):
        if isinstance(classifier, FrozenEstimator):
            classifier = classifier.estimator
        else:
            _, classifier = classifier.steps[-1]
    shape = getattr(classifier, "decision_function_shape", "ovr")
    return shape == "ovo" and len(classifier.classes_) > 2


def _align_columns(
    scores: Array, classifier: Any, classes: Array, missing: Any
) -> Array:
    """Return columns in the order of `classes`; what the classifier never saw is `missing`."""
    known = np.asarray(getattr(classifier, "classes_", classes)).tolist()
    if scores.ndim != 2 or scores.shape[1] != len(known):
        raise InputError(
            f"estimator must give a column for each of its {len(known)} classes; "
            f"{type(classifier).__name__} gives the shape {scores.shape}."
        )
    column_of_label = {label: k for k, label in enumerate(known)}
    aligned = np.empty((len(scores), len(classes)), dtype=scores.dtype)
    for k, label in enumerate(classes.tolist()):
        if label in column_of_label:
            aligned[:, k] = scores[:, column_of_label[label]]
        else:
            aligned[:, k] = missing
    return aligned


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

    See Also
    --------
    RecalibratedClassifierCV : Has them as ``calibrated_classifiers_``.
    mcllo.MCLLOCalibrator : One of the calibrators.
    mcllo.compare : Which calibrator to take.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RecalibratedClassifierCV(LogisticRegression(max_iter=1000), "temperature", cv=2)
    >>> model = model.fit(X, y)
    >>> pair = model.calibrated_classifiers_[0]
    >>> pair.predict_proba(X).shape
    (150, 3)
    """

    estimator: Any
    calibrator: Any
    classes: Array

    def predict_proba(self, X: Any) -> Floats:
        """Return recalibrated probabilities, columns in the order of `classes`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows as the classifier takes them.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to 1.
        """
        scores = classifier_scores(self.estimator, X, self.classes, self.calibrator)
        return scores.predict_with(self.calibrator)


class RecalibratedClassifierCV(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier and the recalibration of its probabilities, fitted on different rows.

    Parameters
    ----------
    estimator : classifier, optional
        Any scikit-learn classifier with ``predict_proba`` or ``decision_function``; for a
        calibrator that reads logits, the latter is used where it has a column per class. Default:
        ``LinearSVC(random_state=0)``, as in `sklearn.calibration.CalibratedClassifierCV`. A fitted
        classifier wrapped in `sklearn.frozen.FrozenEstimator` is not fitted again: the calibrator
        is fitted on its predictions for the rows given to `fit`, so give rows that the classifier
        was not trained on.
    calibrator : str or calibrator, optional
        A key of `mcllo.CALIBRATORS`, such as "auto", or a calibrator, not fitted; its `classes` is
        set to `classes_`. Default: "auto", for the best probabilities, also of few rows; "mcllo"
        is a map that can be read. To search over its parameters, give an object.
    cv : int, splitter or iterable of (train, test), optional
        The folds, as in `sklearn.model_selection`; an integer makes stratified folds.
    ensemble : bool or "auto"
        True: the mean over a pair for each fold. False: one calibrator on the predictions of all
        folds, one classifier on all rows. "auto": False for a frozen classifier, which then needs
        no folds, else True.
    n_jobs : int, optional
        How many folds to fit at once.
    method : str or calibrator, optional
        What scikit-learn calls `calibrator`, say ``method="isotonic"``: give one of the two.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels in column order: those in `y`, sorted; those of a frozen classifier.
    calibrated_classifiers_ : list of FittedPair
        A classifier with its calibrator for each fold, or the only one.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Those of the first classifier, where it has them.

    See Also
    --------
    mcllo.model_selection.FittedPair : A classifier with its calibrator.
    AutoCalibrator : The default calibrator.
    MCLLOCalibrator : One whose map can be read.
    compare : Which calibrator to take.
    CALIBRATORS : All of them by name.

    Notes
    -----
    The counterpart of `sklearn.calibration.CalibratedClassifierCV` with the calibrators of this
    package. The calibrator never sees predictions for rows that its classifier was trained on,
    which would be too sure.

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
        estimator: Any = None,
        calibrator: Any = None,
        *,
        cv: Any = 5,
        ensemble: bool | Literal["auto"] = "auto",
        n_jobs: int | None = None,
        method: Any = None,
    ) -> None:
        self.estimator = estimator
        self.calibrator = calibrator
        self.method = method
        self.cv = cv
        self.ensemble = ensemble
        self.n_jobs = n_jobs

    @warn_once()
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any
    ) -> RecalibratedClassifierCV:
        """Fit classifiers and calibrators.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)
            Whatever `estimator` takes.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            Row i counts as ``sample_weight[i]`` rows, for the calibrator and for the classifier
            (where its ``fit``, or that of the last step of a pipeline, takes weights; with
            metadata routing, where it asks for them).
        **fit_params
            ``groups`` for the folds; everything else for the classifier's ``fit``, by rows where
            it has as many. With metadata routing, whatever was asked for.
        """
        if y is None:
            name = type(self).__name__
            raise InputError(
                f"{name} requires y to be passed, but the target y is None."
            )
        X, y = indexable(X, y)
        check_classification_targets(y)
        labels = column_or_1d(y, warn=True)
        if not isinstance(self.ensemble, bool) and self.ensemble != "auto":
            raise InputError(
                f"ensemble must be True, False or 'auto'; got {self.ensemble!r}."
            )
        if isinstance(self.cv, str):
            cv = f"cv must be folds, as in sklearn.model_selection; got {self.cv!r}."
            raise InputError(NO_PREFIT if self.cv == "prefit" else cv, argument="cv")
        estimator = self._classifier_or_default()
        is_frozen = isinstance(estimator, FrozenEstimator)
        if is_frozen:
            check_is_fitted(estimator)
            classes = np.asarray(estimator.classes_)
        else:
            classes = np.unique(labels)
        if len(classes) < 2:
            found = classes.tolist()
            raise InputError(
                f"y must hold at least two classes; got {len(found)} class: {found}."
            )
        calibrator = make_calibrator(self._calibrator_or_default(), CALIBRATORS)
        if "classes" in calibrator.get_params(deep=False):
            calibrator.set_params(classes=classes.tolist())
        weight = clean_weight(sample_weight, len(labels))
        fit_arguments, split_arguments = self._route_fit_params(X, weight, fit_params)
        rows = _FitInputs(X, labels, weight, fit_arguments)
        recipe = _FitRecipe(estimator, calibrator, classes)
        recipe.warn_of_unused_weights(rows)

        if is_frozen and self.ensemble is not True:
            pairs = [recipe.fit_pair(rows, rows)]
        else:
            splitter = check_cv(self.cv, labels, classifier=True)
            folds = list(splitter.split(X, labels, **split_arguments))
            if self.ensemble:
                pairs = self._run_folds(recipe.fit_pair, rows, folds)
            else:
                pairs = [self._fit_on_cross_predictions(recipe, rows, folds)]

        self.classes_ = classes
        self.calibrated_classifiers_ = pairs
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(pairs[0].estimator, name):
                setattr(self, name, getattr(pairs[0].estimator, name))
            elif hasattr(self, name):  # of an earlier fit
                delattr(self, name)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return recalibrated probabilities, columns in the order of `classes_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows as the classifier takes them.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to 1.
        """
        check_is_fitted(self)
        probs = [pair.predict_proba(X) for pair in self.calibrated_classifiers_]
        return np.mean(probs, axis=0)

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows as the classifier takes them.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        most_probable = self.predict_proba(X).argmax(axis=1)
        return self.classes_[most_probable]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._classifier_or_default())
        tags.input_tags = inner.input_tags
        if inner.classifier_tags is not None:
            tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
        return tags

    def get_metadata_routing(self) -> MetadataRouter:
        """Return who is sent which metadata: the classifier's ``fit`` and the folds' ``split``.

        The weights that this object asks for are the calibrator's.
        """
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        to_split = MethodMapping().add(caller="fit", callee="split")
        router = MetadataRouter(owner=type(self).__name__)
        router.add_self_request(self)
        router.add(estimator=self._classifier_or_default(), method_mapping=to_fit)
        router.add(splitter=self.cv, method_mapping=to_split)
        return router

    def _calibrator_or_default(self) -> Any:
        """Return what was asked for, under either name."""
        if self.method is None:
            return "auto" if self.calibrator is None else self.calibrator
        if self.calibrator is not None:
            rule = "be left out where calibrator is given: it is scikit-learn's name for it"
            raise InputError(argument="method", rule=rule, value=self.method)
        return self.method

    def _classifier_or_default(self) -> Any:
        """Return the classifier; scikit-learn's own default where there is none."""
        if self.estimator is not None:
            return self.estimator
        default = LinearSVC(random_state=0)
        if _is_routing_enabled():
            default.set_fit_request(sample_weight=True)
        return default

    def _route_fit_params(
        self, X: Any, weight: Floats | None, fit_params: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what goes to the classifier's ``fit`` and what to the folds' ``split``."""
        if _is_routing_enabled():
            weights = {} if weight is None else {"sample_weight": weight}
            routed = process_routing(self, "fit", **weights, **fit_params)
            to_fit = dict(routed.estimator.fit)
            to_split = dict(routed.splitter.split)
        else:
            to_fit = dict(fit_params)
            to_split = {}
            if "groups" in to_fit:
                to_split["groups"] = to_fit.pop("groups")
            weight_argument = _weight_argument(self._classifier_or_default())
            if weight is not None and weight_argument is not None:
                to_fit[weight_argument] = weight
        return _check_method_params(X, to_fit), to_split

    def _run_folds(self, job: Any, rows: _FitInputs, folds: list[Fold]) -> list[Any]:
        """Return ``job(training rows, held-out rows)`` of each fold."""
        # A generator: rows are copied for one fold after the other, as workers become free.
        jobs = (
            delayed(_call_and_catch_warnings)(job, rows.take(train), rows.take(test))
            for train, test in folds
        )
        results = []
        warnings: list[MclloWarning] = []
        for result, warnings_of_fold in Parallel(n_jobs=self.n_jobs)(jobs):
            results.append(result)
            warnings += warnings_of_fold
        issue_each_once(warnings)
        return results

    def _fit_on_cross_predictions(
        self, recipe: _FitRecipe, rows: _FitInputs, folds: list[Fold]
    ) -> FittedPair:
        """Return a classifier of all rows and a calibrator of all out-of-fold predictions."""
        remedy = "Use ensemble=True or another cv."
        folds = check_folds(folds, len(rows.y), " when ensemble=False", remedy)
        scores_of_folds = self._run_folds(recipe.held_out_scores, rows, folds)
        held_out = rows.take(np.concatenate([test for _, test in folds]))
        calibrator = recipe.fit_calibrator(
            ClassifierScores.join(scores_of_folds), held_out
        )
        classifier = recipe.fit_classifier(rows)
        return FittedPair(classifier, calibrator, recipe.classes)


@dataclass(frozen=True, eq=False)
class _FitInputs:
    """Features, labels, weights and what else the classifier is given, to be indexed together."""

    X: Any
    y: Array
    weight: Floats | None
    given: dict[str, Any] = field(default_factory=dict)

    def take(self, index: NDArray[np.intp]) -> _FitInputs:
        weight = None if self.weight is None else self.weight[index]
        given = _check_method_params(self.X, self.given, indices=index)
        return _FitInputs(_safe_indexing(self.X, index), self.y[index], weight, given)


@dataclass(frozen=True, eq=False)
class _FitRecipe:
    """How to fit a pair; the classifier and the calibrator are cloned, never changed."""

    estimator: Any
    calibrator: Any
    classes: Array

    def fit_classifier(self, rows: _FitInputs) -> Any:
        """Return a classifier fitted on these rows."""
        return clone(self.estimator).fit(rows.X, rows.y, **rows.given)

    def fit_calibrator(self, scores: ClassifierScores, rows: _FitInputs) -> Any:
        """Return a calibrator fitted on the scores of these rows."""
        weights = {}
        if rows.weight is not None and _takes_weights(self.calibrator):
            weights["sample_weight"] = rows.weight
        table = scores.calibrator_arguments(self.calibrator)
        return clone(self.calibrator).fit(**table, y=rows.y, **weights)

    def fit_pair(self, train: _FitInputs, held_out: _FitInputs) -> FittedPair:
        """Fit a classifier on some rows and a calibrator on its predictions for others."""
        classifier = self.fit_classifier(train)
        scores = classifier_scores(
            classifier, held_out.X, self.classes, self.calibrator
        )
        return FittedPair(
            classifier, self.fit_calibrator(scores, held_out), self.classes
        )

    def held_out_scores(
        self, train: _FitInputs, held_out: _FitInputs
    ) -> ClassifierScores:
        """Return the scores of held-out rows by a classifier fitted on others."""
        return classifier_scores(
            self.fit_classifier(train), held_out.X, self.classes, self.calibrator
        )

    def warn_of_unused_weights(self, rows: _FitInputs) -> None:
        """Say who does without the weights that were given."""
        if rows.weight is None:
            return
        told = "takes no sample_weight, so only"
        is_fitted_here = not isinstance(self.estimator, FrozenEstimator)
        takes_none = (
            not _is_routing_enabled() and _weight_argument(self.estimator) is None
        )
        if is_fitted_here and takes_none:
            name = type(self.estimator).__name__
            warn(MclloWarning(f"{name} {told} the calibrator uses the weights."))
        if not _takes_weights(self.calibrator):
            name = type(self.calibrator).__name__
            warn(MclloWarning(f"{name} {told} the classifier uses the weights."))


def _call_and_catch_warnings(job: Any, *args: Any) -> tuple[Any, list[MclloWarning]]:
    """Return what a job returns and what it warned of, in whichever process it ran."""
    with catch_warnings() as caught:
        result = job(*args)
    return result, caught


def _is_routing_enabled() -> bool:
    """Whether scikit-learn routes metadata."""
    return bool(get_config()["enable_metadata_routing"])


def _weight_argument(model: Any) -> str | None:
    """Return the name under which ``model.fit`` takes sample weights, None when it does not."""
    if has_fit_parameter(model, "sample_weight"):
        return "sample_weight"
    if isinstance(model, Pipeline):
        name, last_step = model.steps[-1]
        if has_fit_parameter(last_step, "sample_weight"):
            return f"{name}__sample_weight"
    return None


def _takes_weights(calibrator: Any) -> bool:
    """Whether a calibrator can be given weights: a searched one, when they are routed to it."""
    if has_fit_parameter(calibrator, "sample_weight"):
        return True
    if not _is_routing_enabled() or not hasattr(calibrator, "get_metadata_routing"):
        return False
    return bool(calibrator.get_metadata_routing().consumes("fit", ["sample_weight"]))
