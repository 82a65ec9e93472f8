import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import direct_nll, draw, log_odds_of, sample, simplex
from shared_data import load_cifar10_vgg16_keras
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._diagnostics.nested_models import mcllo_bases
from mcllo._diagnostics.restricted_models import (
    Family,
    FullDraws,
    likelihood_ratio,
    mcllo_places,
    restricted_fit,
)
from mcllo._fit.fit import fit_predictions
from mcllo._fit.objective import free_parameters
from mcllo._inference.monte_carlo import StatisticDraws, draw_labels
from mcllo._model import batched as batched_labels
from mcllo._model.batched import LikelihoodRatio, NestedLikelihoodRatio
from mcllo._model.kernel import LogPartition
from mcllo._model.likelihood import (
    identity_theta,
    recalibrate_from_log_odds,
    sufficient_statistic,
)
from mcllo._utils.parallel import threads
from mcllo.exceptions import MclloWarning

pytestmark = pytest.mark.usefixtures("both_kernels")
quick = settings(deadline=None, max_examples=10)
TOY = Predictions.from_arrays(TOY_X, TOY_Y)
TOY_L = TOY.log_odds


def drawn(probs, rng, size):
    """Return label vectors drawn from the rows and their sufficient statistics."""
    labels = np.array([draw(probs, rng) for _ in range(size)])
    odds = log_odds_of(probs)
    return labels, np.array([sufficient_statistic(odds, codes) for codes in labels])


def fitted_statistic(probs, codes, weight=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MclloWarning)
        c, options = probs.shape[1], {"sample_weight": weight, "clip": 0.0}
        predictions = Predictions.from_arrays(
            probs, codes, classes=range(c), baseline=c - 1, **options
        )
        return fit_predictions(predictions).statistic


def assert_decisions_equal_convergence(
    ratio, statistics, thresholds=None, converged=None
):
    """Compare decisions with ratios of full convergence, at quantiles of them by default."""
    full = (converged or ratio.statistics)(statistics)
    if thresholds is None:
        thresholds = np.quantile(full, [0.1, 0.5, 0.8, 0.9, 0.95, 0.99]) + 0.01
    for threshold in thresholds:
        clear = np.abs(full - threshold) > 1e-5 * max(1.0, threshold)
        found = ratio.reaches(statistics, float(threshold))
        np.testing.assert_array_equal(found[clear], full[clear] >= threshold)


def sharp_rows(rng, n, c, tie, far):
    """Return rows whose winner leads by `far` in log odds, but for four that lead by `tie`."""
    scores = np.zeros((n, c))
    scores[np.arange(n), rng.integers(0, c, size=n)] = far
    scores[:4] *= tie / far
    rows = np.exp(scores)
    return rows / rows.sum(axis=1, keepdims=True)


def pair(predictions, small, large, origin):
    """The ratio of two models of the nested models, both from `origin`, and of plain
    convergence.
    """
    family, bases = Family(predictions), mcllo_bases(predictions.n_classes - 1)
    low, up = (
        likelihood_ratio(family, family.identified(bases[m]), origin)
        for m in (small, large)
    )
    places = np.arange(len(origin))
    return NestedLikelihoodRatio(
        low, up, places
    ), lambda s: up.statistics(s) - low.statistics(s)


# --- fixed point, hand


def test_the_expected_statistic_has_ratio_and_score_zero():
    ratio = LikelihoodRatio(TOY_L)
    expected = LogPartition(TOY_L)(identity_theta(2)).gradient
    np.testing.assert_allclose(ratio.statistics(expected[None]), 0.0, atol=1e-12)
    np.testing.assert_allclose(ratio.score_statistics(expected[None]), 0.0, atol=1e-12)


def test_two_rows_by_hand():
    # log odds +-log 3: x = 3/4 and 1/4. Labels (0, baseline): likelihood (3/4)^2 at the identity,
    # supremum 1: lambda = -4 log(3/4). Labels (0, 0): 3/4 * 1/4, supremum 1: -2 log(3/16).
    # s = (counts of 0; sum of their log odds) = (1, log 3) and (2, 0)
    odds = np.array([[np.log(3.0), -np.log(3.0)]])
    found = LikelihoodRatio(odds).statistics(np.array([[1.0, np.log(3.0)], [2.0, 0.0]]))
    np.testing.assert_allclose(
        found, [-4.0 * np.log(0.75), -2.0 * np.log(3.0 / 16.0)], rtol=1e-8
    )


