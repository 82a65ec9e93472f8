"""What holds for every function that tests predictions or judges them."""

import json
import math

import numpy as np
import pytest
from data import fitted
from hypothesis import assume, given, settings
from independent import (
    designs,
    direct_nll,
    draw,
    log_odds_of,
    power_formula,
    sample,
    simplex,
)
from inputs import case, refusal
from scipy.optimize import brentq
from scipy.stats import chi2
from shared_data import load_cifar10_vgg16_keras, load_hockey
from toy import TOY_X, TOY_Y

import mcllo
from mcllo import (
    BootstrapFits,
    Predictions,
    assess,
    baseline_sensitivity,
    boldness_recalibrate,
    bootstrap_fits,
    calibration_posterior,
    calibration_test,
    class_tests,
    nested_models,
    omnibus_test,
    profile_intervals,
    robust_test,
    zero_sensitivity,
)
from mcllo.exceptions import InputError, SeparationWarning

EXACT = {"method": "exact", "n_resamples": 99, "seed": 4}
CALLS = {
    "calibration_test": EXACT,
    "calibration_test, score": EXACT | {"statistic": "score"},
    "calibration_test, auto": {"baseline": "auto", "n_resamples": 99, "seed": 4},
    "robust_test": {"n_resamples": 99, "seed": 4},
    "omnibus_test": {"n_resamples": 99, "seed": 4},
    "bootstrap_fits": {"n_resamples": 20, "seed": 4},
    "calibration_posterior": {},
    "boldness_recalibrate": {},
}
every = pytest.mark.parametrize("name", CALLS)
DRAWING = [name for name in CALLS if "seed" in CALLS[name]]


def run(name, *data, **options):
    return getattr(mcllo, name.split(",")[0])(*data, **CALLS[name] | options)


def numbers(content, path=""):
    """Return all values of a dictionary by their path, but for the number of rows."""
    if not isinstance(content, (dict, list)):
        return {} if path.endswith("n_samples") else {path: content}
    items = content.items() if isinstance(content, dict) else enumerate(content)
    return {
        k: v for key, value in items for k, v in numbers(value, f"{path}.{key}").items()
    }


@every
def test_whole_weights_are_repeated_rows(name):
    probs, y = sample(80, 3, 6)
    weight = np.resize([1, 2, 0, 3], 80)
    again = np.repeat(np.arange(80), weight)
    weighted = numbers(run(name, probs, y, sample_weight=weight).to_dict())
    repeated = numbers(run(name, probs[again], y[again]).to_dict())
    assert weighted == pytest.approx(repeated, abs=1e-6)


@every
def test_dictionaries_are_strict_json_and_a_predictions_stands_for_its_arrays(name):
    probs = TOY_X.copy()
    found = run(name, probs, TOY_Y)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False)) == found.to_dict()
    assert run(name, Predictions.from_arrays(TOY_X, TOY_Y)).to_dict() == found.to_dict()
    np.testing.assert_array_equal(probs, TOY_X)  # the input is not changed


@pytest.mark.parametrize("name", DRAWING)
def test_the_seed_decides(name):
    first = run(name, TOY_X, TOY_Y)
    drawn = run(name, TOY_X, TOY_Y, seed=np.random.default_rng(3))
    assert first.seed == 4
    assert drawn.seed != 4
    assert first.to_dict() != drawn.to_dict()
    assert run(name, TOY_X, TOY_Y, seed=drawn.seed).to_dict() == drawn.to_dict()


@pytest.mark.parametrize(
    "name", [n for n in CALLS if n not in ("bootstrap_fits", "omnibus_test")]
)
@settings(deadline=None, max_examples=10)
@given(designs(min_rows=25, max_rows=60, max_classes=2, max_sharpness=2.0))
def test_two_classes_can_be_swapped(name, design):
    probs, codes = design
    keys = {"statistic", "df", "pvalue", "posterior", "boldness"}
    options = {} if "auto" in name else {"baseline": 0}
    try:
        found = run(name, probs, codes)
        others = (
            run(name, probs, codes, **options),
            run(name, probs[:, ::-1], 1 - codes),
        )
    except InputError:  # separated
        assume(False)
    for key in keys & set(found.to_dict()):
        expected = pytest.approx(getattr(found, key), rel=1e-5, abs=1e-6)
        assert getattr(others[0], key) == expected, key
        if key != "pvalue" or "seed" not in CALLS[name]:
            assert getattr(others[1], key) == expected, key


