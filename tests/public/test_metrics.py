"""What all metrics share: input, weights, scikit-learn."""

import dataclasses
import inspect

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from independent import draw
from inputs import case
from shared_data import load_cifar10_vgg16_keras
from sklearn import metrics as sk
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV
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

NAMES = [
    name
    for name in metrics.__all__
    if inspect.isfunction(getattr(metrics, name)) and name != "label_change"
]
NUMBERS = [
    name
    for name in NAMES
    if not name.startswith(("decompose", "calibration_distances"))
]
WORDS, MASS = np.array(["cat", "dog", "eel"]), {"n_bins": 4, "binning": "mass"}
NO_LOG_ODDS = [
    name for name in NAMES if name not in ("decompose_log_loss", "decompose_brier")
]


def value_of(name, *data, **options):
    """Return a metric's numbers as an array."""
    result = getattr(metrics, name)(*data, **options)
    if dataclasses.is_dataclass(result):
        return np.array(list(result.to_dict().values()))
    if hasattr(result, "columns"):
        return np.concatenate(
            [result[column] for column in ("ici", "e50", "e90", "emax")]
        )
    assert type(result) is float
    return np.array(result)


def test_numbers_do_not_depend_on_how_rows_are_given():
    probs, y = TOY_X.copy(), TOY_Y.copy()
    for array in (probs, y):
        array.setflags(write=False)
    p = Predictions.from_arrays(TOY_X, TOY_Y)
    frame = pd.DataFrame(TOY_X, columns=WORDS)
    for name in NAMES:
        with case(name):
            expected = value_of(name, y, probs)
            np.testing.assert_array_equal(value_of(name, None, p), expected)
            np.testing.assert_array_equal(value_of(name, WORDS[TOY_Y], frame), expected)
            once = value_of(name, TOY_Y, TOY_X, sample_weight=np.ones(16))
            np.testing.assert_allclose(once, expected, atol=1e-14)


@pytest.mark.parametrize(
    "name", ["log_loss", "expected_calibration_error", "decompose_brier"]
)
def test_arguments_that_are_refused(name):
    metric = getattr(metrics, name)
    with pytest.raises(InputError, match=r"swapped. Call with \(y_true, y_prob\)"):
        metric(TOY_X, TOY_Y)
    p = Predictions.from_arrays(TOY_X, TOY_Y)
    with pytest.raises(
        InputError, match="sample_weight= must not be given beside a Predictions"
    ):
        metric(None, p, sample_weight=np.ones(16))


def test_a_label_that_does_not_occur():
    seen = TOY_Y != 2
    for name in NO_LOG_ODDS:
        named = value_of(name, WORDS[TOY_Y][seen], TOY_X[seen], classes=list(WORDS))
        with case(name):
            np.testing.assert_array_equal(
                named, value_of(name, TOY_Y[seen], TOY_X[seen])
            )


@settings(deadline=None, max_examples=5)
@given(st.integers(0, 10**6))
def test_a_weight_is_so_many_rows(seed):
    rng = np.random.default_rng(seed)
    probs = (rng.multinomial(17, [0.2, 0.3, 0.5], 40) + 1) / 20
    y, w = rng.integers(0, 3, 40), rng.integers(0, 4, 40)
    w[:3], y[:3] = 1, [0, 1, 2]
    long_y, long_probs = np.repeat(y, w), np.repeat(probs, w, axis=0)
    for name in NAMES:
        once = value_of(name, y, probs, sample_weight=w)
        with case(name):
            np.testing.assert_allclose(
                once, value_of(name, long_y, long_probs), atol=1e-9
            )


def test_certain_and_right_is_zero_and_zeros_stay_zeros():
    for name in NO_LOG_ODDS:
        value = np.ravel(value_of(name, TOY_Y, np.eye(3)[TOY_Y]))[
            -1
        ]  # of parts the last: a score
        if name in ("integrated_calibration_index", "calibration_distances"):
            value = value.round(11)  # log odds end at 1e-12
        assert str(value) == ("1.0" if name == "accuracy" else "0.0"), name


@pytest.mark.usefixtures("one_blas_thread")
def test_scikit_learn_scorers():
    (X, y), three = load_iris(return_X_y=True), LogisticRegression(max_iter=500)
    X, words = X[:, :1], np.array(["setosa", "versicolor", "virginica"])[y]
    three.fit(X, words)
    two = LogisticRegression(max_iter=500).fit(X[50:], y[50:])
    p, hits = np.array([0.1, 0.6, 0.8, 0.3]), np.array([0, 1, 1, 1])
    for name in NUMBERS:
        metric = getattr(metrics, name)
        scorer = make_scorer(
            metric, response_method="predict_proba", greater_is_better=False
        )
        with case(name):
            assert scorer(three, X, words) == -metric(words, three.predict_proba(X))
            # binary scorers pass the positive class alone: one column is the second of two classes
            assert np.isfinite(scorer(two, X[50:], y[50:]))
            assert metric(hits, p) == metric(hits, np.column_stack([1 - p, p]))


