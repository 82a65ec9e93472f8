import data
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcllo import Predictions
from mcllo._diagnostics.duplicate_rows import Copies
from mcllo._fit.linear_fit import transposed_scores
from mcllo.calibrators import AutoCalibrator
from mcllo.calibrators._auto.folds import N_FOLDS, Folds, assign_folds
from mcllo.calibrators._auto.members import Members, MembersFit, label_log_likelihoods
from mcllo.calibrators._auto.stacking import (
    Stack,
    _log_evidence,
    cross_fit,
    design_effect,
    fit_members,
    fit_pool_weights,
    fit_stack,
    gain_shrinkage,
    group_copies,
    pooled_log_likelihood,
    predict_left_out,
)
from mcllo.calibrators._auto.temperature_with_lapse import TemperatureWithLapse


def sample(n=300, c=3, power=2.0, seed=0, **facts):
    """Predictions that are `power` times overconfident."""
    probs, y = data.drawn(n, range(c), seed, power=power)
    return Predictions.from_arrays(probs, y, classes=range(c), **facts)


def left_out_logs(fit, folds):
    """Return the left-out logs of members fitted without each fold."""
    return predict_left_out(fit, folds, 1)[0]


def test_hand_sized_pool():
    # Temperature with u = 0, nearly, gives (1/2, 1/2): half of it and half of (0.9, 0.1).
    members = Members(TemperatureWithLapse(1e-300, 0.0), {})
    weights = {"identity": 0.5, "temperature": 0.5}
    stack, probs = Stack(members, weights, 1.0, 1.0, 0.0, 1.0), np.array([[0.9, 0.1]])
    np.testing.assert_allclose(
        stack.pool(np.log(probs).T, probs), [[0.7, 0.3]], atol=1e-15
    )


def test_hand_sized_evidence():
    # Two folds, one member beside the identity. Sums of log ratios: 1 + 2 * 3 = 7 and -1.
    folds = Folds(
        np.arange(3), np.array([0, 0, 1]), np.array([1.0, 2.0, 1.0]), np.arange(3), 2
    )
    logs = np.array([[0.0, 1.0], [-5.0, -2.0], [0.0, -1.0]])
    expected = np.log((np.exp(7.0) + np.exp(-1.0)) / 2.0)
    assert _log_evidence(logs, folds) == pytest.approx(expected)


def test_left_out_logs_against_separate_fits():
    predictions = sample(60)
    scores = transposed_scores(predictions)
    folds = assign_folds(scores)
    logs = left_out_logs(MembersFit(scores, predictions.codes), folds)
    for part in (0, 17, 59):
        row, kept = folds.rows[part], np.ones(60, dtype=bool)
        kept[folds.rows[folds.folds == folds.folds[part]]] = False
        alone = MembersFit(scores[:, kept], predictions.codes[kept]).whole
        expected = label_log_likelihoods(
            alone.all_probabilities(scores[:, [row]]), predictions.codes[[row]]
        )[0]
        # fits to parts stop at a decrement of 2e-4, errors are below 0.05 standard errors
        np.testing.assert_allclose(logs[part], expected, atol=5e-3)
        own = MembersFit(scores, predictions.codes).whole
        assert (
            np.abs(
                logs[part]
                - label_log_likelihoods(
                    own.all_probabilities(scores), predictions.codes
                )[row]
            ).max()
            > 0.0
        )


def test_hand_sized_trust():
    # A third of the standard error counts of 144 errors and more: 3^2 / (3^2 + (3 / 3)^2) = 0.9.
    # Of 25 errors 0.8 of it, 9 / (9 + 2.4^2); of 16 and fewer the whole, 9 / (9 + 3^2).
    assert (
        gain_shrinkage(3.0, 3.0, 144)
        == gain_shrinkage(3.0, 3.0, np.inf)
        == pytest.approx(0.9)
    )
    assert gain_shrinkage(3.0, 3.0, 25) == pytest.approx(9.0 / 14.76)
    assert (
        gain_shrinkage(3.0, 3.0, 9) == gain_shrinkage(3.0, 3.0, 0) == pytest.approx(0.5)
    )
    assert gain_shrinkage(-3.0, 2.0, 99) == gain_shrinkage(0.0, np.inf, 99) == 0.0
    assert gain_shrinkage(1.0, np.inf, 99) == 0.0


