import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcllo._model import (
    Likelihood,
    LogPartition,
    identity_theta,
    log_odds_from_logs,
    sufficient_statistic,
)
from mcllo._newton import minimize
from mcllo._penalty import Ridge
from mcllo.calibrators import _row_sets
from mcllo.calibrators._baseline_maps import (
    BaselineProblems,
    fit_baselines,
    map_of,
    refit_baselines,
)
from mcllo.calibrators._row_sets import RowSets, all_rows


def sample(n=150, c=4, seed=0, weighted=True):
    rng = np.random.default_rng(seed)
    x = np.log(rng.dirichlet(np.ones(c), size=n)).T
    y = (x * np.linspace(0.5, 1.5, c)[:, None] + rng.gumbel(size=x.shape)).argmax(axis=0)
    return x, y, rng.exponential(size=n) if weighted else None


def rows_of(x, y, weight):
    return all_rows(np.vstack([x, np.ones(x.shape[1])]), y, weight)


def single(x, y, weight, b):
    """The penalised likelihood of one baseline, of `_model`."""
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
    arrays = ("scores", "codes", "weight")
    rows = RowSets(*(np.concatenate([getattr(s, k) for s in single_rows]) for k in arrays))
    start, hessian = fit_baselines(single_rows[0], 3.0, 1e-12)
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


def test_float32_and_first_fits_change_little(monkeypatch):
    rows = rows_of(*sample(3000, weighted=False))
    expected, _ = fit_baselines(rows, 8.0, 1e-10)
    monkeypatch.setattr(_row_sets, "FLOAT32_PAYS", 1)
    monkeypatch.setattr(_row_sets, "FIRST", 500)
    monkeypatch.setattr(_row_sets, "CHUNK_BYTES", 0)
    found, _ = fit_baselines(rows_of(*sample(3000, weighted=False)), 8.0, 1e-4)
    assert 0.0 < np.abs(found - expected).max() < 1e-3


@given(st.integers(0, 1000), st.integers(1, 30))
@settings(deadline=None, max_examples=20)
def test_permuting_the_classes_permutes_the_mean(seed, n):
    x, y, weight = sample(n, seed=seed)
    order = np.array([2, 0, 3, 1])
    mean = map_of(fit_baselines(rows_of(x, y, weight), 3.0, 1e-12)[0][None])[0].mean(axis=0)
    moved = rows_of(x[order], np.argsort(order)[y], weight)
    other = map_of(fit_baselines(moved, 3.0, 1e-12)[0][None])[0].mean(axis=0)
    np.testing.assert_allclose(other, mean[order][:, [*order, 4]], atol=1e-6)
