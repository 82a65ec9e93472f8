import numpy as np
import pytest
from independent import draw, simplex
from scipy.stats import chi2
from toy import TOY_X, TOY_Y

from mcllo import Predictions, calibration_test
from mcllo._ladder_models import mcllo_bases
from mcllo._nested_test import TOO_COSTLY, TOO_MANY, Plan, against_identity, against_larger, gain
from mcllo._restriction import Family, restricted_fit
from mcllo.exceptions import InputError

TOY = Predictions.from_arrays(TOY_X, TOY_Y)
BASES = mcllo_bases(2)


def plan_for(predictions=TOY, method="exact", n_resamples=199, **options):
    options = {"df": 4, "seed": 0, "n_tests": 8} | options
    df = options.pop("df")
    return Plan.of(predictions, df, method=method, n_resamples=n_resamples, **options)


def test_nothing_gained_has_p_value_one():
    family = Family(TOY)
    tail = against_identity(plan_for(), family, BASES["identity"], 0.0)
    assert (tail.pvalue, tail.method) == (1.0, "chi2")


def test_exact_p_value_of_mcllo_is_that_of_the_calibration_test():
    family = Family(TOY)
    value = gain(restricted_fit(family, BASES["identity"]), restricted_fit(family, BASES["mcllo"]))
    tail = against_identity(plan_for(n_resamples=1999), family, BASES["mcllo"], value)
    # methods specification 8e, TOY: B = 1999, seed 0
    assert tail.pvalue == pytest.approx(0.907, abs=1e-12)
    assert tail.method == "exact"
    assert tail.pvalue == calibration_test(TOY, method="exact", seed=0).pvalue


def test_chi_square_counts_the_difference_of_parameters():
    family = Family(TOY)
    small, large = (restricted_fit(family, BASES[m]) for m in ("temperature", "mcllo"))
    tail = against_larger(plan_for(method="chi2"), family, small, family, large)
    # methods specification 8f, TOY: 1.146211420 - .601303196 on 2 c - 3 = 3 df
    assert tail.pvalue == pytest.approx(chi2.sf(1.146211420 - 0.601303196, 3), abs=1e-7)


def test_bootstrap_draws_from_the_fitted_smaller_model():
    # an independent loop: draw labels from the fitted shift, refit both models one by one
    rng = np.random.default_rng(8)
    probs = simplex(rng, 40, 3)
    p = Predictions.from_arrays(probs, draw(probs, rng), classes=[0, 1, 2])
    family = Family(p)
    small, large = (restricted_fit(family, BASES[m]) for m in ("shift", "mcllo"))
    odds = np.exp(small.theta[:2]) * probs[:, :2] / probs[:, 2:]
    fitted = np.column_stack([odds, np.ones(40)]) / (1.0 + odds.sum(axis=1, keepdims=True))
    uniforms, hits = np.random.default_rng(0).random((99, 40)), 0
    for u in uniforms:
        codes = (u[:, None] > fitted.cumsum(axis=1)[:, :-1]).sum(axis=1)
        other = Family(Predictions.from_arrays(probs, codes, classes=[0, 1, 2]))
        pair = [restricted_fit(other, BASES[m]) for m in ("shift", "mcllo")]
        hits += gain(*pair) >= gain(small, large) - 1e-6
    tail = against_larger(plan_for(p, n_resamples=99), family, small, family, large)
    assert (tail.method, tail.n_resamples) == ("bootstrap", 99)
    assert tail.pvalue == (1 + hits) / 100


def test_weights_are_rows_written_out():
    weight = np.resize([2.0, 1.0, 0.0], len(TOY_Y))
    rows = np.repeat(np.arange(len(TOY_Y)), weight.astype(int))
    found = []
    for p in (Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=weight), TOY.take(rows)):
        family = Family(p)
        small, large = (restricted_fit(family, BASES[m]) for m in ("scale", "mcllo"))
        found.append(against_larger(plan_for(p), family, small, family, large).pvalue)
    assert found[0] == found[1]


def test_auto_draws_less_for_larger_data_but_never_too_little():
    few = plan_for(method="auto", n_resamples=1999)
    many = Predictions.from_arrays(np.tile(TOY_X, (20_000, 1)), np.tile(TOY_Y, 20_000))
    assert few.n_draws(Family(TOY)) == 1999
    assert plan_for(many, "sequential", 1999).n_draws(Family(TOY)) == 1999
    plan = plan_for(many, "auto", 1999, df=10**6, n_tests=1, fewest=120)
    assert plan.n_draws(Family(TOY)) == 120
    assert TOO_MANY not in plan.reason
    plan = plan_for(many, "auto", 1999, df=10**6, n_tests=8, fewest=120)  # 960,000 cells a draw
    assert plan.method == "chi2"
    assert TOO_MANY in plan.reason


def test_a_full_map_too_large_to_simulate_says_so():
    rng = np.random.default_rng(4)
    probs = simplex(rng, 3000, 12)
    p = Predictions.from_arrays(probs, draw(probs, rng), classes=list(range(12)))
    family = Family(p, full=True)
    tail = against_identity(plan_for(p), family, np.eye(132), 100.0)
    assert tail.method == "chi2"
    assert TOO_COSTLY in tail.reason
    assert tail.pvalue == pytest.approx(chi2.sf(100.0, 132))


def test_arguments_are_checked():
    with pytest.raises(InputError, match="method must be"):
        plan_for(method="bootstrap")
    with pytest.raises(InputError, match="n_resamples must be at least 1"):
        plan_for(n_resamples=0)
    weighted = Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=np.full(16, 0.5))
    with pytest.raises(InputError, match="whole-number weights"):
        plan_for(weighted)
