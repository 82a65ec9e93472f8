import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t
from toy import TOY_X, TOY_Y

from mcllo import Predictions, Recommendation
from mcllo._workflows.compare import bootstrap_means, paired_differences
from mcllo._workflows.recommend import SAME, SIMPLEST_FIRST, LossDifference, recommend, row_losses
from mcllo.calibrators import CALIBRATORS

TOY = Predictions.from_arrays(TOY_X, TOY_Y)


def two(sure, **options):
    """Return two-class rows in which the label 0, which came true, has the probability `sure`."""
    sure = np.asarray(sure, dtype=float)
    probs = np.column_stack([sure, 1.0 - sure])
    return Predictions.from_arrays(probs, np.zeros(len(sure), int), classes=[0, 1], **options)


def uniform(n, seed):
    """Return two rows of numbers between 0.1 and 0.9, and what drew them."""
    rng = np.random.default_rng(seed)
    return rng.uniform(0.1, 0.9, n), rng.uniform(0.1, 0.9, n), rng


def noisy(rng, n, shift):
    """Return rows whose log loss is about `shift` lower than that of rows with 0.5."""
    return np.clip(np.exp(-rng.normal(np.log(2.0) - shift, 0.3, n)), 1e-3, 1.0 - 1e-3)


# fixed point


def test_the_same_rows_are_no_gain_and_nothing_is_named():
    r = recommend({"uncalibrated": TOY, "mcllo": TOY, "temperature": TOY})
    assert r.method == r.simplest == "uncalibrated"
    assert not r.improves
    assert r.gain is None
    assert r.ties == ("mcllo", "temperature")
    assert all(d == LossDifference(d.method, 0.0, 0.0, 0.0, 0.0) for d in r.differences)


# by hand


def test_two_rows_by_hand():
    # losses: none log 2 twice; temperature log(1/.8) and log(1/.5): differences log 1.6 and 0,
    # mean .2350, standard error sqrt(((.2350)^2 * 2) / 1 / 2) = .2350, t_1 at .975 = 12.706
    r = recommend({"uncalibrated": two([0.5, 0.5]), "temperature": two([0.8, 0.5])})
    half = np.log(1.6) / 2
    assert r.method == "temperature"
    assert r.log_loss == pytest.approx(np.log(2) - half)
    gain = r.gain
    assert (gain.difference, gain.standard_error) == pytest.approx((half, half))
    assert (gain.low, gain.high) == pytest.approx((half * -11.7062, half * 13.7062), rel=1e-5)
    assert not r.improves
    assert r.runner_up is None


def test_more_methods_make_wider_intervals():
    rng = np.random.default_rng(0)
    sets = {"uncalibrated": two(np.full(400, 0.5)), "mcllo": two(noisy(rng, 400, 0.05))}
    more = {**sets, **{f"m{j}": two(noisy(rng, 400, 0.0)) for j in range(9)}}
    one, ten = recommend(sets), recommend(more)
    error = one.gain.standard_error
    assert ten.gain.standard_error == error
    assert one.gain.high - one.gain.difference == pytest.approx(t.ppf(0.975, 399) * error)
    assert ten.gain.high - ten.gain.difference == pytest.approx(t.ppf(0.9975, 399) * error)
    assert (one.n_methods, ten.n_methods) == (1, 10)


def test_ties_runner_up_and_the_simplest():
    rng = np.random.default_rng(1)
    best = noisy(rng, 2000, 0.2)
    near = np.clip(best * np.exp(rng.normal(-0.0005, 0.05, 2000)), 1e-3, 1 - 1e-3)
    sets = {
        "uncalibrated": two(np.full(2000, 0.5)),
        "temperature": two(near),
        "auto": two(best),
        "histogram": two(noisy(rng, 2000, 0.1)),
    }
    r = recommend(sets)
    assert (r.method, r.improves) == ("auto", True)
    assert r.ties == ("temperature",)
    assert r.simplest == r.runner_up.method == "temperature"
    assert [d.method for d in r.differences] == ["temperature", "histogram", "uncalibrated"]


