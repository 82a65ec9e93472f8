import json
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from independent import draw, log_odds_of, simplex
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._fit.fit import fit_predictions
from mcllo._inference.hypothesis_test import TestResult
from mcllo._inference.monte_carlo import (
    StatisticDraws,
    check_resamples,
    critical_value,
    draw_labels,
    expand_weights,
    metric_nulls,
    monte_carlo_p,
    seed_entropy,
    uniforms,
)
from mcllo._model.batched import LikelihoodRatio
from mcllo._model.likelihood import sufficient_statistic
from mcllo.exceptions import InputError
from mcllo.metrics._binned import ClasswiseECE, TopLabelECE

TOY = Predictions.from_arrays(TOY_X, TOY_Y)


def stretch(values):
    """Return what `monte_carlo_p` asks for: a stretch of the given hits."""
    return lambda start, size: np.array(values[start : start + size], dtype=bool)


# --- p-values by hand


def test_all_draws_by_hand():
    # 2 of 5 draws reach the observed statistic: p = (1 + 2) / (1 + 5)
    found = monte_carlo_p(stretch([0, 1, 0, 1, 0]), n_resamples=5, batch=2, seed=7)
    assert isinstance(found, TestResult)
    assert (found.pvalue, found.n_resamples) == (0.5, 5)  # (1 + 2) / (5 + 1)
    assert found.seed == 7
    # none of 99: p = 1 / 100, never 0
    assert (
        monte_carlo_p(stretch([0] * 99), n_resamples=99, batch=50, seed=0).pvalue
        == 0.01
    )


def test_stopping_by_hand():
    # the second hit is the fourth draw: p = 2 / 4, and nothing is drawn after it
    hits = [0, 1, 0, 1, 1, 1]
    found = monte_carlo_p(stretch(hits), n_resamples=6, batch=6, seed=0, stop_at=2)
    assert (found.pvalue, found.n_resamples) == (0.5, 4)  # 2 / 4
    # with too few hits the run is a plain one
    found = monte_carlo_p(stretch(hits), n_resamples=6, batch=6, seed=0, stop_at=5)
    assert (found.pvalue, found.n_resamples) == (5 / 7, 6)  # (1 + 4) / (6 + 1)


def test_batches_do_not_change_the_answer():
    hits = np.random.default_rng(3).random(200) < 0.2
    for stop_at in (None, 1, 30):
        whole = monte_carlo_p(
            stretch(hits), n_resamples=200, batch=200, seed=0, stop_at=stop_at
        )
        for batch in (1, 3, 100):
            parts = monte_carlo_p(
                stretch(hits), n_resamples=200, batch=batch, seed=0, stop_at=stop_at
            )
            assert (parts.pvalue, parts.n_resamples) == (
                whole.pvalue,
                whole.n_resamples,
            ), batch


def test_p_values_are_exact_by_enumeration():
    # observed and four draws are exchangeable under H0: all 120 orders are equally likely, and
    # P(p <= a) = a at every attainable a (Besag and Clifford 1991)
    for stop_at in (None, 1, 2, 3):
        found = []
        for order in permutations(range(5)):
            observed, drawn = order[0], np.array(order[1:])
            p = monte_carlo_p(
                lambda start, size, o=observed, d=drawn: d[start : start + size] >= o,
                n_resamples=4,
                batch=4,
                seed=0,
                stop_at=stop_at,
            ).pvalue
            found.append(Fraction(p).limit_denominator(100))
        for level in set(found):
            assert Fraction(sum(p <= level for p in found), 120) == level, stop_at


# --- the sampler


@pytest.mark.usefixtures("both_kernels")
def test_the_sampler_is_that_of_the_specification():
    # methods specification 5.3: u = rng.random((B, n)), label = sum_k 1{u > cum_k}
    u = np.random.default_rng(0).random((20, 16))
    expected = (u[:, :, None] > TOY_X.cumsum(axis=1)[:, :-1]).sum(axis=2)
    np.testing.assert_array_equal(draw_labels(TOY_X, 0, 0, 20), expected)


