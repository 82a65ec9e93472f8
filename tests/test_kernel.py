import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import draw, log_odds_of, simplex
from scipy.special import logsumexp
from toy import TOY_X, TOY_Y

import mcllo._kernel as kernel
import mcllo._model as model
from mcllo._chunks import ordered_map
from mcllo._kernel import SAFE, LogPartition, Terms, exponentials, softmax_against_zero
from mcllo._model import Likelihood, identity_theta, recalibrate, sufficient_statistic
from mcllo._newton import minimize

quick = settings(deadline=None, max_examples=50)
THETA = np.array([0.2, -0.3, 0.8, 1.5])
TOY_L = log_odds_of(TOY_X)


def likelihood(log_odds, codes):
    return Likelihood(LogPartition(log_odds), sufficient_statistic(log_odds, codes))


def test_terms_add():
    one, two = Terms(1.0, np.ones(2), np.eye(2)), Terms(2.0, np.zeros(2), np.ones((2, 2)))
    both = one + two
    assert both.value == 3.0
    np.testing.assert_array_equal(both.gradient, [1.0, 1.0])
    np.testing.assert_array_equal(both.hessian, [[2.0, 1.0], [1.0, 2.0]])


def test_softmax_against_zero_by_hand():
    # eta = (log 2, log 5) against 0: total 1 + 2 + 5 = 8
    out, total = np.empty((2, 1)), np.empty(1)
    log_total = softmax_against_zero(
        np.array([np.log(2.0), 0.0, 0.0, 1.0]), np.array([[9.0], [np.log(5.0)]]), out, total=total
    )
    assert log_total is total
    np.testing.assert_allclose(out[:, 0], [2.0 / 8.0, 5.0 / 8.0], rtol=1e-14)
    np.testing.assert_allclose(total, np.log(8.0), rtol=1e-14)


