"""`assess_choices`: its numbers beside other ways to the same, its words, its levels."""

import json

import numpy as np
import pytest
from choice_data import simulate, vector

import mcllo
from mcllo import Predictions
from mcllo.exceptions import InputError


def biased(n=3000, by=None, seed=0):
    predictions = simulate(n, 5, 0.6, [0.0, 0.3, -0.2, 0.5, 0.0], seed=seed)
    return predictions if by is None else predictions.with_by(by)


@pytest.fixture(scope="module")
def assessed():
    names = np.array(["law", "physics", "history"])[np.arange(3000) % 3]
    return mcllo.assess_choices(biased(by=names), seed=1)


def test_metrics_by_hand():
    # two rows: A of .6 right, B of .3 (third of three) wrong
    a = mcllo.assess_choices(
        [[0.6, 0.4], [0.5, 0.3, 0.2]], [0, 1], kind="probs", seed=0
    )
    assert a.metrics["accuracy"] == 0.5
    assert a.metrics["log_loss"] == pytest.approx(-(np.log(0.6) + np.log(0.3)) / 2)
    # (.4^2 + .4^2 + .5^2 + .7^2 + .2^2) / 2
    assert a.metrics["brier"] == pytest.approx((0.32 + 0.78) / 2)
    assert a.expected["accuracy"] == pytest.approx(0.55)
    # 1 - (.36 + .16) and 1 - (.25 + .09 + .04)
    assert a.expected["brier"] == pytest.approx((0.48 + 0.62) / 2)
    positions = a.positions.rows()
    assert [row["offered"] for row in positions] == [2, 2, 1]
    assert [row["chosen"] for row in positions] == [1.0, 0.0, 0.0]
    assert [row["right"] for row in positions] == [0.5, 0.5, 0.0]
    assert positions[0]["expected"] == pytest.approx(0.55)


def test_test_and_fit_are_those_of_the_vector():
    # methods specification, section 9a
    a = mcllo.assess_choices(vector(), method="chi2", seed=0)
    assert a.test.statistic == pytest.approx(1.115436, abs=1e-6)
    assert a.test.pvalue == pytest.approx(0.891815, abs=1e-6)
    assert a.fit.gamma == pytest.approx(1.264001, abs=1e-6)
    assert a.verdict.kind == "inconclusive"


def test_miscalibration_is_found_and_named(assessed):
    assert assessed.verdict.kind == "miscalibrated"
    said = assessed.statements()
    slope = next(s for s in said if s.kind == "slope")
    assert slope.numbers["low"] < 0.6 < slope.numbers["high"]
    positions = {s.numbers["position"]: s.numbers for s in said if s.kind == "position"}
    # true shifts (0, .3, -.2, .5, 0): the median is 0
    assert positions["D"]["low"] < np.exp(0.5) < positions["D"]["high"]
    assert positions["B"]["low"] < np.exp(0.3) < positions["B"]["high"]
    assert not {"A", "E"} & set(positions)


def test_one_favoured_letter_is_named_alone():
    predictions = simulate(6000, 4, tau=[-0.5, 0.0, 0.0, 0.0], seed=2)
    a = mcllo.assess_choices(predictions, seed=0)
    named = [s.numbers for s in a.statements() if s.kind == "position"]
    assert [numbers["position"] for numbers in named] == ["A"]
    assert named[0]["low"] < np.exp(-0.5) < named[0]["high"]


def test_of_two_positions_each_is_compared_with_the_other():
    a = mcllo.assess_choices(simulate(2000, 2, tau=[0.0, 0.6], seed=2), seed=0)
    first, second = a.positions.rows()
    assert first["odds_factor"] == pytest.approx(1.0 / second["odds_factor"])
    assert second["odds_factor"] == pytest.approx(a.fit.delta[1])


def test_effect_size_is_that_of_the_truth(assessed):
    predictions = assessed.predictions
    tau = np.array([0.0, 0.3, -0.2, 0.5, 0.0])
    truth = np.exp(tau + 0.6 * predictions.logits) * predictions.offered
    truth /= truth.sum(axis=1, keepdims=True)
    change = 0.5 * np.abs(truth - predictions.probs).sum(axis=1).mean()
    size = assessed.effect_size
    assert size.low < change < size.high
    assert size.at_least < change


def test_parts_of_the_rows(assessed):
    rows = assessed.by.rows()
    assert [row["group"] for row in rows] == ["history", "law", "physics"]
    part = assessed.predictions.take(np.arange(3000) % 3 == 0)
    law = rows[1]
    hit = part.probs.argmax(axis=1) == part.codes
    assert law["n"] == 1000
    assert law["right"] == pytest.approx(hit.mean())
    assert law["expected"] == pytest.approx(part.probs.max(axis=1).mean())
    score = mcllo.calibration_test(part, statistic="score", seed=1)
    assert law["pvalue"] == pytest.approx(score.pvalue)
    counts = assessed.option_counts.rows()
    assert [row["options"] for row in counts] == [2, 3, 4, 5]
    assert sum(row["n"] for row in counts) == 3000


