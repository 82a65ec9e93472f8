import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import direct_nll, draw, log_odds_of, simplex
from toy import TOY_X, TOY_Y

from mcllo._bound import RestBound, moments, solve
from mcllo._model import Likelihood, LogPartition, identity_theta, sufficient_statistic
from mcllo._newton import minimize, newton_direction

quick = settings(deadline=None, max_examples=40)


def newton_path(log_odds, codes, n_steps=12):
    """Return theta, Newton step and the rest of the gain along a fit, row by row."""
    s = sufficient_statistic(log_odds, codes)
    likelihood = Likelihood(LogPartition(log_odds), s)
    path, theta = [], identity_theta(len(log_odds))
    for _ in range(n_steps):
        terms = likelihood(theta)
        step = newton_direction(terms)
        value = direct_nll(theta, log_odds, codes)
        path.append((theta, step, value, -terms.gradient @ step))
        length = 1.0
        while likelihood(theta + length * step).value > terms.value and length > 1e-6:
            length *= 0.5
        theta = theta + length * step
    best = direct_nll(minimize(likelihood, identity_theta(len(log_odds))).x, log_odds, codes)
    return s, [(t, d, value - best, decrement) for t, d, value, decrement in path]


def bounds(log_odds, codes):
    """Return true rests, their bounds and decrements along the path of a fit."""
    s, path = newton_path(log_odds, codes)
    theta, step = (np.array([point[i] for point in path]) for i in (0, 1))
    whole = np.ones(2 * len(log_odds), dtype=bool)
    rest_bound = RestBound(log_odds, np.ones(len(codes)), whole)
    bound = rest_bound(theta, np.tile(s, (len(path), 1)), step)
    return np.array([p[2] for p in path]), bound, np.array([p[3] for p in path])


def test_nothing_is_left_at_the_maximum():
    rest, bound, _ = bounds(log_odds_of(TOY_X), TOY_Y)
    assert bound[-1] == pytest.approx(0.0, abs=1e-12)
    assert rest[-1] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("label", "step", "bound"),
    [
        # x = (.2, .8), only tau moves. Label 0: u = .8, H = .16, step 5; eta changes by (5, 0),
        # less the mean 1: e = (4, -1), q = (1, 0); sum g e^2 = .2 * 16 + .8 = 4 >= log 5
        (0, 5.0, 4.0),
        # label 1: u = -.2, step -1.25, e = (-1, .25), q = (0, 1); .2 + .8 / 16 = .25 >= -log .8
        (1, -1.25, 0.25),
    ],
)
def test_one_row_by_hand(label, step, bound):
    odds = np.log([[0.25]])
    rest_bound = RestBound(odds, np.ones(1), np.array([True, False]))
    s = sufficient_statistic(odds, np.array([label]))
    found = rest_bound(identity_theta(1)[None], s[None], np.array([[step]]))
    assert found[0] == pytest.approx(bound, rel=1e-12)
    assert found[0] >= -np.log([0.2, 0.8][label])


def test_dropping_a_cell_by_hand():
    # a step of -5 for label 1 sends cell 0 below 0; dropped, it leaves (0, 1), which has the
    # moments of label 1 exactly: the bound is the price -log(1 - .02), which is the true rest
    odds = np.log([[0.02 / 0.98]])
    rest_bound = RestBound(odds, np.ones(1), np.array([True, False]))
    s = sufficient_statistic(odds, np.array([1]))
    found = rest_bound(identity_theta(1)[None], s[None], np.array([[-5.0]]))
    assert found[0] == pytest.approx(-np.log(0.98), rel=1e-12)


def test_a_step_that_misses_the_moments_gives_no_bound():
    # no step at all: q is g, whose moments are not s; a bound of 0 would be wrong
    odds = log_odds_of(TOY_X)
    rest_bound = RestBound(odds, np.ones(16), np.ones(4, dtype=bool))
    s = sufficient_statistic(odds, TOY_Y)[None]
    assert rest_bound._certificate(TOY_X.T[None], np.zeros((1, 3, 16)), s) == np.inf
    # the rounds then find the Newton step themselves
    found = rest_bound(identity_theta(2)[None], s, np.zeros((1, 4)))
    rest, _, decrement = bounds(odds, TOY_Y)
    assert rest[0] <= found[0] <= 1.001 * decrement[0]


@quick
@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.integers(3, 40), st.floats(0.3, 8.0))
def test_the_bound_is_one(seed, c, n, sharpness):
    rng = np.random.default_rng(seed)
    probs = simplex(rng, n, c, sharpness)
    probs = np.maximum(probs, 1e-12)
    rest, bound, _ = bounds(log_odds_of(probs), draw(probs, rng))
    assert (bound >= rest - 1e-7).all()


@quick
@given(st.integers(0, 2**32 - 1), st.floats(-4.0, -1.0), st.floats(4.0, 14.0))
def test_the_bound_is_one_where_few_rows_are_undecided(seed, tie, far):
    # rows within 10^tie of even odds among sharp ones: there the rest is many decrements
    rng = np.random.default_rng(seed)
    odds = np.concatenate([rng.normal(size=4) * 10.0**tie, rng.choice([-far, far], size=60)])
    probs = 1.0 / (1.0 + np.exp(np.column_stack([-odds, odds])))
    rest, bound, _ = bounds(odds[None], draw(probs, rng))
    assert (bound >= rest - 1e-7).all()


