import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo import _scores_by_row as module
from mcllo._model import identity_theta
from mcllo._scores_by_row import group_scores, row_sums, score_sums, unit_scores
from mcllo.exceptions import InputError

GROUPS = np.arange(16) // 3
WEIGHT = np.array([1, 2, 3, 1, 1, 2, 4, 1, 2, 1, 1, 3, 1, 2, 1, 2])
THETA = np.array([0.2, -0.3, 0.8, 1.5])


def loop_scores(probs, y, theta):
    """Scores row by row, the baseline last, in plain Python loops."""
    scores = []
    for row, label in zip(probs, y, strict=True):
        k = len(row) - 1
        odds = [np.log(row[j] / row[k]) for j in range(k)]
        eta = [theta[j] + theta[k + j] * odds[j] for j in range(k)]
        total = 1.0 + sum(np.exp(e) for e in eta)
        residual = [(label == j) - np.exp(eta[j]) / total for j in range(k)]
        scores.append(residual + [r * o for r, o in zip(residual, odds, strict=True)])
    return np.array(scores)


def test_scores_sum_to_the_score_of_the_specification():
    # methods.md 0.4: minus the gradient at theta0, TOY
    total = score_sums(Predictions.from_arrays(TOY_X, TOY_Y), identity_theta(2)).total
    assert total == pytest.approx([0.8, -0.8, 0.77466884, 0.89888965], abs=1e-8)


def test_two_rows_by_hand():
    # (.5, .5) with label 0: residual .5, log odds 0; (.8, .2) with label 1: -.8, log 4
    p = Predictions.from_arrays([[0.5, 0.5], [0.8, 0.2]], [0, 1])
    sums = score_sums(p, identity_theta(1))
    odds = np.log(4)
    assert sums.gram == pytest.approx(
        np.array([[0.25 + 0.64, 0.64 * odds], [0.64 * odds, 0.64 * odds**2]])
    )
    assert sums.n_units == 2
    # two units: the centred covariance is (a - b)(a - b)' with factor 2 / 1 * 1 / 2
    away = np.array([0.5 + 0.8, 0.8 * odds])
    assert sums.covariance == pytest.approx(np.outer(away, away))


@pytest.mark.parametrize("baseline", [0, 1, 2])
def test_plain_loops_agree_for_any_baseline(baseline):
    p = Predictions.from_arrays(TOY_X, TOY_Y, baseline=baseline, groups=GROUPS)
    order = [j for j in range(3) if j != baseline] + [baseline]
    rows = loop_scores(TOY_X[:, order], [order.index(label) for label in TOY_Y], THETA)
    by_group = np.array([rows[g == GROUPS].sum(axis=0) for g in range(6)])
    assert group_scores(p, THETA) == pytest.approx(by_group)
    assert score_sums(p, THETA).gram == pytest.approx(by_group.T @ by_group)
    assert row_sums(p, THETA).gram == pytest.approx(rows.T @ rows)
    assert unit_scores(p, THETA) == pytest.approx(by_group)


@pytest.mark.parametrize(("kind", "power"), [("frequency", 1), ("survey", 2)])
def test_what_weights_mean_for_the_gram_matrix(kind, power):
    rows = loop_scores(TOY_X, TOY_Y, THETA)
    p = Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=WEIGHT, weight_kind=kind)
    sums = score_sums(p, THETA)
    assert sums.total == pytest.approx(WEIGHT @ rows)
    assert sums.gram == pytest.approx((rows.T * WEIGHT**power) @ rows)
    assert sums.n_units == (28 if kind == "frequency" else 16)
    units = unit_scores(p, THETA)
    assert units.T @ units == pytest.approx(sums.gram)
    assert len(units) == sums.n_units


def test_in_groups_both_kinds_of_weight_give_the_same_sums():
    both = [
        score_sums(
            Predictions.from_arrays(
                TOY_X, TOY_Y, groups=GROUPS, sample_weight=WEIGHT, weight_kind=kind
            ),
            THETA,
        ).gram
        for kind in ("frequency", "survey")
    ]
    assert both[0] == pytest.approx(both[1])


def test_rows_of_weight_0_are_no_rows_and_their_groups_no_groups():
    weight = np.where(GROUPS == 5, 0.0, WEIGHT)
    p = Predictions.from_arrays(TOY_X, TOY_Y, groups=GROUPS, sample_weight=weight)
    assert score_sums(p, THETA).n_units == 5
    survey = Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=weight, weight_kind="survey")
    assert score_sums(survey, THETA).n_units == len(unit_scores(survey, THETA)) == 15


def test_chunks_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    x, y = rng.dirichlet([1, 1, 1], 2000), rng.integers(0, 3, 2000)
    p = Predictions.from_arrays(x, y, groups=rng.integers(0, 7, 2000))
    whole = group_scores(p, THETA), row_sums(p, THETA).gram
    monkeypatch.setattr(module, "CHUNK_ELEMENTS", 600)
    assert group_scores(p, THETA) == pytest.approx(whole[0])
    assert row_sums(p, THETA).gram == pytest.approx(whole[1])


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10_000))
def test_order_of_rows_and_names_of_groups_change_nothing(seed):
    rng = np.random.default_rng(seed)
    order, names = rng.permutation(16), rng.permutation(6)
    p = Predictions.from_arrays(TOY_X, TOY_Y, groups=GROUPS)
    q = Predictions.from_arrays(TOY_X[order], TOY_Y[order], groups=names[GROUPS[order]])
    assert score_sums(q, THETA).gram == pytest.approx(score_sums(p, THETA).gram)


def test_groups_left_over_by_take_may_have_gaps():
    p = Predictions.from_arrays(TOY_X, TOY_Y, groups=GROUPS)
    part = p.take(np.flatnonzero((GROUPS == 1) | (GROUPS == 4)))
    assert group_scores(part, THETA) == pytest.approx(group_scores(p, THETA)[[1, 4]])


def test_one_group_is_refused():
    p = Predictions.from_arrays(TOY_X, TOY_Y, groups=GROUPS).take([0, 1, 2])
    with pytest.raises(InputError, match="at least two groups"):
        score_sums(p, THETA)


def test_weights_that_count_no_two_rows_are_refused():
    p = Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=np.full(16, 1 / 16))
    with pytest.raises(InputError, match="pass weight_kind='survey'"):
        score_sums(p, THETA)