def test_a_batch_starts_anywhere_in_the_stream():
    whole = uniforms(5, 0, 30, 7)
    np.testing.assert_array_equal(uniforms(5, 11, 19, 7), whole[11:])
    np.testing.assert_array_equal(
        np.vstack([draw_labels(TOY_X, 5, 0, 3), draw_labels(TOY_X, 5, 3, 9)]),
        draw_labels(TOY_X, 5, 0, 12),
    )
    assert (uniforms(6, 0, 30, 7) != whole).all()


@pytest.mark.usefixtures("both_kernels")
def test_many_classes_are_drawn_like_few():
    for c in (64, 65, 300):
        probs = simplex(np.random.default_rng(c), 9, c, 2.0)
        u = uniforms(1, 0, 40, 9)
        expected = (u[:, :, None] > probs.cumsum(axis=1)[:, :-1]).sum(axis=2)
        found = draw_labels(probs, 1, 0, 40)
        np.testing.assert_array_equal(found, expected, err_msg=f"{c} classes")
        assert found.max() < c


@pytest.mark.usefixtures("both_kernels")
def test_a_uniform_on_an_edge_belongs_to_the_class_below():
    # label = number of edges that u exceeds: u does not exceed x_1 = u
    u = uniforms(1, 0, 1, 1)[0, 0]
    for c in (3, 70):
        row = np.array([u] + [(1.0 - u) / (c - 1)] * (c - 1))
        assert draw_labels(row[None], 1, 0, 1) == 0
        assert draw_labels(np.nextafter(row, 0.0)[None], 1, 0, 1) == 1


def test_a_sure_class_is_always_drawn():
    assert (
        draw_labels(np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]), 2, 0, 500) == [1, 0]
    ).all()


@pytest.mark.usefixtures("both_kernels")
def test_draws_enter_through_their_sufficient_statistic():
    labels = draw_labels(TOY_X, 3, 4, 10)
    for baseline in range(3):
        found = StatisticDraws(TOY.with_baseline(baseline), 3)(4, 10)
        for row, drawn in zip(found, labels, strict=True):
            redrawn = Predictions.from_arrays(
                TOY_X, drawn, classes=range(3), baseline=baseline
            )
            expected = sufficient_statistic(redrawn.log_odds, redrawn.model_codes)
            np.testing.assert_allclose(row, expected, rtol=1e-12, atol=1e-12)


def test_the_mean_of_the_draws_is_the_gradient_at_the_identity():
    # E s = grad A(theta0) and Cov s = H(theta0): both sides of the score
    draws = StatisticDraws(TOY, 1)(0, 4000)
    null = fit_predictions(TOY).null_terms
    expected = null.gradient + sufficient_statistic(TOY.log_odds, TOY.model_codes)
    se = np.sqrt(np.diagonal(null.hessian) / 4000)
    assert np.abs((draws.mean(axis=0) - expected) / se).max() < 4.0
    np.testing.assert_allclose(np.cov(draws.T), null.hessian, atol=0.5)


def test_weights_are_repetitions():
    repeat = np.random.default_rng(0).integers(0, 4, size=16)
    weighted = Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=repeat)
    repeated = Predictions.from_arrays(
        np.repeat(TOY_X, repeat, axis=0), np.repeat(TOY_Y, repeat)
    )
    np.testing.assert_array_equal(expand_weights(weighted).probs, repeated.probs)
    draws = [StatisticDraws(p, 2)(3, 8) for p in (weighted, repeated)]
    np.testing.assert_allclose(*draws, rtol=1e-12)
    nulls = [
        metric_nulls(p, {"ece": TopLabelECE}, n_resamples=199, seed=1)["ece"].to_dict()
        for p in (weighted, repeated)
    ]
    assert nulls[0] == nulls[1]
    assert expand_weights(TOY) is TOY


# --- reference values