def test_a_difference_that_four_decimals_do_not_show_is_none():
    a, b = np.full(1000, 0.5), np.full(1000, 0.50001)
    r = recommend({"uncalibrated": two(a), "mcllo": two(b)})
    assert r.method == "mcllo"
    assert r.gain.low > 0.0
    assert not r.improves
    assert r.ties == ("uncalibrated",)


# against other ways to compute the same


def test_weights_count_rows():
    a, b, rng = uniform(40, 2)
    w = rng.integers(0, 4, 40)
    weighted = {"uncalibrated": two(a, sample_weight=w), "beta": two(b, sample_weight=w)}
    repeated = {"uncalibrated": two(np.repeat(a, w)), "beta": two(np.repeat(b, w))}
    x, y = recommend(weighted), recommend(repeated)
    assert x.log_loss == pytest.approx(y.log_loss)
    first, second = x.differences[0], y.differences[0]
    assert (first.low, first.high) == pytest.approx((second.low, second.high))


def test_groups_of_equal_rows_are_as_many_units_as_groups():
    a, b, _ = uniform(30, 3)
    rows, groups = {"uncalibrated": a, "beta": b}, np.repeat(np.arange(30), 5)
    x = recommend({name: two(np.repeat(one, 5), groups=groups) for name, one in rows.items()})
    y = recommend({name: two(one) for name, one in rows.items()})
    first, second = x.differences[0], y.differences[0]
    assert (first.low, first.high) == pytest.approx((second.low, second.high))


def test_survey_weights_do_not_add_rows():
    a, b, rng = uniform(50, 4)
    w = rng.uniform(0.5, 2.0, 50)

    def error(weight):
        survey = {"sample_weight": weight, "weight_kind": "survey"}
        found = recommend({"uncalibrated": two(a, **survey), "beta": two(b, **survey)})
        return found.differences[0].standard_error

    assert error(10.0 * w) == pytest.approx(error(w))
    assert error(np.ones(50)) == pytest.approx(np.log(a / b).std(ddof=1) / np.sqrt(50))


# equal up to rounding


@pytest.mark.parametrize("push", [-0.5, 1e-10, 0.5])
def test_what_differs_by_rounding_is_equal_and_the_simplest_is_best(push):
    # auto at its most careful is the identity, but for rounding: no lead, either way
    a, _, _ = uniform(200, 5)
    near = a * np.exp(push * SAME)
    r = recommend({"auto": two(near), "uncalibrated": two(a), "beta": two(a * 0.9)})
    assert r.method == "uncalibrated"
    assert r.difference("auto").difference == 0.0
    assert r.ties == ("auto",)
    assert [d.method for d in r.differences] == ["auto", "beta"]


def test_what_differs_by_more_than_rounding_is_not_equal():
    a, _, _ = uniform(200, 5)
    r = recommend({"uncalibrated": two(a), "auto": two(a * np.exp(3.0 * SAME))})
    assert r.method == "auto"
    assert r.gain.difference == pytest.approx(3.0 * SAME)
    assert r.ties == ("uncalibrated",)


# properties


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.integers(2, 40), st.integers(1, 5))
def test_differences_are_sorted_inside_their_intervals_and_json_is_strict(seed, n, k):
    rng = np.random.default_rng(seed)
    names = ["uncalibrated", *list(CALIBRATORS)[:k]]
    r = recommend({name: two(rng.uniform(0.01, 0.99, n)) for name in names})
    values = [d.difference for d in r.differences]
    assert values == sorted(values)
    assert min(values) >= 0.0
    assert all(d.low <= d.difference <= d.high for d in r.differences)
    assert {r.method, *(d.method for d in r.differences)} == set(names)
    content = json.loads(json.dumps(r.to_dict(), allow_nan=False))
    assert content["method"] == r.method
    assert content["text"] == str(r)


def test_one_row_shows_nothing():
    r = recommend({"uncalibrated": two([0.5]), "mcllo": two([0.9])})
    assert not r.improves
    assert r.to_dict()["differences"][0]["low"] is None


def test_every_method_has_a_place():
    assert set(SIMPLEST_FIRST) == {"uncalibrated", *CALIBRATORS}
    later = recommend({"uncalibrated": two([0.4, 0.6]), "new": two([0.5, 0.6])})
    assert later.simplest == "uncalibrated"


