"""Data checks: recalibrations judged on their own rows, columns in another order, labels of other
rows.
"""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from independent import sample

from mcllo import MCLLOCalibrator, Predictions
from mcllo._apps.cli.options import FLAG_NAMES
from mcllo._diagnostics.data_checks import (
    LabelCovariances,
    LabelPredictionCounts,
    check_data,
    find_column_permutation,
    find_likelier_order,
    is_recalibrated_on_same_rows,
)
from mcllo._fit.fit import fit_predictions
from mcllo._inference.likelihood_tests import run_test
from mcllo._utils.statements import suppress_warnings
from mcllo._validation.predictions import as_predictions

NO_TEST = SimpleNamespace(why=None)


def said(probs, y, **options):
    """Return the data_checks of these rows, and the words of each kind."""
    with suppress_warnings():
        p = as_predictions(probs, y, **options)
        fit = fit_predictions(p)
        found = check_data(p, fit, run_test(p, fit, n_resamples=99, seed=0))
    return {hint.kind: hint for hint in found}


@pytest.fixture(scope="module")
def rows():
    """Return 1500 calibrated rows of four classes, fairly sharp."""
    return sample(1500, 4, seed=3, sharpness=3.0)


def test_calibrated_rows_get_no_finding(rows):
    assert said(*rows) == {}


def test_a_recalibration_judged_on_its_own_rows_is_noticed(rows):
    x, y = rows
    sharp = x**1.7 / (x**1.7).sum(axis=1, keepdims=True)
    with suppress_warnings():
        recalibrated = MCLLOCalibrator().fit(sharp, y).predict_proba(sharp)
    assert list(said(recalibrated, y)) == ["data_check.own_rows"]
    assert list(said(recalibrated.round(6), y, normalize=True)) == [
        "data_check.own_rows"
    ]


def test_a_recalibration_judged_on_other_rows_is_not(rows):
    x, y = rows
    with suppress_warnings():
        recalibrated = MCLLOCalibrator().fit(x[:750], y[:750]).predict_proba(x[750:])
    assert said(recalibrated, y[750:]) == {}


def test_few_distinct_rows_may_fit_exactly_by_chance():
    x = np.repeat([[0.3, 0.7], [0.6, 0.4]], 10, axis=0)
    y = [0] * 3 + [1] * 7 + [0] * 6 + [1] * 4
    p = Predictions.from_arrays(x, y)
    fit = fit_predictions(p)
    assert fit.statistic < 1e-9
    assert fit.converged
    assert not is_recalibrated_on_same_rows(p, fit, NO_TEST)


def test_weights_that_sum_to_one_make_no_small_statistic(rows):
    x, y = rows
    p = Predictions.from_arrays(
        x, y, sample_weight=np.full(1500, 1e-9), weight_kind="survey"
    )
    with suppress_warnings():
        fit = fit_predictions(p)
    assert fit.statistic < 1e-6
    assert not is_recalibrated_on_same_rows(p, fit, NO_TEST)


def test_rows_out_of_memory_have_only_the_first_data_check(rows):
    fit = SimpleNamespace(converged=True, separated=False, df=6, statistic=1e-9)
    many, few = (
        SimpleNamespace(n_samples=n, sample_weight=2.0 * n) for n in (10**6, 50)
    )
    assert [hint.kind for hint in check_data(many, fit, NO_TEST)] == [
        "data_check.own_rows"
    ]
    assert check_data(few, fit, NO_TEST) == []


def test_columns_in_another_order_are_named(rows):
    x, y = rows
    names = ["ant", "bee", "cat", "dog"]
    right = float(np.mean(x.argmax(axis=1) == y))
    for order in ([1, 0, 2, 3], [1, 2, 3, 0]):  # two exchanged, and all turned by one
        hint = said(x[:, order], np.array(names)[y])["data_check.columns"]
        # column j holds class order[j], so class order[j] is in the column called names[j]
        moved = {names[k]: names[j] for j, k in enumerate(order) if j != k}
        assert hint.numbers["columns"] == moved
        assert math.isclose(hint.numbers["exchanged"], right)
        assert hint.numbers["accuracy"] < right - 0.2
        assert "classes=" in hint.text


def test_the_command_line_is_not_told_of_arguments(rows):
    x, y = rows
    p = Predictions.from_arrays(x[:, ::-1], y)
    with suppress_warnings():
        (hint,) = check_data(p, fit_predictions(p), NO_TEST)
    assert hint.with_names(FLAG_NAMES).text.endswith("Check the names of the columns.")


def test_two_of_a_hundred_columns_are_found():
    x, y = sample(4000, 100, seed=0, sharpness=6.0)
    order = np.arange(100)
    order[[3, 50]] = [50, 3]
    hint = said_of_columns(x[:, order], y)
    assert np.flatnonzero(hint != np.arange(100)).tolist() == [3, 50]


def said_of_columns(x, y):
    c = x.shape[1]
    table = np.zeros((c, c))
    np.add.at(table, (y, x.argmax(axis=1)), 1.0)
    return find_column_permutation(LabelPredictionCounts(table, 1.0))


def test_one_bias_is_no_other_order():
    # everything is called 'dog': cats look like dogs, but dogs do not look like cats
    table = np.array([[5.0, 900.0], [3.0, 200.0]])
    assert find_column_permutation(LabelPredictionCounts(table, 1.0)) is None
    # and a class without rows looks like nothing
    assert (
        find_column_permutation(
            LabelPredictionCounts(np.array([[0.0, 900.0], [0.0, 0.0]]), 1.0)
        )
        is None
    )


