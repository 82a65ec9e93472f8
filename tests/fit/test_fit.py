import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from independent import (
    central_differences,
    designs,
    direct_nll,
    draw,
    log_odds_of,
    maps,
    power_formula,
    simplex,
)
from scipy.optimize import minimize as scipy_minimize
from scipy.special import chdtrc
from shared_data import LOADERS, load_hockey
from toy import TOY_X, TOY_Y

from mcllo import MCLLOFit, MCLLOMap, Predictions, profile_intervals
from mcllo._fit.estimate import (
    COLLAPSED,
    FLAT,
    covariance,
    estimate,
    information_left,
    objective_of,
)
from mcllo._fit.fit import fit_predictions
from mcllo._fit.map import AllBaselinesMap, read_simplex
from mcllo._fit.objective import FreeLikelihood
from mcllo._fit.penalty import FirthObjective, Ridge
from mcllo._ground.results import none_for_nan
from mcllo._ground.statements import quiet
from mcllo.exceptions import ConvergenceWarning, InputError, MclloWarning, SeparationWarning

quick = settings(deadline=None, max_examples=30)
VGAM = json.loads((Path(__file__).parents[1] / "reference" / "vgam.json").read_text())["sets"]
ARGMAX = TOY_X.argmax(axis=1)
TOY = Predictions.from_arrays(TOY_X, TOY_Y)
PERFECT = Predictions.from_arrays(TOY_X, ARGMAX)


def fit(probs, y, penalty=0.0, **options):
    return fit_predictions(Predictions.from_arrays(probs, y, **options), penalty=penalty)


def quiet_fit(probs, y, **options):
    """Fit where separation is possible and not the point."""
    with quiet(MclloWarning):
        return fit(probs, y, **options)


def scipy_optimum(log_odds, codes, start=None):
    """Return the smallest negative log likelihood that scipy finds, and where."""
    start = np.repeat([0.0, 1.0], len(log_odds)) if start is None else start
    found = scipy_minimize(
        direct_nll, start, args=(log_odds, codes), method="BFGS", options={"gtol": 1e-9}
    )
    return found.fun, found.x


# --- fixed point and hand-sized examples


def test_labels_that_equal_their_expectation_give_the_identity():
    # at x = (.75, .25) 3 of 4 labels are 0, at (.25, .75) 1 of 4: the shares are the predictions
    probs = [[0.75, 0.25]] * 4 + [[0.25, 0.75]] * 4
    found = fit(probs, [0, 0, 0, 1, 0, 1, 1, 1])
    np.testing.assert_allclose(found.theta, [0.0, 1.0], atol=1e-12)
    assert found.statistic == pytest.approx(0.0, abs=1e-12)
    assert found.converged


def test_two_groups_by_hand():
    # log odds +-log 3; shares of class 0 are 1/2 and 1/5, logits 0 and -log 4:
    # gamma = (0 + log 4) / (2 log 3), tau = (0 - log 4) / 2; log likelihood -log 2 * 4 + ...
    probs = [[0.75, 0.25]] * 4 + [[0.25, 0.75]] * 5
    found = fit(probs, [0, 0, 1, 1, 0, 1, 1, 1, 1])
    assert found.gamma[0] == pytest.approx(np.log(4.0) / (2.0 * np.log(3.0)), rel=1e-10)
    assert found.tau[0] == pytest.approx(-np.log(2.0), rel=1e-10)
    assert found.delta[0] == pytest.approx(0.5, rel=1e-10)
    best = 4 * np.log(0.5) + np.log(0.2) + 4 * np.log(0.8)
    null = 2 * np.log(0.75) + 2 * np.log(0.25) + np.log(0.25) + 4 * np.log(0.75)
    assert found.log_likelihood == pytest.approx(best, rel=1e-12)
    assert found.log_likelihood_null == pytest.approx(null, rel=1e-12)
    # information: n p (1 - p) is 1 and .8 at log odds +-log 3; var(tau) is the sum of the inverse
    # logit variances over 4, var(gamma) over (2 log 3)^2
    variance = 1.0 / 1.0 + 1.0 / 0.8
    assert found.se_tau[0] == pytest.approx(np.sqrt(variance / 4.0), rel=1e-8)
    assert found.se_gamma[0] == pytest.approx(np.sqrt(variance) / (2 * np.log(3.0)), rel=1e-8)
    assert found.se_delta[0] == pytest.approx(0.5 * found.se_tau[0], rel=1e-12)


# --- an independent implementation


@settings(deadline=None, max_examples=20)
@given(designs(min_rows=20, max_rows=60, max_classes=4, max_sharpness=1.5))
def test_scipy_finds_the_same_optimum(design):
    probs, codes = design
    found = quiet_fit(probs, codes, classes=range(probs.shape[1]))
    assume(found.converged and np.abs(found.theta).max() < 20.0)
    value, theta = scipy_optimum(log_odds_of(probs), codes)
    assert -found.log_likelihood == pytest.approx(value, rel=1e-7)
    assert -found.log_likelihood <= value + 1e-9
    np.testing.assert_allclose(found.theta, theta, atol=1e-3)


