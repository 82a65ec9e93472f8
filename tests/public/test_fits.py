"""Estimates, penalties and intervals, as a user sees them."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from data import fitted
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import (
    central_differences,
    designs,
    direct_nll,
    draw,
    log_odds_of,
    maps,
    power_formula,
    sample,
    simplex,
)
from inputs import case
from scipy.optimize import brentq
from scipy.optimize import minimize as scipy_minimize
from scipy.special import chdtrc
from shared_data import LOADERS, load_hockey
from toy import TOY_X, TOY_Y

from mcllo import MCLLOFit, MCLLOMap, Predictions, profile_intervals
from mcllo.exceptions import InputError, SeparationWarning

VGAM = json.loads((Path(__file__).parents[1] / "reference" / "vgam.json").read_text())[
    "sets"
]
ARGMAX = TOY_X.argmax(axis=1)
TOY = Predictions.from_arrays(TOY_X, TOY_Y)


def fit(probs, y, penalty=0.0, **options):
    return fitted(Predictions.from_arrays(probs, y, **options), penalty=penalty)


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
    assert found.se_gamma[0] == pytest.approx(
        np.sqrt(variance) / (2 * np.log(3.0)), rel=1e-8
    )
    assert found.se_delta[0] == pytest.approx(0.5 * found.se_tau[0], rel=1e-12)


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
    assert (found.converged, found.separated, found.separated_classes) == (
        True,
        False,
        (),
    )
    assert found.df == 4


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
    assert (found.converged, found.separated, found.separated_classes) == (
        True,
        False,
        (),
    )
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
    found = fitted(load_hockey(column))
    assert found.delta[0] == pytest.approx(delta, abs=6e-9)
    assert found.gamma[0] == pytest.approx(gamma, abs=6e-9)
    assert found.statistic == pytest.approx(statistic, abs=6e-9)
    if p is not None:
        assert chdtrc(found.df, found.statistic) == pytest.approx(p, abs=6e-9)
        assert -2.0 * found.log_likelihood_null == pytest.approx(
            1148.63655715, abs=6e-9
        )


@pytest.mark.parametrize("name", sorted(VGAM))
def test_vgam(name):
    # tests/reference/vgam.json, written by tests/reference/vgam_mcllo.R
    expected = VGAM[name]
    found = fitted(LOADERS[name]())
    assert found.n_samples == expected["n"]
    assert found.df == expected["df"]
    assert found.baseline == found.classes[expected["baseline"]]
    for quantity in ("tau", "gamma", "se_tau", "se_gamma"):
        np.testing.assert_allclose(
            getattr(found, quantity), expected[quantity], rtol=1e-6
        )
    for quantity in ("log_likelihood", "log_likelihood_null", "statistic"):
        assert getattr(found, quantity) == pytest.approx(expected[quantity], rel=1e-9)
    assert found.converged


def test_perfect_labels_have_no_maximum():
    with pytest.warns(
        SeparationWarning, match=r"does not exist.*penalty=1\.0"
    ) as caught:
        found = fit(TOY_X, ARGMAX)
    assert len(caught) == 1
    assert "separate the labels: class 0, 1, 2)" in caught[0].message.text()
    assert "statistic" not in str(caught[0].message)  # an estimator says it as well
    assert (found.converged, found.separated, found.separated_classes) == (
        False,
        True,
        (0, 1, 2),
    )
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
    with pytest.warns(SeparationWarning) as caught:
        found = fit(probs, names[probs.argmax(axis=1)], classes=names.tolist())
    assert "class 'a', 'b', 'c' and 2 more)" in caught[0].message.text()
    assert caught[0].message.numbers == {"classes": tuple("abcde")}
    assert found.separated_classes == tuple("abcde")


def test_an_absent_baseline_has_no_maximum():
    # tau and gamma of the others go to infinity together; what is left is a logit of class 0
    # against 1 on (1, l_0, l_1), whose maximum is the supremum
    labels = np.where(TOY_Y == 2, 0, TOY_Y)
    with pytest.warns(SeparationWarning, match="no row has class 2"):
        found = fit(TOY_X, labels, classes=range(3), baseline=2)
    odds = log_odds_of(TOY_X)
    regressors = np.vstack([np.ones(16), odds])
    sign = np.where(labels == 0, 1.0, -1.0)
    rest = scipy_minimize(
        lambda b: np.logaddexp(0.0, -sign * (b @ regressors)).sum(),
        np.zeros(3),
        tol=1e-10,
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


def test_weights_of_zero_do_not_count_as_rows_of_a_class():
    weight = (TOY_Y != 1).astype(float)
    with pytest.warns(SeparationWarning, match="no row has class 1"):
        found = fit(TOY_X, TOY_Y, sample_weight=weight)
    assert found.separated


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
    assert found.tau[0] == pytest.approx(
        np.log(counts[0] / counts[2]) - np.log(2.0), rel=1e-8
    )


def test_one_row():
    with pytest.warns(SeparationWarning):
        found = fit([[0.2, 0.5, 0.3]], [1], classes=range(3))
    assert found.df == 2
    assert found.separated
    assert found.statistic == pytest.approx(-2.0 * np.log(0.5), abs=1e-8)


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


def test_logits_may_be_shifted_row_by_row():
    logits = np.log(TOY_X) + np.linspace(-50.0, 50.0, 16)[:, None]
    found = fit(TOY_X, TOY_Y)
    np.testing.assert_allclose(
        fit(None, TOY_Y, logits=logits).theta, found.theta, rtol=1e-9
    )
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


def test_confidence_interval_by_hand():
    # Wald on the tau scale: .30894668 -/+ 1.959963985 * .78689798, exponentiated for delta
    found = fit(TOY_X, TOY_Y)
    intervals = found.confidence_interval()
    reach = 1.959963985 * np.array([-0.78689798, 0.78689798])
    np.testing.assert_allclose(intervals.tau[0], 0.30894668 + reach, rtol=1e-6)
    np.testing.assert_allclose(
        intervals.delta[0], np.exp(0.30894668 + reach), rtol=1e-6
    )
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
    found = fitted(TOY.with_baseline(0), **options)
    again = MCLLOFit.from_dict(json.loads(json.dumps(found.to_dict())))
    np.testing.assert_array_equal(again.recalibrate(TOY_X), found.recalibrate(TOY_X))
    np.testing.assert_array_equal(again.se_delta, found.se_delta)
    assert again.to_dict() == found.to_dict()
    assert (again.penalty_rule, again.center) == (rule, center)
    assert again.center_gamma == pytest.approx(
        1.0 if center == "identity" else 1.38386, abs=1e-5
    )


def test_from_dict_reads_files_of_the_first_versions():
    content = fit(TOY_X, TOY_Y, penalty=1.0).to_dict()
    for name in ("penalty_rule", "center", "center_gamma", "separated_classes"):
        del content[name]
    again = MCLLOFit.from_dict(content)
    assert (again.penalty_rule, again.center, again.center_gamma) == (
        "given",
        "identity",
        1.0,
    )
    assert again.separated_classes == ()


def test_results_say_what_matters():
    found = fit(TOY_X, TOY_Y, baseline=0)
    assert "statistic=1.12508, df=4, converged=True, separated=False" in repr(found)
    intervals = found.confidence_interval()
    assert (intervals.method, intervals.compared) == ("wald", (1, 2))
    content = json.loads(json.dumps(intervals.to_dict(), allow_nan=False))
    assert content["gamma"] == intervals.gamma.tolist()


def test_penalties_that_are_none():
    for options, words in (
        ({"penalty": -1.0}, "penalty must be finite and not negative"),
        ({"penalty": float("nan")}, "penalty must be finite and not negative"),
        ({"penalty": "ridge"}, "penalty must be a number, 'auto' or 'firth'"),
        (
            {"penalty": 1.0, "center": "zero"},
            "center must be 'identity' or 'temperature'",
        ),
    ):
        with case(options), pytest.raises(InputError, match=words):
            fitted(TOY, **options)


def test_a_level_must_lie_between_0_and_1():
    for level in (0.0, 1.0, 95.0):
        for intervals in (
            fit(TOY_X, TOY_Y).confidence_interval,
            partial(profile_intervals, TOY),
        ):
            with (
                case(level),
                pytest.raises(InputError, match=r"level must lie in \(0, 1\)"),
            ):
                intervals(level=level)


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
    np.testing.assert_allclose(
        double.recalibrate([[0.6, 0.3, 0.1]]), expected, rtol=1e-13
    )
    # against the first class: odds 1/2 and 1/6, squared: (36, 9, 1) / 46 again
    other = MCLLOMap(np.zeros(2), np.full(2, 2.0), CLASSES, "a")
    np.testing.assert_allclose(
        other.recalibrate([[0.6, 0.3, 0.1]]), expected, rtol=1e-13
    )


def test_equals_the_power_formula_for_every_baseline():
    for baseline in range(3):
        order = [j for j in range(3) if j != baseline] + [baseline]
        expected = np.empty_like(TOY_X)
        expected[:, order] = power_formula(TOY_X[:, order], np.exp(TAU_A), GAMMA_A)
        ours = MCLLOMap(TAU_A, GAMMA_A, CLASSES, CLASSES[baseline]).recalibrate(TOY_X)
        with case(baseline):
            np.testing.assert_allclose(ours, expected, rtol=1e-12)


def test_toy_composition_and_inverse():
    # methods specification 0.4: theta_a then theta_b is (.14, .19, .96, 1.05); inverse of theta_a
    np.testing.assert_allclose(
        FIRST.compose(SECOND).theta, [0.14, 0.19, 0.96, 1.05], rtol=1e-12
    )
    np.testing.assert_allclose(
        FIRST.inverse().theta, [-0.25, 0.2, 1.25, 2 / 3], rtol=1e-12
    )
    np.testing.assert_allclose(
        FIRST.compose(SECOND).recalibrate(TOY_X),
        SECOND.recalibrate(FIRST.recalibrate(TOY_X)),
        rtol=1e-12,
    )


@settings(deadline=None, max_examples=30)
@given(designs(max_sharpness=2.0), st.data())
def test_two_maps_in_turn_equal_their_composition(design, data):
    probs, _ = design
    c = probs.shape[1]
    a, b = (random_map(data, c, c - 1) for _ in range(2))
    in_turn = b.recalibrate(a.recalibrate(probs), clip=0.0)
    np.testing.assert_allclose(
        a.compose(b).recalibrate(probs), in_turn, rtol=1e-7, atol=1e-12
    )


@pytest.mark.parametrize("far", [700.0, 1e5])
def test_extreme_rows_stay_on_the_simplex(far):
    rows = FIRST.recalibrate(
        logits=[[far, 0.0, -far], [-far, far, 0.0], [0.0, -far, far]]
    )
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
    parts = {
        "classes": ["a", "b", "c"],
        "baseline": "c",
        "tau": [0.2, -0.3],
        "gamma": [0.8, 1.5],
    }
    assert json.loads(json.dumps(FIRST.to_dict())) == parts


def test_maps_without_a_composition_or_an_inverse():
    other = MCLLOMap(TAU_A, GAMMA_A, CLASSES, "a")
    with pytest.raises(
        InputError, match="share classes and baseline; got baselines 'c' and 'a'"
    ):
        FIRST.compose(other)
    flat = MCLLOMap(TAU_A, np.array([1.0, 0.0]), CLASSES, "c")
    with pytest.raises(InputError, match="gamma = 0 has no inverse; class 'b'"):
        flat.inverse()


def predictions_of(probs, y, **options):
    return Predictions.from_arrays(
        probs, y, classes=range(np.shape(probs)[1]), **options
    )


def test_an_endless_penalty_leaves_the_centre_and_none_forgets_it():
    for center, gamma in (("identity", 1.0), ("temperature", 1.38386)):
        found = fitted(TOY, penalty=1e9, center=center)
        np.testing.assert_allclose(found.theta, [0.0, 0.0, gamma, gamma], atol=1e-5)
    found = fitted(TOY, center="temperature")
    np.testing.assert_array_equal(found.theta, fitted(TOY).theta)


def test_calibrated_rows_are_left_alone_and_distorted_rows_are_not():
    probs, labels = sample(300, 3, 4, 1.5)
    sharp = probs**3 / (probs**3).sum(axis=1, keepdims=True)
    calm = fitted(predictions_of(probs, labels), penalty="auto")
    moved = fitted(predictions_of(sharp, labels), penalty="auto")
    assert calm.penalty > 30.0 > moved.penalty
    tempered = fitted(
        predictions_of(sharp, labels), penalty="auto", center="temperature"
    )
    assert tempered.center_gamma == pytest.approx(1 / 3, abs=0.1)
    assert tempered.penalty > moved.penalty


def test_no_exponent_means_the_identity():
    with pytest.warns(SeparationWarning, match="pulls to the identity instead"):
        found = fitted(predictions_of(TOY_X, ARGMAX), penalty=1.0, center="temperature")
    assert found.center == "identity"
    np.testing.assert_allclose(
        found.theta, [0.129659, -0.109633, 2.275252, 1.926731], atol=6e-7
    )


def test_an_absent_class_has_a_finite_estimate():
    labels = np.where(TOY_Y == 1, 0, TOY_Y)
    found = fitted(
        predictions_of(TOY_X, labels), penalty="firth"
    )  # no warning: an error
    assert found.converged
    assert np.abs(found.theta).max() < 10.0


def test_constant_log_odds_fix_gamma_penalty():
    # 30 of 40 labels are class 0 at constant log odds: tau alone moves, log|H| = log(n g (1 - g)),
    # so n (g - 3/4) = (1 - 2 g) / 2 and g = 30.5 / 41 (half a row is added to each class)
    probs = np.full((40, 2), 0.5)
    found = fitted(predictions_of(probs, np.repeat([0, 1], [30, 10])), penalty="firth")
    assert found.tau[0] == pytest.approx(np.log(30.5 / 10.5), abs=1e-8)
    assert found.gamma[0] == 1.0
    assert found.df == 1


def test_saturated_rows_do_not_stop_it():
    logits = np.column_stack([np.tile([700.0, -700.0], 5), np.zeros(10)])
    predictions = Predictions.from_arrays(None, np.tile([0, 1], 5), logits=logits)
    found = fitted(predictions, penalty="firth")
    assert found.converged
    # as in the first example: 10 (g - 1) = 1 - 2 g, so g = 11 / 12 at log odds 700
    assert found.gamma[0] == pytest.approx(np.log(11.0) / 700.0, rel=1e-6)


NO_LAST = np.where(TOY_Y == 2, 0, TOY_Y)
Q95 = 3.841458820694124  # of chi-square on one degree of freedom


def ends_of(intervals):
    return np.vstack([intervals.tau, intervals.gamma])


def test_one_proportion_by_hand():
    # constant log odds 0: tau alone, 3 of 10 labels are class 0. The interval of p solves
    # 2 [l(.3) - l(p)] = q with l(p) = 3 log p + 7 log(1 - p); tau = log(p / (1 - p))
    def deviance(p):
        return 2 * (3 * np.log(0.3 / p) + 7 * np.log(0.7 / (1 - p))) - Q95

    low, high = brentq(deviance, 1e-6, 0.3), brentq(deviance, 0.3, 1 - 1e-6)
    found = profile_intervals(np.full((10, 2), 0.5), np.repeat([0, 1], [3, 7]))
    np.testing.assert_allclose(
        found.tau, [np.log([low / (1 - low), high / (1 - high)])], atol=1e-6
    )
    np.testing.assert_allclose(
        found.delta, [[low / (1 - low), high / (1 - high)]], atol=1e-6
    )
    assert np.isnan(found.gamma).all()
    assert found.method == "profile"
    assert found.compared == (0,)


def test_no_label_of_a_class_leaves_one_end():
    # 0 of 10 labels: l(p) = 10 log(1 - p), so -20 log(1 - p) = q and tau reaches from -infinity
    found = profile_intervals(
        np.full((10, 2), 0.5), np.ones(10, dtype=int), classes=(0, 1)
    )
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


def test_toy_profile():
    # methods specification 0.4: 95 % profile intervals
    found = profile_intervals(TOY_X, TOY_Y)
    np.testing.assert_allclose(
        found.tau, [[-1.31151, 1.97105], [-2.30759, 1.33335]], atol=6e-6
    )
    np.testing.assert_allclose(
        found.gamma, [[0.28154, 2.71593], [0.37442, 3.50425]], atol=6e-6
    )
    np.testing.assert_allclose(found.delta, np.exp(found.tau))


def test_many_rows_give_walds_intervals():
    probs, y = sample(20_000, 3, 0, 1.0)
    predictions = Predictions.from_arrays(probs, y)
    wald = fitted(predictions).confidence_interval()
    found = profile_intervals(predictions)
    np.testing.assert_allclose(ends_of(found), ends_of(wald), atol=2e-3)


@pytest.mark.parametrize("labels", [ARGMAX, NO_LAST, TOY_Y])
def test_firth_intervals_are_finite(labels):
    predictions = Predictions.from_arrays(TOY_X, labels, classes=range(3))
    fit = fitted(predictions, penalty="firth")
    ends = ends_of(profile_intervals(predictions, penalty="firth"))
    assert np.isfinite(ends).all()
    assert (ends[:, 0] < fit.theta).all()
    assert (fit.theta < ends[:, 1]).all()


def test_the_baseline_of_the_fit_is_used():
    predictions = Predictions.from_arrays(TOY_X, TOY_Y)
    fit = fitted(predictions.with_baseline(0))
    found = profile_intervals(predictions, fit=fit)
    np.testing.assert_array_equal(
        ends_of(found), ends_of(profile_intervals(TOY_X, TOY_Y, baseline=0))
    )
    assert found.compared == (1, 2)
    few = fitted(Predictions.from_arrays(TOY_X[:15], TOY_Y[:15]))
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
