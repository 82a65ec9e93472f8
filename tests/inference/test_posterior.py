import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from independent import (
    central_differences,
    designs,
    direct_nll,
    log_odds_of,
    power_formula,
    simplex,
)
from scipy.stats import chi2
from toy import TOY_X, TOY_Y

from mcllo import Predictions, boldness_recalibrate
from mcllo._fit.fit import fit_predictions
from mcllo._inference.posterior import (
    _BoldnessSearch,
    _SquaredBoldness,
    bic_warning,
    format_posterior,
    log_bayes_factor,
    log_likelihood_allowance,
    posterior_probability,
)
from mcllo.exceptions import InputError


def test_no_evidence_leaves_the_prior():
    # lambda = d ln n is where the two BIC are equal
    assert log_bayes_factor(4 * math.log(100), 4, 100) == pytest.approx(0.0, abs=1e-12)
    assert posterior_probability(0.0, 0.3) == pytest.approx(0.3)


def test_by_hand():
    # BF = 3 against calibration, prior odds 4 : 1 for it, so odds 4 : 3
    assert posterior_probability(math.log(3.0), 0.8) == pytest.approx(4 / 7)


@pytest.mark.parametrize(
    ("statistic", "df", "n", "expected", "digits"),
    [
        # methods specification 6: the paper's hold-out sets, CIFAR-10 with lambda 123 and obesity
        # (7 classes, 132 rows) with p = .014
        (123.0, 18, 2000, 0.9990, 5e-5),
        (chi2.isf(0.014, 12), 12, 132, 0.99999994, 5e-9),
    ],
)
def test_the_papers_rejections_have_a_posterior_near_one(
    statistic, df, n, expected, digits
):
    found = posterior_probability(log_bayes_factor(statistic, df, n), 0.5)
    assert found == pytest.approx(expected, abs=digits)
    text = bic_warning(found, chi2.sf(statistic, df), df, n)
    assert (
        f"BIC charges d ln n = {df * math.log(n):.3g} for d = {df} parameters" in text
    )


def test_the_warning_is_there_for_many_parameters_and_for_contradictions():
    assert bic_warning(0.9, 0.5, 4, 100) == ""
    assert "can favour calibration" in bic_warning(0.9, 0.5, 6, 100)
    assert "can favour calibration" in bic_warning(0.1, 0.001, 6, 100)
    assert "so favours calibration although" in bic_warning(0.9, 0.04, 2, 100)
    assert bic_warning(0.4, 0.04, 2, 100) == ""


def test_digits_that_tell_it_from_one():
    shown = {
        0.5: "0.50",
        0.95: "0.95",
        0.9931189: "0.993",
        0.99909: "0.9991",
        1e-30: "1e-30",
    }
    assert {value: format_posterior(value) for value in shown} == shown
    assert format_posterior(1.0 - 2e-7) == "1 - 2e-07"


@settings(deadline=None, max_examples=50)
@given(
    st.floats(0, 1e4), st.floats(0.1, 100), st.integers(1, 200), st.integers(2, 10**6),
    st.floats(0.01, 0.99),
)  # fmt: skip
def test_posterior_falls_with_the_statistic(statistic, more, df, n, prior):
    factors = [
        log_bayes_factor(value, df, n) for value in (statistic, statistic + more)
    ]
    low, high = (posterior_probability(factor, prior) for factor in factors[::-1])
    assert 0.0 <= low <= high <= 1.0
    assert (
        low < high or factors[0] > 700 or factors[1] < -30
    )  # else rounding alone makes them one


def spread(probs, weight=None):
    """Boldness as defined: sqrt of half the sum of the columns' variances, by np.cov."""
    fweights = None if weight is None else np.asarray(weight, dtype=int)
    return math.sqrt(0.5 * np.trace(np.cov(probs.T, fweights=fweights)))


