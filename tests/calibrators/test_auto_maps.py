import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize as minimize_by_scipy
from toy import TOY_X, TOY_Y

from mcllo._fit.penalty import Ridge
from mcllo._math.likelihood import (
    Likelihood,
    LogPartition,
    identity_theta,
    log_odds_from_logs,
    sufficient_statistic,
)
from mcllo._math.linear_map import LinearMapLoss
from mcllo._math.newton import minimize
from mcllo.calibrators._auto.baseline_maps import (
    BaselineProblems,
    fit_baselines,
    map_of,
    refit_baselines,
)
from mcllo.calibrators._auto.ridge_map import (
    RidgeProblems,
    curvature,
    fit_ridge,
    inverse_curvature,
    structured_ridge,
)
from mcllo.calibrators._auto.row_sets import RowSets, all_rows, some_rows
from mcllo.calibrators._linear_fit import identity_map


def sample(n=150, c=4, seed=0, weighted=True):
    rng = np.random.default_rng(seed)
    x = np.log(rng.dirichlet(np.ones(c), size=n)).T
    y = (x * np.linspace(0.5, 1.5, c)[:, None] + rng.gumbel(size=x.shape)).argmax(axis=0)
    return x, y, rng.exponential(size=n) if weighted else None


def rows_of(x, y, weight, kind=None):
    return all_rows(np.vstack([x, np.ones(x.shape[1])]), y, weight, kind)


def side_by_side(sets):
    """Single sets as one `RowSets`."""
    names = ("scores", "codes", "weight")
    return RowSets(*(np.concatenate([getattr(one, name) for one in sets]) for name in names))


def single(x, y, weight, b):
    """The penalised likelihood of one baseline, of `_fit` and `_math`."""
    c = len(x)
    odds = log_odds_from_logs(x.copy(), b)
    moved = np.where(y == b, c - 1, y - (y > b))
    statistic = sufficient_statistic(odds, moved, weight)
    return Ridge(Likelihood(LogPartition(odds, weight), statistic), 3.0, identity_theta(c - 1))


def test_identity():
    x, y, weight = sample()
    problems = BaselineProblems(rows_of(x, y, weight), 3.0)
    theta = map_of(np.tile(problems.identity, (1, 4, 1)))[0]
    for b in range(4):
        np.testing.assert_allclose((theta[b] @ np.vstack([x, np.ones(150)])), x - x[b], atol=1e-12)
    value, _ = problems.value_gradient(np.tile(problems.identity, (4, 1)))
    np.testing.assert_allclose(value, -weight @ x[y, np.arange(150)])


def test_hand_sized_map():
    # c = 2. Baseline 0: eta_1 = 5 + 3 (x_1 - x_0); baseline 1: eta_0 = 4 + 2 (x_0 - x_1).
    baselines = np.array([[[0.0, 5.0, 1.0, 3.0], [4.0, 0.0, 2.0, 1.0]]])
    expected = [[[0, 0, 0], [-3, 3, 5]], [[2, -2, 4], [0, 0, 0]]]
    np.testing.assert_array_equal(map_of(baselines)[0], expected)