def test_draws_and_seeds_are_whole_numbers():
    for name in DRAWING:
        for options, rule in (
            ({"n_resamples": 0}, "n_resamples must be at least 1; got 0"),
            ({"n_resamples": 1.5}, "n_resamples must be a whole num"),
            ({"seed": -1}, "seed must be a whole number >= 0"),
            ({"seed": "x"}, "seed must be a whole number >= 0"),
        ):
            with case((name, options)), pytest.raises(InputError, match=rule):
                run(name, TOY_X, TOY_Y, **options)


GROUPS = np.arange(16) // 3  # 5 groups of 3 rows and one of 1
WEIGHT = np.array([1, 2, 3, 1, 1, 2, 4, 1, 2, 1, 1, 3, 1, 2, 1, 2])


def test_label_counts_with_their_rows_as_groups_are_repeated_rows():
    counts = np.array([[3, 1, 0], [0, 2, 0], [1, 0, 4], [0, 0, 1], [2, 2, 1]])
    probs = TOY_X[:5]
    rows, labels = np.repeat(np.arange(5), 3), np.tile(np.arange(3), 5)
    rows, labels = (np.repeat(values, counts.ravel()) for values in (rows, labels))
    a = robust_test(probs, counts, groups=np.arange(5), seed=1)
    b = robust_test(probs[rows], labels, groups=rows, seed=1)
    assert a.to_dict() == pytest.approx(b.to_dict())
    assert a.n_groups == 5


def test_for_two_classes_the_baseline_does_not_matter():
    probs = np.column_stack([TOY_X[:, 0], 1 - TOY_X[:, 0]])
    y = (TOY_Y != 0).astype(int)
    first = robust_test(probs, y, baseline=0, groups=GROUPS, seed=1)
    last = robust_test(probs, y, baseline=1, groups=GROUPS, seed=1)
    assert first.to_dict() == pytest.approx(last.to_dict())


def test_auto_flips_few_groups_and_not_many():
    rng = np.random.default_rng(0)
    probs, y = rng.dirichlet([1, 1], 1200), rng.integers(0, 2, 1200)
    assert robust_test(probs[:1000], y[:1000], seed=1).method == "flip"
    many = robust_test(probs, y)
    assert (many.method, many.reason, many.n_resamples) == ("f", "1,200 rows", 0)


INDEPENDENT = (
    nested_models,
    class_tests,
    calibration_posterior,
    boldness_recalibrate,
    omnibus_test,
    profile_intervals,
    baseline_sensitivity,
    bootstrap_fits,
)


def test_fractions_of_rows_are_not_tested():
    for judge in (
        assess,
        calibration_test,
        robust_test,
        zero_sensitivity,
        *INDEPENDENT,
    ):
        with case(judge.__name__):
            error = str(refusal(judge, TOY_X, TOY_Y, sample_weight=WEIGHT / 2))
            assert error.startswith(
                "sample_weight must hold whole numbers where weights count rows; "
                "got sample_weight[0]=0.5. "
            )
            assert "pass weight_kind='survey'; if" in error
            assert "weight_kind='importance': both" in error
            held = Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=WEIGHT / 2)
            assert str(refusal(judge, held)) == error


def test_what_assumes_independent_rows_refuses_others():
    options = {"sample_weight": WEIGHT, "weight_kind": "survey"}
    survey = Predictions.from_arrays(TOY_X, TOY_Y, **options)
    grouped = Predictions.from_arrays(TOY_X, TOY_Y, groups=GROUPS)
    for judge in INDEPENDENT:
        with case(judge.__name__):
            error = str(refusal(judge, survey))
            assert "under survey weights, which are no counts. Use assess" in error
            error = str(refusal(judge, grouped))
            assert "in groups, whose rows may depend on each other. Use assess" in error


def test_importance_weights_are_tested_as_survey_weights_are():
    survey, importance = (
        assess(TOY_X, TOY_Y, sample_weight=WEIGHT / 2, weight_kind=kind, seed=1)
        for kind in ("survey", "importance")
    )
    assert importance.test.pvalue == survey.test.pvalue
    assert importance.fit.se_tau.tolist() == survey.fit.se_tau.tolist()
    assert "importance weights" in str(importance)