# --- reference values


TOY_FITS = {
    2: {
        "tau": [0.30894668, -0.31270571],
        "gamma": [1.24843257, 1.62795328],
        "delta": [1.36198975, 0.73146515],
        "se_tau": [0.78689798, 0.86197819],
        "se_gamma": [0.59164275, 0.76042460],
        "se_delta": [1.07174699, 0.63050700],
    },
    0: {
        "tau": [-0.32450518, -0.32218453],
        "gamma": [1.16703153, 1.56822680],
        "delta": [0.72288497, 0.72456448],
        "se_tau": [0.71807704, 0.85443243],
        "se_gamma": [0.71115138, 0.70253020],
        "se_delta": [0.51908709, 0.61909138],
    },
    1: {
        "tau": [0.41176068, 0.19037698],
        "gamma": [1.38496575, 1.41070786],
        "delta": [1.50947315, 1.20970554],
        "se_tau": [0.72550140, 0.77623302],
        "se_gamma": [0.74410423, 0.76696015],
        "se_delta": [1.09512488, 0.93901338],
    },
}


@pytest.mark.parametrize(
    ("baseline", "nll", "lr", "g"),
    [
        (2, 12.0302758915, 1.1462114203, [0.82582479, 0.12075985, 0.05341536]),
        (0, 12.0408398260, 1.1250835514, [0.83208443, 0.13940939, 0.02850618]),
        (1, 12.1380868017, 0.9305895999, [0.85467970, 0.09987629, 0.04544401]),
    ],
)
def test_toy(baseline, nll, lr, g):
    # methods specification 0.4, TOY; also checked against VGAM there
    found = fit(TOY_X, TOY_Y, baseline=baseline)
    table = found.parameters()
    assert table["class"] == [j for j in range(3) if j != baseline]
    for name, expected in TOY_FITS[baseline].items():
        np.testing.assert_allclose(getattr(found, name), expected, rtol=1e-6)
        assert name not in table.columns or table[name] == getattr(found, name).tolist()
    assert -found.log_likelihood_null == pytest.approx(12.6033816017, rel=1e-10)
    assert -found.log_likelihood == pytest.approx(nll, rel=1e-10)
    assert found.statistic == pytest.approx(lr, rel=1e-8)
    np.testing.assert_allclose(found.recalibrate(TOY_X)[0], g, atol=6e-9)
    assert (found.converged, found.separated, found.separated_classes) == (True, False, ())
    assert found.df == 4


def test_toy_null_terms_give_the_score_statistic():
    # methods specification 0.4, TOY: score .9895584940 with baseline 2
    null = fit(TOY_X, TOY_Y).null_terms
    score = null.gradient @ np.linalg.solve(null.hessian, null.gradient)
    assert score == pytest.approx(0.9895584940, rel=1e-9)


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
    found = fit(TOY_X, labels, penalty=penalty)
    np.testing.assert_allclose(found.theta, theta, atol=6e-7)
    assert (found.converged, found.separated, found.separated_classes) == (True, False, ())
    assert found.penalty == penalty
    unpenalised = direct_nll(found.theta, log_odds_of(TOY_X), labels)
    assert -found.log_likelihood == pytest.approx(unpenalised, rel=1e-12)


def test_ridge_standard_errors_include_the_penalty():
    found = fit(TOY_X, TOY_Y, penalty=1.0)

    def penalised(theta):
        away = theta - [0.0, 0.0, 1.0, 1.0]
        return direct_nll(theta, log_odds_of(TOY_X), TOY_Y) + 0.5 * away @ away

    def slope(theta):
        return central_differences(penalised, theta, h=1e-5)

    np.testing.assert_allclose(slope(found.theta), 0.0, atol=1e-7)
    curvature = central_differences(slope, found.theta, h=1e-3)
    np.testing.assert_allclose(np.linalg.inv(curvature), found.cov_theta, atol=1e-5)


@pytest.mark.parametrize(
    ("column", "delta", "gamma", "statistic", "p"),
    [
        ("x", 0.94538536, 1.40140147, 4.26743065, 0.11839659),
        ("rand", 1.13955697, 0.07216956, 70.66915825, None),
    ],
)
def test_hockey(column, delta, gamma, statistic, p):
    # methods specification 0.4: BRcal's hockey data, class 0 = home win, baseline = loss; and its
    # column of random numbers
    found = fit_predictions(load_hockey(column))
    assert found.delta[0] == pytest.approx(delta, abs=6e-9)
    assert found.gamma[0] == pytest.approx(gamma, abs=6e-9)
    assert found.statistic == pytest.approx(statistic, abs=6e-9)
    if p is not None:
        assert chdtrc(found.df, found.statistic) == pytest.approx(p, abs=6e-9)
        assert -2.0 * found.log_likelihood_null == pytest.approx(1148.63655715, abs=6e-9)


