import numpy as np
import pytest

import mcllo._covariance as module
from mcllo._covariance import covariance, inverse


def random_hessian(size, seed=0):
    a = np.random.default_rng(seed).normal(size=(size, 2 * size))
    return a @ a.T


def test_a_diagonal_by_hand():
    free = np.array([True, True])
    np.testing.assert_array_equal(covariance(np.diag([4.0, 2.0]), free, True), np.diag([0.25, 0.5]))


def test_fixed_parameters_have_none():
    free = np.array([True, False, True])
    found = covariance(np.diag([4.0, 2.0]), free, True)
    assert np.isnan(found[1]).all()
    assert np.isnan(found[:, 1]).all()
    np.testing.assert_array_equal(found[np.ix_(free, free)], np.diag([0.25, 0.5]))


def test_what_is_not_determined_has_none():
    assert np.isnan(covariance(np.eye(2), np.ones(2, dtype=bool), False)).all()


@pytest.mark.parametrize("size", [1, 2, 7])
def test_the_cholesky_way_is_the_same_inverse(monkeypatch, size):
    hessian = random_hessian(size)
    plain = inverse(hessian)
    monkeypatch.setattr(module, "LARGE", 0)
    found = inverse(hessian)
    np.testing.assert_allclose(found, plain, rtol=1e-10)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(hessian, random_hessian(size))  # untouched


def test_an_indefinite_matrix_is_inverted_all_the_same(monkeypatch):
    monkeypatch.setattr(module, "LARGE", 0)
    np.testing.assert_allclose(inverse(np.diag([1.0, -2.0])), np.diag([1.0, -0.5]))
