import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import designs, direct_nll, draw, log_odds_of, simplex
from scipy.optimize import minimize_scalar
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._fit import fit_predictions
from mcllo._newton import minimize
from mcllo._penalty import (
    FreeLikelihood,
    Ridge,
    centre_of,
    evidence,
    strongest_evidence,
    temperature_exponent,
)
from mcllo.exceptions import InputError, SeparationWarning

ARGMAX = TOY_X.argmax(axis=1)


def predictions_of(probs, y, **options):
    return Predictions.from_arrays(probs, y, classes=range(np.shape(probs)[1]), **options)


def evidence_at(predictions, rho, exponent=1.0):
    likelihood = FreeLikelihood(predictions)
    centre = centre_of(predictions.log_odds, exponent)
    return evidence(rho, minimize(Ridge(likelihood, rho, centre), centre))


# --- fixed points


def test_an_endless_penalty_leaves_the_centre():
    for center, gamma in (("identity", 1.0), ("temperature", 1.38386)):
        found = fit_predictions(predictions_of(TOY_X, TOY_Y), penalty=1e9, center=center)
        np.testing.assert_allclose(found.theta, [0.0, 0.0, gamma, gamma], atol=1e-5)


def test_without_a_penalty_the_center_does_not_matter():
    predictions = predictions_of(TOY_X, TOY_Y)
    found = fit_predictions(predictions, center="temperature")
    np.testing.assert_array_equal(found.theta, fit_predictions(predictions).theta)


# --- hand-sized examples and independent implementations


def test_evidence_by_hand():
    # one parameter: constant log odds 0, 3 of 4 labels class 0. At tau: nll = 4 log(1 + e^tau)
    # - 3 tau, H = 4 g (1 - g)
    predictions = predictions_of(np.full((4, 2), 0.5), [0, 0, 0, 1])
    rho = 2.0
    tau = fit_predictions(predictions, penalty=rho).tau[0]
    g = 1.0 / (1.0 + np.exp(-tau))
    assert 4.0 * (g - 0.75) + rho * tau == pytest.approx(0.0, abs=1e-7)
    value = 4.0 * np.log1p(np.exp(tau)) - 3.0 * tau + 0.5 * rho * tau**2
    by_hand = -value + 0.5 * np.log(rho) - 0.5 * np.log(4.0 * g * (1.0 - g) + rho)
    assert evidence_at(predictions, rho) == pytest.approx(by_hand, abs=1e-9)


def test_evidence_is_close_to_the_integral():
    rng = np.random.default_rng(1)
    probs = simplex(rng, 40, 2, 1.5)
    labels = draw(probs, rng)
    odds, rho = log_odds_of(probs), 3.0

    def density(tau, gamma):
        prior = rho / (2 * np.pi) * np.exp(-0.5 * rho * (tau**2 + (gamma - 1.0) ** 2))
        return np.exp(-direct_nll(np.array([tau, gamma]), odds, labels)) * prior

    step = 0.15
    away = np.arange(-3.0, 3.0, step)
    integral = step**2 * sum(density(t, 1.0 + g) for t in away for g in away)
    found = evidence_at(predictions_of(probs, labels), rho)
    assert found == pytest.approx(np.log(integral), abs=0.02)  # Laplace's error


def test_evidence_tends_to_the_likelihood_at_the_centre():
    predictions = predictions_of(TOY_X, TOY_Y)
    assert evidence_at(predictions, 1e8) == pytest.approx(-12.6033816017, abs=1e-5)
    # methods specification 8f, TOY: negative log likelihood of temperature 12.302730003
    exponent = temperature_exponent(predictions)
    assert evidence_at(predictions, 1e8, exponent) == pytest.approx(-12.302730003, abs=1e-5)


def test_the_exponent_is_the_likeliest():
    odds = log_odds_of(TOY_X)

    def nll(u):
        return direct_nll(np.array([0.0, 0.0, u, u]), odds, TOY_Y)

    best = minimize_scalar(nll, bounds=(0.1, 5.0), method="bounded", options={"xatol": 1e-9})
    found = temperature_exponent(predictions_of(TOY_X, TOY_Y))
    assert found == pytest.approx(best.x, abs=1e-6)
    assert temperature_exponent(predictions_of(TOY_X, ARGMAX)) is None
    assert temperature_exponent(predictions_of(np.full((4, 2), 0.5), [0, 0, 0, 1])) == 1.0


