import numpy as np
import pytest
from hypothesis import assume, given, settings
from independent import designs, direct_nll, draw, log_odds_of, power_formula, sample, simplex
from scipy.optimize import brentq
from scipy.optimize import minimize as scipy_minimize
from toy import TOY_X, TOY_Y

from mcllo import Predictions, profile_intervals
from mcllo._fit.fit import fit_predictions
from mcllo._ground.statements import quiet
from mcllo.exceptions import InputError, MclloWarning

ARGMAX = TOY_X.argmax(axis=1)
NO_LAST = np.where(TOY_Y == 2, 0, TOY_Y)
NO_SECOND = np.where(TOY_Y == 1, 0, TOY_Y)
Q95 = 3.841458820694124


def quiet_fit(predictions, **options):
    with quiet(MclloWarning):
        return fit_predictions(predictions, **options)


def ends_of(intervals):
    return np.vstack([intervals.tau, intervals.gamma])


def brute_deviance(k, value, odds, labels, least, start, centre=None, rho=0.0):
    """Return 2 (l_hat - l_profile(value)) by a long scipy optimisation."""

    def loss(rest):
        theta = np.insert(rest, k, value)
        away = 0.0 if centre is None else 0.5 * rho * np.sum((theta - centre) ** 2)
        return direct_nll(theta, odds, labels) + away

    found = scipy_minimize(loss, np.delete(start, k), method="BFGS", options={"gtol": 1e-7})
    return 2.0 * (found.fun - least)


def test_one_proportion_by_hand():
    # constant log odds 0: tau alone, 3 of 10 labels are class 0. The interval of p solves
    # 2 [l(.3) - l(p)] = q with l(p) = 3 log p + 7 log(1 - p); tau = log(p / (1 - p))
    def deviance(p):
        return 2 * (3 * np.log(0.3 / p) + 7 * np.log(0.7 / (1 - p))) - Q95

    low, high = brentq(deviance, 1e-6, 0.3), brentq(deviance, 0.3, 1 - 1e-6)
    found = profile_intervals(np.full((10, 2), 0.5), np.repeat([0, 1], [3, 7]))
    np.testing.assert_allclose(found.tau, [np.log([low / (1 - low), high / (1 - high)])], atol=1e-6)
    np.testing.assert_allclose(found.delta, [[low / (1 - low), high / (1 - high)]], atol=1e-6)
    assert np.isnan(found.gamma).all()
    assert found.method == "profile"
    assert found.compared == (0,)


def test_no_label_of_a_class_leaves_one_end():
    # 0 of 10 labels: l(p) = 10 log(1 - p), so -20 log(1 - p) = q and tau reaches from -infinity
    found = profile_intervals(np.full((10, 2), 0.5), np.ones(10, dtype=int), classes=(0, 1))
    p = 1.0 - np.exp(-Q95 / 20.0)
    assert found.tau[0, 0] == -np.inf
    assert found.delta[0, 0] == 0.0
    assert found.tau[0, 1] == pytest.approx(np.log(p / (1.0 - p)), abs=1e-5)


def test_shares_at_two_places_by_hand():
    # two groups of log odds +-log 3 have their own logits a, b; tau = (a + b) / 2 and the profile
    # of tau maximises over a - b; brute force on a grid of b
    probs = [[0.75, 0.25]] * 4 + [[0.25, 0.75]] * 5
    found = profile_intervals(probs, [0, 0, 1, 1, 0, 1, 1, 1, 1])
    b = np.linspace(-12.0, 8.0, 400_001)

    def log_likelihood(a, b):
        return 2 * a - 4 * np.logaddexp(0, a) + b - 5 * np.logaddexp(0, b)

    best = 4 * np.log(0.5) + np.log(0.2) + 4 * np.log(0.8)
    for end in found.tau[0]:
        drop = 2 * (best - log_likelihood(2 * end - b, b).max())
        assert drop == pytest.approx(Q95, abs=1e-4)


@pytest.mark.parametrize(
    ("labels", "n_infinite"), [(TOY_Y, 0), (ARGMAX, 6), (NO_LAST, 2), (NO_SECOND, 3)]
)
def test_scipy_profiles_agree(labels, n_infinite):
    predictions = Predictions.from_arrays(TOY_X, labels, classes=range(3))
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