@pytest.mark.parametrize("name", sorted(VGAM))
def test_vgam(name):
    # tests/reference/vgam.json, written by tests/reference/vgam_mcllo.R
    expected = VGAM[name]
    found = fit_predictions(LOADERS[name]())
    assert found.n_samples == expected["n"]
    assert found.df == expected["df"]
    assert found.baseline == found.classes[expected["baseline"]]
    for quantity in ("tau", "gamma", "se_tau", "se_gamma"):
        np.testing.assert_allclose(getattr(found, quantity), expected[quantity], rtol=1e-6)
    for quantity in ("log_likelihood", "log_likelihood_null", "statistic"):
        assert getattr(found, quantity) == pytest.approx(expected[quantity], rel=1e-9)
    assert found.converged


# --- no maximum


def test_perfect_labels_have_no_maximum():
    with pytest.warns(SeparationWarning, match=r"does not exist.*penalty=1\.0") as caught:
        found = fit(TOY_X, ARGMAX)
    assert len(caught) == 1
    assert "separate the labels: class 0, 1, 2)" in str(caught[0].message)
    assert (found.converged, found.separated, found.separated_classes) == (False, True, (0, 1, 2))
    for missing in (found.se_tau, found.se_gamma, found.cov_theta):
        assert np.isnan(missing).all()
    # the supremum of the likelihood is 1
    assert found.log_likelihood == pytest.approx(0.0, abs=1e-9)
    assert found.statistic == pytest.approx(-2.0 * found.log_likelihood_null, abs=1e-8)
    assert found.n_iter <= 100
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (content["separated"], content["se_tau"]) == (True, [None, None])
    assert content["tau"] == found.tau.tolist()
    assert MCLLOFit.from_dict(content).separated_classes == (0, 1, 2)


def test_the_warning_names_up_to_three_classes():
    probs = simplex(np.random.default_rng(0), 60, 5, 2.0)
    names = np.array(list("abcde"))
    with pytest.warns(SeparationWarning, match=r"class 'a', 'b', 'c' and 2 more\)"):
        found = fit(probs, names[probs.argmax(axis=1)], classes=names.tolist())
    assert found.separated_classes == tuple("abcde")


def test_an_absent_baseline_has_no_maximum():
    # tau and gamma of the others go to infinity together; what is left is a logit of class 0
    # against 1 on (1, l_0, l_1), whose maximum is the supremum
    labels = np.where(TOY_Y == 2, 0, TOY_Y)
    with pytest.warns(SeparationWarning, match="no row has class 2"):
        found = fit(TOY_X, labels, classes=range(3))
    odds = log_odds_of(TOY_X)
    regressors = np.vstack([np.ones(16), odds])
    sign = np.where(labels == 0, 1.0, -1.0)
    rest = scipy_minimize(
        lambda b: np.logaddexp(0.0, -sign * (b @ regressors)).sum(), np.zeros(3), tol=1e-10
    )
    assert found.separated
    assert -found.log_likelihood == pytest.approx(rest.fun, abs=1e-6)


@pytest.mark.parametrize("absent", [0, 1])
def test_an_absent_class_leaves_the_others(absent):
    # its tau goes to -infinity; what is left is the model of the other two classes
    other = 1 - absent
    labels = np.where(absent != TOY_Y, TOY_Y, other)
    with pytest.warns(SeparationWarning, match=f"no row has class {absent}"):
        found = fit(TOY_X, labels, classes=range(3))
    pair = TOY_X[:, [other, 2]] / TOY_X[:, [other, 2]].sum(axis=1, keepdims=True)
    rest = fit(pair, (labels == 2).astype(int))
    assert found.log_likelihood == pytest.approx(rest.log_likelihood, abs=1e-8)
    position = found.compared.index(other)
    assert found.gamma[position] == pytest.approx(rest.gamma[0], abs=1e-4)


@pytest.mark.parametrize("seed", [3, 23, 61, 78, 105])
def test_the_supremum_equals_a_long_scipy_optimisation(seed):
    # seeds whose 12 rows are separated in part: the supremum lies below 0 and is not attained
    rng = np.random.default_rng(seed)
    probs = simplex(rng, 12, 3, 1.5)
    labels = draw(probs, rng)
    with pytest.warns(SeparationWarning, match="the log odds separate the labels"):
        found = fit(probs, labels)
    value, _ = scipy_optimum(log_odds_of(probs), labels)
    assert found.log_likelihood < -1.0
    assert -found.log_likelihood == pytest.approx(value, abs=2e-6)
    assert -found.log_likelihood <= value + 1e-10


