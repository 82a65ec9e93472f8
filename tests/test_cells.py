import numpy as np
import pytest
from independent import log_odds_of, simplex
from toy import TOY_X

from mcllo._cells import FullCells, MclloCells, moments
from mcllo._full_map import FullPartition, features_of, full_identity, mcllo_places
from mcllo._model import LogPartition, identity_theta


def softmax(eta):
    g = np.exp(eta - eta.max(axis=1, keepdims=True))
    return g / g.sum(axis=1, keepdims=True)


def test_the_identity_gives_the_rows_back():
    odds = log_odds_of(TOY_X)
    for cells, theta in (
        (MclloCells(odds, None), identity_theta(2)),
        (FullCells(features_of(odds), None), full_identity(2)),
    ):
        np.testing.assert_allclose(softmax(cells.eta(theta[None]))[0], TOY_X.T, rtol=1e-12)


def test_one_row_by_hand():
    # l = (log 2, log 3): eta = (1 + 2 log 2, -1 + 3 log 3, 0)
    odds = np.log([[2.0], [3.0]])
    eta = MclloCells(odds, None).eta(np.array([[1.0, -1.0, 2.0, 3.0]]))[0, :, 0]
    np.testing.assert_allclose(eta, [1 + 2 * np.log(2.0), -1 + 3 * np.log(3.0), 0.0])
    # theta_1 = (1, 2, 0), theta_2 = (-1, 4, 3): eta_2 = -1 + 4 log 2 + 3 log 3
    eta = FullCells(features_of(odds), None).eta(np.array([[1.0, 2.0, 0.0, -1.0, 4.0, 3.0]]))
    expected = [1 + 2 * np.log(2.0), -1 + 4 * np.log(2.0) + 3 * np.log(3.0), 0.0]
    np.testing.assert_allclose(eta[0, :, 0], expected)
    q = np.array([[[0.5], [0.3], [0.2]]])
    sums = MclloCells(odds, np.array([2.0])).sums(q)[0]
    np.testing.assert_allclose(sums, [1.0, 0.6, np.log(2.0), 0.6 * np.log(3.0)])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("full", [False, True])
def test_moments_are_the_derivatives_of_the_partition(weighted, full):
    rng = np.random.default_rng(1)
    odds = log_odds_of(simplex(rng, 25, 4, 2.0))
    weight = rng.uniform(size=25) if weighted else None
    features = features_of(odds)
    cells = FullCells(features, weight) if full else MclloCells(odds, weight)
    partition = FullPartition(features, weight) if full else LogPartition(odds, weight)
    theta = 0.7 * rng.normal(size=(3, 12 if full else 6))
    q = softmax(cells.eta(theta))
    gradient, hessian = cells.moments(q)
    np.testing.assert_allclose(cells.sums(q), gradient, rtol=1e-12)
    for i in range(3):
        terms = partition(theta[i])
        np.testing.assert_allclose(gradient[i], terms.gradient, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(hessian[i], terms.hessian, rtol=1e-9, atol=1e-12)


def test_mcllo_is_inside_the_full_map():
    odds = log_odds_of(TOY_X)
    theta = np.array([[0.3, -0.2, 0.7, 1.4]])
    inside = np.zeros((1, 6))
    inside[:, mcllo_places(2)] = theta
    one, other = MclloCells(odds, None), FullCells(features_of(odds), None)
    np.testing.assert_allclose(one.eta(theta), other.eta(inside), atol=1e-14)
    assert other.size[mcllo_places(2)] == pytest.approx(one.size)


def test_no_tables_have_no_moments():
    odds = log_odds_of(TOY_X)
    gradient, hessian = moments(np.empty((0, 4, 16)), odds, None)
    assert gradient.shape == (0, 4)
    assert hessian.shape == (0, 4, 4)
