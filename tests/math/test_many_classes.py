import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import designs, direct_nll, draw, log_odds_of, maps, simplex

from mcllo import MCLLOFit, Predictions
from mcllo._fit.estimate import estimate, information_left
from mcllo._fit.existence import existence, separating_direction
from mcllo._fit.fit import fit_predictions
from mcllo._fit.objective import FreeLikelihood
from mcllo._inference.likelihood_tests import choose_method, run_test
from mcllo._inference.pvalue import Limit, Note
from mcllo._math import kernel
from mcllo._math import many_classes as many
from mcllo._math import products as operator
from mcllo._math.kernel import LogPartition, Terms
from mcllo._math.likelihood import Likelihood, identity_theta, sufficient_statistic
from mcllo._math.many_classes import fit_many
from mcllo._math.newton import minimize
from mcllo._math.products import Blocks, LikelihoodOperator, LogPartitionOperator
from mcllo._math.separable_classes import peel
from mcllo.exceptions import ConvergenceWarning, InputError, SeparationWarning

quick = settings(deadline=None, max_examples=50)


def block_diagonal(blocks):
    """The blocks as one matrix, ordered as theta."""
    k = len(blocks.tau)
    matrix = np.diag(np.concatenate([blocks.tau, blocks.gamma]))
    matrix[np.arange(k), np.arange(k) + k] = matrix[np.arange(k) + k, np.arange(k)] = blocks.cross
    return matrix


def block_part(hessian):
    """The 2 x 2 blocks of a Hessian."""
    k = len(hessian) // 2
    j = np.arange(k)
    return Blocks(hessian[j, j], hessian[j, j + k], hessian[j + k, j + k])


def test_one_row_by_hand():
    # g = (.8, .2) as in test_kernel: A = log 5, curvature .16 on (1, l; l, l^2), l = log 4;
    # times (1, 1) that is .16 (1 + l) (1, l)
    own = np.log(4.0)
    partition = LogPartitionOperator(np.array([[own]]))
    terms = partition.value_gradient(np.array([np.log(2.0), 0.5]))
    assert terms.value == pytest.approx(np.log(5.0), rel=1e-14)
    np.testing.assert_allclose(terms.gradient, [0.8, 0.8 * own], rtol=1e-14)
    assert terms.hessian.size == 0
    expected = 0.16 * (1.0 + own) * np.array([1.0, own])
    np.testing.assert_allclose(partition.product(np.ones(2)), expected, rtol=1e-12)


