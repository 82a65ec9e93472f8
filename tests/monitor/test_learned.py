"""What is learned from the past, against an independent optimiser and by hand."""

import numpy as np
import pytest
from scipy.optimize import minimize

from mcllo._monitor.fitted_map import (
    GAMMA_PRECISION,
    MAX_ROWS_TO_LEARN,
    PSEUDO_LABELS_PER_CLASS,
    TAU_PRECISION,
    MapFilter,
    ShiftLearner,
)


def table(rng, n, c):
    probs = rng.dirichlet(np.ones(c), n)
    codes = np.array([rng.choice(c, p=p) for p in probs])
    return np.log(probs[:, :-1] / probs[:, -1:]).T.copy(), codes


def loss(theta, odds, codes, mean, precision):
    k = len(odds)
    eta = np.vstack([theta[:k, None] + theta[k:, None] * odds, np.zeros(odds.shape[1])])
    nll = (np.log(np.exp(eta).sum(axis=0)) - eta[codes, np.arange(len(codes))]).sum()
    return nll + 0.5 * (theta - mean) @ precision @ (theta - mean)


def test_the_filter_is_the_mode_given_the_batch_and_what_was_believed():
    rng = np.random.default_rng(0)
    odds, codes = table(rng, 60, 3)
    prior = np.diag([TAU_PRECISION] * 2 + [GAMMA_PRECISION] * 2)
    start = np.array([0.0, 0.0, 1.0, 1.0])
    first = MapFilter.new(3).after(odds, codes, memory=50.0)
    known = minimize(loss, start, args=(odds, codes, start, prior), tol=1e-12).x
    np.testing.assert_allclose(first.mean, known, atol=1e-4)
    # the second batch: what was believed fades by exp(-40 / (50 * 3)) towards the prior
    odds, codes = table(rng, 40, 3)
    rho = np.exp(-40.0 / 150.0)
    precision = rho * first.precision + (1.0 - rho) * prior
    mean = np.linalg.solve(
        precision, rho * first.precision @ first.mean + (1.0 - rho) * prior @ start
    )
    known = minimize(loss, start, args=(odds, codes, mean, precision), tol=1e-12).x
    np.testing.assert_allclose(
        first.after(odds, codes, memory=50.0).mean, known, atol=1e-4
    )


def test_what_is_believed_of_an_old_batch_is_forgotten():
    rng = np.random.default_rng(1)
    odds, codes = table(rng, 500, 3)
    wrong = MapFilter.new(3).after(odds, np.zeros_like(codes), memory=20.0)
    assert np.abs(wrong.mean - [0, 0, 1, 1]).max() > 1.0
    for _ in range(3):
        wrong = wrong.after(*table(rng, 500, 3), memory=20.0)
    np.testing.assert_allclose(wrong.mean, [0, 0, 1, 1], atol=0.35)


def test_of_a_huge_batch_rows_at_even_distances_are_enough():
    rng = np.random.default_rng(2)
    odds, codes = table(rng, 2 * MAX_ROWS_TO_LEARN + 1, 2)
    some = MapFilter.new(2).after(odds, codes, memory=1e9)
    tripled = MapFilter.new(2).after(
        odds[:, ::3].copy(),
        codes[::3],
        memory=1e9,
        weight=np.full(len(codes[::3]), 3.0),
    )
    np.testing.assert_allclose(some.mean, tripled.mean, atol=1e-6)


def test_shifts_are_counts_over_what_was_predicted():
    shifts = ShiftLearner.new(2).after(
        np.array([30.0, 10.0]), np.array([20.0, 20.0]), memory=100.0
    )
    known = np.log(
        [
            (30 + PSEUDO_LABELS_PER_CLASS) / (20 + PSEUDO_LABELS_PER_CLASS),
            (10 + PSEUDO_LABELS_PER_CLASS) / (20 + PSEUDO_LABELS_PER_CLASS),
        ]
    )
    np.testing.assert_allclose(shifts.tau, known)
    rho = np.exp(-8.0 / 200.0)
    later = shifts.after(np.array([4.0, 4.0]), np.array([4.0, 4.0]), memory=100.0)
    np.testing.assert_allclose(later.counts, [30 * rho + 4, 10 * rho + 4])
    assert ShiftLearner.new(4).tau == pytest.approx(0.0)