def test_a_penalty_makes_the_estimate_finite():
    found = fit(TOY_X, np.where(TOY_Y == 2, 0, TOY_Y), penalty=1.0, classes=range(3))
    assert (found.converged, found.separated) == (True, False)
    assert np.isfinite(found.se_tau).all()
    assert np.abs(found.theta).max() < 5.0


def test_nearly_separated_rows_have_a_huge_maximum():
    # forty sharp rows are right; six rows within 2e-5 of even odds overlap. In units of 1e-5 the
    # six are a plain logit, beside which the sharp rows add nothing
    tiny, labels = np.array([2.0, 2.0, 1.0, -1.0, -2.0, -2.0]), np.array([0, 0, 1, 0, 1, 1])
    odds = np.concatenate([1e-5 * tiny, np.full(20, 8.0), np.full(20, -8.0)])
    codes = np.concatenate([labels, np.repeat([0, 1], 20)])
    with pytest.warns(ConvergenceWarning, match="all but flat.*statistic holds"):
        found = fit(None, codes, logits=np.column_stack([odds, np.zeros(46)]))
    value, theta = scipy_optimum(tiny[None], labels)
    assert (found.separated, found.converged) == (False, False)
    assert np.isnan(found.se_gamma).all()
    assert found.gamma[0] == pytest.approx(1e5 * theta[1], rel=1e-3)
    assert -found.log_likelihood == pytest.approx(value, abs=1e-7)


def test_weights_of_zero_do_not_count_as_rows_of_a_class():
    weight = (TOY_Y != 1).astype(float)
    with pytest.warns(SeparationWarning, match="no row has class 1"):
        found = fit(TOY_X, TOY_Y, sample_weight=weight)
    assert found.separated


# --- what the rows cannot tell apart


def test_constant_log_odds_fix_gamma():
    # column 0 is always twice the baseline: log odds log 2. tau_0 alone moves; column 1 varies
    rng = np.random.default_rng(2)
    middle = rng.uniform(0.1, 0.8, size=60)
    probs = np.column_stack([(1.0 - middle) * 2 / 3, middle, (1.0 - middle) / 3])
    labels = draw(probs, rng)
    found = fit(probs, labels)
    assert found.df == 3
    assert found.gamma[0] == 1.0
    assert np.isnan(found.se_gamma[0])
    assert np.isfinite(found.se_tau).all()
    assert np.isfinite(found.se_gamma[1])
    assert found.converged
    # given not class 1, the share of class 0 is what tau_0 must reproduce
    counts = np.bincount(labels)
    assert found.tau[0] == pytest.approx(np.log(counts[0] / counts[2]) - np.log(2.0), rel=1e-8)


def test_one_row():
    with pytest.warns(SeparationWarning):
        found = fit([[0.2, 0.5, 0.3]], [1], classes=range(3))
    assert found.df == 2
    assert found.separated
    assert found.statistic == pytest.approx(-2.0 * np.log(0.5), abs=1e-8)


# --- extreme inputs


@pytest.mark.parametrize("far", [50.0, 700.0, 1e5])
@pytest.mark.parametrize("c", [2, 3, 5])
def test_extreme_log_odds_with_random_labels(far, c):
    # every row saturated at the identity, half of them wrong: the estimate is a gentle map
    rng = np.random.default_rng(c)
    logits = far * rng.normal(size=(60, c))
    labels = np.resize(np.arange(c), 60)
    found = fit(None, labels, logits=logits)
    odds = (logits[:, :-1] - logits[:, -1:]).T
    assert found.converged
    assert np.isfinite(found.cov_theta).all()
    assert np.isfinite(found.recalibrate(logits=logits)).all()
    unit = np.repeat([1.0, 1.0 / far], c - 1)
    value, theta = scipy_optimum(odds / far, labels, np.zeros(2 * (c - 1)))
    assert -found.log_likelihood == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(found.theta / unit, theta, atol=1e-4)


@pytest.mark.parametrize(
    ("labels", "statistic"), [([0, 1, 0, 1], 0.0), ([1, 0, 1, 0], 2.0 * 4 * 700.0)]
)
def test_extreme_log_odds_that_are_all_right_or_all_wrong(labels, statistic):
    logits = [[700.0, 0.0], [-700.0, 0.0], [700.0, 0.0], [-700.0, 0.0]]
    with pytest.warns(SeparationWarning):
        found = fit(None, labels, logits=logits)
    assert found.statistic == pytest.approx(statistic, rel=1e-9, abs=0.0)
    assert np.isfinite(found.theta).all()
    assert found.log_likelihood <= 0.0


def test_probabilities_of_1e_minus_300():
    probs = [[1.0, 1e-300], [1e-300, 1.0], [0.5, 0.5], [0.3, 0.7], [0.2, 0.8], [0.6, 0.4]]
    labels = np.array([1, 0, 1, 0, 1, 0])
    found = fit(probs, labels)
    value, _ = scipy_optimum(log_odds_of(np.array(probs)), labels, np.zeros(2))
    assert found.converged
    assert -found.log_likelihood == pytest.approx(value, rel=1e-9)
    assert np.isfinite(found.recalibrate(probs)).all()


