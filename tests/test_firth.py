import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from independent import central_differences, designs, direct_nll, log_odds_of
from scipy.optimize import minimize as scipy_minimize
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._firth import FirthObjective, firth_solution, information_slope
from mcllo._fit import fit_predictions
from mcllo._model import LogPartition
from mcllo._penalty import FreeLikelihood

ARGMAX = TOY_X.argmax(axis=1)


def predictions_of(probs, y, **options):
    return Predictions.from_arrays(probs, y, classes=range(np.shape(probs)[1]), **options)


def solve(probs, y, **options):
    predictions = predictions_of(probs, y, **options)
    return firth_solution(FreeLikelihood(predictions), predictions)


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
    return direct_nll(theta, odds, codes, weight) - 0.5 * np.linalg.slogdet(information)[1]


# --- hand-sized example


def test_balanced_labels_stay_where_they_are():
    # rows and labels are symmetric, so tau stays 0. With log odds +-a, four rows, one wrong label
    # at each: slope of -l in gamma is 8 a (g - 3/4); H is w diag(8, 8 a^2), w = g (1 - g), so that
    # of -1/2 log|H| = -log w + const is -a (1 - 2 g). Their sum is 0 at 10 g = 7
    a = np.log(3.0)
    probs = [[0.75, 0.25]] * 4 + [[0.25, 0.75]] * 4
    solution = solve(probs, [0, 0, 0, 1, 1, 1, 1, 0])
    assert solution.x[0] == pytest.approx(0.0, abs=1e-9)
    assert solution.x[1] == pytest.approx(np.log(7.0 / 3.0) / a, abs=1e-7)


# --- an independent implementation


@pytest.mark.parametrize("theta", [[0.2, -0.3, 0.8, 1.5], [0.0, 0.0, 1.0, 1.0]])
def test_derivatives_match_finite_differences(theta):
    weight = np.linspace(0.5, 2.0, 16)
    odds, theta = log_odds_of(TOY_X), np.array(theta)
    predictions = predictions_of(TOY_X, TOY_Y, sample_weight=weight)
    objective = FirthObjective(FreeLikelihood(predictions), predictions)
    expected = central_differences(lambda t: direct_objective(t, odds, TOY_Y, weight), theta)
    assert objective(theta).value == pytest.approx(direct_objective(theta, odds, TOY_Y, weight))
    np.testing.assert_allclose(objective(theta).gradient, expected, atol=1e-7)


def test_the_slope_adds_over_chunks(monkeypatch):
    rng = np.random.default_rng(0)
    odds, theta = rng.normal(size=(3, 900)), rng.normal(size=6)
    inverse = np.linalg.inv(LogPartition(odds)(theta).hessian)
    once = information_slope(theta, odds, inverse)
    monkeypatch.setattr("mcllo._firth.CHUNK_ELEMENTS", 3)  # 256 rows at a time
    np.testing.assert_allclose(information_slope(theta, odds, inverse), once, rtol=1e-12)


@settings(deadline=None, max_examples=15)
@given(designs(min_rows=8, max_rows=25, max_classes=4, max_sharpness=2.0))
def test_scipy_finds_no_better_place(design):
    probs, codes = design
    solution = solve(probs, codes)
    odds = log_odds_of(probs)
    assert solution.converged
    found = scipy_minimize(direct_objective, solution.x, args=(odds, codes), method="BFGS")
    here = direct_objective(solution.x, odds, codes)
    assert here == pytest.approx(solution.value, rel=1e-7, abs=1e-7)
    assert found.fun >= here - 1e-6


# --- reference values


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
    assert found.converged
    assert not found.separated
    assert found.penalty == 0.0
    assert found.penalty_rule == "firth"
    nll = direct_nll(found.theta, log_odds_of(TOY_X), labels)
    assert -found.log_likelihood == pytest.approx(nll, rel=1e-12)
    inverse = np.linalg.inv(LogPartition(log_odds_of(TOY_X))(found.theta).hessian)
    np.testing.assert_allclose(found.cov_theta, inverse, rtol=1e-9)


# --- properties


def test_an_absent_class_has_a_finite_estimate():
    labels = np.where(TOY_Y == 1, 0, TOY_Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fit_predictions(predictions_of(TOY_X, labels), penalty="firth")
    assert found.converged
    assert np.abs(found.theta).max() < 10.0


def test_rows_of_weight_two_count_twice():
    doubled = solve(np.vstack([TOY_X, TOY_X]), np.append(TOY_Y, TOY_Y))
    weighted = solve(TOY_X, TOY_Y, sample_weight=np.full(16, 2.0))
    np.testing.assert_allclose(weighted.x, doubled.x, atol=1e-7)


def test_constant_log_odds_fix_gamma():
    # 30 of 40 labels are class 0 at constant log odds: tau alone moves, log|H| = log(n g (1 - g)),
    # so n (g - 3/4) = (1 - 2 g) / 2 and g = 30.5 / 41 (half a row is added to each class)
    probs = np.full((40, 2), 0.5)
    found = fit_predictions(predictions_of(probs, np.repeat([0, 1], [30, 10])), penalty="firth")
    assert found.tau[0] == pytest.approx(np.log(30.5 / 10.5), abs=1e-8)
    assert found.gamma[0] == 1.0
    assert found.df == 1


def test_saturated_rows_do_not_stop_it():
    logits = np.column_stack([np.tile([700.0, -700.0], 5), np.zeros(10)])
    predictions = Predictions.from_arrays(None, np.tile([0, 1], 5), logits=logits)
    found = fit_predictions(predictions, penalty="firth")
    assert found.converged
    # as in the first example: 10 (g - 1) = 1 - 2 g, so g = 11 / 12 at log odds 700
    assert found.gamma[0] == pytest.approx(np.log(11.0) / 700.0, rel=1e-6)