def test_toy_monte_carlo():
    # methods specification 8e, TOY, B = 1999, seed 0: p_LR .907, p_S .9185, mean lambda* 4.717
    draws = StatisticDraws(TOY, 0)(0, 1999)
    ratio = LikelihoodRatio(TOY.log_odds)
    observed = fit_predictions(TOY).statistic
    found = ratio.statistics(draws)
    assert found.mean() == pytest.approx(4.717, abs=5e-4)
    lr = monte_carlo_p(
        lambda a, m: ratio.reaches(draws[a : a + m], observed),
        n_resamples=1999,
        batch=512,
        seed=0,
    )
    assert lr.pvalue == pytest.approx(0.907, abs=1e-12)
    assert (1 + (found >= observed - 1e-8).sum()) / 2000 == lr.pvalue
    scores = ratio.score_statistics(draws)
    assert (1 + (scores >= 0.9895584940).sum()) / 2000 == pytest.approx(
        0.9185, abs=1e-12
    )


def test_a_guess_changes_no_answer():
    hits = np.random.default_rng(0).random(999) < 0.3
    last = int(np.flatnonzero(hits)[19]) + 1
    for guess, first in ((None, 64), (0.001, 512), (0.3, 80), (1.0, 24)):
        asked = []

        def exceeds(start, size, asked=asked):
            asked.append(size)
            return hits[start : start + size]

        found = monte_carlo_p(
            exceeds, n_resamples=999, batch=512, seed=0, stop_at=20, guess=guess
        )
        assert (found.pvalue, found.n_resamples) == (20 / last, last), guess
        assert asked[0] == first


@pytest.mark.slow
def test_sequential_p_values_hold_their_level():
    # 800 label vectors drawn from TOY's rows: the sequential score test at nominal 20 %
    ratio = LikelihoodRatio(TOY.log_odds)
    observed = ratio.score_statistics(StatisticDraws(TOY, 12345)(0, 800))
    rejected = 0
    for i, value in enumerate(observed):
        draws = StatisticDraws(TOY, i)
        p = monte_carlo_p(
            lambda a, m, d=draws, v=value: ratio.score_statistics(d(a, m)) >= v - 1e-9,
            n_resamples=199,
            batch=64,
            seed=i,
            stop_at=20,
        ).pvalue
        rejected += p <= 0.2
    # binomial standard error .014; ties make the test a little conservative
    assert 0.16 < rejected / 800 < 0.24


# --- errors


def test_fractional_weights_cannot_be_drawn():
    half = Predictions.from_arrays(
        TOY_X, TOY_Y, sample_weight=[1.0] * 3 + [2.5] + [1.0] * 12
    )
    for work in (
        StatisticDraws,
        lambda p, seed: metric_nulls(p, {"ece": TopLabelECE}, seed=seed),
    ):
        with pytest.raises(InputError, match=r"whole numbers.*sample_weight\[3\]=2\.5"):
            work(half, 0)


def test_seeds():
    assert seed_entropy(12) == 12
    assert seed_entropy(np.int64(12)) == 12
    assert seed_entropy(np.random.default_rng(1)) == seed_entropy(
        np.random.default_rng(1)
    )
    generator = np.random.default_rng(1)
    assert seed_entropy(generator) != seed_entropy(generator)
    assert seed_entropy(None) != seed_entropy(None)


def test_bad_seeds_and_numbers_of_draws_are_refused():
    for seed in (-1, 1.5, "zero", True, [1]):
        with pytest.raises(InputError, match="seed must be a whole number >= 0"):
            seed_entropy(seed)
    for n_resamples in (0, -5, 99.0, True, "many"):
        with pytest.raises(InputError, match="n_resamples must be"):
            check_resamples(n_resamples)
    with pytest.raises(InputError, match="n_resamples must be"):
        monte_carlo_p(stretch([0]), n_resamples=0, batch=1, seed=0)


def test_draws_do_not_depend_on_the_observed_labels():
    other = Predictions.from_arrays(
        TOY_X, draw(TOY_X, np.random.default_rng(9)), classes=range(3)
    )
    np.testing.assert_array_equal(
        StatisticDraws(other, 0)(0, 5), StatisticDraws(TOY, 0)(0, 5)
    )
    np.testing.assert_allclose(TOY.log_odds, log_odds_of(TOY_X), rtol=1e-13)