def test_auto_is_the_best_of_a_fine_grid():
    rng = np.random.default_rng(3)
    probs = simplex(rng, 150, 3, 1.5)
    sharp = probs**2 / (probs**2).sum(axis=1, keepdims=True)
    predictions = predictions_of(sharp, draw(probs, rng))
    found = fit_predictions(predictions, penalty="auto")
    powers = np.arange(-2.0, 4.01, 0.02)
    best = 10.0 ** powers[np.argmax([evidence_at(predictions, 10.0**p) for p in powers])]
    assert 0.05 < best < 500.0
    assert found.penalty == pytest.approx(best, rel=0.06)
    assert found.penalty_rule == "auto"
    assert found.center == "identity"
    again = fit_predictions(predictions, penalty=found.penalty)
    np.testing.assert_allclose(found.theta, again.theta, atol=1e-8)


def test_calibrated_rows_are_left_alone_and_distorted_rows_are_not():
    rng = np.random.default_rng(4)
    probs = simplex(rng, 300, 3, 1.5)
    labels = draw(probs, rng)
    sharp = probs**3 / (probs**3).sum(axis=1, keepdims=True)
    calm = fit_predictions(predictions_of(probs, labels), penalty="auto")
    moved = fit_predictions(predictions_of(sharp, labels), penalty="auto")
    assert calm.penalty > 30.0 > moved.penalty
    tempered = fit_predictions(predictions_of(sharp, labels), penalty="auto", center="temperature")
    assert tempered.center_gamma == pytest.approx(1 / 3, abs=0.1)
    assert tempered.penalty > moved.penalty


# --- reference values


@pytest.mark.parametrize(
    ("labels", "penalty", "theta"),
    [
        (TOY_Y, 1.0, [0.204575, -0.195848, 1.168347, 1.367685]),
        (TOY_Y, 0.1, [0.292980, -0.291769, 1.235565, 1.583365]),
        (ARGMAX, 1.0, [0.129659, -0.109633, 2.275252, 1.926731]),
    ],
)
def test_toy_ridge(labels, penalty, theta):
    # methods specification 8c, TOY
    predictions = predictions_of(TOY_X, labels)
    likelihood = FreeLikelihood(predictions)
    centre = centre_of(predictions.log_odds, 1.0)
    found = minimize(Ridge(likelihood, penalty, centre), centre)
    np.testing.assert_allclose(found.x, theta, atol=6e-7)


# --- properties


@settings(deadline=None, max_examples=15)
@given(
    designs(min_rows=6, max_rows=30, max_classes=4), st.sampled_from(["identity", "temperature"])
)
def test_penalised_fits_are_stationary(design, center):
    probs, codes = design
    predictions = predictions_of(probs, codes)
    try:
        found = fit_predictions(predictions, penalty=0.7, center=center)
    except SeparationWarning:
        return
    likelihood = FreeLikelihood(predictions)
    ridge = Ridge(likelihood, 0.7, centre_of(predictions.log_odds, found.center_gamma))
    assert found.converged
    np.testing.assert_allclose(ridge(found.theta).gradient, 0.0, atol=1e-4)
    assert -found.log_likelihood == pytest.approx(
        direct_nll(found.theta, log_odds_of(probs), codes), abs=1e-9
    )


def test_constant_log_odds_have_the_same_map_at_the_centre():
    # class 0 always has twice the baseline's probability: its gamma stays 1, so the exponent u
    # must show as tau = (u - 1) log 2
    odds = np.array([np.full(5, np.log(2.0)), [0.1, 0.2, 0.3, 0.4, 0.5]])
    np.testing.assert_allclose(centre_of(odds, 0.6), [-0.4 * np.log(2.0), 0.0, 0.6])


def test_the_strength_stays_in_its_range():
    predictions = predictions_of(TOY_X, TOY_Y)
    likelihood = FreeLikelihood(predictions)
    assert strongest_evidence(likelihood, centre_of(predictions.log_odds, 1.0)) == 1e4
    separated = fit_predictions(predictions_of(TOY_X, ARGMAX), penalty="auto")
    assert separated.penalty == 0.01
    assert separated.converged


# --- warnings and errors


def test_no_exponent_means_the_identity():
    with pytest.warns(SeparationWarning, match="pulls to the identity instead"):
        found = fit_predictions(predictions_of(TOY_X, ARGMAX), penalty=1.0, center="temperature")
    assert found.center == "identity"
    np.testing.assert_allclose(found.theta, [0.129659, -0.109633, 2.275252, 1.926731], atol=6e-7)


@pytest.mark.parametrize("penalty", ["ridge", "Auto", ""])
def test_unknown_penalties(penalty):
    with pytest.raises(InputError, match="penalty must be a number, 'auto' or 'firth'"):
        fit_predictions(predictions_of(TOY_X, TOY_Y), penalty=penalty)


def test_unknown_center():
    with pytest.raises(InputError, match="center must be 'identity' or 'temperature'"):
        fit_predictions(predictions_of(TOY_X, TOY_Y), penalty=1.0, center="zero")
