"""A classifier and a calibrator, cross-fitted."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from inputs import case
from joblib import parallel_config
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags

from mcllo import AutoCalibrator, MCLLOCalibrator
from mcllo.calibrators import (
    CALIBRATORS,
    HistogramBinning,
    Identity,
    TemperatureScaling,
    VectorScaling,
)
from mcllo.exceptions import InputError, MclloWarning, ZeroProbabilityWarning
from mcllo.model_selection import FittedPair, RecalibratedClassifierCV

NAMES = np.array(["car", "ship", "truck"])
VERSION = tuple(map(int, sklearn.__version__.split(".")[:2]))
pytestmark = pytest.mark.usefixtures("one_blas_thread")


def data(n=240, c=3, seed=0):
    """Return overlapping classes and features of which one repeats, so naive Bayes is
    overconfident.
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(c, size=n)
    X = rng.normal(size=(n, 3)) + np.eye(max(c, 3))[y, :3]
    return np.column_stack([X, X[:, :1] + 0.1 * rng.normal(size=(n, 1))]), y


# ------------------------------------------------------------------------------------- fixed point


def test_identity_leaves_a_frozen_classifier_as_it_is():
    X, y = data()
    bayes = GaussianNB().fit(X[:120], y[:120])
    model = RecalibratedClassifierCV(FrozenEstimator(bayes), Identity()).fit(
        X[120:], y[120:]
    )
    np.testing.assert_allclose(
        model.predict_proba(X), bayes.predict_proba(X), rtol=0, atol=1e-15
    )


# ---------------------------------------------------------------------------------- done by hand


@pytest.mark.parametrize(
    "calibrator", [None, TemperatureScaling()], ids=["default", "given"]
)
def test_ensemble_is_the_mean_over_the_folds(calibrator):
    X, y = data()
    folds = StratifiedKFold(4)
    model = RecalibratedClassifierCV(GaussianNB(), calibrator, cv=folds).fit(X, y)
    total = 0.0
    for train, test in folds.split(X, y):
        bayes = GaussianNB().fit(X[train], y[train])
        own = clone(calibrator or AutoCalibrator()).fit(
            bayes.predict_proba(X[test]), y[test]
        )
        total = total + own.predict_proba(bayes.predict_proba(X))
    np.testing.assert_allclose(model.predict_proba(X), total / 4, rtol=0, atol=1e-12)
    assert len(model.calibrated_classifiers_) == 4
    assert all(isinstance(pair, FittedPair) for pair in model.calibrated_classifiers_)
    assert all(
        pair.calibrator.classes == [0, 1, 2] for pair in model.calibrated_classifiers_
    )


def test_without_ensemble_one_calibrator_learns_from_all_out_of_fold_predictions():
    X, y = data()
    folds = KFold(4, shuffle=True, random_state=0)
    model = RecalibratedClassifierCV(GaussianNB(), "mcllo", cv=folds, ensemble=False)
    model.fit(X, y)
    held_out = cross_val_predict(GaussianNB(), X, y, cv=folds, method="predict_proba")
    calibrator = MCLLOCalibrator().fit(held_out, y)
    expected = calibrator.predict_proba(GaussianNB().fit(X, y).predict_proba(X))
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=0, atol=1e-9)
    (pair,) = model.calibrated_classifiers_
    np.testing.assert_allclose(
        pair.calibrator.fit_.theta, calibrator.fit_.theta, rtol=1e-8
    )
    model.set_params(
        cv=KFold(4, shuffle=True)
    )  # other folds at each call: it is asked once
    assert model.fit(X, y).predict_proba(X).shape == (240, 3)


@pytest.mark.parametrize("ensemble", ["auto", False])
def test_a_frozen_classifier_is_calibrated_on_the_rows_given(ensemble):
    X, y = data()
    bayes = GaussianNB().fit(X[:120], y[:120])
    before = bayes.predict_proba(X)
    model = RecalibratedClassifierCV(FrozenEstimator(bayes), "mcllo", ensemble=ensemble)
    model.fit(X[120:], y[120:])
    expected = MCLLOCalibrator().fit(before[120:], y[120:]).predict_proba(before)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(bayes.predict_proba(X), before)
    assert len(model.calibrated_classifiers_) == 1
    assert model.n_features_in_ == 4
    model.set_params(ensemble=True, cv=3).fit(X, y)  # a calibrator for each fold
    assert [pair.estimator.estimator for pair in model.calibrated_classifiers_] == [
        bayes
    ] * 3


