"""Labels as H0 has them, for weighted and for grouped rows."""

from itertools import product

import numpy as np
import pytest
from independent import draw
from toy import TOY_X, TOY_Y

from mcllo import Predictions, robust_test
from mcllo._fit.covariance import unit_scores
from mcllo._fit.objective import free_parameters
from mcllo._inference.null_labels import (
    RowsUnderNull,
    ScoreSkewness,
    dependent_labels_pvalue,
    drawn_labels_pvalue,
    log_weight_effects,
)
from mcllo._model.kernel import LogPartition
from mcllo._model.likelihood import identity_theta
from mcllo._utils.linalg import whitening_matrix

GROUPS = np.arange(16) // 3


def sampled(x, y, weight, **options):
    return Predictions.from_arrays(
        x, y, sample_weight=weight, weight_kind="survey", **options
    )


def by_label(rng, n=60, c=3):
    """Return calibrated rows of which labels are kept with chances 1, 1/2, 1/4."""
    probs = rng.dirichlet(np.ones(c), 6 * n)
    y = draw(probs, rng)
    chance = 0.5 ** np.arange(c)[y]
    kept = np.flatnonzero(rng.random(len(y)) < chance)[:n]
    return sampled(probs[kept], y[kept], 1.0 / chance[kept], classes=list(range(c)))


def root_of(p):
    free = free_parameters(p.log_odds)
    hessian = LogPartition(p.log_odds, p.sample_weight)(
        identity_theta(len(p.log_odds))
    ).hessian
    assert free.all()
    return whitening_matrix(hessian)


# --- by hand


def test_chances_of_labels_by_hand():
    # labels 0 weigh 1, labels 1 weigh 4; of (1/2, 1/2) four in five of the rows kept are 0, and
    # of (1/5, 4/5) as many as are 1: (1/5) / 1 against (4/5) / 4
    p = sampled([[0.5, 0.5]] * 6 + [[0.2, 0.8]] * 6, [0, 0, 1] * 4, [1, 1, 4] * 4)
    rows = RowsUnderNull(p)
    first = rows.probs[:, 0] == 0.5
    assert rows.weights_depend_on_labels
    assert rows.chance[first] == pytest.approx(np.tile([0.8, 0.2], (6, 1)))
    assert rows.chance[~first] == pytest.approx(np.tile([0.5, 0.5], (6, 1)))
    assert rows.weight == pytest.approx(np.tile([1.0, 4.0], (12, 1)))
    # a score is (1 - x) w or -x w: .8 * 1 * .5 - .2 * 4 * .5 = 0
    assert rows.score_mean == pytest.approx([0.0, 0.0], abs=1e-12)
    # variance of the shift: 6 (.8 * .25 + .2 * 16 * .25) + 6 (.5 * .64 + .5 * 16 * .04) = 6 + 3.84
    assert rows.score_variance[0, 0] == pytest.approx(9.84)


def test_weights_that_know_nothing_of_labels_stay_with_their_rows():
    rng = np.random.default_rng(5)
    probs = rng.dirichlet([1, 1, 1], 200)
    weight = rng.gamma(1.0, 1.0, 200)
    rows = RowsUnderNull(sampled(probs, draw(probs, rng), weight))
    assert not rows.weights_depend_on_labels
    assert rows.chance == pytest.approx(rows.probs)
    assert np.sort(rows.weight[:, 0]) == pytest.approx(np.sort(weight))
    assert rows.weight == pytest.approx(np.tile(rows.weight[:, :1], 3))


def test_the_weight_of_an_error_is_found():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 1, 1], 300)
    y, top = draw(probs, rng), probs.argmax(axis=1)
    odds = np.log(probs[:, :2] / probs[:, 2:])
    table, hangs = log_weight_effects(
        probs, odds, y, np.log(np.where(y == top, 20.0, 1.0))
    )
    assert hangs
    ratio = np.exp(table - table.min(axis=1, keepdims=True))
    assert ratio[np.arange(300), top] == pytest.approx(20.0, rel=1e-6)


# --- independent implementation


