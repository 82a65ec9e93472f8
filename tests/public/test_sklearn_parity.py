"""What works with scikit-learn's `CalibratedClassifierCV` works with `RecalibratedClassifierCV`.

Each test types the user's own line twice, once for each.
"""

from itertools import product

import numpy as np
import pytest
from inputs import case
from sklearn import config_context
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import get_scorer, log_loss
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    StratifiedKFold,
    cross_validate,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

from mcllo import CALIBRATORS, MCLLOCalibrator, RecalibratedClassifierCV
from mcllo.calibrators import MatrixScaling
from mcllo.exceptions import InputError, MclloWarning

BOTH = [CalibratedClassifierCV, RecalibratedClassifierCV]
both = pytest.mark.parametrize("CV", BOTH, ids=["sklearn", "mcllo"])
pytestmark = pytest.mark.usefixtures("one_blas_thread")


def sample(n=300, c=3, seed=0):
    """Return features, labels, weights and groups of three rows."""
    rng = np.random.default_rng(seed)
    y = rng.integers(c, size=n)
    X = rng.normal(size=(n, 4)) + np.eye(4)[y]
    return X, y, rng.integers(1, 4, size=n).astype(float), np.arange(n) // 3


def are_probabilities(rows, n, c):
    assert rows.shape == (n, c)
    assert rows.min() >= 0.0
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=0, atol=1e-12)


# ------------------------------------------------------------------------------- metadata routing


def weighted_pipeline():
    """Return a pipeline whose steps ask for weights."""
    scaler = StandardScaler().set_fit_request(sample_weight=True)
    return make_pipeline(scaler, GaussianNB().set_fit_request(sample_weight=True))


@both
@pytest.mark.parametrize("ensemble", [True, False])
def test_routed_weights_reach_the_steps_of_a_pipeline(CV, ensemble):
    X, y, w, _ = sample()
    with config_context(enable_metadata_routing=True):
        model = CV(weighted_pipeline(), cv=3, ensemble=ensemble).fit(
            X, y, sample_weight=w
        )
        are_probabilities(model.predict_proba(X), 300, 3)
    inner = model.calibrated_classifiers_[-1].estimator
    train = list(StratifiedKFold(3).split(X, y))[-1][0] if ensemble else np.arange(300)
    alone = StandardScaler().fit(X[train], sample_weight=w[train])
    np.testing.assert_allclose(inner[0].mean_, alone.mean_, rtol=1e-12)
    assert not np.allclose(alone.mean_, X[train].mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(
        inner[1].class_prior_ * w[train].sum(), np.bincount(y[train], w[train])
    )


def test_routed_weights_reach_the_calibrator():
    X, y, w, _ = sample()
    frozen = FrozenEstimator(GaussianNB().fit(X[:150], y[:150]))
    with config_context(enable_metadata_routing=True):
        model = RecalibratedClassifierCV(frozen, "mcllo")
        model.fit(X[150:], y[150:], sample_weight=w[150:])
    by_hand = MCLLOCalibrator().fit(frozen.predict_proba(X[150:]), y[150:], w[150:])
    found = model.calibrated_classifiers_[0].calibrator.fit_.theta
    np.testing.assert_allclose(found, by_hand.fit_.theta, rtol=1e-12)


@both
def test_metadata_that_nobody_asked_for_is_refused(CV):
    X, y, w, _ = sample()
    with (
        config_context(enable_metadata_routing=True),
        pytest.raises(ValueError, match="sample_weight"),
    ):
        CV(make_pipeline(StandardScaler(), GaussianNB()), cv=3).fit(
            X, y, sample_weight=w
        )


@both
def test_routed_through_cross_validation_and_search(CV):
    X, y, w, g = sample()
    with config_context(enable_metadata_routing=True):
        inner = GaussianNB().set_fit_request(sample_weight=True)
        model = CV(inner, cv=3).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=False)
        scores = cross_validate(
            model, X, y, params={"sample_weight": w}, cv=3, error_score="raise"
        )
        assert scores["test_score"].min() > 0.5
        grouped = CV(inner, cv=GroupKFold(3)).set_fit_request(sample_weight=True)
        grouped.set_score_request(sample_weight=False)
        # scikit-learn's forgets the groups when ensemble=False
        grid = {"ensemble": [True] if CV is CalibratedClassifierCV else [True, False]}
        search = GridSearchCV(grouped, grid, cv=3, error_score="raise")
        search.fit(X, y, sample_weight=w, groups=g)
        are_probabilities(search.predict_proba(X), 300, 3)


