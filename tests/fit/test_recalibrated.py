import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import (
    central_differences,
    designs,
    draw,
    power_formula,
    sample,
    simplex,
)
from scipy.special import expit, logit
from scipy.stats import norm
from toy import TOY_X, TOY_Y

from mcllo import MCLLOMap, Predictions, RecalibratedProbabilities
from mcllo._fit.fit import fit_predictions
from mcllo._fit.map import (
    logit_and_standard_error,
    recalibrate_with_intervals,
    validate_rows_to_recalibrate,
)
from mcllo.exceptions import InputError, SeparationWarning

quick = settings(deadline=None, max_examples=20)
Z = norm.ppf(0.975)


def toy_fit(baseline=None, **options):
    return fit_predictions(
        Predictions.from_arrays(TOY_X, TOY_Y, baseline=baseline), **options
    )


def known_fit(theta, covariance, classes=(0, 1, 2)):
    """A fit with given numbers, the last class its baseline."""
    tau, gamma = np.split(np.array(theta), 2)
    given = {"tau": tau, "gamma": gamma, "cov_theta": np.array(covariance)}
    return replace(toy_fit(), classes=classes, baseline=classes[-1], **given)


def intervals(fit, probs, level=0.95, **options):
    return recalibrate_with_intervals(
        fit, validate_rows_to_recalibrate(fit.classes, probs), level, **options
    )


def standard_errors(fit, probs):
    """Standard errors of logit g, recovered from the ends of the intervals."""
    found = intervals(fit, probs)
    return (logit(found.high) - logit(found.low)) / (2.0 * Z)


def test_without_uncertainty_the_interval_is_a_point():
    fit = known_fit([0.2, -0.3, 0.8, 1.5], np.zeros((4, 4)))
    found = intervals(fit, TOY_X)
    np.testing.assert_array_equal(
        found.probs, fit.apply(validate_rows_to_recalibrate(fit.classes, TOY_X))
    )
    np.testing.assert_allclose(found.low, found.probs, rtol=1e-12)
    np.testing.assert_allclose(found.high, found.probs, rtol=1e-12)


def test_by_hand():
    # theta = identity, x = (1/2, 1/4, 1/4): log odds l = (log 2, 0); g = x.
    # derivatives by (tau1, tau2, gamma1, gamma2), with q the odds among the other classes:
    #   logit g1 = eta1 - log(exp eta2 + 1):            (1, -1/2, log 2, 0), as q = (1/2, 1/2)
    #   logit g2 = eta2 - log(exp eta1 + 1):            (-2/3, 1, -2/3 log 2, 0)
    #   logit g3 = 0 - log(exp eta1 + exp eta2):        (-2/3, -1/3, -2/3 log 2, 0)
    # Cov = diag(.04, .09, .01, .25), (log 2)^2 = .480453:
    #   var1 = .04 + .09/4 + .00480453                  = .06730453, se .259431
    #   var2 = 4/9 .04 + .09 + 4/9 .00480453            = .10991313, se .331531
    #   var3 = 4/9 .04 + .09/9 + 4/9 .00480453          = .02991313, se .172954
    # intervals at 68.27 % reach one se: expit(0 -/+ .259431) = .435503, .564497
    fit = known_fit([0.0, 0.0, 1.0, 1.0], np.diag([0.04, 0.09, 0.01, 0.25]))
    found = intervals(fit, [[0.5, 0.25, 0.25]], level=norm.cdf(1.0) - norm.cdf(-1.0))
    se = np.array([0.259431, 0.331531, 0.172954])
    np.testing.assert_allclose(logit(found.high) - logit(found.probs), [se], atol=2e-6)
    np.testing.assert_allclose(logit(found.probs) - logit(found.low), [se], atol=2e-6)
    assert found.low[0, 0] == pytest.approx(0.435503, abs=2e-6)
    assert found.high[0, 0] == pytest.approx(0.564497, abs=2e-6)


def test_two_classes_give_the_textbook_logistic_interval():
    # logit g = tau + gamma l is linear: se^2 = V_tt + 2 l V_tg + l^2 V_gg (Agresti 2002, 5.2.6)
    probs, y = sample(60, 2, 1)
    fit = fit_predictions(Predictions.from_arrays(probs, y))
    odds = logit(probs[:, 0])
    v = fit.cov_theta
    se = np.sqrt(v[0, 0] + 2.0 * odds * v[0, 1] + odds**2 * v[1, 1])
    center = fit.tau[0] + fit.gamma[0] * odds
    found = intervals(fit, probs, level=0.9)
    reach = norm.ppf(0.95) * se
    np.testing.assert_allclose(found.low[:, 0], expit(center - reach), rtol=1e-10)
    np.testing.assert_allclose(found.high[:, 0], expit(center + reach), rtol=1e-10)
    np.testing.assert_allclose(found.low[:, 1], 1.0 - found.high[:, 0], rtol=1e-9)


