import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import designs, direct_nll, draw, log_odds_of, maps, simplex

from mcllo import MCLLOFit, Predictions
from mcllo._fit.estimate import estimate, relative_information
from mcllo._fit.fit import fit_predictions
from mcllo._fit.objective import FreeParameterObjective
from mcllo._fit.separation import assess_existence, find_separating_direction
from mcllo._inference.hypothesis_test import SCORE_INSTEAD_NOTE
from mcllo._inference.likelihood_tests import choose_method, run_test
from mcllo._model import many_classes as many
from mcllo._model.kernel import LogPartition
from mcllo._model.likelihood import (
    NegativeLogLikelihood,
    identity_theta,
    sufficient_statistic,
)
from mcllo._model.many_classes import (
    ClassBlocks,
    LogPartitionOperator,
    PenalizedLikelihoodOperator,
)
from mcllo._model.newton import minimize
from mcllo._model.separable_classes import eliminate_separated_classes
from mcllo.exceptions import ConvergenceWarning, InputError, SeparationWarning

quick = settings(deadline=None, max_examples=25)


def block_diagonal(blocks):
    """The blocks as one matrix, ordered as theta."""
    k = len(blocks.tau)
    matrix = np.diag(np.concatenate([blocks.tau, blocks.gamma]))
    matrix[np.arange(k), np.arange(k) + k] = matrix[np.arange(k) + k, np.arange(k)] = (
        blocks.cross
    )
    return matrix


def block_part(hessian):
    """The 2 x 2 blocks of a Hessian."""
    k = len(hessian) // 2
    j = np.arange(k)
    return ClassBlocks(hessian[j, j], hessian[j, j + k], hessian[j + k, j + k])


