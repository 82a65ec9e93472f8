"""What all metrics share: input, weights, scikit-learn."""

import dataclasses
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from sklearn import metrics as sk
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score
from toy import TOY_X, TOY_Y

from mcllo import Predictions, metrics
from mcllo.exceptions import InputError
from mcllo.metrics import (
    accuracy,
    adaptive_calibration_error,
    average_calibration_error,
    brier_score,
    classwise_calibration_error,
    expected_calibration_error,
    label_change,
    log_loss,
    maximum_calibration_error,
    smooth_calibration_error,
)

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


def test_certain_and_right():
    sure = np.eye(3)[TOY_Y]
    assert accuracy(TOY_Y, sure) == 1.0
    assert log_loss(TOY_Y, sure) == 0.0
    assert str(log_loss(TOY_Y, sure)) == "0.0"
    assert brier_score(TOY_Y, sure) == 0.0
    assert label_change(sure, sure) == 0.0


def test_by_hand():
    y, probs = [0, 1], [[0.5, 0.5], [0.2, 0.8]]
    assert accuracy(y, probs) == 1.0  # of the tie the first class
    assert log_loss(y, probs) == pytest.approx((np.log(2) - np.log(0.8)) / 2)
    # (.25 + .25 + .04 + .04) / 2
    assert brier_score(y, probs) == pytest.approx(0.29)
    assert label_change(probs, [[0.4, 0.6], [0.1, 0.9]]) == 0.5


def test_reference_values():
    # methods.md 4, TOY
    assert accuracy(TOY_Y, TOY_X) == 0.5
    assert log_loss(TOY_Y, TOY_X) == pytest.approx(0.78771135, abs=5e-9)
    assert brier_score(TOY_Y, TOY_X) == pytest.approx(0.4615625, abs=1e-12)


def test_scikit_learn_agrees():
    rng = np.random.default_rng(1)
    probs, y = rng.dirichlet(np.ones(4), 200), rng.integers(0, 4, 200)
    w = rng.random(200)
    assert log_loss(y, probs, sample_weight=w) == pytest.approx(
        sk.log_loss(y, probs, sample_weight=w)
    )
    assert accuracy(y, probs, sample_weight=w) == pytest.approx(
        sk.accuracy_score(y, probs.argmax(axis=1), sample_weight=w)
    )


def test_a_true_class_of_probability_zero_is_infinite_unless_it_has_no_weight():
    y, probs = [1, 1], [[1.0, 0.0], [0.5, 0.5]]
    assert log_loss(y, probs) == np.inf
    assert log_loss(y, probs, sample_weight=[0, 1]) == pytest.approx(np.log(2))


def test_label_change_matches_frames_by_name():
    pd = pytest.importorskip("pandas")
    before = pd.DataFrame({"a": [0.6, 0.2], "b": [0.4, 0.8]})
    assert label_change(before, before[["b", "a"]]) == 0.0
    assert label_change(before, before.to_numpy()[:, ::-1]) == 1.0


def test_label_change_is_weighted():
    before, after = [[0.6, 0.4], [0.2, 0.8]], [[0.4, 0.6], [0.3, 0.7]]
    assert label_change(before, after, sample_weight=[3, 1]) == 0.75


def test_label_change_needs_the_same_shape():
    with pytest.raises(InputError, match=r"got shapes \(1, 2\) and \(2, 2\)"):
        label_change([[0.6, 0.4]], [[0.6, 0.4], [0.5, 0.5]])


ROOT = Path(__file__).resolve().parents[2]
HAND_X = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]
HAND_Y = [0, 0, 1, 0]


def five_line_ece(y, probs, n_bins):
    conf, ok, total = probs.max(axis=1), probs.argmax(axis=1) == y, 0.0
    for m in range(n_bins):
        inside = (conf > m / n_bins) & (conf <= (m + 1) / n_bins)
        total += abs(conf[inside].sum() - ok[inside].sum())
    return total / len(y)