# --- properties


@quick
@given(designs(min_rows=2))
def test_the_statistic_is_not_negative(design):
    probs, codes = design
    assert quiet_fit(probs, codes, classes=range(probs.shape[1])).statistic >= 0.0


@quick
@given(designs(min_rows=20, max_sharpness=1.5), st.data())
def test_refitting_recalibrated_training_data_gives_the_identity(design, data):
    probs, codes = design
    classes = range(probs.shape[1])
    baseline = data.draw(st.sampled_from(list(classes)))
    found = quiet_fit(probs, codes, classes=classes, baseline=baseline)
    assume(found.converged and np.abs(found.theta).max() < 15.0 and abs(found.gamma).min() > 0.01)
    again = fit(found.recalibrate(probs), codes, classes=classes, baseline=baseline, clip=0.0)
    np.testing.assert_allclose(again.tau, 0.0, atol=1e-5)
    np.testing.assert_allclose(again.gamma, 1.0, atol=1e-5)
    assert again.statistic == pytest.approx(0.0, abs=1e-8)


@quick
@given(designs(min_rows=4, max_classes=2))
def test_for_two_classes_the_baseline_does_not_matter(design):
    probs, codes = design
    last, first = (quiet_fit(probs, codes, classes=(0, 1), baseline=b) for b in (1, 0))
    assert first.statistic == pytest.approx(last.statistic, abs=1e-7)
    assume(last.converged)
    np.testing.assert_allclose(first.gamma, last.gamma, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(first.tau, -last.tau, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(first.recalibrate(probs), last.recalibrate(probs), atol=1e-6)


@quick
@given(designs(min_rows=15, max_sharpness=1.5), st.integers(0, 2**32 - 1))
def test_permuting_the_other_classes_permutes_the_parameters(design, seed):
    probs, codes = design
    c = probs.shape[1]
    order = np.append(np.random.default_rng(seed).permutation(c - 1), c - 1)
    place = np.argsort(order)
    found = quiet_fit(probs, codes, classes=range(c))
    assume(found.converged and np.abs(found.theta).max() < 15.0)
    moved = fit(probs[:, order], place[codes], classes=range(c))
    np.testing.assert_allclose(moved.tau, found.tau[order[:-1]], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(moved.gamma, found.gamma[order[:-1]], rtol=1e-5, atol=1e-6)
    assert moved.statistic == pytest.approx(found.statistic, rel=1e-7, abs=1e-9)


@quick
@given(designs(min_rows=15, max_sharpness=1.5))
def test_duplicating_the_data_doubles_the_statistic(design):
    probs, codes = design
    classes = range(probs.shape[1])
    once = quiet_fit(probs, codes, classes=classes)
    twice = quiet_fit(np.vstack([probs, probs]), np.append(codes, codes), classes=classes)
    weighted = quiet_fit(probs, codes, classes=classes, sample_weight=np.full(len(codes), 2.0))
    assert twice.statistic == pytest.approx(2.0 * once.statistic, rel=1e-7, abs=1e-8)
    assert weighted.statistic == pytest.approx(twice.statistic, rel=1e-9, abs=1e-10)
    assume(once.converged and np.abs(once.theta).max() < 15.0)
    np.testing.assert_allclose(weighted.se_tau, once.se_tau / np.sqrt(2.0), rtol=1e-5)


@quick
@given(designs(min_rows=15, max_sharpness=1.5), st.integers(0, 2**32 - 1))
def test_the_order_of_rows_does_not_matter(design, seed):
    probs, codes = design
    order = np.random.default_rng(seed).permutation(len(codes))
    classes = range(probs.shape[1])
    first = quiet_fit(probs, codes, classes=classes)
    other = quiet_fit(probs[order], codes[order], classes=classes)
    assert other.statistic == pytest.approx(first.statistic, rel=1e-9, abs=1e-9)
    assert other.separated == first.separated


def test_logits_may_be_shifted_row_by_row():
    logits = np.log(TOY_X) + np.linspace(-50.0, 50.0, 16)[:, None]
    found = fit(TOY_X, TOY_Y)
    np.testing.assert_allclose(fit(None, TOY_Y, logits=logits).theta, found.theta, rtol=1e-9)
    mapped = found.recalibrate(logits=logits)
    np.testing.assert_allclose(mapped, found.recalibrate(TOY_X), rtol=1e-12)


def test_the_truth_lies_within_its_standard_errors():
    rng = np.random.default_rng(8)
    probs = simplex(rng, 40_000, 3, 1.5)
    delta, gamma = np.array([1.5, 0.7]), np.array([0.6, 1.3])
    found = fit(probs, draw(power_formula(probs, delta, gamma), rng))
    truth = np.concatenate([np.log(delta), gamma])
    se = np.sqrt(np.diagonal(found.cov_theta))
    assert np.abs((found.theta - truth) / se).max() < 4.0
    assert se.max() < 0.05


# --- results


def test_confidence_interval_by_hand():
    # Wald on the tau scale: .30894668 -/+ 1.959963985 * .78689798, exponentiated for delta
    found = fit(TOY_X, TOY_Y)
    intervals = found.confidence_interval()
    reach = 1.959963985 * np.array([-0.78689798, 0.78689798])
    np.testing.assert_allclose(intervals.tau[0], 0.30894668 + reach, rtol=1e-6)
    np.testing.assert_allclose(intervals.delta[0], np.exp(0.30894668 + reach), rtol=1e-6)
    wide, narrow = found.confidence_interval(0.99), found.confidence_interval(0.5)
    assert (np.diff(wide.gamma) > np.diff(intervals.gamma)).all()
    assert (np.diff(narrow.gamma) < np.diff(intervals.gamma)).all()


@pytest.mark.parametrize(
    ("options", "rule", "center"),
    [
        ({}, "given", "identity"),
        ({"penalty": "auto", "center": "temperature"}, "auto", "temperature"),
        ({"penalty": "firth"}, "firth", "identity"),
    ],
)
def test_from_dict_restores_the_fit(options, rule, center):
    found = fit_predictions(TOY.with_baseline(0), **options)
    again = MCLLOFit.from_dict(json.loads(json.dumps(found.to_dict())))
    np.testing.assert_array_equal(again.recalibrate(TOY_X), found.recalibrate(TOY_X))
    np.testing.assert_array_equal(again.se_delta, found.se_delta)
    assert again.to_dict() == found.to_dict()
    assert (again.penalty_rule, again.center) == (rule, center)
    assert again.center_gamma == pytest.approx(1.0 if center == "identity" else 1.38386, abs=1e-5)


def test_from_dict_reads_files_of_the_first_versions():
    content = fit(TOY_X, TOY_Y, penalty=1.0).to_dict()
    for name in ("penalty_rule", "center", "center_gamma", "separated_classes"):
        del content[name]
    again = MCLLOFit.from_dict(content)
    assert (again.penalty_rule, again.center, again.center_gamma) == ("given", "identity", 1.0)
    assert again.separated_classes == ()


def test_results_say_what_matters():
    found = fit(TOY_X, TOY_Y, baseline=0)
    assert "statistic=1.12508, df=4, converged=True, separated=False" in repr(found)
    intervals = found.confidence_interval()
    assert (intervals.method, intervals.compared) == ("wald", (1, 2))
    content = json.loads(json.dumps(intervals.to_dict(), allow_nan=False))
    assert content["gamma"] == intervals.gamma.tolist()


def test_none_for_nan():
    mixed = {"a": [1.0, float("nan")], "b": (float("inf"), {"c": 2}), "d": "word"}
    assert none_for_nan(mixed) == {"a": [1.0, None], "b": [None, {"c": 2}], "d": "word"}


# --- errors


NOT_FINITE = "penalty must be finite and not negative"
NO_PENALTY = "penalty must be a number, 'auto' or 'firth'"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        *(({"penalty": value}, NOT_FINITE) for value in (-1.0, float("nan"), float("inf"))),
        *(({"penalty": value}, NO_PENALTY) for value in ("ridge", "Auto", "")),
        ({"penalty": 1.0, "center": "zero"}, "center must be 'identity' or 'temperature'"),
    ],
)
def test_penalties_that_are_none(options, words):
    with pytest.raises(InputError, match=words):
        fit_predictions(TOY, **options)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 95.0])
