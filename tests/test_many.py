import numpy as np
import pytest
from independent import draw, log_odds_of, simplex

import mcllo._many as many
from mcllo._many import fit_many
from mcllo._model import Likelihood, LogPartition, Terms, identity_theta, sufficient_statistic
from mcllo._newton import minimize


def problem(n, c, seed=0, weighted=False):
    rng = np.random.default_rng(seed)
    probs = simplex(rng, n, c, 2.0)
    truth = probs**0.7
    odds, codes = log_odds_of(probs), draw(truth / truth.sum(axis=1, keepdims=True), rng)
    weight = rng.uniform(0.5, 2.0, size=n) if weighted else None
    return odds, weight, sufficient_statistic(odds, codes, weight), identity_theta(c - 1)


def newton(odds, weight, statistic, start, penalty=0.0, free=None):
    """The same minimum by the dense solver, in the free parameters."""
    likelihood = Likelihood(LogPartition(odds, weight), statistic)
    free = np.ones(len(start), dtype=bool) if free is None else free

    def objective(x):
        theta = start.copy()
        theta[free] = x
        terms, away = likelihood(theta), x - start[free]
        return Terms(
            terms.value + 0.5 * penalty * float(away @ away),
            terms.gradient[free] + penalty * away,
            terms.hessian[np.ix_(free, free)] + penalty * np.eye(len(x)),
        )

    return minimize(objective, start[free])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("penalty", [0.0, 3.0])
@pytest.mark.parametrize(("n", "c"), [(2000, 5), (20_000, 5), (4000, 60)])
def test_finds_the_estimate_that_newton_finds(n, c, penalty, weighted):
    odds, weight, s, start = problem(n, c, weighted=weighted)
    found = fit_many(odds, s, weight, start=start, penalty=penalty, centre=start)
    exact = newton(odds, weight, s, start, penalty)
    assert found.solution.converged
    np.testing.assert_allclose(found.solution.x, exact.x, atol=1e-8)
    assert found.solution.value == pytest.approx(exact.value, abs=1e-8)
    assert found.solution.start.value == pytest.approx(exact.start.value, abs=1e-8)
    covariance = np.linalg.inv(found.hessian)
    np.testing.assert_allclose(covariance, np.linalg.inv(exact.terms.hessian), rtol=1e-5, atol=1e-9)


def test_fixed_parameters_stay_and_the_others_find_their_minimum():
    odds, weight, s, start = problem(2000, 6)
    free = np.arange(10) != 7
    found = fit_many(odds, s, weight, start=start, free=free)
    exact = newton(odds, weight, s, start, free=free)
    assert found.solution.converged
    assert found.solution.x[7] == 1.0
    np.testing.assert_allclose(found.solution.x[free], exact.x, atol=1e-8)


def test_the_hessian_is_computed_once_and_only_when_asked_for():
    odds, weight, s, start = problem(1000, 4)
    with_it = fit_many(odds, s, weight, start=start)
    without = fit_many(odds, s, weight, start=start, hessian=False)
    assert with_it.information == "full"
    assert without.information == "blocks"
    assert without.hessian is None
    # blocks are those at the last evaluation, a step of 1e-4 standard errors from the estimate
    k = np.arange(3)
    np.testing.assert_allclose(without.blocks.tau, with_it.hessian[k, k], rtol=1e-4)
    np.testing.assert_allclose(without.blocks.gamma, with_it.hessian[k + 3, k + 3], rtol=1e-4)
    at_start = LogPartition(odds)(start).hessian
    np.testing.assert_allclose(with_it.start_blocks.tau, at_start[k, k], rtol=1e-12)
    np.testing.assert_allclose(with_it.start_blocks.cross, at_start[k, k + 3], rtol=1e-9)
    np.testing.assert_allclose(with_it.start_blocks.gamma, at_start[k + 3, k + 3], rtol=1e-12)


def test_too_many_parameters_leave_only_blocks(monkeypatch):
    odds, weight, s, start = problem(1000, 4)
    monkeypatch.setattr(many, "MOST_PARAMETERS", 5)
    found = fit_many(odds, s, weight, start=start)
    assert found.information == "blocks"
    assert found.solution.converged


def test_float32_log_odds_give_the_statistic_of_their_float64_copy():
    odds, weight, s, start = problem(20_000, 8)
    small = odds.astype(np.float32)
    first, second = (
        fit_many(o, s, weight, start=start, hessian=False).solution
        for o in (small, small.astype(np.float64))
    )
    ratio = [2.0 * (found.start.value - found.value) for found in (first, second)]
    assert ratio[0] > 100.0
    assert ratio[0] == pytest.approx(ratio[1], abs=1e-8)


def test_the_number_of_threads_changes_no_bit():
    odds, weight, s, start = problem(6000, 30, weighted=True)
    one, two, three = (fit_many(odds, s, weight, start=start, n_jobs=n).solution for n in (1, 2, 3))
    assert one.value == two.value == three.value
    np.testing.assert_array_equal(one.x, two.x)
    np.testing.assert_array_equal(one.x, three.x)