@pytest.mark.filterwarnings(
    "ignore::mcllo.exceptions.LabelShiftWarning"
)  # rows were left out
def test_a_frozen_classifier_keeps_classes_that_the_rows_lack():
    X, y = data()
    frozen = FrozenEstimator(GaussianNB().fit(X, NAMES[y]))
    kept = y != 1
    model = RecalibratedClassifierCV(frozen, MCLLOCalibrator(penalty=1.0))
    model.fit(X[kept], NAMES[y[kept]])
    assert model.classes_.tolist() == NAMES.tolist()
    assert model.predict_proba(X).shape == (240, 3)


# ---------------------------------------------------------------------------- against scikit-learn


@pytest.mark.skipif(
    VERSION < (1, 8), reason="scikit-learn has temperature scaling from 1.8 on"
)
@pytest.mark.parametrize(
    "estimator", [GaussianNB(), LinearSVC()]
)  # of probabilities, of decisions
def test_temperature_scaling_equals_scikit_learns(estimator):
    X, y = data(n=600)
    for ensemble in (True, False):
        folds = {"cv": 3, "ensemble": ensemble}
        ours = RecalibratedClassifierCV(estimator, TemperatureScaling(), **folds).fit(
            X, y
        )
        theirs = CalibratedClassifierCV(estimator, method="temperature", **folds).fit(
            X, y
        )
        # scikit-learn's optimiser stops at about 1e-4
        expected = theirs.predict_proba(X)
        np.testing.assert_allclose(ours.predict_proba(X), expected, rtol=0, atol=1e-3)


def test_recalibration_helps_a_bold_classifier():
    (X, y), (new, truth) = data(n=2000), data(n=2000, seed=1)
    raw = log_loss(truth, GaussianNB().fit(X, y).predict_proba(new))
    for ensemble in (True, False):
        model = RecalibratedClassifierCV(GaussianNB(), ensemble=ensemble).fit(X, y)
        assert log_loss(truth, model.predict_proba(new)) < raw - 0.01


# ----------------------------------------------------------------------------- labels, frames, ...


@pytest.mark.parametrize("ensemble", [True, False])
def test_labels_of_any_name(ensemble):
    model = RecalibratedClassifierCV(GaussianNB(), cv=3, ensemble=ensemble)
    for names, series in (
        *((NAMES, series) for series in (np.array, list, pd.Series, pl.Series)),
        *((names, np.array) for names in ([-1.0, 1.0], ["10", "9"], [False, True])),
    ):
        X, y = data(c=len(names))
        plain = clone(model).fit(X, y)
        with case((names, series)):
            model.fit(X, series(np.array(names)[y].tolist()))
            assert model.classes_.tolist() == list(names)
            expected = plain.predict_proba(X)
            np.testing.assert_allclose(
                model.predict_proba(X), expected, rtol=0, atol=1e-12
            )
            np.testing.assert_array_equal(
                model.predict(X), np.array(names)[plain.predict(X)]
            )


def test_the_calibrator_is_given_by_its_own_labels():
    X, y = data()
    baseline = MCLLOCalibrator(baseline="car")
    model = RecalibratedClassifierCV(GaussianNB(), baseline, cv=3).fit(X, NAMES[y])
    assert model.calibrated_classifiers_[0].calibrator.fit_.baseline == "car"
    assert baseline.classes is None
    assert not hasattr(baseline, "fit_")


@pytest.mark.parametrize(
    "frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"]
)
def test_frames_reach_the_classifier(frame):
    if VERSION < (1, 9) and frame is pl.DataFrame:
        pytest.skip("this scikit-learn asks polars for a protocol that polars gives up")
    X, y = data()
    columns = {f"f{j}": X[:, j] for j in range(4)}
    for ensemble in (True, False):
        model = RecalibratedClassifierCV(GaussianNB(), cv=3, ensemble=ensemble)
        named = model.fit(frame(columns), y).predict_proba(frame(columns))
        assert model.feature_names_in_.tolist() == list(columns)
        assert model.n_features_in_ == 4
        np.testing.assert_array_equal(model.fit(X, y).predict_proba(X), named)
        assert not hasattr(model, "feature_names_in_")


@pytest.mark.newest
def test_sparse_features_and_missing_values_where_the_classifier_takes_them():
    X, y = data()
    model = RecalibratedClassifierCV(LogisticRegression(), cv=3)
    dense = model.fit(X, y).predict_proba(X)
    table = sparse.csr_matrix(X)
    np.testing.assert_allclose(
        model.fit(table, y).predict_proba(table), dense, rtol=0, atol=1e-4
    )
    assert get_tags(model).input_tags.sparse
    assert not get_tags(RecalibratedClassifierCV(GaussianNB())).input_tags.sparse
    tree = DecisionTreeClassifier(min_samples_leaf=20)
    model = RecalibratedClassifierCV(tree, HistogramBinning(), cv=3)
    assert get_tags(model).input_tags.allow_nan
    assert is_classifier(model)
    X[0, 0] = np.nan
    assert np.isfinite(model.fit(X, y).predict_proba(X)).all()


