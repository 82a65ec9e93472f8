import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize as minimize_by_scipy
from toy import TOY_X, TOY_Y

from mcllo._fit.linear_fit import (
    PenalizedLoss,
    build_block_preconditioner,
    identity_parameters,
)
from mcllo._fit.penalty import RidgeObjective
from mcllo._model.kernel import LogPartition
from mcllo._model.likelihood import (
    NegativeLogLikelihood,
    identity_theta,
    log_odds_from_log_probs,
    sufficient_statistic,
)
from mcllo._model.linear_map import LinearMapLoss
from mcllo._model.newton import minimize
from mcllo.calibrators._auto.baseline_maps import fit_baselines, map_parameters
from mcllo.calibrators._auto.similarity import (
    by_factors,
    curvature,
    fit_ridge,
    structured_ridge,
)
from mcllo.calibrators._auto.temperature_with_lapse import ScoredRows


def sample(n=150, c=4, seed=0, weighted=True):
    rng = np.random.default_rng(seed)
    x = np.log(rng.dirichlet(np.ones(c), size=n)).T
    y = (x * np.linspace(0.5, 1.5, c)[:, None] + rng.gumbel(size=x.shape)).argmax(
        axis=0
    )
    return x, y, rng.exponential(size=n) if weighted else None


def single(x, y, weight, b):
    """The penalised likelihood of one baseline, of `_fit` and `_math`."""
    c = len(x)
    odds = log_odds_from_log_probs(x.copy(), b)
    moved = np.where(y == b, c - 1, y - (y > b))
    statistic = sufficient_statistic(odds, moved, weight)
    return RidgeObjective(
        NegativeLogLikelihood(LogPartition(odds, weight), statistic),
        3.0,
        identity_theta(c - 1),
    )


def test_identity():
    x, y, weight = sample()
    theta = map_parameters(np.tile(identity_theta(3), (4, 1)))
    for b in range(4):
        np.testing.assert_allclose(
            (theta[b] @ np.vstack([x, np.ones(150)])), x - x[b], atol=1e-12
        )
    held = fit_baselines(ScoredRows(x, y, weight), 1e12, 1e-12).theta
    np.testing.assert_allclose(held, np.tile(identity_theta(3), (4, 1)), atol=1e-9)


def test_hand_sized_map():
    # c = 2. Baseline 0: eta_1 = 5 + 3 (x_1 - x_0); baseline 1: eta_0 = 4 + 2 (x_0 - x_1).
    baselines = np.array([[5.0, 3.0], [4.0, 2.0]])
    expected = [[[0, 0, 0], [-3, 3, 5]], [[2, -2, 4], [0, 0, 0]]]
    np.testing.assert_array_equal(map_parameters(baselines), expected)


@pytest.mark.parametrize(("weighted", "most"), [(True, 10**6), (False, 1)])
def test_fits_against_single_baselines_together_and_one_by_one(weighted, most):
    x, y, weight = sample(weighted=weighted)
    found = fit_baselines(ScoredRows(x, y, weight), 3.0, 1e-12, max_log_odds=most).theta
    for b in range(4):
        expected = minimize(single(x, y, weight, b), identity_theta(3)).x
        np.testing.assert_allclose(found[b], expected, atol=1e-6)


def test_the_start_of_a_fit_does_not_matter():
    start = fit_baselines(ScoredRows(*sample(seed=1)), 3.0, 1e-12)
    kept, rows = (
        start.theta.copy(),
        ScoredRows(*sample(4000)),
    )  # of which some are fitted first
    found, alone = (
        fit_baselines(rows, 3.0, 1e-12, begin).theta for begin in (start, None)
    )
    np.testing.assert_allclose(found, alone, atol=1e-6)
    np.testing.assert_array_equal(start.theta, kept)