@pytest.mark.parametrize("c", [2, 5])
def test_moments_and_totals_against_loops(c):
    rows = RowsUnderNull(by_label(np.random.default_rng(c), c=c))
    n, k = rows.n, c - 1
    scores = np.zeros((n, c, 2 * k))
    for i, j in product(range(n), range(c)):
        residual = (np.arange(k) == j) - rows.probs[i, :k]
        own = np.concatenate([residual, residual * rows.odds[i]])
        scores[i, j] = rows.weight[i, j] * own
    mean = np.einsum("ij,ijp->ip", rows.chance, scores)
    second = np.einsum("ij,ijp,ijq->pq", rows.chance, scores, scores)
    assert rows.score_mean == pytest.approx(mean.sum(axis=0), abs=1e-9)
    assert rows.score_variance == pytest.approx(second - mean.T @ mean)
    labels = np.random.default_rng(1).integers(0, c, (4, n))
    starts = np.array([0, 7, 8, 40])
    found = rows.group_scores(labels, starts)
    for d, (g, first) in product(range(4), enumerate(starts)):
        end = n if g == 3 else starts[g + 1]
        own = sum(scores[i, labels[d, i]] for i in range(first, end))
        assert found[d, g] == pytest.approx(own)


def test_observed_totals_are_the_scores_of_the_groups():
    weight = np.linspace(1.0, 3.0, 16)
    p = sampled(TOY_X, TOY_Y, weight, groups=GROUPS)
    rows = RowsUnderNull(p)
    found = rows.group_scores(rows.codes[None], rows.starts)[0]
    expected = unit_scores(p, identity_theta(2))
    assert np.sort(found[:, 0]) == pytest.approx(np.sort(expected[:, 0]))
    assert found.sum(axis=0) == pytest.approx(expected.sum(axis=0))


def test_a_few_rows_against_every_label():
    p = sampled(
        [[0.5, 0.5], [0.2, 0.8], [0.7, 0.3], [0.4, 0.6]],
        [0, 1, 0, 1],
        [1.0, 3.0, 1.0, 3.0],
    )
    rows = RowsUnderNull(p)
    exact, observed = 0.0, None
    for labels in [tuple(rows.codes), *product([0, 1], repeat=4)]:
        chance = np.prod(rows.chance[np.arange(4), labels])
        away = (
            rows.group_scores(np.array([labels]))[0, 0] - rows.score_mean
        ) @ rows.score_whitening
        if observed is None:
            observed = away @ away
        else:
            exact += chance * (away @ away >= observed * (1 - 1e-9))
    found = drawn_labels_pvalue(rows, n_resamples=20_000, seed=0)
    # five standard errors of 20,000 draws
    assert found.pvalue == pytest.approx(
        exact, abs=5 * np.sqrt(exact * (1 - exact) / 20_000)
    )


# --- properties


def test_equal_weights_give_the_score_test_of_plain_rows():
    # methods.md 0.4: the score statistic, 0.98956
    test = robust_test(sampled(TOY_X, TOY_Y, np.full(16, 2.5)), seed=0)
    assert (test.statistic, test.df) == (pytest.approx(0.9895584940), 4)
    assert test.n_effective == pytest.approx(16)


@pytest.mark.parametrize("options", [{}, {"groups": GROUPS}], ids=["rows", "groups"])
def test_order_of_rows_scale_of_weights_and_names_change_nothing(options):
    rng, order = np.random.default_rng(4), np.random.default_rng(8).permutation(16)
    weight = rng.gamma(2.0, 1.0, 16)
    a = robust_test(sampled(TOY_X, TOY_Y, weight, **options), seed=1)
    moved = {"groups": [f"g{9 - g}" for g in GROUPS[order]]} if options else {}
    b = robust_test(
        sampled(TOY_X[order], TOY_Y[order], 8 * weight[order], **moved), seed=1
    )
    assert a.to_dict() == pytest.approx(b.to_dict())


