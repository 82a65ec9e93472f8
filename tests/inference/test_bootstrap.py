import warnings
from dataclasses import replace

import numpy as np
import pytest
from independent import draw, log_odds_of, power_formula
from independent import sample as rows_and_labels
from scipy.optimize import minimize
from toy import TOY_X, TOY_Y

from mcllo import MCLLOMap, Predictions, bootstrap_fits
from mcllo._fit.fit import fit_predictions
from mcllo._fit.map import recalibrate_with_intervals, validate_rows_to_recalibrate
from mcllo._fit.separation import find_separating_direction
from mcllo._inference.bootstrap import Refits, bootstrap_refits, quantiles_of_draws
from mcllo._inference.monte_carlo import draw_labels
from mcllo.exceptions import InputError, SeparationWarning

ROWS = np.array(
    [[0.7, 0.2, 0.1], [0.34, 0.33, 0.33], [0.05, 0.15, 0.8], [0.02, 0.9, 0.08]]
)


def sample(n, seed=0, c=3, **options):
    return Predictions.from_arrays(*rows_and_labels(n, c, seed), **options)


def statistic(predictions, labels):
    """Class counts and sums of the true class's log odds, label by label; baseline last."""
    odds = log_odds_of(predictions.probs)
    s = np.zeros(2 * len(odds))
    for i, j in enumerate(labels):
        if j < len(odds):
            s[[j, j + len(odds)]] += [1.0, odds[j, i]]
    return s


def test_the_labels_themselves_give_the_fit_back():
    p = sample(200)
    for penalty in (0.0, 1.0, "firth"):
        fit = fit_predictions(p, penalty=penalty)
        theta, left = Refits(p, fit).estimates(statistic(p, p.codes)[None])
        np.testing.assert_allclose(theta[0], fit.theta, atol=1e-9)
        assert left[0] > 0.0


@pytest.mark.parametrize(("baseline", "penalty"), [(0, 0.0), (1, 1.0), (2, "firth")])
def test_each_refit_is_the_fit_of_its_labels(baseline, penalty):
    p = sample(150, seed=4, baseline=baseline)
    fit = fit_predictions(p, penalty=penalty)
    fits = bootstrap_refits(p, fit, n_resamples=5, seed=9)
    labels = draw_labels(fit.recalibrate(p.probs), 9, 0, 5)
    for theta, own in zip(fits.theta, labels, strict=True):
        again = fit_predictions(replace(p, codes=own), penalty=penalty)
        np.testing.assert_allclose(theta, again.theta, atol=1e-7)


def test_a_refit_by_another_optimiser():
    # the refit minimises the ridge around the fit's own exponent, which the data have chosen
    p = sample(90, seed=3)
    fit = fit_predictions(p, penalty="auto", center="temperature")
    assert fit.center_gamma != 1.0
    fits = bootstrap_refits(p, fit, n_resamples=1, seed=4)
    labels = draw_labels(fit.recalibrate(p.probs), 4, 0, 1)[0]
    centre = np.array([0.0, 0.0, fit.center_gamma, fit.center_gamma])

    def objective(theta):
        g = power_formula(p.probs, np.exp(theta[:2]), theta[2:])
        ridge = 0.5 * fit.penalty * ((theta - centre) ** 2).sum()
        return ridge - np.log(g[np.arange(len(labels)), labels]).sum()

    other = minimize(objective, centre, method="BFGS", options={"gtol": 1e-6})
    np.testing.assert_allclose(fits.theta[0], other.x, atol=1e-4)


def test_logits_give_what_their_softmax_gives():
    p = sample(100, seed=8)
    scores = Predictions.from_arrays(logits=np.log(p.probs) + 3.0, y=p.codes)
    one = bootstrap_refits(p, fit_predictions(p), n_resamples=30, seed=1)
    two = bootstrap_refits(scores, fit_predictions(scores), n_resamples=30, seed=1)
    np.testing.assert_allclose(one.theta, two.theta, atol=1e-7)


def test_the_seed_decides_and_nothing_else():
    p = sample(6000)  # enough for threads
    fit = fit_predictions(p)
    first = bootstrap_refits(p, fit, n_resamples=60, seed=5)
    assert first.seed == 5
    np.testing.assert_array_equal(
        bootstrap_refits(p, fit, n_resamples=60, seed=5).theta, first.theta
    )
    np.testing.assert_array_equal(
        bootstrap_refits(p, fit, n_resamples=25, seed=5).theta, first.theta[:25]
    )
    assert (bootstrap_refits(p, fit, n_resamples=60, seed=6).theta != first.theta).all()
    parts = bootstrap_refits(p, fit, n_resamples=60, seed=5, batch=7)
    np.testing.assert_array_equal(parts.theta, first.theta)
    whole = first.recalibrate(ROWS, interval=0.9)
    single = quantiles_of_draws(  # a row at a time
        first.theta, log_odds_of(np.asarray(ROWS)), 2, 0.05, held=1
    )
    np.testing.assert_allclose(single, [whole.low, whole.high], rtol=1e-13)


def test_a_gamma_that_was_not_identified_stays():
    # the odds of class 0 against class 2 are 2 in every row
    probs = np.array(
        [[0.4, 0.4, 0.2], [0.6, 0.1, 0.3], [0.2, 0.7, 0.1], [0.5, 0.25, 0.25]] * 12
    )
    codes = np.array([0, 1, 2, 0, 1, 2, 1, 0, 0, 1, 1, 2] * 4)
    p = Predictions.from_arrays(probs, codes)
    fits = bootstrap_refits(p, fit_predictions(p), n_resamples=50, seed=0)
    assert (fits.theta[:, 2] == 1.0).all()
    assert fits.theta[:, 3].std() > 0.0


