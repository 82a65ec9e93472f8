import numpy as np
import pytest
from hypothesis import assume, given, settings
from independent import designs, direct_nll, draw, log_odds_of, power_formula, simplex
from scipy.optimize import minimize as scipy_minimize
from toy import TOY_X, TOY_Y

from mcllo import Predictions, profile_intervals
from mcllo._fit.fit import fit_predictions
from mcllo._utils.statements import suppress_warnings
from mcllo.exceptions import MclloWarning

ARGMAX = TOY_X.argmax(axis=1)
NO_LAST = np.where(TOY_Y == 2, 0, TOY_Y)
NO_SECOND = np.where(TOY_Y == 1, 0, TOY_Y)
Q95 = 3.841458820694124


def quiet_fit(predictions, **options):
    with suppress_warnings(MclloWarning):
        return fit_predictions(predictions, **options)


def ends_of(intervals):
    return np.vstack([intervals.tau, intervals.gamma])


def brute_deviance(k, value, odds, labels, least, start, centre=None, rho=0.0):
    """Return 2 (l_hat - l_profile(value)) by a long scipy optimisation."""

    def loss(rest):
        theta = np.insert(rest, k, value)
        away = 0.0 if centre is None else 0.5 * rho * np.sum((theta - centre) ** 2)
        return direct_nll(theta, odds, labels) + away

    found = scipy_minimize(
        loss, np.delete(start, k), method="BFGS", options={"gtol": 1e-7}
    )
    return 2.0 * (found.fun - least)


@pytest.mark.parametrize(
    ("labels", "n_infinite"), [(TOY_Y, 0), (ARGMAX, 6), (NO_LAST, 2), (NO_SECOND, 3)]
)
def test_scipy_profiles_agree(labels, n_infinite):
    predictions = Predictions.from_arrays(TOY_X, labels, classes=range(3), baseline=2)
    fit, odds = quiet_fit(predictions), log_odds_of(TOY_X)
    ends = ends_of(profile_intervals(predictions, fit=fit))
    assert np.isinf(ends).sum() == n_infinite
    for (k, side), end in np.ndenumerate(ends):
        # far out on an infinite side the likelihood has not fallen
        far = np.clip(fit.theta[k], -30.0, 30.0) + (-40.0, 40.0)[side]
        value = far if np.isinf(end) else end
        start = np.clip(fit.theta, -30.0, 30.0)
        drop = brute_deviance(k, value, odds, labels, -fit.log_likelihood, start)
        if np.isinf(end):
            assert drop < 0.9 * Q95
        else:
            assert drop == pytest.approx(Q95, abs=1e-3)


def test_scipy_profiles_agree_with_a_ridge():
    center = "temperature"
    predictions = Predictions.from_arrays(TOY_X, TOY_Y)
    fit, odds = (
        fit_predictions(predictions, penalty=0.5, center=center),
        log_odds_of(TOY_X),
    )
    centre = np.array([0.0, 0.0, fit.center_gamma, fit.center_gamma])
    least = -fit.log_likelihood + 0.25 * np.sum((fit.theta - centre) ** 2)
    ends = ends_of(profile_intervals(predictions, penalty=0.5, center=center))
    for (k, _), end in np.ndenumerate(ends):
        drop = brute_deviance(k, end, odds, TOY_Y, least, fit.theta, centre, 0.5)
        assert drop == pytest.approx(Q95, abs=1e-3)


@settings(deadline=None, max_examples=8)
@given(designs(min_rows=20, max_rows=50, max_classes=4, max_sharpness=1.5))
def test_levels_are_nested_around_the_estimate(design):
    probs, codes = design
    predictions = Predictions.from_arrays(probs, codes, classes=range(probs.shape[1]))
    fit = quiet_fit(predictions)
    assume(fit.converged)
    narrow, wide = (
        ends_of(profile_intervals(predictions, fit=fit, level=q)) for q in (0.5, 0.9)
    )
    assert (wide[:, 0] < narrow[:, 0]).all()
    assert (narrow[:, 0] < fit.theta).all()
    assert (fit.theta < narrow[:, 1]).all()
    assert (narrow[:, 1] < wide[:, 1]).all()


@pytest.mark.slow
def test_coverage():
    # 25 sharp rows, a quarter of the samples separated; 60 samples. The Monte Carlo se at .95 is
    # .028: Firth's profile must cover .95 -/+ 3 se for each of the four parameters; Wald intervals,
    # which do not exist for separated samples, cannot come near
    rng = np.random.default_rng(2026)
    truth = np.array([0.5, -0.5, 2.0, 2.0])
    firth, wald, n_separated = [], [], 0
    for _ in range(60):
        probs = simplex(rng, 25, 3, 2.0)
        labels = draw(power_formula(probs, np.exp(truth[:2]), truth[2:]), rng)
        predictions = Predictions.from_arrays(probs, labels, classes=range(3))
        plain = quiet_fit(predictions)
        n_separated += plain.separated
        for ends, hits in (
            (ends_of(profile_intervals(predictions, penalty="firth")), firth),
            (ends_of(plain.confidence_interval()), wald),
        ):
            hits.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
    assert 6 <= n_separated <= 27
    assert (np.abs(np.mean(firth, axis=0) - 0.95) < 3 * 0.028).all()
    assert (np.mean(wald, axis=0) < 0.95 - 3 * 0.028).all()