def test_weights_and_losses_belong_together():
    predictions = sample()
    stack = fit_stack(predictions)
    scores = transposed_scores(predictions)
    folds = assign_folds(scores)
    logs = left_out_logs(MembersFit(scores, predictions.codes), folds)
    weights = fit_pool_weights(logs, np.array([0.5, 0.5, 0.1, 0.1, 0.1, 0.1]))
    trust = (1.0 - stack.weights["identity"]) / (1.0 - weights[0])
    found = np.array(list(stack.weights.values()))
    np.testing.assert_allclose(found[1:], trust * weights[1:], atol=1e-9)
    n_errors = int((predictions.probs.argmax(axis=1) != predictions.codes).sum())
    expected = gain_shrinkage(stack.gain, stack.gain_se, n_errors)
    assert trust == pytest.approx(expected, abs=0.01)
    assert stack.raw_loss == pytest.approx(-logs[:, 0].mean())
    assert stack.loss == pytest.approx(stack.raw_loss - stack.gain)
    assert stack.gain > 3.0 * stack.gain_se > 0.0
    assert stack.pvalue < 0.001


def test_one_fold_of_many_rows():
    # Enough rows in one fold: its halves judge each other, and the promise is about the same.
    whole, stack = fit_stack(sample(3000)), fit_stack(sample(3000), min_parts=500)
    assert stack.gain == pytest.approx(whole.gain, abs=4.0 * stack.gain_se)
    assert (
        1.5 * whole.gain_se < stack.gain_se < 3.0 * whole.gain_se
    )  # sqrt(5) in theory
    assert stack.log_evidence > 0.0