def test_the_rest_can_be_many_decrements():
    # four rows at log odds -/+ .01 are right, 1000 rows at -/+ 10 as well: gamma to infinity gains
    # 4 log 2 = 2.8, and Newton from the identity sees almost nothing of it
    odds = np.concatenate([np.tile([0.01, -0.01], 2), np.tile([10.0, -10.0], 500)])
    rest, bound, decrement = bounds(odds[None], (odds < 0.0).astype(int))
    assert rest[0] == pytest.approx(4.0 * np.log(2.0), abs=0.1)
    assert rest[0] > 50.0 * decrement[0]
    assert (bound >= rest - 1e-7).all()


def test_separated_rows_are_bounded_too():
    # all labels right: after a few steps the bound is close to the rest, which never reaches 0
    rng = np.random.default_rng(0)
    probs = simplex(rng, 30, 3, 2.0)
    rest, bound, _ = bounds(log_odds_of(probs), probs.argmax(axis=1))
    assert (bound >= rest - 1e-7).all()
    assert np.isfinite(bound[-5:]).all()
    tight = np.isfinite(bound) & (rest > 1e-6)
    assert (bound[tight] < 50.0 * rest[tight] + 1e-6).all()


def test_many_small_cells():
    # 30 classes: every cell is small enough to drop, but no row loses more than half
    rng = np.random.default_rng(7)
    probs = simplex(rng, 12, 30, 1.0)
    rest, bound, _ = bounds(log_odds_of(probs), draw(probs, rng))
    assert (bound >= rest - 1e-7).all()
    q, price = RestBound(log_odds_of(probs), np.ones(12), np.ones(58, dtype=bool))._without(
        probs.T[None], np.ones((1, 30, 12), dtype=bool)
    )
    np.testing.assert_allclose(q[0], probs.T)
    assert price[0] == 0.0


def test_fixed_parameters_need_no_moments():
    # gamma fixed: only the count must match
    odds = log_odds_of(TOY_X)
    free = np.array([True, True, False, False])
    s = sufficient_statistic(odds, TOY_Y)
    terms = LogPartition(odds)(identity_theta(2))
    step = np.linalg.solve(terms.hessian[:2, :2], (s - terms.gradient)[:2])
    found = RestBound(odds, np.ones(16), free)(identity_theta(2)[None], s[None], step[None])
    decrement = step @ terms.hessian[:2, :2] @ step
    assert found[0] == pytest.approx(decrement, rel=1e-9)


def test_weights_count_as_repetitions():
    odds, repeat = log_odds_of(TOY_X), np.array([1, 2, 3, 1] * 4)
    s = sufficient_statistic(odds, TOY_Y, repeat.astype(float))
    likelihood = Likelihood(LogPartition(odds, repeat.astype(float)), s)
    step = newton_direction(likelihood(identity_theta(2)))[None]
    where, free = identity_theta(2)[None], np.ones(4, dtype=bool)
    weighted = RestBound(odds, repeat.astype(float), free)(where, s[None], step)
    many = RestBound(np.repeat(odds, repeat, axis=1), np.ones(repeat.sum()), free)
    np.testing.assert_allclose(weighted, many(where, s[None], step), rtol=1e-10)
    assert np.isfinite(weighted).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_equal_the_model(weighted):
    rng = np.random.default_rng(1)
    odds = log_odds_of(simplex(rng, 25, 4, 2.0))
    weight = rng.uniform(size=25) if weighted else None
    theta = rng.normal(size=(3, 6))
    eta = np.concatenate([theta[:, :3, None] + theta[:, 3:, None] * odds, np.zeros((3, 1, 25))], 1)
    g = (np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True))[:, :-1]
    gradient, hessian = moments(np.concatenate([g, g * odds], axis=1), odds, weight)
    for i in range(3):
        terms = LogPartition(odds, weight)(theta[i])
        np.testing.assert_allclose(gradient[i], terms.gradient, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(hessian[i], terms.hessian, rtol=1e-9, atol=1e-12)


def test_solve_treats_each_draw_alone():
    # singular, zero and indefinite matrices must not change the others' steps; the indefinite one
    # is damped by 1: (H + I)^-1 (1, -1) = (2, -2)
    good = np.array([[2.0, 0.5], [0.5, 1.0]])
    bad = [np.ones((2, 2)), np.zeros((2, 2)), [[1.0, 1.5], [1.5, 1.0]]]
    hessians = np.array([good, bad[0], bad[1], 1e-12 * good, bad[2]])
    gradients = np.array([[1.0, -1.0], [1.0, -1.0], [0.0, 0.0], [1e-12, 0.0], [1.0, -1.0]])
    step = solve(hessians, gradients)
    np.testing.assert_allclose(step[4], [2.0, -2.0], rtol=1e-3)
    np.testing.assert_allclose(step[0], np.linalg.solve(good, gradients[0]), rtol=1e-9)
    np.testing.assert_allclose(step[3], np.linalg.solve(good, [1.0, 0.0]), rtol=1e-9)
    assert np.isfinite(step).all()
    assert step[1] @ gradients[1] > 0.0