@pytest.mark.parametrize("center", ["identity", "temperature"])
def test_scipy_profiles_agree_with_a_ridge(center):
    predictions = Predictions.from_arrays(TOY_X, TOY_Y)
    fit, odds = fit_predictions(predictions, penalty=0.5, center=center), log_odds_of(TOY_X)
    centre = np.array([0.0, 0.0, fit.center_gamma, fit.center_gamma])
    least = -fit.log_likelihood + 0.25 * np.sum((fit.theta - centre) ** 2)
    ends = ends_of(profile_intervals(predictions, penalty=0.5, center=center))
    for (k, _), end in np.ndenumerate(ends):
        drop = brute_deviance(k, end, odds, TOY_Y, least, fit.theta, centre, 0.5)
        assert drop == pytest.approx(Q95, abs=1e-3)


def test_toy():
    # methods specification 0.4: 95 % profile intervals
    found = profile_intervals(TOY_X, TOY_Y)
    np.testing.assert_allclose(found.tau, [[-1.31151, 1.97105], [-2.30759, 1.33335]], atol=6e-6)
    np.testing.assert_allclose(found.gamma, [[0.28154, 2.71593], [0.37442, 3.50425]], atol=6e-6)
    np.testing.assert_allclose(found.delta, np.exp(found.tau))


@settings(deadline=None, max_examples=15)
@given(designs(min_rows=20, max_rows=50, max_classes=4, max_sharpness=1.5))
def test_levels_are_nested_around_the_estimate(design):
    probs, codes = design
    predictions = Predictions.from_arrays(probs, codes, classes=range(probs.shape[1]))
    fit = quiet_fit(predictions)
    assume(fit.converged)
    narrow, wide = (ends_of(profile_intervals(predictions, fit=fit, level=q)) for q in (0.5, 0.9))
    assert (wide[:, 0] < narrow[:, 0]).all()
    assert (narrow[:, 0] < fit.theta).all()
    assert (fit.theta < narrow[:, 1]).all()
    assert (narrow[:, 1] < wide[:, 1]).all()


def test_many_rows_give_walds_intervals():
    probs, y = sample(20_000, 3, 0, 1.0)
    predictions = Predictions.from_arrays(probs, y)
    wald = fit_predictions(predictions).confidence_interval()
    found = profile_intervals(predictions)
    np.testing.assert_allclose(ends_of(found), ends_of(wald), atol=2e-3)


@pytest.mark.parametrize("labels", [ARGMAX, NO_LAST, TOY_Y])
def test_firth_intervals_are_finite(labels):
    predictions = Predictions.from_arrays(TOY_X, labels, classes=range(3))
    fit = fit_predictions(predictions, penalty="firth")
    ends = ends_of(profile_intervals(predictions, penalty="firth"))
    assert np.isfinite(ends).all()
    assert (ends[:, 0] < fit.theta).all()
    assert (fit.theta < ends[:, 1]).all()


def test_the_baseline_of_the_fit_is_used():
    predictions = Predictions.from_arrays(TOY_X, TOY_Y)
    fit = fit_predictions(predictions.with_baseline(0))
    found = profile_intervals(predictions, fit=fit)
    np.testing.assert_array_equal(
        ends_of(found), ends_of(profile_intervals(TOY_X, TOY_Y, baseline=0))
    )
    assert found.compared == (1, 2)
    few = fit_predictions(Predictions.from_arrays(TOY_X[:15], TOY_Y[:15]))
    with pytest.raises(InputError, match="fit must be the fit of these predictions"):
        profile_intervals(TOY_X, TOY_Y, fit=few)


def test_weights_count_rows():
    doubled = profile_intervals(np.vstack([TOY_X, TOY_X]), np.append(TOY_Y, TOY_Y))
    weighted = profile_intervals(TOY_X, TOY_Y, sample_weight=np.full(16, 2.0))
    np.testing.assert_allclose(ends_of(weighted), ends_of(doubled), atol=1e-6)


def test_to_dict_is_strict():
    content = profile_intervals(TOY_X, ARGMAX).to_dict()
    assert content["method"] == "profile"
    assert content["level"] == 0.95
    assert content["gamma"][0][1] is None
    assert content["gamma"][0][0] > 1.0


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
