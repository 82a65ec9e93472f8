"""One map for all subgroups? And each by itself: tests, sizes and slopes."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import chi2, ncx2

from mcllo import Predictions
from mcllo._diagnostics.class_tests import holm
from mcllo._diagnostics.subgroups import (
    SubgroupScores,
    assess_subgroups,
    estimate_slope,
    homogeneity_test,
    power_at_other_level,
    run_test_of_each_subgroup,
)
from mcllo._fit.fit import fit_predictions
from mcllo._inference.calibration_test import fit_and_test
from mcllo._utils.statements import suppress_warnings


def rows(n, c=3, slopes=(1.0,), sizes=None, seed=0, alpha=1.0, **options):
    """Return rows whose first subgroups are predicted with other slopes."""
    rng = np.random.default_rng(seed)
    honest = rng.dirichlet(np.full(c, alpha), n)
    labels = (rng.random((n, 1)) > honest.cumsum(axis=1)[:, :-1]).sum(axis=1)
    by = (
        np.arange(n) % len(slopes)
        if sizes is None
        else np.repeat(np.arange(len(sizes)), sizes)
    )
    power = honest ** np.asarray(slopes)[by][:, None]
    probs = power / power.sum(axis=1, keepdims=True)
    divided = by if by.max() else None
    return Predictions.from_arrays(
        probs, labels, classes=range(c), by=divided, **options
    )


def one_map(p, **options):
    parts = p.by.parts
    with suppress_warnings():
        fits = [fit_predictions(p.take(part)) for part in parts]
        return homogeneity_test(p, fit_predictions(p), fits, parts, seed=1, **options)


def softmax_loglik(theta, odds, codes):
    """Independent of the package: log likelihood of MCLLO, the baseline last."""
    k = len(odds)
    eta = np.vstack([theta[:k, None] + theta[k:, None] * odds, np.zeros(odds.shape[1])])
    return (eta[codes, np.arange(len(codes))] - np.logaddexp.reduce(eta, axis=0)).sum()


def test_the_statistic_is_the_gain_of_separate_maps():
    p = rows(6000, slopes=(1.3, 0.9))
    test = one_map(p)
    assert (test.kind, test.method, test.df) == ("lr", "chi2", 4)
    pooled, fits = (
        fit_predictions(p),
        [fit_predictions(p.take(part)) for part in p.by.parts],
    )
    separate = sum(
        softmax_loglik(fit.theta, p.log_odds[:, part], p.model_codes[part])
        for fit, part in zip(fits, p.by.parts, strict=True)
    )
    common = softmax_loglik(pooled.theta, p.log_odds, p.model_codes)
    assert test.statistic == pytest.approx(2 * (separate - common), rel=1e-6)
    assert test.pvalue == pytest.approx(chi2.sf(test.statistic, 4))


def test_same_rows_twice_do_not_differ():
    p = rows(300)
    twice = p.take(np.tile(np.arange(300), 2)).with_by(np.repeat(["a", "b"], 300))
    test = one_map(twice)
    assert test.statistic == pytest.approx(0.0, abs=1e-6)
    assert test.pvalue == 1.0 or test.pvalue > 0.9


def test_scores_are_those_of_a_finite_difference():
    p = rows(60, slopes=(1.0, 1.0, 1.0))
    theta, step = fit_predictions(p).theta, 1e-4
    parts, size = p.by.parts, len(fit_predictions(p).theta)

    def loglik(t, part):
        return softmax_loglik(t, p.log_odds[:, part], p.model_codes[part])

    value, total_u, total_h = 0.0, np.zeros(size), np.zeros((size, size))
    for part in parts:
        each = np.eye(size) * step
        u = [
            (loglik(theta + e, part) - loglik(theta - e, part)) / (2 * step)
            for e in each
        ]
        h = np.array(
            [
                [
                    loglik(theta + a + b, part)
                    - loglik(theta + a - b, part)
                    - loglik(theta - a + b, part)
                    + loglik(theta - a - b, part)
                    for a in each
                ]
                for b in each
            ]
        ) / (-4 * step**2)
        value += u @ np.linalg.solve(h, u)
        total_u, total_h = total_u + u, total_h + h
    value -= total_u @ np.linalg.solve(total_h, total_u)
    found = SubgroupScores(p, parts, theta).of_labels(p.codes[None])[0]
    assert found == pytest.approx(value, rel=1e-4)


def test_the_mean_score_is_the_degrees_of_freedom():
    p = rows(200, c=3, slopes=(1.0,) * 4)
    theta = fit_predictions(p).theta
    scores = SubgroupScores(p, p.by.parts, theta)
    rng = np.random.default_rng(4)
    probs = fit_predictions(p).recalibrate(p.probs)
    drawn = (rng.random((4000, 200, 1)) > probs.cumsum(axis=1)[:, :-1]).sum(axis=2)
    found = scores.of_labels(drawn)
    assert found.mean() == pytest.approx(12.0, abs=4 * found.std() / math.sqrt(4000))


def test_small_subgroups_are_simulated_and_say_why():
    test = one_map(rows(90, slopes=(1.0, 1.0, 1.0)))
    assert (test.kind, test.method) == ("score", "bootstrap")
    assert test.n_resamples > 0
    assert "expected errors per parameter" in test.reason


def test_a_rule_for_one_subgroup_is_not_enough_for_many():
    p = rows(2000, slopes=(1.0,) * 2)  # 390 errors on 4 parameters: 97 each
    assert one_map(p).method == "chi2"
    assert one_map(p.with_by(np.arange(2000) % 10)).method == "bootstrap"


def test_without_work_chi_square_is_said_to_be_in_doubt():
    cheap = one_map(rows(300, slopes=(1.0, 1.0)), work=0.0)
    assert (cheap.kind, cheap.method) == ("score", "chi2")
    assert "too large to simulate" in cheap.reason


def test_whole_weights_are_rows():
    p = rows(200, slopes=(1.0, 1.3))
    times = np.random.default_rng(2).integers(1, 4, 200)
    weighted = Predictions.from_arrays(
        p.probs, p.codes, by=p.by, sample_weight=times, classes=range(3)
    )
    written = weighted.expand_weights()
    one, other = one_map(weighted), one_map(written)
    assert one.method == other.method == "bootstrap"
    assert one.statistic == pytest.approx(other.statistic)
    assert one.pvalue == other.pvalue


def test_a_class_that_a_subgroup_lacks():
    p = rows(400, slopes=(1.0, 1.0))
    kept = np.flatnonzero(~((p.codes == 0) & (p.by.codes == 0)))
    some = p.take(kept)
    found = found_of(some)
    assert found.groups[0].absent == (0,)
    assert found.groups[1].absent == ()
    assert found.test.rejects(0.05)
    assert math.isfinite(found.test.statistic)
    assert found.groups[0].effect_size.method == "ridge"


def test_parameters_that_no_subgroup_has_do_not_count():
    # the same prediction for all rows of a subgroup: shifts only, 1 each; together 2
    probs = np.repeat([[0.7, 0.3], [0.4, 0.6], [0.2, 0.8]], 50, axis=0)
    labels = np.tile([0, 1, 0, 1, 1], 30)
    p = Predictions.from_arrays(probs, labels, by=np.repeat(["a", "b", "c"], 50))
    assert one_map(p).df == 1
    two = p.take(np.arange(100))
    assert one_map(two).df == 0
    assert one_map(two).pvalue == 1.0


def test_one_row_is_a_subgroup():
    found = found_of(rows(61, slopes=(1.0, 1.0), sizes=(60, 1)))
    assert [group.n_samples for group in found.groups] == [60, 1]
    assert math.isfinite(found.groups[1].test.pvalue)


def test_rows_that_determine_no_map():
    p = rows(40)
    right = Predictions.from_arrays(
        p.probs, p.probs.argmax(axis=1), by=np.arange(40) % 2
    )
    found = found_of(right)
    assert found.test.pvalue > 0.5
    assert found.slope.value == found.slope.high == math.inf
    assert 1.0 < found.slope.low < math.inf


def found_of(p, seed=1, **options):
    with suppress_warnings():
        return assess_subgroups(
            p, pooled=fit_and_test(p, seed=seed), seed=seed, **options
        )


def test_subgroups_are_tested_by_themselves_and_adjusted():
    p = rows(900, slopes=(1.0, 1.8, 1.0))
    found = found_of(p)
    alone = p.take(p.by.parts[1])
    own = fit_and_test(alone, seed=3)
    assert found.groups[1].test.statistic == own.test.statistic
    assert found.groups[1].test.pvalue == pytest.approx(own.test.pvalue, abs=0.01)
    adjusted = holm([group.test.pvalue for group in found.groups])
    assert [group.adjusted for group in found.groups] == adjusted.tolist()
    assert found.confidence == pytest.approx(1 - 0.05 / 3)
    assert {group.effect_size.confidence for group in found.groups} == {
        found.confidence
    }


def test_zeros_are_counted_where_they_are():
    p = rows(400, slopes=(1.0, 1.0))
    probs = p.probs.copy()
    probs[1] = [1.0, 0.0, 0.0]
    with suppress_warnings():
        zeros = Predictions.from_arrays(probs, p.codes, by=p.by, classes=range(3))
        one, other = (own.test for own in run_test_of_each_subgroup(zeros, seed=1))
    assert "zeros" not in one.reason
    assert "zeros" in other.reason


def test_the_slope_is_the_best_exponent():
    p = rows(500, slopes=(1.7,))

    def loss(u):
        return -softmax_loglik(np.r_[0.0, 0.0, u, u], p.log_odds, p.model_codes)

    best = minimize_scalar(loss, bracket=(0.3, 1.0))
    slope = estimate_slope(p, 0.95)
    assert slope.value == pytest.approx(best.x, abs=1e-5)
    for end in (slope.low, slope.high):
        assert 2 * (loss(end) - best.fun) == pytest.approx(chi2.isf(0.05, 1), rel=1e-3)
    wide = estimate_slope(p, 0.95, df=4)
    assert 2 * (loss(wide.low) - best.fun) == pytest.approx(chi2.isf(0.05, 4), rel=1e-3)


def test_flat_predictions_have_no_slope():
    p = Predictions.from_arrays(np.full((20, 2), 0.5), [0, 1] * 10, by=[1, 2] * 10)
    assert math.isnan(estimate_slope(p, 0.95).value)


def test_power_at_a_stricter_level():
    shift = 7.0
    power = ncx2.sf(chi2.isf(0.05, 6), 6, shift)
    assert power_at_other_level(power, 6, 0.01) == pytest.approx(
        ncx2.sf(chi2.isf(0.01, 6), 6, shift)
    )
    assert power_at_other_level(0.05, 6, 0.01) == 0.05
    assert math.isnan(power_at_other_level(math.nan, 6, 0.01))


def test_two_hundred_subgroups():
    p = rows(2000, c=2, slopes=(1.0,) * 200)
    assert one_map(p, n_resamples=19).df == 398


def test_the_answer_depends_on_the_seed_alone():
    p = rows(200, slopes=(1.0, 1.4))
    one, two, other = found_of(p, 1), found_of(p, 1), found_of(p, 2)
    assert one.test.to_dict() == two.test.to_dict()
    assert [g.to_dict() for g in one.groups] == [g.to_dict() for g in two.groups]
    assert one.test.pvalue != other.test.pvalue


def test_an_interval_without_one_means_a_rejection():
    # 2 [l(u) - l(1)] <= likelihood ratio statistic, and both are compared with chi2_4
    for seed in range(30):
        p = rows(400, slopes=(1.25,), seed=seed)
        slope, fit = estimate_slope(p, 0.95, df=4), fit_predictions(p)
        if slope.high < 1.0 or slope.low > 1.0:
            assert chi2.sf(fit.statistic, 4) <= 0.05
