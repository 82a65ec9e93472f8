import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import designs, direct_nll, draw, log_odds_of, simplex

from mcllo._model import Likelihood, LogPartition, identity_theta, sufficient_statistic
from mcllo._newton import minimize
from mcllo._peel import peel
from mcllo._separation import separating_direction


def solution(odds, codes, weight=None):
    """Where the dense solver stops, drifting or not."""
    likelihood = Likelihood(LogPartition(odds, weight), sufficient_statistic(odds, codes, weight))
    return minimize(likelihood, identity_theta(len(odds)))


def what_is_left(found, odds, codes, weight=None):
    """Log odds, codes and weights without the classes and rows that left."""
    number = np.append(np.cumsum(found.classes) - 1, found.classes.sum())
    own = None if weight is None else weight[found.rows]
    return odds[np.ix_(found.classes, found.rows)], number[codes[found.rows]], own


def test_nothing_leaves_where_the_classes_overlap():
    odds = np.array([[0.0, 1.0, 2.0, 3.0]])
    found = peel(odds, np.array([0, 1, 0, 1]))
    assert not found
    assert found.rows.all()
    np.testing.assert_array_equal(
        found.theta(np.array([0.5, 2.0]), odds, np.zeros(4), 4.0), [0.5, 2]
    )


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


def test_a_class_that_touches_another_stays():
    assert not peel(np.array([[2.0, -1.0, 3.0, 2.0]]), np.array([0, 1, 0, 1]))


def test_classes_leave_in_turn():
    # class 1 is told apart (5 > 4) only once the row of class 0, with its 6, is gone
    odds = np.array([[9.0, 1.0, 0.0, 2.0], [6.0, 5.0, 4.0, 3.0]])
    codes = np.array([0, 1, 2, 2])
    found = peel(odds, codes)
    assert [gone.tolist() for gone in found.rounds] == [[0], [1]]
    theta = found.theta(identity_theta(2), odds, codes, 4.0)
    assert direct_nll(theta, odds, codes) == pytest.approx(0.0, abs=2e-10)


def test_rows_of_weight_0_do_not_count():
    odds, codes = np.array([[2.0, 1.0, 3.0, 1.5]]), np.array([0, 1, 1, 0])
    assert not peel(odds, codes)
    found = peel(odds, codes, np.array([1.0, 1.0, 0.0, 2.0]))
    assert found.rounds[0].tolist() == [0]
    np.testing.assert_array_equal(found.rows, [False, True, False, False])


def test_all_rows_of_one_class():
    odds, codes = np.array([[1.0, 2.0], [0.0, 3.0]]), np.array([1, 1])
    found = peel(odds, codes)
    assert found.absent.tolist() == [0]
    theta = found.theta(identity_theta(2), odds, codes, 2.0)
    assert direct_nll(theta, odds, codes) == pytest.approx(0.0, abs=2e-10)


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