# ---------------------------------------------------------------------------------------- weights


@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize(
    "estimator",
    [GaussianNB(), make_pipeline(StandardScaler(), GaussianNB())],
    ids=["", "pipeline"],
)
def test_weights_reach_classifier_and_calibrator(estimator, ensemble):
    X, y = data()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, size=240)
    train, test = np.arange(120), np.arange(120, 240)
    folds = [(train, test), (test, train)]
    model = RecalibratedClassifierCV(estimator, "mcllo", cv=folds, ensemble=ensemble)
    out = model.fit(X, y, sample_weight=weight).predict_proba(X)

    def fitted(model, X, rows):
        return model.fit(X, y[rows], sample_weight=weight[rows])

    bayes = [fitted(GaussianNB(), X[rows], rows) for rows in (train, test)]
    held_out = [bayes[0].predict_proba(X[test]), bayes[1].predict_proba(X[train])]
    if ensemble:
        folds = zip(bayes, held_out, (test, train), strict=True)
        maps = (
            (one, fitted(MCLLOCalibrator(), scores, rows))
            for one, scores, rows in folds
        )
        expected = (
            sum(own.predict_proba(one.predict_proba(X)) for one, own in maps) / 2.0
        )
    else:
        rows, everywhere = np.concatenate([test, train]), np.arange(240)
        scores = fitted(GaussianNB(), X, everywhere).predict_proba(X)
        expected = fitted(MCLLOCalibrator(), np.vstack(held_out), rows).predict_proba(
            scores
        )
    # the scaler's own weights are not set; naive Bayes does not see a common scale but for its 1e-9
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-6)


@pytest.mark.filterwarnings(
    "ignore::mcllo.exceptions.LabelShiftWarning"
)  # weights shift shares
def test_a_classifier_without_weights_leaves_them_to_the_calibrator():
    X, y = data()
    model = RecalibratedClassifierCV(KNeighborsClassifier(40), cv=3)
    with pytest.warns(
        MclloWarning, match="KNeighborsClassifier takes no sample_weight"
    ):
        heavy = model.fit(X, y, sample_weight=1.0 + 9.0 * (y == 0)).predict_proba(X)
    even = model.fit(X, y).predict_proba(X)
    assert heavy[:, 0].mean() > even[:, 0].mean() + 0.1


# ------------------------------------------------------------------------------------- hard folds


@pytest.mark.parametrize("key", CALIBRATORS)
@pytest.mark.filterwarnings("ignore::mcllo.exceptions.MclloWarning")
def test_a_class_in_one_fold_only(key):
    X, y = data(n=120)
    y[:] = np.where(np.arange(120) < 40, y, y % 2)  # class 2 is in the first third only
    for ensemble in (True, False):
        options = {"cv": KFold(3), "ensemble": ensemble}
        model = RecalibratedClassifierCV(LogisticRegression(), key, **options).fit(
            X, NAMES[y]
        )
        out = model.predict_proba(X)
        assert out.shape == (120, 3)
        np.testing.assert_allclose(out.sum(axis=1), 1.0, rtol=0, atol=1e-12)
        assert set(model.predict(X)) <= set(NAMES)


def test_zeros_of_a_forest_warn():
    X, y = data()
    forest = RandomForestClassifier(10, random_state=0)
    with pytest.warns(ZeroProbabilityWarning, match="probabilities of 0") as caught:
        model = RecalibratedClassifierCV(forest, TemperatureScaling(), cv=3).fit(X, y)
    assert len(caught) == 1  # of three folds
    assert caught[0].filename == __file__
    assert len(caught[0].message.also) == 2
    assert "p-value" not in str(caught[0].message)
    assert np.isfinite(np.log(model.predict_proba(X))).all()


# ---------------------------------------------------------------------------------------- logits


def test_logits_come_from_the_decision_function():
    X, y = data()
    model = RecalibratedClassifierCV(
        LinearSVC(), VectorScaling(), cv=3, ensemble=False
    ).fit(X, y)
    held_out = cross_val_predict(LinearSVC(), X, y, cv=3, method="decision_function")
    coef = model.calibrated_classifiers_[0].calibrator.coef_
    np.testing.assert_allclose(coef, VectorScaling().fit(held_out, y).coef_, rtol=1e-6)


