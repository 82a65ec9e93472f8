"""Simulated rows and labels: do they have the distribution that their names say?"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcllo import MCLLOMap, Predictions
from mcllo._math.likelihood import identity_theta
from mcllo.simulate._design import Named, Resampled, draw_codes, draw_tilted, model_order

HEAVY = Named("dirichlet_heavy", 10, np.append(3.0, np.full(9, 0.3)), 1.0)
ABC = ["a", "b", "c"]


def streams(*seeds):
    return [np.random.default_rng(seed) for seed in seeds]


def surprise(g, codes):
    """Return each class's distance from its expected count, in standard deviations."""
    counts = np.bincount(codes, minlength=g.shape[1])
    return (counts - g.sum(axis=0)) / np.sqrt((g * (1.0 - g)).sum(axis=0))


def one(design, theta, n, seed):
    """Return the table of one stream."""
    return design.sample(np.asarray(theta), n, streams(seed)).predictions(0)


def test_the_identity_leaves_the_rows_calibrated():
    p = one(HEAVY, identity_theta(9), 20_000, 0)
    assert np.abs(surprise(p.probs, p.codes)).max() < 3.5


def test_labels_by_hand():
    # x = (.5, .3, .2), the last class the baseline. Identity: edges .5, .8.
    odds = np.log([[0.5 / 0.2] * 3, [0.3 / 0.2] * 3])
    u = np.array([[0.49, 0.79, 0.81]])
    assert draw_codes(identity_theta(2), odds[:, None], u).tolist() == [[0, 1, 2]]
    # delta_1 = 2: weights (1, .3, .2) / 1.5, edges .6667, .8667
    theta = np.array([np.log(2.0), 0.0, 1.0, 1.0])
    u = np.array([[0.66, 0.86, 0.87]])
    assert draw_codes(theta, odds[:, None], u).tolist() == [[0, 1, 2]]
    x = np.array([[0.5] * 3, [0.3] * 3, [0.2] * 3])[:, None]
    assert draw_tilted(theta[:2], x, u).tolist() == [[0, 1, 2]]


def test_without_exponents_labels_are_drawn_from_the_same_map():
    rng = np.random.default_rng(3)
    x = rng.dirichlet(np.ones(5), (2, 3000)).transpose(2, 0, 1)
    tau, u = np.log([0.5, 1.0, 2.0, 3.0]), rng.random((2, 3000))
    theta = np.concatenate([tau, np.ones(4)])
    same = draw_codes(theta, np.log(x[:-1]) - np.log(x[-1]), u)
    np.testing.assert_array_equal(draw_tilted(tau, x, u), same)


def test_labels_follow_the_map_and_not_the_rows():
    tau, gamma = np.log(np.linspace(0.5, 2.0, 9)), np.linspace(0.6, 1.4, 9)
    p = one(HEAVY, [*tau, *gamma], 20_000, 1)
    g = MCLLOMap(tau, gamma, p.classes, p.baseline).recalibrate(p.probs)
    assert np.abs(surprise(g, p.codes)).max() < 3.5
    assert np.abs(surprise(p.probs, p.codes)).max() > 10.0
    sharp = g.max(axis=1) > 0.8  # not only on average over all rows
    assert np.abs(surprise(g[sharp], p.codes[sharp])).max() < 3.5


@pytest.mark.parametrize("alpha", [np.append(3.0, np.full(9, 0.3)), np.ones(4), [0.5, 2.0]])
def test_dirichlet_moments(alpha):
    alpha = np.asarray(alpha, dtype=float)
    design = Named("dirichlet", len(alpha), alpha, 1.0)
    x = one(design, identity_theta(len(alpha) - 1), 40_000, 2).probs
    total = alpha.sum()  # mean a/A, variance a (A - a) / (A^2 (A + 1))
    mean, variance = alpha / total, alpha * (total - alpha) / (total**2 * (total + 1.0))
    assert np.abs(x.mean(axis=0) - mean).max() < 4.0 * np.sqrt(variance.max() / 40_000)
    np.testing.assert_allclose(x.var(axis=0), variance, rtol=0.1)
    np.testing.assert_allclose(x.sum(axis=1), 1.0, rtol=1e-12)
    assert x.min() >= 0.99e-6


