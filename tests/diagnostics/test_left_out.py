"""Tests that leave classes out: by hand, against two-class tests, exact by counting all labels."""

import itertools

import numpy as np
import pytest
from independent import draw, simplex

from mcllo import Predictions, calibration_test
from mcllo._diagnostics.left_out import N_DRAWS_OF_COSTLY_SET, LeaveOut


def leave_out(probs, y, alpha=0.05, seed=0, **options):
    keep = {k: options.pop(k) for k in ("n_resamples", "work") if k in options}
    p = Predictions.from_arrays(probs, y, classes=list(range(len(probs[0]))), **options)
    return LeaveOut(p, alpha=alpha, seed=seed, **keep)


def test_by_hand():
    # class 2 left out: row 2 (label 2) goes, and (.2, .2) becomes (.5, .5), (.1, .3) (1/4, 3/4).
    # q_0 = .5, .25; f_0 = 0, -log 3; labels 0 and 1: residuals .5 and -.25
    # U = (.25, .25 log 3); V = (.25 + .1875, -.1875 log 3; ., .1875 log^2 3)
    # in units of log 3: U = (.25, .25), V = (.4375, -.1875; -.1875, .1875), |V| = .046875
    # U' V^-1 U = (.1875 + 2 * .1875 + .4375) * .0625 / .046875 = 4/3
    found = leave_out([[0.2, 0.2, 0.6], [0.1, 0.3, 0.6], [0.3, 0.3, 0.4]], [0, 1, 2])(
        {2}
    )
    assert found.statistic == pytest.approx(4 / 3)
    np.testing.assert_allclose(found.scores, [4 / 3, 4 / 3, 0.0])
    assert found.kept_classes_most_off_first.tolist() == [0, 1]  # of equals the first


@pytest.mark.parametrize("out", [0, 1, 2])
def test_two_classes_left_are_the_two_class_score_test(out):
    rng = np.random.default_rng(out)
    probs, y = simplex(rng, 400, 3), rng.integers(0, 3, 400)
    kept = [k for k in range(3) if k != out]
    rows = probs[y != out][:, kept]
    rows /= rows.sum(axis=1, keepdims=True)
    labels = np.searchsorted(kept, y[y != out])
    expected = calibration_test(
        rows, labels, classes=[0, 1], statistic="score", method="chi2"
    )
    found = leave_out(probs, y)({out})
    assert found.statistic == pytest.approx(expected.statistic)
    assert (found.pvalue, found.method) == (pytest.approx(expected.pvalue), "chi2")


def test_each_class_is_held_to_its_own_odds():
    # four classes, one left out: the largest of three one-against-the-rest scores, times three
    rng = np.random.default_rng(5)
    probs, y = simplex(rng, 300, 4), rng.integers(0, 4, 300)
    rows = probs[y != 1][:, [0, 2, 3]]
    rows /= rows.sum(axis=1, keepdims=True)
    tests = [
        calibration_test(
            np.column_stack([rows[:, j], 1 - rows[:, j]]),
            (y[y != 1] != k).astype(int),
            classes=[0, 1],
            statistic="score",
            method="chi2",
        )
        for j, k in enumerate([0, 2, 3])
    ]
    found = leave_out(probs, y)({1})
    np.testing.assert_allclose(
        found.scores[[0, 2, 3]], [test.statistic for test in tests]
    )
    assert found.pvalue == pytest.approx(
        min(1.0, 3 * min(test.pvalue for test in tests))
    )
    assert (
        found.kept_classes_most_off_first[0]
        == [0, 2, 3][int(np.argmax([test.statistic for test in tests]))]
    )


def test_few_rows_are_simulated_and_the_p_value_is_exact():
    rng = np.random.default_rng(8)
    probs, y = simplex(rng, 9, 3), np.array([0, 1, 0, 0, 1, 1, 0, 2, 2])
    rows = probs[:7, :2] / probs[:7, :2].sum(axis=1, keepdims=True)
    value, tail = leave_out(probs, y)({2}).statistic, 0.0
    for labels in itertools.product(
        [0, 1], repeat=7
    ):  # all 128, each with its probability
        own = leave_out(np.vstack([probs[:7], probs[7:]]), [*labels, 2, 2])
        own.draws = False
        if own({2}).statistic >= value * (1 - 1e-9):
            tail += float(np.prod(rows[np.arange(7), labels]))
    found = leave_out(probs, y, alpha=0.999, n_resamples=3999)({2})
    assert found.method == "exact"
    assert found.pvalue == pytest.approx(
        tail, abs=4 * np.sqrt(tail * (1 - tail) / 3999)
    )


def test_draws_stop_as_soon_as_they_decide():
    rng = np.random.default_rng(2)
    probs = simplex(rng, 60, 4)
    found = leave_out(probs, draw(probs, rng))({0})
    assert found.method == "exact"
    assert found.pvalue > 0.05  # 20 of fewer than 400 draws
    assert (20 / found.pvalue) == pytest.approx(round(20 / found.pvalue))


def test_a_p_value_that_is_small_anyway_is_not_simulated():
    rng = np.random.default_rng(2)
    probs = rng.dirichlet(np.ones(4), 60)
    found = leave_out(probs, probs.argmin(axis=1))({0})
    assert found.method == "chi2"
    assert found.pvalue < 1e-6


def test_whole_weights_are_repeated_rows_and_fractions_are_not_drawn():
    rng = np.random.default_rng(4)
    probs, y, times = (
        simplex(rng, 80, 4),
        rng.integers(0, 4, 80),
        rng.integers(0, 4, 80),
    )
    once = leave_out(np.repeat(probs, times, axis=0), np.repeat(y, times))({1})
    assert leave_out(probs, y, sample_weight=times)({1}).pvalue == once.pvalue
    half = leave_out(probs, y, sample_weight=times + 0.5)({1})
    assert half.method == "chi2"
    twice = leave_out(probs, y, sample_weight=2 * times + 1.0)
    twice.draws = False
    assert twice({1}).statistic == pytest.approx(2 * half.statistic)


def test_rows_beyond_the_budget_are_left_out_and_draws_become_few():
    rng = np.random.default_rng(4)
    probs = simplex(rng, 3000, 10)
    y = draw(probs, rng)
    tests = leave_out(probs, y, work=2.4e5)
    assert (tests.n_samples, tests.n_resamples) == (1200, N_DRAWS_OF_COSTLY_SET)
    assert (
        tests({3}).pvalue == leave_out(probs, y, work=2.4e5)({3}).pvalue
    )  # from the seed alone


def test_a_constant_class_has_no_slope_and_no_rows_no_evidence():
    constant = np.tile([0.5, 0.3, 0.2], (40, 1))
    found = leave_out(constant, [0, 1] * 20)({2})
    # q = (5/8, 3/8), 20 of 40: (20 - 25)^2 / (40 * 15/64)
    assert found.statistic == pytest.approx(25 / (40 * 15 / 64))
    nobody = leave_out(constant, [2] * 40)({2})
    assert (nobody.statistic, nobody.pvalue) == (0.0, 1.0)


def test_sharp_rows_and_the_smallest_probabilities():
    rng = np.random.default_rng(1)
    scores = 300.0 * rng.normal(size=(50, 4))
    p = Predictions.from_arrays(y=rng.integers(0, 4, 50), logits=scores)
    found = LeaveOut(p, alpha=0.05, seed=0)({0})
    assert np.isfinite(found.scores).all()
    assert 0.0 < found.pvalue <= 0.05
