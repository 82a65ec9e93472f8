import numpy as np
import pytest
from independent import direct_nll, draw, log_odds_of, power_formula, simplex
from scipy.optimize import minimize
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._ladder_models import mcllo_bases
from mcllo._nested_bound import nested_bound
from mcllo._split_ratio import split_pvalue

BASES = mcllo_bases(2)


def test_too_few_rows_show_nothing():
    p = Predictions.from_arrays(TOY_X[:3], [0, 1, 2])
    assert nested_bound(p, BASES["identity"], BASES["mcllo"], full=False) == 1.0


def test_against_the_identity_it_is_the_split_ratio():
    p = Predictions.from_arrays(TOY_X[:, [2, 0, 1]], np.tile([0, 2], 8), classes=range(3))
    found = nested_bound(p, BASES["identity"], BASES["mcllo"], full=False)
    assert found == pytest.approx(split_pvalue(p), rel=1e-8)


def test_against_scipy():
    # temperature against common slope on 40 rows; both halves, both ways, ridge 1 to the small fit
    rng = np.random.default_rng(6)
    probs = simplex(rng, 40, 3)
    y = draw(power_formula(probs, np.array([6.0, 0.3]), np.array([1.0, 1.0])), rng)
    odds, gains = log_odds_of(probs), []
    temperature, common = BASES["temperature"], BASES["common_slope"]
    start = np.array([0.0, 0.0, 1.0, 1.0])

    def nll(theta, half):
        return direct_nll(theta, odds[:, half::2], y[half::2])

    def best(basis, origin, half, ridge):
        def objective(beta):
            away = basis @ beta
            return nll(origin + away, half) + 0.5 * ridge * away @ away

        found = minimize(objective, np.zeros(basis.shape[1]), method="BFGS", options={"gtol": 1e-8})
        return origin + basis @ found.x

    for half in (0, 1):
        learned = best(common, best(temperature, start, half, 0.0), half, 1.0)
        rival = best(temperature, start, 1 - half, 0.0)
        gains.append(nll(rival, 1 - half) - nll(learned, 1 - half))
    expected = min(1.0, 2.0 / np.exp(gains).sum())
    p = Predictions.from_arrays(probs, y, classes=range(3))
    found = nested_bound(p, temperature, common, full=False)
    assert found == pytest.approx(expected, rel=1e-5)
    assert found < 0.5  # the comparison says something


def test_a_model_that_is_far_off_is_seen():
    rng = np.random.default_rng(1)
    probs = simplex(rng, 2000, 3, 1.5)
    y = draw(power_formula(probs, np.array([2.0, 0.5]), np.array([0.5, 0.5])), rng)
    p = Predictions.from_arrays(probs, y, classes=range(3))
    assert nested_bound(p, BASES["temperature"], BASES["mcllo"], full=False) < 1e-10
    assert nested_bound(p, BASES["common_slope"], BASES["mcllo"], full=False) > 0.05


def test_weights_count_rows():
    weight = np.resize([2.0, 1.0], 16)  # rows of weight 2 in one half, of weight 1 in the other
    weighted = Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=weight)
    halves = np.empty(32, dtype=int)
    halves[::2] = np.repeat(np.arange(0, 16, 2), 2)
    halves[1::2] = np.resize(np.arange(1, 16, 2), 16)
    long = Predictions.from_arrays(
        TOY_X[halves], TOY_Y[halves], sample_weight=np.resize([1.0, 0.5], 32)
    )
    small, large = BASES["shift"], BASES["mcllo"]
    found = [nested_bound(p, small, large, full=False) for p in (weighted, long)]
    assert found[0] == pytest.approx(found[1], rel=1e-7)


@pytest.mark.slow
def test_it_seldom_falls_below_the_level():
    # the truth is a temperature: the bound is at most .2 in at most a fifth of 200 samples
    rng = np.random.default_rng(2)
    probs = simplex(rng, 100, 3, 1.5)
    truth = power_formula(probs, np.ones(2), np.full(2, 0.5))
    low = 0
    for _ in range(200):
        p = Predictions.from_arrays(probs, draw(truth, rng), classes=range(3))
        low += nested_bound(p, BASES["temperature"], BASES["mcllo"], full=False) <= 0.2
    assert low / 200 < 0.2
