import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import direct_nll, draw, log_odds_of, simplex
from toy import TOY_X, TOY_Y

from mcllo._diagnosis.families import (
    FullPartition,
    features_of,
    full_identity,
    full_statistic,
    mcllo_places,
)
from mcllo._math.bound import RestBound, solve
from mcllo._math.cells import FullCells, MclloCells, moments
from mcllo._math.likelihood import Likelihood, LogPartition, identity_theta, sufficient_statistic
from mcllo._math.newton import minimize, newton_direction

quick = settings(deadline=None, max_examples=40)


def hessians(log_odds, theta, basis, weight=None):
    """Return the Hessian at each row of theta, along the directions of basis."""
    partition = LogPartition(log_odds, weight)
    return np.array([basis.T @ partition(row).hessian @ basis for row in theta])


def one_bound(log_odds, free, s, step, weight=None):
    """Return the bound at the identity for one statistic and step, some parameters fixed."""
    basis = np.eye(2 * len(log_odds))[:, free]
    where = identity_theta(len(log_odds))[None]
    rest_bound = RestBound(MclloCells(log_odds, weight), basis)
    curvature = hessians(log_odds, where, basis, weight)
    return rest_bound(where, (s @ basis)[None], np.atleast_2d(step), curvature)[0]


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
    basis = np.eye(len(s))
    rest_bound = RestBound(MclloCells(log_odds, None), basis)
    curvature = hessians(log_odds, theta, basis)
    bound = rest_bound(theta, np.tile(s, (len(path), 1)), step, curvature)
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
    s = sufficient_statistic(odds, np.array([label]))
    found = one_bound(odds, [True, False], s, step)
    assert found == pytest.approx(bound, rel=1e-12)
    assert found >= -np.log([0.2, 0.8][label])


def test_raising_cells_by_hand():
    # x = (.5, .5) and (.1, .9), only tau moves, labels 1 and 1: u = -.6, H = .25 + .09 = .34, and a
    # step of twice u / H sends a cell of row 1 to 1 + e = 1 - 3.53 * .5 < 0. Raised to .3, rows are
    # recentred and then moved by what the moments lack: rows sum to 1, and the moments are s again
    odds = np.log([[1.0, 1.0 / 9.0]])
    s = sufficient_statistic(odds, np.array([1, 1]))
    cells, basis = MclloCells(odds, None), np.array([[1.0], [0.0]])
    where = identity_theta(1)[None]
    rest_bound, curvature = RestBound(cells, basis), hessians(odds, where, basis)
    g = np.array([[[0.5, 0.1], [0.5, 0.9]]])
    change = rest_bound._relative_change(g, np.array([[-2.0 * 0.6 / 0.34]]))
    assert change.min() < -1.0
    e = rest_bound._raised(g, change, s[:1][None], curvature)
    np.testing.assert_allclose((g * e).sum(axis=1), 0.0, atol=1e-15)
    np.testing.assert_allclose((g * (1.0 + e))[:, 0].sum(), 0.0, atol=1e-12)


def test_dropping_a_cell_by_hand():
    # a step of -5 for label 1 sends cell 0 below 0; dropped, it leaves (0, 1), which has the
    # moments of label 1 exactly: the bound is the price -log(1 - .02), which is the true rest
    odds = np.log([[0.02 / 0.98]])
    cells, basis = MclloCells(odds, None), np.array([[1.0], [0.0]])
    q, price = RestBound(cells, basis)._without(
        np.array([[[0.02], [0.98]]]), np.array([[[True], [False]]])
    )
    assert q.ravel().tolist() == [0.0, 1.0]
    assert price[0] == pytest.approx(-np.log(0.98), rel=1e-12)
    # the step of -5 misses the moments of label 1, raised or not; the rounds find the price
    s = sufficient_statistic(odds, np.array([1]))
    found = one_bound(odds, [True, False], s, -5.0)
    assert -np.log(0.98) <= found <= 0.0205


def test_a_step_that_misses_the_moments_gives_no_bound():
    # no step at all: q is g, whose moments are not s; a bound of 0 would be wrong
    odds = log_odds_of(TOY_X)
    rest_bound = RestBound(MclloCells(odds, None), np.eye(4))
    s = sufficient_statistic(odds, TOY_Y)
    assert rest_bound._certificate(TOY_X.T[None], np.zeros((1, 3, 16)), s[None]) == np.inf
    # the rounds then find the Newton step themselves
    found = one_bound(odds, [True] * 4, s, np.zeros(4))
    rest, _, decrement = bounds(odds, TOY_Y)
    assert rest[0] <= found <= 1.001 * decrement[0]


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
    q, price = RestBound(MclloCells(log_odds_of(probs), None), np.eye(58))._without(
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
    decrement = step @ terms.hessian[:2, :2] @ step
    assert one_bound(odds, free, s, step) == pytest.approx(decrement, rel=1e-9)


def test_a_restricted_model_by_its_own_supremum():
    # one slope for all classes: the rest along that line, by golden section, lies below the bound
    odds = log_odds_of(TOY_X)
    basis = np.array([[0.0], [0.0], [1.0], [1.0]])
    s = sufficient_statistic(odds, TOY_Y)
    terms = Likelihood(LogPartition(odds), s)(identity_theta(2))
    slope, curvature = basis.T @ terms.gradient, basis.T @ terms.hessian @ basis
    step = -np.linalg.solve(curvature, slope)
    found = RestBound(MclloCells(odds, None), basis)(
        identity_theta(2)[None], (s @ basis)[None], step[None], curvature[None]
    )[0]
    line = [direct_nll(np.array([0, 0, g, g]), odds, TOY_Y) for g in np.linspace(0.5, 3.0, 2001)]
    rest = direct_nll(identity_theta(2), odds, TOY_Y) - min(line)
    assert rest <= found <= -slope @ step * (1 + 1e-9)


@quick
@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.integers(8, 40), st.floats(0.3, 6.0))
def test_the_bound_is_one_for_the_full_map(seed, c, n, sharpness):
    rng = np.random.default_rng(seed)
    probs = np.maximum(simplex(rng, n, c, sharpness), 1e-10)
    features, codes = features_of(log_odds_of(probs)), draw(probs, rng)
    s, partition = full_statistic(features, codes, None), FullPartition(features)
    likelihood, rest_bound = (
        Likelihood(partition, s),
        RestBound(FullCells(features, None), np.eye(len(s))),
    )
    theta, best = full_identity(c - 1), minimize(likelihood, full_identity(c - 1)).value
    for _ in range(6):
        terms = likelihood(theta)
        step = newton_direction(terms)
        bound = rest_bound(theta[None], s[None], step[None], terms.hessian[None])[0]
        assert bound >= terms.value - best - 1e-6
        length = 1.0
        while likelihood(theta + length * step).value > terms.value and length > 1e-6:
            length *= 0.5
        theta = theta + length * step


def test_weights_count_as_repetitions():
    odds, repeat = log_odds_of(TOY_X), np.array([1, 2, 3, 1] * 4)
    s = sufficient_statistic(odds, TOY_Y, repeat.astype(float))
    likelihood = Likelihood(LogPartition(odds, repeat.astype(float)), s)
    step = newton_direction(likelihood(identity_theta(2)))[None]
    weighted = one_bound(odds, [True] * 4, s, step, repeat.astype(float))
    many = one_bound(np.repeat(odds, repeat, axis=1), [True] * 4, s, step)
    assert weighted == pytest.approx(many, rel=1e-10)
    assert np.isfinite(weighted)


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


def test_one_row_by_hand_cells():
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
