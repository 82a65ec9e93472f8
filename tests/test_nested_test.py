import numpy as np
import pytest
from independent import draw, simplex
from scipy.stats import chi2
from toy import TOY_X, TOY_Y

from mcllo import Predictions, calibration_test
from mcllo._ladder_models import mcllo_bases
from mcllo._nested_test import (
    SCORED,
    TOO_COSTLY,
    TOO_MANY,
    Plan,
    against_identity,
    against_larger,
    gain,
)
from mcllo._restriction import Family, restricted_fit
from mcllo.exceptions import InputError

TOY = Predictions.from_arrays(TOY_X, TOY_Y)
BASES = mcllo_bases(2)


def plan_for(predictions=TOY, method="exact", n_resamples=199, **options):
    options = {"seed": 0, "n_tests": 8} | options
    return Plan.of(predictions, method=method, n_resamples=n_resamples, **options)


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


def test_work_pays_for_refits_then_for_scores_then_for_nothing():
    # 16 x 3 = 48 cells a draw and 8 tests: work for B refits each is 384 B
    family = Family(TOY)
    kinds = {}
    for work in (384 * 1999, 384 * 150, 384 * 98, 384 * 99 / 25, 384 * 3):
        choice = plan_for(method="auto", n_resamples=1999, work=work).choose(family, 4)
        kinds[work] = (choice.kind, choice.n_draws)
        assert choice.reason.startswith("only 1.6")  # expected errors per parameter: 6.4 / 4
    assert list(kinds.values()) == [
        ("refit", 1999),
        ("refit", 150),
        ("score", 1999),
        ("score", 99),
        ("chi2", 0),
    ]
    reason = plan_for(method="auto", work=384 * 98).choose(family, 4).reason
    assert SCORED in reason
    assert TOO_MANY in plan_for(method="auto", work=1.0).choose(family, 4).reason
    assert plan_for(method="sequential", work=1.0).choose(family, 4).kind == "refit"


def test_information_is_counted_per_parameter_of_the_larger_model():
    rng = np.random.default_rng(4)
    probs = simplex(rng, 200, 3)
    p = Predictions.from_arrays(probs, draw(probs, rng), classes=[0, 1, 2])
    plan, family = plan_for(p, "auto"), Family(p)
    assert plan.choose(family, 4).kind == "chi2"
    assert plan.choose(family, 6).kind == "refit"
    assert "expected errors per parameter" in plan.choose(family, 6).reason


def test_few_draws_stop_at_fewer_exceedances():
    assert plan_for(method="auto").stop_at(1999) == 50
    assert plan_for(method="auto").stop_at(200) == 20
    assert plan_for(method="exact").stop_at(200) is None


def test_scores_are_exact_against_the_identity():
    # the score test of `calibration_test` with the same draws, which has no parameter to estimate
    family = Family(TOY)
    value = gain(restricted_fit(family, BASES["identity"]), restricted_fit(family, BASES["mcllo"]))
    plan = plan_for(method="auto", n_resamples=999, work=384 * 60)
    tail = against_identity(plan, family, BASES["mcllo"], value)
    expected = calibration_test(
        TOY, statistic="score", method="sequential", seed=0, n_resamples=999
    )
    assert (tail.method, tail.n_resamples) == ("score", expected.n_resamples)
    assert tail.pvalue == expected.pvalue


def test_scores_of_the_fitted_smaller_model():
    # an independent loop over labels drawn from the fitted shift, scored at that fit
    family = Family(TOY)
    small, large = (restricted_fit(family, BASES[m]) for m in ("shift", "mcllo"))
    odds = np.exp(small.theta[:2]) * TOY_X[:, :2] / TOY_X[:, 2:]
    fitted = np.column_stack([odds, np.ones(16)]) / (1.0 + odds.sum(axis=1, keepdims=True))
    terms = family.partition()(small.theta)

    def score(s):
        u, h = s - terms.gradient, terms.hessian
        return u @ np.linalg.solve(h, u) - u[:2] @ np.linalg.solve(h[:2, :2], u[:2])

    hits, logs = 0, np.log(TOY_X[:, :2] / TOY_X[:, 2:])
    for u in np.random.default_rng(0).random((300, 16)):
        codes = (u[:, None] > fitted.cumsum(axis=1)[:, :-1]).sum(axis=1)
        marks = codes[:, None] == np.arange(2)
        s = np.concatenate([marks.sum(axis=0), (marks * logs).sum(axis=0)])
        hits += score(s) >= score(family.statistic) - 1e-9
        if hits == 20:
            break
    plan = plan_for(method="auto", n_resamples=300, work=384 * 60)
    tail = against_larger(plan, family, small, family, large)
    assert tail.method == "score"
    assert tail.pvalue == 20 / tail.n_resamples
    assert hits == 20


def test_far_off_models_have_a_bound_and_no_draws():
    rng = np.random.default_rng(0)
    probs = simplex(rng, 120, 3, 3.0)
    y = np.where(rng.random(120) < 0.5, probs.argmin(axis=1), draw(probs, rng))
    p = Predictions.from_arrays(probs, y, classes=[0, 1, 2])
    family = Family(p)
    fits = {m: restricted_fit(family, BASES[m]) for m in ("identity", "shift", "mcllo")}
    plan = plan_for(p, "auto")
    null = against_identity(plan, family, BASES["mcllo"], gain(fits["identity"], fits["mcllo"]))
    tail = against_larger(plan, family, fits["shift"], family, fits["mcllo"])
    for found in (null, tail):
        assert (found.method, found.n_resamples) == ("bound", 0)
        assert found.pvalue < 1 / (20 * 200)
    asked = against_larger(plan_for(p), family, fits["shift"], family, fits["mcllo"])
    assert asked.method == "bootstrap"


def test_a_full_map_too_large_to_refit_is_scored():
    rng = np.random.default_rng(4)
    probs = simplex(rng, 12_000, 12)
    p = Predictions.from_arrays(probs, draw(probs, rng), classes=list(range(12)))
    family = Family(p, full=True)
    # 144,000 cells x 12^2 / 4: 4e8 pay for 77 refits, or for 150 times as many scores
    assert plan_for(p).choose(family, 132)[:2] == ("score", 199)
    assert plan_for(p, n_resamples=50).choose(family, 132).kind == "refit"
    poor = plan_for(p, "auto", work=1e6).choose(family, 10_000)
    assert poor.kind == "chi2"
    assert TOO_COSTLY in poor.reason


def test_arguments_are_checked():
    with pytest.raises(InputError, match="method must be"):
        plan_for(method="bootstrap")
    with pytest.raises(InputError, match="n_resamples must be at least 1"):
        plan_for(n_resamples=0)
    with pytest.raises(InputError, match="work must be a number of cells >= 0"):
        plan_for(work=-1.0)
    weighted = Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=np.full(16, 0.5))
    with pytest.raises(InputError, match="whole-number weights"):
        plan_for(weighted)
