import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcllo.calibrators._newton_sets import conjugate_gradients, minimize_sets, newton_directions


class Quartics:
    """``sum_k x_k^4 / 4 + h_k x_k^2 / 2 - b_k x_k`` for each row of b."""

    def __init__(self, b, h=1.0):
        self.b, self.h, self.rounding, self.calls = b, h, np.zeros(len(b)), 0

    def value_gradient(self, x):
        self.x, self.calls = x, self.calls + 1
        value = (x**4 / 4.0 + self.h * x**2 / 2.0 - self.b * x).sum(axis=1)
        return value, x**3 + self.h * x - self.b

    def direction(self, gradient):
        return -gradient / (3.0 * self.x**2 + self.h)


def positive(seed, n_sets=3, size=6):
    root = np.random.default_rng(seed).normal(size=(n_sets, size, size))
    return root @ root.transpose(0, 2, 1) + 0.1 * np.eye(size)


def test_the_minimum_is_a_fixed_point():
    problems = Quartics(np.array([[2.0, 10.0]]))  # 1 + 1 = 2, 8 + 2 = 10
    x = minimize_sets(problems, np.array([[1.0, 2.0]]), 1e-12)
    np.testing.assert_array_equal(x, [[1.0, 2.0]])
    assert problems.calls == 1


def test_problems_of_different_size_end_by_themselves():
    problems = Quartics(np.array([[2.0, 10.0], [0.0, 0.0], [1010.0, 1010.0]]))
    x = minimize_sets(problems, np.zeros((3, 2)), 1e-12)
    np.testing.assert_allclose(x, [[1.0, 2.0], [0.0, 0.0], [10.0, 10.0]], atol=1e-8)


def test_steps_that_go_too_far_are_halved():
    problems = Quartics(np.array([[1000.0]]), h=1e-3)  # the first step goes to a million
    assert minimize_sets(problems, np.zeros((1, 1)), 1e-12)[0, 0] == pytest.approx(10.0, abs=1e-4)


def test_a_trace_asks_for_more_steps():
    # From far away: the first decrement is large, so what may be left is little.
    few, many = Quartics(np.array([[2.0]])), Quartics(np.array([[2.0]]))
    rough = minimize_sets(few, np.full((1, 1), 50.0), 0.5)
    fine = minimize_sets(many, np.full((1, 1), 50.0), 0.5, trace=0.1)
    assert many.calls > few.calls
    assert abs(fine - 1.0) < abs(rough - 1.0)


def test_newton_directions():
    hessian = positive(0)
    gradient = np.random.default_rng(1).normal(size=(3, 6))
    expected = [-np.linalg.inv(h) @ g for h, g in zip(hessian, gradient, strict=True)]
    np.testing.assert_allclose(newton_directions(hessian, gradient), expected, rtol=1e-8)


@given(st.integers(0, 1000))
@settings(deadline=None, max_examples=20)
def test_conjugate_gradients_against_solve(seed):
    hessian = positive(seed)
    right = np.random.default_rng(seed + 1).normal(size=(3, 6))
    right[1] = 0.0  # nothing to do in one of them

    def product(v):
        return np.einsum("sij,sj->si", hessian, v)

    scale = np.einsum("sii->si", hessian)
    found = conjugate_gradients(product, lambda v: v / scale, right, 1e-10)
    np.testing.assert_allclose(product(found), right, atol=1e-6)
    rough = conjugate_gradients(product, lambda v: v / scale, right, 0.1)
    left = right - product(rough)
    assert ((left**2 / scale).sum(axis=1) <= 0.0101 * (right**2 / scale).sum(axis=1)).all()
