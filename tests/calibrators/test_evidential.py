import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import expit, logsumexp
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._fit.fit import fit_predictions
from mcllo._model.kernel import Derivatives, LogPartition
from mcllo._model.likelihood import NegativeLogLikelihood, sufficient_statistic
from mcllo._model.newton import minimize
from mcllo.calibrators._xu_davoine import (
    PlausibleSets,
    ScalarLikelihood,
    belief,
    cumulate,
    extremes,
    plausible_sets,
    quadrature,
    run_belief,
    scalar_sets,
    soft_max,
)

ORDERS = ("score", "index", "envelope")


def toy_likelihood(score, *, smooth):
    s = TOY_X if score == "prob" else np.log(TOY_X)
    own = s[np.arange(16), TOY_Y]
    if smooth:  # t_k = (n_k + 1) / (n_k + c), t_j = 1 / (n_k + c)
        n = np.array([6, 5, 5])[TOY_Y]
        own = (n * own + s.sum(axis=1)) / (n + 3)
    return ScalarLikelihood(s.T.copy(), own)


LOG_SETS = scalar_sets(toy_likelihood("log", smooth=False))


def test_a_known_theta_leaves_nothing_open():
    point = np.full(64, 1.3)
    scores = np.log(TOY_X)
    expected = soft_max(scores.T, 1.3).T
    for order in ORDERS:
        found = belief(scores, PlausibleSets(1.3, point, point), order)
        for numbers in (found.bel, found.pl, found.betp):
            np.testing.assert_allclose(numbers, expected, atol=1e-12, err_msg=order)


HAND_SIZED = [
    # F_1 lies in [.3, .6]: z <= .3 gives {1}, .3 < z <= .6 gives {1, 2}, z > .6 gives {2}.
    ([0.6], [0.3], [0.3, 0.4], [0.6, 0.7], [0.45, 0.55]),
    # F_1 in [.1, .5], F_2 in [.4, .8]. Up to .1 {1}, to .4 {1, 2}, to .5 {1, 2, 3}, to .8
    # {2, 3}, then {3}: lengths .1, .3, .1, .3, .2.
    (
        [0.5, 0.8],
        [0.1, 0.4],
        [0.1, 0.0, 0.2],
        [0.5, 0.7, 0.6],
        [0.1 + 0.15 + 0.1 / 3, 0.15 + 0.1 / 3 + 0.15, 0.1 / 3 + 0.35],
    ),
]


def test_hand_sized_runs():
    for upper, lower, *expected in HAND_SIZED:
        ends = (np.array([0.0, *end, 1.0])[:, None, None] for end in (upper, lower))
        found = run_belief(*ends, np.ones(1))[:, :, 0]
        np.testing.assert_allclose(found, expected, atol=1e-15)


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
    scores = np.log(np.random.default_rng(5).dirichlet(np.ones(5), size=8)).T
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
    by_score, by_index = (
        belief(rows, LOG_SETS, "score"),
        belief(rows, LOG_SETS, "index"),
    )
    for name in ("bel", "pl", "betp"):
        np.testing.assert_allclose(
            getattr(by_score, name), getattr(by_index, name), atol=1e-12
        )


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
    pl, bel = (
        member.mean(axis=1)[::-1],
        (member & (member.sum(axis=0) == 1)).mean(axis=1)[::-1],
    )
    np.testing.assert_allclose(pl, [0.472, 0.447, 0.261], atol=1e-3)
    np.testing.assert_allclose(bel, [0.385, 0.267, 0.168], atol=1e-3)
    found = belief(np.log([[0.4, 0.35, 0.25]]), LOG_SETS, "score")
    np.testing.assert_allclose(found.pl[0], pl, atol=0.01)
    np.testing.assert_allclose(found.bel[0], bel, atol=0.01)


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
    whole, alone = (
        belief(rows, LOG_SETS, "score"),
        belief(rows[777:778], LOG_SETS, "score"),
    )
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


QUERY = np.array([0.4, 0.35, 0.25])