def test_few_rows_or_dependent_ones_are_not_enough():
    # 2 classes: log(1e-6) - 2 log 2 = -15.2 needs 22 rows, each of which counts log 2
    swapped = np.array([[0.0, 11.0], [11.0, 0.0]])
    assert find_column_permutation(LabelPredictionCounts(swapped, 1.0)) is not None
    assert (
        find_column_permutation(
            LabelPredictionCounts(swapped - np.array([[0, 1], [0, 0]]), 1.0)
        )
        is None
    )
    assert find_column_permutation(LabelPredictionCounts(swapped, 0.5)) is None


def test_other_orders_are_found_in_two_hundred_rows_by_the_likelihood():
    rng = np.random.default_rng(8)
    n = 200
    honest = rng.dirichlet(np.full(4, 0.6), size=n)
    y = (honest.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    assert "data_check.columns" not in said(honest, y)
    n_said = 0
    for order in ([1, 0, 2, 3], [0, 3, 2, 1], [1, 2, 0, 3], [3, 0, 1, 2]):
        moved = honest[:, order]
        p = as_predictions(moved, y)
        found = find_likelier_order(p)
        # column j of `moved` holds class order[j]
        assert [order[j] for j in found] == [0, 1, 2, 3]
        n_said += "data_check.columns" in said(moved, y)
    assert n_said == 4


def test_the_likelihood_ratio_of_a_cycle_is_an_e_value():
    # its mean over labels drawn from calibrated rows is 1: sum_j x_j x_moved(j) / x_j, by hand
    x = np.array([0.2, 0.3, 0.5])
    moved = x[[1, 2, 0]]
    assert (x * moved / x).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("slope", [0.3, 1.0, 3.0])
def test_merely_bad_rows_are_in_their_order_by_likelihood(slope):
    rng = np.random.default_rng(4)
    n_found = 0
    for _ in range(150):
        c = int(rng.choice([2, 3, 8]))
        x = rng.dirichlet(np.full(c, rng.choice([0.1, 0.5, 2.0])), size=150) + 1e-9
        truth = x**slope * np.exp(rng.normal(0.0, 1.5, c))
        truth /= truth.sum(axis=1, keepdims=True)
        x /= x.sum(axis=1, keepdims=True)
        y = (truth.cumsum(axis=1) > rng.random((150, 1))).argmax(axis=1)
        p = Predictions.from_arrays(x, y, classes=range(c))
        n_found += find_likelier_order(p) is not None
        # labels that know nothing of the rows have no order either
        other = rng.integers(0, c, 150)
        p = Predictions.from_arrays(x, other, classes=range(c))
        n_found += find_likelier_order(p) is not None
    assert n_found == 0  # of 300; chance alone would give one in a million


def test_labels_of_other_rows_are_noticed(rows):
    x, y = rows
    shuffled = np.random.default_rng(0).permutation(y)
    hint = said(x, shuffled)["data_check.rows"]
    assert math.isclose(hint.numbers["accuracy"], np.mean(x.argmax(axis=1) == shuffled))
    assert said(x, shuffled, groups=np.arange(1500) // 100) == {}  # 15 rows' worth


def test_promise_and_variance_are_those_of_permutations():
    rng = np.random.default_rng(7)
    x, y = sample(60, 3, seed=8, sharpness=2.0)
    drawn = [x[np.arange(60), rng.permutation(y)].sum() for _ in range(20_000)]
    shares, spread = np.bincount(y, minlength=3) / 60, np.cov(x.T, bias=True)
    variance = 60 * (shares @ np.diag(spread) - shares @ spread @ shares)
    assert math.isclose(np.var(drawn), variance * 60 / 59, rel_tol=0.05)
    found = LabelCovariances.from_predictions(Predictions.from_arrays(x, y))
    assert math.isclose(60 * found.null_sd**2 * 60, variance)
    assert math.isclose(found.expected, spread.trace())
    own = x[np.arange(60), y].mean() - shares @ x.mean(axis=0)
    assert math.isclose(found.observed, own)


def test_rare_events_in_the_other_column_are_noticed():
    event = np.random.default_rng(0).beta(0.3, 6.0, 4000)
    y = (np.random.default_rng(1).random(4000) < event).astype(int)
    right = np.column_stack([1 - event, event])
    assert said(right, y) == {}
    # events are hardly ever the most probable class, so all rows look like events when turned
    hint = said(right[:, ::-1], y)["data_check.columns"]
    assert hint.numbers["columns"] == {0: 1, 1: 0}
    assert hint.numbers["exchanged"] > 0.9


def test_rows_that_weigh_nothing_and_single_rows_are_left_alone():
    p = Predictions.from_arrays([[0.9, 0.1], [0.2, 0.8]], [1, 0], sample_weight=[0, 1])
    with suppress_warnings():
        assert check_data(p.take([0]), fit_predictions(p), NO_TEST) == []
        assert check_data(p.take([1]), fit_predictions(p), NO_TEST) == []


def test_underconfident_or_few_labels_promise_too_little():
    x, y = sample(200, 3, seed=1, sharpness=0.3)
    y = np.random.default_rng(2).permutation(y)
    assert not LabelCovariances.from_predictions(
        Predictions.from_arrays(x, y)
    ).are_unrelated
    sharp = np.where(np.arange(3) == np.arange(90)[:, None] % 3, 0.98, 0.01)
    few = Predictions.from_arrays(sharp, [0] * 80 + [1] * 5 + [2] * 5)
    assert not LabelCovariances.from_predictions(few).are_unrelated
