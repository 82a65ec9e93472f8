import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest
from independent import draw
from inputs import refusal
from scipy.stats import chi2
from shared_data import load_cifar10_vgg16_keras
from toy import TOY_X, TOY_Y

from mcllo import Predictions, assess, calibration_test, robust_test
from mcllo._fit.fit import fit_predictions
from mcllo._inference.budget import (
    LARGE_TABLE_ENTRIES,
    N_EXCEEDANCES,
    N_EXCEEDANCES_LARGE_TABLE,
)
from mcllo._inference.calibration_test import (
    best_baseline,
    fit_and_test,
    needs_robust_covariance,
    split_baseline_rule,
)
from mcllo._inference.hypothesis_test import TOO_MANY_REFITS_NOTE, Reason
from mcllo._inference.likelihood_tests import (
    SPLIT_RATIO_EXPONENTS,
    _least_class_variance,
    chi2_sf,
    choose_method,
    compute_statistic,
    expected_errors,
    run_test,
    simulated_pvalue,
    split_pvalue,
    temperature_mixture_pvalue,
)
from mcllo._model.kernel import LogPartition
from mcllo._model.likelihood import identity_theta
from mcllo._utils.formatting import MIN_PRINTED_PVALUE


def honest(n, c, seed, concentration=1.0):
    """Rows and labels drawn from them: H0 is true."""
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(c, concentration), size=n)
    return probs, draw(probs, rng)


def test_chi_square_p_is_scipys_tail():
    probs, y = honest(600, 4, 1)
    test = calibration_test(probs**2 / (probs**2).sum(axis=1, keepdims=True), y)
    assert test.method == "chi2"
    assert test.pvalue == pytest.approx(chi2.sf(test.statistic, 6), rel=1e-9)
    assert 0.0 < test.pvalue < 1e-20  # a survival function, not 1 - cdf


def test_one_degree_of_freedom_has_a_p_value_and_none_has_not():
    assert chi2_sf(1.959963984540054**2, 1) == pytest.approx(0.05, rel=1e-12)
    assert chi2_sf(3.0, 0) == 1.0


def test_a_p_value_equal_to_the_level_rejects():
    probs, y = honest(60, 3, 1)
    test = replace(calibration_test(probs, y), pvalue=0.05)
    assert test.rejects(0.05)
    assert not replace(test, pvalue=np.nextafter(0.05, 1.0)).rejects(0.05)


def test_what_rows_can_tell_counts_weights_as_repetitions():
    probs, y = honest(50, 3, 4)
    weight = np.arange(50) % 4
    weighed = Predictions.from_arrays(probs, y, sample_weight=weight)
    written = Predictions.from_arrays(
        np.repeat(probs, weight, axis=0), np.repeat(y, weight)
    )
    assert expected_errors(weighed) == pytest.approx(
        expected_errors(written), rel=1e-12
    )
    assert _least_class_variance(weighed) == pytest.approx(
        _least_class_variance(written), rel=1e-12
    )


def test_the_score_needs_no_stored_hessian():
    # weights, and a class whose log odds never vary: its slope is not estimated
    probs, y = honest(80, 3, 5)
    probs[:, 0] = probs[:, 2] = (1.0 - probs[:, 1]) / 2.0
    rows = Predictions.from_arrays(probs, y, sample_weight=1.0 + np.arange(80) % 3)
    fit = fit_predictions(rows)
    without = replace(fit, null_terms=replace(fit.null_terms, hessian=np.empty((0, 0))))
    expected = compute_statistic(fit, "score", rows)
    assert compute_statistic(without, "score", rows) == pytest.approx(
        expected, rel=1e-9
    )


@pytest.mark.parametrize("fixed", [False, True])
def test_the_score_of_many_classes_by_products_is_that_of_the_hessian(fixed):
    probs, y = honest(1500, 130, 6)
    if fixed:  # a class whose log odds never vary has no slope
        probs[:, 3] = probs[:, -1]
        probs /= probs.sum(axis=1, keepdims=True)
    weight = 1.0 + np.arange(1500) % 3
    rows = Predictions.from_arrays(probs, y, sample_weight=weight, baseline=129)
    fit = fit_predictions(rows)
    assert fit.null_terms.hessian.size == 0
    free = np.r_[np.ones(129, bool), rows.log_odds.std(axis=1) > 1e-12]
    assert free.all() == (not fixed)
    hessian = LogPartition(rows.log_odds, weight)(identity_theta(129)).hessian[
        np.ix_(free, free)
    ]
    u = fit.null_terms.gradient
    direct = u @ np.linalg.solve(hessian, u)
    assert compute_statistic(fit, "score", rows) == pytest.approx(direct, rel=1e-5)


