import json
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from independent import (
    central_differences,
    designs,
    direct_nll,
    draw,
    log_odds_of,
    power_formula,
    sample,
    simplex,
)
from inputs import refusal
from scipy.optimize import brentq
from scipy.stats import chi2
from shared_data import load_cifar10_vgg16_keras, load_hockey
from toy import TOY_X, TOY_Y

from mcllo import Predictions, boldness_recalibrate, calibration_posterior, calibration_test
from mcllo._fit.fit import fit_predictions
from mcllo._inference.boldness import _Search, _Spread, log_likelihood_to_spend
from mcllo.exceptions import InputError


def spread(probs, weight=None):
    """Boldness as defined: sqrt of half the sum of the columns' variances, by np.cov."""
    fweights = None if weight is None else np.asarray(weight, dtype=int)
    return math.sqrt(0.5 * np.trace(np.cov(probs.T, fweights=fweights)))


def on_the_boundary(probs, codes, fit, direction, t=0.95):
    """Return the rows mapped as far from the estimate as the constraint lets this direction go."""
    n, odds = len(codes), log_odds_of(probs)
    best = direct_nll(fit.theta, odds, codes)
    kappa = 0.5 * fit.df * math.log(n) + math.log((1 - t) / t)
    step = np.linalg.cholesky(fit.cov_theta) @ direction

    def excess(s):
        return direct_nll(fit.theta + s * step, odds, codes) - best - kappa

    far = 1.0
    while excess(far) < 0.0:
        far *= 2.0
    theta = fit.theta + brentq(excess, 0.0, far, xtol=1e-10) * step
    return power_formula(probs, np.exp(theta[: len(odds)]), theta[len(odds) :])


def test_nothing_to_spend_leaves_the_estimate():
    # n = 16, d = 4: the posterior of the estimate is 256 / 257; just below it kappa is 3e-10
    found = boldness_recalibrate(TOY_X, TOY_Y, t=256 / 257 - 1e-12)
    fit = fit_predictions(Predictions.from_arrays(TOY_X, TOY_Y))
    np.testing.assert_allclose(found.map.theta, fit.theta, atol=1e-4)
    assert found.boldness == pytest.approx(found.boldness_mle, abs=1e-5)


def test_what_may_be_spent_by_hand():
    # (4 / 2) ln 16 + ln(1/19 * 1/3) = 5.545 - 2.944 - 1.099 with t = .95 and prior .25
    assert log_likelihood_to_spend(4, 16, 0.95, 0.25) == pytest.approx(
        5.5452 - 2.9444 - 1.0986, abs=1e-4
    )


def test_boldness_by_hand():
    # two columns are mirror images: sqrt(1/2 (2 * .02)) = sd of (.2, .4) with n - 1
    value, _ = _Spread(log_odds_of(np.array([[0.2, 0.8], [0.4, 0.6]])), None, 2.0)(np.array([0, 1]))
    assert value == pytest.approx(0.02)


@pytest.mark.parametrize("weight", [None, np.arange(16) % 3])
def test_spread_and_its_gradient(weight):
    total = 16.0 if weight is None else float(weight.sum())
    function = _Spread(log_odds_of(TOY_X), weight, total)
    theta = np.array([0.2, -0.3, 0.8, 1.5])
    value, gradient = function(theta)
    mapped = power_formula(TOY_X, np.exp(theta[:2]), theta[2:])
    assert math.sqrt(value) == pytest.approx(spread(mapped, weight), rel=1e-12)
    slopes = central_differences(lambda x: function(x)[0], theta)
    np.testing.assert_allclose(gradient, slopes, atol=1e-9)


def test_gradients_in_the_coordinates_of_the_search():
    p = Predictions.from_arrays(TOY_X, TOY_Y)
    search = _Search(p, fit_predictions(p), 16.0, 2.0)
    u = np.array([0.3, -0.2, 0.4, 0.1])
    point = search.at(u)
    slopes = central_differences(lambda x: search.at(x).spread, u)
    np.testing.assert_allclose(point.spread_gradient, slopes, rtol=1e-6)
    slopes = central_differences(lambda x: search.at(x).slack, u)
    np.testing.assert_allclose(point.slack_gradient, slopes, rtol=1e-6)


def test_two_classes_against_a_walk_around_the_boundary():
    probs, codes = sample(150, 2, 5, 0.8)
    found = boldness_recalibrate(probs, codes)
    fit = fit_predictions(Predictions.from_arrays(probs, codes))
    angles = np.linspace(0.0, 2.0 * np.pi, 181)
    directions = np.column_stack([np.cos(angles), np.sin(angles)])
    walk = [spread(on_the_boundary(probs, codes, fit, d)) for d in directions]
    assert max(walk) <= found.boldness + 1e-9
    assert found.boldness == pytest.approx(max(walk), rel=4e-4)  # one degree off at most


