import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy import TOY_X, TOY_Y

from mcllo.calibrators._evidential import (
    Belief,
    belief,
    cumulate,
    extremes,
    run_belief,
    soft_max,
)
from mcllo.calibrators._scalar_softmax import (
    PlausibleSets,
    ScalarLikelihood,
    quadrature,
    scalar_sets,
)

ORDERS = ("score", "index", "envelope")


def toy_sets(scores):
    return scalar_sets(ScalarLikelihood(scores.T.copy(), scores[np.arange(16), TOY_Y]))


LOG_SETS = toy_sets(np.log(TOY_X))


@pytest.mark.parametrize("order", ORDERS)
def test_a_known_theta_leaves_nothing_open(order):
    point = np.full(64, 1.3)
    scores = np.log(TOY_X)
    found = belief(scores, PlausibleSets(1.3, point, point), order)
    expected = soft_max(scores.T, 1.3).T
    for numbers in (found.bel, found.pl, found.betp):
        np.testing.assert_allclose(numbers, expected, atol=1e-12)


def test_hand_sized_runs():
    # F_1 lies in [.3, .6]: z <= .3 gives {1}, .3 < z <= .6 gives {1, 2}, z > .6 gives {2}.
    upper, lower = np.array([0.0, 0.6, 1.0]), np.array([0.0, 0.3, 1.0])
    bel, pl, betp = run_belief(upper[:, None, None], lower[:, None, None], np.ones(1))[:, :, 0]
    np.testing.assert_allclose(bel, [0.3, 0.4])
    np.testing.assert_allclose(pl, [0.6, 0.7])
    np.testing.assert_allclose(betp, [0.45, 0.55])


def test_hand_sized_runs_of_three():
    # F_1 in [.1, .5], F_2 in [.4, .8]. Up to .1 {1}, to .4 {1, 2}, to .5 {1, 2, 3}, to .8 {2, 3},
    # then {3}: lengths .1, .3, .1, .3, .2.
    upper, lower = np.array([0.0, 0.5, 0.8, 1.0]), np.array([0.0, 0.1, 0.4, 1.0])
    bel, pl, betp = run_belief(upper[:, None, None], lower[:, None, None], np.ones(1))[:, :, 0]
    np.testing.assert_allclose(bel, [0.1, 0.0, 0.2])
    np.testing.assert_allclose(pl, [0.5, 0.7, 0.6])
    np.testing.assert_allclose(betp, [0.1 + 0.15 + 0.1 / 3, 0.15 + 0.1 / 3 + 0.15, 0.1 / 3 + 0.35])


def test_runs_against_cutting_at_all_breakpoints():
    rng = np.random.default_rng(0)
    c = 6
    both = np.sort(rng.dirichlet(np.full(c, 0.4), size=2).cumsum(axis=1), axis=0)
    lower, upper = np.hstack([np.zeros((2, 1)), both])
    expected = np.zeros((3, c))
    cuts = np.unique(np.concatenate([lower, upper]))
    for left, right in itertools.pairwise(cuts):
        z = 0.5 * (left + right)
        members = [k for k in range(c) if lower[k] < z <= upper[k + 1]]
        expected[0, members] += (right - left) * (len(members) == 1)
        expected[1, members] += right - left
        expected[2, members] += (right - left) / len(members)
    found = run_belief(upper[:, None, None], lower[:, None, None], np.ones(1))[:, :, 0]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("cumulative", [False, True])
def test_extremes_against_a_fine_grid(cumulative):
    scores = np.log(np.random.default_rng(5).dirichlet(np.ones(5), size=20)).T
    low, high = extremes(scores, LOG_SETS, cumulative=cumulative)
    for q in (0, 20, 40, 63):
        theta = np.linspace(LOG_SETS.low[q], LOG_SETS.high[q], 4001)
        p = soft_max(scores[:, None, :], theta[:, None])
        curve = cumulate(p)[1:] if cumulative else p
        np.testing.assert_allclose(low[:, q], curve.min(axis=1), atol=1e-6)
        np.testing.assert_allclose(high[:, q], curve.max(axis=1), atol=1e-6)
        assert (low[:, q] <= curve.min(axis=1) + 1e-12).all()
        assert (high[:, q] >= curve.max(axis=1) - 1e-12).all()


def test_index_order_equals_score_order_where_scores_ascend():
    rows = np.log(np.sort(TOY_X + np.array([0.0, 1e-3, 2e-3]), axis=1))
    by_score, by_index = belief(rows, LOG_SETS, "score"), belief(rows, LOG_SETS, "index")
    for name in ("bel", "pl", "betp"):
        np.testing.assert_allclose(getattr(by_score, name), getattr(by_index, name), atol=1e-12)