def test_weighted_rows_say_how_many_they_are_worth():
    weight = np.repeat([1.0, 3.0], 8)  # (8 + 24)^2 / (8 + 72) = 12.8
    test = robust_test(TOY_X, TOY_Y, sample_weight=weight, weight_kind="survey", seed=1)
    assert test.n_effective == pytest.approx(12.8)
    assert test.design_effect == pytest.approx(16 / 12.8)
    assert "16 rows, effectively 12.8, design effect 1.25" in str(test)
    assert test.inconclusive(0.05) == test.obstacle
    assert (
        test.obstacle == "the weights leave 12.8 effective rows; at least 20 are needed"
    )
    assert test.to_dict()["n_effective"] == test.n_effective


TOO_FEW = [
    (3, {}, 0.05, "3 groups give no p-value below 0.25; level 0.05 needs at least 6"),
    (5, {}, 0.05, "5 groups give no p-value below 0.062; level 0.05 needs at least 6"),
    (6, {}, 0.05, ""),
    (6, {}, 0.01, "6 groups give no p-value below 0.031; level 0.01 needs at least 8"),
    (8, {}, 0.01, ""),
    (3, {}, 0.25, ""),
    (
        8,
        {"n_resamples": 9},
        0.05,
        "9 draws give no p-value below 0.10; level 0.05 needs",
    ),
    (3, {"method": "f"}, 0.05, "3 groups give no p-value below"),
]
"""Why a level cannot be reached: flips of g groups give no p-value below 2^(1 - g)."""


def test_groups_that_are_too_few_to_reject():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 1, 1], 48)
    y = [rng.choice(3, p=row) for row in probs]
    for n_groups, options, alpha, words in TOO_FEW:
        with case((n_groups, options, alpha)):
            test = robust_test(
                probs, y, groups=np.arange(48) % n_groups, seed=1, **options
            )
            assert test.inconclusive(alpha).startswith(words)
            assert bool(test.inconclusive(alpha)) == bool(words)
            assert test.smallest_pvalue <= test.pvalue


def test_few_groups_say_what_they_cannot_show():
    test = robust_test(TOY_X, TOY_Y, groups=np.arange(16) % 4, seed=1)
    assert test.limits[0] == "so few can give no p-value below 0.12"
    assert test.reason == "; ".join(["4 groups", *test.limits])
    assert test.pvalue > 0.1


def test_no_surprise_yet_is_no_evidence():
    # Eight sharp rows, all right: every score points one way, so flips alone would give 1 / 128.
    test = robust_test([[0.97, 0.03], [0.03, 0.97]] * 4, [0, 1] * 4, seed=1)
    assert test.pvalue > 0.5
    assert test.limits[-1] == "the p-value of independent rows is larger"


def test_errors():
    with pytest.raises(
        InputError, match="method must be 'auto', 'flip', 'f' or 'draw'; got"
    ):
        robust_test(TOY_X, TOY_Y, method="chi2")
    with pytest.raises(InputError, match="groups= must not be given beside"):
        robust_test(Predictions.from_arrays(TOY_X, TOY_Y), groups=GROUPS)


def test_a_fit_to_its_own_rows_has_only_the_charge():
    # recalibrated by their own estimate, rows have lambda 0: P = n^(d/2) / (1 + n^(d/2))
    fit = fitted(Predictions.from_arrays(TOY_X, TOY_Y))
    found = calibration_posterior(fit.recalibrate(TOY_X), TOY_Y)
    assert found.statistic == pytest.approx(0.0, abs=1e-8)
    assert found.posterior == pytest.approx(256 / 257)


def test_toy():
    # methods specification 0.4 and 6: NLL 12.6033816017 and 12.0302758915, n = 16, d = 4
    found = calibration_posterior(TOY_X, TOY_Y)
    assert found.posterior == pytest.approx(0.99311890, abs=5e-9)
    assert found.bic_calibrated == pytest.approx(2 * 12.6033816017, abs=1e-8)
    assert found.bic_uncalibrated == pytest.approx(
        4 * math.log(16) + 2 * 12.0302758915, abs=1e-8
    )
    assert 2 * found.log_bayes_factor == pytest.approx(
        found.bic_calibrated - found.bic_uncalibrated, abs=1e-10
    )
    assert (found.df, found.n_samples, found.total_weight) == (4, 16, 16.0)
    assert found.pvalue == pytest.approx(0.88687265, abs=1e-8)
    assert found.warning == ""


def test_bic_is_the_nested_models():
    found, rungs = (
        calibration_posterior(TOY_X, TOY_Y),
        nested_models(TOY_X, TOY_Y, method="chi2"),
    )
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