def test_frequencies_equal_to_predictions_give_zero():
    probs, y = [[0.75, 0.25]] * 4, [0, 0, 0, 1]
    assert expected_calibration_error(y, probs, n_bins=5) == 0.0
    assert classwise_calibration_error(y, probs, n_bins=5) == 0.0
    assert adaptive_calibration_error(y, probs, n_bins=1) == 0.0


def test_by_hand_binned_metrics():
    # top label: .9 ok, .7 ok, .8 ok, .6 wrong; each in a bin of its own: gaps .1 .3 .2 .6
    assert expected_calibration_error(HAND_Y, HAND_X, n_bins=10) == pytest.approx(0.3)
    assert expected_calibration_error(HAND_Y, HAND_X, n_bins=10, norm=2) == pytest.approx(
        np.sqrt((0.01 + 0.09 + 0.04 + 0.36) / 4)
    )
    assert maximum_calibration_error(HAND_Y, HAND_X, n_bins=10) == pytest.approx(0.6)
    # bins (.5, .75] with .7 ok, .6 wrong: gap .15; (.75, 1] with .9, .8 ok: gap .15
    assert expected_calibration_error(HAND_Y, HAND_X, n_bins=4) == pytest.approx(0.15)
    # class 0: .2 .4 | .7 .9 with hits 0 1 | 1 1: gaps |.3-.5|, |.8-1|; class 1 mirrors it
    assert adaptive_calibration_error(HAND_Y, HAND_X, n_bins=2) == pytest.approx(0.2)


def test_average_counts_bins_not_rows():
    # three rows at .9 with gap .1 - 2/3... : bin of .9: conf .9, acc 2/3; bin of .6: conf .6, acc 1
    probs = [[0.9, 0.1]] * 3 + [[0.6, 0.4]]
    assert average_calibration_error([0, 0, 1, 0], probs, n_bins=10) == pytest.approx(
        ((0.9 - 2 / 3) + 0.4) / 2
    )


@pytest.mark.parametrize(
    ("metric", "options", "value"),
    # methods.md 4, TOY
    [
        (expected_calibration_error, {"n_bins": 4}, 0.309375),
        (expected_calibration_error, {"n_bins": 10}, 0.309375),
        (expected_calibration_error, {"n_bins": 15}, 0.309375),
        (expected_calibration_error, {"n_bins": 4, "norm": 2}, 0.33824873),
        (expected_calibration_error, {"n_bins": 10, "norm": 2}, 0.34675580),
        (expected_calibration_error, {"n_bins": 4, "norm": 2, "binning": "mass"}, 0.34571140),
        (maximum_calibration_error, {"n_bins": 4}, 0.46428571),
        (maximum_calibration_error, {"n_bins": 10}, 0.49),
        (maximum_calibration_error, {"n_bins": 15}, 0.5),
        (classwise_calibration_error, {"n_bins": 4}, 0.08541667),
        (classwise_calibration_error, {"n_bins": 10}, 0.2125),
        (adaptive_calibration_error, {"n_bins": 4}, 0.1125),
    ],
)
def test_reference_values_binned_metrics(metric, options, value):
    assert metric(TOY_Y, TOY_X, **options) == pytest.approx(value, abs=5e-9)


def test_cifar_holdout():
    # methods.md 7: rows 8000 on of default_rng(0).permutation(10000), 45 bins: ECE .0406,
    # log loss .2295
    path = ROOT.parent / "shared/data/cifar10_vgg16_keras/cifar10_vgg16_keras.npz"
    if not path.exists():
        pytest.skip("the CIFAR-10 predictions are not part of the repository")
    data = np.load(path)
    rows = np.random.default_rng(0).permutation(10_000)[8000:]
    y, probs = data["labels"][rows], data["probs"][rows]
    assert expected_calibration_error(y, probs) == pytest.approx(0.0406, abs=5e-5)
    assert log_loss(y, probs) == pytest.approx(0.2295, abs=5e-5)


def test_sqrt_is_the_default():
    assert expected_calibration_error(TOY_Y, TOY_X) == expected_calibration_error(
        TOY_Y, TOY_X, n_bins=4
    )