@quick
@given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 30.0, 650.0, 1e5, 1e100]))
def test_log_totals_equal_scipy(seed, scale):
    rng = np.random.default_rng(seed)
    odds, theta = scale * rng.normal(size=(3, 20)), rng.normal(size=6)
    out = np.empty((3, 20))
    log_total = softmax_against_zero(theta, odds, out)
    eta = np.vstack([theta[:3, None] + theta[3:, None] * odds, np.zeros(20)])
    np.testing.assert_allclose(log_total, logsumexp(eta, axis=0), rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(out, np.exp(eta - logsumexp(eta, axis=0))[:3], rtol=1e-11)


def test_only_rows_that_would_overflow_are_shifted():
    odds = np.array([[SAFE + 1.0, 2.0], [1.0, 3.0]])
    total, top = exponentials(identity_theta(2), odds, np.empty((2, 2)))
    np.testing.assert_array_equal(top, [SAFE + 1.0, 0.0])
    np.testing.assert_allclose(total, [1.0, 1.0 + np.exp(2.0) + np.exp(3.0)], rtol=1e-15)
    assert exponentials(identity_theta(2), odds - 2.0, np.empty((2, 2)))[1] is None


def test_the_range_of_the_log_odds_bounds_eta():
    partition = LogPartition(np.array([[-3.0, 2.0], [0.5, 0.25]]))
    assert partition.largest == 3.0
    theta = np.array([1.0, 0.0, -2.0, 4.0])  # eta: 1 + 6 and 2 at most
    assert partition.is_below(7.1, theta)
    assert not partition.is_below(7.0, theta)
    assert not partition.is_below(1e300, np.array([np.nan, 0.0, 1.0, 1.0]))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_number_of_threads_changes_no_bit(monkeypatch, weighted, dtype):
    monkeypatch.setattr(kernel, "CHUNK_ELEMENTS", 1)
    monkeypatch.setattr(model, "CHUNK_ELEMENTS", 1)
    rng = np.random.default_rng(2)
    odds = rng.normal(scale=3.0, size=(3, 256 * 70 + 5)).astype(dtype)  # 71 chunks in 24 groups
    weight = rng.uniform(size=odds.shape[1]) if weighted else None
    theta = rng.normal(size=6)
    one, *others = [LogPartition(odds, weight, n_jobs=n) for n in (1, 2, 3)]
    assert one._rows == 256
    assert one._group == 3 * 256
    exact, rough = one(theta), one._rough(theta)
    for partition in others:
        for first, second in ((exact, partition(theta)), (rough, partition._rough(theta))):
            assert first.value == second.value
            np.testing.assert_array_equal(first.gradient, second.gradient)
            np.testing.assert_array_equal(first.hessian, second.hessian)
    rows = [recalibrate(theta, odds, baseline=1, n_jobs=n) for n in (1, 2, 3)]
    np.testing.assert_array_equal(rows[0], rows[1])
    np.testing.assert_array_equal(rows[0], rows[2])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("far", [3.0, 900.0])
def test_the_value_alone_is_that_of_the_terms(monkeypatch, far, weighted):
    monkeypatch.setattr(kernel, "CHUNK_ELEMENTS", 1)
    rng = np.random.default_rng(6)
    odds, codes = rng.normal(scale=far, size=(3, 1000)), rng.integers(0, 4, size=1000)
    weight = rng.uniform(size=1000) if weighted else None
    theta = rng.normal(size=6)
    values = [LogPartition(odds, weight, n_jobs=n).value(theta) for n in (1, 2, 3)]
    assert values[0] == values[1] == values[2]
    assert values[0] == pytest.approx(LogPartition(odds, weight)(theta).value, rel=1e-13)
    own = likelihood(odds, codes)
    assert own.value(theta) == pytest.approx(own(theta).value, rel=1e-12)


def test_several_threads_may_call_at_once():
    rng = np.random.default_rng(3)
    partition = LogPartition(rng.normal(size=(9, 20_000)))
    thetas = rng.normal(size=(8, 18))
    alone = [partition(theta) for theta in thetas]
    together = ordered_map(lambda i: partition(thetas[i]), 8, 4)
    for first, second in zip(alone, together, strict=True):
        assert first.value == second.value
        np.testing.assert_array_equal(first.gradient, second.gradient)
        np.testing.assert_array_equal(first.hessian, second.hessian)


@pytest.mark.parametrize("weighted", [False, True])
def test_rough_terms_are_good_to_five_digits(weighted):
    rng = np.random.default_rng(4)
    odds = rng.normal(scale=2.0, size=(4, 20_000))
    weight = rng.uniform(0.5, 2.0, size=20_000) if weighted else None
    partition, theta = LogPartition(odds, weight), identity_theta(4)
    exact, rough = partition(theta), partition.rough(theta)
    assert rough.value == pytest.approx(exact.value, rel=1e-6)
    np.testing.assert_allclose(rough.gradient, exact.gradient, rtol=1e-5)
    scale = np.sqrt(np.diagonal(exact.hessian))
    np.testing.assert_allclose(
        rough.hessian / np.outer(scale, scale), exact.hessian / np.outer(scale, scale), atol=1e-5
    )
    own = Likelihood(partition, np.ones(8))
    assert own.rough(theta).value == pytest.approx(rough.value - 4.0)
    np.testing.assert_allclose(own.rough(theta).gradient, rough.gradient - 1.0)


def test_rough_terms_are_not_offered_where_they_would_not_help():
    assert LogPartition(TOY_L).rough is None  # too small to gain
    assert likelihood(TOY_L, TOY_Y).rough is None
    wide = np.tile(np.array([[200.0, -1.0]]), 40_000)
    assert np.isnan(LogPartition(wide).rough(identity_theta(1)).value)  # exp(200) in float32


def test_the_statistic_of_float32_log_odds_is_that_of_their_float64_copy():
    # stored in float32, computed in float64: the likelihood ratio agrees to 1e-8, not to 1e-4
    rng = np.random.default_rng(5)
    probs = simplex(rng, 30_000, 4, 2.0)
    odds = log_odds_of(probs).astype(np.float32)
    codes = draw(probs**0.7 / (probs**0.7).sum(axis=1, keepdims=True), rng)
    found = []
    for stored in (odds, odds.astype(np.float64)):
        own = likelihood(stored, codes)
        solution = minimize(own, identity_theta(3), rough=own.rough)
        assert solution.converged
        found.append(2.0 * (solution.start.value - solution.value))
    assert found[0] > 100.0
    assert found[0] == pytest.approx(found[1], abs=1e-8)


@pytest.mark.parametrize("far", [590.0, 610.0, 1e100])
def test_a_row_has_the_same_digits_in_any_company(far):
    # beyond eta = 600 a row is shifted before exp; its neighbours are not
    odds = np.array([[far, 0.3, -2.0], [-far, 1.7, 0.2]])
    together = recalibrate(THETA, odds, baseline=2)
    for i in range(3):
        np.testing.assert_array_equal(recalibrate(THETA, odds[:, [i]], 2)[0], together[i])
    assert np.isfinite(together).all()


@pytest.mark.filterwarnings("error")
def test_log_odds_of_1e100_stay_finite():
    # the square of the largest log odds, times the rows, is far from the largest number
    odds = np.array([[1e100, -1e100, 1e100, 0.1], [-1e100, -1e100, 1e100, 0.2]])
    terms = LogPartition(odds)(identity_theta(2))
    assert terms.value == pytest.approx(2e100)
    assert np.isfinite(terms.gradient).all()
    assert np.isfinite(terms.hessian).all()
    with np.errstate(over="ignore"):
        assert np.isnan(LogPartition(np.tile(odds, 10_000)).rough(identity_theta(2)).value)