@quick
@given(designs(), st.booleans(), st.data())
def test_equals_the_dense_terms(design, weighted, data):
    probs, _ = design
    odds, k = log_odds_of(probs), probs.shape[1] - 1
    theta = np.concatenate(data.draw(maps(k)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    weight = rng.uniform(size=odds.shape[1]) if weighted else None
    dense, partition = (
        LogPartition(odds, weight)(theta),
        LogPartitionOperator(odds, weight),
    )
    terms = partition.value_and_gradient(theta)
    assert terms.value == pytest.approx(dense.value, rel=1e-13, abs=1e-13)
    np.testing.assert_allclose(terms.gradient, dense.gradient, rtol=1e-12, atol=1e-12)
    v, scale = rng.normal(size=2 * k), 1e-12 * np.abs(dense.hessian).max() + 1e-12
    np.testing.assert_allclose(
        partition.hessian_times(v), dense.hessian @ v, atol=10.0 * scale
    )
    found = block_diagonal(partition.blocks)
    np.testing.assert_allclose(
        found, block_diagonal(block_part(dense.hessian)), atol=scale
    )
    np.testing.assert_array_equal(partition(theta).hessian, dense.hessian)


def test_neither_threads_nor_single_precision_of_log_odds_change_the_terms():
    rng = np.random.default_rng(1)
    odds = rng.normal(scale=2.0, size=(3, 60_000)).astype(np.float32)  # three chunks
    theta, v = rng.normal(size=6), rng.normal(size=6)

    def found(log_odds, n_jobs):
        partition = LogPartitionOperator(log_odds, n_jobs=n_jobs)
        terms = partition.value_and_gradient(theta)
        return [terms.value, *terms.gradient, *partition.hessian_times(v)]

    one = found(odds, 1)
    for n_jobs in (2, 3):
        np.testing.assert_array_equal(found(odds, n_jobs), one)
    # stored in float32, computed in float64
    np.testing.assert_allclose(found(odds.astype(np.float64), 1), one, rtol=1e-12)


@pytest.mark.filterwarnings("error")
def test_saturated_rows_stay_finite():
    for far in (100.0, 1e5, 1e100):
        odds = np.array([[far, -far, far, 0.1], [-far, -far, far, 0.2]])
        partition = LogPartitionOperator(odds)
        terms = partition.value_and_gradient(identity_theta(2))
        assert terms.value == pytest.approx(2.0 * far, rel=0.05)
        product = partition.hessian_times(np.array([1.0, -2.0, 1e-3, 1e50]))
        assert np.isfinite(product).all()
        assert np.isfinite(partition.blocks.inverse().times(terms.gradient)).all()


def test_a_singular_block_loses_its_cross_term():
    # [[1, 2], [2, 4]] has no inverse; [[1, 0], [0, 4]] has
    inverse = ClassBlocks(np.ones(1), np.full(1, 2.0), np.full(1, 4.0)).inverse()
    np.testing.assert_allclose(inverse.times(np.array([3.0, 8.0])), [3.0, 2.0])


def test_the_penalised_likelihood_equals_the_dense_one():
    rng, penalty = np.random.default_rng(4), 2.5
    probs = simplex(rng, 300, 5, 2.0)
    odds, codes = log_odds_of(probs), draw(probs, rng)
    s, centre, theta = (
        sufficient_statistic(odds, codes),
        rng.normal(size=8),
        rng.normal(size=8),
    )
    free = np.array([True] * 7 + [False])
    own = PenalizedLikelihoodOperator(
        LogPartitionOperator(odds), s, penalty=penalty, centre=centre, free=free
    )
    terms, dense = (
        own.value_and_gradient(theta),
        NegativeLogLikelihood(LogPartition(odds), s)(theta),
    )
    away = theta - centre
    assert terms.value == pytest.approx(
        dense.value + 0.5 * penalty * away @ away, rel=1e-13
    )
    gradient, hessian = (
        dense.gradient + penalty * away,
        dense.hessian + penalty * np.eye(8),
    )
    np.testing.assert_allclose(
        terms.gradient, np.where(free, gradient, 0.0), rtol=1e-11
    )
    v = np.where(free, rng.normal(size=8), 0.0)
    np.testing.assert_allclose(
        own.hessian_times(v), np.where(free, hessian @ v, 0.0), atol=1e-10
    )
    np.testing.assert_allclose(own.hessian(theta), hessian, atol=1e-10)
    # the preconditioner divides by the blocks: classes 0 to 2 whole, class 3 without its gamma
    part = block_diagonal(block_part(hessian))[np.ix_(free, free)]
    found = own.precondition(v)
    np.testing.assert_allclose(found[free], np.linalg.solve(part, v[free]), rtol=1e-10)
    assert found[-1] == 0.0


def of_many(n=1500, c=122, **how):
    """Return rows of more classes than Newton with whole Hessians is for."""
    rng = np.random.default_rng(0)
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
            patch.setattr("mcllo._fit.estimate.MIN_CLASSES_FOR_PCG", 10**9)
            patch.setattr("mcllo._fit.estimate.MIN_PARAMETERS_FOR_LBFGS", 10**9)
            return fit_predictions(predictions, **how)

    return fit


@pytest.mark.parametrize(
    ("how", "weighted"),
    [
        ({}, True),
        ({"penalty": 2.0}, False),
        ({"penalty": 30.0, "center": "temperature"}, True),
    ],
    ids=str,
)
def test_many_classes_have_the_estimates_of_newton(densely, how, weighted):
    weight = (
        np.random.default_rng(1).integers(1, 4, size=1500).astype(float)
        if weighted
        else None
    )
    predictions = of_many(sample_weight=weight)
    found, exact = fit_predictions(predictions, **how), densely(predictions, **how)
    assert found.converged
    assert exact.converged
    np.testing.assert_allclose(found.theta, exact.theta, atol=1e-8)
    assert found.statistic == pytest.approx(exact.statistic, abs=1e-8)
    assert found.log_likelihood_null == pytest.approx(
        exact.log_likelihood_null, abs=1e-8
    )
    assert found.center_gamma == pytest.approx(exact.center_gamma, abs=1e-8)
    np.testing.assert_allclose(found.cov_theta, exact.cov_theta, atol=1e-8)
    assert found.information == exact.information == "full"
    for statistic in ("score", "wald"):
        theirs = value_of(statistic, predictions, exact)
        assert value_of(statistic, predictions, found) == pytest.approx(
            theirs, rel=1e-7
        )


def test_forty_classes_by_gradients_have_the_estimates_of_newton(densely):
    rng = np.random.default_rng(0)
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
        probs / probs.sum(axis=1, keepdims=True), base.codes, classes=range(122)
    )
    found, exact = fit_predictions(predictions), densely(predictions)
    assert found.df == 241
    assert found.gamma[3] == 1.0
    assert np.isnan(found.se_gamma[3])
    np.testing.assert_allclose(found.theta, exact.theta, atol=1e-8)
    np.testing.assert_allclose(found.se_tau, exact.se_tau, atol=1e-8)
    theirs = value_of("score", predictions, exact)
    assert value_of("score", predictions, found) == pytest.approx(theirs, rel=1e-9)


def test_absent_among_many_give_the_supremum(densely):
    # classes 5, 17 and 40 become rows of class 6; class 7 counts for nothing
    base = of_many()
    codes = np.where(np.isin(base.codes, (5, 17, 40)), 6, base.codes)
    weight = np.where(codes == 7, 0.0, 1.0 + codes % 2)
    predictions = replace(base, codes=codes, sample_weight=weight)
    with pytest.warns(SeparationWarning, match=r"no row has class 5"):
        found = fit_predictions(predictions)
    with pytest.warns(SeparationWarning):
        exact = densely(predictions)
    absent = (5, 7, 17, 40)
    assert found.separated
    assert not found.converged
    assert found.separated_classes == exact.separated_classes == absent
    # Newton's tolerance on a drifting estimate; its value lies above the supremum's
    assert found.log_likelihood == pytest.approx(exact.log_likelihood, abs=1e-6)
    assert found.log_likelihood_null == pytest.approx(
        exact.log_likelihood_null, abs=1e-8
    )
    assert found.df == exact.df
    assert np.isnan(found.se_tau).all()
    assert found.cov_theta.shape == (242, 242)
    assert np.isfinite(found.theta).all()
    at = direct_nll(found.theta, predictions.log_odds, predictions.model_codes, weight)
    assert -at == pytest.approx(found.log_likelihood, abs=1e-7)
    present = np.setdiff1d(np.arange(121), absent)
    np.testing.assert_allclose(found.tau[present], exact.tau[present], atol=1e-4)
    theirs = value_of("score", predictions, exact)
    assert value_of("score", predictions, found) == pytest.approx(theirs, rel=1e-7)


@pytest.mark.slow
def test_one_of_many_told_apart_by_its_own_log_odds(densely, monkeypatch):
    base = of_many()
    logits, own = np.log(base.probs), base.codes == 8
    logits[own, 8] = logits[own, -1] + base.log_odds[8].max() + 0.1
    predictions = Predictions.from_arrays(
        y=base.codes, logits=logits, classes=range(122)
    )
    odds = predictions.log_odds[8]
    assert odds[own].min() > odds[~own].max()
    with pytest.warns(SeparationWarning, match="separate the labels") as caught:
        found = fit_predictions(predictions)
    assert caught[0].message.numbers == {"classes": (8,)}
    undecided = partial(
        assess_existence, max_constraint_elements=0.0
    )  # the linear program takes seconds
    monkeypatch.setattr("mcllo._fit.fit.assess_existence", undecided)
    with pytest.warns(
        ConvergenceWarning, match="not decided: the linear program is too large"
    ):
        exact = densely(predictions)
    assert found.log_likelihood == pytest.approx(exact.log_likelihood, abs=1e-6)
    assert found.separated_classes == (8,)


@pytest.mark.slow
def test_an_absent_baseline_among_many(densely):
    base = of_many()
    predictions = replace(base, codes=np.where(base.codes == 121, 0, base.codes))
    with pytest.warns(SeparationWarning, match="no row has class 121"):
        found, exact = fit_predictions(predictions), densely(predictions)
    assert found.separated_classes == (121,)
    assert found.log_likelihood == pytest.approx(exact.log_likelihood, abs=1e-6)


def test_rows_of_the_baseline_alone():
    probs = simplex(np.random.default_rng(0), 200, 122, 1.0)
    predictions = Predictions.from_arrays(probs, np.full(200, 121), classes=range(122))
    with pytest.warns(SeparationWarning, match="no row has class 0, 1, 2 and more"):
        found = fit_predictions(predictions)
    assert found.log_likelihood == 0.0
    assert found.n_iter == 0


def test_more_parameters_than_a_hessian_may_have(monkeypatch):
    predictions = of_many()
    whole = fit_predictions(predictions)
    monkeypatch.setattr(many, "MAX_PARAMETERS_FOR_HESSIAN", 241)
    found = fit_predictions(predictions)
    assert found.converged
    assert found.information == "blocks"
    np.testing.assert_allclose(found.theta, whole.theta, atol=1e-12)
    assert found.cov_theta.shape == (0, 0)
    for se in (found.se_tau, found.se_gamma, found.se_delta):
        assert se.shape == (121,)
        assert np.isnan(se).all()
    assert np.isnan(found.confidence_interval().delta).all()
    assert len(found.parameters()["class"]) == 121
    assert run_test(predictions, found).method == "chi2"
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert content["cov_theta"] is None
    assert content["information"] == "blocks"
    again = MCLLOFit.from_dict(content)
    assert again.to_dict() == content
    assert again.information == "blocks"
    np.testing.assert_array_equal(again.theta, found.theta)


def test_files_of_before_had_all_the_information():
    content = fit_predictions(of_many(n=200, c=3)).to_dict()
    del content["information"]
    again = MCLLOFit.from_dict(content)
    assert again.information == "full"
    assert again.cov_theta.shape == (4, 4)


def test_what_needs_all_the_information_is_refused_without(monkeypatch):
    predictions = of_many()
    monkeypatch.setattr(many, "MAX_PARAMETERS_FOR_HESSIAN", 241)
    fit = fit_predictions(predictions, penalty=1.0)
    for statistic in ("score", "wald"):
        with pytest.raises(
            InputError, match=f"statistic='{statistic}' needs .* 242 parameters"
        ):
            run_test(predictions, fit, statistic=statistic)
    with pytest.raises(InputError, match=r"method='exact' needs .* 242 are too many"):
        run_test(predictions, fit, method="exact")
    with pytest.raises(InputError, match=r"intervals need .* 242 are too many"):
        fit.recalibrate(predictions.probs, interval=0.95)
    for penalty in ("auto", "firth"):
        with pytest.raises(InputError, match=f"penalty='{penalty}' needs .* got 242"):
            fit_predictions(predictions, penalty=penalty)


def test_blocks_show_that_information_vanished(monkeypatch):
    predictions = of_many()
    likelihood = FreeParameterObjective.from_predictions(predictions)
    end = estimate(likelihood, predictions, 0.0, "identity")
    monkeypatch.setattr(many, "MAX_PARAMETERS_FOR_HESSIAN", 241)
    by_blocks = estimate(likelihood, predictions, 0.0, "identity")
    assert by_blocks.hessian.shape == (0, 0)
    assert (
        relative_information(end, likelihood)
        == relative_information(by_blocks, likelihood)
        == 1.0
    )
    tau = by_blocks.blocks.tau.copy()
    tau[8] *= 1e-6
    poor = replace(
        by_blocks,
        blocks=ClassBlocks(tau, by_blocks.blocks.cross, by_blocks.blocks.gamma),
    )
    assert relative_information(poor, likelihood) == 0.0


def test_simulation_counts_parameters():
    few, many_classes = of_many(n=2000, c=5), of_many(n=4000, c=130)
    assert (
        choose_method(few, 8000, "lr", 1999)[0] == "chi2"
    )  # a solve of 8000 equations a draw
    chosen, why = choose_method(many_classes, 258, "lr", 1999)
    assert chosen == "chi2"
    assert (why.limits, why.notes) == (("size",), (SCORE_INSTEAD_NOTE,))
    assert choose_method(many_classes, 258, "score", 1999)[0] == "sequential"


def solution(odds, codes, weight=None):
    """Where the dense solver stops, drifting or not."""
    likelihood = NegativeLogLikelihood(
        LogPartition(odds, weight), sufficient_statistic(odds, codes, weight)
    )
    return minimize(likelihood, identity_theta(len(odds)))


def what_is_left(found, odds, codes, weight=None):
    """Log odds, codes and weights without the classes and rows that left."""
    number = np.append(
        np.cumsum(found.remaining_classes) - 1, found.remaining_classes.sum()
    )
    own = None if weight is None else weight[found.remaining_rows]
    return (
        odds[np.ix_(found.remaining_classes, found.remaining_rows)],
        number[codes[found.remaining_rows]],
        own,
    )


def test_nothing_leaves_where_the_classes_overlap_or_touch():
    odds, theta = np.array([[0.0, 1.0, 2.0, 3.0]]), np.array([0.5, 2.0])
    found = eliminate_separated_classes(odds, np.array([0, 1, 0, 1]))
    assert not found
    assert found.remaining_rows.all()
    np.testing.assert_array_equal(
        found.with_finite_parameters(theta, odds, np.zeros(4), 4.0), theta
    )
    assert not eliminate_separated_classes(
        np.array([[2.0, -1.0, 3.0, 2.0]]), np.array([0, 1, 0, 1])
    )


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_class_leaves_by_hand(sign):
    # rows of class 0: log odds 2, 3; of the others: -1, 1. B = log(1 * 4 / 1e-10) = 24.41
    odds, codes = sign * np.array([[2.0, -1.0, 3.0, 1.0]]), np.array([0, 1, 0, 1])
    found = eliminate_separated_classes(odds, codes)
    assert found
    assert not found.remaining_classes.any()
    np.testing.assert_array_equal(found.remaining_rows, [False, True, False, True])
    tau, gamma = found.with_finite_parameters(identity_theta(1), odds, codes, 4.0)
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
    found = eliminate_separated_classes(odds, codes)
    assert found.absent_classes.tolist() == absent
    assert [gone.tolist() for gone in found.removed_by_round] == rounds
    theta = found.with_finite_parameters(
        identity_theta(2), odds, codes, float(len(codes))
    )
    assert direct_nll(theta, odds, codes) == pytest.approx(0.0, abs=2e-10)


def test_rows_of_weight_0_do_not_count():
    odds, codes = np.array([[2.0, 1.0, 3.0, 1.5]]), np.array([0, 1, 1, 0])
    assert not eliminate_separated_classes(odds, codes)
    found = eliminate_separated_classes(odds, codes, np.array([1.0, 1.0, 0.0, 2.0]))
    assert found.removed_by_round[0].tolist() == [0]
    np.testing.assert_array_equal(found.remaining_rows, [False, True, False, False])


def test_the_supremum_is_that_of_what_is_left():
    rng = np.random.default_rng(2)
    probs = simplex(rng, 60, 25, 4.0)
    odds, codes = log_odds_of(probs), draw(probs, rng)
    weight = rng.integers(0, 3, size=60).astype(float)
    found = eliminate_separated_classes(odds, codes, weight)
    assert len(found.absent_classes) > 0
    assert len(found.removed_by_round) > 0
    assert found.remaining_classes.any()
    left = what_is_left(found, odds, codes, weight)
    inner = solution(*left)
    # the dense solver, drifting, ends within its tolerance of the supremum
    assert inner.value == pytest.approx(solution(odds, codes, weight).value, abs=1e-6)
    theta = identity_theta(24)
    theta[np.tile(found.remaining_classes, 2)] = inner.x
    theta = found.with_finite_parameters(theta, odds, codes, weight.sum())
    without = direct_nll(inner.x, *left)
    assert direct_nll(theta, odds, codes, weight) == pytest.approx(without, abs=1e-9)


@settings(deadline=None, max_examples=40)
@given(designs(min_rows=4, max_rows=12, max_classes=4), st.booleans())
def test_a_class_that_leaves_has_no_maximum(design, reverse):
    probs, codes = design
    odds = log_odds_of(probs[:, ::-1] if reverse else probs)
    if eliminate_separated_classes(odds, codes):
        assert find_separating_direction(odds, codes) is not None


@pytest.mark.parametrize("concentration", [1.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_of_few_rows_need_no_matrix_of_all_parameters(concentration, weighted):
    """The form is that of the pseudo-inverse of the whole Hessian, in units of its diagonal."""
    rng = np.random.default_rng(3)
    n, c = 6, 90
    probs = np.maximum(rng.dirichlet(np.full(c, concentration), n), 1e-9)
    rows = Predictions.from_arrays(
        probs, rng.integers(0, c, n), classes=range(c), normalize=True
    )
    weight = rng.uniform(0.5, 3.0, n) if weighted else None
    at_identity = LogPartition(rows.log_odds, weight)(identity_theta(c - 1))
    labels = rng.integers(0, c, (4, n))
    drawn = [sufficient_statistic(rows.log_odds, y, weight) for y in labels]
    scores = np.array(drawn) - at_identity.gradient
    unit = np.sqrt(np.diagonal(at_identity.hessian))
    scaled = at_identity.hessian / unit / unit[:, None]
    inverse = np.linalg.pinv(scaled, 1e-13, hermitian=True)
    expected = np.einsum("bi,ij,bj->b", scores / unit, inverse, scores / unit)
    form = many.QuadraticFormOfScores(rows.log_odds, weight, identity_theta(c - 1))
    np.testing.assert_allclose(form(scores), expected, rtol=1e-9)


def test_few_rows_of_many_classes_are_tested_by_exact_scores():
    """The p-value of a simulation is uniform where the rows are calibrated, at any size."""
    rng = np.random.default_rng(4)
    n, c = 5, 300  # 598 parameters, more than 20 a row
    pvalues = []
    for seed in range(200):
        probs = rng.dirichlet(np.ones(c), n)
        rows = Predictions.from_arrays(probs, draw(probs, rng), classes=range(c))
        fit = fit_predictions(rows, penalty=1.0)
        test = run_test(rows, fit, statistic="score", n_resamples=99, seed=seed)
        assert test.method == "exact"
        pvalues.append(test.pvalue)
    # 10 expected below 0.05, standard deviation 3.1; 100 below 0.5, standard deviation 7.1
    assert 1 <= np.sum(np.array(pvalues) <= 0.05) <= 20
    assert 75 <= np.sum(np.array(pvalues) <= 0.5) <= 125
    assert fit.information == "blocks"
