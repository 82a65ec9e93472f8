import json

import numpy as np
import pytest
from independent import draw, simplex
from scipy.stats import binom, chi2
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._all_baselines import fit_each_baseline
from mcllo._best_baseline import best_baseline
from mcllo._fit import fit_predictions
from mcllo.exceptions import SeparationWarning

TOY = Predictions.from_arrays(TOY_X, TOY_Y)


def test_toy():
    # methods.md 0.4: NLL 12.0408 (baseline 0), 12.1381 (1), 12.0303 (2); 8b: p .9810
    found = best_baseline(TOY.with_baseline(1), seed=0)
    assert found.baseline == 2
    assert found.fit.log_likelihood == pytest.approx(-12.0302758915, abs=1e-8)
    assert found.max_score == pytest.approx(0.98955849, abs=1e-8)
    assert (found.pvalue, found.method, found.n_resamples, found.seed) == (0.981, "exact", 1999, 0)


def test_it_is_the_largest_of_the_single_fits():
    rng = np.random.default_rng(4)
    probs = simplex(rng, 80, 4)
    p = Predictions.from_arrays(probs, np.resize(range(4), 80))
    fits = [fit_predictions(p.with_baseline(b)) for b in range(4)]
    found = best_baseline(p, n_resamples=9)
    assert found.baseline == int(np.argmax([f.statistic for f in fits]))
    assert np.ptp([f.statistic for f in fits]) > 0.1


@pytest.mark.parametrize("baseline", [0, 1])
def test_rounding_does_not_choose_between_two_classes(baseline):
    rng = np.random.default_rng(0)
    p = Predictions.from_arrays(simplex(rng, 50, 2), np.resize([0, 1, 1], 50), baseline=baseline)
    assert best_baseline(p, n_resamples=9).baseline == baseline


def test_a_fit_that_exists_is_preferred():
    # 12 rows that only the last baseline separates: its supremum is the likeliest, -5.2 after -10.8
    probs = simplex(np.random.default_rng(102), 12, 3, sharpness=1.5)
    p = Predictions.from_arrays(probs, np.resize(range(3), 12))
    fits = fit_each_baseline(p, p.classes)
    assert [f.separated for f in fits] == [False, False, True]
    assert np.argmax([f.log_likelihood for f in fits]) == 2
    assert best_baseline(p, n_resamples=9).baseline == 1


def test_a_fit_that_does_not_exist_is_warned_of_once():
    p = Predictions.from_arrays(TOY_X, TOY_X.argmax(axis=1))
    with pytest.warns(SeparationWarning, match="does not exist") as caught:
        assert best_baseline(p, n_resamples=9).fit.separated
    assert len(caught) == 1


def test_to_dict_is_strict_json():
    content = json.loads(json.dumps(best_baseline(TOY, n_resamples=9, seed=1).to_dict()))
    assert content["baseline"] == content["fit"]["baseline"] == 2
    assert content["pvalue"] == pytest.approx(best_baseline(TOY, n_resamples=9, seed=1).pvalue)


@pytest.mark.slow
def test_the_p_value_pays_for_the_choice():
    # H0 holds. Chi-square at the likeliest baseline forgets that six were tried.
    rng = np.random.default_rng(7)
    probs = simplex(rng, 150, 6, sharpness=2.0)
    paid, forgot = [], []
    for rep in range(200):
        p = Predictions.from_arrays(probs, draw(probs, rng), classes=range(6))
        found = best_baseline(p, n_resamples=99, seed=rep)
        paid.append(found.pvalue <= 0.05)
        forgot.append(chi2.sf(found.fit.statistic, found.fit.df) <= 0.05)
    low, high = binom.interval(0.999, 200, 0.05)
    assert low <= sum(paid) <= high
    assert sum(forgot) > high