def test_a_level_must_lie_between_0_and_1(level):
    for intervals in (fit(TOY_X, TOY_Y).confidence_interval, partial(profile_intervals, TOY)):
        with pytest.raises(InputError, match=r"level must lie in \(0, 1\)"):
            intervals(level=level)


# --- estimates


def end_of(predictions, penalty=0.0):
    return estimate(FreeLikelihood.of(predictions), predictions, penalty, "identity")


def left(predictions, penalty=0.0):
    return information_left(end_of(predictions, penalty), FreeLikelihood.of(predictions))


@pytest.mark.parametrize("penalty", [0.0, 1.0, "auto", "firth"])
def test_values_are_without_penalty(penalty):
    end = end_of(TOY, penalty)
    value = direct_nll(end.solution.x, log_odds_of(TOY_X), TOY_Y)
    assert end.value == pytest.approx(value, abs=1e-9)
    # methods specification 0.4, TOY: negative log likelihood and its gradient at the identity
    assert end.null.value == pytest.approx(12.6033816017, rel=1e-10)
    np.testing.assert_allclose(end.null.gradient, [-0.8, 0.8, -0.77466884, -0.89888965], atol=1e-8)


def test_information_vanishes_where_there_is_no_maximum():
    assert left(PERFECT) < FLAT < COLLAPSED
    assert 0.1 < left(TOY) < 1.0
    assert left(PERFECT, 1.0) == left(PERFECT, "firth") == 1.0