def test_a_class_that_no_row_has_is_not_drawn_where_weights_hang_on_labels():
    p = by_label(np.random.default_rng(2))
    some = p.take(p.codes != 2)
    assert (RowsUnderNull(some).chance[:, 2] == 0.0).all()
    plain = sampled(some.probs, some.codes, np.ones(some.n_samples), classes=[0, 1, 2])
    assert (RowsUnderNull(plain).chance[:, 2] > 0.0).all()


def test_one_label_alone_tells_nothing_where_weights_hang_on_labels():
    # errors weigh 1, hits weigh 20, and all labels are 0: what a label 1 would weigh is not known
    probs = np.random.default_rng(0).dirichlet([1, 1], 40)
    weight = np.where(probs[:, 0] > 0.5, 20.0, 1.0)
    for options in ({}, {"groups": np.arange(40) // 2}):
        test = robust_test(
            sampled(probs, np.zeros(40, dtype=int), weight, **options), seed=0
        )
        assert test.obstacle.startswith("all rows have one label")
        assert test.inconclusive(0.5) == test.obstacle
    same = robust_test(sampled(probs, np.zeros(40, dtype=int), np.ones(40)), seed=0)
    assert (same.obstacle, same.rejects(0.05)) == ("", True)


# --- groups


def bursts(rng, n_groups=20, size=20):
    """Return rare events of which groups have all that they can have, or none."""
    probs = np.column_stack([event := np.full(n_groups * size, 0.05), 1.0 - event])
    groups = np.repeat(np.arange(n_groups), size)
    y = (rng.random(n_groups)[groups] > 0.05).astype(int)
    return Predictions.from_arrays(probs, y, groups=groups, classes=[0, 1])


def test_the_skew_of_rare_events_by_hand():
    # one event of chance p a group: variance p (1 - p), third moment p (1 - p) (1 - 2 p); of G
    # groups the skewness is (1 - 2 p) / sqrt(G p (1 - p))
    p = bursts(np.random.default_rng(0))
    rows = RowsUnderNull(p)
    root = np.array([[1.0], [0.0]])  # the shift alone: log odds never vary
    skew = ScoreSkewness(rows, root)
    assert skew.of_group == pytest.approx(0.9 / np.sqrt(0.05 * 0.95))
    assert abs(skew.vector[0]) == pytest.approx(skew.of_group / np.sqrt(20))
    assert skew.is_large
    even = Predictions.from_arrays(
        [[0.5, 0.5]] * 40, [0, 1] * 20, groups=np.arange(40) // 2
    )
    assert not ScoreSkewness(RowsUnderNull(even), root).is_large


def test_no_burst_yet_is_no_evidence():
    # 400 rows at 5 %, the likeliest of a group at about 10 %: when rows of a group hang together
    # none of 20 groups has an event in .9^20 = 12 % of data sets. Independent rows would give
    # .95^400, and of 20 groups that point one way flips give 2^-19.
    rng = np.random.default_rng(1)
    probs = np.column_stack([event := rng.beta(2.0, 38.0, 400), 1.0 - event])
    groups = np.repeat(np.arange(20), 20)
    none = robust_test(
        probs, np.ones(400, dtype=int), groups=groups, classes=[0, 1], seed=0
    )
    assert none.pvalue > 0.05
    assert "skewed" in none.reason
    # twice as many as predicted, spread over the groups as evenly as can be, is evidence
    many = np.ones(400, dtype=int)
    many[::10] = 0
    found = robust_test(probs, many, groups=groups, classes=[0, 1], seed=0)
    assert found.pvalue < 0.05


def test_dependence_that_the_spread_rules_out_does_not_count():
    rng = np.random.default_rng(3)
    probs = np.column_stack([event := rng.beta(2.0, 38.0, 600), 1.0 - event])
    groups = np.repeat(np.arange(30), 20)
    p = Predictions.from_arrays(probs, draw(probs, rng), groups=groups, classes=[0, 1])
    rows, root = RowsUnderNull(p), root_of(p)
    towards = ScoreSkewness(rows, root).vector
    found = dependent_labels_pvalue(rows, root, towards, n_resamples=199, seed=0)
    assert 0.0 < found <= 1.0
    assert found == dependent_labels_pvalue(
        rows, root, towards, n_resamples=199, seed=0
    )
