import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcllo._model.kernel import Derivatives
from mcllo._model.many_classes import (
    NO_HESSIAN,
    InexactNewtonDirection,
    conjugate_gradients,
    minimize_pcg,
)
from mcllo._model.newton import (
    LBFGSInverseHessian,
    MemoizedObjective,
    StopAtSlowDecrease,
    minimize,
    minimize_lbfgs,
    newton_direction,
)

quick = settings(deadline=None, max_examples=30)


def quadratic(matrix, target):
    """``(x - target)' matrix (x - target) / 2``"""

    def objective(x):
        away = x - target
        return Derivatives(0.5 * float(away @ matrix @ away), matrix @ away, matrix)

    return objective


def separable(value, slope, curvature):
    """A sum of one-dimensional functions, one for each coordinate."""

    def objective(x):
        return Derivatives(float(value(x).sum()), slope(x), np.diag(curvature(x)))

    return objective


log_cosh = separable(
    lambda x: np.logaddexp(x, -x) - np.log(2.0),
    np.tanh,
    lambda x: 1.0 - np.tanh(x) ** 2,
)


class Known:
    """An objective whose Hessian is known, used through its products; diagonal preconditioner."""

    def __init__(self, dense):
        self.dense = dense

    def value_and_gradient(self, x):
        terms = self.dense(x)
        self.hessian = terms.hessian
        return Derivatives(terms.value, terms.gradient, NO_HESSIAN)

    def hessian_times(self, v):
        return self.hessian @ v

    def precondition(self, v):
        return v / np.maximum(np.diagonal(self.hessian), 1e-290)


def coupled(matrix):
    """``log cosh`` of every coordinate of ``matrix x - 1``: convex, with a full Hessian."""

    def objective(x):
        inner = log_cosh(matrix @ x - 1.0)
        return Derivatives(
            inner.value, matrix.T @ inner.gradient, matrix.T @ inner.hessian @ matrix
        )

    return objective


def by_products(objective, start, **options):
    """Minimise with Hessian products alone."""
    return minimize_pcg(Known(objective), start, **options)


def assert_ends_at(found, x, atol):
    assert found.converged
    np.testing.assert_allclose(found.x, x, atol=atol)


both_solvers = pytest.mark.parametrize("solve", [minimize, by_products])


@both_solvers
def test_the_minimum_is_a_fixed_point(solve):
    flat = separable(np.zeros_like, np.zeros_like, np.zeros_like)
    for objective, start in ((log_cosh, np.zeros(3)), (flat, np.ones(2))):
        found = solve(objective, start)
        assert found.converged
        assert (found.n_iter, found.value, found.gradient_norm) == (1, 0.0, 0.0)
        np.testing.assert_array_equal(found.x, start)


def test_a_quadratic_takes_one_step_by_hand():
    # (x - 1)^2 + 2 (y + 3)^2: from (0, 0) the Newton step is (1, -3), the decrement 2 * 19 = 38
    objective = quadratic(np.diag([2.0, 4.0]), np.array([1.0, -3.0]))
    found, early = (
        minimize(objective, np.zeros(2)),
        minimize(objective, np.zeros(2), tol=1e6),
    )
    assert found.converged
    assert (found.n_iter, early.n_iter) == (
        2,
        1,
    )  # the second sees that nothing is left
    assert found.start.value == pytest.approx(19.0)
    assert found.value == pytest.approx(0.0, abs=1e-25)
    # with a tolerance above 38 the first step ends the run; its value includes that step
    assert early.derivatives.value == pytest.approx(19.0)
    assert early.decrement == pytest.approx(38.0)
    assert early.value == pytest.approx(0.0, abs=1e-14)
    for end in (found.x, early.x, minimize_pcg(Known(objective), np.zeros(2)).x):
        np.testing.assert_allclose(end, [1.0, -3.0], rtol=1e-14)
    # preconditioned by its diagonal, one product gives the step
    known = Known(objective)
    directions = InexactNewtonDirection(known)
    np.testing.assert_allclose(
        directions(known.value_and_gradient(np.zeros(2))), [1.0, -3.0]
    )
    assert directions.n_products == 1