def test_information_left_by_hand():
    # constant log odds 0: tau alone, H = n g (1 - g); at the identity g = 1/2, at the estimate 1/5
    predictions = Predictions.from_arrays(np.full((5, 2), 0.5), [0, 1, 1, 1, 1])
    assert left(predictions) == pytest.approx((0.2 * 0.8) / 0.25, rel=1e-6)


@pytest.mark.parametrize("penalty", [0.0, 2.0, "firth"])
def test_the_objective_is_stationary_at_the_estimate(penalty):
    likelihood, end = FreeLikelihood.of(TOY), end_of(TOY, penalty)
    objective = objective_of(likelihood, TOY, end.penalty, end.rule, end.center_gamma)
    kinds = {0.0: FreeLikelihood, 2.0: Ridge, "firth": FirthObjective}
    assert isinstance(objective, kinds[penalty])
    np.testing.assert_allclose(objective(end.solution.x).gradient, 0.0, atol=1e-5)


def test_a_covariance_by_hand():
    free, diagonal = np.array([True, True]), np.diag([4.0, 2.0])
    np.testing.assert_array_equal(covariance(diagonal, free, True), np.diag([0.25, 0.5]))
    assert np.isnan(covariance(diagonal, free, False)).all()  # not determined
    free = np.array([True, False, True])  # a fixed parameter has none
    found = covariance(diagonal, free, True)
    assert np.isnan(found[1]).all()
    assert np.isnan(found[:, 1]).all()
    np.testing.assert_array_equal(found[np.ix_(free, free)], np.diag([0.25, 0.5]))


# --- maps


quick_map = settings(deadline=None, max_examples=50)
CLASSES = ("a", "b", "c")
TAU_A, GAMMA_A = np.array([0.2, -0.3]), np.array([0.8, 1.5])
FIRST = MCLLOMap(TAU_A, GAMMA_A, CLASSES, "c")
SECOND = MCLLOMap(np.array([-0.1, 0.4]), np.array([1.2, 0.7]), CLASSES, "c")


def random_map(data, c, baseline):
    delta, gamma = data.draw(maps(c - 1))
    return MCLLOMap(np.log(delta), gamma, tuple(range(c)), baseline)


def test_the_identity_changes_nothing_but_zeros():
    same = MCLLOMap(np.zeros(2), np.ones(2), CLASSES, "b")
    np.testing.assert_allclose(same.recalibrate(TOY_X), TOY_X, rtol=1e-13)
    # (0, .5, .5) becomes (1e-6, .5, .5) / (1 + 1e-6)
    rows = same.recalibrate([[0.0, 0.5, 0.5]])
    assert rows[0, 0] == pytest.approx(1e-6 / (1.0 + 1e-6), rel=1e-9)


def test_by_hand():
    # gamma = 2 squares the odds against the last class: (.6, .3, .1) -> (36, 9, 1) / 46
    double = MCLLOMap(np.zeros(2), np.full(2, 2.0), CLASSES, "c")
    expected = np.array([[36.0, 9.0, 1.0]]) / 46.0
    np.testing.assert_allclose(double.recalibrate([[0.6, 0.3, 0.1]]), expected, rtol=1e-13)
    # against the first class: odds 1/2 and 1/6, squared: (36, 9, 1) / 46 again
    other = MCLLOMap(np.zeros(2), np.full(2, 2.0), CLASSES, "a")
    np.testing.assert_allclose(other.recalibrate([[0.6, 0.3, 0.1]]), expected, rtol=1e-13)


def test_names_and_log_odds_against_the_baseline_in_column_order():
    middle = MCLLOMap(TAU_A, GAMMA_A, CLASSES, "b")
    assert middle.baseline_index == 1
    assert middle.compared == ("a", "c")
    np.testing.assert_allclose(middle.delta, np.exp(TAU_A))
    np.testing.assert_array_equal(middle.theta, [0.2, -0.3, 0.8, 1.5])
    # (.7, .2, .1) against the middle class: log 3.5 and log 0.5
    odds = middle.log_odds(read_simplex(CLASSES, TOY_X))
    assert odds.shape == (2, len(TOY_X))
    np.testing.assert_allclose(odds[:, 0], np.log([3.5, 0.5]), rtol=1e-13)