@pytest.mark.parametrize("n_bins", [2, 4, 5, 7, 10, 20, 25, 100])
def test_five_lines_agree_on_edges(n_bins):
    # votes of 100 trees: most confidences lie on an edge, and row sums are off by a rounding
    rng = np.random.default_rng(3)
    probs = rng.multinomial(100, rng.dirichlet(np.ones(3), 500)[0], 500) / 100
    probs = np.concatenate([probs, rng.multinomial(20, [0.2, 0.3, 0.5], 300) / 20])
    y = rng.integers(0, 3, 800)
    ours = expected_calibration_error(y, probs, n_bins=n_bins)
    assert ours == pytest.approx(five_line_ece(y, probs, n_bins), abs=1e-12)


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 30), st.integers(1, 40), st.integers(0, 10**6))
def test_five_lines_agree(n_bins, n, seed):
    rng = np.random.default_rng(seed)
    probs, y = rng.dirichlet(np.full(3, 0.3), n), rng.integers(0, 3, n)
    ours = expected_calibration_error(y, probs, n_bins=n_bins)
    assert ours == pytest.approx(five_line_ece(y, probs, n_bins), abs=1e-12)
    assert ours <= expected_calibration_error(y, probs, n_bins=n_bins, norm=2) + 1e-12
    assert ours <= maximum_calibration_error(y, probs, n_bins=n_bins) + 1e-12


def direct(y, probs, bandwidth, weight=None):
    """Return smECE at a bandwidth by the definition: reflected Gaussians on a grid."""
    f, hit = probs.max(axis=1), probs.argmax(axis=1) == y
    w = np.full(len(f), 1 / len(f)) if weight is None else weight / weight.sum()
    t = (np.arange(4000) + 0.5) / 4000
    images = np.concatenate([f + 2 * k for k in range(-3, 4)] + [2 * k - f for k in range(-3, 4)])
    mass = np.tile(w * (hit - f), 14)
    r = np.zeros(len(t))
    for image, m in zip(images, mass, strict=True):
        r += m * np.exp(-0.5 * ((t - image) / bandwidth) ** 2)
    return np.abs(r).mean() / (bandwidth * np.sqrt(2 * np.pi))


def test_certain_and_right_is_zero():
    assert smooth_calibration_error(TOY_Y, np.eye(3)[TOY_Y]) == 0.0


def test_one_row_has_an_error_as_large_as_its_residual():
    # K_s integrates to 1, so smECE_s = |hit - f| = .3 at every s, the fixed point included
    assert smooth_calibration_error([0], [[0.7, 0.3]]) == pytest.approx(0.3, abs=1e-8)
    assert smooth_calibration_error([0], [[0.7, 0.3]], bandwidth=0.02) == pytest.approx(0.3)


def test_reference_values_smooth_error():
    # methods.md 4, TOY
    at_tenth = smooth_calibration_error(TOY_Y, TOY_X, bandwidth=0.1)
    assert at_tenth == pytest.approx(0.236083, abs=1e-6)
    assert smooth_calibration_error(TOY_Y, TOY_X) == pytest.approx(0.174372, abs=1e-6)


@pytest.mark.parametrize("bandwidth", [0.005, 0.03, 0.2, 0.9])
def test_the_definition_agrees(bandwidth):
    rng = np.random.default_rng(6)
    probs, y = rng.dirichlet(np.full(4, 0.3), 150), rng.integers(0, 4, 150)
    weight = rng.random(150)
    assert smooth_calibration_error(
        y, probs, bandwidth=bandwidth, sample_weight=weight
    ) == pytest.approx(direct(y, probs, bandwidth, weight), rel=2e-5)


def test_fixed_point_of_the_definition():
    rng = np.random.default_rng(7)
    probs = rng.dirichlet(np.full(4, 0.3), 400)
    y = (rng.random((400, 1)) > probs.cumsum(axis=1)).sum(axis=1)
    error = smooth_calibration_error(y, probs)
    assert direct(y, probs, error) == pytest.approx(error, abs=1e-6)


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, np.nan])
def test_bandwidth_is_checked(bandwidth):
    with pytest.raises(InputError, match="bandwidth must be positive or None; got bandwidth="):
        smooth_calibration_error(TOY_Y, TOY_X, bandwidth=bandwidth)