def test_toy_score():
    # methods specification 0.4, TOY, baseline 2
    s = sufficient_statistic(TOY_L, TOY_Y)
    assert LikelihoodRatio(TOY_L).score_statistics(s[None])[0] == pytest.approx(
        0.9895584940, rel=1e-9
    )
    assert LikelihoodRatio(TOY_L).statistics(s[None])[0] == pytest.approx(
        1.1462114203, rel=1e-8
    )


# --- an independent implementation: one fit for each draw


@quick
@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 5),
    st.integers(2, 40),
    st.floats(0.3, 6.0),
)
def test_statistics_equal_single_fits(seed, c, n, sharpness):
    rng = np.random.default_rng(seed)
    probs = np.maximum(simplex(rng, n, c, sharpness), 1e-12)
    probs /= probs.sum(axis=1, keepdims=True)
    labels, statistics = drawn(probs, rng, 5)
    found = LikelihoodRatio(log_odds_of(probs)).statistics(statistics)
    expected = [fitted_statistic(probs, codes) for codes in labels]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_statistics_equal_single_fits_with_weights():
    rng = np.random.default_rng(2)
    weight = rng.integers(0, 4, size=16).astype(float)
    labels = np.array([draw(TOY_X, rng) for _ in range(20)])
    statistics = np.array(
        [sufficient_statistic(TOY_L, codes, weight) for codes in labels]
    )
    found = LikelihoodRatio(TOY_L, weight).statistics(statistics)
    expected = [fitted_statistic(TOY_X, codes, weight) for codes in labels]
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)


def test_statistics_equal_single_fits_with_constant_log_odds():
    # class 0 is always twice the baseline: its gamma is fixed
    rng = np.random.default_rng(3)
    middle = rng.uniform(0.05, 0.9, size=30)
    probs = np.column_stack([(1.0 - middle) * 2 / 3, middle, (1.0 - middle) / 3])
    labels, statistics = drawn(probs, rng, 20)
    odds = log_odds_of(probs)
    free = free_parameters(odds)
    assert free.tolist() == [True, True, False, True]
    ratio = LikelihoodRatio(odds, None, free)
    expected = [fitted_statistic(probs, codes) for codes in labels]
    np.testing.assert_allclose(
        ratio.statistics(statistics), expected, rtol=1e-7, atol=1e-8
    )
    assert_decisions_equal_convergence(ratio, statistics, [1.0, 3.0, 6.0])


def test_neither_parts_nor_threads_change_a_bit(monkeypatch):
    statistics = StatisticDraws(TOY, 0)(0, 100)
    ratio = LikelihoodRatio(TOY_L)
    nested, _ = pair(TOY, "temperature", "mcllo", Family(TOY).identity)
    usual, reached = ratio.statistics(statistics), nested.reaches(statistics, 5.0)
    assert 0 < reached.sum() < 100
    monkeypatch.setattr(batched_labels, "MIN_LOG_ODDS_FOR_THREADS", 1)
    for together, n in [(1, 1), (7, 2), (64, 3)]:
        monkeypatch.setattr(batched_labels, "N_DRAWS_PER_TASK", together)
        with threads(n):
            found = ratio.statistics(statistics)
            np.testing.assert_allclose(found, usual, rtol=0.0, atol=1e-12)
            np.testing.assert_array_equal(ratio.reaches(statistics, 5.0), usual >= 5.0)
            np.testing.assert_array_equal(nested.reaches(statistics, 5.0), reached)


# --- decisions


@quick
@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 5),
    st.integers(3, 60),
    st.floats(0.3, 12.0),
)
def test_decisions_equal_full_convergence(seed, c, n, sharpness):
    rng = np.random.default_rng(seed)
    probs = np.maximum(simplex(rng, n, c, sharpness), 1e-15)
    _, statistics = drawn(probs / probs.sum(axis=1, keepdims=True), rng, 30)
    assert_decisions_equal_convergence(LikelihoodRatio(log_odds_of(probs)), statistics)


