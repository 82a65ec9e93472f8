"""What *Theory* and *Reading delta and gamma* say beyond their examples, computed by the letter."""

import numpy as np
import pytest
from independent import (
    central_differences,
    direct_nll,
    log_odds_of,
    power_formula,
    sample,
)

import mcllo
from mcllo.exceptions import SeparationWarning


def curvature(function, theta, h=1e-4):
    """Return the Hessian by differences of differences."""
    return central_differences(
        lambda at: central_differences(function, at, h), theta, h
    )


@pytest.mark.parametrize("seed", range(2))
def test_the_curvature_is_positive_with_the_baseline_and_flat_without_it(seed):
    probs, codes = sample(60, 4, seed)
    odds = log_odds_of(probs)
    theta = np.random.default_rng(seed).normal(size=6)
    whole = curvature(lambda at: direct_nll(at, odds, codes), theta)
    assert np.linalg.eigvalsh(whole)[0] > 0.01

    def without_the_baseline(at):
        eta = (at[:3, None] + at[3:, None] * odds)[:, codes < 3]
        true = codes[codes < 3]
        return (np.log(np.exp(eta).sum(axis=0)) - eta[true, np.arange(len(true))]).sum()

    forgotten = curvature(without_the_baseline, theta)
    up = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(forgotten @ up, 0.0, atol=1e-5)


def test_it_is_not_convex_in_delta():
    # two classes, every x = 1/2, 1 row of 4 true: f'' = -4 / (1 + d)^2 + 1 / d^2
    odds, codes = np.zeros((1, 4)), np.array([0, 1, 1, 1])

    def bend(d):
        return (value(d + 1e-3) - 2 * value(d) + value(d - 1e-3)) / 1e-6

    def value(d):
        return direct_nll(np.array([np.log(d), 1.0]), odds, codes)

    for d in (0.5, 2.0):
        assert bend(d) == pytest.approx(-4 / (1 + d) ** 2 + 1 / d**2, abs=1e-4)
    assert (
        bend(0.5) > 0 > bend(2.0)
    )  # d / (1 + d) = 1/3 and 2/3, sqrt(1 / 4) between them


@pytest.mark.parametrize("absent", [0, 2])
def test_a_class_that_never_comes_true_leaves_no_maximum(absent):
    probs, codes = sample(200, 3, 0)
    codes = np.where(codes == absent, 1, codes)
    with pytest.warns(SeparationWarning):
        fit = mcllo.MCLLOCalibrator(classes=[0, 1, 2]).fit(probs, codes).fit_
    assert fit.separated


def test_another_baseline_adds_a_term_where_slopes_differ():
    # log(g_j / g_b) = tau_j - tau_b + gamma_j log(x_j / x_b) + (gamma_j - gamma_b) log(x_b / x_c)
    probs, _ = sample(50, 3, 1)
    (tau_j, tau_b), (gamma_j, gamma_b) = tau, gamma = (
        np.array([0.4, -0.3]),
        np.array([0.7, 1.2]),
    )
    g = power_formula(probs, np.exp(tau), gamma)
    x_j, x_b, x_c = probs.T
    right = (
        tau_j
        - tau_b
        + gamma_j * np.log(x_j / x_b)
        + (gamma_j - gamma_b) * np.log(x_b / x_c)
    )
    np.testing.assert_allclose(np.log(g[:, 0] / g[:, 1]), right, atol=1e-12)
    last = -tau_b + gamma_b * np.log(x_c / x_b)
    np.testing.assert_allclose(np.log(g[:, 2] / g[:, 1]), last, atol=1e-12)


def test_odds_that_stay_where_they_are():
    odds = 0.583 ** (1 / (1 - 0.7))
    same = np.array([[odds, 1.0]]) / (1 + odds)
    np.testing.assert_allclose(
        power_formula(same, np.array([0.583]), np.array([0.7])), same
    )


def test_classes_that_become_more_frequent_have_that_delta():
    # Bayes: predictions for shares (.5, .3, .2), used where class 0 is twice as common
    joint = np.random.default_rng(0).dirichlet([1, 1, 1], size=20) * [0.5, 0.3, 0.2]
    before = joint / joint.sum(axis=1, keepdims=True)
    after = joint * [2.0, 1.0, 1.0]
    after /= after.sum(axis=1, keepdims=True)
    shifted = mcllo.MCLLOMap(np.log([2.0, 1.0]), np.ones(2), (0, 1, 2), 2).recalibrate(
        before
    )
    np.testing.assert_allclose(shifted, after, atol=1e-12)