def test_draws_as_extreme_as_the_data_count():
    # four even rows: the score is (k - 2)^2, k ~ Binomial(4, 1/2); at k = 3 all but k = 2 count,
    # 10 of 16 label vectors
    test = calibration_test(
        np.full((4, 2), 0.5), [0, 0, 0, 1], statistic="score", method="exact", seed=0
    )
    assert test.pvalue == pytest.approx(10 / 16, abs=0.04)


def test_draws_of_large_tables_stop_sooner():
    for n, enough in [
        (LARGE_TABLE_ENTRIES // 2, N_EXCEEDANCES),
        (LARGE_TABLE_ENTRIES // 2 + 1, N_EXCEEDANCES_LARGE_TABLE),
    ]:
        rows = Predictions.from_arrays(np.full((n, 2), 0.5), np.arange(n) % 2)
        found = simulated_pvalue(
            rows, "score", 0.0, "sequential", n_resamples=1999, seed=0
        )
        # every draw is as extreme
        assert (found.pvalue, found.n_resamples) == (1.0, enough)


def test_auto_looks_at_the_information_not_at_n():
    flat, _ = honest(500, 3, 2)
    sharp, _ = honest(500, 3, 2, concentration=0.02)
    sharp = np.clip(sharp, 1e-9, None)
    sharp /= sharp.sum(axis=1, keepdims=True)
    for probs, method in ((flat, "chi2"), (sharp, "sequential")):
        predictions = Predictions.from_arrays(probs, np.arange(500) % 3)
        enough = expected_errors(predictions) / 4 >= 20
        assert enough == (method == "chi2")
        assert choose_method(predictions, 4, "lr", 1999)[0] == method


def test_auto_simulates_when_zeros_were_raised_or_a_class_is_rare():
    probs, y = honest(2000, 3, 3)
    probs[0] = [1.0, 0.0, 0.0]
    zeros = Predictions.from_arrays(probs, y, clip=1e-6)
    assert choose_method(zeros, 4, "lr", 1999)[0] == "sequential"
    assert choose_method(zeros, 4, "lr", 1999)[1].ground == "zeros"
    rare = np.column_stack(
        [np.full(2000, 0.499), np.full(2000, 0.499), np.full(2000, 0.002)]
    )
    rare = Predictions.from_arrays(rare, np.arange(2000) % 2)
    assert choose_method(rare, 4, "lr", 1999)[1].ground == "rare_class"


def test_reasons_say_what_they_know():
    big = Predictions.from_arrays(TOY_X, TOY_Y)
    assert choose_method(big, 4, "lr", 10**9)[1].limits == ("size",)
    few = Reason("few_errors", errors=1.234)
    assert str(few) == "only 1.23 expected errors per parameter"
    assert few.wants_draws
    large = few.but("size")
    assert (large.in_doubt, large.wants_draws, large.too_costly) == (True, False, False)
    assert few.but("tests").too_costly
    asked = Reason("asked").but("full_map")
    assert (asked.is_chosen_by_user, asked.in_doubt, asked.too_costly) == (
        True,
        False,
        True,
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mcllo.exceptions.MclloWarning")
def test_size_of_the_default_p_value_on_a_sharp_network():
    # Rows of a real VGG, labels drawn from those rows: H0 is true. Chi-square rejects 11 to 18 %.
    rows, seed, reps = load_cifar10_vgg16_keras().probs, np.random.default_rng(11), 120
    default, plain = [], []
    for rep in range(reps):
        probs = rows[seed.choice(len(rows), 500, replace=False)]
        test = calibration_test(probs, draw(probs, seed), classes=range(10), seed=rep)
        assert test.method == "exact"
        default.append(test.pvalue)
        plain.append(chi2.sf(test.statistic, test.df))
    for alpha in (0.05, 0.1, 0.2):
        error = 2.6 * np.sqrt(alpha * (1 - alpha) / reps)
        assert abs(np.mean(np.array(default) <= alpha) - alpha) < error
    assert np.mean(np.array(plain) <= 0.05) > 0.05 + 2.6 * np.sqrt(0.05 * 0.95 / reps)


@pytest.mark.slow
def test_size_of_the_default_p_value_on_flat_predictions():
    reps = 400
    pvalues = [
        calibration_test(*honest(300, 3, seed), method="auto", seed=seed).pvalue
        for seed in range(reps)
    ]
    for alpha in (0.05, 0.1, 0.2):
        error = 2.6 * np.sqrt(alpha * (1 - alpha) / reps)
        assert abs(np.mean(np.array(pvalues) <= alpha) - alpha) < error


def test_where_refits_are_too_many_and_errors_too_few_the_score_stands_in():
    # 500,000 draws: 300 x 20 entries each are 3e9 for scores, 4.5e9 with what a refit costs
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(20, 0.05), size=300).clip(1e-9)
    probs /= probs.sum(axis=1, keepdims=True)
    p = Predictions.from_arrays(probs, draw(probs, rng), classes=range(20))
    asked = {"n_resamples": 500_000, "seed": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = calibration_test(p, **asked)
        score = calibration_test(p, **asked, statistic="score", method="sequential")
    assert (found.kind, found.method) == ("score", "exact")
    assert (found.statistic, found.pvalue) == (score.statistic, score.pvalue)
    assert found.why.notes == (TOO_MANY_REFITS_NOTE,)


def rows(n, seed, power=1.0, concentration=0.05, c=4):
    """Sharp rows; `power` 1 draws labels from them, less makes them overconfident."""
    rng = np.random.default_rng(seed)
    probs = np.clip(rng.dirichlet(np.full(c, concentration), size=n), 1e-6, None)
    probs /= probs.sum(axis=1, keepdims=True)
    truth = probs**power
    y = draw(truth / truth.sum(axis=1, keepdims=True), rng)
    return Predictions.from_arrays(probs, y, classes=range(c))


def test_it_is_the_gain_of_a_ridge_fit_on_the_other_half():
    p = rows(60, 1, power=0.5)
    halves, gains = [p.take(np.arange(k, 60, 2)) for k in (0, 1)], []
    for learn, judge in (halves, halves[::-1]):
        own = np.arange(30), judge.codes
        after = fit_predictions(learn, penalty=1.0).recalibrate(judge.probs)
        gains.append(np.log(after[own]).sum() - np.log(judge.probs[own]).sum())
    expected = 2.0 / np.exp(gains).sum()
    assert expected < 0.5
    assert split_pvalue(p) == pytest.approx(expected, rel=1e-7)


def test_it_is_one_at_most_and_never_zero():
    assert (
        split_pvalue(Predictions.from_arrays(TOY_X[:3], TOY_Y[:3], classes=range(3)))
        == 1.0
    )
    assert 0.0 < split_pvalue(Predictions.from_arrays(TOY_X, TOY_Y)) <= 1.0
    wrong = rows(20_000, 0, power=0.1)
    assert split_pvalue(wrong) == MIN_PRINTED_PVALUE


def test_weights_are_repetitions_of_rows():
    p = rows(200, 1, power=0.5)
    assert split_pvalue(replace(p, sample_weight=np.full(200, 2.0))) < split_pvalue(p)


def test_the_default_reports_the_bound_where_simulation_cannot_tell_more():
    test = calibration_test(rows(400, 2, power=0.3), seed=0)
    assert test.method == "bound"
    assert test.n_resamples == 0
    assert test.pvalue < 1 / (20 * 2000)
    assert "guaranteed bound" in str(test)
    assert test.rejects(0.001)
    asked = calibration_test(
        rows(400, 2, power=0.3), method="exact", n_resamples=99, seed=0
    )
    assert asked.method == "exact"
    assert asked.pvalue == pytest.approx(0.01)


@pytest.mark.slow
def test_its_expectation_under_calibration_is_at_most_one():
    # E has mean 1; Markov: P(p <= a) <= a. 1000 repetitions
    values = np.array([split_pvalue(rows(60, seed)) for seed in range(1000)])
    for alpha in (0.01, 0.05, 0.2):
        assert np.mean(values <= alpha) <= alpha + 2.6 * np.sqrt(
            alpha * (1 - alpha) / 1000
        )


def test_the_quick_bound_is_a_mean_of_likelihood_ratios_by_hand():
    p = rows(30, 1, power=0.5)
    own, ratios = (np.arange(30), p.codes), []
    for u in SPLIT_RATIO_EXPONENTS:
        raised = p.probs**u
        ratios.append(
            np.prod((raised / raised.sum(axis=1, keepdims=True) / p.probs)[own])
        )
    assert np.mean(ratios) > 1.0
    assert temperature_mixture_pvalue(p) == pytest.approx(
        1.0 / np.mean(ratios), rel=1e-9
    )
    assert temperature_mixture_pvalue(rows(20_000, 0, power=0.1)) == MIN_PRINTED_PVALUE


def test_the_quick_bound_holds_over_all_labels_of_some_rows():
    # all 3^6 of them, each with its probability: P(p <= a) <= a, exactly
    probs = np.random.default_rng(0).dirichlet([0.3, 0.3, 0.3], size=6).clip(1e-5)
    probs /= probs.sum(axis=1, keepdims=True)
    chance, bounds = [], []
    for y in itertools.product(range(3), repeat=6):
        bounds.append(
            temperature_mixture_pvalue(
                Predictions.from_arrays(probs, y, classes=range(3))
            )
        )
        chance.append(np.prod(probs[np.arange(6), y]))
    chance, bounds = np.array(chance), np.array(bounds)
    assert chance.sum() == pytest.approx(1.0)
    assert bounds.min() < 1e-6
    for alpha in np.unique(bounds[bounds < 1.0]):
        assert chance[bounds <= alpha].sum() <= alpha


@pytest.mark.parametrize(("power", "quick"), [(0.3, True), (1.0, False)])
def test_a_decision_draws_only_what_the_quick_bound_leaves_open(power, quick):
    p = rows(400, 2, power=power)
    given = {"n_resamples": 199, "seed": 0, "exceedances": 10}
    found = run_test(p, fit_predictions(p), **given, quick=True)
    assert found.method == ("bound" if quick else "exact")
    if quick:
        assert found.pvalue == temperature_mixture_pvalue(p) < 1 / 4000
    else:  # the tenth draw that was as extreme was the last
        assert found.pvalue == 10 / found.n_resamples


TOY = Predictions.from_arrays(TOY_X, TOY_Y)


def test_only_two_words_are_rules():
    for baseline in (None, 0, "cat", "Auto"):
        assert split_baseline_rule(baseline) == ("", baseline)
    assert split_baseline_rule("auto") == ("auto", None)
    assert split_baseline_rule("all", allowed=("auto", "all")) == ("all", None)
    assert "is for recalibration" in str(refusal(assess, TOY_X, TOY_Y, baseline="all"))


def test_auto_is_the_likeliest_baseline_and_pays_for_it():
    fit, chosen = best_baseline(TOY, seed=1)
    found = fit_and_test(TOY, "auto", seed=1)
    assert found.predictions.baseline == found.fit.baseline == fit.baseline
    assert (found.test.statistic, found.test.pvalue) == (
        chosen.statistic,
        chosen.pvalue,
    )
    assert found.test.kind == "max_score"
    assert str(found.test).startswith(
        "largest score (over all baselines) statistic 0.990 on"
    )


@pytest.mark.parametrize(
    ("options", "way", "reason"),
    [
        (
            {"groups": np.arange(16) // 2},
            "sign flips",
            "rows of a group may depend; 8 groups",
        ),
        (
            {"sample_weight": np.linspace(1, 2, 16), "weight_kind": "survey"},
            "simulated data sets",
            "survey weights; 16 rows, effectively 15.4",
        ),
    ],
)
def test_groups_and_weights_that_are_no_counts_choose_the_robust_test(
    options, way, reason
):
    test = calibration_test(TOY_X, TOY_Y, **options, seed=3)
    robust = robust_test(TOY_X, TOY_Y, **options, seed=3)
    assert (test.kind, test.method, test.pvalue) == (
        "robust_score",
        robust.method,
        robust.pvalue,
    )
    assert way in str(test)
    assert test.reason.startswith(reason)
    assert not needs_robust_covariance(
        Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=np.full(16, 2.0))
    )


@pytest.mark.parametrize(("bound", "method"), [(0.005, "exact"), (1e-4, "bound")])
def test_a_bound_is_reported_only_far_below_what_draws_could_show(
    monkeypatch, bound, method
):
    # 99 draws show 0.01 at least; the bound must be below a twentieth of that.
    monkeypatch.setattr(
        "mcllo._inference.likelihood_tests.split_pvalue", lambda _: bound
    )
    found = calibration_test(TOY_X, TOY_Y, n_resamples=99, seed=0)
    assert found.method == method
