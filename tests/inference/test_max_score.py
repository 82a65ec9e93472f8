from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import designs, draw, sample, simplex
from scipy.stats import binom, chi2
from toy import TOY_X, TOY_Y

from mcllo import Predictions, calibration_test
from mcllo._fit.fit import fit_each_baseline, fit_predictions
from mcllo._inference.calibration_test import (
    BaselineScores,
    best_baseline,
    max_score_test,
)
from mcllo.exceptions import SeparationWarning

TOY = Predictions.from_arrays(TOY_X, TOY_Y)
ALL = np.arange(3)


def plain_scores(probs, codes):
    """U' H^-1 U with row by row sums, one baseline after the other."""
    c = probs.shape[1]
    found = []
    for b in range(c):
        others = [j for j in range(c) if j != b]
        u, h = np.zeros(2 * (c - 1)), np.zeros((2 * (c - 1), 2 * (c - 1)))
        for x, y in zip(probs, codes, strict=True):
            z = np.hstack([np.eye(c - 1), np.diag(np.log(x[others] / x[b]))])
            residual = (np.array(others) == y) - x[others]
            u += z.T @ residual
            h += z.T @ (np.diag(x[others]) - np.outer(x[others], x[others])) @ z
        found.append(u @ np.linalg.solve(h, u))
    return np.array(found)


# --- by hand


def test_two_rows_by_hand():
    # x = (0.8, 0.2) and (0.2, 0.8), both labelled 0; l = -/+ log 4, residuals 0.2 and 0.8
    # U = (1, log 4 (0.2 - 0.8)), H = diag(0.32, 0.32 log(4)^2); S = 1 / 0.32 + 0.36 / 0.32 = 4.25
    p = Predictions.from_arrays([[0.8, 0.2], [0.2, 0.8]], [0, 0], classes=[0, 1])
    scores, _ = max_score_test(p, np.arange(2), n_resamples=19, seed=0)
    assert scores == pytest.approx([4.25, 4.25])
    assert scores.max() == pytest.approx(4.25)


# --- independent implementations


@settings(deadline=None, max_examples=15)
@given(designs(min_rows=12, max_classes=4, max_sharpness=2.0))
def test_scores_are_the_plain_ones(design):
    probs, codes = design
    p = Predictions.from_arrays(probs, codes, classes=range(probs.shape[1]))
    scores = BaselineScores(p, np.arange(p.n_classes))
    assert scores.observed() == pytest.approx(plain_scores(probs, codes), rel=1e-7)


def test_p_value_is_that_of_a_loop_over_draws():
    probs, codes = sample(15, 4, 1)
    u = np.random.default_rng(5).random((99, 15))  # the sampler of methods.md 5.3
    drawn = (u[:, :, None] > probs.cumsum(axis=1)[:, :-1]).sum(axis=2)
    observed = plain_scores(probs, codes).max()
    reached = sum(plain_scores(probs, row).max() >= observed - 1e-9 for row in drawn)
    p = Predictions.from_arrays(probs, codes, classes=range(4))
    _, found = max_score_test(p, np.arange(4), n_resamples=99, seed=5)
    assert found.pvalue == pytest.approx((1 + reached) / 100)
    assert (found.method, found.n_resamples, found.seed) == ("exact", 99, 5)


def test_p_value_is_near_that_of_all_labels():
    # 81 label vectors of 4 rows with their probabilities
    probs = simplex(np.random.default_rng(2), 4, 3)
    p = Predictions.from_arrays(probs, [0, 2, 1, 1], classes=range(3))
    observed = BaselineScores(p, ALL).observed().max()
    exact = 0.0
    for labels in product(range(3), repeat=4):
        other = Predictions.from_arrays(probs, labels, classes=range(3))
        if BaselineScores(other, ALL).observed().max() >= observed - 1e-9:
            exact += float(np.prod(probs[np.arange(4), labels]))
    found = max_score_test(p, ALL, n_resamples=4999, seed=3)[1].pvalue
    assert abs(found - exact) < 4 * np.sqrt(exact * (1 - exact) / 4999)
    assert 0.05 < exact < 0.95  # the comparison says something


def test_one_baseline_is_the_exact_score_test():
    single = calibration_test(
        TOY, statistic="score", method="exact", seed=4, n_resamples=499
    )
    scores, found = max_score_test(TOY, np.array([2]), seed=4, n_resamples=499)
    assert scores.max() == pytest.approx(single.statistic)
    assert found.pvalue == single.pvalue


# --- reference values: methods.md 0.4 and 8b, TOY


def test_toy_scores_and_p_value():
    scores, found = max_score_test(TOY, ALL, n_resamples=9999, seed=0)
    assert scores == pytest.approx([0.9559480156, 0.8315366381, 0.9895584940], abs=1e-9)
    assert found.pvalue == pytest.approx(0.9792, abs=1e-12)


# --- properties


@settings(deadline=None, max_examples=15)
@given(designs(min_rows=10, max_sharpness=2.0), st.randoms(use_true_random=False))
def test_permuting_classes_permutes_the_scores(design, random):
    probs, codes = design
    c = probs.shape[1]
    order = np.array(random.sample(range(c), c))
    p = Predictions.from_arrays(probs, codes, classes=range(c))
    q = Predictions.from_arrays(
        probs[:, order], np.argsort(order)[codes], classes=range(c)
    )
    scores = BaselineScores(p, np.arange(c)).observed()
    assert BaselineScores(q, np.arange(c)).observed() == pytest.approx(
        scores[order], rel=1e-6
    )