def test_the_baseline_is_the_fits():
    # methods specification 0.4: lambda 1.1250835514 with baseline 0
    found = calibration_posterior(TOY_X, TOY_Y, baseline=0)
    assert found.statistic == pytest.approx(1.1250835514, abs=1e-8)
    assert found.posterior != calibration_posterior(TOY_X, TOY_Y).posterior


def test_separated_labels_are_warned_of():
    with pytest.warns(SeparationWarning, match="does not exist"):
        found = calibration_posterior(TOY_X, TOY_X.argmax(axis=1))
    assert 0.0 < found.posterior < 1.0


@pytest.mark.slow
def test_the_posterior_of_honest_rows_grows_with_their_number():
    # BIC is consistent: labels drawn from the rows. P(chi2_4 > 4 ln n) is 2e-3 for n = 100 and
    # 6e-5 for n = 1000, so in 40 data sets hardly one posterior is below one half.
    rng = np.random.default_rng(11)
    low = []
    for n in (100, 1000):
        probs = simplex(rng, n, 3)
        found = [
            calibration_posterior(probs, draw(probs, rng)).posterior for _ in range(40)
        ]
        assert np.sum(np.array(found) < 0.5) <= 2
        low.append(np.median(found))
    assert low[0] < low[1]


def test_weights_must_count_rows():
    error = refusal(calibration_posterior, TOY_X, TOY_Y, sample_weight=np.eye(16)[0])
    assert "sample_weight must count more than one row for BIC; got 1." in str(error)


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
    fit = fitted(Predictions.from_arrays(TOY_X, TOY_Y))
    np.testing.assert_allclose(found.map.theta, fit.theta, atol=1e-4)
    assert found.boldness == pytest.approx(found.boldness_mle, abs=1e-5)


def test_two_classes_against_a_walk_around_the_boundary():
    probs, codes = sample(150, 2, 5, 0.8)
    found = boldness_recalibrate(probs, codes)
    fit = fitted(Predictions.from_arrays(probs, codes))
    angles = np.linspace(0.0, 2.0 * np.pi, 181)
    directions = np.column_stack([np.cos(angles), np.sin(angles)])
    walk = [spread(on_the_boundary(probs, codes, fit, d)) for d in directions]
    assert max(walk) <= found.boldness + 1e-9
    assert found.boldness == pytest.approx(
        max(walk), rel=4e-4
    )  # one degree off at most


def test_three_classes_against_random_points_of_the_boundary():
    found = boldness_recalibrate(TOY_X, TOY_Y)
    directions = np.random.default_rng(1).normal(size=(150, 4))
    fit = fitted(Predictions.from_arrays(TOY_X, TOY_Y))
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
    assert found.boldness == pytest.approx(
        spread(found.map.recalibrate(TOY_X)), rel=1e-12
    )


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
    assert found.statistic == pytest.approx(
        18 * math.log(2000) - 2 * math.log(19), abs=1e-6
    )
    assert found.pvalue == pytest.approx(chi2.sf(found.statistic, 18), rel=1e-9)
    assert found.pvalue < 1e-15 < 0.5 < found.posterior
    assert found.converged
    assert "so favours calibration although the test rejects it" in str(found)
    assert "d = 18 parameters" in found.warning


def test_boldness_is_printed():
    assert str(boldness_recalibrate(TOY_X, TOY_Y)) == (
        "boldness 0.478 (original 0.273, maximum likelihood 0.351) at posterior probability of "
        "calibration 0.95 (asked: 0.95, prior 0.5)\n"
        "a test of the bold predictions on the same rows gives p = 0.27 (statistic 5.201 on 4 df, "
        "chi-square)"
    )


def test_a_class_whose_log_odds_never_vary():
    # gamma_1 cannot be told from tau_1: 3 parameters, and it stays 1
    rng = np.random.default_rng(3)
    first = rng.uniform(0.05, 0.6, 200)
    probs = np.column_stack([first, 0.4 * (1 - first), 0.6 * (1 - first)])
    found = boldness_recalibrate(probs, draw(probs, rng))
    assert (found.df, found.map.gamma[1]) == (3, 1.0)
    assert found.boldness > found.boldness_mle
    assert found.converged


NO_MAP = "a maximum likelihood map must exist to be made bolder; "