def test_separated_draws_are_counted():
    p = Predictions.from_arrays(TOY_X, TOY_Y)
    fit = fit_predictions(p)
    fits = bootstrap_refits(p, fit, n_resamples=99, seed=0)
    labels = draw_labels(fit.recalibrate(TOY_X), 0, 0, 99)
    odds = log_odds_of(TOY_X)
    expected = sum(find_separating_direction(odds, own) is not None for own in labels)
    assert fits.n_separated == expected > 0
    assert f"n_separated={expected}, seed=0)" in repr(fits)
    with pytest.warns(SeparationWarning, match="some draws have no maximum"):
        found = fits.recalibrate(TOY_X)
    assert np.isfinite(found.low).all()
    with warnings.catch_warnings():
        warnings.simplefilter(
            "error"
        )  # few enough to lie beyond the ends of a narrow interval
        fits.recalibrate(TOY_X, interval=0.5)
    penalised = fit_predictions(p, penalty=1.0)
    assert bootstrap_refits(p, penalised, n_resamples=99, seed=0).n_separated == 0


def test_bootstrap_and_delta_agree_on_many_rows():
    # n = 5000; an end of the percentile interval has a Monte Carlo error of about 2.7 / sqrt(999)
    # = .085 standard errors (the density at the 2.5 % point is .058), and the interval is 3.92 of
    # them long: 4 errors are .09 of its length
    p = sample(5000, seed=11)
    fit = fit_predictions(p)
    delta = recalibrate_with_intervals(
        fit, validate_rows_to_recalibrate(fit.classes, ROWS)
    )
    boot = bootstrap_refits(p, fit, n_resamples=999, seed=2).recalibrate(ROWS)
    length = delta.high - delta.low
    np.testing.assert_array_equal(boot.probs, delta.probs)
    assert (np.abs(boot.low - delta.low) < 0.09 * length).all()
    assert (np.abs(boot.high - delta.high) < 0.09 * length).all()


@pytest.mark.slow
def test_coverage():
    # 80 fits to n = 400 rows: the standard error of a coverage of .95 is .024; none of 12 should
    # be further than 3.5 of them, their mean (at most as noisy) than 2.5
    rng = np.random.default_rng(7)
    true = MCLLOMap(np.array([0.3, -0.4]), np.array([0.7, 1.4]), (0, 1, 2), 2)
    target = true.recalibrate(ROWS)
    covered = np.zeros(target.shape)
    for seed in range(80):
        probs = rng.dirichlet(np.ones(3), size=400)
        p = Predictions.from_arrays(probs, draw(true.recalibrate(probs), rng))
        found = bootstrap_refits(
            p, fit_predictions(p), n_resamples=199, seed=seed
        ).recalibrate(ROWS)
        covered += (found.low <= target) & (target <= found.high)
    covered /= 80.0
    assert np.abs(covered - 0.95).max() < 3.5 * 0.024
    assert abs(covered.mean() - 0.95) < 2.5 * 0.024


def test_refusals():
    p, q = sample(60), sample(60, seed=1)
    fit = fit_predictions(p)
    with pytest.raises(InputError, match="must be the fit of these predictions"):
        bootstrap_refits(q, fit)
    with pytest.raises(
        InputError, match="share classes and baseline; got baselines 2 and 0"
    ):
        bootstrap_refits(p.with_baseline(0), fit)
    few = bootstrap_refits(p, fit, n_resamples=38, seed=0)
    with pytest.raises(
        InputError, match=r"interval=0\.95 needs at least 39 draws; got 38"
    ):
        few.recalibrate(ROWS)
    with pytest.raises(InputError, match="interval must be a level"):
        few.recalibrate(ROWS, interval=2.0)
    assert few.recalibrate(ROWS, interval=0.9).level == 0.9


def test_labels_need_rows_that_can_be_drawn():
    for facts, message in [
        ({"sample_weight": np.full(60, 0.5)}, "whole numbers where weights count rows"),
        ({"groups": np.repeat(np.arange(20), 3)}, "rows must be independent here"),
    ]:
        with pytest.raises(InputError, match=message):
            bootstrap_fits(replace(sample(60), **facts))


def test_a_separated_fit_has_nothing_to_draw_from():
    p = Predictions.from_arrays(TOY_X, TOY_X.argmax(axis=1))
    with pytest.warns(SeparationWarning):
        fit = fit_predictions(p)
    with pytest.raises(InputError, match=r"separated or flat. Fit with penalty=1\.0"):
        bootstrap_refits(p, fit)


def test_the_public_call_fits_first():
    p = sample(80)
    probs, y = p.probs, p.codes
    here = bootstrap_fits(probs, y, penalty=1.0, n_resamples=20, seed=3)
    fit = fit_predictions(p, penalty=1.0)
    np.testing.assert_array_equal(
        here.theta, bootstrap_refits(p, fit, n_resamples=20, seed=3).theta
    )
    moved = bootstrap_fits(
        p, fit=fit_predictions(p.with_baseline(0)), n_resamples=5, seed=3
    )
    assert moved.fit.baseline == 0
