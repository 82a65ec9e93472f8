import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import central_differences, designs, direct_nll, log_odds_of, sample
from scipy.optimize import minimize as scipy_minimize
from scipy.optimize import minimize_scalar
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._fit.fit import fit_predictions
from mcllo._fit.objective import FreeParameterObjective
from mcllo._fit.penalty import (
    FirthObjective,
    RidgeObjective,
    fit_temperature_exponent,
    free_center_parameters,
    laplace_log_evidence,
    log_information_gradient,
    maximize_firth_likelihood,
    penalty_of_greatest_evidence,
)
from mcllo._model.kernel import LogPartition
from mcllo._model.newton import minimize
from mcllo.exceptions import SeparationWarning

ARGMAX = TOY_X.argmax(axis=1)


def predictions_of(probs, y, **options):
    return Predictions.from_arrays(
        probs, y, classes=range(np.shape(probs)[1]), **options
    )


TOY = predictions_of(TOY_X, TOY_Y)


def evidence_at(predictions, rho, exponent=1.0):
    likelihood = FreeParameterObjective.from_predictions(predictions)
    centre = free_center_parameters(predictions.log_odds, exponent)
    return laplace_log_evidence(
        rho, minimize(RidgeObjective(likelihood, rho, centre), centre)
    )


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
    probs, labels = sample(40, 2, 1, 1.5)
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
    assert evidence_at(TOY, 1e8) == pytest.approx(-12.6033816017, abs=1e-5)
    # methods specification 8f, TOY: negative log likelihood of temperature 12.302730003
    exponent = fit_temperature_exponent(TOY)
    assert evidence_at(TOY, 1e8, exponent) == pytest.approx(-12.302730003, abs=1e-5)


def test_the_exponent_is_the_likeliest():
    odds = log_odds_of(TOY_X)

    def nll(u):
        return direct_nll(np.array([0.0, 0.0, u, u]), odds, TOY_Y)

    best = minimize_scalar(
        nll, bounds=(0.1, 5.0), method="bounded", options={"xatol": 1e-9}
    )
    assert fit_temperature_exponent(TOY) == pytest.approx(best.x, abs=1e-6)
    assert fit_temperature_exponent(predictions_of(TOY_X, ARGMAX)) is None
    assert (
        fit_temperature_exponent(predictions_of(np.full((4, 2), 0.5), [0, 0, 0, 1]))
        == 1.0
    )


def test_auto_is_the_best_of_a_fine_grid():
    probs, y = sample(150, 3, 3, 1.5)
    sharp = probs**2 / (probs**2).sum(axis=1, keepdims=True)
    predictions = predictions_of(sharp, y)
    found = fit_predictions(predictions, penalty="auto")
    powers = np.arange(-1.0, 3.01, 0.02)
    best = (
        10.0 ** powers[np.argmax([evidence_at(predictions, 10.0**p) for p in powers])]
    )
    assert 0.05 < best < 500.0
    assert found.penalty == pytest.approx(best, rel=0.06)
    assert found.penalty_rule == "auto"
    assert found.center == "identity"
    again = fit_predictions(predictions, penalty=found.penalty)
    np.testing.assert_allclose(found.theta, again.theta, atol=1e-8)


# --- properties


@settings(deadline=None, max_examples=15)
@given(
    designs(min_rows=6, max_rows=30, max_classes=4),
    st.sampled_from(["identity", "temperature"]),
)
def test_penalised_fits_are_stationary(design, center):
    probs, codes = design
    predictions = predictions_of(probs, codes)
    try:
        found = fit_predictions(predictions, penalty=0.7, center=center)
    except SeparationWarning:
        return
    likelihood = FreeParameterObjective.from_predictions(predictions)
    ridge = RidgeObjective(
        likelihood,
        0.7,
        free_center_parameters(predictions.log_odds, found.center_gamma),
    )
    assert found.converged
    np.testing.assert_allclose(ridge(found.theta).gradient, 0.0, atol=1e-4)
    assert -found.log_likelihood == pytest.approx(
        direct_nll(found.theta, log_odds_of(probs), codes), abs=1e-9
    )


def test_constant_log_odds_have_the_same_map_at_the_centre():
    # class 0 always has twice the baseline's probability: its gamma stays 1, so the exponent u
    # must show as tau = (u - 1) log 2
    odds = np.array([np.full(5, np.log(2.0)), [0.1, 0.2, 0.3, 0.4, 0.5]])
    np.testing.assert_allclose(
        free_center_parameters(odds, 0.6), [-0.4 * np.log(2.0), 0.0, 0.6]
    )


def test_the_strength_stays_in_its_range():
    assert (
        penalty_of_greatest_evidence(
            FreeParameterObjective.from_predictions(TOY),
            free_center_parameters(TOY.log_odds, 1.0),
        )
        == 1e4
    )
    separated = fit_predictions(predictions_of(TOY_X, ARGMAX), penalty="auto")
    assert separated.penalty == 0.01
    assert separated.converged


# --- Firth's