@pytest.mark.parametrize(
    ("probs", "codes", "t", "says", "remedy"),
    [
        (
            TOY_X,
            TOY_Y,
            0.999,
            "t must be smaller than 0.9961",
            "Choose a smaller t or a larger",
        ),
        (
            TOY_X,
            TOY_X.argmax(axis=1),
            0.95,
            NO_MAP + "the log odds separate",
            "penalty=1.0",
        ),
        (
            TOY_X,
            np.where(TOY_Y == 2, 1, TOY_Y),
            0.95,
            NO_MAP + "no row has class 2",
            "penalty=1.0",
        ),
        (
            np.tile([0.2, 0.3, 0.5], (16, 1)),
            TOY_Y,
            0.95,
            "at least two different rows",
            "the same",
        ),
    ],
)
def test_no_bolder_map(probs, codes, t, says, remedy):
    error = str(refusal(boldness_recalibrate, probs, codes, t=t, classes=range(3)))
    assert says in error
    assert remedy in error


def test_shares():
    for function, name in (
        (calibration_posterior, "prior"),
        (boldness_recalibrate, "t"),
        (boldness_recalibrate, "prior"),
    ):
        for value in (0.0, 1.0, math.nan):
            with case((function.__name__, name, value)):
                error = refusal(function, TOY_X, TOY_Y, **{name: value})
                assert str(error) == f"{name} must lie in (0, 1); got {name}={value}."


TOY = Predictions.from_arrays(TOY_X, TOY_Y)


def test_its_mean_under_calibration_is_its_degrees_of_freedom():
    test = omnibus_test(TOY, n_groups=4, n_resamples=4000, seed=0)
    # g (c - 1) = 8 exactly; the standard deviation of a draw is about 4
    assert test.expected == pytest.approx(8, abs=4 * 4 / np.sqrt(4000))


def test_kernel_p_value_of_the_toy_rows():
    # methods specification 5.4 has .9835 for the Euclidean kernel; here total variation, median
    test = omnibus_test(TOY, kind="kernel", n_resamples=1999, seed=0)
    assert test.statistic == pytest.approx(0.0109168663, abs=1e-9)
    assert 0.9 < test.pvalue <= 1.0


@pytest.mark.slow
def test_size_with_sharp_rows():
    rng = np.random.default_rng(2)
    pvalues = []
    for seed in range(400):
        probs = rng.dirichlet([0.1] * 4, size=150).clip(1e-9)
        probs /= probs.sum(axis=1, keepdims=True)
        y = draw(probs, rng)
        pvalues.append(
            omnibus_test(probs, y, classes=range(4), n_resamples=199, seed=seed).pvalue
        )
    for alpha in (0.05, 0.2):
        error = 2.6 * np.sqrt(alpha * (1 - alpha) / 400)
        assert abs(np.mean(np.array(pvalues) <= alpha) - alpha) < error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "hl"}, "kind must be 'hosmer_lemeshow' or 'kernel'"),
        ({"n_groups": 0}, "n_groups must be a whole number >= 1; got 0"),
        ({"sample_weight": [0.5] * 16}, "must hold whole numbers"),
    ],
)
def test_errors_omnibus(options, message):
    with pytest.raises(InputError, match=message):
        omnibus_test(TOY_X, TOY_Y, **options)


def test_quantiles_by_hand():
    # c = 2, gamma = 1, x = (1/2, 1/2): g = expit(tau). Of B = 39 draws the interval of level .95
    # runs from the (39 + 1) .025 = 1st to the 39th: expit(-1.9) = .130108, expit(1.9) = .869892;
    # that of level .8 from the 4th, tau = -1.6: .167982, to the 36th: .832018
    fit = fitted(Predictions.from_arrays(*sample(50, 2, 0)))
    tau = np.random.default_rng(0).permutation(np.linspace(-1.9, 1.9, 39))
    fits = BootstrapFits(fit, np.column_stack([tau, np.ones(39)]), 0, 0)
    found = fits.recalibrate([[0.5, 0.5]], interval=0.95)
    np.testing.assert_allclose(
        [found.low[0, 0], found.high[0, 0]], [0.130108, 0.869892], atol=1e-6
    )
    found = fits.recalibrate([[0.5, 0.5]], interval=0.8)
    np.testing.assert_allclose(
        [found.low[0, 0], found.high[0, 0]], [0.167982, 0.832018], atol=1e-6
    )
    np.testing.assert_allclose(found.low[:, 1], 1.0 - found.high[:, 0], rtol=1e-12)
    assert found.method == "bootstrap"


