"""Many fits at once: each must get what `minimize` gives it alone, with either kernel."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import direct_nll, draw, log_odds_of, simplex
from toy import TOY_X, TOY_Y

from mcllo._model.batched import BatchedProblems
from mcllo._model.kernel import LogPartition
from mcllo._model.likelihood import (
    NegativeLogLikelihood,
    RestrictedObjective,
    identity_theta,
    sufficient_statistic,
)
from mcllo._model.newton import minimize

pytestmark = pytest.mark.usefixtures("both_kernels")


def tables(rng, count, n, k):
    """Return log odds (K, B, n) and sufficient statistics of labels drawn from other rows."""
    probs = [simplex(rng, n, k + 1, 1.5) for _ in range(count)]
    odds = np.ascontiguousarray(np.stack([log_odds_of(x) for x in probs], axis=1))
    own = [sufficient_statistic(odds[:, b], draw(x, rng)) for b, x in enumerate(probs)]
    return odds, np.array(own)


def alone(odds, statistic, weight=None, **options):
    """Return where `minimize` ends, of one problem: theta, value, Hessian."""
    objective = RestrictedObjective(
        NegativeLogLikelihood(LogPartition(odds, weight), statistic), **options
    )
    basis = options.get("basis")
    start = np.zeros(len(statistic) if basis is None else basis.shape[1])
    found = minimize(objective, start, tol=1e-16)
    return objective.theta(found.x), found.value, found.derivatives.hessian


@pytest.mark.parametrize(
    ("k", "n", "shape", "penalty"),
    [
        (1, 40, "all", 0.7),
        (4, 130, "all", 0.0),
        (4, 130, "some", 0.7),
        (9, 400, "one", 0.0),
    ],
)
def test_each_problem_is_that_of_minimize(k, n, shape, penalty):
    rng = np.random.default_rng(k)
    odds, s = tables(rng, 5, n, k)
    identity = identity_theta(k)
    basis = {
        "all": None,
        "some": rng.normal(size=(2 * k, 2)),
        "one": identity[:, None],
    }[shape]
    centre = identity + 0.1
    found = BatchedProblems(
        s, identity, basis, penalty, centre, tol=1e-16
    ).minimize_all(odds)
    assert found.converged.all()
    for b in range(5):
        own = np.ascontiguousarray(odds[:, b])
        theta, value, hessian = alone(
            own, s[b], origin=identity, basis=basis, penalty=penalty, centre=centre
        )
        np.testing.assert_allclose(found.theta[b], theta, rtol=1e-9, atol=1e-9)
        assert found.value[b] == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(found.hessian[b], hessian, rtol=1e-7, atol=1e-9)
        away = identity - centre
        start = (
            LogPartition(own)(identity).value
            - identity @ s[b]
            + penalty / 2 * away @ away
        )
        assert found.start[b] == pytest.approx(start, rel=1e-12)


def test_toy():
    # methods specification 0.4, TOY, baseline 2: tau, gamma and lambda
    odds = log_odds_of(TOY_X)
    s = sufficient_statistic(odds, TOY_Y)
    found = BatchedProblems(s[None], identity_theta(2)).minimize_all(odds)
    theta = [0.30894668, -0.31270571, 1.24843257, 1.62795328]
    np.testing.assert_allclose(found.theta[0], theta, atol=1e-7)
    assert 2.0 * (found.start - found.value)[0] == pytest.approx(1.1462114203, abs=1e-9)


def test_the_last_step_is_counted_in_the_value():
    odds, s = tables(np.random.default_rng(4), 20, 130, 4)
    early, late = (
        BatchedProblems(s, identity_theta(4), tol=tol).minimize_all(odds)
        for tol in (1e-2, 1e-16)
    )
    assert (
        np.abs(early.value - late.value).max() < 1e-4
    )  # the square of the tolerance, about


@pytest.mark.parametrize(("own_weights", "own_origins"), [(False, True), (True, False)])
def test_what_is_shared_may_be_ones_own(own_weights, own_origins):
    rng = np.random.default_rng(3)
    probs = simplex(rng, 90, 4, 1.0)
    odds, labels = log_odds_of(probs), np.array([draw(probs, rng) for _ in range(6)])
    weight = rng.integers(0, 3, size=(6, 90)).astype(float)
    weight = weight if own_weights else weight[0]
    each = weight if own_weights else [weight] * 6
    pairs = zip(labels, each, strict=True)
    s = np.array([sufficient_statistic(odds, codes, w) for codes, w in pairs])
    origin = identity_theta(3) + (0.2 * rng.normal(size=(6, 6)) if own_origins else 0.0)
    found = BatchedProblems(s, origin).minimize_all(odds, weight)
    for b in range(6):
        theta, value, _ = alone(odds, s[b], each[b], origin=identity_theta(3))
        np.testing.assert_allclose(found.theta[b], theta, rtol=1e-6, atol=1e-6)
        assert found.value[b] == pytest.approx(value, abs=1e-8)
        same = direct_nll(
            found.theta[b],
            np.repeat(odds, each[b].astype(int), axis=1),
            np.repeat(labels[b], each[b].astype(int)),
        )
        assert found.value[b] == pytest.approx(same, rel=1e-9)


def test_a_search_ends_once_it_reached_enough():
    rng = np.random.default_rng(5)
    odds, s = tables(rng, 4, 100, 3)
    whole = BatchedProblems(s, identity_theta(3)).minimize_all(odds)
    gain = whole.start - whole.value
    reach = whole.start - np.array([0.5, 0.999, 1.5, -1.0]) * gain
    early = BatchedProblems(s, identity_theta(3), f_target=reach).minimize_all(odds)
    assert early.converged.tolist() == [False, False, True, False]
    assert (early.value[[0, 1]] <= reach[[0, 1]]).all()
    assert early.value[2] == whole.value[2]
    assert early.value[3] == whole.start[3]  # at the start it was enough


def test_nothing_to_do_is_done():
    odds = log_odds_of(TOY_X)
    found = BatchedProblems(np.empty((0, 4)), identity_theta(2)).minimize_all(odds)
    assert found.theta.shape == (0, 4)
    expected = LogPartition(odds)(identity_theta(2)).gradient
    found = BatchedProblems(expected[None], identity_theta(2)).minimize_all(odds)
    np.testing.assert_allclose(found.theta[0], identity_theta(2), atol=1e-14)
    assert found.converged[0]


def test_running_out_of_steps_is_not_called_converged():
    odds, s = tables(np.random.default_rng(6), 3, 100, 3)
    found = BatchedProblems(s, identity_theta(3), max_iter=1).minimize_all(odds)
    assert not found.converged.any()
    assert (found.value <= found.start).all()


@settings(deadline=None, max_examples=25)
@given(
    st.integers(0, 2**32 - 1), st.integers(1, 4), st.sampled_from([1.0, 30.0, 700.0])
)
def test_separated_and_saturated_rows_end_somewhere_finite(seed, k, far):
    rng = np.random.default_rng(seed)
    odds = far * rng.normal(size=(k, 20))
    right = np.vstack([odds, np.zeros(20)]).argmax(axis=0)
    labels = [right, rng.integers(0, k + 1, size=20), np.full(20, k)]
    s = np.array([sufficient_statistic(odds, codes) for codes in labels])
    found = BatchedProblems(s, identity_theta(k)).minimize_all(odds)
    assert np.isfinite(found.theta).all()
    assert (found.value <= found.start + 1e-9 * (1.0 + np.abs(found.start))).all()
    # labels that are all right have the likelihood 1
    assert found.value[0] == pytest.approx(0.0, abs=1e-6)
