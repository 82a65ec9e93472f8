import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcllo.calibrators._pool import EM_STEPS, pool_weights, pooled_logs


def random_logs(seed, n=60, k=4):
    return np.log(np.random.default_rng(seed).uniform(0.01, 1.0, size=(n, k)))


def em(logs, prior, weight, steps=20_000):
    """The fixed point of EM as the module's card has it, by many steps."""
    likelihoods, w = np.exp(logs), np.full(len(prior), 1.0 / len(prior))
    for _ in range(steps):
        share = w * likelihoods / (likelihoods @ w)[:, None]
        w = (prior + weight @ share) / (prior.sum() + weight.sum())
    return w


def test_equal_members_get_their_prior():
    logs = np.log(np.random.default_rng(0).uniform(size=(30, 1))) * np.ones((1, 3))
    prior = np.array([0.5, 0.3, 0.2])
    # any w gives the same likelihood, so the prior alone decides: a_k / sum a
    np.testing.assert_allclose(pool_weights(logs, prior), prior, atol=1e-9)


def test_hand_sized_example():
    # n rows in which member 0 gives 1 and member 1 gives 0: w_0 = (n + a) / (n + 2 a).
    logs = np.array([[0.0, -800.0]] * 9)
    w = pool_weights(logs, np.array([0.5, 0.5]))
    np.testing.assert_allclose(w, [0.95, 0.05], atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_against_many_steps_of_em(seed):
    logs, weight = random_logs(seed), np.random.default_rng(seed).uniform(0.5, 2.0, size=60)
    prior = np.array([0.5, 0.5, 0.1, 0.1])
    expected = em(logs, prior, weight)
    np.testing.assert_allclose(pool_weights(logs, prior, weight), expected, atol=1e-8)
    assert np.abs(em(logs, prior, weight, EM_STEPS) - expected).max() > 1e-6  # EM alone creeps


def test_nothing_to_learn_from():
    prior = np.array([0.5, 0.1])
    np.testing.assert_allclose(pool_weights(np.empty((0, 2)), prior), [5 / 6, 1 / 6])
    np.testing.assert_array_equal(pool_weights(random_logs(0, k=1), np.array([0.5])), [1.0])


def test_pooled_logs_do_not_underflow():
    logs = np.array([[-1000.0, -1001.0], [0.0, -np.inf]])
    expected = [-1000.0 + np.log(0.25 + 0.75 * np.exp(-1.0)), np.log(0.25)]
    np.testing.assert_allclose(pooled_logs(logs, np.array([0.25, 0.75])), expected, rtol=1e-14)


@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(2, 6))
@settings(deadline=None, max_examples=40)
def test_weights_are_a_stationary_point_of_em(seed, n, k):
    rng = np.random.default_rng(seed)
    logs = rng.normal(scale=3.0, size=(n, k))
    prior = rng.uniform(0.05, 1.0, size=k)
    w = pool_weights(logs, prior)
    assert w.min() > 0.0
    assert w.sum() == pytest.approx(1.0)
    share = w * np.exp(logs - pooled_logs(logs, w)[:, None])
    np.testing.assert_allclose((prior + share.sum(axis=0)) / (prior.sum() + n), w, atol=1e-6)


def test_weight_two_is_a_row_twice():
    logs, prior = random_logs(1), np.full(4, 0.3)
    weight = np.tile([1.0, 2.0, 0.0], 20)
    twice = np.repeat(logs, weight.astype(int), axis=0)
    np.testing.assert_allclose(
        pool_weights(logs, prior, weight), pool_weights(twice, prior), atol=1e-9
    )


def test_several_weightings_at_once():
    logs, prior = random_logs(2), np.array([0.5, 0.5, 0.1, 0.1])
    weights = np.random.default_rng(2).uniform(size=(3, 60))
    weights[1, ::2] = 0.0
    expected = [pool_weights(logs, prior, weight) for weight in weights]
    np.testing.assert_allclose(pool_weights(logs, prior, weights), expected, atol=1e-7)
    nothing = pool_weights(np.empty((0, 2)), prior[:2], np.empty((3, 0)))
    np.testing.assert_allclose(nothing, 0.5)


def test_pooled_logs_with_weights_of_their_own():
    logs = np.log([[0.2, 0.4], [0.2, 0.4]])
    weights = np.array([[1.0, 0.0], [0.5, 0.5]])
    np.testing.assert_allclose(np.exp(pooled_logs(logs, weights)), [0.2, 0.3])
