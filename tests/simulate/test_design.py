"""Simulated rows and labels: do they have the distribution that their names say?"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcllo import MCLLOMap, Predictions
from mcllo._model.likelihood import identity_theta
from mcllo.simulate._design import (
    Design,
    design_of_distribution,
    design_of_table,
    take_table_of_sample,
)

HEAVY = design_of_distribution("dirichlet_heavy", 10)
ABC = ["a", "b", "c"]


def streams(*seeds):
    return [np.random.default_rng(seed) for seed in seeds]


def surprise(g, codes):
    """Return each class's distance from its expected count, in standard deviations."""
    counts = np.bincount(codes, minlength=g.shape[1])
    return (counts - g.sum(axis=0)) / np.sqrt((g * (1.0 - g)).sum(axis=0))


def one(design, theta, n, seed):
    """Return the table of one stream."""
    return take_table_of_sample(design.sample(np.asarray(theta), n, streams(seed)))


def test_the_identity_leaves_the_rows_calibrated():
    p = one(HEAVY, identity_theta(9), 20_000, 0)
    assert np.abs(surprise(p.probs, p.codes)).max() < 3.5


class Given:
    """A stream whose numbers are known."""

    def __init__(self, numbers):
        self.numbers = np.array(numbers)

    def random(self, size):
        return self.numbers


def test_labels_by_hand():
    # x = (.5, .3, .2), the last class the baseline. Identity: edges .5, .8.
    design = Design(
        (0, 1, 2), 2, "", {}, lambda stream, n: np.tile([0.5, 0.3, 0.2], (n, 1))
    )
    found = design.sample(identity_theta(2), 3, [Given([0.49, 0.79, 0.81])])
    assert found.codes.tolist() == [0, 1, 2]
    # delta_1 = 2: weights (1, .3, .2) / 1.5, edges .6667, .8667
    theta = np.array([np.log(2.0), 0.0, 1.0, 1.0])
    assert design.sample(theta, 3, [Given([0.66, 0.86, 0.87])]).codes.tolist() == [
        0,
        1,
        2,
    ]
    # baseline 0 comes last: edges .3, .5, and then class 0
    table = Predictions.from_arrays(
        [[0.5, 0.3, 0.2]], [0], classes=range(3), baseline=0
    )
    moved = Design(
        (0, 1, 2), 0, "", {}, lambda stream, n: np.zeros(n, dtype=int), table
    )
    found = moved.sample(identity_theta(2), 3, [Given([0.29, 0.49, 0.51])])
    assert found.codes.tolist() == [1, 2, 0]


def test_labels_follow_the_map_and_not_the_rows():
    tau, gamma = np.log(np.linspace(0.5, 2.0, 9)), np.linspace(0.6, 1.4, 9)
    p = one(HEAVY, [*tau, *gamma], 20_000, 1)
    g = MCLLOMap(tau, gamma, p.classes, p.baseline).recalibrate(p.probs)
    assert np.abs(surprise(g, p.codes)).max() < 3.5
    assert np.abs(surprise(p.probs, p.codes)).max() > 10.0
    sharp = g.max(axis=1) > 0.8  # not only on average over all rows
    assert np.abs(surprise(g[sharp], p.codes[sharp])).max() < 3.5


@pytest.mark.parametrize(
    "alpha", [np.append(3.0, np.full(9, 0.3)), np.ones(4), [0.5, 2.0]]
)
def test_dirichlet_moments(alpha):
    alpha = np.asarray(alpha, dtype=float)
    design = design_of_distribution("dirichlet", len(alpha), alpha)
    x = one(design, identity_theta(len(alpha) - 1), 40_000, 2).probs
    total = alpha.sum()  # mean a/A, variance a (A - a) / (A^2 (A + 1))
    mean, variance = alpha / total, alpha * (total - alpha) / (total**2 * (total + 1.0))
    assert np.abs(x.mean(axis=0) - mean).max() < 4.0 * np.sqrt(variance.max() / 40_000)
    np.testing.assert_allclose(x.var(axis=0), variance, rtol=0.1)
    np.testing.assert_allclose(x.sum(axis=1), 1.0, rtol=1e-12)
    assert x.min() >= 0.99e-6


