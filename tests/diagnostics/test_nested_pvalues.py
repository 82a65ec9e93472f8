"""p-values of nested models: how they are computed, against loops, SciPy and simulation."""

import numpy as np
import pytest
from independent import direct_nll, draw, log_odds_of, power_formula, sample, simplex
from scipy.optimize import minimize
from scipy.stats import chi2
from shared_data import load_cifar10_vgg16_keras
from toy import TOY_X, TOY_Y

from mcllo import Predictions, calibration_test
from mcllo._diagnostics.nested_models import mcllo_bases
from mcllo._diagnostics.restricted_models import (
    Family,
    FullDraws,
    ProjectedScore,
    PValuePlan,
    against_identity,
    against_larger,
    gain,
    mcllo_places,
    nested_bound,
    restricted_fit,
)
from mcllo._inference.likelihood_tests import split_pvalue
from mcllo._inference.monte_carlo import StatisticDraws
from mcllo._model.batched import LikelihoodRatio
from mcllo._model.likelihood import recalibrate_from_log_odds
from mcllo.exceptions import InputError

TOY = Predictions.from_arrays(TOY_X, TOY_Y)
FAMILY, BASES = Family(TOY), mcllo_bases(2)


def fitted(*models, family=FAMILY):
    """Return the fits of these models of three classes."""
    return [restricted_fit(family, BASES[model]) for model in models]


def scored(small, large="mcllo", theta=FAMILY.identity):
    """Return the projected score of TOY for two models."""
    return ProjectedScore(FAMILY, theta, BASES[small], BASES[large])


def rows_of(probs, codes):
    return Predictions.from_arrays(probs, codes, classes=range(probs.shape[1]))


def plan_for(predictions=TOY, method="exact", n_resamples=199, **options):
    options = {"seed": 0, "n_tests": 8} | options
    return PValuePlan.from_predictions(
        predictions, method=method, n_resamples=n_resamples, **options
    )


def test_exact_p_value_of_mcllo_is_that_of_the_calibration_test():
    value = gain(*fitted("identity", "mcllo"))
    tail = against_identity(plan_for(n_resamples=1999), FAMILY, BASES["mcllo"], value)
    # methods specification 8e, TOY: B = 1999, seed 0
    assert tail.pvalue == pytest.approx(0.907, abs=1e-12)
    assert tail.method == "exact"
    assert tail.pvalue == calibration_test(TOY, method="exact", seed=0).pvalue


def test_chi_square_counts_the_difference_of_parameters():
    small, large = fitted("temperature", "mcllo")
    tail = against_larger(plan_for(method="chi2"), FAMILY, small, FAMILY, large)
    # methods specification 8f, TOY: 1.146211420 - .601303196 on 2 c - 3 = 3 df
    assert tail.pvalue == pytest.approx(chi2.sf(1.146211420 - 0.601303196, 3), abs=1e-7)


def shifted(probs, fit):
    """Return the rows after a fitted shift, written out."""
    odds = np.exp(fit.theta[:2]) * probs[:, :2] / probs[:, 2:]
    return np.column_stack([odds, np.ones(len(odds))]) / (
        1.0 + odds.sum(axis=1, keepdims=True)
    )


def test_bootstrap_draws_from_the_fitted_smaller_model():
    # an independent loop: draw labels from the fitted shift, refit both models one by one
    probs, y = sample(40, 3, 8)
    p = rows_of(probs, y)
    family = Family(p)
    small, large = fitted("shift", "mcllo", family=family)
    truth, hits = shifted(probs, small), 0
    for u in np.random.default_rng(0).random((99, 40)):
        codes = (u[:, None] > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
        other = Family(rows_of(probs, codes))
        hits += (
            gain(*fitted("shift", "mcllo", family=other)) >= gain(small, large) - 1e-6
        )
    tail = against_larger(plan_for(p, n_resamples=99), family, small, family, large)
    assert (tail.method, tail.n_resamples) == ("bootstrap", 99)
    assert tail.pvalue == (1 + hits) / 100


def test_weights_are_rows_written_out():
    weight = np.resize([2.0, 1.0, 0.0], len(TOY_Y))
    rows = np.repeat(np.arange(len(TOY_Y)), weight.astype(int))
    found = []
    for p in (
        Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=weight),
        TOY.take(rows),
    ):
        family = Family(p)
        small, large = fitted("scale", "mcllo", family=family)
        found.append(against_larger(plan_for(p), family, small, family, large).pvalue)
    assert found[0] == found[1]


