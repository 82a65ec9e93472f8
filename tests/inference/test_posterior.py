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

from mcllo import Predictions, boldness_recalibrate, calibration_posterior, calibration_test, ladder
from mcllo._fit.fit import fit_predictions
from mcllo._inference.boldness import _Search, _Spread, log_likelihood_to_spend
from mcllo._inference.posterior import (
    bic_warning,
    format_posterior,
    log_bayes_factor,
    posterior_probability,
)
from mcllo.exceptions import InputError, SeparationWarning


def test_no_evidence_leaves_the_prior():
    # lambda = d ln n is where the two BIC are equal
    assert log_bayes_factor(4 * math.log(100), 4, 100) == pytest.approx(0.0, abs=1e-12)
    assert posterior_probability(0.0, 0.3) == pytest.approx(0.3)


def test_a_fit_to_its_own_rows_has_only_the_charge():
    # recalibrated by their own estimate, rows have lambda 0: P = n^(d/2) / (1 + n^(d/2))
    fit = fit_predictions(Predictions.from_arrays(TOY_X, TOY_Y))
    found = calibration_posterior(fit.recalibrate(TOY_X), TOY_Y)
    assert found.statistic == pytest.approx(0.0, abs=1e-8)
    assert found.posterior == pytest.approx(256 / 257)


def test_by_hand():
    # BF = 3 against calibration, prior odds 4 : 1 for it, so odds 4 : 3
    assert posterior_probability(math.log(3.0), 0.8) == pytest.approx(4 / 7)


def test_toy():
    # methods specification 0.4 and 6: NLL 12.6033816017 and 12.0302758915, n = 16, d = 4
    found = calibration_posterior(TOY_X, TOY_Y)
    assert found.posterior == pytest.approx(0.99311890, abs=5e-9)
    assert found.bic_calibrated == pytest.approx(2 * 12.6033816017, abs=1e-8)
    assert found.bic_uncalibrated == pytest.approx(4 * math.log(16) + 2 * 12.0302758915, abs=1e-8)
    assert 2 * found.log_bayes_factor == pytest.approx(
        found.bic_calibrated - found.bic_uncalibrated, abs=1e-10
    )
    assert (found.df, found.n_samples, found.total_weight) == (4, 16, 16.0)
    assert found.pvalue == pytest.approx(0.88687265, abs=1e-8)
    assert found.warning == ""


def test_bic_is_the_ladders():
    found, rungs = calibration_posterior(TOY_X, TOY_Y), ladder(TOY_X, TOY_Y, method="chi2")
    assert found.bic_uncalibrated == pytest.approx(rungs.row("mcllo").bic, abs=1e-9)
    assert found.bic_calibrated == pytest.approx(rungs.row("identity").bic, abs=1e-9)


def test_hockey_is_brcals():
    # methods specification 0.4; BRcal's own unit test lists 0.9903632 from its Nelder-Mead fit
    found = calibration_posterior(load_hockey())
    assert found.posterior == pytest.approx(0.99036314, abs=5e-9)
    assert found.posterior == pytest.approx(0.9903632, abs=1e-6)
    assert found.bic_calibrated == pytest.approx(1148.63655715, abs=1e-7)
    assert found.bic_uncalibrated == pytest.approx(1157.90150993, abs=1e-7)
    assert found.warning == ""


@pytest.mark.parametrize(
    ("statistic", "df", "n", "expected", "digits"),
    [
        # methods specification 6: the paper's hold-out sets, CIFAR-10 with lambda 123 and obesity
        # (7 classes, 132 rows) with p = .014
        (123.0, 18, 2000, 0.9990, 5e-5),
        (chi2.isf(0.014, 12), 12, 132, 0.99999994, 5e-9),
    ],
)
def test_the_papers_rejections_have_a_posterior_near_one(statistic, df, n, expected, digits):
    found = posterior_probability(log_bayes_factor(statistic, df, n), 0.5)
    assert found == pytest.approx(expected, abs=digits)
    text = bic_warning(found, chi2.sf(statistic, df), df, n)
    assert f"BIC charges d ln n = {df * math.log(n):.3g} for d = {df} parameters" in text
    assert "favours calibration although the test rejects it (p" in text
    assert text.endswith("it is no evidence of calibration by itself.")


def test_the_warning_is_there_for_many_parameters_and_for_contradictions():
    assert bic_warning(0.9, 0.5, 4, 100) == ""
    assert "can favour calibration" in bic_warning(0.9, 0.5, 6, 100)
    assert "can favour calibration" in bic_warning(0.1, 0.001, 6, 100)
    assert "so favours calibration although" in bic_warning(0.9, 0.04, 2, 100)
    assert bic_warning(0.4, 0.04, 2, 100) == ""


