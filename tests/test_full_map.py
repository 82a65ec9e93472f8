import numpy as np
import pytest
from hypothesis import given, settings
from independent import central_differences, designs, draw, log_odds_of, simplex
from scipy.special import logsumexp
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._full_map import (
    FullDraws,
    FullPartition,
    features_of,
    full_identity,
    full_statistic,
    mcllo_places,
)
from mcllo._model import LogPartition, sufficient_statistic
from mcllo._monte_carlo import draw_labels


def test_the_identity_gives_back_the_rows():
    # A(theta0) = sum_i log(1 + sum_j x_ij / x_ic) = -sum_i log x_ic
    value = FullPartition(features_of(log_odds_of(TOY_X)))(full_identity(2)).value
    assert value == pytest.approx(-np.log(TOY_X[:, -1]).sum(), abs=1e-12)


def test_statistic_by_hand():
    # labels 0, 1, 2 (baseline), 0; features (1, l1, l2)
    odds = np.array([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
    found = full_statistic(features_of(odds), np.array([0, 1, 2, 0]), None)
    assert found.tolist() == [2.0, 5.0, 13.0, 1.0, 2.0, 6.0]
    twice = full_statistic(
        features_of(odds), np.array([0, 1, 2, 0]), np.array([1.0, 2.0, 1.0, 0.0])
    )
    assert twice.tolist() == [1.0, 1.0, 5.0, 2.0, 4.0, 12.0]


def test_value_and_derivatives_against_a_direct_sum():
    rng = np.random.default_rng(0)
    x, weight = features_of(log_odds_of(simplex(rng, 30, 4))), rng.uniform(0.5, 2.0, 30)
    partition = FullPartition(x, weight)

    def direct(theta):
        eta = np.vstack([theta.reshape(3, 4) @ x, np.zeros(30)])
        return float(logsumexp(eta, axis=0) @ weight)

    theta = full_identity(3) + rng.normal(scale=0.3, size=12)
    terms = partition(theta)
    assert terms.value == pytest.approx(direct(theta), rel=1e-12)
    np.testing.assert_allclose(terms.gradient, central_differences(direct, theta), atol=1e-6)
    slopes = central_differences(lambda t: partition(t).gradient, theta)
    np.testing.assert_allclose(terms.hessian, slopes, atol=1e-6)


def test_chunks_do_not_matter(monkeypatch):
    x = features_of(log_odds_of(simplex(np.random.default_rng(1), 900, 3)))
    whole = FullPartition(x)(full_identity(2))
    monkeypatch.setattr("mcllo._full_map.CHUNK_ELEMENTS", 6)  # 256 rows at a time
    parts = FullPartition(x)(full_identity(2))
    assert parts.value == pytest.approx(whole.value, rel=1e-12)
    np.testing.assert_allclose(parts.hessian, whole.hessian, rtol=1e-10)


@settings(deadline=None, max_examples=30)
@given(designs(min_rows=5))
def test_a_diagonal_map_is_mcllo(design):
    probs, codes = design
    odds, k = log_odds_of(probs), probs.shape[1] - 1
    theta, places = np.linspace(-0.5, 1.5, 2 * k), mcllo_places(k)
    whole = np.zeros(k * (k + 1))
    whole[places] = theta
    ours, theirs = FullPartition(features_of(odds))(whole), LogPartition(odds)(theta)
    assert ours.value == pytest.approx(theirs.value, rel=1e-10)
    np.testing.assert_allclose(ours.gradient[places], theirs.gradient, rtol=1e-8, atol=1e-10)
    statistic = full_statistic(features_of(odds), codes, None)[places]
    np.testing.assert_allclose(statistic, sufficient_statistic(odds, codes), atol=1e-10)


@pytest.mark.parametrize("baseline", [0, 1, 2])
def test_draws_are_the_statistics_of_drawn_labels(baseline):
    p = Predictions.from_arrays(TOY_X, TOY_Y, baseline=baseline)
    labels = draw_labels(p.probs, 5, 2, 3)
    found = FullDraws(p, 5)(2, 3)
    for drawn, row in zip(labels, found, strict=True):
        again = Predictions.from_arrays(TOY_X, drawn, classes=[0, 1, 2], baseline=baseline)
        expected = full_statistic(features_of(p.log_odds), again.model_codes, None)
        np.testing.assert_allclose(row, expected, atol=1e-12)


def test_mean_of_the_draws_is_the_gradient_at_the_identity():
    rng = np.random.default_rng(3)
    probs = simplex(rng, 50, 3)
    p = Predictions.from_arrays(probs, draw(probs, rng), classes=[0, 1, 2])
    terms = FullPartition(features_of(p.log_odds))(full_identity(2))
    drawn = FullDraws(p, 0)(0, 4000)
    z = (drawn.mean(axis=0) - terms.gradient) / np.sqrt(np.diagonal(terms.hessian) / 4000)
    assert np.abs(z).max() < 4.0