@both_solvers
def test_log_cosh_from_where_a_full_step_diverges(solve):
    # beyond |x| = 1.09 the undamped iteration diverges: the step is -sinh(2 x) / 2
    for start in (0.5, 1.2, 3.0):
        assert_ends_at(solve(log_cosh, np.array([start, -0.3])), 0.0, 1e-8)
    assert_ends_at(minimize(log_cosh, np.array([-300.0, -0.3])), 0.0, 1e-8)


def test_an_infimum_at_infinity_takes_bounded_steps():
    # exp(-x): each Newton step is 1, so the decrement exp(-x) falls by e a step
    decay = separable(lambda x: np.exp(-x), lambda x: -np.exp(-x), lambda x: np.exp(-x))
    found = minimize(decay, np.zeros(1))
    assert found.converged
    assert 20 <= found.n_iter <= 40
    assert found.x[0] == pytest.approx(found.n_iter, rel=1e-12)
    assert 0.0 <= found.value < 1e-10


@quick
@given(st.integers(0, 2**32 - 1), st.floats(-6.0, 6.0))
def test_rescaling_a_coordinate_changes_nothing(seed, exponent):
    rng = np.random.default_rng(seed)
    factor = np.array([1.0, 10.0**exponent])
    start = rng.normal(size=2)

    def scaled(x):
        terms = log_cosh(x * factor)
        return Derivatives(
            terms.value,
            terms.gradient * factor,
            terms.hessian * np.outer(factor, factor),
        )

    plain, other = minimize(log_cosh, start), minimize(scaled, start / factor)
    assert other.n_iter == plain.n_iter
    np.testing.assert_allclose(other.x * factor, plain.x, atol=1e-9)


def test_an_indefinite_start_goes_downhill():
    # x^4 / 4 - x^2 / 2 + y^2 has curvature -0.97 in x at the start; its minima are (-1, 0), (1, 0)
    def objective(x):
        return Derivatives(
            x[0] ** 4 / 4.0 - x[0] ** 2 / 2.0 + x[1] ** 2,
            np.array([x[0] ** 3 - x[0], 2.0 * x[1]]),
            np.diag([3.0 * x[0] ** 2 - 1.0, 2.0]),
        )

    found = minimize(objective, np.array([0.1, 1.0]))
    assert_ends_at(found, [1.0, 0.0], 1e-9)
    assert found.n_iter <= 12
    assert found.value == pytest.approx(-0.25)


def test_trial_steps_may_leave_the_domain():
    # x - log x from 10: the first full step lands at -80, where the value is not a number
    barrier = separable(
        lambda x: x - np.log(x), lambda x: 1.0 - 1.0 / x, lambda x: 1.0 / x**2
    )
    assert_ends_at(minimize(barrier, np.array([10.0])), 1.0, 1e-9)


def test_a_value_of_minus_infinity_is_not_a_minimum():
    # (x - 100)^2, which breaks down beyond 10: the full step lands there and must be shortened
    def objective(x):
        value = float((x[0] - 100.0) ** 2) if x[0] < 10.0 else -np.inf
        return Derivatives(value, 2.0 * (x - 100.0), np.full((1, 1), 2.0))

    found = minimize(objective, np.zeros(1), max_iter=5)
    assert np.isfinite(found.value)
    assert found.x[0] < 10.0


def test_trial_steps_may_overflow():
    # cosh from 0.1 with a curvature 1e4 times too small: the first full step overflows
    def objective(x):
        return Derivatives(float(np.cosh(x[0])), np.sinh(x), 1e-4 * np.cosh(x)[:, None])

    found = minimize(objective, np.array([0.1]), max_iter=400)
    assert found.x[0] == pytest.approx(0.0, abs=1e-3)
    assert np.isfinite(found.value)


