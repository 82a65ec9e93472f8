import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcllo._model import Terms
from mcllo._newton import minimize
from mcllo._operator import NO_HESSIAN
from mcllo._pcg import conjugate_gradients, minimize_pcg

quick = settings(deadline=None, max_examples=50)


class Known:
    """An objective whose Hessian is known, used through its products; diagonal preconditioner."""

    def __init__(self, dense, blur=0.0):
        self.dense, self.blur, self.calls = dense, blur, []

    def value_gradient(self, x):
        self.calls.append("exact")
        return self._move(x)

    def rough(self, x):
        self.calls.append("rough")
        terms = self._move(x)
        return Terms(terms.value, terms.gradient * (1.0 + self.blur), NO_HESSIAN)

    def _move(self, x):
        terms = self.dense(x)
        self.hessian = terms.hessian
        return Terms(terms.value, terms.gradient, NO_HESSIAN)

    def product(self, v):
        return self.hessian @ v

    def precondition(self, v):
        return v / np.maximum(np.diagonal(self.hessian), 1e-290)


def quadratic(matrix, target):
    def objective(x):
        away = x - target
        return Terms(0.5 * float(away @ matrix @ away), matrix @ away, matrix)

    return objective


def log_cosh(x):
    value = float((np.logaddexp(x, -x) - np.log(2.0)).sum())
    return Terms(value, np.tanh(x), np.diag(1.0 - np.tanh(x) ** 2))


def coupled(matrix):
    """``log cosh`` of every coordinate of ``matrix x - 1``: convex, with a full Hessian."""

    def objective(x):
        inner = log_cosh(matrix @ x - 1.0)
        return Terms(inner.value, matrix.T @ inner.gradient, matrix.T @ inner.hessian @ matrix)

    return objective


def test_the_minimum_is_a_fixed_point():
    found = minimize_pcg(Known(log_cosh), np.zeros(3))
    assert found.converged
    assert found.n_iter == 1
    assert found.n_products == 0
    np.testing.assert_array_equal(found.x, np.zeros(3))


def test_a_diagonal_quadratic_takes_one_product_by_hand():
    # (x - 1)^2 + 2 (y + 3)^2: preconditioned by its diagonal, one product gives the step (1, -3)
    found = minimize_pcg(Known(quadratic(np.diag([2.0, 4.0]), np.array([1.0, -3.0]))), np.zeros(2))
    assert found.converged
    assert found.n_products == 1
    assert found.start.value == pytest.approx(19.0)
    assert found.start.hessian.size == 0
    np.testing.assert_allclose(found.x, [1.0, -3.0], rtol=1e-14)


@quick
@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_conjugate_gradients_solve_linear_equations(seed, size):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(size, 2 * size + 2))
    matrix, right = root @ root.T, rng.normal(size=size)
    x, used = conjugate_gradients(lambda v: matrix @ v, lambda v: v, right, 1e-10)
    assert used <= 3 * size + 3
    np.testing.assert_allclose(matrix @ x, right, atol=1e-8 * np.linalg.norm(right))


def test_the_part_left_is_what_was_asked_for():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(60, 80))
    matrix, right = root @ root.T, rng.normal(size=60)
    used = []
    for part in (0.5, 1e-2, 1e-6):
        x, products = conjugate_gradients(lambda v: matrix @ v, lambda v: v, right, part)
        assert np.linalg.norm(matrix @ x - right) <= part * np.linalg.norm(right) * 1.001
        used.append(products)
    assert used[0] < used[1] < used[2]


def test_curvature_that_is_not_positive_ends_the_search_downhill():
    right = np.array([1.0, 2.0])
    x, used = conjugate_gradients(lambda v: -v, lambda v: v, right, 1e-3)
    assert used == 1
    assert x @ right > 0.0
    x, used = conjugate_gradients(lambda v: 0.0 * v, lambda v: v, np.zeros(2), 1e-3)
    assert used == 0
    np.testing.assert_array_equal(x, np.zeros(2))


@pytest.mark.parametrize("rough", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_finds_the_minimum_that_newton_finds(seed, rough):
    rng = np.random.default_rng(seed)
    dense = coupled(rng.normal(size=(60, 20)) / 4.0)
    found = minimize_pcg(Known(dense), np.zeros(20), rough=rough)
    exact = minimize(dense, np.zeros(20))
    assert found.converged
    np.testing.assert_allclose(found.x, exact.x, atol=1e-8)
    assert found.value == pytest.approx(exact.value, abs=1e-10)


def test_rough_steps_spare_exact_evaluations():
    dense = coupled(np.random.default_rng(1).normal(size=(60, 20)) / 4.0)
    plain, mixed = Known(dense), Known(dense, blur=1e-6)
    minimize_pcg(plain, np.zeros(20))
    found = minimize_pcg(mixed, np.zeros(20), rough=True)
    assert found.converged
    assert mixed.calls.count("exact") < plain.calls.count("exact")
    assert mixed.calls.count("rough") > 0
    assert mixed.calls[-1] == "exact"


@pytest.mark.parametrize("rough", [False, True])
def test_from_where_a_full_step_diverges(rough):
    found = minimize_pcg(Known(log_cosh), np.array([3.0, -0.3]), rough=rough)
    assert found.converged
    np.testing.assert_allclose(found.x, 0.0, atol=1e-8)


def test_running_out_of_iterations_is_not_called_converged():
    found = minimize_pcg(Known(log_cosh), np.array([3.0]), max_iter=2)
    assert not found.converged
    assert found.n_iter == 2
    assert found.gradient_norm == pytest.approx(abs(np.tanh(found.x[0])))


def test_a_gradient_that_lies_ends_the_run():
    def liar(x):
        return Terms(float(x @ x), -2.0 * x, 2.0 * np.eye(len(x)))

    found = minimize_pcg(Known(liar), np.ones(1))
    assert not found.converged
    np.testing.assert_array_equal(found.x, np.ones(1))
