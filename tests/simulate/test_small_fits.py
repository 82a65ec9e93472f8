"""Fits of many tables: each table must get what it would get alone."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._fit.fit import fit_predictions
from mcllo._fit.objective import free_parameters
from mcllo._model.batched import LikelihoodRatio
from mcllo.simulate._run import fit_tables, sufficient_statistics


def stacked(tables):
    """Return log odds (K, B, n) and codes (B, n), the last class the baseline."""
    logs = np.log(np.array([x for x, _ in tables])).transpose(2, 0, 1)
    return logs[:-1] - logs[-1], np.array([y for _, y in tables])


def random_tables(n_tables, n, c, seed=0):
    rng = np.random.default_rng(seed)
    probs = np.maximum(rng.dirichlet(np.ones(c), (n_tables, n)), 1e-6)
    probs /= probs.sum(axis=2, keepdims=True)
    labels = (rng.random((n_tables, n, 1)) > probs.cumsum(axis=2)[:, :, :-1]).sum(
        axis=2
    )
    return list(zip(probs, labels, strict=True))


def alone(x, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit_predictions(Predictions.from_arrays(x, y, classes=range(x.shape[1])))


def test_rows_recalibrated_by_their_own_fit_stay_as_they_are():
    tables = random_tables(3, 200, 4)
    again = [(alone(x, y).recalibrate(x), y) for x, y in tables]
    fits = fit_tables(*stacked(again))
    np.testing.assert_allclose(fits.statistic, 0.0, atol=1e-9)
    np.testing.assert_allclose(
        fits.theta, np.tile([0, 0, 0, 1, 1, 1], (3, 1)), atol=1e-6
    )


def test_sufficient_statistics_by_hand():
    # Table 0 has labels 0, baseline; table 1 has labels 1, 1. Log odds are written out.
    odds = np.array([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]])
    codes = np.array([[0, 2], [1, 1]])
    # table 0: counts (1, 0), sums (1, 0); table 1: counts (0, 2), sums (0, 7 + 8)
    assert sufficient_statistics(odds, codes).tolist() == [[1, 0, 1, 0], [0, 2, 0, 15]]


@pytest.mark.parametrize(("n_tables", "n", "c"), [(1, 30, 2), (12, 300, 10)])
def test_fits_are_those_of_each_table_alone(n_tables, n, c):
    tables = random_tables(n_tables, n, c, seed=n)
    fits = fit_tables(*stacked(tables))
    for b, (x, y) in enumerate(tables):
        fit = alone(x, y)
        assert fits.statistic[b] == pytest.approx(fit.statistic, rel=1e-7, abs=1e-8)
        assert fits.df[b] == fit.df
        if not fit.separated:
            np.testing.assert_allclose(fits.theta[b], fit.theta, rtol=1e-5, atol=1e-6)


def test_toy():
    # methods.md 0.4, TOY, baseline 2: tau, gamma and lambda
    fits = fit_tables(*stacked([(TOY_X, TOY_Y), (TOY_X, TOY_Y)]))
    theta = [0.30894668, -0.31270571, 1.24843257, 1.62795328]
    np.testing.assert_allclose(fits.theta, [theta, theta], atol=1e-6)
    np.testing.assert_allclose(fits.statistic, 1.1462114203, atol=1e-8)
    assert fits.df.tolist() == [4, 4]


def test_a_separated_table_reaches_its_supremum_and_leaves_the_others_alone():
    separated = (TOY_X, TOY_X.argmax(axis=1))
    fits = fit_tables(*stacked([(TOY_X, TOY_Y), separated, (TOY_X, TOY_Y)]))
    # the supremum of the likelihood is 1, up to rows that tie
    assert fits.statistic[1] == pytest.approx(alone(*separated).statistic, rel=1e-6)
    np.testing.assert_allclose(fits.statistic[[0, 2]], 1.1462114203, atol=1e-8)


def test_sharp_rows_far_from_the_labels():
    # Newton's full step from the identity overshoots here.
    rng = np.random.default_rng(3)
    x = rng.dirichlet([0.02, 0.02, 0.02], 300)
    x = np.maximum(x, 1e-9)
    x /= x.sum(axis=1, keepdims=True)
    tables = [(x, rng.integers(0, 3, 300)), random_tables(1, 300, 3)[0]]
    fits = fit_tables(*stacked(tables))
    for b, table in enumerate(tables):
        assert fits.statistic[b] == pytest.approx(alone(*table).statistic, rel=1e-8)


def test_log_odds_that_never_vary_cost_a_degree_of_freedom():
    x = np.tile([0.2, 0.3, 0.5], (40, 1))
    x[:, 0] = np.linspace(0.1, 0.3, 40)
    x[:, 1:] = (1.0 - x[:, :1]) * [0.375, 0.625]
    y = np.random.default_rng(0).integers(0, 3, 40)
    fits = fit_tables(*stacked([(x, y)]))
    assert fits.df.tolist() == [3]
    assert fits.statistic[0] == pytest.approx(alone(x, y).statistic, rel=1e-6)


@settings(deadline=None, max_examples=30)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 5),
    st.integers(6, 200),
    st.floats(-3.0, -1.0),
    st.floats(4.0, 14.0),
)
def test_a_few_open_rows_among_sharp_ones(seed, c, n, tie, far):
    # designs of tests/test_batch.py on which a small decrement says little: four rows lead by
    # 10**tie in log odds, the others by far
    rng = np.random.default_rng(seed)
    scores = np.zeros((n, c))
    scores[np.arange(n), rng.integers(0, c, size=n)] = far
    scores[:4] *= 10.0**tie / far
    x = np.exp(scores)
    x /= x.sum(axis=1, keepdims=True)
    y = (rng.random((4, n, 1)) > x.cumsum(axis=1)[:, :-1]).sum(axis=2)
    odds, codes = stacked([(x, labels) for labels in y])
    single = np.ascontiguousarray(odds[:, 0])
    ratio = LikelihoodRatio(single, None, free_parameters(single))
    expected = ratio.statistics(sufficient_statistics(odds, codes))
    np.testing.assert_allclose(
        fit_tables(odds, codes).statistic, expected, rtol=1e-5, atol=1e-5
    )


@settings(deadline=None, max_examples=20)
@given(st.permutations(range(5)), st.integers(1, 5))
def test_company_and_order_do_not_matter(order, size):
    tables = random_tables(5, 60, 3, seed=2)
    whole = fit_tables(*stacked(tables))
    chosen = order[:size]
    some = fit_tables(*stacked([tables[b] for b in chosen]))
    np.testing.assert_allclose(
        some.statistic, whole.statistic[chosen], rtol=1e-9, atol=1e-10
    )
    np.testing.assert_allclose(some.theta, whole.theta[chosen], rtol=1e-7, atol=1e-8)