@pytest.mark.slow
def test_where_nothing_helps_a_winner_is_rarely_declared():
    # ten methods that add noise alone: some log loss is always below the raw one by chance. A plain
    # 95 % interval of the winner excludes 0 in far more than 2.5 % of data sets; adjusted, at most
    # 2.5 % (one side), with a Monte Carlo standard error of .8 % in 400 data sets.
    plain, adjusted = 0, 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        raw = two(np.full(300, 0.5))
        sets = {"uncalibrated": raw} | {f"m{j}": two(noisy(rng, 300, 0.0)) for j in range(10)}
        r = recommend(sets)
        adjusted += r.improves
        gain = r.gain
        plain += gain is not None and gain.difference > 1.968 * gain.standard_error
    assert plain / 400 > 0.1
    assert adjusted / 400 < 0.025 + 2.6 * 0.008


def made(method, *differences):
    others = tuple(LossDifference(*d) for d in differences)
    return Recommendation(method, 0.182, others, 0.95, len(others), 2000, cross_validated=True)


NEXT = ("temperature", 0.0009, 0.0006, -0.0003, 0.0021)
CLOSE = ("dirichlet", 0.0011, 0.0006, -0.0001, 0.0023)
RAW = ("uncalibrated", 0.0475, 0.003, 0.041, 0.054)


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ((NEXT,), "temperature cannot be told from it and is simpler."),
        ((CLOSE, NEXT), "dirichlet and temperature cannot be told from it; the simplest is temp"),
    ],
)
def test_a_simpler_method_that_would_do_is_named(others, words):
    assert words in str(made("auto", *others, RAW))


def test_one_method_and_none():
    rng = np.random.default_rng(0)
    raw = two(np.full(500, 0.5))
    text = str(recommend({"uncalibrated": raw, "mcllo": two(noisy(rng, 500, 0.2))}))
    assert "next of" not in text
    assert "at once" not in text
    assert str(recommend({"uncalibrated": raw})) == "No method was compared."


def test_no_minus_zero():
    assert "-0.0000" not in str(made("auto", ("beta", 0.001, 0.0005, -0.00001, 0.002), RAW))


def test_a_method_does_not_differ_from_itself():
    found = paired_differences({"a": TOY, "b": TOY}, seed=0)
    assert found == {"a": (0.0, 0.0, 0.0), "b": (0.0, 0.0, 0.0)}


def test_difference_by_hand():
    # rows (1/2, 1/2) against (1/4, 3/4), labels 1: log 2 - log(4/3) = log(3/2) in every row
    flat = Predictions.from_arrays([[0.5, 0.5]] * 3, [1, 1, 1])
    good = Predictions.from_arrays([[0.25, 0.75]] * 3, [1, 1, 1])
    found = paired_differences({"flat": flat, "good": good}, seed=0)
    assert found["good"] == (0.0, 0.0, 0.0)
    assert found["flat"] == pytest.approx((np.log(1.5),) * 3)


def test_row_losses_average_to_the_log_loss():
    # methods specification 4: TOY log loss
    assert row_losses(TOY).mean() == pytest.approx(0.78771135, abs=1e-8)


def test_bootstrap_spread_is_the_standard_error():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2000, 2))
    means = bootstrap_means(values, np.ones(2000), seed=1)
    assert means.std(axis=0) == pytest.approx(values.std(axis=0) / np.sqrt(2000), rel=0.1)
    assert means.mean(axis=0) == pytest.approx(values.mean(axis=0), abs=0.005)


def test_weights_enter_the_mean_and_the_seed_repeats():
    weight = np.zeros(16)
    weight[:4] = 1.0
    weighted = Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=weight)
    other = weighted.with_probs(np.full((16, 3), 1 / 3))
    first = paired_differences({"a": weighted, "b": other}, seed=3)
    mean = np.log(3) - row_losses(TOY)[:4].mean()
    assert first["b" if mean > 0 else "a"][0] == pytest.approx(abs(mean))
    assert first == paired_differences({"a": weighted, "b": other}, seed=3)