def test_scores_of_the_fitted_smaller_model():
    # an independent loop over labels drawn from the fitted shift, scored at that fit
    small, large = fitted("shift", "mcllo")
    truth, terms = shifted(TOY_X, small), FAMILY.partition()(small.theta)

    def score(s):
        u, h = s - terms.gradient, terms.hessian
        return u @ np.linalg.solve(h, u) - u[:2] @ np.linalg.solve(h[:2, :2], u[:2])

    hits, logs = 0, np.log(TOY_X[:, :2] / TOY_X[:, 2:])
    for u in np.random.default_rng(0).random((300, 16)):
        codes = (u[:, None] > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
        marks = codes[:, None] == np.arange(2)
        s = np.concatenate([marks.sum(axis=0), (marks * logs).sum(axis=0)])
        hits += score(s) >= score(FAMILY.statistic) - 1e-9
        if hits == 20:
            break
    plan = plan_for(method="auto", n_resamples=300, work=384 * 60)
    tail = against_larger(plan, FAMILY, small, FAMILY, large)
    assert tail.method == "score"
    assert tail.pvalue == 20 / tail.n_resamples
    assert hits == 20


def test_far_off_models_have_a_bound_and_no_draws():
    rng = np.random.default_rng(0)
    probs = simplex(rng, 120, 3, 3.0)
    y = np.where(rng.random(120) < 0.5, probs.argmin(axis=1), draw(probs, rng))
    p = rows_of(probs, y)
    family, plan = Family(p), plan_for(p, "auto")
    identity, shift, mcllo = fitted("identity", "shift", "mcllo", family=family)
    for found in (
        against_identity(plan, family, BASES["mcllo"], gain(identity, mcllo)),
        against_larger(plan, family, shift, family, mcllo),
    ):
        assert (found.method, found.n_resamples) == ("bound", 0)
        assert found.pvalue < 1 / (20 * 200)
    assert (
        against_larger(plan_for(p), family, shift, family, mcllo).method == "bootstrap"
    )


def test_arguments_are_checked():
    weighted = Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=np.full(16, 0.5))
    for options, words in (
        ({"method": "bootstrap"}, "method must be"),
        ({"n_resamples": 0}, "n_resamples must be at least 1"),
        ({"work": -1.0}, "work must be a number of cells >= 0"),
        ({"predictions": weighted}, "must hold whole numbers"),
    ):
        with pytest.raises(InputError, match=words):
            plan_for(**options)


def test_too_few_rows_show_nothing():
    p = Predictions.from_arrays(TOY_X[:3], [0, 1, 2])
    assert nested_bound(p, BASES["identity"], BASES["mcllo"], full=False) == 1.0


def test_against_the_identity_it_is_the_split_ratio():
    p = Predictions.from_arrays(
        TOY_X[:, [2, 0, 1]], np.tile([0, 2], 8), classes=range(3)
    )
    found = nested_bound(p, BASES["identity"], BASES["mcllo"], full=False)
    assert found == pytest.approx(split_pvalue(p), rel=1e-8)


def test_against_scipy():
    # temperature against common slope on 40 rows; both halves, both ways, ridge 1 to the small fit
    rng = np.random.default_rng(6)
    probs = simplex(rng, 40, 3)
    y = draw(power_formula(probs, np.array([6.0, 0.3]), np.array([1.0, 1.0])), rng)
    odds, gains = log_odds_of(probs), []
    temperature, common = BASES["temperature"], BASES["common_slope"]
    start = np.array([0.0, 0.0, 1.0, 1.0])

    def nll(theta, half):
        return direct_nll(theta, odds[:, half::2], y[half::2])

    def best(basis, origin, half, ridge):
        def objective(beta):
            away = basis @ beta
            return nll(origin + away, half) + 0.5 * ridge * away @ away

        found = minimize(
            objective, np.zeros(basis.shape[1]), method="BFGS", options={"gtol": 1e-8}
        )
        return origin + basis @ found.x

    for half in (0, 1):
        learned = best(common, best(temperature, start, half, 0.0), half, 1.0)
        rival = best(temperature, start, 1 - half, 0.0)
        gains.append(nll(rival, 1 - half) - nll(learned, 1 - half))
    expected = min(1.0, 2.0 / np.exp(gains).sum())
    p = rows_of(probs, y)
    found = nested_bound(p, temperature, common, full=False)
    assert found == pytest.approx(expected, rel=1e-5)
    assert found < 0.5  # the comparison says something


def test_weights_count_rows():
    weight = np.resize(
        [2.0, 1.0], 16
    )  # rows of weight 2 in one half, of weight 1 in the other
    weighted = Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=weight)
    halves = np.empty(32, dtype=int)
    halves[::2] = np.repeat(np.arange(0, 16, 2), 2)
    halves[1::2] = np.resize(np.arange(1, 16, 2), 16)
    long = Predictions.from_arrays(
        TOY_X[halves], TOY_Y[halves], sample_weight=np.resize([1.0, 0.5], 32)
    )
    small, large = BASES["shift"], BASES["mcllo"]
    found = [nested_bound(p, small, large, full=False) for p in (weighted, long)]
    assert found[0] == pytest.approx(found[1], rel=1e-7)


@pytest.mark.slow
def test_it_seldom_falls_below_the_level():
    # the truth is a temperature: the bound is at most .2 in at most a fifth of 200 samples
    rng = np.random.default_rng(2)
    probs = simplex(rng, 100, 3, 1.5)
    truth = power_formula(probs, np.ones(2), np.full(2, 0.5))
    low = 0
    for _ in range(200):
        p = rows_of(probs, draw(truth, rng))
        low += nested_bound(p, BASES["temperature"], BASES["mcllo"], full=False) <= 0.2
    assert low / 200 < 0.2


