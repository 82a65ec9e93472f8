import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from toy import TOY_X, TOY_Y

from mcllo.calibrators import _ridge_map, _row_sets
from mcllo.calibrators._linear_fit import identity_map
from mcllo.calibrators._linear_loss import LinearMapLoss
from mcllo.calibrators._ridge_map import (
    RidgeProblems,
    curvature,
    fit_ridge,
    inverse_curvature,
    structured_ridge,
)
from mcllo.calibrators._row_sets import RowSets, all_rows

Z = np.log(TOY_X).T.copy()
KINDS = pytest.mark.parametrize("diagonal", [True, False], ids=["vector", "full"])


def problem(seed=0, n=80, c=4, weighted=True):
    rng = np.random.default_rng(seed)
    x = np.log(rng.dirichlet(np.ones(c), size=n)).T.copy()
    return x, rng.integers(0, c, n), rng.exponential(size=n) if weighted else None


def ridge_of(c, diagonal, strength=1.5):
    return np.full((c, 2), strength) if diagonal else structured_ridge(c, 0.2, strength)


def rows_of(x, y, weight):
    return all_rows(np.vstack([x, np.ones(x.shape[1])]), y, weight)


def problems_of(x, y, weight, ridge):
    rows = rows_of(x, y, weight)
    blocks = curvature(rows, identity_map(len(ridge), ridge.shape[1] == 2))
    return RidgeProblems(rows, rows.label_sums(), ridge, inverse_curvature(blocks, ridge))


def fitted(x, y, weight, ridge, tol=1e-12):
    start = identity_map(len(ridge), ridge.shape[1] == 2)
    return fit_ridge(problems_of(x, y, weight, ridge), start[None], tol)[0]


@KINDS
def test_identity_on_toy(diagonal):
    # methods.md 0.4: NLL at the identity 12.6033816017; the ridge adds nothing there.
    of = problems_of(Z, TOY_Y, None, ridge_of(3, diagonal))
    value, _ = of.value_gradient(identity_map(3, diagonal).reshape(1, -1))
    assert value[0] == pytest.approx(12.6033816017, abs=1e-9)


def test_hand_sized_ridge():
    # c = 3: 2 c (c - 1) m = 12 m off the diagonal, d c = 3 d on it and on the intercepts.
    expected = [[6.0, 1.2, 1.2, 6.0], [1.2, 6.0, 1.2, 6.0], [1.2, 1.2, 6.0, 6.0]]
    np.testing.assert_allclose(structured_ridge(3, 0.1, 2.0), expected)


@KINDS
@pytest.mark.parametrize("weighted", [True, False])
def test_value_gradient_and_products_against_the_loss_with_its_hessian(diagonal, weighted):
    x, y, weight = problem(weighted=weighted)
    ridge = ridge_of(4, diagonal)
    of, loss = problems_of(x, y, weight, ridge), LinearMapLoss(x, y, weight, diagonal=diagonal)
    rng = np.random.default_rng(5)
    theta, v = rng.normal(size=(2, ridge.size))
    away = theta - identity_map(4, diagonal).ravel()
    (value,), (gradient,) = of.value_gradient(theta[None])
    expected = loss(theta)
    assert value == pytest.approx(expected.value + 0.5 * ridge.ravel() @ away**2, rel=1e-12)
    whole = expected.gradient + ridge.ravel() * away
    np.testing.assert_allclose(gradient, whole, rtol=1e-10, atol=1e-10)
    product = expected.hessian @ v + ridge.ravel() * v
    np.testing.assert_allclose(of.product(v[None])[0], product, rtol=1e-10, atol=1e-10)