def test_logits_shifted_far_give_the_same_answer():
    logits = np.log(TOY_X) + np.arange(16)[:, None] * 1e3
    p = Predictions.from_arrays(logits=logits, y=TOY_Y)
    scores, found = max_score_test(p, ALL, n_resamples=299, seed=0)
    assert scores == pytest.approx(max_score_test(TOY, ALL, n_resamples=9)[0], abs=1e-7)
    assert found.pvalue == max_score_test(TOY, ALL, n_resamples=299, seed=0)[1].pvalue


def test_a_constant_class_costs_a_degree_of_freedom():
    # log odds of class 1 against 2 never vary: their gamma cannot be seen, with either baseline
    x = np.column_stack(
        [[0.2, 0.4, 0.6, 0.8], [0.4, 0.3, 0.2, 0.1], [0.4, 0.3, 0.2, 0.1]]
    )
    p = Predictions.from_arrays(x, [0, 1, 2, 0])
    scores = BaselineScores(p, ALL)
    assert scores.df == [4, 3, 3]
    assert np.isfinite(scores.observed()).all()


def test_a_label_that_was_all_but_excluded_is_not_lost_in_rounding():
    # class 2 has probability about 1e-20 in every row and comes true: S is about 1 / 1e-20
    logits = np.column_stack(
        [[0.0, 1.0, -1.0, 0.5], np.zeros(4), [-46.0, -47.0, -46.5, -45.0]]
    )
    p = Predictions.from_arrays(logits=logits, y=[0, 1, 2, 0], classes=[0, 1, 2])
    scores, found = max_score_test(p, ALL, n_resamples=99, seed=0)
    assert scores.max() > 1e15
    assert found.pvalue == 0.01


# --- size


@pytest.mark.slow
def test_size_on_sharp_rows():
    # labels follow the rows: the exact test must reject at its level, where the smallest of the
    # chi-square p-values rejects far too often
    rng = np.random.default_rng(20260218)
    probs = simplex(rng, 120, 4, 5.0)
    exact, smallest = [], []
    for rep in range(600):
        codes = draw(probs, rng)
        p = Predictions.from_arrays(probs, codes, classes=range(4))
        scores, found = max_score_test(p, np.arange(4), n_resamples=99, seed=rep)
        exact.append(found.pvalue)
        smallest.append(chi2.sf(scores.max(), 6))
    for level in (0.05, 0.1):
        low, high = binom.interval(0.999, 600, level)
        assert low <= np.sum(np.array(exact) <= level) <= high
    assert np.mean(np.array(smallest) <= 0.05) > 0.08


# --- the likeliest baseline


def test_toy():
    # methods.md 0.4: NLL 12.0408 (baseline 0), 12.1381 (1), 12.0303 (2); 8b: p .9810
    fit, found = best_baseline(TOY.with_baseline(1), seed=0)
    assert fit.baseline == 2
    assert fit.log_likelihood == pytest.approx(-12.0302758915, abs=1e-8)
    assert found.statistic == pytest.approx(0.98955849, abs=1e-8)
    assert (found.pvalue, found.method, found.n_resamples, found.seed) == (
        0.981,
        "exact",
        1999,
        0,
    )


def test_it_is_the_largest_of_the_single_fits():
    probs = simplex(np.random.default_rng(4), 80, 4)
    p = Predictions.from_arrays(probs, np.resize(range(4), 80))
    single = [fit_predictions(p.with_baseline(b)).statistic for b in range(4)]
    assert best_baseline(p, n_resamples=9)[0].baseline == int(np.argmax(single))
    assert np.ptp(single) > 0.1


def test_rounding_does_not_choose_between_two_classes():
    p = Predictions.from_arrays(
        simplex(np.random.default_rng(0), 50, 2), np.resize([0, 1, 1], 50)
    )
    for baseline in (0, 1):
        found, _ = best_baseline(p.with_baseline(baseline), n_resamples=9)
        assert found.baseline == baseline


def test_a_fit_that_exists_is_preferred():
    # 12 rows that only the last baseline separates: its supremum is the likeliest, -5.2 after -10.8
    probs = simplex(np.random.default_rng(102), 12, 3, sharpness=1.5)
    p = Predictions.from_arrays(probs, np.resize(range(3), 12))
    fits = fit_each_baseline(p, p.classes)
    assert [f.separated for f in fits] == [False, False, True]
    assert np.argmax([f.log_likelihood for f in fits]) == 2
    assert best_baseline(p, n_resamples=9)[0].baseline == 1


def test_a_fit_that_does_not_exist_is_warned_of_once():
    p = Predictions.from_arrays(TOY_X, TOY_X.argmax(axis=1))
    with pytest.warns(SeparationWarning, match="does not exist") as caught:
        assert best_baseline(p, n_resamples=9)[0].separated
    assert len(caught) == 1


@pytest.mark.slow
def test_the_p_value_pays_for_the_choice():
    # H0 holds. Chi-square at the likeliest baseline forgets that six were tried.
    rng = np.random.default_rng(7)
    probs = simplex(rng, 150, 6, sharpness=2.0)
    paid, forgot = [], []
    for rep in range(200):
        p = Predictions.from_arrays(probs, draw(probs, rng), classes=range(6))
        fit, found = best_baseline(p, n_resamples=99, seed=rep)
        paid.append(found.pvalue <= 0.05)
        forgot.append(chi2.sf(fit.statistic, fit.df) <= 0.05)
    low, high = binom.interval(0.999, 200, 0.05)
    assert low <= sum(paid) <= high
    assert sum(forgot) > high
