"""`DecisionClassifier`: any scikit-learn classifier, whose predictions are the actions that pay."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._utils.results import Floats
from .._validation.labels import find_class
from ..calibrators._base import label_array
from ..exceptions import InputError
from .costs import Costs
from .decide import Decisions, decide


def _has_probabilities(classifier: Any) -> bool:
    return hasattr(
        getattr(classifier, "estimator_", classifier.estimator), "predict_proba"
    )


class DecisionClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that predicts the action of least expected cost.

    Parameters
    ----------
    estimator : classifier
        Any scikit-learn classifier with ``predict_proba``, such as a `RecalibratedClassifierCV`. A
        fitted one wrapped in `sklearn.frozen.FrozenEstimator` is not fitted again.
    costs : array-like, frame, mapping or Costs, optional
        What each action costs where each class is true, in any form of `Costs`; a matrix has its
        columns in the order of `classes_`. Default: every wrong answer costs 1.
    abstain : float, optional
        Cost of answering nothing: adds an action ``abstain``.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    costs_ : Costs
        The table of costs, its columns in the order of `classes_`.
    classes_ : ndarray of shape (n_classes,)
        Labels in column order; `predict` returns actions, which may be others.

    See Also
    --------
    decide : The same for probabilities that are there already.
    RecalibratedClassifierCV : Recalibrate first: the actions are best if probabilities are right.
    decision_value : What acting so costs on labelled rows.
    Costs : All forms that costs may have.

    Notes
    -----
    `score` is the mean realised cost with its sign changed, so that a grid search finds the least
    cost. scikit-learn's own thresholds (`sklearn.model_selection.FixedThresholdClassifier`) are for
    two classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> import mcllo
    >>> X, y = load_iris(return_X_y=True)
    >>> plain = LogisticRegression(max_iter=1000)
    >>> recalibrated = mcllo.RecalibratedClassifierCV(plain, "temperature", cv=3)
    >>> model = DecisionClassifier(recalibrated, costs={"miss": {2: 20}}, abstain=0.4).fit(X, y)
    >>> model.predict(X[[0, 133]])
    array([0, 'abstain'], dtype=object)
    """

    def __init__(
        self, estimator: Any = None, *, costs: Any = None, abstain: float | None = None
    ) -> None:
        self.estimator = estimator
        self.costs = costs
        self.abstain = abstain

    def fit(self, X: Any, y: Any, **fit_params: Any) -> DecisionClassifier:
        """Fit the classifier and read the costs.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)
            Whatever `estimator` takes.
        y : array-like of shape (n_samples,)
            Labels.
        **fit_params
            For the classifier's ``fit``.

        Returns
        -------
        DecisionClassifier
            Itself.
        """
        if self.estimator is None or not hasattr(self.estimator, "fit"):
            raise InputError(
                argument="estimator",
                rule="be a classifier of scikit-learn",
                value=self.estimator,
            )
        if not _has_probabilities(self):
            name = type(self.estimator).__name__
            raise InputError(
                f"estimator must have predict_proba; {name} has none.",
                remedy="Wrap it: RecalibratedClassifierCV(classifier).",
            )
        self.estimator_ = clone(self.estimator).fit(X, y, **fit_params)
        self.classes_ = np.asarray(self.estimator_.classes_)
        costs = {"default": 1} if self.costs is None else self.costs
        self.costs_ = Costs.from_table(
            costs, self.classes_.tolist(), abstain=self.abstain
        )
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Return the classifier's probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows as the classifier takes them.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        check_is_fitted(self)
        probs: Floats = np.asarray(self.estimator_.predict_proba(X))
        return probs

    def decide(self, X: Any) -> Decisions:
        """Return the best actions with their expected costs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows as the classifier takes them.

        Returns
        -------
        Decisions
            One action for each row.
        """
        check_is_fitted(self)
        return decide(self.predict_proba(X), self.costs_, classes=self.costs_.classes)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the action of least expected cost for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows as the classifier takes them.

        Returns
        -------
        ndarray of shape (n_samples,)
            Actions, by name.
        """
        check_is_fitted(self)
        codes = self.costs_.best_actions(self.predict_proba(X))
        return label_array(self.costs_.actions)[codes]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the mean realised cost, its sign changed: more is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows as the classifier takes them.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            Row i counts as ``sample_weight[i]`` rows.

        Returns
        -------
        float
            At most 0.
        """
        check_is_fitted(self)
        actions = self.costs_.best_actions(self.predict_proba(X))
        labels = np.asarray(y)
        place_of = {
            label: find_class(label, self.costs_.classes, "y")
            for label in dict.fromkeys(labels.tolist())
        }
        codes = np.array([place_of[label] for label in labels.tolist()], dtype=np.intp)
        realised = self.costs_.matrix[actions, codes]
        return -float(np.average(realised, weights=sample_weight))