@quick
@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 4),
    st.integers(6, 60),
    st.floats(-3.0, -1.0),
    st.floats(4.0, 14.0),
)
def test_decisions_where_few_rows_are_undecided(seed, c, n, tie, far):
    # here lambda can be hundreds of score statistics, and the decrement falls a hundredfold before
    # Newton finds what there is to gain: no rule of thumb on decrements survives this test
    rng = np.random.default_rng(seed)
    probs = sharp_rows(rng, n, c, 10.0**tie, far)
    _, statistics = drawn(probs, rng, 24)
    odds = log_odds_of(probs)
    ratio = LikelihoodRatio(odds, None, free_parameters(odds))
    assert_decisions_equal_convergence(ratio, statistics)


def test_a_design_that_defeats_multiples_of_the_score():
    # 4 rows at log odds -/+ .005, 1000 at -/+ 12. When the four come out right, gamma to infinity
    # gains lambda = 8 log 2 = 5.5, hundreds of score statistics; one draw in sixteen does
    odds = np.concatenate([np.tile([0.005, -0.005], 2), np.tile([12.0, -12.0], 500)])
    probs = 1.0 / (1.0 + np.exp(np.column_stack([-odds, odds])))
    right = sufficient_statistic(odds[None], (odds < 0.0).astype(int))[None]
    ratio = LikelihoodRatio(odds[None])
    assert ratio.statistics(right)[0] == pytest.approx(8.0 * np.log(2.0), abs=0.15)
    assert ratio.statistics(right)[0] > 600.0 * ratio.score_statistics(right)[0]
    p = Predictions.from_arrays(probs, (odds < 0.0).astype(int))
    nested, _ = pair(
        p, "shift", "mcllo", identity_theta(1)
    )  # a shift gains nothing here
    for threshold, reached in ((4.0, True), (5.4, True), (5.8, False)):
        assert ratio.reaches(right, threshold)[0] == reached
        assert nested.reaches(right, threshold)[0] == reached
    _, statistics = drawn(probs, np.random.default_rng(0), 60)
    assert_decisions_equal_convergence(ratio, statistics, [0.5, 2.0, 5.0])


def test_ties_count_as_reached():
    # draws repeat the observed labels often when rows are sharp; rounding must not part them
    rng = np.random.default_rng(6)
    probs = simplex(rng, 25, 3, 6.0)
    labels, statistics = drawn(probs, rng, 40)
    ratio = LikelihoodRatio(log_odds_of(probs))
    for codes, s in zip(labels[:10], statistics, strict=False):
        observed = fitted_statistic(probs, codes)
        same = (labels == codes).all(axis=1)
        assert ratio.reaches(statistics, observed)[same].all()
        assert ratio.reaches(s[None], observed)[0]


@pytest.mark.slow
def test_decisions_on_a_sharp_network():
    rows, rng = load_cifar10_vgg16_keras().probs, np.random.default_rng(200)
    probs = rows[rng.permutation(len(rows))[:200]]
    _, statistics = drawn(probs, rng, 150)
    assert_decisions_equal_convergence(LikelihoodRatio(log_odds_of(probs)), statistics)


def test_extreme_log_odds_give_finite_statistics():
    # labels that are all right: lambda is -2 log likelihood at the identity; and random labels
    rng = np.random.default_rng(0)
    odds = 700.0 * rng.normal(size=(2, 30))
    right = np.vstack([odds, np.zeros(30)]).argmax(axis=0)
    labels = [right, rng.integers(0, 3, size=30)]
    statistics = np.array([sufficient_statistic(odds, codes) for codes in labels])
    ratio = LikelihoodRatio(odds)
    found = ratio.statistics(statistics)
    assert found[0] == pytest.approx(
        2.0 * direct_nll(identity_theta(2), odds, right), abs=1e-8
    )
    assert np.isfinite(found).all()
    assert np.isfinite(ratio.score_statistics(statistics)).all()