def split_by_group(model, X, y, g):
    """Whether no pair was calibrated on a group that its classifier saw."""
    folds = list(GroupKFold(3).split(X, y, g))
    return [len(set(g[train]) & set(g[test])) for train, test in folds] == [
        0,
        0,
        0,
    ] and all(
        np.allclose(pair.estimator.theta_, GaussianNB().fit(X[train], y[train]).theta_)
        for pair, (train, _) in zip(model.calibrated_classifiers_, folds, strict=True)
    )


@both
def test_groups_with_routing(CV):
    X, y, _, g = sample()
    with config_context(enable_metadata_routing=True):
        model = CV(GaussianNB(), cv=GroupKFold(3)).fit(X, y, groups=g)
    assert split_by_group(model, X, y, g)


def test_groups_without_routing():
    # scikit-learn gives them to the classifier, which refuses them; here they can mean one thing
    X, y, _, g = sample()
    model = RecalibratedClassifierCV(GaussianNB(), cv=GroupKFold(3)).fit(X, y, groups=g)
    assert split_by_group(model, X, y, g)
    with pytest.raises((TypeError, ValueError), match="groups"):
        CalibratedClassifierCV(GaussianNB(), cv=GroupKFold(3)).fit(X, y, groups=g)
    with pytest.raises(ValueError, match="groups"):
        RecalibratedClassifierCV(GaussianNB(), cv=GroupKFold(3)).fit(X, y)


@both
@pytest.mark.parametrize("ensemble", [True, False])
def test_other_parameters_of_fit_are_passed_on_and_cut_into_folds(CV, ensemble):
    X, y, w, _ = sample()
    pipeline = make_pipeline(StandardScaler(), GaussianNB())
    # weights under the step's name go to the classifier alone, with the rows of each fold
    model = CV(pipeline, cv=3, ensemble=ensemble).fit(X, y, gaussiannb__sample_weight=w)
    train = list(StratifiedKFold(3).split(X, y))[-1][0] if ensemble else np.arange(300)
    inner = model.calibrated_classifiers_[-1].estimator
    np.testing.assert_allclose(
        inner[1].class_prior_ * w[train].sum(), np.bincount(y[train], w[train])
    )
    start = np.zeros((3, 4))  # no row's: passed on whole
    sgd = CV(SGDClassifier("log_loss", random_state=0), cv=3, ensemble=ensemble)
    are_probabilities(sgd.fit(X, y, coef_init=start).predict_proba(X), 300, 3)
    with pytest.raises(TypeError, match="colour"):
        CV(GaussianNB(), cv=3).fit(X, y, colour="red")


def test_a_searched_calibrator_and_weights():
    X, y, w, _ = sample()
    search = GridSearchCV(
        MCLLOCalibrator(), {"penalty": [0.1, 10.0]}, scoring="neg_log_loss"
    )
    with pytest.warns(
        MclloWarning, match="GridSearchCV takes no sample_weight"
    ) as caught:
        RecalibratedClassifierCV(GaussianNB(), search, cv=3).fit(X, y, sample_weight=w)
    assert caught[0].filename == __file__
    with config_context(enable_metadata_routing=True):
        asks = MCLLOCalibrator().set_fit_request(sample_weight=True)
        scorer = get_scorer("neg_log_loss").set_score_request(sample_weight=False)
        search = GridSearchCV(asks, {"penalty": [1.0]}, scoring=scorer)
        inner = GaussianNB().set_fit_request(sample_weight=True)
        model = RecalibratedClassifierCV(inner, search, cv=3).fit(X, y, sample_weight=w)
        plain = RecalibratedClassifierCV(inner, MCLLOCalibrator(penalty=1.0), cv=3)
        plain.fit(X, y, sample_weight=w)
    np.testing.assert_allclose(
        model.predict_proba(X), plain.predict_proba(X), rtol=0, atol=1e-9
    )


# ------------------------------------------------------------------------------- decision functions


def test_every_calibrator_takes_decisions():
    for c, key in product((2, 3), CALIBRATORS):
        X, y, _, _ = sample(c=c)
        with case(f"{key}, {c} classes"):
            model = RecalibratedClassifierCV(LinearSVC(), key, cv=3).fit(X, y)
            are_probabilities(model.predict_proba(X), 300, c)
            assert key == "identity" or log_loss(
                y, model.predict_proba(X)
            ) < 0.8 * np.log(c)


def test_two_classes_are_platts_logistic_regression():
    X, y, _, _ = sample(n=600, c=2)
    svm = LinearSVC().fit(X[:300], y[:300])
    ours = RecalibratedClassifierCV(FrozenEstimator(svm), "mcllo").fit(X[300:], y[300:])
    d = svm.decision_function(X)[:, None]
    platt = (
        LogisticRegression(C=np.inf, tol=1e-10).fit(d[300:], y[300:]).predict_proba(d)
    )
    np.testing.assert_allclose(ours.predict_proba(X), platt, rtol=0, atol=1e-6)
    # scikit-learn's differs by Platt's pseudo counts, 1 / (n + 2) for each class
    theirs = CalibratedClassifierCV(FrozenEstimator(svm)).fit(X[300:], y[300:])
    np.testing.assert_allclose(theirs.predict_proba(X), platt, rtol=0, atol=0.02)