@quick
@given(designs(), st.booleans(), st.data())
def test_equals_the_dense_terms(design, weighted, data):
    probs, _ = design
    odds, k = log_odds_of(probs), probs.shape[1] - 1
    theta = np.concatenate(data.draw(maps(k)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    weight = rng.uniform(size=odds.shape[1]) if weighted else None
    dense, partition = LogPartition(odds, weight)(theta), LogPartitionOperator(odds, weight)
    terms = partition.value_gradient(theta)
    assert terms.value == pytest.approx(dense.value, rel=1e-13, abs=1e-13)
    np.testing.assert_allclose(terms.gradient, dense.gradient, rtol=1e-12, atol=1e-12)
    v, scale = rng.normal(size=2 * k), 1e-12 * np.abs(dense.hessian).max() + 1e-12
    np.testing.assert_allclose(partition.product(v), dense.hessian @ v, atol=10.0 * scale)
    found = block_diagonal(partition.blocks)
    np.testing.assert_allclose(found, block_diagonal(block_part(dense.hessian)), atol=scale)
    np.testing.assert_array_equal(partition(theta).hessian, dense.hessian)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("most", [10**9, 0])
def test_what_is_not_kept_is_computed_anew(monkeypatch, most, weighted):
    rng = np.random.default_rng(0)
    probs = simplex(rng, 3000, 20, 2.0)
    odds, theta = log_odds_of(probs), identity_theta(19) + 0.1 * rng.normal(size=38)
    weight = rng.uniform(size=3000) if weighted else None
    monkeypatch.setattr(operator, "MOST_KEPT", most)
    partition = LogPartitionOperator(odds, weight)
    partition.value_gradient(theta)
    assert (partition._kept is None) == (most == 0)
    v, dense = rng.normal(size=38), LogPartition(odds, weight)(theta).hessian
    assert np.abs(partition.product(v) - dense @ v).max() < 1e-12 * np.abs(dense @ v).max()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_number_of_threads_changes_no_bit(monkeypatch, dtype):
    monkeypatch.setattr(kernel, "CHUNK_ELEMENTS", 1)
    rng = np.random.default_rng(1)
    odds = rng.normal(scale=2.0, size=(3, 256 * 40 + 7)).astype(dtype)
    theta, v = rng.normal(size=6), rng.normal(size=6)
    found = []
    for n_jobs in (1, 2, 3):
        partition = LogPartitionOperator(odds, n_jobs=n_jobs)
        terms = partition.value_gradient(theta)
        found.append([terms.value, *terms.gradient, *partition.product(v)])
    assert partition._group == 2 * 256
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_float32_log_odds_are_computed_in_float64():
    rng = np.random.default_rng(2)
    odds = rng.normal(scale=2.0, size=(5, 2000)).astype(np.float32)
    theta = identity_theta(5)
    small = LogPartitionOperator(odds).value_gradient(theta)
    large = LogPartitionOperator(odds.astype(np.float64)).value_gradient(theta)
    assert small.value == pytest.approx(large.value, rel=1e-14)
    np.testing.assert_allclose(small.gradient, large.gradient, rtol=1e-13)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("far", [100.0, 1e5, 1e100])
def test_saturated_rows_stay_finite(monkeypatch, far):
    odds = np.array([[far, -far, far, 0.1], [-far, -far, far, 0.2]])
    for kept in (10**9, 0):
        monkeypatch.setattr(operator, "MOST_KEPT", kept)
        partition = LogPartitionOperator(odds)
        terms = partition.value_gradient(identity_theta(2))
        assert terms.value == pytest.approx(2.0 * far, rel=0.05)
        product = partition.product(np.array([1.0, -2.0, 1e-3, 1e50]))
        assert np.isfinite(product).all()
        assert np.isfinite(partition.blocks.inverse().times(terms.gradient)).all()


@quick
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.floats(-8.0, 8.0))
def test_blocks_and_their_inverses(seed, k, power):
    rng = np.random.default_rng(seed)
    tau, gamma = rng.uniform(0.1, 2.0, size=k), 10.0**power * rng.uniform(0.1, 2.0, size=k)
    blocks = Blocks(tau, 0.9 * np.sqrt(tau * gamma) * rng.uniform(-1.0, 1.0, size=k), gamma)
    v = rng.normal(size=2 * k)
    np.testing.assert_allclose(blocks.times(v), block_diagonal(blocks) @ v, rtol=1e-12)
    np.testing.assert_allclose(blocks.inverse().times(blocks.times(v)), v, rtol=1e-9, atol=1e-9)


def test_a_singular_block_loses_its_cross_term():
    # [[1, 2], [2, 4]] has no inverse; [[1, 0], [0, 4]] has
    inverse = Blocks(np.ones(1), np.full(1, 2.0), np.full(1, 4.0)).inverse()
    np.testing.assert_allclose(inverse.times(np.array([3.0, 8.0])), [3.0, 2.0])


@pytest.mark.parametrize("penalty", [0.0, 2.5])
def test_the_penalised_likelihood_equals_the_dense_one(penalty):
    rng = np.random.default_rng(4)
    probs = simplex(rng, 300, 5, 2.0)
    odds, codes = log_odds_of(probs), draw(probs, rng)
    s, centre, theta = sufficient_statistic(odds, codes), rng.normal(size=8), rng.normal(size=8)
    free = np.array([True] * 7 + [False])
    own = LikelihoodOperator(
        LogPartitionOperator(odds), s, penalty=penalty, centre=centre, free=free
    )
    terms, dense = own.value_gradient(theta), Likelihood(LogPartition(odds), s)(theta)
    away = theta - centre
    assert terms.value == pytest.approx(dense.value + 0.5 * penalty * away @ away, rel=1e-13)
    gradient, hessian = dense.gradient + penalty * away, dense.hessian + penalty * np.eye(8)
    np.testing.assert_allclose(terms.gradient, np.where(free, gradient, 0.0), rtol=1e-11)
    v = np.where(free, rng.normal(size=8), 0.0)
    np.testing.assert_allclose(own.product(v), np.where(free, hessian @ v, 0.0), atol=1e-10)
    np.testing.assert_allclose(own.hessian(theta), hessian, atol=1e-10)
    # the preconditioner divides by the blocks: classes 0 to 2 whole, class 3 without its gamma
    part = block_diagonal(block_part(hessian))[np.ix_(free, free)]
    found = own.precondition(v)
    np.testing.assert_allclose(found[free], np.linalg.solve(part, v[free]), rtol=1e-10)
    assert found[-1] == 0.0


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
    assert with_it.hessian is not None
    assert without.hessian is None
    # blocks are those at the last evaluation, a step of 1e-4 standard errors from the estimate
    k = np.arange(3)
    np.testing.assert_allclose(without.blocks.tau, with_it.hessian[k, k], rtol=1e-4)
    np.testing.assert_allclose(without.blocks.gamma, with_it.hessian[k + 3, k + 3], rtol=1e-4)
    at_start = LogPartition(odds)(start).hessian
    np.testing.assert_allclose(with_it.start_blocks.tau, at_start[k, k], rtol=1e-12)
    np.testing.assert_allclose(with_it.start_blocks.cross, at_start[k, k + 3], rtol=1e-9)
    np.testing.assert_allclose(with_it.start_blocks.gamma, at_start[k + 3, k + 3], rtol=1e-12)


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


def test_the_number_of_threads_changes_no_bit_of_a_fit():
    odds, weight, s, start = problem(6000, 30, weighted=True)
    one, two, three = (fit_many(odds, s, weight, start=start, n_jobs=n).solution for n in (1, 2, 3))
    assert one.value == two.value == three.value
    np.testing.assert_array_equal(one.x, two.x)
    np.testing.assert_array_equal(one.x, three.x)


def of_many(seed=0, n=4000, c=130, **how):
    rng = np.random.default_rng(seed)
    probs = simplex(rng, n, c, 1.0)
    truth = probs**0.8
    y = draw(truth / truth.sum(axis=1, keepdims=True), rng)
    return Predictions.from_arrays(probs, y, classes=range(c), **how)


def value_of(statistic, predictions, fit):
    return run_test(predictions, fit, statistic=statistic, method="chi2").statistic


@pytest.fixture
def densely(monkeypatch):
    """Fit by Newton with whole Hessians, however many classes there are."""

    def fit(predictions, **how):
        with monkeypatch.context() as patch:
            patch.setattr("mcllo._fit.estimate.MANY", 10**9)
            patch.setattr("mcllo._fit.estimate.LIGHT", 10**9)
            return fit_predictions(predictions, **how)

    return fit


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "how", [{}, {"penalty": 2.0}, {"penalty": 30.0, "center": "temperature"}], ids=str
)
def test_many_classes_have_the_estimates_of_newton(densely, how, weighted):
    weight = np.random.default_rng(1).integers(1, 4, size=4000).astype(float) if weighted else None
    predictions = of_many(sample_weight=weight)
    found, exact = fit_predictions(predictions, **how), densely(predictions, **how)
    assert found.converged
    assert exact.converged
    np.testing.assert_allclose(found.theta, exact.theta, atol=1e-8)
    assert found.statistic == pytest.approx(exact.statistic, abs=1e-8)
    assert found.log_likelihood_null == pytest.approx(exact.log_likelihood_null, abs=1e-8)
    assert found.center_gamma == pytest.approx(exact.center_gamma, abs=1e-8)
    np.testing.assert_allclose(found.se_tau, exact.se_tau, atol=1e-8)
    np.testing.assert_allclose(found.se_gamma, exact.se_gamma, atol=1e-8)
    np.testing.assert_allclose(found.cov_theta, exact.cov_theta, atol=1e-8)
    assert found.information == exact.information == "full"
    for statistic in ("score", "wald"):
        theirs = value_of(statistic, predictions, exact)
        assert value_of(statistic, predictions, found) == pytest.approx(theirs, rel=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_forty_classes_by_gradients_have_the_estimates_of_newton(densely, seed):
    rng = np.random.default_rng(seed)
    probs = simplex(rng, 4000, 40, 1.5)
    predictions = Predictions.from_arrays(probs**1.3, draw(probs, rng), normalize=True)
    found, exact = fit_predictions(predictions), densely(predictions)
    assert found.n_iter != exact.n_iter  # another way
    np.testing.assert_allclose(found.theta, exact.theta, atol=1e-8)
    assert found.statistic == pytest.approx(exact.statistic, abs=1e-8)
    np.testing.assert_allclose(found.se_tau, exact.se_tau, rtol=5e-6)
    np.testing.assert_allclose(found.se_gamma, exact.se_gamma, rtol=5e-6)


def test_many_classes_of_which_one_never_varies(densely):
    base = of_many()
    probs = base.probs.copy()
    probs[:, 3] = probs[:, -1]  # log odds 0 in every row: gamma_3 stays 1
    predictions = Predictions.from_arrays(
        probs / probs.sum(axis=1, keepdims=True), base.codes, classes=range(130)
    )
    found, exact = fit_predictions(predictions), densely(predictions)
    assert found.df == 257
    assert found.gamma[3] == 1.0
    assert np.isnan(found.se_gamma[3])
    np.testing.assert_allclose(found.theta, exact.theta, atol=1e-8)
    np.testing.assert_allclose(found.se_tau, exact.se_tau, atol=1e-8)
    theirs = value_of("score", predictions, exact)
    assert value_of("score", predictions, found) == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_absent_among_many_give_the_supremum(densely, weighted):
    # classes 5, 17 and 40 become rows of class 6; with weights, class 7 counts for nothing
    base = of_many(n=2000)
    codes = np.where(np.isin(base.codes, (5, 17, 40)), 6, base.codes)
    weight = np.where(codes == 7, 0.0, 1.0 + codes % 2) if weighted else None
    predictions = replace(base, codes=codes, sample_weight=weight)
    with pytest.warns(SeparationWarning, match=r"no row has class 5"):
        found = fit_predictions(predictions)
    with pytest.warns(SeparationWarning):
        exact = densely(predictions)
    absent = (5, 7, 17, 40) if weighted else (5, 17, 40)
    assert found.separated
    assert not found.converged
    assert found.separated_classes == exact.separated_classes == absent
    # Newton's tolerance on a drifting estimate; its value lies above the supremum's
    assert found.log_likelihood == pytest.approx(exact.log_likelihood, abs=1e-6)
    assert found.log_likelihood_null == pytest.approx(exact.log_likelihood_null, abs=1e-8)
    assert found.df == exact.df
    assert np.isnan(found.se_tau).all()
    assert found.cov_theta.shape == (258, 258)
    assert np.isfinite(found.theta).all()
    at = direct_nll(found.theta, predictions.log_odds, predictions.model_codes, weight)
    assert -at == pytest.approx(found.log_likelihood, abs=1e-7)
    present = np.setdiff1d(np.arange(129), absent)
    np.testing.assert_allclose(found.tau[present], exact.tau[present], atol=1e-4)
    theirs = value_of("score", predictions, exact)
    assert value_of("score", predictions, found) == pytest.approx(theirs, rel=1e-7)


def test_one_of_many_told_apart_by_its_own_log_odds(densely, monkeypatch):
    base = of_many(n=2000)
    logits, own = np.log(base.probs), base.codes == 8
    logits[own, 8] = logits[own, -1] + base.log_odds[8].max() + 0.1
    predictions = Predictions.from_arrays(y=base.codes, logits=logits, classes=range(130))
    odds = predictions.log_odds[8]
    assert odds[own].min() > odds[~own].max()
    with pytest.warns(SeparationWarning, match="separate the labels") as caught:
        found = fit_predictions(predictions)
    assert caught[0].message.numbers == {"classes": (8,)}
    undecided = partial(existence, most_constraints=0.0)  # the linear program takes seconds
    monkeypatch.setattr("mcllo._fit.fit.existence", undecided)
    with pytest.warns(ConvergenceWarning, match="not decided: the linear program is too large"):
        exact = densely(predictions)
    assert found.log_likelihood == pytest.approx(exact.log_likelihood, abs=1e-6)
    assert found.separated_classes == (8,)


def test_an_absent_baseline_among_many(densely):
    base = of_many(n=2000)
    predictions = replace(base, codes=np.where(base.codes == 129, 0, base.codes))
    with pytest.warns(SeparationWarning, match="no row has class 129"):
        found, exact = fit_predictions(predictions), densely(predictions)
    assert found.separated_classes == (129,)
    assert found.log_likelihood == pytest.approx(exact.log_likelihood, abs=1e-6)


def test_rows_of_the_baseline_alone():
    probs = simplex(np.random.default_rng(0), 200, 130, 1.0)
    predictions = Predictions.from_arrays(probs, np.full(200, 129), classes=range(130))
    with pytest.warns(SeparationWarning, match="no row has class 0, 1, 2 and more") as caught:
        found = fit_predictions(predictions)
    assert "and 126 more" in caught[0].message.text()
    assert found.log_likelihood == 0.0
    assert found.n_iter == 0


def test_more_parameters_than_a_hessian_may_have(monkeypatch):
    predictions = of_many(n=2000)
    whole = fit_predictions(predictions)
    monkeypatch.setattr(many, "MOST_PARAMETERS", 257)
    found = fit_predictions(predictions)
    assert found.converged
    assert found.information == "blocks"
    np.testing.assert_allclose(found.theta, whole.theta, atol=1e-12)
    assert found.cov_theta.shape == (0, 0)
    for se in (found.se_tau, found.se_gamma, found.se_delta):
        assert se.shape == (129,)
        assert np.isnan(se).all()
    assert np.isnan(found.confidence_interval().delta).all()
    assert len(found.parameters()["class"]) == 129
    assert run_test(predictions, found).method == "chi2"
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert content["cov_theta"] is None
    assert content["information"] == "blocks"
    again = MCLLOFit.from_dict(content)
    assert again.to_dict() == content
    assert again.information == "blocks"
    np.testing.assert_array_equal(again.theta, found.theta)


def test_files_of_before_had_all_the_information():
    content = fit_predictions(of_many(n=1000, c=125)).to_dict()
    del content["information"]
    again = MCLLOFit.from_dict(content)
    assert again.information == "full"
    assert again.cov_theta.shape == (248, 248)


def test_what_needs_all_the_information_is_refused_without(monkeypatch):
    predictions = of_many(n=1000)
    monkeypatch.setattr(many, "MOST_PARAMETERS", 257)
    fit = fit_predictions(predictions, penalty=1.0)
    for statistic in ("score", "wald"):
        with pytest.raises(InputError, match=f"statistic='{statistic}' needs .* 258 parameters"):
            run_test(predictions, fit, statistic=statistic)
    with pytest.raises(InputError, match=r"method='exact' needs .* 258 are too many"):
        run_test(predictions, fit, method="exact")
    with pytest.raises(InputError, match=r"intervals need .* 258 are too many"):
        fit.recalibrate(predictions.probs, interval=0.95)
    for penalty in ("auto", "firth"):
        with pytest.raises(InputError, match=f"penalty='{penalty}' needs .* got 258"):
            fit_predictions(predictions, penalty=penalty)


def test_blocks_show_that_information_vanished(monkeypatch):
    predictions = of_many(n=2000)
    likelihood = FreeLikelihood.of(predictions)
    end = estimate(likelihood, predictions, 0.0, "identity")
    monkeypatch.setattr(many, "MOST_PARAMETERS", 257)
    by_blocks = estimate(likelihood, predictions, 0.0, "identity")
    assert by_blocks.hessian.shape == (0, 0)
    assert information_left(end, likelihood) == information_left(by_blocks, likelihood) == 1.0
    tau = by_blocks.blocks.tau.copy()
    tau[8] *= 1e-6
    poor = replace(by_blocks, blocks=Blocks(tau, by_blocks.blocks.cross, by_blocks.blocks.gamma))
    assert information_left(poor, likelihood) == 0.0


def test_simulation_counts_parameters():
    few, many_classes = of_many(n=2000, c=5), of_many()
    assert choose_method(few, 8000, "lr", 1999)[0] == "chi2"  # a solve of 8000 equations a draw
    chosen, why = choose_method(many_classes, 258, "lr", 1999)
    assert chosen == "chi2"
    assert (why.limits, why.notes) == ((Limit.SIZE,), (Note.SCORE_INSTEAD,))
    assert choose_method(many_classes, 258, "score", 1999)[0] == "sequential"


def solution(odds, codes, weight=None):
    """Where the dense solver stops, drifting or not."""
    likelihood = Likelihood(LogPartition(odds, weight), sufficient_statistic(odds, codes, weight))
    return minimize(likelihood, identity_theta(len(odds)))


def what_is_left(found, odds, codes, weight=None):
    """Log odds, codes and weights without the classes and rows that left."""
    number = np.append(np.cumsum(found.classes) - 1, found.classes.sum())
    own = None if weight is None else weight[found.rows]
    return odds[np.ix_(found.classes, found.rows)], number[codes[found.rows]], own


def test_nothing_leaves_where_the_classes_overlap_or_touch():
    odds, theta = np.array([[0.0, 1.0, 2.0, 3.0]]), np.array([0.5, 2.0])
    found = peel(odds, np.array([0, 1, 0, 1]))
    assert not found
    assert found.rows.all()
    np.testing.assert_array_equal(found.theta(theta, odds, np.zeros(4), 4.0), theta)
    assert not peel(np.array([[2.0, -1.0, 3.0, 2.0]]), np.array([0, 1, 0, 1]))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_class_leaves_by_hand(sign):
    # rows of class 0: log odds 2, 3; of the others: -1, 1. B = log(1 * 4 / 1e-10) = 24.41
    odds, codes = sign * np.array([[2.0, -1.0, 3.0, 1.0]]), np.array([0, 1, 0, 1])
    found = peel(odds, codes)
    assert found
    assert not found.classes.any()
    np.testing.assert_array_equal(found.rows, [False, True, False, True])
    tau, gamma = found.theta(identity_theta(1), odds, codes, 4.0)
    reach = np.log(4e10)
    # eta = B at 2 and -B at 1: gamma = 2 B, tau = B - 4 B
    assert gamma == pytest.approx(sign * 2.0 * reach)
    assert tau == pytest.approx(-3.0 * reach)


@pytest.mark.parametrize(
    ("odds", "codes", "absent", "rounds"),
    [
        # class 1 is told apart (5 > 4) only once the row of class 0, with its 6, is gone
        ([[9.0, 1.0, 0.0, 2.0], [6.0, 5.0, 4.0, 3.0]], [0, 1, 2, 2], [], [[0], [1]]),
        ([[1.0, 2.0], [0.0, 3.0]], [1, 1], [0], [[1]]),  # all rows of one class
    ],
)
def test_classes_leave_in_turn(odds, codes, absent, rounds):
    odds, codes = np.array(odds), np.array(codes)
    found = peel(odds, codes)
    assert found.absent.tolist() == absent
    assert [gone.tolist() for gone in found.rounds] == rounds
    theta = found.theta(identity_theta(2), odds, codes, float(len(codes)))
    assert direct_nll(theta, odds, codes) == pytest.approx(0.0, abs=2e-10)


def test_rows_of_weight_0_do_not_count():
    odds, codes = np.array([[2.0, 1.0, 3.0, 1.5]]), np.array([0, 1, 1, 0])
    assert not peel(odds, codes)
    found = peel(odds, codes, np.array([1.0, 1.0, 0.0, 2.0]))
    assert found.rounds[0].tolist() == [0]
    np.testing.assert_array_equal(found.rows, [False, True, False, False])


@pytest.mark.parametrize("weighted", [False, True])
def test_the_supremum_is_that_of_what_is_left(weighted):
    rng = np.random.default_rng(2)
    probs = simplex(rng, 60, 25, 4.0)
    odds, codes = log_odds_of(probs), draw(probs, rng)
    weight = rng.integers(0, 3, size=60).astype(float) if weighted else None
    found = peel(odds, codes, weight)
    assert len(found.absent) > 0
    assert len(found.rounds) > 0
    assert found.classes.any()
    left = what_is_left(found, odds, codes, weight)
    inner = solution(*left)
    # the dense solver, drifting, ends within its tolerance of the supremum
    assert inner.value == pytest.approx(solution(odds, codes, weight).value, abs=1e-6)
    theta = identity_theta(24)
    theta[np.tile(found.classes, 2)] = inner.x
    theta = found.theta(theta, odds, codes, 60.0 if weight is None else weight.sum())
    without = direct_nll(inner.x, *left)
    assert direct_nll(theta, odds, codes, weight) == pytest.approx(without, abs=1e-9)


@settings(deadline=None, max_examples=40)
@given(designs(min_rows=4, max_rows=12, max_classes=4), st.booleans())
def test_a_class_that_leaves_has_no_maximum(design, reverse):
    probs, codes = design
    odds = log_odds_of(probs[:, ::-1] if reverse else probs)
    if peel(odds, codes):
        assert separating_direction(odds, codes) is not None