@pytest.mark.parametrize("weighted", [True, False])
def test_values_gradients_and_hessians_against_the_model(weighted):
    x, y, weight = sample(weighted=weighted)
    problems = BaselineProblems(rows_of(x, y, weight), 3.0)
    point = np.random.default_rng(1).normal(1.0, 0.5, size=(4, 8))
    point[np.arange(4), np.arange(4)] = 0.0
    point[np.arange(4), np.arange(4) + 4] = 1.0
    value, gradient = problems.value_gradient(point)
    for b in range(4):
        others = np.delete(np.arange(8), [b, b + 4])
        terms = single(x, y, weight, b)(point[b, others])
        assert value[b] == pytest.approx(terms.value, rel=1e-11)
        np.testing.assert_allclose(gradient[b, others], terms.gradient, rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(gradient[b, [b, b + 4]], 0.0)
        own = problems.hessian[b][np.ix_(others, others)]
        np.testing.assert_allclose(own, terms.hessian, rtol=1e-9, atol=1e-9)


def test_fits_against_single_baselines():
    x, y, weight = sample()
    found, _ = fit_baselines(rows_of(x, y, weight), 3.0, 1e-12)
    for b in range(4):
        others = np.delete(np.arange(8), [b, b + 4])
        expected = minimize(single(x, y, weight, b), identity_theta(3)).x
        np.testing.assert_allclose(found[b, others], expected, atol=1e-6)
        np.testing.assert_allclose(found[b, [b, b + 4]], [0.0, 1.0])


@pytest.mark.parametrize("factor", [1.0, 0.05], ids=["served by old Hessians", "given up"])
def test_refits_of_sets(factor):
    single_rows = [rows_of(*sample(seed=seed)) for seed in range(3)]
    start, hessian = fit_baselines(single_rows[0], 3.0, 1e-12)
    rows = side_by_side(single_rows)
    found = refit_baselines(rows, 3.0, start, factor * hessian, 1e-13)
    for k, alone in enumerate(single_rows):
        np.testing.assert_allclose(found[k], fit_baselines(alone, 3.0, 1e-13)[0], atol=1e-5)


def test_slow_hessians_are_replaced():
    rows = rows_of(*sample())
    start, hessian = fit_baselines(rows, 3.0, 1e-12)
    problems = BaselineProblems(rows, 3.0, 10.0 * hessian, 1e-13)
    _, gradient = problems.value_gradient(start + 0.1)
    problems.direction(gradient)
    assert problems.inverse is not None
    problems.direction(gradient)  # no smaller decrement than before
    assert problems.inverse is None


Z = np.log(TOY_X).T.copy()
KINDS = pytest.mark.parametrize("diagonal", [True, False], ids=["vector", "full"])


def ridge_of(c, diagonal, strength=1.5):
    return np.full((c, 2), strength) if diagonal else structured_ridge(c, 0.2, strength)


def problems_of(x, y, weight, ridge, kind=None, most_whole=250):
    rows = rows_of(x, y, weight, kind)
    blocks = curvature(rows, identity_map(len(ridge), ridge.shape[1] == 2), most_whole)
    return RidgeProblems(rows, rows.label_sums(), ridge, inverse_curvature(blocks, ridge))


def fitted(x, y, weight, ridge, **how):
    start = identity_map(len(ridge), ridge.shape[1] == 2)
    return fit_ridge(problems_of(x, y, weight, ridge, **how), start[None], 1e-12)[0]


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
    x, y, weight = sample(weighted=weighted)
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
def test_chunks_and_float32_change_little(diagonal):
    # 40,000 rows are two chunks of float32 and three of float64.
    data, ridge = sample(n=40_000), ridge_of(4, diagonal)
    whole, rough = (problems_of(*data, ridge, kind) for kind in (np.float64, None))
    assert [len(list(of.rows.chunks(4))) for of in (whole, rough)] == [3, 2]
    start, v = identity_map(4, diagonal).reshape(1, -1), np.linspace(-1.0, 1.0, ridge.size)[None]
    (value, gradient), (other, slope) = whole.value_gradient(start), rough.value_gradient(start)
    np.testing.assert_allclose(other, value, rtol=1e-6)
    np.testing.assert_allclose(slope, gradient, rtol=1e-4, atol=1e-2)
    np.testing.assert_allclose(rough.product(v), whole.product(v), rtol=1e-4, atol=1e-2)
    assert not np.array_equal(rough.product(v), whole.product(v))


@KINDS
@pytest.mark.parametrize("most_whole", [250, 0], ids=["whole", "blocks"])
def test_fit_against_a_general_optimiser(diagonal, most_whole):
    data, ridge = sample(), ridge_of(4, diagonal)
    of = problems_of(*data, ridge, most_whole=most_whole)
    assert len(of.inverse) == (1 if most_whole else 4)

    def function(t):
        (value,), (gradient,) = of.value_gradient(t[None])
        return value, gradient

    best = minimize_by_scipy(function, np.zeros(ridge.size), jac=True, options={"gtol": 1e-9})
    found = fitted(*data, ridge, most_whole=most_whole)
    np.testing.assert_allclose(found.ravel(), best.x, atol=1e-5)


def blocks_of(hessian, size):
    """The blocks on the diagonal."""
    starts = range(0, len(hessian), size)
    return np.array([hessian[j : j + size, j : j + size] for j in starts])


@KINDS
def test_curvature_is_the_hessian(diagonal):
    x, y, weight = sample(80)
    theta = identity_map(4, diagonal) + 0.1
    hessian = LinearMapLoss(x, y, weight, diagonal=diagonal)(theta.ravel()).hessian
    whole, blocks = (curvature(rows_of(x, y, weight), theta, most) for most in (250, 0))
    np.testing.assert_allclose(whole[0], hessian, rtol=1e-9, atol=1e-9)
    expected = blocks_of(hessian, theta.shape[1])
    np.testing.assert_allclose(blocks, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("most_whole", [250, 0], ids=["whole", "blocks"])
def test_curvature_from_some_rows_stands_for_all(most_whole):
    x, y, _ = sample(n=20_000, weighted=False)
    rough = curvature(rows_of(x, y, None), np.eye(4, 5), most_whole)
    exact = LinearMapLoss(x, y)(np.eye(4, 5).ravel()).hessian
    exact = exact[None] if most_whole else blocks_of(exact, 5)
    # 600 rows, or 50 for a class: errors of about 1 / sqrt(50) = 0.14
    difference = np.abs(rough - exact).max() / np.abs(exact).max()
    assert 0.0 < difference < 0.5


def test_inverse_is_one():
    x, y, weight = sample()
    ridge = ridge_of(4, False)
    blocks = curvature(rows_of(x, y, weight), np.eye(4, 5))
    whole = blocks[0] + np.diag(ridge.ravel())
    np.testing.assert_allclose(inverse_curvature(blocks, ridge)[0] @ whole, np.eye(20), atol=1e-9)


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


def test_hand_sized_sets():
    # Weights (1, 1, 0, 1) and (0, 0, 2, 0): three rows and one, filled up with weight 0.
    rows = some_rows(SCORES, CODES, [np.array([1.0, 1.0, 0.0, 1.0]), np.array([0, 0, 2.0, 0])])
    np.testing.assert_array_equal(rows.scores[0], SCORES[:, [0, 1, 3]])
    np.testing.assert_array_equal(rows.scores[1, :, 0], [3.0, 5.0])
    np.testing.assert_array_equal(rows.codes[0], [0, 1, 0])
    np.testing.assert_array_equal(rows.weight, [[1, 1, 1], [2, 0, 0]])
    np.testing.assert_array_equal(rows.totals, [3.0, 2.0])
    whole = some_rows(SCORES, CODES, [np.array([1.0, 1.0, 0.0, 0.0]), np.array([0, 0, 1.0, 1.0])])
    assert whole.weight is None
    np.testing.assert_array_equal(whole.totals, [2.0, 2.0])


def test_hand_sized_label_sums():
    # Features (z, 1), weights 1, 2, 3, 4. Class 0: rows 0 and 3, 1 * 1 + 4 * 4 = 17, 0 + 4 * 5 = 20
    # and 1 + 4 = 5; class 1: rows 1 and 2, 2 * 2 + 3 * 3 = 13, 3 * 5 = 15 and 5.
    features = np.vstack([SCORES, np.ones(4)])
    rows = all_rows(features, CODES, np.array([1.0, 2.0, 3.0, 4.0]))
    np.testing.assert_allclose(rows.label_sums(), [[[17.0, 20.0, 5.0], [13.0, 15.0, 5.0]]])


def test_every_second_row_counts_twice():
    rows = all_rows(SCORES, CODES, np.array([1.0, 2.0, 3.0, 4.0])).every(2)
    np.testing.assert_array_equal(rows.scores[0], SCORES[:, ::2])
    np.testing.assert_array_equal(rows.weight, [[2.0, 6.0]])
    np.testing.assert_array_equal(all_rows(SCORES, CODES).every(2).totals, [4.0])


@pytest.mark.parametrize(("n", "stride"), [(3999, 1), (4000, 2), (9000, 4), (10**5, 8)])
def test_rows_of_a_first_fit(n, stride):
    few = RowSets(np.zeros((1, 2, n)), np.zeros((1, n), dtype=int)).first()
    assert (few is None) if stride == 1 else (few.codes.shape[1] == -(-n // stride))


@pytest.mark.parametrize(("n", "kind"), [(8191, np.float64), (8192, np.float32)])
def test_many_rows_are_float32(n, kind):
    rows = all_rows(np.zeros((2, n)), np.zeros(n, dtype=int), np.ones(n))
    assert rows.scores.dtype == rows.weight.dtype == kind
    assert (rows.rounding[0] > 1e-6) == (kind is np.float32)


def test_rows_come_in_chunks():
    many = RowSets(np.zeros((1, 2, 250), dtype=np.float32), np.zeros((1, 250), dtype=int))
    assert [part.start for part in many.chunks(2, chunk_bytes=4 * 2 * 100)] == [0, 100, 200]