def test_three_classes_against_random_points_of_the_boundary():
    found = boldness_recalibrate(TOY_X, TOY_Y)
    directions = np.random.default_rng(1).normal(size=(150, 4))
    fit = fit_predictions(Predictions.from_arrays(TOY_X, TOY_Y))
    others = [spread(on_the_boundary(TOY_X, TOY_Y, fit, d)) for d in directions]
    assert max(others) <= found.boldness
    assert max(others) > found.boldness_mle


@pytest.mark.parametrize(("t", "expected"), [(0.95, 0.477833), (0.9, 0.488450)])
def test_toy(t, expected):
    # methods specification 6
    found = boldness_recalibrate(TOY_X, TOY_Y, t=t)
    assert found.boldness == pytest.approx(expected, abs=6e-7)
    assert found.boldness_original == pytest.approx(0.272641, abs=6e-7)
    assert found.boldness_mle == pytest.approx(0.351180, abs=6e-7)
    assert found.posterior_original == pytest.approx(0.99311890, abs=5e-9)
    assert found.converged
    assert found.boldness == pytest.approx(spread(found.map.recalibrate(TOY_X)), rel=1e-12)


@pytest.mark.parametrize(
    ("prior", "t", "delta", "gamma", "expected"),
    [
        (0.25, 0.9, 0.876308, 1.931761, 0.16347517),
        (0.5, 0.95, 0.872923, 1.958580, 0.165339),
        (0.5, 0.9, 0.866218, 2.011966, 0.169010),
    ],
)
def test_hockey(prior, t, delta, gamma, expected):
    # methods specification 6
    found = boldness_recalibrate(load_hockey(), t=t, prior=prior)
    assert found.map.delta[0] == pytest.approx(delta, abs=1e-6)
    assert found.map.gamma[0] == pytest.approx(gamma, abs=1e-6)
    assert found.boldness == pytest.approx(expected, abs=6e-7)


def test_hockey_is_brcals():
    # BRcal's own unit test (brcal, Pmc = .25, t = .9): .1634752, .8763524, 1.9317682
    found = boldness_recalibrate(load_hockey(), t=0.9, prior=0.25)
    assert found.boldness == pytest.approx(0.1634752, abs=1e-7)
    assert found.map.delta[0] == pytest.approx(0.8763524, abs=1e-4)
    assert found.map.gamma[0] == pytest.approx(1.9317682, abs=1e-4)


def test_the_bold_rows_have_that_posterior_when_judged_anew():
    # maps compose to maps: refitting the bold rows finds the same best likelihood
    probs, codes = sample(300, 4, 8)
    found = boldness_recalibrate(probs, codes, t=0.8, prior=0.4)
    bold = found.map.recalibrate(probs)
    again = calibration_posterior(bold, codes, prior=0.4)
    assert again.posterior == pytest.approx(0.8, abs=1e-6)
    assert found.posterior == pytest.approx(0.8, abs=1e-6)
    assert found.statistic == pytest.approx(again.statistic, abs=1e-6)
    test = calibration_test(bold, codes, method="chi2")
    assert found.pvalue == pytest.approx(test.pvalue, rel=1e-5)


def test_many_classes_are_rejected_by_the_test_and_say_so():
    found = boldness_recalibrate(load_cifar10_vgg16_keras().take(range(2000)))
    # 2 kappa = 18 ln 2000 - 2 ln 19
    assert found.statistic == pytest.approx(18 * math.log(2000) - 2 * math.log(19), abs=1e-6)
    assert found.pvalue == pytest.approx(chi2.sf(found.statistic, 18), rel=1e-9)
    assert found.pvalue < 1e-15 < 0.5 < found.posterior
    assert found.converged
    assert "so favours calibration although the test rejects it" in str(found)
    assert "d = 18 parameters" in found.warning


def test_it_is_printed():
    lines = str(boldness_recalibrate(TOY_X, TOY_Y)).split("\n")
    assert lines[0] == (
        "boldness 0.478 (original 0.273, maximum likelihood 0.351) at posterior probability of "
        "calibration 0.95 (asked: 0.95, prior 0.5)"
    )
    assert lines[1:] == [
        "a test of the bold predictions on the same rows gives p = 0.27 (statistic 5.201 on 4 df, "
        "chi-square)"
    ]


def test_a_search_that_stops_early_says_so(monkeypatch):
    monkeypatch.setattr(_Search, "_solve", lambda self, start: start)
    found = boldness_recalibrate(TOY_X, TOY_Y)
    assert not found.converged
    assert "The search did not converge" in str(found)
    assert found.posterior >= 0.95 - 1e-6
    assert found.boldness < 0.477


