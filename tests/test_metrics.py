"""What all metrics share: input, weights, scikit-learn."""

import dataclasses

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score
from toy import TOY_X, TOY_Y

from mcllo import Predictions, metrics
from mcllo.exceptions import InputError

NAMES = [name for name in metrics.__all__ if name != "label_change"]
NUMBERS = [name for name in NAMES if not name.startswith("decompose")]
NO_LOG_ODDS = [name for name in NAMES if name not in ("decompose_log_loss", "decompose_brier")]


def value_of(name, *data, **options):
    """Return a metric's numbers as an array."""
    result = getattr(metrics, name)(*data, **options)
    if dataclasses.is_dataclass(result):
        return np.array(list(result.to_dict().values()))
    assert type(result) is float
    return np.array(result)


@pytest.mark.parametrize("name", NAMES)
def test_a_predictions_object_stands_for_itself(name):
    p = Predictions.from_arrays(TOY_X, TOY_Y)
    np.testing.assert_array_equal(value_of(name, None, p), value_of(name, TOY_Y, TOY_X))


@pytest.mark.parametrize("name", NAMES)
def test_words_and_frames(name):
    pd = pytest.importorskip("pandas")
    words = np.array(["cat", "dog", "eel"])
    frame = pd.DataFrame(TOY_X, columns=words)
    expected = value_of(name, TOY_Y, TOY_X)
    np.testing.assert_array_equal(value_of(name, words[TOY_Y], frame), expected)


@pytest.mark.parametrize("name", NO_LOG_ODDS)
def test_a_label_that_does_not_occur(name):
    words = np.array(["cat", "dog", "eel"])
    seen = TOY_Y != 2
    named = value_of(name, words[TOY_Y][seen], TOY_X[seen], classes=list(words))
    np.testing.assert_array_equal(named, value_of(name, TOY_Y[seen], TOY_X[seen]))


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None, max_examples=10)
@given(st.integers(0, 10**6))
def test_a_weight_is_so_many_rows(name, seed):
    rng = np.random.default_rng(seed)
    probs = (rng.multinomial(17, [0.2, 0.3, 0.5], 40) + 1) / 20
    y, w = rng.integers(0, 3, 40), rng.integers(0, 4, 40)
    w[:3], y[:3] = 1, [0, 1, 2]
    once = value_of(name, y, probs, sample_weight=w)
    long = value_of(name, np.repeat(y, w), np.repeat(probs, w, axis=0))
    np.testing.assert_allclose(once, long, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_unit_weights_change_nothing(name):
    weighted = value_of(name, TOY_Y, TOY_X, sample_weight=np.ones(16))
    np.testing.assert_allclose(weighted, value_of(name, TOY_Y, TOY_X), atol=1e-14)


@pytest.mark.parametrize("name", NO_LOG_ODDS)
def test_zeros_stay_zeros(name):
    probs = np.eye(3)[TOY_Y]
    value = value_of(name, TOY_Y, probs)
    if name == "accuracy":
        assert value == 1.0
    elif name == "decompose_brier_by_group":
        assert value[-1] == 0.0
    else:
        assert value == 0.0


@pytest.mark.parametrize("name", NAMES)
def test_input_is_not_changed(name):
    probs, y = TOY_X.copy(), TOY_Y.copy()
    probs.setflags(write=False)
    y.setflags(write=False)
    value_of(name, y, probs)
    np.testing.assert_array_equal(probs, TOY_X)


@pytest.mark.parametrize("name", NUMBERS)
def test_scikit_learn_scorers(name):
    X, y = load_iris(return_X_y=True)
    words = np.array(["setosa", "versicolor", "virginica"])[y]
    scorer = make_scorer(
        getattr(metrics, name), response_method="predict_proba", greater_is_better=False
    )
    model = LogisticRegression(max_iter=500)
    scores = cross_val_score(model, X[:, :1], words, scoring=scorer, cv=3)
    assert np.isfinite(scores).all()
    model.fit(X[:, :1], words)
    value = getattr(metrics, name)(words, model.predict_proba(X[:, :1]))
    assert scorer(model, X[:, :1], words) == -value


def test_grid_search_with_options():
    X, y = load_iris(return_X_y=True)
    scorer = make_scorer(
        metrics.expected_calibration_error,
        response_method="predict_proba",
        greater_is_better=False,
        n_bins=5,
        binning="mass",
    )
    search = GridSearchCV(
        LogisticRegression(max_iter=500), {"C": [0.01, 1.0]}, scoring=scorer, cv=3
    ).fit(X, y)
    assert search.best_params_ == {"C": 1.0}


@pytest.mark.parametrize("name", NAMES)
def test_swapped_arguments(name):
    with pytest.raises(InputError, match=r"swapped. Call with \(y_true, y_prob\)"):
        value_of(name, TOY_X, TOY_Y)


@pytest.mark.parametrize("name", NUMBERS)
def test_one_column_is_the_second_of_two_classes(name):
    # scikit-learn's binary scorers pass the positive class alone
    p, y = np.array([0.1, 0.6, 0.8, 0.3]), np.array([0, 1, 1, 1])
    both = np.column_stack([1 - p, p])
    assert getattr(metrics, name)(y, p) == getattr(metrics, name)(y, both)
    X, labels = load_iris(return_X_y=True)
    scorer = make_scorer(getattr(metrics, name), response_method="predict_proba")
    model = LogisticRegression(max_iter=500).fit(X[50:, :1], labels[50:])
    assert np.isfinite(scorer(model, X[50:, :1], labels[50:]))


def test_one_column_needs_two_classes():
    with pytest.raises(InputError, match="which column is which class is unclear"):
        metrics.accuracy(["a", "b", "c"], np.array([0.1, 0.6, 0.8]))


@pytest.mark.parametrize("name", NAMES)
def test_weights_beside_a_predictions(name):
    p = Predictions.from_arrays(TOY_X, TOY_Y)
    with pytest.raises(InputError, match="sample_weight= must not be given beside a Predictions"):
        value_of(name, None, p, sample_weight=np.ones(16))