@pytest.mark.usefixtures("one_blas_thread")
def test_grid_search_with_options():
    scorer = make_scorer(
        expected_calibration_error,
        response_method="predict_proba",
        greater_is_better=False,
        n_bins=5,
        binning="mass",
    )
    model = LogisticRegression(max_iter=500)
    search = GridSearchCV(model, {"C": [0.01, 1.0]}, scoring=scorer, cv=3)
    assert search.fit(*load_iris(return_X_y=True)).best_params_ == {"C": 1.0}


def test_one_column_needs_two_classes():
    with pytest.raises(InputError, match="which column is which class is unclear"):
        metrics.accuracy(["a", "b", "c"], np.array([0.1, 0.6, 0.8]))


def test_by_hand_and_reference_values():
    y, probs = [0, 1], [[0.5, 0.5], [0.2, 0.8]]
    assert accuracy(y, probs) == 1.0  # of the tie the first class
    assert log_loss(y, probs) == pytest.approx((np.log(2) - np.log(0.8)) / 2)
    # (.25 + .25 + .04 + .04) / 2
    assert brier_score(y, probs) == pytest.approx(0.29)
    # methods.md 4, TOY
    assert accuracy(TOY_Y, TOY_X) == 0.5
    assert log_loss(TOY_Y, TOY_X) == pytest.approx(0.78771135, abs=5e-9)
    assert brier_score(TOY_Y, TOY_X) == pytest.approx(0.4615625, abs=1e-12)


def test_scikit_learn_agrees():
    rng = np.random.default_rng(1)
    probs, y, w = (
        rng.dirichlet(np.ones(4), 200),
        rng.integers(0, 4, 200),
        rng.random(200),
    )
    top = probs.argmax(axis=1)
    loss, hits = (
        sk.log_loss(y, probs, sample_weight=w),
        sk.accuracy_score(y, top, sample_weight=w),
    )
    assert log_loss(y, probs, sample_weight=w) == pytest.approx(loss)
    assert accuracy(y, probs, sample_weight=w) == pytest.approx(hits)


def test_a_true_class_of_probability_zero_is_infinite_unless_it_has_no_weight():
    y, probs = [1, 1], [[1.0, 0.0], [0.5, 0.5]]
    assert log_loss(y, probs) == np.inf
    assert log_loss(y, probs, sample_weight=[0, 1]) == pytest.approx(np.log(2))


def test_label_change():
    before, after = [[0.6, 0.4], [0.2, 0.8]], [[0.4, 0.6], [0.3, 0.7]]
    assert label_change(before, before) == 0.0
    assert label_change(before, after) == 0.5
    assert label_change(before, after, sample_weight=[3, 1]) == 0.75
    frame = pd.DataFrame(before, columns=["a", "b"])
    assert label_change(frame, frame[["b", "a"]]) == 0.0  # matched by name
    assert label_change(frame, frame.to_numpy()[:, ::-1]) == 1.0
    with pytest.raises(InputError, match=r"got shapes \(1, 2\) and \(2, 2\)"):
        label_change([[0.6, 0.4]], [[0.6, 0.4], [0.5, 0.5]])


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


HAND_X, HAND_Y = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]], [0, 0, 1, 0]
UNEVEN_X = [[0.9, 0.1]] * 3 + [[0.6, 0.4]]


BINNED = [
    # top label: .9 ok, .7 ok, .8 ok, .6 wrong; each in a bin of its own: gaps .1 .3 .2 .6
    (expected_calibration_error, {"n_bins": 10}, HAND_X, HAND_Y, 0.3),
    (
        expected_calibration_error,
        {"n_bins": 10, "norm": 2},
        HAND_X,
        HAND_Y,
        np.sqrt(0.5 / 4),
    ),
    (maximum_calibration_error, {"n_bins": 10}, HAND_X, HAND_Y, 0.6),
    # bins (.5, .75] with .7 ok, .6 wrong: gap .15; (.75, 1] with .9, .8 ok: gap .15
    (expected_calibration_error, {"n_bins": 4}, HAND_X, HAND_Y, 0.15),
    # class 0: .2 .4 | .7 .9 with hits 0 1 | 1 1: gaps |.3-.5|, |.8-1|; class 1 mirrors it
    (adaptive_calibration_error, {"n_bins": 2}, HAND_X, HAND_Y, 0.2),
    # bins count, not rows: of three rows at .9 two are right, the one at .6 is
    (
        average_calibration_error,
        {"n_bins": 10},
        UNEVEN_X,
        [0, 0, 1, 0],
        (1.3 - 2 / 3) / 2,
    ),
    # methods.md 4, TOY; the default is "sqrt", 4 bins here
    (expected_calibration_error, {}, TOY_X, TOY_Y, 0.309375),
    (expected_calibration_error, {"n_bins": 4}, TOY_X, TOY_Y, 0.309375),
    (expected_calibration_error, {"n_bins": 10}, TOY_X, TOY_Y, 0.309375),
    (expected_calibration_error, {"n_bins": 15}, TOY_X, TOY_Y, 0.309375),
    (expected_calibration_error, {"n_bins": 4, "norm": 2}, TOY_X, TOY_Y, 0.33824873),
    (expected_calibration_error, {"n_bins": 10, "norm": 2}, TOY_X, TOY_Y, 0.34675580),
    (expected_calibration_error, MASS | {"norm": 2}, TOY_X, TOY_Y, 0.34571140),
    (maximum_calibration_error, {}, TOY_X, TOY_Y, 0.46428571),
    (maximum_calibration_error, {"n_bins": 4}, TOY_X, TOY_Y, 0.46428571),
    (maximum_calibration_error, {"n_bins": 10}, TOY_X, TOY_Y, 0.49),
    (maximum_calibration_error, {"n_bins": 15}, TOY_X, TOY_Y, 0.5),
    (classwise_calibration_error, {"n_bins": 4}, TOY_X, TOY_Y, 0.08541667),
    (classwise_calibration_error, {"n_bins": 10}, TOY_X, TOY_Y, 0.2125),
    (adaptive_calibration_error, {"n_bins": 4}, TOY_X, TOY_Y, 0.1125),
]