class Quadratic:
    """-l of a normal likelihood."""

    def __init__(self, centre, se):
        self.centre, self.se = centre, se

    def __call__(self, theta):
        z = (theta - self.centre) / self.se
        return Derivatives(0.5 * float(z @ z), z / self.se, np.array([[self.se**-2.0]]))


class PlattProfile:
    """-l of ``eta = a + b q`` at a query q in Platt's model ``sigma(a + b s)``, best over b."""

    def __init__(self, s, target, query):
        self.distance, self.target = s - query, target

    def __call__(self, eta):
        d, t = self.distance, self.target

        def full(b):
            z = eta[0] + b[0] * d
            p = expit(z)
            value = np.logaddexp(0.0, z).sum() - t @ z
            return Derivatives(
                value, np.array([(p - t) @ d]), np.array([[(p * (1 - p)) @ d**2]])
            )

        b = minimize(full, np.zeros(1), tol=1e-14).x
        p = expit(eta[0] + b[0] * d)
        w = p * (1.0 - p)
        curvature = w.sum() - (w @ d) ** 2 / (w @ d**2)
        return Derivatives(
            full(b).value, np.array([(p - t).sum()]), np.array([[curvature]])
        )


class ClassProfile:
    """-l of the logit of one class's probability at QUERY in the MCLLO model on TOY.

    ``min NLL(theta)`` subject to ``logit p_k(theta) = level``, by Newton on the Lagrange equations.
    """

    def __init__(self, k):
        predictions = Predictions.from_arrays(TOY_X, TOY_Y)
        odds = predictions.log_odds
        self.nll = NegativeLogLikelihood(
            LogPartition(odds), sufficient_statistic(odds, TOY_Y)
        )
        self.k, self.odds = k, np.log(QUERY[:2] / QUERY[2])
        fit = fit_predictions(predictions)
        self.theta, self.multiplier = np.concatenate([fit.tau, fit.gamma]), 0.0
        level, slope, _ = self.logit(self.theta)
        self.centre, self.se = level, np.sqrt(slope @ fit.cov_theta @ slope)

    def logit(self, theta):
        """Return ``logit p_k``, its gradient and its Hessian in theta."""
        others = [j for j in range(3) if j != self.k]
        design = np.zeros((3, 4))  # eta = design @ theta
        design[:2] = np.hstack([np.eye(2), np.diag(self.odds)])
        eta = design @ theta
        share = np.exp(eta[others] - logsumexp(eta[others]))
        mean = share @ design[others]
        spread = (design[others].T * share) @ design[others] - np.outer(mean, mean)
        value = eta[self.k] - logsumexp(eta[others])
        return value, design[self.k] - mean, -spread

    def __call__(self, level):
        for _ in range(100):
            terms = self.nll(self.theta)
            value, slope, bend = self.logit(self.theta)
            jacobian = np.zeros((5, 5))
            jacobian[:4, :4] = terms.hessian - self.multiplier * bend
            jacobian[:4, 4], jacobian[4, :4] = -slope, slope
            gap = np.append(terms.gradient - self.multiplier * slope, value - level[0])
            step = np.linalg.solve(jacobian, -gap)
            shrink = min(1.0, 1.0 / np.abs(step[:4]).max())
            self.theta = self.theta + shrink * step[:4]
            self.multiplier += shrink * step[4]
            if np.abs(gap).max() < 1e-10:
                break
        curvature = np.array([[self.se**-2.0]])
        return Derivatives(
            self.nll(self.theta).value, np.array([self.multiplier]), curvature
        )


def bounds(sets):
    """Return lower and upper probability from sets of a logit."""
    weight = quadrature()[1]
    return weight @ expit(sets.low), weight @ expit(sets.high)


def test_quadrature_is_exact_for_polynomials_and_roots():
    u, w = quadrature()
    assert (np.diff(u) < 0.0).all()
    for power in (0.0, 0.5, 1.0, 7.0):  # integral of u^power over (0, 1)
        np.testing.assert_allclose(w @ u**power, 1.0 / (power + 1.0), rtol=1e-12)