def test_calibrated_rows_are_never_called_calibrated():
    a = mcllo.assess_choices(simulate(3000, 5), seed=1)
    assert a.verdict.kind == "not_detected"
    assert "not proof of calibration" in a.text()
    assert not [s for s in a.statements() if s.kind.startswith(("slope", "position"))]


def test_position_that_is_never_right():
    predictions = simulate(1500, 4, 0.8, seed=3)
    a = mcllo.assess_choices(predictions.take(predictions.codes < 3), seed=1)
    assert a.fit.converged
    never = [s for s in a.statements() if s.kind == "position.never"]
    assert [s.numbers["position"] for s in never] == ["D"]
    factors = {row["position"]: row for row in a.positions.rows()}
    assert factors["D"]["odds_factor"] == 0.0
    assert factors["A"]["low"] < 1.0 < factors["A"]["high"] or np.isnan(
        factors["A"]["low"]
    )
    slope = next(s.numbers for s in a.statements() if s.kind == "slope")
    assert slope["low"] < 0.8 < slope["high"]
    assert a.effect_size.low > 0.0


def test_words_are_of_options_and_positions(assessed):
    text = assessed.text(full=True)
    for word in ("class", "label", "baseline"):
        assert word not in text.lower().replace("calibrated", "")
    assert text.startswith(assessed.text(brief=True))


def test_dictionary_is_strict_json(assessed):
    content = json.loads(json.dumps(assessed.to_dict(), allow_nan=False))
    assert content["kind"] == "choice_sets"
    assert content["verdict"]["kind"] == "miscalibrated"
    assert content["data"]["positions"] == ["A", "B", "C", "D", "E"]
    assert len(content["positions"]) == 5
    assert "classes" not in content["data"]


def test_gain_is_that_of_rows_left_out(assessed):
    gain = assessed.recalibration_gain
    predictions = assessed.predictions
    tau = np.array([0.0, 0.3, -0.2, 0.5, 0.0])
    truth = np.exp(tau + 0.6 * predictions.logits) * predictions.offered
    truth /= truth.sum(axis=1, keepdims=True)
    own = (np.arange(3000), predictions.codes)
    best = np.mean(np.log(truth[own]) - predictions.logits[own])
    # what is learned from 2,400 rows loses about 5 parameters / (2 * 2,400) = .001 of it
    assert gain.gain == pytest.approx(best, abs=0.006)
    assert gain.low < best < gain.high


def test_same_seed_same_text():
    first = mcllo.assess_choices(biased(300), seed=3)
    assert first.text() == mcllo.assess_choices(biased(300), seed=3).text()


def test_refused():
    with pytest.raises(InputError, match="kind must be"):
        mcllo.assess_choices([[0.5, 0.5]], [0])
    with pytest.raises(InputError, match="use assess"):
        mcllo.assess_choices(Predictions.from_arrays([[0.5, 0.5]] * 2, [0, 1]))
    with pytest.raises(InputError, match="kind must not be given"):
        mcllo.assess_choices(vector(), kind="probs")


def test_metrics_that_look_at_the_chosen_option_take_choice_sets():
    predictions = vector()
    hit = predictions.probs.argmax(axis=1) == predictions.codes
    assert mcllo.metrics.accuracy(None, predictions) == pytest.approx(hit.mean())
    own = predictions.probs[np.arange(12), predictions.codes]
    assert mcllo.metrics.log_loss(None, predictions) == pytest.approx(
        -np.log(own).mean()
    )
    assert mcllo.reliability_curve(predictions).counts.sum() == 12
    with pytest.raises(InputError, match="choice sets"):
        mcllo.reliability_curve(predictions, label="A")


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [1.0, 0.8])
def test_size_and_levels_hold(gamma):
    n_sets = 60
    is_high_enough = 0
    is_in_interval = 0
    n_levels = 0
    levels_that_hold = 0
    n_rejected = 0
    for seed in range(n_sets):
        predictions = simulate(600, 5, gamma, seed=seed)
        a = mcllo.assess_choices(predictions, seed=seed, n_resamples=199)
        truth = predictions.offered * np.exp(gamma * predictions.logits)
        truth /= truth.sum(axis=1, keepdims=True)
        change = 0.5 * np.abs(truth - predictions.probs).sum(axis=1).mean()
        size = a.effect_size
        is_high_enough += change <= size.high
        is_in_interval += size.low <= change <= size.high
        n_rejected += a.test.rejects(0.05)
        top = predictions.probs.max(axis=1)
        right = truth[np.arange(600), predictions.probs.argmax(axis=1)]
        for level in size.levels:
            near = np.abs(top - level.says) < 0.03
            there = level.says + (right - top)[near].mean()
            n_levels += 1
            levels_that_hold += level.low <= there <= level.high
    # nominal .95: of 60 intervals 50 or fewer have a chance of .1 %
    assert is_in_interval > 50
    assert is_high_enough > 50
    assert levels_that_hold > 0.88 * n_levels
    if gamma == 1.0:
        # Binomial(60, .05): more than 9 have a chance of .2 %
        assert n_rejected <= 9