def test_it_is_printed():
    found = calibration_posterior(load_cifar10_vgg16_keras().take(range(2000)))
    first, note = str(found).split("\n")
    assert first.startswith("posterior probability of calibration ")
    assert "(prior 0.5, BIC, n = 2,000); statistic " in first
    assert f"on 18 df, p = {found.pvalue:.1e} (chi-square)" in first
    assert note == f"Note: {found.warning}"
    assert "d = 18 parameters" in note
    assert "\n" not in str(calibration_posterior(TOY_X, TOY_Y))


def test_digits_that_tell_it_from_one():
    shown = {0.5: "0.50", 0.95: "0.95", 0.9931189: "0.993", 0.99909: "0.9991", 1e-30: "1e-30"}
    assert {value: format_posterior(value) for value in shown} == shown
    assert format_posterior(1.0 - 2e-7) == "1 - 2e-07"


def test_the_baseline_is_the_fits():
    # methods specification 0.4: lambda 1.1250835514 with baseline 0
    found = calibration_posterior(TOY_X, TOY_Y, baseline=0)
    assert found.statistic == pytest.approx(1.1250835514, abs=1e-8)
    assert found.posterior != calibration_posterior(TOY_X, TOY_Y).posterior


def test_separated_labels_are_warned_of():
    with pytest.warns(SeparationWarning, match="does not exist"):
        found = calibration_posterior(TOY_X, TOY_X.argmax(axis=1))
    assert 0.0 < found.posterior < 1.0


@settings(deadline=None, max_examples=50)
@given(
    st.floats(0, 1e4), st.floats(0.1, 100), st.integers(1, 200), st.integers(2, 10**6),
    st.floats(0.01, 0.99),
)  # fmt: skip
def test_posterior_falls_with_the_statistic(statistic, more, df, n, prior):
    factors = [log_bayes_factor(value, df, n) for value in (statistic, statistic + more)]
    low, high = (posterior_probability(factor, prior) for factor in factors[::-1])
    assert 0.0 <= low <= high <= 1.0
    assert low < high or factors[0] > 700 or factors[1] < -30  # else rounding alone makes them one


@pytest.mark.slow
def test_the_posterior_of_honest_rows_grows_with_their_number():
    # BIC is consistent: labels drawn from the rows. P(chi2_4 > 4 ln n) is 2e-3 for n = 100 and
    # 6e-5 for n = 1000, so in 40 data sets hardly one posterior is below one half.
    rng = np.random.default_rng(11)
    low = []
    for n in (100, 1000):
        probs = simplex(rng, n, 3)
        found = [calibration_posterior(probs, draw(probs, rng)).posterior for _ in range(40)]
        assert np.sum(np.array(found) < 0.5) <= 2
        low.append(np.median(found))
    assert low[0] < low[1]


def test_weights_must_count_rows():
    error = refusal(calibration_posterior, TOY_X, TOY_Y, sample_weight=np.full(16, 1 / 16))
    assert "sample_weight must count rows for BIC, so sum to more than 1; got 1." in str(error)


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
def test_boldness_of_toy(t, expected):
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
def test_boldness_of_hockey(prior, t, delta, gamma, expected):
    # methods specification 6
    found = boldness_recalibrate(load_hockey(), t=t, prior=prior)
    assert found.map.delta[0] == pytest.approx(delta, abs=1e-6)
    assert found.map.gamma[0] == pytest.approx(gamma, abs=1e-6)
    assert found.boldness == pytest.approx(expected, abs=6e-7)
    if prior == 0.25:  # BRcal's own unit test (brcal, Pmc = .25, t = .9)
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


def test_boldness_is_printed():
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


NO_MAP = "a maximum likelihood map must exist to be made bolder; "


@pytest.mark.parametrize(
    ("probs", "codes", "t", "says", "remedy"),
    [
        (TOY_X, TOY_Y, 0.999, "t must be smaller than 0.9961", "Choose a smaller t or a larger"),
        (TOY_X, TOY_X.argmax(axis=1), 0.95, NO_MAP + "the log odds separate", "penalty=1.0"),
        (TOY_X, np.where(TOY_Y == 2, 1, TOY_Y), 0.95, NO_MAP + "no row has class 2", "penalty=1.0"),
        (np.tile([0.2, 0.3, 0.5], (16, 1)), TOY_Y, 0.95, "at least two different rows", "the same"),
    ],
)
def test_no_bolder_map(probs, codes, t, says, remedy):
    error = str(refusal(boldness_recalibrate, probs, codes, t=t, classes=range(3)))
    assert says in error
    assert remedy in error


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (calibration_posterior, "prior"),
        (boldness_recalibrate, "t"),
        (boldness_recalibrate, "prior"),
    ],
)
@pytest.mark.parametrize("value", [0.0, 1.0, -0.5, math.nan])
def test_shares(function, name, value):
    error = refusal(function, TOY_X, TOY_Y, **{name: value})
    assert str(error) == f"{name} must lie in (0, 1); got {name}={value}."