def test_a_slope_without_curvature_is_not_called_converged():
    # -x has no minimum and no curvature; the run must end and say so
    line = separable(lambda x: -x, lambda x: -np.ones_like(x), np.zeros_like)
    found = minimize(line, np.zeros(1))
    assert not found.converged
    assert found.gradient_norm == 1.0
    assert np.isfinite([*found.x, found.value]).all()


@both_solvers
def test_running_out_of_iterations_is_not_called_converged(solve):
    found = solve(log_cosh, np.array([3.0]), max_iter=2)
    assert not found.converged
    assert found.n_iter == 2
    assert found.gradient_norm == pytest.approx(abs(np.tanh(found.x[0])))
    assert found.value == pytest.approx(float(log_cosh(found.x).value))


@both_solvers
def test_a_gradient_that_lies_ends_the_line_search(solve):
    # the slope points uphill, so no fraction of the step lowers the value
    def liar(x):
        return Derivatives(float(x @ x), -2.0 * x, 2.0 * np.eye(len(x)))

    found = solve(liar, np.ones(1))
    assert not found.converged
    assert found.n_iter == 1
    np.testing.assert_array_equal(found.x, np.ones(1))


@quick
@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_the_direction_solves_the_newton_equation(seed, size):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(size, size + 2))
    hessian, gradient = root @ root.T, rng.normal(size=size)
    direction = newton_direction(Derivatives(0.0, gradient, hessian))
    np.testing.assert_allclose(hessian @ direction, -gradient, atol=1e-8)


@quick
@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_the_direction_of_a_singular_hessian_is_finite_and_downhill(seed, size):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(size, 1))
    gradient = rng.normal(size=size)
    direction = newton_direction(Derivatives(0.0, gradient, root @ root.T))
    assert np.isfinite(direction).all()
    assert gradient @ direction < 0.0


def test_curvature_next_to_nothing_does_not_overflow():
    # the Newton step is 1e290 long and its decrement overflows
    slight = separable(
        lambda x: -x, lambda x: -np.full(1, 1e30), lambda x: np.full(1, 1e-260)
    )
    found = minimize(slight, np.zeros(1), max_iter=3)
    assert not found.converged
    assert np.isfinite(found.x).all()


def counted(objective, calls):
    def count(x):
        calls.append(x.copy())
        return objective(x)

    return count


def test_a_search_may_begin_at_a_point_that_is_known_and_end_where_a_callback_says():
    calls, start = [], np.array([0.9, -0.5])
    whole = minimize(counted(log_cosh, calls), start)
    n_calls = len(calls)
    objective = MemoizedObjective(counted(log_cosh, calls))
    first = objective(start)
    again = minimize(objective, start)
    assert len(calls) == 2 * n_calls
    assert again.start is first
    np.testing.assert_array_equal(again.x, whole.x)
    early = minimize(log_cosh, start, callback=lambda found: found.value < 0.1)
    assert not early.converged
    assert early.n_iter == 3
    assert whole.value < early.value <= 0.1
    assert early.value == log_cosh(early.x).value


def test_secants_are_the_update_of_the_books():
    # two corrections of B = diag(1, 2, 4):
    # B <- (I - s y' / y's) B (I - y s' / y's) + s s' / y's
    rng = np.random.default_rng(3)
    b, secants = (
        np.diag([1.0, 2.0, 4.0]),
        LBFGSInverseHessian(np.diag([1.0, 2.0, 4.0]).__matmul__),
    )
    for _ in range(2):
        s, y = rng.normal(size=(2, 3))
        y = y if s @ y > 0.0 else -y
        left = np.eye(3) - np.outer(s, y) / (s @ y)
        b = left @ b @ left.T + np.outer(s, s) / (s @ y)
        secants.update(s, y)
        np.testing.assert_allclose(secants(y), s, atol=1e-12)  # the secant equation
    v = rng.normal(size=3)
    np.testing.assert_allclose(secants(v), b @ v, rtol=1e-12)