def test_binned_errors_by_hand_and_reference_values():
    for metric, options, probs, y, value in BINNED:
        with case((metric.__name__, options)):
            assert metric(y, probs, **options) == pytest.approx(value, abs=5e-9)


def test_cifar_holdout():
    # methods.md 7: rows 8000 on of default_rng(0).permutation(10000), 45 bins: ECE .0406,
    # log loss .2295
    rows = load_cifar10_vgg16_keras().take(
        np.random.default_rng(0).permutation(10_000)[8000:]
    )
    assert expected_calibration_error(None, rows) == pytest.approx(0.0406, abs=5e-5)
    assert log_loss(None, rows) == pytest.approx(0.2295, abs=5e-5)


def test_five_lines_agree_on_edges():
    # votes of 100 trees: most confidences lie on an edge, and row sums are off by a rounding
    rng = np.random.default_rng(3)
    probs = rng.multinomial(100, rng.dirichlet(np.ones(3), 500)[0], 500) / 100
    probs = np.concatenate([probs, rng.multinomial(20, [0.2, 0.3, 0.5], 300) / 20])
    y = rng.integers(0, 3, 800)
    for n_bins in (2, 4, 5, 7, 10, 20, 25, 100):
        ours = expected_calibration_error(y, probs, n_bins=n_bins)
        assert ours == pytest.approx(five_line_ece(y, probs, n_bins), abs=1e-12), n_bins


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
    images = np.concatenate(
        [f + 2 * k for k in range(-3, 4)] + [2 * k - f for k in range(-3, 4)]
    )
    mass = np.tile(w * (hit - f), 14)
    r = np.zeros(len(t))
    for image, m in zip(images, mass, strict=True):
        r += m * np.exp(-0.5 * ((t - image) / bandwidth) ** 2)
    return np.abs(r).mean() / (bandwidth * np.sqrt(2 * np.pi))


def test_smooth_errors_by_hand_and_reference_values():
    # K_s integrates to 1, so one row has smECE_s = |hit - f| = .3 at every s, the fixed point too
    assert smooth_calibration_error([0], [[0.7, 0.3]]) == pytest.approx(0.3, abs=1e-8)
    assert smooth_calibration_error([0], [[0.7, 0.3]], bandwidth=0.02) == pytest.approx(
        0.3
    )
    # methods.md 4, TOY
    at_tenth = smooth_calibration_error(TOY_Y, TOY_X, bandwidth=0.1)
    assert at_tenth == pytest.approx(0.236083, abs=1e-6)
    assert smooth_calibration_error(TOY_Y, TOY_X) == pytest.approx(0.174372, abs=1e-6)


def test_the_definition_agrees():
    rng = np.random.default_rng(6)
    probs, y, weight = (
        rng.dirichlet(np.full(4, 0.3), 150),
        rng.integers(0, 4, 150),
        rng.random(150),
    )
    for bandwidth in (0.005, 0.03, 0.2, 0.9):
        error = smooth_calibration_error(
            y, probs, bandwidth=bandwidth, sample_weight=weight
        )
        assert error == pytest.approx(direct(y, probs, bandwidth, weight), rel=2e-5), (
            bandwidth
        )


def test_fixed_point_of_the_definition():
    rng = np.random.default_rng(7)
    probs = rng.dirichlet(np.full(4, 0.3), 400)
    y = draw(probs, rng)
    error = smooth_calibration_error(y, probs)
    assert direct(y, probs, error) == pytest.approx(error, abs=1e-6)


def test_bandwidth_is_checked():
    for bandwidth in (0.0, -1.0, np.nan):
        words = f"bandwidth must be positive or None; got bandwidth={bandwidth}"
        with pytest.raises(InputError, match=words):
            smooth_calibration_error(TOY_Y, TOY_X, bandwidth=bandwidth)
