"""What a pool promises: by hand, and against the left-out rows it comes from."""

import data
import numpy as np
import pytest

from mcllo import Predictions
from mcllo._fit.linear_fit import transposed_scores
from mcllo.calibrators._auto.calibrator import describe_stack
from mcllo.calibrators._auto.folds import assign_folds
from mcllo.calibrators._auto.members import MembersFit
from mcllo.calibrators._auto.optimism import correct_optimism
from mcllo.calibrators._auto.stacking import (
    Stack,
    fit_stack,
    pooled_log_likelihood,
    predict_left_out,
)


def sample(n=300, c=3, power=2.0, seed=0, **facts):
    probs, y = data.drawn(n, range(c), seed, power=power)
    return Predictions.from_arrays(probs, y, classes=range(c), **facts)


@pytest.mark.parametrize("times", [10, 100, 1000])
def test_by_hand(times):
    # equal rows (.6, .4) become (.7, .3), 7 in 10 came true: G = .7 log(7/6) + .3 log(3/4),
    # C = .6 log(6/7) + .4 log(4/3), and W G is W times G; the gains spread as the family expects,
    # or more: sqrt(.7 .3 / (W - 1)) against sqrt(h (1 - h) / W), h = (.7 W + 1/2) / (W + 1)
    raw, pooled = np.tile([0.6, 0.4], (times, 1)), np.tile([0.7, 0.3], (times, 1))
    y = np.arange(times) >= 0.7 * times
    gains = np.where(y, np.log(3 / 4), np.log(7 / 6))
    gain = 0.7 * np.log(7 / 6) + 0.3 * np.log(3 / 4)
    cost = 0.6 * np.log(6 / 7) + 0.4 * np.log(4 / 3)
    half = (0.7 * times + 0.5) / (times + 1)
    step = np.log(7 / 6) - np.log(3 / 4)
    error = step * np.sqrt(0.21 / (times - 1))
    family = step * np.sqrt(half * (1 - half) / times)
    chance = 4.5 * np.exp(-times * gain * (family / error) ** 2)
    assert (chance > 2.0) == (times == 10)
    taken = min(2.0, chance) * (gain + cost)
    found = correct_optimism(gains, raw, pooled, np.ones(times), None, 1)
    assert found == pytest.approx(
        (gain - taken, np.hypot(max(error, family), taken)), rel=1e-3
    )


def test_a_sure_gain_is_promised_whole():
    stack = fit_stack(sample(2000))
    assert stack.promise == pytest.approx(stack.gain, rel=1e-6)
    assert stack.promise_se == pytest.approx(stack.gain_se, rel=0.2)


def test_an_unsure_one_is_not():
    stacks = [fit_stack(sample(60, power=1.0, seed=seed)) for seed in range(30)]
    made = [stack for stack in stacks if stack.gain > 0.0]
    assert 0 < len(made) < 30
    for stack in stacks:
        if stack.gain > 0.0:
            assert stack.promise < stack.gain
            assert stack.promise_se >= stack.gain - stack.promise
        else:
            assert (stack.promise, stack.promise_se) == (stack.gain, stack.gain_se)
    worst = min(made, key=lambda stack: stack.promise)
    assert describe_stack(worst).endswith("a gain that chance alone could show")


def test_one_row_left_out_promises_nothing():
    # Of two rows of more than 50 classes one is left out: its gain has no standard error.
    probs = np.random.default_rng(0).dirichlet(np.ones(60), size=2)
    y = [int(np.argsort(row)[30 + k]) for k, row in enumerate(probs)]
    stack = fit_stack(Predictions.from_arrays(probs, y, classes=range(60)))
    assert stack.gain > 0.0
    assert stack.gain_se == np.inf
    assert stack.weights["identity"] == 1.0
    assert (stack.promise, stack.promise_se) == (0.0, np.inf)


def test_tables_of_parts_are_what_the_gains_come_from():
    predictions = sample(80)
    scores, codes = transposed_scores(predictions), predictions.codes
    fit, folds = MembersFit(scores, codes), assign_folds(scores)
    weights = np.random.default_rng(0).dirichlet(np.ones(len(fit.whole.names)), 80)
    logs, tables = predict_left_out(fit, folds, 1)
    rows = np.arange(80)
    np.testing.assert_allclose(tables[0].T, predictions.probs[folds.rows], atol=1e-12)
    np.testing.assert_allclose(tables.sum(axis=1), 1.0, atol=1e-12)
    pooled = (tables.T * weights[:, None, :]).sum(axis=2)
    own = np.log(pooled[rows, codes[folds.rows]])
    np.testing.assert_allclose(own, pooled_log_likelihood(logs, weights), atol=1e-10)
    again, some = predict_left_out(fit, folds, 3)
    np.testing.assert_array_equal(some, tables[:, :, ::3])
    np.testing.assert_array_equal(again, logs)


def test_groups_and_whole_weights():
    doubled = fit_stack(sample(150, sample_weight=np.full(150, 2.0)))
    assert np.isfinite([doubled.promise, doubled.promise_se]).all()
    groups = np.arange(300) // 10
    grouped = fit_stack(sample(300, groups=groups))
    assert grouped.promise <= grouped.gain + 1e-12
    assert np.isfinite(grouped.promise_se)


def test_it_is_kept_in_files_and_read_from_those_without():
    stack = fit_stack(sample(100))
    content = stack.to_dict()
    again = Stack.from_dict(content)
    assert (again.promise, again.promise_se) == (stack.promise, stack.promise_se)
    older = {name: v for name, v in content.items() if not name.startswith("promise")}
    again = Stack.from_dict(older)
    assert (again.promise, again.promise_se) == (stack.gain, stack.gain_se)