# ----------------------------------------------------------------------------- names, cv, ensemble


def test_a_key_is_its_calibrator_and_a_wrong_one_lists_them():
    X, y, _, _ = sample()
    for key in ("temperature", "histogram"):
        by_key = RecalibratedClassifierCV(GaussianNB(), key, cv=3).fit(X, y)
        by_object = RecalibratedClassifierCV(
            GaussianNB(), CALIBRATORS[key](), cv=3
        ).fit(X, y)
        np.testing.assert_array_equal(
            by_key.predict_proba(X), by_object.predict_proba(X)
        )
    with pytest.raises(InputError) as caught:
        RecalibratedClassifierCV(GaussianNB(), "sigmoid").fit(X, y)
    assert all(key in str(caught.value) for key in CALIBRATORS)
    assert caught.value.value == "sigmoid"
    grid = {"calibrator": ["mcllo", "temperature"]}
    search = GridSearchCV(RecalibratedClassifierCV(GaussianNB(), cv=3), grid, cv=2).fit(
        X, y
    )
    assert len(search.cv_results_["params"]) == 2


def test_prefit_is_answered_with_a_line_that_works():
    X, y, _, _ = sample()
    bayes = GaussianNB().fit(X[:150], y[:150])
    with pytest.raises(
        InputError, match=r"RecalibratedClassifierCV\(FrozenEstimator\(classifier\)\)"
    ):
        RecalibratedClassifierCV(bayes, cv="prefit").fit(X[150:], y[150:])
    classifier = bayes
    model = RecalibratedClassifierCV(FrozenEstimator(classifier)).fit(X[150:], y[150:])
    are_probabilities(model.predict_proba(X), 300, 3)
    with pytest.raises(InputError, match="cv must be folds, as in sklearn"):
        RecalibratedClassifierCV(bayes, cv="five").fit(X, y)


@both
def test_folds_and_classifier_by_default(CV):
    X, y, w, _ = sample()
    model = CV().fit(X, y)
    assert model.score(X, y) > 0.6
    assert len(model.calibrated_classifiers_) == 5
    assert isinstance(model.calibrated_classifiers_[0].estimator, LinearSVC)
    with config_context(enable_metadata_routing=True):
        CV(cv=3).fit(X, y, sample_weight=w)


# ------------------------------------------------------------------------ scikit-learn's own checks


SEPARABLE = {
    "mcllo": MCLLOCalibrator(penalty=1.0),
    "matrix": MatrixScaling(penalty=1.0),
}
"""Naive Bayes separates the checks' 15 rows: where no best map exists, weights and repeated rows
may end in different ones."""
COPIES = {
    f"check_sample_weight_equivalence_on_{kind}_data": (
        "auto leaves a row out together with rows that equal it in every probability and in the "
        "label, which it takes for copies; a row of weight 3 is three cases"
    )
    for kind in ("dense", "sparse")
}
"""What auto does otherwise on purpose, where the classifier's probabilities are not 0 or 1."""


def checked_models():
    """Yield models of both kinds of ensembles and of every calibrator; two of them are fast.

    Beside each stands what is expected to fail.
    """
    for key in CALIBRATORS:
        calibrator = SEPARABLE.get(key, key)
        fast = key in ("mcllo", "temperature")
        options = {"cv": 2, "ensemble": key != "temperature"}
        model = RecalibratedClassifierCV(GaussianNB(), calibrator, **options)
        yield pytest.param(model, {}, id=key, marks=[] if fast else pytest.mark.slow)
    for ensemble in (True, False):
        model = RecalibratedClassifierCV(LogisticRegression(), cv=2, ensemble=ensemble)
        differs = {} if ensemble else COPIES
        name = f"logistic-{ensemble}"
        yield pytest.param(model, differs, id=name, marks=pytest.mark.slow)


@pytest.mark.parametrize(("model", "differs"), list(checked_models()))
@pytest.mark.filterwarnings(
    "ignore"
)  # the data of the checks are separated, tied and tiny
def test_scikit_learns_checks(model, differs):
    results = check_estimator(model, expected_failed_checks=differs, on_fail=None)
    failed = {
        r["check_name"]: r["exception"] for r in results if r["status"] == "failed"
    }
    assert not failed
    expected = {r["check_name"] for r in results if r["status"] == "xfail"}
    assert expected == set(differs)
    assert sum(r["status"] == "passed" for r in results) > 50