def test_logits_are_log_probabilities_where_there_are_no_others():
    X, y = data()
    on_logs = RecalibratedClassifierCV(
        GaussianNB(), VectorScaling(on="log_probs"), cv=3
    )
    model = RecalibratedClassifierCV(GaussianNB(), VectorScaling(), cv=3)
    expected = on_logs.fit(X, y).predict_proba(X)
    np.testing.assert_allclose(
        model.fit(X, y).predict_proba(X), expected, rtol=0, atol=1e-9
    )
    two = RecalibratedClassifierCV(LogisticRegression(), VectorScaling(), cv=3)
    assert two.fit(X, y == 1).predict_proba(X).shape == (
        240,
        2,
    )  # decision_function is a column


# ------------------------------------------------------------------------------- as an estimator


def test_grid_search_over_classifier_and_calibrator():
    X, y = data()
    grid = {
        "estimator__gaussiannb__var_smoothing": [1e-9, 1.0],
        "calibrator__penalty": [0.0, 1e6],
        "ensemble": [True, False],
    }
    scaled = make_pipeline(StandardScaler(), GaussianNB())
    model = RecalibratedClassifierCV(scaled, MCLLOCalibrator(), cv=2)
    search = GridSearchCV(
        model, grid, cv=2, scoring="neg_log_loss", error_score="raise"
    )
    search.fit(X, NAMES[y])
    assert len(search.cv_results_["params"]) == 8
    assert np.unique(search.cv_results_["mean_test_score"].round(12)).size > 4
    assert search.predict_proba(X).shape == (240, 3)
    swapped = GridSearchCV(
        model, {"calibrator": [Identity(), TemperatureScaling()]}, cv=2
    )
    assert set(swapped.fit(X, y).predict(X)) <= {0, 1, 2}


def test_scoring_and_two_jobs():
    X, y = data()
    model = RecalibratedClassifierCV(GaussianNB(), cv=3, n_jobs=2)
    alone = RecalibratedClassifierCV(GaussianNB(), cv=3).fit(X, y).predict_proba(X)
    with parallel_config(backend="threading"):
        np.testing.assert_array_equal(model.fit(X, y).predict_proba(X), alone)
        assert cross_val_score(model, X, y, cv=2, scoring="neg_log_loss").max() < 0.0


# ------------------------------------------------------------------------------------------ errors


class Columns(GaussianNB):
    """A classifier whose columns do not match its classes."""

    def predict_proba(self, X):
        return super().predict_proba(X)[:, :-1]


def test_refused_arguments():
    X, y = data(c=2)
    for estimator, options, message in (
        (
            Ridge(),
            {},
            "or with a decision_function of a column per class; Ridge has neither",
        ),
        (Columns(), {}, "each of its 2 classes; Columns gives the shape"),
        (GaussianNB(), {"ensemble": "maybe"}, "ensemble must be True, False or 'auto'"),
        (GaussianNB(), {"calibrator": MCLLOCalibrator}, "or a calibrator such as"),
        (
            GaussianNB(),
            {"ensemble": False, "cv": ShuffleSplit(3, random_state=0)},
            "hold out each row exactly once when ensemble=False; row 0 is held out 0 times",
        ),
    ):
        with case(message), pytest.raises(InputError, match=message):
            RecalibratedClassifierCV(estimator, **options).fit(X, y)


def test_refused_data():
    X, y = data()
    model = RecalibratedClassifierCV(GaussianNB())
    for arguments, message in (
        ((X, None), "requires y to be passed, but the target y is None"),
        ((X, np.ones(240, dtype=int)), r"at least two classes; got 1 class: \[1\]"),
        ((X, y, -np.ones(240)), r"sample_weight\[0\]=-1"),
    ):
        with pytest.raises(InputError, match=message):
            model.fit(*arguments)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, y[:-1])
    with pytest.raises(NotFittedError):
        model.predict_proba(X)


def test_refused_frozen():
    X, y = data()
    with pytest.raises(NotFittedError):
        RecalibratedClassifierCV(FrozenEstimator(GaussianNB())).fit(X, y)
    frozen = FrozenEstimator(GaussianNB().fit(X, NAMES[y]))
    with pytest.raises(
        InputError, match=r"y contains 'lorry' \(row 0\), which is not a class"
    ):
        RecalibratedClassifierCV(frozen).fit(
            X, np.where(np.arange(240) == 0, "lorry", NAMES[y])
        )