# --- properties of the null distribution


def test_the_mean_score_is_the_degrees_of_freedom():
    # E[U' H^-1 U] = d exactly, because Cov U = H under H0; 4 here, standard error .05
    statistics = StatisticDraws(TOY, 0)(0, 4000)
    scores = LikelihoodRatio(TOY_L).score_statistics(statistics)
    assert scores.mean() == pytest.approx(4.0, abs=4.0 * scores.std() / np.sqrt(4000))


def test_no_draw_exceeds_a_likelihood_of_1():
    labels = draw_labels(TOY_X, 0, 0, 500)
    log_likelihood = np.log(TOY_X)[np.arange(16), labels].sum(axis=1)
    statistics = np.array([sufficient_statistic(TOY_L, codes) for codes in labels])
    assert (
        LikelihoodRatio(TOY_L).statistics(statistics) <= -2.0 * log_likelihood + 1e-8
    ).all()


def fitted_draws(predictions, theta, seed, size):
    draws = StatisticDraws(predictions, seed)
    draws.probs = recalibrate_from_log_odds(
        theta, predictions.log_odds, predictions.baseline_index
    )
    return draws(0, size)


def test_a_model_gains_nothing_over_itself():
    origin = Family(TOY).identity
    ratio, _ = pair(TOY, "shift", "shift", origin)
    statistics = StatisticDraws(TOY, 0)(0, 20)
    assert ratio.reaches(statistics, 0.0).all()
    assert not ratio.reaches(statistics, 0.01).any()
    assert ratio.reaches(statistics[:0], 1.0).shape == (0,)


def test_toy_statistic_is_its_own_threshold():
    # methods specification 8f, TOY: MCLLO against temperature is 1.146211420 - .601303196
    family = Family(TOY)
    ratio, _ = pair(TOY, "temperature", "mcllo", family.identity)
    value = 1.146211420 - 0.601303196
    assert ratio.reaches(family.statistic[None], value).all()
    assert not ratio.reaches(family.statistic[None], value + 1e-4).any()


@settings(deadline=None, max_examples=10)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(3, 4),
    st.integers(10, 60),
    st.floats(0.3, 6.0),
    st.sampled_from(["temperature", "shift", "scale", "common_slope"]),
)
def test_decisions_equal_full_convergence_nested_ratio(seed, c, n, sharpness, small):
    rng = np.random.default_rng(seed)
    probs = np.maximum(simplex(rng, n, c, sharpness), 1e-12)
    probs /= probs.sum(axis=1, keepdims=True)
    p = Predictions.from_arrays(probs, draw(probs, rng), classes=range(c))
    family = Family(p)
    fit = restricted_fit(family, family.identified(mcllo_bases(c - 1)[small]))
    origin = fit.theta if fit.settled else family.identity
    statistics = fitted_draws(p, fit.theta, 1, 15)
    ratio, converged = pair(p, small, "mcllo", origin)
    assert_decisions_equal_convergence(ratio, statistics, converged=converged)


def test_decisions_for_the_full_map():
    probs, y = sample(60, 3, 3, 2.0)
    p = Predictions.from_arrays(probs, y, classes=range(3))
    mcllo, full, places = Family(p), Family(p, full=True), mcllo_places(2)
    low = likelihood_ratio(mcllo, np.eye(4), mcllo.identity)
    up = likelihood_ratio(full, np.eye(6), full.identity)
    assert_decisions_equal_convergence(
        NestedLikelihoodRatio(low, up, places),
        FullDraws(p, 0)(0, 40),
        converged=lambda s: up.statistics(s) - low.statistics(s[:, places]),
    )


@pytest.mark.slow
def test_decisions_on_a_sharp_network_nested_ratio():
    p = load_cifar10_vgg16_keras().take(np.arange(300))
    family = Family(p)
    fit = restricted_fit(family, mcllo_bases(9)["shift"])
    ratio, converged = pair(p, "shift", "mcllo", fit.theta)
    draws = fitted_draws(p, fit.theta, 2, 60)
    assert_decisions_equal_convergence(ratio, draws, converged=converged)