@pytest.mark.parametrize("baseline", [0, 1, 2])
def test_derivatives_match_finite_differences(baseline):
    fit = toy_fit(baseline)
    order = [j for j in range(3) if j != baseline] + [baseline]

    def logit_g(theta):
        g = np.empty_like(TOY_X)
        g[:, order] = power_formula(TOY_X[:, order], np.exp(theta[:2]), theta[2:])
        return logit(g)

    slopes = central_differences(logit_g, fit.theta)
    variance = np.einsum("anj,ab,bnj->nj", slopes, fit.cov_theta, slopes)
    np.testing.assert_allclose(
        standard_errors(fit, TOY_X), np.sqrt(variance), rtol=1e-6
    )


def test_toy_reference_values():
    # methods.md 0.4: delta-method SE of g row 0; the logit's is SE / (g (1 - g))
    fit = toy_fit()
    g = intervals(fit, TOY_X).probs
    se = standard_errors(fit, TOY_X) * g * (1.0 - g)
    np.testing.assert_allclose(se[0], [0.16432059, 0.11308560, 0.06440027], atol=1e-8)


@quick
@given(designs(min_rows=8), st.floats(0.5, 0.99))
def test_ends_stay_on_their_side_and_grow_with_the_level(design, level):
    probs, codes = design
    fit = fit_predictions(Predictions.from_arrays(probs, codes), penalty=1.0)
    found, wider = (
        intervals(fit, probs, level),
        intervals(fit, probs, 0.5 + level / 2.0),
    )
    assert (found.low > 0.0).all()
    assert (found.high < 1.0).all()
    assert (found.low <= found.probs).all()
    assert (found.probs <= found.high).all()
    assert (wider.low <= found.low).all()
    assert (wider.high >= found.high).all()