def test_softmax_normal_moments():
    p = one(Named("softmax_normal", 3, np.ones(3), 2.0), identity_theta(2), 20_000, 3)
    # log(x_1 / x_3) is the difference of two normals: variance 2 * 2^2
    assert p.log_odds.mean() == pytest.approx(0.0, abs=0.1)
    assert p.log_odds.var() == pytest.approx(8.0, rel=0.05)


def abc(n, seed, baseline):
    probs = np.random.default_rng(seed).dirichlet([1, 2, 3], n)
    return Resampled(Predictions.from_arrays(probs, ["a"] * n, classes=ABC, baseline=baseline))


def test_a_sample_and_its_predictions_agree():
    sample = abc(50, 0, "b").sample(np.array([0.3, 0.0, 1.0, 2.0]), 30, streams(4, 5))
    for b in range(2):
        p = sample.predictions(b)
        assert (p.classes, p.baseline) == (("a", "b", "c"), "b")
        np.testing.assert_allclose(p.log_odds, sample.log_odds[:, b], rtol=1e-12)
        assert p.model_codes.tolist() == sample.model_codes[b].tolist()


def test_the_baseline_may_stand_anywhere():
    assert model_order(4, 1).tolist() == [0, 2, 3, 1]
    tau, gamma = np.array([1.0, -0.5]), np.array([0.7, 1.2])
    p = one(abc(500, 1, "a"), [*tau, *gamma], 20_000, 6)
    g = MCLLOMap(tau, gamma, p.classes, "a").recalibrate(p.probs)
    assert np.abs(surprise(g, p.codes)).max() < 3.5


def test_resampled_rows_are_the_tables_rows_in_proportion_to_their_weights():
    probs = np.array([[0.1, 0.9], [0.2, 0.8], [0.3, 0.7]])
    plain = Predictions.from_arrays(probs, [0, 1, 1])
    weighted = Predictions.from_arrays(probs, [0, 1, 1], sample_weight=[1.0, 0.0, 3.0])
    x = one(Resampled(weighted), identity_theta(1), 8000, 7).probs[:, 0]
    # 1/4 of 8000 is 2000 with standard deviation sqrt(8000 * 3/16) = 39
    assert set(x.tolist()) == {0.1, 0.3}
    assert abs((x == 0.1).sum() - 2000) < 4 * 39
    x = one(Resampled(plain), identity_theta(1), 3000, 8).probs[:, 0]
    assert min((x == value).sum() for value in (0.1, 0.2, 0.3)) > 1000 - 4 * 26


def test_logits_are_resampled_with_their_rows():
    logits = np.random.default_rng(2).normal(0, 400, (20, 3))  # the softmax underflows to 0
    table = Predictions.from_arrays(logits=logits, y=np.arange(20) % 3)
    p = one(Resampled(table), identity_theta(2), 40, 9)
    assert p.logits is not None
    assert np.isfinite(p.log_odds).all()
    assert {tuple(row) for row in p.logits.tolist()} <= {tuple(row) for row in logits.tolist()}


@pytest.mark.filterwarnings("ignore::mcllo.exceptions.ZeroProbabilityWarning")
def test_raised_zeros_are_counted_in_each_sample():
    table = Predictions.from_arrays([[1.0, 0.0, 0.0], [0.2, 0.3, 0.5]], [0, 1], classes=range(3))
    p = one(Resampled(table), identity_theta(2), 10, 10)
    assert p.n_clipped == 2 * (p.probs[:, 0] > 0.9).sum() > 0


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=4))
def test_a_table_depends_on_its_stream_alone(seeds):
    theta = identity_theta(9)
    together = HEAVY.sample(theta, 20, streams(*seeds))
    for b, seed in enumerate(seeds):
        alone = HEAVY.sample(theta, 20, streams(seed))
        assert (together.by_class[:, b] == alone.by_class[:, 0]).all()
        assert (together.codes[b] == alone.codes[0]).all()


def test_words():
    assert HEAVY.words == "Dirichlet(3, 0.3, ..., 0.3)"
    assert Named("softmax_normal", 3, np.ones(3), 2.0).words == "softmax of N(0, 2^2)"
    assert Named("dirichlet", 2, np.ones(2), 1.0).words == "Dirichlet(1, 1)"
