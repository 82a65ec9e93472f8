import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import designs, draw, log_odds_of, maps, simplex

from mcllo._math import products as operator
from mcllo._math.likelihood import Likelihood, LogPartition, identity_theta, sufficient_statistic
from mcllo._math.products import Blocks, LikelihoodOperator, LogPartitionOperator

quick = settings(deadline=None, max_examples=50)


def block_diagonal(blocks):
    """The blocks as one matrix, ordered as theta."""
    k = len(blocks.tau)
    matrix = np.diag(np.concatenate([blocks.tau, blocks.gamma]))
    matrix[np.arange(k), np.arange(k) + k] = matrix[np.arange(k) + k, np.arange(k)] = blocks.cross
    return matrix


def block_part(hessian):
    """The 2 x 2 blocks of a Hessian."""
    k = len(hessian) // 2
    j = np.arange(k)
    return Blocks(hessian[j, j], hessian[j, j + k], hessian[j + k, j + k])


def test_one_row_by_hand():
    # g = (.8, .2) as in test_model: A = log 5, curvature .16 on (1, l; l, l^2), l = log 4;
    # times (1, 1) that is .16 (1 + l) (1, l)
    own = np.log(4.0)
    partition = LogPartitionOperator(np.array([[own]]))
    terms = partition.value_gradient(np.array([np.log(2.0), 0.5]))
    assert terms.value == pytest.approx(np.log(5.0), rel=1e-14)
    np.testing.assert_allclose(terms.gradient, [0.8, 0.8 * own], rtol=1e-14)
    assert terms.hessian.size == 0
    expected = 0.16 * (1.0 + own) * np.array([1.0, own])
    np.testing.assert_allclose(partition.product(np.ones(2)), expected, rtol=1e-12)