@KINDS
def test_chunks_and_float32_change_little(diagonal, monkeypatch):
    x, y, weight = problem(n=900)
    ridge, v = ridge_of(4, diagonal), np.linspace(-1.0, 1.0, ridge_of(4, diagonal).size)[None]
    whole = problems_of(x, y, weight, ridge)
    monkeypatch.setattr(_row_sets, "CHUNK_BYTES", 0)
    monkeypatch.setattr(_row_sets, "FLOAT32_PAYS", 1)
    parts = problems_of(x, y, weight, ridge)
    assert len(list(parts.rows.chunks(4))) == 15  # 64 rows each
    start = identity_map(4, diagonal).reshape(1, -1)
    (value, gradient), (other, slope) = whole.value_gradient(start), parts.value_gradient(start)
    np.testing.assert_allclose(other, value, rtol=1e-6)
    np.testing.assert_allclose(slope, gradient, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(parts.product(v), whole.product(v), rtol=1e-4, atol=1e-3)
    assert not np.array_equal(parts.product(v), whole.product(v))


@KINDS
def test_sets_of_rows_are_fitted_by_themselves(diagonal):
    ridge = ridge_of(4, diagonal)
    single = [rows_of(*problem(seed)) for seed in range(3)]
    arrays = ("scores", "codes", "weight")
    rows = RowSets(*(np.concatenate([getattr(s, name) for s in single]) for name in arrays))
    start = np.tile(identity_map(4, diagonal), (3, 1, 1))
    inverse = inverse_curvature(curvature(rows, start[0]), ridge)
    found = fit_ridge(RidgeProblems(rows, rows.label_sums(), ridge, inverse), start, 1e-12)
    for seed in range(3):
        np.testing.assert_allclose(found[seed], fitted(*problem(seed), ridge), atol=1e-5)


@KINDS
@pytest.mark.parametrize("most_whole", [250, 0], ids=["whole", "blocks"])
def test_fit_against_a_general_optimiser(diagonal, most_whole, monkeypatch):
    monkeypatch.setattr(_ridge_map, "MOST_WHOLE", most_whole)
    x, y, weight = problem()
    ridge = ridge_of(4, diagonal)
    of = problems_of(x, y, weight, ridge)
    assert len(of.inverse) == (1 if most_whole else 4)

    def function(t):
        (value,), (gradient,) = of.value_gradient(t[None])
        return value, gradient

    best = minimize(function, np.zeros(ridge.size), jac=True, options={"gtol": 1e-9})
    np.testing.assert_allclose(fitted(x, y, weight, ridge).ravel(), best.x, atol=1e-5)


@KINDS
def test_curvature_is_the_hessian(diagonal, monkeypatch):
    x, y, weight = problem()
    theta = identity_map(4, diagonal) + 0.1
    hessian = LinearMapLoss(x, y, weight, diagonal=diagonal)(theta.ravel()).hessian
    found = curvature(rows_of(x, y, weight), theta)[0]
    np.testing.assert_allclose(found, hessian, rtol=1e-9, atol=1e-9)
    monkeypatch.setattr(_ridge_map, "MOST_WHOLE", 0)
    size = 2 if diagonal else 5
    expected = [hessian[j : j + size, j : j + size] for j in range(0, 4 * size, size)]
    blocks = curvature(rows_of(x, y, weight), theta)
    np.testing.assert_allclose(blocks, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("most_whole", [250, 0], ids=["whole", "blocks"])
def test_curvature_from_some_rows_stands_for_all(most_whole, monkeypatch):
    monkeypatch.setattr(_ridge_map, "MOST_WHOLE", most_whole)
    rows, theta = rows_of(*problem(n=20_000, weighted=False)), np.eye(4, 5)
    rough = curvature(rows, theta)
    monkeypatch.setattr(_ridge_map, "ROWS_OF_WHOLE", 10**6)
    monkeypatch.setattr(_ridge_map, "ROWS_OF_BLOCKS", 10**6)
    exact = curvature(rows, theta)
    # 600 rows, or 50 for a class: errors of about 1 / sqrt(50) = 0.14
    difference = np.abs(rough - exact).max() / np.abs(exact).max()
    assert 0.0 < difference < 0.5


def test_inverse_is_one():
    x, y, weight = problem()
    ridge = ridge_of(4, False)
    blocks = curvature(rows_of(x, y, weight), np.eye(4, 5))
    whole = blocks[0] + np.diag(ridge.ravel())
    np.testing.assert_allclose(inverse_curvature(blocks, ridge)[0] @ whole, np.eye(20), atol=1e-9)


@KINDS
@given(seed=st.integers(0, 1000), n=st.integers(1, 30))
@settings(deadline=None, max_examples=20)
def test_permuting_the_classes_permutes_theta(diagonal, seed, n):
    x, y, weight = problem(seed, n)
    ridge, order = ridge_of(4, diagonal), np.array([2, 0, 3, 1])
    theta = fitted(x, y, weight, ridge)
    other = fitted(np.ascontiguousarray(x[order]), np.argsort(order)[y], weight, ridge)
    columns = [0, 1] if diagonal else [*order, 4]
    np.testing.assert_allclose(other, theta[order][:, columns], atol=1e-5)
