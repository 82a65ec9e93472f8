"""What a calibrator reads of a classifier: probabilities, logits, decisions."""

import numpy as np
import pytest
from scipy.special import log_expit, logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from mcllo.calibrators import MCLLOCalibrator, VectorScaling
from mcllo.exceptions import InputError
from mcllo.model_selection import classifier_scores

PROBS, LOGITS = MCLLOCalibrator(), VectorScaling()


def data(n=240, c=3, seed=0):
    """Return overlapping classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(c, size=n)
    return rng.normal(size=(n, 3)) + np.eye(max(c, 3))[y, :3], y


class Shares(ClassifierMixin, BaseEstimator):
    """Predict the shares of the classes in the training rows."""

    def fit(self, X, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.shares_ = counts / counts.sum()
        return self

    def predict_proba(self, X):
        return np.tile(self.shares_, (len(X), 1))


def test_columns_of_a_class_that_a_fold_lacks():
    # the training part of the first fold has classes a and c only, in shares 1/4 and 3/4
    y = np.array(["a", "c", "c", "c", "b", "b", "a", "c"])
    X = np.zeros((8, 1))
    shares = Shares().fit(X[:4], y[:4])
    classes = np.array(["a", "b", "c"])
    np.testing.assert_array_equal(
        classifier_scores(shares, X[:1], classes, PROBS).table, [[0.25, 0.0, 0.75]]
    )
    # rule of zeros: 1e-6 instead of 0, then divided by the sum
    floored = np.array([[0.25, 1e-6, 0.75]]) / (1 + 1e-6)
    np.testing.assert_allclose(
        classifier_scores(shares, X[:1], classes, LOGITS).table, np.log(floored)
    )


def test_logits_of_a_class_that_a_fold_lacks():
    X, y = data(c=4)
    kept = y != 2
    logistic = LogisticRegression().fit(X[kept], y[kept])
    logits = classifier_scores(logistic, X, np.arange(4), LOGITS).table
    np.testing.assert_array_equal(logits[:, [0, 1, 3]], logistic.decision_function(X))
    share = np.exp(logits[:, 2] - logsumexp(logits[:, [0, 1, 3]], axis=1))
    np.testing.assert_allclose(share, 1e-6)


@pytest.mark.parametrize("calibrator", [PROBS, LOGITS], ids=["probs", "logits"])
def test_decisions_of_several_classes_are_logits(calibrator):
    X, y = data()
    svm = LinearSVC().fit(X, y)
    found = classifier_scores(svm, X, np.arange(3), calibrator)
    assert found.kind == "logits"
    np.testing.assert_array_equal(found.table, svm.decision_function(X))


def test_one_decision_of_two_classes_is_a_log_odds():
    X, y = data(c=2)
    svm = LinearSVC().fit(X, y)
    d = svm.decision_function(X)
    found = classifier_scores(svm, X, np.arange(2), PROBS).table
    np.testing.assert_allclose(found, np.column_stack([log_expit(-d), log_expit(d)]))
    np.testing.assert_allclose(found[:, 1] - found[:, 0], d, rtol=1e-12)


def test_decisions_too_large_for_probabilities_keep_their_log_odds():
    X, y = data(c=2)
    hinge = SGDClassifier(random_state=0).fit(1e4 * X, y)
    d = hinge.decision_function(1e4 * X)
    assert abs(d).max() > 1e5  # of which a probability would be 0 or 1
    table = classifier_scores(hinge, 1e4 * X, np.arange(2), PROBS).table
    np.testing.assert_allclose(table[:, 1] - table[:, 0], d, rtol=1e-12)


def test_decisions_of_pairs_are_refused_where_three_pairs_look_like_three_classes():
    X, y = data()
    svm = SVC(decision_function_shape="ovo")
    for model in (svm, make_pipeline(StandardScaler(), svm)):
        model.fit(X, y)
        assert model.decision_function(X).shape == (240, 3)
        with pytest.raises(InputError, match="Use decision_function_shape='ovr'"):
            classifier_scores(model, X, np.arange(3), PROBS)
