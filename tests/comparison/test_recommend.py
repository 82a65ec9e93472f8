import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t
from toy import TOY_X, TOY_Y

from mcllo import Predictions, Recommendation
from mcllo._comparison.methods import CHOICE_METHODS
from mcllo._comparison.recommend import (
    LOSS_TIE_TOL,
    SIMPLEST_FIRST,
    LossDifference,
    recommend,
    row_log_losses,
)
from mcllo.calibrators import CALIBRATORS

TOY = Predictions.from_arrays(TOY_X, TOY_Y)


def two(sure, **options):
    """Return two-class rows in which the label 0, which came true, has the probability `sure`."""
    sure = np.asarray(sure, dtype=float)
    probs = np.column_stack([sure, 1.0 - sure])
    return Predictions.from_arrays(
        probs, np.zeros(len(sure), int), classes=[0, 1], **options
    )


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


def test_rows_by_hand():
    # losses: none log 2 in each of four rows; temperature log(1/.8) in three, log(1/.2) in one:
    # differences log 1.6 thrice and log .4, mean .1235, standard error log 4 / 4 = .3466. The rows
    # are equal, so that any share q of the fourth kind may be the truth, and D = log 1.6 - q log 4:
    # binomial deviance of 1 in 4 up to t_3(.975)^2 V / (.3 * .7 / 4), V = .3466^2 / (log 4)^2
    # (Firth's q is 1.5 / 5): 12.057, q from .00025 to .9352 (by a root finder)
    probs = np.tile([0.8, 0.2], (4, 1))
    y = [0, 0, 0, 1]
    none = Predictions.from_arrays(np.full((4, 2), 0.5), y)
    r = recommend({"uncalibrated": none, "temperature": none.with_probs(probs)})
    assert r.method == "temperature"
    assert r.log_loss == pytest.approx(np.log(2) - 0.12343, abs=1e-5)
    gain = r.gain
    assert (gain.difference, gain.standard_error) == pytest.approx(
        (0.12343, np.log(4) / 4), abs=1e-5
    )
    expected = np.log(1.6) - np.log(4) * np.array([0.9352342, 0.00025427])
    assert (gain.low, gain.high) == pytest.approx(tuple(expected), abs=1e-3)
    assert not r.improves
    assert r.runner_up is None


def test_more_methods_make_wider_intervals():
    rng = np.random.default_rng(0)
    sets = {"uncalibrated": two(np.full(400, 0.5)), "mcllo": two(noisy(rng, 400, 0.05))}
    more = {**sets, **{f"m{j}": two(noisy(rng, 400, 0.0)) for j in range(9)}}
    one, ten = recommend(sets), recommend(more)
    error = one.gain.standard_error
    assert ten.gain.standard_error == error
    assert one.gain.difference - one.gain.low > 0.95 * t.ppf(0.975, 399) * error
    assert ten.gain.low < one.gain.low
    assert one.gain.high < ten.gain.high
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
    assert [d.method for d in r.differences] == [
        "temperature",
        "histogram",
        "uncalibrated",
    ]


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
    weighted = {
        "uncalibrated": two(a, sample_weight=w),
        "beta": two(b, sample_weight=w),
    }
    repeated = {"uncalibrated": two(np.repeat(a, w)), "beta": two(np.repeat(b, w))}
    x, y = recommend(weighted), recommend(repeated)
    assert x.log_loss == pytest.approx(y.log_loss)
    first, second = x.differences[0], y.differences[0]
    assert (first.low, first.high) == pytest.approx((second.low, second.high))


def test_groups_of_equal_rows_are_as_many_units_as_groups():
    a, b, _ = uniform(30, 3)
    rows, groups = {"uncalibrated": a, "beta": b}, np.repeat(np.arange(30), 5)
    x = recommend(
        {name: two(np.repeat(one, 5), groups=groups) for name, one in rows.items()}
    )
    y = recommend({name: two(one) for name, one in rows.items()})
    first, second = x.differences[0], y.differences[0]
    assert (first.low, first.high) == pytest.approx((second.low, second.high), rel=0.02)


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


def test_what_differs_by_rounding_is_equal_and_the_simplest_is_best():
    # auto at its most careful is the identity, but for rounding: no lead, either way
    a, _, _ = uniform(200, 5)
    for push in (-0.5, 1e-10, 0.5):
        near = a * np.exp(push * LOSS_TIE_TOL)
        r = recommend({"auto": two(near), "uncalibrated": two(a), "beta": two(a * 0.9)})
        assert r.method == "uncalibrated", push
        assert r.difference("auto").difference == 0.0, push
        assert r.ties == ("auto",), push
        assert [d.method for d in r.differences] == ["auto", "beta"], push


def test_what_differs_by_more_than_rounding_is_not_equal():
    a, _, _ = uniform(200, 5)
    r = recommend({"uncalibrated": two(a), "auto": two(a * np.exp(3.0 * LOSS_TIE_TOL))})
    assert r.method == "auto"
    assert r.gain.difference == pytest.approx(3.0 * LOSS_TIE_TOL)
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
    of_logs = {"vector_log_probs", "matrix_log_probs"}
    others = {"uncalibrated", *of_logs, *CHOICE_METHODS}
    assert set(SIMPLEST_FIRST) == {*CALIBRATORS} | others
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
        sets = {"uncalibrated": raw} | {
            f"m{j}": two(noisy(rng, 300, 0.0)) for j in range(10)
        }
        r = recommend(sets)
        adjusted += r.improves
        gain = r.gain
        plain += gain is not None and gain.difference > 1.968 * gain.standard_error
    assert plain / 400 > 0.1
    assert adjusted / 400 < 0.025 + 2.6 * 0.008


def test_one_method_and_none():
    rng = np.random.default_rng(0)
    raw = two(np.full(500, 0.5))
    text = str(recommend({"uncalibrated": raw, "mcllo": two(noisy(rng, 500, 0.2))}))
    assert "next of" not in text
    assert "at once" not in text
    assert str(recommend({"uncalibrated": raw})) == "No method was compared."


def test_no_minus_zero():
    near = LossDifference("beta", 0.001, 0.0005, -0.00001, 0.002)
    raw = LossDifference("uncalibrated", 0.0475, 0.003, 0.041, 0.054)
    r = Recommendation("auto", 0.182, (near, raw), 0.95, 2, 2000, cross_validated=True)
    assert "-0.0000" not in str(r)


def test_row_losses_average_to_the_log_loss():
    # methods specification 4: TOY log loss
    assert row_log_losses(TOY).mean() == pytest.approx(0.78771135, abs=1e-8)