@quick
@given(designs(), st.booleans(), st.data())
def test_equals_the_dense_terms(design, weighted, data):
    probs, _ = design
    odds, k = log_odds_of(probs), probs.shape[1] - 1
    theta = np.concatenate(data.draw(maps(k)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    weight = rng.uniform(size=odds.shape[1]) if weighted else None
    dense, partition = LogPartition(odds, weight)(theta), LogPartitionOperator(odds, weight)
    terms = partition.value_gradient(theta)
    assert terms.value == pytest.approx(dense.value, rel=1e-13, abs=1e-13)
    np.testing.assert_allclose(terms.gradient, dense.gradient, rtol=1e-12, atol=1e-12)
    v, scale = rng.normal(size=2 * k), 1e-12 * np.abs(dense.hessian).max() + 1e-12
    np.testing.assert_allclose(partition.product(v), dense.hessian @ v, atol=10.0 * scale)
    found = block_diagonal(partition.blocks())
    np.testing.assert_allclose(found, block_diagonal(block_part(dense.hessian)), atol=scale)
    np.testing.assert_array_equal(partition.hessian(theta), dense.hessian)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kept", ["float64", "float32", "nothing", "nothing, float64"])
def test_what_is_kept_changes_only_the_digits(monkeypatch, kept, weighted):
    rng = np.random.default_rng(0)
    probs = simplex(rng, 3000, 20, 2.0)
    odds, theta = log_odds_of(probs), identity_theta(19) + 0.1 * rng.normal(size=38)
    weight = rng.uniform(size=3000) if weighted else None
    monkeypatch.setattr(operator, "KEPT_IN_FLOAT64", 10**9 if "float64" in kept else 0)
    monkeypatch.setattr(operator, "MOST_KEPT", 0 if "nothing" in kept else 10**9)
    partition = LogPartitionOperator(odds, weight)
    partition.value_gradient(theta)
    assert (partition._kept is None) == ("nothing" in kept)
    v, dense = rng.normal(size=38), LogPartition(odds, weight)(theta).hessian
    error = np.abs(partition.product(v) - dense @ v).max() / np.abs(dense @ v).max()
    assert error < (1e-12 if "float64" in kept else 1e-5)
    assert (error > 1e-12) == ("float64" not in kept)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_number_of_threads_changes_no_bit(monkeypatch, dtype):
    monkeypatch.setattr(operator, "CHUNK_ELEMENTS", 1)
    rng = np.random.default_rng(1)
    odds = rng.normal(scale=2.0, size=(3, 256 * 40 + 7)).astype(dtype)
    theta, v = rng.normal(size=6), rng.normal(size=6)
    found = []
    for n_jobs in (1, 2, 3):
        partition = LogPartitionOperator(odds, n_jobs=n_jobs)
        terms, rough = partition.value_gradient(theta), partition.rough(theta)
        numbers = [terms.value, rough.value, *terms.gradient, *rough.gradient]
        found.append([*numbers, *partition.product(v)])
    assert partition._group == 2 * 256
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_float32_log_odds_are_computed_in_float64():
    rng = np.random.default_rng(2)
    odds = rng.normal(scale=2.0, size=(5, 2000)).astype(np.float32)
    theta = identity_theta(5)
    small = LogPartitionOperator(odds).value_gradient(theta)
    large = LogPartitionOperator(odds.astype(np.float64)).value_gradient(theta)
    assert small.value == pytest.approx(large.value, rel=1e-14)
    np.testing.assert_allclose(small.gradient, large.gradient, rtol=1e-13)


def test_rough_terms_are_good_to_five_digits():
    rng = np.random.default_rng(3)
    partition = LogPartitionOperator(rng.normal(scale=2.0, size=(9, 8000)))
    exact, rough = (f(identity_theta(9)) for f in (partition.value_gradient, partition.rough))
    assert rough.value == pytest.approx(exact.value, rel=1e-6)
    np.testing.assert_allclose(rough.gradient, exact.gradient, rtol=1e-5)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("far", [100.0, 1e5, 1e100])
def test_saturated_rows_stay_finite(monkeypatch, far):
    monkeypatch.setattr(operator, "KEPT_IN_FLOAT64", 0)
    odds = np.array([[far, -far, far, 0.1], [-far, -far, far, 0.2]])
    for kept in (10**9, 0):
        monkeypatch.setattr(operator, "MOST_KEPT", kept)
        partition = LogPartitionOperator(odds)
        assert np.isnan(partition.rough(identity_theta(2)).value)
        terms = partition.value_gradient(identity_theta(2))
        assert terms.value == pytest.approx(2.0 * far, rel=0.05)
        product = partition.product(np.array([1.0, -2.0, 1e-3, 1e50]))
        assert np.isfinite(product).all()
        assert np.isfinite(partition.blocks().inverse().times(terms.gradient)).all()


@quick
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.floats(-8.0, 8.0))
def test_blocks_and_their_inverses(seed, k, power):
    rng = np.random.default_rng(seed)
    tau, gamma = rng.uniform(0.1, 2.0, size=k), 10.0**power * rng.uniform(0.1, 2.0, size=k)
    blocks = Blocks(tau, 0.9 * np.sqrt(tau * gamma) * rng.uniform(-1.0, 1.0, size=k), gamma)
    v = rng.normal(size=2 * k)
    np.testing.assert_allclose(blocks.times(v), block_diagonal(blocks) @ v, rtol=1e-12)
    np.testing.assert_allclose(blocks.inverse().times(blocks.times(v)), v, rtol=1e-9, atol=1e-9)


def test_a_singular_block_loses_its_cross_term():
    # [[1, 2], [2, 4]] has no inverse; [[1, 0], [0, 4]] has
    inverse = Blocks(np.ones(1), np.full(1, 2.0), np.full(1, 4.0)).inverse()
    np.testing.assert_allclose(inverse.times(np.array([3.0, 8.0])), [3.0, 2.0])


@pytest.mark.parametrize("penalty", [0.0, 2.5])
def test_the_penalised_likelihood_equals_the_dense_one(penalty):
    rng = np.random.default_rng(4)
    probs = simplex(rng, 300, 5, 2.0)
    odds, codes = log_odds_of(probs), draw(probs, rng)
    s, centre, theta = sufficient_statistic(odds, codes), rng.normal(size=8), rng.normal(size=8)
    free = np.array([True] * 7 + [False])
    own = LikelihoodOperator(
        LogPartitionOperator(odds), s, penalty=penalty, centre=centre, free=free
    )
    terms, dense = own.value_gradient(theta), Likelihood(LogPartition(odds), s)(theta)
    away = theta - centre
    assert terms.value == pytest.approx(dense.value + 0.5 * penalty * away @ away, rel=1e-13)
    gradient, hessian = dense.gradient + penalty * away, dense.hessian + penalty * np.eye(8)
    np.testing.assert_allclose(terms.gradient, np.where(free, gradient, 0.0), rtol=1e-11)
    v = np.where(free, rng.normal(size=8), 0.0)
    np.testing.assert_allclose(own.product(v), np.where(free, hessian @ v, 0.0), atol=1e-10)
    np.testing.assert_allclose(own.hessian(theta), hessian, atol=1e-10)
    # the preconditioner divides by the blocks: classes 0 to 2 whole, class 3 without its gamma
    part = block_diagonal(block_part(hessian))[np.ix_(free, free)]
    found = own.precondition(v)
    np.testing.assert_allclose(found[free], np.linalg.solve(part, v[free]), rtol=1e-10)
    assert found[-1] == 0.0


@pytest.mark.parametrize("weighted", [False, True])
def test_the_hessian_of_what_was_kept(monkeypatch, weighted):
    monkeypatch.setattr(operator, "DEAR_HESSIAN", 0)
    rng = np.random.default_rng(4)
    probs = simplex(rng, 700, 6)
    odds, weight = log_odds_of(probs), rng.uniform(0.5, 2.0, 700) if weighted else None
    theta = np.concatenate([rng.normal(0.0, 0.3, 5), rng.uniform(0.7, 1.3, 5)])
    dense = LogPartition(odds, weight)(theta).hessian
    for numbers, digits in ((2**20, 1e-12), (0, 1e-6)):  # kept in float64, then in float32
        monkeypatch.setattr(operator, "KEPT_IN_FLOAT64", numbers)
        partition = LogPartitionOperator(odds, weight)
        partition.value_gradient(theta)
        kept = partition.hessian(np.full(10, np.nan), near=True)  # theta is not looked at
        np.testing.assert_allclose(kept, dense, rtol=digits, atol=digits)
        blocks = block_diagonal(block_part(dense))
        own = blocks != 0.0
        np.testing.assert_allclose(kept[own], blocks[own], rtol=1e-12)


def test_a_hessian_that_float32_would_blur_is_computed_anew(monkeypatch):
    monkeypatch.setattr(operator, "DEAR_HESSIAN", 0)
    monkeypatch.setattr(operator, "KEPT_IN_FLOAT64", 0)
    rng = np.random.default_rng(5)
    first = rng.normal(size=300)
    odds = np.array([first + 40.0, 40.0 - first])  # the baseline has next to no probability
    theta, partition = identity_theta(2), LogPartitionOperator(odds)
    partition.value_gradient(theta)
    dense = LogPartition(odds)(theta).hessian
    assert np.abs(partition._kept_hessian() - dense).max() > 1e-9 * np.abs(dense).max()
    np.testing.assert_array_equal(partition.hessian(theta, near=True), dense)