def test_what_may_be_spent_by_hand():
    # (4 / 2) ln 16 + ln(1/19 * 1/3) = 5.545 - 2.944 - 1.099 with t = .95 and prior .25
    assert log_likelihood_allowance(4, 16, 0.95, 0.25) == pytest.approx(
        5.5452 - 2.9444 - 1.0986, abs=1e-4
    )


def test_boldness_by_hand():
    # two columns are mirror images: sqrt(1/2 (2 * .02)) = sd of (.2, .4) with n - 1
    value, _ = _SquaredBoldness(
        log_odds_of(np.array([[0.2, 0.8], [0.4, 0.6]])), None, 2.0
    )(np.array([0, 1]))
    assert value == pytest.approx(0.02)


@pytest.mark.parametrize("weight", [None, np.arange(16) % 3])
def test_spread_and_its_gradient(weight):
    total = 16.0 if weight is None else float(weight.sum())
    function = _SquaredBoldness(log_odds_of(TOY_X), weight, total)
    theta = np.array([0.2, -0.3, 0.8, 1.5])
    value, gradient = function(theta)
    mapped = power_formula(TOY_X, np.exp(theta[:2]), theta[2:])
    assert math.sqrt(value) == pytest.approx(spread(mapped, weight), rel=1e-12)
    slopes = central_differences(lambda x: function(x)[0], theta)
    np.testing.assert_allclose(gradient, slopes, atol=1e-9)


def test_gradients_in_the_coordinates_of_the_search():
    p = Predictions.from_arrays(TOY_X, TOY_Y)
    search = _BoldnessSearch(p, fit_predictions(p), 16.0, 2.0)
    u = np.array([0.3, -0.2, 0.4, 0.1])
    point = search.evaluate(u)
    slopes = central_differences(lambda x: search.evaluate(x).spread, u)
    np.testing.assert_allclose(point.spread_gradient, slopes, rtol=1e-6)
    slopes = central_differences(lambda x: search.evaluate(x).slack, u)
    np.testing.assert_allclose(point.slack_gradient, slopes, rtol=1e-6)


def test_a_search_that_stops_early_says_so(monkeypatch):
    monkeypatch.setattr(_BoldnessSearch, "_solve", lambda self, start: start)
    found = boldness_recalibrate(TOY_X, TOY_Y)
    assert not found.converged
    assert "The search did not converge" in str(found)
    assert found.posterior >= 0.95 - 1e-6
    assert found.boldness < 0.477


def test_the_identity_is_a_start(monkeypatch):
    # rows that tell nothing have several summits, and a sharper estimate does not lead to the
    # highest: of 445 such designs the identity found a bolder map in 10, seed 70 among them
    rng = np.random.default_rng(70)
    probs = simplex(rng, 40, 3, 0.4)
    codes = rng.permutation(np.resize(range(3), 40))
    found = boldness_recalibrate(probs, codes, t=0.9)
    starts = _BoldnessSearch.starting_points
    monkeypatch.setattr(
        _BoldnessSearch, "starting_points", lambda self: starts(self)[:-1]
    )
    without = boldness_recalibrate(probs, codes, t=0.9)
    assert found.converged
    assert without.converged
    assert found.boldness > 1.01 * without.boldness
    assert found.boldness > found.boldness_original


@settings(deadline=None, max_examples=10)
@given(
    designs(min_rows=25, max_rows=60, max_classes=4, max_sharpness=2.0),
    st.floats(0.3, 0.97),
)
def test_bolder_than_the_estimate_and_within_the_constraint(design, t):
    probs, codes = design
    try:
        found = boldness_recalibrate(probs, codes, t=t)
    except InputError:  # separated
        assume(False)
    assert found.boldness >= found.boldness_mle
    assert found.posterior >= t - 1e-6
    kappa = log_likelihood_allowance(found.df, len(codes), t, 0.5)
    odds, theta = log_odds_of(probs), found.map.theta
    best = fit_predictions(Predictions.from_arrays(probs, codes)).log_likelihood
    assert -direct_nll(theta, odds, codes) >= best - kappa - 1e-6