@quick
@given(designs(min_rows=8), st.randoms(use_true_random=False))
def test_other_classes_may_be_permuted(design, random):
    probs, codes = design
    c = probs.shape[1]
    order = [*random.sample(range(c - 1), c - 1), c - 1]
    fit = fit_predictions(Predictions.from_arrays(probs, codes), penalty=1.0)
    moved = np.argsort(order)[codes]
    other = fit_predictions(
        Predictions.from_arrays(probs[:, order], moved), penalty=1.0
    )
    found, permuted = intervals(fit, probs), intervals(other, probs[:, order])
    np.testing.assert_allclose(permuted.low, found.low[:, order], rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(
        permuted.high, found.high[:, order], rtol=1e-5, atol=1e-12
    )


def test_any_partition_of_the_rows_gives_the_same():
    probs = simplex(np.random.default_rng(3), 40_000, 3)  # more than one chunk
    fit = toy_fit()
    whole, first, rest = (
        intervals(fit, part) for part in (probs, probs[:700], probs[700:])
    )
    np.testing.assert_array_equal(np.vstack([first.low, rest.low]), whole.low)
    np.testing.assert_array_equal(np.vstack([first.high, rest.high]), whole.high)


def test_a_class_all_but_certain_keeps_its_digits():
    # 1 - g = 2e-30 is lost in g, not in its logit: by symmetry of the classes b and c, logit g_a =
    # l - log 2 with l = log(1e30), and its derivatives are (1, -1/2, l, 0)
    size = np.log(1e30)
    theta, odds = np.array([0.0, 0.0, 1.0, 1.0]), np.array([[size], [0.0]])
    center, se = logit_and_standard_error(theta, np.diag([0.1, 0.2, 0.3, 0.4]), odds)
    assert center[0, 0] == pytest.approx(size - np.log(2.0), rel=1e-14)
    assert se[0, 0] == pytest.approx(
        np.sqrt(0.01 + 0.25 * 0.04 + 0.09 * size**2), rel=1e-14
    )


def test_extreme_logits_give_numbers():
    fit = toy_fit()
    for far in (700.0, 1e5):
        logits = [[far, 0.0, -far], [0.0, 0.0, far], [far, far, 0.0]]
        found = recalibrate_with_intervals(
            fit, validate_rows_to_recalibrate(fit.classes, None, logits)
        )
        assert np.isfinite(found.low).all(), far
        assert np.isfinite(found.high).all(), far


def test_a_gamma_that_was_not_identified_counts_as_known():
    # the odds of class 0 against class 2 are 2 in every row: only its tau is uncertain
    probs = np.array(
        [[0.4, 0.4, 0.2], [0.6, 0.1, 0.3], [0.2, 0.7, 0.1], [0.5, 0.25, 0.25]] * 6
    )
    codes = np.array([0, 1, 2, 0, 1, 2, 1, 0, 0, 1, 1, 2] * 2)
    fit = fit_predictions(Predictions.from_arrays(probs, codes))
    assert np.isnan(fit.se_gamma).tolist() == [True, False]
    covariance = np.nan_to_num(fit.cov_theta)
    given_zero = intervals(fit, probs, covariance=covariance)
    found = intervals(fit, probs)
    np.testing.assert_array_equal(found.low, given_zero.low)
    np.testing.assert_array_equal(found.high, given_zero.high)
    assert np.isfinite(found.high).all()


def test_the_result_describes_itself():
    found = intervals(toy_fit(), TOY_X[:2])
    expected = "RecalibratedProbabilities(n_samples=2, n_classes=3, level=0.95, method='delta')"
    assert repr(found) == expected
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [*content] == ["classes", "level", "method", "probs", "low", "high"]
    assert [content[name] for name in ("classes", "level", "method")] == [
        [0, 1, 2],
        0.95,
        "delta",
    ]
    np.testing.assert_array_equal(content["high"], found.high)
    assert found.table.columns == ("row", "class", "prob", "low", "high")
    frame = found.to_frame()
    assert frame["row"].tolist() == [0, 0, 0, 1, 1, 1]
    assert frame["class"].tolist() == [0, 1, 2, 0, 1, 2]
    assert frame["low"].tolist() == found.low.ravel().tolist()
    assert isinstance(found, RecalibratedProbabilities)


@pytest.mark.slow
def test_coverage():
    # 400 fits to n = 400 rows; the standard error of a coverage of .95 is .011, so no single one of
    # 12 should be further than 3.5 of them, and their mean (at most as noisy) than 2.5
    rng = np.random.default_rng(5)
    true = MCLLOMap(np.array([0.3, -0.4]), np.array([0.7, 1.4]), (0, 1, 2), 2)
    rows = np.array(
        [[0.7, 0.2, 0.1], [0.34, 0.33, 0.33], [0.05, 0.15, 0.8], [0.02, 0.9, 0.08]]
    )
    target = true.recalibrate(rows)
    covered = np.zeros(target.shape)
    for _ in range(400):
        probs = rng.dirichlet(np.ones(3), size=400)
        fit = fit_predictions(
            Predictions.from_arrays(probs, draw(true.recalibrate(probs), rng))
        )
        found = intervals(fit, rows)
        covered += (found.low <= target) & (target <= found.high)
    covered /= 400.0
    assert np.abs(covered - 0.95).max() < 3.5 * 0.011
    assert abs(covered.mean() - 0.95) < 2.5 * 0.011


def test_a_separated_fit_has_no_intervals():
    with pytest.warns(SeparationWarning):
        fit = fit_predictions(Predictions.from_arrays(TOY_X, TOY_X.argmax(axis=1)))
    with pytest.raises(InputError, match=r"separated=True.*Fit with penalty=1\.0"):
        intervals(fit, TOY_X)
    with pytest.raises(InputError, match="no standard errors"):
        intervals(fit, TOY_X, covariance=np.eye(4))
    penalised = fit_predictions(
        Predictions.from_arrays(TOY_X, TOY_X.argmax(axis=1)), penalty=1.0
    )
    assert np.isfinite(intervals(penalised, TOY_X).low).all()


def test_levels_that_are_none():
    fit = toy_fit()
    for level in (0.0, 1.0, 95, float("nan"), "0.95", True):
        with pytest.raises(InputError, match=r"a level in \(0, 1\), say 0\.95; got"):
            intervals(fit, TOY_X, level)


def test_covariances_that_are_none():
    fit = toy_fit()
    for covariance, words in [
        (np.eye(3), r"must have shape \(4, 4\); got \(3, 3\)"),
        (np.full((4, 4), np.nan), "must be finite and symmetric"),
        (np.eye(4) + np.triu(np.ones((4, 4)), 1), "must be finite and symmetric"),
        (np.diag([1.0, 1.0, 1.0, -1.0]), "no negative variance"),
        (2.0 - np.eye(4), "no negative eigenvalue; as a correlation it has -1"),
    ]:
        with pytest.raises(InputError, match=words):
            intervals(fit, TOY_X, covariance=covariance)