def test_against_sampling_levels_and_z():
    # methods.md 1.7, Monte-Carlo check: rng = default_rng(1), row (.4, .35, .25), log x.
    rng = np.random.default_rng(1)
    s, z = rng.random(20_000), rng.random(20_000)
    radius = np.sqrt(-2.0 * np.log(s))
    nodes = np.sqrt(-2.0 * np.log(np.append(1.0, quadrature()[0])))
    low = np.interp(radius, nodes, np.append(LOG_SETS.theta, LOG_SETS.low))
    high = np.interp(radius, nodes, np.append(LOG_SETS.theta, LOG_SETS.high))
    ascending = np.log([[0.25], [0.35], [0.40]])
    upper, lower = (cumulate(soft_max(ascending, end)) for end in (low, high))
    member = (lower[:-1] < z) & (z <= upper[1:])
    pl, bel = member.mean(axis=1)[::-1], (member & (member.sum(axis=0) == 1)).mean(axis=1)[::-1]
    np.testing.assert_allclose(pl, [0.472, 0.447, 0.261], atol=1e-3)
    np.testing.assert_allclose(bel, [0.385, 0.267, 0.168], atol=1e-3)
    found = belief(np.log([[0.4, 0.35, 0.25]]), LOG_SETS, "score")
    np.testing.assert_allclose(found.pl[0], pl, atol=0.01)
    np.testing.assert_allclose(found.bel[0], bel, atol=0.01)


def test_toy_envelope():
    # methods.md 1.7: x = (.7, .2, .1), log x, no smoothing.
    found = belief(np.log([[0.7, 0.2, 0.1]]), LOG_SETS, "envelope")
    np.testing.assert_allclose(found.pl[0], [0.91384, 0.23174, 0.14092], atol=1e-5)
    np.testing.assert_allclose(found.bel[0], [0.62734, 0.06825, 0.01791], atol=1e-5)


def test_tied_classes_share():
    rows = np.log([[0.4, 0.4, 0.2], [0.2, 0.6, 0.2], [1 / 3, 1 / 3, 1 / 3]])
    found = belief(rows, LOG_SETS, "score")
    for numbers in (found.bel, found.pl, found.betp):
        assert numbers[0, 0] == numbers[0, 1]
        assert numbers[1, 0] == numbers[1, 2]
        assert len(set(numbers[2])) == 1
    np.testing.assert_allclose(found.betp[2], 1 / 3)


def test_rows_do_not_depend_on_their_neighbours():
    rows = np.log(np.random.default_rng(2).dirichlet(np.ones(3), size=1000))
    whole, alone = belief(rows, LOG_SETS, "score"), belief(rows[777:778], LOG_SETS, "score")
    np.testing.assert_allclose(whole.betp[777], alone.betp[0], atol=1e-15)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.sampled_from(ORDERS))
def test_lower_and_upper_enclose_the_probability(seed, c, order):
    rng = np.random.default_rng(seed)
    theta = rng.normal(1.0, 1.0)
    reach = np.sort(rng.exponential(0.2, size=(2, 64)), axis=1)
    sets = PlausibleSets(theta, theta - reach[0], theta + reach[1])
    scores = np.log(np.maximum(rng.dirichlet(np.full(c, 0.5), size=6), 1e-6))
    found = belief(scores, sets, order)
    assert (found.bel >= 0.0).all()
    assert (found.bel <= found.betp + 1e-12).all()
    assert (found.betp <= found.pl + 1e-12).all()
    assert (found.pl <= 1.0 + 1e-12).all()
    np.testing.assert_allclose(found.betp.sum(axis=1), 1.0)
    assert (found.bel.sum(axis=1) <= 1.0 + 1e-12).all()
    assert (found.pl.sum(axis=1) >= 1.0 - 1e-12).all()
    plug_in = soft_max(scores.T, theta).T
    assert (plug_in <= found.pl + 1e-12).all()
    if order != "index":
        mixed = rng.permutation(c)
        moved = belief(scores[:, mixed], sets, order)
        np.testing.assert_allclose(moved.betp, found.betp[:, mixed], atol=1e-12)
    if c == 2:
        np.testing.assert_allclose(found.betp, (found.bel + found.pl) / 2, atol=1e-12)
        np.testing.assert_allclose(found.bel[:, 0], 1.0 - found.pl[:, 1], atol=1e-12)


def test_belief_is_frozen_and_plain():
    found = belief(np.log(TOY_X), LOG_SETS, "score")
    assert set(found.to_dict()) == {"bel", "pl", "betp"}
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.bel = found.pl
    assert isinstance(found, Belief)