def test_evidence_needs_independent_rows_and_counts():
    assert fit_stack(sample()).log_evidence > 0.0
    assert fit_stack(sample(sample_weight=np.full(300, 2.0))).log_evidence > 0.0
    assert fit_stack(sample(sample_weight=np.full(300, 1.5))).log_evidence == 0.0
    grouped = fit_stack(sample(groups=np.arange(300) // 10))
    assert (grouped.log_evidence, grouped.pvalue) == (0.0, 1.0)


def test_groups_widen_the_standard_error():
    predictions = sample(40)
    rows = np.repeat(np.arange(40), 8)
    repeated = sample(
        40, sample_weight=np.full(40, 8.0)
    )  # as rows they would be copies
    grouped = Predictions.from_arrays(
        predictions.probs[rows], predictions.codes[rows], groups=rows
    )
    assert fit_stack(grouped).gain_se > 1.5 * fit_stack(repeated).gain_se


def test_round_trip_and_damage():
    stack = fit_stack(sample())
    again = Stack.from_dict(stack.to_dict())
    assert again.to_dict() == stack.to_dict()
    alone = Stack.from_dict(fit_stack(sample(1)).to_dict())
    assert alone.gain_se == np.inf
    with pytest.raises(ValueError, match="other members"):
        Stack.from_dict({**stack.to_dict(), "weights": {"identity": 1.0}})


@pytest.mark.slow
def test_evidence_has_its_level():
    # Labels drawn from the predictions: P(E >= 10) <= 0.1. Of 120 draws at most 0.1 + 2 se = 0.155.
    draws = [fit_stack(sample(80, power=1.0, seed=seed)).pvalue for seed in range(120)]
    assert np.mean(np.array(draws) <= 0.1) <= 0.155


def scores_of(n, c=3, seed=0):
    return np.log(np.random.default_rng(seed).dirichlet(np.ones(c), size=n)).T


def by_row(folds, n):
    """The weight of each row in each fold, shape (n, folds)."""
    return np.column_stack([folds.left_out_weight(k, n) for k in range(folds.n_folds)])


def test_hand_sized_example():
    # Two classes, gaps z - max: rows have sums -3, 0, -1, -2, so their order is 0, 3, 2, 1 and with
    # four rows there are four folds.
    scores = np.array([[0.0, 5.0, 2.0, 1.0], [-3.0, 5.0, 3.0, 3.0]])
    folds = assign_folds(scores)
    assert folds.n_folds == 4
    assert folds.rows.tolist() == [0, 3, 2, 1]
    assert folds.folds.tolist() == [0, 1, 2, 3]
    without_bound = np.array([[0.0, 0.0, 0.0], [-1e300, -2.0, -1.0]])
    assert assign_folds(without_bound).rows.tolist() == [0, 1, 2]


def test_a_row_of_weight_w_takes_w_places():
    # Order 0, 1, 2 (sums -3, -2, -1) with weights 7, 0, 2: places 0-6 and 7-8, modulo 5.
    scores = np.array([[0.0, 0.0, 0.0], [-3.0, -2.0, -1.0]])
    parts = by_row(assign_folds(scores, np.array([7.0, 0.0, 2.0])), 3)
    assert parts.tolist() == [[2, 2, 1, 1, 1], [0, 0, 0, 0, 0], [0, 0, 1, 1, 0]]


@given(st.integers(0, 1000), st.integers(1, 40))
@settings(deadline=None, max_examples=40)
def test_weights_are_repeated_rows(seed, n):
    rng = np.random.default_rng(seed)
    scores, weight = scores_of(n, seed=seed), rng.integers(0, 9, size=n).astype(float)
    weight[0] += 2.0
    row = np.repeat(np.arange(n), weight.astype(int))
    once, many = assign_folds(scores, weight), assign_folds(scores[:, row])
    assert once.n_folds == many.n_folds
    together = np.zeros((n, once.n_folds))
    np.add.at(together, row, by_row(many, len(row)))
    np.testing.assert_array_equal(by_row(once, n), together)
    np.testing.assert_array_equal(by_row(once, n).sum(axis=1), weight)


def test_order_of_rows_classes_and_shifts_do_not_matter():
    rng, scores = np.random.default_rng(3), scores_of(103, c=4)
    parts = by_row(assign_folds(scores), 103)
    order = rng.permutation(103)
    np.testing.assert_array_equal(
        by_row(assign_folds(scores[:, order]), 103), parts[order]
    )
    np.testing.assert_array_equal(
        by_row(assign_folds(scores[[2, 0, 3, 1]]), 103), parts
    )
    np.testing.assert_array_equal(by_row(assign_folds(scores + 7.0), 103), parts)
    assert np.ptp(parts.sum(axis=0)) <= 1.0


def test_weights_that_are_no_counts_stay_whole():
    weight = np.linspace(0.0, 3.3, 12)
    parts = by_row(assign_folds(scores_of(12), weight), 12)
    assert (np.count_nonzero(parts, axis=1) == (weight > 0.0)).all()
    np.testing.assert_allclose(parts.sum(axis=1), weight)


def test_rows_of_importance_weight_are_one_observation_each():
    # Weights that happen to be whole do not make one row several: part of it would be learned from
    # while another part is left out. So the unit of the weights does not matter.
    weight = np.tile([1.0, 2.0, 5.0], 4)
    folds = assign_folds(scores_of(12), weight, weights_are_frequencies=False)
    parts = by_row(folds, 12)
    assert (np.count_nonzero(parts, axis=1) == 1).all()
    np.testing.assert_allclose(parts.sum(axis=1), weight)
    scaled = assign_folds(scores_of(12), 0.37 * weight, weights_are_frequencies=False)
    np.testing.assert_array_equal(folds.folds, scaled.folds)


def test_the_kind_of_weights_reaches_the_folds():
    weight = np.tile([1.0, 2.0, 3.0, 4.0], 50)
    importance = sample(200, sample_weight=weight, weight_kind="importance")
    crossed = cross_fit(importance, fit_members(importance), None)
    assert len(crossed.folds.rows) == 200
    counts = sample(200, sample_weight=weight)
    crossed = cross_fit(counts, fit_members(counts), None)
    assert len(crossed.folds.rows) > 200  # parts of rows that are several


def test_groups_stay_together():
    groups = np.random.default_rng(0).integers(0, 8, size=60)
    parts = by_row(assign_folds(scores_of(60), None, groups), 60)
    assert parts.shape[1] == N_FOLDS
    for group in range(8):
        assert len(np.unique(parts[groups == group].argmax(axis=1))) == 1


def test_fewer_rows_than_folds():
    for n, expected in ((1, 0), (2, 2), (4, 4), (5, 5), (50, 5)):
        assert assign_folds(scores_of(n)).n_folds == expected, n
    one_group = np.zeros(50, dtype=int)
    assert assign_folds(scores_of(50), None, one_group).n_folds == 0


def test_enough_rows_are_left_out():
    # 126 rows, folds of 26, 25, 25, 25, 25: cumulated 26, 51, 76, 101, 126.
    for enough, n_folds, n_rows in (
        (10_000, 5, 126),
        (101, 4, 101),
        (60, 3, 76),
        (1, 1, 26),
    ):
        folds = assign_folds(scores_of(126)).take_first(enough)
        assert folds.n_folds == n_folds, enough
        assert folds.folds.max() == n_folds - 1, enough
        assert folds.weight.sum() == n_rows, enough


def test_rows_of_one_fold_judge_by_halves():
    # 12 rows in order 11, 10, ..., 0: fold 0 holds places 0, 5 and 10, that is rows 11, 6 and 1.
    scores = np.vstack([np.zeros(12), -np.arange(12.0)])
    folds = assign_folds(scores).take_first(1)
    assert folds.rows.tolist() == [11, 6, 1]
    assert folds.cross_fitting_folds().tolist() == [0, 1, 0]
    grouped = assign_folds(scores, None, np.repeat([0, 1], 6)).take_first(1)
    assert (
        len(np.unique(grouped.cross_fitting_folds())) == 1
    )  # two groups, two folds, one group in each
    np.testing.assert_array_equal(
        assign_folds(scores).cross_fitting_folds(), assign_folds(scores).folds
    )


def random_logs(seed, n=60, k=4):
    return np.log(np.random.default_rng(seed).uniform(0.01, 1.0, size=(n, k)))


def em(logs, prior, weight, steps=5000):
    """The fixed point of EM, ``w_k <- (a_k + sum_i v_i w_k P_ik / p_i) / (A + V)``."""
    likelihoods, w = np.exp(logs), np.full(len(prior), 1.0 / len(prior))
    for _ in range(steps):
        share = w * likelihoods / (likelihoods @ w)[:, None]
        w = (prior + weight @ share) / (prior.sum() + weight.sum())
    return w


def test_equal_members_get_their_prior():
    logs = np.log(np.random.default_rng(0).uniform(size=(30, 1))) * np.ones((1, 3))
    prior = np.array([0.5, 0.3, 0.2])
    # any w gives the same likelihood, so the prior alone decides: a_k / sum a
    np.testing.assert_allclose(fit_pool_weights(logs, prior), prior, atol=1e-9)


def test_hand_sized_example_pool():
    # n rows in which member 0 gives 1 and member 1 gives 0: w_0 = (n + a) / (n + 2 a).
    logs = np.array([[0.0, -800.0]] * 9)
    w = fit_pool_weights(logs, np.array([0.5, 0.5]))
    np.testing.assert_allclose(w, [0.95, 0.05], atol=1e-12)


def test_against_many_steps_of_em():
    logs, weight = random_logs(0), np.random.default_rng(0).uniform(0.5, 2.0, size=60)
    prior = np.array([0.5, 0.5, 0.1, 0.1])
    expected = em(logs, prior, weight)
    np.testing.assert_allclose(
        fit_pool_weights(logs, prior, weight), expected, atol=1e-8
    )


def test_nothing_to_learn_from():
    prior = np.array([0.5, 0.1])
    np.testing.assert_allclose(
        fit_pool_weights(np.empty((0, 2)), prior), [5 / 6, 1 / 6]
    )
    np.testing.assert_array_equal(
        fit_pool_weights(random_logs(0, k=1), np.array([0.5])), [1.0]
    )


def test_pooled_logs_do_not_underflow_and_take_weights_of_their_own():
    logs = np.array([[-1000.0, -1001.0], [0.0, -np.inf]])
    expected = [-1000.0 + np.log(0.25 + 0.75 * np.exp(-1.0)), np.log(0.25)]
    np.testing.assert_allclose(
        pooled_log_likelihood(logs, np.array([0.25, 0.75])), expected, rtol=1e-14
    )
    own = pooled_log_likelihood(
        np.log([[0.2, 0.4], [0.2, 0.4]]), np.array([[1.0, 0.0], [0.5, 0.5]])
    )
    np.testing.assert_allclose(np.exp(own), [0.2, 0.3])


@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(2, 6))
@settings(deadline=None, max_examples=40)
def test_weights_are_a_stationary_point_of_em(seed, n, k):
    rng = np.random.default_rng(seed)
    logs = rng.normal(scale=3.0, size=(n, k))
    prior = rng.uniform(0.05, 1.0, size=k)
    w = fit_pool_weights(logs, prior)
    assert w.min() > 0.0
    assert w.sum() == pytest.approx(1.0)
    share = w * np.exp(logs - pooled_log_likelihood(logs, w)[:, None])
    np.testing.assert_allclose(
        (prior + share.sum(axis=0)) / (prior.sum() + n), w, atol=1e-6
    )


def test_weight_two_is_a_row_twice():
    logs, prior = random_logs(1), np.full(4, 0.3)
    weight = np.tile([1.0, 2.0, 0.0], 20)
    expected = fit_pool_weights(np.repeat(logs, weight.astype(int), axis=0), prior)
    np.testing.assert_allclose(
        fit_pool_weights(logs, prior, weight), expected, atol=1e-9
    )


def test_several_weightings_at_once():
    logs, prior = random_logs(2), np.array([0.5, 0.5, 0.1, 0.1])
    weights = np.random.default_rng(2).uniform(size=(3, 60))
    weights[1, ::2] = 0.0
    expected = [fit_pool_weights(logs, prior, weight) for weight in weights]
    np.testing.assert_allclose(
        fit_pool_weights(logs, prior, weights), expected, atol=1e-7
    )
    nothing = fit_pool_weights(np.empty((0, 2)), prior[:2], np.empty((3, 0)))
    np.testing.assert_allclose(nothing, 0.5)


def test_a_pool_of_many_classes_is_not_behind_its_temperature():
    """1.7 times overconfident and nothing else: left-out rows enough to find that out.

    With weights from 120 left-out rows the pool was .0029 behind in the worst of these, and now
    it is .0001.
    """
    behind = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        z = rng.normal(scale=2.0, size=(2300, 150))
        y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
        learn = Predictions.from_arrays(
            logits=1.7 * z[:300], y=y[:300], classes=range(150)
        )
        stack = fit_stack(learn)
        scores = 1.7 * z[300:].T
        probs = np.exp(scores.T) / np.exp(scores.T).sum(axis=1, keepdims=True)
        rows = np.arange(2000)
        pooled = stack.pool(scores, probs)[rows, y[300:]]
        alone = stack.members.probabilities(scores)["temperature"].T[rows, y[300:]]
        behind.append(float(np.log(alone).mean() - np.log(pooled).mean()))
    assert max(behind) < 0.001


# ----------------------------------------------------------------------------------------- copies


def copied(n=200, times=4, c=3, seed=0):
    """Return n rows drawn `times` n times with replacement, and which row each one is."""
    rows = sample(n, c, seed=seed)
    of = np.random.default_rng(seed).integers(0, n, size=times * n)
    return rows.take(of), of


def test_copies_are_left_out_together_as_groups_of_rows_that_weigh_less_are():
    predictions, of = copied()
    found = fit_stack(predictions)
    times = np.bincount(of)
    assert found.n_copies == len(of) - np.count_nonzero(times)
    effect = np.sum(times**2) / np.sum(times)  # about 5: times are Poisson of mean 4
    weight = np.full(len(of), 1.0 / effect)
    arrays = (predictions.probs, predictions.codes)
    by_groups = fit_stack(
        Predictions.from_arrays(*arrays, sample_weight=weight, groups=of)
    )
    assert by_groups.n_copies == 0
    assert found.gain == pytest.approx(by_groups.gain, rel=1e-6)
    assert found.gain_se == pytest.approx(by_groups.gain_se, rel=1e-6)
    assert (found.log_evidence, found.pvalue) == (0.0, 1.0)
    assert found.weights == pytest.approx(by_groups.weights, abs=1e-5)
    # groups that are no copies weigh what they weigh
    full = fit_stack(Predictions.from_arrays(*arrays, groups=of))
    assert full.weights["identity"] != pytest.approx(
        found.weights["identity"], abs=1e-3
    )


def test_a_table_repeated_four_times_gives_the_answers_of_the_table():
    one = sample(200)
    order = np.random.default_rng(3).permutation(800)
    found = fit_stack(one.take(np.tile(np.arange(200), 4)[order]))
    once = fit_stack(one)
    assert found.n_copies == 600
    assert found.weights == pytest.approx(once.weights, abs=2e-3)
    assert found.gain == pytest.approx(once.gain, rel=2e-3)
    scores = transposed_scores(one)
    np.testing.assert_allclose(
        found.pool(scores, one.probs), once.pool(scores, one.probs), atol=1e-3
    )


@pytest.mark.parametrize(
    ("weight", "groups", "effect"),
    [
        ([1.0, 1.0, 1.0, 1.0], [0, 1, 2, 3], 1.0),
        ([1.0, 1.0, 1.0, 1.0], [0, 0, 1, 1], 2.0),  # (4 + 4) / 4
        ([1.0, 3.0, 2.0], [0, 0, 1], 20.0 / 14.0),  # (16 + 4) / (1 + 9 + 4)
    ],
)
def test_design_effect_by_hand(weight, groups, effect):
    assert design_effect(np.array(weight), np.array(groups)) == pytest.approx(effect)


def test_a_repeated_table_keeps_its_copies_together():
    one = sample(60)
    twice = one.take(np.tile(np.arange(60), 2))
    fit = MembersFit(transposed_scores(twice), twice.codes)
    groups, n_copies = group_copies(twice, fit)
    assert n_copies == 60
    np.testing.assert_array_equal(groups[:60], groups[60:])
    assert len(np.unique(groups)) == 60
    folds = assign_folds(transposed_scores(twice), None, groups)
    fold_of = np.empty(120, dtype=int)
    fold_of[folds.rows] = folds.folds
    np.testing.assert_array_equal(fold_of[:60], fold_of[60:])
    assert sorted(np.bincount(fold_of)) == [24] * 5


def test_votes_are_no_copies():
    rng = np.random.default_rng(1)
    votes = rng.integers(1, 20, size=400) / 20.0
    y = (rng.random(400) < votes).astype(int)
    votes = Predictions.from_arrays(np.column_stack([1.0 - votes, votes]), y)
    fit = MembersFit(transposed_scores(votes), votes.codes)
    assert group_copies(votes, fit) == (None, 0)


def test_many_equal_rows_are_no_fold_of_their_own():
    # 5 numbers: 0 three times, 1 twice. Up to 2 equal rows stay together, 3 are each their own.
    copies = Copies(3, None, np.array([0, 1, 0, 1, 0]))
    groups = copies.number_inseparable_rows(2)
    assert groups[1] == groups[3]
    assert len(set(groups[[0, 2, 4]])) == 3
    assert len(set(copies.number_inseparable_rows(3))) == 2
    # a table that is there twice: 4 equal rows are two rows, twice
    twice = Copies(3, 2, np.array([0, 0, 0, 0, 1, 1])).number_inseparable_rows(1)
    assert np.bincount(twice).tolist() == [2, 2, 2]


def test_copies_are_said_and_saved():
    predictions, of = copied()
    made = AutoCalibrator().fit(predictions, None)
    n_copies = len(of) - len(np.unique(of))
    assert made.n_copies_ == n_copies
    said = f"{n_copies} rows equal others, label included, and were left out with them"
    assert said in made.summary()
    assert "equal others" not in AutoCalibrator().fit(sample(), None).summary()
    assert Stack.from_dict(made.stack_.to_dict()).n_copies == n_copies
    old = made.stack_.to_dict()
    del old["n_copies"]
    assert Stack.from_dict(old).n_copies == 0
