import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcllo.calibrators import _auto_folds
from mcllo.calibrators._auto_folds import N_FOLDS, assign_folds


def scores_of(n, c=3, seed=0):
    return np.log(np.random.default_rng(seed).dirichlet(np.ones(c), size=n)).T


def by_row(folds, n):
    """The weight of each row in each fold, shape (n, folds)."""
    return np.column_stack([folds.left_out(k, n) for k in range(folds.n_folds)])


def test_hand_sized_example():
    # Two classes, gaps z - max: rows have sums -3, 0, -1, -2, so their order is 0, 3, 2, 1 and with
    # four rows there are four folds.
    scores = np.array([[0.0, 5.0, 2.0, 1.0], [-3.0, 5.0, 3.0, 3.0]])
    folds = assign_folds(scores)
    assert folds.n_folds == 4
    assert folds.rows.tolist() == [0, 3, 2, 1]
    assert folds.folds.tolist() == [0, 1, 2, 3]


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
    np.testing.assert_array_equal(by_row(assign_folds(scores[:, order]), 103), parts[order])
    np.testing.assert_array_equal(by_row(assign_folds(scores[[2, 0, 3, 1]]), 103), parts)
    np.testing.assert_array_equal(by_row(assign_folds(scores + 7.0), 103), parts)
    assert np.ptp(parts.sum(axis=0)) <= 1.0


def test_weights_that_are_no_counts_stay_whole():
    weight = np.linspace(0.0, 3.3, 12)
    parts = by_row(assign_folds(scores_of(12), weight), 12)
    assert (np.count_nonzero(parts, axis=1) == (weight > 0.0)).all()
    np.testing.assert_allclose(parts.sum(axis=1), weight)


def test_groups_stay_together():
    groups = np.random.default_rng(0).integers(0, 8, size=60)
    parts = by_row(assign_folds(scores_of(60), None, groups), 60)
    assert parts.shape[1] == N_FOLDS
    for group in range(8):
        assert len(np.unique(parts[groups == group].argmax(axis=1))) == 1


@pytest.mark.parametrize(("n", "expected"), [(1, 0), (2, 2), (4, 4), (5, 5), (50, 5)])
def test_fewer_rows_than_folds(n, expected):
    assert assign_folds(scores_of(n)).n_folds == expected


def test_one_group_leaves_nothing_out():
    assert assign_folds(scores_of(9), None, np.zeros(9, dtype=int)).n_folds == 0


@pytest.mark.parametrize(("enough", "expected"), [(10_000, 5), (101, 4), (60, 3), (1, 1)])
def test_enough_rows_are_left_out(monkeypatch, enough, expected):
    # 126 rows, folds of 26, 25, 25, 25, 25: cumulated 26, 51, 76, 101, 126.
    monkeypatch.setattr(_auto_folds, "ENOUGH", enough)
    folds = assign_folds(scores_of(126)).enough()
    assert folds.n_folds == expected
    assert folds.folds.max() == expected - 1
    assert folds.weight.sum() == [26, 51, 76, 101, 126][expected - 1]


def test_rows_of_one_fold_judge_by_halves(monkeypatch):
    # 12 rows in order 11, 10, ..., 0: fold 0 holds places 0, 5 and 10, that is rows 11, 6 and 1.
    monkeypatch.setattr(_auto_folds, "ENOUGH", 1)
    scores = np.vstack([np.zeros(12), -np.arange(12.0)])
    folds = assign_folds(scores).enough()
    assert folds.rows.tolist() == [11, 6, 1]
    assert folds.judges().tolist() == [0, 1, 0]
    grouped = assign_folds(scores, None, np.repeat([0, 1], 6)).enough()
    assert len(np.unique(grouped.judges())) == 1  # two groups, two folds, one group in each
    monkeypatch.setattr(_auto_folds, "ENOUGH", 10_000)
    np.testing.assert_array_equal(assign_folds(scores).judges(), assign_folds(scores).folds)


def test_gaps_without_bound_are_ordered():
    scores = np.array([[0.0, 0.0, 0.0], [-1e300, -2.0, -1.0]])
    assert assign_folds(scores).rows.tolist() == [0, 1, 2]