@pytest.mark.parametrize("weighted", [True, False])
def test_without_some_rows_is_a_newton_step_of_the_others(weighted):
    x, y, weight = sample(weighted=weighted)
    whole, last = (
        fit_baselines(ScoredRows(x, y, weight), 3.0, 1e-20),
        np.arange(len(y)) < 20,
    )
    out, kept = (
        ScoredRows(x[:, own].copy(), y[own], None if weight is None else weight[own])
        for own in (last, ~last)
    )
    without = whole.without(out)
    found = without.theta
    alone = fit_baselines(kept, 3.0, 1e-14).theta
    for b in range(4):
        theta = whole.theta[b]
        terms = single(kept.scores, kept.codes, kept.weight, b)(theta)
        step = np.linalg.solve(terms.hessian, terms.gradient)
        np.testing.assert_allclose(found[b], theta - step, atol=1e-5)
        np.testing.assert_allclose(
            without.hessian[b], terms.hessian, rtol=1e-4, atol=1e-4
        )
    assert np.abs(found - alone).max() < 0.2 * np.abs(whole.theta - alone).max()


Z = np.log(TOY_X).T.copy()
KINDS = pytest.mark.parametrize("diagonal", [True, False], ids=["vector", "full"])


def ridge_of(c, diagonal, strength=1.5):
    return np.full((c, 2), strength) if diagonal else structured_ridge(c, 0.2, strength)


def loss_of(x, y, weight, ridge):
    diagonal = ridge.shape[1] == 2
    loss = LinearMapLoss(x, y, weight, diagonal=diagonal)
    return PenalizedLoss(loss, identity_parameters(len(ridge), diagonal), ridge)


def fitted(x, y, weight, ridge, most_whole=250, tol=1e-12):
    rows, start = (
        ScoredRows(x, y, weight),
        identity_parameters(len(ridge), ridge.shape[1] == 2),
    )
    inverse = build_block_preconditioner(curvature(rows, start, most_whole), ridge)
    return fit_ridge(rows, ridge, start, inverse, tol)[0]


@KINDS
def test_identity_on_toy(diagonal):
    # methods.md 0.4: NLL at the identity 12.6033816017; the ridge adds nothing there.
    of = loss_of(Z, TOY_Y, None, ridge_of(3, diagonal))
    value = of.value_and_gradient(identity_parameters(3, diagonal).ravel()).value
    assert value == pytest.approx(12.6033816017, abs=1e-9)


def test_hand_sized_ridge():
    # c = 3: 2 c (c - 1) m = 12 m off the diagonal, d c = 3 d on it and on the intercepts.
    expected = [[6.0, 1.2, 1.2, 6.0], [1.2, 6.0, 1.2, 6.0], [1.2, 1.2, 6.0, 6.0]]
    np.testing.assert_allclose(structured_ridge(3, 0.1, 2.0), expected)


