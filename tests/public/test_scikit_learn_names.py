"""`SCORERS` and `ReliabilityDisplay`: what scikit-learn's users type."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.naive_bayes import GaussianNB
from test_metrics import NUMBERS

import mcllo
from mcllo import metrics
from mcllo.metrics import SCORERS
from mcllo.plot import ReliabilityDisplay

pytestmark = pytest.mark.usefixtures("one_blas_thread")
X, CODES = load_iris(return_X_y=True)
X = X[:, :2]
WORDS = np.array(["setosa", "versicolor", "virginica"])[CODES]
MIXED = np.random.default_rng(0).permutation(len(X))


def test_every_metric_that_is_a_number_is_a_scorer():
    names = {name.removeprefix("neg_") for name in SCORERS}
    assert names == set(NUMBERS)
    model = GaussianNB().fit(X, WORDS)
    probs = model.predict_proba(X)
    for name, scorer in SCORERS.items():
        metric = getattr(metrics, name.removeprefix("neg_"))
        sign = -1 if name.startswith("neg_") else 1
        assert scorer(model, X, WORDS) == sign * metric(WORDS, probs), name


def test_all_of_them_in_cross_validate():
    found = cross_validate(GaussianNB(), X, WORDS, scoring=SCORERS, cv=3)
    for name in SCORERS:
        scores = found[f"test_{name}"]
        assert np.isfinite(scores).all(), name
        assert (scores >= 0.0).all() == (name == "accuracy"), name


def test_a_fold_that_lacks_a_class_is_scored():
    # sorted rows in ten folds of five: each holds one class
    rows = np.r_[0:20, 50:70, 100:110]
    found = cross_validate(
        GaussianNB(),
        X[rows],
        WORDS[rows],
        scoring={"loss": SCORERS["neg_log_loss"]},
        cv=KFold(10),
        return_estimator=True,
    )
    model, loss = found["estimator"][0], found["test_loss"][0]
    first = rows[:5]  # setosa alone
    own = model.predict_proba(X[first])[:, 0]
    assert loss == pytest.approx(np.log(own).mean())


def test_two_classes_by_name():
    two = CODES > 0
    model = GaussianNB().fit(X[two], WORDS[two])
    expected = metrics.brier_score(WORDS[two], model.predict_proba(X[two]))
    found = SCORERS["neg_brier_score"](model, X[two], WORDS[two])
    assert found == pytest.approx(-expected, rel=1e-12)


def test_searches_and_routed_weights():
    search = GridSearchCV(
        LogisticRegression(max_iter=500),
        {"C": [1e-4, 1.0]},
        scoring=SCORERS["neg_log_loss"],
        cv=3,
    )
    assert search.fit(X, WORDS).best_params_ == {"C": 1.0}
    weight = np.where(CODES == 0, 0.0, 1.0)
    with config_context(enable_metadata_routing=True):
        asks = SCORERS["neg_log_loss"].set_score_request(sample_weight=True)
        plain = SCORERS["neg_log_loss"].set_score_request(sample_weight=False)
        found = cross_validate(
            GaussianNB().set_fit_request(sample_weight=False),
            X[MIXED],
            WORDS[MIXED],
            scoring={"asks": asks, "plain": plain},
            cv=KFold(2),
            params={"sample_weight": weight[MIXED]},
            return_estimator=True,
        )
    held = MIXED[:75]
    model = found["estimator"][0]
    expected = metrics.log_loss(
        WORDS[held],
        model.predict_proba(X[held]),
        sample_weight=weight[held],
        classes=list(model.classes_),
    )
    assert found["test_asks"][0] == pytest.approx(-expected, rel=1e-12)
    assert found["test_plain"][0] > found["test_asks"][0]  # setosa is easy


def test_a_display_of_several_classes():
    train, held = MIXED[:75], MIXED[75:]
    model = GaussianNB().fit(X[train], WORDS[train])
    display = ReliabilityDisplay.from_estimator(model, X[held], WORDS[held], seed=0)
    probs = model.predict_proba(X[held])
    alike = ReliabilityDisplay.from_predictions(
        WORDS[held], probs, classes=list(model.classes_), seed=0
    )
    by_function = mcllo.plot.reliability(mcllo.assess(probs, WORDS[held], seed=0))
    assert display.figure_ is display.ax_.figure
    for other in (alike.ax_, by_function):
        ours = [line.get_xydata() for line in display.ax_.lines]
        theirs = [line.get_xydata() for line in other.lines]
        assert len(ours) == len(theirs)
        for one, two in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, two)
    each = display.plot(by_class=True, n_bins=5)
    assert each is display
    titles = {ax.get_title(loc="left") for ax in display.axes_}
    assert titles == {"setosa", "versicolor", "virginica"}


def test_a_display_on_given_axes_and_of_two_classes():
    from matplotlib.figure import Figure

    two = CODES > 0
    model = GaussianNB().fit(X[two], CODES[two])
    one, other = Figure().subplots(1, 2)
    theirs = CalibrationDisplay.from_estimator(model, X[two], CODES[two], ax=other)
    ours = ReliabilityDisplay.from_predictions(
        CODES[two], model.predict_proba(X[two])[:, 1], ax=one, n_bins=5, seed=0
    )
    assert ours.ax_ is one
    assert theirs.ax_ is other
    assert ours.assessment.predictions.classes == (1, 2)