def solve(probs, y, **options):
    predictions = predictions_of(probs, y, **options)
    return maximize_firth_likelihood(
        FreeParameterObjective.from_predictions(predictions), predictions
    )


def direct_objective(theta, odds, codes, weight=None):
    """Written a second time: the information as a sum over rows of Z' (diag g - g g') Z."""
    k, n = odds.shape
    weight = np.ones(n) if weight is None else weight
    information = np.zeros((2 * k, 2 * k))
    for i in range(n):
        eta = theta[:k] + theta[k:] * odds[:, i]
        g = np.exp(eta - np.logaddexp.reduce(np.append(eta, 0.0)))
        z = np.hstack([np.eye(k), np.diag(odds[:, i])])
        information += weight[i] * z.T @ (np.diag(g) - np.outer(g, g)) @ z
    return (
        direct_nll(theta, odds, codes, weight) - 0.5 * np.linalg.slogdet(information)[1]
    )


def test_balanced_labels_stay_where_they_are():
    # rows and labels are symmetric, so tau stays 0. With log odds +-a, four rows, one wrong label
    # at each: slope of -l in gamma is 8 a (g - 3/4); H is w diag(8, 8 a^2), w = g (1 - g), so that
    # of -1/2 log|H| = -log w + const is -a (1 - 2 g). Their sum is 0 at 10 g = 7
    a = np.log(3.0)
    probs = [[0.75, 0.25]] * 4 + [[0.25, 0.75]] * 4
    solution = solve(probs, [0, 0, 0, 1, 1, 1, 1, 0])
    assert solution.x[0] == pytest.approx(0.0, abs=1e-9)
    assert solution.x[1] == pytest.approx(np.log(7.0 / 3.0) / a, abs=1e-7)


@pytest.mark.parametrize("theta", [[0.2, -0.3, 0.8, 1.5], [0.0, 0.0, 1.0, 1.0]])
def test_derivatives_match_finite_differences(theta):
    weight = np.linspace(0.5, 2.0, 16)
    odds, theta = log_odds_of(TOY_X), np.array(theta)
    predictions = predictions_of(TOY_X, TOY_Y, sample_weight=weight)
    objective = FirthObjective(
        FreeParameterObjective.from_predictions(predictions), predictions
    )
    expected = central_differences(
        lambda t: direct_objective(t, odds, TOY_Y, weight), theta
    )
    assert objective(theta).value == pytest.approx(
        direct_objective(theta, odds, TOY_Y, weight)
    )
    np.testing.assert_allclose(objective(theta).gradient, expected, atol=1e-7)


def test_the_slope_adds_over_chunks():
    rng = np.random.default_rng(0)
    odds, theta = (
        rng.normal(size=(3, 30_000)),
        rng.normal(size=6),
    )  # more than one chunk
    inverse = np.linalg.inv(LogPartition(odds)(theta).hessian)
    parts = [
        log_information_gradient(theta, odds[:, rows], inverse)
        for rows in (slice(9), slice(9, None))
    ]
    np.testing.assert_allclose(
        log_information_gradient(theta, odds, inverse), sum(parts), rtol=1e-9
    )


@settings(deadline=None, max_examples=8)
@given(designs(min_rows=8, max_rows=25, max_classes=4, max_sharpness=2.0))
def test_scipy_finds_no_better_place(design):
    probs, codes = design
    solution = solve(probs, codes)
    odds = log_odds_of(probs)
    assert solution.converged
    found = scipy_minimize(
        direct_objective, solution.x, args=(odds, codes), method="BFGS"
    )
    here = direct_objective(solution.x, odds, codes)
    assert here == pytest.approx(solution.value, rel=1e-7, abs=1e-7)
    assert found.fun >= here - 1e-6


@pytest.mark.parametrize(
    ("labels", "theta"),
    [
        (TOY_Y, [0.303078, -0.199390, 0.967325, 1.268592]),
        (ARGMAX, [0.373830, 0.202023, 4.122660, 3.402299]),
    ],
)
def test_toy(labels, theta):
    # methods specification 8c, TOY; ARGMAX has no maximum likelihood estimate
    found = fit_predictions(predictions_of(TOY_X, labels), penalty="firth")
    np.testing.assert_allclose(found.theta, theta, atol=1e-6)
    assert (found.converged, found.separated) == (True, False)
    assert (found.penalty, found.penalty_rule) == (0.0, "firth")
    nll = direct_nll(found.theta, log_odds_of(TOY_X), labels)
    assert -found.log_likelihood == pytest.approx(nll, rel=1e-12)
    inverse = np.linalg.inv(LogPartition(log_odds_of(TOY_X))(found.theta).hessian)
    np.testing.assert_allclose(found.cov_theta, inverse, rtol=1e-9)


def test_rows_of_weight_two_count_twice():
    doubled = solve(np.vstack([TOY_X, TOY_X]), np.append(TOY_Y, TOY_Y))
    weighted = solve(TOY_X, TOY_Y, sample_weight=np.full(16, 2.0))
    np.testing.assert_allclose(weighted.x, doubled.x, atol=1e-7)