def coupled_cosh(seed, size=12):
    """``sum log cosh(m_i . x - t_i) + |x|^2 / 20``: its Hessian changes along the way."""
    rng = np.random.default_rng(seed)
    m, target = rng.normal(size=(30, size)), rng.normal(size=30)

    def objective(x):
        r = m @ x - target
        value = float((np.logaddexp(r, -r) - np.log(2.0)).sum() + x @ x / 20.0)
        slope = np.tanh(r)
        return Derivatives(
            value,
            m.T @ slope + x / 10.0,
            (m.T * (1.0 - slope**2)) @ m + np.eye(size) / 10.0,
        )

    return objective


@pytest.mark.parametrize("seed", range(2))
def test_approach_ends_where_newton_ends_without_its_hessians(seed):
    objective = coupled_cosh(seed)
    start = np.zeros(12)

    def light(x):
        terms = objective(x)
        return Derivatives(terms.value, terms.gradient, NO_HESSIAN)

    rough = np.linalg.inv(1.2 * objective(start).hessian).__matmul__
    near = minimize_lbfgs(
        light,
        start,
        LBFGSInverseHessian(rough),
        callback=StopAtSlowDecrease(0.9),
        tol=1e-13,
    )
    exact = minimize(objective, start)
    assert near.converged
    np.testing.assert_allclose(near.x, exact.x, atol=1e-6)
    assert minimize(objective, near.x).n_iter == 1


def test_an_inverse_that_is_too_large_costs_a_few_halvings_and_not_some_each_step():
    objective, calls = coupled_cosh(0, size=40), []

    def light(x):
        calls.append(1)
        return objective(x)

    large = (5.0 * np.linalg.inv(objective(np.zeros(40)).hessian)).__matmul__
    near = minimize_lbfgs(light, np.zeros(40), LBFGSInverseHessian(large), tol=1e-8)
    assert near.converged
    assert (
        len(calls) <= near.n_iter + 4
    )  # 17 calls in 13 steps; 140 in 44 if P stays as it is


def test_approach_leaves_off_where_decrements_hardly_fall():
    # exp(-x) has no minimum: Newton's step is 1, and decrements fall by a factor e
    objective = separable(
        lambda x: np.exp(-x), lambda x: -np.exp(-x), lambda x: np.exp(-x)
    )
    start = np.zeros(1)
    rough = np.array([[0.1]]).__matmul__
    slow = StopAtSlowDecrease(0.5)
    near = minimize_lbfgs(objective, start, LBFGSInverseHessian(rough), callback=slow)
    assert not near.converged
    assert slow.stopped
    assert near.n_iter < 5


@quick
@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_conjugate_gradients_solve_linear_equations(seed, size):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(size, 2 * size + 2))
    matrix, right = root @ root.T, rng.normal(size=size)
    x, used = conjugate_gradients(lambda v: matrix @ v, lambda v: v, right, 1e-10)
    assert used <= 3 * size + 3
    np.testing.assert_allclose(matrix @ x, right, atol=1e-8 * np.linalg.norm(right))


def test_curvature_that_is_not_positive_ends_the_search_downhill():
    right = np.array([1.0, 2.0])
    x, used = conjugate_gradients(lambda v: -v, lambda v: v, right, 1e-3)
    assert used == 1
    assert x @ right > 0.0
    x, used = conjugate_gradients(lambda v: 0.0 * v, lambda v: v, np.zeros(2), 1e-3)
    assert used == 0
    np.testing.assert_array_equal(x, np.zeros(2))


@pytest.mark.parametrize("seed", range(2))
def test_finds_the_minimum_that_newton_finds(seed):
    rng = np.random.default_rng(seed)
    dense = coupled(rng.normal(size=(60, 20)) / 4.0)
    found = minimize_pcg(Known(dense), np.zeros(20))
    exact = minimize(dense, np.zeros(20))
    assert_ends_at(found, exact.x, 1e-8)
    assert found.value == pytest.approx(exact.value, abs=1e-10)