def test_a_class_whose_log_odds_never_vary():
    # gamma_1 cannot be told from tau_1: 3 parameters, and it stays 1
    rng = np.random.default_rng(3)
    first = rng.uniform(0.05, 0.6, 200)
    probs = np.column_stack([first, 0.4 * (1 - first), 0.6 * (1 - first)])
    found = boldness_recalibrate(probs, draw(probs, rng))
    assert (found.df, found.map.gamma[1]) == (3, 1.0)
    assert found.boldness > found.boldness_mle
    assert found.converged


def test_the_identity_is_a_start(monkeypatch):
    # rows that tell nothing have several summits, and a sharper estimate does not lead to the
    # highest: of 445 such designs the identity found a bolder map in 10, seed 70 among them
    rng = np.random.default_rng(70)
    probs = simplex(rng, 40, 3, 0.4)
    codes = rng.permutation(np.resize(range(3), 40))
    found = boldness_recalibrate(probs, codes, t=0.9)
    starts = _Search.starts
    monkeypatch.setattr(_Search, "starts", lambda self: starts(self)[:-1])
    without = boldness_recalibrate(probs, codes, t=0.9)
    assert found.converged
    assert without.converged
    assert found.boldness > 1.01 * without.boldness
    assert found.boldness > found.boldness_original


def test_weights_are_counts():
    weight = 1 + np.arange(16) % 2
    twice = boldness_recalibrate(np.repeat(TOY_X, weight, axis=0), np.repeat(TOY_Y, weight))
    found = boldness_recalibrate(TOY_X, TOY_Y, sample_weight=weight)
    for name in ("boldness", "boldness_original", "boldness_mle", "statistic", "posterior"):
        assert getattr(found, name) == pytest.approx(getattr(twice, name), rel=1e-7), name


def test_to_dict_is_strict_json():
    found = boldness_recalibrate(TOY_X, TOY_Y)
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert content["map"] == found.map.to_dict()
    assert (content["t"], content["df"], content["converged"]) == (0.95, 4, True)


def test_input_is_not_changed():
    probs = TOY_X.copy()
    boldness_recalibrate(probs, TOY_Y)
    np.testing.assert_array_equal(probs, TOY_X)


@settings(deadline=None, max_examples=20)
@given(designs(min_rows=25, max_rows=60, max_classes=4, max_sharpness=2.0), st.floats(0.3, 0.97))
def test_bolder_than_the_estimate_and_within_the_constraint(design, t):
    probs, codes = design
    try:
        found = boldness_recalibrate(probs, codes, t=t)
    except InputError:  # separated
        assume(False)
    assert found.boldness >= found.boldness_mle
    assert found.posterior >= t - 1e-6
    kappa = log_likelihood_to_spend(found.df, len(codes), t, 0.5)
    odds, theta = log_odds_of(probs), found.map.theta
    best = fit_predictions(Predictions.from_arrays(probs, codes)).log_likelihood
    assert -direct_nll(theta, odds, codes) >= best - kappa - 1e-6


@settings(deadline=None, max_examples=10)
@given(designs(min_rows=25, max_rows=60, max_classes=2, max_sharpness=2.0))
def test_two_classes_can_be_swapped(design):
    probs, codes = design
    try:
        found = boldness_recalibrate(probs, codes)
    except InputError:  # separated
        assume(False)
    for other in (
        boldness_recalibrate(probs[:, ::-1], 1 - codes),
        boldness_recalibrate(probs, codes, baseline=0),
    ):
        assert found.boldness == pytest.approx(other.boldness, rel=1e-6)
        assert found.posterior == pytest.approx(other.posterior, abs=1e-6)


def test_a_posterior_out_of_reach():
    error = refusal(boldness_recalibrate, TOY_X, TOY_Y, t=0.999)
    assert "t must be smaller than 0.9961" in str(error)
    assert "got t=0.999. Choose a smaller t or a larger prior." in str(error)


@pytest.mark.parametrize(
    ("codes", "cause"),
    [
        (TOY_X.argmax(axis=1), "the log odds separate the labels"),
        (np.where(TOY_Y == 2, 1, TOY_Y), "no row has class 2"),
    ],
)
def test_no_estimate(codes, cause):
    error = refusal(boldness_recalibrate, TOY_X, codes, classes=range(3))
    assert f"a maximum likelihood map must exist to be made bolder; {cause}" in str(error)
    assert "MCLLOCalibrator(penalty=1.0)" in str(error)


def test_rows_that_are_all_the_same():
    error = refusal(boldness_recalibrate, np.tile([0.2, 0.3, 0.5], (16, 1)), TOY_Y)
    assert "at least two different rows" in str(error)


@pytest.mark.parametrize("name", ["t", "prior"])
@pytest.mark.parametrize("value", [0.0, 1.0, math.nan])
def test_shares(name, value):
    error = refusal(boldness_recalibrate, TOY_X, TOY_Y, **{name: value})
    assert str(error) == f"{name} must lie in (0, 1); got {name}={value}."