def test_softmax_normal_moments():
    p = one(
        design_of_distribution("softmax_normal", 3, scale=2.0),
        identity_theta(2),
        20_000,
        3,
    )
    # log(x_1 / x_3) is the difference of two normals: variance 2 * 2^2
    assert p.log_odds.mean() == pytest.approx(0.0, abs=0.1)
    assert p.log_odds.var() == pytest.approx(8.0, rel=0.05)


def abc(n, seed, baseline):
    probs = np.random.default_rng(seed).dirichlet([1, 2, 3], n)
    table = Predictions.from_arrays(probs, ["a"] * n, classes=ABC, baseline=baseline)
    return design_of_table(table)


def test_a_sample_and_its_predictions_agree():
    sample = abc(50, 0, "b").sample(np.array([0.3, 0.0, 1.0, 2.0]), 30, streams(4, 5))
    for b in range(2):
        rows = slice(30 * b, 30 * b + 30)
        p = take_table_of_sample(sample, rows)
        assert (p.classes, p.baseline) == (("a", "b", "c"), "b")
        np.testing.assert_allclose(p.log_odds, sample.log_odds[:, rows], rtol=1e-12)
        assert p.model_codes.tolist() == sample.model_codes[rows].tolist()


def test_the_baseline_may_stand_anywhere():
    tau, gamma = np.array([1.0, -0.5]), np.array([0.7, 1.2])
    p = one(abc(500, 1, "a"), [*tau, *gamma], 20_000, 6)
    g = MCLLOMap(tau, gamma, p.classes, "a").recalibrate(p.probs)
    assert np.abs(surprise(g, p.codes)).max() < 3.5


def test_resampled_rows_are_the_tables_rows_in_proportion_to_their_weights():
    probs = np.array([[0.1, 0.9], [0.2, 0.8], [0.3, 0.7]])
    plain = Predictions.from_arrays(probs, [0, 1, 1])
    weighted = Predictions.from_arrays(probs, [0, 1, 1], sample_weight=[1.0, 0.0, 3.0])
    x = one(design_of_table(weighted), identity_theta(1), 8000, 7).probs[:, 0]
    # 1/4 of 8000 is 2000 with standard deviation sqrt(8000 * 3/16) = 39
    assert set(x.tolist()) == {0.1, 0.3}
    assert abs((x == 0.1).sum() - 2000) < 4 * 39
    x = one(design_of_table(plain), identity_theta(1), 3000, 8).probs[:, 0]
    assert min((x == value).sum() for value in (0.1, 0.2, 0.3)) > 1000 - 4 * 26


def test_logits_are_resampled_with_their_rows():
    logits = np.random.default_rng(2).normal(
        0, 400, (20, 3)
    )  # the softmax underflows to 0
    table = Predictions.from_arrays(logits=logits, y=np.arange(20) % 3)
    p = one(design_of_table(table), identity_theta(2), 40, 9)
    assert p.logits is not None
    assert np.isfinite(p.log_odds).all()
    assert {tuple(row) for row in p.logits.tolist()} <= {
        tuple(row) for row in logits.tolist()
    }


@pytest.mark.filterwarnings("ignore::mcllo.exceptions.ZeroProbabilityWarning")
def test_raised_zeros_are_counted_in_each_sample():
    table = Predictions.from_arrays(
        [[1.0, 0.0, 0.0], [0.2, 0.3, 0.5]], [0, 1], classes=range(3)
    )
    p = one(design_of_table(table), identity_theta(2), 10, 10)
    assert p.n_clipped == 2 * (p.probs[:, 0] > 0.9).sum() > 0


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=4))
def test_a_table_depends_on_its_stream_alone(seeds):
    theta = identity_theta(9)
    together = HEAVY.sample(theta, 20, streams(*seeds))
    for b, seed in enumerate(seeds):
        alone = HEAVY.sample(theta, 20, streams(seed))
        assert (together.probs[20 * b : 20 * b + 20] == alone.probs).all()
        assert (together.codes[20 * b : 20 * b + 20] == alone.codes).all()