def test_data_that_equal_their_expectation_give_statistic_zero():
    # four rows at (1/2, 1/2), two labels each: shares equal predictions, the log odds never vary
    test = calibration_test([[0.5, 0.5]] * 4, [0, 0, 1, 1], method="chi2")
    assert test.statistic == pytest.approx(0.0, abs=1e-12)
    assert test.df == 1  # constant log odds: gamma cannot be told from tau
    assert test.pvalue == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("baseline", "lr", "p", "score", "wald"),
    [
        (2, 1.1462114203, 0.88687265, 0.9895584940, 0.9515609514),
        (0, 1.1250835514, 0.89027227, 0.9559480156, 0.9099841956),
        (1, 0.9305895999, 0.92013181, 0.8315366381, 0.8052434186),
    ],
)
def test_toy_statistics(baseline, lr, p, score, wald):
    # methods specification 0.4, TOY
    for statistic, value in {"lr": lr, "score": score, "wald": wald}.items():
        options = {"baseline": baseline, "statistic": statistic, "method": "chi2"}
        test = calibration_test(TOY_X, TOY_Y, **options)
        assert test.statistic == pytest.approx(value, abs=1e-6)
        assert statistic != "lr" or test.pvalue == pytest.approx(p, abs=1e-6)
        assert test.df == 4


@pytest.mark.parametrize(("statistic", "p"), [("lr", 0.907), ("score", 0.9185)])
def test_toy_exact_p_values(statistic, p):
    # methods specification 8e: B = 1999, seed 0
    test = calibration_test(TOY_X, TOY_Y, statistic=statistic, method="exact", seed=0)
    assert test.pvalue == pytest.approx(p, abs=1e-12)
    assert (test.method, test.n_resamples, test.sequential) == ("exact", 1999, False)


def test_sequential_agrees_with_all_draws_and_makes_fewer():
    full = calibration_test(TOY_X, TOY_Y, method="exact", seed=0)
    some = calibration_test(TOY_X, TOY_Y, method="sequential", seed=0)
    assert some.n_resamples < full.n_resamples
    assert some.sequential
    # 50 exceedances: the relative standard error is at most 1/7
    assert some.pvalue == pytest.approx(full.pvalue, rel=0.3)


def test_exact_p_is_never_zero_and_says_how_many_draws():
    wrong = np.roll(TOY_Y, 1)
    probs = TOY_X**8 / (TOY_X**8).sum(axis=1, keepdims=True)
    test = calibration_test(probs, wrong, method="exact", n_resamples=99, seed=1)
    assert test.pvalue == pytest.approx(1 / 100)
    assert "exact, 99 simulated" in str(test)
    assert "p = 0.01" in str(test)


def test_rejects():
    test = calibration_test(TOY_X, TOY_Y, method="chi2")
    assert not test.rejects(0.05)
    assert test.rejects(0.9)
    with pytest.raises(InputError, match="alpha must lie in"):
        test.rejects(5)


def test_hockey():
    # BRcal's data: methods specification 0.4, checked with VGAM (tests/reference/vgam.json)
    test = calibration_test(load_hockey(), method="chi2")
    assert test.statistic == pytest.approx(4.26743065, abs=1e-7)
    assert test.pvalue == pytest.approx(0.11839659, abs=1e-7)
    assert calibration_test(
        load_hockey(), statistic="score"
    ).statistic == pytest.approx(4.16134009, abs=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"statistic": "lrt"}, "statistic must be 'lr', 'score' or 'wald'; got 'lrt'"),
        (
            {"method": "bootstrap"},
            "method must be 'auto', 'chi2', 'exact' or 'sequential'",
        ),
        (
            {"statistic": "wald", "method": "exact"},
            "Wald statistic has no exact p-value",
        ),
        (
            {"sample_weight": [0.5] * 16, "method": "exact"},
            r"whole numbers .* sample_weight\[0\]=0.5",
        ),
        ({"baseline": "all"}, r"is for recalibration \(MCLLOCalibrator\)"),
        (
            {"baseline": "auto", "groups": np.arange(16) // 2},
            "must not be combined with groups",
        ),
    ],
)
def test_errors_likelihood_tests(options, message):
    with pytest.raises(InputError, match=message):
        calibration_test(TOY_X, TOY_Y, **options)


def test_permuting_classes_does_not_change_the_answer_of_auto():
    order = [2, 0, 1]
    here = calibration_test(TOY_X, TOY_Y, baseline="auto", seed=1)
    there = calibration_test(
        TOY_X[:, order], TOY_Y, classes=order, baseline="auto", seed=1
    )
    assert there.statistic == pytest.approx(here.statistic, rel=1e-12)