def test_two_rows_by_hand():
    # x = (.8, .2) and (.2, .8), both labelled 0: u = (1, log 4 (.2 - .8)) and
    # H = diag(.32, .32 log(4)^2). All: 1 / .32 + .36 / .32 = 4.25; tau's part is 1 / .32 = 3.125
    p = Predictions.from_arrays([[0.8, 0.2], [0.2, 0.8]], [0, 0], classes=[0, 1])
    family, bases = Family(p), mcllo_bases(1)
    whole = ProjectedScore(family, family.identity, bases["identity"], bases["mcllo"])
    slope = ProjectedScore(family, family.identity, bases["shift"], bases["mcllo"])
    assert whole(family.statistic[None])[0] == pytest.approx(4.25)
    assert slope(family.statistic[None])[0] == pytest.approx(1.125)


def test_against_the_identity_it_is_the_score_of_the_calibration_test():
    score, drawn = scored("identity"), StatisticDraws(TOY, 0)(0, 50)
    np.testing.assert_allclose(
        score(drawn), LikelihoodRatio(TOY.log_odds).score_statistics(drawn), rtol=1e-9
    )
    # methods specification 0.4, TOY, baseline 2
    assert score(FAMILY.statistic[None])[0] == pytest.approx(0.9895584940, abs=1e-9)


def test_the_full_map():
    full, places = Family(TOY, full=True), mcllo_places(2)
    inside = np.zeros((6, 4))
    inside[places] = np.eye(4)
    score = ProjectedScore(full, full.identity, inside, np.eye(6))
    scores = score(FullDraws(TOY, 3)(0, 4000))
    assert scores.mean() == pytest.approx(2.0, abs=4.0 * scores.std() / np.sqrt(4000))


def test_ties_count_as_reached():
    score = scored("identity")
    rows = score.mean + np.outer([1.0, 1.001, 0.999], FAMILY.statistic - score.mean)
    assert score.reaches(rows, FAMILY.statistic).tolist() == [True, True, False]


def test_directions_without_information_are_left_out():
    # class 0 has the baseline's probability in every row: its log odds are 0, its slope is unseen
    middle = np.linspace(0.1, 0.5, 12)
    probs = np.column_stack([np.full(12, 0.2), middle, 0.6 - middle, np.full(12, 0.2)])
    p = Predictions.from_arrays(probs, np.resize([0, 1, 2, 3], 12))
    family, bases = Family(p), mcllo_bases(3)
    score = ProjectedScore(family, family.identity, bases["identity"], bases["mcllo"])
    scores = score(StatisticDraws(p, 0)(0, 4000))
    assert scores.mean() == pytest.approx(5.0, abs=4.0 * scores.std() / np.sqrt(4000))


def sizes(predictions, basis, truth, n_samples, seed, n_draws=99):
    """Return p-values of a true smaller model, by scores and 99 draws each."""
    rng = np.random.default_rng(seed)
    k, b = predictions.n_classes - 1, predictions.baseline_index
    everything, found = np.eye(2 * k), []
    for number in range(n_samples):
        p = rows_of(predictions.probs, draw(truth, rng))
        family = Family(p)
        fit = restricted_fit(family, basis)
        score = ProjectedScore(family, fit.theta, basis, everything)
        draws = StatisticDraws(p, 10_000 + number)
        draws.probs = recalibrate_from_log_odds(fit.theta, p.log_odds, b)
        reached = score.reaches(draws(0, n_draws), family.statistic)
        found.append((1 + reached.sum()) / (n_draws + 1))
    return np.array(found)


@pytest.mark.slow
def test_size_with_few_rows():
    # class 0 at the identity, class 1 far from it, 60 rows; 300 samples, sd of a rate of .1: .017
    rng = np.random.default_rng(21)
    probs = simplex(rng, 60, 3, 1.5)
    truth = power_formula(probs, np.array([1.0, 2.0]), np.array([1.0, 0.5]))
    p = Predictions.from_arrays(probs, np.resize([0, 1, 2], 60))
    found = sizes(p, np.eye(4)[:, [1, 3]], truth, 300, 5)
    assert abs(np.mean(found <= 0.1) - 0.1) < 3.5 * 0.017
    assert np.mean(found <= 0.05) < 0.05 + 3.5 * 0.0126


@pytest.mark.slow
def test_size_on_a_sharp_network():
    # 500 rows of a network, few expected errors for 18 parameters: chi-square rejects a true
    # temperature in about 11 % at 5 %; scores must not exceed 5 % (200 samples, sd .0154)
    p = load_cifar10_vgg16_keras().take(np.arange(500))
    basis = mcllo_bases(9)["temperature"]
    fit = restricted_fit(Family(p), basis)
    truth = recalibrate_from_log_odds(fit.theta, p.log_odds, p.baseline_index)
    found = sizes(p, basis, truth, 200, 6)
    assert np.mean(found <= 0.05) < 0.05 + 3.0 * 0.0154
    assert np.mean(found <= 0.5) > 0.3  # and not because nothing is ever rejected
