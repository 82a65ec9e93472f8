from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, f

from mcllo._score_null import Mixture, flip_pvalue, whitening


def test_no_score_gives_p_1():
    null = Mixture.of(np.eye(2), np.zeros(2), np.eye(2), 10)
    assert (null.statistic, null.f_pvalue) == (0.0, 1.0)
    scores = np.array([[1.0], [-1.0]])
    assert flip_pvalue(scores, np.eye(1), n_resamples=99, seed=0).pvalue == 1.0


def test_two_directions_by_hand():
    # H = I, U = (3, 1), V = diag(4, 1): S = 10, sum of lambda 5, nu = 25 / 17
    null = Mixture.of(np.eye(2), np.array([3.0, 1.0]), np.diag([4.0, 1.0]), 11)
    assert null.score == pytest.approx(10)
    assert null.statistic == pytest.approx(10 / 2.5)
    assert null.f_pvalue == pytest.approx(f.sf(10 / 5, 25 / 17, 10 * 25 / 17))


def test_independent_rows_give_chi_square():
    # V = H: all eigenvalues 1, and with many units F is chi-square over its degrees of freedom
    h = np.array([[3.0, 1.0], [1.0, 2.0]])
    u = np.array([2.0, -1.0])
    null = Mixture.of(whitening(h), u, h, 1e9)
    assert null.eigenvalues == pytest.approx([1, 1])
    assert null.statistic == pytest.approx(u @ np.linalg.solve(h, u))
    assert null.f_pvalue == pytest.approx(chi2.sf(null.statistic, 2))


@pytest.mark.parametrize("rank", [3, 2, 0])
def test_whitening_is_a_root_of_the_pseudo_inverse(rank):
    half = np.random.default_rng(0).normal(size=(3, rank))
    h = half @ half.T
    root = whitening(h)
    assert root.shape == (3, rank)
    if rank:
        # a generalised inverse: H W W' H = H
        assert h @ root @ root.T @ h == pytest.approx(h)


def test_five_units_against_every_sign():
    scores = np.array([[1.0, 0.5], [2.0, -0.3], [0.7, 0.9], [-0.4, 0.2], [1.5, 1.1]])
    root = whitening(np.array([[2.0, 0.4], [0.4, 1.0]]))
    white = scores @ root
    drawn = [((np.array(s) @ white) ** 2).sum() for s in product([-1, 1], repeat=5)]
    exact = np.mean(np.array(drawn) >= drawn[-1] * (1 - 1e-9))
    found = flip_pvalue(scores, root, n_resamples=20_000, seed=0)
    # 5 standard errors of 20,000 draws; all signs equal, or one opposite, is the least
    assert found.pvalue == pytest.approx(exact, abs=5 * np.sqrt(exact * (1 - exact) / 20_000))
    assert exact >= 2 / 32


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10_000), factor=st.floats(1e-3, 1e3))
def test_order_and_units_of_measurement_change_nothing(seed, factor):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(12, 3))
    a = flip_pvalue(scores, np.eye(3), n_resamples=200, seed=1)
    b = flip_pvalue(factor * scores[rng.permutation(12)], np.eye(3), n_resamples=200, seed=1)
    assert a.pvalue == b.pvalue


@pytest.mark.slow
def test_flips_are_exact_for_symmetric_scores_however_unequal():
    rng = np.random.default_rng(0)
    sizes = 2.0 ** np.arange(8)[:, None]  # the last group outweighs all others together
    pvalues = [
        flip_pvalue(sizes * rng.normal(size=(8, 2)), np.eye(2), n_resamples=99, seed=s).pvalue
        for s in range(2000)
    ]
    # exact: P(p <= .2) <= .2; standard error .009
    assert np.mean(np.array(pvalues) <= 0.2) == pytest.approx(0.2, abs=0.03)
