import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from toy import TOY_X, TOY_Y

from mcllo.calibrators import _ridge_map
from mcllo.calibrators._linear_fit import identity_map
from mcllo.calibrators._linear_loss import LinearMapLoss
from mcllo.calibrators._ridge_map import (
    RidgeObjective,
    curvature,
    fit_ridge,
    inverse_curvature,
    structured_ridge,
)

Z = np.log(TOY_X).T.copy()
KINDS = pytest.mark.parametrize("diagonal", [True, False], ids=["vector", "full"])


def problem(seed=0, n=80, c=4, weighted=True):
    rng = np.random.default_rng(seed)
    x = np.log(rng.dirichlet(np.ones(c), size=n)).T.copy()
    return x, rng.integers(0, c, n), rng.exponential(size=n) if weighted else None


def ridge_of(c, diagonal, strength=1.5):
    return np.full((c, 2), strength) if diagonal else structured_ridge(c, 0.2, strength)


def objective(x, y, weight, ridge):
    blocks = curvature(x, y, weight, ridge.shape[1] == 2)
    return RidgeObjective(x, y, weight, ridge, inverse_curvature(blocks, ridge))


@KINDS
def test_identity_on_toy(diagonal):
    # methods.md 0.4: NLL at the identity 12.6033816017; the ridge adds nothing there.
    of = objective(Z, TOY_Y, None, ridge_of(3, diagonal))
    value = of.value_gradient(identity_map(3, diagonal).ravel()).value
    assert value == pytest.approx(12.6033816017, abs=1e-9)


def test_hand_sized_ridge():
    # c = 3: 2 c (c - 1) m = 12 m off the diagonal, d c = 3 d on it and on the intercepts.
    expected = [[6.0, 1.2, 1.2, 6.0], [1.2, 6.0, 1.2, 6.0], [1.2, 1.2, 6.0, 6.0]]
    np.testing.assert_allclose(structured_ridge(3, 0.1, 2.0), expected)


@KINDS
@pytest.mark.parametrize("weighted", [True, False])
def test_value_gradient_and_products_against_the_loss_with_its_hessian(diagonal, weighted):
    x, y, weight = problem(weighted=weighted)
    ridge = ridge_of(4, diagonal)
    of, loss = objective(x, y, weight, ridge), LinearMapLoss(x, y, weight, diagonal=diagonal)
    rng = np.random.default_rng(5)
    theta, v = rng.normal(size=(2, ridge.size))
    away = theta - identity_map(4, diagonal).ravel()
    terms, expected = of.value_gradient(theta), loss(theta)
    penalty = 0.5 * ridge.ravel() @ away**2
    assert terms.value == pytest.approx(expected.value + penalty, rel=1e-12)
    gradient = expected.gradient + ridge.ravel() * away
    np.testing.assert_allclose(terms.gradient, gradient, rtol=1e-10, atol=1e-10)
    product = expected.hessian @ v + ridge.ravel() * v
    np.testing.assert_allclose(of.product(v), product, rtol=1e-10, atol=1e-10)


@KINDS
def test_chunks_and_float32_products_change_little(diagonal, monkeypatch):
    x, y, weight = problem(n=900)
    ridge, v = ridge_of(4, diagonal), np.linspace(-1.0, 1.0, ridge_of(4, diagonal).size)
    whole = objective(x, y, weight, ridge)
    monkeypatch.setattr(_ridge_map, "CHUNK_ELEMENTS", 0)
    monkeypatch.setattr(_ridge_map, "PRODUCTS_IN_FLOAT32", 1)
    parts = objective(x, y, weight, ridge)
    assert len(parts._chunks) == 4
    start = identity_map(4, diagonal).ravel()
    first, second = whole.value_gradient(start), parts.value_gradient(start)
    assert second.value == pytest.approx(first.value, rel=1e-13)
    np.testing.assert_allclose(second.gradient, first.gradient, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(parts.product(v), whole.product(v), rtol=1e-4, atol=1e-3)
    assert not np.array_equal(parts.product(v), whole.product(v))


@KINDS
@pytest.mark.parametrize("most_whole", [250, 0], ids=["whole", "blocks"])
def test_fit_against_a_general_optimiser(diagonal, most_whole, monkeypatch):
    monkeypatch.setattr(_ridge_map, "MOST_WHOLE", most_whole)
    x, y, weight = problem()
    ridge = ridge_of(4, diagonal)
    of = objective(x, y, weight, ridge)
    assert len(of.inverse) == (1 if most_whole else 4)
    theta = fit_ridge(of, identity_map(4, diagonal), 1e-12)

    def function(t):
        terms = of.value_gradient(t)
        return terms.value, terms.gradient

    best = minimize(function, np.zeros(ridge.size), jac=True, options={"gtol": 1e-9})
    np.testing.assert_allclose(theta.ravel(), best.x, atol=1e-6)


@KINDS
def test_blocks_are_those_of_the_hessian(diagonal, monkeypatch):
    x, y, weight = problem()
    hessian = curvature(x, y, weight, diagonal)[0]
    monkeypatch.setattr(_ridge_map, "MOST_WHOLE", 0)
    size = 2 if diagonal else 5
    expected = [hessian[j : j + size, j : j + size] for j in range(0, 4 * size, size)]
    np.testing.assert_allclose(curvature(x, y, weight, diagonal), expected, rtol=1e-9, atol=1e-9)


def test_blocks_from_some_rows_stand_for_all(monkeypatch):
    monkeypatch.setattr(_ridge_map, "MOST_WHOLE", 0)
    x, y, _ = problem(n=20_000, weighted=False)
    rough = curvature(x, y, None, False)
    monkeypatch.setattr(_ridge_map, "ROWS_OF_BLOCKS", 10**6)
    exact = curvature(x, y, None, False)
    # 100 rows for each of 5 parameters: 400 of 20,000, so errors of about 1 / sqrt(100) = 0.1
    difference = np.abs(rough - exact).max() / np.abs(exact).max()
    assert 0.0 < difference < 0.4


def test_inverse_is_one():
    x, y, weight = problem()
    ridge = ridge_of(4, False)
    blocks = curvature(x, y, weight, False)
    whole = blocks[0] + np.diag(ridge.ravel())
    np.testing.assert_allclose(inverse_curvature(blocks, ridge)[0] @ whole, np.eye(20), atol=1e-9)


@KINDS
@given(seed=st.integers(0, 1000), n=st.integers(1, 30))
@settings(deadline=None, max_examples=20)
def test_permuting_the_classes_permutes_theta(diagonal, seed, n):
    x, y, weight = problem(seed, n)
    ridge, order = ridge_of(4, diagonal), np.array([2, 0, 3, 1])
    theta = fit_ridge(objective(x, y, weight, ridge), identity_map(4, diagonal), 1e-12)
    turned = objective(np.ascontiguousarray(x[order]), np.argsort(order)[y], weight, ridge)
    other = fit_ridge(turned, identity_map(4, diagonal), 1e-12)
    columns = [0, 1] if diagonal else [*order, 4]
    np.testing.assert_allclose(other, theta[order][:, columns], atol=1e-5)