def test_a_normal_likelihood_has_its_intervals():
    # l falls by log u at r = sqrt(-2 log u) standard errors.
    sets = plausible_sets(Quadratic(0.7, 0.2), np.exp([-0.5, -2.0, -4.5]))
    np.testing.assert_allclose(sets.theta, 0.7)
    np.testing.assert_allclose(sets.high, [0.9, 1.1, 1.3])
    np.testing.assert_allclose(sets.low, [0.5, 0.3, 0.1])


def test_hand_sized_likelihood():
    # Two classes, s = (0, 1), three hits of class 1 and one miss: p = 3/4, theta = log 3.
    scores, target = np.tile([[0.0], [1.0]], 4), np.array([1.0, 1.0, 1.0, 0.0])
    likelihood = ScalarLikelihood(scores, target)
    np.testing.assert_allclose(likelihood(np.zeros(1)).value, 4 * np.log(2.0))
    np.testing.assert_allclose(scalar_sets(likelihood).theta, np.log(3.0))


def test_likelihood_against_its_formula():
    s, w = np.log(TOY_X), np.linspace(0.5, 2.0, 16)
    own = s[np.arange(16), TOY_Y]
    likelihood = ScalarLikelihood(s.T.copy(), own, w)
    h = 1e-5
    for theta in (-40.0, -1.3, 0.0, 0.8, 2000.0):
        value = w @ (logsumexp(theta * s, axis=1) - theta * own)
        at = likelihood(np.array([theta]))
        np.testing.assert_allclose(at.value, value, rtol=1e-12)
        ahead, behind = (
            likelihood(np.array([theta + h])),
            likelihood(np.array([theta - h])),
        )
        np.testing.assert_allclose(
            at.gradient, (ahead.value - behind.value) / (2 * h), atol=1e-5
        )
        slope = (ahead.gradient - behind.gradient) / (2 * h)
        np.testing.assert_allclose(at.hessian[0], slope, atol=1e-6)


@pytest.mark.parametrize(("score", "smooth"), [("log", False), ("prob", True)])
def test_ends_against_brent(score, smooth):
    likelihood = toy_likelihood(score, smooth=smooth)
    sets = scalar_sets(likelihood)
    best = likelihood(np.array([sets.theta])).value
    for u, low, high in list(zip(quadrature()[0], sets.low, sets.high, strict=True))[
        ::7
    ]:

        def excess(theta, u=u):
            return likelihood(np.array([theta])).value - best + np.log(u)

        options = {"xtol": 1e-13, "rtol": 1e-13}
        np.testing.assert_allclose(
            brentq(excess, sets.theta, 60.0, **options), high, atol=1e-9
        )
        np.testing.assert_allclose(
            brentq(excess, -60.0, sets.theta, **options), low, atol=1e-9
        )


@pytest.mark.parametrize(
    ("score", "smooth", "theta", "level", "ends"),
    # methods.md 1.7: theta_hat and Gamma(level).
    [
        ("log", False, 1.38386423, 0.5, (0.819264, 2.087013)),
        ("log", False, 1.38386423, 0.15, (0.498049, 2.648709)),
        ("log", True, 0.74594928, 0.5, (0.300775, 1.241393)),
        ("prob", False, 3.94131185, 0.5, (2.338110, 5.882913)),
        ("prob", True, 2.24546289, 0.5, (0.902833, 3.708713)),
    ],
)
def test_toy(score, smooth, theta, level, ends):
    sets = plausible_sets(toy_likelihood(score, smooth=smooth), np.array([level]))
    np.testing.assert_allclose(sets.theta, theta, atol=1e-7)
    np.testing.assert_allclose([sets.low[0], sets.high[0]], ends, atol=1e-6)