@KINDS
def test_values_and_gradients_with_and_without_the_hessian(diagonal):
    x, y, weight = sample(weighted=diagonal)
    ridge = ridge_of(4, diagonal)
    of, loss = (
        loss_of(x, y, weight, ridge),
        LinearMapLoss(x, y, weight, diagonal=diagonal),
    )
    theta = np.random.default_rng(5).normal(size=ridge.size)
    away = theta - identity_parameters(4, diagonal).ravel()
    expected, light, whole = loss(theta), of.value_and_gradient(theta), of(theta)
    assert light.value == pytest.approx(
        expected.value + 0.5 * ridge.ravel() @ away**2, rel=1e-12
    )
    assert whole.value == pytest.approx(light.value, rel=1e-12)
    for terms in (light, whole):
        slope = expected.gradient + ridge.ravel() * away
        np.testing.assert_allclose(terms.gradient, slope, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(whole.hessian, expected.hessian + np.diag(ridge.ravel()))


@KINDS
def test_fit_against_a_general_optimiser(diagonal):
    data, ridge = sample(), ridge_of(4, diagonal)
    of = loss_of(*data, ridge)

    def function(t):
        terms = of.value_and_gradient(t)
        return terms.value, terms.gradient

    best = minimize_by_scipy(
        function, np.zeros(ridge.size), jac=True, options={"gtol": 1e-9}
    )
    for most_whole in (250, 0):  # with the whole Hessian, and by its blocks
        found = fitted(*data, ridge, most_whole)
        np.testing.assert_allclose(found.ravel(), best.x, atol=1e-5)


def test_two_factors_give_the_same_fit():
    x, y, weight = sample(c=5)
    rows, ridge, start = ScoredRows(x, y, weight), np.full((5, 6), 3.0), np.eye(5, 6)
    found, _ = fit_ridge(rows, ridge, start, by_factors(rows, start, 3.0), 1e-12)
    np.testing.assert_allclose(found, fitted(x, y, weight, ridge), atol=1e-5)


def test_two_factors_are_the_inverse_where_rows_are_alike():
    # theta without slopes gives all rows the same probabilities, whatever their features
    x, y, weight = sample(c=5)
    theta = np.zeros((5, 6))
    theta[:, -1] = np.log([0.1, 0.3, 0.2, 0.15, 0.25])
    hessian = LinearMapLoss(x, y, weight)(theta.ravel()).hessian + 3.0 * np.eye(30)
    v = np.random.default_rng(2).normal(size=30)
    product = by_factors(ScoredRows(x, y, weight), theta, 3.0)
    np.testing.assert_allclose(
        product(v), np.linalg.solve(hessian, v), rtol=1e-9, atol=1e-12
    )


def blocks_of(hessian, size):
    """The blocks on the diagonal."""
    starts = range(0, len(hessian), size)
    return np.array([hessian[j : j + size, j : j + size] for j in starts])


@KINDS
def test_curvature_is_the_hessian(diagonal):
    x, y, weight = sample(10 if diagonal else 25)
    theta = identity_parameters(4, diagonal) + 0.1
    hessian = LinearMapLoss(x, y, weight, diagonal=diagonal)(theta.ravel()).hessian
    whole, blocks = (
        curvature(ScoredRows(x, y, weight), theta, most) for most in (250, 0)
    )
    np.testing.assert_allclose(whole[0], hessian, rtol=1e-9, atol=1e-9)
    # of a class's rows the five for each feature that matter most count one by one: here all
    expected = blocks_of(hessian, theta.shape[1])
    np.testing.assert_allclose(blocks, expected, rtol=1e-9, atol=1e-9)


def test_curvature_from_some_rows_stands_for_all():
    x, y, _ = sample(n=20_000, weighted=False)
    rough = curvature(ScoredRows(x, y, None), np.eye(4, 5))[0]
    exact = LinearMapLoss(x, y)(np.eye(4, 5).ravel()).hessian
    # 600 rows: errors of about 1 / sqrt(600) = 0.04
    difference = np.abs(rough - exact).max() / np.abs(exact).max()
    assert 0.0 < difference < 0.2


@KINDS
@given(seed=st.integers(0, 1000), n=st.integers(1, 30))
@settings(deadline=None, max_examples=20)
def test_permuting_the_classes_permutes_theta(diagonal, seed, n):
    x, y, weight = sample(n, seed=seed)
    ridge, order = ridge_of(4, diagonal), np.array([2, 0, 3, 1])
    theta = fitted(x, y, weight, ridge)
    other = fitted(np.ascontiguousarray(x[order]), np.argsort(order)[y], weight, ridge)
    columns = [0, 1] if diagonal else [*order, 4]
    np.testing.assert_allclose(other, theta[order][:, columns], atol=1e-5)


SCORES = np.array([[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 5.0, 5.0]])
CODES = np.array([0, 1, 1, 0])


def test_hand_sized_rows():
    rows = ScoredRows(SCORES, CODES)
    part = rows.with_weight(np.array([1.0, 2.0, 0.0, 1.0]))
    np.testing.assert_array_equal(part.scores, SCORES[:, [0, 1, 3]])
    np.testing.assert_array_equal(part.codes, [0, 1, 0])
    np.testing.assert_array_equal(part.weight, [1.0, 2.0, 1.0])
    assert (rows.total, part.total) == (4.0, 4.0)
    assert rows.with_weight(np.array([1.0, 1.0, 0.0, 0.0])).weight is None


def test_every_second_row_counts_twice():
    rows = ScoredRows(SCORES, CODES, np.array([1.0, 2.0, 3.0, 4.0])).every(2)
    np.testing.assert_array_equal(rows.scores, SCORES[:, ::2])
    np.testing.assert_array_equal(rows.weight, [2.0, 6.0])
    assert ScoredRows(SCORES, CODES).every(2).total == 4.0