@pytest.mark.parametrize("baseline", [0, 1, 2])
def test_equals_the_power_formula_for_every_baseline(baseline):
    order = [j for j in range(3) if j != baseline] + [baseline]
    expected = np.empty_like(TOY_X)
    expected[:, order] = power_formula(TOY_X[:, order], np.exp(TAU_A), GAMMA_A)
    ours = MCLLOMap(TAU_A, GAMMA_A, CLASSES, CLASSES[baseline]).recalibrate(TOY_X)
    np.testing.assert_allclose(ours, expected, rtol=1e-12)


def test_toy_composition_and_inverse():
    # methods specification 0.4: theta_a then theta_b is (.14, .19, .96, 1.05); inverse of theta_a
    np.testing.assert_allclose(FIRST.compose(SECOND).theta, [0.14, 0.19, 0.96, 1.05], rtol=1e-12)
    np.testing.assert_allclose(FIRST.inverse().theta, [-0.25, 0.2, 1.25, 2 / 3], rtol=1e-12)
    np.testing.assert_allclose(
        FIRST.compose(SECOND).recalibrate(TOY_X),
        SECOND.recalibrate(FIRST.recalibrate(TOY_X)),
        rtol=1e-12,
    )


@quick_map
@given(designs(max_sharpness=2.0), st.data())
def test_group_laws(design, data):
    probs, _ = design
    c = probs.shape[1]
    baseline = data.draw(st.integers(0, c - 1))
    a, b, d = (random_map(data, c, baseline) for _ in range(3))
    left, right = a.compose(b).compose(d), a.compose(b.compose(d))
    np.testing.assert_allclose(left.theta, right.theta, rtol=1e-10, atol=1e-12)
    unit = np.concatenate([np.zeros(c - 1), np.ones(c - 1)])
    np.testing.assert_allclose(a.compose(a.inverse()).theta, unit, atol=1e-12)
    np.testing.assert_allclose(a.inverse().compose(a).theta, unit, atol=1e-12)
    np.testing.assert_allclose(a.inverse().inverse().theta, a.theta, rtol=1e-12, atol=1e-14)
    back = a.inverse().recalibrate(a.recalibrate(probs), clip=0.0)
    np.testing.assert_allclose(back, probs, atol=1e-8)


@quick_map
@given(designs(max_sharpness=2.0), st.data())
def test_two_maps_in_turn_equal_their_composition(design, data):
    probs, _ = design
    c = probs.shape[1]
    a, b = (random_map(data, c, c - 1) for _ in range(2))
    in_turn = b.recalibrate(a.recalibrate(probs), clip=0.0)
    np.testing.assert_allclose(a.compose(b).recalibrate(probs), in_turn, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("far", [700.0, 1e5])
def test_extreme_rows_stay_on_the_simplex(far):
    rows = FIRST.recalibrate(logits=[[far, 0.0, -far], [-far, far, 0.0], [0.0, -far, far]])
    assert np.isfinite(rows).all()
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=1e-13)
    half = MCLLOMap(np.zeros(1), np.array([0.5]), (0, 1), 1)
    assert half.recalibrate([[1e-300, 1.0]])[0, 0] == pytest.approx(1e-150, rel=1e-12)


def test_a_frame_is_matched_by_column_names_and_not_changed():
    frame = pd.DataFrame(TOY_X[:, [2, 0, 1]], columns=["c", "a", "b"])
    probs = TOY_X.copy()
    np.testing.assert_array_equal(FIRST.recalibrate(frame), FIRST.recalibrate(probs))
    np.testing.assert_array_equal(probs, TOY_X)
    np.testing.assert_array_equal(frame, TOY_X[:, [2, 0, 1]])


def test_to_dict_is_plain_json():
    parts = {"classes": ["a", "b", "c"], "baseline": "c", "tau": [0.2, -0.3], "gamma": [0.8, 1.5]}
    assert json.loads(json.dumps(FIRST.to_dict())) == parts


def test_maps_without_a_composition_or_an_inverse():
    other = MCLLOMap(TAU_A, GAMMA_A, CLASSES, "a")
    with pytest.raises(InputError, match="share classes and baseline; got baselines 'c' and 'a'"):
        FIRST.compose(other)
    flat = MCLLOMap(TAU_A, np.array([1.0, 0.0]), CLASSES, "c")
    with pytest.raises(InputError, match="gamma = 0 has no inverse; class 'b'"):
        flat.inverse()


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({"probs": [[0.5, 0.5]]}, "a column for each of the 3 classes; got 2"),
        ({}, "exactly one of probs and logits"),
        ({"probs": TOY_X, "logits": np.log(TOY_X)}, "exactly one of probs and logits"),
        ({"probs": [[0.5, 0.4, 0.0]]}, "must sum to 1"),
        ({"probs": [[0.5, 0.5, 0.0]], "clip": 0.0}, "must be positive when clip=0"),
    ],
)
def test_rows_that_are_refused(rows, words):
    for one in (FIRST, AllBaselinesMap(np.eye(3), np.zeros(3), CLASSES)):
        with pytest.raises(InputError, match=words):
            one.recalibrate(**rows)