@pytest.mark.parametrize(
    ("smooth", "tau", "bel", "pl", "betp"),
    # methods.md 1.7, binary: Platt's model, query s = 1.
    [
        (False, 0.72522695, 0.442650, 0.911091, 0.676871),
        (True, 0.64000816, 0.373123, 0.853999, 0.613561),
    ],
)
def test_binary_platt_model(smooth, tau, bel, pl, betp):
    s = np.array([-2, -1.5, -1, -0.5, 0.5, 1, 1.5, 2])
    y = np.array([0, 0, 1, 0, 1, 0, 1, 1])
    target = np.where(y == 1, 5 / 6, 1 / 6) if smooth else y.astype(float)
    profile = PlattProfile(s, target, 1.0)
    sets = plausible_sets(profile, quadrature()[0])
    np.testing.assert_allclose(expit(sets.theta), tau, atol=1e-7)
    low, high = bounds(sets)
    np.testing.assert_allclose(
        [low, high, (low + high) / 2], [bel, pl, betp], atol=1e-5
    )
    if not smooth:  # plausibility transform, and pl_x(tau = 0.5)
        np.testing.assert_allclose(high / (1 + high - low), 0.620448, atol=1e-5)
        best = profile(np.array([sets.theta])).value
        np.testing.assert_allclose(
            np.exp(best - profile(np.zeros(1)).value), 0.626736, atol=1e-6
        )


@pytest.mark.parametrize(
    ("k", "plug_in", "se", "exact", "rayleigh"),
    # methods.md 1.7, vector: MCLLO theta on TOY, baseline 2, x = (.4, .35, .25); lower and upper.
    [
        (0, 0.51953, 0.67321, (0.32528, 0.71567), (0.32511, 0.70707)),
        (1, 0.26834, 0.68028, (0.13422, 0.45303), (0.14324, 0.46318)),
        (2, 0.21213, 0.74793, (0.09576, 0.39405), (0.10329, 0.41109)),
    ],
)
def test_vector_model(k, plug_in, se, exact, rayleigh):
    profile = ClassProfile(k)
    np.testing.assert_allclose(expit(profile.centre), plug_in, atol=1e-5)
    np.testing.assert_allclose(profile.se, se, atol=1e-5)
    quadratic = plausible_sets(Quadratic(profile.centre, profile.se), quadrature()[0])
    np.testing.assert_allclose(bounds(quadratic), rayleigh, atol=1e-4)
    sets = plausible_sets(profile, quadrature()[0])
    np.testing.assert_allclose(sets.theta, profile.centre, atol=1e-6)
    np.testing.assert_allclose(bounds(sets), exact, atol=1e-4)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.05, 0.5, 5.0]), st.booleans())
def test_sets_are_nested_and_have_their_level(seed, spread, anti_informative):
    rng = np.random.default_rng(seed)
    x = np.maximum(rng.dirichlet(np.full(4, spread), size=20), 1e-9)
    y = x.argmin(axis=1) if anti_informative else rng.integers(0, 4, 20)
    y[0] = x[0].argmax()
    y[1] = x[1].argmin()
    scores = np.log(x).T.copy()
    likelihood = ScalarLikelihood(scores, scores[y, np.arange(20)])
    sets = scalar_sets(likelihood)
    assert (np.diff(sets.high) > 0.0).all()
    assert (np.diff(sets.low) < 0.0).all()
    best = likelihood(np.array([sets.theta])).value
    for ends in (sets.low, sets.high):
        drop = [likelihood(np.array([theta])).value - best for theta in ends]
        np.testing.assert_allclose(drop, -np.log(quadrature()[0]), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("margin", [1e-3, 1e-9])
def test_nearly_infinite_estimates_are_found(margin):
    x = np.tile([[0.9], [0.1]], 30)
    x[:, 0] = 0.5 + margin, 0.5 - margin
    y = np.zeros(30, dtype=int)
    y[0] = 1  # the one row that is wrong, by a hair
    sets = scalar_sets(ScalarLikelihood(x, x[y, np.arange(30)]))
    assert np.isfinite([sets.low, sets.high]).all()
    assert 0.0 < sets.low[-1] < sets.theta < sets.high[0]