def ten_bins(p):
    return TopLabelECE(p, 10)


def test_certain_predictions_leave_nothing_to_chance():
    eye = np.eye(3)[TOY_Y] * (1 - 3e-12) + 1e-12
    null = metric_nulls(
        Predictions.from_arrays(eye, TOY_Y), {"ece": TopLabelECE}, n_resamples=99
    )
    assert null["ece"].pvalue == 1.0
    assert null["ece"].mean == pytest.approx(0.0, abs=1e-11)


def test_reference_values():
    # methods.md 5.3, TOY with 10 bins, 9999 draws, seed 0: p = .1013, mean .2151
    null = metric_nulls(TOY, {"ece": ten_bins}, n_resamples=9999, seed=0)["ece"]
    assert null.observed == pytest.approx(0.309375, abs=1e-12)
    assert null.pvalue == pytest.approx(0.1013, abs=1e-12)
    assert null.mean == pytest.approx(0.2151, abs=5e-5)


def test_enumeration():
    # methods.md 5.3, TOY: exact p = .0971007424 and mean .2146640625. Only hit or miss matters to
    # the top label, so the 2^16 patterns of hits are all there is.
    confidence, top = TOY_X.max(axis=1), TOY_X.argmax(axis=1)
    hits = (np.arange(2**16)[:, None] >> np.arange(16)) & 1
    chance = np.where(hits == 1, confidence, 1 - confidence).prod(axis=1)
    labels = np.where(hits == 1, top, (top + 1) % 3)
    errors = ten_bins(TOY).of_labels(labels)
    observed = ten_bins(TOY).of_labels(TOY.codes[None])[0]
    assert chance.sum() == pytest.approx(1.0)
    assert chance @ errors == pytest.approx(0.2146640625, abs=1e-10)
    assert chance @ (errors >= observed - 1e-12) == pytest.approx(
        0.0971007424, abs=1e-10
    )


def test_batches_do_not_matter():
    whole = metric_nulls(
        TOY, {"a": TopLabelECE, "b": ClasswiseECE}, n_resamples=500, seed=3
    )
    others = {"b": ClasswiseECE, "a": TopLabelECE}
    parts = metric_nulls(TOY, others, n_resamples=500, seed=3, batch=7)
    for name, null in whole.items():
        assert null.to_dict() == parts[name].to_dict()
        assert json.loads(json.dumps(null.to_dict()))["seed"] == 3


@pytest.mark.slow
def test_size_is_nominal():
    # H0 true: the exact p-value is at most .05 in at most 5 % of samples. 400 samples of 60 rows,
    # 199 draws each; a rate above .05 + 3 standard errors (.083) would be a defect.
    probs = np.random.default_rng(11).dirichlet(np.full(5, 0.4), 60).clip(1e-9)
    probs /= probs.sum(axis=1, keepdims=True)
    metrics, pvalues = {"ece": TopLabelECE, "classwise": ClasswiseECE}, []
    for i, y in enumerate(draw_labels(probs, 12, 0, 400)):
        p = Predictions.from_arrays(probs, y)
        nulls = metric_nulls(p, metrics, n_resamples=199, seed=1000 + i)
        pvalues.append([null.pvalue for null in nulls.values()])
    rates = (np.array(pvalues) <= 0.05).mean(axis=0)
    assert (rates < 0.083).all()
    assert (rates > 0.02).all()


def test_errors():
    with pytest.raises(InputError, match="n_resamples must be at least 1"):
        metric_nulls(TOY, {}, n_resamples=0)
    with pytest.raises(InputError, match=r"level must lie in \(0, 1\); got level=95"):
        metric_nulls(TOY, {}, level=95)


def test_what_a_statistic_exceeds_where_it_is_rare():
    drawn = np.arange(
        1.0, 40.0
    )  # 39 draws: p <= 0.05 where at most one of them is as extreme
    critical = critical_value(drawn, 0.95)
    assert critical == 38.0
    for observed in (38.0, 38.5, 39.0, 39.5):
        p = (1 + (drawn >= observed).sum()) / 40
        assert (observed > critical) == (p <= 0.05)
